/* SPDX-License-Identifier: MIT
 *
 * The key/value cache of one session: one layer after another in one reservation of address space.
 * Pages cost memory when they are first written, so a large context that is not used is cheap; the
 * cells are never cleared, since a cell is written before anything may see it. */
#ifndef CW_KVCACHE_H
#define CW_KVCACHE_H

#include "chinwag/session.h"
#include "core/model/internal.h"

struct cw_kvcache {
    struct cw_kv_layer *layers; /* [n_layers] */
    int n_layers;
    void *base;
    uint64_t bytes;
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

/* Bytes for n_ctx cells (rounded up to whole chunks of attention); 0 when the sizes multiply to
 * too much or the kind does not fit the head widths. */
uint64_t cw_kvcache_bytes(const struct cw_model *m, uint32_t n_ctx, enum cw_kv_type kind);

int cw_kvcache_create(struct cw_kvcache *c, const struct cw_model *m, uint32_t n_ctx,
                      enum cw_kv_type kind, struct cw_err *err);
void cw_kvcache_free(struct cw_kvcache *c); /* a zeroed one is fine */

#endif
