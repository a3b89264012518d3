/* SPDX-License-Identifier: MIT
 *
 * Breaking text into lines by cluster and column. Pure.
 */
#ifndef UI_WRAP_H
#define UI_WRAP_H

#include "ui/screen.h"

enum { UI_TAB = 4 };

/* One line of a text, in bytes: [begin, end) is drawn, the next line begins at `next` (blanks at a
 * break and the newline lie between). */
struct ui_line {
    size_t begin, end, next;
    int width;    /* columns of [begin, end) */
    bool newline; /* ended by one, so that another line follows even at the end of the text */
};

/* Lay out the line that begins at byte `from` < n. With `words`, breaks after a blank where there
 * is one; else between any two clusters. Only bytes of this line (and a bounded number after it)
 * are looked at, so that whoever keeps lines can go on from the last one when text was appended. A
 * cluster wider than the line stands alone in one. */
void ui_wrap(const char *s, size_t n, size_t from, int width, bool words, struct ui_line *out);

/* Draw [line->begin, line->end) of s at (row, col), tabs as blanks. */
void ui_wrap_draw(struct ui_screen *screen, int row, int col, int limit, const char *s,
                  const struct ui_line *line, enum ui_role role);

#endif
