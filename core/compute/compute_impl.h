/* SPDX-License-Identifier: MIT
 * What the files of the compute module share. */
#ifndef CW_COMPUTE_IMPL_H
#define CW_COMPUTE_IMPL_H

#include "core/compute/compute.h"
#include "core/compute/kernels/kernels_impl.h"
#include "core/compute/threadpool.h"

#define CW_ATTEND_ROWS 64 /* queries (token and head pairs) a unit of attention takes at most */

struct cw_compute {
    const struct cw_kernels *k;
    struct cw_pool *pool;
    int n_threads;
    bool blas;
    const char *blas_why; /* why not, when it was asked for; else NULL */
    float *blas_scratch;  /* CW_BLAS_SCRATCH floats a thread */
    size_t blas_scratch_bytes;
    /* Packed copies of weights, one after the other; allocated when the first is made. */
    uint8_t *arena;
    size_t arena_bytes; /* that all which were announced will need */
    uint64_t pack_limit;
    bool no_arena; /* refused, or not worth it */
    /* Attention: a region a thread, and one for the partial results of chunks. */
    float *scratch, *partial;
    size_t scratch_bytes, partial_bytes; /* of all threads; of the partials */
};

/* Work below this many multiply-adds is done by the caller alone: waking costs as much. */
#define CW_INLINE_MACS 100000

const struct cw_kernels *cw_kernels_of(enum cw_isa isa); /* NULL: not in this build */

/* Floats that the attend kernels of any ISA need for heads of these widths. */
size_t cw_attend_scratch(int head_k, int head_v);

#endif
