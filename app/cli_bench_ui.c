/* SPDX-License-Identifier: MIT
 *
 * The interface as a terminal sees it: the real chat runs on a pseudo-terminal of 80x24, and what
 * it sends is counted. Three replies to three questions, greedy, so that their text is known:
 *
 *   the first at 50 tokens a second, each let through by the key that steps: bytes for each byte of
 *   its text, everything on the screen included;
 *   the second as fast as it goes: the main thread's share of the CPU, which is all that drawing
 *   can have taken;
 *   the third as well, while letters are typed: how long until each is on the screen. At its end a
 *   paste of 1 MiB, and a letter behind it.
 *
 * The chat reads and writes nothing of the person's: its directories are empty ones of its own.
 */
#include "app/cli_bench.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chinwag/clock.h"

enum {
    ROWS = 24,
    COLUMNS = 80,
    REPLY_TOKENS = 1000,
    MAX_KEYS = 400,
    PASTE_BYTES = 1 << 20,
    FIRST_LETTER = 0xc0, /* letters that no reply has: A with grave and the sixty behind it */
    N_LETTERS = 60,
    IDLE_STEPS = 10,
};
static const double TOKENS_S = 50, QUIET_S = 1, GIVE_UP_S = 30, KEY_PAUSE_S = 0.02;
/* Of the second and the third reply no more is waited for: they are then stopped. */
static const double FREE_S = 6, LETTER_GIVE_UP_S = 5;
static const char step_key[] = "\033[21~"; /* F10 */
static const char *const questions[] = {
    "Tell a very long story of a voyage at sea.",
    "Tell a very long story of a walk over the mountains.",
    "Tell a very long story of a winter in the city.",
};

/* The chat and its terminal. */
struct screen {
    pid_t pid;
    int master;
    uint64_t bytes; /* sent by the chat so far */
    double last_s;  /* when it last sent any */
    char tail[4];   /* its last bytes: a letter may come in two pieces */
    char dir[32];
};

/* ---- the chat as a child -------------------------------------------------------------------- */

static void child_environment(const char *dir) {
    static const char *const names[] = {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
                                        "XDG_CACHE_HOME"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setenv(names[i], dir, 1);
    }
    setenv("TERM", "xterm-256color", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("INPUTRC", "/dev/null", 1);
    unsetenv("NO_COLOR");
    unsetenv("LINES");
    unsetenv("COLUMNS");
    unsetenv("TMUX");
}

static int screen_start(struct screen *s, const char *const *argv, struct cw_err *err) {
    struct winsize size = {.ws_row = ROWS, .ws_col = COLUMNS};
    memset(s, 0, sizeof *s);
    snprintf(s->dir, sizeof s->dir, "/tmp/chinwag-XXXXXX");
    if (!mkdtemp(s->dir)) {
        s->dir[0] = '\0';
        return cw_fail(err, CW_EIO, "a temporary directory: %s", strerror(errno));
    }
    s->pid = forkpty(&s->master, NULL, NULL, &size);
    if (s->pid < 0) {
        return cw_fail(err, CW_EIO, "a pseudo-terminal: %s", strerror(errno));
    }
    if (s->pid == 0) {
        child_environment(s->dir);
        execv("/proc/self/exe", (char *const *)argv);
        _exit(127);
    }
    fcntl(s->master, F_SETFL, O_NONBLOCK);
    s->last_s = cw_now();
    return CW_OK;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    remove(path);
    return 0;
}

static void screen_end(struct screen *s) {
    if (s->pid > 0) {
        kill(s->pid, SIGHUP);
        close(s->master);
        for (int i = 0; waitpid(s->pid, NULL, WNOHANG) == 0; i++) {
            if (i == 50) {
                kill(s->pid, SIGKILL);
            }
            usleep(20000);
        }
    }
    if (*s->dir) {
        nftw(s->dir, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
}

/* Take what comes until `until`; true as soon as `letter` (NULL: nothing) was among it. */
static bool pump(struct screen *s, double until, const char *letter) {
    for (;;) {
        char data[4 + 65536];
        double left = until - cw_now();
        struct pollfd fd = {.fd = s->master, .events = POLLIN};
        int ms = left > 0 ? (int)(left * 1e3) + 1 : 0;
        if (poll(&fd, 1, ms) <= 0) {
            if (cw_now() >= until) {
                return false;
            }
            continue;
        }
        memcpy(data, s->tail, sizeof s->tail);
        ssize_t n = read(s->master, data + sizeof s->tail, sizeof data - sizeof s->tail);
        if (n <= 0) {
            if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
                continue;
            }
            return false; /* it ended; whoever waits for more gives up in time */
        }
        s->bytes += (uint64_t)n;
        s->last_s = cw_now();
        bool found = letter && memmem(data + 2, (size_t)n + 2, letter, 2);
        memcpy(s->tail, data + n, sizeof s->tail);
        if (found) {
            return true;
        }
    }
}

/* Until nothing has come for a while: whatever was going on has ended. */
static bool wait_quiet(struct screen *s, double quiet, double give_up) {
    double begin = cw_now();
    s->last_s = begin;
    while (cw_now() - s->last_s < quiet) {
        pump(s, s->last_s + quiet, NULL);
        if (cw_now() - begin > give_up) {
            return false;
        }
    }
    return true;
}

/* Write all, taking what comes meanwhile. */
static void send_keys(struct screen *s, const char *keys, size_t n) {
    double begin = cw_now();
    for (size_t at = 0; at < n && cw_now() - begin < GIVE_UP_S;) {
        ssize_t k = write(s->master, keys + at, n - at);
        if (k > 0) {
            at += (size_t)k;
        } else {
            pump(s, cw_now() + 0.001, NULL);
        }
    }
}

/* CPU seconds so far of one thread, or of all. */
static double cpu_seconds(pid_t pid, bool all) {
    char path[64];
    unsigned long long ns = 0;
    double seconds = 0;
    if (all) {
        struct timespec t = {0};
        clockid_t clock;
        if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &t) == 0) {
            seconds = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
        }
        return seconds;
    }
    snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, pid);
    FILE *f = fopen(path, "re");
    if (f) {
        if (fscanf(f, "%llu", &ns) == 1) {
            seconds = 1e-9 * (double)ns;
        }
        fclose(f);
    }
    return seconds;
}

/* ---- the replies ---------------------------------------------------------------------------- */

/* What was asked for on the command lines of the chat and of the run that tells the text. */
struct reply_flags {
    struct bench_flags engine;
    char count[16];
    char biases[2][32];
    const char *argv[40];
    size_t n;
};

/* The end tokens are banned: every reply has its full length. */
static void reply_flags(struct bench *b, struct reply_flags *f, int64_t n_tokens) {
    static const char *const keys[] = {"tokenizer.ggml.eos_token_id",
                                       "tokenizer.ggml.eot_token_id"};
    const char *fixed[] = {"chinwag", "-m", b->e.path, "-n", f->count, "--temp", "0", "-s", "1"};
    snprintf(f->count, sizeof f->count, "%lld", (long long)n_tokens);
    for (f->n = 0; f->n < sizeof fixed / sizeof *fixed; f->n++) {
        f->argv[f->n] = fixed[f->n];
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        uint32_t id;
        if (cw_gguf_u32(b->e.gguf, keys[i], &id, NULL) == CW_OK) {
            snprintf(f->biases[i], sizeof f->biases[i], "%u-inf", id);
            f->argv[f->n++] = "--logit-bias";
            f->argv[f->n++] = f->biases[i];
        }
    }
    f->n = bench_flags(&b->cli->settings, &f->engine, f->argv, f->n);
}

/* The text of the first reply, as one-shot mode gives it. */
static int reply_text(struct reply_flags *f, size_t *bytes, size_t *tokens, struct cw_err *err) {
    struct cw_buf printed = {0};
    size_t n = f->n;
    f->argv[n++] = "--json";
    f->argv[n++] = "-p";
    f->argv[n++] = questions[0];
    f->argv[n] = NULL;
    int rc = bench_child((char *const *)f->argv, NULL, NULL, &printed, err);
    if (rc == CW_OK) {
        struct json_object *o = app_json_parse(printed.data, printed.len, err);
        struct json_object *ids = NULL;
        *bytes = strlen(bench_text(o, "text"));
        *tokens = json_object_object_get_ex(o, "tokens", &ids) ? json_object_array_length(ids) : 0;
        json_object_put(o);
        if (*bytes == 0 || *tokens == 0) {
            rc = cw_fail(err, CW_EIO, "the model has no reply to draw");
        }
    }
    cw_buf_free(&printed);
    return rc;
}

static void ask(struct screen *s, const char *question) {
    send_keys(s, question, strlen(question));
    wait_quiet(s, QUIET_S, GIVE_UP_S);
    s->bytes = 0;
    send_keys(s, "\r", 1);
}

/* The first reply: bytes sent for it. Steps before its first token are lost, so that nothing tells
 * how many it takes: it has ended when steps change nothing any more. */
static double stepped_reply(struct screen *s, size_t n_tokens) {
    ask(s, questions[0]);
    double begin = cw_now();
    uint64_t before = s->bytes;
    uint64_t last = before;
    size_t idle = 0;
    for (size_t i = 0; i < 4 * n_tokens && (i < n_tokens || idle < IDLE_STEPS); i++) {
        pump(s, begin + (double)(i + 1) / TOKENS_S, NULL);
        idle = s->bytes == before ? idle + 1 : 0;
        last = idle ? last : s->bytes;
        before = s->bytes;
        send_keys(s, step_key, sizeof step_key - 1);
    }
    wait_quiet(s, QUIET_S, GIVE_UP_S);
    return (double)last;
}

/* Ctrl+C, if it still runs; else that does no harm. */
static void stop_reply(struct screen *s) {
    send_keys(s, "\003", 1);
    wait_quiet(s, QUIET_S, GIVE_UP_S);
}

/* The second: its length in seconds; *share is the main thread's. */
static double free_reply(struct screen *s, double *share) {
    ask(s, questions[1]);
    double begin = cw_now();
    double main_s = cpu_seconds(s->pid, false);
    double all_s = cpu_seconds(s->pid, true);
    wait_quiet(s, QUIET_S, FREE_S);
    *share = (cpu_seconds(s->pid, false) - main_s) / (cpu_seconds(s->pid, true) - all_s);
    double length = s->last_s - begin;
    stop_reply(s);
    return length;
}

/* Type a letter; the seconds until it is on the screen, infinity when it never is. */
static double time_letter(struct screen *s, size_t number, double give_up) {
    unsigned code = FIRST_LETTER + (unsigned)(number % N_LETTERS);
    const char letter[2] = {(char)(0xc0 | code >> 6), (char)(0x80 | (code & 0x3f))};
    double begin = cw_now();
    memset(s->tail, 0, sizeof s->tail);
    send_keys(s, letter, 2);
    return pump(s, begin + give_up, letter) ? s->last_s - begin : HUGE_VAL;
}

/* The third: seconds from key to screen, [n], for as long as the reply runs. */
static size_t typed_reply(struct screen *s, double length, double *seconds) {
    size_t n = 0;
    ask(s, questions[2]);
    double begin = cw_now();
    while (n < MAX_KEYS && (n == 0 || cw_now() - begin < 0.9 * length)) {
        seconds[n] = time_letter(s, n, LETTER_GIVE_UP_S);
        if (seconds[n++] == HUGE_VAL) {
            break; /* it hangs, and the worst figure says so */
        }
        /* Not in step with anything the program does at regular times. */
        pump(s, cw_now() + KEY_PAUSE_S * (1 + (double)(n * 7 % 10) / 10), NULL);
        send_keys(s, "\177", 1);
        pump(s, cw_now() + KEY_PAUSE_S, NULL);
    }
    return n;
}

static double paste(struct screen *s) {
    static const char line[] = "A line of a text that somebody pastes into the input, 64 bytes. \n";
    struct cw_buf text = {0};
    cw_buf_puts(&text, "\033[200~");
    while (text.len < PASTE_BYTES) {
        cw_buf_puts(&text, line);
    }
    cw_buf_puts(&text, "\033[201~");
    send_keys(s, text.data, text.len);
    cw_buf_free(&text);
    return time_letter(s, N_LETTERS - 1, GIVE_UP_S);
}

/* ---- the part ------------------------------------------------------------------------------- */

static int measure(struct bench *b, struct screen *s, size_t text_bytes, size_t n_tokens,
                   struct json_object *out, struct cw_err *err) {
    double keys[MAX_KEYS];
    double share = 0;
    if (!wait_quiet(s, QUIET_S, GIVE_UP_S) || s->bytes == 0) {
        return cw_fail(err, CW_EIO, "the chat did not come to rest");
    }
    double sent = stepped_reply(s, n_tokens);
    double length = free_reply(s, &share);
    size_t n = typed_reply(s, length, keys);
    double pasted = paste(s);
    if (waitpid(s->pid, NULL, WNOHANG) != 0) {
        s->pid = 0;
        return cw_fail(err, CW_EIO, "the chat ended before its time");
    }
    double median = bench_median(keys, n); /* sorts them */
    json_object_object_add(out, "tokens", json_object_new_int64((int64_t)n_tokens));
    bench_add_whole(out, "text_bytes", (double)text_bytes);
    bench_add_whole(out, "sent_bytes", sent);
    bench_add(out, "sent_ratio", sent / (double)text_bytes);
    bench_add(out, "drawing_share", share);
    bench_add(out, "reply_s", length);
    json_object_object_add(out, "keys", json_object_new_int64((int64_t)n));
    bench_add(out, "key_ms_median", 1e3 * median);
    bench_add(out, "key_ms_p99", 1e3 * keys[(n * 99 + 99) / 100 - 1]); /* nearest rank */
    bench_add(out, "key_ms_worst", 1e3 * keys[n - 1]);
    bench_add(out, "key_ms_after_paste", 1e3 * pasted);
    return CW_OK;
}

int bench_ui(struct bench *b, struct json_object *out, struct cw_err *err) {
    struct reply_flags flags;
    struct screen s = {.pid = 0};
    size_t bytes = 0;
    size_t tokens = 0;
    reply_flags(b, &flags, cli_has(b->cli, "-n") ? b->n_decode : REPLY_TOKENS);
    size_t n = flags.n;
    int rc = reply_text(&flags, &bytes, &tokens, err);
    if (rc == CW_OK) {
        flags.argv[n] = NULL;
        rc = screen_start(&s, flags.argv, err);
        if (rc == CW_OK) {
            rc = measure(b, &s, bytes, tokens, out, err);
        }
        screen_end(&s);
    }
    bench_flags_free(&flags.engine);
    return rc;
}

void bench_ui_print(struct json_object *out) {
    cw_buf_printf(cli_out(), "a reply of %.0f tokens, %.0f bytes, on 80x24\n",
                  bench_number(out, "tokens"), bench_number(out, "text_bytes"));
    bench_put(out, "sent_bytes", "sent to the terminal", "bytes, at 50 tokens/s", 0);
    bench_put(out, "sent_ratio", "for each byte of text", "", 2);
    bench_put(out, "drawing_share", "main thread's CPU share", "of the program's, at full speed",
              4);
    bench_put(out, "keys", "keys typed meanwhile", "", 0);
    bench_put(out, "key_ms_median", "key on screen, median", "ms", 1);
    bench_put(out, "key_ms_p99", "99th percentile", "ms", 1);
    bench_put(out, "key_ms_worst", "worst", "ms", 1);
    bench_put(out, "key_ms_after_paste", "behind a 1 MiB paste", "ms", 1);
}
