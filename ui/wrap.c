/* SPDX-License-Identifier: MIT
 *
 * Greedy line breaking. What makes streaming cheap is that a line depends only on the text from its
 * own beginning, so appended text can change no line but the last; and that every line is bounded
 * in bytes, even one of blanks or of characters without a width, so that the last one is short.
 */
#include "ui/wrap.h"

#include <string.h>

#include "chinwag/utf8.h"

/* What matters for breaking beside a cluster, after UAX #14 and the rules that Chinese and Japanese
 * printers share: lines may end between any two ideographs and beside one, but none begins with
 * what closes nor ends with what opens. Korean has blanks between its words and is broken there. */
enum { IDEOGRAPH = 1, NO_START = 2, NO_END = 4 };

static bool is_ideograph(uint32_t c) {
    static const uint32_t ranges[][2] = {
        {0x2e80, 0x2fdf}, /* radicals */
        {0x3000, 0x312f}, /* punctuation, kana, bopomofo */
        {0x3190, 0x9fff}, /* ideographs and what stands between them */
        {0xa000, 0xa4cf}, /* Yi */
        {0xf900, 0xfaff}, {0xfe30, 0xfe4f}, {0xff01, 0xff60}, {0x20000, 0x3ffff},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        if (c >= ranges[i][0] && c <= ranges[i][1]) {
            return true;
        }
    }
    return false;
}

static unsigned traits_of_ascii(char c) {
    switch (c) {
    case '(':
    case '[':
    case '{':
        return NO_END;
    case ')':
    case ']':
    case '}':
    case ',':
    case '.':
    case ':':
    case ';':
    case '!':
    case '?':
    case '%':
        return NO_START;
    default:
        return 0;
    }
}

static unsigned traits_of(const struct ui_cluster *c) {
    static const char close[] = "、。，．：；？！）］｝」』】》〉〕〗〙〟’”…‥・ー々〻ゝゞ"
                                "ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ";
    static const char open[] = "（［｛「『【《〈〔〖〘〝‘“";
    uint32_t letter;
    if (c->mark || c->len == 0) {
        return 0;
    }
    if (c->len == 1) {
        return traits_of_ascii(c->text[0]);
    }
    int n = cw_utf8_decode(c->text, c->len, &letter);
    if (n < 3) {
        return 0;
    }
    unsigned place = memmem(close, sizeof close - 1, c->text, (size_t)n) != NULL ? NO_START
                     : memmem(open, sizeof open - 1, c->text, (size_t)n) != NULL ? NO_END
                                                                                 : 0;
    return place | (is_ideograph(letter) ? IDEOGRAPH : 0);
}

static bool may_part(unsigned before, unsigned after) {
    return ((before | after) & IDEOGRAPH) && !(before & NO_END) && !(after & NO_START);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static void tab_cluster(struct ui_cluster *c, int col) {
    *c = (struct ui_cluster){.bytes = 1, .width = UI_TAB - col % UI_TAB, .len = 1, .text = " "};
}

void ui_wrap(const char *s, size_t n, size_t from, int width, bool words, struct ui_line *out) {
    struct ui_cluster c;
    size_t i = from;
    size_t break_end = 0, break_next = 0; /* the last place to break between words; 0: none yet */
    int break_width = 0;
    int col = 0;
    unsigned before = 0; /* traits of the cluster before */
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
        unsigned traits = words && !is_blank(s[i]) ? traits_of(&c) : 0;
        if (i > from && may_part(before, traits) && !is_blank(s[i - 1]) && !is_blank(s[i])) {
            break_end = break_next = i;
            break_width = col;
        }
        before = traits;
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
