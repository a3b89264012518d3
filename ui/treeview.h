/* SPDX-License-Identifier: MIT
 *
 * The tree of a conversation on the screen: a line a message, with guides where it branches, and a
 * cursor. A run of messages without branches stays in its column, so that long conversations do not
 * leave the screen to the right. Pure.
 */
#ifndef UI_TREEVIEW_H
#define UI_TREEVIEW_H

#include "ui/wrap.h"

struct ui_treeview;

struct ui_treeview *ui_treeview_create(const char *title);
void ui_treeview_destroy(struct ui_treeview *v); /* NULL is fine */

/* A message; their numbers count from 1 as they are added. Its parent must have been added before
 * (0: it begins the conversation). Siblings stand in the order they were added. Only the beginning
 * of the text is kept. */
void ui_treeview_add(struct ui_treeview *v, uint64_t id, uint64_t parent, bool mine, bool on_path,
                     const char *text, size_t n);
void ui_treeview_select(struct ui_treeview *v, uint64_t id);
uint64_t ui_treeview_selected(const struct ui_treeview *v); /* 0: nothing is there */
void ui_treeview_move(struct ui_treeview *v, int lines);    /* held inside */
/* The view as text, a line a message; those of the path are marked with a star. */
void ui_treeview_text(struct ui_treeview *v, struct cw_buf *out);
/* Draw into rows [row, row + rows), the cursor always shown. */
void ui_treeview_draw(struct ui_treeview *v, struct ui_screen *s, int row, int rows);

#endif
