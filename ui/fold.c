/* SPDX-License-Identifier: MIT
 *
 * See fold.h.
 */
#include "ui/fold.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/err.h"
#include "chinwag/utf8.h"

enum {
    FIRST = 0xfdd0, /* EF B7 90, and 31 more */
    FIRST_LAST_BYTE = 0x90,
    MOST_LINES = 10, /* more are folded */
    MOST_BYTES = 1000,
};

struct fold {
    struct cw_buf text;
    char label[80];
};

struct ui_folds {
    struct fold folds[UI_MAX_FOLDS];
    unsigned next;
};

struct ui_folds *ui_folds_create(void) {
    return cw_calloc(1, sizeof(struct ui_folds));
}

void ui_folds_destroy(struct ui_folds *f) {
    for (size_t i = 0; f != NULL && i < UI_MAX_FOLDS; i++) {
        cw_buf_free(&f->folds[i].text);
    }
    free(f);
}

void ui_fold_mark(unsigned number, char out[UI_FOLD_MARK + 1]) {
    char bytes[4];
    cw_utf8_encode(FIRST + number - 1, bytes);
    memcpy(out, bytes, UI_FOLD_MARK);
    out[UI_FOLD_MARK] = '\0';
}

/* The place of the next mark in s[from..n), and whose it is; n: there is none. */
static size_t next_mark(const char *s, size_t n, size_t from, unsigned *which) {
    while (from + UI_FOLD_MARK <= n) {
        const char *at = memmem(s + from, n - from, "\xef\xb7", 2);
        if (at == NULL || at + UI_FOLD_MARK > s + n) {
            break;
        }
        unsigned char last = (unsigned char)at[2];
        from = (size_t)(at - s);
        if (last >= FIRST_LAST_BYTE && last < FIRST_LAST_BYTE + UI_MAX_FOLDS) {
            *which = (unsigned)last - FIRST_LAST_BYTE;
            return from;
        }
        from += 2;
    }
    return n;
}

bool ui_folds_in(const char *s, size_t n) {
    unsigned which;
    return next_mark(s, n, 0, &which) < n;
}

static void replace_marks(const struct ui_folds *f, const char *s, size_t n, bool labels,
                          struct cw_buf *out) {
    cw_buf_clear(out);
    cw_buf_puts(out, ""); /* so that there is a text, if an empty one */
    for (size_t at = 0; at < n;) {
        unsigned which = 0;
        size_t mark = next_mark(s, n, at, &which);
        cw_buf_add(out, s + at, mark - at);
        at = mark;
        if (mark < n) {
            const struct fold *fold = &f->folds[which];
            if (labels) {
                cw_buf_puts(out, fold->label);
            } else if (fold->text.len > 0) {
                cw_buf_add(out, fold->text.data, fold->text.len);
            }
            at += UI_FOLD_MARK;
        }
    }
}

void ui_folds_open(const struct ui_folds *f, const char *s, size_t n, struct cw_buf *out) {
    replace_marks(f, s, n, false, out);
}

void ui_folds_label(const struct ui_folds *f, const char *s, size_t n, struct cw_buf *out) {
    replace_marks(f, s, n, true, out);
}

size_t ui_folds_byte(const struct ui_folds *f, const char *s, size_t n, size_t shown) {
    size_t at = 0, drawn = 0;
    for (;;) {
        unsigned which = 0;
        size_t mark = next_mark(s, n, at, &which);
        if (drawn + (mark - at) >= shown || mark == n) {
            return at + (shown - drawn) < n ? at + (shown - drawn) : n;
        }
        drawn += mark - at + strlen(f->folds[which].label);
        if (drawn > shown) {
            return mark;
        }
        at = mark + UI_FOLD_MARK;
    }
}

static size_t count_lines(const char *s, size_t n) {
    size_t lines = n > 0 && s[n - 1] != '\n';
    for (size_t i = 0; i < n; i++) {
        lines += s[i] == '\n';
    }
    return lines;
}

bool ui_fold_is_large(const char *s, size_t n) {
    return n > MOST_BYTES || count_lines(s, n) > MOST_LINES;
}

void ui_fold_clean(const char *s, size_t n, struct cw_buf *out) {
    for (size_t at = 0; at < n;) {
        size_t run = at;
        while (run < n && s[run] != '\r' && s[run] != '\0') {
            run++;
        }
        cw_buf_add(out, s + at, run - at);
        if (run < n && s[run] == '\r') {
            cw_buf_putc(out, '\n');
            run += run + 1 < n && s[run + 1] == '\n';
        }
        at = run + 1;
    }
}

static bool mark_stands_in(unsigned number, const char *line, size_t n) {
    char mark[UI_FOLD_MARK + 1];
    ui_fold_mark(number, mark);
    return memmem(line, n, mark, UI_FOLD_MARK) != NULL;
}

unsigned ui_folds_add(struct ui_folds *f, const char *line, size_t n, const char *name,
                      struct cw_buf *text) {
    unsigned tries = 0;
    while (tries < UI_MAX_FOLDS && mark_stands_in(f->next + 1, line, n)) {
        f->next = (f->next + 1) % UI_MAX_FOLDS;
        tries++;
    }
    if (tries == UI_MAX_FOLDS) {
        return 0;
    }
    unsigned number = f->next + 1;
    struct fold *fold = &f->folds[f->next];
    f->next = number % UI_MAX_FOLDS;
    size_t lines = count_lines(text->data, text->len);
    if (name != NULL) {
        char shown[48];
        cw_printable(shown, sizeof shown, name, strlen(name));
        snprintf(fold->label, sizeof fold->label, "[%s: %zu line%s]", shown, lines,
                 lines == 1 ? "" : "s");
    } else if (lines > 1) {
        snprintf(fold->label, sizeof fold->label, "[pasted %zu lines]", lines);
    } else {
        snprintf(fold->label, sizeof fold->label, "[pasted %zu bytes]", text->len);
    }
    cw_buf_free(&fold->text);
    fold->text = *text;
    *text = (struct cw_buf){0};
    return number;
}
