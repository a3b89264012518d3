/* SPDX-License-Identifier: MIT
 *
 * The store's thread.
 *
 * DESIGN. What is queued is taken as a whole and written in one transaction. More of a reply waits
 * up to STREAM_S, so that a reply costs two or three transactions a second, without a sync of the
 * disk (synchronous NORMAL: nothing is lost when the program is killed); everything else is written
 * at once and synced (FULL: nothing is lost when the power goes). Operations stay in `unsaved`
 * until their commit went well. When it does not, the file is closed, trouble is told once, and the
 * same operations are tried again after a while, with a file opened anew. Damage is mended on the
 * spot. When nothing happens for IDLE_S the log is written back, what an earlier run deleted is
 * removed and the file is looked through; then the thread sleeps until it is
 * woken.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chinwag/clock.h"
#include "core/store/store_impl.h"

static const double STREAM_S = 0.4;  /* at most between two commits of a growing reply */
static const double IDLE_S = 1.0;    /* without a commit, before the log is written back */
static const double BACKOFF_S = 1.0; /* first wait after trouble; doubled up to the next */
static const double BACKOFF_MAX = 5.0;
static const double BUSY_PAUSE_S = 0.1;
static const double BUSY_PATIENCE_S = 10.0; /* of another program's transaction */
static const double BUSY_CLOSING_S = 3.0;

enum {
    MAX_MENDED = 5,   /* in one run: after that the machine itself is at fault */
    LOG_PAGES = 2000, /* of a log that is written back although a reply is growing */
};

/* ---- opening and mending -------------------------------------------------------------------- */

static void told_trouble(struct cw_store *s, const struct cw_err *err) {
    bool told;
    pthread_mutex_lock(&s->mutex);
    told = s->in_trouble;
    pthread_mutex_unlock(&s->mutex);
    if (!told) {
        struct store_reply *r = store_reply_new(CW_STORE_TROUBLE, 0);
        store_reply_text(r, err->code, "%s", err->text);
        store_post(s, r);
    }
}

static bool is_busy(int rc) {
    return (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED;
}

/* Something cannot be done now: when to try again. Another program's lock is no trouble yet. */
static void postpone(struct cw_store *s, int rc, const struct cw_err *err) {
    double now = cw_now();
    if (is_busy(rc)) {
        s->busy_since_s = s->busy_since_s > 0 ? s->busy_since_s : now;
        if (now - s->busy_since_s < BUSY_PATIENCE_S) {
            s->retry_s = now + BUSY_PAUSE_S;
            return;
        }
    }
    told_trouble(s, err);
    store_close(s, false); /* what is open may be stale: another file, another file system */
    s->backoff_s = s->backoff_s > 0 ? fmin(2 * s->backoff_s, BACKOFF_MAX) : BACKOFF_S;
    s->retry_s = now + s->backoff_s;
}

static void went_well(struct cw_store *s) {
    s->retry_s = 0;
    s->backoff_s = 0;
    s->busy_since_s = 0;
}

/* Make the store usable again after `rc`, if damage is what it tells; SQLITE_OK: try again. */
static int mend(struct cw_store *s, int rc, struct cw_err *err) {
    if (!store_is_damage(rc) || s->refused) {
        return rc;
    }
    if (rc == SQLITE_CORRUPT_VTAB && s->db != NULL && !s->read_only) {
        /* only the text index, which can be made anew from the messages */
        if (store_exec(s->db, "INSERT INTO search(search) VALUES('rebuild')") == SQLITE_OK) {
            return SQLITE_OK;
        }
    }
    if (s->read_only || s->n_mended >= MAX_MENDED) {
        cw_fail(err, CW_EFORMAT, "%s is damaged", s->path);
        return rc;
    }
    s->checked = false;
    return store_mend(s, err);
}

/* The database open, or why not. */
static int ensure_open(struct cw_store *s, struct cw_err *err) {
    int rc = SQLITE_OK;
    for (int i = 0; s->db == NULL && i <= MAX_MENDED; i++) {
        if (s->refused) {
            cw_fail(err, s->trouble.code, "%s", s->trouble.text);
            return SQLITE_MISMATCH;
        }
        rc = store_open(s, err);
        if (rc == SQLITE_OK) {
            if (!s->opened) {
                s->opened = true;
                rc = s->read_only ? SQLITE_OK : store_exec(s->db, "BEGIN IMMEDIATE");
                if (rc == SQLITE_OK && !s->read_only) {
                    rc = store_finish_abandoned(s);
                    int end = store_exec(s->db, rc == SQLITE_OK ? "COMMIT" : "ROLLBACK");
                    rc = rc == SQLITE_OK ? end : rc;
                }
                if (store_is_damage(rc)) {
                    s->opened = false;
                } else {
                    store_post(s, store_reply_new(CW_STORE_OPEN, 0));
                    rc = SQLITE_OK; /* another run will do it */
                }
            }
        }
        if (rc != SQLITE_OK) {
            rc = mend(s, rc, err);
        }
        if (rc != SQLITE_OK) {
            store_close(s, false);
            return rc;
        }
    }
    return s->db != NULL ? SQLITE_OK : SQLITE_CORRUPT;
}

/* ---- writing -------------------------------------------------------------------------------- */

/* An operation that can never be done must not hold up the others. */
static bool is_hopeless(int rc) {
    int kind = rc & 0xff;
    return kind == SQLITE_CONSTRAINT || kind == SQLITE_TOOBIG || kind == SQLITE_MISMATCH ||
           kind == SQLITE_RANGE || kind == SQLITE_MISUSE || kind == SQLITE_ERROR;
}

static int apply_all(struct cw_store *s) {
    int rc = SQLITE_OK;
    for (struct store_op *op = s->unsaved.first; op != NULL && rc == SQLITE_OK; op = op->next) {
        rc = store_exec(s->db, "SAVEPOINT op");
        if (rc == SQLITE_OK) {
            rc = store_apply(s, op);
        }
        if (is_hopeless(rc)) {
            store_notice(s, "one change was not saved: %s", sqlite3_errmsg(s->db));
            rc = store_exec(s->db, "ROLLBACK TO op");
        }
        if (rc == SQLITE_OK) {
            rc = store_exec(s->db, "RELEASE op");
        }
    }
    return rc;
}

static bool only_grows(const struct cw_store *s) {
    for (const struct store_op *op = s->unsaved.first; op != NULL; op = op->next) {
        if (op->kind != STORE_APPEND && op->kind != STORE_ADD_CHANGE) {
            return false;
        }
    }
    return true;
}

static int write_all(struct cw_store *s, bool synced) {
    int rc = store_exec(s->db, synced ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
    if (rc == SQLITE_OK) {
        rc = store_exec(s->db, "BEGIN IMMEDIATE");
    }
    if (rc == SQLITE_OK) {
        rc = apply_all(s);
    }
    if (rc == SQLITE_OK) {
        rc = store_exec(s->db, "COMMIT");
    }
    return rc;
}

/* What was written is done with: counted down, told. */
static void let_go(struct cw_store *s, bool synced) {
    uint64_t serial = 0;
    size_t bytes = 0;
    for (struct store_op *op; (op = store_ops_take(&s->unsaved)) != NULL;) {
        serial = op->serial;
        bytes += op->bytes;
        store_op_free(op);
    }
    pthread_mutex_lock(&s->mutex);
    s->queued_bytes -= bytes;
    pthread_mutex_unlock(&s->mutex);
    struct store_reply *r = store_reply_new(CW_STORE_SAVED, serial);
    r->event.synced = synced;
    store_post(s, r);
}

/* Everything that is unsaved, if that is possible. */
static void flush(struct cw_store *s) {
    struct cw_err err = {0};
    if (s->unsaved.first == NULL) {
        return;
    }
    bool synced = !only_grows(s);
    for (int i = 0; i <= MAX_MENDED; i++) {
        err.code = CW_OK;
        int rc = ensure_open(s, &err);
        if (rc == SQLITE_OK && s->read_only) {
            store_close(s, false); /* it may have become writable */
            rc = ensure_open(s, &err);
            rc = rc == SQLITE_OK && s->read_only ? SQLITE_READONLY : rc;
        }
        if (rc == SQLITE_OK) {
            rc = write_all(s, synced);
        }
        if (rc == SQLITE_OK) {
            went_well(s);
            s->wal_dirty = true;
            s->last_flush_s = cw_now();
            let_go(s, synced);
            return;
        }
        if (err.code == CW_OK) {
            cw_fail(&err, (rc & 0xff) == SQLITE_FULL ? CW_EFULL : CW_EIO, "not saved: %s: %s",
                    s->path, s->read_only ? "it cannot be written to" : sqlite3_errstr(rc));
        }
        if (s->db != NULL && !sqlite3_get_autocommit(s->db)) {
            store_exec(s->db, "ROLLBACK");
        }
        if (!store_is_damage(rc)) {
            postpone(s, rc, &err);
            return;
        }
        rc = mend(s, rc, &err);
        if (rc != SQLITE_OK) {
            postpone(s, rc, &err);
            return;
        }
    }
}

/* ---- answering ------------------------------------------------------------------------------ */

static void answer(struct cw_store *s, const struct store_op *op) {
    struct cw_err err = {0};
    int rc = SQLITE_OK;
    for (int i = 0; i <= MAX_MENDED; i++) {
        err.code = CW_OK;
        for (double give_up = cw_now() + BUSY_CLOSING_S;;) {
            rc = ensure_open(s, &err);
            if (rc == SQLITE_OK) {
                rc = op->kind == STORE_ASK_LIST ? store_answer_list(s, op)
                                                : store_answer_load(s, op);
            }
            if (!is_busy(rc) || cw_now() > give_up) {
                break;
            }
            const struct timespec pause = {0, 50000000};
            nanosleep(&pause, NULL);
        }
        if (rc == SQLITE_OK) {
            return;
        }
        if (!store_is_damage(rc) || mend(s, rc, &err) != SQLITE_OK) {
            break;
        }
    }
    struct store_reply *r = store_reply_new(CW_STORE_FAILED, op->serial);
    store_reply_text(r, err.code != CW_OK ? err.code : CW_EIO, "%s",
                     err.code != CW_OK ? err.text : sqlite3_errstr(rc));
    store_post(s, r);
    if (s->db == NULL) {
        told_trouble(s, &err);
    }
}

/* ---- the loop ------------------------------------------------------------------------------- */

static bool has_idle_work(const struct cw_store *s) {
    return s->db != NULL && !s->read_only &&
           (s->wal_dirty || s->purge_left || !s->checked || !s->index_checked);
}

static void idle(struct cw_store *s) {
    int rc = SQLITE_OK;
    struct cw_err err = {0};
    if (s->wal_dirty) {
        rc = sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        s->wal_dirty = false; /* a reader in the way: after the next commit again */
    } else if (s->purge_left) {
        rc = store_purge(s, false);
        s->purge_left = rc == SQLITE_INTERRUPT;
        s->purge = s->purge || (rc != SQLITE_OK && !s->purge_left); /* again at the end */
    } else if (!s->checked) {
        rc = store_check(s, true);
    } else {
        rc = store_check_index(s);
    }
    s->last_flush_s = cw_now();
    if (store_is_damage(rc) && mend(s, rc, &err) == SQLITE_OK) {
        ensure_open(s, &err);
    } else if (rc != SQLITE_OK && rc != SQLITE_INTERRUPT && !is_busy(rc)) {
        s->checked = s->index_checked = true; /* it cannot be looked at now */
    }
}

/* When there will be something to do although nobody calls; 0: never. */
static double next_time(const struct cw_store *s) {
    double at = 0;
    if (s->unsaved.first != NULL) {
        at = s->retry_s;
    } else if (s->queue.first != NULL) {
        at = fmax(s->last_flush_s + STREAM_S, s->retry_s);
    } else if (has_idle_work(s)) {
        at = s->last_flush_s + IDLE_S;
    }
    return at;
}

/* Wait; the operations that came go to *taken. False: the store is being closed, and nothing came.
 */
static bool wait_for_work(struct cw_store *s, struct store_ops *taken) {
    pthread_mutex_lock(&s->mutex);
    while (!s->closing && !s->urgent) {
        double at = next_time(s);
        double now = cw_now();
        if (at > 0 && at <= now) {
            break;
        }
        if (at > 0) {
            struct timespec until = {(time_t)at, (long)((at - floor(at)) * 1e9)};
            pthread_cond_timedwait(&s->wake, &s->mutex, &until);
        } else {
            pthread_cond_wait(&s->wake, &s->mutex);
        }
    }
    bool more = !s->closing || s->queue.first != NULL;
    *taken = s->queue;
    if (taken->first == NULL) {
        taken->end = &taken->first;
    }
    store_ops_init(&s->queue);
    s->urgent = false;
    pthread_mutex_unlock(&s->mutex);
    return more;
}

/* A failure is of no account here: the log keeps everything, and the next commit tries again. */
static void write_log_back(struct cw_store *s) {
    sqlite3_wal_checkpoint_v2(s->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    s->wal_dirty = false;
    s->wal_pages = 0;
}

static void work(struct cw_store *s, struct store_ops *taken) {
    bool came = taken->first != NULL;
    for (struct store_op *op; (op = store_ops_take(taken)) != NULL;) {
        if (op->kind < STORE_ASK_LIST) {
            store_ops_add(&s->unsaved, op);
            continue;
        }
        if (cw_now() >= s->retry_s) {
            flush(s);
        }
        answer(s, op);
        store_op_free(op);
    }
    if (s->unsaved.first != NULL && cw_now() >= s->retry_s) {
        flush(s);
        came = true;
    }
    if (s->db != NULL && s->unsaved.first == NULL) {
        if (came) {
            if (s->wal_pages > LOG_PAGES) {
                write_log_back(s);
            }
        } else if (has_idle_work(s) && cw_now() >= s->last_flush_s + IDLE_S) {
            idle(s);
        }
    }
}

static void end(struct cw_store *s) {
    struct cw_err err = {0};
    for (double give_up = cw_now() + BUSY_CLOSING_S; s->unsaved.first != NULL;) {
        flush(s);
        if (s->unsaved.first == NULL || s->db == NULL || cw_now() > give_up) {
            break;
        }
        const struct timespec pause = {0, 50000000};
        nanosleep(&pause, NULL);
    }
    if ((s->purge || s->purge_left) && s->db != NULL && !s->read_only && s->unsaved.first == NULL) {
        int rc = store_purge(s, true);
        if (store_is_damage(rc) && mend(s, rc, &err) == SQLITE_OK &&
            ensure_open(s, &err) == SQLITE_OK) {
            rc = store_purge(s, true);
        }
        if (rc != SQLITE_OK) {
            cw_fail(&s->not_removed, CW_EIO, "what was deleted is removed the next time: %s",
                    sqlite3_errstr(rc));
        }
    }
    if (s->purge_aside && s->unsaved.first == NULL) {
        store_remove_aside(s);
    }
    store_close(s, true);
    store_lock_close(s);
}

void *store_thread(void *store) {
    struct cw_store *s = store;
    struct store_ops taken;
    struct cw_err err = {0};
    int rc = ensure_open(s, &err);
    if (rc != SQLITE_OK) {
        postpone(s, rc, &err);
    }
    s->last_flush_s = cw_now();
    while (wait_for_work(s, &taken)) {
        work(s, &taken);
    }
    end(s);
    return NULL;
}
