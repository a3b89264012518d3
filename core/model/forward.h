/* SPDX-License-Identifier: MIT
 *
 * The forward pass: n tokens, each at its place, through all layers, their keys and values into the
 * cache, and the logits of those rows that are wanted. The tokens are a stretch of one timeline,
 * or the next ones of several.
 *
 * The result of a row depends on the ids before it and on nothing else: not on n, on the other
 * timelines, on where chunks and pages lie or on the threads (float files with OpenBLAS excepted).
 * One call at a time for each model; nothing here allocates but cw_scratch_create.
 */
#ifndef CW_FORWARD_H
#define CW_FORWARD_H

#include "core/model/internal.h"

/* Everything a chunk of at most `chunk` tokens needs besides weights and cache. */
struct cw_scratch;

/* n_ctx decides between long and short rope factors, no more. */
int cw_scratch_create(struct cw_scratch **out, const struct cw_model *m, int chunk, uint32_t n_ctx,
                      struct cw_err *err);
void cw_scratch_destroy(struct cw_scratch *s);
/* What one for chunks of that size reserves. */
uint64_t cw_scratch_bytes(const struct cw_model *m, int chunk);

struct cw_batch {
    const int32_t *ids;        /* [n], each below n_vocab */
    const struct cw_place *at; /* [n]; cells before hold what came before, or stand in this batch */
    int n;                     /* 1..chunk */
    int n_out; /* the last n_out rows are wanted, 0..n; the others only fill the cache */
    /* Polled between layers, may be NULL; true gives up the chunk: its cells are then undefined. */
    bool (*stop)(void *arg);
    void *arg;
};

/* A hash of all that turns positions into angles in a pass with this scratch. */
uint64_t cw_scratch_angles(const struct cw_model *m, const struct cw_scratch *s);

/* kv [n_layers]. CW_ECANCEL when stopped. */
int cw_forward(const struct cw_model *m, struct cw_scratch *s, const struct cw_kv_layer *kv,
               const struct cw_batch *b);

/* Logits of wanted rows first .. first + n - 1 (0: the oldest of n_out) of the last cw_forward,
 * into y [n, n_vocab]. */
void cw_forward_logits(const struct cw_model *m, struct cw_scratch *s, int first, int n, float *y);

#endif
