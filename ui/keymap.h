/* SPDX-License-Identifier: MIT
 *
 * The one table of our own keys: it runs them and makes the help. Everything that is not in it goes
 * to the input line, where readline's keys and ~/.inputrc hold.
 *
 * The table begins with the built-in keys; `[keys]` in config.ini gives an action other ones. There
 * is one keyboard in a process and so one table; main thread only.
 */
#ifndef UI_KEYMAP_H
#define UI_KEYMAP_H

#include "ui/key.h"

#include "chinwag/err.h"

enum ui_action {
    UI_ACT_NONE,
    UI_ACT_HELP,
    UI_ACT_PALETTE,
    UI_ACT_SEARCH,
    UI_ACT_SEARCH_BACK,
    UI_ACT_LENS,
    UI_ACT_TEMP_DOWN,
    UI_ACT_TEMP_UP,
    UI_ACT_TOP_P_DOWN,
    UI_ACT_TOP_P_UP,
    UI_ACT_TOP_K_DOWN,
    UI_ACT_TOP_K_UP,
    UI_ACT_MIN_P_DOWN,
    UI_ACT_MIN_P_UP,
    UI_ACT_REPEAT_DOWN,
    UI_ACT_REPEAT_UP,
    UI_ACT_PRESET_EXTRACT,
    UI_ACT_PRESET_CHAT,
    UI_ACT_PRESET_CREATIVE,
    UI_ACT_PAUSE,
    UI_ACT_STEP,
    UI_ACT_ANSWER_NOW,
    UI_ACT_FOLD,
    UI_ACT_PAGE_UP,
    UI_ACT_PAGE_DOWN,
    UI_ACT_LINE_UP,
    UI_ACT_LINE_DOWN,
    UI_ACT_WHEEL_UP,
    UI_ACT_WHEEL_DOWN,
    UI_ACT_TO_START,
    UI_ACT_TO_END,
    UI_ACT_PICK,
    UI_ACT_MOUSE,
    UI_ACT_BRANCH_BACK,
    UI_ACT_BRANCH_ON,
    UI_ACT_NEWLINE,
    UI_ACT_EDITOR,
    UI_ACT_STOP,      /* Esc: the reply, where readline has no use for the key */
    UI_ACT_INTERRUPT, /* Ctrl+C: the reply, else the line */
    UI_ACT_LEAVE,     /* Ctrl+D: on an empty line only */
    UI_ACT_SUSPEND,
    UI_ACT_REDRAW,
    UI_N_ACTIONS
};

struct ui_binding {
    uint32_t code;
    unsigned mods;
    enum ui_action action;
    int line; /* of the file that gave the key; 0: built in */
};

/* What a key does; UI_ACT_NONE: not ours. */
enum ui_action ui_keymap_find(uint32_t code, unsigned mods);

/* The i-th binding, NULL past the last; those of one action stand together. */
const struct ui_binding *ui_keymap_at(size_t i);
/* The keys of an action as the help shows them, "F5, Alt+Down"; "" when it has none. */
void ui_keymap_keys(enum ui_action action, char *out, size_t cap);

const char *ui_action_name(enum ui_action action); /* "temp-down" */
const char *ui_action_help(enum ui_action action); /* one sentence */
/* By name; UI_ACT_NONE when there is none. */
enum ui_action ui_action_find(const char *name);

/* Give an action these keys in place of all it had: names as ui_key_name prints them, separated by
 * commas; "" leaves it without. `line` > 0 is where that was asked for. CW_ENOENT: there is no such
 * action; CW_EINVAL: no such key, one that is a letter to be typed, or one that another line gave
 * away already. Nothing is changed then. */
int ui_keymap_bind(const char *action, const char *keys, int line, struct cw_err *err);
/* After the last bind: built-in keys that were given to another action leave the one they had, and
 * each is told, with the line that took it. */
void ui_keymap_settle(void (*told)(void *arg, int line, const char *what), void *arg);
void ui_keymap_reset(void); /* the built-in keys */

#endif
