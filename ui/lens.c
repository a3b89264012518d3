/* SPDX-License-Identifier: MIT
 *
 * A line about the token, then a line for each choice. Where it is narrow or low the least part is
 * left out first: the second figure, the bar, the last choices.
 */
#include "ui/lens.h"

#include <stdio.h>
#include <string.h>

#include "chinwag/err.h"

enum { RANK_WIDTH = 4, PERCENT_WIDTH = 8, LEAST_BAR = 6, MOST_BAR = 40 };

void ui_lens_text(char *dst, size_t cap, const char *text, size_t n) {
    char plain[40];
    size_t k = 0;
    for (size_t i = 0; i < n && k + 3 < sizeof plain; i++) {
        const char *escape = text[i] == '\n' ? "\\n" : text[i] == '\t' ? "\\t" : NULL;
        if (escape != NULL) {
            plain[k++] = escape[0];
            plain[k++] = escape[1];
        } else {
            plain[k++] = text[i];
        }
    }
    char shown[160];
    cw_printable(shown, sizeof shown, plain, k);
    size_t length = ui_cluster_floor(shown, strlen(shown), cap > 8 ? cap - 8 : 0);
    length = strlen(shown) + 3 < cap ? strlen(shown) : length;
    snprintf(dst, cap, "\"%.*s\"", (int)length, shown);
}

static void percent(char out[16], double p) {
    if (p >= 0.9995) {
        snprintf(out, 16, "100 %%");
    } else if (p > 0 && p < 0.0005) {
        snprintf(out, 16, "<0.1 %%");
    } else {
        snprintf(out, 16, "%.1f %%", p * 100);
    }
}

int ui_lens_rows(const struct ui_lens *l, int rows) {
    int most = rows / 2; /* the text it is about must show */
    int want = 1 + (l->known ? l->n_choices : 0);
    return rows < 2 ? 0 : want < most ? want : most < 1 ? 1 : most;
}

/* Parts of the first line, the least important last; as many as fit. */
static void draw_head(const struct ui_lens *l, struct ui_screen *s, int row) {
    char parts[6][64], raw[16], p[16];
    int n = 0;
    percent(raw, l->raw);
    percent(p, l->p);
    snprintf(parts[n++], sizeof parts[0], "%s", l->text);
    if (l->known) {
        snprintf(parts[n++], sizeof parts[0], s->cols >= 30 ? "raw %s" : "%s", raw);
        snprintf(parts[n++], sizeof parts[0], "drawn at %s", p);
        snprintf(parts[n++], sizeof parts[0], "rank %d", l->rank + 1);
        snprintf(parts[n++], sizeof parts[0], "entropy %.2f bits", l->entropy_bits);
    } else {
        snprintf(parts[n++], sizeof parts[0], "probability not kept");
    }
    snprintf(parts[n++], sizeof parts[0], "token %zu of %zu", l->token + 1, l->n_tokens);
    int col = s->cols >= 12 ? 1 : 0;
    for (int i = 0; i < n; i++) {
        int width = ui_text_width(parts[i], strlen(parts[i]), s->cols + 1);
        if (col + width > s->cols && i > 0) {
            continue;
        }
        col = ui_screen_puts(s, row, col, s->cols, parts[i], i == 0 ? UI_TITLE : UI_STATUS) + 2;
    }
}

static void draw_choice(const struct ui_lens *l, int i, struct ui_screen *s, int row,
                        int text_width) {
    const struct ui_lens_choice *c = &l->choices[i];
    enum ui_role role = i == l->selected ? UI_SELECTED : UI_TEXT;
    char number[16], raw[16], p[16];
    snprintf(number, sizeof number, "%d%s", i + 1, c->chosen ? "*" : " ");
    percent(raw, c->raw);
    percent(p, c->p);
    if (i == l->selected) {
        ui_screen_fill(s, row, 0, s->cols, " ", UI_SELECTED);
    }
    int col = s->cols >= 12 ? 1 : 0;
    ui_screen_puts(s, row, col, s->cols, number, i == l->selected ? UI_SELECTED : UI_HELP_KEY);
    col += RANK_WIDTH - 1;
    /* the figure gives way to the text */
    int limit = s->cols - PERCENT_WIDTH < col + text_width ? s->cols : s->cols - PERCENT_WIDTH;
    int text_limit = col + text_width < limit ? col + text_width : limit;
    ui_screen_puts(s, row, col, text_limit, c->text, role);
    if (limit == s->cols) {
        return;
    }
    col = text_limit + 1;
    bool both = col + 2 * PERCENT_WIDTH + LEAST_BAR + 6 <= s->cols;
    int bar = s->cols - col - PERCENT_WIDTH - (both ? PERCENT_WIDTH + 4 : 0);
    bar = bar > MOST_BAR ? MOST_BAR : bar;
    if (bar >= LEAST_BAR) {
        int full = (int)(c->raw * bar + 0.5);
        full = full > bar ? bar : full < 0 ? 0 : full;
        ui_screen_fill(s, row, col, full, "▓", role);
        ui_screen_fill(s, row, col + full, bar - full, "░", role);
        col += bar;
    }
    char text[48];
    int n = snprintf(text, sizeof text, both ? "%7s -> %7s" : "%7s", raw, p);
    if (col + n <= s->cols) {
        ui_screen_puts(s, row, col, s->cols, text, role);
    }
}

void ui_lens_draw(const struct ui_lens *l, struct ui_screen *s, int row, int rows) {
    for (int r = 0; r < rows; r++) {
        ui_screen_fill(s, row + r, 0, s->cols, " ", UI_TEXT);
    }
    if (rows < 1) {
        return;
    }
    draw_head(l, s, row);
    int width = 4;
    for (int i = 0; i < l->n_choices; i++) {
        int w = ui_text_width(l->choices[i].text, strlen(l->choices[i].text), 24);
        width = w > width ? w : width;
    }
    /* the selected one is always in sight */
    int shown = rows - 1;
    int first = l->selected >= shown && shown > 0 ? l->selected - shown + 1 : 0;
    for (int i = 0; l->known && i < shown && first + i < l->n_choices; i++) {
        draw_choice(l, first + i, s, row + 1 + i, width);
    }
}
