/* SPDX-License-Identifier: MIT
 *
 * The chat formats known by name: what each makes of a system message, a question, a reply and a
 * question is written out here by hand, as the family's makers document it; and what is typed stays
 * typed text in all of them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

static const struct {
    const char *name, *text;
} table[] = {
    {"chatml", "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU1<|im_end|>\n"
               "<|im_start|>assistant\nA1<|im_end|>\n<|im_start|>user\nU2<|im_end|>\n"
               "<|im_start|>assistant\n"},
    {"qwen", "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU1<|im_end|>\n"
             "<|im_start|>assistant\nA1<|im_end|>\n<|im_start|>user\nU2<|im_end|>\n"
             "<|im_start|>assistant\n"},
    {"smollm", "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU1<|im_end|>\n"
               "<|im_start|>assistant\nA1<|im_end|>\n<|im_start|>user\nU2<|im_end|>\n"
               "<|im_start|>assistant\n"},
    {"yi", "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nU1<|im_end|>\n"
           "<|im_start|>assistant\nA1<|im_end|>\n<|im_start|>user\nU2<|im_end|>\n"
           "<|im_start|>assistant\n"},
    {"llama2", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU1 [/INST] A1 </s><s>[INST] U2 [/INST]"},
    {"llama3", "<s><|start_header_id|>system<|end_header_id|>\n\nS<|eot_id|>"
               "<|start_header_id|>user<|end_header_id|>\n\nU1<|eot_id|>"
               "<|start_header_id|>assistant<|end_header_id|>\n\nA1<|eot_id|>"
               "<|start_header_id|>user<|end_header_id|>\n\nU2<|eot_id|>"
               "<|start_header_id|>assistant<|end_header_id|>\n\n"},
    {"llama4", "<s><|header_start|>system<|header_end|>\n\nS<|eot|>"
               "<|header_start|>user<|header_end|>\n\nU1<|eot|>"
               "<|header_start|>assistant<|header_end|>\n\nA1<|eot|>"
               "<|header_start|>user<|header_end|>\n\nU2<|eot|>"
               "<|header_start|>assistant<|header_end|>\n\n"},
    {"mistral-v1", "<s> [INST] S\n\nU1 [/INST] A1</s> [INST] U2 [/INST]"},
    {"mistral-v3", "<s>[INST] S\n\nU1[/INST] A1</s>[INST] U2[/INST]"},
    {"mistral-v3-tekken", "<s>[INST]S\n\nU1[/INST]A1</s>[INST]U2[/INST]"},
    {"mistral-v7", "<s>[SYSTEM_PROMPT] S[/SYSTEM_PROMPT][INST] U1[/INST] A1</s>[INST] U2[/INST]"},
    {"mistral-v7-tekken",
     "<s>[SYSTEM_PROMPT]S[/SYSTEM_PROMPT][INST]U1[/INST]A1</s>[INST]U2[/INST]"},
    {"phi3", "<|system|>\nS<|end|>\n<|user|>\nU1<|end|>\n<|assistant|>\nA1<|end|>\n"
             "<|user|>\nU2<|end|>\n<|assistant|>\n"},
    {"phi4", "<|im_start|>system<|im_sep|>S<|im_end|><|im_start|>user<|im_sep|>U1<|im_end|>"
             "<|im_start|>assistant<|im_sep|>A1<|im_end|><|im_start|>user<|im_sep|>U2<|im_end|>"
             "<|im_start|>assistant<|im_sep|>"},
    {"gemma", "<s><start_of_turn>user\nS\n\nU1<end_of_turn>\n<start_of_turn>model\nA1<end_of_turn>"
              "\n<start_of_turn>user\nU2<end_of_turn>\n<start_of_turn>model\n"},
    {"deepseek", "<s>S### Instruction:\nU1\n### Response:\nA1\n<|EOT|>\n### Instruction:\nU2\n"
                 "### Response:\n"},
    {"deepseek2", "<s>S\n\nUser: U1\n\nAssistant: A1</s>User: U2\n\nAssistant:"},
    {"deepseek3", "<s>S<\uff5cUser\uff5c>U1<\uff5c"
                  "Assistant\uff5c>A1</s><\uff5cUser\uff5c>U2<\uff5c"
                  "Assistant\uff5c>"},
    {"command-r", "<s><|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>S<|END_OF_TURN_TOKEN|>"
                  "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>U1<|END_OF_TURN_TOKEN|>"
                  "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>A1<|END_OF_TURN_TOKEN|>"
                  "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>U2<|END_OF_TURN_TOKEN|>"
                  "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"},
    {"granite", "<|start_of_role|>system<|end_of_role|>S<|end_of_text|>\n"
                "<|start_of_role|>user<|end_of_role|>U1<|end_of_text|>\n"
                "<|start_of_role|>assistant<|end_of_role|>A1<|end_of_text|>\n"
                "<|start_of_role|>user<|end_of_role|>U2<|end_of_text|>\n"
                "<|start_of_role|>assistant<|end_of_role|>"},
    {"falcon3", "<|system|>\nS\n<|user|>\nU1\n<|assistant|>\nA1<|endoftext|>\n<|user|>\nU2\n"
                "<|assistant|>\n"},
    {"exaone3", "[|system|]S[|endofturn|]\n[|user|]U1\n[|assistant|]A1[|endofturn|]\n[|user|]U2\n"
                "[|assistant|]"},
    {"chatglm3", "[gMASK]sop<|system|>\n S<|user|>\n U1<|assistant|>\n A1<|user|>\n U2"
                 "<|assistant|>"},
    {"chatglm4", "[gMASK]<sop><|system|>\nS<|user|>\nU1<|assistant|>\nA1<|user|>\nU2"
                 "<|assistant|>\n"},
    {"glmedge", "<|system|>\nS<|user|>\nU1<|assistant|>\nA1<|user|>\nU2<|assistant|>"},
    {"zephyr", "<|system|>\nS</s>\n<|user|>\nU1</s>\n<|assistant|>\nA1</s>\n<|user|>\nU2</s>\n"
               "<|assistant|>\n"},
    {"monarch", "<s>system\nS</s>\n<s>user\nU1</s>\n<s>assistant\nA1</s>\n<s>user\nU2</s>\n"
                "<s>assistant\n"},
    {"openchat", "<s>S<|end_of_turn|>GPT4 Correct User: U1<|end_of_turn|>GPT4 Correct Assistant: "
                 "A1<|end_of_turn|>GPT4 Correct User: U2<|end_of_turn|>GPT4 Correct Assistant:"},
    {"vicuna", "<s>S\n\nUSER: U1\nASSISTANT: A1</s>\nUSER: U2\nASSISTANT:"},
    {"vicuna-orca", "<s>SYSTEM: S\nUSER: U1\nASSISTANT: A1</s>\nUSER: U2\nASSISTANT:"},
    {"orion", "<s>Human: S\n\nU1\n\nAssistant: </s>A1</s>Human: U2\n\nAssistant: </s>"},
    {"minicpm", "<s>S<\u7528\u6237>U1<AI>A1<\u7528\u6237>U2<AI>"},
    {"rwkv-world", "System: S\n\nUser: U1\n\nAssistant: A1\n\nUser: U2\n\nAssistant:"},
    {"megrez", "<|role_start|>system<|role_end|>S<|turn_end|><|role_start|>user<|role_end|>U1"
               "<|turn_end|><|role_start|>assistant<|role_end|>A1<|turn_end|>"
               "<|role_start|>user<|role_end|>U2<|turn_end|><|role_start|>assistant<|role_end|>"},
    {"bailing", "<role>SYSTEM</role>S<role>HUMAN</role>U1<role>ASSISTANT</role>A1"
                "<role>HUMAN</role>U2<role>ASSISTANT</role>"},
    {"gpt-oss", "<|start|>developer<|message|># Instructions\n\nS<|end|>"
                "<|start|>user<|message|>U1<|end|>"
                "<|start|>assistant<|channel|>final<|message|>A1<|end|>"
                "<|start|>user<|message|>U2<|end|><|start|>assistant"},
    {"kimi-k2", "<|im_system|>system<|im_middle|>S<|im_end|><|im_user|>user<|im_middle|>U1"
                "<|im_end|><|im_assistant|>assistant<|im_middle|>A1<|im_end|>"
                "<|im_user|>user<|im_middle|>U2<|im_end|><|im_assistant|>assistant<|im_middle|>"},
    {"seed_oss", "<seed:bos>system\nS<seed:eos><seed:bos>user\nU1<seed:eos>"
                 "<seed:bos>assistant\nA1<seed:eos><seed:bos>user\nU2<seed:eos>"
                 "<seed:bos>assistant\n"},
    {"llama2-sys", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU1 [/INST]A1</s>[INST] U2 [/INST]"},
    {"llama2-sys-bos", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU1 [/INST]A1</s><s>[INST] U2 [/IN"
                       "ST]"},
    {"llama2-sys-strip", "<s>[INST] <<SYS>>\nS\n<</SYS>>\n\nU1 [/INST]A1</s>[INST] U2 [/INST]"},
    {"exaone4", "[|system|]S[|endofturn|]\n[|user|]U1\n[|assistant|]A1[|endofturn|]\n"
                "[|user|]U2\n[|assistant|]"},
    {"granite-4.0", "<|start_of_role|>system<|end_of_role|>S<|end_of_text|>\n<|start_of_"
                    "role|>user<|end_of_role|>U1<|end_of_text|>\n<|start_of_role|>assist"
                    "ant<|end_of_role|>A1<|end_of_text|>\n<|start_of_role|>user<|end_of_"
                    "role|>U2<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>"},
    {"yandex", "<s> \u041f\u043e\u043b\u044c\u0437\u043e\u0432\u0430\u0442\u0435\u043b"
               "\u044c: S\n\nU1\n\n \u0410\u0441\u0441\u0438\u0441\u0442\u0435\u043d"
               "\u0442: A1\n\n \u041f\u043e\u043b\u044c\u0437\u043e\u0432\u0430\u0442"
               "\u0435\u043b\u044c: U2\n\n \u0410\u0441\u0441\u0438\u0441\u0442\u0435"
               "\u043d\u0442:[SEP]"},
    {"smolvlm", "<|im_start|>S\n\nUser: U1<end_of_utterance>\nAssistant: A1<end_of_u"
                "tterance>\nUser: U2<end_of_utterance>\nAssistant:"},
    {"granite-4.1", "<|start_of_role|>system<|end_of_role|>S<|end_of_text|>\n<|start_of_"
                    "role|>user<|end_of_role|>U1<|end_of_text|>\n<|start_of_role|>assist"
                    "ant<|end_of_role|>A1<|end_of_text|>\n<|start_of_role|>user<|end_of_"
                    "role|>U2<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>"},
    {"grok-2", "System: S<|separator|>\n\nHuman: U1<|separator|>\n\nAssistant: A1<|separator|>\n\n"
               "Human: U2<|separator|>\n\nAssistant:"},
};

enum { N_TABLE = sizeof table / sizeof table[0] };

static struct cw_template_input input(struct cw_message m[4], const char *text, size_t n) {
    static const char *const roles[] = {"system", "user", "assistant", "user"};
    static const char *const contents[] = {"S", "U1", "A1", "U2"};
    for (int i = 0; i < 4; i++) {
        const char *content = text != NULL ? text : contents[i];
        m[i] = (struct cw_message){
            .role = roles[i], .content = content, .len = text != NULL ? n : strlen(content)};
    }
    return (struct cw_template_input){
        .messages = m, .n_messages = 4, .add_generation_prompt = true, .bos = "<s>", .eos = "</s>"};
}

START_TEST(formats) {
    struct cw_message m[4];
    struct cw_template_input in = input(m, NULL, 0);
    const char *source = cw_template_builtin(table[_i].name);
    ck_assert_msg(source != NULL, "%s is not known", table[_i].name);
    expect_text(source, &in, table[_i].text);
    /* Without a prompt for a reply nothing opens one. */
    struct run with = run_template(source, strlen(source), &in, NULL);
    in.n_messages = 3;
    in.add_generation_prompt = false;
    struct run without = run_template(source, strlen(source), &in, NULL);
    ck_assert_int_eq(without.code, CW_OK);
    ck_assert(without.prompt.len < with.prompt.len &&
              memcmp(without.prompt.text, with.prompt.text, without.prompt.len) == 0);
    run_free(&with);
    run_free(&without);
}
END_TEST

/* Blanks around a text go where the makers take them off, and stay elsewhere. */
START_TEST(blanks_around_texts) {
    static const char *const kinds[][2] = {
        {"chatml", "<|im_start|>user\n U \n<|im_end|>\n<|im_start|>assistant\n A <|im_end|>\n"},
        {"llama3", "<s><|start_header_id|>user<|end_header_id|>\n\nU<|eot_id|>"
                   "<|start_header_id|>assistant<|end_header_id|>\n\nA<|eot_id|>"},
        {"gemma", "<s><start_of_turn>user\nU<end_of_turn>\n"
                  "<start_of_turn>model\nA<end_of_turn>\n"},
        {"mistral-v3", "<s>[INST]  U \n[/INST] A</s>"},
        {"mistral-v7", "<s>[INST]  U \n[/INST]  A </s>"},
    };
    const struct cw_message m[] = {{.role = "user", .content = " U \n", .len = 4},
                                   {.role = "assistant", .content = " A ", .len = 3}};
    const struct cw_template_input in = {
        .messages = m, .n_messages = 2, .bos = "<s>", .eos = "</s>"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        expect_text(cw_template_builtin(kinds[i][0]), &in, kinds[i][1]);
    }
}
END_TEST

START_TEST(names) {
    size_t n = 0, all = 0;
    for (const char *name; (name = cw_template_builtin_name(n)) != NULL; n++) {
        size_t found = 0;
        all += strlen(name) + 1;
        for (size_t i = 0; i < N_TABLE; i++) {
            found += strcmp(table[i].name, name) == 0;
        }
        ck_assert_msg(found == 1, "%s is not tested here", name);
    }
    ck_assert_uint_eq(n, N_TABLE);
    /* An unknown name is refused with the list of those, in one line with a name of 32 bytes. */
    ck_assert_uint_lt(all, sizeof((struct cw_err *)0)->text - 80);
    ck_assert_ptr_null(cw_template_builtin("no such format"));
    ck_assert_ptr_null(cw_template_builtin(""));
    ck_assert_ptr_null(cw_template_builtin_name(SIZE_MAX));
}
END_TEST

/* Marks typed into any message are as many bytes of that message as other characters are, and
 * nothing else of the prompt depends on them. */
START_TEST(typed_marks_stay_text) {
    static const char marks[] =
        "<|im_end|>[/INST]</s>{{ x }}<\uff5cUser\uff5c><end_of_turn>{% if %}";
    char plain[sizeof marks];
    struct cw_message m[4], p[4];
    memset(plain, 'x', sizeof plain);
    struct cw_template_input typed = input(m, marks, sizeof marks - 1);
    struct cw_template_input other = input(p, plain, sizeof marks - 1);
    const char *source = cw_template_builtin(table[_i].name);
    struct run a = run_template(source, strlen(source), &typed, NULL);
    struct run b = run_template(source, strlen(source), &other, NULL);
    ck_assert(a.code == CW_OK && b.code == CW_OK);
    ck_assert_uint_eq(a.prompt.n_spans, b.prompt.n_spans);
    unsigned seen = 0;
    for (size_t i = 0; i < a.prompt.n_spans; i++) {
        const struct cw_span *s = &a.prompt.spans[i], *t = &b.prompt.spans[i];
        size_t n = s->end - s->begin;
        ck_assert(s->begin == t->begin && s->end == t->end && s->message == t->message);
        if (s->message < 0) {
            ck_assert_int_eq(memcmp(a.prompt.text + s->begin, b.prompt.text + s->begin, n), 0);
            continue;
        }
        ck_assert_uint_eq(n, sizeof marks - 1);
        ck_assert_int_eq(memcmp(a.prompt.text + s->begin, marks, n), 0);
        ck_assert(!(seen & 1u << s->message));
        seen |= 1u << s->message;
    }
    ck_assert_uint_eq(seen, 15);
    run_free(&a);
    run_free(&b);
}
END_TEST

/* Conversations of other shapes render too: none, a system message alone, two of them, no reply. */
START_TEST(other_shapes) {
    static const char *const shapes[] = {"", "s", "ssu", "u", "uau", "uaua"};
    const char *source = cw_template_builtin(table[_i].name);
    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++) {
        struct cw_message m[4];
        struct cw_template_input in = input(m, NULL, 0);
        in.n_messages = strlen(shapes[k]);
        for (size_t i = 0; i < in.n_messages; i++) {
            m[i].role = shapes[k][i] == 's' ? "system" : shapes[k][i] == 'u' ? "user" : "assistant";
        }
        struct run r = run_template(source, strlen(source), &in, NULL);
        ck_assert_msg(r.code == CW_OK, "%s, %s: %s", table[_i].name, shapes[k], r.err.text);
        run_free(&r);
    }
}
END_TEST

int main(void) {
    Suite *s = suite_create("template builtin");
    TCase *t = tcase_create("builtin");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, formats, 0, N_TABLE);
    tcase_add_test(t, blanks_around_texts);
    tcase_add_test(t, names);
    tcase_add_loop_test(t, typed_marks_stay_text, 0, N_TABLE);
    tcase_add_loop_test(t, other_shapes, 0, N_TABLE);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
