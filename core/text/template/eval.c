/* SPDX-License-Identifier: MIT
 * Expressions (eval.h). */
#include "eval.h"

#include <string.h>

#include "builtins.h"

static void at(struct cw_jrender *r, const struct cw_jnode *n) {
    r->guard.line = n->line;
}

static struct cw_jval lookup(struct cw_jrender *r, const struct cw_jname *name) {
    for (const struct cw_jscope *s = r->scope; s != NULL; s = s->parent) {
        for (size_t i = s->n; i-- > 0;) {
            if (s->vars[i].name == name) {
                return s->vars[i].value;
            }
        }
        cw_jcharge(r, s->n / 16);
    }
    const struct cw_jbuiltin *f = cw_jfunction_find(name->text);
    if (f != NULL) {
        return (struct cw_jval){.kind = CW_J_FUNCTION, .function = f};
    }
    return cw_jundefined(r, "'%.*s' is undefined", (int)name->text->len, name->text->data);
}

static struct cw_jval eval_items(struct cw_jrender *r, const struct cw_jnode *n,
                                 enum cw_jkind kind) {
    struct cw_jval v = cw_jseq(r, kind, n->items.n);
    for (size_t i = 0; i < n->items.n; i++) {
        v.list->items[i] = cw_jeval(r, n->items.v[i]);
    }
    return v;
}

static struct cw_jval eval_dict(struct cw_jrender *r, const struct cw_jnode *n) {
    struct cw_jval v = cw_jdict(r, CW_J_DICT);
    for (size_t i = 0; i + 1 < n->items.n; i += 2) {
        struct cw_jval key = cw_jeval(r, n->items.v[i]);
        struct cw_jval value = cw_jeval(r, n->items.v[i + 1]);
        at(r, n);
        cw_jdict_set(r, v.dict, key, value);
    }
    return v;
}

/* How many of v[0..n) are strings in a row, joined by '+'. */
static size_t strings_in_a_row(const struct cw_jval *v, const enum cw_jop *ops, size_t n) {
    size_t run = 0;
    while (run < n && v[run].kind == CW_J_STRING && !v[run].s->markup &&
           (run == 0 || ops[run - 1] == CW_JOP_ADD)) {
        run++;
    }
    return run;
}

/* A sum of strings is joined at once and not pair by pair: most of a prompt is written so. */
static struct cw_jval eval_chain(struct cw_jrender *r, const struct cw_jnode *n) {
    const struct cw_jnodes *items = &n->chain.items;
    struct cw_jval *v = cw_jalloc_array(&r->arena, items->n, sizeof *v);
    for (size_t i = 0; i < items->n; i++) {
        v[i] = cw_jeval(r, items->v[i]);
    }
    at(r, n);
    size_t done = strings_in_a_row(v, n->chain.ops, items->n);
    struct cw_jval sum = done > 1 ? cw_jconcat(r, v, done) : v[0];
    for (done += done == 0; done < items->n; done++) {
        sum = cw_jbinary(r, n->chain.ops[done - 1], sum, v[done]);
    }
    return sum;
}

static struct cw_jval eval_compare(struct cw_jrender *r, const struct cw_jnode *n) {
    struct cw_jval left = cw_jeval(r, n->chain.items.v[0]);
    bool holds = true;
    for (size_t i = 1; holds && i < n->chain.items.n; i++) {
        struct cw_jval right = cw_jeval(r, n->chain.items.v[i]);
        at(r, n);
        holds = cw_jcompare(r, n->chain.ops[i - 1], left, right);
        left = right;
    }
    return cw_jbool(holds);
}

/* and, or: the first operand that decides, or the last. */
static struct cw_jval eval_logic(struct cw_jrender *r, const struct cw_jnode *n, bool decides) {
    struct cw_jval v = cw_jnone();
    for (size_t i = 0; i < n->items.n; i++) {
        v = cw_jeval(r, n->items.v[i]);
        if (cw_jtruth(r, v) == decides) {
            break;
        }
    }
    return v;
}

static struct cw_jval eval_cond(struct cw_jrender *r, const struct cw_jnode *n) {
    if (cw_jtruth(r, cw_jeval(r, n->cond.test))) {
        return cw_jeval(r, n->cond.then);
    }
    if (n->cond.otherwise != NULL) {
        return cw_jeval(r, n->cond.otherwise);
    }
    return cw_jundefined(r, "an inline 'if' without 'else' was false");
}

static struct cw_jval eval_part(struct cw_jrender *r, const struct cw_jnode *n) {
    return n != NULL ? cw_jeval(r, n) : cw_jnone();
}

static struct cw_jval eval_item(struct cw_jrender *r, const struct cw_jnode *n) {
    struct cw_jval object = cw_jeval(r, n->item.object);
    const struct cw_jnode *key = n->item.key;
    if (key->kind == CW_JN_SLICE) {
        struct cw_jval start = eval_part(r, key->slice.start);
        struct cw_jval stop = eval_part(r, key->slice.stop);
        struct cw_jval step = eval_part(r, key->slice.step);
        at(r, n);
        return cw_jgetslice(r, object, start, stop, step);
    }
    struct cw_jval k = cw_jeval(r, key);
    at(r, n);
    return cw_jgetitem(r, object, k);
}

static void add_keyword(struct cw_jrender *r, struct cw_jargs *args, size_t *cap,
                        const struct cw_jstr *name, struct cw_jval v) {
    for (size_t i = 0; i < args->n_kw; i++) {
        if (cw_jsame_text(r, args->kw[i].name, name)) {
            cw_jfailr(r, "TypeError: keyword argument '%.*s' given twice", (int)name->len,
                      name->data);
        }
    }
    cw_jcharge(r, args->n_kw / 4);
    if (args->n_kw == *cap) {
        size_t more = *cap == 0 ? 4 : *cap * 2;
        args->kw = cw_jgrow(&r->arena, args->kw, *cap * sizeof *args->kw, more * sizeof *args->kw);
        *cap = more;
    }
    args->kw[args->n_kw++] = (struct cw_jkeyword){name, v};
}

struct cw_jargs cw_jeval_args(struct cw_jrender *r, const struct cw_jcallargs *from) {
    struct cw_jargs args = {0};
    struct cw_jfill pos = {0};
    size_t cap_kw = 0;
    for (size_t i = 0; i < from->pos.n; i++) {
        cw_jfill_add(r, &pos, cw_jeval(r, from->pos.v[i]));
    }
    if (from->star != NULL) {
        struct cw_jcursor c = cw_jwalk(r, cw_jeval(r, from->star));
        struct cw_jval item;
        while (cw_jstep(r, &c, &item)) {
            cw_jfill_add(r, &pos, item);
        }
    }
    for (size_t i = 0; i < from->n_kw; i++) {
        add_keyword(r, &args, &cap_kw, from->kw[i].name->text, cw_jeval(r, from->kw[i].value));
    }
    if (from->star_star != NULL) {
        struct cw_jval d = cw_jeval(r, from->star_star);
        if (d.kind != CW_J_DICT) {
            cw_jfailr(r, "TypeError: argument after ** must be a dict, not '%s'", cw_jtype_name(d));
        }
        for (size_t i = 0; i < d.dict->n; i++) {
            add_keyword(r, &args, &cap_kw, cw_jas_str(r, d.dict->pairs[i].key, "a keyword"),
                        d.dict->pairs[i].value);
        }
    }
    args.pos = pos.items;
    args.n_pos = pos.n;
    return args;
}

static struct cw_jval eval_call(struct cw_jrender *r, const struct cw_jnode *n) {
    struct cw_jval callee = cw_jeval(r, n->call.callee);
    struct cw_jargs args = cw_jeval_args(r, &n->call.args);
    at(r, n);
    return cw_jcall(r, callee, &args);
}

static const struct cw_jbuiltin *known(struct cw_jrender *r, const struct cw_jnode *n) {
    const char *what = n->kind == CW_JN_FILTER ? "filter" : "test";
    if (n->call.builtin == NULL || n->call.builtin->params == NULL) {
        at(r, n);
        cw_jfailr(r, "the %s '%.*s' is not supported", what, (int)n->call.name->len,
                  n->call.name->data);
    }
    return n->call.builtin;
}

struct cw_jval cw_jeval_filter(struct cw_jrender *r, const struct cw_jnode *n, struct cw_jval v) {
    const struct cw_jbuiltin *b = known(r, n);
    struct cw_jargs args = cw_jeval_args(r, &n->call.args);
    at(r, n);
    return cw_jinvoke(r, n->kind == CW_JN_FILTER ? "filter" : "test", b, v, &args);
}

static struct cw_jval eval_node(struct cw_jrender *r, const struct cw_jnode *n) {
    struct cw_jval v;
    switch (n->kind) {
    case CW_JN_CONST:
        return n->constant;
    case CW_JN_NAME:
        return lookup(r, n->name);
    case CW_JN_LIST:
        return eval_items(r, n, CW_J_LIST);
    case CW_JN_TUPLE:
        return eval_items(r, n, CW_J_TUPLE);
    case CW_JN_DICT:
        return eval_dict(r, n);
    case CW_JN_CHAIN:
        return eval_chain(r, n);
    case CW_JN_CONCAT:
        v = eval_items(r, n, CW_J_LIST);
        at(r, n);
        return cw_jconcat(r, v.list->items, v.list->n);
    case CW_JN_AND:
        return eval_logic(r, n, false);
    case CW_JN_OR:
        return eval_logic(r, n, true);
    case CW_JN_NOT:
        return cw_jbool(!cw_jtruth(r, cw_jeval(r, n->operand)));
    case CW_JN_NEG:
        v = cw_jeval(r, n->operand);
        at(r, n);
        return cw_jnegate(r, v);
    case CW_JN_POS:
        v = cw_jeval(r, n->operand);
        at(r, n);
        cw_jneed_defined(r, v);
        if (!cw_jis_number(v)) {
            cw_jfailr(r, "TypeError: bad operand type for unary +: '%s'", cw_jtype_name(v));
        }
        return v.kind == CW_J_BOOL ? cw_jint(v.b) : v;
    case CW_JN_COMPARE:
        return eval_compare(r, n);
    case CW_JN_COND:
        return eval_cond(r, n);
    case CW_JN_ATTR:
        v = cw_jeval(r, n->item.object);
        at(r, n);
        return cw_jgetattr(r, v, n->item.attr);
    case CW_JN_ITEM:
        return eval_item(r, n);
    case CW_JN_CALL:
        return eval_call(r, n);
    case CW_JN_FILTER:
    case CW_JN_TEST:
        known(r, n);
        v = cw_jeval(r, n->call.callee);
        return cw_jeval_filter(r, n, v);
    case CW_JN_SLICE: /* in a[b:c, d], which indexes nothing here */
        at(r, n);
        cw_jfailr(r, "several slices at once are not supported");
    default:
        at(r, n);
        cw_jfailr(r, "this cannot be evaluated");
    }
}

struct cw_jval cw_jeval(struct cw_jrender *r, const struct cw_jnode *n) {
    cw_jcharge(r, 1);
    at(r, n);
    cw_jenter(r);
    struct cw_jval v = eval_node(r, n);
    cw_jleave(r);
    return v;
}
