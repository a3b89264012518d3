/* SPDX-License-Identifier: MIT
 *
 * The generator's thread: it loads, waits for work, answers, and is the only producer of the ring.
 *
 * Loading runs in a further thread, which lives no longer than the load: a model may take seconds,
 * and a request that waits for it must end within 0.3 s of being cancelled. All that concerns both
 * sides is in `lock`ed fields and a few atomics; the thread sleeps on `wake_fd`, an eventfd, so
 * that a signal handler may wake it.
 *
 * `cancel` ends the request that runs; `quit` ends everything. Who sets one kicks the ring and the
 * eventfd after.
 */
#include "chinwag/generator.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "chinwag/clock.h"
#include "chinwag/utf8.h"
#include "core/chat/generate.h"
#include "core/chat/job.h"
#include "core/chat/loader.h"
#include "core/chat/prompt.h"
#include "core/chat/think.h"

enum { DEFAULT_SLOTS = 1024 };

struct cw_generator {
    struct cw_generator_options opt; /* strings owned */
    struct cw_ring *ring;
    struct cw_live *live;
    int wake_fd;
    pthread_t thread;

    atomic_bool busy, cancel, quit;
    atomic_bool ready;      /* `loaded` may be read by the owner */
    atomic_int load_step;   /* the loader's progress */
    atomic_bool load_ended; /* the loader has nothing more to do than to be joined */

    pthread_mutex_t lock; /* guards the two below */
    struct cw_job *job;   /* handed over, not yet taken */
    struct {
        bool asked;
        char *text;
        size_t len;
        uint64_t serial;
    } count;
    uint32_t n_requests; /* the owner's */

    /* The thread's own from here on. `loaded` and load_err are the loader's until load_ended. */
    struct cw_loaded loaded;
    int load_rc;
    struct cw_err load_err;
    bool told_folding, has_breakers;
    struct cw_job *last;    /* the conversation last answered, */
    struct cw_ids last_ids; /* and with what */
    struct cw_event ev;     /* the event being made; large, so not on the stack each time */
};

/* ---- events -------------------------------------------------------------------------------- */

static void set_text(struct cw_event *ev, const char *text, size_t n) {
    if (n > CW_EVENT_TEXT) {
        n = cw_utf8_complete(text, CW_EVENT_TEXT);
        n = n > 0 ? n : CW_EVENT_TEXT;
    }
    memcpy(ev->text, text, n);
    ev->n_text = (uint16_t)n;
}

static struct cw_event *new_event(struct cw_generator *g, enum cw_event_kind kind,
                                  uint32_t request) {
    memset(&g->ev, 0, offsetof(struct cw_event, text));
    g->ev.kind = kind;
    g->ev.request = request;
    return &g->ev;
}

static void tell(struct cw_generator *g, enum cw_event_kind kind, uint32_t request,
                 const char *text) {
    struct cw_event *ev = new_event(g, kind, request);
    set_text(ev, text, strlen(text));
    cw_ring_push(g->ring, ev, &g->quit);
}

static void wake(struct cw_generator *g) {
    const uint64_t one = 1;
    ssize_t n = write(g->wake_fd, &one, sizeof one);
    (void)n; /* cannot fail short of 2^64 calls */
}

static void sleep_until_woken(struct cw_generator *g) {
    uint64_t ignored;
    ssize_t n = read(g->wake_fd, &ignored, sizeof ignored);
    (void)n;
}

/* ---- one request --------------------------------------------------------------------------- */

struct reply {
    struct cw_generator *g;
    struct cw_job *job;
    struct cw_think think;
    struct cw_sampling set; /* in force */
    uint64_t version;       /* of the live settings last seen */
    size_t next_at;         /* first of job->req.at not yet reached */
    struct cw_figures figures;

    uint64_t position;          /* of the token being told */
    const struct cw_draw *draw; /* NULL once its first event is in the ring */
};

static bool is_cancelled(void *arg) {
    const struct reply *r = arg;
    return atomic_load_explicit(&r->g->cancel, memory_order_acquire);
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
        struct cw_event *ev = new_event(r->g, CW_EV_CHANGE, r->job->number);
        ev->u.change.position = position;
        ev->u.change.from = r->set;
        ev->u.change.to = now;
        ev->figures = r->figures;
        cw_ring_push(r->g->ring, ev, &r->g->quit);
        r->set = now;
    }
    if (now.dry_multiplier > 0 && !r->g->has_breakers) {
        cw_loaded_set_breakers(&r->g->loaded);
        r->g->has_breakers = true;
    }
    *out = now;
}

/* Text of the token at hand, in as many events as it needs. A token that was drawn is told whatever
 * happens, for text of tokens before it may come with it; a cancel takes hold before the next. */
static int emit(void *arg, bool thinking, const char *text, size_t n) {
    struct reply *r = arg;
    do {
        struct cw_event *ev = new_event(r->g, CW_EV_TOKEN, r->job->number);
        ev->u.token.position = r->position;
        ev->u.token.first_part = r->draw != NULL;
        ev->u.token.thinking = thinking;
        if (r->draw != NULL) {
            ev->u.token.draw = *r->draw;
        }
        ev->figures = r->figures;
        set_text(ev, text, n);
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
    if (draw == NULL) {
        /* Left over from the tokens before: one more part of the last. */
        return cw_think_feed(&r->think, -1, text, n, emit, r);
    }
    cw_ids_add(&r->g->last_ids, draw->id);
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

static size_t common_prefix(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b) {
    size_t n = n_a < n_b ? n_a : n_b, i = 0;
    while (i < n && a[i] == b[i]) {
        i++;
    }
    return i;
}

static int tell_progress(struct reply *r, size_t done, size_t total) {
    struct cw_event *ev = new_event(r->g, CW_EV_PROGRESS, r->job->number);
    ev->u.progress.done = done;
    ev->u.progress.total = total;
    ev->figures = r->figures;
    return cw_ring_push(r->g->ring, ev, &r->g->cancel);
}

static bool between_chunks(void *arg, size_t done, size_t total) {
    struct reply *r = arg;
    r->figures.n_ctx_used = cw_session_n(r->g->loaded.session);
    return is_cancelled(r) || tell_progress(r, done, total) != CW_OK;
}

static int evaluate(struct reply *r, const struct cw_ids *ids, struct cw_err *err) {
    struct cw_session *s = r->g->loaded.session;
    struct cw_session_hooks hooks = {.progress = between_chunks, .stop = is_cancelled, .arg = r};
    struct cw_sync_stats stats = {0};
    double began = cw_now();
    if (is_cancelled(r)) {
        return CW_ECANCEL;
    }
    if (r->g->opt.naive) {
        cw_session_rewind(s, 0);
    }
    int rc = cw_session_sync(s, ids->v, ids->n, &hooks, &stats, err);
    r->figures.prompt_s = cw_now() - began;
    r->figures.n_reused = stats.reused;
    r->figures.n_evaluated = stats.evaluated;
    r->figures.n_ctx_used = cw_session_n(s);
    return rc != CW_OK ? rc : tell_progress(r, stats.evaluated, stats.evaluated);
}

static int run_prompt(struct reply *r, struct cw_prepared *prompt, struct cw_err *err) {
    struct cw_generator *g = r->g;
    struct cw_session *s = g->loaded.session;
    int rc = cw_prompt_prepare(&g->loaded, r->job, prompt, err);
    if (rc != CW_OK) {
        return rc;
    }
    if (prompt->folded && !g->told_folding) {
        g->told_folding = true;
        tell(g, CW_EV_NOTICE, r->job->number,
             "the chat template takes no system message: its text goes before the first message");
    }
    const struct cw_ids *ids = &prompt->ids;
    if (ids->n == 0) {
        return cw_fail(err, CW_EINVAL, "the prompt is empty: there is nothing to evaluate");
    }
    r->figures.n_prompt = ids->n;
    r->figures.n_ctx = cw_session_n_ctx(s);
    if (ids->n > cw_session_n_ctx(s)) {
        return cw_fail(err, CW_EFULL, "the prompt has %zu tokens, the context holds %u", ids->n,
                       cw_session_n_ctx(s));
    }
    size_t common = common_prefix(cw_session_ids(s), cw_session_n(s), ids->v, ids->n);
    struct cw_event *ev = new_event(g, CW_EV_PROMPT, r->job->number);
    ev->u.prompt.n_prompt = ids->n;
    ev->u.prompt.n_reused = g->opt.naive ? 0 : common < ids->n ? common : ids->n - 1;
    ev->u.prompt.retokenised_from = SIZE_MAX;
    if (common < cw_session_n(s) && cw_job_follows(r->job, g->last, g->last_ids.v, g->last_ids.n)) {
        ev->u.prompt.retokenised_from = common;
    }
    ev->figures = r->figures;
    rc = cw_ring_push(g->ring, ev, &g->cancel);
    return rc != CW_OK ? rc : evaluate(r, ids, err);
}

static int run_reply(struct reply *r, const struct cw_prepared *prompt, enum cw_stop *stop,
                     struct cw_err *err) {
    struct cw_generator *g = r->g;
    const struct cw_request *req = &r->job->req;
    struct cw_generate loop = {
        .session = g->loaded.session,
        .sampler = g->loaded.sampler,
        .tokenizer = g->loaded.tokenizer,
        .naive = g->opt.naive,
        .max_tokens = req->max_tokens,
        .stops = req->stops,
        .n_stops = req->n_stops,
        .seed = req->seed,
        .detail = req->detail,
        .ignore_eog = req->ignore_eog,
        .n_usable = g->loaded.n_usable,
        .begins_text = prompt->begins_text,
        .started_s = r->job->started_s,
        .settings = settings,
        .token = token,
        .cancelled = is_cancelled,
        .arg = r,
    };
    cw_think_init(&r->think, g->loaded.tokenizer, prompt->tail, prompt->tail_len);
    int rc = cw_generate_run(&loop, stop, &r->figures, err);
    cw_think_flush(&r->think, emit, r);
    cw_think_free(&r->think);
    return rc;
}

static void finish(struct cw_generator *g, struct cw_job *job, enum cw_stop stop,
                   const struct cw_figures *figures, const struct cw_err *err) {
    struct cw_event *ev = new_event(g, CW_EV_DONE, job->number);
    ev->u.done.stop = stop;
    if (figures != NULL) {
        ev->figures = *figures;
    }
    if (stop == CW_STOP_ERROR) {
        ev->u.done.code = err->code;
        set_text(ev, err->text, strlen(err->text));
    } else if (stop == CW_STOP_CONTEXT) {
        char line[64];
        int n = snprintf(line, sizeof line, "the context of %u tokens is full",
                         cw_session_n_ctx(g->loaded.session));
        set_text(ev, line, (size_t)n);
    }
    /* Whoever reads this event may hand over the next request at once. */
    atomic_store_explicit(&g->busy, false, memory_order_release);
    cw_ring_push(g->ring, ev, &g->quit);
}

static void serve(struct cw_generator *g, struct cw_job *job) {
    struct reply r = {.g = g, .job = job};
    struct cw_prepared prompt = {0};
    struct cw_err err = {0};
    enum cw_stop stop = CW_STOP_ERROR;
    r.version = cw_live_load(g->live, &r.set);
    int rc = run_prompt(&r, &prompt, &err);
    g->last_ids.n = 0;
    if (rc == CW_OK) {
        rc = run_reply(&r, &prompt, &stop, &err);
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
    finish(g, job, stop, &r.figures, &err);
}

/* ---- the thread ---------------------------------------------------------------------------- */

static bool load_progress(void *arg, int step) {
    struct cw_generator *g = arg;
    atomic_store_explicit(&g->load_step, step, memory_order_release);
    wake(g);
    return atomic_load_explicit(&g->quit, memory_order_acquire);
}

static void *load_thread(void *arg) {
    struct cw_generator *g = arg;
    g->load_rc = cw_loaded_open(&g->loaded, &g->opt, load_progress, g, &g->load_err);
    atomic_store_explicit(&g->load_ended, true, memory_order_release);
    wake(g);
    return NULL;
}

static struct cw_job *take_job(struct cw_generator *g) {
    pthread_mutex_lock(&g->lock);
    struct cw_job *job = g->job;
    g->job = NULL;
    pthread_mutex_unlock(&g->lock);
    return job;
}

static void tell_loaded(struct cw_generator *g) {
    const struct cw_loaded *m = &g->loaded;
    const struct cw_model_info *info = cw_model_get_info(m->model);
    for (size_t at = 0; at < m->notices.len; at += strlen(m->notices.data + at) + 1) {
        tell(g, CW_EV_NOTICE, 0, m->notices.data + at);
    }
    char line[CW_EVENT_TEXT];
    snprintf(line, sizeof line, "%s (%s, %s), context %u tokens (%s), %d thread%s, %s", info->name,
             info->arch, info->quant, cw_session_n_ctx(m->session),
             cw_session_n_ctx_reason(m->session), info->n_threads, info->n_threads == 1 ? "" : "s",
             cw_isa_name(info->isa));
    atomic_store_explicit(&g->ready, true, memory_order_release);
    struct cw_event *ev = new_event(g, CW_EV_READY, 0);
    ev->figures.n_ctx = cw_session_n_ctx(m->session);
    set_text(ev, line, strlen(line));
    cw_ring_push(g->ring, ev, &g->quit);
}

/* Wait for the loader, telling how far it is. A request that waits too can be cancelled. */
static int load(struct cw_generator *g) {
    pthread_t loader;
    int rc = pthread_create(&loader, NULL, load_thread, g);
    if (rc != 0) {
        return cw_fail(&g->load_err, CW_EIO, "cannot start a thread: %s", strerror(rc));
    }
    int told = -1;
    while (!atomic_load_explicit(&g->load_ended, memory_order_acquire)) {
        int step = atomic_load_explicit(&g->load_step, memory_order_acquire);
        if (step > told) {
            told = step;
            struct cw_event *ev = new_event(g, CW_EV_LOADING, 0);
            ev->u.progress.done = (uint64_t)step;
            ev->u.progress.total = CW_LOAD_STEPS;
            cw_ring_push(g->ring, ev, &g->quit);
        }
        if (atomic_load_explicit(&g->cancel, memory_order_acquire)) {
            struct cw_job *job = take_job(g);
            if (job != NULL) {
                finish(g, job, CW_STOP_CANCEL, NULL, NULL);
                cw_job_destroy(job);
            }
        }
        if (!atomic_load_explicit(&g->load_ended, memory_order_acquire)) {
            sleep_until_woken(g);
        }
    }
    pthread_join(loader, NULL);
    return g->load_rc;
}

static void answer_count(struct cw_generator *g) {
    pthread_mutex_lock(&g->lock);
    bool asked = g->count.asked;
    char *text = g->count.text;
    size_t len = g->count.len;
    uint64_t serial = g->count.serial;
    g->count.asked = false;
    g->count.text = NULL;
    pthread_mutex_unlock(&g->lock);
    if (asked && g->load_rc == CW_OK) {
        struct cw_ids ids = {0};
        if (cw_tokenizer_encode(g->loaded.tokenizer, text, len, 0, &ids, NULL) == CW_OK) {
            struct cw_event *ev = new_event(g, CW_EV_COUNT, 0);
            ev->u.count.serial = serial;
            ev->u.count.n = ids.n;
            cw_ring_push(g->ring, ev, &g->quit);
        }
        cw_ids_free(&ids);
    }
    free(text);
}

static void *generator_thread(void *arg) {
    struct cw_generator *g = arg;
    g->load_rc = load(g);
    if (g->load_rc == CW_OK) {
        tell_loaded(g);
    } else if (!atomic_load_explicit(&g->quit, memory_order_acquire)) {
        tell(g, CW_EV_FAILED, 0, g->load_err.text);
    }
    while (!atomic_load_explicit(&g->quit, memory_order_acquire)) {
        struct cw_job *job = take_job(g);
        if (job != NULL && g->load_rc == CW_OK) {
            serve(g, job);
        } else if (job != NULL) {
            finish(g, job, CW_STOP_ERROR, NULL, &g->load_err);
            cw_job_destroy(job);
        } else {
            answer_count(g);
            sleep_until_woken(g);
        }
    }
    return NULL;
}

/* ---- the owner's side ---------------------------------------------------------------------- */

static char *copy_string(const char *s) {
    return s != NULL ? cw_strdup(s) : NULL;
}

static void free_generator(struct cw_generator *g) {
    if (g->wake_fd >= 0) {
        close(g->wake_fd);
    }
    cw_ring_destroy(g->ring);
    cw_live_destroy(g->live);
    pthread_mutex_destroy(&g->lock);
    cw_job_destroy(g->job);
    free(g->count.text);
    cw_loaded_close(&g->loaded);
    cw_job_destroy(g->last);
    cw_ids_free(&g->last_ids);
    free((void *)g->opt.model_path);
    free((void *)g->opt.chat_template);
    free((void *)g->opt.pre);
    free(g);
}

/* Start the thread with every signal blocked that is not the fault of an instruction: the others
 * are for the thread that owns the terminal. */
static int start_thread(struct cw_generator *g) {
    sigset_t block, before;
    sigfillset(&block);
    const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        sigdelset(&block, faults[i]);
    }
    pthread_sigmask(SIG_BLOCK, &block, &before);
    int rc = pthread_create(&g->thread, NULL, generator_thread, g);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

int cw_generator_create(struct cw_generator **out, const struct cw_generator_options *opt,
                        const struct cw_sampling *sampling, struct cw_err *err) {
    *out = NULL;
    if (opt->model_path == NULL) {
        return cw_fail(err, CW_EINVAL, "no model was named");
    }
    int rc = cw_sampling_check(sampling, err);
    if (rc != CW_OK) {
        return rc;
    }
    struct cw_generator *g = cw_calloc(1, sizeof *g);
    g->opt = *opt;
    g->opt.model_path = copy_string(opt->model_path);
    g->opt.chat_template = copy_string(opt->chat_template);
    g->opt.pre = copy_string(opt->pre);
    pthread_mutex_init(&g->lock, NULL);
    g->live = cw_live_create(sampling);
    g->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (g->wake_fd < 0) {
        rc = cw_fail(err, CW_EIO, "eventfd: %s", strerror(errno));
        free_generator(g);
        return rc;
    }
    rc = cw_ring_create(&g->ring, opt->ring_slots > 0 ? opt->ring_slots : DEFAULT_SLOTS, err);
    if (rc == CW_OK) {
        int error = start_thread(g);
        if (error != 0) {
            rc = cw_fail(err, CW_EIO, "cannot start a thread: %s", strerror(error));
        }
    }
    if (rc != CW_OK) {
        free_generator(g);
        return rc;
    }
    *out = g;
    return CW_OK;
}

void cw_generator_destroy(struct cw_generator *g) {
    if (g == NULL) {
        return;
    }
    atomic_store_explicit(&g->quit, true, memory_order_release);
    atomic_store_explicit(&g->cancel, true, memory_order_release);
    cw_ring_kick(g->ring);
    wake(g);
    pthread_join(g->thread, NULL);
    free_generator(g);
}

struct cw_ring *cw_generator_ring(struct cw_generator *g) {
    return g->ring;
}

static bool is_ready(const struct cw_generator *g) {
    return atomic_load_explicit(&g->ready, memory_order_acquire);
}

const struct cw_model_info *cw_generator_info(const struct cw_generator *g) {
    return is_ready(g) ? cw_model_get_info(g->loaded.model) : NULL;
}

const struct cw_tokenizer *cw_generator_tokenizer(const struct cw_generator *g) {
    return is_ready(g) ? g->loaded.tokenizer : NULL;
}

bool cw_generator_has_template(const struct cw_generator *g) {
    return is_ready(g) && g->loaded.has_template;
}

unsigned cw_generator_file_sampling(const struct cw_generator *g, struct cw_sampling *out) {
    return is_ready(g) ? cw_loaded_sampling(&g->loaded, out) : 0;
}

int cw_generator_start(struct cw_generator *g, const struct cw_request *req, uint32_t *number,
                       struct cw_err *err) {
    if (atomic_load_explicit(&g->busy, memory_order_acquire)) {
        return cw_fail(err, CW_EBUSY, "a reply is being written already");
    }
    struct cw_job *job;
    int rc = cw_job_create(&job, req, err);
    if (rc != CW_OK) {
        return rc;
    }
    job->number = ++g->n_requests;
    if (number != NULL) {
        *number = job->number;
    }
    atomic_store_explicit(&g->cancel, false, memory_order_release);
    atomic_store_explicit(&g->busy, true, memory_order_release);
    pthread_mutex_lock(&g->lock);
    g->job = job;
    pthread_mutex_unlock(&g->lock);
    wake(g);
    return CW_OK;
}

void cw_generator_cancel(struct cw_generator *g) {
    if (atomic_load_explicit(&g->busy, memory_order_acquire)) {
        atomic_store_explicit(&g->cancel, true, memory_order_release);
        cw_ring_kick(g->ring);
        wake(g);
    }
}

void cw_generator_publish(struct cw_generator *g, const struct cw_sampling *s) {
    cw_live_publish(g->live, s);
}

bool cw_generator_busy(const struct cw_generator *g) {
    return atomic_load_explicit(&g->busy, memory_order_acquire);
}

void cw_generator_count(struct cw_generator *g, const char *text, size_t len, uint64_t serial) {
    char *copy = cw_strndup(text, len);
    pthread_mutex_lock(&g->lock);
    free(g->count.text);
    g->count.text = copy;
    g->count.len = len;
    g->count.serial = serial;
    g->count.asked = true;
    pthread_mutex_unlock(&g->lock);
    wake(g);
}
