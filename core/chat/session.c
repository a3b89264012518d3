/* SPDX-License-Identifier: MIT
 *
 * The current timeline and the retained ones: extending, rewinding, finding the way back.
 *
 * What is cut off by a rewind or given up half-way stays in the cells behind the timeline's end,
 * where nothing looks before it is written again. */
#include "core/chat/session_impl.h"

#include "core/model/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the size of the context -------------------------------------------------------------------
 */

static int requested_n_ctx(struct cw_session *s, uint32_t n_ctx, enum cw_kv_type kind,
                           struct cw_err *err) {
    const struct cw_hparams *hp = &s->model->hp;
    if (n_ctx > CW_MAX_N_CTX) {
        return cw_fail(err, CW_EINVAL,
                       "a context of %" PRIu32 " tokens is more than the %d possible", n_ctx,
                       CW_MAX_N_CTX);
    }
    if (hp->max_positions != 0 && n_ctx > hp->max_positions) {
        return cw_fail(err, CW_EINVAL,
                       "a context of %" PRIu32 " tokens: this model knows %" PRIu32
                       " positions and no more",
                       n_ctx, hp->max_positions);
    }
    uint64_t bytes = cw_kvcache_bytes(s->model, n_ctx, kind), total = cw_memory_read().total;
    if (bytes > total) {
        return cw_fail(err, CW_ENOMEM,
                       "a context of %" PRIu32 " tokens needs %" PRIu64
                       " MiB, this machine has %" PRIu64,
                       n_ctx, bytes >> 20, total >> 20);
    }
    s->n_ctx = n_ctx;
    bool above = hp->n_ctx_train != 0 && n_ctx > hp->n_ctx_train;
    snprintf(s->reason, sizeof s->reason,
             above ? "requested, above the trained size %" PRIu32 : "requested", hp->n_ctx_train);
    return CW_OK;
}

/* ---- life --------------------------------------------------------------------------------------
 */

/* Pages: those of one whole timeline, what retained ones may take, and for several replies room
 * that does not depend on that. */
static int open_cache(struct cw_session *s, const struct cw_session_options *opt,
                      struct cw_err *err) {
    enum { REPLY_PAGES = 8 };
    uint64_t page = cw_kvcache_bytes(s->model, 1, opt->kv);
    uint64_t whole = ((uint64_t)s->n_ctx + CW_PAGE_CELLS - 1) / CW_PAGE_CELLS;
    uint64_t reply = whole < REPLY_PAGES ? whole : REPLY_PAGES;
    s->kv_type = opt->kv;
    s->cache_ram = opt->cache_ram == CW_NO_CACHE_RAM ? 0
                   : opt->cache_ram != 0             ? opt->cache_ram
                                         : cw_kvcache_default_ram(s->model, s->n_ctx, opt->kv);
    uint64_t pages = page != 0 ? s->cache_ram / page + whole + CW_MAX_BRANCHES * reply : 0;
    return cw_kvcache_create(&s->kv, s->model, s->n_ctx, pages, opt->kv, err);
}

static int open_buffers(struct cw_session *s, struct cw_err *err) {
    s->n_at = s->chunk > CW_SESSION_ROWS ? s->chunk : CW_SESSION_ROWS;
    int rc = cw_scratch_create(&s->scratch, s->model, s->n_at, s->n_ctx, err);
    if (rc == CW_OK) {
        rc = cw_timeline_init(&s->now, &s->kv, s->n_ctx, err);
    }
    if (rc != CW_OK) {
        return rc;
    }
    s->at = cw_calloc((size_t)s->n_at, sizeof *s->at);
    s->old = cw_calloc(CW_MAX_RETAINED, sizeof *s->old);
    s->rows_bytes = (size_t)CW_SESSION_ROWS * (size_t)s->model->hp.n_vocab * sizeof *s->rows;
    s->rows = cw_sparse_alloc(s->rows_bytes);
    if (s->rows == NULL) {
        return cw_fail(err, CW_ENOMEM, "no memory for the scores of %d tokens",
                       s->model->hp.n_vocab);
    }
    return CW_OK;
}

int cw_session_create(struct cw_session **out, struct cw_model *model,
                      const struct cw_session_options *opt, struct cw_err *err) {
    static const struct cw_session_options defaults = {.kv = CW_KV_F16};
    struct cw_session *s = cw_calloc(1, sizeof *s);
    int rc = CW_OK;
    *out = NULL;
    if (opt == NULL) {
        opt = &defaults;
    }
    s->model = model;
    if (opt->n_ctx != 0) {
        rc = requested_n_ctx(s, opt->n_ctx, opt->kv, err);
    } else {
        const char *reason;
        s->n_ctx = cw_kvcache_default_n_ctx(model, opt->kv, &reason);
        snprintf(s->reason, sizeof s->reason, "%s", reason);
    }
    if (rc == CW_OK) {
        s->chunk = opt->chunk > 0 ? opt->chunk : CW_DEFAULT_CHUNK;
        s->chunk = s->chunk < CW_MAX_CHUNK ? s->chunk : CW_MAX_CHUNK;
        s->chunk = (uint32_t)s->chunk < s->n_ctx ? s->chunk : (int)s->n_ctx;
        rc = open_cache(s, opt, err);
    }
    if (rc == CW_OK) {
        rc = open_buffers(s, err);
    }
    if (rc != CW_OK) {
        cw_session_destroy(s);
        return rc;
    }
    *out = s;
    return CW_OK;
}

void cw_session_destroy(struct cw_session *s) {
    if (s == NULL) {
        return;
    }
    for (int i = 0; i < s->n_branches; i++) {
        cw_timeline_free(&s->branch[i], &s->kv);
    }
    for (size_t i = 0; i < s->n_old; i++) {
        cw_timeline_free(&s->old[i], &s->kv);
    }
    cw_timeline_free(&s->now, &s->kv);
    cw_kvcache_free(&s->kv);
    cw_scratch_destroy(s->scratch);
    cw_large_free(s->rows, s->rows_bytes);
    free(s->old);
    free(s->at);
    free(s);
}

uint32_t cw_session_n_ctx(const struct cw_session *s) {
    return s->n_ctx;
}

const char *cw_session_n_ctx_reason(const struct cw_session *s) {
    return s->reason;
}

size_t cw_session_n(const struct cw_session *s) {
    return s->now.n;
}

const int32_t *cw_session_ids(const struct cw_session *s) {
    return s->now.ids;
}

uint64_t cw_session_extra_bytes(const struct cw_model *m, uint32_t n_ctx) {
    return (uint64_t)CW_SESSION_ROWS * (uint64_t)m->hp.n_vocab * sizeof(float) +
           n_ctx * sizeof(int32_t);
}

uint64_t cw_session_bytes(const struct cw_session *s) {
    return cw_kvcache_bytes(s->model, s->n_ctx, s->kv_type) + cw_scratch_bytes(s->model, s->chunk) +
           cw_session_extra_bytes(s->model, s->n_ctx);
}

float *cw_session_logits(struct cw_session *s) {
    size_t row = s->now.n - 1 - s->row_first; /* wraps to a large one where there is none */
    return s->n_branches == 0 && s->now.n > s->row_first && row < s->n_rows
               ? s->rows + row * (size_t)s->model->hp.n_vocab
               : NULL;
}

/* ---- retained timelines ------------------------------------------------------------------------
 */

static void forget_at(struct cw_session *s, size_t i) {
    cw_timeline_free(&s->old[i], &s->kv);
    memmove(&s->old[i], &s->old[i + 1], (s->n_old - i - 1) * sizeof *s->old);
    s->n_old--;
}

static bool begins_with(const struct cw_timeline *t, const struct cw_timeline *prefix) {
    return prefix->n <= t->n && memcmp(t->ids, prefix->ids, prefix->n * sizeof *t->ids) == 0;
}

void cw_session_retain(struct cw_session *s, const struct cw_timeline *t) {
    struct cw_timeline copy;
    if (t->n == 0 || (t != &s->now && begins_with(&s->now, t))) {
        return;
    }
    for (size_t i = s->n_old; i-- > 0;) {
        if (begins_with(&s->old[i], t)) { /* nothing new: but it was used now */
            copy = s->old[i];
            memmove(&s->old[i], &s->old[i + 1], (s->n_old - i - 1) * sizeof *s->old);
            s->old[s->n_old - 1] = copy;
            return;
        }
        if (begins_with(t, &s->old[i])) {
            forget_at(s, i);
        }
    }
    if (cw_timeline_init(&copy, &s->kv, t->n, NULL) != CW_OK) {
        return; /* no room to remember it: it will be evaluated again */
    }
    if (s->n_old == CW_MAX_RETAINED) {
        forget_at(s, 0);
        s->evicted++;
    }
    cw_timeline_share(&copy, &s->kv, t, t->n);
    s->old[s->n_old++] = copy;
}

static void mark(const struct cw_timeline *t, uint8_t *marks) {
    for (size_t i = 0; i < t->n_pages; i++) {
        marks[t->pages[i]] = 1;
    }
}

/* Pages that retained timelines alone hold. */
static uint64_t retained_pages(const struct cw_session *s) {
    uint8_t *live = cw_calloc(s->kv.n_pages, 1), *old = cw_calloc(s->kv.n_pages, 1);
    uint64_t n = 0;
    mark(&s->now, live);
    for (int i = 0; i < s->n_branches; i++) {
        mark(&s->branch[i], live);
    }
    for (size_t i = 0; i < s->n_old; i++) {
        mark(&s->old[i], old);
    }
    for (uint32_t i = 0; i < s->kv.n_pages; i++) {
        n += old[i] && !live[i];
    }
    free(live);
    free(old);
    return n;
}

static void evict(struct cw_session *s) {
    forget_at(s, 0);
    s->evicted++;
}

bool cw_session_reserve(struct cw_session *s, struct cw_timeline *t, size_t n) {
    while (!cw_timeline_reserve(t, &s->kv, n)) {
        if (s->n_old == 0) {
            return false;
        }
        evict(s);
    }
    return true;
}

void cw_session_settle(struct cw_session *s) {
    cw_session_reserve(s, &s->now, s->now.n < s->n_ctx ? 1 : 0);
    while (s->n_old > 0 && retained_pages(s) * s->kv.page_bytes > s->cache_ram) {
        evict(s);
    }
}

void cw_session_cache_stats(const struct cw_session *s, struct cw_cache_stats *out) {
    *out = (struct cw_cache_stats){
        .retained = s->n_old,
        .retained_bytes = retained_pages(s) * s->kv.page_bytes,
        .cache_ram = s->cache_ram,
        .current_bytes = s->now.n_pages * s->kv.page_bytes,
        .evicted = s->evicted,
    };
}

/* The retained timeline that has most of ids[0..n), if it has more than *same of it. */
static size_t find_retained(const struct cw_session *s, const int32_t *ids, size_t n,
                            size_t *same) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < s->n_old; i++) {
        size_t common = cw_timeline_common(&s->old[i], ids, n);
        if (common > *same) {
            *same = common;
            best = i;
        }
    }
    return best;
}

size_t cw_session_cached(const struct cw_session *s, const int32_t *ids, size_t n) {
    size_t same = cw_timeline_common(&s->now, ids, n);
    for (int i = 0; i < s->n_branches; i++) {
        size_t common = cw_timeline_common(&s->branch[i], ids, n);
        same = common > same ? common : same;
    }
    find_retained(s, ids, n, &same);
    return same;
}

void cw_session_forget(struct cw_session *s) {
    cw_session_adopt(s, -1);
    while (s->n_old > 0) {
        forget_at(s, s->n_old - 1);
    }
    cw_timeline_truncate(&s->now, &s->kv, 0);
    s->n_rows = 0;
    cw_kvcache_trim(&s->kv);
}

void cw_session_warm(struct cw_session *s) {
    if (s->now.n >= CW_PAGE_CELLS) { /* else little is lost, and a single reply would pay for it */
        cw_kvcache_warm(&s->kv);
    }
}

/* ---- the timeline ------------------------------------------------------------------------------
 */

void cw_session_rewind(struct cw_session *s, size_t n) {
    cw_session_adopt(s, -1);
    if (n < s->now.n) {
        cw_timeline_truncate(&s->now, &s->kv, n);
        cw_session_settle(s);
    }
}

int cw_session_check(const struct cw_session *s, int rc, struct cw_err *err) {
    if (rc == CW_ECANCEL) {
        return cw_fail(err, CW_ECANCEL, "stopped");
    }
    if (cw_gguf_damaged(s->model->gguf)) {
        return cw_fail(err, CW_EIO, "%s: the file was cut short while in use",
                       cw_gguf_path(s->model->gguf));
    }
    return rc;
}

/* Logits of the last n_out rows of the chunk of n ids behind the timeline, told to the hook if it
 * wants them. */
static int score_rows(struct cw_session *s, int n, int n_out, const struct cw_session_hooks *hooks,
                      struct cw_err *err) {
    size_t n_vocab = (size_t)s->model->hp.n_vocab;
    for (int r = 0; r < n_out; r += CW_SESSION_ROWS) {
        int count = n_out - r < CW_SESSION_ROWS ? n_out - r : CW_SESSION_ROWS;
        size_t first = s->now.n + (size_t)(n - n_out + r);
        cw_forward_logits(s->model, s->scratch, r, count, s->rows);
        int rc = cw_session_check(s, CW_OK, err);
        if (rc != CW_OK) {
            return rc;
        }
        for (int i = 0; hooks != NULL && hooks->row != NULL && i < count; i++) {
            hooks->row(hooks->arg, first + (size_t)i, s->rows + (size_t)i * n_vocab);
        }
        s->row_first = first;
        s->n_rows = (size_t)count;
    }
    return CW_OK;
}

/* One chunk of n ids; the timeline grows only when all went well. */
static int extend_chunk(struct cw_session *s, const int32_t *ids, int n, bool last,
                        const struct cw_session_hooks *hooks, struct cw_err *err) {
    bool every_row = hooks != NULL && hooks->row != NULL;
    const struct cw_batch b = {
        .ids = ids,
        .at = s->at,
        .n = n,
        .n_out = every_row ? n
                 : last    ? 1
                           : 0,
        .stop = hooks != NULL ? hooks->stop : NULL,
        .arg = hooks != NULL ? hooks->arg : NULL,
    };
    s->n_rows = 0;
    if (!cw_session_reserve(s, &s->now, (size_t)n)) {
        return cw_fail(err, CW_ENOMEM, "no page of the cache is left");
    }
    for (int i = 0; i < n; i++) {
        s->at[i] = (struct cw_place){s->now.pages, (uint32_t)s->now.n + (uint32_t)i};
    }
    int rc = cw_session_check(s, cw_forward(s->model, s->scratch, s->kv.layers, &b), err);
    if (rc == CW_OK) {
        rc = score_rows(s, n, b.n_out, hooks, err);
    }
    if (rc != CW_OK) {
        s->n_rows = 0;
        return rc;
    }
    cw_timeline_append(&s->now, &s->kv, ids, (size_t)n);
    return CW_OK;
}

int cw_session_extend(struct cw_session *s, const int32_t *ids, size_t n,
                      const struct cw_session_hooks *hooks, struct cw_err *err) {
    cw_session_adopt(s, -1);
    if (n > s->n_ctx - s->now.n) {
        return cw_fail(err, CW_EFULL, "%zu tokens more do not fit: %zu of %" PRIu32 " are taken", n,
                       s->now.n, s->n_ctx);
    }
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= s->model->hp.n_vocab) {
            return cw_fail(err, CW_EINVAL, "token id %" PRId32 " is not in the vocabulary of %d",
                           ids[i], s->model->hp.n_vocab);
        }
    }
    bool few = hooks != NULL && hooks->row != NULL && n <= CW_SESSION_ROWS;
    for (size_t done = 0; done < n;) {
        size_t left = n - done;
        int count = left < (size_t)s->chunk || few ? (int)left : s->chunk;
        int rc = extend_chunk(s, ids + done, count, (size_t)count == left, hooks, err);
        if (rc != CW_OK) {
            return rc;
        }
        done += (size_t)count;
        if (done < n && hooks != NULL && hooks->progress != NULL &&
            hooks->progress(hooks->arg, done, n)) {
            return cw_fail(err, CW_ECANCEL, "stopped");
        }
    }
    return CW_OK;
}

size_t cw_session_move(struct cw_session *s, const int32_t *ids, size_t n) {
    size_t same = cw_timeline_common(&s->now, ids, n);
    size_t i = find_retained(s, ids, n, &same);
    if (i != SIZE_MAX) {
        struct cw_timeline found = s->old[i];
        memmove(&s->old[i], &s->old[i + 1], (s->n_old - i - 1) * sizeof *s->old);
        s->n_old--;
        if (!begins_with(&found, &s->now)) {
            cw_session_retain(s, &s->now);
        }
        cw_timeline_share(&s->now, &s->kv, &found, found.n);
        cw_timeline_free(&found, &s->kv);
        s->n_rows = 0;
    }
    if (same < s->now.n) {
        cw_session_retain(s, &s->now);
        cw_timeline_truncate(&s->now, &s->kv, same);
    }
    cw_session_settle(s);
    return same;
}

int cw_session_sync(struct cw_session *s, const int32_t *ids, size_t n,
                    const struct cw_session_hooks *hooks, struct cw_sync_stats *stats,
                    struct cw_err *err) {
    if (stats != NULL) {
        *stats = (struct cw_sync_stats){0};
    }
    if (n > s->n_ctx) {
        return cw_fail(err, CW_EFULL, "%zu tokens do not fit in a context of %" PRIu32, n,
                       s->n_ctx);
    }
    cw_session_adopt(s, -1);
    size_t same = cw_session_move(s, ids, n);
    if (same == n && n > 0) {
        same--; /* the last once more, for its logits */
        cw_session_rewind(s, same);
    }
    int rc = cw_session_extend(s, ids + same, n - same, hooks, err);
    if (stats != NULL) {
        stats->reused = same;
        stats->evaluated = s->now.n - same;
    }
    return rc;
}
