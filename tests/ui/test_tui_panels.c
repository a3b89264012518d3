/* SPDX-License-Identifier: MIT
 *
 * Search, lens, palette, help, picking and attaching in the real program: what they look like at
 * four sizes (see golden.h), and what they do.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/ui/golden.h"

#define ESC "\033"

static struct tui t;

static void setup(void) {
    tui_init(&t);
}

static const int sizes[][2] = {{24, 80}, {12, 40}, {43, 132}, {5, 20}};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

static const char *const pieces[] = {"Blue, ",     "because ",      "the sky ", "is never ",
                                     "the same. ", "Green, ",       "because ", "of grass. ",
                                     "Blue ",      "again.\n",      "```c\n",   "puts(1);",
                                     "\n```\n",    "That ends it.", NULL};

static void rest(void) {
    while (pty_pump(&t.pty, 300)) {
    }
}

static void start_with_reply(void) {
    tui_model_pieces(&t, pieces);
    tui_start_idle(&t);
    pty_type(&t.pty, "show me blue\r");
    ck_assert(pty_wait_text(&t.pty, "That ends"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
}

/* ---- what they look like -------------------------------------------------------------------- */

static const struct {
    const char *name, *keys, *shows;
} panels[] = {
    {"search", ESC "ORblue", "/"},
    {"search-none", ESC "ORviolet", "none"},
    {"lens", ESC "OS" ESC "[C" ESC "[C", "raw"},
    {"palette", ESC "OQ", ">"},
    {"palette-find", ESC "OQpreset", "preset"},
    {"help", ESC "OP", "Help"},
    {"pick", ESC "[1;2D", "copies"},
};
enum { N_PANELS = sizeof panels / sizeof panels[0] };

START_TEST(panel_looks) {
    int panel = _i / N_SIZES, size = _i % N_SIZES;
    t.rows = sizes[size][0];
    t.cols = sizes[size][1];
    start_with_reply();
    pty_type(&t.pty, panels[panel].keys);
    if (t.cols > 20) {
        ck_assert(pty_wait_text(&t.pty, panels[panel].shows));
    }
    rest();
    golden_text(&t, panels[panel].name);
    pty_type(&t.pty, ESC);
    rest();
    tui_finish(&t);
}
END_TEST

/* ---- what they do --------------------------------------------------------------------------- */

START_TEST(search_walks) {
    start_with_reply();
    pty_type(&t.pty, ESC "ORgra");
    ck_assert(pty_wait_text(&t.pty, "1/1")); /* as it is typed */
    pty_type(&t.pty, "\177\177\177blue");
    ck_assert(pty_wait_text(&t.pty, "/3"));
    pty_type(&t.pty, ESC "OR");
    ck_assert(pty_wait_text(&t.pty, "/3"));
    /* from any of the three, three steps on lead around to it */
    rest();
    char *row = pty_row(&t.pty, pty_find(&t.pty, "search:"));
    pty_type(&t.pty, "\r" ESC "[B" ESC "OR");
    rest();
    char *again = pty_row(&t.pty, pty_find(&t.pty, "search:"));
    ck_assert_str_eq(row, again);
    pty_type(&t.pty, ESC "[A");
    rest();
    char *back = pty_row(&t.pty, pty_find(&t.pty, "search:"));
    ck_assert_str_ne(row, back);
    pty_type(&t.pty, ESC "[1;2R" ESC "OR" ESC "OR");
    rest();
    char *home = pty_row(&t.pty, pty_find(&t.pty, "search:"));
    ck_assert_str_eq(row, home);
    free(row);
    free(again);
    free(back);
    free(home);
    pty_type(&t.pty, ESC);
    ck_assert(pty_wait_no_text(&t.pty, "search:"));
    pty_type(&t.pty, "typed");
    ck_assert(pty_wait_text(&t.pty, " > typed")); /* the input line has the keys again */
    pty_type(&t.pty, "\003" ESC "OR");
    ck_assert(pty_wait_text(&t.pty, "search: blue")); /* the last one, to be typed over */
    pty_type(&t.pty, "g");
    ck_assert(pty_wait_text(&t.pty, "search: g "));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, "search:"));
    tui_finish(&t);
}
END_TEST

START_TEST(lens_walks_and_branches) {
    t.cols = 100;
    start_with_reply();
    pty_type(&t.pty, ESC "OS");
    ck_assert(pty_wait_text(&t.pty, "\"Blue, \""));
    ck_assert(pty_wait_text(&t.pty, "token 1 of "));
    ck_assert(pty_shows(&t.pty, "raw 100 %"));
    pty_type(&t.pty, ESC "[C" ESC "[C");
    ck_assert(pty_wait_text(&t.pty, "token 3 of "));
    ck_assert(pty_shows(&t.pty, "1* \"the sky \""));
    pty_type(&t.pty, ESC "[F");
    ck_assert(pty_wait_no_text(&t.pty, "token 3 of "));
    pty_type(&t.pty, ESC "[H" ESC "[D");
    ck_assert(pty_wait_text(&t.pty, "token 1 of "));
    pty_type(&t.pty, "1"); /* it stands there already */
    ck_assert(pty_wait_text(&t.pty, "stands there already"));
    pty_type(&t.pty, "9q");
    ck_assert(pty_wait_no_text(&t.pty, "lens:"));
    pty_type(&t.pty, ESC "OS" ESC "[C\t\r"); /* the second best in place of the second token */
    ck_assert(pty_wait_text(&t.pty, "branch 2/2"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "/undo\r"); /* brings the old text back */
    ck_assert(pty_wait_text(&t.pty, "branch 1/2"));
    ck_assert(pty_wait_text(&t.pty, "the sky is never"));
    tui_finish(&t);
}
END_TEST

START_TEST(palette_runs_and_fills) {
    start_with_reply();
    pty_type(&t.pty, ESC "OQcreative\r");
    ck_assert(pty_wait_text(&t.pty, "T 1.00"));
    pty_type(&t.pty, ESC "OQstats\r");
    ck_assert(pty_wait_text(&t.pty, "The last reply"));
    pty_type(&t.pty, ESC);
    ck_assert(pty_wait_no_text(&t.pty, "The last reply"));
    pty_type(&t.pty, ESC "OQset temp =\r"); /* what needs a value is put into the line */
    ck_assert(pty_wait_text(&t.pty, " > /set temp"));
    pty_type(&t.pty, "0.25\r");
    ck_assert(pty_wait_text(&t.pty, "T 0.25"));
    pty_type(&t.pty, ESC "OQset markdown off\r");
    ck_assert(pty_wait_text(&t.pty, "```c"));
    pty_type(&t.pty, ESC "OQtop-p-up\r"); /* an action of the keys */
    ck_assert(pty_wait_text(&t.pty, "top-p 0.91"));
    pty_type(&t.pty, ESC "OQzzzz\r");
    ck_assert(pty_wait_text(&t.pty, "nothing matches"));
    pty_type(&t.pty, ESC);
    ck_assert(pty_wait_no_text(&t.pty, "nothing matches"));
    tui_finish(&t);
}
END_TEST

/* OSC 52 carries what was written, without frame and margin. */
START_TEST(picks_and_copies) {
    start_with_reply();
    size_t before = t.pty.raw.len;
    pty_type(&t.pty, ESC "[1;2D\r");
    ck_assert(pty_wait_text(&t.pty, "copied the message"));
    ck_assert(pty_wait_raw(&t.pty, before, ESC "]52;c;Qmx1ZSwgYmVjYXVz")); /* "Blue, becaus" */
    before = t.pty.raw.len;
    pty_type(&t.pty, ESC "[1;2Dcy");
    ck_assert(pty_wait_text(&t.pty, "copied the code block"));
    ck_assert(pty_wait_raw(&t.pty, before, ESC "]52;c;cHV0cygxKTs")); /* "puts(1);" */
    before = t.pty.raw.len;
    pty_type(&t.pty, ESC "[2;3~" ESC "[A\r");                              /* the message before */
    ck_assert(pty_wait_raw(&t.pty, before, ESC "]52;c;c2hvdyBtZSBibHVl")); /* "show me blue" */
    pty_type(&t.pty, ESC "[2;3~");
    ck_assert(pty_wait_text(&t.pty, "pick:"));
    pty_type(&t.pty, ESC);
    ck_assert(pty_wait_no_text(&t.pty, "pick:"));
    tui_finish(&t);
}
END_TEST

/* ---- attaching, pasting --------------------------------------------------------------------- */

static void write_file(const char *name, const char *text, size_t n) {
    char path[160];
    snprintf(path, sizeof path, "%s/%s", t.dir, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, n, f), n);
    fclose(f);
}

START_TEST(files_are_attached_or_refused) {
    tui_model_text(&t, "fine");
    t.cols = 120;
    write_file("a.txt", "one\ntwo\n", 8);
    write_file("b.txt", "three\n", 6);
    write_file("bin.dat", "\0\1\2binary", 9);
    write_file("latin.txt", "caf\xe9", 4);
    write_file("empty.txt", "", 0);
    char *large = cw_calloc(1, 5 << 20);
    memset(large, 'x', 5 << 20);
    write_file("large.dat", large, 5 << 20);
    write_file("tokens.dat", large, 9000);
    free(large);
    tui_start_idle(&t);
    static const char *const refused[][2] = {
        {"bin.dat", "bin.dat is not attached: it is binary"},
        {"latin.txt", "it is no UTF-8 text"},
        {"empty.txt", "it is empty"},
        {"large.dat", "too long: 5.2 MB, at most 4 MiB"},
        {"/dev/null", "it is no regular file"},
        {"none.txt", "No such file"},
        {"", "which file?"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "/read %s\r", refused[i][0]);
        pty_type(&t.pty, line);
        ck_assert(pty_wait_text(&t.pty, refused[i][1]));
    }
    pty_type(&t.pty, "/read a.txt\r");
    ck_assert(pty_wait_text(&t.pty, " > [a.txt: 3 lines]"));
    ck_assert(pty_wait_text(&t.pty, "the message is 15 tokens now, of 4096")); /* name and text */
    ck_assert(pty_wait_text(&t.pty, "15 tokens"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, "a.txt"));
    pty_type(&t.pty, "/read tokens.dat\r"); /* a token a letter: more than the context */
    ck_assert(pty_wait_text(&t.pty, "too long: 9013 tokens, the context holds 4096"));
    ck_assert(pty_wait_no_text(&t.pty, "[tokens.dat"));
    pty_type(&t.pty, "/glob *.txt\r");
    ck_assert(pty_wait_text(&t.pty, "[a.txt: 3 lines][b.txt: 2 lines]"));
    ck_assert(pty_wait_text(&t.pty, "latin.txt is not attached: it is no UTF-8 text"));
    ck_assert(pty_wait_text(&t.pty, "the message is 28 tokens now"));
    pty_type(&t.pty, " what is this?\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    ck_assert(pty_shows(&t.pty, "   three")); /* whole, as it went to the model */
    ck_assert(pty_shows(&t.pty, "   b.txt:"));
    ck_assert(pty_shows(&t.pty, " what is this?"));
    pty_type(&t.pty, "/glob *.none\r");
    ck_assert(pty_wait_text(&t.pty, "no file matches"));
    tui_finish(&t);
}
END_TEST

/* A large paste is one folded piece, whole when it is sent, and never a command. */
START_TEST(large_paste_is_folded) {
    tui_model_text(&t, "fine");
    t.rows = 40;
    tui_start_idle(&t);
    struct cw_buf paste = {0};
    cw_buf_puts(&paste, ESC "[200~/exit\r");
    for (int i = 0; i < 20; i++) {
        cw_buf_printf(&paste, "line%02d\r", i);
    }
    cw_buf_puts(&paste, ESC "[201~");
    pty_send(&t.pty, paste.data, paste.len);
    ck_assert(pty_wait_text(&t.pty, " > [pasted 21 lines]"));
    pty_type(&t.pty, "x\177"); /* beside it, not in it */
    ck_assert(pty_wait_text(&t.pty, " > [pasted 21 lines]"));
    pty_type(&t.pty, "\177"); /* one character */
    ck_assert(pty_wait_no_text(&t.pty, "[pasted"));
    pty_type(&t.pty, "\037"); /* undo */
    ck_assert(pty_wait_text(&t.pty, " > [pasted 21 lines]"));
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    ck_assert(pty_shows(&t.pty, "   /exit"));
    ck_assert(pty_shows(&t.pty, "   line19"));
    cw_buf_free(&paste);
    tui_finish(&t);
}
END_TEST

/* ---- telling -------------------------------------------------------------------------------- */

START_TEST(bell_and_title) {
    static const char *const args[] = {"--bell", "--bell-after", "0", "--title", NULL};
    tui_model_text(&t, "fine");
    memcpy(t.more_args, args, sizeof args);
    tui_start_idle(&t);
    ck_assert(pty_wait_raw(&t.pty, 0, ESC "]2;markov"));
    size_t before = t.pty.raw.len;
    pty_type(&t.pty, "hello there\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    ck_assert(pty_wait_raw(&t.pty, before, ESC "]9; the reply is there"));
    ck_assert(pty_wait_raw(&t.pty, before, ESC "]2;markov: hello there"));
    before = t.pty.raw.len;
    pty_type(&t.pty, "/set bell off\r");
    ck_assert(pty_wait_text(&t.pty, "bell off ("));
    pty_type(&t.pty, "again\r");
    ck_assert(pty_wait_text(&t.pty, "   again"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    rest();
    ck_assert(!pty_raw_has(&t.pty, before, ESC "]9;"));
    tui_finish(&t);
}
END_TEST

START_TEST(first_hints_go_away) {
    tui_model_text(&t, "fine");
    tui_start_idle(&t);
    ck_assert(pty_wait_text(&t.pty, "all keys and commands"));
    pty_type(&t.pty, "hello\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    ck_assert(!pty_shows(&t.pty, "all keys and commands"));
    pty_type(&t.pty, "/new\r");
    ck_assert(pty_wait_no_text(&t.pty, "   fine"));
    rest();
    ck_assert(!pty_shows(&t.pty, "all keys and commands")); /* something was written before */
    tui_finish(&t);
}
END_TEST

START_TEST(vi_mode_is_shown) {
    tui_model_text(&t, "fine");
    write_file(".inputrc", "set editing-mode vi\n", 20);
    t.cols = 120;
    tui_start_idle(&t);
    ck_assert(pty_wait_text(&t.pty, "vi insert"));
    pty_type(&t.pty, "abc" ESC);
    ck_assert(pty_wait_text(&t.pty, "vi command"));
    pty_type(&t.pty, "x");
    ck_assert(pty_wait_text(&t.pty, " > ab"));
    ck_assert(pty_wait_no_text(&t.pty, " > abc"));
    pty_type(&t.pty, "\003");
    tui_finish(&t);
}
END_TEST

int main(void) {
    Suite *s = suite_create("tui panels");
    TCase *c = tcase_create("panels");
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_loop_test(c, panel_looks, 0, N_PANELS * N_SIZES);
    tcase_add_test(c, search_walks);
    tcase_add_test(c, lens_walks_and_branches);
    tcase_add_test(c, palette_runs_and_fills);
    tcase_add_test(c, picks_and_copies);
    tcase_add_test(c, files_are_attached_or_refused);
    tcase_add_test(c, large_paste_is_folded);
    tcase_add_test(c, bell_and_title);
    tcase_add_test(c, first_hints_go_away);
    tcase_add_test(c, vi_mode_is_shown);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
