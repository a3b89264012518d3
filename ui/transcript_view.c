/* SPDX-License-Identifier: MIT
 *
 * The view: which rows of the transcript are shown, and how it moves.
 */
#include "ui/transcript_impl.h"

static const size_t ON_HEADING = SIZE_MAX; /* the anchor of a view that begins with a heading */

/* The top row of a view of t->rows rows that ends with the text. False: all of it fits, *top and
 * *row are 0. */
static bool end_view(struct ui_transcript *t, size_t *top, size_t *row) {
    size_t need = (size_t)t->rows;
    for (size_t i = t->n; i-- > 0;) {
        size_t rows = tr_rows(t, i);
        if (rows >= need) {
            *top = i;
            *row = rows - need;
            return i > 0 || *row > 0;
        }
        need -= rows;
    }
    *top = *row = 0;
    return false;
}

bool tr_view(struct ui_transcript *t, size_t *top, size_t *row) {
    if (t->follow) {
        return end_view(t, top, row);
    }
    *top = t->top;
    *row = t->top_row;
    return true;
}

static void leave_end(struct ui_transcript *t) {
    if (t->follow) {
        end_view(t, &t->top, &t->top_row);
        t->follow = false;
        t->seen_block = t->n > 0 ? t->blocks[t->n - 1].number : 0;
        t->seen_bytes = t->n > 0 ? t->blocks[t->n - 1].text.len : 0;
    }
}

/* Follow again when the view has reached the end. */
static void settle(struct ui_transcript *t) {
    size_t top, row;
    end_view(t, &top, &row);
    if (t->top > top || (t->top == top && t->top_row >= row)) {
        t->follow = true;
        t->anchored = false;
    }
}

void tr_hold(struct ui_transcript *t) {
    if (t->follow || t->anchored || t->n == 0) {
        return;
    }
    struct tr_block *b = &t->blocks[t->top];
    size_t head = tr_head(t, b);
    t->anchored = true;
    t->anchor = ON_HEADING;
    if (t->top_row >= head && !tr_folded(t, b)) {
        tr_layout(t, b);
        size_t line = t->top_row - head;
        t->anchor = line < tr_n_lines(t, b) ? tr_line_source(t, b, line) : b->text.len;
    }
}

void tr_release(struct ui_transcript *t) {
    if (t->follow || t->n == 0) {
        return;
    }
    struct tr_block *b = &t->blocks[t->top];
    t->top_row = 0;
    if (t->anchor != ON_HEADING && !tr_folded(t, b)) {
        tr_layout(t, b);
        size_t line = tr_line_at(t, b, t->anchor);
        while (line > 0 && tr_line_source(t, b, line - 1) == t->anchor) {
            line--;
        }
        if (t->anchor >= b->text.len) {
            line = tr_n_lines(t, b); /* the blank row */
        }
        size_t rows = tr_rows(t, t->top);
        t->top_row = tr_head(t, b) + line;
        t->top_row = t->top_row >= rows ? rows - 1 : t->top_row;
    }
    settle(t);
}

void tr_forget(struct ui_transcript *t, size_t i) {
    if (t->follow) {
        return;
    }
    if (t->top == i) {
        t->top_row = 0;
        t->anchored = false;
    }
    if (t->top > i || t->top >= t->n) {
        t->top -= t->top > 0;
    }
    t->follow = t->n == 0;
    if (!t->follow) {
        settle(t);
    }
}

void ui_transcript_resize(struct ui_transcript *t, int rows, int cols) {
    rows = rows < 0 ? 0 : rows;
    cols = cols < 1 ? 1 : cols;
    if (rows == t->rows && cols == t->cols) {
        return;
    }
    tr_hold(t);
    t->rows = rows;
    t->cols = cols;
    tr_release(t);
    if (t->lens_block != 0) { /* its panel takes rows: the token stays in sight */
        ui_transcript_lens(t, t->lens_block, t->lens_token);
    }
}

/* Move the top row; no further than to the first row. */
static void move_top(struct ui_transcript *t, long lines) {
    while (lines < 0) {
        size_t up = (size_t)-lines;
        if (t->top_row >= up) {
            t->top_row -= up;
            break;
        }
        if (t->top == 0) {
            t->top_row = 0;
            break;
        }
        lines += (long)t->top_row + 1;
        t->top--;
        t->top_row = tr_rows(t, t->top) - 1;
    }
    while (lines > 0) {
        size_t rows = tr_rows(t, t->top);
        if (t->top_row + (size_t)lines < rows || t->top + 1 == t->n) {
            t->top_row += (size_t)lines;
            break;
        }
        lines -= (long)(rows - t->top_row);
        t->top++;
        t->top_row = 0;
    }
}

void ui_transcript_scroll(struct ui_transcript *t, int lines) {
    if (t->n == 0 || lines == 0 || (lines > 0 && t->follow)) {
        return;
    }
    leave_end(t);
    t->anchored = false;
    move_top(t, lines);
    settle(t);
}

void ui_transcript_page(struct ui_transcript *t, int pages) {
    int page = t->rows > 2 ? t->rows - 1 : 1;
    ui_transcript_scroll(t, pages * page);
}

void ui_transcript_to_start(struct ui_transcript *t) {
    if (t->n > 0) {
        leave_end(t);
        t->top = t->top_row = 0;
        t->anchored = false;
        settle(t);
    }
}

void ui_transcript_to_end(struct ui_transcript *t) {
    t->follow = true;
    t->anchored = false;
}

bool ui_transcript_at_end(const struct ui_transcript *t) {
    return t->follow;
}

size_t ui_transcript_new_lines(struct ui_transcript *t) {
    if (t->follow) {
        return 0;
    }
    size_t lines = 0;
    for (size_t i = t->n; i-- > 0;) {
        struct tr_block *b = &t->blocks[i];
        if (b->number < t->seen_block) {
            break;
        }
        if (b->number > t->seen_block) {
            lines += tr_rows(t, i) + (i + 1 == t->n);
        } else if (!tr_folded(t, b)) {
            tr_layout(t, b);
            for (size_t k = tr_n_lines(t, b);
                 k-- > 0 && tr_line_source(t, b, k) >= t->seen_bytes;) {
                lines++;
            }
        }
    }
    return lines;
}

/* Rows from the top of the view to a row below it, at most `most`. */
static size_t rows_below_top(struct ui_transcript *t, size_t top, size_t top_row, size_t i,
                             size_t row, size_t most) {
    size_t rows = 0;
    for (; top < i && rows < most; top++) {
        rows += tr_rows(t, top) - top_row;
        top_row = 0;
    }
    rows += top == i ? row - top_row : 0;
    return rows < most ? rows : most;
}

void tr_reveal(struct ui_transcript *t, size_t i, size_t row, size_t n) {
    size_t top, top_row, height = (size_t)t->rows;
    n = n < 1 ? 1 : n > height ? height : n;
    tr_view(t, &top, &top_row);
    if (top < i || (top == i && top_row <= row)) {
        if (rows_below_top(t, top, top_row, i, row, height) + n <= height) {
            return;
        }
    }
    leave_end(t);
    t->anchored = false;
    t->top = i;
    t->top_row = row;
    move_top(t, -(long)((height - n) / 3)); /* some of what stands before it */
    settle(t);
}

void tr_reveal_offset(struct ui_transcript *t, struct tr_block *b, size_t offset) {
    if (tr_folded(t, b)) {
        ui_transcript_fold(t, b->number, false);
    }
    tr_layout(t, b);
    tr_reveal(t, (size_t)(b - t->blocks), tr_head(t, b) + tr_line_at(t, b, offset), 1);
}

void ui_transcript_show(struct ui_transcript *t, uint32_t block) {
    struct tr_block *b = tr_find(t, block);
    if (b != NULL) {
        leave_end(t);
        t->anchored = false;
        t->top = (size_t)(b - t->blocks);
        t->top_row = 0;
        settle(t);
    }
}
