/* SPDX-License-Identifier: MIT
 * Block formats, byte by byte. */
#include "core/compute/quant.h"

#include "core/compute/maths.h"

#include <string.h>

const int8_t cw_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                  1,    13,   25,  38,  53,  69,  89,  113};
const int8_t cw_mxfp4_values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

float cw_e8m0_half(uint8_t e) {
    uint32_t u = e < 2 ? 0x00200000U << e : (uint32_t)(e - 1) << 23;
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static uint16_t u16_at(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static uint32_t u32_at(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static float f16_at(const uint8_t *p) {
    return cw_f16_to_f32(u16_at(p));
}

/* Types of 32: low nibbles are weights 0..15, high nibbles 16..31. */
static void nibbles(const uint8_t *src, int8_t *q) {
    for (int i = 0; i < 16; i++) {
        q[i] = (int8_t)(src[i] & 15);
        q[i + 16] = (int8_t)(src[i] >> 4);
    }
}

/* The fifth bits: bit i of a 32-bit word belongs to weight i. */
static void fifth_bits(const uint8_t *src, int8_t *q) {
    uint32_t h = u32_at(src);
    for (int i = 0; i < 32; i++) {
        q[i] = (int8_t)(q[i] | (h >> i & 1) << 4);
    }
}

static void shift_codes(struct cw_block *b, int offset) {
    for (int i = 0; i < b->n; i++) {
        b->q[i] = (int8_t)(b->q[i] - offset);
    }
}

static void look_up(struct cw_block *b, const int8_t *values) {
    for (int i = 0; i < b->n; i++) {
        b->q[i] = values[b->q[i]];
    }
}

static void decode_32(enum cw_type type, const uint8_t *src, struct cw_block *b) {
    b->n = 32;
    for (int i = 0; i < 2; i++) {
        b->scale[i] = b->min[i] = 1;
    }
    b->d = type == CW_MXFP4 ? cw_e8m0_half(src[0]) : f16_at(src);
    switch (type) {
    case CW_Q4_0: /* f16 d, 16 bytes of nibbles */
        nibbles(src + 2, b->q);
        shift_codes(b, 8);
        break;
    case CW_Q4_1: /* f16 d, f16 m, 16 bytes of nibbles */
        b->has_min = true;
        b->m = f16_at(src + 2);
        nibbles(src + 4, b->q);
        break;
    case CW_Q5_0: /* f16 d, u32 fifth bits, 16 bytes of nibbles */
        nibbles(src + 6, b->q);
        fifth_bits(src + 2, b->q);
        shift_codes(b, 16);
        break;
    case CW_Q5_1: /* f16 d, f16 m, u32 fifth bits, 16 bytes of nibbles */
        b->has_min = true;
        b->m = f16_at(src + 2);
        nibbles(src + 8, b->q);
        fifth_bits(src + 4, b->q);
        break;
    case CW_Q8_0: /* f16 d, 32 signed bytes */
        memcpy(b->q, src + 2, 32);
        break;
    case CW_IQ4_NL: /* as Q4_0, the nibble an index */
        nibbles(src + 2, b->q);
        look_up(b, cw_iq4_values);
        break;
    default: /* MXFP4: u8 exponent, 16 bytes of nibbles */
        nibbles(src + 1, b->q);
        look_up(b, cw_mxfp4_values);
        break;
    }
}

/* Q4_K, Q5_K: eight 6-bit scales and minima in 12 bytes, for sub-blocks of 32. */
static void six_bit_pairs(const uint8_t *s, struct cw_block *b) {
    for (int j = 0; j < 8; j++) {
        int scale, min;
        if (j < 4) {
            scale = s[j] & 63;
            min = s[j + 4] & 63;
        } else {
            scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
            min = s[j + 4] >> 4 | (s[j] >> 6) << 4;
        }
        b->scale[2 * j] = b->scale[2 * j + 1] = (int16_t)scale;
        b->min[2 * j] = b->min[2 * j + 1] = (int16_t)min;
    }
}

static void decode_256(enum cw_type type, const uint8_t *src, struct cw_block *b) {
    b->n = 256;
    switch (type) {
    case CW_Q2_K: /* 16 bytes (scale | min << 4), 64 bytes of 2-bit codes, f16 d, f16 dmin */
        b->has_min = true;
        b->d = f16_at(src + 80);
        b->m = -f16_at(src + 82);
        for (int j = 0; j < 16; j++) {
            b->scale[j] = src[j] & 15;
            b->min[j] = src[j] >> 4;
        }
        for (int i = 0; i < 256; i++) {
            int half = i / 128, shift = i % 128 / 32 * 2;
            b->q[i] = (int8_t)(src[16 + 32 * half + i % 32] >> shift & 3);
        }
        break;
    case CW_Q3_K: /* 32 bytes of third bits, 64 bytes of 2-bit codes, 12 bytes of scales, f16 d */
        b->d = f16_at(src + 108);
        for (int j = 0; j < 16; j++) {
            int low = src[96 + j % 8] >> (j < 8 ? 0 : 4) & 15;
            int high = src[104 + j % 4] >> (j / 4 * 2) & 3;
            b->scale[j] = (int16_t)((low | high << 4) - 32);
        }
        for (int i = 0; i < 256; i++) {
            int half = i / 128, shift = i % 128 / 32 * 2;
            int low = src[32 + 32 * half + i % 32] >> shift & 3;
            int high = src[i % 32] >> (i / 32) & 1;
            b->q[i] = (int8_t)((low | high << 2) - 4);
        }
        break;
    case CW_Q4_K: /* f16 d, f16 dmin, 12 bytes of scales, 128 bytes of nibbles */
    case CW_Q5_K: /* ... 32 bytes of fifth bits before the nibbles */
        b->has_min = true;
        b->d = f16_at(src);
        b->m = -f16_at(src + 2);
        six_bit_pairs(src + 4, b);
        for (int i = 0; i < 256; i++) {
            const uint8_t *low = src + (type == CW_Q5_K ? 48 : 16);
            int q = low[i / 64 * 32 + i % 32] >> (i / 32 % 2 * 4) & 15;
            if (type == CW_Q5_K) {
                q |= (src[16 + i % 32] >> (i / 32) & 1) << 4;
            }
            b->q[i] = (int8_t)q;
        }
        break;
    case CW_Q6_K: /* 128 bytes of low nibbles, 64 bytes of high pairs, 16 signed scales, f16 d */
        b->d = f16_at(src + 208);
        for (int j = 0; j < 16; j++) {
            b->scale[j] = (int8_t)src[192 + j];
        }
        for (int i = 0; i < 256; i++) {
            int half = i / 128, l = i % 128;
            int low = src[64 * half + l % 64] >> (l / 64 * 4) & 15;
            int high = src[128 + 32 * half + l % 32] >> (l / 32 * 2) & 3;
            b->q[i] = (int8_t)((low | high << 4) - 32);
        }
        break;
    default: /* IQ4_XS: f16 d, u16 high scale pairs, 4 bytes of low scales, 128 bytes of nibbles */
        b->d = f16_at(src);
        for (int j = 0; j < 8; j++) {
            int low = src[4 + j / 2] >> (j % 2 * 4) & 15;
            int high = u16_at(src + 2) >> (2 * j) & 3;
            b->scale[2 * j] = b->scale[2 * j + 1] = (int16_t)((low | high << 4) - 32);
        }
        for (int j = 0; j < 8; j++) {
            nibbles(src + 8 + 16 * j, b->q + 32 * j);
        }
        look_up(b, cw_iq4_values);
        break;
    }
}

void cw_block_decode(enum cw_type type, const uint8_t *src, struct cw_block *b) {
    b->has_min = false;
    b->m = 0.0f;
    if (cw_type_info(type)->block == 32) {
        decode_32(type, src, b);
    } else {
        decode_256(type, src, b);
    }
}

void cw_dequantise(enum cw_type type, const uint8_t *row, int cols, float *y) {
    switch (type) {
    case CW_F32:
        memcpy(y, row, (size_t)cols * 4);
        return;
    case CW_F16:
        for (int i = 0; i < cols; i++) {
            y[i] = f16_at(row + 2 * (size_t)i);
        }
        return;
    case CW_BF16:
        for (int i = 0; i < cols; i++) {
            y[i] = cw_bf16_to_f32(u16_at(row + 2 * (size_t)i));
        }
        return;
    default:
        break;
    }
    const struct cw_type_info *t = cw_type_info(type);
    for (int i = 0; i < cols; i += t->block, row += t->block_bytes) {
        struct cw_block b;
        cw_block_decode(type, row, &b);
        for (int j = 0; j < b.n; j++) {
            float w = b.d * (float)b.scale[j / 16] * (float)b.q[j];
            y[i + j] = b.has_min ? w + b.m * (float)b.min[j / 16] : w;
        }
    }
}
