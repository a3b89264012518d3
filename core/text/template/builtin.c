/* SPDX-License-Identifier: MIT
 *
 * Chat formats by name, for files that carry no template or a wrong one. The names are those that
 * llama.cpp's --chat-template takes. Each is the plainest form of what the family's makers publish
 * about it: roles, begin and end marks, blanks around texts taken off where they do so, and a
 * system message folded into the first user message where the family has no place for one. Where
 * llama.cpp writes something else under a name (llama2, falcon3, gpt-oss, yandex, the blank lines
 * of deepseek3), the makers are followed.
 */
#include <stdbool.h>
#include <string.h>

#include "chinwag/template.h"

/* Each message between marks, of which `m.role` may be a part, and the reply's opening mark. */
#define MARKED(open, close, reply) MARKED_TEXT("m.content", open, close, reply)
#define MARKED_TEXT(text, open, close, reply)                                                      \
    "{% for m in messages %}{{ " open " + " text " + " close " }}{% endfor %}"                     \
    "{% if add_generation_prompt %}{{ " reply " }}{% endif %}"

/* System, user and reply written each in its own way, as expressions of m.content. */
#define ROLES(system, user, assistant, reply)                                                      \
    "{% for m in messages %}{% if m.role == 'system' %}{{ " system " }}"                           \
    "{% elif m.role == 'user' %}{{ " user " }}{% else %}{{ " assistant " }}{% endif %}"            \
    "{% endfor %}{% if add_generation_prompt %}{{ " reply " }}{% endif %}"

/* The same without a place for a system message: ns.first is what to write before the content of
 * the first user message. */
#define FOLDED(system, user, assistant, reply)                                                     \
    "{% set ns = namespace(first='') %}{% for m in messages %}{% if m.role == 'system' %}"         \
    "{% set ns.first = ns.first + " system " %}"                                                   \
    "{% elif m.role == 'user' %}{{ " user " }}{% set ns.first = '' %}"                             \
    "{% else %}{{ " assistant " }}{% endif %}{% endfor %}"                                         \
    "{% if add_generation_prompt %}{{ " reply " }}{% endif %}"

#define BEGIN       "{{ bos_token }}"
#define TRIMMED     "m.content | trim"
#define FOLD_PLAIN  "m.content + '\\n\\n'"
#define FOLD_TRIM   TRIMMED " + '\\n\\n'"
#define FOLD_LLAMA2 "'<<SYS>>\\n' + m.content + '\\n<</SYS>>\\n\\n'"
#define CHATML                                                                                     \
    MARKED("'<|im_start|>' + m.role + '\\n'", "'<|im_end|>\\n'", "'<|im_start|>assistant\\n'")
#define GRANITE                                                                                    \
    MARKED("'<|start_of_role|>' + m.role + '<|end_of_role|>'", "'<|end_of_text|>\\n'",             \
           "'<|start_of_role|>assistant<|end_of_role|>'")
#define EXAONE                                                                                     \
    ROLES("'[|system|]' + " TRIMMED " + '[|endofturn|]\\n'", "'[|user|]' + " TRIMMED " + '\\n'",   \
          "'[|assistant|]' + " TRIMMED " + '[|endofturn|]\\n'", "'[|assistant|]'")
#define DEEPSEEK_BAR "\uff5c" /* the full-width bar of its marks */

static const struct builtin {
    const char *name, *source;
} builtins[] = {
    {"chatml", CHATML},
    {"qwen", CHATML},
    {"smollm", CHATML},
    {"yi", CHATML},
    /* Meta */
    {"llama2", BEGIN FOLDED(FOLD_LLAMA2, "'[INST] ' + ns.first + m.content + ' [/INST]'",
                            "' ' + m.content + ' ' + eos_token + bos_token", "''")},
    {"llama2-sys", BEGIN FOLDED(FOLD_LLAMA2, "'[INST] ' + ns.first + m.content + ' [/INST]'",
                                "m.content + eos_token", "''")},
    {"llama2-sys-bos", BEGIN FOLDED(FOLD_LLAMA2, "'[INST] ' + ns.first + m.content + ' [/INST]'",
                                    "m.content + eos_token + bos_token", "''")},
    {"llama2-sys-strip",
     BEGIN FOLDED("'<<SYS>>\\n' + " TRIMMED " + '\\n<</SYS>>\\n\\n'",
                  "'[INST] ' + ns.first + " TRIMMED " + ' [/INST]'", TRIMMED " + eos_token", "''")},
    {"llama3",
     BEGIN MARKED_TEXT(TRIMMED, "'<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n'",
                       "'<|eot_id|>'", "'<|start_header_id|>assistant<|end_header_id|>\\n\\n'")},
    {"llama4", BEGIN MARKED_TEXT(TRIMMED, "'<|header_start|>' + m.role + '<|header_end|>\\n\\n'",
                                 "'<|eot|>'", "'<|header_start|>assistant<|header_end|>\\n\\n'")},
    /* Mistral */
    {"mistral-v1", BEGIN FOLDED(FOLD_PLAIN, "' [INST] ' + ns.first + m.content + ' [/INST]'",
                                "' ' + m.content + eos_token", "''")},
    {"mistral-v3", BEGIN FOLDED(FOLD_PLAIN, "'[INST] ' + ns.first + m.content + '[/INST]'",
                                "' ' + " TRIMMED " + eos_token", "''")},
    {"mistral-v3-tekken", BEGIN FOLDED(FOLD_PLAIN, "'[INST]' + ns.first + m.content + '[/INST]'",
                                       "m.content + eos_token", "''")},
    {"mistral-v7",
     BEGIN ROLES("'[SYSTEM_PROMPT] ' + m.content + '[/SYSTEM_PROMPT]'",
                 "'[INST] ' + m.content + '[/INST]'", "' ' + m.content + eos_token", "''")},
    {"mistral-v7-tekken",
     BEGIN ROLES("'[SYSTEM_PROMPT]' + m.content + '[/SYSTEM_PROMPT]'",
                 "'[INST]' + m.content + '[/INST]'", "m.content + eos_token", "''")},
    /* Microsoft */
    {"phi3", MARKED("'<|' + m.role + '|>\\n'", "'<|end|>\\n'", "'<|assistant|>\\n'")},
    {"phi4", MARKED("'<|im_start|>' + m.role + '<|im_sep|>'", "'<|im_end|>'",
                    "'<|im_start|>assistant<|im_sep|>'")},
    /* Google */
    {"gemma", BEGIN FOLDED(FOLD_TRIM,
                           "'<start_of_turn>user\\n' + ns.first + " TRIMMED " + '<end_of_turn>\\n'",
                           "'<start_of_turn>model\\n' + " TRIMMED " + '<end_of_turn>\\n'",
                           "'<start_of_turn>model\\n'")},
    /* DeepSeek: the coder, V2 and V2.5, V3 and R1 */
    {"deepseek",
     BEGIN ROLES("m.content", "'### Instruction:\\n' + m.content + '\\n'",
                 "'### Response:\\n' + m.content + '\\n<|EOT|>\\n'", "'### Response:\\n'")},
    {"deepseek2", BEGIN ROLES("m.content + '\\n\\n'", "'User: ' + m.content + '\\n\\n'",
                              "'Assistant: ' + m.content + eos_token", "'Assistant:'")},
    {"deepseek3",
     BEGIN ROLES("m.content", "'<" DEEPSEEK_BAR "User" DEEPSEEK_BAR ">' + m.content",
                 "'<" DEEPSEEK_BAR "Assistant" DEEPSEEK_BAR ">' + m.content + eos_token",
                 "'<" DEEPSEEK_BAR "Assistant" DEEPSEEK_BAR ">'")},
    /* Cohere */
    {"command-r",
     BEGIN MARKED_TEXT(TRIMMED,
                       "'<|START_OF_TURN_TOKEN|>' + {'system': '<|SYSTEM_TOKEN|>', 'user': "
                       "'<|USER_TOKEN|>'}.get(m.role, '<|CHATBOT_TOKEN|>')",
                       "'<|END_OF_TURN_TOKEN|>'", "'<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>'")},
    /* IBM */
    {"granite", GRANITE},
    {"granite-4.0", GRANITE},
    {"granite-4.1", GRANITE},
    /* TII */
    {"falcon3", ROLES("'<|system|>\\n' + m.content + '\\n'", "'<|user|>\\n' + m.content + '\\n'",
                      "'<|assistant|>\\n' + m.content + '<|endoftext|>\\n'", "'<|assistant|>\\n'")},
    /* LG */
    {"exaone3", EXAONE},
    {"exaone4", EXAONE},
    /* Zhipu */
    {"chatglm3", "[gMASK]sop" MARKED("'<|' + m.role + '|>\\n '", "''", "'<|assistant|>'")},
    {"chatglm4", "[gMASK]<sop>" MARKED("'<|' + m.role + '|>\\n'", "''", "'<|assistant|>\\n'")},
    {"glmedge", MARKED("'<|' + m.role + '|>\\n'", "''", "'<|assistant|>'")},
    /* others */
    {"zephyr", MARKED("'<|' + m.role + '|>\\n'", "eos_token + '\\n'", "'<|assistant|>\\n'")},
    {"monarch",
     MARKED("bos_token + m.role + '\\n'", "eos_token + '\\n'", "bos_token + 'assistant\\n'")},
    {"openchat", BEGIN ROLES("m.content + '<|end_of_turn|>'",
                             "'GPT4 Correct User: ' + m.content + '<|end_of_turn|>'",
                             "'GPT4 Correct Assistant: ' + m.content + '<|end_of_turn|>'",
                             "'GPT4 Correct Assistant:'")},
    {"vicuna", BEGIN ROLES("m.content + '\\n\\n'", "'USER: ' + m.content + '\\n'",
                           "'ASSISTANT: ' + m.content + eos_token + '\\n'", "'ASSISTANT:'")},
    {"vicuna-orca", BEGIN ROLES("'SYSTEM: ' + m.content + '\\n'", "'USER: ' + m.content + '\\n'",
                                "'ASSISTANT: ' + m.content + eos_token + '\\n'", "'ASSISTANT:'")},
    {"orion",
     BEGIN FOLDED(FOLD_PLAIN, "'Human: ' + ns.first + m.content + '\\n\\nAssistant: ' + eos_token",
                  "m.content + eos_token", "''")},
    {"minicpm", BEGIN ROLES(TRIMMED, "'<\u7528\u6237>' + " TRIMMED " + '<AI>'", TRIMMED, "''")},
    {"rwkv-world", ROLES("'System: ' + " TRIMMED " + '\\n\\n'", "'User: ' + " TRIMMED " + '\\n\\n'",
                         "'Assistant: ' + " TRIMMED " + '\\n\\n'", "'Assistant:'")},
    {"megrez", MARKED("'<|role_start|>' + m.role + '<|role_end|>'", "'<|turn_end|>'",
                      "'<|role_start|>assistant<|role_end|>'")},
    {"bailing", ROLES("'<role>SYSTEM</role>' + m.content", "'<role>HUMAN</role>' + m.content",
                      "'<role>ASSISTANT</role>' + m.content", "'<role>ASSISTANT</role>'")},
    {"yandex",
     BEGIN FOLDED(
         FOLD_PLAIN,
         "' \u041f\u043e\u043b\u044c\u0437\u043e\u0432\u0430\u0442\u0435\u043b\u044c: ' + ns.first "
         "+ m.content + '\\n\\n'",
         "' \u0410\u0441\u0441\u0438\u0441\u0442\u0435\u043d\u0442: ' + m.content + '\\n\\n'",
         "' \u0410\u0441\u0441\u0438\u0441\u0442\u0435\u043d\u0442:[SEP]'")},
    {"smolvlm",
     "<|im_start|>" ROLES("m.content + '\\n\\n'", "'User: ' + m.content + '<end_of_utterance>\\n'",
                          "'Assistant: ' + m.content + '<end_of_utterance>\\n'", "'Assistant:'")},
    {"gpt-oss", ROLES("'<|start|>developer<|message|># Instructions\\n\\n' + m.content + '<|end|>'",
                      "'<|start|>user<|message|>' + m.content + '<|end|>'",
                      "'<|start|>assistant<|channel|>final<|message|>' + m.content + '<|end|>'",
                      "'<|start|>assistant'")},
    {"kimi-k2", MARKED("'<|im_' + m.role + '|>' + m.role + '<|im_middle|>'", "'<|im_end|>'",
                       "'<|im_assistant|>assistant<|im_middle|>'")},
    {"seed_oss",
     ROLES("'<seed:bos>system\\n' + m.content + '<seed:eos>'",
           "'<seed:bos>user\\n' + m.content + '<seed:eos>'",
           "'<seed:bos>assistant\\n' + " TRIMMED " + '<seed:eos>'", "'<seed:bos>assistant\\n'")},
    {"grok-2", ROLES("'System: ' + " TRIMMED " + '<|separator|>\\n\\n'",
                     "'Human: ' + " TRIMMED " + '<|separator|>\\n\\n'",
                     "'Assistant: ' + m.content + '<|separator|>\\n\\n'", "'Assistant:'")},
};

enum { N_BUILTINS = sizeof builtins / sizeof builtins[0] };

const char *cw_template_builtin(const char *name) {
    for (size_t i = 0; i < N_BUILTINS; i++) {
        if (strcmp(builtins[i].name, name) == 0) {
            return builtins[i].source;
        }
    }
    return NULL;
}

const char *cw_template_builtin_name(size_t i) {
    return i < N_BUILTINS ? builtins[i].name : NULL;
}
