/* SPDX-License-Identifier: MIT
 *
 * The generator's state and what its files share: generator.c (threads and the owner's side),
 * reply.c (a request is answered), draft.c (what is being typed is evaluated ahead). Private to
 * core/chat.
 *
 * All that concerns both sides is in `lock`ed fields and a few atomics; the thread sleeps on
 * `wake_fd`, an eventfd, so that a signal handler may wake it. Whoever sets `cancel` or `quit`
 * kicks the ring and the eventfd after.
 */
#ifndef CW_GENERATOR_IMPL_H
#define CW_GENERATOR_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "chinwag/generator.h"
#include "core/chat/job.h"
#include "core/chat/loader.h"

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
    atomic_bool paused;
    atomic_uint steps;     /* tokens to let through while paused */
    atomic_uint n_answers; /* how often cw_generator_answer_now was called */
    atomic_bool interrupt; /* there is something better to do than a draft */

    pthread_mutex_t lock; /* guards the four below */
    struct cw_job *job;   /* handed over, not yet taken */
    struct cw_job *draft; /* the same */
    bool drop_draft;      /* nothing is being typed any more */
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
    bool told_folding, told_partly, has_breakers;
    unsigned told_think;    /* bits, by what was asked for */
    struct cw_job *last;    /* the conversation last answered, */
    struct cw_ids last_ids; /* and with what */
    struct cw_job *typing;  /* the draft being evaluated */
    /* Positions [from, to) of the timeline that drafts have evaluated since the last request. */
    size_t prepared_from, prepared_to;
    struct {
        bool due;       /* the timeline is one that should be on disk and is not */
        bool told;      /* that it cannot be kept */
        char *key;      /* of its conversation */
        size_t n_saved; /* ids that were in the timeline when it was last written */
        char *refused;  /* key of a snapshot that cannot be used: not tried again */
        bool refusal;   /* of it no prompt has told yet */
    } keep;
    struct cw_event ev; /* the event being made; large, so not on the stack each time */
};

/* ---- generator.c --------------------------------------------------------------------------- */

/* A new event in g->ev. */
struct cw_event *cw_event_new(struct cw_generator *g, enum cw_event_kind kind, uint32_t request);
/* As much of text[0..n) as an event holds, cut between characters. */
void cw_event_set_text(struct cw_event *ev, const char *text, size_t n);
/* An event that is a line of text. */
void cw_event_tell(struct cw_generator *g, enum cw_event_kind kind, uint32_t request,
                   const char *text);

/* Sleep until the owner wants something; returns at once if it already did since the last call.
 * False: nothing was wanted within timeout_ms (-1: for ever). */
bool cw_generator_sleep(struct cw_generator *g, int timeout_ms);

/* ---- reply.c ------------------------------------------------------------------------------- */

/* Answer the request, to its last event; takes the job. */
void cw_generator_serve(struct cw_generator *g, struct cw_job *job);

/* The last event of a request. `figures` and `err` may be NULL where nothing is to be told. */
void cw_generator_finish(struct cw_generator *g, const struct cw_job *job, enum cw_stop stop,
                         const struct cw_figures *figures, const struct cw_err *err);

/* ---- draft.c ------------------------------------------------------------------------------- */

/* Evaluate of the newest draft what will stay of it. False: interrupted. */
bool cw_generator_type(struct cw_generator *g);
/* Take what drafts have added off the timeline. */
void cw_draft_drop(struct cw_generator *g);

/* ---- keep.c -------------------------------------------------------------------------------- */

/* How long to sleep before cw_keep_save is to be called, as cw_generator_sleep takes it. */
int cw_keep_timeout_ms(const struct cw_generator *g);
/* A request has ended. */
void cw_keep_after(struct cw_generator *g, const struct cw_request *req);
void cw_keep_save(struct cw_generator *g);
/* Another conversation is about to take the timeline's place. */
void cw_keep_leave(struct cw_generator *g);
/* Before ids are evaluated: bring back what is on disk of them, if the cache has much less. Returns
 * how many ids came from there. */
size_t cw_keep_load(struct cw_generator *g, const struct cw_request *req, const struct cw_ids *ids);

#endif
