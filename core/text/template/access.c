/* SPDX-License-Identifier: MIT
 *
 * Parts of values: attributes, items and slices (builtins.h).
 *
 * As in jinja2's immutable sandbox: object.name looks for an attribute (a method, say) first and
 * for an item then, object['name'] the other way round; what would change a list or dict, and
 * names that begin with an underscore, are out of reach; what is not there is undefined.
 */
#include <string.h>

#include "builtins.h"
#include "eval.h"

static const char *object_name(struct cw_jval v) {
    return v.kind == CW_J_NONE ? "None" : cw_jtype_name(v);
}

static struct cw_jval no_attribute(struct cw_jrender *r, struct cw_jval object,
                                   const struct cw_jstr *name) {
    int n = name->len < 60 ? (int)name->len : 60;
    const char *type = object_name(object);
    if (object.kind == CW_J_NONE) {
        return cw_jundefined(r, "'None' has no attribute '%.*s'", n, name->data);
    }
    return cw_jundefined(r, "'%s object' has no attribute '%.*s'", type, n, name->data);
}

/* Would the method change its object? Those are refused, as the reference's sandbox does. */
static bool mutates(struct cw_jval object, const struct cw_jstr *name) {
    static const char *const of_list[] = {"append", "clear",  "pop",    "reverse", "insert",
                                          "sort",   "extend", "remove", NULL};
    static const char *const of_dict[] = {"clear", "pop", "popitem", "setdefault", "update", NULL};
    const char *const *names = object.kind == CW_J_LIST   ? of_list
                               : object.kind == CW_J_DICT ? of_dict
                                                          : NULL;
    for (; names != NULL && *names != NULL; names++) {
        if (cw_jstr_is(name, *names)) {
            return true;
        }
    }
    return false;
}

/* The attribute in the sense of Python, without items. False: there is none. */
static bool find_attribute(struct cw_jrender *r, struct cw_jval object, const struct cw_jstr *name,
                           struct cw_jval *out) {
    if (name->len > 0 && name->data[0] == '_') {
        return false; /* private names are out of reach, whether they exist or not */
    }
    if (object.kind == CW_J_NAMESPACE) {
        const struct cw_jval *v = cw_jdict_find(r, object.dict, name);
        if (v != NULL) {
            *out = *v;
            return true;
        }
    }
    if (mutates(object, name)) {
        *out = cw_jundefined(r, "access to attribute '%.*s' of '%s' object is unsafe",
                             (int)name->len, name->data, cw_jtype_name(object));
        return true;
    }
    if (object.kind == CW_J_TUPLE && object.list->name != NULL) { /* a group of groupby */
        bool grouper = cw_jstr_is(name, "grouper");
        if (grouper || cw_jstr_is(name, "list")) {
            *out = object.list->items[grouper ? 0 : 1];
            return true;
        }
    }
    if (object.kind == CW_J_LOOP && cw_jloop_attribute(r, object.loop, name, out)) {
        return true;
    }
    const struct cw_jbuiltin *b = cw_jmethod_find(object, name);
    if (b == NULL) {
        return false;
    }
    if (b->params == NULL) {
        cw_jfailr(r, "the attribute '%s' of '%s' objects is not supported", b->name,
                  cw_jtype_name(object));
    }
    if (strcmp(b->params, "@") == 0) { /* a plain attribute, computed at once */
        *out = b->call(r, object, NULL, NULL);
        return true;
    }
    struct cw_jmethod *m = cw_jalloc(&r->arena, sizeof *m);
    *m = (struct cw_jmethod){object, b};
    *out = (struct cw_jval){.kind = CW_J_METHOD, .method = m};
    return true;
}

/* The index of an item of n, counted from the end if negative. False: out of range. */
static bool index_of(struct cw_jval key, size_t n, size_t *index) {
    int64_t i = key.kind == CW_J_BOOL ? key.b : key.i;
    i += i < 0 ? (int64_t)n : 0;
    *index = (size_t)i;
    return i >= 0 && i < (int64_t)n;
}

/* What was cut out of escaped text still is such. */
static struct cw_jval piece(struct cw_jstr *s, const struct cw_jstr *of) {
    s->markup = of->markup;
    return cw_jstring(s);
}

static bool find_item(struct cw_jrender *r, struct cw_jval object, struct cw_jval key,
                      struct cw_jval *out) {
    if (object.kind == CW_J_DICT) {
        /* Python raises TypeError for an unhashable key, which reads as "no such item". */
        if (key.kind == CW_J_LIST || key.kind == CW_J_DICT) {
            return false;
        }
        const struct cw_jval *v = cw_jdict_get(r, object.dict, key);
        if (v != NULL) {
            *out = *v;
        }
        return v != NULL;
    }
    if (key.kind != CW_J_INT && key.kind != CW_J_BOOL) {
        return false;
    }
    size_t i;
    switch (object.kind) {
    case CW_J_LIST:
    case CW_J_TUPLE:
        if (!index_of(key, object.list->n, &i)) {
            return false;
        }
        *out = object.list->items[i];
        return true;
    case CW_J_RANGE:
        if (!index_of(key, (size_t)object.range->n, &i)) {
            return false;
        }
        *out = cw_jint(object.range->start + object.range->step * (int64_t)i);
        return true;
    case CW_J_STRING:
        if (!index_of(key, cw_jcount_chars(r, object.s), &i)) {
            return false;
        }
        size_t begin = cw_jstr_char_at(object.s, i);
        uint32_t cp;
        size_t n = cw_jstr_decode(object.s, begin, &cp);
        *out = piece(cw_jstr_slice(&r->arena, object.s, begin, begin + n), object.s);
        return true;
    default:
        return false;
    }
}

struct cw_jval cw_jgetattr(struct cw_jrender *r, struct cw_jval object,
                           const struct cw_jstr *name) {
    struct cw_jval out;
    cw_jneed_defined(r, object);
    if (find_attribute(r, object, name, &out) ||
        (object.kind == CW_J_DICT && find_item(r, object, cw_jstring(name), &out))) {
        return out;
    }
    return no_attribute(r, object, name);
}

struct cw_jval cw_jattribute(struct cw_jrender *r, struct cw_jval object,
                             const struct cw_jstr *name) {
    struct cw_jval out;
    cw_jneed_defined(r, object);
    return find_attribute(r, object, name, &out) ? out : no_attribute(r, object, name);
}

struct cw_jval cw_jgetitem(struct cw_jrender *r, struct cw_jval object, struct cw_jval key) {
    struct cw_jval out;
    cw_jneed_defined(r, object);
    if (find_item(r, object, key, &out)) {
        return out;
    }
    if (key.kind == CW_J_STRING) {
        return find_attribute(r, object, key.s, &out) ? out : no_attribute(r, object, key.s);
    }
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    cw_jput_repr(r, &b, key);
    return cw_jundefined(r, "%s%s has no element %.*s", object_name(object),
                         object.kind == CW_J_NONE ? "" : " object", b.len < 60 ? (int)b.len : 60,
                         b.len > 0 ? b.data : "");
}

/* ------------------------------------------------------------------ slices */

int64_t cw_jfrom_end(int64_t i, int64_t n) {
    return i >= 0 ? i : i < -n ? 0 : i + n;
}

static int64_t slice_part(struct cw_jrender *r, struct cw_jval v, int64_t n, int64_t lo, int64_t hi,
                          int64_t when_none) {
    if (!cw_jgiven(v)) {
        return when_none;
    }
    int64_t i = cw_jas_int(r, v, "a slice index");
    if (i < 0) {
        i = i < -n ? lo : i + n;
    }
    return i < lo ? lo : i > hi ? hi : i;
}

static struct cw_jval slice_string(struct cw_jrender *r, const struct cw_jstr *s, int64_t start,
                                   int64_t step, int64_t n) {
    size_t chars = cw_jcount_chars(r, s);
    if (step == 1 || n <= 1) {
        size_t begin = cw_jstr_char_at(s, (size_t)start);
        struct cw_jstr *rest = cw_jstr_slice(&r->arena, s, begin, s->len);
        return piece(cw_jstr_slice(&r->arena, rest, 0, cw_jstr_char_at(rest, (size_t)n)), s);
    }
    size_t *at = cw_jalloc_array(&r->arena, chars + 1, sizeof *at); /* where characters begin */
    uint32_t cp;
    size_t i = 0;
    for (size_t k = 0; k < chars; k++) {
        at[k] = i;
        i += cw_jstr_decode(s, i, &cp);
    }
    at[chars] = i;
    cw_jcharge(r, (uint64_t)n);
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    for (int64_t k = 0; k < n; k++) {
        size_t c = (size_t)(start + k * step);
        cw_jbuild_slice(&b, s, at[c], at[c + 1]);
    }
    return piece(cw_jbuild_end(&b), s);
}

static struct cw_jval slice_range(struct cw_jrender *r, const struct cw_jrange *from, int64_t start,
                                  int64_t stop, int64_t step, int64_t n) {
    struct cw_jrange *range = cw_jalloc(&r->arena, sizeof *range);
    range->n = n;
    bool overflow = __builtin_mul_overflow(from->step, step, &range->step);
    overflow |= __builtin_mul_overflow(from->step, start, &range->start);
    overflow |= __builtin_add_overflow(from->start, range->start, &range->start);
    overflow |= __builtin_mul_overflow(from->step, stop, &range->stop);
    overflow |= __builtin_add_overflow(from->start, range->stop, &range->stop);
    if (overflow) {
        cw_jfailr(r, "integers beyond 64 bits are not supported");
    }
    return (struct cw_jval){.kind = CW_J_RANGE, .range = range};
}

struct cw_jval cw_jgetslice(struct cw_jrender *r, struct cw_jval object, struct cw_jval vstart,
                            struct cw_jval vstop, struct cw_jval vstep) {
    cw_jneed_defined(r, object);
    bool is_list = object.kind == CW_J_LIST || object.kind == CW_J_TUPLE;
    if (!is_list && object.kind != CW_J_STRING && object.kind != CW_J_RANGE) {
        cw_jfailr(r, "TypeError: '%s' object cannot be sliced", cw_jtype_name(object));
    }
    int64_t len = is_list                      ? (int64_t)object.list->n
                  : object.kind == CW_J_STRING ? (int64_t)cw_jcount_chars(r, object.s)
                                               : object.range->n;
    int64_t step = 1;
    if (cw_jgiven(vstep)) {
        step = cw_jas_int(r, vstep, "a slice index");
        if (step == 0) {
            cw_jfailr(r, "ValueError: slice step cannot be zero");
        }
        step = step > INT32_MAX ? INT32_MAX : step < -INT32_MAX ? -INT32_MAX : step;
    }
    bool back = step < 0;
    int64_t lo = back ? -1 : 0, hi = back ? len - 1 : len;
    int64_t start = slice_part(r, vstart, len, lo, hi, back ? hi : lo);
    int64_t stop = slice_part(r, vstop, len, lo, hi, back ? lo : hi);
    int64_t n = back ? (start > stop ? (start - stop - 1) / -step + 1 : 0)
                     : (stop > start ? (stop - start - 1) / step + 1 : 0);
    if (object.kind == CW_J_STRING) {
        return slice_string(r, object.s, n > 0 ? start : 0, step, n);
    }
    if (object.kind == CW_J_RANGE) {
        return slice_range(r, object.range, start, stop, step, n);
    }
    struct cw_jval out = cw_jseq(r, object.kind, (size_t)n);
    cw_jcharge(r, (uint64_t)n);
    for (int64_t i = 0; i < n; i++) {
        out.list->items[i] = object.list->items[start + i * step];
    }
    return out;
}
