/* SPDX-License-Identifier: MIT
 *
 * What tells one model file from another, for whatever is stored about it. */
#include "chinwag/snapshot.h"

#include "core/gguf/internal.h"
#include "core/model/hash.h"
#include "core/model/internal.h"

enum { SAMPLE = 4096, LANES = CW_MODEL_KEY / 8 };

static void absorb(uint64_t key[LANES], const void *data, size_t n) {
    for (uint64_t i = 0; i < LANES; i++) {
        key[i] = cw_hash(data, n, key[i] + i);
    }
}

static void absorb_u64(uint64_t key[LANES], uint64_t x) {
    absorb(key, &x, sizeof x);
}

void cw_model_key(const struct cw_model *m, uint8_t out[CW_MODEL_KEY]) {
    const struct cw_gguf *g = m->gguf;
    uint64_t key[LANES] = {0};
    absorb_u64(key, cw_gguf_file_bytes(g));
    for (size_t i = 0; i < g->n_keys; i++) {
        const struct cw_gguf_key *k = &g->keys[i].pub;
        absorb(key, k->name.data, k->name.len);
        absorb_u64(key, (uint64_t)k->kind << 32 | k->elem);
        absorb(key, k->data, (size_t)(g->keys[i].end - k->data));
    }
    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct cw_tensor *t = &g->tensors[i];
        uint64_t n = t->bytes < SAMPLE ? t->bytes : SAMPLE;
        absorb(key, t->name.data, t->name.len);
        absorb(key, t->dims, sizeof t->dims);
        absorb_u64(key, (uint64_t)t->type);
        absorb(key, t->data + (t->bytes - n) / 2, (size_t)n);
    }
    memcpy(out, key, CW_MODEL_KEY);
}
