/* SPDX-License-Identifier: MIT
 *
 * Conversations out and in: ours comes back as it was, others' are understood, and hostile files
 * end in a clear line.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/exchange.h"
#include "chinwag/utf8.h"
#include "tests/store/support.h"

/* A tree: a question, two replies, one of them with everything a reply can have. */
static void make_tree(struct cw_store_conversation *c, struct cw_store_message *m,
                      struct cw_store_token *tokens, struct cw_store_change *change) {
    *c = (struct cw_store_conversation){.title = str("T \x1b[31m <b>&\"'"),
                                        .created_ms = 1700000000000,
                                        .updated_ms = 1700000001000,
                                        .model = str("M"),
                                        .hash = str("ab"),
                                        .system = str("Be <brief>"),
                                        .settings = {"a\0b", 3},
                                        .leaf = 30};
    some_sampling(&change->from);
    some_sampling(&change->to);
    change->token = 2;
    change->offset = 5;
    change->to.temp = 0.1234567f;
    change->to.n_bias = 1;
    change->to.bias[0].id = 9;
    change->to.bias[0].bias = -INFINITY;
    m[0] = (struct cw_store_message){
        .id = 10, .text = str("ask\r\n\x1b]0;x\x07\xe2\x80\xae"), .created_ms = 5, .done = true};
    m[1] = (struct cw_store_message){
        .id = 20, .parent = 10, .role = CW_STORE_REPLY, .text = str("other"), .done = true};
    m[2] = (struct cw_store_message){.id = 30,
                                     .parent = 10,
                                     .role = CW_STORE_REPLY,
                                     .text = {"nul \0 bad \xff <script>alert(1)</script>", 36},
                                     .reasoning = str("hm\nhm"),
                                     .tokens = tokens,
                                     .n_tokens = 40,
                                     .changes = change,
                                     .n_changes = 1,
                                     .done = true,
                                     .stop = 4,
                                     .seed = 4294967295u,
                                     .first_position = 77,
                                     .model = str("M2"),
                                     .arithmetic = str("1"),
                                     .extra = {"\xfe\0", 2}};
    for (int i = 0; i < 3; i++) {
        some_sampling(&m[i].sampling);
    }
    m[2].sampling.min_p = 0.1f;
    m[2].figures.tps = 12.345678901234567;
    m[2].figures.n_prompt = 9;
}

static bool same(struct cw_str a, struct cw_str b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

START_TEST(ours_round_trip) {
    struct cw_store_conversation c;
    struct cw_store_message m[3];
    struct cw_store_change change = {0};
    struct cw_store_token *tokens = make_tokens(40, 8);
    struct cw_buf out = {0}, again = {0};
    struct app_import in;
    struct cw_err err = {0};
    make_tree(&c, m, tokens, &change);
    app_export(APP_FORMAT_JSON, &c, m, 3, &out);
    ck_assert(cw_utf8_valid(out.data, out.len));
    ck_assert_ptr_null(memchr(out.data, 0x1b, out.len));
    ck_assert_msg(app_import_parse(out.data, out.len, &in, &err) == CW_OK, "%s", err.text);
    ck_assert_uint_eq(in.n, 1);
    const struct app_imported *got = &in.v[0];
    ck_assert_uint_eq(got->n_messages, 3);
    ck_assert_int_eq(got->conversation.leaf, 3);
    ck_assert(str_is(got->conversation.title, "T \\x1B[31m <b>&\"'"));
    ck_assert(same(got->conversation.settings, c.settings));
    ck_assert(same(got->conversation.system, c.system));
    ck_assert_int_eq(got->conversation.created_ms, c.created_ms);
    static const int64_t parents[] = {0, 1, 1};
    for (int i = 0; i < 3; i++) {
        const struct cw_store_message *a = &got->messages[i], *b = &m[i];
        ck_assert_int_eq(a->parent, parents[i]);
        ck_assert_int_eq(a->role, b->role);
        ck_assert(same(a->text, b->text) && same(a->reasoning, b->reasoning));
        ck_assert_int_eq(a->created_ms, b->created_ms);
    }
    const struct cw_store_message *a = &got->messages[2];
    ck_assert(same(a->extra, m[2].extra) && same(a->model, m[2].model));
    ck_assert_int_eq(a->stop, 4);
    ck_assert_uint_eq(a->seed, 4294967295u);
    ck_assert_uint_eq(a->first_position, 77);
    ck_assert_int_eq(memcmp(&a->sampling, &m[2].sampling, sizeof a->sampling), 0);
    ck_assert_int_eq(memcmp(&a->figures, &m[2].figures, sizeof a->figures), 0);
    ck_assert_uint_eq(a->n_tokens, 40);
    expect_tokens(a->tokens, tokens, 40);
    ck_assert_uint_eq(a->n_changes, 1);
    ck_assert_int_eq(memcmp(a->changes, &change, sizeof change), 0);
    app_import_free(&in);
    cw_buf_free(&out);
    cw_buf_free(&again);
    free(tokens);
}
END_TEST

/* The other formats: the branch, nothing that commands a terminal or a browser. */
START_TEST(for_people) {
    static const enum app_format formats[] = {APP_FORMAT_MD, APP_FORMAT_TXT, APP_FORMAT_HTML,
                                              APP_FORMAT_JSONL};
    struct cw_store_conversation c;
    struct cw_store_message m[3];
    struct cw_store_change change = {0};
    struct cw_store_token *tokens = make_tokens(40, 8);
    struct cw_buf out = {0};
    make_tree(&c, m, tokens, &change);
    app_export(formats[_i], &c, m, 3, &out);
    ck_assert(cw_utf8_valid(out.data, out.len));
    for (size_t i = 0; i < out.len; i++) {
        unsigned char ch = (unsigned char)out.data[i];
        ck_assert_msg(ch == '\n' || ch == '\t' || (ch >= 0x20 && ch != 0x7f), "byte %02x", ch);
    }
    ck_assert_ptr_nonnull(strstr(out.data, "ask"));
    ck_assert_ptr_null(strstr(out.data, "other")); /* it is on another branch */
    if (formats[_i] != APP_FORMAT_JSONL) {
        ck_assert_ptr_null(strstr(out.data, "\xe2\x80\xae"));
    }
    if (formats[_i] == APP_FORMAT_HTML) {
        ck_assert_ptr_null(strstr(out.data, "<script"));
        ck_assert_ptr_null(strstr(out.data, "<brief>"));
        ck_assert_ptr_nonnull(strstr(out.data, "&lt;script&gt;"));
    }
    cw_buf_free(&out);
    free(tokens);
}
END_TEST

/* Empty conversations, lost messages, leaves that are not there. */
START_TEST(odd_trees) {
    struct cw_store_conversation c = {.leaf = 99};
    struct cw_store_message m[2] = {{.id = 1, .parent = 1, .text = str("self"), .done = true},
                                    {.id = 2, .parent = 7, .lost = true, .done = true}};
    for (int f = APP_FORMAT_MD; f <= APP_FORMAT_HTML; f++) {
        struct cw_buf out = {0};
        app_export((enum app_format)f, &c, NULL, 0, &out);
        app_export((enum app_format)f, &c, m, 2, &out);
        cw_buf_free(&out);
    }
}
END_TEST

static const struct {
    const char *text;
    const char *summary; /* roles and texts of all, system first; NULL: refused */
    const char *why;     /* part of the line */
} files[] = {
    {"[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"}]",
     "[u:a|r:b]", NULL},
    {"{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"a\"}]"
     ","
     "\"title\":\"x\"}",
     "[s=s|u:a]", NULL},
    {"{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a\"},"
     "{\"type\":\"image_url\",\"image_url\":{\"url\":\"file:///etc/passwd\"}},"
     "{\"type\":\"text\",\"text\":\"b\"}]},{\"role\":\"assistant\",\"content\":null}]}",
     "[u:ab|r:]", NULL},
    {"{\"conversations\":[{\"from\":\"human\",\"value\":\"a\"},{\"from\":\"gpt\",\"value\":\"b\"}]"
     "}",
     "[u:a|r:b]", NULL},
    {"[{\"conversations\":[{\"from\":\"human\",\"value\":\"a\"}]},"
     "{\"conversations\":[{\"from\":\"human\",\"value\":\"b\"}]}]",
     "[u:a][u:b]", NULL},
    {"{\"role\":\"user\",\"content\":\"a\"}\n\n{\"role\":\"assistant\",\"content\":\"b\"}\n",
     "[u:a|r:b]", NULL},
    {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n"
     "{\"messages\":[{\"role\":\"user\",\"content\":\"b\"}]}\n",
     "[u:a][u:b]", NULL},
    {"\xef\xbb\xbf[{\"role\":\"user\",\"content\":\"\\ud83d\\ude00 \\ud83d x \\ude00\"}]",
     "[u:\xf0\x9f\x98\x80 \xef\xbf\xbd x \xef\xbf\xbd]", NULL},
    {"", NULL, "too early"},
    {"null", NULL, "null"},
    {"[]", NULL, "no conversation"},
    {"{}", NULL, "neither"},
    {"[[[]]]", NULL, "conversation 1: "},
    {"[1,2]", NULL, "no conversation"},
    {"\"x\"", NULL, "no conversation"},
    {"{\"messages\":[]}", NULL, "without a message"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"king\",\"content\":\"b\"}]}",
     NULL, "message 2: no role, or an unknown one"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":5}]}", NULL, "no text"},
    /* what was thought, by each name it has: of most servers, of OpenRouter, of Ollama */
    {"[{\"role\":\"assistant\",\"content\":\"a\",\"reasoning_content\":\"x\"},"
     "{\"role\":\"assistant\",\"content\":\"b\",\"reasoning\":\"y\"},"
     "{\"role\":\"assistant\",\"content\":\"c\",\"thinking\":\"z\"},"
     "{\"role\":\"assistant\",\"content\":\"d\",\"thinking\":5}]",
     "[r:a (x)|r:b (y)|r:c (z)|r:d]", NULL},
    {"{\"messages\":[5]}", NULL, "message 1: not an object"},
    {"{\"format\":\"chinwag\",\"version\":7,\"messages\":[]}", NULL, "newer version"},
    {"{\"format\":\"chinwag\",\"messages\":[]}", NULL, "no version"},
    {"{\"format\":\"chinwag\",\"version\":1,\"messages\":[{\"parent\":2,\"role\":\"user\"}]}", NULL,
     "parent"},
    {"{\"format\":\"chinwag\",\"version\":1,\"messages\":[{\"parent\":-1,\"role\":\"user\"}]}",
     NULL, "parent"},
    {"{\"format\":\"chinwag\",\"version\":1,\"messages\":[{\"parent\":0,\"role\":\"user\","
     "\"tokens\":[[1]]}]}",
     NULL, "token"},
    {"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]", NULL, "too early"},
};

START_TEST(others) {
    struct app_import in;
    struct cw_err err = {0};
    int rc = app_import_parse(files[_i].text, strlen(files[_i].text), &in, &err);
    if (files[_i].summary == NULL) {
        ck_assert_int_ne(rc, CW_OK);
        ck_assert_msg(strstr(err.text, files[_i].why) != NULL, "said: %s", err.text);
        return;
    }
    ck_assert_msg(rc == CW_OK, "%s", err.text);
    struct cw_buf got = {0};
    for (size_t i = 0; i < in.n; i++) {
        cw_buf_putc(&got, '[');
        if (in.v[i].conversation.system.len > 0) {
            cw_buf_printf(&got, "s=%s|", in.v[i].conversation.system.data);
        }
        for (size_t k = 0; k < in.v[i].n_messages; k++) {
            const struct cw_store_message *m = &in.v[i].messages[k];
            ck_assert_int_eq(m->parent, (int64_t)k);
            cw_buf_printf(&got, "%s%c:", k > 0 ? "|" : "", "urst"[m->role]);
            cw_buf_add(&got, m->text.data, m->text.len);
            if (m->reasoning.len > 0) {
                cw_buf_printf(&got, " (%.*s)", (int)m->reasoning.len, m->reasoning.data);
            }
        }
        cw_buf_putc(&got, ']');
    }
    ck_assert_str_eq(got.data, files[_i].summary);
    cw_buf_free(&got);
    app_import_free(&in);
}
END_TEST

/* NUL, a name like a path, escape codes in a title, depth. */
START_TEST(hostile) {
    struct app_import in;
    struct cw_err err = {0};
    static const char text[] =
        "{\"title\":\"../../x\\u001b[2J\\u0000y\",\"messages\":[{\"role\":\"user\","
        "\"content\":\"a\\u0000b\"}]}";
    ck_assert_int_eq(app_import_parse(text, sizeof text - 1, &in, &err), CW_OK);
    ck_assert(str_is(in.v[0].conversation.title, "../../x\\x1B[2J\\x00y"));
    ck_assert_uint_eq(in.v[0].messages[0].text.len, 3);
    app_import_free(&in);
    struct cw_buf deep = {0};
    for (int i = 0; i < 100000; i++) {
        cw_buf_puts(&deep, i % 2 ? "[" : "{\"messages\":");
    }
    ck_assert_int_eq(app_import_parse(deep.data, deep.len, &in, &err), CW_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "deep"));
    cw_buf_free(&deep);
}
END_TEST

/* A good file cut or changed anywhere is refused or read, never more. */
START_TEST(broken) {
    struct cw_store_conversation c;
    struct cw_store_message m[3];
    struct cw_store_change change = {0};
    struct cw_store_token *tokens = make_tokens(40, 8);
    struct cw_buf out = {0};
    uint32_t state = 7;
    make_tree(&c, m, tokens, &change);
    m[2].n_tokens = 3;
    app_export(APP_FORMAT_JSON, &c, m, 3, &out);
    for (int i = 0; i < 3000; i++) {
        struct app_import in;
        struct cw_err err = {0};
        char *copy = cw_strndup(out.data, out.len);
        state = state * 1664525u + 1013904223u;
        size_t at = (state >> 8) % out.len;
        size_t n = i % 3 ? out.len : at;
        if (i % 3 == 1) {
            copy[at] ^= (char)(1 << (state & 7));
        } else if (i % 3 == 2) {
            copy[at] = "{}[]\",:0-9"[(state >> 3) % 10];
        }
        if (app_import_parse(copy, n, &in, &err) == CW_OK) {
            app_import_free(&in);
        } else {
            ck_assert_uint_gt(strlen(err.text), 0);
        }
        free(copy);
    }
    cw_buf_free(&out);
    free(tokens);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("exchange");
    TCase *tc = tcase_create("exchange");
    tcase_set_timeout(tc, 240);
    tcase_add_test(tc, ours_round_trip);
    tcase_add_loop_test(tc, for_people, 0, 4);
    tcase_add_test(tc, odd_trees);
    tcase_add_loop_test(tc, others, 0, (int)(sizeof files / sizeof *files));
    tcase_add_test(tc, hostile);
    tcase_add_test(tc, broken);
    suite_add_tcase(suite, tc);
    SRunner *sr = srunner_create(suite);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? 0 : 1;
}
