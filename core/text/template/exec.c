/* SPDX-License-Identifier: MIT
 *
 * Statements, scopes and macros (eval.h).
 *
 * A name is looked up when it is needed, through the scopes around it. The reference decides while
 * it compiles, which shows in one corner: there a variable given to the template is undefined
 * inside a block that stands before a `set` of that name further out; here it has its value.
 */
#include <string.h>

#include "builtins.h"
#include "eval.h"

/* ------------------------------------------------------------------ scopes */

struct cw_jscope *cw_jscope_push(struct cw_jrender *r) {
    struct cw_jscope *s = cw_jalloc(&r->arena, sizeof *s);
    *s = (struct cw_jscope){.parent = r->scope};
    r->scope = s;
    return s;
}

void cw_jscope_pop(struct cw_jrender *r, struct cw_jscope *pushed) {
    pushed->ended = true;
    r->scope = pushed->parent;
}

void cw_jscope_set(struct cw_jrender *r, const struct cw_jname *name, struct cw_jval v) {
    struct cw_jscope *s = r->scope;
    cw_jcharge(r, s->n / 16);
    for (size_t i = 0; i < s->n; i++) {
        if (s->vars[i].name == name) {
            s->vars[i].value = v;
            return;
        }
    }
    if (s->n == s->cap) {
        size_t cap = s->cap == 0 ? 4 : s->cap * 2;
        s->vars = cw_jgrow(&r->arena, s->vars, s->cap * sizeof *s->vars, cap * sizeof *s->vars);
        s->cap = cap;
    }
    s->vars[s->n++] = (struct cw_jvar){name, v};
}

static void assign_attribute(struct cw_jrender *r, const struct cw_jnode *target,
                             struct cw_jval v) {
    struct cw_jnode name = {.kind = CW_JN_NAME, .line = target->line, .name = target->nsref.name};
    struct cw_jval object = cw_jeval(r, &name);
    if (object.kind != CW_J_NAMESPACE) {
        cw_jfailr(r, "cannot assign an attribute of '%.*s', which is no namespace",
                  (int)target->nsref.name->text->len, target->nsref.name->text->data);
    }
    cw_jdict_set(r, object.dict, cw_jstring(target->nsref.attr), v);
}

void cw_jassign(struct cw_jrender *r, const struct cw_jnode *target, struct cw_jval v) {
    if (target->kind == CW_JN_NAME) {
        cw_jscope_set(r, target->name, v);
        return;
    }
    if (target->kind == CW_JN_NSREF) {
        assign_attribute(r, target, v);
        return;
    }
    size_t wanted = target->items.n, n = 0;
    struct cw_jcursor c = cw_jwalk(r, v);
    struct cw_jval item;
    cw_jenter(r);
    for (; n < wanted && cw_jstep(r, &c, &item); n++) {
        cw_jassign(r, target->items.v[n], item);
    }
    cw_jleave(r);
    r->guard.line = target->line;
    if (n < wanted) {
        cw_jfailr(r, "ValueError: not enough values to unpack (expected %zu, got %zu)", wanted, n);
    }
    if (cw_jstep(r, &c, &item)) {
        cw_jfailr(r, "ValueError: too many values to unpack (expected %zu)", wanted);
    }
}

/* ------------------------------------------------------------------ captured output */

/* Run `body` in a scope of its own; what it writes becomes a string. */
static struct cw_jval capture(struct cw_jrender *r, const struct cw_jnodes *body,
                              enum cw_jflow *flow) {
    struct cw_jbuild text = cw_jbuild_new(&r->arena), *outer = r->out;
    struct cw_jscope *scope = cw_jscope_push(r);
    r->out = &text;
    *flow = cw_jexec(r, body);
    r->out = outer;
    cw_jscope_pop(r, scope);
    return cw_jbuilt(&text);
}

static struct cw_jval apply_filters(struct cw_jrender *r, const struct cw_jnodes *filters,
                                    struct cw_jval v) {
    for (size_t i = 0; i < filters->n; i++) {
        v = cw_jeval_filter(r, filters->v[i], v);
    }
    return v;
}

/* ------------------------------------------------------------------ macros */

static struct cw_jval new_macro(struct cw_jrender *r, const struct cw_jroutine *routine) {
    struct cw_jmacro *m = cw_jalloc(&r->arena, sizeof *m);
    *m = (struct cw_jmacro){routine, r->scope};
    for (struct cw_jscope *s = r->scope; s != NULL && !s->captured; s = s->parent) {
        s->captured = true;
    }
    return (struct cw_jval){.kind = CW_J_MACRO, .macro = m};
}

static const struct cw_jname *special(struct cw_jrender *r, const char *name) {
    return cw_jname_lookup(r->t, name, strlen(name));
}

/* The argument for parameter i, marked as taken if it came by keyword; NULL: none. */
static const struct cw_jval *argument(struct cw_jrender *r, const struct cw_jroutine *m, size_t i,
                                      const struct cw_jargs *args, bool *taken) {
    if (i < args->n_pos) {
        return &args->pos[i];
    }
    cw_jcharge(r, args->n_kw / 16);
    for (size_t k = 0; k < args->n_kw; k++) {
        if (!taken[k] && cw_jsame_text(r, args->kw[k].name, m->params[i]->text)) {
            taken[k] = true;
            return &args->kw[k].value;
        }
    }
    return NULL;
}

/* Parameters without an argument are undefined until, in order, their defaults are evaluated. */
static void bind_parameters(struct cw_jrender *r, const struct cw_jroutine *m,
                            const struct cw_jargs *args, bool *taken) {
    bool *missing = cw_jalloc_array(&r->arena, m->n_params + 1, sizeof *missing);
    for (size_t i = 0; i < m->n_params; i++) {
        const struct cw_jval *given = argument(r, m, i, args, taken);
        missing[i] = given == NULL;
        cw_jscope_set(r, m->params[i],
                      given != NULL
                          ? *given
                          : cw_jundefined(r, "parameter '%.*s' was not provided",
                                          (int)m->params[i]->text->len, m->params[i]->text->data));
    }
    for (size_t i = 0; i < m->n_params; i++) {
        if (missing[i] && m->defaults[i] != NULL) {
            cw_jscope_set(r, m->params[i], cw_jeval(r, m->defaults[i]));
        }
    }
}

static bool has_parameter(const struct cw_jroutine *m, const struct cw_jname *name) {
    for (size_t i = 0; i < m->n_params; i++) {
        if (m->params[i] == name) {
            return true;
        }
    }
    return false;
}

/* caller, kwargs and varargs, where the body mentions them; other leftovers are errors. */
static void bind_extras(struct cw_jrender *r, const struct cw_jroutine *m,
                        const struct cw_jargs *args, bool *taken) {
    const struct cw_jname *caller = special(r, "caller");
    if (m->uses_caller && !has_parameter(m, caller)) {
        struct cw_jval v = cw_jundefined(r, "no caller defined");
        for (size_t k = 0; k < args->n_kw; k++) {
            if (!taken[k] && cw_jstr_is(args->kw[k].name, "caller")) {
                taken[k] = true;
                v = args->kw[k].value;
            }
        }
        cw_jscope_set(r, caller, v);
    }
    struct cw_jval rest = cw_jdict(r, CW_J_DICT);
    for (size_t k = 0; k < args->n_kw; k++) {
        if (taken[k]) {
            continue;
        }
        const struct cw_jstr *name = args->kw[k].name;
        if (!m->uses_kwargs) {
            cw_jfailr(r, "TypeError: macro '%s' takes no keyword argument '%.*s'", m->name,
                      (int)name->len, name->data);
        }
        cw_jdict_set(r, rest.dict, cw_jstring(name), args->kw[k].value);
    }
    if (m->uses_kwargs) {
        cw_jscope_set(r, special(r, "kwargs"), rest);
    }
    size_t extra = args->n_pos > m->n_params ? args->n_pos - m->n_params : 0;
    if (m->uses_varargs) {
        struct cw_jval v = cw_jseq(r, CW_J_TUPLE, 0);
        v.list->items = args->pos + (args->n_pos - extra);
        v.list->n = extra;
        cw_jscope_set(r, special(r, "varargs"), v);
    } else if (extra > 0) {
        cw_jfailr(r, "TypeError: macro '%s' takes not more than %zu argument(s)", m->name,
                  m->n_params);
    }
}

struct cw_jval cw_jmacro_call(struct cw_jrender *r, const struct cw_jmacro *m,
                              const struct cw_jargs *args) {
    struct cw_jscope *calling = r->scope;
    for (const struct cw_jscope *s = m->scope; s != NULL; s = s->parent) {
        if (s->ended) { /* what it would see there is an accident of the reference */
            cw_jfailr(r, "calling a macro outside of the block that defines it is not supported");
        }
    }
    bool *taken = cw_jalloc_array(&r->arena, args->n_kw + 1, sizeof *taken);
    memset(taken, 0, args->n_kw + 1);
    cw_jenter(r);
    r->scope = m->scope;
    cw_jscope_push(r);
    bind_parameters(r, m->routine, args, taken);
    bind_extras(r, m->routine, args, taken);
    struct cw_jbuild text = cw_jbuild_new(&r->arena), *outer = r->out;
    r->out = &text;
    cw_jexec(r, &m->routine->body);
    r->out = outer;
    r->scope = calling;
    cw_jleave(r);
    return cw_jbuilt(&text);
}

static void exec_call_block(struct cw_jrender *r, const struct cw_jnode *n) {
    const struct cw_jnode *call = n->call_block.call;
    struct cw_jval callee = cw_jeval(r, call->call.callee);
    struct cw_jargs args = cw_jeval_args(r, &call->call.args);
    struct cw_jkeyword *kw = cw_jalloc_array(&r->arena, args.n_kw + 1, sizeof *kw);
    if (args.n_kw > 0) {
        memcpy(kw, args.kw, args.n_kw * sizeof *kw);
    }
    kw[args.n_kw].name = cw_jliteral(r, "caller").s;
    kw[args.n_kw].value = new_macro(r, &n->call_block.routine);
    args.kw = kw;
    args.n_kw++;
    r->guard.line = n->line;
    cw_jput_str(r, r->out, cw_jcall(r, callee, &args));
}

/* ------------------------------------------------------------------ statements */

static enum cw_jflow exec_if(struct cw_jrender *r, const struct cw_jnode *n) {
    for (size_t i = 0; i < n->cond_block.n; i++) {
        const struct cw_jbranch *b = &n->cond_block.branches[i];
        if (b->test == NULL || cw_jtruth(r, cw_jeval(r, b->test))) {
            return cw_jexec(r, &b->body);
        }
    }
    return CW_JGO_ON;
}

static enum cw_jflow exec_with(struct cw_jrender *r, const struct cw_jnode *n) {
    struct cw_jval *values = cw_jalloc_array(&r->arena, n->with.values.n, sizeof *values);
    for (size_t i = 0; i < n->with.values.n; i++) {
        values[i] = cw_jeval(r, n->with.values.v[i]);
    }
    struct cw_jscope *scope = cw_jscope_push(r);
    for (size_t i = 0; i < n->with.targets.n; i++) {
        cw_jassign(r, n->with.targets.v[i], values[i]);
    }
    enum cw_jflow flow = cw_jexec(r, &n->with.body);
    cw_jscope_pop(r, scope);
    return flow;
}

static enum cw_jflow exec_node(struct cw_jrender *r, const struct cw_jnode *n) {
    enum cw_jflow flow = CW_JGO_ON;
    struct cw_jscope *scope;
    struct cw_jval v;
    switch (n->kind) {
    case CW_JN_TEXT:
        cw_jcharge_bytes(r, n->text->len);
        cw_jbuild_str(r->out, n->text);
        break;
    case CW_JN_OUTPUT:
        v = cw_jeval(r, n->operand);
        r->guard.line = n->line;
        cw_jput_str(r, r->out, v);
        break;
    case CW_JN_FOR:
        return cw_jfor(r, n);
    case CW_JN_IF:
        return exec_if(r, n);
    case CW_JN_SET:
        v = cw_jeval(r, n->set.value);
        r->guard.line = n->line;
        cw_jassign(r, n->set.target, v);
        break;
    case CW_JN_SET_BLOCK:
        v = capture(r, &n->set.body, &flow);
        if (flow == CW_JGO_ON) {
            cw_jassign(r, n->set.target, apply_filters(r, &n->set.filters, v));
        }
        break;
    case CW_JN_MACRO:
        cw_jscope_set(r, n->macro.name, new_macro(r, &n->macro.routine));
        break;
    case CW_JN_CALL_BLOCK:
        exec_call_block(r, n);
        break;
    case CW_JN_FILTER_BLOCK:
        v = capture(r, &n->filter_block.body, &flow);
        if (flow == CW_JGO_ON) {
            v = apply_filters(r, &n->filter_block.filters, v);
            cw_jput_str(r, r->out, cw_jstring(cw_jas_str(r, v, "the result of a filter block")));
        }
        break;
    case CW_JN_WITH:
        return exec_with(r, n);
    case CW_JN_SCOPE:
        scope = cw_jscope_push(r);
        cw_jexec(r, &n->items);
        cw_jscope_pop(r, scope);
        break;
    case CW_JN_BREAK:
        return CW_JBREAK;
    case CW_JN_CONTINUE:
        return CW_JCONTINUE;
    default:
        cw_jfailr(r, "this cannot be run");
    }
    return flow;
}

enum cw_jflow cw_jexec(struct cw_jrender *r, const struct cw_jnodes *nodes) {
    enum cw_jflow flow = CW_JGO_ON;
    cw_jenter(r);
    for (size_t i = 0; flow == CW_JGO_ON && i < nodes->n; i++) {
        cw_jcharge(r, 1);
        r->guard.line = nodes->v[i]->line;
        flow = exec_node(r, nodes->v[i]);
    }
    cw_jleave(r);
    return flow;
}
