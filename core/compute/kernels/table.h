/* SPDX-License-Identifier: MIT
 *
 * The body of a vector library: the words of vec_*.h are included before it, and KERNELS and
 * KERNELS_ISA name the table. Everything here is static but the table.
 */
#include "core/compute/kernels/kernels_impl.h"

#include "core/compute/kernels/elementwise.h"
#include "core/compute/kernels/peak.h"
#include "core/compute/kernels/unpack.h"

#include "core/compute/kernels/attend.h"
#include "core/compute/kernels/product.h"

const struct cw_kernels KERNELS = {
    .isa = KERNELS_ISA,
    .row_group = 16,
    .norm_rms = norm_rms,
    .norm_layer = norm_layer,
    .glu = {glu_silu, glu_gelu, glu_oai}, /* in the order of enum cw_glu */
    .gelu = gelu,
    .add_scaled = add_scaled,
    .scale = scale_all,
    .softcap = softcap,
    .rope = rope,
    .quantise_32 = quantise_32,
    .quantise_256 = quantise_256,
    .product = {[CW_F32] = product_F32,
                [CW_F16] = product_F16,
                [CW_BF16] = product_BF16,
                [CW_Q4_0] = product_Q4_0,
                [CW_Q4_1] = product_Q4_1,
                [CW_Q5_0] = product_Q5_0,
                [CW_Q5_1] = product_Q5_1,
                [CW_Q8_0] = product_Q8_0,
                [CW_IQ4_NL] = product_IQ4_NL,
                [CW_MXFP4] = product_MXFP4,
                [CW_Q2_K] = product_Q2_K,
                [CW_Q3_K] = product_Q3_K,
                [CW_Q4_K] = product_Q4_K,
                [CW_Q5_K] = product_Q5_K,
                [CW_Q6_K] = product_Q6_K,
                [CW_IQ4_XS] = product_IQ4_XS},
    .widen = widen_row,
    .packs = {[CW_Q4_0] = true,
              [CW_Q4_1] = true,
              [CW_Q5_0] = true,
              [CW_Q5_1] = true,
              [CW_Q8_0] = true,
              [CW_IQ4_NL] = true,
              [CW_MXFP4] = true,
              [CW_Q2_K] = true,
              [CW_Q3_K] = true,
              [CW_Q4_K] = true,
              [CW_Q5_K] = true,
              [CW_Q6_K] = true,
              [CW_IQ4_XS] = true},
    .store_k = store_k,
    .store_v = store_v,
    .attend = attend,
    .merge = merge,
    .read_sum = read_sum,
    .int8_loop = int8_loop,
};
