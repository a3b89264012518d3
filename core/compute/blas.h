/* SPDX-License-Identifier: MIT
 *
 * OpenBLAS, for the products of float matrices with many tokens (rule 7). Opened at run time when
 * first asked for, because loading it takes as long as a small model's first token.
 */
#ifndef CW_BLAS_H
#define CW_BLAS_H

#include "core/compute/compute.h"

/* Open and check it, once a process; false: not usable, and *why says so in one line. Any thread.
 */
bool cw_blas_open(const char **why);

/* Tokens from which it is worth its packing. */
#define CW_BLAS_TOKENS 32

/* One product on the pool, on tiles cut at fixed places, each a single-threaded sgemm. scratch
 * holds CW_BLAS_SCRATCH floats a thread. Requires cw_blas_open. */
#define CW_BLAS_ROWS    128
#define CW_BLAS_COLS    2048
#define CW_BLAS_SCRATCH ((size_t)CW_BLAS_ROWS * CW_BLAS_COLS)
void cw_blas_product(struct cw_compute *c, const struct cw_product *p, float *scratch);

/* y [m, n] = a [m, k] times b [n, k] transposed; for measuring. */
void cw_blas_sgemm(int m, int n, int k, const float *a, const float *b, float *y);

#endif
