/* SPDX-License-Identifier: MIT
 *
 * The one file that knows curses.
 *
 * Leaving. Every way out goes through restore(), once: ui_term_close (and atexit) by way of curses,
 * fatal signals and the out-of-memory hook by writing bytes prepared beforehand and tcsetattr,
 * which are safe in a handler. A handler of a fatal signal then puts back what was installed before
 * it and raises the signal again. Handlers of the other signals set a flag and write to an eventfd.
 *
 * Drawing. Curses takes the terminal, gives it back and clears it, and knows its description; the
 * cells are written by the painter (ui/paint.h), which scrolls and keeps what stands, where curses
 * spends several times the bytes of the text on a reply that streams in. Both write to the same
 * place in turn: whoever hands over does so in the terminal's own look.
 *
 * Colours. 24-bit ones need a description of the terminal whose colours are RGB. Where TERM's is
 * none but COLORTERM promises them, the description NAME-direct of the same terminal is taken, if
 * there is one; else the nearest colours of the palette do. The palette itself is never changed.
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
#include "ui/osc.h"
#include "ui/paint.h"

#define PASTE_ON   "\033[?2004h"
#define PASTE_OFF  "\033[?2004l"
#define MOUSE_ON   "\033[?1000h\033[?1006h" /* clicks and the wheel, as decimal numbers */
#define MOUSE_OFF  "\033[?1006l\033[?1000l"
#define TITLE_SAVE "\033[22;2t" /* the window's title, on the terminal's own stack */
#define TITLE_BACK "\033[23;2t"

/* Between frames of text that streams in. */
static const double STREAM_BYTES_S = 600, MIN_PAUSE_S = 1.0 / 15, MAX_PAUSE_S = 1.0 / 8;

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
    struct ui_paint paint; /* what is on the terminal */
    size_t last_bytes;     /* of the last frame */
    uint32_t epoch;        /* of the links on it */
    const char *strike;    /* how text is struck out, or NULL */
    bool color;
    struct sigaction before_flag[N_FLAG];
    void *stack; /* for handlers, should the main thread overflow its own */
    int n_early; /* bytes typed before the terminal was ours */
    enum ui_mux mux;
    bool knows_osc;
    char *title; /* ours; NULL: as it was found */
    bool mouse;  /* wanted */
} term;

/* Read by handlers. */
static atomic_bool active;                /* the terminal is ours and must be restored */
static atomic_bool title_saved, mouse_on; /* on the terminal, and to be taken back */
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

/* Take back what was switched on over and above the screen. Safe in a handler. */
static void restore_extras(void) {
    if (atomic_exchange(&mouse_on, false)) {
        write_all(MOUSE_OFF, sizeof MOUSE_OFF - 1);
    }
    if (atomic_exchange(&title_saved, false)) {
        write_all(TITLE_BACK, sizeof TITLE_BACK - 1);
    }
}

void ui_term_emergency(void) {
    if (atomic_exchange(&active, false)) {
        int saved_errno = errno;
        restore_extras();
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
        if (before_fatal[i].sa_handler == SIG_IGN) { /* so we were started */
            sigaction(fatal_signals[i], &before_fatal[i], NULL);
        }
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
    const char *region = capability("csr");
    add_restore(PASTE_OFF);
    if (region != NULL && strncmp(region, "\033[", 2) == 0) {
        add_restore("\033[r"); /* all rows scroll again, however many there are by then */
    }
    add_restore(capability("sgr0"));
    add_restore(capability("rmkx"));
    add_restore(capability("cnorm"));
    add_restore(capability("rmcup"));
}

static bool has_description(const char *name) {
    int status = 0;
    if (setupterm(name, STDOUT_FILENO, &status) != OK) {
        return false;
    }
    del_curterm(cur_term);
    return true;
}

/* The description to use: TERM's, or the 24-bit one of the same terminal (see the top). */
static void choose_description(char *out, size_t cap) {
    const char *name = getenv("TERM"), *promise = getenv("COLORTERM");
    snprintf(out, cap, "%s", name);
    bool promised =
        promise != NULL && (strcmp(promise, "truecolor") == 0 || strcmp(promise, "24bit") == 0);
    char direct[64];
    int n = (int)strcspn(name, "-");
    if (promised && n < 40 && strstr(name, "-direct") == NULL) {
        snprintf(direct, sizeof direct, "%.*s-direct", n, name);
        if (has_description(direct)) {
            snprintf(out, cap, "%s", direct);
        }
    }
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

/* --- what the terminal can do, for the painter --------------------------------------------------
 */

static struct cw_buf *collected; /* where collect writes to */

static int collect(int c) {
    cw_buf_putc(collected, (char)c);
    return c;
}

static void add_capability(struct cw_buf *out, const char *sequence) {
    collected = out;
    if (sequence != NULL) {
        tputs(sequence, 1, collect); /* without its delays */
    }
}

static void add_numbered(struct cw_buf *out, const char *sequence, long a, long b) {
    if (sequence != NULL) {
        add_capability(out, tparm(sequence, a, b, 0L, 0L, 0L, 0L, 0L, 0L, 0L));
    }
}

static void add_place(struct cw_buf *out, int row, int col) {
    add_numbered(out, cursor_address, row, col);
}

static void add_column(struct cw_buf *out, int col) {
    add_numbered(out, column_address, col, 0);
}

static void add_right(struct cw_buf *out, int n) {
    add_numbered(out, parm_right_cursor, n, 0);
}

static void add_erase_right(struct cw_buf *out) {
    add_capability(out, clr_eol);
}

static void add_region(struct cw_buf *out, int top, int bottom) {
    add_numbered(out, change_scroll_region, top, bottom);
}

static void add_scroll(struct cw_buf *out, int top, int bottom, int n) {
    const char *all = n > 0 ? parm_index : parm_rindex;
    if (all != NULL) {
        add_numbered(out, all, n > 0 ? n : -n, 0);
    } else {
        add_place(out, n > 0 ? bottom : top, 0);
        for (int i = 0; i < n || i < -n; i++) {
            add_capability(out, n > 0 ? scroll_forward : scroll_reverse);
        }
    }
}

/* What ends all attributes, less the choice of a character set that is never left here. */
static const char *plain_look(void) {
    static const char ascii[] = "\033(B";
    const char *all = exit_attribute_mode;
    bool more = all != NULL && strncmp(all, ascii, sizeof ascii - 1) == 0;
    return more && all[sizeof ascii - 1] != '\0' ? all + sizeof ascii - 1 : all;
}

static void add_style(struct cw_buf *out, const struct ui_style *from, const struct ui_style *to) {
    const struct {
        uint8_t bit;
        const char *sequence;
    } attrs[] = {
        {UI_BOLD, enter_bold_mode},       {UI_FAINT, enter_dim_mode},
        {UI_ITALIC, enter_italics_mode},  {UI_UNDERLINE, enter_underline_mode},
        {UI_REVERSE, enter_reverse_mode}, {UI_STRIKE, term.strike},
    };
    struct ui_style now = *from;
    if ((now.attrs & ~to->attrs) != 0 || (now.fg >= 0 && to->fg < 0) ||
        (now.bg >= 0 && to->bg < 0)) {
        add_capability(out, plain_look());
        now = (struct ui_style){.fg = -1, .bg = -1};
    }
    for (size_t i = 0; i < sizeof attrs / sizeof attrs[0]; i++) {
        if (to->attrs & ~now.attrs & attrs[i].bit) {
            add_capability(out, attrs[i].sequence);
        }
    }
    if (now.fg != to->fg) {
        add_numbered(out, set_a_foreground, to->fg, 0);
    }
    if (now.bg != to->bg) {
        add_numbered(out, set_a_background, to->bg, 0);
    }
}

static struct ui_paint_caps paint_caps(void) {
    bool down = parm_rindex != NULL || scroll_reverse != NULL;
    bool up = parm_index != NULL || scroll_forward != NULL;
    return (struct ui_paint_caps){
        .place = add_place,
        .column = column_address != NULL ? add_column : NULL,
        .right = parm_right_cursor != NULL ? add_right : NULL,
        .style = exit_attribute_mode != NULL ? add_style : NULL,
        .erase_right = clr_eol != NULL ? add_erase_right : NULL,
        .region = add_region,
        .scroll = change_scroll_region != NULL && up && down ? add_scroll : NULL,
        .attrs = (uint8_t)(UI_BOLD | UI_FAINT | UI_ITALIC | UI_UNDERLINE | UI_REVERSE |
                           (term.strike != NULL ? UI_STRIKE : 0)),
        .links = term.knows_osc,
        .corner = !auto_right_margin || eat_newline_glitch,
    };
}

/* The looks of the roles, as this terminal has them. */
void ui_term_restyle(void) {
    term.full = true;
    if (!atomic_load(&active)) {
        return;
    }
    int colors = term.color && set_a_foreground != NULL && set_a_background != NULL &&
                         exit_attribute_mode != NULL
                     ? tigetnum("colors")
                     : 0;
    term.depth = colors >= 1 << 24 ? UI_COLORS_RGB
                 : colors >= 256   ? UI_COLORS_256
                 : colors >= 8     ? UI_COLORS_16
                                   : UI_MONO;
    for (int role = 0; role < UI_N_ROLES; role++) {
        struct ui_style style = ui_theme_style((enum ui_role)role, term.depth);
        if (term.depth == UI_COLORS_16 && colors < 16) { /* eight, and their bright ones as bold */
            style.attrs |= style.fg >= 8 ? UI_BOLD : 0;
            style.fg -= style.fg >= 8 ? 8 : 0;
            style.bg -= style.bg >= 8 ? 8 : 0;
        }
        term.paint.styles[role] = style;
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
    char name[128];
    choose_description(name, sizeof name);
    atomic_store(&active, true);
    term.curses = newterm(name, stdout, stdin);
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
    term.color = color;
    term.strike = capability("smxx");
    term.mux = ui_osc_mux(getenv("TMUX"), getenv("STY"), getenv("TERM"));
    term.knows_osc = ui_osc_known(getenv("TERM"));
    write_all(PASTE_ON, sizeof PASTE_ON - 1);
    const struct ui_paint_caps caps = paint_caps();
    ui_paint_init(&term.paint, &caps);
    ui_term_restyle();
    ui_term_resized();
    return CW_OK;
}

int ui_term_open_plain(struct cw_err *err) {
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0) {
        return cw_fail(err, CW_EIO, "chat: eventfd: %s", strerror(errno));
    }
    install_flag_handler(SIGINT, NULL);
    install_flag_handler(SIGTERM, NULL);
    install_flag_handler(SIGHUP, NULL);
    return CW_OK;
}

static void leave_screen(void) {
    struct cw_buf out = {0};
    restore_extras();
    ui_paint_yield(&term.paint, LINES, &out); /* curses does not know of other looks */
    write_all(out.data, out.len);
    cw_buf_free(&out);
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
    ui_paint_free(&term.paint);
    delscreen(term.curses);
    term.curses = NULL;
    free(term.title);
    term.title = NULL;
    term.mouse = false;
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

void ui_term_blit(const struct ui_screen *s) {
    if (s->rows != LINES || s->cols != COLS) {
        return; /* a resize is under way */
    }
    struct cw_buf out = {0};
    if (term.full || term.epoch != s->epoch) {
        ui_paint_yield(&term.paint, s->rows, &out);
        write_all(out.data, out.len);
        out.len = 0;
        erase();
        clearok(curscr, TRUE);
        refresh(); /* which also takes the terminal again after it was given away */
        ui_paint_cleared(&term.paint, s->rows, s->cols);
        term.full = false;
        term.epoch = s->epoch;
    }
    curs_set(s->cursor_row >= 0 ? 1 : 0);
    ui_paint_frame(&term.paint, s, &out);
    write_all(out.data, out.len);
    term.last_bytes = out.len;
    cw_buf_free(&out);
}

double ui_term_pause(void) {
    double pause = (double)term.last_bytes / STREAM_BYTES_S;
    return pause < MIN_PAUSE_S ? MIN_PAUSE_S : pause > MAX_PAUSE_S ? MAX_PAUSE_S : pause;
}

/* --- beside the screen -------------------------------------------------------------------------
 */

bool ui_term_copy(const char *text, size_t n) {
    if (n > UI_COPY_MAX || !term.knows_osc) {
        return false;
    }
    struct cw_buf out = {0};
    ui_osc_copy(&out, term.mux, text, n);
    write_all(out.data, out.len);
    cw_buf_free(&out);
    return true;
}

void ui_term_notify(const char *text) {
    struct cw_buf out = {0};
    ui_osc_notify(&out, term.mux, term.knows_osc, text);
    write_all(out.data, out.len);
    cw_buf_free(&out);
}

/* Bring the terminal to the title and the mouse that are wanted. */
static void set_extras(void) {
    if (term.mouse && !atomic_load(&mouse_on)) {
        atomic_store(&mouse_on, true);
        write_all(MOUSE_ON, sizeof MOUSE_ON - 1);
    } else if (!term.mouse && atomic_exchange(&mouse_on, false)) {
        write_all(MOUSE_OFF, sizeof MOUSE_OFF - 1);
    }
    if (term.title == NULL && atomic_exchange(&title_saved, false)) {
        write_all(TITLE_BACK, sizeof TITLE_BACK - 1);
    } else if (term.title != NULL) {
        struct cw_buf out = {0};
        if (!atomic_exchange(&title_saved, true)) {
            cw_buf_puts(&out, TITLE_SAVE);
        }
        ui_osc_title(&out, term.title);
        write_all(out.data, out.len);
        cw_buf_free(&out);
    }
}

void ui_term_title(const char *text) {
    bool same =
        text != NULL && term.title != NULL ? strcmp(text, term.title) == 0 : text == term.title;
    if (same || !term.knows_osc) {
        return;
    }
    free(term.title);
    term.title = text != NULL ? cw_strdup(text) : NULL;
    set_extras();
}

void ui_term_mouse(bool on) {
    if (term.mouse != on) {
        term.mouse = on;
        set_extras();
    }
}

/* --- stopping ----------------------------------------------------------------------------------
 */

void ui_term_continue(void) {
    install_flag_handler(SIGTSTP, NULL);
    reset_prog_mode();
    write_all(PASTE_ON, sizeof PASTE_ON - 1);
    set_extras();
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
