/* SPDX-License-Identifier: MIT
 * Template source to tokens (lexer.h). */
#include "lexer.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/utf8.h"
#include "unicode.h"

static char at(const struct cw_jlexer *x, size_t i) {
    return i < x->len ? x->src[i] : '\0';
}

static bool starts(const struct cw_jlexer *x, size_t i, const char *s) {
    size_t n = strlen(s);
    return x->len - i >= n && memcmp(x->src + i, s, n) == 0;
}

/* The length of the white-space character at i, 0 if there is none. */
static size_t space_at(const struct cw_jlexer *x, size_t i) {
    uint32_t cp;
    if (i >= x->len) {
        return 0;
    }
    int n = cw_utf8_decode(x->src + i, x->len - i, &cp);
    return n > 0 && cw_jchar_is_space(cp) ? (size_t)n : 0;
}

static size_t skip_space(const struct cw_jlexer *x, size_t i) {
    for (size_t n; (n = space_at(x, i)) > 0;) {
        i += n;
    }
    return i;
}

/* Move to `end`, counting lines. */
static void advance(struct cw_jlexer *x, size_t end) {
    for (; x->pos < end; x->pos++) {
        x->line += x->src[x->pos] == '\n';
    }
}

static void token_of(const struct cw_jlexer *x, struct cw_jtoken *token, enum cw_jtoken_kind kind,
                     size_t begin, size_t end) {
    *token = (struct cw_jtoken){
        .kind = kind, .line = x->line, .data = x->src + begin, .len = end - begin};
}

/* ------------------------------------------------------------------ text and white space */

/* Where the text [begin, end) in front of a tag ends once the tag's sign is obeyed. */
static size_t strip_before(const struct cw_jlexer *x, size_t begin, size_t end, char sign,
                           bool is_output) {
    if (sign == '-') {
        while (end > begin) {
            size_t n = 1; /* of the last character */
            while (n < 4 && end - n > begin && ((unsigned char)x->src[end - n] & 0xc0) == 0x80) {
                n++;
            }
            if (space_at(x, end - n) != n) {
                break;
            }
            end -= n;
        }
    } else if (sign != '+' && !is_output) {
        size_t line = end;
        while (line > begin && x->src[line - 1] != '\n') {
            line--;
        }
        bool line_starts = line > begin || begin == 0 || x->src[begin - 1] == '\n';
        if (line_starts && skip_space(x, line) >= end) {
            end = line;
        }
    }
    return end;
}

/* Where what follows goes on behind a closing delimiter that ends at `end`. */
static size_t strip_after(const struct cw_jlexer *x, size_t end, char sign, bool trims_line) {
    if (sign == '-') {
        return skip_space(x, end);
    }
    return sign != '+' && trims_line && at(x, end) == '\n' ? end + 1 : end;
}

static char sign_at(const struct cw_jlexer *x, size_t i) {
    return at(x, i) == '-' || at(x, i) == '+' ? x->src[i] : '\0';
}

/* Does the word stand at i, white space before it and a closing delimiter behind it? Gives its
 * sign and the place behind the delimiter. */
static bool closes_with(const struct cw_jlexer *x, size_t i, const char *word, char *sign,
                        size_t *end) {
    i = skip_space(x, i);
    if (!starts(x, i, word)) {
        return false;
    }
    i = skip_space(x, i + strlen(word));
    *sign = sign_at(x, i);
    i += *sign != '\0';
    *end = i + 2;
    return starts(x, i, "%}");
}

static void skip_comment(struct cw_jlexer *x) {
    int opened_at = x->line;
    size_t i = x->pos + 2;
    i += sign_at(x, i) != '\0';
    if (i == x->len) { /* the reference misses an end only where something stands before it */
        advance(x, i);
        return;
    }
    const char *hit = memmem(x->src + i, x->len - i, "#}", 2);
    if (hit == NULL) {
        x->guard->line = opened_at;
        cw_jfail(x->guard, "this comment has no end");
    }
    size_t q = (size_t)(hit - x->src);
    char sign = q > i ? sign_at(x, q - 1) : '\0';
    advance(x, strip_after(x, q + 2, sign, true));
}

/* {% raw %} has been read: everything up to {% endraw %} is text. False if that is empty. */
static bool raw_text(struct cw_jlexer *x, struct cw_jtoken *token) {
    size_t begin = x->pos;
    x->guard->line = x->line;
    if (begin == x->len) { /* as of a comment, no end is missed here */
        x->state = CW_JLEX_TEXT;
        return false;
    }
    for (size_t i = begin; i + 2 <= x->len; i++) {
        const char *hit = memmem(x->src + i, x->len - i, "{%", 2);
        if (hit == NULL) {
            break;
        }
        i = (size_t)(hit - x->src);
        char sign = sign_at(x, i + 2), end_sign;
        size_t after;
        if (!closes_with(x, i + 2 + (sign != '\0'), "endraw", &end_sign, &after)) {
            continue;
        }
        size_t end = strip_before(x, begin, i, sign, false);
        token_of(x, token, CW_JT_TEXT, begin, end);
        advance(x, strip_after(x, after, end_sign, true));
        x->state = CW_JLEX_TEXT;
        return end > begin;
    }
    cw_jfail(x->guard, "this raw block has no end");
}

/* The next tag at or after pos: its place, or len. */
static size_t find_tag(const struct cw_jlexer *x) {
    for (size_t i = x->pos; i + 1 < x->len; i++) {
        const char *hit = memchr(x->src + i, '{', x->len - i - 1);
        if (hit == NULL) {
            break;
        }
        i = (size_t)(hit - x->src);
        if (x->src[i + 1] == '{' || x->src[i + 1] == '%' || x->src[i + 1] == '#') {
            return i;
        }
    }
    return x->len;
}

/* Outside of tags. False if nothing came of it and the caller must look again. */
static bool text_or_tag(struct cw_jlexer *x, struct cw_jtoken *token) {
    size_t begin = x->pos, tag = find_tag(x);
    if (begin == x->len) {
        token_of(x, token, CW_JT_END, begin, begin);
        return true;
    }
    if (tag == x->len) {
        token_of(x, token, CW_JT_TEXT, begin, tag);
        advance(x, tag);
        return true;
    }
    char what = x->src[tag + 1], sign = sign_at(x, tag + 2), raw_sign;
    size_t end = strip_before(x, begin, tag, sign, what == '{'), raw_end;
    token_of(x, token, CW_JT_TEXT, begin, end);
    advance(x, tag);
    x->guard->line = x->line;
    if (what == '#') {
        skip_comment(x);
    } else if (what == '%' &&
               closes_with(x, tag + 2 + (sign != '\0'), "raw", &raw_sign, &raw_end) &&
               raw_sign != '+') {
        advance(x, strip_after(x, raw_end, raw_sign, false));
        x->state = CW_JLEX_RAW;
    } else {
        advance(x, tag + 2 + (sign != '\0'));
        x->state = what == '{' ? CW_JLEX_OUTPUT : CW_JLEX_TAG;
        x->pending = true;
    }
    return end > begin;
}

/* ------------------------------------------------------------------ inside tags */

static int hex_value(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* n hexadecimal digits at s[0..len). */
static uint32_t hex_escape(struct cw_jlexer *x, const char *s, size_t len, size_t n) {
    uint32_t cp = 0;
    for (size_t i = 0; i < n; i++) {
        int digit = i < len ? hex_value(s[i]) : -1;
        if (digit < 0) {
            cw_jfail(x->guard, "an escape in a string lacks hexadecimal digits");
        }
        cp = cp << 4 | (uint32_t)digit;
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) {
        cw_jfail(x->guard, "an escape in a string names no character (U+%04X)", (unsigned)cp);
    }
    return cp;
}

/* Decode the escapes of s[0..len) as Python does; what is none stays as it is. */
static void decode_string(struct cw_jlexer *x, const char *s, size_t len, struct cw_jtoken *token) {
    static const char letters[] = "abfnrtv\\'\"", values[] = "\a\b\f\n\r\t\v\\'\"";
    char *out = cw_jalloc(x->arena, len + 1); /* no escape is shorter than what it stands for */
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        if (s[i] != '\\' || i + 1 == len) {
            out[n++] = s[i++];
            continue;
        }
        char c = s[++i];
        const char *letter = c != '\0' ? strchr(letters, c) : NULL;
        if (letter != NULL) {
            out[n++] = values[letter - letters];
            i++;
        } else if (c == '\n') {
            i++;
        } else if (c >= '0' && c <= '7') {
            uint32_t cp = 0;
            for (int k = 0; k < 3 && i < len && s[i] >= '0' && s[i] <= '7'; k++) {
                cp = cp * 8 + (uint32_t)(s[i++] - '0');
            }
            n += (size_t)cw_utf8_encode(cp, out + n);
        } else if (c == 'x' || c == 'u' || c == 'U') {
            size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
            n += (size_t)cw_utf8_encode(hex_escape(x, s + i + 1, len - i - 1, digits), out + n);
            i += 1 + digits;
        } else if (c == 'N' || (unsigned char)c >= 0x80) {
            cw_jfail(x->guard, "this escape in a string is not supported");
        } else {
            out[n++] = '\\';
        }
    }
    token->data = out;
    token->len = n;
}

static void string_token(struct cw_jlexer *x, struct cw_jtoken *token) {
    char quote = x->src[x->pos];
    size_t i = x->pos + 1;
    while (i < x->len && x->src[i] != quote) {
        i += x->src[i] == '\\' ? 2 : 1;
    }
    if (i >= x->len) {
        cw_jfail(x->guard, "a string that begins here has no end");
    }
    token_of(x, token, CW_JT_STRING, x->pos + 1, i);
    decode_string(x, x->src + x->pos + 1, i - x->pos - 1, token);
    advance(x, i + 1);
}

/* The end of digits of the base with single underscores between them. */
static size_t skip_digits(const struct cw_jlexer *x, size_t i, int base) {
    size_t end = i;
    for (;;) {
        int digit = hex_value(at(x, i));
        if (digit < 0 || digit >= base) {
            return end;
        }
        end = ++i;
        i += at(x, i) == '_';
    }
}

static void integer(struct cw_jlexer *x, struct cw_jtoken *token, size_t begin, size_t end,
                    int base) {
    uint64_t value = 0;
    for (size_t i = begin; i < end; i++) {
        if (x->src[i] == '_') {
            continue;
        }
        uint64_t digit = (uint64_t)hex_value(x->src[i]);
        if (value > (INT64_MAX - digit) / (uint64_t)base) {
            cw_jfail(x->guard, "integers beyond 64 bits are not supported");
        }
        value = value * (uint64_t)base + digit;
    }
    token->kind = CW_JT_INT;
    token->i = (int64_t)value;
}

static void number_token(struct cw_jlexer *x, struct cw_jtoken *token) {
    size_t begin = x->pos, end;
    char prefix = begin + 1 < x->len ? (char)tolower((unsigned char)x->src[begin + 1]) : '\0';
    int base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
    token_of(x, token, CW_JT_INT, begin, begin);
    if (x->src[begin] == '0' && base != 0) {
        size_t digits = begin + 2 + (at(x, begin + 2) == '_');
        end = skip_digits(x, digits, base);
        if (end > digits) {
            integer(x, token, digits, end, base);
            advance(x, end);
            return;
        }
    }
    end = skip_digits(x, begin, 10);
    /* A whole number that begins with a zero is one of zeros only. */
    size_t whole_end = x->src[begin] == '0' ? skip_digits(x, begin, 1) : end;
    bool is_float = false;
    if (begin == 0 || x->src[begin - 1] != '.') { /* in a.1.5 these are two indices */
        if (at(x, end) == '.' && isdigit((unsigned char)at(x, end + 1))) {
            end = skip_digits(x, end + 1, 10);
            is_float = true;
        }
        if (at(x, end) == 'e' || at(x, end) == 'E') {
            size_t digits = end + 1 + (sign_at(x, end + 1) != '\0');
            if (isdigit((unsigned char)at(x, digits))) {
                end = skip_digits(x, digits, 10);
                is_float = true;
            }
        }
    }
    if (is_float) {
        char *text = cw_jalloc(x->arena, end - begin + 1);
        size_t n = 0;
        for (size_t i = begin; i < end; i++) {
            if (x->src[i] != '_') {
                text[n++] = x->src[i];
            }
        }
        text[n] = '\0';
        token->kind = CW_JT_FLOAT;
        token->f = strtod(text, NULL);
    } else {
        integer(x, token, begin, whole_end, 10);
        end = whole_end;
    }
    advance(x, end);
}

static size_t name_end(const struct cw_jlexer *x, size_t i) {
    size_t begin = i;
    while (i < x->len) {
        uint32_t cp;
        int n = cw_utf8_decode(x->src + i, x->len - i, &cp);
        if (n == 0 || !(i == begin ? cw_jchar_is_name_start(cp) : cw_jchar_is_name_part(cp))) {
            break;
        }
        i += (size_t)n;
    }
    return i;
}

static void operator_token(struct cw_jlexer *x, struct cw_jtoken *token) {
    static const char *const two[] = {"//", "**", "==", "!=", ">=", "<="};
    size_t n = 0;
    for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
        if (starts(x, x->pos, two[i])) {
            n = 2;
        }
    }
    char c = x->src[x->pos];
    if (n == 0 && c != '\0' && strchr("+-/*%~[](){}><=.:|,;", c) != NULL) {
        n = 1;
    }
    if (n == 0) {
        uint32_t cp;
        int width = cw_utf8_decode(x->src + x->pos, x->len - x->pos, &cp);
        cw_jfail(x->guard, "unexpected character '%.*s'", width > 0 ? width : 1, x->src + x->pos);
    }
    if (strchr("([{", c) != NULL) {
        if (x->n_brackets == CW_JMAX_BRACKETS) {
            cw_jfail(x->guard, "brackets are nested deeper than %d levels", CW_JMAX_BRACKETS);
        }
        x->brackets[x->n_brackets++] = c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (strchr(")]}", c) != NULL) {
        if (x->n_brackets == 0) {
            cw_jfail(x->guard, "unexpected '%c'", c);
        }
        if (x->brackets[--x->n_brackets] != c) {
            cw_jfail(x->guard, "unexpected '%c', expected '%c'", c, x->brackets[x->n_brackets]);
        }
    }
    token_of(x, token, CW_JT_OP, x->pos, x->pos + n);
    advance(x, x->pos + n);
}

/* The end of the tag or output here, if it is one. */
static bool end_token(struct cw_jlexer *x, struct cw_jtoken *token) {
    bool is_tag = x->state == CW_JLEX_TAG;
    char sign = sign_at(x, x->pos);
    if (sign == '+' && !is_tag) {
        return false;
    }
    size_t i = x->pos + (sign != '\0');
    if (!starts(x, i, is_tag ? "%}" : "}}")) {
        return false;
    }
    token_of(x, token, is_tag ? CW_JT_TAG_END : CW_JT_OUTPUT_END, x->pos, i + 2);
    advance(x, strip_after(x, i + 2, sign, is_tag));
    x->state = CW_JLEX_TEXT;
    return true;
}

static void tag_token(struct cw_jlexer *x, struct cw_jtoken *token) {
    if (x->pending) {
        x->pending = false;
        token_of(x, token, x->state == CW_JLEX_TAG ? CW_JT_TAG_BEGIN : CW_JT_OUTPUT_BEGIN, x->pos,
                 x->pos);
        return;
    }
    if (x->n_brackets == 0 && end_token(x, token)) {
        return;
    }
    size_t after = skip_space(x, x->pos);
    if (after > x->pos) {
        advance(x, after);
        if (x->n_brackets == 0 && end_token(x, token)) {
            return;
        }
    }
    x->guard->line = x->line;
    char c = at(x, x->pos);
    size_t name;
    if (x->pos == x->len) {
        token_of(x, token, CW_JT_END, x->pos, x->pos);
    } else if (isdigit((unsigned char)c)) {
        number_token(x, token);
    } else if (c == '\'' || c == '"') {
        string_token(x, token);
    } else if ((name = name_end(x, x->pos)) > x->pos) {
        token_of(x, token, CW_JT_NAME, x->pos, name);
        advance(x, name);
    } else {
        operator_token(x, token);
    }
}

void cw_jlex_next(struct cw_jlexer *x, struct cw_jtoken *token) {
    for (;;) {
        if (x->state == CW_JLEX_TAG || x->state == CW_JLEX_OUTPUT) {
            tag_token(x, token);
            return;
        }
        if (x->state == CW_JLEX_RAW ? raw_text(x, token) : text_or_tag(x, token)) {
            return;
        }
    }
}
