/* SPDX-License-Identifier: MIT
 *
 * What holds for every family: its thinking markers however they come; prompts that begin with one
 * begin token and no second one, whoever writes it, in every kind of vocabulary; templates whose
 * markers are of another family. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/chat/prompt.h"
#include "core/chat/sampler_impl.h"
#include "core/chat/think.h"
#include "tests/chat/support.h"
#include "tests/support/markov.h"
#include "tests/tokenizer/tiny_vocab.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* ---- thinking ------------------------------------------------------------------------------ */

/* As the families' own templates write them. */
static const struct {
    const char *open, *close, *before, *after;
} markers[] = {
    {"<think>", "</think>", "\n", "\n\n"},
    {"<thinking>", "</thinking>", "\n", "\n\n"},
    {"<thought>", "</thought>", "\n", "\n"},
    {"<reasoning>", "</reasoning>", "\n", "\n"},
    {"<|START_THINKING|>", "<|END_THINKING|>", "", ""},
    {"[THINK]", "[/THINK]", "", ""},
    {"<seed:think>", "</seed:think>", "", ""},
    {"\u25c1think\u25b7", "\u25c1/think\u25b7", "", ""},
    {"<|inner_prefix|>", "<|inner_suffix|>", "", ""},
    {"<|channel>thought\n", "<channel|>", "\n", ""},
};

struct parts {
    struct cw_buf thought, answer;
};

static int collect(void *arg, bool thinking, const char *text, size_t n) {
    struct parts *p = arg;
    cw_buf_add(thinking ? &p->thought : &p->answer, text, n);
    return CW_OK;
}

/* Feed a reply in pieces of `piece` bytes behind a prompt that ends with `tail`; *closing gets what
 * would end the section then, "" for nothing. */
static void read_reply(const char *tail, const char *reply, size_t piece, const char *thought,
                       const char *answer, const char *closing) {
    struct cw_think t;
    struct parts p = {{0}, {0}};
    struct cw_buf end = {0};
    bool settled;
    cw_think_init(&t, NULL, tail, strlen(tail), (struct cw_str){"", 0});
    for (size_t at = 0; at < strlen(reply); at += piece) {
        size_t n = strlen(reply) - at < piece ? strlen(reply) - at : piece;
        ck_assert_int_eq(cw_think_feed(&t, -1, reply + at, n, collect, &p), CW_OK);
    }
    bool closes = cw_think_closing(&t, &end, &settled);
    cw_buf_putc(&end, '\0');
    ck_assert_int_eq(closes, *closing != '\0');
    ck_assert_msg(strcmp(end.data, closing) == 0, "'%s' ends with '%s', not '%s'", reply, end.data,
                  closing);
    cw_think_flush(&t, collect, &p);
    cw_buf_putc(&p.thought, '\0');
    cw_buf_putc(&p.answer, '\0');
    ck_assert_msg(strcmp(p.thought.data, thought) == 0 && strcmp(p.answer.data, answer) == 0,
                  "'%s' + '%s' by %zu: thought '%s', answer '%s'", tail, reply, piece,
                  p.thought.data, p.answer.data);
    cw_buf_free(&p.thought);
    cw_buf_free(&p.answer);
    cw_buf_free(&end);
    cw_think_free(&t);
}

START_TEST(every_family_thinks_as_text) {
    const char *open = markers[_i].open, *close = markers[_i].close;
    struct cw_buf b = {0}, closing = {0};
    cw_buf_printf(&closing, "%s%s%s", markers[_i].before, close, markers[_i].after);
    for (size_t piece = 1; piece < 40; piece += piece < 6 ? 1 : 33) {
        /* By itself, begun by the prompt, and not at all. */
        cw_buf_clear(&b);
        cw_buf_printf(&b, "%swhy\n\n< not%s%s%sso", open, markers[_i].before, close,
                      markers[_i].after);
        read_reply("", b.data, piece, "why\n\n< not", "so", "");
        cw_buf_clear(&b);
        cw_buf_printf(&b, "why%s%s%sso", markers[_i].before, close, markers[_i].after);
        read_reply(open, b.data, piece, "why", "so", "");
        cw_buf_clear(&b);
        cw_buf_printf(&b, "%s%s", open, close);
        read_reply(b.data, "so", piece, "", "so", "");
        /* Cut in its thought: what would end it. */
        cw_buf_clear(&b);
        cw_buf_printf(&b, "%swhy", open);
        read_reply("", b.data, piece, "why", "", closing.data);
        read_reply(open, "why", piece, "why", "", closing.data);
        /* Quoted, it opens nothing. */
        cw_buf_clear(&b);
        cw_buf_printf(&b, "see %swhy%s", open, close);
        read_reply("", b.data, piece, "", b.data, "");
    }
    cw_buf_free(&b);
    cw_buf_free(&closing);
}
END_TEST

START_TEST(every_family_thinks_as_tokens) {
    const char *close = markers[_i].close;
    const char *title = strstr(markers[_i].open, "thought\n");
    char *open = title != NULL && title > markers[_i].open + 1
                     ? cw_strndup(markers[_i].open, (size_t)(title - markers[_i].open))
                     : cw_strdup(markers[_i].open);
    struct tiny_vocab v;
    struct cw_think t;
    struct parts p = {{0}, {0}};
    tiny_vocab_init(&v, "gpt2", "gpt-2");
    tiny_vocab_add_alphabet(&v);
    int32_t open_id = tiny_vocab_add(&v, open, CONTROL, 0);
    int32_t close_id = tiny_vocab_add(&v, close, CONTROL, 0);
    struct tiny tiny = tiny_open(&v);
    cw_think_init(&t, tiny.t, "", 0, (struct cw_str){"", 0});
    static const char thought[] = "why";
    cw_think_feed(&t, open_id, "", 0, collect, &p);
    ck_assert(cw_think_now(&t));
    if (markers[_i].open[strlen(open)] != '\0') {
        cw_think_feed(&t, 'x', title, strlen(title), collect, &p);
    }
    cw_think_feed(&t, 'x', thought, 3, collect, &p);
    cw_think_feed(&t, 'x', "\n", 1, collect, &p);
    cw_think_feed(&t, close_id, "", 0, collect, &p);
    ck_assert(!cw_think_now(&t));
    cw_think_feed(&t, 'x', "\nso", 3, collect, &p);
    cw_think_flush(&t, collect, &p);
    cw_buf_putc(&p.thought, '\0');
    cw_buf_putc(&p.answer, '\0');
    ck_assert_msg(strcmp(p.thought.data, "why") == 0 && strcmp(p.answer.data, "so") == 0,
                  "%s: thought '%s', answer '%s'", open, p.thought.data, p.answer.data);
    cw_buf_free(&p.thought);
    cw_buf_free(&p.answer);
    cw_think_free(&t);
    tiny_close(&tiny);
    free(open);
}
END_TEST

/* ---- begin tokens -------------------------------------------------------------------------- */

enum kind { BYTES, SPM, TEXT, N_VOCABULARIES };

/* A vocabulary of each kind. `adds`: 0 says nothing, 1 false, 2 true. The begin token is <s>, named
 * or not; it is there in any case. */
static struct tiny vocabulary(enum kind kind, int adds, bool named, int32_t *begin) {
    struct tiny_vocab v;
    tiny_vocab_init(&v, kind == SPM ? "llama" : "gpt2",
                    kind == SPM    ? NULL
                    : kind == TEXT ? "gemma4"
                                   : "gpt-2");
    if (kind == BYTES) {
        tiny_vocab_add_alphabet(&v);
    } else {
        tiny_vocab_add_byte_tokens(&v);
        tiny_vocab_add(&v, "\u2581", NORMAL, 0);
    }
    *begin = tiny_vocab_add(&v, "<s>", CONTROL, 0);
    tiny_vocab_add(&v, "<|im_start|>", CONTROL, 0);
    tiny_vocab_add(&v, "<|im_end|>", CONTROL, 0);
    if (named) {
        mkgguf_u32(&v.m, "tokenizer.ggml.bos_token_id", (uint32_t)*begin);
    }
    if (adds > 0) {
        mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", adds == 2);
    }
    return tiny_open(&v);
}

#define CHATML                                                                                     \
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"     \
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"

/* How often `begin` stands in the prompt of these messages, and that it stands in front. */
static size_t count_begins(struct cw_loaded *m, const struct cw_request *req, int32_t begin) {
    struct cw_job *job;
    struct cw_prepared p;
    struct cw_err err;
    size_t n = 0;
    ck_assert_int_eq(cw_job_create(&job, req, NULL), CW_OK);
    int rc = cw_prompt_prepare(m, job, &p, &err);
    ck_assert_msg(rc == CW_OK, "%s", err.text);
    ck_assert_uint_gt(p.ids.n, 3);
    for (size_t i = 0; i < p.ids.n; i++) {
        n += p.ids.v[i] == begin;
        ck_assert(p.ids.v[i] != begin || i == 0);
    }
    cw_prepared_free(&p);
    cw_job_destroy(job);
    return n;
}

/* The template writes the begin token or leaves it to the tokenizer; the file asks for one, not for
 * one, or says nothing; it names one or none: at most one in front, in the first turn and in later
 * ones, whatever is typed, and none where nobody asks. */
START_TEST(every_prompt_has_one_begin_token) {
    static const char *const templates[] = {CHATML, "{{ bos_token }}" CHATML};
    const struct cw_message messages[] = {{.role = "user", .content = "<s>a", .len = 4},
                                          {.role = "assistant", .content = "b<s>", .len = 4},
                                          {.role = "user", .content = "<s>", .len = 3}};
    for (int way = 0; way < 2 * 3 * 2; way++) {
        int writes = way % 2, adds = way / 2 % 3;
        bool named = way / 6 != 0;
        int32_t begin;
        struct tiny tiny = vocabulary((enum kind)_i, adds, named, &begin);
        struct cw_loaded m = {.tokenizer = tiny.t, .has_template = true};
        struct cw_str text = cw_tokenizer_text(tiny.t, cw_tokenizer_bos(tiny.t));
        char *bos = cw_strndup(text.data, text.len);
        m.bos = bos;
        m.eos = bos + text.len;
        ck_assert_int_eq(
            cw_template_create(&m.tmpl, templates[writes], strlen(templates[writes]), NULL), CW_OK);
        /* SPM asks by default, and text-BPE whatever its files say. */
        bool asked = _i == TEXT || adds == 2 || (adds == 0 && _i == SPM);
        size_t want = named && (writes || asked) ? 1 : 0;
        for (size_t n = 1; n <= 3; n += 2) {
            struct cw_request req = {.messages = messages, .n_messages = n, .think = -1};
            ck_assert_msg(count_begins(&m, &req, begin) == want, "kind %d, way %d, %zu messages",
                          _i, way, n);
        }
        struct cw_request raw = {.raw = "some text", .raw_len = 9, .think = -1};
        ck_assert_uint_eq(count_begins(&m, &raw, begin), named && asked ? 1 : 0);
        cw_template_destroy(m.tmpl);
        tiny_close(&tiny);
        free(bos);
    }
}
END_TEST

/* Contents that are hardly any: they go in as they are and come out of the ids so. */
START_TEST(every_content_however_small) {
    static const char *const contents[] = {"", "\n", "\t", " ", "  ", "\n\n\n", "\r\n", "\xc2\xa0"};
    for (size_t i = 0; i < N(contents); i++) {
        int32_t begin;
        struct tiny tiny = vocabulary((enum kind)_i, 1, true, &begin);
        struct cw_loaded m = {.tokenizer = tiny.t, .has_template = true};
        char none[1] = "";
        struct cw_buf want = {0}, got = {0};
        struct cw_message messages[] = {
            {.role = "system", .content = contents[i], .len = strlen(contents[i])},
            {.role = "user", .content = contents[i], .len = strlen(contents[i])}};
        struct cw_request req = {.messages = messages, .n_messages = 2, .think = -1};
        struct cw_job *job;
        struct cw_prepared p;
        m.bos = m.eos = none;
        ck_assert_int_eq(cw_template_create(&m.tmpl, CHATML, sizeof CHATML - 1, NULL), CW_OK);
        ck_assert_int_eq(cw_job_create(&job, &req, NULL), CW_OK);
        ck_assert_int_eq(cw_prompt_prepare(&m, job, &p, NULL), CW_OK);
        cw_buf_printf(&want,
                      "<|im_start|>system\n%s<|im_end|>\n<|im_start|>user\n%s<|im_end|>\n"
                      "<|im_start|>assistant\n",
                      contents[i], contents[i]);
        size_t skip = p.ids.v[0] == begin ? 1 : 0;
        bool blank = false; /* SPM's, behind a control token */
        for (size_t k = skip; k < p.ids.n; k++) {
            bool control = cw_tokenizer_is_control(tiny.t, p.ids.v[k]);
            cw_tokenizer_piece(tiny.t, p.ids.v[k], true, blank && !control, &got);
            blank = control;
        }
        ck_assert_msg(strcmp(got.data, want.data) == 0, "%zu: '%s', not '%s'", i, got.data,
                      want.data);
        cw_prepared_free(&p);
        cw_job_destroy(job);
        cw_buf_free(&want);
        cw_buf_free(&got);
        cw_template_destroy(m.tmpl);
        tiny_close(&tiny);
    }
}
END_TEST

/* ---- templates ----------------------------------------------------------------------------- */

static bool go_on(void *arg, int step) {
    return false;
}

/* The notices of loading, a line each. */
static char *notices_with(const char *path, const char *chat_template, bool *has_template) {
    struct cw_generator_options opt = client_options(path);
    struct cw_loaded m;
    struct cw_err err;
    struct cw_buf b = {0};
    opt.chat_template = chat_template;
    ck_assert_msg(cw_loaded_open(&m, &opt, go_on, NULL, &err) == CW_OK, "%s", err.text);
    *has_template = m.has_template;
    for (size_t at = 0; at < m.notices.len; at += strlen(m.notices.data + at) + 1) {
        cw_buf_printf(&b, "%s\n", m.notices.data + at);
    }
    cw_loaded_close(&m);
    return b.data != NULL ? cw_buf_take(&b) : cw_strdup("");
}

/* Another template than the file's is taken, and told where its markers are no tokens here. */
START_TEST(another_template_and_its_markers) {
    static const struct {
        const char *source, *says; /* NULL: nothing */
    } cases[] = {
        {NULL, NULL}, /* the file's own, ChatML */
        {"chatml", NULL},
        {"llama3", "<|start_header_id|>, <|end_header_id|>, <|eot_id|>\n"},
        {"gemma", "<start_of_turn>, <end_of_turn>\n"},
        {"{{ messages[0].content }} <b> a<b</b> <|not a marker|> <-_-> <|>", NULL},
        {"<|x|><|im_start|><|x|>{# <|x|> #}", "model: <|x|>\n"},
        {"<|unclosed", NULL},
        {"<_> <a_>", "model: <a_>\n"},
    };
    const char *pieces[] = {"x"};
    const char *path = tmp_path("own.gguf");
    markov_write(path, pieces, 1);
    for (size_t i = 0; i < N(cases); i++) {
        const char *builtin = cases[i].source != NULL ? cw_template_builtin(cases[i].source) : NULL;
        bool has;
        char *notices = notices_with(path, builtin != NULL ? builtin : cases[i].source, &has);
        ck_assert(has);
        if (cases[i].says == NULL) {
            ck_assert_str_eq(notices, "");
        } else {
            ck_assert_msg(strstr(notices, "no token of this model") != NULL &&
                              strstr(notices, cases[i].says) != NULL,
                          "%zu: %s", i, notices);
        }
        free(notices);
    }
}
END_TEST

/* A template of no length is none: the model continues raw text and does not fall silent. */
START_TEST(an_empty_template_is_none) {
    static const char *const sources[] = {NULL, "", "{{ messages[0].content }}"};
    for (size_t i = 0; i < N(sources); i++) {
        struct markov k;
        bool has;
        const char *path = tmp_path("empty.gguf");
        markov_init(&k);
        markov_text(&k, "x");
        k.chat_template = sources[i];
        markov_save(&k, path);
        markov_free(&k);
        free(notices_with(path, NULL, &has));
        ck_assert_int_eq(has, i == 2);
    }
}
END_TEST

/* ---- what loading tells and holds ------------------------------------------------------------ */

static void add_odd_keys(struct mkgguf *g) {
    mkgguf_u32(g, "tokenizer.ggml.eom_token_id", 9999);
    mkgguf_tensor(g, "blk.9.odd.weight", CW_F32, 1, (const uint64_t[]){4}, "0123456789abcdef", 16);
}

/* What model and tokenizer notice about the file is told. */
START_TEST(notices_of_all_parts) {
    struct markov k;
    bool has;
    const char *path = tmp_path("odd.gguf");
    markov_init(&k);
    markov_text(&k, "x");
    k.keys = add_odd_keys;
    markov_save(&k, path);
    markov_free(&k);
    char *notices = notices_with(path, NULL, &has);
    ck_assert_msg(strstr(notices, "'blk.9.odd.weight'") != NULL, "%s", notices);
    ck_assert_msg(strstr(notices, "tokenizer.ggml.eom_token_id") != NULL, "%s", notices);
    free(notices);
}
END_TEST

static bool not_embeddings(void *arg, struct cw_str name) {
    return !cw_str_eq(name, "token_embd.weight");
}

/* Rows of the output matrix that no token has are not drawn from. */
START_TEST(rows_without_a_token) {
    struct cw_gguf *g;
    struct mkgguf out;
    struct cw_buf data = {0};
    struct cw_loaded m;
    struct cw_err err;
    const char *path = tmp_path("padded.gguf");
    ck_assert_int_eq(cw_gguf_open(&g, tiny_model("tiny-llama-tied-F32.gguf"), NULL), CW_OK);
    const struct cw_tensor *t = cw_gguf_tensor(g, "token_embd.weight");
    ck_assert_ptr_nonnull(t);
    uint64_t rows = (uint64_t)t->dims[1];
    cw_buf_add(&data, t->data, (size_t)t->bytes);
    cw_buf_add(&data, t->data, 12 * (size_t)t->dims[0] * sizeof(float));
    mkgguf_init(&out);
    mkgguf_copy_keys(&out, g, NULL, NULL);
    mkgguf_copy_tensors(&out, g, not_embeddings, NULL);
    mkgguf_tensor(&out, "token_embd.weight", CW_F32, 2,
                  (const uint64_t[]){(uint64_t)t->dims[0], rows + 12}, data.data, data.len);
    mkgguf_save(&out, path);
    mkgguf_free(&out);
    cw_gguf_close(g);
    struct cw_generator_options opt = client_options(path);
    ck_assert_msg(cw_loaded_open(&m, &opt, go_on, NULL, &err) == CW_OK, "%s", err.text);
    ck_assert_int_eq(cw_model_get_info(m.model)->n_vocab, (int)rows + 12);
    ck_assert_int_eq(m.n_usable, (int)rows);
    cw_loaded_close(&m);
    cw_buf_free(&data);
}
END_TEST

/* DRY's sequences end at line ends, colons, quotes and asterisks, and at control tokens. */
START_TEST(what_breaks_a_sequence) {
    struct cw_loaded m;
    struct cw_err err;
    const char *pieces[] = {"word", "a:b"};
    const char *path = tmp_path("breaks.gguf");
    markov_write(path, pieces, 2);
    struct cw_generator_options opt = client_options(path);
    ck_assert_msg(cw_loaded_open(&m, &opt, go_on, NULL, &err) == CW_OK, "%s", err.text);
    cw_set_breakers(m.sampler, m.tokenizer, m.n_usable);
    for (int32_t id = 0; id < m.n_usable; id++) {
        struct cw_buf piece = {0};
        bool breaks = cw_tokenizer_is_control(m.tokenizer, id), found = false;
        cw_tokenizer_piece(m.tokenizer, id, false, false, &piece);
        for (size_t i = 0; i < piece.len; i++) {
            breaks = breaks || piece.data[i] == '\n' || piece.data[i] == ':' ||
                     piece.data[i] == '"' || piece.data[i] == '*';
        }
        for (size_t i = 0; i < m.sampler->n_breakers; i++) {
            found = found || m.sampler->breaker[i] == id;
        }
        ck_assert_msg(found == breaks, "token %d", id);
        cw_buf_free(&piece);
    }
    ck_assert_uint_ge(m.sampler->n_breakers, 4 + 3);
    cw_loaded_close(&m);
}
END_TEST

/* A prompt is never over before it is answered: no end token behind it, whatever the file asks, and
 * none of the reply that goes on; what is raw may hold control tokens. */
START_TEST(no_prompt_ends_with_an_end) {
    struct tiny_vocab v;
    char none[1] = "";
    tiny_vocab_init(&v, "gpt2", "gpt-2");
    tiny_vocab_add_alphabet(&v);
    int32_t end = tiny_vocab_add(&v, "<|im_end|>", CONTROL, 0);
    mkgguf_u32(&v.m, "tokenizer.ggml.eos_token_id", (uint32_t)end);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_eos_token", true);
    struct tiny tiny = tiny_open(&v);
    struct cw_loaded m = {.tokenizer = tiny.t, .has_template = true, .bos = none, .eos = none};
    static const char source[] = "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}"
                                 "{% if add_generation_prompt %}>{% endif %}";
    ck_assert_int_eq(cw_template_create(&m.tmpl, source, sizeof source - 1, NULL), CW_OK);
    const int32_t said[] = {'a', 'b', end};
    const struct cw_message messages[] = {
        {.role = "user", .content = "q", .len = 1},
        {.role = "assistant", .content = "ab", .len = 2, .ids = said, .n_ids = 3}};
    const struct {
        struct cw_request req;
        int32_t ids[8];
        size_t n;
    } cases[] = {
        {{.messages = messages, .n_messages = 1, .think = -1}, {'q', end, '>'}, 3},
        {{.messages = messages, .n_messages = 2, .continue_reply = true, .think = -1},
         {'q', end, '>', 'a', 'b'},
         5},
        {{.raw = "x<|im_end|>y", .raw_len = 12, .think = -1}, {'x', end, 'y'}, 3},
    };
    for (size_t i = 0; i < N(cases); i++) {
        struct cw_job *job;
        struct cw_prepared p;
        struct cw_err err;
        ck_assert_int_eq(cw_job_create(&job, &cases[i].req, NULL), CW_OK);
        ck_assert_msg(cw_prompt_prepare(&m, job, &p, &err) == CW_OK, "%s", err.text);
        ck_assert_uint_eq(p.ids.n, cases[i].n);
        ck_assert_mem_eq(p.ids.v, cases[i].ids, cases[i].n * sizeof cases[i].ids[0]);
        cw_prepared_free(&p);
        cw_job_destroy(job);
    }
    /* What is evaluated of a draft is the beginning of that prompt. */
    const struct cw_message draft = {.role = "user", .content = "q r s", .len = 5};
    struct cw_request req = {.messages = &draft, .n_messages = 1, .think = -1};
    struct cw_job *job;
    struct cw_prepared whole;
    struct cw_ids ids = {0};
    ck_assert_int_eq(cw_job_create(&job, &req, NULL), CW_OK);
    ck_assert_int_eq(cw_prompt_prepare(&m, job, &whole, NULL), CW_OK);
    ck_assert_int_eq(cw_prompt_draft(&m, job, &ids, NULL), CW_OK);
    ck_assert_uint_eq(ids.n, 3);
    ck_assert_mem_eq(ids.v, whole.ids.v, ids.n * sizeof *ids.v);
    cw_ids_free(&ids);
    cw_prepared_free(&whole);
    cw_template_destroy(m.tmpl);
    /* One that the template itself writes there is meant. */
    static const char closed[] = "{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}";
    ck_assert_int_eq(cw_template_create(&m.tmpl, closed, sizeof closed - 1, NULL), CW_OK);
    ck_assert_int_eq(cw_prompt_prepare(&m, job, &whole, NULL), CW_OK);
    ck_assert_uint_eq(whole.ids.n, 6);
    ck_assert_int_eq(whole.ids.v[5], end);
    cw_prepared_free(&whole);
    cw_job_destroy(job);
    cw_template_destroy(m.tmpl);
    tiny_close(&tiny);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("families");
    TCase *c = tcase_create("families");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, every_family_thinks_as_text, 0, (int)N(markers));
    tcase_add_loop_test(c, every_family_thinks_as_tokens, 0, (int)N(markers));
    tcase_add_loop_test(c, every_prompt_has_one_begin_token, 0, N_VOCABULARIES);
    tcase_add_loop_test(c, every_content_however_small, 0, N_VOCABULARIES);
    tcase_add_test(c, another_template_and_its_markers);
    tcase_add_test(c, an_empty_template_is_none);
    tcase_add_test(c, notices_of_all_parts);
    tcase_add_test(c, rows_without_a_token);
    tcase_add_test(c, what_breaks_a_sequence);
    tcase_add_test(c, no_prompt_ends_with_an_end);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
