/* SPDX-License-Identifier: MIT
 *
 * The store as the main thread sees it: calls become operations in a queue, events come out of
 * another. Nothing here touches a file: the mutex guards lists and numbers only, and the store's
 * thread never holds it while it reads or writes.
 *
 * More of a message whose last piece still waits is added to that piece, so that a slow disk makes
 * the pieces larger, not the queue longer.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "chinwag/thread.h"
#include "core/store/store_impl.h"

enum { MAX_QUEUED = 64 << 20, MAX_QUERY = 1000 };

/* ---- memory --------------------------------------------------------------------------------- */

struct store_block {
    struct store_block *next;
    max_align_t data[];
};

void *store_arena_alloc(struct store_arena *a, size_t bytes) {
    struct store_block *b = cw_calloc(1, sizeof *b + bytes);
    b->next = a->blocks;
    a->blocks = b;
    return b->data;
}

struct cw_str store_arena_str(struct store_arena *a, const void *data, size_t n) {
    char *copy = store_arena_alloc(a, n + 1);
    if (n > 0) {
        memcpy(copy, data, n);
    }
    return (struct cw_str){copy, n};
}

void store_arena_free(struct store_arena *a) {
    while (a->blocks != NULL) {
        struct store_block *next = a->blocks->next;
        free(a->blocks);
        a->blocks = next;
    }
}

/* ---- lists ---------------------------------------------------------------------------------- */

void store_op_free(struct store_op *op) {
    if (op != NULL) {
        cw_buf_free(&op->text);
        cw_buf_free(&op->reasoning);
        free(op->tokens);
        store_arena_free(&op->arena);
        free(op);
    }
}

void store_ops_init(struct store_ops *list) {
    list->first = NULL;
    list->end = &list->first;
}

void store_ops_add(struct store_ops *list, struct store_op *op) {
    op->next = NULL;
    *list->end = op;
    list->end = &op->next;
}

struct store_op *store_ops_take(struct store_ops *list) {
    struct store_op *op = list->first;
    if (op != NULL) {
        list->first = op->next;
        if (list->first == NULL) {
            list->end = &list->first;
        }
    }
    return op;
}

void store_ops_clear(struct store_ops *list) {
    for (struct store_op *op; (op = store_ops_take(list)) != NULL;) {
        store_op_free(op);
    }
}

/* ---- events --------------------------------------------------------------------------------- */

struct store_reply *store_reply_new(enum cw_store_event_kind kind, uint64_t serial) {
    static char none[1] = "";
    struct store_reply *r = cw_calloc(1, sizeof *r);
    r->event.kind = kind;
    r->event.serial = serial;
    r->event.text = none;
    r->event.path = none;
    return r;
}

void store_reply_text(struct store_reply *r, int code, const char *fmt, ...) {
    char raw[1024];
    char line[1024];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof raw ? (size_t)n : sizeof raw - 1;
    len = cw_printable(line, sizeof line, raw, len);
    struct cw_str copy = store_arena_str(&r->arena, line, len);
    r->event.code = code;
    r->event.text = store_arena_alloc(&r->arena, len + 1);
    memcpy(r->event.text, copy.data, len + 1);
}

void store_post(struct cw_store *s, struct store_reply *r) {
    pthread_mutex_lock(&s->mutex);
    if (r->event.kind == CW_STORE_SAVED) {
        s->saved_serial = r->event.serial;
        s->in_trouble = false;
    } else if (r->event.kind == CW_STORE_TROUBLE) {
        s->in_trouble = true;
        cw_fail(&s->trouble, r->event.code, "%s", r->event.text);
    }
    if (r->event.kind == CW_STORE_SAVED && s->last_saved != NULL) {
        /* one that nobody has taken yet: say it there */
        s->last_saved->event.serial = r->event.serial;
        s->last_saved->event.synced = r->event.synced;
        free(r);
    } else {
        s->last_saved = r->event.kind == CW_STORE_SAVED ? r : s->last_saved;
        if (r->event.kind == CW_STORE_TROUBLE) {
            s->last_saved = NULL; /* order matters: what is saved after it ends it */
        }
        r->next = NULL;
        *s->replies_end = r;
        s->replies_end = &r->next;
    }
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->mutex);
    const uint64_t one = 1;
    ssize_t put = write(s->event_fd, &one, sizeof one);
    (void)put; /* full: it is readable already */
}

void store_notice(struct cw_store *s, const char *fmt, ...) {
    char text[800];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    struct store_reply *r = store_reply_new(CW_STORE_NOTICE, 0);
    store_reply_text(r, CW_OK, "%s", text);
    store_post(s, r);
}

int cw_store_fd(const struct cw_store *s) {
    return s->event_fd;
}

void cw_store_ack(struct cw_store *s) {
    uint64_t count;
    ssize_t got = read(s->event_fd, &count, sizeof count);
    (void)got; /* nothing there: fine */
}

/* Take one out of the list, with the mutex held. */
static struct cw_store_event *take_reply(struct cw_store *s, struct store_reply **at) {
    struct store_reply *r = *at;
    *at = r->next;
    if (*at == NULL) {
        s->replies_end = at;
    }
    if (s->last_saved == r) {
        s->last_saved = NULL;
    }
    r->next = NULL;
    return &r->event;
}

struct cw_store_event *cw_store_next(struct cw_store *s) {
    struct cw_store_event *ev = NULL;
    pthread_mutex_lock(&s->mutex);
    if (s->replies != NULL) {
        ev = take_reply(s, &s->replies);
    }
    pthread_mutex_unlock(&s->mutex);
    return ev;
}

void cw_store_event_free(struct cw_store_event *ev) {
    if (ev != NULL) {
        struct store_reply *r = (struct store_reply *)ev; /* its first member */
        store_arena_free(&r->arena);
        free(r);
    }
}

struct cw_store_event *cw_store_wait(struct cw_store *s, uint64_t serial) {
    struct cw_store_event *ev = NULL;
    pthread_mutex_lock(&s->mutex);
    while (ev == NULL) {
        struct store_reply **at = &s->replies;
        while (*at != NULL &&
               ((*at)->event.serial != serial ||
                ((*at)->event.kind != CW_STORE_LIST && (*at)->event.kind != CW_STORE_LOADED &&
                 (*at)->event.kind != CW_STORE_FAILED))) {
            at = &(*at)->next;
        }
        if (*at != NULL) {
            ev = take_reply(s, at);
        } else {
            pthread_cond_wait(&s->wake, &s->mutex);
        }
    }
    pthread_mutex_unlock(&s->mutex);
    return ev;
}

int cw_store_wait_saved(struct cw_store *s, struct cw_err *err) {
    int code = CW_OK;
    pthread_mutex_lock(&s->mutex);
    while (!s->in_trouble && s->saved_serial < s->last_serial) {
        pthread_cond_wait(&s->wake, &s->mutex);
    }
    if (s->in_trouble) {
        code = cw_fail(err, s->trouble.code, "%s", s->trouble.text);
    }
    pthread_mutex_unlock(&s->mutex);
    return code;
}

/* ---- life ----------------------------------------------------------------------------------- */

int cw_store_create(struct cw_store **out, const struct cw_store_options *opt, struct cw_err *err) {
    *out = NULL;
    if (opt->dir == NULL || opt->dir[0] != '/') {
        return cw_fail(err, CW_EIO, "no folder for the conversations");
    }
    struct cw_store *s = cw_calloc(1, sizeof *s);
    struct cw_buf path = {0};
    pthread_condattr_t attr;
    s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->event_fd < 0) {
        int code = cw_fail(err, CW_EIO, "eventfd: %s", strerror(errno));
        free(s);
        return code;
    }
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&s->mutex, NULL);
    store_ops_init(&s->queue);
    store_ops_init(&s->unsaved);
    s->replies_end = &s->replies;
    s->max_queued = opt->max_queued > 0 ? opt->max_queued : MAX_QUEUED;
    s->lock_fd = -1;
    s->gone = opt->gone;
    s->gone_arg = opt->gone_arg;
    s->dir = cw_strdup(opt->dir);
    s->vfs = opt->vfs != NULL ? cw_strdup(opt->vfs) : NULL;
    cw_buf_printf(&path, "%s/conversations.db", opt->dir);
    s->path = cw_buf_take(&path);
    /* without signals: a file that grows past its limit is an error there */
    int rc = cw_thread_start(&s->thread, store_thread, s);
    if (rc != 0) {
        cw_fail(err, CW_EIO, "no thread for the conversations: %s", strerror(rc));
        close(s->event_fd);
        pthread_cond_destroy(&s->wake);
        pthread_mutex_destroy(&s->mutex);
        free(s->dir);
        free(s->vfs);
        free(s->path);
        free(s);
        return CW_EIO;
    }
    *out = s;
    return CW_OK;
}

int cw_store_destroy(struct cw_store *s, struct cw_err *err) {
    if (s == NULL) {
        return CW_OK;
    }
    pthread_mutex_lock(&s->mutex);
    s->closing = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->mutex);
    pthread_join(s->thread, NULL);

    int code = CW_OK;
    if (s->saved_serial < s->last_serial) {
        code = cw_fail(err, CW_EIO, "not everything was saved: %s",
                       s->in_trouble ? s->trouble.text : "the program ended");
    } else if (s->not_removed.code != CW_OK) {
        code = cw_fail(err, CW_EIO, "%s", s->not_removed.text);
    }
    for (struct cw_store_event *ev; (ev = cw_store_next(s)) != NULL;) {
        cw_store_event_free(ev);
    }
    store_ops_clear(&s->queue);
    store_ops_clear(&s->unsaved);
    close(s->event_fd);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->mutex);
    free(s->claims);
    free(s->mine);
    free(s->holed);
    free(s->dir);
    free(s->vfs);
    free(s->path);
    free(s);
    return code;
}

/* ---- writing -------------------------------------------------------------------------------- */

static struct store_op *new_op(enum store_op_kind kind, int64_t id) {
    struct store_op *op = cw_calloc(1, sizeof *op);
    op->kind = kind;
    op->id = id;
    op->bytes = sizeof *op;
    return op;
}

static size_t find_hole(const struct cw_store *s, int64_t message) {
    size_t i = 0;
    while (i < s->n_holed && s->holed[i] != message) {
        i++;
    }
    return i;
}

/* Takes the op. */
static int enqueue(struct cw_store *s, struct store_op *op, uint64_t *serial) {
    bool grows = op->kind == STORE_APPEND || op->kind == STORE_ADD_CHANGE ||
                 op->kind == STORE_FINISH || op->kind == STORE_RESUME ||
                 op->kind == STORE_SET_EXTRA;
    bool put = op->kind == STORE_PUT_MESSAGE;
    size_t hole = grows || put ? find_hole(s, op->id) : s->n_holed;
    pthread_mutex_lock(&s->mutex);
    bool room = s->queued_bytes + op->bytes <= s->max_queued && !(grows && hole < s->n_holed);
    if (room) {
        op->serial = ++s->last_serial;
        s->queued_bytes += op->bytes;
        s->urgent = s->urgent || (op->kind != STORE_APPEND && op->kind != STORE_ADD_CHANGE);
        store_ops_add(&s->queue, op);
        s->queue_tail = op;
        if (serial != NULL) {
            *serial = op->serial;
        }
        pthread_cond_broadcast(&s->wake);
    }
    pthread_mutex_unlock(&s->mutex);
    if (!room) {
        if (grows && hole == s->n_holed) {
            s->holed = cw_reallocarray(s->holed, s->n_holed + 1, sizeof *s->holed);
            s->holed[s->n_holed++] = op->id;
        }
        store_op_free(op);
        return CW_EFULL;
    }
    if (put && hole < s->n_holed) { /* the op itself may be gone by now */
        s->holed[hole] = s->holed[--s->n_holed];
    }
    return CW_OK;
}

/* Copies of what the caller's structs point to. */
static void keep(struct store_op *op, struct cw_str *str) {
    *str = store_arena_str(&op->arena, str->data, str->data != NULL ? str->len : 0);
    op->bytes += str->len;
}

int cw_store_put_conversation(struct cw_store *s, const struct cw_store_conversation *c,
                              uint64_t *serial) {
    struct store_op *op = new_op(STORE_PUT_CONVERSATION, c->id);
    op->conversation = *c;
    keep(op, &op->conversation.title);
    keep(op, &op->conversation.model);
    keep(op, &op->conversation.hash);
    keep(op, &op->conversation.system);
    keep(op, &op->conversation.settings);
    return enqueue(s, op, serial);
}

int cw_store_put_message(struct cw_store *s, const struct cw_store_message *m, uint64_t *serial) {
    struct store_op *op = new_op(STORE_PUT_MESSAGE, m->id);
    op->message = *m;
    keep(op, &op->message.text);
    keep(op, &op->message.reasoning);
    keep(op, &op->message.model);
    keep(op, &op->message.hash);
    keep(op, &op->message.arithmetic);
    keep(op, &op->message.extra);
    size_t tokens = m->n_tokens * sizeof *m->tokens;
    size_t changes = m->n_changes * sizeof *m->changes;
    op->message.tokens = (const void *)store_arena_str(&op->arena, m->tokens, tokens).data;
    op->message.changes = (const void *)store_arena_str(&op->arena, m->changes, changes).data;
    op->bytes += tokens + changes;
    return enqueue(s, op, serial);
}

static void add_tokens(struct store_op *op, const struct cw_store_token *tokens, size_t n) {
    if (op->n_tokens + n > op->cap_tokens) {
        op->cap_tokens = 2 * op->n_tokens + n;
        op->tokens = cw_reallocarray(op->tokens, op->cap_tokens, sizeof *op->tokens);
    }
    if (n > 0) {
        memcpy(op->tokens + op->n_tokens, tokens, n * sizeof *tokens);
        op->n_tokens += n;
    }
}

int cw_store_append(struct cw_store *s, int64_t message, const char *text, size_t n_text,
                    const char *reasoning, size_t n_reasoning, const struct cw_store_token *tokens,
                    size_t n_tokens, uint64_t *serial) {
    size_t bytes = n_text + n_reasoning + n_tokens * sizeof *tokens;
    bool added = false;
    pthread_mutex_lock(&s->mutex);
    struct store_op *tail = s->queue.first != NULL ? s->queue_tail : NULL;
    if (tail != NULL && tail->kind == STORE_APPEND && tail->id == message &&
        s->queued_bytes + bytes <= s->max_queued && find_hole(s, message) == s->n_holed) {
        cw_buf_add(&tail->text, text, n_text);
        cw_buf_add(&tail->reasoning, reasoning, n_reasoning);
        add_tokens(tail, tokens, n_tokens);
        tail->bytes += bytes;
        tail->serial = ++s->last_serial;
        s->queued_bytes += bytes;
        if (serial != NULL) {
            *serial = tail->serial;
        }
        added = true;
    }
    pthread_mutex_unlock(&s->mutex);
    if (added) {
        return CW_OK;
    }
    struct store_op *op = new_op(STORE_APPEND, message);
    cw_buf_add(&op->text, text, n_text);
    cw_buf_add(&op->reasoning, reasoning, n_reasoning);
    add_tokens(op, tokens, n_tokens);
    op->bytes += bytes;
    return enqueue(s, op, serial);
}

int cw_store_add_change(struct cw_store *s, int64_t message, const struct cw_store_change *c,
                        uint64_t *serial) {
    struct store_op *op = new_op(STORE_ADD_CHANGE, message);
    op->change = *c;
    return enqueue(s, op, serial);
}

int cw_store_finish(struct cw_store *s, int64_t message, int stop, const struct cw_figures *figures,
                    uint64_t *serial) {
    struct store_op *op = new_op(STORE_FINISH, message);
    op->stop = stop;
    op->figures = figures != NULL ? *figures : (struct cw_figures){0};
    return enqueue(s, op, serial);
}

int cw_store_resume(struct cw_store *s, int64_t message, uint64_t *serial) {
    return enqueue(s, new_op(STORE_RESUME, message), serial);
}

int cw_store_set_extra(struct cw_store *s, int64_t message, const void *extra, size_t n,
                       uint64_t *serial) {
    struct store_op *op = new_op(STORE_SET_EXTRA, message);
    cw_buf_add(&op->text, extra, n);
    op->bytes += n;
    return enqueue(s, op, serial);
}

int cw_store_set_leaf(struct cw_store *s, int64_t conversation, int64_t leaf, uint64_t *serial) {
    struct store_op *op = new_op(STORE_SET_LEAF, conversation);
    op->leaf = leaf;
    return enqueue(s, op, serial);
}

int cw_store_rename(struct cw_store *s, int64_t conversation, const char *title, size_t n,
                    uint64_t *serial) {
    struct store_op *op = new_op(STORE_RENAME, conversation);
    cw_buf_add(&op->text, title, n);
    op->bytes += n;
    return enqueue(s, op, serial);
}

int cw_store_delete(struct cw_store *s, int64_t conversation, uint64_t *serial) {
    return enqueue(s, new_op(STORE_DELETE, conversation), serial);
}

int cw_store_undelete(struct cw_store *s, int64_t conversation, uint64_t *serial) {
    return enqueue(s, new_op(STORE_UNDELETE, conversation), serial);
}

int cw_store_delete_all(struct cw_store *s, uint64_t *serial) {
    return enqueue(s, new_op(STORE_DELETE_ALL, 0), serial);
}

int cw_store_release(struct cw_store *s, int64_t conversation) {
    return enqueue(s, new_op(STORE_RELEASE, conversation), NULL);
}

/* ---- asking --------------------------------------------------------------------------------- */

/* Questions are few and always taken: they do not count for the limit. */
static void ask(struct cw_store *s, struct store_op *op, uint64_t serial) {
    op->serial = serial;
    op->bytes = 0;
    pthread_mutex_lock(&s->mutex);
    struct store_op *old = NULL;
    for (struct store_op **at = &s->queue.first; op->kind == STORE_ASK_LIST && *at != NULL;) {
        if ((*at)->kind == STORE_ASK_LIST) { /* nobody waits for the older one any more */
            old = *at;
            *at = old->next;
            if (*at == NULL) {
                s->queue.end = at;
            }
            break;
        }
        at = &(*at)->next;
    }
    store_ops_add(&s->queue, op);
    s->queue_tail = op;
    s->urgent = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->mutex);
    store_op_free(old);
}

void cw_store_list(struct cw_store *s, const char *query, size_t limit, uint64_t serial) {
    struct store_op *op = new_op(STORE_ASK_LIST, 0);
    size_t n = query != NULL ? strlen(query) : 0;
    cw_buf_add(&op->text, query, n < MAX_QUERY ? n : MAX_QUERY);
    op->limit = limit;
    ask(s, op, serial);
}

void cw_store_load(struct cw_store *s, int64_t id, uint64_t serial) {
    struct store_op *op = new_op(STORE_ASK_LOAD, id);
    op->claim = true;
    ask(s, op, serial);
}

void cw_store_load_name(struct cw_store *s, const char *name, bool claim, uint64_t serial) {
    struct store_op *op = new_op(STORE_ASK_LOAD, 0);
    cw_buf_puts(&op->text, name);
    op->claim = claim;
    ask(s, op, serial);
}
