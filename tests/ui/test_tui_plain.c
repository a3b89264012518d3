/* SPDX-License-Identifier: MIT
 *
 * The chat in plain lines, on a terminal that can do nothing and on one that can but must not: what
 * the program writes is read as bytes, since there is no screen. None of them may be an escape, and
 * the modes of the terminal stay as they are throughout.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ui/tui.h"

static struct tui t;

static void setup(void) {
    tui_init(&t);
    t.term = "dumb";
}

/* Only letters, line ends and tabs. */
static void assert_plain(void) {
    for (size_t i = 0; i < t.pty.raw.len; i++) {
        unsigned char c = (unsigned char)t.pty.raw.data[i];
        ck_assert_msg((c >= 0x20 && c != 0x7f) || c == '\r' || c == '\n' || c == '\t',
                      "byte %02x at %zu", c, i);
    }
    ck_assert_msg(pty_modes_restored(&t.pty), "the modes of the terminal are changed");
}

static size_t end_of(size_t from, const char *bytes) {
    const char *at = memmem(t.pty.raw.data + from, t.pty.raw.len - from, bytes, strlen(bytes));
    ck_assert_ptr_nonnull(at);
    return (size_t)(at - t.pty.raw.data) + strlen(bytes);
}

/* Wait for the text and return where it ends. */
static size_t expect(size_t from, const char *text) {
    ck_assert_msg(pty_wait_raw(&t.pty, from, text), "%s", text);
    return end_of(from, text);
}

static void start(void) {
    tui_start(&t);
    expect(0, "\n> ");
}

/* Type a line; wait for what it brings, and for the next prompt. Returns where that began. */
static size_t say(const char *line, const char *brings) {
    size_t from = t.pty.raw.len;
    pty_type(&t.pty, line);
    pty_type(&t.pty, "\n");
    from = expect(from, "\n"); /* behind the echo */
    expect(expect(from, brings), "\n> ");
    return from;
}

static void finish(void) {
    pty_type(&t.pty, "/exit\n");
    ck_assert(pty_wait_exit(&t.pty));
    ck_assert(WIFEXITED(t.pty.status));
    ck_assert_int_eq(WEXITSTATUS(t.pty.status), 0);
    assert_plain();
    tui_end(&t);
}

/* ---- talking -------------------------------------------------------------------------------- */

static const struct {
    const char *term, *flag, *why;
} ways[] = {
    {"dumb", NULL, "the terminal TERM=dumb cannot place its cursor: the chat goes on in plain"},
    {"", NULL, "TERM is not set, so the kind of terminal is not known: the chat goes on"},
    {"no-such-terminal", NULL, "no description of the terminal TERM=no-such-terminal: the chat"},
    {"unknown", NULL, "no description of the terminal TERM=unknown: the chat goes on in plain"},
    {"xterm-256color", "--plain", NULL},
    {"dumb", "--plain", NULL},
};
enum { N_WAYS = sizeof ways / sizeof ways[0] };

START_TEST(two_turns) {
    tui_model_text(&t, "The sky\nis blue.\n");
    t.term = ways[_i].term;
    t.more_args[0] = ways[_i].flag;
    start();
    ck_assert(ways[_i].why == NULL ? !pty_raw_has(&t.pty, 0, "the chat goes on in plain lines")
                                   : pty_raw_has(&t.pty, 0, ways[_i].why));
    ck_assert(pty_raw_has(&t.pty, 0, "in plain lines: /help lists the commands"));
    size_t first = say("why?", "[2] markov: The sky\r\nis blue.");
    /* what was typed stands there already: nothing but the reply is added */
    ck_assert_uint_eq(end_of(first, "[2] markov"), first + strlen("[2] markov"));
    say("again", "[4] markov: The sky\r\nis blue.");
    finish();
}
END_TEST

START_TEST(any_script) {
    static const char *const pieces[] = {"pi\xc3", "\xb1", "a \xe4", "\xb8\xad",
                                         "x\r",    "\ny",  NULL};
    tui_model_pieces(&t, pieces);
    start();
    say("\xe4\xbd\xa0\xe5\xa5\xbd", "markov: pi\xc3\xb1"
                                    "a \xe4\xb8\xad"
                                    "x\r\ny");
    say("half \xe4\xb8 no\xff", "[4] markov: ");
    say("/tree", "3 you: half \xef\xbf\xbd\xef\xbf\xbd no\xef\xbf\xbd");
    finish();
}
END_TEST

/* What a model says is text, whatever it says; so is its name. */
START_TEST(hostile_text_is_text) {
    struct markov m;
    markov_init(&m);
    m.name = "%s%n\033[?1000h";
    markov_text(&m, "\033[?1049l\033]0;owned\007\xe2\x80\xae\xc2\x9b"
                    "31m\b\x7f\v 100%n\n> /exit");
    markov_save(&m, t.model);
    markov_free(&m);
    start();
    say("100%n %s", "[2] %s%n\\x1B[?1000h: \\x1B[?1049l\\x1B]0;owned\\x07\\u{202E}\\x9B"
                    "31m\\x08\\x7F\\x0B 100%n\r\n> /exit");
    say("/show info", "name: %s%n\\x1B[?1000h");
    say("/tree", "2 reply: \\x1B[?1049l");
    finish();
}
END_TEST

/* Reasoning is said before the answer, under a heading of its own. */
START_TEST(thinking_model) {
    struct markov m;
    markov_init(&m);
    markov_control(&m, MARKOV_THINK);
    markov_text(&m, "let me see");
    markov_control(&m, MARKOV_END_THINK);
    markov_text(&m, "forty-two");
    markov_save(&m, t.model);
    markov_free(&m);
    start();
    say("what?", "markov (thinking): let me see\r\n[2] markov: forty-two");
    finish();
}
END_TEST

START_TEST(no_model) {
    snprintf(t.model, sizeof t.model, "%s/nothing.gguf", t.dir);
    FILE *f = fopen(t.model, "w");
    ck_assert_ptr_nonnull(f);
    fputs("no model", f);
    fclose(f);
    start();
    ck_assert(pty_raw_has(&t.pty, 0, "-- error: The model cannot be used: "));
    say("hello", "-- error: there is no model: ");
    pty_type(&t.pty, "/exit\n");
    ck_assert(pty_wait_exit(&t.pty));
    ck_assert_int_eq(WEXITSTATUS(t.pty.status), 1);
    assert_plain();
    tui_end(&t);
}
END_TEST

/* Standard output may be anything: then what was typed is told as well. */
START_TEST(into_a_pipe) {
    char command[1024], path[256], bytes[4096];
    tui_model_text(&t, "reply one\n");
    snprintf(path, sizeof path, "%s/log", t.dir);
    snprintf(command, sizeof command, "%s/app/chinwag -m %s -t 1 >%s", getenv("CHINWAG_BUILD_ROOT"),
             t.model, path);
    char home[128];
    snprintf(home, sizeof home, "HOME=%s", t.dir);
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    const char *const env[] = {"TERM=xterm-256color", "LC_ALL=C.UTF-8", home, NULL};
    const struct pty_options opt = {.argv = argv, .env = env, .cwd = t.dir};
    pty_start(&t.pty, &opt);
    expect(0, "standard input and output must be a terminal: the chat goes on in plain lines");
    pty_type(&t.pty, "question\n\004");
    pty_type(&t.pty, "\004");
    ck_assert(pty_wait_exit(&t.pty));
    ck_assert_int_eq(WEXITSTATUS(t.pty.status), 0);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    bytes[fread(bytes, 1, sizeof bytes - 1, f)] = '\0';
    fclose(f);
    ck_assert_ptr_nonnull(strstr(bytes, "in plain lines"));
    ck_assert_ptr_null(strchr(bytes, '\033'));
    assert_plain();
    tui_end(&t);
}
END_TEST

/* ---- commands ------------------------------------------------------------------------------- */

/* In this order, in one conversation that begins with a question and its reply. */
static const struct {
    const char *names; /* every one of them */
    const char *typed, *shows;
} commands[] = {
    {"help ?", "/help", "/exit /bye /quit: Leave."},
    {"help ?", "/?", "Ctrl+D: leave"},
    {"set", "/set temp 0.5", "-- temp 0.5 (live"},
    {"set", "/set temperature=0.6", "-- temp 0.6 (live"},
    {"set", "/set", "temp: 0.6  (live"},
    {"set", "/set theme light", "-- theme light (live"},
    {"set", "/set mouse on", "-- mouse on (live"},
    {"set", "/set title on", "-- title on (live"},
    {"set", "/set nonsense 1", "-- error: there is no setting nonsense"},
    {"show", "/show info", "architecture: llama"},
    {"show", "/show top-p", "-- top-p 0.95 (built-in"},
    {"show", "/show template", "Chat template (of the model's file)"},
    {"system", "/system be brief", "-- system be brief (live"},
    {"stats", "/stats", "time to first token: "},
    {"preset", "/preset creative", "-- preset creative: T 1.00"},
    {"copy", "/copy", "-- error: the terminal does not take"},
    {"copy", "/copy code", "-- error: there is no such code block"},
    {"stop", "/stop", "-- no reply is under way"},
    {"why", "/why 2", "written by: the model"},
    {"tree", "/tree", "* 2 reply: reply one"},
    {"regen retry", "/regen", "[2, 2/2] markov: reply one"},
    {"regen retry", "/retry", "[2, 3/3] markov: reply one"},
    {"regen retry", "/regen 3", "-- error: several replies side by side need the screen"},
    {"tree", "/tree 2", "[2, 1/3] markov: reply one"},
    {"tree", "/tree 9", "-- error: /tree shows the numbers"},
    {"undo", "/undo", "[2, 3/3] markov: reply one\r\n-- undone"},
    {"redo", "/redo", "[2, 1/3] markov: reply one"},
    {"continue", "/continue", "[2, 1/3] markov:  [T 0.80 -> 1.00"},
    {"edit", "/edit 1", "-- ready to be sent: question"},
    {"edit", "another question", "[2] markov: reply one"},
    {"edit", "/edit 2 edited", "[2, 2/2, edited] markov: edited"},
    {"restore", "/restore", "-- error: nothing has left the context"},
    {"replay", "/replay 2", "-- error: message 2 was not generated"},
    {"persona", "/persona nobody", "-- error: there is no persona"},
    {"persona", "/persona", "Personas"},
    {"prompt", "/prompt", "Prompts"},
    {"read", "/read nothing.txt", "-- error: nothing.txt is not attached"},
    {"glob", "/glob *.nothing", "-- error: no file matches"},
    {"save", "/save saved.md", "saved.md"},
    {"export", "/export over html talk", "exported "},
    {"fork", "/fork", "-- this is a copy of the conversation"},
    {"private", "/private on", "-- private: nothing"},
    {"private", "/private off", "-- what is said is kept"},
    {"list", "/list", "another question"},
    {"rename", "/rename A better title", "A better title"},
    {"load", "/load", "/load NUMBER or /load NAME"},
    {"load", "/load nothing-like-that", "nothing-like-that"},
    {"delete", "/delete", "-- deleted; /undelete brings it back"},
    {"undelete", "/undelete", "[2, edited] markov: edited"},
    {"new clear", "/new", "-- done"},
    {"new clear", "/clear", "-- done"},
    {"exit bye quit", NULL, NULL}, /* leaves */
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static bool named(const char *name, size_t n) {
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (tui_has_word(commands[i].names, name, n)) {
            return true;
        }
    }
    return false;
}

START_TEST(every_command_has_a_test) {
    int n = 0;
    tui_model_text(&t, "ok");
    start();
    size_t from = say("/help", "/exit /bye");
    const char *line = t.pty.raw.data + end_of(from, "Commands:\r\n");
    for (; *line == '/'; line = strchr(line, '\n') + 1) {
        for (const char *name = line; *name == '/'; n++) { /* "/new /clear [ARGUMENT]: ..." */
            size_t length = strcspn(name + 1, " :");
            ck_assert_msg(named(name + 1, length), "no test of /%.*s", (int)length, name + 1);
            name += 1 + length;
            name += name[0] == ' ' && name[1] == '/';
        }
    }
    ck_assert_int_gt(n, 25);
    finish();
}
END_TEST

START_TEST(every_command) {
    tui_model_text(&t, "reply one\n");
    t.more_env[0] = "TMUX=/tmp/tmux-0/default,1,0"; /* nothing is sent through it either */
    t.term = _i == 0 ? "dumb" : "xterm-256color";
    t.more_args[0] = _i == 0 ? NULL : "--plain";
    start();
    say("question", "[2] markov: reply one");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (commands[i].typed != NULL) {
            say(commands[i].typed, commands[i].shows);
        }
    }
    finish();
}
END_TEST

START_TEST(leaves) {
    static const char *const words[] = {"/exit\n", "/bye\n", "/quit\n", "\004"};
    tui_model_text(&t, "ok");
    start();
    pty_type(&t.pty, words[_i]);
    ck_assert(pty_wait_exit(&t.pty));
    ck_assert(WIFEXITED(t.pty.status) && WEXITSTATUS(t.pty.status) == 0);
    assert_plain();
    tui_end(&t);
}
END_TEST

/* A setting changed during a reply: said at once, and marked at the token where it took hold. */
START_TEST(settings_in_mid_reply) {
    tui_model_words(&t, 400, true);
    start();
    pty_type(&t.pty, "go\n");
    size_t at = expect(0, "w0009.");
    pty_type(&t.pty, "/set temp 0.5\n");
    expect(at, "-- temp 0.5 (live");
    at = expect(at, "[T 0.80 -> 0.50]");
    expect(at, "w0");
    pty_type(&t.pty, "/stop\n");
    expect(expect(at, "-- message 2, stopped"), "\n> ");
    say("/stats", "changes: T 0.80 -> 0.50 at token ");
    finish();
}
END_TEST

/* ---- what stands ready to be sent ----------------------------------------------------------- */

START_TEST(drafts) {
    tui_model_text(&t, "reply one\n");
    start();
    say("question", "[2] markov: reply one");
    say("/undo", "-- ready to be sent: question\r\n-- Enter alone sends it");
    say("", "[2, 2/2] markov: reply one"); /* itself: another reply to it */
    say("/why 1", "length: 8 bytes");
    say("/undo", "-- ready to be sent: question");
    say("other", "[2] markov: reply one"); /* something else */
    say("/why 1", "length: 5 bytes");
    say("/undo", "-- ready to be sent: other");
    size_t from = t.pty.raw.len;
    pty_type(&t.pty, "\003");
    expect(from, "\n> ");
    pty_type(&t.pty, "\n");
    say("/show temp", "-- temp 0.8"); /* nothing was sent */
    ck_assert(!pty_raw_has(&t.pty, from, "markov"));
    finish();
}
END_TEST

START_TEST(files_go_in_front) {
    char path[256];
    tui_model_text(&t, "reply one\n");
    snprintf(path, sizeof path, "%s/notes.txt", t.dir);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs("four", f);
    fclose(f);
    start();
    say("/read notes.txt", "-- it goes in front of the next message");
    expect(0, "-- the message is ");
    say("what is it?", "[2] markov: reply one");
    say("/why 1", "length: 27 bytes"); /* "notes.txt:\nfour\n" and the question */
    say("/read notes.txt", "-- it goes in front");
    size_t from = t.pty.raw.len;
    pty_type(&t.pty, "\003");
    expect(from, "\n> ");
    say("bare", "[4] markov: reply one");
    say("/why 3", "length: 4 bytes");
    finish();
}
END_TEST

/* Refused by the template: the question comes back. */
START_TEST(refused) {
    struct markov m;
    markov_init(&m);
    m.chat_template = "{% if messages[0]['content'] == 'bad' %}{{ raise_exception('not %s this') }}"
                      "{% endif %}{{ '<|im_start|>user\n' + messages[0]['content'] + '<|im_end|>\n"
                      "<|im_start|>assistant\n' }}";
    markov_text(&m, "fine");
    markov_save(&m, t.model);
    markov_free(&m);
    start();
    size_t from = say("bad", "-- ready to be sent: bad");
    ck_assert(pty_raw_has(&t.pty, from, "not %s this"));
    say("good", "[2] markov: fine");
    finish();
}
END_TEST

/* ---- lines ---------------------------------------------------------------------------------- */

START_TEST(lines_by_hand) {
    tui_model_text(&t, "reply one\n");
    start();
    size_t from = t.pty.raw.len;
    pty_type(&t.pty, "one\\\n");
    from = expect(from, "... ");
    pty_type(&t.pty, "two\\\n");
    from = expect(from, "... ");
    say("three", "[2] markov");
    say("/why 1", "length: 13 bytes");
    from = t.pty.raw.len;
    pty_type(&t.pty, "\"\"\"one\n");
    from = expect(from, "... ");
    pty_type(&t.pty, "/exit\n"); /* text */
    from = expect(from, "... ");
    say("three\"\"\"", "[4] markov");
    say("/why 3", "length: 15 bytes");
    from = t.pty.raw.len;
    pty_type(&t.pty, "\"\"\"one\n");
    from = expect(from, "... ");
    pty_type(&t.pty, "\003"); /* forgets it */
    expect(from, "\n> ");
    say("/why 4", "written by: the model"); /* and is no part of what follows */
    from = t.pty.raw.len;
    pty_type(&t.pty, "\"\"\"one\n");
    from = expect(from, "... ");
    pty_type(&t.pty, "\004"); /* ends it */
    expect(from, "[6] markov");
    finish();
}
END_TEST

/* 10,000 letters of a hundred lines, whatever stands in them, are one message. */
START_TEST(long_paste) {
    struct cw_buf paste = {0};
    tui_model_words(&t, 3, false);
    t.more_args[0] = "-c"; /* with room for it */
    t.more_args[1] = "16384";
    start();
    cw_buf_puts(&paste, "\"\"\"\n");
    for (int i = 0; i < 99; i++) {
        cw_buf_printf(&paste, "%-99d\n", i);
    }
    cw_buf_printf(&paste, "%-100s\n\"\"\"", "/exit");
    size_t from = t.pty.raw.len;
    pty_send(&t.pty, paste.data, paste.len);
    cw_buf_free(&paste);
    pty_type(&t.pty, "\n");
    expect(expect(from, "[2] markov: w0000 w0001 w0002"), "\n> ");
    say("/why 1", "length: 10000 bytes");
    say("/tree", "* 1 you: ");
    ck_assert(!pty_raw_has(&t.pty, 0, "[4]"));
    finish();
}
END_TEST

/* The terminal drops what its line does not hold: it is told, and nothing half is sent. */
START_TEST(line_too_long) {
    struct cw_buf line = {0};
    tui_model_words(&t, 3, false);
    start();
    for (int i = 0; i < 4094; i++) {
        cw_buf_putc(&line, 'x');
    }
    say(line.data, "[2] markov: w0000 w0001 w0002");
    say("/why 1", "length: 4094 bytes");
    for (int i = 0; i < 1000; i++) {
        cw_buf_putc(&line, 'y');
    }
    size_t from = say(line.data, "-- error: the terminal has cut a line");
    cw_buf_free(&line);
    say("/tree", "* 2 reply");
    ck_assert(!pty_raw_has(&t.pty, from, "3 you"));
    finish();
}
END_TEST

/* ---- stopping and leaving ------------------------------------------------------------------- */

START_TEST(interrupt) {
    tui_model_words(&t, 400, true);
    start();
    pty_type(&t.pty, "go\n");
    size_t from = expect(0, "w0009.");
    if (_i == 0) {
        pty_type(&t.pty, "\003");
    } else {
        pty_signal(&t.pty, SIGINT);
    }
    from = expect(expect(from, "-- message 2, stopped"), "\n> ");
    pty_type(&t.pty, "\003");
    expect(expect(from, "-- Ctrl+D or /exit leaves, /help helps"), "\n> ");
    say("/tree", "* 2 reply: w0000");
    finish();
}
END_TEST

/* Of a reply that goes on only what is new is told, under its heading. */
START_TEST(goes_on) {
    struct markov m;
    markov_init(&m);
    markov_control(&m, MARKOV_THINK);
    for (int i = 0; i < 5; i++) {
        markov_text(&m, (const char *const[]){"one ", "two ", "three ", "four ", "five "}[i]);
    }
    markov_control(&m, MARKOV_END_THINK);
    markov_text(&m, "six ");
    markov_text(&m, "seven");
    markov_save(&m, t.model);
    markov_free(&m);
    t.more_args[0] = "-n";
    t.more_args[1] = "3";
    start();
    say("what?", "markov (thinking): one two \r\n[2, cut at the limit of its length] markov: ");
    say("/continue", "[2] markov (thinking): three four five \r\n"
                     "[2, cut at the limit of its length] markov: ");
    say("/set temp 0.5", "temp 0.5");
    say("/set predict -1", "predict -1");
    say("/continue", "[2] markov (thinking):  [T 0.80 -> 0.50] \r\n[2] markov: six seven");
    say("/continue", "[2] markov: ");
    say("next", "markov: six seven");
    finish();
}
END_TEST

/* What the model's file recommends holds in the chat, and what of it does not is told. */
static void recommend(struct mkgguf *g) {
    mkgguf_f32(g, "general.sampling.top_p", 0.5f);
    mkgguf_u32(g, "general.sampling.top_k", 40);
    mkgguf_u32(g, "general.sampling.mirostat", 2);
}

START_TEST(recommended_by_the_file) {
    struct markov m;
    markov_init(&m);
    markov_text(&m, "yes");
    m.temp = 0.25f;
    m.keys = recommend;
    markov_save(&m, t.model);
    markov_free(&m);
    t.more_args[0] = "--top-p";
    t.more_args[1] = "0.75";
    start();
    ck_assert(pty_raw_has(&t.pty, 0, "not used: general.sampling.mirostat\r\n"));
    say("/show temp", "temp 0.25 (model file)");
    say("/show top-k", "top-k 40 (model file)");
    say("/show top-p", "top-p 0.75 (flag)");
    finish();
}
END_TEST

/* A base model says what becomes of a system prompt, a template without a switch that it has none.
 */
START_TEST(what_the_template_cannot_do) {
    struct markov m;
    markov_init(&m);
    markov_text(&m, "yes");
    markov_save(&m, t.model);
    t.more_args[0] = "-sys";
    t.more_args[1] = "Be kind.";
    start();
    say("/set think off", "think off (live)");
    say("hello", "-- the chat template has no switch for thinking");
    size_t from = say("hello", "[4] markov: yes");
    ck_assert(!pty_raw_has(&t.pty, from, "no switch"));
    pty_type(&t.pty, "/exit\n");
    ck_assert(pty_wait_exit(&t.pty));
    pty_end(&t.pty);
    m.chat_template = NULL;
    markov_save(&m, t.model);
    markov_free(&m);
    start();
    ck_assert(pty_raw_has(&t.pty, 0, "goes on as plain text, without the system prompt"));
    finish();
}
END_TEST

/* A line during a reply waits for its turn, and is told again when that comes. */
START_TEST(waits_for_its_turn) {
    tui_model_words(&t, 400, true);
    start();
    pty_type(&t.pty, "go\n");
    size_t from = expect(0, "w0009.");
    pty_type(&t.pty, "later\n");
    from = expect(from, "-- it waits for the reply to end\r\n");
    pty_type(&t.pty, "/stop\n");
    from = expect(from, "-- message 2, stopped\r\n");
    from = expect(from, "[3] you: later\r\n[4] markov: w0000");
    pty_type(&t.pty, "\003");
    expect(from, "-- message 4, stopped");
    finish();
}
END_TEST

/* At the prompt and in mid-reply: the line is ended, so that the shell's prompt begins one. */
START_TEST(ends) {
    static const int signals[] = {0, SIGTERM, SIGHUP, 0, SIGTERM, SIGHUP};
    tui_model_words(&t, 400, true);
    start();
    if (_i >= 3) {
        pty_type(&t.pty, "go\n");
        expect(0, "w0009.");
    }
    if (signals[_i] == 0) {
        pty_type(&t.pty, "\004");
    } else {
        pty_signal(&t.pty, signals[_i]);
    }
    ck_assert(pty_wait_exit(&t.pty));
    if (signals[_i] == 0) {
        ck_assert(WIFEXITED(t.pty.status) && WEXITSTATUS(t.pty.status) == 0);
    } else {
        ck_assert(WIFSIGNALED(t.pty.status));
        ck_assert_int_eq(WTERMSIG(t.pty.status), signals[_i]);
    }
    ck_assert_int_eq(t.pty.raw.data[t.pty.raw.len - 1], '\n');
    assert_plain();
    tui_end(&t);
}
END_TEST

/* ---- what was said already ------------------------------------------------------------------ */

/* A conversation that is opened is read out; a copy of the one at hand is not. */
START_TEST(reads_out_what_is_new) {
    tui_model_text(&t, "reply one\n");
    start();
    say("question", "[2] markov: reply one");
    say("second", "[4] markov: reply one");
    size_t from = say("/fork", "-- this is a copy");
    say("/undo", "-- back in the conversation that was copied");
    ck_assert(!pty_raw_has(&t.pty, from, "markov: "));
    say("/new", "-- done");
    say("/list", "question  (");
    from = say("/load 1", "[4] markov: reply one");
    end_of(end_of(end_of(from, "[1] you: question\r\n"), "[2] markov: reply one\r\n"),
           "[3] you: second\r\n[4] markov: reply one");
    from = say("/tree 2", "-- done"); /* shorter: nothing is new */
    ck_assert(!pty_raw_has(&t.pty, from, "markov: "));
    finish();
}
END_TEST

static Suite *suite(void) {
    Suite *s = suite_create("plain lines");
    TCase *c = tcase_create("plain");
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_loop_test(c, two_turns, 0, N_WAYS);
    tcase_add_test(c, any_script);
    tcase_add_test(c, hostile_text_is_text);
    tcase_add_test(c, thinking_model);
    tcase_add_test(c, no_model);
    tcase_add_test(c, into_a_pipe);
    tcase_add_test(c, every_command_has_a_test);
    tcase_add_loop_test(c, every_command, 0, 2);
    tcase_add_loop_test(c, leaves, 0, 4);
    tcase_add_test(c, settings_in_mid_reply);
    tcase_add_test(c, drafts);
    tcase_add_test(c, files_go_in_front);
    tcase_add_test(c, refused);
    tcase_add_test(c, lines_by_hand);
    tcase_add_test(c, long_paste);
    tcase_add_test(c, line_too_long);
    tcase_add_loop_test(c, interrupt, 0, 2);
    tcase_add_test(c, goes_on);
    tcase_add_test(c, recommended_by_the_file);
    tcase_add_test(c, what_the_template_cannot_do);
    tcase_add_test(c, waits_for_its_turn);
    tcase_add_loop_test(c, ends, 0, 6);
    tcase_add_test(c, reads_out_what_is_new);
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
