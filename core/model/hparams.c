/* SPDX-License-Identifier: MIT
 *
 * Hyperparameters: what the metadata says, checked before anything is sized by it. Every key has
 * the form ARCHITECTURE.name; the names below leave the first part out. */
#include "core/model/internal.h"

#include "core/compute/maths.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIM = 1 << 24 }; /* far above any width, small enough for products of two in 64 bits */

/* The first failure sticks; every reader does nothing after it. */
struct reader {
    const struct cw_gguf *g;
    const struct cw_arch *arch;
    struct cw_err *err;
    int rc;
    char name[128]; /* of the key last asked for */
};

static const char *full_name(struct reader *r, const char *key) {
    snprintf(r->name, sizeof r->name, "%s.%s", r->arch->name, key);
    return r->name;
}

static void missing(struct reader *r) {
    r->rc = cw_fail(r->err, CW_EFORMAT, "key '%s' is missing", r->name);
}

/* The number that an array with an entry a layer repeats. Layers of different shapes are refused.
 */
static int get_repeated(struct reader *r, uint32_t *out) {
    int32_t *list = NULL;
    size_t n = 0;
    int rc = cw_gguf_i32s(r->g, r->name, &list, &n, r->err);
    for (size_t i = 0; i < n && rc == CW_OK; i++) {
        if (list[i] < 0 || list[i] != list[0]) {
            rc = cw_fail(r->err, CW_EUNSUP,
                         "key '%s' differs from layer to layer, which is not supported", r->name);
        }
    }
    if (rc == CW_OK && n == 0) {
        rc = cw_fail(r->err, CW_EFORMAT, "key '%s' is an empty array", r->name);
    }
    if (rc == CW_OK) {
        *out = (uint32_t)list[0];
    }
    free(list);
    return rc;
}

/* A count within low..high; `absent` if the file has none, and an error if that is below low. */
static int get_int(struct reader *r, const char *key, int low, int high, int absent) {
    uint32_t v = 0;
    if (r->rc != CW_OK) {
        return low;
    }
    const struct cw_gguf_key *k = cw_gguf_key(r->g, full_name(r, key));
    int rc = k != NULL && k->kind == CW_GGUF_ARRAY ? get_repeated(r, &v)
                                                   : cw_gguf_u32(r->g, r->name, &v, r->err);
    if (rc == CW_ENOENT) {
        if (absent < low) {
            missing(r);
            return low;
        }
        return absent;
    }
    if (rc != CW_OK) {
        r->rc = rc;
        return low;
    }
    if (v > (uint32_t)high || (int)v < low) {
        r->rc = cw_fail(r->err, CW_EFORMAT, "key '%s' is %" PRIu32 ", not from %d to %d", r->name,
                        v, low, high);
        return low;
    }
    return (int)v;
}

static uint32_t get_u32(struct reader *r, const char *key, uint32_t absent) {
    uint32_t v = absent;
    if (r->rc == CW_OK) {
        int rc = cw_gguf_u32(r->g, full_name(r, key), &v, r->err);
        r->rc = rc == CW_ENOENT ? CW_OK : rc;
    }
    return v;
}

static double get_float(struct reader *r, const char *key, double absent) {
    float v = 0.0f;
    if (r->rc != CW_OK) {
        return absent;
    }
    int rc = cw_gguf_f32(r->g, full_name(r, key), &v, r->err);
    if (rc == CW_ENOENT) {
        return absent;
    }
    r->rc = rc;
    return (double)v;
}

/* The same within low..high. */
static double get_float_in(struct reader *r, const char *key, double absent, double low,
                           double high) {
    double v = get_float(r, key, absent);
    if (r->rc == CW_OK && !(v >= low && v <= high)) {
        r->rc =
            cw_fail(r->err, CW_EFORMAT, "key '%s' is %g, not from %g to %g", r->name, v, low, high);
    }
    return v;
}

/* A scale whose 0 means none. */
static float get_scale(struct reader *r, const char *key, float none) {
    double v = get_float_in(r, key, 0.0, 0.0, 1e6);
    return v == 0.0 ? none : (float)v;
}

/* ---- sizes -------------------------------------------------------------------------------------
 */

static void read_sizes(struct reader *r, struct cw_hparams *hp) {
    hp->n_layers = get_int(r, "block_count", 1, MAX_DIM, 0);
    hp->n_embd = get_int(r, "embedding_length", 1, MAX_DIM, 0);
    hp->n_heads = get_int(r, "attention.head_count", 1, 1 << 16, 0);
    hp->n_kv_heads = get_int(r, "attention.head_count_kv", 1, 1 << 16, hp->n_heads);
    if (r->rc == CW_OK && hp->n_heads % hp->n_kv_heads != 0) {
        r->rc = cw_fail(r->err, CW_EFORMAT, "key '%s' (%d) does not divide the %d heads", r->name,
                        hp->n_kv_heads, hp->n_heads);
    }
    int even = hp->n_embd % hp->n_heads == 0 ? hp->n_embd / hp->n_heads : 0;
    hp->head_k = get_int(r, "attention.key_length", 1, 1 << 16, even);
    hp->head_v = get_int(r, "attention.value_length", 1, 1 << 16, even);
    if (r->rc == CW_OK && (int64_t)hp->n_heads * hp->head_k > MAX_DIM) {
        r->rc = cw_fail(r->err, CW_EFORMAT, "%d heads of %d are too wide", hp->n_heads, hp->head_k);
    }
    if (r->rc == CW_OK && (int64_t)hp->n_heads * hp->head_v > MAX_DIM) {
        r->rc = cw_fail(r->err, CW_EFORMAT, "%d heads of %d are too wide", hp->n_heads, hp->head_v);
    }
    bool causal = true;
    if (r->rc == CW_OK) {
        int rc = cw_gguf_bool(r->g, full_name(r, "attention.causal"), &causal, r->err);
        r->rc = rc == CW_ENOENT ? CW_OK : rc;
    }
    if (r->rc == CW_OK && !causal) {
        r->rc = cw_fail(r->err, CW_EUNSUP,
                        "key '%s' is false: models that look ahead (for embeddings or diffusion) "
                        "are not supported",
                        r->name);
    }
    hp->n_experts = get_int(r, "expert_count", 0, 1 << 16, 0);
    if (r->rc == CW_OK && hp->n_experts == 0 && r->arch->experts == CW_EXPERTS_ALWAYS) {
        full_name(r, "expert_count");
        missing(r);
    }
    if (r->rc == CW_OK && hp->n_experts > 0 && r->arch->experts == CW_EXPERTS_NEVER) {
        r->rc = cw_fail(r->err, CW_EUNSUP, "experts are not supported in %s models", r->arch->name);
    }
    if (hp->n_experts > 0) {
        hp->n_used = get_int(r, "expert_used_count", 1, hp->n_experts, 0);
        hp->n_ff_expert = get_int(r, "expert_feed_forward_length", 1, MAX_DIM,
                                  get_int(r, "feed_forward_length", 1, MAX_DIM, 1));
    } else {
        hp->n_ff = get_int(r, "feed_forward_length", 1, MAX_DIM, 0);
    }
    hp->n_ctx_train = get_u32(r, "context_length", 0);
    if (hp->n_ctx_train == UINT32_MAX) {
        hp->n_ctx_train = 0;
    }
    const char *eps = r->arch->norm == CW_NORM_RMS ? "attention.layer_norm_rms_epsilon"
                                                   : "attention.layer_norm_epsilon";
    double v = get_float(r, eps, (double)NAN);
    if (r->rc == CW_OK && isnan(v)) {
        missing(r);
    } else if (r->rc == CW_OK && !(v >= 0.0 && v <= 1.0)) {
        r->rc = cw_fail(r->err, CW_EFORMAT, "key '%s' is %g, not from 0 to 1", r->name, v);
    }
    hp->eps = (float)v;
}

static void read_scales(struct reader *r, struct cw_hparams *hp) {
    const struct cw_arch *a = r->arch;
    hp->embd_scale = hp->residual_scale = hp->logit_scale = 1.0f;
    hp->attn_scale = (float)(1.0 / sqrt((double)hp->head_k));
    if (a->n_layers_embd_scale == hp->n_layers) {
        hp->attn_scale = (float)(1.0 / sqrt((double)(hp->n_embd / hp->n_heads)));
    }
    if (a->embd_sqrt) {
        hp->embd_scale = (float)sqrt((double)hp->n_embd);
    }
    if (a->multipliers) {
        hp->embd_scale = get_scale(r, "embedding_scale", 1.0f);
        hp->residual_scale = get_scale(r, "residual_scale", 1.0f);
        hp->attn_scale = get_scale(r, "attention.scale", hp->attn_scale);
        hp->logit_scale = 1.0f / get_scale(r, "logit_scale", 1.0f);
    }
    if (a->softcap_attn_key) {
        hp->softcap_attn =
            (float)get_float_in(r, "attn_logit_softcapping", (double)a->softcap_attn, 0.0, 1e6);
    }
    if (a->softcap_out_key) {
        hp->softcap_out =
            (float)get_float_in(r, "final_logit_softcapping", (double)a->softcap_out, 0.0, 1e6);
    }
    if (a->temperature) {
        hp->temperature_scale =
            (float)get_float_in(r, "attention.temperature_scale", 0.0, 0.0, 1e3);
    }
    if (a->parallel_key && r->rc == CW_OK) {
        r->rc = cw_gguf_bool(r->g, full_name(r, "use_parallel_residual"), &hp->parallel, r->err);
        if (r->rc == CW_ENOENT) {
            missing(r);
        }
    }
}

/* ---- rotary positions --------------------------------------------------------------------------
 */

enum scaling { SCALING_NONE, SCALING_LINEAR, SCALING_YARN };

static enum scaling read_scaling_type(struct reader *r) {
    struct cw_str type;
    if (r->rc != CW_OK) {
        return SCALING_NONE;
    }
    int rc = cw_gguf_str(r->g, full_name(r, "rope.scaling.type"), &type, r->err);
    if (rc == CW_ENOENT) {
        return SCALING_LINEAR; /* a factor alone means that */
    }
    if (rc != CW_OK) {
        r->rc = rc;
        return SCALING_NONE;
    }
    if (cw_str_eq(type, "none")) {
        return SCALING_NONE;
    }
    if (cw_str_eq(type, "linear") || cw_str_eq(type, "longrope")) {
        return SCALING_LINEAR; /* LongRoPE's factors are tensors */
    }
    if (cw_str_eq(type, "yarn")) {
        return SCALING_YARN;
    }
    r->rc = cw_fail(r->err, CW_EUNSUP, "key '%s': scaling '%.*s' is not supported", r->name,
                    (int)(type.len < 32 ? type.len : 32), type.data);
    return SCALING_NONE;
}

/* A rotary base; some converters spell its key in another way. */
static double get_base(struct reader *r, const char *key, const char *other, double absent) {
    bool there = cw_gguf_key(r->g, full_name(r, key)) != NULL;
    return get_float_in(r, there ? key : other, absent, 1.0, 1e12);
}

static void read_rope(struct reader *r, struct cw_hparams *hp) {
    const struct cw_arch *a = r->arch;
    struct cw_rope_params *p = &hp->rope;
    *p = (struct cw_rope_params){.base = 10000.0, .freq_scale = 1.0, .magnitude = 1.0f};
    hp->rope_local = *p;
    hp->n_ctx_orig = get_u32(r, "rope.scaling.original_context_length", hp->n_ctx_train);
    if (a->temperature && hp->temperature_scale != 0.0f && hp->n_ctx_orig == 0 && r->rc == CW_OK) {
        full_name(r, "rope.scaling.original_context_length");
        missing(r);
    }
    if (a->rope == CW_ROPE_NONE) {
        return;
    }
    hp->n_rot = get_int(r, "rope.dimension_count", 2, hp->head_k, hp->head_k);
    if (r->rc == CW_OK && hp->n_rot % 2 != 0) {
        r->rc =
            cw_fail(r->err, CW_EFORMAT, "key '%s' is %d: not an even number", r->name, hp->n_rot);
    }
    p->base = get_base(r, "rope.freq_base", "rope.global.freq_base", p->base);
    enum scaling scaling = read_scaling_type(r);
    double factor = get_float(r, "rope.scaling.factor", (double)NAN); /* which no file can say */
    if (isnan(factor)) {
        factor = get_float(r, "rope.scale_linear", 0.0); /* what files of 2023 have */
    }
    if (r->rc == CW_OK && factor != 0.0 && !(factor >= 0.0625 && factor <= 1e6)) {
        r->rc = cw_fail(r->err, CW_EFORMAT, "key '%s' is %g, not from 0.0625 to 1e+06", r->name,
                        factor);
    }
    if (factor != 0.0 && scaling != SCALING_NONE) {
        p->freq_scale = 1.0 / factor;
    }
    double magnitude = get_float_in(r, "rope.scaling.attn_factor", 1.0, 1e-3, 1e3);
    if (scaling == SCALING_YARN && r->rc == CW_OK) {
        if (hp->n_ctx_orig == 0 || p->base <= 1.0) {
            full_name(r, hp->n_ctx_orig == 0 ? "rope.scaling.original_context_length"
                                             : "rope.freq_base");
            missing(r);
            return;
        }
        double log_multiplier = 0.0;
        p->yarn = true;
        p->beta_fast = 32.0;
        p->beta_slow = 1.0;
        if (a->yarn_keys) {
            p->beta_fast = get_float_in(r, "rope.scaling.yarn_beta_fast", 32.0, 1e-3, 1e6);
            p->beta_slow = get_float_in(r, "rope.scaling.yarn_beta_slow", 1.0, 1e-3, 1e6);
            log_multiplier = get_float_in(r, "rope.scaling.yarn_log_multiplier", 0.0, 0.0, 1e3);
        }
        magnitude *= cw_rope_yarn_magnitude(1.0 / p->freq_scale, log_multiplier);
    }
    p->magnitude = (float)magnitude;
    hp->rope_local = *p;
}

/* ---- windows -----------------------------------------------------------------------------------
 */

/* Which layers are local: where i % pattern < pattern - 1, or as a list in the file says. */
static void read_pattern(struct reader *r, const struct cw_hparams *hp, bool *local) {
    const char *key = full_name(r, "attention.sliding_window_pattern");
    const struct cw_gguf_key *k = cw_gguf_key(r->g, key);
    if (k != NULL && k->kind == CW_GGUF_ARRAY) {
        int32_t *list = NULL;
        size_t n = 0;
        r->rc = cw_gguf_i32s(r->g, key, &list, &n, r->err);
        if (r->rc == CW_OK && n != (size_t)hp->n_layers) {
            r->rc = cw_fail(r->err, CW_EFORMAT, "key '%s' has %zu entries for %d layers", r->name,
                            n, hp->n_layers);
        }
        for (int i = 0; i < hp->n_layers && r->rc == CW_OK; i++) {
            local[i] = list[i] != 0;
        }
        free(list);
        return;
    }
    int pattern =
        get_int(r, "attention.sliding_window_pattern", 1, MAX_DIM, r->arch->window_pattern);
    for (int i = 0; i < hp->n_layers; i++) {
        local[i] = i % pattern < pattern - 1;
    }
}

static void read_windows(struct reader *r, struct cw_hparams *hp, bool *local) {
    const struct cw_arch *a = r->arch;
    if (a->window_pattern == 0) {
        return;
    }
    hp->window = get_u32(r, "attention.sliding_window", a->window);
    if (hp->window == 0 || r->rc != CW_OK) {
        return;
    }
    read_pattern(r, hp, local);
    struct cw_rope_params *p = &hp->rope_local;
    if (a->local_rope != CW_LOCAL_SAME) {
        p->freq_scale = 1.0;
        if (a->local_rope == CW_LOCAL_UNSCALED) {
            p->yarn = false;
            p->magnitude = 1.0f;
            return;
        }
        p->base = 10000.0;
    }
    p->base = get_base(r, "rope.freq_base_swa", "rope.local.freq_base", p->base);
    if (r->rc == CW_OK && p->yarn && p->base <= 1.0) {
        missing(r);
    }
}

int cw_hparams_read(struct cw_hparams *hp, bool **local, const struct cw_gguf *g,
                    const struct cw_arch *arch, struct cw_err *err) {
    struct reader r = {.g = g, .arch = arch, .err = err};
    memset(hp, 0, sizeof *hp);
    *local = NULL;
    read_sizes(&r, hp);
    /* Every layer has tensors: this bounds what a lie about the layers can allocate. */
    if (r.rc == CW_OK && (size_t)hp->n_layers > cw_gguf_n_tensors(g)) {
        r.rc = cw_fail(err, CW_EFORMAT, "key '%s.block_count' is %d, more than the file's tensors",
                       arch->name, hp->n_layers);
    }
    if (r.rc != CW_OK) {
        return r.rc;
    }
    *local = cw_calloc((size_t)hp->n_layers, sizeof **local);
    read_scales(&r, hp);
    read_rope(&r, hp);
    read_windows(&r, hp, *local);
    if (r.rc != CW_OK) {
        free(*local);
        *local = NULL;
    }
    return r.rc;
}

/* ---- what the file is called -------------------------------------------------------------------
 */

/* Names of general.file_type, as the field numbers them; only those with supported weights. */
static const char *file_type_name(uint32_t n) {
    static const char *const names[] = {
        [0] = "F32",     [1] = "F16",     [2] = "Q4_0",    [3] = "Q4_1",    [7] = "Q8_0",
        [8] = "Q5_0",    [9] = "Q5_1",    [10] = "Q2_K",   [11] = "Q3_K_S", [12] = "Q3_K_M",
        [13] = "Q3_K_L", [14] = "Q4_K_S", [15] = "Q4_K_M", [16] = "Q5_K_S", [17] = "Q5_K_M",
        [18] = "Q6_K",   [21] = "Q2_K_S", [25] = "IQ4_NL", [30] = "IQ4_XS", [32] = "BF16",
        [38] = "MXFP4",
    };
    return n < sizeof names / sizeof *names ? names[n] : NULL;
}

void cw_quant_name(const struct cw_gguf *g, char *out, size_t cap) {
    uint64_t bytes[64] = {0};
    uint32_t best = 0, file_type;
    for (size_t i = 0; i < cw_gguf_n_tensors(g); i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(g, i);
        bytes[(uint32_t)t->type % 64] += t->bytes;
    }
    for (uint32_t i = 0; i < 64; i++) {
        best = bytes[i] > bytes[best] ? i : best;
    }
    const char *type = cw_type_known_name(best);
    type = cw_gguf_n_tensors(g) == 0 ? "none" : type != NULL ? type : "unknown";
    if (cw_gguf_u32(g, "general.file_type", &file_type, NULL) == CW_OK) {
        const char *whole = file_type_name(file_type);
        if (whole != NULL && strncmp(whole, type, strlen(type)) == 0) {
            type = whole;
        }
    }
    snprintf(out, cap, "%s", type);
}

bool cw_is_float_file(const struct cw_gguf *g) {
    uint64_t floats = 0, all = 0;
    for (size_t i = 0; i < cw_gguf_n_tensors(g); i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(g, i);
        all += t->bytes;
        floats += t->type == CW_F32 || t->type == CW_F16 || t->type == CW_BF16 ? t->bytes : 0;
    }
    return floats > all / 2;
}

void cw_model_name(const struct cw_gguf *g, char *out, size_t cap) {
    struct cw_str name;
    if (cw_gguf_str(g, "general.name", &name, NULL) != CW_OK || name.len == 0) {
        const char *path = cw_gguf_path(g);
        const char *slash = strrchr(path, '/');
        name.data = slash != NULL ? slash + 1 : path;
        name.len = strlen(name.data);
    }
    cw_printable(out, cap, name.data, name.len);
}
