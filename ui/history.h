/* SPDX-License-Identifier: MIT
 *
 * The file of what was written before. In front of each entry stands a line of UI_HISTORY_MARK and
 * the time in seconds, then the entry as it is, blank lines and all (which is why readline's own
 * reader will not do); no message has a line that begins like that.
 */
#ifndef UI_HISTORY_H
#define UI_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "chinwag/err.h"
#include "chinwag/mem.h"

enum { UI_HISTORY_MARK = 0x1f };

/* Open a file to read and append, made with mode 0600 if there is none; NULL: it cannot be, or is
 * no regular file. */
FILE *ui_history_open(const char *path, struct cw_err *err);
/* Hand over its entries, the oldest first, with their line of time ("" where one is missing). */
void ui_history_read(FILE *f, void (*entry)(void *arg, const char *text, const char *time),
                     void *arg);
void ui_history_write(FILE *f, const char *text, const char *time);
/* Write the file anew, as `write` does. CW_EIO: it stays as it was. Another program that has it
 * open goes on writing into the old one, which is gone. */
int ui_history_replace(const char *path, void (*write)(void *arg, FILE *f), void *arg,
                       struct cw_err *err);

/* Whether an entry gives away a message: it is the message, or its first or last lines (the rest
 * was attached), or a command that ends with it. */
bool ui_history_tells(struct cw_str entry, struct cw_str message);
bool ui_history_tells_any(const char *entry, const struct cw_str *messages, size_t n);
/* Take the entries that tell one of messages[0..n) out of the file; without a file there are none.
 * CW_EIO as above. */
int ui_history_forget(const char *path, const struct cw_str *messages, size_t n,
                      struct cw_err *err);

#endif
