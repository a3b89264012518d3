/* SPDX-License-Identifier: MIT
 * The table of tensor types: geometry as in the GGUF specification. */
#include "chinwag/types.h"

#include <stdio.h>

static const struct cw_type_info infos[] = {
    {CW_F32, "F32", 1, 4, CW_ACT_F32},
    {CW_F16, "F16", 1, 2, CW_ACT_F32},
    {CW_BF16, "BF16", 1, 2, CW_ACT_F32},
    {CW_Q4_0, "Q4_0", 32, 18, CW_ACT_Q32},     /* f16 scale, 32 nibbles */
    {CW_Q4_1, "Q4_1", 32, 20, CW_ACT_Q32},     /* f16 scale, f16 minimum, 32 nibbles */
    {CW_Q5_0, "Q5_0", 32, 22, CW_ACT_Q32},     /* f16 scale, 32 high bits, 32 nibbles */
    {CW_Q5_1, "Q5_1", 32, 24, CW_ACT_Q32},     /* the same with an f16 minimum */
    {CW_Q8_0, "Q8_0", 32, 34, CW_ACT_Q32},     /* f16 scale, 32 signed bytes */
    {CW_IQ4_NL, "IQ4_NL", 32, 18, CW_ACT_Q32}, /* f16 scale, 32 nibbles into a table */
    {CW_MXFP4, "MXFP4", 32, 17, CW_ACT_Q32},   /* E8M0 scale, 32 E2M1 nibbles */
    {CW_Q2_K, "Q2_K", 256, 84, CW_ACT_Q256},
    {CW_Q3_K, "Q3_K", 256, 110, CW_ACT_Q256},
    {CW_Q4_K, "Q4_K", 256, 144, CW_ACT_Q256},
    {CW_Q5_K, "Q5_K", 256, 176, CW_ACT_Q256},
    {CW_Q6_K, "Q6_K", 256, 210, CW_ACT_Q256},
    {CW_IQ4_XS, "IQ4_XS", 256, 136, CW_ACT_Q256},
};

const struct cw_type_info *cw_type_info(uint32_t type) {
    for (size_t i = 0; i < sizeof infos / sizeof *infos; i++) {
        if ((uint32_t)infos[i].type == type) {
            return &infos[i];
        }
    }
    return NULL;
}

const char *cw_type_known_name(uint32_t type) {
    static const char *const names[] = {
        "F32",   "F16",        "Q4_0",       "Q4_1",       "Q4_2",     "Q4_3",     "Q5_0",
        "Q5_1",  "Q8_0",       "Q8_1",       "Q2_K",       "Q3_K",     "Q4_K",     "Q5_K",
        "Q6_K",  "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    "IQ4_NL",
        "IQ3_S", "IQ2_S",      "IQ4_XS",     "I8",         "I16",      "I32",      "I64",
        "F64",   "IQ1_M",      "BF16",       "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
        "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", "MXFP4",    "NVFP4",    "Q1_0",
        "Q2_0",
    };
    return type < sizeof names / sizeof *names ? names[type] : NULL;
}

void cw_type_label(uint32_t type, char out[CW_TYPE_LABEL]) {
    const char *name = cw_type_known_name(type);
    if (name != NULL) {
        snprintf(out, CW_TYPE_LABEL, "%s", name);
    } else {
        snprintf(out, CW_TYPE_LABEL, "type %u", (unsigned)type);
    }
}
