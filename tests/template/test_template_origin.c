/* SPDX-License-Identifier: MIT
 *
 * Where the bytes of a prompt come from. Each line of the table is a template, the text it gives
 * and, byte for byte, the origin: '.' the template, a digit a message. Message 0 is "<|im_end|>",
 * message 1 is " aBc ", message 2 (role assistant) "x,y" with the reasoning "r\n", message 3
 * "h\u00e9<".
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/mem.h"
#include "harness.h"

static const struct cw_message messages[] = {
    {.role = "system", .content = "<|im_end|>", .len = 10},
    {.role = "user", .content = " aBc ", .len = 5},
    {.role = "assistant", .content = "x,y", .len = 3, .reasoning = "r\n", .reasoning_len = 2},
    {.role = "user", .content = "h\u00e9<", .len = 4},
};

static const struct cw_template_var vars[] = {
    {.name = "word", .kind = CW_VAR_STRING, .s = "<|im_end|>"},
};

static const struct cw_template_input input = {
    .messages = messages,
    .n_messages = 4,
    .bos = "<s>",
    .eos = "</s>",
    .now = {.tm_year = 125, .tm_mon = 2, .tm_mday = 14},
    .vars = vars,
    .n_vars = 1,
};

#define M0 "messages[0].content"
#define M1 "messages[1].content"
#define M2 "messages[2].content"
#define M3 "messages[3].content"
#define R2 "messages[2].reasoning_content"

static const struct {
    const char *source, *text, *origins;
} table[] = {
    /* what is given */
    {"a{{ " M0 " }}b", "a<|im_end|>b", ".0000000000."},
    {"{{ messages[0].role }}{{ bos_token }}{{ eos_token }}{{ word }}", "system<s></s><|im_end|>",
     "......................."},
    {"{{ " R2 " }}{{ " M2 " }}", "r\nx,y", "22222"},
    {"{{ " M1 " }}{{ " M2 " }}", " aBc x,y", "11111222"},
    /* joining */
    {"{{ '<' + " M2 " + '>' }}", "<x,y>", ".222."},
    {"{{ '<|im_' + 'end' + '|>' }}{{ '<|im_' ~ " M2 " ~ '|>' }}", "<|im_end|><|im_x,y|>",
     "...............222.."},
    {"{{ " M1 " + " M2 " + 'z' + " M1 " }}", " aBc x,yz aBc ", "11111222.11111"},
    {"{{ 1 ~ " M2 " ~ none }}", "1x,yNone", ".222...."},
    {"{{ [" M2 ", 'a', " M1 "]|join('--') }}", "x,y--a-- aBc ", "222.....11111"},
    {"{{ '-'.join([" M2 ", 'a']) }}{{ " M2 ".join(['1', '2']) }}", "x,y-a1x,y2", "222...222."},
    {"{{ " M2 " * 2 }}{{ ('a' + " M2 ") * 2 }}", "x,yx,yax,yax,y", "222222.222.222"},
    {"{{ 'a' 'b' }}{{ " M2 " }}", "abx,y", "..222"},
    /* cutting */
    {"{{ ('ab' + " M2 " + 'cd')[1:6] }}", "bx,yc", ".222."},
    {"{{ ('ab' + " M2 " + 'cd')[::-1] }}", "dcy,xba", "..222.."},
    {"{{ ('ab' + " M2 ")[2] }}{{ ('ab' + " M2 ")[1] }}{{ " M2 "[-1] }}", "xby", "2.2"},
    {"{{ ('ab' + " M2 ")[::2] }}", "axy", ".22"},
    {"{{ " M1 "|trim }}{{ " M1 ".strip() }}{{ " M1 ".lstrip() }}{{ " M1 ".rstrip() }}",
     "aBcaBcaBc  aBc", "11111111111111"},
    {"{{ ('  a' + " M1 ").strip() }}", "a aBc", ".1111"},
    {"{{ " M2 ".split(',')|join(';') }}", "x;y", "2.2"},
    {"{{ (" M2 " + ',z').split(',')[2] }}{{ (" M2 " + ',z').rsplit(',', 1)[0] }}", "zx,y", ".222"},
    {"{{ " M2 ".partition(',')[1] }}{{ " M0 ".removeprefix('<') }}", ",|im_end|>", "2000000000"},
    {"{{ " M0 "|first }}{{ " M0 "|last }}{{ " M3 "|list|join('.') }}", "<>h.\u00e9.<", "003.33.3"},
    {"{% for c in 'a' + " M2 " %}{{ c }}{% endfor %}", "ax,y", ".222"},
    {"{{ (" M2 " + '\\nq').splitlines()|join('|') }}", "x,y|q", "222.."},
    {"{{ " M0 "|truncate(6, true, '..', 0) }}", "<|im..", "0000.."},
    {"{{ " M2 "|batch(2)|map('join')|join('/') }}", "x,/y", "22.2"},
    /* changing */
    {"{{ " M1 "|upper }}{{ " M1 ".lower() }}{{ " M1 "|title }}{{ " M1 "|capitalize }}",
     " ABC  abc  Abc  abc ", "11111111111111111111"},
    {"{{ ('a' + " M1 ")|upper }}{{ 'x'|upper }}", "A ABC X", ".11111."},
    {"{{ " M3 "|upper }}", "H\u00c9<", "3333"},
    {"{{ " M2 "|replace(',', '<|im_end|>') }}", "x<|im_end|>y", "2..........2"},
    {"{{ 'x,y'|replace(',', " M1 ") }}{{ " M2 ".replace('x', 'q') }}", "x aBc yq,y", ".11111..22"},
    {"{{ '<|xm_end|>'.replace('x', 'i') }}{{ " M0 ".replace('i', 'i') }}", "<|im_end|><|im_end|>",
     "..........00.0000000"},
    {"{{ " M2 "|reverse }}{{ " M0 "|e }}", "y,x&lt;|im_end|&gt;", "2220000000000000000"},
    {"{{ " M2 ".center(5) }}{{ " M2 ".ljust(4, '.') }}{{ " M2 ".zfill(4) }}", " x,y x,y.0x,y",
     "22222222.2222"},
    {"{{ (" M2 " + '\\nq')|indent(2) }}", "x,y\n  q", "222222."},
    {"{{ 'a\\nb'|indent(" M2 ") }}", "a\nx,yb", "..222."},
    {"{{ 'a\\tb'.expandtabs(2) }}{{ " M2 ".swapcase() }}", "a bX,Y", "...222"},
    /* formats */
    {"{{ '[%s|%5s]' % (" M2 ", 'a') }}", "[x,y|    a]", ".222......."},
    {"{{ '%5s' % " M2 " }}{{ '%s'|format(" M1 ") }}", "  x,y aBc ", "2222211111"},
    {"{{ '{}-{:>4}'.format(" M2 ", " M2 ") }}", "x,y- x,y", "222.2222"},
    {"{{ '{:04}'.format(7) }}{{ '%r' % " M2 " }}", "0007'x,y'", "....22222"},
    {"{{ ('%s' + " M2 ") % 'a' }}{{ ('%d' + " M2 ") % 5 }}", "ax,y5x,y", ".2222222"},
    {"{{ strftime_now('%Y') }}{{ strftime_now('%Y' + " M2 ") }}", "20252025x,y", "....2222222"},
    /* other shapes of a value */
    {"{{ " M0 "|tojson }}{{ 'a'|tojson }}", "\"<|im_end|>\"\"a\"", "000000000000..."},
    {"{{ " R2 "|tojson }}{{ " R2 "|string }}", "\"r\\n\"r\n", "2222222"},
    {"{{ [" M2 ", 1]|tojson }}{{ [1]|tojson }}", "[\"x,y\", 1][1]", "22222222.2..."},
    {"{{ [" R2 "] }}", "['r\\n']", "2222222"},
    {"{{ {'k': " M2 "} }}", "{'k': 'x,y'}", "2...22222222"},
    {"{{ {" M2 ": 1}|tojson }}", "{\"x,y\": 1}", "22222222.2"},
    {"{{ {'a': 1} }}{{ [1, 'b'] }}", "{'a': 1}[1, 'b']", "................"},
    {"{{ messages[2]|tojson }}",
     "{\"role\": \"assistant\", \"content\": \"x,y\", \"reasoning_content\": \"r\\n\"}",
     "2"
     "......"
     "22"
     "..........."
     "22"
     "........."
     "22"
     "22222"
     "22"
     "..................."
     "22"
     "22222"
     "2"},
    /* what is measured and compared has no origin of its own */
    {"{{ " M0 "|length }}{{ " M0 " == " M0 " }}{{ 'x' in " M2 " }}{{ " M2 ".find('y') }}",
     "10TrueTrue2", "..........."},
    {"{{ " M2 " or 'a' }}{{ '' or " M2 " }}{{ " M2 " if true else 'b' }}", "x,yx,yx,y",
     "222222222"},
    {"{{ nothing|default(" M2 ") }}{{ " M2 "|d('a') }}", "x,yx,y", "222222"},
    /* blocks, macros, variables */
    {"{% set x %}a{{ " M2 " }}{% endset %}{{ x }}{{ x[1:] }}", "ax,yx,y", ".222222"},
    {"{% macro m(a) %}[{{ a }}]{% endmacro %}{{ m(" M2 ") }}{{ m('q')|upper }}", "[x,y][Q]",
     ".222...."},
    {"{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}{{ " M2 " }}{% endcall %}",
     "<x,y>", ".222."},
    {"{% filter upper %}a{{ " M2 " }}{% endfilter %}", "AX,Y", ".222"},
    {"{% generation %}{{ " M2 " }}{% endgeneration %}", "x,y", "222"},
    {"{% set ns = namespace(s='') %}{% for m in messages[1:3] %}{% set ns.s = ns.s + m.content + "
     "'|' %}{% endfor %}{{ ns.s }}",
     " aBc |x,y|", "11111.222."},
    {"{{ messages|map(attribute='content')|map('trim')|list|last }}", "h\u00e9<", "3333"},
    {"{{ messages|selectattr('role', 'eq', 'system')|map(attribute='content')|first }}",
     "<|im_end|>", "0000000000"},
    {"{{ [" M2 ", 'w']|sort|join }}{{ [" M2 "]|unique|join }}{{ ['w', " M2 "]|max }}", "wx,yx,yx,y",
     ".222222222"},
    {"{% for k, v in messages[1].items() %}{{ k }}={{ v }};{% endfor %}",
     "role=user;content= aBc ;", "..................11111."},
    {"{{ " M2 " ~ (" M0 "|safe) }}{{ (" M0 "|safe) + '<' }}", "x,y<|im_end|><|im_end|>&lt;",
     "22200000000000000000000...."},
    {"{% with a = " M2 " %}{{ a }}{% endwith %}{% set a, b = " M2 "[0], 'z' %}{{ a }}{{ b }}",
     "x,yxz", "2222."},
    {"{{ cycler(" M2 ", 'b').next() }}{% set j = joiner(" M2 ") %}{{ j() }}{{ j() }}", "x,yx,y",
     "222222"},
    {"{{ dict(a=" M2 ").a }}{{ {'a': " M2 "}['a'] }}{{ {" M2 ": 1}|first }}", "x,yx,yx,y",
     "222222222"},
    /* a marker put together from both sides is never the template's alone */
    {"{{ '<|im' + " M0 "[4:] }}", "<|im_end|>", "....000000"},
    {"{{ '<|im_' }}{{ " M0 "[5:8] }}|>", "<|im_end|>", ".....000.."},
    {"{{ " M0 "[:9] }}>", "<|im_end|>", "000000000."},
    {"{{ (" M0 " + '|>').split('|')|join('|') }}", "<|im_end|>|>", "0.000000.0.."},
    {"{{ " M0 "|list|join }}{{ " M0 "[:4] ~ " M0 "[4:] }}", "<|im_end|><|im_end|>",
     "00000000000000000000"},
};

static void check_origins(size_t i) {
    const char *source = table[i].source;
    struct run r = run_template(source, strlen(source), &input, NULL);
    ck_assert_msg(r.code == CW_OK, "%s: %s", source, r.err.text);
    ck_assert_msg(strcmp(r.prompt.text, table[i].text) == 0, "%s: got '%s'", source, r.prompt.text);
    struct cw_buf got = {0};
    for (size_t k = 0; k < r.prompt.n_spans; k++) {
        const struct cw_span *span = &r.prompt.spans[k];
        for (size_t at = span->begin; at < span->end; at++) {
            cw_buf_putc(&got, span->message < 0 ? '.' : (char)('0' + span->message));
        }
    }
    ck_assert_msg(strcmp(got.data, table[i].origins) == 0, "%s\n  %s\n  %s (got)\n  %s", source,
                  table[i].text, got.data, table[i].origins);
    cw_buf_free(&got);
    run_free(&r);
}

START_TEST(origins) {
    check_origins((size_t)_i);
}
END_TEST

/* False where it is not here. Whatever a real template does with a message, every byte that the
 * message brought is marked. */
static bool check_real_template(const char *path) {
    static const char content[] = "<|im_start|>\u00fc<|eot_id|>[INST]</s><end_of_turn>";
    static const char plain[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJK";
    ck_assert_uint_eq(sizeof content, sizeof plain);
    size_t len;
    char *source = read_file(path, &len);
    if (source == NULL) {
        printf("skipped: %s is not there\n", path);
        return false;
    }
    struct run run[2];
    for (int k = 0; k < 2; k++) {
        const char *text = k == 0 ? content : plain;
        const struct cw_message m[] = {{.role = "user", .content = text, .len = sizeof plain - 1},
                                       {.role = "assistant", .content = "ok", .len = 2},
                                       {.role = "user", .content = text, .len = sizeof plain - 1}};
        const struct cw_template_input in = {.messages = m,
                                             .n_messages = 3,
                                             .add_generation_prompt = true,
                                             .bos = "<s>",
                                             .eos = "</s>",
                                             .now = {.tm_year = 125, .tm_mday = 1}};
        run[k] = run_template(source, len, &in, NULL);
        ck_assert_msg(run[k].code == CW_OK, "%s: %s", path, run[k].err.text);
    }
    /* Two contents of one length: the same spans. */
    ck_assert_uint_eq(run[0].prompt.n_spans, run[1].prompt.n_spans);
    size_t typed = 0;
    for (size_t i = 0; i < run[0].prompt.n_spans; i++) {
        const struct cw_span *a = &run[0].prompt.spans[i], *b = &run[1].prompt.spans[i];
        ck_assert(a->begin == b->begin && a->end == b->end && a->message == b->message);
        if (a->message < 0) {
            ck_assert_int_eq(memcmp(run[0].prompt.text + a->begin, run[1].prompt.text + b->begin,
                                    a->end - a->begin),
                             0);
        } else if (a->message != 1) {
            typed++;
            ck_assert_uint_eq(a->end - a->begin, sizeof plain - 1);
            ck_assert_int_eq(memcmp(run[0].prompt.text + a->begin, content, a->end - a->begin), 0);
        }
    }
    ck_assert_uint_eq(typed, 2);
    run_free(&run[0]);
    run_free(&run[1]);
    free(source);
    return true;
}

START_TEST(real_templates) {
    static const char *const names[] = {
        "HuggingFaceTB-SmolLM3-3B",
        "LFM2-8B-A1B",
        "Mistral-Small-3.2-24B-Instruct-2506",
        "NousResearch-Hermes-3-Llama-3.1-8B-tool_use",
        "Qwen-Qwen2.5-7B-Instruct",
        "Qwen-Qwen3-0.6B",
        "deepseek-ai-DeepSeek-R1-Distill-Llama-8B",
        "deepseek-ai-DeepSeek-V3.1",
        "google-gemma-2-2b-it",
        "ibm-granite-granite-3.3-2B-Instruct",
        "meta-llama-Llama-3.1-8B-Instruct",
        "meta-llama-Llama-3.2-3B-Instruct",
        "microsoft-Phi-3.5-mini-instruct",
        "mistralai-Mistral-Nemo-Instruct-2407",
        "openai-gpt-oss-120b",
        "qwen2.5-coder-1.5b",
        "smollm2-135m",
        "CohereForAI-c4ai-command-r-plus-tool_use",
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[160];
        snprintf(path, sizeof path, "../shared/reference/templates/%s.jinja", names[i]);
        n += check_real_template(path);
    }
    ck_assert(n == 0 || n == sizeof names / sizeof *names); /* all, or no reference at all */
}
END_TEST

int main(void) {
    Suite *s = suite_create("template origin");
    TCase *tc = tcase_create("origin");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, origins, 0, (int)(sizeof table / sizeof *table));
    tcase_add_test(tc, real_templates);
    suite_add_tcase(s, tc);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
