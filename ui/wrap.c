/* SPDX-License-Identifier: MIT
 *
 * Greedy line breaking. What makes streaming cheap is that a line depends only on the text from its
 * own beginning, so appended text can change no line but the last; and that every line is bounded
 * in bytes, even one of blanks or of characters without a width, so that the last one is short.
 */
#include "ui/wrap.h"

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static void tab_cluster(struct ui_cluster *c, int col) {
    *c = (struct ui_cluster){.bytes = 1, .width = UI_TAB - col % UI_TAB, .len = 1, .text = " "};
}

void ui_wrap(const char *s, size_t n, size_t from, int width, bool words, struct ui_line *out) {
    struct ui_cluster c;
    size_t i = from;
    size_t break_end = 0, break_next = 0; /* the last place to break, after a blank; 0: none yet */
    int break_width = 0;
    int col = 0;
    const size_t max_bytes = 16u * (size_t)(width < 1 ? 1 : width) + 256;

    *out = (struct ui_line){.begin = from};
    while (i < n) {
        if (s[i] == '\n' || (s[i] == '\r' && i + 1 < n && s[i + 1] == '\n')) {
            out->end = i;
            out->next = i + (s[i] == '\r' ? 2 : 1);
            out->width = col;
            out->newline = true;
            return;
        }
        if (s[i] == '\t') {
            tab_cluster(&c, col);
        } else {
            ui_cluster_next(s + i, n - i, &c);
        }
        if (col + c.width > width && i > from) {
            if (words && is_blank(s[i])) {
                /* blanks at the edge hang over it; a very long run of them is broken too */
                size_t next = i;
                while (next < n && is_blank(s[next]) && next - i < (size_t)width) {
                    next++;
                }
                out->end = i;
                out->width = col;
                if (next < n && s[next] == '\n') {
                    next++;
                    out->newline = true;
                } else if (next + 1 < n && s[next] == '\r' && s[next + 1] == '\n') {
                    next += 2;
                    out->newline = true;
                }
                out->next = next;
                return;
            }
            break;
        }
        if (i - from >= max_bytes) {
            break;
        }
        col += c.width;
        i += c.bytes;
        if (words && c.len == 1 && is_blank(s[i - 1])) {
            if (break_next != i - 1 || break_next == 0) {
                break_end = i - 1;
                break_width = col - c.width;
            }
            break_next = i;
        }
    }
    if (i < n && words && break_next > 0 && break_end > from && i - from < max_bytes) {
        *out = (struct ui_line){from, break_end, break_next, break_width, false};
    } else {
        *out = (struct ui_line){from, i, i, col, false};
    }
}

void ui_wrap_draw(struct ui_screen *screen, int row, int col, int limit, const char *s,
                  const struct ui_line *line, enum ui_role role) {
    struct ui_cluster c;
    int at = 0;
    for (size_t i = line->begin; i < line->end; i += c.bytes) {
        if (s[i] == '\t') {
            tab_cluster(&c, at);
            for (int k = 0; k < c.width; k++) {
                ui_screen_put(screen, row, col + at + k, limit, " ", 1, role);
            }
        } else {
            ui_cluster_next(s + i, line->end - i, &c);
            if (!ui_screen_put_cluster(screen, row, col + at, limit, &c, role)) {
                break;
            }
        }
        at += c.width;
    }
}
