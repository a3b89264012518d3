/* SPDX-License-Identifier: MIT
 *
 * See columns.h.
 */
#include "ui/columns.h"

#include <stdio.h>
#include <string.h>

enum { MIN_WIDTH = 18, MAX_ROWS = 512 };

/* The last lines of a text that fit, from column `col` on. */
static void draw_tail(struct ui_screen *s, int row, int rows, int col, int width,
                      const struct ui_column *c) {
    static struct ui_line lines[MAX_ROWS]; /* a ring; only the main thread draws */
    size_t keep = rows < 1 ? 0 : rows < MAX_ROWS ? (size_t)rows : MAX_ROWS;
    size_t n = 0, from = 0;
    /* no more than could be shown, from the start of a line */
    size_t most = keep * (size_t)width * UI_CLUSTER_BYTES;
    if (c->len > most) {
        const char *newline = memchr(c->text + c->len - most, '\n', most);
        from = newline != NULL ? (size_t)(newline - c->text) + 1 : 0;
    }
    while (from < c->len && keep > 0) {
        struct ui_line *line = &lines[n++ % keep];
        ui_wrap(c->text, c->len, from, width, true, line);
        from = line->next;
    }
    size_t shown = n < keep ? n : keep;
    for (size_t i = 0; i < shown; i++) {
        ui_wrap_draw(s, row + (int)i, col, col + width, c->text, &lines[(n - shown + i) % keep],
                     c->thinking ? UI_THINKING : UI_TEXT);
    }
}

static int draw_heading(struct ui_screen *s, int row, int col, int limit, const struct ui_column *c,
                        size_t i, bool chosen) {
    char text[32];
    snprintf(text, sizeof text, "%s%zu%s%s", chosen ? "[" : " ", i + 1, chosen ? "]" : " ",
             c->done ? "" : " ...");
    return ui_screen_puts(s, row, col, limit, text, chosen ? UI_SELECTED : UI_REPLY);
}

void ui_columns_draw(struct ui_screen *s, int row, int rows, const struct ui_column *columns,
                     size_t n, size_t chosen) {
    if (rows < 1 || n < 1 || chosen >= n) {
        return;
    }
    if (rows > 3) {
        char text[96];
        snprintf(text, sizeof text, "%zu replies: 1-%zu or Enter takes one, the others stay", n, n);
        ui_screen_puts(s, row, 1, s->cols, text, UI_NOTICE);
        row++;
        rows--;
    }
    int each = (s->cols - 1) / (int)n;
    if (each - 2 < MIN_WIDTH) {
        int col = 1;
        for (size_t i = 0; i < n; i++) {
            col = draw_heading(s, row, col, s->cols, &columns[i], i, i == chosen) + 1;
        }
        draw_tail(s, row + 1, rows - 1, 1, s->cols > 2 ? s->cols - 2 : 1, &columns[chosen]);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        int col = 1 + each * (int)i;
        draw_heading(s, row, col, col + each - 2, &columns[i], i, i == chosen);
        draw_tail(s, row + 1, rows - 1, col, each - 2, &columns[i]);
        for (int r = 0; r < rows && i > 0; r++) {
            ui_screen_puts(s, row + r, col - 2, col - 1, "│", UI_RULE);
        }
    }
}
