/* SPDX-License-Identifier: MIT
 *
 * The cache and attention: scalar.c's attend, where a vector of scores is sixteen cells and a
 * vector of values sixteen dimensions, for tiles of queries so that a key or value once loaded
 * serves several.
 */
#ifndef CW_ATTEND_H
#define CW_ATTEND_H

/* enum cw_kv_type of chinwag/session.h */
enum { KV_F16, KV_Q8_0 };

/* ---- storing --------------------------------------------------------------------------------- */

INLINE size_t block16_bytes(int kind, int head) {
    return kind == KV_Q8_0 ? (size_t)head * 17 : (size_t)head * 32;
}

INLINE void to_f16(const float *x, int n, uint16_t *h) {
    int i = 0;
    for (; i + 16 <= n; i += 16) {
        v16_store_f16(h + i, v16_load(x + i));
    }
    if (i < n) {
        uint16_t last[16];
        v16_store_f16(last, v16_load_n(x + i, n - i));
        __builtin_memcpy(h + i, last, (size_t)(n - i) * 2);
    }
}

/* 32 dimensions of a cell: f16 scale and codes, see scalar.c. */
INLINE uint16_t quantise_cell(const float *x, int8_t *codes) {
    v16i magnitude = v16i_set1(0x7fffffff);
    v16 x0 = v16_load(x), x1 = v16_load(x + 16);
    int top =
        v16i_top(v16i_max(v16i_and(v16_bits(x0), magnitude), v16i_and(v16_bits(x1), magnitude)));
    __m128i h = _mm_cvtps_ph(_mm_set_ss(float_of_bits(top) / 127.0f), _MM_FROUND_TO_NEAREST_INT);
    uint16_t bits = (uint16_t)_mm_cvtsi128_si32(h);
    bool plain = (bits & 0x7fff) != 0 && (bits & 0x7fff) < 0x7c00;
    v16 d = v16_set1(_mm_cvtss_f32(_mm_cvtph_ps(h)));
    v16 high = v16_set1(127.0f), low = v16_set1(-127.0f);
    v16i c0 = v16i_set1(0), c1 = c0;
    if (plain) {
        c0 = v16_round(v16_max(low, v16_min(high, v16_div(x0, d))));
        c1 = v16_round(v16_max(low, v16_min(high, v16_div(x1, d))));
    }
    _mm_storeu_si128((__m128i *)codes, v16i_bytes(c0));
    _mm_storeu_si128((__m128i *)(codes + 16), v16i_bytes(c1));
    return bits;
}

static void store_v(void *base, int kind, int head, uint32_t cell, int n, const float *v,
                    size_t ld) {
    for (int i = 0; i < n; i++, cell++, v += ld) {
        uint8_t *block = (uint8_t *)base + cell / 16 * block16_bytes(kind, head);
        int lane = (int)(cell % 16);
        if (kind == KV_F16) {
            to_f16(v, head, (uint16_t *)(void *)block + lane * head);
            continue;
        }
        for (int g = 0; g < head / 32; g++) {
            uint16_t h = quantise_cell(v + 32 * g, (int8_t *)block + lane * head + 32 * g);
            __builtin_memcpy(block + 16 * head + 2 * (lane * (head / 32) + g), &h, 2);
        }
    }
}

static void store_k(void *base, int kind, int head, uint32_t cell, int n, const float *k,
                    size_t ld) {
    for (int i = 0; i < n; i++, cell++, k += ld) {
        uint8_t *block = (uint8_t *)base + cell / 16 * block16_bytes(kind, head);
        int lane = (int)(cell % 16);
        if (kind == KV_F16) {
            uint16_t h[CW_MAX_HEAD], *out = (uint16_t *)(void *)block + lane;
            to_f16(k, head, h);
            for (int d = 0; d < head; d++) {
                out[d * 16] = h[d];
            }
            continue;
        }
        for (int g = 0; g < head / 32; g++) {
            int8_t codes[32];
            uint16_t h = quantise_cell(k + 32 * g, codes);
            __builtin_memcpy(block + 16 * head + 2 * (g * 16 + lane), &h, 2);
            for (int d = 0; d < 32; d++) {
                block[(32 * g + d) * 16 + lane] = (uint8_t)codes[d];
            }
        }
    }
}

/* ---- keys and values as the kernels read them ------------------------------------------------ */

/* How a chunk's keys [16 blocks][head_k][16] and values [256][head_v] lie before the kernels: as in
 * the cache, f16 or codes with their scales, or turned into f32 first. */
enum layout { AS_F32, AS_F16, AS_Q8 };

struct cells {
    const void *k, *v;
    const float *v_scale; /* AS_Q8: [256][head_v / 32] */
};

/* Sixteen cells of dimension d, block b. scale: AS_Q8, of the sixteen. */
INLINE v16 load_key(enum layout as, const void *k, int head, int b, int d, v16 scale) {
    size_t at = (size_t)b * 16 * (size_t)head + 16 * (size_t)d;
    if (as == AS_Q8) { /* the product is exact: 8 bits times 11 */
        return v16_mul(v16_load_i8((const int8_t *)k + at + (size_t)b * (size_t)head), scale);
    }
    return as == AS_F16 ? v16_load_f16((const uint16_t *)k + at) : v16_load((const float *)k + at);
}

/* The scales of block b for dimensions d .. d + 31. */
INLINE v16 load_key_scale(const void *k, int head, int b, int d) {
    const uint8_t *block = (const uint8_t *)k + (size_t)b * block16_bytes(KV_Q8_0, head);
    return v16_load_f16((const uint16_t *)(const void *)(block + 16 * head) + d / 32 * 16);
}

/* Sixteen dimensions of a cell, from `dim` on. */
INLINE v16 load_value(enum layout as, struct cells c, int head, int cell, int dim) {
    size_t at = (size_t)cell * (size_t)head + (size_t)dim;
    if (as == AS_Q8) { /* each block of sixteen cells has its scales behind it */
        const int8_t *codes = (const int8_t *)c.v + at + (size_t)(cell / 16) * (size_t)head;
        return v16_mul(v16_load_i8(codes), v16_set1(c.v_scale[cell * (head / 32) + dim / 32]));
    }
    return as == AS_F16 ? v16_load_f16((const uint16_t *)c.v + at)
                        : v16_load((const float *)c.v + at);
}

enum { AHEAD = 48 }; /* cells between a value and the one fetched while it is used */

INLINE void fetch(const void *p, size_t at) {
    _mm_prefetch((const char *)p + at, _MM_HINT_T0);
}

static void widen_f16(const uint16_t *from, size_t n, float *to) {
    for (size_t i = 0; i < n; i += 16) {
        v16_store(to + i, v16_load_f16(from + i));
    }
}

static void widen_q8_k(const uint8_t *block, int head, float *to) {
    const uint16_t *scale = (const uint16_t *)(const void *)(block + 16 * head);
    for (int d = 0; d < head; d++) {
        v16 codes = v16_load_i8((const int8_t *)block + 16 * d);
        v16_store(to + 16 * d, v16_mul(codes, v16_load_f16(scale + d / 32 * 16)));
    }
}

static void widen_q8_v(const uint8_t *block, int head, float *to) {
    for (int lane = 0; lane < 16; lane++) {
        for (int d = 0; d < head; d += 16) {
            uint16_t h;
            __builtin_memcpy(&h, block + 16 * head + 2 * (lane * (head / 32) + d / 32), 2);
            v16 scale = v16_set1(_mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(h))));
            v16_store(to + lane * head + d,
                      v16_mul(v16_load_i8((const int8_t *)block + lane * head + d), scale));
        }
    }
}

/* Blocks of sixteen cells lo / 16 .. (hi - 1) / 16 as f32. */
static struct cells widen(const struct cw_attend_job *j, int lo, int hi, float *k, float *v) {
    for (int b = lo / 16; b <= (hi - 1) / 16; b++) {
        const uint8_t *kb = (const uint8_t *)j->k + (size_t)b * block16_bytes(j->kind, j->head_k);
        const uint8_t *vb = (const uint8_t *)j->v + (size_t)b * block16_bytes(j->kind, j->head_v);
        float *kf = k + (size_t)(b * 16 * j->head_k), *vf32 = v + (size_t)(b * 16 * j->head_v);
        if (j->kind == KV_F16) {
            widen_f16((const void *)kb, 16 * (size_t)j->head_k, kf);
            widen_f16((const void *)vb, 16 * (size_t)j->head_v, vf32);
        } else {
            widen_q8_k(kb, j->head_k, kf);
            widen_q8_v(vb, j->head_v, vf32);
        }
    }
    return (struct cells){k, v, NULL};
}

/* The scales of the same blocks' values. */
static void widen_scales(const struct cw_attend_job *j, int lo, int hi, float *scale) {
    size_t n = (size_t)j->head_v / 2; /* a block of sixteen cells has head / 32 of each */
    for (int b = lo / 16; b <= (hi - 1) / 16; b++) {
        const uint8_t *block =
            (const uint8_t *)j->v + (size_t)b * block16_bytes(KV_Q8_0, j->head_v);
        widen_f16((const void *)(block + 16 * j->head_v), n, scale + (size_t)b * n);
    }
}

/* ---- scores ---------------------------------------------------------------------------------- */

/* s[row][cell] for n_rows queries and n_blocks blocks of sixteen cells from block b0 on: one fma a
 * dimension, in order. */
INLINE void score_tile(enum layout as, int n_rows, int n_blocks, const struct cw_attend_job *j,
                       const void *k, const float *const *q, int b0, float *s) {
    v16 acc[SCORE_ACCS], scale[SCORE_ACCS];
    for (int i = 0; i < n_rows * n_blocks; i++) {
        acc[i] = v16_zero();
        scale[i] = v16_zero();
    }
    for (int d = 0; d < j->head_k; d++) {
        v16 key[SCORE_ACCS];
        for (int b = 0; b < n_blocks; b++) {
            if (as == AS_Q8 && d % 32 == 0) {
                scale[b] = load_key_scale(k, j->head_k, b0 + b, d);
            }
            key[b] = load_key(as, k, j->head_k, b0 + b, d, scale[b]);
            /* The next tile's keys, or the values: short streams. A line is two dimensions, or
             * four. */
            if (as == AS_F16 && d % 2 == 0) {
                fetch(k, ((size_t)(b0 + b + n_blocks) * (size_t)j->head_k + (size_t)d) * 32);
            }
            if (as == AS_Q8 && d % 4 == 0) {
                fetch(k, (size_t)(b0 + b + n_blocks) * (size_t)j->head_k * 17 + (size_t)d * 16);
            }
        }
        for (int r = 0; r < n_rows; r++) {
            v16 x = v16_set1(q[r][d]);
            for (int b = 0; b < n_blocks; b++) {
                acc[r * n_blocks + b] = v16_fma(x, key[b], acc[r * n_blocks + b]);
            }
        }
    }
    for (int r = 0; r < n_rows; r++) {
        for (int b = 0; b < n_blocks; b++) {
            v16_store(s + r * CW_CHUNK + 16 * (b0 + b), acc[r * n_blocks + b]);
        }
    }
}

INLINE void score_rows(enum layout as, int n_rows, const struct cw_attend_job *j, const void *k,
                       const float *const *q, int b0, int b1, float *s) {
    int wide = SCORE_ACCS / n_rows < 8 ? SCORE_ACCS / n_rows : 8;
    for (; b0 + wide <= b1; b0 += wide) {
        score_tile(as, n_rows, wide, j, k, q, b0, s);
    }
    for (; b0 < b1; b0++) {
        score_tile(as, n_rows, 1, j, k, q, b0, s);
    }
}

INLINE void scores(enum layout as, const struct cw_attend_job *j, const void *k, int lo, int hi,
                   float *s) {
    int b0 = lo / 16, b1 = (hi + 15) / 16;
    for (int r = 0; r < j->n_rows; r += SCORE_ROWS) {
        int n = j->n_rows - r < SCORE_ROWS ? j->n_rows - r : SCORE_ROWS;
        float *out = s + r * CW_CHUNK;
#define ROWS(N)                                                                                    \
    case N:                                                                                        \
        score_rows(as, N, j, k, j->q + r, b0, b1, out);                                            \
        break;
        switch (n) {
            ROWS(1)
            ROWS(2)
            ROWS(3)
            ROWS(4)
#if SCORE_ROWS == 8
            ROWS(5)
            ROWS(6)
            ROWS(7)
            ROWS(8)
#endif
        }
#undef ROWS
    }
}

/* Scores to exponentials, in place; cells outside lo..hi-1 become zero. */
INLINE void softmax_row(const struct cw_attend_job *j, int r, float *s) {
    int lo = j->lo[r], hi = j->hi[r], b0 = lo / 16, b1 = (hi + 15) / 16;
    v16 scale = v16_set1(j->scale), cap = v16_set1(j->softcap);
    v16 none = v16_set1(-__builtin_inff()), top = none, sum = v16_zero();
    for (int b = b0; b < b1; b++) {
        v16 x = v16_mul(v16_load(s + 16 * b), scale);
        if (j->softcap != 0.0f) {
            x = v16_mul(cap, v16_tanh(v16_div(x, cap)));
        }
        x = v16_within(x, none, lo - 16 * b, hi - 16 * b);
        v16_store(s + 16 * b, x);
        top = v16_max(x, top);
    }
    float m = v16_highest(top);
    v16 max = v16_set1(m);
    for (int b = b0; b < b1; b++) {
        v16 p = v16_exp(v16_sub(v16_load(s + 16 * b), max));
        p = v16_within(p, v16_zero(), lo - 16 * b, hi - 16 * b);
        v16_store(s + 16 * b, p);
        sum = v16_add(sum, p);
    }
    j->m[r] = m;
    j->l[r] = v16_tree(sum);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* o[row][dim ..] += p[row][cell] v[cell][dim ..] for cells lo..hi-1, one fma a cell in order; n_vec
 * vectors of dimensions. */
INLINE void value_tile(enum layout as, int n_rows, int n_vec, const struct cw_attend_job *j,
                       struct cells c, const float *p, int lo, int hi, int dim, float *o) {
    v16 acc[VALUE_ACCS];
    size_t ld = (size_t)j->head_v;
    for (int r = 0; r < n_rows; r++) {
        for (int i = 0; i < n_vec; i++) {
            acc[r * n_vec + i] = v16_load(o + (size_t)r * ld + dim + 16 * i);
        }
    }
    for (int cell = lo; cell < hi; cell++) {
        v16 value[4];
        for (int i = 0; i < n_vec; i++) {
            value[i] = load_value(as, c, j->head_v, cell, dim + 16 * i);
            if (as == AS_F16 && i % 2 == 0) { /* a line is two vectors, or four */
                fetch(c.v, ((size_t)(cell + AHEAD) * ld + (size_t)(dim + 16 * i)) * 2);
            }
            if (as == AS_Q8 && i == 0) {
                fetch(c.v, (size_t)(cell + AHEAD) * ld +
                               (size_t)((cell + AHEAD) / 16 * j->head_v + dim));
            }
        }
        for (int r = 0; r < n_rows; r++) {
            v16 x = v16_set1(p[r * CW_CHUNK + cell]);
            for (int i = 0; i < n_vec; i++) {
                acc[r * n_vec + i] = v16_fma(x, value[i], acc[r * n_vec + i]);
            }
        }
    }
    for (int r = 0; r < n_rows; r++) {
        for (int i = 0; i < n_vec; i++) {
            v16_store(o + (size_t)r * ld + dim + 16 * i, acc[r * n_vec + i]);
        }
    }
}

/* The same for one row's last dimensions, fewer than sixteen: never codes. */
static void value_tail(enum layout as, const struct cw_attend_job *j, const void *v, const float *p,
                       int lo, int hi, int dim, float *o) {
    int n = j->head_v - dim;
    v16 acc = v16_load_n(o + dim, n);
    for (int cell = lo; cell < hi; cell++) {
        size_t at = (size_t)cell * (size_t)j->head_v + (size_t)dim;
        v16 value;
        if (as == AS_F16) {
            uint16_t h[16] = {0};
            __builtin_memcpy(h, (const uint16_t *)v + at, (size_t)n * 2);
            value = v16_load_f16(h);
        } else {
            value = v16_load_n((const float *)v + at, n);
        }
        acc = v16_fma(v16_set1(p[cell]), value, acc);
    }
    v16_store_n(o + dim, acc, n);
}

/* All dimensions of n_rows rows. */
INLINE void value_rows(enum layout as, int n_rows, const struct cw_attend_job *j, struct cells c,
                       const float *p, int lo, int hi, float *o) {
    if (lo >= hi) {
        return;
    }
    int wide = VALUE_ACCS / n_rows < 4 ? VALUE_ACCS / n_rows : 4, dim = 0;
    for (; dim + 16 * wide <= j->head_v; dim += 16 * wide) {
        value_tile(as, n_rows, wide, j, c, p, lo, hi, dim, o);
    }
    for (; dim + 16 <= j->head_v; dim += 16) {
        value_tile(as, n_rows, 1, j, c, p, lo, hi, dim, o);
    }
    for (int r = 0; dim < j->head_v && r < n_rows; r++) {
        value_tail(as, j, c.v, p + r * CW_CHUNK, lo, hi, dim, o + r * j->head_v);
    }
}

INLINE void value_some(enum layout as, int n, const struct cw_attend_job *j, struct cells c,
                       const float *p, int lo, int hi, float *o) {
#define ROWS(N)                                                                                    \
    case N:                                                                                        \
        value_rows(as, N, j, c, p, lo, hi, o);                                                     \
        break;
    switch (n) {
        ROWS(1)
        ROWS(2)
        ROWS(3)
        ROWS(4)
        ROWS(5)
        ROWS(6)
    }
#undef ROWS
}

/* Rows of a tile may see different cells: the common ones go together, what a row sees before and
 * after them it takes alone, in order. */
INLINE void values(enum layout as, const struct cw_attend_job *j, struct cells c, const float *p) {
    size_t ld = (size_t)j->head_v;
    for (int r = 0; r < j->n_rows; r += VALUE_ROWS) {
        int n = j->n_rows - r < VALUE_ROWS ? j->n_rows - r : VALUE_ROWS;
        int lo = 0, hi = CW_CHUNK;
        for (int i = r; i < r + n; i++) {
            lo = j->lo[i] > lo ? j->lo[i] : lo;
            hi = j->hi[i] < hi ? j->hi[i] : hi;
        }
        bool common = lo < hi;
        for (int i = r; i < r + n; i++) {
            value_some(as, 1, j, c, p + i * CW_CHUNK, j->lo[i], common ? lo : j->hi[i],
                       j->o + (size_t)i * ld);
        }
        if (common) {
            value_some(as, n, j, c, p + r * CW_CHUNK, lo, hi, j->o + (size_t)r * ld);
            for (int i = r; i < r + n; i++) {
                value_some(as, 1, j, c, p + i * CW_CHUNK, hi, j->hi[i], j->o + (size_t)i * ld);
            }
        }
    }
}

/* ---- a chunk --------------------------------------------------------------------------------- */

INLINE void attend_cells(enum layout as, const struct cw_attend_job *j, struct cells c, int lo,
                         int hi, float *s) {
    scores(as, j, c.k, lo, hi, s);
    for (int r = 0; r < j->n_rows; r++) {
        softmax_row(j, r, s + r * CW_CHUNK);
    }
    __builtin_memset(j->o, 0, (size_t)j->n_rows * (size_t)j->head_v * sizeof *j->o);
    values(as, j, c, s);
}

static void attend_f16(const struct cw_attend_job *j, struct cells c, int lo, int hi, float *s) {
    attend_cells(AS_F16, j, c, lo, hi, s);
}

static void attend_q8(const struct cw_attend_job *j, struct cells c, int lo, int hi, float *s) {
    attend_cells(AS_Q8, j, c, lo, hi, s);
}

static void attend_f32(const struct cw_attend_job *j, struct cells c, int lo, int hi, float *s) {
    attend_cells(AS_F32, j, c, lo, hi, s);
}

/* Rows from which turning a chunk into f32 once is cheaper than for every tile. */
#define WIDEN_ROWS (2 * SCORE_ROWS)

static void attend(const struct cw_attend_job *j) {
    int lo = CW_CHUNK, hi = 0;
    for (int i = 0; i < j->n_rows; i++) {
        lo = j->lo[i] < lo ? j->lo[i] : lo;
        hi = j->hi[i] > hi ? j->hi[i] : hi;
    }
    float *s = j->scratch, *k = s + j->n_rows * CW_CHUNK, *v = k + CW_CHUNK * j->head_k;
    if (j->n_rows >= WIDEN_ROWS) {
        attend_f32(j, widen(j, lo, hi, k, v), lo, hi, s);
    } else if (j->kind == KV_F16) {
        attend_f16(j, (struct cells){j->k, j->v, NULL}, lo, hi, s);
    } else {
        widen_scales(j, lo, hi, v);
        attend_q8(j, (struct cells){j->k, j->v, v}, lo, hi, s);
    }
}

static void merge(float *big_m, float *big_l, float *big_o, float m, float l, const float *o,
                  int head_v) {
    float top = m > *big_m ? m : *big_m;
    v16 a = v16_exp(v16_set1(*big_m - top)), b = v16_exp(v16_set1(m - top));
    *big_m = top;
    *big_l = v16_first(v16_fma(v16_set1(*big_l), a, v16_mul(v16_set1(l), b)));
    for (int k = 0; k < head_v; k += 16) {
        int n = head_v - k;
        v16 mine = v16_mul(v16_load_n(o + k, n), b);
        v16_store_n(big_o + k, v16_fma(v16_load_n(big_o + k, n), a, mine), n);
    }
}

#endif
