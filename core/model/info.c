/* SPDX-License-Identifier: MIT
 *
 * Describing a file. A file that loads is bound as for loading, only that nothing runs it; of any
 * other the keys are read as far as they go. */
#include "chinwag/info.h"

#include "core/chat/kvcache.h"
#include "core/model/forward.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t elements(const struct cw_tensor *t) {
    return (uint64_t)t->dims[0] * (uint64_t)t->dims[1] * (uint64_t)t->dims[2] *
           (uint64_t)t->dims[3]; /* the reader has checked the product */
}

static int more_bytes(const void *a, const void *b) {
    const struct cw_info_type *x = a, *y = b;
    if (x->bytes != y->bytes) {
        return x->bytes > y->bytes ? -1 : 1;
    }
    return x->type < y->type ? -1 : x->type > y->type;
}

static int by_type(const void *a, const void *b) {
    const struct cw_info_type *x = a, *y = b;
    return x->type < y->type ? -1 : x->type > y->type;
}

/* Sorted, since in a hostile file each tensor may be of a type of its own. */
static void count_types(struct cw_info *info, const struct cw_gguf *g) {
    struct cw_info_type *types = cw_calloc(info->n_tensors + 1, sizeof *types);
    size_t n = 0;
    for (size_t i = 0; i < info->n_tensors; i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(g, i);
        types[i].type = (uint32_t)t->type;
        types[i].n_tensors = 1;
        types[i].n_params = elements(t);
        types[i].bytes = t->bytes;
    }
    qsort(types, info->n_tensors, sizeof *types, by_type);
    for (size_t i = 0; i < info->n_tensors; i++) {
        struct cw_info_type *last = n > 0 ? &types[n - 1] : NULL;
        if (last != NULL && last->type == types[i].type) {
            last->n_tensors++;
            last->n_params += types[i].n_params;
            last->bytes += types[i].bytes;
            continue;
        }
        types[n++] = types[i];
    }
    for (size_t i = 0; i < n; i++) {
        struct cw_info_type *e = &types[i];
        e->supported = cw_type_info(e->type) != NULL;
        cw_type_label(e->type, e->name);
    }
    qsort(types, n, sizeof *types, more_bytes);
    info->types = types;
    info->n_types = n;
}

/* The first tensor of a type that is not supported, or NULL. */
static const struct cw_tensor *unsupported_tensor(const struct cw_gguf *g) {
    for (size_t i = 0; i < cw_gguf_n_tensors(g); i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(g, i);
        if (cw_type_info((uint32_t)t->type) == NULL) {
            return t;
        }
    }
    return NULL;
}

/* A file that does not load: what the usual keys say. */
static void describe_unbound(struct cw_info *info, const struct cw_gguf *g) {
    struct cw_model_info *m = &info->model;
    struct cw_arch any = {.name = info->arch, .experts = CW_EXPERTS_MAYBE};
    struct cw_hparams hp;
    bool *local = NULL;
    struct cw_str arch;
    const struct cw_arch *row =
        cw_gguf_str(g, "general.architecture", &arch, NULL) == CW_OK ? cw_arch_find(arch) : NULL;
    cw_hparams_read(&hp, &local, g, row != NULL ? row : &any, NULL);
    free(local);
    cw_model_name(g, m->name, sizeof m->name);
    cw_quant_name(g, m->quant, sizeof m->quant);
    snprintf(m->arch, sizeof m->arch, "%.31s", info->arch);
    m->n_layers = hp.n_layers;
    m->n_embd = hp.n_embd;
    m->n_heads = hp.n_heads;
    m->n_kv_heads = hp.n_kv_heads;
    m->n_ff = hp.n_experts > 0 ? hp.n_ff_expert : hp.n_ff;
    m->head_k = hp.head_k;
    m->head_v = hp.head_v;
    m->n_ctx_train = hp.n_ctx_train;
    m->kv_bytes_token =
        (uint64_t)hp.n_layers * (uint64_t)hp.n_kv_heads * (uint64_t)(hp.head_k + hp.head_v) * 2;
    const struct cw_gguf_key *tokens = cw_gguf_key(g, "tokenizer.ggml.tokens");
    if (tokens != NULL && tokens->kind == CW_GGUF_ARRAY && tokens->n <= INT32_MAX) {
        m->n_vocab = (int)tokens->n;
    }
    for (size_t i = 0; i < info->n_types; i++) {
        m->n_params += info->types[i].n_params;
        m->weight_bytes += info->types[i].bytes;
    }
    m->float_file = cw_is_float_file(g);
    m->exact = !m->float_file;
}

static bool is_foreign(struct cw_str name) {
    static const char *const prefixes[] = {"general.", "tokenizer.", "split.", "quantize."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        size_t n = strlen(prefixes[i]);
        if (name.len >= n && memcmp(name.data, prefixes[i], n) == 0) {
            return true;
        }
    }
    return false;
}

static void list_unused(struct cw_info *info, const struct cw_gguf *g, const bool *bound) {
    info->unused_keys = cw_reallocarray(NULL, info->n_keys, sizeof *info->unused_keys);
    info->unused_tensors = cw_reallocarray(NULL, info->n_tensors, sizeof *info->unused_tensors);
    for (size_t i = 0; i < info->n_keys; i++) {
        struct cw_str name = cw_gguf_key_at(g, i)->name;
        if (!cw_gguf_key_used(g, i) && !is_foreign(name)) {
            info->unused_keys[info->n_unused_keys++] = name;
        }
    }
    for (size_t i = 0; i < info->n_tensors; i++) {
        if (bound != NULL ? !bound[i] : !cw_gguf_tensor_used(g, i)) {
            info->unused_tensors[info->n_unused_tensors++] = cw_gguf_tensor_at(g, i)->name;
        }
    }
}

/* Bind, with types that the loader could not look at refused first. */
static int bind(struct cw_model **m, const struct cw_gguf *g, struct cw_err *err) {
    const struct cw_tensor *t = unsupported_tensor(g);
    const struct cw_arch *arch;
    *m = NULL;
    int rc = cw_arch_of(&arch, g, err);
    if (rc != CW_OK) {
        return rc;
    }
    if (t != NULL) {
        const char *name = cw_type_known_name((uint32_t)t->type);
        return cw_fail(err, CW_EUNSUP, "tensor '%.*s' is of type %u%s%s%s, which is not supported",
                       (int)(t->name.len < 96 ? t->name.len : 96), t->name.data, (unsigned)t->type,
                       name != NULL ? " (" : "", name != NULL ? name : "", name != NULL ? ")" : "");
    }
    return cw_model_bind(m, g, err);
}

struct cw_info *cw_info_create(const struct cw_gguf *g) {
    struct cw_info *info = cw_calloc(1, sizeof *info);
    struct cw_model *m;
    struct cw_str arch;
    struct cw_err err = {0};
    info->version = cw_gguf_version(g);
    info->n_keys = cw_gguf_n_keys(g);
    info->n_tensors = cw_gguf_n_tensors(g);
    info->file_bytes = cw_gguf_file_bytes(g);
    info->n_ctx_reason = "";
    if (cw_gguf_str(g, "general.architecture", &arch, NULL) == CW_OK) {
        cw_printable(info->arch, sizeof info->arch, arch.data, arch.len);
        info->arch_supported = cw_arch_find(arch) != NULL;
    }
    count_types(info, g);
    info->loads = bind(&m, g, &err) == CW_OK;
    if (!info->loads) {
        snprintf(info->why_not, sizeof info->why_not, "%s", err.text);
        describe_unbound(info, g);
        list_unused(info, g, NULL);
        return info;
    }
    info->model = m->info;
    info->n_ctx_default = cw_kvcache_default_n_ctx(m, CW_KV_F16, &info->n_ctx_reason);
    info->kv_q8_bytes_token = cw_kvcache_bytes(m, 256, CW_KV_Q8_0) / 256;
    info->notices = m->notices; /* taken over */
    info->n_notices = m->n_notices;
    m->notices = NULL;
    m->n_notices = 0;
    list_unused(info, g, m->bound);
    cw_model_destroy(m);
    return info;
}

void cw_info_destroy(struct cw_info *info) {
    if (info == NULL) {
        return;
    }
    for (size_t i = 0; i < info->n_notices; i++) {
        free(info->notices[i]);
    }
    free(info->notices);
    free(info->types);
    free(info->unused_keys);
    free(info->unused_tensors);
    free(info);
}

int cw_info_memory(const struct cw_gguf *g, uint32_t n_ctx, enum cw_kv_type kv, int chunk,
                   struct cw_info_memory *out, struct cw_err *err) {
    struct cw_model *m;
    const char *reason;
    memset(out, 0, sizeof *out);
    int rc = bind(&m, g, err);
    if (rc != CW_OK) {
        return rc;
    }
    reason = "given";
    n_ctx = n_ctx != 0 ? n_ctx : cw_kvcache_default_n_ctx(m, kv, &reason);
    chunk = chunk > 0 ? chunk : CW_DEFAULT_CHUNK;
    chunk = chunk < CW_MAX_CHUNK ? chunk : CW_MAX_CHUNK;
    chunk = (uint32_t)chunk < n_ctx ? chunk : (int)n_ctx;
    if (cw_kvcache_bytes(m, 1, kv) == 0) {
        rc = cw_fail(err, CW_EUNSUP, "this cache type does not fit heads of %d and %d",
                     m->hp.head_k, m->hp.head_v);
    } else if ((out->kv = cw_kvcache_bytes(m, n_ctx, kv)) == 0) {
        rc = cw_fail(err, CW_ENOMEM, "a context of %u tokens is more than can be addressed", n_ctx);
    } else {
        out->n_ctx = n_ctx;
        out->n_ctx_reason = reason;
        out->weights = m->info.weight_bytes;
        out->scratch = cw_scratch_bytes(m, chunk) + cw_session_extra_bytes(m, n_ctx);
        out->total = out->weights + out->kv + out->scratch;
    }
    cw_model_destroy(m);
    return rc;
}
