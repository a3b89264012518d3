/* SPDX-License-Identifier: MIT
 *
 * "One arithmetic": after the same ids the logits are the same to the last bit, whatever the
 * instruction set, the threads, the chunks and the way there. */
#include "tests/model/fixture.h"
#include "tests/support/mkgguf.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every tiny model: all block formats, all architectures. */
static const char *const models[] = {
    "tiny-llama-Q2_K.gguf",      "tiny-llama-Q3_K.gguf",       "tiny-llama-Q4_0.gguf",
    "tiny-llama-Q4_1.gguf",      "tiny-llama-Q4_K.gguf",       "tiny-llama-Q5_0.gguf",
    "tiny-llama-Q5_1.gguf",      "tiny-llama-Q5_K.gguf",       "tiny-llama-Q6_K.gguf",
    "tiny-llama-Q8_0.gguf",      "tiny-llama-IQ4_NL.gguf",     "tiny-llama-IQ4_XS.gguf",
    "tiny-llama-MXFP4.gguf",     "tiny-llama-BF16.gguf",       "tiny-llama-F16.gguf",
    "tiny-llama-F32.gguf",       "tiny-mixed-Q4_K_M.gguf",     "tiny-gpt-oss-MXFP4.gguf",
    "tiny-tail-Q4_0.gguf",       "tiny-tail-Q5_1.gguf",        "tiny-tail-Q8_0.gguf",
    "tiny-tail-F32.gguf",        "tiny-gemma-F32.gguf",        "tiny-gemma2-F32.gguf",
    "tiny-gemma3-F32.gguf",      "tiny-gpt2-F32.gguf",         "tiny-gptneox-F32.gguf",
    "tiny-gptneox-seq-F32.gguf", "tiny-granite-F32.gguf",      "tiny-llama-linear-F32.gguf",
    "tiny-llama-tied-F32.gguf",  "tiny-llama-yarn-F32.gguf",   "tiny-llama-ropefreqs-F32.gguf",
    "tiny-mistral3-F32.gguf",    "tiny-olmo2-F32.gguf",        "tiny-olmo2-window-F32.gguf",
    "tiny-phi3-F32.gguf",        "tiny-phi3-partial-F32.gguf", "tiny-qwen2-F32.gguf",
    "tiny-qwen3-F32.gguf",       "tiny-qwen3moe-F32.gguf",     "tiny-smollm3-F32.gguf",
    "tiny-starcoder2-F32.gguf",  "tiny-gpt-oss-F32.gguf",      "tiny-qwen3moe-few-F32.gguf",
    "tiny-mixtral-F32.gguf",     "tiny-gpt-oss-few-F32.gguf",  "tiny-llama-one-Q6_K.gguf",
    "tiny-llama-one-F16.gguf",   "tiny-llama-one-BF16.gguf",
};
enum { N_MODELS = sizeof models / sizeof *models };

/* The same rows by every instruction set here, 1 and 2 threads, chunks of 1, 7 and 512; expected is
 * what the scalar kernels give with one thread and all at once. */
static void check_ways(const char *path, const char *name, const int32_t *ids, size_t n,
                       uint32_t n_ctx) {
    static const int chunks[] = {1, 7, 512};
    struct run_options o = {
        .isa = CW_ISA_SCALAR, .n_threads = 1, .chunk = 512, .n_ctx = n_ctx, .exact = true};
    struct fixture f;
    fixture_open(&f, path, &o);
    ck_assert(cw_model_get_info(f.model)->exact);
    size_t n_vocab = (size_t)cw_model_get_info(f.model)->n_vocab;
    float *expected = all_rows(&f, ids, n, &o);
    fixture_close(&f);
    for (int isa = 0; isa < CW_N_ISAS; isa++) {
        if (!cw_isa_available((enum cw_isa)isa)) {
            continue;
        }
        for (int threads = 1; threads <= 2; threads++) {
            o.isa = (enum cw_isa)isa;
            o.n_threads = threads;
            fixture_open(&f, path, &o);
            for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
                o.chunk = chunks[c];
                if (isa == CW_ISA_SCALAR && (threads == 2) != (o.chunk == 7)) {
                    continue; /* slow, and every vector kernel goes all the ways below */
                }
                float *rows = all_rows(&f, ids, n, &o);
                for (size_t r = 0; r < n; r++) {
                    ck_assert_msg(same_bits(rows + r * n_vocab, expected + r * n_vocab, n_vocab),
                                  "%s: %s, %d threads, chunks of %d: row %zu differs", name,
                                  cw_isa_name(o.isa), threads, o.chunk, r);
                }
                free(rows);
            }
            fixture_close(&f);
        }
    }
    free(expected);
}

/* Only the last row wanted (the last layer then leaves the others out) against all rows, from an
 * empty cache (naive) and token by token (cached). */
static void check_last_rows(const char *path, const char *name, const int32_t *ids, size_t n) {
    struct run_options o = {
        .isa = CW_ISA_AUTO, .n_threads = 2, .chunk = 5, .n_ctx = 64, .exact = true};
    struct fixture f;
    fixture_open(&f, path, &o);
    size_t n_vocab = (size_t)cw_model_get_info(f.model)->n_vocab;
    float *expected = all_rows(&f, ids, n, &o);
    struct cw_session *cached = session_open(&f, &o);
    for (size_t p = 0; p < n; p++) {
        struct cw_session *naive = session_open(&f, &o);
        ck_assert_int_eq(cw_session_extend(naive, ids, p + 1, NULL, NULL), CW_OK);
        ck_assert_int_eq(cw_session_extend(cached, ids + p, 1, NULL, NULL), CW_OK);
        ck_assert_msg(same_bits(cw_session_logits(naive), expected + p * n_vocab, n_vocab),
                      "%s: row %zu evaluated anew differs", name, p);
        ck_assert_msg(same_bits(cw_session_logits(cached), expected + p * n_vocab, n_vocab),
                      "%s: row %zu with the cache differs", name, p);
        cw_session_destroy(naive);
    }
    cw_session_destroy(cached);
    free(expected);
    fixture_close(&f);
}

static bool is_float_model(const char *name) {
    return strstr(name, "-F32.") != NULL || strstr(name, "F16.") != NULL;
}

START_TEST(every_way_gives_the_same_bits) {
    char *path = model_path(models[_i]);
    int32_t ids[28];
    if (path == NULL) {
        return;
    }
    random_ids(ids, 28, 320, (uint64_t)_i);
    check_ways(path, models[_i], ids, 28, 64);
    check_last_rows(path, models[_i], ids, 24);
    free(path);
}
END_TEST

/* A Q8_0 copy of each F32 model: quantised activations meet every architecture. */
START_TEST(quantised_copies) {
    char *path = strstr(models[_i], "-F32.") != NULL ? model_path(models[_i]) : NULL;
    int32_t ids[28];
    if (path == NULL) {
        return;
    }
    const char *copy = tmp_path(models[_i]);
    mkgguf_quantise(path, copy);
    random_ids(ids, 28, 320, 100 + (uint64_t)_i);
    check_ways(copy, models[_i], ids, 28, 64);
    check_last_rows(copy, models[_i], ids, 24);
    /* And it is still the same model: near the reference's own logits. */
    size_t n_cases;
    struct logits_case *cases = read_cases(&n_cases);
    for (size_t i = 0; i < n_cases; i++) {
        const struct logits_case *c = &cases[i];
        if (strcmp(c->model, models[_i]) == 0) {
            struct run_options o = {
                .isa = CW_ISA_AUTO, .n_threads = 2, .n_ctx = c->n_ctx != 0 ? c->n_ctx : 64};
            struct fixture f;
            fixture_open(&f, copy, &o);
            ck_assert(!cw_model_get_info(f.model)->blas);
            struct cw_session *s = session_open(&f, &o);
            ck_assert_int_eq(cw_session_extend(s, c->ids, c->n_ids, NULL, NULL), CW_OK);
            double e = nmse(cw_session_logits(s), c->logits, c->n_logits);
            ck_assert_msg(e <= 1e-2, "%s as Q8_0: %g", c->name, e);
            cw_session_destroy(s);
            fixture_close(&f);
        }
        free(c->logits);
    }
    free(cases);
    free(path);
}
END_TEST

/* Past 256 cells, where attention goes on in a second chunk, and past a window by far. */
START_TEST(long_contexts) {
    static const char *const longer[] = {"tiny-llama-Q4_0.gguf", "tiny-gpt-oss-MXFP4.gguf",
                                         "tiny-tail-Q8_0.gguf", "tiny-gemma3-F32.gguf",
                                         "tiny-gemma2-F32.gguf"};
    char *path = model_path(longer[_i]);
    int32_t ids[600];
    if (path == NULL) {
        return;
    }
    random_ids(ids, 600, 320, 7);
    check_ways(path, longer[_i], ids, 530 + (size_t)_i * 13, 600);
    free(path);
}
END_TEST

/* Float files without `exact`: cached against naive, and against the exact kernels. */
START_TEST(float_files_without_exact) {
    char *path = is_float_model(models[_i]) ? model_path(models[_i]) : NULL;
    int32_t ids[40];
    if (path == NULL) {
        return;
    }
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 2, .chunk = 512, .n_ctx = 64};
    struct fixture f;
    random_ids(ids, 40, 320, 200 + (uint64_t)_i);
    fixture_open(&f, path, &o);
    size_t n_vocab = (size_t)cw_model_get_info(f.model)->n_vocab;
    float *naive = all_rows(&f, ids, 40, &o);
    o.chunk = 1;
    float *cached = all_rows(&f, ids, 40, &o);
    fixture_close(&f);
    o.exact = true;
    fixture_open(&f, path, &o);
    float *exact = all_rows(&f, ids, 40, &o);
    fixture_close(&f);
    for (size_t r = 0; r < 40; r++) {
        double a = nmse(cached + r * n_vocab, naive + r * n_vocab, n_vocab);
        double b = nmse(naive + r * n_vocab, exact + r * n_vocab, n_vocab);
        ck_assert_msg(a <= 1e-6, "%s: row %zu: cached against naive %g", models[_i], r, a);
        ck_assert_msg(b <= 1e-6, "%s: row %zu: against exact %g", models[_i], r, b);
    }
    free(naive);
    free(cached);
    free(exact);
    free(path);
}
END_TEST

/* The thread count of a float file with OpenBLAS does not matter either. */
START_TEST(float_files_threads) {
    char *path = model_path("tiny-llama-F32.gguf");
    int32_t ids[40];
    if (path == NULL) {
        return;
    }
    random_ids(ids, 40, 320, 3);
    float *rows[2];
    size_t n_vocab = 0;
    for (int i = 0; i < 2; i++) {
        struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1 + i, .n_ctx = 64};
        struct fixture f;
        fixture_open(&f, path, &o);
        n_vocab = (size_t)cw_model_get_info(f.model)->n_vocab;
        rows[i] = all_rows(&f, ids, 40, &o);
        fixture_close(&f);
    }
    ck_assert(same_bits(rows[0], rows[1], 40 * n_vocab));
    free(rows[0]);
    free(rows[1]);
    free(path);
}
END_TEST

/* The cache in Q8_0: the same bits by every way, and near the f16 cache. */
START_TEST(quantised_cache) {
    static const char *const fitting[] = {"tiny-llama-Q4_0.gguf", "tiny-qwen3-F32.gguf",
                                          "tiny-gemma3-F32.gguf"};
    char *path = model_path(fitting[_i]);
    int32_t ids[300];
    if (path == NULL) {
        return;
    }
    struct run_options o = {
        .isa = CW_ISA_SCALAR, .n_threads = 1, .chunk = 512, .n_ctx = 320, .exact = true};
    struct fixture f;
    random_ids(ids, 300, 320, 9);
    fixture_open(&f, path, &o);
    size_t n_vocab = (size_t)cw_model_get_info(f.model)->n_vocab;
    float *half = all_rows(&f, ids, 300, &o);
    o.kv = CW_KV_Q8_0;
    float *expected = all_rows(&f, ids, 300, &o);
    fixture_close(&f);
    double worst = 0.0;
    for (size_t r = 0; r < 300; r++) {
        double e = nmse(expected + r * n_vocab, half + r * n_vocab, n_vocab);
        worst = e > worst ? e : worst;
    }
    ck_assert_msg(worst > 0.0 && worst < 2e-2, "%s: %g", fitting[_i], worst);
    for (int isa = 0; isa < CW_N_ISAS; isa++) {
        if (cw_isa_available((enum cw_isa)isa)) {
            o.isa = (enum cw_isa)isa;
            o.n_threads = 2;
            o.chunk = 7;
            fixture_open(&f, path, &o);
            float *rows = all_rows(&f, ids, 300, &o);
            ck_assert_msg(same_bits(rows, expected, 300 * n_vocab), "%s: %s", fitting[_i],
                          cw_isa_name(o.isa));
            free(rows);
            fixture_close(&f);
        }
    }
    free(half);
    free(expected);
    free(path);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("exact");
    TCase *c = tcase_create("bits");
    tcase_set_timeout(c, 600);
    tcase_add_loop_test(c, every_way_gives_the_same_bits, 0, N_MODELS);
    tcase_add_loop_test(c, quantised_copies, 0, N_MODELS);
    tcase_add_loop_test(c, long_contexts, 0, 5);
    tcase_add_loop_test(c, float_files_without_exact, 0, N_MODELS);
    tcase_add_test(c, float_files_threads);
    tcase_add_loop_test(c, quantised_cache, 0, 3);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
