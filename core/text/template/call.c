/* SPDX-License-Identifier: MIT
 * Calls: matching arguments to the parameters of builtins, and calling any value (builtins.h). */
#include <string.h>

#include "builtins.h"
#include "eval.h"

const struct cw_jbuiltin *cw_jtable_find(const struct cw_jbuiltin *table,
                                         const struct cw_jstr *name) {
    for (; table->name != NULL; table++) {
        if (cw_jstr_is(name, table->name)) {
            return table;
        }
    }
    return NULL;
}

const struct cw_jbuiltin *cw_jfilter_find(const struct cw_jstr *name) {
    const struct cw_jbuiltin *tables[] = {cw_jtext_filters, cw_jlist_filters, cw_jnumber_filters};
    const struct cw_jbuiltin *b = NULL;
    for (size_t i = 0; b == NULL && i < sizeof tables / sizeof *tables; i++) {
        b = cw_jtable_find(tables[i], name);
    }
    return b;
}

static const struct cw_jval *keyword(const struct cw_jargs *args, const char *name, size_t n) {
    for (size_t i = 0; i < args->n_kw; i++) {
        if (args->kw[i].name->len == n && memcmp(args->kw[i].name->data, name, n) == 0) {
            return &args->kw[i].value;
        }
    }
    return NULL;
}

/* The next of the parameters that *p lists; false at the end. */
static bool next_parameter(const char **p, const char **name, size_t *len, bool *optional) {
    *name = *p;
    *len = strcspn(*p, " ");
    if (*len == 0) {
        return false;
    }
    *p += *len;
    *p += **p == ' ';
    *optional = (*name)[*len - 1] == '?';
    *len -= *optional;
    return true;
}

/* Match args to the parameters that b names; those not given stay CW_J_ABSENT. */
static void bind(struct cw_jrender *r, const char *what, const struct cw_jbuiltin *b,
                 const struct cw_jargs *args, struct cw_jval out[CW_JMAX_PARAMS]) {
    const char *p = b->params, *name;
    size_t n = 0, len, used_kw = 0;
    bool optional;
    for (; next_parameter(&p, &name, &len, &optional); n++) {
        const struct cw_jval *kw = keyword(args, name, len);
        used_kw += kw != NULL;
        out[n] = (struct cw_jval){.kind = CW_J_ABSENT};
        if (n < args->n_pos && kw != NULL) {
            cw_jfailr(r, "TypeError: %s '%s' got two values for '%.*s'", what, b->name, (int)len,
                      name);
        } else if (n < args->n_pos) {
            out[n] = args->pos[n];
        } else if (kw != NULL) {
            out[n] = *kw;
        } else if (!optional) {
            cw_jfailr(r, "TypeError: %s '%s' needs an argument '%.*s'", what, b->name, (int)len,
                      name);
        }
    }
    if (args->n_pos > n) {
        cw_jfailr(r, "TypeError: %s '%s' takes at most %zu argument(s), got %zu", what, b->name, n,
                  args->n_pos);
    }
    for (size_t i = 0; used_kw < args->n_kw && i < args->n_kw; i++) {
        const struct cw_jstr *kw = args->kw[i].name;
        bool known = false;
        for (p = b->params; !known && next_parameter(&p, &name, &len, &optional);) {
            known = kw->len == len && memcmp(kw->data, name, len) == 0;
        }
        if (!known) {
            cw_jfailr(r, "TypeError: %s '%s' takes no argument '%.*s'", what, b->name, (int)kw->len,
                      kw->data);
        }
    }
}

struct cw_jval cw_jinvoke(struct cw_jrender *r, const char *what, const struct cw_jbuiltin *b,
                          struct cw_jval self, const struct cw_jargs *args) {
    struct cw_jval arg[CW_JMAX_PARAMS];
    if (b->params == NULL) {
        cw_jfailr(r, "the %s '%s' is not supported", what, b->name);
    }
    if (strcmp(b->params, "*") != 0) {
        bind(r, what, b, args, arg);
    }
    return b->call(r, self, arg, args);
}

bool cw_jcallable(struct cw_jval v) {
    return v.kind == CW_J_MACRO || v.kind == CW_J_FUNCTION || v.kind == CW_J_METHOD ||
           v.kind == CW_J_JOINER || v.kind == CW_J_LOOP || v.kind == CW_J_UNDEFINED;
}

struct cw_jval cw_jcall(struct cw_jrender *r, struct cw_jval callee, const struct cw_jargs *args) {
    struct cw_jcycler *joiner;
    cw_jcharge(r, 1);
    cw_jneed_defined(r, callee);
    switch (callee.kind) {
    case CW_J_MACRO:
        return cw_jmacro_call(r, callee.macro, args);
    case CW_J_FUNCTION:
        return cw_jinvoke(r, "function", callee.function, cw_jnone(), args);
    case CW_J_METHOD:
        return cw_jinvoke(r, "method", callee.method->builtin, callee.method->self, args);
    case CW_J_JOINER: /* nothing the first time, the separator from then on */
        joiner = callee.cycler;
        if (args->n_pos + args->n_kw > 0) {
            cw_jfailr(r, "TypeError: a joiner takes no arguments");
        }
        return joiner->at++ == 0 ? cw_jliteral(r, "") : joiner->items[0];
    case CW_J_LOOP:
        cw_jfailr(r, "recursive loops are not supported");
    default:
        cw_jfailr(r, "TypeError: '%s' object is not callable", cw_jtype_name(callee));
    }
}

struct cw_jval cw_japply_filter(struct cw_jrender *r, const struct cw_jstr *name,
                                struct cw_jval value, const struct cw_jargs *args) {
    const struct cw_jbuiltin *b = cw_jfilter_find(name);
    if (b == NULL) {
        cw_jfailr(r, "the filter '%.*s' is not supported", (int)name->len, name->data);
    }
    return cw_jinvoke(r, "filter", b, value, args);
}

bool cw_japply_test(struct cw_jrender *r, const struct cw_jstr *name, struct cw_jval value,
                    const struct cw_jargs *args) {
    const struct cw_jbuiltin *b = cw_jtest_find(name);
    if (b == NULL) {
        cw_jfailr(r, "the test '%.*s' is not supported", (int)name->len, name->data);
    }
    return cw_jtruth(r, cw_jinvoke(r, "test", b, value, args));
}
