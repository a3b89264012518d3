/* SPDX-License-Identifier: MIT
 * What the template suites share: running a template, looking at its spans, reading test data. */
#ifndef CHINWAG_TESTS_TEMPLATE_HARNESS_H
#define CHINWAG_TESTS_TEMPLATE_HARNESS_H

#include <json-c/json.h>

#include "chinwag/template.h"
#include "core/text/template/limits.h"

/* Sanitizers make stacks and heaps larger than what is promised. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

struct run {
    int code;
    bool refused;
    struct cw_err err;
    struct cw_prompt prompt;
};

/* Parse and render. limits NULL: the usual ones. Checks what holds for every prompt: that its spans
 * cover it without gaps and differ from their neighbours, and that a failure leaves it empty. */
struct run run_template(const char *source, size_t len, const struct cw_template_input *in,
                        const struct cw_jlimits *limits);
void run_free(struct run *r);

/* Four messages (system, user, assistant with reasoning, user), <s>, </s>, flag and word; the
 * conversation for which snippets.json holds the reference's results. */
const struct cw_template_input *standard_input(void);

/* Messages from JSON; the strings stay the property of `list`. Caller frees the array. */
struct cw_message *messages_of(struct json_object *list, size_t *n);

/* A file below the source root, or NULL. Caller frees. */
char *read_file(const char *path, size_t *len);
struct json_object *read_json(const char *path);

/* Render a template that must succeed, and compare. */
void expect_text(const char *source, const struct cw_template_input *in, const char *text);
/* A template that must fail with "template: line N: " and a text that holds `part`. */
void expect_error(const char *source, int line, const char *part);

#endif
