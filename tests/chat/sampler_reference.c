/* SPDX-License-Identifier: MIT
 *
 * The textbook's sampler. It shares with the real one only the weight of a logit, which is tested
 * by itself against the C library's exp2. */
#include "tests/chat/sampler_reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/chat/sampler_impl.h"

struct item {
    int32_t id;
    float logit;
    double weight;
    double distance; /* typical-p */
};

static int by_logit(const void *a, const void *b) {
    const struct item *x = a, *y = b;
    if (x->logit != y->logit) {
        return x->logit > y->logit ? -1 : 1;
    }
    return (x->id > y->id) - (x->id < y->id);
}

static int by_distance(const void *a, const void *b) {
    const struct item *x = a, *y = b;
    if (x->distance != y->distance) {
        return x->distance < y->distance ? -1 : 1;
    }
    return (x->id > y->id) - (x->id < y->id);
}

static double mass_of(const struct item *v, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += v[i].weight;
    }
    return sum;
}

/* How many to keep so that the mass before each kept one is at most `limit`. */
static size_t keep_by_mass(const struct item *v, size_t n, double limit) {
    double before = 0;
    size_t k = 0;
    while (k < n && before <= limit) {
        before += v[k++].weight;
    }
    return k;
}

static bool contains(const int32_t *v, size_t n, int32_t id) {
    for (size_t i = 0; i < n; i++) {
        if (v[i] == id) {
            return true;
        }
    }
    return false;
}

static float hold(double v) {
    return v > (double)FLT_MAX ? FLT_MAX : v < (double)-FLT_MAX ? -FLT_MAX : (float)v;
}

static void dry(const struct cw_sampling *set, float *l, int32_t n_vocab, const int32_t *h,
                size_t n, const int32_t *breakers, size_t n_breakers) {
    int32_t *longest = cw_calloc((size_t)n_vocab, sizeof *longest);
    for (size_t end = 0; end + 1 < n; end++) { /* a repetition that ends before end + 1 */
        int32_t m = 0;
        while (m < 50 && (size_t)m <= end && h[end - (size_t)m] == h[n - 1 - (size_t)m] &&
               !contains(breakers, n_breakers, h[end - (size_t)m])) {
            m++;
        }
        int32_t next = h[end + 1];
        if (m >= set->dry_allowed_length && next >= 0 && next < n_vocab &&
            !contains(breakers, n_breakers, next) && m > longest[next]) {
            longest[next] = m;
        }
    }
    for (int32_t i = 0; i < n_vocab; i++) {
        if (longest[i] > 0 && isfinite(l[i])) {
            double penalty = (double)set->dry_multiplier;
            for (int32_t k = longest[i]; k > set->dry_allowed_length; k--) {
                penalty *= (double)set->dry_base;
            }
            l[i] = hold((double)l[i] - penalty);
        }
    }
    free(longest);
}

static void adjust(const struct cw_sampling *set, float *l, int32_t n_vocab, const int32_t *h,
                   size_t n_h, const int32_t *breakers, size_t n_breakers) {
    for (int32_t i = 0; i < set->n_bias; i++) {
        if (set->bias[i].id >= 0 && set->bias[i].id < n_vocab) {
            l[set->bias[i].id] += set->bias[i].bias;
        }
    }
    size_t n = set->penalty_last_n < 0 || (size_t)set->penalty_last_n > n_h
                   ? n_h
                   : (size_t)set->penalty_last_n;
    int32_t *count = cw_calloc((size_t)n_vocab, sizeof *count);
    for (size_t i = n_h - n; i < n_h; i++) {
        if (h[i] >= 0 && h[i] < n_vocab) {
            count[h[i]]++;
        }
    }
    for (int32_t i = 0; i < n_vocab; i++) {
        if (count[i] > 0 && isfinite(l[i])) {
            double r = (double)set->penalty_repeat, v = (double)l[i];
            v = v > 0 ? v / r : v * r;
            v -= (double)count[i] * (double)set->penalty_frequency;
            v -= (double)set->penalty_presence;
            l[i] = hold(v);
        }
    }
    free(count);
    if (set->dry_multiplier > 0) {
        n = set->dry_last_n < 0 || (size_t)set->dry_last_n > n_h ? n_h : (size_t)set->dry_last_n;
        dry(set, l, n_vocab, h + (n_h - n), n, breakers, n_breakers);
    }
}

static size_t filter(const struct cw_sampling *set, struct item *v, size_t n, float temp,
                     uint32_t seed, uint64_t position) {
    if (set->top_k > 0 && (size_t)set->top_k < n) {
        n = (size_t)set->top_k;
    }
    if (set->typical_p < 1) {
        /* In order of id, so that the mean is summed as the real one sums it. */
        double mass = mass_of(v, n), sum = 0;
        int32_t next = 0;
        for (size_t k = 0; k < n; k++) {
            size_t at = n;
            for (size_t i = 0; i < n; i++) {
                if (v[i].id >= next && (at == n || v[i].id < v[at].id)) {
                    at = i;
                }
            }
            float x = (v[at].logit - v[0].logit) / temp;
            sum += v[at].weight > 0 ? v[at].weight * (double)x : 0;
            next = v[at].id + 1;
        }
        float best = v[0].logit;
        for (size_t i = 0; i < n; i++) {
            float x = (v[i].logit - best) / temp;
            v[i].distance = (double)(float)fabs((double)x - sum / mass);
        }
        qsort(v, n, sizeof *v, by_distance);
        n = keep_by_mass(v, n, (double)set->typical_p * mass);
        qsort(v, n, sizeof *v, by_logit);
    }
    if (set->top_p < 1) {
        n = keep_by_mass(v, n, (double)set->top_p * mass_of(v, n));
    }
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        most = v[i].weight > most ? v[i].weight : most;
    }
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (set->min_p <= 0 || v[i].weight >= (double)set->min_p * most) {
            v[kept++] = v[i];
        }
    }
    n = kept;
    if (set->xtc_probability > 0 &&
        (double)(cw_random(seed, position, CW_STAGE_XTC) >> 11) * 0x1p-53 <
            (double)set->xtc_probability) {
        double least = (double)set->xtc_threshold * mass_of(v, n);
        size_t above = 0;
        while (above < n && v[above].weight >= least) {
            above++;
        }
        if (above >= 2) {
            memmove(v, v + above - 1, (n - above + 1) * sizeof *v);
            n -= above - 1;
        }
    }
    return n;
}

int32_t reference_draw(const struct cw_sampling *set, const float *logits, int32_t n_vocab,
                       int32_t n_usable, const int32_t *history, size_t n_history,
                       const int32_t *breakers, size_t n_breakers, uint32_t seed, uint64_t position,
                       float *p) {
    float *l = cw_reallocarray(NULL, (size_t)n_vocab, sizeof *l);
    struct item *v = cw_calloc((size_t)n_vocab, sizeof *v);
    size_t n = 0;
    int32_t id = -1;
    memcpy(l, logits, (size_t)n_vocab * sizeof *l);
    adjust(set, l, n_vocab, history, n_history, breakers, n_breakers);
    for (int32_t i = 0; i < n_usable; i++) {
        if (isnan(l[i]) || l[i] == INFINITY) {
            goto out;
        }
        if (l[i] > -INFINITY) {
            v[n++] = (struct item){.id = i, .logit = l[i] + 0.0f};
        }
    }
    if (n == 0) {
        goto out;
    }
    qsort(v, n, sizeof *v, by_logit);
    if (set->temp == 0) {
        id = v[0].id;
        *p = 1;
        goto out;
    }
    float temp = set->temp > 1e-6f ? set->temp : 1e-6f;
    double g = 0x1p44;
    while (g * n_vocab > 0x1p53) {
        g /= 2;
    }
    const struct cw_scale scale = {.best = v[0].logit, .slope = 1.44269504f / temp};
    for (size_t i = 0; i < n; i++) {
        v[i].weight = rint((double)cw_exp2_weight(cw_sample_power(&scale, v[i].logit)) * g) / g;
    }
    n = filter(set, v, n, temp, seed, position);
    double mass = mass_of(v, n), before = 0;
    double target = (double)(cw_random(seed, position, CW_STAGE_DRAW) >> 11) * 0x1p-53 * mass;
    for (size_t i = 0; i < n && id < 0; i++) {
        before += v[i].weight;
        if (before > target) {
            id = v[i].id;
            *p = (float)(v[i].weight / mass);
        }
    }
out:
    free(l);
    free(v);
    return id;
}
