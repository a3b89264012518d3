/* SPDX-License-Identifier: MIT
 *
 * The grid. Its invariant: a cell of width w is followed by w - 1 cells of width 0 in the same row,
 * and there are no other cells of width 0. Whatever overwrites part of a cluster blanks the rest.
 */
#include "ui/screen.h"

#include <stdlib.h>
#include <string.h>

#include "ui/osc.h"

enum { MAX_LINKS = 1024 };

static const struct ui_cell blank = {.text = " ", .len = 1, .width = 1, .role = UI_TEXT};
_Static_assert(sizeof(struct ui_cell) == UI_CLUSTER_BYTES + 8, "cells must have no padding");

void ui_screen_init(struct ui_screen *s, int rows, int cols) {
    *s = (struct ui_screen){.cursor_row = -1};
    ui_screen_resize(s, rows, cols);
}

static void drop_links(struct ui_screen *s) {
    for (size_t i = 0; i < s->n_links; i++) {
        free(s->links[i]);
    }
    free(s->links);
    s->links = NULL;
    s->n_links = 0;
    s->epoch++;
}

void ui_screen_free(struct ui_screen *s) {
    drop_links(s);
    free(s->cells);
    *s = (struct ui_screen){.cursor_row = -1};
}

void ui_screen_resize(struct ui_screen *s, int rows, int cols) {
    s->rows = rows < 1 ? 1 : rows;
    s->cols = cols < 1 ? 1 : cols;
    free(s->cells);
    s->cells = cw_calloc((size_t)s->rows * (size_t)s->cols, sizeof *s->cells);
    ui_screen_clear(s);
}

void ui_screen_clear(struct ui_screen *s) {
    size_t n = (size_t)s->rows * (size_t)s->cols;
    for (size_t i = 0; i < n; i++) {
        s->cells[i] = blank;
    }
    s->cursor_row = -1;
    s->cursor_col = 0;
    if (s->n_links > MAX_LINKS / 2) {
        drop_links(s); /* most of them are of text that was scrolled away */
    }
}

uint16_t ui_screen_link(struct ui_screen *s, const char *url) {
    for (uint16_t i = s->n_links; i-- > 0;) {
        if (strcmp(s->links[i], url) == 0) {
            return (uint16_t)(i + 1);
        }
    }
    if (s->n_links == MAX_LINKS || !ui_osc_safe_link(url, strlen(url))) {
        return 0;
    }
    if (s->links == NULL) {
        s->links = cw_calloc(MAX_LINKS, sizeof *s->links);
    }
    s->links[s->n_links++] = cw_strdup(url);
    return s->n_links;
}

struct ui_cell *ui_screen_at(const struct ui_screen *s, int row, int col) {
    if (row < 0 || row >= s->rows || col < 0 || col >= s->cols) {
        return NULL;
    }
    return &s->cells[(size_t)row * (size_t)s->cols + (size_t)col];
}

/* Blank the cluster that covers (row, col), keeping its role. */
static void erase_cluster(struct ui_screen *s, int row, int col) {
    struct ui_cell *line = &s->cells[(size_t)row * (size_t)s->cols];
    if (line[col].width == 1) {
        return;
    }
    while (line[col].width == 0) {
        col--;
    }
    for (int i = line[col].width - 1; i >= 0; i--) {
        uint8_t role = line[col + i].role;
        line[col + i] = blank;
        line[col + i].role = role;
    }
}

bool ui_screen_put_look(struct ui_screen *s, int row, int col, int limit,
                        const struct ui_cluster *c, const struct ui_look *look) {
    if (limit > s->cols) {
        limit = s->cols;
    }
    if (row < 0 || row >= s->rows || col < 0 || col + c->width > limit) {
        return false;
    }
    if (c->width == 0) {
        return true;
    }
    erase_cluster(s, row, col);
    erase_cluster(s, row, col + c->width - 1);
    struct ui_cell *cell = &s->cells[(size_t)row * (size_t)s->cols + (size_t)col];
    uint8_t role = (uint8_t)(c->mark ? UI_MARK : look->role);
    if (c->mark && c->len == c->width) {
        /* a mark is plain ASCII: a cell a letter, so that no line is redrawn for it */
        for (int i = 0; i < c->width; i++) {
            erase_cluster(s, row, col + i);
            cell[i] = blank;
            cell[i].text[0] = c->text[i];
            cell[i].role = role;
            cell[i].attrs = look->attrs;
        }
        return true;
    }
    *cell = (struct ui_cell){.len = c->len,
                             .width = (uint8_t)c->width,
                             .role = role,
                             .attrs = look->attrs,
                             .link = look->link,
                             .joined = c->joined};
    memcpy(cell->text, c->text, c->len);
    for (int i = 1; i < c->width; i++) {
        cell[i] = (struct ui_cell){.width = 0, .role = role};
    }
    return true;
}

bool ui_screen_put_cluster(struct ui_screen *s, int row, int col, int limit,
                           const struct ui_cluster *c, enum ui_role role) {
    const struct ui_look look = {.role = role};
    return ui_screen_put_look(s, row, col, limit, c, &look);
}

int ui_screen_put(struct ui_screen *s, int row, int col, int limit, const char *text, size_t n,
                  enum ui_role role) {
    struct ui_cluster c;
    for (size_t i = 0; i < n; i += c.bytes) {
        ui_cluster_next(text + i, n - i, &c);
        if (col < 0) {
            col += c.width; /* left of the screen */
            continue;
        }
        if (!ui_screen_put_cluster(s, row, col, limit, &c, role)) {
            break;
        }
        col += c.width;
    }
    return col;
}

int ui_screen_puts(struct ui_screen *s, int row, int col, int limit, const char *text,
                   enum ui_role role) {
    return ui_screen_put(s, row, col, limit, text, strlen(text), role);
}

void ui_screen_puts_cut(struct ui_screen *s, int row, int col, int limit, const char *text,
                        enum ui_role role) {
    limit = limit > s->cols ? s->cols : limit;
    bool fits = ui_text_width(text, strlen(text), limit - col + 1) <= limit - col;
    int end = ui_screen_puts(s, row, col, fits ? limit : limit - 1, text, role);
    if (!fits) {
        ui_screen_puts(s, row, end, limit, "…", role);
    }
}

void ui_screen_fill(struct ui_screen *s, int row, int col, int n, const char *text,
                    enum ui_role role) {
    struct ui_cluster c;
    ui_cluster_next(text, strlen(text), &c);
    if (c.width != 1) {
        return;
    }
    for (int i = 0; i < n; i++) {
        ui_screen_put_cluster(s, row, col + i, s->cols, &c, role);
    }
}

void ui_screen_row_text(const struct ui_screen *s, int row, struct cw_buf *out) {
    size_t end = out->len;
    for (int col = 0; col < s->cols; col++) {
        const struct ui_cell *c = ui_screen_at(s, row, col);
        if (c == NULL || c->width == 0) {
            continue;
        }
        cw_buf_add(out, c->text, c->len);
        if (!(c->len == 1 && c->text[0] == ' ')) {
            end = out->len;
        }
    }
    if (out->data != NULL) {
        out->len = end;
        out->data[end] = '\0';
    }
}
