/* SPDX-License-Identifier: MIT
 *
 * What the store keeps of a message without knowing it: how its tokens were drawn beyond what the
 * columns hold, as one JSON object. Text from a file, so nothing in it is trusted.
 */
#ifndef APP_PERSIST_EXTRA_H
#define APP_PERSIST_EXTRA_H

#include "app/chat.h"

void app_extra_write(const struct chat_message *m, struct cw_buf *out);
/* The part that is needed before its tokens are known. */
void app_extra_typed(struct chat_message *m, struct cw_str extra);
void app_extra_read(struct chat_message *m, struct cw_str extra);
/* Once all messages are there: those that this one names. */
void app_extra_link(struct chat *c, struct chat_message *m);

#endif
