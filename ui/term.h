/* SPDX-License-Identifier: MIT
 *
 * The terminal: shows a grid, reads keys, turns signals into flags, and is always left as it was
 * found. Only term.c includes curses. There is one terminal in a process; main thread only, except
 * ui_term_emergency.
 *
 *     ui_term_locale -> ui_term_open -> { poll on the two descriptors, read, signals, blit }* ->
 *     ui_term_close (also by atexit, and from handlers of fatal signals)
 */
#ifndef UI_TERM_H
#define UI_TERM_H

#include "ui/key.h"
#include "ui/screen.h"

#include "chinwag/err.h"

/* Make LC_CTYPE a UTF-8 locale: the one the person chose, else C.UTF-8, also for what the process
 * starts. Numbers keep their decimal point. False: there is none on this system. */
bool ui_term_locale(void);

/* Take over the terminal on standard input and output. CW_EINVAL when it is none, or TERM names one
 * that cannot place a cursor; nothing has been written then. Without `color` only attributes. */
int ui_term_open(bool color, struct cw_err *err);
void ui_term_close(void); /* may be called twice */
/* Instead of ui_term_open, for a chat in plain lines: SIGINT, SIGTERM and SIGHUP become flags,
 * nothing is written to the terminal and its modes stay. */
int ui_term_open_plain(struct cw_err *err);

/* Restore the terminal with nothing but system calls: for any thread, signal handlers and the
 * out-of-memory hook. */
void ui_term_emergency(void);

int ui_term_fd(void);      /* keys: readable when bytes are there */
int ui_term_wake_fd(void); /* signals: readable when a flag is set */

/* Feed what can be read now. Returns bytes, 0: none, -1: the terminal is gone. */
int ui_term_read(struct ui_keys *keys);
/* Sequences this terminal's description names beyond the common ones. */
void ui_term_define_keys(struct ui_keys *keys);

enum {
    UI_SIGNAL_INT = 1,
    UI_SIGNAL_TERM = 2,
    UI_SIGNAL_HUP = 4,
    UI_SIGNAL_STOP = 8,  /* SIGTSTP */
    UI_SIGNAL_CONT = 16, /* woken after a stop we had no hand in */
    UI_SIGNAL_RESIZE = 32,
};
/* Flags set since the last call. A second SIGTERM or SIGHUP ends the process at once. */
unsigned ui_term_signals(void);

void ui_term_size(int *rows, int *cols); /* as of now, clamped to something sane */
void ui_term_resized(void);              /* take the present size over; all is drawn anew */
void ui_term_redraw(void);               /* the next blit draws everything */
void ui_term_blit(const struct ui_screen *s);
/* Seconds to wait after the last frame before one that only shows more of a text that streams in:
 * the more bytes that one took (places and colours beside the letters), the longer, as more of the
 * next then goes out at once. */
double ui_term_pause(void);
void ui_term_restyle(void); /* the theme has changed: all is drawn anew in its colours */

/* Put text on the clipboard with OSC 52, wrapped for tmux and screen where they are in between.
 * False: it is longer than terminals take (UI_COPY_MAX), or this one knows no such thing; nothing
 * was sent. */
enum { UI_COPY_MAX = 100 * 1024 };
bool ui_term_copy(const char *text, size_t n);
/* A bell, and a notification where the terminal has them (OSC 9); control bytes are left out. */
void ui_term_notify(const char *text);
void ui_term_title(const char *text); /* of the window; NULL: as it was found */
/* Reports of the wheel and of clicks; while on, the terminal's own selection needs Shift. */
void ui_term_mouse(bool on);

/* Give the terminal back, stop, and take it again when continued. */
void ui_term_suspend(void);
void ui_term_continue(void); /* for UI_SIGNAL_CONT */
/* Give the terminal to `sh -c COMMAND sh ARG`, wait for its end, and take it back. Returns the
 * status of waitpid, or -1 when it could not be started. */
int ui_term_run(const char *command, const char *arg);
/* End the process by this signal, as the shell expects. Call after ui_term_close. */
void ui_term_raise(unsigned flag);

#endif
