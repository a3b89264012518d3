/* SPDX-License-Identifier: MIT
 *
 * The vector words of the kernels, in AVX2 with FMA and F16C; with 256-bit VNNI where the
 * translation unit is compiled for it. See vec_avx512.h.
 */
#ifndef CW_VEC_H
#define CW_VEC_H

#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "compile with -mavx2 -mfma -mf16c"
#endif

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

/* ---- sixteen lanes --------------------------------------------------------------------------- */

typedef struct {
    __m256 a, b;
} v16;
typedef struct {
    __m256i a, b;
} v16i;

#define BOTH(op, x)     ((v16){op((x).a), op((x).b)})
#define BOTH2(op, x, y) ((v16){op((x).a, (y).a), op((x).b, (y).b)})

/* All ones in the first n of eight lanes, n from -8 to 16. */
INLINE __m256i first_lanes(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE v16 v16_zero(void) {
    return (v16){_mm256_setzero_ps(), _mm256_setzero_ps()};
}
INLINE v16 v16_set1(float x) {
    return (v16){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
INLINE v16 v16_load(const float *p) {
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
INLINE void v16_store(float *p, v16 x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}
INLINE v16 v16_load_n(const float *p, int n) {
    return (v16){_mm256_maskload_ps(p, first_lanes(n)),
                 _mm256_maskload_ps(p + 8, first_lanes(n - 8))};
}
INLINE void v16_store_n(float *p, v16 x, int n) {
    _mm256_maskstore_ps(p, first_lanes(n), x.a);
    _mm256_maskstore_ps(p + 8, first_lanes(n - 8), x.b);
}
INLINE v16 v16_load_f16(const uint16_t *p) {
    return (v16){_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)),
                 _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p + 8)))};
}
INLINE __m256 bf16_to_ps(const uint16_t *p) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
INLINE v16 v16_load_bf16(const uint16_t *p) {
    return (v16){bf16_to_ps(p), bf16_to_ps(p + 8)};
}
INLINE v16 v16_load_i8(const int8_t *p) {
    __m128i x = _mm_loadu_si128((const __m128i *)p);
    return (v16){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(x)),
                 _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(x, 8)))};
}
INLINE void v16_store_f16(uint16_t *p, v16 x) {
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i *)(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
}
INLINE v16 v16_add(v16 x, v16 y) {
    return BOTH2(_mm256_add_ps, x, y);
}
INLINE v16 v16_sub(v16 x, v16 y) {
    return BOTH2(_mm256_sub_ps, x, y);
}
INLINE v16 v16_mul(v16 x, v16 y) {
    return BOTH2(_mm256_mul_ps, x, y);
}
INLINE v16 v16_div(v16 x, v16 y) {
    return BOTH2(_mm256_div_ps, x, y);
}
INLINE v16 v16_fma(v16 x, v16 y, v16 z) {
    return (v16){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
INLINE v16 v16_fma_n(v16 x, v16 y, v16 z, int n) {
    v16 f = v16_fma(x, y, z);
    return (v16){_mm256_blendv_ps(z.a, f.a, _mm256_castsi256_ps(first_lanes(n))),
                 _mm256_blendv_ps(z.b, f.b, _mm256_castsi256_ps(first_lanes(n - 8)))};
}
INLINE v16 v16_min(v16 x, v16 y) {
    return BOTH2(_mm256_min_ps, x, y);
}
INLINE v16 v16_max(v16 x, v16 y) {
    return BOTH2(_mm256_max_ps, x, y);
}
INLINE v16 v16_less(v16 x, v16 y, v16 yes, v16 no) {
    return (v16){_mm256_blendv_ps(no.a, yes.a, _mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ)),
                 _mm256_blendv_ps(no.b, yes.b, _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ))};
}
INLINE __m256 within8(__m256 x, __m256 y, int lo, int hi) {
    __m256i m = _mm256_andnot_si256(first_lanes(lo), first_lanes(hi));
    return _mm256_blendv_ps(y, x, _mm256_castsi256_ps(m));
}
INLINE v16 v16_within(v16 x, v16 y, int lo, int hi) {
    return (v16){within8(x.a, y.a, lo, hi), within8(x.b, y.b, lo - 8, hi - 8)};
}
INLINE v16i v16_bits(v16 x) {
    return (v16i){_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)};
}
INLINE v16 v16_of_bits(v16i x) {
    return (v16){_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)};
}
INLINE v16i v16i_set1(int x) {
    return (v16i){_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
INLINE v16i v16i_add(v16i x, v16i y) {
    return (v16i){_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}
INLINE v16i v16i_sub(v16i x, v16i y) {
    return (v16i){_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)};
}
INLINE v16i v16i_half(v16i x) {
    return (v16i){_mm256_srai_epi32(x.a, 1), _mm256_srai_epi32(x.b, 1)};
}
INLINE v16i v16i_to_exponent(v16i x) {
    return (v16i){_mm256_slli_epi32(x.a, 23), _mm256_slli_epi32(x.b, 23)};
}
INLINE v16i v16i_and(v16i x, v16i y) {
    return (v16i){_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)};
}
INLINE v16i v16i_or(v16i x, v16i y) {
    return (v16i){_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)};
}
INLINE v16i v16i_xor(v16i x, v16i y) {
    return (v16i){_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)};
}
INLINE v16i v16i_max(v16i x, v16i y) {
    return (v16i){_mm256_max_epi32(x.a, y.a), _mm256_max_epi32(x.b, y.b)};
}
INLINE int v16i_top(v16i x) {
    __m256i a = _mm256_max_epi32(x.a, x.b);
    __m128i b = _mm_max_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    b = _mm_max_epi32(b, _mm_shuffle_epi32(b, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(b, _mm_shuffle_epi32(b, 0xb1)));
}
INLINE int v16i_total(v16i x) {
    __m256i a = _mm256_add_epi32(x.a, x.b);
    __m128i b = _mm_add_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    b = _mm_add_epi32(b, _mm_shuffle_epi32(b, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(b, _mm_shuffle_epi32(b, 0xb1)));
}
INLINE v16i v16_round(v16 x) {
    return (v16i){_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)};
}
INLINE __m128i v16i_bytes(v16i x) {
    __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xd8);
    return _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}
INLINE float v16_tree(v16 x) {
    __m256 a = _mm256_add_ps(x.a, x.b);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
INLINE float v16_highest(v16 x) {
    __m256 a = _mm256_max_ps(x.a, x.b);
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}
INLINE float v16_first(v16 x) {
    return _mm256_cvtss_f32(x.a);
}
INLINE v16 v16_even(v16 x) {
    return BOTH(_mm256_moveldup_ps, x);
}
INLINE v16 v16_odd(v16 x) {
    return BOTH(_mm256_movehdup_ps, x);
}
INLINE __m256 twice4(const float *p) {
    __m256 x = _mm256_castps128_ps256(_mm_loadu_ps(p));
    return _mm256_permutevar8x32_ps(x, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
}
INLINE v16 v16_load_twice(const float *p) {
    return (v16){twice4(p), twice4(p + 4)};
}
INLINE v16 v16_alternate(v16 even, v16 odd) {
    return (v16){_mm256_blend_ps(even.a, odd.a, 0xaa), _mm256_blend_ps(even.b, odd.b, 0xaa)};
}

/* ---- R rows ---------------------------------------------------------------------------------- */

#define R             8
#define TILE_COLUMNS  4
#define FLOAT_ROWS    2
#define FLOAT_COLUMNS 2
#define SCORE_ROWS    4
#define SCORE_ACCS    6
#define VALUE_ROWS    6
#define VALUE_ACCS    6
#if defined(__AVXVNNI__)
#define HAS_VNNI 1
#else
#define HAS_VNNI 0
#endif

typedef __m256 vf;
typedef __m256i vi;

INLINE vi vi_zero(void) {
    return _mm256_setzero_si256();
}
INLINE vi vi_set1(int x) {
    return _mm256_set1_epi32(x);
}
INLINE vi vi_load(const void *p) {
    return _mm256_loadu_si256(p);
}
INLINE void vi_store(void *p, vi x) {
    _mm256_storeu_si256(p, x);
}
INLINE vi vi_and(vi a, vi b) {
    return _mm256_and_si256(a, b);
}
INLINE vi vi_or(vi a, vi b) {
    return _mm256_or_si256(a, b);
}
INLINE vi vi_or_and(vi a, vi b, vi mask) {
    return _mm256_or_si256(a, _mm256_and_si256(b, mask));
}
INLINE vi vi_xor(vi a, vi b) {
    return _mm256_xor_si256(a, b);
}
INLINE vi vi_add(vi a, vi b) {
    return _mm256_add_epi32(a, b);
}
INLINE vi vi_sub(vi a, vi b) {
    return _mm256_sub_epi32(a, b);
}
INLINE vi vi_mul(vi a, vi b) {
    return _mm256_mullo_epi32(a, b);
}
#define vi_shr(x, n) _mm256_srli_epi32((x), (n))
#define vi_sar(x, n) _mm256_srai_epi32((x), (n))
#define vi_shl(x, n) _mm256_slli_epi32((x), (n))
INLINE vi vi_look_up(vi table, vi index) {
    return _mm256_shuffle_epi8(table, index);
}
INLINE vi vi_table(const uint8_t *values) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)values));
}
INLINE __m128i low_halves(vi x) {
    vi words = _mm256_packus_epi32(_mm256_and_si256(x, _mm256_set1_epi32(0xffff)), vi_zero());
    return _mm256_castsi256_si128(_mm256_permute4x64_epi64(words, 0xd8));
}
INLINE vi vi_load_halves(const void *p) {
    return _mm256_cvtepu16_epi32(_mm_loadu_si128(p));
}
INLINE vi vi_load_bytes(const void *p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(p));
}
INLINE void vi_store_bytes(void *p, vi x) {
    __m128i halves = low_halves(_mm256_and_si256(x, _mm256_set1_epi32(255)));
    _mm_storel_epi64(p, _mm_packus_epi16(halves, halves));
}
INLINE vi vi_gather(const uint8_t *base, vi offsets) {
    return _mm256_i32gather_epi32((const int *)(const void *)base, offsets, 1);
}
INLINE vf vf_zero(void) {
    return _mm256_setzero_ps();
}
INLINE vf vf_set1(float x) {
    return _mm256_set1_ps(x);
}
INLINE vf vf_load(const float *p) {
    return _mm256_loadu_ps(p);
}
INLINE void vf_store(float *p, vf x) {
    _mm256_storeu_ps(p, x);
}
INLINE vf vf_load_n(const float *p, int n) {
    return _mm256_maskload_ps(p, first_lanes(n));
}
INLINE void vf_store_n(float *p, vf x, int n) {
    _mm256_maskstore_ps(p, first_lanes(n), x);
}
INLINE vf vf_add(vf a, vf b) {
    return _mm256_add_ps(a, b);
}
INLINE vf vf_mul(vf a, vf b) {
    return _mm256_mul_ps(a, b);
}
INLINE vf vf_fma(vf a, vf b, vf c) {
    return _mm256_fmadd_ps(a, b, c);
}
INLINE vf vf_fnma(vf a, vf b, vf c) {
    return _mm256_fnmadd_ps(a, b, c);
}
INLINE vf vf_neg(vf a) {
    return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f));
}
INLINE vf vf_of_int(vi x) {
    return _mm256_cvtepi32_ps(x);
}
INLINE vf vf_of_bits(vi x) {
    return _mm256_castsi256_ps(x);
}
INLINE vf vf_of_f16(vi x) {
    return _mm256_cvtph_ps(low_halves(x));
}
INLINE vf vf_load_f16(const void *p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(p));
}
INLINE void vf_store_f16_bits(void *p, vi x) {
    _mm_storeu_si128(p, low_halves(x));
}
#if HAS_VNNI
INLINE vi vi_dot(vi acc, vi w, vi x) {
    return _mm256_dpbusd_avx_epi32(acc, w, x);
}
INLINE vi vi_dot2(vi acc, vi a, vi b) {
    return _mm256_dpwssd_avx_epi32(acc, a, b);
}
#else
INLINE vi vi_dot2(vi acc, vi a, vi b) {
    return _mm256_add_epi32(acc, _mm256_madd_epi16(a, b));
}
/* Four products summed to two halves: exact while unsigned * signed * 2 stays within 16 bits. */
INLINE vi vi_dot_halves(vi w, vi x) {
    return _mm256_maddubs_epi16(w, x);
}
INLINE vi vi_add_halves(vi a, vi b) {
    return _mm256_add_epi16(a, b);
}
INLINE vi vi_abs_bytes(vi a) {
    return _mm256_abs_epi8(a);
}
INLINE vi vi_sign_bytes(vi x, vi w) { /* x times the sign of w */
    return _mm256_sign_epi8(x, w);
}
#endif

INLINE void load_rows16(const uint8_t *const row[R], size_t at, vi t[4]) {
    vi a[4];
    for (int i = 0; i < 4; i++) { /* 128-bit lane l of a[i] is row 4 l + i */
        a[i] = _mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_loadu_si128((const void *)(row[i] + at))),
            _mm_loadu_si128((const void *)(row[i + 4] + at)), 1);
    }
    vi b0 = _mm256_unpacklo_epi32(a[0], a[1]), b1 = _mm256_unpackhi_epi32(a[0], a[1]);
    vi b2 = _mm256_unpacklo_epi32(a[2], a[3]), b3 = _mm256_unpackhi_epi32(a[2], a[3]);
    t[0] = _mm256_unpacklo_epi64(b0, b2);
    t[1] = _mm256_unpackhi_epi64(b0, b2);
    t[2] = _mm256_unpacklo_epi64(b1, b3);
    t[3] = _mm256_unpackhi_epi64(b1, b3);
}

#endif
