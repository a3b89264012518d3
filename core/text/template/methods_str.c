/* SPDX-License-Identifier: MIT
 * Methods of strings (builtins.h). */
#include <string.h>

#include "builtins.h"
#include "unicode.h"

/* The string a method was called on, and what its work costs. */
static const struct cw_jstr *text(struct cw_jrender *r, struct cw_jval v) {
    if (v.s->markup) {
        cw_jfailr(r, "methods of the result of 'escape' or 'safe' are not supported");
    }
    cw_jcharge_bytes(r, v.s->len);
    return v.s;
}

static const struct cw_jstr *opt_str(struct cw_jrender *r, struct cw_jval v, const char *what) {
    return cw_jgiven(v) ? cw_jas_str(r, v, what) : NULL;
}

CW_JBUILTIN(str_strip) {
    return cw_jstrip(r, text(r, v), opt_str(r, arg[0], "'chars'"),
                     CW_JSTRIP_LEFT | CW_JSTRIP_RIGHT);
}

CW_JBUILTIN(str_lstrip) {
    return cw_jstrip(r, text(r, v), opt_str(r, arg[0], "'chars'"), CW_JSTRIP_LEFT);
}

CW_JBUILTIN(str_rstrip) {
    return cw_jstrip(r, text(r, v), opt_str(r, arg[0], "'chars'"), CW_JSTRIP_RIGHT);
}

CW_JBUILTIN(str_upper) {
    return cw_jcase(r, text(r, v), CW_JUPPER);
}

CW_JBUILTIN(str_lower) {
    return cw_jcase(r, text(r, v), CW_JLOWER);
}

CW_JBUILTIN(str_title) {
    return cw_jcase(r, text(r, v), CW_JTITLE);
}

CW_JBUILTIN(str_capitalize) {
    return cw_jcase(r, text(r, v), CW_JCAPITALIZE);
}

CW_JBUILTIN(str_swapcase) {
    return cw_jcase(r, text(r, v), CW_JSWAP);
}

CW_JBUILTIN(str_replace) {
    int64_t count = arg[2].kind == CW_J_ABSENT ? -1 : cw_jas_int(r, arg[2], "'count'");
    return cw_jreplace(r, text(r, v), cw_jas_str(r, arg[0], "'old'"),
                       cw_jas_str(r, arg[1], "'new'"), count);
}

static void add_slice(struct cw_jrender *r, struct cw_jfill *f, const struct cw_jstr *s,
                      size_t begin, size_t end) {
    cw_jcharge(r, 1);
    cw_jfill_add(r, f, cw_jstring(cw_jstr_slice(&r->arena, s, begin, end)));
}

static struct cw_jval split_space(struct cw_jrender *r, const struct cw_jstr *s, int64_t max) {
    cw_jcharge_chars(r, s->len);
    struct cw_jfill out = {0};
    uint32_t cp;
    for (size_t i = 0, n; i < s->len;) {
        n = cw_jstr_decode(s, i, &cp);
        if (cw_jchar_is_space(cp)) {
            i += n;
            continue;
        }
        if (max >= 0 && (int64_t)out.n == max) {
            add_slice(r, &out, s, i, s->len);
            break;
        }
        size_t begin = i;
        while (i < s->len && (n = cw_jstr_decode(s, i, &cp), !cw_jchar_is_space(cp))) {
            i += n;
        }
        add_slice(r, &out, s, begin, i);
    }
    return cw_jfill_end(r, &out, CW_J_LIST);
}

static void reverse_items(struct cw_jfill *f) {
    for (size_t i = 0, k = f->n; i + 1 < k; i++) {
        struct cw_jval t = f->items[i];
        f->items[i] = f->items[--k];
        f->items[k] = t;
    }
}

static struct cw_jval rsplit_space(struct cw_jrender *r, const struct cw_jstr *s, int64_t max) {
    cw_jcharge_chars(r, s->len);
    struct cw_jfill out = {0};
    uint32_t cp;
    for (size_t i = s->len, at; i > 0;) {
        at = cw_jstr_before(s, i);
        cw_jstr_decode(s, at, &cp);
        if (cw_jchar_is_space(cp)) {
            i = at;
            continue;
        }
        if (max >= 0 && (int64_t)out.n == max) {
            add_slice(r, &out, s, 0, i);
            break;
        }
        size_t end = i;
        while (i > 0 &&
               (at = cw_jstr_before(s, i), cw_jstr_decode(s, at, &cp), !cw_jchar_is_space(cp))) {
            i = at;
        }
        add_slice(r, &out, s, i, end);
    }
    reverse_items(&out);
    return cw_jfill_end(r, &out, CW_J_LIST);
}

static const struct cw_jstr *separator(struct cw_jrender *r, struct cw_jval v) {
    const struct cw_jstr *sep = cw_jas_str(r, v, "the separator");
    if (sep->len == 0) {
        cw_jfailr(r, "ValueError: empty separator");
    }
    return sep;
}

CW_JBUILTIN(str_split) {
    const struct cw_jstr *s = text(r, v);
    int64_t max = arg[1].kind == CW_J_ABSENT ? -1 : cw_jas_int(r, arg[1], "'maxsplit'");
    if (!cw_jgiven(arg[0])) {
        return split_space(r, s, max);
    }
    const struct cw_jstr *sep = separator(r, arg[0]);
    struct cw_jfill out = {0};
    size_t begin = 0;
    ptrdiff_t hit;
    while ((max < 0 || (int64_t)out.n < max) && (hit = cw_jstr_find(s, sep, begin, s->len)) >= 0) {
        add_slice(r, &out, s, begin, (size_t)hit);
        begin = (size_t)hit + sep->len;
    }
    add_slice(r, &out, s, begin, s->len);
    return cw_jfill_end(r, &out, CW_J_LIST);
}

CW_JBUILTIN(str_rsplit) {
    const struct cw_jstr *s = text(r, v);
    int64_t max = arg[1].kind == CW_J_ABSENT ? -1 : cw_jas_int(r, arg[1], "'maxsplit'");
    if (!cw_jgiven(arg[0])) {
        return rsplit_space(r, s, max);
    }
    const struct cw_jstr *sep = separator(r, arg[0]);
    struct cw_jfill out = {0};
    size_t end = s->len;
    ptrdiff_t hit;
    while ((max < 0 || (int64_t)out.n < max) && (hit = cw_jstr_rfind(s, sep, 0, end)) >= 0) {
        add_slice(r, &out, s, (size_t)hit + sep->len, end);
        end = (size_t)hit;
    }
    add_slice(r, &out, s, 0, end);
    reverse_items(&out);
    return cw_jfill_end(r, &out, CW_J_LIST);
}

CW_JBUILTIN(str_splitlines) {
    return cw_jsplitlines(r, text(r, v), cw_jas_flag(r, arg[0], "'keepends'"));
}

/* Three parts around the first (last) separator; without one, s stands first (last). */
static struct cw_jval partition(struct cw_jrender *r, struct cw_jval v, struct cw_jval arg,
                                bool last) {
    const struct cw_jstr *s = text(r, v), *sep = separator(r, arg);
    ptrdiff_t hit = last ? cw_jstr_rfind(s, sep, 0, s->len) : cw_jstr_find(s, sep, 0, s->len);
    size_t begin = hit >= 0 ? (size_t)hit : last ? 0 : s->len;
    size_t end = hit >= 0 ? begin + sep->len : begin;
    struct cw_jval out = cw_jseq(r, CW_J_TUPLE, 3);
    out.list->items[0] = cw_jstring(cw_jstr_slice(&r->arena, s, 0, begin));
    out.list->items[1] = cw_jstring(cw_jstr_slice(&r->arena, s, begin, end));
    out.list->items[2] = cw_jstring(cw_jstr_slice(&r->arena, s, end, s->len));
    return out;
}

CW_JBUILTIN(str_partition) {
    return partition(r, v, arg[0], false);
}

CW_JBUILTIN(str_rpartition) {
    return partition(r, v, arg[0], true);
}

/* The bytes of s between two character positions as slices count them. */
struct stretch {
    size_t begin, end;
    bool empty; /* begin lies behind end */
};

static struct stretch stretch_of(struct cw_jrender *r, const struct cw_jstr *s,
                                 struct cw_jval start, struct cw_jval stop) {
    struct stretch t = {0, s->len, false};
    if (!cw_jgiven(start) && !cw_jgiven(stop)) {
        return t;
    }
    int64_t n = (int64_t)cw_jcount_chars(r, s);
    int64_t a = cw_jgiven(start) ? cw_jas_int(r, start, "'start'") : 0;
    int64_t b = cw_jgiven(stop) ? cw_jas_int(r, stop, "'end'") : n;
    a = cw_jfrom_end(a, n);
    b = cw_jfrom_end(b, n);
    b = b > n ? n : b;
    t.empty = a > b;
    t.begin = cw_jstr_char_at(s, a > n ? (size_t)n : (size_t)a);
    t.end = cw_jstr_char_at(s, (size_t)b);
    return t;
}

static bool fits_end(struct cw_jrender *r, const struct cw_jstr *s, const struct cw_jstr *part,
                     struct stretch t, bool at_end) {
    if (t.empty || part->len > t.end - t.begin) {
        return false;
    }
    cw_jcharge_bytes(r, part->len);
    size_t at = at_end ? t.end - part->len : t.begin;
    return memcmp(s->data + at, part->data, part->len) == 0;
}

/* startswith, endswith: one string, or a tuple of which any may fit. */
static struct cw_jval has_end(struct cw_jrender *r, struct cw_jval v, const struct cw_jval *arg,
                              bool at_end) {
    const struct cw_jstr *s = v.s;
    struct stretch t = stretch_of(r, s, arg[1], arg[2]);
    bool fits = false;
    if (arg[0].kind == CW_J_TUPLE) {
        for (size_t i = 0; !fits && i < arg[0].list->n; i++) {
            cw_jcharge(r, 1);
            fits = fits_end(r, s, cw_jas_str(r, arg[0].list->items[i], "a prefix or suffix"), t,
                            at_end);
        }
    } else {
        fits = fits_end(r, s, cw_jas_str(r, arg[0], "a prefix or suffix"), t, at_end);
    }
    return cw_jbool(fits);
}

CW_JBUILTIN(str_startswith) {
    return has_end(r, v, arg, false);
}

CW_JBUILTIN(str_endswith) {
    return has_end(r, v, arg, true);
}

/* The character index of the first (last) occurrence, or -1. */
static int64_t position(struct cw_jrender *r, struct cw_jval v, const struct cw_jval *arg,
                        bool last) {
    const struct cw_jstr *s = text(r, v), *sub = cw_jas_str(r, arg[0], "what is looked for");
    struct stretch t = stretch_of(r, s, arg[1], arg[2]);
    if (t.empty) {
        return -1;
    }
    ptrdiff_t hit =
        last ? cw_jstr_rfind(s, sub, t.begin, t.end) : cw_jstr_find(s, sub, t.begin, t.end);
    if (hit < 0) {
        return -1;
    }
    struct cw_jstr before = *s;
    before.len = (size_t)hit;
    return (int64_t)cw_jcount_chars(r, &before);
}

CW_JBUILTIN(str_find) {
    return cw_jint(position(r, v, arg, false));
}

CW_JBUILTIN(str_rfind) {
    return cw_jint(position(r, v, arg, true));
}

static struct cw_jval found(struct cw_jrender *r, int64_t i) {
    if (i < 0) {
        cw_jfailr(r, "ValueError: substring not found");
    }
    return cw_jint(i);
}

CW_JBUILTIN(str_index) {
    return found(r, position(r, v, arg, false));
}

CW_JBUILTIN(str_rindex) {
    return found(r, position(r, v, arg, true));
}

CW_JBUILTIN(str_count) {
    const struct cw_jstr *s = text(r, v), *sub = cw_jas_str(r, arg[0], "what is counted");
    struct stretch t = stretch_of(r, s, arg[1], arg[2]);
    if (t.empty) {
        return cw_jint(0);
    }
    if (sub->len == 0) {
        struct cw_jstr *part = cw_jstr_slice(&r->arena, s, t.begin, t.end);
        return cw_jint((int64_t)cw_jcount_chars(r, part) + 1);
    }
    int64_t n = 0;
    ptrdiff_t hit;
    while ((hit = cw_jstr_find(s, sub, t.begin, t.end)) >= 0) {
        t.begin = (size_t)hit + sub->len;
        n++;
    }
    return cw_jint(n);
}

CW_JBUILTIN(str_join) {
    const struct cw_jstr *sep = text(r, v);
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    struct cw_jcursor c = cw_jwalk(r, arg[0]);
    struct cw_jval item;
    for (bool first = true; cw_jstep(r, &c, &item); first = false) {
        const struct cw_jstr *s = cw_jas_str(r, item, "an item to join");
        cw_jcharge_bytes(r, s->len + sep->len);
        if (!first) {
            cw_jbuild_str(&b, sep);
        }
        cw_jbuild_str(&b, s);
    }
    return cw_jbuilt(&b);
}

CW_JBUILTIN(str_format) {
    return cw_jformat(r, text(r, v), all);
}

CW_JBUILTIN(str_format_map) {
    if (arg[0].kind != CW_J_DICT) {
        cw_jfailr(r, "TypeError: format_map() needs a mapping");
    }
    struct cw_jargs args = {0};
    const struct cw_jdict *d = arg[0].dict;
    args.kw = cw_jalloc_array(&r->arena, d->n, sizeof *args.kw);
    for (size_t i = 0; i < d->n; i++) {
        if (d->pairs[i].key.kind == CW_J_STRING) {
            args.kw[args.n_kw++] = (struct cw_jkeyword){d->pairs[i].key.s, d->pairs[i].value};
        }
    }
    return cw_jformat(r, text(r, v), &args);
}

CW_JBUILTIN(str_removeprefix) {
    const struct cw_jstr *s = text(r, v), *part = cw_jas_str(r, arg[0], "the prefix");
    bool fits = fits_end(r, s, part, (struct stretch){0, s->len, false}, false);
    return cw_jstring(cw_jstr_slice(&r->arena, s, fits ? part->len : 0, s->len));
}

CW_JBUILTIN(str_removesuffix) {
    const struct cw_jstr *s = text(r, v), *part = cw_jas_str(r, arg[0], "the suffix");
    bool fits = fits_end(r, s, part, (struct stretch){0, s->len, false}, true);
    return cw_jstring(cw_jstr_slice(&r->arena, s, 0, s->len - (fits ? part->len : 0)));
}

static const struct cw_jstr *fill_char(struct cw_jrender *r, struct cw_jval v) {
    const struct cw_jstr *fill = opt_str(r, v, "the fill character");
    if (fill != NULL && cw_jcount_chars(r, fill) != 1) {
        cw_jfailr(r, "TypeError: the fill character must be exactly one character long");
    }
    return fill;
}

/* ljust, rjust: fill up to a width on one side. */
static struct cw_jval justify(struct cw_jrender *r, struct cw_jval v, const struct cw_jval *arg,
                              bool fill_left) {
    const struct cw_jstr *s = text(r, v), *fill = fill_char(r, arg[1]);
    int64_t width = cw_jas_int(r, arg[0], "'width'");
    int64_t pad = width - (int64_t)cw_jcount_chars(r, s);
    if (pad > 0 && (uint64_t)pad > r->limits.value_bytes) {
        cw_jfailr(r, "a width of %lld is too large", (long long)width);
    }
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    if (!fill_left) {
        cw_jbuild_str(&b, s);
    }
    for (int64_t i = 0; i < pad; i++) {
        cw_jcharge(r, 1);
        if (fill != NULL) {
            cw_jbuild_str(&b, fill);
        } else {
            cw_jpad(&b, 1, ' ', cw_jstr_taint(s));
        }
    }
    if (fill_left) {
        cw_jbuild_str(&b, s);
    }
    return cw_jbuilt(&b);
}

CW_JBUILTIN(str_ljust) {
    return justify(r, v, arg, false);
}

CW_JBUILTIN(str_rjust) {
    return justify(r, v, arg, true);
}

CW_JBUILTIN(str_center) {
    return cw_jcenter(r, text(r, v), cw_jas_int(r, arg[0], "'width'"), fill_char(r, arg[1]));
}

CW_JBUILTIN(str_zfill) {
    const struct cw_jstr *s = text(r, v);
    int64_t width = cw_jas_int(r, arg[0], "'width'");
    int64_t pad = width - (int64_t)cw_jcount_chars(r, s);
    if (pad > 0 && (uint64_t)pad > r->limits.value_bytes) {
        cw_jfailr(r, "a width of %lld is too large", (long long)width);
    }
    size_t sign = s->len > 0 && (s->data[0] == '+' || s->data[0] == '-');
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    cw_jbuild_slice(&b, s, 0, sign);
    if (pad > 0) {
        cw_jcharge_bytes(r, (size_t)pad);
        cw_jpad(&b, (size_t)pad, '0', cw_jstr_taint(s));
    }
    cw_jbuild_slice(&b, s, sign, s->len);
    return cw_jbuilt(&b);
}

CW_JBUILTIN(str_expandtabs) {
    const struct cw_jstr *s = text(r, v);
    int64_t size = arg[0].kind == CW_J_ABSENT ? 8 : cw_jas_int(r, arg[0], "'tabsize'");
    int64_t column = 0;
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    if (size > 4096) {
        cw_jfailr(r, "a tab size of %lld is too large", (long long)size);
    }
    for (size_t i = 0; i < s->len;) {
        uint32_t cp;
        size_t n = cw_jstr_decode(s, i, &cp);
        if (cp == '\t') {
            int64_t pad = size > 0 ? size - column % size : 0;
            cw_jcharge_bytes(r, (size_t)pad);
            cw_jpad(&b, (size_t)pad, ' ', cw_jstr_origin(s, i));
            column += pad;
        } else {
            cw_jbuild_slice(&b, s, i, i + n);
            column = cp == '\n' || cp == '\r' ? 0 : column + 1;
        }
        i += n;
    }
    return cw_jbuilt(&b);
}

/* Every character is of the class, and there is one. */
static struct cw_jval all_are(struct cw_jrender *r, struct cw_jval v, bool (*is)(uint32_t)) {
    const struct cw_jstr *s = text(r, v);
    cw_jcharge_chars(r, s->len);
    bool holds = s->len > 0;
    for (size_t i = 0; holds && i < s->len;) {
        uint32_t cp;
        i += cw_jstr_decode(s, i, &cp);
        holds = is(cp);
    }
    return cw_jbool(holds);
}

static bool is_alnum(uint32_t cp) {
    return cp != '_' && cw_jchar_is_word(cp);
}

static bool is_ascii(uint32_t cp) {
    return cp < 0x80;
}

CW_JBUILTIN(str_isalpha) {
    return all_are(r, v, cw_jchar_is_alpha);
}

CW_JBUILTIN(str_isalnum) {
    return all_are(r, v, is_alnum);
}

CW_JBUILTIN(str_isdecimal) {
    return all_are(r, v, cw_jchar_is_decimal);
}

CW_JBUILTIN(str_isdigit) {
    return all_are(r, v, cw_jchar_is_digit);
}

CW_JBUILTIN(str_isspace) {
    return all_are(r, v, cw_jchar_is_space);
}

CW_JBUILTIN(str_isascii) {
    return v.s->len == 0 ? cw_jbool(true) : all_are(r, v, is_ascii);
}

CW_JBUILTIN(str_isprintable) {
    return v.s->len == 0 ? cw_jbool(true) : all_are(r, v, cw_jchar_is_printable);
}

CW_JBUILTIN(str_isupper) {
    return cw_japply_test(r, cw_jliteral(r, "upper").s, v, &(struct cw_jargs){0}) ? cw_jbool(true)
                                                                                  : cw_jbool(false);
}

CW_JBUILTIN(str_islower) {
    return cw_japply_test(r, cw_jliteral(r, "lower").s, v, &(struct cw_jargs){0}) ? cw_jbool(true)
                                                                                  : cw_jbool(false);
}

/* Upper and title case only behind what has no case, lower case only behind what has. */
CW_JBUILTIN(str_istitle) {
    const struct cw_jstr *s = text(r, v);
    bool any = false, after_cased = false;
    for (size_t i = 0; i < s->len;) {
        uint32_t cp;
        i += cw_jstr_decode(s, i, &cp);
        bool head = cw_jchar_is_upper(cp) || cw_jchar_is_title(cp);
        bool tail = cw_jchar_is_lower(cp);
        if ((head && after_cased) || (tail && !after_cased)) {
            return cw_jbool(false);
        }
        after_cased = head || tail;
        any |= after_cased;
    }
    return cw_jbool(any);
}

const struct cw_jbuiltin cw_jstr_methods[] = {
    {"strip", "chars?", str_strip},
    {"lstrip", "chars?", str_lstrip},
    {"rstrip", "chars?", str_rstrip},
    {"split", "sep? maxsplit?", str_split},
    {"rsplit", "sep? maxsplit?", str_rsplit},
    {"splitlines", "keepends?", str_splitlines},
    {"partition", "sep", str_partition},
    {"rpartition", "sep", str_rpartition},
    {"replace", "old new count?", str_replace},
    {"startswith", "prefix start? end?", str_startswith},
    {"endswith", "suffix start? end?", str_endswith},
    {"removeprefix", "prefix", str_removeprefix},
    {"removesuffix", "suffix", str_removesuffix},
    {"upper", "", str_upper},
    {"lower", "", str_lower},
    {"title", "", str_title},
    {"capitalize", "", str_capitalize},
    {"swapcase", "", str_swapcase},
    {"join", "iterable", str_join},
    {"find", "sub start? end?", str_find},
    {"rfind", "sub start? end?", str_rfind},
    {"index", "sub start? end?", str_index},
    {"rindex", "sub start? end?", str_rindex},
    {"count", "sub start? end?", str_count},
    {"format", "*", str_format},
    {"format_map", "mapping", str_format_map},
    {"ljust", "width fillchar?", str_ljust},
    {"rjust", "width fillchar?", str_rjust},
    {"center", "width fillchar?", str_center},
    {"zfill", "width", str_zfill},
    {"expandtabs", "tabsize?", str_expandtabs},
    {"isalpha", "", str_isalpha},
    {"isalnum", "", str_isalnum},
    {"isdecimal", "", str_isdecimal},
    {"isdigit", "", str_isdigit},
    {"isspace", "", str_isspace},
    {"isascii", "", str_isascii},
    {"isprintable", "", str_isprintable},
    {"isupper", "", str_isupper},
    {"islower", "", str_islower},
    {"istitle", "", str_istitle},
    {"casefold", NULL, NULL},
    {"encode", NULL, NULL},
    {"isidentifier", NULL, NULL},
    {"isnumeric", NULL, NULL},
    {"maketrans", NULL, NULL},
    {"translate", NULL, NULL},
    {NULL, NULL, NULL},
};
