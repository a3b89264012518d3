/* SPDX-License-Identifier: MIT
 *
 * From one screen to the next in few bytes. Pure: it knows what stands on the terminal, is given
 * the grid that is wanted, and appends what makes the one of the other. How this terminal is told
 * to do something is its caller's knowledge.
 *
 * What goes out is what changed and little more: a part that moved up or down is scrolled, cells
 * that look the same whatever their role are left, and the look and the place that the terminal has
 * from before are kept. A session over a slow line is mostly this.
 */
#ifndef UI_PAINT_H
#define UI_PAINT_H

#include "ui/screen.h"

/* A terminal's abilities; each appends bytes. NULL: it has none of that kind. */
struct ui_paint_caps {
    void (*place)(struct cw_buf *out, int row, int col); /* never NULL */
    void (*column)(struct cw_buf *out, int col);         /* in the row it is in */
    void (*right)(struct cw_buf *out, int n);
    void (*style)(struct cw_buf *out, const struct ui_style *from, const struct ui_style *to);
    void (*erase_right)(struct cw_buf *out); /* to the end of the row, in the terminal's own look */
    /* Rows [top, bottom] are what is scrolled from now on; the cursor may be anywhere after. */
    void (*region)(struct cw_buf *out, int top, int bottom);
    /* Move them up by n, or down by -n; the cursor may be anywhere after. NULL, then `region` is
     * not used. */
    void (*scroll)(struct cw_buf *out, int top, int bottom, int n);
    uint8_t attrs; /* UI_BOLD ... that it knows */
    bool links;    /* OSC 8 */
    bool corner;   /* the last cell of the last row can be written without a scroll */
};

struct ui_paint {
    struct ui_paint_caps caps;
    struct ui_style styles[UI_N_ROLES + 1]; /* by role; the last is the terminal's own look */
    struct ui_screen last;                  /* what is on the terminal */
    struct ui_style style;                  /* and how it would write now */
    uint16_t link;
    int row, col;    /* where it would write; row < 0: not known */
    int top, bottom; /* of its scroll region */
};

void ui_paint_init(struct ui_paint *p, const struct ui_paint_caps *caps);
void ui_paint_free(struct ui_paint *p);
/* The terminal was cleared, in its own look and scroll region; its cursor may be anywhere. */
void ui_paint_cleared(struct ui_paint *p, int rows, int cols);
/* Back to the terminal's own look and scroll region, all its rows, before others write to it. */
void ui_paint_yield(struct ui_paint *p, int rows, struct cw_buf *out);
/* Show a grid of the size that was cleared, by the same numbers of links and the same styles. */
void ui_paint_frame(struct ui_paint *p, const struct ui_screen *s, struct cw_buf *out);

#endif
