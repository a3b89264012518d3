/* SPDX-License-Identifier: MIT
 *
 * The panels without a terminal: the line that is typed into, the palette, the token lens; and the
 * folding of large texts.
 */
#include <check.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/fold.h"
#include "ui/lens.h"
#include "ui/palette.h"

static void use_utf8(void) {
    ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
}

static char *row_of(const struct ui_screen *s, int row) {
    struct cw_buf out = {0};
    ui_screen_row_text(s, row, &out);
    return cw_buf_take(&out);
}

/* ---- the line ------------------------------------------------------------------------------- */

/* Keys by name, separated by blanks. */
static void press(struct ui_lineedit *e, const char *names) {
    while (*names != '\0') {
        struct ui_key key = {0};
        size_t n = strcspn(names, " ");
        ck_assert_msg(ui_key_parse(names, n, &key.code, &key.mods), "%s", names);
        ui_lineedit_key(e, &key);
        names += n + (names[n] == ' ');
    }
}

static const struct {
    const char *keys, *text;
    size_t cursor;
} edits[] = {
    {"a b c", "abc", 3},
    {"a b Left X", "aXb", 2},
    {"a b Backspace", "a", 1},
    {"a b Home Delete", "b", 0},
    {"a b Left Left Left X Right Right Right Y", "XabY", 4},
    {"a b Home X End Y", "XabY", 4},
    {"a b Ctrl+A X Ctrl+E Y Ctrl+B Z", "XabZY", 4},
    {"a Space b c Ctrl+W", "a ", 2},
    {"a Space b Ctrl+U", "", 0},
    {"a Space b Left Ctrl+K", "a ", 2},
    {"Backspace Delete Left Ctrl+W", "", 0},
    {"\xc3\xa9 \xe4\xb8\xad Left Backspace", "\xe4\xb8\xad", 0},
    {"e \xcc\x81 x Left Backspace", "x", 0}, /* a letter with its accent goes as one */
};

START_TEST(line_edits) {
    use_utf8();
    struct ui_lineedit e = {0};
    press(&e, edits[_i].keys);
    ck_assert_str_eq(ui_lineedit_text(&e), edits[_i].text);
    ck_assert_uint_eq(e.cursor, edits[_i].cursor);
    ui_lineedit_free(&e);
}
END_TEST

START_TEST(line_takes_pastes_and_old_text) {
    use_utf8();
    struct ui_lineedit e = {0};
    struct ui_key paste = {.code = UI_KEY_PASTE, .text = "two\nlines\tx", .n_text = 11};
    ck_assert(ui_lineedit_key(&e, &paste));
    ck_assert_str_eq(ui_lineedit_text(&e), "two lines x");
    ui_lineedit_set(&e, "old", true);
    press(&e, "n");
    ck_assert_str_eq(ui_lineedit_text(&e), "n"); /* typed over */
    ui_lineedit_set(&e, "old", true);
    press(&e, "End n");
    ck_assert_str_eq(ui_lineedit_text(&e), "oldn"); /* edited */
    struct ui_key up = {.code = UI_KEY_UP};
    ck_assert(!ui_lineedit_key(&e, &up)); /* the owner's */
    ui_lineedit_free(&e);
}
END_TEST

START_TEST(line_scrolls_to_its_cursor) {
    use_utf8();
    struct ui_lineedit e = {0};
    struct ui_screen s;
    ui_lineedit_set(&e, "abcdefghijklmnopqrstuvwxyz", false);
    for (int cols = 1; cols <= 40; cols++) {
        ui_screen_init(&s, 1, cols);
        ui_lineedit_draw(&e, &s, 0, 0, cols);
        ck_assert_int_ge(s.cursor_col, 0);
        ck_assert_int_lt(s.cursor_col, cols);
        if (cols >= 3) {
            char *text = row_of(&s, 0);
            ck_assert_ptr_nonnull(strchr(text, 'z'));
            free(text);
        }
        ui_screen_free(&s);
    }
    ui_lineedit_free(&e);
}
END_TEST

/* ---- the palette ---------------------------------------------------------------------------- */

/* The first text is a better match than the second; a second of NULL: the first must not match. */
static const struct {
    const char *needle, *better, *worse;
} scores[] = {
    {"te", "temp", "set temp"},
    {"st", "set temp", "last"},
    {"cr", "creative", "secret"},
    {"tk", "top-k", "think"},
    {"PRE", "preset chat", "suppress"},
    {"read", "/read FILE", "reload and"},
    {"set top", "set top-k", "settop xx"},
    {"xyz", "temp", NULL},
    {"tempp", "temp", NULL},
    {"pmet", "temp", NULL},
};

START_TEST(palette_scores) {
    int better = ui_palette_score(scores[_i].needle, scores[_i].better);
    if (scores[_i].worse == NULL) {
        ck_assert_int_lt(better, 0);
    } else {
        ck_assert_int_gt(better, ui_palette_score(scores[_i].needle, scores[_i].worse));
    }
}
END_TEST

/* Every text that holds the letters in order matches, and no other. */
START_TEST(palette_score_is_a_subsequence) {
    uint32_t seed = 7;
    for (int round = 0; round < 20000; round++) {
        char text[16], needle[8];
        size_t n = 0, m = 0;
        seed = seed * 1664525 + 1013904223;
        for (uint32_t bits = seed; n < 12; bits >>= 2) {
            text[n++] = "ab-c"[bits & 3];
        }
        seed = seed * 1664525 + 1013904223;
        for (uint32_t bits = seed >> 8; m < 1 + (seed >> 28) % 6; bits >>= 2) {
            needle[m++] = "ab-c"[bits & 3];
        }
        text[n] = needle[m] = '\0';
        size_t k = 0;
        for (size_t i = 0; i < n; i++) {
            k += k < m && text[i] == needle[k];
        }
        ck_assert_msg((ui_palette_score(needle, text) >= 0) == (k == m), "%s in %s", needle, text);
    }
}
END_TEST

static void palette_type(struct ui_palette *p, const char *text) {
    for (; *text != '\0'; text++) {
        struct ui_key key = {.code = (unsigned char)*text};
        ck_assert(ui_palette_key(p, &key));
    }
}

START_TEST(palette_finds_and_moves) {
    use_utf8();
    struct ui_palette *p = ui_palette_create("Palette");
    ck_assert_ptr_null(ui_palette_selected(p));
    ui_palette_add(p, 1, "/stats", "Show the figures of the last reply.", "/stats");
    ui_palette_add(p, 2, "set temp = 0.8", "Temperature.", "/set temp ");
    ui_palette_add(p, 1, "/stop", "Stop the reply.", "/stop");
    ck_assert_uint_eq(ui_palette_n_matches(p), 3);
    ck_assert_str_eq(ui_palette_selected(p)->action, "/stats"); /* in their order */
    palette_type(p, "temp");
    ck_assert_uint_eq(ui_palette_n_matches(p), 1);
    ck_assert_int_eq(ui_palette_selected(p)->kind, 2);
    struct ui_key key = {.code = 'u', .mods = UI_CTRL};
    ui_palette_key(p, &key);
    palette_type(p, "figures"); /* by its sentence */
    ck_assert_str_eq(ui_palette_selected(p)->action, "/stats");
    ui_palette_key(p, &key);
    palette_type(p, "st");
    key = (struct ui_key){.code = UI_KEY_DOWN};
    const char *first = ui_palette_selected(p)->action;
    ui_palette_key(p, &key);
    ck_assert_str_ne(ui_palette_selected(p)->action, first);
    for (int i = 0; i < 10; i++) {
        ui_palette_key(p, &key); /* stays at the end */
    }
    ck_assert_ptr_nonnull(ui_palette_selected(p));
    palette_type(p, "zzz");
    ck_assert_ptr_null(ui_palette_selected(p));
    ui_palette_key(p, &key);
    ck_assert_ptr_null(ui_palette_selected(p));
    ui_palette_destroy(p);
}
END_TEST

/* The selected item is in sight at every size. */
START_TEST(palette_draws_at_any_size) {
    use_utf8();
    struct ui_palette *p = ui_palette_create("Palette");
    for (int i = 0; i < 40; i++) {
        char label[32];
        snprintf(label, sizeof label, "item%02d", i);
        ui_palette_add(p, 0, label, "a sentence that goes on and on for a while", label);
    }
    for (int at = 0; at < 40; at += 13) {
        for (int rows = 2; rows <= 12; rows++) {
            for (int cols = 1; cols <= 80; cols += cols < 20 ? 1 : 15) {
                struct ui_screen s;
                ui_screen_init(&s, rows, cols);
                ui_palette_draw(p, &s, 0, rows);
                bool seen = cols < 8;
                for (int r = 0; r < rows; r++) {
                    char *text = row_of(&s, r);
                    char want[32];
                    snprintf(want, sizeof want, ">%sitem%02d", cols >= 12 ? " " : "", at);
                    seen = seen || strstr(text, want) != NULL;
                    free(text);
                }
                ck_assert_msg(seen, "item %d at %d x %d", at, rows, cols);
                ui_screen_free(&s);
            }
        }
        for (int i = 0; i < 13; i++) {
            struct ui_key down = {.code = UI_KEY_DOWN};
            ui_palette_key(p, &down);
        }
    }
    ui_palette_destroy(p);
}
END_TEST

/* ---- the lens ------------------------------------------------------------------------------- */

static struct ui_lens a_token(void) {
    struct ui_lens l = {.token = 11,
                        .n_tokens = 231,
                        .text = "\" sky\"",
                        .known = true,
                        .raw = 0.125,
                        .p = 0.25,
                        .rank = 1,
                        .entropy_bits = 2.5,
                        .n_choices = UI_LENS_MOST,
                        .selected = 1};
    for (int i = 0; i < UI_LENS_MOST; i++) {
        struct ui_lens_choice *c = &l.choices[i];
        snprintf(c->text, sizeof c->text, "\" word%d\"", i);
        c->raw = 0.5 / (1 << i);
        c->p = i < 3 ? 0.6 / (1 << i) : 0;
        c->chosen = i == 1;
    }
    return l;
}

START_TEST(lens_in_full) {
    use_utf8();
    struct ui_lens l = a_token();
    struct ui_screen s;
    ui_screen_init(&s, 9, 80);
    ck_assert_int_eq(ui_lens_rows(&l, 18), 9);
    ui_lens_draw(&l, &s, 0, 9);
    char *head = row_of(&s, 0), *first = row_of(&s, 1), *second = row_of(&s, 2),
         *last = row_of(&s, 8);
    ck_assert_str_eq(
        head, " \" sky\"  raw 12.5 %  drawn at 25.0 %  rank 2  entropy 2.50 bits  token 12 of 231");
    ck_assert_str_eq(first,
                     " 1  \" word0\" ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓░░░░░░░░░░░░░░░░░░░░ 50.0 % ->  60.0 %");
    ck_assert_ptr_nonnull(strstr(second, "2* \" word1\"")); /* a mark, not only a colour */
    ck_assert_int_eq(ui_screen_at(&s, 2, 0)->role, UI_SELECTED);
    ck_assert_ptr_nonnull(strstr(last, "0.4 % ->   0.0 %"));
    free(head);
    free(first);
    free(second);
    free(last);
    ui_screen_free(&s);
}
END_TEST

/* Narrow and low: whole figures only, the token itself always, the selected choice in sight. */
START_TEST(lens_at_any_size) {
    use_utf8();
    struct ui_lens l = a_token();
    l.selected = 7;
    for (int cols = 1; cols <= 200; cols++) {
        for (int rows = 1; rows <= 9; rows++) {
            struct ui_screen s;
            ui_screen_init(&s, rows, cols);
            ui_lens_draw(&l, &s, 0, rows);
            char *head = row_of(&s, 0);
            if (cols >= 7) {
                ck_assert_ptr_nonnull(strstr(head, "\" sky\""));
            }
            /* "12.5 %" is whole or not there */
            const char *raw = strstr(head, "raw");
            ck_assert(raw == NULL || strncmp(raw, "raw 12.5 %", 10) == 0);
            free(head);
            if (rows > 1 && cols >= 16) {
                char *row = row_of(&s, rows - 1);
                ck_assert_ptr_nonnull(strstr(row, "8  \" word7\""));
                size_t n = strlen(row);
                ck_assert_msg(cols < 20 || row[n - 1] == '%', "%d: %s", cols, row);
                free(row);
            }
            ui_screen_free(&s);
        }
    }
}
END_TEST

START_TEST(lens_texts) {
    use_utf8();
    static const struct {
        const char *text, *shown;
    } cases[] = {{" a", "\" a\""},
                 {"\n\t", "\"\\n\\t\""},
                 {"", "\"\""},
                 {"\033[2J", "\"\\x1B[2J\""},
                 {"\xe4\xb8", "\"\\xE4\\xB8\""}};
    char out[48];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ui_lens_text(out, sizeof out, cases[i].text, strlen(cases[i].text));
        ck_assert_str_eq(out, cases[i].shown);
    }
    char lots[200];
    memset(lots, 'x', sizeof lots);
    ui_lens_text(out, sizeof out, lots, sizeof lots);
    ck_assert_uint_lt(strlen(out), sizeof out);
    struct ui_lens l = {.text = "\"x\"", .n_tokens = 1};
    struct ui_screen s;
    ui_screen_init(&s, 1, 60);
    ui_lens_draw(&l, &s, 0, 1);
    char *head = row_of(&s, 0);
    ck_assert_str_eq(head, " \"x\"  probability not kept  token 1 of 1");
    free(head);
    ui_screen_free(&s);
}
END_TEST

/* ---- folded texts --------------------------------------------------------------------------- */

static unsigned fold(struct ui_folds *f, struct cw_buf *line, const char *name, const char *text) {
    struct cw_buf copy = {0};
    char mark[UI_FOLD_MARK + 1];
    cw_buf_puts(&copy, text);
    unsigned n = ui_folds_add(f, line->data ? line->data : "", line->len, name, &copy);
    cw_buf_free(&copy);
    if (n > 0) {
        ui_fold_mark(n, mark);
        cw_buf_puts(line, mark);
    }
    return n;
}

START_TEST(folds_open_and_label) {
    struct ui_folds *f = ui_folds_create();
    struct cw_buf line = {0}, out = {0};
    cw_buf_puts(&line, "see ");
    fold(f, &line, NULL, "one\ntwo\n");
    cw_buf_puts(&line, " and ");
    fold(f, &line, "a\033.c", "three");
    ui_folds_open(f, line.data, line.len, &out);
    ck_assert_str_eq(out.data, "see one\ntwo\n and three");
    ui_folds_label(f, line.data, line.len, &out);
    ck_assert_str_eq(out.data, "see [pasted 2 lines] and [a\\x1B.c: 1 line]");
    /* every place of what is drawn belongs to a place of the line */
    ck_assert_uint_eq(ui_folds_byte(f, line.data, line.len, 0), 0);
    ck_assert_uint_eq(ui_folds_byte(f, line.data, line.len, 4), 4);
    ck_assert_uint_eq(ui_folds_byte(f, line.data, line.len, 10), 4);
    ck_assert_uint_eq(ui_folds_byte(f, line.data, line.len, 20), 7);
    ck_assert_uint_eq(ui_folds_byte(f, line.data, line.len, out.len), line.len);
    ck_assert(ui_folds_in(line.data, line.len));
    ck_assert(!ui_folds_in("\xef\xb7\xb0 \xef\xb7", 6)); /* neighbours, and half a mark */
    ui_folds_open(f, "", 0, &out);
    ck_assert_str_eq(out.data, "");
    cw_buf_free(&line);
    cw_buf_free(&out);
    ui_folds_destroy(f);
}
END_TEST

/* Marks in the line are never given to another text; those that left it are, the oldest first. */
START_TEST(folds_run_out) {
    struct ui_folds *f = ui_folds_create();
    struct cw_buf line = {0}, out = {0}, none = {0};
    for (int i = 0; i < UI_MAX_FOLDS; i++) {
        char text[8];
        snprintf(text, sizeof text, "<%d>", i);
        ck_assert_uint_gt(fold(f, &line, NULL, text), 0);
    }
    ck_assert_uint_eq(fold(f, &line, NULL, "one too many"), 0);
    ui_folds_open(f, line.data, line.len, &out);
    ck_assert_ptr_nonnull(strstr(out.data, "<0><1><2>"));
    ck_assert_uint_eq(fold(f, &none, NULL, "another"), 1);
    cw_buf_free(&line);
    cw_buf_free(&out);
    cw_buf_free(&none);
    ui_folds_destroy(f);
}
END_TEST

START_TEST(folds_clean) {
    struct cw_buf out = {0};
    ui_fold_clean("a\r\nb\rc\nd\0e\r", 11, &out);
    ck_assert_str_eq(out.data, "a\nb\nc\nde\n");
    cw_buf_free(&out);
    ck_assert(!ui_fold_is_large("x\ny\n", 4));
    char lines[64] = "";
    for (int i = 0; i < 11; i++) {
        strcat(lines, "l\n");
    }
    ck_assert(ui_fold_is_large(lines, strlen(lines)));
    ck_assert(!ui_fold_is_large(lines, strlen(lines) - 2));
}
END_TEST

int main(void) {
    Suite *s = suite_create("ui panels");
    TCase *c = tcase_create("panels");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, line_edits, 0, sizeof edits / sizeof edits[0]);
    tcase_add_test(c, line_takes_pastes_and_old_text);
    tcase_add_test(c, line_scrolls_to_its_cursor);
    tcase_add_loop_test(c, palette_scores, 0, sizeof scores / sizeof scores[0]);
    tcase_add_test(c, palette_score_is_a_subsequence);
    tcase_add_test(c, palette_finds_and_moves);
    tcase_add_test(c, palette_draws_at_any_size);
    tcase_add_test(c, lens_in_full);
    tcase_add_test(c, lens_at_any_size);
    tcase_add_test(c, lens_texts);
    tcase_add_test(c, folds_open_and_label);
    tcase_add_test(c, folds_run_out);
    tcase_add_test(c, folds_clean);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
