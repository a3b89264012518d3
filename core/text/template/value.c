/* SPDX-License-Identifier: MIT
 * Values: making them, asking them, comparing and walking them (value.h). */
#include "value.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "eval.h"

void cw_jcharge(struct cw_jrender *r, uint64_t n) {
    if (n > r->limits.steps - r->steps) {
        cw_jfailr(r, "the template takes more than %llu steps",
                  (unsigned long long)r->limits.steps);
    }
    r->steps += n;
}

void cw_jcharge_bytes(struct cw_jrender *r, size_t bytes) {
    cw_jcharge(r, bytes / 64 + 1);
}

void cw_jcharge_chars(struct cw_jrender *r, size_t bytes) {
    cw_jcharge(r, bytes / 4 + 1);
}

void cw_jenter(struct cw_jrender *r) {
    if (++r->depth > r->limits.depth) {
        cw_jfailr(r, "evaluation is nested deeper than %d levels", r->limits.depth);
    }
}

void cw_jleave(struct cw_jrender *r) {
    r->depth--;
}

/* ------------------------------------------------------------------ making values */

struct cw_jval cw_jtext(struct cw_jrender *r, const char *data, size_t len) {
    return cw_jstring(cw_jstr_new(&r->arena, data, len, &cw_jtemplate_run));
}

struct cw_jval cw_jliteral(struct cw_jrender *r, const char *s) {
    return cw_jtext(r, s, strlen(s));
}

struct cw_jval cw_jbuilt(struct cw_jbuild *b) {
    return cw_jstring(cw_jbuild_end(b));
}

struct cw_jval cw_jundefined(struct cw_jrender *r, const char *fmt, ...) {
    char text[256];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    char *why = cw_jalloc(&r->arena, len + 1);
    memcpy(why, text, len);
    why[len] = '\0';
    return (struct cw_jval){.kind = CW_J_UNDEFINED, .why = why};
}

struct cw_jval cw_jseq(struct cw_jrender *r, enum cw_jkind kind, size_t n) {
    struct cw_jlist *list = cw_jalloc(&r->arena, sizeof *list);
    *list = (struct cw_jlist){.items = cw_jalloc_array(&r->arena, n, sizeof *list->items), .n = n};
    return (struct cw_jval){.kind = kind, .list = list};
}

struct cw_jval cw_jdict(struct cw_jrender *r, enum cw_jkind kind) {
    struct cw_jdict *d = cw_jalloc(&r->arena, sizeof *d);
    *d = (struct cw_jdict){0};
    return (struct cw_jval){.kind = kind, .dict = d};
}

void cw_jneed_hashable(struct cw_jrender *r, struct cw_jval key) {
    switch (key.kind) {
    case CW_J_LIST:
    case CW_J_DICT:
    case CW_J_VIEW:
        cw_jfailr(r, "TypeError: unhashable type: '%s'", cw_jtype_name(key));
    case CW_J_TUPLE:
        cw_jenter(r);
        cw_jcharge(r, key.list->n);
        for (size_t i = 0; i < key.list->n; i++) {
            cw_jneed_hashable(r, key.list->items[i]);
        }
        cw_jleave(r);
        break;
    default:
        break;
    }
}

bool cw_jsame_text(struct cw_jrender *r, const struct cw_jstr *a, const struct cw_jstr *b) {
    if (a->len != b->len) {
        return false;
    }
    cw_jcharge_bytes(r, a->len);
    return cw_jstr_equal(a, b);
}

/* Dictionaries of templates are small: a list of pairs is searched in order, and pays for it. */
static struct cw_jpair *find_pair(struct cw_jrender *r, const struct cw_jdict *d,
                                  struct cw_jval key) {
    size_t i = 0;
    for (; i < d->n; i++) {
        struct cw_jval one = d->pairs[i].key;
        bool strings = key.kind == CW_J_STRING && one.kind == CW_J_STRING;
        if (strings ? cw_jsame_text(r, key.s, one.s) : cw_jequal(r, one, key)) {
            break;
        }
    }
    cw_jcharge(r, i / 4);
    return i < d->n ? &d->pairs[i] : NULL;
}

void cw_jdict_set(struct cw_jrender *r, struct cw_jdict *d, struct cw_jval key,
                  struct cw_jval value) {
    cw_jneed_hashable(r, key);
    struct cw_jpair *p = find_pair(r, d, key);
    if (p != NULL) {
        p->value = value;
        return;
    }
    if (d->n == d->cap) {
        size_t cap = d->cap == 0 ? 4 : d->cap * 2;
        d->pairs = cw_jgrow(&r->arena, d->pairs, d->cap * sizeof *d->pairs, cap * sizeof *d->pairs);
        d->cap = cap;
    }
    d->pairs[d->n++] = (struct cw_jpair){key, value};
}

const struct cw_jval *cw_jdict_get(struct cw_jrender *r, const struct cw_jdict *d,
                                   struct cw_jval key) {
    cw_jneed_hashable(r, key);
    struct cw_jpair *p = find_pair(r, d, key);
    return p != NULL ? &p->value : NULL;
}

const struct cw_jval *cw_jdict_find(struct cw_jrender *r, const struct cw_jdict *d,
                                    const struct cw_jstr *key) {
    struct cw_jpair *p = find_pair(r, d, cw_jstring(key));
    return p != NULL ? &p->value : NULL;
}

void cw_jfill_add(struct cw_jrender *r, struct cw_jfill *f, struct cw_jval v) {
    if (f->n == f->cap) {
        size_t cap = f->cap == 0 ? 8 : f->cap * 2;
        f->items = cw_jgrow(&r->arena, f->items, f->cap * sizeof *f->items, cap * sizeof *f->items);
        f->cap = cap;
    }
    f->items[f->n++] = v;
}

struct cw_jval cw_jfill_end(struct cw_jrender *r, struct cw_jfill *f, enum cw_jkind kind) {
    struct cw_jval v = cw_jseq(r, kind, 0);
    v.list->items = f->items;
    v.list->n = f->n;
    v.list->name = "generator";
    return v;
}

/* ------------------------------------------------------------------ asking values */

const char *cw_jtype_name(struct cw_jval v) {
    switch (v.kind) {
    case CW_J_UNDEFINED:
        return "Undefined";
    case CW_J_NONE:
        return "NoneType";
    case CW_J_BOOL:
        return "bool";
    case CW_J_INT:
        return "int";
    case CW_J_FLOAT:
        return "float";
    case CW_J_STRING:
        return v.s->markup ? "Markup" : "str";
    case CW_J_LIST:
        return "list";
    case CW_J_TUPLE:
        return "tuple";
    case CW_J_DICT:
        return "dict";
    case CW_J_VIEW:
    case CW_J_ITERATOR:
        return v.list->name;
    case CW_J_RANGE:
        return "range";
    case CW_J_NAMESPACE:
        return "Namespace";
    case CW_J_MACRO:
        return "Macro";
    case CW_J_FUNCTION:
        return "function";
    case CW_J_METHOD:
        return "builtin_function_or_method";
    case CW_J_LOOP:
        return "LoopContext";
    case CW_J_CYCLER:
        return "Cycler";
    case CW_J_JOINER:
        return "Joiner";
    case CW_J_ABSENT:
        break;
    }
    return "nothing";
}

bool cw_jtruth(struct cw_jrender *r, struct cw_jval v) {
    switch (v.kind) {
    case CW_J_ABSENT:
    case CW_J_UNDEFINED:
    case CW_J_NONE:
        return false;
    case CW_J_BOOL:
        return v.b;
    case CW_J_INT:
        return v.i != 0;
    case CW_J_FLOAT:
        return v.f != 0;
    case CW_J_STRING:
        return v.s->len != 0;
    case CW_J_LIST:
    case CW_J_TUPLE:
    case CW_J_VIEW:
        return v.list->n != 0;
    case CW_J_DICT:
        return v.dict->n != 0;
    case CW_J_RANGE:
        return v.range->n != 0;
    case CW_J_LOOP:
        return cw_jlen(r, v) != 0;
    default:
        return true;
    }
}

size_t cw_jcount_chars(struct cw_jrender *r, const struct cw_jstr *s) {
    cw_jcharge_chars(r, s->len);
    return cw_jstr_chars(s);
}

int64_t cw_jlen(struct cw_jrender *r, struct cw_jval v) {
    switch (v.kind) {
    case CW_J_UNDEFINED:
        return 0;
    case CW_J_STRING:
        return (int64_t)cw_jcount_chars(r, v.s);
    case CW_J_LIST:
    case CW_J_TUPLE:
    case CW_J_VIEW:
        return (int64_t)v.list->n;
    case CW_J_DICT:
        return (int64_t)v.dict->n;
    case CW_J_RANGE:
        return v.range->n;
    case CW_J_LOOP:
        return cw_jloop_length(r, v.loop);
    default:
        return -1;
    }
}

bool cw_jis_number(struct cw_jval v) {
    return v.kind == CW_J_BOOL || v.kind == CW_J_INT || v.kind == CW_J_FLOAT;
}

double cw_jas_double(struct cw_jval v) {
    return v.kind == CW_J_FLOAT ? v.f : v.kind == CW_J_INT ? (double)v.i : (double)v.b;
}

int64_t cw_jas_int(struct cw_jrender *r, struct cw_jval v, const char *what) {
    cw_jneed_defined(r, v);
    if (v.kind != CW_J_INT && v.kind != CW_J_BOOL) {
        cw_jfailr(r, "TypeError: %s must be an integer, not '%s'", what, cw_jtype_name(v));
    }
    return cw_jwhole(v);
}

bool cw_jas_flag(struct cw_jrender *r, struct cw_jval v, const char *what) {
    return v.kind != CW_J_ABSENT && cw_jas_int(r, v, what) != 0;
}

const struct cw_jstr *cw_jas_str(struct cw_jrender *r, struct cw_jval v, const char *what) {
    cw_jneed_defined(r, v);
    if (v.kind != CW_J_STRING) {
        cw_jfailr(r, "TypeError: %s must be a string, not '%s'", what, cw_jtype_name(v));
    }
    return v.s;
}

void cw_jneed_defined(struct cw_jrender *r, struct cw_jval v) {
    if (v.kind == CW_J_UNDEFINED) {
        cw_jfailr(r, "%s", v.why);
    }
}

/* Exact for any pair: an int against a float is decided without rounding the int. */
static int compare_numbers(struct cw_jval a, struct cw_jval b, bool *unordered) {
    *unordered = false;
    if (a.kind != CW_J_FLOAT && b.kind != CW_J_FLOAT) {
        return (cw_jwhole(a) > cw_jwhole(b)) - (cw_jwhole(a) < cw_jwhole(b));
    }
    if (a.kind == CW_J_FLOAT && b.kind == CW_J_FLOAT) {
        *unordered = a.f != a.f || b.f != b.f;
        return (a.f > b.f) - (a.f < b.f);
    }
    bool swapped = a.kind != CW_J_FLOAT;
    double f = swapped ? b.f : a.f;
    int64_t i = swapped ? cw_jwhole(a) : cw_jwhole(b);
    int order;
    if (f != f) {
        *unordered = true;
        return 0;
    } else if (f >= 0x1p63) {
        order = 1;
    } else if (f < -0x1p63) {
        order = -1;
    } else {
        int64_t t = (int64_t)f; /* towards zero */
        double rest = f - (double)t;
        order = t != i ? (t > i) - (t < i) : (rest > 0) - (rest < 0);
    }
    return swapped ? -order : order;
}

static bool equal_sequences(struct cw_jrender *r, const struct cw_jlist *a,
                            const struct cw_jlist *b) {
    if (a->n != b->n) {
        return false;
    }
    bool same = true;
    cw_jenter(r);
    for (size_t i = 0; same && i < a->n; i++) {
        same = cw_jequal(r, a->items[i], b->items[i]);
    }
    cw_jleave(r);
    return same;
}

static bool equal_dicts(struct cw_jrender *r, const struct cw_jdict *a, const struct cw_jdict *b) {
    if (a->n != b->n) {
        return false;
    }
    bool same = true;
    cw_jenter(r);
    for (size_t i = 0; same && i < a->n; i++) {
        const struct cw_jpair *p = find_pair(r, b, a->pairs[i].key);
        same = p != NULL && cw_jequal(r, a->pairs[i].value, p->value);
    }
    cw_jleave(r);
    return same;
}

static bool equal_ranges(const struct cw_jrange *a, const struct cw_jrange *b) {
    return a->n == b->n && (a->n == 0 || a->start == b->start) && (a->n < 2 || a->step == b->step);
}

bool cw_jequal(struct cw_jrender *r, struct cw_jval a, struct cw_jval b) {
    cw_jcharge(r, 1);
    if (cw_jis_number(a) && cw_jis_number(b)) {
        bool unordered;
        return compare_numbers(a, b, &unordered) == 0 && !unordered;
    }
    if (a.kind != b.kind) {
        return false;
    }
    switch (a.kind) {
    case CW_J_UNDEFINED:
    case CW_J_NONE:
        return true;
    case CW_J_STRING:
        cw_jcharge_bytes(r, a.s->len);
        return cw_jstr_equal(a.s, b.s);
    case CW_J_LIST:
    case CW_J_TUPLE:
        return a.list == b.list || equal_sequences(r, a.list, b.list);
    case CW_J_DICT:
        return a.dict == b.dict || equal_dicts(r, a.dict, b.dict);
    case CW_J_VIEW:
        if (a.list != b.list) {
            cw_jfailr(r, "comparison of %s is not supported", cw_jtype_name(a));
        }
        return true;
    case CW_J_RANGE:
        return equal_ranges(a.range, b.range);
    case CW_J_METHOD:
        return a.method->builtin == b.method->builtin &&
               cw_jequal(r, a.method->self, b.method->self);
    default: /* what has no value of its own is equal to itself only */
        return a.loop == b.loop;
    }
}

static int order_sequences(struct cw_jrender *r, const char *op, const struct cw_jlist *a,
                           const struct cw_jlist *b) {
    size_t n = a->n < b->n ? a->n : b->n;
    cw_jenter(r);
    int order = (a->n > b->n) - (a->n < b->n);
    for (size_t i = 0; i < n; i++) {
        if (!cw_jequal(r, a->items[i], b->items[i])) {
            order = cw_jorder(r, op, a->items[i], b->items[i]);
            break;
        }
    }
    cw_jleave(r);
    return order;
}

int cw_jorder(struct cw_jrender *r, const char *op, struct cw_jval a, struct cw_jval b) {
    cw_jcharge(r, 1);
    cw_jneed_defined(r, a);
    cw_jneed_defined(r, b);
    if (cw_jis_number(a) && cw_jis_number(b)) {
        bool unordered;
        int order = compare_numbers(a, b, &unordered);
        if (unordered) {
            cw_jfailr(r, "ordering of nan is not supported");
        }
        return order;
    }
    if (a.kind == b.kind) {
        switch (a.kind) {
        case CW_J_STRING:
            cw_jcharge_bytes(r, a.s->len);
            return cw_jstr_compare(a.s, b.s);
        case CW_J_LIST:
        case CW_J_TUPLE:
            return order_sequences(r, op, a.list, b.list);
        default:
            break;
        }
    }
    cw_jfailr(r, "TypeError: '%s' not supported between instances of '%s' and '%s'", op,
              cw_jtype_name(a), cw_jtype_name(b));
}

bool cw_jcontains(struct cw_jrender *r, struct cw_jval container, struct cw_jval item) {
    switch (container.kind) {
    case CW_J_STRING:
        cw_jneed_defined(r, item);
        if (item.kind != CW_J_STRING) {
            cw_jfailr(r, "TypeError: 'in <string>' requires string as left operand, not %s",
                      cw_jtype_name(item));
        }
        cw_jcharge_bytes(r, container.s->len);
        return cw_jstr_find(container.s, item.s, 0, container.s->len) >= 0;
    case CW_J_DICT:
        return cw_jdict_get(r, container.dict, item) != NULL;
    case CW_J_UNDEFINED:
        return false;
    case CW_J_VIEW:
        if (container.list->name == cw_jdict_keys) {
            cw_jneed_hashable(r, item);
        }
        break;
    default:
        break;
    }
    struct cw_jcursor c = cw_jwalk(r, container);
    struct cw_jval v;
    while (cw_jstep(r, &c, &v)) {
        if (cw_jequal(r, v, item)) {
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------ walking values */

bool cw_jiterable(struct cw_jval v) {
    switch (v.kind) {
    case CW_J_UNDEFINED:
    case CW_J_STRING:
    case CW_J_LIST:
    case CW_J_TUPLE:
    case CW_J_DICT:
    case CW_J_VIEW:
    case CW_J_RANGE:
    case CW_J_ITERATOR:
    case CW_J_LOOP:
        return true;
    default:
        return false;
    }
}

struct cw_jcursor cw_jwalk(struct cw_jrender *r, struct cw_jval v) {
    if (!cw_jiterable(v)) {
        cw_jfailr(r, "TypeError: '%s' object is not iterable", cw_jtype_name(v));
    }
    if (v.kind == CW_J_LOOP) {
        cw_jfailr(r, "iteration over 'loop' itself is not supported");
    }
    return (struct cw_jcursor){v, 0};
}

bool cw_jstep(struct cw_jrender *r, struct cw_jcursor *c, struct cw_jval *item) {
    struct cw_jval v = c->v;
    cw_jcharge(r, 1);
    switch (v.kind) {
    case CW_J_STRING: {
        if (c->at >= v.s->len) {
            return false;
        }
        uint32_t cp;
        size_t n = cw_jstr_decode(v.s, c->at, &cp);
        *item = cw_jstring(cw_jstr_slice(&r->arena, v.s, c->at, c->at + n));
        c->at += n;
        return true;
    }
    case CW_J_LIST:
    case CW_J_TUPLE:
    case CW_J_VIEW:
        if (c->at >= v.list->n) {
            return false;
        }
        *item = v.list->items[c->at++];
        return true;
    case CW_J_ITERATOR:
        if (v.list->next >= v.list->n) {
            return false;
        }
        *item = v.list->items[v.list->next++];
        return true;
    case CW_J_DICT:
        if (c->at >= v.dict->n) {
            return false;
        }
        *item = v.dict->pairs[c->at++].key;
        return true;
    case CW_J_RANGE:
        if ((int64_t)c->at >= v.range->n) {
            return false;
        }
        *item = cw_jint(v.range->start + v.range->step * (int64_t)c->at++);
        return true;
    default:
        return false;
    }
}

struct cw_jval cw_jcollect(struct cw_jrender *r, struct cw_jval v) {
    struct cw_jfill fill = {0};
    struct cw_jcursor c = cw_jwalk(r, v);
    struct cw_jval item;
    while (cw_jstep(r, &c, &item)) {
        cw_jfill_add(r, &fill, item);
    }
    return cw_jfill_end(r, &fill, CW_J_LIST);
}
