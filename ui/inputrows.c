/* SPDX-License-Identifier: MIT
 *
 * See inputrows.h. The text is wrapped between any two clusters, not at blanks: what is typed never
 * moves to another row.
 */
#include "ui/inputrows.h"

#include <stdlib.h>
#include <string.h>

static void add_row(struct ui_input_rows *r, struct ui_line line, int col, bool prompt) {
    if (r->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 16;
        r->rows = cw_reallocarray(r->rows, (size_t)r->cap, sizeof *r->rows);
    }
    r->rows[r->n++] = (struct ui_input_row){line, col, prompt};
}

/* Go on from byte `at` of a line by one cluster, *col being the column before it. */
static size_t next_cluster(const char *s, size_t at, const struct ui_line *line, int *col) {
    struct ui_cluster c;
    if (s[at] == '\t') {
        *col += UI_TAB - *col % UI_TAB;
        return at + 1;
    }
    ui_cluster_next(s + at, line->end - at, &c);
    *col += c.width;
    return at + c.bytes;
}

/* Columns of the part of a line before byte `point`. */
static int column_of(const char *s, const struct ui_line *line, size_t point) {
    int col = 0;
    for (size_t at = line->begin; at < point && at < line->end;) {
        at = next_cluster(s, at, line, &col);
    }
    return col;
}

void ui_input_rows_make(struct ui_input_rows *r, const char *prompt, bool fixed, const char *text,
                        size_t n, size_t point, int cols) {
    *r = (struct ui_input_rows){.prompt = prompt, .text = text};
    size_t n_prompt = strlen(prompt);
    int indent = ui_text_width(prompt, n_prompt, 1000);
    if (fixed && indent + 4 > cols) {
        indent = 0; /* no room for it */
        n_prompt = 0;
    } else if (!fixed && indent > cols / 2) {
        for (size_t at = 0; at < n_prompt;) {
            struct ui_line line;
            ui_wrap(prompt, n_prompt, at, cols, true, &line);
            add_row(r, line, 0, true);
            at = line.next;
        }
        indent = 0;
    } else {
        add_row(r, (struct ui_line){.end = n_prompt}, 0, true);
    }
    int first = r->n;
    /* the last column is left for the cursor behind a full row */
    int width = cols - indent - 1 < 1 ? 1 : cols - indent - 1;
    struct ui_line line = {.newline = true};
    for (size_t at = 0; at < n; at = line.next) {
        ui_wrap(text, n, at, width, false, &line);
        add_row(r, line, indent, false);
    }
    if (line.newline || (line.width >= width && point == n)) {
        add_row(r, (struct ui_line){n, n, n, 0, false}, indent, false);
    }
    r->cursor_row = r->n - 1;
    for (int i = first; i < r->n; i++) {
        const struct ui_line *l = &r->rows[i].line;
        if (point < l->next || i + 1 == r->n) {
            r->cursor_row = i;
            r->cursor_col = indent + column_of(text, l, point);
            break;
        }
    }
    r->shared = r->n > 1 && r->rows[0].prompt && !r->rows[1].prompt && r->rows[1].col > 0;
}

void ui_input_rows_free(struct ui_input_rows *r) {
    free(r->rows);
}

int ui_input_rows_count(const struct ui_input_rows *r) {
    return r->n - r->shared;
}

bool ui_input_rows_move(const struct ui_input_rows *r, int by, size_t *byte) {
    int to = r->cursor_row + by;
    if (to < 0 || to >= r->n || r->rows[to].prompt) {
        return false;
    }
    const struct ui_line *line = &r->rows[to].line;
    int want = r->cursor_col - r->rows[to].col;
    int col = 0;
    *byte = line->begin;
    while (*byte < line->end) {
        size_t next = next_cluster(r->text, *byte, line, &col);
        if (col > want) {
            break;
        }
        *byte = next;
    }
    return true;
}

int ui_input_rows_draw(const struct ui_input_rows *r, struct ui_screen *s, int row, int rows,
                       int top) {
    int last_end = 0;
    for (int i = 0; i < r->n; i++) {
        const struct ui_input_row *one = &r->rows[i];
        int at = (i == 0 ? 0 : i - r->shared) - top;
        if (at >= 0 && at < rows) {
            ui_wrap_draw(s, row + at, one->col, s->cols, one->prompt ? r->prompt : r->text,
                         &one->line, one->prompt ? UI_PROMPT : UI_TEXT);
            last_end = at == rows - 1 ? one->col + one->line.width : last_end;
        }
    }
    return last_end;
}
