/* SPDX-License-Identifier: MIT
 *
 * A line of text to be typed into a panel: what to search for, what to find in a list. One line,
 * the few keys everyone knows; messages are written with readline (input.h). Pure.
 */
#ifndef UI_LINEEDIT_H
#define UI_LINEEDIT_H

#include "ui/key.h"
#include "ui/screen.h"

struct ui_lineedit {
    struct cw_buf text; /* text.data is NULL while nothing was typed */
    size_t cursor;      /* byte, on a cluster border */
    bool fresh;         /* the next character replaces all: a text left from before */
};

void ui_lineedit_free(struct ui_lineedit *e);
void ui_lineedit_set(struct ui_lineedit *e, const char *text, bool fresh);
const char *ui_lineedit_text(const struct ui_lineedit *e); /* never NULL */

/* Take a key (a paste too, its line ends as blanks). False: it is none of a line's keys. */
bool ui_lineedit_key(struct ui_lineedit *e, const struct ui_key *key);

/* Draw into columns [col, limit), scrolled so that the cursor shows, and set the cursor. */
void ui_lineedit_draw(const struct ui_lineedit *e, struct ui_screen *s, int row, int col,
                      int limit);

#endif
