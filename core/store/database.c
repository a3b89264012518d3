/* SPDX-License-Identifier: MIT
 *
 * The database file: opening, its schema and its versions, checking it.
 *
 * A file is ours when application_id says so, its user_version is one we know, and its schema is
 * exactly the one of that version: what else a hand-made file may hold (triggers, views, other
 * columns) is never run. The version also stands in a row with a checksum, so that a broken header
 * is told from a file of another program or of a newer version.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chinwag/dirs.h"
#include "core/store/store_impl.h"

enum {
    APPLICATION_ID = 0x6377696e, /* "cwin" */
    BUSY_MS = 1000,
    CACHE_KIB = 16384,
    LOG_KIB = 1024,           /* kept of a log that was written back */
    CHECK_AT_ONCE = 32 << 20, /* bytes of a file that is checked whole before its first use */
};

/* Each brings the schema from the version before to the next; rows are never changed in place by
 * SQL, because their sums would no longer hold. */
static const char *const migrations[] = {
    /* 1 */
    "CREATE TABLE meta(id INTEGER PRIMARY KEY, value TEXT NOT NULL, sum INTEGER NOT NULL);"
    "CREATE TABLE conversations(id INTEGER PRIMARY KEY, title TEXT NOT NULL,"
    " named INTEGER NOT NULL, created INTEGER NOT NULL, updated INTEGER NOT NULL,"
    " model TEXT NOT NULL, hash TEXT NOT NULL, system TEXT NOT NULL, settings BLOB NOT NULL,"
    " leaf INTEGER NOT NULL, n_messages INTEGER NOT NULL, deleted INTEGER NOT NULL,"
    " sum INTEGER NOT NULL);"
    "CREATE INDEX conversations_updated ON conversations(updated);"
    "CREATE TABLE messages(id INTEGER PRIMARY KEY,"
    " conversation INTEGER NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,"
    " parent INTEGER NOT NULL, role INTEGER NOT NULL, created INTEGER NOT NULL,"
    " state INTEGER NOT NULL, text TEXT NOT NULL, reasoning TEXT NOT NULL, stop INTEGER NOT NULL,"
    " seed INTEGER NOT NULL, first_position INTEGER NOT NULL, n_tokens INTEGER NOT NULL,"
    " figures BLOB NOT NULL, sampling BLOB NOT NULL, model TEXT NOT NULL, hash TEXT NOT NULL,"
    " arithmetic TEXT NOT NULL, extra BLOB NOT NULL, sum INTEGER NOT NULL);"
    "CREATE INDEX messages_conversation ON messages(conversation);"
    "CREATE INDEX messages_unfinished ON messages(state) WHERE state IN (0, 2);"
    "CREATE TABLE pieces(id INTEGER PRIMARY KEY,"
    " message INTEGER NOT NULL REFERENCES messages(id) ON DELETE CASCADE,"
    " text TEXT NOT NULL, reasoning TEXT NOT NULL, sum INTEGER NOT NULL);"
    "CREATE INDEX pieces_message ON pieces(message);"
    "CREATE TABLE tokens(id INTEGER PRIMARY KEY,"
    " message INTEGER NOT NULL REFERENCES messages(id) ON DELETE CASCADE,"
    " first INTEGER NOT NULL, n INTEGER NOT NULL, data BLOB NOT NULL, sum INTEGER NOT NULL);"
    "CREATE INDEX tokens_message ON tokens(message, first);"
    "CREATE TABLE changes(id INTEGER PRIMARY KEY,"
    " message INTEGER NOT NULL REFERENCES messages(id) ON DELETE CASCADE,"
    " data BLOB NOT NULL, sum INTEGER NOT NULL);"
    "CREATE INDEX changes_message ON changes(message);",
    /* 2: searching */
    "CREATE VIRTUAL TABLE search USING fts5(text, content='messages', content_rowid='id',"
    " tokenize='unicode61 remove_diacritics 2');"
    "INSERT INTO search(rowid, text) SELECT id, text FROM messages WHERE state IN (1, 2);",
};
enum { VERSION = sizeof migrations / sizeof *migrations };

#define MESSAGE_COLUMNS                                                                            \
    "id,conversation,parent,role,created,state,text,reasoning,stop,seed,first_position,n_tokens,"  \
    "figures,sampling,model,hash,arithmetic,extra,sum"
#define CONVERSATION_COLUMNS                                                                       \
    "id,title,named,created,updated,model,hash,system,settings,leaf,n_messages,deleted,sum"

static const char *const statement_sql[STORE_N_STATEMENTS] = {
    [STORE_S_CONVERSATION] = "SELECT " CONVERSATION_COLUMNS " FROM conversations WHERE id=?1",
    [STORE_S_MESSAGE] = "SELECT " MESSAGE_COLUMNS " FROM messages WHERE id=?1",
    [STORE_S_PIECES_OF] =
        "SELECT id,message,text,reasoning,sum FROM pieces WHERE message=?1 ORDER BY id",
    [STORE_S_TOKENS_OF] =
        "SELECT id,message,first,n,data,sum FROM tokens WHERE message=?1 ORDER BY first",
    [STORE_S_CHANGES_OF] = "SELECT id,message,data,sum FROM changes WHERE message=?1 ORDER BY id",
    [STORE_S_N_TOKENS] = "SELECT coalesce(max(first+n),0) FROM tokens WHERE message=?1",
    [STORE_S_DROP_PIECES] = "DELETE FROM pieces WHERE message=?1",
    [STORE_S_DROP_TOKENS] = "DELETE FROM tokens WHERE message=?1",
    [STORE_S_DROP_CHANGES] = "DELETE FROM changes WHERE message=?1",
    [STORE_S_MESSAGES_OF] =
        "SELECT " MESSAGE_COLUMNS " FROM messages WHERE conversation=?1 ORDER BY id",
    [STORE_S_UNFINISHED] = "SELECT id,conversation FROM messages WHERE state IN (0, 2)",
    [STORE_S_INDEX_ADD] = "INSERT INTO search(rowid,text) VALUES(?1,?2)",
    [STORE_S_INDEX_DROP] = "INSERT INTO search(search,rowid,text) VALUES('delete',?1,?2)",
    [STORE_S_LIST] =
        "SELECT " CONVERSATION_COLUMNS " FROM conversations WHERE deleted=0 ORDER BY updated DESC",
    [STORE_S_IDS] = "SELECT id FROM conversations WHERE deleted=0 ORDER BY updated DESC",
    [STORE_S_DELETED] = "SELECT id FROM conversations WHERE deleted=1",
    [STORE_S_DROP_CONVERSATION] = "DELETE FROM conversations WHERE id=?1",
    [STORE_S_PURGE_DUE] = "SELECT count(*) FROM meta WHERE id=2",
    [STORE_S_SEARCH] = "SELECT m.id,m.conversation FROM search JOIN messages m"
                       " ON m.id=search.rowid WHERE search MATCH ?1 ORDER BY search.rowid DESC",
    [STORE_S_NEXT_PIECE] = "SELECT coalesce(max(id),0)+1 FROM pieces",
    [STORE_S_NEXT_TOKENS] = "SELECT coalesce(max(id),0)+1 FROM tokens",
    [STORE_S_NEXT_CHANGE] = "SELECT coalesce(max(id),0)+1 FROM changes",
};

/* ---- statements ----------------------------------------------------------------------------- */

int store_exec(sqlite3 *db, const char *sql) {
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

sqlite3_stmt *store_statement(struct cw_store *s, enum store_statement which, int *rc) {
    sqlite3_stmt **st = &s->statements[which];
    *rc = SQLITE_OK;
    if (*st != NULL) {
        sqlite3_reset(*st);
        return *st;
    }
    if (which < STORE_S_PUT + STORE_N_TABLES) {
        char *sql = store_row_put_sql((enum store_table)(which - STORE_S_PUT));
        *rc = sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, st, NULL);
        free(sql);
    } else {
        *rc = sqlite3_prepare_v3(s->db, statement_sql[which], -1, SQLITE_PREPARE_PERSISTENT, st,
                                 NULL);
    }
    return *st;
}

/* One number out of a query; `fallback` when there is no row. */
static int query_number(sqlite3 *db, const char *sql, int64_t fallback, int64_t *out) {
    sqlite3_stmt *st = NULL;
    *out = fallback;
    int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(st);
        if (rc == SQLITE_ROW) {
            *out = sqlite3_column_int64(st, 0);
            rc = SQLITE_OK;
        } else if (rc == SQLITE_DONE) {
            rc = SQLITE_OK;
        }
    }
    sqlite3_finalize(st);
    return rc;
}

bool store_is_damage(int rc) {
    return (rc & 0xff) == SQLITE_CORRUPT || (rc & 0xff) == SQLITE_NOTADB;
}

/* ---- schema --------------------------------------------------------------------------------- */

static int put_version(sqlite3 *db, int version) {
    char sql[64];
    struct store_cell cells[STORE_MAX_COLUMNS] = {{.i = STORE_META_VERSION}};
    struct cw_buf value = {0};
    sqlite3_stmt *st = NULL;
    cw_buf_printf(&value, "chinwag %d", version);
    cells[META_VALUE] = (struct store_cell){.p = value.data, .n = value.len};
    char *put = store_row_put_sql(STORE_META);
    int rc = sqlite3_prepare_v2(db, put, -1, &st, NULL);
    if (rc == SQLITE_OK) {
        store_row_bind(st, STORE_META, cells);
        rc = sqlite3_step(st);
        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    }
    sqlite3_finalize(st);
    free(put);
    cw_buf_free(&value);
    if (rc == SQLITE_OK) {
        sqlite3_snprintf(sizeof sql, sql, "PRAGMA user_version=%d", version);
        rc = store_exec(db, sql);
    }
    return rc;
}

/* The version as the row with the checksum has it; 0: there is none. */
static int stored_version(sqlite3 *db) {
    sqlite3_stmt *st = NULL;
    struct store_cell cells[STORE_MAX_COLUMNS];
    int version = 0;
    if (sqlite3_prepare_v2(db, "SELECT id,value,sum FROM meta WHERE id=1", -1, &st, NULL) ==
            SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW && store_row_read(st, STORE_META, cells)) {
        struct cw_str v = store_cell_get(&cells[META_VALUE]);
        if (v.len > 8 && v.len < 16 && memcmp(v.data, "chinwag ", 8) == 0) {
            version = atoi(v.data + 8); /* text of SQLite is terminated */
        }
    }
    sqlite3_finalize(st);
    return version;
}

/* Versions (from, to]. */
static int migrate(sqlite3 *db, int from, int to) {
    int rc = SQLITE_OK;
    for (int v = from; v < to && rc == SQLITE_OK; v++) {
        rc = store_exec(db, migrations[v]);
    }
    return rc == SQLITE_OK ? put_version(db, to) : rc;
}

/* All that a schema says, but for the text index's own tables, which are SQLite's affair. */
static int schema_text(sqlite3 *db, struct cw_buf *out) {
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db,
                                "SELECT type,name,tbl_name,sql FROM sqlite_schema"
                                " WHERE name NOT GLOB 'search_*' AND name NOT GLOB 'sqlite_stat*'"
                                " ORDER BY name",
                                -1, &st, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        for (int i = 0; i < 4; i++) {
            const char *text = (const char *)sqlite3_column_text(st, i);
            cw_buf_puts(out, text != NULL ? text : "");
            cw_buf_putc(out, '\n');
        }
        rc = SQLITE_OK;
    }
    sqlite3_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int check_schema(sqlite3 *db, int version) {
    sqlite3 *model = NULL;
    struct cw_buf want = {0}, got = {0};
    int rc = sqlite3_open_v2(":memory:", &model, SQLITE_OPEN_READWRITE, NULL);
    if (rc == SQLITE_OK) {
        rc = migrate(model, 0, version);
    }
    if (rc == SQLITE_OK) {
        rc = schema_text(model, &want);
    }
    sqlite3_close(model);
    if (rc == SQLITE_OK) {
        rc = schema_text(db, &got);
    }
    if (rc == SQLITE_OK && strcmp(want.data ? want.data : "", got.data ? got.data : "") != 0) {
        rc = SQLITE_CORRUPT;
    }
    cw_buf_free(&want);
    cw_buf_free(&got);
    return rc;
}

/* Another program's file, or a newer version's: not to be touched. */
static int refuse(struct cw_store *s, struct cw_err *err, const char *what) {
    s->refused = true;
    cw_fail(err, CW_EUNSUP, "%s %s; nothing is saved", s->path, what);
    return SQLITE_MISMATCH;
}

/* Whose file it is, and bring it to the present version. */
static int settle_version(struct cw_store *s, struct cw_err *err) {
    int64_t id, version, n_objects;
    int rc = query_number(s->db, "PRAGMA application_id", 0, &id);
    if (rc == SQLITE_OK) {
        rc = query_number(s->db, "PRAGMA user_version", 0, &version);
    }
    if (rc == SQLITE_OK) {
        rc = query_number(s->db, "SELECT count(*) FROM sqlite_schema", 0, &n_objects);
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    bool fresh = n_objects == 0 && version == 0;
    int stored = fresh ? 0 : stored_version(s->db);
    if (!fresh && id != APPLICATION_ID && stored == 0) {
        return refuse(s, err, "was not made by chinwag");
    }
    if (!fresh && (id != APPLICATION_ID || version != stored)) {
        /* One bit between what the header and the row say is a broken header. */
        int64_t differ = version ^ stored;
        bool one_bit = differ != 0 && (differ & (differ - 1)) == 0;
        if (id == APPLICATION_ID && version > VERSION && !(one_bit && stored != 0)) {
            return refuse(s, err, "was made by a newer version of chinwag");
        }
        return SQLITE_CORRUPT;
    }
    if (version > VERSION) {
        return refuse(s, err, "was made by a newer version of chinwag");
    }
    if (!fresh) {
        rc = check_schema(s->db, (int)version);
    }
    if (rc == SQLITE_OK && version < VERSION && !s->read_only) {
        rc = store_exec(s->db, "BEGIN IMMEDIATE");
        /* another program may have been faster */
        if (rc == SQLITE_OK) {
            rc = query_number(s->db, "PRAGMA user_version", 0, &version);
        }
        if (rc == SQLITE_OK) {
            char sql[64];
            sqlite3_snprintf(sizeof sql, sql, "PRAGMA application_id=%d", APPLICATION_ID);
            rc = store_exec(s->db, sql);
        }
        if (rc == SQLITE_OK && version < VERSION) {
            rc = migrate(s->db, (int)version, VERSION);
        }
        int end = store_exec(s->db, rc == SQLITE_OK ? "COMMIT" : "ROLLBACK");
        rc = rc == SQLITE_OK ? end : rc;
    }
    return rc;
}

/* ---- opening -------------------------------------------------------------------------------- */

static int configure(sqlite3 *db, bool read_only) {
    sqlite3_extended_result_codes(db, 1);
    sqlite3_busy_timeout(db, BUSY_MS);
    /* Nothing in a file is code. */
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    /* Closing must not write to a file that turns out damaged; thread.c checkpoints itself. */
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    char sql[400];
    sqlite3_snprintf(sizeof sql, sql,
                     "PRAGMA cell_size_check=ON; PRAGMA foreign_keys=ON; PRAGMA secure_delete=ON;"
                     "PRAGMA temp_store=MEMORY; PRAGMA mmap_size=0; PRAGMA cache_size=-%d;"
                     "%s",
                     CACHE_KIB, read_only ? "PRAGMA query_only=ON" : "");
    return store_exec(db, sql);
}

/* Only reading, without a log: for a folder that cannot be written to. */
static int open_read_only(struct cw_store *s) {
    struct cw_buf uri = {0};
    cw_buf_puts(&uri, "file:");
    for (const char *p = s->path; *p != '\0'; p++) {
        if (*p == '?' || *p == '#' || *p == '%') {
            cw_buf_printf(&uri, "%%%02x", (unsigned)*p);
        } else {
            cw_buf_putc(&uri, *p);
        }
    }
    cw_buf_puts(&uri, "?immutable=1");
    int rc = sqlite3_open_v2(uri.data, &s->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, s->vfs);
    cw_buf_free(&uri);
    return rc;
}

static int on_commit(void *arg, sqlite3 *db, const char *name, int pages) {
    struct cw_store *s = arg;
    s->wal_pages = pages;
    return SQLITE_OK;
}

static const char log_sql[] = "PRAGMA journal_mode=WAL";

static int open_writable(struct cw_store *s) {
    int fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600); /* SQLite would make it 0644 */
    if (fd < 0) {
        return errno == EROFS || errno == EACCES ? SQLITE_READONLY : SQLITE_CANTOPEN;
    }
    close(fd);
    int rc = sqlite3_open_v2(s->path, &s->db, SQLITE_OPEN_READWRITE, s->vfs);
    if (rc == SQLITE_OK) {
        rc = configure(s->db, false);
    }
    /* A file that is not ours keeps its journal mode. */
    int64_t n_objects = 0, id = 0;
    if (rc == SQLITE_OK) {
        rc = query_number(s->db, "SELECT count(*) FROM sqlite_schema", 0, &n_objects);
    }
    if (rc == SQLITE_OK) {
        rc = query_number(s->db, "PRAGMA application_id", 0, &id);
    }
    if (rc == SQLITE_OK && (n_objects == 0 || id == APPLICATION_ID)) {
        char sql[120];
        sqlite3_snprintf(sizeof sql, sql,
                         "PRAGMA wal_autocheckpoint=0; PRAGMA journal_size_limit=%d",
                         LOG_KIB * 1024);
        rc = n_objects == 0 ? store_exec(s->db, "PRAGMA page_size=4096") : SQLITE_OK;
        rc = rc == SQLITE_OK ? store_exec(s->db, log_sql) : rc;
        rc = rc == SQLITE_OK ? store_exec(s->db, sql) : rc;
        sqlite3_wal_hook(s->db, on_commit, s);
    }
    return rc;
}

static off_t size_of(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

/* What SQLite would pass over in silence: a log whose middle is broken, or whose file is gone. */
static int check_log(struct cw_store *s) {
    struct cw_buf wal = {0};
    cw_buf_printf(&wal, "%s-wal", s->path);
    bool bad = size_of(wal.data) > 0 &&
               (size_of(s->path) == 0 || (size_of(s->path) > 0 && store_wal_is_damaged(wal.data)));
    cw_buf_free(&wal);
    return bad ? SQLITE_CORRUPT : SQLITE_OK;
}

/* Fields of the file's header that are the same in every file of ours, and which SQLite takes for
 * another kind of file when they are not. The text of it, and whose it is, are looked at by others.
 */
static int check_header(const struct cw_store *s) {
    static const unsigned char fixed[8] = {0x10, 0, 2, 2, 0, 64, 32, 32}; /* from byte 16 on */
    unsigned char h[100];
    int fd = open(s->path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? pread(fd, h, sizeof h, 0) : 0;
    if (fd >= 0) {
        close(fd);
    }
    if (n != sizeof h || memcmp(h, "SQLite format 3", 16) != 0 || memcmp(h + 68, "cwin", 4) != 0) {
        return SQLITE_OK;
    }
    h[18] = h[18] == 1 ? 2 : h[18]; /* a file just mended has no log yet */
    h[19] = h[19] == 1 ? 2 : h[19];
    static const unsigned char schema[4] = {0, 0, 0, 4}, encoding[4] = {0, 0, 0, 1};
    bool good = memcmp(h + 16, fixed, sizeof fixed) == 0 && memcmp(h + 44, schema, 4) == 0 &&
                memcmp(h + 56, encoding, 4) == 0;
    return good ? SQLITE_OK : SQLITE_CORRUPT;
}

/* A file of ours is never empty for longer than it takes to be made. */
static bool is_emptied(const struct cw_store *s) {
    struct stat st;
    return !s->made && stat(s->path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0;
}

int store_open(struct cw_store *s, struct cw_err *err) {
    err->code = CW_OK;
    s->read_only = false;
    int rc = cw_dirs_make(s->dir, err) == CW_OK ? SQLITE_OK : SQLITE_CANTOPEN;
    bool writable = rc == SQLITE_OK;
    if (writable) {
        rc = store_lock_open(s);
        writable = rc == SQLITE_OK;
    }
    bool alone = writable && store_lock_alone(s);
    if (alone) {
        rc = check_log(s);
        rc = rc == SQLITE_OK ? check_header(s) : rc;
    }
    bool emptied = alone && rc == SQLITE_OK && is_emptied(s);
    if (rc == SQLITE_OK && writable) {
        rc = open_writable(s);
    }
    int kind = rc & 0xff;
    if ((kind == SQLITE_READONLY || kind == SQLITE_CANTOPEN || kind == SQLITE_PERM) &&
        size_of(s->path) > 0) {
        sqlite3_close(s->db);
        s->db = NULL;
        int again = open_read_only(s);
        if (again == SQLITE_OK) {
            again = configure(s->db, true);
        }
        s->read_only = again == SQLITE_OK;
        rc = s->read_only ? SQLITE_OK : rc;
    }
    if (rc == SQLITE_OK) {
        rc = settle_version(s, err);
    }
    if (rc == SQLITE_OK && alone && !s->checked && size_of(s->path) <= CHECK_AT_ONCE) {
        rc = store_check(s, false);
    }
    if (rc == SQLITE_OK) {
        int64_t deleted = 0;
        rc = query_number(s->db,
                          "SELECT EXISTS(SELECT 1 FROM conversations WHERE deleted=1)"
                          " OR EXISTS(SELECT 1 FROM meta WHERE id=2)",
                          0, &deleted);
        s->purge_left = s->purge_left || (deleted != 0 && !s->purge);
    }
    if (alone) {
        store_lock_shared(s);
    }
    s->made = s->made || writable; /* whatever is found from now on */
    if (emptied && rc == SQLITE_OK) {
        store_notice(s, "%s was empty: whatever was kept in it is gone", s->path);
    }
    if (rc != SQLITE_OK) {
        if (err->code == CW_OK) {
            cw_fail(err, CW_EIO, "%s: %s", s->path,
                    s->db != NULL && sqlite3_errcode(s->db) != SQLITE_OK ? sqlite3_errmsg(s->db)
                                                                         : sqlite3_errstr(rc));
        }
        store_close(s, false);
    }
    return rc;
}

void store_close(struct cw_store *s, bool checkpoint) {
    for (int i = 0; i < STORE_N_STATEMENTS; i++) {
        sqlite3_finalize(s->statements[i]);
        s->statements[i] = NULL;
    }
    if (s->db != NULL && checkpoint) {
        sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    }
    sqlite3_close(s->db);
    s->db = NULL;
}

int store_create_file(sqlite3 **db, const char *path, const char *vfs) {
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return SQLITE_CANTOPEN;
    }
    close(fd);
    int rc = sqlite3_open_v2(path, db, SQLITE_OPEN_READWRITE, vfs);
    if (rc == SQLITE_OK) {
        rc = configure(*db, false);
    }
    if (rc == SQLITE_OK) {
        char sql[200];
        sqlite3_snprintf(sizeof sql, sql,
                         "PRAGMA page_size=4096; PRAGMA journal_mode=DELETE; BEGIN;"
                         "PRAGMA application_id=%d",
                         APPLICATION_ID);
        rc = store_exec(*db, sql);
    }
    if (rc == SQLITE_OK) {
        rc = migrate(*db, 0, VERSION);
    }
    return rc == SQLITE_OK ? store_exec(*db, "COMMIT") : rc;
}

/* ---- checking ------------------------------------------------------------------------------- */

static int wants_to_go_on(void *arg) {
    struct cw_store *s = arg;
    pthread_mutex_lock(&s->mutex);
    bool stop = s->closing || s->queue.first != NULL;
    pthread_mutex_unlock(&s->mutex);
    return stop;
}

void store_interruptible(struct cw_store *s, bool on) {
    enum { STEPS = 1000 }; /* of SQLite's machine between two looks */
    sqlite3_progress_handler(s->db, STEPS, on ? wants_to_go_on : NULL, s);
}

static int check_pages(struct cw_store *s) {
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(s->db, "PRAGMA integrity_check(1)", -1, &st, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(st);
        if (rc == SQLITE_ROW) {
            const char *word = (const char *)sqlite3_column_text(st, 0);
            rc = word != NULL && strcmp(word, "ok") == 0 ? SQLITE_OK : SQLITE_CORRUPT;
        }
    }
    sqlite3_finalize(st);
    return rc;
}

static int check_rows(struct cw_store *s, enum store_table table) {
    char sql[400];
    struct store_cell cells[STORE_MAX_COLUMNS];
    sqlite3_stmt *st = NULL;
    sqlite3_snprintf(sizeof sql, sql, "SELECT %s,sum FROM %s", store_tables[table].columns,
                     store_tables[table].name);
    int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);
    while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        rc = store_row_read(st, table, cells) ? SQLITE_OK : SQLITE_CORRUPT;
    }
    sqlite3_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int store_check(struct cw_store *s, bool interruptible) {
    store_interruptible(s, interruptible);
    /* Older versions of SQLite look at the pages of a table in one step, and of a large file no
     * question can wait for that: there the rows, which all have their sums, must do. */
    bool pages = !interruptible || size_of(s->path) <= CHECK_AT_ONCE;
    int rc = pages ? check_pages(s) : SQLITE_OK;
    for (int t = 0; t < STORE_N_TABLES && rc == SQLITE_OK; t++) {
        rc = check_rows(s, (enum store_table)t);
    }
    store_interruptible(s, false);
    s->checked = s->checked || rc == SQLITE_OK;
    return rc;
}

int store_check_index(struct cw_store *s) {
    if (size_of(s->path) > CHECK_AT_ONCE) {
        s->index_checked = true; /* it would take too long; searching notices most */
        return SQLITE_OK;
    }
    store_interruptible(s, true);
    int rc = store_exec(s->db, "INSERT INTO search(search,rank) VALUES('integrity-check',0)");
    store_interruptible(s, false);
    if (store_is_damage(rc)) {
        rc = store_exec(s->db, "INSERT INTO search(search) VALUES('rebuild')");
    }
    s->index_checked = rc == SQLITE_OK;
    return rc;
}
