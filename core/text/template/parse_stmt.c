/* SPDX-License-Identifier: MIT
 * Parsing statements and whole templates (parse.h). */
#include <string.h>

#include "parse.h"

static struct cw_jnodes parse_body(struct cw_jparser *p, const char *const *ends);

static void expect_tag_end(struct cw_jparser *p) {
    if (p->tok.kind != CW_JT_TAG_END) {
        cw_jp_unexpected(p, "'%}'");
    }
    cw_jp_next(p);
}

static void need_name(struct cw_jparser *p, const char *word) {
    if (!cw_jp_skip_name(p, word)) {
        char wanted[32] = "'";
        strncat(wanted, word, 20);
        strcat(wanted, "'");
        cw_jp_unexpected(p, wanted);
    }
}

/* Names that are literals cannot be assigned to. */
static void check_target(struct cw_jparser *p, const struct cw_jnode *n) {
    if (n->kind == CW_JN_TUPLE) {
        for (size_t i = 0; i < n->items.n; i++) {
            check_target(p, n->items.v[i]);
        }
    } else if (n->kind != CW_JN_NAME && n->kind != CW_JN_NSREF) {
        cw_jfail(p->guard, "this cannot be assigned to");
    }
}

/* A name, or name.attribute. */
static struct cw_jnode *parse_set_item(struct cw_jparser *p) {
    if (p->tok.kind == CW_JT_NAME && cw_jp_token_is(cw_jp_look(p), CW_JT_OP, ".")) {
        struct cw_jnode *n = cw_jp_node(p, CW_JN_NSREF, p->tok.line);
        n->nsref.name = cw_jp_name(p, &p->tok);
        cw_jp_next(p);
        cw_jp_next(p);
        struct cw_jtoken attr = cw_jp_take_name(p, "a name");
        n->nsref.attr = cw_jp_text(p, &attr);
        return n;
    }
    return cw_jp_primary(p);
}

static struct cw_jnode *parse_target(struct cw_jparser *p,
                                     struct cw_jnode *(*item)(struct cw_jparser *),
                                     const char *end_name) {
    struct cw_jnode *n = cw_jp_tuple(p, item, end_name, false);
    check_target(p, n);
    return n;
}

/* The body of a tag up to {% end %}, which is taken with it. */
static struct cw_jnodes parse_block(struct cw_jparser *p, const char *end) {
    const char *ends[] = {end, NULL};
    struct cw_jnodes body = parse_body(p, ends);
    cw_jp_next(p);
    return body;
}

static struct cw_jnode *parse_for(struct cw_jparser *p, struct cw_jnode *n) {
    static const char *const ends[] = {"endfor", "else", NULL};
    n->kind = CW_JN_FOR;
    n->loop.target = parse_target(p, cw_jp_primary, "in");
    need_name(p, "in");
    n->loop.iter = cw_jp_tuple(p, cw_jp_or, "recursive", false);
    if (cw_jp_skip_name(p, "if")) {
        n->loop.filter = cw_jp_expression(p);
    }
    if (cw_jp_is_name(p, "recursive")) {
        cw_jfail(p->guard, "recursive loops are not supported");
    }
    p->loops++;
    n->loop.body = parse_body(p, ends);
    p->loops--;
    bool has_else = cw_jp_is_name(p, "else");
    cw_jp_next(p);
    if (has_else) {
        n->loop.otherwise = parse_block(p, "endfor");
    }
    return n;
}

static struct cw_jnode *parse_if(struct cw_jparser *p, struct cw_jnode *n) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    size_t cap = 0;
    bool is_else = false, more = true;
    n->kind = CW_JN_IF;
    while (more) {
        struct cw_jbranch branch = {0};
        if (!is_else) {
            branch.test = cw_jp_tuple(p, cw_jp_or, NULL, false);
        }
        branch.body = parse_body(p, is_else ? ends + 2 : ends);
        if (n->cond_block.n == cap) {
            size_t room = cap == 0 ? 2 : cap * 2;
            n->cond_block.branches = cw_jgrow(p->arena, n->cond_block.branches, cap * sizeof branch,
                                              room * sizeof branch);
            cap = room;
        }
        n->cond_block.branches[n->cond_block.n++] = branch;
        more = !cw_jp_is_name(p, "endif");
        is_else = cw_jp_is_name(p, "else");
        cw_jp_next(p);
    }
    return n;
}

/* | filter | filter ..., applied to a block. */
static struct cw_jnodes parse_block_filters(struct cw_jparser *p, bool bar_first) {
    struct cw_jnode_list l = {0};
    while (!bar_first || cw_jp_skip_op(p, "|")) {
        bar_first = true;
        cw_jp_add(p, &l, cw_jp_filter(p, NULL));
    }
    return cw_jp_nodes(&l);
}

static struct cw_jnode *parse_set(struct cw_jparser *p, struct cw_jnode *n) {
    n->kind = CW_JN_SET;
    n->set.target = parse_target(p, parse_set_item, NULL);
    if (cw_jp_skip_op(p, "=")) {
        n->set.value = cw_jp_tuple(p, cw_jp_expression, NULL, false);
        return n;
    }
    n->kind = CW_JN_SET_BLOCK;
    n->set.filters = parse_block_filters(p, true);
    n->set.body = parse_block(p, "endset");
    return n;
}

static void parse_signature(struct cw_jparser *p, struct cw_jroutine *routine) {
    size_t cap = 0;
    cw_jp_expect_op(p, "(");
    while (!cw_jp_is_op(p, ")")) {
        if (routine->n_params > 0) {
            cw_jp_expect_op(p, ",");
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
        struct cw_jtoken t = cw_jp_take_name(p, "a parameter");
        size_t i = routine->n_params++;
        routine->params[i] = cw_jp_name(p, &t);
        routine->defaults[i] = cw_jp_skip_op(p, "=") ? cw_jp_expression(p) : NULL;
        if (i > 0 && routine->defaults[i] == NULL && routine->defaults[i - 1] != NULL) {
            cw_jfail(p->guard, "a parameter without default behind one with");
        }
    }
    cw_jp_next(p);
}

/* The body of a macro or call block: loops around it cannot be left from within, and the names it
 * mentions say what it takes beyond its parameters. */
static void parse_routine_body(struct cw_jparser *p, struct cw_jroutine *routine, const char *end) {
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

static struct cw_jnode *parse_macro(struct cw_jparser *p, struct cw_jnode *n) {
    n->kind = CW_JN_MACRO;
    struct cw_jtoken t = cw_jp_take_name(p, "the macro's name");
    char *name = cw_jalloc(p->arena, t.len + 1);
    memcpy(name, t.data, t.len);
    name[t.len] = '\0';
    n->macro.name = cw_jp_name(p, &t);
    n->macro.routine.name = name;
    parse_signature(p, &n->macro.routine);
    parse_routine_body(p, &n->macro.routine, "endmacro");
    return n;
}

static struct cw_jnode *parse_call_block(struct cw_jparser *p, struct cw_jnode *n) {
    n->kind = CW_JN_CALL_BLOCK;
    n->call_block.routine.name = "caller";
    if (cw_jp_is_op(p, "(")) {
        parse_signature(p, &n->call_block.routine);
    }
    n->call_block.call = cw_jp_expression(p);
    if (n->call_block.call->kind != CW_JN_CALL) {
        cw_jfail(p->guard, "a call block needs a call");
    }
    parse_routine_body(p, &n->call_block.routine, "endcall");
    return n;
}

static struct cw_jnode *parse_filter_block(struct cw_jparser *p, struct cw_jnode *n) {
    n->kind = CW_JN_FILTER_BLOCK;
    n->filter_block.filters = parse_block_filters(p, false);
    n->filter_block.body = parse_block(p, "endfilter");
    return n;
}

static struct cw_jnode *parse_with(struct cw_jparser *p, struct cw_jnode *n) {
    struct cw_jnode_list targets = {0}, values = {0};
    n->kind = CW_JN_WITH;
    while (p->tok.kind != CW_JT_TAG_END) {
        if (targets.n > 0) {
            cw_jp_expect_op(p, ",");
        }
        struct cw_jnode *target = cw_jp_primary(p);
        check_target(p, target);
        cw_jp_add(p, &targets, target);
        cw_jp_expect_op(p, "=");
        cw_jp_add(p, &values, cw_jp_expression(p));
    }
    n->with.targets = cw_jp_nodes(&targets);
    n->with.values = cw_jp_nodes(&values);
    n->with.body = parse_block(p, "endwith");
    return n;
}

/* The body of a generation tag, which marks the reply for training, renders as it is; in a scope
 * of its own, and not left by break. */
static struct cw_jnode *parse_generation(struct cw_jparser *p, struct cw_jnode *n) {
    int loops = p->loops;
    n->kind = CW_JN_SCOPE;
    p->loops = 0;
    n->items = parse_block(p, "endgeneration");
    p->loops = loops;
    return n;
}

static struct cw_jnode *parse_print(struct cw_jparser *p, struct cw_jnode *n) {
    struct cw_jnode_list l = {0};
    n->kind = CW_JN_OUTPUT;
    n->operand = cw_jp_node(p, CW_JN_CONCAT, n->line);
    while (p->tok.kind != CW_JT_TAG_END) {
        if (l.n > 0) {
            cw_jp_expect_op(p, ",");
        }
        cw_jp_add(p, &l, cw_jp_expression(p));
    }
    n->operand->items = cw_jp_nodes(&l);
    return n;
}

static struct cw_jnode *parse_jump(struct cw_jparser *p, struct cw_jnode *n) {
    if (p->loops == 0) {
        cw_jfail(p->guard, "'%s' outside of a loop", n->kind == CW_JN_BREAK ? "break" : "continue");
    }
    return n;
}

static struct cw_jnode *parse_break(struct cw_jparser *p, struct cw_jnode *n) {
    n->kind = CW_JN_BREAK;
    return parse_jump(p, n);
}

static struct cw_jnode *parse_continue(struct cw_jparser *p, struct cw_jnode *n) {
    n->kind = CW_JN_CONTINUE;
    return parse_jump(p, n);
}

static const struct {
    const char *name;
    struct cw_jnode *(*parse)(struct cw_jparser *p, struct cw_jnode *n);
} tags[] = {
    {"for", parse_for},           {"if", parse_if},
    {"set", parse_set},           {"macro", parse_macro},
    {"call", parse_call_block},   {"filter", parse_filter_block},
    {"with", parse_with},         {"generation", parse_generation},
    {"print", parse_print},       {"break", parse_break},
    {"continue", parse_continue},
};

static struct cw_jnode *parse_statement(struct cw_jparser *p) {
    struct cw_jtoken tag = cw_jp_take_name(p, "the name of a tag");
    int line = tag.line;
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (cw_jp_token_is(&tag, CW_JT_NAME, tags[i].name)) {
            struct cw_jnode *n = tags[i].parse(p, cw_jp_node(p, CW_JN_TEXT, line));
            expect_tag_end(p);
            return n;
        }
    }
    p->guard->line = line;
    int n = tag.len < 40 ? (int)tag.len : 40;
    bool closes = tag.len > 3 && memcmp(tag.data, "end", 3) == 0;
    if (closes || cw_jp_token_is(&tag, CW_JT_NAME, "else") ||
        cw_jp_token_is(&tag, CW_JT_NAME, "elif")) {
        cw_jfail(p->guard, "'%.*s' belongs to nothing that is open here", n, tag.data);
    }
    cw_jfail(p->guard, "the tag '%.*s' is not supported", n, tag.data);
}

/* Does the tag that begins here end the body? */
static bool at_end_tag(const struct cw_jparser *p, const char *const *ends) {
    for (; ends != NULL && *ends != NULL; ends++) {
        if (cw_jp_is_name(p, *ends)) {
            return true;
        }
    }
    return false;
}

/* Text, outputs and statements up to a tag of `ends` (NULL: the end of the template). */
static struct cw_jnodes parse_nodes(struct cw_jparser *p, const char *const *ends) {
    struct cw_jnode_list l = {0};
    cw_jp_enter(p);
    for (;;) {
        struct cw_jnode *n;
        if (p->tok.kind == CW_JT_TEXT) {
            n = cw_jp_node(p, CW_JN_TEXT, p->tok.line);
            n->text = cw_jp_text(p, &p->tok);
            cw_jp_next(p);
        } else if (p->tok.kind == CW_JT_OUTPUT_BEGIN) {
            n = cw_jp_node(p, CW_JN_OUTPUT, p->tok.line);
            cw_jp_next(p);
            n->operand = cw_jp_tuple(p, cw_jp_expression, NULL, false);
            if (p->tok.kind != CW_JT_OUTPUT_END) {
                cw_jp_unexpected(p, "'}}'");
            }
            cw_jp_next(p);
        } else if (p->tok.kind == CW_JT_TAG_BEGIN) {
            cw_jp_next(p);
            if (at_end_tag(p, ends)) {
                break;
            }
            n = parse_statement(p);
        } else {
            break;
        }
        cw_jp_add(p, &l, n);
    }
    cw_jp_leave(p);
    return cw_jp_nodes(&l);
}

static struct cw_jnodes parse_body(struct cw_jparser *p, const char *const *ends) {
    cw_jp_skip_op(p, ":");
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
    struct cw_jparser p = {
        .t = t,
        .guard = g,
        .arena = &t->arena,
        .lexer = {.guard = g, .arena = &t->arena, .src = t->source, .len = t->len, .line = 1},
    };
    cw_jp_next(&p);
    t->body = parse_nodes(&p, NULL);
}
