/* SPDX-License-Identifier: MIT
 *
 * What templates can call: filters, tests, functions and methods, each a table of cw_jbuiltin, and
 * the operations of the evaluator that they share.
 */
#ifndef CHINWAG_TEMPLATE_BUILTINS_H
#define CHINWAG_TEMPLATE_BUILTINS_H

#include "ast.h"

/* The head of the function of a builtin; `arg` are its parameters, `v` what it is applied to. */
#define CW_JBUILTIN(f)                                                                             \
    static struct cw_jval f(struct cw_jrender *r, struct cw_jval v, const struct cw_jval *arg,     \
                            const struct cw_jargs *all)

/* An argument that was given and is not none. */
static inline bool cw_jgiven(struct cw_jval v) {
    return v.kind != CW_J_ABSENT && v.kind != CW_J_NONE;
}

/* NULL for a name that neither the reference nor this engine has. */
const struct cw_jbuiltin *cw_jfilter_find(const struct cw_jstr *name);
const struct cw_jbuiltin *cw_jtest_find(const struct cw_jstr *name);
const struct cw_jbuiltin *cw_jfunction_find(const struct cw_jstr *name);
const struct cw_jbuiltin *cw_jmethod_find(struct cw_jval self, const struct cw_jstr *name);

/* Tables that end in an entry without a name. */
extern const struct cw_jbuiltin cw_jtext_filters[], cw_jlist_filters[], cw_jnumber_filters[];
extern const struct cw_jbuiltin cw_jstr_methods[];
const struct cw_jbuiltin *cw_jtable_find(const struct cw_jbuiltin *table,
                                         const struct cw_jstr *name);

/* Call a builtin with `args` bound to its parameters. `what` is "filter", "method", ... */
struct cw_jval cw_jinvoke(struct cw_jrender *r, const char *what, const struct cw_jbuiltin *b,
                          struct cw_jval self, const struct cw_jargs *args);
/* Call any value: a macro, function, method, joiner or loop. */
struct cw_jval cw_jcall(struct cw_jrender *r, struct cw_jval callee, const struct cw_jargs *args);
bool cw_jcallable(struct cw_jval v);
/* A filter or test by name, as map, select and their kin use them. */
struct cw_jval cw_japply_filter(struct cw_jrender *r, const struct cw_jstr *name,
                                struct cw_jval value, const struct cw_jargs *args);
bool cw_japply_test(struct cw_jrender *r, const struct cw_jstr *name, struct cw_jval value,
                    const struct cw_jargs *args);

/* --- operators (ops.c) --- */
struct cw_jval cw_jbinary(struct cw_jrender *r, enum cw_jop op, struct cw_jval a, struct cw_jval b);
bool cw_jcompare(struct cw_jrender *r, enum cw_jop op, struct cw_jval a, struct cw_jval b);
struct cw_jval cw_jnegate(struct cw_jrender *r, struct cw_jval v);
struct cw_jval cw_jconcat(struct cw_jrender *r, const struct cw_jval *v, size_t n);

/* --- parts of values (access.c) --- */
struct cw_jval cw_jgetattr(struct cw_jrender *r, struct cw_jval object,
                           const struct cw_jstr *name); /* object.name */
struct cw_jval cw_jattribute(struct cw_jrender *r, struct cw_jval object,
                             const struct cw_jstr *name); /* object.name, never an item */
struct cw_jval cw_jgetitem(struct cw_jrender *r, struct cw_jval object,
                           struct cw_jval key); /* object[key] */
/* An index that counts from the end if negative, and not before the beginning. */
int64_t cw_jfrom_end(int64_t i, int64_t n);
struct cw_jval cw_jgetslice(struct cw_jrender *r, struct cw_jval object, struct cw_jval start,
                            struct cw_jval stop, struct cw_jval step);

/* --- text (strings.c, format.c, json.c) --- */
enum cw_jcase { CW_JUPPER, CW_JLOWER, CW_JTITLE, CW_JCAPITALIZE, CW_JSWAP };
struct cw_jval cw_jcase(struct cw_jrender *r, const struct cw_jstr *s, enum cw_jcase to);
/* What jinja2's title filter does: a new word behind blanks, '-' and opening brackets. */
struct cw_jval cw_jtitle_words(struct cw_jrender *r, const struct cw_jstr *s);

enum { CW_JSTRIP_LEFT = 1, CW_JSTRIP_RIGHT = 2 };
/* chars: NULL for white space. */
struct cw_jval cw_jstrip(struct cw_jrender *r, const struct cw_jstr *s, const struct cw_jstr *chars,
                         int sides);
/* At most `max` replacements, all if negative. */
struct cw_jval cw_jreplace(struct cw_jrender *r, const struct cw_jstr *s, const struct cw_jstr *old,
                           const struct cw_jstr *fresh, int64_t max);
struct cw_jval cw_jsplitlines(struct cw_jrender *r, const struct cw_jstr *s, bool keep_ends);
struct cw_jval cw_jescape(struct cw_jrender *r, const struct cw_jstr *s); /* for HTML */
void cw_jpad(struct cw_jbuild *b, size_t n, char c, int32_t origin);
struct cw_jval cw_jcenter(struct cw_jrender *r, const struct cw_jstr *s, int64_t width,
                          const struct cw_jstr *fill);

/* format % right: a tuple is the list of arguments, a dict the names, all else one argument. */
struct cw_jval cw_jpercent(struct cw_jrender *r, const struct cw_jstr *format,
                           struct cw_jval right);
/* format.format(args). */
struct cw_jval cw_jformat(struct cw_jrender *r, const struct cw_jstr *format,
                          const struct cw_jargs *args);

struct cw_jjson_style {
    bool ascii, sort_keys;
    const struct cw_jstr *indent;                         /* NULL: one line */
    const struct cw_jstr *item_separator, *key_separator; /* NULL: the usual ones */
};
void cw_jjson(struct cw_jrender *r, struct cw_jbuild *b, struct cw_jval v,
              const struct cw_jjson_style *style, int level);

/* --- sequences (filters_list.c) --- */
/* Sort items[0..n) by keys[0..n), stably. */
void cw_jsort(struct cw_jrender *r, struct cw_jval *items, struct cw_jval *keys, size_t n,
              bool reverse);

#endif
