/* SPDX-License-Identifier: MIT
 *
 * A loaded model: hyperparameters, weights (views of the mapping, or packed copies), the kernels
 * and the thread pool that will run it. Immutable once loaded, except that evaluations share its
 * pool: one session evaluates at a time.
 */
#ifndef CHINWAG_MODEL_H
#define CHINWAG_MODEL_H

#include "chinwag/gguf.h"

struct cw_model;

enum cw_isa {
    CW_ISA_AUTO = -1, /* the best this CPU has */
    CW_ISA_SCALAR = 0,
    CW_ISA_AVX2,    /* AVX2, FMA, F16C */
    CW_ISA_AVXVNNI, /* the same and 256-bit VNNI */
    CW_ISA_AVX512,  /* AVX-512 F, BW, DQ, VL and VNNI */
    CW_N_ISAS
};

struct cw_model_options {
    int n_threads;   /* 0: from affinity, cgroup quota and physical cores */
    enum cw_isa isa; /* what the CPU lacks is refused with CW_EUNSUP */
    bool exact;      /* our own kernels for the prefill of float files too (rule 7) */
};

struct cw_model_info {
    char name[96]; /* general.name or the file's name, printable */
    char arch[32];
    char quant[16]; /* the type most weight bytes have, with _M and the like where the file says */
    int n_layers, n_embd, n_heads, n_kv_heads, n_ff, n_vocab;
    int head_k, head_v;   /* widths of a key and a value head */
    uint32_t n_ctx_train; /* 0: the file does not say */
    uint64_t n_params;
    uint64_t weight_bytes;   /* tensor bytes in the file */
    uint64_t kv_bytes_token; /* KV bytes a token in f16, all layers */
    bool float_file;         /* rule 7 applies: F32, F16, BF16 in more than half the weight bytes */
    bool exact;              /* every path gives the same bits with these options */
    bool blas;               /* OpenBLAS does the prefill products */
    int n_threads;
    enum cw_isa isa;
};

/* Load from an open file, which must outlive the model. What the architecture does not use of the
 * file is reported by cw_model_notice, what it needs and lacks is an error. */
int cw_model_load(struct cw_model **out, const struct cw_gguf *g,
                  const struct cw_model_options *opt, struct cw_err *err);
void cw_model_destroy(struct cw_model *m);

const struct cw_model_info *cw_model_get_info(const struct cw_model *m);
const char *cw_model_notice(const struct cw_model *m, size_t i); /* NULL past the last */

/* The architectures of the table: the i-th name or NULL. */
const char *cw_arch_name(size_t i);

const char *cw_isa_name(enum cw_isa isa);              /* "avx2" */
bool cw_isa_parse(const char *name, enum cw_isa *out); /* false: no such name */
bool cw_isa_available(enum cw_isa isa);                /* on this CPU, in this build */

#endif
