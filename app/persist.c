/* SPDX-License-Identifier: MIT
 *
 * See persist.h.
 */
#include "app/persist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app_impl.h"
#include "app/persist_extra.h"
#include "chinwag/clock.h"
#include "chinwag/snapshot.h"
#include "chinwag/store.h"

static const double SAVE_S = 0.5;

enum {
    MAX_LISTED = 200,
    MARK_GIVEN = 1, /* of a token */
    MARK_FORCED = 2,
};

static struct cw_str str_of(const char *text) {
    return (struct cw_str){text != NULL ? text : "", text != NULL ? strlen(text) : 0};
}

static struct cw_str buf_str(const struct cw_buf *b) {
    return (struct cw_str){b->data != NULL ? b->data : "", b->len};
}

/* As the commands that delete without a chat have it. */
static void snapshot_key(char key[20], int64_t conversation) {
    snprintf(key, 20, "%016llx", (unsigned long long)conversation);
}

/* ---- saving --------------------------------------------------------------------------------- */

/* Tokens [from, to) as the store has them. Caller must free. */
static struct cw_store_token *tokens_of(const struct chat_message *m, size_t from, size_t to) {
    struct cw_store_token *out = cw_calloc(to - from + 1, sizeof *out);
    for (size_t k = from; k < to; k++) {
        const struct chat_token *t = &m->tokens[k];
        bool last = k + 1 == m->ids.n;
        size_t text = (last ? m->text.len : m->tokens[k + 1].text_at) - t->text_at;
        size_t reasoning =
            (last ? m->reasoning.len : m->tokens[k + 1].reasoning_at) - t->reasoning_at;
        out[k - from] = (struct cw_store_token){
            .draw = t->draw,
            .n_text = (uint32_t)(t->thinking ? reasoning : text),
            .thinking = t->thinking,
            .mark = (uint8_t)((t->given ? MARK_GIVEN : 0) | (t->forced ? MARK_FORCED : 0)),
        };
        out[k - from].draw.id = m->ids.v[k];
    }
    return out;
}

static struct cw_store_change *changes_of(const struct chat_message *m) {
    struct cw_store_change *out = cw_calloc(m->n_changes + 1, sizeof *out);
    for (size_t i = 0; i < m->n_changes; i++) {
        out[i] = (struct cw_store_change){m->changes[i].token, m->changes[i].offset,
                                          m->changes[i].from, m->changes[i].to};
    }
    return out;
}

enum { ARITHMETIC_NAME = 24 };

static void name_arithmetic(char name[ARITHMETIC_NAME], bool exact) {
    snprintf(name, ARITHMETIC_NAME, "%d%s", (int)CW_ARITHMETIC, exact ? " exact" : "");
}

/* What is settled of a reply: its last token may still get text. */
static size_t settled(const struct chat_message *m) {
    return m->done || m->ids.n == 0 ? m->ids.n : m->ids.n - 1;
}

static int put_conversation(struct app *a) {
    const struct chat *c = &a->chat;
    const struct cw_model_info *info = app_model_info(a);
    const struct cw_store_conversation row = {
        .id = (int64_t)c->id,
        .title = str_of(c->title),
        .model = str_of(info != NULL ? info->name : NULL),
        .hash = str_of(info != NULL ? cw_generator_model_hash(a->generator) : NULL),
        .system = str_of(a->settings->system),
    };
    return cw_store_put_conversation(a->persist.store, &row, NULL);
}

static int put_whole(struct app *a, struct chat_message *m) {
    size_t n = settled(m);
    bool all = n == m->ids.n;
    struct cw_store_token *tokens = tokens_of(m, 0, n);
    struct cw_store_change *changes = changes_of(m);
    struct cw_buf extra = {0};
    char arithmetic[ARITHMETIC_NAME];
    app_extra_write(m, &extra);
    name_arithmetic(arithmetic, m->exact);
    struct cw_store_message row = {
        .id = (int64_t)m->id,
        .parent = m->parent == a->chat.root ? 0 : (int64_t)m->parent->id,
        .conversation = (int64_t)a->chat.id,
        .role = m->role == CHAT_USER ? CW_STORE_USER : CW_STORE_REPLY,
        .created_ms = m->made_ms,
        .text = {buf_str(&m->text).data, all ? m->text.len : m->tokens[n].text_at},
        .reasoning = {buf_str(&m->reasoning).data,
                      all ? m->reasoning.len : m->tokens[n].reasoning_at},
        .tokens = tokens,
        .n_tokens = n,
        .changes = changes,
        .n_changes = m->n_changes,
        .done = m->done,
        .stop = m->stop,
        .seed = m->n_runs > 0 ? m->runs[0].seed : 0,
        .first_position = m->n_runs > 0 ? m->runs[0].position : 0,
        .figures = m->figures,
        .model = str_of(m->model),
        .hash = str_of(m->hash),
        .arithmetic = str_of(m->role == CHAT_REPLY ? arithmetic : NULL),
        .extra = buf_str(&extra),
    };
    if (m->n_runs > 0) {
        row.sampling = m->runs[0].sampling;
    }
    int rc = cw_store_put_message(a->persist.store, &row, NULL);
    if (rc == CW_OK) {
        m->dirty = false;
        m->saved.put = true;
        m->saved.done = m->done;
        m->saved.tokens = n;
        m->saved.text = row.text.len;
        m->saved.reasoning = row.reasoning.len;
        m->saved.changes = m->n_changes;
    }
    free(tokens);
    free(changes);
    cw_buf_free(&extra);
    return rc;
}

/* Only what came since. */
static int put_new(struct app *a, struct chat_message *m) {
    struct cw_store *s = a->persist.store;
    int rc = CW_OK;
    size_t n = settled(m);
    bool all = n == m->ids.n;
    size_t text = all ? m->text.len : m->tokens[n].text_at;
    size_t reasoning = all ? m->reasoning.len : m->tokens[n].reasoning_at;
    if (n > m->saved.tokens || text > m->saved.text || reasoning > m->saved.reasoning) {
        struct cw_store_token *tokens = tokens_of(m, m->saved.tokens, n);
        rc = cw_store_append(s, (int64_t)m->id, buf_str(&m->text).data + m->saved.text,
                             text - m->saved.text, buf_str(&m->reasoning).data + m->saved.reasoning,
                             reasoning - m->saved.reasoning, tokens, n - m->saved.tokens, NULL);
        free(tokens);
        if (rc == CW_OK) {
            m->saved.tokens = n;
            m->saved.text = text;
            m->saved.reasoning = reasoning;
        }
    }
    for (; rc == CW_OK && m->saved.changes < m->n_changes; m->saved.changes++) {
        const struct chat_change *c = &m->changes[m->saved.changes];
        const struct cw_store_change row = {c->token, c->offset, c->from, c->to};
        rc = cw_store_add_change(s, (int64_t)m->id, &row, NULL);
        if (rc != CW_OK) {
            break;
        }
    }
    if (rc == CW_OK && m->done && !m->saved.done) {
        rc = cw_store_finish(s, (int64_t)m->id, m->stop, &m->figures, NULL);
        m->saved.done = rc == CW_OK;
    }
    return rc;
}

static int save_message(struct app *a, struct chat_message *m) {
    bool shrunk = m->ids.n < m->saved.tokens || (!m->done && m->saved.done);
    if (!m->saved.put || m->dirty || shrunk) {
        return put_whole(a, m);
    }
    return put_new(a, m);
}

void app_persist_save(struct app *a) {
    struct app_persist *p = &a->persist;
    p->due_s = -1;
    if (p->store == NULL || p->off || a->chat.n_all == 0) {
        return;
    }
    int rc = CW_OK;
    if (!p->put) {
        rc = put_conversation(a);
        p->put = rc == CW_OK;
    }
    /* a message that was refused is handed over whole the next time */
    for (size_t i = 0; i < a->chat.n_all && rc == CW_OK; i++) {
        struct chat_message *m = a->chat.all[i];
        rc = save_message(a, m);
        m->dirty = m->dirty || rc != CW_OK;
    }
    const struct chat_message *leaf = chat_last(&a->chat);
    if (rc == CW_OK && a->chat.dirty) {
        rc = cw_store_set_leaf(p->store, (int64_t)a->chat.id, leaf != NULL ? (int64_t)leaf->id : 0,
                               NULL);
        a->chat.dirty = rc != CW_OK;
    }
    if (rc != CW_OK) {
        p->due_s = cw_now() + 2 * SAVE_S;
    }
}

void app_persist_changed(struct app *a) {
    if (a->persist.store != NULL && !a->persist.off && a->persist.due_s < 0) {
        a->persist.due_s = cw_now() + SAVE_S;
    }
}

void app_persist_tick(struct app *a, double now) {
    if (a->persist.due_s >= 0 && now >= a->persist.due_s) {
        app_persist_save(a);
    }
}

void app_persist_new(struct app *a) {
    a->persist.put = false;
    a->persist.due_s = -1;
}

/* ---- loading -------------------------------------------------------------------------------- */

static void take_tokens(struct chat_message *m, const struct cw_store_message *row) {
    size_t text = m->typed, reasoning = 0;
    m->tokens = cw_calloc(row->n_tokens + 1, sizeof *m->tokens);
    m->cap_tokens = row->n_tokens;
    for (size_t k = 0; k < row->n_tokens; k++) {
        const struct cw_store_token *t = &row->tokens[k];
        cw_ids_add(&m->ids, t->draw.id);
        m->tokens[k] = (struct chat_token){.draw = t->draw,
                                           .text_at = (uint32_t)text,
                                           .reasoning_at = (uint32_t)reasoning,
                                           .thinking = t->thinking,
                                           .given = (t->mark & MARK_GIVEN) != 0,
                                           .forced = (t->mark & MARK_FORCED) != 0};
        size_t *at = t->thinking ? &reasoning : &text;
        size_t end = t->thinking ? m->reasoning.len : m->text.len;
        *at = t->n_text < end - *at ? *at + t->n_text : end; /* whatever a file says */
    }
}

static void take_message(struct chat_message *m, const struct cw_store_message *row) {
    cw_buf_add(&m->text, row->text.data, row->text.len);
    cw_buf_add(&m->reasoning, row->reasoning.data, row->reasoning.len);
    m->made_ms = row->created_ms;
    m->figures = row->figures;
    m->stop = row->done ? (enum cw_stop)row->stop : CW_STOP_CANCEL;
    m->done = true;
    m->model = row->model.len > 0 ? cw_strndup(row->model.data, row->model.len) : NULL;
    m->hash = row->hash.len > 0 ? cw_strndup(row->hash.data, row->hash.len) : NULL;
    char exact[ARITHMETIC_NAME]; /* of another arithmetic: it can only be compared */
    name_arithmetic(exact, true);
    m->exact = row->arithmetic.len == strlen(exact) &&
               memcmp(row->arithmetic.data, exact, row->arithmetic.len) == 0;
    app_extra_typed(m, row->extra);
    if (m->role == CHAT_REPLY) {
        take_tokens(m, row);
        for (size_t i = 0; i < row->n_changes; i++) {
            m->changes = cw_reallocarray(m->changes, m->n_changes + 1, sizeof *m->changes);
            m->changes[m->n_changes++] =
                (struct chat_change){row->changes[i].token, (size_t)row->changes[i].offset,
                                     row->changes[i].from, row->changes[i].to};
        }
        app_extra_read(m, row->extra);
        if (m->n_runs == 0 && m->ids.n > 0) {
            m->runs = cw_calloc(1, sizeof *m->runs);
            m->runs[m->n_runs++] =
                (struct chat_run){0, row->first_position, row->seed, row->sampling};
        }
        m->seed = m->n_runs > 0 ? m->runs[m->n_runs - 1].seed : row->seed;
    }
    if (row->lost) {
        cw_buf_puts(&m->text, "(this message could not be recovered)");
        m->typed = m->text.len;
    }
    m->dirty = false;
    m->saved.put = true;
    m->saved.done = true;
    m->saved.tokens = m->ids.n;
    m->saved.text = m->text.len;
    m->saved.reasoning = m->reasoning.len;
    m->saved.changes = m->n_changes;
}

/* A message that cannot stand in a conversation of turns: what follows it follows `up` instead. */
struct left_out {
    int64_t id;
    struct chat_message *up; /* NULL: the beginning */
};

/* The messages of *ev into the empty chat; returns how many have no place in it. */
static size_t take_messages(struct chat *c, const struct cw_store_event *ev) {
    struct left_out *out = NULL;
    size_t n_out = 0, n_lost = 0;
    for (size_t i = 0; i < ev->n_messages; i++) {
        const struct cw_store_message *row = &ev->messages[i];
        struct chat_message *parent = row->parent != 0 ? chat_find(c, (uint64_t)row->parent) : NULL;
        bool placed = parent != NULL || row->parent == 0;
        for (size_t k = n_out; !placed && k-- > 0;) {
            placed = out[k].id == row->parent;
            parent = placed ? out[k].up : NULL;
        }
        bool known = row->role == CW_STORE_USER || row->role == CW_STORE_REPLY;
        struct chat_message *m =
            known && placed
                ? chat_import(c, parent, row->role == CW_STORE_USER ? CHAT_USER : CHAT_REPLY,
                              (uint64_t)row->id)
                : NULL;
        if (m != NULL) {
            take_message(m, row);
            continue;
        }
        n_lost++;
        if (placed) {
            out = cw_reallocarray(out, n_out + 1, sizeof *out);
            out[n_out++] = (struct left_out){row->id, parent};
        }
    }
    free(out);
    return n_lost;
}

static void loaded(struct app *a, const struct cw_store_event *ev) {
    struct chat *c = &a->chat;
    app_persist_save(a);
    if (a->persist.put && c->id != (uint64_t)ev->conversation.id) {
        cw_store_release(a->persist.store, (int64_t)c->id);
    }
    chat_clear(c);
    c->id = (uint64_t)ev->conversation.id;
    const struct cw_str title = ev->conversation.title;
    c->title = title.len > 0 ? cw_strndup(title.data, title.len) : NULL;
    size_t left_out = take_messages(c, ev);
    for (size_t i = 0; i < c->n_all; i++) { /* what names other messages */
        app_extra_link(c, c->all[i]);
    }
    struct chat_message *leaf = chat_find(c, (uint64_t)ev->conversation.leaf);
    if (leaf != NULL) {
        chat_go(c, leaf);
    } else if (c->root != NULL && c->root->n_children > 0) {
        chat_go_deep(c, c->root->children[c->root->n_children - 1]);
    }
    const struct chat_message *unanswered = NULL;
    if (c->n > 0 && chat_last(c)->role == CHAT_USER) { /* nobody came to answer it */
        unanswered = chat_last(c);
        chat_cut(c, c->n - 1);
    }
    if (c->n > 0 && chat_last(c)->window != NULL) {
        c->window = chat_last(c)->window;
    }
    chat_mark(c);
    if (c->n_places > 0) { /* there is nothing to undo yet */
        c->places[0] = c->places[c->at];
        c->n_places = 1;
        c->at = 0;
    }
    c->dirty = false;
    a->persist.put = true;
    const char *system =
        cw_strndup(ev->conversation.system.data ? ev->conversation.system.data : "",
                   ev->conversation.system.len);
    if (system[0] != '\0' &&
        app_settings_origin(a->settings, app_option_find("system")) != APP_FLAG) {
        app_settings_set(a->settings, app_option_find("system"), system, APP_LIVE, NULL);
    }
    free((char *)system);
    app_show_clear(a);
    ui_transcript_to_end(a->transcript);
    if (!ev->owned) {
        static const char text[] = "This conversation is open in another program: what is written "
                                   "here becomes a branch of it, nothing is overwritten.";
        app_tell(a, false, text, sizeof text - 1);
    }
    if (unanswered != NULL && unanswered->text.len > 0 && ui_input_empty()) {
        static const char text[] = "The last message has no reply yet: Enter sends it.";
        ui_input_set(unanswered->text.data);
        app_tell(a, false, text, sizeof text - 1);
    }
    if (left_out > 0) {
        char text[120];
        snprintf(text, sizeof text, "%zu message%s of another role, or out of turn: not shown.",
                 left_out, left_out == 1 ? " is" : "s are");
        app_tell(a, false, text, strlen(text));
    }
}

/* ---- events --------------------------------------------------------------------------------- */

static void on_store(struct app *a, const struct cw_store_event *ev) {
    struct app_persist *p = &a->persist;
    switch (ev->kind) {
    case CW_STORE_OPEN:
        break;
    case CW_STORE_SAVED:
        if (p->trouble) {
            p->trouble = false;
            app_hint(a, false, "the conversation is saved again");
        }
        break;
    case CW_STORE_TROUBLE:
        if (!p->trouble) {
            struct cw_buf text = {0};
            p->trouble = true;
            cw_buf_printf(&text,
                          "The conversation cannot be saved now: %s. It goes on in memory "
                          "and is saved as soon as that is possible.",
                          ev->text);
            app_tell(a, true, text.data, text.len);
            cw_buf_free(&text);
        }
        break;
    case CW_STORE_NOTICE:
    case CW_STORE_MENDED:
        app_tell(a, ev->kind == CW_STORE_MENDED, ev->text, strlen(ev->text));
        break;
    case CW_STORE_LIST:
        if (ev->serial == p->listing) {
            app_persist_show_list(a, ev);
        }
        break;
    case CW_STORE_LOADED:
        if (ev->serial == p->ours && app_can_move(a, false)) {
            loaded(a, ev);
        }
        break;
    case CW_STORE_FAILED:
        if (ev->serial == p->listing && a->mode == &app_mode_chooser) {
            app_enter(a, NULL);
        }
        if (ev->serial == p->ours || (ev->serial == p->listing && p->list != APP_LIST_PALETTE)) {
            if (a->phase == APP_LOADING) { /* of --resume: no line that the next one takes away */
                app_tell(a, true, ev->text, strlen(ev->text));
            } else {
                app_hint(a, true, "%s", ev->text);
            }
        }
        break;
    }
    a->dirty = true;
}

void app_persist_drain(struct app *a) {
    struct cw_store_event *ev;
    if (a->persist.store == NULL) {
        return;
    }
    cw_store_ack(a->persist.store);
    while ((ev = cw_store_next(a->persist.store)) != NULL) {
        on_store(a, ev);
        cw_store_event_free(ev);
    }
}

const char *app_persist_key(struct app *a) {
    struct app_persist *p = &a->persist;
    if (p->store == NULL || p->off) {
        return NULL;
    }
    snapshot_key(p->key, (int64_t)a->chat.id);
    return p->key;
}

int app_persist_fd(const struct app *a) {
    return a->persist.store != NULL ? cw_store_fd(a->persist.store) : -1;
}

/* ---- asking for things ---------------------------------------------------------------------- */

static bool has_store(struct app *a) {
    if (a->persist.store == NULL) {
        app_hint(a, true,
                 "nothing is kept in this chat: it is private, or there is no place for it");
        return false;
    }
    return true;
}

bool app_persist_ask(struct app *a, enum app_list list, const char *query) {
    struct app_persist *p = &a->persist;
    if (list == APP_LIST_PALETTE ? p->store == NULL : !has_store(a)) {
        return false;
    }
    app_persist_save(a); /* what is at hand is one of them */
    p->list = list;
    p->listing = ++p->serial;
    cw_store_list(p->store, query, MAX_LISTED, p->listing);
    return true;
}

void app_persist_load(struct app *a, const char *name) {
    struct app_persist *p = &a->persist;
    int64_t n;
    if (!has_store(a) || !app_can_move(a, false)) {
        return;
    }
    app_persist_save(a);
    p->ours = ++p->serial;
    if (name[0] == '\0') {
        cw_store_load(p->store, 0, p->ours);
    } else if (app_parse_int64(name, &n) && n >= 1 && (uint64_t)n <= p->n_hits) {
        cw_store_load(p->store, p->hits[n - 1], p->ours);
    } else {
        cw_store_load_name(p->store, name, true, p->ours);
    }
}

void app_persist_rename(struct app *a, const char *title) {
    if (!has_store(a)) {
        return;
    }
    free(a->chat.title);
    a->chat.title = title[0] != '\0' ? cw_strdup(title) : NULL;
    app_persist_save(a);
    if (a->persist.put) {
        cw_store_rename(a->persist.store, (int64_t)a->chat.id, title, strlen(title), NULL);
    }
    app_hint(a, false, "the conversation is called %s", title[0] ? title : "by its first line");
}

void app_persist_delete(struct app *a) {
    if (!has_store(a) || !app_can_move(a, false)) {
        return;
    }
    if (!a->persist.put) {
        app_hint(a, true, "this conversation is not kept: /new forgets it");
        return;
    }
    struct app_persist *p = &a->persist;
    p->deleted = cw_reallocarray(p->deleted, p->n_deleted + 1, sizeof *p->deleted);
    p->deleted[p->n_deleted++] = (int64_t)a->chat.id;
    cw_store_delete(p->store, (int64_t)a->chat.id, NULL);
    chat_clear(&a->chat);
    app_persist_new(a);
    app_show_clear(a);
    app_hint(a, false, "deleted; /undelete brings it back until the program ends");
}

void app_persist_undelete(struct app *a) {
    if (!has_store(a)) {
        return;
    }
    struct app_persist *p = &a->persist;
    if (p->n_deleted == 0) {
        app_hint(a, true, "nothing was deleted");
        return;
    }
    if (!app_can_move(a, false)) {
        return;
    }
    int64_t id = p->deleted[--p->n_deleted];
    cw_store_undelete(p->store, id, NULL);
    p->ours = ++p->serial;
    cw_store_load(p->store, id, p->ours);
}

void app_persist_private(struct app *a, bool on) {
    bool was_put = a->persist.put;
    if (!on) {
        a->persist.off = false;
        app_persist_changed(a);
    } else if (!a->persist.off) {
        app_persist_save(a); /* what was said before stays as it was promised */
        a->persist.off = true;
        a->persist.due_s = -1;
    }
    a->status.is_private = a->persist.off;
    app_hint(a, false, "%s%s",
             a->persist.off ? "private: nothing from here on is kept" : "what is said is kept",
             a->persist.off && was_put ? "; what was said before stays, /delete removes it" : "");
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static uint64_t give_id(void *arg) {
    return (uint64_t)cw_store_new_id(arg);
}

void app_persist_open(struct app *a) {
    struct app_persist *p = &a->persist;
    struct cw_err err = {0};
    p->due_s = -1;
    if (a->settings->keep_private) {
        p->off = true;
        a->status.is_private = true;
        return;
    }
    const char *dir = a->paths->data;
    if (dir == NULL || dir[0] == '\0') {
        struct cw_buf text = {0};
        cw_buf_printf(&text, "The conversation will not be kept: %s", a->paths->reason);
        app_tell(a, false, text.data, text.len);
        cw_buf_free(&text);
        return;
    }
    const struct cw_store_options opt = {.dir = dir};
    if (cw_store_create(&p->store, &opt, &err) != CW_OK) {
        p->store = NULL;
        app_tell(a, true, err.text, strlen(err.text));
        return;
    }
    a->chat.give_id = give_id;
    a->chat.give_arg = p->store;
    a->chat.id = give_id(p->store);
    if (a->settings->go_on) {
        app_persist_load(a, "");
    } else if (a->settings->resume != NULL && a->settings->resume[0] != '\0') {
        app_persist_load(a, a->settings->resume);
    }
}

void app_persist_close(struct app *a) {
    struct cw_err err = {0};
    app_persist_save(a);
    if (a->persist.store != NULL && cw_store_destroy(a->persist.store, &err) != CW_OK) {
        fprintf(stderr, "chinwag: conversations: %s\n", err.text);
    }
    a->persist.store = NULL;
    for (size_t i = 0; i < a->persist.n_deleted && a->paths->cache[0] != '\0'; i++) {
        char key[20];
        snapshot_key(key, a->persist.deleted[i]);
        if (cw_snapshots_remove(a->paths->cache, key, &err) != CW_OK) {
            fprintf(stderr, "chinwag: %s\n", err.text);
        }
    }
    free(a->persist.deleted);
    a->persist.deleted = NULL;
    free(a->persist.hits);
    a->persist.hits = NULL;
}
