/* SPDX-License-Identifier: MIT
 *
 * See driver.h.
 */
#include "tests/app/driver.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/mkgguf.h"

const char *driver_home(void) {
    static char home[4096];
    if (!*home) {
        snprintf(home, sizeof home, "%s", tmp_path("home"));
        ck_assert(mkdir(home, 0700) == 0 || errno == EEXIST);
    }
    return home;
}

/* ---- the child ------------------------------------------------------------------------------ */

static void set_environment(const struct driver *d) {
    setenv("HOME", driver_home(), 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("TERM", "xterm-256color", 1);
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("XDG_DATA_HOME");
    unsetenv("XDG_STATE_HOME");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("NO_COLOR");
    for (const char *const *e = d->env; e && *e; e++) {
        if (strchr(*e, '=')) {
            putenv((char *)*e);
        } else {
            unsetenv(*e);
        }
    }
}

static void become(const struct driver *d, const char *const *args, int in, int out, int err) {
    const char *argv[64] = {"chinwag"};
    size_t n = 1;
    while (*args && n + 1 < sizeof argv / sizeof *argv) {
        argv[n++] = *args++;
    }
    set_environment(d);
    if (d->no_stdin) {
        close(0);
    } else {
        dup2(in, 0);
    }
    if (d->no_stdout) {
        close(1);
    } else {
        dup2(out, 1);
    }
    dup2(err, 2);
    for (int fd = 3; fd < 256; fd++) {
        close(fd);
    }
    signal(SIGPIPE, SIG_DFL);
    execv(getenv("CHINWAG_BIN"), (char *const *)argv);
    _exit(126);
}

static void make_pipe(int fds[2]) {
    ck_assert_msg(pipe(fds) == 0, "pipe: %s", strerror(errno));
    fcntl(fds[0], F_SETFD, FD_CLOEXEC);
    fcntl(fds[1], F_SETFD, FD_CLOEXEC);
}

/* A terminal: fds[0] is our end, fds[1] the program's. */
static void make_pty(int fds[2]) {
    fds[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(fds[0], 0);
    ck_assert(grantpt(fds[0]) == 0 && unlockpt(fds[0]) == 0);
    fds[1] = open(ptsname(fds[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
    ck_assert_int_ge(fds[1], 0);
}

void driver_start(struct driver *d, const char *const *args) {
    int in[2];
    int out[2];
    int err[2];
    ck_assert_msg(getenv("CHINWAG_BIN") != NULL, "CHINWAG_BIN is not set");
    signal(SIGPIPE, SIG_IGN); /* a program that does not read its input must not end the test */
    driver_home();
    make_pipe(in);
    make_pipe(err);
    if (d->pty) {
        make_pty(out);
    } else {
        make_pipe(out);
    }
    int out_file = -1;
    if (d->out_path) {
        out_file = open(d->out_path, O_WRONLY | O_CLOEXEC);
        ck_assert_msg(out_file >= 0, "%s: %s", d->out_path, strerror(errno));
    }
    /* Check's own handlers would act in the child until exec. */
    sigset_t block;
    sigset_t before;
    sigemptyset(&block);
    sigaddset(&block, SIGINT);
    sigprocmask(SIG_BLOCK, &block, &before);
    d->pid = fork();
    if (d->pid == 0) {
        signal(SIGINT, SIG_DFL);
        sigprocmask(SIG_SETMASK, &before, NULL);
        become(d, args, in[0], out_file >= 0 ? out_file : out[1], err[1]);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    ck_assert_int_ge(d->pid, 0);
    close(in[0]);
    close(out[1]);
    close(err[1]);
    if (out_file >= 0) {
        close(out_file);
    }
    d->in = in[1];
    d->out = out[0];
    d->err = err[0];
    fcntl(d->in, F_SETFL, O_NONBLOCK);
}

/* ---- talking to it -------------------------------------------------------------------------- */

static void close_end(int *fd) {
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* What can be read now, into `to`; closes the end at its end. */
static void drain(int *fd, struct cw_buf *to) {
    char chunk[65536];
    ssize_t n = read(*fd, chunk, sizeof chunk);
    if (n > 0) {
        cw_buf_add(to, chunk, (size_t)n);
    } else if (n == 0 || errno != EINTR) {
        close_end(fd); /* a terminal nobody holds any more reads as EIO */
    }
}

/* One round of whatever is possible. *input and *n move on; when all is given the end is closed. */
static void turn(struct driver *d, const char **input, size_t *n) {
    if (d->in >= 0 && *n == 0 && input) {
        close_end(&d->in);
    }
    struct pollfd fds[3] = {{.fd = d->out, .events = POLLIN},
                            {.fd = d->err, .events = POLLIN},
                            {.fd = input && *n > 0 ? d->in : -1, .events = POLLOUT}};
    if (poll(fds, 3, -1) < 0) {
        ck_assert_int_eq(errno, EINTR);
        return;
    }
    if (fds[0].revents) {
        drain(&d->out, &d->out_text);
    }
    if (fds[1].revents) {
        drain(&d->err, &d->err_text);
    }
    if (fds[2].revents) {
        ssize_t k = write(d->in, *input, *n);
        if (k > 0) {
            *input += k;
            *n -= (size_t)k;
        } else if (k < 0 && errno != EINTR && errno != EAGAIN) {
            *n = 0; /* it does not want to know more */
        }
    }
}

void driver_end_input(struct driver *d) {
    close_end(&d->in);
}

size_t driver_read(struct driver *d, size_t n) {
    size_t none = 0;
    while (d->out_text.len < n && d->out >= 0) {
        turn(d, NULL, &none);
    }
    return d->out_text.len;
}

/* Move the notes out of what was said. */
static void sort_notes(struct driver *d) {
    struct cw_buf said = d->err_text;
    static const char head[] = "chinwag: note: ";
    memset(&d->err_text, 0, sizeof d->err_text);
    cw_buf_add(&said, "", 0); /* there is a terminated text even of nothing */
    for (char *line = said.data; *line;) {
        size_t n = strcspn(line, "\n");
        n += line[n] == '\n';
        cw_buf_add(strncmp(line, head, strlen(head)) == 0 ? &d->notes : &d->err_text, line, n);
        line += n;
    }
    cw_buf_add(&d->out_text, "", 0);
    cw_buf_add(&d->err_text, "", 0);
    cw_buf_add(&d->notes, "", 0);
    cw_buf_free(&said);
}

void driver_finish(struct driver *d, const void *input, size_t n) {
    const char *p = input;
    while (d->out >= 0 || d->err >= 0) {
        turn(d, &p, &n);
    }
    close_end(&d->in);
    int status;
    while (waitpid(d->pid, &status, 0) < 0) {
        ck_assert_int_eq(errno, EINTR);
    }
    d->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    sort_notes(d);
}

void driver_free(struct driver *d) {
    cw_buf_free(&d->out_text);
    cw_buf_free(&d->err_text);
    cw_buf_free(&d->notes);
    memset(d, 0, sizeof *d);
}

void driver_run(struct driver *d, const char *input, ...) {
    const char *args[64];
    size_t n = 0;
    va_list ap;
    memset(d, 0, sizeof *d);
    va_start(ap, input);
    while (n < 63 && (args[n] = va_arg(ap, const char *))) {
        n++;
    }
    args[n] = NULL;
    va_end(ap);
    driver_start(d, args);
    driver_finish(d, input, input ? strlen(input) : 0);
}

/* ---- judging -------------------------------------------------------------------------------- */

void driver_expect(const struct driver *d, int status, const char *says) {
    const char *text = d->err_text.data;
    ck_assert_msg(d->status == status, "status %d, not %d; it said: %s", d->status, status, text);
    if (says) {
        ck_assert_msg(strstr(text, says) != NULL, "'%s' does not say '%s'", text, says);
        ck_assert_msg(strncmp(text, "chinwag: ", 9) == 0, "'%s' begins otherwise", text);
        const char *end = strchr(text, '\n');
        ck_assert_msg(end && !end[1], "not one line: '%s'", text);
        for (const char *p = text; p < end; p++) {
            ck_assert_msg((unsigned char)*p >= ' ' && *p != 0x7f, "not printable: '%s'", text);
        }
    }
}

void driver_expect_ok(const struct driver *d) {
    driver_expect(d, 0, NULL);
    ck_assert_msg(d->err_text.len == 0, "it said: %s", d->err_text.data);
}

struct json_object *driver_json(const struct driver *d) {
    enum json_tokener_error why;
    struct json_object *o = json_tokener_parse_verbose(d->out_text.data, &why);
    ck_assert_msg(o != NULL, "no JSON (%s): %.300s", json_tokener_error_desc(why),
                  d->out_text.data);
    return o;
}

const char *driver_model(const char *name) {
    static char path[2][4096];
    static int turn_of;
    char *p = path[turn_of++ % 2];
    snprintf(p, sizeof path[0], "%s/tests/data/models/%s", getenv("CHINWAG_SOURCE_ROOT"), name);
    return p;
}

const char *driver_smollm2(void) {
    static char path[4096];
    const char *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    snprintf(path, sizeof path, "%s%s/chinwag/models/SmolLM2-135M-Instruct.Q4_1.gguf",
             data && *data == '/' ? data
             : home               ? home
                                  : "",
             data && *data == '/' ? "" : "/.local/share");
    if (access(path, R_OK) != 0) {
        printf("skipped: %s is not there\n", path);
        return NULL;
    }
    return path;
}
