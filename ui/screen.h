/* SPDX-License-Identifier: MIT
 *
 * The screen as a grid of cells. Everything is drawn here and can be read back; the terminal only
 * shows it. Rows and columns count from 0; whatever lies outside is clipped, so a grid of 1 x 1 is
 * as good as any. Main thread, or any one thread in tests.
 */
#ifndef UI_SCREEN_H
#define UI_SCREEN_H

#include "ui/cluster.h"
#include "ui/theme.h"

#include "chinwag/mem.h"

/* Cells are compared as bytes, so there is no padding. */
struct ui_cell {
    uint16_t link;               /* of ui_screen_link; 0: none */
    uint8_t role;                /* enum ui_role */
    uint8_t attrs;               /* UI_BOLD ..., on top of the role's */
    char text[UI_CLUSTER_BYTES]; /* the cluster; a blank cell is one ' ' */
    uint8_t len;
    uint8_t width;  /* columns; 0: covered by the cluster to the left */
    uint8_t joined; /* see ui_cluster */
    uint8_t zero;
};

struct ui_screen {
    int rows, cols;
    struct ui_cell *cells;      /* [rows, cols] */
    int cursor_row, cursor_col; /* cursor_row < 0: hidden */
    char **links;               /* targets; a number keeps its target until `epoch` changes */
    uint16_t n_links;
    uint32_t epoch;
};

/* How text is drawn. */
struct ui_look {
    enum ui_role role;
    uint8_t attrs;
    uint16_t link;
};

void ui_screen_init(struct ui_screen *s, int rows, int cols);
void ui_screen_free(struct ui_screen *s);
void ui_screen_resize(struct ui_screen *s, int rows, int cols); /* at least 1 x 1; blank after */
void ui_screen_clear(struct ui_screen *s);

/* The number of a link's target; 0 when it is none to be followed (ui_osc_safe_link), or the screen
 * holds too many. */
uint16_t ui_screen_link(struct ui_screen *s, const char *url);

struct ui_cell *ui_screen_at(const struct ui_screen *s, int row, int col); /* NULL outside */

/* Draw text[0..n) from (row, col) up to, not including, column `limit`. A cluster that does not fit
 * whole is not drawn. Marks take UI_MARK instead of `role`. Returns the column after the text. */
int ui_screen_put(struct ui_screen *s, int row, int col, int limit, const char *text, size_t n,
                  enum ui_role role);
int ui_screen_puts(struct ui_screen *s, int row, int col, int limit, const char *text,
                   enum ui_role role);
/* Text that ends in an ellipsis where it does not fit. */
void ui_screen_puts_cut(struct ui_screen *s, int row, int col, int limit, const char *text,
                        enum ui_role role);
/* One cluster; false (nothing drawn) when it does not fit before `limit`. */
bool ui_screen_put_cluster(struct ui_screen *s, int row, int col, int limit,
                           const struct ui_cluster *c, enum ui_role role);
/* The same with a whole look. */
bool ui_screen_put_look(struct ui_screen *s, int row, int col, int limit,
                        const struct ui_cluster *c, const struct ui_look *look);
/* `n` times the same one-column text. */
void ui_screen_fill(struct ui_screen *s, int row, int col, int n, const char *text,
                    enum ui_role role);

/* Row `row` as text without trailing blanks. */
void ui_screen_row_text(const struct ui_screen *s, int row, struct cw_buf *out);

#endif
