/* SPDX-License-Identifier: MIT
 *
 * See chat.h.
 */
#include "app/chat.h"

#include <stdlib.h>
#include <string.h>

struct chat_message *chat_add(struct chat *c, enum chat_role role) {
    if (c->n == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 16;
        c->messages = cw_reallocarray(c->messages, c->cap, sizeof *c->messages);
    }
    c->messages[c->n] = (struct chat_message){.role = role};
    return &c->messages[c->n++];
}

struct chat_message *chat_last(const struct chat *c) {
    return c->n > 0 ? &c->messages[c->n - 1] : NULL;
}

void chat_drop_last(struct chat *c) {
    if (c->n == 0) {
        return;
    }
    struct chat_message *m = &c->messages[--c->n];
    cw_buf_free(&m->text);
    cw_buf_free(&m->reasoning);
    cw_ids_free(&m->ids);
    free(m->changes);
}

void chat_clear(struct chat *c) {
    while (c->n > 0) {
        chat_drop_last(c);
    }
}

void chat_free(struct chat *c) {
    chat_clear(c);
    free(c->messages);
    *c = (struct chat){0};
}

void chat_message_change(struct chat_message *m, uint64_t token, const struct cw_sampling *from,
                         const struct cw_sampling *to) {
    m->changes = cw_reallocarray(m->changes, m->n_changes + 1, sizeof *m->changes);
    m->changes[m->n_changes++] = (struct chat_change){token, m->text.len, *from, *to};
}

struct cw_message *chat_messages(const struct chat *c, const char *system, size_t *n) {
    struct cw_message *out = cw_calloc(c->n + 1, sizeof *out);
    *n = 0;
    if (system != NULL && system[0] != '\0') {
        out[(*n)++] =
            (struct cw_message){.role = "system", .content = system, .len = strlen(system)};
    }
    for (size_t i = 0; i < c->n; i++) {
        const struct chat_message *m = &c->messages[i];
        bool reply = m->role == CHAT_REPLY;
        if (reply && i + 1 == c->n && m->text.len == 0 && m->ids.n == 0) {
            break; /* the one that is being asked for */
        }
        out[(*n)++] = (struct cw_message){
            .role = reply ? "assistant" : "user",
            .content = m->text.data ? m->text.data : "",
            .len = m->text.len,
            .ids = m->ids.v,
            .n_ids = m->ids.n,
            .reasoning = m->reasoning.data,
            .reasoning_len = m->reasoning.len,
        };
    }
    return out;
}

void chat_raw(const struct chat *c, struct cw_buf *out) {
    for (size_t i = 0; i < c->n; i++) {
        const struct cw_buf *text = &c->messages[i].text;
        if (text->len > 0) {
            cw_buf_add(out, text->data, text->len);
        }
    }
}

/* One setting of the label. */
static void label(struct cw_buf *out, const char *name, double from, double to, int digits) {
    /* the values were set as they are compared, so equal means untouched */
    if (from < to || from > to) {
        cw_buf_printf(out, "%s%s %.*f -> %.*f", out->len > 0 ? ", " : "", name, digits, from,
                      digits, to);
    }
}

void chat_change_label(const struct cw_sampling *from, const struct cw_sampling *to,
                       struct cw_buf *out) {
    label(out, "T", (double)from->temp, (double)to->temp, 2);
    label(out, "top-p", (double)from->top_p, (double)to->top_p, 2);
    label(out, "top-k", from->top_k, to->top_k, 0);
    label(out, "min-p", (double)from->min_p, (double)to->min_p, 2);
    label(out, "typical-p", (double)from->typical_p, (double)to->typical_p, 2);
    label(out, "repeat-penalty", (double)from->penalty_repeat, (double)to->penalty_repeat, 2);
    label(out, "frequency-penalty", (double)from->penalty_frequency, (double)to->penalty_frequency,
          2);
    label(out, "presence-penalty", (double)from->penalty_presence, (double)to->penalty_presence, 2);
    label(out, "dry", (double)from->dry_multiplier, (double)to->dry_multiplier, 2);
    label(out, "xtc", (double)from->xtc_probability, (double)to->xtc_probability, 2);
    if (out->len == 0 && memcmp(from, to, sizeof *from) != 0) {
        cw_buf_puts(out, "settings changed");
    }
}
