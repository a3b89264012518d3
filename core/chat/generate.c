/* SPDX-License-Identifier: MIT
 *
 * The loop every reply runs through, whoever asked for it. It knows no thread and no ring: settings
 * come and tokens go by callbacks.
 */
#include "core/chat/generate.h"

#include <stdlib.h>

#include "chinwag/clock.h"
#include "core/chat/stops.h"

enum { WINDOW = 512 }; /* times of the latest tokens, for the speed over the last second */

struct loop {
    const struct cw_generate *g;
    struct cw_filter *filter;
    struct cw_buf piece;  /* bytes of the token at hand */
    struct cw_buf text;   /* what it released */
    struct cw_ids all;    /* naive only: the timeline to evaluate anew */
    double start_s;       /* of the request */
    double times[WINDOW]; /* of token i at i % WINDOW, s */
    size_t oldest;        /* first token within the last second */
    struct cw_figures *figures;
};

/* Speed over the last second, or since the first token. */
static double running_tps(struct loop *l, size_t n) {
    double now = l->times[(n - 1) % WINDOW];
    if (n > WINDOW && l->oldest < n - WINDOW) {
        l->oldest = n - WINDOW;
    }
    while (now - l->times[l->oldest % WINDOW] > 1.0) {
        l->oldest++;
    }
    double span = now - l->times[l->oldest % WINDOW];
    return span > 0 ? (double)(n - 1 - l->oldest) / span : 0;
}

static void count_token(struct loop *l) {
    struct cw_figures *f = l->figures;
    double now = cw_now();
    l->times[f->n_tokens % WINDOW] = now;
    if (f->n_tokens++ == 0) {
        f->first_s = now;
        f->ttft_s = now - l->start_s;
    }
    f->last_s = now;
    f->eval_s = now - f->first_s;
    f->n_ctx_used = cw_session_n(l->g->session);
    f->n_ctx = cw_session_n_ctx(l->g->session);
    f->tps = running_tps(l, f->n_tokens);
}

static bool cancelled(const struct cw_generate *g) {
    return g->cancelled != NULL && g->cancelled(g->arg);
}

static bool stop_evaluating(void *arg) {
    return cancelled(arg);
}

/* Make the drawn token part of the timeline. */
static int evaluate(struct loop *l, int32_t id, struct cw_err *err) {
    const struct cw_generate *g = l->g;
    struct cw_session_hooks hooks = {.stop = stop_evaluating, .arg = (void *)g};
    if (!g->naive) {
        return cw_session_extend(g->session, &id, 1, &hooks, err);
    }
    cw_ids_add(&l->all, id);
    cw_session_rewind(g->session, 0);
    return cw_session_extend(g->session, l->all.v, l->all.n, &hooks, err);
}

/* Put what the token stands for through the filter. True when a stop string is complete. */
static bool show(struct loop *l, int32_t id, bool first) {
    const struct cw_generate *g = l->g;
    if (g->tokenizer == NULL) {
        return false;
    }
    if (cw_tokenizer_is_control(g->tokenizer, id)) {
        /* It writes nothing and parts what stands on either side of it. */
        cw_filter_flush(l->filter, false, &l->text);
        return false;
    }
    cw_buf_clear(&l->piece);
    cw_tokenizer_piece(g->tokenizer, id, false, first && g->begins_text, &l->piece);
    return cw_filter_feed(l->filter, l->piece.data, l->piece.len, &l->text);
}

static int run(struct loop *l, enum cw_stop *stop, struct cw_err *err) {
    const struct cw_generate *g = l->g;
    for (uint64_t position = 0;; position++) {
        if (g->max_tokens >= 0 && position >= (uint64_t)g->max_tokens) {
            *stop = CW_STOP_LENGTH;
            return CW_OK;
        }
        if (cancelled(g)) {
            *stop = CW_STOP_CANCEL;
            return CW_OK;
        }
        const float *logits = cw_session_logits(g->session);
        if (logits == NULL) {
            return cw_fail(err, CW_EINVAL, "there is nothing to continue: the prompt is empty");
        }
        struct cw_sampling set;
        struct cw_draw draw;
        g->settings(g->arg, position, &set);
        int rc =
            cw_sampler_draw(g->sampler, &set, logits, g->n_usable, cw_session_ids(g->session),
                            cw_session_n(g->session), g->seed, position, g->detail, &draw, err);
        if (rc != CW_OK) {
            return rc;
        }
        count_token(l);
        cw_buf_clear(&l->text);
        bool end =
            g->tokenizer != NULL && !g->ignore_eog && cw_tokenizer_is_eog(g->tokenizer, draw.id);
        bool stopped = show(l, draw.id, position == 0);
        rc = g->token(g->arg, position, &draw, l->text.data, l->text.len, l->figures);
        if (rc != CW_OK) {
            return rc;
        }
        if (end || stopped) {
            *stop = end ? CW_STOP_EOG : CW_STOP_STRING;
            return CW_OK;
        }
        if (g->max_tokens >= 0 && position + 1 >= (uint64_t)g->max_tokens) {
            *stop = CW_STOP_LENGTH;
            return CW_OK;
        }
        if (cw_session_n(g->session) >= cw_session_n_ctx(g->session)) {
            *stop = CW_STOP_CONTEXT;
            return CW_OK;
        }
        rc = evaluate(l, draw.id, err);
        if (rc != CW_OK) {
            return rc;
        }
    }
}

int cw_generate_run(const struct cw_generate *g, enum cw_stop *stop, struct cw_figures *figures,
                    struct cw_err *err) {
    struct loop l = {
        .g = g,
        .filter = cw_filter_create(g->stops, g->n_stops),
        .start_s = g->started_s > 0 ? g->started_s : cw_now(),
        .figures = figures,
    };
    if (g->naive) {
        cw_ids_append(&l.all, cw_session_ids(g->session), cw_session_n(g->session));
    }
    *stop = CW_STOP_ERROR;
    int rc = run(&l, stop, err);
    if (rc == CW_ECANCEL) {
        *stop = CW_STOP_CANCEL;
        rc = CW_OK;
    }
    /* What was held back belongs to the reply, unless a stop string came (then nothing is held). Of
     * a reply that was cut off, a character begun is not shown; the model did not get to say it. */
    bool cut = *stop == CW_STOP_CANCEL || *stop == CW_STOP_LENGTH || *stop == CW_STOP_CONTEXT;
    cw_buf_clear(&l.text);
    cw_filter_flush(l.filter, cut, &l.text);
    if (l.text.len > 0) {
        int sent = g->token(g->arg, figures->n_tokens, NULL, l.text.data, l.text.len, figures);
        if (rc == CW_OK && sent != CW_OK && sent != CW_ECANCEL) {
            rc = sent;
            *stop = CW_STOP_ERROR;
        }
    }
    if (figures->n_tokens > 1) {
        double span = figures->last_s - figures->first_s;
        figures->tps = span > 0 ? (double)(figures->n_tokens - 1) / span : 0;
    } else {
        figures->tps = 0;
    }
    figures->n_ctx_used = cw_session_n(g->session);
    figures->n_ctx = cw_session_n_ctx(g->session);
    cw_filter_destroy(l.filter);
    cw_buf_free(&l.piece);
    cw_buf_free(&l.text);
    cw_ids_free(&l.all);
    return rc;
}
