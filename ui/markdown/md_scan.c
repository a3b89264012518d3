/* SPDX-License-Identifier: MIT
 *
 * Recognisers for the beginnings of blocks. Each looks at its line once, except that nested list
 * markers look for a thematic break at each level: the caller bounds the levels.
 */
#include "ui/markdown/md_scan.h"

#include <string.h>
#include <strings.h>

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

static bool is_alpha(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

void md_look(struct md_cursor *c) {
    size_t i = c->at;
    int col = c->col;
    int tab = c->tab;
    while (i < c->n) {
        if (c->s[i] == ' ') {
            col++;
        } else if (c->s[i] == '\t') {
            col += tab > 0 ? tab : 4 - col % 4;
        } else {
            break;
        }
        tab = 0;
        i++;
    }
    c->first = i;
    c->indent = col - c->col;
    c->blank = i == c->n;
}

void md_skip_columns(struct md_cursor *c, int columns) {
    while (columns > 0 && c->at < c->n) {
        if (c->s[c->at] == '\t') {
            int left = c->tab > 0 ? c->tab : 4 - c->col % 4;
            int step = left < columns ? left : columns;
            c->tab = left - step;
            c->col += step;
            columns -= step;
            c->at += c->tab == 0;
        } else if (c->s[c->at] == ' ') {
            c->col++;
            c->at++;
            columns--;
        } else {
            break;
        }
    }
}

void md_skip_indent(struct md_cursor *c) {
    c->at = c->first;
    c->col += c->indent;
    c->tab = 0;
    c->indent = 0;
}

void md_skip_bytes(struct md_cursor *c, size_t n) {
    c->at += n;
    c->col += (int)n;
    c->tab = 0;
}

bool md_is_rule(const char *s, size_t n) {
    if (n == 0 || (s[0] != '*' && s[0] != '-' && s[0] != '_')) {
        return false;
    }
    int count = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == s[0]) {
            count++;
        } else if (s[i] != ' ' && s[i] != '\t') {
            return false;
        }
    }
    return count >= 3;
}

int md_setext_level(const char *s, size_t n) {
    size_t i = 0;
    while (i < n && (s[i] == '=' || s[i] == '-') && s[i] == s[0]) {
        i++;
    }
    if (i == 0) {
        return 0;
    }
    while (i < n && (s[i] == ' ' || s[i] == '\t')) {
        i++;
    }
    return i < n ? 0 : s[0] == '=' ? 1 : 2;
}

int md_atx(const char *s, size_t n, size_t *begin, size_t *end) {
    size_t level = 0;
    while (level < n && level < 7 && s[level] == '#') {
        level++;
    }
    if (level == 0 || level > 6 || (level < n && s[level] != ' ' && s[level] != '\t')) {
        return 0;
    }
    size_t from = level;
    while (from < n && is_space(s[from])) {
        from++;
    }
    while (n > level && is_space(s[n - 1])) {
        n--;
    }
    /* a closing sequence stands behind a blank; the one after the opening counts */
    size_t marks = n;
    while (marks > level && s[marks - 1] == '#') {
        marks--;
    }
    if (marks < n && is_space(s[marks - 1])) {
        n = marks;
        while (n > level && is_space(s[n - 1])) {
            n--;
        }
    }
    *begin = from < n ? from : n;
    *end = n;
    return (int)level;
}

int md_fence_open(const char *s, size_t n) {
    if (n < 3 || (s[0] != '`' && s[0] != '~')) {
        return 0;
    }
    size_t len = 0;
    while (len < n && s[len] == s[0]) {
        len++;
    }
    if (len < 3 || (s[0] == '`' && memchr(s + len, '`', n - len) != NULL)) {
        return 0;
    }
    return (int)len;
}

bool md_fence_close(const char *s, size_t n, char fence, int n_fence) {
    size_t i = 0;
    while (i < n && s[i] == fence) {
        i++;
    }
    if (i < (size_t)n_fence) {
        return false;
    }
    while (i < n && (s[i] == ' ' || s[i] == '\t')) {
        i++;
    }
    return i == n;
}

const char *md_info_word(const char *s, size_t n, size_t *len) {
    size_t begin = 0;
    while (begin < n && is_space(s[begin])) {
        begin++;
    }
    size_t end = begin;
    while (end < n && !is_space(s[end])) {
        end++;
    }
    *len = end - begin;
    return s + begin;
}

bool md_list_marker(const char *s, size_t n, struct md_bullet *out) {
    *out = (struct md_bullet){.bytes = 1};
    if (n == 0) {
        return false;
    }
    if (s[0] == '-' || s[0] == '*' || s[0] == '+') {
        out->delim = s[0];
    } else {
        size_t i = 0;
        while (i < n && i < 9 && is_digit(s[i])) {
            out->number = out->number * 10 + (uint32_t)(s[i] - '0');
            i++;
        }
        if (i == 0 || i == n || (s[i] != '.' && s[i] != ')')) {
            return false;
        }
        out->ordered = true;
        out->delim = s[i];
        out->bytes = i + 1;
    }
    size_t i = out->bytes;
    if (i < n && s[i] != ' ' && s[i] != '\t') {
        return false;
    }
    while (i < n && (s[i] == ' ' || s[i] == '\t')) {
        i++;
    }
    out->empty = i == n;
    return true;
}

/* ---- HTML blocks. ---- */

static bool has_prefix(const char *s, size_t n, const char *prefix) {
    size_t len = strlen(prefix);
    return n >= len && strncasecmp(s, prefix, len) == 0;
}

/* Block level names of kind 6, sorted. */
static const char *const block_names[] = {
    "address",  "article",  "aside",    "base",       "basefont", "blockquote", "body",   "caption",
    "center",   "col",      "colgroup", "dd",         "details",  "dialog",     "dir",    "div",
    "dl",       "dt",       "fieldset", "figcaption", "figure",   "footer",     "form",   "frame",
    "frameset", "h1",       "h2",       "h3",         "h4",       "h5",         "h6",     "head",
    "header",   "hr",       "html",     "iframe",     "legend",   "li",         "link",   "main",
    "menu",     "menuitem", "nav",      "noframes",   "ol",       "optgroup",   "option", "p",
    "param",    "section",  "source",   "summary",    "table",    "tbody",      "td",     "tfoot",
    "th",       "thead",    "title",    "tr",         "track",    "ul",
};

static bool is_block_name(const char *s, size_t n) {
    size_t lo = 0, hi = sizeof block_names / sizeof block_names[0];
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        int order = strncasecmp(s, block_names[mid], n);
        if (order == 0 && block_names[mid][n] != '\0') {
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

static size_t tag_name(const char *s, size_t n) {
    size_t i = 0;
    if (n > 0 && is_alpha(s[0])) {
        while (i < n && (is_alpha(s[i]) || is_digit(s[i]) || s[i] == '-')) {
            i++;
        }
    }
    return i;
}

static size_t skip_spaces(const char *s, size_t n, size_t i) {
    while (i < n && is_space(s[i])) {
        i++;
    }
    return i;
}

/* The end of an attribute's value that begins at s[i], or 0. */
static size_t attribute_value(const char *s, size_t n, size_t i) {
    if (i == n) {
        return 0;
    }
    if (s[i] == '"' || s[i] == '\'') {
        const char *end = memchr(s + i + 1, s[i], n - i - 1);
        return end != NULL ? (size_t)(end - s) + 1 : 0;
    }
    size_t begin = i;
    while (i < n && !is_space(s[i]) && memchr("\"'=<>`", s[i], 6) == NULL) {
        i++;
    }
    return i > begin ? i : 0;
}

/* The bytes of a whole opening or closing tag, or 0. */
static size_t whole_tag(const char *s, size_t n) {
    bool closing = n > 1 && s[1] == '/';
    size_t i = closing ? 2 : 1;
    if (i >= n) {
        return 0;
    }
    size_t name = tag_name(s + i, n - i);
    if (name == 0) {
        return 0;
    }
    i += name;
    for (;;) {
        size_t at = skip_spaces(s, n, i);
        if (at < n && s[at] == '>') {
            return at + 1;
        }
        if (closing) {
            return 0;
        }
        if (at + 1 < n && s[at] == '/' && s[at + 1] == '>') {
            return at + 2;
        }
        if (at == i || at == n || !(is_alpha(s[at]) || s[at] == '_' || s[at] == ':')) {
            return 0;
        }
        while (at < n && (is_alpha(s[at]) || is_digit(s[at]) || memchr("_:.-", s[at], 4) != NULL)) {
            at++;
        }
        i = at;
        at = skip_spaces(s, n, at);
        if (at < n && s[at] == '=') {
            i = attribute_value(s, n, skip_spaces(s, n, at + 1));
            if (i == 0) {
                return 0;
            }
        }
    }
}

int md_html_open(const char *s, size_t n, bool in_paragraph) {
    static const char *const literal[] = {"<script", "<pre", "<style"};
    if (n < 2 || s[0] != '<') {
        return 0;
    }
    for (size_t k = 0; k < 3; k++) {
        size_t len = strlen(literal[k]);
        if (has_prefix(s, n, literal[k]) && (n == len || is_space(s[len]) || s[len] == '>')) {
            return 1;
        }
    }
    if (has_prefix(s, n, "<!--")) {
        return 2;
    }
    if (s[1] == '?') {
        return 3;
    }
    if (s[1] == '!' && n > 2 && s[2] >= 'A' && s[2] <= 'Z') {
        return 4;
    }
    if (n >= 9 && memcmp(s, "<![CDATA[", 9) == 0) {
        return 5;
    }
    size_t slash = s[1] == '/';
    size_t name = tag_name(s + 1 + slash, n - 1 - slash);
    size_t after = 1 + slash + name;
    if (name > 0 && is_block_name(s + 1 + slash, name) &&
        (after == n || is_space(s[after]) || s[after] == '>' ||
         (after + 1 < n && s[after] == '/' && s[after + 1] == '>'))) {
        return 6;
    }
    if (!in_paragraph) {
        size_t end = whole_tag(s, n);
        if (end > 0 && skip_spaces(s, n, end) == n) {
            return 7;
        }
    }
    return 0;
}

static bool contains(const char *s, size_t n, const char *what) {
    size_t len = strlen(what);
    for (size_t i = 0; i + len <= n; i++) {
        if (strncasecmp(s + i, what, len) == 0) {
            return true;
        }
    }
    return false;
}

bool md_html_close(const char *s, size_t n, int kind) {
    switch (kind) {
    case 1:
        return contains(s, n, "</script>") || contains(s, n, "</pre>") ||
               contains(s, n, "</style>");
    case 2:
        return contains(s, n, "-->");
    case 3:
        return contains(s, n, "?>");
    case 4:
        return memchr(s, '>', n) != NULL;
    case 5:
        return contains(s, n, "]]>");
    default:
        return false;
    }
}
