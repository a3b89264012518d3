/* SPDX-License-Identifier: MIT
 *
 * Large texts folded to one character each. The character that stands for a text is one of those
 * that Unicode keeps for internal use (U+FDD0 to U+FDEF), so that an editor moves over it, deletes,
 * kills and yanks it as it does any other; text that comes in with such a character is folded
 * itself and cannot pass for one. Pure.
 */
#ifndef UI_FOLD_H
#define UI_FOLD_H

#include <stdbool.h>

#include "chinwag/mem.h"

enum { UI_MAX_FOLDS = 32, UI_FOLD_MARK = 3 /* bytes of a mark */ };

struct ui_folds;

struct ui_folds *ui_folds_create(void);
void ui_folds_destroy(struct ui_folds *f); /* NULL is fine */

/* Fold a text, which is taken. It gets a mark that is not in line[0..n); the oldest fold gives its
 * mark up. `name` labels it "[NAME: 12 lines]"; NULL: "[pasted 12 lines]". Returns its number, from
 * 1; 0 when all marks stand in the line (the text is not taken then). */
unsigned ui_folds_add(struct ui_folds *f, const char *line, size_t n, const char *name,
                      struct cw_buf *text);
void ui_fold_mark(unsigned number, char out[UI_FOLD_MARK + 1]);

bool ui_folds_in(const char *s, size_t n); /* whether s[0..n) holds a mark */
/* s[0..n) with its marks as what they stand for, or as labels to read. Replaces *out. */
void ui_folds_open(const struct ui_folds *f, const char *s, size_t n, struct cw_buf *out);
void ui_folds_label(const struct ui_folds *f, const char *s, size_t n, struct cw_buf *out);
/* The byte of s[0..n) that stands at byte `shown` of the labelled text; within a label its mark. */
size_t ui_folds_byte(const struct ui_folds *f, const char *s, size_t n, size_t shown);

bool ui_fold_is_large(const char *s, size_t n); /* worth folding when it is pasted */
/* Append s[0..n) as a line editor may hold it: LF for every line end, no NUL. */
void ui_fold_clean(const char *s, size_t n, struct cw_buf *out);

#endif
