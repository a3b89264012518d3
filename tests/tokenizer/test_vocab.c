/* SPDX-License-Identifier: MIT
 *
 * Vocabularies that are wrong: what is refused, with the key's name, and what is left out, with a
 * notice.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tok_check.h"

/* --- files that are wrong --- */

/* Expect the creation to fail with `code` and a line that holds `word`. */
static void check_refused(struct tiny_vocab *v, const char *pre, int code, const char *word) {
    struct cw_gguf *g;
    struct cw_tokenizer *t;
    struct cw_err err = {0};
    ck_assert_int_eq(tiny_vocab_try(v, pre, &g, &t, &err), code);
    ck_assert_ptr_null(t);
    ck_assert_int_eq(err.code, code);
    ck_assert_msg(strstr(err.text, word) != NULL, "\"%s\" does not name %s", err.text, word);
    tiny_vocab_free(v);
}

START_TEST(missing_keys_are_named) {
    struct tiny_vocab v;
    chat_vocab(&v);
    v.no_tokens = true;
    check_refused(&v, NULL, CW_EFORMAT, "tokenizer.ggml.tokens");
    chat_vocab(&v);
    v.no_merges = true;
    check_refused(&v, NULL, CW_EFORMAT, "tokenizer.ggml.merges");
    tiny_vocab_init(&v, NULL, NULL);
    tiny_vocab_add_alphabet(&v);
    check_refused(&v, NULL, CW_EFORMAT, "tokenizer.ggml.model");
    tiny_vocab_init(&v, "llama", NULL);
    tiny_vocab_add_byte_tokens(&v);
    v.no_scores = true;
    check_refused(&v, NULL, CW_EFORMAT, "tokenizer.ggml.scores");
    tiny_vocab_init(&v, "gpt2", "gpt-2"); /* no tokens at all */
    check_refused(&v, NULL, CW_EFORMAT, "tokenizer.ggml.tokens");
}
END_TEST

START_TEST(unknown_kinds_are_named) {
    static const char *const models[] = {"t5", "bert", "rwkv", "plamo2", "no_vocab", "x\x1b[2J"};
    struct tiny_vocab v;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        tiny_vocab_init(&v, models[i], NULL);
        tiny_vocab_add_alphabet(&v);
        check_refused(&v, NULL, CW_EUNSUP, i < 5 ? models[i] : "x\\x1B");
    }
    tiny_vocab_init(&v, "gpt2", "not-heard-of");
    tiny_vocab_add_alphabet(&v);
    check_refused(&v, NULL, CW_EPRE, "not-heard-of");
    chat_vocab(&v);
    check_refused(&v, "wrong-override", CW_EPRE, "wrong-override");
}
END_TEST

START_TEST(pre_tokenizer_by_override_and_default) {
    struct tiny_vocab v;
    struct cw_gguf *g;
    struct cw_tokenizer *t;
    struct cw_err err = {0};
    tiny_vocab_init(&v, "gpt2", "not-heard-of");
    tiny_vocab_add_alphabet(&v);
    ck_assert_int_eq(tiny_vocab_try(&v, "qwen2", &g, &t, &err), CW_OK);
    ck_assert_str_eq(cw_tokenizer_pre_name(t), "qwen2");
    ck_assert_ptr_null(cw_tokenizer_notice(t, 0));
    cw_tokenizer_destroy(t);
    cw_gguf_close(g);
    tiny_vocab_free(&v);

    tiny_vocab_init(&v, "llama", "whatever"); /* SPM has none: said, not refused */
    tiny_vocab_add_byte_tokens(&v);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", false);
    ck_assert_int_eq(tiny_vocab_try(&v, "qwen2", &g, &t, &err), CW_OK);
    ck_assert_str_eq(cw_tokenizer_pre_name(t), "");
    ck_assert_ptr_nonnull(strstr(cw_tokenizer_notice(t, 0), "qwen2"));
    cw_tokenizer_destroy(t);
    cw_gguf_close(g);
    tiny_vocab_free(&v);

    tiny_vocab_init(&v, "gpt2", NULL);
    tiny_vocab_add_alphabet(&v);
    struct tiny tiny = tiny_open(&v);
    ck_assert_str_eq(cw_tokenizer_pre_name(tiny.t), "default");
    ck_assert_ptr_nonnull(strstr(cw_tokenizer_notice(tiny.t, 0), "tokenizer.ggml.pre"));
    tiny_close(&tiny);
}
END_TEST

/* The same file with one list replaced. */
static void replace_list(struct tiny_vocab *v, const char *key, uint32_t elem, uint64_t n,
                         const void *data, size_t bytes) {
    v->no_scores = v->no_scores || strcmp(key, "tokenizer.ggml.scores") == 0;
    v->no_types = v->no_types || strcmp(key, "tokenizer.ggml.token_type") == 0;
    v->no_tokens = v->no_tokens || strcmp(key, "tokenizer.ggml.tokens") == 0;
    v->no_merges = v->no_merges || strcmp(key, "tokenizer.ggml.merges") == 0;
    mkgguf_array(&v->m, key, elem, n, data, bytes);
}

static void spm_vocab(struct tiny_vocab *v) {
    tiny_vocab_init(v, "llama", NULL);
    mkgguf_bool(&v->m, "tokenizer.ggml.add_bos_token", false);
    tiny_vocab_add_byte_tokens(v);
}

START_TEST(lists_of_the_wrong_kind_or_length_are_named) {
    static const uint8_t zeros[4096];
    struct tiny_vocab v;
    spm_vocab(&v);
    replace_list(&v, "tokenizer.ggml.scores", CW_GGUF_STRING, 0, zeros, 0);
    check_refused(&v, NULL, CW_EFORMAT, "tokenizer.ggml.scores");
    spm_vocab(&v);
    replace_list(&v, "tokenizer.ggml.scores", CW_GGUF_F32, 3, zeros, 12);
    check_refused(&v, NULL, CW_EFORMAT, "tokenizer.ggml.scores");
    spm_vocab(&v);
    replace_list(&v, "tokenizer.ggml.token_type", CW_GGUF_F32, 256, zeros, 1024);
    check_refused(&v, NULL, CW_EFORMAT, "tokenizer.ggml.token_type");
    spm_vocab(&v);
    replace_list(&v, "tokenizer.ggml.token_type", CW_GGUF_I32, 255, zeros, 1020);
    check_refused(&v, NULL, CW_EFORMAT, "tokenizer.ggml.token_type");
    spm_vocab(&v);
    replace_list(&v, "tokenizer.ggml.tokens", CW_GGUF_I32, 256, zeros, 1024);
    check_refused(&v, NULL, CW_EFORMAT, "tokenizer.ggml.tokens");
    chat_vocab(&v);
    replace_list(&v, "tokenizer.ggml.merges", CW_GGUF_I32, 4, zeros, 16);
    check_refused(&v, NULL, CW_EFORMAT, "tokenizer.ggml.merges");
    static const char *const entries[] = {"ab", "", " ", "a ", " a", "  "};
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        chat_vocab(&v);
        tiny_vocab_add_merge(&v, entries[i]);
        check_refused(&v, NULL, CW_EFORMAT, "tokenizer.ggml.merges");
    }
    chat_vocab(&v);
    mkgguf_str(&v.m, "tokenizer.ggml.bos_token_id", "one");
    check_refused(&v, NULL, CW_EFORMAT, "tokenizer.ggml.bos_token_id");
    chat_vocab(&v);
    mkgguf_u32(&v.m, "tokenizer.ggml.add_bos_token", 1);
    check_refused(&v, NULL, CW_EFORMAT, "tokenizer.ggml.add_bos_token");
}
END_TEST

/* Without types the bytes are still known by their strings, and not to be typed. */
START_TEST(types_may_be_missing) {
    static const char *const strings[] = {"<", "0",  "x",   "4",    "1",
                                          ">", "<0", "<0x", "<0x4", "<0x41"};
    struct tiny_vocab v;
    spm_vocab(&v);
    v.no_types = true;
    mkgguf_bool(&v.m, "tokenizer.ggml.add_space_prefix", false);
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        tiny_vocab_add(&v, strings[i], NORMAL, 0);
    }
    struct tiny tiny = tiny_open(&v);
    check_tokens(tiny.t, "<0x41>", 0, "<0x41|>");
    check_tokens(tiny.t, "A", 0, "<0x41>");
    ck_assert_ptr_nonnull(strstr(cw_tokenizer_notice(tiny.t, 0), "token_type"));
    tiny_close(&tiny);

    /* What the file names as special still is. */
    chat_vocab(&v);
    v.no_types = true;
    mkgguf_u32(&v.m, "tokenizer.ggml.bos_token_id", BOS);
    mkgguf_u32(&v.m, "tokenizer.ggml.eos_token_id", END_OF_TEXT);
    tiny = tiny_open(&v);
    check_tokens(tiny.t, "<s>", 0, "<|s|>");
    check_tokens(tiny.t, "<s>a<|endoftext|>", CW_TOK_SPECIAL, "<s>|a|<|endoftext|>");
    ck_assert(cw_tokenizer_is_control(tiny.t, BOS));
    tiny_close(&tiny);
}
END_TEST

/* Types as another integer width are converted; a type nobody knows is an unused token. */
START_TEST(types_of_other_widths) {
    uint64_t types[256];
    struct tiny_vocab v;
    for (int i = 0; i < 256; i++) {
        types[i] = i == 'A' ? 77 : BYTE;
    }
    spm_vocab(&v);
    replace_list(&v, "tokenizer.ggml.token_type", CW_GGUF_U64, 256, types, sizeof types);
    struct tiny tiny = tiny_open(&v);
    check_tokens(tiny.t, "B", 0, "<0x20>|<0x42>");
    tiny_close(&tiny);
}
END_TEST

START_TEST(special_ids_out_of_range_are_left_out) {
    static const char *const keys[] = {
        "tokenizer.ggml.bos_token_id",     "tokenizer.ggml.eos_token_id",
        "tokenizer.ggml.unknown_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id",
    };
    struct tiny_vocab v;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        tiny_vocab_init(&v, "gpt2", "gpt-2");
        tiny_vocab_add(&v, "a", NORMAL, 0);
        mkgguf_u32(&v.m, keys[i], 1);
        mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", true);
        mkgguf_bool(&v.m, "tokenizer.ggml.add_eos_token", true);
        struct tiny tiny = tiny_open(&v);
        ck_assert_int_eq(cw_tokenizer_bos(tiny.t), -1);
        ck_assert_int_eq(cw_tokenizer_eos(tiny.t), -1);
        ck_assert(!cw_tokenizer_is_eog(tiny.t, 0) && !cw_tokenizer_is_eog(tiny.t, 1));
        bool told = false;
        const char *line;
        for (size_t k = 0; (line = cw_tokenizer_notice(tiny.t, k)) != NULL; k++) {
            told = told || strstr(line, keys[i]) != NULL;
        }
        ck_assert_msg(told, "%s", keys[i]);
        check_tokens(tiny.t, "a", CW_TOK_BOS_EOS, "a");
        tiny_close(&tiny);
    }
}
END_TEST

/* Many strings of the same first eight bytes, which is what the table compares first. */
START_TEST(strings_that_begin_alike) {
    enum { N = 3000 };
    struct tiny_vocab v;
    char s[32];
    tiny_vocab_init(&v, "gpt2", "gpt-2");
    for (int i = 0; i < N; i++) {
        snprintf(s, sizeof s, "abcdefgh%d.", i);
        ck_assert_int_eq(tiny_vocab_add(&v, s, NORMAL, 0), i);
    }
    struct tiny tiny = tiny_open(&v);
    for (int i = 0; i < 2 * N; i++) {
        int n = snprintf(s, sizeof s, "abcdefgh%d.", i);
        ck_assert_int_eq(cw_tokenizer_find(tiny.t, s, (size_t)n), i < N ? i : -1);
        n = snprintf(s, sizeof s, "abcdefgh%d", i);
        ck_assert_int_eq(cw_tokenizer_find(tiny.t, s, (size_t)n), -1);
    }
    tiny_close(&tiny);
}
END_TEST

START_TEST(odd_token_strings_do_no_harm) {
    struct tiny_vocab v;
    struct cw_ids ids = {0};
    chat_vocab(&v);
    int32_t first = tiny_vocab_add(&v, "twice", NORMAL, 0);
    tiny_vocab_add(&v, "twice", CONTROL, 0);
    int32_t nul = tiny_vocab_add_n(&v, "n\0l", 3, USER, 0);
    int32_t bad = tiny_vocab_add_n(&v, "\xff\xfe", 2, USER, 0);
    tiny_vocab_add_n(&v, "", 0, USER, 0);
    tiny_vocab_add_n(&v, "", 0, CONTROL, 0);
    char *large = calloc(1, 300000);
    memset(large, 'q', 299999);
    tiny_vocab_add(&v, large, USER, 0);
    tiny_vocab_add(&v, large, NORMAL, 0);
    struct tiny tiny = tiny_open(&v);
    ck_assert_int_eq(cw_tokenizer_find(tiny.t, "twice", 5), first);
    ck_assert_ptr_nonnull(strstr(cw_tokenizer_notice(tiny.t, 0), "more than once"));
    encode_n(tiny.t, "n\0l\xff\xfe", 5, 0, &ids);
    ck_assert_uint_eq(ids.n, 2);
    ck_assert_int_eq(ids.v[0], nul);
    ck_assert_int_eq(ids.v[1], bad);
    check_round_trip(tiny.t, "n\0l\xff\xfe", 5);
    check_round_trip(tiny.t, large, 299999);
    free(large);
    cw_ids_free(&ids);
    tiny_close(&tiny);
}
END_TEST

/* A merge makes the token that its string means, also where another one follows with that string.
 */
START_TEST(merges_into_strings_that_occur_twice) {
    struct tiny_vocab v;
    struct cw_ids ids = {0};
    tiny_vocab_init(&v, "gpt2", "gpt-2");
    tiny_vocab_add_alphabet(&v);
    int32_t ab = tiny_vocab_add(&v, "ab", NORMAL, 0);
    tiny_vocab_merge(&v, "c", "d");
    tiny_vocab_add(&v, "ab", NORMAL, 0);
    tiny_vocab_add_merge(&v, "a b");
    tiny_vocab_merge(&v, "ab", "cd");
    struct tiny tiny = tiny_open(&v);
    encode_n(tiny.t, "ab", 2, 0, &ids);
    ck_assert_uint_eq(ids.n, 1);
    ck_assert_int_eq(ids.v[0], ab);
    check_tokens(tiny.t, "abcd", 0, "abcd");
    cw_ids_free(&ids);
    tiny_close(&tiny);
}
END_TEST

/* Byte-level vocabularies that mark their bytes as such. */
START_TEST(bytes_marked_as_bytes) {
    struct tiny_vocab v;
    tiny_vocab_init(&v, "gpt2", "gpt-2");
    tiny_vocab_add(&v, "a", BYTE, 0);
    tiny_vocab_add(&v, "b", BYTE, 0);
    tiny_vocab_merge(&v, "a", "b");
    struct tiny tiny = tiny_open(&v);
    check_tokens(tiny.t, "aab", 0, "a|ab");
    check_round_trip(tiny.t, "aab", 3);
    tiny_close(&tiny);
}
END_TEST

START_TEST(merges_of_unknown_tokens_are_left_out) {
    struct tiny_vocab v;
    chat_vocab(&v);
    tiny_vocab_add_merge(&v, "q r");  /* no token qr */
    tiny_vocab_add_merge(&v, "qq r"); /* no token qq */
    tiny_vocab_add_merge(&v, "<s >"); /* would make a control token */
    struct tiny tiny = tiny_open(&v);
    check_tokens(tiny.t, "qrab", 0, "q|r|ab");
    ck_assert_ptr_nonnull(strstr(cw_tokenizer_notice(tiny.t, 0), "3 of 4"));
    tiny_close(&tiny);
}
END_TEST

START_TEST(scores_that_are_no_numbers) {
    struct tiny_vocab v;
    float nan = 0;
    memset(&nan, 0xff, sizeof nan);
    spm_vocab(&v);
    tiny_vocab_add(&v, "a", NORMAL, 0);
    tiny_vocab_add(&v, "ab", NORMAL, nan);
    tiny_vocab_add(&v, "bc", NORMAL, -0.0F);
    struct cw_gguf *g;
    struct cw_tokenizer *t;
    struct cw_err err = {0};
    int rc = tiny_vocab_try(&v, NULL, &g, &t, &err);
    if (rc == CW_OK) { /* then they are the worst of scores */
        check_tokens(t, "abc", 0, "<0x20>|a|bc");
        cw_tokenizer_destroy(t);
        cw_gguf_close(g);
    } else {
        ck_assert_int_eq(rc, CW_EFORMAT);
        ck_assert_ptr_nonnull(strstr(err.text, "tokenizer.ggml.scores"));
    }
    tiny_vocab_free(&v);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("vocabulary");
    TCase *tcase = tcase_create("wrong files");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, missing_keys_are_named);
    tcase_add_test(tcase, unknown_kinds_are_named);
    tcase_add_test(tcase, pre_tokenizer_by_override_and_default);
    tcase_add_test(tcase, lists_of_the_wrong_kind_or_length_are_named);
    tcase_add_test(tcase, types_may_be_missing);
    tcase_add_test(tcase, types_of_other_widths);
    tcase_add_test(tcase, special_ids_out_of_range_are_left_out);
    tcase_add_test(tcase, strings_that_begin_alike);
    tcase_add_test(tcase, odd_token_strings_do_no_harm);
    tcase_add_test(tcase, merges_into_strings_that_occur_twice);
    tcase_add_test(tcase, bytes_marked_as_bytes);
    tcase_add_test(tcase, merges_of_unknown_tokens_are_left_out);
    tcase_add_test(tcase, scores_that_are_no_numbers);
    suite_add_tcase(suite, tcase);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
