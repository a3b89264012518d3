/* SPDX-License-Identifier: MIT
 *
 * Stop strings, whole characters and thinking sections, each under every way to cut a reply into
 * tokens. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/chat/stops.h"
#include "core/chat/think.h"
#include "tests/support/mkgguf.h"

/* ---- stop strings -------------------------------------------------------------------------- */

struct result {
    struct cw_buf text;
    bool stopped;
};

/* Feed pieces; what each releases must be whole characters. */
static struct result feed(const char *const *stops, size_t n_stops, const char *const *pieces,
                          size_t n) {
    struct result r = {{0}, false};
    struct cw_filter *f = cw_filter_create(stops, n_stops);
    for (size_t i = 0; i < n && !r.stopped; i++) {
        r.stopped = cw_filter_feed(f, pieces[i], strlen(pieces[i]), &r.text);
    }
    if (!r.stopped) {
        cw_filter_flush(f, false, &r.text);
    }
    cw_filter_destroy(f);
    return r;
}

static void expect(const char *const *stops, size_t n_stops, const char *const *pieces, size_t n,
                   const char *text, bool stopped) {
    struct result r = feed(stops, n_stops, pieces, n);
    ck_assert_uint_eq(r.text.len, strlen(text));
    ck_assert(memcmp(r.text.len > 0 ? r.text.data : "", text, r.text.len) == 0);
    ck_assert(r.stopped == stopped);
    cw_buf_free(&r.text);
}

#define N(a) (sizeof(a) / sizeof((a)[0]))

START_TEST(over_several_tokens) {
    const char *stops[] = {"END!"};
    const char *hit[] = {"go ", "E", "ND", "!", " tail"};
    const char *miss[] = {"go ", "E", "NTER"};
    expect(stops, 1, hit, N(hit), "go ", true);
    expect(stops, 1, miss, N(miss), "go ENTER", false);
    const char *late[] = {"asX"}, *held[] = {"ple", "as"};
    expect(late, 1, held, N(held), "pleas", false);
    const char *border[] = {"aab"}, *over[] = {"aa", "a", "a", "b", "c"};
    expect(border, 1, over, N(over), "aa", true);
    const char *deep[] = {"aabaaac"}, *deeper[] = {"aabaaabaaac"};
    expect(deep, 1, deeper, 1, "aaba", true);
    const char *inside[] = {"xENDy"};
    const char *two[] = {"END", "xENDy"};
    expect(two, 2, inside, 1, "x", true); /* the first to end counts */
    const char *same[] = {"ND", "END"}, *end[] = {"the END"};
    expect(same, 2, end, 1, "the ", true); /* of two that end together the longest */
    const char *empty[] = {"", "b"}, *b[] = {"ab"};
    expect(empty, 2, b, 1, "a", true);
    expect(NULL, 0, b, 1, "ab", false);
}
END_TEST

/* Held back is only the longest tail that may still become a stop string. */
START_TEST(holds_back_no_more_than_needed) {
    const char *stops[] = {"abab!", "bc"};
    struct cw_filter *f = cw_filter_create(stops, 2);
    struct cw_buf out = {0};
    const struct {
        const char *piece, *shown;
    } rows[] = {{"xyab", "xy"},   {"a", "xy"},        {"b", "xy"},
                {"x", "xyababx"}, {"ba", "xyababxb"}, {"ab", "xyababxba"}};
    for (size_t i = 0; i < N(rows); i++) {
        ck_assert(!cw_filter_feed(f, rows[i].piece, strlen(rows[i].piece), &out));
        ck_assert_str_eq(out.data, rows[i].shown);
    }
    ck_assert(cw_filter_feed(f, "ab!never", 8, &out));
    ck_assert_str_eq(out.data, "xyababxba");
    ck_assert(cw_filter_feed(f, "more", 4, &out));
    cw_filter_flush(f, false, &out);
    ck_assert_str_eq(out.data, "xyababxba");
    cw_filter_destroy(f);
    cw_buf_free(&out);
}
END_TEST

/* The first place where any stop string ends, by looking at every prefix. */
static size_t first_end(const char *s, const char *const *stops, size_t n, size_t *length) {
    for (size_t end = 1; end <= strlen(s); end++) {
        size_t longest = 0;
        for (size_t i = 0; i < n; i++) {
            size_t len = strlen(stops[i]);
            if (len <= end && len > longest && memcmp(s + end - len, stops[i], len) == 0) {
                longest = len;
            }
        }
        if (longest > 0) {
            *length = longest;
            return end;
        }
    }
    return 0;
}

static uint64_t next(void) {
    static uint64_t state = 11;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 40;
}

/* Texts of few letters, so that they are full of beginnings; every other stop string is a piece of
 * the text itself, so that it occurs. */
START_TEST(any_cut_gives_the_same) {
    size_t n_stopped = 0;
    for (int round = 0; round < 6000; round++) {
        char text[64], stop_text[3][12];
        const char *stops[3];
        size_t len = 60, n_stops = 1 + (size_t)round % 3, letters = 2 + (size_t)round % 2;
        for (size_t k = 0; k < len; k++) {
            text[k] = (char)('a' + next() % letters);
        }
        text[len] = '\0';
        for (int i = 0; i < 3; i++) {
            size_t n = 1 + next() % 10, at = next() % (len - n);
            for (size_t k = 0; k < n; k++) {
                stop_text[i][k] = round % 2 ? text[at + k] : (char)('a' + next() % 2);
            }
            stop_text[i][n] = '\0';
            stops[i] = stop_text[i];
        }
        size_t stop_len = 0, end = first_end(text, stops, n_stops, &stop_len);
        size_t want = end > 0 ? end - stop_len : len;
        struct cw_filter *f = cw_filter_create(stops, n_stops);
        struct cw_buf out = {0};
        bool stopped = false;
        for (size_t at = 0; at < len && !stopped;) {
            size_t n = 1 + next() % 7;
            n = n < len - at ? n : len - at;
            stopped = cw_filter_feed(f, text + at, n, &out);
            ck_assert(out.len <= want);
            at += n;
        }
        ck_assert(stopped == (end > 0));
        n_stopped += stopped;
        if (!stopped) {
            cw_filter_flush(f, false, &out);
        }
        ck_assert_uint_eq(out.len, want);
        ck_assert(want == 0 || memcmp(out.data, text, want) == 0);
        cw_buf_free(&out);
        cw_filter_destroy(f);
    }
    ck_assert(n_stopped > 3000 && n_stopped < 6000);
}
END_TEST

/* ---- characters ---------------------------------------------------------------------------- */

START_TEST(whole_characters) {
    const char text[] = "p\xc3\252che \xf0\x9f\xa6\x86 \xe4\xbd\xa0";
    for (size_t cut = 1; cut < sizeof text - 1; cut++) {
        struct cw_filter *f = cw_filter_create(NULL, 0);
        struct cw_buf out = {0};
        cw_filter_feed(f, text, cut, &out);
        /* No byte of an unfinished character is out, no finished one is held. */
        size_t whole = cut;
        while (((unsigned char)text[whole] & 0xc0) == 0x80) {
            whole--;
        }
        ck_assert_uint_eq(out.len, whole);
        cw_filter_feed(f, text + cut, sizeof text - 1 - cut, &out);
        ck_assert_str_eq(out.data, text);
        cw_buf_free(&out);
        cw_filter_destroy(f);
    }
}
END_TEST

START_TEST(invalid_bytes_pass) {
    const char *const texts[] = {"a\377b", "\xc0\x80", "\xed\xa0\x80x", "\xf5\x80", "\x80\x80"};
    for (size_t i = 0; i < N(texts); i++) {
        struct cw_filter *f = cw_filter_create(NULL, 0);
        struct cw_buf out = {0};
        for (size_t k = 0; k < strlen(texts[i]); k++) {
            cw_filter_feed(f, texts[i] + k, 1, &out);
        }
        cw_filter_flush(f, true, &out);
        ck_assert_str_eq(out.data, texts[i]);
        cw_buf_free(&out);
        cw_filter_destroy(f);
    }
    /* A character begun: dropped when the reply was cut, passed when it ended so. */
    for (int whole = 0; whole < 2; whole++) {
        struct cw_filter *f = cw_filter_create(NULL, 0);
        struct cw_buf out = {0};
        cw_filter_feed(f, "x\xf0\x9f", 3, &out);
        ck_assert_str_eq(out.data, "x");
        cw_filter_flush(f, whole, &out);
        ck_assert_str_eq(out.data, whole ? "x" : "x\xf0\x9f");
        cw_buf_free(&out);
        cw_filter_destroy(f);
    }
    /* A zero byte is a byte. */
    struct cw_filter *f = cw_filter_create(NULL, 0);
    struct cw_buf out = {0};
    cw_filter_feed(f, "a\0b", 3, &out);
    ck_assert_uint_eq(out.len, 3);
    cw_buf_free(&out);
    cw_filter_destroy(f);
}
END_TEST

/* ---- thinking ------------------------------------------------------------------------------ */

struct parts {
    struct cw_buf thought, answer;
};

static int collect(void *arg, bool thinking, const char *text, size_t n) {
    struct parts *p = arg;
    ck_assert_uint_gt(n, 0);
    cw_buf_add(thinking ? &p->thought : &p->answer, text, n);
    return CW_OK;
}

static const struct cw_str no_template;

static void check_parts_of(const char *source, const char *tail, const char *reply,
                           const char *thought, const char *answer) {
    for (size_t piece = 1; piece <= strlen(reply) + 1; piece++) {
        struct cw_think t;
        struct parts p = {{0}, {0}};
        cw_think_init(&t, NULL, tail, strlen(tail), (struct cw_str){source, strlen(source)});
        for (size_t at = 0; at < strlen(reply); at += piece) {
            size_t n = strlen(reply) - at < piece ? strlen(reply) - at : piece;
            ck_assert_int_eq(cw_think_feed(&t, -1, reply + at, n, collect, &p), CW_OK);
        }
        cw_think_flush(&t, collect, &p);
        cw_buf_putc(&p.thought, '\0');
        cw_buf_putc(&p.answer, '\0');
        ck_assert_str_eq(p.thought.data, thought);
        ck_assert_str_eq(p.answer.data, answer);
        cw_buf_free(&p.thought);
        cw_buf_free(&p.answer);
        cw_think_free(&t);
    }
}

static void check_parts(const char *tail, const char *reply, const char *thought,
                        const char *answer) {
    check_parts_of("", tail, reply, thought, answer);
}

START_TEST(thinking_as_text) {
    check_parts("", "<think>\nwhy\n\nnot\n</think>\n\nyes.", "why\n\nnot", "yes.");
    check_parts("", "\n <think>a</think>b", "a", "b");
    check_parts("", "[THINK]a < b[/THINK]c", "a < b", "c");
    check_parts("", "<thinking>a</think></thinking>b", "a</think>", "b");
    check_parts("", "<think>a</think>b<think>c</think>", "a", "b<think>c</think>");
    check_parts("", "<think>never ends\n", "never ends\n", "");
    check_parts("", "<think>a</thin", "a</thin", "");
    /* Not a marker, or not at the start. */
    check_parts("", "<thin ice>", "", "<thin ice>");
    check_parts("", "<think", "", "<think");
    check_parts("", "see <think>a</think>", "", "see <think>a</think>");
    check_parts("", " \n", "", " \n");
    check_parts("", "", "", "");
}
END_TEST

/* Taken off where the template knows the tags; elsewhere a person may have asked for them. */
START_TEST(wrapped_answers) {
    const char *hunyuan = "{{ c.split('<answer>')[-1].split('</answer>')[0] }}";
    const char *granite = "Write your response between <response></response>.";
    const char *reply = "<think>\nwhy\n</think>\n<answer>\nyes\n\nno\n</answer>";
    check_parts("", reply, "why", "<answer>\nyes\n\nno\n</answer>");
    check_parts_of(granite, "", reply, "why", "<answer>\nyes\n\nno\n</answer>");
    check_parts_of(hunyuan, "", reply, "why", "yes\n\nno");
    check_parts_of(granite, "", "<think>a</think><response>b < c</response>", "a", "b < c");
    check_parts_of(granite, "<think>", "a</think> <response>b</response>\n", "a", "b");
    check_parts_of(hunyuan, "", "<think>a</think>\n<answ", "a", "<answ");
    check_parts_of(hunyuan, "", "<think>a</think>\n<answers>", "a", "<answers>");
    check_parts_of(hunyuan, "", "<think>a</think><answer>b</answ", "a", "b</answ");
    check_parts_of(hunyuan, "", "<think>a</think> b <answer>c</answer>", "a",
                   " b <answer>c</answer>");
    check_parts_of(hunyuan, "", "<answer>b</answer>", "", "<answer>b</answer>");
    check_parts_of(hunyuan, "", "<think>a</think>", "a", "");
}
END_TEST

/* ---- markers that are tokens --------------------------------------------------------------- */

static const char *const words[] = {
    "a",
    "b",
    "\xc4\x8a",
    "thought",
    "analysis",
    "final",
    "assistant",
    "commentary",
    "<think>",
    "<|start|>",
    "<|end|>",
    "<|channel|>",
    "<|message|>",
    "<|return|>",
    "[THINK]",
    "[/THINK]",
    "<|channel>",
    "<channel|>",
    "<|START_THINKING|>",
    "<|END_THINKING|>",
    "<|START_RESPONSE|>",
    "<|END_RESPONSE|>",
    "<|inner_prefix|>",
    "<|inner_suffix|>",
};
enum { FIRST_CONTROL = 9 }; /* <think> is none, as in Qwen3's files */

static struct cw_tokenizer *token_vocabulary(struct cw_gguf **file) {
    struct mkgguf g;
    struct cw_tokenizer *t;
    int32_t kinds[N(words)];
    const char *path = tmp_path("words.gguf");
    for (size_t i = 0; i < N(words); i++) {
        kinds[i] = i >= FIRST_CONTROL ? 3 : 4;
    }
    mkgguf_init(&g);
    mkgguf_str(&g, "general.architecture", "llama");
    mkgguf_str(&g, "tokenizer.ggml.model", "gpt2");
    mkgguf_str(&g, "tokenizer.ggml.pre", "gpt-2");
    mkgguf_strs(&g, "tokenizer.ggml.tokens", words, N(words));
    mkgguf_array(&g, "tokenizer.ggml.token_type", CW_GGUF_I32, N(words), kinds, sizeof kinds);
    mkgguf_strs(&g, "tokenizer.ggml.merges", NULL, 0);
    mkgguf_save(&g, path);
    mkgguf_free(&g);
    ck_assert_int_eq(cw_gguf_open(file, path, NULL), CW_OK);
    ck_assert_int_eq(cw_tokenizer_create(&t, *file, NULL, NULL), CW_OK);
    return t;
}

/* `reply` is words of the vocabulary, parted by blanks; "n" is a line end. */
static void check_tokens(const struct cw_tokenizer *t, const char *tail, const char *reply,
                         const char *thought, const char *answer) {
    struct cw_think think;
    struct parts p = {{0}, {0}};
    char *copy = cw_strdup(reply);
    cw_think_init(&think, t, tail, strlen(tail), no_template);
    for (char *save, *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        const char *text = strcmp(word, "n") == 0 ? "\n" : word;
        const char *raw = strcmp(word, "n") == 0 ? "\xc4\x8a" : word;
        int32_t id = cw_tokenizer_find(t, raw, strlen(raw));
        ck_assert_int_ge(id, 0);
        bool control = cw_tokenizer_is_control(t, id);
        cw_think_feed(&think, id, text, control ? 0 : strlen(text), collect, &p);
    }
    cw_think_flush(&think, collect, &p);
    cw_buf_putc(&p.thought, '\0');
    cw_buf_putc(&p.answer, '\0');
    ck_assert_str_eq(p.thought.data, thought);
    ck_assert_str_eq(p.answer.data, answer);
    cw_buf_free(&p.thought);
    cw_buf_free(&p.answer);
    cw_think_free(&think);
    free(copy);
}

START_TEST(thinking_as_tokens) {
    struct cw_gguf *file;
    struct cw_tokenizer *t = token_vocabulary(&file);
    /* Magistral, Command A, Apertus: meant wherever they stand */
    check_tokens(t, "", "[THINK] a n [/THINK] n b", "a", "b");
    check_tokens(t, "", "a [THINK] b [/THINK] a", "b", "aa");
    check_tokens(t, "", "a [/THINK] b", "", "ab");
    check_tokens(t, "",
                 "<|START_THINKING|> a <|END_THINKING|> <|START_RESPONSE|> b <|END_RESPONSE|>", "a",
                 "b");
    check_tokens(t, "", "<|inner_prefix|> a <|inner_suffix|> b", "a", "b");
    /* a token of ordinary text opens only at the start */
    check_tokens(t, "", "<think> a", "a", "");
    check_tokens(t, "", "a <think> b", "", "a<think>b");
    /* Gemma 4: the channel has a title */
    check_tokens(t, "", "<|channel> thought n a n b n <channel|> b", "a\nb", "b");
    check_tokens(t, "", "<|channel> thought n <channel|> b", "", "b");
    check_tokens(t, "", "<|channel> a n <channel|> b", "a", "b");
    check_tokens(t, "<|channel>thought\n", "a n <channel|> b", "a", "b");
    check_tokens(t, "<|channel>thought\n<channel|>", "b", "", "b");
    /* one that was asked not to think, and does */
    check_tokens(t, "<|channel>thought\n<channel|>", "<|channel> thought n a <channel|> b", "a",
                 "b");
    check_tokens(t, "<think>\n\n</think>\n\n", "<think> a", "a", "");
    /* gpt-oss */
    check_tokens(t, "<|start|>assistant",
                 "<|channel|> analysis <|message|> a <|end|> <|start|> assistant <|channel|> final "
                 "<|message|> b <|return|>",
                 "a", "b");
    check_tokens(t, "<|start|>assistant", "<|channel|> final <|message|> b <|return|>", "", "b");
    check_tokens(t, "<|start|>assistant", "<|message|> b <|return|>", "", "b");
    check_tokens(t, "<|start|>assistant",
                 "<|channel|> analysis <|message|> a <|end|> <|start|> assistant <|message|> b",
                 "a", "b");
    check_tokens(t, "<|start|>assistant", "<|channel|> analysis <|message|> a", "a", "");
    cw_tokenizer_destroy(t);
    cw_gguf_close(file);
}
END_TEST

/* Asking for thought: what is told depends on what the prompt really shows. */
START_TEST(what_templates_can_ask) {
    static const struct {
        const char *source;
        const char *off, *high; /* in what is told; NULL: nothing is */
    } rows[] = {
        {"{{ messages[0].content }}", "no switch", "no switch"},
        {"{# enable_thinking #}{{ messages[0].thinking }}x", "no switch", "no switch"},
        {"{% if enable_thinking is defined and not enable_thinking %}no{% endif %}", NULL,
         "on and off only"},
        {"{% if thinking %}yes{% endif %}", NULL, "on and off only"},
        {"{{ reasoning_effort or 'medium' }}", NULL, NULL},
        {"{% if thinking %}{{ reasoning_effort or 'much' }}{% endif %}", NULL, NULL},
        {"{{ raise_exception('never') }}", NULL, NULL},
    };
    for (size_t i = 0; i < N(rows); i++) {
        struct cw_template *t;
        ck_assert_int_eq(cw_template_create(&t, rows[i].source, strlen(rows[i].source), NULL),
                         CW_OK);
        const char *off = cw_think_doubt(t, "", "", 0), *high = cw_think_doubt(t, "", "", 4);
        ck_assert_msg(rows[i].off == NULL ? off == NULL : off && strstr(off, rows[i].off), "%s: %s",
                      rows[i].source, off);
        ck_assert_msg(rows[i].high == NULL ? high == NULL : high && strstr(high, rows[i].high),
                      "%s: %s", rows[i].source, high);
        ck_assert_ptr_null(cw_think_doubt(t, "", "", -1));
        cw_template_destroy(t);
    }
    struct cw_template_var vars[CW_THINK_VARS];
    ck_assert_uint_eq(cw_think_vars(-1, vars), 0);
    ck_assert_uint_eq(cw_think_vars(5, vars), 0);
    ck_assert_uint_eq(cw_think_vars(1, vars), 2);
    ck_assert(vars[0].b && vars[1].b);
    ck_assert_uint_eq(cw_think_vars(0, vars), 3);
    ck_assert(!vars[0].b && !vars[1].b);
    ck_assert_str_eq(vars[2].s, "low");
    ck_assert_uint_eq(cw_think_vars(3, vars), 3);
    ck_assert_str_eq(vars[2].s, "medium");
}
END_TEST

/* What would end the section after `reply`; NULL: there is none, `settled` tells whether one may
 * come. */
static void check_closing(const char *tail, const char *reply, const char *closing, bool settled) {
    struct parts p = {0};
    struct cw_think t;
    struct cw_buf text = {0};
    bool is_settled;
    cw_think_init(&t, NULL, tail, strlen(tail), no_template);
    cw_think_feed(&t, -1, reply, strlen(reply), collect, &p);
    bool closes = cw_think_closing(&t, &text, &is_settled);
    cw_buf_putc(&text, '\0');
    ck_assert(closes == (closing != NULL) && is_settled == settled);
    ck_assert_str_eq(text.data, closing != NULL ? closing : "");
    cw_think_free(&t);
    cw_buf_free(&text);
    cw_buf_free(&p.thought);
    cw_buf_free(&p.answer);
}

START_TEST(closings) {
    check_closing("<think>\n", "", "</think>\n\n", false);
    check_closing("<think>\n", "why", "\n</think>\n\n", false);
    check_closing("<think>\n", "why\n", "</think>\n\n", false);
    check_closing("", "<think>why", "\n</think>\n\n", false);
    check_closing("", "[THINK]why", "[/THINK]", false);
    check_closing("", "<seed:think>why", "</seed:think>", false);
    check_closing("", "", NULL, false);
    check_closing("", "<thi", NULL, false);
    check_closing("", "why", NULL, true);
    check_closing("<think>\n", "why\n</think>\n\nso", NULL, true);
    check_closing("<think>\n\n</think>\n\n", "", NULL, false); /* it may think all the same */
    check_closing("<think>\n\n</think>\n\n", "yes", NULL, true);
    check_closing("", "<|channel>", "thought\n<channel|>", false);
    check_closing("", "<|channel>thought\nwhy", "\n<channel|>", false);
}
END_TEST

START_TEST(thinking_begun_by_the_prompt) {
    check_parts("<|im_start|>assistant\n<think>\n", "why\n</think>\n\nyes", "why", "yes");
    check_parts("<think>\n\n</think>\n\n", "\nyes", "", "yes");
    check_parts("<|assistant|>[THINK]", "a[/THINK]b", "a", "b");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("stops");
    TCase *stops = tcase_create("stop strings"), *characters = tcase_create("characters"),
          *thinking = tcase_create("thinking");
    tcase_set_timeout(stops, 60);
    tcase_add_test(stops, over_several_tokens);
    tcase_add_test(stops, holds_back_no_more_than_needed);
    tcase_add_test(stops, any_cut_gives_the_same);
    suite_add_tcase(suite, stops);
    tcase_set_timeout(characters, 60);
    tcase_add_test(characters, whole_characters);
    tcase_add_test(characters, invalid_bytes_pass);
    suite_add_tcase(suite, characters);
    tcase_set_timeout(thinking, 60);
    tcase_add_test(thinking, thinking_as_text);
    tcase_add_test(thinking, thinking_begun_by_the_prompt);
    tcase_add_test(thinking, wrapped_answers);
    tcase_add_test(thinking, thinking_as_tokens);
    tcase_add_test(thinking, what_templates_can_ask);
    tcase_add_test(thinking, closings);
    suite_add_tcase(suite, thinking);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
