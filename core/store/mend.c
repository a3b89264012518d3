/* SPDX-License-Identifier: MIT
 *
 * A damaged database: a new one is made of the rows that salvage.c finds, beside the old one; then
 * the old one gets another name, with its log, and the new one takes its place. Whatever happens on
 * the way, the old file is there under one of the two names, as it was.
 *
 * A message that is gone but has children gets an empty row in its place, so that the branches keep
 * their shape. How many messages are gone is known from these and from the conversations' counts.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/store/store_impl.h"

#define ASIDE "conversations.db.damaged-"

struct mending {
    sqlite3 *db;
    sqlite3_stmt *puts[STORE_N_TABLES];
    int rc;
    size_t n_recovered, n_lost;
};

/* ---- rows that were found ------------------------------------------------------------------- */

static int put(struct mending *m, enum store_table table, const struct store_cell *cells) {
    if (m->puts[table] == NULL) {
        char *sql = store_row_put_sql(table);
        int rc = sqlite3_prepare_v2(m->db, sql, -1, &m->puts[table], NULL);
        free(sql);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    store_row_bind(m->puts[table], table, cells);
    int rc = sqlite3_step(m->puts[table]);
    sqlite3_reset(m->puts[table]);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* A number of the row with this id; `none` where there is no row. */
static int64_t number(struct mending *m, const char *sql, int64_t id, int64_t none) {
    sqlite3_stmt *st = NULL;
    int64_t v = none;
    if (sqlite3_prepare_v2(m->db, sql, -1, &st, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(st, 1, id);
        if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) == SQLITE_INTEGER) {
            v = sqlite3_column_int64(st, 0);
        }
    }
    sqlite3_finalize(st);
    return v;
}

/* Of two states of one row the later one stays. */
static bool on_row(void *arg, enum store_table table, const struct store_cell *cells) {
    static const int rank[] = {
        [STORE_GROWING] = 1, [STORE_DONE] = 3, [STORE_AGAIN] = 2, [STORE_LOST] = 0};
    struct mending *m = arg;
    if (table == STORE_META || (table == STORE_MESSAGES && (cells[M_STATE].i < STORE_GROWING ||
                                                            cells[M_STATE].i > STORE_LOST))) {
        return true;
    }
    if (table == STORE_CONVERSATIONS && number(m, "SELECT updated FROM conversations WHERE id=?1",
                                               cells[C_ID].i, INT64_MIN) > cells[C_UPDATED].i) {
        return true;
    }
    if (table == STORE_MESSAGES) {
        int64_t state =
            number(m, "SELECT state FROM messages WHERE id=?1", cells[M_ID].i, STORE_LOST);
        if (rank[state] > rank[cells[M_STATE].i]) {
            return true;
        }
    }
    m->rc = put(m, table, cells);
    return m->rc == SQLITE_OK;
}

/* ---- what is missing ------------------------------------------------------------------------ */

struct link {
    int64_t id, conversation, parent, role, created;
};

static int read_links(struct mending *m, struct link **out, size_t *n) {
    sqlite3_stmt *st = NULL;
    size_t cap = 0;
    *out = NULL;
    *n = 0;
    int rc = sqlite3_prepare_v2(m->db,
                                "SELECT id,conversation,parent,role,created FROM messages"
                                " ORDER BY conversation,id",
                                -1, &st, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        if (*n == cap) {
            cap = cap ? 2 * cap : 256;
            *out = cw_reallocarray(*out, cap, sizeof **out);
        }
        (*out)[(*n)++] = (struct link){sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
                                       sqlite3_column_int64(st, 2), sqlite3_column_int64(st, 3),
                                       sqlite3_column_int64(st, 4)};
        rc = SQLITE_OK;
    }
    sqlite3_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* An empty message in the place of the lost parent of `child`. Its own parent can only be guessed:
 * the message put last before it. */
static int put_lost(struct mending *m, const struct link *first, const struct link *child) {
    struct store_cell cells[STORE_MAX_COLUMNS] = {0};
    struct cw_buf figures = {0}, sampling = {0};
    const struct cw_figures no_figures = {0};
    const struct cw_sampling settings = {0};
    cells[M_ID].i = child->parent;
    cells[M_CONVERSATION].i = child->conversation;
    for (const struct link *l = first; l->id < child->parent && l < child; l++) {
        cells[M_PARENT].i = l->id;
    }
    cells[M_ROLE].i = child->role == CW_STORE_USER ? CW_STORE_REPLY : CW_STORE_USER;
    cells[M_CREATED].i = child->created;
    cells[M_STATE].i = STORE_LOST;
    store_pack_figures(&figures, &no_figures);
    store_pack_sampling(&sampling, &settings);
    cells[M_FIGURES] = (struct store_cell){.p = figures.data, .n = figures.len};
    cells[M_SAMPLING] = (struct store_cell){.p = sampling.data, .n = sampling.len};
    int rc = put(m, STORE_MESSAGES, cells);
    cw_buf_free(&figures);
    cw_buf_free(&sampling);
    return rc;
}

/* The conversation's row, made anew where it is lost, with what is known now. `links` are all of
 * its messages, n > 0; n_lost of them were put for lost ones. */
static int settle_conversation(struct mending *m, const struct link *links, size_t n,
                               size_t n_lost) {
    static const char sql[] =
        "SELECT id,title,named,created,updated,model,hash,system,settings,leaf,n_messages,deleted,"
        "sum FROM conversations WHERE id=?1";
    struct store_cell cells[STORE_MAX_COLUMNS] = {0};
    struct cw_buf title = {0};
    sqlite3_stmt *st = NULL, *text = NULL;
    int rc = sqlite3_prepare_v2(m->db, sql, -1, &st, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }
    sqlite3_bind_int64(st, 1, links[0].conversation);
    bool found = sqlite3_step(st) == SQLITE_ROW && store_row_read(st, STORE_CONVERSATIONS, cells);
    if (found) {
        int64_t real = (int64_t)(n - n_lost);
        int64_t missing = cells[C_N_MESSAGES].i - real;
        m->n_lost += missing > (int64_t)n_lost ? (size_t)missing : n_lost;
    } else {
        m->n_lost += n_lost;
        cells[C_ID].i = links[0].conversation;
        cells[C_CREATED].i = links[0].created;
        cells[C_UPDATED].i = links[n - 1].created;
        rc = sqlite3_prepare_v2(m->db,
                                "SELECT text FROM messages WHERE conversation=?1 AND state=1"
                                " AND role=0 ORDER BY id LIMIT 1",
                                -1, &text, NULL);
        if (rc == SQLITE_OK) {
            sqlite3_bind_int64(text, 1, links[0].conversation);
            bool any = sqlite3_step(text) == SQLITE_ROW;
            cw_store_title(any ? (const char *)sqlite3_column_text(text, 0) : "",
                           any ? (size_t)sqlite3_column_bytes(text, 0) : 0, &title);
            cells[C_TITLE] = (struct store_cell){.p = title.data, .n = title.len};
        }
    }
    bool leaf = false;
    for (size_t i = 0; i < n; i++) {
        leaf = leaf || links[i].id == cells[C_LEAF].i;
    }
    if (!leaf && cells[C_LEAF].i != 0) {
        cells[C_LEAF].i = links[n - 1].id;
    } else if (!found) {
        cells[C_LEAF].i = links[n - 1].id;
    }
    cells[C_N_MESSAGES].i = (int64_t)n;
    rc = rc == SQLITE_OK ? put(m, STORE_CONVERSATIONS, cells) : rc;
    sqlite3_finalize(st);
    sqlite3_finalize(text);
    cw_buf_free(&title);
    return rc;
}

static size_t end_of(const struct link *links, size_t n, size_t begin) {
    size_t end = begin;
    while (end < n && links[end].conversation == links[begin].conversation) {
        end++;
    }
    return end;
}

static bool has(const struct link *links, size_t begin, size_t end, int64_t id) {
    while (begin < end) {
        size_t mid = begin + (end - begin) / 2;
        if (links[mid].id == id) {
            return true;
        }
        if (links[mid].id < id) {
            begin = mid + 1;
        } else {
            end = mid;
        }
    }
    return false;
}

static int restore_shape(struct mending *m) {
    struct link *links;
    size_t n;
    int rc = read_links(m, &links, &n);
    m->n_recovered = n;
    for (size_t begin = 0; begin < n && rc == SQLITE_OK; begin = end_of(links, n, begin)) {
        size_t end = end_of(links, n, begin);
        for (size_t i = begin; i < end && rc == SQLITE_OK; i++) {
            /* a parent in another conversation would be overwritten: such a child begins anew */
            if (links[i].parent != 0 && !has(links, begin, end, links[i].parent) &&
                number(m, "SELECT id FROM messages WHERE id=?1", links[i].parent, 0) == 0) {
                rc = put_lost(m, &links[begin], &links[i]);
            }
        }
    }
    free(links);
    if (rc == SQLITE_OK) {
        rc = read_links(m, &links, &n);
        for (size_t begin = 0; begin < n && rc == SQLITE_OK; begin = end_of(links, n, begin)) {
            size_t end = end_of(links, n, begin);
            size_t real = (size_t)number(
                m, "SELECT count(*) FROM messages WHERE conversation=?1 AND state<>3",
                links[begin].conversation, 0);
            rc = settle_conversation(m, &links[begin], end - begin, end - begin - real);
        }
        free(links);
    }
    return rc;
}

/* Conversations of which no message is left: all of theirs are lost. */
static int settle_empty(struct mending *m) {
    sqlite3_stmt *st = NULL;
    struct store_cell cells[STORE_MAX_COLUMNS];
    int rc = sqlite3_prepare_v2(
        m->db,
        "SELECT id,title,named,created,updated,model,hash,system,settings,leaf,n_messages,deleted,"
        "sum FROM conversations WHERE n_messages<>0 AND id NOT IN"
        " (SELECT conversation FROM messages)",
        -1, &st, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        if (store_row_read(st, STORE_CONVERSATIONS, cells)) {
            m->n_lost += cells[C_N_MESSAGES].i > 0 ? (size_t)cells[C_N_MESSAGES].i : 0;
            cells[C_N_MESSAGES].i = 0;
            cells[C_LEAF].i = 0;
            rc = put(m, STORE_CONVERSATIONS, cells);
        }
    }
    sqlite3_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int build(struct cw_store *s, struct mending *m, const char *new_path, const char *wal,
                 struct cw_err *err) {
    m->rc = store_create_file(&m->db, new_path, s->vfs);
    if (m->rc == SQLITE_OK) {
        m->rc = store_exec(m->db, "PRAGMA foreign_keys=OFF; PRAGMA synchronous=FULL; BEGIN");
    }
    if (m->rc == SQLITE_OK && store_salvage(s->path, wal, on_row, m, err) != CW_OK) {
        return SQLITE_IOERR;
    }
    if (m->rc == SQLITE_OK) {
        m->rc = restore_shape(m);
    }
    if (m->rc == SQLITE_OK) {
        m->rc = settle_empty(m);
    }
    if (m->rc == SQLITE_OK) {
        m->rc =
            store_exec(m->db, "DELETE FROM pieces WHERE message NOT IN (SELECT id FROM messages);"
                              "DELETE FROM tokens WHERE message NOT IN (SELECT id FROM messages);"
                              "DELETE FROM changes WHERE message NOT IN (SELECT id FROM messages);"
                              "INSERT INTO search(rowid,text) SELECT id,text FROM messages"
                              " WHERE state IN (1,2);"
                              "COMMIT");
    }
    if (m->rc != SQLITE_OK && err->code == CW_OK) {
        cw_fail(err, CW_EIO, "%s is damaged and cannot be mended: %s", s->path,
                m->db != NULL ? sqlite3_errmsg(m->db) : sqlite3_errstr(m->rc));
    }
    return m->rc;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* A name that is not taken: with the time, and a number where that is not enough. */
static char *aside_path(const struct cw_store *s) {
    struct cw_buf path = {0};
    char when[32] = "";
    time_t now = time(NULL);
    struct tm tm;
    if (gmtime_r(&now, &tm) != NULL) {
        strftime(when, sizeof when, "%Y%m%d-%H%M%S", &tm);
    }
    for (int i = 0;; i++) {
        cw_buf_clear(&path);
        cw_buf_printf(&path, "%s/" ASIDE "%s", s->dir, when);
        if (i > 0) {
            cw_buf_printf(&path, "-%d", i);
        }
        if (access(path.data, F_OK) != 0) {
            return cw_buf_take(&path);
        }
    }
}

static char *join(const char *a, const char *b) {
    struct cw_buf out = {0};
    cw_buf_printf(&out, "%s%s", a, b);
    return cw_buf_take(&out);
}

/* The new file in the place of the old one. */
static int swap(const struct cw_store *s, const char *new_path, const char *wal, const char *aside,
                struct cw_err *err) {
    char *aside_wal = join(aside, "-wal");
    char *shm = join(s->path, "-shm");
    bool ok = true;
    /* The second name first: the old file is never without one. */
    if (access(s->path, F_OK) == 0 && link(s->path, aside) != 0) {
        ok = rename(s->path, aside) == 0; /* a file system without links */
    }
    if (ok && access(wal, F_OK) == 0) {
        ok = rename(wal, aside_wal) == 0;
    }
    if (ok) {
        unlink(shm);
        ok = rename(new_path, s->path) == 0;
    }
    if (!ok) {
        cw_fail(err, CW_EIO, "%s is damaged and cannot be put aside: %s", s->path, strerror(errno));
    }
    int dir = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0) {
        fsync(dir);
        close(dir);
    }
    free(aside_wal);
    free(shm);
    return ok ? SQLITE_OK : SQLITE_IOERR;
}

int store_mend(struct cw_store *s, struct cw_err *err) {
    struct mending m = {0};
    err->code = CW_OK;
    store_close(s, false);
    if (!store_lock_alone(s)) {
        cw_fail(err, CW_EBUSY, "%s is damaged; it is mended once no other program has it open",
                s->path);
        return SQLITE_BUSY;
    }
    char *new_path = join(s->path, ".new");
    char *new_journal = join(new_path, "-journal");
    char *wal = join(s->path, "-wal");
    char *aside = aside_path(s);
    unlink(new_path);
    unlink(new_journal);
    int rc = build(s, &m, new_path, wal, err);
    for (int t = 0; t < STORE_N_TABLES; t++) {
        sqlite3_finalize(m.puts[t]);
    }
    if (sqlite3_close(m.db) != SQLITE_OK && rc == SQLITE_OK) {
        rc = SQLITE_IOERR;
    }
    if (rc == SQLITE_OK) {
        rc = swap(s, new_path, wal, aside, err);
    }
    if (rc == SQLITE_OK) {
        struct store_reply *r = store_reply_new(CW_STORE_MENDED, 0);
        r->event.n_recovered = m.n_recovered;
        r->event.n_lost = m.n_lost;
        r->event.path = (char *)(uintptr_t)store_arena_str(&r->arena, aside, strlen(aside)).data;
        store_reply_text(r, CW_EFORMAT,
                         "the store was damaged: %zu messages recovered, %zu not; the damaged file "
                         "is kept as %s",
                         m.n_recovered, m.n_lost, aside);
        store_post(s, r);
        s->n_mended++;
    } else {
        unlink(new_path);
        unlink(new_journal);
    }
    store_lock_shared(s);
    free(new_path);
    free(new_journal);
    free(wal);
    free(aside);
    return rc;
}

/* Every damaged copy; the number of them, removing them or not. */
static size_t each_aside(const struct cw_store *s, bool remove) {
    size_t n = 0;
    DIR *d = opendir(s->dir);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (strncmp(e->d_name, ASIDE, strlen(ASIDE)) == 0) {
            n++;
            if (remove) {
                unlinkat(dirfd(d), e->d_name, 0);
            }
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    return n;
}

void store_remove_aside(struct cw_store *s) {
    each_aside(s, true);
}

bool store_has_aside(struct cw_store *s) {
    return each_aside(s, false) > 0;
}
