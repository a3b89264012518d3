/* SPDX-License-Identifier: MIT
 *
 * Readline behind our keys and our screen.
 *
 * Each key event is put into a queue as the bytes the terminal sent and readline is called until
 * the queue is empty; its getc is never called on an empty queue, so it cannot wait. The default
 * functions that move and delete by character are replaced, wherever ~/.inputrc put them, by ones
 * that do so by cluster.
 */
#include "ui/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <readline/history.h>
#include <readline/readline.h>

#include "ui/fold.h"
#include "ui/history.h"
#include "ui/inputrows.h"

#include "chinwag/mem.h"
#include "chinwag/utf8.h"

enum {
    MAX_HISTORY = 5000,
    CONTROL_G = 7,
    MAX_FILE_WORDS = 8, /* separated by blanks, of a file name that is completed */
};

static struct {
    struct ui_input_options opt;
    char *prompt, *history_path;
    FILE *null;
    char queue[64];
    size_t queued, taken;
    bool open;
    bool edit;      /* the text is to go to an editor */
    FILE *history;  /* opened to append, NULL: not kept */
    char *line;     /* what the handler was given */
    char **matches; /* to choose from */
    size_t n_matches;
    struct ui_candidates candidates; /* during a completion */
    size_t candidate;
    char *file;       /* the beginning of a file name that is being completed */
    size_t file_skip; /* bytes of it that stand before the word readline completes */
    bool recalled;    /* entries of the history may hold marks of folds */
    int top;          /* first input row shown */
    uint64_t version;
    struct ui_folds *folds; /* outlive the line they stood in: undo and yank may bring them back */
    struct cw_buf opened, shown; /* the line with its folds opened, and as it is drawn */
    struct cw_buf shown_prompt;
} in;

/* --- text of several lines ------------------------------------------------------------------ */

static const char block[] = "\"\"\"";

bool ui_input_is_open(const char *text) {
    const char *start = text + strspn(text, " \t\n");
    if (strncmp(start, block, 3) == 0) {
        return strstr(start + 3, block) == NULL;
    }
    size_t n = strlen(text);
    return n > 0 && text[n - 1] == '\\';
}

char *ui_input_resolve(const char *text) {
    const char *start = text + strspn(text, " \t\n");
    struct cw_buf out = {0};
    const char *end = strncmp(start, block, 3) == 0 ? strstr(start + 3, block) : NULL;
    if (end == NULL) {
        return cw_strdup(text);
    }
    start += 3;
    start += *start == '\n';
    size_t n = (size_t)(end - start);
    n -= n > 0 && end[-1] == '\n';
    if (end >= start) {
        cw_buf_add(&out, start, n);
    }
    cw_buf_puts(&out, end + 3);
    return cw_buf_take(&out);
}

/* --- folded texts ---------------------------------------------------------------------------- */

/* The line as it is drawn, and the cursor in it. */
static const char *shown_line(size_t *n, size_t *point) {
    *n = (size_t)rl_end;
    *point = (size_t)rl_point;
    if (!ui_folds_in(rl_line_buffer, *n)) {
        return rl_line_buffer;
    }
    ui_folds_label(in.folds, rl_line_buffer, *point, &in.shown);
    size_t shown_point = in.shown.len;
    ui_folds_label(in.folds, rl_line_buffer, *n, &in.shown);
    *n = in.shown.len;
    *point = shown_point;
    return in.shown.data;
}

/* Put a new fold into the line; it takes the text. 0: there are too many, nothing was done. */
static unsigned insert_fold(const char *name, struct cw_buf *text) {
    char mark[UI_FOLD_MARK + 1];
    unsigned number = ui_folds_add(in.folds, rl_line_buffer, (size_t)rl_end, name, text);
    if (number > 0) {
        ui_fold_mark(number, mark);
        rl_begin_undo_group();
        rl_insert_text(mark);
        rl_end_undo_group();
    }
    return number;
}

/* --- readline's hooks ------------------------------------------------------------------------ */

static int queue_getc(FILE *file) {
    (void)file;
    /* An abort ends whatever asked for a key that is not there. */
    return in.taken < in.queued ? (unsigned char)in.queue[in.taken++] : CONTROL_G;
}

static int queue_available(void) {
    return in.taken < in.queued;
}

static void no_redisplay(void) {
    /* the application draws after each key */
}

static void on_line(char *line) {
    free(in.line);
    in.line = line;
}

static void free_matches(void) {
    for (size_t i = 0; i < in.n_matches; i++) {
        free(in.matches[i]);
    }
    free(in.matches);
    in.matches = NULL;
    in.n_matches = 0;
}

static void show_matches(char **matches, int n, int max_length) {
    (void)max_length;
    free_matches();
    in.matches = cw_calloc((size_t)n + 1, sizeof *in.matches);
    for (int i = 1; i <= n; i++) {
        in.matches[in.n_matches++] = cw_strdup(matches[i]);
    }
}

void ui_candidates_add(struct ui_candidates *c, const char *word) {
    c->words = cw_reallocarray(c->words, c->n + 1, sizeof *c->words);
    c->words[c->n++] = cw_strdup(word);
}

static char *next_candidate(const char *text, int state) {
    in.candidate = state == 0 ? 0 : in.candidate;
    while (in.candidate < in.candidates.n) {
        const char *word = in.candidates.words[in.candidate++];
        if (strncmp(word, text, strlen(text)) == 0) {
            return strdup(word); /* readline frees it */
        }
    }
    return NULL;
}

/* A name that begins with in.file, less what stands there before the word. */
static char *next_file(const char *text, int state) {
    (void)text;
    char *name = rl_filename_completion_function(in.file, state);
    if (name == NULL || strlen(name) < in.file_skip) {
        free(name);
        return NULL;
    }
    char *full = tilde_expand(name);
    struct stat st;
    bool folder = stat(full, &st) == 0 && S_ISDIR(st.st_mode);
    size_t n = strlen(name);
    char *word = malloc(n + 2); /* readline frees it */
    if (word != NULL) {
        snprintf(word, n + 2, "%s%s", name + in.file_skip, folder ? "/" : "");
    }
    free(full);
    free(name);
    return word;
}

/* Names may hold blanks, and nothing tells where one begins: the longest run of words before the
 * cursor that begins the name of a file is taken for it. The first word of a command is none. */
static char **complete_file(const char *text, size_t start, size_t end) {
    size_t first = rl_line_buffer[0] == '/' ? strcspn(rl_line_buffer, " \t\n") + 1 : 0;
    size_t from[MAX_FILE_WORDS];
    size_t n = 0;
    for (size_t at = start; n < MAX_FILE_WORDS && (n == 0 || at > first);) {
        at -= n > 0;
        while (at > first && n > 0 && strchr(" \t\n", rl_line_buffer[at - 1]) == NULL) {
            at--;
        }
        from[n++] = at;
    }
    char **matches = NULL;
    while (matches == NULL && n-- > 0) {
        in.file = cw_strndup(rl_line_buffer + from[n], end - from[n]);
        in.file_skip = start - from[n];
        matches = rl_completion_matches(text, next_file);
        free(in.file);
        in.file = NULL;
    }
    rl_filename_completion_desired = 0; /* readline does not know the whole name */
    size_t length = matches != NULL ? strlen(matches[0]) : 0;
    rl_completion_suppress_append = length > 0 && matches[0][length - 1] == '/';
    return matches;
}

static char **complete(const char *text, int start, int end) {
    if (in.opt.complete == NULL) {
        return NULL;
    }
    in.candidates = (struct ui_candidates){0};
    in.opt.complete(in.opt.arg, rl_line_buffer, (size_t)start, (size_t)end, &in.candidates);
    rl_attempted_completion_over = 1;
    char **matches = in.candidates.files ? complete_file(text, (size_t)start, (size_t)end)
                                         : rl_completion_matches(text, next_candidate);
    for (size_t i = 0; i < in.candidates.n; i++) {
        free(in.candidates.words[i]);
    }
    free(in.candidates.words);
    in.candidates = (struct ui_candidates){0};
    return matches;
}

/* --- moving and deleting by cluster ---------------------------------------------------------- */

static size_t step(size_t at, int count) {
    for (; count > 0; count--) {
        at = ui_cluster_after(rl_line_buffer, (size_t)rl_end, at);
    }
    for (; count < 0; count++) {
        at = ui_cluster_before(rl_line_buffer, (size_t)rl_end, at);
    }
    return at;
}

static int forward(int count, int key) {
    (void)key;
    bool command = rl_editing_mode == 0 && rl_get_keymap() == rl_get_keymap_by_name("vi-move");
    size_t to = step((size_t)rl_point, count);
    /* in vi command mode the cursor stands on a character, except for an operator's motion */
    if (command && !RL_ISSTATE(RL_STATE_VIMOTION) && to >= (size_t)rl_end && rl_end > 0) {
        to = step((size_t)rl_end, -1);
    }
    if (to == (size_t)rl_point) {
        rl_ding();
    }
    rl_point = (int)to;
    return 0;
}

static int backward(int count, int key) {
    return forward(-count, key);
}

/* Take away [from, to): into the kill ring when an argument was given, as readline does. */
static int take_away(size_t from, size_t to, bool kill) {
    if (from == to) {
        rl_ding();
        return 1;
    }
    if (kill) {
        rl_kill_text((int)from, (int)to);
    } else {
        rl_delete_text((int)from, (int)to);
    }
    rl_point = (int)from;
    return 0;
}

static int delete_after(int count, int key) {
    (void)key;
    size_t to = step((size_t)rl_point, count);
    size_t from = (size_t)rl_point;
    return take_away(from < to ? from : to, from < to ? to : from, rl_explicit_arg || count > 1);
}

static int delete_before(int count, int key) {
    return delete_after(-count, key);
}

static int vi_delete(int count, int key) {
    (void)key;
    int result = take_away((size_t)rl_point, step((size_t)rl_point, count), true);
    if (rl_point > 0 && rl_point == rl_end) {
        rl_point = (int)step((size_t)rl_point, -1);
    }
    return result;
}

static int vi_rubout(int count, int key) {
    (void)key;
    return take_away(step((size_t)rl_point, -count), (size_t)rl_point, true);
}

/* By the name it has in bash, so that it can be bound in ~/.inputrc. */
static int edit(int count, int key) {
    (void)count;
    (void)key;
    in.edit = true;
    return 0;
}

static void replace_functions(Keymap map, int depth) {
    static const struct {
        rl_command_func_t *theirs, *ours;
    } functions[] = {
        {rl_forward_char, forward}, {rl_backward_char, backward}, {rl_delete, delete_after},
        {rl_rubout, delete_before}, {rl_vi_delete, vi_delete},    {rl_vi_rubout, vi_rubout},
        {rl_forward, forward},      {rl_backward, backward},
    };
    for (int key = 0; key < KEYMAP_SIZE && map != NULL && depth < 8; key++) {
        if (map[key].type == ISKMAP) {
            Keymap inner; /* kept in the slot of the function */
            memcpy(&inner, &map[key].function, sizeof inner);
            replace_functions(inner, depth + 1);
        }
        for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
            if (map[key].type == ISFUNC && map[key].function == functions[i].theirs) {
                map[key].function = functions[i].ours;
            }
        }
    }
}

/* --- life ------------------------------------------------------------------------------------ */

static void add_entry(void *arg, const char *text, const char *time) {
    (void)arg;
    add_history(text);
    add_history_time(time);
}

static void write_last_half(void *arg, FILE *f) {
    (void)arg;
    for (int i = history_length - MAX_HISTORY / 2; i < history_length; i++) {
        const HIST_ENTRY *e = history_get(history_base + i);
        if (e != NULL) {
            ui_history_write(f, e->line, e->timestamp);
        }
    }
}

static int open_history(struct cw_err *err) {
    if (in.history_path == NULL || in.history_path[0] == '\0') {
        return CW_OK;
    }
    in.history = ui_history_open(in.history_path, err);
    if (in.history == NULL) {
        return CW_EIO;
    }
    ui_history_read(in.history, add_entry, NULL);
    if (history_length >= MAX_HISTORY) {
        ui_history_replace(in.history_path, write_last_half, NULL, NULL);
        fclose(in.history);
        in.history = fopen(in.history_path, "ae");
    }
    return CW_OK;
}

/* A large entry that was brought back stands folded in the line, as when it was pasted. Readline
 * counts that as no change of the entry, which has no undo list of its own. */
static void fold_recalled(void) {
    const HIST_ENTRY *e = current_history();
    size_t n = (size_t)rl_end;
    if (e == NULL || rl_undo_list != NULL || !ui_fold_is_large(rl_line_buffer, n) ||
        ui_folds_in(rl_line_buffer, n) || strcmp(e->line, rl_line_buffer) != 0) {
        return;
    }
    char mark[UI_FOLD_MARK + 1];
    struct cw_buf text = {0};
    cw_buf_add(&text, rl_line_buffer, n);
    unsigned number = ui_folds_add(in.folds, "", 0, NULL, &text);
    ui_fold_mark(number, mark);
    rl_replace_line(mark, 0);
    rl_point = rl_end;
    in.recalled = true;
}

/* Entries that were edited keep their edits, but no marks: those are given to other texts in time.
 */
static void open_recalled(void) {
    for (int i = 0; i < history_length && in.recalled; i++) {
        HIST_ENTRY *e = history_get(history_base + i);
        if (e == NULL || !ui_folds_in(e->line, strlen(e->line))) {
            continue;
        }
        ui_folds_open(in.folds, e->line, strlen(e->line), &in.opened);
        UNDO_LIST *undo = e->data, *now = rl_undo_list;
        e = replace_history_entry(i, in.opened.data, NULL);
        rl_undo_list = undo; /* its places are of the other text */
        rl_free_undo_list();
        rl_undo_list = now;
        free_history_entry(e);
    }
    in.recalled = false;
}

/* Keys a terminal's description would name; readline reads none when it does not draw. */
static void bind_keys(Keymap map, bool command) {
    static const struct {
        const char *sequence;
        rl_command_func_t *function;
    } keys[] = {
        {"\033[3~", rl_delete},         {"\033[2~", rl_overwrite_mode},
        {"\033[1~", rl_beg_of_line},    {"\033[7~", rl_beg_of_line},
        {"\033[4~", rl_end_of_line},    {"\033[8~", rl_end_of_line},
        {"\033[1;5C", rl_forward_word}, {"\033[1;5D", rl_backward_word},
        {"\033[1;3C", rl_forward_word}, {"\033[1;3D", rl_backward_word},
        {"\033[3;5~", rl_kill_word},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (!command || keys[i].function != rl_overwrite_mode) {
            rl_bind_keyseq_if_unbound_in_map(keys[i].sequence, keys[i].function, map);
        }
    }
}

int ui_input_open(const struct ui_input_options *opt, struct cw_err *err) {
    memset(&in, 0, sizeof in);
    in.opt = *opt;
    in.prompt = cw_strdup(opt->prompt);
    in.history_path = opt->history_path ? cw_strdup(opt->history_path) : NULL;
    in.null = fopen("/dev/null", "r+e");
    in.folds = ui_folds_create();

    rl_readline_name = "chinwag";
    rl_instream = in.null;
    rl_outstream = in.null;
    rl_catch_signals = 0;
    rl_catch_sigwinch = 0;
    rl_change_environment = 0;
    rl_prep_term_function = NULL;
    rl_deprep_term_function = NULL;
    rl_getc_function = queue_getc;
    rl_input_available_hook = queue_available;
    rl_redisplay_function = no_redisplay;
    rl_completion_display_matches_hook = show_matches;
    rl_completion_query_items = 0;
    rl_attempted_completion_function = complete;
    rl_basic_word_break_characters = " \t\n";
    rl_completer_word_break_characters = " \t\n";
    history_write_timestamps = 1;
    history_comment_char = UI_HISTORY_MARK;

    using_history();
    clear_history();
    stifle_history(MAX_HISTORY);
    int code = open_history(err);

    rl_add_defun("edit-and-execute-command", edit, -1); /* before ~/.inputrc, which may name it */
    rl_initialize();
    rl_variable_bind("enable-bracketed-paste", "off"); /* pastes are taken out before */
    bind_keys(rl_get_keymap_by_name("emacs-standard"), false);
    bind_keys(rl_get_keymap_by_name("vi-insert"), false);
    bind_keys(rl_get_keymap_by_name("vi-move"), true);
    rl_bind_keyseq_if_unbound_in_map("\\C-x\\C-e", edit, rl_get_keymap_by_name("emacs-standard"));
    rl_bind_keyseq_if_unbound_in_map("v", edit, rl_get_keymap_by_name("vi-move"));
    replace_functions(rl_get_keymap_by_name("emacs-standard"), 0);
    replace_functions(rl_get_keymap_by_name("vi-insert"), 0);
    replace_functions(rl_get_keymap_by_name("vi-move"), 0);
    rl_callback_handler_install(in.prompt, on_line);
    in.open = true;
    return code;
}

void ui_input_close(void) {
    if (!in.open) {
        return;
    }
    rl_callback_handler_remove();
    rl_free_line_state();
    if (in.history != NULL) {
        fclose(in.history);
    }
    clear_history();
    free_matches();
    free(in.line);
    free(in.prompt);
    free(in.history_path);
    rl_instream = rl_outstream = NULL;
    if (in.null != NULL) {
        fclose(in.null);
    }
    ui_folds_destroy(in.folds);
    cw_buf_free(&in.opened);
    cw_buf_free(&in.shown);
    cw_buf_free(&in.shown_prompt);
    memset(&in, 0, sizeof in);
}

/* --- keys ------------------------------------------------------------------------------------ */

bool ui_input_captive(void) {
    return RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH | RL_STATE_NUMERICARG |
                      RL_STATE_MULTIKEY | RL_STATE_METANEXT | RL_STATE_MOREINPUT |
                      RL_STATE_VIMOTION | RL_STATE_CHARSEARCH) != 0;
}

bool ui_input_wants_esc(void) {
    return ui_input_captive() ||
           (rl_editing_mode == 0 && rl_get_keymap() == rl_get_keymap_by_name("vi-insert"));
}

bool ui_input_empty(void) {
    return rl_end == 0;
}

const char *ui_input_text(size_t *n) {
    *n = (size_t)rl_end;
    if (!ui_folds_in(rl_line_buffer, *n)) {
        return rl_line_buffer;
    }
    ui_folds_open(in.folds, rl_line_buffer, *n, &in.opened);
    *n = in.opened.len;
    return in.opened.data;
}

uint64_t ui_input_version(void) {
    return in.version;
}

bool ui_input_history_empty(void) {
    return history_length == 0;
}

const char *ui_input_mode(void) {
    return rl_editing_mode != 0                                  ? ""
           : rl_get_keymap() == rl_get_keymap_by_name("vi-move") ? "command"
                                                                 : "insert";
}

const char *const *ui_input_matches(size_t *n) {
    *n = in.n_matches;
    return (const char *const *)in.matches;
}

/* Put the cursor on a cluster border again after a command that knows only characters. */
static void snap(int before) {
    if (rl_point <= 0 || rl_point >= rl_end) {
        return;
    }
    size_t at = (size_t)rl_point;
    rl_point = (int)(rl_point > before ? ui_cluster_ceil(rl_line_buffer, (size_t)rl_end, at)
                                       : ui_cluster_floor(rl_line_buffer, (size_t)rl_end, at));
}

/* Whether readline has a use for a whole key sequence. Of an unknown one it would take the
 * beginning for a command and insert the rest. */
static bool is_bound(const struct ui_key *key) {
    int type;
    rl_command_func_t *function =
        rl_function_of_keyseq_len(key->raw, key->n_raw, rl_get_keymap(), &type);
    return function != NULL && type != ISKMAP;
}

/* Enter on a text that is not complete: what readline accepted goes back, with a new line. */
static enum ui_input_result finish_line(void) {
    if (in.line == NULL) {
        return UI_INPUT_NONE; /* readline's own end of file: there is none here */
    }
    if (ui_input_is_open(in.line)) {
        size_t n = strlen(in.line);
        if (in.line[n - 1] == '\\') {
            in.line[n - 1] = '\n';
            rl_insert_text(in.line);
        } else {
            rl_insert_text(in.line);
            rl_insert_text("\n");
        }
        free(in.line);
        in.line = NULL;
        return UI_INPUT_NONE;
    }
    if (in.line[strspn(in.line, " \t\n")] == '\0') {
        free(in.line);
        in.line = NULL;
        return UI_INPUT_NONE; /* nothing to send */
    }
    return UI_INPUT_SEND;
}

/* Up and down go through the rows of a text before they go through the history. */
static bool move_row(const struct ui_key *key);

/* A key that has a byte of its own but came as a longer sequence, as some terminals send Enter of
 * the keypad, or every key with a modifier. */
static bool has_plain_bytes(const struct ui_key *key) {
    bool shift_only = (key->mods & ~(unsigned)UI_SHIFT) == 0;
    if (key->n_raw < 3 || key->raw[0] != '\033') {
        return false;
    }
    switch (key->code) {
    case UI_KEY_ENTER:
    case UI_KEY_BACKSPACE:
        return shift_only;
    case UI_KEY_TAB:
        return key->mods == 0;
    default:
        return key->code < UI_KEY_NONE &&
               (shift_only || (key->mods == UI_CTRL && key->code >= '@' && key->code < 0x7f));
    }
}

/* What readline is to read for a key. */
static size_t key_bytes(const struct ui_key *key, char out[sizeof in.queue]) {
    if (key->code == 0xfffd && key->n_raw == 1) { /* a byte that is no UTF-8 */
        return (size_t)cw_utf8_encode(key->code, out);
    }
    if (!has_plain_bytes(key)) {
        memcpy(out, key->raw, key->n_raw);
        return key->n_raw;
    }
    if (key->code < UI_KEY_NONE && !(key->mods & UI_CTRL)) {
        return (size_t)cw_utf8_encode(key->code, out);
    }
    out[0] = key->code == UI_KEY_ENTER       ? '\r'
             : key->code == UI_KEY_TAB       ? '\t'
             : key->code == UI_KEY_BACKSPACE ? '\177'
                                             : (char)(key->code & 0x1f);
    return 1;
}

enum ui_input_result ui_input_key(const struct ui_key *key) {
    free_matches();
    bool is_char = key->code < UI_KEY_NONE && (key->mods & (UI_ALT | UI_CTRL)) == 0;
    bool single = key->n_raw == 1 || has_plain_bytes(key);
    if (rl_editing_mode == 0 && key->code < UI_KEY_NONE && (key->mods & UI_ALT)) {
        is_char = true; /* vi: Esc and a command, typed fast */
    }
    if (key->n_raw == 0 || (!is_char && !single && !ui_input_captive() && !is_bound(key))) {
        return UI_INPUT_NONE;
    }
    if (!ui_input_captive() && move_row(key)) {
        return UI_INPUT_NONE;
    }
    in.version++;
    if (is_char && ui_folds_in(key->raw, key->n_raw)) {
        ui_input_paste(key->raw, key->n_raw); /* typed, it must not pass for one of ours */
        return UI_INPUT_NONE;
    }
    int before = rl_point, entry = where_history();
    bool accepted = false, searching = RL_ISSTATE(RL_STATE_ISEARCH | RL_STATE_NSEARCH) != 0;
    in.taken = 0;
    in.queued = key_bytes(key, in.queue);
    free(in.line);
    in.line = NULL;
    while (in.taken < in.queued) {
        rl_callback_read_char();
        accepted = accepted || in.line != NULL;
    }
    in.queued = in.taken = 0;
    if (accepted) {
        open_recalled();
        return finish_line();
    }
    snap(before);
    if ((searching || entry != where_history()) && !ui_input_captive()) {
        fold_recalled();
    }
    if (in.edit) {
        in.edit = false;
        return UI_INPUT_EDIT;
    }
    return UI_INPUT_NONE;
}

bool ui_input_typed_slash(void) {
    char *text = ui_input_resolve(in.line ? in.line : "");
    bool slash = text[0] == '/';
    free(text);
    return slash;
}

char *ui_input_take(void) {
    /* the marks of a block are those that were typed, not those in a folded text */
    char *text = ui_input_resolve(in.line ? in.line : "");
    size_t n = strlen(text);
    if (ui_folds_in(text, n)) {
        struct cw_buf opened = {0};
        ui_folds_open(in.folds, text, n, &opened);
        free(text);
        text = cw_buf_take(&opened);
    }
    free(in.line);
    in.line = NULL;
    return text;
}

static void leave_captivity(void) {
    if (ui_input_captive()) {
        rl_callback_sigcleanup();
        rl_free_line_state();
    }
}

/* Into the line as it is, or folded where it is large, or where it holds marks of its own. */
static void insert_text(struct cw_buf *text) {
    bool fold = ui_fold_is_large(text->data, text->len) || ui_folds_in(text->data, text->len);
    if (text->len > 0 && (!fold || insert_fold(NULL, text) == 0)) {
        rl_begin_undo_group();
        rl_insert_text(text->data);
        rl_end_undo_group();
    }
}

void ui_input_paste(const char *text, size_t n) {
    struct cw_buf clean = {0};
    ui_fold_clean(text, n, &clean);
    free_matches();
    leave_captivity();
    in.version++;
    insert_text(&clean);
    cw_buf_free(&clean);
}

unsigned ui_input_attach(const char *name, const char *text, size_t n) {
    struct cw_buf clean = {0};
    ui_fold_clean(text, n, &clean);
    free_matches();
    leave_captivity();
    in.version++;
    cw_buf_puts(&clean, "");
    unsigned number = insert_fold(name, &clean);
    cw_buf_free(&clean);
    return number;
}

void ui_input_detach(unsigned number) {
    char mark[UI_FOLD_MARK + 1];
    if (number < 1 || number > UI_MAX_FOLDS) {
        return;
    }
    ui_fold_mark(number, mark);
    const char *at = memmem(rl_line_buffer, (size_t)rl_end, mark, UI_FOLD_MARK);
    if (at != NULL) {
        int from = (int)(at - rl_line_buffer);
        rl_delete_text(from, from + UI_FOLD_MARK);
        rl_point = rl_point > from ? rl_point - UI_FOLD_MARK : rl_point;
        in.version++;
    }
}

void ui_input_newline(void) {
    free_matches();
    in.version++;
    rl_insert_text("\n");
}

void ui_input_clear(void) {
    free_matches();
    in.version++;
    rl_callback_sigcleanup();
    rl_free_line_state();
    rl_callback_handler_remove();
    rl_callback_handler_install(in.prompt, on_line);
    open_recalled();
}

void ui_input_set(const char *text) {
    struct cw_buf copy = {0};
    cw_buf_puts(&copy, text);
    ui_input_clear();
    insert_text(&copy);
    cw_buf_free(&copy);
}

int ui_input_forget(const struct cw_str *messages, size_t n, struct cw_err *err) {
    open_recalled();
    for (int i = history_length - 1; i >= 0; i--) {
        const HIST_ENTRY *e = history_get(history_base + i);
        if (e != NULL && ui_history_tells_any(e->line, messages, n)) {
            free_history_entry(remove_history(i));
        }
    }
    using_history();
    if (in.history == NULL) {
        return CW_OK;
    }
    int rc = ui_history_forget(in.history_path, messages, n, err);
    fclose(in.history);
    in.history = ui_history_open(in.history_path, rc == CW_OK ? err : NULL);
    return in.history != NULL ? rc : CW_EIO;
}

int ui_input_remember(const char *line, struct cw_err *err) {
    HIST_ENTRY *last = history_length > 0 ? history_get(history_base + history_length - 1) : NULL;
    if (last != NULL && strcmp(last->line, line) == 0) {
        return CW_OK;
    }
    add_history(line);
    using_history(); /* Up begins behind it */
    if (in.history == NULL) {
        return CW_OK;
    }
    const HIST_ENTRY *e = history_get(history_base + history_length - 1);
    ui_history_write(in.history, e->line, e->timestamp);
    if (fflush(in.history) != 0) {
        int why = errno;
        fclose(in.history);
        in.history = NULL; /* said once */
        return cw_fail(err, CW_EIO, "history: %s: %s", in.history_path, strerror(why));
    }
    return CW_OK;
}

/* --- drawing --------------------------------------------------------------------------------- */

/* Readline's prompt without what it marks as invisible. Replaces *out. */
static void shown_prompt(struct cw_buf *out) {
    bool hidden = false;
    cw_buf_clear(out);
    cw_buf_puts(out, "");
    for (const char *p = rl_display_prompt ? rl_display_prompt : ""; *p != '\0'; p++) {
        if (*p == RL_PROMPT_START_IGNORE || *p == RL_PROMPT_END_IGNORE) {
            hidden = *p == RL_PROMPT_START_IGNORE;
        } else if (!hidden) {
            cw_buf_putc(out, *p);
        }
    }
}

static void make_rows(struct ui_input_rows *r, int cols) {
    size_t n, point;
    shown_prompt(&in.shown_prompt);
    const char *prompt = in.shown_prompt.data, *text = shown_line(&n, &point);
    ui_input_rows_make(r, prompt, strcmp(prompt, in.prompt) == 0, text, n, point, cols);
}

void ui_input_resize(int rows, int cols) {
    rl_set_screen_size(rows, cols);
}

int ui_input_rows(int cols) {
    struct ui_input_rows r;
    make_rows(&r, cols);
    int rows = ui_input_rows_count(&r);
    ui_input_rows_free(&r);
    return rows;
}

bool ui_input_draw(struct ui_screen *s, int row, int rows, int limit) {
    struct ui_input_rows r;
    make_rows(&r, s->cols);
    int n = ui_input_rows_count(&r);
    int cursor = r.cursor_row - r.shared;
    in.top = in.top > cursor ? cursor : in.top;
    in.top = in.top < cursor - rows + 1 ? cursor - rows + 1 : in.top;
    in.top = in.top > n - rows ? n - rows : in.top;
    in.top = in.top < 0 ? 0 : in.top;
    int last_end = ui_input_rows_draw(&r, s, row, rows, in.top);
    if (rows > 0) {
        s->cursor_row = row + cursor - in.top;
        s->cursor_col = r.cursor_col < s->cols ? r.cursor_col : s->cols - 1;
    }
    bool free_space = last_end < limit && !(cursor - in.top == rows - 1 && r.cursor_col >= limit);
    ui_input_rows_free(&r);
    return free_space;
}

static bool move_row(const struct ui_key *key) {
    if ((key->code != UI_KEY_UP && key->code != UI_KEY_DOWN) || key->mods != 0 ||
        memchr(rl_line_buffer, '\n', (size_t)rl_end) == NULL) {
        return false;
    }
    struct ui_input_rows r;
    int rows, cols;
    size_t byte;
    rl_get_screen_size(&rows, &cols);
    make_rows(&r, cols);
    bool inside = ui_input_rows_move(&r, key->code == UI_KEY_UP ? -1 : 1, &byte);
    if (inside) {
        rl_point = (int)ui_folds_byte(in.folds, rl_line_buffer, (size_t)rl_end, byte);
    }
    ui_input_rows_free(&r);
    return inside;
}
