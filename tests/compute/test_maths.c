/* SPDX-License-Identifier: MIT
 *
 * The elementary functions against libm's long double ones, in units of the last place of the
 * result, and the conversions of halves against their definition.
 */
#include "core/compute/maths.h"

#include "checker.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* |got - want| in units of the last of `digits` bits of want. */
static double ulps(long double got, long double want, int digits, int min_exponent) {
    int e;
    frexpl(want, &e);
    e = e < min_exponent ? min_exponent : e;
    return (double)fabsl((got - want) / ldexpl(1.0L, e - digits));
}

static double ulps32(float got, long double want) {
    return ulps((long double)got, want, 24, -125);
}

static double ulps64(double got, long double want) {
    return ulps((long double)got, want, 53, -1021);
}

static double uniform(struct rng *r, double lo, double hi) {
    double u = ((double)rng_next(r) * 4294967296.0 + (double)rng_next(r)) / 18446744073709551616.0;
    return lo + (hi - lo) * u;
}

enum { N = 200000 };

START_TEST(f32_functions_are_accurate) {
    struct rng r = {1};
    double worst_exp = 0, worst_tanh = 0, worst_silu = 0, worst_gelu = 0;
    for (int i = 0; i < N; i++) {
        float x = (float)uniform(&r, -104, 88.7), y = (float)uniform(&r, -10, 10);
        if (i % 3 == 0) {
            x *= 0.01f;
            y *= 0.05f;
        }
        long double l = (long double)y;
        worst_exp = fmax(worst_exp, ulps32(cw_expf(x), expl((long double)x)));
        worst_tanh = fmax(worst_tanh, ulps32(cw_tanhf(y), tanhl(l)));
        worst_silu = fmax(worst_silu, ulps32(cw_siluf(y), l / (1 + expl(-l))));
        /* near its zero at minus infinity gelu cancels: absolute there */
        long double g =
            0.5L * l * (1 + tanhl(0.79788456080286535588L * (l + 0.044715L * l * l * l)));
        worst_gelu = fmax(worst_gelu, (double)fabsl((long double)cw_geluf(y) - g) /
                                          (fabs((double)y) * 0x1p-24));
    }
    ck_assert_msg(worst_exp <= 1.0, "expf: %g ulp", worst_exp);
    ck_assert_msg(worst_tanh <= 1.5, "tanhf: %g ulp", worst_tanh);
    ck_assert_msg(worst_silu <= 2.5, "siluf: %g ulp", worst_silu);
    ck_assert_msg(worst_gelu <= 4.0, "geluf: %g", worst_gelu);
}
END_TEST

START_TEST(f32_limits) {
    ck_assert(cw_expf(0.0f) == 1.0f && cw_expf(-0.0f) == 1.0f);
    ck_assert(cw_expf(-104.1f) == 0.0f && cw_expf(-INFINITY) == 0.0f);
    ck_assert(isinf(cw_expf(88.8f)) && isinf(cw_expf(INFINITY)));
    ck_assert(isnan(cw_expf(NAN)) && isnan(cw_tanhf(NAN)) && isnan(cw_siluf(NAN)));
    ck_assert(cw_tanhf(INFINITY) == 1.0f && cw_tanhf(-INFINITY) == -1.0f);
    ck_assert(cw_tanhf(20.0f) == 1.0f && cw_tanhf(0.0f) == 0.0f && signbit(cw_tanhf(-0.0f)));
    ck_assert(cw_expf(-103.0f) > 0.0f); /* a denormal */
}
END_TEST

START_TEST(f64_functions_are_accurate) {
    struct rng r = {2};
    double e = 0, l = 0, s = 0, c = 0, p = 0;
    for (int i = 0; i < N; i++) {
        double x = i % 2 ? uniform(&r, -708, 709) : uniform(&r, -1, 1);
        double y = exp(i % 2 ? uniform(&r, -700, 700) : uniform(&r, -0.5, 0.5));
        double a = uniform(&r, -1, 1) * (i % 4 == 0   ? 0x1p40
                                         : i % 4 == 1 ? 1e5
                                         : i % 4 == 2 ? 10
                                                      : 1);
        double b = exp(uniform(&r, 0, 14)), t = uniform(&r, -2, 2);
        e = fmax(e, ulps64(cw_exp(x), expl((long double)x)));
        l = fmax(l, ulps64(cw_log(y), logl((long double)y)));
        s = fmax(s, ulps64(cw_sin(a), sinl((long double)a)));
        c = fmax(c, ulps64(cw_cos(a), cosl((long double)a)));
        p = fmax(p, ulps64(cw_pow(b, t), powl((long double)b, (long double)t)));
    }
    /* Multiples of pi / 2, where the reduction has to be exact. */
    for (int k = 1; k < 20000; k += 7) {
        double a = (double)k * 1.5707963267948966;
        s = fmax(s, ulps64(cw_sin(a), sinl((long double)a)));
        c = fmax(c, ulps64(cw_cos(a), cosl((long double)a)));
    }
    ck_assert_msg(e <= 1.0, "exp: %g ulp", e);
    ck_assert_msg(l <= 0.75, "log: %g ulp", l);
    ck_assert_msg(s <= 1.0, "sin: %g ulp", s);
    ck_assert_msg(c <= 1.0, "cos: %g ulp", c);
    ck_assert_msg(p <= 1.0, "pow: %g ulp", p);
}
END_TEST

START_TEST(f64_limits) {
    ck_assert(cw_exp(0) == 1 && cw_exp(-800) == 0 && isinf(cw_exp(800)) &&
              isnan(cw_exp((double)NAN)));
    ck_assert(cw_exp(-740) > 0); /* a denormal */
    ck_assert(cw_log(1) == 0 && isinf(cw_log(0)) && isnan(cw_log(-1)) && isinf(cw_log(HUGE_VAL)));
    ck_assert_double_eq_tol(cw_log(5e-324), -744.4400719213812, 1e-10);
    ck_assert(cw_sin(0) == 0 && cw_cos(0) == 1 && isnan(cw_sin(HUGE_VAL)) &&
              isnan(cw_cos((double)NAN)));
    ck_assert(isnan(cw_sin(0x1p41)));
    ck_assert(cw_pow(10000, 0) == 1 && cw_pow(2, 10) == 1024 && cw_pow(10, 1) == 10);
    ck_assert(cw_pow(0, 2) == 0 && isnan(cw_pow(-1, 2)) && isinf(cw_pow(1e300, 2)));
    ck_assert(cw_pow(1e300, -2) == 0);
}
END_TEST

START_TEST(halves_round_to_nearest_even) {
    for (int h = 0; h < 65536; h++) {
        int e = h >> 10 & 31, m = h & 1023;
        double want = e == 0 ? ldexp(m, -24) : ldexp(1024 + m, e - 25);
        float got = cw_f16_to_f32((uint16_t)h);
        if (e == 31) {
            ck_assert(m ? isnan(got) : isinf(got));
            ck_assert(m == 0 || isnan(cw_f16_to_f32(cw_f32_to_f16(got))));
        } else {
            ck_assert(fabs((double)got) == want && (want == 0 || (got < 0) == (h >> 15)));
            ck_assert_int_eq(cw_f32_to_f16(got), h);
        }
    }
    struct rng r = {3};
    for (int i = 0; i < N; i++) { /* the nearer neighbour, the even one when halfway */
        int h = rng_int(&r, 0, 0x7bfe);
        double a = (double)cw_f16_to_f32((uint16_t)h), b = (double)cw_f16_to_f32((uint16_t)(h + 1));
        float x = (float)(i % 3 == 0 ? (a + b) / 2 : uniform(&r, a, b));
        double da = (double)x - a, db = b - (double)x;
        int want = da < db || (da == db && h % 2 == 0) ? h : h + 1;
        ck_assert_int_eq(cw_f32_to_f16(x), want);
        ck_assert_int_eq(cw_f32_to_f16(-x), want | 0x8000);
    }
    ck_assert_int_eq(cw_f32_to_f16(65519.0f), 0x7bff);
    ck_assert_int_eq(cw_f32_to_f16(65520.0f), 0x7c00);
    ck_assert_int_eq(cw_f32_to_f16(1e30f), 0x7c00);
    ck_assert(cw_bf16_to_f32(0x3f80) == 1.0f && cw_bf16_to_f32(0xc040) == -3.0f);
}
END_TEST

int main(void) {
    Suite *s = suite_create("maths");
    TCase *t = tcase_create("maths");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, f32_functions_are_accurate);
    tcase_add_test(t, f32_limits);
    tcase_add_test(t, f64_functions_are_accurate);
    tcase_add_test(t, f64_limits);
    tcase_add_test(t, halves_round_to_nearest_even);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
