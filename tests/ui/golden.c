/* SPDX-License-Identifier: MIT
 *
 * See golden.h.
 */
#include "tests/ui/golden.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vterm.h>

char *golden_screen(struct tui *t) {
    struct cw_buf out = {0};
    for (int row = 0; row < t->pty.rows - 1; row++) {
        char *text = pty_row(&t->pty, row);
        cw_buf_printf(&out, "%s\n", text);
        free(text);
    }
    return cw_buf_take(&out);
}

static void add_colour(struct cw_buf *out, const char *what, VTermColor c, bool is_default) {
    if (is_default) {
        return;
    }
    if (VTERM_COLOR_IS_INDEXED(&c)) {
        cw_buf_printf(out, " %s %d", what, c.indexed.idx);
    } else {
        cw_buf_printf(out, " %s #%02x%02x%02x", what, c.rgb.red, c.rgb.green, c.rgb.blue);
    }
}

/* How a cell looks, "" for the terminal's own look. */
static char *look(struct tui *t, int row, int col) {
    VTermScreenCell cell;
    VTermPos pos = {.row = row, .col = col};
    struct cw_buf out = {0};
    memset(&cell, 0, sizeof cell);
    vterm_screen_get_cell(t->pty.screen, pos, &cell);
    cw_buf_puts(&out, "");
    bool lines = cell.attrs.underline || cell.attrs.reverse || cell.attrs.strike;
    if (lines || (cell.chars[0] != 0 && cell.chars[0] != ' ')) { /* of a blank the ground is seen */
        add_colour(&out, "fg", cell.fg, VTERM_COLOR_IS_DEFAULT_FG(&cell.fg));
        cw_buf_puts(&out, cell.attrs.bold ? " bold" : "");
        cw_buf_puts(&out, cell.attrs.italic ? " italic" : "");
    }
    add_colour(&out, "bg", cell.bg, VTERM_COLOR_IS_DEFAULT_BG(&cell.bg));
    cw_buf_puts(&out, cell.attrs.underline ? " underline" : "");
    cw_buf_puts(&out, cell.attrs.reverse ? " reverse" : "");
    cw_buf_puts(&out, cell.attrs.strike ? " strike" : "");
    return cw_buf_take(&out);
}

static void add_looks(struct tui *t, struct cw_buf *out) {
    for (int row = 0; row < t->pty.rows - 1; row++) {
        int begin = 0;
        char *now = look(t, row, 0);
        for (int col = 1; col <= t->pty.cols; col++) {
            char *next = col < t->pty.cols ? look(t, row, col) : NULL;
            if (next == NULL || strcmp(next, now) != 0) {
                if (now[0] != '\0') {
                    cw_buf_printf(out, "%d:%d-%d%s\n", row, begin, col - 1, now);
                }
                begin = col;
            }
            free(now);
            now = next;
        }
        free(now);
    }
}

static void compare(struct tui *t, const char *name, bool looks) {
    const char *root = getenv("CHINWAG_SOURCE_ROOT");
    char path[1024], piece[4096];
    ck_assert_ptr_nonnull(root);
    snprintf(path, sizeof path, "%s/tests/data/golden/%s-%dx%d.txt", root, name, t->pty.cols,
             t->pty.rows);
    struct cw_buf got = {0}, want = {0};
    char *screen = golden_screen(t);
    cw_buf_puts(&got, screen);
    free(screen);
    if (looks) {
        cw_buf_puts(&got, "--\n");
        add_looks(t, &got);
    }
    const char *renew = getenv("CHINWAG_RENEW_GOLDEN");
    if (renew != NULL && renew[0] != '\0') {
        FILE *f = fopen(path, "w");
        ck_assert_msg(f != NULL, "%s cannot be written", path);
        fputs(got.data, f);
        ck_assert_int_eq(fclose(f), 0);
    }
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s cannot be read", path);
    size_t n;
    while ((n = fread(piece, 1, sizeof piece, f)) > 0) {
        cw_buf_add(&want, piece, n);
    }
    fclose(f);
    bool same = want.len == got.len && memcmp(want.data, got.data, got.len) == 0;
    if (!same) {
        fprintf(stderr, "%s\n", got.data);
    }
    ck_assert_msg(same, "the screen is not that of %s", path);
    cw_buf_free(&got);
    cw_buf_free(&want);
}

void golden_text(struct tui *t, const char *name) {
    compare(t, name, false);
}

void golden_looks(struct tui *t, const char *name) {
    compare(t, name, true);
}
