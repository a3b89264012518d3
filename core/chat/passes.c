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

/* Logits that the scan, which is the first to touch them, fetches ahead. */
enum { AHEAD = 1024 };

BODY struct cw_scan scan(const float *l, int32_t n, float *block_best) {
    struct cw_scan r = {cw_sample_key(-INFINITY), 0};
    float tail[CW_SAMPLE_BLOCK];
    for (int32_t i = 0; i < n; i += CW_SAMPLE_BLOCK) {
        const float *block = l + i;
        int32_t hi, lo;
        for (int j = 0; j < CW_SAMPLE_BLOCK; j += 16) { /* a line; past the end it is harmless */
            __builtin_prefetch(block + AHEAD + j);
        }
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

/* Adding k->round leaves the steps in the low bits of the sum: these are added up, with those of
 * k->round itself, which `weigh` takes away. */
BODY uint64_t weigh_block(const float *l, const struct cw_scale *k) {
    const double round = k->round;
    float w[CW_SAMPLE_BLOCK];
    uint64_t sum = 0;
    for (int i = 0; i < CW_SAMPLE_BLOCK; i++) {
        w[i] = cw_exp2_weight(cw_sample_power(k, l[i]));
    }
    for (int i = 0; i < CW_SAMPLE_BLOCK; i++) {
        sum += cw_sample_bits((double)w[i] + round);
    }
    return sum;
}

BODY uint64_t weigh(const float *l, int32_t n, const float *block_best, const struct cw_scale *k) {
    float tail[CW_SAMPLE_BLOCK];
    uint64_t sum = 0, n_blocks = 0;
    for (int32_t i = 0; i < n; i += CW_SAMPLE_BLOCK) {
        const float *block = l + i;
        if ((block_best[i / CW_SAMPLE_BLOCK] - k->best) * k->slope < k->nothing) {
            continue;
        }
        if (n - i < CW_SAMPLE_BLOCK) {
            pad_block(block, n - i, tail);
            block = tail;
        }
        sum += weigh_block(block, k);
        n_blocks++;
    }
    return sum - n_blocks * CW_SAMPLE_BLOCK * cw_sample_bits(k->round);
}

BODY void list(const float *l, const int32_t *cand, size_t n, const struct cw_scale *scale,
               float *weight) {
    const struct cw_scale k = *scale;
    for (size_t i = 0; i < n; i++) {
        weight[i] = cw_sample_weight(&k, l[cand[i]]);
    }
}

/* ---- surprise ------------------------------------------------------------------------------ */

enum { QUARTER = CW_SAMPLE_BLOCK / 4 };

/* Four quarters become one: of ids this near f32 sums are good enough. */
BODY void add_quarters(const float *v, double lane[QUARTER]) {
    for (int j = 0; j < QUARTER; j++) {
        lane[j] += (double)((v[j] + v[j + QUARTER]) + (v[j + 2 * QUARTER] + v[j + 3 * QUARTER]));
    }
}

BODY void surprise_block(const float *l, float best, double *w_lane, double *yw_lane) {
    float w[CW_SAMPLE_BLOCK], yw[CW_SAMPLE_BLOCK];
    for (int i = 0; i < CW_SAMPLE_BLOCK; i++) {
        float y = cw_sample_clamp((l[i] - best) * 1.44269504f);
        w[i] = cw_exp2_weight(y);
        yw[i] = w[i] * y;
    }
    add_quarters(w, w_lane);
    add_quarters(yw, yw_lane);
}

/* Lane 0 becomes the sum of all. */
BODY double fold(double *lane) {
    for (int step = QUARTER / 2; step > 0; step /= 2) {
        for (int j = 0; j < step; j++) {
            lane[j] += lane[j + step];
        }
    }
    return lane[0];
}

BODY struct cw_surprise surprise(const float *l, int32_t n, float best) {
    float tail[CW_SAMPLE_BLOCK];
    double w[QUARTER] = {0}, yw[QUARTER] = {0};
    for (int32_t i = 0; i < n; i += CW_SAMPLE_BLOCK) {
        const float *block = l + i;
        if (n - i < CW_SAMPLE_BLOCK) {
            pad_block(block, n - i, tail);
            block = tail;
        }
        surprise_block(block, best, w, yw);
    }
    return (struct cw_surprise){fold(w), fold(yw)};
}

/* ---- the versions -------------------------------------------------------------------------- */

/* The passes for one instruction set: NAME is the suffix, TARGET what the compiler may use. */
#define VERSION(NAME, TARGET)                                                                      \
    TARGET static struct cw_scan scan_##NAME(const float *l, int32_t n, float *block_best) {       \
        return scan(l, n, block_best);                                                             \
    } TARGET static uint64_t weigh_##NAME(const float *l, int32_t n, const float *block_best,      \
                                          const struct cw_scale *k) {                              \
        return weigh(l, n, block_best, k);                                                         \
    }                                                                                              \
    TARGET static struct cw_surprise surprise_##NAME(const float *l, int32_t n, float best) {      \
        return surprise(l, n, best);                                                               \
    } TARGET static void list_##NAME(const float *l, const int32_t *cand, size_t n,                \
                                     const struct cw_scale *k, float *weight) {                    \
        list(l, cand, n, k, weight);                                                               \
    }                                                                                              \
    const struct cw_passes cw_passes_##NAME = {scan_##NAME, weigh_##NAME, surprise_##NAME,         \
                                               list_##NAME};

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

/* Passes under way. Chunks write only what is theirs. */
struct job {
    struct cw_sampler *s;
    const float *logits; /* NULL: no surprise */
    float best;
    bool weigh;
};

static int32_t run_end(const struct cw_sampler *s, int32_t first) {
    return s->n - first < CW_SAMPLE_RUN ? s->n : first + CW_SAMPLE_RUN;
}

static void scan_run(void *arg, int chunk, int thread) {
    struct job *j = arg;
    int32_t first = chunk * CW_SAMPLE_RUN;
    (void)thread;
    j->s->part[chunk].scan = j->s->passes->scan(j->logits + first, run_end(j->s, first) - first,
                                                j->s->block_best + first / CW_SAMPLE_BLOCK);
}

static void weigh_run(void *arg, int chunk, int thread) {
    struct job *j = arg;
    struct cw_sampler *s = j->s;
    int32_t first = chunk * CW_SAMPLE_RUN, n = run_end(s, first) - first;
    (void)thread;
    if (j->weigh) {
        s->part[chunk].steps = s->passes->weigh(s->logits + first, n,
                                                s->block_best + first / CW_SAMPLE_BLOCK, &s->scale);
    }
    if (j->logits != NULL) {
        s->part[chunk].surprise = s->passes->surprise(j->logits + first, n, j->best);
    }
}

/* Returns the number of runs. */
static int run_all(struct job *j, void (*fn)(void *arg, int chunk, int thread)) {
    struct cw_sampler *s = j->s;
    int n_runs = (s->n + CW_SAMPLE_RUN - 1) / CW_SAMPLE_RUN;
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

void cw_pass_weigh(struct cw_sampler *s, double *total, const float *logits, float best,
                   struct cw_surprise *surprise) {
    struct job j = {.s = s, .logits = surprise ? logits : NULL, .best = best, .weigh = total};
    int n_runs = run_all(&j, weigh_run);
    uint64_t steps = 0;
    for (int i = 0; total && i < n_runs; i++) {
        steps += s->part[i].steps;
    }
    if (total) {
        *total = (double)steps * s->scale.step;
    }
    if (surprise) {
        *surprise = (struct cw_surprise){0, 0};
        for (int i = 0; i < n_runs; i++) {
            surprise->w += s->part[i].surprise.w;
            surprise->yw += s->part[i].surprise.yw;
        }
    }
}
