/* SPDX-License-Identifier: MIT
 *
 * Picking a message or a block of code, to copy it. Only what lies on the way is rendered.
 */
#include "ui/transcript_impl.h"

static bool pickable(const struct ui_transcript *t, const struct tr_block *b) {
    return b->text.len > 0 && !tr_folded(t, b);
}

/* Code blocks of a block; replies are Markdown whether it is shown or not. */
static size_t n_codes(struct ui_transcript *t, struct tr_block *b) {
    if (b->kind != UI_BLOCK_REPLY || b->text.len == 0) {
        return 0;
    }
    tr_layout_md(t, b);
    return md_n_code_blocks(b->md);
}

/* The first line of a code block and the one behind its last, by the lines it is rendered in. */
static void code_lines(const struct tr_block *b, size_t code, size_t *first, size_t *last) {
    size_t n = md_n_lines(b->md);
    *first = 0;
    while (*first < n && md_line_code(b->md, *first) != code + 1) {
        ++*first;
    }
    *last = *first;
    while (*last < n && md_line_code(b->md, *last) == code + 1) {
        ++*last;
    }
}

static void code_bytes(const struct tr_block *b, size_t code, size_t *begin, size_t *end) {
    size_t first, last, n = md_n_lines(b->md);
    code_lines(b, code, &first, &last);
    *begin = first < n ? md_line_source(b->md, first) : b->text.len;
    *end = last < n ? md_line_source(b->md, last) : b->text.len;
}

/* Block and row in it at the bottom of the view. */
static void view_bottom(struct ui_transcript *t, size_t *block, size_t *row) {
    size_t left = (size_t)t->rows;
    tr_view(t, block, row);
    while (*block < t->n) {
        size_t rows = tr_rows(t, *block) - *row;
        if (rows >= left || *block + 1 == t->n) {
            *row += rows < left ? rows : left;
            return;
        }
        left -= rows;
        ++*block;
        *row = 0;
    }
}

static void reveal_picked(struct ui_transcript *t) {
    struct tr_block *b = tr_find(t, t->pick_block);
    size_t i = (size_t)(b - t->blocks);
    size_t row = 0, n = tr_rows(t, i);
    if (t->pick == UI_PICK_CODE) {
        size_t begin, end;
        code_bytes(b, t->pick_code, &begin, &end);
        tr_layout(t, b);
        row = tr_line_at(t, b, begin);
        while (row > 0 && tr_line_source(t, b, row - 1) == begin) {
            row--;
        }
        n = end > begin ? tr_line_at(t, b, end - 1) + 1 - row : 1;
        row += tr_head(t, b);
    }
    tr_reveal(t, i, row, n);
}

static bool pick_message(struct ui_transcript *t, int step) {
    size_t i, row;
    if (t->pick == UI_PICK_NONE) {
        view_bottom(t, &i, &row);
        i += step < 0; /* the block at the bottom is the first one going up */
    } else {
        i = tr_index(t, t->pick_block);
        if (t->pick == UI_PICK_CODE) { /* from the code to the message it stands in */
            t->pick = UI_PICK_MESSAGE;
            reveal_picked(t);
            return true;
        }
    }
    while (step < 0 ? i > 0 : i + 1 < t->n) {
        i = step < 0 ? i - 1 : i + 1;
        if (pickable(t, &t->blocks[i])) {
            t->pick = UI_PICK_MESSAGE;
            t->pick_block = t->blocks[i].number;
            reveal_picked(t);
            return true;
        }
    }
    return false;
}

static bool pick_code_at(struct ui_transcript *t, size_t i, size_t code) {
    t->pick = UI_PICK_CODE;
    t->pick_block = t->blocks[i].number;
    t->pick_code = code;
    reveal_picked(t);
    return true;
}

static bool pick_code(struct ui_transcript *t, int step) {
    size_t i, row = SIZE_MAX;
    size_t from = 0; /* codes of block i before this one lie upwards, from it on downwards */
    if (t->pick == UI_PICK_NONE) {
        view_bottom(t, &i, &row);
        struct tr_block *b = &t->blocks[i];
        size_t n = n_codes(t, b), begin, end;
        for (; from < n; from++) {
            code_bytes(b, from, &begin, &end);
            tr_layout(t, b);
            if (!tr_folded(t, b) && tr_head(t, b) + tr_line_at(t, b, begin) >= row) {
                break;
            }
        }
    } else {
        i = tr_index(t, t->pick_block);
        bool code = t->pick == UI_PICK_CODE;
        size_t n = n_codes(t, &t->blocks[i]);
        from = !code ? (step < 0 ? n : 0) : step < 0 ? t->pick_code : t->pick_code + 1;
    }
    if (step < 0) {
        for (;; i--) {
            size_t n = n_codes(t, &t->blocks[i]);
            n = n < from ? n : from;
            if (n > 0) {
                return pick_code_at(t, i, n - 1);
            }
            if (i == 0) {
                return false;
            }
            from = SIZE_MAX;
        }
    }
    for (; i < t->n; i++, from = 0) {
        if (from < n_codes(t, &t->blocks[i])) {
            return pick_code_at(t, i, from);
        }
    }
    return false;
}

bool ui_transcript_pick(struct ui_transcript *t, enum ui_pick kind, int step) {
    if (t->n == 0 || kind == UI_PICK_NONE || step == 0) {
        return false;
    }
    bool found = false;
    for (int k = step < 0 ? -step : step; k > 0; k--) {
        bool one = kind == UI_PICK_MESSAGE ? pick_message(t, step) : pick_code(t, step);
        found = found || one;
    }
    return found;
}

void ui_transcript_unpick(struct ui_transcript *t) {
    t->pick = UI_PICK_NONE;
}

enum ui_pick ui_transcript_picked(const struct ui_transcript *t) {
    return t->pick;
}

uint32_t ui_transcript_picked_text(const struct ui_transcript *t, struct cw_buf *out) {
    const struct tr_block *b = t->pick != UI_PICK_NONE ? tr_find(t, t->pick_block) : NULL;
    if (b == NULL) {
        return 0;
    }
    struct md_code_block code;
    if (out != NULL && t->pick == UI_PICK_MESSAGE) {
        cw_buf_add(out, b->text.data, b->text.len);
    } else if (out != NULL && md_code_block(b->md, t->pick_code, &code)) {
        cw_buf_add(out, code.text, code.len);
    }
    return b->number;
}

bool tr_picked_code(const struct ui_transcript *t, const struct tr_block *b, size_t *begin,
                    size_t *end) {
    if (t->pick != UI_PICK_CODE || t->pick_block != b->number || b->md == NULL) {
        return false;
    }
    code_bytes(b, t->pick_code, begin, end);
    return *end > *begin;
}
