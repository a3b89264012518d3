/* SPDX-License-Identifier: MIT
 *
 * cw_attend against the definition in double precision, and against itself: one query at a time,
 * any number of threads, any instruction set, the same bits.
 */
#include "checker.h"
#include "core/compute/compute.h"
#include "core/compute/maths.h"

#include "chinwag/session.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct shape {
    int n_heads, n_kv, head_k, head_v, kind;
    float softcap;
    uint32_t window;
    bool sinks;
};

/* A cache holding n_cells random cells, stale NaN after them, and a query for each. */
struct problem {
    struct shape s;
    struct cw_kv_layer kv;
    uint64_t kv_bytes;
    uint32_t *pages;
    struct cw_place *at; /* of every cell */
    int n_cells;
    float *k, *v, *q, *sinks;
};

static struct cw_compute *compute(enum cw_isa isa, int n_threads) {
    struct cw_compute *c;
    struct cw_compute_options opt = {.isa = isa, .n_threads = n_threads};
    struct cw_err err;
    ck_assert_msg(cw_compute_create(&c, &opt, &err) == CW_OK, "%s", err.text);
    return c;
}

static struct problem problem(struct shape s, int n_cells, uint64_t seed) {
    struct problem p = {.s = s, .n_cells = n_cells};
    struct rng r = {seed};
    size_t n = (size_t)n_cells;
    size_t nk = n * (size_t)(s.n_kv * s.head_k), nv = n * (size_t)(s.n_kv * s.head_v);
    size_t nq = n * (size_t)(s.n_heads * s.head_k);
    p.k = malloc(nk * 4);
    p.v = malloc(nv * 4);
    p.q = malloc(nq * 4);
    p.sinks = malloc((size_t)s.n_heads * 4);
    fill_values(RANDOM, p.k, nk, &r);
    fill_values(RANDOM, p.v, nv, &r);
    fill_values(RANDOM, p.q, nq, &r);
    fill_values(RANDOM, p.sinks, (size_t)s.n_heads, &r);
    uint32_t n_pages = (uint32_t)(n_cells + 255) / 256;
    size_t page = cw_kv_layer_bytes(256, s.n_kv, s.head_k, s.head_v, s.kind) + 64;
    p.kv = (struct cw_kv_layer){NULL, page, s.n_kv, s.head_k, s.head_v, s.kind};
    p.kv_bytes = n_pages * page;
    p.kv.base = malloc(p.kv_bytes);
    p.pages = malloc(n_pages * sizeof *p.pages);
    for (uint32_t i = 0; i < n_pages; i++) { /* not in the order of the cells */
        p.pages[i] = i % 2 == 0 ? n_pages - 1 - i / 2 : i / 2;
    }
    p.at = malloc(n * sizeof *p.at);
    for (uint32_t i = 0; i < n; i++) {
        p.at[i] = (struct cw_place){p.pages, i};
    }
    memset(p.kv.base, 0xff, p.kv_bytes);
    return p;
}

static void problem_free(struct problem *p) {
    free(p->k);
    free(p->v);
    free(p->q);
    free(p->sinks);
    free(p->kv.base);
    free(p->pages);
    free(p->at);
}

/* Cells and queries pos .. pos + n - 1. */
static void store(struct cw_compute *c, struct problem *p, int pos, int n) {
    size_t ldk = (size_t)(p->s.n_kv * p->s.head_k), ldv = (size_t)(p->s.n_kv * p->s.head_v);
    cw_kv_store(c, &p->kv, p->at + pos, n, p->k + (size_t)pos * ldk, ldk, p->v + (size_t)pos * ldv,
                ldv);
}

static void attend(struct cw_compute *c, struct problem *p, int pos, int n, float *y) {
    size_t ldq = (size_t)(p->s.n_heads * p->s.head_k);
    struct cw_attention a = {
        .kv = &p->kv,
        .q = p->q + (size_t)pos * ldq,
        .ldq = ldq,
        .y = y,
        .ldy = (size_t)(p->s.n_heads * p->s.head_v),
        .at = p->at + pos,
        .n = n,
        .n_heads = p->s.n_heads,
        .scale = 0.25f,
        .softcap = p->s.softcap,
        .window = p->s.window,
        .sinks = p->s.sinks ? p->sinks : NULL,
    };
    cw_attend(c, &a);
}

static double rounded(float x) { /* as the f16 cache holds it */
    return (double)cw_f16_to_f32(cw_f32_to_f16(x));
}

/* The definition, for the query at `pos` and head h. */
static void naive(const struct problem *p, int pos, int h, double *out) {
    const struct shape *s = &p->s;
    int g = h / (s->n_heads / s->n_kv);
    int lo = s->window > 0 && pos + 1 > (int)s->window ? pos + 1 - (int)s->window : 0;
    double *score = malloc((size_t)(pos + 1) * sizeof *score);
    double top = s->sinks ? (double)p->sinks[h] : -HUGE_VAL, sum = 0;
    for (int i = lo; i <= pos; i++) {
        double x = 0;
        for (int d = 0; d < s->head_k; d++) {
            x += (double)p->q[((size_t)pos * (size_t)s->n_heads + (size_t)h) * (size_t)s->head_k +
                              (size_t)d] *
                 rounded(p->k[((size_t)i * (size_t)s->n_kv + (size_t)g) * (size_t)s->head_k +
                              (size_t)d]);
        }
        x *= 0.25;
        if (s->softcap != 0.0f) {
            x = (double)s->softcap * tanh(x / (double)s->softcap);
        }
        score[i] = x;
        top = fmax(top, x);
    }
    if (s->sinks) {
        sum = exp((double)p->sinks[h] - top);
    }
    memset(out, 0, (size_t)s->head_v * sizeof *out);
    for (int i = lo; i <= pos; i++) {
        double w = exp(score[i] - top);
        sum += w;
        for (int d = 0; d < s->head_v; d++) {
            out[d] +=
                w * rounded(p->v[((size_t)i * (size_t)s->n_kv + (size_t)g) * (size_t)s->head_v +
                                 (size_t)d]);
        }
    }
    for (int d = 0; d < s->head_v; d++) {
        out[d] /= sum;
    }
    free(score);
}

static const struct shape shapes[] = {
    {4, 4, 64, 64, CW_KV_F16, 0, 0, false},     {9, 3, 64, 64, CW_KV_F16, 0, 0, false},
    {8, 1, 32, 48, CW_KV_F16, 0, 16, false},    {4, 2, 128, 128, CW_KV_F16, 5.0f, 300, false},
    {6, 2, 80, 80, CW_KV_F16, 0, 256, true},    {4, 2, 96, 96, CW_KV_F16, 3.0f, 1, true},
    {2, 1, 256, 256, CW_KV_F16, 0, 4096, true}, {71, 1, 64, 64, CW_KV_F16, 0, 0, true},
    {3, 1, 40, 24, CW_KV_F16, 0, 255, false},
};
static const int lengths[] = {1, 15, 16, 17, 255, 256, 257, 513, 4097};

START_TEST(is_the_definition) {
    struct shape s = shapes[_i];
    struct cw_compute *c = compute(CW_ISA_AUTO, 2);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        int n_cells = lengths[l];
        struct problem p = problem(s, n_cells, (uint64_t)_i * 100 + l + 1);
        store(c, &p, 0, n_cells);
        float *y = malloc((size_t)(s.n_heads * s.head_v) * 4);
        double *want = malloc((size_t)s.head_v * sizeof *want);
        attend(c, &p, n_cells - 1, 1, y);
        for (int h = 0; h < s.n_heads; h++) {
            naive(&p, n_cells - 1, h, want);
            for (int d = 0; d < s.head_v; d++) {
                double got = (double)y[h * s.head_v + d];
                ck_assert_msg(fabs(got - want[d]) <= 2e-5, "%d cells head %d [%d]: %.9g, not %.9g",
                              n_cells, h, d, got, want[d]);
            }
        }
        free(y);
        free(want);
        problem_free(&p);
    }
    cw_compute_destroy(c);
}
END_TEST

/* All queries at once, on several threads and instruction sets, equal one by one on one thread. */
START_TEST(batches_threads_and_kernels_agree) {
    struct shape s = shapes[_i / 2];
    s.kind = _i % 2 && s.head_k % 32 == 0 && s.head_v % 32 == 0 ? CW_KV_Q8_0 : CW_KV_F16;
    static const int threads[] = {1, 2, 3, 8};
    int n_cells = 300;
    size_t width = (size_t)(s.n_heads * s.head_v);
    struct problem p = problem(s, n_cells, (uint64_t)_i + 1);
    float *truth = malloc((size_t)n_cells * width * 4), *y = malloc((size_t)n_cells * width * 4);
    struct cw_compute *one = compute(CW_ISA_SCALAR, 1);
    for (int i = 0; i < n_cells; i++) { /* as decoding does it: store, then look */
        store(one, &p, i, 1);
        if (i % 7 == 0 || i > 250) {
            attend(one, &p, i, 1, truth + (size_t)i * width);
        }
    }
    cw_compute_destroy(one);
    for (int k = 0; kernels_at(k); k++) {
        struct cw_compute *c = compute((enum cw_isa)kernels_at(k)->isa, threads[k % 4]);
        memset(p.kv.base, 0xff, p.kv_bytes);
        for (int done = 0, step = 97; done < n_cells; done += step) { /* as prefill does it */
            int n = n_cells - done < step ? n_cells - done : step;
            store(c, &p, done, n);
            attend(c, &p, done, n, y + (size_t)done * width);
        }
        for (int i = 0; i < n_cells; i++) {
            if (i % 7 == 0 || i > 250) {
                ck_assert_msg(
                    first_difference(truth + (size_t)i * width, y + (size_t)i * width, width) == -1,
                    "%s, query %d", cw_isa_name(cw_compute_isa(c)), i);
            }
        }
        cw_compute_destroy(c);
    }
    free(truth);
    free(y);
    problem_free(&p);
}
END_TEST

/* Long contexts take the path that shares chunks out: the same bits as on one thread. */
START_TEST(long_contexts_agree) {
    static const int threads[] = {2, 3, 8};
    for (int kind = CW_KV_F16; kind <= CW_KV_Q8_0; kind++) {
        struct shape s = {6, 2, 64, 64, kind, 0, _i ? 2000 : 0, true};
        struct problem p = problem(s, 4100, 5);
        size_t width = (size_t)(s.n_heads * s.head_v);
        float *truth = malloc(4 * width * 4), *y = malloc(4 * width * 4);
        struct cw_compute *one = compute(CW_ISA_AUTO, 1);
        store(one, &p, 0, 4100);
        for (int n = 1; n <= 4; n++) {
            for (int i = 0; i < n; i++) {
                attend(one, &p, 4096 + i, 1, truth + (size_t)i * width);
            }
            for (int t = 0; t < 3; t++) {
                struct cw_compute *c = compute(CW_ISA_AUTO, threads[t]);
                attend(c, &p, 4096, n, y);
                ck_assert_int_eq(first_difference(truth, y, (size_t)n * width), -1);
                cw_compute_destroy(c);
            }
        }
        cw_compute_destroy(one);
        free(truth);
        free(y);
        problem_free(&p);
    }
}
END_TEST

START_TEST(eight_bit_cache_is_near) {
    struct shape s = {4, 2, 64, 64, CW_KV_F16, 0, 0, false};
    struct problem a = problem(s, 400, 9);
    s.kind = CW_KV_Q8_0;
    struct problem b = problem(s, 400, 9);
    struct cw_compute *c = compute(CW_ISA_AUTO, 2);
    float ya[256], yb[256];
    double error = 0, energy = 0;
    store(c, &a, 0, 400);
    store(c, &b, 0, 400);
    attend(c, &a, 399, 1, ya);
    attend(c, &b, 399, 1, yb);
    for (int i = 0; i < 256; i++) {
        error += ((double)ya[i] - (double)yb[i]) * ((double)ya[i] - (double)yb[i]);
        energy += (double)ya[i] * (double)ya[i];
    }
    ck_assert(error > 0 && error < 1e-3 * energy);
    cw_compute_destroy(c);
    problem_free(&a);
    problem_free(&b);
}
END_TEST

START_TEST(impossible_heads_have_no_size) {
    ck_assert_uint_eq(cw_kv_layer_bytes(256, 2, 64, 64, CW_KV_F16), 256 * 2 * 128 * 2);
    ck_assert_uint_eq(cw_kv_layer_bytes(256, 2, 40, 40, CW_KV_Q8_0), 0);
    ck_assert_uint_eq(cw_kv_layer_bytes(256, 2, 100000, 64, CW_KV_F16), 0);
    ck_assert_uint_eq(cw_kv_layer_bytes(256, 2, 0, 64, CW_KV_F16), 0);
}
END_TEST

int main(void) {
    Suite *s = suite_create("attention");
    TCase *t = tcase_create("attention");
    int n_shapes = (int)(sizeof shapes / sizeof *shapes);
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, is_the_definition, 0, n_shapes);
    tcase_add_loop_test(t, batches_threads_and_kernels_agree, 0, 2 * n_shapes);
    tcase_add_loop_test(t, long_contexts_agree, 0, 2);
    tcase_add_test(t, eight_bit_cache_is_near);
    tcase_add_test(t, impossible_heads_have_no_size);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
