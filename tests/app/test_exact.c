/* SPDX-License-Identifier: MIT
 *
 * "One arithmetic" through the program: nine digits of every logit are the same text, whatever the
 * kernels, the threads, the chunk, and with or without the cache. And what the program says of a
 * real model, against the reference data where that is at hand.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cli.h"
#include "tests/app/driver.h"
#include "tests/support/mkgguf.h"

/* Longer than a chunk, than a block of 16 cells and than the window of any tiny model. */
static const char tokens[] = "300,5,77,12,200,9,31,250,3,3,111,64,8,90,17,299,42,42,180,7,66,5,121,"
                             "33,201,254,1,0,19,88,143,27,310,2,55,160,71,99,13,28";

static struct driver d;

static void teardown(void) {
    driver_free(&d);
}

/* The output of `logits --all` with these further arguments; NULL when the CPU lacks the kernels.
 * Caller must free. */
static char *logits(const char *model, const char *const *more) {
    const char *args[32] = {"logits", "-m", model, "--tokens", tokens, "--all"};
    size_t n = 6;
    while (*more) {
        args[n++] = *more++;
    }
    memset(&d, 0, sizeof d);
    driver_start(&d, args);
    driver_finish(&d, "", 0);
    if (d.status == 1 && strstr(d.err_text.data, "this CPU")) {
        driver_free(&d);
        return NULL;
    }
    driver_expect_ok(&d);
    char *text = cw_buf_take(&d.out_text);
    driver_free(&d);
    return text;
}

static const struct {
    const char *model;
    const char *args[5]; /* of the baseline and of every other run */
} models[] = {
    {"tiny-mixed-Q4_K_M.gguf", {NULL}},
    {"tiny-mixed-Q4_K_M.gguf", {"--kv", "q8_0"}},
    {"tiny-tail-Q8_0.gguf", {NULL}},
    {"tiny-qwen2-F32.gguf", {"--exact"}},
};

static const char *const ways[][7] = {
    {"--isa", "scalar", "-t", "2", "--chunk", "7"},
    {"--isa", "avx2", "-t", "1", "--chunk", "16"},
    {"--isa", "avxvnni", "-t", "2", "--chunk", "512"},
    {"--isa", "avx512", "-t", "1", "--chunk", "1"},
    {"--isa", "avx512", "-t", "3", "--chunk", "13"},
    {"-t", "4", "--chunk", "39"},
    {"--naive"},
    {"--naive", "--isa", "scalar"},
};

START_TEST(every_way_gives_the_same_digits) {
    const char *model = driver_model(models[_i].model);
    size_t skipped = 0;
    const char *base[16] = {"--isa", "scalar", "-t", "1", "--chunk", "1"};
    for (size_t i = 0; models[_i].args[i]; i++) {
        base[6 + i] = models[_i].args[i];
    }
    char *expected = logits(model, base);
    ck_assert_ptr_nonnull(expected);
    ck_assert_uint_gt(strlen(expected), 40 * 300 * 8);
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        const char *args[16] = {NULL};
        size_t n = 0;
        for (size_t i = 0; ways[w][i]; i++) {
            args[n++] = ways[w][i];
        }
        for (size_t i = 0; models[_i].args[i]; i++) {
            args[n++] = models[_i].args[i];
        }
        char *got = logits(model, args);
        if (!got) {
            skipped++;
            printf("skipped: this CPU has no %s\n", ways[w][1]);
            continue;
        }
        ck_assert_msg(strcmp(got, expected) == 0, "%s: %s %s %s %s gives other digits",
                      models[_i].model, ways[w][0], ways[w][1] ? ways[w][1] : "",
                      ways[w][2] ? ways[w][2] : "", ways[w][3] ? ways[w][3] : "");
        free(got);
    }
    ck_assert_uint_lt(skipped, sizeof ways / sizeof *ways);
    free(expected);
}
END_TEST

/* The check above can fail: another model, another cache type, other digits. */
START_TEST(other_digits_where_they_should_be) {
    char *f16 = logits(driver_model("tiny-mixed-Q4_K_M.gguf"), (const char *const[]){NULL});
    char *q8 =
        logits(driver_model("tiny-mixed-Q4_K_M.gguf"), (const char *const[]){"--kv", "q8_0", NULL});
    ck_assert_str_ne(f16, q8);
    free(f16);
    free(q8);
}
END_TEST

static struct json_object *generate(const char *model, const char *prompt,
                                    const char *const *more) {
    const char *args[32] = {"generate", "-m", model, "--tokens", prompt, "--ignore-eos"};
    size_t n = 6;
    while (*more) {
        args[n++] = *more++;
    }
    memset(&d, 0, sizeof d);
    driver_start(&d, args);
    driver_finish(&d, "", 0);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    driver_free(&d);
    return o;
}

static const char *ids_of(struct json_object *o) {
    return json_object_to_json_string(json_object_object_get(o, "tokens"));
}

START_TEST(naive_and_cached_generate_the_same) {
    static const char *const settings[][7] = {
        {"-n", "40"},
        {"-n", "40", "-s", "5"},
        {"-n", "40", "-s", "6", "--temp", "2", "-t"},
    };
    const char *model = driver_model("tiny-mixed-Q4_K_M.gguf");
    for (size_t i = 0; i < 3; i++) {
        const char *cached[12] = {NULL};
        const char *naive[12] = {"--naive", "--isa", "scalar"};
        for (size_t k = 0; settings[i][k] && strcmp(settings[i][k], "-t") != 0; k++) {
            cached[k] = settings[i][k];
            naive[k + 3] = settings[i][k];
        }
        struct json_object *a = generate(model, tokens, cached);
        struct json_object *b = generate(model, tokens, naive);
        ck_assert_str_eq(ids_of(a), ids_of(b));
        json_object_put(a);
        json_object_put(b);
    }
}
END_TEST

/* ---- a real model --------------------------------------------------------------------------- */

/* Lines of a reference file, one JSON object each; NULL at the end. */
static struct json_object *next_line(FILE *f) {
    static char *line;
    static size_t cap;
    if (!f || getline(&line, &cap, f) < 0) {
        return NULL;
    }
    struct json_object *o = json_tokener_parse(line);
    ck_assert_msg(o != NULL, "the reference is no JSON: %.80s", line);
    return o;
}

static FILE *open_reference(const char *name) {
    char path[2048];
    const char *dir = reference_dir();
    if (!dir) {
        return NULL;
    }
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s", path);
    return f;
}

static const char *text_of(struct json_object *o, const char *key) {
    struct json_object *v = NULL;
    json_object_object_get_ex(o, key, &v);
    return v ? json_object_get_string(v) : NULL;
}

static bool same_ids(struct json_object *a, struct json_object *b) {
    return strcmp(json_object_to_json_string_ext(a, JSON_C_TO_STRING_PLAIN),
                  json_object_to_json_string_ext(b, JSON_C_TO_STRING_PLAIN)) == 0;
}

START_TEST(smollm2_says_something_sensible) {
    const char *model = driver_smollm2();
    if (!model) {
        return;
    }
    driver_run(&d, "Hello world, it's 2025!\n", "tokenize", "-m", model, NULL);
    driver_expect_ok(&d);
    ck_assert_str_eq(d.out_text.data, "19556 905 28 357 506 216 34 32 34 37 17 198\n");
    driver_free(&d);
    driver_run(&d, "", "-m", model, "-sys", "You are a helpful assistant.", "-p",
               "What is the capital of France, and what is it known for?", "--temp", "0", "-n", "8",
               NULL);
    driver_expect_ok(&d);
    ck_assert_msg(strstr(d.out_text.data, "Paris") != NULL, "it said: %s", d.out_text.data);
}
END_TEST

START_TEST(smollm2_tokenises_as_the_reference) {
    const char *model = driver_smollm2();
    FILE *f = model ? open_reference("tokenizers/cases.jsonl") : NULL;
    struct json_object *wanted = json_object_new_array();
    struct cw_buf requests = {0};
    for (struct json_object *o; (o = next_line(f));) {
        const char *vocab = text_of(o, "vocab");
        if (vocab && strcmp(vocab, "smollm2-135m") == 0 &&
            !json_object_get_boolean(json_object_object_get(o, "advisory"))) {
            cw_buf_puts(&requests, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
            cw_buf_putc(&requests, '\n');
            json_object_array_add(wanted, json_object_get(o));
        }
        json_object_put(o);
    }
    if (f) {
        fclose(f);
        size_t n = json_object_array_length(wanted);
        ck_assert_uint_gt(n, 100);
        driver_run(&d, requests.data, "tokenize", "-m", model, "--jsonl", NULL);
        driver_expect_ok(&d);
        char *save = NULL;
        char *line = strtok_r(d.out_text.data, "\n", &save);
        for (size_t i = 0; i < n; i++, line = strtok_r(NULL, "\n", &save)) {
            struct json_object *c = json_object_array_get_idx(wanted, i);
            struct json_object *got = line ? json_tokener_parse(line) : NULL;
            ck_assert_msg(got && same_ids(json_object_object_get(got, "ids"),
                                          json_object_object_get(c, "ids")),
                          "case %zu: %.300s gives %.300s", i, json_object_to_json_string(c), line);
            json_object_put(got);
        }
        ck_assert_ptr_null(line);
    }
    json_object_put(wanted);
    cw_buf_free(&requests);
}
END_TEST

START_TEST(smollm2_renders_as_the_reference) {
    const char *model = driver_smollm2();
    FILE *f = model ? open_reference("templates/cases.jsonl") : NULL;
    int n = 0;
    for (struct json_object *o; (o = next_line(f)); json_object_put(o)) {
        const char *template = text_of(o, "template");
        const char *expected = text_of(o, "expected");
        bool prompt = json_object_get_boolean(json_object_object_get(o, "add_generation_prompt"));
        if (!template || strcmp(template, "smollm2-135m.jinja") != 0 || !expected) {
            continue;
        }
        driver_run(&d, text_of(o, "messages"), "render", "-m", model, "--now",
                   "2025-03-14T09:26:53", prompt ? NULL : "--no-generation-prompt", NULL);
        driver_expect_ok(&d);
        ck_assert_str_eq(d.out_text.data, expected);
        driver_free(&d);
        n++;
    }
    if (f) {
        ck_assert_int_ge(n, 5);
        fclose(f);
    }
}
END_TEST

/* The reference's choices, as long as none of them is near a tie. */
START_TEST(smollm2_chooses_as_the_reference) {
    const char *model = driver_smollm2();
    FILE *f = model ? open_reference("greedy.jsonl") : NULL;
    int n = 0;
    for (struct json_object *o; (o = next_line(f)); json_object_put(o)) {
        if (strcmp(text_of(o, "model"), "smollm2-135m") != 0) {
            continue;
        }
        struct json_object *greedy = json_object_object_get(o, "greedy");
        struct json_object *gap = json_object_object_get(o, "gap");
        struct json_object *got =
            generate(model, text_of(o, "tokens"), (const char *const[]){"-n", "48", NULL});
        struct json_object *ids = json_object_object_get(got, "tokens");
        for (size_t i = 0; i < json_object_array_length(greedy); i++) {
            if (json_object_get_double(json_object_array_get_idx(gap, i)) < 0.5) {
                break;
            }
            ck_assert_int_eq(json_object_get_int(json_object_array_get_idx(ids, i)),
                             json_object_get_int(json_object_array_get_idx(greedy, i)));
            n++;
        }
        json_object_put(got);
    }
    if (f) {
        ck_assert_int_ge(n, 10);
        fclose(f);
    }
}
END_TEST

START_TEST(smollm2_predicts_as_the_reference) {
    const char *model = driver_smollm2();
    FILE *f = model ? open_reference("perplexity.json") : NULL;
    char text[2048];
    if (!f) {
        return;
    }
    fclose(f);
    snprintf(text, sizeof text, "%s/perplexity.json", reference_dir());
    struct json_object *reference = json_object_from_file(text);
    struct json_object *of_models = json_object_object_get(reference, "models");
    snprintf(text, sizeof text, "%s/perplexity.txt", reference_dir());
    driver_run(&d, "", "perplexity", "-m", model, "-f", text, "--json", NULL);
    driver_expect_ok(&d);
    struct json_object *got = driver_json(&d);
    int n = 0;
    for (size_t i = 0; i < json_object_array_length(of_models); i++) {
        struct json_object *m = json_object_array_get_idx(of_models, i);
        static const char *const figures[] = {"all", "half"};
        for (size_t k = 0; k < 2 && strcmp(text_of(m, "model"), "smollm2-135m") == 0; k++, n++) {
            struct json_object *expected = json_object_object_get(m, "reference");
            struct json_object *bound = json_object_object_get(m, "bound");
            double a = json_object_get_double(json_object_object_get(got, figures[k]));
            double b = json_object_get_double(json_object_object_get(expected, figures[k]));
            double most = json_object_get_double(json_object_object_get(bound, figures[k]));
            ck_assert_msg(a > 1 && fabs(log(a / b)) <= most, "%s: %g, not %g", figures[k], a, b);
        }
    }
    ck_assert_int_eq(n, 2);
    json_object_put(got);
    json_object_put(reference);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("exact");
    TCase *t = tcase_create("one arithmetic");
    tcase_set_timeout(t, 300);
    tcase_add_checked_fixture(t, NULL, teardown);
    tcase_add_loop_test(t, every_way_gives_the_same_digits, 0,
                        (int)(sizeof models / sizeof *models));
    tcase_add_test(t, other_digits_where_they_should_be);
    tcase_add_test(t, naive_and_cached_generate_the_same);
    suite_add_tcase(suite, t);
    TCase *m = tcase_create("SmolLM2");
    tcase_set_timeout(m, 300);
    tcase_add_checked_fixture(m, NULL, teardown);
    tcase_add_test(m, smollm2_says_something_sensible);
    tcase_add_test(m, smollm2_tokenises_as_the_reference);
    tcase_add_test(m, smollm2_renders_as_the_reference);
    tcase_add_test(m, smollm2_chooses_as_the_reference);
    tcase_add_test(m, smollm2_predicts_as_the_reference);
    suite_add_tcase(suite, m);
    SRunner *sr = srunner_create(suite);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
