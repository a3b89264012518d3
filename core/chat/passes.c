/* SPDX-License-Identifier: MIT
 *
 * The passes over the whole vocabulary, which are what a draw costs. Each takes one run of
 * CW_SAMPLE_RUN ids, a chunk for whoever runs it; what runs gave is put together in order. Each is
 * plain C, compiled three times: for any x86-64, for AVX2 and for AVX-512. No fma, no libm, sums
 * over fixed lanes: all give the same bits, so the choice is one of speed alone.
 */
#include <math.h>
#include <string.h>

#include "core/chat/sampler_impl.h"

#define BODY static inline __attribute__((always_inline))

/* ---- scan ---------------------------------------------------------------------------------- */

/* The largest and the smallest key of 64 logits. */
BODY void scan_block(const float *l, int32_t *most, int32_t *least) {
    int32_t hi = INT32_MIN, lo = INT32_MAX;
    for (int i = 0; i < CW_SAMPLE_BLOCK; i++) {
        int32_t k = cw_sample_key(l[i]);
        hi = k > hi ? k : hi;
        lo = k < lo ? k : lo;
    }
    *most = hi;
    *least = lo;
}

/* The last block: 64 logits of which `n` are real. */
BODY void pad_block(const float *l, int32_t n, float out[CW_SAMPLE_BLOCK]) {
    for (int i = 0; i < CW_SAMPLE_BLOCK; i++) {
        out[i] = i < n ? l[i] : -INFINITY;
    }
}

BODY struct cw_scan scan(const float *l, int32_t n, float *block_best) {
    struct cw_scan r = {cw_sample_key(-INFINITY), 0};
    float tail[CW_SAMPLE_BLOCK];
    for (int32_t i = 0; i < n; i += CW_SAMPLE_BLOCK) {
        const float *block = l + i;
        int32_t hi, lo;
        if (n - i < CW_SAMPLE_BLOCK) {
            pad_block(block, n - i, tail);
            block = tail;
        }
        scan_block(block, &hi, &lo);
        block_best[i / CW_SAMPLE_BLOCK] = cw_sample_float(hi);
        r.most = hi > r.most ? hi : r.most;
        r.least = lo < r.least ? lo : r.least;
    }
    return r;
}

/* ---- weigh --------------------------------------------------------------------------------- */

/* w >= 0 rounded to the grid, ties to even. Floats from s->coarse on lie on it; below, adding that
 * much makes the last bit worth one step. */
BODY float on_grid(float w, float coarse) {
    union {
        float f;
        int32_t i;
    } a = {.f = w}, c = {.f = coarse}, rounded = {.f = (w + coarse) - coarse};
    int32_t below = (a.i - c.i) >> 31;
    a.i = (rounded.i & below) | (a.i & ~below);
    return a.f;
}

enum { LANES = 8 }; /* partial sums in f64 */

/* The weights of 64 logits, on the grid. */
BODY void weigh_block(const struct cw_sampler *s, const float *l, float *weight) {
    const float best = s->best, temp = s->temp, coarse = s->coarse;
    float w[CW_SAMPLE_BLOCK];
    for (int i = 0; i < CW_SAMPLE_BLOCK; i++) {
        w[i] = on_grid(cw_exp_weight((l[i] - best) / temp), coarse);
    }
    memcpy(weight, w, sizeof w);
}

/* Lane 0 becomes the sum of all. */
BODY double fold(double *lane) {
    for (int step = LANES / 2; step > 0; step /= 2) {
        for (int j = 0; j < step; j++) {
            lane[j] += lane[j + step];
        }
    }
    return lane[0];
}

/* The sum of n weights. It is exact, so the order is one of speed. */
BODY double sum_of(const float *w, int32_t n) {
    double lane[LANES] = {0};
    int32_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            lane[j] += (double)w[i + j];
        }
    }
    for (; i < n; i++) {
        lane[0] += (double)w[i];
    }
    return fold(lane);
}

BODY double weigh(struct cw_sampler *s, int32_t first, int32_t end) {
    float tail[CW_SAMPLE_BLOCK], tail_weight[CW_SAMPLE_BLOCK];
    for (int32_t i = first; i < end; i += CW_SAMPLE_BLOCK) {
        if ((s->block_best[i / CW_SAMPLE_BLOCK] - s->best) / s->temp < s->nothing) {
            int32_t n = end - i < CW_SAMPLE_BLOCK ? end - i : CW_SAMPLE_BLOCK;
            memset(s->weight + i, 0, (size_t)n * sizeof *s->weight);
        } else if (end - i >= CW_SAMPLE_BLOCK) {
            weigh_block(s, s->logits + i, s->weight + i);
        } else {
            pad_block(s->logits + i, end - i, tail);
            weigh_block(s, tail, tail_weight);
            memcpy(s->weight + i, tail_weight, (size_t)(end - i) * sizeof *s->weight);
        }
    }
    return sum_of(s->weight + first, end - first);
}

/* ---- surprise ------------------------------------------------------------------------------ */

BODY void surprise_block(const float *l, float best, double *e_lane, double *xe_lane) {
    float x[CW_SAMPLE_BLOCK], e[CW_SAMPLE_BLOCK];
    for (int i = 0; i < CW_SAMPLE_BLOCK; i++) {
        x[i] = cw_sample_clamp(l[i] - best);
        e[i] = cw_exp_weight(x[i]);
    }
    for (int i = 0; i < CW_SAMPLE_BLOCK; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            e_lane[j] += (double)e[i + j];
            xe_lane[j] += (double)e[i + j] * (double)x[i + j];
        }
    }
}

BODY struct cw_surprise surprise(const float *l, int32_t n, float best) {
    float tail[CW_SAMPLE_BLOCK];
    double e[LANES] = {0}, xe[LANES] = {0};
    for (int32_t i = 0; i < n; i += CW_SAMPLE_BLOCK) {
        const float *block = l + i;
        if (n - i < CW_SAMPLE_BLOCK) {
            pad_block(block, n - i, tail);
            block = tail;
        }
        surprise_block(block, best, e, xe);
    }
    return (struct cw_surprise){fold(e), fold(xe)};
}

/* ---- the versions -------------------------------------------------------------------------- */

/* The three passes for one instruction set: NAME is the suffix, TARGET what the compiler may use.
 */
#define VERSION(NAME, TARGET)                                                                      \
    TARGET static struct cw_scan scan_##NAME(const float *l, int32_t n, float *block_best) {       \
        return scan(l, n, block_best);                                                             \
    } TARGET static double weigh_##NAME(struct cw_sampler *s, int32_t first, int32_t end) {        \
        return weigh(s, first, end);                                                               \
    }                                                                                              \
    TARGET static struct cw_surprise surprise_##NAME(const float *l, int32_t n, float best) {      \
        return surprise(l, n, best);                                                               \
    } const struct cw_passes cw_passes_##NAME = {scan_##NAME, weigh_##NAME, surprise_##NAME};

VERSION(any, )

#if defined(__x86_64__)
VERSION(avx2, __attribute__((target("avx2"))))
VERSION(avx512, __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))))

const struct cw_passes *cw_passes_best(void) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        return &cw_passes_avx512;
    }
    return __builtin_cpu_supports("avx2") ? &cw_passes_avx2 : &cw_passes_any;
}
#else
const struct cw_passes *cw_passes_best(void) {
    return &cw_passes_any;
}
#endif

/* ---- over the vocabulary ------------------------------------------------------------------- */

/* One pass under way. Chunks write only what is theirs. */
struct job {
    struct cw_sampler *s;
    const float *logits;
    float best;
    union cw_partial *part; /* [n_runs] */
};

static int32_t run_end(const struct cw_sampler *s, int32_t first) {
    return s->n - first < CW_SAMPLE_RUN ? s->n : first + CW_SAMPLE_RUN;
}

static void scan_run(void *arg, int chunk, int thread) {
    struct job *j = arg;
    int32_t first = chunk * CW_SAMPLE_RUN;
    (void)thread;
    j->part[chunk].scan = j->s->passes->scan(j->logits + first, run_end(j->s, first) - first,
                                             j->s->block_best + first / CW_SAMPLE_BLOCK);
}

static void weigh_run(void *arg, int chunk, int thread) {
    struct job *j = arg;
    int32_t first = chunk * CW_SAMPLE_RUN;
    (void)thread;
    j->part[chunk].sum = j->s->passes->weigh(j->s, first, run_end(j->s, first));
}

static void surprise_run(void *arg, int chunk, int thread) {
    struct job *j = arg;
    int32_t first = chunk * CW_SAMPLE_RUN;
    (void)thread;
    j->part[chunk].surprise =
        j->s->passes->surprise(j->logits + first, run_end(j->s, first) - first, j->best);
}

/* Returns the number of runs. */
static int run_all(struct job *j, void (*fn)(void *arg, int chunk, int thread)) {
    struct cw_sampler *s = j->s;
    int n_runs = (s->n + CW_SAMPLE_RUN - 1) / CW_SAMPLE_RUN;
    j->part = s->part;
    if (s->run != NULL) {
        s->run(s->run_arg, fn, j, n_runs);
        return n_runs;
    }
    for (int i = 0; i < n_runs; i++) {
        fn(j, i, 0);
    }
    return n_runs;
}

struct cw_scan cw_pass_scan(struct cw_sampler *s, const float *logits) {
    struct job j = {.s = s, .logits = logits};
    struct cw_scan r = {cw_sample_key(-INFINITY), 0};
    int n_runs = run_all(&j, scan_run);
    for (int i = 0; i < n_runs; i++) {
        const struct cw_scan *p = &s->part[i].scan;
        r.most = p->most > r.most ? p->most : r.most;
        r.least = p->least < r.least ? p->least : r.least;
    }
    return r;
}

double cw_pass_weigh(struct cw_sampler *s) {
    struct job j = {.s = s};
    double total = 0;
    int n_runs = run_all(&j, weigh_run);
    for (int i = 0; i < n_runs; i++) {
        total += s->part[i].sum;
    }
    return total;
}

struct cw_surprise cw_pass_surprise(struct cw_sampler *s, const float *logits, float best) {
    struct job j = {.s = s, .logits = logits, .best = best};
    struct cw_surprise r = {0, 0};
    int n_runs = run_all(&j, surprise_run);
    for (int i = 0; i < n_runs; i++) {
        r.e += s->part[i].surprise.e;
        r.xe += s->part[i].surprise.xe;
    }
    return r;
}
