/* SPDX-License-Identifier: MIT
 *
 * What changes logits before they become probabilities: bias, the penalties on tokens that came
 * before, and DRY, which weighs down the token that would prolong a repetition. All off by default.
 *
 * A logit stays finite or -inf: what would overflow is held at the largest float, so that "banned"
 * is only ever said, never computed. What is no number is left for the scan to report.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/chat/sampler_impl.h"

/* A repetition counts at most this long, so that the power below stays a double. */
enum { MAX_MATCH = 50 };

static bool penalties_on(const struct cw_sampling *set) {
    return set->penalty_last_n != 0 &&
           (set->penalty_repeat != 1 || set->penalty_frequency != 0 || set->penalty_presence != 0);
}

static bool dry_on(const struct cw_sampling *set) {
    return set->dry_multiplier > 0 && set->dry_last_n != 0;
}

bool cw_adjust_wanted(const struct cw_sampling *set) {
    return set->n_bias > 0 || penalties_on(set) || dry_on(set);
}

static float hold(double l) {
    return l > (double)FLT_MAX ? FLT_MAX : l < (double)-FLT_MAX ? -FLT_MAX : (float)l;
}

static size_t look_back(size_t n_history, int32_t last_n) {
    return last_n < 0 || (size_t)last_n > n_history ? n_history : (size_t)last_n;
}

/* Repetition: Keskar et al. 2019 (CTRL), with the product for negative logits that keeps the
 * penalty a penalty. Frequency and presence: as the OpenAI API defines them. */
static void penalise(struct cw_sampler *s, const struct cw_sampling *set, const int32_t *recent,
                     size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (recent[i] >= 0 && recent[i] < s->n_vocab) {
            s->count[recent[i]]++;
        }
    }
    for (size_t i = 0; i < n; i++) {
        int32_t id = recent[i];
        if (id < 0 || id >= s->n_vocab || s->count[id] == 0) {
            continue;
        }
        float l = s->adjusted[id];
        if (isfinite(l)) {
            double v = (double)l, repeat = (double)set->penalty_repeat;
            v = v > 0 ? v / repeat : v * repeat;
            v -= (double)s->count[id] * (double)set->penalty_frequency;
            v -= (double)set->penalty_presence;
            s->adjusted[id] = hold(v);
        }
        s->count[id] = 0;
    }
}

static bool breaks(const struct cw_sampler *s, int32_t id) {
    size_t lo = 0, hi = s->n_breakers;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->breaker[mid] < id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < s->n_breakers && s->breaker[lo] == id;
}

/* "Don't repeat yourself" (p-e-w, text-generation-webui pull request 5677, 2024): where the last n
 * ids occurred before, followed by a token, that token loses multiplier * base^(n - allowed). The
 * longest n counts; it never reaches across a breaker. All n come from one Z-function (Gusfield
 * 1997) over the history read backwards, so the cost is linear. */
static void dry(struct cw_sampler *s, const struct cw_sampling *set, const int32_t *recent,
                size_t n) {
    if (n < 2) {
        return;
    }
    if (s->match_cap < n) {
        s->match = cw_reallocarray(s->match, n, sizeof *s->match);
        s->match_cap = n;
    }
    const int32_t *end = recent + n - 1; /* end[-i] is the i-th id read backwards */
    size_t limit = 0;
    while (limit < n && limit < MAX_MATCH && !breaks(s, *(end - limit))) {
        limit++;
    }
    size_t left = 0, right = 0; /* the match [left, right) that reaches furthest */
    int32_t *z = s->match;
    for (size_t i = 1; i < n && limit > 0; i++) {
        size_t m = 0;
        if (i < right) {
            m = (size_t)z[i - left] < right - i ? (size_t)z[i - left] : right - i;
        }
        while (i + m < n && *(end - m) == *(end - i - m)) {
            m++;
        }
        z[i] = (int32_t)m;
        if (i + m > right) {
            left = i;
            right = i + m;
        }
        m = m < limit ? m : limit;
        int32_t next = *(end - i + 1);
        if (m >= (size_t)set->dry_allowed_length && next >= 0 && next < s->n_vocab &&
            !breaks(s, next) && (int32_t)m > s->count[next]) {
            s->count[next] = (int32_t)m;
        }
    }
    for (size_t i = 0; i < n; i++) {
        int32_t id = recent[i];
        if (id < 0 || id >= s->n_vocab || s->count[id] == 0) {
            continue;
        }
        double penalty = (double)set->dry_multiplier;
        for (int32_t k = set->dry_allowed_length; k < s->count[id]; k++) {
            penalty *= (double)set->dry_base;
        }
        if (isfinite(s->adjusted[id])) {
            s->adjusted[id] = hold((double)s->adjusted[id] - penalty);
        }
        s->count[id] = 0;
    }
}

void cw_adjust(struct cw_sampler *s, const struct cw_sampling *set, const int32_t *history,
               size_t n_history) {
    for (int32_t i = 0; i < set->n_bias; i++) {
        int32_t id = set->bias[i].id;
        if (id >= 0 && id < s->n_vocab) {
            s->adjusted[id] += set->bias[i].bias;
        }
    }
    if (penalties_on(set)) {
        size_t n = look_back(n_history, set->penalty_last_n);
        penalise(s, set, history + (n_history - n), n);
    }
    if (dry_on(set)) {
        size_t n = look_back(n_history, set->dry_last_n);
        dry(s, set, history + (n_history - n), n);
    }
}
