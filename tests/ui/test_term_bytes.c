/* SPDX-License-Identifier: MIT
 *
 * What drawing costs on the line: a reply of a thousand tokens streams in at 50 a second, with the
 * status bar beside it, in frames as the program paces them, and the bytes that reach the terminal
 * are counted. Time is only counted here, not waited for. The terminal is driven by the real code;
 * the program around it is not needed.
 */
#include <check.h>
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ui/statusbar.h"
#include "ui/term.h"
#include "ui/transcript.h"

enum {
    ROWS = 24,
    COLS = 80,
    TOKENS = 1000,
    TOKEN_MS = 20,
    STATUS_MS = 500, /* between two states of the figures */
};

/* Three kinds of reply. Prose: words in any order, so that no line is like another, with a list and
 * some code in it. Code: a program that is explained. A loop: what a small model falls into. */
static const char *const prose[] = {
    "The",   " sea",     " is",     " never", " the",     " same",    " twice", ",",
    " and",  " sailors", " who",    " have",  " crossed", " it",      " many",  " times",
    " know", " that",    " a",      " calm",  " morning", " may",     " turn",  " into",
    " a",    " storm",   " before", " the",   " bread",   " is",      " baked", ".",
    " They", " steer",   " by",     " stars", " that",    " nobody",  " on",    " board",
    " has",  " a",       " name",   " for",   ",",        " because", " the",   " names",
    " were", " left",    " behind", " in",    " the",     " harbour", ".",      " "};
static const char *const rest[] = {
    "\n\n",   "-",   " *",   "wind", "*",    " from",  " the",   " west", "\n",  "-",      " rain",
    " and",   " **", "hail", "**",   "\n\n", "```",    "c",      "\n",    "int", " depth", " =",
    " sound", "(",   "ship", ");",   "\n",   "return", " depth", ";",     "\n",  "```",    "\n\n"};
enum {
    N_PROSE = sizeof prose / sizeof prose[0],
    N_REST = sizeof rest / sizeof rest[0],
    REST_FROM = 300,
};

static const char code[] =
    "Here is a program that keeps a log of a voyage. It reads the depth under the keel once a "
    "minute and warns when the water gets shallow.\n\n"
    "```python\n"
    "import time\n"
    "from dataclasses import dataclass, field\n"
    "\n"
    "SHALLOW_METRES = 4.5\n"
    "\n"
    "\n"
    "@dataclass\n"
    "class Entry:\n"
    "    \"\"\"One line of the log.\"\"\"\n"
    "    seconds: float\n"
    "    depth: float\n"
    "    remark: str = \"\"\n"
    "\n"
    "\n"
    "@dataclass\n"
    "class Log:\n"
    "    entries: list[Entry] = field(default_factory=list)\n"
    "\n"
    "    def add(self, depth, remark=\"\"):\n"
    "        entry = Entry(time.time(), depth, remark)\n"
    "        self.entries.append(entry)\n"
    "        return entry\n"
    "\n"
    "    def shallowest(self):\n"
    "        if not self.entries:\n"
    "            return None\n"
    "        return min(self.entries, key=lambda entry: entry.depth)\n"
    "\n"
    "\n"
    "def watch(sounder, log, minutes=60):\n"
    "    # one measurement a minute, until the harbour is reached\n"
    "    for minute in range(minutes):\n"
    "        depth = sounder.measure()\n"
    "        if depth < SHALLOW_METRES:\n"
    "            log.add(depth, f\"shallow water after {minute} minutes\")\n"
    "            print(f\"Warning: only {depth:.1f} m left\")\n"
    "        else:\n"
    "            log.add(depth)\n"
    "        time.sleep(60)\n"
    "    return log.shallowest()\n"
    "```\n\n"
    "How it works:\n\n"
    "1. An `Entry` is one line of the log: when it was written, how deep the water was, and a "
    "remark, which is mostly empty.\n"
    "2. `Log` only **collects** entries. Its method `shallowest` answers with the entry of the "
    "least depth, or with `None` while there is none.\n"
    "3. `watch` measures once a minute and writes every measurement down, whether the water is "
    "shallow or not.\n"
    "4. Below the limit of `SHALLOW_METRES` a remark is kept and a warning printed at once.\n\n"
    "The sounder is handed in from outside, so that a test can put another one in its place that "
    "measures nothing and only tells what it was told to tell. Whoever needs the log after the "
    "voyage has to save it, as it is gone when the program ends.\n\n";
static const char loop[] = "The captain looked at the sea, and the sea looked back at him. ";

enum reply { PROSE, CODE, LOOP, N_REPLIES };
static const char *const reply_names[] = {"prose", "code", "loop"};

/* The next piece of a text as tokenizers cut it: a word with the blank before it, in two when it is
 * long, a digit, a run of signs, a run of blanks. */
static size_t piece_bytes(const char *s) {
    size_t n = s[0] == ' ' && s[1] != ' ';
    if (s[n] == '\n') {
        return n + 1;
    }
    if (s[n] == ' ') {
        size_t blanks = strspn(s, " ");
        return blanks - 1;
    }
    if (isdigit((unsigned char)s[n])) {
        return n + 1;
    }
    if (isalpha((unsigned char)s[n])) {
        size_t begin = n;
        while (isalpha((unsigned char)s[n])) {
            n++;
        }
        return n - begin > 8 ? begin + 5 : n;
    }
    while (s[n] != '\0' && strchr(" \n", s[n]) == NULL && !isalnum((unsigned char)s[n])) {
        n++;
    }
    return n;
}

/* Token i of a reply; *at is the place in its text, to be carried along. */
static size_t token(enum reply reply, int i, size_t *at, const char **text) {
    if (reply == PROSE) {
        bool once = i >= REST_FROM && i < REST_FROM + N_REST;
        uint32_t mixed = (uint32_t)i * 2654435761u;
        *text = once ? rest[i - REST_FROM] : prose[(mixed >> 8) % N_PROSE];
        return strlen(*text);
    }
    const char *whole = reply == CODE ? code : loop;
    *at = whole[*at] == '\0' ? 0 : *at;
    *text = whole + *at;
    size_t n = piece_bytes(*text);
    *at += n;
    return n;
}

static void frame(struct ui_screen *s, struct ui_transcript *t, const struct ui_status *st) {
    ui_screen_clear(s);
    ui_screen_puts(s, 0, 1, COLS, "model", UI_TITLE);
    ui_screen_fill(s, 1, 0, COLS, "─", UI_RULE);
    ui_transcript_resize(t, ROWS - 6, COLS);
    ui_transcript_draw(t, s, 2);
    ui_screen_fill(s, ROWS - 4, 0, COLS, "─", UI_RULE);
    ui_screen_puts(s, ROWS - 3, 0, COLS, " > ", UI_PROMPT);
    s->cursor_row = ROWS - 3;
    s->cursor_col = 3;
    ui_screen_fill(s, ROWS - 2, 0, COLS, "─", UI_RULE);
    ui_statusbar_draw(s, ROWS - 1, st);
    ui_term_blit(s);
}

/* Stands in the bytes where counting begins and ends. No terminal looks at it. */
static const char marker[] = "\033]7777;here\a";

static void mark(void) {
    if (write(STDOUT_FILENO, marker, sizeof marker - 1) != sizeof marker - 1) {
        _exit(4);
    }
}

/* Bytes between the two marks. */
static size_t between_marks(const struct cw_buf *raw) {
    const size_t n = sizeof marker - 1;
    const char *from = memmem(raw->data, raw->len, marker, n);
    ck_assert_ptr_nonnull(from);
    from += n;
    const char *to = memmem(from, raw->len - (size_t)(from - raw->data), marker, n);
    ck_assert_ptr_nonnull(to);
    return (size_t)(to - from);
}

/* In the child, on its terminal. Tells the bytes of the text through `report`. */
static void play(int report, enum reply reply, bool markdown) {
    setenv("TERM", "xterm-256color", 1);
    ui_term_locale();
    if (ui_term_open(true, NULL) != CW_OK) {
        _exit(3);
    }
    struct ui_transcript *t = ui_transcript_create();
    struct ui_status st = {.state = UI_STATE_ANSWERING,
                           .temp = 0.8,
                           .top_p = 0.95,
                           .n_ctx = 8192,
                           .ttft_s = 0.038,
                           .model = "model",
                           .n_evaluated = 22};
    struct ui_screen s;
    size_t bytes = 0, at = 0;
    double due_ms = 0;
    ui_screen_init(&s, ROWS, COLS);
    ui_transcript_set_markdown(t, markdown);
    uint32_t b = ui_transcript_add(t, UI_BLOCK_USER, "you");
    ui_transcript_append(t, b, "Tell me about the sea.", 22);
    ui_transcript_finish(t, b);
    frame(&s, t, &st);
    mark(); /* from here on it is counted */
    b = ui_transcript_add(t, UI_BLOCK_REPLY, "model");
    for (int i = 0; i < TOKENS; i++) {
        const char *word;
        size_t n = token(reply, i, &at, &word);
        bytes += n;
        ui_transcript_append(t, b, word, n);
        int now = i * TOKEN_MS;
        if (now / STATUS_MS > (now - TOKEN_MS) / STATUS_MS) {
            st.ctx_used = 60 + (size_t)i;
            st.tps = 50 + (i * 37 % 20) / 10.0;
            if (now % 2000 == 0) {
                memmove(st.spark, st.spark + 1, (UI_SPARK - 1) * sizeof st.spark[0]);
                st.spark[UI_SPARK - 1] = st.tps;
            }
        }
        if (now >= due_ms || i == TOKENS - 1) {
            frame(&s, t, &st);
            due_ms = now + 1e3 * ui_term_pause();
        }
    }
    mark();
    if (write(report, &bytes, sizeof bytes) != sizeof bytes) {
        _exit(4);
    }
    ui_term_close();
    _exit(0);
}

static void at_most_four_times(enum reply reply, bool markdown) {
    int master, slave, reports[2];
    struct winsize size = {.ws_row = ROWS, .ws_col = COLS};
    ck_assert_int_eq(pipe(reports), 0);
    ck_assert_int_eq(openpty(&master, &slave, NULL, NULL, &size), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        setsid();
        ioctl(slave, TIOCSCTTY, 0);
        dup2(slave, 0);
        dup2(slave, 1);
        close(master);
        close(reports[0]);
        play(reports[1], reply, markdown);
    }
    close(slave);
    close(reports[1]);
    struct cw_buf raw = {0};
    char bytes[65536];
    for (;;) {
        struct pollfd fd = {.fd = master, .events = POLLIN};
        ck_assert_int_gt(poll(&fd, 1, 60000), 0);
        ssize_t n = read(master, bytes, sizeof bytes);
        if (n <= 0) {
            break; /* the terminal is closed */
        }
        cw_buf_add(&raw, bytes, (size_t)n);
    }
    size_t text = 0;
    ck_assert_int_eq(read(reports[0], &text, sizeof text), sizeof text);
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    close(master);
    close(reports[0]);
    size_t sent = between_marks(&raw);
    printf("%s, %s: %zu bytes of text, %zu sent: %.2f times\n", reply_names[reply],
           markdown ? "rendered" : "plain", text, sent, (double)sent / (double)text);
    ck_assert_uint_gt(text, 2000);
    ck_assert_uint_gt(sent, text);
    ck_assert_uint_le(sent, 4 * text);
    cw_buf_free(&raw);
}

START_TEST(bytes_of_a_reply) {
    at_most_four_times((enum reply)(_i / 2), _i % 2 == 0);
}
END_TEST

int main(void) {
    Suite *s = suite_create("term bytes");
    TCase *c = tcase_create("bytes");
    tcase_set_timeout(c, 240);
    tcase_add_loop_test(c, bytes_of_a_reply, 0, 2 * N_REPLIES);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
