/* SPDX-License-Identifier: MIT
 *
 * A message of the chat as a row of the store, and back. How its tokens were drawn beyond what the
 * columns hold is one JSON object, which the store keeps without knowing it: text from a file, so
 * nothing in it is trusted.
 */
#ifndef APP_PERSIST_ROWS_H
#define APP_PERSIST_ROWS_H

#include "app/chat.h"
#include "chinwag/store.h"

struct app_row {
    struct cw_store_message message; /* views of the chat's message and of what follows */
    struct cw_store_token *tokens;
    struct cw_store_change *changes;
    struct cw_buf extra;
    char arithmetic[24];
};

/* The row of a message as far as it is settled: the last token of a reply that is being written may
 * still get text. The message must stay as it is until app_row_free. */
void app_row_make(struct app_row *row, const struct chat *c, const struct chat_message *m);
void app_row_free(struct app_row *row);
/* The settled part in numbers: tokens, and bytes of the two texts. */
size_t app_row_settled(const struct chat_message *m, size_t *text, size_t *reasoning);
/* Tokens [from, to) as the store has them. Caller must free. */
struct cw_store_token *app_row_tokens(const struct chat_message *m, size_t from, size_t to);

/* A message as it was kept becomes *m, which is in its place in the tree and empty. */
void app_row_take(struct chat_message *m, const struct chat *c, const struct cw_store_message *row);

#endif
