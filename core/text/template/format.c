/* SPDX-License-Identifier: MIT
 *
 * Text made by a format: '%s and %d' % (a, b), and '{} and {:>5}'.format(a, b).
 *
 * What stands in the format keeps its origin and so does the text of a value; digits, signs and
 * filling are made by the engine and take the origin of the format's or value's message, if any.
 * Characters are not made from numbers (%c): they would have no origin.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builtins.h"

enum { MAX_WIDTH = 1000 }; /* of one field, and digits behind a point */

/* How one value is to be written. */
struct spec {
    char fill[5]; /* one character, terminated; "" for a blank */
    char align;   /* '<', '>', '^', '=' or 0: as the type has it */
    char sign;    /* '+', ' ' or 0 */
    bool alternate;
    char grouping; /* ',' or '_' or 0 */
    int width;     /* characters */
    int precision; /* -1: none */
    char type;     /* 0: as the value has it */
};

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* Digits of s from *i on, at most MAX_WIDTH. */
static int read_number(struct cw_jrender *r, const struct cw_jstr *s, size_t *i) {
    int n = 0;
    for (; *i < s->len && is_digit(s->data[*i]); (*i)++) {
        n = n * 10 + (s->data[*i] - '0');
        if (n > MAX_WIDTH) {
            cw_jfailr(r, "a format wider than %d is not supported", MAX_WIDTH);
        }
    }
    return n;
}

/* Append text[0..len) of `chars` characters, filled up to the width. `sign` bytes in front stay in
 * front of a filling of kind '='. */
static void put_field(struct cw_jbuild *b, const struct spec *f, const struct cw_jstr *text,
                      size_t sign, int32_t origin) {
    size_t chars = cw_jstr_chars(text);
    size_t pad = (size_t)f->width > chars ? (size_t)f->width - chars : 0;
    size_t before = f->align == '>' || f->align == '=' ? pad : f->align == '^' ? pad / 2 : 0;
    const char *fill = f->fill[0] != '\0' ? f->fill : " ";
    if (f->align == '=') {
        cw_jbuild_slice(b, text, 0, sign);
    }
    for (size_t i = 0; i < pad; i++) {
        if (i == before) {
            cw_jbuild_slice(b, text, f->align == '=' ? sign : 0, text->len);
        }
        cw_jbuild_puts(b, fill, origin);
    }
    if (before == pad) {
        cw_jbuild_slice(b, text, f->align == '=' ? sign : 0, text->len);
    }
}

static void put_text(struct cw_jrender *r, struct cw_jbuild *b, struct spec f,
                     const struct cw_jstr *s, int32_t format_origin) {
    int32_t taint = cw_jstr_taint(s);
    cw_jcharge_bytes(r, s->len);
    if (f.precision >= 0) {
        s = cw_jstr_slice(&r->arena, s, 0, cw_jstr_char_at(s, (size_t)f.precision));
    }
    f.align = f.align == 0 ? '<' : f.align;
    put_field(b, &f, s, 0, taint != CW_JTEMPLATE ? taint : format_origin);
}

/* Put a separator between groups of `size` digits of the whole part text[begin, end). */
static char *group_digits(struct cw_jrender *r, const char *text, size_t begin, size_t end,
                          char separator, size_t size) {
    size_t len = strlen(text), n = 0;
    char *out = cw_jalloc(&r->arena, len + (end - begin) / size + 1);
    for (size_t i = 0; i < len; i++) {
        if (i > begin && i < end && (end - i) % size == 0) {
            out[n++] = separator;
        }
        out[n++] = text[i];
    }
    out[n] = '\0';
    return out;
}

/* Append a number of which the digits are made: sign, then prefix, then digits. */
static void put_number(struct cw_jrender *r, struct cw_jbuild *b, struct spec f, bool negative,
                       const char *prefix, const char *digits, size_t group, int32_t origin) {
    char sign[2] = {negative ? '-' : f.sign, '\0'};
    if (f.grouping != '\0') {
        if (f.align == '=' && f.fill[0] == '0') {
            cw_jfailr(r, "a format with grouping and leading zeros is not supported");
        }
        digits =
            group_digits(r, digits, 0, strspn(digits, "0123456789abcdefABCDEF"), f.grouping, group);
    }
    struct cw_jbuild number = cw_jbuild_new(&r->arena);
    cw_jbuild_puts(&number, sign, origin);
    cw_jbuild_puts(&number, prefix, origin);
    size_t head = number.len;
    cw_jbuild_puts(&number, digits, origin);
    f.align = f.align == 0 ? '>' : f.align;
    put_field(b, &f, cw_jbuild_end(&number), head, origin);
}

static void put_int(struct cw_jrender *r, struct cw_jbuild *b, struct spec f, int64_t value,
                    int32_t origin) {
    char digits[65];
    uint64_t n = value < 0 ? -(uint64_t)value : (uint64_t)value;
    unsigned base = f.type == 'x' || f.type == 'X' ? 16
                    : f.type == 'o'                ? 8
                    : f.type == 'b'                ? 2
                                                   : 10;
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = (f.type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[n % base];
        n /= base;
    } while (n > 0);
    char prefix[3] = {'0', f.type, '\0'};
    put_number(r, b, f, value < 0, f.alternate && base != 10 ? prefix : "", digits + at,
               base == 10 ? 3 : 4, origin);
}

static void put_float(struct cw_jrender *r, struct cw_jbuild *b, struct spec f, double value,
                      int32_t origin) {
    char digits[MAX_WIDTH + 330]; /* 309 digits of a large number, a point, the decimals */
    bool negative = signbit(value) && !isnan(value);
    if (f.type == 0 && f.precision >= 0) {
        cw_jfailr(r, "a precision without a type is not supported");
    }
    if (f.type == 0) {
        strcpy(digits, cw_jfloat_repr(fabs(value)).s);
    } else {
        char letter = f.type == '%' ? 'f' : f.type;
        char format[6] = {'%', '.', '*', letter, '\0', '\0'};
        if (f.alternate) {
            memcpy(format, (char[]){'%', '#', '.', '*', letter}, 5);
        }
        snprintf(digits, sizeof digits - 1, format, f.precision < 0 ? 6 : f.precision,
                 fabs(f.type == '%' ? value * 100 : value));
        if (f.type == '%') {
            strcat(digits, "%");
        }
    }
    put_number(r, b, f, negative, "", digits, 3, origin);
}

/* ------------------------------------------------------------------ percent formats */

struct percent {
    const struct cw_jval *args; /* [n] */
    size_t n, used;
    const struct cw_jdict *map; /* the names, where one dict was given; else NULL */
};

static struct cw_jval next_arg(struct cw_jrender *r, struct percent *p) {
    if (p->used >= p->n) {
        cw_jfailr(r, "TypeError: not enough arguments for format string");
    }
    return p->args[p->used++];
}

static struct cw_jval named_arg(struct cw_jrender *r, struct percent *p, const struct cw_jstr *s,
                                size_t *i) {
    size_t begin = ++*i;
    for (int depth = 1; *i < s->len; (*i)++) {
        depth += (s->data[*i] == '(') - (s->data[*i] == ')');
        if (depth == 0) {
            break;
        }
    }
    if (*i >= s->len) {
        cw_jfailr(r, "ValueError: incomplete format key");
    }
    struct cw_jstr *name = cw_jstr_slice(&r->arena, s, begin, (*i)++);
    const struct cw_jval *v = p->map != NULL ? cw_jdict_find(r, p->map, name) : NULL;
    if (v == NULL) {
        cw_jfailr(r, "KeyError: the format has no argument '%.*s'",
                  name->len < 60 ? (int)name->len : 60, name->data);
    }
    p->used = p->n; /* a dict need not be used up */
    return *v;
}

/* *, or digits. */
static int percent_number(struct cw_jrender *r, struct percent *p, const struct cw_jstr *s,
                          size_t *i) {
    if (*i < s->len && s->data[*i] == '*') {
        (*i)++;
        int64_t n = cw_jas_int(r, next_arg(r, p), "'*'");
        if (n < -MAX_WIDTH || n > MAX_WIDTH) {
            cw_jfailr(r, "a format wider than %d is not supported", MAX_WIDTH);
        }
        return (int)n;
    }
    return read_number(r, s, i);
}

static int64_t whole_of(struct cw_jrender *r, struct cw_jval v, char type) {
    cw_jneed_defined(r, v);
    if (v.kind == CW_J_FLOAT && type == 'd') {
        if (!(fabs(v.f) < 0x1p63)) {
            cw_jfailr(r, "integers beyond 64 bits are not supported");
        }
        return (int64_t)v.f;
    }
    if (!cw_jis_number(v) || v.kind == CW_J_FLOAT) {
        cw_jfailr(r, "TypeError: %%%c format: a number is required, not %s", type,
                  cw_jtype_name(v));
    }
    return cw_jas_int(r, v, "a number");
}

/* The conversion that begins behind the '%' at *i. */
static void percent_field(struct cw_jrender *r, struct cw_jbuild *b, struct percent *p,
                          const struct cw_jstr *s, size_t *i) {
    int32_t origin = cw_jstr_taint(s);
    struct spec f = {.precision = -1, .align = '>'};
    struct cw_jval v = {.kind = CW_J_ABSENT};
    if (*i < s->len && s->data[*i] == '%') {
        cw_jbuild_slice(b, s, *i, *i + 1);
        (*i)++;
        return;
    }
    if (*i < s->len && s->data[*i] == '(') {
        v = named_arg(r, p, s, i);
    }
    bool zeros = false;
    for (; *i < s->len && s->data[*i] != '\0' && strchr("-+ #0", s->data[*i]) != NULL; (*i)++) {
        char c = s->data[*i];
        f.align = c == '-' ? '<' : f.align;
        f.sign = c == '+' || (c == ' ' && f.sign == 0) ? c : f.sign;
        f.alternate |= c == '#';
        zeros |= c == '0';
    }
    f.width = percent_number(r, p, s, i);
    if (f.width < 0) {
        f.align = '<';
        f.width = -f.width;
    }
    if (*i < s->len && s->data[*i] == '.') {
        (*i)++;
        f.precision = percent_number(r, p, s, i);
        f.precision = f.precision < 0 ? 0 : f.precision;
    }
    while (*i < s->len && (s->data[*i] == 'l' || s->data[*i] == 'h' || s->data[*i] == 'L')) {
        (*i)++;
    }
    if (*i >= s->len) {
        cw_jfailr(r, "ValueError: incomplete format");
    }
    char type = s->data[(*i)++];
    if (type == '\0' || strchr("sriduxXoeEfFgG", type) == NULL) {
        cw_jfailr(r, "the format character '%c' is not supported",
                  isprint((unsigned char)type) ? type : '?');
    }
    v = v.kind == CW_J_ABSENT ? next_arg(r, p) : v;
    if (type == 's' || type == 'r') {
        struct cw_jbuild text = cw_jbuild_new(&r->arena);
        (type == 's' ? cw_jput_str : cw_jput_repr)(r, &text, v);
        put_text(r, b, f, cw_jbuild_end(&text), origin);
        return;
    }
    if (zeros && f.align != '<') {
        f.align = '=';
        strcpy(f.fill, "0");
    }
    f.type = type == 'i' || type == 'u' ? 'd' : type;
    if (strchr("dxXo", f.type) != NULL) {
        if (f.precision > 0) {
            cw_jfailr(r, "a precision of whole numbers is not supported");
        }
        put_int(r, b, f, whole_of(r, v, f.type), origin);
        return;
    }
    cw_jneed_defined(r, v);
    if (!cw_jis_number(v)) {
        cw_jfailr(r, "TypeError: must be real number, not %s", cw_jtype_name(v));
    }
    put_float(r, b, f, cw_jas_double(v), origin);
}

struct cw_jval cw_jpercent(struct cw_jrender *r, const struct cw_jstr *s, struct cw_jval right) {
    struct percent p = {.args = &right, .n = 1};
    if (s->markup) { /* would escape what it is given */
        cw_jfailr(r, "formats that come of 'escape' or 'safe' are not supported");
    }
    if (right.kind == CW_J_TUPLE) {
        p.args = right.list->items;
        p.n = right.list->n;
    } else if (right.kind == CW_J_DICT) {
        p.map = right.dict;
    }
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    cw_jcharge_bytes(r, s->len);
    for (size_t i = 0; i < s->len;) {
        const char *hit = memchr(s->data + i, '%', s->len - i);
        size_t end = hit != NULL ? (size_t)(hit - s->data) : s->len;
        cw_jbuild_slice(&b, s, i, end);
        i = end;
        if (i < s->len) {
            i++;
            cw_jcharge(r, 2);
            percent_field(r, &b, &p, s, &i);
        }
    }
    /* What has items of its own, but for text, counts as a mapping, which need not be used up. */
    bool maps = right.kind == CW_J_DICT || right.kind == CW_J_LIST || right.kind == CW_J_RANGE ||
                right.kind == CW_J_UNDEFINED;
    if (p.used < p.n && !maps) {
        cw_jfailr(r, "TypeError: not all arguments converted during string formatting");
    }
    return cw_jbuilt(&b);
}

/* ------------------------------------------------------------------ brace formats */

/* [[fill]align][sign][#][0][width][grouping][.precision][type] in s[i, end). */
static struct spec read_spec(struct cw_jrender *r, const struct cw_jstr *s, size_t i, size_t end) {
    struct spec f = {.precision = -1};
    struct cw_jstr part = *s;
    part.len = end;
    uint32_t cp;
    size_t n = i < end ? cw_jstr_decode(&part, i, &cp) : 0;
    if (n > 0 && i + n < end && strchr("<>=^", s->data[i + n]) != NULL && s->data[i + n] != '\0') {
        memcpy(f.fill, s->data + i, n);
        f.align = s->data[i + n];
        i += n + 1;
    } else if (n > 0 && s->data[i] != '\0' && strchr("<>=^", s->data[i]) != NULL) {
        f.align = s->data[i++];
    }
    if (i < end && (s->data[i] == '+' || s->data[i] == '-' || s->data[i] == ' ')) {
        f.sign = s->data[i] == '-' ? '\0' : s->data[i];
        i++;
    }
    if (i < end && s->data[i] == '#') {
        f.alternate = true;
        i++;
    }
    if (i < end && s->data[i] == '0' && f.fill[0] == '\0') {
        f.align = f.align == 0 ? '=' : f.align;
        strcpy(f.fill, "0");
        i++;
    }
    f.width = read_number(r, &part, &i);
    if (i < end && (s->data[i] == ',' || s->data[i] == '_')) {
        f.grouping = s->data[i++];
    }
    if (i < end && s->data[i] == '.') {
        i++;
        f.precision = read_number(r, &part, &i);
    }
    if (i < end) {
        f.type = s->data[i++];
    }
    if (i < end || (f.type != 0 && strchr("sdxXobeEfFgG%", f.type) == NULL)) {
        cw_jfailr(r, "this format specification is not supported");
    }
    return f;
}

static void put_formatted(struct cw_jrender *r, struct cw_jbuild *b, struct cw_jval v,
                          struct spec f, bool empty, int32_t origin) {
    bool number = cw_jis_number(v) && !(v.kind == CW_J_BOOL && empty);
    if (!number) {
        bool text = v.kind == CW_J_STRING || empty;
        bool fits = f.type == 0 || f.type == 's';
        if (!text || !fits || f.sign != 0 || f.alternate || f.grouping != 0 ||
            (f.align == '=' && f.fill[0] != '0')) {
            cw_jfailr(r, "TypeError: this format does not fit a '%s' object", cw_jtype_name(v));
        }
        f.align = f.align == '=' ? '<' : f.align;
        put_text(r, b, f, cw_jstr_of(r, v), origin);
        return;
    }
    bool whole = f.type == 0 || strchr("dxXob", f.type) != NULL;
    if (v.kind != CW_J_FLOAT && whole && f.precision < 0) {
        put_int(r, b, f, cw_jas_int(r, v, "a number"), origin);
        return;
    }
    if (f.type == 's' || (f.type != 0 && whole) || (v.kind != CW_J_FLOAT && f.type == 0)) {
        cw_jfailr(r, "ValueError: this format does not fit a '%s' object", cw_jtype_name(v));
    }
    put_float(r, b, f, cw_jas_double(v), origin);
}

struct brace {
    const struct cw_jargs *args;
    int64_t next; /* of the arguments counted by the format itself */
    bool counted, numbered;
};

/* The value that a field's name in s[i, end) stands for: an argument and parts of it. */
static struct cw_jval field_value(struct cw_jrender *r, struct brace *p, const struct cw_jstr *s,
                                  size_t i, size_t end) {
    size_t begin = i;
    while (i < end && s->data[i] != '.' && s->data[i] != '[') {
        i++;
    }
    struct cw_jstr *name = cw_jstr_slice(&r->arena, s, begin, i);
    struct cw_jval v = {.kind = CW_J_ABSENT};
    if (name->len == 0 || is_digit(name->data[0])) {
        size_t at = 0;
        int64_t n = name->len == 0 ? p->next++ : read_number(r, name, &at);
        p->counted |= name->len == 0;
        p->numbered |= at > 0 && i == end; /* {0.x} may stand beside {} */
        if (p->counted && p->numbered) {
            cw_jfailr(r, "ValueError: a format with and without numbers of fields");
        }
        if ((uint64_t)n < p->args->n_pos && at == name->len) {
            v = p->args->pos[n];
        }
    }
    for (size_t k = 0; v.kind == CW_J_ABSENT && k < p->args->n_kw; k++) {
        if (cw_jsame_text(r, p->args->kw[k].name, name)) {
            v = p->args->kw[k].value;
        }
    }
    if (v.kind == CW_J_ABSENT) {
        cw_jfailr(r, "the format has no argument '%.*s'", name->len < 60 ? (int)name->len : 60,
                  name->data);
    }
    while (i < end) {
        bool attribute = s->data[i] == '.';
        begin = ++i;
        while (i < end &&
               (attribute ? s->data[i] != '.' && s->data[i] != '[' : s->data[i] != ']')) {
            i++;
        }
        struct cw_jstr *part = cw_jstr_slice(&r->arena, s, begin, i);
        size_t at = 0;
        int64_t index = part->len > 0 && is_digit(part->data[0]) ? read_number(r, part, &at) : 0;
        bool digits = at > 0 && at == part->len;
        v = attribute ? cw_jgetattr(r, v, part)
                      : cw_jgetitem(r, v, digits ? cw_jint(index) : cw_jstring(part));
        i += !attribute;
        if (!attribute && i < end && s->data[i] != '.' && s->data[i] != '[') {
            cw_jfailr(r, "ValueError: only '.' or '[' may follow ']' in a format");
        }
    }
    return v;
}

/* The field s[i, end) between braces: name[!conversion][:specification]. */
static void brace_field(struct cw_jrender *r, struct cw_jbuild *b, struct brace *p,
                        const struct cw_jstr *s, size_t i, size_t end) {
    int32_t origin = cw_jstr_taint(s);
    size_t name_end = i;
    while (name_end < end && s->data[name_end] != '!' && s->data[name_end] != ':') {
        name_end += s->data[name_end] == '[' ? strcspn(s->data + name_end, "]}") : 1;
    }
    name_end = name_end < end ? name_end : end;
    struct cw_jval v = field_value(r, p, s, i, name_end);
    i = name_end;
    if (i < end && s->data[i] == '!') {
        char c = i + 1 < end ? s->data[i + 1] : '\0';
        if (c != 's' && c != 'r') {
            cw_jfailr(r, "this conversion in a format is not supported");
        }
        struct cw_jbuild text = cw_jbuild_new(&r->arena);
        (c == 's' ? cw_jput_str : cw_jput_repr)(r, &text, v);
        v = cw_jbuilt(&text);
        i += 2;
        if (i < end && s->data[i] != ':') {
            cw_jfailr(r, "ValueError: expected ':' after conversion specifier");
        }
    }
    i += i < end;
    put_formatted(r, b, v, read_spec(r, s, i, end), i >= end, origin);
}

struct cw_jval cw_jformat(struct cw_jrender *r, const struct cw_jstr *s,
                          const struct cw_jargs *args) {
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    struct brace p = {.args = args};
    cw_jcharge_bytes(r, s->len);
    for (size_t i = 0; i < s->len;) {
        size_t end = i;
        while (end < s->len && s->data[end] != '{' && s->data[end] != '}') {
            end++;
        }
        cw_jbuild_slice(&b, s, i, end);
        i = end;
        if (i == s->len) {
            break;
        }
        if (i + 1 < s->len && s->data[i + 1] == s->data[i]) { /* {{ and }} */
            cw_jbuild_slice(&b, s, i, i + 1);
            i += 2;
            continue;
        }
        for (end = i + 1; end < s->len && s->data[end] != '{' && s->data[end] != '}';) {
            end++;
        }
        if (s->data[i] == '}' || end == s->len) {
            cw_jfailr(r, "ValueError: a single '%c' in a format", s->data[i]);
        }
        if (s->data[end] == '{') {
            cw_jfailr(r, "fields within fields of a format are not supported");
        }
        cw_jcharge(r, 2);
        brace_field(r, &b, &p, s, i + 1, end);
        i = end + 1;
    }
    return cw_jbuilt(&b);
}
