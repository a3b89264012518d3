/* SPDX-License-Identifier: MIT
 *
 * Our keys. A terminal that cannot send one of a pair can send the other: some keep the function
 * keys for themselves, some Alt or Shift with the others. None of them is a key that readline binds
 * by itself, in emacs or in vi mode, but for Ctrl+C, Ctrl+D, Ctrl+G, Ctrl+J, Ctrl+L, Ctrl+Z and
 * Esc, whose meaning is the same or depends on the line.
 */
#include "ui/keymap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/mem.h"

enum { F1 = UI_KEY_F1, ALT_SHIFT = UI_ALT | UI_SHIFT };

static const struct ui_binding builtin[] = {
    {F1, 0, UI_ACT_HELP, 0},
    {F1 + 1, 0, UI_ACT_PALETTE, 0},
    {F1 + 2, 0, UI_ACT_SEARCH, 0},
    {F1 + 2, UI_SHIFT, UI_ACT_SEARCH_BACK, 0},
    {F1 + 3, 0, UI_ACT_LENS, 0},
    {F1 + 4, 0, UI_ACT_TEMP_DOWN, 0},
    {UI_KEY_DOWN, UI_ALT, UI_ACT_TEMP_DOWN, 0},
    {F1 + 5, 0, UI_ACT_TEMP_UP, 0},
    {UI_KEY_UP, UI_ALT, UI_ACT_TEMP_UP, 0},
    {F1 + 6, 0, UI_ACT_TOP_P_DOWN, 0},
    {UI_KEY_PGDN, UI_ALT, UI_ACT_TOP_P_DOWN, 0},
    {F1 + 7, 0, UI_ACT_TOP_P_UP, 0},
    {UI_KEY_PGUP, UI_ALT, UI_ACT_TOP_P_UP, 0},
    {F1 + 4, UI_SHIFT, UI_ACT_TOP_K_DOWN, 0},
    {UI_KEY_DOWN, ALT_SHIFT, UI_ACT_TOP_K_DOWN, 0},
    {F1 + 5, UI_SHIFT, UI_ACT_TOP_K_UP, 0},
    {UI_KEY_UP, ALT_SHIFT, UI_ACT_TOP_K_UP, 0},
    {F1 + 6, UI_SHIFT, UI_ACT_MIN_P_DOWN, 0},
    {UI_KEY_PGDN, ALT_SHIFT, UI_ACT_MIN_P_DOWN, 0},
    {F1 + 7, UI_SHIFT, UI_ACT_MIN_P_UP, 0},
    {UI_KEY_PGUP, ALT_SHIFT, UI_ACT_MIN_P_UP, 0},
    {F1 + 8, UI_SHIFT, UI_ACT_REPEAT_DOWN, 0},
    {UI_KEY_END, UI_ALT, UI_ACT_REPEAT_DOWN, 0},
    {F1 + 9, UI_SHIFT, UI_ACT_REPEAT_UP, 0},
    {UI_KEY_HOME, UI_ALT, UI_ACT_REPEAT_UP, 0},
    {F1, UI_SHIFT, UI_ACT_PRESET_EXTRACT, 0},
    {F1 + 1, UI_SHIFT, UI_ACT_PRESET_CHAT, 0},
    {F1 + 3, UI_SHIFT, UI_ACT_PRESET_CREATIVE, 0},
    {F1 + 8, 0, UI_ACT_PAUSE, 0},
    {UI_KEY_DOWN, UI_CTRL, UI_ACT_PAUSE, 0},
    {F1 + 9, 0, UI_ACT_STEP, 0},
    {UI_KEY_RIGHT, UI_SHIFT, UI_ACT_STEP, 0},
    {F1 + 11, 0, UI_ACT_ANSWER_NOW, 0},
    {UI_KEY_END, ALT_SHIFT, UI_ACT_ANSWER_NOW, 0},
    {F1 + 10, 0, UI_ACT_FOLD, 0},
    {UI_KEY_UP, UI_CTRL, UI_ACT_FOLD, 0},
    {UI_KEY_PGUP, 0, UI_ACT_PAGE_UP, 0},
    {UI_KEY_PGDN, 0, UI_ACT_PAGE_DOWN, 0},
    {UI_KEY_UP, UI_SHIFT, UI_ACT_LINE_UP, 0},
    {UI_KEY_DOWN, UI_SHIFT, UI_ACT_LINE_DOWN, 0},
    {UI_KEY_WHEEL_UP, 0, UI_ACT_WHEEL_UP, 0},
    {UI_KEY_WHEEL_DOWN, 0, UI_ACT_WHEEL_DOWN, 0},
    {UI_KEY_HOME, UI_CTRL, UI_ACT_TO_START, 0},
    {UI_KEY_END, UI_CTRL, UI_ACT_TO_END, 0},
    {UI_KEY_LEFT, UI_SHIFT, UI_ACT_PICK, 0},
    {UI_KEY_INSERT, UI_ALT, UI_ACT_PICK, 0},
    {F1 + 10, UI_SHIFT, UI_ACT_MOUSE, 0},
    {UI_KEY_DELETE, UI_ALT, UI_ACT_MOUSE, 0},
    {UI_KEY_LEFT, ALT_SHIFT, UI_ACT_BRANCH_BACK, 0},
    {UI_KEY_HOME, UI_SHIFT, UI_ACT_BRANCH_BACK, 0},
    {UI_KEY_RIGHT, ALT_SHIFT, UI_ACT_BRANCH_ON, 0},
    {UI_KEY_END, UI_SHIFT, UI_ACT_BRANCH_ON, 0},
    {'j', UI_CTRL, UI_ACT_NEWLINE, 0},
    {UI_KEY_ENTER, UI_ALT, UI_ACT_NEWLINE, 0},
    {UI_KEY_ENTER, UI_SHIFT, UI_ACT_NEWLINE, 0},
    {'g', UI_CTRL, UI_ACT_EDITOR, 0},
    {UI_KEY_ESC, 0, UI_ACT_STOP, 0},
    {'c', UI_CTRL, UI_ACT_INTERRUPT, 0},
    {'d', UI_CTRL, UI_ACT_LEAVE, 0},
    {'z', UI_CTRL, UI_ACT_SUSPEND, 0},
    {'l', UI_CTRL, UI_ACT_REDRAW, 0},
};

static const struct {
    const char *name, *help;
} actions[UI_N_ACTIONS] = {
    [UI_ACT_NONE] = {"none", ""},
    [UI_ACT_HELP] = {"help", "show this help, or close it"},
    [UI_ACT_PALETTE] = {"palette", "find a command, a setting or a preset, and run it"},
    [UI_ACT_SEARCH] = {"search", "search the conversation; again: the next place"},
    [UI_ACT_SEARCH_BACK] = {"search-back", "search; again: the place before"},
    [UI_ACT_LENS] = {"lens", "token lens: probabilities and alternatives"},
    [UI_ACT_TEMP_DOWN] = {"temp-down", "lower the temperature by 0.05, also in mid-reply"},
    [UI_ACT_TEMP_UP] = {"temp-up", "raise the temperature by 0.05"},
    [UI_ACT_TOP_P_DOWN] = {"top-p-down", "lower top-p by 0.01"},
    [UI_ACT_TOP_P_UP] = {"top-p-up", "raise top-p by 0.01"},
    [UI_ACT_TOP_K_DOWN] = {"top-k-down", "lower top-k by 5; from off (0) nothing is lower"},
    [UI_ACT_TOP_K_UP] = {"top-k-up", "raise top-k by 5; 0 is off"},
    [UI_ACT_MIN_P_DOWN] = {"min-p-down", "lower min-p by 0.01; 0 is off"},
    [UI_ACT_MIN_P_UP] = {"min-p-up", "raise min-p by 0.01"},
    [UI_ACT_REPEAT_DOWN] = {"repeat-down", "lower the repetition penalty by 0.05; 1 is off"},
    [UI_ACT_REPEAT_UP] = {"repeat-up", "raise the repetition penalty by 0.05"},
    [UI_ACT_PRESET_EXTRACT] = {"preset-extract", "preset: always the likeliest token"},
    [UI_ACT_PRESET_CHAT] = {"preset-chat", "preset: the usual settings of a chat"},
    [UI_ACT_PRESET_CREATIVE] = {"preset-creative", "preset: freer choices"},
    [UI_ACT_PAUSE] = {"pause", "pause the reply, or let it go on"},
    [UI_ACT_STEP] = {"step", "one more token (pauses a running reply)"},
    [UI_ACT_ANSWER_NOW] = {"answer-now", "end the model's thinking: the answer begins"},
    [UI_ACT_FOLD] = {"fold", "fold or unfold what the model thought"},
    [UI_ACT_PAGE_UP] = {"page-up", "scroll the conversation back by a page"},
    [UI_ACT_PAGE_DOWN] = {"page-down", "scroll on by a page; the end follows the reply"},
    [UI_ACT_LINE_UP] = {"line-up", "scroll back by a line"},
    [UI_ACT_LINE_DOWN] = {"line-down", "scroll on by a line"},
    [UI_ACT_WHEEL_UP] = {"wheel-up", "scroll back by three lines (mouse captured)"},
    [UI_ACT_WHEEL_DOWN] = {"wheel-down", "scroll on by three lines"},
    [UI_ACT_TO_START] = {"to-start", "go to the start of the conversation"},
    [UI_ACT_TO_END] = {"to-end", "go to its end"},
    [UI_ACT_PICK] = {"pick", "pick a message or a code block and copy it"},
    [UI_ACT_MOUSE] = {"mouse", "capture the mouse, or give it back to the terminal"},
    [UI_ACT_BRANCH_BACK] = {"branch-back", "go to the branch before"},
    [UI_ACT_BRANCH_ON] = {"branch-on", "go to the next branch"},
    [UI_ACT_NEWLINE] = {"newline", "begin a new line of the message (Enter sends it)"},
    [UI_ACT_EDITOR] = {"editor", "write it in $VISUAL or $EDITOR (Ctrl+X Ctrl+E, too)"},
    [UI_ACT_STOP] = {"stop", "stop the reply, keep what came (vi: command mode)"},
    [UI_ACT_INTERRUPT] = {"interrupt", "stop the reply; without one, clear the input line"},
    [UI_ACT_LEAVE] = {"leave", "leave, on an empty line"},
    [UI_ACT_SUSPEND] = {"suspend", "back to the shell for a while; fg returns"},
    [UI_ACT_REDRAW] = {"redraw", "draw the screen anew"},
};

enum { N_BUILTIN = sizeof builtin / sizeof builtin[0], MAX_KEYS_OF_ONE = 8 };

static struct ui_binding *table; /* sorted by action; NULL: not changed yet */
static size_t n_table;

static const struct ui_binding *bindings(size_t *n) {
    *n = table ? n_table : (size_t)N_BUILTIN;
    return table ? table : builtin;
}

enum ui_action ui_keymap_find(uint32_t code, unsigned mods) {
    size_t n;
    const struct ui_binding *b = bindings(&n);
    for (size_t i = 0; i < n; i++) {
        if (b[i].code == code && b[i].mods == mods) {
            return b[i].action;
        }
    }
    return UI_ACT_NONE;
}

const struct ui_binding *ui_keymap_at(size_t i) {
    size_t n;
    const struct ui_binding *b = bindings(&n);
    return i < n ? &b[i] : NULL;
}

void ui_keymap_keys(enum ui_action action, char *out, size_t cap) {
    size_t n, at = 0;
    const struct ui_binding *b = bindings(&n);
    out[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        char name[32];
        ui_key_name(b[i].code, b[i].mods, name, sizeof name);
        if (b[i].action == action && at + strlen(name) + 3 < cap) {
            at += (size_t)snprintf(out + at, cap - at, "%s%s", at > 0 ? ", " : "", name);
        }
    }
}

const char *ui_action_name(enum ui_action action) {
    return actions[action].name;
}

const char *ui_action_help(enum ui_action action) {
    return actions[action].help;
}

enum ui_action ui_action_find(const char *name) {
    for (int i = UI_ACT_NONE + 1; i < UI_N_ACTIONS; i++) {
        if (strcmp(actions[i].name, name) == 0) {
            return (enum ui_action)i;
        }
    }
    return UI_ACT_NONE;
}

/* ---- other keys ----------------------------------------------------------------------------- */

static void own_table(void) {
    if (table == NULL) {
        table = cw_reallocarray(NULL, N_BUILTIN, sizeof *table);
        memcpy(table, builtin, sizeof builtin);
        n_table = N_BUILTIN;
    }
}

void ui_keymap_reset(void) {
    free(table);
    table = NULL;
    n_table = 0;
}

/* The length of the first key name in s: up to a comma that is not itself the key ("Ctrl+,"). */
static size_t name_length(const char *s) {
    size_t n = strcspn(s, ",");
    return s[n] == ',' && n > 0 && s[n - 1] == '+' ? n + 1 : n;
}

static int parse_key(const char *s, size_t n, enum ui_action action, struct ui_binding *out,
                     struct cw_err *err) {
    if (!ui_key_parse(s, n, &out->code, &out->mods)) {
        return cw_fail(err, CW_EINVAL, "'%.*s' is no key (\"Ctrl+T\", \"Alt+Down\", \"F5\")",
                       (int)n, s);
    }
    bool types = out->code < UI_KEY_NONE && (out->mods & (UI_CTRL | UI_ALT)) == 0;
    bool edits = out->mods == 0 && (out->code == UI_KEY_ENTER || out->code == UI_KEY_BACKSPACE);
    if (types || edits) {
        return cw_fail(err, CW_EINVAL, "'%.*s' is needed for writing", (int)n, s);
    }
    size_t n_all;
    const struct ui_binding *all = bindings(&n_all);
    for (size_t i = 0; i < n_all; i++) {
        if (all[i].line > 0 && all[i].action != action && all[i].code == out->code &&
            all[i].mods == out->mods) {
            return cw_fail(err, CW_EINVAL, "'%.*s' is given to '%s' in line %d", (int)n, s,
                           actions[all[i].action].name, all[i].line);
        }
    }
    out->action = action;
    return CW_OK;
}

int ui_keymap_bind(const char *action, const char *keys, int line, struct cw_err *err) {
    struct ui_binding fresh[MAX_KEYS_OF_ONE];
    size_t n_fresh = 0;
    enum ui_action what = ui_action_find(action);
    if (what == UI_ACT_NONE) {
        return cw_fail(err, CW_ENOENT, "there is no action '%s'", action);
    }
    for (const char *s = keys; *s != '\0';) {
        size_t skip = strspn(s, " \t,"); /* a comma alone separates nothing */
        s += skip;
        size_t n = name_length(s);
        size_t end = n;
        while (end > 0 && (s[end - 1] == ' ' || s[end - 1] == '\t')) {
            end--;
        }
        if (end > 0) {
            if (n_fresh == MAX_KEYS_OF_ONE) {
                return cw_fail(err, CW_EINVAL, "at most %d keys for one action", MAX_KEYS_OF_ONE);
            }
            int code = parse_key(s, end, what, &fresh[n_fresh], err);
            if (code != CW_OK) {
                return code;
            }
            fresh[n_fresh++].line = line;
        }
        s += n;
    }
    own_table();
    size_t kept = 0, place = 0;
    for (size_t i = 0; i < n_table; i++) {
        if (table[i].action != what) {
            place = table[i].action < what ? kept + 1 : place;
            table[kept++] = table[i];
        }
    }
    table = cw_reallocarray(table, kept + n_fresh + 1, sizeof *table);
    memmove(table + place + n_fresh, table + place, (kept - place) * sizeof *table);
    memcpy(table + place, fresh, n_fresh * sizeof *table);
    n_table = kept + n_fresh;
    return CW_OK;
}

void ui_keymap_settle(void (*told)(void *arg, int line, const char *what), void *arg) {
    size_t kept = 0;
    for (size_t i = 0; i < n_table; i++) {
        int taken = 0;
        for (size_t k = 0; k < n_table && table[i].line == 0; k++) {
            if (table[k].line > 0 && table[k].code == table[i].code &&
                table[k].mods == table[i].mods) {
                taken = table[k].line;
            }
        }
        if (taken == 0) {
            table[kept++] = table[i];
            continue;
        }
        char key[32], text[128];
        ui_key_name(table[i].code, table[i].mods, key, sizeof key);
        snprintf(text, sizeof text, "%s is taken from '%s'", key, actions[table[i].action].name);
        if (told != NULL) {
            told(arg, taken, text);
        }
    }
    n_table = kept;
}
