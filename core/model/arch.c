/* SPDX-License-Identifier: MIT
 *
 * The table of architectures. Defaults that no key states are those the published models have (or,
 * where their GGUF conversions rely on llama.cpp's, those). */
#include "core/model/arch.h"

#include <string.h>

static const struct cw_arch table[] = {
    {
        /* Touvron et al. 2023; Mistral 7B, Llama 3, SmolLM and many others share it. With experts:
         * Mixtral (Jiang et al. 2024). */
        .name = "llama",
        .rope = CW_ROPE_PAIRS,
        .experts = CW_EXPERTS_MAYBE,
    },
    {
        /* Radford et al. 2019. */
        .name = "gpt2",
        .norm = CW_NORM_LAYER,
        .ffn = CW_FFN_PLAIN,
        .biases = CW_BIAS_QKV | CW_BIAS_OUT | CW_BIAS_FFN,
        .learned_positions = true,
    },
    {
        .name = "qwen2",
        .rope = CW_ROPE_NEOX,
        .biases = CW_BIAS_QKV,
    },
    {
        .name = "qwen3",
        .rope = CW_ROPE_NEOX,
        .qk_norm = CW_QK_NORM_HEAD,
    },
    {
        .name = "qwen3moe",
        .rope = CW_ROPE_NEOX,
        .qk_norm = CW_QK_NORM_HEAD,
        .experts = CW_EXPERTS_ALWAYS,
    },
    {
        /* The "1 +" of Gemma's norms is in the weights of the file already. */
        .name = "gemma",
        .rope = CW_ROPE_NEOX,
        .glu = CW_GLU_GELU,
        .embd_sqrt = true,
    },
    {
        .name = "gemma2",
        .post_norm = true,
        .rope = CW_ROPE_NEOX,
        .glu = CW_GLU_GELU,
        .embd_sqrt = true,
        .window_pattern = 2,
        .window = 4096,
        .softcap_attn_key = true,
        .softcap_out_key = true,
        .softcap_attn = 50.0f,
        .softcap_out = 30.0f,
        .n_layers_embd_scale = 46, /* the 27B model */
    },
    {
        .name = "gemma3",
        .post_norm = true,
        .rope = CW_ROPE_NEOX,
        .qk_norm = CW_QK_NORM_HEAD,
        .glu = CW_GLU_GELU,
        .embd_sqrt = true,
        .window_pattern = 6,
        .local_rope = CW_LOCAL_UNSCALED_10000,
        .softcap_out_key = true,
        .n_layers_embd_scale = 62, /* the 27B model */
    },
    {
        .name = "phi3",
        .rope = CW_ROPE_NEOX,
        .ffn = CW_FFN_GATED_FUSED,
    },
    {
        .name = "smollm3",
        .rope = CW_ROPE_PAIRS,
        .no_rope_every = 4,
    },
    {
        /* OLMo 2; with a window OLMo 3, whose local layers turn unscaled. */
        .name = "olmo2",
        .no_pre_norm = true,
        .post_norm = true,
        .rope = CW_ROPE_NEOX,
        .qk_norm = CW_QK_NORM_ALL,
        .window_pattern = 4,
        .local_rope = CW_LOCAL_UNSCALED,
    },
    {
        .name = "granite",
        .rope = CW_ROPE_PAIRS,
        .multipliers = true,
        .rope_finetuned_key = true,
    },
    {
        .name = "starcoder2",
        .norm = CW_NORM_LAYER,
        .rope = CW_ROPE_NEOX,
        .ffn = CW_FFN_PLAIN,
        .biases = CW_BIAS_QKV | CW_BIAS_OUT | CW_BIAS_FFN,
    },
    {
        /* Black et al. 2022. */
        .name = "gptneox",
        .norm = CW_NORM_LAYER,
        .rope = CW_ROPE_NEOX,
        .ffn = CW_FFN_PLAIN,
        .biases = CW_BIAS_QKV | CW_BIAS_OUT | CW_BIAS_FFN,
        .parallel_key = true,
    },
    {
        .name = "mistral3",
        .rope = CW_ROPE_PAIRS,
        .temperature = true,
        .yarn_keys = true,
    },
    {
        /* gpt-oss model card 2025. */
        .name = "gpt-oss",
        .ffn_norm = "post_attention_norm",
        .rope = CW_ROPE_NEOX,
        .glu = CW_GLU_OAI,
        .experts = CW_EXPERTS_ALWAYS,
        .biases = CW_BIAS_QKV | CW_BIAS_OUT | CW_BIAS_FFN,
        .sinks = true,
        .window_pattern = 2,
    },
};

enum { N_ARCHS = sizeof table / sizeof *table };

const struct cw_arch *cw_arch_find(struct cw_str name) {
    for (size_t i = 0; i < N_ARCHS; i++) {
        if (cw_str_eq(name, table[i].name)) {
            return &table[i];
        }
    }
    return NULL;
}

const char *cw_arch_name(size_t i) {
    return i < N_ARCHS ? table[i].name : NULL;
}

void cw_arch_list(char *out, size_t cap) {
    size_t len = 0;
    for (size_t i = 0; i < N_ARCHS; i++) {
        size_t n = strlen(table[i].name);
        if (len + n + 3 > cap) {
            break;
        }
        if (i > 0) {
            memcpy(out + len, ", ", 2);
            len += 2;
        }
        memcpy(out + len, table[i].name, n);
        len += n;
    }
    if (cap > 0) {
        out[len] = '\0';
    }
}
