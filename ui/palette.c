/* SPDX-License-Identifier: MIT
 *
 * The list is short (some hundred items): each change of the needle scores all of it.
 */
#include "ui/palette.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/mem.h"

enum {
    MAX_SCORED = 256, /* bytes of an item and of a needle that are looked at */
    POINT_LETTER = 1,
    POINT_NEXT = 6, /* directly behind the letter before */
    POINT_WORD = 8, /* begins a word */
    POINT_START = 6 /* begins the item */
};

struct match {
    size_t item;
    int score;
};

struct ui_palette {
    char *title;
    struct ui_palette_item *items;
    size_t n_items;
    struct match *matches; /* [n_items], the first n_matches used, best first */
    size_t n_matches;
    size_t selected, top;
    struct ui_lineedit line;
    char *asked; /* what the line said when the owner asked whether it changed */
    bool show_all;
};

static bool same(char a, char b) {
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

static bool begins_word(const char *text, size_t i) {
    return i == 0 || (isalnum((unsigned char)text[i]) && !isalnum((unsigned char)text[i - 1]));
}

/* The best sum of points over all ways to find the needle in the text: best[i] is the best of those
 * that put the present letter of the needle on text[i]. */
int ui_palette_score(const char *needle, const char *text) {
    int best[MAX_SCORED], before[MAX_SCORED];
    size_t n = strnlen(text, MAX_SCORED), m = 0;
    size_t start = text[0] == '/'; /* of a command's name */
    for (const char *c = needle; *c != '\0' && m < MAX_SCORED; c++) {
        if (*c == ' ') {
            continue; /* words of the needle may stand apart anyway */
        }
        int reach = m == 0 ? 0 : -1; /* the best up to here of the letters before */
        for (size_t i = 0; i < n; i++) {
            best[i] = -1;
            if (same(*c, text[i]) && (reach >= 0 || (m > 0 && i > 0 && before[i - 1] >= 0))) {
                int points = POINT_LETTER + (begins_word(text, i) ? POINT_WORD : 0) +
                             (i <= start ? POINT_START : 0);
                best[i] = reach >= 0 ? reach + points : -1;
                if (m > 0 && i > 0 && before[i - 1] >= 0 &&
                    before[i - 1] + points + POINT_NEXT > best[i]) {
                    best[i] = before[i - 1] + points + POINT_NEXT;
                }
            }
            if (m > 0 && before[i] > reach) {
                reach = before[i];
            }
        }
        memcpy(before, best, n * sizeof best[0]);
        m++;
    }
    if (m == 0) {
        return 0;
    }
    int top = -1;
    for (size_t i = 0; i < n; i++) {
        top = before[i] > top ? before[i] : top;
    }
    /* of two items that match alike the shorter one was meant */
    return top < 0 ? -1 : top * 256 - (int)n;
}

struct ui_palette *ui_palette_create(const char *title) {
    struct ui_palette *p = cw_calloc(1, sizeof *p);
    p->title = cw_strdup(title);
    p->asked = cw_strdup("");
    return p;
}

void ui_palette_show_all(struct ui_palette *p) {
    p->show_all = true;
}

static void free_item(struct ui_palette_item *item) {
    free(item->label);
    free(item->detail);
    free(item->action);
}

void ui_palette_clear(struct ui_palette *p) {
    for (size_t i = 0; i < p->n_items; i++) {
        free_item(&p->items[i]);
    }
    p->n_items = p->n_matches = p->selected = p->top = 0;
}

const char *ui_palette_needle(const struct ui_palette *p) {
    return ui_lineedit_text(&p->line);
}

bool ui_palette_changed(struct ui_palette *p) {
    if (strcmp(p->asked, ui_palette_needle(p)) == 0) {
        return false;
    }
    free(p->asked);
    p->asked = cw_strdup(ui_palette_needle(p));
    return true;
}

void ui_palette_destroy(struct ui_palette *p) {
    if (p == NULL) {
        return;
    }
    ui_palette_clear(p);
    free(p->items);
    free(p->matches);
    free(p->title);
    free(p->asked);
    ui_lineedit_free(&p->line);
    free(p);
}

static int item_score(const char *needle, const struct ui_palette_item *item) {
    int label = ui_palette_score(needle, item->label);
    /* letters strewn over a sentence mean nothing: there the words of the needle must stand whole
     */
    if (label < 0 && strlen(needle) >= 3 && strcasestr(item->detail, needle) != NULL) {
        return 0;
    }
    return label < 0 && item->found ? 0 : label;
}

/* Where item i stands among the matches; SIZE_MAX: it is none. */
static size_t match_item(struct ui_palette *p, size_t i) {
    const char *needle = p->show_all ? "" : ui_lineedit_text(&p->line);
    int score = item_score(needle, &p->items[i]);
    if (score < 0 && needle[0] != '\0') {
        return SIZE_MAX;
    }
    size_t at = p->n_matches++;
    for (; at > 0 && needle[0] != '\0' && p->matches[at - 1].score < score; at--) {
        p->matches[at] = p->matches[at - 1];
    }
    p->matches[at] = (struct match){i, score};
    return at;
}

static void find_matches(struct ui_palette *p) {
    p->n_matches = p->selected = p->top = 0;
    for (size_t i = 0; i < p->n_items; i++) {
        match_item(p, i);
    }
}

static void add(struct ui_palette *p, int kind, bool found, const char *label, const char *detail,
                const char *action) {
    p->items = cw_reallocarray(p->items, p->n_items + 1, sizeof *p->items);
    p->matches = cw_reallocarray(p->matches, p->n_items + 1, sizeof *p->matches);
    p->items[p->n_items++] = (struct ui_palette_item){cw_strdup(label), cw_strdup(detail),
                                                      cw_strdup(action), kind, found};
    if (match_item(p, p->n_items - 1) <= p->selected && p->selected > 0) {
        p->selected++; /* moved to by the person: the same item stays selected */
        p->top++;
    }
}

void ui_palette_add(struct ui_palette *p, int kind, const char *label, const char *detail,
                    const char *action) {
    add(p, kind, false, label, detail, action);
}

void ui_palette_add_found(struct ui_palette *p, int kind, const char *label, const char *detail,
                          const char *action) {
    add(p, kind, true, label, detail, action);
}

void ui_palette_drop_found(struct ui_palette *p) {
    size_t chosen = p->selected > 0 ? p->matches[p->selected].item : SIZE_MAX;
    size_t kept = 0, selected = SIZE_MAX;
    for (size_t i = 0; i < p->n_items; i++) {
        if (p->items[i].found) {
            free_item(&p->items[i]);
            continue;
        }
        selected = i == chosen ? kept : selected;
        p->items[kept++] = p->items[i];
    }
    p->n_items = kept;
    find_matches(p);
    for (size_t i = 0; i < p->n_matches; i++) {
        p->selected = p->matches[i].item == selected ? i : p->selected;
    }
}

static void move(struct ui_palette *p, long by) {
    if (p->n_matches == 0) {
        return;
    }
    long to = (long)p->selected + by;
    long last = (long)p->n_matches - 1;
    p->selected = (size_t)(to < 0 ? 0 : to > last ? last : to);
}

bool ui_palette_key(struct ui_palette *p, const struct ui_key *key) {
    bool plain = key->mods == 0;
    bool control = key->mods == UI_CTRL;
    if ((plain && key->code == UI_KEY_UP) || (control && key->code == 'p')) {
        move(p, -1);
    } else if ((plain && key->code == UI_KEY_DOWN) || (control && key->code == 'n')) {
        move(p, 1);
    } else if (plain && key->code == UI_KEY_PGUP) {
        move(p, -10);
    } else if (plain && key->code == UI_KEY_PGDN) {
        move(p, 10);
    } else if (ui_lineedit_key(&p->line, key)) {
        find_matches(p);
    } else {
        return false;
    }
    return true;
}

const struct ui_palette_item *ui_palette_selected(const struct ui_palette *p) {
    return p->n_matches > 0 ? &p->items[p->matches[p->selected].item] : NULL;
}

size_t ui_palette_n_matches(const struct ui_palette *p) {
    return p->n_matches;
}

static void draw_item(const struct ui_palette_item *item, struct ui_screen *s, int row, int width,
                      bool selected) {
    enum ui_role role = selected ? UI_SELECTED : UI_HELP_KEY;
    if (selected) {
        ui_screen_fill(s, row, 0, s->cols, " ", UI_SELECTED);
        ui_screen_puts(s, row, 0, s->cols, ">", UI_SELECTED);
    }
    int left = s->cols >= 12 ? 2 : 1;
    int end = ui_screen_puts(s, row, left, s->cols, item->label, role);
    int col = left + width + 2 > end + 2 ? left + width + 2 : end + 2;
    if (col + 8 <= s->cols) { /* no room for a word: no sentence */
        ui_screen_puts_cut(s, row, col, s->cols, item->detail, selected ? UI_SELECTED : UI_DIM);
    }
}

void ui_palette_draw(struct ui_palette *p, struct ui_screen *s, int row, int rows) {
    for (int r = 0; r < rows; r++) {
        ui_screen_fill(s, row + r, 0, s->cols, " ", UI_TEXT);
    }
    if (rows < 1) {
        return;
    }
    size_t body = (size_t)rows;
    if (p->selected < p->top) {
        p->top = p->selected;
    } else if (p->selected >= p->top + body) {
        p->top = p->selected - body + 1;
    }
    p->top =
        p->top + body > p->n_matches ? (p->n_matches > body ? p->n_matches - body : 0) : p->top;
    int width = 0; /* of the labels; a long one pushes its sentence aside alone */
    for (size_t i = 0; i < p->n_items; i++) {
        int w = ui_text_width(p->items[i].label, strlen(p->items[i].label), s->cols);
        width = w > width && w <= s->cols / 3 && w <= 28 ? w : width;
    }
    for (size_t i = 0; i < body && p->top + i < p->n_matches; i++) {
        size_t at = p->top + i;
        draw_item(&p->items[p->matches[at].item], s, row + (int)i, width, at == p->selected);
    }
    if (p->n_matches == 0) {
        ui_screen_puts(s, row, s->cols >= 12 ? 2 : 0, s->cols, "nothing matches", UI_DIM);
    }
}

void ui_palette_draw_line(const struct ui_palette *p, struct ui_screen *s, int row) {
    char count[48];
    int head =
        s->cols >= 30 ? ui_screen_puts(s, row, 1, s->cols, p->title, UI_TITLE) + 1 : s->cols >= 12;
    int col = ui_screen_puts(s, row, head, s->cols, "> ", UI_PROMPT);
    int n = snprintf(count, sizeof count, s->cols >= 40 ? "%zu of %zu" : "%zu/%zu", p->n_matches,
                     p->n_items);
    int limit = s->cols - n - 2;
    bool room = limit > col + 3;
    ui_lineedit_draw(&p->line, s, row, col, room ? limit : s->cols);
    if (room) {
        ui_screen_puts(s, row, s->cols - n - 1, s->cols, count,
                       p->n_matches > 0 ? UI_DIM : UI_ERROR);
    }
}
