/* SPDX-License-Identifier: MIT
 * Functions that every template can call (builtins.h). */
#include <string.h>
#include <time.h>

#include "builtins.h"

CW_JBUILTIN(call_range) {
    int64_t part[3] = {0, 0, 1};
    if (all->n_pos < 1 || all->n_pos > 3 || all->n_kw > 0) {
        cw_jfailr(r, "TypeError: range() takes one to three arguments");
    }
    for (size_t i = 0; i < all->n_pos; i++) {
        part[i] = cw_jas_int(r, all->pos[i], "an argument of range()");
    }
    if (all->n_pos == 1) {
        part[1] = part[0];
        part[0] = 0;
    }
    if (part[2] == 0) {
        cw_jfailr(r, "ValueError: range() with a step of zero");
    }
    bool up = part[2] > 0, empty = up ? part[0] >= part[1] : part[0] <= part[1];
    uint64_t n = 0;
    if (!empty) {
        uint64_t span =
            up ? (uint64_t)part[1] - (uint64_t)part[0] : (uint64_t)part[0] - (uint64_t)part[1];
        uint64_t step = up ? (uint64_t)part[2] : -(uint64_t)part[2];
        n = (span - 1) / step + 1;
    }
    if (n > (uint64_t)r->limits.range) {
        cw_jfailr(r, "a range of more than %lld items is too large", (long long)r->limits.range);
    }
    struct cw_jrange *range = cw_jalloc(&r->arena, sizeof *range);
    *range = (struct cw_jrange){part[0], part[1], part[2], (int64_t)n};
    return (struct cw_jval){.kind = CW_J_RANGE, .range = range};
}

/* dict(...) and namespace(...): a mapping or pairs, then keywords. */
static struct cw_jval make_dict(struct cw_jrender *r, const struct cw_jargs *all,
                                enum cw_jkind kind) {
    struct cw_jval d = cw_jdict(r, kind);
    if (all->n_pos > 1) {
        cw_jfailr(r, "TypeError: dict() takes at most one positional argument");
    }
    if (all->n_pos == 1) {
        cw_jneed_defined(r, all->pos[0]);
    }
    if (all->n_pos == 1 && all->pos[0].kind == CW_J_DICT) {
        const struct cw_jdict *from = all->pos[0].dict;
        for (size_t i = 0; i < from->n; i++) {
            cw_jdict_set(r, d.dict, from->pairs[i].key, from->pairs[i].value);
        }
    } else if (all->n_pos == 1) {
        struct cw_jcursor c = cw_jwalk(r, all->pos[0]);
        struct cw_jval item;
        while (cw_jstep(r, &c, &item)) {
            struct cw_jval pair = cw_jcollect(r, item);
            if (pair.list->n != 2) {
                cw_jfailr(r, "ValueError: dict() needs pairs");
            }
            cw_jdict_set(r, d.dict, pair.list->items[0], pair.list->items[1]);
        }
    }
    for (size_t i = 0; i < all->n_kw; i++) {
        cw_jdict_set(r, d.dict, cw_jstring(all->kw[i].name), all->kw[i].value);
    }
    return d;
}

CW_JBUILTIN(call_dict) {
    return make_dict(r, all, CW_J_DICT);
}

CW_JBUILTIN(call_namespace) {
    return make_dict(r, all, CW_J_NAMESPACE);
}

CW_JBUILTIN(call_raise) {
    const struct cw_jstr *s = cw_jstr_of(r, arg[0]);
    r->refused = true;
    r->guard.code = cw_fail(r->guard.err, CW_ETEMPLATE, "template: %.*s",
                            s->len < 600 ? (int)s->len : 600, s->data);
    longjmp(r->guard.escape, 1);
}

/* The clock as the application gave it, by the rules of Python's naive datetime: no time zone and
 * no microseconds. Names of days and months are English, since a render runs in the C locale. */
CW_JBUILTIN(call_strftime) {
    const struct cw_jstr *s = cw_jas_str(r, arg[0], "the format of strftime_now()");
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    struct tm now = r->in->now;
    int32_t taint = cw_jstr_taint(s);
    for (size_t i = 0; i < s->len;) {
        if (s->data[i] != '%' || i + 1 == s->len) {
            cw_jbuild_slice(&b, s, i, i + 1);
            i++;
            continue;
        }
        size_t end = i + 1; /* flags, width and modifiers, then the letter */
        while (end + 1 < s->len && end - i < 8 &&
               strchr("-_0^#123456789EO", s->data[end]) != NULL) {
            end++;
        }
        char spec[12] = "", text[256];
        size_t n = ++end - i;
        memcpy(spec, s->data + i, n);
        spec[n] = ' '; /* so that no result at all can be told from one that does not fit */
        spec[n + 1] = '\0';
        char letter = s->data[end - 1];
        if (letter == 'f') {
            cw_jbuild_puts(&b, "000000", taint);
        } else if (letter != 'z' && letter != 'Z') {
            size_t written = strftime(text, sizeof text, spec, &now);
            if (written == 0) {
                cw_jfailr(r, "this format of strftime_now() is not supported");
            }
            cw_jbuild_add(&b, text, written - 1, taint);
        }
        cw_jcharge(r, 1);
        i = end;
    }
    return cw_jbuilt(&b);
}

static struct cw_jval make_cycler(struct cw_jrender *r, enum cw_jkind kind, size_t n) {
    struct cw_jcycler *c = cw_jalloc(&r->arena, sizeof *c);
    *c = (struct cw_jcycler){.items = cw_jalloc_array(&r->arena, n, sizeof *c->items), .n = n};
    return (struct cw_jval){.kind = kind, .cycler = c};
}

CW_JBUILTIN(call_cycler) {
    if (all->n_pos == 0 || all->n_kw > 0) {
        cw_jfailr(r, "cycler() needs at least one item");
    }
    struct cw_jval c = make_cycler(r, CW_J_CYCLER, all->n_pos);
    memcpy(c.cycler->items, all->pos, all->n_pos * sizeof *all->pos);
    return c;
}

CW_JBUILTIN(call_joiner) {
    struct cw_jval j = make_cycler(r, CW_J_JOINER, 1);
    j.cycler->items[0] = arg[0].kind == CW_J_ABSENT ? cw_jliteral(r, ", ") : arg[0];
    return j;
}

static const struct cw_jbuiltin functions[] = {
    {"range", "*", call_range},
    {"dict", "*", call_dict},
    {"namespace", "*", call_namespace},
    {"raise_exception", "message", call_raise},
    {"strftime_now", "format", call_strftime},
    {"cycler", "*", call_cycler},
    {"joiner", "sep?", call_joiner},
    {"lipsum", NULL, NULL},
    {"self", NULL, NULL}, /* of templates that inherit */
    {NULL, NULL, NULL},
};

const struct cw_jbuiltin *cw_jfunction_find(const struct cw_jstr *name) {
    return cw_jtable_find(functions, name);
}
