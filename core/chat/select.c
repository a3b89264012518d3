/* SPDX-License-Identifier: MIT
 *
 * From scores to candidates to one of them, without ever sorting the vocabulary.
 *
 * The order is: logit descending, then id ascending. Every stage that cuts by rank or by mass asks
 * one question, "which candidate is the first at which the running sum passes a target?", and
 * cw_select answers it by histograms over the bits of the key, three passes over shrinking lists.
 * Candidates are listed on demand: first the ids near the best logit, more only when the mass or
 * the count asked for is not reached.
 */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/chat/sampler_impl.h"

static int32_t n_blocks(const struct cw_sampler *s) {
    return (s->n + CW_SAMPLE_BLOCK - 1) / CW_SAMPLE_BLOCK;
}

int cw_select_scan(struct cw_sampler *s, struct cw_err *err) {
    struct cw_scan r = cw_pass_scan(s, s->logits);
    const int32_t banned = cw_sample_key(-INFINITY);
    s->scale.best = cw_sample_float(r.most);
    /* NaN of either sign lies outside [-inf, inf]. */
    if (r.most >= cw_sample_key(INFINITY) || r.least < banned) {
        return cw_fail(err, CW_ENUMERIC, "the model produced scores that are not numbers");
    }
    if (r.most == banned) {
        return cw_fail(err, CW_ENUMERIC, "the model produced no usable scores");
    }
    return CW_OK;
}

int32_t cw_select_best(const struct cw_sampler *s) {
    int32_t i = 0;
    while (s->block_best[i / CW_SAMPLE_BLOCK] < s->scale.best) {
        i += CW_SAMPLE_BLOCK;
    }
    while (s->logits[i] < s->scale.best) {
        i++;
    }
    return i;
}

void cw_select_weigh(struct cw_sampler *s, float temp, struct cw_surprise *surprise) {
    s->temp = temp > 1e-6f ? temp : 1e-6f;
    s->scale.slope = 1.44269504f / s->temp;
    cw_pass_weigh(s, &s->total, s->logits, s->scale.best, surprise);
    s->n_cand = 0;
    s->mass = 0;
    s->depth = 0;
    s->open = true;
}

/* ---- the candidates ------------------------------------------------------------------------ */

/* How far below the best logit the list reaches at each depth, in units of T. The last step lists
 * every id that is not banned. */
static const float floors[] = {6, 12, 20, INFINITY};
enum { N_FLOORS = sizeof floors / sizeof floors[0] };

/* The sum of the weights of the listed ones. It is exact, so the order is one of speed. */
static double mass_of(const struct cw_sampler *s) {
    double lane[4] = {0};
    size_t i = 0;
    for (; i + 4 <= s->n_cand; i += 4) {
        for (int j = 0; j < 4; j++) {
            lane[j] += (double)s->weight[i + (size_t)j];
        }
    }
    for (; i < s->n_cand; i++) {
        lane[0] += (double)s->weight[i];
    }
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

/* List more: one floor lower. */
static void lower_floor(struct cw_sampler *s) {
    bool last = s->depth == N_FLOORS - 1;
    float least = last ? -FLT_MAX : s->scale.best - s->temp * floors[s->depth];
    size_t n = 0;
    for (int32_t b = 0; b < n_blocks(s); b++) {
        if (s->block_best[b] < least) {
            continue;
        }
        int32_t end = (b + 1) * CW_SAMPLE_BLOCK < s->n ? (b + 1) * CW_SAMPLE_BLOCK : s->n;
        for (int32_t i = b * CW_SAMPLE_BLOCK; i < end; i++) {
            s->cand[n] = i;
            n += s->logits[i] >= least;
        }
    }
    s->n_cand = n;
    s->passes->list(s->logits, s->cand, n, &s->scale, s->weight);
    s->mass = mass_of(s);
    s->depth++;
    s->open = !last;
}

static void list_all(struct cw_sampler *s) {
    if (s->open) {
        s->depth = N_FLOORS - 1;
        lower_floor(s);
    }
}

/* The sum of the weights of the set, listed or not. */
static double set_mass(const struct cw_sampler *s) {
    return s->open ? s->total : s->mass;
}

/* Keys that order candidates by logit. */
static void key_by_logit(struct cw_sampler *s) {
    for (size_t i = 0; i < s->n_cand; i++) {
        s->key[i] = (uint32_t)cw_sample_key(s->logits[s->cand[i]]) ^ 0x80000000u;
    }
}

/* Going through the candidates by key descending, then id ascending, and summing their weights (1
 * each if by_count): the index of the first at which the sum exceeds `target`. The sum over all
 * candidates must exceed it. */
static size_t select_at(const struct cw_sampler *s, bool by_count, double target) {
    enum { BITS = 11, N_BUCKETS = 1 << BITS };
    static const int shifts[] = {32 - BITS, 32 - 2 * BITS, 0};
    double bucket[N_BUCKETS];
    int32_t *at = s->work;
    size_t n = s->n_cand;
    double before = 0;
    for (size_t i = 0; i < n; i++) {
        at[i] = (int32_t)i;
    }
    for (int level = 0; level < 3 && n > 1; level++) {
        int shift = shifts[level];
        /* The last level sees one bit of the level before again, which is equal in all by then. */
        memset(bucket, 0, sizeof bucket);
        for (size_t i = 0; i < n; i++) {
            uint32_t b = s->key[at[i]] >> shift & (N_BUCKETS - 1);
            bucket[b] += by_count ? 1 : (double)s->weight[at[i]];
        }
        uint32_t b = N_BUCKETS - 1;
        while (b > 0 && before + bucket[b] <= target) {
            before += bucket[b--];
        }
        size_t m = 0;
        for (size_t i = 0; i < n; i++) {
            int32_t a = at[i];
            at[m] = a;
            m += (s->key[a] >> shift & (N_BUCKETS - 1)) == b;
        }
        n = m;
    }
    for (size_t i = 0; i < n; i++) { /* equal keys: by id */
        before += by_count ? 1 : (double)s->weight[at[i]];
        if (before > target) {
            return (size_t)at[i];
        }
    }
    return n > 0 ? (size_t)at[n - 1] : 0;
}

/* Candidate i becomes the n-th, n <= i. */
static void move(struct cw_sampler *s, size_t n, size_t i) {
    s->cand[n] = s->cand[i];
    s->weight[n] = s->weight[i];
}

/* Keep what ranks at least as high as candidate `last` by the present keys. */
static void keep_through(struct cw_sampler *s, size_t last) {
    uint32_t key = s->key[last];
    size_t n = 0;
    for (size_t i = 0; i < s->n_cand; i++) {
        move(s, n, i);
        n += (s->key[i] > key) | ((s->key[i] == key) & (i <= last));
    }
    s->n_cand = n;
    s->mass = mass_of(s);
    s->open = false;
}

/* ---- the stages ---------------------------------------------------------------------------- */

/* The k best (Fan, Lewis and Dauphin 2018). */
void cw_select_top_k(struct cw_sampler *s, int32_t k) {
    if (k <= 0) {
        return;
    }
    while (s->open && s->n_cand < (size_t)k) {
        lower_floor(s);
    }
    if (s->n_cand > (size_t)k) {
        key_by_logit(s);
        keep_through(s, select_at(s, true, k - 1));
    }
    s->open = false;
}

/* Locally typical sampling (Meister, Pimentel, Wiher and Cotterell 2022): by how near a candidate's
 * surprise is to the expected one, until p is reached. With x = (logit - best) / T, the surprise
 * is log Z - x and the entropy log Z - mean(x), so their distance is |x - mean(x)|. */
void cw_select_typical(struct cw_sampler *s, float p) {
    if (p >= 1) {
        return;
    }
    list_all(s);
    double limit = (double)p * s->mass, sum = 0;
    if (s->mass <= limit) {
        return;
    }
    for (size_t i = 0; i < s->n_cand; i++) {
        float x = (s->logits[s->cand[i]] - s->scale.best) / s->temp;
        float w = s->weight[i];
        sum += w > 0 ? (double)w * (double)x : 0;
    }
    double mean = sum / s->mass;
    for (size_t i = 0; i < s->n_cand; i++) {
        float x = (s->logits[s->cand[i]] - s->scale.best) / s->temp;
        float distance = (float)fabs((double)x - mean);
        uint32_t bits;
        memcpy(&bits, &distance, sizeof bits);
        s->key[i] = ~bits;
    }
    keep_through(s, select_at(s, false, limit));
}

/* The nucleus (Holtzman, Buys, Du, Forbes and Choi 2020): a candidate stays while the share of
 * those before it is at most p. */
void cw_select_top_p(struct cw_sampler *s, float p) {
    if (p >= 1) {
        return;
    }
    double limit = (double)p * set_mass(s);
    while (s->open && s->mass <= limit) {
        lower_floor(s);
    }
    if (s->mass > limit) {
        key_by_logit(s);
        keep_through(s, select_at(s, false, limit));
    }
}

/* At least p times as likely as the likeliest (Nguyen et al. 2024). */
void cw_select_min_p(struct cw_sampler *s, float p) {
    if (p <= 0) {
        return;
    }
    if (s->open) {
        /* The best weighs 1. Half the threshold as the floor leaves no doubt about rounding. */
        do {
            lower_floor(s);
        } while (s->open && cw_exp2_weight(-floors[s->depth - 1] * 1.44269504f) > p * 0.5f);
        s->open = false;
    }
    float most = 0;
    for (size_t i = 0; i < s->n_cand; i++) {
        float w = s->weight[i];
        most = w > most ? w : most;
    }
    size_t n = 0;
    double least = (double)p * (double)most;
    for (size_t i = 0; i < s->n_cand; i++) {
        double w = (double)s->weight[i];
        move(s, n, i);
        n += w >= least;
    }
    s->n_cand = n;
    s->mass = mass_of(s);
}

/* Exclude top choices (p-e-w, text-generation-webui pull request 6335, 2024): of the candidates
 * with at least `threshold` all go but the least likely. The caller has thrown the die. */
void cw_select_xtc(struct cw_sampler *s, float threshold) {
    list_all(s);
    double least = (double)threshold * s->mass;
    size_t above = 0, stay = 0;
    key_by_logit(s);
    for (size_t i = 0; i < s->n_cand; i++) {
        if ((double)s->weight[i] >= least) {
            if (above++ == 0 || s->key[i] <= s->key[stay]) {
                stay = i;
            }
        }
    }
    if (above < 2) {
        return;
    }
    size_t n = 0;
    for (size_t i = 0; i < s->n_cand; i++) {
        double w = (double)s->weight[i];
        move(s, n, i);
        n += w < least || i == stay;
    }
    s->n_cand = n;
    s->mass = mass_of(s);
}

int32_t cw_select_draw(struct cw_sampler *s, double u, float *p) {
    double all = set_mass(s), target = u * all;
    while (s->open && s->mass <= target) {
        lower_floor(s);
    }
    key_by_logit(s);
    size_t i = select_at(s, false, target);
    *p = (float)((double)s->weight[i] / all);
    return s->cand[i];
}

float cw_select_share(const struct cw_sampler *s, int32_t id) {
    double w;
    if (s->open) {
        w = (double)cw_sample_weight(&s->scale, s->logits[id]);
    } else {
        size_t lo = 0, hi = s->n_cand;
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;
            if (s->cand[mid] < id) {
                lo = mid + 1;
            } else {
                hi = mid;
            }
        }
        if (lo == s->n_cand || s->cand[lo] != id) {
            return 0;
        }
        w = (double)s->weight[lo];
    }
    return (float)(w / set_mass(s));
}
