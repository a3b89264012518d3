/* SPDX-License-Identifier: MIT
 *
 * Token ids and the pages that hold their cells. Its one invariant: cell p of pages[p / 256] was
 * written by the forward pass for ids[p] after ids[0 .. p), for every p < n. Timelines share pages
 * as far as their ids are the same; one that is to go on in a page others count on further gets a
 * copy first. */
#ifndef CW_TIMELINE_H
#define CW_TIMELINE_H

#include "core/chat/kvcache.h"

struct cw_timeline {
    int32_t *ids;    /* [n] */
    uint32_t *pages; /* [n_pages] of those that n cells need, or more */
    size_t n, n_pages;
    size_t cap;      /* ids there is room for */
    uint32_t number; /* as a writer of pages */
};

/* Empty, with room for `cap` ids. CW_ENOMEM as a zeroed one. */
int cw_timeline_init(struct cw_timeline *t, struct cw_kvcache *c, size_t cap, struct cw_err *err);
/* Lets go of all pages too. A zeroed one is fine. */
void cw_timeline_free(struct cw_timeline *t, struct cw_kvcache *c);

/* Keep the first n ids, n <= t->n, and only their pages. */
void cw_timeline_truncate(struct cw_timeline *t, struct cw_kvcache *c, size_t n);
/* Make t, which has the room, hold the first n ids of `from` and share their pages. */
void cw_timeline_share(struct cw_timeline *t, struct cw_kvcache *c, const struct cw_timeline *from,
                       size_t n);

/* Make the cells of n ids more writable. False when the pool has too few pages left; what it got by
 * then it keeps, and it may be asked again. */
bool cw_timeline_reserve(struct cw_timeline *t, struct cw_kvcache *c, size_t n);
/* The cells of these further ids have been written. */
void cw_timeline_append(struct cw_timeline *t, struct cw_kvcache *c, const int32_t *ids, size_t n);

/* How many ids both begin with. */
size_t cw_timeline_common(const struct cw_timeline *t, const int32_t *ids, size_t n);

#endif
