/* SPDX-License-Identifier: MIT
 *
 * Writing a message in the real program: attached files, folded pastes and their way through the
 * history, vi mode, and evaluation while a message is being written.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ui/tui.h"

#define ESC  "\033"
#define UP   ESC "[A"
#define DOWN ESC "[B"

static struct tui t;

static void setup(void) {
    tui_init(&t);
}

/* ---- attaching, pasting --------------------------------------------------------------------- */

START_TEST(files_are_attached_or_refused) {
    tui_model_text(&t, "fine");
    t.cols = 120;
    tui_write(&t, "a.txt", "one\ntwo\n", 8);
    tui_write(&t, "b.txt", "three\n", 6);
    tui_write(&t, "bin.dat", "\0\1\2binary", 9);
    tui_write(&t, "latin.txt", "caf\xe9", 4);
    tui_write(&t, "empty.txt", "", 0);
    char *large = cw_calloc(1, 5 << 20);
    memset(large, 'x', 5 << 20);
    tui_write(&t, "large.dat", large, 5 << 20);
    tui_write(&t, "tokens.dat", large, 9000);
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
    ck_assert(pty_wait_text(&t.pty, "   three")); /* whole, as it went to the model */
    ck_assert(pty_wait_text(&t.pty, "   b.txt:"));
    ck_assert(pty_wait_text(&t.pty, " what is this?"));
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
    ck_assert(pty_wait_text(&t.pty, "   /exit"));
    ck_assert(pty_wait_text(&t.pty, "   line19"));
    cw_buf_free(&paste);
    tui_finish(&t);
}
END_TEST

/* 10,000 letters arrive whole, as one message: in one write, in two that are cut anywhere, also in
 * the markers; and so they stand in the conversation. */
START_TEST(paste_of_ten_thousand_letters) {
    enum { LETTERS = 10000 };
    static const char *const args[] = {"-c", "20000", "--prefill-typing", "off"};
    static const size_t cuts[] = {0, 3, 5000, LETTERS + 8};
    struct cw_buf text = {0}, paste = {0};
    for (int i = 0; i < LETTERS / 10; i++) {
        cw_buf_printf(&text, "%08d, ", i);
    }
    cw_buf_printf(&paste, ESC "[200~%s" ESC "[201~", text.data);
    tui_model_words(&t, 10, false);
    memcpy(t.more_args, args, sizeof args);
    tui_start_idle(&t);
    size_t cut = cuts[_i];
    pty_send(&t.pty, paste.data, cut);
    while (cut > 3 && pty_pump(&t.pty, 100)) { /* what it makes of the first part */
    }
    pty_send(&t.pty, paste.data + cut, paste.len - cut);
    ck_assert(pty_wait_text(&t.pty, " > [pasted 10000 bytes]"));
    ck_assert(!pty_shows(&t.pty, " you")); /* nothing was sent yet */
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "w0009."));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    size_t before = t.pty.raw.len;
    tui_say(&t, "/copy 1");
    ck_assert(pty_wait_text(&t.pty, "copied message 1: 10000 bytes"));
    char *got = tui_copied(&t, before);
    ck_assert_str_eq(got, text.data);
    free(got);
    cw_buf_free(&text);
    cw_buf_free(&paste);
    tui_finish(&t);
}
END_TEST

/* Brought back from the history it is folded again; the entry itself stays as it was. */
START_TEST(recalled_paste_is_folded) {
    tui_model_text(&t, "fine");
    t.rows = 40;
    tui_start_idle(&t);
    struct cw_buf paste = {0};
    cw_buf_puts(&paste, "see " ESC "[200~");
    for (int i = 0; i < 30; i++) {
        cw_buf_printf(&paste, "line%02d\r", i);
    }
    cw_buf_puts(&paste, ESC "[201~\r");
    tui_say(&t, "before");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_send(&t.pty, paste.data, paste.len);
    ck_assert(pty_wait_text(&t.pty, "   line29"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/new");
    ck_assert(pty_wait_no_text(&t.pty, "line29"));
    pty_type(&t.pty, UP UP); /* over the command */
    ck_assert(pty_wait_text(&t.pty, " > [pasted 30 lines]"));
    pty_type(&t.pty, UP);
    ck_assert(pty_wait_text(&t.pty, " > before"));
    pty_type(&t.pty, DOWN);
    ck_assert(pty_wait_text(&t.pty, " > [pasted 30 lines]"));
    pty_type(&t.pty, " and more\r");
    ck_assert(pty_wait_text(&t.pty, "   line29"));
    ck_assert(pty_wait_text(&t.pty, "   see line00"));
    ck_assert(pty_wait_text(&t.pty, "    and more"));
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "\022line1"); /* Ctrl+R; what is found is folded when the search ends */
    ck_assert(pty_wait_text(&t.pty, "`line1'"));
    pty_type(&t.pty, "\005");
    ck_assert(pty_wait_text(&t.pty, " > [pasted 3"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, "[pasted"));
    tui_leave(&t);
    pty_end(&t.pty);
    tui_start_idle(&t); /* the file holds the text */
    pty_type(&t.pty, UP UP);
    ck_assert(pty_wait_text(&t.pty, " > [pasted 31 lines]"));
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "    and more"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    cw_buf_free(&paste);
    tui_finish(&t);
}
END_TEST

/* Tokens of the last prompt that were evaluated after Enter: "12 reused +345" in the status bar. */
static size_t evaluated(void) {
    ck_assert(pty_wait_text(&t.pty, " reused +"));
    int at = pty_find(&t.pty, " reused +");
    ck_assert_int_ge(at, 0);
    char *row = pty_row(&t.pty, at);
    size_t n = strtoul(strstr(row, " reused +") + strlen(" reused +"), NULL, 10);
    free(row);
    return n;
}

static size_t evaluated_for_message(void) {
    for (int i = 0; i < 30; i++) {
        pty_type(&t.pty, "some word ");
    }
    ck_assert(pty_wait_text(&t.pty, " 300 tokens"));
    tui_rest(&t);
    pty_type(&t.pty, "end\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    size_t n = evaluated();
    tui_say(&t, "/new");
    ck_assert(pty_wait_no_text(&t.pty, "   fine"));
    return n;
}

/* What is being written is evaluated already, and only then. Nothing shows when that is done, so it
 * may take several messages until one is seen that was. */
START_TEST(prefills_while_typing) {
    static const char *const private[] = {"--cache-disk", "0", "--private", NULL};
    tui_model_text(&t, "fine");
    t.cols = 160;
    memcpy(t.more_args, private, sizeof private);
    tui_start_idle(&t);
    tui_say(&t, "/set prefill-typing off");
    ck_assert(pty_wait_text(&t.pty, "prefill-typing off (live"));
    ck_assert_uint_gt(evaluated_for_message(), 300);
    tui_say(&t, "/set prefill-typing on");
    ck_assert(pty_wait_text(&t.pty, "prefill-typing on (live"));
    size_t n = SIZE_MAX;
    for (int i = 0; i < 20 && n > 60; i++) {
        n = evaluated_for_message();
    }
    ck_assert_uint_le(n, 60);
    tui_finish(&t);
}
END_TEST

START_TEST(vi_mode_is_shown) {
    tui_model_text(&t, "fine");
    tui_write_text(&t, ".inputrc", "set editing-mode vi\n");
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
    Suite *s = suite_create("tui input");
    TCase *c = tcase_create("input");
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, files_are_attached_or_refused);
    tcase_add_test(c, large_paste_is_folded);
    tcase_add_loop_test(c, paste_of_ten_thousand_letters, 0, 4);
    tcase_add_test(c, recalled_paste_is_folded);
    tcase_add_test(c, prefills_while_typing);
    tcase_add_test(c, vi_mode_is_shown);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
