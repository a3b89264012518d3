/* SPDX-License-Identifier: MIT
 *
 * What keys do: our own actions, and the input line for the rest.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/app_impl.h"
#include "app/commands.h"
#include "chinwag/clock.h"
#include "chinwag/file.h"
#include "ui/keymap.h"
#include "ui/term.h"

enum { WHEEL_LINES = 3 };

void app_interrupt(struct app *a) {
    if (a->mode != NULL) {
        app_enter(a, NULL);
    } else if (ui_input_captive()) {
        ui_input_clear();
    } else if (app_cancel(a)) {
        return;
    } else if (a->n_queue > 0) {
        app_empty_queue(a);
    } else if (app_edit_cancel(a)) {
        /* which says so */
    } else if (!ui_input_empty()) {
        ui_input_clear();
    } else {
        app_hint(a, false, "Ctrl+D or /exit leaves, %s helps", a->plain != NULL ? "/help" : "F1");
    }
    app_draft_changed(a);
}

static void on_sent(struct app *a) {
    bool typed = ui_input_typed_slash();
    char *text = ui_input_take();
    struct cw_err err = {0};
    if (!a->persist.off && ui_input_remember(text, &err) != CW_OK) {
        app_tell(a, true, err.text, strlen(err.text));
    }
    app_draft_sent(a);
    if (typed && app_is_command(text)) {
        app_command_run(a, text);
    } else {
        app_submit(a, text);
    }
    free(text);
}

/* Write the message in an editor. Sending it stays the person's business. */
static void edit_draft(struct app *a) {
    const char *tmp = getenv("TMPDIR");
    const char *editor = getenv("VISUAL");
    editor = editor && editor[0] ? editor : getenv("EDITOR");
    editor = editor && editor[0] ? editor : "vi";
    struct cw_buf path = {0}, command = {0}, draft = {0};
    struct cw_err err;
    cw_buf_printf(&path, "%s/chinwag-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
    cw_buf_printf(&command, "%s \"$1\"", editor); /* may hold arguments, as in a shell */
    size_t n;
    const char *text = ui_input_text(&n);
    int fd = mkostemp(path.data, O_CLOEXEC); /* mode 0600 */
    bool written = fd >= 0 && write(fd, text, n) == (ssize_t)n;
    if (fd >= 0) {
        close(fd);
    }
    if (!written) {
        app_hint(a, true, "the message cannot be written to %s", path.data);
    } else if (ui_term_run(command.data, path.data) != 0) {
        app_hint(a, true, "the editor failed, the message is as it was: %s", editor);
    } else if (cw_file_read(path.data, UI_PASTE_MAX, &draft, &err) != CW_OK) {
        app_hint(a, true, "the message is as it was: %s", err.text);
    } else {
        /* without the newline that editors put at the end */
        size_t end = draft.len > 0 && draft.data[draft.len - 1] == '\n' ? draft.len - 1 : draft.len;
        ui_input_clear();
        ui_input_paste(draft.data != NULL ? draft.data : "", end);
    }
    if (fd >= 0) {
        unlink(path.data);
    }
    cw_buf_free(&draft);
    cw_buf_free(&path);
    cw_buf_free(&command);
    a->dirty = true;
}

/* Moving through the conversation. False: the action is another one. */
static bool act_scroll(struct ui_transcript *t, enum ui_action action) {
    static const struct {
        enum ui_action action;
        void (*move)(struct ui_transcript *t, int n);
        int n;
    } moves[] = {
        {UI_ACT_PAGE_UP, ui_transcript_page, -1},
        {UI_ACT_PAGE_DOWN, ui_transcript_page, 1},
        {UI_ACT_LINE_UP, ui_transcript_scroll, -1},
        {UI_ACT_LINE_DOWN, ui_transcript_scroll, 1},
        {UI_ACT_WHEEL_UP, ui_transcript_scroll, -WHEEL_LINES},
        {UI_ACT_WHEEL_DOWN, ui_transcript_scroll, WHEEL_LINES},
    };
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        if (moves[i].action == action) {
            moves[i].move(t, moves[i].n);
            return true;
        }
    }
    if (action == UI_ACT_TO_START) {
        ui_transcript_to_start(t);
    } else if (action == UI_ACT_TO_END) {
        ui_transcript_to_end(t);
    }
    return action == UI_ACT_TO_START || action == UI_ACT_TO_END;
}

bool app_act(struct app *a, enum ui_action action, const struct ui_key *key) {
    if (app_act_live(a, action) || act_scroll(a->transcript, action)) {
        return true;
    }
    switch (action) {
    case UI_ACT_HELP:
        app_show_help(a);
        return true;
    case UI_ACT_PALETTE:
        app_open_palette(a);
        return true;
    case UI_ACT_SEARCH:
        app_search_start(a, 1);
        return true;
    case UI_ACT_SEARCH_BACK:
        app_search_start(a, -1);
        return true;
    case UI_ACT_LENS:
        app_lens_start(a);
        return true;
    case UI_ACT_PICK:
        app_pick_start(a);
        return true;
    case UI_ACT_BRANCH_BACK:
        app_sibling(a, -1);
        return true;
    case UI_ACT_BRANCH_ON:
        app_sibling(a, 1);
        return true;
    case UI_ACT_NEWLINE:
        ui_input_newline();
        return true;
    case UI_ACT_EDITOR:
        edit_draft(a);
        return true;
    case UI_ACT_STOP:
        if (ui_input_wants_esc()) {
            return false;
        }
        /* on an empty line Esc is nobody's: it must not make a command of the next letter */
        return app_cancel(a) || ui_input_empty();
    case UI_ACT_INTERRUPT:
        app_interrupt(a);
        return true;
    case UI_ACT_LEAVE:
        if (!ui_input_empty()) {
            return false;
        }
        a->leave = true;
        return true;
    case UI_ACT_SUSPEND:
        ui_term_suspend();
        return true;
    case UI_ACT_REDRAW:
        ui_term_redraw();
        return true;
    default:
        return false;
    }
}

/* While something else has the keyboard only these reach behind it: what is written and how the
 * program is left is not changed by a key that was meant for the panel. */
static bool acts_in_modes(enum ui_action action) {
    return action != UI_ACT_NEWLINE && action != UI_ACT_EDITOR && action != UI_ACT_LEAVE &&
           action != UI_ACT_STOP;
}

static void mode_key(struct app *a, const struct ui_key *key) {
    if (a->mode->key(a, key) || key->code == UI_KEY_PASTE) {
        return;
    }
    enum ui_action action = ui_keymap_find(key->code, key->mods);
    if (acts_in_modes(action)) {
        app_act(a, action, key);
    }
}

/* Whether a key of ours acts now: while readline waits for the rest of something, only those do
 * that it cannot mean. */
static bool is_ours(enum ui_action action, const struct ui_key *key) {
    bool special = key->code >= UI_KEY_NONE && key->code != UI_KEY_ESC && key->code != UI_KEY_ENTER;
    return action != UI_ACT_NONE && (special || action == UI_ACT_INTERRUPT || !ui_input_captive());
}

void app_on_key(struct app *a, const struct ui_key *key) {
    a->dirty = a->urgent = true;
    if (key->code == UI_KEY_MOUSE) {
        return; /* a click: nothing here is clicked */
    }
    a->hint[0] = '\0';
    if (a->mode != NULL) {
        mode_key(a, key);
        return;
    }
    uint64_t before = ui_input_version();
    if (key->code == UI_KEY_PASTE) {
        ui_input_paste(key->text, key->n_text);
        if (key->truncated) {
            app_hint(a, true, "the paste was longer than %d MiB: the rest is missing",
                     UI_PASTE_MAX / 1024 / 1024);
        }
    } else {
        enum ui_action action = ui_keymap_find(key->code, key->mods);
        enum ui_input_result result = UI_INPUT_NONE;
        if (!is_ours(action, key) || !app_act(a, action, key)) {
            result = ui_input_key(key);
        }
        if (result == UI_INPUT_SEND) {
            on_sent(a);
        } else if (result == UI_INPUT_EDIT) {
            edit_draft(a);
        }
    }
    if (ui_input_version() != before) {
        app_draft_changed(a);
    }
}
