/* SPDX-License-Identifier: MIT
 *
 * See pty.h.
 */
#include "tests/support/pty.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vterm.h>

#include "chinwag/clock.h"
#include "chinwag/utf8.h"

static void die(const char *what) {
    perror(what);
    abort();
}

static void run_child(const struct pty *p, const struct pty_options *opt) {
    for (int sig = 1; sig < NSIG; sig++) { /* as a terminal starts a shell, however we run */
        signal(sig, SIG_DFL);
    }
    setsid();
    ioctl(p->slave, TIOCSCTTY, 0);
    for (int fd = 0; fd < 3; fd++) {
        dup2(p->slave, fd);
    }
    close(p->master);
    if (p->slave > 2) {
        close(p->slave);
    }
    if (opt->cwd != NULL && chdir(opt->cwd) != 0) {
        _exit(126);
    }
    execve(opt->argv[0], (char *const *)opt->argv, (char *const *)opt->env);
    _exit(127);
}

void pty_start(struct pty *p, const struct pty_options *opt) {
    memset(p, 0, sizeof *p);
    p->rows = opt->rows > 0 ? opt->rows : 24;
    p->cols = opt->cols > 0 ? opt->cols : 80;
    struct winsize size = {.ws_row = (unsigned short)p->rows, .ws_col = (unsigned short)p->cols};
    if (openpty(&p->master, &p->slave, NULL, NULL, &size) != 0) {
        die("openpty");
    }
    fcntl(p->master, F_SETFD, FD_CLOEXEC);
    fcntl(p->master, F_SETFL, O_NONBLOCK);
    tcgetattr(p->slave, &p->before);
    VTerm *vt = vterm_new(p->rows, p->cols);
    vterm_set_utf8(vt, 1);
    VTermScreen *screen = vterm_obtain_screen(vt);
    vterm_screen_enable_altscreen(screen, 1);
    vterm_screen_reset(screen, 1);
    p->vt = vt;
    p->screen = screen;
    p->pid = fork();
    if (p->pid < 0) {
        die("fork");
    }
    if (p->pid == 0) {
        run_child(p, opt);
    }
}

static void reap(struct pty *p, int flags) {
    if (!p->reaped && waitpid(p->pid, &p->status, flags) == p->pid) {
        p->reaped = true;
    }
}

void pty_end(struct pty *p) {
    if (p->pid <= 0) {
        return; /* never started */
    }
    if (!p->reaped) {
        kill(p->pid, SIGKILL);
        kill(p->pid, SIGCONT);
        reap(p, 0);
    }
    close(p->master);
    close(p->slave);
    vterm_free(p->vt);
    cw_buf_free(&p->raw);
}

bool pty_pump(struct pty *p, int ms) {
    char bytes[16384]; /* at most so much at once, so that what shows for a moment is seen */
    struct pollfd fd = {.fd = p->master, .events = POLLIN};
    if (poll(&fd, 1, ms) <= 0) {
        return false;
    }
    ssize_t n = read(p->master, bytes, sizeof bytes);
    if (n <= 0) {
        p->eof = n == 0 || (errno != EAGAIN && errno != EINTR);
        return false;
    }
    /* The kernel may hand over one write in parts: half a redraw would show what never stood there
     * together, such as a new message above the state before it. */
    size_t len = (size_t)n;
    while (len < sizeof bytes && poll(&fd, 1, 1) > 0 &&
           (n = read(p->master, bytes + len, sizeof bytes - len)) > 0) {
        len += (size_t)n;
    }
    cw_buf_add(&p->raw, bytes, len);
    vterm_input_write(p->vt, bytes, len);
    return true;
}

void pty_send(struct pty *p, const void *bytes, size_t n) {
    const char *s = bytes;
    double deadline = cw_now() + PTY_DEADLINE_MS / 1e3;
    while (n > 0 && cw_now() < deadline) {
        ssize_t done = write(p->master, s, n);
        if (done > 0) {
            s += done;
            n -= (size_t)done;
        } else {
            pty_pump(p, 20); /* it may be waiting for us to read */
        }
    }
}

void pty_type(struct pty *p, const char *text) {
    pty_send(p, text, strlen(text));
}

void pty_resize(struct pty *p, int rows, int cols) {
    struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)cols};
    p->rows = rows;
    p->cols = cols;
    vterm_set_size(p->vt, rows, cols);
    ioctl(p->master, TIOCSWINSZ, &size);
}

void pty_signal(struct pty *p, int sig) {
    kill(p->pid, sig);
}

bool pty_wait(struct pty *p, bool (*done)(struct pty *p, const void *arg), const void *arg,
              const char *what) {
    double deadline = cw_now() + PTY_DEADLINE_MS / 1e3;
    for (;;) {
        if (done(p, arg)) {
            return true;
        }
        if (cw_now() > deadline) {
            break;
        }
        if (!pty_pump(p, 50)) {
            reap(p, WNOHANG);
            if (p->reaped) {
                while (pty_pump(p, 0)) {
                }
                if (done(p, arg)) {
                    return true;
                }
                break;
            }
        }
    }
    char *screen = pty_screen(p);
    fprintf(stderr, "not seen: %s\n%s\n", what, screen);
    if (p->reaped) {
        fprintf(stderr, "the program has ended, status %#x\n", (unsigned)p->status);
    }
    free(screen);
    return false;
}

static bool shows(struct pty *p, const void *arg) {
    return pty_shows(p, arg);
}

static bool shows_not(struct pty *p, const void *arg) {
    return !pty_shows(p, arg);
}

bool pty_wait_text(struct pty *p, const char *text) {
    return pty_wait(p, shows, text, text);
}

bool pty_wait_no_text(struct pty *p, const char *text) {
    return pty_wait(p, shows_not, text, text);
}

struct raw_wait {
    size_t from;
    const char *bytes;
};

static bool raw_has(struct pty *p, const void *arg) {
    const struct raw_wait *w = arg;
    return pty_raw_has(p, w->from, w->bytes);
}

bool pty_wait_raw(struct pty *p, size_t from, const char *bytes) {
    struct raw_wait w = {from, bytes};
    return pty_wait(p, raw_has, &w, bytes);
}

static bool ended(struct pty *p, const void *arg) {
    (void)arg;
    reap(p, WNOHANG);
    if (p->reaped) {
        while (pty_pump(p, 0)) {
        }
    }
    return p->reaped;
}

bool pty_wait_exit(struct pty *p) {
    return pty_wait(p, ended, NULL, "the end of the program");
}

char *pty_row(struct pty *p, int row) {
    struct cw_buf out = {0};
    size_t end = 0;
    for (int col = 0; col < p->cols;) {
        VTermScreenCell cell;
        VTermPos pos = {.row = row, .col = col};
        memset(&cell, 0, sizeof cell);
        vterm_screen_get_cell(p->screen, pos, &cell);
        if (cell.chars[0] == 0) {
            cw_buf_putc(&out, ' ');
        }
        for (int i = 0; i < VTERM_MAX_CHARS_PER_CELL && cell.chars[i] != 0; i++) {
            char utf8[4];
            if (cell.chars[i] != (uint32_t)-1) {
                cw_buf_add(&out, utf8, (size_t)cw_utf8_encode(cell.chars[i], utf8));
            }
        }
        if (cell.chars[0] != 0 && cell.chars[0] != ' ') {
            end = out.len;
        }
        col += cell.width > 1 ? cell.width : 1;
    }
    cw_buf_putc(&out, '\0');
    out.data[end] = '\0';
    return cw_buf_take(&out);
}

char *pty_screen(struct pty *p) {
    struct cw_buf out = {0};
    for (int row = 0; row < p->rows; row++) {
        char *text = pty_row(p, row);
        cw_buf_puts(&out, text);
        cw_buf_putc(&out, '\n');
        free(text);
    }
    return cw_buf_take(&out);
}

int pty_find(struct pty *p, const char *text) {
    int found = -1;
    for (int row = 0; row < p->rows && found < 0; row++) {
        char *line = pty_row(p, row);
        found = strstr(line, text) != NULL ? row : -1;
        free(line);
    }
    return found;
}

bool pty_shows(struct pty *p, const char *text) {
    return pty_find(p, text) >= 0;
}

void pty_cursor(struct pty *p, int *row, int *col) {
    VTermPos pos;
    vterm_state_get_cursorpos(vterm_obtain_state(p->vt), &pos);
    *row = pos.row;
    *col = pos.col;
}

bool pty_raw_has(struct pty *p, size_t from, const char *bytes) {
    return from <= p->raw.len && p->raw.data != NULL &&
           memmem(p->raw.data + from, p->raw.len - from, bytes, strlen(bytes)) != NULL;
}

bool pty_modes_restored(struct pty *p) {
    struct termios now;
    if (tcgetattr(p->slave, &now) != 0) {
        return false;
    }
    return now.c_iflag == p->before.c_iflag && now.c_oflag == p->before.c_oflag &&
           now.c_cflag == p->before.c_cflag && now.c_lflag == p->before.c_lflag &&
           memcmp(now.c_cc, p->before.c_cc, sizeof now.c_cc) == 0;
}

static bool restored(struct pty *p, const void *arg) {
    (void)arg;
    return pty_modes_restored(p);
}

bool pty_wait_modes(struct pty *p) {
    return pty_wait(p, restored, NULL, "the modes of the start");
}
