/* SPDX-License-Identifier: MIT
 * Filters on sequences and mappings (builtins.h). */
#include <string.h>

#include "builtins.h"

/* ------------------------------------------------------------------ attributes of items */

/* The part of item that `path` names: "author.name", "0", or an integer; none: item itself. */
static struct cw_jval part_of(struct cw_jrender *r, struct cw_jval item, struct cw_jval path,
                              struct cw_jval otherwise) {
    if (!cw_jgiven(path)) {
        return item;
    }
    if (path.kind != CW_J_STRING) {
        struct cw_jval v = cw_jgetitem(r, item, path);
        return v.kind == CW_J_UNDEFINED && cw_jgiven(otherwise) ? otherwise : v;
    }
    const struct cw_jstr *s = path.s;
    size_t begin = 0;
    for (size_t i = 0; i <= s->len; i++) {
        if (i < s->len && s->data[i] != '.') {
            continue;
        }
        struct cw_jval key = cw_jstring(cw_jstr_slice(&r->arena, s, begin, i));
        int64_t index = 0;
        bool digits = i > begin && i - begin < 18;
        for (size_t k = begin; digits && k < i; k++) {
            digits = s->data[k] >= '0' && s->data[k] <= '9';
            index = index * 10 + (s->data[k] - '0');
        }
        item = cw_jgetitem(r, item, digits ? cw_jint(index) : key);
        if (item.kind == CW_J_UNDEFINED && cw_jgiven(otherwise)) {
            item = otherwise;
        }
        begin = i + 1;
    }
    return item;
}

static struct cw_jval folded(struct cw_jrender *r, struct cw_jval v, bool case_sensitive) {
    return v.kind == CW_J_STRING && !case_sensitive ? cw_jcase(r, v.s, CW_JLOWER) : v;
}

/* ------------------------------------------------------------------ order */

/* Merge the sorted halves [lo, mid) and [mid, hi); equal keys stay in order. */
static void merge(struct cw_jrender *r, struct cw_jpair *v, struct cw_jpair *tmp, size_t lo,
                  size_t mid, size_t hi, bool reverse) {
    size_t i = lo, k = mid, n = lo;
    while (i < mid && k < hi) {
        int order = cw_jorder(r, "<", v[k].key, v[i].key);
        tmp[n++] = (reverse ? order > 0 : order < 0) ? v[k++] : v[i++];
    }
    while (i < mid) {
        tmp[n++] = v[i++];
    }
    while (k < hi) {
        tmp[n++] = v[k++];
    }
    memcpy(v + lo, tmp + lo, (hi - lo) * sizeof *v);
}

void cw_jsort(struct cw_jrender *r, struct cw_jval *items, struct cw_jval *keys, size_t n,
              bool reverse) {
    struct cw_jpair *v = cw_jalloc_array(&r->arena, n, sizeof *v);
    struct cw_jpair *tmp = cw_jalloc_array(&r->arena, n, sizeof *tmp);
    for (size_t i = 0; i < n; i++) {
        v[i] = (struct cw_jpair){keys[i], items[i]};
    }
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t lo = 0; lo + width < n; lo += 2 * width) {
            merge(r, v, tmp, lo, lo + width, lo + 2 * width < n ? lo + 2 * width : n, reverse);
        }
    }
    for (size_t i = 0; i < n; i++) {
        keys[i] = v[i].key;
        items[i] = v[i].value;
    }
}

/* The sort key of an item: the list of what the path or, "a,b", paths name. A list, because lists
 * of equal items are in order even where the items have none. */
static struct cw_jval sort_key(struct cw_jrender *r, struct cw_jval item, struct cw_jval path,
                               bool case_sensitive) {
    struct cw_jfill keys = {0};
    if (path.kind != CW_J_STRING) {
        cw_jfill_add(r, &keys, folded(r, part_of(r, item, path, cw_jnone()), case_sensitive));
        return cw_jfill_end(r, &keys, CW_J_LIST);
    }
    size_t begin = 0;
    for (size_t i = 0; i <= path.s->len; i++) {
        if (i == path.s->len || path.s->data[i] == ',') {
            struct cw_jval one = cw_jstring(cw_jstr_slice(&r->arena, path.s, begin, i));
            cw_jfill_add(r, &keys, folded(r, part_of(r, item, one, cw_jnone()), case_sensitive));
            begin = i + 1;
        }
    }
    return cw_jfill_end(r, &keys, CW_J_LIST);
}

CW_JBUILTIN(filter_sort) {
    struct cw_jval list = cw_jcollect(r, v);
    size_t n = list.list->n;
    struct cw_jval *keys = cw_jalloc_array(&r->arena, n, sizeof *keys);
    for (size_t i = 0; i < n; i++) {
        keys[i] = sort_key(r, list.list->items[i], arg[2], cw_jtruth(r, arg[1]));
    }
    cw_jsort(r, list.list->items, keys, n, cw_jas_flag(r, arg[0], "'reverse'"));
    return list;
}

static struct cw_jval pair(struct cw_jrender *r, struct cw_jval a, struct cw_jval b) {
    struct cw_jval v = cw_jseq(r, CW_J_TUPLE, 2);
    v.list->items[0] = a;
    v.list->items[1] = b;
    return v;
}

CW_JBUILTIN(filter_dictsort) {
    if (v.kind != CW_J_DICT) {
        cw_jfailr(r, "TypeError: 'dictsort' needs a mapping, not '%s'", cw_jtype_name(v));
    }
    bool by_value = false;
    if (arg[1].kind != CW_J_ABSENT) {
        const struct cw_jstr *by = cw_jas_str(r, arg[1], "'by'");
        by_value = cw_jstr_is(by, "value");
        if (!by_value && !cw_jstr_is(by, "key")) {
            cw_jfailr(r, "'dictsort' sorts by 'key' or 'value' only");
        }
    }
    size_t n = v.dict->n;
    struct cw_jval out = cw_jseq(r, CW_J_LIST, n);
    struct cw_jval *keys = cw_jalloc_array(&r->arena, n, sizeof *keys);
    for (size_t i = 0; i < n; i++) {
        const struct cw_jpair *p = &v.dict->pairs[i];
        out.list->items[i] = pair(r, p->key, p->value);
        keys[i] = folded(r, by_value ? p->value : p->key, cw_jtruth(r, arg[0]));
    }
    cw_jsort(r, out.list->items, keys, n, cw_jas_flag(r, arg[2], "'reverse'"));
    return out;
}

CW_JBUILTIN(filter_groupby) {
    struct cw_jval list = cw_jcollect(r, v);
    size_t n = list.list->n;
    bool case_sensitive = cw_jtruth(r, arg[2]);
    struct cw_jval *keys = cw_jalloc_array(&r->arena, n, sizeof *keys);
    for (size_t i = 0; i < n; i++) {
        keys[i] = folded(r, part_of(r, list.list->items[i], arg[0], arg[1]), case_sensitive);
    }
    cw_jsort(r, list.list->items, keys, n, false);
    struct cw_jfill groups = {0};
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && cw_jequal(r, keys[i], keys[end]); end++) {
        }
        struct cw_jval members = cw_jseq(r, CW_J_LIST, end - i);
        memcpy(members.list->items, list.list->items + i, (end - i) * sizeof *keys);
        struct cw_jval group = pair(r, part_of(r, members.list->items[0], arg[0], arg[1]), members);
        group.list->name = "group"; /* has the attributes .grouper and .list */
        cw_jfill_add(r, &groups, group);
    }
    return cw_jfill_end(r, &groups, CW_J_LIST);
}

CW_JBUILTIN(filter_unique) {
    struct cw_jval seen = cw_jdict(r, CW_J_DICT);
    struct cw_jfill out = {0};
    struct cw_jcursor c = cw_jwalk(r, v);
    struct cw_jval item;
    while (cw_jstep(r, &c, &item)) {
        struct cw_jval key = folded(r, part_of(r, item, arg[1], cw_jnone()), cw_jtruth(r, arg[0]));
        if (cw_jdict_get(r, seen.dict, key) == NULL) {
            cw_jdict_set(r, seen.dict, key, cw_jnone());
            cw_jfill_add(r, &out, item);
        }
    }
    return cw_jfill_end(r, &out, CW_J_ITERATOR);
}

static struct cw_jval extreme(struct cw_jrender *r, struct cw_jval v, const struct cw_jval *arg,
                              bool largest) {
    struct cw_jcursor c = cw_jwalk(r, v);
    struct cw_jval item, best = cw_jundefined(r, "no aggregated item, the sequence was empty");
    struct cw_jval best_key = {.kind = CW_J_ABSENT};
    while (cw_jstep(r, &c, &item)) {
        struct cw_jval key = folded(r, part_of(r, item, arg[1], cw_jnone()), cw_jtruth(r, arg[0]));
        bool better =
            best_key.kind == CW_J_ABSENT ||
            (largest ? cw_jorder(r, ">", key, best_key) > 0 : cw_jorder(r, "<", key, best_key) < 0);
        if (better) {
            best = item;
            best_key = key;
        }
    }
    return best;
}

CW_JBUILTIN(filter_min) {
    return extreme(r, v, arg, false);
}

CW_JBUILTIN(filter_max) {
    return extreme(r, v, arg, true);
}

static struct cw_jval backwards(struct cw_jrender *r, struct cw_jval v, enum cw_jkind kind) {
    struct cw_jval out = cw_jcollect(r, v);
    struct cw_jval *items = out.list->items;
    for (size_t i = 0, k = out.list->n; i + 1 < k; i++) {
        struct cw_jval t = items[i];
        items[i] = items[--k];
        items[k] = t;
    }
    out.kind = kind;
    out.list->name = "reversed";
    return out;
}

CW_JBUILTIN(filter_reverse) {
    if (v.kind == CW_J_STRING) {
        return cw_jgetslice(r, v, cw_jnone(), cw_jnone(), cw_jint(-1));
    }
    return backwards(r, v, v.kind == CW_J_ITERATOR ? CW_J_LIST : CW_J_ITERATOR);
}

/* ------------------------------------------------------------------ items and lengths */

CW_JBUILTIN(filter_length) {
    int64_t n = cw_jlen(r, v);
    if (n < 0) {
        cw_jfailr(r, "TypeError: object of type '%s' has no len()", cw_jtype_name(v));
    }
    return cw_jint(n);
}

CW_JBUILTIN(filter_first) {
    struct cw_jcursor c = cw_jwalk(r, v);
    struct cw_jval item;
    return cw_jstep(r, &c, &item) ? item
                                  : cw_jundefined(r, "no first item, the sequence was empty");
}

CW_JBUILTIN(filter_last) {
    if (v.kind == CW_J_ITERATOR) {
        cw_jfailr(r, "TypeError: '%s' object is not reversible", cw_jtype_name(v));
    }
    if (v.kind == CW_J_STRING && v.s->len > 0) {
        return cw_jgetitem(r, v, cw_jint(-1));
    }
    struct cw_jval all_items = cw_jcollect(r, v);
    size_t n = all_items.list->n;
    return n > 0 ? all_items.list->items[n - 1]
                 : cw_jundefined(r, "no last item, the sequence was empty");
}

CW_JBUILTIN(filter_list) {
    return cw_jcollect(r, v);
}

CW_JBUILTIN(filter_default) {
    bool replace = v.kind == CW_J_UNDEFINED || (cw_jtruth(r, arg[1]) && !cw_jtruth(r, v));
    if (!replace) {
        return v;
    }
    return arg[0].kind == CW_J_ABSENT ? cw_jliteral(r, "") : arg[0];
}

CW_JBUILTIN(filter_join) {
    const struct cw_jstr *separator = cw_jgiven(arg[0]) ? cw_jstr_of(r, arg[0]) : NULL;
    if (arg[0].kind == CW_J_NONE) {
        separator = cw_jstr_of(r, arg[0]);
    }
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    struct cw_jcursor c = cw_jwalk(r, v);
    struct cw_jval item;
    for (bool first = true; cw_jstep(r, &c, &item); first = false) {
        if (!first && separator != NULL) {
            cw_jcharge_bytes(r, separator->len);
            cw_jbuild_str(&b, separator);
        }
        cw_jput_str(r, &b, part_of(r, item, arg[1], cw_jnone()));
    }
    return cw_jbuilt(&b);
}

CW_JBUILTIN(filter_items) {
    struct cw_jfill out = {0};
    if (v.kind == CW_J_DICT) {
        for (size_t i = 0; i < v.dict->n; i++) {
            cw_jfill_add(r, &out, pair(r, v.dict->pairs[i].key, v.dict->pairs[i].value));
        }
    } else if (v.kind != CW_J_UNDEFINED) {
        cw_jfailr(r, "TypeError: 'items' needs a mapping, not '%s'", cw_jtype_name(v));
    }
    return cw_jfill_end(r, &out, CW_J_ITERATOR);
}

CW_JBUILTIN(filter_attr) {
    return cw_jattribute(r, v, cw_jas_str(r, arg[0], "'name'"));
}

CW_JBUILTIN(filter_batch) {
    int64_t size = cw_jas_int(r, arg[0], "'linecount'");
    struct cw_jfill batches = {0}, batch = {0};
    struct cw_jcursor c = cw_jwalk(r, v);
    struct cw_jval item;
    while (cw_jstep(r, &c, &item)) {
        if ((int64_t)batch.n == size) {
            cw_jfill_add(r, &batches, cw_jfill_end(r, &batch, CW_J_LIST));
            batch = (struct cw_jfill){0};
        }
        cw_jfill_add(r, &batch, item);
    }
    if (batch.n > 0) {
        while (cw_jgiven(arg[1]) && (int64_t)batch.n < size) {
            cw_jcharge(r, 1);
            cw_jfill_add(r, &batch, arg[1]);
        }
        cw_jfill_add(r, &batches, cw_jfill_end(r, &batch, CW_J_LIST));
    }
    return cw_jfill_end(r, &batches, CW_J_ITERATOR);
}

CW_JBUILTIN(filter_slice) {
    struct cw_jval list = cw_jcollect(r, v);
    int64_t slices = cw_jas_int(r, arg[0], "'slices'"), n = (int64_t)list.list->n;
    if (slices == 0) {
        cw_jfailr(r, "ZeroDivisionError: division by zero");
    }
    int64_t each = slices > 0 ? n / slices : 0, extra = slices > 0 ? n % slices : 0, at = 0;
    struct cw_jfill out = {0};
    for (int64_t i = 0; i < slices; i++) {
        struct cw_jfill slice = {0};
        cw_jcharge(r, 1);
        for (int64_t end = at + each + (i < extra); at < end; at++) {
            cw_jfill_add(r, &slice, list.list->items[at]);
        }
        if (cw_jgiven(arg[1]) && i >= extra) {
            cw_jfill_add(r, &slice, arg[1]);
        }
        cw_jfill_add(r, &out, cw_jfill_end(r, &slice, CW_J_LIST));
    }
    return cw_jfill_end(r, &out, CW_J_ITERATOR);
}

/* ------------------------------------------------------------------ map, select and kin */

CW_JBUILTIN(filter_map) {
    struct cw_jfill out = {0};
    struct cw_jargs rest = *all;
    struct cw_jval path = {.kind = CW_J_ABSENT}, otherwise = {.kind = CW_J_ABSENT};
    const struct cw_jstr *filter = NULL;
    if (!cw_jtruth(r, v)) {
        return cw_jfill_end(r, &out, CW_J_ITERATOR);
    }
    if (all->n_pos > 0) {
        filter = cw_jas_str(r, all->pos[0], "the name of a filter");
        rest.pos++;
        rest.n_pos--;
    } else {
        for (size_t i = 0; i < all->n_kw; i++) {
            if (cw_jstr_is(all->kw[i].name, "attribute")) {
                path = all->kw[i].value;
            } else if (cw_jstr_is(all->kw[i].name, "default")) {
                otherwise = all->kw[i].value;
            } else {
                cw_jfailr(r, "'map' takes no argument '%.*s'", (int)all->kw[i].name->len,
                          all->kw[i].name->data);
            }
        }
        if (path.kind == CW_J_ABSENT) {
            cw_jfailr(r, "'map' needs a filter or an attribute");
        }
    }
    struct cw_jcursor c = cw_jwalk(r, v);
    struct cw_jval item;
    while (cw_jstep(r, &c, &item)) {
        cw_jfill_add(r, &out,
                     filter != NULL ? cw_japply_filter(r, filter, item, &rest)
                                    : part_of(r, item, path, otherwise));
    }
    return cw_jfill_end(r, &out, CW_J_ITERATOR);
}

/* The items (or those of which an attribute) that pass a test, or do not. */
static struct cw_jval choose(struct cw_jrender *r, struct cw_jval v, const struct cw_jargs *all,
                             bool wanted, bool by_attribute) {
    struct cw_jfill out = {0};
    struct cw_jargs rest = *all;
    struct cw_jval path = {.kind = CW_J_ABSENT};
    const struct cw_jstr *test = NULL;
    if (!cw_jtruth(r, v)) {
        return cw_jfill_end(r, &out, CW_J_ITERATOR);
    }
    if (by_attribute) {
        if (all->n_pos == 0) {
            cw_jfailr(r, "the name of an attribute is missing");
        }
        path = all->pos[0];
        rest.pos++;
        rest.n_pos--;
    }
    if (rest.n_pos > 0) {
        test = cw_jas_str(r, rest.pos[0], "the name of a test");
        rest.pos++;
        rest.n_pos--;
    }
    struct cw_jcursor c = cw_jwalk(r, v);
    struct cw_jval item;
    while (cw_jstep(r, &c, &item)) {
        struct cw_jval asked = part_of(r, item, path, cw_jnone());
        bool passes = test != NULL ? cw_japply_test(r, test, asked, &rest) : cw_jtruth(r, asked);
        if (passes == wanted) {
            cw_jfill_add(r, &out, item);
        }
    }
    return cw_jfill_end(r, &out, CW_J_ITERATOR);
}

CW_JBUILTIN(filter_select) {
    return choose(r, v, all, true, false);
}

CW_JBUILTIN(filter_reject) {
    return choose(r, v, all, false, false);
}

CW_JBUILTIN(filter_selectattr) {
    return choose(r, v, all, true, true);
}

CW_JBUILTIN(filter_rejectattr) {
    return choose(r, v, all, false, true);
}

CW_JBUILTIN(filter_sum) {
    struct cw_jval sum = arg[1].kind == CW_J_ABSENT ? cw_jint(0) : arg[1];
    if (sum.kind == CW_J_STRING) {
        cw_jfailr(r, "TypeError: sum() can't sum strings");
    }
    struct cw_jcursor c = cw_jwalk(r, v);
    struct cw_jval item;
    while (cw_jstep(r, &c, &item)) {
        sum = cw_jbinary(r, CW_JOP_ADD, sum, part_of(r, item, arg[0], cw_jnone()));
    }
    return sum;
}

const struct cw_jbuiltin cw_jlist_filters[] = {
    {"attr", "name", filter_attr},
    {"batch", "linecount fill_with?", filter_batch},
    {"count", "", filter_length},
    {"d", "default_value? boolean?", filter_default},
    {"default", "default_value? boolean?", filter_default},
    {"dictsort", "case_sensitive? by? reverse?", filter_dictsort},
    {"first", "", filter_first},
    {"groupby", "attribute default? case_sensitive?", filter_groupby},
    {"items", "", filter_items},
    {"join", "d? attribute?", filter_join},
    {"last", "", filter_last},
    {"length", "", filter_length},
    {"list", "", filter_list},
    {"map", "*", filter_map},
    {"max", "case_sensitive? attribute?", filter_max},
    {"min", "case_sensitive? attribute?", filter_min},
    {"random", NULL, NULL},
    {"reject", "*", filter_reject},
    {"rejectattr", "*", filter_rejectattr},
    {"reverse", "", filter_reverse},
    {"select", "*", filter_select},
    {"selectattr", "*", filter_selectattr},
    {"slice", "slices fill_with?", filter_slice},
    {"sort", "reverse? case_sensitive? attribute?", filter_sort},
    {"sum", "attribute? start?", filter_sum},
    {"unique", "case_sensitive? attribute?", filter_unique},
    {NULL, NULL, NULL},
};
