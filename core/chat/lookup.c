/* SPDX-License-Identifier: MIT
 *
 * An index of all runs of three ids of the timeline, each run linked to where it stood before, and
 * the two estimates that decide how much of a guess is evaluated: how likely a guessed id is right
 * after so long a match, and what a batch costs in units of a single token.
 */
#include "core/chat/lookup.h"

#include <stdlib.h>
#include <string.h>

enum {
    GRAM = 3,         /* ids that must agree */
    MAX_TRIES = 16,   /* earlier places looked at */
    MAX_MATCH = 32,   /* ids compared backwards */
    N_CLASSES = 4,    /* of match lengths: 3, 4-7, 8-15, 16 and more */
    MIN_MEASURED = 4, /* single tokens timed before the first guess is evaluated */
};

/* A guess must promise this much, for the estimates are rough. */
static const double WORTH = 1.08;
/* What a further token in a batch is thought to cost until it has been measured, in units of the
 * first. */
static const double COST_PRIOR = 0.1;

struct cw_lookup {
    int32_t *ids;  /* [n_max] */
    int32_t *prev; /* [n_max] where the run that ends here stood before, -1: nowhere */
    size_t n, n_max;
    bool all;
    int32_t *head; /* [mask + 1] end of the latest run of this hash, -1: none */
    uint32_t mask;

    /* The guess under observation: ids[from], ids[from + 1], ... should come next. */
    size_t from;
    int watched; /* class, -1: none */
    double right[N_CLASSES];

    double cost[CW_LOOKUP_MAX + 2]; /* of n ids at once, s; 0: not measured */
    int n_single;
};

struct cw_lookup *cw_lookup_create(size_t n_max, bool all) {
    static const double prior[N_CLASSES] = {0.3, 0.5, 0.7, 0.85};
    struct cw_lookup *l = cw_calloc(1, sizeof *l);
    uint32_t size = 1024;
    while (size < 2 * n_max && size < 1u << 30) {
        size *= 2;
    }
    l->n_max = n_max;
    l->all = all;
    l->mask = size - 1;
    l->ids = cw_reallocarray(NULL, n_max, sizeof *l->ids);
    l->prev = cw_reallocarray(NULL, n_max, sizeof *l->prev);
    l->head = cw_reallocarray(NULL, size, sizeof *l->head);
    memset(l->head, 0xff, size * sizeof *l->head);
    memcpy(l->right, prior, sizeof prior);
    l->watched = -1;
    return l;
}

void cw_lookup_destroy(struct cw_lookup *l) {
    if (l == NULL) {
        return;
    }
    free(l->ids);
    free(l->prev);
    free(l->head);
    free(l);
}

static uint32_t hash(const struct cw_lookup *l, int32_t a, int32_t b, int32_t c) {
    uint64_t x = (uint32_t)a * 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 32) ^ (uint32_t)b) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 32) ^ (uint32_t)c) * 0x94d049bb133111ebu;
    return (uint32_t)(x >> 32) & l->mask;
}

/* One more id on the timeline: the guess under observation was right or wrong. */
static void observe(struct cw_lookup *l, int32_t id) {
    if (l->watched < 0) {
        return;
    }
    bool right = l->from < l->n && l->ids[l->from] == id;
    l->right[l->watched] += ((right ? 1 : 0) - l->right[l->watched]) / 16;
    l->from++;
    if (!right) {
        l->watched = -1;
    }
}

static void append(struct cw_lookup *l, int32_t id) {
    l->ids[l->n] = id;
    l->prev[l->n] = -1;
    if (l->n + 1 >= GRAM) {
        uint32_t h = hash(l, l->ids[l->n - 2], l->ids[l->n - 1], id);
        l->prev[l->n] = l->head[h];
        l->head[h] = (int32_t)l->n;
    }
    l->n++;
}

void cw_lookup_add(struct cw_lookup *l, const int32_t *ids, size_t n) {
    for (size_t i = 0; i < n && l->n < l->n_max; i++) {
        observe(l, ids[i]);
        append(l, ids[i]);
    }
}

/* How many ids up to ids[end] are the latest of the timeline. */
static size_t match_length(const struct cw_lookup *l, size_t end) {
    size_t len = 0;
    while (len < MAX_MATCH && len <= end && l->ids[end - len] == l->ids[l->n - 1 - len]) {
        len++;
    }
    return len;
}

static int class_of(size_t len) {
    return len < 4 ? 0 : len < 8 ? 1 : len < 16 ? 2 : 3;
}

/* Cost of n ids at once in units of one. */
static double relative_cost(const struct cw_lookup *l, size_t n) {
    size_t known = n;
    while (known > 1 && l->cost[known] <= 0) {
        known--;
    }
    return l->cost[known] / l->cost[1] + COST_PRIOR * (double)(n - known);
}

/* The number of guesses that promises most tokens per time, if it promises enough. */
static size_t worth(const struct cw_lookup *l, size_t n) {
    double right = l->right[l->watched], expected = 1, chance = 1, best = WORTH;
    size_t at = 0;
    if (l->n_single < MIN_MEASURED) {
        return 0;
    }
    for (size_t k = 1; k <= n; k++) {
        chance *= right;
        expected += chance;
        double gain = expected / relative_cost(l, k + 1);
        if (gain > best) {
            best = gain;
            at = k;
        }
    }
    return at;
}

size_t cw_lookup_guess(struct cw_lookup *l, size_t room, int32_t *guess) {
    size_t best = 0, from = 0;
    if (l->n < GRAM || l->n >= l->n_max) {
        return 0;
    }
    /* A guess that goes on being right is a long match already. */
    if (l->watched >= 0) {
        from = l->from;
        best = match_length(l, from - 1);
    }
    int32_t at = l->prev[l->n - 1];
    for (int tries = 0; best < MAX_MATCH && at >= 0 && tries < MAX_TRIES; tries++) {
        size_t len = match_length(l, (size_t)at);
        if (len > best) {
            best = len;
            from = (size_t)at + 1;
        }
        at = l->prev[at];
    }
    if (best < GRAM) {
        return 0;
    }
    l->from = from;
    l->watched = class_of(best);
    size_t n = 0;
    for (; n < CW_LOOKUP_MAX && n < room; n++) {
        /* At the end of the timeline go on with what was just guessed: a text that goes round. */
        guess[n] = from + n < l->n ? l->ids[from + n] : guess[from + n - l->n];
    }
    return l->all ? n : worth(l, n);
}

void cw_lookup_cost(struct cw_lookup *l, size_t n, double seconds) {
    if (n == 0 || n > CW_LOOKUP_MAX + 1) {
        return;
    }
    double *c = &l->cost[n];
    *c = *c > 0 ? *c + (seconds - *c) / 4 : seconds;
    l->n_single += n == 1 && l->n_single < MIN_MEASURED;
}
