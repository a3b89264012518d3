/* SPDX-License-Identifier: MIT
 *
 * Readline's own keys in the input line: every key sequence that readline binds in its emacs, vi
 * insert and vi command maps (what `bind -p` lists) does to the line what plain readline does to
 * it. Two children go through the same sequences, one with the input line behind our key decoder,
 * one with readline as it is; what they write down must be the same.
 */
#include <check.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "ui/input.h"
#include "ui/key.h"
#include "ui/keymap.h"

#include "chinwag/mem.h"

static const char text[] = "alpha beta-gamma (delta) eps beta";
enum { POINT = 14, MAX_SEQUENCES = 1024 };

static const struct {
    const char *name; /* of the map */
    bool vi, command;
} maps[] = {{"emacs-standard", false, false}, {"vi-insert", true, false}, {"vi-move", true, true}};

/* ---- the sequences -------------------------------------------------------------------------- */

struct sequence {
    char bytes[16];
    size_t n;
    char name[64]; /* as bind -p writes it */
    char function[48];
};

static struct sequence sequences[MAX_SEQUENCES];
static size_t n_sequences;

/* The bytes of "\C-x", "\e", "\M-a" and their like. */
static size_t unescape(const char *s, char *out, size_t cap) {
    size_t n = 0;
    while (*s != '\0' && n + 2 < cap) {
        bool control = false, meta = false;
        while (s[0] == '\\' && (s[1] == 'C' || s[1] == 'M') && s[2] == '-') {
            control = control || s[1] == 'C';
            meta = meta || s[1] == 'M';
            s += 3;
        }
        char c = *s++;
        if (c == '\\') {
            c = *s++;
            c = c == 'e' ? '\033' : c == 'd' ? '\177' : c;
        }
        if (meta) {
            out[n++] = '\033';
        }
        out[n++] = control ? (c == '?' ? '\177' : (char)(c & 0x1f)) : c;
    }
    return n;
}

static void open_plain(const char *map) {
    rl_readline_name = "chinwag";
    rl_catch_signals = 0;
    rl_change_environment = 0;
    rl_initialize();
    rl_variable_bind("enable-bracketed-paste", "off");
    rl_set_keymap(rl_get_keymap_by_name(map));
}

/* All that the map binds to functions of readline, letters that insert themselves left out. */
static void collect(const char *map) {
    open_plain(map);
    Keymap keymap = rl_get_keymap_by_name(map);
    const char **names = rl_funmap_names();
    for (size_t i = 0; names[i] != NULL; i++) {
        /* pastes never reach readline: the decoder takes them out */
        static const char *const not_these[] = {"self-insert", "do-lowercase-version",
                                                "bracketed-paste-begin"};
        bool skip = false;
        for (size_t k = 0; k < sizeof not_these / sizeof not_these[0]; k++) {
            skip = skip || strcmp(names[i], not_these[k]) == 0;
        }
        if (skip) {
            continue;
        }
        char **keys = rl_invoking_keyseqs_in_map(rl_named_function(names[i]), keymap);
        for (size_t k = 0; keys != NULL && keys[k] != NULL; k++) {
            struct sequence *s = &sequences[n_sequences];
            ck_assert_uint_lt(n_sequences, MAX_SEQUENCES);
            s->n = unescape(keys[k], s->bytes, sizeof s->bytes);
            snprintf(s->name, sizeof s->name, "%s", keys[k]);
            snprintf(s->function, sizeof s->function, "%s", names[i]);
            bool double_name = false; /* vi-eof-maybe is also end-of-file, and so on */
            for (size_t j = 0; j < n_sequences; j++) {
                double_name = double_name || strcmp(sequences[j].name, s->name) == 0;
            }
            n_sequences += !double_name;
            free(keys[k]);
        }
        free(keys);
    }
    free(names);
}

/* Ours whatever stands in the line. Ctrl+D and Esc are ours only where readline has no use for
 * them. */
static bool is_ours(const struct sequence *s) {
    struct ui_keys *keys = ui_keys_create();
    struct ui_key key;
    ui_keys_feed(keys, s->bytes, s->n, 1);
    bool one = ui_keys_next(keys, 2, &key) && key.n_raw == s->n;
    ui_keys_destroy(keys);
    enum ui_action action = one ? ui_keymap_find(key.code, key.mods) : UI_ACT_NONE;
    return action != UI_ACT_NONE && action != UI_ACT_LEAVE && action != UI_ACT_STOP;
}

/* ---- the two ways --------------------------------------------------------------------------- */

/* What is compared after the sequence, and after a letter and Esc have followed it. */
static void note(FILE *out, const char *what, const char *accepted) {
    fprintf(out, "%s: ", what);
    if (accepted != NULL) {
        fprintf(out, "sent <%s> ", accepted);
    }
    fprintf(out, "<%s> at %d, %s%s\n", rl_line_buffer, rl_point,
            rl_editing_mode != 0                                  ? "emacs"
            : rl_get_keymap() == rl_get_keymap_by_name("vi-move") ? "command"
                                                                  : "insert",
            rl_explicit_arg ? ", argument" : "");
}

static void start_line(bool command) {
    using_history();
    rl_insert_text(text);
    rl_point = POINT;
    rl_mark = 2;
    if (command) {
        rl_vi_movement_mode(1, 27);
        rl_point = POINT;
    }
}

static void add_past(void) {
    clear_history();
    add_history("the first beta");
    add_history("the second (line)");
}

struct way {
    void (*open)(bool vi);
    void (*type)(const char *bytes, size_t n);
    void (*reset)(void);
};

static char *accepted;

static void go_through(const struct way *way, const char *map, bool vi, bool command, FILE *out) {
    way->open(vi);
    for (size_t i = 0; i < n_sequences; i++) {
        const struct sequence *s = &sequences[i];
        if (is_ours(s)) {
            continue;
        }
        add_past();
        rl_variable_bind("editing-mode", vi ? "vi" : "emacs"); /* a key may have changed it */
        start_line(command);
        fprintf(out, "-- %s %s %s\n", map, s->name, s->function);
        way->type(s->bytes, s->n);
        note(out, "then", accepted);
        way->type("w", 1);
        note(out, "w", accepted);
        way->reset();
        fflush(out);
    }
}

/* Ours: through the decoder, with time passing. */

static double now_s = 1;
static struct ui_keys *decoder;

static void ours_open(bool vi) {
    struct ui_input_options opt = {.prompt = "> "};
    ck_assert_int_eq(ui_input_open(&opt, NULL), CW_OK);
    rl_variable_bind("editing-mode", vi ? "vi" : "emacs");
    ui_input_clear();
    decoder = ui_keys_create();
}

static void ours_type(const char *bytes, size_t n) {
    struct ui_key key;
    ui_keys_feed(decoder, bytes, n, now_s);
    for (int i = 0; i < 2; i++, now_s += 1) { /* what came, and what only time tells */
        while (ui_keys_next(decoder, now_s, &key)) {
            if (ui_input_key(&key) == UI_INPUT_SEND) {
                free(accepted);
                accepted = ui_input_take();
            }
        }
    }
}

static void ours_reset(void) {
    free(accepted);
    accepted = NULL;
    ui_input_clear();
}

static const struct way ours = {ours_open, ours_type, ours_reset};

/* Theirs: readline's callback interface as its manual has it, reading from a pipe. */

static int plain_pipe[2];

static void plain_line(char *line) {
    free(accepted);
    accepted = line;
}

static void plain_open(bool vi) {
    open_plain(vi ? "vi-insert" : "emacs-standard");
    rl_variable_bind("editing-mode", vi ? "vi" : "emacs");
    rl_variable_bind("keyseq-timeout", "1");
    ck_assert_int_eq(pipe(plain_pipe), 0);
    rl_instream = fdopen(plain_pipe[0], "r");
    rl_outstream = fopen("/dev/null", "w");
    rl_prep_term_function = NULL;
    rl_deprep_term_function = NULL;
    rl_completion_query_items = 0;
    rl_callback_handler_install("> ", plain_line);
}

static void plain_type(const char *bytes, size_t n) {
    ck_assert_int_eq(write(plain_pipe[1], bytes, n), (ssize_t)n);
    struct pollfd fd = {.fd = plain_pipe[0], .events = POLLIN};
    while (poll(&fd, 1, 0) > 0 || RL_ISSTATE(RL_STATE_INPUTPENDING | RL_STATE_MACROINPUT)) {
        rl_callback_read_char();
    }
}

static void plain_reset(void) {
    free(accepted);
    accepted = NULL;
    rl_callback_sigcleanup();
    rl_free_line_state();
    rl_callback_handler_remove();
    rl_callback_handler_install("> ", plain_line);
}

static const struct way plain = {plain_open, plain_type, plain_reset};

/* ---- comparing ------------------------------------------------------------------------------ */

static char dir[] = "/tmp/chinwag-readline-XXXXXX";

static char *notes_of(const struct way *way, int map, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    fflush(NULL);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        FILE *out = fopen(path, "w");
        ck_assert_int_eq(chdir(dir), 0);
        go_through(way, maps[map].name, maps[map].vi, maps[map].command, out);
        fclose(out);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    struct cw_buf text_of = {0};
    char bytes[4096];
    size_t n;
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    while ((n = fread(bytes, 1, sizeof bytes, f)) > 0) {
        cw_buf_add(&text_of, bytes, n);
    }
    fclose(f);
    unlink(path);
    char *got = cw_buf_take(&text_of);
    const char *last = strrchr(got, '-');
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s ended at -%s", name,
                  last ? last : "");
    return got;
}

static void first_difference(const char *a, const char *b, char out[1024]) {
    const char *row = a, *head = a;
    while (*a != '\0' && *a == *b) {
        if (*a == '\n' && a[1] == '-') {
            head = a + 1;
        }
        if (*a == '\n') {
            row = a + 1;
        }
        a++;
        b++;
    }
    while (b > row && b[-1] != '\n' && a > row && a[-1] != '\n') {
        a--;
        b--;
    }
    snprintf(out, 1024, "%.*s\nplain %.*s\nours  %.*s", (int)strcspn(head, "\n"), head,
             (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
}

START_TEST(does_what_readline_does) {
    ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
    ck_assert_ptr_nonnull(mkdtemp(dir));
    setenv("INPUTRC", "/dev/null", 1);
    setenv("TERM", "xterm-256color", 1);
    setenv("HOME", dir, 1);
    collect(maps[_i].name);
    ck_assert_uint_gt(n_sequences, 30);
    char *want = notes_of(&plain, _i, "plain");
    char *got = notes_of(&ours, _i, "ours");
    if (strcmp(want, got) != 0) {
        char what[1024];
        first_difference(want, got, what);
        ck_abort_msg("%s", what);
    }
    free(want);
    free(got);
    rmdir(dir);
}
END_TEST

int main(void) {
    Suite *s = suite_create("ui readline");
    TCase *c = tcase_create("keys");
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, does_what_readline_does, 0, 3);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
