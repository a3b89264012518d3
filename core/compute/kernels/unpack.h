/* SPDX-License-Identifier: MIT
 *
 * From file blocks to the order of the product kernels. The formats are those of quant.c; here a
 * dword holds the same four consecutive weights (a k-group) of one row, and a vector the R rows.
 *
 * Two steps. A packed block is a file block of R rows side by side, its codes still of 4, 5 or 6
 * bits and all of it as large as in the file: what a packed copy of a matrix holds, and what is
 * made on the way where there is none. Kernels for few tokens multiply from it directly; for many
 * it is unpacked to a panel, a byte a code, once.
 *
 * Codes are unsigned, with the offset that the type's constants below name, except where an ISA
 * without VNNI multiplies signed bytes by magnitude and sign.
 */
#ifndef CW_UNPACK_H
#define CW_UNPACK_H

#define PANEL_COLS 1024 /* columns of a panel at most: it stays in the first-level cache */

/* What a product kernel has to know at compile time. Types of 256 have sub-blocks of so many
 * k-groups, each with a scale. `steps` is how many k-groups' products fit 16 bits when summed: by
 * halves without VNNI, where 1 means signed codes; all together with it, where it saves the slow
 * 32-bit multiplication by the sub-block's scale, and 0 means none do. */
struct form {
    int block; /* 32 or 256 */
    int sub;   /* k-groups of a sub-block */
    int steps;
    bool min;     /* has a minimum */
    bool offset;  /* codes carry one, which is taken away from the block's sum */
    bool centred; /* codes carry 32, which is taken away from each sum of `steps` k-groups */
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
};

/* block, sub, steps, min, offset, centred. The sums: 16 * 15 * 127, 16 * 7 * 127 and
 * 8 * 32 * 127 are below 2^15, as are the halves 2 * 8 * 15 * 127, 2 * 4 * 31 * 127 and
 * 2 * 2 * 63 * 127. */
static const struct form forms[N_SHAPES] = {
    [SHAPE_Q4_0] = {32, 8, 8, false, true, false},
    [SHAPE_Q4_1] = {32, 8, 8, true, false, false},
    [SHAPE_Q5_0] = {32, 8, 4, false, true, false},
    [SHAPE_Q5_1] = {32, 8, 4, true, false, false},
    [SHAPE_BYTE] = {32, 8, 1, false, false, false},
    [SHAPE_Q2_K] = {256, 4, 4, true, false, false},
    [SHAPE_Q3_K] = {256, 4, 4, false, true, false},
    [SHAPE_Q4_K] = {256, 8, HAS_VNNI ? 4 : 8, true, false, false},
    [SHAPE_Q5_K] = {256, 8, HAS_VNNI ? 0 : 4, true, false, false},
    [SHAPE_Q6_K] = {256, 4, 2, false, !HAS_VNNI, HAS_VNNI},
    [SHAPE_BYTE_K] = {256, 8, HAS_VNNI ? 0 : 1, false, HAS_VNNI, false},
};

/* A type: its file block and its packed one. The latter holds `codes` vectors of R dwords, then
 * `high` ones of fifth or higher bits, then `scales`, then R halves each of the scale and, where
 * there is one, the minimum. */
struct kind {
    int block, bytes; /* weights and bytes of a block */
    int offset;       /* that the kernels' codes carry: weight = code - offset */
    int shape;        /* enum shape */
    int codes, high, scales;
    int codes_at, high_at; /* bytes, in the file's block */
};

#define BYTE_OFFSET (HAS_VNNI ? 128 : 0) /* of types that use all of a signed byte */

/* Read with constant indices, so that all of it is folded into the kernels. */
static const struct kind kinds[CW_N_TYPE_IDS] = {
    [CW_Q4_0] = {32, 18, 8, SHAPE_Q4_0, 4, 0, 0, 2, 0},
    [CW_Q4_1] = {32, 20, 0, SHAPE_Q4_1, 4, 0, 0, 4, 0},
    [CW_Q5_0] = {32, 22, 16, SAME_Q5_0, 4, 1, 0, 6, 2},
    [CW_Q5_1] = {32, 24, 0, SAME_Q5_1, 4, 1, 0, 8, 4},
    [CW_Q8_0] = {32, 34, BYTE_OFFSET, SAME_BYTE, 8, 0, 0, 2, 0},
    [CW_IQ4_NL] = {32, 18, BYTE_OFFSET, SAME_BYTE, 4, 0, 0, 2, 0},
    [CW_MXFP4] = {32, 17, 16, SAME_Q5_0, 4, 0, 0, 1, 0},
    [CW_Q2_K] = {256, 84, 0, SHAPE_Q2_K, 16, 0, 4, 16, 0},
    [CW_Q3_K] = {256, 110, 4, SHAPE_Q3_K, 16, 8, 3, 32, 0},
    [CW_Q4_K] = {256, 144, 0, SHAPE_Q4_K, 32, 0, 3, 16, 0},
    [CW_Q5_K] = {256, 176, 0, SHAPE_Q5_K, 32, 8, 3, 48, 16},
    [CW_Q6_K] = {256, 210, 32, SHAPE_Q6_K, 48, 0, 4, 0, 0},
    [CW_IQ4_XS] = {256, 136, BYTE_OFFSET, SHAPE_BYTE_K, 32, 0, 1, 8, 0},
};

/* What the look-up types' nibbles stand for, offset included. */
#define CODE(x) (uint8_t)((x) + BYTE_OFFSET)
static const uint8_t iq4_codes[16] = {
    CODE(-127), CODE(-104), CODE(-83), CODE(-65), CODE(-49), CODE(-35), CODE(-22), CODE(-10),
    CODE(1),    CODE(13),   CODE(25),  CODE(38),  CODE(53),  CODE(69),  CODE(89),  CODE(113)};
#undef CODE
static const uint8_t mxfp4_codes[16] = {16, 17, 18, 19, 20, 22, 24, 28,
                                        16, 15, 14, 13, 12, 10, 8,  4};

/* Blocks of 32 have code dwords [blocks][8][R], d and m [blocks][R]. Blocks of 256 have code dwords
 * [blocks][64][R]; `scale` [blocks][16][R] is what a sub-block's sum is multiplied by, an i32 or
 * halves, see put_scale; `pair` [blocks][8][R] is what the sums of 16 codes are
 * multiplied by, two halves at a time: the minima, or for types with an offset the scales. */
struct panel {
    _Alignas(64) int8_t codes[PANEL_COLS * R];
    float d[PANEL_COLS / 32 * R];
    float m[PANEL_COLS / 32 * R];
    int32_t scale[PANEL_COLS / 256 * 16 * R];
    int32_t pair[PANEL_COLS / 256 * 8 * R];
};

/* ---- from the file to a packed block --------------------------------------------------------- */

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

INLINE uint8_t *put_vector(uint8_t *p, vi v) {
    vi_store(p, v);
    return p + sizeof(vi);
}

/* The low half of each lane. */
INLINE uint8_t *put_halves(uint8_t *p, vi v) {
    vf_store_f16_bits(p, v);
    return p + sizeof(vi) / 2;
}

/* 16 n bytes at `at` of each row: 4 n vectors. */
INLINE uint8_t *put_rows(uint8_t *p, const struct rows *r, size_t at, int n) {
    for (int i = 0; i < n; i++) {
        vi t[4];
        load_rows16(r->row, at + 16 * (size_t)i, t);
        for (int j = 0; j < 4; j++) {
            p = put_vector(p, t[j]);
        }
    }
    return p;
}

/* Where the halves after the codes, high bits and scales begin. */
INLINE size_t halves_at(int type) {
    return (size_t)(kinds[type].codes + kinds[type].high + kinds[type].scales) * sizeof(vi);
}

/* Six bits a code. Three of four k-groups keep them together; the upper bits of their bytes hold
 * the fourth's, so that taking them apart is cheap. */
INLINE uint8_t *put_six_bits(uint8_t *p, const struct rows *r, size_t at) {
    vi two = vi_set1(0x30303030), four = vi_set1(0x0f0f0f0f), top = vi_set1((int)0xc0c0c0c0);
    for (size_t i = 0; i < 4; i++) { /* sixteen bytes of each third, 64 codes */
        vi a[4], b[4], high[4];
        load_rows16(r->row, at + i / 2 * 64 + i % 2 * 16, a);
        load_rows16(r->row, at + i / 2 * 64 + i % 2 * 16 + 32, b);
        load_rows16(r->row, at + 128 + i * 16, high);
        for (int j = 0; j < 4; j++) {
            vi v = vi_or_and(vi_and(a[j], four), vi_shl(high[j], 4), two);
            p = put_vector(p, vi_or_and(v, vi_shl(b[j], 2), top));
            v = vi_and(b[j], vi_or(four, top));
            p = put_vector(p, vi_or_and(v, vi_shl(high[j], 2), two));
            v = vi_and(vi_shr(a[j], 4), four);
            p = put_vector(p, vi_or_and(v, high[j], vi_or(two, top)));
        }
    }
    return p;
}

/* The blocks at byte `at` of the rows. */
INLINE void pack_block(int type, const struct rows *r, size_t at, uint8_t *p) {
    vi t[4], header;
    if (type == CW_Q6_K) {
        p = put_six_bits(p, r, at);
    } else {
        p = put_rows(p, r, at + (size_t)kinds[type].codes_at, kinds[type].codes / 4);
    }
    if (kinds[type].high == 1) {
        p = put_vector(p, row_dword(r, at + (size_t)kinds[type].high_at));
    } else {
        p = put_rows(p, r, at + (size_t)kinds[type].high_at, kinds[type].high / 4);
    }
    switch (type) {
    case CW_Q2_K:
        p = put_rows(p, r, at, 1);
        header = row_dword(r, at + 80);
        break;
    case CW_Q3_K:
        for (size_t i = 96; i < 108; i += 4) {
            p = put_vector(p, row_dword(r, at + i));
        }
        header = vi_shr(row_dword(r, at + 106), 16);
        break;
    case CW_Q4_K:
    case CW_Q5_K:
        load_rows16(r->row, at, t);
        for (int i = 1; i < 4; i++) {
            p = put_vector(p, t[i]);
        }
        header = t[0];
        break;
    case CW_Q6_K:
        p = put_rows(p, r, at + 192, 1);
        header = vi_shr(row_dword(r, at + 206), 16);
        break;
    case CW_IQ4_XS:
        header = row_dword(r, at);
        p = put_vector(p, row_dword(r, at + 4));
        break;
    default:
        header = row_dword(r, at);
        break;
    }
    if (type == CW_MXFP4) {
        vi_store_bytes(p, header);
        return;
    }
    p = put_halves(p, header);
    if (forms[kinds[type].shape].min || type == CW_IQ4_XS) {
        put_halves(p, vi_shr(header, 16));
    }
}

/* ---- from a packed block to codes and scales ------------------------------------------------- */

INLINE vi low_nibbles(vi v) {
    return vi_and(v, vi_set1(0x0f0f0f0f));
}

INLINE vi high_nibbles(vi v) {
    return vi_and(vi_shr(v, 4), vi_set1(0x0f0f0f0f));
}

INLINE vi vector_at(const uint8_t *p, int i) {
    return vi_load(p + (size_t)i * sizeof(vi));
}

INLINE vi nibbles_at(const uint8_t *p, int i, int high) {
    return high ? high_nibbles(vector_at(p, i)) : low_nibbles(vector_at(p, i));
}

/* Bits 4 g .. 4 g + 3 of h to bit 4 of the four bytes. */
INLINE vi fifth_bits(vi h, int g) {
    vi four = vi_and(vi_shr(h, 4 * g), vi_set1(15));
    return vi_and(vi_mul(four, vi_set1(0x02040810)), vi_set1(0x10101010));
}

/* The bits of each byte that `mask` has, moved by `from`, to bit `to`. */
INLINE vi moved_bits(vi v, int from, int to, int mask) {
    vi shifted = from > to ? vi_shr(v, from - to) : from < to ? vi_shl(v, to - from) : v;
    return vi_and(shifted, vi_set1(mask << to));
}

/* The codes of k-group i of a block of 32, packed at p, a byte a code. */
INLINE vi codes_32(int type, const uint8_t *p, int i) {
    vi v;
    switch (type) {
    case CW_Q8_0:
        v = vector_at(p, i);
        return BYTE_OFFSET ? vi_xor(v, vi_set1((int)0x80808080)) : v;
    case CW_IQ4_NL:
        return vi_look_up(vi_table(iq4_codes), nibbles_at(p, i % 4, i / 4));
    case CW_MXFP4:
        return vi_look_up(vi_table(mxfp4_codes), nibbles_at(p, i % 4, i / 4));
    case CW_Q5_0:
    case CW_Q5_1:
        return vi_or(nibbles_at(p, i % 4, i / 4), fifth_bits(vector_at(p, 4), i));
    default:
        return nibbles_at(p, i % 4, i / 4);
    }
}

/* Of a block of 256: k-group i of quarter `part` of a half. The last two are to be known at compile
 * time. */
INLINE vi codes_256(int type, const uint8_t *p, int half, int part, int i) {
    const uint8_t *at = p + (size_t)(half * kinds[type].codes / 2) * sizeof(vi);
    const uint8_t *high = p + (size_t)kinds[type].codes * sizeof(vi);
    vi v;
    switch (type) {
    case CW_Q2_K:
        return moved_bits(vector_at(at, i), 2 * part, 0, 0x03030303);
    case CW_Q3_K:
        v = moved_bits(vector_at(at, i), 2 * part, 0, 0x03030303);
        return vi_or(v, moved_bits(vi_shr(vector_at(high, i), 4 * half), part, 2, 0x01010101));
    case CW_Q4_K:
        return nibbles_at(at, part / 2 * 8 + i, part % 2);
    case CW_Q5_K:
        v = nibbles_at(at, part / 2 * 8 + i, part % 2);
        return vi_or(v, moved_bits(vi_shr(vector_at(high, i), 4 * half), part, 4, 0x01010101));
    case CW_Q6_K:
        at += (size_t)(3 * i) * sizeof(vi);
        if (part < 3) {
            return vi_and(vector_at(at, part), vi_set1(0x3f3f3f3f));
        }
        v = vi_and(vi_shr(vector_at(at, 0), 6), vi_set1(0x03030303));
        v = vi_or_and(v, vi_shr(vector_at(at, 1), 4), vi_set1(0x0c0c0c0c));
        return vi_or_and(v, vi_shr(vector_at(at, 2), 2), vi_set1(0x30303030));
    default: /* IQ4_XS */
        return vi_look_up(vi_table(iq4_codes), nibbles_at(at, 4 * part + i % 4, i / 4));
    }
}

/* The scale of the block, and its minimum. */
INLINE vf scale_at(int type, const uint8_t *p) {
    p += halves_at(type);
    if (type == CW_MXFP4) { /* 2^(e - 128), as a product because it may be denormal */
        vi e = vi_load_bytes(p), a = vi_shr(e, 1), b = vi_sub(e, a);
        return vf_mul(vf_of_bits(vi_shl(vi_add(a, vi_set1(63)), 23)),
                      vf_of_bits(vi_shl(vi_add(b, vi_set1(63)), 23)));
    }
    return vf_load_f16(p);
}

INLINE vf minimum_at(int type, const uint8_t *p) {
    vf m = vf_load_f16(p + halves_at(type) + sizeof(vi) / 2);
    return kinds[type].block == 256 ? vf_neg(m) : m; /* which the file subtracts */
}

INLINE vi pair_of(vi low, vi high) {
    return vi_or(vi_and(low, vi_set1(0xffff)), vi_shl(high, 16));
}

/* What the sub-block's sum is multiplied by. As two halves where the sum has 16 bits: with VNNI its
 * lane's upper half is only the sign. */
INLINE void put_scale(int type, int32_t *scale, int sub, vi s) {
    bool halves = !HAS_VNNI || forms[kinds[type].shape].steps > 0;
    vi low = halves ? vi_and(s, vi_set1(0xffff)) : s;
    vi_store(scale + sub * R, HAS_VNNI ? low : vi_or(low, vi_shl(s, 16)));
}

/* Byte `b` of each lane. */
INLINE vi byte_of(vi v, int b) {
    return b == 3 ? vi_shr(v, 24) : vi_and(vi_shr(v, 8 * b), vi_set1(255));
}

/* Scales and minima of Q4_K and Q5_K: six bits each in twelve bytes. */
INLINE void six_bit_scales(int type, const uint8_t *p, int32_t *scale, int32_t *pair) {
    vi low6 = vi_set1(0x3f3f3f3f), high2 = vi_set1(0x30303030);
    vi a = vector_at(p, 0), b = vector_at(p, 1), c = vector_at(p, 2);
    vi s[2] = {vi_and(a, low6), vi_or(low_nibbles(c), vi_and(vi_shr(a, 2), high2))};
    vi m[2] = {vi_and(b, low6), vi_or(high_nibbles(c), vi_and(vi_shr(b, 2), high2))};
    for (int j = 0; j < 8; j++) {
        vi min = byte_of(m[j / 4], j % 4);
        put_scale(type, scale, j, byte_of(s[j / 4], j % 4));
        vi_store(pair + j * R, vi_or(min, vi_shl(min, 16)));
    }
}

/* Sub-block scales and what the sums of codes are multiplied by, as a panel has them. */
INLINE void sub_scales(int type, const uint8_t *p, int32_t *scale, int32_t *pair) {
    const uint8_t *at = p + (size_t)(kinds[type].codes + kinds[type].high) * sizeof(vi);
    vi s[4], low, high, two = vi_set1(0x03030303), centre = vi_set1(32);
    switch (type) {
    case CW_Q4_K:
    case CW_Q5_K:
        six_bit_scales(type, at, scale, pair);
        return;
    case CW_IQ4_XS:
        low = vector_at(at, 0);
        high = vi_load_halves(p + halves_at(type) + sizeof(vi) / 2);
        for (int j = 0; j < 8; j++) {
            s[0] = vi_or(vi_and(vi_shr(low, 4 * j), vi_set1(15)),
                         vi_shl(vi_and(vi_shr(high, 2 * j), vi_set1(3)), 4));
            s[0] = vi_sub(s[0], centre);
            put_scale(type, scale, j, s[0]);
            vi_store(pair + j * R, pair_of(s[0], s[0]));
        }
        return;
    case CW_Q3_K:
        low = vector_at(at, 0);
        high = vector_at(at, 1);
        s[3] = vector_at(at, 2);
        s[0] = vi_or(low_nibbles(low), vi_shl(vi_and(s[3], two), 4));
        s[1] = vi_or(low_nibbles(high), vi_shl(vi_and(vi_shr(s[3], 2), two), 4));
        s[2] = vi_or(high_nibbles(low), vi_shl(vi_and(vi_shr(s[3], 4), two), 4));
        s[3] = vi_or(high_nibbles(high), vi_shl(vi_and(vi_shr(s[3], 6), two), 4));
        break;
    default: /* Q2_K, Q6_K */
        for (int i = 0; i < 4; i++) {
            s[i] = vector_at(at, i);
        }
        break;
    }
    for (int j = 0; j < 16; j += 2) {
        vi v = s[j / 4], a = byte_of(v, j % 4), b = byte_of(v, j % 4 + 1);
        if (type == CW_Q2_K) { /* scale | minimum << 4 */
            put_scale(type, scale, j, vi_and(a, vi_set1(15)));
            put_scale(type, scale, j + 1, vi_and(b, vi_set1(15)));
            vi_store(pair + j / 2 * R, pair_of(vi_shr(a, 4), vi_shr(b, 4)));
            continue;
        }
        if (type == CW_Q6_K) { /* signed bytes */
            a = vi_sar(vi_shl(v, 24 - 8 * (j % 4)), 24);
            b = vi_sar(vi_shl(v, 16 - 8 * (j % 4)), 24);
        } else {
            a = vi_sub(a, centre);
            b = vi_sub(b, centre);
        }
        put_scale(type, scale, j, a);
        put_scale(type, scale, j + 1, b);
        if (forms[kinds[type].shape].offset) {
            vi_store(pair + j / 2 * R, pair_of(a, b));
        }
    }
}

INLINE void unpack_part(int type, const uint8_t *from, int half, int part, int8_t *codes) {
    for (int i = 0; i < 8; i++) {
        vi_store(codes + ((4 * half + part) * 8 + i) * R * 4, codes_256(type, from, half, part, i));
    }
}

/* Block b of a panel from the packed block at `from`. */
INLINE void unpack_block(int type, const uint8_t *from, int b, struct panel *p) {
    int8_t *codes = p->codes + b * kinds[type].block * R;
    vf_store(p->d + b * R, scale_at(type, from));
    if (forms[kinds[type].shape].min) {
        vf_store(p->m + b * R, minimum_at(type, from));
    }
    if (kinds[type].block == 32) {
        for (int i = 0; i < 8; i++) {
            vi_store(codes + i * R * 4, codes_32(type, from, i));
        }
        return;
    }
    for (int half = 0; half < 2; half++) {
        unpack_part(type, from, half, 0, codes);
        unpack_part(type, from, half, 1, codes);
        unpack_part(type, from, half, 2, codes);
        unpack_part(type, from, half, 3, codes);
    }
    sub_scales(type, from, p->scale + b * 16 * R, p->pair + b * 8 * R);
}

#endif
