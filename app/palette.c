/* SPDX-License-Identifier: MIT
 *
 * The palette: everything that can be done, from the tables that do it. Enter runs what needs no
 * more words; the rest is put into the input line to be completed there.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app_impl.h"
#include "app/commands.h"
#include "app/presets.h"
#include "app/words.h"

enum { KIND_RUN, KIND_FILL, KIND_ACTION };

static void add_commands(struct ui_palette *p) {
    for (size_t i = 0; app_command_at(i) != NULL; i++) {
        const struct app_command *c = app_command_at(i);
        char label[96], action[80];
        int n = (int)strcspn(c->names, " ");
        snprintf(label, sizeof label, "/%.*s%s%s", n, c->names, c->args[0] ? " " : "", c->args);
        bool runs = c->args[0] == '\0';
        snprintf(action, sizeof action, "/%.*s%s", n, c->names, runs ? "" : " ");
        ui_palette_add(p, runs ? KIND_RUN : KIND_FILL, label, c->help, action);
    }
}

static void add_presets(struct ui_palette *p) {
    for (size_t i = 0; i < app_n_presets; i++) {
        char label[64], action[64];
        snprintf(label, sizeof label, "preset %s", app_presets[i].name);
        snprintf(action, sizeof action, "/preset %s", app_presets[i].name);
        ui_palette_add(p, KIND_RUN, label, app_presets[i].help, action);
    }
}

/* A setting of few values is an item for each other value; else one that asks for it. */
static void add_setting(struct app *a, struct ui_palette *p, const struct app_option *o) {
    const char *choices = o->kind == APP_BOOL ? "on off" : o->choices;
    char *now = app_settings_get(a->settings, o);
    char label[192], action[200];
    if (o->kind != APP_BOOL && o->kind != APP_CHOICE) {
        snprintf(label, sizeof label, "set %s = %.40s", o->name, now);
        snprintf(action, sizeof action, "/set %s ", o->name);
        ui_palette_add(p, KIND_FILL, label, o->help, action);
        choices = "";
    }
    for (struct cw_str choice; app_words_next(&choices, &choice);) {
        if (!cw_str_eq(choice, now)) {
            snprintf(label, sizeof label, "set %s %.*s", o->name, (int)choice.len, choice.data);
            snprintf(action, sizeof action, "/%s", label);
            ui_palette_add(p, KIND_RUN, label, o->help, action);
        }
    }
    free(now);
}

static void add_keys(struct ui_palette *p) {
    for (int i = UI_ACT_NONE + 1; i < UI_N_ACTIONS; i++) {
        char keys[128], label[192];
        ui_keymap_keys((enum ui_action)i, keys, sizeof keys);
        snprintf(label, sizeof label, "%s%s%s", ui_action_name((enum ui_action)i),
                 keys[0] ? "  " : "", keys);
        ui_palette_add(p, KIND_ACTION, label, ui_action_help((enum ui_action)i),
                       ui_action_name((enum ui_action)i));
    }
}

void app_open_palette(struct app *a) {
    struct ui_palette *p = ui_palette_create("Palette");
    add_commands(p);
    add_presets(p);
    for (size_t i = 0; i < app_n_options; i++) {
        if (app_options[i].where & APP_ON_SET) {
            add_setting(a, p, &app_options[i]);
        }
    }
    add_keys(p);
    app_enter(a, NULL);
    a->palette = p;
    app_enter(a, &app_mode_palette);
    app_persist_ask(a, APP_LIST_PALETTE, "");
}

void app_palette_conversation(struct app *a, const char *title, const char *detail,
                              const char *name) {
    struct cw_buf action = {0};
    cw_buf_printf(&action, "/load %s", name);
    ui_palette_add_found(a->palette, KIND_RUN, title, detail, action.data);
    cw_buf_free(&action);
}

static void palette_close(struct app *a) {
    ui_palette_destroy(a->palette);
    a->palette = NULL;
}

static void choose(struct app *a) {
    const struct ui_palette_item *item = ui_palette_selected(a->palette);
    if (item == NULL) {
        return;
    }
    char *action = cw_strdup(item->action);
    int kind = item->kind;
    app_enter(a, NULL);
    if (kind == KIND_RUN) {
        app_command_run(a, action);
    } else if (kind == KIND_FILL) {
        if (ui_input_empty()) {
            ui_input_set(action);
            app_draft_changed(a);
        } else {
            app_hint(a, true, "the input line is not empty: %s", action);
        }
    } else {
        struct ui_key none = {.code = UI_KEY_NONE};
        if (!app_act(a, ui_action_find(action), &none)) {
            app_hint(a, false, "'%s' has nothing to do now", action);
        }
    }
    free(action);
}

static bool palette_key(struct app *a, const struct ui_key *key) {
    bool plain = key->mods == 0;
    enum ui_action action =
        key->code == UI_KEY_PASTE ? UI_ACT_NONE : ui_keymap_find(key->code, key->mods);
    if (plain && key->code == UI_KEY_ENTER) {
        choose(a);
    } else if ((plain && key->code == UI_KEY_ESC) || action == UI_ACT_INTERRUPT ||
               action == UI_ACT_PALETTE) {
        app_enter(a, NULL);
    } else {
        bool taken = ui_palette_key(a->palette, key);
        if (ui_palette_changed(a->palette)) {
            app_persist_ask(a, APP_LIST_PALETTE, ui_palette_needle(a->palette));
        }
        return taken;
    }
    return true;
}

static int palette_rows(struct app *a, int rows) {
    return rows;
}

static void palette_draw(struct app *a, int row, int rows) {
    ui_palette_draw(a->palette, &a->screen, row, rows);
}

static void palette_line(struct app *a, int row) {
    ui_palette_draw_line(a->palette, &a->screen, row);
}

const struct app_mode app_mode_palette = {.key = palette_key,
                                          .close = palette_close,
                                          .rows = palette_rows,
                                          .draw = palette_draw,
                                          .line = palette_line};
