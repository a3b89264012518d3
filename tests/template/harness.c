/* SPDX-License-Identifier: MIT
 * What the template suites share (harness.h). */
#include "harness.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/mem.h"

static void check_prompt(const struct run *r) {
    const struct cw_prompt *p = &r->prompt;
    if (r->code != CW_OK) {
        ck_assert_int_eq(r->err.code, r->code);
        ck_assert_ptr_null(p->text);
        ck_assert_uint_eq(p->len, 0);
        ck_assert_uint_eq(p->n_spans, 0);
        return;
    }
    ck_assert_ptr_nonnull(p->text);
    size_t at = 0;
    for (size_t i = 0; i < p->n_spans; i++) {
        ck_assert_uint_eq(p->spans[i].begin, at);
        ck_assert_uint_gt(p->spans[i].end, at);
        ck_assert_ptr_null(p->spans[i].ids);
        ck_assert(i == 0 || p->spans[i].message != p->spans[i - 1].message);
        at = p->spans[i].end;
    }
    ck_assert_uint_eq(at, p->len);
}

struct run run_template(const char *source, size_t len, const struct cw_template_input *in,
                        const struct cw_jlimits *limits) {
    struct run r = {0};
    struct cw_template *t;
    /* A copy of exactly this size, so that a read past its end is seen. */
    char *copy = cw_malloc(len);
    memcpy(copy, source, len);
    r.code = cw_template_create(&t, copy, len, &r.err);
    free(copy);
    if (r.code == CW_OK) {
        struct cw_jlimits usual = cw_jlimits_for(in);
        r.code = cw_template_render_within(t, in, limits != NULL ? limits : &usual, &r.prompt,
                                           &r.refused, &r.err);
    } else {
        ck_assert_ptr_null(t);
    }
    cw_template_destroy(t);
    check_prompt(&r);
    return r;
}

void run_free(struct run *r) {
    cw_prompt_free(&r->prompt);
}

const struct cw_template_input *standard_input(void) {
#define CONTENT(s) .content = (s), .len = sizeof(s) - 1
    static const struct cw_message messages[] = {
        {.role = "system", CONTENT("Be brief.")},
        {.role = "user", CONTENT("  H\u00e9llo <b> & 'you' \n")},
        {.role = "assistant",
         CONTENT("<think>\na\nb</think>\n\nYes \"so\""),
         .reasoning = "hm",
         .reasoning_len = 2},
        {.role = "user", CONTENT("\u65e5\u672c {{ x }} \\ \U0001F600")},
    };
#undef CONTENT
    static const struct cw_template_var vars[] = {
        {.name = "flag", .kind = CW_VAR_BOOL, .b = true},
        {.name = "word", .kind = CW_VAR_STRING, .s = "w\u00f6rd"},
        {.name = "never_mentioned", .kind = CW_VAR_STRING, .s = "x"},
    };
    static const struct cw_template_input in = {
        .messages = messages,
        .n_messages = 4,
        .add_generation_prompt = true,
        .bos = "<s>",
        .eos = "</s>",
        .now = {.tm_year = 125,
                .tm_mon = 2,
                .tm_mday = 14,
                .tm_hour = 9,
                .tm_min = 26,
                .tm_sec = 53,
                .tm_wday = 5,
                .tm_yday = 72},
        .vars = vars,
        .n_vars = 3,
    };
    return &in;
}

struct cw_message *messages_of(struct json_object *list, size_t *n) {
    *n = json_object_array_length(list);
    struct cw_message *messages = cw_calloc(*n, sizeof *messages);
    for (size_t i = 0; i < *n; i++) {
        struct json_object *m = json_object_array_get_idx(list, i), *field;
        ck_assert(json_object_object_get_ex(m, "role", &field));
        messages[i].role = json_object_get_string(field);
        ck_assert(json_object_object_get_ex(m, "content", &field));
        messages[i].content = json_object_get_string(field);
        messages[i].len = (size_t)json_object_get_string_len(field);
        if (json_object_object_get_ex(m, "reasoning_content", &field)) {
            messages[i].reasoning = json_object_get_string(field);
            messages[i].reasoning_len = (size_t)json_object_get_string_len(field);
        }
    }
    return messages;
}

char *read_file(const char *path, size_t *len) {
    const char *root = getenv("CHINWAG_SOURCE_ROOT");
    struct cw_buf name = {0}, text = {0};
    cw_buf_printf(&name, "%s/%s", root != NULL ? root : ".", path);
    FILE *f = fopen(name.data, "rb");
    cw_buf_free(&name);
    if (f == NULL) {
        return NULL;
    }
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) {
        cw_buf_add(&text, piece, n);
    }
    fclose(f);
    *len = text.len;
    return cw_buf_take(&text);
}

struct json_object *read_json(const char *path) {
    size_t len;
    char *text = read_file(path, &len);
    ck_assert_msg(text != NULL, "%s cannot be read", path);
    struct json_object *j = json_tokener_parse(text);
    ck_assert_msg(j != NULL, "%s is no JSON", path);
    free(text);
    return j;
}

void expect_text(const char *source, const struct cw_template_input *in, const char *text) {
    struct run r = run_template(source, strlen(source), in, NULL);
    ck_assert_msg(r.code == CW_OK, "%s: %s", source, r.err.text);
    ck_assert_msg(strcmp(r.prompt.text, text) == 0, "%s: got '%s', not '%s'", source, r.prompt.text,
                  text);
    ck_assert_uint_eq(r.prompt.len, strlen(text));
    run_free(&r);
}

void expect_error(const char *source, int line, const char *part) {
    struct run r = run_template(source, strlen(source), standard_input(), NULL);
    char head[48];
    snprintf(head, sizeof head, "template: line %d: ", line);
    ck_assert_msg(r.code == CW_ETEMPLATE, "%s: code %d", source, r.code);
    ck_assert_msg(!r.refused, "%s", source);
    ck_assert_msg(strncmp(r.err.text, head, strlen(head)) == 0, "%s: '%s' is not of line %d",
                  source, r.err.text, line);
    ck_assert_msg(strstr(r.err.text, part) != NULL, "%s: '%s' does not say '%s'", source,
                  r.err.text, part);
    run_free(&r);
}
