/* SPDX-License-Identifier: MIT
 *
 * The timeline. Its one invariant: cells 0 .. n - 1 of the cache belong to ids[0 .. n), and were
 * written by the forward pass. What is cut off by a rewind or given up half-way stays in the cells
 * behind n, where nothing looks before it is written again. */
#include "chinwag/session.h"

#include "core/chat/kvcache.h"
#include "core/model/forward.h"
#include "core/model/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_ROWS = 16 }; /* logits computed at once where every row is wanted */

struct cw_session {
    struct cw_model *model; /* borrowed */
    struct cw_scratch *scratch;
    struct cw_kvcache kv;
    uint32_t n_ctx;
    int chunk;
    char reason[64]; /* of n_ctx */
    int32_t *ids;    /* [n_ctx] */
    size_t n;
    float *rows; /* [N_ROWS, n_vocab] */
    size_t rows_bytes;
    float *logits; /* the row after ids[n - 1], or NULL */
};

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
        rc = cw_kvcache_create(&s->kv, model, s->n_ctx, opt->kv, err);
    }
    if (rc == CW_OK) {
        rc = cw_scratch_create(&s->scratch, model, s->chunk, s->n_ctx, err);
    }
    if (rc == CW_OK) {
        s->rows_bytes = (size_t)N_ROWS * (size_t)model->hp.n_vocab * sizeof *s->rows;
        s->rows = cw_large_alloc(s->rows_bytes);
        s->ids = cw_large_alloc((size_t)s->n_ctx * sizeof *s->ids);
        if (s->rows == NULL || s->ids == NULL) {
            rc =
                cw_fail(err, CW_ENOMEM, "no memory for the scores of %d tokens", model->hp.n_vocab);
        }
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
    cw_kvcache_free(&s->kv);
    cw_scratch_destroy(s->scratch);
    cw_large_free(s->rows, s->rows_bytes);
    cw_large_free(s->ids, (size_t)s->n_ctx * sizeof *s->ids);
    free(s);
}

uint32_t cw_session_n_ctx(const struct cw_session *s) {
    return s->n_ctx;
}

const char *cw_session_n_ctx_reason(const struct cw_session *s) {
    return s->reason;
}

size_t cw_session_n(const struct cw_session *s) {
    return s->n;
}

const int32_t *cw_session_ids(const struct cw_session *s) {
    return s->ids;
}

uint64_t cw_session_extra_bytes(const struct cw_model *m, uint32_t n_ctx) {
    return (uint64_t)N_ROWS * (uint64_t)m->hp.n_vocab * sizeof(float) + n_ctx * sizeof(int32_t);
}

uint64_t cw_session_bytes(const struct cw_session *s) {
    return s->kv.bytes + cw_scratch_bytes(s->model, s->chunk) +
           cw_session_extra_bytes(s->model, s->n_ctx);
}

float *cw_session_logits(struct cw_session *s) {
    return s->logits;
}

/* ---- the timeline ------------------------------------------------------------------------------
 */

void cw_session_rewind(struct cw_session *s, size_t n) {
    if (n < s->n) {
        s->n = n;
        s->logits = NULL;
    }
}

static int file_lost(const struct cw_session *s, struct cw_err *err) {
    return cw_fail(err, CW_EIO, "%s: the file was cut short while in use",
                   cw_gguf_path(s->model->gguf));
}

/* Logits of the last n_out rows of the chunk of n ids at s->n, told to the hook if it wants them;
 * s->logits is the last of them. */
static int score_rows(struct cw_session *s, int n, int n_out, const struct cw_session_hooks *hooks,
                      struct cw_err *err) {
    size_t n_vocab = (size_t)s->model->hp.n_vocab;
    for (int r = 0; r < n_out; r += N_ROWS) {
        int count = n_out - r < N_ROWS ? n_out - r : N_ROWS;
        cw_forward_logits(s->model, s->scratch, r, count, s->rows);
        if (cw_gguf_damaged(s->model->gguf)) {
            return file_lost(s, err);
        }
        for (int i = 0; hooks != NULL && hooks->row != NULL && i < count; i++) {
            hooks->row(hooks->arg, s->n + (size_t)(n - n_out + r + i), s->rows + i * n_vocab);
        }
        s->logits = s->rows + (size_t)(count - 1) * n_vocab;
    }
    return CW_OK;
}

/* One chunk of n ids; the timeline grows only when all went well. */
static int extend_chunk(struct cw_session *s, const int32_t *ids, int n, bool last,
                        const struct cw_session_hooks *hooks, struct cw_err *err) {
    bool every_row = hooks != NULL && hooks->row != NULL;
    const struct cw_batch b = {
        .ids = ids,
        .n = n,
        .pos = (uint32_t)s->n,
        .n_out = every_row ? n
                 : last    ? 1
                           : 0,
        .stop = hooks != NULL ? hooks->stop : NULL,
        .arg = hooks != NULL ? hooks->arg : NULL,
    };
    s->logits = NULL;
    int rc = cw_forward(s->model, s->scratch, s->kv.layers, &b);
    if (rc == CW_ECANCEL) {
        return cw_fail(err, CW_ECANCEL, "stopped");
    }
    if (cw_gguf_damaged(s->model->gguf)) {
        return file_lost(s, err);
    }
    rc = score_rows(s, n, b.n_out, hooks, err);
    if (rc != CW_OK) {
        s->logits = NULL;
        return rc;
    }
    memcpy(s->ids + s->n, ids, (size_t)n * sizeof *ids);
    s->n += (size_t)n;
    return CW_OK;
}

int cw_session_extend(struct cw_session *s, const int32_t *ids, size_t n,
                      const struct cw_session_hooks *hooks, struct cw_err *err) {
    if (n > s->n_ctx - s->n) {
        return cw_fail(err, CW_EFULL, "%zu tokens more do not fit: %zu of %" PRIu32 " are taken", n,
                       s->n, s->n_ctx);
    }
    for (size_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= s->model->hp.n_vocab) {
            return cw_fail(err, CW_EINVAL, "token id %" PRId32 " is not in the vocabulary of %d",
                           ids[i], s->model->hp.n_vocab);
        }
    }
    for (size_t done = 0; done < n;) {
        size_t left = n - done;
        int count = left < (size_t)s->chunk ? (int)left : s->chunk;
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

int cw_session_sync(struct cw_session *s, const int32_t *ids, size_t n,
                    const struct cw_session_hooks *hooks, struct cw_sync_stats *stats,
                    struct cw_err *err) {
    size_t same = 0;
    if (stats != NULL) {
        *stats = (struct cw_sync_stats){0};
    }
    if (n > s->n_ctx) {
        return cw_fail(err, CW_EFULL, "%zu tokens do not fit in a context of %" PRIu32, n,
                       s->n_ctx);
    }
    while (same < n && same < s->n && s->ids[same] == ids[same]) {
        same++;
    }
    if (same == n && n > 0) {
        same--; /* the last once more, for its logits */
    }
    cw_session_rewind(s, same);
    int rc = cw_session_extend(s, ids + same, n - same, hooks, err);
    if (stats != NULL) {
        stats->reused = same;
        stats->evaluated = s->n - same;
    }
    return rc;
}
