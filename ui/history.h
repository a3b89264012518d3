/* SPDX-License-Identifier: MIT
 *
 * The file of what was written before. In front of each entry stands a line of UI_HISTORY_MARK and
 * the time in seconds, then the entry as it is, blank lines and all (which is why readline's own
 * reader will not do); no message has a line that begins like that.
 */
#ifndef UI_HISTORY_H
#define UI_HISTORY_H

#include <stddef.h>
#include <stdio.h>

#include "chinwag/err.h"

enum { UI_HISTORY_MARK = 0x1f };

/* Open a file to read and append, made with mode 0600 if there is none; NULL: it cannot be, or is
 * no regular file. */
FILE *ui_history_open(const char *path, struct cw_err *err);
/* Hand over its entries, the oldest first, with their line of time ("" where one is missing). */
void ui_history_read(FILE *f, void (*entry)(const char *text, const char *time));
void ui_history_write(FILE *f, const char *text, const char *time);
/* Write the file anew, as `write` does; it stays as it was if that fails. */
void ui_history_replace(const char *path, void (*write)(FILE *f));

#endif
