/* SPDX-License-Identifier: MIT
 *
 * Commands that change and tell settings.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cmd.h"
#include "app/presets.h"

enum { MAX_WORD = 64, VALUE_WIDTH = 10 };

const struct app_option *cmd_find_option(struct cw_str word) {
    char name[MAX_WORD];
    snprintf(name, sizeof name, "%.*s", (int)word.len, word.data);
    const struct app_option *o = app_option_find(name);
    if (o == NULL && word.len + 2 < sizeof name) {
        snprintf(name, sizeof name, "--%.*s", (int)word.len, word.data);
        o = app_option_find(name); /* "temperature": the long spelling of a flag */
    }
    return o;
}

static void unknown_setting(struct app *a, struct cw_str word) {
    struct app_nearest near = {.word = word};
    for (size_t i = 0; i < app_n_options; i++) {
        app_nearest_try(&near, app_options[i].name);
    }
    cmd_unknown(a, "setting", "", &near, "/set");
}

/* ---- settings ------------------------------------------------------------------------------- */

/* As a line; `more` follows it. */
static void hint_setting(struct app *a, const struct app_option *o, const char *more) {
    char *value = app_settings_get(a->settings, o);
    app_hint(a, false, "%s %s (%s)%s%s", o->name, value[0] != '\0' ? value : "(none)",
             app_origin_name(app_settings_origin(a->settings, o)), more[0] != '\0' ? "  " : "",
             more);
    free(value);
}

void cmd_show_setting(struct app *a, const struct app_option *o) {
    hint_setting(a, o, o->help);
}

void cmd_setting_line(const struct app *a, struct ui_overlay *page, const struct app_option *o,
                      const char *value, const char *origin, const char *more) {
    int width = a->plain != NULL ? 0 : VALUE_WIDTH; /* columns are not read out well */
    cmd_line(page, o->name, "%-*s  (%s%s)", width, value[0] != '\0' ? value : "-", origin, more);
}

void cmd_page_settings(struct app *a) {
    struct ui_overlay *page = ui_overlay_create("Settings");
    for (const char *const *group = app_option_groups; *group != NULL; group++) {
        ui_overlay_heading(page, *group);
        for (size_t i = 0; i < app_n_options; i++) {
            if (strcmp(app_options[i].group, *group) == 0) {
                const struct app_option *o = &app_options[i];
                char *value = app_settings_get(a->settings, o);
                cmd_setting_line(a, page, o, value,
                                 app_origin_name(app_settings_origin(a->settings, o)),
                                 o->where & APP_ON_SET ? "" : ", only for the start");
                free(value);
            }
        }
        ui_overlay_line(page, "", "");
    }
    ui_overlay_line(page, "",
                    "/set NAME tells what a setting does, /set NAME VALUE changes it, /set NAME= "
                    "empties it. Those that are only for the start are options: --NAME VALUE.");
    app_show_page(a, page);
}

void cmd_set_option(struct app *a, const struct app_option *o, const char *value) {
    struct cw_err err = {0};
    if (!(o->where & APP_ON_SET)) {
        app_hint(a, true, "%s is decided before the model is loaded: start again with --%s",
                 o->name, o->name);
        return;
    }
    int rc = app_settings_set(a->settings, o, value, APP_LIVE, &err);
    if (rc == CW_OK) {
        app_publish(a);
        rc = app_apply_settings(a, &err);
    }
    bool unseen = strcmp(o->name, "system") == 0 && app_model_info(a) != NULL &&
                  !cw_generator_has_template(a->generator);
    if (rc == CW_OK) {
        hint_setting(a, o, unseen ? "a model without a chat template does not see it" : "");
    } else {
        app_hint(a, true, "%s", err.text);
    }
}

void cmd_run_set(struct app *a, const char *args) {
    struct cw_str name = cmd_take_word(&args);
    if (name.len == 0) {
        cmd_page_settings(a);
        return;
    }
    if (cw_str_eq(name, "parameter") && *args != '\0') {
        name = cmd_take_word(&args); /* as Ollama has it */
    }
    const char *equals = memchr(name.data, '=', name.len);
    if (equals != NULL) {
        args = equals + 1;
        name.len = (size_t)(equals - name.data);
    }
    if ((cw_str_eq(name, "think") || cw_str_eq(name, "nothink")) && *args == '\0') {
        cmd_set_option(a, app_option_find("think"), name.data[0] == 't' ? "on" : "off");
        return; /* as Ollama has it, too */
    }
    const struct app_option *o = cmd_find_option(name);
    if (o == NULL) {
        unknown_setting(a, name);
    } else if (*args == '\0' && equals == NULL) {
        cmd_show_setting(a, o);
    } else {
        size_t n = strlen(args);
        while (n > 0 && strchr(" \t\n", args[n - 1]) != NULL) {
            n--;
        }
        char *value = cw_strndup(args, n);
        cmd_set_option(a, o, value);
        free(value);
    }
}

void cmd_complete_set(const struct app *a, const char *line, size_t begin,
                      struct ui_candidates *out) {
    const char *rest = line;
    cmd_take_word(&rest); /* the command */
    struct cw_str name = cmd_take_word(&rest);
    if (begin <= (size_t)(name.data - line)) {
        for (size_t i = 0; i < app_n_options; i++) {
            if (app_options[i].where & APP_ON_SET) {
                ui_candidates_add(out, app_options[i].name);
            }
        }
        ui_candidates_add(out, "nothink");
        return;
    }
    const struct app_option *o = cmd_find_option(name);
    if (o == NULL) {
        return;
    }
    char *now = app_settings_get(a->settings, o);
    if (o->kind == APP_BOOL) {
        ui_candidates_add(out, "on");
        ui_candidates_add(out, "off");
    } else if (o->choices != NULL) {
        const char *choices = o->choices;
        for (struct cw_str choice; app_words_next(&choices, &choice);) {
            char word[MAX_WORD];
            snprintf(word, sizeof word, "%.*s", (int)choice.len, choice.data);
            ui_candidates_add(out, word);
        }
    } else if (now[0] != '\0') {
        ui_candidates_add(out, now); /* to be changed rather than typed anew */
    }
    free(now);
}

void cmd_run_system(struct app *a, const char *args) {
    const struct app_option *o = app_option_find("system");
    if (*args == '\0') {
        const char *now = a->settings->system;
        app_hint(a, false, "system prompt: %s", now && now[0] ? now : "(none)");
        return;
    }
    char *name = cmd_trimmed(args);
    bool persona = cmd_use_persona(a, name);
    free(name);
    if (!persona) {
        cmd_set_option(a, o, args);
    }
}

void cmd_run_preset(struct app *a, const char *args) {
    struct cw_str name = cmd_take_word(&args);
    char word[MAX_WORD];
    snprintf(word, sizeof word, "%.*s", (int)name.len, name.data);
    if (!app_preset(a, word)) {
        struct cw_buf names = {0};
        for (size_t i = 0; i < app_n_presets; i++) {
            cw_buf_printf(&names, "%s%s", i > 0 ? ", " : "", app_presets[i].name);
        }
        app_hint(a, true, "the presets are: %s", names.data);
        cw_buf_free(&names);
    }
}

void cmd_complete_preset(const struct app *a, const char *line, size_t begin,
                         struct ui_candidates *out) {
    for (size_t i = 0; i < app_n_presets; i++) {
        ui_candidates_add(out, app_presets[i].name);
    }
}
