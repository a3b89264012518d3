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

/* acc[c] += the products of `groups` k-groups, times scale where one is given. q advances t dwords
 * a k-group. */
INLINE void dot_groups(const struct form f, int n_columns, int groups, const int8_t *codes,
                       const int8_t *q, int t, const int32_t *scale, vi *acc) {
#if HAS_VNNI
    vi sum[TILE_COLUMNS];
    for (int c = 0; c < n_columns; c++) {
        sum[c] = scale ? vi_zero() : acc[c];
    }
    for (int g = 0; g < groups; g++) {
        vi w = vi_load(codes + g * R * 4);
        for (int c = 0; c < n_columns; c++) {
            sum[c] = vi_dot(sum[c], w, broadcast_dword(q + (g * t + c) * 4));
        }
    }
    for (int c = 0; c < n_columns; c++) {
        acc[c] = scale ? vi_add(acc[c], vi_mul(sum[c], vi_load(scale))) : sum[c];
    }
#else
    vi factor = scale ? vi_load(scale) : vi_set1(0x00010001);
    for (int g = 0; g < groups; g += f.steps) {
        vi sum[TILE_COLUMNS];
        for (int s = 0; s < f.steps; s++) {
            vi w = vi_load(codes + (g + s) * R * 4);
            vi size = f.steps == 1 ? vi_abs_bytes(w) : w;
            for (int c = 0; c < n_columns; c++) {
                vi x = broadcast_dword(q + ((g + s) * t + c) * 4);
                vi p = vi_dot_halves(size, f.steps == 1 ? vi_sign_bytes(x, w) : x);
                sum[c] = s == 0 ? p : vi_add_halves(sum[c], p);
                KEEP(sum[c]);
            }
        }
        for (int c = 0; c < n_columns; c++) {
            acc[c] = vi_dot2(acc[c], sum[c], factor);
        }
    }
#endif
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* A panel against some tokens of a tile: where the activations of the first of them begin. */
struct tile {
    int offset; /* of the codes, see struct kind */
    int t;      /* tokens of the whole tile: the stride */
    const int8_t *q;
    const float *d, *sum32;
    const int16_t *s16;
};

INLINE void tile_32(const struct form f, int n_columns, int t, const struct panel *p, int n_blocks,
                    struct tile x, vf *y) {
    const int8_t *codes = p->codes;
    vf offset = vf_set1((float)x.offset);
    for (int b = 0; b < n_blocks; b++) {
        vi acc[TILE_COLUMNS];
        for (int c = 0; c < n_columns; c++) {
            acc[c] = vi_zero();
        }
        dot_groups(f, n_columns, 8, codes, x.q, t, NULL, acc);
        vf d = vf_load(p->d + b * R);
        for (int c = 0; c < n_columns; c++) {
            vf dx = vf_set1(x.d[c]), sum = vf_of_int(acc[c]);
            if (f.offset) { /* integers below 2^24: exact */
                sum = vf_fnma(vf_set1(x.sum32[c]), offset, sum);
            }
            y[c] = vf_fma(vf_mul(d, dx), sum, y[c]);
            if (f.min) {
                y[c] = vf_fma(vf_mul(vf_load(p->m + b * R), dx), vf_set1(x.sum32[c]), y[c]);
            }
        }
        codes += 8 * R * 4;
        x.q += 32 * t;
        x.d += t;
        x.sum32 += t;
    }
}

INLINE void tile_256(const struct form f, int n_columns, int t, const struct panel *p, int n_blocks,
                     struct tile x, vf *y) {
    const int8_t *codes = p->codes;
    const int32_t *scale = p->scale, *pair = p->pair;
    for (int b = 0; b < n_blocks; b++) {
        vi acc[TILE_COLUMNS], rest[TILE_COLUMNS];
        for (int c = 0; c < n_columns; c++) {
            acc[c] = rest[c] = vi_zero();
        }
        for (int g = 0; g < 64; g += f.sub) {
            dot_groups(f, n_columns, f.sub, codes, x.q, t, scale + g / f.sub * R, acc);
            codes += f.sub * R * 4;
            x.q += 4 * f.sub * t;
        }
        scale += 16 * R;
        if (f.min || f.offset) {
            for (int i = 0; i < 8; i++, pair += R, x.s16 += 2 * t) {
                vi w = vi_load(pair);
                for (int c = 0; c < n_columns; c++) {
                    rest[c] = vi_dot2(rest[c], w, broadcast_dword(x.s16 + 2 * c));
                }
            }
        }
        vf d = vf_load(p->d + b * R);
        for (int c = 0; c < n_columns; c++) {
            vf dx = vf_set1(x.d[c]);
            if (f.offset) {
                acc[c] = vi_sub(acc[c], vi_mul(rest[c], vi_set1(x.offset)));
            }
            y[c] = vf_fma(vf_mul(d, dx), vf_of_int(acc[c]), y[c]);
            if (f.min) {
                y[c] = vf_fma(vf_mul(vf_load(p->m + b * R), dx), vf_of_int(rest[c]), y[c]);
            }
        }
        x.d += t;
    }
}

/* Where the results of a panel and some tokens go: n_rows of them valid. They continue from the
 * previous panel unless this is the first; the last adds the bias. */
struct target {
    float *y;
    size_t ldy;
    int n_rows;
    bool begin;
    const float *bias;
};

/* n_columns tokens of a tile of t; both known at compile time where it matters. */
INLINE void columns(const struct form f, int n_columns, int t, const struct panel *p, int n_blocks,
                    struct tile x, const struct target *to) {
    vf acc[TILE_COLUMNS];
    for (int c = 0; c < n_columns; c++) {
        acc[c] = to->begin ? vf_zero() : vf_load_n(to->y + (size_t)c * to->ldy, to->n_rows);
    }
    if (f.block == 32) {
        tile_32(f, n_columns, t, p, n_blocks, x, acc);
    } else {
        tile_256(f, n_columns, t, p, n_blocks, x, acc);
    }
    for (int c = 0; c < n_columns; c++) {
        vf v = to->bias ? vf_add(acc[c], vf_load_n(to->bias, to->n_rows)) : acc[c];
        vf_store_n(to->y + (size_t)c * to->ldy, v, to->n_rows);
    }
}

/* One function a shape, and in it one unrolled kernel for each size of tile; a full tile is cut in
 * two, and one of 5 to 7 tokens into single ones, where registers are few. */
typedef void columns_fn(const struct panel *p, int n_blocks, struct tile x,
                        const struct target *to);

#define COLUMNS(N)                                                                                 \
    case N:                                                                                        \
        columns(f, N, N, p, n_blocks, x, to);                                                      \
        break;
#if TILE_COLUMNS == CW_TILE
#define OTHER_COLUMNS COLUMNS(5) COLUMNS(6) COLUMNS(7) COLUMNS(8)
#else
#define OTHER_COLUMNS                                                                              \
    case 8:                                                                                        \
        columns(f, TILE_COLUMNS, CW_TILE, p, n_blocks, x, to);                                     \
        break;                                                                                     \
    default:                                                                                       \
        columns(f, 1, x.t, p, n_blocks, x, to);                                                    \
        break;
#endif
#define SHAPE(name, ...)                                                                           \
    static void name(const struct panel *p, int n_blocks, struct tile x,                           \
                     const struct target *to) {                                                    \
        const struct form f = {__VA_ARGS__};                                                       \
        switch (x.t) { COLUMNS(1) COLUMNS(2) COLUMNS(3) COLUMNS(4) OTHER_COLUMNS }                 \
    }
/*                     block sub steps min offset */
SHAPE(columns_q4_0, 32, 8, 8, false, true)
SHAPE(columns_q4_1, 32, 8, 8, true, false)
SHAPE(columns_q2_k, 256, 4, 4, true, false)
SHAPE(columns_q3_k, 256, 4, 4, false, true)
SHAPE(columns_q4_k, 256, 8, 8, true, false)
SHAPE(columns_byte_k, 256, 8, 1, false, HAS_VNNI)
#if !HAS_VNNI
SHAPE(columns_q5_0, 32, 8, 4, false, true)
SHAPE(columns_q5_1, 32, 8, 4, true, false)
SHAPE(columns_byte, 32, 8, 1, false, false)
SHAPE(columns_q5_k, 256, 8, 4, true, false)
SHAPE(columns_q6_k, 256, 4, 2, false, true)
#endif

static columns_fn *const columns_of[N_SHAPES] = {
    [SHAPE_Q4_0] = columns_q4_0, [SHAPE_Q4_1] = columns_q4_1, [SHAPE_Q2_K] = columns_q2_k,
    [SHAPE_Q3_K] = columns_q3_k, [SHAPE_Q4_K] = columns_q4_k, [SHAPE_BYTE_K] = columns_byte_k,
#if !HAS_VNNI
    [SHAPE_Q5_0] = columns_q5_0, [SHAPE_Q5_1] = columns_q5_1, [SHAPE_BYTE] = columns_byte,
    [SHAPE_Q5_K] = columns_q5_k, [SHAPE_Q6_K] = columns_q6_k,
#endif
};

/* ---- the walk over rows, panels and tiles ---------------------------------------------------- */

/* Panels that are held at once when there are many tokens: then a tile of activations is read once
 * for all of them, and what they write of a token lies together. */
#define PANELS (64 / R)

/* Every tile of tokens against panels of blocks b0 .. b0 + n - 1; `to` is the first panel's target,
 * with the rows of all. */
static void panel_product(const struct kind *k, const struct cw_product_job *j,
                          const struct panel *p, int b0, int n, const struct target *all) {
    size_t n_blocks = (size_t)(j->cols / k->block);
    for (int tile = 0; tile < j->n; tile += CW_TILE) {
        int t = j->n - tile < CW_TILE ? j->n - tile : CW_TILE;
        int step = t <= TILE_COLUMNS ? t : t == CW_TILE ? TILE_COLUMNS : 1;
        size_t first = (size_t)tile * n_blocks + (size_t)(b0 * t);
        for (int c = 0; c < t; c += step) {
            struct tile x = {
                .offset = k->offset,
                .t = t,
                .q = j->q + first * (size_t)k->block + 4 * c,
                .d = j->d + first + c,
                .sum32 = k->block == 32 ? j->sum32 + first + c : NULL,
                .s16 = k->block == 32 ? NULL : j->s16 + first * 16 + 2 * c,
            };
            for (int r = 0; r < all->n_rows; r += R) {
                struct target to = {
                    .y = all->y + (size_t)(tile + c) * j->ldy + r,
                    .ldy = j->ldy,
                    .n_rows = all->n_rows - r < R ? all->n_rows - r : R,
                    .begin = all->begin,
                    .bias = all->bias ? all->bias + r : NULL,
                };
                columns_of[k->shape](p + r / R, n, x, &to);
            }
        }
    }
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
INLINE struct ahead ahead_of(const struct kind k, const struct cw_product_job *j, int r, int b0,
                             int n, int panel_blocks) {
    int n_blocks = j->cols / k.block, next = b0 + n;
    if (next == n_blocks) {
        next = 0;
        r += R;
    }
    int nb = n_blocks - next < panel_blocks ? n_blocks - next : panel_blocks;
    struct ahead a = {
        .row = j->w + (size_t)r * j->row_bytes + (size_t)next * (size_t)k.bytes,
        .row_bytes = j->row_bytes,
        .bytes = (size_t)nb * (size_t)k.bytes,
        .n_rows = j->rows - r < R ? j->rows - r : R,
    };
    a.step = (R * (a.bytes / 64 + 1)) / (size_t)n + 1;
    return a;
}

/* A packed copy is one stream, but the kernels pause it to multiply: this many bytes ahead it is
 * fetched by hand, so that memory does not pause too. Past its end the hint is harmless. */
#define PACKED_AHEAD 6144

/* Blocks b0 .. b0 + n - 1 of rows r .. r + n_rows - 1 to a panel. */
INLINE void fill_panel(const struct kind k, enum source from, const struct cw_product_job *j, int r,
                       int n_rows, int b0, int n, struct ahead ahead, struct panel *p) {
    struct rows rows;
    uint8_t *packed = NULL;
    if (from != FROM_PACKED) {
        rows = rows_at(j->w + (size_t)r * j->row_bytes, j->row_bytes, n_rows);
    }
    if (from != FROM_ROWS) {
        packed = j->packed + (size_t)r * j->row_bytes + (size_t)b0 * (size_t)k.bytes * R;
    }
    for (int b = 0; b < n; b++) {
        size_t at = (size_t)(b0 + b) * (size_t)k.bytes;
        if (from == FROM_PACKED) {
            for (size_t i = 0; i < R * (size_t)k.bytes; i += 64) {
                _mm_prefetch((const char *)packed + PACKED_AHEAD + i, _MM_HINT_T0);
            }
        } else {
            fetch_ahead(&ahead);
        }
        if (k.block == 32) {
            unpack_32(k, from, &rows, at, &packed, p->codes + b * 32 * R, p->d + b * R,
                      p->m + b * R);
        } else {
            unpack_256(k, &rows, at, p->codes + b * 256 * R, p->scale + b * 16 * R,
                       p->pair + b * 8 * R, p->d + b * R, p->m + b * R);
        }
    }
}

INLINE void product_from(const struct kind k, enum source from, const struct cw_product_job *j) {
    struct panel panels[PANELS];
    int panel_blocks = PANEL_COLS / k.block, n_blocks = j->cols / k.block;
    int held = j->n > 4 * CW_TILE ? PANELS * R : R;
    for (int r = 0; r < j->rows; r += held) {
        int n_rows = j->rows - r < held ? j->rows - r : held;
        for (int b0 = 0; b0 < n_blocks; b0 += panel_blocks) {
            int nb = n_blocks - b0 < panel_blocks ? n_blocks - b0 : panel_blocks;
            for (int i = 0; i < n_rows; i += R) {
                fill_panel(k, from, j, r + i, n_rows - i < R ? n_rows - i : R, b0, nb,
                           ahead_of(k, j, r + i, b0, nb, panel_blocks), panels + i / R);
            }
            struct target all = {
                .y = j->y + r,
                .ldy = j->ldy,
                .n_rows = n_rows,
                .begin = b0 == 0,
                .bias = j->bias && b0 + nb == n_blocks ? j->bias + r : NULL,
            };
            panel_product(&k, j, panels, b0, nb, &all);
        }
    }
}

#define QUANTISED(T)                                                                               \
    static void product_##T(const struct cw_product_job *j) {                                      \
        product_from(kind_##T, FROM_ROWS, j);                                                      \
    }
/* Types that may have a packed copy. */
#define PACKABLE(T)                                                                                \
    static void product_##T(const struct cw_product_job *j) {                                      \
        if (!j->packed) {                                                                          \
            product_from(kind_##T, FROM_ROWS, j);                                                  \
        } else if (j->pack) {                                                                      \
            product_from(kind_##T, FROM_ROWS_TO_PACKED, j);                                        \
        } else {                                                                                   \
            product_from(kind_##T, FROM_PACKED, j);                                                \
        }                                                                                          \
    }
PACKABLE(Q4_0)
PACKABLE(Q4_1)
PACKABLE(Q5_0)
PACKABLE(Q5_1)
PACKABLE(Q8_0)
QUANTISED(IQ4_NL)
QUANTISED(MXFP4)
QUANTISED(Q2_K)
QUANTISED(Q3_K)
QUANTISED(Q4_K)
QUANTISED(Q5_K)
QUANTISED(Q6_K)
QUANTISED(IQ4_XS)
#undef QUANTISED
#undef PACKABLE

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
