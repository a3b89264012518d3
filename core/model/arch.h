/* SPDX-License-Identifier: MIT
 *
 * What makes one decoder-only architecture differ from another, as a table row.
 *
 * The forward pass knows no architecture by name: it asks the row (and what the loader made of row
 * and file together, hparams.h). A new architecture of known parts is a new row in arch.c and
 * nothing else; a new part is a field here, its reading in load.c and its step in forward.c.
 */
#ifndef CW_ARCH_H
#define CW_ARCH_H

#include "core/compute/compute.h"

enum cw_arch_rope {
    CW_ROPE_NONE,
    CW_ROPE_PAIRS, /* (2i, 2i + 1): the order of RoFormer */
    CW_ROPE_NEOX,  /* (i, i + n_rot / 2): the order of GPT-NeoX */
};

/* RMSNorm of queries and keys, before the rotation. */
enum cw_arch_qk_norm {
    CW_QK_NORM_NONE,
    CW_QK_NORM_HEAD, /* each head by itself */
    CW_QK_NORM_ALL,  /* over the whole projection */
};

enum cw_arch_ffn {
    CW_FFN_GATED,       /* down(act(gate x) * (up x)), Shazeer 2020 */
    CW_FFN_GATED_FUSED, /* the same; ffn_up holds the rows of gate, then those of up */
    CW_FFN_PLAIN,       /* down(gelu(up x)) */
};

/* How layers with a sliding window rotate, where that differs from the others. */
enum cw_arch_local_rope {
    CW_LOCAL_SAME,          /* as the others; a base of its own if the file gives one */
    CW_LOCAL_UNSCALED,      /* same base, no position scaling */
    CW_LOCAL_UNSCALED_10000 /* base 10000 if the file gives none, no position scaling */
};

/* Biases that must be there. Where a file has one that need not, it is used too. */
enum { CW_BIAS_QKV = 1, CW_BIAS_OUT = 2, CW_BIAS_FFN = 4 };

struct cw_arch {
    const char *name; /* general.architecture */
    enum cw_norm norm;
    bool no_pre_norm;     /* blocks read the residual stream as it is */
    bool post_norm;       /* what a block adds is normalised first */
    const char *ffn_norm; /* name of the norm before the feed-forward; NULL: "ffn_norm" */
    enum cw_arch_rope rope;
    enum cw_arch_qk_norm qk_norm;
    enum cw_arch_ffn ffn;
    enum cw_glu glu;
    enum { CW_EXPERTS_NEVER, CW_EXPERTS_MAYBE, CW_EXPERTS_ALWAYS } experts;
    unsigned biases;         /* CW_BIAS_* */
    bool learned_positions;  /* position_embd.weight is added to the embeddings */
    bool parallel_key;       /* use_parallel_residual: x + attention(norm x) + ffn(norm' x) */
    bool sinks;              /* attn_sinks.weight: a score without a value, for each head */
    bool embd_sqrt;          /* embeddings are multiplied by sqrt(n_embd) */
    bool multipliers;        /* embedding, residual, attention and logit scales in the file */
    bool rope_finetuned_key; /* rope.scaling.finetuned false: no rotation at all */
    bool temperature;        /* attention.temperature_scale: queries grow with log(position) */
    bool yarn_keys;          /* YaRN's betas and log multiplier are read from the file */
    int no_rope_every;       /* layers no_rope_every - 1, 2 no_rope_every - 1, .. do not rotate */
    int window_pattern; /* default: layer i has the window where i % p < p - 1; 0: no windows */
    uint32_t window;    /* default where the file gives none; 0: none then */
    enum cw_arch_local_rope local_rope;
    bool softcap_attn_key, softcap_out_key; /* the file may set them; defaults: */
    float softcap_attn, softcap_out;        /* 0: none */
    /* Models of that many layers scale scores by 1/sqrt(n_embd / n_heads), not of the head. */
    int n_layers_embd_scale;
};

/* NULL when the table has no such row. */
const struct cw_arch *cw_arch_find(struct cw_str name);

/* All names, comma-separated, into out[cap]; for messages. */
void cw_arch_list(char *out, size_t cap);

#endif
