/* SPDX-License-Identifier: MIT
 *
 * Live settings by triple buffer: the writer fills a slot nobody reads and swaps it with the middle
 * one; the reader swaps its own with the middle one when that is newer. One atomic exchange each,
 * neither ever waits, and no block is ever seen half written.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "chinwag/sampler.h"

enum { FRESH = 4 }; /* set in `middle` when the writer was the last to swap */

struct slot {
    struct cw_sampling set;
    uint64_t version;
};

struct cw_live {
    struct slot slots[3];
    _Atomic unsigned middle; /* index of the slot in between, | FRESH */
    unsigned back;           /* the writer's slot */
    uint64_t version;        /* the writer's: of the last block published */
    unsigned front;          /* the reader's slot */
};

struct cw_live *cw_live_create(const struct cw_sampling *initial) {
    struct cw_live *l = cw_calloc(1, sizeof *l);
    l->front = 0;
    l->back = 2;
    l->slots[0].set = *initial;
    l->slots[1].set = *initial;
    atomic_init(&l->middle, 1);
    return l;
}

void cw_live_destroy(struct cw_live *l) {
    free(l);
}

void cw_live_publish(struct cw_live *l, const struct cw_sampling *s) {
    l->slots[l->back].set = *s;
    l->slots[l->back].version = ++l->version;
    l->back = atomic_exchange_explicit(&l->middle, l->back | FRESH, memory_order_acq_rel) & 3;
}

uint64_t cw_live_load(struct cw_live *l, struct cw_sampling *out) {
    if (atomic_load_explicit(&l->middle, memory_order_relaxed) & FRESH) {
        l->front = atomic_exchange_explicit(&l->middle, l->front, memory_order_acq_rel) & 3;
    }
    *out = l->slots[l->front].set;
    return l->slots[l->front].version;
}
