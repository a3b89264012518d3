/* SPDX-License-Identifier: MIT
 *
 * Searching the conversation: what is typed is looked for at once.
 */
#include <stdio.h>
#include <string.h>

#include "app/app_impl.h"

void app_search_start(struct app *a, int step) {
    app_enter(a, &app_mode_search);
    a->needle.cursor = a->needle.text.len;
    a->needle.fresh = a->needle.text.len > 0; /* the last one: typed over, or looked for again */
    ui_transcript_search(a->transcript, ui_lineedit_text(&a->needle));
}

static void search_close(struct app *a) {
    ui_transcript_search(a->transcript, NULL); /* the view stays where it is */
}

static bool search_key(struct app *a, const struct ui_key *key) {
    enum ui_action action =
        key->code == UI_KEY_PASTE ? UI_ACT_NONE : ui_keymap_find(key->code, key->mods);
    bool plain = key->mods == 0;
    if (action == UI_ACT_SEARCH ||
        (plain && (key->code == UI_KEY_ENTER || key->code == UI_KEY_DOWN))) {
        a->needle.fresh = false;
        ui_transcript_search_next(a->transcript, 1);
    } else if (action == UI_ACT_SEARCH_BACK || (plain && key->code == UI_KEY_UP)) {
        a->needle.fresh = false;
        ui_transcript_search_next(a->transcript, -1);
    } else if ((plain && key->code == UI_KEY_ESC) || action == UI_ACT_INTERRUPT) {
        app_enter(a, NULL);
    } else if (ui_lineedit_key(&a->needle, key)) {
        ui_transcript_search(a->transcript, ui_lineedit_text(&a->needle));
    } else {
        return false;
    }
    return true;
}

static void search_line(struct app *a, int row) {
    struct ui_screen *s = &a->screen;
    size_t current, hits;
    ui_transcript_search_at(a->transcript, &current, &hits);
    char count[64] = "";
    if (hits > 0) {
        snprintf(count, sizeof count, "%zu/%zu", current, hits);
    } else if (a->needle.text.len > 0) {
        snprintf(count, sizeof count, "none");
    }
    const char *prompt = s->cols >= 40 ? " search: " : s->cols >= 12 ? " / " : "/";
    int width = (int)strlen(count);
    int col = ui_screen_puts(s, row, 0, s->cols, prompt, UI_PROMPT);
    int limit = s->cols - width - 2 > col + 3 ? s->cols - width - 2 : s->cols;
    ui_lineedit_draw(&a->needle, s, row, col, limit);
    if (limit < s->cols) {
        ui_screen_puts(s, row, s->cols - width - 1, s->cols, count,
                       hits > 0 ? UI_STATUS_STATE : UI_ERROR);
    }
}

const struct app_mode app_mode_search = {
    .key = search_key, .close = search_close, .line = search_line};
