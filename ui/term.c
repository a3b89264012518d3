/* SPDX-License-Identifier: MIT
 *
 * The one file that knows curses.
 *
 * Leaving. Every way out goes through restore(), once: ui_term_close (and atexit) by way of curses,
 * fatal signals and the out-of-memory hook by writing bytes prepared beforehand and tcsetattr,
 * which are safe in a handler. A handler of a fatal signal then puts back what was installed before
 * it and raises the signal again. Handlers of the other signals set a flag and write to an eventfd.
 *
 * Drawing. Curses gets only what every terminal agrees on. A cluster of several joined characters
 * (an emoji family, a flag) is blanks to curses; afterwards the cluster itself is written over
 * them, placed absolutely. So a terminal that draws it wider or narrower damages nothing but that
 * spot, and lines that hold one are redrawn whole whenever they change.
 */
#include "ui/term.h"

#include <curses.h>
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include "chinwag/clock.h"
#include "chinwag/mem.h"
#include "chinwag/utf8.h"

#define PASTE_ON  "\033[?2004h"
#define PASTE_OFF "\033[?2004l"

enum { MAX_ROWS = 500, MAX_COLS = 1000, RESTORE_BYTES = 256 };

static const int fatal_signals[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGQUIT};
static const int flag_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH};
enum {
    N_FATAL = sizeof fatal_signals / sizeof fatal_signals[0],
    N_FLAG = sizeof flag_signals / sizeof flag_signals[0],
};

static struct {
    SCREEN *curses;
    struct termios saved;
    enum ui_depth depth;
    bool full;             /* draw everything next time */
    struct ui_screen last; /* what is on the terminal */
    struct sigaction before_flag[N_FLAG];
    void *stack; /* for handlers, should the main thread overflow its own */
    int n_early; /* bytes typed before the terminal was ours */
} term;

/* Read by handlers. */
static atomic_bool active; /* the terminal is ours and must be restored */
static atomic_uint flags;
static int wake_fd = -1;
static struct termios saved_modes;
static char restore_bytes[RESTORE_BYTES];
static size_t n_restore_bytes;
static struct sigaction before_fatal[N_FATAL];

/* --- locale ----------------------------------------------------------------------------------- */

bool ui_term_locale(void) {
    setlocale(LC_CTYPE, "");
    if (strcmp(nl_langinfo(CODESET), "UTF-8") == 0) {
        return true;
    }
    static const char *const names[] = {"C.UTF-8", "C.utf8", "en_US.UTF-8"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (setlocale(LC_CTYPE, names[i]) != NULL && strcmp(nl_langinfo(CODESET), "UTF-8") == 0) {
            /* readline asks the environment again on every line */
            setenv(getenv("LC_ALL") ? "LC_ALL" : "LC_CTYPE", names[i], 1);
            return true;
        }
    }
    return false;
}

/* --- signals ---------------------------------------------------------------------------------- */

static void write_all(const char *s, size_t n) {
    while (n > 0) {
        ssize_t done = write(STDOUT_FILENO, s, n);
        if (done < 0 && errno == EAGAIN) { /* someone left the terminal non-blocking */
            struct pollfd p = {.fd = STDOUT_FILENO, .events = POLLOUT};
            if (poll(&p, 1, 1000) <= 0) {
                return;
            }
        } else if (done < 0 && errno != EINTR) {
            return;
        }
        s += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
}

void ui_term_emergency(void) {
    if (atomic_exchange(&active, false)) {
        int saved_errno = errno;
        write_all(restore_bytes, n_restore_bytes);
        tcsetattr(STDIN_FILENO, TCSANOW, &saved_modes);
        errno = saved_errno;
    }
}

static void on_fatal(int sig, siginfo_t *info, void *context) {
    const struct sigaction *before = NULL;
    for (int i = 0; i < N_FATAL; i++) {
        before = fatal_signals[i] == sig ? &before_fatal[i] : before;
    }
    /* A handler of SIGBUS that was there first may mend pages of a file: a fault of the memory (not
     * a signal that was sent) is for it to look at, and may then be none. */
    if (sig == SIGBUS && info->si_code > 0 && (before->sa_flags & SA_SIGINFO)) {
        before->sa_sigaction(sig, info, context);
        return;
    }
    ui_term_emergency();
    sigaction(sig, before, NULL);
    raise(sig); /* blocked until this handler returns */
}

static void on_flag(int sig) {
    int saved_errno = errno;
    unsigned flag = sig == SIGINT    ? UI_SIGNAL_INT
                    : sig == SIGTERM ? UI_SIGNAL_TERM
                    : sig == SIGHUP  ? UI_SIGNAL_HUP
                    : sig == SIGTSTP ? UI_SIGNAL_STOP
                    : sig == SIGCONT ? UI_SIGNAL_CONT
                                     : UI_SIGNAL_RESIZE;
    unsigned before = atomic_fetch_or(&flags, flag);
    if ((flag & (UI_SIGNAL_TERM | UI_SIGNAL_HUP)) && (before & flag)) {
        /* asked twice and the loop has not come round: end here */
        ui_term_emergency();
        signal(sig, SIG_DFL);
        raise(sig);
    }
    uint64_t one = 1;
    if (write(wake_fd, &one, sizeof one) < 0) {
        /* full: it is readable already */
    }
    errno = saved_errno;
}

static void install_flag_handler(int sig, struct sigaction *before) {
    struct sigaction sa = {.sa_handler = on_flag, .sa_flags = SA_RESTART};
    sigemptyset(&sa.sa_mask);
    sigaction(sig, &sa, before);
}

static void install_handlers(void) {
    for (int i = 0; i < N_FLAG; i++) {
        install_flag_handler(flag_signals[i], &term.before_flag[i]);
    }
    stack_t stack = {.ss_size = 64 * 1024};
    term.stack = cw_malloc(stack.ss_size);
    stack.ss_sp = term.stack;
    sigaltstack(&stack, NULL);
    struct sigaction sa = {.sa_sigaction = on_fatal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&sa.sa_mask);
    for (int i = 0; i < N_FATAL; i++) {
        sigaction(fatal_signals[i], &sa, &before_fatal[i]);
    }
}

unsigned ui_term_signals(void) {
    uint64_t count;
    if (read(wake_fd, &count, sizeof count) < 0) {
        /* nothing new */
    }
    /* TERM and HUP stay set, so that a second one is known for one */
    return atomic_fetch_and(&flags, UI_SIGNAL_TERM | UI_SIGNAL_HUP);
}

void ui_term_raise(unsigned flag) {
    int sig = flag & UI_SIGNAL_HUP ? SIGHUP : SIGTERM;
    signal(sig, SIG_DFL);
    raise(sig);
}

/* --- opening and closing -----------------------------------------------------------------------
 */

/* A capability of the terminal's description, or NULL. */
static const char *capability(const char *name) {
    char *value = tigetstr(name);
    return value == NULL || value == (char *)-1 ? NULL : value;
}

/* Add a sequence to those that restore the terminal, without its delays ("$<5>"). */
static void add_restore(const char *sequence) {
    for (const char *p = sequence; p != NULL && *p != '\0'; p++) {
        if (p[0] == '$' && p[1] == '<' && strchr(p, '>') != NULL) {
            p = strchr(p, '>');
        } else if (n_restore_bytes < RESTORE_BYTES) {
            restore_bytes[n_restore_bytes++] = *p;
        }
    }
}

static void prepare_restore(void) {
    n_restore_bytes = 0;
    add_restore(PASTE_OFF);
    add_restore(capability("sgr0"));
    add_restore(capability("rmkx"));
    add_restore(capability("cnorm"));
    add_restore(capability("rmcup"));
}

/* Whether the terminal will do; if so, what restores it is prepared. */
static int check_terminal(struct cw_err *err) {
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        return cw_fail(err, CW_EINVAL, "chat: standard input and output must be a terminal");
    }
    const char *name = getenv("TERM");
    if (name == NULL || name[0] == '\0') {
        return cw_fail(err, CW_EINVAL,
                       "chat: TERM is not set, so the kind of terminal is not known");
    }
    int status = 0;
    if (setupterm(name, STDOUT_FILENO, &status) != OK) {
        return cw_fail(err, CW_EINVAL, "chat: no description of the terminal TERM=%s", name);
    }
    bool good = capability("cup") != NULL;
    prepare_restore();
    del_curterm(cur_term); /* newterm reads its own */
    return good ? CW_OK
                : cw_fail(err, CW_EINVAL, "chat: the terminal TERM=%s cannot place its cursor",
                          name);
}

static void init_styles(bool color) {
    term.depth = UI_MONO;
    if (!color || !has_colors()) {
        return; /* start_color itself writes colour sequences */
    }
    start_color();
    use_default_colors();
    if (COLOR_PAIRS <= UI_N_ROLES) {
        return;
    }
    term.depth = COLORS >= 256 ? UI_COLORS_256 : UI_COLORS_16;
    for (int role = 0; role < UI_N_ROLES; role++) {
        struct ui_style style = ui_theme_style((enum ui_role)role, term.depth);
        init_pair((short)(role + 1), style.fg, style.bg);
    }
}

int ui_term_open(bool color, struct cw_err *err) {
    int code = check_terminal(err);
    if (code != CW_OK) {
        return code;
    }
    if (tcgetattr(STDIN_FILENO, &term.saved) != 0) {
        return cw_fail(err, CW_EIO, "chat: terminal: %s", strerror(errno));
    }
    saved_modes = term.saved;
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0) {
        return cw_fail(err, CW_EIO, "chat: eventfd: %s", strerror(errno));
    }
    install_handlers(); /* before curses, which then leaves them alone */
    static bool registered;
    if (!registered) {
        atexit(ui_term_close);
        registered = true;
    }
    atomic_store(&active, true);
    term.curses = newterm(NULL, stdout, stdin);
    if (term.curses == NULL) {
        ui_term_emergency();
        return cw_fail(err, CW_EINVAL, "chat: the terminal cannot be set up");
    }
    set_escdelay(UI_ESC_MS);
    raw();
    noecho();
    nonl();
    /* What was typed ahead went through the old modes, which made newlines of Enter. */
    if (!(term.saved.c_iflag & ICRNL) || ioctl(STDIN_FILENO, FIONREAD, &term.n_early) != 0) {
        term.n_early = 0;
    }
    init_styles(color);
    write_all(PASTE_ON, sizeof PASTE_ON - 1);
    ui_screen_init(&term.last, 1, 1);
    ui_term_resized();
    return CW_OK;
}

static void leave_screen(void) {
    write_all(PASTE_OFF, sizeof PASTE_OFF - 1);
    endwin();
    tcsetattr(STDIN_FILENO, TCSANOW, &term.saved);
}

void ui_term_close(void) {
    if (!atomic_exchange(&active, false)) {
        return;
    }
    leave_screen();
    /* SIGTERM and SIGHUP stay ours until the process ends by them */
    ui_screen_free(&term.last);
    delscreen(term.curses);
    term.curses = NULL;
    for (int i = 0; i < N_FLAG; i++) {
        sigaction(flag_signals[i], &term.before_flag[i], NULL);
    }
}

int ui_term_fd(void) {
    return STDIN_FILENO;
}

int ui_term_wake_fd(void) {
    return wake_fd;
}

/* --- keys --------------------------------------------------------------------------------------
 */

int ui_term_read(struct ui_keys *keys) {
    char bytes[4096];
    struct pollfd p = {.fd = STDIN_FILENO, .events = POLLIN};
    if (poll(&p, 1, 0) <= 0 || p.revents == 0) {
        return 0;
    }
    ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return 0;
    }
    if (n <= 0) {
        return -1;
    }
    for (ssize_t i = 0; i < n && term.n_early > 0; i++, term.n_early--) {
        bytes[i] = bytes[i] == '\n' ? '\r' : bytes[i];
    }
    ui_keys_feed(keys, bytes, (size_t)n, cw_now());
    return (int)n;
}

void ui_term_define_keys(struct ui_keys *keys) {
    static const struct {
        const char *name;
        uint32_t code;
        unsigned mods;
    } names[] = {
        {"kcuu1", UI_KEY_UP, 0},        {"kcud1", UI_KEY_DOWN, 0},
        {"kcub1", UI_KEY_LEFT, 0},      {"kcuf1", UI_KEY_RIGHT, 0},
        {"khome", UI_KEY_HOME, 0},      {"kend", UI_KEY_END, 0},
        {"kpp", UI_KEY_PGUP, 0},        {"knp", UI_KEY_PGDN, 0},
        {"kich1", UI_KEY_INSERT, 0},    {"kdch1", UI_KEY_DELETE, 0},
        {"kcbt", UI_KEY_TAB, UI_SHIFT}, {"kUP3", UI_KEY_UP, UI_ALT},
        {"kDN3", UI_KEY_DOWN, UI_ALT},  {"kPRV3", UI_KEY_PGUP, UI_ALT},
        {"kNXT3", UI_KEY_PGDN, UI_ALT}, {"kHOM5", UI_KEY_HOME, UI_CTRL},
        {"kEND5", UI_KEY_END, UI_CTRL},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *sequence = capability(names[i].name);
        if (sequence != NULL) {
            ui_keys_define(keys, sequence, names[i].code, names[i].mods);
        }
    }
    for (unsigned i = 0; i < 12; i++) {
        char name[8];
        snprintf(name, sizeof name, "kf%u", i + 1);
        const char *sequence = capability(name);
        if (sequence != NULL) {
            ui_keys_define(keys, sequence, UI_KEY_F1 + i, 0);
        }
    }
}

/* --- drawing -----------------------------------------------------------------------------------
 */

void ui_term_size(int *rows, int *cols) {
    struct winsize size;
    *rows = 24;
    *cols = 80;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
        *rows = size.ws_row < MAX_ROWS ? size.ws_row : MAX_ROWS;
        *cols = size.ws_col < MAX_COLS ? size.ws_col : MAX_COLS;
    }
}

void ui_term_resized(void) {
    int rows, cols;
    ui_term_size(&rows, &cols);
    resizeterm(rows, cols);
    ui_term_redraw();
}

void ui_term_redraw(void) {
    term.full = true;
}

static attr_t attributes(enum ui_role role) {
    uint8_t bits = ui_theme_style(role, term.depth).attrs;
    attr_t a = A_NORMAL;
    a |= bits & UI_BOLD ? A_BOLD : 0;
    a |= bits & UI_FAINT ? A_DIM : 0;
    a |= bits & UI_ITALIC ? A_ITALIC : 0;
    a |= bits & UI_UNDERLINE ? A_UNDERLINE : 0;
    a |= bits & UI_REVERSE ? A_REVERSE : 0;
    return a;
}

static short pair(enum ui_role role) {
    return term.depth == UI_MONO ? 0 : (short)(role + 1);
}

/* The characters of a cell as curses takes them: one with a width and its combining marks. */
static void cell_chars(const struct ui_cell *cell, wchar_t out[CCHARW_MAX + 1]) {
    int n = 0;
    for (size_t i = 0; i < cell->len && n < CCHARW_MAX;) {
        uint32_t c;
        int bytes = cw_utf8_decode(cell->text + i, cell->len - i, &c);
        out[n++] = bytes > 0 ? (wchar_t)c : L'?';
        i += bytes > 0 ? (size_t)bytes : 1;
    }
    out[n] = L'\0';
}

/* Give a row to curses. Returns whether it holds joined clusters. */
static bool draw_row(const struct ui_screen *s, int row) {
    bool joined = false;
    for (int col = 0; col < s->cols; col++) {
        const struct ui_cell *cell = ui_screen_at(s, row, col);
        if (cell->width == 0) {
            continue;
        }
        wchar_t chars[CCHARW_MAX + 1];
        cchar_t c;
        enum ui_role role = (enum ui_role)cell->role;
        int copies = 1;
        if (cell->joined) {
            joined = true;
            chars[0] = L' ';
            chars[1] = L'\0';
            copies = cell->width;
        } else {
            cell_chars(cell, chars);
        }
        setcchar(&c, chars, attributes(role), pair(role), NULL);
        for (int i = 0; i < copies; i++) {
            mvadd_wch(row, col + i, &c);
        }
    }
    return joined;
}

static struct cw_buf *collected; /* where collect writes to */

static int collect(int c) {
    cw_buf_putc(collected, (char)c);
    return c;
}

static void place_cursor(int row, int col) {
    tputs(tparm(cursor_address, (long)row, (long)col, 0L, 0L, 0L, 0L, 0L, 0L, 0L), 1, collect);
}

static void add_joined(const struct ui_screen *s, int row, struct cw_buf *out) {
    collected = out;
    for (int col = 0; col < s->cols; col++) {
        const struct ui_cell *cell = ui_screen_at(s, row, col);
        if (!cell->joined) {
            continue;
        }
        enum ui_role role = (enum ui_role)cell->role;
        place_cursor(row, col);
        vid_puts(attributes(role), pair(role), NULL, collect);
        cw_buf_add(out, cell->text, cell->len);
    }
}

static bool row_has_joined(const struct ui_screen *s, int row) {
    for (int col = 0; col < s->cols; col++) {
        const struct ui_cell *cell = ui_screen_at(s, row, col);
        if (cell != NULL && cell->joined) {
            return true;
        }
    }
    return false;
}

void ui_term_blit(const struct ui_screen *s) {
    if (s->rows != LINES || s->cols != COLS) {
        return; /* a resize is under way */
    }
    bool full = term.full || term.last.rows != s->rows || term.last.cols != s->cols;
    if (full) {
        erase();
        clearok(curscr, TRUE);
        ui_screen_resize(&term.last, s->rows, s->cols);
        term.full = false;
    }
    size_t row_bytes = (size_t)s->cols * sizeof *s->cells;
    struct cw_buf after = {0};
    bool *redo = cw_calloc((size_t)s->rows, sizeof *redo);
    for (int row = 0; row < s->rows; row++) {
        const struct ui_cell *now = ui_screen_at(s, row, 0);
        struct ui_cell *before = ui_screen_at(&term.last, row, 0);
        if (!full && memcmp(now, before, row_bytes) == 0) {
            continue;
        }
        redo[row] = draw_row(s, row);
        if (redo[row] || row_has_joined(&term.last, row)) {
            wredrawln(stdscr, row, 1); /* curses does not know what really stands there */
        }
        memcpy(before, now, row_bytes);
    }
    bool visible = s->cursor_row >= 0;
    curs_set(visible ? 1 : 0);
    move(visible ? s->cursor_row : 0, visible ? s->cursor_col : 0);
    refresh();
    for (int row = 0; row < s->rows; row++) {
        if (redo[row]) {
            add_joined(s, row, &after);
        }
    }
    if (after.len > 0) {
        collected = &after;
        vid_puts(A_NORMAL, 0, NULL, collect);
        place_cursor(getcury(curscr), getcurx(curscr));
        write_all(after.data, after.len);
    }
    cw_buf_free(&after);
    free(redo);
}

/* --- stopping ----------------------------------------------------------------------------------
 */

void ui_term_continue(void) {
    install_flag_handler(SIGTSTP, NULL);
    reset_prog_mode();
    write_all(PASTE_ON, sizeof PASTE_ON - 1);
    ui_term_resized();
    atomic_fetch_and(&flags, (unsigned)~UI_SIGNAL_CONT);
}

void ui_term_suspend(void) {
    leave_screen();
    signal(SIGTSTP, SIG_DFL);
    raise(SIGTSTP); /* to this thread, so it has happened when raise returns */
    ui_term_continue();
}

int ui_term_run(const char *command, const char *arg) {
    const char *const argv[] = {"sh", "-c", command, "sh", arg, NULL};
    pid_t pid;
    int status = -1;
    leave_screen();
    if (posix_spawnp(&pid, "sh", NULL, NULL, (char *const *)argv, environ) == 0) {
        while (waitpid(pid, &status, WUNTRACED) != pid || WIFSTOPPED(status)) {
            if (WIFSTOPPED(status)) { /* stopped by its user: so are we, for the shell to see */
                signal(SIGTSTP, SIG_DFL);
                raise(SIGTSTP);
                install_flag_handler(SIGTSTP, NULL);
                kill(pid, SIGCONT);
            }
            status = 0;
        }
    }
    ui_term_continue();
    /* what the keys of the other program did to the whole job was not meant for us */
    atomic_fetch_and(&flags, (unsigned)~(UI_SIGNAL_INT | UI_SIGNAL_STOP));
    return status;
}
