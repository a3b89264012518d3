/* SPDX-License-Identifier: MIT
 *
 * The lexer for languages of words, strings, numbers and comments. Every step either takes bytes
 * for good or looks a bounded way ahead, so a line costs its length.
 */
#include "ui/markdown/highlight.h"

#include <string.h>

#include "ui/markdown/hl_lang.h"

const struct cw_hl_lang cw_hl_langs[] = {
    {"c h", &cw_hl_c, NULL},
    {"cpp c++ cc cxx hpp hh hxx cuda arduino", &cw_hl_cpp, NULL},
    {"python py python3 py3 pycon", &cw_hl_python, NULL},
    {"javascript js jsx node mjs cjs", &cw_hl_js, NULL},
    {"typescript ts tsx", &cw_hl_ts, NULL},
    {"rust rs", &cw_hl_rust, NULL},
    {"go golang", &cw_hl_go, NULL},
    {"java", &cw_hl_java, NULL},
    {"bash sh shell zsh ksh console shell-session", &cw_hl_shell, NULL},
    {"json jsonc json5 jsonl", &cw_hl_json, NULL},
    {"sql mysql postgresql postgres sqlite plsql", &cw_hl_sql, NULL},
    {"yaml yml", NULL, cw_hl_yaml},
    {"html xml htm xhtml svg vue", NULL, cw_hl_html},
    {"css scss less", NULL, cw_hl_css},
    {"diff patch", NULL, cw_hl_diff},
};
const size_t cw_hl_n_langs = sizeof cw_hl_langs / sizeof cw_hl_langs[0];

/* What a line begins in. */
enum { IN_CODE, IN_COMMENT, IN_STRING, IN_RAW };

static bool is_alpha(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* ---- Which language. ---- */

static bool names_hold(const char *names, const char *name, size_t n) {
    for (const char *at = names; *at != '\0';) {
        size_t len = strcspn(at, " ");
        if (len == n && memcmp(at, name, n) == 0) {
            return true;
        }
        at += len;
        at += strspn(at, " ");
    }
    return false;
}

struct cw_hl cw_hl_begin(const char *name, size_t n) {
    char word[24];
    size_t len = 0;
    while (n > 0 && (*name == '{' || *name == '.')) { /* "{.python}" */
        name++;
        n--;
    }
    while (len < n &&
           (is_alpha(name[len]) || is_digit(name[len]) || memchr("+#-_", name[len], 4) != NULL)) {
        if (len == sizeof word) {
            return (struct cw_hl){0};
        }
        word[len] = lower(name[len]);
        len++;
    }
    for (size_t i = 0; i < cw_hl_n_langs; i++) {
        if (len > 0 && names_hold(cw_hl_langs[i].names, word, len)) {
            return (struct cw_hl){.lang = &cw_hl_langs[i]};
        }
    }
    return (struct cw_hl){0};
}

/* ---- Words. ---- */

static bool words_hold(const struct cw_hl_words *words, const char *s, size_t n, bool fold) {
    size_t lo = 0, hi = words->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        const char *w = words->v[mid];
        int order = 0;
        for (size_t i = 0; i < n && order == 0; i++) {
            char c = fold ? lower(s[i]) : s[i];
            order = (unsigned char)c - (unsigned char)w[i]; /* w ends in 0, which differs */
        }
        if (order == 0 && w[n] != '\0') {
            order = -1;
        }
        if (order == 0) {
            return true;
        }
        if (order < 0) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return false;
}

static bool starts(const char *s, size_t n, const char *what) {
    size_t len = strlen(what);
    return len <= n && memcmp(s, what, len) == 0;
}

static bool is_letter(const struct cw_hl_code *code, char c) {
    return is_alpha(c) || c == '_' || (unsigned char)c >= 0x80 ||
           (code->letters != NULL && c != '\0' && strchr(code->letters, c) != NULL);
}

static size_t word_length(const struct cw_hl_code *code, const char *s, size_t n) {
    size_t i = 0;
    while (i < n && (is_letter(code, s[i]) || is_digit(s[i]))) {
        i++;
    }
    return i;
}

size_t cw_hl_number(const char *s, size_t n) {
    bool hex = n > 1 && s[0] == '0' && lower(s[1]) == 'x';
    size_t i = 1;
    while (i < n) {
        char c = s[i];
        bool sign = (c == '+' || c == '-') && !hex && lower(s[i - 1]) == 'e' && i + 1 < n &&
                    is_digit(s[i + 1]);
        bool dot = c == '.' && !(i + 1 < n && s[i + 1] == '.'); /* 0..10 is a range */
        bool quote = c == '\'' && i + 1 < n && (is_digit(s[i + 1]) || is_alpha(s[i + 1])) &&
                     is_digit(s[i - 1]);
        if (!is_digit(c) && !is_alpha(c) && c != '_' && !dot && !sign && !quote) {
            break;
        }
        i++;
    }
    return i;
}

/* ---- The lexer. ---- */

struct lexer {
    struct cw_hl *hl;
    const struct cw_hl_code *code;
    const char *s;
    size_t n, at;
    size_t plain; /* bytes before `at` from here on are code of no role */
    cw_hl_emit *emit;
    void *ctx;
};

/* What was passed over is plain, [at, end) has a role. */
static void take(struct lexer *x, size_t end, enum md_role role) {
    if (x->at > x->plain) {
        x->emit(x->ctx, MD_CODE_TEXT, x->plain, x->at);
    }
    if (end > x->at) {
        x->emit(x->ctx, role, x->at, end);
    }
    x->at = x->plain = end;
}

static void take_comment(struct lexer *x, size_t from) {
    const struct cw_hl_code *code = x->code;
    size_t i = from;
    while (i < x->n) {
        if (starts(x->s + i, x->n - i, code->comment_close)) {
            i += strlen(code->comment_close);
            if (--x->hl->depth == 0) {
                x->hl->in = IN_CODE;
                break;
            }
        } else if (code->comments_nest && starts(x->s + i, x->n - i, code->comment_open)) {
            i += strlen(code->comment_open);
            x->hl->depth += x->hl->depth < UINT16_MAX;
        } else {
            i++;
        }
    }
    take(x, i, MD_COMMENT);
}

/* Whether the next byte that is no blank is a colon. */
static bool before_colon(const struct lexer *x, size_t i) {
    while (i < x->n && (x->s[i] == ' ' || x->s[i] == '\t')) {
        i++;
    }
    return i < x->n && x->s[i] == ':';
}

/* The rest of string `which`, from the byte `from` behind its opening. */
static void take_string(struct lexer *x, size_t which, size_t from) {
    const struct cw_hl_string *str = &x->code->strings[which];
    size_t i = from;
    bool closed = false;
    while (i < x->n && !closed) {
        if (starts(x->s + i, x->n - i, str->close)) {
            i += strlen(str->close);
            closed = true;
        } else {
            i += str->escape != 0 && x->s[i] == str->escape && i + 1 < x->n ? 2 : 1;
        }
    }
    bool open = !closed && str->multiline;
    x->hl->in = open ? IN_STRING : IN_CODE;
    x->hl->which = (uint8_t)(open ? which : 0);
    bool key = (x->code->flags & CW_HL_KEYS) != 0 && closed && before_colon(x, i);
    take(x, i, key ? MD_KEY : MD_STRING);
}

/* A raw string that as many hashes end as it began with. */
static void take_raw(struct lexer *x, size_t from) {
    size_t hashes = x->hl->depth;
    size_t i = from;
    while (i < x->n) {
        if (x->s[i++] != '"') {
            continue;
        }
        size_t have = 0;
        while (have < hashes && i + have < x->n && x->s[i + have] == '#') {
            have++;
        }
        i += have;
        if (have == hashes) {
            x->hl->in = IN_CODE;
            x->hl->depth = 0;
            break;
        }
    }
    take(x, i, MD_STRING);
}

/* r"...", r#"..."#, br"..." */
static bool try_raw(struct lexer *x) {
    size_t i = x->at + (x->s[x->at] == 'b');
    if (i >= x->n || x->s[i] != 'r') {
        return false;
    }
    size_t hashes = 0;
    i++;
    while (i < x->n && x->s[i] == '#' && hashes < 255) {
        hashes++;
        i++;
    }
    if (i >= x->n || x->s[i] != '"') {
        return false;
    }
    x->hl->in = IN_RAW;
    x->hl->depth = (uint16_t)hashes;
    take_raw(x, i + 1);
    return true;
}

/* 'a that no quote closes, and #[...], which are Rust's. */
static bool try_rust(struct lexer *x) {
    const char *s = x->s + x->at;
    size_t n = x->n - x->at;
    if (s[0] == '\'' && n > 1 && is_letter(x->code, s[1]) && (unsigned char)s[1] < 0x80 &&
        !(n > 2 && s[2] == '\'')) {
        take(x, x->at + 1 + word_length(x->code, s + 1, n - 1), MD_VARIABLE);
        return true;
    }
    size_t open = n > 1 && s[1] == '!' ? 2 : 1;
    if (s[0] == '#' && n > open && s[open] == '[') {
        const char *end = memchr(s, ']', n);
        take(x, end != NULL ? x->at + (size_t)(end - s) + 1 : x->n, MD_PREPROC);
        return true;
    }
    return (s[0] == 'r' || s[0] == 'b') && try_raw(x);
}

static bool try_string(struct lexer *x, size_t at) {
    for (size_t k = 0; k < 5 && x->code->strings[k].open != NULL; k++) {
        const char *open = x->code->strings[k].open;
        if (starts(x->s + at, x->n - at, open)) {
            take_string(x, k, at + strlen(open));
            return true;
        }
    }
    return false;
}

static bool try_comment(struct lexer *x) {
    const struct cw_hl_code *code = x->code;
    const char *s = x->s + x->at;
    size_t n = x->n - x->at;
    for (size_t k = 0; k < 2 && code->comments[k] != NULL; k++) {
        if (starts(s, n, code->comments[k]) &&
            ((code->flags & CW_HL_HASH_APART) == 0 || x->at == 0 || s[-1] == ' ' || s[-1] == '\t' ||
             s[-1] == ';')) {
            take(x, x->n, MD_COMMENT);
            return true;
        }
    }
    if (code->comment_open != NULL && starts(s, n, code->comment_open)) {
        x->hl->in = IN_COMMENT;
        x->hl->depth = 1;
        take_comment(x, x->at + strlen(code->comment_open));
        return true;
    }
    return false;
}

/* #include <...> and other directives; `#` stands first in its line. */
static void take_directive(struct lexer *x) {
    size_t i = x->at + 1;
    while (i < x->n && (x->s[i] == ' ' || x->s[i] == '\t')) {
        i++;
    }
    size_t word = i;
    i += word_length(x->code, x->s + i, x->n - i);
    bool include = i - word == 7 && memcmp(x->s + word, "include", 7) == 0;
    take(x, i, MD_PREPROC);
    while (include && x->at < x->n && (x->s[x->at] == ' ' || x->s[x->at] == '\t')) {
        x->at++;
    }
    if (include && x->at < x->n && x->s[x->at] == '<') {
        const char *end = memchr(x->s + x->at, '>', x->n - x->at);
        take(x, end != NULL ? (size_t)(end - x->s) + 1 : x->n, MD_STRING);
    }
}

static void take_variable(struct lexer *x) {
    size_t i = x->at + 1;
    if (i < x->n && x->s[i] == '{') {
        const char *end = memchr(x->s + i, '}', x->n - i);
        i = end != NULL ? (size_t)(end - x->s) + 1 : x->n;
    } else if (i < x->n && (is_alpha(x->s[i]) || x->s[i] == '_')) {
        i += word_length(x->code, x->s + i, x->n - i);
    } else if (i < x->n && (is_digit(x->s[i]) || memchr("@*#?$!-", x->s[i], 7) != NULL)) {
        i++;
    } else {
        x->at++;
        return;
    }
    take(x, i, MD_VARIABLE);
}

static void take_word(struct lexer *x) {
    const struct cw_hl_code *code = x->code;
    const char *s = x->s + x->at;
    size_t n = word_length(code, s, x->n - x->at);
    size_t end = x->at + n;
    bool fold = (code->flags & CW_HL_FOLD) != 0;
    char next = end < x->n ? x->s[end] : '\0';
    if ((code->flags & CW_HL_PREFIXES) != 0 && n <= 3 && (next == '"' || next == '\'') &&
        try_string(x, end)) {
        return;
    }
    enum md_role role = MD_CODE_TEXT;
    if (words_hold(&code->keywords, s, n, fold)) {
        role = MD_KEYWORD;
    } else if (words_hold(&code->types, s, n, fold)) {
        role = code->types_role != 0 ? code->types_role : MD_TYPE;
    } else if (words_hold(&code->constants, s, n, fold)) {
        role = MD_CONSTANT;
    } else if ((code->flags & CW_HL_RUST) != 0 && next == '!' &&
               !(end + 1 < x->n && x->s[end + 1] == '=')) {
        role = MD_FUNCTION;
        end++;
    } else if ((code->flags & CW_HL_CALLS) != 0 && next == '(') {
        role = MD_FUNCTION;
    }
    if (role == MD_CODE_TEXT) {
        x->at = end;
    } else {
        take(x, end, role);
    }
}

/* ".5", but not what follows a range's dots. */
static bool is_fraction(const struct lexer *x) {
    return x->at + 1 < x->n && is_digit(x->s[x->at + 1]) && (x->at == 0 || x->s[x->at - 1] != '.');
}

/* "@a.b", an '@' at x->at. */
static size_t decorator_end(const struct lexer *x) {
    size_t i = x->at;
    do {
        i++;
        i += word_length(x->code, x->s + i, x->n - i);
    } while (i + 1 < x->n && x->s[i] == '.' && is_letter(x->code, x->s[i + 1]));
    return i;
}

static void lex_code(struct lexer *x) {
    const struct cw_hl_code *code = x->code;
    if (x->hl->in == IN_COMMENT) {
        take_comment(x, 0);
    } else if (x->hl->in == IN_STRING) {
        take_string(x, x->hl->which, 0);
    } else if (x->hl->in == IN_RAW) {
        take_raw(x, 0);
    }
    bool first = x->at == 0; /* nothing but blanks before */
    while (x->at < x->n) {
        char c = x->s[x->at];
        if (c == ' ' || c == '\t') {
            x->at++;
            continue;
        }
        bool was_first = first;
        first = false;
        if (was_first && c == '#' && (code->flags & CW_HL_DIRECTIVES) != 0) {
            take_directive(x);
        } else if (try_comment(x) || ((code->flags & CW_HL_RUST) != 0 && try_rust(x)) ||
                   try_string(x, x->at)) {
            continue;
        } else if (is_digit(c) || (c == '.' && is_fraction(x))) {
            take(x, x->at + cw_hl_number(x->s + x->at, x->n - x->at), MD_NUMBER);
        } else if (is_letter(code, c)) {
            take_word(x);
        } else if (c == '@' && (code->flags & CW_HL_DECORATORS) != 0 && x->at + 1 < x->n &&
                   is_letter(code, x->s[x->at + 1])) {
            take(x, decorator_end(x), MD_PREPROC);
        } else if (c == '$' && (code->flags & CW_HL_VARIABLES) != 0) {
            take_variable(x);
        } else {
            x->at++;
        }
    }
    take(x, x->n, MD_CODE_TEXT);
}

void cw_hl_line(struct cw_hl *hl, const char *s, size_t n, cw_hl_emit *emit, void *ctx) {
    if (hl->lang == NULL) {
        emit(ctx, MD_CODE_TEXT, 0, n);
    } else if (hl->lang->line != NULL) {
        hl->lang->line(hl, s, n, emit, ctx);
    } else {
        struct lexer x = {hl, hl->lang->code, s, n, 0, 0, emit, ctx};
        lex_code(&x);
    }
}
