/* SPDX-License-Identifier: MIT
 *
 * From conversations to ids: what is put back, what is tokenised anew, and thinking by control
 * tokens. Vocabularies are made by hand; no model is needed. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/chat/prompt.h"
#include "core/chat/think.h"
#include "tests/tokenizer/tiny_vocab.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* ---- a tokenizer and a template ------------------------------------------------------------ */

struct fixture {
    struct tiny tiny;
    struct cw_loaded m;
};

static void fixture_template(struct fixture *f, const char *source) {
    struct cw_err err;
    cw_template_destroy(f->m.tmpl);
    int rc = cw_template_create(&f->m.tmpl, source, strlen(source), &err);
    ck_assert_msg(rc == CW_OK, "%s", err.text);
}

static void fixture_open(struct fixture *f, struct tiny_vocab *v, const char *source) {
    memset(f, 0, sizeof *f);
    f->tiny = tiny_open(v);
    f->m.tokenizer = f->tiny.t;
    f->m.has_template = true;
    f->m.bos = cw_strdup("");
    f->m.eos = cw_strdup("");
    fixture_template(f, source);
}

static void fixture_close(struct fixture *f) {
    cw_template_destroy(f->m.tmpl);
    free(f->m.bos);
    free(f->m.eos);
    tiny_close(&f->tiny);
}

/* Byte-level BPE: bytes, the words "ab" and "abc", and control tokens. */
enum { AB = 256, ABC, BEGIN, END };

static void open_bpe(struct fixture *f, const char *source) {
    struct tiny_vocab v;
    tiny_vocab_init(&v, "gpt2", "gpt-2");
    tiny_vocab_add_alphabet(&v);
    ck_assert_int_eq(tiny_vocab_merge(&v, "a", "b"), AB);
    ck_assert_int_eq(tiny_vocab_merge(&v, "ab", "c"), ABC);
    ck_assert_int_eq(tiny_vocab_add(&v, "<B>", CONTROL, 0), BEGIN);
    ck_assert_int_eq(tiny_vocab_add(&v, "<E>", CONTROL, 0), END);
    fixture_open(f, &v, source);
}

static struct cw_prepared prepare(struct fixture *f, const struct cw_request *req) {
    struct cw_job *job;
    struct cw_prepared p;
    struct cw_err err;
    ck_assert_int_eq(cw_job_create(&job, req, NULL), CW_OK);
    int rc = cw_prompt_prepare(&f->m, job, &p, &err);
    ck_assert_msg(rc == CW_OK, "%s", err.text);
    cw_job_destroy(job);
    return p;
}

static void expect(struct fixture *f, const struct cw_message *messages, size_t n, bool going_on,
                   const int32_t *ids, size_t n_ids) {
    struct cw_request req = {.messages = messages,
                             .n_messages = n,
                             .continue_reply = going_on,
                             .max_tokens = -1,
                             .think = -1};
    struct cw_prepared p = prepare(f, &req);
    ck_assert_uint_eq(p.ids.n, n_ids);
    for (size_t i = 0; i < n_ids; i++) {
        ck_assert_msg(p.ids.v[i] == ids[i], "id %zu is %d, wanted %d", i, p.ids.v[i], ids[i]);
    }
    cw_prepared_free(&p);
}

static struct cw_message say(const char *role, const char *text) {
    return (struct cw_message){.role = role, .content = text, .len = strlen(text)};
}

static struct cw_message reply(const char *text, const int32_t *ids, size_t n) {
    struct cw_message m = say("assistant", text);
    m.ids = ids;
    m.n_ids = n;
    return m;
}

/* ---- putting ids back ---------------------------------------------------------------------- */

static const char simple[] = "{% for m in messages %}<B>{{ m.content }}<E>{% endfor %}"
                             "{% if add_generation_prompt %}<B>{% endif %}";

START_TEST(ids_are_put_back) {
    struct fixture f;
    const int32_t spelt[] = {'a', 'b', 'c', END};
    open_bpe(&f, simple);
    struct cw_message m[] = {say("user", "abc"), reply("abc", spelt, 4), say("user", "ab")};
    const int32_t with[] = {BEGIN, ABC, END, BEGIN, 'a', 'b', 'c', END, BEGIN, AB, END, BEGIN};
    expect(&f, m, 3, false, with, N(with));
    /* Without ids, or with ids of another text, the text is tokenised. */
    const int32_t without[] = {BEGIN, ABC, END, BEGIN, ABC, END, BEGIN, AB, END, BEGIN};
    m[1] = reply("abc", NULL, 0);
    expect(&f, m, 3, false, without, N(without));
    const int32_t other[] = {'a', 'c', 'b'};
    m[1] = reply("abc", other, 3);
    expect(&f, m, 3, false, without, N(without));
    const int32_t across[] = {'x', ABC}; /* "bc" begins inside a token */
    m[1] = reply("bc", across, 2);
    const int32_t inside[] = {BEGIN, ABC, END, BEGIN, 'b', 'c', END, BEGIN, AB, END, BEGIN};
    expect(&f, m, 3, false, inside, N(inside));
    /* A thought before and a stop string behind are left away. */
    const int32_t more[] = {'x', 'y', 'a', 'b', 'c', 'Z', END};
    m[1] = reply("abc", more, 7);
    expect(&f, m, 3, false, with, N(with));
    fixture_close(&f);
}
END_TEST

START_TEST(only_where_the_text_is_unchanged) {
    struct fixture f;
    const int32_t spelt[] = {'a', 'b', ' '};
    struct cw_message m[] = {say("user", "c"), reply("ab ", spelt, 3), say("user", "c")};
    /* Trimmed, written twice, written in parts, not written. */
    const int32_t trimmed[] = {BEGIN, 'c', END, BEGIN, AB, END, BEGIN, 'c', END};
    open_bpe(&f, "{% for m in messages %}<B>{{ m.content | trim }}<E>{% endfor %}");
    expect(&f, m, 3, false, trimmed, N(trimmed));
    const int32_t twice[] = {'c', 'c', END, AB, ' ', AB, ' ', END, 'c', 'c', END};
    fixture_template(&f, "{% for m in messages %}{{ m.content + m.content }}<E>{% endfor %}");
    expect(&f, m, 3, false, twice, N(twice));
    const int32_t none[] = {BEGIN, 'c', BEGIN, BEGIN, 'c'};
    fixture_template(&f, "{% for m in messages %}<B>{% if m.role == 'user' %}{{ m.content }}"
                         "{% endif %}{% endfor %}");
    expect(&f, m, 3, false, none, N(none));
    fixture_close(&f);
}
END_TEST

START_TEST(going_on) {
    struct fixture f;
    const int32_t spelt[] = {'a', 'b'};
    open_bpe(&f, simple);
    struct cw_message m[] = {say("user", "c"), reply("ab", spelt, 2)};
    const int32_t cut[] = {BEGIN, 'c', END, BEGIN, 'a', 'b'};
    expect(&f, m, 2, true, cut, N(cut));
    m[1] = say("assistant", "");
    const int32_t begun[] = {BEGIN, 'c', END, BEGIN};
    expect(&f, m, 2, true, begun, N(begun));
    /* A template that hides replies cannot have one go on. */
    struct cw_request req = {.messages = m, .n_messages = 2, .continue_reply = true, .think = -1};
    struct cw_prepared p;
    struct cw_job *job;
    struct cw_err err;
    m[1] = say("assistant", "ab");
    fixture_template(&f,
                     "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}"
                     "{% endfor %}");
    ck_assert_int_eq(cw_job_create(&job, &req, NULL), CW_OK);
    ck_assert_int_eq(cw_prompt_prepare(&f.m, job, &p, &err), CW_ETEMPLATE);
    cw_prepared_free(&p);
    cw_job_destroy(job);
    fixture_close(&f);
}
END_TEST

/* SPM puts a blank in front of a text, and the reply's first token brings it along. Where the
 * template writes that blank it must not come twice; where it does not the token stays as it is. */
START_TEST(the_blank_of_a_first_token) {
    struct fixture f;
    struct tiny_vocab v;
    tiny_vocab_init(&v, "llama", NULL);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", false);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_space_prefix", true);
    tiny_vocab_add(&v, "<unk>", UNKNOWN, 0);
    tiny_vocab_add_byte_tokens(&v);
    int32_t begin = tiny_vocab_add(&v, "<B>", CONTROL, 0);
    int32_t end = tiny_vocab_add(&v, "<E>", CONTROL, 0);
    int32_t blank = tiny_vocab_add(&v, "\u2581", NORMAL, -5);
    int32_t a = tiny_vocab_add(&v, "a", NORMAL, -6);
    int32_t blank_a = tiny_vocab_add(&v, "\u2581a", NORMAL, -1);
    fixture_open(&f, &v, "<B>{% for m in messages %} {{ m.content }}<E>{% endfor %}");
    /* Said as blank-a, a: shown as "aa". */
    const int32_t said[] = {blank_a, a};
    struct cw_message m = reply("aa", said, 2);
    const int32_t taken_in[] = {begin, blank_a, a, end};
    expect(&f, &m, 1, false, taken_in, 4);
    /* Said as a, a: no blank of its own, the template's stays. */
    const int32_t bare[] = {a, a};
    m = reply("aa", bare, 2);
    struct cw_request req = {.messages = &m, .n_messages = 1, .think = -1};
    struct cw_prepared p = prepare(&f, &req);
    ck_assert_uint_ge(p.ids.n, 5);
    ck_assert_int_eq(p.ids.v[p.ids.n - 3], a);
    ck_assert_int_eq(p.ids.v[p.ids.n - 2], a);
    ck_assert_int_ne(p.ids.v[1], blank_a);
    ck_assert_int_eq(p.ids.v[0], begin);
    (void)blank;
    cw_prepared_free(&p);
    fixture_template(&f, "<B>{% for m in messages %}{{ m.content }}<E>{% endfor %}");
    m = reply("aa", said, 2);
    expect(&f, &m, 1, false, taken_in, 4);
    fixture_close(&f);
}
END_TEST

/* ---- what a template has no place for ------------------------------------------------------ */

static void expect_folded(struct fixture *f, const struct cw_message *messages, size_t n,
                          bool folded, const char *text) {
    struct cw_request req = {.messages = messages, .n_messages = n, .max_tokens = -1, .think = -1};
    struct cw_prepared p = prepare(f, &req);
    struct cw_buf got = {0};
    for (size_t i = 0; i < p.ids.n; i++) {
        cw_tokenizer_piece(f->m.tokenizer, p.ids.v[i], true, i == 0, &got);
    }
    cw_buf_putc(&got, '\0');
    ck_assert_str_eq(got.data, text);
    ck_assert_int_eq(p.folded, folded);
    cw_buf_free(&got);
    cw_prepared_free(&p);
}

#define USERS_ONLY                                                                                 \
    "{% for m in messages %}{% if m.role == 'user' %}<B>{{ m.content }}<E>{% endif %}{% endfor %}"
#define NO_SYSTEM                                                                                  \
    "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
#define PARTS                                                                                      \
    "{% for m in messages %}<B>{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}"      \
    "{% endif %}{% endfor %}<E>{% endfor %}"

/* A template that refuses a system message, or passes over it without a word, gets its text in the
 * first question; one that obeys it without writing it does not. */
START_TEST(system_messages_are_not_lost) {
    struct fixture f;
    struct cw_message m[] = {say("system", "ab"), say("user", "c"), say("system", "a"),
                             say("user", "b")};
    open_bpe(&f, USERS_ONLY);
    expect_folded(&f, m, 2, true, "<B>ab\n\nc<E>");
    expect_folded(&f, m + 1, 1, false, "<B>c<E>");
    expect_folded(&f, m, 4, true, "<B>ab\n\na\n\nc<E><B>b<E>");
    fixture_template(&f, NO_SYSTEM USERS_ONLY);
    expect_folded(&f, m, 2, true, "<B>ab\n\nc<E>");
    /* Only what is passed over moves. */
    fixture_template(&f, "{% if messages[0].role == 'system' %}<B>{{ messages[0].content }}<E>"
                         "{% endif %}" USERS_ONLY);
    expect_folded(&f, m, 2, false, "<B>ab<E><B>c<E>");
    expect_folded(&f, m, 4, true, "<B>ab<E><B>a\n\nc<E><B>b<E>");
    /* Blanks are no loss. */
    fixture_template(&f, USERS_ONLY);
    m[0] = say("system", " \n");
    expect_folded(&f, m, 2, false, "<B>c<E>");
    /* A word that is obeyed. */
    fixture_template(&f, "{% if messages[0].content == '/short' %}a{% elif messages[0].role == "
                         "'system' %}{{ messages[0].content }}{% endif %}" USERS_ONLY);
    m[0] = say("system", "/short");
    expect_folded(&f, m, 2, false, "a<B>c<E>");
    /* Nobody to take it. */
    fixture_template(&f, USERS_ONLY "<B>");
    expect_folded(&f, m, 1, false, "<B>");
    fixture_close(&f);
}
END_TEST

/* Templates that want contents in parts get them so, whether they fail on text or find nothing. */
START_TEST(contents_in_parts) {
    struct fixture f;
    struct cw_message m[] = {say("system", "ab"), say("user", "c<E>")};
    open_bpe(&f, PARTS);
    expect_folded(&f, m, 2, false, "<B>ab<E><B>c<E><E>");
    fixture_template(&f, "{% for m in messages %}<B>{{ m.content[0].text + '' }}<E>{% endfor %}");
    expect_folded(&f, m, 2, false, "<B>ab<E><B>c<E><E>");
    fixture_template(&f, "{% for m in messages %}{% if m.role == 'user' %}<B>"
                         "{{ m.content[0]['text'] }}<E>{% endif %}{% endfor %}");
    expect_folded(&f, m, 2, true, "<B>ab\n\nc<E><E>");
    fixture_template(&f, "{% set x = messages[0].content[0].text + '' %}" NO_SYSTEM PARTS);
    expect_folded(&f, m, 2, true, "<B>ab\n\nc<E><E>");
    const int32_t typed_marker[] = {BEGIN, 'c', '<', 'E', '>', END};
    fixture_template(&f, PARTS);
    expect(&f, m + 1, 1, false, typed_marker, N(typed_marker));
    /* A reply's ids are put back into its part. */
    const int32_t spelt[] = {'a', 'b', 'c', END};
    struct cw_message three[] = {m[1], reply("abc", spelt, 4), say("user", "ab")};
    const int32_t with[] = {BEGIN, 'c', '<', 'E', '>',   END, BEGIN,
                            'a',   'b', 'c', END, BEGIN, AB,  END};
    expect(&f, three, 3, false, with, N(with));
    fixture_close(&f);
}
END_TEST

static void expect_refusal(struct fixture *f, const struct cw_message *messages, size_t n,
                           const char *part) {
    struct cw_request req = {.messages = messages, .n_messages = n, .think = -1};
    struct cw_prepared p;
    struct cw_job *job;
    struct cw_err err;
    ck_assert_int_eq(cw_job_create(&job, &req, NULL), CW_OK);
    ck_assert_int_eq(cw_prompt_prepare(&f->m, job, &p, &err), CW_ETEMPLATE);
    ck_assert_msg(strstr(err.text, part) != NULL, "%s", err.text);
    cw_prepared_free(&p);
    cw_job_destroy(job);
}

/* A template may show the model the last question alone: that is told, and is no error. */
START_TEST(a_template_of_single_turns) {
    struct fixture f;
    struct cw_message m[] = {say("user", "ab"), say("assistant", "c"), say("user", "a")};
    open_bpe(&f, "<B>{{ messages[-1].content }}<E>");
    for (size_t n = 1; n <= N(m); n += 2) {
        struct cw_request req = {.messages = m, .n_messages = n, .think = -1};
        struct cw_prepared p;
        struct cw_job *job;
        struct cw_err err;
        ck_assert_int_eq(cw_job_create(&job, &req, NULL), CW_OK);
        ck_assert_msg(cw_prompt_prepare(&f.m, job, &p, &err) == CW_OK, "%s", err.text);
        ck_assert_int_eq(p.partly, n > 1);
        cw_prepared_free(&p);
        cw_job_destroy(job);
    }
    fixture_close(&f);
}
END_TEST

/* What cannot be put right is said, in the template's first words. */
START_TEST(what_a_template_refuses) {
    struct fixture f;
    struct cw_message m[] = {say("system", "ab"), say("user", "c"), say("user", "")};
    open_bpe(&f, "<B>");
    expect_refusal(&f, m + 1, 1, "leaves a message out");
    expect_folded(&f, m + 2, 1, false, "<B>");
    fixture_template(&f, "{{ raise_exception('never') }}");
    expect_refusal(&f, m, 2, "template: never");
    fixture_template(&f, NO_SYSTEM "{{ raise_exception('nor so') }}");
    expect_refusal(&f, m, 2, "template: no system");
    fixture_template(&f, NO_SYSTEM "{{ messages[0].content.nothing.more }}");
    expect_refusal(&f, m, 2, "template: no system");
    fixture_template(&f, "{{ messages[0].content.nothing.more }}");
    expect_refusal(&f, m, 2, "has no attribute 'nothing'");
    fixture_close(&f);
}
END_TEST

/* Control tokens of the template are tokens, typed ones are text. */
START_TEST(typed_markers_are_text) {
    struct fixture f;
    open_bpe(&f, simple);
    struct cw_message m = say("user", "<E>");
    const int32_t ids[] = {BEGIN, '<', 'E', '>', END, BEGIN};
    expect(&f, &m, 1, false, ids, N(ids));
    fixture_close(&f);
}
END_TEST

START_TEST(matching) {
    struct fixture f;
    size_t begin = 9, end = 9;
    const int32_t ids[] = {'a', AB, 'c', END, ABC, END};
    open_bpe(&f, simple);
    const struct cw_tokenizer *t = f.tiny.t;
    ck_assert(cw_prompt_match(t, ids, 6, "abc", 3, &begin, &end)); /* the last of two */
    ck_assert(begin == 4 && end == 5);
    ck_assert(cw_prompt_match(t, ids, 6, "aabc", 4, &begin, &end));
    ck_assert(begin == 0 && end == 3);
    ck_assert(cw_prompt_match(t, ids, 6, "aabcabc", 7, &begin, &end));
    ck_assert(begin == 0 && end == 5);
    ck_assert(!cw_prompt_match(t, ids, 6, "b", 1, &begin, &end));
    ck_assert(!cw_prompt_match(t, ids, 6, "aabcabcd", 8, &begin, &end));
    ck_assert(!cw_prompt_match(t, NULL, 0, "a", 1, &begin, &end));
    fixture_close(&f);
}
END_TEST

/* ---- following up -------------------------------------------------------------------------- */

START_TEST(following) {
    const int32_t ids[] = {1, 2, 3};
    struct cw_message m[] = {say("user", "a"), reply("b", ids, 3), say("user", "c")};
    struct cw_request one = {.messages = m, .n_messages = 1, .think = -1};
    struct cw_request three = {.messages = m, .n_messages = 3, .think = -1};
    struct cw_job *last, *next;
    ck_assert_int_eq(cw_job_create(&last, &one, NULL), CW_OK);
    ck_assert_int_eq(cw_job_create(&next, &three, NULL), CW_OK);
    ck_assert(cw_job_follows(next, last, ids, 3));
    ck_assert(!cw_job_follows(last, next, ids, 3));
    ck_assert(!cw_job_follows(last, last, ids, 3));
    ck_assert(!cw_job_follows(next, NULL, ids, 3));
    const int32_t other[] = {1, 2, 4};
    ck_assert(!cw_job_follows(next, last, other, 3));
    cw_job_destroy(next);
    m[0] = say("user", "x");
    ck_assert_int_eq(cw_job_create(&next, &three, NULL), CW_OK);
    ck_assert(!cw_job_follows(next, last, ids, 3));
    cw_job_destroy(next);
    cw_job_destroy(last);
}
END_TEST

/* ---- thinking by control tokens ------------------------------------------------------------ */

struct parts {
    struct cw_buf thought, answer;
};

static int collect(void *arg, bool thinking, const char *text, size_t n) {
    struct parts *p = arg;
    cw_buf_add(thinking ? &p->thought : &p->answer, text, n);
    return CW_OK;
}

/* A reply given as texts; those in `control` are control tokens, the others plain text. */
static void think(const char *const *control, size_t n_control, const char *const *texts, size_t n,
                  const char *thought, const char *answer) {
    struct tiny_vocab v;
    struct cw_think t;
    struct parts p = {{0}, {0}};
    tiny_vocab_init(&v, "gpt2", "gpt-2");
    tiny_vocab_add_alphabet(&v);
    tiny_vocab_merge(&v, "a", "b");
    for (size_t i = 0; i < n_control; i++) {
        tiny_vocab_add(&v, control[i], CONTROL, 0);
    }
    struct tiny tiny = tiny_open(&v);
    cw_think_init(&t, tiny.t, "", 0, (struct cw_str){NULL, 0});
    for (size_t i = 0; i < n; i++) {
        int32_t id = cw_tokenizer_find(tiny.t, texts[i], strlen(texts[i]));
        bool marker = id >= 0 && cw_tokenizer_is_control(tiny.t, id);
        cw_think_feed(&t, marker ? id : 'x', marker ? "" : texts[i], marker ? 0 : strlen(texts[i]),
                      collect, &p);
    }
    cw_think_flush(&t, collect, &p);
    cw_think_free(&t);
    cw_buf_putc(&p.thought, '\0');
    cw_buf_putc(&p.answer, '\0');
    ck_assert_str_eq(p.thought.data, thought);
    ck_assert_str_eq(p.answer.data, answer);
    cw_buf_free(&p.thought);
    cw_buf_free(&p.answer);
    tiny_close(&tiny);
}

START_TEST(thinking_by_control_tokens) {
    const char *qwen[] = {"<think>", "</think>"};
    const char *plain[] = {"<think>", "\nwhy", "\n", "</think>", "\n\n", "so"};
    think(qwen, 2, plain, N(plain), "why", "so");
    const char *again[] = {"x", "<think>", "y", "</think>", "z"}; /* meant wherever it stands */
    think(qwen, 2, again, N(again), "y", "xz");
    const char *command[] = {"<|START_THINKING|>", "<|END_THINKING|>", "<|START_RESPONSE|>",
                             "<|END_RESPONSE|>"};
    const char *r7b[] = {"<|START_THINKING|>", "hm",  "<|END_THINKING|>",
                         "<|START_RESPONSE|>", "yes", "<|END_RESPONSE|>"};
    think(command, 4, r7b, N(r7b), "hm", "yes");
}
END_TEST

START_TEST(thinking_in_channels) {
    const char *control[] = {"<|channel|>", "<|message|>", "<|start|>", "<|end|>", "<|return|>"};
    const char *full[] = {"<|channel|>", "anal",        "ysis",  "<|message|>", "hm\n",
                          "<|end|>",     "<|start|>",   "assis", "tant",        "<|channel|>",
                          "final",       "<|message|>", "yes",   "<|return|>"};
    think(control, 5, full, N(full), "hm\n", "yes");
    const char *only[] = {"<|channel|>", "final", "<|message|>", "yes", "<|return|>"};
    think(control, 5, only, N(only), "", "yes");
    const char *bare[] = {"yes", "<|return|>"};
    think(control, 5, bare, N(bare), "", "yes");
    /* The same texts where they are no channel tokens are text. */
    const char *other[] = {"<|channel|>"};
    const char *text[] = {"a", "<|message|>", "b"};
    think(other, 1, text, N(text), "", "a<|message|>b");
}
END_TEST

/* ---- drafts -------------------------------------------------------------------------------- */

/* What people type, and what they might. */
static const char typed[] =
    "Hello there,  how are you?\n\nList 3 things: 1) apples  2) pears\n\t- 100,000 or 3.14 of "
    "them\n"
    "don't say \"no\"... it's caf\u00e9, na\u00efve, \u6f22\u5b57 and \U0001f986\U0001f986!\n"
    "for (int i = 0; i < n; i++) {\n    x[i] += 2;\n}\n\n\nThanks   <|im_end|> a b  c";

static struct cw_ids draft_ids(struct cw_loaded *m, const char *text, size_t len) {
    struct cw_message messages[] = {{.role = "system", .content = "Be brief.", .len = 9},
                                    {.role = "user", .content = "Hi", .len = 2},
                                    {.role = "assistant", .content = "Hello!", .len = 6},
                                    {.role = "user", .content = text, .len = len}};
    struct cw_request req = {.messages = messages, .n_messages = 4, .max_tokens = -1, .think = -1};
    struct cw_job *job;
    struct cw_ids ids = {0};
    struct cw_err err;
    ck_assert_int_eq(cw_job_create(&job, &req, NULL), CW_OK);
    int rc = cw_prompt_draft(m, job, &ids, &err);
    ck_assert_msg(rc == CW_OK, "%s", err.text);
    cw_job_destroy(job);
    return ids;
}

/* Whatever is typed next, what was evaluated of a draft is the beginning of the prompt; and it is
 * most of it. */
static void check_drafts(struct cw_loaded *m, const char *what) {
    struct cw_message messages[] = {{.role = "system", .content = "Be brief.", .len = 9},
                                    {.role = "user", .content = "Hi", .len = 2},
                                    {.role = "assistant", .content = "Hello!", .len = 6},
                                    {.role = "user", .content = typed, .len = sizeof typed - 1}};
    struct cw_request req = {.messages = messages, .n_messages = 4, .max_tokens = -1, .think = -1};
    struct fixture f = {.m = *m};
    struct cw_prepared full = prepare(&f, &req);
    size_t last = 0;
    for (size_t n = 0; n < sizeof typed; n++) {
        struct cw_ids ids = draft_ids(m, typed, n);
        ck_assert_uint_gt(ids.n, 0); /* what stands before it, at least */
        ck_assert_uint_le(ids.n, full.ids.n);
        for (size_t i = 0; i < ids.n; i++) {
            ck_assert_msg(ids.v[i] == full.ids.v[i], "%s: after %zu bytes, token %zu is %d, not %d",
                          what, n, i, ids.v[i], full.ids.v[i]);
        }
        last = ids.n;
        cw_ids_free(&ids);
    }
    /* Left are a word and the end of the template's text, which a byte a token makes long. */
    size_t left = m->gguf != NULL ? 40 : 80;
    ck_assert_msg(last + left > full.ids.n, "%s: %zu of %zu", what, last, full.ids.n);
    cw_prepared_free(&full);
}

START_TEST(drafts) {
    static const char *const formats[] = {"chatml", "llama2", "llama3", "mistral-v7", "gemma"};
    static const char *const vocabs[] = {"gpt-2", "llama-bpe", "llama-spm", "qwen2"};
    const char *root = getenv("CHINWAG_SOURCE_ROOT");
    struct fixture f;
    for (size_t k = 0; k < N(formats); k++) {
        open_bpe(&f, cw_template_builtin(formats[k]));
        check_drafts(&f.m, formats[k]);
        fixture_close(&f);
    }
    for (size_t v = 0; v < N(vocabs); v++) {
        char path[1024];
        snprintf(path, sizeof path, "%s/../shared/reference/tokenizers/ggml-vocab-%s.gguf",
                 root != NULL ? root : ".", vocabs[v]);
        memset(&f, 0, sizeof f);
        if (cw_gguf_open(&f.m.gguf, path, NULL) != CW_OK) {
            printf("skipped: %s is not there\n", path);
            continue;
        }
        ck_assert_int_eq(cw_tokenizer_create(&f.m.tokenizer, f.m.gguf, NULL, NULL), CW_OK);
        f.m.has_template = true;
        f.m.bos = cw_strdup("");
        f.m.eos = cw_strdup("");
        for (size_t k = 0; k < N(formats); k++) {
            char what[64];
            snprintf(what, sizeof what, "%s, %s", vocabs[v], formats[k]);
            fixture_template(&f, cw_template_builtin(formats[k]));
            check_drafts(&f.m, what);
        }
        cw_template_destroy(f.m.tmpl);
        cw_tokenizer_destroy(f.m.tokenizer);
        cw_gguf_close(f.m.gguf);
        free(f.m.bos);
        free(f.m.eos);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("prompt");
    TCase *ids = tcase_create("ids"), *thinking = tcase_create("thinking");
    tcase_set_timeout(ids, 60);
    tcase_add_test(ids, ids_are_put_back);
    tcase_add_test(ids, only_where_the_text_is_unchanged);
    tcase_add_test(ids, going_on);
    tcase_add_test(ids, the_blank_of_a_first_token);
    tcase_add_test(ids, system_messages_are_not_lost);
    tcase_add_test(ids, contents_in_parts);
    tcase_add_test(ids, a_template_of_single_turns);
    tcase_add_test(ids, what_a_template_refuses);
    tcase_add_test(ids, typed_markers_are_text);
    tcase_add_test(ids, matching);
    tcase_add_test(ids, following);
    suite_add_tcase(suite, ids);
    TCase *typing = tcase_create("drafts");
    tcase_set_timeout(typing, 240);
    tcase_add_test(typing, drafts);
    suite_add_tcase(suite, typing);
    tcase_set_timeout(thinking, 60);
    tcase_add_test(thinking, thinking_by_control_tokens);
    tcase_add_test(thinking, thinking_in_channels);
    suite_add_tcase(suite, thinking);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
