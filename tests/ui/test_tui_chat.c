/* SPDX-License-Identifier: MIT
 *
 * Talking: the real program with models that say a known text, judged by the screen of a terminal
 * emulator.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/ui/tui.h"

#define ESC "\033"

/* Nothing of what a reply says before it is stopped leaves a screen of so many. */
enum { ALL_ROWS = 400 };

static struct tui t;

static void setup(void) {
    tui_init(&t);
}

/* ---- a chat --------------------------------------------------------------------------------- */

START_TEST(answers) {
    tui_model_text(&t, "The sky is blue.");
    t.cols = 120;
    tui_start_idle(&t);
    ck_assert(pty_wait_text(&t.pty, "markov"));
    pty_type(&t.pty, "why?\r");
    ck_assert(pty_wait_text(&t.pty, "The sky is blue."));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(pty_wait_text(&t.pty, " you"));
    ck_assert(pty_wait_text(&t.pty, "   why?"));
    ck_assert(pty_wait_text(&t.pty, "TTFT"));
    ck_assert(pty_wait_text(&t.pty, "/4096"));
    pty_type(&t.pty, "again\r");
    ck_assert(pty_wait_text(&t.pty, "   again"));
    ck_assert(pty_wait_text(&t.pty, "reused"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert_int_lt(pty_find(&t.pty, "   why?"), pty_find(&t.pty, "   again"));
    tui_finish(&t);
}
END_TEST

/* Characters cut in two by tokens, wide ones, joined ones: whole on the screen. */
START_TEST(shows_any_script) {
    static const char *const pieces[] = {"pi\xc3",        "\xb1",     "a \xe4", "\xb8\xad",
                                         "\xe6\x96\x87 ", "\xf0\x9f", "\x98",   "\x80 e",
                                         "\xcc\x81 ",     "end",      NULL};
    tui_model_pieces(&t, pieces);
    tui_start_idle(&t);
    pty_type(&t.pty, "\xe4\xbd\xa0\xe5\xa5\xbd\r");
    ck_assert(pty_wait_text(&t.pty, "pi\xc3\xb1"
                                    "a \xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x98\x80 e\xcc\x81 end"));
    ck_assert(pty_wait_text(&t.pty, "   \xe4\xbd\xa0\xe5\xa5\xbd"));
    tui_finish(&t);
}
END_TEST

/* Joined emoji: the line that holds them may be drawn as the terminal likes, what stands right of
 * them and the other lines are where they belong. */
START_TEST(joined_emoji_stay_in_their_line) {
    tui_model_text(&t,
                   "x \xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7 y "
                   "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa z\nnext line");
    tui_start_idle(&t);
    pty_type(&t.pty, "go\r");
    ck_assert(pty_wait_text(&t.pty, "   next line"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(pty_wait_raw(&t.pty, 0, "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d"));
    int row = pty_find(&t.pty, "next line") - 1;
    char *line = pty_row(&t.pty, row);
    /* 3 for the margin, "x ", six columns, " y ": z stands behind two more and a blank */
    ck_assert_ptr_nonnull(strstr(line, " y "));
    ck_assert_ptr_nonnull(strstr(line, " z"));
    free(line);

    tui_finish(&t);
}
END_TEST

/* Faults 9 and 10: what a model says is text, whatever it says. */
START_TEST(hostile_text_is_text) {
    static const char text[] = ESC "[?1000h" ESC "[?1049l" ESC "]0;owned\007\xe2\x80\xae\xc2\x9b"
                                   "31m 100%n %s %s %p [/] [bold {0}";
    tui_model_text(&t, text);
    tui_start_idle(&t);
    pty_type(&t.pty, "100%n %s %s %p [/] [bold {0}\r");
    ck_assert(pty_wait_text(&t.pty, "^[[?1000h^[[?1049l^[]0;owned^G\\u{202e}\\u{9b}31m 100%n"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(pty_wait_text(&t.pty, "   100%n %s %s %p [/] [bold {0}"));
    ck_assert(!pty_raw_has(&t.pty, 0, ESC "[?1000h"));
    ck_assert(!pty_raw_has(&t.pty, 0, ESC "]0;"));
    ck_assert(!pty_raw_has(&t.pty, 0, "\xe2\x80\xae"));
    ck_assert(!pty_raw_has(&t.pty, 0, "\xc2\x9b"));
    ck_assert(!pty_raw_has(&t.pty, 0, ESC "[?1049l")); /* not before leaving */
    tui_finish(&t);
}
END_TEST

START_TEST(hostile_name_is_text) {
    struct markov m;
    markov_init(&m);
    m.name = "%s%n" ESC "[?1000h\xe2\x80\xae";
    markov_text(&m, "ok");
    snprintf(t.model, sizeof t.model, "%s/m" ESC "[?1000h%%n.gguf", t.dir);
    markov_save(&m, t.model);
    markov_free(&m);
    tui_start_idle(&t);
    ck_assert(pty_wait_text(&t.pty, "%s%n"));
    pty_type(&t.pty, "/show info\r");
    ck_assert(pty_wait_text(&t.pty, "architecture"));
    ck_assert(pty_wait_text(&t.pty, "m^[[?1000h%n.gguf"));
    pty_type(&t.pty, "q");
    ck_assert(pty_wait_no_text(&t.pty, "architecture"));
    ck_assert(!pty_raw_has(&t.pty, 0, ESC "[?1000h"));
    tui_finish(&t);
}
END_TEST

/* ---- live settings -------------------------------------------------------------------------- */

START_TEST(live_keys_in_mid_reply) {
    tui_model_words(&t, 2500, true);
    t.rows = ALL_ROWS;
    tui_start_idle(&t);
    pty_type(&t.pty, "go\r");
    ck_assert(pty_wait_raw(&t.pty, 0, "w0000"));
    pty_type(&t.pty, ESC "[1;3B"); /* Alt+Down */
    ck_assert(pty_wait_text(&t.pty, "T 0.75*"));
    ck_assert(pty_wait_text(&t.pty, "T 0.80 -> 0.75")); /* where it took hold */
    pty_type(&t.pty, ESC "[18~");                       /* F7 */
    ck_assert(pty_wait_text(&t.pty, "top-p 0.94*"));
    ck_assert(pty_wait_text(&t.pty, "top-p 0.95 -> 0.94"));
    pty_type(&t.pty, "/stop\r");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "/stats\r");
    ck_assert(pty_wait_text(&t.pty, "T 0.80 -> 0.75 at token "));
    ck_assert(pty_wait_text(&t.pty, "top-p 0.95 -> 0.94 at token "));
    /* at the token that came next, not at the first, and in order */
    unsigned long temp = 0, top_p = 0;
    char *row = pty_row(&t.pty, pty_find(&t.pty, "T 0.80 -> 0.75 at token "));
    ck_assert_int_eq(sscanf(strstr(row, "token "), "token %lu", &temp), 1);
    free(row);
    row = pty_row(&t.pty, pty_find(&t.pty, "top-p 0.95 -> 0.94 at token "));
    ck_assert_int_eq(sscanf(strstr(row, "token "), "token %lu", &top_p), 1);
    free(row);
    ck_assert_uint_ge(temp, 1);
    ck_assert_uint_gt(top_p, temp);
    pty_type(&t.pty, "q");
    ck_assert(pty_wait_no_text(&t.pty, "at token"));
    pty_type(&t.pty, "/show temp\r");
    ck_assert(pty_wait_text(&t.pty, "temp 0.75 (live"));
    tui_finish(&t);
}
END_TEST

START_TEST(live_keys_idle) {
    tui_model_text(&t, "ok");
    tui_start_idle(&t);
    pty_type(&t.pty, ESC "[15~" ESC "[15~"); /* F5 twice */
    ck_assert(pty_wait_text(&t.pty, "T 0.70"));
    pty_type(&t.pty, ESC "[17~"); /* F6 */
    ck_assert(pty_wait_text(&t.pty, "T 0.75"));
    pty_type(&t.pty, ESC "[5;3~"); /* Alt+PgUp */
    ck_assert(pty_wait_text(&t.pty, "top-p 0.96"));
    for (int i = 0; i < 10; i++) {
        pty_type(&t.pty, ESC "[19~"); /* F8: held at 1 */
    }
    ck_assert(pty_wait_text(&t.pty, "top-p 1.00"));
    pty_type(&t.pty, "/set temp 0.33\r");
    ck_assert(pty_wait_text(&t.pty, "T 0.33"));
    pty_type(&t.pty, ESC "[1;3A"); /* to the next point of the grid */
    ck_assert(pty_wait_text(&t.pty, "T 0.35"));
    pty_type(&t.pty, "/set temp nonsense\r");
    ck_assert(pty_wait_text(&t.pty, "temp"));
    pty_type(&t.pty, "/set temp=0\r");
    ck_assert(pty_wait_text(&t.pty, "T 0.00"));
    pty_type(&t.pty, ESC "[15~");
    pty_type(&t.pty, "/show temp\r");
    ck_assert(pty_wait_text(&t.pty, "temp 0 ("));
    tui_finish(&t);
}
END_TEST

/* The template writes the reply without its blanks: history is tokenised anew, and it is said. */
START_TEST(tells_what_is_tokenised_anew) {
    static const char *const args[] = {
        "--chat-template",
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] | trim + "
        "'<|im_end|>' + '\n' }}{% endfor %}{% if add_generation_prompt %}"
        "{{ '<|im_start|>assistant\n' }}{% endif %}"};
    tui_model_text(&t, "  spaced out  ");
    memcpy(t.more_args, args, sizeof args);
    t.cols = 150;
    tui_start_idle(&t);
    pty_type(&t.pty, "one\r");
    ck_assert(pty_wait_text(&t.pty, "spaced out"));
    ck_assert(pty_wait_text(&t.pty, "0 reused"));
    ck_assert(!pty_shows(&t.pty, "anew from"));
    pty_type(&t.pty, "two\r");
    ck_assert(pty_wait_text(&t.pty, "anew from "));
    tui_finish(&t);
}
END_TEST

/* ---- stopping ------------------------------------------------------------------------------- */

START_TEST(stops_and_goes_on) {
    static const char *const keys[] = {"\003", ESC, "/stop\r"};
    tui_model_words(&t, 2500, true);
    t.rows = ALL_ROWS;
    tui_start_idle(&t);
    pty_type(&t.pty, "go\r");
    ck_assert(pty_wait_raw(&t.pty, 0, "w0000"));
    pty_type(&t.pty, keys[_i]);
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(pty_wait_text(&t.pty, "stopped"));
    pty_type(&t.pty, "more\r"); /* the next message works */
    ck_assert(pty_wait_text(&t.pty, "   more"));
    ck_assert(pty_wait_text(&t.pty, "answering"));
    pty_type(&t.pty, "/stats\r"); /* meanwhile: those of the reply before */
    ck_assert(pty_wait_text(&t.pty, "ended                you stopped it"));
    pty_type(&t.pty, "q");
    ck_assert(pty_wait_no_text(&t.pty, "The last reply"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_finish(&t);
}
END_TEST

START_TEST(signal_is_like_ctrl_c) {
    tui_model_words(&t, 2500, true);
    t.rows = ALL_ROWS;
    tui_start(&t);
    ck_assert(pty_wait_text(&t.pty, " >"));
    pty_signal(&t.pty, SIGINT); /* perhaps while loading: the program stays */
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "go\r");
    ck_assert(pty_wait_raw(&t.pty, 0, "w0000"));
    pty_signal(&t.pty, SIGINT);
    pty_signal(&t.pty, SIGINT);
    ck_assert(pty_wait_text(&t.pty, "stopped"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "some text");
    ck_assert(pty_wait_text(&t.pty, "some text"));
    pty_signal(&t.pty, SIGINT);
    ck_assert(pty_wait_no_text(&t.pty, "some text"));
    pty_signal(&t.pty, SIGINT);
    ck_assert(pty_wait_text(&t.pty, "/exit leaves"));
    tui_finish(&t);
}
END_TEST

/* Stopped before the first token: the question comes back, the conversation is as before. */
START_TEST(stopped_while_reading) {
    /* two tokens at once: reading takes seconds */
    static const char *const large[] = {"-c", "64000", "--prefill-typing", "off", "--chunk",
                                        "2",  NULL};
    tui_model_words(&t, 2500, false);
    memcpy(t.more_args, large, sizeof large);
    tui_start_idle(&t);
    struct cw_buf paste = {0};
    cw_buf_puts(&paste, ESC "[200~");
    for (int i = 0; i < 7000; i++) {
        cw_buf_printf(&paste, "long%03d ", i % 300); /* 56,000 tokens */
    }
    cw_buf_puts(&paste, ESC "[201~");
    pty_send(&t.pty, paste.data, paste.len);
    ck_assert(pty_wait_text(&t.pty, " > [pasted 56000 bytes]")); /* folded, it is large */
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "reading "));
    ck_assert(pty_wait_text(&t.pty, " left")); /* how long it will take */
    ck_assert(pty_wait_text(&t.pty, "· long000"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(pty_wait_no_text(&t.pty, "· long000")); /* no trace of it in the conversation */
    ck_assert(pty_wait_text(&t.pty, " > [pasted 56000 bytes]")); /* in the input line again */
    pty_type(&t.pty, "\003");                                    /* cleared */
    ck_assert(pty_wait_no_text(&t.pty, "[pasted"));
    pty_type(&t.pty, "short\r");
    ck_assert(pty_wait_raw(&t.pty, 0, "w0000"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    cw_buf_free(&paste);
    tui_finish(&t);
}
END_TEST

START_TEST(enter_during_a_reply_waits) {
    tui_model_words(&t, 2500, false);
    tui_start_idle(&t);
    pty_type(&t.pty, "first\r");
    ck_assert(pty_wait_raw(&t.pty, 0, "w0000"));
    pty_type(&t.pty, "second\r");
    ck_assert(pty_wait_text(&t.pty, "queued: 1 message, sent when the reply ends"));
    pty_type(&t.pty, "third");
    ck_assert(pty_wait_text(&t.pty, " > third")); /* the line is usable */
    pty_type(&t.pty, "\003"); /* stops the reply; the second question goes off */
    ck_assert(pty_wait_text(&t.pty, "   second"));
    ck_assert(pty_wait_no_text(&t.pty, "queued"));
    ck_assert(pty_wait_text(&t.pty, " > third"));
    ck_assert(pty_wait_text(&t.pty, "answering"));
    pty_type(&t.pty, "\003\003");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, " > third"));
    tui_finish(&t);
}
END_TEST

START_TEST(enter_while_loading_waits) {
    tui_model_words(&t, 400, false);
    tui_start(&t);
    pty_type(&t.pty, "early\r");
    ck_assert(pty_wait_text(&t.pty, "· early"));
    ck_assert(pty_wait_text(&t.pty, "w0399."));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_finish(&t);
}
END_TEST

/* ---- scrolling ------------------------------------------------------------------------------ */

START_TEST(scrolls) {
    tui_model_words(&t, 2500, false);
    tui_start_idle(&t);
    pty_type(&t.pty, "go\r");
    ck_assert(pty_wait_raw(&t.pty, 0, "w0000")); /* the start is out of sight */
    ck_assert(pty_wait_no_text(&t.pty, "   go"));
    pty_type(&t.pty, ESC "[1;5H"); /* Ctrl+Home */
    ck_assert(pty_wait_text(&t.pty, "   go"));
    ck_assert(pty_wait_text(&t.pty, "new line")); /* and more come */
    ck_assert(pty_shows(&t.pty, "   go"));        /* the view stays */
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(pty_shows(&t.pty, "   go"));
    pty_type(&t.pty, ESC "[6~"); /* PgDn */
    ck_assert(pty_wait_no_text(&t.pty, "   go"));
    pty_type(&t.pty, ESC "[1;5F"); /* Ctrl+End */
    ck_assert(pty_wait_text(&t.pty, "w2499."));
    ck_assert(pty_wait_no_text(&t.pty, "new line")); /* a redraw arrives in parts */
    pty_type(&t.pty, ESC "[5~");
    ck_assert(pty_wait_no_text(&t.pty, "w2499."));
    pty_type(&t.pty, "again\r"); /* a new message goes to the end */
    ck_assert(pty_wait_text(&t.pty, "   again"));
    ck_assert(pty_wait_text(&t.pty, "answering")); /* stopped before, the message comes back */
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_finish(&t);
}
END_TEST

/* ---- several lines -------------------------------------------------------------------------- */

START_TEST(lines_by_hand) {
    tui_model_text(&t, "ok");
    tui_start_idle(&t);
    pty_type(&t.pty, "one\ntwo" ESC "\rthree"); /* Ctrl+J, Alt+Enter */
    ck_assert(pty_wait_text(&t.pty, "   three"));
    ck_assert(pty_wait_text(&t.pty, " > one"));
    ck_assert(pty_wait_text(&t.pty, "   two"));
    ck_assert(!pty_shows(&t.pty, " you"));
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "   ok"));
    int row = pty_find(&t.pty, "   one");
    ck_assert_int_eq(pty_find(&t.pty, "   two"), row + 1);
    ck_assert_int_eq(pty_find(&t.pty, "   three"), row + 2);
    pty_type(&t.pty, "\"\"\"\rfour\rfive\"\"\"\r");
    ck_assert(pty_wait_text(&t.pty, "   five"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(!pty_shows(&t.pty, "\"\"\""));
    tui_finish(&t);
}
END_TEST

static bool cursor_follows(struct pty *p, const void *line) {
    int row, col;
    pty_cursor(p, &row, &col);
    return row == pty_find(p, line) + 1 && col == 3;
}

/* The input grows to half the screen and no further, and shows where the cursor is. */
START_TEST(input_grows) {
    tui_model_text(&t, "ok");
    tui_start_idle(&t);
    for (int i = 0; i < 30; i++) {
        char line[32];
        snprintf(line, sizeof line, "line%02d\n", i);
        pty_type(&t.pty, line);
    }
    ck_assert(pty_wait_text(&t.pty, "line29"));
    ck_assert(pty_wait_no_text(&t.pty, "line15"));
    ck_assert(pty_wait_text(&t.pty, "line20"));
    ck_assert(pty_wait(&t.pty, cursor_follows, "line29", "the cursor below line29"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, "line29"));
    tui_finish(&t);
}
END_TEST

/* ---- commands ------------------------------------------------------------------------------- */

START_TEST(commands) {
    tui_model_text(&t, "reply one");
    tui_start_idle(&t);
    pty_type(&t.pty, "/hlep\r");
    ck_assert(pty_wait_text(&t.pty, "there is no command /hlep: did you mean /help?"));
    pty_type(&t.pty, "/xyzzy plugh\r");
    ck_assert(pty_wait_text(&t.pty, "there is no command /xyzzy"));
    pty_type(&t.pty, "/help\r");
    ck_assert(pty_wait_text(&t.pty, "Alt+Down"));
    pty_type(&t.pty, ESC); /* closes */
    ck_assert(pty_wait_no_text(&t.pty, "Alt+Down"));
    pty_type(&t.pty, ESC "OP"); /* F1 */
    ck_assert(pty_wait_text(&t.pty, "Alt+Down"));
    pty_type(&t.pty, ESC "[F"); /* End */
    ck_assert(pty_wait_text(&t.pty, "/read FILE"));
    pty_type(&t.pty, "q");
    pty_type(&t.pty, "/regen\r");
    ck_assert(pty_wait_text(&t.pty, "there is no reply yet"));
    pty_type(&t.pty, "/usr is a directory\r"); /* names a file: text */
    ck_assert(pty_wait_text(&t.pty, "   /usr is a directory"));
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "/regen\r/show temp\r");
    ck_assert(pty_wait_text(&t.pty, "temp 0.8 ("));
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "/show settings\r");
    ck_assert(pty_wait_text(&t.pty, "(built-in"));
    pty_type(&t.pty, "q/show template\r");
    ck_assert(pty_wait_text(&t.pty, "add_generation_prompt"));
    pty_type(&t.pty, "q/system be brief\r");
    ck_assert(pty_wait_text(&t.pty, "system be brief"));
    pty_type(&t.pty, "/undo\r/undo\r"); /* the other reply, and the question */
    ck_assert(pty_wait_text(&t.pty, " > /usr is a directory"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, "/usr is a directory"));
    pty_type(&t.pty, "hello\r");
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "/clear\r");
    ck_assert(pty_wait_no_text(&t.pty, "reply one"));
    pty_type(&t.pty, "/exit now\r");
    ck_assert(pty_wait_text(&t.pty, "takes no argument"));
    tui_finish(&t);
}
END_TEST

START_TEST(completion_on_screen) {
    tui_model_text(&t, "ok");
    tui_start_idle(&t);
    pty_type(&t.pty, "/s\t\t");
    ck_assert(pty_wait_text(&t.pty, "/stats"));
    ck_assert(pty_wait_text(&t.pty, "/system"));
    pty_type(&t.pty, "et t\t\t");
    ck_assert(pty_wait_text(&t.pty, "top-p"));
    ck_assert(pty_wait_no_text(&t.pty, "/stats"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, "/set"));
    tui_finish(&t);
}
END_TEST

START_TEST(continues_a_stopped_reply) {
    tui_model_words(&t, 2500, true);
    t.rows = ALL_ROWS;
    tui_start_idle(&t);
    pty_type(&t.pty, "go\r");
    ck_assert(pty_wait_raw(&t.pty, 0, "w0000"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "stopped"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "/continue\r");
    ck_assert(pty_wait_no_text(&t.pty, "stopped"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_finish(&t);
}
END_TEST

/* A template that refuses: its message is shown, the question comes back, the chat goes on. */
START_TEST(template_refuses) {
    struct markov m;
    markov_init(&m);
    m.chat_template = "{% if messages[0]['content'] == 'bad' %}{{ raise_exception('not %s this') }}"
                      "{% endif %}{{ '<|im_start|>user\n' + messages[0]['content'] + '<|im_end|>\n"
                      "<|im_start|>assistant\n' }}";
    markov_text(&m, "fine");
    markov_save(&m, t.model);
    markov_free(&m);
    tui_start_idle(&t);
    pty_type(&t.pty, "bad\r");
    ck_assert(pty_wait_text(&t.pty, "not %s this"));
    ck_assert(pty_wait_text(&t.pty, " > bad"));
    ck_assert(!pty_shows(&t.pty, " you"));
    pty_type(&t.pty, "\003good\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    tui_finish(&t);
}
END_TEST

/* Reasoning stands in a block of its own, before the reply; finished, it is folded. */
START_TEST(thinking_model) {
    struct markov m;
    markov_init(&m);
    markov_control(&m, MARKOV_THINK);
    markov_text(&m, "let me see");
    markov_control(&m, MARKOV_END_THINK);
    markov_text(&m, "forty-two");
    markov_save(&m, t.model);
    markov_free(&m);
    tui_start_idle(&t);
    pty_type(&t.pty, "what?\r");
    ck_assert(pty_wait_text(&t.pty, "   forty-two"));
    ck_assert(pty_wait_text(&t.pty, " ▸ markov (thinking) (1 line, 3 tokens)"));
    int row = pty_find(&t.pty, " ▸ markov (thinking) (1 line, 3 tokens)");
    ck_assert(pty_wait_no_text(&t.pty, "let me see"));
    ck_assert(pty_wait_text(&t.pty, "   forty-two")); /* in its new place */
    ck_assert_int_gt(pty_find(&t.pty, "   forty-two"), row + 1);
    ck_assert(!pty_shows(&t.pty, "think>"));
    tui_finish(&t);
}
END_TEST

/* A model without a template: text goes on as text. */
START_TEST(base_model) {
    struct markov m;
    markov_init(&m);
    m.chat_template = NULL;
    markov_text(&m, "and so on");
    markov_save(&m, t.model);
    markov_free(&m);
    tui_start_idle(&t);
    ck_assert(pty_wait_text(&t.pty, "no chat template"));
    pty_type(&t.pty, "once\n\r"); /* the chain begins behind a newline */
    ck_assert(pty_wait_text(&t.pty, "and so on"));
    tui_finish(&t);
}
END_TEST

START_TEST(load_fails) {
    FILE *f = fopen(t.model, "w");
    ck_assert_ptr_nonnull(f);
    fputs("GGUF, but not really", f);
    fclose(f);
    tui_start(&t);
    ck_assert(pty_wait_text(&t.pty, "The model cannot be used"));
    ck_assert(pty_wait_text(&t.pty, "no model"));
    pty_type(&t.pty, "hello\r");
    ck_assert(pty_wait_text(&t.pty, "there is no model"));
    ck_assert(pty_wait_text(&t.pty, " > hello"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, "hello"));
    pty_type(&t.pty, "/exit\r");
    ck_assert(pty_wait_exit(&t.pty));
    ck_assert_int_eq(WEXITSTATUS(t.pty.status), 1);
    ck_assert(pty_shows(&t.pty, "chinwag: ")); /* the reason outlives the screen */
    tui_assert_restored(&t);
    tui_end(&t);
}
END_TEST

/* The draft goes to an editor and comes back, with its keys back in readline's hands. */
START_TEST(draft_in_editor) {
    static const char *const keys[] = {"\007", "\030\005"}; /* Ctrl+G, Ctrl+X Ctrl+E */
    char editor[128];
    tui_model_text(&t, "fine");
    snprintf(editor, sizeof editor, "VISUAL=%s/edit --flag", t.dir);
    t.more_env[0] = editor;
    tui_start_idle(&t);
    char path[128];
    snprintf(path, sizeof path, "%s/edit", t.dir);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("#!/bin/sh\necho \"editing $1\"\nread answer\n"
          "printf '%s\\n%s\\n' \"$(cat \"$2\")\" \"$answer\" > \"$2\"\n",
          f);
    fclose(f);
    ck_assert_int_eq(chmod(path, 0755), 0);
    pty_type(&t.pty, "first");
    ck_assert(pty_wait_text(&t.pty, " > first"));
    pty_type(&t.pty, keys[_i]);
    ck_assert(pty_wait_text(&t.pty, "editing --flag"));
    ck_assert(pty_wait_no_text(&t.pty, " > first"));
    pty_type(&t.pty, "second\r");
    ck_assert(pty_wait_text(&t.pty, " > first"));
    ck_assert(pty_wait_text(&t.pty, "   second"));
    ck_assert(!pty_shows(&t.pty, " you")); /* sending is another matter */
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    pty_type(&t.pty, "\022fir"); /* in a search Ctrl+G is readline's */
    ck_assert(pty_wait_text(&t.pty, "reverse-i-search"));
    pty_type(&t.pty, "\007");
    ck_assert(pty_wait_no_text(&t.pty, "reverse-i-search"));
    ck_assert(!pty_shows(&t.pty, "editing"));
    tui_finish(&t);
}
END_TEST

START_TEST(editor_fails) {
    tui_model_text(&t, "fine");
    t.more_env[0] = "EDITOR=false";
    tui_start_idle(&t);
    pty_type(&t.pty, "kept\007");
    ck_assert(pty_wait_text(&t.pty, "the editor failed"));
    ck_assert(pty_wait_text(&t.pty, " > kept"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, " > kept"));
    tui_finish(&t);
}
END_TEST

START_TEST(draft_is_counted) {
    tui_model_text(&t, "ok");
    tui_start_idle(&t);
    pty_type(&t.pty, "abc");
    ck_assert(pty_wait_text(&t.pty, "3 tokens"));
    size_t before = t.pty.raw.len;
    pty_type(&t.pty, "d"); /* the figure before, with a mark, until there is a new one */
    ck_assert(pty_wait_raw(&t.pty, before, "~"));
    ck_assert(pty_wait_text(&t.pty, " 4 tokens"));
    pty_type(&t.pty, "\177\177\177");
    ck_assert(pty_wait_text(&t.pty, " 1 token"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, " 1 token"));
    tui_finish(&t);
}
END_TEST

static Suite *suite(void) {
    Suite *s = suite_create("tui chat");
    TCase *c = tcase_create("chat");
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, answers);
    tcase_add_test(c, shows_any_script);
    tcase_add_test(c, joined_emoji_stay_in_their_line);
    tcase_add_test(c, hostile_text_is_text);
    tcase_add_test(c, hostile_name_is_text);
    tcase_add_test(c, live_keys_in_mid_reply);
    tcase_add_test(c, live_keys_idle);
    tcase_add_test(c, tells_what_is_tokenised_anew);
    tcase_add_loop_test(c, stops_and_goes_on, 0, 3);
    tcase_add_test(c, signal_is_like_ctrl_c);
    tcase_add_test(c, stopped_while_reading);
    tcase_add_test(c, enter_during_a_reply_waits);
    tcase_add_test(c, enter_while_loading_waits);
    tcase_add_test(c, scrolls);
    tcase_add_test(c, lines_by_hand);
    tcase_add_test(c, input_grows);
    tcase_add_test(c, commands);
    tcase_add_test(c, completion_on_screen);
    tcase_add_test(c, continues_a_stopped_reply);
    tcase_add_test(c, template_refuses);
    tcase_add_test(c, thinking_model);
    tcase_add_test(c, base_model);
    tcase_add_test(c, load_fails);
    tcase_add_loop_test(c, draft_in_editor, 0, 2);
    tcase_add_test(c, editor_fails);
    tcase_add_test(c, draft_is_counted);
    suite_add_tcase(s, c);
    return s;
}

int main(void) {
    SRunner *sr = srunner_create(suite());
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
