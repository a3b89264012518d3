/* SPDX-License-Identifier: MIT
 *
 * What can be done to a reply while it is being written: settings for the very next token, presets,
 * pausing and stepping, ending its thinking.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app_impl.h"
#include "app/presets.h"
#include "ui/term.h"

const struct app_preset app_presets[] = {
    {"extract", "0", NULL, "Always the likeliest token: facts, code, extraction."},
    {"chat", "0.8", "0.95", "The usual settings of a chat."},
    {"creative", "1", "0.9", "Freer choices: stories and ideas."},
};
const size_t app_n_presets = sizeof app_presets / sizeof app_presets[0];

/* Live keys: a setting, which way, the steps in one unit of it, and where the key stops although
 * the setting could go further. */
static const struct nudge {
    enum ui_action action;
    const char *option;
    int steps;
    double per_unit, least;
} nudges[] = {
    {UI_ACT_TEMP_DOWN, "temp", -1, 20, 0},
    {UI_ACT_TEMP_UP, "temp", 1, 20, 0},
    {UI_ACT_TOP_P_DOWN, "top-p", -1, 100, 0},
    {UI_ACT_TOP_P_UP, "top-p", 1, 100, 0},
    {UI_ACT_TOP_K_DOWN, "top-k", -1, 0.2, 0},
    {UI_ACT_TOP_K_UP, "top-k", 1, 0.2, 0},
    {UI_ACT_MIN_P_DOWN, "min-p", -1, 100, 0},
    {UI_ACT_MIN_P_UP, "min-p", 1, 100, 0},
    {UI_ACT_REPEAT_DOWN, "repeat-penalty", -1, 20, 1},
    {UI_ACT_REPEAT_UP, "repeat-penalty", 1, 20, 1},
};

/* Move a setting by a step, on the grid of steps. */
static void nudge(struct app *a, const struct nudge *n) {
    const struct app_option *o = app_option_find(n->option);
    char *now = app_settings_get(a->settings, o);
    double value = 0;
    app_parse_double(now, &value); /* as it was printed just now */
    free(now);
    double at = value * n->per_unit;
    double point = floor(at + 0.5);
    bool on_grid = fabs(at - point) < 1e-3;
    double to = (on_grid ? point + n->steps : n->steps > 0 ? ceil(at) : floor(at)) / n->per_unit;
    double least = n->least > o->min ? n->least : o->min;
    to = to < least ? least : to > o->max ? o->max : to;
    char text[32];
    struct cw_err err = {0};
    snprintf(text, sizeof text, o->kind == APP_INT ? "%.0f" : "%.2f", to);
    if (app_settings_set(a->settings, o, text, APP_LIVE, &err) != CW_OK) {
        app_hint(a, true, "%s", err.text);
    } else if (strcmp(n->option, "temp") != 0 && strcmp(n->option, "top-p") != 0) {
        app_hint(a, false, "%s %s", n->option, text); /* the bottom line does not show it */
    }
    app_publish(a);
}

bool app_preset(struct app *a, const char *name) {
    for (size_t i = 0; i < app_n_presets; i++) {
        const struct app_preset *p = &app_presets[i];
        if (strcmp(p->name, name) == 0) {
            app_settings_set(a->settings, app_option_find("temp"), p->temp, APP_LIVE, NULL);
            if (p->top_p != NULL) {
                app_settings_set(a->settings, app_option_find("top-p"), p->top_p, APP_LIVE, NULL);
            }
            app_publish(a);
            app_hint(a, false, "preset %s: T %.2f, top-p %.2f", p->name,
                     (double)a->settings->sampling.temp, (double)a->settings->sampling.top_p);
            return true;
        }
    }
    return false;
}

static void toggle_pause(struct app *a) {
    if (a->phase != APP_RUNNING) {
        app_hint(a, false, "no reply is under way");
        return;
    }
    cw_generator_pause(a->generator, !cw_generator_paused(a->generator));
}

static void step(struct app *a) {
    if (a->phase != APP_RUNNING) {
        app_hint(a, false, "no reply is under way");
    } else if (!cw_generator_paused(a->generator)) {
        cw_generator_pause(a->generator, true);
    } else {
        cw_generator_step(a->generator);
        a->urgent = false; /* the token it lets through is what is to be shown */
    }
}

/* Of several replies each ends its own. */
static void answer_now(struct app *a) {
    size_t n = a->tree.n_several > 0 ? a->tree.n_several : 1;
    bool thinks = false, may = false;
    for (size_t r = 0; r < n && a->phase == APP_RUNNING && a->tree.job == APP_JOB_REPLY; r++) {
        const struct chat_message *m =
            a->tree.n_several > 0 ? a->tree.several[r] : chat_last(&a->chat);
        bool answers = m->done || m->text.len > 0;
        thinks = thinks || (!answers && m->reasoning.len > 0);
        may = may || !answers; /* nothing has come yet */
    }
    if (may) {
        cw_generator_answer_now(a->generator);
    }
    app_hint(a, false, "%s",
             thinks ? "the thinking ends here"
             : may  ? "if it begins to think, the answer begins at once"
                    : "the model is not thinking");
}

/* All thoughts alike, the other way round than the last one is. */
static void fold(struct app *a) {
    for (size_t i = a->chat.n; i-- > 0;) {
        uint32_t block = a->chat.messages[i]->thinking_block;
        if (block != 0) {
            ui_transcript_fold(a->transcript, 0, !ui_transcript_folded(a->transcript, block));
            return;
        }
    }
    app_hint(a, false, "there are no thoughts to fold");
}

static void toggle_mouse(struct app *a) {
    const struct app_option *o = app_option_find("mouse");
    app_settings_set(a->settings, o, a->settings->mouse ? "off" : "on", APP_LIVE, NULL);
    app_apply_settings(a, NULL);
    app_hint(a, false, "%s",
             a->settings->mouse ? "the wheel scrolls; the terminal selects while Shift is held"
                                : "the mouse is the terminal's");
}

bool app_act_live(struct app *a, enum ui_action action) {
    for (size_t i = 0; i < sizeof nudges / sizeof nudges[0]; i++) {
        if (nudges[i].action == action) {
            nudge(a, &nudges[i]);
            return true;
        }
    }
    switch (action) {
    case UI_ACT_PRESET_EXTRACT:
        return app_preset(a, "extract");
    case UI_ACT_PRESET_CHAT:
        return app_preset(a, "chat");
    case UI_ACT_PRESET_CREATIVE:
        return app_preset(a, "creative");
    case UI_ACT_PAUSE:
        toggle_pause(a);
        return true;
    case UI_ACT_STEP:
        step(a);
        return true;
    case UI_ACT_ANSWER_NOW:
        answer_now(a);
        return true;
    case UI_ACT_FOLD:
        fold(a);
        return true;
    case UI_ACT_MOUSE:
        toggle_mouse(a);
        return true;
    default:
        return false;
    }
}
