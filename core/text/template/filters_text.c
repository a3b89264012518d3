/* SPDX-License-Identifier: MIT
 * Filters on text (builtins.h). */
#include <string.h>

#include "builtins.h"
#include "unicode.h"

/* The text of v, where the reference would go on with escaped text as such and this engine does
 * not. */
static const struct cw_jstr *plain(struct cw_jrender *r, struct cw_jval v) {
    const struct cw_jstr *s = cw_jstr_of(r, v);
    if (s->markup) {
        cw_jfailr(r, "this filter is not supported on the result of 'escape' or 'safe'");
    }
    return s;
}

CW_JBUILTIN(filter_upper) {
    return cw_jcase(r, plain(r, v), CW_JUPPER);
}

CW_JBUILTIN(filter_lower) {
    return cw_jcase(r, plain(r, v), CW_JLOWER);
}

CW_JBUILTIN(filter_capitalize) {
    return cw_jcase(r, plain(r, v), CW_JCAPITALIZE);
}

CW_JBUILTIN(filter_title) {
    return cw_jtitle_words(r, plain(r, v));
}

CW_JBUILTIN(filter_trim) {
    const struct cw_jstr *chars = cw_jgiven(arg[0]) ? cw_jas_str(r, arg[0], "'chars'") : NULL;
    return cw_jstrip(r, plain(r, v), chars, CW_JSTRIP_LEFT | CW_JSTRIP_RIGHT);
}

CW_JBUILTIN(filter_replace) {
    int64_t count = cw_jgiven(arg[2]) ? cw_jas_int(r, arg[2], "'count'") : -1;
    return cw_jreplace(r, cw_jstr_of(r, v), cw_jstr_of(r, arg[0]), cw_jstr_of(r, arg[1]), count);
}

CW_JBUILTIN(filter_string) {
    return cw_jstring(cw_jstr_of(r, v));
}

CW_JBUILTIN(filter_escape) {
    return cw_jescape(r, cw_jstr_of(r, v));
}

CW_JBUILTIN(filter_forceescape) {
    struct cw_jstr s = *cw_jstr_of(r, v);
    s.markup = false;
    return cw_jescape(r, &s);
}

CW_JBUILTIN(filter_safe) {
    struct cw_jstr *s = cw_jalloc(&r->arena, sizeof *s);
    *s = *cw_jstr_of(r, v);
    s->markup = true;
    return cw_jstring(s);
}

CW_JBUILTIN(filter_center) {
    int64_t width = cw_jgiven(arg[0]) ? cw_jas_int(r, arg[0], "'width'") : 80;
    return cw_jcenter(r, plain(r, v), width, NULL);
}

CW_JBUILTIN(filter_format) {
    struct cw_jval right = cw_jdict(r, CW_J_DICT);
    if (all->n_pos > 0 && all->n_kw > 0) {
        cw_jfailr(r, "'format' takes positional or keyword arguments, not both");
    }
    for (size_t i = 0; i < all->n_kw; i++) {
        cw_jdict_set(r, right.dict, cw_jstring(all->kw[i].name), all->kw[i].value);
    }
    if (all->n_kw == 0) {
        right = cw_jseq(r, CW_J_TUPLE, 0);
        right.list->items = all->pos;
        right.list->n = all->n_pos;
    }
    return cw_jpercent(r, plain(r, v), right);
}

CW_JBUILTIN(filter_wordcount) {
    const struct cw_jstr *s = plain(r, v);
    int64_t n = 0;
    bool in_word = false;
    cw_jcharge_chars(r, s->len);
    for (size_t i = 0; i < s->len;) {
        uint32_t cp;
        i += cw_jstr_decode(s, i, &cp);
        bool word = cw_jchar_is_word(cp);
        n += word && !in_word;
        in_word = word;
    }
    return cw_jint(n);
}

/* One level of indentation: `width` as it was given, or that many blanks. */
static const struct cw_jstr *indentation(struct cw_jrender *r, struct cw_jval width,
                                         int32_t origin) {
    if (width.kind == CW_J_STRING) {
        return width.s;
    }
    int64_t n = width.kind == CW_J_ABSENT ? 4 : cw_jas_int(r, width, "'width'");
    if (n > 0 && (uint64_t)n > r->limits.value_bytes) {
        cw_jfailr(r, "an indentation of %lld is too large", (long long)n);
    }
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    cw_jpad(&b, n > 0 ? (size_t)n : 0, ' ', origin);
    return cw_jbuild_end(&b);
}

CW_JBUILTIN(filter_indent) {
    const struct cw_jstr *s = plain(r, cw_jstring(cw_jas_str(r, v, "what is indented")));
    int32_t taint = cw_jstr_taint(s);
    const struct cw_jstr *indent = indentation(r, arg[0], taint);
    bool first = cw_jtruth(r, arg[1]), blank = cw_jtruth(r, arg[2]);
    struct cw_jval lines = cw_jsplitlines(r, s, false);
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    if (first) {
        cw_jbuild_str(&b, indent);
    }
    for (size_t i = 0; i < lines.list->n; i++) {
        const struct cw_jstr *line = lines.list->items[i].s;
        if (i > 0) {
            cw_jbuild_puts(&b, "\n", taint);
            if (blank || line->len > 0) {
                cw_jbuild_str(&b, indent);
            }
        }
        cw_jcharge_bytes(r, line->len + indent->len);
        cw_jbuild_str(&b, line);
    }
    /* A newline is put behind s before it is cut into lines: where s ends in one, that makes an
     * empty line at the end. */
    uint32_t cp = 0;
    if (s->len > 0) {
        cw_jstr_decode(s, cw_jstr_before(s, s->len), &cp);
    }
    if (s->len > 0 && cw_jchar_is_line_end(cp) && cp != '\r') {
        cw_jbuild_puts(&b, "\n", taint);
        if (blank) {
            cw_jbuild_str(&b, indent);
        }
    }
    return cw_jbuilt(&b);
}

CW_JBUILTIN(filter_truncate) {
    int64_t length = cw_jgiven(arg[0]) ? cw_jas_int(r, arg[0], "'length'") : 255;
    bool kill_words = cw_jtruth(r, arg[1]);
    const struct cw_jstr *end =
        cw_jgiven(arg[2]) ? cw_jas_str(r, arg[2], "'end'") : cw_jliteral(r, "...").s;
    int64_t leeway = cw_jgiven(arg[3]) ? cw_jas_int(r, arg[3], "'leeway'") : 5;
    int64_t end_chars = (int64_t)cw_jcount_chars(r, end);
    if (length < end_chars || leeway < 0) {
        cw_jfailr(r, "AssertionError: 'truncate' with a length below that of its end, or a "
                     "negative leeway");
    }
    int64_t n = cw_jlen(r, v);
    if (n >= 0 && n - leeway <= length) {
        return v; /* whatever it is */
    }
    const struct cw_jstr *s = plain(r, cw_jstring(cw_jas_str(r, v, "what is truncated")));
    size_t cut = cw_jstr_char_at(s, (size_t)(length - end_chars));
    if (!kill_words) {
        for (size_t i = cut; i > 0; i--) {
            if (s->data[i - 1] == ' ') {
                cut = i - 1;
                break;
            }
        }
    }
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    cw_jbuild_slice(&b, s, 0, cut);
    cw_jbuild_str(&b, end);
    return cw_jbuilt(&b);
}

CW_JBUILTIN(filter_tojson) {
    struct cw_jjson_style style = {
        .ascii = cw_jtruth(r, arg[0]),
        .sort_keys = cw_jtruth(r, arg[3]),
        .indent = cw_jgiven(arg[1]) ? indentation(r, arg[1], cw_jtaint(r, v)) : NULL,
    };
    if (cw_jgiven(arg[2])) {
        struct cw_jval both = cw_jcollect(r, arg[2]);
        if (both.list->n != 2) {
            cw_jfailr(r, "ValueError: 'separators' must be two strings");
        }
        style.item_separator = cw_jas_str(r, both.list->items[0], "a separator");
        style.key_separator = cw_jas_str(r, both.list->items[1], "a separator");
    }
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    cw_jjson(r, &b, v, &style, 0);
    return cw_jbuilt(&b);
}

const struct cw_jbuiltin cw_jtext_filters[] = {
    {"upper", "", filter_upper},
    {"lower", "", filter_lower},
    {"capitalize", "", filter_capitalize},
    {"title", "", filter_title},
    {"trim", "chars?", filter_trim},
    {"replace", "old new count?", filter_replace},
    {"string", "", filter_string},
    {"escape", "", filter_escape},
    {"e", "", filter_escape},
    {"forceescape", "", filter_forceescape},
    {"safe", "", filter_safe},
    {"center", "width?", filter_center},
    {"format", "*", filter_format},
    {"wordcount", "", filter_wordcount},
    {"indent", "width? first? blank?", filter_indent},
    {"truncate", "length? killwords? end? leeway?", filter_truncate},
    {"tojson", "ensure_ascii? indent? separators? sort_keys?", filter_tojson},
    {"filesizeformat", NULL, NULL},
    {"pprint", NULL, NULL},
    {"striptags", NULL, NULL},
    {"urlencode", NULL, NULL},
    {"urlize", NULL, NULL},
    {"wordwrap", NULL, NULL},
    {"xmlattr", NULL, NULL},
    {NULL, NULL, NULL},
};
