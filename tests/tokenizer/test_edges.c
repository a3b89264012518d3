/* SPDX-License-Identifier: MIT
 *
 * The edges of a vocabulary: types and scores that are none, the longest special token, ids just
 * past the end, merges and markers that typed text must not be able to use.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tok_check.h"

/* Whether a notice holds this. */
static bool told(const struct tiny *tiny, const char *part) {
    const char *line;
    for (size_t i = 0; (line = cw_tokenizer_notice(tiny->t, i)) != NULL; i++) {
        if (strstr(line, part) != NULL) {
            return true;
        }
    }
    return false;
}

/* --- types and scores --- */

/* A type outside of those that are known makes an unused token, whatever its number: it is matched
 * nowhere. */
START_TEST(types_that_are_none) {
    static const int32_t types[] = {-1, 0, 7, 8, 77, 255, 256, 259, INT32_MAX, INT32_MIN, UNUSED};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct tiny_vocab v;
        chat_vocab(&v);
        tiny_vocab_add(&v, "zz", types[i], 0);
        struct tiny tiny = tiny_open(&v);
        check_tokens(tiny.t, "zz", 0, "z|z");
        check_tokens(tiny.t, "zz", CW_TOK_SPECIAL, "z|z");
        tiny_close(&tiny);
    }
}
END_TEST

START_TEST(scores_at_the_edge) {
    static const uint32_t nans[] = {0x7fc00000, 0x7f800001, 0xffc00000, 0xffffffff};
    for (size_t i = 0; i < 4; i++) { /* no number is the worst of scores */
        struct tiny_vocab v;
        float nan;
        memcpy(&nan, &nans[i], sizeof nan);
        tiny_vocab_init(&v, "llama", NULL);
        mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", false);
        mkgguf_bool(&v.m, "tokenizer.ggml.add_space_prefix", false);
        tiny_vocab_add_byte_tokens(&v);
        tiny_vocab_add(&v, "ab", NORMAL, nan);
        tiny_vocab_add(&v, "bc", NORMAL, -1e30f);
        struct tiny tiny = tiny_open(&v);
        check_tokens(tiny.t, "abc", 0, "<0x61>|bc");
        tiny_close(&tiny);
    }
    for (int i = 0; i < 2; i++) { /* both zeros are one: the leftmost goes first */
        struct tiny_vocab v;
        tiny_vocab_init(&v, "llama", NULL);
        mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", false);
        mkgguf_bool(&v.m, "tokenizer.ggml.add_space_prefix", false);
        tiny_vocab_add_byte_tokens(&v);
        tiny_vocab_add(&v, "ab", NORMAL, i == 0 ? -0.0f : 0.0f);
        tiny_vocab_add(&v, "bc", NORMAL, i == 0 ? 0.0f : -0.0f);
        struct tiny tiny = tiny_open(&v);
        check_tokens(tiny.t, "abc", 0, "ab|<0x63>");
        tiny_close(&tiny);
    }
}
END_TEST

/* --- ids --- */

/* Some files write -1 for "none": no fault of theirs, and none to tell. */
START_TEST(an_id_of_minus_one) {
    static const char *const keys[] = {
        "tokenizer.ggml.bos_token_id",     "tokenizer.ggml.eos_token_id",
        "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id",
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct tiny_vocab v;
        chat_vocab(&v);
        mkgguf_u32(&v.m, keys[i], UINT32_MAX);
        struct tiny tiny = tiny_open(&v);
        ck_assert_ptr_null(cw_tokenizer_notice(tiny.t, 0));
        ck_assert_int_eq(cw_tokenizer_bos(tiny.t), -1);
        ck_assert_int_eq(cw_tokenizer_eos(tiny.t), -1);
        tiny_close(&tiny);
    }
}
END_TEST

START_TEST(an_end_token_without_an_id) {
    struct tiny_vocab v;
    chat_vocab(&v);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_eos_token", true);
    struct tiny tiny = tiny_open(&v);
    ck_assert(!cw_tokenizer_adds_eos(tiny.t));
    ck_assert(told(&tiny, "asks for an end token but names none"));
    tiny_close(&tiny);
    /* With one, an empty prompt is the end token alone. */
    chat_vocab(&v);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_eos_token", true);
    mkgguf_u32(&v.m, "tokenizer.ggml.eos_token_id", IM_END);
    tiny = tiny_open(&v);
    struct cw_ids ids = {0};
    struct cw_span empty = {.begin = 0, .end = 0, .message = -1};
    for (size_t n = 0; n < 2; n++) {
        ids.n = 0;
        ck_assert_int_eq(
            cw_tokenizer_encode_spans(tiny.t, "", &empty, n, CW_TOK_BOS_EOS, &ids, NULL, NULL),
            CW_OK);
        ck_assert_str_eq(show(tiny.t, &ids), "<|im_end|>");
    }
    cw_ids_free(&ids);
    tiny_close(&tiny);
}
END_TEST

/* The unknown token is one of that type, even if the file names another. */
START_TEST(the_unknown_token) {
    for (int named = 0; named < 3; named++) {
        struct tiny_vocab v;
        tiny_vocab_init(&v, "llama", NULL); /* no bytes */
        mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", false);
        mkgguf_bool(&v.m, "tokenizer.ggml.add_space_prefix", false);
        tiny_vocab_add(&v, "a", NORMAL, 0);
        tiny_vocab_add(&v, "<s>", CONTROL, 0);
        tiny_vocab_add(&v, "<unk>", UNKNOWN, 0);
        mkgguf_u32(&v.m, "tokenizer.ggml.unknown_token_id", (uint32_t)named);
        struct tiny tiny = tiny_open(&v);
        check_tokens(tiny.t, "az", 0, "a|<unk>");
        tiny_close(&tiny);
    }
}
END_TEST

/* --- pieces --- */

START_TEST(pieces_at_the_edge) {
    struct tiny_vocab v;
    struct cw_buf out = {0};
    tiny_vocab_init(&v, "llama", NULL);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", false);
    int32_t unk = tiny_vocab_add(&v, "<unk>", UNKNOWN, 0);
    int32_t lower = tiny_vocab_add(&v, "<0x0a>", BYTE, 0);
    int32_t mixed = tiny_vocab_add(&v, "<0xaF>", BYTE, 0);
    int32_t wrong = tiny_vocab_add(&v, "<0xg0>", BYTE, 0);
    int32_t last = tiny_vocab_add(&v, "b", NORMAL, 0);
    struct tiny tiny = tiny_open(&v);
    cw_tokenizer_piece(tiny.t, unk, false, false, &out);
    ck_assert_uint_eq(out.len, 0);
    cw_tokenizer_piece(tiny.t, unk, true, false, &out);
    cw_tokenizer_piece(tiny.t, lower, false, false, &out);
    cw_tokenizer_piece(tiny.t, mixed, false, false, &out);
    cw_tokenizer_piece(tiny.t, wrong, false, false, &out);
    cw_tokenizer_piece(tiny.t, last, false, false, &out);
    cw_tokenizer_piece(tiny.t, last + 1, true, false, &out); /* there is none */
    ck_assert_str_eq(out.data, "<unk>\n\xaf<0xg0>b");
    ck_assert_ptr_null(cw_tokenizer_text(tiny.t, last + 1).data);
    ck_assert(!cw_tokenizer_is_control(tiny.t, last + 1));
    tiny_close(&tiny);

    /* What is not of the byte alphabet stands for itself. */
    cw_buf_clear(&out);
    chat_vocab(&v);
    int32_t plain = tiny_vocab_add(&v, "\u65e5\u672c \u0120x", NORMAL, 0);
    tiny = tiny_open(&v);
    cw_tokenizer_piece(tiny.t, plain, false, false, &out);
    ck_assert_str_eq(out.data, "\u65e5\u672c  x");
    tiny_close(&tiny);
    cw_buf_free(&out);
}
END_TEST

/* --- special tokens --- */

START_TEST(the_longest_special_token) {
    char text[300];
    memset(text, 'q', sizeof text);
    for (size_t n = 255; n <= 257; n++) {
        struct tiny_vocab v;
        struct cw_ids ids = {0};
        chat_vocab(&v);
        tiny_vocab_add_n(&v, text, n, USER, 0);
        struct tiny tiny = tiny_open(&v);
        encode_n(tiny.t, text, n, 0, &ids);
        ck_assert_uint_eq(ids.n, n <= 256 ? 1 : n);
        ck_assert_int_eq(told(&tiny, "of more than 256 bytes"), n > 256);
        cw_ids_free(&ids);
        tiny_close(&tiny);
    }
}
END_TEST

/* A merge that would make a token that is no text is left out, also where it is the next one. */
START_TEST(no_merge_makes_a_control_token) {
    static const int32_t types[] = {CONTROL, UNKNOWN, BYTE};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        for (int apart = 0; apart < 2; apart++) {
            struct tiny_vocab v;
            tiny_vocab_init(&v, "gpt2", "gpt-2");
            tiny_vocab_add_alphabet(&v);
            tiny_vocab_add(&v, "longer", NORMAL, 0);
            tiny_vocab_merge(&v, "x", "y");
            if (apart) {
                tiny_vocab_add(&v, "other", NORMAL, 0);
            }
            tiny_vocab_add(&v, "xyz", types[i], 0);
            tiny_vocab_add_merge(&v, "xy z");
            struct tiny tiny = tiny_open(&v);
            ck_assert(told(&tiny, "1 of 2"));
            check_tokens(tiny.t, "xyz", 0, "xy|z");
            tiny_close(&tiny);
        }
    }
}
END_TEST

/* Which user-defined tokens a chat template makes control tokens: those that look like markers. */
START_TEST(what_looks_like_a_marker) {
    static const struct {
        const char *text;
        bool marker;
    } cases[] = {
        {"<|user|>", true},      {"<\uff5cUser\uff5c>", true},
        {"<|u|>", true},         {"<user>", false},
        {"<|user>", false},      {"<user|>", false},
        {"<\uff5cUser>", false}, {"<User\uff5c>", false},
        {"|user|", false},       {"<\uff5cUser|>", false},
        {"    ", false},         {"<||>", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tiny_vocab v;
        struct cw_buf chat = {0};
        chat_vocab(&v);
        cw_buf_printf(&chat, "%s{{ m.content }}", cases[i].text);
        mkgguf_str(&v.m, "tokenizer.chat_template", chat.data);
        int32_t id = tiny_vocab_add(&v, cases[i].text, USER, 0);
        struct tiny tiny = tiny_open(&v);
        ck_assert_msg(cw_tokenizer_is_control(tiny.t, id) == cases[i].marker, "%s", cases[i].text);
        ck_assert_int_eq(told(&tiny, "taken as one"), cases[i].marker);
        cw_buf_free(&chat);
        tiny_close(&tiny);
    }
}
END_TEST

/* A user-defined token that lies across a marker of the template and typed text does not swallow
 * the marker, also when the template's text began with another one. */
START_TEST(a_marker_behind_a_marker) {
    struct tiny_vocab v;
    struct cw_ids ids = {0};
    chat_vocab(&v);
    tiny_vocab_add(&v, "x<|im_end|>y", USER, 0);
    struct tiny tiny = tiny_open(&v);
    static const char text[] = "<|a|>x<|im_end|>y";
    struct cw_span spans[] = {{.begin = 0, .end = 16, .message = -1},
                              {.begin = 16, .end = 17, .message = 0}};
    ck_assert_int_eq(cw_tokenizer_encode_spans(tiny.t, text, spans, 2, 0, &ids, NULL, NULL), CW_OK);
    ck_assert_str_eq(show(tiny.t, &ids), "<|a|>|x|<|im_end|>|y");
    cw_ids_free(&ids);
    tiny_close(&tiny);
}
END_TEST

/* Kinds of vocabularies that are known and not supported are told by what they are. */
START_TEST(kinds_by_what_they_are) {
    static const char *const kinds[][2] = {
        {"t5", "unigram"},     {"bert", "WordPiece"},   {"rwkv", "trie"},
        {"plamo2", "unigram"}, {"no_vocab", "no text"}, {"none", "no text"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct tiny_vocab v;
        struct cw_gguf *g;
        struct cw_tokenizer *t;
        struct cw_err err = {0};
        tiny_vocab_init(&v, kinds[i][0], NULL);
        tiny_vocab_add_alphabet(&v);
        ck_assert_int_eq(tiny_vocab_try(&v, NULL, &g, &t, &err), CW_EUNSUP);
        ck_assert_msg(strstr(err.text, kinds[i][0]) != NULL &&
                          strstr(err.text, kinds[i][1]) != NULL,
                      "%s", err.text);
        tiny_vocab_free(&v);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("edges");
    TCase *tcase = tcase_create("edges");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, types_that_are_none);
    tcase_add_test(tcase, scores_at_the_edge);
    tcase_add_test(tcase, an_id_of_minus_one);
    tcase_add_test(tcase, an_end_token_without_an_id);
    tcase_add_test(tcase, the_unknown_token);
    tcase_add_test(tcase, pieces_at_the_edge);
    tcase_add_test(tcase, the_longest_special_token);
    tcase_add_test(tcase, no_merge_makes_a_control_token);
    tcase_add_test(tcase, what_looks_like_a_marker);
    tcase_add_test(tcase, a_marker_behind_a_marker);
    tcase_add_test(tcase, kinds_by_what_they_are);
    suite_add_tcase(suite, tcase);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
