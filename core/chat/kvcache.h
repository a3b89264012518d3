/* SPDX-License-Identifier: MIT
 *
 * The memory of one session's key/value cache: a pool of pages, each CW_PAGE_CELLS cells of all
 * layers, in one reservation of address space. Timelines hold pages by reference and share them;
 * a page costs memory from when it is first written until its last holder lets go of it. Cells are
 * never cleared, since a cell is written before anything may see it. */
#ifndef CW_KVCACHE_H
#define CW_KVCACHE_H

#include "chinwag/session.h"
#include "core/model/internal.h"

struct cw_kvcache {
    struct cw_kv_layer *layers; /* [n_layers] */
    int n_layers;
    char *base;
    size_t page_bytes, bytes; /* of a page, of the whole reservation */
    uint32_t n_pages;
    uint32_t *holders; /* [n_pages] timelines that hold it */
    uint32_t *writer; /* [n_pages] number of the timeline that may write behind the cells there are;
                       * 0: whoever ends with them */
    uint16_t *filled; /* [n_pages] how many there are, where nobody is the writer */
    uint32_t *free;   /* [n_free] pages without memory */
    uint32_t n_free;
    uint32_t warm[4]; /* [n_warm] free ones that kept theirs, for the next taker */
    uint32_t n_warm;
    uint32_t last_writer; /* the newest timeline's number */
};

/* Positions stay exact and angles within what cw_sin reduces. */
enum { CW_MAX_N_CTX = 1 << 28 };

/* Tokens a session evaluates at once. */
enum { CW_DEFAULT_CHUNK = 512, CW_MAX_CHUNK = 8192 };

/* What a session needs besides cache and scratch: scores and ids. */
uint64_t cw_session_extra_bytes(const struct cw_model *m, uint32_t n_ctx);

/* The smallest of 8,192, the trained size, the learned positions and what memory allows; *reason
 * tells which, static storage. */
uint32_t cw_kvcache_default_n_ctx(const struct cw_model *m, enum cw_kv_type kind,
                                  const char **reason);

/* Bytes for n_ctx cells (rounded up to whole pages); 0 when the sizes multiply to too much or the
 * kind does not fit the head widths. */
uint64_t cw_kvcache_bytes(const struct cw_model *m, uint32_t n_ctx, enum cw_kv_type kind);

/* What retained timelines may take where nobody said: a quarter of what the weights and n_ctx cells
 * leave of the memory, at most 2 GiB. */
uint64_t cw_kvcache_default_ram(const struct cw_model *m, uint32_t n_ctx, enum cw_kv_type kind);

/* n_pages of at least what n_ctx cells need; fewer than asked for, but never than that, if address
 * space is short. */
int cw_kvcache_create(struct cw_kvcache *c, const struct cw_model *m, uint32_t n_ctx,
                      uint64_t n_pages, enum cw_kv_type kind, struct cw_err *err);
void cw_kvcache_free(struct cw_kvcache *c); /* a zeroed one is fine */

/* A page with one holder, `writer`, and nothing in it; false when there is none left. */
bool cw_kvcache_take(struct cw_kvcache *c, uint32_t writer, uint32_t *page);
void cw_kvcache_hold(struct cw_kvcache *c, uint32_t page);
void cw_kvcache_drop(struct cw_kvcache *c, uint32_t page);
/* Have a free page whose memory is there already: who takes it next, a branch for one, then does
 * not wait until the system has cleared it. */
void cw_kvcache_warm(struct cw_kvcache *c);
/* Give the memory of free pages back at once. */
void cw_kvcache_trim(struct cw_kvcache *c);

#endif
