/* SPDX-License-Identifier: MIT
 *
 * The panel of the token lens: one token of a reply, how likely it was, and what could have stood
 * in its place. Pure.
 */
#ifndef UI_LENS_H
#define UI_LENS_H

#include "ui/screen.h"

enum { UI_LENS_MOST = 8 };

struct ui_lens_choice {
    char text[48]; /* printable */
    double raw, p; /* before and after the samplers */
    bool chosen;   /* it is the token that stands there */
};

struct ui_lens {
    size_t token, n_tokens; /* its number, from 0 */
    char text[48];          /* printable */
    bool known;             /* the figures below; else only the text is */
    double raw, p;          /* as above */
    int rank;               /* 0: the most likely one */
    double entropy_bits;
    struct ui_lens_choice choices[UI_LENS_MOST]; /* most likely first */
    int n_choices;
    int selected; /* of the choices */
};

/* Rows the panel wants where `rows` can be given. */
int ui_lens_rows(const struct ui_lens *l, int rows);
void ui_lens_draw(const struct ui_lens *l, struct ui_screen *s, int row, int rows);

/* Text of a token in quotes for struct ui_lens: printable, a newline as \n. */
void ui_lens_text(char *dst, size_t cap, const char *text, size_t n);

#endif
