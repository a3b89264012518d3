/* SPDX-License-Identifier: MIT
 *
 * How large the cache may be, its reservation, and the pages of it. */
#include "core/chat/kvcache.h"

#include "core/model/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { DEFAULT_N_CTX = 8192, OS_PAGE = 4096 };

/* Of one layer in a page. */
static uint64_t layer_bytes(const struct cw_model *m, enum cw_kv_type kind) {
    const struct cw_hparams *hp = &m->hp;
    uint64_t bytes =
        cw_kv_layer_bytes(CW_PAGE_CELLS, hp->n_kv_heads, hp->head_k, hp->head_v, (int)kind);
    return (bytes + 63) & ~(uint64_t)63;
}

/* Of a page, so that each can be given back to the system by itself; 0: impossible. */
static uint64_t page_bytes(const struct cw_model *m, enum cw_kv_type kind) {
    uint64_t bytes;
    if (__builtin_mul_overflow(layer_bytes(m, kind), (uint64_t)m->hp.n_layers, &bytes) ||
        bytes > SIZE_MAX / 4) {
        return 0;
    }
    return (bytes + OS_PAGE - 1) & ~(uint64_t)(OS_PAGE - 1);
}

static uint64_t pages_of(uint64_t n_cells) {
    return (n_cells + CW_PAGE_CELLS - 1) / CW_PAGE_CELLS;
}

uint64_t cw_kvcache_bytes(const struct cw_model *m, uint32_t n_ctx, enum cw_kv_type kind) {
    uint64_t all;
    if (n_ctx > CW_MAX_N_CTX ||
        __builtin_mul_overflow(pages_of(n_ctx), page_bytes(m, kind), &all) || all > SIZE_MAX / 2) {
        return 0;
    }
    return all;
}

/* How many cells fit in three quarters of what the weights leave of the memory. */
static uint32_t cells_in_memory(const struct cw_model *m, enum cw_kv_type kind) {
    /* Once in the page cache, once as the kernels lay them out. */
    uint64_t weights = 2 * m->info.weight_bytes, room = cw_memory_read().available;
    uint64_t step = page_bytes(m, kind);
    if (room == UINT64_MAX || step == 0) {
        return UINT32_MAX;
    }
    room = (room > weights ? room - weights : room / 4) / 4 * 3;
    uint64_t cells = room / step * CW_PAGE_CELLS;
    return cells < CW_PAGE_CELLS  ? CW_PAGE_CELLS
           : cells < CW_MAX_N_CTX ? (uint32_t)cells
                                  : CW_MAX_N_CTX;
}

uint32_t cw_kvcache_default_n_ctx(const struct cw_model *m, enum cw_kv_type kind,
                                  const char **reason) {
    const struct cw_hparams *hp = &m->hp;
    uint32_t n = DEFAULT_N_CTX, memory = cells_in_memory(m, kind);
    *reason = "default";
    if (hp->n_ctx_train != 0 && hp->n_ctx_train < n) {
        n = hp->n_ctx_train;
        *reason = "trained size";
    }
    if (hp->max_positions != 0 && hp->max_positions < n) {
        n = hp->max_positions;
        *reason = "learned positions";
    }
    if (memory < n) {
        n = memory;
        *reason = "memory";
    }
    return n;
}

uint64_t cw_kvcache_default_ram(const struct cw_model *m, uint32_t n_ctx, enum cw_kv_type kind) {
    uint64_t most = (uint64_t)2 << 30, room = cw_memory_read().available;
    uint64_t taken = 2 * m->info.weight_bytes + cw_kvcache_bytes(m, n_ctx, kind);
    room = room > taken ? (room - taken) / 4 : 0;
    return room < most ? room : most;
}

int cw_kvcache_create(struct cw_kvcache *c, const struct cw_model *m, uint32_t n_ctx,
                      uint64_t n_pages, enum cw_kv_type kind, struct cw_err *err) {
    const struct cw_hparams *hp = &m->hp;
    uint64_t page = page_bytes(m, kind), layer = layer_bytes(m, kind), least = pages_of(n_ctx);
    uint64_t bytes;
    memset(c, 0, sizeof *c);
    if (page == 0) {
        return cw_fail(err, CW_EUNSUP, "this cache type does not fit heads of %d and %d",
                       hp->head_k, hp->head_v);
    }
    for (n_pages = n_pages > UINT32_MAX ? UINT32_MAX : n_pages; c->base == NULL; n_pages = least) {
        n_pages = n_pages > least ? n_pages : least;
        if (!__builtin_mul_overflow(n_pages, page, &bytes) && bytes <= SIZE_MAX / 2) {
            c->base = cw_large_alloc((size_t)bytes);
        }
        if (c->base == NULL && n_pages == least) {
            return cw_fail(err, CW_ENOMEM, "no memory for a context of %" PRIu32 " tokens", n_ctx);
        }
        if (c->base != NULL) {
            c->bytes = (size_t)bytes;
            c->n_pages = (uint32_t)n_pages;
        }
    }
    c->page_bytes = (size_t)page;
    /* The first page is a short prompt's only one and then mostly empty: huge pages there would be
     * cleared for nothing before the first token. */
    madvise(c->base, c->page_bytes, MADV_NOHUGEPAGE);
    c->holders = cw_calloc(c->n_pages, sizeof *c->holders);
    c->writer = cw_calloc(c->n_pages, sizeof *c->writer);
    c->filled = cw_calloc(c->n_pages, sizeof *c->filled);
    c->free = cw_calloc(c->n_pages, sizeof *c->free);
    for (c->n_free = 0; c->n_free < c->n_pages; c->n_free++) { /* page 0 is the first taken */
        c->free[c->n_free] = c->n_pages - 1 - c->n_free;
    }
    c->n_layers = hp->n_layers;
    c->layers = cw_calloc((size_t)hp->n_layers, sizeof *c->layers);
    for (int i = 0; i < hp->n_layers; i++) {
        c->layers[i] = (struct cw_kv_layer){
            .base = c->base + (uint64_t)i * layer,
            .page_bytes = c->page_bytes,
            .n_kv_heads = hp->n_kv_heads,
            .head_k = hp->head_k,
            .head_v = hp->head_v,
            .kind = (int)kind,
        };
    }
    return CW_OK;
}

void cw_kvcache_free(struct cw_kvcache *c) {
    cw_large_free(c->base, c->bytes);
    free(c->layers);
    free(c->holders);
    free(c->writer);
    free(c->filled);
    free(c->free);
    memset(c, 0, sizeof *c);
}

/* ---- pages -------------------------------------------------------------------------------------
 */

bool cw_kvcache_take(struct cw_kvcache *c, uint32_t writer, uint32_t *page) {
    if (c->n_warm > 0) {
        *page = c->warm[--c->n_warm];
    } else if (c->n_free > 0) {
        *page = c->free[--c->n_free];
    } else {
        return false;
    }
    c->holders[*page] = 1;
    c->writer[*page] = writer;
    c->filled[*page] = 0;
    return true;
}

void cw_kvcache_hold(struct cw_kvcache *c, uint32_t page) {
    c->holders[page]++;
}

static void give_back(struct cw_kvcache *c, uint32_t page) {
    madvise(c->base + (size_t)page * c->page_bytes, c->page_bytes, MADV_DONTNEED);
    c->free[c->n_free++] = page;
}

void cw_kvcache_drop(struct cw_kvcache *c, uint32_t page) {
    if (--c->holders[page] > 0) {
        return;
    }
    if (c->n_warm < sizeof c->warm / sizeof *c->warm) {
        c->warm[c->n_warm++] = page;
    } else {
        give_back(c, page);
    }
}

void cw_kvcache_warm(struct cw_kvcache *c) {
    if (c->n_warm == 0 && c->n_free > 0) {
        uint32_t page = c->free[--c->n_free];
        cw_populate(c->base + (size_t)page * c->page_bytes, c->page_bytes);
        c->warm[c->n_warm++] = page;
    }
}

void cw_kvcache_trim(struct cw_kvcache *c) {
    while (c->n_warm > 0) {
        give_back(c, c->warm[--c->n_warm]);
    }
}
