/* SPDX-License-Identifier: MIT
 * Chat templates against the reference's renderings, the faults known from the field, and the
 * edges of the input. */
#include <check.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/mem.h"
#include "harness.h"
#include "tests/support/comma_locale.h"

#define REFERENCE "../shared/reference/templates/"

static const struct cw_message hi[] = {{.role = "user", .content = "hi", .len = 2}};
static const struct cw_template_input one_message = {.messages = hi, .n_messages = 1};

/* ------------------------------------------------------------------ real templates */

static const char *text_of(struct json_object *j, const char *key) {
    struct json_object *field;
    return json_object_object_get_ex(j, key, &field) ? json_object_get_string(field) : NULL;
}

/* One conversation and what the reference makes of it. */
static void check_case(struct json_object *j) {
    struct json_object *list, *flag, *expected;
    char path[256];
    size_t len, n;
    snprintf(path, sizeof path, REFERENCE "%s", text_of(j, "template"));
    char *source = read_file(path, &len);
    ck_assert_ptr_nonnull(source);
    ck_assert(json_object_object_get_ex(j, "messages", &list));
    ck_assert(json_object_object_get_ex(j, "add_generation_prompt", &flag));
    struct cw_template_input in = *standard_input(); /* for its clock */
    struct cw_message *messages = messages_of(list, &n);
    in.messages = messages;
    in.n_messages = n;
    in.add_generation_prompt = json_object_get_boolean(flag);
    in.bos = text_of(j, "bos_token");
    in.eos = text_of(j, "eos_token");
    in.n_vars = 0;
    struct run r = run_template(source, len, &in, NULL);
    if (json_object_object_get_ex(j, "expected", &expected)) {
        ck_assert_msg(r.code == CW_OK, "%s %s: %s", path, text_of(j, "case"), r.err.text);
        ck_assert_uint_eq(r.prompt.len, (size_t)json_object_get_string_len(expected));
        ck_assert_msg(memcmp(r.prompt.text, json_object_get_string(expected), r.prompt.len) == 0,
                      "%s %s differs", path, text_of(j, "case"));
    } else {
        ck_assert_str_eq(text_of(j, "error_type"), "raise_exception");
        ck_assert_int_eq(r.code, CW_ETEMPLATE);
        ck_assert(r.refused);
        ck_assert_int_eq(strncmp(r.err.text, "template: ", 10), 0);
        ck_assert_str_eq(r.err.text + 10, text_of(j, "expected_error"));
    }
    run_free(&r);
    free(messages);
    free(source);
}

START_TEST(reference_cases) {
    size_t len, n = 0;
    char *text = read_file(REFERENCE "cases.jsonl", &len);
    if (text == NULL) {
        printf("skipped: no reference templates\n");
        return;
    }
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"), n++) {
        struct json_object *j = json_tokener_parse(line);
        ck_assert_ptr_nonnull(j);
        check_case(j);
        json_object_put(j);
    }
    free(text);
    ck_assert_uint_ge(n, 126);
}
END_TEST

/* ------------------------------------------------------------------ known faults */

/* Block tags take the newline behind them and the blanks in front; signs go on top of that. */
START_TEST(white_space) {
    const char *loop = "{% for m in messages %}\n    {% if true %}\n[{{ m.content }}]\n"
                       "    {% endif %}\n{% endfor %}";
    expect_text(loop, &one_message, "[hi]\n");
    expect_text("{% for m in messages %}\n    {% if true %}\n[{{ m.content }}]\n"
                "    {% endif %}\n{% endfor %}\n",
                &one_message, "[hi]\n");
    expect_text("a\n  {%- if true -%}\n  b\n  {%- endif -%}\n  c\n\n", &one_message, "abc\n");
    expect_text("a\n  {%+ if true +%}\n  b{% endif %}", &one_message, "a\n  \n  b");
}
END_TEST

/* Each of these once made a program fall back to another format in silence. */
START_TEST(constructs_of_the_field) {
    const struct cw_template_input *in = standard_input();
    expect_text("{% for m in messages[::-1] %}{{ m.role[0] }}{% endfor %}", in, "uaus");
    expect_text("{% set n = 2 %}{{ 'abcdef'[:-n] }}{{ messages[:-n]|length }}", in, "abcd2");
    expect_text("{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}"
                "{% endfor %}{{ ns.n }}",
                in, "4");
    expect_text("{% for m in messages %}{{ loop.index0 }}{{ loop.first }}{{ loop.last }} "
                "{% endfor %}",
                in, "0TrueFalse 1FalseFalse 2FalseFalse 3FalseTrue ");
    expect_text("{{ x is defined }}{{ 'a' in 'cat' }}{{ ' a '.strip() }}{{ ' a '|trim }}", in,
                "FalseTrueaa");
    expect_text("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}",
                in, "01");
    expect_text("{{ 'y' if flag else 'n' }}{{ '=' * 3 }}{{ not (true and false) or false }}", in,
                "y===True");
    expect_text("{{ strftime_now('%d %b %Y') }}|{{ ['a', 1, none]|tojson }}", in,
                "14 Mar 2025|[\"a\", 1, null]");
}
END_TEST

/* A template may refuse a conversation; the next one is rendered as if nothing had been. */
START_TEST(refusal) {
    static const char source[] =
        "{% if messages[0].role == 'system' %}{{ raise_exception('No system here') }}{% endif %}"
        "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Roles must alternate') }}{% endif %}<{{ m.content }}>{% endfor %}";
    const struct cw_message system[] = {{.role = "system", .content = "s", .len = 1}};
    const struct cw_message twice[] = {{.role = "user", .content = "a", .len = 1},
                                       {.role = "user", .content = "b", .len = 1}};
    struct cw_template *t;
    struct cw_err err;
    struct cw_prompt prompt;
    bool refused = false;
    ck_assert_int_eq(cw_template_create(&t, source, sizeof source - 1, &err), CW_OK);

    struct cw_template_input in = {.messages = system, .n_messages = 1};
    ck_assert_int_eq(cw_template_render(t, &in, &prompt, &refused, &err), CW_ETEMPLATE);
    ck_assert(refused);
    ck_assert_str_eq(err.text, "template: No system here");
    ck_assert_ptr_null(prompt.text);

    in = (struct cw_template_input){.messages = twice, .n_messages = 2};
    ck_assert_int_eq(cw_template_render(t, &in, &prompt, &refused, &err), CW_ETEMPLATE);
    ck_assert(refused);
    ck_assert_str_eq(err.text, "template: Roles must alternate");

    in.n_messages = 1;
    ck_assert_int_eq(cw_template_render(t, &in, &prompt, &refused, &err), CW_OK);
    ck_assert(!refused);
    ck_assert_str_eq(prompt.text, "<a>");
    cw_prompt_free(&prompt);
    ck_assert_ptr_null(prompt.text);
    ck_assert_int_eq(cw_template_render(t, &in, &prompt, NULL, NULL), CW_OK);
    cw_prompt_free(&prompt);
    cw_template_destroy(t);
    cw_template_destroy(NULL);
}
END_TEST

/* The message of a refusal is text from outside: printable, cut to the size of an error. */
START_TEST(refusal_is_printable) {
    static const char source[] = "{{ raise_exception('a\\nb\\x1b[31m' ~ 'x' * 2000) }}";
    struct run r = run_template(source, sizeof source - 1, standard_input(), NULL);
    ck_assert_int_eq(r.code, CW_ETEMPLATE);
    ck_assert(r.refused);
    ck_assert_int_eq(strncmp(r.err.text, "template: a\\x0Ab\\x1B[31mxxx", 27), 0);
    ck_assert_uint_lt(strlen(r.err.text), sizeof r.err.text);
}
END_TEST

/* ------------------------------------------------------------------ errors name line and what */

static const struct {
    const char *source;
    int line;
    const char *part;
} errors[] = {
    {"a\n\n{% frobnicate %}", 3, "'frobnicate' is not supported"},
    {"{% include 'x' %}", 1, "'include' is not supported"},
    {"\n{% block x %}{% endblock %}", 2, "'block' is not supported"},
    {"{% extends 'x' %}", 1, "'extends' is not supported"},
    {"{% import 'x' as y %}", 1, "'import' is not supported"},
    {"{% do x.append(1) %}", 1, "'do' is not supported"},
    {"{% trans %}{% endtrans %}", 1, "'trans' is not supported"},
    {"{% autoescape true %}{% endautoescape %}", 1, "'autoescape' is not supported"},
    {"\n\n\n{{ 1\n|frob }}", 5, "filter 'frob' is not supported"},
    {"{{ 'a'|urlencode }}", 1, "filter 'urlencode' is not supported"},
    {"\n{{ 1 is\nfrob }}", 2, "test 'frob' is not supported"},
    {"\n{{ 'x'.encode('utf-8') }}", 2, "'encode' of 'str' objects is not supported"},
    {"{{ lipsum() }}", 1, "'lipsum' is not supported"},
    {"{% for x in y recursive %}{% endfor %}", 1, "recursive loops are not supported"},
    {"{{ 9223372036854775808 }}", 1, "64 bits"},
    {"{{ 9223372036854775807 + 1 }}", 1, "64 bits"},
    {"{{ '99999999999999999999'|int }}", 1, "64 bits"},
    {"{{ '%c' % 65 }}", 1, "'c' is not supported"},
    {"{{ '{:c}'.format(65) }}", 1, "not supported"},
    {"{{ '\\N{BULLET}' }}", 1, "not supported"},
    {"{{ '\\ud83d' }}", 1, "no character"},
    {"{{ [1]|map('upper') }}", 1, "printing a 'generator' object"},
    {"{{ [].append(1) }}", 1, "'append' of 'list' object is unsafe"},
    {"{{ {}.update({}) }}", 1, "'update' of 'dict' object is unsafe"},
    {"{{ 'a'.replace('b') }}", 1, "method 'replace' needs an argument 'new'"},
    {"{{ 'a'|replace('a', 'b', old='c') }}", 1, "filter 'replace' got two values for 'old'"},
    {"{{ 'a'|trim(x=1) }}", 1, "filter 'trim' takes no argument 'x'"},
    {"{{ 'a'.upper(1, 2) }}", 1, "method 'upper' takes at most 0 argument(s), got 2"},
    {"{{ range }}", 1, "printing a 'function' object"},
    {"a\nb {{ 'x' }}\nc {{ messages.foo.bar }}", 3, "'list object' has no attribute 'foo'"},
    {"{% set x = [\n1,\n2 + 'a'\n] %}", 3, "unsupported operand"},
    {"{% macro m() %}\n{{ 1 / 0 }}\n{% endmacro %}\n\n{{ m() }}", 2, "division by zero"},
    {"{% for i in [1] %}\n{% if i %}\n{{ i.x.y }}{% endif %}{% endfor %}", 3, "no attribute 'x'"},
    {"{% for i in [1] %}\n\n", 1, "no 'endfor'"},
    {"{% if 1 %}\n{% for i in [] %}\n{% endif %}", 3, "'endif' belongs to nothing"},
    {"{% if 1 %}\n{% if 2 %}\n{% endif %}", 1, "no 'endif'"},
    {"x\n{% macro f() %}\n", 2, "no 'endmacro'"},
    {"\n\n{# never closed", 3, "comment"},
    {"a\r\nb\r{% raw %}\n\n", 3, "raw"},
    {"{{ 'a\nb\nc }}", 1, "string"},
    {"\n{{ (1\n+ 2 }}", 3, "unexpected '}', expected ')'"},
    {"\n{{ a b }}", 2, "found 'b'"},
    {"\n{{ 1 +\n\n}}", 4, "expected an expression"},
    {"\n{{ 1", 2, "ends where"},
    {"\n{{ \xff }}", 2, "unexpected character '\\xFF'"},
    {"{{ \u2022 }}", 1, "unexpected character '\u2022'"},
    {"{{ '{{'[:1].format(1) }}", 1, "'{'"}, /* the one behind is not of the string */
    {"{{ '}}'[:1].format(1) }}", 1, "'}'"},
    {"{% else %}", 1, "'else' belongs to nothing"},
    {"\n{% break %}", 2, "'break' outside of a loop"},
};

START_TEST(error_lines) {
    expect_error(errors[_i].source, errors[_i].line, errors[_i].part);
}
END_TEST

/* ------------------------------------------------------------------ edges of the input */

START_TEST(empty_inputs) {
    const struct cw_template_input none = {0};
    expect_text("", &none, "");
    expect_text("\n", &none, "");
    expect_text(
        "{{ messages|length }}[{{ bos_token }}][{{ eos_token }}]{{ add_generation_prompt }}", &none,
        "0[][]False");
    expect_text("{% for m in messages %}x{% else %}nobody{% endfor %}", &none, "nobody");
    expect_text("{{ messages[0] is defined }}", &none, "False");
    const struct cw_message empty[] = {{.role = "user"}}; /* content NULL, length 0 */
    const struct cw_template_input in = {.messages = empty, .n_messages = 1};
    expect_text("[{{ messages[0].content }}]{{ messages[0].content is string }}"
                "{{ messages[0].reasoning_content is defined }}",
                &in, "[]TrueFalse");
}
END_TEST

START_TEST(variables) {
    const struct cw_template_var vars[] = {
        {.name = "enable_thinking", .kind = CW_VAR_BOOL, .b = false},
        {.name = "date_string", .kind = CW_VAR_STRING, .s = "1 May 2001"},
        {.name = "bos_token", .kind = CW_VAR_STRING, .s = "<mine>"},
        {.name = "range", .kind = CW_VAR_STRING, .s = "shadowed"},
        {.name = "nothing", .kind = CW_VAR_STRING},
    };
    struct cw_template_input in = {.bos = "<s>", .vars = vars, .n_vars = 5};
    expect_text("{{ enable_thinking is false }} {{ date_string }} {{ bos_token }} {{ range }} "
                "[{{ nothing }}]",
                &in, "True 1 May 2001 <mine> shadowed []");
    expect_text("{{ tools is defined }}{{ documents is defined }}{{ tools is none }}", &in,
                "FalseFalseFalse");
}
END_TEST

/* Any byte may stand in a message: it comes out as it went in, and counts as one character where
 * it belongs to none. */
START_TEST(any_byte) {
    static const char bytes[] = "x\0y\xff\xc0\x80\xed\xa0\x80 e\xcc\x81 \xf5\x80 \xe6\xad";
    const struct cw_message m[] = {
        {.role = "user", .content = bytes, .len = sizeof bytes - 1},
        {.role = "assistant",
         .content = "a\0",
         .len = 2,
         .reasoning = "\0r\xfe",
         .reasoning_len = 3},
    };
    const struct cw_template_input in = {.messages = m, .n_messages = 2};
    static const char *const same[] = {
        "{{ messages[0].content }}",
        "{{ messages[0]['content']|trim }}",
        "{{ messages[0].content.strip() }}",
        "{{ messages[0].content[:] }}",
        "{{ messages[0].content[::-1][::-1] }}",
        "{{ messages[0].content|list|join }}",
        "{{ messages[0].content.split('y')|join('y') }}",
        "{{ messages[0].content|replace('q', 'w')|string }}",
        "{% for c in messages[0].content %}{{ c }}{% endfor %}",
        "{{ '%s' % messages[0].content }}",
        "{{ '{}'.format(messages[0].content) }}",
        "{{ messages[0].content|lower }}",
        "{% set x %}{{ messages[0].content }}{% endset %}{{ x }}",
        "{{ messages[0].content|reverse|reverse }}",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        struct run r = run_template(same[i], strlen(same[i]), &in, NULL);
        ck_assert_msg(r.code == CW_OK, "%s: %s", same[i], r.err.text);
        ck_assert_msg(r.prompt.len == sizeof bytes - 1 &&
                          memcmp(r.prompt.text, bytes, sizeof bytes - 1) == 0,
                      "%s", same[i]);
        run_free(&r);
    }
    expect_text("{{ messages[0].content|length }} {{ messages[1].content|length }} "
                "{{ messages[1].reasoning_content|length }}",
                &in, "18 2 3");
    expect_text("{{ messages[1].content|tojson }}", &in, "\"a\\u0000\"");
    expect_text("{{ [messages[1].reasoning_content] }}", &in, "['\\x00r\\udcfe']");
    expect_text("{{ messages[1].reasoning_content|tojson(ensure_ascii=true) }}", &in,
                "\"\\u0000r\\udcfe\"");
    expect_text("{{ 'y' in messages[0].content }}{{ messages[0].content.find('e') }}", &in,
                "True10");
    const char nul_source[] = "a\0b{{ 'c\0d'|length }}";
    struct run r = run_template(nul_source, sizeof nul_source - 1, &in, NULL);
    ck_assert_int_eq(r.code, CW_OK);
    ck_assert_uint_eq(r.prompt.len, 4);
    ck_assert_int_eq(memcmp(r.prompt.text, "a\0b3", 4), 0);
    run_free(&r);
}
END_TEST

/* Numbers and dates are the same in every locale. */
START_TEST(locales) {
    struct comma_locale locale = comma_locale_make();
    static const char source[] =
        "{{ 1.5 }} {{ '2.5'|float }} {{ 0.1 + 0.2 }} {{ 3.14159|round(2) }} {{ '%.2f' % 1.5 }} "
        "{{ strftime_now('%A %d %B %b %p') }} {{ [1.25]|tojson }}";
    static const char expected[] = "1.5 2.5 0.30000000000000004 3.14 1.50 "
                                   "Friday 14 March Mar AM [1.25]";
    static const char *const names[] = {"de_DE.utf8", "C.utf8", "C"};
    bool comma = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (setlocale(LC_ALL, names[i]) != NULL) {
            comma |= localeconv()->decimal_point[0] == ',';
            char before[32], after[32];
            snprintf(before, sizeof before, "%.1f", 0.5);
            expect_text(source, standard_input(), expected);
            snprintf(after, sizeof after, "%.1f", 0.5);
            ck_assert_str_eq(before, after); /* the caller's locale is as it was */
        }
    }
    setlocale(LC_ALL, "C");
    comma_locale_remove(&locale);
    ck_assert(comma || !locale.made);
    if (!locale.made) {
        printf("skipped: a locale with a decimal comma, which localedef cannot make here\n");
    }
}
END_TEST

START_TEST(source_too_long) {
    size_t len = ((size_t)1 << 20) + 1;
    char *source = cw_malloc(len);
    memset(source, 'x', len);
    struct run r = run_template(source, len, &one_message, NULL);
    ck_assert_int_eq(r.code, CW_ETEMPLATE);
    ck_assert_ptr_nonnull(strstr(r.err.text, "longer than 1024 KiB"));
    r = run_template(source, len - 1, &one_message, NULL);
    ck_assert_int_eq(r.code, CW_OK);
    ck_assert_uint_eq(r.prompt.len, len - 1);
    run_free(&r);
    free(source);
}
END_TEST

/* Where the engine departs from the reference it says so; there is no other text. */
START_TEST(said_and_not_guessed) {
    expect_error("{{ [1, 2]['a':] }}", 1, "a slice index must be an integer");
    expect_error("{{ 1|e ~ ('<'|e).upper() }}", 1, "methods of the result of 'escape'");
    expect_error("{{ ('<'|e)|upper }}", 1, "not supported on the result of 'escape'");
    expect_error("{{ 1 is sameas 1 }}", 1, "'is sameas' of a 'int' object");
    expect_error("{{ {}.keys() == {}.keys() }}", 1, "comparison of dict_keys");
    expect_error("{{ 'nan'|float < 1 }}", 1, "nan");
    expect_error("{{ (-8) ** 0.5 }}", 1, "complex");
    expect_error(
        "{% set ns = namespace() %}{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}"
        "{% if i == 1 %}{% set ns.m = m %}{% endif %}{{ ns.m() }}{% endfor %}",
        1, "a macro outside of the block that defines it");
    expect_error("{% set ns = namespace() %}{% for i in [1] %}{% macro m() %}{{ i }}{% endmacro %}"
                 "{% set ns.m = m %}{% endfor %}\n{{ ns.m() }}",
                 2, "a macro outside of the block that defines it");
    expect_error("{% set ns = namespace() %}{% with a = 1 %}{% macro m() %}{{ a }}{% endmacro %}"
                 "{% set ns.m = m %}{% endwith %}\n{{ ns.m() }}",
                 2, "a macro outside of the block that defines it");
}
END_TEST

int main(void) {
    Suite *s = suite_create("template");
    TCase *tc = tcase_create("template");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, reference_cases);
    tcase_add_test(tc, white_space);
    tcase_add_test(tc, constructs_of_the_field);
    tcase_add_test(tc, refusal);
    tcase_add_test(tc, refusal_is_printable);
    tcase_add_loop_test(tc, error_lines, 0, (int)(sizeof errors / sizeof *errors));
    tcase_add_test(tc, empty_inputs);
    tcase_add_test(tc, variables);
    tcase_add_test(tc, any_byte);
    tcase_add_test(tc, locales);
    tcase_add_test(tc, source_too_long);
    tcase_add_test(tc, said_and_not_guessed);
    suite_add_tcase(s, tc);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
