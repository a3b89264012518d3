/* SPDX-License-Identifier: MIT
 *
 * From logits to a token: the settings, the order of the stages, and what is told about a draw.
 * The stages themselves are in adjust.c and select.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/chat/sampler_impl.h"
#include "core/compute/maths.h"

void cw_sampling_default(struct cw_sampling *s) {
    *s = (struct cw_sampling){
        .temp = 0.8f,
        .top_p = 0.95f,
        .typical_p = 1,
        .penalty_repeat = 1,
        .penalty_last_n = 64,
        .dry_base = 1.75f,
        .dry_allowed_length = 2,
        .dry_last_n = -1,
        .xtc_threshold = 0.1f,
    };
}

/* One setting and where it may lie; NaN lies nowhere. */
static int check(const char *name, double value, double min, double max, struct cw_err *err) {
    if (value >= min && value <= max) {
        return CW_OK;
    }
    return cw_fail(err, CW_EINVAL, "%s is %g, but must lie between %g and %g", name, value, min,
                   max);
}

int cw_sampling_check(const struct cw_sampling *s, struct cw_err *err) {
    const double any = INT32_MAX;
    const struct {
        const char *name;
        double value, min, max;
    } rows[] = {
        {"temp", (double)s->temp, 0, 5},
        {"top_p", (double)s->top_p, 0, 1},
        {"top_k", s->top_k, 0, any},
        {"min_p", (double)s->min_p, 0, 1},
        {"typical_p", (double)s->typical_p, 0, 1},
        {"penalty_repeat", (double)s->penalty_repeat, 0.01, 100},
        {"penalty_frequency", (double)s->penalty_frequency, -100, 100},
        {"penalty_presence", (double)s->penalty_presence, -100, 100},
        {"penalty_last_n", s->penalty_last_n, -1, any},
        {"dry_multiplier", (double)s->dry_multiplier, 0, 100},
        {"dry_base", (double)s->dry_base, 1, 100},
        {"dry_allowed_length", s->dry_allowed_length, 1, any},
        {"dry_last_n", s->dry_last_n, -1, any},
        {"xtc_probability", (double)s->xtc_probability, 0, 1},
        {"xtc_threshold", (double)s->xtc_threshold, 0, 1},
        {"number of logit biases", s->n_bias, 0, CW_MAX_BIAS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int rc = check(rows[i].name, rows[i].value, rows[i].min, rows[i].max, err);
        if (rc != CW_OK) {
            return rc;
        }
    }
    for (int32_t i = 0; i < s->n_bias; i++) {
        float bias = s->bias[i].bias;
        if (bias == -INFINITY) {
            continue;
        }
        int rc = check("logit bias", (double)bias, -1e6, 1e6, err);
        if (rc != CW_OK) {
            return rc;
        }
    }
    return CW_OK;
}

struct cw_sampler *cw_sampler_create(int32_t n_vocab) {
    struct cw_sampler *s = cw_calloc(1, sizeof *s);
    size_t n = n_vocab > 0 ? (size_t)n_vocab : 0;
    s->n_vocab = (int32_t)n;
    /* The grid's step is 2^-g, so that n weights of at most 1 add up to at most 2^53 steps. */
    int g = 44;
    while (g > 0 && n > (size_t)1 << (53 - g)) {
        g--;
    }
    s->scale.step = 1.0 / (double)((uint64_t)1 << g);
    s->scale.round = 0x1p52 * s->scale.step;
    s->scale.nothing = (float)-(g + 2); /* a quarter of a step: well below the half that counts */
    s->passes = cw_passes_best();
    s->adjusted = cw_reallocarray(NULL, n, sizeof *s->adjusted);
    s->weight = cw_reallocarray(NULL, n, sizeof *s->weight);
    s->block_best = cw_reallocarray(NULL, n / CW_SAMPLE_BLOCK + 1, sizeof *s->block_best);
    s->part = cw_reallocarray(NULL, n / CW_SAMPLE_RUN + 1, sizeof *s->part);
    s->cand = cw_reallocarray(NULL, n, sizeof *s->cand);
    s->key = cw_reallocarray(NULL, n, sizeof *s->key);
    s->work = cw_reallocarray(NULL, n, sizeof *s->work);
    s->count = cw_calloc(n, sizeof *s->count);
    return s;
}

void cw_sampler_destroy(struct cw_sampler *s) {
    if (s == NULL) {
        return;
    }
    free(s->adjusted);
    free(s->weight);
    free(s->block_best);
    free(s->part);
    free(s->cand);
    free(s->key);
    free(s->work);
    free(s->count);
    free(s->breaker);
    free(s->match);
    free(s);
}

void cw_sampler_set_runner(struct cw_sampler *s, cw_sampler_run *run, void *arg) {
    s->run = run;
    s->run_arg = arg;
}

static int by_id(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

void cw_sampler_set_breakers(struct cw_sampler *s, const int32_t *ids, size_t n) {
    s->breaker = cw_reallocarray(s->breaker, n, sizeof *s->breaker);
    s->n_breakers = n;
    if (n > 0) {
        memcpy(s->breaker, ids, n * sizeof *ids);
        qsort(s->breaker, n, sizeof *ids, by_id);
    }
}

/* How many of the raw logits rank before that of `id`; s->block_best is of these. */
static int32_t rank_of(const struct cw_sampler *s, const float *logits, int32_t id) {
    int32_t before = 0;
    float l = logits[id];
    for (int32_t i = 0; i < s->n; i++) {
        if (i % CW_SAMPLE_BLOCK == 0 && s->block_best[i / CW_SAMPLE_BLOCK] < l) {
            i += CW_SAMPLE_BLOCK - 1;
            continue;
        }
        before += logits[i] > l || (i < id && logits[i] == l);
    }
    return before;
}

/* Put (id, l) into the list of the best so far, which ranks by logit; ids come ascending. */
static void consider(struct cw_draw *out, float *best, int32_t id, float l) {
    int at = out->n_alternatives;
    if (at == CW_N_ALTERNATIVES) {
        if (!(l > best[at - 1])) {
            return;
        }
        at--;
    } else {
        out->n_alternatives++;
    }
    for (; at > 0 && l > best[at - 1]; at--) {
        best[at] = best[at - 1];
        out->alternatives[at] = out->alternatives[at - 1];
    }
    best[at] = l;
    out->alternatives[at].id = id;
}

/* The plain softmax of the raw logits at T 1: entropy, alternatives and the drawn token's share.
 * s->block_best is of these. */
static void describe(const struct cw_sampler *s, const float *logits, const struct cw_surprise *sum,
                     struct cw_draw *out) {
    float best[CW_N_ALTERNATIVES] = {0};
    for (int32_t i = 0; i < s->n; i++) {
        if (i % CW_SAMPLE_BLOCK == 0 && out->n_alternatives == CW_N_ALTERNATIVES &&
            s->block_best[i / CW_SAMPLE_BLOCK] <= best[CW_N_ALTERNATIVES - 1]) {
            i += CW_SAMPLE_BLOCK - 1;
            continue;
        }
        if (logits[i] > -INFINITY) {
            consider(out, best, i, logits[i]);
        }
    }
    /* Ids that are banned weigh 2^-120 each: adding 1 rounds that away. */
    double entropy = 1 + (cw_log(sum->w) - sum->yw / sum->w * 0.69314718055994531);
    out->entropy = (float)(entropy - 1);
    out->p_raw = (float)(cw_exp((double)logits[out->id] - (double)best[0]) / sum->w);
    for (int k = 0; k < out->n_alternatives; k++) {
        out->alternatives[k].p_raw = (float)(cw_exp((double)best[k] - (double)best[0]) / sum->w);
    }
}

static double unit(uint64_t r) {
    return (double)(r >> 11) * 0x1p-53; /* [0, 1) */
}

int cw_sampler_draw(struct cw_sampler *s, const struct cw_sampling *set, const float *logits,
                    int32_t n_usable, const int32_t *history, size_t n_history, uint32_t seed,
                    uint64_t position, bool detail, struct cw_draw *out, struct cw_err *err) {
    memset(out, 0, sizeof *out);
    int rc = cw_sampling_check(set, err);
    if (rc != CW_OK) {
        return rc;
    }
    s->n = n_usable < s->n_vocab ? n_usable : s->n_vocab;
    if (s->n <= 0) {
        return cw_fail(err, CW_ENUMERIC, "there is no token to choose from");
    }
    s->logits = logits;
    if (cw_adjust_wanted(set)) {
        memcpy(s->adjusted, logits, (size_t)s->n_vocab * sizeof *logits);
        cw_adjust(s, set, history, n_history);
        s->logits = s->adjusted;
    }
    rc = cw_select_scan(s, err);
    if (rc != CW_OK) {
        return rc;
    }
    bool greedy = set->temp == 0, raw = s->logits == logits;
    struct cw_surprise sum;
    if (greedy) {
        out->id = cw_select_best(s);
        out->p = 1;
    } else {
        cw_select_weigh(s, set->temp, detail && raw ? &sum : NULL);
        cw_select_top_k(s, set->top_k);
        cw_select_typical(s, set->typical_p);
        cw_select_top_p(s, set->top_p);
        cw_select_min_p(s, set->min_p);
        if (set->xtc_probability > 0 &&
            unit(cw_random(seed, position, CW_STAGE_XTC)) < (double)set->xtc_probability) {
            cw_select_xtc(s, set->xtc_threshold);
        }
        out->id = cw_select_draw(s, unit(cw_random(seed, position, CW_STAGE_DRAW)), &out->p);
    }
    float best = s->scale.best;
    if (!raw) {
        best = cw_sample_float(cw_pass_scan(s, logits).most);
    }
    out->rank = rank_of(s, logits, out->id);
    if (detail) {
        if (greedy || !raw) {
            cw_pass_weigh(s, NULL, logits, best, &sum);
        }
        describe(s, logits, &sum, out);
        for (int k = 0; k < out->n_alternatives; k++) {
            int32_t id = out->alternatives[k].id;
            out->alternatives[k].p = greedy ? id == out->id : cw_select_share(s, id);
        }
    }
    return CW_OK;
}

int cw_sampler_put(struct cw_sampler *s, int32_t id, const float *logits, int32_t n_usable,
                   bool detail, struct cw_draw *out, struct cw_err *err) {
    memset(out, 0, sizeof *out);
    s->n = n_usable < s->n_vocab ? n_usable : s->n_vocab;
    if (id < 0 || id >= s->n) {
        return cw_fail(err, CW_EINVAL, "token %d cannot stand in a reply", id);
    }
    s->logits = logits;
    int rc = cw_select_scan(s, err);
    if (rc != CW_OK) {
        return rc;
    }
    out->id = id;
    out->p = 1;
    out->rank = rank_of(s, logits, id);
    if (detail) {
        struct cw_surprise sum;
        cw_pass_weigh(s, NULL, logits, s->scale.best, &sum);
        describe(s, logits, &sum, out);
        for (int k = 0; k < out->n_alternatives; k++) {
            out->alternatives[k].p = out->alternatives[k].id == id ? 1 : 0;
        }
    }
    return CW_OK;
}
