/* SPDX-License-Identifier: MIT
 *
 * Moving in the tree of the conversation: the real program with models that say a known text, or
 * one that is drawn.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/ui/tui.h"

#define ESC  "\033"
#define BACK ESC "[1;4D" /* Alt+Shift+Left */
#define ON   ESC "[1;4C"

static struct tui t;

static void setup(void) {
    tui_init(&t);
}

/* A model whose tokens are really drawn: each step is only likelier than the others. */
static void model_of_chance(void) {
    struct markov m;
    markov_init(&m);
    m.n_ctx = 65536;
    m.logit = 9;
    for (int i = 0; i < 400; i++) {
        char word[16];
        snprintf(word, sizeof word, "w%04d%s", i, i % 10 == 9 ? ".\n" : " ");
        markov_text(&m, word);
    }
    markov_loop(&m, 0);
    markov_save(&m, t.model);
    markov_free(&m);
}

/* ---- branches ------------------------------------------------------------------------------- */

START_TEST(regenerating_keeps_the_old_reply) {
    tui_model_text(&t, "reply one");
    tui_start_idle(&t);
    tui_say(&t, "/regen 3 4");
    ck_assert(pty_wait_text(&t.pty, "replies at once"));
    tui_say(&t, "hello");
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(!pty_shows(&t.pty, "branch"));
    tui_say(&t, "/regen");
    ck_assert(pty_wait_text(&t.pty, "2 · 2/2"));
    ck_assert(pty_wait_text(&t.pty, "│ branch 2/2")); /* behind the state: "idle" is of now */
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, BACK);
    ck_assert(pty_wait_text(&t.pty, "2 · 1/2"));
    ck_assert(pty_shows(&t.pty, "   reply one"));
    pty_type(&t.pty, BACK);
    ck_assert(pty_wait_text(&t.pty, "first branch"));
    pty_type(&t.pty, ON);
    ck_assert(pty_wait_text(&t.pty, "branch 2/2"));
    tui_say(&t, "/undo"); /* the move, then the move before it */
    ck_assert(pty_wait_text(&t.pty, "branch 1/2"));
    tui_say(&t, "/redo");
    ck_assert(pty_wait_text(&t.pty, "branch 2/2"));
    tui_finish(&t);
}
END_TEST

START_TEST(editing_a_question_branches) {
    tui_model_text(&t, "reply one");
    tui_start_idle(&t);
    tui_say(&t, "first words");
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/edit 1 other words");
    ck_assert(pty_wait_text(&t.pty, "   other words"));
    ck_assert(pty_wait_text(&t.pty, "1 · 2/2"));
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(!pty_shows(&t.pty, "   first words"));
    pty_type(&t.pty, BACK);
    ck_assert(pty_wait_text(&t.pty, "   first words"));
    ck_assert(pty_wait_no_text(&t.pty, "   other words"));
    tui_say(&t, "/edit"); /* in the input line */
    ck_assert(pty_wait_text(&t.pty, " > first words"));
    ck_assert(pty_wait_text(&t.pty, "editing message 1"));
    pty_type(&t.pty, "\003"); /* left alone */
    ck_assert(pty_wait_text(&t.pty, "stays as it is"));
    tui_say(&t, "/edit 1");
    ck_assert(pty_wait_text(&t.pty, " > first words"));
    tui_say(&t, " and more");
    ck_assert(pty_wait_text(&t.pty, "   first words and more"));
    ck_assert(pty_wait_text(&t.pty, "1 · 3/3"));
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/edit 7 x");
    ck_assert(pty_wait_text(&t.pty, "which message?"));
    tui_say(&t, "/edit x");
    ck_assert(pty_wait_text(&t.pty, "which message?"));
    tui_finish(&t);
}
END_TEST

START_TEST(editing_a_reply_and_going_on) {
    tui_model_text(&t, "reply one");
    tui_start_idle(&t);
    tui_say(&t, "hello");
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "/edit 2 Changed\n"); /* Ctrl+J: behind a line end the chain begins */
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "   Changed"));
    ck_assert(pty_wait_text(&t.pty, "edited"));
    ck_assert(pty_wait_no_text(&t.pty, "   reply one"));
    tui_say(&t, "/continue");
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert_int_eq(pty_find(&t.pty, "   reply one"), pty_find(&t.pty, "   Changed") + 1);
    ck_assert(pty_wait_text(&t.pty, "2 · 2/2")); /* the same message still */
    tui_say(&t, "/replay");
    ck_assert(pty_wait_text(&t.pty, "the same "));
    tui_finish(&t);
}
END_TEST

START_TEST(undo_and_redo) {
    tui_model_text(&t, "reply one");
    t.cols = 150;
    tui_start_idle(&t);
    tui_say(&t, "/undo");
    ck_assert(pty_wait_text(&t.pty, "nothing to undo"));
    tui_say(&t, "/redo");
    ck_assert(pty_wait_text(&t.pty, "nothing to redo"));
    tui_say(&t, "hello");
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/undo");
    ck_assert(pty_wait_text(&t.pty, " > hello"));
    ck_assert(pty_wait_no_text(&t.pty, "   reply one"));
    pty_type(&t.pty, "\003");
    tui_say(&t, "/redo");
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "   hello"));
    tui_say(&t, "again");
    ck_assert(pty_wait_text(&t.pty, "   again"));
    ck_assert(pty_wait_text(&t.pty, "reused"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/fork");
    ck_assert(pty_wait_text(&t.pty, "a copy of the conversation"));
    tui_say(&t, "in the copy");
    ck_assert(pty_wait_text(&t.pty, "   in the copy"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/undo");
    ck_assert(pty_wait_text(&t.pty, " > in the copy"));
    pty_type(&t.pty, "\003");
    tui_say(&t, "/undo");
    ck_assert(pty_wait_text(&t.pty, "back in the conversation"));
    ck_assert(pty_wait_text(&t.pty, "   again"));
    tui_finish(&t);
}
END_TEST

START_TEST(the_tree_on_screen) {
    tui_model_text(&t, "reply one");
    tui_start_idle(&t);
    tui_say(&t, "/tree");
    ck_assert(pty_wait_text(&t.pty, "there is no message yet"));
    tui_say(&t, "root");
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/edit 2 other reply");
    ck_assert(pty_wait_text(&t.pty, "   other reply"));
    tui_say(&t, "/tree");
    ck_assert(pty_wait_text(&t.pty, "Branches of this conversation"));
    ck_assert(pty_wait_text(&t.pty, "you  root"));
    ck_assert(pty_wait_text(&t.pty, "├ ○ 2 reply  reply one"));
    ck_assert(pty_wait_text(&t.pty, "> └ ● 3 reply  other reply"));
    pty_type(&t.pty, ESC "[A");
    ck_assert(pty_wait_text(&t.pty, "> ├ ○ 2 reply  reply one"));
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_no_text(&t.pty, "Branches of"));
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "2 · 1/2"));
    tui_say(&t, "/tree");
    ck_assert(pty_wait_text(&t.pty, "Branches of"));
    pty_type(&t.pty, "q");
    ck_assert(pty_wait_no_text(&t.pty, "Branches of"));
    tui_finish(&t);
}
END_TEST

START_TEST(several_replies_at_once) {
    model_of_chance();
    static const char *const args[] = {"-n", "12", "-s", "5"};
    memcpy(t.more_args, args, sizeof args);
    t.cols = 120;
    tui_start_idle(&t);
    tui_say(&t, "go");
    ck_assert(pty_wait_text(&t.pty, "cut at the limit"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/regen 3");
    ck_assert(pty_wait_text(&t.pty, "3 replies: 1-3 or Enter takes one"));
    ck_assert(pty_wait_text(&t.pty, "[1]"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, ESC "[C");
    ck_assert(pty_wait_text(&t.pty, "[2]"));
    pty_type(&t.pty, "3");
    ck_assert(pty_wait_text(&t.pty, "2 · 4/4"));
    ck_assert(pty_wait_no_text(&t.pty, "replies: 1-3"));
    pty_type(&t.pty, BACK BACK);
    ck_assert(pty_wait_text(&t.pty, "2 · 2/4"));
    /* each of them is what its seed draws */
    tui_say(&t, "/replay");
    ck_assert(pty_wait_text(&t.pty, "the same 12 tokens again"));
    tui_finish(&t);
}
END_TEST

/* The path went through the first one before it had a text. */
START_TEST(first_of_several_has_its_text) {
    tui_model_text(&t, "reply one");
    t.cols = 120;
    tui_start_idle(&t);
    tui_say(&t, "go");
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/regen 2");
    ck_assert(pty_wait_text(&t.pty, "2 replies: 1-2"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(pty_wait_no_text(&t.pty, "...")); /* both are done */
    pty_type(&t.pty, "1");
    ck_assert(pty_wait_text(&t.pty, "2 · 2/3"));
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    tui_finish(&t);
}
END_TEST

START_TEST(first_of_several_taken_early_is_whole) {
    tui_model_words(&t, 2000, true);
    t.rows = 100;
    t.cols = 120;
    tui_start_idle(&t);
    tui_say(&t, "go");
    ck_assert(pty_wait_text(&t.pty, "   w0000 w0001"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "stopped"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/regen 2");
    ck_assert(pty_wait_text(&t.pty, "2 replies: 1-2"));
    ck_assert(pty_wait_text(&t.pty, "w0002"));
    pty_type(&t.pty, ESC "[20~"); /* F9 */
    ck_assert(pty_wait_text(&t.pty, "paused"));
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "2 · 2/3"));
    ck_assert(pty_wait_text(&t.pty, "   w0000 w0001 w0002"));
    for (int i = 0; i < 3; i++) {
        pty_type(&t.pty, ESC "[21~"); /* F10: what follows goes behind it */
        pty_pump(&t.pty, 10);
    }
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "stopped"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(pty_wait_text(&t.pty, "   w0000 w0001 w0002"));
    tui_finish(&t);
}
END_TEST

/* What is typed there is for nothing, and is said to be. */
START_TEST(keys_beside_several_replies) {
    tui_model_text(&t, "reply one");
    t.cols = 120;
    tui_start_idle(&t);
    tui_say(&t, "go");
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/regen 2");
    ck_assert(pty_wait_text(&t.pty, "2 replies: 1-2"));
    ck_assert(pty_wait_no_text(&t.pty, "..."));
    ck_assert(pty_wait_text(&t.pty, "Esc takes the marked one"));
    ck_assert(!pty_shows(&t.pty, "\n > "));
    pty_type(&t.pty, "next 2"); /* the digit is no choice */
    ck_assert(pty_wait_text(&t.pty, "nothing can be typed here"));
    pty_type(&t.pty, ESC "[B"); /* Down, like Right */
    ck_assert(pty_wait_text(&t.pty, "[2]"));
    ck_assert(pty_wait_no_text(&t.pty, "nothing can be typed here"));
    pty_type(&t.pty, ESC "OP"); /* F1, and what would lead elsewhere */
    ck_assert(pty_wait_text(&t.pty, "nothing can be typed here"));
    pty_type(&t.pty, BACK);
    ck_assert(pty_shows(&t.pty, "2 replies: 1-2"));
    pty_type(&t.pty, ESC);
    ck_assert(pty_wait_text(&t.pty, "2 · 3/3"));
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_no_text(&t.pty, "2 replies: 1-2"));
    tui_finish(&t);
}
END_TEST

/* ---- replay and why ------------------------------------------------------------------------- */

START_TEST(replays_with_its_changes) {
    static const char *const temps[] = {"2", "0.1", "2.5", "0.2", "1.75"};
    static const char *const args[] = {"--logit-bias", "257-inf,259-inf", "-c",
                                       "65536"}; /* no chance end */
    model_of_chance();
    memcpy(t.more_args, args, sizeof args);
    t.cols = 120;
    tui_start_idle(&t);
    tui_say(&t, "/replay");
    ck_assert(pty_wait_text(&t.pty, "there is no message yet"));
    tui_say(&t, "go");
    ck_assert(pty_wait_text(&t.pty, "answering"));
    for (int i = 0; i < 5; i++) {
        char command[32], label[32];
        snprintf(command, sizeof command, "/set temp %s", temps[i]);
        snprintf(label, sizeof label, "temp %s (live", temps[i]);
        tui_say(&t, command);
        ck_assert(pty_wait_text(&t.pty, label));
        size_t raw = t.pty.raw.len;
        while (t.pty.raw.len < raw + 100) { /* more of the reply */
            ck_assert(pty_pump(&t.pty, PTY_DEADLINE_MS));
        }
    }
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/set temp 1.5"); /* what holds now has no say in a replay */
    ck_assert(pty_wait_text(&t.pty, "T 1.50"));
    tui_say(&t, "/why");
    ck_assert(pty_wait_text(&t.pty, "T 0.80 -> 2.00 at token "));
    ck_assert(pty_wait_text(&t.pty, "written by"));
    pty_type(&t.pty, "q");
    tui_say(&t, "/replay");
    ck_assert(pty_wait_text(&t.pty, "the same "));
    ck_assert(pty_wait_text(&t.pty, "5 changes"));
    tui_say(&t, "/show temp");
    ck_assert(pty_wait_text(&t.pty, "temp 1.5 ("));
    tui_finish(&t);
}
END_TEST

/* A reply that was stopped and goes on, with other settings, is one that can be replayed. */
START_TEST(replays_a_continued_reply) {
    model_of_chance();
    static const char *const args[] = {"-n", "30"};
    memcpy(t.more_args, args, sizeof args);
    tui_start_idle(&t);
    tui_say(&t, "go");
    ck_assert(pty_wait_text(&t.pty, "cut at the limit"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/set temp 0.6");
    tui_say(&t, "/continue");
    ck_assert(pty_wait_text(&t.pty, "T 0.80 -> 0.60")); /* where it goes on */
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/replay");
    ck_assert(pty_wait_text(&t.pty, "the same 60 tokens again"));
    ck_assert(pty_wait_text(&t.pty, "1 change"));
    tui_finish(&t);
}
END_TEST

/* With other kernels and another number of threads, in another run. */
START_TEST(replays_on_another_machine) {
    static const char *const temps[] = {"2", "0.1", "2.5", "0.2", "1.75"};
    static const char *const there[] = {
        "-t", "2", "--exact", "-c", "65536", "--logit-bias", "257-inf,259-inf", NULL};
    static const char *const here[] = {"--exact", "--isa",      "scalar", "-c",
                                       "65536",   "--continue", NULL};
    char same[64];
    model_of_chance();
    memcpy(t.more_args, there, sizeof there);
    t.cols = 120;
    tui_start_idle(&t);
    tui_say(&t, "go");
    ck_assert(pty_wait_text(&t.pty, "answering"));
    pty_type(&t.pty, "\033[20~"); /* F9: it must not run far, the scalar kernels are slow */
    ck_assert(pty_wait_text(&t.pty, "paused"));
    for (int i = 0; i < 5; i++) {
        char command[32], label[32];
        snprintf(command, sizeof command, "/set temp %s", temps[i]);
        snprintf(label, sizeof label, "temp %s (live", temps[i]);
        tui_say(&t, command);
        ck_assert(pty_wait_text(&t.pty, label));
        for (int k = 0; k < 20; k++) {
            pty_type(&t.pty, "\033[21~"); /* F10: one more token */
            pty_pump(&t.pty, 10);
        }
    }
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/replay");
    ck_assert(pty_wait_text(&t.pty, "5 changes"));
    char *row = pty_row(&t.pty, pty_find(&t.pty, "the same "));
    const char *at = strstr(row, "the same ");
    ck_assert_ptr_nonnull(at);
    snprintf(same, sizeof same, "%.*s", (int)strcspn(at, "("), at);
    free(row);
    tui_say(&t, "/exit");
    ck_assert(pty_wait_exit(&t.pty));
    pty_end(&t.pty);
    memset(t.more_args, 0, sizeof t.more_args);
    memcpy(t.more_args, here, sizeof here);
    tui_start_idle(&t);
    ck_assert(pty_wait_raw(&t.pty, 0, "w0")); /* it is loaded */
    tui_say(&t, "/replay");
    ck_assert(pty_wait_text(&t.pty, same)); /* as many */
    ck_assert(pty_wait_text(&t.pty, "5 changes"));
    ck_assert(!pty_shows(&t.pty, "only be compared"));
    tui_say(&t, "/show info");
    ck_assert(pty_wait_text(&t.pty, "scalar"));
    pty_type(&t.pty, "q");
    tui_finish(&t);
}
END_TEST

/* ---- an alternative ------------------------------------------------------------------------- */

START_TEST(an_alternative_is_a_branch) {
    static const char *const args[] = {"-n", "12", "-s", "5", "-c", "65536"};
    model_of_chance();
    memcpy(t.more_args, args, sizeof args);
    t.cols = 120;
    tui_start_idle(&t);
    tui_say(&t, "go");
    ck_assert(pty_wait_text(&t.pty, "cut at the limit"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, ESC "OS" ESC "[C" ESC "[C" ESC "[C"); /* the fourth token */
    ck_assert(pty_wait_text(&t.pty, "token 4 of 12"));
    pty_type(&t.pty, "8");
    ck_assert(pty_wait_text(&t.pty, "2 · 2/2"));
    ck_assert(pty_wait_text(&t.pty, "cut at the limit"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/why");
    ck_assert(pty_wait_text(&t.pty, "chosen by hand"));
    ck_assert(pty_wait_text(&t.pty, "token 3"));
    ck_assert(pty_wait_text(&t.pty, "from token 4 on"));
    pty_type(&t.pty, "q");
    tui_say(&t, "/replay"); /* what was chosen is not drawn, what follows is */
    ck_assert(pty_wait_text(&t.pty, "the same 16 tokens again"));
    tui_say(&t, "/undo");
    ck_assert(pty_wait_text(&t.pty, "2 · 1/2"));
    tui_say(&t, "/replay");
    ck_assert(pty_wait_text(&t.pty, "the same 12 tokens again"));
    tui_say(&t, "/redo");
    ck_assert(pty_wait_text(&t.pty, "2 · 2/2"));
    tui_say(&t, "/set temp 0.6");
    tui_say(&t, "/continue");
    ck_assert(pty_wait_text(&t.pty, "T 0.80 -> 0.60"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/replay");
    ck_assert(pty_wait_text(&t.pty, "the same 28 tokens again"));
    tui_finish(&t);
}
END_TEST

/* ---- the context is full -------------------------------------------------------------------- */

static void full_chat(const char *policy, const char *n_ctx, int turns) {
    struct markov m;
    markov_init(&m);
    for (int i = 0; i < 40; i++) {
        char word[16];
        snprintf(word, sizeof word, "w%04d ", i);
        markov_text(&m, word);
    }
    markov_save(&m, t.model);
    markov_free(&m);
    const char *args[] = {"-c", n_ctx, "--overflow", policy};
    memcpy(t.more_args, args, sizeof args);
    t.rows = 40;
    t.cols = 120;
    tui_start_idle(&t);
    for (int i = 0; i < turns; i++) {
        char text[32], row[40], number[16];
        snprintf(text, sizeof text, "question %d", i);
        snprintf(row, sizeof row, "   %s", text);
        snprintf(number, sizeof number, "markov  %d", 2 * i + 2);
        tui_say(&t, text);
        ck_assert(pty_wait_text(&t.pty, row));
        ck_assert(pty_wait_text(&t.pty, number));
        ck_assert(pty_wait_text(&t.pty, "idle"));
    }
}

START_TEST(oldest_turns_leave) {
    full_chat("drop", "256", 3);
    ck_assert(pty_wait_text(&t.pty, "% full")); /* warned */
    ck_assert(!pty_shows(&t.pty, "left the context"));
    tui_say(&t, "question 3");
    ck_assert(pty_wait_text(&t.pty, "has left the context"));
    ck_assert(pty_wait_text(&t.pty, "markov  8"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(!pty_shows(&t.pty, "Ctrl+C cancels")); /* it is done */
    ck_assert_int_gt(pty_find(&t.pty, "has left the context"), pty_find(&t.pty, "   question 0"));
    ck_assert_int_lt(pty_find(&t.pty, "has left the context"), pty_find(&t.pty, "   question 3"));
    tui_say(&t, "/restore");
    ck_assert(pty_wait_no_text(&t.pty, "has left the context"));
    tui_say(&t, "/undo");
    ck_assert(pty_wait_text(&t.pty, "has left the context"));
    tui_say(&t, "/set overflow stop");
    tui_say(&t, "/restore");
    ck_assert(pty_wait_no_text(&t.pty, "has left the context"));
    tui_say(&t, "question 4");
    ck_assert(pty_wait_text(&t.pty, "The context is full. /new begins"));
    ck_assert(pty_wait_text(&t.pty, " > question 4"));  /* not lost */
    ck_assert(!pty_shows(&t.pty, "the context holds")); /* said once */
    pty_type(&t.pty, "\003");
    tui_finish(&t);
}
END_TEST

/* What waits behind a question that is refused before it is asked comes back with it. */
START_TEST(all_that_waited_for_a_full_context) {
    static const char *const args[] = {"-c", "2048", "--overflow", "stop"};
    memcpy(t.more_args, args, sizeof args);
    tui_model_words(&t, 2500, true);
    t.rows = 40;
    tui_start_idle(&t);
    pty_type(&t.pty, "first\r");
    ck_assert(pty_wait_raw(&t.pty, 0, "w0000"));
    pty_type(&t.pty, "second\rthird\r");
    ck_assert(pty_wait_text(&t.pty, "queued: 2 messages"));
    ck_assert(pty_wait_text(&t.pty, "The context is full. /new begins"));
    ck_assert(pty_wait_text(&t.pty, " > second"));
    ck_assert(pty_wait_text(&t.pty, "   third"));
    char *third = pty_row(&t.pty, pty_find(&t.pty, " > second") + 2);
    ck_assert_ptr_nonnull(strstr(third, "third"));
    free(third);
    ck_assert(pty_wait_no_text(&t.pty, "queued"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, " > second"));
    tui_finish(&t);
}
END_TEST

START_TEST(full_and_stop) {
    full_chat("stop", "256", 3);
    tui_say(&t, "question 3");
    ck_assert(pty_wait_text(&t.pty, "cut: the context is full"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "question 4");
    ck_assert(pty_wait_text(&t.pty, "The context is full. /new begins"));
    ck_assert(pty_wait_text(&t.pty, " > question 4"));
    ck_assert(!pty_shows(&t.pty, "   question 4"));
    pty_type(&t.pty, "\003");
    tui_finish(&t);
}
END_TEST

START_TEST(full_and_summarised) {
    full_chat("summarise", "512", 7);
    tui_say(&t, "question 7");
    ck_assert(pty_wait_text(&t.pty, "has left the context"));
    ck_assert(pty_wait_text(&t.pty, "this summary: w0000"));
    ck_assert(pty_wait_text(&t.pty, "markov  16"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_finish(&t);
}
END_TEST

/* Cancelled before the first token of the reply, or after it. */
static bool came_back_or_stopped(struct pty *p, const void *arg) {
    (void)arg;
    return pty_shows(p, " > question 3") || pty_shows(p, "stopped");
}

/* While a summary is written, and while what stays is read anew. */
START_TEST(cancelled_while_room_is_made) {
    struct markov m;
    markov_init(&m);
    m.n_ctx = 4096;
    for (int i = 0; i < 3000; i++) { /* wide: slow */
        char word[16];
        snprintf(word, sizeof word, "w%04d ", i);
        markov_text(&m, word);
    }
    markov_loop(&m, 0);
    markov_save(&m, t.model);
    markov_free(&m);
    static const char *const args[] = {"-c", "2048", "--overflow", "summarise", "-n", "985"};
    memcpy(t.more_args, args, sizeof args);
    t.rows = 100; /* a whole reply, with its heading */
    t.cols = 120;
    tui_start_idle(&t);
    for (int i = 0; i < 2; i++) {
        tui_say(&t, i == 0 ? "question 0" : "question 1");
        ck_assert(pty_wait_text(&t.pty, i == 0 ? "markov  2" : "markov  4"));
        ck_assert(pty_wait_text(&t.pty, "idle"));
    }
    tui_say(&t, "question 2");
    ck_assert(pty_wait_text(&t.pty, "sums up what leaves"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "the context is as it was"));
    ck_assert(pty_wait_no_text(&t.pty, "sums up what leaves"));
    ck_assert(pty_wait_text(&t.pty, " > question 2"));
    ck_assert(!pty_shows(&t.pty, "left the context"));
    pty_type(&t.pty, "\003");
    tui_say(&t, "/set overflow drop");
    ck_assert(pty_wait_text(&t.pty, "overflow drop"));
    tui_say(&t, "question 3");
    ck_assert(pty_wait_no_text(&t.pty, " > question 3")); /* sent: what stays is read anew */
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait(&t.pty, came_back_or_stopped, NULL, "stopped"));
    pty_type(&t.pty, "\003"); /* the question, if it came back */
    ck_assert(pty_wait_no_text(&t.pty, " > question 3"));
    tui_finish(&t);
}
END_TEST

/* ---- personas and prompts ------------------------------------------------------------------- */

START_TEST(personas_and_prompts) {
    tui_write_text(&t, ".config/chinwag/personas/poet.ini",
                   "system = Answer in verse.\ntemp = 1.25\nthreads = 7\n");
    tui_write_text(&t, ".config/chinwag/personas/broken.ini", "temp = hot\n");
    tui_write_text(&t, ".config/chinwag/prompts/translate.txt", "Put into {language}: {text}\n");
    tui_write_text(&t, ".config/chinwag/prompts/twice.txt", "{name} and {name}\n");
    tui_model_text(&t, "ok");
    static const char *const args[] = {"--persona", "poet"};
    memcpy(t.more_args, args, sizeof args);
    tui_start_idle(&t);
    ck_assert(pty_wait_text(&t.pty, "T 1.25"));
    tui_say(&t, "/show system");
    ck_assert(pty_wait_text(&t.pty, "Answer in verse."));
    pty_type(&t.pty, "q");
    tui_say(&t, "/set temp 0.5");
    ck_assert(pty_wait_text(&t.pty, "T 0.50"));
    tui_say(&t, "/system poet");
    ck_assert(pty_wait_text(&t.pty, "T 1.25"));
    ck_assert(pty_wait_text(&t.pty, "persona poet; 1 of its settings"));
    tui_say(&t, "/persona");
    ck_assert(pty_wait_text(&t.pty, "Personas"));
    ck_assert(pty_wait_text(&t.pty, "broken"));
    pty_type(&t.pty, "q");
    tui_say(&t, "/persona broken");
    ck_assert(pty_wait_text(&t.pty, "broken.ini:1: temp"));
    tui_say(&t, "/persona ../../etc/passwd");
    ck_assert(pty_wait_text(&t.pty, "there is no persona of that name"));
    tui_say(&t, "/prompt translate language=French text='good day'");
    ck_assert(pty_wait_text(&t.pty, " > Put into French: good day"));
    pty_type(&t.pty, "\003");
    tui_say(&t, "/prompt translate language=French");
    ck_assert(pty_wait_text(&t.pty, " > Put into French: {text}"));
    ck_assert(pty_wait_text(&t.pty, "1 placeholder is still"));
    pty_type(&t.pty, "\003");
    tui_say(&t, "/prompt translate text=good day language=French");
    ck_assert(pty_wait_text(&t.pty, "day is no NAME=VALUE"));
    tui_say(&t, "/prompt twice");
    ck_assert(pty_wait_text(&t.pty, " > {name} and {name}"));
    ck_assert(pty_wait_text(&t.pty, "1 placeholder is still"));
    pty_type(&t.pty, "\003");
    tui_say(&t, "/prompt nothing");
    ck_assert(pty_wait_text(&t.pty, "nothing.txt"));
    tui_finish(&t);
}
END_TEST

int main(void) {
    Suite *s = suite_create("tree");
    TCase *c = tcase_create("tree");
    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, regenerating_keeps_the_old_reply);
    tcase_add_test(c, editing_a_question_branches);
    tcase_add_test(c, editing_a_reply_and_going_on);
    tcase_add_test(c, undo_and_redo);
    tcase_add_test(c, the_tree_on_screen);
    tcase_add_test(c, several_replies_at_once);
    tcase_add_test(c, first_of_several_has_its_text);
    tcase_add_test(c, first_of_several_taken_early_is_whole);
    tcase_add_test(c, keys_beside_several_replies);
    tcase_add_test(c, replays_with_its_changes);
    tcase_add_test(c, replays_a_continued_reply);
    tcase_add_test(c, oldest_turns_leave);
    tcase_add_test(c, full_and_stop);
    tcase_add_test(c, all_that_waited_for_a_full_context);
    tcase_add_test(c, full_and_summarised);
    tcase_add_test(c, personas_and_prompts);
    suite_add_tcase(s, c);
    c = tcase_create("more");
    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, replays_on_another_machine);
    tcase_add_test(c, an_alternative_is_a_branch);
    tcase_add_test(c, cancelled_while_room_is_made);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
