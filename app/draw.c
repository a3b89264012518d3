/* SPDX-License-Identifier: MIT
 *
 * The screen of the chat, put together from its parts. Rows are given out by need: the input line
 * always has one, then the bottom line, the conversation, the rules, the title.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "app/app_impl.h"
#include "ui/term.h"

static const double FRAME_S = 1.0 / 60;
static const double STATUS_S = 0.5; /* between two looks at figures that flow */

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

/* The title that was given, or the first line of what was said; empty: neither. */
static struct cw_str conversation_name(const struct app *a) {
    struct cw_str name = {"", 0};
    if (a->chat.title != NULL && a->chat.title[0] != '\0') {
        name = (struct cw_str){a->chat.title, strlen(a->chat.title)};
    } else if (a->chat.n > 0 && a->chat.messages[0]->text.len > 0) {
        name = (struct cw_str){a->chat.messages[0]->text.data, a->chat.messages[0]->text.len};
    }
    const char *end = name.len > 0 ? memchr(name.data, '\n', name.len) : NULL;
    name.len = end != NULL ? (size_t)(end - name.data) : name.len;
    return name;
}

static void draw_title(struct app *a, int row) {
    struct ui_screen *s = &a->screen;
    const struct cw_model_info *info = app_model_info(a);
    char branch[64] = "";
    if (a->status.n_branches > 1) {
        snprintf(branch, sizeof branch, "branch %zu/%zu", a->status.branch, a->status.n_branches);
    }
    int end_col = s->cols - (int)strlen(branch) - (branch[0] != '\0' ? 2 : 0);
    if (end_col > s->cols / 2) {
        ui_screen_puts(s, row, end_col + 1, s->cols, branch, UI_DIM);
    } else {
        end_col = s->cols;
    }
    int col = ui_screen_puts(s, row, 1, end_col, info ? info->name : "chinwag", UI_TITLE);
    if (info != NULL && info->quant[0] != '\0') {
        col = ui_screen_puts(s, row, col + 1, end_col, info->quant, UI_TITLE);
    }
    struct cw_str called = conversation_name(a);
    if (called.len > 0) {
        col = ui_screen_puts(s, row, col, end_col, " · ", UI_DIM);
        ui_screen_put(s, row, col, end_col - 1, called.data, called.len < 400 ? called.len : 400,
                      UI_DIM);
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
    if (ui_transcript_at_end(a->transcript) || a->overlay != NULL || a->palette != NULL) {
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

/* What the message costs; with a mark while a newer count is under way. */
static void draw_input(struct app *a, const struct parts *p) {
    struct ui_screen *s = &a->screen;
    char tokens[48] = "";
    size_t n = a->draft.known ? a->draft.tokens : a->draft.last;
    if (!ui_input_empty() && (a->draft.known || n > 0)) {
        snprintf(tokens, sizeof tokens, "%s%zu token%s", a->draft.known ? "" : "~", n,
                 n == 1 ? "" : "s");
    }
    int width = (int)strlen(tokens);
    int limit = s->cols - width - 2;
    if (ui_input_draw(s, p->input, p->n_input, limit) && width > 0 && limit > 4) {
        ui_screen_puts(s, p->input + p->n_input - 1, limit + 1, s->cols, tokens, UI_DIM);
    }
}

/* Before the first message ever: the few things to know. Only where nothing else stands. */
static void draw_first_hints(struct app *a, int row, int rows) {
    static const char *const lines[][2] = {
        {"Enter", "sends the message; Ctrl+J begins a new line"},
        {"F1", "all keys and commands"},
        {"F2", "finds a command, a setting, a preset"},
        {"Ctrl+C", "stops a reply; Ctrl+D or /exit leaves"},
        {"F5 F6", "less or more chance, in the middle of a reply"},
    };
    enum { N = sizeof lines / sizeof lines[0] };
    struct ui_screen *s = &a->screen;
    if (a->chat.n > 0 || !ui_input_history_empty() || rows < N + 2 || s->cols < 56) {
        return;
    }
    for (int r = 0; r < rows; r++) {
        struct cw_buf text = {0};
        ui_screen_row_text(s, row + r, &text);
        bool taken = text.len > 0;
        cw_buf_free(&text);
        if (taken && r >= rows - N - 1) {
            return;
        }
    }
    for (int i = 0; i < N; i++) {
        ui_screen_puts(s, row + rows - N - 1 + i, 3, s->cols, lines[i][0], UI_HELP_KEY);
        ui_screen_puts(s, row + rows - N - 1 + i, 12, s->cols, lines[i][1], UI_DIM);
    }
}

/* Resident memory, asked for at most once a second. */
static size_t memory_bytes(struct app *a) {
    bool moved = a->status.state != a->shown.status.state;
    if (a->shown.frame_s >= a->shown.memory_s + 1 || moved) {
        unsigned long whole, pages = 0;
        FILE *f = fopen("/proc/self/statm", "re");
        bool known = f != NULL && fscanf(f, "%lu %lu", &whole, &pages) == 2;
        if (f != NULL) {
            fclose(f);
        }
        a->shown.memory_s = a->shown.frame_s;
        return known ? (size_t)pages * (size_t)sysconf(_SC_PAGESIZE) : 0;
    }
    return a->status.memory_bytes;
}

void app_draw_keys(struct app *a, int row, const char *const *texts, size_t n) {
    struct ui_screen *s = &a->screen;
    size_t i = 0;
    while (i + 1 < n && (int)strlen(texts[i]) + 2 > s->cols) {
        i++;
    }
    ui_screen_puts(s, row, s->cols >= 16, s->cols, texts[i], UI_PROMPT);
    s->cursor_row = -1;
}

static const char *origin_of(const struct app *a, const char *option) {
    enum app_origin origin = app_settings_origin(a->settings, app_option_find(option));
    return origin == APP_BUILTIN ? NULL : app_origin_name(origin);
}

static void draw_status(struct app *a, int row) {
    const struct cw_model_info *info = app_model_info(a);
    struct ui_status *st = &a->status;
    st->model = info ? info->name : NULL;
    st->temp_origin = origin_of(a, "temp");
    st->top_p_origin = origin_of(a, "top-p");
    st->mode = ui_input_mode();
    st->memory_bytes = memory_bytes(a);
    const struct chat_message *last = chat_last(&a->chat);
    st->seed_known = last != NULL && last->role == CHAT_REPLY && last->n_runs > 0;
    st->seed = st->seed_known ? last->seed : 0;
    struct ui_status now = *st, *shown = &a->shown.status;
    bool works = st->state == UI_STATE_READING || st->state == UI_STATE_THINKING ||
                 st->state == UI_STATE_ANSWERING;
    if (works && cw_generator_paused(a->generator)) {
        now.state = UI_STATE_PAUSED;
    }
    /* figures that change with every token could not be read */
    a->shown.status_old =
        !a->urgent && now.state == shown->state && a->shown.frame_s < a->shown.status_s + STATUS_S;
    if (!a->shown.status_old) {
        *shown = now;
        a->shown.status_s = a->shown.frame_s;
    }
    shown->model = now.model; /* borrowed */
    shown->mode = now.mode;
    ui_statusbar_draw(&a->screen, row, shown);
}

/* The title of the window follows what the title row says. */
static void set_title(struct app *a) {
    char text[sizeof a->shown.title];
    if (!a->settings->title) {
        return;
    }
    const struct cw_model_info *info = app_model_info(a);
    struct cw_str called = conversation_name(a);
    char line[128] = "";
    cw_printable(line, sizeof line, called.data, called.len);
    snprintf(text, sizeof text, "%.64s%s%s", info ? info->name : "chinwag",
             line[0] != '\0' ? ": " : "", line);
    if (strcmp(text, a->shown.title) != 0) {
        snprintf(a->shown.title, sizeof a->shown.title, "%s", text);
        ui_term_title(text);
    }
}

void app_draw_no_title(struct app *a) {
    if (a->shown.title[0] != '\0') {
        ui_term_title(NULL);
        a->shown.title[0] = '\0';
    }
}

static void draw(struct app *a) {
    struct ui_screen *s = &a->screen;
    int rows, cols;
    ui_term_size(&rows, &cols);
    if (rows != s->rows || cols != s->cols) {
        ui_screen_resize(s, rows, cols);
        ui_input_resize(rows, cols);
    }
    ui_screen_clear(s);
    const struct app_mode *mode = a->mode;
    bool line = mode != NULL && mode->line != NULL;
    struct parts p = divide(rows, line ? 1 : ui_input_rows(cols));
    int panel = mode != NULL && mode->rows != NULL ? mode->rows(a, p.n_transcript) : 0;
    bool covers = panel >= p.n_transcript && panel > 0;
    ui_transcript_resize(a->transcript, covers ? p.n_transcript : p.n_transcript - panel, cols);
    if (p.title >= 0) {
        draw_title(a, p.title);
    }
    draw_rule(s, p.title_rule);
    if (!covers) {
        ui_transcript_draw(a->transcript, s, p.transcript);
        draw_first_hints(a, p.transcript, p.n_transcript - panel);
    }
    if (panel > 0) {
        mode->draw(a, p.transcript + p.n_transcript - panel, panel);
    }
    if (line) {
        mode->line(a, p.input);
    } else {
        draw_matches(a, &p);
        draw_input(a, &p);
        if (mode != NULL) {
            s->cursor_row = -1;
        }
    }
    draw_rule(s, p.rule);
    draw_rule(s, p.status_rule);
    if (p.rule >= 0) {
        draw_hint(a, p.rule, 2);
        draw_new_lines(a, p.rule);
    }
    if (p.status >= 0) {
        if (p.rule < 0 && a->hint[0] != '\0') {
            draw_hint(a, p.status, 0);
        } else {
            draw_status(a, p.status);
        }
    }
    set_title(a);
}

double app_draw_due(const struct app *a) {
    if (a->dirty) {
        return a->shown.frame_s + (a->urgent ? FRAME_S : ui_term_pause());
    }
    return a->shown.status_old ? a->shown.status_s + STATUS_S : -1;
}

void app_draw_tick(struct app *a, double now) {
    double due = app_draw_due(a);
    if (due >= 0 && now >= due) {
        a->dirty = false;
        a->shown.frame_s = now;
        draw(a);
        ui_term_blit(&a->screen);
        a->urgent = false;
    }
}
