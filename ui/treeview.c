/* SPDX-License-Identifier: MIT
 *
 * See treeview.h.
 */
#include "ui/treeview.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/mem.h"

enum { MAX_TEXT = 240, MAX_GUIDE = 64 };

struct node {
    uint64_t id;
    size_t parent, first, last, next; /* indices, SIZE_MAX: none */
    bool mine, on_path;
    char *text;
};

/* A line of the view. */
struct line {
    size_t node;
    char *guide;
};

struct ui_treeview {
    char *title;
    struct node *nodes;
    size_t n;
    size_t first, last; /* without a parent */
    struct line *lines;
    size_t n_lines; /* 0: to be made */
    size_t cursor, top;
};

struct ui_treeview *ui_treeview_create(const char *title) {
    struct ui_treeview *v = cw_calloc(1, sizeof *v);
    v->title = cw_strdup(title);
    v->first = v->last = SIZE_MAX;
    return v;
}

static void free_lines(struct ui_treeview *v) {
    for (size_t i = 0; i < v->n_lines; i++) {
        free(v->lines[i].guide);
    }
    free(v->lines);
    v->lines = NULL;
    v->n_lines = 0;
}

void ui_treeview_destroy(struct ui_treeview *v) {
    if (v == NULL) {
        return;
    }
    free_lines(v);
    for (size_t i = 0; i < v->n; i++) {
        free(v->nodes[i].text);
    }
    free(v->nodes);
    free(v->title);
    free(v);
}

void ui_treeview_add(struct ui_treeview *v, uint64_t id, uint64_t parent, bool mine, bool on_path,
                     const char *text, size_t n) {
    struct cw_buf line = {0};
    n = n < MAX_TEXT ? n : MAX_TEXT;
    for (size_t i = 0; i < n; i++) { /* the screen marks what is not printable, lines are ours */
        cw_buf_putc(&line, text[i] == '\n' || text[i] == '\t' || text[i] == '\r' ? ' ' : text[i]);
    }
    size_t at = v->n;
    size_t up = SIZE_MAX;
    for (size_t i = v->n; parent != 0 && i-- > 0 && up == SIZE_MAX;) {
        up = v->nodes[i].id == parent ? i : SIZE_MAX;
    }
    v->nodes = cw_reallocarray(v->nodes, v->n + 1, sizeof *v->nodes);
    v->nodes[v->n++] =
        (struct node){id, up, SIZE_MAX, SIZE_MAX, SIZE_MAX, mine, on_path, cw_buf_take(&line)};
    size_t *first = up == SIZE_MAX ? &v->first : &v->nodes[up].first;
    size_t *last = up == SIZE_MAX ? &v->last : &v->nodes[up].last;
    if (*last != SIZE_MAX) {
        v->nodes[*last].next = at;
    } else {
        *first = at;
    }
    *last = at;
    free_lines(v);
}

/* Guide of the lines below a node, and of the node's own line, from that of its parent's children.
 */
static char *extend(const char *guide, const char *more) {
    struct cw_buf b = {0};
    cw_buf_puts(&b, guide);
    cw_buf_puts(&b, more);
    return cw_buf_take(&b);
}

/* All lines, a branch at a time; without recursion, since a conversation may be long. */
static void layout(struct ui_treeview *v) {
    struct todo {
        size_t node;
        char *guide; /* of the lines below its branch */
    } *todo = cw_calloc(v->n + 1, sizeof *todo);
    size_t n = 0;
    v->lines = cw_calloc(v->n + 1, sizeof *v->lines);
    if (v->first != SIZE_MAX) {
        todo[n++] = (struct todo){v->first, cw_strdup("")};
    }
    while (n > 0) {
        struct todo t = todo[--n];
        const struct node *node = &v->nodes[t.node];
        size_t first = node->parent == SIZE_MAX ? v->first : v->nodes[node->parent].first;
        size_t last = node->parent == SIZE_MAX ? v->last : v->nodes[node->parent].last;
        bool branches = first != last;
        bool deep = strlen(t.guide) > MAX_GUIDE; /* the rest stays in one column */
        const char *own = !branches || deep ? "" : node->next != SIZE_MAX ? "├ " : "└ ";
        const char *below = !branches || deep ? "" : node->next != SIZE_MAX ? "│ " : "  ";
        v->lines[v->n_lines++] = (struct line){t.node, extend(t.guide, own)};
        if (node->next != SIZE_MAX) {
            todo[n++] = (struct todo){node->next, cw_strdup(t.guide)};
        }
        if (node->first != SIZE_MAX) {
            todo[n++] = (struct todo){node->first, extend(t.guide, below)};
        }
        free(t.guide);
    }
    free(todo);
}

static void prepare(struct ui_treeview *v) {
    if (v->n_lines == 0 && v->n > 0) {
        layout(v);
    }
}

void ui_treeview_select(struct ui_treeview *v, uint64_t id) {
    prepare(v);
    for (size_t i = 0; i < v->n_lines; i++) {
        if (v->nodes[v->lines[i].node].id == id) {
            v->cursor = i;
        }
    }
}

uint64_t ui_treeview_selected(const struct ui_treeview *v) {
    return v->cursor < v->n_lines ? v->nodes[v->lines[v->cursor].node].id : 0;
}

void ui_treeview_move(struct ui_treeview *v, int lines) {
    prepare(v);
    if (lines < 0) {
        size_t back = (size_t)-lines;
        v->cursor = v->cursor > back ? v->cursor - back : 0;
    } else if (v->n_lines > 0) {
        size_t left = v->n_lines - 1 - v->cursor;
        v->cursor += (size_t)lines < left ? (size_t)lines : left;
    }
}

void ui_treeview_text(struct ui_treeview *v, struct cw_buf *out) {
    prepare(v);
    cw_buf_printf(out, "%s\n", v->title);
    for (size_t i = 0; i < v->n_lines; i++) {
        const struct node *node = &v->nodes[v->lines[i].node];
        const char *guide = v->lines[i].guide;
        cw_buf_printf(out, "%c %*s%zu %s: %s\n", node->on_path ? '*' : ' ',
                      ui_text_width(guide, strlen(guide), MAX_GUIDE * 4), "", v->lines[i].node + 1,
                      node->mine ? "you" : "reply", node->text);
    }
}

static void draw_line(const struct ui_treeview *v, struct ui_screen *s, int row, size_t i) {
    const struct node *node = &v->nodes[v->lines[i].node];
    bool selected = i == v->cursor;
    enum ui_role role = selected ? UI_SELECTED : node->on_path ? UI_TEXT : UI_DIM;
    if (selected) {
        ui_screen_fill(s, row, 0, s->cols, " ", UI_SELECTED);
    }
    int col = ui_screen_puts(s, row, 0, s->cols, selected ? "> " : "  ", role);
    col = ui_screen_puts(s, row, col, s->cols, v->lines[i].guide, selected ? role : UI_RULE);
    col = ui_screen_puts(s, row, col, s->cols, node->on_path ? "● " : "○ ", role);
    char number[24];
    snprintf(number, sizeof number, "%zu ", v->lines[i].node + 1);
    col = ui_screen_puts(s, row, col, s->cols, number, selected ? role : UI_DIM);
    col = ui_screen_puts(s, row, col, s->cols, node->mine ? "you  " : "reply  ",
                         selected         ? role
                         : !node->on_path ? UI_DIM
                         : node->mine     ? UI_YOU
                                          : UI_REPLY);
    ui_screen_puts(s, row, col, s->cols, node->text, role);
}

void ui_treeview_draw(struct ui_treeview *v, struct ui_screen *s, int row, int rows) {
    prepare(v);
    bool title = rows >= 3;
    if (title) {
        int col = ui_screen_puts(s, row, 1, s->cols, v->title, UI_TITLE);
        ui_screen_puts(s, row, col + 2, s->cols, "Enter goes there, Esc closes", UI_DIM);
        row++;
        rows--;
    }
    size_t room = rows > 0 ? (size_t)rows : 0;
    if (v->cursor < v->top) {
        v->top = v->cursor;
    } else if (room > 0 && v->cursor >= v->top + room) {
        v->top = v->cursor - room + 1;
    }
    for (size_t i = 0; i < room && v->top + i < v->n_lines; i++) {
        draw_line(v, s, row + (int)i, v->top + i);
    }
}
