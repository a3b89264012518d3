/* SPDX-License-Identifier: MIT
 *
 * The input line: GNU readline, embedded. Only input.c includes readline.
 *
 * Readline edits, remembers and completes; it never reads from or writes to the terminal. Keys come
 * from our decoder, drawing goes into our grid, and the text may have many lines. Since readline is
 * global there is one input line in a process; main thread only.
 */
#ifndef UI_INPUT_H
#define UI_INPUT_H

#include "ui/key.h"
#include "ui/screen.h"

#include "chinwag/err.h"

/* What a word could become: add candidates with ui_candidates_add. */
struct ui_candidates {
    char **words;
    size_t n;
    bool files; /* complete file names instead */
};
void ui_candidates_add(struct ui_candidates *c, const char *word);

struct ui_input_options {
    const char *history_path; /* "" or NULL: nothing is kept beyond the process */
    const char *prompt;       /* printable, without colours */
    /* line[begin, end) is being completed; line holds all of the input. NULL: no completion. */
    void (*complete)(void *arg, const char *line, size_t begin, size_t end,
                     struct ui_candidates *out);
    void *arg;
};

enum ui_input_result {
    UI_INPUT_NONE,
    UI_INPUT_SEND, /* a message is complete: ui_input_take */
    UI_INPUT_EDIT, /* readline's edit-and-execute-command: the text wants an editor */
};

/* Set readline up, read ~/.inputrc and the history. CW_EIO when the history cannot be kept: the
 * line works all the same. */
int ui_input_open(const struct ui_input_options *opt, struct cw_err *err);
void ui_input_close(void);

enum ui_input_result ui_input_key(const struct ui_key *key);
/* One step of undo; CRLF and CR become LF. A large text stands folded in the line, as
 * "[pasted 312 lines]": one character to move over and to delete, whole wherever the text goes. */
void ui_input_paste(const char *text, size_t n);
/* Put a text in folded whatever its size, as "[NAME: 312 lines]". Returns its number for
 * ui_input_detach; 0: there is no room for another. */
unsigned ui_input_attach(const char *name, const char *text, size_t n);
void ui_input_detach(unsigned number); /* take it out of the line again, if it is there */
void ui_input_newline(void);
void ui_input_set(
    const char *text); /* replace all, folded if large; the cursor stands at the end */
/* Leave searches and arguments, forget the text. */
void ui_input_clear(void);

/* Whether the message that was sent begins with a slash that stood there to be read: only that can
 * make a command of it, never one in a folded text. Before ui_input_take. */
bool ui_input_typed_slash(void);
/* The message that was sent, its block marks resolved and its folds opened. Caller must free. */
char *ui_input_take(void);
/* Put a line into the history, here and in the file. CW_EIO the first time that fails. */
int ui_input_remember(const char *line, struct cw_err *err);
/* Take what tells one of messages[0..n) out of it (see ui_history_tells). CW_EIO: the file cannot
 * be written. The line being written must not be an entry of it. */
int ui_input_forget(const struct cw_str *messages, size_t n, struct cw_err *err);

const char *ui_input_text(size_t *n); /* folds opened; valid until the next call of anything here */
bool ui_input_empty(void);
uint64_t ui_input_version(void); /* grows with whatever may have changed the text */
bool ui_input_history_empty(void);
const char *ui_input_mode(void); /* "insert" or "command" in vi mode, "" in emacs mode */
/* Readline waits for the rest of something (a search, an argument, a key sequence): every key is
 * its own. */
bool ui_input_captive(void);
/* In vi insert mode Esc belongs to readline. */
bool ui_input_wants_esc(void);

/* Completions to choose from, shown until the next key. */
const char *const *ui_input_matches(size_t *n);

/* Tell readline the size of the screen. */
void ui_input_resize(int rows, int cols);
/* Rows the input wants on a screen of `cols` columns. */
int ui_input_rows(int cols);
/* Draw into rows [row, row + rows), scrolled so that the cursor shows; sets the cursor. Columns
 * from `limit` on are left alone where the text allows it: returns true if the last row does. */
bool ui_input_draw(struct ui_screen *s, int row, int rows, int limit);

/* Multi-line by hand: text that ends in a backslash, or begins with """ and has no second one, is
 * not complete at Enter. */
bool ui_input_is_open(const char *text);
/* Text as it is sent: without the """ around it. Caller must free. */
char *ui_input_resolve(const char *text);

#endif
