/* SPDX-License-Identifier: MIT
 *
 * The painter against a terminal: whatever stood there before, after a frame the terminal shows the
 * grid, letter by letter and look by look. Grids are made at random from what screens are made of:
 * rows that moved, rows that repeat, looks that end, wide characters next to narrow ones.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vterm.h>

#include "ui/paint.h"
#include "ui/term.h"

enum { ROWS = 12, COLS = 30, ROUNDS = 1500, N_LOOKS = 5 };

/* A terminal of the common kind. */
static void place(struct cw_buf *out, int row, int col) {
    cw_buf_printf(out, "\033[%d;%dH", row + 1, col + 1);
}

static void column(struct cw_buf *out, int col) {
    cw_buf_printf(out, "\033[%dG", col + 1);
}

static void right(struct cw_buf *out, int n) {
    cw_buf_printf(out, "\033[%dC", n);
}

static void style(struct cw_buf *out, const struct ui_style *from, const struct ui_style *to) {
    cw_buf_puts(out, "\033[m");
    cw_buf_puts(out, to->attrs & UI_BOLD ? "\033[1m" : "");
    cw_buf_puts(out, to->attrs & UI_UNDERLINE ? "\033[4m" : "");
    cw_buf_puts(out, to->attrs & UI_REVERSE ? "\033[7m" : "");
    if (to->fg >= 0) {
        cw_buf_printf(out, "\033[38;5;%dm", (int)to->fg);
    }
    if (to->bg >= 0) {
        cw_buf_printf(out, "\033[48;5;%dm", (int)to->bg);
    }
}

static void erase_right(struct cw_buf *out) {
    cw_buf_puts(out, "\033[K");
}

static void region(struct cw_buf *out, int top, int bottom) {
    cw_buf_printf(out, "\033[%d;%dr", top + 1, bottom + 1);
}

static void scroll(struct cw_buf *out, int top, int bottom, int n) {
    cw_buf_printf(out, n > 0 ? "\033[%dS" : "\033[%dT", n > 0 ? n : -n);
}

static const struct ui_style looks[N_LOOKS] = {
    {-1, -1, 0}, {140, -1, 0}, {68, -1, UI_BOLD}, {-1, 17, 0}, {-1, -1, UI_UNDERLINE}};

struct terminal {
    struct ui_paint paint;
    VTerm *vt;
    VTermScreen *screen;
    size_t bytes;
};

static void open_terminal(struct terminal *t, struct ui_paint_caps caps) {
    t->vt = vterm_new(ROWS, COLS);
    vterm_set_utf8(t->vt, 1);
    t->screen = vterm_obtain_screen(t->vt);
    vterm_screen_reset(t->screen, 1);
    ui_paint_init(&t->paint, &caps);
    for (int i = 0; i < N_LOOKS; i++) {
        t->paint.styles[i] = looks[i];
    }
    ui_paint_cleared(&t->paint, ROWS, COLS);
    t->bytes = 0;
}

static void close_terminal(struct terminal *t) {
    ui_paint_free(&t->paint);
    vterm_free(t->vt);
}

static void show(struct terminal *t, const struct ui_screen *s) {
    struct cw_buf out = {0};
    ui_paint_frame(&t->paint, s, &out);
    if (out.len > 0) {
        vterm_input_write(t->vt, out.data, out.len);
    }
    t->bytes = out.len;
    cw_buf_free(&out);
}

static struct ui_paint_caps all_caps(void) {
    return (struct ui_paint_caps){.place = place,
                                  .column = column,
                                  .right = right,
                                  .style = style,
                                  .erase_right = erase_right,
                                  .region = region,
                                  .scroll = scroll,
                                  .attrs = UI_BOLD | UI_UNDERLINE | UI_REVERSE,
                                  .links = true,
                                  .corner = true};
}

static void expect_color(VTermColor got, bool is_default, int32_t want, int row, int col) {
    ck_assert_msg(is_default == (want < 0), "%d:%d: a colour", row, col);
    if (want >= 0) {
        ck_assert_msg(VTERM_COLOR_IS_INDEXED(&got) && got.indexed.idx == want, "%d:%d: colour %d",
                      row, col, (int)want);
    }
}

static void expect(struct terminal *t, const struct ui_screen *s) {
    for (int row = 0; row < ROWS; row++) {
        for (int col = 0; col < COLS; col++) {
            const struct ui_cell *want = ui_screen_at(s, row, col);
            VTermScreenCell got;
            vterm_screen_get_cell(t->screen, (VTermPos){.row = row, .col = col}, &got);
            if (want->width == 0) {
                continue;
            }
            char text[8] = " ";
            if (got.chars[0] != 0 && got.chars[0] < 0x80) {
                text[0] = (char)got.chars[0];
            } else if (got.chars[0] != 0) {
                snprintf(text, sizeof text, "%s", got.chars[0] == 0x6d77 ? "海" : "─");
            }
            ck_assert_msg(strlen(text) == want->len && memcmp(text, want->text, want->len) == 0,
                          "%d:%d: \"%s\" where \"%.*s\" should be", row, col, text, want->len,
                          want->text);
            const struct ui_style *look = &looks[want->role];
            bool blank = want->text[0] == ' ';
            if (!blank) {
                expect_color(got.fg, VTERM_COLOR_IS_DEFAULT_FG(&got.fg), look->fg, row, col);
                ck_assert_int_eq(got.attrs.bold, (look->attrs & UI_BOLD) != 0);
            }
            expect_color(got.bg, VTERM_COLOR_IS_DEFAULT_BG(&got.bg), look->bg, row, col);
            ck_assert_int_eq(got.attrs.underline, (look->attrs & UI_UNDERLINE) != 0);
        }
    }
}

static unsigned below(unsigned n) {
    return (unsigned)rand() % n;
}

static void random_row(struct ui_screen *s, int row) {
    static const char *const words[] = {"the", " ", "  ", "sea", "─", "海", "a", "    ", "海海"};
    for (int col = 0; col < COLS;) {
        int after = ui_screen_puts(s, row, col, COLS, words[below(9)],
                                   (enum ui_role)(below(3) ? 0 : below(N_LOOKS)));
        col = after > col && below(12) > 0 ? after : COLS;
    }
}

static void clear_row(struct ui_screen *s, int row) {
    ui_screen_fill(s, row, 0, COLS, " ", UI_TEXT);
}

static void move_rows(struct ui_screen *s) {
    unsigned top = below(ROWS - 1), n = 1 + below(ROWS - top), by = 1 + below(3);
    size_t row_bytes = (size_t)COLS * sizeof *s->cells;
    struct ui_cell *rows = s->cells + (size_t)top * COLS;
    if (by >= n) {
        return;
    }
    if (below(3) > 0) { /* up, as text does */
        memmove(rows, rows + (size_t)by * COLS, (n - by) * row_bytes);
        for (unsigned i = n - by; i < n; i++) {
            clear_row(s, (int)(top + i));
            random_row(s, (int)(top + i));
        }
    } else {
        memmove(rows + (size_t)by * COLS, rows, (n - by) * row_bytes);
        for (unsigned i = 0; i < by; i++) {
            clear_row(s, (int)(top + i));
        }
    }
}

/* The next screen: a few changes of the kinds that happen. */
static void change(struct ui_screen *s) {
    for (unsigned i = below(4) + 1; i-- > 0;) {
        int row = (int)below(ROWS);
        switch (below(6)) {
        case 0:
            clear_row(s, row);
            break;
        case 1:
            clear_row(s, row);
            random_row(s, row);
            break;
        case 2:
            ui_screen_puts(s, row, (int)below(COLS), COLS, "more text", UI_TEXT);
            break;
        case 3:
            ui_screen_puts(s, row, (int)below(COLS), COLS, "海", (enum ui_role)below(N_LOOKS));
            break;
        default:
            move_rows(s);
        }
    }
    s->cursor_row = (int)below(ROWS + 1) - 1;
    s->cursor_col = (int)below(COLS);
}

/* With all abilities, without each, and with none but to place the cursor. */
START_TEST(terminal_shows_the_grid) {
    struct ui_paint_caps caps = all_caps();
    caps.column = _i == 1 || _i == 6 ? NULL : caps.column;
    caps.right = _i == 2 || _i == 6 ? NULL : caps.right;
    caps.erase_right = _i == 3 || _i == 6 ? NULL : caps.erase_right;
    caps.scroll = _i == 4 || _i == 6 ? NULL : caps.scroll;
    struct terminal t;
    struct ui_screen s;
    open_terminal(&t, caps);
    ui_screen_init(&s, ROWS, COLS);
    srand((unsigned)_i + 1);
    for (int round = 0; round < ROUNDS; round++) {
        change(&s);
        show(&t, &s);
        expect(&t, &s);
        if (s.cursor_row >= 0) {
            VTermPos pos;
            vterm_state_get_cursorpos(vterm_obtain_state(t.vt), &pos);
            ck_assert_int_eq(pos.row, s.cursor_row);
            ck_assert_int_eq(pos.col, s.cursor_col);
        }
        show(&t, &s);
        ck_assert_uint_eq(t.bytes, 0); /* nothing changed: nothing is sent */
    }
    ui_screen_free(&s);
    close_terminal(&t);
}
END_TEST

/* A page of text that moves up by a line costs about that line. */
START_TEST(moved_rows_are_scrolled) {
    struct terminal t;
    struct ui_screen s;
    open_terminal(&t, all_caps());
    ui_screen_init(&s, ROWS, COLS);
    for (int frame = 0; frame < 30; frame++) {
        for (int row = 0; row < ROWS - 1; row++) {
            char text[40];
            clear_row(&s, row);
            unsigned mixed = (unsigned)(frame + row) * 2654435761u;
            snprintf(text, sizeof text, "%08x %08x", mixed, ~mixed);
            ui_screen_puts(&s, row, 0, COLS, text, UI_TEXT);
        }
        ui_screen_puts(&s, ROWS - 1, 0, COLS, "the last row stays", UI_TEXT);
        show(&t, &s);
        expect(&t, &s);
        ck_assert(frame == 0 || t.bytes < 50);
    }
    ui_screen_free(&s);
    close_terminal(&t);
}
END_TEST

/* Only what changed is written; a role that looks like another is no change. */
START_TEST(little_is_written) {
    struct terminal t;
    struct ui_screen s;
    open_terminal(&t, all_caps());
    t.paint.styles[4] = looks[0];
    ui_screen_init(&s, ROWS, COLS);
    ui_screen_puts(&s, 3, 0, COLS, "some text", UI_TEXT);
    show(&t, &s);
    ui_screen_puts(&s, 3, 0, COLS, "some text", (enum ui_role)4);
    show(&t, &s);
    ck_assert_uint_eq(t.bytes, 0);
    ui_screen_puts(&s, 3, 5, COLS, "T", (enum ui_role)4);
    show(&t, &s);
    ck_assert_uint_le(t.bytes, strlen("\033[4;6HT"));
    ui_screen_free(&s);
    close_terminal(&t);
}
END_TEST

int main(void) {
    ui_term_locale();
    Suite *s = suite_create("paint");
    TCase *c = tcase_create("paint");
    tcase_set_timeout(c, 240);
    tcase_add_loop_test(c, terminal_shows_the_grid, 0, 7);
    tcase_add_test(c, moved_rows_are_scrolled);
    tcase_add_test(c, little_is_written);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
