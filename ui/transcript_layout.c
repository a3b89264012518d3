/* SPDX-License-Identifier: MIT
 *
 * Lines of blocks. A block is kept in up to two forms, each made when it is first looked at:
 * wrapped as it was written, and rendered. Both only do what is new when text was appended.
 */
#include "chinwag/utf8.h"
#include "ui/transcript_impl.h"

int tr_indent(const struct ui_transcript *t) {
    return t->cols >= 30 ? 3 : t->cols >= 12 ? 1 : 0;
}

int tr_margin(const struct ui_transcript *t) {
    return t->cols >= 30 ? 2 : t->cols >= 12 ? 1 : 0;
}

static int body_width(const struct ui_transcript *t) {
    int width = t->cols - tr_indent(t) - tr_margin(t);
    return width < 1 ? 1 : width;
}

bool tr_rendered(const struct ui_transcript *t, const struct tr_block *b) {
    return b->kind == UI_BLOCK_REPLY && t->markdown && t->lens_block == 0;
}

bool tr_folded(const struct ui_transcript *t, const struct tr_block *b) {
    return b->folded && b->number != t->lens_block;
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

static void layout_plain(struct ui_transcript *t, struct tr_block *b) {
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

void tr_layout_md(struct ui_transcript *t, struct tr_block *b) {
    int width = body_width(t);
    if (b->md == NULL) {
        b->md = md_create(NULL);
    }
    if (b->md_width == width && b->md_fed == b->text.len && b->md_finished == b->finished) {
        return;
    }
    size_t before = md_work(b->md);
    if (b->md_fed < b->text.len) {
        md_append(b->md, b->text.data + b->md_fed, b->text.len - b->md_fed);
        b->md_fed = b->text.len;
        b->md_finished = false;
    }
    if (b->finished && !b->md_finished) {
        md_finish(b->md);
    }
    b->md_finished = b->finished;
    b->md_width = width;
    md_layout(b->md, width);
    t->work += md_work(b->md) - before;
}

void tr_layout(struct ui_transcript *t, struct tr_block *b) {
    if (tr_rendered(t, b)) {
        tr_layout_md(t, b);
    } else {
        layout_plain(t, b);
    }
}

size_t tr_n_lines(const struct ui_transcript *t, const struct tr_block *b) {
    return tr_rendered(t, b) ? md_n_lines(b->md) : b->n_lines;
}

size_t tr_line_source(const struct ui_transcript *t, const struct tr_block *b, size_t k) {
    return tr_rendered(t, b) ? md_line_source(b->md, k) : b->lines[k].begin;
}

size_t tr_line_at(const struct ui_transcript *t, const struct tr_block *b, size_t offset) {
    size_t lo = 0, hi = tr_n_lines(t, b);
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (tr_line_source(t, b, mid) <= offset) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

size_t tr_head(const struct ui_transcript *t, const struct tr_block *b) {
    return b->heading != NULL || tr_folded(t, b);
}

size_t tr_rows(struct ui_transcript *t, size_t i) {
    struct tr_block *b = &t->blocks[i];
    size_t lines = 0;
    if (!tr_folded(t, b)) {
        tr_layout(t, b);
        lines = tr_n_lines(t, b);
    }
    return tr_head(t, b) + lines + (i + 1 < t->n);
}

size_t tr_rows_guess(const struct ui_transcript *t, size_t i) {
    const struct tr_block *b = &t->blocks[i];
    size_t lines = 0;
    if (!tr_folded(t, b)) {
        bool rendered = tr_rendered(t, b);
        bool known =
            rendered ? b->md != NULL && b->md_width == body_width(t) : b->width == body_width(t);
        /* words leave some columns of most lines empty */
        lines = known ? tr_n_lines(t, b) : 1 + b->text.len * 5 / (size_t)(4 * body_width(t));
    }
    return tr_head(t, b) + lines + (i + 1 < t->n);
}
