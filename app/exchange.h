/* SPDX-License-Identifier: MIT
 *
 * Conversations as files of other kinds: written (export.c) and read (import.c). Neither terminal
 * nor store is known here: both sides are the plain structs of chinwag/store.h.
 *
 * What is read is hostile: depth, lengths, roles and numbers are checked, nothing in it becomes a
 * path or a command, and titles are made printable.
 */
#ifndef APP_EXCHANGE_H
#define APP_EXCHANGE_H

#include "chinwag/store.h"

enum app_format {
    APP_FORMAT_MD,    /* Markdown: the branch that is shown */
    APP_FORMAT_JSON,  /* ours: all branches, tokens, settings; reading it gives the same again */
    APP_FORMAT_JSONL, /* a message of the branch a line: {"role", "content"} */
    APP_FORMAT_TXT,
    APP_FORMAT_HTML, /* one page, escaped, without scripts */
};
bool app_format_find(const char *name, enum app_format *out);

/* Append the conversation. `m` [n]: all its messages, parents first, as loaded; the branch is the
 * one that ends in c->leaf (0: in the last message). Control characters are written as \x1B and the
 * like, except in the two JSON formats. */
void app_export(enum app_format format, const struct cw_store_conversation *c,
                const struct cw_store_message *m, size_t n, struct cw_buf *out);

struct app_imported {
    struct cw_store_conversation conversation; /* leaf: index of a message + 1; 0: none */
    struct cw_store_message *messages;         /* parent: index + 1 of an earlier one; 0: none */
    size_t n_messages;
};
struct app_import {
    struct app_imported *v;
    size_t n;
    size_t n_left_out; /* parts that are no text: pictures and the like */
    char **memory;
    size_t n_memory;
};
/* Our JSON, a list of messages ({"role", "content"}, alone or as "messages"), ShareGPT
 * ("conversations": {"from", "value"}), lists and lines of these. Everything or, with a line that
 * says where and why not, nothing. */
int app_import_parse(const char *text, size_t n, struct app_import *out, struct cw_err *err);
void app_import_free(struct app_import *in);

#endif
