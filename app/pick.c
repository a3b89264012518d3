/* SPDX-License-Identifier: MIT
 *
 * Picking a message or a code block from the keyboard, and taking it to the clipboard.
 */
#include <stdio.h>
#include <string.h>

#include "app/app_impl.h"
#include "app/commands.h"
#include "ui/term.h"

void app_copy(struct app *a, const char *text, size_t n, const char *what) {
    if (n == 0) {
        app_hint(a, true, "there is nothing to copy");
    } else if (ui_term_copy(text, n)) {
        app_hint(a, false, "copied %s: %zu byte%s", what, n, n == 1 ? "" : "s");
    } else {
        app_hint(a, true, "the terminal does not take %zu kB%s", (n + 999) / 1000,
                 app_command_find("save", 4) != NULL ? ": /save FILE writes them to a file" : "");
    }
}

void app_pick_start(struct app *a) {
    app_enter(a, &app_mode_pick);
    if (!ui_transcript_pick(a->transcript, UI_PICK_MESSAGE, -1)) {
        app_enter(a, NULL);
        app_hint(a, false, "there is nothing to pick yet");
    }
}

static void pick_close(struct app *a) {
    ui_transcript_unpick(a->transcript);
}

static void take(struct app *a) {
    struct cw_buf text = {0};
    bool code = ui_transcript_picked(a->transcript) == UI_PICK_CODE;
    ui_transcript_picked_text(a->transcript, &text);
    app_enter(a, NULL);
    app_copy(a, text.data, text.len, code ? "the code block" : "the message");
    cw_buf_free(&text);
}

static bool pick_key(struct app *a, const struct ui_key *key) {
    static const struct {
        uint32_t code;
        enum ui_pick kind;
        int step;
    } moves[] = {
        {UI_KEY_UP, UI_PICK_MESSAGE, -1},  {'k', UI_PICK_MESSAGE, -1},
        {UI_KEY_DOWN, UI_PICK_MESSAGE, 1}, {'j', UI_PICK_MESSAGE, 1},
        {UI_KEY_LEFT, UI_PICK_CODE, -1},   {'c', UI_PICK_CODE, -1},
        {UI_KEY_RIGHT, UI_PICK_CODE, 1},
    };
    bool plain = key->mods == 0;
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        if (plain && key->code == moves[i].code) {
            if (!ui_transcript_pick(a->transcript, moves[i].kind, moves[i].step)) {
                app_hint(a, false, "there is no further %s",
                         moves[i].kind == UI_PICK_CODE ? "code block" : "message");
            }
            return true;
        }
    }
    enum ui_action action = ui_keymap_find(key->code, key->mods);
    if (plain && (key->code == UI_KEY_ENTER || key->code == 'y')) {
        take(a);
    } else if ((plain && (key->code == UI_KEY_ESC || key->code == 'q')) ||
               action == UI_ACT_INTERRUPT || action == UI_ACT_PICK) {
        app_enter(a, NULL);
    } else {
        return false;
    }
    return true;
}

static void pick_line(struct app *a, int row) {
    static const char *const texts[] = {
        "pick: Up, Down a message; Left, Right a code block; Enter copies, Esc leaves",
        "Up Down message, Left Right code, Enter copies", "Enter copies, Esc leaves",
        "Enter copies"};
    app_draw_keys(a, row, texts, sizeof texts / sizeof texts[0]);
}

const struct app_mode app_mode_pick = {.key = pick_key, .close = pick_close, .line = pick_line};
