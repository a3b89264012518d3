/* SPDX-License-Identifier: MIT
 *
 * The vector words of the kernels, in AVX-512. Two families:
 *   v16, v16i   sixteen f32 or i32: the virtual lanes of rule 2, cells, dimensions;
 *   vf, vi      R rows of weights side by side, one f32 or i32 (or four bytes) a row.
 * vec_avx2.h defines the same words.
 */
#ifndef CW_VEC_H
#define CW_VEC_H

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) ||                   \
    !defined(__AVX512VL__) || !defined(__AVX512VNNI__)
#error "compile with -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mfma -mf16c"
#endif

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

/* ---- sixteen lanes --------------------------------------------------------------------------- */

typedef __m512 v16;
typedef __m512i v16i;

INLINE __mmask16 first_lanes(int n) {
    return n >= 16 ? (__mmask16)0xffff : (__mmask16)((1U << n) - 1);
}

INLINE v16 v16_zero(void) {
    return _mm512_setzero_ps();
}
INLINE v16 v16_set1(float x) {
    return _mm512_set1_ps(x);
}
INLINE v16 v16_load(const float *p) {
    return _mm512_loadu_ps(p);
}
INLINE void v16_store(float *p, v16 x) {
    _mm512_storeu_ps(p, x);
}
/* The first n lanes; the others are zero, or not written. */
INLINE v16 v16_load_n(const float *p, int n) {
    return _mm512_maskz_loadu_ps(first_lanes(n), p);
}
INLINE void v16_store_n(float *p, v16 x, int n) {
    _mm512_mask_storeu_ps(p, first_lanes(n), x);
}
INLINE v16 v16_load_f16(const uint16_t *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
INLINE v16 v16_load_bf16(const uint16_t *p) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
INLINE v16 v16_load_i8(const int8_t *p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)p)));
}
INLINE void v16_store_f16(uint16_t *p, v16 x) {
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
INLINE v16 v16_add(v16 a, v16 b) {
    return _mm512_add_ps(a, b);
}
INLINE v16 v16_sub(v16 a, v16 b) {
    return _mm512_sub_ps(a, b);
}
INLINE v16 v16_mul(v16 a, v16 b) {
    return _mm512_mul_ps(a, b);
}
INLINE v16 v16_div(v16 a, v16 b) {
    return _mm512_div_ps(a, b);
}
INLINE v16 v16_fma(v16 a, v16 b, v16 c) {
    return _mm512_fmadd_ps(a, b, c);
}
/* fma in the first n lanes, c in the others */
INLINE v16 v16_fma_n(v16 a, v16 b, v16 c, int n) {
    return _mm512_mask3_fmadd_ps(a, b, c, first_lanes(n));
}
INLINE v16 v16_min(v16 a, v16 b) { /* a < b ? a : b */
    return _mm512_min_ps(a, b);
}
INLINE v16 v16_max(v16 a, v16 b) { /* a > b ? a : b */
    return _mm512_max_ps(a, b);
}
INLINE v16 v16_less(v16 a, v16 b, v16 yes, v16 no) { /* a < b ? yes : no */
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), no, yes);
}
/* x in lanes lo..hi-1, y in the others */
INLINE v16 v16_within(v16 x, v16 y, int lo, int hi) {
    __mmask16 m = (__mmask16)(first_lanes(hi < 0 ? 0 : hi) & ~first_lanes(lo < 0 ? 0 : lo));
    return _mm512_mask_blend_ps(m, y, x);
}
INLINE v16i v16_bits(v16 x) {
    return _mm512_castps_si512(x);
}
INLINE v16 v16_of_bits(v16i x) {
    return _mm512_castsi512_ps(x);
}
INLINE v16i v16i_set1(int x) {
    return _mm512_set1_epi32(x);
}
INLINE v16i v16i_add(v16i a, v16i b) {
    return _mm512_add_epi32(a, b);
}
INLINE v16i v16i_sub(v16i a, v16i b) {
    return _mm512_sub_epi32(a, b);
}
INLINE v16i v16i_half(v16i a) { /* a >> 1, arithmetic */
    return _mm512_srai_epi32(a, 1);
}
INLINE v16i v16i_to_exponent(v16i a) { /* a << 23 */
    return _mm512_slli_epi32(a, 23);
}
INLINE v16i v16i_and(v16i a, v16i b) {
    return _mm512_and_si512(a, b);
}
INLINE v16i v16i_or(v16i a, v16i b) {
    return _mm512_or_si512(a, b);
}
INLINE v16i v16i_xor(v16i a, v16i b) {
    return _mm512_xor_si512(a, b);
}
INLINE v16i v16i_max(v16i a, v16i b) {
    return _mm512_max_epi32(a, b);
}
INLINE int v16i_top(v16i a) { /* the largest lane */
    return _mm512_reduce_max_epi32(a);
}
INLINE int v16i_total(v16i a) {
    return _mm512_reduce_add_epi32(a);
}
INLINE v16i v16_round(v16 x) { /* to nearest even */
    return _mm512_cvtps_epi32(x);
}
INLINE __m128i v16i_bytes(v16i a) { /* the low byte of each lane */
    return _mm512_cvtepi32_epi8(a);
}
/* The tree of rule 2: 8, 4, 2, 1 apart. */
INLINE float v16_tree(v16 x) {
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
INLINE float v16_highest(v16 x) {
    __m256 a = _mm256_max_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_movehdup_ps(b)));
}
INLINE float v16_first(v16 x) {
    return _mm512_cvtss_f32(x);
}

/* Neighbouring pairs: lane 2i and 2i + 1 both get lane 2i (even) or 2i + 1 (odd); and eight values
 * twice each. */
INLINE v16 v16_even(v16 x) {
    return _mm512_moveldup_ps(x);
}
INLINE v16 v16_odd(v16 x) {
    return _mm512_movehdup_ps(x);
}
INLINE v16 v16_load_twice(const float *p) {
    __m512i index = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(index, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}
INLINE v16 v16_alternate(v16 even, v16 odd) {
    return _mm512_mask_blend_ps(0xaaaa, even, odd);
}

/* ---- R rows ---------------------------------------------------------------------------------- */

#define R             16 /* rows side by side */
#define TILE_COLUMNS  8  /* tokens a product kernel takes at once */
#define HAS_VNNI      1
#define FLOAT_ROWS    4 /* rows and tokens of a float product's tile */
#define FLOAT_COLUMNS 4
#define SCORE_ROWS    8 /* queries of a tile of scores, and the sixteen-cell accumulators in it */
#define SCORE_ACCS    16
#define VALUE_ROWS    6 /* queries of a tile of values, and the v16 accumulators in it */
#define VALUE_ACCS    24

typedef __m512 vf;
typedef __m512i vi;

INLINE vi vi_zero(void) {
    return _mm512_setzero_si512();
}
INLINE vi vi_set1(int x) {
    return _mm512_set1_epi32(x);
}
INLINE vi vi_load(const void *p) {
    return _mm512_loadu_si512(p);
}
INLINE void vi_store(void *p, vi x) {
    _mm512_storeu_si512(p, x);
}
INLINE vi vi_and(vi a, vi b) {
    return _mm512_and_si512(a, b);
}
INLINE vi vi_or(vi a, vi b) {
    return _mm512_or_si512(a, b);
}
INLINE vi vi_or_and(vi a, vi b, vi mask) { /* a | (b & mask) */
    return _mm512_ternarylogic_epi32(a, b, mask, 0xf8);
}
INLINE vi vi_xor(vi a, vi b) {
    return _mm512_xor_si512(a, b);
}
INLINE vi vi_add(vi a, vi b) {
    return _mm512_add_epi32(a, b);
}
INLINE vi vi_sub(vi a, vi b) {
    return _mm512_sub_epi32(a, b);
}
INLINE vi vi_mul(vi a, vi b) {
    return _mm512_mullo_epi32(a, b);
}
#define vi_shr(x, n) _mm512_srli_epi32((x), (n))
#define vi_sar(x, n) _mm512_srai_epi32((x), (n))
#define vi_shl(x, n) _mm512_slli_epi32((x), (n))
INLINE vi vi_look_up(vi table, vi index) { /* 16 bytes, repeated */
    return _mm512_shuffle_epi8(table, index);
}
INLINE vi vi_table(const uint8_t *values) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)values));
}
INLINE vi vi_load_halves(const void *p) { /* R halves, unsigned, one a lane; or bytes */
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(p));
}
INLINE vi vi_load_bytes(const void *p) {
    return _mm512_cvtepu8_epi32(_mm_loadu_si128(p));
}
INLINE void vi_store_bytes(void *p, vi x) { /* the low byte of each lane */
    _mm_storeu_si128(p, _mm512_cvtepi32_epi8(x));
}
INLINE vi vi_gather(const uint8_t *base, vi offsets) {
    return _mm512_i32gather_epi32(offsets, base, 1);
}
INLINE vf vf_zero(void) {
    return _mm512_setzero_ps();
}
INLINE vf vf_set1(float x) {
    return _mm512_set1_ps(x);
}
INLINE vf vf_load(const float *p) {
    return _mm512_loadu_ps(p);
}
INLINE void vf_store(float *p, vf x) {
    _mm512_storeu_ps(p, x);
}
INLINE vf vf_load_n(const float *p, int n) {
    return _mm512_maskz_loadu_ps(first_lanes(n), p);
}
INLINE void vf_store_n(float *p, vf x, int n) {
    _mm512_mask_storeu_ps(p, first_lanes(n), x);
}
INLINE vf vf_add(vf a, vf b) {
    return _mm512_add_ps(a, b);
}
INLINE vf vf_mul(vf a, vf b) {
    return _mm512_mul_ps(a, b);
}
INLINE vf vf_fma(vf a, vf b, vf c) {
    return _mm512_fmadd_ps(a, b, c);
}
INLINE vf vf_fnma(vf a, vf b, vf c) { /* c - a b */
    return _mm512_fnmadd_ps(a, b, c);
}
INLINE vf vf_neg(vf a) {
    return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f));
}
INLINE vf vf_of_int(vi x) {
    return _mm512_cvtepi32_ps(x);
}
INLINE vf vf_of_bits(vi x) {
    return _mm512_castsi512_ps(x);
}
INLINE vf vf_of_f16(vi x) { /* the low half of each lane */
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(x));
}
INLINE vf vf_load_f16(const void *p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(p));
}
INLINE void vf_store_f16_bits(void *p, vi x) { /* the low half of each lane, as it is */
    _mm256_storeu_si256(p, _mm512_cvtepi32_epi16(x));
}
/* acc + the products of four unsigned bytes of w and four signed ones of x */
INLINE vi vi_dot(vi acc, vi w, vi x) {
    return _mm512_dpbusd_epi32(acc, w, x);
}
/* acc + the products of two signed halves of each */
INLINE vi vi_dot2(vi acc, vi a, vi b) {
    return _mm512_dpwssd_epi32(acc, a, b);
}

/* Sixteen bytes at `at` of each row; t[j] gets dword j of every row, rows in order. */
INLINE void load_rows16(const uint8_t *const row[R], size_t at, vi t[4]) {
    vi a[4];
    for (int i = 0; i < 4; i++) { /* 128-bit lane l of a[i] is row 4 l + i */
        __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(row[i] + at)));
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(row[i + 4] + at)), 1);
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(row[i + 8] + at)), 2);
        a[i] = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(row[i + 12] + at)), 3);
    }
    vi b0 = _mm512_unpacklo_epi32(a[0], a[1]), b1 = _mm512_unpackhi_epi32(a[0], a[1]);
    vi b2 = _mm512_unpacklo_epi32(a[2], a[3]), b3 = _mm512_unpackhi_epi32(a[2], a[3]);
    t[0] = _mm512_unpacklo_epi64(b0, b2);
    t[1] = _mm512_unpackhi_epi64(b0, b2);
    t[2] = _mm512_unpacklo_epi64(b1, b3);
    t[3] = _mm512_unpackhi_epi64(b1, b3);
}

#endif
