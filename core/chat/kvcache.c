/* SPDX-License-Identifier: MIT
 *
 * Reserving the cache. */
#include "core/chat/kvcache.h"

#include "core/model/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    CELLS_STEP = 256, /* attention goes by chunks of 256 cells */
    DEFAULT_N_CTX = 8192
};

static uint32_t whole_chunks(uint32_t n_ctx) {
    return (n_ctx + CELLS_STEP - 1) / CELLS_STEP * CELLS_STEP;
}

static uint64_t layer_bytes(const struct cw_model *m, uint32_t n_cells, enum cw_kv_type kind) {
    const struct cw_hparams *hp = &m->hp;
    if (kind == CW_KV_Q8_0 && (hp->head_k % 32 != 0 || hp->head_v % 32 != 0)) {
        return 0;
    }
    uint64_t bytes = cw_kv_layer_bytes(n_cells, hp->n_kv_heads, hp->head_k, hp->head_v, (int)kind);
    return (bytes + 63) & ~(uint64_t)63;
}

uint64_t cw_kvcache_bytes(const struct cw_model *m, uint32_t n_ctx, enum cw_kv_type kind) {
    uint64_t one, all;
    if (n_ctx > UINT32_MAX - CELLS_STEP) {
        return 0;
    }
    /* Bytes grow by whole steps: multiply those in 64 bits with a check, whatever the size. */
    uint64_t steps = whole_chunks(n_ctx) / CELLS_STEP;
    if (__builtin_mul_overflow(steps, layer_bytes(m, CELLS_STEP, kind), &one) ||
        __builtin_mul_overflow(one, (uint64_t)m->hp.n_layers, &all) || all > SIZE_MAX / 2) {
        return 0;
    }
    return all;
}

/* How many cells fit in three quarters of what the weights leave of the memory. */
static uint32_t cells_in_memory(const struct cw_model *m, enum cw_kv_type kind) {
    /* Once in the page cache, once as the kernels lay them out. */
    uint64_t weights = 2 * m->info.weight_bytes, room = cw_memory_read().available;
    uint64_t step = cw_kvcache_bytes(m, CELLS_STEP, kind);
    if (room == UINT64_MAX || step == 0) {
        return UINT32_MAX;
    }
    room = (room > weights ? room - weights : room / 4) / 4 * 3;
    uint64_t cells = room / step * CELLS_STEP;
    return cells < CELLS_STEP ? CELLS_STEP : cells < CW_MAX_N_CTX ? (uint32_t)cells : CW_MAX_N_CTX;
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

int cw_kvcache_create(struct cw_kvcache *c, const struct cw_model *m, uint32_t n_ctx,
                      enum cw_kv_type kind, struct cw_err *err) {
    const struct cw_hparams *hp = &m->hp;
    memset(c, 0, sizeof *c);
    if (layer_bytes(m, CELLS_STEP, kind) == 0) {
        return cw_fail(err, CW_EUNSUP, "this cache type does not fit heads of %d and %d",
                       hp->head_k, hp->head_v);
    }
    uint64_t sum = cw_kvcache_bytes(m, n_ctx, kind);
    uint32_t n_cells = whole_chunks(n_ctx);
    uint64_t each = sum != 0 ? layer_bytes(m, n_cells, kind) : 0;
    if (sum != 0 && !__builtin_mul_overflow(each, (uint64_t)hp->n_layers, &sum) &&
        sum <= SIZE_MAX / 2) {
        c->base = cw_large_alloc((size_t)sum);
    }
    if (c->base == NULL) {
        return cw_fail(err, CW_ENOMEM, "no memory for a context of %" PRIu32 " tokens", n_ctx);
    }
    c->bytes = sum;
    c->n_layers = hp->n_layers;
    c->layers = cw_calloc((size_t)hp->n_layers, sizeof *c->layers);
    for (int i = 0; i < hp->n_layers; i++) {
        c->layers[i] = (struct cw_kv_layer){
            .base = (char *)c->base + (uint64_t)i * each,
            .n_cells = n_cells,
            .n_kv_heads = hp->n_kv_heads,
            .head_k = hp->head_k,
            .head_v = hp->head_v,
            .kind = (int)kind,
        };
    }
    return CW_OK;
}

void cw_kvcache_free(struct cw_kvcache *c) {
    cw_large_free(c->base, (size_t)c->bytes);
    free(c->layers);
    memset(c, 0, sizeof *c);
}
