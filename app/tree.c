/* SPDX-License-Identifier: MIT
 *
 * Moves in the conversation's tree. Each is one step of undo; none loses a word: what is left
 * behind stays as a branch beside the new one.
 */
#include "app/tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "app/app_impl.h"
#include "chinwag/clock.h"
#include "ui/columns.h"
#include "ui/treeview.h"

uint64_t app_random_seed(void) {
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) {
        seed = (uint64_t)(cw_now() * 1e9); /* early in a boot: better than the same for all */
    }
    return seed;
}

/* ---- other replies -------------------------------------------------------------------------- */

bool app_regenerate_several(struct app *a, size_t n) {
    if (!app_can_move(a, true)) {
        return false;
    }
    if (n > 1 && !cw_generator_has_template(a->generator)) {
        app_hint(a, true, "a model without a chat template gives one reply at a time");
        return false;
    }
    struct app_tree *t = &a->tree;
    size_t i = a->chat.n - 1;
    chat_mark(&a->chat);
    struct chat_message *first = chat_add_sibling(&a->chat, i);
    t->n_several = 0;
    if (n > 1) {
        t->several[t->n_several++] = first;
        while (t->n_several < n) {
            t->several[t->n_several++] = chat_add_sibling(&a->chat, i);
        }
        chat_go(&a->chat, first);
    }
    t->picking = n > 1;
    t->picked = 0;
    chat_mark(&a->chat);
    app_show_path(a);
    if (!app_start(a, cw_now(), false, n)) {
        return false;
    }
    if (t->picking) {
        app_enter(a, &app_mode_several);
    }
    return true;
}

bool app_regenerate(struct app *a) {
    return app_regenerate_several(a, 1);
}

bool app_continue(struct app *a) {
    if (!app_can_move(a, true)) {
        return false;
    }
    struct chat_message *m = chat_last(&a->chat);
    m->done = false;
    app_show_notes(a);
    bool started = app_start(a, cw_now(), true, 1);
    if (!started) {
        m->done = true;
        app_show_notes(a);
    } else {
        app_show_again(a); /* unfolded where it thinks on, and without an end token */
        app_plain_goes_on(a);
    }
    return started;
}

bool app_branch_at(struct app *a, size_t message, size_t token, int32_t id) {
    if (!app_can_move(a, true)) {
        return false;
    }
    struct chat_message *from = message < a->chat.n ? a->chat.messages[message] : NULL;
    if (from == NULL || from->role != CHAT_REPLY || token >= from->ids.n) {
        app_hint(a, true, "there is no such token");
        return false;
    }
    const struct cw_tokenizer *tok = cw_generator_tokenizer(a->generator);
    if (id < 0 || id >= cw_tokenizer_n_tokens(tok)) {
        app_hint(a, true, "the vocabulary has no token %d", id);
        return false;
    }
    chat_mark(&a->chat);
    struct chat_message *m = chat_add_sibling(&a->chat, message);
    chat_message_copy_head(m, from, token);
    struct cw_draw draw = from->tokens[token].draw;
    for (int k = 0; k < draw.n_alternatives; k++) {
        if (draw.alternatives[k].id == id) {
            draw.p = draw.alternatives[k].p;
            draw.p_raw = draw.alternatives[k].p_raw;
            draw.rank = k;
        }
    }
    draw.id = id;
    bool thinking = from->tokens[token].thinking;
    struct cw_buf piece = {0};
    cw_tokenizer_piece(tok, id, false, false, &piece);
    chat_message_token(m, &draw, thinking, piece.data ? piece.data : "", piece.len);
    m->tokens[token].given = true;
    cw_buf_free(&piece);
    /* half a character that had not been shown yet belongs to the text as well */
    struct cw_buf whole = {0};
    cw_tokenizer_decode(tok, m->ids.v, m->ids.n, false, &whole);
    if (m->reasoning.len == 0 && m->typed == 0 && whole.len > m->text.len &&
        memcmp(whole.data, m->text.data, m->tokens[token].text_at) == 0) {
        cw_buf_clear(&m->text);
        cw_buf_add(&m->text, whole.data, whole.len);
    }
    cw_buf_free(&whole);
    chat_mark(&a->chat);
    if (cw_tokenizer_is_eog(tok, id)) {
        m->done = true;
        m->stop = CW_STOP_EOG;
        app_show_path(a);
        return true;
    }
    m->stop = CW_STOP_CANCEL;
    app_show_path(a);
    bool started = app_start(a, cw_now(), true, 1);
    m->done = !started;
    app_show_notes(a);
    return started;
}

/* ---- back and forth ------------------------------------------------------------------------- */

static bool is_text_of(const struct chat_message *m, const char *text, size_t n) {
    return m->text.len == n && (n == 0 || memcmp(m->text.data, text, n) == 0);
}

/* Into the conversation that this one is a copy of. */
static bool unfork(struct app *a) {
    struct app_tree *t = &a->tree;
    if (t->n_shelf == 0) {
        return false;
    }
    app_persist_save(a);
    chat_free(&a->chat);
    a->chat = t->shelf[--t->n_shelf];
    app_persist_new(a);
    a->persist.put = a->chat.n_all > 0 && a->chat.all[0]->saved.put;
    app_show_clear(a);
    app_hint(a, false, "back in the conversation that was copied");
    return true;
}

bool app_undo(struct app *a) {
    if (!app_can_move(a, false)) {
        return false;
    }
    struct chat_message *was = chat_last(&a->chat);
    if (!chat_undo(&a->chat)) {
        if (unfork(a)) {
            return true;
        }
        app_hint(a, true, "there is nothing to undo");
        return false;
    }
    app_show_path(a);
    /* a question that was taken back goes to the person who asked it */
    struct chat_message *question = was != NULL && was->role == CHAT_REPLY ? was->parent : NULL;
    if (question != NULL && chat_index(&a->chat, question) == SIZE_MAX && ui_input_empty() &&
        question->parent == (a->chat.n > 0 ? chat_last(&a->chat) : a->chat.root)) {
        ui_input_set(question->text.data ? question->text.data : "");
    }
    app_hint(a, false, "undone: /redo brings it back");
    return true;
}

bool app_redo(struct app *a) {
    if (!app_can_move(a, false)) {
        return false;
    }
    if (!chat_redo(&a->chat)) {
        app_hint(a, true, "there is nothing to redo");
        return false;
    }
    size_t n;
    const char *text = ui_input_text(&n);
    for (size_t i = 0; i < a->chat.n; i++) {
        if (n > 0 && a->chat.messages[i]->role == CHAT_USER && i + 2 >= a->chat.n &&
            is_text_of(a->chat.messages[i], text, n)) {
            ui_input_clear(); /* undo had put it there */
            break;
        }
    }
    app_show_path(a);
    ui_transcript_to_end(a->transcript);
    return true;
}

bool app_sibling(struct app *a, int step) {
    if (!app_can_move(a, false)) {
        return false;
    }
    size_t n = 1, at = 0;
    size_t i = a->chat.n;
    while (n < 2 && i > 0) {
        at = chat_sibling(&a->chat, a->chat.messages[--i], &n);
    }
    if (n < 2) {
        app_hint(a, true, "there are no branches yet: /regen and /edit make them");
        return false;
    }
    chat_mark(&a->chat);
    if (!chat_select(&a->chat, i, step)) {
        app_hint(a, false, "message %zu is at its %s branch, %zu/%zu", i + 1,
                 step < 0 ? "first" : "last", at + 1, n);
        return false;
    }
    chat_mark(&a->chat);
    app_show_path(a);
    app_hint(a, false, "message %zu: branch %zu/%zu", i + 1,
             step < 0 ? at + 1 - (size_t)-step : at + 1 + (size_t)step, n);
    return true;
}

/* ---- editing -------------------------------------------------------------------------------- */

static bool edit(struct app *a, size_t i, const char *text) {
    bool reply = a->chat.messages[i]->role == CHAT_REPLY;
    if (text[0] == '\0') {
        app_hint(a, true, "an empty message says nothing: /undo takes one back");
        return false;
    }
    chat_mark(&a->chat);
    struct chat_message *m = chat_add_sibling(&a->chat, i);
    cw_buf_puts(&m->text, text);
    m->made_ms = app_wall_ms();
    m->done = true;
    if (reply) {
        m->typed = m->text.len;
        m->stop = CW_STOP_EOG;
        chat_mark(&a->chat);
        app_show_path(a);
        app_hint(a, false, "message %zu is edited: /continue lets the model go on from there",
                 i + 1);
        return true;
    }
    chat_add(&a->chat, CHAT_REPLY);
    chat_mark(&a->chat);
    app_show_path(a);
    return app_start(a, cw_now(), false, 1);
}

bool app_edit(struct app *a, size_t i, const char *text) {
    if (!app_can_move(a, true)) {
        return false;
    }
    if (i >= a->chat.n) {
        app_hint(a, true, "there are %zu messages", a->chat.n);
        return false;
    }
    if (text != NULL) {
        return edit(a, i, text);
    }
    const struct chat_message *m = a->chat.messages[i];
    ui_input_clear();
    ui_input_paste(m->text.data ? m->text.data : "", m->text.len);
    a->tree.editing = m->id;
    app_hint(a, false, "editing message %zu: Enter makes a branch of it, Ctrl+C leaves it", i + 1);
    return true;
}

bool app_edit_sent(struct app *a, const char *text) {
    if (a->tree.editing == 0) {
        return false;
    }
    struct chat_message *m = chat_find(&a->chat, a->tree.editing);
    size_t i = m != NULL ? chat_index(&a->chat, m) : SIZE_MAX;
    if (i == SIZE_MAX) {
        a->tree.editing = 0;
        return false; /* gone elsewhere meanwhile: an ordinary message */
    }
    if (!app_can_move(a, true)) {
        ui_input_set(text);
        return true;
    }
    a->tree.editing = 0;
    edit(a, i, text);
    return true;
}

bool app_fork(struct app *a) {
    if (!app_can_move(a, true)) {
        return false;
    }
    struct app_tree *t = &a->tree;
    struct chat copy;
    chat_fork(&a->chat, &copy, app_random_seed());
    t->shelf = cw_reallocarray(t->shelf, t->n_shelf + 1, sizeof *t->shelf);
    app_persist_save(a);
    t->shelf[t->n_shelf++] = a->chat;
    a->chat = copy;
    app_persist_new(a);
    app_show_clear(a);
    app_hint(a, false, "this is a copy of the conversation; /undo goes back to the other one");
    return true;
}

/* ---- the overlay of the tree ---------------------------------------------------------------- */

void app_go_to(struct app *a, struct chat_message *m) {
    if (!app_can_move(a, false)) {
        return;
    }
    if (m->role == CHAT_USER && m->n_children > 0) {
        m = m->chosen != NULL ? m->chosen : m->children[0]; /* with its reply */
    }
    chat_mark(&a->chat);
    chat_go(&a->chat, m);
    chat_mark(&a->chat);
    app_show_path(a);
    ui_transcript_to_end(a->transcript);
}

static void close_view(struct app *a) {
    ui_treeview_destroy(a->tree.view);
    a->tree.view = NULL;
}

void app_show_tree(struct app *a) {
    struct app_tree *t = &a->tree;
    if (a->chat.n_all == 0) {
        app_hint(a, true, "there is no message yet");
        return;
    }
    app_enter(a, NULL);
    t->view = ui_treeview_create("Branches of this conversation");
    for (size_t i = 0; i < a->chat.n_all; i++) {
        const struct chat_message *m = a->chat.all[i];
        ui_treeview_add(t->view, m->id, m->parent == a->chat.root ? 0 : m->parent->id,
                        m->role == CHAT_USER, chat_index(&a->chat, m) != SIZE_MAX,
                        m->text.data ? m->text.data : "", m->text.len);
    }
    const struct chat_message *last = chat_last(&a->chat);
    ui_treeview_select(t->view, last != NULL ? last->id : 0);
    if (a->plain != NULL) {
        struct cw_buf text = {0};
        ui_treeview_text(t->view, &text);
        app_plain_page(a, &text);
        cw_buf_free(&text);
        close_view(a);
        return;
    }
    app_enter(a, &app_mode_tree);
}

static bool view_key(struct app *a, const struct ui_key *key) {
    struct ui_treeview *v = a->tree.view;
    int page = a->screen.rows > 8 ? a->screen.rows - 8 : 1;
    switch (key->code) {
    case UI_KEY_UP:
    case 'k':
        ui_treeview_move(v, -1);
        break;
    case UI_KEY_DOWN:
    case 'j':
        ui_treeview_move(v, 1);
        break;
    case UI_KEY_PGUP:
        ui_treeview_move(v, -page);
        break;
    case UI_KEY_PGDN:
        ui_treeview_move(v, page);
        break;
    case UI_KEY_HOME:
        ui_treeview_move(v, -1000000);
        break;
    case UI_KEY_END:
        ui_treeview_move(v, 1000000);
        break;
    case UI_KEY_ENTER: {
        struct chat_message *m = chat_find(&a->chat, ui_treeview_selected(v));
        app_enter(a, NULL);
        if (m != NULL) {
            app_go_to(a, m);
        }
        break;
    }
    default: {
        enum ui_action action = ui_keymap_find(key->code, key->mods);
        if ((key->mods == 0 && (key->code == UI_KEY_ESC || key->code == 'q')) ||
            action == UI_ACT_INTERRUPT || action == UI_ACT_LEAVE) {
            app_enter(a, NULL);
            break;
        }
        return false;
    }
    }
    a->dirty = true;
    return true;
}

static int all_rows(struct app *a, int rows) {
    return rows;
}

static void draw_view(struct app *a, int row, int rows) {
    ui_treeview_draw(a->tree.view, &a->screen, row, rows);
}

const struct app_mode app_mode_tree = {
    .key = view_key, .close = close_view, .rows = all_rows, .draw = draw_view};

/* ---- several replies side by side ----------------------------------------------------------- */

static void pick(struct app *a, size_t r) {
    struct app_tree *t = &a->tree;
    t->picking = false;
    chat_go(&a->chat, t->several[r]);
    chat_mark(&a->chat);
    if (a->phase != APP_RUNNING) {
        t->n_several = 0;
    }
    app_show_again(a); /* also the first, which the path went through while it was not shown */
    ui_transcript_to_end(a->transcript);
    app_hint(a, false, "the other replies stay as branches");
}

static bool pick_key(struct app *a, const struct ui_key *key) {
    struct app_tree *t = &a->tree;
    size_t n = t->n_several;
    enum ui_action action = ui_keymap_find(key->code, key->mods);
    bool plain = key->mods == 0;
    bool digit = key->code >= '0' && key->code <= '9';
    a->dirty = true;
    /* a digit within what somebody types is no choice */
    t->typing = plain && key->code >= ' ' && key->code < UI_KEY_NONE && (t->typing || !digit);
    if (action == UI_ACT_INTERRUPT || action == UI_ACT_STOP) {
        if (!app_cancel(a)) {
            app_enter(a, NULL);
        }
    } else if (plain && !t->typing && key->code >= '1' && key->code < '1' + n) {
        t->picked = key->code - '1';
        app_enter(a, NULL);
    } else if (plain && key->code == UI_KEY_ENTER) {
        app_enter(a, NULL);
    } else if (plain && (key->code == UI_KEY_LEFT || key->code == UI_KEY_UP)) {
        t->picked -= t->picked > 0;
    } else if (plain && (key->code == UI_KEY_RIGHT || key->code == UI_KEY_DOWN)) {
        t->picked += t->picked + 1 < n;
    } else if (plain && key->code == UI_KEY_TAB) {
        t->picked = t->picked + 1 < n ? t->picked + 1 : 0;
    } else if (action == UI_ACT_SUSPEND || action == UI_ACT_REDRAW) {
        return false;
    } else if (!app_act_live(a, action)) { /* nothing leads elsewhere before one is taken */
        app_hint(a, false,
                 "nothing can be typed here: arrows mark a reply, Enter or its number takes it");
    }
    return true;
}

static void draw_several(struct app *a, int row, int rows) {
    const struct app_tree *t = &a->tree;
    struct ui_column columns[CW_MAX_REPLIES];
    for (size_t r = 0; r < t->n_several; r++) {
        const struct chat_message *m = t->several[r];
        const struct cw_buf *text = m->text.len > 0 ? &m->text : &m->reasoning;
        columns[r] = (struct ui_column){.text = text->data ? text->data : "",
                                        .len = text->len,
                                        .thinking = m->text.len == 0 && m->reasoning.len > 0,
                                        .done = m->done};
    }
    ui_columns_draw(&a->screen, row, rows, columns, t->n_several, t->picked);
}

/* Left without a choice: the marked one it is. */
static void leave_several(struct app *a) {
    if (a->tree.picking && a->tree.n_several > 0) {
        pick(a, a->tree.picked);
    }
}

static void several_line(struct app *a, int row) {
    static const char *const running[] = {
        "pick: arrows mark a reply, Enter or its number takes it, Esc stops them",
        "Enter or a number takes one, Esc stops", "Enter takes, Esc stops", "Enter takes"};
    static const char *const done[] = {
        "pick: arrows mark a reply, Enter or its number takes it, Esc takes the marked one",
        "Enter or a number takes one, Esc the marked", "Enter, Esc take it", "Enter takes"};
    app_draw_keys(a, row, a->phase == APP_RUNNING ? running : done, sizeof done / sizeof done[0]);
}

const struct app_mode app_mode_several = {.key = pick_key,
                                          .close = leave_several,
                                          .rows = all_rows,
                                          .draw = draw_several,
                                          .line = several_line};

bool app_edit_cancel(struct app *a) {
    if (a->tree.editing == 0) {
        return false;
    }
    a->tree.editing = 0;
    ui_input_clear();
    app_hint(a, false, "the message stays as it is");
    return true;
}

void app_tree_free(struct app *a) {
    struct app_tree *t = &a->tree;
    for (size_t i = 0; i < t->n_shelf; i++) {
        chat_free(&t->shelf[i]);
    }
    free(t->shelf);
    free(t->shown);
    cw_buf_free(&t->summary);
    *t = (struct app_tree){0};
}
