/* SPDX-License-Identifier: MIT
 *
 * What the suites of core/chat share: where models are, and a client of a generator that waits for
 * events as an interface does. */
#ifndef TESTS_CHAT_SUPPORT_H
#define TESTS_CHAT_SUPPORT_H

#include "chinwag/generator.h"

/* A tiny model of tests/data/models. Static storage. */
const char *tiny_model(const char *name);

/* ---- a client ------------------------------------------------------------------------------ */

struct client {
    struct cw_generator *g;
    struct cw_ring *ring;
    /* What the events of the request under way, or the last one, have told. */
    struct cw_buf text, thought; /* answer and thinking */
    struct cw_ids ids;
    struct cw_buf notices;  /* all so far, a line each */
    struct cw_event prompt; /* the last CW_EV_PROMPT */
    struct cw_event change; /* the last CW_EV_CHANGE */
    uint64_t first_position;
    size_t n_changes, n_progress, n_parts;
    struct cw_event done; /* the last CW_EV_DONE */
};

struct cw_generator_options client_options(const char *model_path);

/* Start a generator and wait until it is ready; a failure to load fails the test. */
void client_open(struct client *c, const struct cw_generator_options *opt);
void client_close(struct client *c);

/* The next event, waiting for it; a minute without one fails the test. Recorded as above. */
struct cw_event client_next(struct client *c);
/* Events up to and including the first of this kind. */
struct cw_event client_until(struct client *c, enum cw_event_kind kind);

/* Start a request, which must be accepted. */
uint32_t client_start(struct client *c, const struct cw_request *req);
/* Start it and wait for its end. */
struct cw_event client_run(struct client *c, const struct cw_request *req);

struct cw_message user(const char *content);
struct cw_message message(const char *role, const char *content);
/* The reply just received, as the next request's message. Its memory belongs to the client until
 * the next request is started. */
struct cw_message client_reply(struct client *c);

/* A request for a conversation: greedy replies of at most max_tokens. */
struct cw_request chat(const struct cw_message *messages, size_t n, int64_t max_tokens);

#endif
