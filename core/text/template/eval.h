/* SPDX-License-Identifier: MIT
 * Walking the tree: expressions (eval.c), statements, scopes and macros (exec.c), loops (loop.c).
 */
#ifndef CHINWAG_TEMPLATE_EVAL_H
#define CHINWAG_TEMPLATE_EVAL_H

#include "ast.h"

struct cw_jvar {
    const struct cw_jname *name;
    struct cw_jval value;
};

/* Variables are looked up from the innermost scope outwards and set in the innermost. */
struct cw_jscope {
    struct cw_jscope *parent;
    struct cw_jvar *vars; /* [n] */
    size_t n, cap;
    bool captured; /* a macro may still refer to it */
    bool ended;    /* its block or turn of a loop is over: such a macro must not be called */
};

struct cw_jmacro {
    const struct cw_jroutine *routine;
    struct cw_jscope *scope; /* where it was defined */
};

/* Run `nodes`; how they ended. */
enum cw_jflow { CW_JGO_ON, CW_JBREAK, CW_JCONTINUE };
enum cw_jflow cw_jexec(struct cw_jrender *r, const struct cw_jnodes *nodes);
struct cw_jval cw_jeval(struct cw_jrender *r, const struct cw_jnode *n);
struct cw_jargs cw_jeval_args(struct cw_jrender *r, const struct cw_jcallargs *args);
/* The filter (or test) node applied to a value that is at hand. */
struct cw_jval cw_jeval_filter(struct cw_jrender *r, const struct cw_jnode *n, struct cw_jval v);

struct cw_jscope *cw_jscope_push(struct cw_jrender *r);
void cw_jscope_pop(struct cw_jrender *r, struct cw_jscope *pushed);
void cw_jscope_set(struct cw_jrender *r, const struct cw_jname *name, struct cw_jval v);
/* Give `v` to a name, a namespace's attribute, or taken apart to a tuple of such. */
void cw_jassign(struct cw_jrender *r, const struct cw_jnode *target, struct cw_jval v);

struct cw_jval cw_jmacro_call(struct cw_jrender *r, const struct cw_jmacro *m,
                              const struct cw_jargs *args);

enum cw_jflow cw_jfor(struct cw_jrender *r, const struct cw_jnode *n);
/* loop.index and its kin; false for what is no attribute of a loop. */
bool cw_jloop_attribute(struct cw_jrender *r, struct cw_jloop *loop, const struct cw_jstr *name,
                        struct cw_jval *out);
int64_t cw_jloop_length(struct cw_jrender *r, struct cw_jloop *loop);
struct cw_jval cw_jloop_cycle(struct cw_jrender *r, struct cw_jval self, const struct cw_jval *arg,
                              const struct cw_jargs *all);
struct cw_jval cw_jloop_changed(struct cw_jrender *r, struct cw_jval self,
                                const struct cw_jval *arg, const struct cw_jargs *all);

#endif
