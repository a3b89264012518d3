/* SPDX-License-Identifier: MIT
 *
 * The rows of the input line: its prompt and its text, soft-wrapped, and where the cursor is in
 * them. Pure.
 */
#ifndef UI_INPUTROWS_H
#define UI_INPUTROWS_H

#include "ui/wrap.h"

struct ui_input_row {
    struct ui_line line; /* of the prompt or of the text */
    int col;             /* where it begins */
    bool prompt;
};

struct ui_input_rows {
    const char *prompt, *text; /* borrowed */
    struct ui_input_row *rows;
    int n, cap;
    int cursor_row, cursor_col;
    bool shared; /* the first row, the prompt's, is that of the first row of the text as well */
};

/* Lay out prompt and text[0..n) with the cursor before byte `point`. A `fixed` prompt is left out
 * where there is no room for it; another has rows of its own there. */
void ui_input_rows_make(struct ui_input_rows *r, const char *prompt, bool fixed, const char *text,
                        size_t n, size_t point, int cols);
void ui_input_rows_free(struct ui_input_rows *r);
int ui_input_rows_count(const struct ui_input_rows *r); /* of the screen */

/* The byte of the text `by` rows from the cursor, in its column or before; false: there is no such
 * row of the text. */
bool ui_input_rows_move(const struct ui_input_rows *r, int by, size_t *byte);

/* Draw the rows from `top` on into rows [row, row + rows) of the screen. Returns the column behind
 * the text of the last of them. */
int ui_input_rows_draw(const struct ui_input_rows *r, struct ui_screen *s, int row, int rows,
                       int top);

#endif
