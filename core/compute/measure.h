/* SPDX-License-Identifier: MIT
 *
 * What the machine could do at most, for `bench`: every speed is read against one of these. All
 * run on the object's pool and kernels, for a fraction of a second. Zero where it cannot be told.
 */
#ifndef CW_MEASURE_H
#define CW_MEASURE_H

#include "core/compute/compute.h"

/* Bytes a second: the best of ten plain sums over a buffer of `bytes`, all threads. */
double cw_measure_read(struct cw_compute *c, size_t bytes);

/* Bytes of the last level of cache that one core sees; a guess of 32 MiB where nobody says. */
size_t cw_measure_cache_bytes(void);

/* Multiply-adds a second of 8-bit integers, in registers only, all threads: the ISA's own product
 * step in eight independent chains. */
double cw_measure_int8(struct cw_compute *c);

/* Multiply-adds a second of OpenBLAS: the best of a few 1024-cubed sgemms, one on each thread. */
double cw_measure_sgemm(struct cw_compute *c);

/* Multiply-adds a second, and weight bytes read a second, of our product of a matrix of `type`
 * (random, rows x cols) with n tokens; all threads, the best of several within ~0.1 s. With
 * `packed` by the copy that cw_weight_pack makes, zero where the type has none; `c` must not have
 * packed anything before then, and is of no further use for packing. */
struct cw_product_speed {
    double macs, bytes;
};
struct cw_product_speed cw_measure_product(struct cw_compute *c, enum cw_type type, int rows,
                                           int cols, int n, bool packed);

#endif
