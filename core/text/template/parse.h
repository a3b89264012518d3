/* SPDX-License-Identifier: MIT
 *
 * Tokens to tree, by recursive descent: the grammar of Jinja's template language, without
 * inheritance and inclusion, which a chat template cannot use. parse.c has the tools, parse_expr.c
 * the expressions, parse_stmt.c the statements and cw_jparse() itself.
 */
#ifndef CHINWAG_TEMPLATE_PARSE_H
#define CHINWAG_TEMPLATE_PARSE_H

#include "ast.h"
#include "lexer.h"

struct cw_jparser {
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

/* Nodes in the order they are found. */
struct cw_jnode_list {
    struct cw_jnode **v;
    size_t n, cap;
};

/* --- tokens --- */
void cw_jp_next(struct cw_jparser *p);
const struct cw_jtoken *cw_jp_look(struct cw_jparser *p); /* one further, without taking it */
bool cw_jp_token_is(const struct cw_jtoken *t, enum cw_jtoken_kind kind, const char *s);
bool cw_jp_is_op(const struct cw_jparser *p, const char *s);
bool cw_jp_is_name(const struct cw_jparser *p, const char *s);
bool cw_jp_skip_op(struct cw_jparser *p, const char *s); /* take it if it is that */
bool cw_jp_skip_name(struct cw_jparser *p, const char *s);
void cw_jp_expect_op(struct cw_jparser *p, const char *s);
struct cw_jtoken cw_jp_take_name(struct cw_jparser *p, const char *wanted);
_Noreturn void cw_jp_unexpected(struct cw_jparser *p, const char *wanted);

/* --- nodes --- */
/* One level deeper; every cw_jp_enter has its cw_jp_leave. */
void cw_jp_enter(struct cw_jparser *p);
void cw_jp_leave(struct cw_jparser *p);
struct cw_jnode *cw_jp_node(struct cw_jparser *p, enum cw_jnode_kind kind, int line); /* zeroed */
void cw_jp_add(struct cw_jparser *p, struct cw_jnode_list *l, struct cw_jnode *n);
struct cw_jnodes cw_jp_nodes(const struct cw_jnode_list *l);
const struct cw_jstr *cw_jp_text(struct cw_jparser *p, const struct cw_jtoken *t);
const struct cw_jname *cw_jp_name(struct cw_jparser *p, const struct cw_jtoken *t);

/* --- expressions --- */
struct cw_jnode *cw_jp_expression(struct cw_jparser *p);
struct cw_jnode *cw_jp_or(struct cw_jparser *p); /* an expression that is no inline if */
struct cw_jnode *cw_jp_primary(struct cw_jparser *p);
/* a, b, c - or a alone, which is no tuple. `item` parses an element; `end_name` is a keyword that
 * ends the list; only in brackets may it be empty. */
struct cw_jnode *cw_jp_tuple(struct cw_jparser *p, struct cw_jnode *(*item)(struct cw_jparser *),
                             const char *end_name, bool in_brackets);
/* The filter whose name begins here, on `value` (NULL: that of a block). */
struct cw_jnode *cw_jp_filter(struct cw_jparser *p, struct cw_jnode *value);

#endif
