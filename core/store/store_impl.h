/* SPDX-License-Identifier: MIT
 *
 * The parts of the store: the queue between the two threads (queue.c), the store's thread
 * (thread.c), and what it does to the database (database.c, write.c, read.c, mend.c, salvage.c).
 * Everything below "the thread's own" is touched by the store's thread only.
 */
#ifndef CORE_STORE_IMPL_H
#define CORE_STORE_IMPL_H

#include <pthread.h>
#include <sqlite3.h>

#include "chinwag/store.h"
#include "core/store/rows.h"

/* ---- memory that is freed at once ---- */

struct store_arena {
    struct store_block *blocks;
};
void *store_arena_alloc(struct store_arena *a, size_t bytes); /* zeroed, aligned */
/* A copy, terminated. */
struct cw_str store_arena_str(struct store_arena *a, const void *data, size_t n);
void store_arena_free(struct store_arena *a);

/* ---- the queue ---- */

enum store_op_kind {
    STORE_PUT_CONVERSATION,
    STORE_PUT_MESSAGE,
    STORE_APPEND,
    STORE_ADD_CHANGE,
    STORE_FINISH,
    STORE_RESUME,
    STORE_SET_EXTRA,
    STORE_SET_LEAF,
    STORE_RENAME,
    STORE_DELETE,
    STORE_UNDELETE,
    STORE_DELETE_ALL,
    STORE_RELEASE,
    STORE_ASK_LIST, /* from here on questions */
    STORE_ASK_LOAD,
};

struct store_op {
    struct store_op *next;
    enum store_op_kind kind;
    uint64_t serial;
    size_t bytes; /* that it counts for in the queue */
    int64_t id;   /* of the message or conversation */
    int64_t leaf;
    int stop;
    bool claim;
    size_t limit;
    struct cw_store_conversation conversation; /* text in the arena */
    struct cw_store_message message;           /* likewise */
    struct cw_store_change change;
    struct cw_figures figures;
    struct cw_buf text, reasoning; /* appends grow */
    struct cw_store_token *tokens;
    size_t n_tokens, cap_tokens;
    struct store_arena arena;
};
void store_op_free(struct store_op *op);

struct store_ops {
    struct store_op *first, **end;
};
void store_ops_init(struct store_ops *list);
void store_ops_add(struct store_ops *list, struct store_op *op);
struct store_op *store_ops_take(struct store_ops *list); /* the first, or NULL */
void store_ops_clear(struct store_ops *list);

struct store_reply {
    struct cw_store_event event; /* first: what the caller frees is this */
    struct store_reply *next;
    struct store_arena arena;
};

/* ---- the store ---- */

struct store_claim {
    int64_t conversation;
    bool owned;
};

struct cw_store {
    pthread_t thread;
    int event_fd;
    /* the main thread's own */
    int64_t last_id;
    int64_t *holed; /* messages that take no more until they are put again */
    size_t n_holed;

    pthread_mutex_t mutex; /* guards what follows; never held during input or output */
    pthread_cond_t wake;
    struct store_ops queue;
    struct store_op *queue_tail;     /* its last, where it has one */
    size_t queued_bytes, max_queued; /* the ops that are being written count too */
    uint64_t last_serial;            /* of the writes */
    bool urgent;                     /* something other than more of a reply waits */
    bool closing;
    struct store_reply *replies, **replies_end;
    struct store_reply *last_saved; /* in the list of replies; NULL: taken, or trouble came since */
    bool in_trouble;
    uint64_t saved_serial;
    struct cw_err trouble; /* why, while in_trouble */

    /* the thread's own */
    char *dir, *path; /* path: of the database */
    char *vfs;
    int (*gone)(void *arg, int64_t conversation, struct cw_err *err);
    void *gone_arg;
    sqlite3 *db;
    sqlite3_stmt *statements[STORE_N_STATEMENTS];
    bool read_only;     /* opened so, because it can not be opened otherwise */
    bool checked;       /* the whole of it, in this run */
    bool index_checked; /* the text index likewise */
    bool wal_dirty;     /* commits since the last checkpoint */
    bool purge;         /* at the end: something was deleted */
    bool purge_left;    /* when there is time: something was deleted before this run */
    bool purge_aside;   /* and damaged copies are to go as well */
    bool opened;        /* once in this run */
    bool made;          /* the file may be empty because this run has just made it */
    bool refused;       /* foreign, or of a newer version: to be left alone for good */
    int n_mended;       /* times in this run */
    int wal_pages;      /* of the log, at the last commit */
    int lock_fd;        /* < 0: none */
    struct store_claim *claims;
    size_t n_claims;
    int64_t *mine; /* messages put in this run into conversations of others */
    size_t n_mine;
    struct store_ops unsaved; /* taken from the queue, not yet on disk */
    double last_flush_s, retry_s, backoff_s, busy_since_s;
    struct cw_err not_removed; /* why something deleted is still there */
};

/* queue.c, store's thread: hand an event over. It points into its own arena. */
struct store_reply *store_reply_new(enum cw_store_event_kind kind, uint64_t serial);
void store_reply_text(struct store_reply *r, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void store_post(struct cw_store *s, struct store_reply *r);
void store_notice(struct cw_store *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* thread.c */
void *store_thread(void *store);

/* locks.c: other programs. */
int store_lock_open(struct cw_store *s); /* false lock: SQLITE_BUSY while another mends it */
bool store_lock_alone(struct cw_store *s);
void store_lock_shared(struct cw_store *s);
void store_lock_close(struct cw_store *s);
/* Whether the conversation belongs to this program, trying to make it so. */
bool store_claim(struct cw_store *s, int64_t conversation);
bool store_claimed(const struct cw_store *s, int64_t conversation);
void store_unclaim(struct cw_store *s, int64_t conversation);

/* database.c. Functions of the database return SQLite's codes. */
int store_open(struct cw_store *s, struct cw_err *err);
void store_close(struct cw_store *s, bool checkpoint);
/* An empty store of the present version in a new file. */
int store_create_file(sqlite3 **db, const char *path, const char *vfs);
/* Ready to be bound; NULL: *rc says why. */
sqlite3_stmt *store_statement(struct cw_store *s, enum store_statement which, int *rc);
int store_exec(sqlite3 *db, const char *sql);
/* What is under way gives up with SQLITE_INTERRUPT once something is wanted; false: no more. */
void store_interruptible(struct cw_store *s, bool on);
/* Pages and checksums of all of it; SQLITE_CORRUPT, SQLITE_INTERRUPT (a question came). */
int store_check(struct cw_store *s, bool interruptible);
int store_check_index(struct cw_store *s);
bool store_is_damage(int rc);

/* write.c */
int store_apply(struct cw_store *s, struct store_op *op);
/* Replies that a program left unfinished when it died. */
int store_finish_abandoned(struct cw_store *s);
/* Remove what is marked as deleted; own false: but for what this run deleted, unless something else
 * is wanted meanwhile (SQLITE_INTERRUPT). */
int store_purge(struct cw_store *s, bool own);

/* read.c */
int store_answer_list(struct cw_store *s, const struct store_op *op);
int store_answer_load(struct cw_store *s, const struct store_op *op);

/* mend.c: put the damaged file aside and make a new one of what is whole. */
int store_mend(struct cw_store *s, struct cw_err *err);
void store_remove_aside(struct cw_store *s);
bool store_has_aside(struct cw_store *s);

/* salvage.c: every row with a right checksum in the pages of the files, in no order of ids; `found`
 * returns false to stop. CW_EIO when a file cannot be read. */
typedef bool store_found(void *arg, enum store_table table, const struct store_cell *cells);
int store_salvage(const char *path, const char *wal_path, store_found *found, void *arg,
                  struct cw_err *err);
/* A log with a broken frame in the midst of good ones. */
bool store_wal_is_damaged(const char *wal_path);

/* title.c */
int64_t store_now_ms(void);

#endif
