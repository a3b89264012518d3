/* SPDX-License-Identifier: MIT
 *
 * Commands that move in the conversation's tree, that draw again, and those of personas and
 * prompts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/cmd.h"
#include "app/personas.h"

/* The number of a message as the headings show it, or `otherwise` when there is no argument.
 * SIZE_MAX, with a hint, when there is no such message. *rest is what stands behind. */
static size_t take_number(struct app *a, const char *args, size_t otherwise, const char **rest) {
    *rest = args;
    struct cw_str word = cmd_take_word(rest);
    char text[24];
    int64_t n;
    if (a->chat.n == 0) {
        app_hint(a, true, "there is no message yet");
        return SIZE_MAX;
    }
    if (word.len == 0) {
        return otherwise;
    }
    if (word.len < sizeof text) {
        memcpy(text, word.data, word.len);
        text[word.len] = '\0';
        if (app_parse_int64(text, &n) && n >= 1 && (uint64_t)n <= a->chat.n) {
            return (size_t)n - 1;
        }
    }
    app_hint(a, true, "which message? Their numbers stand beside the headings, 1 to %zu",
             a->chat.n);
    return SIZE_MAX;
}

void cmd_run_regen(struct app *a, const char *args) {
    struct cw_str word = cmd_take_word(&args);
    size_t n = word.len == 1 && word.data[0] >= '1' ? (size_t)(word.data[0] - '0') : 0;
    if (n > 1 && a->plain != NULL) {
        app_hint(a, true, "several replies side by side need the screen: /regen gives one more");
        return;
    }
    if (word.len > 0 && (n < 1 || n > CW_MAX_REPLIES || *args != '\0')) {
        app_hint(a, true, "/regen N gives 1 to %d replies at once", CW_MAX_REPLIES);
        return;
    }
    app_regenerate_several(a, n > 0 ? n : 1);
}

void cmd_run_continue(struct app *a, const char *args) {
    app_continue(a);
}

void cmd_run_undo(struct app *a, const char *args) {
    app_undo(a);
}

void cmd_run_redo(struct app *a, const char *args) {
    app_redo(a);
}

void cmd_run_edit(struct app *a, const char *args) {
    const char *text;
    size_t question = a->chat.n;
    while (question > 0 && a->chat.messages[question - 1]->role != CHAT_USER) {
        question--;
    }
    size_t i = take_number(a, args, question - 1, &text);
    if (i != SIZE_MAX) {
        app_edit(a, i, *text != '\0' ? text : NULL);
    }
}

void cmd_run_fork(struct app *a, const char *args) {
    app_fork(a);
}

void cmd_run_tree(struct app *a, const char *args) {
    struct cw_str word = cmd_take_word(&args);
    char text[24];
    int64_t n;
    if (word.len == 0) {
        app_show_tree(a);
        return;
    }
    snprintf(text, sizeof text, "%.*s", (int)word.len, word.data);
    if (!app_parse_int64(text, &n) || n < 1 || (uint64_t)n > a->chat.n_all) {
        app_hint(a, true, "/tree shows the numbers of the messages");
    } else {
        app_go_to(a, a->chat.all[n - 1]);
    }
}

void cmd_run_restore(struct app *a, const char *args) {
    app_restore(a);
}

/* The last reply, or the numbered message. */
static size_t message_or_last(struct app *a, const char *args) {
    const char *rest;
    return take_number(a, args, a->chat.n > 0 ? a->chat.n - 1 : 0, &rest);
}

void cmd_run_replay(struct app *a, const char *args) {
    size_t i = message_or_last(a, args);
    if (i != SIZE_MAX) {
        app_replay(a, i);
    }
}

void cmd_run_why(struct app *a, const char *args) {
    size_t i = message_or_last(a, args);
    if (i != SIZE_MAX) {
        app_why(a, i);
    }
}

/* ---- personas and prompts ------------------------------------------------------------------- */

static void add_name(void *arg, const char *name) {
    ui_overlay_line(arg, name, "");
}

static void add_candidate(void *arg, const char *name) {
    ui_candidates_add(arg, name);
}

static void page_of(struct app *a, enum app_named kind, const char *title, const char *where) {
    struct ui_overlay *page = ui_overlay_create(title);
    app_named_list(a->paths, kind, add_name, page);
    ui_overlay_line(page, "", "");
    ui_overlay_line(page, "", where);
    app_show_page(a, page);
}

bool cmd_use_persona(struct app *a, const char *name) {
    struct cw_err err = {0};
    size_t fixed;
    char *path = app_named_path(a->paths, APP_PERSONA, name);
    int rc = path == NULL ? CW_ENOENT
                          : app_persona_apply(a->settings, a->paths, name, APP_LIVE, &fixed, &err);
    free(path);
    if (rc == CW_ENOENT) {
        return false;
    }
    app_publish(a);
    if (rc == CW_OK) {
        rc = app_apply_settings(a, &err);
    }
    if (rc == CW_OK) { /* it is kept with the conversation */
        app_settings_set(a->settings, app_option_find("persona"), name, APP_LIVE, NULL);
        app_persist_changed(a);
    }
    if (rc != CW_OK) {
        app_hint(a, true, "%s", err.text);
    } else if (fixed > 0) {
        app_hint(a, false, "persona %s; %zu of its settings need a new start: --persona %s", name,
                 fixed, name);
    } else {
        app_hint(a, false, "persona %s", name);
    }
    return true;
}

void cmd_run_persona(struct app *a, const char *args) {
    char *name = cmd_trimmed(args);
    if (name[0] == '\0') {
        page_of(a, APP_PERSONA, "Personas",
                "Each is a file personas/NAME.ini in the config folder, with lines such as "
                "`system = You answer in verse.` and `temp = 1.0`. /system NAME takes one.");
    } else if (!cmd_use_persona(a, name)) {
        app_hint(a, true, "there is no persona of that name: /persona lists them");
    }
    free(name);
}

void cmd_complete_persona(const struct app *a, const char *line, size_t begin,
                          struct ui_candidates *out) {
    app_named_list(a->paths, APP_PERSONA, add_candidate, out);
}

void cmd_run_prompt(struct app *a, const char *args) {
    struct cw_str word = cmd_take_word(&args);
    if (word.len == 0) {
        page_of(a, APP_PROMPT, "Prompts",
                "Each is a file prompts/NAME.txt in the config folder, a text in which {word} "
                "stands for what /prompt NAME word=... gives.");
        return;
    }
    struct cw_err err = {0};
    char *name = cw_strndup(word.data, word.len);
    char *text;
    size_t missing;
    if (app_prompt_fill(a->paths, name, args, &text, &missing, &err) != CW_OK) {
        app_hint(a, true, "%s", err.text);
    } else {
        ui_input_clear();
        ui_input_paste(text, strlen(text));
        free(text);
        if (missing > 0) {
            app_hint(a, false, "%zu placeholder%s still to be filled", missing,
                     missing == 1 ? " is" : "s are");
        }
    }
    free(name);
}

void cmd_complete_prompt(const struct app *a, const char *line, size_t begin,
                         struct ui_candidates *out) {
    const char *rest = line;
    cmd_take_word(&rest);
    if (begin <= (size_t)(rest - line)) {
        app_named_list(a->paths, APP_PROMPT, add_candidate, out);
    }
}
