/* SPDX-License-Identifier: MIT
 *
 * The screen of the chat, put together from its parts. Rows are given out by need: the input line
 * always has one, then the bottom line, the conversation, the rules, the title.
 */
#include <stdio.h>
#include <string.h>

#include "app/app_impl.h"
#include "ui/term.h"

/* Where the parts are; a part without rows has row -1. */
struct parts {
    int title, title_rule;
    int transcript, n_transcript; /* rows */
    int rule;                     /* above the input, with the hint in it */
    int input, n_input;
    int status_rule, status;
};

static struct parts divide(int rows, int want_input) {
    struct parts p = {.title = -1, .title_rule = -1, .rule = -1, .status_rule = -1, .status = -1};
    int most = rows / 2 < 1 ? 1 : rows / 2;
    p.n_input = want_input < 1 ? 1 : want_input > most ? most : want_input;
    int left = rows - p.n_input;
    bool status = left >= 1;
    left -= status;
    bool rule = left >= 2;
    left -= rule;
    bool status_rule = left >= 6;
    left -= status_rule;
    bool title = left >= 6;
    left -= title;
    bool title_rule = title && left >= 6;
    left -= title_rule;

    int row = 0;
    p.title = title ? row++ : -1;
    p.title_rule = title_rule ? row++ : -1;
    p.transcript = row;
    p.n_transcript = left;
    row += left;
    p.rule = rule ? row++ : -1;
    p.input = row;
    row += p.n_input;
    p.status_rule = status_rule ? row++ : -1;
    p.status = status ? row : -1;
    return p;
}

static void draw_rule(struct ui_screen *s, int row) {
    if (row >= 0) {
        ui_screen_fill(s, row, 0, s->cols, "─", UI_RULE);
    }
}

static void draw_title(struct app *a, int row) {
    struct ui_screen *s = &a->screen;
    const struct cw_model_info *info = app_model_info(a);
    int col = ui_screen_puts(s, row, 1, s->cols, info ? info->name : "chinwag", UI_TITLE);
    if (info != NULL && info->quant[0] != '\0') {
        col = ui_screen_puts(s, row, col + 1, s->cols, info->quant, UI_TITLE);
    }
    if (a->chat.n > 0 && a->chat.messages[0].text.len > 0) {
        /* the conversation is called by its first line */
        const struct cw_buf *text = &a->chat.messages[0].text;
        const char *end = memchr(text->data, '\n', text->len);
        size_t n = end ? (size_t)(end - text->data) : text->len;
        col = ui_screen_puts(s, row, col, s->cols, " · ", UI_DIM);
        ui_screen_put(s, row, col, s->cols - 1, text->data, n < 400 ? n : 400, UI_DIM);
    }
}

/* The line above the input says what there is to say. */
static void draw_hint(struct app *a, int row, int from) {
    struct ui_screen *s = &a->screen;
    char text[1024] = "";
    enum ui_role role = UI_NOTICE;
    if (a->hint[0] != '\0') {
        snprintf(text, sizeof text, "%s", a->hint);
        role = a->hint_error ? UI_ERROR : UI_NOTICE;
    } else if (ui_keys_pasting(a->keys)) {
        snprintf(text, sizeof text, "pasting");
    } else if (a->n_queue > 0) {
        snprintf(text, sizeof text, "queued: %zu message%s, sent when %s", a->n_queue,
                 a->n_queue == 1 ? "" : "s",
                 a->phase == APP_LOADING ? "the model is loaded" : "the reply ends");
    }
    if (text[0] == '\0') {
        return;
    }
    ui_screen_puts(s, row, from, s->cols, " ", UI_TEXT);
    int col = ui_screen_puts(s, row, from + 1, s->cols, text, role);
    ui_screen_puts(s, row, col, s->cols, " ", UI_TEXT);
}

static void draw_new_lines(struct app *a, int row) {
    struct ui_screen *s = &a->screen;
    if (ui_transcript_at_end(a->transcript) || a->overlay != NULL) {
        return;
    }
    char text[64];
    size_t n = ui_transcript_new_lines(a->transcript);
    if (n > 0) {
        snprintf(text, sizeof text, " ▼ %zu new line%s ", n, n == 1 ? "" : "s");
    } else {
        snprintf(text, sizeof text, " ▼ more ");
    }
    int width = ui_text_width(text, strlen(text), s->cols);
    ui_screen_puts(s, row, s->cols - width - 1 < 0 ? 0 : s->cols - width - 1, s->cols, text,
                   UI_NEW_LINES);
}

/* What Tab found, in columns, above the input. */
static void draw_matches(struct app *a, const struct parts *p) {
    struct ui_screen *s = &a->screen;
    size_t n;
    const char *const *words = ui_input_matches(&n);
    if (n == 0 || p->n_transcript < 1) {
        return;
    }
    int widest = 1;
    for (size_t i = 0; i < n; i++) {
        int width = ui_text_width(words[i], strlen(words[i]), s->cols);
        widest = width > widest ? width : widest;
    }
    size_t columns = (size_t)(s->cols / (widest + 2) < 1 ? 1 : s->cols / (widest + 2));
    size_t rows = (n + columns - 1) / columns;
    size_t most = (size_t)(p->n_transcript + 1) / 2;
    size_t shown_rows = rows < most ? rows : most;
    int top = p->transcript + p->n_transcript - (int)shown_rows;
    for (size_t r = 0; r < shown_rows; r++) {
        ui_screen_fill(s, top + (int)r, 0, s->cols, " ", UI_TEXT);
        for (size_t c = 0; c < columns && r * columns + c < n; c++) {
            int col = 1 + (int)c * (widest + 2);
            bool more = rows > shown_rows && r + 1 == shown_rows && c + 1 == columns;
            ui_screen_puts(s, top + (int)r, col, s->cols, more ? "…" : words[r * columns + c],
                           UI_HELP_KEY);
        }
    }
}

static void draw_input(struct app *a, const struct parts *p) {
    struct ui_screen *s = &a->screen;
    char tokens[48] = "";
    if (a->draft_known) {
        snprintf(tokens, sizeof tokens, "%zu token%s", a->draft_tokens,
                 a->draft_tokens == 1 ? "" : "s");
    }
    int width = (int)strlen(tokens);
    int limit = s->cols - width - 2;
    if (ui_input_draw(s, p->input, p->n_input, limit) && width > 0 && limit > 4) {
        ui_screen_puts(s, p->input + p->n_input - 1, limit + 1, s->cols, tokens, UI_DIM);
    }
    if (a->overlay != NULL) {
        s->cursor_row = -1;
    }
}

void app_draw(struct app *a) {
    struct ui_screen *s = &a->screen;
    int rows, cols;
    ui_term_size(&rows, &cols);
    if (rows != s->rows || cols != s->cols) {
        ui_screen_resize(s, rows, cols);
        ui_input_resize(rows, cols);
    }
    ui_screen_clear(s);
    struct parts p = divide(rows, ui_input_rows(cols));
    ui_transcript_resize(a->transcript, p.n_transcript, cols);
    if (p.title >= 0) {
        draw_title(a, p.title);
    }
    draw_rule(s, p.title_rule);
    if (a->overlay != NULL && p.n_transcript > 0) {
        ui_overlay_draw(a->overlay, s, p.transcript, p.n_transcript);
    } else {
        ui_transcript_draw(a->transcript, s, p.transcript);
    }
    draw_matches(a, &p);
    draw_rule(s, p.rule);
    draw_rule(s, p.status_rule);
    if (p.rule >= 0) {
        draw_hint(a, p.rule, 2);
        draw_new_lines(a, p.rule);
    }
    draw_input(a, &p);
    if (p.status >= 0) {
        const struct cw_model_info *info = app_model_info(a);
        a->status.model = info ? info->name : NULL;
        if (p.rule < 0 && a->hint[0] != '\0') {
            draw_hint(a, p.status, 0);
        } else {
            ui_statusbar_draw(s, p.status, &a->status);
        }
    }
}
