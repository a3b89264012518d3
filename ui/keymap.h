/* SPDX-License-Identifier: MIT
 *
 * The one table of our own keys: it runs them and makes the help. Everything that is not in it goes
 * to the input line, where readline's keys and ~/.inputrc hold. Constant data.
 */
#ifndef UI_KEYMAP_H
#define UI_KEYMAP_H

#include "ui/key.h"

enum ui_action {
    UI_ACT_NONE,
    UI_ACT_HELP,
    UI_ACT_TEMP_DOWN,
    UI_ACT_TEMP_UP,
    UI_ACT_TOP_P_DOWN,
    UI_ACT_TOP_P_UP,
    UI_ACT_PAGE_UP,
    UI_ACT_PAGE_DOWN,
    UI_ACT_LINE_UP,
    UI_ACT_LINE_DOWN,
    UI_ACT_TO_START,
    UI_ACT_TO_END,
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
};

/* What a key does; UI_ACT_NONE: not ours. */
enum ui_action ui_keymap_find(uint32_t code, unsigned mods);

/* The i-th binding, NULL past the last; those of one action stand together. */
const struct ui_binding *ui_keymap_at(size_t i);

const char *ui_action_name(enum ui_action action); /* "temp-down" */
const char *ui_action_help(enum ui_action action); /* one sentence */

#endif
