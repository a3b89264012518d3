/* SPDX-License-Identifier: MIT
 *
 * The difference of two grids as bytes.
 *
 * Terminals disagree on how wide a cluster of several joined characters is (an emoji family, a
 * flag). It is written as blanks first and then, at the end of the frame, over them, each placed
 * absolutely; a row that holds one is written whole whenever it changes. So a terminal that draws
 * it wider or narrower damages nothing but that spot.
 */
#include "ui/paint.h"

#include <stdlib.h>
#include <string.h>

#include "ui/osc.h"

enum {
    NO_ROLE = UI_N_ROLES, /* the terminal's own look, that of a cleared cell */
    MOVE_BYTES = 8,       /* about what a new place costs */
    REGION_BYTES = 8,     /* and another scroll region */
    MAX_GAP = 6,          /* cells written again at most, instead of a move */
    MAX_SHIFTS = 4,       /* tried for a scroll */
    MAX_SCROLLS = 3,      /* in one frame */
};

static const struct ui_style own_look = {.fg = -1, .bg = -1};
static const struct ui_cell cleared = {.text = " ", .len = 1, .width = 1, .role = NO_ROLE};

void ui_paint_init(struct ui_paint *p, const struct ui_paint_caps *caps) {
    *p = (struct ui_paint){.caps = *caps, .row = -1, .style = own_look};
    for (int role = 0; role <= UI_N_ROLES; role++) {
        p->styles[role] = own_look;
    }
    ui_screen_init(&p->last, 1, 1);
}

void ui_paint_free(struct ui_paint *p) {
    ui_screen_free(&p->last);
}

static struct ui_cell *row_of(const struct ui_screen *s, int row) {
    return &s->cells[(size_t)row * (size_t)s->cols];
}

static void clear_row(struct ui_paint *p, int row) {
    struct ui_cell *cells = row_of(&p->last, row);
    for (int col = 0; col < p->last.cols; col++) {
        cells[col] = cleared;
    }
}

void ui_paint_cleared(struct ui_paint *p, int rows, int cols) {
    ui_screen_resize(&p->last, rows, cols);
    for (int row = 0; row < rows; row++) {
        clear_row(p, row);
    }
    p->row = -1;
    p->style = own_look;
    p->link = 0;
    p->top = 0;
    p->bottom = rows - 1;
}

/* ---- looks ---------------------------------------------------------------------------------- */

static struct ui_style style_of(const struct ui_paint *p, const struct ui_cell *cell) {
    struct ui_style style = p->styles[cell->role];
    style.attrs = (uint8_t)((style.attrs | cell->attrs) & p->caps.attrs);
    return style;
}

static bool same_style(const struct ui_style *a, const struct ui_style *b) {
    return a->fg == b->fg && a->bg == b->bg && a->attrs == b->attrs;
}

static bool is_space(const struct ui_cell *cell) {
    return cell->len == 1 && cell->text[0] == ' ';
}

/* Whether a cell written in either look is the same to the eye: of a blank only the ground is seen,
 * and lines under or through it. */
static bool looks_same(const struct ui_cell *cell, const struct ui_style *a,
                       const struct ui_style *b) {
    const uint8_t seen = UI_REVERSE | UI_UNDERLINE | UI_STRIKE;
    return same_style(a, b) ||
           (is_space(cell) && a->bg == b->bg && ((a->attrs | b->attrs) & seen) == 0);
}

static bool same_cell(const struct ui_paint *p, const struct ui_cell *a, const struct ui_cell *b) {
    if (a->width == 0 || b->width == 0) {
        return a->width == b->width;
    }
    if (a->len != b->len || a->width != b->width || a->joined != b->joined ||
        memcmp(a->text, b->text, a->len) != 0 || (p->caps.links && a->link != b->link)) {
        return false;
    }
    struct ui_style of_a = style_of(p, a), of_b = style_of(p, b);
    return looks_same(a, &of_a, &of_b);
}

static void set_style(struct ui_paint *p, const struct ui_style *to, struct cw_buf *out) {
    if (!same_style(&p->style, to) && p->caps.style != NULL) {
        p->caps.style(out, &p->style, to);
    }
    p->style = *to;
}

static void set_link(struct ui_paint *p, const struct ui_screen *s, uint16_t link,
                     struct cw_buf *out) {
    if (p->caps.links && p->link != link) {
        ui_osc_link(out, link != 0 ? s->links[link - 1] : NULL, link);
        p->link = link;
    }
}

static void set_plain(struct ui_paint *p, struct cw_buf *out) {
    set_link(p, NULL, 0, out);
    set_style(p, &own_look, out);
}

/* ---- places --------------------------------------------------------------------------------- */

/* Scroll regions last: one that grows by a line a frame is set once. */
static void set_region(struct ui_paint *p, int top, int bottom, struct cw_buf *out) {
    if (p->top != top || p->bottom != bottom) {
        p->caps.region(out, top, bottom);
        p->top = top;
        p->bottom = bottom;
        p->row = -1; /* this moves the cursor, too */
    }
}

void ui_paint_yield(struct ui_paint *p, int rows, struct cw_buf *out) {
    set_plain(p, out);
    if (p->caps.scroll != NULL) {
        set_region(p, 0, rows - 1, out);
    }
}

static void keep_shorter(struct cw_buf *best, struct cw_buf *other) {
    if (other->len < best->len) {
        struct cw_buf swap = *best;
        *best = *other;
        *other = swap;
    }
    other->len = 0;
}

static void write_cell(struct ui_paint *p, const struct ui_cell *cell, struct cw_buf *out) {
    if (cell->joined) {
        for (int i = 0; i < cell->width; i++) {
            cw_buf_putc(out, ' ');
        }
    } else {
        cw_buf_add(out, cell->text, cell->len);
    }
    p->col += cell->width;
    if (p->col >= p->last.cols) {
        p->row = -1; /* it may hang in the last column, or be in the next row */
    }
}

/* Whether the cells up to `col` are few, of the look that is set, and so as good as a move. */
static bool can_write_on(const struct ui_paint *p, const struct ui_cell *row, int col) {
    size_t bytes = 0;
    if (col - p->col > MAX_GAP || row[p->col].width == 0) { /* 0: inside of a wide one */
        return false;
    }
    for (int c = p->col; c < col; c++) {
        struct ui_style style = style_of(p, &row[c]);
        if (row[c].width == 0) {
            continue;
        }
        bytes += row[c].len;
        if (row[c].joined || (p->caps.links && row[c].link != p->link) ||
            !looks_same(&row[c], &p->style, &style) || bytes > MAX_GAP) {
            return false;
        }
    }
    return true;
}

/* Bring the terminal to (row, col); `cells`: that row, as it is wanted left of col. */
static void go_to(struct ui_paint *p, int row, int col, const struct ui_cell *cells,
                  struct cw_buf *out) {
    if (p->row == row && p->col == col) {
        return;
    }
    if (p->row == row && p->col < col && cells != NULL && can_write_on(p, cells, col)) {
        while (p->col < col) {
            write_cell(p, &cells[p->col], out);
        }
        return;
    }
    struct cw_buf best = {0}, other = {0};
    p->caps.place(&best, row, col);
    if (p->row == row && p->caps.column != NULL) {
        p->caps.column(&other, col);
        keep_shorter(&best, &other);
    }
    if (p->row == row && p->col < col && p->caps.right != NULL) {
        p->caps.right(&other, col - p->col);
        keep_shorter(&best, &other);
    }
    cw_buf_add(out, best.data, best.len);
    cw_buf_free(&best);
    cw_buf_free(&other);
    p->row = row;
    p->col = col;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static bool has_joined(const struct ui_cell *row, int cols) {
    for (int col = 0; col < cols; col++) {
        if (row[col].width > 0 && row[col].joined) {
            return true;
        }
    }
    return false;
}

/* The column after the last cell that a cleared row would not have. */
static int used_columns(const struct ui_paint *p, const struct ui_cell *row, int cols) {
    int end = cols;
    while (end > 0 && same_cell(p, &row[end - 1], &cleared)) {
        end--;
    }
    return end;
}

static void erase_from(struct ui_paint *p, int row, int col, const struct ui_cell *cells,
                       struct cw_buf *out) {
    set_plain(p, out);
    go_to(p, row, col, cells, out);
    p->caps.erase_right(out);
}

/* A row to be painted. */
struct paint_row {
    const struct ui_screen *s;
    int row;
    int end;    /* columns; what is right of it is erased */
    bool whole; /* it is not known what stands there */
    bool *due;  /* [cols] */
};

/* Write those cells, or, with `style`, only those that look so. */
static void write_cells(struct ui_paint *p, const struct paint_row *r, const struct ui_style *style,
                        struct cw_buf *out) {
    const struct ui_cell *now = row_of(r->s, r->row);
    for (int col = 0; col < r->end; col++) {
        struct ui_style looks = style_of(p, &now[col]);
        if (!r->due[col] || (style != NULL && !looks_same(&now[col], &looks, style))) {
            continue;
        }
        if (p->link != now[col].link) {
            set_link(p, r->s, 0, out); /* it ends where its text does */
        }
        go_to(p, r->row, col, r->whole ? NULL : now, out);
        if (!looks_same(&now[col], &p->style, &looks)) {
            set_style(p, &looks, out);
        }
        set_link(p, r->s, now[col].link, out);
        write_cell(p, &now[col], out);
        r->due[col] = style == NULL;
    }
}

/* All that looks as the terminal writes already, then look by look. */
static void write_by_look(struct ui_paint *p, const struct paint_row *r, struct cw_buf *out) {
    struct ui_style style = p->style;
    write_cells(p, r, &style, out);
    for (int col = 0; col < r->end; col++) {
        if (r->due[col]) {
            style = style_of(p, &row_of(r->s, r->row)[col]);
            write_cells(p, r, &style, out);
        }
    }
}

static void paint_row(struct ui_paint *p, const struct ui_screen *s, int row, bool whole,
                      struct cw_buf *out) {
    const struct ui_cell *now = row_of(s, row), *before = row_of(&p->last, row);
    struct paint_row r = {.s = s, .row = row, .end = s->cols, .whole = whole};
    int used = used_columns(p, now, s->cols);
    if (whole && p->caps.erase_right != NULL) {
        erase_from(p, row, 0, NULL, out);
        r.end = used;
    } else if (p->caps.erase_right != NULL &&
               used_columns(p, before, s->cols) - used > MOVE_BYTES / 2) {
        r.end = used;
    }
    r.due = cw_calloc((size_t)s->cols, sizeof *r.due);
    for (int col = 0; col < r.end; col++) {
        bool scrolls = !p->caps.corner && row == s->rows - 1 && col + now[col].width == s->cols;
        r.due[col] =
            now[col].width > 0 && !scrolls && (whole || !same_cell(p, &now[col], &before[col]));
    }
    /* in order, or by look: whichever is shorter */
    struct ui_paint as_it_was = *p;
    struct cw_buf in_order = {0}, by_look = {0};
    write_cells(p, &r, NULL, &in_order);
    struct ui_paint after_order = *p;
    *p = as_it_was;
    write_by_look(p, &r, &by_look);
    if (in_order.len <= by_look.len) {
        *p = after_order;
        cw_buf_add(out, in_order.data, in_order.len);
    } else {
        cw_buf_add(out, by_look.data, by_look.len);
    }
    cw_buf_free(&in_order);
    cw_buf_free(&by_look);
    free(r.due);
    if (r.end < s->cols && !whole) {
        erase_from(p, row, r.end, now, out);
    }
}

/* What was left blank in paint_row, over the blanks. */
static void paint_joined(struct ui_paint *p, const struct ui_screen *s, int row,
                         struct cw_buf *out) {
    const struct ui_cell *now = row_of(s, row);
    for (int col = 0; col < s->cols; col++) {
        if (now[col].width > 0 && now[col].joined) {
            struct ui_style style = style_of(p, &now[col]);
            p->row = -1; /* also after it: how far it went is the terminal's secret */
            go_to(p, row, col, NULL, out);
            set_link(p, s, now[col].link, out);
            set_style(p, &style, out);
            cw_buf_add(out, now[col].text, now[col].len);
            p->row = -1;
        }
    }
}

/* ---- scrolling ------------------------------------------------------------------------------ */

/* About the bytes that make row `to` of row `from` (NULL: of a cleared one). */
static int cost(const struct ui_paint *p, const struct ui_cell *from, const struct ui_cell *to) {
    int bytes = 0;
    bool run = false;
    for (int col = 0; col < p->last.cols; col++) {
        bool same = same_cell(p, from != NULL ? &from[col] : &cleared, &to[col]);
        bytes += same ? 0 : to[col].len + (run ? 0 : MOVE_BYTES);
        run = !same;
    }
    return bytes;
}

/* What a scroll by `shift` rows spares, and of which rows [*top, *bottom]. */
static int gain_of(const struct ui_paint *p, const struct ui_screen *s, const int *as_is, int shift,
                   int *top, int *bottom) {
    int up = shift > 0 ? shift : -shift, best = 0, sum = 0, begin = 0;
    /* seen from the end the rows move towards, so that both directions are one */
    for (int i = 0; i + up < s->rows; i++) {
        int row = shift > 0 ? i : s->rows - 1 - i;
        int there = row + shift;
        if (sum <= 0) {
            sum = 0;
            begin = i;
        }
        sum += as_is[row] - cost(p, row_of(&p->last, there), row_of(s, row));
        int gain = sum;
        for (int k = 1; k <= up; k++) { /* the rows that come in blank */
            int fresh = shift > 0 ? i + k : s->rows - 1 - i - k;
            gain += as_is[fresh] - cost(p, NULL, row_of(s, fresh));
        }
        if (gain > best) {
            best = gain;
            *top = shift > 0 ? begin : s->rows - 1 - i - up;
            *bottom = shift > 0 ? i + up : s->rows - 1 - begin;
        }
    }
    return best;
}

/* The same of these rows. */
static int gain_in(const struct ui_paint *p, const struct ui_screen *s, const int *as_is, int shift,
                   int top, int bottom) {
    int gain = 0;
    for (int row = top; row <= bottom; row++) {
        int there = row + shift;
        bool inside = there >= top && there <= bottom;
        gain += as_is[row] - cost(p, inside ? row_of(&p->last, there) : NULL, row_of(s, row));
    }
    return gain;
}

static bool same_row(const struct ui_screen *a, int row_a, const struct ui_screen *b, int row_b) {
    return memcmp(row_of(a, row_a), row_of(b, row_b), (size_t)a->cols * sizeof *a->cells) == 0;
}

/* By how many rows something may have moved: wherever a row that changed now stands elsewhere. */
static int find_shifts(const struct ui_paint *p, const struct ui_screen *s, const int *as_is,
                       int shifts[MAX_SHIFTS]) {
    int n = 0;
    for (int row = 0; row < s->rows; row++) {
        if (as_is[row] <= 2 * MOVE_BYTES || cost(p, NULL, row_of(s, row)) == 0) {
            continue;
        }
        for (int there = 0; there < s->rows; there++) {
            int shift = there - row;
            bool known = shift == 0;
            for (int i = 0; i < n; i++) {
                known = known || shifts[i] == shift;
            }
            if (!known && same_row(s, row, &p->last, there)) {
                shifts[n++] = shift;
                if (n == MAX_SHIFTS) {
                    return n;
                }
            }
        }
    }
    return n;
}

static void scroll(struct ui_paint *p, int top, int bottom, int shift, struct cw_buf *out) {
    size_t cols = (size_t)p->last.cols;
    int up = shift > 0 ? shift : -shift, stay = bottom - top + 1 - up;
    struct ui_cell *first = row_of(&p->last, top);
    set_plain(p, out); /* the rows that come in take the ground that is set */
    set_region(p, top, bottom, out);
    p->caps.scroll(out, top, bottom, shift);
    p->row = -1;
    memmove(shift > 0 ? first : first + (size_t)up * cols,
            shift > 0 ? first + (size_t)up * cols : first, (size_t)stay * cols * sizeof *first);
    for (int k = 0; k < up; k++) {
        clear_row(p, shift > 0 ? bottom - k : top + k);
    }
}

/* Scroll the part that spares most by it, if one spares more than it costs. */
static bool scroll_once(struct ui_paint *p, const struct ui_screen *s, int *as_is,
                        struct cw_buf *out) {
    int changed = 0, best = 2 * MOVE_BYTES, shift = 0, top = 0, bottom = 0;
    for (int row = 0; row < s->rows; row++) {
        as_is[row] =
            same_row(s, row, &p->last, row) ? 0 : cost(p, row_of(&p->last, row), row_of(s, row));
        changed += as_is[row] > 0;
    }
    int shifts[MAX_SHIFTS];
    int n = changed > 1 ? find_shifts(p, s, as_is, shifts) : 0;
    for (int i = 0; i < n; i++) {
        int from = 0, to = 0;
        int gain = gain_of(p, s, as_is, shifts[i], &from, &to);
        if (gain > best) {
            best = gain;
            shift = shifts[i];
            top = from;
            bottom = to;
        }
    }
    /* The region that is set costs nothing to set, if it holds as many rows as move. */
    bool fits = shift != 0 && abs(shift) <= p->bottom - p->top;
    if (fits && gain_in(p, s, as_is, shift, p->top, p->bottom) + REGION_BYTES >= best) {
        top = p->top;
        bottom = p->bottom;
    }
    if (shift != 0) {
        scroll(p, top, bottom, shift, out);
    }
    return shift != 0;
}

static void scroll_parts(struct ui_paint *p, const struct ui_screen *s, struct cw_buf *out) {
    int *as_is = cw_calloc((size_t)s->rows, sizeof *as_is);
    for (int i = 0; i < MAX_SCROLLS && scroll_once(p, s, as_is, out); i++) {
    }
    free(as_is);
}

void ui_paint_frame(struct ui_paint *p, const struct ui_screen *s, struct cw_buf *out) {
    if (s->rows != p->last.rows || s->cols != p->last.cols) {
        return; /* a resize is under way */
    }
    if (p->caps.scroll != NULL) {
        scroll_parts(p, s, out);
    }
    bool *joined = cw_calloc((size_t)s->rows, sizeof *joined);
    for (int row = 0; row < s->rows; row++) {
        if (!same_row(s, row, &p->last, row)) {
            joined[row] = has_joined(row_of(s, row), s->cols);
            paint_row(p, s, row, joined[row] || has_joined(row_of(&p->last, row), s->cols), out);
            memcpy(row_of(&p->last, row), row_of(s, row), (size_t)s->cols * sizeof *s->cells);
        }
    }
    for (int row = 0; row < s->rows; row++) {
        if (joined[row]) {
            paint_joined(p, s, row, out);
        }
    }
    free(joined);
    set_link(p, s, 0, out);
    if (s->cursor_row >= 0) {
        go_to(p, s->cursor_row, s->cursor_col, NULL, out);
    }
}
