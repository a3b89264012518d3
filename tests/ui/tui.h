/* SPDX-License-Identifier: MIT
 *
 * The real program on a pseudo-terminal, with a model that says what the test wants. What the tests
 * of the interface share.
 */
#ifndef TESTS_TUI_H
#define TESTS_TUI_H

#include "tests/support/markov.h"
#include "tests/support/pty.h"

struct tui {
    struct pty pty;
    char dir[64]; /* HOME, the model, and nothing else; removed at the end */
    char model[160];
    const char *term, *lang, *home; /* NULL: xterm-256color, C.UTF-8, dir; "" leaves it unset */
    const char *more_env[4];        /* "NAME=VALUE" */
    const char *more_args[8];
    int rows, cols;
};

/* A directory and the defaults. */
void tui_init(struct tui *t);
/* Models. `words` different words "w0000 w0001 ..."; wide ones are slow, which is what tests of
 * stopping and scrolling want. */
void tui_model_text(struct tui *t, const char *text);
void tui_model_pieces(struct tui *t, const char *const *pieces); /* NULL-terminated */
void tui_model_words(struct tui *t, int words, bool loop);
void tui_start(struct tui *t);
void tui_start_idle(struct tui *t); /* and wait for the model */
/* The same with one flag and its value (or NULL) in place of more_args. */
void tui_start_with(struct tui *t, const char *flag, const char *value);
void tui_say(struct tui *t, const char *text); /* and Enter */
void tui_rest(struct tui *t);                  /* until nothing moves any more */
/* A file in dir, with the folders on its way. */
void tui_write(const struct tui *t, const char *name, const void *bytes, size_t n);
void tui_write_text(const struct tui *t, const char *name, const char *text);
/* The text that the last OSC 52 after raw[from] put on the clipboard. Caller must free. */
char *tui_copied(const struct tui *t, size_t from);
/* Whether word[0..n) is one of "some words". */
bool tui_has_word(const char *words, const char *word, size_t n);
void tui_leave(struct tui *t); /* by /exit */
/* Run `chinwag ARGS` without a terminal in the test's home; all that it says, and its status. */
int tui_command(const struct tui *t, struct cw_buf *out, const char *args);
/* Leave by /exit and check that the terminal is as it was; removes everything. */
void tui_finish(struct tui *t);
/* The same without leaving: the program has ended or is killed. */
void tui_end(struct tui *t);

/* What every way out must have sent and restored. */
void tui_assert_restored(struct tui *t);

#endif
