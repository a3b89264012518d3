/* SPDX-License-Identifier: MIT
 *
 * Every instruction set against the scalar kernels, bit by bit, for every type and function; block
 * formats against their definition; and the comparison itself against kernels that are wrong.
 */
#include "checker.h"
#include "core/compute/compute_impl.h"
#include "core/compute/maths.h"
#include "core/compute/quant.h"

#include "chinwag/session.h"

#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- block formats --------------------------------------------------------------------------- */

START_TEST(dequantised_blocks_say_what_the_format_says) {
    enum cw_type type = all_types[_i];
    const struct cw_type_info *info = cw_type_info(type);
    struct rng r = {77};
    for (int trial = 0; trial < 200; trial++) {
        uint8_t block[256];
        float y[256];
        fill_blocks(type, (enum pattern)(trial % N_PATTERNS), block, 1, &r);
        cw_dequantise(type, block, info->block, y);
        for (int i = 0; i < info->block; i++) {
            double want = weight_at(type, block, i), got = (double)y[i];
            /* Two roundings to 24 bits, of terms no larger than the block's largest. */
            double scale = fabs(want) + 0.1 * 64;
            ck_assert_msg(fabs(got - want) <= ldexp(scale, -22), "%s[%d]: %.9g, not %.9g",
                          info->name, i, got, want);
        }
    }
}
END_TEST

START_TEST(float_rows_widen_exactly) {
    static const enum cw_type types[] = {CW_F32, CW_F16, CW_BF16};
    struct rng r = {31};
    for (int i = 0; kernels_at(i); i++) {
        for (int n = 1; n < 50; n++) {
            enum cw_type type = types[n % 3];
            size_t size = type == CW_F32 ? 4 : 2;
            struct guarded w = guarded_alloc((size_t)n * size), y = guarded_alloc((size_t)n * 4);
            fill_blocks(type, RANDOM, w.data, (size_t)n, &r);
            kernels_at(i)->widen(type, w.data, n, y.data);
            for (int k = 0; k < n; k++) {
                ck_assert_double_eq((double)((float *)y.data)[k],
                                    weight_at(type, (uint8_t *)w.data + (size_t)k * size, k));
            }
            guarded_free(&w);
            guarded_free(&y);
        }
    }
}
END_TEST

START_TEST(mxfp4_scales_of_any_exponent) {
    for (int e = 0; e < 256; e++) {
        ck_assert_double_eq((double)cw_e8m0_half((uint8_t)e), ldexp(1.0, e - 128));
    }
}
END_TEST

/* ---- products -------------------------------------------------------------------------------- */

START_TEST(products_equal_scalar_in_every_bit) {
    enum cw_type type = all_types[_i];
    const struct cw_type_info *info = cw_type_info(type);
    struct rng r = {(uint64_t)_i + 1};
    for (int i = 1; kernels_at(i); i++) {
        for (int trial = 0; trial < 60; trial++) {
            int max_blocks = info->block == 1 ? 200 : info->block == 32 ? 70 : 9;
            int blocks = trial < 20 ? 1 + trial % 3 : rng_int(&r, 1, max_blocks);
            struct product_case c = {
                .type = type,
                .pattern = (enum pattern)(trial % N_PATTERNS),
                .rows = trial < 20   ? 1 + trial
                        : trial < 55 ? rng_int(&r, 1, 40)
                                     : rng_int(&r, 60, 140),
                .cols = blocks * info->block,
                .n = trial < 55 ? 1 + trial % 17 : 31 + trial % 9,
                .misalign = trial % 5,
                .bias = trial % 2,
                .seed = (uint64_t)trial,
            };
            char why[256];
            ck_assert_msg(same_product(kernels_at(0), kernels_at(i), c, why), "%s", why);
        }
    }
}
END_TEST

/* Kernels that are wrong on purpose: one bit of one result, a write too far, a read too far. */
static const struct cw_kernels *honest;

static void one_bit_off(const struct cw_product_job *j) {
    honest->product[CW_Q4_1](j);
    uint32_t u;
    memcpy(&u, j->y, 4);
    u ^= 1;
    memcpy(j->y, &u, 4);
}

static void one_row_more(const struct cw_product_job *j) {
    honest->product[CW_Q4_1](j);
    j->y[j->rows] = 0.0f;
}

static volatile uint8_t sink;

static void one_byte_more(const struct cw_product_job *j) {
    honest->product[CW_Q4_1](j);
    sink = j->w[(size_t)j->rows * j->row_bytes];
}

static bool passes(cw_product_fn *fn) {
    struct cw_kernels k = *kernels_at(0);
    honest = kernels_at(0);
    k.product[CW_Q4_1] = fn;
    struct product_case c = {CW_Q4_1, RANDOM, 5, 64, 3, 0, false, 1};
    char why[256];
    return same_product(kernels_at(0), &k, c, why);
}

START_TEST(checker_catches_wrong_kernels) {
    ck_assert(passes(kernels_at(0)->product[CW_Q4_1]));
    ck_assert(!passes(one_bit_off));
    ck_assert(!passes(one_row_more));
}
END_TEST

START_TEST(checker_catches_reads_past_the_end) {
    signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler would exit instead */
    passes(one_byte_more);
}
END_TEST

/* ---- quantising ------------------------------------------------------------------------------ */

/* Values that have gone wrong somewhere before: zeros of both signs, denormals, ties, extremes. */
static float odd_value(struct rng *r) {
    static const float odd[] = {0.0f, -0.0f,  1e-40f, -1e-40f, 1e-30f, 3e38f,   -3e38f, 0.5f,
                                1.5f, 127.0f, 88.7f,  -104.0f, 0.625f, -0.625f, 1e-4f,  20.0f};
    return rng_next(r) % 4 ? 3.0f * rng_float(r) : odd[rng_next(r) % (sizeof odd / sizeof *odd)];
}

static void fill_odd(float *x, int n, int trial, struct rng *r) {
    for (int i = 0; i < n; i++) {
        x[i] = trial % 3 == 0 ? odd_value(r) : trial % 3 == 1 ? rng_float(r) : 0.0f;
    }
    if (trial % 7 == 5) {
        x[rng_int(r, 0, n - 1)] = trial % 2 ? INFINITY : NAN;
    }
    if (trial % 7 == 6) { /* ties: the largest is 127, so codes are the values */
        for (int i = 0; i < n; i++) {
            x[i] = (float)rng_int(r, -126, 126) + 0.5f;
        }
        x[n - 1] = 127.0f;
    }
}

START_TEST(quantisers_equal_scalar) {
    const struct cw_kernels *truth = kernels_at(0);
    struct rng r = {5};
    for (int i = 1; kernels_at(i); i++) {
        for (int trial = 0; trial < 200; trial++) {
            int t = 1 + trial % 8, width = 256 * rng_int(&r, 1, 3);
            size_t n = (size_t)width * (size_t)t;
            int8_t *q[2] = {calloc(n, 1), calloc(n, 1)};
            float *d[2] = {calloc(n / 32, 4), calloc(n / 32, 4)};
            float *s[2] = {calloc(n / 32, 4), calloc(n / 32, 4)};
            int16_t *s16[2] = {calloc(n / 16, 2), calloc(n / 16, 2)};
            int32_t *centre[2] = {calloc(n / 8, 4), calloc(n / 8, 4)};
            struct guarded x = guarded_alloc((size_t)width * 4);
            fill_odd(x.data, width, trial, &r);
            for (int k = 0; k < 2; k++) {
                const struct cw_kernels *kernels = k ? kernels_at(i) : truth;
                if (trial % 2) {
                    kernels->quantise_32(x.data, width, t, q[k], d[k], s[k]);
                } else {
                    kernels->quantise_256(x.data, width, t, q[k], d[k], s16[k], centre[k]);
                }
            }
            ck_assert_mem_eq(q[0], q[1], n);
            ck_assert_int_eq(first_difference(d[0], d[1], n / 32), -1);
            ck_assert_mem_eq(s[0], s[1], n / 32 * 4);
            ck_assert_mem_eq(s16[0], s16[1], n / 16 * 2);
            ck_assert_mem_eq(centre[0], centre[1], n / 8 * 4);
            guarded_free(&x);
            for (int k = 0; k < 2; k++) {
                free(q[k]);
                free(d[k]);
                free(s[k]);
                free(s16[k]);
                free(centre[k]);
            }
        }
    }
}
END_TEST

START_TEST(quantised_activations_are_near_and_never_hide_a_nan) {
    const struct cw_kernels *k = kernels_at(0);
    struct rng r = {6};
    float x[256], d[8], sum[8];
    int8_t q[256];
    for (int i = 0; i < 256; i++) {
        x[i] = 5.0f * rng_float(&r);
    }
    k->quantise_32(x, 256, 1, q, d, sum);
    for (int i = 0; i < 256; i++) {
        ck_assert(fabsf(x[i] - d[i / 32] * (float)q[i]) <= 0.5001f * d[i / 32]);
    }
    x[40] = NAN;
    k->quantise_32(x, 256, 1, q, d, sum);
    ck_assert(isnan(d[1]) && !isnan(d[0]));
    for (int i = 0; i < 32; i++) {
        x[i] = 1e-38f;
    }
    k->quantise_32(x, 256, 1, q, d, sum);
    ck_assert(d[0] == 0.0f && q[3] == 0);
}
END_TEST

/* ---- element-wise ---------------------------------------------------------------------------- */

enum { MAX_WIDTH = 131 };

/* Function `which` of a table over n values; a and b are inputs, y starts as a copy of a. */
static void apply(const struct cw_kernels *k, int which, const float *a, const float *b,
                  const float *c, int n, float *y) {
    switch (which) {
    case 0:
        k->norm_rms(a, b, 1e-5f, n, y);
        break;
    case 1:
        k->norm_layer(a, b, c, 1e-5f, n, y);
        break;
    case 2:
        k->norm_layer(a, b, NULL, 1e-6f, n, y);
        break;
    case 3:
    case 4:
    case 5:
        k->glu[which - 3](a, b, n, y);
        break;
    case 6:
        k->gelu(a, n, y);
        break;
    case 7:
        k->add_scaled(y, b, 0.37f, (size_t)n);
        break;
    case 8:
        k->scale(y, 1.7f, (size_t)n);
        break;
    case 9:
        k->softcap(y, 30.0f, (size_t)n);
        break;
    case 10:
    case 11:
        k->rope(y, n & ~1, which == 10, b, c);
        break;
    default:
        ck_abort();
    }
}

START_TEST(element_wise_equals_scalar) {
    struct rng r = {(uint64_t)_i + 9};
    for (int i = 1; kernels_at(i); i++) {
        for (int n = 1; n <= MAX_WIDTH; n++) {
            size_t bytes = (size_t)n * 4;
            struct guarded a = guarded_alloc(bytes), b = guarded_alloc(bytes);
            struct guarded c = guarded_alloc(bytes);
            struct guarded y[2] = {guarded_alloc(bytes), guarded_alloc(bytes)};
            fill_odd(a.data, n, _i < 3 || n % 2 ? 1 : 0, &r); /* norms of 3e38 are only infinite */
            fill_odd(b.data, n, n % 2, &r);
            fill_odd(c.data, n, 1, &r);
            for (int k = 0; k < 2; k++) {
                memcpy(y[k].data, a.data, bytes);
                apply(kernels_at(k ? i : 0), _i, a.data, b.data, c.data, n, y[k].data);
            }
            long at = first_difference(y[0].data, y[1].data, (size_t)n);
            ck_assert_msg(at < 0, "function %d width %d: [%ld] %a and %a", _i, n, at,
                          (double)((float *)y[0].data)[at], (double)((float *)y[1].data)[at]);
            guarded_free(&a);
            guarded_free(&b);
            guarded_free(&c);
            guarded_free(&y[0]);
            guarded_free(&y[1]);
        }
    }
}
END_TEST

START_TEST(element_wise_is_right) {
    struct rng r = {11};
    enum { N = 100 };
    float a[N], b[N], c[N], y[N];
    double mean = 0, square = 0, variance = 0;
    for (int i = 0; i < N; i++) {
        a[i] = 3.0f * rng_float(&r);
        b[i] = rng_float(&r);
        c[i] = rng_float(&r);
        mean += (double)a[i] / N;
        square += (double)a[i] * (double)a[i] / N;
    }
    for (int i = 0; i < N; i++) {
        variance += ((double)a[i] - mean) * ((double)a[i] - mean) / N;
    }
    for (int which = 0; which <= 9; which++) {
        memcpy(y, a, sizeof y);
        apply(kernels_at(0), which, a, b, c, N, y);
        for (int i = 0; i < N; i++) {
            double x = (double)a[i], u = (double)b[i], g = fmin(x, 7.0), want;
            double gelu = 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
            switch (which) {
            case 0:
                want = x / sqrt(square + 1e-5) * u;
                break;
            case 1:
                want = (x - mean) / sqrt(variance + 1e-5) * u + (double)c[i];
                break;
            case 2:
                want = (x - mean) / sqrt(variance + 1e-6) * u;
                break;
            case 3:
                want = x / (1 + exp(-x)) * u;
                break;
            case 4:
                want = gelu * u;
                break;
            case 5:
                want = g / (1 + exp(-1.702 * g)) * (u + 1);
                break;
            case 6:
                want = gelu;
                break;
            case 7:
                want = x + (double)0.37f * u;
                break;
            case 8:
                want = x * (double)1.7f;
                break;
            default:
                want = 30 * tanh(x / 30);
                break;
            }
            ck_assert_msg(fabs((double)y[i] - want) <= 2e-6 * (fabs(want) + 0.1),
                          "function %d: %.9g, not %.9g", which, (double)y[i], want);
        }
    }
    for (int neox = 0; neox < 2; neox++) {
        memcpy(y, a, sizeof y);
        kernels_at(0)->rope(y, 40, neox, b, c); /* the other dimensions stay */
        for (int i = 0; i < 20; i++) {
            int p = neox ? i : 2 * i, q = neox ? i + 20 : 2 * i + 1;
            double x0 = (double)a[p], x1 = (double)a[q], co = (double)b[i], si = (double)c[i];
            ck_assert_double_eq_tol((double)y[p], x0 * co - x1 * si, 1e-6);
            ck_assert_double_eq_tol((double)y[q], x0 * si + x1 * co, 1e-6);
        }
        ck_assert_mem_eq(y + 40, a + 40, 60 * sizeof *y);
    }
}
END_TEST

/* ---- cache and attention --------------------------------------------------------------------- */

static size_t region(int kind, int head) {
    return (size_t)CW_CHUNK / 16 * (size_t)head * (kind == CW_KV_Q8_0 ? 17 : 32);
}

START_TEST(cache_and_attention_equal_scalar) {
    static const int heads[] = {16, 32, 40, 64, 80, 96, 128, 256, 1, 33};
    struct rng r = {(uint64_t)_i + 3};
    int head_k = heads[_i], head_v = heads[(_i * 7 + 3) % 10];
    for (int kind = CW_KV_F16; kind <= CW_KV_Q8_0; kind++) {
        if (kind == CW_KV_Q8_0 && (head_k % 32 || head_v % 32)) {
            head_v = head_k;
            if (head_k % 32) {
                continue;
            }
        }
        for (int trial = 0; trial < 24; trial++) {
            int n_rows = trial < 12 ? 1 + trial : rng_int(&r, 1, CW_ATTEND_ROWS);
            int first = rng_int(&r, 0, 200), n = rng_int(&r, 1, CW_CHUNK - first);
            size_t rows = (size_t)n_rows;
            float *kv = malloc((size_t)n * (size_t)(head_k + head_v) * 4), *v = kv + n * head_k;
            float *queries = malloc(rows * (size_t)head_k * 4);
            const float *q[CW_ATTEND_ROWS];
            int lo[CW_ATTEND_ROWS], hi[CW_ATTEND_ROWS];
            fill_values(RANDOM, kv, (size_t)n * (size_t)(head_k + head_v), &r);
            fill_values(RANDOM, queries, rows * (size_t)head_k, &r);
            for (int i = 0; i < n_rows; i++) {
                q[i] = queries + i * head_k;
                lo[i] = trial % 3 ? first : rng_int(&r, first, first + n - 1);
                hi[i] = trial % 2 ? first + n : rng_int(&r, lo[i] + 1, first + n);
            }
            float *truth = NULL;
            uint8_t *cache = NULL;
            for (int i = 0; kernels_at(i); i++) {
                const struct cw_kernels *k = kernels_at(i);
                size_t kb = region(kind, head_k), vb = region(kind, head_v);
                struct guarded gk = guarded_alloc(kb), gv = guarded_alloc(vb);
                memset(gk.data, 0xff, kb); /* stale cells are NaN */
                memset(gv.data, 0xff, vb);
                k->store_k(gk.data, kind, head_k, (uint32_t)first, n, kv, (size_t)head_k);
                k->store_v(gv.data, kind, head_v, (uint32_t)first, n, v, (size_t)head_v);
                size_t n_out = rows * (size_t)(head_v + 2);
                float *out = malloc(n_out * 4);
                float *scratch = malloc(cw_attend_scratch(head_k, head_v) * 4);
                struct cw_attend_job j = {
                    .k = gk.data,
                    .v = gv.data,
                    .kind = kind,
                    .head_k = head_k,
                    .head_v = head_v,
                    .n_rows = n_rows,
                    .q = q,
                    .lo = lo,
                    .hi = hi,
                    .scale = 0.3f,
                    .softcap = trial % 4 == 1 ? 2.0f : 0.0f,
                    .m = out,
                    .l = out + rows,
                    .o = out + 2 * rows,
                    .scratch = scratch,
                };
                k->attend(&j);
                if (i == 0) {
                    truth = out;
                    cache = malloc(kb + vb);
                    memcpy(cache, gk.data, kb);
                    memcpy(cache + kb, gv.data, vb);
                    for (size_t x = 0; x < n_out; x++) {
                        ck_assert(isfinite(out[x]));
                    }
                } else {
                    ck_assert_mem_eq(cache, gk.data, kb);
                    ck_assert_mem_eq(cache + kb, gv.data, vb);
                    long at = first_difference(truth, out, n_out);
                    ck_assert_msg(at < 0, "%s kind %d heads %d %d rows %d cells %d+%d: [%ld] %a %a",
                                  cw_isa_name((enum cw_isa)k->isa), kind, head_k, head_v, n_rows,
                                  first, n, at, (double)truth[at], (double)out[at]);
                    /* and the merge of this chunk into another one */
                    float big[2][2] = {{0.7f, 3.0f}, {0.7f, 3.0f}}, o[2][256];
                    memcpy(o[0], truth + 2 * rows, (size_t)head_v * 4);
                    memcpy(o[1], truth + 2 * rows, (size_t)head_v * 4);
                    for (int s = 0; s < 2; s++) {
                        (s ? k : kernels_at(0))
                            ->merge(&big[s][0], &big[s][1], o[s], truth[n_rows - 1],
                                    truth[2 * n_rows - 1], truth + 2 * rows, head_v);
                    }
                    ck_assert_mem_eq(big[0], big[1], sizeof big[0]);
                    ck_assert_int_eq(first_difference(o[0], o[1], (size_t)head_v), -1);
                    free(out);
                }
                free(scratch);
                guarded_free(&gk);
                guarded_free(&gv);
            }
            free(truth);
            free(cache);
            free(kv);
            free(queries);
        }
    }
}
END_TEST

int main(void) {
    for (int isa = CW_ISA_AVX2; isa < CW_N_ISAS; isa++) {
        if (!cw_isa_available((enum cw_isa)isa)) {
            printf("skipped: this CPU has no %s\n", cw_isa_name((enum cw_isa)isa));
        }
    }
    Suite *s = suite_create("kernels");
    TCase *t = tcase_create("kernels");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, dequantised_blocks_say_what_the_format_says, 0, n_all_types);
    tcase_add_test(t, float_rows_widen_exactly);
    tcase_add_test(t, mxfp4_scales_of_any_exponent);
    tcase_add_loop_test(t, products_equal_scalar_in_every_bit, 0, n_all_types);
    tcase_add_test(t, checker_catches_wrong_kernels);
    tcase_add_test_raise_signal(t, checker_catches_reads_past_the_end, SIGSEGV);
    tcase_add_test(t, quantisers_equal_scalar);
    tcase_add_test(t, quantised_activations_are_near_and_never_hide_a_nan);
    tcase_add_loop_test(t, element_wise_equals_scalar, 0, 12);
    tcase_add_test(t, element_wise_is_right);
    tcase_add_loop_test(t, cache_and_attention_equal_scalar, 0, 10);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
