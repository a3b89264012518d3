/* SPDX-License-Identifier: MIT
 *
 * What a cell means (its role), and how each role looks in the theme that was chosen. Drawing code
 * names roles; only the terminal asks for colours. Every meaning is also carried by a letter, a
 * shape or a place, so that a theme without colours loses none.
 *
 * The themes are assets/themes/NAME.ini, which the program carries inside; a file of the same form
 * can be loaded from anywhere. Main thread.
 */
#ifndef UI_THEME_H
#define UI_THEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chinwag/err.h"

/* Names in theme files: theme.c. */
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
    UI_METER_MID,    /* the same when one should begin to think of it */
    UI_METER_HIGH,   /* and when little is left */
    UI_NEW_LINES,    /* "12 new lines" */
    UI_HELP_KEY,     /* a key or command in the help */
    UI_SELECTED,     /* the chosen line of a list */
    UI_SCROLLBAR,    /* the part of the conversation that is shown */
    UI_PICKED,       /* beside what would be copied */
    UI_HIT,          /* what was searched for */
    UI_HIT_CURRENT,  /* the hit the person is at */

    /* a token by its probability, the best first; then one of which it is not known */
    UI_PROB_0, /* 0.9 and more */
    UI_PROB_1, /* 0.6 */
    UI_PROB_2, /* 0.3 */
    UI_PROB_3, /* 0.1 */
    UI_PROB_4, /* 0.02 */
    UI_PROB_5, /* less */
    UI_PROB_NONE,

    /* Markdown */
    UI_HEADING_1,
    UI_HEADING, /* the further levels */
    UI_QUOTE,
    UI_RAW, /* not finished yet */
    UI_CODE_SPAN,
    UI_LINK,
    UI_URL,
    UI_IMAGE,
    UI_HTML,
    UI_LIST_MARK,
    UI_TASK_OPEN,
    UI_TASK_DONE,
    UI_BORDER, /* frames of code, lines of tables, bars of quotes */
    UI_TABLE_HEAD,

    /* code */
    UI_CODE_LANG,
    UI_CODE,
    UI_CODE_KEYWORD,
    UI_CODE_TYPE,
    UI_CODE_CONSTANT,
    UI_CODE_STRING,
    UI_CODE_NUMBER,
    UI_CODE_COMMENT,
    UI_CODE_FUNCTION,
    UI_CODE_VARIABLE,
    UI_CODE_PREPROC,
    UI_CODE_KEY,
    UI_CODE_TAG,
    UI_DIFF_ADD,
    UI_DIFF_DEL,
    UI_DIFF_HUNK,
    UI_N_ROLES
};

/* Attributes of a style, and of a cell on top of its style. */
enum {
    UI_BOLD = 1,
    UI_FAINT = 2,
    UI_ITALIC = 4,
    UI_UNDERLINE = 8,
    UI_REVERSE = 16,
    UI_STRIKE = 32, /* where the terminal has it */
};

/* How many colours the terminal has. UI_MONO, which NO_COLOR asks for: attributes only. */
enum ui_depth { UI_MONO, UI_COLORS_16, UI_COLORS_256, UI_COLORS_RGB };

struct ui_style {
    int32_t fg, bg; /* -1: the terminal's default; else a number of its palette, or, with
                     * UI_COLORS_RGB and from 16 on, 0xRRGGBB */
    uint8_t attrs;  /* UI_BOLD ... */
};

struct ui_style ui_theme_style(enum ui_role role, enum ui_depth depth);
/* The role of a token of probability p; p < 0: not known. */
enum ui_role ui_theme_prob(double p);

/* Take the theme of this name, or the file (a name with a '/' or ending in ".ini"), or with "auto"
 * the dark or the light one by the ground, where the terminal tells (COLORFGBG). On failure,
 * said with file and line, the theme stays as it was. */
int ui_theme_load(const char *name, struct cw_err *err);
const char *ui_theme_current(void); /* as it was asked for; "auto" before */
/* The i-th built-in theme's name, NULL past the last. */
const char *ui_theme_name(size_t i);
/* The name of a role in theme files. */
const char *ui_role_name(enum ui_role role);

#endif
