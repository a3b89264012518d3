/* SPDX-License-Identifier: MIT
 *
 * One reply to standard output and out: `chinwag -p TEXT`, `chinwag < file`. It goes the same way
 * as a turn of the chat: generator thread, ring, live settings.
 */
#ifndef APP_ONESHOT_H
#define APP_ONESHOT_H

#include "app/options.h"

struct app_oneshot {
    const char *model_path;
    const char *chat_template; /* source, NULL: the model's own */
    const char *prompt;        /* [prompt_len] any bytes; the user's message */
    size_t prompt_len;
    bool json; /* one object with ids, figures and the stop reason instead of the bare text */
};

/* Returns the exit status: 0 for a reply that ended, 1 for failures (told on standard error, except
 * that a reader who left is no news), 130 when interrupted. */
int app_oneshot_run(struct app_settings *s, const struct app_oneshot *o);

#endif
