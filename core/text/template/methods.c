/* SPDX-License-Identifier: MIT
 * Methods and attributes of dicts, lists and the rest, and the way to all methods (builtins.h). */
#include "builtins.h"
#include "eval.h"

/* ------------------------------------------------------------------ dicts */

const char cw_jdict_keys[] = "dict_keys";

enum view { VIEW_KEYS, VIEW_VALUES, VIEW_ITEMS };

static struct cw_jval view_of(struct cw_jrender *r, const struct cw_jdict *d, enum view what) {
    static const char *const names[] = {cw_jdict_keys, "dict_values", "dict_items"};
    struct cw_jval out = cw_jseq(r, CW_J_VIEW, d->n);
    out.list->name = names[what];
    cw_jcharge(r, d->n);
    for (size_t i = 0; i < d->n; i++) {
        const struct cw_jpair *p = &d->pairs[i];
        struct cw_jval item = what == VIEW_KEYS ? p->key : p->value;
        if (what == VIEW_ITEMS) {
            item = cw_jseq(r, CW_J_TUPLE, 2);
            item.list->items[0] = p->key;
            item.list->items[1] = p->value;
        }
        out.list->items[i] = item;
    }
    return out;
}

CW_JBUILTIN(dict_keys) {
    return view_of(r, v.dict, VIEW_KEYS);
}

CW_JBUILTIN(dict_values) {
    return view_of(r, v.dict, VIEW_VALUES);
}

CW_JBUILTIN(dict_items) {
    return view_of(r, v.dict, VIEW_ITEMS);
}

CW_JBUILTIN(dict_get) {
    const struct cw_jval *hit = cw_jdict_get(r, v.dict, arg[0]);
    if (hit != NULL) {
        return *hit;
    }
    return arg[1].kind == CW_J_ABSENT ? cw_jnone() : arg[1];
}

CW_JBUILTIN(dict_copy) {
    struct cw_jval out = cw_jdict(r, CW_J_DICT);
    for (size_t i = 0; i < v.dict->n; i++) {
        cw_jdict_set(r, out.dict, v.dict->pairs[i].key, v.dict->pairs[i].value);
    }
    return out;
}

static const struct cw_jbuiltin dict_methods[] = {
    {"get", "key default?", dict_get},
    {"items", "", dict_items},
    {"keys", "", dict_keys},
    {"values", "", dict_values},
    {"copy", "", dict_copy},
    {"fromkeys", NULL, NULL},
    {NULL, NULL, NULL},
};

/* ------------------------------------------------------------------ lists and the rest */

CW_JBUILTIN(list_count) {
    int64_t n = 0;
    for (size_t i = 0; i < v.list->n; i++) {
        n += cw_jequal(r, v.list->items[i], arg[0]);
    }
    return cw_jint(n);
}

CW_JBUILTIN(list_index) {
    int64_t n = (int64_t)v.list->n;
    int64_t start = cw_jgiven(arg[1]) ? cw_jas_int(r, arg[1], "'start'") : 0;
    int64_t stop = cw_jgiven(arg[2]) ? cw_jas_int(r, arg[2], "'stop'") : n;
    start = cw_jfrom_end(start, n);
    stop = cw_jfrom_end(stop, n);
    for (int64_t i = start; i < stop && i < n; i++) {
        if (cw_jequal(r, v.list->items[i], arg[0])) {
            return cw_jint(i);
        }
    }
    cw_jfailr(r, "ValueError: the item is not in the %s", cw_jtype_name(v));
}

CW_JBUILTIN(list_copy) {
    return cw_jcollect(r, v);
}

static const struct cw_jbuiltin list_methods[] = {
    {"count", "value", list_count},
    {"index", "value start? stop?", list_index},
    {"copy", "", list_copy},
    {NULL, NULL, NULL},
};

static const struct cw_jbuiltin tuple_methods[] = {
    {"count", "value", list_count},
    {"index", "value start? stop?", list_index},
    {NULL, NULL, NULL},
};

CW_JBUILTIN(range_start) {
    return cw_jint(v.range->start);
}

CW_JBUILTIN(range_stop) {
    return cw_jint(v.range->stop);
}

CW_JBUILTIN(range_step) {
    return cw_jint(v.range->step);
}

static const struct cw_jbuiltin range_methods[] = {
    {"start", "@", range_start}, {"stop", "@", range_stop}, {"step", "@", range_step},
    {"count", NULL, NULL},       {"index", NULL, NULL},     {NULL, NULL, NULL},
};

static const struct cw_jbuiltin int_methods[] = {
    {"as_integer_ratio", NULL, NULL},
    {"bit_count", NULL, NULL},
    {"bit_length", NULL, NULL},
    {"conjugate", NULL, NULL},
    {"denominator", NULL, NULL},
    {"from_bytes", NULL, NULL},
    {"imag", NULL, NULL},
    {"numerator", NULL, NULL},
    {"real", NULL, NULL},
    {"to_bytes", NULL, NULL},
    {NULL, NULL, NULL},
};

static const struct cw_jbuiltin float_methods[] = {
    {"as_integer_ratio", NULL, NULL},
    {"conjugate", NULL, NULL},
    {"fromhex", NULL, NULL},
    {"hex", NULL, NULL},
    {"imag", NULL, NULL},
    {"is_integer", NULL, NULL},
    {"real", NULL, NULL},
    {NULL, NULL, NULL},
};

CW_JBUILTIN(macro_name) {
    return cw_jliteral(r, v.macro->routine->name);
}

CW_JBUILTIN(macro_arguments) {
    const struct cw_jroutine *m = v.macro->routine;
    struct cw_jval out = cw_jseq(r, CW_J_TUPLE, m->n_params);
    for (size_t i = 0; i < m->n_params; i++) {
        out.list->items[i] = cw_jstring(m->params[i]->text);
    }
    return out;
}

static const struct cw_jbuiltin macro_methods[] = {
    {"name", "@", macro_name},    {"arguments", "@", macro_arguments}, {"caller", NULL, NULL},
    {"catch_kwargs", NULL, NULL}, {"catch_varargs", NULL, NULL},       {NULL, NULL, NULL},
};

CW_JBUILTIN(cycler_current) {
    return v.cycler->items[v.cycler->at];
}

CW_JBUILTIN(cycler_next) {
    struct cw_jval now = v.cycler->items[v.cycler->at];
    v.cycler->at = (v.cycler->at + 1) % v.cycler->n;
    return now;
}

CW_JBUILTIN(cycler_reset) {
    v.cycler->at = 0;
    return cw_jnone();
}

static const struct cw_jbuiltin cycler_methods[] = {
    {"current", "@", cycler_current},
    {"next", "", cycler_next},
    {"reset", "", cycler_reset},
    {NULL, NULL, NULL},
};

static const struct cw_jbuiltin loop_methods[] = {
    {"cycle", "*", cw_jloop_cycle},
    {"changed", "*", cw_jloop_changed},
    {NULL, NULL, NULL},
};

const struct cw_jbuiltin *cw_jmethod_find(struct cw_jval self, const struct cw_jstr *name) {
    const struct cw_jbuiltin *table = NULL;
    switch (self.kind) {
    case CW_J_STRING:
        table = cw_jstr_methods;
        break;
    case CW_J_DICT:
        table = dict_methods;
        break;
    case CW_J_LIST:
        table = list_methods;
        break;
    case CW_J_TUPLE:
        table = tuple_methods;
        break;
    case CW_J_RANGE:
        table = range_methods;
        break;
    case CW_J_BOOL:
    case CW_J_INT:
        table = int_methods;
        break;
    case CW_J_FLOAT:
        table = float_methods;
        break;
    case CW_J_MACRO:
        table = macro_methods;
        break;
    case CW_J_CYCLER:
        table = cycler_methods;
        break;
    case CW_J_LOOP:
        table = loop_methods;
        break;
    default:
        return NULL;
    }
    return cw_jtable_find(table, name);
}
