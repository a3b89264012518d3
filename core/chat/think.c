/* SPDX-License-Identifier: MIT
 *
 * The table of markers and the small machine that reads them. A marker written as ordinary text
 * opens a section only as the first thing of a reply, since later it may as well be quoted; as a
 * control token it is meant wherever it stands.
 */
#include "core/chat/think.h"

#include <string.h>

static const struct marker {
    const char *open, *close;
    const char *before, *after; /* line ends that the family writes around `close` */
    const char *title;          /* written behind `open`, no part of the thought; NULL: none */
} markers[] = {
    /* DeepSeek-R1, Qwen3, QwQ, SmolLM3, Hunyuan */
    {"<think>", "</think>", "\n", "\n\n", NULL},
    {"<thinking>", "</thinking>", "\n", "\n\n", NULL},
    {"<thought>", "</thought>", "\n", "\n", NULL},
    {"<reasoning>", "</reasoning>", "\n", "\n", NULL},
    {"<|START_THINKING|>", "<|END_THINKING|>", "", "", NULL},  /* Command A, R7B */
    {"[THINK]", "[/THINK]", "", "", NULL},                     /* Magistral */
    {"<seed:think>", "</seed:think>", "", "", NULL},           /* Seed-OSS */
    {"\u25c1think\u25b7", "\u25c1/think\u25b7", "", "", NULL}, /* Kimi */
    {"<|inner_prefix|>", "<|inner_suffix|>", "", "", NULL},    /* Apertus */
    {"<|channel>", "<channel|>", "\n", "", "thought\n"},       /* Gemma 4 */
};
enum { N_MARKERS = sizeof markers / sizeof markers[0] };

/* How answers are wrapped behind a thought. */
static const struct wrap {
    const char *open, *close;
} wraps[] = {
    {"<answer>", "</answer>"},     /* Hunyuan */
    {"<response>", "</response>"}, /* Granite, ERNIE */
};
enum { N_WRAPS = sizeof wraps / sizeof wraps[0] };

/* gpt-oss: <|start|>assistant<|channel|>analysis<|message|> ... <|end|> */
static const char channel[] = "<|channel|>", message[] = "<|message|>", start[] = "<|start|>",
                  end[] = "<|end|>";

static bool is_control(const struct cw_tokenizer *t, const char *text) {
    int32_t id = cw_tokenizer_find(t, text, strlen(text));
    return id >= 0 && cw_tokenizer_is_control(t, id);
}

/* The last place of `needle` in s[0..n), or -1. */
static ptrdiff_t find_last(const char *s, size_t n, const char *needle) {
    size_t len = strlen(needle);
    for (size_t i = n; i >= len; i--) {
        if (memcmp(s + i - len, needle, len) == 0) {
            return (ptrdiff_t)(i - len);
        }
    }
    return -1;
}

static void enter(struct cw_think *t, const struct marker *m) {
    t->state = CW_THINK_IN;
    t->close = m->close;
    t->title = m->title;
    t->trim = true;
}

static void leave(struct cw_think *t) {
    t->state = t->state == CW_THINK_IN && t->wraps != 0 ? CW_THINK_AFTER : CW_THINK_OUT;
    t->title = NULL;
    t->trim = true;
}

void cw_think_init(struct cw_think *t, const struct cw_tokenizer *tokenizer, const char *tail,
                   size_t n, struct cw_str source) {
    memset(t, 0, sizeof *t);
    t->tokenizer = tokenizer;
    t->channels =
        tokenizer != NULL && is_control(tokenizer, channel) && is_control(tokenizer, message);
    for (size_t i = 0; i < N_WRAPS && source.len > 0; i++) {
        bool known = memmem(source.data, source.len, wraps[i].open, strlen(wraps[i].open)) != NULL;
        t->wraps |= (unsigned)known << i;
    }
    t->state = CW_THINK_START;
    for (size_t i = 0; i < N_MARKERS; i++) {
        ptrdiff_t at = find_last(tail, n, markers[i].open);
        if (at < 0) {
            continue;
        }
        /* One that was opened and closed: the template asks for no thinking, which does not keep
         * every model from it. */
        if (at > find_last(tail, n, markers[i].close)) {
            enter(t, &markers[i]);
            t->title = NULL;
        }
        t->trim = true;
        return;
    }
}

void cw_think_free(struct cw_think *t) {
    cw_buf_free(&t->held);
}

bool cw_think_closing(const struct cw_think *t, struct cw_buf *out, bool *settled) {
    *settled = t->state >= CW_THINK_AFTER && t->state <= CW_THINK_OUT;
    if (t->state == CW_THINK_CHANNEL) {
        cw_buf_printf(out, "%s%sassistant%sfinal%s", end, start, channel, message);
        return true;
    }
    for (size_t i = 0; t->state == CW_THINK_IN && i < N_MARKERS; i++) {
        if (strcmp(markers[i].close, t->close) == 0) {
            bool new_line = t->trim || (t->held.len > 0 && t->held.data[t->held.len - 1] == '\n');
            cw_buf_printf(out, "%s%s%s%s", t->title != NULL ? t->title : "",
                          new_line ? "" : markers[i].before, t->close, markers[i].after);
            return true;
        }
    }
    return false;
}

bool cw_think_now(const struct cw_think *t) {
    return t->state == CW_THINK_IN || t->state == CW_THINK_CHANNEL;
}

/* Pass on s[0..n), without the line ends that follow a marker. */
static int pass(struct cw_think *t, const char *s, size_t n, cw_think_emit *emit, void *arg) {
    while (t->trim && n > 0 && (*s == '\n' || *s == '\r')) {
        s++;
        n--;
    }
    if (n == 0) {
        return CW_OK;
    }
    t->trim = false;
    return emit(arg, cw_think_now(t), s, n);
}

/* Pass on the first n held bytes and drop `extra` more. */
static int pass_held(struct cw_think *t, size_t n, size_t extra, cw_think_emit *emit, void *arg) {
    int rc = pass(t, t->held.data, n, emit, arg);
    size_t gone = n + extra;
    memmove(t->held.data, t->held.data + gone, t->held.len - gone);
    t->held.len -= gone;
    return rc;
}

/* What of the held text is blank at its beginning. */
static size_t blanks_held(const struct cw_think *t) {
    size_t n = 0;
    while (n < t->held.len && t->held.data[n] != '\0' && strchr(" \t\r\n", t->held.data[n])) {
        n++;
    }
    return n;
}

/* Whether s[0..n) begins with `marker`, or may yet. */
static bool may_begin(const char *s, size_t n, const char *marker) {
    size_t len = strlen(marker);
    return memcmp(s, marker, n < len ? n : len) == 0;
}

/* At the start of a reply: does the held text begin with a marker, or may it yet? */
static int read_start(struct cw_think *t, cw_think_emit *emit, void *arg) {
    size_t blanks = blanks_held(t), n = t->held.len - blanks;
    for (size_t i = 0; i < N_MARKERS; i++) {
        size_t len = strlen(markers[i].open);
        if (may_begin(t->held.data + blanks, n, markers[i].open)) {
            if (n < len) {
                return CW_OK; /* wait; text that is all blanks waits too */
            }
            enter(t, &markers[i]);
            return pass_held(t, 0, blanks + len, emit, arg);
        }
    }
    t->state = CW_THINK_OUT;
    return CW_OK;
}

/* The same behind a thought, of the wraps that the template knows. */
static int read_after(struct cw_think *t, cw_think_emit *emit, void *arg) {
    size_t blanks = blanks_held(t), n = t->held.len - blanks;
    for (size_t i = 0; i < N_WRAPS; i++) {
        size_t len = strlen(wraps[i].open);
        if ((t->wraps >> i & 1) && may_begin(t->held.data + blanks, n, wraps[i].open)) {
            if (n < len) {
                return CW_OK;
            }
            t->state = CW_THINK_ANSWER;
            t->close = wraps[i].close;
            t->trim = true;
            return pass_held(t, 0, blanks + len, emit, arg);
        }
    }
    t->state = CW_THINK_OUT;
    return CW_OK;
}

/* In a section: pass on all but what may be the closing marker or the line ends before it. */
static int read_section(struct cw_think *t, cw_think_emit *emit, void *arg) {
    if (t->title != NULL) {
        size_t title = strlen(t->title);
        if (t->held.len < title && may_begin(t->held.data, t->held.len, t->title)) {
            return CW_OK;
        }
        bool there = may_begin(t->held.data, t->held.len, t->title);
        t->title = NULL;
        if (there) {
            pass_held(t, 0, title, emit, arg);
        }
    }
    size_t len = strlen(t->close), n = t->held.len;
    const char *at = memmem(t->held.data, n, t->close, len);
    size_t text = at != NULL ? (size_t)(at - t->held.data) : n;
    if (at == NULL) {
        size_t tail = n < len - 1 ? n : len - 1;
        while (memcmp(t->held.data + n - tail, t->close, tail) != 0) {
            tail--;
        }
        text = n - tail;
    }
    size_t body = text;
    while (body > 0 && t->held.data[body - 1] == '\n') {
        body--;
    }
    if (at == NULL) {
        return pass_held(t, body, 0, emit, arg);
    }
    int rc = pass_held(t, body, text - body + len, emit, arg);
    leave(t);
    return rc;
}

static int read_text(struct cw_think *t, cw_think_emit *emit, void *arg) {
    int rc = CW_OK;
    if (rc == CW_OK && t->state == CW_THINK_START && t->held.len > 0) {
        rc = read_start(t, emit, arg);
    }
    if (rc == CW_OK && t->state == CW_THINK_IN && t->held.len > 0) {
        rc = read_section(t, emit, arg);
    }
    if (rc == CW_OK && t->state == CW_THINK_AFTER && t->held.len > 0) {
        rc = read_after(t, emit, arg);
    }
    if (rc == CW_OK && t->state == CW_THINK_ANSWER && t->held.len > 0) {
        rc = read_section(t, emit, arg);
    }
    if (rc == CW_OK && (t->state == CW_THINK_OUT || t->state == CW_THINK_CHANNEL) &&
        t->held.len > 0) {
        rc = pass_held(t, t->held.len, 0, emit, arg);
    }
    return rc;
}

static bool held_is(const struct cw_think *t, const char *s) {
    return t->held.len >= strlen(s) && memcmp(t->held.data, s, strlen(s)) == 0;
}

/* A control token. What is held then can no longer become a marker by text. */
static int read_control(struct cw_think *t, struct cw_str text, cw_think_emit *emit, void *arg) {
    int rc = CW_OK;
    if (t->channels) {
        if (cw_str_eq(text, channel) || cw_str_eq(text, start) || cw_str_eq(text, end)) {
            if (t->state != CW_THINK_HEADER) {
                rc = cw_think_flush(t, emit, arg);
            }
            cw_buf_clear(&t->held);
            t->state = CW_THINK_HEADER;
            t->named = cw_str_eq(text, channel);
            return rc;
        }
        if (cw_str_eq(text, message)) {
            bool think = t->state == CW_THINK_HEADER && t->named && !held_is(t, "final");
            cw_buf_clear(&t->held);
            t->state = think ? CW_THINK_CHANNEL : CW_THINK_OUT;
            return CW_OK;
        }
    }
    for (size_t i = 0; i < N_MARKERS; i++) {
        if (cw_str_eq(text, markers[i].open)) {
            rc = t->state == CW_THINK_START ? CW_OK : cw_think_flush(t, emit, arg);
            cw_buf_clear(&t->held);
            enter(t, &markers[i]);
            return rc;
        }
        if (cw_str_eq(text, markers[i].close) && t->state == CW_THINK_IN) {
            while (t->held.len > 0 && t->held.data[t->held.len - 1] == '\n') {
                t->held.len--;
            }
            rc = cw_think_flush(t, emit, arg);
            leave(t);
            return rc;
        }
    }
    return CW_OK;
}

int cw_think_feed(struct cw_think *t, int32_t id, const char *text, size_t n, cw_think_emit *emit,
                  void *arg) {
    if (n > 0) {
        cw_buf_add(&t->held, text, n);
    }
    int rc = read_text(t, emit, arg);
    if (rc == CW_OK && t->tokenizer != NULL && id >= 0 &&
        cw_tokenizer_is_control(t->tokenizer, id)) {
        rc = read_control(t, cw_tokenizer_text(t->tokenizer, id), emit, arg);
    }
    return rc;
}

int cw_think_flush(struct cw_think *t, cw_think_emit *emit, void *arg) {
    int rc = CW_OK;
    if (t->held.len > 0 && t->state != CW_THINK_HEADER) {
        rc = pass(t, t->held.data, t->held.len, emit, arg);
    }
    cw_buf_clear(&t->held);
    return rc;
}

/* ---- asking for it ------------------------------------------------------------------------- */

enum { OFF, ON, LOW, HIGH = 4 };

size_t cw_think_vars(int think, struct cw_template_var out[CW_THINK_VARS]) {
    static const char *const efforts[] = {"low", NULL, "low", "medium", "high"};
    size_t n = 0;
    if (think < OFF || think > HIGH) {
        return 0;
    }
    /* Families call the same switch by two names; gpt-oss knows no off. */
    out[n++] =
        (struct cw_template_var){.name = "enable_thinking", .kind = CW_VAR_BOOL, .b = think != OFF};
    out[n++] = (struct cw_template_var){.name = "thinking", .kind = CW_VAR_BOOL, .b = think != OFF};
    if (efforts[think] != NULL) {
        out[n++] = (struct cw_template_var){
            .name = "reasoning_effort", .kind = CW_VAR_STRING, .s = efforts[think]};
    }
    return n;
}

/* Whether two ways to ask make different prompts; also where one of them cannot be made. */
static bool differ(const struct cw_template *t, const char *bos, const char *eos, int a, int b) {
    const struct cw_message hello = {.role = "user", .content = "x", .len = 1};
    struct cw_template_var vars[2][CW_THINK_VARS];
    struct cw_prompt p[2];
    bool made[2];
    for (int i = 0; i < 2; i++) {
        struct cw_template_input in = {
            .messages = &hello,
            .n_messages = 1,
            .add_generation_prompt = true,
            .bos = bos,
            .eos = eos,
            .now = {.tm_year = 100, .tm_mday = 1},
            .vars = vars[i],
            .n_vars = cw_think_vars(i == 0 ? a : b, vars[i]),
        };
        made[i] = cw_template_render(t, &in, &p[i], NULL, NULL) == CW_OK;
    }
    bool same = made[0] && made[1] && p[0].len == p[1].len &&
                (p[0].len == 0 || memcmp(p[0].text, p[1].text, p[0].len) == 0);
    for (int i = 0; i < 2; i++) {
        if (made[i]) {
            cw_prompt_free(&p[i]);
        }
    }
    return !same;
}

const char *cw_think_doubt(const struct cw_template *t, const char *bos, const char *eos,
                           int think) {
    if (think < OFF || (think >= LOW && differ(t, bos, eos, LOW, HIGH))) {
        return NULL;
    }
    if (!differ(t, bos, eos, OFF, ON)) {
        return "the chat template has no switch for thinking: asking for it changes nothing";
    }
    return think < LOW ? NULL
                       : "the chat template knows thinking on and off only: how much is not asked";
}
