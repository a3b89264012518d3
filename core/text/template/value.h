/* SPDX-License-Identifier: MIT
 *
 * The values a template computes with, as Python has them, and the state of one render.
 *
 * All values live in the render's arena and are immutable but for namespaces, iterators, cyclers,
 * joiners and the loop; there is no cycle but through a namespace. Integers have 64 bits: a result
 * that does not fit is refused. One thread a render.
 */
#ifndef CHINWAG_TEMPLATE_VALUE_H
#define CHINWAG_TEMPLATE_VALUE_H

#include "chinwag/template.h"
#include "jstr.h"

enum cw_jkind {
    CW_J_ABSENT, /* an argument that was not given; templates never see it */
    CW_J_UNDEFINED,
    CW_J_NONE,
    CW_J_BOOL,
    CW_J_INT,
    CW_J_FLOAT,
    CW_J_STRING,
    CW_J_LIST,
    CW_J_TUPLE,
    CW_J_DICT,
    CW_J_VIEW,     /* dict.items(), .keys(), .values() */
    CW_J_RANGE,    /* range(...) */
    CW_J_ITERATOR, /* what map, select and their kin give: can be walked once */
    CW_J_NAMESPACE,
    CW_J_MACRO,
    CW_J_FUNCTION,
    CW_J_METHOD,
    CW_J_LOOP,
    CW_J_CYCLER,
    CW_J_JOINER,
};

struct cw_jval {
    enum cw_jkind kind;
    union {
        bool b;
        int64_t i;
        double f;
        const struct cw_jstr *s;
        const char *why; /* of an undefined value: what using it says, in the arena or static */
        struct cw_jlist *list; /* LIST, TUPLE, VIEW, ITERATOR */
        struct cw_jdict *dict; /* DICT, NAMESPACE */
        const struct cw_jrange *range;
        const struct cw_jmacro *macro;
        const struct cw_jbuiltin *function;
        const struct cw_jmethod *method;
        struct cw_jloop *loop;
        struct cw_jcycler *cycler; /* CYCLER, JOINER */
    };
};

extern const char cw_jdict_keys[]; /* the name of the view that dict.keys() gives */

struct cw_jlist {
    struct cw_jval *items; /* [n] */
    size_t n;
    size_t next;      /* ITERATOR: the first item not yet taken */
    const char *name; /* VIEW, ITERATOR: Python's name of the type */
};

struct cw_jpair {
    struct cw_jval key, value;
};

struct cw_jdict {
    struct cw_jpair *pairs; /* [n], in order of insertion */
    size_t n, cap;
};

struct cw_jrange {
    int64_t start, stop, step;
    int64_t n; /* start + i * step for 0 <= i < n; does not overflow */
};

struct cw_jmethod {
    struct cw_jval self;
    const struct cw_jbuiltin *builtin;
};

struct cw_jcycler {
    struct cw_jval *items; /* [n]; a joiner's separator */
    size_t n, at;
};

/* The arguments of one call. */
struct cw_jkeyword {
    const struct cw_jstr *name;
    struct cw_jval value;
};

struct cw_jargs {
    struct cw_jval *pos; /* [n_pos] */
    size_t n_pos;
    struct cw_jkeyword *kw; /* [n_kw] */
    size_t n_kw;
};

struct cw_jrender;

enum { CW_JMAX_PARAMS = 6 };

/* A filter, test, method or function of the engine. */
struct cw_jbuiltin {
    const char *name;
    /* Names of the parameters in order, separated by blanks; a "?" behind one: may be left out (it
     * then arrives as CW_J_ABSENT). "*" alone: any arguments, taken from `all`; "@" alone: no
     * method but a plain attribute. NULL: known to the
     * reference but not to this engine. */
    const char *params;
    struct cw_jval (*call)(struct cw_jrender *r, struct cw_jval self, const struct cw_jval *arg,
                           const struct cw_jargs *all);
};

/* Bounds of a render (template.c has the defaults and how they grow with the conversation). */
struct cw_jlimits {
    uint64_t steps;      /* evaluated nodes, loop turns and 64-byte pieces of text work */
    size_t output_bytes; /* of the rendered prompt */
    size_t value_bytes;  /* of all values made on the way */
    int depth;           /* of nested evaluation */
    int64_t range;       /* items of one range() */
};

struct cw_jscope;

struct cw_jrender {
    struct cw_jguard guard;
    struct cw_jarena arena;
    struct cw_jlimits limits;
    uint64_t steps;
    int depth;
    bool refused; /* by raise_exception */
    const struct cw_template *t;
    const struct cw_template_input *in;
    struct cw_jbuild *out;   /* where {{ }} and text go just now */
    struct cw_jscope *scope; /* innermost */
};

#define cw_jfailr(r, ...) cw_jfail(&(r)->guard, __VA_ARGS__)

/* Account for n steps; ends the render when there have been too many. */
void cw_jcharge(struct cw_jrender *r, uint64_t n);
/* The same for work that copies or scans `bytes` of text, and for work that looks at each of its
 * characters. */
void cw_jcharge_bytes(struct cw_jrender *r, size_t bytes);
void cw_jcharge_chars(struct cw_jrender *r, size_t bytes);
/* One level deeper; every cw_jenter has its cw_jleave. */
void cw_jenter(struct cw_jrender *r);
void cw_jleave(struct cw_jrender *r);

/* --- making values --- */
static inline struct cw_jval cw_jnone(void) {
    return (struct cw_jval){.kind = CW_J_NONE};
}
static inline struct cw_jval cw_jbool(bool b) {
    return (struct cw_jval){.kind = CW_J_BOOL, .b = b};
}
static inline struct cw_jval cw_jint(int64_t i) {
    return (struct cw_jval){.kind = CW_J_INT, .i = i};
}
static inline struct cw_jval cw_jfloat(double f) {
    return (struct cw_jval){.kind = CW_J_FLOAT, .f = f};
}
static inline struct cw_jval cw_jstring(const struct cw_jstr *s) {
    return (struct cw_jval){.kind = CW_J_STRING, .s = s};
}
/* data must live as long as the render; its origin is the template. */
struct cw_jval cw_jtext(struct cw_jrender *r, const char *data, size_t len);
struct cw_jval cw_jliteral(struct cw_jrender *r, const char *s);
struct cw_jval cw_jbuilt(struct cw_jbuild *b); /* ends b */
/* A copy of the formatted line becomes what using the value says. */
struct cw_jval cw_jundefined(struct cw_jrender *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A sequence with room for n items, which the caller fills. */
struct cw_jval cw_jseq(struct cw_jrender *r, enum cw_jkind kind, size_t n);
struct cw_jval cw_jiterator(struct cw_jrender *r, const char *name);
struct cw_jval cw_jdict(struct cw_jrender *r, enum cw_jkind kind);
void cw_jdict_set(struct cw_jrender *r, struct cw_jdict *d, struct cw_jval key,
                  struct cw_jval value);
/* Fails on what cannot be a key. */
void cw_jneed_hashable(struct cw_jrender *r, struct cw_jval key);
/* NULL if there is none. Fails on a key that cannot be hashed. */
const struct cw_jval *cw_jdict_get(struct cw_jrender *r, const struct cw_jdict *d,
                                   struct cw_jval key);
const struct cw_jval *cw_jdict_find(struct cw_jrender *r, const struct cw_jdict *d,
                                    const struct cw_jstr *key);

/* A list that grows while it is filled. */
struct cw_jfill {
    struct cw_jval *items;
    size_t n, cap;
};
void cw_jfill_add(struct cw_jrender *r, struct cw_jfill *f, struct cw_jval v);
struct cw_jval cw_jfill_end(struct cw_jrender *r, struct cw_jfill *f, enum cw_jkind kind);

/* --- asking values --- */
/* "str", "int", "NoneType", ...: Python's name of the type. */
const char *cw_jtype_name(struct cw_jval v);
bool cw_jtruth(struct cw_jrender *r, struct cw_jval v);
bool cw_jequal(struct cw_jrender *r, struct cw_jval a, struct cw_jval b);
/* cw_jstr_equal, accounted for. */
bool cw_jsame_text(struct cw_jrender *r, const struct cw_jstr *a, const struct cw_jstr *b);
/* a < b: negative, a > b: positive; fails where Python has no order. `op` is for the message. */
int cw_jorder(struct cw_jrender *r, const char *op, struct cw_jval a, struct cw_jval b);
bool cw_jcontains(struct cw_jrender *r, struct cw_jval container, struct cw_jval item);
/* cw_jstr_chars, accounted for. */
size_t cw_jcount_chars(struct cw_jrender *r, const struct cw_jstr *s);
/* len(v), or -1 where it has none. */
int64_t cw_jlen(struct cw_jrender *r, struct cw_jval v);
bool cw_jis_number(struct cw_jval v); /* bool, int or float */
double cw_jas_double(struct cw_jval number);
/* An int's or bool's value. */
static inline int64_t cw_jwhole(struct cw_jval v) {
    return v.kind == CW_J_INT ? v.i : v.b;
}
/* The value as an index or count: an int or bool; fails otherwise, naming `what`. */
int64_t cw_jas_int(struct cw_jrender *r, struct cw_jval v, const char *what);
/* An argument that Python takes as an int and asks for its truth; false where it was not given. */
bool cw_jas_flag(struct cw_jrender *r, struct cw_jval v, const char *what);
const struct cw_jstr *cw_jas_str(struct cw_jrender *r, struct cw_jval v, const char *what);
/* An undefined value was used where that is an error. */
void cw_jneed_defined(struct cw_jrender *r, struct cw_jval v);

/* Walking anything that can be walked. */
struct cw_jcursor {
    struct cw_jval v;
    size_t at;
};
bool cw_jiterable(struct cw_jval v);
struct cw_jcursor cw_jwalk(struct cw_jrender *r, struct cw_jval v); /* fails if it cannot be */
bool cw_jstep(struct cw_jrender *r, struct cw_jcursor *c, struct cw_jval *item);
/* All (remaining) items as a new list. */
struct cw_jval cw_jcollect(struct cw_jrender *r, struct cw_jval v);

/* --- values as text (text.c) --- */
const struct cw_jstr *cw_jstr_of(struct cw_jrender *r, struct cw_jval v); /* str(v) */
void cw_jput_str(struct cw_jrender *r, struct cw_jbuild *b, struct cw_jval v);
void cw_jput_repr(struct cw_jrender *r, struct cw_jbuild *b, struct cw_jval v);
/* The first message whose text is anywhere in v, or CW_JTEMPLATE. */
int32_t cw_jtaint(struct cw_jrender *r, struct cw_jval v);
/* repr() of a float, terminated. */
struct cw_jdigits {
    char s[32];
};
struct cw_jdigits cw_jfloat_repr(double f);

#endif
