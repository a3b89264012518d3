/* SPDX-License-Identifier: MIT
 *
 * Blocks, their lines, and the view. Coordinates: a block is its heading (if any), its body lines,
 * and one blank row below; a row of the transcript is (block, row in it). The view remembers its
 * top row that way, so nothing above or below it need be laid out to draw it.
 *
 * Where Markdown comes in: layout_block makes lines out of a block's text, draw_block_row draws
 * one. A renderer replaces the text the lines point into and adds styles to them; the view does not
 * change.
 */
#include "ui/transcript.h"

#include <stdlib.h>
#include <string.h>

#include "chinwag/mem.h"
#include "chinwag/utf8.h"

struct mark {
    size_t offset; /* in the text: the first byte written under the new setting */
    char *label;
};

struct block {
    uint32_t number;
    enum ui_block_kind kind;
    char *heading, *note; /* or NULL */
    struct cw_buf text;
    struct mark *marks;
    size_t n_marks;
    bool finished; /* no more text comes */

    struct ui_line *lines; /* of text[0..laid), wrapped at `width` columns */
    size_t n_lines, cap_lines;
    size_t laid;
    int width;
};

struct ui_transcript {
    struct block *blocks;
    size_t n, cap;
    uint32_t last_number;
    int rows, cols;

    bool follow; /* the view ends with the text */
    size_t top;  /* else: its first row is row top_row of block `top` */
    size_t top_row;
    size_t anchor; /* byte on top, if `anchored`: kept while sizes change, so that they cannot */
    bool anchored; /* make the view drift */
    uint32_t seen_block; /* where the text ended when the view left the end */
    size_t seen_bytes;
    size_t work; /* bytes laid out */
};

struct ui_transcript *ui_transcript_create(void) {
    struct ui_transcript *t = cw_calloc(1, sizeof *t);
    t->follow = true;
    t->rows = 1;
    t->cols = 1;
    return t;
}

static void free_block(struct block *b) {
    for (size_t i = 0; i < b->n_marks; i++) {
        free(b->marks[i].label);
    }
    free(b->marks);
    free(b->heading);
    free(b->note);
    free(b->lines);
    cw_buf_free(&b->text);
}

void ui_transcript_clear(struct ui_transcript *t) {
    for (size_t i = 0; i < t->n; i++) {
        free_block(&t->blocks[i]);
    }
    t->n = 0;
    t->follow = true;
}

void ui_transcript_destroy(struct ui_transcript *t) {
    if (t == NULL) {
        return;
    }
    ui_transcript_clear(t);
    free(t->blocks);
    free(t);
}

static const size_t ON_HEADING = SIZE_MAX; /* the anchor of a view that begins with a heading */

static struct block *find(struct ui_transcript *t, uint32_t number) {
    for (size_t i = t->n; i-- > 0;) { /* nearly always the last one */
        if (t->blocks[i].number == number) {
            return &t->blocks[i];
        }
    }
    return NULL;
}

uint32_t ui_transcript_add(struct ui_transcript *t, enum ui_block_kind kind, const char *heading) {
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->blocks = cw_reallocarray(t->blocks, t->cap, sizeof *t->blocks);
    }
    t->blocks[t->n++] = (struct block){
        .number = ++t->last_number, .kind = kind, .heading = heading ? cw_strdup(heading) : NULL};
    return t->last_number;
}

void ui_transcript_append(struct ui_transcript *t, uint32_t block, const char *text, size_t n) {
    struct block *b = find(t, block);
    if (b != NULL) {
        cw_buf_add(&b->text, text, n);
    }
}

void ui_transcript_finish(struct ui_transcript *t, uint32_t block) {
    struct block *b = find(t, block);
    if (b != NULL) {
        b->finished = true;
    }
}

void ui_transcript_set_note(struct ui_transcript *t, uint32_t block, const char *note) {
    struct block *b = find(t, block);
    if (b != NULL) {
        free(b->note);
        b->note = note ? cw_strdup(note) : NULL;
    }
}

void ui_transcript_mark(struct ui_transcript *t, uint32_t block, const char *label) {
    struct block *b = find(t, block);
    if (b != NULL) {
        b->marks = cw_reallocarray(b->marks, b->n_marks + 1, sizeof *b->marks);
        b->marks[b->n_marks++] = (struct mark){b->text.len, cw_strdup(label)};
    }
}

/* Columns left of the body, and right of it for change bars; narrow screens have none to spare. */
static int indent_of(const struct ui_transcript *t) {
    return t->cols >= 30 ? 3 : t->cols >= 12 ? 1 : 0;
}

static int margin_of(const struct ui_transcript *t) {
    return t->cols >= 30 ? 2 : 0;
}

static int body_width(const struct ui_transcript *t) {
    int width = t->cols - indent_of(t) - margin_of(t);
    return width < 1 ? 1 : width;
}

/* The part of a text that is still coming whose columns can only grow. What might shrink, a
 * carriage return that becomes a line end, a byte that becomes part of a character, could pull a
 * whole word back into the line before. */
static size_t settled_bytes(const struct cw_buf *text) {
    size_t n = text->len;
    if (n > 0) {
        n = cw_utf8_complete(text->data, n);
        n -= n > 0 && text->data[n - 1] == '\r';
    }
    return n;
}

/* Bring the lines of a block up to date. */
static void layout_block(struct ui_transcript *t, struct block *b) {
    int width = body_width(t);
    if (b->width != width) {
        b->width = width;
        b->n_lines = 0;
        b->laid = 0;
    }
    size_t n = b->finished ? b->text.len : settled_bytes(&b->text);
    if (b->laid >= n) {
        return;
    }
    /* what was appended can change the last line, and no other */
    size_t from = b->n_lines > 0 ? b->lines[--b->n_lines].begin : 0;
    while (from < n) {
        if (b->n_lines == b->cap_lines) {
            b->cap_lines = b->cap_lines ? 2 * b->cap_lines : 16;
            b->lines = cw_reallocarray(b->lines, b->cap_lines, sizeof *b->lines);
        }
        ui_wrap(b->text.data, n, from, width, true, &b->lines[b->n_lines]);
        t->work += b->lines[b->n_lines].next - from;
        from = b->lines[b->n_lines++].next;
    }
    b->laid = n;
}

/* Rows of a block with its blank row below. */
static size_t block_rows(struct ui_transcript *t, struct block *b) {
    layout_block(t, b);
    return (b->heading != NULL) + b->n_lines + 1;
}

/* The blank row below the very last block is not shown. */
static size_t rows_shown(struct ui_transcript *t, size_t i) {
    return block_rows(t, &t->blocks[i]) - (i + 1 == t->n);
}

/* The top row of a view of t->rows rows that ends with the text. False: all of it fits, *top and
 * *row are 0. */
static bool end_view(struct ui_transcript *t, size_t *top, size_t *row) {
    size_t need = (size_t)t->rows;
    for (size_t i = t->n; i-- > 0;) {
        size_t rows = rows_shown(t, i);
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
    }
}

void ui_transcript_remove(struct ui_transcript *t, uint32_t block) {
    struct block *b = find(t, block);
    if (b == NULL) {
        return;
    }
    size_t i = (size_t)(b - t->blocks);
    free_block(b);
    memmove(b, b + 1, (t->n - i - 1) * sizeof *b);
    t->n--;
    if (!t->follow) {
        if (t->top > i || t->top >= t->n) {
            t->top -= t->top > 0;
        }
        if (t->top == i) {
            t->top_row = 0;
            t->anchored = false;
        }
        t->follow = t->n == 0;
        if (!t->follow) {
            settle(t);
        }
    }
}

void ui_transcript_resize(struct ui_transcript *t, int rows, int cols) {
    rows = rows < 0 ? 0 : rows;
    cols = cols < 1 ? 1 : cols;
    if (rows == t->rows && cols == t->cols) {
        return;
    }
    if (!t->follow && !t->anchored) {
        struct block *b = &t->blocks[t->top];
        size_t head = b->heading != NULL;
        layout_block(t, b);
        t->anchored = true;
        t->anchor = t->top_row < head                ? ON_HEADING
                    : t->top_row - head < b->n_lines ? b->lines[t->top_row - head].begin
                                                     : b->text.len;
    }
    t->rows = rows;
    t->cols = cols;
    if (!t->follow) {
        struct block *b = &t->blocks[t->top];
        size_t head = b->heading != NULL;
        layout_block(t, b);
        t->top_row = 0;
        if (t->anchor != ON_HEADING) {
            size_t line = 0;
            while (line < b->n_lines && b->lines[line].next <= t->anchor) {
                line++;
            }
            t->top_row = head + line;
        }
        settle(t);
    }
}

void ui_transcript_scroll(struct ui_transcript *t, int lines) {
    if (t->n == 0 || lines == 0 || (lines > 0 && t->follow)) {
        return;
    }
    leave_end(t);
    t->anchored = false;
    while (lines < 0) {
        size_t up = (size_t) - (long)lines;
        if (t->top_row >= up) {
            t->top_row -= up;
            break;
        }
        if (t->top == 0) {
            t->top_row = 0;
            break;
        }
        lines += (int)t->top_row + 1;
        t->top--;
        t->top_row = rows_shown(t, t->top) - 1;
    }
    while (lines > 0) {
        size_t rows = rows_shown(t, t->top);
        if (t->top_row + (size_t)lines < rows || t->top + 1 == t->n) {
            t->top_row += (size_t)lines;
            break;
        }
        lines -= (int)(rows - t->top_row);
        t->top++;
        t->top_row = 0;
    }
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
}

size_t ui_transcript_work(const struct ui_transcript *t) {
    return t->work;
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
        struct block *b = &t->blocks[i];
        layout_block(t, b);
        if (b->number == t->seen_block) {
            for (size_t k = b->n_lines; k-- > 0 && b->lines[k].begin >= t->seen_bytes;) {
                lines++;
            }
            break;
        }
        if (b->number < t->seen_block) {
            break;
        }
        lines += (b->heading != NULL) + b->n_lines + 1;
    }
    return lines;
}

static enum ui_role text_role(enum ui_block_kind kind) {
    static const enum ui_role roles[UI_N_BLOCK_KINDS] = {
        [UI_BLOCK_USER] = UI_YOUR_TEXT,    [UI_BLOCK_REPLY] = UI_TEXT,
        [UI_BLOCK_THINKING] = UI_THINKING, [UI_BLOCK_NOTICE] = UI_NOTICE,
        [UI_BLOCK_ERROR] = UI_ERROR,
    };
    return roles[kind];
}

static enum ui_role heading_role(enum ui_block_kind kind) {
    return kind == UI_BLOCK_USER ? UI_YOU : kind == UI_BLOCK_REPLY ? UI_REPLY : text_role(kind);
}

/* A label and a bar in the margin, if they fit right of column `from`. */
static bool draw_label(const struct ui_transcript *t, struct ui_screen *s, int row, int from,
                       const char *label) {
    int width = ui_text_width(label, strlen(label), t->cols);
    int col = t->cols - 2 - width;
    if (col <= from) {
        return false;
    }
    ui_screen_puts(s, row, col, t->cols, label, UI_CHANGE);
    return true;
}

/* Whether line k of the block is where mark m took hold. */
static bool mark_on_line(const struct block *b, const struct mark *m, size_t k) {
    return m->offset >= b->lines[k].begin && (m->offset < b->lines[k].next || k + 1 == b->n_lines);
}

static void draw_heading(const struct ui_transcript *t, const struct block *b, struct ui_screen *s,
                         int row) {
    int col = t->cols >= 12 ? 1 : 0;
    col = ui_screen_puts(s, row, col, t->cols, b->heading, heading_role(b->kind));
    if (b->note != NULL) {
        col = ui_screen_puts(s, row, col + 2, t->cols, b->note, UI_DIM);
    }
}

static void draw_body_line(const struct ui_transcript *t, const struct block *b,
                           struct ui_screen *s, int row, size_t k) {
    int indent = indent_of(t);
    const struct ui_line *line = &b->lines[k];
    ui_wrap_draw(s, row, indent, t->cols, b->text.data, line, text_role(b->kind));
    if (margin_of(t) == 0) {
        return;
    }
    /* the last change on a line is the one that holds from there on */
    for (size_t m = b->n_marks; m-- > 0;) {
        if (mark_on_line(b, &b->marks[m], k)) {
            ui_screen_puts(s, row, t->cols - 1, t->cols, "|", UI_CHANGE);
            draw_label(t, s, row, indent + line->width, b->marks[m].label);
            break;
        }
    }
}

/* Changes whose label found no room in its own line are told beside the heading. */
static void draw_heading_marks(const struct ui_transcript *t, const struct block *b,
                               struct ui_screen *s, int row) {
    struct cw_buf labels = {0};
    for (size_t m = 0; m < b->n_marks && margin_of(t) > 0; m++) {
        for (size_t k = 0; k < b->n_lines; k++) {
            int label = ui_text_width(b->marks[m].label, strlen(b->marks[m].label), t->cols);
            if (mark_on_line(b, &b->marks[m], k) &&
                t->cols - 2 - label <= indent_of(t) + b->lines[k].width) {
                cw_buf_printf(&labels, "%s%s", labels.len > 0 ? ", " : "", b->marks[m].label);
            }
        }
    }
    if (labels.len > 0) {
        int from = 2 + ui_text_width(b->heading, strlen(b->heading), t->cols);
        from += b->note ? 2 + ui_text_width(b->note, strlen(b->note), t->cols) : 0;
        if (!draw_label(t, s, row, from, labels.data)) {
            draw_label(t, s, row, from, b->marks[b->n_marks - 1].label);
        }
    }
    cw_buf_free(&labels);
}

static void draw_block_row(const struct ui_transcript *t, const struct block *b,
                           struct ui_screen *s, int row, size_t block_row) {
    size_t head = b->heading != NULL;
    if (block_row < head) {
        draw_heading(t, b, s, row);
        draw_heading_marks(t, b, s, row);
    } else if (block_row - head < b->n_lines) {
        draw_body_line(t, b, s, row, block_row - head);
    }
}

void ui_transcript_draw(struct ui_transcript *t, struct ui_screen *s, int row) {
    size_t top = t->top, top_row = t->top_row;
    if (t->follow) {
        end_view(t, &top, &top_row);
    }
    int drawn = 0;
    for (size_t i = top; i < t->n && drawn < t->rows; i++) {
        size_t rows = rows_shown(t, i);
        for (size_t r = top_row; r < rows && drawn < t->rows; r++) {
            draw_block_row(t, &t->blocks[i], s, row + drawn++, r);
        }
        top_row = 0;
    }
}
