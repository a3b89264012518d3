/* SPDX-License-Identifier: MIT
 *
 * A page of text laid over the conversation: the help, what /show tells. Two columns of text,
 * wrapped to the width, scrolled by line. Pure.
 */
#ifndef UI_OVERLAY_H
#define UI_OVERLAY_H

#include "ui/wrap.h"

struct ui_overlay;

struct ui_overlay *ui_overlay_create(const char *title);
void ui_overlay_destroy(struct ui_overlay *o); /* NULL is fine */

void ui_overlay_heading(struct ui_overlay *o, const char *text);
/* A line: `key` in a column of its own, `text` beside it; either may be "". */
void ui_overlay_line(struct ui_overlay *o, const char *key, const char *text);

/* The page as text, a line an entry: its title, "KEY: TEXT". */
void ui_overlay_text(const struct ui_overlay *o, struct cw_buf *out);

void ui_overlay_scroll(struct ui_overlay *o, int lines); /* held inside the page when drawn */
/* Draw into rows [row, row + rows). */
void ui_overlay_draw(struct ui_overlay *o, struct ui_screen *s, int row, int rows);
/* In place of the input line: its keys, and how far down the page drawn last is. */
void ui_overlay_draw_line(const struct ui_overlay *o, struct ui_screen *s, int row);

#endif
