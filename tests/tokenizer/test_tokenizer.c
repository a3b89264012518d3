/* SPDX-License-Identifier: MIT
 *
 * The tokenizer on small vocabularies: merges against a plain quadratic loop, special tokens,
 * rendered prompts, begin and end tokens, bytes that are no text, and files that are wrong.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text/tokenizer/tokenizer_impl.h"
#include "tiny_vocab.h"

#define BLANK "\xe2\x96\x81" /* U+2581 */

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void encode_n(struct cw_tokenizer *t, const char *text, size_t len, unsigned flags,
                     struct cw_ids *ids) {
    struct cw_err err = {0};
    ids->n = 0;
    int rc = cw_tokenizer_encode(t, text, len, flags, ids, &err);
    ck_assert_msg(rc == CW_OK, "%s", err.text);
}

/* The tokens of ids as their strings, joined by '|'. Static storage. */
static const char *show(const struct cw_tokenizer *t, const struct cw_ids *ids) {
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

static void check_tokens(struct cw_tokenizer *t, const char *text, unsigned flags,
                         const char *want) {
    struct cw_ids ids = {0};
    encode_n(t, text, strlen(text), flags, &ids);
    ck_assert_msg(strcmp(show(t, &ids), want) == 0, "\"%s\" gives \"%s\", not \"%s\"", text,
                  show(t, &ids), want);
    cw_ids_free(&ids);
}

static void check_round_trip(struct cw_tokenizer *t, const char *text, size_t len) {
    struct cw_ids ids = {0};
    struct cw_buf back = {0};
    encode_n(t, text, len, 0, &ids);
    cw_tokenizer_decode(t, ids.v, ids.n, false, &back);
    ck_assert_uint_eq(back.len, len);
    ck_assert(len == 0 || memcmp(back.data, text, len) == 0);
    cw_ids_free(&ids);
    cw_buf_free(&back);
}

/* --- merging --- */

/* What merging means, without any cleverness: as long as some neighbours can be joined, join the
 * leftmost of the lowest rank. `pieces` are strings; rank gives UINT32_MAX for no merge. */
typedef uint32_t rank_fn(void *ctx, const char *left, const char *right);

struct naive {
    char pieces[256][64];
    size_t n;
};

static void naive_merge(struct naive *w, rank_fn *rank, void *ctx) {
    for (;;) {
        size_t best = w->n;
        uint32_t best_rank = UINT32_MAX;
        for (size_t i = 0; i + 1 < w->n; i++) {
            uint32_t r = rank(ctx, w->pieces[i], w->pieces[i + 1]);
            if (r < best_rank) {
                best_rank = r;
                best = i;
            }
        }
        if (best == w->n) {
            return;
        }
        char joined[128];
        snprintf(joined, sizeof joined, "%s%s", w->pieces[best], w->pieces[best + 1]);
        strcpy(w->pieces[best], joined);
        memmove(w->pieces[best + 1], w->pieces[best + 2], (w->n - best - 2) * sizeof w->pieces[0]);
        w->n--;
    }
}

/* A merge list as the test keeps it. */
struct merge_list {
    char left[64][16], right[64][16];
    size_t n;
};

static uint32_t list_rank(void *ctx, const char *left, const char *right) {
    const struct merge_list *list = ctx;
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->left[i], left) == 0 && strcmp(list->right[i], right) == 0) {
            return (uint32_t)i;
        }
    }
    return UINT32_MAX;
}

/* Merges of a, b, c and what they make, in random order of usefulness. */
static void random_merges(struct tiny_vocab *v, struct merge_list *list, uint32_t *state) {
    char known[80][16] = {"a", "b", "c"};
    size_t n_known = 3;
    list->n = 0;
    while (list->n < 40) {
        const char *left = known[next_random(state) % n_known];
        const char *right = known[next_random(state) % n_known];
        if (strlen(left) + strlen(right) > 8 || list_rank(list, left, right) != UINT32_MAX) {
            continue;
        }
        strcpy(list->left[list->n], left);
        strcpy(list->right[list->n], right);
        list->n++;
        tiny_vocab_merge(v, left, right);
        char joined[16];
        snprintf(joined, sizeof joined, "%s%s", left, right);
        bool seen = false;
        for (size_t i = 0; i < n_known; i++) {
            seen = seen || strcmp(known[i], joined) == 0;
        }
        if (!seen) {
            strcpy(known[n_known++], joined);
        }
    }
}

static void random_word(char *out, size_t n, uint32_t *state) {
    for (size_t i = 0; i < n; i++) {
        out[i] = "abc"[next_random(state) % 3];
    }
    out[n] = '\0';
}

static void letters(const char *word, struct naive *w) {
    w->n = strlen(word);
    for (size_t i = 0; i < w->n; i++) {
        w->pieces[i][0] = word[i];
        w->pieces[i][1] = '\0';
    }
}

static void check_pieces(struct cw_tokenizer *t, const char *word, const struct naive *want) {
    struct cw_ids ids = {0};
    encode_n(t, word, strlen(word), 0, &ids);
    ck_assert_uint_eq(ids.n, want->n);
    for (size_t i = 0; i < ids.n; i++) {
        ck_assert_msg(cw_str_eq(cw_tokenizer_text(t, ids.v[i]), want->pieces[i]), "%s: %s", word,
                      show(t, &ids));
    }
    cw_ids_free(&ids);
}

START_TEST(bpe_merges_as_the_plain_loop_does) {
    uint32_t state = 1;
    for (int round = 0; round < 30; round++) {
        struct tiny_vocab v;
        static struct merge_list list;
        static struct naive want;
        tiny_vocab_init(&v, "gpt2", round % 2 == 0 ? "gpt-2" : "gemma4");
        if (round % 2 == 0) {
            tiny_vocab_add_alphabet(&v);
        } else {
            tiny_vocab_add_byte_tokens(&v);
            tiny_vocab_add(&v, "a", NORMAL, 0);
            tiny_vocab_add(&v, "b", NORMAL, 0);
            tiny_vocab_add(&v, "c", NORMAL, 0);
        }
        random_merges(&v, &list, &state);
        struct tiny tiny = tiny_open(&v);
        for (size_t n = 1; n < 60; n++) {
            char word[64];
            random_word(word, n, &state);
            letters(word, &want);
            naive_merge(&want, list_rank, &list);
            check_pieces(tiny.t, word, &want);
        }
        tiny_close(&tiny);
    }
}
END_TEST

/* SPM: a token's score ranks the merge that makes it. Here few scores, so that many are equal. */
struct score_list {
    char token[64][16];
    int score[64];
    size_t n;
};

static uint32_t score_rank_of(void *ctx, const char *left, const char *right) {
    const struct score_list *list = ctx;
    char joined[128];
    snprintf(joined, sizeof joined, "%s%s", left, right);
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->token[i], joined) == 0) {
            return (uint32_t)(1000 - list->score[i]);
        }
    }
    return UINT32_MAX;
}

START_TEST(spm_merges_as_the_plain_loop_does) {
    uint32_t state = 2;
    for (int round = 0; round < 30; round++) {
        static struct score_list list;
        static struct naive want;
        struct tiny_vocab v;
        tiny_vocab_init(&v, "llama", NULL);
        mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", false);
        mkgguf_bool(&v.m, "tokenizer.ggml.add_space_prefix", false);
        tiny_vocab_add_byte_tokens(&v);
        for (const char *c = "abc"; *c != '\0'; c++) {
            tiny_vocab_add_n(&v, c, 1, NORMAL, -100);
        }
        list.n = 0;
        while (list.n < 30) {
            char token[16];
            random_word(token, 2 + next_random(&state) % 5, &state);
            if (score_rank_of(&list, token, "") == UINT32_MAX) {
                strcpy(list.token[list.n], token);
                list.score[list.n] = (int)(next_random(&state) % 8) - 4;
                tiny_vocab_add(&v, token, NORMAL, (float)list.score[list.n]);
                list.n++;
            }
        }
        struct tiny tiny = tiny_open(&v);
        for (size_t n = 1; n < 60; n++) {
            char word[64];
            random_word(word, n, &state);
            letters(word, &want);
            naive_merge(&want, score_rank_of, &list);
            check_pieces(tiny.t, word, &want);
        }
        tiny_close(&tiny);
    }
}
END_TEST

/* A vocabulary in which a long run of one letter merges through many levels. */
static struct tiny doubling(const char *model, const char *pre) {
    struct tiny_vocab v;
    char s[300] = "a";
    tiny_vocab_init(&v, model, pre);
    if (strcmp(model, "llama") == 0) {
        mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", false);
        tiny_vocab_add_byte_tokens(&v);
        for (size_t n = 1; n <= 128; n *= 2) {
            memset(s, 'a', n);
            s[n] = '\0';
            tiny_vocab_add(&v, s, NORMAL, -(float)n);
        }
    } else {
        tiny_vocab_add_alphabet(&v);
        for (size_t n = 1; n <= 64; n *= 2) {
            memset(s, 'a', n);
            s[n] = '\0';
            tiny_vocab_merge(&v, s, s);
        }
    }
    return tiny_open(&v);
}

START_TEST(a_long_word_costs_its_length) {
    static const char *const kinds[][2] = {{"gpt2", "gpt-2"}, {"llama", NULL}};
    struct tiny tiny = doubling(kinds[_i][0], kinds[_i][1]);
    struct cw_ids ids = {0};
    struct cw_buf word = {0};
    for (size_t n = 1000; n <= 1024000; n *= 4) {
        while (word.len < n) {
            cw_buf_putc(&word, 'a');
        }
        uint64_t before = tiny.t->scratch.n_pairs;
        encode_n(tiny.t, word.data, word.len, 0, &ids);
        /* n pairs at first, then at most two for each of fewer than n joins. */
        ck_assert_uint_le(tiny.t->scratch.n_pairs - before, 3 * (n + 1));
        ck_assert_uint_ge(tiny.t->scratch.n_pairs - before, n - 1);
        ck_assert_uint_le(ids.n, n / 128 + 8);
    }
    cw_buf_free(&word);
    cw_ids_free(&ids);
    tiny_close(&tiny);
}
END_TEST

START_TEST(a_word_that_is_a_token) {
    static const struct {
        const char *pre, *want;
    } cases[] = {{"llama-bpe", "xyz"}, {"tekken", "xyz"}, {"qwen2", "xy|z"}, {"gpt-2", "xy|z"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tiny_vocab v;
        tiny_vocab_init(&v, "gpt2", cases[i].pre);
        tiny_vocab_add_alphabet(&v);
        tiny_vocab_merge(&v, "x", "y");
        tiny_vocab_add(&v, "xyz", NORMAL, 0); /* no merge reaches it */
        struct tiny tiny = tiny_open(&v);
        check_tokens(tiny.t, "xyz", 0, cases[i].want);
        tiny_close(&tiny);
    }
}
END_TEST

/* The first entry of a pair is its rank, whatever is said later. */
START_TEST(a_merge_listed_twice_keeps_its_first_rank) {
    struct tiny_vocab v;
    tiny_vocab_init(&v, "gpt2", "gpt-2");
    tiny_vocab_add_alphabet(&v);
    tiny_vocab_merge(&v, "a", "b");
    tiny_vocab_merge(&v, "b", "c");
    tiny_vocab_add_merge(&v, "a b");
    struct tiny tiny = tiny_open(&v);
    check_tokens(tiny.t, "abc", 0, "ab|c");
    tiny_close(&tiny);
}
END_TEST

/* --- byte-level vocabularies for what follows --- */

/* The alphabet, `ab`, chat markers and user-defined tokens. */
enum { IM_START = 257, IM_END, BOS, END_OF_TEXT, USER_12, USER_123, USER_23, USER_NL2, USER_NL3 };

static void chat_vocab(struct tiny_vocab *v) {
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

static struct tiny chat_tokenizer(void) {
    struct tiny_vocab v;
    chat_vocab(&v);
    return tiny_open(&v);
}

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

/* `at` against its definition: a token begins where the ones before it end. */
static void check_at(struct cw_tokenizer *t, const char *text, size_t len, uint32_t *state) {
    struct cw_span spans[12];
    size_t at[12];
    size_t n_spans = 0;
    struct cw_ids ids = {0};
    struct cw_ids plain = {0};
    struct cw_buf piece = {0};
    for (size_t begin = 0; begin < len || n_spans == 0;) {
        size_t left = len - begin;
        size_t n = n_spans == 11 ? left : next_random(state) % (left / 3 + 2);
        n = n < left ? n : left;
        spans[n_spans++] = (struct cw_span){.begin = begin, .end = begin + n, .message = 0};
        begin += n;
    }
    ck_assert_int_eq(cw_tokenizer_encode_spans(t, text, spans, n_spans, 0, &ids, at, NULL), CW_OK);
    encode_n(t, text, len, 0, &plain);
    ck_assert_uint_eq(ids.n, plain.n);
    ck_assert(ids.n == 0 || memcmp(ids.v, plain.v, ids.n * sizeof *ids.v) == 0);
    size_t k = 0;
    for (size_t i = 0; i <= ids.n; i++) {
        size_t begin = i == ids.n ? SIZE_MAX : piece.len;
        for (; k < n_spans && spans[k].begin <= begin; k++) {
            ck_assert_uint_eq(at[k], i);
        }
        if (i < ids.n) {
            cw_tokenizer_piece(t, ids.v[i], false, i == 0, &piece);
        }
    }
    ck_assert_uint_eq(k, n_spans);
    cw_ids_free(&ids);
    cw_ids_free(&plain);
    cw_buf_free(&piece);
}

/* --- any bytes at all --- */

/* Words, blanks, newlines, characters of all lengths, and bytes that are no text. */
static void random_bytes(struct cw_buf *out, size_t n, uint32_t *state) {
    static const char *const parts[] = {
        "a", "b", "ab", " ", "  ", "\n", "\xc3\xa9", "\xe4\xbd\xa0", "\xf0\x9f\x98\x80", "1", ".",
    };
    cw_buf_clear(out);
    while (out->len < n) {
        uint32_t r = next_random(state);
        if (r % 4 == 0) {
            cw_buf_putc(out, (char)next_random(state));
        } else {
            cw_buf_puts(out, parts[r / 4 % (sizeof parts / sizeof *parts)]);
        }
    }
}

static struct tiny spm_tokenizer(bool prefix) {
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

static struct tiny any_tokenizer(int i) {
    struct tiny_vocab v;
    if (i == 0) {
        return chat_tokenizer();
    }
    if (i < 3) {
        return spm_tokenizer(i == 1);
    }
    tiny_vocab_init(&v, "gpt2", "gemma4");
    tiny_vocab_add_byte_tokens(&v);
    tiny_vocab_add(&v, "<bos>", CONTROL, 0);
    mkgguf_u32(&v.m, "tokenizer.ggml.bos_token_id", 256);
    tiny_vocab_add(&v, "a", NORMAL, 0);
    tiny_vocab_add(&v, "b", NORMAL, 0);
    tiny_vocab_add(&v, "\n", NORMAL, 0);
    tiny_vocab_add(&v, BLANK, NORMAL, 0);
    tiny_vocab_merge(&v, BLANK, "a");
    tiny_vocab_merge(&v, "a", "b");
    tiny_vocab_merge(&v, "\n", "\n");
    return tiny_open(&v);
}
enum { N_KINDS = 4 };

START_TEST(any_bytes_come_back) {
    struct tiny tiny = any_tokenizer(_i);
    struct cw_buf text = {0};
    uint32_t state = 5;
    for (size_t n = 0; n < 600; n++) {
        random_bytes(&text, n / 2, &state);
        check_round_trip(tiny.t, text.data, text.len);
        check_at(tiny.t, text.data, text.len, &state);
    }
    static const char *const fixed[] = {
        "\xe6\xad",
        "a\xff"
        "b",
        "\xc0\x80",
        "\xed\xa0\x80",
        "\xf5\x80\x80\x80",
        "\xf0\x92\x92\x8f",
        "\n",
        "\t",
        " ",
        "  ",
        " a",
        "v<0x41>w",
        "V\xc3\xa6r s\xc3\xa5",
        "!\xc2\x85",
        "e\xcc\x81\xc3\xa9",
        "a\xc2\xa0"
        "b\xe3\x80\x80",
        "\n\n\n\n",
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        check_round_trip(tiny.t, fixed[i], strlen(fixed[i]));
    }
    check_round_trip(tiny.t, "x\0y", 3);
    check_round_trip(tiny.t, "", 0);
    cw_buf_free(&text);
    tiny_close(&tiny);
}
END_TEST

START_TEST(empty_text_has_no_tokens) {
    struct tiny tiny = any_tokenizer(_i);
    struct cw_ids ids = {0};
    encode_n(tiny.t, "", 0, 0, &ids);
    ck_assert_uint_eq(ids.n, 0);
    encode_n(tiny.t, NULL, 0, CW_TOK_BOS_EOS, &ids);
    ck_assert_uint_eq(ids.n, cw_tokenizer_adds_bos(tiny.t) ? 1 : 0);
    cw_ids_free(&ids);
    tiny_close(&tiny);
}
END_TEST

START_TEST(invalid_bytes_are_tokens_of_their_own) {
    struct tiny tiny = chat_tokenizer();
    struct cw_ids ids = {0};
    encode_n(tiny.t,
             "a\xff\xfe"
             "b",
             4, 0, &ids); /* a and b are not neighbours any more */
    ck_assert_uint_eq(ids.n, 4);
    encode_n(tiny.t,
             "\xe4\xbd"
             "ab",
             4, 0, &ids);
    ck_assert_uint_eq(ids.n, 3);
    ck_assert_int_eq(ids.v[2], 256);
    cw_ids_free(&ids);
    tiny_close(&tiny);
}
END_TEST

/* --- SPM --- */

START_TEST(spm_blank_in_front) {
    struct tiny with = spm_tokenizer(true);
    struct tiny without = spm_tokenizer(false);
    check_tokens(with.t, "ab", 0, BLANK "ab");
    check_tokens(with.t, " ab", 0, BLANK "|" BLANK "ab");
    check_tokens(with.t, "", 0, "");
    check_tokens(with.t, "ab", CW_TOK_BOS_EOS, "<s>|" BLANK "ab");
    check_tokens(with.t, "<s>ab</s>ab", CW_TOK_SPECIAL, "<s>|" BLANK "ab|</s>|" BLANK "ab");
    check_tokens(without.t, "ab", 0, "ab");
    check_tokens(without.t, " ab", 0, BLANK "ab");
    check_tokens(without.t, "<s>ab", CW_TOK_SPECIAL, "<s>|ab");

    /* One blank goes again, at the beginning only. */
    struct cw_buf out = {0};
    struct cw_ids ids = {0};
    encode_n(with.t, "<s>ab</s>ab", 11, CW_TOK_SPECIAL, &ids);
    cw_tokenizer_decode(with.t, ids.v, ids.n, true, &out);
    ck_assert_str_eq(out.data, "<s>ab</s> ab");
    cw_buf_clear(&out);
    encode_n(without.t, " ab", 3, 0, &ids);
    cw_tokenizer_decode(without.t, ids.v, ids.n, true, &out);
    ck_assert_str_eq(out.data, " ab");
    cw_buf_free(&out);
    cw_ids_free(&ids);
    tiny_close(&with);
    tiny_close(&without);
}
END_TEST

/* After a reply given as ids the text goes on; after a control token it begins. */
START_TEST(spm_blank_after_given_ids) {
    struct tiny tiny = spm_tokenizer(true);
    int32_t reply[] = {cw_tokenizer_find(tiny.t, "H", 1), cw_tokenizer_find(tiny.t, "</s>", 4)};
    struct cw_span spans[] = {
        {.begin = 0, .end = 1, .message = 0, .ids = reply, .n_ids = 1},
        {.begin = 1, .end = 3, .message = -1},
    };
    struct cw_ids ids = {0};
    ck_assert_int_eq(cw_tokenizer_encode_spans(tiny.t, "Hab", spans, 2, 0, &ids, NULL, NULL),
                     CW_OK);
    ck_assert_str_eq(show(tiny.t, &ids), "H|ab");
    ids.n = 0;
    spans[0].n_ids = 2;
    ck_assert_int_eq(cw_tokenizer_encode_spans(tiny.t, "Hab", spans, 2, 0, &ids, NULL, NULL),
                     CW_OK);
    ck_assert_str_eq(show(tiny.t, &ids), "H|</s>|" BLANK "ab");
    cw_ids_free(&ids);
    tiny_close(&tiny);
}
END_TEST

START_TEST(spm_byte_fallback) {
    struct tiny tiny = spm_tokenizer(false);
    check_tokens(tiny.t, "\xf0\x92\x92\x8f", 0, "<0xF0>|<0x92>|<0x92>|<0x8F>");
    check_tokens(tiny.t, "<0x41>", 0, "<0x3C>|<0x30>|<0x78>|<0x34>|<0x31>|<0x3E>");
    check_tokens(tiny.t, "a\nb", 0, "a|<0x0A>|b");
    /* A control token's string is not built from pieces either. */
    check_tokens(tiny.t, "<s>", 0, "<0x3C>|<0x73>|<0x3E>");
    tiny_close(&tiny);
}
END_TEST

START_TEST(spm_never_merges_into_special_tokens) {
    struct tiny_vocab v;
    tiny_vocab_init(&v, "llama", NULL);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", false);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_space_prefix", false);
    tiny_vocab_add(&v, "<unk>", UNKNOWN, 0);
    tiny_vocab_add(&v, "<s>", CONTROL, 9);
    tiny_vocab_add(&v, "ab", BYTE, 9);
    tiny_vocab_add(&v, "<s", NORMAL, 5);
    tiny_vocab_add(&v, "<", NORMAL, 0);
    tiny_vocab_add(&v, "s", NORMAL, 0);
    tiny_vocab_add(&v, ">", NORMAL, 0);
    tiny_vocab_add(&v, "a", NORMAL, 0);
    tiny_vocab_add(&v, "b", NORMAL, 0);
    struct tiny tiny = tiny_open(&v);
    check_tokens(tiny.t, "<s>", 0, "<s|>");
    check_tokens(tiny.t, "ab", 0, "a|b");
    /* No byte entries: one unknown token a character, and no failure. */
    check_tokens(tiny.t, "a\xe4\xbd\xa0z", 0, "a|<unk>|<unk>");
    tiny_close(&tiny);
}
END_TEST

/* --- bytes that a vocabulary lacks --- */

static void alphabet_without(struct tiny_vocab *v, const char *missing) {
    tiny_vocab_init(v, "gpt2", "gpt-2");
    for (int b = 0; b < 256; b++) {
        char s[4];
        if (memchr(missing, b, strlen(missing)) == NULL) {
            int n = cw_byte_to_char((uint8_t)b) < 0x80 ? 1 : 2;
            uint32_t c = cw_byte_to_char((uint8_t)b);
            s[0] = (char)(n == 1 ? c : 0xc0 | c >> 6);
            s[1] = (char)(0x80 | (c & 0x3f));
            tiny_vocab_add_n(v, s, (size_t)n, NORMAL, 0);
        }
    }
}

START_TEST(a_missing_byte_never_becomes_a_marker) {
    struct tiny_vocab v;
    struct cw_ids ids = {0};
    struct cw_buf out = {0};
    struct cw_err err = {0};
    struct tiny tiny;

    /* The file's unknown token is its end marker: U+FFFD then. */
    alphabet_without(&v, "\x04\xff");
    mkgguf_u32(&v.m, "tokenizer.ggml.unknown_token_id",
               (uint32_t)tiny_vocab_add(&v, "<|endoftext|>", CONTROL, 0));
    tiny = tiny_open(&v);
    encode_n(tiny.t,
             "a\x04"
             "b\xff",
             4, CW_TOK_SPECIAL, &ids);
    cw_tokenizer_decode(tiny.t, ids.v, ids.n, true, &out);
    ck_assert_str_eq(out.data, "a\xef\xbf\xbd"
                               "b\xef\xbf\xbd");
    tiny_close(&tiny);

    /* A real unknown token. */
    alphabet_without(&v, "\x04");
    tiny_vocab_add(&v, "<unk>", UNKNOWN, 0);
    tiny = tiny_open(&v);
    check_tokens(tiny.t, "a\x04", 0, "a|<unk>");
    tiny_close(&tiny);

    /* Neither. */
    alphabet_without(&v, "\x04\xef");
    tiny = tiny_open(&v);
    ids.n = 0;
    ck_assert_int_eq(cw_tokenizer_encode(tiny.t, "a\x04", 2, 0, &ids, &err), CW_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, "0x04"));
    ck_assert_uint_eq(ids.n, 0);
    tiny_close(&tiny);
    cw_ids_free(&ids);
    cw_buf_free(&out);
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
    tiny = tiny_open(&v);
    ck_assert(!ends(&tiny, "<|end|>"));
    ck_assert(ends(&tiny, "<|return|>"));
    ck_assert(ends(&tiny, "<|call|>"));
    tiny_close(&tiny);
}
END_TEST

/* --- ids to text --- */

START_TEST(pieces) {
    struct tiny tiny = chat_tokenizer();
    struct cw_buf out = {0};
    cw_tokenizer_piece(tiny.t, IM_END, false, false, &out);
    cw_tokenizer_piece(tiny.t, -1, true, false, &out);
    cw_tokenizer_piece(tiny.t, 1 << 30, true, false, &out);
    ck_assert_uint_eq(out.len, 0);
    cw_tokenizer_piece(tiny.t, IM_END, true, false, &out);
    cw_tokenizer_piece(tiny.t, USER_NL2, false, false, &out);
    cw_tokenizer_piece(tiny.t, cw_tokenizer_find(tiny.t, "\xc4\xa0", 2), false, true, &out);
    ck_assert_str_eq(out.data, "<|im_end|>\n\n ");
    ck_assert_int_eq(cw_tokenizer_find(tiny.t, "<|im_start|>", 12), IM_START);
    ck_assert_int_eq(cw_tokenizer_find(tiny.t, "nothing", 7), -1);
    ck_assert_int_eq(cw_tokenizer_find(tiny.t, "", 0), -1);
    ck_assert_ptr_null(cw_tokenizer_text(tiny.t, -1).data);
    ck_assert_ptr_null(cw_tokenizer_text(tiny.t, 1 << 30).data);
    ck_assert_str_eq(cw_tokenizer_model_name(tiny.t), "gpt2");
    ck_assert_str_eq(cw_tokenizer_pre_name(tiny.t), "gpt-2");
    ck_assert_ptr_null(cw_tokenizer_notice(tiny.t, 0));
    cw_buf_free(&out);
    tiny_close(&tiny);
}
END_TEST

START_TEST(byte_alphabet_is_a_bijection) {
    for (int b = 0; b < 256; b++) {
        ck_assert_int_eq(cw_char_to_byte(cw_byte_to_char((uint8_t)b)), b);
    }
    ck_assert_uint_eq(cw_byte_to_char(' '), 0x120);
    ck_assert_uint_eq(cw_byte_to_char('\n'), 0x10a);
    ck_assert_uint_eq(cw_byte_to_char('!'), '!');
    ck_assert_uint_eq(cw_byte_to_char(0xad), 0x143);
    int n = 0;
    for (uint32_t c = 0; c < 0x110000; c++) {
        n += cw_char_to_byte(c) >= 0;
    }
    ck_assert_int_eq(n, 256);
}
END_TEST

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
    check_refused(&v, NULL, CW_EUNSUP, "not-heard-of");
    tiny_vocab_init(&v, "gpt2", "not-heard-of");
    tiny_vocab_add_alphabet(&v);
    check_refused(&v, NULL, CW_EUNSUP, "--pre");
    chat_vocab(&v);
    check_refused(&v, "wrong-override", CW_EUNSUP, "wrong-override");
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
    Suite *suite = suite_create("tokenizer");
    TCase *tcase = tcase_create("merging");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, bpe_merges_as_the_plain_loop_does);
    tcase_add_test(tcase, spm_merges_as_the_plain_loop_does);
    tcase_add_loop_test(tcase, a_long_word_costs_its_length, 0, 2);
    tcase_add_test(tcase, a_word_that_is_a_token);
    tcase_add_test(tcase, a_merge_listed_twice_keeps_its_first_rank);
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("special tokens");
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
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("bytes");
    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, any_bytes_come_back, 0, N_KINDS);
    tcase_add_loop_test(tcase, empty_text_has_no_tokens, 0, N_KINDS);
    tcase_add_test(tcase, invalid_bytes_are_tokens_of_their_own);
    tcase_add_test(tcase, spm_blank_in_front);
    tcase_add_test(tcase, spm_blank_after_given_ids);
    tcase_add_test(tcase, spm_byte_fallback);
    tcase_add_test(tcase, spm_never_merges_into_special_tokens);
    tcase_add_test(tcase, a_missing_byte_never_becomes_a_marker);
    tcase_add_test(tcase, pieces);
    tcase_add_test(tcase, byte_alphabet_is_a_bijection);
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("wrong files");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, missing_keys_are_named);
    tcase_add_test(tcase, unknown_kinds_are_named);
    tcase_add_test(tcase, pre_tokenizer_by_override_and_default);
    tcase_add_test(tcase, lists_of_the_wrong_kind_or_length_are_named);
    tcase_add_test(tcase, types_of_other_widths);
    tcase_add_test(tcase, special_ids_out_of_range_are_left_out);
    tcase_add_test(tcase, odd_token_strings_do_no_harm);
    tcase_add_test(tcase, merges_of_unknown_tokens_are_left_out);
    tcase_add_test(tcase, scores_that_are_no_numbers);
    suite_add_tcase(suite, tcase);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
