/* SPDX-License-Identifier: MIT
 *
 * What the store means for a person at the terminal: conversations that come back as they were,
 * whole files of them, what is deleted for good, and a disk that hangs.
 */
#include <check.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/ui/tui.h"

static struct tui t;

static void setup(void) {
    tui_init(&t);
    t.cols = 120;
    t.rows = 36;
}

/* Said and answered with "reply one". */
static void said(const char *text) {
    char row[80];
    snprintf(row, sizeof row, "   %s", text);
    tui_say(&t, text);
    ck_assert(pty_wait_text(&t.pty, row));
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
}

/* The program ends and another begins on the same home. */
static void again(const char *flag) {
    tui_leave(&t);
    pty_end(&t.pty);
    tui_start_with(&t, flag, NULL);
}

static void killed(void) {
    kill(t.pty.pid, SIGKILL);
    ck_assert(pty_wait_exit(&t.pty));
    pty_end(&t.pty);
}

/* Whether a word stands in a file of the test's home, below `folder`. */
static bool home_holds(const char *word, const char *folder) {
    char command[256];
    snprintf(command, sizeof command, "grep -rq '%s' %s/%s", word, t.dir, folder);
    return system(command) == 0;
}

static size_t n_snapshots(void) {
    char pattern[128];
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/.cache/chinwag/*.kv*", t.dir);
    size_t n = glob(pattern, 0, NULL, &g) == 0 ? g.gl_pathc : 0;
    if (n > 0) {
        globfree(&g);
    }
    return n;
}

/* ---- as it was ------------------------------------------------------------------------------ */

/* System prompt and persona belong to the conversation. */
START_TEST(comes_back_with_its_persona) {
    tui_write_text(&t, ".config/chinwag/personas/odd.ini", "temp = 0.1\nbogus = 4\n");
    tui_write_text(&t, ".config/chinwag/personas/poet.ini", "system = In verse.\ntemp = 1.25\n");
    tui_write_text(&t, ".config/chinwag/config.ini", "system = As ever.\n");
    tui_model_text(&t, "reply one");
    tui_start_idle(&t);
    said("a plain question");
    tui_say(&t, "/new");
    ck_assert(pty_wait_no_text(&t.pty, "   reply one"));
    said("of a poet");
    tui_say(&t, "/persona odd");
    ck_assert(pty_wait_text(&t.pty, "odd.ini:2: unknown option 'bogus'"));
    ck_assert(pty_shows(&t.pty, "T 0.80")); /* nor the line before it */
    tui_say(&t, "/system poet");
    ck_assert(pty_wait_text(&t.pty, "T 1.25"));
    ck_assert(pty_wait_text(&t.pty, "persona poet"));
    again(NULL);
    ck_assert(pty_wait_text(&t.pty, "T 0.80"));
    tui_say(&t, "/list");
    ck_assert(pty_wait_text(&t.pty, "of a poet"));
    pty_type(&t.pty, "q");
    tui_say(&t, "/load 1");
    ck_assert(pty_wait_text(&t.pty, "   of a poet"));
    ck_assert(pty_wait_text(&t.pty, "T 1.25"));
    tui_say(&t, "/system");
    ck_assert(pty_wait_text(&t.pty, "system prompt: In verse."));
    tui_say(&t, "/system Most briefly.");
    ck_assert(pty_wait_text(&t.pty, "Most briefly."));
    tui_say(&t, "/load 2");
    ck_assert(pty_wait_text(&t.pty, "   a plain question"));
    tui_say(&t, "/system");
    ck_assert(pty_wait_text(&t.pty, "system prompt: As ever."));
    tui_say(&t, "/load 1");
    ck_assert(pty_wait_text(&t.pty, "   of a poet"));
    tui_say(&t, "/system"); /* as it was changed last */
    ck_assert(pty_wait_text(&t.pty, "system prompt: Most briefly."));
    tui_finish(&t);
}
END_TEST

/* A question that the template refuses goes back to the person; the one that is sent instead stands
 * in its place, also in the store. */
START_TEST(a_refused_question_leaves_no_trace) {
    struct markov m;
    struct cw_buf out = {0};
    char args[64];
    markov_init(&m);
    m.chat_template = "{% for m in messages %}{% if 'bad' in m.content %}"
                      "{{ raise_exception('not that') }}{% endif %}{{ m.role }}\n{{ m.content }}\n"
                      "{% endfor %}assistant{{ '\n' }}";
    markov_text(&m, "reply one");
    markov_save(&m, t.model);
    markov_free(&m);
    tui_start_idle(&t);
    said("a first question");
    tui_say(&t, "a bad question");
    ck_assert(pty_wait_text(&t.pty, "not that"));
    ck_assert(pty_wait_text(&t.pty, " > a bad question"));
    pty_type(&t.pty, "\003");
    tui_say(&t, "a good question");
    ck_assert(pty_wait_text(&t.pty, "   a good question"));
    ck_assert(pty_wait_text(&t.pty, "markov  4"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_leave(&t);
    pty_end(&t.pty);
    ck_assert_int_eq(tui_command(&t, &out, "conversations"), 0);
    ck_assert_ptr_nonnull(strstr(out.data, "     4  a first question"));
    snprintf(args, sizeof args, "export %.13s --format json", out.data);
    ck_assert_int_eq(tui_command(&t, &out, args), 0);
    ck_assert_ptr_nonnull(strstr(out.data, "a good question"));
    ck_assert_ptr_null(strstr(out.data, "a bad question"));
    tui_start_with(&t, "--continue", NULL);
    ck_assert(pty_wait_text(&t.pty, "   a good question"));
    pty_type(&t.pty, "\033[1;4D");
    ck_assert(pty_wait_text(&t.pty, "no branches yet"));
    cw_buf_free(&out);
    tui_finish(&t);
}
END_TEST

static bool question_is_kept(struct pty *p, const void *arg) {
    (void)p;
    (void)arg;
    return home_holds("words words", ".local/share");
}

/* Killed while the question is being read: it stands ready, and what is sent again is no second
 * branch. */
START_TEST(killed_before_the_reply) {
    struct cw_buf paste = {0};
    tui_model_words(&t, 3000, true); /* wide: slow */
    tui_start_idle(&t);
    cw_buf_puts(&paste, "\033[200~");
    for (int i = 0; i < 1000; i++) {
        cw_buf_puts(&paste, "words ");
    }
    cw_buf_puts(&paste, "at last\033[201~\r");
    pty_send(&t.pty, paste.data, paste.len);
    cw_buf_free(&paste);
    ck_assert(pty_wait_text(&t.pty, "reading"));
    ck_assert(pty_wait(&t.pty, question_is_kept, NULL, "the question in the store"));
    killed();
    tui_start_with(&t, "--continue", NULL);
    ck_assert(pty_wait_text(&t.pty, "has no reply yet"));
    ck_assert(pty_wait_text(&t.pty, "> [pasted 6007 bytes]"));
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "reading"));
    pty_type(&t.pty, "\033");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "\003\033[1;4D");
    ck_assert(pty_wait_text(&t.pty, "no branches yet"));
    tui_finish(&t);
}
END_TEST

/* A question that was undone and is sent again unchanged gets another reply, not a twin. */
START_TEST(asked_again) {
    tui_model_text(&t, "reply one");
    tui_start_idle(&t);
    said("a question");
    tui_say(&t, "/undo");
    ck_assert(pty_wait_text(&t.pty, " > a question"));
    ck_assert(pty_wait_no_text(&t.pty, "   reply one"));
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "2 · 2/2"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(pty_wait_no_text(&t.pty, "1 · "));
    tui_finish(&t);
}
END_TEST

/* ---- files ---------------------------------------------------------------------------------- */

/* Every format, from a chat that is not kept; the two JSON ones make the same again. */
START_TEST(exports) {
    static const char *const formats[] = {"md", "json", "jsonl", "txt", "html"};
    struct cw_buf out = {0};
    char text[192];
    tui_model_text(&t, "reply one");
    t.more_args[0] = "--private";
    tui_start_idle(&t);
    tui_say(&t, "/export a.md");
    ck_assert(pty_wait_text(&t.pty, "nothing to export"));
    said("a question");
    tui_say(&t, "/edit 1 another one");
    ck_assert(pty_wait_text(&t.pty, "1 · 2/2"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    for (size_t i = 0; i < 5; i++) {
        snprintf(text, sizeof text, "/export talk.%s", formats[i]);
        tui_say(&t, text);
        snprintf(text, sizeof text, "kB to talk.%s", formats[i]);
        ck_assert(pty_wait_text(&t.pty, text));
    }
    tui_say(&t, "/export talk.md");
    ck_assert(pty_wait_text(&t.pty, "is there already: /export over talk.md"));
    tui_say(&t, "/export pdf talk.pdf");
    ck_assert(pty_wait_text(&t.pty, "that name tells none"));
    tui_say(&t, "/export json over talk.md");
    ck_assert(pty_wait_text(&t.pty, "kB to talk.md"));
    tui_leave(&t);
    for (size_t i = 1; i <= 2; i++) {
        snprintf(text, sizeof text, "import %s/talk.%s", t.dir, formats[i]);
        ck_assert_int_eq(tui_command(&t, &out, text), 0);
        snprintf(text, sizeof text, "export %.13s --format %s -o %s/again.%s", out.data, formats[i],
                 t.dir, formats[i]);
        ck_assert_int_eq(tui_command(&t, &out, text), 0);
        snprintf(text, sizeof text, "cd %s && cmp talk.%s again.%s", t.dir, formats[i], formats[i]);
        ck_assert_int_eq(system(text), 0);
    }
    snprintf(text, sizeof text, "cd %s && cmp talk.md talk.json && grep -q 'another one' talk.html",
             t.dir);
    ck_assert_int_eq(system(text), 0);
    cw_buf_free(&out);
    tui_end(&t);
}
END_TEST

/* ---- for good ------------------------------------------------------------------------------- */

/* Deleted, and then killed: what is left of it goes in the next run, once there is time. */
START_TEST(deleted_and_killed) {
    t.rows = 60; /* the whole reply */
    tui_model_words(&t, 400, false);
    tui_start_idle(&t);
    tui_say(&t, "a question like xylophone");
    ck_assert(pty_wait_text(&t.pty, "w0399."));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    again("--continue");
    ck_assert(pty_wait_text(&t.pty, "w0399."));
    tui_say(&t, "/delete");
    ck_assert(pty_wait_text(&t.pty, "deleted"));
    ck_assert(pty_wait_no_text(&t.pty, "w0399."));
    pty_pump(&t.pty, 1000);
    killed();
    ck_assert_uint_eq(n_snapshots(), 1);
    ck_assert(home_holds("xylophone", ".local/share"));
    tui_start_with(&t, NULL, NULL);
    for (int i = 0; i < 1200 && (n_snapshots() > 0 || home_holds("xylophone", ".local/share"));
         i++) {
        pty_pump(&t.pty, 100);
    }
    ck_assert_uint_eq(n_snapshots(), 0);
    ck_assert(!home_holds("xylophone", ".local/share"));
    tui_say(&t, "and it goes on");
    ck_assert(pty_wait_text(&t.pty, "w0399."));
    tui_finish(&t);
}
END_TEST

/* ---- a disk that hangs ---------------------------------------------------------------------- */

/* No sync comes back: typing, the reply and commands go on all the while, and are saved later. */
START_TEST(held_disk) {
    const char *library = getenv("CHINWAG_HELD_SYNC");
    static char preload[512], hold[128], held[128];
    struct cw_buf out = {0};
    char args[64];
    if (library == NULL || library[0] == '\0') {
        printf("skipped: nothing can be loaded before a sanitizer\n");
        tui_end(&t);
        return;
    }
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s", library);
    snprintf(hold, sizeof hold, "CHINWAG_HOLD=%s/hold", t.dir);
    snprintf(held, sizeof held, "CHINWAG_HELD=%s/held", t.dir);
    t.more_env[0] = preload;
    t.more_env[1] = hold;
    t.more_env[2] = held;
    tui_model_words(&t, 6000, true);
    tui_start_idle(&t);
    tui_say(&t, "a question before");
    ck_assert(pty_wait_text(&t.pty, "w0020"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_write_text(&t, "hold", "");
    size_t from = t.pty.raw.len;
    tui_say(&t, "a question meanwhile");
    for (int i = 0; i < 600 && access(held + strlen("CHINWAG_HELD="), F_OK) != 0; i++) {
        pty_pump(&t.pty, 100);
    }
    ck_assert_int_eq(access(held + strlen("CHINWAG_HELD="), F_OK), 0); /* it hangs */
    pty_type(&t.pty, "typed all the while");
    ck_assert(pty_wait_text(&t.pty, " > typed all the while"));
    ck_assert(pty_wait_raw(&t.pty, from, "w0200"));
    pty_type(&t.pty, "\025"); /* Ctrl+U */
    ck_assert(pty_wait_no_text(&t.pty, " > typed"));
    tui_say(&t, "/set temp 0.5");
    ck_assert(pty_wait_text(&t.pty, "T 0.50"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "stopped"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/tree");
    ck_assert(pty_wait_text(&t.pty, "Branches of"));
    pty_type(&t.pty, "q");
    ck_assert(pty_wait_no_text(&t.pty, "Branches of"));
    ck_assert_int_eq(unlink(hold + strlen("CHINWAG_HOLD=")), 0);
    tui_leave(&t);
    ck_assert_int_eq(tui_command(&t, &out, "conversations"), 0);
    snprintf(args, sizeof args, "export %.13s --format txt", out.data);
    ck_assert_int_eq(tui_command(&t, &out, args), 0);
    const char *at = strstr(out.data, "a question meanwhile");
    ck_assert_ptr_nonnull(at);
    ck_assert_ptr_nonnull(strstr(at, "w0200"));
    cw_buf_free(&out);
    tui_end(&t);
}
END_TEST

int main(void) {
    Suite *s = suite_create("tui store");
    TCase *c = tcase_create("store");
    tcase_set_timeout(c, 300);
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, comes_back_with_its_persona);
    tcase_add_test(c, a_refused_question_leaves_no_trace);
    tcase_add_test(c, killed_before_the_reply);
    tcase_add_test(c, asked_again);
    tcase_add_test(c, exports);
    tcase_add_test(c, deleted_and_killed);
    tcase_add_test(c, held_disk);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
