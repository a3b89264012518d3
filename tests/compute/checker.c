/* SPDX-License-Identifier: MIT
 * See checker.h. */
#include "checker.h"

#include "core/compute/compute_impl.h"
#include "core/compute/maths.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

uint32_t rng_next(struct rng *r) { /* xorshift64*, Vigna 2016 */
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return (uint32_t)(r->state * 0x2545f4914f6cdd1dU >> 32);
}

int rng_int(struct rng *r, int lo, int hi) {
    return lo + (int)(rng_next(r) % (uint32_t)(hi - lo + 1));
}

float rng_float(struct rng *r) {
    return (float)((double)rng_next(r) / 2147483647.5 - 1.0);
}

struct guarded guarded_alloc(size_t bytes) {
    struct guarded g;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (bytes + page - 1) / page * page;
    g.map_bytes = body + page;
    g.map = mmap(NULL, g.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g.map == MAP_FAILED || mprotect((char *)g.map + body, page, PROT_NONE) != 0) {
        perror("guarded_alloc");
        abort();
    }
    g.data = (char *)g.map + body - bytes;
    return g;
}

void guarded_free(struct guarded *g) {
    munmap(g->map, g->map_bytes);
}

const enum cw_type all_types[] = {CW_F32,  CW_F16,  CW_BF16,   CW_Q4_0,  CW_Q4_1, CW_Q5_0,
                                  CW_Q5_1, CW_Q8_0, CW_IQ4_NL, CW_MXFP4, CW_Q2_K, CW_Q3_K,
                                  CW_Q4_K, CW_Q5_K, CW_Q6_K,   CW_IQ4_XS};
const int n_all_types = (int)(sizeof all_types / sizeof *all_types);

static void put_f16(uint8_t *p, float f) {
    uint16_t h = cw_f32_to_f16(f);
    memcpy(p, &h, 2);
}

/* Where a type has its f16 scale and minimum; -1: none. */
static int scale_offset(enum cw_type t) {
    return t == CW_Q2_K ? 80 : t == CW_Q3_K ? 108 : t == CW_Q6_K ? 208 : t == CW_MXFP4 ? -1 : 0;
}

static int min_offset(enum cw_type t) {
    return t == CW_Q4_1 || t == CW_Q5_1 || t == CW_Q4_K || t == CW_Q5_K ? 2
           : t == CW_Q2_K                                               ? 82
                                                                        : -1;
}

void fill_blocks(enum cw_type type, enum pattern pattern, uint8_t *out, size_t n, struct rng *r) {
    const struct cw_type_info *info = cw_type_info(type);
    for (size_t b = 0; b < n; b++, out += info->block_bytes) {
        float v = rng_float(r);
        if (pattern != RANDOM) {
            v = pattern == ALTERNATING && b % 2 ? -1.0f : 1.0f;
        }
        uint32_t u;
        memcpy(&u, &v, 4);
        uint16_t bf = (uint16_t)(u >> 16);
        if (type == CW_F32) {
            memcpy(out, &v, 4);
            continue;
        }
        if (type == CW_F16) {
            put_f16(out, v);
            continue;
        }
        if (type == CW_BF16) {
            memcpy(out, &bf, 2);
            continue;
        }
        for (int i = 0; i < info->block_bytes; i++) {
            out[i] = (uint8_t)(pattern == RANDOM    ? rng_next(r)
                               : pattern == ALL_MAX ? (type == CW_Q8_0 ? 0x80 : 0xff)
                                                    : (i % 2 ? 0xff : 0x00));
        }
        if (type == CW_Q8_0 && pattern == ALTERNATING) {
            for (int i = 2; i < 34; i++) {
                out[i] = i % 2 ? 0x7f : 0x80;
            }
        }
        if (type == CW_MXFP4) {
            out[0] = (uint8_t)rng_int(r, 118, 130);
        } else {
            put_f16(out + scale_offset(type), 0.02f * v);
        }
        if (min_offset(type) >= 0) {
            put_f16(out + min_offset(type), 0.1f * rng_float(r));
        }
    }
}

void fill_values(enum pattern pattern, float *out, size_t n, struct rng *r) {
    for (size_t i = 0; i < n; i++) {
        float v = rng_float(r);
        out[i] = pattern == RANDOM    ? v * v * v * 4.0f
                 : pattern == ALL_MAX ? 1.0f
                                      : (i % 2 ? -1.0f : 1.0f);
    }
}

/* n bits (at most 16) from bit position `at` on, little-endian. */
static unsigned bits(const uint8_t *p, int at, int n) {
    unsigned v = 0;
    for (int i = 0; i < n; i++) {
        v |= (unsigned)(p[(at + i) / 8] >> ((at + i) % 8) & 1) << i;
    }
    return v;
}

static double half_at(const uint8_t *p) {
    unsigned h = bits(p, 0, 16), e = h >> 10 & 31, m = h & 1023;
    double v = e == 0 ? ldexp(m, -24) : ldexp(1024 + m, (int)e - 25);
    return h & 0x8000 ? -v : v;
}

double weight_at(enum cw_type type, const uint8_t *p, int i) {
    static const int iq4[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113};
    static const double e2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    int nib = 8 * (i % 16) + 4 * (i / 16); /* bit of a nibble, blocks of 32 */
    int s32 = i / 32, in32 = i % 32, s16 = i / 16;
    int half = i / 128, in128 = i % 128;
    float f;
    switch (type) {
    case CW_F32:
        memcpy(&f, p, 4);
        return (double)f;
    case CW_F16:
        return half_at(p);
    case CW_BF16:
        return ldexp((double)(128 + bits(p, 0, 7)), (int)bits(p, 7, 8) - 134) *
               (p[1] & 0x80 ? -1 : 1) * (bits(p, 7, 8) != 0);
    case CW_Q4_0:
        return half_at(p) * ((int)bits(p, 16 + nib, 4) - 8);
    case CW_Q4_1:
        return half_at(p) * bits(p, 32 + nib, 4) + half_at(p + 2);
    case CW_Q5_0:
        return half_at(p) * ((int)(bits(p, 48 + nib, 4) + 16 * bits(p, 16 + i, 1)) - 16);
    case CW_Q5_1:
        return half_at(p) * (bits(p, 64 + nib, 4) + 16 * bits(p, 32 + i, 1)) + half_at(p + 2);
    case CW_Q8_0:
        return half_at(p) * (int8_t)p[2 + i];
    case CW_IQ4_NL:
        return half_at(p) * iq4[bits(p, 16 + nib, 4)];
    case CW_MXFP4: {
        unsigned q = bits(p, 8 + nib, 4);
        return ldexp(e2m1[q & 7] * (q & 8 ? -1 : 1), p[0] - 127);
    }
    case CW_Q2_K: {
        unsigned q = bits(p + 16, 8 * (32 * half + in32) + in128 / 32 * 2, 2);
        return half_at(p + 80) * bits(p, 8 * s16, 4) * q -
               half_at(p + 82) * bits(p, 8 * s16 + 4, 4);
    }
    case CW_Q3_K: {
        int q = (int)bits(p + 32, 8 * (32 * half + in32) + in128 / 32 * 2, 2);
        q -= bits(p, 8 * in32 + s32, 1) ? 0 : 4;
        int s = (int)(bits(p + 96, 8 * (s16 % 8) + 4 * (s16 / 8), 4) +
                      16 * bits(p + 104, 8 * (s16 % 4) + 2 * (s16 / 4), 2));
        return half_at(p + 108) * (s - 32) * q;
    }
    case CW_Q4_K:
    case CW_Q5_K: {
        const uint8_t *s = p + 4, *q4 = p + (type == CW_Q4_K ? 16 : 48);
        unsigned scale, min, q = bits(q4, 8 * (s32 / 2 * 32 + in32) + 4 * (s32 % 2), 4);
        if (s32 < 4) {
            scale = bits(s, 8 * s32, 6);
            min = bits(s, 8 * (s32 + 4), 6);
        } else {
            scale = bits(s, 8 * (s32 + 4), 4) + 16 * bits(s, 8 * (s32 - 4) + 6, 2);
            min = bits(s, 8 * (s32 + 4) + 4, 4) + 16 * bits(s, 8 * s32 + 6, 2);
        }
        if (type == CW_Q5_K) {
            q += 16 * bits(p + 16, 8 * in32 + s32, 1);
        }
        return half_at(p) * scale * q - half_at(p + 2) * min;
    }
    case CW_Q6_K: {
        unsigned low = bits(p, 8 * (64 * half + in128 % 64) + in128 / 64 * 4, 4);
        unsigned high = bits(p + 128, 8 * (32 * half + in32) + in128 / 32 * 2, 2);
        return half_at(p + 208) * (int8_t)p[192 + s16] * ((int)(low + 16 * high) - 32);
    }
    case CW_IQ4_XS: {
        int s = (int)(bits(p + 4, 4 * s32, 4) + 16 * bits(p + 2, 2 * s32, 2)) - 32;
        return half_at(p) * s * iq4[bits(p + 8 + 16 * s32, 8 * (in32 % 16) + 4 * (in32 / 16), 4)];
    }
    }
    return (double)NAN;
}

long first_difference(const float *a, const float *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (memcmp(a + i, b + i, 4) != 0 && !(isnan(a[i]) && isnan(b[i]))) {
            return (long)i;
        }
    }
    return -1;
}

#define POISON 0x7b

bool same_product(const struct cw_kernels *a, const struct cw_kernels *b, struct product_case c,
                  char why[256]) {
    const struct cw_type_info *info = cw_type_info(c.type);
    struct rng r = {c.seed * 2 + 1};
    size_t row_blocks = (size_t)(c.cols / info->block);
    size_t row_bytes = row_blocks * (size_t)info->block_bytes, cols = (size_t)c.cols;
    size_t n_y = (size_t)c.n * ((size_t)c.rows + 1), n = (size_t)c.n;
    size_t act_block = info->block == 1 ? 32 : (size_t)info->block;
    struct guarded w = guarded_alloc((size_t)c.rows * row_bytes + (size_t)c.misalign);
    struct guarded x = guarded_alloc(n * cols * 4), bias = guarded_alloc((size_t)c.rows * 4);
    struct guarded q = guarded_alloc(n * cols), d = guarded_alloc(n * cols / act_block * 4);
    struct guarded sum32 = guarded_alloc(n * cols / 32 * 4), s16 = guarded_alloc(n * cols / 16 * 2);
    struct guarded centre = guarded_alloc(n * cols / 8 * 4);
    struct guarded y[2] = {guarded_alloc(n_y * 4), guarded_alloc(n_y * 4)};
    fill_blocks(c.type, c.pattern, w.data, (size_t)c.rows * row_blocks, &r);
    fill_values(c.pattern, x.data, n * cols, &r);
    fill_values(RANDOM, bias.data, (size_t)c.rows, &r);
    for (int i = 0; i < c.n && info->act != CW_ACT_F32; i++) {
        int tile = i / CW_TILE * CW_TILE, col = i - tile;
        int t = c.n - tile < CW_TILE ? c.n - tile : CW_TILE;
        size_t blocks = cols / act_block;
        const float *from = (float *)x.data + (size_t)i * cols;
        int8_t *codes = (int8_t *)q.data + (size_t)tile * cols + 4 * col;
        float *scales = (float *)d.data + (size_t)tile * blocks + col;
        if (info->block == 32) {
            a->quantise_32(from, c.cols, t, codes, scales,
                           (float *)sum32.data + (size_t)tile * blocks + col);
        } else {
            a->quantise_256(from, c.cols, t, codes, scales,
                            (int16_t *)s16.data + (size_t)tile * blocks * 16 + 2 * col,
                            (int32_t *)centre.data + (size_t)tile * blocks * 32 + col);
        }
    }
    size_t groups = ((size_t)c.rows + (size_t)b->row_group - 1) / (size_t)b->row_group;
    struct guarded packed = guarded_alloc(groups * (size_t)b->row_group * row_bytes);
    struct cw_product_job j = {
        .w = w.data,
        .row_bytes = row_bytes,
        .rows = c.rows,
        .cols = c.cols,
        .bias = c.bias ? bias.data : NULL,
        .n = c.n,
        .x = x.data,
        .ldx = cols,
        .q = q.data,
        .d = d.data,
        .sum32 = sum32.data,
        .s16 = s16.data,
        .centre = centre.data,
        .ldy = (size_t)c.rows + 1,
    };
    memset(y[0].data, POISON, n_y * 4);
    j.y = y[0].data;
    a->product[c.type](&j);
    /* b from the rows; then, where it can, packing them in passing; then from the packed copy, with
     * the rows out of reach. */
    j.y = y[1].data;
    for (int pass = 0; pass < (b->packs[c.type] ? 3 : 1); pass++) {
        memset(y[1].data, POISON, n_y * 4);
        j.packed = pass > 0 ? packed.data : NULL;
        j.pack = pass == 1;
        j.w = pass == 2 ? (uint8_t *)w.data + (size_t)c.rows * row_bytes + (size_t)c.misalign
                        : w.data;
        b->product[c.type](&j);
        if (first_difference(y[0].data, y[1].data, n_y) >= 0) {
            break;
        }
    }
    guarded_free(&packed);
    long at = first_difference(y[0].data, y[1].data, n_y);
    why[0] = 0;
    if (at >= 0) {
        snprintf(why, 256, "%s %s rows %d cols %d n %d seed %llu: token %ld row %ld: %a and %a",
                 cw_isa_name((enum cw_isa)b->isa), info->name, c.rows, c.cols, c.n,
                 (unsigned long long)c.seed, at / (c.rows + 1), at % (c.rows + 1),
                 (double)((float *)y[0].data)[at], (double)((float *)y[1].data)[at]);
    }
    for (int i = 0; i < c.n && at < 0; i++) { /* the column past the last row */
        uint32_t u;
        memcpy(&u, (char *)y[1].data + 4 * ((size_t)i * ((size_t)c.rows + 1) + (size_t)c.rows), 4);
        if (u != 0x01010101U * POISON) {
            snprintf(why, 256, "%s %s rows %d: wrote past the last row",
                     cw_isa_name((enum cw_isa)b->isa), info->name, c.rows);
            at = 0;
        }
    }
    guarded_free(&w);
    guarded_free(&x);
    guarded_free(&bias);
    guarded_free(&q);
    guarded_free(&d);
    guarded_free(&sum32);
    guarded_free(&s16);
    guarded_free(&centre);
    guarded_free(&y[0]);
    guarded_free(&y[1]);
    return at < 0;
}

const struct cw_kernels *kernels_at(int i) {
    for (int isa = CW_ISA_SCALAR; isa < CW_N_ISAS; isa++) {
        if (cw_isa_available((enum cw_isa)isa) && cw_kernels_of((enum cw_isa)isa) && i-- == 0) {
            return cw_kernels_of((enum cw_isa)isa);
        }
    }
    return NULL;
}
