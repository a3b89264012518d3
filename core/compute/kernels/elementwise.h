/* SPDX-License-Identifier: MIT
 *
 * Norms, activations, rotation and the quantising of activations, on the words of vec_*.h: the
 * operations of scalar.c and maths.c, one by one, sixteen at a time.
 */
#ifndef CW_ELEMENTWISE_H
#define CW_ELEMENTWISE_H

/* ---- elementary functions: see maths.c for the formulas -------------------------------------- */

INLINE v16 v16_neg(v16 x) {
    return v16_of_bits(v16i_xor(v16_bits(x), v16i_set1((int)0x80000000)));
}

INLINE v16 v16_exp(v16 x) {
    x = v16_min(v16_set1(89.5f), x);
    x = v16_max(v16_set1(-105.0f), x);
    v16 z = v16_fma(x, v16_set1(0x1.715476p+0f), v16_set1(0x1.8p+23f));
    v16i n = v16i_sub(v16_bits(z), v16i_set1(0x4b400000));
    v16 nf = v16_sub(z, v16_set1(0x1.8p+23f));
    v16 r = v16_fma(nf, v16_set1(-0x1.62e4p-1f), x);
    r = v16_fma(nf, v16_set1(-0x1.7f7d1cp-20f), r);
    v16 p = v16_fma(r, v16_set1(0x1.6a2434p-10f), v16_set1(0x1.1239e2p-7f));
    p = v16_fma(p, r, v16_set1(0x1.5558f2p-5f));
    p = v16_fma(p, r, v16_set1(0x1.555492p-3f));
    p = v16_fma(p, r, v16_set1(0x1.fffffcp-2f));
    p = v16_fma(v16_mul(p, r), r, r);
    p = v16_add(p, v16_set1(1.0f));
    v16i n1 = v16i_half(n), n2 = v16i_sub(n, n1), bias = v16i_set1(127);
    p = v16_mul(p, v16_of_bits(v16i_to_exponent(v16i_add(n1, bias))));
    return v16_mul(p, v16_of_bits(v16i_to_exponent(v16i_add(n2, bias))));
}

INLINE v16 v16_tanh(v16 x) {
    v16i sign = v16i_and(v16_bits(x), v16i_set1((int)0x80000000));
    v16 a = v16_of_bits(v16i_xor(v16_bits(x), sign));
    v16 s = v16_mul(a, a), one = v16_set1(1.0f);
    v16 p = v16_fma(s, v16_set1(-0x1.75e1c6p-8f), v16_set1(0x1.52269ap-6f));
    p = v16_fma(p, s, v16_set1(-0x1.b83c5ap-5f));
    p = v16_fma(p, s, v16_set1(0x1.110726p-3f));
    p = v16_fma(p, s, v16_set1(-0x1.555532p-2f));
    v16 near = v16_fma(v16_mul(p, s), a, a);
    v16 far = v16_sub(one, v16_div(v16_set1(2.0f), v16_add(v16_exp(v16_add(a, a)), one)));
    v16 y = v16_less(a, v16_set1(0.625f), near, far);
    return v16_of_bits(v16i_or(v16_bits(y), sign));
}

INLINE v16 v16_silu(v16 x) {
    return v16_div(x, v16_add(v16_set1(1.0f), v16_exp(v16_neg(x))));
}

INLINE v16 v16_gelu(v16 x) {
    v16 cubic = v16_fma(v16_mul(v16_set1(0x1.6e4e26p-5f), x), v16_mul(x, x), x);
    v16 t = v16_tanh(v16_mul(v16_set1(0x1.988454p-1f), cubic));
    return v16_mul(v16_mul(v16_set1(0.5f), x), v16_add(v16_set1(1.0f), t));
}

/* gpt-oss */
INLINE v16 v16_oai(v16 gate, v16 up) {
    v16 one = v16_set1(1.0f);
    v16 g = v16_min(v16_set1(7.0f), gate);
    v16 u = v16_max(v16_set1(-7.0f), v16_min(v16_set1(7.0f), up));
    v16 e = v16_exp(v16_mul(v16_set1(-1.702f), g));
    return v16_mul(v16_div(g, v16_add(one, e)), v16_add(u, one));
}

/* ---- norms ----------------------------------------------------------------------------------- */

static float lane_sum(const float *x, int n, float mean, bool squares) {
    v16 sum = v16_zero(), mu = v16_set1(mean);
    int i = 0;
    for (; i + 16 <= n; i += 16) {
        v16 v = v16_sub(v16_load(x + i), mu);
        sum = squares ? v16_fma(v, v, sum) : v16_add(sum, v);
    }
    if (i < n) { /* absent elements add +0, which changes no lane: none is -0 */
        v16 v = v16_within(v16_sub(v16_load_n(x + i, n - i), mu), v16_zero(), 0, n - i);
        sum = squares ? v16_fma(v, v, sum) : v16_add(sum, v);
    }
    return v16_tree(sum);
}

static float inverse_root(float mean_square, float eps) {
    return 1.0f / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean_square + eps)));
}

static void norm_rms(const float *x, const float *w, float eps, int width, float *y) {
    v16 s = v16_set1(inverse_root(lane_sum(x, width, 0.0f, true) / (float)width, eps));
    int i = 0;
    for (; i + 16 <= width; i += 16) {
        v16_store(y + i, v16_mul(v16_mul(v16_load(x + i), s), v16_load(w + i)));
    }
    if (i < width) {
        int n = width - i;
        v16_store_n(y + i, v16_mul(v16_mul(v16_load_n(x + i, n), s), v16_load_n(w + i, n)), n);
    }
}

static void norm_layer(const float *x, const float *w, const float *b, float eps, int width,
                       float *y) {
    float mean = lane_sum(x, width, 0.0f, false) / (float)width;
    v16 mu = v16_set1(mean);
    v16 s = v16_set1(inverse_root(lane_sum(x, width, mean, true) / (float)width, eps));
    for (int i = 0; i < width; i += 16) {
        int n = width - i;
        v16 v = v16_mul(v16_mul(v16_sub(v16_load_n(x + i, n), mu), s), v16_load_n(w + i, n));
        v16_store_n(y + i, b ? v16_add(v, v16_load_n(b + i, n)) : v, n);
    }
}

/* ---- activation functions and sums ----------------------------------------------------------- */

/* Defines name(a, b, n, y): y = expr of va and vb, for any n. */
#define MAP2(name, expr)                                                                           \
    static void name(const float *a, const float *b, int width, float *y) {                        \
        int i = 0;                                                                                 \
        for (; i + 16 <= width; i += 16) {                                                         \
            v16 va = v16_load(a + i), vb = v16_load(b + i);                                        \
            v16_store(y + i, expr);                                                                \
        }                                                                                          \
        if (i < width) {                                                                           \
            v16 va = v16_load_n(a + i, width - i), vb = v16_load_n(b + i, width - i);              \
            v16_store_n(y + i, expr, width - i);                                                   \
        }                                                                                          \
    }
MAP2(glu_silu, v16_mul(v16_silu(va), vb))
MAP2(glu_gelu, v16_mul(v16_gelu(va), vb))
MAP2(glu_oai, v16_oai(va, vb))

static void gelu(const float *x, int width, float *y) {
    for (int i = 0; i < width; i += 16) {
        v16_store_n(y + i, v16_gelu(v16_load_n(x + i, width - i)), width - i);
    }
}

static int sixteen_of(size_t n, size_t i) {
    return n - i < 16 ? (int)(n - i) : 16;
}

static void add_scaled(float *x, const float *y, float scale, size_t n) {
    v16 s = v16_set1(scale);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16_store(x + i, v16_fma(s, v16_load(y + i), v16_load(x + i)));
    }
    if (i < n) {
        int k = sixteen_of(n, i);
        v16_store_n(x + i, v16_fma(s, v16_load_n(y + i, k), v16_load_n(x + i, k)), k);
    }
}

static void scale_all(float *x, float scale, size_t n) {
    v16 s = v16_set1(scale);
    for (size_t i = 0; i < n; i += 16) {
        int k = sixteen_of(n, i);
        v16_store_n(x + i, v16_mul(v16_load_n(x + i, k), s), k);
    }
}

static void softcap(float *x, float cap, size_t n) {
    v16 c = v16_set1(cap);
    for (size_t i = 0; i < n; i += 16) {
        int k = sixteen_of(n, i);
        v16_store_n(x + i, v16_mul(c, v16_tanh(v16_div(v16_load_n(x + i, k), c))), k);
    }
}

static void rope(float *x, int n_rot, bool neox, const float *cos, const float *sin) {
    int half = n_rot / 2;
    if (neox) {
        for (int i = 0; i < half; i += 16) {
            int n = half - i;
            v16 a = v16_load_n(x + i, n), b = v16_load_n(x + half + i, n);
            v16 c = v16_load_n(cos + i, n), s = v16_load_n(sin + i, n);
            v16_store_n(x + i, v16_fma(a, c, v16_neg(v16_mul(b, s))), n);
            v16_store_n(x + half + i, v16_fma(a, s, v16_mul(b, c)), n);
        }
        return;
    }
    /* Pairs stand together: even lanes become fma(a, c, b * -s), odd ones fma(a, s, b * c). */
    for (int i = 0; i < half; i += 8) {
        int n = half - i;
        float c8[8] = {0}, s8[8] = {0};
        const float *pc = cos + i, *ps = sin + i;
        if (n < 8) {
            for (int k = 0; k < n; k++) {
                c8[k] = pc[k];
                s8[k] = ps[k];
            }
            pc = c8;
            ps = s8;
        }
        v16 c = v16_load_twice(pc), s = v16_load_twice(ps);
        v16 v = v16_load_n(x + 2 * i, 2 * n);
        v16 far = v16_mul(v16_odd(v), v16_alternate(v16_neg(s), c));
        v16_store_n(x + 2 * i, v16_fma(v16_even(v), v16_alternate(c, s), far), 2 * n);
    }
}

/* ---- quantising ------------------------------------------------------------------------------ */

INLINE float float_of_bits(int i) {
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(i)));
}

/* Sixteen codes to four dwords, t dwords apart. */
INLINE void put_codes(__m128i codes, int t, int8_t *q) {
    if (t == 1) {
        _mm_storeu_si128((__m128i *)q, codes);
        return;
    }
    _mm_storeu_si32(q, codes);
    _mm_storeu_si32(q + 4 * t, _mm_srli_si128(codes, 4));
    _mm_storeu_si32(q + 8 * t, _mm_srli_si128(codes, 8));
    _mm_storeu_si32(q + 12 * t, _mm_srli_si128(codes, 12));
}

/* The sums of codes 0..7 and 8..15. */
INLINE __m128i sums_of_eight(__m128i codes) {
    __m128i pairs = _mm_maddubs_epi16(_mm_set1_epi8(1), codes);
    __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi16(1));
    return _mm_hadd_epi32(fours, fours);
}

/* n (32 or 256) values: codes to q, sums of eight to sums[n / 8]; returns the scale. */
INLINE float quantise_block(const float *x, int n, int t, int8_t *q, int *sums) {
    v16i magnitude = v16i_set1(0x7fffffff), top = v16i_set1(0);
    for (int i = 0; i < n; i += 16) {
        top = v16i_max(top, v16i_and(v16_bits(v16_load(x + i)), magnitude));
    }
    int bits = v16i_top(top);
    float max = float_of_bits(bits);
    bool plain = max >= 0x1p-100f && bits < 0x7f800000;
    v16 inverse = v16_set1(127.0f / max);
    for (int i = 0; i < n; i += 16) {
        v16i c = v16i_set1(0);
        if (plain) {
            c = v16_round(v16_mul(v16_load(x + i), inverse));
        }
        __m128i codes = v16i_bytes(c);
        put_codes(codes, t, q + i * t);
        _mm_storel_epi64((__m128i *)(sums + i / 8), sums_of_eight(codes));
    }
    return max < 0x1p-100f ? 0.0f : max / 127.0f;
}

static void quantise_32(const float *x, int width, int t, int8_t *q, float *d, float *sum32) {
    for (int b = 0; b < width / 32; b++) {
        int sums[4];
        d[b * t] = quantise_block(x + 32 * b, 32, t, q + 32 * b * t, sums);
        sum32[b * t] = (float)(sums[0] + sums[1] + sums[2] + sums[3]);
    }
}

static void quantise_256(const float *x, int width, int t, int8_t *q, float *d, int16_t *s16,
                         int32_t *centre) {
    for (int b = 0; b < width / 256; b++) {
        int sums[32];
        d[b * t] = quantise_block(x + 256 * b, 256, t, q + 256 * b * t, sums);
        for (int s = 0; s < 16; s++) {
            s16[(b * 8 + s / 2) * t * 2 + s % 2] = (int16_t)(sums[2 * s] + sums[2 * s + 1]);
        }
        for (int s = 0; s < 32; s++) {
            centre[(b * 32 + s) * t] = -32 * sums[s];
        }
    }
}

#endif
