/* SPDX-License-Identifier: MIT
 *
 * Values as JSON, byte for byte as Python's json.dumps writes them.
 *
 * As in text.c, what is put around or in place of a message's characters has its origin.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "builtins.h"

static void put_string(struct cw_jrender *r, struct cw_jbuild *b, const struct cw_jstr *s,
                       bool ascii) {
    int32_t taint = cw_jstr_taint(s);
    size_t from = 0;
    cw_jcharge_chars(r, s->len);
    cw_jbuild_puts(b, "\"", taint);
    for (size_t i = 0; i < s->len;) {
        static const char letters[] = "\"\\\n\r\t\f\b", escapes[] = "\"\\nrtfb";
        uint32_t cp;
        size_t n = cw_jstr_decode(s, i, &cp);
        const char *letter = cp != 0 && cp < 0x80 ? strchr(letters, (char)cp) : NULL;
        char text[16] = "";
        if (letter != NULL) {
            snprintf(text, sizeof text, "\\%c", escapes[letter - letters]);
        } else if (cp < 0x20 || (ascii && cp >= 0x7f && cp < 0x10000 && cp != 0x7f)) {
            snprintf(text, sizeof text, "\\u%04x", (unsigned)cp);
        } else if (ascii && cp >= 0x10000) {
            uint32_t v = cp - 0x10000;
            snprintf(text, sizeof text, "\\u%04x\\u%04x", (unsigned)(0xd800 | v >> 10),
                     (unsigned)(0xdc00 | (v & 0x3ff)));
        }
        if (text[0] != '\0') {
            cw_jbuild_slice(b, s, from, i);
            cw_jbuild_puts(b, text, cw_jstr_origin(s, i));
            from = i + n;
        }
        i += n;
    }
    cw_jbuild_slice(b, s, from, s->len);
    cw_jbuild_puts(b, "\"", taint);
}

static void put_float(struct cw_jbuild *b, double f) {
    struct cw_jdigits digits = cw_jfloat_repr(f);
    cw_jbuild_puts(b,
                   isnan(f)   ? "NaN"
                   : isinf(f) ? (f > 0 ? "Infinity" : "-Infinity")
                              : digits.s,
                   CW_JTEMPLATE);
}

static void new_line(struct cw_jrender *r, struct cw_jbuild *b, const struct cw_jjson_style *style,
                     int level, int32_t taint) {
    if (style->indent != NULL) {
        cw_jbuild_puts(b, "\n", taint);
        for (int i = 0; i < level; i++) {
            cw_jcharge_bytes(r, style->indent->len);
            cw_jbuild_str(b, style->indent);
        }
    }
}

/* The separator asked for, or the usual one. */
static void put_separator(struct cw_jbuild *b, const struct cw_jstr *given, const char *usual,
                          int32_t taint) {
    if (given != NULL) {
        cw_jbuild_str(b, given);
    } else {
        cw_jbuild_puts(b, usual, taint);
    }
}

/* What json.dumps makes of a key that is no string. */
static const struct cw_jstr *key_text(struct cw_jrender *r, struct cw_jval key) {
    switch (key.kind) {
    case CW_J_STRING:
        return key.s;
    case CW_J_BOOL:
        return cw_jliteral(r, key.b ? "true" : "false").s;
    case CW_J_NONE:
        return cw_jliteral(r, "null").s;
    case CW_J_INT:
        return cw_jstr_of(r, key);
    case CW_J_FLOAT: {
        struct cw_jbuild b = cw_jbuild_new(&r->arena);
        put_float(&b, key.f);
        return cw_jbuild_end(&b);
    }
    default:
        cw_jfailr(r, "TypeError: keys must be str, int, float, bool or None, not %s",
                  cw_jtype_name(key));
    }
}

static void put_dict(struct cw_jrender *r, struct cw_jbuild *b, const struct cw_jdict *d,
                     const struct cw_jjson_style *style, int level, int32_t taint) {
    if (d->n == 0) {
        cw_jbuild_puts(b, "{}", taint);
        return;
    }
    struct cw_jval *order = cw_jalloc_array(&r->arena, d->n, sizeof *order);
    struct cw_jval *keys = cw_jalloc_array(&r->arena, d->n, sizeof *keys);
    for (size_t i = 0; i < d->n; i++) {
        order[i] = cw_jint((int64_t)i);
        keys[i] = d->pairs[i].key;
    }
    if (style->sort_keys) {
        cw_jsort(r, order, keys, d->n, false);
    }
    cw_jbuild_puts(b, "{", taint);
    for (size_t i = 0; i < d->n; i++) {
        const struct cw_jpair *p = &d->pairs[order[i].i];
        if (i > 0) {
            put_separator(b, style->item_separator, style->indent != NULL ? "," : ", ", taint);
        }
        new_line(r, b, style, level + 1, taint);
        put_string(r, b, key_text(r, p->key), style->ascii);
        put_separator(b, style->key_separator, ": ", taint);
        cw_jjson(r, b, p->value, style, level + 1);
    }
    new_line(r, b, style, level, taint);
    cw_jbuild_puts(b, "}", taint);
}

static void put_list(struct cw_jrender *r, struct cw_jbuild *b, const struct cw_jlist *list,
                     const struct cw_jjson_style *style, int level, int32_t taint) {
    if (list->n == 0) {
        cw_jbuild_puts(b, "[]", taint);
        return;
    }
    cw_jbuild_puts(b, "[", taint);
    for (size_t i = 0; i < list->n; i++) {
        if (i > 0) {
            put_separator(b, style->item_separator, style->indent != NULL ? "," : ", ", taint);
        }
        new_line(r, b, style, level + 1, taint);
        cw_jjson(r, b, list->items[i], style, level + 1);
    }
    new_line(r, b, style, level, taint);
    cw_jbuild_puts(b, "]", taint);
}

void cw_jjson(struct cw_jrender *r, struct cw_jbuild *b, struct cw_jval v,
              const struct cw_jjson_style *style, int level) {
    cw_jcharge(r, 1);
    cw_jenter(r);
    switch (v.kind) {
    case CW_J_NONE:
        cw_jbuild_puts(b, "null", CW_JTEMPLATE);
        break;
    case CW_J_BOOL:
        cw_jbuild_puts(b, v.b ? "true" : "false", CW_JTEMPLATE);
        break;
    case CW_J_INT:
        cw_jput_repr(r, b, v);
        break;
    case CW_J_FLOAT:
        put_float(b, v.f);
        break;
    case CW_J_STRING:
        put_string(r, b, v.s, style->ascii);
        break;
    case CW_J_LIST:
    case CW_J_TUPLE:
        put_list(r, b, v.list, style, level, cw_jtaint(r, v));
        break;
    case CW_J_DICT:
        put_dict(r, b, v.dict, style, level, cw_jtaint(r, v));
        break;
    default:
        cw_jfailr(r, "TypeError: Object of type %s is not JSON serializable", cw_jtype_name(v));
    }
    cw_jleave(r);
}
