/* SPDX-License-Identifier: MIT
 * Parsing expressions: literals first, then what binds most, up to the inline if (parse.h). */
#include "builtins.h"
#include "parse.h"

static struct cw_jnode *constant(struct cw_jparser *p, int line, struct cw_jval v) {
    struct cw_jnode *n = cw_jp_node(p, CW_JN_CONST, line);
    n->constant = v;
    return n;
}

static bool at_tuple_end(const struct cw_jparser *p, const char *end_name) {
    return p->tok.kind == CW_JT_OUTPUT_END || p->tok.kind == CW_JT_TAG_END || cw_jp_is_op(p, ")") ||
           (end_name != NULL && cw_jp_is_name(p, end_name));
}

struct cw_jnode *cw_jp_tuple(struct cw_jparser *p, struct cw_jnode *(*item)(struct cw_jparser *),
                             const char *end_name, bool in_brackets) {
    int line = p->tok.line;
    struct cw_jnode_list l = {0};
    bool is_tuple = false;
    while (!at_tuple_end(p, end_name)) {
        cw_jp_add(p, &l, item(p));
        if (!cw_jp_is_op(p, ",")) {
            break;
        }
        is_tuple = true;
        cw_jp_next(p);
    }
    if (!is_tuple) {
        if (l.n == 1) {
            return l.v[0];
        }
        if (!in_brackets) {
            cw_jp_unexpected(p, "an expression");
        }
    }
    struct cw_jnode *n = cw_jp_node(p, CW_JN_TUPLE, line);
    n->items = cw_jp_nodes(&l);
    return n;
}

static struct cw_jnode *parse_list(struct cw_jparser *p) {
    struct cw_jnode *n = cw_jp_node(p, CW_JN_LIST, p->tok.line);
    struct cw_jnode_list l = {0};
    cw_jp_next(p);
    while (!cw_jp_is_op(p, "]")) {
        if (l.n > 0) {
            cw_jp_expect_op(p, ",");
            if (cw_jp_is_op(p, "]")) {
                break;
            }
        }
        cw_jp_add(p, &l, cw_jp_expression(p));
    }
    cw_jp_next(p);
    n->items = cw_jp_nodes(&l);
    return n;
}

static struct cw_jnode *parse_dict(struct cw_jparser *p) {
    struct cw_jnode *n = cw_jp_node(p, CW_JN_DICT, p->tok.line);
    struct cw_jnode_list l = {0};
    cw_jp_next(p);
    while (!cw_jp_is_op(p, "}")) {
        if (l.n > 0) {
            cw_jp_expect_op(p, ",");
            if (cw_jp_is_op(p, "}")) {
                break;
            }
        }
        cw_jp_add(p, &l, cw_jp_expression(p));
        cw_jp_expect_op(p, ":");
        cw_jp_add(p, &l, cw_jp_expression(p));
    }
    cw_jp_next(p);
    n->items = cw_jp_nodes(&l);
    return n;
}

/* Adjacent string literals are one. */
static struct cw_jnode *parse_string(struct cw_jparser *p) {
    int line = p->tok.line;
    struct cw_jtoken first = p->tok;
    cw_jp_next(p);
    if (p->tok.kind != CW_JT_STRING) {
        return constant(p, line, cw_jstring(cw_jp_text(p, &first)));
    }
    struct cw_jbuild b = cw_jbuild_new(p->arena);
    cw_jbuild_add(&b, first.data, first.len, CW_JTEMPLATE);
    while (p->tok.kind == CW_JT_STRING) {
        cw_jbuild_add(&b, p->tok.data, p->tok.len, CW_JTEMPLATE);
        cw_jp_next(p);
    }
    return constant(p, line, cw_jstring(cw_jbuild_end(&b)));
}

static struct cw_jnode *parse_name(struct cw_jparser *p) {
    struct cw_jtoken t = cw_jp_take_name(p, "a name");
    if (cw_jp_token_is(&t, CW_JT_NAME, "true") || cw_jp_token_is(&t, CW_JT_NAME, "True")) {
        return constant(p, t.line, cw_jbool(true));
    }
    if (cw_jp_token_is(&t, CW_JT_NAME, "false") || cw_jp_token_is(&t, CW_JT_NAME, "False")) {
        return constant(p, t.line, cw_jbool(false));
    }
    if (cw_jp_token_is(&t, CW_JT_NAME, "none") || cw_jp_token_is(&t, CW_JT_NAME, "None")) {
        return constant(p, t.line, cw_jnone());
    }
    p->saw_caller |= cw_jp_token_is(&t, CW_JT_NAME, "caller");
    p->saw_varargs |= cw_jp_token_is(&t, CW_JT_NAME, "varargs");
    p->saw_kwargs |= cw_jp_token_is(&t, CW_JT_NAME, "kwargs");
    struct cw_jnode *n = cw_jp_node(p, CW_JN_NAME, t.line);
    n->name = cw_jp_name(p, &t);
    return n;
}

struct cw_jnode *cw_jp_primary(struct cw_jparser *p) {
    int line = p->tok.line;
    struct cw_jnode *n;
    switch (p->tok.kind) {
    case CW_JT_NAME:
        return parse_name(p);
    case CW_JT_STRING:
        return parse_string(p);
    case CW_JT_INT:
        n = constant(p, line, cw_jint(p->tok.i));
        cw_jp_next(p);
        return n;
    case CW_JT_FLOAT:
        n = constant(p, line, cw_jfloat(p->tok.f));
        cw_jp_next(p);
        return n;
    default:
        break;
    }
    cw_jp_enter(p);
    if (cw_jp_is_op(p, "(")) {
        cw_jp_next(p);
        n = cw_jp_tuple(p, cw_jp_expression, NULL, true);
        cw_jp_expect_op(p, ")");
    } else if (cw_jp_is_op(p, "[")) {
        n = parse_list(p);
    } else if (cw_jp_is_op(p, "{")) {
        n = parse_dict(p);
    } else {
        cw_jp_unexpected(p, "an expression");
    }
    cw_jp_leave(p);
    return n;
}

static struct cw_jcallargs parse_call_args(struct cw_jparser *p) {
    struct cw_jcallargs args = {0};
    struct cw_jnode_list pos = {0};
    size_t cap_kw = 0;
    bool first = true;
    cw_jp_enter(p);
    cw_jp_expect_op(p, "(");
    while (!cw_jp_is_op(p, ")")) {
        if (!first) {
            cw_jp_expect_op(p, ",");
            if (cw_jp_is_op(p, ")")) {
                break;
            }
        }
        first = false;
        bool is_kw = p->tok.kind == CW_JT_NAME && cw_jp_token_is(cw_jp_look(p), CW_JT_OP, "=");
        bool fits = true;
        if (cw_jp_skip_op(p, "**")) {
            fits = args.star_star == NULL;
            args.star_star = cw_jp_expression(p);
        } else if (cw_jp_skip_op(p, "*")) {
            fits = args.star == NULL && args.star_star == NULL;
            args.star = cw_jp_expression(p);
        } else if (is_kw) {
            fits = args.star_star == NULL;
            if (args.n_kw == cap_kw) {
                size_t cap = cap_kw == 0 ? 4 : cap_kw * 2;
                args.kw =
                    cw_jgrow(p->arena, args.kw, cap_kw * sizeof *args.kw, cap * sizeof *args.kw);
                cap_kw = cap;
            }
            const struct cw_jname *name = cw_jp_name(p, &p->tok);
            cw_jp_next(p);
            cw_jp_next(p);
            args.kw[args.n_kw++] = (struct cw_jkwnode){name, cw_jp_expression(p)};
        } else {
            fits = args.n_kw == 0 && args.star == NULL && args.star_star == NULL;
            cw_jp_add(p, &pos, cw_jp_expression(p));
        }
        if (!fits) {
            cw_jfail(p->guard, "arguments of a call in an order that cannot be");
        }
    }
    cw_jp_next(p);
    cw_jp_leave(p);
    args.pos = cw_jp_nodes(&pos);
    return args;
}

static struct cw_jnode *parse_call(struct cw_jparser *p, struct cw_jnode *callee) {
    struct cw_jnode *n = cw_jp_node(p, CW_JN_CALL, p->tok.line);
    n->call.callee = callee;
    n->call.args = parse_call_args(p);
    return n;
}

static bool at_subscript_end(const struct cw_jparser *p) {
    return cw_jp_is_op(p, "]") || cw_jp_is_op(p, ",");
}

/* What stands in brackets: a key, or start:stop:step. */
static struct cw_jnode *parse_subscript(struct cw_jparser *p) {
    struct cw_jnode *start = NULL;
    int line = p->tok.line;
    if (!cw_jp_is_op(p, ":")) {
        start = cw_jp_expression(p);
        if (!cw_jp_is_op(p, ":")) {
            return start;
        }
    }
    struct cw_jnode *n = cw_jp_node(p, CW_JN_SLICE, line);
    n->slice.start = start;
    cw_jp_next(p);
    if (!cw_jp_is_op(p, ":") && !at_subscript_end(p)) {
        n->slice.stop = cw_jp_expression(p);
    }
    if (cw_jp_skip_op(p, ":") && !at_subscript_end(p)) {
        n->slice.step = cw_jp_expression(p);
    }
    return n;
}

static struct cw_jnode *parse_item(struct cw_jparser *p, struct cw_jnode *object) {
    struct cw_jnode *n = cw_jp_node(p, CW_JN_ITEM, p->tok.line);
    struct cw_jnode_list keys = {0};
    cw_jp_enter(p);
    cw_jp_next(p);
    while (!cw_jp_is_op(p, "]")) {
        if (keys.n > 0) {
            cw_jp_expect_op(p, ",");
        }
        cw_jp_add(p, &keys, parse_subscript(p));
    }
    cw_jp_next(p);
    cw_jp_leave(p);
    n->item.object = object;
    if (keys.n == 1) {
        n->item.key = keys.v[0];
    } else {
        n->item.key = cw_jp_node(p, CW_JN_TUPLE, n->line);
        n->item.key->items = cw_jp_nodes(&keys);
    }
    return n;
}

static struct cw_jnode *parse_attr(struct cw_jparser *p, struct cw_jnode *object) {
    struct cw_jnode *n = cw_jp_node(p, CW_JN_ATTR, p->tok.line);
    cw_jp_next(p);
    n->item.object = object;
    if (p->tok.kind == CW_JT_NAME) {
        n->item.attr = cw_jp_text(p, &p->tok);
    } else if (p->tok.kind == CW_JT_INT) {
        n->kind = CW_JN_ITEM;
        n->item.key = constant(p, p->tok.line, cw_jint(p->tok.i));
    } else {
        cw_jp_unexpected(p, "a name or number behind '.'");
    }
    cw_jp_next(p);
    return n;
}

static struct cw_jnode *parse_postfix(struct cw_jparser *p, struct cw_jnode *n) {
    for (;;) {
        if (cw_jp_is_op(p, ".")) {
            n = parse_attr(p, n);
        } else if (cw_jp_is_op(p, "[")) {
            n = parse_item(p, n);
        } else if (cw_jp_is_op(p, "(")) {
            n = parse_call(p, n);
        } else {
            return n;
        }
    }
}

/* A filter's or test's name, which may hold dots. */
static const struct cw_jstr *parse_dotted(struct cw_jparser *p, const char *wanted) {
    struct cw_jtoken t = cw_jp_take_name(p, wanted);
    if (!cw_jp_is_op(p, ".")) {
        return cw_jp_text(p, &t);
    }
    struct cw_jbuild b = cw_jbuild_new(p->arena);
    cw_jbuild_add(&b, t.data, t.len, CW_JTEMPLATE);
    while (cw_jp_skip_op(p, ".")) {
        t = cw_jp_take_name(p, wanted);
        cw_jbuild_puts(&b, ".", CW_JTEMPLATE);
        cw_jbuild_add(&b, t.data, t.len, CW_JTEMPLATE);
    }
    return cw_jbuild_end(&b);
}

struct cw_jnode *cw_jp_filter(struct cw_jparser *p, struct cw_jnode *value) {
    struct cw_jnode *n = cw_jp_node(p, CW_JN_FILTER, p->tok.line);
    n->call.callee = value;
    n->call.name = parse_dotted(p, "the name of a filter");
    n->call.builtin = cw_jfilter_find(n->call.name);
    if (cw_jp_is_op(p, "(")) {
        n->call.args = parse_call_args(p);
    }
    return n;
}

static struct cw_jnode *parse_test(struct cw_jparser *p, struct cw_jnode *value) {
    struct cw_jnode *n = cw_jp_node(p, CW_JN_TEST, p->tok.line);
    cw_jp_next(p);
    bool negated = cw_jp_skip_name(p, "not");
    n->call.callee = value;
    n->call.name = parse_dotted(p, "the name of a test");
    n->call.builtin = cw_jtest_find(n->call.name);
    bool literal = p->tok.kind == CW_JT_STRING || p->tok.kind == CW_JT_INT ||
                   p->tok.kind == CW_JT_FLOAT || cw_jp_is_op(p, "[") || cw_jp_is_op(p, "{");
    bool name = p->tok.kind == CW_JT_NAME && !cw_jp_is_name(p, "else") && !cw_jp_is_name(p, "or") &&
                !cw_jp_is_name(p, "and");
    if (cw_jp_is_op(p, "(")) {
        n->call.args = parse_call_args(p);
    } else if (literal || name) {
        if (cw_jp_is_name(p, "is")) {
            cw_jfail(p->guard, "tests cannot be chained with 'is'");
        }
        struct cw_jnode_list l = {0};
        cw_jp_add(p, &l, parse_postfix(p, cw_jp_primary(p)));
        n->call.args.pos = cw_jp_nodes(&l);
    }
    if (negated) {
        struct cw_jnode *not_n = cw_jp_node(p, CW_JN_NOT, n->line);
        not_n->operand = n;
        return not_n;
    }
    return n;
}

static struct cw_jnode *parse_filters(struct cw_jparser *p, struct cw_jnode *n) {
    for (;;) {
        if (cw_jp_skip_op(p, "|")) {
            n = cw_jp_filter(p, n);
        } else if (cw_jp_is_name(p, "is")) {
            n = parse_test(p, n);
        } else if (cw_jp_is_op(p, "(")) {
            n = parse_call(p, n);
        } else {
            return n;
        }
    }
}

static struct cw_jnode *parse_unary(struct cw_jparser *p, bool with_filters) {
    struct cw_jnode *n;
    if (cw_jp_is_op(p, "-") || cw_jp_is_op(p, "+")) {
        n = cw_jp_node(p, cw_jp_is_op(p, "-") ? CW_JN_NEG : CW_JN_POS, p->tok.line);
        cw_jp_enter(p);
        cw_jp_next(p);
        n->operand = parse_unary(p, false);
        cw_jp_leave(p);
    } else {
        n = cw_jp_primary(p);
    }
    n = parse_postfix(p, n);
    return with_filters ? parse_filters(p, n) : n;
}

/* One rank of operators that group from the left: operands of `rank`, operators as `which` knows
 * them (-1: none). */
static struct cw_jnode *parse_chain(struct cw_jparser *p, enum cw_jnode_kind kind,
                                    struct cw_jnode *(*rank)(struct cw_jparser *),
                                    int (*which)(struct cw_jparser *)) {
    int line = p->tok.line;
    struct cw_jnode *first = rank(p);
    int op = which(p);
    if (op < 0) {
        return first;
    }
    struct cw_jnode_list l = {0};
    enum cw_jop *ops = NULL;
    size_t n_ops = 0, cap = 0;
    cw_jp_add(p, &l, first);
    for (; op >= 0; op = which(p)) {
        if (n_ops == cap) {
            size_t more = cap == 0 ? 4 : cap * 2;
            ops = cw_jgrow(p->arena, ops, cap * sizeof *ops, more * sizeof *ops);
            cap = more;
        }
        ops[n_ops++] = (enum cw_jop)op;
        cw_jp_add(p, &l, rank(p));
    }
    struct cw_jnode *n = cw_jp_node(p, kind, line);
    n->chain.items = cw_jp_nodes(&l);
    n->chain.ops = ops;
    return n;
}

/* Take the operator, if the token is one of these. */
static int take_op(struct cw_jparser *p, const char *const *spellings, const enum cw_jop *ops,
                   size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (cw_jp_skip_op(p, spellings[i])) {
            return (int)ops[i];
        }
    }
    return -1;
}

static int power_op(struct cw_jparser *p) {
    return cw_jp_skip_op(p, "**") ? CW_JOP_POW : -1;
}

static int product_op(struct cw_jparser *p) {
    static const char *const spellings[] = {"*", "/", "//", "%"};
    static const enum cw_jop ops[] = {CW_JOP_MUL, CW_JOP_DIV, CW_JOP_FLOORDIV, CW_JOP_MOD};
    return take_op(p, spellings, ops, 4);
}

static int sum_op(struct cw_jparser *p) {
    static const char *const spellings[] = {"+", "-"};
    static const enum cw_jop ops[] = {CW_JOP_ADD, CW_JOP_SUB};
    return take_op(p, spellings, ops, 2);
}

static int compare_op(struct cw_jparser *p) {
    static const char *const spellings[] = {"==", "!=", "<", "<=", ">", ">="};
    static const enum cw_jop ops[] = {CW_JOP_EQ, CW_JOP_NE, CW_JOP_LT,
                                      CW_JOP_LE, CW_JOP_GT, CW_JOP_GE};
    if (cw_jp_skip_name(p, "in")) {
        return CW_JOP_IN;
    }
    if (cw_jp_is_name(p, "not") && cw_jp_token_is(cw_jp_look(p), CW_JT_NAME, "in")) {
        cw_jp_next(p);
        cw_jp_next(p);
        return CW_JOP_NOT_IN;
    }
    return take_op(p, spellings, ops, 6);
}

static struct cw_jnode *parse_signed(struct cw_jparser *p) {
    return parse_unary(p, true);
}

static struct cw_jnode *parse_power(struct cw_jparser *p) {
    return parse_chain(p, CW_JN_CHAIN, parse_signed, power_op);
}

static struct cw_jnode *parse_product(struct cw_jparser *p) {
    return parse_chain(p, CW_JN_CHAIN, parse_power, product_op);
}

/* Operands of one operator that takes any number of them: `word` or, if NULL, '~'. */
static struct cw_jnode *parse_many(struct cw_jparser *p, enum cw_jnode_kind kind,
                                   struct cw_jnode *(*rank)(struct cw_jparser *),
                                   const char *word) {
    int line = p->tok.line;
    struct cw_jnode *first = rank(p);
    struct cw_jnode_list l = {0};
    while (word != NULL ? cw_jp_skip_name(p, word) : cw_jp_skip_op(p, "~")) {
        if (l.n == 0) {
            cw_jp_add(p, &l, first);
        }
        cw_jp_add(p, &l, rank(p));
    }
    if (l.n == 0) {
        return first;
    }
    struct cw_jnode *n = cw_jp_node(p, kind, line);
    n->items = cw_jp_nodes(&l);
    return n;
}

static struct cw_jnode *parse_concat(struct cw_jparser *p) {
    return parse_many(p, CW_JN_CONCAT, parse_product, NULL);
}

static struct cw_jnode *parse_sum(struct cw_jparser *p) {
    return parse_chain(p, CW_JN_CHAIN, parse_concat, sum_op);
}

static struct cw_jnode *parse_not(struct cw_jparser *p) {
    if (!cw_jp_is_name(p, "not")) {
        return parse_chain(p, CW_JN_COMPARE, parse_sum, compare_op);
    }
    struct cw_jnode *n = cw_jp_node(p, CW_JN_NOT, p->tok.line);
    cw_jp_enter(p);
    cw_jp_next(p);
    n->operand = parse_not(p);
    cw_jp_leave(p);
    return n;
}

static struct cw_jnode *parse_and(struct cw_jparser *p) {
    return parse_many(p, CW_JN_AND, parse_not, "and");
}

struct cw_jnode *cw_jp_or(struct cw_jparser *p) {
    return parse_many(p, CW_JN_OR, parse_and, "or");
}

struct cw_jnode *cw_jp_expression(struct cw_jparser *p) {
    cw_jp_enter(p);
    int line = p->tok.line;
    struct cw_jnode *n = cw_jp_or(p);
    while (cw_jp_skip_name(p, "if")) {
        struct cw_jnode *cond = cw_jp_node(p, CW_JN_COND, line);
        cond->cond.then = n;
        cond->cond.test = cw_jp_or(p);
        if (cw_jp_skip_name(p, "else")) {
            cond->cond.otherwise = cw_jp_expression(p);
        }
        n = cond;
    }
    cw_jp_leave(p);
    return n;
}
