/* SPDX-License-Identifier: MIT
 *
 * Answers: lists, searching, whole conversations. Everything that is handed out went through the
 * checksum of its row; SQLITE_CORRUPT otherwise, and the file is mended before it is asked again.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "chinwag/utf8.h"
#include "core/store/store_impl.h"

enum {
    SNIPPET_BEFORE = 40, /* bytes */
    SNIPPET_BYTES = 160,
    MAX_SEARCHED = 20000, /* hits of the text index looked at */
};

static struct cw_str keep(struct store_arena *a, const struct store_cell *cell) {
    return store_arena_str(a, cell->p, cell->n);
}

static void conversation_of(struct store_arena *a, const struct store_cell *cells,
                            struct cw_store_conversation *c) {
    *c = (struct cw_store_conversation){
        .id = cells[C_ID].i,
        .title = keep(a, &cells[C_TITLE]),
        .created_ms = cells[C_CREATED].i,
        .updated_ms = cells[C_UPDATED].i,
        .model = keep(a, &cells[C_MODEL]),
        .hash = keep(a, &cells[C_HASH]),
        .system = keep(a, &cells[C_SYSTEM]),
        .settings = keep(a, &cells[C_SETTINGS]),
        .leaf = cells[C_LEAF].i,
        .n_messages = cells[C_N_MESSAGES].i > 0 ? (size_t)cells[C_N_MESSAGES].i : 0,
    };
}

/* ---- searching ------------------------------------------------------------------------------ */

/* `needle` in hay, letters of ASCII in either case; NULL: it is not there. */
static const char *find(const char *hay, size_t n, const char *needle, size_t k) {
    if (k == 0 || k > n) {
        return k == 0 ? hay : NULL;
    }
    const char both[3] = {(char)tolower((unsigned char)needle[0]),
                          (char)toupper((unsigned char)needle[0]), '\0'};
    for (size_t i = 0; i + k <= n; i++) {
        if ((hay[i] == both[0] || hay[i] == both[1]) && strncasecmp(hay + i, needle, k) == 0) {
            return hay + i;
        }
    }
    return NULL;
}

static bool in_column(sqlite3_stmt *st, int column, const char *needle, size_t n) {
    const char *text = (const char *)sqlite3_column_text(st, column);
    return text != NULL && find(text, (size_t)sqlite3_column_bytes(st, column), needle, n) != NULL;
}

/* Of the row a statement stands on, before its sum is looked at: there are many of them. */
static bool head_matches(sqlite3_stmt *st, const char *query) {
    size_t n = strlen(query);
    if (in_column(st, C_TITLE, query, n) || in_column(st, C_MODEL, query, n)) {
        return true;
    }
    if (n < CW_STORE_NAME) {
        char name[CW_STORE_NAME];
        cw_store_name(sqlite3_column_int64(st, C_ID), name);
        if (strncasecmp(name, query, n) == 0) {
            return true;
        }
    }
    char date[32] = "";
    struct tm tm;
    time_t when = (time_t)(sqlite3_column_int64(st, C_UPDATED) / 1000);
    return strspn(query, "0123456789-") == n && localtime_r(&when, &tm) != NULL &&
           strftime(date, sizeof date, "%Y-%m-%d", &tm) > 0 && strstr(date, query) != NULL;
}

static bool has_letter(const char *word, size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)word[i];
        if (c >= 0x80 || (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')) {
            return true;
        }
    }
    return false;
}

/* The query in the index's language: each word quoted, so that nothing in it commands. */
static void index_query(const char *query, struct cw_buf *out) {
    const char *p = query;
    while (*p != '\0') {
        p += strspn(p, " \t\r\n");
        size_t n = strcspn(p, " \t\r\n");
        if (n > 0 && has_letter(p, n)) {
            cw_buf_puts(out, out->len > 0 ? " \"" : "\"");
            for (size_t i = 0; i < n; i++) {
                if (p[i] == '"') {
                    cw_buf_putc(out, '"');
                }
                cw_buf_putc(out, p[i]);
            }
            cw_buf_putc(out, '"');
            if (p[n] == '\0' && n > 2) {
                cw_buf_putc(out, '*'); /* it may still be typed */
            }
        }
        p += n;
    }
}

struct text_hit {
    int64_t conversation, message;
};

/* The latest message of each of the latest `limit` conversations that hold the words. */
static int search_text(struct cw_store *s, const char *query, size_t limit, struct text_hit *hits,
                       size_t *n) {
    struct cw_buf match = {0};
    int rc = SQLITE_OK;
    *n = 0;
    index_query(query, &match);
    sqlite3_stmt *st = match.len > 0 ? store_statement(s, STORE_S_SEARCH, &rc) : NULL;
    if (st != NULL) {
        sqlite3_bind_text64(st, 1, match.data, match.len, SQLITE_STATIC, SQLITE_UTF8);
        for (int seen = 0; seen < MAX_SEARCHED && *n < limit; seen++) {
            rc = sqlite3_step(st);
            if (rc != SQLITE_ROW) {
                break;
            }
            struct text_hit hit = {sqlite3_column_int64(st, 1), sqlite3_column_int64(st, 0)};
            size_t i = 0;
            while (i < *n && hits[i].conversation != hit.conversation) {
                i++;
            }
            if (i == *n) {
                hits[(*n)++] = hit;
            }
        }
        sqlite3_reset(st);
        sqlite3_clear_bindings(st);
    }
    cw_buf_free(&match);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* A line of the message around the first of the words. */
static int snippet(struct cw_store *s, struct store_arena *a, int64_t message, const char *query,
                   struct cw_str *out) {
    int rc;
    sqlite3_stmt *st = store_statement(s, STORE_S_MESSAGE, &rc);
    if (st == NULL) {
        return rc;
    }
    sqlite3_bind_int64(st, 1, message);
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        struct store_cell cells[STORE_MAX_COLUMNS];
        rc = store_row_read(st, STORE_MESSAGES, cells) ? SQLITE_OK : SQLITE_CORRUPT;
        if (rc == SQLITE_OK) {
            const char *text = cells[M_TEXT].p;
            size_t n = cells[M_TEXT].n;
            const char *word = query + strspn(query, " \t\r\n");
            const char *at = find(text, n, word, strcspn(word, " \t\r\n"));
            size_t from =
                at != NULL && at - text > SNIPPET_BEFORE ? (size_t)(at - text) - SNIPPET_BEFORE : 0;
            while (from > 0 && from < n && ((unsigned char)text[from] & 0xc0) == 0x80) {
                from++; /* not in the middle of a character */
            }
            size_t len = n - from < SNIPPET_BYTES ? n - from : SNIPPET_BYTES;
            len = cw_utf8_complete(text + from, len);
            char *line = store_arena_alloc(a, len + 1);
            for (size_t i = 0; i < len; i++) {
                char c = text[from + i];
                line[i] = c == '\n' || c == '\t' || c == '\r' ? ' ' : c;
            }
            *out = (struct cw_str){line, len};
        }
    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_OK;
    }
    sqlite3_reset(st);
    return rc;
}

int store_answer_list(struct cw_store *s, const struct store_op *op) {
    const char *query = op->text.len > 0 ? op->text.data : "";
    size_t limit = op->limit;
    size_t n_text = 0, cap = 0;
    struct text_hit *text = NULL;
    struct cw_store_hit *hits = NULL;
    int rc;
    query += strspn(query, " \t\r\n");
    struct store_reply *r = store_reply_new(CW_STORE_LIST, op->serial);
    if (*query != '\0') {
        text = cw_calloc(limit < MAX_SEARCHED ? limit : MAX_SEARCHED, sizeof *text);
        rc = search_text(s, query, limit < MAX_SEARCHED ? limit : MAX_SEARCHED, text, &n_text);
        if (rc != SQLITE_OK) {
            goto out;
        }
    }
    sqlite3_stmt *st = store_statement(s, STORE_S_LIST, &rc);
    while (st != NULL && r->event.n_hits < limit && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct store_cell cells[STORE_MAX_COLUMNS];
        size_t i = 0;
        while (i < n_text && text[i].conversation != sqlite3_column_int64(st, C_ID)) {
            i++;
        }
        if (*query != '\0' && i == n_text && !head_matches(st, query)) {
            continue;
        }
        if (!store_row_read(st, STORE_CONVERSATIONS, cells)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        if (r->event.n_hits == cap) {
            cap = cap ? 2 * cap : 64;
            hits = cw_reallocarray(hits, cap, sizeof *hits);
        }
        struct cw_store_hit *hit = &hits[r->event.n_hits++];
        *hit = (struct cw_store_hit){0};
        conversation_of(&r->arena, cells, &hit->conversation);
        hit->message = i < n_text ? text[i].message : 0;
    }
    sqlite3_reset(st);
    rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
    for (size_t i = 0; i < r->event.n_hits && rc == SQLITE_OK; i++) {
        if (hits[i].message != 0) {
            rc = snippet(s, &r->arena, hits[i].message, query, &hits[i].snippet);
        }
    }
    r->event.hits = (void *)store_arena_str(&r->arena, hits, r->event.n_hits * sizeof *hits).data;
out:
    free(text);
    free(hits);
    if (rc == SQLITE_OK) {
        store_post(s, r);
    } else {
        cw_store_event_free(&r->event);
    }
    return rc;
}

/* ---- loading -------------------------------------------------------------------------------- */

/* The id that a name, or a beginning of one, or "the last" means. 0 after posting why not. */
static int find_conversation(struct cw_store *s, const struct store_op *op, int64_t *id) {
    const char *name = op->text.len > 0 ? op->text.data : NULL;
    int rc;
    size_t n = 0;
    *id = op->id;
    if (op->id != 0) {
        return SQLITE_OK;
    }
    sqlite3_stmt *st = store_statement(s, STORE_S_IDS, &rc);
    while (st != NULL && n < 2 && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        char candidate[CW_STORE_NAME];
        int64_t this_id = sqlite3_column_int64(st, 0);
        cw_store_name(this_id, candidate);
        if (name == NULL || strncasecmp(candidate, name, strlen(name)) == 0) {
            n++;
            *id = this_id;
            if (name == NULL) {
                break;
            }
        }
    }
    sqlite3_reset(st);
    rc = rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
    if (rc == SQLITE_OK && n != 1) {
        struct store_reply *r = store_reply_new(CW_STORE_FAILED, op->serial);
        if (n == 0 && name == NULL) {
            store_reply_text(r, CW_ENOENT, "there is no conversation yet");
        } else if (n == 0) {
            store_reply_text(r, CW_ENOENT, "%s: no such conversation", name);
        } else {
            store_reply_text(r, CW_EINVAL, "%s: several conversations begin so", name);
        }
        store_post(s, r);
        *id = 0;
    }
    return rc;
}

static int load_pieces(struct cw_store *s, struct store_arena *a, struct cw_store_message *m) {
    int rc;
    struct cw_buf parts[2] = {0};
    sqlite3_stmt *st = store_statement(s, STORE_S_PIECES_OF, &rc);
    if (st == NULL) {
        return rc;
    }
    cw_buf_add(&parts[0], m->text.data, m->text.len);
    cw_buf_add(&parts[1], m->reasoning.data, m->reasoning.len);
    sqlite3_bind_int64(st, 1, m->id);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct store_cell cells[STORE_MAX_COLUMNS];
        if (!store_row_read(st, STORE_PIECES, cells)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        cw_buf_add(&parts[0], cells[P_TEXT].p, cells[P_TEXT].n);
        cw_buf_add(&parts[1], cells[P_REASONING].p, cells[P_REASONING].n);
    }
    sqlite3_reset(st);
    m->text = store_arena_str(a, parts[0].data, parts[0].len);
    m->reasoning = store_arena_str(a, parts[1].data, parts[1].len);
    cw_buf_free(&parts[0]);
    cw_buf_free(&parts[1]);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Tokens with a gap are of no use, and only the text is left. */
static int load_tokens(struct cw_store *s, struct store_arena *a, struct cw_store_message *m) {
    int rc;
    size_t n = 0, cap = 0;
    bool whole = true;
    struct cw_store_token *tokens = NULL;
    sqlite3_stmt *st = store_statement(s, STORE_S_TOKENS_OF, &rc);
    if (st == NULL) {
        return rc;
    }
    sqlite3_bind_int64(st, 1, m->id);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct store_cell cells[STORE_MAX_COLUMNS];
        if (!store_row_read(st, STORE_TOKENS, cells)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        int64_t k = cells[T_N].i;
        /* a token takes at least eight bytes */
        whole =
            whole && cells[T_FIRST].i == (int64_t)n && k > 0 && k <= (int64_t)cells[T_DATA].n / 8;
        if (whole) {
            if (n + (size_t)k > cap) {
                cap = 2 * n + (size_t)k;
                tokens = cw_reallocarray(tokens, cap, sizeof *tokens);
            }
            whole = store_unpack_tokens(cells[T_DATA].p, cells[T_DATA].n, tokens + n, (size_t)k);
            n += (size_t)k;
        }
    }
    sqlite3_reset(st);
    rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    whole = whole && (!m->done || n == m->n_tokens); /* as many as there were when it was done */
    m->n_tokens = whole && rc == SQLITE_OK ? n : 0;
    m->tokens = (void *)store_arena_str(a, tokens, m->n_tokens * sizeof *tokens).data;
    free(tokens);
    return rc;
}

static int load_changes(struct cw_store *s, struct store_arena *a, struct cw_store_message *m) {
    int rc;
    size_t n = 0, cap = 0;
    struct cw_store_change *changes = NULL;
    sqlite3_stmt *st = store_statement(s, STORE_S_CHANGES_OF, &rc);
    if (st == NULL) {
        return rc;
    }
    sqlite3_bind_int64(st, 1, m->id);
    while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct store_cell cells[STORE_MAX_COLUMNS];
        if (!store_row_read(st, STORE_CHANGES, cells)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        if (n == cap) {
            cap = cap ? 2 * cap : 8;
            changes = cw_reallocarray(changes, cap, sizeof *changes);
        }
        n += store_unpack_change(cells[X_DATA].p, cells[X_DATA].n, &changes[n]);
    }
    sqlite3_reset(st);
    m->n_changes = n;
    m->changes = (void *)store_arena_str(a, changes, n * sizeof *changes).data;
    free(changes);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void message_of(struct store_arena *a, const struct store_cell *cells,
                       struct cw_store_message *m) {
    int64_t role = cells[M_ROLE].i;
    int64_t stop = cells[M_STOP].i;
    *m = (struct cw_store_message){
        .id = cells[M_ID].i,
        .parent = cells[M_PARENT].i,
        .conversation = cells[M_CONVERSATION].i,
        .role = role >= CW_STORE_USER && role <= CW_STORE_TOOL ? (enum cw_store_role)role
                                                               : CW_STORE_USER,
        .created_ms = cells[M_CREATED].i,
        .text = keep(a, &cells[M_TEXT]),
        .reasoning = keep(a, &cells[M_REASONING]),
        .n_tokens = (size_t)cells[M_N_TOKENS].i,
        .done = cells[M_STATE].i == STORE_DONE || cells[M_STATE].i == STORE_LOST,
        .lost = cells[M_STATE].i == STORE_LOST,
        .stop = stop >= 0 && stop < 16 ? (int)stop : 0,
        .seed = (uint32_t)cells[M_SEED].i,
        .first_position = (uint64_t)cells[M_FIRST_POSITION].i,
        .model = keep(a, &cells[M_MODEL]),
        .hash = keep(a, &cells[M_HASH]),
        .arithmetic = keep(a, &cells[M_ARITHMETIC]),
        .extra = keep(a, &cells[M_EXTRA]),
    };
    if (!store_unpack_figures(cells[M_FIGURES].p, cells[M_FIGURES].n, &m->figures)) {
        memset(&m->figures, 0, sizeof m->figures);
    }
    if (!store_unpack_sampling(cells[M_SAMPLING].p, cells[M_SAMPLING].n, &m->sampling)) {
        memset(&m->sampling, 0, sizeof m->sampling);
    }
}

static size_t index_of(const struct cw_store_message *sorted, size_t n, int64_t id) {
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (sorted[mid].id < id) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < n && sorted[lo].id == id ? lo : n;
}

/* Parents before their children; a parent that is not there, or a circle, makes a beginning. */
static void order_messages(const struct cw_store_message *in, size_t n,
                           struct cw_store_message *out) {
    enum { NEW, UNDER_WAY, PLACED };
    unsigned char *state = cw_calloc(n, 1);
    size_t *path = cw_calloc(n, sizeof *path);
    size_t placed = 0;
    for (size_t i = 0; i < n; i++) {
        size_t depth = 0;
        size_t at = i;
        while (at < n && state[at] == NEW) {
            state[at] = UNDER_WAY;
            path[depth++] = at;
            at = in[at].parent != 0 ? index_of(in, n, in[at].parent) : n;
        }
        bool cut = depth > 0 && (at == n || state[at] == UNDER_WAY);
        while (depth > 0) {
            size_t k = path[--depth];
            out[placed] = in[k];
            if (cut) {
                out[placed].parent = 0;
                cut = false;
            }
            placed++;
            state[k] = PLACED;
        }
    }
    free(state);
    free(path);
}

static int load_messages(struct cw_store *s, struct store_reply *r, int64_t conversation) {
    int rc;
    size_t n = 0, cap = 0;
    struct cw_store_message *list = NULL;
    sqlite3_stmt *st = store_statement(s, STORE_S_MESSAGES_OF, &rc);
    if (st != NULL) {
        sqlite3_bind_int64(st, 1, conversation);
    }
    while (st != NULL && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct store_cell cells[STORE_MAX_COLUMNS];
        if (!store_row_read(st, STORE_MESSAGES, cells)) {
            rc = SQLITE_CORRUPT;
            break;
        }
        if (n == cap) {
            cap = cap ? 2 * cap : 64;
            list = cw_reallocarray(list, cap, sizeof *list);
        }
        message_of(&r->arena, cells, &list[n++]);
    }
    sqlite3_reset(st);
    rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++) {
        rc = list[i].done ? SQLITE_OK : load_pieces(s, &r->arena, &list[i]);
        if (rc == SQLITE_OK) {
            rc = load_tokens(s, &r->arena, &list[i]);
        }
        if (rc == SQLITE_OK) {
            rc = load_changes(s, &r->arena, &list[i]);
        }
    }
    if (rc == SQLITE_OK && n != r->event.conversation.n_messages) {
        rc = SQLITE_CORRUPT; /* the index lost one, or the count is wrong */
    }
    if (rc == SQLITE_OK && n > 0) {
        r->event.messages = store_arena_alloc(&r->arena, n * sizeof *list);
        r->event.n_messages = n;
        order_messages(list, n, r->event.messages);
    }
    free(list);
    return rc;
}

static int load_conversation(struct cw_store *s, struct store_reply *r, int64_t id, bool *found) {
    int rc;
    *found = false;
    sqlite3_stmt *st = store_statement(s, STORE_S_CONVERSATION, &rc);
    if (st == NULL) {
        return rc;
    }
    sqlite3_bind_int64(st, 1, id);
    rc = sqlite3_step(st);
    if (rc == SQLITE_ROW) {
        struct store_cell cells[STORE_MAX_COLUMNS];
        rc = store_row_read(st, STORE_CONVERSATIONS, cells) ? SQLITE_OK : SQLITE_CORRUPT;
        if (rc == SQLITE_OK && cells[C_DELETED].i == 0) {
            *found = true;
            conversation_of(&r->arena, cells, &r->event.conversation);
        }
    } else if (rc == SQLITE_DONE) {
        rc = SQLITE_OK;
    }
    sqlite3_reset(st);
    return rc;
}

int store_answer_load(struct cw_store *s, const struct store_op *op) {
    int64_t id = 0;
    bool found = false;
    struct store_reply *r = store_reply_new(CW_STORE_LOADED, op->serial);
    int rc = store_exec(s->db, "BEGIN"); /* one state of the file for all of it */
    if (rc == SQLITE_OK) {
        rc = find_conversation(s, op, &id);
    }
    if (rc == SQLITE_OK && id != 0) {
        rc = load_conversation(s, r, id, &found);
    }
    if (rc == SQLITE_OK && found) {
        r->event.owned = op->claim && store_claim(s, id);
        rc = load_messages(s, r, id);
    }
    if (!sqlite3_get_autocommit(s->db)) {
        store_exec(s->db, "COMMIT");
    }
    if (rc == SQLITE_OK && id != 0 && !found) {
        r->event.kind = CW_STORE_FAILED;
        store_reply_text(r, CW_ENOENT, "no such conversation");
    }
    if (rc == SQLITE_OK && id != 0) {
        store_post(s, r);
    } else {
        cw_store_event_free(&r->event);
    }
    return rc;
}
