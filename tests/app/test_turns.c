/* SPDX-License-Identifier: MIT
 *
 * Turns and commands of the chat where something is not as it should be: messages that waited, a
 * request that is refused, an editor that loses its file, words that mean nothing. The real program
 * on a pseudo-terminal.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/clock.h"
#include "tests/ui/tui.h"

static struct tui t;

static void setup(void) {
    tui_init(&t);
}

/* A figure of the page of /stats. */
static double figure(const char *name) {
    int row = pty_find(&t.pty, name);
    ck_assert_msg(row >= 0, "no %s", name);
    char *line = pty_row(&t.pty, row);
    double value = strtod(strstr(line, name) + strlen(name), NULL);
    free(line);
    return value;
}

/* The time to the first token of a message that waited begins with its turn. */
START_TEST(waiting_is_not_reading) {
    tui_model_words(&t, 2500, true);
    tui_start_idle(&t);
    pty_type(&t.pty, "first\r");
    ck_assert(pty_wait_raw(&t.pty, 0, "w0000"));
    pty_type(&t.pty, "second\r");
    ck_assert(pty_wait_text(&t.pty, "queued: 1 message"));
    ck_assert(pty_wait_raw(&t.pty, 0, "w0500")); /* it waits for longer than its turn takes */
    double turn_s = cw_now();
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "   second"));
    ck_assert(pty_wait_text(&t.pty, "answering"));
    double turn_ms = (cw_now() - turn_s) * 1e3;
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "/stats\r");
    ck_assert(pty_wait_text(&t.pty, "you stopped it"));
    ck_assert_msg(figure("time to first token") <= turn_ms + 0.1, "%g ms of %g",
                  figure("time to first token"), turn_ms); /* rounded to 0.1 */
    pty_type(&t.pty, "q");
    ck_assert(pty_wait_no_text(&t.pty, "time to first token"));
    tui_finish(&t);
}
END_TEST

/* Of what waited, and of what is being written, nothing is lost when the next request fails. */
START_TEST(all_that_waited_comes_back) {
    struct markov m;
    markov_init(&m);
    m.n_ctx = 65536;
    m.chat_template = "{% if messages[-1]['content'] == 'bad' %}{{ raise_exception('no') }}"
                      "{% endif %}{{ '<|im_start|>user\n' + messages[-1]['content'] + '<|im_end|>\n"
                      "<|im_start|>assistant\n' }}";
    for (int i = 0; i < 2500; i++) {
        char word[16];
        snprintf(word, sizeof word, "w%04d ", i);
        markov_text(&m, word);
    }
    markov_loop(&m, 0);
    markov_save(&m, t.model);
    markov_free(&m);
    tui_start_idle(&t);
    pty_type(&t.pty, "first\r");
    ck_assert(pty_wait_raw(&t.pty, 0, "w0000"));
    pty_type(&t.pty, "bad\rworse\r");
    ck_assert(pty_wait_text(&t.pty, "queued: 2 messages"));
    pty_type(&t.pty, "draft");
    ck_assert(pty_wait_text(&t.pty, " > draft"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, " > bad"));
    ck_assert(pty_wait_text(&t.pty, "   worse"));
    ck_assert(pty_wait_text(&t.pty, "   draft"));
    int row = pty_find(&t.pty, " > bad");
    char *worse = pty_row(&t.pty, row + 2), *draft = pty_row(&t.pty, row + 4);
    ck_assert_ptr_nonnull(strstr(worse, "worse"));
    ck_assert_ptr_nonnull(strstr(draft, "draft"));
    free(worse);
    free(draft);
    ck_assert(pty_wait_no_text(&t.pty, "queued"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, " > bad"));
    tui_finish(&t);
}
END_TEST

/* What is wrong is told in one line, and what was right before stays. */
static const struct {
    const char *typed, *says;
} wrong[] = {
    {"/xyz\r", "there is no command /xyz: /help lists them"},
    {"/hlep\r", "there is no command /hlep: did you mean /help?"},
    {"/set tmep 1\r", "there is no setting tmep: did you mean temp?"},
    {"/set xyz\r", "there is no setting xyz: /set lists them"},
    {"/set temp\r", "temp 0.8 (built-in)  Temperature; 0 always takes the best token."},
    {"/set temp 9\r", "temp: 9 is more than 5"},
    {"/set temp warm\r", "temp: 'warm' is not a number"},
    {"/set ctx 5\r", "ctx is decided before the model is loaded"},
    {"/set theme nonesuch\r", "theme nonesuch: there are auto, dark, light"},
    {"/set theme\r", "theme auto ("},
    {"/glob\r", "/glob PATTERN: which files?"},
    {"/help me\r", "/help takes no argument"},
};

START_TEST(wrong_words) {
    tui_model_text(&t, "fine");
    t.cols = 120;
    tui_start_idle(&t);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        pty_type(&t.pty, wrong[i].typed);
        ck_assert_msg(pty_wait_text(&t.pty, wrong[i].says), "%s", wrong[i].typed);
        int row = pty_find(&t.pty, wrong[i].says); /* where hints stand, not in the conversation */
        ck_assert_msg(row > t.rows / 2, "%s in row %d", wrong[i].typed, row);
    }
    tui_finish(&t);
}
END_TEST

START_TEST(editor_loses_the_file) {
    tui_model_text(&t, "fine");
    t.more_env[0] = "VISUAL=rm -f";
    tui_start_idle(&t);
    pty_type(&t.pty, "kept\007");
    ck_assert(pty_wait_text(&t.pty, "the message is as it was: "));
    ck_assert(pty_wait_text(&t.pty, " > kept"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, " > kept"));
    tui_finish(&t);
}
END_TEST

START_TEST(theme_at_the_start) {
    tui_model_text(&t, "fine");
    t.more_args[0] = "--theme";
    t.more_args[1] = "nonesuch";
    tui_start_idle(&t);
    ck_assert(pty_wait_text(&t.pty, "theme nonesuch: there are auto, dark, light"));
    pty_type(&t.pty, "go\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    tui_finish(&t);
}
END_TEST

/* What began without a place to keep things cannot keep them later, and says so. */
START_TEST(private_from_the_start) {
    tui_model_text(&t, "fine");
    t.more_args[0] = "--private";
    tui_start_idle(&t);
    pty_type(&t.pty, "/private off\r");
    ck_assert(pty_wait_text(&t.pty, "nothing can be kept in this chat: it began with --private"));
    ck_assert(pty_wait_text(&t.pty, "│ private")); /* as the bottom line goes on saying */
    tui_finish(&t);
}
END_TEST

/* A model that says 40 words, once or for ever, and `turns` answers of it. */
static void small_context(const char *n_ctx, const char *system, bool loop, int turns) {
    tui_model_words(&t, 40, loop);
    const char *const args[] = {"-c",  n_ctx, "--overflow", "drop", system ? "--system" : NULL,
                                system};
    memcpy(t.more_args, args, sizeof args);
    t.rows = 40;
    t.cols = 120;
    tui_start_idle(&t);
    for (int i = 0; i < turns; i++) {
        pty_type(&t.pty, i == 0 ? "one\r" : "two\r");
        ck_assert(pty_wait_text(&t.pty, i == 0 ? "markov  2" : "markov  4"));
        ck_assert(pty_wait_text(&t.pty, "idle"));
    }
}

/* A message that no context holds comes back, and all that was in the context still is. With a
 * long system prompt that only shows once room has been made for it. */
START_TEST(too_long_alone) {
    static const struct {
        const char *n_ctx, *system;
        int bytes;
    } of[] = {
        {"256", NULL, 2000},
        {"256", NULL, 300},
        {"320",
         "This is a system prompt of one hundred bytes, or nearly: it is said for ever and "
         "for ever, and again.",
         250},
    };
    small_context(of[_i].n_ctx, of[_i].system, false, 2);
    struct cw_buf paste = {0};
    cw_buf_puts(&paste, "\033[200~");
    for (int i = 0; i < of[_i].bytes; i++) {
        cw_buf_puts(&paste, "x");
    }
    cw_buf_puts(&paste, "yz\033[201~");
    pty_send(&t.pty, paste.data, paste.len);
    cw_buf_free(&paste);
    ck_assert(pty_wait_text(&t.pty, of[_i].bytes > 1000 ? " > [pasted" : "xyz"));
    size_t before = t.pty.raw.len;
    pty_type(&t.pty, "\r");
    char holds[64];
    snprintf(holds, sizeof holds, " tokens, the context holds %s", of[_i].n_ctx);
    ck_assert(pty_wait_text(&t.pty, holds));
    ck_assert(pty_wait_text(&t.pty, "the message is too long: "));
    ck_assert(pty_wait_text(&t.pty, of[_i].bytes > 1000 ? " > [pasted" : "xyz"));
    ck_assert(!pty_shows(&t.pty, "left the context"));
    ck_assert(_i == 2 || !pty_raw_has(&t.pty, before, "leave it")); /* not even for a moment */
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, "xyz"));
    pty_type(&t.pty, "/restore\r");
    ck_assert(pty_wait_text(&t.pty, "nothing has left the context"));
    pty_type(&t.pty, "/undo\r"); /* the second question: what failed is no move */
    ck_assert(pty_wait_text(&t.pty, " > two"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, " > two"));
    tui_finish(&t);
}
END_TEST

/* A reply that fills the context alone cannot go on, and stays what it is. */
START_TEST(full_and_continued) {
    small_context("200", NULL, true, 0);
    pty_type(&t.pty, "one\r");
    ck_assert(pty_wait_text(&t.pty, "cut: the context is full"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "/continue\r");
    ck_assert(pty_wait_text(&t.pty, "the context is full: it holds 200 tokens"));
    ck_assert(pty_shows(&t.pty, "cut: the context is full"));
    ck_assert(!pty_shows(&t.pty, "broken off"));
    tui_finish(&t);
}
END_TEST

int main(void) {
    Suite *s = suite_create("turns");
    TCase *c = tcase_create("turns");
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, waiting_is_not_reading);
    tcase_add_test(c, all_that_waited_comes_back);
    tcase_add_test(c, wrong_words);
    tcase_add_test(c, editor_loses_the_file);
    tcase_add_test(c, theme_at_the_start);
    tcase_add_test(c, private_from_the_start);
    tcase_add_loop_test(c, too_long_alone, 0, 3);
    tcase_add_test(c, full_and_continued);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
