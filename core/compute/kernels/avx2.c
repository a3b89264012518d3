/* SPDX-License-Identifier: MIT
 * The kernels for AVX2, see table.h. */
#include "core/compute/kernels/kernels_impl.h"
#include "core/compute/kernels/vec_avx2.h"

#define KERNELS     cw_kernels_avx2
#define KERNELS_ISA 1 /* CW_ISA_AVX2 */

#include "core/compute/kernels/table.h"
