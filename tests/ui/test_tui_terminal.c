/* SPDX-License-Identifier: MIT
 *
 * The terminal: that it is left as it was found by every way out, survives sizes and signals, and
 * that pastes, locales and bad environments do no harm.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vterm.h>

#include "tests/ui/tui.h"

#define ESC   "\033"
#define BEGIN ESC "[200~"
#define END   ESC "[201~"

static struct tui t;

static void setup(void) {
    tui_init(&t);
}

/* ---- ways out ------------------------------------------------------------------------------- */

START_TEST(leaves_by_command_and_key) {
    static const char *const keys[] = {"/exit\r", "/bye\r", "/quit\r", "\004"};
    tui_model_text(&t, "ok");
    tui_start_idle(&t);
    pty_type(&t.pty, keys[_i]);
    ck_assert(pty_wait_exit(&t.pty));
    ck_assert(WIFEXITED(t.pty.status));
    ck_assert_int_eq(WEXITSTATUS(t.pty.status), 0);
    tui_assert_restored(&t);
    tui_end(&t);
}
END_TEST

START_TEST(ctrl_d_needs_an_empty_line) {
    tui_model_text(&t, "ok");
    tui_start_idle(&t);
    pty_type(&t.pty, "ab\001\004"); /* Ctrl+A Ctrl+D deletes a */
    ck_assert(pty_wait_text(&t.pty, " > b"));
    pty_type(&t.pty, "\004\004");
    ck_assert(pty_wait_exit(&t.pty));
    ck_assert_int_eq(WEXITSTATUS(t.pty.status), 0);
    tui_assert_restored(&t);
    tui_end(&t);
}
END_TEST

/* Signals that end the program, while it is idle, answering, reading a prompt or loading. */
enum { IDLE, ANSWERING, READING, LOADING, N_MOMENTS };

static const int ends[] = {SIGTERM, SIGHUP, SIGABRT, SIGQUIT};

START_TEST(ends_by_signal) {
    int sig = ends[_i / N_MOMENTS];
    tui_model_words(&t, 2500, false);
    if (_i % N_MOMENTS == LOADING) {
        tui_start(&t);
        ck_assert(pty_wait_raw(&t.pty, 0, "\033[?2004h"));
    } else {
        tui_start_idle(&t);
    }
    if (_i % N_MOMENTS == ANSWERING) {
        pty_type(&t.pty, "go\r");
        ck_assert(pty_wait_raw(&t.pty, 0, "w0000"));
    } else if (_i % N_MOMENTS == READING) {
        struct cw_buf text = {0};
        cw_buf_puts(&text, BEGIN);
        for (int i = 0; i < 7000; i++) {
            cw_buf_puts(&text, "x");
        }
        cw_buf_puts(&text, END "\r");
        pty_send(&t.pty, text.data, text.len);
        cw_buf_free(&text);
        ck_assert(pty_wait_text(&t.pty, "· xxx"));
    }
    pty_signal(&t.pty, sig);
    ck_assert(pty_wait_exit(&t.pty));
    /* the shell sees the signal itself; a sanitizer may turn an abort into its own exit */
    ck_assert(WIFSIGNALED(t.pty.status) || sig == SIGABRT);
    if (WIFSIGNALED(t.pty.status)) {
        ck_assert_int_eq(WTERMSIG(t.pty.status), sig);
    }
    tui_assert_restored(&t);
    tui_end(&t);
}
END_TEST

START_TEST(crash_restores) {
    int sig = _i == 0 ? SIGSEGV : SIGBUS;
    tui_model_text(&t, "ok");
    /* in a sanitizer's build: our handlers, not its own */
    t.more_env[0] = "ASAN_OPTIONS=handle_segv=0:handle_sigbus=0";
    tui_start_idle(&t);
    pty_signal(&t.pty, sig);
    ck_assert(pty_wait_exit(&t.pty));
    ck_assert(WIFSIGNALED(t.pty.status));
    ck_assert_int_eq(WTERMSIG(t.pty.status), sig);
    tui_assert_restored(&t);
    tui_end(&t);
}
END_TEST

/* The terminal goes away: the program ends by itself. */
START_TEST(terminal_goes_away) {
    tui_model_text(&t, "ok");
    tui_start_idle(&t);
    close(t.pty.slave);
    close(t.pty.master);
    for (int i = 0; i < 600 && !t.pty.reaped; i++) {
        t.pty.reaped = waitpid(t.pty.pid, &t.pty.status, WNOHANG) == t.pty.pid;
        if (!t.pty.reaped) {
            usleep(100000);
        }
    }
    ck_assert(t.pty.reaped);
    t.pty.master = t.pty.slave = -1;
    tui_end(&t);
}
END_TEST

/* Ctrl+Z in mid-reply, a command in the shell, fg. */
START_TEST(stops_and_continues) {
    const char *build = getenv("CHINWAG_BUILD_ROOT");
    char command[1024], home[128];
    tui_model_words(&t, 2500, false);
    snprintf(home, sizeof home, "HOME=%s", t.dir);
    const char *const argv[] = {"/bin/sh", "-i", NULL};
    const char *const env[] = {"TERM=xterm-256color",
                               "LC_ALL=C.UTF-8",
                               home,
                               "PS1=shell> ",
                               "PATH=/usr/bin:/bin",
                               getenv("ASAN_OPTIONS") ? "ASAN_OPTIONS=detect_leaks=0" : NULL,
                               NULL};
    struct pty_options opt = {.argv = argv, .env = env, .cwd = t.dir};
    pty_start(&t.pty, &opt);
    ck_assert(pty_wait_text(&t.pty, "shell>"));
    snprintf(command, sizeof command, "%s/app/chinwag -m %s -t 1\r", build, t.model);
    pty_type(&t.pty, command);
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "go\r");
    ck_assert(pty_wait_raw(&t.pty, 0, "w0000"));
    size_t before = t.pty.raw.len;
    pty_type(&t.pty, "\032");
    ck_assert(pty_wait_raw(&t.pty, before, ESC "[?1049l"));
    ck_assert(pty_raw_has(&t.pty, before, ESC "[?2004l"));
    ck_assert(pty_wait_text(&t.pty, "shell>"));
    ck_assert(pty_wait_modes(&t.pty));
    pty_type(&t.pty, "echo in the sh\"\"ell\r");
    ck_assert(pty_wait_text(&t.pty, "in the shell"));
    before = t.pty.raw.len;
    pty_type(&t.pty, "fg\r");
    ck_assert(pty_wait_raw(&t.pty, before, ESC "[?1049h"));
    ck_assert(pty_wait_raw(&t.pty, before, ESC "[?2004h"));
    ck_assert(pty_wait_text(&t.pty, "w2499.")); /* the reply goes on */
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(pty_wait_no_text(&t.pty, "shell"));
    pty_type(&t.pty, "typed");
    ck_assert(pty_wait_text(&t.pty, " > typed"));
    pty_type(&t.pty, "\003/exit\r");
    ck_assert(pty_wait_text(&t.pty, "shell>"));
    ck_assert(pty_wait_modes(&t.pty));
    pty_type(&t.pty, "exit\r");
    ck_assert(pty_wait_exit(&t.pty));
    tui_end(&t);
}
END_TEST

/* Stopped by a signal it cannot catch, woken again: it takes the terminal back. */
START_TEST(continues_after_sigstop) {
    tui_model_text(&t, "ok");
    tui_start_idle(&t);
    pty_signal(&t.pty, SIGSTOP);
    tcsetattr(t.pty.slave, TCSANOW, &t.pty.before); /* as a shell would */
    size_t before = t.pty.raw.len;
    pty_signal(&t.pty, SIGCONT);
    ck_assert(pty_wait_raw(&t.pty, before, ESC "[?2004h"));
    pty_type(&t.pty, "hello\r");
    ck_assert(pty_wait_text(&t.pty, "   hello"));
    ck_assert(pty_wait_text(&t.pty, "   ok"));
    tui_finish(&t);
}
END_TEST

/* ---- sizes ---------------------------------------------------------------------------------- */

/* The screen of a terminal that got only what was written from raw[from] on. */
static char *fresh_screen(struct pty *p, size_t from) {
    struct pty fresh = {.rows = p->rows, .cols = p->cols};
    VTerm *vt = vterm_new(p->rows, p->cols);
    vterm_set_utf8(vt, 1);
    VTermScreen *screen = vterm_obtain_screen(vt);
    vterm_screen_enable_altscreen(screen, 1);
    vterm_screen_reset(screen, 1);
    vterm_input_write(vt, p->raw.data + from, p->raw.len - from);
    fresh.vt = vt;
    fresh.screen = screen;
    char *text = pty_screen(&fresh);
    vterm_free(vt);
    return text;
}

START_TEST(resize_storm) {
    tui_model_words(&t, 2500, false);
    tui_start_idle(&t);
    pty_type(&t.pty, "tell me something long\r");
    ck_assert(pty_wait_raw(&t.pty, 0, "w0000"));
    uint32_t seed = 2024;
    for (int i = 0; i < 500; i++) {
        seed = seed * 1664525 + 1013904223;
        int rows = 1 + (int)((seed >> 8) % 80), cols = 1 + (int)((seed >> 18) % 250);
        pty_resize(&t.pty, rows, cols);
        pty_pump(&t.pty, 5);
        if (i == 100) {
            pty_type(&t.pty, "x");
        }
    }
    pty_resize(&t.pty, 24, 80);
    ck_assert(pty_wait_text(&t.pty, "w2499."));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(pty_wait_text(&t.pty, " > x")); /* nothing else came of it */
    ck_assert(!pty_shows(&t.pty, "queued"));
    pty_type(&t.pty, "yz");
    ck_assert(pty_wait_text(&t.pty, " > xyz"));
    size_t from = t.pty.raw.len;
    pty_type(&t.pty, "\014"); /* Ctrl+L */
    pty_type(&t.pty, "!");
    ck_assert(pty_wait_text(&t.pty, " > xyz!"));
    char *want = fresh_screen(&t.pty, from), *got = pty_screen(&t.pty);
    ck_assert_str_eq(got, want);
    ck_assert_ptr_nonnull(
        strstr(got, "   w2490 w2491 w2492 w2493 w2494 w2495 w2496 w2497 w2498 w2499."));
    free(want);
    free(got);
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, "xyz"));
    tui_finish(&t);
}
END_TEST

START_TEST(one_by_one) {
    tui_model_text(&t, "fine");
    t.rows = 1;
    t.cols = 1;
    tui_start(&t);
    ck_assert(pty_wait_raw(&t.pty, 0, "\033[?2004h"));
    pty_type(&t.pty, "hello\r");
    static const int sizes[][2] = {{1, 1},  {2, 1}, {1, 2},  {2, 2},   {3, 80},  {1, 80}, {24, 1},
                                   {24, 2}, {5, 5}, {4, 10}, {24, 11}, {24, 12}, {7, 30}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        pty_resize(&t.pty, sizes[i][0], sizes[i][1]);
        pty_type(&t.pty, "a");
        pty_type(&t.pty, ESC "OP"); /* help, and away with it */
        pty_pump(&t.pty, 20);
        pty_type(&t.pty, ESC "OP");
        pty_pump(&t.pty, 20);
    }
    pty_resize(&t.pty, 24, 80);
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    ck_assert(pty_wait_text(&t.pty, "idle")); /* before, Ctrl+C would stop the reply */
    ck_assert(pty_wait_text(&t.pty, " > aaaaaaaaaaaaa"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, "aaa"));
    tui_finish(&t);
}
END_TEST

START_TEST(narrow_bars) {
    tui_model_text(&t, "fine");
    t.rows = 12;
    t.cols = 20;
    tui_start_idle(&t);
    pty_type(&t.pty, "hello\r");
    ck_assert(pty_wait_text(&t.pty, " fine"));
    ck_assert(pty_wait_text(&t.pty, "/4096"));
    ck_assert(pty_wait_text(&t.pty, " idle"));
    char *row = pty_row(&t.pty, 11);
    ck_assert_ptr_nonnull(strstr(row, " idle"));
    free(row);
    tui_finish(&t);
}
END_TEST

/* ---- pastes --------------------------------------------------------------------------------- */

START_TEST(paste_is_one_message) {
    tui_model_text(&t, "fine");
    tui_start_idle(&t);
    pty_type(&t.pty, BEGIN "one\ntwo\r\nthree\t." END);
    ck_assert(pty_wait_text(&t.pty, "   three"));
    ck_assert(!pty_shows(&t.pty, " you"));
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    int row = pty_find(&t.pty, "   one");
    ck_assert_int_eq(pty_find(&t.pty, "   two"), row + 1);
    ck_assert_int_eq(pty_find(&t.pty, "   three"), row + 2);
    tui_finish(&t);
}
END_TEST

static const struct {
    const char *bytes;
    size_t n;
    const char *shown;
} payloads[] = {
#define PAYLOAD(bytes, shown)                                                                      \
    { bytes, sizeof bytes - 1, shown }
    PAYLOAD("ends in esc" ESC, "ends in esc^["),
    PAYLOAD("ends in" ESC "[2", "ends in^[[2"),
    PAYLOAD("a" END "\n/quit\n", "/quit"),
    PAYLOAD("a" END "\r/quit\r", "/quit"),
    PAYLOAD("nul\0inside", "nulinside"),
    PAYLOAD("\003\004\032", "^C^D^Z"),
    PAYLOAD("/exit\r", "/exit"),
    PAYLOAD("\xff\xfe", "\\xff\\xfe"),
};

START_TEST(paste_payloads) {
    tui_model_text(&t, "fine");
    tui_start_idle(&t);
    pty_type(&t.pty, BEGIN);
    pty_send(&t.pty, payloads[_i].bytes, payloads[_i].n);
    pty_type(&t.pty, END);
    ck_assert(pty_wait_text(&t.pty, payloads[_i].shown));
    pty_type(&t.pty, " typed");
    ck_assert(pty_wait_text(&t.pty, " typed"));
    ck_assert(!pty_shows(&t.pty, " you")); /* nothing was sent, nothing was run */
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, "typed"));
    pty_type(&t.pty, "works\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    tui_finish(&t);
}
END_TEST

START_TEST(paste_end_marker_cut) {
    tui_model_text(&t, "fine");
    tui_start_idle(&t);
    pty_type(&t.pty, BEGIN "cut" ESC "[20");
    pty_pump(&t.pty, 200); /* the gap: whatever its length, the marker is one */
    pty_pump(&t.pty, 200);
    pty_type(&t.pty, "1~");
    ck_assert(pty_wait_text(&t.pty, " > cut"));
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    tui_finish(&t);
}
END_TEST

START_TEST(paste_large) {
    static const char *const large[] = {"-c", "2000", NULL};
    tui_model_text(&t, "fine");
    memcpy(t.more_args, large, sizeof large);
    tui_start_idle(&t);
    struct cw_buf text = {0};
    cw_buf_puts(&text, BEGIN);
    for (int i = 0; i < 1024 * 1024 / 16; i++) {
        cw_buf_printf(&text, "%14d.\n", i);
    }
    cw_buf_puts(&text, END);
    pty_send(&t.pty, text.data, text.len);
    ck_assert(pty_wait_text(&t.pty, "[pasted 65536 lines]"));
    pty_type(&t.pty, "end");
    ck_assert(pty_wait_text(&t.pty, "lines]end"));
    pty_type(&t.pty, "\r"); /* too long for the context: said, and given back */
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(pty_wait_text(&t.pty, "lines]"));
    ck_assert(pty_wait_text(&t.pty, "context"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, "lines]"));
    pty_type(&t.pty, "short\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    cw_buf_free(&text);
    tui_finish(&t);
}
END_TEST

/* 10,000 letters without paste support and without a line end: all arrive. */
START_TEST(types_ten_thousand_letters) {
    tui_model_text(&t, "fine");
    tui_start_idle(&t);
    struct cw_buf text = {0};
    for (int i = 0; i < 1000; i++) {
        cw_buf_printf(&text, "%09d.", i);
    }
    pty_send(&t.pty, text.data, text.len);
    ck_assert(pty_wait_text(&t.pty, "000000999."));
    ck_assert(pty_wait_text(&t.pty, "10000 tokens"));
    cw_buf_free(&text);
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, "000000999."));
    tui_finish(&t);
}
END_TEST

/* ---- the environment ------------------------------------------------------------------------ */

START_TEST(history_over_runs) {
    tui_model_text(&t, "fine");
    tui_start_idle(&t);
    pty_type(&t.pty, "one\ntwo\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    pty_type(&t.pty, "/exit\r");
    ck_assert(pty_wait_exit(&t.pty));
    pty_end(&t.pty);
    char path[256];
    struct stat st;
    snprintf(path, sizeof path, "%s/.local/state/chinwag/history", t.dir);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    tui_start_idle(&t);
    pty_type(&t.pty, ESC "[A" ESC "[A"); /* /exit, then the message */
    ck_assert(pty_wait_text(&t.pty, " > one"));
    ck_assert(pty_wait_text(&t.pty, "   two"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, " > one"));
    tui_finish(&t);
}
END_TEST

/* Whether any sequence sets a colour. */
static bool has_colour(const struct cw_buf *raw) {
    for (size_t i = 0; i + 3 < raw->len; i++) {
        if (raw->data[i] != '\033' || raw->data[i + 1] != '[') {
            continue;
        }
        size_t k = i + 2;
        while (k < raw->len &&
               (raw->data[k] == ';' || (raw->data[k] >= '0' && raw->data[k] <= '9'))) {
            k++;
        }
        if (k < raw->len && raw->data[k] == 'm') {
            for (size_t p = i + 2; p < k; p++) {
                bool first = raw->data[p - 1] == '[' || raw->data[p - 1] == ';';
                if (first && (raw->data[p] == '3' || raw->data[p] == '4' || raw->data[p] == '9') &&
                    p + 1 < k && raw->data[p + 1] != ';') {
                    return true;
                }
            }
        }
    }
    return false;
}

START_TEST(no_color) {
    tui_model_text(&t, "fine");
    t.more_env[0] = _i == 0 ? NULL : _i == 1 ? "NO_COLOR=1" : "NO_COLOR=";
    tui_start_idle(&t);
    pty_type(&t.pty, "hello\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    ck_assert_int_eq(has_colour(&t.pty.raw), _i != 1);
    tui_finish(&t);
}
END_TEST

static const char *const homes[] = {"/dev/null", "", "relative"};

START_TEST(no_place_to_write) {
    tui_model_text(&t, "fine");
    t.home = homes[_i];
    tui_start_idle(&t);
    ck_assert(pty_wait_text(&t.pty, "will not be remembered"));
    pty_type(&t.pty, "hello\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    pty_type(&t.pty, "again\r");
    ck_assert(pty_wait_text(&t.pty, "   again"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    char *screen = pty_screen(&t.pty);
    const char *said = strstr(screen, "will not be remembered");
    ck_assert_ptr_nonnull(said);
    ck_assert_ptr_null(strstr(said + strlen("will not be remembered"), "remembered")); /* once */
    free(screen);
    pty_type(&t.pty, ESC "[A"); /* within the run it is */
    ck_assert(pty_wait_text(&t.pty, " > again"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_no_text(&t.pty, " > again"));
    char command[256];
    snprintf(command, sizeof command, "test \"$(ls -A %s)\" = model.gguf", t.dir);
    ck_assert_int_eq(system(command), 0); /* nothing was left in the current directory */
    tui_finish(&t);
}
END_TEST

START_TEST(history_is_a_directory) {
    char command[256];
    tui_model_text(&t, "fine");
    snprintf(command, sizeof command, "mkdir -p %s/.local/state/chinwag/history", t.dir);
    ck_assert_int_eq(system(command), 0);
    tui_start_idle(&t);
    ck_assert(pty_wait_text(&t.pty, "will not be remembered"));
    tui_finish(&t);
}
END_TEST

static const char *const terms[] = {"xterm", "linux", "screen", "tmux-256color",
                                    "rxvt",  "vt100", "vt220"};

START_TEST(other_terminals) {
    tui_model_text(&t, "fine");
    t.term = terms[_i];
    tui_start_idle(&t);
    pty_type(&t.pty, "hello" ESC "[D" ESC "OD-\r");
    ck_assert(pty_wait_text(&t.pty, "   hel-lo"));
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    pty_type(&t.pty, "/exit\r");
    ck_assert(pty_wait_exit(&t.pty));
    ck_assert_int_eq(WEXITSTATUS(t.pty.status), 0);
    ck_assert(pty_modes_restored(&t.pty));
    tui_end(&t);
}
END_TEST

static const char *const langs[] = {"C", "POSIX", "xx_YY.UTF-8", ""};

START_TEST(locales) {
    static const char text[] =
        "na\xc3\xafve caf\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87 \xf0\x9f\x98\x80 end";
    tui_model_text(&t, text);
    t.lang = langs[_i];
    tui_start_idle(&t);
    pty_type(&t.pty, text);
    pty_type(&t.pty, "\177\177\177\177\177!\r"); /* up to the emoji, by character */
    ck_assert(pty_wait_text(&t.pty, "   na\xc3\xafve caf\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87 !"));
    char want[96];
    snprintf(want, sizeof want, "   %s", text);
    ck_assert(pty_wait_text(&t.pty, want));
    tui_finish(&t);
}
END_TEST

/* How often the main thread has gone to sleep so far. */
static unsigned long n_sleeps(void) {
    char path[64], line[256];
    unsigned long n = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)t.pty.pid, (int)t.pty.pid);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) != NULL) {
        sscanf(line, "voluntary_ctxt_switches: %lu", &n);
    }
    fclose(f);
    return n;
}

/* With nothing to do the process sleeps: no wake-ups, no output, once the last figures are drawn
 * and the conversation is written. */
START_TEST(idle_costs_nothing) {
    enum { TRIES = 30 };
    tui_model_text(&t, "fine");
    tui_start_idle(&t);
    tui_say(&t, "hello");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    tui_rest(&t);
    bool asleep = false;
    for (int i = 0; i < TRIES && !asleep; i++) {
        unsigned long before = n_sleeps();
        bool silent = !pty_pump(&t.pty, 2000);
        asleep = silent && n_sleeps() == before;
    }
    ck_assert(asleep);
    tui_finish(&t);
}
END_TEST

static Suite *suite(void) {
    Suite *s = suite_create("tui terminal");
    TCase *c = tcase_create("terminal");
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_loop_test(c, leaves_by_command_and_key, 0, 4);
    tcase_add_test(c, ctrl_d_needs_an_empty_line);
    tcase_add_loop_test(c, ends_by_signal, 0, N_MOMENTS * (int)(sizeof ends / sizeof ends[0]));
    tcase_add_loop_test(c, crash_restores, 0, 2);
    tcase_add_test(c, terminal_goes_away);
    tcase_add_test(c, stops_and_continues);
    tcase_add_test(c, continues_after_sigstop);
    tcase_add_test(c, resize_storm);
    tcase_add_test(c, one_by_one);
    tcase_add_test(c, narrow_bars);
    tcase_add_test(c, paste_is_one_message);
    tcase_add_loop_test(c, paste_payloads, 0, (int)(sizeof payloads / sizeof payloads[0]));
    tcase_add_test(c, paste_end_marker_cut);
    tcase_add_test(c, paste_large);
    tcase_add_test(c, types_ten_thousand_letters);
    tcase_add_test(c, history_over_runs);
    tcase_add_loop_test(c, no_color, 0, 3);
    tcase_add_loop_test(c, no_place_to_write, 0, 3);
    tcase_add_test(c, history_is_a_directory);
    tcase_add_loop_test(c, other_terminals, 0, (int)(sizeof terms / sizeof terms[0]));
    tcase_add_loop_test(c, locales, 0, (int)(sizeof langs / sizeof langs[0]));
    tcase_add_test(c, idle_costs_nothing);
    suite_add_tcase(s, c);
    return s;
}

int main(void) {
    SRunner *sr = srunner_create(suite());
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
