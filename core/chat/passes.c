/* SPDX-License-Identifier: MIT
 *
 * The passes over the whole vocabulary, which are what a draw costs. Each is plain C, compiled
 * twice: for any x86-64 and for AVX2. No fma, no libm, sums over fixed lanes: both give the same
 * bits, so the choice is one of speed alone.
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

/* The weights of 64 logits, on the grid; returns their sum, which is exact. */
BODY double weigh_block(const struct cw_sampler *s, const float *l, float *weight) {
    enum { LANES = 4 };
    double lane[LANES] = {0};
    float e[CW_SAMPLE_BLOCK];
    for (int i = 0; i < CW_SAMPLE_BLOCK; i++) {
        e[i] = cw_exp_weight((l[i] - s->best) / s->temp);
    }
    for (int i = 0; i < CW_SAMPLE_BLOCK; i += LANES) {
        for (int j = 0; j < LANES; j++) {
            double w = ((double)e[i + j] + s->magic) - s->magic;
            lane[j] += w;
            weight[i + j] = (float)w;
        }
    }
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

BODY double weigh(struct cw_sampler *s) {
    float tail[CW_SAMPLE_BLOCK], tail_weight[CW_SAMPLE_BLOCK];
    double total = 0;
    for (int32_t run = 0; run < s->n; run += CW_SAMPLE_RUN) {
        int32_t end = s->n - run < CW_SAMPLE_RUN ? s->n : run + CW_SAMPLE_RUN;
        double sum = 0;
        for (int32_t i = run; i < end; i += CW_SAMPLE_BLOCK) {
            if ((s->block_best[i / CW_SAMPLE_BLOCK] - s->best) / s->temp < s->nothing) {
                int32_t n = end - i < CW_SAMPLE_BLOCK ? end - i : CW_SAMPLE_BLOCK;
                memset(s->weight + i, 0, (size_t)n * sizeof *s->weight);
            } else if (end - i >= CW_SAMPLE_BLOCK) {
                sum += weigh_block(s, s->logits + i, s->weight + i);
            } else {
                pad_block(s->logits + i, end - i, tail);
                sum += weigh_block(s, tail, tail_weight);
                memcpy(s->weight + i, tail_weight, (size_t)(end - i) * sizeof *s->weight);
            }
        }
        total += sum;
    }
    return total;
}

/* ---- surprise ------------------------------------------------------------------------------ */

BODY void surprise_block(const float *l, float best, double *e_lane, double *xe_lane) {
    enum { LANES = 8 };
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
    enum { LANES = 8 };
    struct cw_surprise r = {0, 0};
    float tail[CW_SAMPLE_BLOCK];
    for (int32_t run = 0; run < n; run += CW_SAMPLE_RUN) {
        int32_t end = n - run < CW_SAMPLE_RUN ? n : run + CW_SAMPLE_RUN;
        double e[LANES] = {0}, xe[LANES] = {0};
        for (int32_t i = run; i < end; i += CW_SAMPLE_BLOCK) {
            const float *block = l + i;
            if (end - i < CW_SAMPLE_BLOCK) {
                pad_block(block, end - i, tail);
                block = tail;
            }
            surprise_block(block, best, e, xe);
        }
        for (int step = LANES / 2; step > 0; step /= 2) {
            for (int j = 0; j < step; j++) {
                e[j] += e[j + step];
                xe[j] += xe[j + step];
            }
        }
        r.e += e[0];
        r.xe += xe[0];
    }
    return r;
}

/* ---- the two versions ---------------------------------------------------------------------- */

static struct cw_scan scan_any(const float *l, int32_t n, float *block_best) {
    return scan(l, n, block_best);
}

static double weigh_any(struct cw_sampler *s) {
    return weigh(s);
}

static struct cw_surprise surprise_any(const float *l, int32_t n, float best) {
    return surprise(l, n, best);
}

const struct cw_passes cw_passes_any = {scan_any, weigh_any, surprise_any};

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))

AVX2 static struct cw_scan scan_avx2(const float *l, int32_t n, float *block_best) {
    return scan(l, n, block_best);
}

AVX2 static double weigh_avx2(struct cw_sampler *s) {
    return weigh(s);
}

AVX2 static struct cw_surprise surprise_avx2(const float *l, int32_t n, float best) {
    return surprise(l, n, best);
}

static const struct cw_passes passes_avx2 = {scan_avx2, weigh_avx2, surprise_avx2};

const struct cw_passes *cw_passes_best(void) {
    return __builtin_cpu_supports("avx2") ? &passes_avx2 : &cw_passes_any;
}
#else
const struct cw_passes *cw_passes_best(void) {
    return &cw_passes_any;
}
#endif
