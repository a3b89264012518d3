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
    double e, xe; /* sums of e^x and of x e^x, x = logit - best */
};

/* What a pass found in one run. */
union cw_partial {
    struct cw_scan scan;
    double sum;
    struct cw_surprise surprise;
};

struct cw_sampler {
    int32_t n_vocab;
    const struct cw_passes *passes;
    cw_sampler_run *run; /* NULL: in this thread */
    void *run_arg;
    float coarse;  /* floats from here on lie on the grid: 2^23 of its steps */
    float nothing; /* e to the power of this, or less, is rounded to 0 */

    /* The call's view of the scores. */
    int32_t n;           /* ids that may be drawn: [0, n) */
    const float *logits; /* [n], adjusted; the caller's own when nothing adjusts */
    float best;          /* the largest of them */
    float temp;          /* max(T, 1e-6) */
    double total;        /* sum of the weights of all n */

    /* Candidates, ids ascending. While `open` they are the ids with a logit of at least `floor`,
     * and the rest of the vocabulary still belongs to the set without being listed. */
    size_t n_cand;
    double mass; /* sum of the weights of the listed ones */
    int depth;   /* how often the floor was lowered */
    bool open;

    float *adjusted;   /* [n_vocab] */
    float *weight;     /* [n_vocab] */
    float *block_best; /* [n_vocab / CW_SAMPLE_BLOCK, rounded up] largest logit of each block */
    int32_t *cand;     /* [n_vocab] ids */
    uint32_t *key;     /* [n_vocab] rank of each candidate as an integer, larger is better */
    int32_t *work;     /* [n_vocab] */
    union cw_partial *part; /* [n_vocab / CW_SAMPLE_RUN, rounded up] */
    int32_t *count;         /* [n_vocab] occurrences in the history; all 0 between calls */

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

/* For x <= 0: all bits set where x > -40, else none. */
static inline int32_t cw_sample_above(float x) {
    union {
        float f;
        int32_t i;
    } a = {.f = x};
    return ((a.i & 0x7fffffff) - 0x42200000) >> 31; /* |x| < 40 */
}

/* max(x, -40) for x <= 0. */
static inline float cw_sample_clamp(float x) {
    union {
        float f;
        int32_t i;
    } a = {.f = x}, least = {.f = -40.0f};
    int32_t above = cw_sample_above(x);
    a.i = (a.i & above) | (least.i & ~above);
    return a.f;
}

/* e^x for x <= 0 in f32: products, sums and one rounding to an integer, so that every compiler and
 * vector width gives the same bits. Relative error below 2^-22; 0 from -40 down, where it would be
 * less than half a step of any grid. */
static inline float cw_exp_weight(float x) {
    const float magic = 12582912.0f; /* 1.5 * 2^23: the sum's last bit is worth 1 */
    union {
        float f;
        int32_t i;
        uint32_t u;
    } t, scale, result;
    int32_t above = cw_sample_above(x); /* what comes out for other x is masked, whatever it is */
    t.f = x * 1.44269504f + magic;
    float n = t.f - magic;
    /* ln 2 in two parts; the first has 11 bits, so that n times it is exact. */
    float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    /* Taylor's series to r^7; |r| <= ln(2)/2. */
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    scale.u = ((uint32_t)t.i - 0x4b400000u + 127u) << 23;
    result.f = p * scale.f;
    result.i &= above;
    return result.f;
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
    /* s->weight from s->logits, ids [first, end); returns their sum. */
    double (*weigh)(struct cw_sampler *s, int32_t first, int32_t end);
    struct cw_surprise (*surprise)(const float *l, int32_t n, float best);
};
extern const struct cw_passes cw_passes_any, cw_passes_avx2, cw_passes_avx512;
const struct cw_passes *cw_passes_best(void); /* for this CPU */

/* The same over all n ids, by the sampler's runner; sums are of runs, in order. */
struct cw_scan cw_pass_scan(struct cw_sampler *s, const float *logits); /* and block_best */
double cw_pass_weigh(struct cw_sampler *s);
struct cw_surprise cw_pass_surprise(struct cw_sampler *s, const float *logits, float best);

/* ---- select.c ------------------------------------------------------------------------------ */

/* Set n, best and block_best from s->logits. CW_ENUMERIC as cw_sampler_draw says. */
int cw_select_scan(struct cw_sampler *s, struct cw_err *err);
int32_t cw_select_best(const struct cw_sampler *s); /* the lowest id with the best logit */
/* Weights at temperature T > 0, their total; the set is the whole vocabulary afterwards. */
void cw_select_weigh(struct cw_sampler *s, float temp);
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
