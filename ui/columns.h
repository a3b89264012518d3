/* SPDX-License-Identifier: MIT
 *
 * Several texts side by side, each shown at its end while it grows, one of them chosen. Where the
 * screen is too narrow only the chosen one is shown, under the numbers of all. Pure.
 */
#ifndef UI_COLUMNS_H
#define UI_COLUMNS_H

#include "ui/wrap.h"

struct ui_column {
    const char *text;
    size_t len;
    bool thinking; /* of the model's thinking so far */
    bool done;
};

/* Draw into rows [row, row + rows). */
void ui_columns_draw(struct ui_screen *s, int row, int rows, const struct ui_column *columns,
                     size_t n, size_t chosen);

#endif
