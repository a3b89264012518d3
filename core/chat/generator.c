/* SPDX-License-Identifier: MIT
 *
 * The generator's thread: it loads, waits for work, and is the only producer of the ring.
 *
 * Loading runs in a further thread, which lives no longer than the load: a model may take seconds,
 * and a request that waits for it must end within 0.3 s of being cancelled.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "chinwag/thread.h"
#include "chinwag/utf8.h"
#include "core/chat/generator_impl.h"

enum { DEFAULT_SLOTS = 1024 };

/* ---- events -------------------------------------------------------------------------------- */

void cw_event_set_text(struct cw_event *ev, const char *text, size_t n) {
    if (n > CW_EVENT_TEXT) {
        n = cw_utf8_complete(text, CW_EVENT_TEXT);
        n = n > 0 ? n : CW_EVENT_TEXT;
    }
    memcpy(ev->text, text, n);
    ev->n_text = (uint16_t)n;
}

struct cw_event *cw_event_new(struct cw_generator *g, enum cw_event_kind kind, uint32_t request) {
    memset(&g->ev, 0, offsetof(struct cw_event, text));
    g->ev.kind = kind;
    g->ev.request = request;
    return &g->ev;
}

void cw_event_tell(struct cw_generator *g, enum cw_event_kind kind, uint32_t request,
                   const char *text) {
    struct cw_event *ev = cw_event_new(g, kind, request);
    cw_event_set_text(ev, text, strlen(text));
    cw_ring_push(g->ring, ev, &g->quit);
}

/* Whatever the thread sleeps for, it looks again. */
static void wake(struct cw_generator *g) {
    atomic_store_explicit(&g->interrupt, true, memory_order_release);
    const uint64_t one = 1;
    ssize_t n = write(g->wake_fd, &one, sizeof one);
    (void)n; /* cannot fail short of 2^64 calls */
}

bool cw_generator_sleep(struct cw_generator *g, int timeout_ms) {
    struct pollfd p = {.fd = g->wake_fd, .events = POLLIN};
    uint64_t ignored;
    if (timeout_ms >= 0 && poll(&p, 1, timeout_ms) == 0) {
        return false;
    }
    ssize_t n = read(g->wake_fd, &ignored, sizeof ignored);
    (void)n;
    return true;
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
        cw_event_tell(g, CW_EV_NOTICE, 0, m->notices.data + at);
    }
    char line[CW_EVENT_TEXT];
    snprintf(line, sizeof line, "%s (%s, %s), context %u tokens (%s), %d thread%s, %s", info->name,
             info->arch, info->quant, cw_session_n_ctx(m->session),
             cw_session_n_ctx_reason(m->session), info->n_threads, info->n_threads == 1 ? "" : "s",
             cw_isa_name(info->isa));
    atomic_store_explicit(&g->ready, true, memory_order_release);
    struct cw_event *ev = cw_event_new(g, CW_EV_READY, 0);
    ev->figures.n_ctx = cw_session_n_ctx(m->session);
    cw_event_set_text(ev, line, strlen(line));
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
            struct cw_event *ev = cw_event_new(g, CW_EV_LOADING, 0);
            ev->u.progress.done = (uint64_t)step;
            ev->u.progress.total = CW_LOAD_STEPS;
            cw_ring_push(g->ring, ev, &g->quit);
        }
        if (atomic_load_explicit(&g->cancel, memory_order_acquire)) {
            struct cw_job *job = take_job(g);
            if (job != NULL) {
                cw_generator_finish(g, job, CW_STOP_CANCEL, NULL, NULL);
                cw_job_destroy(job);
            }
        }
        if (!atomic_load_explicit(&g->load_ended, memory_order_acquire)) {
            cw_generator_sleep(g, -1);
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
            struct cw_event *ev = cw_event_new(g, CW_EV_COUNT, 0);
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
        struct cw_event *ev = cw_event_new(g, CW_EV_FAILED, 0);
        ev->u.done.code = g->load_err.code;
        cw_event_set_text(ev, g->load_err.text, strlen(g->load_err.text));
        cw_ring_push(g->ring, ev, &g->quit);
    }
    while (!atomic_load_explicit(&g->quit, memory_order_acquire)) {
        /* Before looking: what comes from here on interrupts a draft. */
        atomic_store_explicit(&g->interrupt, false, memory_order_release);
        struct cw_job *job = take_job(g);
        if (job != NULL && g->load_rc == CW_OK) {
            cw_generator_serve(g, job);
        } else if (job != NULL) {
            cw_generator_finish(g, job, CW_STOP_ERROR, NULL, &g->load_err);
            cw_job_destroy(job);
        } else {
            answer_count(g);
            if (g->load_rc != CW_OK) {
                cw_generator_sleep(g, -1);
                continue;
            }
            cw_session_warm(g->loaded.session);
            if (cw_generator_type(g) && !cw_generator_sleep(g, cw_keep_timeout_ms(g))) {
                cw_keep_save(g);
            }
        }
    }
    if (g->load_rc == CW_OK) {
        cw_keep_save(g);
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
    cw_job_destroy(g->draft);
    cw_job_destroy(g->typing);
    free(g->count.text);
    cw_loaded_close(&g->loaded);
    cw_job_destroy(g->last);
    cw_ids_free(&g->last_ids);
    free((void *)g->opt.model_path);
    free((void *)g->opt.chat_template);
    free((void *)g->opt.pre);
    free((void *)g->opt.snapshot_dir);
    free(g->keep.key);
    free(g->keep.refused);
    free(g);
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
    g->opt.snapshot_dir = copy_string(opt->snapshot_dir);
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
        int error = cw_thread_start(&g->thread, generator_thread, g);
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

const char *cw_generator_model_hash(const struct cw_generator *g) {
    return is_ready(g) ? g->loaded.hash : NULL;
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
    struct cw_job *draft = g->draft; /* this is what became of it */
    g->job = job;
    g->draft = NULL;
    g->drop_draft = true;
    pthread_mutex_unlock(&g->lock);
    cw_job_destroy(draft);
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

void cw_generator_pause(struct cw_generator *g, bool paused) {
    if (!paused) {
        atomic_store_explicit(&g->steps, 0, memory_order_release);
    }
    atomic_store_explicit(&g->paused, paused, memory_order_release);
    wake(g);
}

void cw_generator_step(struct cw_generator *g) {
    if (cw_generator_paused(g)) {
        atomic_fetch_add_explicit(&g->steps, 1, memory_order_acq_rel);
        wake(g);
    }
}

bool cw_generator_paused(const struct cw_generator *g) {
    return atomic_load_explicit(&g->paused, memory_order_acquire);
}

void cw_generator_answer_now(struct cw_generator *g) {
    atomic_fetch_add_explicit(&g->n_answers, 1, memory_order_acq_rel);
}

void cw_generator_prepare(struct cw_generator *g, const struct cw_request *draft) {
    struct cw_job *job = NULL;
    /* One that comes while a reply is written is of a conversation that will have changed. */
    bool idle = !atomic_load_explicit(&g->busy, memory_order_acquire);
    if (draft != NULL && idle && cw_job_create(&job, draft, NULL) != CW_OK) {
        job = NULL;
    }
    pthread_mutex_lock(&g->lock);
    struct cw_job *before = g->draft;
    g->draft = job;
    g->drop_draft = job == NULL;
    pthread_mutex_unlock(&g->lock);
    cw_job_destroy(before);
    wake(g);
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
