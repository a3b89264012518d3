/* SPDX-License-Identifier: MIT
 *
 * Chat templates: the model's own Jinja template, evaluated on a conversation.
 *
 * The interpreter covers what the templates of the field use, with trim_blocks and lstrip_blocks
 * on as the reference renderer has them. Anything it does not know is CW_ETEMPLATE naming line and
 * construct, never a silent substitute. A render is bounded in steps, output bytes, value bytes and
 * nesting depth, so a hostile template ends within about a second.
 *
 * Every byte of every value carries where it came from: the template (and what the engine gives
 * it: roles, begin and end tokens) or the content of one message. The result is a text cut into
 * spans by that origin, which the tokenizer uses to keep control tokens out of typed text.
 *
 * A template is immutable after creation; render from one thread at a time.
 */
#ifndef CHINWAG_TEMPLATE_H
#define CHINWAG_TEMPLATE_H

#include <time.h>

#include "chinwag/tokenizer.h"

struct cw_template;

struct cw_message {
    const char *role;    /* "system", "user", "assistant"; terminated */
    const char *content; /* may hold any byte */
    size_t len;
    /* For a reply: the ids that were generated for it, whose text is `content`; else NULL. */
    const int32_t *ids;
    size_t n_ids;
    /* For a reply of a thinking model: its reasoning, or NULL (given as reasoning_content). */
    const char *reasoning;
    size_t reasoning_len;
};

/* A further variable of the template, such as enable_thinking. */
struct cw_template_var {
    const char *name;
    enum { CW_VAR_BOOL, CW_VAR_STRING } kind;
    bool b;
    const char *s;
};

struct cw_template_input {
    const struct cw_message *messages;
    size_t n_messages;
    bool add_generation_prompt;
    bool content_parts;    /* contents as lists of one part, {"type": "text", "text": ...} */
    const char *bos, *eos; /* token texts; NULL: empty */
    struct tm now;         /* for strftime_now */
    const struct cw_template_var *vars;
    size_t n_vars;
};

/* A rendered prompt. `spans` cover text[0..len) in order without gaps, neighbours differ in origin;
 * their ids are NULL. */
struct cw_prompt {
    char *text;
    size_t len;
    struct cw_span *spans;
    size_t n_spans;
};

/* Parse source[0..len). The template keeps its own copy. */
int cw_template_create(struct cw_template **out, const char *source, size_t len,
                       struct cw_err *err);
void cw_template_destroy(struct cw_template *t);

/* Render. On success the caller must cw_prompt_free(out); on failure *out is empty. When the
 * template itself refuses (raise_exception), err->text holds its message after "template: " and
 * *refused is set if not NULL. */
int cw_template_render(const struct cw_template *t, const struct cw_template_input *in,
                       struct cw_prompt *out, bool *refused, struct cw_err *err);
void cw_prompt_free(struct cw_prompt *p);

/* The source of a chat format known by name ("chatml", "llama3", "mistral-v7-tekken"), for files
 * that carry none or a wrong one; NULL for an unknown name. And the i-th of the names, NULL past
 * the last. Static storage. */
const char *cw_template_builtin(const char *name);
const char *cw_template_builtin_name(size_t i);

#endif
