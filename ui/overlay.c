/* SPDX-License-Identifier: MIT
 *
 * The page is laid out while it is drawn: it is short, and so it is right at every size.
 */
#include "ui/overlay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/mem.h"

enum {
    MAX_KEY = 26,   /* columns; a longer key has a line of its own */
    TITLE_ROWS = 6, /* fewer are all for the page */
};

struct entry {
    char *key, *text;
    bool heading;
};

struct ui_overlay {
    char *title;
    struct entry *entries;
    size_t n;
    int top;   /* first line shown */
    int lines; /* of the page as it was drawn last, and the last of them shown */
    int seen;
};

struct ui_overlay *ui_overlay_create(const char *title) {
    struct ui_overlay *o = cw_calloc(1, sizeof *o);
    o->title = cw_strdup(title);
    return o;
}

void ui_overlay_destroy(struct ui_overlay *o) {
    if (o == NULL) {
        return;
    }
    for (size_t i = 0; i < o->n; i++) {
        free(o->entries[i].key);
        free(o->entries[i].text);
    }
    free(o->entries);
    free(o->title);
    free(o);
}

static void add(struct ui_overlay *o, const char *key, const char *text, bool heading) {
    o->entries = cw_reallocarray(o->entries, o->n + 1, sizeof *o->entries);
    o->entries[o->n++] = (struct entry){cw_strdup(key), cw_strdup(text), heading};
}

void ui_overlay_heading(struct ui_overlay *o, const char *text) {
    add(o, "", text, true);
}

void ui_overlay_line(struct ui_overlay *o, const char *key, const char *text) {
    add(o, key, text, false);
}

void ui_overlay_text(const struct ui_overlay *o, struct cw_buf *out) {
    cw_buf_printf(out, "%s\n", o->title);
    for (size_t i = 0; i < o->n; i++) {
        const struct entry *e = &o->entries[i];
        bool both = e->key[0] != '\0' && e->text[0] != '\0';
        cw_buf_printf(out, "%s%s%s%s\n", e->key, both ? ": " : "", e->text, e->heading ? ":" : "");
    }
}

void ui_overlay_scroll(struct ui_overlay *o, int lines) {
    o->top += lines;
}

/* Lay out all entries; draw those lines that fall into the page. Returns the number of lines. */
static int lay_out(const struct ui_overlay *o, struct ui_screen *s, int row, int rows) {
    int key_width = 0;
    for (size_t i = 0; i < o->n; i++) {
        int width = ui_text_width(o->entries[i].key, strlen(o->entries[i].key), s->cols);
        key_width = width > key_width && width <= MAX_KEY ? width : key_width;
    }
    /* keys beside the text where there is room, else above it, which is then further in */
    bool room = key_width + 24 <= s->cols;
    int above_col = s->cols >= 30 ? 4 : s->cols >= 12 ? 2 : 0;
    int text_col = !room ? above_col : key_width > 0 ? key_width + 4 : 2;
    int key_col = room ? 2 : above_col / 2;
    int width = s->cols - text_col - (s->cols >= 12 ? 1 : 0);
    int line = 0;
    for (size_t i = 0; i < o->n; i++) {
        const struct entry *e = &o->entries[i];
        int first = line;
        if (e->key[0] != '\0') {
            if (line >= o->top && line < o->top + rows) {
                ui_screen_puts(s, row + line - o->top, key_col, s->cols, e->key, UI_HELP_KEY);
            }
            bool beside = room && ui_text_width(e->key, strlen(e->key), s->cols) <= key_width;
            line += beside ? 0 : 1;
        }
        size_t n = strlen(e->text);
        struct ui_line l = {0};
        for (size_t at = 0; at < n; at = l.next, line++) {
            ui_wrap(e->text, n, at, width < 1 ? 1 : width, true, &l);
            if (line >= o->top && line < o->top + rows) {
                ui_wrap_draw(s, row + line - o->top, e->heading ? (s->cols >= 12) : text_col,
                             s->cols, e->text, &l, e->heading ? UI_TITLE : UI_TEXT);
            }
        }
        line += line == first; /* an empty entry is a blank line */
    }
    return line;
}

void ui_overlay_draw(struct ui_overlay *o, struct ui_screen *s, int row, int rows) {
    for (int r = 0; r < rows; r++) {
        ui_screen_fill(s, row + r, 0, s->cols, " ", UI_TEXT);
    }
    int head = rows >= TITLE_ROWS ? 2 : 0;
    if (head > 0) {
        ui_screen_puts(s, row, s->cols >= 12, s->cols, o->title, UI_TITLE);
    }
    int body = rows - head;
    o->lines = lay_out(o, s, s->rows, 0);
    int max_top = o->lines > body ? o->lines - body : 0;
    o->top = o->top > max_top ? max_top : o->top < 0 ? 0 : o->top;
    o->seen = o->top + body < o->lines ? o->top + body : o->lines;
    lay_out(o, s, row + head, body);
}

void ui_overlay_draw_line(const struct ui_overlay *o, struct ui_screen *s, int row) {
    char place[32];
    bool wide = s->cols >= 40;
    const char *keys = wide ? "arrows scroll, Esc or q closes" : "Esc closes";
    int n = snprintf(place, sizeof place, wide ? "line %d of %d" : "%d/%d", o->seen, o->lines);
    int col = ui_screen_puts(s, row, s->cols >= 12, s->cols, keys, UI_PROMPT);
    if (o->seen > 0 && col + n + 2 <= s->cols) {
        ui_screen_puts(s, row, s->cols - n - 1, s->cols, place, UI_DIM);
    }
    s->cursor_row = -1;
}
