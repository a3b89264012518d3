/* SPDX-License-Identifier: MIT
 *
 * See tui.h.
 */
#include "tests/ui/tui.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

void tui_start_with(struct tui *t, const char *flag, const char *value) {
    memset(t->more_args, 0, sizeof t->more_args);
    t->more_args[0] = flag;
    t->more_args[1] = value;
    tui_start_idle(t);
}

void tui_say(struct tui *t, const char *text) {
    pty_type(&t->pty, text);
    pty_type(&t->pty, "\r");
}

void tui_rest(struct tui *t) {
    while (pty_pump(&t->pty, 300)) {
    }
}

bool tui_has_word(const char *words, const char *word, size_t n) {
    for (const char *at = words; *at != '\0';) {
        size_t length = strcspn(at, " ");
        if (length == n && memcmp(at, word, n) == 0) {
            return true;
        }
        at += length + (at[length] == ' ');
    }
    return false;
}

void tui_write(const struct tui *t, const char *name, const void *bytes, size_t n) {
    char path[320];
    snprintf(path, sizeof path, "%s/%s", t->dir, name);
    for (char *slash = path + strlen(t->dir) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    ck_assert_msg(f != NULL, "%s cannot be written", path);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

void tui_write_text(const struct tui *t, const char *name, const char *text) {
    tui_write(t, name, text, strlen(text));
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

int tui_command(const struct tui *t, struct cw_buf *out, const char *args) {
    struct cw_buf line = {0};
    char piece[4096];
    cw_buf_printf(&line,
                  "env -u XDG_DATA_HOME -u XDG_CONFIG_HOME -u XDG_STATE_HOME -u XDG_CACHE_HOME "
                  "HOME=%s %s/app/chinwag %s 2>&1",
                  t->dir, getenv("CHINWAG_BUILD_ROOT"), args);
    cw_buf_clear(out);
    FILE *f = popen(line.data, "r");
    ck_assert_ptr_nonnull(f);
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;) {
        cw_buf_add(out, piece, n);
    }
    int status = pclose(f);
    cw_buf_free(&line);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

char *tui_copied(const struct tui *t, size_t from) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct cw_buf out = {0};
    const char *at = NULL, *end = t->pty.raw.data + t->pty.raw.len;
    for (const char *next = t->pty.raw.data + from;
         (next = memmem(next, (size_t)(end - next), "]52;c;", 6)) != NULL;) {
        at = next += 6;
    }
    ck_assert_ptr_nonnull(at);
    unsigned bits = 0, n = 0;
    for (const char *d; at < end && *at != '\0' && (d = strchr(digits, *at)) != NULL; at++) {
        bits = bits << 6 | (unsigned)(d - digits);
        n += 6;
        if (n >= 8) {
            n -= 8;
            cw_buf_putc(&out, (char)(bits >> n & 0xff));
        }
    }
    cw_buf_putc(&out, '\0');
    return cw_buf_take(&out);
}

void tui_leave(struct tui *t) {
    tui_say(t, "/exit");
    ck_assert(pty_wait_exit(&t->pty));
}

void tui_finish(struct tui *t) {
    tui_leave(t);
    ck_assert(WIFEXITED(t->pty.status));
    ck_assert_int_eq(WEXITSTATUS(t->pty.status), 0);
    tui_assert_restored(t);
    tui_end(t);
}
