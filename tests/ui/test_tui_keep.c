/* SPDX-License-Identifier: MIT
 *
 * Conversations that are kept: the real program ends, by itself or killed, and starts again.
 *
 * CHINWAG_KILLS sets how often it is killed in the midst of a reply (2 in the suite, see
 * tests/store/campaign.sh for more).
 */
#include <check.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chinwag/clock.h"
#include "tests/ui/tui.h"

static struct tui t;

static void setup(void) {
    tui_init(&t);
    t.cols = 120;
    t.rows = 36;
}

/* The test's folder, after the last program was ended. */
static void sweep(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", t.dir);
    ck_assert_int_eq(system(command), 0);
}

/* Branches, numbers of tokens and the ability to replay come back. */
START_TEST(comes_back) {
    tui_model_text(&t, "reply one");
    tui_start_idle(&t);
    tui_say(&t, "first question");
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/regen");
    ck_assert(pty_wait_text(&t.pty, "2 · 2/2"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/edit 2 edited words");
    ck_assert(pty_wait_text(&t.pty, "2 · 3/3"));
    pty_type(&t.pty, "\033[1;4D");
    ck_assert(pty_wait_text(&t.pty, "2 · 2/3"));
    tui_say(&t, "/rename A fine talk");
    ck_assert(pty_wait_text(&t.pty, "A fine talk"));
    tui_leave(&t);
    pty_end(&t.pty);
    tui_start_with(&t, "--continue", NULL);
    ck_assert(pty_wait_text(&t.pty, "   first question"));
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "2 · 2/3"));
    tui_say(&t, "/replay");
    ck_assert(pty_wait_text(&t.pty, "the same "));
    ck_assert(pty_wait_no_text(&t.pty, "Ctrl+C stops"));
    pty_type(&t.pty, "\033[1;4C");
    ck_assert(pty_wait_text(&t.pty, "   edited words"));
    ck_assert(pty_wait_text(&t.pty, "edited"));
    tui_say(&t, "second question");
    ck_assert(pty_wait_text(&t.pty, "   second question"));
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/new");
    ck_assert(pty_wait_no_text(&t.pty, "   second question"));
    tui_say(&t, "/list second");
    ck_assert(pty_wait_text(&t.pty, "A fine talk"));
    pty_type(&t.pty, "q");
    tui_say(&t, "/load 1");
    ck_assert(pty_wait_text(&t.pty, "   second question"));
    ck_assert(pty_wait_text(&t.pty, "   edited words"));
    tui_finish(&t);
}
END_TEST

static int run(struct cw_buf *out, const char *args) {
    return tui_command(&t, out, args);
}

/* Snapshots that lie in the cache; *path (may be NULL) is the first. Caller must free. */
static size_t count_snapshots(char **path) {
    char pattern[128];
    glob_t g;
    snprintf(pattern, sizeof pattern, "%s/.cache/chinwag/*.kv*", t.dir);
    int rc = glob(pattern, 0, NULL, &g);
    size_t n = rc == 0 ? g.gl_pathc : 0;
    if (path != NULL) {
        *path = n > 0 ? cw_strdup(g.gl_pathv[0]) : NULL;
    }
    if (rc == 0) {
        globfree(&g);
    }
    return n;
}

/* ---- killed --------------------------------------------------------------------------------- */

/* The number of the last word "wNNNN" of the text, or -1. */
static int last_word(const char *text) {
    int last = -1;
    for (const char *p = text; (p = strchr(p, 'w')) != NULL; p++) {
        int n, used = 0;
        if (sscanf(p, "w%4d%n", &n, &used) == 1 && used == 5) {
            last = n;
        }
    }
    return last;
}

/* What was shown a second ago is there after kill -9, and so is all of the times before. */
START_TEST(killed_in_mid_reply) {
    const char *kills = getenv("CHINWAG_KILLS");
    int n = kills != NULL ? atoi(kills) : 2;
    int *shown = cw_calloc((size_t)n + 1, sizeof *shown);
    struct cw_buf out = {0};
    unsigned seed = 7;
    tui_model_words(&t, 6000, true);
    for (int i = 0; i < n; i++) {
        char question[40], row[48];
        snprintf(question, sizeof question, "question number %d", i);
        snprintf(row, sizeof row, "   %s", question);
        tui_start_with(&t, i > 0 ? "--continue" : NULL, NULL);
        if (i > 0) {
            ck_assert(pty_wait_text(&t.pty, "stopped"));
        }
        size_t from = t.pty.raw.len;
        tui_say(&t, question);
        ck_assert(pty_wait_raw(&t.pty, from, "w0002"));
        seed = seed * 1664525u + 1013904223u;
        double until = cw_now() + (double)(seed >> 8 & 1023) / 1000;
        while (cw_now() < until) {
            ck_assert(pty_pump(&t.pty, PTY_DEADLINE_MS));
        }
        char *screen = pty_screen(&t.pty);
        shown[i] = last_word(screen);
        free(screen);
        ck_assert_int_ge(shown[i], 0);
        for (until = cw_now() + 1.0; cw_now() < until;) {
            ck_assert(pty_pump(&t.pty, PTY_DEADLINE_MS));
        }
        kill(t.pty.pid, SIGKILL);
        ck_assert(pty_wait_exit(&t.pty));
        pty_end(&t.pty);
        ck_assert_int_eq(run(&out, "conversations"), 0);
        char args[64];
        snprintf(args, sizeof args, "export %.13s --format txt", out.data);
        ck_assert_int_eq(run(&out, args), 0);
        const char *at = out.data;
        for (int k = 0; k <= i; k++) {
            char word[16];
            snprintf(question, sizeof question, "question number %d", k);
            snprintf(word, sizeof word, "w%04d", shown[k]);
            at = strstr(at, question);
            ck_assert_msg(at != NULL, "after kill %d: '%s' is lost", i, question);
            at = strstr(at, word);
            ck_assert_msg(at != NULL, "after kill %d: %s of reply %d is lost", i, word, k);
        }
    }
    tui_start_with(&t, "--continue", NULL);
    ck_assert(pty_wait_text(&t.pty, "stopped"));
    tui_finish(&t);
    cw_buf_free(&out);
    free(shown);
}
END_TEST

/* ---- snapshots ------------------------------------------------------------------------------ */

enum { N_WORDS = 400 };

/* A conversation whose first turn is long, kept, and the program left. */
static void long_chat(void) {
    t.rows = 60; /* a whole reply with its heading, however fast it came */
    tui_model_words(&t, N_WORDS, false);
    tui_start_idle(&t);
    tui_say(&t, "a question to remember");
    ck_assert(pty_wait_text(&t.pty, "w0399."));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_leave(&t);
    pty_end(&t.pty);
}

/* Tokens of the last prompt that were in the cache, by /why. */
static int n_reused(void) {
    int reused = -1, prompt, evaluated;
    /* the figures stand there when the reply is whole, which the bottom line tells a little late */
    for (int i = 0; i < 300; i++) {
        tui_say(&t, "/why");
        ck_assert(pty_wait_text(&t.pty, "Settings at its start"));
        if (pty_shows(&t.pty, " from the cache, ")) {
            break;
        }
        pty_type(&t.pty, "q");
        ck_assert(pty_wait_no_text(&t.pty, "Settings at its start"));
        pty_pump(&t.pty, 200);
    }
    ck_assert(pty_wait_text(&t.pty, " from the cache, "));
    char *row = pty_row(&t.pty, pty_find(&t.pty, " from the cache, "));
    const char *at = strstr(row, "prompt");
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(sscanf(at, "prompt %d tokens: %d from the cache, %d evaluated", &prompt,
                            &reused, &evaluated),
                     3);
    free(row);
    pty_type(&t.pty, "q");
    ck_assert(pty_wait_no_text(&t.pty, " from the cache, "));
    return reused;
}

START_TEST(goes_on_from_a_snapshot) {
    long_chat();
    ck_assert_uint_eq(count_snapshots(NULL), 1);
    tui_start_with(&t, "--continue", NULL);
    ck_assert(pty_wait_text(&t.pty, "w0399."));
    tui_say(&t, "and now");
    ck_assert(pty_wait_text(&t.pty, "   and now"));
    ck_assert(pty_wait_text(&t.pty, "markov  4"));
    ck_assert_int_gt(n_reused(), N_WORDS);
    ck_assert(!pty_shows(&t.pty, "evaluated anew"));
    tui_say(&t, "/delete");
    ck_assert(pty_wait_text(&t.pty, "deleted"));
    tui_leave(&t);
    ck_assert_uint_eq(count_snapshots(NULL), 0); /* with the rest of it */
    tui_end(&t);
}
END_TEST

/* Whatever is wrong with a snapshot, the chat goes on and says so, once. */
START_TEST(bad_snapshot_is_said) {
    char *path;
    t.cols = 150;
    long_chat();
    ck_assert_uint_eq(count_snapshots(&path), 1);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, "xxxxxxxxxxxxxxxx", 16, 100), 16);
    close(fd);
    free(path);
    tui_start_with(&t, "--continue", NULL);
    ck_assert(pty_wait_text(&t.pty, "w0399."));
    tui_say(&t, "and now");
    ck_assert(pty_wait_text(&t.pty, "   and now"));
    ck_assert(pty_wait_text(&t.pty, "markov  4"));
    ck_assert(pty_wait_raw(&t.pty, 0, "the chat is evaluated anew:"));
    ck_assert(pty_wait_text(&t.pty, "snapshot not usable"));
    ck_assert_int_lt(n_reused(), N_WORDS);
    tui_say(&t, "once more");
    ck_assert(pty_wait_text(&t.pty, "   once more"));
    ck_assert(pty_wait_text(&t.pty, "markov  6"));
    ck_assert(pty_wait_no_text(&t.pty, "snapshot not usable"));
    n_reused(); /* the reply is whole */
    tui_leave(&t);
    pty_end(&t.pty);
    tui_start_with(&t, "--continue", NULL); /* the new one is good */
    ck_assert(pty_wait_text(&t.pty, "w0399."));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "at last");
    ck_assert(pty_wait_text(&t.pty, "   at last"));
    ck_assert(pty_wait_text(&t.pty, "markov  8"));
    ck_assert_int_gt(n_reused(), N_WORDS);
    tui_leave(&t);
    pty_end(&t.pty);
    struct cw_buf out = {0};
    ck_assert_int_eq(run(&out, "forget --all"), 0);
    ck_assert_uint_eq(count_snapshots(NULL), 0);
    cw_buf_free(&out);
    sweep();
}
END_TEST

static const char *const without_snapshots[][2] = {{"--cache-disk", "0"}, {"--private", NULL}};

START_TEST(no_snapshot) {
    memcpy(t.more_args, without_snapshots[_i], sizeof without_snapshots[_i]);
    long_chat();
    ck_assert_uint_eq(count_snapshots(NULL), 0);
    sweep();
}
END_TEST

/* ---- taking one up -------------------------------------------------------------------------- */

static void said(const char *text) {
    char row[80];
    snprintf(row, sizeof row, "   %s", text);
    tui_say(&t, text);
    ck_assert(pty_wait_text(&t.pty, row));
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
}

START_TEST(chosen_from_a_list) {
    static const char *const talks[] = {"about apples", "about pears", "about plums"};
    char name[14] = "";
    tui_model_text(&t, "reply one");
    tui_start_idle(&t);
    for (int i = 0; i < 3; i++) {
        said(talks[i]);
        if (i == 1) {
            tui_say(&t, "and something of quinces");
            ck_assert(pty_wait_text(&t.pty, "   and something of quinces"));
            ck_assert(pty_wait_text(&t.pty, "markov  4"));
            ck_assert(pty_wait_text(&t.pty, "idle"));
        }
        tui_say(&t, "/new");
        ck_assert(pty_wait_no_text(&t.pty, "   reply one"));
    }
    tui_say(&t, "/load");
    ck_assert(pty_wait_text(&t.pty, "3 of 3"));
    ck_assert(pty_wait_text(&t.pty, "> about plums"));
    pty_type(&t.pty, "\033[B\033[B");
    ck_assert(pty_wait_text(&t.pty, "> about apples"));
    pty_type(&t.pty, "quinc"); /* stands in a text only */
    ck_assert(pty_wait_text(&t.pty, "1 of 1"));
    ck_assert(pty_wait_text(&t.pty, "something of quinces"));
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "   and something of quinces"));
    ck_assert(pty_wait_no_text(&t.pty, "1 of 1"));
    tui_say(&t, "/load");
    ck_assert(pty_wait_text(&t.pty, "this one"));
    pty_type(&t.pty, "nothing like that");
    ck_assert(pty_wait_text(&t.pty, "nothing matches"));
    pty_type(&t.pty, "\r\033"); /* Enter has nothing to take */
    ck_assert(pty_wait_no_text(&t.pty, "nothing matches"));
    ck_assert(pty_wait_text(&t.pty, "   and something of quinces"));
    pty_type(&t.pty, "\033OQ");
    ck_assert(pty_wait_text(&t.pty, "/help"));
    pty_type(&t.pty, "about apples");
    ck_assert(pty_wait_text(&t.pty, "> about apples"));
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "   about apples"));
    ck_assert(pty_wait_no_text(&t.pty, "quinces"));
    pty_type(&t.pty, "\033OQ");
    ck_assert(pty_wait_text(&t.pty, "/help"));
    pty_type(&t.pty, "something of quin"); /* stands in a text only, there too */
    ck_assert(pty_wait_text(&t.pty, "> about pears"));
    ck_assert(pty_wait_text(&t.pty, "something of quinces"));
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "   and something of quinces"));
    ck_assert(pty_wait_no_text(&t.pty, "   about apples"));
    tui_leave(&t);
    pty_end(&t.pty);
    /* by name, the beginning of one, and one that is none */
    struct cw_buf out = {0};
    ck_assert_int_eq(run(&out, "conversations search plums"), 0);
    memcpy(name, out.data, 13);
    cw_buf_free(&out);
    tui_start_with(&t, "--resume", name);
    ck_assert(pty_wait_text(&t.pty, "   about plums"));
    tui_leave(&t);
    pty_end(&t.pty);
    name[12] = '\0';
    tui_start_with(&t, "--resume", name);
    ck_assert(pty_wait_text(&t.pty, "   about plums"));
    tui_leave(&t);
    pty_end(&t.pty);
    tui_start_with(&t, "--resume", "none-of-that-name");
    ck_assert(pty_wait_text(&t.pty, "none-of-that-name: no such conversation"));
    tui_finish(&t);
}
END_TEST

/* ---- two programs --------------------------------------------------------------------------- */

START_TEST(two_programs) {
    struct cw_buf out = {0};
    char args[64];
    tui_model_text(&t, "reply one");
    tui_start_idle(&t);
    said("the first question");
    struct tui first = t;
    tui_start_with(&t, "--continue", NULL);
    ck_assert(pty_wait_text(&t.pty, "open in another program"));
    ck_assert(pty_wait_text(&t.pty, "   the first question"));
    said("of the second program");
    struct tui second = t;
    t = first;
    said("of the first program");
    ck_assert(!pty_shows(&t.pty, "second program"));
    first = t;
    t = second;
    said("and more of it");
    tui_say(&t, "/edit 1 overwritten?"); /* a branch like any other */
    ck_assert(pty_wait_text(&t.pty, "   overwritten?"));
    ck_assert(pty_wait_text(&t.pty, "1 · 2/2"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_leave(&t);
    pty_end(&t.pty);
    t = first;
    tui_leave(&t);
    pty_end(&t.pty);
    tui_start_with(&t, "--continue", NULL);
    ck_assert(pty_wait_text(&t.pty, "   of the first program")); /* the owner's place */
    ck_assert(pty_wait_text(&t.pty, "   the first question"));
    tui_say(&t, "/tree");
    ck_assert(pty_wait_text(&t.pty, "of the first program"));
    ck_assert(pty_wait_text(&t.pty, "of the second program"));
    ck_assert(pty_wait_text(&t.pty, "and more of it"));
    ck_assert(pty_wait_text(&t.pty, "overwritten?"));
    pty_type(&t.pty, "q");
    tui_leave(&t);
    pty_end(&t.pty);
    ck_assert_int_eq(run(&out, "conversations"), 0);
    snprintf(args, sizeof args, "export %.13s --format json", out.data);
    ck_assert_int_eq(run(&out, args), 0);
    ck_assert_ptr_nonnull(strstr(out.data, "the first question"));
    cw_buf_free(&out);
    sweep();
}
END_TEST

/* A store with what this file holds, imported, and taken up. */
static void take_up(const char *json) {
    char path[128], args[192], id[14];
    struct cw_buf out = {0};
    tui_model_text(&t, "reply one");
    tui_start_idle(&t);
    tui_leave(&t);
    pty_end(&t.pty);
    snprintf(path, sizeof path, "%s/in.json", t.dir);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(json, f);
    ck_assert_int_eq(fclose(f), 0);
    snprintf(args, sizeof args, "import %s", path);
    ck_assert_int_eq(run(&out, args), 0);
    snprintf(id, sizeof id, "%.13s", out.data);
    cw_buf_free(&out);
    tui_start_with(&t, "--resume", id);
}

/* Messages that cannot stand in turns are passed over; what follows them is shown. */
START_TEST(out_of_turn_is_passed_over) {
    take_up("{\"conversations\":[{\"from\":\"gpt\",\"value\":\"a zero\"},"
            "{\"from\":\"human\",\"value\":\"q one\"},{\"from\":\"gpt\",\"value\":\"a one\"},"
            "{\"from\":\"gpt\",\"value\":\"a more\"},{\"from\":\"human\",\"value\":\"q two\"},"
            "{\"from\":\"gpt\",\"value\":\"a two\"}]}");
    ck_assert(pty_wait_text(&t.pty, "   q one"));
    ck_assert(pty_wait_text(&t.pty, "   a one"));
    ck_assert(pty_wait_text(&t.pty, "   q two"));
    ck_assert(pty_wait_text(&t.pty, "   a two"));
    ck_assert(pty_wait_text(&t.pty, "2 messages are of another role"));
    ck_assert(!pty_shows(&t.pty, "a zero"));
    ck_assert(!pty_shows(&t.pty, "a more"));
    tui_finish(&t);
}
END_TEST

/* A message that nobody answered, as an imported conversation may end: it stands ready again. */
START_TEST(unanswered_stands_ready) {
    take_up("{\"messages\":[{\"role\":\"user\",\"content\":\"q one\"},"
            "{\"role\":\"assistant\",\"content\":\"a one\"},"
            "{\"role\":\"user\",\"content\":\"q two\"}]}");
    ck_assert(pty_wait_text(&t.pty, "   a one"));
    ck_assert(pty_wait_text(&t.pty, "has no reply yet"));
    ck_assert(pty_wait_text(&t.pty, "> q two"));
    ck_assert(pty_wait_no_text(&t.pty, "seed 0")); /* nothing was drawn here */
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "   q two"));
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_leave(&t);
    tui_end(&t);
}
END_TEST

/* ---- where nothing can be written ----------------------------------------------------------- */

/* The disk is full in the midst of a chat, and has room again later. */
START_TEST(disk_full) {
    struct rlimit before, small;
    struct cw_buf out = {0};
    char args[64];
    tui_model_words(&t, 6000, true);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    tui_start_idle(&t);
    tui_say(&t, "a question before");
    ck_assert(pty_wait_text(&t.pty, "w0020"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    small = before;
    small.rlim_cur = 4096;
    ck_assert_int_eq(prlimit(t.pty.pid, RLIMIT_FSIZE, &small, NULL), 0);
    tui_say(&t, "a question on a full disk");
    ck_assert(pty_wait_text(&t.pty, "cannot be saved now"));
    ck_assert(pty_wait_text(&t.pty, "answering"));
    size_t from = t.pty.raw.len;
    ck_assert(pty_wait_raw(&t.pty, from, "w0200"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    from = t.pty.raw.len;
    tui_say(&t, "and one more");
    ck_assert(pty_wait_raw(&t.pty, from, "w0020"));
    ck_assert(!pty_raw_has(&t.pty, from, "cannot be saved now")); /* said once */
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert_int_eq(prlimit(t.pty.pid, RLIMIT_FSIZE, &before, NULL), 0);
    ck_assert(pty_wait_text(&t.pty, "is saved again"));
    tui_leave(&t);
    pty_end(&t.pty);
    ck_assert_int_eq(run(&out, "conversations"), 0);
    snprintf(args, sizeof args, "export %.13s --format txt", out.data);
    ck_assert_int_eq(run(&out, args), 0);
    const char *at = strstr(out.data, "a question before");
    ck_assert_ptr_nonnull(at);
    at = strstr(at, "a question on a full disk");
    ck_assert_ptr_nonnull(at);
    at = strstr(at, "w0200");
    ck_assert_ptr_nonnull(at);
    ck_assert_ptr_nonnull(strstr(at, "and one more"));
    cw_buf_free(&out);
    sweep();
}
END_TEST

/* A home in which nothing can be made, for nobody: said, and the chat goes on. */
START_TEST(read_only_home) {
    tui_model_text(&t, "reply one");
    t.home = "/proc/self";
    tui_start_idle(&t);
    ck_assert(pty_wait_text(&t.pty, "cannot be saved now"));
    said("a question");
    said("another one");
    tui_say(&t, "/regen");
    ck_assert(pty_wait_text(&t.pty, "4 · 2/2"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/load");
    ck_assert(pty_wait_text(&t.pty, "── /proc/self")); /* and no page of nothing */
    tui_leave(&t);
    ck_assert(WIFEXITED(t.pty.status));
    ck_assert_int_eq(WEXITSTATUS(t.pty.status), 0);
    ck_assert(pty_raw_has(&t.pty, 0, "chinwag: conversations: "));
    tui_end(&t);
}
END_TEST

/* ---- thinking that was ended ---------------------------------------------------------------- */

/* Where the person ended it is kept, so that it can be drawn again, also in another run. */
START_TEST(ended_thinking_is_kept) {
    struct markov m;
    markov_init(&m);
    m.n_ctx = 65536;
    m.chat_template = "{% for m in messages %}{{ m.role }}\n{{ m.content }}\n{% endfor %}"
                      "assistant\n<think>{{ '\n' }}";
    for (int i = 0; i < 3000; i++) { /* wide, so that it is slow enough to be stopped */
        char word[16];
        snprintf(word, sizeof word, "w%04d ", i);
        markov_text(&m, word);
    }
    markov_loop(&m, 0);
    markov_save(&m, t.model);
    markov_free(&m);
    tui_start_idle(&t);
    tui_say(&t, "think");
    ck_assert(pty_wait_text(&t.pty, "w0010"));
    pty_type(&t.pty, "\033[1;4F");                           /* answer now */
    ck_assert(pty_wait_text(&t.pty, "▸ markov (thinking)")); /* folded as the answer begins, */
    ck_assert(pty_wait_text(&t.pty, "answering"));           /* not as it ends */
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "stopped"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/replay");
    ck_assert(pty_wait_text(&t.pty, "the same "));
    tui_leave(&t);
    pty_end(&t.pty);
    tui_start_with(&t, "--continue", NULL);
    ck_assert(pty_wait_text(&t.pty, "▸ markov (thinking)"));
    tui_say(&t, "/replay");
    ck_assert(pty_wait_text(&t.pty, "the same "));
    tui_finish(&t);
}
END_TEST

/* ---- kept from the disk --------------------------------------------------------------------- */

START_TEST(private_leaves_nothing) {
    char command[256];
    tui_model_text(&t, "reply one");
    t.more_args[0] = "--private";
    tui_start_idle(&t);
    ck_assert(pty_wait_text(&t.pty, "private"));
    tui_say(&t, "a word like xylophone");
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/list");
    ck_assert(pty_wait_text(&t.pty, "nothing is kept"));
    tui_leave(&t);
    snprintf(command, sizeof command, "grep -rq xylophone %s/.local %s/.config 2>/dev/null", t.dir,
             t.dir);
    ck_assert_int_ne(system(command), 0);
    tui_end(&t);
}
END_TEST

START_TEST(private_stays_private) {
    char command[256];
    tui_model_text(&t, "reply one");
    tui_start_idle(&t);
    tui_say(&t, "said in the open");
    ck_assert(pty_wait_text(&t.pty, "markov  2"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/private");
    ck_assert(pty_wait_text(&t.pty, "nothing from here on"));
    tui_say(&t, "a word like xylophone");
    ck_assert(pty_wait_text(&t.pty, "markov  4"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/private off");
    ck_assert(pty_wait_text(&t.pty, "is not to be kept"));
    tui_say(&t, "/new");
    ck_assert(pty_wait_no_text(&t.pty, "xylophone"));
    tui_say(&t, "/private off");
    ck_assert(pty_wait_text(&t.pty, "what is said is kept"));
    tui_say(&t, "kept again");
    ck_assert(pty_wait_text(&t.pty, "markov  2"));
    tui_say(&t, "/rename a better name");
    ck_assert(pty_wait_text(&t.pty, " · a better name"));
    tui_leave(&t);
    snprintf(command, sizeof command, "grep -rq xylophone %s/.local %s/.cache", t.dir, t.dir);
    ck_assert_int_ne(WEXITSTATUS(system(command)), 0);
    snprintf(command, sizeof command, "cd %s/.local && grep -rq 'kept again' . && grep -rq open .",
             t.dir);
    ck_assert_int_eq(system(command), 0);
    tui_end(&t);
}
END_TEST

START_TEST(deleted_is_gone) {
    char command[256];
    tui_model_text(&t, "reply one");
    tui_start_idle(&t);
    tui_say(&t, "/persona stays here"); /* typed, but no part of the conversation */
    tui_say(&t, "a word like xylophone");
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/edit 1 a word like xylophone and marimba");
    ck_assert(pty_wait_text(&t.pty, "   a word like xylophone and marimba"));
    ck_assert(pty_wait_text(&t.pty, "2/2"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_say(&t, "/delete");
    ck_assert(pty_wait_text(&t.pty, "deleted"));
    ck_assert(pty_wait_no_text(&t.pty, "   reply one"));
    tui_say(&t, "/undelete");
    ck_assert(pty_wait_text(&t.pty, "   a word like xylophone"));
    tui_say(&t, "/delete");
    ck_assert(pty_wait_no_text(&t.pty, "   a word like xylophone"));
    tui_leave(&t);
    snprintf(command, sizeof command, "grep -rq xylophone %s/.local %s/.config %s/.cache", t.dir,
             t.dir, t.dir);
    ck_assert_int_ne(WEXITSTATUS(system(command)), 0);
    snprintf(command, sizeof command, "grep -rq 'stays here' %s/.local/state", t.dir);
    ck_assert_int_eq(system(command), 0);
    tui_end(&t);
}
END_TEST

static TCase *add_case(Suite *s, const char *name, int timeout_s) {
    TCase *c = tcase_create(name);
    tcase_set_timeout(c, timeout_s);
    tcase_add_checked_fixture(c, setup, NULL);
    suite_add_tcase(s, c);
    return c;
}

int main(void) {
    const char *kills = getenv("CHINWAG_KILLS");
    Suite *s = suite_create("keep");
    TCase *c = add_case(s, "keep", 300);
    tcase_add_test(c, comes_back);
    tcase_add_test(c, private_leaves_nothing);
    tcase_add_test(c, private_stays_private);
    tcase_add_test(c, deleted_is_gone);
    tcase_add_test(c, ended_thinking_is_kept);
    c = add_case(s, "killed", 300 + (kills != NULL ? 30 * atoi(kills) : 0));
    tcase_add_test(c, killed_in_mid_reply);
    c = add_case(s, "snapshots", 300);
    tcase_add_test(c, goes_on_from_a_snapshot);
    tcase_add_test(c, bad_snapshot_is_said);
    tcase_add_loop_test(c, no_snapshot, 0, 2);
    c = add_case(s, "taken-up", 300);
    tcase_add_test(c, chosen_from_a_list);
    tcase_add_test(c, two_programs);
    tcase_add_test(c, unanswered_stands_ready);
    tcase_add_test(c, out_of_turn_is_passed_over);
    c = add_case(s, "no-room", 300);
    tcase_add_test(c, disk_full);
    tcase_add_test(c, read_only_home);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
