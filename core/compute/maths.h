/* SPDX-License-Identifier: MIT
 *
 * The elementary functions that may reach a logit or a draw, in fixed operations (rule 5): the same
 * bits on every machine. Square root, division and fma are exact by IEEE 754 and need no version of
 * ours. Pure, any thread. The vector kernels repeat the f32 ones operation by operation.
 */
#ifndef CW_MATHS_H
#define CW_MATHS_H

#include <stdint.h>

float cw_expf(float x);  /* relative error below 2^-22; 0 below -104, +inf above 88.8, NaN stays */
float cw_tanhf(float x); /* from cw_expf */
float cw_siluf(float x); /* x / (1 + exp(-x)) */
float cw_geluf(float x); /* 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */

double cw_exp(double x);
double cw_log(double x);
double cw_sin(double x); /* any |x| < 2^40, reduced in extended precision */
double cw_cos(double x);
double cw_pow(double x, double y); /* x > 0 */

/* IEEE half and bfloat16, exact one way, round to nearest even the other. */
float cw_f16_to_f32(uint16_t h);
uint16_t cw_f32_to_f16(float f);
float cw_bf16_to_f32(uint16_t h);

#endif
