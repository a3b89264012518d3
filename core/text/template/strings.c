/* SPDX-License-Identifier: MIT
 *
 * Operations on strings that filters and methods share (builtins.h). What is changed keeps the
 * origin of what it was; what is added has that of what was asked to be added, or, where the engine
 * itself adds it, that of the string it is added to.
 */
#include <string.h>

#include "builtins.h"
#include "unicode.h"

/* ------------------------------------------------------------------ upper and lower case */

/* Does the sigma at byte i of s[begin, end) end a word? It then has a form of its own. */
static bool is_final_sigma(const struct cw_jstr *s, size_t begin, size_t end, size_t i) {
    uint32_t cp = 0;
    size_t k = i;
    bool cased = false;
    while (k > begin && !cased) {
        k = cw_jstr_before(s, k);
        cw_jstr_decode(s, k, &cp);
        if (!cw_jchar_is_case_ignorable(cp)) {
            cased = cw_jchar_is_cased(cp);
            break;
        }
    }
    if (!cased) {
        return false;
    }
    for (k = i + cw_jstr_decode(s, i, &cp); k < end;) {
        k += cw_jstr_decode(s, k, &cp);
        if (!cw_jchar_is_case_ignorable(cp)) {
            return !cw_jchar_is_cased(cp);
        }
    }
    return true;
}

/* Append s[begin, end) in the given case. */
static void put_case(struct cw_jbuild *b, const struct cw_jstr *s, size_t begin, size_t end,
                     enum cw_jcase to) {
    bool after_cased = false; /* the character before is a letter with case */
    for (size_t i = begin; i < end;) {
        uint32_t cp, out[CW_JCASE_MAX];
        size_t n = cw_jstr_decode(s, i, &cp), n_out;
        enum cw_jcase how = to;
        if (to == CW_JTITLE) {
            how = after_cased ? CW_JLOWER : CW_JTITLE;
            after_cased = cw_jchar_is_cased(cp);
        } else if (to == CW_JCAPITALIZE) {
            how = i == begin ? CW_JTITLE : CW_JLOWER;
        } else if (to == CW_JSWAP) {
            how = cw_jchar_is_upper(cp) ? CW_JLOWER : CW_JUPPER;
        }
        if (how == CW_JLOWER) {
            n_out = cw_jchar_lower(cp, out);
            if (cp == 0x3a3 && is_final_sigma(s, begin, end, i)) {
                out[0] = 0x3c2;
            }
        } else if (how == CW_JTITLE) {
            n_out = cw_jchar_title(cp, out);
        } else if (to == CW_JSWAP && !cw_jchar_is_lower(cp)) {
            out[0] = cp;
            n_out = 1;
        } else {
            n_out = cw_jchar_upper(cp, out);
        }
        int32_t origin = cw_jstr_origin(s, i);
        for (size_t k = 0; k < n_out; k++) {
            cw_jbuild_char(b, out[k], origin);
        }
        i += n;
    }
}

struct cw_jval cw_jcase(struct cw_jrender *r, const struct cw_jstr *s, enum cw_jcase to) {
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    cw_jcharge(r, s->len);
    put_case(&b, s, 0, s->len, to);
    return cw_jbuilt(&b);
}

static bool begins_word(uint32_t cp) {
    return cw_jchar_is_space(cp) || (cp < 0x80 && cp != 0 && strchr("-({[<", (char)cp) != NULL);
}

struct cw_jval cw_jtitle_words(struct cw_jrender *r, const struct cw_jstr *s) {
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    cw_jcharge(r, s->len);
    for (size_t i = 0; i < s->len;) {
        uint32_t cp;
        size_t first = cw_jstr_decode(s, i, &cp), end = i + first;
        if (begins_word(cp)) {
            cw_jbuild_slice(&b, s, i, end);
            i = end;
            continue;
        }
        for (size_t n; end < s->len; end += n) {
            n = cw_jstr_decode(s, end, &cp);
            if (begins_word(cp)) {
                break;
            }
        }
        put_case(&b, s, i, i + first, CW_JUPPER);
        put_case(&b, s, i + first, end, CW_JLOWER);
        i = end;
    }
    return cw_jbuilt(&b);
}

/* ------------------------------------------------------------------ ends and pieces */

static bool strippable(uint32_t cp, const struct cw_jstr *chars) {
    if (chars == NULL) {
        return cw_jchar_is_space(cp);
    }
    uint32_t one;
    for (size_t i = 0; i < chars->len;) {
        i += cw_jstr_decode(chars, i, &one);
        if (one == cp) {
            return true;
        }
    }
    return false;
}

struct cw_jval cw_jstrip(struct cw_jrender *r, const struct cw_jstr *s, const struct cw_jstr *chars,
                         int sides) {
    size_t begin = 0, end = s->len;
    uint32_t cp;
    uint64_t cost = chars != NULL ? chars->len / 4 + 1 : 1;
    while ((sides & CW_JSTRIP_LEFT) != 0 && begin < end) {
        size_t n = cw_jstr_decode(s, begin, &cp);
        if (!strippable(cp, chars)) {
            break;
        }
        begin += n;
        cw_jcharge(r, cost);
    }
    while ((sides & CW_JSTRIP_RIGHT) != 0 && end > begin) {
        size_t last = cw_jstr_before(s, end);
        cw_jstr_decode(s, last, &cp);
        if (!strippable(cp, chars)) {
            break;
        }
        end = last;
        cw_jcharge(r, cost);
    }
    return cw_jstring(cw_jstr_slice(&r->arena, s, begin, end));
}

struct cw_jval cw_jreplace(struct cw_jrender *r, const struct cw_jstr *s, const struct cw_jstr *old,
                           const struct cw_jstr *fresh, int64_t max) {
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    size_t from = 0;
    cw_jcharge_bytes(r, s->len);
    for (int64_t n = 0; max < 0 || n < max; n++) {
        size_t at = from, skip = old->len;
        if (old->len == 0) { /* an empty string stands before each character and at the end */
            uint32_t cp;
            if (n > 0 && from == s->len) {
                break;
            }
            at = n == 0 ? 0 : from + cw_jstr_decode(s, from, &cp);
        } else {
            ptrdiff_t hit = cw_jstr_find(s, old, from, s->len);
            if (hit < 0) {
                break;
            }
            at = (size_t)hit;
        }
        cw_jcharge(r, 1);
        cw_jbuild_slice(&b, s, from, at);
        cw_jbuild_str(&b, fresh);
        from = at + skip;
    }
    cw_jbuild_slice(&b, s, from, s->len);
    return cw_jbuilt(&b);
}

struct cw_jval cw_jsplitlines(struct cw_jrender *r, const struct cw_jstr *s, bool keep_ends) {
    struct cw_jfill lines = {0};
    size_t begin = 0;
    cw_jcharge_chars(r, s->len);
    for (size_t i = 0; i < s->len;) {
        uint32_t cp;
        size_t n = cw_jstr_decode(s, i, &cp);
        if (!cw_jchar_is_line_end(cp)) {
            i += n;
            continue;
        }
        if (cp == '\r' && i + 1 < s->len && s->data[i + 1] == '\n') {
            n = 2;
        }
        size_t end = keep_ends ? i + n : i;
        cw_jcharge(r, 1);
        cw_jfill_add(r, &lines, cw_jstring(cw_jstr_slice(&r->arena, s, begin, end)));
        i += n;
        begin = i;
    }
    if (begin < s->len) {
        cw_jfill_add(r, &lines, cw_jstring(cw_jstr_slice(&r->arena, s, begin, s->len)));
    }
    return cw_jfill_end(r, &lines, CW_J_LIST);
}

/* ------------------------------------------------------------------ what is put around */

struct cw_jval cw_jescape(struct cw_jrender *r, const struct cw_jstr *s) {
    if (s->markup) {
        return cw_jstring(s);
    }
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    size_t from = 0;
    cw_jcharge_chars(r, s->len);
    for (size_t i = 0; i < s->len; i++) {
        char c = s->data[i];
        const char *entity = c == '&'    ? "&amp;"
                             : c == '<'  ? "&lt;"
                             : c == '>'  ? "&gt;"
                             : c == '"'  ? "&#34;"
                             : c == '\'' ? "&#39;"
                                         : NULL;
        if (entity != NULL) {
            cw_jbuild_slice(&b, s, from, i);
            cw_jbuild_puts(&b, entity, cw_jstr_origin(s, i));
            from = i + 1;
        }
    }
    cw_jbuild_slice(&b, s, from, s->len);
    struct cw_jstr *out = cw_jbuild_end(&b);
    out->markup = true;
    return cw_jstring(out);
}

void cw_jpad(struct cw_jbuild *b, size_t n, char c, int32_t origin) {
    char block[64];
    memset(block, c, sizeof block);
    for (; n > 0;) {
        size_t now = n < sizeof block ? n : sizeof block;
        cw_jbuild_add(b, block, now, origin);
        n -= now;
    }
}

struct cw_jval cw_jcenter(struct cw_jrender *r, const struct cw_jstr *s, int64_t width,
                          const struct cw_jstr *fill) {
    int64_t pad = width - (int64_t)cw_jcount_chars(r, s);
    if (pad <= 0) {
        return cw_jstring(s);
    }
    if ((uint64_t)pad > r->limits.value_bytes) {
        cw_jfailr(r, "a width of %lld is too large", (long long)width);
    }
    int64_t left = pad / 2 + (pad & width & 1); /* where Python puts the odd one */
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    cw_jcharge(r, (uint64_t)pad);
    for (int64_t i = 0; i < pad; i++) {
        if (i == left) {
            cw_jbuild_str(&b, s);
        }
        if (fill != NULL) {
            cw_jbuild_str(&b, fill);
        } else {
            cw_jpad(&b, 1, ' ', cw_jstr_taint(s));
        }
    }
    if (left == pad) {
        cw_jbuild_str(&b, s);
    }
    return cw_jbuilt(&b);
}
