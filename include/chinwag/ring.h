/* SPDX-License-Identifier: MIT
 *
 * The ring buffer between generator and interface: single producer, single consumer, fixed slots,
 * C11 atomics. Text crossing it is copied into the slots, never shared.
 *
 * A full ring makes the producer wait (still cancellable); nothing is dropped. The consumer never
 * waits: it polls an eventfd that is written at most once between two drains.
 */
#ifndef CHINWAG_RING_H
#define CHINWAG_RING_H

#include <stdatomic.h>

#include "chinwag/err.h"
#include "chinwag/figures.h"
#include "chinwag/mem.h"
#include "chinwag/sampler.h"

enum cw_event_kind {
    CW_EV_LOADING,  /* u.progress: bytes or steps of the model's load */
    CW_EV_READY,    /* the model can be talked to; text: a line about it */
    CW_EV_FAILED,   /* loading failed; text, u.done.code; no request will ever be served */
    CW_EV_NOTICE,   /* text: something the person should know */
    CW_EV_PROMPT,   /* u.prompt: the prompt is known; evaluation starts */
    CW_EV_PROGRESS, /* u.progress: prompt tokens evaluated */
    CW_EV_TOKEN,    /* u.token and the text it released (may be empty, may span several events) */
    CW_EV_CHANGE,   /* u.change: new sampling settings took hold for the token at this position */
    CW_EV_DONE,     /* u.done; figures are final. Always the last event of a request */
    CW_EV_COUNT,    /* u.count: answer to cw_generator_count */
    /* u.done of one of several replies of a request; those of a request for one have none */
    CW_EV_REPLY_DONE,
};

enum cw_stop {
    CW_STOP_EOG,     /* an end token: "eos" */
    CW_STOP_STRING,  /* a stop string: "stop" */
    CW_STOP_LENGTH,  /* the reply's limit: "length" */
    CW_STOP_CONTEXT, /* the context is full: "context" */
    CW_STOP_CANCEL,  /* on request: "cancel" */
    CW_STOP_ERROR,   /* err: "error" */
};
const char *cw_stop_name(enum cw_stop stop);

enum { CW_EVENT_TEXT = 512 }; /* as much as an error line */

struct cw_event {
    enum cw_event_kind kind;
    uint32_t request; /* number of the request it belongs to, 0 for loading */
    uint32_t reply;   /* which of the request's replies, from 0 (tokens, REPLY_DONE) */
    union {
        struct {
            uint64_t done, total;
        } progress;
        struct {
            size_t n_prompt, n_reused; /* ids */
            /* index of the first id that the cache did not have although the conversation went on
             * unchanged up to there (history the template writes otherwise); SIZE_MAX: none */
            size_t retokenised_from;
            bool snapshot_refused; /* there is one, and it cannot be used; a notice said why */
        } prompt;
        struct {
            uint64_t position; /* in the reply, from 0 */
            bool first_part;   /* text longer than a slot comes in several events, same position */
            bool thinking;     /* part of a thinking section */
            bool forced;       /* put there, not drawn: the end marker of a thinking section */
            struct cw_draw draw;
        } token;
        struct {
            uint64_t position;
            struct cw_sampling from, to;
        } change;
        struct {
            enum cw_stop stop;
            int code; /* cw_code for CW_STOP_ERROR and CW_EV_FAILED, its line in text */
        } done;
        struct {
            uint64_t serial; /* of the question */
            size_t n;
        } count;
    } u;
    struct cw_figures figures; /* as of this event */
    uint16_t n_text;
    char text[CW_EVENT_TEXT]; /* for people: valid UTF-8; for CW_EV_TOKEN: the reply's bytes, whole
                               * characters as far as the model wrote any */
};

struct cw_ring;

int cw_ring_create(struct cw_ring **out, size_t n_slots, struct cw_err *err);
void cw_ring_destroy(struct cw_ring *r);

/* Producer: copy *ev into the next slot, waiting while the ring is full. Returns CW_ECANCEL, with
 * nothing written, as soon as *cancel (may be NULL) is set while waiting; whoever sets it must
 * call cw_ring_kick after. */
int cw_ring_push(struct cw_ring *r, const struct cw_event *ev, const atomic_bool *cancel);
/* Any thread: wake a waiting producer so that it looks at its cancel flag. */
void cw_ring_kick(struct cw_ring *r);

/* Consumer: true and the oldest event, or false when empty. */
bool cw_ring_pop(struct cw_ring *r, struct cw_event *out);
/* Readable when events may be there. Call cw_ring_ack before draining, then pop until false. */
int cw_ring_fd(const struct cw_ring *r);
void cw_ring_ack(struct cw_ring *r);

#endif
