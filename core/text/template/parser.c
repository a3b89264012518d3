/* SPDX-License-Identifier: MIT
 *
 * Tokens to tree, by recursive descent: the grammar of Jinja's template language, without
 * inheritance and inclusion, which a chat template cannot use.
 */
#include <stdlib.h>
#include <string.h>

#include "builtins.h"
#include "lexer.h"

enum { MAX_DEPTH = 128 }; /* of nested expressions and blocks */

struct parser {
    struct cw_template *t;
    struct cw_jguard *guard;
    struct cw_jarena *arena;
    struct cw_jlexer lexer;
    struct cw_jtoken tok;   /* the one to look at */
    struct cw_jtoken ahead; /* the one behind it, if has_ahead */
    bool has_ahead;
    int depth;
    int loops;                                /* that break and continue would leave from here */
    bool saw_caller, saw_varargs, saw_kwargs; /* names that make a macro take these */
};

struct list {
    struct cw_jnode **v;
    size_t n, cap;
};

static struct cw_jnode *parse_expression(struct parser *p);
static struct cw_jnode *parse_or(struct parser *p);
static struct cw_jnode *parse_unary(struct parser *p, bool with_filters);
static struct cw_jnodes parse_body(struct parser *p, const char *const *ends);

/* ------------------------------------------------------------------ tokens and nodes */

static void next(struct parser *p) {
    if (p->has_ahead) {
        p->tok = p->ahead;
        p->has_ahead = false;
    } else {
        cw_jlex_next(&p->lexer, &p->tok);
    }
    p->guard->line = p->tok.line;
}

static const struct cw_jtoken *look(struct parser *p) {
    if (!p->has_ahead) {
        cw_jlex_next(&p->lexer, &p->ahead);
        p->has_ahead = true;
        p->guard->line = p->tok.line;
    }
    return &p->ahead;
}

static bool token_is(const struct cw_jtoken *t, enum cw_jtoken_kind kind, const char *s) {
    return t->kind == kind && t->len == strlen(s) && memcmp(t->data, s, t->len) == 0;
}

static bool is_op(const struct parser *p, const char *s) {
    return token_is(&p->tok, CW_JT_OP, s);
}

static bool is_name(const struct parser *p, const char *s) {
    return token_is(&p->tok, CW_JT_NAME, s);
}

static bool skip_op(struct parser *p, const char *s) {
    bool hit = is_op(p, s);
    if (hit) {
        next(p);
    }
    return hit;
}

static bool skip_name(struct parser *p, const char *s) {
    bool hit = is_name(p, s);
    if (hit) {
        next(p);
    }
    return hit;
}

static _Noreturn void fail_unexpected(struct parser *p, const char *wanted) {
    const struct cw_jtoken *t = &p->tok;
    const char *what = "";
    int n = t->len < 40 ? (int)t->len : 40;
    switch (t->kind) {
    case CW_JT_END:
        cw_jfail(p->guard, "the template ends where %s should be", wanted);
    case CW_JT_OUTPUT_END:
    case CW_JT_TAG_END:
        what = "the end of the tag ";
        break;
    case CW_JT_STRING:
        what = "the string ";
        break;
    case CW_JT_INT:
    case CW_JT_FLOAT:
        cw_jfail(p->guard, "expected %s, found a number", wanted);
    default:
        break;
    }
    cw_jfail(p->guard, "expected %s, found %s'%.*s'", wanted, what, n, t->data);
}

static void expect_op(struct parser *p, const char *s) {
    if (!skip_op(p, s)) {
        char wanted[8] = {'\'', s[0], '\'', '\0'};
        fail_unexpected(p, wanted);
    }
}

static void expect_tag_end(struct parser *p) {
    if (p->tok.kind != CW_JT_TAG_END) {
        fail_unexpected(p, "'%}'");
    }
    next(p);
}

static void enter(struct parser *p) {
    if (++p->depth > MAX_DEPTH) {
        cw_jfail(p->guard, "nested deeper than %d levels", MAX_DEPTH);
    }
}

static void leave(struct parser *p) {
    p->depth--;
}

static struct cw_jnode *new_node(struct parser *p, enum cw_jnode_kind kind, int line) {
    struct cw_jnode *n = cw_jalloc(p->arena, sizeof *n);
    memset(n, 0, sizeof *n);
    n->kind = kind;
    n->line = line;
    return n;
}

static void add(struct parser *p, struct list *l, struct cw_jnode *n) {
    if (l->n == l->cap) {
        size_t cap = l->cap == 0 ? 4 : l->cap * 2;
        l->v = cw_jgrow(p->arena, l->v, l->cap * sizeof *l->v, cap * sizeof *l->v);
        l->cap = cap;
    }
    l->v[l->n++] = n;
}

static struct cw_jnodes nodes_of(const struct list *l) {
    return (struct cw_jnodes){l->v, l->n};
}

static const struct cw_jstr *text_of(struct parser *p, const struct cw_jtoken *t) {
    return cw_jstr_new(p->arena, t->data, t->len, &cw_jtemplate_run);
}

static const struct cw_jname *name_of(struct parser *p, const struct cw_jtoken *t) {
    return cw_jname_intern(p->t, t->data, t->len);
}

/* Take a name token; its text or, interned, its name. */
static struct cw_jtoken take_name(struct parser *p, const char *wanted) {
    if (p->tok.kind != CW_JT_NAME) {
        fail_unexpected(p, wanted);
    }
    struct cw_jtoken t = p->tok;
    next(p);
    return t;
}

/* ------------------------------------------------------------------ expressions */

static struct cw_jnode *constant(struct parser *p, int line, struct cw_jval v) {
    struct cw_jnode *n = new_node(p, CW_JN_CONST, line);
    n->constant = v;
    return n;
}

static bool at_tuple_end(const struct parser *p, const char *end_name) {
    return p->tok.kind == CW_JT_OUTPUT_END || p->tok.kind == CW_JT_TAG_END || is_op(p, ")") ||
           (end_name != NULL && is_name(p, end_name));
}

/* a, b, c - or a alone, which is no tuple. item parses an element; end_name is a keyword that ends
 * the list; only in brackets may it be empty. */
static struct cw_jnode *parse_tuple(struct parser *p, struct cw_jnode *(*item)(struct parser *),
                                    const char *end_name, bool in_brackets) {
    int line = p->tok.line;
    struct list l = {0};
    bool is_tuple = false;
    while (!at_tuple_end(p, end_name)) {
        add(p, &l, item(p));
        if (!is_op(p, ",")) {
            break;
        }
        is_tuple = true;
        next(p);
    }
    if (!is_tuple) {
        if (l.n == 1) {
            return l.v[0];
        }
        if (!in_brackets) {
            fail_unexpected(p, "an expression");
        }
    }
    struct cw_jnode *n = new_node(p, CW_JN_TUPLE, line);
    n->items = nodes_of(&l);
    return n;
}

static struct cw_jnode *parse_list(struct parser *p) {
    struct cw_jnode *n = new_node(p, CW_JN_LIST, p->tok.line);
    struct list l = {0};
    next(p);
    while (!is_op(p, "]")) {
        if (l.n > 0) {
            expect_op(p, ",");
            if (is_op(p, "]")) {
                break;
            }
        }
        add(p, &l, parse_expression(p));
    }
    next(p);
    n->items = nodes_of(&l);
    return n;
}

static struct cw_jnode *parse_dict(struct parser *p) {
    struct cw_jnode *n = new_node(p, CW_JN_DICT, p->tok.line);
    struct list l = {0};
    next(p);
    while (!is_op(p, "}")) {
        if (l.n > 0) {
            expect_op(p, ",");
            if (is_op(p, "}")) {
                break;
            }
        }
        add(p, &l, parse_expression(p));
        expect_op(p, ":");
        add(p, &l, parse_expression(p));
    }
    next(p);
    n->items = nodes_of(&l);
    return n;
}

/* Adjacent string literals are one. */
static struct cw_jnode *parse_string(struct parser *p) {
    int line = p->tok.line;
    struct cw_jtoken first = p->tok;
    next(p);
    if (p->tok.kind != CW_JT_STRING) {
        return constant(p, line, cw_jstring(text_of(p, &first)));
    }
    struct cw_jbuild b = cw_jbuild_new(p->arena);
    cw_jbuild_add(&b, first.data, first.len, CW_JTEMPLATE);
    while (p->tok.kind == CW_JT_STRING) {
        cw_jbuild_add(&b, p->tok.data, p->tok.len, CW_JTEMPLATE);
        next(p);
    }
    return constant(p, line, cw_jstring(cw_jbuild_end(&b)));
}

static struct cw_jnode *parse_name(struct parser *p) {
    struct cw_jtoken t = take_name(p, "a name");
    if (token_is(&t, CW_JT_NAME, "true") || token_is(&t, CW_JT_NAME, "True")) {
        return constant(p, t.line, cw_jbool(true));
    }
    if (token_is(&t, CW_JT_NAME, "false") || token_is(&t, CW_JT_NAME, "False")) {
        return constant(p, t.line, cw_jbool(false));
    }
    if (token_is(&t, CW_JT_NAME, "none") || token_is(&t, CW_JT_NAME, "None")) {
        return constant(p, t.line, cw_jnone());
    }
    p->saw_caller |= token_is(&t, CW_JT_NAME, "caller");
    p->saw_varargs |= token_is(&t, CW_JT_NAME, "varargs");
    p->saw_kwargs |= token_is(&t, CW_JT_NAME, "kwargs");
    struct cw_jnode *n = new_node(p, CW_JN_NAME, t.line);
    n->name = name_of(p, &t);
    return n;
}

static struct cw_jnode *parse_primary(struct parser *p) {
    int line = p->tok.line;
    struct cw_jnode *n;
    switch (p->tok.kind) {
    case CW_JT_NAME:
        return parse_name(p);
    case CW_JT_STRING:
        return parse_string(p);
    case CW_JT_INT:
        n = constant(p, line, cw_jint(p->tok.i));
        next(p);
        return n;
    case CW_JT_FLOAT:
        n = constant(p, line, cw_jfloat(p->tok.f));
        next(p);
        return n;
    default:
        break;
    }
    enter(p);
    if (is_op(p, "(")) {
        next(p);
        n = parse_tuple(p, parse_expression, NULL, true);
        expect_op(p, ")");
    } else if (is_op(p, "[")) {
        n = parse_list(p);
    } else if (is_op(p, "{")) {
        n = parse_dict(p);
    } else {
        fail_unexpected(p, "an expression");
    }
    leave(p);
    return n;
}

static struct cw_jcallargs parse_call_args(struct parser *p) {
    struct cw_jcallargs args = {0};
    struct list pos = {0};
    size_t cap_kw = 0;
    bool first = true;
    enter(p);
    expect_op(p, "(");
    while (!is_op(p, ")")) {
        if (!first) {
            expect_op(p, ",");
            if (is_op(p, ")")) {
                break;
            }
        }
        first = false;
        bool is_kw = p->tok.kind == CW_JT_NAME && token_is(look(p), CW_JT_OP, "=");
        bool fits = true;
        if (skip_op(p, "**")) {
            fits = args.star_star == NULL;
            args.star_star = parse_expression(p);
        } else if (skip_op(p, "*")) {
            fits = args.star == NULL && args.star_star == NULL;
            args.star = parse_expression(p);
        } else if (is_kw) {
            fits = args.star_star == NULL;
            if (args.n_kw == cap_kw) {
                size_t cap = cap_kw == 0 ? 4 : cap_kw * 2;
                args.kw =
                    cw_jgrow(p->arena, args.kw, cap_kw * sizeof *args.kw, cap * sizeof *args.kw);
                cap_kw = cap;
            }
            const struct cw_jname *name = name_of(p, &p->tok);
            next(p);
            next(p);
            args.kw[args.n_kw++] = (struct cw_jkwnode){name, parse_expression(p)};
        } else {
            fits = args.n_kw == 0 && args.star == NULL && args.star_star == NULL;
            add(p, &pos, parse_expression(p));
        }
        if (!fits) {
            cw_jfail(p->guard, "arguments of a call in an order that cannot be");
        }
    }
    next(p);
    leave(p);
    args.pos = nodes_of(&pos);
    return args;
}

static struct cw_jnode *parse_call(struct parser *p, struct cw_jnode *callee) {
    struct cw_jnode *n = new_node(p, CW_JN_CALL, p->tok.line);
    n->call.callee = callee;
    n->call.args = parse_call_args(p);
    return n;
}

static bool at_subscript_end(const struct parser *p) {
    return is_op(p, "]") || is_op(p, ",");
}

/* What stands in brackets: a key, or start:stop:step. */
static struct cw_jnode *parse_subscript(struct parser *p) {
    struct cw_jnode *start = NULL;
    int line = p->tok.line;
    if (!is_op(p, ":")) {
        start = parse_expression(p);
        if (!is_op(p, ":")) {
            return start;
        }
    }
    struct cw_jnode *n = new_node(p, CW_JN_SLICE, line);
    n->slice.start = start;
    next(p);
    if (!is_op(p, ":") && !at_subscript_end(p)) {
        n->slice.stop = parse_expression(p);
    }
    if (skip_op(p, ":") && !at_subscript_end(p)) {
        n->slice.step = parse_expression(p);
    }
    return n;
}

static struct cw_jnode *parse_item(struct parser *p, struct cw_jnode *object) {
    struct cw_jnode *n = new_node(p, CW_JN_ITEM, p->tok.line);
    struct list keys = {0};
    enter(p);
    next(p);
    while (!is_op(p, "]")) {
        if (keys.n > 0) {
            expect_op(p, ",");
        }
        add(p, &keys, parse_subscript(p));
    }
    next(p);
    leave(p);
    n->item.object = object;
    if (keys.n == 1) {
        n->item.key = keys.v[0];
    } else {
        n->item.key = new_node(p, CW_JN_TUPLE, n->line);
        n->item.key->items = nodes_of(&keys);
    }
    return n;
}

static struct cw_jnode *parse_attr(struct parser *p, struct cw_jnode *object) {
    struct cw_jnode *n = new_node(p, CW_JN_ATTR, p->tok.line);
    next(p);
    n->item.object = object;
    if (p->tok.kind == CW_JT_NAME) {
        n->item.attr = text_of(p, &p->tok);
    } else if (p->tok.kind == CW_JT_INT) {
        n->kind = CW_JN_ITEM;
        n->item.key = constant(p, p->tok.line, cw_jint(p->tok.i));
    } else {
        fail_unexpected(p, "a name or number behind '.'");
    }
    next(p);
    return n;
}

static struct cw_jnode *parse_postfix(struct parser *p, struct cw_jnode *n) {
    for (;;) {
        if (is_op(p, ".")) {
            n = parse_attr(p, n);
        } else if (is_op(p, "[")) {
            n = parse_item(p, n);
        } else if (is_op(p, "(")) {
            n = parse_call(p, n);
        } else {
            return n;
        }
    }
}

/* A filter's or test's name, which may hold dots. */
static const struct cw_jstr *parse_dotted(struct parser *p, const char *wanted) {
    struct cw_jtoken t = take_name(p, wanted);
    if (!is_op(p, ".")) {
        return text_of(p, &t);
    }
    struct cw_jbuild b = cw_jbuild_new(p->arena);
    cw_jbuild_add(&b, t.data, t.len, CW_JTEMPLATE);
    while (skip_op(p, ".")) {
        t = take_name(p, wanted);
        cw_jbuild_puts(&b, ".", CW_JTEMPLATE);
        cw_jbuild_add(&b, t.data, t.len, CW_JTEMPLATE);
    }
    return cw_jbuild_end(&b);
}

static struct cw_jnode *parse_filter(struct parser *p, struct cw_jnode *value) {
    struct cw_jnode *n = new_node(p, CW_JN_FILTER, p->tok.line);
    n->call.callee = value;
    n->call.name = parse_dotted(p, "the name of a filter");
    n->call.builtin = cw_jfilter_find(n->call.name);
    if (is_op(p, "(")) {
        n->call.args = parse_call_args(p);
    }
    return n;
}

static struct cw_jnode *parse_test(struct parser *p, struct cw_jnode *value) {
    struct cw_jnode *n = new_node(p, CW_JN_TEST, p->tok.line);
    next(p);
    bool negated = skip_name(p, "not");
    n->call.callee = value;
    n->call.name = parse_dotted(p, "the name of a test");
    n->call.builtin = cw_jtest_find(n->call.name);
    bool literal = p->tok.kind == CW_JT_STRING || p->tok.kind == CW_JT_INT ||
                   p->tok.kind == CW_JT_FLOAT || is_op(p, "[") || is_op(p, "{");
    bool name =
        p->tok.kind == CW_JT_NAME && !is_name(p, "else") && !is_name(p, "or") && !is_name(p, "and");
    if (is_op(p, "(")) {
        n->call.args = parse_call_args(p);
    } else if (literal || name) {
        if (is_name(p, "is")) {
            cw_jfail(p->guard, "tests cannot be chained with 'is'");
        }
        struct list l = {0};
        add(p, &l, parse_postfix(p, parse_primary(p)));
        n->call.args.pos = nodes_of(&l);
    }
    if (negated) {
        struct cw_jnode *not_n = new_node(p, CW_JN_NOT, n->line);
        not_n->operand = n;
        return not_n;
    }
    return n;
}

static struct cw_jnode *parse_filters(struct parser *p, struct cw_jnode *n) {
    for (;;) {
        if (skip_op(p, "|")) {
            n = parse_filter(p, n);
        } else if (is_name(p, "is")) {
            n = parse_test(p, n);
        } else if (is_op(p, "(")) {
            n = parse_call(p, n);
        } else {
            return n;
        }
    }
}

static struct cw_jnode *parse_unary(struct parser *p, bool with_filters) {
    struct cw_jnode *n;
    if (is_op(p, "-") || is_op(p, "+")) {
        n = new_node(p, is_op(p, "-") ? CW_JN_NEG : CW_JN_POS, p->tok.line);
        enter(p);
        next(p);
        n->operand = parse_unary(p, false);
        leave(p);
    } else {
        n = parse_primary(p);
    }
    n = parse_postfix(p, n);
    return with_filters ? parse_filters(p, n) : n;
}

/* One rank of operators that group from the left: operands of `rank`, operators as `which` knows
 * them (-1: none). */
static struct cw_jnode *parse_chain(struct parser *p, enum cw_jnode_kind kind,
                                    struct cw_jnode *(*rank)(struct parser *),
                                    int (*which)(struct parser *)) {
    int line = p->tok.line;
    struct cw_jnode *first = rank(p);
    int op = which(p);
    if (op < 0) {
        return first;
    }
    struct list l = {0};
    enum cw_jop *ops = NULL;
    size_t n_ops = 0, cap = 0;
    add(p, &l, first);
    for (; op >= 0; op = which(p)) {
        if (n_ops == cap) {
            size_t more = cap == 0 ? 4 : cap * 2;
            ops = cw_jgrow(p->arena, ops, cap * sizeof *ops, more * sizeof *ops);
            cap = more;
        }
        ops[n_ops++] = (enum cw_jop)op;
        add(p, &l, rank(p));
    }
    struct cw_jnode *n = new_node(p, kind, line);
    n->chain.items = nodes_of(&l);
    n->chain.ops = ops;
    return n;
}

/* Take the operator, if the token is one of these. */
static int take_op(struct parser *p, const char *const *spellings, const enum cw_jop *ops,
                   size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (skip_op(p, spellings[i])) {
            return (int)ops[i];
        }
    }
    return -1;
}

static int power_op(struct parser *p) {
    return skip_op(p, "**") ? CW_JOP_POW : -1;
}

static int product_op(struct parser *p) {
    static const char *const spellings[] = {"*", "/", "//", "%"};
    static const enum cw_jop ops[] = {CW_JOP_MUL, CW_JOP_DIV, CW_JOP_FLOORDIV, CW_JOP_MOD};
    return take_op(p, spellings, ops, 4);
}

static int sum_op(struct parser *p) {
    static const char *const spellings[] = {"+", "-"};
    static const enum cw_jop ops[] = {CW_JOP_ADD, CW_JOP_SUB};
    return take_op(p, spellings, ops, 2);
}

static int compare_op(struct parser *p) {
    static const char *const spellings[] = {"==", "!=", "<", "<=", ">", ">="};
    static const enum cw_jop ops[] = {CW_JOP_EQ, CW_JOP_NE, CW_JOP_LT,
                                      CW_JOP_LE, CW_JOP_GT, CW_JOP_GE};
    if (skip_name(p, "in")) {
        return CW_JOP_IN;
    }
    if (is_name(p, "not") && token_is(look(p), CW_JT_NAME, "in")) {
        next(p);
        next(p);
        return CW_JOP_NOT_IN;
    }
    return take_op(p, spellings, ops, 6);
}

static struct cw_jnode *parse_signed(struct parser *p) {
    return parse_unary(p, true);
}

static struct cw_jnode *parse_power(struct parser *p) {
    return parse_chain(p, CW_JN_CHAIN, parse_signed, power_op);
}

static struct cw_jnode *parse_product(struct parser *p) {
    return parse_chain(p, CW_JN_CHAIN, parse_power, product_op);
}

/* Operands of one operator that takes any number of them: `word` or, if NULL, '~'. */
static struct cw_jnode *parse_many(struct parser *p, enum cw_jnode_kind kind,
                                   struct cw_jnode *(*rank)(struct parser *), const char *word) {
    int line = p->tok.line;
    struct cw_jnode *first = rank(p);
    struct list l = {0};
    while (word != NULL ? skip_name(p, word) : skip_op(p, "~")) {
        if (l.n == 0) {
            add(p, &l, first);
        }
        add(p, &l, rank(p));
    }
    if (l.n == 0) {
        return first;
    }
    struct cw_jnode *n = new_node(p, kind, line);
    n->items = nodes_of(&l);
    return n;
}

static struct cw_jnode *parse_concat(struct parser *p) {
    return parse_many(p, CW_JN_CONCAT, parse_product, NULL);
}

static struct cw_jnode *parse_sum(struct parser *p) {
    return parse_chain(p, CW_JN_CHAIN, parse_concat, sum_op);
}

static struct cw_jnode *parse_not(struct parser *p) {
    if (!is_name(p, "not")) {
        return parse_chain(p, CW_JN_COMPARE, parse_sum, compare_op);
    }
    struct cw_jnode *n = new_node(p, CW_JN_NOT, p->tok.line);
    enter(p);
    next(p);
    n->operand = parse_not(p);
    leave(p);
    return n;
}

static struct cw_jnode *parse_and(struct parser *p) {
    return parse_many(p, CW_JN_AND, parse_not, "and");
}

static struct cw_jnode *parse_or(struct parser *p) {
    return parse_many(p, CW_JN_OR, parse_and, "or");
}

static struct cw_jnode *parse_expression(struct parser *p) {
    enter(p);
    int line = p->tok.line;
    struct cw_jnode *n = parse_or(p);
    while (skip_name(p, "if")) {
        struct cw_jnode *cond = new_node(p, CW_JN_COND, line);
        cond->cond.then = n;
        cond->cond.test = parse_or(p);
        if (skip_name(p, "else")) {
            cond->cond.otherwise = parse_expression(p);
        }
        n = cond;
    }
    leave(p);
    return n;
}

/* ------------------------------------------------------------------ statements */

static void need_name(struct parser *p, const char *word) {
    if (!skip_name(p, word)) {
        char wanted[32] = "'";
        strncat(wanted, word, 20);
        strcat(wanted, "'");
        fail_unexpected(p, wanted);
    }
}

/* Names that are literals cannot be assigned to. */
static void check_target(struct parser *p, const struct cw_jnode *n) {
    if (n->kind == CW_JN_TUPLE) {
        for (size_t i = 0; i < n->items.n; i++) {
            check_target(p, n->items.v[i]);
        }
    } else if (n->kind != CW_JN_NAME && n->kind != CW_JN_NSREF) {
        cw_jfail(p->guard, "this cannot be assigned to");
    }
}

/* A name, or name.attribute. */
static struct cw_jnode *parse_set_item(struct parser *p) {
    if (p->tok.kind == CW_JT_NAME && token_is(look(p), CW_JT_OP, ".")) {
        struct cw_jnode *n = new_node(p, CW_JN_NSREF, p->tok.line);
        n->nsref.name = name_of(p, &p->tok);
        next(p);
        next(p);
        struct cw_jtoken attr = take_name(p, "a name");
        n->nsref.attr = text_of(p, &attr);
        return n;
    }
    return parse_primary(p);
}

static struct cw_jnode *parse_target(struct parser *p, struct cw_jnode *(*item)(struct parser *),
                                     const char *end_name) {
    struct cw_jnode *n = parse_tuple(p, item, end_name, false);
    check_target(p, n);
    return n;
}

/* The body of a tag up to {% end %}, which is taken with it. */
static struct cw_jnodes parse_block(struct parser *p, const char *end) {
    const char *ends[] = {end, NULL};
    struct cw_jnodes body = parse_body(p, ends);
    next(p);
    return body;
}

static struct cw_jnode *parse_for(struct parser *p, struct cw_jnode *n) {
    static const char *const ends[] = {"endfor", "else", NULL};
    n->kind = CW_JN_FOR;
    n->loop.target = parse_target(p, parse_primary, "in");
    need_name(p, "in");
    n->loop.iter = parse_tuple(p, parse_or, "recursive", false);
    if (skip_name(p, "if")) {
        n->loop.filter = parse_expression(p);
    }
    if (is_name(p, "recursive")) {
        cw_jfail(p->guard, "recursive loops are not supported");
    }
    p->loops++;
    n->loop.body = parse_body(p, ends);
    p->loops--;
    bool has_else = is_name(p, "else");
    next(p);
    if (has_else) {
        n->loop.otherwise = parse_block(p, "endfor");
    }
    return n;
}

static struct cw_jnode *parse_if(struct parser *p, struct cw_jnode *n) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    size_t cap = 0;
    bool more = true;
    n->kind = CW_JN_IF;
    while (more) {
        if (n->cond_block.n == cap) {
            size_t room = cap == 0 ? 2 : cap * 2;
            n->cond_block.branches =
                cw_jgrow(p->arena, n->cond_block.branches, cap * sizeof *n->cond_block.branches,
                         room * sizeof *n->cond_block.branches);
            cap = room;
        }
        struct cw_jbranch *b = &n->cond_block.branches[n->cond_block.n++];
        b->test = parse_tuple(p, parse_or, NULL, false);
        b->body = parse_body(p, ends);
        more = is_name(p, "elif");
        bool has_else = is_name(p, "else");
        next(p);
        if (has_else) {
            struct cw_jbranch *grown =
                cw_jalloc_array(p->arena, n->cond_block.n + 1, sizeof *grown);
            memcpy(grown, n->cond_block.branches, n->cond_block.n * sizeof *grown);
            n->cond_block.branches = grown;
            grown[n->cond_block.n++] =
                (struct cw_jbranch){.test = NULL, .body = parse_block(p, "endif")};
        }
    }
    return n;
}

/* | filter | filter ..., applied to a block. */
static struct cw_jnodes parse_block_filters(struct parser *p, bool bar_first) {
    struct list l = {0};
    while (!bar_first || skip_op(p, "|")) {
        bar_first = true;
        add(p, &l, parse_filter(p, NULL));
    }
    return nodes_of(&l);
}

static struct cw_jnode *parse_set(struct parser *p, struct cw_jnode *n) {
    n->kind = CW_JN_SET;
    n->set.target = parse_target(p, parse_set_item, NULL);
    if (skip_op(p, "=")) {
        n->set.value = parse_tuple(p, parse_expression, NULL, false);
        return n;
    }
    n->kind = CW_JN_SET_BLOCK;
    n->set.filters = parse_block_filters(p, true);
    n->set.body = parse_block(p, "endset");
    return n;
}

static void parse_signature(struct parser *p, struct cw_jroutine *routine) {
    size_t cap = 0;
    expect_op(p, "(");
    while (!is_op(p, ")")) {
        if (routine->n_params > 0) {
            expect_op(p, ",");
        }
        if (routine->n_params == cap) {
            size_t room = cap == 0 ? 4 : cap * 2;
            routine->params = cw_jgrow(p->arena, routine->params, cap * sizeof *routine->params,
                                       room * sizeof *routine->params);
            routine->defaults =
                cw_jgrow(p->arena, routine->defaults, cap * sizeof *routine->defaults,
                         room * sizeof *routine->defaults);
            cap = room;
        }
        struct cw_jtoken t = take_name(p, "a parameter");
        size_t i = routine->n_params++;
        routine->params[i] = name_of(p, &t);
        routine->defaults[i] = skip_op(p, "=") ? parse_expression(p) : NULL;
        if (i > 0 && routine->defaults[i] == NULL && routine->defaults[i - 1] != NULL) {
            cw_jfail(p->guard, "a parameter without default behind one with");
        }
    }
    next(p);
}

/* The body of a macro or call block: loops around it cannot be left from within, and the names it
 * mentions say what it takes beyond its parameters. */
static void parse_routine_body(struct parser *p, struct cw_jroutine *routine, const char *end) {
    int loops = p->loops;
    bool caller = p->saw_caller, varargs = p->saw_varargs, kwargs = p->saw_kwargs;
    p->loops = 0;
    p->saw_caller = p->saw_varargs = p->saw_kwargs = false;
    routine->body = parse_block(p, end);
    routine->uses_caller = p->saw_caller;
    routine->uses_varargs = p->saw_varargs;
    routine->uses_kwargs = p->saw_kwargs;
    p->loops = loops;
    p->saw_caller |= caller;
    p->saw_varargs |= varargs;
    p->saw_kwargs |= kwargs;
}

static struct cw_jnode *parse_macro(struct parser *p, struct cw_jnode *n) {
    n->kind = CW_JN_MACRO;
    struct cw_jtoken t = take_name(p, "the macro's name");
    char *name = cw_jalloc(p->arena, t.len + 1);
    memcpy(name, t.data, t.len);
    name[t.len] = '\0';
    n->macro.name = name_of(p, &t);
    n->macro.routine.name = name;
    parse_signature(p, &n->macro.routine);
    parse_routine_body(p, &n->macro.routine, "endmacro");
    return n;
}

static struct cw_jnode *parse_call_block(struct parser *p, struct cw_jnode *n) {
    n->kind = CW_JN_CALL_BLOCK;
    n->call_block.routine.name = "caller";
    if (is_op(p, "(")) {
        parse_signature(p, &n->call_block.routine);
    }
    n->call_block.call = parse_expression(p);
    if (n->call_block.call->kind != CW_JN_CALL) {
        cw_jfail(p->guard, "a call block needs a call");
    }
    parse_routine_body(p, &n->call_block.routine, "endcall");
    return n;
}

static struct cw_jnode *parse_filter_block(struct parser *p, struct cw_jnode *n) {
    n->kind = CW_JN_FILTER_BLOCK;
    n->filter_block.filters = parse_block_filters(p, false);
    n->filter_block.body = parse_block(p, "endfilter");
    return n;
}

static struct cw_jnode *parse_with(struct parser *p, struct cw_jnode *n) {
    struct list targets = {0}, values = {0};
    n->kind = CW_JN_WITH;
    while (p->tok.kind != CW_JT_TAG_END) {
        if (targets.n > 0) {
            expect_op(p, ",");
        }
        struct cw_jnode *target = parse_primary(p);
        check_target(p, target);
        add(p, &targets, target);
        expect_op(p, "=");
        add(p, &values, parse_expression(p));
    }
    n->with.targets = nodes_of(&targets);
    n->with.values = nodes_of(&values);
    n->with.body = parse_block(p, "endwith");
    return n;
}

/* The body of a generation tag, which marks the reply for training, renders as it is; in a scope
 * of its own, and not left by break. */
static struct cw_jnode *parse_generation(struct parser *p, struct cw_jnode *n) {
    int loops = p->loops;
    n->kind = CW_JN_SCOPE;
    p->loops = 0;
    n->items = parse_block(p, "endgeneration");
    p->loops = loops;
    return n;
}

static struct cw_jnode *parse_print(struct parser *p, struct cw_jnode *n) {
    struct list l = {0};
    n->kind = CW_JN_OUTPUT;
    n->operand = new_node(p, CW_JN_CONCAT, n->line);
    while (p->tok.kind != CW_JT_TAG_END) {
        if (l.n > 0) {
            expect_op(p, ",");
        }
        add(p, &l, parse_expression(p));
    }
    n->operand->items = nodes_of(&l);
    return n;
}

static struct cw_jnode *parse_jump(struct parser *p, struct cw_jnode *n) {
    if (p->loops == 0) {
        cw_jfail(p->guard, "'%s' outside of a loop", n->kind == CW_JN_BREAK ? "break" : "continue");
    }
    return n;
}

static struct cw_jnode *parse_break(struct parser *p, struct cw_jnode *n) {
    n->kind = CW_JN_BREAK;
    return parse_jump(p, n);
}

static struct cw_jnode *parse_continue(struct parser *p, struct cw_jnode *n) {
    n->kind = CW_JN_CONTINUE;
    return parse_jump(p, n);
}

static const struct {
    const char *name;
    struct cw_jnode *(*parse)(struct parser *p, struct cw_jnode *n);
} tags[] = {
    {"for", parse_for},           {"if", parse_if},
    {"set", parse_set},           {"macro", parse_macro},
    {"call", parse_call_block},   {"filter", parse_filter_block},
    {"with", parse_with},         {"generation", parse_generation},
    {"print", parse_print},       {"break", parse_break},
    {"continue", parse_continue},
};

static struct cw_jnode *parse_statement(struct parser *p) {
    struct cw_jtoken tag = take_name(p, "the name of a tag");
    int line = tag.line;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (token_is(&tag, CW_JT_NAME, tags[i].name)) {
            struct cw_jnode *n = tags[i].parse(p, new_node(p, CW_JN_TEXT, line));
            expect_tag_end(p);
            return n;
        }
    }
    p->guard->line = line;
    int n = tag.len < 40 ? (int)tag.len : 40;
    bool closes = tag.len > 3 && memcmp(tag.data, "end", 3) == 0;
    if (closes || token_is(&tag, CW_JT_NAME, "else") || token_is(&tag, CW_JT_NAME, "elif")) {
        cw_jfail(p->guard, "'%.*s' belongs to nothing that is open here", n, tag.data);
    }
    cw_jfail(p->guard, "the tag '%.*s' is not supported", n, tag.data);
}

/* Does the tag that begins here end the body? */
static bool at_end_tag(const struct parser *p, const char *const *ends) {
    for (; ends != NULL && *ends != NULL; ends++) {
        if (is_name(p, *ends)) {
            return true;
        }
    }
    return false;
}

/* Text, outputs and statements up to a tag of `ends` (NULL: the end of the template). */
static struct cw_jnodes parse_nodes(struct parser *p, const char *const *ends) {
    struct list l = {0};
    enter(p);
    for (;;) {
        struct cw_jnode *n;
        if (p->tok.kind == CW_JT_TEXT) {
            n = new_node(p, CW_JN_TEXT, p->tok.line);
            n->text = text_of(p, &p->tok);
            next(p);
        } else if (p->tok.kind == CW_JT_OUTPUT_BEGIN) {
            n = new_node(p, CW_JN_OUTPUT, p->tok.line);
            next(p);
            n->operand = parse_tuple(p, parse_expression, NULL, false);
            if (p->tok.kind != CW_JT_OUTPUT_END) {
                fail_unexpected(p, "'}}'");
            }
            next(p);
        } else if (p->tok.kind == CW_JT_TAG_BEGIN) {
            next(p);
            if (at_end_tag(p, ends)) {
                break;
            }
            n = parse_statement(p);
        } else {
            break;
        }
        add(p, &l, n);
    }
    leave(p);
    return nodes_of(&l);
}

static struct cw_jnodes parse_body(struct parser *p, const char *const *ends) {
    skip_op(p, ":");
    int opened_at = p->tok.line;
    expect_tag_end(p);
    struct cw_jnodes body = parse_nodes(p, ends);
    if (p->tok.kind == CW_JT_END) {
        p->guard->line = opened_at;
        int n = 0;
        while (ends[n] != NULL) {
            n++;
        }
        cw_jfail(p->guard, "a block that begins here has no '%s'",
                 strncmp(ends[0], "end", 3) == 0 ? ends[0] : ends[n - 1]);
    }
    return body;
}

void cw_jparse(struct cw_template *t, struct cw_jguard *g) {
    struct parser p = {
        .t = t,
        .guard = g,
        .arena = &t->arena,
        .lexer = {.guard = g, .arena = &t->arena, .src = t->source, .len = t->len, .line = 1},
    };
    next(&p);
    t->body = parse_nodes(&p, NULL);
}

/* ------------------------------------------------------------------ names */

static unsigned hash(const char *s, size_t len) {
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < len; i++) {
        h = (h ^ (unsigned char)s[i]) * 16777619u;
    }
    return h % CW_JNAME_BUCKETS;
}

static struct cw_jname *find_name(const struct cw_template *t, const char *s, size_t len) {
    for (struct cw_jname *n = t->names[hash(s, len)]; n != NULL; n = n->next) {
        if (n->text->len == len && memcmp(n->text->data, s, len) == 0) {
            return n;
        }
    }
    return NULL;
}

const struct cw_jname *cw_jname_lookup(const struct cw_template *t, const char *s, size_t len) {
    return find_name(t, s, len);
}

struct cw_jname *cw_jname_intern(struct cw_template *t, const char *s, size_t len) {
    struct cw_jname *n = find_name(t, s, len);
    if (n == NULL) {
        struct cw_jname **bucket = &t->names[hash(s, len)];
        n = cw_jalloc(&t->arena, sizeof *n);
        *n = (struct cw_jname){cw_jstr_new(&t->arena, s, len, &cw_jtemplate_run), *bucket};
        *bucket = n;
    }
    return n;
}
