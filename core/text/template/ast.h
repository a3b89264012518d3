/* SPDX-License-Identifier: MIT
 *
 * A parsed template: the tree that the parser makes and eval.c and exec.c walk. Everything lives in
 * the template's arena and is immutable after parsing.
 */
#ifndef CHINWAG_TEMPLATE_AST_H
#define CHINWAG_TEMPLATE_AST_H

#include "value.h"

/* A variable's name; one object a name and template, so that pointers can be compared. */
struct cw_jname {
    const struct cw_jstr *text;
    struct cw_jname *next; /* in its hash bucket */
};

enum cw_jnode_kind {
    /* expressions */
    CW_JN_CONST,
    CW_JN_NAME,
    CW_JN_NSREF, /* name.attribute as the target of a set */
    CW_JN_LIST,
    CW_JN_TUPLE,
    CW_JN_DICT,
    CW_JN_CHAIN,  /* a + b - c: operators of one rank from left to right */
    CW_JN_CONCAT, /* a ~ b ~ c */
    CW_JN_AND,    /* a and b and c */
    CW_JN_OR,
    CW_JN_NOT,
    CW_JN_NEG,
    CW_JN_POS,
    CW_JN_COMPARE, /* a < b <= c */
    CW_JN_COND,    /* a if b else c */
    CW_JN_ATTR,
    CW_JN_ITEM,
    CW_JN_SLICE,
    CW_JN_CALL,
    CW_JN_FILTER,
    CW_JN_TEST,
    /* statements */
    CW_JN_TEXT,
    CW_JN_OUTPUT,
    CW_JN_FOR,
    CW_JN_IF,
    CW_JN_SET,
    CW_JN_SET_BLOCK,
    CW_JN_MACRO,
    CW_JN_CALL_BLOCK,
    CW_JN_FILTER_BLOCK,
    CW_JN_WITH,
    CW_JN_SCOPE, /* generation: its body in a scope of its own */
    CW_JN_BREAK,
    CW_JN_CONTINUE,
};

enum cw_jop {
    CW_JOP_ADD,
    CW_JOP_SUB,
    CW_JOP_MUL,
    CW_JOP_DIV,
    CW_JOP_FLOORDIV,
    CW_JOP_MOD,
    CW_JOP_POW,
    CW_JOP_EQ,
    CW_JOP_NE,
    CW_JOP_LT,
    CW_JOP_LE,
    CW_JOP_GT,
    CW_JOP_GE,
    CW_JOP_IN,
    CW_JOP_NOT_IN,
};

struct cw_jnodes {
    struct cw_jnode **v;
    size_t n;
};

struct cw_jkwnode {
    const struct cw_jname *name;
    struct cw_jnode *value;
};

struct cw_jcallargs {
    struct cw_jnodes pos;
    struct cw_jkwnode *kw; /* [n_kw] */
    size_t n_kw;
    struct cw_jnode *star, *star_star; /* *args, **kwargs; NULL: none */
};

struct cw_jbranch {
    struct cw_jnode *test; /* NULL: else */
    struct cw_jnodes body;
};

/* Parameters and body of a macro or call block. */
struct cw_jroutine {
    const char *name; /* for messages and printing */
    const struct cw_jname **params;
    struct cw_jnode **defaults; /* [n_params], NULL: none */
    size_t n_params;
    struct cw_jnodes body;
    bool uses_caller, uses_varargs, uses_kwargs; /* mentioned anywhere in the body */
};

struct cw_jnode {
    enum cw_jnode_kind kind;
    int line;
    union {
        struct cw_jval constant;
        const struct cw_jstr *text;  /* TEXT */
        const struct cw_jname *name; /* NAME */
        struct {
            const struct cw_jname *name;
            const struct cw_jstr *attr;
        } nsref;
        struct cw_jnodes items;   /* LIST, TUPLE, CONCAT, AND, OR, SCOPE; DICT: key, value, ... */
        struct cw_jnode *operand; /* NOT, NEG, POS, OUTPUT */
        struct {
            struct cw_jnodes items;
            enum cw_jop *ops; /* [items.n - 1] */
        } chain;              /* CHAIN, COMPARE */
        struct {
            struct cw_jnode *test, *then, *otherwise; /* otherwise NULL: undefined */
        } cond;
        struct {
            struct cw_jnode *object;
            const struct cw_jstr *attr; /* ATTR */
            struct cw_jnode *key;       /* ITEM */
        } item;
        struct {
            struct cw_jnode *start, *stop, *step; /* NULL: left out */
        } slice;
        struct {
            struct cw_jnode *callee; /* CALL; FILTER, TEST: the value, NULL for that of a block */
            const struct cw_jbuiltin *builtin; /* FILTER, TEST; NULL: unknown */
            const struct cw_jstr *name;
            struct cw_jcallargs args;
        } call;
        struct {
            struct cw_jnode *target, *iter, *filter; /* filter NULL: none */
            struct cw_jnodes body, otherwise;
        } loop;
        struct {
            struct cw_jbranch *branches;
            size_t n;
        } cond_block; /* IF */
        struct {
            struct cw_jnode *target, *value; /* value: SET */
            struct cw_jnodes filters, body;  /* SET_BLOCK */
        } set;
        struct {
            const struct cw_jname *name;
            struct cw_jroutine routine;
        } macro;
        struct {
            struct cw_jnode *call;
            struct cw_jroutine routine;
        } call_block;
        struct {
            struct cw_jnodes filters, body;
        } filter_block;
        struct {
            struct cw_jnodes targets, values, body;
        } with;
    };
};

enum { CW_JNAME_BUCKETS = 1024 };

struct cw_template {
    struct cw_jarena arena;
    const char *source; /* line ends made \n, one at the end dropped */
    size_t len;
    struct cw_jname *names[CW_JNAME_BUCKETS];
    struct cw_jnodes body;
};

/* The name object for a spelling; made if new. */
struct cw_jname *cw_jname_intern(struct cw_template *t, const char *s, size_t len);
/* The same, NULL if the template does not use the name. */
const struct cw_jname *cw_jname_lookup(const struct cw_template *t, const char *s, size_t len);

/* Fill t->body from t->source. Fails into g. */
void cw_jparse(struct cw_template *t, struct cw_jguard *g);

#endif
