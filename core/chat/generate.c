/* SPDX-License-Identifier: MIT
 *
 * The loop every reply runs through, whoever asked for it. It knows no thread and no ring: settings
 * come and tokens go by callbacks.
 *
 * A reply of its own and one of several differ in where the logits come from and how the drawn
 * token is evaluated; the rest is one function, next_token.
 */
#include "core/chat/generate.h"

#include <stdlib.h>

#include "chinwag/clock.h"
#include "chinwag/utf8.h"
#include "core/chat/lookup.h"
#include "core/chat/stops.h"

enum { WINDOW = 512 }; /* times of the latest tokens, for the speed over the last second */

struct loop {
    const struct cw_generate *g;
    struct cw_filter *filter;
    struct cw_buf piece;  /* bytes of the token at hand */
    struct cw_buf text;   /* what it released */
    double start_s;       /* of the request */
    double times[WINDOW]; /* of token i at i % WINDOW, s, pauses taken out */
    size_t oldest;        /* first token within the last second */
    struct cw_figures *figures;
    bool over;
    enum cw_stop stop;

    /* Of a reply of its own. */
    size_t n;            /* ids of the timeline that are the reply's or the prompt's, not guesses */
    const float *logits; /* after them */
    struct cw_ids all;   /* naive only: the timeline to evaluate anew */
    struct cw_lookup *lookup;           /* NULL: no guesses */
    const float *rows[CW_SESSION_ROWS]; /* after the last token evaluated and after each guess */
    int32_t guess[CW_LOOKUP_MAX];
    size_t n_rows, n_guesses, next_guess; /* the guess that the next token may prove right */
};

/* ---- one token ----------------------------------------------------------------------------- */

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

static void count_token(struct loop *l, size_t n_ctx_used) {
    struct cw_figures *f = l->figures;
    double now = cw_now();
    l->times[f->n_tokens % WINDOW] = now - f->paused_s;
    if (f->n_tokens++ == 0) {
        f->first_s = now;
        f->ttft_s = now - l->start_s;
        f->paused_s = 0; /* before the first token it is time to the first token */
        l->times[0] = now;
    }
    f->last_s = now;
    f->eval_s = now - f->first_s - f->paused_s;
    f->n_ctx_used = n_ctx_used;
    f->n_ctx = cw_session_n_ctx(l->g->session);
    f->tps = running_tps(l, f->n_tokens);
}

static bool cancelled(const struct cw_generate *g) {
    return g->cancelled != NULL && g->cancelled(g->arg);
}

static bool stop_evaluating(void *arg) {
    return cancelled(arg);
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

static int choose(struct loop *l, uint64_t position, const float *logits, const int32_t *history,
                  size_t n_history, struct cw_draw *draw, struct cw_err *err) {
    const struct cw_generate *g = l->g;
    struct cw_sampling set;
    g->settings(g->arg, position, &set);
    int32_t forced = g->forced != NULL ? g->forced(g->arg, position) : -1;
    if (forced >= 0) {
        return cw_sampler_put(g->sampler, forced, logits, g->n_usable, g->detail, draw, err);
    }
    return cw_sampler_draw(g->sampler, &set, logits, g->n_usable, history, n_history, g->seed,
                           position, g->detail, draw, err);
}

static void end(struct loop *l, enum cw_stop stop) {
    l->over = true;
    l->stop = stop;
}

/* Draw the token that follows history[0..n), hand it on and look at the stops: l->over tells
 * whether the reply ends here. */
static int next_token(struct loop *l, const float *logits, const int32_t *history, size_t n,
                      bool room, int32_t *id, struct cw_err *err) {
    const struct cw_generate *g = l->g;
    size_t count = l->figures->n_tokens;
    uint64_t position = g->first_position + count;
    struct cw_draw draw;
    if (logits == NULL) {
        return cw_fail(err, CW_EINVAL, "there is nothing to continue: the prompt is empty");
    }
    int rc = choose(l, position, logits, history, n, &draw, err);
    if (rc != CW_OK) {
        return rc;
    }
    *id = draw.id;
    count_token(l, n);
    cw_buf_clear(&l->text);
    bool eog = g->tokenizer != NULL && !g->ignore_eog && cw_tokenizer_is_eog(g->tokenizer, draw.id);
    bool stopped = show(l, draw.id, count == 0 && g->n_so_far == 0);
    rc = g->token(g->arg, position, &draw, l->text.data, l->text.len, l->figures);
    if (rc != CW_OK) {
        return rc;
    }
    if (eog || stopped) {
        end(l, eog ? CW_STOP_EOG : CW_STOP_STRING);
    } else if (g->max_tokens >= 0 && count + 1 >= (uint64_t)g->max_tokens) {
        end(l, CW_STOP_LENGTH);
    } else if (!room) {
        end(l, CW_STOP_CONTEXT);
    }
    return CW_OK;
}

/* ---- before and after ---------------------------------------------------------------------- */

/* Let the filter know what was shown already, so that a character that a cut left unfinished is
 * completed. What it held back then has been shown at the cut. */
static void recall(struct loop *l) {
    const struct cw_generate *g = l->g;
    for (size_t i = 0; i < g->n_so_far; i++) {
        if (show(l, g->so_far[i], i == 0)) {
            cw_filter_destroy(l->filter); /* a stop string that was passed over */
            l->filter = cw_filter_create(g->stops, g->n_stops);
        }
    }
    cw_filter_flush(l->filter, false, &l->text);
    size_t whole = cw_utf8_complete(l->text.data, l->text.len);
    struct cw_buf rest = {0};
    cw_buf_add(&rest, l->text.data + whole, l->text.len - whole);
    cw_buf_clear(&l->text);
    if (rest.len > 0) {
        cw_filter_feed(l->filter, rest.data, rest.len, &l->text);
    }
    cw_buf_free(&rest);
}

static void begin(struct loop *l, const struct cw_generate *g, struct cw_figures *figures) {
    l->g = g;
    l->filter = cw_filter_create(g->stops, g->n_stops);
    l->start_s = g->started_s > 0 ? g->started_s : cw_now();
    l->figures = figures;
    l->stop = CW_STOP_ERROR;
    if (g->tokenizer != NULL && g->n_so_far > 0) {
        recall(l);
    }
}

/* Complete the reply; `rc` is what it ended with, and what is returned is what that makes of it. */
static int finish(struct loop *l, int rc, size_t n_ctx_used) {
    const struct cw_generate *g = l->g;
    struct cw_figures *f = l->figures;
    if (rc == CW_ECANCEL) {
        end(l, CW_STOP_CANCEL);
        rc = CW_OK;
    } else if (rc != CW_OK) {
        end(l, CW_STOP_ERROR);
    }
    /* What was held back belongs to the reply, unless a stop string came (then nothing is held). Of
     * a reply that was cut off, a character begun is not shown; the model did not get to say it. */
    bool cut = l->stop == CW_STOP_CANCEL || l->stop == CW_STOP_LENGTH || l->stop == CW_STOP_CONTEXT;
    cw_buf_clear(&l->text);
    cw_filter_flush(l->filter, cut, &l->text);
    if (l->text.len > 0) {
        int sent =
            g->token(g->arg, g->first_position + f->n_tokens, NULL, l->text.data, l->text.len, f);
        if (rc == CW_OK && sent != CW_OK && sent != CW_ECANCEL) {
            rc = sent;
            l->stop = CW_STOP_ERROR;
        }
    }
    double span = f->last_s - f->first_s - f->paused_s;
    f->tps = f->n_tokens > 1 && span > 0 ? (double)(f->n_tokens - 1) / span : 0;
    f->n_ctx_used = n_ctx_used;
    f->n_ctx = cw_session_n_ctx(g->session);
    cw_filter_destroy(l->filter);
    cw_buf_free(&l->piece);
    cw_buf_free(&l->text);
    if (g->ended != NULL) {
        g->ended(g->arg, l->stop, f);
    }
    return rc;
}

/* ---- a reply of its own -------------------------------------------------------------------- */

static void keep_row(void *arg, size_t position, const float *logits) {
    struct loop *l = arg;
    (void)position;
    if (l->n_rows < CW_SESSION_ROWS) {
        l->rows[l->n_rows++] = logits;
    }
}

static bool stop_guessing(void *arg) {
    const struct loop *l = arg;
    return cancelled(l->g);
}

/* Evaluate the drawn token, and with it what is guessed to follow. */
static int evaluate(struct loop *l, int32_t id, struct cw_err *err) {
    const struct cw_generate *g = l->g;
    int32_t ids[CW_LOOKUP_MAX + 1] = {id};
    struct cw_session_hooks hooks = {.stop = stop_guessing, .arg = l};
    l->n_rows = l->n_guesses = l->next_guess = 0;
    if (l->lookup != NULL) {
        size_t room = cw_session_n_ctx(g->session) - l->n - 1;
        if (g->max_tokens >= 0) {
            /* The last token is not evaluated. */
            uint64_t left = (uint64_t)g->max_tokens - l->figures->n_tokens;
            room = left - 1 < room ? (size_t)(left - 1) : room;
        }
        l->n_guesses = cw_lookup_guess(l->lookup, room, l->guess);
        for (size_t i = 0; i < l->n_guesses; i++) {
            ids[1 + i] = l->guess[i];
        }
        l->figures->n_guessed += l->n_guesses;
    }
    if (l->n_guesses > 0) {
        hooks.row = keep_row;
    }
    double began = cw_now();
    int rc = cw_session_extend(g->session, ids, 1 + l->n_guesses, &hooks, err);
    if (rc != CW_OK) {
        return rc;
    }
    if (l->lookup != NULL) {
        cw_lookup_cost(l->lookup, 1 + l->n_guesses, cw_now() - began);
    }
    l->n++;
    l->logits = l->n_guesses > 0 ? l->rows[0] : cw_session_logits(g->session);
    return CW_OK;
}

static int evaluate_anew(struct loop *l, int32_t id, struct cw_err *err) {
    const struct cw_generate *g = l->g;
    struct cw_session_hooks hooks = {.stop = stop_evaluating, .arg = (void *)g};
    cw_ids_add(&l->all, id);
    cw_session_rewind(g->session, 0);
    int rc = cw_session_extend(g->session, l->all.v, l->all.n, &hooks, err);
    l->n = cw_session_n(g->session);
    l->logits = cw_session_logits(g->session);
    return rc;
}

/* Make the drawn token part of the timeline. */
static int advance(struct loop *l, int32_t id, struct cw_err *err) {
    const struct cw_generate *g = l->g;
    if (g->naive) {
        return evaluate_anew(l, id, err);
    }
    if (l->lookup != NULL) {
        cw_lookup_add(l->lookup, &id, 1);
    }
    if (l->next_guess < l->n_guesses) {
        if (l->guess[l->next_guess] == id) {
            l->logits = l->rows[++l->next_guess];
            l->n++;
            l->figures->n_accepted++;
            return CW_OK;
        }
        cw_session_rewind(g->session, l->n);
    }
    return evaluate(l, id, err);
}

static int run(struct loop *l, struct cw_err *err) {
    const struct cw_generate *g = l->g;
    if (g->max_tokens == 0) {
        end(l, CW_STOP_LENGTH);
    }
    while (!l->over) {
        int32_t id;
        if (g->wait != NULL) {
            l->figures->paused_s += g->wait(g->arg);
        }
        if (cancelled(g)) {
            return CW_ECANCEL;
        }
        int rc = next_token(l, l->logits, cw_session_ids(g->session), l->n,
                            l->n < cw_session_n_ctx(g->session), &id, err);
        if (rc == CW_OK && !l->over) {
            rc = advance(l, id, err);
        }
        if (rc != CW_OK) {
            return rc;
        }
    }
    return CW_OK;
}

int cw_generate_run(const struct cw_generate *g, enum cw_stop *stop, struct cw_figures *figures,
                    struct cw_err *err) {
    struct loop l = {0};
    begin(&l, g, figures);
    l.n = cw_session_n(g->session);
    l.logits = cw_session_logits(g->session);
    if (g->naive) {
        cw_ids_append(&l.all, cw_session_ids(g->session), l.n);
    } else if (g->lookup) {
        l.lookup = cw_lookup_create(cw_session_n_ctx(g->session), g->lookup_all);
        cw_lookup_add(l.lookup, cw_session_ids(g->session), l.n);
    }
    int rc = run(&l, err);
    if (!g->naive) {
        cw_session_rewind(g->session, l.n); /* guesses that nothing came of */
    }
    rc = finish(&l, rc, cw_session_n(g->session));
    *stop = l.stop;
    cw_lookup_destroy(l.lookup);
    cw_ids_free(&l.all);
    return rc;
}

/* ---- several replies ----------------------------------------------------------------------- */

/* The next token of every reply that is not over; live[r] tells which are to be evaluated. */
static int next_tokens(struct loop *l, int n, int32_t *ids, bool *live, bool *any,
                       struct cw_err *err) {
    struct cw_session *s = l->g->session;
    *any = false;
    for (int r = 0; r < n; r++) {
        size_t k;
        const int32_t *history = cw_session_branch_ids(s, r, &k);
        live[r] = false;
        if (l[r].over) {
            continue;
        }
        int rc = next_token(&l[r], cw_session_branch_logits(s, r), history, k,
                            cw_session_branch_room(s, r) > 0, &ids[r], err);
        if (rc == CW_OK && l[r].over) {
            rc = finish(&l[r], CW_OK, k);
        }
        if (rc != CW_OK) {
            return rc;
        }
        live[r] = !l[r].over;
        *any = *any || live[r];
    }
    return CW_OK;
}

static int run_batch(struct loop *l, int n, struct cw_err *err) {
    const struct cw_generate *g = l->g;
    struct cw_session_hooks hooks = {.stop = stop_evaluating, .arg = (void *)g};
    int32_t ids[CW_MAX_BRANCHES] = {0};
    bool live[CW_MAX_BRANCHES], any = true;
    while (any) {
        double slept = g->wait != NULL ? g->wait(g->arg) : 0;
        for (int r = 0; r < n; r++) {
            l[r].figures->paused_s += l[r].over ? 0 : slept;
        }
        if (cancelled(g)) {
            return CW_ECANCEL;
        }
        int rc = next_tokens(l, n, ids, live, &any, err);
        if (rc == CW_OK && any) {
            rc = cw_session_step(g->session, ids, live, &hooks, err);
        }
        if (rc != CW_OK) {
            return rc;
        }
    }
    return CW_OK;
}

int cw_generate_batch(const struct cw_generate *g, int n, enum cw_stop *stop,
                      struct cw_figures *figures, struct cw_err *err) {
    struct cw_session *s = g->session;
    if (n < 1 || n > CW_MAX_BRANCHES) {
        return cw_fail(err, CW_EINVAL, "%d replies at once: 1 to %d are possible", n,
                       CW_MAX_BRANCHES);
    }
    int rc = cw_session_branch(s, n, err);
    if (rc != CW_OK) {
        return rc;
    }
    struct loop *l = cw_calloc((size_t)n, sizeof *l);
    for (int r = 0; r < n; r++) {
        begin(&l[r], &g[r], &figures[r]);
    }
    if (g->max_tokens != 0) {
        rc = run_batch(l, n, err);
    }
    int result = rc == CW_ECANCEL ? CW_OK : rc;
    for (int r = 0; r < n; r++) {
        size_t k;
        cw_session_branch_ids(s, r, &k);
        if (!l[r].over) {
            if (rc == CW_OK) {
                end(&l[r], CW_STOP_LENGTH);
            }
            int ended = finish(&l[r], rc, k);
            result = result == CW_OK ? ended : result;
        }
        stop[r] = l[r].stop;
    }
    cw_session_adopt(s, 0);
    free(l);
    return result;
}
