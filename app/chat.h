/* SPDX-License-Identifier: MIT
 *
 * The conversation: messages with everything a reply left behind (the ids that were generated,
 * which must never be tokenised again, where settings changed, the figures). It knows neither
 * terminal nor generator. Main thread.
 *
 * Invariant: user messages and replies alternate, beginning with a user message; the last message
 * may be a reply that is still being written.
 */
#ifndef APP_CHAT_H
#define APP_CHAT_H

#include "chinwag/generator.h"

enum chat_role { CHAT_USER, CHAT_REPLY };

/* New settings took hold for one token of a reply. */
struct chat_change {
    uint64_t token; /* its position in the reply */
    size_t offset;  /* bytes of the reply's text before it */
    struct cw_sampling from, to;
};

struct chat_message {
    enum chat_role role;
    struct cw_buf text;
    struct cw_buf reasoning; /* of a thinking model */
    struct cw_ids ids;       /* of a reply: all that were generated */
    struct chat_change *changes;
    size_t n_changes;
    struct cw_figures figures;
    uint32_t seed;
    enum cw_stop stop; /* once it is done */
    bool done;
    uint32_t block, thinking_block; /* of the transcript; 0: none */
};

struct chat {
    struct chat_message *messages;
    size_t n, cap;
};

/* The new message is empty; the pointer is valid until the next add. */
struct chat_message *chat_add(struct chat *c, enum chat_role role);
struct chat_message *chat_last(const struct chat *c); /* NULL when empty */
void chat_drop_last(struct chat *c);
void chat_clear(struct chat *c);
void chat_free(struct chat *c);

void chat_message_change(struct chat_message *m, uint64_t token, const struct cw_sampling *from,
                         const struct cw_sampling *to);

/* The conversation as the generator takes it, views of *c; a last reply that is empty is left out.
 * `system` may be NULL. Caller must free. */
struct cw_message *chat_messages(const struct chat *c, const char *system, size_t *n);
/* For a model without a template: the texts as one. */
void chat_raw(const struct chat *c, struct cw_buf *out);

/* "T 0.80 -> 0.95, top-p 0.95 -> 0.90"; "" when nothing a person sets differs. */
void chat_change_label(const struct cw_sampling *from, const struct cw_sampling *to,
                       struct cw_buf *out);

#endif
