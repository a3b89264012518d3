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
} markers[] = {
    /* DeepSeek-R1, Qwen3, QwQ, SmolLM3, Hunyuan */
    {"<think>", "</think>", "\n", "\n\n"},
    {"<thinking>", "</thinking>", "\n", "\n\n"},
    {"<thought>", "</thought>", "\n", "\n"},
    {"<reasoning>", "</reasoning>", "\n", "\n"},
    {"<|START_THINKING|>", "<|END_THINKING|>", "", ""},  /* Command A, R7B */
    {"[THINK]", "[/THINK]", "", ""},                     /* Magistral */
    {"<seed:think>", "</seed:think>", "", ""},           /* Seed-OSS */
    {"\u25c1think\u25b7", "\u25c1/think\u25b7", "", ""}, /* Kimi */
    {"<|inner_prefix|>", "<|inner_suffix|>", "", ""},    /* Apertus */
};
enum { N_MARKERS = sizeof markers / sizeof markers[0] };

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

void cw_think_init(struct cw_think *t, const struct cw_tokenizer *tokenizer, const char *tail,
                   size_t n) {
    memset(t, 0, sizeof *t);
    t->tokenizer = tokenizer;
    t->channels =
        tokenizer != NULL && is_control(tokenizer, channel) && is_control(tokenizer, message);
    t->state = CW_THINK_START;
    for (size_t i = 0; i < N_MARKERS; i++) {
        ptrdiff_t at = find_last(tail, n, markers[i].open);
        if (at < 0) {
            continue;
        }
        if (at > find_last(tail, n, markers[i].close)) {
            t->state = CW_THINK_IN;
            t->close = markers[i].close;
        } else {
            t->state =
                CW_THINK_OUT; /* a section opened and closed: the template forbids thinking */
        }
        t->trim = true;
        return;
    }
}

void cw_think_free(struct cw_think *t) {
    cw_buf_free(&t->held);
}

bool cw_think_closing(const struct cw_think *t, struct cw_buf *out, bool *settled) {
    *settled = t->state == CW_THINK_OUT;
    if (t->state == CW_THINK_CHANNEL) {
        cw_buf_printf(out, "%s%sassistant%sfinal%s", end, start, channel, message);
        return true;
    }
    for (size_t i = 0; t->state == CW_THINK_IN && i < N_MARKERS; i++) {
        if (strcmp(markers[i].close, t->close) == 0) {
            bool new_line = t->trim || (t->held.len > 0 && t->held.data[t->held.len - 1] == '\n');
            cw_buf_printf(out, "%s%s%s", new_line ? "" : markers[i].before, t->close,
                          markers[i].after);
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

/* At the start of a reply: does the held text begin with a marker, or may it yet? */
static int read_start(struct cw_think *t, cw_think_emit *emit, void *arg) {
    size_t blanks = 0;
    while (blanks < t->held.len && strchr(" \t\r\n", t->held.data[blanks]) != NULL &&
           t->held.data[blanks] != '\0') {
        blanks++;
    }
    const char *s = t->held.data + blanks;
    size_t n = t->held.len - blanks;
    for (size_t i = 0; i < N_MARKERS; i++) {
        size_t len = strlen(markers[i].open);
        if (memcmp(s, markers[i].open, n < len ? n : len) != 0) {
            continue;
        }
        if (n < len) {
            return CW_OK; /* wait; text that is all blanks waits too */
        }
        t->state = CW_THINK_IN;
        t->close = markers[i].close;
        t->trim = true;
        return pass_held(t, 0, blanks + len, emit, arg);
    }
    t->state = CW_THINK_OUT;
    return CW_OK;
}

/* In a section: pass on all but what may be the closing marker or the line ends before it. */
static int read_section(struct cw_think *t, cw_think_emit *emit, void *arg) {
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
    t->state = CW_THINK_OUT;
    t->trim = true;
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
            return rc;
        }
        if (cw_str_eq(text, message)) {
            bool think = t->state == CW_THINK_HEADER && !held_is(t, "final");
            cw_buf_clear(&t->held);
            t->state = think ? CW_THINK_CHANNEL : CW_THINK_OUT;
            return CW_OK;
        }
    }
    for (size_t i = 0; i < N_MARKERS; i++) {
        if (cw_str_eq(text, markers[i].open)) {
            rc = t->state == CW_THINK_START ? CW_OK : cw_think_flush(t, emit, arg);
            cw_buf_clear(&t->held);
            t->state = CW_THINK_IN;
            t->close = markers[i].close;
            t->trim = true;
            return rc;
        }
        if (cw_str_eq(text, markers[i].close) && t->state == CW_THINK_IN) {
            while (t->held.len > 0 && t->held.data[t->held.len - 1] == '\n') {
                t->held.len--;
            }
            rc = cw_think_flush(t, emit, arg);
            t->state = CW_THINK_OUT;
            t->trim = true;
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
