/* SPDX-License-Identifier: MIT
 *
 * The conversation as it is shown: blocks of text with a heading, wrapped to the width, and a view
 * that scrolls over them. Pure: it draws into a grid and knows no terminal.
 *
 * Lines are kept per block and made only when they are looked at; appended text re-wraps the last
 * line of its block and nothing else. So a long reply costs its own length once, and a history of
 * thousands of turns costs what is on the screen.
 *
 * The view follows new text only while it is at the bottom.
 */
#ifndef UI_TRANSCRIPT_H
#define UI_TRANSCRIPT_H

#include "ui/wrap.h"

enum ui_block_kind {
    UI_BLOCK_USER,
    UI_BLOCK_REPLY,
    UI_BLOCK_THINKING,
    UI_BLOCK_NOTICE, /* the program speaks */
    UI_BLOCK_ERROR,
    UI_N_BLOCK_KINDS
};

struct ui_transcript;

struct ui_transcript *ui_transcript_create(void);
void ui_transcript_destroy(struct ui_transcript *t); /* NULL is fine */
void ui_transcript_clear(struct ui_transcript *t);

/* Add an empty block at the end; `heading` may be NULL. Returns its number, never 0, never used
 * twice. */
uint32_t ui_transcript_add(struct ui_transcript *t, enum ui_block_kind kind, const char *heading);
/* The number of the block added last, also of one that was removed since; 0: there was none. */
uint32_t ui_transcript_last(const struct ui_transcript *t);
void ui_transcript_append(struct ui_transcript *t, uint32_t block, const char *text, size_t n);
/* No more text comes. Until then a last byte that may be the first part of something (a carriage
 * return, half a character) is not shown. */
void ui_transcript_finish(struct ui_transcript *t, uint32_t block);
/* A note on the side of the heading ("stopped"), NULL takes it away. */
void ui_transcript_set_note(struct ui_transcript *t, uint32_t block, const char *note);
/* Mark the text to come with a label in the margin, such as "T 0.80 -> 0.95". */
void ui_transcript_mark(struct ui_transcript *t, uint32_t block, const char *label);
void ui_transcript_remove(struct ui_transcript *t, uint32_t block);
/* A folded block shows its heading with the number of its lines and tokens; new UI_BLOCK_THINKING
 * blocks fold when they are finished, unless unfolded since. Block 0: every thinking block. */
void ui_transcript_fold(struct ui_transcript *t, uint32_t block, bool folded);
bool ui_transcript_folded(const struct ui_transcript *t, uint32_t block);
/* Replies as rendered Markdown (the default) or as the raw text. */
void ui_transcript_set_markdown(struct ui_transcript *t, bool on);

/* The size that is drawn at; scrolling needs it. Lines that do not fit any more are made anew. */
void ui_transcript_resize(struct ui_transcript *t, int rows, int cols);
void ui_transcript_scroll(struct ui_transcript *t, int lines); /* > 0: towards the end */
void ui_transcript_page(struct ui_transcript *t, int pages);
void ui_transcript_to_start(struct ui_transcript *t);
void ui_transcript_to_end(struct ui_transcript *t);
bool ui_transcript_at_end(const struct ui_transcript *t);
/* Lines that came below the view since it left the end; 0 at the end. */
size_t ui_transcript_new_lines(struct ui_transcript *t);

/* ---- tokens (the lens) ----
 *
 * The text appended next to `block` begins a token, whose probability chooses its colour while the
 * lens is on (0 .. 1; < 0: unknown). Tokens are counted from 0 in each block. With the lens on
 * replies are shown raw. */
void ui_transcript_token(struct ui_transcript *t, uint32_t block, double probability);
size_t ui_transcript_n_tokens(const struct ui_transcript *t, uint32_t block);
/* Byte at which token `token` begins in the text of its block. */
size_t ui_transcript_token_offset(const struct ui_transcript *t, uint32_t block, size_t token);
/* Lens on, with its cursor on one token, which is scrolled into view; block 0: off. */
void ui_transcript_lens(struct ui_transcript *t, uint32_t block, size_t token);

/* ---- searching ----
 *
 * Find `needle` (letters of either case alike) in all blocks and highlight every hit; NULL or "":
 * none. Returns the number of hits. The hit nearest to what is shown becomes the current one, which
 * is scrolled to; next goes on by `step` hits, around the ends. Text that comes later is searched
 * as it comes. */
size_t ui_transcript_search(struct ui_transcript *t, const char *needle);
void ui_transcript_search_next(struct ui_transcript *t, int step);
/* Number of the current hit, from 1, and of all hits; 0 and 0 without. */
void ui_transcript_search_at(const struct ui_transcript *t, size_t *current, size_t *hits);

/* ---- picking what to copy ---- */
enum ui_pick { UI_PICK_NONE, UI_PICK_MESSAGE, UI_PICK_CODE };
/* Pick the message or the code block `step` away from the picked one (from the end of what is
 * shown, when none is) and scroll to it; false: there is none there. */
bool ui_transcript_pick(struct ui_transcript *t, enum ui_pick kind, int step);
void ui_transcript_unpick(struct ui_transcript *t);
enum ui_pick ui_transcript_picked(const struct ui_transcript *t);
/* Block of the picked message or code; 0: none. Its text as it was written, without the wraps, the
 * box or the margin, is appended to `out` (may be NULL). */
uint32_t ui_transcript_picked_text(const struct ui_transcript *t, struct cw_buf *out);
/* The source of a block. Valid until it changes. */
struct cw_str ui_transcript_source(const struct ui_transcript *t, uint32_t block);
void ui_transcript_show(struct ui_transcript *t, uint32_t block); /* scroll to its heading */

/* ---- reading it out ----
 *
 * For a chat in plain lines, which follows the blocks instead of drawing them. */
struct ui_block_view {
    uint32_t block;
    enum ui_block_kind kind;
    const char *heading, *note; /* or NULL */
    struct cw_str text;
    size_t n_marks;
    bool finished;
};
/* The first block whose number is higher than `after`; false: there is none. Valid until the
 * transcript changes. */
bool ui_transcript_next(const struct ui_transcript *t, uint32_t after, struct ui_block_view *out);
/* Mark i of a block and the byte of its text that it stands before; NULL: there is none. */
const char *ui_transcript_mark_at(const struct ui_transcript *t, uint32_t block, size_t i,
                                  size_t *offset);

/* Bytes of text that lines were made of so far, those done over included: what tests of long texts
 * look at. */
size_t ui_transcript_work(const struct ui_transcript *t);

/* Draw into rows [row, row + rows) of the screen, as last set by resize, from column 0 on. */
void ui_transcript_draw(struct ui_transcript *t, struct ui_screen *s, int row);

#endif
