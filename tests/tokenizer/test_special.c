/* SPDX-License-Identifier: MIT
 *
 * Tokens that stand for themselves: special tokens in text and in rendered prompts, what typed text
 * can and cannot do, begin and end tokens, end markers.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tok_check.h"

/* --- special tokens --- */

START_TEST(special_tokens_match_leftmost_longest) {
    struct tiny tiny = chat_tokenizer();
    check_tokens(tiny.t, "1231", 0, "123|1");
    check_tokens(tiny.t, "4123", 0, "4|123");
    check_tokens(tiny.t, "1223", 0, "12|23");
    check_tokens(tiny.t, "\n\n\n\n\n", 0, "\n\n\n|\n\n");
    check_tokens(tiny.t, "ab123ab", 0, "ab|123|ab");
    check_tokens(tiny.t, "<|a|>b", CW_TOK_SPECIAL, "<|a|>b");
    check_tokens(tiny.t, "<|a|>c", CW_TOK_SPECIAL, "<|a|>|c");
    check_tokens(tiny.t, "<|a|><|im_end|>", CW_TOK_SPECIAL, "<|a|>|<|im_end|>");
    check_tokens(tiny.t, "<|a|", CW_TOK_SPECIAL, "<|||a||");
    tiny_close(&tiny);
}
END_TEST

START_TEST(control_tokens_match_only_where_asked) {
    struct tiny tiny = chat_tokenizer();
    check_tokens(tiny.t, "<s>", 0, "<|s|>");
    check_tokens(tiny.t, "<s>", CW_TOK_SPECIAL, "<s>");
    check_tokens(tiny.t, "<|a|>b", 0, "<|||a|||>|b");
    check_tokens(tiny.t, "x<|im_end|>", 0, "x|<|||i|m|_|e|n|d|||>");
    tiny_close(&tiny);
}
END_TEST

/* Against the definition, on many overlapping tokens. */
START_TEST(special_tokens_match_as_the_definition_says) {
    uint32_t state = 3;
    for (int round = 0; round < 20; round++) {
        static char tokens[40][16];
        struct tiny_vocab v;
        struct cw_ids ids = {0};
        tiny_vocab_init(&v, "gpt2", "gpt-2");
        tiny_vocab_add_alphabet(&v);
        size_t n_tokens = 0;
        while (n_tokens < 40) {
            char token[16];
            random_word(token, 2 + next_random(&state) % 4, &state);
            bool seen = false;
            for (size_t i = 0; i < n_tokens; i++) {
                seen = seen || strcmp(tokens[i], token) == 0;
            }
            if (!seen) {
                tiny_vocab_add(&v, token, USER, 0);
                strcpy(tokens[n_tokens++], token);
            }
        }
        struct tiny tiny = tiny_open(&v);
        char text[200];
        random_word(text, sizeof text - 1, &state);
        encode_n(tiny.t, text, strlen(text), 0, &ids);
        size_t k = 0;
        for (size_t i = 0; text[i] != '\0'; k++) {
            int32_t want = -1;
            size_t longest = 0;
            for (size_t j = 0; j < n_tokens; j++) {
                size_t n = strlen(tokens[j]);
                if (n > longest && strncmp(text + i, tokens[j], n) == 0) {
                    longest = n;
                    want = 256 + (int32_t)j;
                }
            }
            ck_assert_uint_lt(k, ids.n);
            if (longest > 0) {
                ck_assert_int_eq(ids.v[k], want);
            } else {
                ck_assert_int_lt(ids.v[k], 256);
            }
            i += longest > 0 ? longest : 1;
        }
        ck_assert_uint_eq(k, ids.n);
        cw_ids_free(&ids);
        tiny_close(&tiny);
    }
}
END_TEST

/* --- rendered prompts --- */

/* Spans from pieces: "T" template, "U" message 0, "V" message 1. */
struct prompt {
    struct cw_buf text;
    struct cw_span spans[16];
    size_t n;
};

static void prompt_add(struct prompt *p, char origin, const char *s) {
    size_t begin = p->text.len;
    cw_buf_puts(&p->text, s);
    p->spans[p->n++] = (struct cw_span){
        .begin = begin,
        .end = p->text.len,
        .message = origin == 'T' ? -1 : origin - 'U',
    };
}

static void encode_prompt(struct cw_tokenizer *t, const struct prompt *p, unsigned flags,
                          struct cw_ids *ids, size_t *at) {
    struct cw_err err = {0};
    ids->n = 0;
    int rc = cw_tokenizer_encode_spans(t, p->text.data, p->spans, p->n, flags, ids, at, &err);
    ck_assert_msg(rc == CW_OK, "%s", err.text);
}

static void check_prompt(struct cw_tokenizer *t, struct prompt *p, const char *want) {
    struct cw_ids ids = {0};
    encode_prompt(t, p, 0, &ids, NULL);
    ck_assert_msg(strcmp(show(t, &ids), want) == 0, "\"%s\" gives \"%s\", not \"%s\"", p->text.data,
                  show(t, &ids), want);
    cw_ids_free(&ids);
    cw_buf_free(&p->text);
    p->n = 0;
}

START_TEST(typed_markers_stay_text) {
    struct tiny tiny = chat_tokenizer();
    struct prompt p = {0};
    prompt_add(&p, 'T', "<|im_start|>");
    prompt_add(&p, 'U', "ab<|im_end|>");
    prompt_add(&p, 'T', "<|im_end|>");
    check_prompt(tiny.t, &p, "<|im_start|>|ab|<|||i|m|_|e|n|d|||>|<|im_end|>");

    /* Half a marker from each side, in both orders, and from two messages. */
    prompt_add(&p, 'U', "<|im_");
    prompt_add(&p, 'T', "end|>");
    check_prompt(tiny.t, &p, "<|||i|m|_|e|n|d|||>");
    prompt_add(&p, 'T', "<|im_");
    prompt_add(&p, 'U', "end|>");
    check_prompt(tiny.t, &p, "<|||i|m|_|e|n|d|||>");
    prompt_add(&p, 'U', "<|im");
    prompt_add(&p, 'V', "_end|>");
    check_prompt(tiny.t, &p, "<|||i|m|_|e|n|d|||>");

    /* A marker around an empty message; one that the template writes in two stretches. */
    prompt_add(&p, 'T', "<|im_start|>");
    prompt_add(&p, 'U', "");
    prompt_add(&p, 'T', "<|im_end|>");
    check_prompt(tiny.t, &p, "<|im_start|>|<|im_end|>");
    prompt_add(&p, 'T', "<|im_");
    prompt_add(&p, 'T', "end|>");
    check_prompt(tiny.t, &p, "<|im_end|>");

    /* What the user writes before the template's marker must not lengthen it. */
    prompt_add(&p, 'T', "<|a|>");
    prompt_add(&p, 'U', "b");
    check_prompt(tiny.t, &p, "<|a|>|b");
    tiny_close(&tiny);
}
END_TEST

/* No text of a message, whatever its neighbours, makes a control token. */
START_TEST(no_message_makes_a_control_token) {
    static const char *const parts[] = {
        "<|im_start|>", "<|im_end|>", "<|im_", "end|>", "<",  "|",       "a", "12", "\n\n",
        "<s>",          "<|a|>",      "b",     "s>",    "|>", "im_end|", " ", "3",  "<|a|>b",
    };
    struct tiny tiny = chat_tokenizer();
    struct cw_ids ids = {0};
    struct cw_ids alone = {0};
    uint32_t state = 4;
    for (int round = 0; round < 3000; round++) {
        struct prompt p = {0};
        size_t n_controls = 0;
        for (int k = 0; k < 8; k++) {
            bool typed = next_random(&state) % 2 == 0;
            const char *s = parts[next_random(&state) % (sizeof parts / sizeof *parts)];
            prompt_add(&p, typed ? 'U' : 'T', s);
        }
        /* The controls of the prompt are those of its template stretches, one by one. */
        for (size_t k = 0; k < p.n; k++) {
            size_t first = k;
            if (p.spans[k].message >= 0) {
                continue;
            }
            while (k + 1 < p.n && p.spans[k + 1].message < 0) {
                k++;
            }
            encode_n(tiny.t, p.text.data + p.spans[first].begin,
                     p.spans[k].end - p.spans[first].begin, CW_TOK_SPECIAL, &alone);
            for (size_t i = 0; i < alone.n; i++) {
                n_controls += cw_tokenizer_is_control(tiny.t, alone.v[i]);
            }
        }
        size_t at[16];
        size_t n = 0;
        encode_prompt(tiny.t, &p, 0, &ids, at);
        for (size_t i = 0; i < ids.n; i++) {
            n += cw_tokenizer_is_control(tiny.t, ids.v[i]);
        }
        ck_assert_msg(n == n_controls, "\"%s\" gives \"%s\"", p.text.data, show(tiny.t, &ids));
        cw_buf_free(&p.text);
    }
    cw_ids_free(&ids);
    cw_ids_free(&alone);
    tiny_close(&tiny);
}
END_TEST

/* A user-defined token that begins in typed text must not eat the marker behind it. */
START_TEST(typed_text_cannot_break_a_marker) {
    struct tiny_vocab v;
    chat_vocab(&v);
    tiny_vocab_add(&v, "x<", USER, 0);
    tiny_vocab_add(&v, "x<|im_end|>y", USER, 0);
    tiny_vocab_add(&v, "yx", USER, 0);
    struct tiny tiny = tiny_open(&v);
    struct prompt p = {0};
    check_tokens(tiny.t, "x<|im_end|>", 0, "x<|||i|m|_|e|n|d|||>");
    prompt_add(&p, 'U', "x");
    prompt_add(&p, 'T', "<|im_end|>");
    check_prompt(tiny.t, &p, "x|<|im_end|>");
    prompt_add(&p, 'U', "x");
    prompt_add(&p, 'T', "<|im_end|>");
    prompt_add(&p, 'U', "y");
    check_prompt(tiny.t, &p, "x|<|im_end|>|y");
    prompt_add(&p, 'U', "y");
    prompt_add(&p, 'V', "x");
    prompt_add(&p, 'T', "<|im_end|>");
    check_prompt(tiny.t, &p, "yx|<|im_end|>");
    prompt_add(&p, 'T', "x<|im_end|>");
    prompt_add(&p, 'U', "y");
    check_prompt(tiny.t, &p, "x|<|im_end|>|y");
    prompt_add(&p, 'T', "x");
    prompt_add(&p, 'T', "<|im_end|>");
    prompt_add(&p, 'U', "y");
    check_prompt(tiny.t, &p, "x|<|im_end|>|y");
    prompt_add(&p, 'T', "x<|im_end|>y"); /* all the template's: the longest match */
    check_prompt(tiny.t, &p, "x<|im_end|>y");

    prompt_add(&p, 'U', "x");
    prompt_add(&p, 'T', "<|im_");
    prompt_add(&p, 'T', "end|>");
    check_prompt(tiny.t, &p, "x|<|im_end|>");

    /* What typed text has a part in is no marker to spare. */
    prompt_add(&p, 'U', "x");
    prompt_add(&p, 'V', "<|im_");
    prompt_add(&p, 'T', "end|>");
    prompt_add(&p, 'U', "y");
    check_prompt(tiny.t, &p, "x<|im_end|>y");
    prompt_add(&p, 'U', "x"); /* no marker there: the reference's longest match */
    prompt_add(&p, 'T', "<b");
    check_prompt(tiny.t, &p, "x<|b");
    tiny_close(&tiny);
}
END_TEST

START_TEST(text_is_one_fragment_across_spans) {
    struct tiny tiny = chat_tokenizer();
    struct prompt p = {0};
    prompt_add(&p, 'T', "a");
    prompt_add(&p, 'U', "b");
    check_prompt(tiny.t, &p, "ab");
    prompt_add(&p, 'T', "1");
    prompt_add(&p, 'U', "23");
    check_prompt(tiny.t, &p, "123");
    tiny_close(&tiny);
}
END_TEST

START_TEST(given_ids_stand_for_their_text) {
    static const int32_t reply[] = {'x', 'y'}; /* a token's id is its byte here */
    static const int32_t nothing[1];
    struct tiny tiny = chat_tokenizer();
    struct cw_ids ids = {0};
    struct prompt p = {0};
    size_t at[16];
    prompt_add(&p, 'T', "<|im_start|>a");
    prompt_add(&p, 'U', "ab");
    prompt_add(&p, 'T', "b<|im_end|>");
    p.spans[1].ids = reply;
    p.spans[1].n_ids = 2;
    encode_prompt(tiny.t, &p, 0, &ids, at);
    ck_assert_uint_eq(ids.n, 6);
    ck_assert_int_eq(ids.v[0], IM_START);
    ck_assert_int_eq(ids.v[1], 'a');
    ck_assert_int_eq(ids.v[2], 'x');
    ck_assert_int_eq(ids.v[3], 'y');
    ck_assert_int_eq(ids.v[4], 'b');
    ck_assert_int_eq(ids.v[5], IM_END);
    ck_assert_uint_eq(at[0], 0);
    ck_assert_uint_eq(at[1], 2);
    ck_assert_uint_eq(at[2], 4);

    p.spans[1].ids = nothing; /* no ids: the text is gone, and still parts what it parted */
    p.spans[1].n_ids = 0;
    encode_prompt(tiny.t, &p, 0, &ids, at);
    ck_assert_str_eq(show(tiny.t, &ids), "<|im_start|>|a|b|<|im_end|>");
    ck_assert_uint_eq(at[1], 2);
    ck_assert_uint_eq(at[2], 2);

    /* A marker on both sides of given ids is no marker. */
    cw_buf_clear(&p.text);
    p.n = 0;
    prompt_add(&p, 'T', "<|im_");
    prompt_add(&p, 'T', "--");
    prompt_add(&p, 'T', "end|>");
    p.spans[1].ids = nothing;
    encode_prompt(tiny.t, &p, 0, &ids, NULL);
    ck_assert_str_eq(show(tiny.t, &ids), "<|||i|m|_|e|n|d|||>");
    cw_buf_free(&p.text);
    cw_ids_free(&ids);
    tiny_close(&tiny);
}
END_TEST

START_TEST(spans_out_of_order_are_refused) {
    struct tiny tiny = chat_tokenizer();
    struct cw_ids ids = {0};
    struct cw_err err = {0};
    struct cw_span gap[] = {{.begin = 0, .end = 1}, {.begin = 2, .end = 3}};
    struct cw_span back[] = {{.begin = 2, .end = 1}};
    struct cw_span huge[] = {{.begin = 0, .end = SIZE_MAX}};
    cw_ids_add(&ids, 7);
    ck_assert_int_eq(cw_tokenizer_encode_spans(tiny.t, "abc", gap, 2, 0, &ids, NULL, &err),
                     CW_EINVAL);
    ck_assert_int_eq(cw_tokenizer_encode_spans(tiny.t, "abc", back, 1, 0, &ids, NULL, &err),
                     CW_EINVAL);
    ck_assert_int_eq(cw_tokenizer_encode_spans(tiny.t, "abc", huge, 1, 0, &ids, NULL, &err),
                     CW_EINVAL);
    ck_assert_int_eq(cw_tokenizer_encode_spans(tiny.t, "", NULL, 0, 0, &ids, NULL, &err), CW_OK);
    ck_assert_uint_eq(ids.n, 1); /* as before */
    cw_ids_free(&ids);
    tiny_close(&tiny);
}
END_TEST

/* --- begin and end tokens --- */

START_TEST(begin_and_end_tokens_as_the_file_asks) {
    struct tiny_vocab v;
    struct tiny tiny;
    struct prompt p = {0};
    struct cw_ids ids = {0};

    chat_vocab(&v); /* no key at all: nothing is invented */
    tiny = tiny_open(&v);
    ck_assert_int_eq(cw_tokenizer_bos(tiny.t), -1);
    ck_assert_int_eq(cw_tokenizer_eos(tiny.t), -1);
    ck_assert(!cw_tokenizer_adds_bos(tiny.t));
    check_tokens(tiny.t, "ab", CW_TOK_BOS_EOS, "ab");
    tiny_close(&tiny);

    chat_vocab(&v);
    mkgguf_u32(&v.m, "tokenizer.ggml.bos_token_id", BOS);
    mkgguf_u32(&v.m, "tokenizer.ggml.eos_token_id", IM_END);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", true);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_eos_token", true);
    tiny = tiny_open(&v);
    ck_assert(cw_tokenizer_adds_bos(tiny.t) && cw_tokenizer_adds_eos(tiny.t));
    check_tokens(tiny.t, "ab", 0, "ab");
    check_tokens(tiny.t, "ab", CW_TOK_BOS_EOS, "<s>|ab|<|im_end|>");
    check_tokens(tiny.t, "", CW_TOK_BOS_EOS, "<s>|<|im_end|>");

    /* A template that writes them itself gets no second ones; one that does not gets them. */
    size_t at[4];
    prompt_add(&p, 'T', "<s>");
    prompt_add(&p, 'U', "ab");
    prompt_add(&p, 'T', "<|im_end|>");
    encode_prompt(tiny.t, &p, CW_TOK_BOS_EOS, &ids, at);
    ck_assert_str_eq(show(tiny.t, &ids), "<s>|ab|<|im_end|>");
    ck_assert_uint_eq(at[0], 0);
    ck_assert_uint_eq(at[1], 1);
    ck_assert_uint_eq(at[2], 2);
    cw_buf_clear(&p.text);
    p.n = 0;
    prompt_add(&p, 'T', "a");
    prompt_add(&p, 'U', "<s>");
    encode_prompt(tiny.t, &p, CW_TOK_BOS_EOS, &ids, at);
    ck_assert_str_eq(show(tiny.t, &ids), "<s>|a|<|s|>|<|im_end|>");
    ck_assert_uint_eq(at[0], 1);
    ck_assert_uint_eq(at[1], 2);
    cw_buf_free(&p.text);
    tiny_close(&tiny);

    /* Asked for, but not named. */
    chat_vocab(&v);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", true);
    tiny = tiny_open(&v);
    ck_assert(!cw_tokenizer_adds_bos(tiny.t));
    ck_assert_ptr_nonnull(cw_tokenizer_notice(tiny.t, 0));
    check_tokens(tiny.t, "ab", CW_TOK_BOS_EOS, "ab");
    tiny_close(&tiny);
    cw_ids_free(&ids);
}
END_TEST

/* --- end of generation --- */

static bool ends(const struct tiny *tiny, const char *s) {
    return cw_tokenizer_is_eog(tiny->t, cw_tokenizer_find(tiny->t, s, strlen(s)));
}

START_TEST(end_markers) {
    struct tiny_vocab v;
    struct tiny tiny;

    chat_vocab(&v);
    mkgguf_u32(&v.m, "tokenizer.ggml.eos_token_id", BOS);
    mkgguf_u32(&v.m, "tokenizer.ggml.eot_token_id", USER_12);
    mkgguf_u32(&v.m, "tokenizer.ggml.eom_token_id", 9999); /* out of range */
    tiny_vocab_add(&v, "</s>", NORMAL, 0);
    tiny_vocab_add(&v, "<|end|>", USER, 0);
    tiny = tiny_open(&v);
    ck_assert(ends(&tiny, "<s>"));        /* eos of the file */
    ck_assert(ends(&tiny, "12"));         /* eot of the file, whatever its type */
    ck_assert(ends(&tiny, "<|im_end|>")); /* known, and a control token */
    ck_assert(ends(&tiny, "<|endoftext|>"));
    ck_assert(!ends(&tiny, "<|im_start|>")); /* a control token that ends nothing */
    ck_assert(!ends(&tiny, "</s>"));         /* text here */
    ck_assert(!ends(&tiny, "<|end|>"));
    ck_assert(!cw_tokenizer_is_eog(tiny.t, -1));
    ck_assert(!cw_tokenizer_is_eog(tiny.t, 9999));
    ck_assert_ptr_nonnull(strstr(cw_tokenizer_notice(tiny.t, 0), "eom_token_id"));
    tiny_close(&tiny);

    /* Where the chat template writes it, the type was wrong: it ends a turn and cannot be typed. */
    chat_vocab(&v);
    mkgguf_str(&v.m, "tokenizer.chat_template", "{{ m.content }}<|end|><|user|>");
    tiny_vocab_add(&v, "<|end|>", NORMAL, 0);
    tiny_vocab_add(&v, "<|user|>", USER, 0);
    tiny_vocab_add(&v, "<|other|>", USER, 0);
    tiny = tiny_open(&v);
    ck_assert(ends(&tiny, "<|end|>"));
    ck_assert(!ends(&tiny, "<|user|>"));
    check_tokens(tiny.t, "<|user|>", 0, "<|||u|s|e|r|||>");
    check_tokens(tiny.t, "<|user|>", CW_TOK_SPECIAL, "<|user|>");
    check_tokens(tiny.t, "<|end|>", 0, "<|||e|n|d|||>");
    check_tokens(tiny.t, "<|other|>", 0, "<|other|>"); /* not the template's: text as before */
    ck_assert_ptr_nonnull(cw_tokenizer_notice(tiny.t, 1));
    tiny_close(&tiny);

    /* Channels: <|end|> parts them, <|return|> and <|call|> end the turn. */
    chat_vocab(&v);
    tiny_vocab_add(&v, "<|end|>", CONTROL, 0);
    tiny_vocab_add(&v, "<|return|>", CONTROL, 0);
    tiny_vocab_add(&v, "<|call|>", CONTROL, 0);
    tiny_vocab_add(&v, "<reponame>", CONTROL, 0);
    tiny_vocab_add(&v, "<fim_pad>", CONTROL, 0);
    tiny_vocab_add(&v, "<fim_prefix>", CONTROL, 0);
    tiny = tiny_open(&v);
    ck_assert(!ends(&tiny, "<|end|>"));
    ck_assert(ends(&tiny, "<|return|>"));
    ck_assert(ends(&tiny, "<|call|>"));
    ck_assert(ends(&tiny, "<reponame>")); /* of code to complete */
    ck_assert(ends(&tiny, "<fim_pad>"));
    ck_assert(!ends(&tiny, "<fim_prefix>"));
    tiny_close(&tiny);
}
END_TEST

/* A vocabulary as that of Phi-3, with its placeholders or without. */
static struct tiny phi_tokenizer(const char *model, bool placeholders) {
    struct tiny_vocab v;
    tiny_vocab_init(&v, model, strcmp(model, "gpt2") == 0 ? "gpt-2" : NULL);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", false);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_space_prefix", false);
    if (strcmp(model, "gpt2") == 0) {
        tiny_vocab_add_alphabet(&v);
    } else {
        tiny_vocab_add_byte_tokens(&v);
        tiny_vocab_add(&v, "a", NORMAL, 0);
        tiny_vocab_add(&v, BLANK, NORMAL, 0);
    }
    tiny_vocab_add(&v, "<unk>", UNKNOWN, 0);
    tiny_vocab_add(&v, "<s>", CONTROL, 0);
    tiny_vocab_add(&v, "</s>", CONTROL, 0);
    tiny_vocab_add(&v, "<|endoftext|>", CONTROL, 0);
    if (placeholders) {
        tiny_vocab_add(&v, "<|placeholder1|>", CONTROL, 0);
    }
    tiny_vocab_add(&v, "<|user|>", CONTROL, 0);
    tiny_vocab_add(&v, "<|end|>", CONTROL, 0);
    tiny_vocab_add(&v, "<mine>", USER, 0);
    return tiny_open(&v);
}

START_TEST(markers_of_phi3_take_the_white_space_behind_them) {
    static const struct {
        const char *model;
        bool placeholders, strips;
    } files[] = {
        {"llama", true, true},
        {"llama", false, false},
        {"gpt2", true, false},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct tiny tiny = phi_tokenizer(files[i].model, files[i].placeholders);
        struct cw_tokenizer *t = tiny.t;
        if (!files[i].strips) {
            struct cw_ids ids = {0};
            encode_n(t, "<|user|>\na", 10, CW_TOK_SPECIAL, &ids);
            ck_assert_uint_eq(ids.n, 3);
            cw_ids_free(&ids);
            tiny_close(&tiny);
            continue;
        }
        check_tokens(t, "<|user|>\na<|end|>\n", CW_TOK_SPECIAL, "<|user|>|a|<|end|>");
        check_tokens(t, "<|end|> \t\n\v\f\r<|end|>a", CW_TOK_SPECIAL, "<|end|>|<|end|>|a");
        check_tokens(t, "</s> a<mine> a", CW_TOK_SPECIAL, "</s>|a|<mine>|a");
        check_tokens(t, "<mine>  ", 0, "<mine>");
        struct cw_ids ids = {0};
        encode_n(t, "<s> <unk> <|endoftext|> ", 24, CW_TOK_SPECIAL, &ids);
        ck_assert_uint_eq(ids.n, 6); /* these three leave it */

        /* Also where the white space is the beginning of what was typed, or all of it. */
        static const char text[] = "<|user|>\n  a<|end|>\n \n<|end|>\n";
        const struct cw_span spans[] = {
            {0, 9, -1, NULL, 0},  {9, 12, 0, NULL, 0},   {12, 20, -1, NULL, 0},
            {20, 22, 1, NULL, 0}, {22, 29, -1, NULL, 0}, {29, 30, -1, NULL, 0},
        };
        size_t at[6];
        ids.n = 0;
        ck_assert_int_eq(cw_tokenizer_encode_spans(t, text, spans, 6, 0, &ids, at, NULL), CW_OK);
        ck_assert_str_eq(show(t, &ids), "<|user|>|a|<|end|>|<|end|>");
        static const size_t want[] = {0, 1, 2, 3, 3, 4};
        ck_assert_mem_eq(at, want, sizeof want);
        cw_ids_free(&ids);
        tiny_close(&tiny);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("special_tokens");
    TCase *tcase = tcase_create("special tokens");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, special_tokens_match_leftmost_longest);
    tcase_add_test(tcase, control_tokens_match_only_where_asked);
    tcase_add_test(tcase, special_tokens_match_as_the_definition_says);
    tcase_add_test(tcase, typed_markers_stay_text);
    tcase_add_test(tcase, no_message_makes_a_control_token);
    tcase_add_test(tcase, typed_text_cannot_break_a_marker);
    tcase_add_test(tcase, text_is_one_fragment_across_spans);
    tcase_add_test(tcase, given_ids_stand_for_their_text);
    tcase_add_test(tcase, spans_out_of_order_are_refused);
    tcase_add_test(tcase, begin_and_end_tokens_as_the_file_asks);
    tcase_add_test(tcase, end_markers);
    tcase_add_test(tcase, markers_of_phi3_take_the_white_space_behind_them);
    suite_add_tcase(suite, tcase);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
