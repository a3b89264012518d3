/* SPDX-License-Identifier: MIT
 *
 * Products. Quantised: R rows of weights are unpacked into a panel, then every tile of tokens is
 * multiplied with it, tokens in registers and rows in lanes: the activation dword is broadcast, no
 * sum crosses lanes, and each row's additions come in block order (rule 1) however many tokens
 * there are. One token (decode) takes the same way. Float: a row's sixteen lanes (rule 2).
 */
#ifndef CW_PRODUCT_H
#define CW_PRODUCT_H

INLINE vi broadcast_dword(const void *p) {
    int32_t v;
    __builtin_memcpy(&v, p, 4);
    return vi_set1(v);
}

/* Keeps the compiler from turning a chain of additions into a tree, which costs registers. */
#define KEEP(x) __asm__("" : "+x"(x))

/* Where a kernel's weights come from: a panel, or packed blocks one after the other. Which, and of
 * packed blocks the type, is known at compile time. */
enum { PANEL = -1 };
struct weights {
    const uint8_t *packed;
    const struct panel *panel;
    bool stream; /* the packed blocks come from memory: fetch ahead */
};

/* Some tokens of a tile: where the activations of the first of them begin. */
struct tile {
    int offset; /* of the codes, see struct kind */
    int t;      /* tokens of the whole tile: the stride */
    const int8_t *q;
    const float *d, *sum32;
    const int16_t *s16;
    const int32_t *centre;
};

/* The codes of k-group i of eighth `half`, `part` of block b (blocks of 32: of the block). */
INLINE vi codes_of(int type, const struct weights *w, int b, int half, int part, int i) {
    if (type == PANEL) {
        return vi_load(w->panel->codes + (b * 8 + i) * R * 4);
    }
    return kinds[type].block == 32 ? codes_32(type, w->packed, i)
                                   : codes_256(type, w->packed, half, part, i);
}

/* acc[c] += the products of eight k-groups, for each sub-block of them times its scale where there
 * are such. Of a panel they are the b-th eight. x moves on. */
INLINE void dot_eight(int shape, int type, int n_columns, int t, const struct weights *w, int b,
                      int half, int part, struct tile *x, const int32_t *scale, vi *acc) {
    const struct form f = forms[shape];
    int sub = f.sub, steps = f.steps;
#if HAS_VNNI
    steps = f.block == 256 && f.steps ? f.steps : sub;
#endif
    for (int begin = 0; begin < 8; begin += steps) {
        vi sum[TILE_COLUMNS];
#if HAS_VNNI
        for (int c = 0; c < n_columns; c++) {
            sum[c] = f.block == 32 ? acc[c]
                     : f.centred   ? broadcast_dword(x->centre + begin / steps * t + c)
                                   : vi_zero();
        }
        for (int i = begin; i < begin + steps; i++) {
            vi u = codes_of(type, w, b, half, part, i);
            for (int c = 0; c < n_columns; c++) {
                sum[c] = vi_dot(sum[c], u, broadcast_dword(x->q + (i * t + c) * 4));
            }
        }
        vi factor = f.block == 32 ? vi_zero() : vi_load(scale + begin / sub * R);
        for (int c = 0; c < n_columns; c++) {
            acc[c] = f.block == 32 ? sum[c]
                     : f.steps     ? vi_dot2(acc[c], sum[c], factor)
                                   : vi_add(acc[c], vi_mul(sum[c], factor));
        }
#else
        for (int c = 0; c < n_columns; c++) {
            sum[c] = vi_zero();
        }
        for (int i = begin; i < begin + steps; i++) {
            vi u = codes_of(type, w, b, half, part, i);
            vi size = steps == 1 ? vi_abs_bytes(u) : u;
            for (int c = 0; c < n_columns; c++) {
                vi v = broadcast_dword(x->q + (i * t + c) * 4);
                vi p = vi_dot_halves(size, steps == 1 ? vi_sign_bytes(v, u) : v);
                sum[c] = i == begin ? p : vi_add_halves(sum[c], p);
                KEEP(sum[c]);
            }
        }
        vi factor = f.block == 32 ? vi_set1(0x00010001) : vi_load(scale + begin / sub * R);
        for (int c = 0; c < n_columns; c++) {
            acc[c] = vi_dot2(acc[c], sum[c], factor);
        }
#endif
    }
    x->q += 32 * t;
    x->centre += f.centred ? 4 * t : 0;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* A packed copy is one stream, but the kernels pause it to multiply, so it is fetched by hand, in
 * two steps: far ahead into the second-level cache, which has room for more lines on their way than
 * the first, and from there near ahead into the first. (One step alone read at three quarters of
 * the speed of a plain sum, both at 93 to 97 percent.) Past the copy's end the hint is harmless. */
#define FETCH_FAR  24576
#define FETCH_NEAR 2048

INLINE void fetch_packed_ahead(int type, const struct weights *w) {
    const char *p = (const char *)w->packed;
    for (size_t i = 0; w->stream && i < R * (size_t)kinds[type].bytes; i += 64) {
        _mm_prefetch(p + FETCH_FAR + i, _MM_HINT_T1);
        _mm_prefetch(p + FETCH_NEAR + i, _MM_HINT_T0);
    }
}

INLINE void tile_32(int shape, int type, int n_columns, int t, struct weights w, int n_blocks,
                    struct tile x, vf *y) {
    vf offset = vf_set1((float)x.offset);
    for (int b = 0; b < n_blocks; b++) {
        vi acc[TILE_COLUMNS];
        for (int c = 0; c < n_columns; c++) {
            acc[c] = vi_zero();
        }
        if (type != PANEL) {
            fetch_packed_ahead(type, &w);
        }
        dot_eight(shape, type, n_columns, t, &w, b, 0, 0, &x, NULL, acc);
        vf d = type != PANEL ? scale_at(type, w.packed) : vf_load(w.panel->d + b * R);
        vf m = d;
        if (forms[shape].min) {
            m = type != PANEL ? minimum_at(type, w.packed) : vf_load(w.panel->m + b * R);
        }
        for (int c = 0; c < n_columns; c++) {
            vf dx = vf_set1(x.d[c]), sum = vf_of_int(acc[c]);
            if (forms[shape].offset) { /* integers below 2^24: exact */
                sum = vf_fnma(vf_set1(x.sum32[c]), offset, sum);
            }
            y[c] = vf_fma(vf_mul(d, dx), sum, y[c]);
            if (forms[shape].min) {
                y[c] = vf_fma(vf_mul(m, dx), vf_set1(x.sum32[c]), y[c]);
            }
        }
        if (type != PANEL) {
            w.packed += R * (size_t)kinds[type].bytes;
        }
        x.d += t;
        x.sum32 += t;
    }
}

INLINE void tile_256(int shape, int type, int n_columns, int t, struct weights w, int n_blocks,
                     struct tile x, vf *y) {
    int32_t own_scale[16 * R], own_pair[8 * R]; /* of a packed block */
    int subs = 8 / forms[shape].sub * R;        /* scales of an eighth */
    for (int b = 0; b < n_blocks; b++) {
        vi acc[TILE_COLUMNS], rest[TILE_COLUMNS];
        for (int c = 0; c < n_columns; c++) {
            acc[c] = rest[c] = vi_zero();
        }
        const int32_t *scale = own_scale, *pair = own_pair;
        if (type != PANEL) {
            fetch_packed_ahead(type, &w);
            sub_scales(type, w.packed, own_scale, own_pair);
            for (int half = 0; half < 2; half++, scale += 4 * subs) {
                dot_eight(shape, type, n_columns, t, &w, 0, half, 0, &x, scale, acc);
                dot_eight(shape, type, n_columns, t, &w, 0, half, 1, &x, scale + subs, acc);
                dot_eight(shape, type, n_columns, t, &w, 0, half, 2, &x, scale + 2 * subs, acc);
                dot_eight(shape, type, n_columns, t, &w, 0, half, 3, &x, scale + 3 * subs, acc);
            }
        } else {
            scale = w.panel->scale + b * 16 * R;
            pair = w.panel->pair + b * 8 * R;
            for (int i = 0; i < 8; i++, scale += subs) {
                dot_eight(shape, type, n_columns, t, &w, 8 * b + i, 0, 0, &x, scale, acc);
            }
        }
        if (forms[shape].min || forms[shape].offset) {
            for (int i = 0; i < 8; i++, pair += R, x.s16 += 2 * t) {
                vi u = vi_load(pair);
                for (int c = 0; c < n_columns; c++) {
                    rest[c] = vi_dot2(rest[c], u, broadcast_dword(x.s16 + 2 * c));
                }
            }
        }
        vf d = type != PANEL ? scale_at(type, w.packed) : vf_load(w.panel->d + b * R);
        vf m = d;
        if (forms[shape].min) {
            m = type != PANEL ? minimum_at(type, w.packed) : vf_load(w.panel->m + b * R);
        }
        for (int c = 0; c < n_columns; c++) {
            vf dx = vf_set1(x.d[c]);
            if (forms[shape].offset) {
                acc[c] = vi_sub(acc[c], vi_mul(rest[c], vi_set1(x.offset)));
            }
            y[c] = vf_fma(vf_mul(d, dx), vf_of_int(acc[c]), y[c]);
            if (forms[shape].min) {
                y[c] = vf_fma(vf_mul(m, dx), vf_of_int(rest[c]), y[c]);
            }
        }
        if (type != PANEL) {
            w.packed += R * (size_t)kinds[type].bytes;
        }
        x.d += t;
    }
}

/* Where the results of R rows and some tokens go: n_rows of them valid. They continue from the
 * blocks before unless these are the first; the last add the bias. */
struct target {
    float *y;
    size_t ldy;
    int n_rows;
    bool begin;
    const float *bias;
};

/* n_columns tokens of a tile of t; both known at compile time where it matters. */
INLINE void columns(int shape, int type, int n_columns, int t, struct weights w, int n_blocks,
                    struct tile x, const struct target *to) {
    vf acc[TILE_COLUMNS];
    int n_before = to->begin ? 0 : to->n_rows; /* not a branch: GCC would clear them by rep stos */
    for (int c = 0; c < n_columns; c++) {
        acc[c] = vf_load_n(to->y + (size_t)c * to->ldy, n_before);
    }
    if (forms[shape].block == 32) {
        tile_32(shape, type, n_columns, t, w, n_blocks, x, acc);
    } else {
        tile_256(shape, type, n_columns, t, w, n_blocks, x, acc);
    }
    for (int c = 0; c < n_columns; c++) {
        vf v = to->bias ? vf_add(acc[c], vf_load_n(to->bias, to->n_rows)) : acc[c];
        vf_store_n(to->y + (size_t)c * to->ldy, v, to->n_rows);
    }
}

/* One function a shape, and in it one unrolled kernel for each size of tile. Where registers are
 * few a tile is cut in two. The tile comes by reference: copied as a value right after it was
 * written in smaller pieces, it would wait until all stores before it, rows of y far apart, are
 * through. */
typedef void columns_fn(const struct panel *p, int n_blocks, int n_columns, const struct tile *at,
                        const struct target *to);

#define COLUMNS(shape, type, N, T)                                                                 \
    case N:                                                                                        \
        columns(shape, type, N, T, w, n_blocks, x, to);                                            \
        break;
#define FEW_COLUMNS(shape, type)                                                                   \
    COLUMNS(shape, type, 1, 1)                                                                     \
    COLUMNS(shape, type, 2, 2)                                                                     \
    COLUMNS(shape, type, 3, 3)                                                                     \
    COLUMNS(shape, type, 4, 4)
#if TILE_COLUMNS == CW_TILE
#define ALL_COLUMNS(shape)                                                                         \
    COLUMNS(shape, PANEL, 1, 1)                                                                    \
    COLUMNS(shape, PANEL, 2, 2)                                                                    \
    COLUMNS(shape, PANEL, 3, 3)                                                                    \
    COLUMNS(shape, PANEL, 4, 4)                                                                    \
    COLUMNS(shape, PANEL, 5, 5)                                                                    \
    COLUMNS(shape, PANEL, 6, 6)                                                                    \
    COLUMNS(shape, PANEL, 7, 7)                                                                    \
    COLUMNS(shape, PANEL, 8, 8)
#else
#define ALL_COLUMNS(shape)                                                                         \
    COLUMNS(shape, PANEL, 1, x.t)                                                                  \
    COLUMNS(shape, PANEL, 2, x.t)                                                                  \
    COLUMNS(shape, PANEL, 3, x.t)                                                                  \
    default:                                                                                       \
        if (x.t == CW_TILE) {                                                                      \
            columns(shape, PANEL, 4, CW_TILE, w, n_blocks, x, to);                                 \
        } else {                                                                                   \
            columns(shape, PANEL, 4, x.t, w, n_blocks, x, to);                                     \
        }                                                                                          \
        break;
#endif
#define SHAPE(name, shape)                                                                         \
    static void name(const struct panel *p, int n_blocks, int n_columns, const struct tile *at,    \
                     const struct target *to) {                                                    \
        const struct tile x = *at;                                                                 \
        const struct weights w = {.panel = p};                                                     \
        switch (n_columns) { ALL_COLUMNS(shape) }                                                  \
    }
SHAPE(columns_q4_0, SHAPE_Q4_0)
SHAPE(columns_q4_1, SHAPE_Q4_1)
SHAPE(columns_q2_k, SHAPE_Q2_K)
SHAPE(columns_q3_k, SHAPE_Q3_K)
SHAPE(columns_q4_k, SHAPE_Q4_K)
SHAPE(columns_q5_k, SHAPE_Q5_K)
SHAPE(columns_q6_k, SHAPE_Q6_K)
SHAPE(columns_byte_k, SHAPE_BYTE_K)
#if !HAS_VNNI
SHAPE(columns_q5_0, SHAPE_Q5_0)
SHAPE(columns_q5_1, SHAPE_Q5_1)
SHAPE(columns_byte, SHAPE_BYTE)
#endif

static columns_fn *const columns_of[N_SHAPES] = {
    [SHAPE_Q4_0] = columns_q4_0, [SHAPE_Q4_1] = columns_q4_1,     [SHAPE_Q2_K] = columns_q2_k,
    [SHAPE_Q3_K] = columns_q3_k, [SHAPE_Q4_K] = columns_q4_k,     [SHAPE_Q5_K] = columns_q5_k,
    [SHAPE_Q6_K] = columns_q6_k, [SHAPE_BYTE_K] = columns_byte_k,
#if !HAS_VNNI
    [SHAPE_Q5_0] = columns_q5_0, [SHAPE_Q5_1] = columns_q5_1,     [SHAPE_BYTE] = columns_byte,
#endif
};

/* ---- the walk over rows, panels and tiles ---------------------------------------------------- */

/* Up to so many tokens are multiplied from packed blocks directly. */
#define DIRECT_COLUMNS 4

/* Panels that are held at once when there are many tokens: then a tile of activations is read once
 * for all of them, and what they write of a token lies together. */
#define PANELS (64 / R)

/* Tokens c .. of the tile that begins at token `tile` and has t, from block b0 on. */
INLINE struct tile tile_of(int type, const struct cw_product_job *j, int tile, int t, int c,
                           int b0) {
    size_t first = (size_t)tile * (size_t)(j->cols / kinds[type].block) + (size_t)(b0 * t);
    return (struct tile){
        .offset = kinds[type].offset,
        .t = t,
        .q = j->q + first * (size_t)kinds[type].block + 4 * c,
        .d = j->d + first + c,
        .sum32 = kinds[type].block == 32 ? j->sum32 + first + c : NULL,
        .s16 = kinds[type].block == 32 ? NULL : j->s16 + first * 16 + 2 * c,
        .centre = kinds[type].block == 32 ? NULL : j->centre + first * 32 + c,
    };
}

/* Every tile of tokens against panels of blocks b0 .. b0 + n - 1; `all` is the first panel's
 * target, with the rows of all. */
static void panel_product(int type, const struct cw_product_job *j, const struct panel *p, int b0,
                          int n, const struct target *all) {
    for (int tile = 0; tile < j->n; tile += CW_TILE) {
        int t = j->n - tile < CW_TILE ? j->n - tile : CW_TILE;
        for (int c = 0; c < t; c += TILE_COLUMNS) {
            int n_columns = t - c < TILE_COLUMNS ? t - c : TILE_COLUMNS;
            struct tile x = tile_of(type, j, tile, t, c, b0);
            for (int r = 0; r < all->n_rows; r += R) {
                struct target to = {
                    .y = all->y + (size_t)(tile + c) * j->ldy + r,
                    .ldy = j->ldy,
                    .n_rows = all->n_rows - r < R ? all->n_rows - r : R,
                    .begin = all->begin,
                    .bias = all->bias ? all->bias + r : NULL,
                };
                columns_of[kinds[type].shape](p + r / R, n, n_columns, &x, &to);
            }
        }
    }
}

/* The few tokens of a product against packed blocks. */
INLINE void direct_product(int type, const struct cw_product_job *j, struct weights w, int b0,
                           int n_blocks, const struct target *to) {
    struct tile x = tile_of(type, j, 0, j->n, 0, b0);
    switch (j->n) { FEW_COLUMNS(kinds[type].shape, type) }
}

/* Fetches the next panel's bytes while this one is worked on: the rows of a panel are streams too
 * short and too many for the hardware to follow. */
struct ahead {
    const uint8_t *row; /* the first row's first byte of the panel */
    size_t row_bytes, bytes;
    int n_rows, at_row;
    size_t at, step; /* lines are fetched step at a time */
};

INLINE void fetch_ahead(struct ahead *a) {
    for (size_t i = 0; i < a->step && a->at_row < a->n_rows; i++) {
        _mm_prefetch((const char *)a->row + (size_t)a->at_row * a->row_bytes + a->at, _MM_HINT_T0);
        a->at += 64;
        if (a->at >= a->bytes) {
            a->at = 0;
            a->at_row++;
        }
    }
}

/* The panel after blocks b0 .. b0 + n - 1 of rows r .. r + R - 1. */
INLINE struct ahead ahead_of(int type, const struct cw_product_job *j, int r, int b0, int n,
                             int panel_blocks) {
    int n_blocks = j->cols / kinds[type].block, next = b0 + n;
    if (next == n_blocks) {
        next = 0;
        r += R;
    }
    int nb = n_blocks - next < panel_blocks ? n_blocks - next : panel_blocks;
    struct ahead a = {
        .row = j->w + (size_t)r * j->row_bytes + (size_t)next * (size_t)kinds[type].bytes,
        .row_bytes = j->row_bytes,
        .bytes = (size_t)nb * (size_t)kinds[type].bytes,
        .n_rows = j->rows - r < R ? j->rows - r : R,
    };
    a.step = (R * (a.bytes / 64 + 1)) / (size_t)n + 1;
    return a;
}

enum source { FROM_ROWS, FROM_ROWS_TO_PACKED, FROM_PACKED };

/* Packed blocks b0 .. b0 + n - 1 of rows r .. r + R - 1: where the copy has them, or made here. */
INLINE struct weights packed_blocks(int type, enum source from, const struct cw_product_job *j,
                                    int r, int b0, int n, int panel_blocks, uint8_t *own) {
    size_t block = R * (size_t)kinds[type].bytes;
    struct weights w = {.packed = own, .stream = from == FROM_PACKED};
    if (from != FROM_ROWS) {
        w.packed = j->packed + (size_t)r * j->row_bytes + (size_t)b0 * block;
    }
    if (from != FROM_PACKED) {
        uint8_t *to = from == FROM_ROWS ? own : j->packed + (w.packed - j->packed);
        struct ahead ahead = ahead_of(type, j, r, b0, n, panel_blocks);
        struct rows rows = rows_at(j->w + (size_t)r * j->row_bytes, j->row_bytes,
                                   j->rows - r < R ? j->rows - r : R);
        for (int b = 0; b < n; b++) {
            fetch_ahead(&ahead);
            pack_block(type, &rows, (size_t)(b0 + b) * (size_t)kinds[type].bytes,
                       to + (size_t)b * block);
        }
    }
    return w;
}

INLINE void product_from(int type, enum source from, const struct cw_product_job *j) {
    struct panel panels[PANELS];
    _Alignas(64) uint8_t own[PANEL_COLS / 32 * 34 * R]; /* the largest: Q8_0 */
    bool direct = j->n <= DIRECT_COLUMNS;
    int n_blocks = j->cols / kinds[type].block;
    int panel_blocks = direct && from == FROM_PACKED ? n_blocks : PANEL_COLS / kinds[type].block;
    int held = j->n > 4 * CW_TILE ? PANELS * R : R;
    for (int r = 0; r < j->rows; r += held) {
        int n_rows = j->rows - r < held ? j->rows - r : held;
        for (int b0 = 0; b0 < n_blocks; b0 += panel_blocks) {
            int nb = n_blocks - b0 < panel_blocks ? n_blocks - b0 : panel_blocks;
            struct target all = {
                .y = j->y + r,
                .ldy = j->ldy,
                .n_rows = n_rows,
                .begin = b0 == 0,
                .bias = j->bias && b0 + nb == n_blocks ? j->bias + r : NULL,
            };
            for (int i = 0; i < n_rows; i += R) {
                struct weights w = packed_blocks(type, from, j, r + i, b0, nb, panel_blocks, own);
                if (direct) {
                    direct_product(type, j, w, b0, nb, &all);
                    continue;
                }
                for (int b = 0; b < nb; b++) {
                    fetch_packed_ahead(type, &w);
                    unpack_block(type, w.packed, b, panels + i / R);
                    w.packed += R * (size_t)kinds[type].bytes;
                }
            }
            if (!direct) {
                panel_product(type, j, panels, b0, nb, &all);
            }
        }
    }
}

#define QUANTISED(T)                                                                               \
    static void product_##T(const struct cw_product_job *j) {                                      \
        product_from(CW_##T,                                                                       \
                     !j->packed ? FROM_ROWS                                                        \
                     : j->pack  ? FROM_ROWS_TO_PACKED                                              \
                                : FROM_PACKED,                                                      \
                     j);                                                                           \
    }
QUANTISED(Q4_0)
QUANTISED(Q4_1)
QUANTISED(Q5_0)
QUANTISED(Q5_1)
QUANTISED(Q8_0)
QUANTISED(IQ4_NL)
QUANTISED(MXFP4)
QUANTISED(Q2_K)
QUANTISED(Q3_K)
QUANTISED(Q4_K)
QUANTISED(Q5_K)
QUANTISED(Q6_K)
QUANTISED(IQ4_XS)
#undef QUANTISED

/* ---- float weights --------------------------------------------------------------------------- */

INLINE v16 load_weights(int type, const uint8_t *p) {
    const void *w = p;
    return type == CW_F32 ? v16_load(w) : type == CW_F16 ? v16_load_f16(w) : v16_load_bf16(w);
}

/* The last n < 16 weights of a row, zeros after them. */
INLINE v16 load_last(int type, const uint8_t *p, int n) {
    uint8_t last[64] = {0};
    __builtin_memcpy(last, p, (size_t)n * (type == CW_F32 ? 4 : 2));
    return load_weights(type, last);
}

INLINE void float_tile(int type, int n_rows, int n_columns, const struct cw_product_job *j, int r,
                       int c) {
    size_t size = type == CW_F32 ? 4 : 2;
    const uint8_t *w = j->w + (size_t)r * j->row_bytes;
    const float *x = j->x + (size_t)c * j->ldx;
    v16 acc[FLOAT_ROWS * 2][FLOAT_COLUMNS];
    for (int a = 0; a < n_rows; a++) {
        for (int b = 0; b < n_columns; b++) {
            acc[a][b] = v16_zero();
        }
    }
    int i = 0;
    for (; i + 16 <= j->cols; i += 16) {
        v16 v[FLOAT_COLUMNS];
        for (int b = 0; b < n_columns; b++) {
            v[b] = v16_load(x + (size_t)b * j->ldx + i);
        }
        for (int a = 0; a < n_rows; a++) {
            v16 u = load_weights(type, w + (size_t)a * j->row_bytes + (size_t)i * size);
            for (int b = 0; b < n_columns; b++) {
                acc[a][b] = v16_fma(u, v[b], acc[a][b]);
            }
        }
    }
    int rest = j->cols - i;
    for (int a = 0; a < n_rows; a++) {
        for (int b = 0; b < n_columns; b++) {
            if (rest > 0) {
                acc[a][b] = v16_fma_n(
                    load_last(type, w + (size_t)a * j->row_bytes + (size_t)i * size, rest),
                    v16_load_n(x + (size_t)b * j->ldx + i, rest), acc[a][b], rest);
            }
            float y = v16_tree(acc[a][b]);
            j->y[(size_t)(c + b) * j->ldy + (size_t)(r + a)] = j->bias ? y + j->bias[r + a] : y;
        }
    }
}

INLINE void product_float(int type, const struct cw_product_job *j) {
    int r = 0;
    for (; r + FLOAT_ROWS <= j->rows; r += FLOAT_ROWS) {
        int c = 0;
        if (j->n == 1 && r + 2 * FLOAT_ROWS <= j->rows) { /* more chains to hide latency */
            float_tile(type, 2 * FLOAT_ROWS, 1, j, r, 0);
            r += FLOAT_ROWS;
            continue;
        }
        for (; c + FLOAT_COLUMNS <= j->n; c += FLOAT_COLUMNS) {
            float_tile(type, FLOAT_ROWS, FLOAT_COLUMNS, j, r, c);
        }
        for (; c < j->n; c++) {
            float_tile(type, FLOAT_ROWS, 1, j, r, c);
        }
    }
    for (; r < j->rows; r++) {
        for (int c = 0; c < j->n; c++) {
            float_tile(type, 1, 1, j, r, c);
        }
    }
}

static void widen_row(int type, const uint8_t *w, int n, float *y) {
    size_t size = type == CW_F32 ? 4 : 2;
    int i = 0;
    for (; i + 16 <= n; i += 16) {
        v16_store(y + i, load_weights(type, w + (size_t)i * size));
    }
    if (i < n) {
        float last[16];
        v16_store(last, load_last(type, w + (size_t)i * size, n - i));
        __builtin_memcpy(y + i, last, (size_t)(n - i) * sizeof *y);
    }
}

static void product_F32(const struct cw_product_job *j) {
    product_float(CW_F32, j);
}

static void product_F16(const struct cw_product_job *j) {
    product_float(CW_F16, j);
}

static void product_BF16(const struct cw_product_job *j) {
    product_float(CW_BF16, j);
}

#endif
