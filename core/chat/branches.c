/* SPDX-License-Identifier: MIT
 *
 * Several timelines that grow together: one forward pass a step, so that every weight is read once
 * for all of them, and the keys and values they share once as well. */
#include "core/chat/session_impl.h"

#include <inttypes.h>
#include <string.h>

static float *row(const struct cw_session *s, int i) {
    return s->rows + (size_t)i * (size_t)s->model->hp.n_vocab;
}

int cw_session_branch(struct cw_session *s, int n, struct cw_err *err) {
    size_t row_bytes = (size_t)s->model->hp.n_vocab * sizeof *s->rows;
    if (n < 1 || n > CW_MAX_BRANCHES) {
        return cw_fail(err, CW_EINVAL, "%d branches: only 1 to %d are possible", n,
                       CW_MAX_BRANCHES);
    }
    cw_session_adopt(s, -1);
    float *logits = cw_session_logits(s);
    for (int i = 0; i < n; i++) {
        int rc = cw_timeline_init(&s->branch[i], &s->kv, s->n_ctx, err);
        if (rc != CW_OK) {
            while (i-- > 0) {
                cw_timeline_free(&s->branch[i], &s->kv);
            }
            return rc;
        }
        cw_timeline_share(&s->branch[i], &s->kv, &s->now, s->now.n);
    }
    if (logits != NULL) {
        memmove(s->rows, logits, row_bytes);
    }
    for (int i = 0; i < n; i++) {
        s->branch_row[i] = logits != NULL ? i : -1;
        if (logits != NULL && i > 0) {
            memcpy(row(s, i), s->rows, row_bytes);
        }
    }
    s->n_branches = n;
    s->n_rows = 0;
    return CW_OK;
}

int cw_session_n_branches(const struct cw_session *s) {
    return s->n_branches;
}

size_t cw_session_branch_room(const struct cw_session *s, int i) {
    const struct cw_timeline *t = &s->branch[i];
    size_t context = s->n_ctx - t->n;
    if (s->kv.n_free + s->kv.n_warm > 0 || s->n_old > 0) {
        return context;
    }
    size_t pages = t->n_pages * CW_PAGE_CELLS - t->n;
    return context < pages ? context : pages;
}

/* Whether every live branch may take its id. */
static int check_step(struct cw_session *s, const int32_t *ids, const bool *live,
                      struct cw_err *err) {
    for (int i = 0; i < s->n_branches; i++) {
        if (live[i] && (ids[i] < 0 || ids[i] >= s->model->hp.n_vocab)) {
            return cw_fail(err, CW_EINVAL, "token id %" PRId32 " is not in the vocabulary of %d",
                           ids[i], s->model->hp.n_vocab);
        }
        if (live[i] && s->branch[i].n >= s->n_ctx) {
            return cw_fail(err, CW_EFULL, "reply %d has filled the context of %" PRIu32, i + 1,
                           s->n_ctx);
        }
    }
    for (int i = 0; i < s->n_branches; i++) {
        if (live[i] && !cw_session_reserve(s, &s->branch[i], 1)) {
            return cw_fail(err, CW_EFULL, "no room in the cache for %d replies", s->n_branches);
        }
    }
    return CW_OK;
}

int cw_session_step(struct cw_session *s, const int32_t *ids, const bool *live,
                    const struct cw_session_hooks *hooks, struct cw_err *err) {
    int32_t batch[CW_MAX_BRANCHES];
    int which[CW_MAX_BRANCHES], n = 0;
    int rc = check_step(s, ids, live, err);
    if (rc != CW_OK) {
        return rc;
    }
    for (int i = 0; i < s->n_branches; i++) {
        if (live[i]) {
            s->at[n] = (struct cw_place){s->branch[i].pages, (uint32_t)s->branch[i].n};
            batch[n] = ids[i];
            which[n++] = i;
        }
    }
    if (n == 0) {
        return CW_OK;
    }
    const struct cw_batch b = {
        .ids = batch,
        .at = s->at,
        .n = n,
        .n_out = n,
        .stop = hooks != NULL ? hooks->stop : NULL,
        .arg = hooks != NULL ? hooks->arg : NULL,
    };
    for (int i = 0; i < s->n_branches; i++) {
        s->branch_row[i] = -1;
    }
    rc = cw_session_check(s, cw_forward(s->model, s->scratch, s->kv.layers, &b), err);
    if (rc == CW_OK) {
        cw_forward_logits(s->model, s->scratch, 0, n, s->rows);
        rc = cw_session_check(s, CW_OK, err);
    }
    for (int i = 0; rc == CW_OK && i < n; i++) {
        cw_timeline_append(&s->branch[which[i]], &s->kv, &batch[i], 1);
        s->branch_row[which[i]] = i;
    }
    return rc;
}

float *cw_session_branch_logits(struct cw_session *s, int i) {
    return s->branch_row[i] >= 0 ? row(s, s->branch_row[i]) : NULL;
}

const int32_t *cw_session_branch_ids(const struct cw_session *s, int i, size_t *n) {
    if (n != NULL) {
        *n = s->branch[i].n;
    }
    return s->branch[i].ids;
}

void cw_session_adopt(struct cw_session *s, int chosen) {
    if (s->n_branches == 0) {
        return;
    }
    if (chosen >= 0) {
        struct cw_timeline before = s->now;
        s->now = s->branch[chosen];
        s->branch[chosen] = before;
        if (s->branch_row[chosen] >= 0) {
            memmove(s->rows, row(s, s->branch_row[chosen]),
                    (size_t)s->model->hp.n_vocab * sizeof *s->rows);
            s->row_first = s->now.n - 1;
            s->n_rows = 1;
        }
    }
    int n = s->n_branches;
    s->n_branches = 0;
    for (int i = 0; i < n; i++) { /* the place before them is a part of all: not kept */
        cw_session_retain(s, &s->branch[i]);
        cw_timeline_free(&s->branch[i], &s->kv);
    }
    cw_session_settle(s);
}
