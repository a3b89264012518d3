/* SPDX-License-Identifier: MIT
 *
 * What the files of the transcript share.
 *
 *   transcript.c         blocks: what was said
 *   transcript_layout.c  blocks -> lines, plain or rendered
 *   transcript_view.c    which rows are shown
 *   transcript_find.c    searching
 *   transcript_pick.c    picking what to copy
 *   transcript_draw.c    rows -> cells
 *
 * Coordinates: a block is its heading (if any), its lines, and one blank row below; a row of the
 * transcript is (block, row in it). The view remembers its top row that way, so nothing above or
 * below it need be laid out to draw it. Places in the text (marks, tokens, hits, what stood on top)
 * are offsets in the source of a block, which mean the same however it is shown.
 */
#ifndef UI_TRANSCRIPT_IMPL_H
#define UI_TRANSCRIPT_IMPL_H

#include "ui/markdown/markdown.h"
#include "ui/transcript.h"

struct tr_mark {
    size_t offset; /* in the text: the first byte written under the new setting */
    char *label;
};

struct tr_token {
    size_t offset;
    float probability;
};

struct tr_hit {
    size_t begin, end;
};

struct tr_block {
    uint32_t number;
    enum ui_block_kind kind;
    char *heading, *note; /* or NULL */
    struct cw_buf text;
    struct tr_mark *marks;
    size_t n_marks;
    struct tr_token *tokens;
    size_t n_tokens, cap_tokens;
    bool finished; /* no more text comes */
    bool folded;
    bool fold_chosen; /* by the person */

    /* as it was written: lines of text[0..laid), wrapped at `width` columns */
    struct ui_line *lines;
    size_t n_lines, cap_lines;
    size_t laid;
    int width;

    /* rendered, once it was needed */
    struct md *md;
    size_t md_fed; /* bytes of text */
    bool md_finished;
    int md_width;

    /* searching: text[0..searched) was looked at, `matched` letters of a hit end there */
    struct tr_hit *hits;
    size_t n_hits, cap_hits;
    size_t searched, matched;
};

struct ui_transcript {
    struct tr_block *blocks; /* their numbers rise */
    size_t n, cap;
    uint32_t last_number;
    int rows, cols;
    bool markdown;

    bool follow; /* the view ends with the text */
    size_t top;  /* else: its first row is row top_row of block `top` */
    size_t top_row;
    size_t anchor; /* byte on top, if `anchored`: kept while sizes change, so that they cannot */
    bool anchored; /* make the view drift */
    uint32_t seen_block; /* where the text ended when the view left the end */
    size_t seen_bytes;
    size_t work; /* bytes laid out */

    uint32_t lens_block; /* 0: off */
    size_t lens_token;

    int32_t *needle; /* lower-case letters */
    size_t *borders; /* of each prefix of it: the longest proper prefix that is also its end */
    size_t n_needle;
    size_t n_hits;      /* of all blocks */
    uint32_t hit_block; /* the current hit: block, and which of its hits */
    size_t hit_index;

    enum ui_pick pick;
    uint32_t pick_block;
    size_t pick_code; /* which of its code blocks */
};

/* transcript.c */
struct tr_block *tr_find(const struct ui_transcript *t, uint32_t number); /* NULL: there is none */
/* Index of the first block whose number is at least this one. */
size_t tr_index(const struct ui_transcript *t, uint32_t number);

/* transcript_layout.c */
int tr_indent(const struct ui_transcript *t); /* columns left of the body, and right of it for */
int tr_margin(const struct ui_transcript *t); /* change bars and the scrollbar; narrow ones less */
bool tr_rendered(const struct ui_transcript *t, const struct tr_block *b);
bool tr_folded(const struct ui_transcript *t, const struct tr_block *b);
/* Bring the lines of a block up to date; the questions below are about these. */
void tr_layout(struct ui_transcript *t, struct tr_block *b);
void tr_layout_md(struct ui_transcript *t, struct tr_block *b); /* whether it is shown so or not */
size_t tr_n_lines(const struct ui_transcript *t, const struct tr_block *b);
size_t tr_line_source(const struct ui_transcript *t, const struct tr_block *b, size_t k);
/* The line that holds byte `offset` of the text: the last one that begins at or before it. */
size_t tr_line_at(const struct ui_transcript *t, const struct tr_block *b, size_t offset);
size_t tr_head(const struct ui_transcript *t, const struct tr_block *b); /* rows of the heading */
/* Rows of a block, laid out; the blank row below the very last one is not shown. */
size_t tr_rows(struct ui_transcript *t, size_t i);
/* The same by guess, without laying anything out. */
size_t tr_rows_guess(const struct ui_transcript *t, size_t i);

/* transcript_view.c */
/* The view's top row; false: all of it fits. */
bool tr_view(struct ui_transcript *t, size_t *top, size_t *row);
/* Before and after anything that changes how many rows blocks have. */
void tr_hold(struct ui_transcript *t);
void tr_release(struct ui_transcript *t);
/* Scroll so that rows [row, row + n) of block i are in view, the first ones if not all can be. */
void tr_reveal(struct ui_transcript *t, size_t i, size_t row, size_t n);
void tr_reveal_offset(struct ui_transcript *t, struct tr_block *b, size_t offset);
void tr_forget(struct ui_transcript *t, size_t i); /* block i was taken away */

/* transcript_find.c */
void tr_search_block(struct ui_transcript *t, struct tr_block *b); /* text that came */
void tr_search_drop(struct ui_transcript *t);

/* transcript_pick.c */
/* Bytes of the picked code block in the source of `b`; false: none in it is picked. */
bool tr_picked_code(const struct ui_transcript *t, const struct tr_block *b, size_t *begin,
                    size_t *end);

#endif
