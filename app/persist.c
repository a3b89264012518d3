/* SPDX-License-Identifier: MIT
 *
 * See persist.h.
 */
#include "app/persist.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app_impl.h"
#include "app/persist_rows.h"
#include "app/personas.h"
#include "chinwag/clock.h"
#include "chinwag/store.h"
#include "ui/input.h"

static const double SAVE_S = 0.5;

enum { MAX_LISTED = 200 };

static struct cw_str str_of(const char *text) {
    return (struct cw_str){text != NULL ? text : "", text != NULL ? strlen(text) : 0};
}

static struct cw_str buf_str(const struct cw_buf *b) {
    return (struct cw_str){b->data != NULL ? b->data : "", b->len};
}

/* ---- saving --------------------------------------------------------------------------------- */

static void keep_head(struct app_persist *p, struct cw_str system, struct cw_str persona) {
    free(p->system);
    free(p->persona);
    p->system = cw_strndup(system.len > 0 ? system.data : "", system.len);
    p->persona = cw_strndup(persona.len > 0 ? persona.data : "", persona.len);
}

static struct cw_store_conversation conversation_row(const struct app *a) {
    const struct cw_model_info *info = app_model_info(a);
    return (struct cw_store_conversation){
        .id = (int64_t)a->chat.id,
        .title = str_of(a->chat.title),
        .model = str_of(info != NULL ? info->name : NULL),
        .hash = str_of(info != NULL ? cw_generator_model_hash(a->generator) : NULL),
        .system = str_of(a->settings->system),
        .settings = str_of(a->settings->persona),
    };
}

/* The head of the conversation, where the store has another. */
static int save_head(struct app *a) {
    struct app_persist *p = &a->persist;
    const struct cw_store_conversation row = conversation_row(a);
    if (p->put && p->system != NULL && cw_str_eq(row.system, p->system) &&
        cw_str_eq(row.settings, p->persona)) {
        return CW_OK;
    }
    int rc = cw_store_put_conversation(p->store, &row, NULL);
    if (rc == CW_OK) {
        p->put = true;
        keep_head(p, row.system, row.settings);
    }
    return rc;
}

/* That the store has all of it now. */
static void note_saved(struct chat_message *m) {
    m->dirty = false;
    m->saved.put = true;
    m->saved.done = m->done;
    m->saved.tokens = app_row_settled(m, &m->saved.text, &m->saved.reasoning);
    m->saved.changes = m->n_changes;
}

static int put_whole(struct app *a, struct chat_message *m) {
    struct app_row row;
    app_row_make(&row, &a->chat, m);
    int rc = cw_store_put_message(a->persist.store, &row.message, NULL);
    if (rc == CW_OK) {
        note_saved(m);
    }
    app_row_free(&row);
    return rc;
}

/* Only what came since. */
static int put_new(struct app *a, struct chat_message *m) {
    struct cw_store *s = a->persist.store;
    int rc = CW_OK;
    size_t text, reasoning;
    size_t n = app_row_settled(m, &text, &reasoning);
    if (n > m->saved.tokens || text > m->saved.text || reasoning > m->saved.reasoning) {
        struct cw_store_token *tokens = app_row_tokens(m, m->saved.tokens, n);
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

/* A reply of which nothing came yet: until it does the question stands unanswered. */
static bool is_awaited(const struct chat_message *m) {
    return m->role == CHAT_REPLY && !m->done && m->ids.n == 0 && m->text.len == 0;
}

void app_persist_save(struct app *a) {
    struct app_persist *p = &a->persist;
    p->due_s = -1;
    if (p->store == NULL || p->off || a->chat.n_all == 0) {
        return;
    }
    int rc = save_head(a);
    /* a message that was refused is handed over whole the next time */
    for (size_t i = 0; i < a->chat.n_all && rc == CW_OK; i++) {
        struct chat_message *m = a->chat.all[i];
        rc = is_awaited(m) ? CW_OK : save_message(a, m);
        m->dirty = m->dirty || rc != CW_OK;
    }
    const struct chat_message *leaf = chat_last(&a->chat);
    leaf = leaf != NULL && is_awaited(leaf) ? leaf->parent : leaf; /* never the root: a question */
    int64_t id = leaf != NULL ? (int64_t)leaf->id : 0;
    if (rc == CW_OK && (a->chat.dirty || id != p->leaf)) {
        rc = cw_store_set_leaf(p->store, (int64_t)a->chat.id, id, NULL);
        a->chat.dirty = rc != CW_OK;
        p->leaf = id;
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
    struct app_persist *p = &a->persist;
    p->put = false;
    p->due_s = -1;
    p->leaf = 0;
    free(p->system);
    p->system = NULL;
}

/* ---- loading -------------------------------------------------------------------------------- */

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
            app_row_take(m, c, row);
            note_saved(m);
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

/* Persona and system prompt become those of the conversation that was loaded; what flags say
 * stays. */
static void take_head(struct app *a) {
    const struct app_persist *p = &a->persist;
    const struct app_option *system = app_option_find("system"),
                            *persona = app_option_find("persona");
    const char *now = a->settings->persona != NULL ? a->settings->persona : "";
    if (app_settings_origin(a->settings, persona) != APP_FLAG && strcmp(now, p->persona) != 0) {
        if (p->persona[0] != '\0' &&
            app_persona_apply(a->settings, a->paths, p->persona, APP_LIVE, NULL, NULL) == CW_OK) {
            app_publish(a);
            app_hint(a, false, "persona %s", p->persona);
        }
        app_settings_set(a->settings, persona, p->persona, APP_LIVE, NULL);
    }
    if (app_settings_origin(a->settings, system) != APP_FLAG) {
        app_settings_set(a->settings, system, p->system[0] != '\0' ? p->system : p->system_before,
                         APP_LIVE, NULL);
    }
}

/* The path becomes the one that was shown; the question at its end that nobody came to answer, or
 * NULL. */
static const struct chat_message *take_path(struct chat *c, uint64_t leaf_id) {
    struct chat_message *leaf = chat_find(c, leaf_id);
    const struct chat_message *unanswered = NULL;
    if (leaf != NULL) {
        chat_go(c, leaf);
    } else if (c->root != NULL && c->root->n_children > 0) {
        chat_go_deep(c, c->root->children[c->root->n_children - 1]);
    }
    if (c->n > 0 && chat_last(c)->role == CHAT_USER) {
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
    return unanswered;
}

static void tell_loaded(struct app *a, bool owned, const struct chat_message *unanswered,
                        size_t left_out) {
    if (!owned) {
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

static void loaded(struct app *a, const struct cw_store_event *ev) {
    struct app_persist *p = &a->persist;
    struct chat *c = &a->chat;
    app_persist_save(a);
    if (p->put && c->id != (uint64_t)ev->conversation.id) {
        cw_store_release(p->store, (int64_t)c->id);
    }
    chat_clear(c);
    c->id = (uint64_t)ev->conversation.id;
    const struct cw_str title = ev->conversation.title;
    c->title = title.len > 0 ? cw_strndup(title.data, title.len) : NULL;
    size_t left_out = take_messages(c, ev);
    const struct chat_message *unanswered = take_path(c, (uint64_t)ev->conversation.leaf);
    app_persist_new(a);
    p->put = true;
    p->leaf = c->n > 0 ? (int64_t)chat_last(c)->id : 0; /* until it is moved from there */
    keep_head(p, ev->conversation.system, ev->conversation.settings);
    take_head(a);
    app_show_clear(a);
    ui_transcript_to_end(a->transcript);
    tell_loaded(a, ev->owned, unanswered, left_out);
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
    app_keep_key(p->key, (int64_t)a->chat.id);
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

/* The history of the input line, too, holds what was said. It is not part of what /undelete brings
 * back: a program that is killed must not leave it. */
static void forget_typed(struct app *a) {
    struct cw_str *said = cw_calloc(a->chat.n_all + 1, sizeof *said);
    struct cw_err err;
    for (size_t i = 0; i < a->chat.n_all; i++) {
        said[i] = buf_str(&a->chat.all[i]->text);
    }
    if (ui_input_forget(said, a->chat.n_all, &err) != CW_OK) {
        app_tell(a, true, err.text, strlen(err.text));
    }
    free(said);
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
    forget_typed(a);
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

/* Whether something stands in the conversation that the store does not have. */
static bool has_unsaved(const struct app *a) {
    for (size_t i = 0; i < a->chat.n_all; i++) {
        const struct chat_message *m = a->chat.all[i];
        size_t text, reasoning, n = app_row_settled(m, &text, &reasoning);
        if (!is_awaited(m) &&
            (!m->saved.put || m->dirty || m->done != m->saved.done || n != m->saved.tokens ||
             text != m->saved.text || reasoning != m->saved.reasoning)) {
            return true;
        }
    }
    return false;
}

void app_persist_private(struct app *a, bool on) {
    bool was_put = a->persist.put;
    if (!on && a->persist.store == NULL) {
        app_hint(a, true, "nothing can be kept in this chat%s",
                 a->settings->keep_private ? ": it began with --private" : "");
        return;
    }
    if (!on && a->persist.off && has_unsaved(a)) { /* a promise; the tree has no place for gaps */
        app_hint(
            a, true,
            "what was said in private is not to be kept: /new, then /private off, keeps again");
        return;
    }
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

void app_persist_export(const struct app *a, enum app_format format, struct cw_buf *out) {
    const struct chat *c = &a->chat;
    const struct chat_message *first = c->all[0], *leaf = chat_last(c);
    struct cw_store_conversation head = conversation_row(a);
    struct app_row *rows = cw_calloc(c->n_all, sizeof *rows);
    struct cw_store_message *messages = cw_calloc(c->n_all, sizeof *messages);
    struct cw_buf title = {0};
    for (size_t i = 0; i < c->n_all; i++) {
        app_row_make(&rows[i], c, c->all[i]);
        messages[i] = rows[i].message;
    }
    if (head.title.len == 0) {
        cw_store_title(first->text.data, first->text.len, &title);
        head.title = buf_str(&title);
    }
    head.created_ms = first->made_ms;
    head.updated_ms = c->all[c->n_all - 1]->made_ms;
    head.leaf = leaf != NULL ? (int64_t)leaf->id : 0;
    app_export(format, &head, messages, c->n_all, out);
    for (size_t i = 0; i < c->n_all; i++) {
        app_row_free(&rows[i]);
    }
    free(rows);
    free(messages);
    cw_buf_free(&title);
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static uint64_t give_id(void *arg) {
    return (uint64_t)cw_store_new_id(arg);
}

void app_persist_open(struct app *a) {
    struct app_persist *p = &a->persist;
    struct cw_err err = {0};
    const char *system = a->settings->system;
    p->due_s = -1;
    p->system_before = cw_strdup(system != NULL ? system : "");
    if (a->settings->keep_private) {
        p->off = true;
        a->status.is_private = true;
        return;
    }
    if (app_keep_open(&p->store, a->paths, 0, &err) != CW_OK) {
        struct cw_buf text = {0};
        cw_buf_printf(&text, "The conversation will not be kept: %s", err.text);
        app_tell(a, false, text.data, text.len);
        cw_buf_free(&text);
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
    free(a->persist.system);
    free(a->persist.persona);
    free(a->persist.system_before);
    free(a->persist.deleted);
    a->persist.deleted = NULL;
    free(a->persist.hits);
    a->persist.hits = NULL;
}
