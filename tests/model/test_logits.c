/* SPDX-License-Identifier: MIT
 *
 * The forward pass against an independent reference (tests/data/logits.jsonl: float64 arithmetic on
 * the same weights), for every architecture, block format and instruction set; and greedy
 * continuations of a real model. */
#include "tests/model/fixture.h"
#include "tests/support/mkgguf.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct logits_case *cases;
static size_t n_cases;

static void setup(void) {
    cases = read_cases(&n_cases);
}

static void teardown(void) {
    for (size_t i = 0; i < n_cases; i++) {
        free(cases[i].logits);
    }
    free(cases);
}

static int32_t best_of(const float *y, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        best = y[i] > y[best] ? i : best;
    }
    return (int32_t)best;
}

static bool is_float_case(const struct logits_case *c) {
    return strstr(c->model, "-F32.") != NULL || strstr(c->model, "F16.") != NULL;
}

/* False where the model is not here. The last row of the prompt within the case's bound; 5e-5 where
 * activations stay floats. */
static bool check_case(const struct logits_case *c, enum cw_isa isa, bool exact) {
    struct run_options o = {
        .isa = isa, .n_threads = 2, .n_ctx = c->n_ctx != 0 ? c->n_ctx : 64, .exact = exact};
    struct fixture f;
    struct cw_err err = {0};
    char *path = model_path(c->model);
    if (path == NULL) {
        return false;
    }
    fixture_open(&f, path, &o);
    ck_assert_int_eq(cw_model_get_info(f.model)->isa, isa);
    ck_assert_uint_eq((size_t)cw_model_get_info(f.model)->n_vocab, c->n_logits);
    struct cw_session *s = session_open(&f, &o);
    ck_assert_msg(cw_session_extend(s, c->ids, c->n_ids, NULL, &err) == CW_OK, "%s", err.text);
    double bound = is_float_case(c) && c->bound > 5e-5 ? 5e-5 : c->bound;
    double e = nmse(cw_session_logits(s), c->logits, c->n_logits);
    ck_assert_msg(e <= bound, "%s, %s%s: %g is above %g", c->name, cw_isa_name(isa),
                  exact ? ", exact" : "", e, bound);
    cw_session_destroy(s);
    fixture_close(&f);
    free(path);
    return true;
}

START_TEST(every_case) {
    enum cw_isa isa = (enum cw_isa)_i;
    if (!cw_isa_available(isa)) {
        printf("skipped: this machine has no %s\n", cw_isa_name(isa));
        return;
    }
    size_t n_checked = 0;
    for (size_t i = 0; i < n_cases; i++) {
        n_checked += check_case(&cases[i], isa, true);
    }
    ck_assert_uint_ge(n_checked, 90); /* those whose models are in the tree */
}
END_TEST

/* The same with OpenBLAS where there is one: only float files use it. */
START_TEST(every_float_case_with_blas) {
    enum cw_isa isa = CW_ISA_SCALAR;
    for (int i = 0; i < CW_N_ISAS; i++) {
        isa = cw_isa_available((enum cw_isa)i) ? (enum cw_isa)i : isa;
    }
    for (size_t i = 0; i < n_cases; i++) {
        if (is_float_case(&cases[i])) {
            check_case(&cases[i], isa, false);
        }
    }
}
END_TEST

/* Twelve greedy tokens, fed the reference's own; the same choice where the reference is sure. */
START_TEST(tiny_greedy) {
    for (size_t i = 0; i < n_cases; i++) {
        const struct logits_case *c = &cases[i];
        struct run_options o = {.isa = CW_ISA_AUTO,
                                .n_threads = 2,
                                .n_ctx = c->n_ctx != 0 ? c->n_ctx : 64,
                                .exact = true};
        float sure = is_float_case(c) ? 0.02f : 0.4f;
        struct fixture f;
        char *path = model_path(c->model);
        if (path == NULL) {
            continue;
        }
        fixture_open(&f, path, &o);
        struct cw_session *s = session_open(&f, &o);
        ck_assert_int_eq(cw_session_extend(s, c->ids, c->n_ids, NULL, NULL), CW_OK);
        for (size_t k = 0; k < c->n_greedy; k++) {
            int32_t best = best_of(cw_session_logits(s), c->n_logits);
            ck_assert_msg(best == c->greedy[k] || c->greedy_gap[k] < sure,
                          "%s, token %zu: %d, not %d (gap %g)", c->name, k, best, c->greedy[k],
                          (double)c->greedy_gap[k]);
            ck_assert_int_eq(cw_session_extend(s, &c->greedy[k], 1, NULL, NULL), CW_OK);
        }
        cw_session_destroy(s);
        fixture_close(&f);
        free(path);
    }
}
END_TEST

/* Real models: the same choice as the reference wherever its two best lie 0.5 apart. */
START_TEST(real_greedy) {
    static const struct {
        const char *name, *file;
    } models[] = {
        {"smollm2-135m", "SmolLM2-135M-Instruct.Q4_1.gguf"},
        {"gemma3-270m", "gemma-3-270m.Q4_K_M.gguf"},
        {"qwen2.5-coder-1.5b", "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf"},
    };
    size_t n;
    struct greedy_case *list = read_greedy(models[_i].name, &n);
    char *path = real_model_path(models[_i].file);
    size_t compared = 0;
    if (n == 0 || path == NULL) {
        free(list);
        free(path);
        return;
    }
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 2, .n_ctx = 1024};
    struct fixture f;
    fixture_open(&f, path, &o);
    struct cw_session *s = session_open(&f, &o);
    size_t n_vocab = (size_t)cw_model_get_info(f.model)->n_vocab;
    for (size_t i = 0; i < n; i++) {
        const struct greedy_case *c = &list[i];
        ck_assert_int_eq(cw_session_sync(s, c->ids, c->n_ids, NULL, NULL, NULL), CW_OK);
        for (size_t k = 0; k < c->n_greedy; k++) {
            int32_t best = best_of(cw_session_logits(s), n_vocab);
            ck_assert_msg(best == c->greedy[k] || c->gap[k] < 0.5f,
                          "%s, token %zu: %d, not %d (gap %g)", c->name, k, best, c->greedy[k],
                          (double)c->gap[k]);
            compared += c->gap[k] >= 0.5f;
            ck_assert_int_eq(cw_session_extend(s, &c->greedy[k], 1, NULL, NULL), CW_OK);
        }
    }
    ck_assert_uint_gt(compared, 50);
    cw_session_destroy(s);
    fixture_close(&f);
    free(list);
    free(path);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("logits");
    TCase *c = tcase_create("reference");
    tcase_add_unchecked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 600);
    tcase_add_loop_test(c, every_case, 0, CW_N_ISAS);
    tcase_add_test(c, every_float_case_with_blas);
    tcase_add_test(c, tiny_greedy);
    tcase_add_loop_test(c, real_greedy, 0, 3);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
