/* SPDX-License-Identifier: MIT
 *
 * The chat: terminal, conversation and generator put together in one event loop. Main thread only.
 */
#ifndef APP_APP_H
#define APP_APP_H

#include "app/options.h"

struct app_paths; /* app/paths.h: config, data, state and cache directories */

/* A line to show when the chat begins, such as a warning about config.ini. */
void app_chat_note(const char *line);

/* Run the chat on standard input and output, which must be a terminal. `settings` is changed by
 * /set and by keys; it stays the caller's. Returns the exit status of the program: 0 when the
 * person left, 1 when the chat could not start (said on standard error). When a signal ends the
 * chat everything is closed, the terminal restored, and the signal raised again, so that the
 * function does not return. */
int app_chat_run(struct app_settings *settings, const struct app_paths *paths);

#endif
