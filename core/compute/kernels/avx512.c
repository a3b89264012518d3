/* SPDX-License-Identifier: MIT
 * The kernels for AVX-512, see table.h. */
#include "core/compute/kernels/kernels_impl.h"
#include "core/compute/kernels/vec_avx512.h"

#define KERNELS     cw_kernels_avx512
#define KERNELS_ISA 3 /* CW_ISA_AVX512 */

#include "core/compute/kernels/table.h"
