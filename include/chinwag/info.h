/* SPDX-License-Identifier: MIT
 *
 * What can be said about a GGUF file without running it, supported or not: for `chinwag info` and
 * /show. Open the file with cw_gguf_open_any, so that unknown tensor types do not stand in the way.
 *
 * A snapshot: it borrows the file, which must outlive it, and changes with nothing. Any thread.
 */
#ifndef CHINWAG_INFO_H
#define CHINWAG_INFO_H

#include "chinwag/session.h"
#include "chinwag/types.h"

struct cw_info_type {
    uint32_t type;            /* as numbered in the file */
    char name[CW_TYPE_LABEL]; /* "Q4_K", or "type 99" */
    bool supported;
    size_t n_tensors;
    uint64_t n_params, bytes;
};

struct cw_info {
    int version;
    size_t n_keys, n_tensors;
    uint64_t file_bytes;

    char arch[64]; /* general.architecture, printable; "" where there is none */
    bool arch_supported;
    bool loads;        /* cw_model_load would succeed */
    char why_not[512]; /* the reason if it would not */

    /* Sizes and names as cw_model_load would find them; threads, isa and blas are not set. Where
     * the file does not load the sizes are what its keys say, as far as they can be read (0 where
     * not). */
    struct cw_model_info model;

    struct cw_info_type *types; /* [n_types], most bytes first */
    size_t n_types;

    uint32_t
        n_ctx_default; /* cells a session would take by itself on this machine now; 0: unknown */
    const char *n_ctx_reason;
    uint64_t kv_q8_bytes_token; /* as model.kv_bytes_token, with a Q8_0 cache; 0: does not fit */

    char **notices; /* [n_notices] what loading would report */
    size_t n_notices;
    /* What nothing that is known here uses. Keys of general., tokenizer., split. and quantize. are
     * left out: they are not the model's. Of a file that does not load: what had not been asked for
     * when it failed. */
    struct cw_str *unused_keys;
    size_t n_unused_keys;
    struct cw_str *unused_tensors;
    size_t n_unused_tensors;
};

struct cw_info *cw_info_create(const struct cw_gguf *g); /* never NULL */
void cw_info_destroy(struct cw_info *info);              /* NULL is fine */

/* Not counted: copies of weights that kernels lay out for themselves while running, at most as much
 * as the weights again. */
struct cw_info_memory {
    uint32_t n_ctx;           /* as asked for, or the default */
    const char *n_ctx_reason; /* "given", or why it is that; static storage */
    uint64_t weights;         /* of the file, shared with the page cache */
    uint64_t kv;              /* reserved; pages cost when used */
    uint64_t scratch;         /* for chunks of that many tokens, scores included */
    uint64_t total;
};

/* What a session of n_ctx cells (0: the default) with chunks of `chunk` tokens (0: 512) needs.
 * CW_EUNSUP where the file does not load or the cache type does not fit; CW_ENOMEM when the sizes
 * multiply to more than an address space. */
int cw_info_memory(const struct cw_gguf *g, uint32_t n_ctx, enum cw_kv_type kv, int chunk,
                   struct cw_info_memory *out, struct cw_err *err);

#endif
