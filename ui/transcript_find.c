/* SPDX-License-Identifier: MIT
 *
 * Searching the conversation, in the source of its blocks: nothing need be laid out for it, and
 * text is looked at once (Knuth, Morris and Pratt), also while it streams in. Letters are compared
 * in lower case, one by one; a byte that is no character is only like itself. Hits do not overlap.
 */
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "chinwag/utf8.h"
#include "ui/transcript_impl.h"

/* The letter at s[0..n), n >= 1; returns its bytes. */
static size_t letter(const char *s, size_t n, int32_t *out) {
    uint32_t c;
    int bytes = cw_utf8_decode(s, n, &c);
    if (bytes == 0) {
        *out = -1 - (unsigned char)*s;
        return 1;
    }
    *out = c < 0x80 ? (c >= 'A' && c <= 'Z' ? (int32_t)c + 32 : (int32_t)c)
                    : utf8proc_tolower((utf8proc_int32_t)c);
    return (size_t)bytes;
}

/* Where the letter that ends at byte `at` begins. */
static size_t letter_before(const char *s, size_t at) {
    for (size_t n = 1; n <= 4 && n <= at; n++) {
        uint32_t c;
        if (cw_utf8_decode(s + at - n, n, &c) == (int)n) {
            return at - n;
        }
    }
    return at - 1;
}

static void add_hit(struct ui_transcript *t, struct tr_block *b, size_t end) {
    size_t begin = end;
    for (size_t i = 0; i < t->n_needle; i++) {
        begin = letter_before(b->text.data, begin);
    }
    if (b->n_hits == b->cap_hits) {
        b->cap_hits = b->cap_hits ? 2 * b->cap_hits : 8;
        b->hits = cw_reallocarray(b->hits, b->cap_hits, sizeof *b->hits);
    }
    b->hits[b->n_hits++] = (struct tr_hit){begin, end};
    t->n_hits++;
}

void tr_search_block(struct ui_transcript *t, struct tr_block *b) {
    if (t->n_needle == 0) {
        return;
    }
    size_t n = b->finished ? b->text.len : cw_utf8_complete(b->text.data, b->text.len);
    while (b->searched < n) {
        int32_t c;
        b->searched += letter(b->text.data + b->searched, n - b->searched, &c);
        while (b->matched > 0 && t->needle[b->matched] != c) {
            b->matched = t->borders[b->matched - 1];
        }
        b->matched += t->needle[b->matched] == c;
        if (b->matched == t->n_needle) {
            add_hit(t, b, b->searched);
            b->matched = 0;
        }
    }
}

void tr_search_drop(struct ui_transcript *t) {
    free(t->needle);
    free(t->borders);
    t->needle = NULL;
    t->borders = NULL;
    t->n_needle = t->n_hits = 0;
    for (size_t i = 0; i < t->n; i++) {
        struct tr_block *b = &t->blocks[i];
        b->n_hits = b->searched = b->matched = 0;
    }
}

static void prepare(struct ui_transcript *t, const char *needle) {
    size_t n = strlen(needle);
    t->needle = cw_reallocarray(NULL, n, sizeof *t->needle);
    t->borders = cw_reallocarray(NULL, n, sizeof *t->borders);
    for (size_t i = 0; i < n;) {
        i += letter(needle + i, n - i, &t->needle[t->n_needle]);
        t->n_needle++;
    }
    t->borders[0] = 0;
    for (size_t i = 1, k = 0; i < t->n_needle; i++) {
        while (k > 0 && t->needle[k] != t->needle[i]) {
            k = t->borders[k - 1];
        }
        k += t->needle[k] == t->needle[i];
        t->borders[i] = k;
    }
}

/* The first hit at or behind this place becomes the current one; the last one if there is none. */
static void choose(struct ui_transcript *t, size_t block, size_t offset) {
    t->hit_block = 0;
    t->hit_index = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct tr_block *b = &t->blocks[i];
        for (size_t k = 0; k < b->n_hits; k++) {
            bool behind = i > block || (i == block && b->hits[k].end > offset);
            if (behind || (i <= block && k + 1 == b->n_hits)) {
                t->hit_block = b->number;
                t->hit_index = k;
            }
            if (behind) {
                return;
            }
        }
    }
}

/* The current hit, or NULL. Its block may have been taken away. */
static const struct tr_hit *current(const struct ui_transcript *t) {
    const struct tr_block *b = tr_find(t, t->hit_block);
    return b != NULL && t->hit_index < b->n_hits ? &b->hits[t->hit_index] : NULL;
}

size_t ui_transcript_search(struct ui_transcript *t, const char *needle) {
    size_t block = 0, row = 0, offset = 0;
    const struct tr_hit *at = current(t);
    if (at != NULL) { /* more letters of the same needle: stay where the person is */
        block = tr_index(t, t->hit_block);
        offset = at->begin;
    } else if (t->n > 0) {
        tr_view(t, &block, &row);
        struct tr_block *b = &t->blocks[block];
        size_t head = tr_head(t, b);
        if (row > head && !tr_folded(t, b)) {
            tr_layout(t, b);
            offset = row - head < tr_n_lines(t, b) ? tr_line_source(t, b, row - head) : b->text.len;
        }
    }
    tr_search_drop(t);
    t->hit_block = 0;
    if (needle == NULL || needle[0] == '\0') {
        return 0;
    }
    prepare(t, needle);
    for (size_t i = 0; i < t->n; i++) {
        tr_search_block(t, &t->blocks[i]);
    }
    choose(t, block, offset);
    ui_transcript_search_next(t, 0);
    return t->n_hits;
}

void ui_transcript_search_at(const struct ui_transcript *t, size_t *number, size_t *hits) {
    *number = 0;
    *hits = t->n_hits;
    if (current(t) != NULL) {
        for (size_t i = 0; t->blocks[i].number < t->hit_block; i++) {
            *number += t->blocks[i].n_hits;
        }
        *number += t->hit_index + 1;
    }
}

void ui_transcript_search_next(struct ui_transcript *t, int step) {
    if (t->n_hits == 0) {
        return;
    }
    if (current(t) == NULL) { /* hits came later, or the one that was is gone */
        choose(t, tr_index(t, t->hit_block), 0);
        step = 0;
    }
    size_t at, hits;
    ui_transcript_search_at(t, &at, &hits);
    long to = ((long)at - 1 + step) % (long)hits;
    size_t left = (size_t)(to < 0 ? to + (long)hits : to);
    size_t i = 0;
    while (left >= t->blocks[i].n_hits) {
        left -= t->blocks[i++].n_hits;
    }
    t->hit_block = t->blocks[i].number;
    t->hit_index = left;
    tr_reveal_offset(t, &t->blocks[i], t->blocks[i].hits[left].begin);
}
