/* SPDX-License-Identifier: MIT
 *
 * `chinwag perplexity` against its definition, worked out here window by window, and against the
 * reference's figures for the real models.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chinwag/session.h"
#include "chinwag/tokenizer.h"
#include "tests/app/driver.h"
#include "tests/support/mkgguf.h"

enum { WINDOW = 512 };

static struct driver d;

static void free_driver(void) {
    driver_free(&d);
}

static double member(struct json_object *o, const char *key) {
    struct json_object *v;
    ck_assert_msg(json_object_object_get_ex(o, key, &v), "no member %s", key);
    return json_object_get_double(v);
}

struct rows {
    double *log_p; /* [WINDOW] ln p of ids[i + 1] after ids[0..i] */
    const int32_t *ids;
    int n_vocab;
};

static void keep_row(void *arg, size_t position, const float *y) {
    struct rows *r = arg;
    double sum = 0;
    for (int i = 0; i < r->n_vocab; i++) {
        sum += exp((double)y[i]);
    }
    if (position + 1 < WINDOW) {
        r->log_p[position] = (double)y[r->ids[position + 1]] - log(sum);
    }
}

/* The definition: windows of 512, the rest dropped, the first token replaced by the begin token if
 * there is one to add; tokens 2 to 512 and 258 to 512 scored. */
static void work_out(const char *path, const char *text, double *all, double *half, size_t *n) {
    struct cw_gguf *g;
    struct cw_tokenizer *t;
    struct cw_model *m;
    struct cw_ids ids = {0};
    const struct cw_tokenizer_options tokenizer = {0};
    const struct cw_model_options model = {.isa = CW_ISA_AUTO, .n_threads = 1, .exact = true};
    const struct cw_session_options session = {.n_ctx = WINDOW};
    double sums[2] = {0, 0}, log_p[WINDOW];
    ck_assert_int_eq(cw_gguf_open(&g, path, NULL), CW_OK);
    ck_assert_int_eq(cw_tokenizer_create(&t, g, &tokenizer, NULL), CW_OK);
    ck_assert_int_eq(cw_model_load(&m, g, &model, NULL), CW_OK);
    ck_assert_int_eq(cw_tokenizer_encode(t, text, strlen(text), CW_TOK_BOS_EOS, &ids, NULL), CW_OK);
    *n = ids.n / WINDOW;
    for (size_t w = 0; w < *n; w++) {
        int32_t *window = ids.v + w * WINDOW;
        if (cw_tokenizer_adds_bos(t)) {
            window[0] = cw_tokenizer_bos(t);
        }
        struct rows r = {log_p, window, cw_model_get_info(m)->n_vocab};
        const struct cw_session_hooks hooks = {.row = keep_row, .arg = &r};
        struct cw_session *s;
        ck_assert_int_eq(cw_session_create(&s, m, &session, NULL), CW_OK);
        ck_assert_int_eq(cw_session_extend(s, window, WINDOW, &hooks, NULL), CW_OK);
        for (int i = 0; i < WINDOW - 1; i++) {
            sums[0] -= log_p[i];
            sums[1] -= i >= 256 ? log_p[i] : 0;
        }
        cw_session_destroy(s);
    }
    *all = exp(sums[0] / (511.0 * (double)*n));
    *half = exp(sums[1] / (255.0 * (double)*n));
    cw_ids_free(&ids);
    cw_model_destroy(m);
    cw_tokenizer_destroy(t);
    cw_gguf_close(g);
}

START_TEST(is_its_definition) {
    static const char *const models[] = {"tiny-tail-Q8_0.gguf", "tiny-gemma-F32.gguf"};
    const char *path = driver_model(models[_i]);
    struct cw_buf text = {0};
    double all, half;
    size_t n;
    for (int i = 0; text.len < 3000; i++) {
        cw_buf_printf(&text, "%d <s> times %d is %d.\n", i, i + 1, i * (i + 1));
    }
    work_out(path, text.data, &all, &half, &n);
    ck_assert_uint_gt(n, 2);
    ck_assert(fabs(log(all / half)) > 1e-4); /* or the two could not be told apart */
    driver_run(&d, text.data, "perplexity", "-m", path, "-f", "-", "--json", "--exact", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    ck_assert_uint_eq((size_t)member(o, "windows"), n);
    ck_assert(fabs(log(member(o, "all") / all)) < 1e-5);
    ck_assert(fabs(log(member(o, "half") / half)) < 1e-5);
    json_object_put(o);
    driver_free(&d);
    driver_run(&d, text.data, "perplexity", "-m", path, "-f", "-", "--windows", "1", "--json",
               "--exact", NULL);
    o = driver_json(&d);
    ck_assert_uint_eq((size_t)member(o, "windows"), 1);
    ck_assert(fabs(log(member(o, "all") / all)) > 1e-5);
    json_object_put(o);
    cw_buf_free(&text);
}
END_TEST

START_TEST(real_models_predict_as_the_reference) {
    static const struct {
        const char *name, *file;
    } models[] = {{"smollm2-135m", "SmolLM2-135M-Instruct.Q4_1.gguf"},
                  {"gemma3-270m", "gemma-3-270m.Q4_K_M.gguf"},
                  {"qwen2.5-coder-1.5b", "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf"}};
    static const char *const figures[] = {"all", "half"};
    const char *dir = reference_dir(), *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    char model[1024], path[1024], windows[16];
    snprintf(model, sizeof model, "%s%s/chinwag/models/%s",
             data && *data ? data
             : home        ? home
                           : "",
             data && *data ? "" : "/.local/share", models[_i].file);
    if (!dir || access(model, R_OK) != 0) {
        printf("skipped: no %s, or no reference\n", models[_i].file);
        return;
    }
    snprintf(path, sizeof path, "%s/perplexity.json", dir);
    struct json_object *reference = json_object_from_file(path);
    struct json_object *list;
    ck_assert(json_object_object_get_ex(reference, "models", &list));
    snprintf(path, sizeof path, "%s/perplexity.txt", dir);
    int compared = 0;
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *m = json_object_array_get_idx(list, i);
        struct json_object *name, *expected, *bound;
        json_object_object_get_ex(m, "model", &name);
        if (strcmp(json_object_get_string(name), models[_i].name) != 0) {
            continue;
        }
        json_object_object_get_ex(m, "reference", &expected);
        json_object_object_get_ex(m, "bound", &bound);
        snprintf(windows, sizeof windows, "%d", (int)member(m, "n_windows"));
        driver_run(&d, "", "perplexity", "-m", model, "-f", path, "--windows", windows, "--json",
                   NULL);
        driver_expect_ok(&d);
        struct json_object *got = driver_json(&d);
        for (size_t k = 0; k < 2; k++, compared++) {
            double off = log(member(got, figures[k]) / member(expected, figures[k]));
            ck_assert_msg(fabs(off) <= member(bound, figures[k]), "%s, %s: off by %g",
                          models[_i].name, figures[k], off);
        }
        json_object_put(got);
    }
    ck_assert_int_eq(compared, 2);
    json_object_put(reference);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("perplexity");
    TCase *c = tcase_create("perplexity");
    tcase_add_checked_fixture(c, NULL, free_driver);
    tcase_set_timeout(c, 600);
    tcase_add_loop_test(c, is_its_definition, 0, 2);
    tcase_add_loop_test(c, real_models_predict_as_the_reference, 0, 3);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
