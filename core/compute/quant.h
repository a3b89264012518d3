/* SPDX-License-Identifier: MIT
 *
 * The block formats, taken apart into integers: what a block says, independent of how it is laid
 * out. The scalar kernels and dequantisation are written on this; the vector kernels take the bytes
 * apart themselves and are compared with it. Pure, any thread.
 *
 * Formats: the block structs and quantisers of the ggml project (ggml-common.h, ggml-quants.c);
 * MXFP4: OCP Microscaling Formats (MX) specification 1.0.
 */
#ifndef CW_QUANT_H
#define CW_QUANT_H

#include "chinwag/types.h"

#include <stdbool.h>

/* A block of n weights: weight i = d * scale[i / 16] * q[i] + m * min[i / 16]. Types of 32 have all
 * scales and mins 1. m is negative where the file subtracts it; has_min is false where the type has
 * no minimum at all. */
struct cw_block {
    int n; /* 32 or 256 */
    bool has_min;
    float d, m;
    int16_t scale[16], min[16];
    int8_t q[256];
};

/* Take apart one block of a quantised type. */
void cw_block_decode(enum cw_type type, const uint8_t *src, struct cw_block *b);

/* cols weights of a row as f32: every type, float ones too. cols is a multiple of the block. */
void cw_dequantise(enum cw_type type, const uint8_t *row, int cols, float *y);

extern const int8_t cw_iq4_values[16];
extern const int8_t cw_mxfp4_values[16]; /* doubled, as the scale is halved */
float cw_e8m0_half(uint8_t e);           /* 2^(e - 128) */

#endif
