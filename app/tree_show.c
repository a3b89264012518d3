/* SPDX-License-Identifier: MIT
 *
 * The transcript as a picture of the path.
 *
 * Changing the path keeps the blocks of what both paths begin with and makes the rest anew, between
 * two frames, so that nothing flickers and the view stays where it can. A block's tokens are told
 * to the transcript as they came, one for each id, for the lens.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app_impl.h"

static void remember_shown(struct app *a, const struct chat_message *m) {
    struct app_tree *t = &a->tree;
    t->shown = cw_reallocarray(t->shown, t->n_shown + 1, sizeof *t->shown);
    t->shown[t->n_shown++] = (struct app_shown){m, ui_transcript_last(a->transcript)};
}

/* ---- beside the headings -------------------------------------------------------------------- */

static const char *how_it_ended(const struct chat_message *m) {
    if (m->role != CHAT_REPLY || !m->done) {
        return NULL;
    }
    switch (m->stop) {
    case CW_STOP_CANCEL:
        return "stopped";
    case CW_STOP_LENGTH:
        return "cut at the limit of its length";
    case CW_STOP_CONTEXT:
        return "cut: the context is full";
    case CW_STOP_ERROR:
        return "broken off";
    case CW_STOP_EOG:
    case CW_STOP_STRING:
        break;
    }
    if (m->text.len == 0) {
        return m->reasoning.len == 0 ? "said nothing" : "ended while it thought";
    }
    return NULL;
}

/* Beside the heading of message i. */
static void show_note(struct app *a, size_t i) {
    const struct chat_message *m = a->chat.messages[i];
    uint32_t block = m->block != 0 ? m->block : m->thinking_block;
    const char *end = how_it_ended(m);
    struct cw_buf note = {0};
    size_t n;
    size_t at = chat_sibling(&a->chat, m, &n);
    if (block == 0) {
        return;
    }
    cw_buf_printf(&note, "%zu", i + 1);
    if (n > 1) {
        cw_buf_printf(&note, " · %zu/%zu", at + 1, n);
    }
    if (m->role == CHAT_REPLY && m->typed > 0 && m->stop != CW_STOP_STRING) {
        cw_buf_puts(&note, " · edited");
    }
    if (end != NULL) {
        cw_buf_printf(&note, " · %s", end);
    }
    ui_transcript_set_note(a->transcript, block, note.data);
    cw_buf_free(&note);
}

/* The same while a reply is being written; where a path is being shown all notes come at its end.
 */
static void note_last(struct app *a, const struct chat_message *m) {
    if (m == chat_last(&a->chat)) {
        show_note(a, a->chat.n - 1);
    }
}

/* ---- blocks of a message -------------------------------------------------------------------- */

/* The block that text goes to, made when it is first needed. Tokens that had no text so far are
 * counted then. */
static uint32_t block_of(struct app *a, struct chat_message *m, bool thinking) {
    uint32_t *block = thinking ? &m->thinking_block : &m->block;
    if (*block == 0) {
        char heading[160];
        const struct cw_model_info *info = app_model_info(a);
        const char *name = m->model != NULL               ? m->model
                           : m->typed > 0 && info != NULL ? info->name   /* edited here */
                                                          : "assistant"; /* imported */
        snprintf(heading, sizeof heading, "%s%s", name, thinking ? " (thinking)" : "");
        *block = ui_transcript_add(a->transcript, thinking ? UI_BLOCK_THINKING : UI_BLOCK_REPLY,
                                   heading);
        note_last(a, m);
    }
    return *block;
}

/* Append text that belongs to bytes from `at` on of the reply or its reasoning: blank lines on top
 * are kept but not shown. */
static void append(struct app *a, struct chat_message *m, bool thinking, size_t at,
                   const char *text, size_t n) {
    const struct cw_buf *whole = thinking ? &m->reasoning : &m->text;
    size_t top = 0;
    while (top < whole->len && whole->data[top] == '\n') {
        top++;
    }
    if (at + n <= top) {
        return;
    }
    size_t skip = at < top ? top - at : 0;
    ui_transcript_append(a->transcript, block_of(a, m, thinking), text + skip, n - skip);
}

/* Tell of token k, and of those before it that had no block yet. */
static void begin_token(struct app *a, struct chat_message *m, size_t k) {
    bool thinking = m->tokens[k].thinking;
    uint32_t block = thinking ? m->thinking_block : m->block;
    if (block == 0) {
        return; /* told when the block is made */
    }
    for (size_t i = m->told[thinking]; i <= k; i++) {
        if (m->tokens[i].thinking == thinking) {
            ui_transcript_token(a->transcript, block, (double)m->tokens[i].draw.p_raw);
        }
    }
    m->told[thinking] = k + 1;
}

void app_show_token(struct app *a, struct chat_message *m, bool first, bool thinking,
                    const char *text, size_t n) {
    const struct cw_buf *whole = thinking ? &m->reasoning : &m->text;
    bool fresh = (thinking ? m->thinking_block : m->block) == 0;
    if (fresh && whole->len > 0 && strspn(whole->data, "\n") < whole->len) {
        block_of(a, m, thinking);
    }
    if (first || fresh) {
        begin_token(a, m, m->ids.n - 1);
    }
    append(a, m, thinking, whole->len - n, text, n);
    if (!thinking && whole->len > 0) {
        ui_transcript_finish(a->transcript, m->thinking_block); /* the answer begins */
    }
}

void app_show_mark(struct app *a, struct chat_message *m, const char *label) {
    bool thinking = m->block == 0 && m->thinking_block != 0;
    ui_transcript_mark(a->transcript, block_of(a, m, thinking), label);
}

void app_show_done(struct app *a, struct chat_message *m) {
    block_of(a, m, false);
    ui_transcript_finish(a->transcript, m->thinking_block);
    ui_transcript_finish(a->transcript, m->block);
    note_last(a, m);
}

/* A reply as it came: its tokens in order, the text of each behind it, marks where they took
 * hold. */
static void show_reply(struct app *a, struct chat_message *m) {
    size_t change = 0, text = 0, reasoning = 0;
    for (size_t k = 0; k <= m->ids.n; k++) {
        bool end = k == m->ids.n;
        size_t to_text = end ? m->text.len : m->tokens[k].text_at;
        size_t to_reasoning = end ? m->reasoning.len : m->tokens[k].reasoning_at;
        if (to_reasoning > reasoning) {
            append(a, m, true, reasoning, m->reasoning.data + reasoning, to_reasoning - reasoning);
            reasoning = to_reasoning;
        }
        if (to_text > text) {
            append(a, m, false, text, m->text.data + text, to_text - text);
            text = to_text;
        }
        for (; change < m->n_changes && (end || m->changes[change].token <= k); change++) {
            struct cw_buf label = {0};
            chat_change_label(&m->changes[change].from, &m->changes[change].to, &label);
            if (label.len > 0) {
                app_show_mark(a, m, label.data);
            }
            cw_buf_free(&label);
        }
        if (!end) {
            begin_token(a, m, k);
        }
    }
    if (m->ids.n > 0) { /* the last ones may have had no text at all */
        begin_token(a, m, m->ids.n - 1);
    }
    if (m->done) {
        app_show_done(a, m);
    } else if (m->text.len > 0) {
        ui_transcript_finish(a->transcript, m->thinking_block);
    }
}

/* Where the context begins, when messages have left it. */
static void show_window(struct app *a, const struct chat_message *m, size_t i) {
    char line[160];
    snprintf(line, sizeof line,
             "What stands above has left the context: %zu messages. /restore brings it back.", i);
    app_tell(a, false, line, strlen(line));
    if (m->summary.len > 0) {
        struct cw_buf text = {0};
        cw_buf_puts(&text, "In its place the model has this summary: ");
        cw_buf_add(&text, m->summary.data, m->summary.len);
        app_tell(a, false, text.data, text.len);
        cw_buf_free(&text);
    }
}

static void show_message(struct app *a, size_t i) {
    struct chat_message *m = a->chat.messages[i];
    remember_shown(a, m);
    if (i > 0 && i == chat_window(&a->chat)) {
        show_window(a, m, i);
    }
    m->block = m->thinking_block = 0;
    m->told[0] = m->told[1] = 0;
    if (m->role == CHAT_REPLY) {
        show_reply(a, m);
        return;
    }
    m->block = ui_transcript_add(a->transcript, UI_BLOCK_USER, "you");
    ui_transcript_append(a->transcript, m->block, m->text.data ? m->text.data : "", m->text.len);
    ui_transcript_finish(a->transcript, m->block);
}

/* ---- the path ------------------------------------------------------------------------------- */

static void remove_from(struct app *a, size_t i) {
    struct app_tree *t = &a->tree;
    if (i < t->n_shown) {
        for (uint32_t b = ui_transcript_last(a->transcript); b > t->shown[i].after; b--) {
            ui_transcript_remove(a->transcript, b); /* from the end: nothing has to move up */
        }
        t->n_shown = i;
    }
}

/* Messages at the front that are shown as they should be. */
static size_t n_common(const struct app *a) {
    const struct app_tree *t = &a->tree;
    const struct chat_message *window =
        chat_window(&a->chat) > 0 ? a->chat.messages[chat_window(&a->chat)] : NULL;
    size_t i = 0;
    while (i < t->n_shown && i < a->chat.n && t->shown[i].message == a->chat.messages[i] &&
           (window == t->shown_window ||
            (a->chat.messages[i] != window && a->chat.messages[i] != t->shown_window))) {
        i++;
    }
    return i;
}

/* What the context held at the end of the path; a reply under way tells it itself. */
static void show_context(struct app *a) {
    const struct chat_message *last = chat_last(&a->chat);
    if (a->phase != APP_RUNNING) {
        a->status.ctx_used = last != NULL ? last->figures.n_ctx_used : 0;
    }
}

void app_show_path(struct app *a) {
    size_t common = n_common(a);
    show_context(a);
    remove_from(a, common);
    for (size_t i = common; i < a->chat.n; i++) {
        show_message(a, i);
    }
    size_t window = chat_window(&a->chat);
    a->tree.shown_window = window > 0 ? a->chat.messages[window] : NULL;
    app_show_notes(a);
    app_persist_changed(a);
    a->dirty = true;
}

void app_show_again(struct app *a) {
    remove_from(a, a->chat.n - 1);
    app_show_path(a);
}

void app_show_clear(struct app *a) {
    ui_transcript_clear(a->transcript);
    a->tree.n_shown = 0;
    a->tree.shown_window = NULL;
    a->tree.warned = false;
    app_show_path(a);
}

void app_show_forget(struct app *a, struct chat_message *m) {
    struct app_tree *t = &a->tree;
    for (size_t i = 0; i < t->n_shown; i++) {
        if (t->shown[i].message == m) {
            ui_transcript_remove(a->transcript, m->thinking_block);
            ui_transcript_remove(a->transcript, m->block);
            memmove(&t->shown[i], &t->shown[i + 1], (--t->n_shown - i) * sizeof *t->shown);
            return;
        }
    }
}

void app_show_notes(struct app *a) {
    a->status.branch = a->status.n_branches = 0;
    for (size_t i = 0; i < a->chat.n; i++) {
        size_t n;
        size_t at = chat_sibling(&a->chat, a->chat.messages[i], &n);
        if (n > 1) { /* the last one that branches is the one to tell of */
            a->status.branch = at + 1;
            a->status.n_branches = n;
        }
        show_note(a, i);
    }
}

bool app_block_token(const struct app *a, uint32_t block, size_t token, size_t *message,
                     size_t *index) {
    for (size_t i = 0; i < a->chat.n && block != 0; i++) {
        const struct chat_message *m = a->chat.messages[i];
        if (m->role != CHAT_REPLY || (m->block != block && m->thinking_block != block)) {
            continue;
        }
        bool thinking = m->thinking_block == block;
        size_t of_kind = 0;
        for (size_t k = 0; k < m->ids.n; k++) {
            if (m->tokens[k].thinking == thinking && of_kind++ == token) {
                *message = i;
                *index = k;
                return true;
            }
        }
        return false;
    }
    return false;
}
