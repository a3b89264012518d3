/* SPDX-License-Identifier: MIT
 *
 * A request is answered: its prompt made and evaluated, the loop run, and all of it told through
 * the ring.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/clock.h"
#include "core/chat/generate.h"
#include "core/chat/generator_impl.h"
#include "core/chat/prompt.h"
#include "core/chat/think.h"

/* The request under way. */
struct work {
    struct cw_generator *g;
    struct cw_job *job;
    struct cw_figures figures; /* of the prompt, then of reply 0 */
    struct cw_sampling set;    /* live settings at its start */
    uint64_t version;
    unsigned answers; /* n_answers at its start: what was asked for before is over */
};

/* One of its replies. */
struct reply {
    struct cw_generator *g;
    struct cw_job *job;
    uint32_t index;
    struct cw_think think;
    struct cw_sampling set; /* in force */
    uint64_t version;       /* of the live settings last seen */
    size_t next_at;         /* first of job->req.at not yet reached */
    struct cw_figures *figures;

    unsigned answers;  /* calls of cw_generator_answer_now that were dealt with */
    struct cw_ids put; /* ids that have to come next, */
    size_t n_put;      /* of which so many came */

    uint64_t position;          /* of the token being told */
    const struct cw_draw *draw; /* NULL once its first event is in the ring */
    bool forced;                /* it was not drawn */
};

static bool is_cancelled(const struct cw_generator *g) {
    return atomic_load_explicit(&g->cancel, memory_order_acquire);
}

static bool reply_cancelled(void *arg) {
    const struct reply *r = arg;
    return is_cancelled(r->g);
}

/* Sleep while paused, unless a token is let through. */
static double wait_while_paused(void *arg) {
    const struct reply *r = arg;
    struct cw_generator *g = r->g;
    if (!cw_generator_paused(g)) {
        return 0;
    }
    double began = cw_now();
    while (cw_generator_paused(g) && !is_cancelled(g)) {
        if (atomic_load_explicit(&g->steps, memory_order_acquire) > 0) {
            atomic_fetch_sub_explicit(&g->steps, 1, memory_order_acq_rel);
            break;
        }
        cw_generator_sleep(g, -1);
    }
    return cw_now() - began;
}

static bool same_settings(const struct cw_sampling *a, const struct cw_sampling *b) {
    /* Values of four bytes each, no padding; of the biases only the first n_bias count. */
    _Static_assert(offsetof(struct cw_sampling, bias) == 16 * 4, "padding in cw_sampling");
    return memcmp(a, b, offsetof(struct cw_sampling, bias)) == 0 &&
           (a->n_bias <= 0 || a->n_bias > CW_MAX_BIAS ||
            memcmp(a->bias, b->bias, (size_t)a->n_bias * sizeof a->bias[0]) == 0);
}

static void settings(void *arg, uint64_t position, struct cw_sampling *out) {
    struct reply *r = arg;
    const struct cw_request *req = &r->job->req;
    struct cw_sampling live, now = r->set;
    uint64_t version = cw_live_load(r->g->live, &live);
    if (version != r->version) {
        r->version = version;
        now = live;
    }
    while (r->next_at < req->n_at && req->at[r->next_at].position <= position) {
        now = req->at[r->next_at++].sampling;
    }
    if (!same_settings(&now, &r->set)) {
        struct cw_event *ev = cw_event_new(r->g, CW_EV_CHANGE, r->job->number);
        ev->reply = r->index;
        ev->u.change.position = position;
        ev->u.change.from = r->set;
        ev->u.change.to = now;
        ev->figures = *r->figures;
        cw_ring_push(r->g->ring, ev, &r->g->quit);
        r->set = now;
    }
    if (now.dry_multiplier > 0 && !r->g->has_breakers) {
        cw_set_breakers(r->g->loaded.sampler, r->g->loaded.tokenizer, r->g->loaded.n_usable);
        r->g->has_breakers = true;
    }
    *out = now;
}

/* The ids that end the thinking section: as the tokenizer reads the text, for that is how the model
 * has seen it. */
static void put_closing(struct reply *r, const char *text, size_t n) {
    struct cw_tokenizer *t = r->g->loaded.tokenizer;
    struct cw_buf first = {0};
    r->put.n = r->n_put = 0;
    if (cw_tokenizer_encode(t, text, n, CW_TOK_SPECIAL, &r->put, NULL) != CW_OK) {
        return;
    }
    /* SPM writes a blank in front of every text; this one stands within one. */
    if (r->put.n > 1) {
        cw_tokenizer_piece(t, r->put.v[0], true, false, &first);
        r->n_put = first.len == 1 && first.data[0] == ' ' && text[0] != ' ' ? 1 : 0;
    }
    cw_buf_free(&first);
}

static int32_t forced(void *arg, uint64_t position) {
    struct reply *r = arg;
    unsigned n_answers = atomic_load_explicit(&r->g->n_answers, memory_order_acquire);
    bool due = r->job->req.answer_at > 0 && position == r->job->req.answer_at;
    r->forced = false;
    if (r->n_put == r->put.n && (n_answers != r->answers || due)) {
        struct cw_buf text = {0};
        bool settled;
        bool closes = cw_think_closing(&r->think, &text, &settled);
        if (closes) {
            put_closing(r, text.data, text.len);
        }
        if (closes || settled) {
            r->answers = n_answers;
        }
        cw_buf_free(&text);
    }
    if (r->n_put < r->put.n) {
        r->forced = true;
        return r->put.v[r->n_put++];
    }
    return -1;
}

/* Text of the token at hand, in as many events as it needs. A token that was drawn is told whatever
 * happens, for text of tokens before it may come with it; a cancel takes hold before the next. */
static int emit(void *arg, bool thinking, const char *text, size_t n) {
    struct reply *r = arg;
    do {
        struct cw_event *ev = cw_event_new(r->g, CW_EV_TOKEN, r->job->number);
        ev->reply = r->index;
        ev->u.token.position = r->position;
        ev->u.token.first_part = r->draw != NULL;
        ev->u.token.thinking = thinking;
        ev->u.token.forced = r->forced;
        if (r->draw != NULL) {
            ev->u.token.draw = *r->draw;
        }
        ev->figures = *r->figures;
        cw_event_set_text(ev, text, n);
        int rc = cw_ring_push(r->g->ring, ev, &r->g->quit);
        if (rc != CW_OK) {
            return rc;
        }
        r->draw = NULL;
        text += ev->n_text;
        n -= ev->n_text;
    } while (n > 0);
    return CW_OK;
}

static int token(void *arg, uint64_t position, const struct cw_draw *draw, const char *text,
                 size_t n, const struct cw_figures *figures) {
    struct reply *r = arg;
    (void)figures; /* r->figures are these */
    if (draw == NULL) {
        /* Left over from the tokens before: one more part of the last. */
        return cw_think_feed(&r->think, -1, text, n, emit, r);
    }
    if (r->index == 0) {
        cw_ids_add(&r->g->last_ids, draw->id);
    }
    r->position = position;
    r->draw = draw;
    bool thinking = cw_think_now(&r->think);
    int rc = cw_think_feed(&r->think, draw->id, text, n, emit, r);
    if (rc == CW_OK && r->draw != NULL) {
        rc = emit(r, thinking || cw_think_now(&r->think), "", 0);
    }
    r->draw = NULL;
    return rc;
}

static int tell_progress(struct work *w, size_t done, size_t total) {
    struct cw_event *ev = cw_event_new(w->g, CW_EV_PROGRESS, w->job->number);
    ev->u.progress.done = done;
    ev->u.progress.total = total;
    ev->figures = w->figures;
    return cw_ring_push(w->g->ring, ev, &w->g->cancel);
}

static bool between_chunks(void *arg, size_t done, size_t total) {
    struct work *w = arg;
    w->figures.n_ctx_used = cw_session_n(w->g->loaded.session);
    return is_cancelled(w->g) || tell_progress(w, done, total) != CW_OK;
}

static bool stop_prompt(void *arg) {
    const struct work *w = arg;
    return is_cancelled(w->g);
}

/* Of the first n ids of the timeline, how many drafts have evaluated. */
static size_t count_prepared(struct cw_generator *g, size_t n) {
    size_t to = g->prepared_to < n ? g->prepared_to : n;
    size_t count = to > g->prepared_from ? to - g->prepared_from : 0;
    g->prepared_from = g->prepared_to = 0;
    return count;
}

static int evaluate(struct work *w, const struct cw_ids *ids, struct cw_err *err) {
    struct cw_session *s = w->g->loaded.session;
    struct cw_session_hooks hooks = {.progress = between_chunks, .stop = stop_prompt, .arg = w};
    struct cw_sync_stats stats = {0};
    double began = cw_now();
    if (is_cancelled(w->g)) {
        return CW_ECANCEL;
    }
    if (w->g->opt.naive) {
        cw_session_rewind(s, 0);
    }
    int rc = cw_session_sync(s, ids->v, ids->n, &hooks, &stats, err);
    w->figures.prompt_s = cw_now() - began;
    w->figures.n_reused = stats.reused;
    w->figures.n_evaluated = stats.evaluated;
    if (w->figures.n_restored > stats.reused) {
        w->figures.n_restored = stats.reused;
    }
    w->figures.n_ctx_used = cw_session_n(s);
    return rc != CW_OK ? rc : tell_progress(w, stats.evaluated, stats.evaluated);
}

/* Thinking was asked for in a way that the template does not know. */
static void tell_think(struct work *w) {
    struct cw_generator *g = w->g;
    int think = w->job->req.think;
    if (think < 0 || think > 31 || w->job->req.messages == NULL || (g->told_think >> think & 1)) {
        return;
    }
    g->told_think |= 1u << think;
    const char *line = cw_think_doubt(g->loaded.tmpl, g->loaded.bos, g->loaded.eos, think);
    if (line != NULL) {
        cw_event_tell(g, CW_EV_NOTICE, w->job->number, line);
    }
}

static int run_prompt(struct work *w, struct cw_prepared *prompt, struct cw_err *err) {
    struct cw_generator *g = w->g;
    struct cw_session *s = g->loaded.session;
    int rc = cw_prompt_prepare(&g->loaded, w->job, prompt, err);
    if (rc != CW_OK) {
        return rc;
    }
    if (prompt->folded && !g->told_folding) {
        g->told_folding = true;
        cw_event_tell(g, CW_EV_NOTICE, w->job->number,
                      "the chat template takes no system message: its text goes before the first "
                      "message");
    }
    if (prompt->partly && !g->told_partly) {
        g->told_partly = true;
        cw_event_tell(g, CW_EV_NOTICE, w->job->number,
                      "the chat template shows the model only a part of the conversation");
    }
    tell_think(w);
    const struct cw_ids *ids = &prompt->ids;
    if (ids->n == 0) {
        return cw_fail(err, CW_EINVAL, "the prompt is empty: there is nothing to evaluate");
    }
    w->figures.n_prompt = ids->n;
    w->figures.n_ctx = cw_session_n_ctx(s);
    if (ids->n > cw_session_n_ctx(s)) {
        return cw_fail(err, CW_EFULL, "the prompt has %zu tokens, the context holds %u", ids->n,
                       cw_session_n_ctx(s));
    }
    w->figures.n_restored = cw_keep_load(g, &w->job->req, ids);
    size_t n = cw_session_n(s), common = cw_ids_common(cw_session_ids(s), n, ids->v, ids->n);
    w->figures.n_prepared = count_prepared(g, common);
    size_t cached = cw_session_cached(s, ids->v, ids->n);
    struct cw_event *ev = cw_event_new(g, CW_EV_PROMPT, w->job->number);
    ev->u.prompt.n_prompt = ids->n;
    ev->u.prompt.n_reused = g->opt.naive ? 0 : cached < ids->n ? cached : ids->n - 1;
    ev->u.prompt.retokenised_from = SIZE_MAX;
    ev->u.prompt.snapshot_refused = g->keep.refusal;
    g->keep.refusal = false;
    if (common < n && cached < ids->n &&
        cw_job_follows(w->job, g->last, g->last_ids.v, g->last_ids.n)) {
        ev->u.prompt.retokenised_from = cached;
    }
    ev->figures = w->figures;
    rc = cw_ring_push(g->ring, ev, &g->cancel);
    return rc != CW_OK ? rc : evaluate(w, ids, err);
}

/* ---- replies ------------------------------------------------------------------------------- */

static int ignore(void *arg, bool thinking, const char *text, size_t n) {
    (void)arg;
    (void)thinking;
    (void)text;
    (void)n;
    return CW_OK;
}

/* A reply that goes on may be in the middle of a thought: read again what there is of it. */
static void recall(struct reply *r, const int32_t *ids, size_t n, bool begins_text) {
    const struct cw_tokenizer *t = r->g->loaded.tokenizer;
    struct cw_buf piece = {0};
    for (size_t i = 0; i < n; i++) {
        cw_buf_clear(&piece);
        cw_tokenizer_piece(t, ids[i], false, i == 0 && begins_text, &piece);
        cw_think_feed(&r->think, ids[i], piece.data, piece.len, ignore, NULL);
    }
    if (n > 0) {
        cw_think_flush(&r->think, ignore, NULL);
    }
    cw_buf_free(&piece);
}

static void reply_ended(void *arg, enum cw_stop stop, const struct cw_figures *figures) {
    struct reply *r = arg;
    cw_think_flush(&r->think, emit, r);
    if (r->job->req.n_replies > 1) {
        struct cw_event *ev = cw_event_new(r->g, CW_EV_REPLY_DONE, r->job->number);
        ev->reply = r->index;
        ev->u.done.stop = stop;
        ev->figures = *figures;
        cw_ring_push(r->g->ring, ev, &r->g->quit);
    }
}

static struct cw_generate make_loop(struct reply *r, const struct cw_prepared *prompt) {
    const struct cw_generator *g = r->g;
    const struct cw_request *req = &r->job->req;
    return (struct cw_generate){
        .session = g->loaded.session,
        .sampler = g->loaded.sampler,
        .tokenizer = g->loaded.tokenizer,
        .naive = g->opt.naive,
        .lookup = req->lookup && cw_model_get_info(g->loaded.model)->exact,
        .lookup_all = req->lookup_all,
        .max_tokens = req->max_tokens,
        .first_position = req->first_position,
        .so_far = prompt->ids.v + (prompt->ids.n - prompt->n_so_far),
        .n_so_far = prompt->n_so_far,
        .stops = req->stops,
        .n_stops = req->n_stops,
        .seed = req->seed + r->index,
        .detail = req->detail,
        .ignore_eog = req->ignore_eog,
        .n_usable = g->loaded.n_usable,
        .begins_text = prompt->begins_text,
        .started_s = r->job->started_s,
        .wait = wait_while_paused,
        .forced = forced,
        .settings = settings,
        .token = token,
        .cancelled = reply_cancelled,
        .ended = reply_ended,
        .arg = r,
    };
}

static int run_replies(struct work *w, const struct cw_prepared *prompt, enum cw_stop *stop,
                       struct cw_err *err) {
    struct cw_generator *g = w->g;
    uint32_t n = w->job->req.n_replies > 1 ? w->job->req.n_replies : 1;
    struct reply *replies = cw_calloc(n, sizeof *replies);
    struct cw_generate *loops = cw_calloc(n, sizeof *loops);
    struct cw_figures figures[CW_MAX_REPLIES];
    enum cw_stop stops[CW_MAX_REPLIES];
    for (uint32_t i = 0; i < n; i++) {
        struct reply *r = &replies[i];
        *r = (struct reply){.g = g, .job = w->job, .index = i, .figures = &figures[i]};
        figures[i] = w->figures;
        r->version = w->version;
        r->set = w->set;
        r->answers = w->answers;
        cw_think_init(&r->think, g->loaded.tokenizer, prompt->tail, prompt->tail_len,
                      g->loaded.template_source);
        loops[i] = make_loop(r, prompt);
        recall(r, loops[i].so_far, loops[i].n_so_far, prompt->begins_text);
    }
    int rc = n > 1 ? cw_generate_batch(loops, (int)n, stops, figures, err)
                   : cw_generate_run(loops, stops, figures, err);
    *stop = stops[0];
    w->figures = figures[0];
    for (uint32_t i = 0; i < n; i++) {
        cw_think_free(&replies[i].think);
        cw_ids_free(&replies[i].put);
    }
    free(replies);
    free(loops);
    return rc;
}

void cw_generator_finish(struct cw_generator *g, const struct cw_job *job, enum cw_stop stop,
                         const struct cw_figures *figures, const struct cw_err *err) {
    struct cw_event *ev = cw_event_new(g, CW_EV_DONE, job->number);
    ev->u.done.stop = stop;
    if (figures != NULL) {
        ev->figures = *figures;
    }
    if (stop == CW_STOP_ERROR) {
        ev->u.done.code = err->code;
        cw_event_set_text(ev, err->text, strlen(err->text));
    } else if (stop == CW_STOP_CONTEXT) {
        char line[64];
        int n = snprintf(line, sizeof line, "the context of %u tokens is full",
                         cw_session_n_ctx(g->loaded.session));
        cw_event_set_text(ev, line, (size_t)n);
    }
    atomic_store_explicit(&g->paused, false, memory_order_release);
    atomic_store_explicit(&g->steps, 0, memory_order_release);
    /* Whoever reads this event may hand over the next request at once. */
    atomic_store_explicit(&g->busy, false, memory_order_release);
    cw_ring_push(g->ring, ev, &g->quit);
}

void cw_generator_serve(struct cw_generator *g, struct cw_job *job) {
    struct work w = {.g = g, .job = job};
    struct cw_prepared prompt = {0};
    struct cw_err err = {0};
    enum cw_stop stop = CW_STOP_ERROR;
    w.version = cw_live_load(g->live, &w.set);
    w.answers = atomic_load_explicit(&g->n_answers, memory_order_acquire);
    int rc = run_prompt(&w, &prompt, &err);
    g->last_ids.n = 0;
    if (rc == CW_OK) {
        rc = run_replies(&w, &prompt, &stop, &err);
    }
    if (rc == CW_ECANCEL) {
        stop = CW_STOP_CANCEL;
    } else if (rc != CW_OK) {
        stop = CW_STOP_ERROR;
        err.code = rc;
        if (rc == CW_EIO && strstr(err.text, g->opt.model_path) == NULL) {
            char why[sizeof err.text];
            memcpy(why, err.text, sizeof why);
            cw_fail(&err, CW_EIO, "%s: %s", g->opt.model_path, why);
        }
    }
    cw_prepared_free(&prompt);
    cw_job_destroy(g->last);
    g->last = job;
    cw_keep_after(g, &job->req);
    cw_generator_finish(g, job, stop, &w.figures, &err);
}
