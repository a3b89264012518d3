/* SPDX-License-Identifier: MIT
 *
 * Prefill while typing: between requests the thread evaluates what will stay of the draft, so that
 * Enter finds little left to do. It is the session's own matching of prefixes that makes use of it:
 * a guess that turns out wrong costs its evaluation and nothing else.
 */
#include "core/chat/generator_impl.h"
#include "core/chat/prompt.h"

static bool interrupted(void *arg) {
    const struct cw_generator *g = arg;
    return atomic_load_explicit(&g->interrupt, memory_order_acquire);
}

static bool interrupted_between(void *arg, size_t done, size_t total) {
    (void)done;
    (void)total;
    return interrupted(arg);
}

/* The newest draft replaces the one under way. */
static void take_draft(struct cw_generator *g) {
    pthread_mutex_lock(&g->lock);
    if (g->draft != NULL || g->drop_draft) {
        cw_job_destroy(g->typing);
        g->typing = g->draft;
        g->draft = NULL;
        g->drop_draft = false;
    }
    pthread_mutex_unlock(&g->lock);
}

void cw_draft_drop(struct cw_generator *g) {
    if (g->prepared_to > 0) {
        cw_session_rewind(g->loaded.session, g->prepared_from);
        g->prepared_from = g->prepared_to = 0;
    }
}

static int evaluate(struct cw_generator *g, const struct cw_ids *ids) {
    struct cw_session *s = g->loaded.session;
    struct cw_session_hooks hooks = {
        .progress = interrupted_between, .stop = interrupted, .arg = g};
    struct cw_sync_stats stats = {0};
    size_t n = cw_session_n(s), same = cw_ids_common(cw_session_ids(s), n, ids->v, ids->n);
    if (same == ids->n || ids->n > cw_session_n_ctx(s)) {
        return CW_OK; /* all there, or never to be */
    }
    bool goes_on = g->prepared_to > 0 && same >= g->prepared_from;
    if (goes_on) {
        cw_session_rewind(s, same); /* what was typed and is no more is not worth retaining */
    } else {
        if (same < n) {
            cw_draft_drop(g);
            cw_keep_leave(g);
        }
        cw_keep_load(g, &g->typing->req, ids); /* a conversation that is taken up again */
    }
    int rc = cw_session_sync(s, ids->v, ids->n, &hooks, &stats, NULL);
    if (!goes_on) {
        g->prepared_from = stats.reused;
    }
    g->prepared_to = stats.reused + stats.evaluated;
    return rc;
}

bool cw_generator_type(struct cw_generator *g) {
    struct cw_ids ids = {0};
    take_draft(g);
    if (g->typing == NULL || g->opt.naive) {
        return true;
    }
    int rc = cw_prompt_draft(&g->loaded, g->typing, &ids, NULL);
    if (rc == CW_OK) {
        rc = evaluate(g, &ids);
    }
    cw_ids_free(&ids);
    if (rc == CW_ECANCEL) {
        return false; /* gone on with when what interrupted it is done */
    }
    cw_job_destroy(g->typing);
    g->typing = NULL;
    return true;
}
