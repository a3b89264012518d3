/* SPDX-License-Identifier: MIT
 *
 * What keys do: our own actions, and the input line for the rest.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/app_impl.h"
#include "app/commands.h"
#include "chinwag/clock.h"
#include "ui/keymap.h"
#include "ui/term.h"

/* A live key: move a setting by a step, on the grid of steps. */
static void nudge(struct app *a, const char *name, int steps, int per_unit) {
    const struct app_option *o = app_option_find(name);
    double value = strcmp(name, "temp") == 0 ? (double)a->settings->sampling.temp
                                             : (double)a->settings->sampling.top_p;
    double at = value * per_unit;
    double point = floor(at + 0.5);
    bool on_grid = fabs(at - point) < 1e-3;
    double to = (on_grid ? point + steps : steps > 0 ? ceil(at) : floor(at)) / per_unit;
    to = to < o->min ? o->min : to > o->max ? o->max : to;
    char text[32];
    struct cw_err err = {0};
    snprintf(text, sizeof text, "%.2f", to);
    if (app_settings_set(a->settings, o, text, APP_LIVE, &err) != CW_OK) {
        app_hint(a, true, "%s", err.text);
    }
    app_publish(a);
}

void app_interrupt(struct app *a) {
    if (a->overlay != NULL) {
        app_show_page(a, NULL);
    } else if (ui_input_captive()) {
        ui_input_clear();
    } else if (app_cancel(a)) {
        return;
    } else if (a->n_queue > 0) {
        app_empty_queue(a);
    } else if (!ui_input_empty()) {
        ui_input_clear();
    } else {
        app_hint(a, false, "Ctrl+D or /exit leaves, F1 helps");
    }
    a->draft_known = false;
    a->dirty = true;
}

static void on_sent(struct app *a) {
    char *text = ui_input_take();
    struct cw_err err = {0};
    if (ui_input_remember(text, &err) != CW_OK) {
        app_tell(a, true, err.text, strlen(err.text));
    }
    a->draft_known = false;
    a->draft_ask_s = -1;
    if (app_is_command(text)) {
        app_command_run(a, text);
    } else {
        app_submit(a, text);
    }
    free(text);
}

/* The file's text without the newline that editors put at the end. */
static char *read_draft(const char *path) {
    struct cw_buf text = {0};
    char bytes[4096];
    size_t n;
    FILE *f = fopen(path, "re");
    while (f != NULL && (n = fread(bytes, 1, sizeof bytes, f)) > 0) {
        cw_buf_add(&text, bytes, n);
    }
    if (f != NULL) {
        fclose(f);
    }
    text.len -= text.len > 0 && text.data[text.len - 1] == '\n';
    cw_buf_putc(&text, '\0');
    return cw_buf_take(&text);
}

/* Write the message in an editor. Sending it stays the person's business. */
static void edit_draft(struct app *a) {
    const char *tmp = getenv("TMPDIR");
    const char *editor = getenv("VISUAL");
    editor = editor && editor[0] ? editor : getenv("EDITOR");
    editor = editor && editor[0] ? editor : "vi";
    struct cw_buf path = {0}, command = {0};
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
    } else {
        char *draft = read_draft(path.data);
        ui_input_clear();
        ui_input_paste(draft, strlen(draft));
        free(draft);
    }
    if (fd >= 0) {
        unlink(path.data);
    }
    cw_buf_free(&path);
    cw_buf_free(&command);
    a->dirty = true;
}

static void overlay_key(struct app *a, const struct ui_key *key) {
    int page = a->screen.rows > 6 ? a->screen.rows - 6 : 1;
    switch (key->code) {
    case UI_KEY_UP:
        ui_overlay_scroll(a->overlay, -1);
        break;
    case UI_KEY_DOWN:
    case UI_KEY_ENTER:
        ui_overlay_scroll(a->overlay, 1);
        break;
    case UI_KEY_PGUP:
        ui_overlay_scroll(a->overlay, -page);
        break;
    case UI_KEY_PGDN:
    case ' ':
        ui_overlay_scroll(a->overlay, page);
        break;
    case UI_KEY_HOME:
        ui_overlay_scroll(a->overlay, -100000);
        break;
    case UI_KEY_END:
        ui_overlay_scroll(a->overlay, 100000);
        break;
    case UI_KEY_ESC:
    case UI_KEY_F1:
    case 'q':
    case '?':
        app_show_page(a, NULL);
        break;
    default:
        switch (ui_keymap_find(key->code, key->mods)) {
        case UI_ACT_INTERRUPT:
        case UI_ACT_LEAVE:
            app_show_page(a, NULL);
            break;
        case UI_ACT_SUSPEND:
            ui_term_suspend();
            break;
        case UI_ACT_REDRAW:
            ui_term_redraw();
            break;
        default:
            break;
        }
    }
    a->dirty = true;
}

/* Our own keys. False: the key is the input line's. */
static bool act(struct app *a, enum ui_action action, const struct ui_key *key) {
    struct ui_transcript *t = a->transcript;
    /* while readline waits for the rest of something, only keys it cannot mean are ours */
    bool special = key->code >= UI_KEY_NONE && key->code != UI_KEY_ESC && key->code != UI_KEY_ENTER;
    if (ui_input_captive() && !special && action != UI_ACT_INTERRUPT) {
        return false;
    }
    switch (action) {
    case UI_ACT_HELP:
        app_show_help(a);
        return true;
    case UI_ACT_TEMP_DOWN:
        nudge(a, "temp", -1, 20);
        return true;
    case UI_ACT_TEMP_UP:
        nudge(a, "temp", 1, 20);
        return true;
    case UI_ACT_TOP_P_DOWN:
        nudge(a, "top-p", -1, 100);
        return true;
    case UI_ACT_TOP_P_UP:
        nudge(a, "top-p", 1, 100);
        return true;
    case UI_ACT_PAGE_UP:
        ui_transcript_page(t, -1);
        return true;
    case UI_ACT_PAGE_DOWN:
        ui_transcript_page(t, 1);
        return true;
    case UI_ACT_LINE_UP:
        ui_transcript_scroll(t, -1);
        return true;
    case UI_ACT_LINE_DOWN:
        ui_transcript_scroll(t, 1);
        return true;
    case UI_ACT_TO_START:
        ui_transcript_to_start(t);
        return true;
    case UI_ACT_TO_END:
        ui_transcript_to_end(t);
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
    case UI_ACT_NONE:
    case UI_N_ACTIONS:
        break;
    }
    return false;
}

void app_on_key(struct app *a, const struct ui_key *key) {
    a->dirty = true;
    a->hint[0] = '\0';
    if (a->overlay != NULL && key->code != UI_KEY_PASTE) {
        overlay_key(a, key);
        return;
    }
    if (key->code == UI_KEY_PASTE) {
        ui_input_paste(key->text, key->n_text);
        if (key->truncated) {
            app_hint(a, true, "the paste was longer than %d MiB: the rest is missing",
                     UI_PASTE_MAX / 1024 / 1024);
        }
    } else {
        enum ui_action action = ui_keymap_find(key->code, key->mods);
        enum ui_input_result result = UI_INPUT_NONE;
        if (action == UI_ACT_NONE || !act(a, action, key)) {
            result = ui_input_key(key);
        }
        if (result == UI_INPUT_SEND) {
            on_sent(a);
        } else if (result == UI_INPUT_EDIT) {
            edit_draft(a);
        }
    }
    a->draft_serial++; /* an answer under way is about another text */
    a->draft_ask_s = ui_input_empty() ? -1 : cw_now() + APP_DRAFT_PAUSE_S;
    a->draft_known = a->draft_known && !ui_input_empty();
}
