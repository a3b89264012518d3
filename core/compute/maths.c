/* SPDX-License-Identifier: MIT
 *
 * Elementary functions in fixed operations: argument reduction, a polynomial, a scaling. None calls
 * libm for more than fma, which is exact. Reduction and evaluation follow the usual scheme (Muller,
 * Elementary Functions, chapters 4 and 11); the f32 coefficients are minimax fits of our own, the
 * f64 ones Taylor series long enough for the reduced interval.
 */
#include "core/compute/maths.h"

#include <math.h>
#include <string.h>

static inline uint32_t bits_of(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}

static inline float f32_of(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

static inline uint64_t bits_of64(double d) {
    uint64_t u;
    memcpy(&u, &d, 8);
    return u;
}

static inline double f64_of(uint64_t u) {
    double d;
    memcpy(&d, &u, 8);
    return d;
}

/* ---- f32: repeated operation by operation in kernels/vec.h ----------------------------------- */

/* exp(x) = 2^n exp(r), n = rint(x / ln 2), |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer
 * and leaves it in the low bits. The scaling is done in two steps so that results below 2^-126 are
 * rounded once. */
float cw_expf(float x) {
    x = 89.5f < x ? 89.5f : x; /* so that a NaN stays, as minps and maxps do it */
    x = -105.0f > x ? -105.0f : x;
    float z = fmaf(x, 0x1.715476p+0f, 0x1.8p+23f);
    int32_t n = (int32_t)(bits_of(z) - 0x4b400000U);
    float nf = z - 0x1.8p+23f;
    float r = fmaf(nf, -0x1.62e4p-1f, x);
    r = fmaf(nf, -0x1.7f7d1cp-20f, r);
    float p = fmaf(r, 0x1.6a2434p-10f, 0x1.1239e2p-7f);
    p = fmaf(p, r, 0x1.5558f2p-5f);
    p = fmaf(p, r, 0x1.555492p-3f);
    p = fmaf(p, r, 0x1.fffffcp-2f);
    p = fmaf(p * r, r, r);
    p = p + 1.0f;
    int32_t n1 = n >> 1, n2 = n - n1;
    return p * f32_of((uint32_t)(n1 + 127) << 23) * f32_of((uint32_t)(n2 + 127) << 23);
}

/* An odd polynomial near zero, where the quotient would cancel; 1 - 2 / (exp(2|x|) + 1) beyond. */
float cw_tanhf(float x) {
    uint32_t sign = bits_of(x) & 0x80000000U;
    float a = f32_of(bits_of(x) ^ sign);
    float s = a * a;
    float p = fmaf(s, -0x1.75e1c6p-8f, 0x1.52269ap-6f);
    p = fmaf(p, s, -0x1.b83c5ap-5f);
    p = fmaf(p, s, 0x1.110726p-3f);
    p = fmaf(p, s, -0x1.555532p-2f);
    float near = fmaf(p * s, a, a);
    float far = 1.0f - 2.0f / (cw_expf(a + a) + 1.0f);
    return f32_of(bits_of(a < 0.625f ? near : far) | sign);
}

float cw_siluf(float x) {
    return x / (1.0f + cw_expf(-x));
}

float cw_geluf(float x) {
    float u = 0x1.988454p-1f * fmaf(0x1.6e4e26p-5f * x, x * x, x); /* sqrt(2 / pi), 0.044715 */
    return 0.5f * x * (1.0f + cw_tanhf(u));
}

/* ---- f64 ------------------------------------------------------------------------------------- */

#define LN2_HI 0x1.62e42fefa3000p-1 /* 41 bits: n * LN2_HI is exact for |n| < 2^12 */
#define LN2_LO 0x1.3de6af278ece6p-42

/* exp(x + tail), |tail| far below 1 ulp of x */
static double exp_tail(double x, double tail) {
    if (!(x < 710.0)) {
        return x != x ? x : (double)INFINITY;
    }
    if (x < -746.0) {
        return 0.0;
    }
    double z = fma(x, 0x1.71547652b82fep+0, 0x1.8p+52);
    int64_t n = (int64_t)(bits_of64(z) - 0x4338000000000000U);
    double nf = z - 0x1.8p+52;
    double hi = fma(nf, -LN2_HI, x);
    double lo = fma(nf, -LN2_LO, tail);
    double r = hi + lo;
    double rest = (hi - r) + lo;
    static const double inv_factorial[] = {1.0 / 2,        1.0 / 6,         1.0 / 24,
                                           1.0 / 120,      1.0 / 720,       1.0 / 5040,
                                           1.0 / 40320,    1.0 / 362880,    1.0 / 3628800,
                                           1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
    double p = inv_factorial[11];
    for (int i = 10; i >= 0; i--) {
        p = fma(p, r, inv_factorial[i]);
    }
    p = fma(p, r * r, rest + rest * r); /* exp(r + rest) - 1 - r */
    p = 1.0 + (r + p);
    int64_t n1 = n >> 1, n2 = n - n1;
    return p * f64_of((uint64_t)(n1 + 1023) << 52) * f64_of((uint64_t)(n2 + 1023) << 52);
}

double cw_exp(double x) {
    return exp_tail(x, 0.0);
}

/* log(x) = *hi + *lo for finite x > 0: x = 2^e m, m in [sqrt(1/2), sqrt(2)), s = (m - 1) / (m + 1),
 * log m = 2 s + 2 s^3 / 3 + 2 s^5 / 5 + ... */
static void log_parts(double x, double *hi, double *lo) {
    uint64_t u = bits_of64(x);
    int e = 0;
    if (u < 0x0010000000000000U) { /* denormal */
        u = bits_of64(x * 0x1p54);
        e = -54;
    }
    u += 0x3ff0000000000000U - 0x3fe6a09e667f3bcdU; /* sqrt(1/2) */
    e += (int)(u >> 52) - 1023;
    double m = f64_of((u & 0x000fffffffffffffU) + 0x3fe6a09e667f3bcdU);
    double f = m - 1.0, g = m + 1.0;
    double g_lo = f - (g - 2.0); /* m + 1 = g + g_lo: f is exact, and so is g - 2 */
    double s = f / g;
    double s_lo = (fma(-s, g, f) - s * g_lo) / g; /* the quotient is s + s_lo */
    double s2 = s * s;
    double p = 2.0 / 25;
    for (int k = 23; k >= 5; k -= 2) {
        p = fma(p, s2, 2.0 / k);
    }
    double a = s * s2 * (2.0 / 3), a_lo; /* the cubic term, kept with its rounding error */
    double s2_lo = fma(s, s, -s2);
    double s3 = s * s2, s3_lo = fma(s, s2, -s3) + s * s2_lo;
    a = s3 * (2.0 / 3);
    a_lo = fma(s3, 2.0 / 3, -a) + s3_lo * (2.0 / 3) + s3 * 0x1.5555555555555p-55;
    double small = 2.0 * s_lo * (1.0 + s2) + fma(s3 * s2, p, a_lo);
    double big = (double)e * LN2_HI, mid = 2.0 * s;
    double t = big + mid; /* |big| > |mid| or big is 0 */
    double t_lo = big == 0.0 ? 0.0 : (big - t) + mid;
    double v = t + a;
    double bb = v - t;
    double v_lo = (t - (v - bb)) + (a - bb);
    double tail = v_lo + (t_lo + fma((double)e, LN2_LO, small));
    *hi = v + tail;
    *lo = (v - *hi) + tail;
}

double cw_log(double x) {
    if (!(x > 0.0)) {
        return x == 0.0 ? -(double)INFINITY : (double)NAN;
    }
    if (x > 0x1.fffffffffffffp+1023) {
        return x;
    }
    double hi, lo;
    log_parts(x, &hi, &lo);
    return hi;
}

double cw_pow(double x, double y) {
    if (!(x > 0.0) || x > 0x1.fffffffffffffp+1023) {
        return x == 0.0 && y > 0.0 ? 0.0 : (double)NAN;
    }
    double hi, lo;
    log_parts(x, &hi, &lo);
    double p = y * hi;
    if (!(p < 800.0 && p > -800.0)) {
        return p > 0.0 ? (double)INFINITY : p < 0.0 ? 0.0 : p;
    }
    return exp_tail(p, fma(y, hi, -p) + y * lo);
}

/* x - k pi/2 = *r + *tail, k = rint(x 2/pi), pi/2 in three parts; returns k mod 4. The first step
 * is exact, because its result is a multiple of 2^-53 below 1. */
static int reduce(double x, double *r, double *tail) {
    double z = fma(x, 0x1.45f306dc9c883p-1, 0x1.8p+52);
    double k = z - 0x1.8p+52;
    double a = fma(-k, 0x1.921fb54442d18p+0, x);
    double b = k * 0x1.1a62633145c07p-54, b_lo = fma(k, 0x1.1a62633145c07p-54, -b);
    double d = a - b; /* two-sum, either may be the larger */
    double c = a - d;
    double rest = (c - b) + (a - (d + c));
    rest = fma(k, 0x1.f1976b7ed8fbcp-110, rest - b_lo);
    *r = d + rest;
    *tail = (d - *r) + rest;
    return (int)(bits_of64(z) & 3);
}

static double sin_poly(double r, double tail) {
    static const double c[] = {-1.0 / 6,
                               1.0 / 120,
                               -1.0 / 5040,
                               1.0 / 362880,
                               -1.0 / 39916800,
                               1.0 / 6227020800.0,
                               -1.0 / 1307674368000.0,
                               1.0 / 355687428096000.0};
    double s = r * r, p = c[7];
    for (int i = 6; i >= 0; i--) {
        p = fma(p, s, c[i]);
    }
    return r + fma(p * s, r, tail * (1.0 - 0.5 * s));
}

static double cos_poly(double r, double tail) {
    static const double c[] = {
        1.0 / 24,        -1.0 / 720,           1.0 / 40320,           -1.0 / 3628800,
        1.0 / 479001600, -1.0 / 87178291200.0, 1.0 / 20922789888000.0};
    double s = r * r, p = c[6];
    for (int i = 5; i >= 0; i--) {
        p = fma(p, s, c[i]);
    }
    double h = 0.5 * s, w = 1.0 - h; /* 1 - s/2 with its rounding error */
    return w + (((1.0 - w) - h) + fma(s * s, p, -(r * tail)));
}

static double sin_quadrant(double x, int shift) {
    if (!(x < 0x1p40 && x > -0x1p40)) {
        return (double)NAN;
    }
    double r, tail;
    int q = (reduce(x, &r, &tail) + shift) & 3;
    double y = q & 1 ? cos_poly(r, tail) : sin_poly(r, tail);
    return q & 2 ? -y : y;
}

double cw_sin(double x) {
    return x == 0.0 ? x : sin_quadrant(x, 0);
}

double cw_cos(double x) {
    return sin_quadrant(x, 1);
}

/* ---- halves ---------------------------------------------------------------------------------- */

float cw_f16_to_f32(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000U) << 16, m = h & 0x7fffU;
    if (m >= 0x7c00U) { /* infinity; a NaN becomes quiet, as the instruction does it */
        return f32_of(sign | 0x7f800000U | (m & 0x3ffU ? 0x400000U | (m & 0x3ffU) << 13 : 0));
    }
    if (m >= 0x0400U) {
        return f32_of(sign | ((m << 13) + 0x38000000U));
    }
    return f32_of(sign | bits_of((float)m * 0x1p-24f));
}

uint16_t cw_f32_to_f16(float f) {
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000U, a = u & 0x7fffffffU;
    if (a > 0x7f800000U) {
        return (uint16_t)(sign | 0x7e00U | (a >> 13 & 0x3ffU));
    }
    if (a >= 0x477ff000U) { /* 65520 and above round to infinity */
        return (uint16_t)(sign | 0x7c00U);
    }
    if (a >= 0x38800000U) { /* normal: round to nearest even on bit 13 */
        return (uint16_t)(sign | ((a + 0xfffU + (a >> 13 & 1U) - 0x38000000U) >> 13));
    }
    /* Denormal: adding 1/2 puts the wanted bits, rounded, at the bottom of the significand. */
    return (uint16_t)(sign | (bits_of(f32_of(a) + 0.5f) - 0x3f000000U));
}

float cw_bf16_to_f32(uint16_t h) {
    return f32_of((uint32_t)h << 16);
}
