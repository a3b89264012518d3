/* SPDX-License-Identifier: MIT
 *
 * What the forward pass needs of the machine: products, norms, rotations, attention, in the "one
 * arithmetic" of ARCHITECTURE.md, spread over the thread pool and the widest kernels the CPU has.
 *
 * Every function gives the same bits for any ISA level, thread count and number of tokens at once
 * (OpenBLAS products excepted, which `exact` switches off). All take whole batches: n tokens, rows
 * of contiguous f32. Called from one thread at a time (the evaluating one); each returns when the
 * work is done. No function allocates except the creators.
 */
#ifndef CW_COMPUTE_H
#define CW_COMPUTE_H

#include "chinwag/model.h"

struct cw_compute;

struct cw_compute_options {
    int n_threads;       /* 0: from affinity, quota and cores */
    enum cw_isa isa;     /* AUTO: the best */
    bool blas;           /* let OpenBLAS do products of float matrices with many tokens */
    uint64_t pack_limit; /* bytes that packed copies of weights may take; 0: 512 MiB */
};

int cw_compute_create(struct cw_compute **out, const struct cw_compute_options *opt,
                      struct cw_err *err);
void cw_compute_destroy(struct cw_compute *c);
int cw_compute_n_threads(const struct cw_compute *c);
enum cw_isa cw_compute_isa(const struct cw_compute *c);
/* True when OpenBLAS was found, opened and gave what our kernel gives on the check tile; if not and
 * it was asked for, `why` (may be NULL) is set to a line saying so. */
bool cw_compute_blas(const struct cw_compute *c, const char **why);

/* Run fn(arg, chunk, thread) for chunks 0..n_chunks-1 on the pool, the caller taking part; returns
 * when all are done. thread < cw_compute_n_threads. */
void cw_compute_run(struct cw_compute *c, void (*fn)(void *arg, int chunk, int thread), void *arg,
                    int n_chunks);

/* ---- weights ------------------------------------------------------------------------------- */

/* A matrix [rows, cols] in its file's blocks: y = W x. */
struct cw_weight {
    enum cw_type type;
    int32_t rows, cols;
    const uint8_t *data; /* rows of row_bytes, a view of the mapping */
    size_t row_bytes;
    const float *bias; /* [rows] f32 or NULL */
    void *packed;      /* the compute module's own copy, or NULL */
};

/* Fill *w from a tensor's rows [first, first + rows) (an expert of a 3-d tensor is such a slice).
 */
void cw_weight_init(struct cw_weight *w, const struct cw_tensor *t, int64_t first, int32_t rows);

/* Announce w as one to lay out anew for this compute's kernels where that pays; the copy is made
 * later, in passing, by a product. w->data must be a view of a file mapping: once copied, its pages
 * are dropped from memory, and come back from the file when touched. From the evaluating thread,
 * before any product. */
void cw_weight_pack(struct cw_compute *c, struct cw_weight *w);
void cw_weight_free(struct cw_weight *w); /* what cw_weight_pack added */

/* Row `row` of w as f32, exact dequantisation: for token embeddings. y [cols]. */
void cw_weight_row(const struct cw_weight *w, int64_t row, float *y);

/* ---- activations --------------------------------------------------------------------------- */

/* n tokens of `width`, as f32 and in the quantised kinds the matrices ahead want. Buffers are owned
 * by the act and sized once; width of up to `max_width`, n of up to `max_n`. Whoever writes x sets
 * n and width, and have to 1 << CW_ACT_F32. The quantised kinds are laid out in tiles of 8 tokens
 * (kernels/kernels_impl.h) and private to the compute module. */
struct cw_act {
    int n, width;
    int max_n, max_width;
    float *x;        /* [n, width] */
    int8_t *q32;     /* n * width codes, blocks of 32 */
    float *d32;      /* n * width / 32 scales */
    float *sum32;    /* n * width / 32 sums of codes, exact */
    int8_t *q256;    /* n * width codes, blocks of 256 */
    float *d256;     /* n * width / 256 scales */
    int16_t *s16;    /* n * width / 16 sums of 16 codes of q256 */
    int32_t *centre; /* n * width / 8: -32 times the sums of 8 codes of q256 */
    unsigned have;   /* bit (1 << cw_act_kind): up to date with x */
};
int cw_act_create(struct cw_act *a, int max_n, int max_width, struct cw_err *err);
void cw_act_free(struct cw_act *a);

/* Quantise rows a->x to the kinds in `kinds` (bits), where not already there. */
void cw_act_quantise(struct cw_compute *c, struct cw_act *a, unsigned kinds);

enum cw_norm { CW_NORM_RMS, CW_NORM_LAYER };

/* a = norm(x) * w (+ b), n rows of width; then quantised to `kinds`, in the same phase. b is NULL
 * for RMS. rms: x / sqrt(mean(x^2) + eps) * w (Zhang and Sennrich 2019); layer: (x - mean) /
 * sqrt(var + eps) * w + b (Ba et al. 2016). x must not be a->x. */
void cw_norm_act(struct cw_compute *c, enum cw_norm kind, const float *x, const float *w,
                 const float *b, float eps, int n, int width, unsigned kinds, struct cw_act *a);

/* y = norm(x) in place allowed (y == x), rows of width with a stride: per-head norms use
 * rows = n * heads. */
void cw_norm_rows(struct cw_compute *c, enum cw_norm kind, const float *x, const float *w,
                  const float *b, float eps, int rows, int width, float *y);

/* ---- products ------------------------------------------------------------------------------ */

struct cw_product {
    const struct cw_weight *w;
    struct cw_act *x; /* w->cols == x->width; the kind w wants must be in x->have */
    float *y;         /* [x->n, ldy], columns 0..rows-1 written: W x + bias */
    size_t ldy;
};

/* All products in one phase over the pool (q, k and v, or gate and up). They may share x. */
void cw_matmul(struct cw_compute *c, const struct cw_product *p, int n_products);

/* ---- element-wise -------------------------------------------------------------------------- */

enum cw_glu {
    CW_GLU_SILU, /* silu(gate) * up */
    CW_GLU_GELU, /* gelu_tanh(gate) * up */
    CW_GLU_OAI /* gpt-oss: g = min(gate, 7), u = clamp(up, -7, 7): g * sigmoid(1.702 g) * (u + 1) */
};
/* a = act(gate) * up, [n, width] from gate and up with row strides; then quantised to `kinds`. */
void cw_glu_act(struct cw_compute *c, enum cw_glu kind, const float *gate, size_t ld_gate,
                const float *up, size_t ld_up, int n, int width, unsigned kinds, struct cw_act *a);
/* a = gelu_tanh(x) */
void cw_gelu_act(struct cw_compute *c, const float *x, int n, int width, unsigned kinds,
                 struct cw_act *a);

/* x = fma(scale, y, x), n values; scale 1 is x + y. */
void cw_add_scaled(struct cw_compute *c, float *x, const float *y, float scale, size_t n);
/* x = x * scale */
void cw_scale(struct cw_compute *c, float *x, float scale, size_t n);
/* x = cap * tanh(x / cap) (Gemma 2 report) */
void cw_softcap(struct cw_compute *c, float *x, float cap, size_t n);

/* Rotate pairs of each head in place (Su et al. 2021). x [n, ld], heads of `head` width each from
 * column 0. cos and sin [n, n_rot/2] f32 hold one row a token, magnitude scaling included. neox:
 * pairs (i, i + n_rot/2), else (2i, 2i + 1). a' = fma(a, c, -(b * s)), b' = fma(a, s, b * c). */
void cw_rope(struct cw_compute *c, float *x, size_t ld, int n, int n_heads, int head, int n_rot,
             bool neox, const float *cos, const float *sin);

/* ---- cache and attention ------------------------------------------------------------------- */

/* One layer's cache, in pages of CW_PAGE_CELLS cells (the chunks of rule 3): for each KV head its
 * keys, in blocks of 16 cells each [head_k][16] (a vector lane is a cell), then its values, rows
 * [256][head_v] (a lane is a dimension). The layout is the compute module's; the owner only
 * reserves pages, hands out their numbers and keeps cw_kv_layer_bytes of each for this layer. */
enum { CW_PAGE_CELLS = 256 };
struct cw_kv_layer {
    void *base;        /* of page 0 */
    size_t page_bytes; /* from one page to the next */
    int n_kv_heads, head_k, head_v;
    int kind; /* enum cw_kv_type */
};
/* 0 where heads are wider than 1,024 or do not fit the kind (Q8_0: multiples of 32). */
uint64_t cw_kv_layer_bytes(uint32_t n_cells, int n_kv_heads, int head_k, int head_v, int kind);

/* Where a token stands: the cell of position p is number p % 256 of page pages[p / 256]. Tokens of
 * one call may stand in different timelines, which may share pages. */
struct cw_place {
    const uint32_t *pages;
    uint32_t pos;
};

/* Round to the cache's type and store the cells of n tokens. at [n], k [n, ldk], v [n, ldv]. */
void cw_kv_store(struct cw_compute *c, const struct cw_kv_layer *l, const struct cw_place *at,
                 int n, const float *k, size_t ldk, const float *v, size_t ldv);

/* Copy the first n_cells cells of a page (a few more may come along). */
void cw_kv_copy(const struct cw_kv_layer *l, uint32_t to, uint32_t from, uint32_t n_cells);
/* The first n_cells cells of a page, a multiple of 16, as cw_kv_packed_bytes bytes in one piece,
 * and back. */
size_t cw_kv_packed_bytes(const struct cw_kv_layer *l, uint32_t n_cells);
void cw_kv_pack(const struct cw_kv_layer *l, uint32_t page, uint32_t n_cells, uint8_t *to);
void cw_kv_unpack(const struct cw_kv_layer *l, uint32_t page, uint32_t n_cells,
                  const uint8_t *from);

struct cw_attention {
    const struct cw_kv_layer *kv;
    const float
        *q; /* [n, ldq], n_heads heads of head_k; head h reads KV head h / (n_heads / n_kv) */
    size_t ldq;
    float *y; /* [n, ldy], n_heads heads of head_v */
    size_t ldy;
    const struct cw_place *at; /* [n]; a query sees the cells <= its own, all stored already */
    int n, n_heads;
    float scale;        /* score = (q . k) * scale */
    float softcap;      /* 0: none; after scaling, before the mask */
    uint32_t window;    /* 0: none; query at p sees p - window + 1 .. p */
    const float *sinks; /* [n_heads] or NULL: one more score, unscaled, with no value */
};
/* Causal softmax attention (Vaswani et al. 2017; GQA, Ainslie et al. 2023), rules 2 and 3. */
void cw_attend(struct cw_compute *c, const struct cw_attention *a);

#endif
