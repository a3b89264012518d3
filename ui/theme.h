/* SPDX-License-Identifier: MIT
 *
 * What a cell means (its role), and how each role looks. Drawing code names roles; only the
 * terminal asks for colours. Pure data.
 */
#ifndef UI_THEME_H
#define UI_THEME_H

#include <stdint.h>

enum ui_role {
    UI_TEXT,         /* a reply, the input */
    UI_TITLE,        /* the model's name on top */
    UI_RULE,         /* lines between the parts */
    UI_DIM,          /* what may be overlooked */
    UI_YOU,          /* heading of a message of the person */
    UI_REPLY,        /* heading of a reply */
    UI_YOUR_TEXT,    /* what the person wrote */
    UI_THINKING,     /* reasoning of the model */
    UI_NOTICE,       /* the program speaks */
    UI_ERROR,        /* the program speaks of a failure */
    UI_MARK,         /* stands for a character that is not drawn as it is */
    UI_CHANGE,       /* a setting that was changed, and where it took hold */
    UI_PROMPT,       /* in front of the input */
    UI_STATUS,       /* the bottom line */
    UI_STATUS_STATE, /* what is going on, in the bottom line */
    UI_METER,        /* the used part of the context */
    UI_METER_HIGH,   /* the same when little is left */
    UI_NEW_LINES,    /* "12 new lines" */
    UI_HELP_KEY,     /* a key or command in the help */
    UI_SELECTED,     /* the chosen line of a list */
    UI_N_ROLES
};

enum { UI_BOLD = 1, UI_FAINT = 2, UI_ITALIC = 4, UI_UNDERLINE = 8, UI_REVERSE = 16 };

/* How many colours the theme may use. */
enum ui_depth { UI_MONO, UI_COLORS_16, UI_COLORS_256 };

struct ui_style {
    int16_t fg, bg; /* colour number of the terminal's palette; -1: its default */
    uint8_t attrs;  /* UI_BOLD ... */
};

/* The style of a role. UI_MONO, which NO_COLOR asks for, has attributes only. */
struct ui_style ui_theme_style(enum ui_role role, enum ui_depth depth);

#endif
