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
void ui_transcript_append(struct ui_transcript *t, uint32_t block, const char *text, size_t n);
/* No more text comes. Until then a last byte that may be the first part of something (a carriage
 * return, half a character) is not shown. */
void ui_transcript_finish(struct ui_transcript *t, uint32_t block);
/* A note on the side of the heading ("stopped"), NULL takes it away. */
void ui_transcript_set_note(struct ui_transcript *t, uint32_t block, const char *note);
/* Mark the text to come with a label in the margin, such as "T 0.80 -> 0.95". */
void ui_transcript_mark(struct ui_transcript *t, uint32_t block, const char *label);
void ui_transcript_remove(struct ui_transcript *t, uint32_t block);

/* The size that is drawn at; scrolling needs it. Lines that do not fit any more are made anew. */
void ui_transcript_resize(struct ui_transcript *t, int rows, int cols);
void ui_transcript_scroll(struct ui_transcript *t, int lines); /* > 0: towards the end */
void ui_transcript_page(struct ui_transcript *t, int pages);
void ui_transcript_to_start(struct ui_transcript *t);
void ui_transcript_to_end(struct ui_transcript *t);
bool ui_transcript_at_end(const struct ui_transcript *t);
/* Lines that came below the view since it left the end; 0 at the end. */
size_t ui_transcript_new_lines(struct ui_transcript *t);

/* Bytes of text that lines were made of so far, those done over included: what tests of long texts
 * look at. */
size_t ui_transcript_work(const struct ui_transcript *t);

/* Draw into rows [row, row + rows) of the screen, as last set by resize, from column 0 on. */
void ui_transcript_draw(struct ui_transcript *t, struct ui_screen *s, int row);

#endif
