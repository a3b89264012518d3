/* SPDX-License-Identifier: MIT
 *
 * The tensor types of GGUF files, as numbered there, and their block geometry. Constant data, any
 * thread.
 */
#ifndef CHINWAG_TYPES_H
#define CHINWAG_TYPES_H

#include <stddef.h>
#include <stdint.h>

enum cw_type {
    CW_F32 = 0,
    CW_F16 = 1,
    CW_Q4_0 = 2,
    CW_Q4_1 = 3,
    CW_Q5_0 = 6,
    CW_Q5_1 = 7,
    CW_Q8_0 = 8,
    CW_Q2_K = 10,
    CW_Q3_K = 11,
    CW_Q4_K = 12,
    CW_Q5_K = 13,
    CW_Q6_K = 14,
    CW_IQ4_NL = 20,
    CW_IQ4_XS = 23,
    CW_BF16 = 30,
    CW_MXFP4 = 39,
};

/* How activations meet a weight of this type (design: "one arithmetic", rule 1). */
enum cw_act_kind {
    CW_ACT_F32,  /* as they are */
    CW_ACT_Q32,  /* int8 codes, one f32 scale a block of 32 */
    CW_ACT_Q256, /* int8 codes, one f32 scale a block of 256 */
    CW_N_ACT_KINDS
};

struct cw_type_info {
    enum cw_type type;
    const char *name; /* "Q4_K" */
    int block;        /* weights a block; a row is a whole number of blocks */
    int block_bytes;  /* bytes a block */
    enum cw_act_kind act;
};

/* NULL for a number that is not in the table. */
const struct cw_type_info *cw_type_info(uint32_t type);

/* The name a type number is known by in the field even where it is unsupported ("IQ2_XXS"), or
 * NULL. For error messages. */
const char *cw_type_known_name(uint32_t type);

enum { CW_TYPE_LABEL = 16 };
/* The same, or "type N", in `out`. */
void cw_type_label(uint32_t type, char out[CW_TYPE_LABEL]);

#endif
