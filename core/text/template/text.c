/* SPDX-License-Identifier: MIT
 *
 * Values as text: str(), repr(), and where text comes from.
 *
 * What is written around a message's text (quotes, escapes, brackets) is made from that text and
 * takes its origin: when in doubt, bytes are typed ones and not the template's.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval.h"
#include "unicode.h"

static int32_t taint_of_list(struct cw_jrender *r, const struct cw_jlist *list) {
    int32_t origin = CW_JTEMPLATE;
    cw_jenter(r);
    for (size_t i = 0; origin == CW_JTEMPLATE && i < list->n; i++) {
        origin = cw_jtaint(r, list->items[i]);
    }
    cw_jleave(r);
    return origin;
}

int32_t cw_jtaint(struct cw_jrender *r, struct cw_jval v) {
    int32_t origin = CW_JTEMPLATE;
    cw_jcharge(r, 1);
    switch (v.kind) {
    case CW_J_STRING:
        return cw_jstr_taint(v.s);
    case CW_J_LIST:
    case CW_J_TUPLE:
    case CW_J_VIEW:
    case CW_J_ITERATOR:
        return taint_of_list(r, v.list);
    case CW_J_DICT:
    case CW_J_NAMESPACE:
        cw_jenter(r);
        for (size_t i = 0; origin == CW_JTEMPLATE && i < v.dict->n; i++) {
            origin = cw_jtaint(r, v.dict->pairs[i].key);
            if (origin == CW_JTEMPLATE) {
                origin = cw_jtaint(r, v.dict->pairs[i].value);
            }
        }
        cw_jleave(r);
        return origin;
    default:
        return CW_JTEMPLATE;
    }
}

/* The shortest digits that read back as the same number; an exponent below 1e-4 and from 1e16. */
struct cw_jdigits cw_jfloat_repr(double f) {
    struct cw_jdigits out;
    if (isnan(f) || isinf(f)) {
        strcpy(out.s, isnan(f) ? "nan" : f > 0 ? "inf" : "-inf");
        return out;
    }
    int digits = 1;
    do {
        snprintf(out.s, sizeof out.s, "%.*e", digits - 1, f);
    } while (strtod(out.s, NULL) != f && ++digits <= 17);
    int exponent = (int)strtol(strchr(out.s, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 16) {
        int decimals = digits - 1 - exponent;
        snprintf(out.s, sizeof out.s, "%.*f", decimals > 1 ? decimals : 1, f);
    }
    return out;
}

/* Python prefers ' and takes " only where that saves escapes. */
static void put_quoted(struct cw_jrender *r, struct cw_jbuild *b, const struct cw_jstr *s) {
    int32_t taint = cw_jstr_taint(s);
    bool has_single = memchr(s->data, '\'', s->len) != NULL;
    bool has_double = memchr(s->data, '"', s->len) != NULL;
    char quote = has_single && !has_double ? '"' : '\'';
    cw_jcharge_chars(r, s->len);
    cw_jbuild_add(b, &quote, 1, taint);
    for (size_t i = 0; i < s->len;) {
        uint32_t cp;
        size_t n = cw_jstr_decode(s, i, &cp);
        int32_t origin = cw_jstr_origin(s, i);
        char text[12];
        if (cp == (uint32_t)quote || cp == '\\') {
            snprintf(text, sizeof text, "\\%c", (char)cp);
        } else if (cp == '\n' || cp == '\r' || cp == '\t') {
            snprintf(text, sizeof text, "\\%c", cp == '\n' ? 'n' : cp == '\r' ? 'r' : 't');
        } else if (cw_jchar_is_printable(cp)) {
            memcpy(text, s->data + i, n);
            text[n] = '\0';
        } else {
            snprintf(text, sizeof text,
                     cp < 0x100     ? "\\x%02x"
                     : cp < 0x10000 ? "\\u%04x"
                                    : "\\U%08x",
                     (unsigned)cp);
        }
        cw_jbuild_puts(b, text, origin);
        i += n;
    }
    cw_jbuild_add(b, &quote, 1, taint);
}

static void put_list(struct cw_jrender *r, struct cw_jbuild *b, const struct cw_jlist *list,
                     const char *open, const char *close, int32_t taint) {
    cw_jenter(r);
    cw_jbuild_puts(b, open, taint);
    for (size_t i = 0; i < list->n; i++) {
        cw_jbuild_puts(b, i > 0 ? ", " : "", taint);
        cw_jput_repr(r, b, list->items[i]);
    }
    cw_jbuild_puts(b, close, taint);
    cw_jleave(r);
}

static void put_dict(struct cw_jrender *r, struct cw_jbuild *b, const struct cw_jdict *d,
                     int32_t taint) {
    cw_jenter(r);
    cw_jbuild_puts(b, "{", taint);
    for (size_t i = 0; i < d->n; i++) {
        cw_jbuild_puts(b, i > 0 ? ", " : "", taint);
        cw_jput_repr(r, b, d->pairs[i].key);
        cw_jbuild_puts(b, ": ", taint);
        cw_jput_repr(r, b, d->pairs[i].value);
    }
    cw_jbuild_puts(b, "}", taint);
    cw_jleave(r);
}

static void put_range(struct cw_jbuild *b, const struct cw_jrange *range) {
    char text[96];
    snprintf(text, sizeof text, range->step == 1 ? "range(%lld, %lld)" : "range(%lld, %lld, %lld)",
             (long long)range->start, (long long)range->stop, (long long)range->step);
    cw_jbuild_puts(b, text, CW_JTEMPLATE);
}

void cw_jput_repr(struct cw_jrender *r, struct cw_jbuild *b, struct cw_jval v) {
    int32_t taint;
    char text[32];
    cw_jcharge(r, 1);
    switch (v.kind) {
    case CW_J_UNDEFINED:
        cw_jbuild_puts(b, "Undefined", CW_JTEMPLATE);
        break;
    case CW_J_NONE:
        cw_jbuild_puts(b, "None", CW_JTEMPLATE);
        break;
    case CW_J_BOOL:
        cw_jbuild_puts(b, v.b ? "True" : "False", CW_JTEMPLATE);
        break;
    case CW_J_INT:
        snprintf(text, sizeof text, "%lld", (long long)v.i);
        cw_jbuild_puts(b, text, CW_JTEMPLATE);
        break;
    case CW_J_FLOAT:
        cw_jbuild_puts(b, cw_jfloat_repr(v.f).s, CW_JTEMPLATE);
        break;
    case CW_J_STRING:
        taint = cw_jstr_taint(v.s);
        cw_jbuild_puts(b, v.s->markup ? "Markup(" : "", taint);
        put_quoted(r, b, v.s);
        cw_jbuild_puts(b, v.s->markup ? ")" : "", taint);
        break;
    case CW_J_LIST:
        put_list(r, b, v.list, "[", "]", cw_jtaint(r, v));
        break;
    case CW_J_TUPLE:
        put_list(r, b, v.list, "(", v.list->n == 1 ? ",)" : ")", cw_jtaint(r, v));
        break;
    case CW_J_VIEW:
        taint = cw_jtaint(r, v);
        cw_jbuild_puts(b, v.list->name, taint);
        put_list(r, b, v.list, "([", "])", taint);
        break;
    case CW_J_DICT:
        put_dict(r, b, v.dict, cw_jtaint(r, v));
        break;
    case CW_J_NAMESPACE:
        taint = cw_jtaint(r, v);
        cw_jbuild_puts(b, "<Namespace ", taint);
        put_dict(r, b, v.dict, taint);
        cw_jbuild_puts(b, ">", taint);
        break;
    case CW_J_RANGE:
        put_range(b, v.range);
        break;
    case CW_J_MACRO:
        cw_jbuild_puts(b, "<Macro '", CW_JTEMPLATE);
        cw_jbuild_puts(b, v.macro->routine->name, CW_JTEMPLATE);
        cw_jbuild_puts(b, "'>", CW_JTEMPLATE);
        break;
    default:
        cw_jfailr(r, "printing a '%s' object is not supported", cw_jtype_name(v));
    }
}

void cw_jput_str(struct cw_jrender *r, struct cw_jbuild *b, struct cw_jval v) {
    if (v.kind == CW_J_STRING) {
        cw_jcharge_bytes(r, v.s->len);
        cw_jbuild_str(b, v.s);
    } else if (v.kind != CW_J_UNDEFINED) {
        cw_jput_repr(r, b, v);
    }
}

const struct cw_jstr *cw_jstr_of(struct cw_jrender *r, struct cw_jval v) {
    if (v.kind == CW_J_STRING) {
        return v.s;
    }
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    cw_jput_str(r, &b, v);
    return cw_jbuild_end(&b);
}
