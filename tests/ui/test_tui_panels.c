/* SPDX-License-Identifier: MIT
 *
 * Search, lens, palette, help and picking in the real program: what they look like at four sizes
 * (see golden.h), and what they do; and what is told beside the screen: clipboard, bell, title.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/clock.h"
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
    tui_rest(&t);
    golden_text(&t, panels[panel].name);
    pty_type(&t.pty, ESC);
    tui_rest(&t);
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
    tui_rest(&t);
    char *row = pty_row(&t.pty, pty_find(&t.pty, "search:"));
    pty_type(&t.pty, "\r" ESC "[B" ESC "OR");
    tui_rest(&t);
    char *again = pty_row(&t.pty, pty_find(&t.pty, "search:"));
    ck_assert_str_eq(row, again);
    pty_type(&t.pty, ESC "[A");
    tui_rest(&t);
    char *back = pty_row(&t.pty, pty_find(&t.pty, "search:"));
    ck_assert_str_ne(row, back);
    pty_type(&t.pty, ESC "[1;2R" ESC "OR" ESC "OR");
    tui_rest(&t);
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
    ck_assert(pty_wait_text(&t.pty, "raw 100 %"));
    pty_type(&t.pty, ESC "[C" ESC "[C");
    ck_assert(pty_wait_text(&t.pty, "token 3 of "));
    ck_assert(pty_wait_text(&t.pty, "1* \"the sky \""));
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

/* A long line comes to the clipboard as it was written, whole; also when a multiplexer stands in
 * between, which passes on what is wrapped for it. */
START_TEST(copies_through_multiplexers) {
    static const struct {
        const char *env, *term, *opens, *closes;
    } ways[] = {
        {NULL, NULL, ESC "]52;c;", "\a"},
        {"TMUX=/tmp/tmux-0/default,1,0", "tmux-256color", ESC "Ptmux;" ESC ESC "]52;c;",
         "\a" ESC "\\"},
        {"STY=1.pts-0.here", "screen-256color", ESC "P" ESC "]52;c;", ESC "\\"},
    };
    char line[301] = "";
    for (int i = 0; i < 30; i++) {
        snprintf(line + 10 * i, 11, "word %03d, ", i);
    }
    tui_model_text(&t, "fine");
    t.more_env[0] = ways[_i].env;
    t.term = ways[_i].term;
    tui_start_idle(&t);
    tui_say(&t, line);
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    size_t before = t.pty.raw.len;
    tui_say(&t, "/copy 1");
    ck_assert(pty_wait_text(&t.pty, "copied message 1: 300 bytes"));
    ck_assert(pty_raw_has(&t.pty, before, ways[_i].opens));
    ck_assert(pty_raw_has(&t.pty, before, ways[_i].closes));
    if (_i < 2) { /* in one piece: tmux takes a plain one as well */
        char *text = tui_copied(&t, before);
        ck_assert_str_eq(text, line);
        free(text);
    }
    before = t.pty.raw.len;
    tui_say(&t, "/copy");
    ck_assert(pty_wait_text(&t.pty, "copied the last reply: 4 bytes"));
    char *text = tui_copied(&t, before);
    ck_assert_str_eq(text, "fine");
    free(text);
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
    tui_rest(&t);
    ck_assert(!pty_raw_has(&t.pty, before, ESC "]9;"));
    tui_finish(&t);
}
END_TEST

/* Of itself the bell rings for replies of more than ten seconds: one that was held up rings, one
 * that came at once does not. */
START_TEST(bell_rings_after_ten_seconds) {
    tui_model_words(&t, 2500, true);
    t.more_args[0] = "-n";
    t.more_args[1] = "40";
    tui_start_idle(&t);
    tui_say(&t, "/set bell on");
    ck_assert(pty_wait_text(&t.pty, "bell on ("));
    size_t before = t.pty.raw.len;
    tui_say(&t, "quick");
    ck_assert(pty_wait_text(&t.pty, "w0039."));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_rest(&t);
    bool quick = pty_raw_has(&t.pty, before, "\a");
    tui_say(&t, "/set predict 400"); /* cannot be over before it is held */
    ck_assert(pty_wait_text(&t.pty, "predict 400 ("));
    pty_type(&t.pty, "slow\r" ESC "[20~"); /* and a pause at once */
    ck_assert(pty_wait_text(&t.pty, "paused"));
    double until = cw_now() + 10.5;
    while (cw_now() < until) {
        pty_pump(&t.pty, 200);
    }
    before = t.pty.raw.len;
    pty_type(&t.pty, ESC "[20~");
    ck_assert(pty_wait_raw(&t.pty, before, "\a" ESC "]9; the reply is there, after 1"));
    ck_assert_msg(!quick || cw_now() > until + 60, "the bell rang for a quick reply");
    tui_finish(&t);
}
END_TEST

START_TEST(first_hints_go_away) {
    tui_model_text(&t, "fine");
    tui_start_idle(&t);
    ck_assert(pty_wait_text(&t.pty, "all keys and commands"));
    pty_type(&t.pty, "hello\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    ck_assert(pty_wait_text(&t.pty, "idle")); /* /new waits for no reply */
    ck_assert(!pty_shows(&t.pty, "all keys and commands"));
    pty_type(&t.pty, "/new\r");
    ck_assert(pty_wait_no_text(&t.pty, "   fine"));
    tui_rest(&t);
    ck_assert(!pty_shows(&t.pty, "all keys and commands")); /* something was written before */
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
    tcase_add_loop_test(c, copies_through_multiplexers, 0, 3);
    tcase_add_test(c, bell_and_title);
    tcase_add_test(c, bell_rings_after_ten_seconds);
    tcase_add_test(c, first_hints_go_away);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
