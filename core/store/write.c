/* SPDX-License-Identifier: MIT
 *
 * What the queued operations do to the tables. All of them run inside a transaction of thread.c,
 * which takes an operation back that returns anything but SQLITE_OK.
 *
 * A row is only ever changed as a whole (read, checked, written with a new sum). While a reply
 * grows, its row stays as it is: pieces of text and tokens are rows of their own. Finishing joins
 * the pieces into the message's text, once, and puts that into the text index.
 */
#include <stdlib.h>
#include <string.h>

#include "core/store/store_impl.h"

enum {
    TOKENS_A_ROW = 256, /* so that a damaged page costs few of them */
    TITLE_BYTES = 400,  /* of a name given by a person */
};

/* A row that outlives the statement it was read with. */
struct row {
    struct store_cell cells[STORE_MAX_COLUMNS];
    struct store_arena arena;
    bool found;
};

static int read_row(struct cw_store *s, enum store_statement which, enum store_table table,
                    int64_t id, struct row *row) {
    int rc;
    *row = (struct row){0};
    sqlite3_stmt *st = store_statement(s, which, &rc);
    if (st == NULL) {
        return rc;
    }
    sqlite3_bind_int64(st, 1, id);
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        rc = store_row_read(st, table, row->cells) ? SQLITE_OK : SQLITE_CORRUPT;
        row->found = rc == SQLITE_OK;
        for (int i = 0; row->found && i < store_tables[table].n; i++) {
            if (store_tables[table].types[i] != 'i') {
                struct store_cell *c = &row->cells[i];
                store_cell_str(c, store_arena_str(&row->arena, c->p, c->n));
            }
        }
    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_OK;
    }
    sqlite3_reset(st);
    return rc;
}

static int read_conversation(struct cw_store *s, int64_t id, struct row *row) {
    return read_row(s, STORE_S_CONVERSATION, STORE_CONVERSATIONS, id, row);
}

static int read_message(struct cw_store *s, int64_t id, struct row *row) {
    return read_row(s, STORE_S_MESSAGE, STORE_MESSAGES, id, row);
}

static int run(sqlite3_stmt *st) {
    int rc = sqlite3_step(st);
    sqlite3_reset(st);
    sqlite3_clear_bindings(st);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int write_row(struct cw_store *s, enum store_table table, const struct store_cell *cells) {
    int rc;
    sqlite3_stmt *st = store_statement(s, STORE_S_PUT + (enum store_statement)table, &rc);
    if (st == NULL) {
        return rc;
    }
    store_row_bind(st, table, cells);
    return run(st);
}

static int run_with_id(struct cw_store *s, enum store_statement which, int64_t id) {
    int rc;
    sqlite3_stmt *st = store_statement(s, which, &rc);
    if (st == NULL) {
        return rc;
    }
    sqlite3_bind_int64(st, 1, id);
    return run(st);
}

static int number(struct cw_store *s, enum store_statement which, int64_t id, int64_t *out) {
    int rc;
    *out = 0;
    sqlite3_stmt *st = store_statement(s, which, &rc);
    if (st == NULL) {
        return rc;
    }
    if (sqlite3_bind_parameter_count(st) > 0) {
        sqlite3_bind_int64(st, 1, id);
    }
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        *out = sqlite3_column_int64(st, 0);
        rc = SQLITE_OK;
    }
    sqlite3_reset(st);
    return rc;
}

static int index_text(struct cw_store *s, enum store_statement which, int64_t id,
                      const struct store_cell *text) {
    int rc;
    sqlite3_stmt *st = store_statement(s, which, &rc);
    if (st == NULL) {
        return rc;
    }
    sqlite3_bind_int64(st, 1, id);
    sqlite3_bind_text64(st, 2, text->p, text->n, SQLITE_STATIC, SQLITE_UTF8);
    return run(st);
}

static bool is_indexed(const struct store_cell *message) {
    return message[M_STATE].i == STORE_DONE || message[M_STATE].i == STORE_AGAIN;
}

/* ---- whose message it is -------------------------------------------------------------------- */

static bool is_mine(const struct cw_store *s, int64_t message) {
    for (size_t i = 0; i < s->n_mine; i++) {
        if (s->mine[i] == message) {
            return true;
        }
    }
    return false;
}

/* May this program change a message that exists? */
static bool may_change(struct cw_store *s, int64_t conversation, int64_t message) {
    return store_claim(s, conversation) || is_mine(s, message);
}

/* ---- conversations -------------------------------------------------------------------------- */

static void keep_title(struct row *conversation, const char *text, size_t n) {
    struct cw_buf title = {0};
    cw_store_title(text, n, &title);
    store_cell_str(&conversation->cells[C_TITLE],
                   store_arena_str(&conversation->arena, title.data, title.len));
    cw_buf_free(&title);
}

static int put_conversation(struct cw_store *s, const struct store_op *op) {
    const struct cw_store_conversation *c = &op->conversation;
    struct row row;
    bool owned = store_claim(s, op->id);
    int rc = read_conversation(s, op->id, &row);
    if (rc == SQLITE_OK && (!row.found || owned)) {
        struct store_cell *cells = row.cells;
        int64_t now = store_now_ms();
        cells[C_ID].i = op->id;
        if (!row.found) {
            cells[C_CREATED].i = c->created_ms != 0 ? c->created_ms : now;
            cells[C_LEAF].i = c->leaf;
            store_cell_str(&cells[C_TITLE], c->title);
        }
        cells[C_UPDATED].i = c->updated_ms != 0 ? c->updated_ms : now;
        if (c->title.len > 0) {
            store_cell_str(&cells[C_TITLE], c->title);
            cells[C_NAMED].i = 1;
        }
        if (!row.found || c->model.len > 0) {
            store_cell_str(&cells[C_MODEL], c->model);
            store_cell_str(&cells[C_HASH], c->hash);
        }
        store_cell_str(&cells[C_SYSTEM], c->system);
        store_cell_str(&cells[C_SETTINGS], c->settings);
        rc = write_row(s, STORE_CONVERSATIONS, cells);
    }
    store_arena_free(&row.arena);
    return rc;
}

static int set_leaf(struct cw_store *s, const struct store_op *op) {
    struct row row;
    if (!store_claim(s, op->id)) {
        return SQLITE_OK; /* what is shown is the owner's choice */
    }
    int rc = read_conversation(s, op->id, &row);
    if (rc == SQLITE_OK && row.found) {
        row.cells[C_LEAF].i = op->leaf;
        rc = write_row(s, STORE_CONVERSATIONS, row.cells);
    }
    store_arena_free(&row.arena);
    return rc;
}

static int rename_conversation(struct cw_store *s, const struct store_op *op) {
    struct row row;
    char title[TITLE_BYTES];
    int rc = read_conversation(s, op->id, &row);
    if (rc == SQLITE_OK && row.found) {
        size_t n =
            cw_printable(title, sizeof title, op->text.data ? op->text.data : "", op->text.len);
        row.cells[C_TITLE] = (struct store_cell){.p = title, .n = n};
        row.cells[C_NAMED].i = n > 0;
        rc = write_row(s, STORE_CONVERSATIONS, row.cells);
    }
    store_arena_free(&row.arena);
    return rc;
}

static int mark_deleted(struct cw_store *s, int64_t id, bool deleted) {
    struct row row;
    int rc = read_conversation(s, id, &row);
    if (rc == SQLITE_OK && row.found) {
        char name[CW_STORE_NAME];
        cw_store_name(id, name);
        if (!store_claim(s, id)) {
            store_notice(s, "conversation %s is open in another program: it is kept", name);
        } else {
            row.cells[C_DELETED].i = deleted;
            rc = write_row(s, STORE_CONVERSATIONS, row.cells);
            s->purge = s->purge || deleted;
            if (deleted && store_has_aside(s)) {
                store_notice(s, "a damaged copy of the store is kept in %s and may still hold it",
                             s->dir);
            }
        }
    }
    store_arena_free(&row.arena);
    return rc;
}

/* Ids of a query, all at once: they are about to be changed. */
static int collect(struct cw_store *s, enum store_statement which, int64_t **ids, size_t *n) {
    int rc;
    size_t cap = 0;
    *ids = NULL;
    *n = 0;
    sqlite3_stmt *st = store_statement(s, which, &rc);
    while (st != NULL && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        if (*n == cap) {
            cap = cap ? 2 * cap : 64;
            *ids = cw_reallocarray(*ids, cap, sizeof **ids);
        }
        (*ids)[(*n)++] = sqlite3_column_int64(st, 0);
    }
    sqlite3_reset(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int delete_all(struct cw_store *s) {
    int64_t *ids;
    size_t n;
    int rc = collect(s, STORE_S_IDS, &ids, &n);
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
        rc = mark_deleted(s, ids[i], true);
    }
    free(ids);
    s->purge_aside = s->purge_aside || rc == SQLITE_OK;
    return rc;
}

/* ---- messages ------------------------------------------------------------------------------- */

static int add_tokens(struct cw_store *s, int64_t message, const struct cw_store_token *tokens,
                      size_t n) {
    int64_t first;
    int rc = number(s, STORE_S_N_TOKENS, message, &first);
    for (size_t i = 0; i < n && rc == SQLITE_OK; i += TOKENS_A_ROW) {
        size_t k = n - i < TOKENS_A_ROW ? n - i : TOKENS_A_ROW;
        struct cw_buf packed = {0};
        struct store_cell cells[STORE_MAX_COLUMNS] = {0};
        store_pack_tokens(&packed, tokens + i, k);
        rc = number(s, STORE_S_NEXT_TOKENS, 0, &cells[T_ID].i);
        cells[T_MESSAGE].i = message;
        cells[T_FIRST].i = first + (int64_t)i;
        cells[T_N].i = (int64_t)k;
        cells[T_DATA] = (struct store_cell){.p = packed.data, .n = packed.len};
        if (rc == SQLITE_OK) {
            rc = write_row(s, STORE_TOKENS, cells);
        }
        cw_buf_free(&packed);
    }
    return rc;
}

static int add_change(struct cw_store *s, int64_t message, const struct cw_store_change *change) {
    struct cw_buf packed = {0};
    struct store_cell cells[STORE_MAX_COLUMNS] = {0};
    store_pack_change(&packed, change);
    int rc = number(s, STORE_S_NEXT_CHANGE, 0, &cells[X_ID].i);
    cells[X_MESSAGE].i = message;
    cells[X_DATA] = (struct store_cell){.p = packed.data, .n = packed.len};
    if (rc == SQLITE_OK) {
        rc = write_row(s, STORE_CHANGES, cells);
    }
    cw_buf_free(&packed);
    return rc;
}

/* A message changed: its conversation is the latest one, and counts it. */
static int touch(struct cw_store *s, struct row *conversation, const struct cw_store_message *m,
                 bool added) {
    struct store_cell *cells = conversation->cells;
    int64_t now = m != NULL && m->created_ms != 0 ? m->created_ms : store_now_ms();
    cells[C_UPDATED].i = cells[C_UPDATED].i > now ? cells[C_UPDATED].i : now;
    cells[C_N_MESSAGES].i += added;
    if (m != NULL && cells[C_TITLE].n == 0 && m->role == CW_STORE_USER && m->text.len > 0) {
        keep_title(conversation, m->text.data, m->text.len);
    }
    if (m != NULL && m->role == CW_STORE_REPLY && m->model.len > 0 &&
        store_claimed(s, cells[C_ID].i)) {
        store_cell_str(&cells[C_MODEL], m->model);
        store_cell_str(&cells[C_HASH], m->hash);
    }
    return write_row(s, STORE_CONVERSATIONS, cells);
}

static void message_cells(struct store_cell *cells, const struct cw_store_message *m,
                          const struct cw_buf *figures, const struct cw_buf *sampling) {
    cells[M_ID].i = m->id;
    cells[M_CONVERSATION].i = m->conversation;
    cells[M_PARENT].i = m->parent;
    cells[M_ROLE].i = m->role;
    cells[M_CREATED].i = m->created_ms != 0 ? m->created_ms : store_now_ms();
    cells[M_STATE].i = m->done ? STORE_DONE : STORE_GROWING;
    store_cell_str(&cells[M_TEXT], m->text);
    store_cell_str(&cells[M_REASONING], m->reasoning);
    cells[M_STOP].i = m->stop;
    cells[M_SEED].i = m->seed;
    cells[M_FIRST_POSITION].i = (int64_t)m->first_position;
    cells[M_N_TOKENS].i = (int64_t)m->n_tokens;
    cells[M_FIGURES] = (struct store_cell){.p = figures->data, .n = figures->len};
    cells[M_SAMPLING] = (struct store_cell){.p = sampling->data, .n = sampling->len};
    store_cell_str(&cells[M_MODEL], m->model);
    store_cell_str(&cells[M_HASH], m->hash);
    store_cell_str(&cells[M_ARITHMETIC], m->arithmetic);
    store_cell_str(&cells[M_EXTRA], m->extra);
}

/* Everything that hangs on the old row goes. */
static int clear_message(struct cw_store *s, const struct store_cell *old) {
    int rc = run_with_id(s, STORE_S_DROP_PIECES, old[M_ID].i);
    if (rc == SQLITE_OK) {
        rc = run_with_id(s, STORE_S_DROP_TOKENS, old[M_ID].i);
    }
    if (rc == SQLITE_OK) {
        rc = run_with_id(s, STORE_S_DROP_CHANGES, old[M_ID].i);
    }
    if (rc == SQLITE_OK && is_indexed(old)) {
        rc = index_text(s, STORE_S_INDEX_DROP, old[M_ID].i, &old[M_TEXT]);
    }
    return rc;
}

static int put_message(struct cw_store *s, const struct store_op *op) {
    const struct cw_store_message *m = &op->message;
    struct store_cell cells[STORE_MAX_COLUMNS] = {0};
    struct cw_buf figures = {0}, sampling = {0};
    struct row conversation, old = {0};
    int rc = read_conversation(s, m->conversation, &conversation);
    if (rc == SQLITE_OK) {
        rc = read_message(s, m->id, &old);
    }
    bool known = rc == SQLITE_OK && conversation.found &&
                 (!old.found || old.cells[M_CONVERSATION].i == m->conversation);
    if (rc != SQLITE_OK || !known) {
        if (rc == SQLITE_OK) {
            store_notice(s, "a message without its conversation was not saved");
        }
        goto out;
    }
    if (!store_claim(s, m->conversation)) {
        if (old.found && !is_mine(s, m->id)) {
            store_notice(s, "a message that another program has open was not replaced");
            goto out;
        }
        if (!old.found) {
            s->mine = cw_reallocarray(s->mine, s->n_mine + 1, sizeof *s->mine);
            s->mine[s->n_mine++] = m->id;
        }
    }
    if (old.found) {
        rc = clear_message(s, old.cells);
    }
    store_pack_figures(&figures, &m->figures);
    store_pack_sampling(&sampling, &m->sampling);
    message_cells(cells, m, &figures, &sampling);
    if (rc == SQLITE_OK) {
        rc = write_row(s, STORE_MESSAGES, cells);
    }
    if (rc == SQLITE_OK && is_indexed(cells)) {
        rc = index_text(s, STORE_S_INDEX_ADD, m->id, &cells[M_TEXT]);
    }
    if (rc == SQLITE_OK && m->n_tokens > 0) {
        rc = add_tokens(s, m->id, m->tokens, m->n_tokens);
    }
    for (size_t i = 0; i < m->n_changes && rc == SQLITE_OK; i++) {
        rc = add_change(s, m->id, &m->changes[i]);
    }
    if (rc == SQLITE_OK) {
        rc = touch(s, &conversation, m, !old.found);
    }
out:
    cw_buf_free(&figures);
    cw_buf_free(&sampling);
    store_arena_free(&conversation.arena);
    store_arena_free(&old.arena);
    return rc;
}

/* The message an operation wants to change, if it may. */
static int growing_message(struct cw_store *s, int64_t id, struct row *m) {
    int rc = read_message(s, id, m);
    if (rc == SQLITE_OK && !m->found) {
        store_notice(s, "more of a message that is not in the store was not saved");
    } else if (rc == SQLITE_OK && !may_change(s, m->cells[M_CONVERSATION].i, id)) {
        store_notice(s, "a message that another program has open was not changed");
        m->found = false;
    }
    return rc;
}

static int append(struct cw_store *s, const struct store_op *op) {
    struct row m;
    int rc = growing_message(s, op->id, &m);
    bool grows =
        m.found && (m.cells[M_STATE].i == STORE_GROWING || m.cells[M_STATE].i == STORE_AGAIN);
    if (rc == SQLITE_OK && m.found && !grows) {
        store_notice(s, "more of a message that is done already was not saved");
    }
    if (rc == SQLITE_OK && grows && op->text.len + op->reasoning.len > 0) {
        struct store_cell cells[STORE_MAX_COLUMNS] = {0};
        rc = number(s, STORE_S_NEXT_PIECE, 0, &cells[P_ID].i);
        cells[P_MESSAGE].i = op->id;
        store_cell_str(&cells[P_TEXT], (struct cw_str){op->text.data, op->text.len});
        store_cell_str(&cells[P_REASONING], (struct cw_str){op->reasoning.data, op->reasoning.len});
        if (rc == SQLITE_OK) {
            rc = write_row(s, STORE_PIECES, cells);
        }
    }
    if (rc == SQLITE_OK && grows && op->n_tokens > 0) {
        rc = add_tokens(s, op->id, op->tokens, op->n_tokens);
    }
    store_arena_free(&m.arena);
    return rc;
}

static int change(struct cw_store *s, const struct store_op *op) {
    struct row m;
    int rc = growing_message(s, op->id, &m);
    if (rc == SQLITE_OK && m.found) {
        rc = add_change(s, op->id, &op->change);
    }
    store_arena_free(&m.arena);
    return rc;
}

static int join_pieces(struct cw_store *s, struct row *m) {
    int rc;
    struct cw_buf parts[2] = {0};
    sqlite3_stmt *st = store_statement(s, STORE_S_PIECES_OF, &rc);
    if (st == NULL) {
        return rc;
    }
    for (int i = 0; i < 2; i++) {
        cw_buf_add(&parts[i], m->cells[M_TEXT + i].p, m->cells[M_TEXT + i].n);
    }
    sqlite3_bind_int64(st, 1, m->cells[M_ID].i);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct store_cell cells[STORE_MAX_COLUMNS];
        if (!store_row_read(st, STORE_PIECES, cells)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        for (int i = 0; i < 2; i++) {
            cw_buf_add(&parts[i], cells[P_TEXT + i].p, cells[P_TEXT + i].n);
        }
    }
    sqlite3_reset(st);
    for (int i = 0; i < 2; i++) {
        store_cell_str(&m->cells[M_TEXT + i],
                       store_arena_str(&m->arena, parts[i].data, parts[i].len));
        cw_buf_free(&parts[i]);
    }
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int finish_row(struct cw_store *s, struct row *m, int stop, const struct cw_figures *f) {
    struct cw_buf figures = {0};
    struct row conversation = {0};
    int rc = SQLITE_OK;
    if (is_indexed(m->cells)) {
        rc = index_text(s, STORE_S_INDEX_DROP, m->cells[M_ID].i, &m->cells[M_TEXT]);
    }
    if (rc == SQLITE_OK) {
        rc = join_pieces(s, m);
    }
    if (rc == SQLITE_OK) {
        rc = number(s, STORE_S_N_TOKENS, m->cells[M_ID].i, &m->cells[M_N_TOKENS].i);
    }
    m->cells[M_STATE].i = STORE_DONE;
    m->cells[M_STOP].i = stop;
    if (f != NULL) {
        store_pack_figures(&figures, f);
        m->cells[M_FIGURES] = (struct store_cell){.p = figures.data, .n = figures.len};
    }
    if (rc == SQLITE_OK) {
        rc = write_row(s, STORE_MESSAGES, m->cells);
    }
    if (rc == SQLITE_OK) {
        rc = index_text(s, STORE_S_INDEX_ADD, m->cells[M_ID].i, &m->cells[M_TEXT]);
    }
    if (rc == SQLITE_OK) {
        rc = run_with_id(s, STORE_S_DROP_PIECES, m->cells[M_ID].i);
    }
    if (rc == SQLITE_OK && f != NULL) {
        rc = read_conversation(s, m->cells[M_CONVERSATION].i, &conversation);
        if (rc == SQLITE_OK && conversation.found) {
            rc = touch(s, &conversation, NULL, false);
        }
    }
    store_arena_free(&conversation.arena);
    cw_buf_free(&figures);
    return rc;
}

static int finish(struct cw_store *s, const struct store_op *op) {
    struct row m;
    int rc = growing_message(s, op->id, &m);
    if (rc == SQLITE_OK && m.found && m.cells[M_STATE].i != STORE_LOST) {
        rc = finish_row(s, &m, op->stop, &op->figures);
    }
    store_arena_free(&m.arena);
    return rc;
}

static int resume(struct cw_store *s, const struct store_op *op) {
    struct row m;
    int rc = growing_message(s, op->id, &m);
    if (rc == SQLITE_OK && m.found && m.cells[M_STATE].i == STORE_DONE) {
        m.cells[M_STATE].i = STORE_AGAIN;
        rc = write_row(s, STORE_MESSAGES, m.cells);
    }
    store_arena_free(&m.arena);
    return rc;
}

static int set_extra(struct cw_store *s, const struct store_op *op) {
    struct row m;
    int rc = growing_message(s, op->id, &m);
    if (rc == SQLITE_OK && m.found) {
        store_cell_str(&m.cells[M_EXTRA], (struct cw_str){op->text.data, op->text.len});
        rc = write_row(s, STORE_MESSAGES, m.cells);
    }
    store_arena_free(&m.arena);
    return rc;
}

int store_apply(struct cw_store *s, struct store_op *op) {
    switch (op->kind) {
    case STORE_PUT_CONVERSATION:
        return put_conversation(s, op);
    case STORE_PUT_MESSAGE:
        return put_message(s, op);
    case STORE_APPEND:
        return append(s, op);
    case STORE_ADD_CHANGE:
        return change(s, op);
    case STORE_FINISH:
        return finish(s, op);
    case STORE_RESUME:
        return resume(s, op);
    case STORE_SET_EXTRA:
        return set_extra(s, op);
    case STORE_SET_LEAF:
        return set_leaf(s, op);
    case STORE_RENAME:
        return rename_conversation(s, op);
    case STORE_DELETE:
        return mark_deleted(s, op->id, true);
    case STORE_UNDELETE:
        return mark_deleted(s, op->id, false);
    case STORE_DELETE_ALL:
        return delete_all(s);
    case STORE_RELEASE:
        store_unclaim(s, op->id);
        return SQLITE_OK;
    case STORE_ASK_LIST:
    case STORE_ASK_LOAD:
        break;
    }
    return SQLITE_MISUSE;
}

/* ---- what other runs left ------------------------------------------------------------------- */

/* Claims for a moment what nobody holds; true: it is nobody else's. `held`: it was ours before. */
static bool borrow(struct cw_store *s, int64_t conversation, bool *held) {
    *held = store_claimed(s, conversation);
    return store_claim(s, conversation);
}

int store_finish_abandoned(struct cw_store *s) {
    int rc;
    int64_t *ids;
    size_t n;
    enum { CANCELLED = 4 }; /* CW_STOP_CANCEL of ring.h, which is not this room's */
    rc = collect(s, STORE_S_UNFINISHED, &ids, &n);
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
        struct row m;
        bool held;
        rc = read_message(s, ids[i], &m);
        if (rc == SQLITE_OK && m.found) {
            int64_t conversation = m.cells[M_CONVERSATION].i;
            if (borrow(s, conversation, &held) && !held) {
                rc = finish_row(s, &m, CANCELLED, NULL);
            }
            if (!held) {
                store_unclaim(s, conversation);
            }
        }
        store_arena_free(&m.arena);
    }
    free(ids);
    return rc;
}

static int purge_conversation(struct cw_store *s, int64_t id) {
    int rc;
    sqlite3_stmt *st = store_statement(s, STORE_S_MESSAGES_OF, &rc);
    if (st == NULL) {
        return rc;
    }
    sqlite3_bind_int64(st, 1, id);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct store_cell cells[STORE_MAX_COLUMNS];
        if (!store_row_read(st, STORE_MESSAGES, cells)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        if (is_indexed(cells)) {
            int drop = index_text(s, STORE_S_INDEX_DROP, cells[M_ID].i, &cells[M_TEXT]);
            if (drop != SQLITE_OK) {
                rc = drop;
                break;
            }
        }
    }
    sqlite3_reset(st);
    return rc == SQLITE_DONE ? run_with_id(s, STORE_S_DROP_CONVERSATION, id) : rc;
}

/* That the file is still to be written anew, for the next run if this one does not come to it: for
 * a large file that takes a while. */
static int mark_purge(struct cw_store *s, bool due) {
    static const char word[] = "purge";
    const struct store_cell cells[STORE_MAX_COLUMNS] = {
        [META_ID] = {.i = STORE_META_PURGE}, [META_VALUE] = {.p = word, .n = sizeof word - 1}};
    return due ? write_row(s, STORE_META, cells) : store_exec(s->db, "DELETE FROM meta WHERE id=2");
}

/* Rows and index entries of what was deleted; how many conversations. */
static int purge_rows(struct cw_store *s, bool own, size_t *n_removed) {
    int64_t *ids;
    size_t n;
    int rc = collect(s, STORE_S_DELETED, &ids, &n);
    *n_removed = 0;
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
        bool held;
        bool ours = borrow(s, ids[i], &held);
        if (held && !own) {
            continue;
        }
        if (ours) {
            if (s->gone != NULL && s->gone(s->gone_arg, ids[i], &s->not_removed) != CW_OK && !own) {
                store_notice(s, "%s", s->not_removed.text);
            }
            rc = purge_conversation(s, ids[i]);
            ++*n_removed;
        }
        store_unclaim(s, ids[i]);
    }
    free(ids);
    return rc;
}

/* What is left of removed rows in the file: the index still has the words until its parts are
 * merged, and pages that were split keep copies of cells that moved, which only writing the file
 * anew removes. */
static int purge(struct cw_store *s, bool own) {
    size_t n_removed = 0;
    int64_t due = 0; /* an earlier run did not come to it */
    int rc = store_exec(s->db, "BEGIN IMMEDIATE");
    if (rc != SQLITE_OK) {
        return rc;
    }
    rc = number(s, STORE_S_PURGE_DUE, 0, &due);
    if (rc == SQLITE_OK) {
        rc = purge_rows(s, own, &n_removed);
    }
    bool rewrite = n_removed > 0 || due != 0;
    if (rc == SQLITE_OK && rewrite) {
        rc = store_exec(s->db, "INSERT INTO search(search) VALUES('optimize')");
    }
    if (rc == SQLITE_OK && rewrite) {
        rc = mark_purge(s, true);
    }
    int end = store_exec(s->db, rc == SQLITE_OK ? "COMMIT" : "ROLLBACK");
    rc = rc == SQLITE_OK ? end : rc;
    if (rc != SQLITE_OK || !rewrite) {
        return rc;
    }
    rc = store_exec(s->db, "VACUUM");
    if (rc == SQLITE_OK) {
        rc = mark_purge(s, false);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    }
    return rc;
}

int store_purge(struct cw_store *s, bool own) {
    store_interruptible(s, !own);
    int rc = purge(s, own);
    store_interruptible(s, false);
    return rc;
}
