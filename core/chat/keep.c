/* SPDX-License-Identifier: MIT
 *
 * Snapshots: when the timeline of a conversation goes to disk and comes back. To disk once nobody
 * has wanted anything for a while, and at the end; back when a conversation is taken up of which
 * the cache has little. What a draft has added is never written: it may not be meant to be kept.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/snapshot.h"
#include "core/chat/generator_impl.h"

enum {
    LEAST = 256,    /* ids that are worth a file, or a look for one */
    IDLE_MS = 2000, /* nothing wanted for so long */
    NEVER_MS = -1,
};

static bool same_key(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* The file has so little of the timeline that it is to be written again before the end. */
static bool is_old(const struct cw_generator *g) {
    return g->keep.due && cw_session_n(g->loaded.session) >= g->keep.n_saved + LEAST;
}

int cw_keep_timeout_ms(const struct cw_generator *g) {
    return is_old(g) && g->prepared_to == 0 ? IDLE_MS : NEVER_MS;
}

void cw_keep_after(struct cw_generator *g, const struct cw_request *req) {
    if (!same_key(g->keep.key, req->snapshot_key)) {
        free(g->keep.key);
        g->keep.key = req->snapshot_key != NULL ? cw_strdup(req->snapshot_key) : NULL;
        g->keep.n_saved = 0;
    }
    g->keep.due = g->opt.snapshot_dir != NULL && g->keep.key != NULL &&
                  cw_session_n(g->loaded.session) >= LEAST;
}

void cw_keep_save(struct cw_generator *g) {
    struct cw_session *s = g->loaded.session;
    struct cw_err err;
    if (!g->keep.due) {
        return;
    }
    g->keep.due = false;
    cw_draft_drop(g);
    if (cw_session_n(s) < LEAST) {
        return;
    }
    int rc = cw_snapshots_save(g->opt.snapshot_dir, g->keep.key, g->opt.snapshot_bytes, s, &err);
    if (rc == CW_OK && same_key(g->keep.refused, g->keep.key)) {
        free(g->keep.refused); /* this one is another */
        g->keep.refused = NULL;
    }
    g->keep.n_saved = cw_session_n(s); /* or failed, which is not to be tried at once again */
    if (rc != CW_OK && !g->keep.told) {
        char line[CW_EVENT_TEXT + 64];
        g->keep.told = true; /* once: a full disk would be told at every turn */
        snprintf(line, sizeof line, "the cache of this chat is not kept: %s", err.text);
        cw_event_tell(g, CW_EV_NOTICE, 0, line);
    }
}

void cw_keep_leave(struct cw_generator *g) {
    if (is_old(g)) {
        cw_keep_save(g);
    }
    g->keep.due = false;
}

size_t cw_keep_load(struct cw_generator *g, const struct cw_request *req,
                    const struct cw_ids *ids) {
    struct cw_session *s = g->loaded.session;
    struct cw_err err;
    size_t restored = 0;
    if (!same_key(g->keep.key, req->snapshot_key)) {
        cw_keep_leave(g);
    }
    if (g->opt.snapshot_dir == NULL || req->snapshot_key == NULL || g->opt.naive ||
        same_key(g->keep.refused, req->snapshot_key) ||
        cw_session_cached(s, ids->v, ids->n) + LEAST > ids->n) {
        return 0;
    }
    int rc = cw_snapshots_load(g->opt.snapshot_dir, req->snapshot_key, s, ids->v, ids->n, &restored,
                               &err);
    if (rc != CW_OK && rc != CW_ENOENT) {
        char line[CW_EVENT_TEXT + 64];
        free(g->keep.refused);
        g->keep.refused = cw_strdup(req->snapshot_key);
        g->keep.refusal = true;
        snprintf(line, sizeof line, "the chat is evaluated anew: %s", err.text);
        cw_event_tell(g, CW_EV_NOTICE, 0, line);
    }
    return restored;
}
