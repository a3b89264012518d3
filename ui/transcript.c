/* SPDX-License-Identifier: MIT
 *
 * The blocks of the transcript: their text and what is known about it. How they are shown is the
 * business of the other files, see transcript_impl.h.
 */
#include <stdlib.h>
#include <string.h>

#include "ui/transcript_impl.h"

struct ui_transcript *ui_transcript_create(void) {
    struct ui_transcript *t = cw_calloc(1, sizeof *t);
    t->follow = true;
    t->markdown = true;
    t->rows = 1;
    t->cols = 1;
    return t;
}

static void free_block(struct tr_block *b) {
    for (size_t i = 0; i < b->n_marks; i++) {
        free(b->marks[i].label);
    }
    free(b->marks);
    free(b->tokens);
    free(b->heading);
    free(b->note);
    free(b->lines);
    free(b->hits);
    md_destroy(b->md);
    cw_buf_free(&b->text);
}

void ui_transcript_clear(struct ui_transcript *t) {
    for (size_t i = 0; i < t->n; i++) {
        free_block(&t->blocks[i]);
    }
    t->n = 0;
    t->follow = true;
    t->anchored = false;
    t->lens_block = 0;
    t->pick = UI_PICK_NONE;
    t->n_hits = 0;
}

void ui_transcript_destroy(struct ui_transcript *t) {
    if (t == NULL) {
        return;
    }
    ui_transcript_clear(t);
    tr_search_drop(t);
    free(t->blocks);
    free(t);
}

size_t tr_index(const struct ui_transcript *t, uint32_t number) {
    size_t lo = 0, hi = t->n;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (t->blocks[mid].number < number) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

struct tr_block *tr_find(const struct ui_transcript *t, uint32_t number) {
    size_t i = tr_index(t, number);
    return i < t->n && t->blocks[i].number == number ? &t->blocks[i] : NULL;
}

uint32_t ui_transcript_add(struct ui_transcript *t, enum ui_block_kind kind, const char *heading) {
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 64;
        t->blocks = cw_reallocarray(t->blocks, t->cap, sizeof *t->blocks);
    }
    t->blocks[t->n++] = (struct tr_block){
        .number = ++t->last_number, .kind = kind, .heading = heading ? cw_strdup(heading) : NULL};
    return t->last_number;
}

uint32_t ui_transcript_last(const struct ui_transcript *t) {
    return t->last_number;
}

void ui_transcript_append(struct ui_transcript *t, uint32_t block, const char *text, size_t n) {
    struct tr_block *b = tr_find(t, block);
    if (b != NULL && n > 0) {
        cw_buf_add(&b->text, text, n);
        tr_search_block(t, b);
    }
}

void ui_transcript_finish(struct ui_transcript *t, uint32_t block) {
    struct tr_block *b = tr_find(t, block);
    if (b == NULL || b->finished) {
        return;
    }
    tr_hold(t);
    b->finished = true;
    b->folded = b->folded || (b->kind == UI_BLOCK_THINKING && !b->fold_chosen);
    tr_search_block(t, b);
    tr_release(t);
}

void ui_transcript_set_note(struct ui_transcript *t, uint32_t block, const char *note) {
    struct tr_block *b = tr_find(t, block);
    if (b != NULL) {
        free(b->note);
        b->note = note ? cw_strdup(note) : NULL;
    }
}

void ui_transcript_mark(struct ui_transcript *t, uint32_t block, const char *label) {
    struct tr_block *b = tr_find(t, block);
    if (b != NULL) {
        b->marks = cw_reallocarray(b->marks, b->n_marks + 1, sizeof *b->marks);
        b->marks[b->n_marks++] = (struct tr_mark){b->text.len, cw_strdup(label)};
    }
}

void ui_transcript_remove(struct ui_transcript *t, uint32_t block) {
    struct tr_block *b = tr_find(t, block);
    if (b == NULL) {
        return;
    }
    size_t i = (size_t)(b - t->blocks);
    t->n_hits -= b->n_hits;
    if (t->lens_block == block) {
        t->lens_block = 0;
    }
    if (t->pick_block == block) {
        t->pick = UI_PICK_NONE;
    }
    free_block(b);
    memmove(b, b + 1, (t->n - i - 1) * sizeof *b);
    t->n--;
    tr_forget(t, i);
}

void ui_transcript_fold(struct ui_transcript *t, uint32_t block, bool folded) {
    tr_hold(t);
    for (size_t i = 0; i < t->n; i++) {
        struct tr_block *b = &t->blocks[i];
        if (b->number == block || (block == 0 && b->kind == UI_BLOCK_THINKING)) {
            b->folded = folded;
            b->fold_chosen = true;
        }
    }
    tr_release(t);
}

bool ui_transcript_folded(const struct ui_transcript *t, uint32_t block) {
    const struct tr_block *b = tr_find(t, block);
    return b != NULL && b->folded;
}

void ui_transcript_set_markdown(struct ui_transcript *t, bool on) {
    if (t->markdown != on) {
        tr_hold(t);
        t->markdown = on;
        tr_release(t);
    }
}

struct cw_str ui_transcript_source(const struct ui_transcript *t, uint32_t block) {
    const struct tr_block *b = tr_find(t, block);
    return b != NULL ? (struct cw_str){b->text.data, b->text.len} : (struct cw_str){NULL, 0};
}

bool ui_transcript_next(const struct ui_transcript *t, uint32_t after, struct ui_block_view *out) {
    size_t i = after < UINT32_MAX ? tr_index(t, after + 1) : t->n;
    if (i >= t->n) {
        return false;
    }
    const struct tr_block *b = &t->blocks[i];
    *out = (struct ui_block_view){
        .block = b->number,
        .kind = b->kind,
        .heading = b->heading,
        .note = b->note,
        .text = {b->text.data, b->text.len},
        .n_marks = b->n_marks,
        .finished = b->finished,
    };
    return true;
}

const char *ui_transcript_mark_at(const struct ui_transcript *t, uint32_t block, size_t i,
                                  size_t *offset) {
    const struct tr_block *b = tr_find(t, block);
    if (b == NULL || i >= b->n_marks) {
        return NULL;
    }
    *offset = b->marks[i].offset;
    return b->marks[i].label;
}

size_t ui_transcript_work(const struct ui_transcript *t) {
    return t->work;
}

/* ---- tokens --------------------------------------------------------------------------------- */

void ui_transcript_token(struct ui_transcript *t, uint32_t block, double probability) {
    struct tr_block *b = tr_find(t, block);
    if (b == NULL) {
        return;
    }
    if (b->n_tokens == b->cap_tokens) {
        b->cap_tokens = b->cap_tokens ? 2 * b->cap_tokens : 64;
        b->tokens = cw_reallocarray(b->tokens, b->cap_tokens, sizeof *b->tokens);
    }
    b->tokens[b->n_tokens++] = (struct tr_token){b->text.len, (float)probability};
}

size_t ui_transcript_n_tokens(const struct ui_transcript *t, uint32_t block) {
    const struct tr_block *b = tr_find(t, block);
    return b != NULL ? b->n_tokens : 0;
}

size_t ui_transcript_token_offset(const struct ui_transcript *t, uint32_t block, size_t token) {
    const struct tr_block *b = tr_find(t, block);
    return b == NULL ? 0 : token < b->n_tokens ? b->tokens[token].offset : b->text.len;
}

void ui_transcript_lens(struct ui_transcript *t, uint32_t block, size_t token) {
    struct tr_block *b = tr_find(t, block);
    block = b != NULL ? block : 0;
    if (t->lens_block != block) {
        tr_hold(t);
        t->lens_block = block;
        tr_release(t);
    }
    t->lens_token = token;
    if (b != NULL) {
        tr_reveal_offset(t, b, ui_transcript_token_offset(t, block, token));
    }
}
