/* SPDX-License-Identifier: MIT
 * What the parser's two halves share: tokens, nodes, names (parse.h). */
#include "parse.h"

#include <string.h>

enum { MAX_DEPTH = 128 }; /* of nested expressions and blocks */

void cw_jp_next(struct cw_jparser *p) {
    if (p->has_ahead) {
        p->tok = p->ahead;
        p->has_ahead = false;
    } else {
        cw_jlex_next(&p->lexer, &p->tok);
    }
    p->guard->line = p->tok.line;
}

const struct cw_jtoken *cw_jp_look(struct cw_jparser *p) {
    if (!p->has_ahead) {
        cw_jlex_next(&p->lexer, &p->ahead);
        p->has_ahead = true;
        p->guard->line = p->tok.line;
    }
    return &p->ahead;
}

bool cw_jp_token_is(const struct cw_jtoken *t, enum cw_jtoken_kind kind, const char *s) {
    return t->kind == kind && t->len == strlen(s) && memcmp(t->data, s, t->len) == 0;
}

bool cw_jp_is_op(const struct cw_jparser *p, const char *s) {
    return cw_jp_token_is(&p->tok, CW_JT_OP, s);
}

bool cw_jp_is_name(const struct cw_jparser *p, const char *s) {
    return cw_jp_token_is(&p->tok, CW_JT_NAME, s);
}

bool cw_jp_skip_op(struct cw_jparser *p, const char *s) {
    bool hit = cw_jp_is_op(p, s);
    if (hit) {
        cw_jp_next(p);
    }
    return hit;
}

bool cw_jp_skip_name(struct cw_jparser *p, const char *s) {
    bool hit = cw_jp_is_name(p, s);
    if (hit) {
        cw_jp_next(p);
    }
    return hit;
}

_Noreturn void cw_jp_unexpected(struct cw_jparser *p, const char *wanted) {
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

void cw_jp_expect_op(struct cw_jparser *p, const char *s) {
    if (!cw_jp_skip_op(p, s)) {
        char wanted[8] = {'\'', s[0], '\'', '\0'};
        cw_jp_unexpected(p, wanted);
    }
}

void cw_jp_enter(struct cw_jparser *p) {
    if (++p->depth > MAX_DEPTH) {
        cw_jfail(p->guard, "nested deeper than %d levels", MAX_DEPTH);
    }
}

void cw_jp_leave(struct cw_jparser *p) {
    p->depth--;
}

struct cw_jnode *cw_jp_node(struct cw_jparser *p, enum cw_jnode_kind kind, int line) {
    struct cw_jnode *n = cw_jalloc(p->arena, sizeof *n);
    memset(n, 0, sizeof *n);
    n->kind = kind;
    n->line = line;
    return n;
}

void cw_jp_add(struct cw_jparser *p, struct cw_jnode_list *l, struct cw_jnode *n) {
    if (l->n == l->cap) {
        size_t cap = l->cap == 0 ? 4 : l->cap * 2;
        l->v = cw_jgrow(p->arena, l->v, l->cap * sizeof *l->v, cap * sizeof *l->v);
        l->cap = cap;
    }
    l->v[l->n++] = n;
}

struct cw_jnodes cw_jp_nodes(const struct cw_jnode_list *l) {
    return (struct cw_jnodes){l->v, l->n};
}

const struct cw_jstr *cw_jp_text(struct cw_jparser *p, const struct cw_jtoken *t) {
    return cw_jstr_new(p->arena, t->data, t->len, &cw_jtemplate_run);
}

const struct cw_jname *cw_jp_name(struct cw_jparser *p, const struct cw_jtoken *t) {
    return cw_jname_intern(p->t, t->data, t->len);
}

struct cw_jtoken cw_jp_take_name(struct cw_jparser *p, const char *wanted) {
    if (p->tok.kind != CW_JT_NAME) {
        cw_jp_unexpected(p, wanted);
    }
    struct cw_jtoken t = p->tok;
    cw_jp_next(p);
    return t;
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
