/* SPDX-License-Identifier: MIT
 *
 * The kernel table: what each instruction set implements, on one thread and for one piece of work.
 * The scalar table defines every result to the last bit; the others reproduce it. Filled once per
 * ISA, constant afterwards. The vector libraries include this file and immintrin.h and nothing else
 * of the project, so that no code compiled for one ISA can be linked into another's.
 *
 * Layout of quantised activations. Tokens are in tiles of CW_TILE; the last tile has the n %
 * CW_TILE that remain. Within a tile of t tokens the code dword (4 codes) of k-group g and token c
 * is dword g * t + c, a block's scale and sum are element b * t + c (of several sums of a block
 * each is t elements after the one before): a kernel walks them with fixed offsets. Tile number i
 * begins at token i * CW_TILE's share of the buffer.
 */
#ifndef CW_KERNELS_IMPL_H
#define CW_KERNELS_IMPL_H

#include "chinwag/types.h"

#include <stdbool.h>

#define CW_TILE       8
#define CW_CHUNK      256 /* cells of an attention chunk */
#define CW_N_TYPE_IDS 40  /* one past the largest cw_type */
#define CW_MAX_HEAD   1024

/* y[c][r] = sum of w[r][.] x[c][.] (+ bias[r]) for rows 0..rows-1 and tokens 0..n-1. */
struct cw_product_job {
    const uint8_t *w; /* first row, in file blocks */
    size_t row_bytes;
    int rows, cols;
    const float *bias; /* [rows] or NULL */
    uint8_t *packed;   /* the rows' packed copy (types in `packs`), or NULL */
    bool pack;         /* fill it in passing, from w; else it is read instead of w */
    int n;
    const float *x; /* [n, ldx] f32, for float weights */
    size_t ldx;
    const int8_t *q;       /* codes, from a tile border on */
    const float *d;        /* scales */
    const float *sum32;    /* sums of 32 codes (blocks of 32) */
    const int16_t *s16;    /* sums of 16 codes, in pairs (blocks of 256) */
    const int32_t *centre; /* -32 times the sums of 8 codes (blocks of 256) */
    float *y;              /* [n, ldy] */
    size_t ldy;
};
typedef void cw_product_fn(const struct cw_product_job *j);

/* One KV head's chunk against n_rows queries (token and head pairs). Row i sees cells lo[i] ..
 * hi[i] - 1 of the chunk (never none) and leaves its maximum score in m, the sum of exponentials
 * in l and the weighted values in o. */
struct cw_attend_job {
    const void *k, *v; /* of the chunk's cells */
    int kind;          /* enum cw_kv_type */
    int head_k, head_v;
    int n_rows;
    const float *const *q;
    const int *lo, *hi;
    float scale, softcap;
    float *m, *l;   /* [n_rows] */
    float *o;       /* [n_rows, head_v] */
    float *scratch; /* cw_attend_scratch floats */
};

struct cw_kernels {
    int isa;       /* enum cw_isa */
    int row_group; /* rows of a product job begin at multiples of this within the matrix */

    void (*norm_rms)(const float *x, const float *w, float eps, int width, float *y);
    void (*norm_layer)(const float *x, const float *w, const float *b, float eps, int width,
                       float *y);
    void (*glu[3])(const float *gate, const float *up, int width, float *y); /* enum cw_glu */
    void (*gelu)(const float *x, int width, float *y);
    void (*add_scaled)(float *x, const float *y, float scale, size_t n);
    void (*scale)(float *x, float scale, size_t n);
    void (*softcap)(float *x, float cap, size_t n);
    /* One head, its first n_rot dimensions, in place. */
    void (*rope)(float *x, int n_rot, bool neox, const float *cos, const float *sin);

    /* Quantise one token. q: its first code dword; t: tokens of its tile (the stride). */
    void (*quantise_32)(const float *x, int width, int t, int8_t *q, float *d, float *sum32);
    void (*quantise_256)(const float *x, int width, int t, int8_t *q, float *d, int16_t *s16,
                         int32_t *centre);

    cw_product_fn *product[CW_N_TYPE_IDS];
    /* n weights of F32, F16 or BF16 as f32, exactly: y [n]. */
    void (*widen)(int type, const uint8_t *w, int n, float *y);
    /* Types that can have a packed copy: row groups side by side, the last one filled up to
     * row_group rows, otherwise of the file's size. */
    bool packs[CW_N_TYPE_IDS];

    /* Cells `cell` .. of one head, see cw_kv_store: k and v [n, ld] f32. base is the head's region.
     */
    void (*store_k)(void *base, int kind, int head, uint32_t cell, int n, const float *k,
                    size_t ld);
    void (*store_v)(void *base, int kind, int head, uint32_t cell, int n, const float *v,
                    size_t ld);
    void (*attend)(const struct cw_attend_job *j);
    /* (M, L, O) and (m, l, o) become (M, L, O): rule 3's merge. */
    void (*merge)(float *big_m, float *big_l, float *big_o, float m, float l, const float *o,
                  int head_v);

    /* For measuring: the sum of everything read; rounds of products in registers, returning how
     * many multiply-adds they were. */
    uint32_t (*read_sum)(const void *data, size_t bytes);
    uint64_t (*int8_loop)(uint64_t rounds);
};

extern const struct cw_kernels cw_kernels_scalar;
extern const struct cw_kernels cw_kernels_avx2;
extern const struct cw_kernels cw_kernels_avxvnni;
extern const struct cw_kernels cw_kernels_avx512;

/* Sixteen lanes to one value: halves are added, 8, 4, 2, 1 apart. */
static inline float cw_tree16(const float v[16]) {
    float a[8];
    for (int i = 0; i < 8; i++) {
        a[i] = v[i] + v[i + 8];
    }
    float b0 = a[0] + a[4], b1 = a[1] + a[5], b2 = a[2] + a[6], b3 = a[3] + a[7];
    return (b0 + b2) + (b1 + b3);
}

#endif
