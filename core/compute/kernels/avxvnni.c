/* SPDX-License-Identifier: MIT
 * The kernels for AVX-VNNI, see table.h. */
#include "core/compute/kernels/kernels_impl.h"
#include "core/compute/kernels/vec_avx2.h"

#define KERNELS     cw_kernels_avxvnni
#define KERNELS_ISA 2 /* CW_ISA_AVXVNNI */

#include "core/compute/kernels/table.h"
