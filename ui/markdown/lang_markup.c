/* SPDX-License-Identifier: MIT
 *
 * Languages that are not made of words: HTML and XML, CSS, YAML, diff.
 */
#include <string.h>

#include "ui/markdown/hl_lang.h"

static bool is_alnum(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static bool starts(const char *s, size_t n, const char *what) {
    size_t len = strlen(what);
    return len <= n && memcmp(s, what, len) == 0;
}

/* The end of what begins at s[i] and goes up to `close`, which belongs to it; n + 1: not in this
 * line. */
static size_t end_of(const char *s, size_t n, size_t i, const char *close) {
    for (size_t len = strlen(close); i + len <= n; i++) {
        if (memcmp(s + i, close, len) == 0) {
            return i + len;
        }
    }
    return n + 1;
}

static size_t word_end(const char *s, size_t n, size_t i, const char *more) {
    while (i < n && (is_alnum(s[i]) || (unsigned char)s[i] >= 0x80 ||
                     (s[i] != '\0' && strchr(more, s[i]) != NULL))) {
        i++;
    }
    return i;
}

/* ---- HTML, XML ---- */

enum { HTML_TEXT, HTML_COMMENT, HTML_TAG, HTML_VALUE_DOUBLE, HTML_VALUE_SINGLE };

/* One step inside a tag or text; returns where it ended. */
static size_t html_step(struct cw_hl *hl, const char *s, size_t n, size_t i, enum md_role *role) {
    size_t end = i + 1;
    *role = MD_CODE_TEXT;
    if (hl->in == HTML_TAG) {
        if (s[i] == '>' || starts(s + i, n - i, "/>") || starts(s + i, n - i, "?>")) {
            *role = MD_TAG;
            end = i + 1 + (s[i] != '>');
            hl->in = HTML_TEXT;
        } else if (s[i] == '"' || s[i] == '\'') {
            *role = MD_STRING;
            hl->in = s[i] == '"' ? HTML_VALUE_DOUBLE : HTML_VALUE_SINGLE;
        } else if (word_end(s, n, i, "_-:.@#") > i) {
            *role = MD_KEY;
            end = word_end(s, n, i, "_-:.@#");
        }
    } else if (starts(s + i, n - i, "<!--")) {
        *role = MD_COMMENT;
        end = i + 4;
        hl->in = HTML_COMMENT;
    } else if (s[i] == '<' && n - i > 1 &&
               (is_alnum(s[i + 1]) || strchr("/!?", s[i + 1]) != NULL)) {
        *role = MD_TAG;
        end = word_end(s, n, i + 1 + !is_alnum(s[i + 1]), "-:_");
        hl->in = HTML_TAG;
    } else if (s[i] == '&') {
        size_t name = word_end(s, n, i + 1, "#");
        if (name < n && s[name] == ';') {
            *role = MD_CONSTANT;
            end = name + 1;
        } else {
            end = name > i ? name : end;
        }
    }
    return end;
}

void cw_hl_html(struct cw_hl *hl, const char *s, size_t n, cw_hl_emit *emit, void *ctx) {
    for (size_t i = 0; i < n;) {
        enum md_role role;
        size_t end;
        if (hl->in == HTML_COMMENT) {
            role = MD_COMMENT;
            end = end_of(s, n, i, "-->");
            hl->in = end <= n ? HTML_TEXT : HTML_COMMENT;
        } else if (hl->in == HTML_VALUE_DOUBLE || hl->in == HTML_VALUE_SINGLE) {
            role = MD_STRING;
            end = end_of(s, n, i, hl->in == HTML_VALUE_DOUBLE ? "\"" : "'");
            hl->in = end <= n ? (uint8_t)HTML_TAG : hl->in;
        } else {
            end = html_step(hl, s, n, i, &role);
        }
        end = end > n ? n : end;
        emit(ctx, role, i, end);
        i = end;
    }
}

/* ---- CSS ---- */

enum { CSS_RULES, CSS_COMMENT };

/* hl->depth: braces open. hl->which: behind the colon of a declaration. */
static size_t css_step(struct cw_hl *hl, const char *s, size_t n, size_t i, enum md_role *role) {
    static const char letters[] = "-_";
    bool inside = hl->depth > 0;
    size_t end = i + 1;
    *role = MD_CODE_TEXT;
    if (s[i] == '"' || s[i] == '\'') {
        const char *close = memchr(s + i + 1, s[i], n - i - 1);
        *role = MD_STRING;
        return close != NULL ? (size_t)(close - s) + 1 : n;
    }
    if (s[i] == '@' || s[i] == '!') {
        *role = MD_KEYWORD;
        return word_end(s, n, i + 1, letters);
    }
    if (inside && hl->which &&
        (is_digit(s[i]) || s[i] == '#' || (s[i] == '.' && i + 1 < n && is_digit(s[i + 1])))) {
        *role = MD_NUMBER;
        return word_end(s, n, i + 1, ".%");
    }
    if (!inside && strchr(".#:*>~+[]=,", s[i]) != NULL && s[i] != '\0') {
        *role = MD_TAG;
        return end;
    }
    size_t word = word_end(s, n, i, letters);
    if (word > i) {
        if (!inside) {
            *role = MD_TAG;
        } else if (!hl->which) {
            *role = MD_KEY;
        } else if (word < n && s[word] == '(') {
            *role = MD_FUNCTION;
        }
        return word;
    }
    if (s[i] == '{') {
        hl->depth += hl->depth < UINT16_MAX;
        hl->which = 0;
    } else if (s[i] == '}') {
        hl->depth -= hl->depth > 0;
        hl->which = 0;
    } else if (s[i] == ';') {
        hl->which = 0;
    } else if (s[i] == ':' && inside) {
        hl->which = 1;
    }
    return end;
}

void cw_hl_css(struct cw_hl *hl, const char *s, size_t n, cw_hl_emit *emit, void *ctx) {
    for (size_t i = 0; i < n;) {
        enum md_role role = MD_COMMENT;
        size_t end = n;
        if (hl->in == CSS_COMMENT || starts(s + i, n - i, "/*")) {
            size_t from = hl->in == CSS_COMMENT ? i : i + 2;
            end = end_of(s, n, from, "*/");
            hl->in = end <= n ? CSS_RULES : CSS_COMMENT;
        } else {
            end = css_step(hl, s, n, i, &role);
        }
        end = end > n ? n : end;
        emit(ctx, role, i, end);
        i = end;
    }
}

/* ---- YAML ---- */

static bool yaml_is_constant(const char *s, size_t n) {
    static const char *const words[] = {"true", "false", "null",  "yes", "no",   "on",
                                        "off",  "True",  "False", "~",   "Null", "NULL"};
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) {
        if (strlen(words[k]) == n && memcmp(s, words[k], n) == 0) {
            return true;
        }
    }
    return false;
}

/* The end of a key that begins at s[i]: before a colon that a blank or the end follows. */
static size_t yaml_key(const char *s, size_t n, size_t i) {
    size_t begin = i;
    while (i < n && s[i] != '#' && s[i] != '"' && s[i] != '\'') {
        if (s[i] == ':' && (i + 1 == n || is_blank(s[i + 1]))) {
            return i > begin ? i : 0;
        }
        i++;
    }
    return 0;
}

static size_t yaml_value(const char *s, size_t n, size_t i, enum md_role *role) {
    size_t end = i + 1;
    *role = MD_CODE_TEXT;
    if (s[i] == '#' && (i == 0 || is_blank(s[i - 1]))) {
        *role = MD_COMMENT;
        return n;
    }
    if (s[i] == '"' || s[i] == '\'') {
        while (end < n && s[end] != s[i]) {
            end += s[i] == '"' && s[end] == '\\' && end + 1 < n ? 2 : 1;
        }
        *role = MD_STRING;
        return end < n ? end + 1 : n;
    }
    if (s[i] == '&' || s[i] == '*' || s[i] == '!') {
        *role = s[i] == '!' ? MD_TYPE : MD_VARIABLE;
        return word_end(s, n, end, "-_!/.");
    }
    /* a bare scalar up to a comment or a mark of a flow collection */
    while (end < n && !(s[end] == '#' && is_blank(s[end - 1])) && strchr(",[]{}", s[end]) == NULL) {
        end++;
    }
    size_t stop = end;
    while (stop > i + 1 && is_blank(s[stop - 1])) {
        stop--;
    }
    if (yaml_is_constant(s + i, stop - i)) {
        *role = MD_CONSTANT;
        return stop;
    }
    size_t digit = i + (s[i] == '-' || s[i] == '+');
    if (digit < stop && is_digit(s[digit]) &&
        cw_hl_number(s + digit, stop - digit) == stop - digit) {
        *role = MD_NUMBER;
        return stop;
    }
    return end;
}

void cw_hl_yaml(struct cw_hl *hl, const char *s, size_t n, cw_hl_emit *emit, void *ctx) {
    (void)hl;
    size_t i = 0;
    if (starts(s, n, "---") || starts(s, n, "...") || starts(s, n, "%")) {
        emit(ctx, MD_PREPROC, 0, n);
        return;
    }
    while (i < n && (is_blank(s[i]) || (s[i] == '-' && (i + 1 == n || is_blank(s[i + 1]))))) {
        i++;
    }
    emit(ctx, MD_CODE_TEXT, 0, i);
    size_t key = yaml_key(s, n, i);
    if (key > i) {
        emit(ctx, MD_KEY, i, key);
        emit(ctx, MD_CODE_TEXT, key, key + 1);
        i = key + 1;
    }
    while (i < n) {
        enum md_role role = MD_CODE_TEXT;
        size_t end =
            is_blank(s[i]) || strchr(",[]{}:|>", s[i]) != NULL ? i + 1 : yaml_value(s, n, i, &role);
        emit(ctx, role, i, end);
        i = end;
    }
}

/* ---- diff ---- */

void cw_hl_diff(struct cw_hl *hl, const char *s, size_t n, cw_hl_emit *emit, void *ctx) {
    static const char *const heads[] = {"+++ ",     "--- ",         "diff ",   "index ",     "*** ",
                                        "new file", "deleted file", "rename ", "similarity "};
    (void)hl;
    enum md_role role = MD_CODE_TEXT;
    if (n > 0) {
        role = s[0] == '+' || s[0] == '>'   ? MD_DIFF_ADD
               : s[0] == '-' || s[0] == '<' ? MD_DIFF_DEL
               : s[0] == '@'                ? MD_DIFF_HUNK
                                            : MD_CODE_TEXT;
    }
    for (size_t k = 0; k < sizeof heads / sizeof heads[0]; k++) {
        if (starts(s, n, heads[k])) {
            role = MD_KEYWORD;
        }
    }
    emit(ctx, role, 0, n);
}
