/* SPDX-License-Identifier: MIT
 *
 * A loaded model from inside: hyperparameters, layers of bound weights, rotary parameters. Shared
 * by load.c, which fills it, rope.c and forward.c, which read it, and the session. */
#ifndef CW_MODEL_INTERNAL_H
#define CW_MODEL_INTERNAL_H

#include "chinwag/model.h"
#include "core/compute/compute.h"
#include "core/model/arch.h"

/* How positions become angles (rope.c). Layers with a window may have their own. */
struct cw_rope_params {
    double base;       /* angle of pair i at position p: p * scale_i * base^(-2i / n_rot) */
    double freq_scale; /* 1 / factor of linear interpolation, Chen et al. 2023 */
    bool yarn;         /* Peng et al. 2023: freq_scale only for the slow pairs */
    double beta_fast, beta_slow;
    float magnitude; /* of cos and sin */
};

struct cw_hparams {
    int n_layers, n_embd, n_heads, n_kv_heads, head_k, head_v, n_ff, n_vocab;
    int n_experts, n_used, n_ff_expert; /* 0: no experts */
    int n_rot;                          /* dimensions of a head that rotate, even */
    uint32_t n_ctx_train;               /* 0: the file does not say */
    uint32_t n_ctx_orig;                /* before position scaling; 0: unknown */
    uint32_t max_positions;             /* rows of learned positions; 0: no such limit */
    float eps;
    float embd_scale, residual_scale, logit_scale; /* 1: none */
    float attn_scale;                              /* of the scores */
    float softcap_attn, softcap_out;               /* 0: none */
    float temperature_scale;                       /* 0: none */
    uint32_t window;                               /* of local layers; 0: none */
    bool parallel;
    struct cw_rope_params rope, rope_local;
};

/* Vectors are f32 copies owned by the model; matrices are views of the file. */
struct cw_layer {
    bool local;                              /* sees hp.window positions and turns by rope_local */
    bool rotates;                            /* has rotary positions at all */
    const float *attn_norm, *attn_norm_bias; /* [n_embd] or NULL */
    const float *ffn_norm, *ffn_norm_bias;
    const float *post_attn_norm, *post_ffn_norm;
    const float *q_norm, *k_norm; /* [head_k], or [n_heads head_k] and [n_kv_heads head_k] */
    const float *sinks;           /* [n_heads] or NULL */
    struct cw_weight q, k, v;     /* [n_heads head_k, n_embd], [n_kv_heads head_k, n_embd], .. */
    struct cw_weight out;         /* [n_embd, n_heads head_v] */
    struct cw_weight gate;        /* [n_ff, n_embd]; data NULL in a plain MLP */
    struct cw_weight up, down;    /* [n_ff, n_embd], [n_embd, n_ff] */
    struct cw_weight router;      /* [n_experts, n_embd] */
    struct cw_weight *experts_gate, *experts_up, *experts_down; /* [n_experts] each */
    /* The kinds of activations (bits of cw_act_kind) that these want. */
    unsigned attn_kinds, out_kinds, ffn_kinds, down_kinds, router_kinds, experts_kinds,
        experts_down_kinds;
};

struct cw_model {
    const struct cw_gguf *gguf; /* borrowed */
    const struct cw_arch *arch;
    struct cw_compute *compute;
    struct cw_pager *pager; /* or NULL */
    struct cw_hparams hp;
    struct cw_layer *layers;    /* [n_layers] */
    struct cw_weight embd;      /* [n_vocab, n_embd] */
    struct cw_weight head;      /* the same or output.weight */
    struct cw_weight positions; /* [max_positions, n_embd]; data NULL: none */
    const float *output_norm, *output_norm_bias;
    unsigned head_kinds;
    /* Divisors of the pairs' frequencies, [n_rot / 2] or NULL. Short ones apply up to n_ctx_orig.
     */
    const float *rope_freqs, *rope_short, *rope_long;
    struct cw_model_info info;
    bool *bound; /* [n_tensors] which of the file's tensors are in use */
    char **notices;
    size_t n_notices;
    float **vectors; /* owned */
    size_t n_vectors, cap_vectors;
};

/* The bits for cw_act.have that weight w asks for. */
unsigned cw_weight_kinds(const struct cw_weight *w);

/* Everything of cw_model_load that needs no machine: tables, checks, notices and the file's part of
 * the info. Such a model (compute NULL) can be asked and destroyed, not run. */
int cw_model_bind(struct cw_model **out, const struct cw_gguf *g, struct cw_err *err);

/* A line for cw_model_notice, made fit for a terminal. */
void cw_model_add_notice(struct cw_model *m, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Once all is bound: notices of what is left over in the file, a failure where it would matter. */
int cw_model_leftovers(struct cw_model *m, struct cw_err *err);

/* ---- hparams.c ---------------------------------------------------------------------------------
 */

/* The n_layers entries of `local`, and everything that keys say, checked for consistency among
 * themselves; `n_vocab` and `max_positions` come from the tensors. *local is allocated. */
int cw_hparams_read(struct cw_hparams *hp, bool **local, const struct cw_gguf *g,
                    const struct cw_arch *arch, struct cw_err *err);
/* general.architecture looked up in the table; what is no model is refused by its name (kind.c). */
int cw_arch_of(const struct cw_arch **out, const struct cw_gguf *g, struct cw_err *err);
/* "Q4_K_M": the type most weight bytes have, with the file type's suffix where that fits. */
void cw_quant_name(const struct cw_gguf *g, char *out, size_t cap);
/* Rule 7: F32, F16 and BF16 in more than half of the weight bytes. */
bool cw_is_float_file(const struct cw_gguf *g);
void cw_model_name(const struct cw_gguf *g, char *out, size_t cap);

/* ---- rope.c ------------------------------------------------------------------------------------
 */

/* Angles per position of the n_rot / 2 pairs, for layers with or without a window and a context of
 * n_ctx cells; freq [n_rot / 2]. */
void cw_rope_frequencies(const struct cw_model *m, bool local, uint32_t n_ctx, double *freq);
/* Check what would make frequencies infinite or undefined. */
int cw_rope_check(const struct cw_model *m, struct cw_err *err);
/* cos and sin of rows pos .. pos + n - 1, each [n, n_pairs] f32, times magnitude. */
void cw_rope_table(const double *freq, int n_pairs, float magnitude, uint32_t pos, int n,
                   float *cos, float *sin);
/* YaRN's magnitude for a factor; log_multiplier 0: none. */
double cw_rope_yarn_magnitude(double factor, double log_multiplier);

#endif
