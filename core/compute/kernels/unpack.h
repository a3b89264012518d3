/* SPDX-License-Identifier: MIT
 *
 * From file blocks to panels: R rows side by side, a byte a code, ready for the product kernels.
 * The formats are those of quant.c; here a dword holds the same four consecutive weights (a
 * k-group) of one row, and a vector the R rows.
 *
 * Codes are unsigned, with the offset that the type's constants below name, except where an ISA
 * without VNNI multiplies signed bytes by magnitude and sign.
 */
#ifndef CW_UNPACK_H
#define CW_UNPACK_H

#define PANEL_COLS 1024 /* columns of a panel at most: it stays in the first-level cache */

/* How the kernels treat a type. */
struct kind {
    int type, block, bytes; /* cw_type, weights and bytes of a block */
    int offset;             /* that the panel's codes carry: weight = code - offset */
    int shape;              /* enum shape */
};

/* What a product kernel has to know at compile time. Types of 256 have sub-blocks of so many
 * k-groups, each with a scale. Without VNNI, `steps` k-groups' products may be summed in 16 bits,
 * and 1 means signed codes. */
struct form {
    int block; /* 32 or 256 */
    int sub;   /* k-groups of a sub-block */
    int steps;
    bool min;    /* has a minimum */
    bool offset; /* codes carry one */
};

enum shape {
    SHAPE_Q4_0,
    SHAPE_Q4_1,
    SHAPE_Q5_0,
    SHAPE_Q5_1,
    SHAPE_BYTE,
    SHAPE_Q2_K,
    SHAPE_Q3_K,
    SHAPE_Q4_K,
    SHAPE_Q5_K,
    SHAPE_Q6_K,
    SHAPE_BYTE_K,
    N_SHAPES,
    /* With VNNI there are no 16-bit sums, and fewer shapes. */
    SAME_Q5_0 = HAS_VNNI ? SHAPE_Q4_0 : SHAPE_Q5_0,
    SAME_Q5_1 = HAS_VNNI ? SHAPE_Q4_1 : SHAPE_Q5_1,
    SAME_BYTE = HAS_VNNI ? SHAPE_Q4_0 : SHAPE_BYTE,
    SAME_Q5_K = HAS_VNNI ? SHAPE_Q4_K : SHAPE_Q5_K,
    SAME_Q6_K = HAS_VNNI ? SHAPE_Q3_K : SHAPE_Q6_K,
};

#define BYTE_OFFSET (HAS_VNNI ? 128 : 0) /* of types that use all of a signed byte */

static const struct kind kind_Q4_0 = {CW_Q4_0, 32, 18, 8, SHAPE_Q4_0};
static const struct kind kind_Q4_1 = {CW_Q4_1, 32, 20, 0, SHAPE_Q4_1};
static const struct kind kind_Q5_0 = {CW_Q5_0, 32, 22, 16, SAME_Q5_0};
static const struct kind kind_Q5_1 = {CW_Q5_1, 32, 24, 0, SAME_Q5_1};
static const struct kind kind_Q8_0 = {CW_Q8_0, 32, 34, BYTE_OFFSET, SAME_BYTE};
static const struct kind kind_IQ4_NL = {CW_IQ4_NL, 32, 18, BYTE_OFFSET, SAME_BYTE};
static const struct kind kind_MXFP4 = {CW_MXFP4, 32, 17, 16, SAME_Q5_0};
static const struct kind kind_Q2_K = {CW_Q2_K, 256, 84, 0, SHAPE_Q2_K};
static const struct kind kind_Q3_K = {CW_Q3_K, 256, 110, 4, SHAPE_Q3_K};
static const struct kind kind_Q4_K = {CW_Q4_K, 256, 144, 0, SHAPE_Q4_K};
static const struct kind kind_Q5_K = {CW_Q5_K, 256, 176, 0, SAME_Q5_K};
static const struct kind kind_Q6_K = {CW_Q6_K, 256, 210, 32, SAME_Q6_K};
static const struct kind kind_IQ4_XS = {CW_IQ4_XS, 256, 136, BYTE_OFFSET, SHAPE_BYTE_K};

static const int8_t iq4_table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};
static const int8_t mxfp4_table[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* Blocks of 32 have code dwords [blocks][8][R], d and m [blocks][R]. Blocks of 256 have code dwords
 * [blocks][64][R]; `scale` [blocks][16][R] is what a sub-block's sum is multiplied by, an i32,
 * or without VNNI the same half twice; `pair` [blocks][8][R] is what the sums of 16 codes are
 * multiplied by, two halves at a time: the minima, or for types with an offset the scales. */
struct panel {
    _Alignas(64) int8_t codes[PANEL_COLS * R];
    float d[PANEL_COLS / 32 * R];
    float m[PANEL_COLS / 32 * R];
    int32_t scale[PANEL_COLS / 256 * 16 * R];
    int32_t pair[PANEL_COLS / 256 * 8 * R];
};

/* R rows of a matrix; rows past the last repeat it, and their results are not stored. */
struct rows {
    const uint8_t *row[R];
    vi offset; /* bytes from row[0], for gathers */
};

static struct rows rows_at(const uint8_t *w, size_t row_bytes, int n) {
    struct rows r;
    int32_t offset[R];
    for (int i = 0; i < R; i++) {
        size_t k = (size_t)(i < n ? i : n - 1);
        r.row[i] = w + k * row_bytes;
        offset[i] = (int32_t)(k * row_bytes);
    }
    r.offset = vi_load(offset);
    return r;
}

/* The dword at `at` of each row. */
INLINE vi row_dword(const struct rows *r, size_t at) {
    return vi_gather(r->row[0] + at, r->offset);
}

INLINE void put(int8_t *codes, int group, vi v) {
    vi_store(codes + group * R * 4, v);
}

INLINE vi low_nibbles(vi v) {
    return vi_and(v, vi_set1(0x0f0f0f0f));
}

INLINE vi high_nibbles(vi v) {
    return vi_and(vi_shr(v, 4), vi_set1(0x0f0f0f0f));
}

/* Bits 4 g .. 4 g + 3 of h to bit 4 of the four bytes. */
INLINE vi fifth_bits(vi h, int g) {
    vi four = vi_and(vi_shr(h, 4 * g), vi_set1(15));
    return vi_and(vi_mul(four, vi_set1(0x02040810)), vi_set1(0x10101010));
}

INLINE vi shifted_table(const int8_t *values, int offset) {
    int8_t t[16];
    for (int i = 0; i < 16; i++) {
        t[i] = (int8_t)(values[i] + offset);
    }
    return vi_table(t);
}

/* A block of 32 with the rows side by side, codes still as the file packs them: what a packed copy
 * of a matrix holds, in this order and with scales of 16 bits, so that it is as large as the
 * file's. */
struct block32 {
    vi header;   /* f16 scale | f16 minimum << 16; MXFP4: the exponent in the low byte */
    vi high;     /* Q5: fifth bits */
    vi codes[8]; /* nibble types: 4, low nibbles k-group j, high nibbles k-group j + 4 */
};

INLINE bool has_min(int type) {
    return type == CW_Q4_1 || type == CW_Q5_1;
}

INLINE bool has_high(int type) {
    return type == CW_Q5_0 || type == CW_Q5_1;
}

/* From byte `at` of the rows. */
INLINE void fetch_rows(int type, const struct rows *r, size_t at, struct block32 *b) {
    b->header = row_dword(r, at);
    at += type == CW_MXFP4 ? 1 : has_min(type) ? 4 : 2;
    if (has_high(type)) {
        b->high = row_dword(r, at);
        at += 4;
    }
    load_rows16(r->row, at, b->codes);
    if (type == CW_Q8_0) {
        load_rows16(r->row, at + 16, b->codes + 4);
    }
}

/* To and from the packed copy; both return its bytes. */
INLINE size_t store_packed(int type, uint8_t *p, const struct block32 *b) {
    uint8_t *begin = p;
    for (int j = 0; j < (type == CW_Q8_0 ? 8 : 4); j++, p += sizeof(vi)) {
        vi_store(p, b->codes[j]);
    }
    if (has_high(type)) {
        vi_store(p, b->high);
        p += sizeof(vi);
    }
    vf_store_f16_bits(p, b->header);
    p += sizeof(vi) / 2;
    if (has_min(type)) {
        vf_store_f16_bits(p, vi_shr(b->header, 16));
        p += sizeof(vi) / 2;
    }
    return (size_t)(p - begin);
}

INLINE size_t fetch_packed(int type, const uint8_t *p, struct block32 *b, float *d, float *m) {
    const uint8_t *begin = p;
    for (int j = 0; j < (type == CW_Q8_0 ? 8 : 4); j++, p += sizeof(vi)) {
        b->codes[j] = vi_load(p);
    }
    if (has_high(type)) {
        b->high = vi_load(p);
        p += sizeof(vi);
    }
    vf_store(d, vf_load_f16(p));
    p += sizeof(vi) / 2;
    if (has_min(type)) {
        vf_store(m, vf_load_f16(p));
        p += sizeof(vi) / 2;
    }
    return (size_t)(p - begin);
}

INLINE void unpack_header(int type, const struct block32 *b, float *d, float *m) {
    if (type == CW_MXFP4) { /* 2^(e - 128), see quant.c */
        vi e = vi_and(b->header, vi_set1(255));
        float small[2] = {float_of_bits(0x00200000), float_of_bits(0x00400000)};
        float scale[R];
        int32_t exponent[R];
        vi_store(exponent, e);
        vf_store(scale, vf_of_bits(vi_shl(vi_sub(e, vi_set1(1)), 23)));
        for (int i = 0; i < R; i++) {
            d[i] = exponent[i] < 2 ? small[exponent[i]] : scale[i];
        }
        return;
    }
    vf_store(d, vf_of_f16(b->header));
    if (has_min(type)) {
        vf_store(m, vf_of_f16(vi_shr(b->header, 16)));
    }
}

INLINE void unpack_codes(const struct kind k, const struct block32 *b, int8_t *codes) {
    if (k.type == CW_Q8_0) {
        vi bias = vi_set1(k.offset ? (int)0x80808080 : 0);
        for (int j = 0; j < 8; j++) {
            put(codes, j, vi_xor(b->codes[j], bias));
        }
        return;
    }
    bool look_up = k.type == CW_IQ4_NL || k.type == CW_MXFP4;
    vi table =
        look_up ? shifted_table(k.type == CW_MXFP4 ? mxfp4_table : iq4_table, k.offset) : vi_zero();
    for (int j = 0; j < 4; j++) {
        vi low = low_nibbles(b->codes[j]), high = high_nibbles(b->codes[j]);
        if (has_high(k.type)) {
            low = vi_or(low, fifth_bits(b->high, j));
            high = vi_or(high, fifth_bits(b->high, j + 4));
        }
        put(codes, j, look_up ? vi_look_up(table, low) : low);
        put(codes, j + 4, look_up ? vi_look_up(table, high) : high);
    }
}

/* Where a panel's blocks of 32 come from. */
enum source { FROM_ROWS, FROM_ROWS_TO_PACKED, FROM_PACKED };

/* Block at byte `at` of the rows or at *packed, which moves on. */
INLINE void unpack_32(const struct kind k, enum source from, const struct rows *r, size_t at,
                      uint8_t **packed, int8_t *codes, float *d, float *m) {
    struct block32 b;
    if (from == FROM_PACKED) {
        *packed += fetch_packed(k.type, *packed, &b, d, m);
    } else {
        fetch_rows(k.type, r, at, &b);
        unpack_header(k.type, &b, d, m);
    }
    if (from == FROM_ROWS_TO_PACKED) {
        *packed += store_packed(k.type, *packed, &b);
    }
    unpack_codes(k, &b, codes);
}

/* ---- blocks of 256 --------------------------------------------------------------------------- */

INLINE vi pair_of(vi low, vi high) {
    return vi_or(vi_and(low, vi_set1(0xffff)), vi_shl(high, 16));
}

INLINE void put_scale(int32_t *scale, int sub, vi s) {
    vi_store(scale + sub * R, HAS_VNNI ? s : pair_of(s, s));
}

/* Byte `b` of each lane. */
INLINE vi byte_of(vi v, int b) {
    return vi_and(vi_shr(v, 8 * b), vi_set1(255));
}

/* Scales and minima of Q4_K and Q5_K from the block's first sixteen bytes. */
INLINE void unpack_six_bit(const vi t[4], int32_t *scale, int32_t *pair) {
    vi low6 = vi_set1(0x3f3f3f3f), high2 = vi_set1(0x30303030);
    vi s[2] = {vi_and(t[1], low6), vi_or(low_nibbles(t[3]), vi_and(vi_shr(t[1], 2), high2))};
    vi m[2] = {vi_and(t[2], low6), vi_or(high_nibbles(t[3]), vi_and(vi_shr(t[2], 2), high2))};
    for (int j = 0; j < 8; j++) {
        vi min = byte_of(m[j / 4], j % 4);
        put_scale(scale, j, byte_of(s[j / 4], j % 4));
        vi_store(pair + j * R, pair_of(min, min));
    }
}

INLINE void unpack_q45(const struct kind k, const struct rows *r, size_t at, int8_t *codes,
                       int32_t *scale, int32_t *pair, float *d, float *m) {
    vi t[4], fifth[8];
    load_rows16(r->row, at, t);
    vf_store(d, vf_of_f16(t[0]));
    vf_store(m, vf_neg(vf_of_f16(vi_shr(t[0], 16))));
    unpack_six_bit(t, scale, pair);
    at += 16;
    if (k.type == CW_Q5_K) {
        load_rows16(r->row, at, fifth);
        load_rows16(r->row, at + 16, fifth + 4);
        at += 32;
    }
    for (int i = 0; i < 8; i++) { /* sixteen bytes: half the k-groups of sub-blocks 2 c, 2 c + 1 */
        int c = i / 2;
        load_rows16(r->row, at + 16 * (size_t)i, t);
        for (int j = 0; j < 4; j++) {
            int g = i % 2 * 4 + j;
            vi a = low_nibbles(t[j]), b = high_nibbles(t[j]);
            if (k.type == CW_Q5_K) {
                vi one = vi_set1(0x01010101);
                a = vi_or(a, vi_shl(vi_and(vi_shr(fifth[g], 2 * c), one), 4));
                b = vi_or(b, vi_shl(vi_and(vi_shr(fifth[g], 2 * c + 1), one), 4));
            }
            put(codes, 16 * c + g, a);
            put(codes, 16 * c + 8 + g, b);
        }
    }
}

INLINE void unpack_q6(const struct rows *r, size_t at, int8_t *codes, int32_t *scale, int32_t *pair,
                      float *d) {
    vi low[16], high[8], s[4];
    vf_store(d, vf_of_f16(vi_shr(row_dword(r, at + 206), 16)));
    load_rows16(r->row, at + 192, s);
    for (int j = 0; j < 16; j += 2) {
        vi a = vi_sar(vi_shl(s[j / 4], 24 - 8 * (j % 4)), 24);
        vi b = vi_sar(vi_shl(s[j / 4], 16 - 8 * (j % 4)), 24);
        put_scale(scale, j, a);
        put_scale(scale, j + 1, b);
        vi_store(pair + j / 2 * R, pair_of(a, b));
    }
    for (int h = 0; h < 2; h++) {
        for (int i = 0; i < 4; i++) {
            load_rows16(r->row, at + 64 * (size_t)h + 16 * (size_t)i, low + 4 * i);
        }
        load_rows16(r->row, at + 128 + 32 * (size_t)h, high);
        load_rows16(r->row, at + 144 + 32 * (size_t)h, high + 4);
        for (int g = 0; g < 8; g++) {
            vi mask = vi_set1(0x30303030);
            put(codes, 32 * h + g, vi_or(low_nibbles(low[g]), vi_and(vi_shl(high[g], 4), mask)));
            put(codes, 32 * h + 8 + g,
                vi_or(low_nibbles(low[8 + g]), vi_and(vi_shl(high[g], 2), mask)));
            put(codes, 32 * h + 16 + g, vi_or(high_nibbles(low[g]), vi_and(high[g], mask)));
            put(codes, 32 * h + 24 + g,
                vi_or(high_nibbles(low[8 + g]), vi_and(vi_shr(high[g], 2), mask)));
        }
    }
}

INLINE void unpack_q23(const struct kind k, const struct rows *r, size_t at, int8_t *codes,
                       int32_t *scale, int32_t *pair, float *d, float *m) {
    vi third[8], low[8], s[4];
    size_t low_at = at + (k.type == CW_Q3_K ? 32 : 16);
    if (k.type == CW_Q2_K) {
        vi header = row_dword(r, at + 80);
        vf_store(d, vf_of_f16(header));
        vf_store(m, vf_neg(vf_of_f16(vi_shr(header, 16))));
        load_rows16(r->row, at, s);
        for (int j = 0; j < 16; j += 2) {
            vi a = byte_of(s[j / 4], j % 4), b = byte_of(s[j / 4], j % 4 + 1);
            put_scale(scale, j, vi_and(a, vi_set1(15)));
            put_scale(scale, j + 1, vi_and(b, vi_set1(15)));
            vi_store(pair + j / 2 * R, pair_of(vi_shr(a, 4), vi_shr(b, 4)));
        }
    } else {
        vf_store(d, vf_of_f16(vi_shr(row_dword(r, at + 106), 16)));
        vi s0 = row_dword(r, at + 96), s1 = row_dword(r, at + 100), s2 = row_dword(r, at + 104);
        vi two = vi_set1(0x03030303);
        s[0] = vi_or(low_nibbles(s0), vi_shl(vi_and(s2, two), 4));
        s[1] = vi_or(low_nibbles(s1), vi_shl(vi_and(vi_shr(s2, 2), two), 4));
        s[2] = vi_or(high_nibbles(s0), vi_shl(vi_and(vi_shr(s2, 4), two), 4));
        s[3] = vi_or(high_nibbles(s1), vi_shl(vi_and(vi_shr(s2, 6), two), 4));
        for (int j = 0; j < 16; j += 2) {
            vi a = vi_sub(byte_of(s[j / 4], j % 4), vi_set1(32));
            vi b = vi_sub(byte_of(s[j / 4], j % 4 + 1), vi_set1(32));
            put_scale(scale, j, a);
            put_scale(scale, j + 1, b);
            vi_store(pair + j / 2 * R, pair_of(a, b));
        }
        load_rows16(r->row, at, third);
        load_rows16(r->row, at + 16, third + 4);
    }
    for (int h = 0; h < 2; h++) {
        load_rows16(r->row, low_at + 32 * (size_t)h, low);
        load_rows16(r->row, low_at + 32 * (size_t)h + 16, low + 4);
        for (int t = 0; t < 4; t++) {
            for (int g = 0; g < 8; g++) {
                vi v = vi_and(vi_shr(low[g], 2 * t), vi_set1(0x03030303));
                if (k.type == CW_Q3_K) {
                    vi bit = vi_and(vi_shr(third[g], 4 * h + t), vi_set1(0x01010101));
                    v = vi_or(v, vi_shl(bit, 2));
                }
                put(codes, 32 * h + 8 * t + g, v);
            }
        }
    }
}

INLINE void unpack_iq4_xs(const struct kind k, const struct rows *r, size_t at, int8_t *codes,
                          int32_t *scale, int32_t *pair, float *d) {
    vi t[4], header = row_dword(r, at), low = row_dword(r, at + 4), high = vi_shr(header, 16);
    vi table = shifted_table(iq4_table, k.offset);
    vf_store(d, vf_of_f16(header));
    for (int j = 0; j < 8; j++) {
        vi s = vi_or(vi_and(vi_shr(low, 4 * j), vi_set1(15)),
                     vi_shl(vi_and(vi_shr(high, 2 * j), vi_set1(3)), 4));
        s = vi_sub(s, vi_set1(32));
        put_scale(scale, j, s);
        vi_store(pair + j * R, pair_of(s, s));
        load_rows16(r->row, at + 8 + 16 * (size_t)j, t);
        for (int g = 0; g < 4; g++) {
            put(codes, 8 * j + g, vi_look_up(table, low_nibbles(t[g])));
            put(codes, 8 * j + 4 + g, vi_look_up(table, high_nibbles(t[g])));
        }
    }
}

INLINE void unpack_256(const struct kind k, const struct rows *r, size_t at, int8_t *codes,
                       int32_t *scale, int32_t *pair, float *d, float *m) {
    if (k.type == CW_Q4_K || k.type == CW_Q5_K) {
        unpack_q45(k, r, at, codes, scale, pair, d, m);
    } else if (k.type == CW_Q6_K) {
        unpack_q6(r, at, codes, scale, pair, d);
    } else if (k.type == CW_IQ4_XS) {
        unpack_iq4_xs(k, r, at, codes, scale, pair, d);
    } else {
        unpack_q23(k, r, at, codes, scale, pair, d, m);
    }
}

#endif
