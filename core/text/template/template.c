/* SPDX-License-Identifier: MIT
 * Chat templates: the public functions, and what a conversation looks like to a template. */
#include "chinwag/template.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/mem.h"
#include "eval.h"
#include "limits.h"

enum { MAX_SOURCE_BYTES = 1 << 20, MAX_PARSED_BYTES = 64 << 20 };

/* Numbers and dates are read and written in the C locale, wherever the program runs: for the
 * calling thread, while it parses or renders. */
struct locale_change {
    locale_t c, before;
};

static struct locale_change enter_c_locale(void) {
    struct locale_change change = {.c = newlocale(LC_ALL_MASK, "C", (locale_t)0)};
    change.before = uselocale(change.c); /* a missing locale changes nothing */
    return change;
}

static void leave_c_locale(struct locale_change change) {
    uselocale(change.before);
    if (change.c != (locale_t)0) {
        freelocale(change.c);
    }
}

/* ------------------------------------------------------------------ parsing */

/* A copy with every line end made \n, and without the one at the very end. */
static void take_source(struct cw_template *t, const char *source, size_t len) {
    char *copy = cw_jalloc(&t->arena, len + 1);
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        copy[n++] = source[i] == '\r' ? '\n' : source[i];
        i += source[i] == '\r' && i + 1 < len && source[i + 1] == '\n';
    }
    n -= n > 0 && copy[n - 1] == '\n';
    copy[n] = '\0';
    t->source = copy;
    t->len = n;
}

static int parse(struct cw_template *t, struct cw_jguard *g, const char *source, size_t len) {
    if (setjmp(g->escape) != 0) {
        return g->code;
    }
    take_source(t, source, len);
    cw_jparse(t, g);
    return CW_OK;
}

int cw_template_create(struct cw_template **out, const char *source, size_t len,
                       struct cw_err *err) {
    *out = NULL;
    if (len > MAX_SOURCE_BYTES) {
        return cw_fail(err, CW_ETEMPLATE, "template: longer than %d KiB", MAX_SOURCE_BYTES >> 10);
    }
    struct cw_jguard guard = {.err = err, .line = 1};
    struct cw_template *t = cw_calloc(1, sizeof *t);
    t->arena = (struct cw_jarena){.guard = &guard, .limit_bytes = MAX_PARSED_BYTES};
    struct locale_change change = enter_c_locale();
    int code = parse(t, &guard, source, len);
    leave_c_locale(change);
    t->arena.guard = NULL; /* it was this call's; nothing is allocated here from now on */
    if (code != CW_OK) {
        cw_template_destroy(t);
        return code;
    }
    *out = t;
    return CW_OK;
}

void cw_template_destroy(struct cw_template *t) {
    if (t != NULL) {
        cw_jarena_free(&t->arena);
        free(t);
    }
}

/* ------------------------------------------------------------------ rendering */

struct cw_jlimits cw_jlimits_for(const struct cw_template_input *in) {
    size_t input_bytes = 0;
    for (size_t i = 0; i < in->n_messages; i++) {
        input_bytes += in->messages[i].len + in->messages[i].reasoning_len;
    }
    return (struct cw_jlimits){
        .steps = 3000000 + 4000 * (uint64_t)in->n_messages + 4 * (uint64_t)input_bytes,
        .output_bytes = ((size_t)8 << 20) + 8 * input_bytes,
        .value_bytes = ((size_t)48 << 20) + 32 * input_bytes,
        .depth = 400,
        .range = 100000,
    };
}

static void set_variable(struct cw_jrender *r, const char *name, struct cw_jval v) {
    const struct cw_jname *n = cw_jname_lookup(r->t, name, strlen(name));
    if (n != NULL) { /* else the template never mentions it */
        cw_jscope_set(r, n, v);
    }
}

static void set_field(struct cw_jrender *r, struct cw_jval d, const char *key, struct cw_jval v) {
    cw_jdict_set(r, d.dict, cw_jliteral(r, key), v);
}

static struct cw_jval one_part(struct cw_jrender *r, struct cw_jval text) {
    struct cw_jval list = cw_jseq(r, CW_J_LIST, 1), part = cw_jdict(r, CW_J_DICT);
    set_field(r, part, "type", cw_jliteral(r, "text"));
    set_field(r, part, "text", text);
    list.list->items[0] = part;
    return list;
}

/* The messages as a list of dicts. Contents are not copied: each is a string of one run, its
 * message's. */
static struct cw_jval conversation(struct cw_jrender *r) {
    const struct cw_template_input *in = r->in;
    struct cw_jval list = cw_jseq(r, CW_J_LIST, in->n_messages);
    struct cw_jrun *runs = cw_jalloc_array(&r->arena, in->n_messages, sizeof *runs);
    for (size_t i = 0; i < in->n_messages; i++) {
        const struct cw_message *m = &in->messages[i];
        struct cw_jval d = cw_jdict(r, CW_J_DICT);
        runs[i] = (struct cw_jrun){SIZE_MAX, (int32_t)i};
        set_field(r, d, "role", cw_jliteral(r, m->role != NULL ? m->role : ""));
        struct cw_jval content = cw_jstring(cw_jstr_new(&r->arena, m->content, m->len, &runs[i]));
        set_field(r, d, "content", in->content_parts ? one_part(r, content) : content);
        if (m->reasoning != NULL) {
            set_field(r, d, "reasoning_content",
                      cw_jstring(cw_jstr_new(&r->arena, m->reasoning, m->reasoning_len, &runs[i])));
        }
        list.list->items[i] = d;
    }
    return list;
}

static void set_inputs(struct cw_jrender *r) {
    const struct cw_template_input *in = r->in;
    set_variable(r, "messages", conversation(r));
    set_variable(r, "add_generation_prompt", cw_jbool(in->add_generation_prompt));
    set_variable(r, "bos_token", cw_jliteral(r, in->bos != NULL ? in->bos : ""));
    set_variable(r, "eos_token", cw_jliteral(r, in->eos != NULL ? in->eos : ""));
    for (size_t i = 0; i < in->n_vars; i++) {
        const struct cw_template_var *v = &in->vars[i];
        set_variable(r, v->name,
                     v->kind == CW_VAR_BOOL ? cw_jbool(v->b)
                                            : cw_jliteral(r, v->s != NULL ? v->s : ""));
    }
}

/* The finished text leaves the arena, which goes with the render. */
static void take_prompt(const struct cw_jbuild *text, struct cw_prompt *out) {
    out->text = cw_strndup(text->data != NULL ? text->data : "", text->len);
    out->len = text->len;
    out->n_spans = text->n_runs;
    out->spans = cw_calloc(text->n_runs, sizeof *out->spans);
    for (size_t i = 0, begin = 0; i < text->n_runs; i++) {
        out->spans[i] = (struct cw_span){
            .begin = begin, .end = text->runs[i].end, .message = text->runs[i].origin};
        begin = text->runs[i].end;
    }
}

static int render(struct cw_jrender *r, struct cw_jbuild *text) {
    if (setjmp(r->guard.escape) != 0) {
        return r->guard.code;
    }
    r->out = text;
    cw_jscope_push(r);
    set_inputs(r);
    cw_jscope_push(r); /* what the template sets goes on top of what it is given */
    cw_jexec(r, &r->t->body);
    return CW_OK;
}

int cw_template_render_within(const struct cw_template *t, const struct cw_template_input *in,
                              const struct cw_jlimits *limits, struct cw_prompt *out, bool *refused,
                              struct cw_err *err) {
    struct cw_jrender *r = cw_calloc(1, sizeof *r);
    r->t = t;
    r->in = in;
    r->limits = *limits;
    r->guard = (struct cw_jguard){.err = err, .line = 1};
    r->arena = (struct cw_jarena){.guard = &r->guard, .limit_bytes = limits->value_bytes};
    struct cw_jbuild text = cw_jbuild_new(&r->arena);
    text.max_bytes = limits->output_bytes;
    struct locale_change change = enter_c_locale();
    int code = render(r, &text);
    leave_c_locale(change);
    *out = (struct cw_prompt){0};
    if (code == CW_OK) {
        take_prompt(&text, out);
    }
    if (refused != NULL) {
        *refused = r->refused;
    }
    cw_jarena_free(&r->arena);
    free(r);
    return code;
}

int cw_template_render(const struct cw_template *t, const struct cw_template_input *in,
                       struct cw_prompt *out, bool *refused, struct cw_err *err) {
    struct cw_jlimits limits = cw_jlimits_for(in);
    return cw_template_render_within(t, in, &limits, out, refused, err);
}

void cw_prompt_free(struct cw_prompt *p) {
    free(p->text);
    free(p->spans);
    *p = (struct cw_prompt){0};
}
