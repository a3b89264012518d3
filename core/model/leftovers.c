/* SPDX-License-Identifier: MIT
 *
 * What a file holds and no row of the table uses. A tensor that would change what the model says is
 * a refusal: without it the answers would be wrong, and nobody could tell. Anything else is told in
 * a notice, keys with their values, unless the value says "not so". */
#include "core/model/internal.h"

#include <stdio.h>
#include <string.h>

enum { MAX_NAMED = 5, MAX_SHOWN = 96 };

static int shown(struct cw_str s) {
    return (int)(s.len < MAX_SHOWN ? s.len : MAX_SHOWN);
}

static bool starts_with(struct cw_str s, const char *start) {
    size_t n = strlen(start);
    return s.len >= n && memcmp(s.data, start, n) == 0;
}

static bool ends_with(struct cw_str s, const char *end) {
    size_t n = strlen(end);
    return s.len >= n && memcmp(s.data + s.len - n, end, n) == 0;
}

/* ---- tensors -----------------------------------------------------------------------------------
 */

/* Whether `name` begins with "blk.N." of a layer that runs. */
static bool in_a_layer(const struct cw_model *m, struct cw_str name) {
    int64_t layer = 0;
    size_t i = 4;
    if (!starts_with(name, "blk.")) {
        return false;
    }
    for (; i < name.len && name.data[i] >= '0' && name.data[i] <= '9' && layer < INT32_MAX; i++) {
        layer = layer * 10 + (name.data[i] - '0');
    }
    return i > 4 && i < name.len && name.data[i] == '.' && layer < m->hp.n_layers;
}

/* A weight, bias or scale of a layer that runs, of the embeddings or of the output. What may lie
 * there without harm: layers behind the last (for predicting several tokens), parts for images, and
 * rotary frequencies, which follow from the keys. */
static bool would_matter(const struct cw_model *m, struct cw_str name) {
    static const char *const ends[] = {"token_embd.",    "token_embd_norm.", "token_types.",
                                       "position_embd.", "output.",          "output_norm."};
    if (!ends_with(name, ".weight") && !ends_with(name, ".bias") && !ends_with(name, ".scale")) {
        return false;
    }
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (starts_with(name, ends[i])) {
            return true;
        }
    }
    return in_a_layer(m, name) && !ends_with(name, ".attn_rot_embd.weight");
}

static int report_tensors(struct cw_model *m, struct cw_err *err) {
    size_t n = 0;
    for (size_t i = 0; i < cw_gguf_n_tensors(m->gguf); i++) {
        struct cw_str name = cw_gguf_tensor_at(m->gguf, i)->name;
        if (m->bound[i]) {
            continue;
        }
        if (would_matter(m, name)) {
            return cw_fail(err, CW_EUNSUP,
                           "tensor '%.*s' has no place in %s models here, and without it the "
                           "answers would be wrong",
                           shown(name), name.data, m->arch->name);
        }
        if (n++ < MAX_NAMED) {
            cw_model_add_notice(m, "tensor '%.*s' is not used", shown(name), name.data);
        }
    }
    if (n > MAX_NAMED) {
        cw_model_add_notice(m, "%zu more tensors are not used", n - MAX_NAMED);
    }
    return CW_OK;
}

/* ---- keys --------------------------------------------------------------------------------------
 */

/* What says nothing about the arithmetic. */
static bool is_idle(struct cw_str name) {
    static const char *const names[] = {"vocab_size", "tensor_data_layout",
                                        "rope.scaling.finetuned"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (cw_str_eq(name, names[i])) {
            return true;
        }
    }
    return false;
}

/* Values by which a key says that there is no such thing; two where writers differ. */
static bool is_neutral(struct cw_str name, double v) {
    static const struct {
        const char *name;
        double a, b;
    } values[] = {
        {"attention.clamp_kqv", 0, 0},
        {"attention.max_alibi_bias", 0, 0},
        {"attention.scale", 0, 0},
        {"attn_logit_softcapping", 0, 0},
        {"embedding_scale", 0, 1},
        {"expert_gating_func", 0, 1}, /* 1: softmax */
        {"expert_group_count", 0, 1},
        {"expert_group_used_count", 0, 1},
        {"expert_shared_count", 0, 0},
        {"expert_shared_feed_forward_length", 0, 0},
        {"expert_used_count", 0, 0},
        {"expert_weights_norm", 1, 1},
        {"expert_weights_scale", 0, 1},
        {"final_logit_softcapping", 0, 0},
        {"interleave_moe_layer_step", 1, 1},
        {"leading_dense_block_count", 0, 0},
        {"logit_scale", 0, 1},
        {"nextn_predict_layers", 0, 0},
        {"pooling_type", 0, 0},
        {"residual_scale", 0, 1},
        {"rope.scaling.yarn_attn_factor", 1, 1},
        {"rope.scaling.yarn_beta_fast", 32, 32},
        {"rope.scaling.yarn_beta_slow", 1, 1},
        {"rope.scaling.yarn_ext_factor", -1, 1},
        {"rope.scaling.yarn_log_multiplier", 0, 0},
        {"use_parallel_residual", 0, 0},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (cw_str_eq(name, values[i].name)) {
            return v == values[i].a || v == values[i].b;
        }
    }
    return false;
}

/* Keys of the architecture that nobody has asked for. */
static void report_keys(struct cw_model *m) {
    size_t n = 0, prefix = strlen(m->arch->name) + 1;
    char own[64];
    snprintf(own, sizeof own, "%s.", m->arch->name);
    for (size_t i = 0; i < cw_gguf_n_keys(m->gguf); i++) {
        const struct cw_gguf_key *k = cw_gguf_key_at(m->gguf, i);
        double v = 0.0;
        if (cw_gguf_key_used(m->gguf, i) || !starts_with(k->name, own)) {
            continue;
        }
        struct cw_str name = {k->name.data + prefix, k->name.len - prefix};
        bool number = cw_gguf_number(k, &v);
        if (is_idle(name) || (number && is_neutral(name, v))) {
            continue;
        }
        if (number && cw_str_eq(name, "attention.sliding_window")) {
            if (v != 0.0 && (m->hp.n_ctx_train == 0 || v < m->hp.n_ctx_train)) {
                cw_model_add_notice(m, "the sliding window of %g in the file is not applied", v);
            }
            continue;
        }
        if (n++ < MAX_NAMED && number) {
            cw_model_add_notice(m, "key '%.*s' (%g) is not used", shown(k->name), k->name.data, v);
        } else if (n <= MAX_NAMED) {
            cw_model_add_notice(m, "key '%.*s' is not used", shown(k->name), k->name.data);
        }
    }
    if (n > MAX_NAMED) {
        cw_model_add_notice(m, "%zu more keys are not used", n - MAX_NAMED);
    }
}

int cw_model_leftovers(struct cw_model *m, struct cw_err *err) {
    int rc = report_tensors(m, err);
    if (rc == CW_OK) {
        report_keys(m);
    }
    return rc;
}
