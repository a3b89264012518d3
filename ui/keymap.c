/* SPDX-License-Identifier: MIT
 *
 * Our keys. A terminal that cannot send one of a pair can send the other: some keep the function
 * keys for themselves, some Alt with the arrows.
 */
#include "ui/keymap.h"

static const struct ui_binding bindings[] = {
    {UI_KEY_F1, 0, UI_ACT_HELP},
    {UI_KEY_F1 + 4, 0, UI_ACT_TEMP_DOWN},
    {UI_KEY_DOWN, UI_ALT, UI_ACT_TEMP_DOWN},
    {UI_KEY_F1 + 5, 0, UI_ACT_TEMP_UP},
    {UI_KEY_UP, UI_ALT, UI_ACT_TEMP_UP},
    {UI_KEY_F1 + 6, 0, UI_ACT_TOP_P_DOWN},
    {UI_KEY_PGDN, UI_ALT, UI_ACT_TOP_P_DOWN},
    {UI_KEY_F1 + 7, 0, UI_ACT_TOP_P_UP},
    {UI_KEY_PGUP, UI_ALT, UI_ACT_TOP_P_UP},
    {UI_KEY_PGUP, 0, UI_ACT_PAGE_UP},
    {UI_KEY_PGDN, 0, UI_ACT_PAGE_DOWN},
    {UI_KEY_UP, UI_SHIFT, UI_ACT_LINE_UP},
    {UI_KEY_DOWN, UI_SHIFT, UI_ACT_LINE_DOWN},
    {UI_KEY_HOME, UI_CTRL, UI_ACT_TO_START},
    {UI_KEY_END, UI_CTRL, UI_ACT_TO_END},
    {'j', UI_CTRL, UI_ACT_NEWLINE},
    {UI_KEY_ENTER, UI_ALT, UI_ACT_NEWLINE},
    {UI_KEY_ENTER, UI_SHIFT, UI_ACT_NEWLINE},
    {'g', UI_CTRL, UI_ACT_EDITOR},
    {UI_KEY_ESC, 0, UI_ACT_STOP},
    {'c', UI_CTRL, UI_ACT_INTERRUPT},
    {'d', UI_CTRL, UI_ACT_LEAVE},
    {'z', UI_CTRL, UI_ACT_SUSPEND},
    {'l', UI_CTRL, UI_ACT_REDRAW},
};

static const struct {
    const char *name, *help;
} actions[UI_N_ACTIONS] = {
    [UI_ACT_NONE] = {"none", ""},
    [UI_ACT_HELP] = {"help", "show this help, or close it"},
    [UI_ACT_TEMP_DOWN] = {"temp-down", "lower the temperature by 0.05, for the very next token"},
    [UI_ACT_TEMP_UP] = {"temp-up", "raise the temperature by 0.05, for the very next token"},
    [UI_ACT_TOP_P_DOWN] = {"top-p-down", "lower top-p by 0.01, for the very next token"},
    [UI_ACT_TOP_P_UP] = {"top-p-up", "raise top-p by 0.01, for the very next token"},
    [UI_ACT_PAGE_UP] = {"page-up", "scroll the conversation back by a page"},
    [UI_ACT_PAGE_DOWN] = {"page-down",
                          "scroll on by a page; at the end the view follows the reply"},
    [UI_ACT_LINE_UP] = {"line-up", "scroll back by a line"},
    [UI_ACT_LINE_DOWN] = {"line-down", "scroll on by a line"},
    [UI_ACT_TO_START] = {"to-start", "go to the start of the conversation"},
    [UI_ACT_TO_END] = {"to-end", "go to its end"},
    [UI_ACT_NEWLINE] = {"newline", "begin a new line of the message (Enter sends it)"},
    [UI_ACT_EDITOR] = {"editor", "write the message in $VISUAL or $EDITOR (also Ctrl+X Ctrl+E)"},
    [UI_ACT_STOP] = {"stop", "stop the reply and keep what came (in vi mode: from command mode)"},
    [UI_ACT_INTERRUPT] = {"interrupt", "stop the reply; without one, clear the input line"},
    [UI_ACT_LEAVE] = {"leave", "leave, on an empty line"},
    [UI_ACT_SUSPEND] = {"suspend", "back to the shell for a while; fg returns"},
    [UI_ACT_REDRAW] = {"redraw", "draw the screen anew"},
};

enum ui_action ui_keymap_find(uint32_t code, unsigned mods) {
    for (size_t i = 0; i < sizeof bindings / sizeof bindings[0]; i++) {
        if (bindings[i].code == code && bindings[i].mods == mods) {
            return bindings[i].action;
        }
    }
    return UI_ACT_NONE;
}

const struct ui_binding *ui_keymap_at(size_t i) {
    return i < sizeof bindings / sizeof bindings[0] ? &bindings[i] : NULL;
}

const char *ui_action_name(enum ui_action action) {
    return actions[action].name;
}

const char *ui_action_help(enum ui_action action) {
    return actions[action].help;
}
