/* SPDX-License-Identifier: MIT
 *
 * Several replies to one request: each is the reply that its seed gives alone, told in events of
 * its own, whatever becomes of the others. */
#include <check.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tests/chat/support.h"
#include "tests/support/markov.h"
#include "tests/support/mkgguf.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

struct one {
    struct cw_ids ids;
    struct cw_buf text;
    struct cw_draw draws[64];
    struct cw_event ended; /* CW_EV_REPLY_DONE or CW_EV_DONE */
    size_t n_ended, n_changes;
};

struct all {
    struct one r[CW_MAX_REPLIES];
    struct cw_event done;
};

static void all_free(struct all *a) {
    for (int i = 0; i < CW_MAX_REPLIES; i++) {
        cw_ids_free(&a->r[i].ids);
        cw_buf_free(&a->r[i].text);
    }
}

/* The next event as it comes; the client's own record is of one reply. */
static struct cw_event next(struct client *c) {
    struct cw_event ev;
    while (!cw_ring_pop(c->ring, &ev)) {
        struct pollfd p = {.fd = cw_ring_fd(c->ring), .events = POLLIN};
        ck_assert_msg(poll(&p, 1, 60000) == 1, "no event for a minute");
        cw_ring_ack(c->ring);
    }
    return ev;
}

/* Start a request and gather what is told of each reply until the end, or until reply 0 has n_until
 * tokens (0: never). False: it goes on. */
static bool gather(struct client *c, const struct cw_request *req, struct all *a, size_t n_until) {
    struct cw_err err;
    uint32_t number;
    memset(a, 0, sizeof *a);
    ck_assert_int_eq(cw_generator_start(c->g, req, &number, &err), CW_OK);
    for (;;) {
        struct cw_event ev = next(c);
        ck_assert_uint_eq(ev.request, number);
        ck_assert_uint_lt(ev.reply, req->n_replies > 0 ? req->n_replies : 1);
        struct one *r = &a->r[ev.reply];
        switch (ev.kind) {
        case CW_EV_TOKEN:
            ck_assert_uint_eq(r->n_ended, 0);
            if (ev.u.token.first_part) {
                ck_assert_uint_eq(ev.u.token.position, req->first_position + r->ids.n);
                if (r->ids.n < N(r->draws)) {
                    r->draws[r->ids.n] = ev.u.token.draw;
                }
                cw_ids_add(&r->ids, ev.u.token.draw.id);
                ck_assert_uint_eq(ev.figures.n_tokens, r->ids.n);
            }
            cw_buf_add(&r->text, ev.text, ev.n_text);
            break;
        case CW_EV_CHANGE:
            r->n_changes++;
            break;
        case CW_EV_REPLY_DONE:
            ck_assert_uint_gt(req->n_replies, 1);
            r->ended = ev;
            r->n_ended++;
            break;
        case CW_EV_DONE:
            a->done = ev;
            if (req->n_replies <= 1) {
                r->ended = ev;
                r->n_ended = 1;
            }
            return true;
        default:
            break;
        }
        if (n_until > 0 && a->r[0].ids.n >= n_until) {
            return false;
        }
    }
}

static void publish(struct client *c) {
    struct cw_sampling s;
    cw_sampling_default(&s);
    s.temp = 1.1f;
    s.penalty_repeat = 1.2f; /* each has its own history */
    s.penalty_last_n = -1;
    cw_generator_publish(c->g, &s);
}

static void open_tiny(struct client *c, const char *name) {
    struct cw_generator_options opt = client_options(tiny_model(name));
    opt.model.exact = true;
    client_open(c, &opt);
    publish(c);
}

/* ---- equal to being asked for alone -------------------------------------------------------- */

static const char *const models[] = {"tiny-llama-Q4_0.gguf", "tiny-gemma3-F32.gguf",
                                     "tiny-gpt-oss-MXFP4.gguf", "tiny-mixed-Q4_K_M.gguf"};

START_TEST(each_as_if_alone) {
    struct client c, alone;
    struct cw_message m = user("say one thing or another");
    struct cw_sampling hot;
    cw_sampling_default(&hot);
    hot.temp = 1.8f;
    struct cw_at at = {.position = 9, .sampling = hot};
    open_tiny(&c, models[_i]);
    open_tiny(&alone, models[_i]);
    for (uint32_t n = 2; n <= CW_MAX_REPLIES; n += n == 2 ? 2 : 4) {
        struct all many, single;
        struct cw_request req = chat(&m, 1, 30);
        req.seed = 1000 + n;
        req.detail = true;
        req.ignore_eog = n == 4;
        req.at = &at;
        req.n_at = n == 8;
        req.n_replies = n;
        gather(&c, &req, &many, 0);
        for (uint32_t r = 0; r < n; r++) {
            struct cw_request one = req;
            one.n_replies = 1;
            one.seed = req.seed + r;
            gather(&alone, &one, &single, 0);
            ck_assert_uint_eq(many.r[r].n_ended, 1);
            ck_assert_uint_eq(many.r[r].n_changes, n == 8 && many.r[r].ids.n > 9);
            ck_assert_uint_eq(many.r[r].ids.n, single.r[0].ids.n);
            for (size_t i = 0; i < single.r[0].ids.n; i++) {
                ck_assert_msg(
                    memcmp(&many.r[r].draws[i], &single.r[0].draws[i], sizeof(struct cw_draw)) == 0,
                    "%u replies: reply %u differs at token %zu", n, r, i);
            }
            ck_assert_int_eq(many.r[r].ended.u.done.stop, single.done.u.done.stop);
            ck_assert_uint_eq(many.r[r].text.len, single.r[0].text.len);
            ck_assert(many.r[r].text.len == 0 || memcmp(many.r[r].text.data, single.r[0].text.data,
                                                        single.r[0].text.len) == 0);
            ck_assert_uint_eq(many.r[r].ended.figures.n_tokens, single.done.figures.n_tokens);
            ck_assert_uint_eq(many.r[r].ended.figures.n_ctx_used, single.done.figures.n_ctx_used);
            all_free(&single);
        }
        all_free(&many);
        publish(&alone);
        publish(&c);
    }
    client_close(&c);
    client_close(&alone);
}
END_TEST

/* Any of them goes on at the cost of what is new: they all stay in the cache. */
START_TEST(any_goes_on) {
    struct client c;
    struct all many;
    struct cw_message messages[3] = {user("which of these?")};
    struct cw_request req = chat(messages, 1, 12);
    open_tiny(&c, models[0]);
    req.ignore_eog = true;
    req.n_replies = 4;
    gather(&c, &req, &many, 0);
    size_t prompt = many.done.figures.n_prompt;
    for (int r = 3; r >= 0; r--) {
        struct all next;
        cw_buf_add(&many.r[r].text, "", 1);
        messages[1] = (struct cw_message){.role = "assistant",
                                          .content = many.r[r].text.data,
                                          .len = many.r[r].text.len - 1,
                                          .ids = many.r[r].ids.v,
                                          .n_ids = many.r[r].ids.n};
        req = chat(messages, 2, 5);
        req.continue_reply = true;
        req.first_position = 12;
        gather(&c, &req, &next, 0);
        ck_assert_uint_eq(next.done.figures.n_prompt, prompt + 12);
        ck_assert_uint_eq(next.done.figures.n_reused, prompt + 11);
        all_free(&next);
    }
    all_free(&many);
    client_close(&c);
}
END_TEST

/* ---- ends ---------------------------------------------------------------------------------- */

static void open_endless(struct client *c, uint32_t n_ctx) {
    struct markov k;
    const char *path = tmp_path("markov.gguf");
    struct cw_generator_options opt = client_options(path);
    markov_init(&k);
    markov_text(&k, "tick ");
    markov_text(&k, "tack ");
    markov_loop(&k, 0);
    markov_save(&k, path);
    markov_free(&k);
    opt.session.n_ctx = n_ctx;
    client_open(c, &opt);
}

START_TEST(ends) {
    struct client c;
    struct all a;
    struct cw_message m = user("go");
    const char *stop[] = {"tack tick"};
    struct cw_request req = chat(&m, 1, 7);
    req.n_replies = 3;
    open_endless(&c, 96);
    gather(&c, &req, &a, 0);
    for (int r = 0; r < 3; r++) {
        ck_assert_int_eq(a.r[r].ended.u.done.stop, CW_STOP_LENGTH);
        ck_assert_uint_eq(a.r[r].ids.n, 7);
    }
    ck_assert_int_eq(a.done.u.done.stop, CW_STOP_LENGTH);
    size_t prompt = a.done.figures.n_prompt;
    all_free(&a);
    req.stops = stop;
    req.n_stops = 1;
    gather(&c, &req, &a, 0);
    for (int r = 0; r < 3; r++) {
        ck_assert_int_eq(a.r[r].ended.u.done.stop, CW_STOP_STRING);
        ck_assert(a.r[r].text.len == 5 && memcmp(a.r[r].text.data, "tick ", 5) == 0);
    }
    all_free(&a);
    req.n_stops = 0;
    req.max_tokens = 0;
    gather(&c, &req, &a, 0);
    for (int r = 0; r < 3; r++) {
        ck_assert_int_eq(a.r[r].ended.u.done.stop, CW_STOP_LENGTH);
        ck_assert_uint_eq(a.r[r].ids.n, 0);
    }
    all_free(&a);
    req.max_tokens = -1;
    gather(&c, &req, &a, 0);
    for (int r = 0; r < 3; r++) {
        ck_assert_int_eq(a.r[r].ended.u.done.stop, CW_STOP_CONTEXT);
        ck_assert_uint_eq(prompt + a.r[r].ids.n, 97);
    }
    all_free(&a);
    /* Cancelled: each is told what it ended with, and then the request. */
    cw_generator_pause(c.g, true);
    for (int i = 0; i < 3; i++) {
        cw_generator_step(c.g);
    }
    cw_generator_cancel(c.g); /* nothing runs: means nothing */
    ck_assert(!gather(&c, &req, &a, 3));
    cw_generator_cancel(c.g);
    size_t ended = 0;
    struct cw_event ev;
    for (ev = next(&c); ev.kind != CW_EV_DONE; ev = next(&c)) {
        ended += ev.kind == CW_EV_REPLY_DONE && ev.u.done.stop == CW_STOP_CANCEL;
    }
    ck_assert_uint_eq(ended, 3);
    ck_assert_int_eq(ev.u.done.stop, CW_STOP_CANCEL);
    all_free(&a);
    /* One after that, and too many. */
    req.n_replies = 1;
    req.max_tokens = 3;
    gather(&c, &req, &a, 0);
    ck_assert_uint_eq(a.r[0].ids.n, 3);
    all_free(&a);
    req.n_replies = CW_MAX_REPLIES + 1;
    ck_assert_int_eq(cw_generator_start(c.g, &req, NULL, NULL), CW_EINVAL);
    client_close(&c);
}
END_TEST

/* A ring of few slots and all replies: the generator waits, nothing is lost. */
START_TEST(through_a_small_ring) {
    struct client c;
    struct all a;
    struct markov k;
    const char *path = tmp_path("markov.gguf");
    struct cw_generator_options opt = client_options(path);
    struct cw_message m = user("go");
    struct cw_request req = chat(&m, 1, 40);
    markov_init(&k);
    markov_text(&k, "tick ");
    markov_loop(&k, 0);
    markov_save(&k, path);
    markov_free(&k);
    opt.ring_slots = 2;
    client_open(&c, &opt);
    req.n_replies = CW_MAX_REPLIES;
    gather(&c, &req, &a, 0);
    for (int r = 0; r < CW_MAX_REPLIES; r++) {
        ck_assert_uint_eq(a.r[r].ids.n, 40);
        ck_assert_uint_eq(a.r[r].text.len, 200);
    }
    all_free(&a);
    client_close(&c);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("generator-replies");
    TCase *t = tcase_create("replies");
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, each_as_if_alone, 0, (int)N(models));
    tcase_add_test(t, any_goes_on);
    tcase_add_test(t, ends);
    tcase_add_test(t, through_a_small_ring);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
