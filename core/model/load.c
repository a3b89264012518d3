/* SPDX-License-Identifier: MIT
 *
 * From an open file to a model: every tensor the architecture needs is found, its shape compared
 * with the hyperparameters, and bound; what is left over is for leftovers.c to judge. */
#include "core/model/internal.h"
#include "core/model/memory.h"
#include "core/model/pager.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first failure sticks; every binder does nothing after it. */
struct loader {
    struct cw_model *m;
    const struct cw_gguf *g;
    struct cw_err *err;
    int rc;
    char name[128];
};

unsigned cw_weight_kinds(const struct cw_weight *w) {
    return w->data != NULL ? 1u << cw_type_info((uint32_t)w->type)->act : 0;
}

void cw_model_add_notice(struct cw_model *m, const char *fmt, ...) {
    char raw[256], clean[512];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof raw ? (size_t)n : sizeof raw - 1;
    cw_printable(clean, sizeof clean, raw, len);
    m->notices = cw_reallocarray(m->notices, m->n_notices + 1, sizeof *m->notices);
    m->notices[m->n_notices++] = cw_strdup(clean);
}

/* ---- binding -----------------------------------------------------------------------------------
 */

/* "blk.LAYER.BASE.SUFFIX", or "BASE.SUFFIX" for layer -1, in l->name. */
static const char *tensor_name(struct loader *l, int layer, const char *base, const char *suffix) {
    if (layer >= 0) {
        snprintf(l->name, sizeof l->name, "blk.%d.%s.%s", layer, base, suffix);
    } else {
        snprintf(l->name, sizeof l->name, "%s.%s", base, suffix);
    }
    return l->name;
}

/* The tensor just named, of the shape [d2][d1][d0]; NULL when it is not there. */
static const struct cw_tensor *find(struct loader *l, int64_t d0, int64_t d1, int64_t d2) {
    const struct cw_tensor *t = l->rc == CW_OK ? cw_gguf_tensor(l->g, l->name) : NULL;
    if (t == NULL) {
        return NULL;
    }
    if (t->dims[0] != d0 || t->dims[1] != d1 || t->dims[2] != d2 || t->dims[3] != 1) {
        l->rc = cw_fail(l->err, CW_EFORMAT,
                        "tensor '%s' is %" PRId64 " x %" PRId64 " x %" PRId64 " where %" PRId64
                        " x %" PRId64 " x %" PRId64 " is needed",
                        l->name, t->dims[0], t->dims[1], t->dims[2], d0, d1, d2);
        return NULL;
    }
    l->m->bound[t - cw_gguf_tensor_at(l->g, 0)] = true;
    return t;
}

static void missing(struct loader *l) {
    if (l->rc == CW_OK) {
        l->rc = cw_fail(l->err, CW_EFORMAT, "tensor '%s' is missing", l->name);
    }
}

/* An f32 copy of `rows` rows of n, owned by the model; NULL when absent and not `needed`. */
static const float *bind_vector(struct loader *l, int layer, const char *base, const char *suffix,
                                int n, int rows, bool needed) {
    tensor_name(l, layer, base, suffix);
    const struct cw_tensor *t = find(l, n, rows, 1);
    if (t == NULL) {
        if (needed) {
            missing(l);
        }
        return NULL;
    }
    struct cw_model *m = l->m;
    float *v = cw_reallocarray(NULL, (size_t)n * (size_t)rows, sizeof *v);
    struct cw_weight w;
    memset(&w, 0, sizeof w);
    cw_weight_init(&w, t, 0, rows);
    for (int r = 0; r < rows; r++) {
        cw_weight_row(&w, r, v + (size_t)r * (size_t)n);
    }
    if (m->n_vectors == m->cap_vectors) {
        m->cap_vectors = m->cap_vectors < 32 ? 64 : m->cap_vectors * 2;
        m->vectors = cw_reallocarray(m->vectors, m->cap_vectors, sizeof *m->vectors);
    }
    m->vectors[m->n_vectors++] = v;
    return v;
}

/* A norm's weight and, for LayerNorm, bias. */
static void bind_norm(struct loader *l, int layer, const char *base, int n, const float **w,
                      const float **bias) {
    *w = bind_vector(l, layer, base, "weight", n, 1, true);
    if (bias != NULL && l->m->arch->norm == CW_NORM_LAYER) {
        *bias = bind_vector(l, layer, base, "bias", n, 1, true);
    }
}

/* base.weight [rows, cols] and base.bias [rows]. */
static void bind_matrix(struct loader *l, int layer, const char *base, int rows, int cols,
                        bool bias_needed, struct cw_weight *w) {
    tensor_name(l, layer, base, "weight");
    const struct cw_tensor *t = find(l, cols, rows, 1);
    if (t == NULL) {
        missing(l);
        return;
    }
    cw_weight_init(w, t, 0, rows);
    w->bias = bind_vector(l, layer, base, "bias", rows, 1, bias_needed);
}

/* n matrices out of one tensor: rows[i] rows each, one after another. */
static void bind_slices(struct loader *l, int layer, const char *base, const int *rows, int n,
                        int cols, bool bias_needed, struct cw_weight *const *w) {
    int total = 0;
    for (int i = 0; i < n; i++) {
        total += rows[i];
    }
    tensor_name(l, layer, base, "weight");
    const struct cw_tensor *t = find(l, cols, total, 1);
    if (t == NULL) {
        missing(l);
        return;
    }
    const float *bias = bind_vector(l, layer, base, "bias", total, 1, bias_needed);
    int first = 0;
    for (int i = 0; i < n; i++) {
        cw_weight_init(w[i], t, first, rows[i]);
        w[i]->bias = bias != NULL ? bias + first : NULL;
        first += rows[i];
    }
}

/* One matrix an expert: ffn_PART_exps.weight [n_experts, rows, cols] with ffn_PART_exps.bias
 * [n_experts, rows], or, in files of 2023, ffn_PART.E.weight [rows, cols] each. */
static void bind_experts(struct loader *l, int layer, const char *part, int rows, int cols,
                         bool bias_needed, struct cw_weight **out) {
    int n = l->m->hp.n_experts;
    char base[32];
    snprintf(base, sizeof base, "ffn_%s_exps", part);
    const struct cw_tensor *t = cw_gguf_tensor(l->g, tensor_name(l, layer, base, "weight"));
    bool whole = t != NULL;
    const float *bias = NULL;
    *out = cw_calloc((size_t)n, sizeof **out);
    if (whole) {
        t = find(l, cols, rows, n);
        bias = bind_vector(l, layer, base, "bias", rows, n, bias_needed);
    }
    for (int e = 0; e < n && l->rc == CW_OK; e++) {
        struct cw_weight *w = &(*out)[e];
        if (whole) {
            cw_weight_init(w, t, (int64_t)e * rows, rows);
            w->bias = bias != NULL ? bias + (size_t)e * (size_t)rows : NULL;
            continue;
        }
        snprintf(base, sizeof base, "ffn_%s.%d", part, e);
        tensor_name(l, layer, base, "weight");
        if (e == 0 && cw_gguf_tensor(l->g, l->name) == NULL) { /* the name of today */
            snprintf(base, sizeof base, "ffn_%s_exps", part);
            tensor_name(l, layer, base, "weight");
            missing(l);
            return;
        }
        bind_matrix(l, layer, base, rows, cols, bias_needed, w);
    }
}

/* ---- layers ------------------------------------------------------------------------------------
 */

static void bind_attention(struct loader *l, int i, struct cw_layer *y) {
    const struct cw_arch *a = l->m->arch;
    const struct cw_hparams *hp = &l->m->hp;
    int nq = hp->n_heads * hp->head_k, nk = hp->n_kv_heads * hp->head_k;
    int nv = hp->n_kv_heads * hp->head_v, no = hp->n_heads * hp->head_v;
    bool bias = (a->biases & CW_BIAS_QKV) != 0;
    tensor_name(l, i, "attn_qkv", "weight");
    if (cw_gguf_tensor(l->g, l->name) != NULL) {
        const int rows[3] = {nq, nk, nv};
        struct cw_weight *const w[3] = {&y->q, &y->k, &y->v};
        bind_slices(l, i, "attn_qkv", rows, 3, hp->n_embd, bias, w);
    } else if (cw_gguf_tensor(l->g, tensor_name(l, i, "attn_q", "weight")) == NULL) {
        if (l->rc == CW_OK) {
            l->rc =
                cw_fail(l->err, CW_EFORMAT,
                        "tensor '%s' is missing, and so is 'blk.%d.attn_qkv.weight'", l->name, i);
        }
    } else {
        bind_matrix(l, i, "attn_q", nq, hp->n_embd, bias, &y->q);
        bind_matrix(l, i, "attn_k", nk, hp->n_embd, bias, &y->k);
        bind_matrix(l, i, "attn_v", nv, hp->n_embd, bias, &y->v);
    }
    bind_matrix(l, i, "attn_output", hp->n_embd, no, (a->biases & CW_BIAS_OUT) != 0, &y->out);
    if (a->qk_norm != CW_QK_NORM_NONE) {
        bool all = a->qk_norm == CW_QK_NORM_ALL;
        bind_norm(l, i, "attn_q_norm", all ? nq : hp->head_k, &y->q_norm, NULL);
        bind_norm(l, i, "attn_k_norm", all ? nk : hp->head_k, &y->k_norm, NULL);
    }
    if (a->sinks) {
        y->sinks = bind_vector(l, i, "attn_sinks", "weight", hp->n_heads, 1, true);
    }
}

static void bind_ffn(struct loader *l, int i, struct cw_layer *y) {
    const struct cw_arch *a = l->m->arch;
    const struct cw_hparams *hp = &l->m->hp;
    bool bias = (a->biases & CW_BIAS_FFN) != 0;
    if (hp->n_experts > 0) {
        bind_matrix(l, i, "ffn_gate_inp", hp->n_experts, hp->n_embd, bias, &y->router);
        bind_experts(l, i, "gate", hp->n_ff_expert, hp->n_embd, bias, &y->experts_gate);
        bind_experts(l, i, "up", hp->n_ff_expert, hp->n_embd, bias, &y->experts_up);
        bind_experts(l, i, "down", hp->n_embd, hp->n_ff_expert, bias, &y->experts_down);
        return;
    }
    if (a->ffn == CW_FFN_GATED_FUSED) {
        const int rows[2] = {hp->n_ff, hp->n_ff};
        struct cw_weight *const w[2] = {&y->gate, &y->up};
        bind_slices(l, i, "ffn_up", rows, 2, hp->n_embd, bias, w);
    } else {
        bind_matrix(l, i, "ffn_up", hp->n_ff, hp->n_embd, bias, &y->up);
        if (a->ffn == CW_FFN_GATED) {
            bind_matrix(l, i, "ffn_gate", hp->n_ff, hp->n_embd, bias, &y->gate);
        }
    }
    bind_matrix(l, i, "ffn_down", hp->n_embd, hp->n_ff, bias, &y->down);
}

static void bind_layer(struct loader *l, int i, struct cw_layer *y) {
    const struct cw_arch *a = l->m->arch;
    int n = l->m->hp.n_embd;
    if (!a->no_pre_norm) {
        bind_norm(l, i, "attn_norm", n, &y->attn_norm, &y->attn_norm_bias);
        bind_norm(l, i, a->ffn_norm != NULL ? a->ffn_norm : "ffn_norm", n, &y->ffn_norm,
                  &y->ffn_norm_bias);
    }
    if (a->post_norm) {
        bind_norm(l, i, "post_attention_norm", n, &y->post_attn_norm, NULL);
        bind_norm(l, i, "post_ffw_norm", n, &y->post_ffn_norm, NULL);
    }
    bind_attention(l, i, y);
    bind_ffn(l, i, y);
    if (l->rc != CW_OK) {
        return;
    }
    y->attn_kinds = cw_weight_kinds(&y->q) | cw_weight_kinds(&y->k) | cw_weight_kinds(&y->v);
    y->out_kinds = cw_weight_kinds(&y->out);
    y->ffn_kinds = cw_weight_kinds(&y->gate) | cw_weight_kinds(&y->up);
    y->down_kinds = cw_weight_kinds(&y->down);
    if (y->router.data != NULL) {
        y->router_kinds = cw_weight_kinds(&y->router);
        y->experts_kinds = cw_weight_kinds(y->experts_gate) | cw_weight_kinds(y->experts_up);
        y->experts_down_kinds = cw_weight_kinds(y->experts_down);
    }
}

/* ---- the whole ---------------------------------------------------------------------------------
 */

static void bind_ends(struct loader *l) {
    struct cw_model *m = l->m;
    struct cw_hparams *hp = &m->hp;
    tensor_name(l, -1, "token_embd", "weight");
    const struct cw_tensor *t = cw_gguf_tensor(l->g, l->name);
    if (t == NULL) {
        missing(l);
        return;
    }
    if (t->dims[1] > INT32_MAX) {
        l->rc =
            cw_fail(l->err, CW_EFORMAT, "tensor '%s' has %" PRId64 " rows", l->name, t->dims[1]);
        return;
    }
    hp->n_vocab = (int)t->dims[1];
    bind_matrix(l, -1, "token_embd", hp->n_vocab, hp->n_embd, false, &m->embd);
    tensor_name(l, -1, "output", "weight");
    if (cw_gguf_tensor(l->g, l->name) != NULL) {
        bind_matrix(l, -1, "output", hp->n_vocab, hp->n_embd, false, &m->head);
    } else { /* tied: the embeddings are the output matrix too */
        m->head = m->embd;
        m->head.bias = bind_vector(l, -1, "output", "bias", hp->n_vocab, 1, false);
    }
    m->head_kinds = cw_weight_kinds(&m->head);
    bind_norm(l, -1, "output_norm", hp->n_embd, &m->output_norm, &m->output_norm_bias);
    if (m->arch->learned_positions) {
        tensor_name(l, -1, "position_embd", "weight");
        t = cw_gguf_tensor(l->g, l->name);
        int rows = t != NULL && t->dims[1] <= INT32_MAX ? (int)t->dims[1] : 1;
        bind_matrix(l, -1, "position_embd", rows, hp->n_embd, false, &m->positions);
        hp->max_positions = (uint32_t)rows;
    }
    if (m->arch->rope != CW_ROPE_NONE) {
        int pairs = hp->n_rot / 2;
        m->rope_freqs = bind_vector(l, -1, "rope_freqs", "weight", pairs, 1, false);
        bool two = cw_gguf_tensor(l->g, "rope_factors_long.weight") != NULL ||
                   cw_gguf_tensor(l->g, "rope_factors_short.weight") != NULL;
        m->rope_long = bind_vector(l, -1, "rope_factors_long", "weight", pairs, 1, two);
        m->rope_short = bind_vector(l, -1, "rope_factors_short", "weight", pairs, 1, two);
        if (l->rc == CW_OK) {
            l->rc = cw_rope_check(m, l->err);
        }
    }
}

/* Some conversions switch the rotation off by a key. */
static bool rotation_is_off(struct loader *l) {
    bool finetuned = true;
    if (l->m->arch->rope_finetuned_key && l->rc == CW_OK) {
        char key[96];
        snprintf(key, sizeof key, "%s.rope.scaling.finetuned", l->m->arch->name);
        int rc = cw_gguf_bool(l->g, key, &finetuned, l->err);
        l->rc = rc == CW_ENOENT ? CW_OK : rc;
    }
    return !finetuned || l->m->arch->rope == CW_ROPE_NONE;
}

static void bind_layers(struct loader *l, const bool *local) {
    struct cw_model *m = l->m;
    int every = m->arch->no_rope_every;
    bool off = rotation_is_off(l);
    m->layers = cw_calloc((size_t)m->hp.n_layers, sizeof *m->layers);
    for (int i = 0; i < m->hp.n_layers && l->rc == CW_OK; i++) {
        m->layers[i].local = local[i];
        m->layers[i].rotates = !off && !(every > 0 && (i + 1) % every == 0);
        bind_layer(l, i, &m->layers[i]);
    }
}

/* The vocabulary's tokens must all have a row; more rows are padding. */
static void check_vocabulary(struct loader *l) {
    const struct cw_gguf_key *k = cw_gguf_key(l->g, "tokenizer.ggml.tokens");
    int rows = l->m->hp.n_vocab;
    if (l->rc != CW_OK || k == NULL || k->kind != CW_GGUF_ARRAY) {
        return;
    }
    if (k->n > (uint64_t)rows) {
        l->rc =
            cw_fail(l->err, CW_EFORMAT,
                    "the vocabulary has %" PRIu64 " tokens but 'token_embd.weight' only %d rows",
                    k->n, rows);
    } else if (k->n < (uint64_t)rows) {
        cw_model_add_notice(
            l->m, "the vocabulary has %" PRIu64 " tokens, the model %d rows: the rest is padding",
            k->n, rows);
    }
}

/* What file and table say; the machine's part is added when the model is made ready to run. */
static void describe(struct cw_model *m) {
    struct cw_model_info *info = &m->info;
    const struct cw_hparams *hp = &m->hp;
    cw_model_name(m->gguf, info->name, sizeof info->name);
    snprintf(info->arch, sizeof info->arch, "%s", m->arch->name);
    cw_quant_name(m->gguf, info->quant, sizeof info->quant);
    info->n_layers = hp->n_layers;
    info->n_embd = hp->n_embd;
    info->n_heads = hp->n_heads;
    info->n_kv_heads = hp->n_kv_heads;
    info->n_ff = hp->n_experts > 0 ? hp->n_ff_expert : hp->n_ff;
    info->n_vocab = hp->n_vocab;
    info->head_k = hp->head_k;
    info->head_v = hp->head_v;
    info->n_ctx_train = hp->n_ctx_train;
    for (size_t i = 0; i < cw_gguf_n_tensors(m->gguf); i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(m->gguf, i);
        info->n_params += (uint64_t)t->dims[0] * (uint64_t)t->dims[1] * (uint64_t)t->dims[2] *
                          (uint64_t)t->dims[3];
        info->weight_bytes += t->bytes;
    }
    info->kv_bytes_token =
        (uint64_t)hp->n_layers * (uint64_t)hp->n_kv_heads * (uint64_t)(hp->head_k + hp->head_v) * 2;
    info->float_file = cw_is_float_file(m->gguf);
    info->exact = !info->float_file;
}

static void pack_weights(struct cw_model *m) {
    for (int i = 0; i < m->hp.n_layers; i++) {
        struct cw_layer *y = &m->layers[i];
        struct cw_weight *const w[] = {&y->q,  &y->k,    &y->v,    &y->out,
                                       &y->up, &y->gate, &y->down, &y->router};
        for (size_t k = 0; k < sizeof w / sizeof *w; k++) {
            if (w[k]->data != NULL) {
                cw_weight_pack(m->compute, w[k]);
            }
        }
        for (int e = 0; e < m->hp.n_experts; e++) {
            cw_weight_pack(m->compute, &y->experts_gate[e]);
            cw_weight_pack(m->compute, &y->experts_up[e]);
            cw_weight_pack(m->compute, &y->experts_down[e]);
        }
    }
    cw_weight_pack(m->compute, &m->head);
}

static int start_compute(struct cw_model *m, const struct cw_model_options *opt,
                         struct cw_err *err) {
    const char *why = NULL;
    bool want_blas = m->info.float_file && !opt->exact;
    struct cw_compute_options o = {
        .n_threads = opt->n_threads,
        .isa = opt->isa,
        .blas = want_blas,
        .pack_limit = cw_memory_read().available / 2,
    };
    int rc = cw_compute_create(&m->compute, &o, err);
    if (rc != CW_OK) {
        return rc;
    }
    m->info.blas = cw_compute_blas(m->compute, &why);
    if (want_blas && !m->info.blas && why != NULL) {
        cw_model_add_notice(m, "%s", why);
    }
    m->info.exact = !m->info.blas;
    m->info.n_threads = cw_compute_n_threads(m->compute);
    m->info.isa = cw_compute_isa(m->compute);
    pack_weights(m);
    return CW_OK;
}

int cw_model_bind(struct cw_model **out, const struct cw_gguf *g, struct cw_err *err) {
    struct cw_model *m = cw_calloc(1, sizeof *m);
    struct loader l = {.m = m, .g = g, .err = err};
    bool *local = NULL;
    *out = NULL;
    m->gguf = g;
    m->bound = cw_calloc(cw_gguf_n_tensors(g), sizeof *m->bound);
    l.rc = cw_arch_of(&m->arch, g, err);
    if (l.rc == CW_OK) {
        l.rc = cw_hparams_read(&m->hp, &local, g, m->arch, err);
    }
    if (l.rc == CW_OK) {
        bind_ends(&l);
        bind_layers(&l, local);
        check_vocabulary(&l);
    }
    if (l.rc == CW_OK) {
        l.rc = cw_model_leftovers(m, err);
    }
    if (l.rc == CW_OK) {
        describe(m);
    }
    free(local);
    if (l.rc != CW_OK) {
        cw_model_destroy(m);
        return l.rc;
    }
    *out = m;
    return CW_OK;
}

int cw_model_load(struct cw_model **out, const struct cw_gguf *g,
                  const struct cw_model_options *opt, struct cw_err *err) {
    static const struct cw_model_options defaults = {.isa = CW_ISA_AUTO};
    struct cw_err why = {0};
    struct cw_model *m;
    int rc = cw_model_bind(&m, g, &why);
    *out = NULL;
    if (rc == CW_OK) {
        m->pager = cw_pager_start(m);
        rc = start_compute(m, opt != NULL ? opt : &defaults, &why);
    }
    if (cw_gguf_damaged(g)) { /* then any of the above may have failed for that reason */
        rc = cw_fail(&why, CW_EIO, "the file was cut short while it was read");
    }
    if (rc != CW_OK) {
        cw_model_destroy(m);
        return cw_fail(err, rc, "%s: %s", cw_gguf_path(g), why.text);
    }
    *out = m;
    return CW_OK;
}

void cw_model_destroy(struct cw_model *m) {
    if (m == NULL) {
        return;
    }
    cw_pager_stop(m->pager);
    for (int i = 0; m->layers != NULL && i < m->hp.n_layers; i++) {
        struct cw_layer *y = &m->layers[i];
        struct cw_weight *const w[] = {&y->q,  &y->k,    &y->v,    &y->out,
                                       &y->up, &y->gate, &y->down, &y->router};
        for (size_t k = 0; k < sizeof w / sizeof *w; k++) {
            cw_weight_free(w[k]);
        }
        struct cw_weight *const experts[] = {y->experts_gate, y->experts_up, y->experts_down};
        for (size_t k = 0; k < sizeof experts / sizeof *experts; k++) {
            for (int e = 0; experts[k] != NULL && e < m->hp.n_experts; e++) {
                cw_weight_free(&experts[k][e]);
            }
            free(experts[k]);
        }
    }
    cw_weight_free(&m->head);
    cw_compute_destroy(m->compute);
    for (size_t i = 0; i < m->n_vectors; i++) {
        free(m->vectors[i]);
    }
    for (size_t i = 0; i < m->n_notices; i++) {
        free(m->notices[i]);
    }
    free(m->vectors);
    free(m->bound);
    free(m->notices);
    free(m->layers);
    free(m);
}

const struct cw_model_info *cw_model_get_info(const struct cw_model *m) {
    return &m->info;
}

const char *cw_model_notice(const struct cw_model *m, size_t i) {
    return i < m->n_notices ? m->notices[i] : NULL;
}
