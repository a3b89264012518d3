/* SPDX-License-Identifier: MIT
 *
 * `chinwag bench`: what it takes and what it prints, not how fast anything is. Figures are only
 * held against each other where arithmetic ties them together.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/model.h"
#include "driver.h"
#include "tests/support/markov.h"
#include "tests/support/mkgguf.h"

static struct driver d;

static void teardown(void) {
    driver_free(&d);
}

static const char *tail(void) {
    return driver_model("tiny-tail-Q8_0.gguf");
}

static struct json_object *member(struct json_object *o, const char *key) {
    struct json_object *v = NULL;
    ck_assert_msg(json_object_object_get_ex(o, key, &v), "no \"%s\"", key);
    return v;
}

static double number(struct json_object *o, const char *key) {
    return json_object_get_double(member(o, key));
}

static double positive(struct json_object *o, const char *key) {
    double v = number(o, key);
    ck_assert_msg(v > 0 && isfinite(v), "%s is %g", key, v);
    return v;
}

/* a is b, but for the digits that are printed. */
static void expect_equal(double a, double b, const char *what) {
    ck_assert_msg(fabs(a - b) <= 1e-4 * fabs(b), "%s: %g is not %g", what, a, b);
}

static bool true_in(struct json_object *o, const char *key) {
    return json_object_get_boolean(member(o, key));
}

/* ---- usage ---------------------------------------------------------------------------------- */

static const struct {
    const char *args[8];
    const char *says;
} wrong[] = {
    {{"bench", "-d", ""}, "one to 16 depths"},
    {{"bench", "-p", "-1"}, "not between"},
    {{"bench", "-r", "100"}, "not between"},
    {{"bench", "--naive", "--kernels"}, "only one of them"},
    {{"bench", "--replies", "4", "--ui"}, "only one of them"},
    {{"bench", "--replies", "9"}, "not between 2 and 8"},
    {{"bench", "--replies", "1"}, "not between 2 and 8"},
    {{"bench", "--typing", "--rate", "0"}, "not between"},
    {{"bench", "--typing", "--rate", "fast"}, "not a whole number"},
    {{"bench", "--lookup=on"}, "takes no value"},
    {{"bench", "--temp", "1"}, "no such option"},
};

START_TEST(wrong_usage) {
    memset(&d, 0, sizeof d);
    driver_start(&d, wrong[_i].args);
    driver_finish(&d, "", 0);
    driver_expect(&d, 2, wrong[_i].says);
}
END_TEST

START_TEST(no_such_model) {
    static const char *const flags[] = {"--naive", "--limits", "--typing", "--lookup",
                                        "--ui",    "--rows",   "--start",  "--json"};
    driver_run(&d, "", "bench", "-m", "/nowhere/none.gguf", flags[_i], NULL);
    driver_expect(&d, 1, "none.gguf");
}
END_TEST

/* ---- speeds and limits ---------------------------------------------------------------------- */

/* Bytes of weights that one token reads, and its multiply-adds: all matrices of the file but the
 * embeddings, which are the head as well where the file has no other. */
static void cost_of(const char *path, double *bytes, double *macs) {
    struct cw_gguf *g;
    struct cw_err err;
    ck_assert_int_eq(cw_gguf_open(&g, path, &err), CW_OK);
    const char *head = cw_gguf_tensor(g, "output.weight") ? "output.weight" : "token_embd.weight";
    *bytes = *macs = 0;
    for (size_t i = 0; i < cw_gguf_n_tensors(g); i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(g, i);
        bool layer = t->n_dims == 2 && t->name.len > 4 && memcmp(t->name.data, "blk.", 4) == 0;
        if (layer || cw_str_eq(t->name, head)) {
            *bytes += (double)t->bytes;
            *macs += layer ? (double)t->dims[0] * (double)t->dims[1] : 0;
        }
    }
    cw_gguf_close(g);
}

START_TEST(speeds_with_their_shares) {
    double bytes;
    double macs;
    driver_run(&d, "", "bench", "-m", tail(), "-p", "16", "-n", "8", "-d", "0,32", "-r", "2",
               "--json", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    struct json_object *rows = member(o, "rows");
    ck_assert_uint_eq(json_object_array_length(rows), 2);
    cost_of(tail(), &bytes, &macs);
    expect_equal(number(o, "weight_bytes_token"), bytes, "bytes of a token");
    expect_equal(number(o, "macs_token"), macs, "multiply-adds of a token");
    double kv = positive(o, "kv_bytes_token");
    for (size_t i = 0; i < 2; i++) {
        struct json_object *row = json_object_array_get_idx(rows, i);
        double prefill = positive(row, "prefill_tps"), decode = positive(row, "decode_tps");
        ck_assert_int_eq(json_object_get_int(member(row, "depth")), i ? 32 : 0);
        ck_assert_double_ge(positive(row, "prefill_tps_best"), prefill);
        ck_assert_double_ge(positive(row, "decode_tps_best"), decode);
        expect_equal(number(row, "token_ms"), 1e3 / decode, "token_ms");
        /* Eight tokens behind `depth`: on the average four more cells, and its own. */
        expect_equal(number(row, "kv_read_bytes"), kv * (i ? 37 : 5), "kv_read_bytes");
        expect_equal(number(row, "read_bytes"), bytes + number(row, "kv_read_bytes"), "read_bytes");
        expect_equal(number(row, "decode_share"),
                     decode * number(row, "read_bytes") / (1e9 * positive(o, "read_gbs")),
                     "decode_share");
        expect_equal(number(row, "prefill_share"),
                     prefill * macs / (1e9 * positive(o, "int8_gops")), "prefill_share");
    }
    positive(o, "start_to_token_s");
    positive(o, "rss_mib");
    positive(o, "memory_gbs");
    /* A model this small is read from the cache: the buffer is of its size. */
    expect_equal(number(o, "read_bytes"), bytes, "read_bytes");
    ck_assert_double_gt(number(o, "memory_bytes"), number(o, "read_bytes"));
    json_object_put(o);
    driver_free(&d);
    driver_run(&d, "", "bench", "-m", tail(), "-p", "16", "-n", "0", "-r", "1", NULL);
    driver_expect_ok(&d);
    ck_assert_ptr_nonnull(strstr(d.out_text.data, "start to first token"));
    ck_assert_ptr_nonnull(strstr(d.out_text.data, "prefill"));
    ck_assert_ptr_nonnull(strstr(d.out_text.data, "integer peak"));
    ck_assert_ptr_null(strstr(d.out_text.data, "nan"));
}
END_TEST

/* A window bounds what a layer reads of the cache. */
START_TEST(windows_bound_the_reads) {
    const char *path = driver_model("tiny-gemma3-F32.gguf");
    driver_run(&d, "", "bench", "-m", path, "-p", "0", "-n", "2", "-d", "0,200", "-r", "1",
               "--json", "--exact", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    struct json_object *rows = member(o, "rows");
    double first = positive(json_object_array_get_idx(rows, 0), "kv_read_bytes");
    double later = positive(json_object_array_get_idx(rows, 1), "kv_read_bytes");
    /* Every cell of every layer would be (200 + 2) / 2 times as much. */
    ck_assert_double_gt(later, first);
    ck_assert_double_lt(later, 0.9 * first * 202 / 2);
    json_object_put(o);
}
END_TEST

START_TEST(parts_of_it) {
    driver_run(&d, "", "bench", "-m", tail(), "--rows", "-p", "8", "-n", "4", "-r", "1", "--json",
               NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    positive(json_object_array_get_idx(member(o, "rows"), 0), "decode_tps");
    ck_assert(!json_object_object_get_ex(o, "start_to_token_s", NULL));
    json_object_put(o);
    driver_free(&d);
    driver_run(&d, "", "bench", "-m", tail(), "--start", "-r", "1", "--json", NULL);
    driver_expect_ok(&d);
    o = driver_json(&d);
    positive(o, "start_to_token_s");
    positive(o, "rss_mib");
    ck_assert(!json_object_object_get_ex(o, "rows", NULL));
    json_object_put(o);
    driver_free(&d);
    driver_run(&d, "", "bench", "-m", tail(), "--limits", NULL);
    driver_expect_ok(&d);
    ck_assert_ptr_nonnull(strstr(d.out_text.data, "GB/s, from"));
}
END_TEST

/* ---- naive against cached ------------------------------------------------------------------- */

START_TEST(naive_against_cached) {
    driver_run(&d, "", "bench", "-m", tail(), "--naive", "--json", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    struct json_object *rows = member(o, "naive");
    ck_assert_uint_eq(json_object_array_length(rows), 6);
    double before = 0;
    for (size_t i = 0; i < 6; i++) {
        struct json_object *row = json_object_array_get_idx(rows, i);
        ck_assert_int_eq(json_object_get_int(member(row, "tokens")), 64 << i);
        double naive = positive(row, "naive_s");
        expect_equal(number(row, "ratio"), naive / positive(row, "cached_s"), "ratio");
        ck_assert_double_gt(naive, before);
        before = naive;
        /* Up to 512 it really ran, and both gave the same tokens. */
        ck_assert_int_eq(true_in(row, "naive_estimated"), i > 3);
        ck_assert(i > 3 || true_in(row, "same_tokens"));
        ck_assert_int_eq(json_object_object_get_ex(row, "same_tokens", NULL), i <= 3);
    }
    json_object_put(o);
    driver_free(&d);
    /* A context that holds only some of it. */
    driver_run(&d, "", "bench", "-m", tail(), "--naive", "-c", "300", NULL);
    driver_expect_ok(&d);
    ck_assert_ptr_nonnull(strstr(d.out_text.data, "\n     256 "));
    ck_assert_ptr_null(strstr(d.out_text.data, "\n     512 "));
}
END_TEST

/* ---- kernels -------------------------------------------------------------------------------- */

START_TEST(kernels_of_a_set) {
    const char *isa = cw_isa_available(CW_ISA_AVX2) ? "avx2" : "scalar";
    driver_run(&d, "", "bench", "--kernels", "--isa", isa, "--json", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    ck_assert_uint_eq(json_object_array_length(member(o, "isas")), 1);
    struct json_object *set = json_object_array_get_idx(member(o, "isas"), 0);
    ck_assert_str_eq(json_object_get_string(member(set, "isa")), isa);
    positive(set, "int8_gops");
    /* Every type of the table is there. */
    struct json_object *rows = member(set, "products");
    for (uint32_t type = 0; type < 64; type++) {
        const struct cw_type_info *info = cw_type_info(type);
        bool found = info == NULL;
        for (size_t i = 0; i < json_object_array_length(rows) && !found; i++) {
            struct json_object *row = json_object_array_get_idx(rows, i);
            if (strcmp(json_object_get_string(member(row, "type")), info->name) == 0) {
                static const char *const keys[] = {"read_gbs", "gemv_1", "gemv_2",
                                                   "gemv_4",   "gemv_8", "gemm_512"};
                for (size_t k = 0; k < 6; k++) {
                    positive(row, keys[k]);
                }
                found = true;
            }
        }
        ck_assert_msg(found, "no %s", info ? info->name : "");
    }
    rows = member(set, "layer");
    ck_assert_uint_ge(json_object_array_length(rows), 18);
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        positive(json_object_array_get_idx(rows, i), "value");
    }
    json_object_put(o);
}
END_TEST

/* ---- the generator -------------------------------------------------------------------------- */

START_TEST(typing) {
    driver_run(&d, "", "bench", "-m", tail(), "--typing", "--rate", "2000", "-r", "2", "--json",
               NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    ck_assert_int_eq(json_object_get_int(member(o, "characters_s")), 2000);
    expect_equal(number(o, "ratio"), positive(o, "ttft_typing_s") / positive(o, "ttft_plain_s"),
                 "ratio");
    json_object_put(o);
}
END_TEST

START_TEST(lookup) {
    driver_run(&d, "", "bench", "-m", tail(), "--lookup", "-r", "1", "--json", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    struct json_object *rows = member(o, "lookup");
    ck_assert_uint_eq(json_object_array_length(rows), 4);
    for (size_t i = 0; i < 4; i++) {
        struct json_object *row = json_object_array_get_idx(rows, i);
        ck_assert_str_eq(json_object_get_string(member(row, "text")), i % 2 ? "prose" : "code");
        expect_equal(number(row, "ratio"), positive(row, "on_tps") / positive(row, "off_tps"),
                     "ratio");
        ck_assert_msg(true_in(row, "same_tokens"), "row %zu", i);
    }
    json_object_put(o);
}
END_TEST

START_TEST(replies) {
    driver_run(&d, "", "bench", "-m", tail(), "--replies", "3", "-n", "24", "-r", "1", "--json",
               NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    ck_assert_int_eq(json_object_get_int(member(o, "replies")), 3);
    expect_equal(number(o, "ratio"), positive(o, "all_tps") / positive(o, "one_tps"), "ratio");
    ck_assert(true_in(o, "same_tokens"));
    json_object_put(o);
}
END_TEST

START_TEST(fork_of_a_chat) {
    driver_run(&d, "", "bench", "-m", tail(), "--fork", "-c", "512", "-r", "3", "--json", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    ck_assert_double_gt(positive(o, "chat_tokens"), 64);
    positive(o, "token_ms");
    ck_assert_double_ge(number(o, "fork_ms_worst"), number(o, "fork_ms"));
    ck_assert_int_eq(json_object_get_int(member(o, "evaluated_at_most")), 1);
    json_object_put(o);
}
END_TEST

/* ---- the interface -------------------------------------------------------------------------- */

START_TEST(interface) {
    static const char *const texts[] = {"The ",     "harbour ", "lies ",  "in ",   "the ",
                                        "north,\n", "where ",   "winds ", "blow ", "hard.\n"};
    struct markov m;
    char path[300];
    snprintf(path, sizeof path, "%s", tmp_path("harbour.gguf"));
    markov_init(&m);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        markov_text(&m, texts[i]);
    }
    markov_loop(&m, 0);
    markov_save(&m, path);
    markov_free(&m);
    driver_run(&d, "", "bench", "-m", path, "--ui", "-n", "60", "--json", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    ck_assert_int_eq(json_object_get_int(member(o, "tokens")), 60);
    double sent = positive(o, "sent_bytes"), text = positive(o, "text_bytes");
    expect_equal(number(o, "sent_ratio"), sent / text, "sent_ratio");
    /* Every letter of it went to the terminal, but for blanks and line ends. */
    ck_assert_double_gt(sent, text / 2);
    double share = positive(o, "drawing_share");
    ck_assert_double_le(share, 1);
    positive(o, "keys");
    ck_assert_double_ge(positive(o, "key_ms_p99"), positive(o, "key_ms_median"));
    ck_assert_double_ge(positive(o, "key_ms_worst"), number(o, "key_ms_p99"));
    positive(o, "key_ms_after_paste"); /* finite: it came on the screen */
    json_object_put(o);
}
END_TEST

int main(void) {
    Suite *s = suite_create("bench");
    const struct {
        const char *name;
        const TTest *test;
        int n;
    } tests[] = {
        {"usage", wrong_usage, sizeof wrong / sizeof *wrong},
        {"usage", no_such_model, 8},
        {"speed", speeds_with_their_shares, 1},
        {"speed", windows_bound_the_reads, 1},
        {"speed", parts_of_it, 1},
        {"naive", naive_against_cached, 1},
        {"kernels", kernels_of_a_set, 1},
        {"generator", typing, 1},
        {"generator", lookup, 1},
        {"generator", replies, 1},
        {"generator", fork_of_a_chat, 1},
        {"interface", interface, 1},
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        TCase *tc = tcase_create(tests[i].name);
        tcase_set_timeout(tc, 600);
        tcase_add_checked_fixture(tc, NULL, teardown);
        tcase_add_loop_test(tc, tests[i].test, 0, tests[i].n);
        suite_add_tcase(s, tc);
    }
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
