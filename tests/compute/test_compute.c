/* SPDX-License-Identifier: MIT
 *
 * The compute object: products against double precision, and the same bits for a batch and its
 * tokens one by one, for any number of threads and any instruction set.
 */
#include "checker.h"
#include "core/compute/compute.h"
#include "core/compute/cpu.h"
#include "core/compute/measure.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct cw_compute *compute(enum cw_isa isa, int n_threads) {
    struct cw_compute *c;
    struct cw_compute_options opt = {.isa = isa, .n_threads = n_threads};
    struct cw_err err;
    ck_assert_msg(cw_compute_create(&c, &opt, &err) == CW_OK, "%s", err.text);
    return c;
}

/* In a file mapping, as weights are: packing drops the pages of the file. */
struct matrix {
    struct cw_weight w;
    uint8_t *data;
    size_t bytes;
    float *bias;
};

static struct matrix matrix(enum cw_type type, int rows, int cols, bool bias, struct rng *r) {
    const struct cw_type_info *info = cw_type_info(type);
    struct matrix m;
    size_t blocks = (size_t)rows * (size_t)(cols / info->block);
    size_t bytes = blocks * (size_t)info->block_bytes;
    int fd = memfd_create("matrix", MFD_CLOEXEC);
    ck_assert(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0);
    m.bytes = bytes;
    m.data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert(m.data != MAP_FAILED);
    close(fd);
    m.bias = malloc((size_t)rows * 4);
    fill_blocks(type, RANDOM, m.data, blocks, r);
    fill_values(RANDOM, m.bias, (size_t)rows, r);
    struct cw_tensor t = {
        .type = type, .n_dims = 2, .dims = {cols, rows, 1, 1}, .data = m.data, .bytes = bytes};
    cw_weight_init(&m.w, &t, 0, rows);
    m.w.bias = bias ? m.bias : NULL;
    return m;
}

static void matrix_free(struct matrix *m) {
    cw_weight_free(&m->w);
    munmap(m->data, m->bytes);
    free(m->bias);
}

static void set_act(struct cw_act *a, const float *x, int n, int width) {
    memcpy(a->x, x, (size_t)n * (size_t)width * 4);
    a->n = n;
    a->width = width;
    a->have = 1U << CW_ACT_F32;
}

START_TEST(products_are_near_double_precision) {
    enum cw_type type = all_types[_i];
    struct rng r = {(uint64_t)_i + 1};
    struct cw_compute *c = compute(CW_ISA_AUTO, 2);
    enum { ROWS = 50, COLS = 1280, N = 5 };
    struct matrix m = matrix(type, ROWS, COLS, true, &r);
    struct cw_act a;
    ck_assert_int_eq(cw_act_create(&a, N, COLS, NULL), CW_OK);
    float *x = malloc(N * COLS * 4), y[N][ROWS], row[COLS];
    fill_values(RANDOM, x, N * COLS, &r);
    set_act(&a, x, N, COLS);
    struct cw_product p = {&m.w, &a, y[0], ROWS};
    cw_matmul(c, &p, 1);
    double error = 0, energy = 0;
    for (int i = 0; i < ROWS; i++) {
        cw_weight_row(&m.w, i, row);
        for (int t = 0; t < N; t++) {
            double want = (double)m.bias[i];
            for (int k = 0; k < COLS; k++) {
                want += (double)row[k] * (double)x[t * COLS + k];
            }
            error += ((double)y[t][i] - want) * ((double)y[t][i] - want);
            energy += want * want;
        }
    }
    double bound = cw_type_info(type)->act == CW_ACT_F32 ? 1e-12 : 5e-4;
    ck_assert_msg(error <= bound * energy, "%s: NMSE %g", cw_type_info(type)->name, error / energy);
    free(x);
    cw_act_free(&a);
    matrix_free(&m);
    cw_compute_destroy(c);
}
END_TEST

/* Three matrices of one phase, seventeen tokens at once, against one token at a time on one thread
 * with scalar kernels. */
START_TEST(batches_threads_and_kernels_agree) {
    static const int threads[] = {1, 2, 3, 8};
    enum cw_type type = all_types[_i];
    struct rng r = {(uint64_t)_i + 50};
    enum { COLS = 1536, N = 17, ROWS = 70 + 33 + 200 };
    struct matrix m[3] = {matrix(type, 70, COLS, false, &r), matrix(type, 33, COLS, true, &r),
                          matrix(CW_Q8_0, 200, COLS, false, &r)};
    float *x = malloc(N * COLS * 4), *truth = malloc(N * ROWS * 4), *y = malloc(N * ROWS * 4);
    fill_values(RANDOM, x, N * COLS, &r);
    struct cw_act a;
    ck_assert_int_eq(cw_act_create(&a, N, COLS, NULL), CW_OK);
    struct cw_compute *one = compute(CW_ISA_SCALAR, 1);
    for (int t = 0; t < N; t++) {
        set_act(&a, x + t * COLS, 1, COLS);
        float *out = truth + t * ROWS;
        struct cw_product p[3] = {{&m[0].w, &a, out, ROWS},
                                  {&m[1].w, &a, out + 70, ROWS},
                                  {&m[2].w, &a, out + 103, ROWS}};
        cw_matmul(one, p, 3);
    }
    cw_compute_destroy(one);
    for (int k = 0; kernels_at(k); k++) {
        struct cw_compute *c = compute((enum cw_isa)kernels_at(k)->isa, threads[(k + _i) % 4]);
        for (int i = 0; i < 3; i++) {
            cw_weight_pack(c, &m[i].w);
        }
        for (int n = N; n > 0; n--) { /* long enough for packed copies to be made and used */
            set_act(&a, x, n, COLS);
            struct cw_product p[3] = {
                {&m[0].w, &a, y, ROWS}, {&m[1].w, &a, y + 70, ROWS}, {&m[2].w, &a, y + 103, ROWS}};
            cw_matmul(c, p, 3);
            ck_assert_msg(first_difference(truth, y, (size_t)n * ROWS) == -1, "%s %s n %d",
                          cw_isa_name(cw_compute_isa(c)), cw_type_info(type)->name, n);
        }
        for (int i = 0; i < 3; i++) {
            cw_weight_free(&m[i].w);
        }
        cw_compute_destroy(c);
    }
    free(x);
    free(y);
    free(truth);
    cw_act_free(&a);
    for (int i = 0; i < 3; i++) {
        matrix_free(&m[i]);
    }
}
END_TEST

/* Norm, gate and quantising in one phase equal the steps one by one, for batches large enough to be
 * shared out. */
START_TEST(fused_phases_agree) {
    enum { WIDTH = 1024, N = 203 };
    unsigned kinds = 1U << CW_ACT_Q32 | 1U << CW_ACT_Q256;
    struct rng r = {4};
    float *x = malloc(N * WIDTH * 4), *u = malloc(N * WIDTH * 4), w[WIDTH];
    fill_values(RANDOM, x, N * WIDTH, &r);
    fill_values(RANDOM, u, N * WIDTH, &r);
    fill_values(RANDOM, w, WIDTH, &r);
    struct cw_act all, single;
    ck_assert_int_eq(cw_act_create(&all, N, WIDTH, NULL), CW_OK);
    ck_assert_int_eq(cw_act_create(&single, 1, WIDTH, NULL), CW_OK);
    struct cw_compute *many = compute(CW_ISA_AUTO, 3), *one = compute(CW_ISA_SCALAR, 1);
    struct matrix m[2] = {matrix(CW_Q4_1, 16, WIDTH, false, &r),
                          matrix(CW_Q4_K, 16, WIDTH, false, &r)};
    float *y = malloc(N * 32 * 4), y1[32];
    for (int which = 0; which < 6; which++) {
        for (int t = -1; t < N; t++) {
            struct cw_compute *c = t < 0 ? many : one;
            struct cw_act *a = t < 0 ? &all : &single;
            int n = t < 0 ? N : 1;
            const float *from = x + (t < 0 ? 0 : t * WIDTH), *up = u + (t < 0 ? 0 : t * WIDTH);
            if (which < 2) {
                cw_norm_act(c, which ? CW_NORM_LAYER : CW_NORM_RMS, from, w, which ? u : NULL,
                            1e-5f, n, WIDTH, kinds, a);
            } else if (which < 5) {
                cw_glu_act(c, (enum cw_glu)(which - 2), from, WIDTH, up, WIDTH, n, WIDTH, kinds, a);
            } else {
                cw_gelu_act(c, from, n, WIDTH, kinds, a);
            }
            float *out = t < 0 ? y : y1;
            struct cw_product p[2] = {{&m[0].w, a, out, 32}, {&m[1].w, a, out + 16, 32}};
            cw_matmul(c, p, 2);
            if (t >= 0) {
                ck_assert_int_eq(first_difference(all.x + t * WIDTH, single.x, WIDTH), -1);
                ck_assert_int_eq(first_difference(y + t * 32, y1, 32), -1);
            }
        }
    }
    cw_compute_destroy(many);
    cw_compute_destroy(one);
    cw_act_free(&all);
    cw_act_free(&single);
    matrix_free(&m[0]);
    matrix_free(&m[1]);
    free(x);
    free(u);
    free(y);
}
END_TEST

/* OpenBLAS takes float matrices with many tokens, on fixed tiles: near ours, and the same bits for
 * any number of threads. Few tokens and quantised matrices stay with our kernels. */
START_TEST(openblas_is_near_and_does_not_see_threads) {
    struct cw_compute_options opt = {.isa = CW_ISA_AUTO, .n_threads = 1, .blas = true};
    struct cw_compute *blas[2], *ours = compute(CW_ISA_AUTO, 2);
    const char *why = "";
    ck_assert(!cw_compute_blas(ours, &why) && why == NULL);
    ck_assert_int_eq(cw_compute_create(&blas[0], &opt, NULL), CW_OK);
    opt.n_threads = 3;
    ck_assert_int_eq(cw_compute_create(&blas[1], &opt, NULL), CW_OK);
    if (!cw_compute_blas(blas[0], &why)) {
        ck_assert_ptr_nonnull(why);
        printf("skipped: %s\n", why);
    } else {
        static const enum cw_type types[] = {CW_F32, CW_F16, CW_BF16, CW_Q8_0};
        enum { ROWS = 150, COLS = 2112, N = 300 };
        struct rng r = {12};
        struct cw_act a;
        ck_assert_int_eq(cw_act_create(&a, N, COLS, NULL), CW_OK);
        float *x = malloc(N * COLS * 4), *y[3];
        fill_values(RANDOM, x, N * COLS, &r);
        for (int i = 0; i < 3; i++) {
            y[i] = malloc(N * ROWS * 4);
        }
        for (int t = 0; t < 4; t++) {
            struct matrix m = matrix(types[t], ROWS, COLS, true, &r);
            for (int n = N; n > 0; n -= N - 5) {
                double error = 0, energy = 0;
                for (int i = 0; i < 3; i++) {
                    set_act(&a, x, n, COLS);
                    struct cw_product p = {&m.w, &a, y[i], ROWS};
                    cw_matmul(i < 2 ? blas[i] : ours, &p, 1);
                }
                ck_assert_int_eq(first_difference(y[0], y[1], (size_t)n * ROWS), -1);
                for (int i = 0; i < n * ROWS; i++) {
                    double d = (double)y[0][i] - (double)y[2][i];
                    error += d * d;
                    energy += (double)y[2][i] * (double)y[2][i];
                }
                ck_assert(error <= 1e-11 * energy);
                ck_assert((error > 0) == (n == N && types[t] != CW_Q8_0)); /* who did it */
            }
            matrix_free(&m);
        }
        for (int i = 0; i < 3; i++) {
            free(y[i]);
        }
        free(x);
        cw_act_free(&a);
    }
    cw_compute_destroy(blas[0]);
    cw_compute_destroy(blas[1]);
    cw_compute_destroy(ours);
}
END_TEST

START_TEST(plain_functions_agree_across_threads) {
    enum { N = 300000 };
    float *x = malloc(N * 4), *y = malloc(N * 4), *z[2] = {malloc(N * 4), malloc(N * 4)};
    struct rng r = {8};
    fill_values(RANDOM, x, N, &r);
    fill_values(RANDOM, y, N, &r);
    for (int i = 0; i < 2; i++) {
        struct cw_compute *c = compute(i ? CW_ISA_AUTO : CW_ISA_SCALAR, i ? 3 : 1);
        memcpy(z[i], x, N * 4);
        cw_add_scaled(c, z[i], y, 0.3f, N);
        cw_scale(c, z[i], 1.1f, N);
        cw_softcap(c, z[i], 2.0f, N);
        cw_rope(c, z[i], 1000, 300, 10, 100, 100, true, x, y);
        cw_rope(c, z[i], 1000, 300, 10, 100, 64, false, x, y);
        cw_norm_rows(c, CW_NORM_RMS, z[i], y, NULL, 1e-6f, 3000, 100, z[i]);
        cw_compute_destroy(c);
    }
    ck_assert_int_eq(first_difference(z[0], z[1], N), -1);
    ck_assert(memcmp(z[0], x, N * 4) != 0);
    free(x);
    free(y);
    free(z[0]);
    free(z[1]);
}
END_TEST

START_TEST(rows_of_a_slice) {
    struct rng r = {3};
    uint8_t data[6 * 20];
    float y[32];
    fill_blocks(CW_Q4_1, RANDOM, data, 6, &r);
    struct cw_tensor t = {.type = CW_Q4_1, .n_dims = 3, .dims = {32, 2, 3, 1}, .data = data};
    struct cw_weight w;
    cw_weight_init(&w, &t, 2, 2); /* the second expert */
    cw_weight_row(&w, 1, y);
    ck_assert_double_eq_tol((double)y[5], weight_at(CW_Q4_1, data + 3 * 20, 5), 1e-6);
    ck_assert_int_eq(w.cols, 32);
    ck_assert_uint_eq(w.row_bytes, 20);
}
END_TEST

START_TEST(options_are_checked) {
    struct cw_compute *c;
    struct cw_err err;
    struct cw_compute_options opt = {.n_threads = -3, .isa = CW_ISA_AUTO};
    ck_assert_int_eq(cw_compute_create(&c, &opt, &err), CW_EINVAL);
    ck_assert_ptr_null(c);
    for (int i = 0; i < CW_N_ISAS; i++) {
        opt = (struct cw_compute_options){.n_threads = 1, .isa = (enum cw_isa)i};
        int code = cw_compute_create(&c, &opt, &err);
        ck_assert_int_eq(code, cw_isa_available((enum cw_isa)i) ? CW_OK : CW_EUNSUP);
        if (code == CW_OK) {
            ck_assert_int_eq((int)cw_compute_isa(c), i);
            ck_assert_int_eq(cw_compute_n_threads(c), 1);
        }
        cw_compute_destroy(c);
    }
    enum cw_isa isa;
    ck_assert(cw_isa_parse("avx2", &isa) && isa == CW_ISA_AVX2);
    ck_assert(cw_isa_parse("auto", &isa) && isa == CW_ISA_AUTO);
    ck_assert(!cw_isa_parse("sse", &isa));
    ck_assert_str_eq(cw_isa_name(CW_ISA_AVXVNNI), "avxvnni");
    ck_assert(cw_isa_available(CW_ISA_SCALAR));
}
END_TEST

START_TEST(measures_are_numbers) {
    struct cw_compute *c = compute(CW_ISA_AUTO, 2);
    ck_assert(cw_measure_read(c, (size_t)3 << 20) > 0);
    ck_assert(cw_measure_int8(c) > 0);
    ck_assert(cw_measure_sgemm(c) >= 0); /* 0 without OpenBLAS */
    for (int packed = 0; packed < 2; packed++) {
        struct cw_product_speed s = cw_measure_product(c, CW_Q4_K, 64, 512, 3, packed);
        ck_assert(s.macs > 0 && s.bytes > 0 && s.macs < 1e15);
    }
    for (int i = 0; kernels_at(i); i++) { /* the sum really reads everything, to odd ends */
        uint8_t bytes[1003] = {0};
        bytes[1000] = 5;
        bytes[4] = 7;
        uint32_t sum = kernels_at(i)->read_sum(bytes, sizeof bytes);
        ck_assert_uint_eq(sum, 12);
        ck_assert_uint_gt(kernels_at(i)->int8_loop(10), 0);
    }
    cw_compute_destroy(c);
}
END_TEST

START_TEST(quotas_are_read) {
    ck_assert_int_eq(cw_cpu_parse_quota("max 100000\n"), 0);
    ck_assert_int_eq(cw_cpu_parse_quota("150000 100000\n"), 1);
    ck_assert_int_eq(cw_cpu_parse_quota("400000 100000"), 4);
    ck_assert_int_eq(cw_cpu_parse_quota("50000 100000"), 1);
    ck_assert_int_eq(cw_cpu_parse_quota("-1 100000"), 0);
    ck_assert_int_eq(cw_cpu_parse_quota("nonsense"), 0);
    ck_assert_int_eq(cw_cpu_parse_quota("100000"), 0);
    ck_assert_int_eq(cw_cpu_parse_quota("100000 0"), 0);
    ck_assert_int_ge(cw_cpu_n_threads(), 1);
}
END_TEST

int main(void) {
    Suite *s = suite_create("compute");
    TCase *t = tcase_create("compute");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, products_are_near_double_precision, 0, n_all_types);
    tcase_add_loop_test(t, batches_threads_and_kernels_agree, 0, n_all_types);
    tcase_add_test(t, fused_phases_agree);
    tcase_add_test(t, openblas_is_near_and_does_not_see_threads);
    tcase_add_test(t, plain_functions_agree_across_threads);
    tcase_add_test(t, rows_of_a_slice);
    tcase_add_test(t, options_are_checked);
    tcase_add_test(t, measures_are_numbers);
    tcase_add_test(t, quotas_are_read);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
