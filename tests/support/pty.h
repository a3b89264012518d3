/* SPDX-License-Identifier: MIT
 *
 * A program on a pseudo-terminal with libvterm as its screen, for tests of the interface.
 *
 * Nothing here sleeps: every wait reads what the program writes until a condition holds, or fails
 * at a generous deadline. What was written is kept raw as well, for tests of what must be sent.
 */
#ifndef TESTS_PTY_H
#define TESTS_PTY_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

#include "chinwag/mem.h"

struct pty_options {
    const char *const *argv; /* NULL-terminated; argv[0] is the path */
    const char *const *env;  /* the whole environment, NULL-terminated */
    const char *cwd;         /* NULL: as the caller's */
    int rows, cols;          /* 0: 24 x 80 */
};

struct pty {
    pid_t pid;
    int master;
    int slave; /* kept open: modes can be read after the program has ended */
    bool eof;
    bool reaped;
    int status; /* of waitpid */
    int rows, cols;
    struct cw_buf raw;     /* all that was written */
    void *vt, *screen;     /* VTerm, VTermScreen */
    struct termios before; /* modes as the program found them */
};

enum { PTY_DEADLINE_MS = 60000 };

void pty_start(struct pty *p, const struct pty_options *opt); /* aborts when it cannot */
/* Kill what still runs, free everything. */
void pty_end(struct pty *p);

void pty_send(struct pty *p, const void *bytes, size_t n);
void pty_type(struct pty *p, const char *text);
void pty_resize(struct pty *p, int rows, int cols);
void pty_signal(struct pty *p, int sig);

/* Read what comes within `ms`; false when nothing did. */
bool pty_pump(struct pty *p, int ms);
/* Wait until `done` holds, looking after each piece of output. False at the deadline, or when the
 * program ended and it still does not hold; the screen is then printed on standard error. */
bool pty_wait(struct pty *p, bool (*done)(struct pty *p, const void *arg), const void *arg,
              const char *what);
bool pty_wait_text(struct pty *p, const char *text);              /* on some row */
bool pty_wait_no_text(struct pty *p, const char *text);           /* on no row */
bool pty_wait_raw(struct pty *p, size_t from, const char *bytes); /* written after raw[from] */
bool pty_wait_exit(struct pty *p);                                /* the status is in p->status */

/* Row as text without trailing blanks; the caller must free. */
char *pty_row(struct pty *p, int row);
char *pty_screen(struct pty *p); /* all rows, a newline after each */
bool pty_shows(struct pty *p, const char *text);
int pty_find(struct pty *p, const char *text); /* its row, -1 */
void pty_cursor(struct pty *p, int *row, int *col);
bool pty_raw_has(struct pty *p, size_t from, const char *bytes);
/* Whether the modes are what they were at the start; or wait until they are. */
bool pty_modes_restored(struct pty *p);
bool pty_wait_modes(struct pty *p);

#endif
