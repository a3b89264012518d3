/* SPDX-License-Identifier: MIT */
#include "tok_check.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

void encode_n(struct cw_tokenizer *t, const char *text, size_t len, unsigned flags,
              struct cw_ids *ids) {
    struct cw_err err = {0};
    ids->n = 0;
    int rc = cw_tokenizer_encode(t, text, len, flags, ids, &err);
    ck_assert_msg(rc == CW_OK, "%s", err.text);
}

const char *show(const struct cw_tokenizer *t, const struct cw_ids *ids) {
    static char out[4096];
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < ids->n; i++) {
        struct cw_str s = cw_tokenizer_text(t, ids->v[i]);
        n += (size_t)snprintf(out + n, sizeof out - n, "%s%.*s", i > 0 ? "|" : "", (int)s.len,
                              s.data);
        ck_assert_uint_lt(n, sizeof out);
    }
    return out;
}

void check_tokens(struct cw_tokenizer *t, const char *text, unsigned flags, const char *want) {
    struct cw_ids ids = {0};
    encode_n(t, text, strlen(text), flags, &ids);
    ck_assert_msg(strcmp(show(t, &ids), want) == 0, "\"%s\" gives \"%s\", not \"%s\"", text,
                  show(t, &ids), want);
    cw_ids_free(&ids);
}

void check_round_trip(struct cw_tokenizer *t, const char *text, size_t len) {
    struct cw_ids ids = {0};
    struct cw_buf back = {0};
    encode_n(t, text, len, 0, &ids);
    cw_tokenizer_decode(t, ids.v, ids.n, false, &back);
    ck_assert_uint_eq(back.len, len);
    ck_assert(len == 0 || memcmp(back.data, text, len) == 0);
    cw_ids_free(&ids);
    cw_buf_free(&back);
}

void random_word(char *out, size_t n, uint32_t *state) {
    for (size_t i = 0; i < n; i++) {
        out[i] = "abc"[next_random(state) % 3];
    }
    out[n] = '\0';
}

void chat_vocab(struct tiny_vocab *v) {
    tiny_vocab_init(v, "gpt2", "gpt-2");
    tiny_vocab_add_alphabet(v);
    ck_assert_int_eq(tiny_vocab_merge(v, "a", "b"), 256);
    ck_assert_int_eq(tiny_vocab_add(v, "<|im_start|>", CONTROL, 0), IM_START);
    tiny_vocab_add(v, "<|im_end|>", CONTROL, 0);
    tiny_vocab_add(v, "<s>", CONTROL, 0);
    tiny_vocab_add(v, "<|endoftext|>", CONTROL, 0);
    tiny_vocab_add(v, "12", USER, 0);
    tiny_vocab_add(v, "123", USER, 0);
    tiny_vocab_add(v, "23", USER, 0);
    tiny_vocab_add(v, "\n\n", USER, 0);
    ck_assert_int_eq(tiny_vocab_add(v, "\n\n\n", USER, 0), USER_NL3);
    tiny_vocab_add(v, "<|a|>", CONTROL, 0);
    tiny_vocab_add(v, "<|a|>b", CONTROL, 0);
}

struct tiny chat_tokenizer(void) {
    struct tiny_vocab v;
    chat_vocab(&v);
    return tiny_open(&v);
}

struct tiny spm_tokenizer(bool prefix) {
    struct tiny_vocab v;
    tiny_vocab_init(&v, "llama", NULL);
    tiny_vocab_add(&v, "<unk>", UNKNOWN, 0);
    tiny_vocab_add(&v, "<s>", CONTROL, 0);
    tiny_vocab_add(&v, "</s>", CONTROL, 0);
    mkgguf_u32(&v.m, "tokenizer.ggml.bos_token_id", 1);
    mkgguf_u32(&v.m, "tokenizer.ggml.eos_token_id", 2);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_space_prefix", prefix);
    tiny_vocab_add_byte_tokens(&v);
    static const char *const pieces[] = {
        BLANK "ab", "ab", BLANK "a", BLANK BLANK, "a", "b", BLANK, "\xc3\xa9", "H", "i",
    };
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        tiny_vocab_add(&v, pieces[i], NORMAL, -(float)i);
    }
    return tiny_open(&v);
}
