/* SPDX-License-Identifier: MIT
 *
 * The sampler's state and its stages, shared by sampler.c (the order of things), adjust.c (what
 * changes logits) and select.c (what drops candidates). Private to core/chat.
 *
 * Everything rests on one fact. Weights, e^((logit - best) / T), lie on a grid of 2^-g, coarse
 * enough that the sum over the vocabulary fits f64's 53 bits: every sum of weights is exact, in
 * whatever order. So a cut found by histogram is the cut a full sort finds, to the last bit.
 */
#ifndef CW_SAMPLER_IMPL_H
#define CW_SAMPLER_IMPL_H

#include "chinwag/sampler.h"

enum {
    CW_SAMPLE_BLOCK = 64, /* ids a vector loop takes at once */
    CW_SAMPLE_RUN = 4096, /* ids a partial sum of the normaliser covers */
};

struct cw_scan {
    int32_t most, least; /* keys */
};
struct cw_surprise {
    double w, yw; /* sums of 2^y and of y 2^y, y = (logit - best) / ln 2 */
};

/* What the passes found in one run. */
struct cw_partial {
    struct cw_scan scan;
    uint64_t steps; /* the sum of the weights */
    struct cw_surprise surprise;
};

/* From a logit to its weight: 2^((logit - best) slope), on the grid. */
struct cw_scale {
    float best;    /* the largest logit */
    float slope;   /* 1 / (T ln 2) */
    float nothing; /* 2 to the power of this, or less, is rounded to 0 */
    double round;  /* a float's last bit near it is worth a step of the grid */
    double step;   /* of the grid */
};

struct cw_sampler {
    int32_t n_vocab;
    const struct cw_passes *passes;
    cw_sampler_run *run; /* NULL: in this thread */
    void *run_arg;

    /* The call's view of the scores. */
    int32_t n;           /* ids that may be drawn: [0, n) */
    const float *logits; /* [n], adjusted; the caller's own when nothing adjusts */
    struct cw_scale scale;
    float temp;   /* max(T, 1e-6) */
    double total; /* sum of the weights of all n */

    /* Candidates, ids ascending. While `open` they are the ids with a logit of at least `floor`,
     * and the rest of the vocabulary still belongs to the set without being listed. */
    size_t n_cand;
    double mass; /* sum of the weights of the listed ones */
    int depth;   /* how often the floor was lowered */
    bool open;

    float *adjusted;   /* [n_vocab] */
    float *block_best; /* [n_vocab / CW_SAMPLE_BLOCK, rounded up] largest logit of each block */
    int32_t *cand;     /* [n_vocab] ids */
    float *weight;     /* [n_vocab] of each candidate */
    uint32_t *key;     /* [n_vocab] rank of each candidate as an integer, larger is better */
    int32_t *work;     /* [n_vocab] */
    struct cw_partial *part; /* [n_vocab / CW_SAMPLE_RUN, rounded up] */
    int32_t *count;          /* [n_vocab] occurrences in the history; all 0 between calls */

    int32_t *breaker; /* [n_breakers] ascending ids that end a repetition */
    size_t n_breakers;
    int32_t *match; /* [match_cap] lengths of repetitions */
    size_t match_cap;
};

/* The functions below work on the bits of floats where a plain comparison would do: compilers make
 * vector code of that for every x86, which they refuse for comparisons of floats that might trap
 * and for branches. */

/* An integer that compares as the float does; zeros of both signs are one. */
static inline int32_t cw_sample_key(float x) {
    union {
        float f;
        int32_t i;
    } u = {.f = x + 0.0f};
    return u.i ^ ((u.i >> 31) & 0x7fffffff);
}

/* And back. */
static inline float cw_sample_float(int32_t key) {
    union {
        int32_t i;
        float f;
    } u = {.i = key ^ ((key >> 31) & 0x7fffffff)};
    return u.f;
}

/* max(y, -120) for y <= 0. */
static inline float cw_sample_clamp(float y) {
    union {
        float f;
        uint32_t u;
    } a = {.f = y}, least = {.f = -120.0f};
    a.u = a.u < least.u ? a.u : least.u; /* below 0 the larger integer is the lower float */
    return a.f;
}

/* 2^y for -120 <= y <= 0 in f32: products, sums and one rounding to an integer, so that every
 * compiler and vector width gives the same bits. Relative error below 2^-22. */
static inline float cw_exp2_weight(float y) {
    const float magic = 12582912.0f; /* 1.5 * 2^23: the sum's last bit is worth 1 */
    union {
        float f;
        uint32_t u;
    } t = {.f = y + magic}, result;
    float f = y - (t.f - magic); /* exact */
    /* Of all 1 + f (...) of this degree the one with the least relative error on |f| <= 1/2, found
     * by Lawson's iteration (1961). */
    float p = 0x1.5bba14p-10f;
    p = p * f + 0x1.3cea88p-7f;
    p = p * f + 0x1.c6b752p-5f;
    p = p * f + 0x1.ebf9bcp-3f;
    p = p * f + 0x1.62e42ap-1f;
    p = p * f + 1.0f;
    result.f = p;
    result.u += t.u << 23; /* the integer, to the exponent */
    return result.f;
}

/* y, where the weight is 2^y. */
static inline float cw_sample_power(const struct cw_scale *k, float logit) {
    return cw_sample_clamp((logit - k->best) * k->slope);
}

static inline uint64_t cw_sample_bits(double x) {
    union {
        double f;
        uint64_t u;
    } a = {.f = x};
    return a.u;
}

/* The weight of a logit, rounded to the grid, ties to even. A float holds it exactly. */
static inline float cw_sample_weight(const struct cw_scale *k, float logit) {
    return (float)(((double)cw_exp2_weight(cw_sample_power(k, logit)) + k->round) - k->round);
}

/* ---- adjust.c ------------------------------------------------------------------------------ */

/* True when `set` changes logits at all. */
bool cw_adjust_wanted(const struct cw_sampling *set);
/* Logit bias, penalties, DRY, in this order, on s->adjusted [n_vocab]. */
void cw_adjust(struct cw_sampler *s, const struct cw_sampling *set, const int32_t *history,
               size_t n_history);

/* ---- passes.c ------------------------------------------------------------------------------ */

/* A pass over one run: at most CW_SAMPLE_RUN ids, beginning at a multiple of it. */
struct cw_passes {
    /* Keys of l[0..n) and the largest logit of each block. */
    struct cw_scan (*scan)(const float *l, int32_t n, float *block_best);
    /* The sum of their weights in steps. */
    uint64_t (*weigh)(const float *l, int32_t n, const float *block_best, const struct cw_scale *k);
    struct cw_surprise (*surprise)(const float *l, int32_t n, float best);
    /* Not of a run: the weights of the ids cand[0..n). */
    void (*list)(const float *l, const int32_t *cand, size_t n, const struct cw_scale *k,
                 float *weight);
};
extern const struct cw_passes cw_passes_any, cw_passes_avx2, cw_passes_avx512;
const struct cw_passes *cw_passes_best(void); /* for this CPU */

/* The same over all n ids, by the sampler's runner; sums are of runs, in order. */
struct cw_scan cw_pass_scan(struct cw_sampler *s, const float *logits); /* and block_best */
/* The sum of the weights of s->logits by s->scale into *total, if it is not NULL, and, likewise,
 * the surprise of `logits`, whose largest is `best`; both while a run is in the nearest cache. */
void cw_pass_weigh(struct cw_sampler *s, double *total, const float *logits, float best,
                   struct cw_surprise *surprise);

/* ---- select.c ------------------------------------------------------------------------------ */

/* Set scale.best and block_best from s->logits. CW_ENUMERIC as cw_sampler_draw says. */
int cw_select_scan(struct cw_sampler *s, struct cw_err *err);
int32_t cw_select_best(const struct cw_sampler *s); /* the lowest id with the best logit */
/* Weights at temperature T > 0, their total; the set is the whole vocabulary afterwards. Where
 * `surprise` is not NULL it gets that of s->logits. */
void cw_select_weigh(struct cw_sampler *s, float temp, struct cw_surprise *surprise);
void cw_select_top_k(struct cw_sampler *s, int32_t k);
void cw_select_typical(struct cw_sampler *s, float p);
void cw_select_top_p(struct cw_sampler *s, float p);
void cw_select_min_p(struct cw_sampler *s, float p);
void cw_select_xtc(struct cw_sampler *s, float threshold);
/* The candidate that `u` in [0, 1) falls on, best first; *p is its share. */
int32_t cw_select_draw(struct cw_sampler *s, double u, float *p);
/* The share of `id` in what is left, 0 when it was dropped. */
float cw_select_share(const struct cw_sampler *s, int32_t id);

#endif
