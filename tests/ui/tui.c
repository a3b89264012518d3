/* SPDX-License-Identifier: MIT
 *
 * See tui.h.
 */
#include "tests/ui/tui.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

void tui_init(struct tui *t) {
    memset(t, 0, sizeof *t);
    strcpy(t->dir, "/tmp/chinwag-tui-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(t->dir));
    snprintf(t->model, sizeof t->model, "%s/model.gguf", t->dir);
}

void tui_model_pieces(struct tui *t, const char *const *pieces) {
    struct markov m;
    markov_init(&m);
    for (size_t i = 0; pieces[i] != NULL; i++) {
        markov_bytes(&m, pieces[i], strlen(pieces[i]));
    }
    markov_save(&m, t->model);
    markov_free(&m);
}

void tui_model_text(struct tui *t, const char *text) {
    const char *const pieces[] = {text, NULL};
    tui_model_pieces(t, pieces);
}

void tui_model_words(struct tui *t, int words, bool loop) {
    struct markov m;
    markov_init(&m);
    m.n_ctx = 65536;
    for (int i = 0; i < words; i++) {
        char word[16];
        snprintf(word, sizeof word, "w%04d%s", i, i % 10 == 9 ? ".\n" : " ");
        markov_text(&m, word);
    }
    if (loop) {
        markov_loop(&m, 0);
    }
    markov_save(&m, t->model);
    markov_free(&m);
}

void tui_start(struct tui *t) {
    const char *build = getenv("CHINWAG_BUILD_ROOT");
    ck_assert_ptr_nonnull(build);
    char program[512], home[256], term[128], lang[128], asan[512], path[1024];
    const char *env[16];
    const char *argv[16];
    int n = 0, k = 0;
    snprintf(program, sizeof program, "%s/app/chinwag", build);
    snprintf(term, sizeof term, "TERM=%s", t->term ? t->term : "xterm-256color");
    snprintf(lang, sizeof lang, "LC_ALL=%s", t->lang ? t->lang : "C.UTF-8");
    snprintf(home, sizeof home, "HOME=%s", t->home ? t->home : t->dir);
    snprintf(path, sizeof path, "PATH=%s", getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
    env[n++] = path;
    if (t->term == NULL || t->term[0] != '\0') {
        env[n++] = term;
    }
    if (t->lang == NULL || t->lang[0] != '\0') {
        env[n++] = lang;
    }
    if (t->home == NULL || t->home[0] != '\0') {
        env[n++] = home;
    }
    if (getenv("ASAN_OPTIONS") != NULL) {
        snprintf(asan, sizeof asan, "ASAN_OPTIONS=%s", getenv("ASAN_OPTIONS"));
        env[n++] = asan;
    }
    for (int i = 0; i < 4 && t->more_env[i] != NULL; i++) {
        env[n++] = t->more_env[i];
    }
    env[n] = NULL;
    argv[k++] = program;
    argv[k++] = "-m";
    argv[k++] = t->model;
    argv[k++] = "-t";
    argv[k++] = "1";
    for (int i = 0; i < 8 && t->more_args[i] != NULL; i++) {
        argv[k++] = t->more_args[i];
    }
    argv[k] = NULL;
    struct pty_options opt = {
        .argv = argv, .env = env, .cwd = t->dir, .rows = t->rows, .cols = t->cols};
    pty_start(&t->pty, &opt);
}

void tui_start_idle(struct tui *t) {
    tui_start(t);
    ck_assert(pty_wait_text(&t->pty, "idle"));
}

void tui_assert_restored(struct tui *t) {
    ck_assert_msg(pty_modes_restored(&t->pty), "the modes of the terminal are changed");
    ck_assert_msg(pty_raw_has(&t->pty, 0, "\033[?2004h"), "bracketed paste was never on");
    /* each on-switch is followed by its off-switch */
    static const char *const pairs[][2] = {
        {"\033[?1049h", "\033[?1049l"}, {"\033[?2004h", "\033[?2004l"}, {"\033[?25l", "\033[?25h"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const struct cw_buf *raw = &t->pty.raw;
        size_t on = 0, off = 0;
        for (size_t at = 0; at + 6 < raw->len; at++) {
            size_t n = strlen(pairs[i][0]);
            if (at + n <= raw->len && memcmp(raw->data + at, pairs[i][0], n) == 0) {
                on = at + 1;
            }
            n = strlen(pairs[i][1]);
            if (at + n <= raw->len && memcmp(raw->data + at, pairs[i][1], n) == 0) {
                off = at + 1;
            }
        }
        ck_assert_msg(off > on, "%s was not sent last", pairs[i][1] + 1);
    }
}

void tui_end(struct tui *t) {
    char command[256];
    pty_end(&t->pty);
    snprintf(command, sizeof command, "chmod -R u+w %s; rm -rf %s", t->dir, t->dir);
    ck_assert_int_eq(system(command), 0);
}

void tui_finish(struct tui *t) {
    pty_type(&t->pty, "/exit\r");
    ck_assert(pty_wait_exit(&t->pty));
    ck_assert(WIFEXITED(t->pty.status));
    ck_assert_int_eq(WEXITSTATUS(t->pty.status), 0);
    tui_assert_restored(t);
    tui_end(t);
}
