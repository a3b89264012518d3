/* SPDX-License-Identifier: MIT
 *
 * The for loop and its `loop` object. Items are pulled one at a time and the loop's own filter is
 * asked as they come, so that it sees what the body has done so far; loop.last and loop.nextitem
 * pull one item ahead, loop.length all that are left where the number is not known otherwise.
 */
#include <string.h>

#include "builtins.h"
#include "eval.h"

struct cw_jloop {
    const struct cw_jnode *node;
    struct cw_jcursor cursor;
    struct cw_jscope *outer; /* around the loop, where its filter is evaluated */
    bool filters;            /* the node's filter is still to be asked */
    int64_t index0;          /* -1 before the first item */
    int64_t length;          /* -1: not known yet */
    bool has_after;          /* the item behind this one is at hand */
    bool exhausted;          /* there is none */
    struct cw_jval before, current, after;
    struct cw_jval changed; /* what loop.changed() was last told */
};

/* The next item that the filter lets through. */
static bool pull(struct cw_jrender *r, struct cw_jloop *loop, struct cw_jval *item) {
    while (cw_jstep(r, &loop->cursor, item)) {
        if (!loop->filters) {
            return true;
        }
        struct cw_jscope *asking = r->scope;
        r->scope = loop->outer;
        cw_jscope_push(r);
        cw_jassign(r, loop->node->loop.target, *item);
        bool passes = cw_jtruth(r, cw_jeval(r, loop->node->loop.filter));
        r->scope = asking;
        if (passes) {
            return true;
        }
    }
    return false;
}

static bool peek(struct cw_jrender *r, struct cw_jloop *loop) {
    if (!loop->has_after && !loop->exhausted) {
        loop->has_after = pull(r, loop, &loop->after);
        loop->exhausted = !loop->has_after;
    }
    return loop->has_after;
}

static bool advance(struct cw_jrender *r, struct cw_jloop *loop) {
    if (!peek(r, loop)) {
        return false;
    }
    loop->has_after = false;
    loop->before = loop->current;
    loop->current = loop->after;
    loop->index0++;
    return true;
}

int64_t cw_jloop_length(struct cw_jrender *r, struct cw_jloop *loop) {
    if (loop->length < 0 && !loop->filters) {
        loop->length = cw_jlen(r, loop->cursor.v);
    }
    if (loop->length < 0) { /* take what is left, and count it */
        struct cw_jfill rest = {0};
        struct cw_jval item;
        while (pull(r, loop, &item)) {
            cw_jfill_add(r, &rest, item);
        }
        loop->length = loop->index0 + 1 + loop->has_after + (int64_t)rest.n;
        loop->cursor = cw_jwalk(r, cw_jfill_end(r, &rest, CW_J_LIST));
        loop->filters = false;
    }
    return loop->length;
}

bool cw_jloop_attribute(struct cw_jrender *r, struct cw_jloop *loop, const struct cw_jstr *name,
                        struct cw_jval *out) {
    if (cw_jstr_is(name, "index")) {
        *out = cw_jint(loop->index0 + 1);
    } else if (cw_jstr_is(name, "index0")) {
        *out = cw_jint(loop->index0);
    } else if (cw_jstr_is(name, "first")) {
        *out = cw_jbool(loop->index0 == 0);
    } else if (cw_jstr_is(name, "last")) {
        *out = cw_jbool(!peek(r, loop));
    } else if (cw_jstr_is(name, "length")) {
        *out = cw_jint(cw_jloop_length(r, loop));
    } else if (cw_jstr_is(name, "revindex")) {
        *out = cw_jint(cw_jloop_length(r, loop) - loop->index0);
    } else if (cw_jstr_is(name, "revindex0")) {
        *out = cw_jint(cw_jloop_length(r, loop) - loop->index0 - 1);
    } else if (cw_jstr_is(name, "previtem")) {
        *out = loop->index0 > 0 ? loop->before : cw_jundefined(r, "there is no previous item");
    } else if (cw_jstr_is(name, "nextitem")) {
        *out = peek(r, loop) ? loop->after : cw_jundefined(r, "there is no next item");
    } else if (cw_jstr_is(name, "depth")) {
        *out = cw_jint(1);
    } else if (cw_jstr_is(name, "depth0")) {
        *out = cw_jint(0);
    } else {
        return false;
    }
    return true;
}

struct cw_jval cw_jloop_cycle(struct cw_jrender *r, struct cw_jval self, const struct cw_jval *arg,
                              const struct cw_jargs *all) {
    (void)arg;
    if (all->n_pos == 0) {
        cw_jfailr(r, "TypeError: no items for cycling given");
    }
    return all->pos[(uint64_t)self.loop->index0 % all->n_pos];
}

struct cw_jval cw_jloop_changed(struct cw_jrender *r, struct cw_jval self,
                                const struct cw_jval *arg, const struct cw_jargs *all) {
    (void)arg;
    struct cw_jval now = cw_jseq(r, CW_J_TUPLE, all->n_pos);
    if (all->n_pos > 0) {
        memcpy(now.list->items, all->pos, all->n_pos * sizeof *all->pos);
    }
    bool changed = self.loop->changed.kind == CW_J_ABSENT || !cw_jequal(r, self.loop->changed, now);
    self.loop->changed = now;
    return cw_jbool(changed);
}

/* A scope for the next turn: the last one's, unless a macro holds on to it. */
static struct cw_jscope *fresh_scope(struct cw_jrender *r, struct cw_jscope *last) {
    if (last != NULL && !last->captured) {
        last->n = 0;
        r->scope = last;
        return last;
    }
    if (last != NULL) {
        last->ended = true;
    }
    return cw_jscope_push(r);
}

enum cw_jflow cw_jfor(struct cw_jrender *r, const struct cw_jnode *n) {
    struct cw_jscope *outer = r->scope, *scope = NULL;
    struct cw_jval items = cw_jeval(r, n->loop.iter);
    r->guard.line = n->line;
    struct cw_jloop *loop = cw_jalloc(&r->arena, sizeof *loop);
    *loop = (struct cw_jloop){.node = n,
                              .cursor = cw_jwalk(r, items),
                              .outer = outer,
                              .filters = n->loop.filter != NULL,
                              .index0 = -1,
                              .length = -1};
    const struct cw_jname *name = cw_jname_lookup(r->t, "loop", 4);
    enum cw_jflow flow = CW_JGO_ON;
    bool completed = false; /* a turn that was not cut short: as in the reference, else asks this */
    while (r->scope = outer, flow != CW_JBREAK && advance(r, loop)) {
        scope = fresh_scope(r, scope);
        if (name != NULL) {
            cw_jscope_set(r, name, (struct cw_jval){.kind = CW_J_LOOP, .loop = loop});
        }
        r->guard.line = n->line;
        cw_jassign(r, n->loop.target, loop->current);
        flow = cw_jexec(r, &n->loop.body);
        completed |= flow == CW_JGO_ON;
    }
    if (scope != NULL) {
        scope->ended = true;
    }
    if (completed) {
        return CW_JGO_ON;
    }
    scope = cw_jscope_push(r);
    flow = cw_jexec(r, &n->loop.otherwise);
    cw_jscope_pop(r, scope);
    return flow;
}
