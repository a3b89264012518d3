/* SPDX-License-Identifier: MIT
 * Copying, freeing and comparing requests. */
#include "core/chat/job.h"

#include <stdlib.h>
#include <string.h>

#include "chinwag/clock.h"

static void *copy(const void *data, size_t n, size_t size) {
    if (data == NULL) {
        return NULL;
    }
    void *p = cw_reallocarray(NULL, n, size);
    if (n > 0) {
        memcpy(p, data, n * size);
    }
    return p;
}

/* Content with a terminator after it, for whoever prints it while debugging. */
static char *copy_text(const char *text, size_t len) {
    return text != NULL ? cw_strndup(text, len) : NULL;
}

static int check_request(const struct cw_request *req, struct cw_err *err) {
    int given = (req->messages != NULL) + (req->raw != NULL) + (req->ids != NULL);
    if (given != 1) {
        return cw_fail(err, CW_EINVAL,
                       "a request takes a conversation, a text or ids: %d of them were given",
                       given);
    }
    if (req->continue_reply && (req->messages == NULL || req->n_messages == 0)) {
        return cw_fail(err, CW_EINVAL, "there is no reply to continue");
    }
    if (req->n_replies > CW_MAX_REPLIES) {
        return cw_fail(err, CW_EINVAL, "%u replies at once: at most %d are possible",
                       req->n_replies, CW_MAX_REPLIES);
    }
    for (size_t i = 0; i < req->n_messages && req->messages != NULL; i++) {
        if (req->messages[i].role == NULL) {
            return cw_fail(err, CW_EINVAL, "message %zu has no role", i);
        }
    }
    for (size_t i = 0; i < req->n_at; i++) {
        if (i > 0 && req->at[i].position < req->at[i - 1].position) {
            return cw_fail(err, CW_EINVAL, "settings changes are not in ascending order");
        }
        int rc = cw_sampling_check(&req->at[i].sampling, err);
        if (rc != CW_OK) {
            return rc;
        }
    }
    return CW_OK;
}

int cw_job_create(struct cw_job **out, const struct cw_request *req, struct cw_err *err) {
    *out = NULL;
    int rc = check_request(req, err);
    if (rc != CW_OK) {
        return rc;
    }
    struct cw_job *job = cw_calloc(1, sizeof *job);
    job->req = *req;
    job->started_s = req->started_s > 0 ? req->started_s : cw_now();
    job->req.snapshot_key = req->snapshot_key != NULL ? cw_strdup(req->snapshot_key) : NULL;
    job->req.raw = copy_text(req->raw, req->raw_len);
    job->req.ids = copy(req->ids, req->n_ids, sizeof *req->ids);
    job->req.at = copy(req->at, req->at != NULL ? req->n_at : 0, sizeof *req->at);
    struct cw_message *messages = copy(req->messages, req->n_messages, sizeof *messages);
    for (size_t i = 0; messages != NULL && i < req->n_messages; i++) {
        struct cw_message *m = &messages[i];
        m->role = cw_strdup(m->role);
        m->content = m->content != NULL ? copy_text(m->content, m->len) : cw_strdup("");
        m->len = req->messages[i].content != NULL ? m->len : 0;
        m->ids = copy(m->ids, m->n_ids, sizeof *m->ids);
        m->reasoning = copy_text(m->reasoning, m->reasoning_len);
    }
    job->req.messages = messages;
    const char **stops = cw_calloc(req->n_stops, sizeof *stops);
    for (size_t i = 0; i < req->n_stops; i++) {
        stops[i] = cw_strdup(req->stops[i]);
    }
    job->req.stops = stops;
    *out = job;
    return CW_OK;
}

void cw_job_destroy(struct cw_job *job) {
    if (job == NULL) {
        return;
    }
    const struct cw_request *r = &job->req;
    for (size_t i = 0; r->messages != NULL && i < r->n_messages; i++) {
        free((void *)r->messages[i].role);
        free((void *)r->messages[i].content);
        free((void *)r->messages[i].ids);
        free((void *)r->messages[i].reasoning);
    }
    free((void *)r->messages);
    for (size_t i = 0; i < r->n_stops; i++) {
        free((void *)r->stops[i]);
    }
    free((void *)r->stops);
    free((void *)r->snapshot_key);
    free((void *)r->raw);
    free((void *)r->ids);
    free((void *)r->at);
    free(job);
}

static bool same_message(const struct cw_message *a, const struct cw_message *b) {
    return strcmp(a->role, b->role) == 0 && a->len == b->len &&
           (a->len == 0 || memcmp(a->content, b->content, a->len) == 0);
}

bool cw_job_follows(const struct cw_job *job, const struct cw_job *last, const int32_t *ids,
                    size_t n) {
    if (last == NULL || job->req.messages == NULL || last->req.messages == NULL) {
        return false;
    }
    /* A reply that was continued stands in `last` as it was before. */
    size_t common = last->req.n_messages - (last->req.continue_reply ? 1 : 0);
    if (job->req.n_messages <= common) {
        return false;
    }
    for (size_t i = 0; i < common; i++) {
        if (!same_message(&job->req.messages[i], &last->req.messages[i])) {
            return false;
        }
    }
    const struct cw_message *reply = &job->req.messages[common];
    if (strcmp(reply->role, "assistant") != 0) {
        return false;
    }
    if (reply->ids == NULL || last->req.continue_reply) {
        return true;
    }
    size_t m = reply->n_ids < n ? reply->n_ids : n;
    return m == 0 || memcmp(reply->ids, ids, m * sizeof *ids) == 0;
}
