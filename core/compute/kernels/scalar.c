/* SPDX-License-Identifier: MIT
 *
 * The scalar kernels: the definition of every result (rules 1 to 6 of "one arithmetic"). Written to
 * be read, not to be fast; where the order of operations matters it is the order written here.
 */
#include "core/compute/kernels/kernels_impl.h"

#include "core/compute/compute.h"
#include "core/compute/maths.h"
#include "core/compute/quant.h"

#include "chinwag/session.h"
#include <math.h>
#include <string.h>

/* ---- products -------------------------------------------------------------------------------- */

/* Code i of token c in a tile of t tokens. */
static inline int code_at(const int8_t *tile, int t, int c, int i) {
    return tile[(i / 4 * t + c) * 4 + i % 4];
}

/* Rule 1. Per block an exact integer sum, then one fma with the product of the scales, then one for
 * the minimum. y holds the accumulators. */
static void product_quantised(const struct cw_product_job *j, enum cw_type type) {
    const struct cw_type_info *info = cw_type_info(type);
    int n_blocks = j->cols / info->block;
    for (int r = 0; r < j->rows; r++) {
        const uint8_t *src = j->w + (size_t)r * j->row_bytes;
        for (int c = 0; c < j->n; c++) {
            j->y[(size_t)c * j->ldy + (size_t)r] = 0.0f;
        }
        for (int b = 0; b < n_blocks; b++, src += info->block_bytes) {
            struct cw_block w;
            cw_block_decode(type, src, &w);
            for (int c = 0; c < j->n; c++) {
                int tile = c / CW_TILE * CW_TILE, col = c - tile;
                int t = j->n - tile < CW_TILE ? j->n - tile : CW_TILE;
                const int8_t *q = j->q + (size_t)tile * (size_t)j->cols + (size_t)(b * w.n * t);
                float d = j->d[tile * n_blocks + b * t + col];
                int32_t sum = 0, min_sum = 0;
                for (int s = 0; s < w.n / 16; s++) {
                    int32_t products = 0, codes = 0;
                    for (int i = 16 * s; i < 16 * s + 16; i++) {
                        int x = code_at(q, t, col, i);
                        products += w.q[i] * x;
                        codes += x;
                    }
                    sum += w.scale[s] * products;
                    min_sum += w.min[s] * codes;
                }
                float *y = &j->y[(size_t)c * j->ldy + (size_t)r];
                *y = fmaf(w.d * d, (float)sum, *y);
                if (w.has_min) {
                    *y = fmaf(w.m * d, (float)min_sum, *y);
                }
            }
        }
        for (int c = 0; j->bias && c < j->n; c++) {
            j->y[(size_t)c * j->ldy + (size_t)r] += j->bias[r];
        }
    }
}

/* Rule 2. Element i goes to lane i mod 16. */
static void product_float(const struct cw_product_job *j, enum cw_type type) {
    for (int r = 0; r < j->rows; r++) {
        const uint8_t *row = j->w + (size_t)r * j->row_bytes;
        for (int c = 0; c < j->n; c++) {
            const float *x = j->x + (size_t)c * j->ldx;
            float lane[16] = {0};
            for (int i = 0; i < j->cols; i += 16) {
                float w[16];
                int n = j->cols - i < 16 ? j->cols - i : 16;
                cw_dequantise(type, row + (size_t)i * (type == CW_F32 ? 4 : 2), n, w);
                for (int l = 0; l < n; l++) {
                    lane[l] = fmaf(w[l], x[i + l], lane[l]);
                }
            }
            float y = cw_tree16(lane);
            j->y[(size_t)c * j->ldy + (size_t)r] = j->bias ? y + j->bias[r] : y;
        }
    }
}

#define QUANTISED(T)                                                                               \
    static void product_##T(const struct cw_product_job *j) {                                      \
        product_quantised(j, CW_##T);                                                              \
    }
#define FLOATING(T)                                                                                \
    static void product_##T(const struct cw_product_job *j) {                                      \
        product_float(j, CW_##T);                                                                  \
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
FLOATING(F32)
FLOATING(F16)
FLOATING(BF16)

/* ---- quantising activations ------------------------------------------------------------------ */

/* To the nearest integer, even on a tie, for |x| < 2^22. */
static float nearest(float x) {
    return (x + 0x1.8p+23f) - 0x1.8p+23f;
}

static uint32_t magnitude(float x) {
    uint32_t u;
    memcpy(&u, &x, 4);
    return u & 0x7fffffffU;
}

/* One block: d = max |x| / 127, codes x * (127 / max |x|) rounded to nearest even. The maximum is
 * taken of the bits, so that a NaN wins and, as an infinity does, reaches every product through d.
 * Below 2^-100 all codes are zero. */
static float quantise_block(const float *x, int n, int8_t *codes) {
    uint32_t max = 0;
    for (int i = 0; i < n; i++) {
        uint32_t a = magnitude(x[i]);
        max = a > max ? a : max;
    }
    float m;
    memcpy(&m, &max, 4);
    bool plain = m >= 0x1p-100f && max < 0x7f800000U;
    float inverse = 127.0f / m;
    for (int i = 0; i < n; i++) {
        codes[i] = (int8_t)(plain ? (int)nearest(x[i] * inverse) : 0);
    }
    return m < 0x1p-100f ? 0.0f : m / 127.0f;
}

static void put_codes(const int8_t *codes, int n, int t, int8_t *q) {
    for (int i = 0; i < n; i++) {
        q[i / 4 * t * 4 + i % 4] = codes[i];
    }
}

static void quantise_32(const float *x, int width, int t, int8_t *q, float *d, float *sum32) {
    for (int b = 0; b < width / 32; b++) {
        int8_t codes[32];
        d[b * t] = quantise_block(x + 32 * b, 32, codes);
        put_codes(codes, 32, t, q + 32 * b * t);
        int sum = 0;
        for (int i = 0; i < 32; i++) {
            sum += codes[i];
        }
        sum32[b * t] = (float)sum;
    }
}

static void quantise_256(const float *x, int width, int t, int8_t *q, float *d, int16_t *s16,
                         int32_t *centre) {
    for (int b = 0; b < width / 256; b++) {
        int8_t codes[256];
        d[b * t] = quantise_block(x + 256 * b, 256, codes);
        put_codes(codes, 256, t, q + 256 * b * t);
        for (int s = 0; s < 16; s++) {
            int sum = 0;
            for (int i = 0; i < 16; i++) {
                sum += codes[16 * s + i];
            }
            s16[((b * 8 + s / 2) * t) * 2 + s % 2] = (int16_t)sum;
        }
        for (int s = 0; s < 32; s++) {
            int sum = 0;
            for (int i = 0; i < 8; i++) {
                sum += codes[8 * s + i];
            }
            centre[(b * 32 + s) * t] = -32 * sum;
        }
    }
}

/* ---- norms and element-wise ------------------------------------------------------------------ */

/* Sum of (x - mean)^power over 16 lanes, power 1 or 2. */
static float lane_sum(const float *x, int n, float mean, bool squares) {
    float lane[16] = {0};
    for (int i = 0; i < n; i++) {
        float v = x[i] - mean;
        lane[i % 16] = squares ? fmaf(v, v, lane[i % 16]) : lane[i % 16] + v;
    }
    return cw_tree16(lane);
}

static void norm_rms(const float *x, const float *w, float eps, int width, float *y) {
    float mean_square = lane_sum(x, width, 0.0f, true) / (float)width;
    float s = 1.0f / sqrtf(mean_square + eps);
    for (int i = 0; i < width; i++) {
        y[i] = x[i] * s * w[i];
    }
}

static void norm_layer(const float *x, const float *w, const float *b, float eps, int width,
                       float *y) {
    float mean = lane_sum(x, width, 0.0f, false) / (float)width;
    float variance = lane_sum(x, width, mean, true) / (float)width;
    float s = 1.0f / sqrtf(variance + eps);
    for (int i = 0; i < width; i++) {
        float v = (x[i] - mean) * s * w[i];
        y[i] = b ? v + b[i] : v;
    }
}

static void glu_silu(const float *gate, const float *up, int width, float *y) {
    for (int i = 0; i < width; i++) {
        y[i] = cw_siluf(gate[i]) * up[i];
    }
}

static void glu_gelu(const float *gate, const float *up, int width, float *y) {
    for (int i = 0; i < width; i++) {
        y[i] = cw_geluf(gate[i]) * up[i];
    }
}

static void glu_oai(const float *gate, const float *up, int width, float *y) {
    for (int i = 0; i < width; i++) {
        float g = 7.0f < gate[i] ? 7.0f : gate[i];
        float u = 7.0f < up[i] ? 7.0f : up[i];
        u = -7.0f > u ? -7.0f : u;
        y[i] = g / (1.0f + cw_expf(-1.702f * g)) * (u + 1.0f);
    }
}

static void gelu(const float *x, int width, float *y) {
    for (int i = 0; i < width; i++) {
        y[i] = cw_geluf(x[i]);
    }
}

static void add_scaled(float *x, const float *y, float scale, size_t n) {
    for (size_t i = 0; i < n; i++) {
        x[i] = fmaf(scale, y[i], x[i]);
    }
}

static void scale_all(float *x, float scale, size_t n) {
    for (size_t i = 0; i < n; i++) {
        x[i] *= scale;
    }
}

static void softcap(float *x, float cap, size_t n) {
    for (size_t i = 0; i < n; i++) {
        x[i] = cap * cw_tanhf(x[i] / cap);
    }
}

static void rope(float *x, int n_rot, bool neox, const float *cos, const float *sin) {
    int half = n_rot / 2;
    for (int i = 0; i < half; i++) {
        float *pa = x + (neox ? i : 2 * i), *pb = x + (neox ? i + half : 2 * i + 1);
        float a = *pa, b = *pb;
        *pa = fmaf(a, cos[i], -(b * sin[i]));
        *pb = fmaf(a, sin[i], b * cos[i]);
    }
}

/* ---- cache and attention --------------------------------------------------------------------- */

/* F16: keys [cells/16][head][16], values [cells][head]. Q8_0: per 16 cells the codes in the same
 * order, then the f16 scales, one for 32 dimensions of a cell: keys [head/32][16], values
 * [16][head/32]. */
static size_t block16_bytes(int kind, int head) {
    return kind == CW_KV_Q8_0 ? (size_t)head * 17 : (size_t)head * 32;
}

/* 32 dimensions of a cell: d = max |x| / 127 rounded to f16, codes x / d to nearest even, within
 * +-127 (d may round to zero or to infinity). */
static uint16_t quantise_cell(const float *x, int8_t *codes) {
    uint32_t max = 0;
    for (int i = 0; i < 32; i++) {
        uint32_t a = magnitude(x[i]);
        max = a > max ? a : max;
    }
    float m;
    memcpy(&m, &max, 4);
    uint16_t h = cw_f32_to_f16(m / 127.0f);
    float d = cw_f16_to_f32(h);
    bool plain = (h & 0x7fff) != 0 && (h & 0x7fff) < 0x7c00;
    for (int i = 0; i < 32; i++) {
        float v = plain ? nearest(x[i] / d) : 0.0f;
        codes[i] = (int8_t)(v > 127.0f ? 127.0f : v < -127.0f ? -127.0f : v);
    }
    return h;
}

static void store(void *base, int kind, int head, uint32_t cell, int n, const float *x, size_t ld,
                  bool keys) {
    for (int i = 0; i < n; i++, cell++, x += ld) {
        uint8_t *block = (uint8_t *)base + cell / 16 * block16_bytes(kind, head);
        int lane = (int)(cell % 16);
        if (kind == CW_KV_F16) {
            for (int k = 0; k < head; k++) {
                uint16_t h = cw_f32_to_f16(x[k]);
                memcpy(block + 2 * (keys ? k * 16 + lane : lane * head + k), &h, 2);
            }
            continue;
        }
        uint8_t *scales = block + 16 * head;
        for (int g = 0; g < head / 32; g++) {
            int8_t codes[32];
            uint16_t h = quantise_cell(x + 32 * g, codes);
            memcpy(scales + 2 * (keys ? g * 16 + lane : lane * (head / 32) + g), &h, 2);
            for (int k = 0; k < 32; k++) {
                int at = 32 * g + k;
                block[keys ? at * 16 + lane : lane * head + at] = (uint8_t)codes[k];
            }
        }
    }
}

static void store_k(void *base, int kind, int head, uint32_t cell, int n, const float *k,
                    size_t ld) {
    store(base, kind, head, cell, n, k, ld, true);
}

static void store_v(void *base, int kind, int head, uint32_t cell, int n, const float *v,
                    size_t ld) {
    store(base, kind, head, cell, n, v, ld, false);
}

/* Dimension k of a cell, as stored. */
static float cell_at(const void *base, int kind, int head, int cell, int k, bool keys) {
    const uint8_t *block = (const uint8_t *)base + (size_t)(cell / 16) * block16_bytes(kind, head);
    int lane = cell % 16;
    uint16_t h;
    if (kind == CW_KV_F16) {
        memcpy(&h, block + 2 * (keys ? k * 16 + lane : lane * head + k), 2);
        return cw_f16_to_f32(h);
    }
    memcpy(&h, block + 16 * head + 2 * (keys ? k / 32 * 16 + lane : lane * (head / 32) + k / 32),
           2);
    int8_t code = (int8_t)block[keys ? k * 16 + lane : lane * head + k];
    return (float)code * cw_f16_to_f32(h);
}

static void attend(const struct cw_attend_job *j) {
    for (int i = 0; i < j->n_rows; i++) {
        float s[CW_CHUNK], m = -INFINITY, lane[16] = {0};
        for (int cell = j->lo[i]; cell < j->hi[i]; cell++) {
            float v = 0.0f;
            for (int k = 0; k < j->head_k; k++) {
                v = fmaf(j->q[i][k], cell_at(j->k, j->kind, j->head_k, cell, k, true), v);
            }
            v *= j->scale;
            if (j->softcap != 0.0f) {
                v = j->softcap * cw_tanhf(v / j->softcap);
            }
            s[cell] = v;
            m = v > m ? v : m;
        }
        float *o = j->o + (size_t)i * (size_t)j->head_v;
        memset(o, 0, (size_t)j->head_v * sizeof *o);
        for (int cell = j->lo[i]; cell < j->hi[i]; cell++) {
            float p = cw_expf(s[cell] - m);
            lane[cell % 16] += p;
            for (int k = 0; k < j->head_v; k++) {
                o[k] = fmaf(p, cell_at(j->v, j->kind, j->head_v, cell, k, false), o[k]);
            }
        }
        j->m[i] = m;
        j->l[i] = cw_tree16(lane);
    }
}

static void merge(float *big_m, float *big_l, float *big_o, float m, float l, const float *o,
                  int head_v) {
    float top = m > *big_m ? m : *big_m;
    float a = cw_expf(*big_m - top), b = cw_expf(m - top);
    *big_m = top;
    *big_l = fmaf(*big_l, a, l * b);
    for (int k = 0; k < head_v; k++) {
        big_o[k] = fmaf(big_o[k], a, o[k] * b);
    }
}

/* ---- measuring ------------------------------------------------------------------------------- */

static void widen_row(int type, const uint8_t *w, int n, float *y) {
    cw_dequantise((enum cw_type)type, w, n, y);
}

static uint32_t read_sum(const void *data, size_t bytes) {
    const uint8_t *p = data;
    uint32_t total = 0;
    for (size_t i = 0; i < bytes; i++) {
        total += p[i];
    }
    return total;
}

static uint64_t int8_loop(uint64_t rounds) {
    static volatile int8_t w = 3, x = -5;
    int32_t acc = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        acc += w * x;
    }
    return acc != 0 ? rounds : 0;
}

const struct cw_kernels cw_kernels_scalar = {
    .isa = CW_ISA_SCALAR,
    .row_group = 16,
    .norm_rms = norm_rms,
    .norm_layer = norm_layer,
    .glu = {[CW_GLU_SILU] = glu_silu, [CW_GLU_GELU] = glu_gelu, [CW_GLU_OAI] = glu_oai},
    .gelu = gelu,
    .add_scaled = add_scaled,
    .scale = scale_all,
    .softcap = softcap,
    .rope = rope,
    .quantise_32 = quantise_32,
    .quantise_256 = quantise_256,
    .product = {[CW_F32] = product_F32,
                [CW_F16] = product_F16,
                [CW_BF16] = product_BF16,
                [CW_Q4_0] = product_Q4_0,
                [CW_Q4_1] = product_Q4_1,
                [CW_Q5_0] = product_Q5_0,
                [CW_Q5_1] = product_Q5_1,
                [CW_Q8_0] = product_Q8_0,
                [CW_IQ4_NL] = product_IQ4_NL,
                [CW_MXFP4] = product_MXFP4,
                [CW_Q2_K] = product_Q2_K,
                [CW_Q3_K] = product_Q3_K,
                [CW_Q4_K] = product_Q4_K,
                [CW_Q5_K] = product_Q5_K,
                [CW_Q6_K] = product_Q6_K,
                [CW_IQ4_XS] = product_IQ4_XS},
    .store_k = store_k,
    .store_v = store_v,
    .attend = attend,
    .merge = merge,
    .widen = widen_row,
    .read_sum = read_sum,
    .int8_loop = int8_loop,
};
