/* SPDX-License-Identifier: MIT
 *
 * The client and other helpers of the suites of core/chat. */
#include "tests/chat/support.h"

#include <check.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tiny_model(const char *name) {
    static char path[1024];
    const char *root = getenv("CHINWAG_SOURCE_ROOT");
    snprintf(path, sizeof path, "%s/tests/data/models/%s", root != NULL ? root : ".", name);
    return path;
}

struct cw_generator_options client_options(const char *model_path) {
    return (struct cw_generator_options){
        .model_path = model_path,
        .model = {.n_threads = 1, .isa = CW_ISA_AUTO},
        .session = {.n_ctx = 1024},
    };
}

void client_open(struct client *c, const struct cw_generator_options *opt) {
    struct cw_sampling sampling;
    struct cw_err err;
    memset(c, 0, sizeof *c);
    cw_sampling_default(&sampling);
    sampling.temp = 0;
    int rc = cw_generator_create(&c->g, opt, &sampling, &err);
    ck_assert_msg(rc == CW_OK, "%s", err.text);
    c->ring = cw_generator_ring(c->g);
    client_until(c, CW_EV_READY);
}

void client_close(struct client *c) {
    cw_generator_destroy(c->g);
    cw_buf_free(&c->text);
    cw_buf_free(&c->thought);
    cw_buf_free(&c->notices);
    cw_ids_free(&c->ids);
}

static void record(struct client *c, const struct cw_event *ev) {
    switch (ev->kind) {
    case CW_EV_PROMPT:
        c->prompt = *ev;
        break;
    case CW_EV_PROGRESS:
        c->n_progress++;
        break;
    case CW_EV_CHANGE:
        c->change = *ev;
        c->n_changes++;
        break;
    case CW_EV_TOKEN:
        cw_buf_add(ev->u.token.thinking ? &c->thought : &c->text, ev->text, ev->n_text);
        c->n_parts++;
        if (ev->u.token.first_part) {
            ck_assert_uint_eq(ev->u.token.position, c->first_position + c->ids.n);
            cw_ids_add(&c->ids, ev->u.token.draw.id);
        }
        break;
    case CW_EV_NOTICE:
        cw_buf_add(&c->notices, ev->text, ev->n_text);
        cw_buf_putc(&c->notices, '\n');
        break;
    case CW_EV_DONE:
        c->done = *ev;
        break;
    default:
        break;
    }
}

struct cw_event client_next(struct client *c) {
    struct cw_event ev;
    memset(&ev, 0, sizeof ev);
    while (!cw_ring_pop(c->ring, &ev)) {
        struct pollfd p = {.fd = cw_ring_fd(c->ring), .events = POLLIN};
        ck_assert_msg(poll(&p, 1, 60000) == 1, "no event for a minute");
        cw_ring_ack(c->ring);
    }
    record(c, &ev);
    return ev;
}

struct cw_event client_until(struct client *c, enum cw_event_kind kind) {
    struct cw_event ev;
    do {
        ev = client_next(c);
        ck_assert_msg(ev.kind != CW_EV_FAILED || kind == CW_EV_FAILED, "loading failed: %.*s",
                      (int)ev.n_text, ev.text);
    } while (ev.kind != kind);
    return ev;
}

uint32_t client_start(struct client *c, const struct cw_request *req) {
    uint32_t number;
    struct cw_err err;
    int rc = cw_generator_start(c->g, req, &number, &err);
    ck_assert_msg(rc == CW_OK, "%s", err.text);
    cw_buf_clear(&c->text);
    cw_buf_clear(&c->thought);
    c->ids.n = 0;
    c->first_position = req->first_position;
    c->n_changes = c->n_progress = c->n_parts = 0;
    memset(&c->prompt, 0, sizeof c->prompt);
    return number;
}

struct cw_event client_run(struct client *c, const struct cw_request *req) {
    uint32_t number = client_start(c, req);
    struct cw_event ev = client_until(c, CW_EV_DONE);
    ck_assert_uint_eq(ev.request, number);
    cw_buf_add(&c->text, "", 1); /* terminated, but not as a part of the text */
    c->text.len--;
    cw_buf_add(&c->thought, "", 1);
    c->thought.len--;
    return ev;
}

struct cw_message message(const char *role, const char *content) {
    return (struct cw_message){.role = role, .content = content, .len = strlen(content)};
}

struct cw_message user(const char *content) {
    return message("user", content);
}

struct cw_message client_reply(struct client *c) {
    return (struct cw_message){.role = "assistant",
                               .content = c->text.data,
                               .len = c->text.len,
                               .ids = c->ids.v,
                               .n_ids = c->ids.n};
}

struct cw_request chat(const struct cw_message *messages, size_t n, int64_t max_tokens) {
    return (struct cw_request){
        .messages = messages, .n_messages = n, .max_tokens = max_tokens, .think = -1};
}
