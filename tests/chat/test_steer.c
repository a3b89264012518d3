/* SPDX-License-Identifier: MIT
 *
 * What a person does to a reply while it is written or before: pausing and stepping, "answer now",
 * going on with a cut or edited one, typing ahead. And guessing by lookup, which must change
 * nothing. */
#include <check.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chinwag/snapshot.h"
#include "tests/chat/support.h"
#include "tests/support/markov.h"
#include "tests/support/mkgguf.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static void open_markov(struct client *c, struct markov *k) {
    const char *path = tmp_path("markov.gguf");
    struct cw_generator_options opt = client_options(path);
    markov_save(k, path);
    markov_free(k);
    client_open(c, &opt);
}

static void open_tiny(struct client *c, const char *name) {
    struct cw_generator_options opt = client_options(tiny_model(name));
    opt.model.exact = true;
    client_open(c, &opt);
}

/* A model that never stops. */
static void open_endless(struct client *c) {
    struct markov k;
    markov_init(&k);
    markov_text(&k, "tick ");
    markov_text(&k, "tack ");
    markov_loop(&k, 0);
    open_markov(c, &k);
}

/* One that thinks without end; so does its answer, once it was made to answer. */
static void open_thinker(struct client *c) {
    struct markov k;
    markov_init(&k);
    markov_text(&k, "tick ");
    markov_text(&k, "tack ");
    markov_loop(&k, 0);
    k.chat_template = "{% for m in messages %}{{ m.role }}\n{{ m.content }}\n{% endfor %}"
                      "assistant\n<think>{{ '\n' }}";
    open_markov(c, &k);
}

static bool nothing_comes(struct client *c, int ms) {
    struct pollfd p = {.fd = cw_ring_fd(c->ring), .events = POLLIN};
    struct cw_event ev;
    cw_ring_ack(c->ring);
    if (cw_ring_pop(c->ring, &ev)) {
        return false;
    }
    return poll(&p, 1, ms) == 0;
}

/* The ids and, with `detail`, the draws of a run. */
struct record {
    struct cw_ids ids;
    struct cw_draw draws[256];
    bool forced[256];
    struct cw_event done;
};

static void record(struct client *c, const struct cw_request *req, struct record *out) {
    struct cw_event ev;
    memset(out, 0, sizeof *out);
    uint32_t number = client_start(c, req);
    for (ev = client_next(c); ev.kind != CW_EV_DONE; ev = client_next(c)) {
        if (ev.kind == CW_EV_TOKEN && ev.u.token.first_part) {
            ck_assert_uint_eq(ev.request, number);
            ck_assert_uint_eq(ev.u.token.position, req->first_position + out->ids.n);
            if (out->ids.n < N(out->draws)) {
                out->draws[out->ids.n] = ev.u.token.draw;
                out->forced[out->ids.n] = ev.u.token.forced;
            }
            cw_ids_add(&out->ids, ev.u.token.draw.id);
        }
    }
    out->done = ev;
}

/* b's tokens are those of a from `from` on, draw by draw. */
static void check_same(const struct record *a, size_t from, const struct record *b) {
    ck_assert_uint_eq(a->ids.n - from, b->ids.n);
    for (size_t i = 0; i < b->ids.n; i++) {
        ck_assert_msg(a->ids.v[from + i] == b->ids.v[i], "token %zu from %zu: %d, not %d", i, from,
                      b->ids.v[i], a->ids.v[from + i]);
        ck_assert(memcmp(&a->draws[from + i], &b->draws[i], sizeof b->draws[i]) == 0);
    }
}

static void publish(struct client *c, float temp) {
    struct cw_sampling s;
    cw_sampling_default(&s);
    s.temp = temp;
    s.penalty_repeat = 1.3f;
    s.penalty_last_n = -1;
    cw_generator_publish(c->g, &s);
}

/* ---- pausing ------------------------------------------------------------------------------- */

START_TEST(pausing) {
    struct client c;
    struct cw_message m = user("go");
    struct cw_request req = chat(&m, 1, 6);
    struct cw_event ev;
    open_endless(&c);
    cw_generator_step(c.g); /* means nothing while not paused */
    cw_generator_pause(c.g, true);
    ck_assert(cw_generator_paused(c.g));
    client_start(&c, &req);
    client_until(&c, CW_EV_PROMPT);
    do {
        ev = client_next(&c);
    } while (ev.u.progress.done < ev.u.progress.total);
    struct timespec cpu[2];
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu[0]);
    ck_assert(nothing_comes(&c, 300));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu[1]);
    /* It sleeps: no time of the CPU goes by, however busy the machine is with others. */
    ck_assert((double)(cpu[1].tv_sec - cpu[0].tv_sec) +
                  (double)(cpu[1].tv_nsec - cpu[0].tv_nsec) * 1e-9 <
              0.1);
    for (size_t i = 0; i < 3; i++) {
        cw_generator_step(c.g);
        ev = client_next(&c);
        ck_assert(ev.kind == CW_EV_TOKEN && ev.u.token.position == i);
        ck_assert(nothing_comes(&c, 20));
    }
    /* Two at once; counts wait for the request's end as ever. */
    cw_generator_count(c.g, "x", 1, 5);
    cw_generator_step(c.g);
    cw_generator_step(c.g);
    client_until(&c, CW_EV_TOKEN);
    client_until(&c, CW_EV_TOKEN);
    ck_assert(nothing_comes(&c, 20));
    cw_generator_pause(c.g, false);
    ev = client_until(&c, CW_EV_DONE);
    ck_assert_int_eq(ev.u.done.stop, CW_STOP_LENGTH);
    ck_assert_uint_eq(c.ids.n, 6);
    ck_assert(ev.figures.paused_s > 0.05 && ev.figures.ttft_s > 0.2);
    ck_assert(ev.figures.eval_s < ev.figures.last_s - ev.figures.first_s);
    client_until(&c, CW_EV_COUNT);
    client_close(&c);
}
END_TEST

START_TEST(a_change_while_paused) {
    struct client c;
    struct cw_message m = user("go");
    struct cw_request req = chat(&m, 1, 6);
    struct cw_sampling s;
    open_endless(&c);
    cw_generator_pause(c.g, true);
    client_start(&c, &req);
    cw_generator_step(c.g);
    client_until(&c, CW_EV_TOKEN);
    cw_sampling_default(&s);
    s.temp = 0.5f;
    cw_generator_publish(c.g, &s);
    s.temp = 0.25f;
    cw_generator_publish(c.g, &s);
    cw_generator_step(c.g);
    struct cw_event ev = client_next(&c);
    ck_assert(ev.kind == CW_EV_CHANGE && ev.u.change.position == 1);
    ck_assert(ev.u.change.from.temp == 0.0f && ev.u.change.to.temp == 0.25f);
    ev = client_next(&c);
    ck_assert(ev.kind == CW_EV_TOKEN && ev.u.token.position == 1);
    client_close(&c); /* paused as it is */
}
END_TEST

START_TEST(cancel_while_paused) {
    struct client c;
    struct cw_message m = user("go");
    struct cw_request req = chat(&m, 1, 4);
    open_endless(&c);
    for (size_t tokens = 0; tokens < 2; tokens++) {
        cw_generator_pause(c.g, true);
        client_start(&c, &req);
        for (size_t i = 0; i < tokens; i++) {
            cw_generator_step(c.g);
            client_until(&c, CW_EV_TOKEN);
        }
        cw_generator_cancel(c.g);
        struct cw_event ev = client_until(&c, CW_EV_DONE);
        ck_assert_int_eq(ev.u.done.stop, CW_STOP_CANCEL);
        ck_assert_uint_eq(c.ids.n, tokens);
        ck_assert(!cw_generator_paused(c.g)); /* it was this reply that was paused */
        ck_assert_int_eq(client_run(&c, &req).u.done.stop, CW_STOP_LENGTH);
        ck_assert_uint_eq(c.ids.n, 4);
    }
    client_close(&c);
}
END_TEST

/* ---- answer now ---------------------------------------------------------------------------- */

START_TEST(answer_now) {
    struct client c;
    struct cw_message m = user("why?");
    struct cw_request req = chat(&m, 1, 9);
    req.detail = true;
    open_thinker(&c);
    client_run(&c, &req);
    ck_assert_str_eq(c.text.data, ""); /* left alone it thinks to the end */
    cw_generator_answer_now(c.g);      /* said too late: of no reply */
    cw_generator_pause(c.g, true);
    uint32_t number = client_start(&c, &req);
    for (int i = 0; i < 3; i++) {
        cw_generator_step(c.g);
        client_until(&c, CW_EV_TOKEN);
    }
    cw_generator_answer_now(c.g);
    cw_generator_answer_now(c.g); /* pressed twice, meant once */
    cw_generator_pause(c.g, false);
    size_t n_forced = 0;
    struct cw_event ev;
    for (ev = client_next(&c); ev.kind != CW_EV_DONE; ev = client_next(&c)) {
        if (ev.kind == CW_EV_TOKEN && ev.u.token.forced) {
            ck_assert(ev.u.token.first_part && ev.u.token.draw.p == 1.0f);
            ck_assert(ev.u.token.position == 3 + n_forced);
            ck_assert_int_eq(ev.u.token.draw.n_alternatives, CW_N_ALTERNATIVES);
            ck_assert(ev.u.token.draw.p_raw < 0.5f && ev.u.token.draw.rank > 0);
            n_forced++;
        }
    }
    ck_assert(ev.request == number && ev.u.done.stop == CW_STOP_LENGTH);
    ck_assert_uint_eq(n_forced, 4); /* line end, marker, two line ends */
    ck_assert_uint_eq(c.ids.n, 9);  /* they count */
    ck_assert_uint_eq(ev.figures.n_tokens, 9);
    ck_assert_int_eq(c.ids.v[3], '\n');
    ck_assert_int_eq(c.ids.v[4], MARKOV_END_THINK);
    ck_assert_int_eq(c.ids.v[6], '\n');
    cw_buf_putc(&c.text, '\0');
    cw_buf_putc(&c.thought, '\0');
    ck_assert_str_eq(c.thought.data, "tick tack tick ");
    ck_assert_str_eq(c.text.data, "tick tack ");
    /* The same by position, as a replay does it. */
    struct cw_ids ids = {0};
    cw_ids_append(&ids, c.ids.v, c.ids.n);
    req.answer_at = 3;
    client_run(&c, &req);
    ck_assert(c.ids.n == ids.n && memcmp(c.ids.v, ids.v, ids.n * sizeof *ids.v) == 0);
    ck_assert_str_eq(c.text.data, "tick tack ");
    cw_ids_free(&ids);
    /* A limit within the marker is a limit. */
    req.max_tokens = 5;
    ck_assert_int_eq(client_run(&c, &req).u.done.stop, CW_STOP_LENGTH);
    ck_assert_uint_eq(c.ids.n, 5);
    ck_assert_str_eq(c.text.data, "");
    client_close(&c);
}
END_TEST

/* Asked for before the model has opened the section it will think in; and of one that does not. */
START_TEST(answer_now_outside) {
    struct client c;
    struct markov k;
    struct cw_message m = user("why?");
    struct cw_request req = chat(&m, 1, 4);
    markov_init(&k);
    markov_control(&k, MARKOV_THINK);
    markov_text(&k, "hm");
    markov_loop(&k, 1);
    open_markov(&c, &k);
    cw_generator_pause(c.g, true);
    client_start(&c, &req);
    client_until(&c, CW_EV_PROMPT);
    cw_generator_answer_now(c.g);
    cw_generator_pause(c.g, false);
    client_until(&c, CW_EV_DONE);
    ck_assert_int_eq(c.ids.v[0], MARKOV_THINK);
    ck_assert_int_eq(c.ids.v[1], MARKOV_END_THINK); /* the marker's line end is there already */
    ck_assert_uint_eq(c.thought.len, 0);
    client_close(&c);
    /* Said to an answer it is over, also if a section comes later. */
    markov_init(&k);
    markov_text(&k, "so ");
    markov_control(&k, MARKOV_THINK);
    markov_text(&k, "hm ");
    markov_loop(&k, 2);
    open_markov(&c, &k);
    cw_generator_pause(c.g, true);
    client_start(&c, &req);
    cw_generator_step(c.g);
    client_until(&c, CW_EV_TOKEN);
    cw_generator_answer_now(c.g);
    cw_generator_pause(c.g, false);
    client_until(&c, CW_EV_DONE);
    ck_assert_int_eq(c.ids.v[1], MARKOV_THINK);
    ck_assert_int_ne(c.ids.v[2], MARKOV_END_THINK);
    ck_assert_uint_eq(c.thought.len, 6);
    client_close(&c);
    open_endless(&c);
    req.max_tokens = 6;
    cw_generator_pause(c.g, true);
    client_start(&c, &req);
    cw_generator_step(c.g);
    client_until(&c, CW_EV_TOKEN);
    cw_generator_answer_now(c.g);
    cw_generator_pause(c.g, false);
    struct cw_event ev;
    for (ev = client_next(&c); ev.kind != CW_EV_DONE; ev = client_next(&c)) {
        ck_assert(ev.kind != CW_EV_TOKEN || !ev.u.token.forced);
    }
    ck_assert_uint_eq(c.text.len, 30);
    client_close(&c);
}
END_TEST

/* ---- going on ------------------------------------------------------------------------------ */

/* Cut anywhere, a reply goes on as if it had not been. */
START_TEST(a_cut_reply_goes_on_the_same) {
    static const char *const models[] = {"tiny-llama-Q4_0.gguf", "tiny-gemma3-F32.gguf"};
    struct client c;
    struct record whole, part, rest;
    open_tiny(&c, models[_i]);
    struct cw_message messages[2] = {user("tell me something long")};
    struct cw_request req = chat(messages, 1, 40);
    req.seed = 11;
    req.detail = true;
    req.ignore_eog = true;
    publish(&c, 1.2f);
    record(&c, &req, &whole);
    ck_assert_uint_eq(whole.ids.n, 40);
    for (size_t k = 1; k < 40; k += k < 6 ? 1 : 7) {
        req = chat(messages, 1, (int64_t)k);
        req.seed = 11;
        req.detail = req.ignore_eog = true;
        record(&c, &req, &part);
        ck_assert(memcmp(part.draws, whole.draws, k * sizeof *part.draws) == 0);
        cw_ids_free(&part.ids);
        messages[1] = client_reply(&c);
        req = chat(messages, 2, (int64_t)(40 - k));
        req.continue_reply = true;
        req.first_position = k;
        req.seed = 11;
        req.detail = req.ignore_eog = true;
        struct cw_ids ids = {0};
        cw_ids_append(&ids, c.ids.v, c.ids.n);
        messages[1].ids = ids.v;
        char *text = cw_strndup(c.text.data, c.text.len);
        messages[1].content = text;
        record(&c, &req, &rest);
        check_same(&whole, k, &rest);
        ck_assert_uint_eq(rest.done.figures.n_evaluated, 1);
        cw_ids_free(&rest.ids);
        cw_ids_free(&ids);
        free(text);
    }
    cw_ids_free(&whole.ids);
    client_close(&c);
}
END_TEST

/* Another token in the place of one: a reply whose ids were edited goes on from them. */
START_TEST(an_alternative_goes_on) {
    struct client c, cold;
    struct record first, edited, again;
    open_tiny(&c, "tiny-llama-Q4_0.gguf");
    struct cw_message messages[2] = {user("and then?")};
    struct cw_request req = chat(messages, 1, 12);
    req.detail = req.ignore_eog = true;
    req.seed = 5;
    publish(&c, 1);
    record(&c, &req, &first);
    size_t prompt = first.done.figures.n_prompt;
    int32_t ids[6];
    memcpy(ids, first.ids.v, 5 * sizeof *ids);
    int other = first.draws[5].alternatives[0].id == first.ids.v[5] ? 1 : 0;
    ids[5] = first.draws[5].alternatives[other].id;
    struct cw_buf text = {0};
    cw_tokenizer_decode(cw_generator_tokenizer(c.g), ids, 6, false, &text);
    messages[1] = (struct cw_message){.role = "assistant",
                                      .content = text.data != NULL ? text.data : "",
                                      .len = text.len,
                                      .ids = ids,
                                      .n_ids = 6};
    req = chat(messages, 2, 6);
    req.continue_reply = req.detail = req.ignore_eog = true;
    req.first_position = 6;
    req.seed = 5;
    record(&c, &req, &edited);
    ck_assert_uint_eq(edited.done.figures.n_prompt, prompt + 6);
    ck_assert_uint_eq(edited.done.figures.n_reused, prompt + 5);
    open_tiny(&cold, "tiny-llama-Q4_0.gguf");
    publish(&cold, 1);
    record(&cold, &req, &again);
    ck_assert_uint_eq(again.done.figures.n_reused, 0);
    check_same(&edited, 0, &again);
    client_close(&cold);
    client_close(&c);
    cw_ids_free(&first.ids);
    cw_ids_free(&edited.ids);
    cw_ids_free(&again.ids);
    cw_buf_free(&text);
}
END_TEST

/* Cut in the middle of a thought, of a character, behind an end token, behind a stop string. */
START_TEST(cut_in_odd_places) {
    struct client c;
    struct markov k;
    struct cw_message messages[2] = {user("go")};
    struct cw_request req = chat(messages, 1, 2);
    open_thinker(&c);
    client_run(&c, &req);
    ck_assert_str_eq(c.thought.data, "tick tack ");
    int32_t ids[8];
    memcpy(ids, c.ids.v, 2 * sizeof *ids);
    messages[1] = (struct cw_message){.role = "assistant", .content = "", .ids = ids, .n_ids = 2};
    req = chat(messages, 2, 3);
    req.continue_reply = true;
    client_run(&c, &req);
    ck_assert_str_eq(c.thought.data, "tick tack tick "); /* it still thinks, and goes on with it */
    ck_assert_uint_eq(c.done.figures.n_evaluated, 1);
    client_close(&c);

    markov_init(&k); /* the same where the reply itself has opened the section */
    markov_control(&k, MARKOV_THINK);
    markov_text(&k, "hm ");
    markov_loop(&k, 1);
    open_markov(&c, &k);
    req = chat(messages, 1, 3);
    client_run(&c, &req);
    ck_assert_str_eq(c.thought.data, "hm hm ");
    memcpy(ids, c.ids.v, 3 * sizeof *ids);
    messages[1].n_ids = 3;
    req = chat(messages, 2, 2);
    req.continue_reply = true;
    client_run(&c, &req);
    ck_assert_str_eq(c.thought.data, "hm hm ");
    ck_assert_str_eq(c.text.data, "");
    client_close(&c);

    markov_init(&k);
    markov_text(&k, "a \xf0\x9f");
    markov_text(&k, "\xa6\x86");
    markov_text(&k, " END");
    markov_text(&k, " b");
    open_markov(&c, &k);
    req = chat(messages, 1, 1);
    client_run(&c, &req);
    ck_assert_str_eq(c.text.data, "a "); /* a character begun is not shown */
    ids[0] = c.ids.v[0];
    messages[1] = message("assistant", "a ");
    messages[1].ids = ids;
    messages[1].n_ids = 1;
    req = chat(messages, 2, -1);
    req.continue_reply = true;
    client_run(&c, &req);
    ck_assert_str_eq(c.text.data, "\xf0\x9f\xa6\x86 END b");
    ck_assert_int_eq(c.ids.v[c.ids.n - 1], MARKOV_END);
    /* Behind the end: there is nothing more to say, but it says so again. */
    memcpy(ids + 1, c.ids.v, c.ids.n * sizeof *ids);
    messages[1] = message("assistant", "a \xf0\x9f\xa6\x86 END b");
    messages[1].ids = ids;
    messages[1].n_ids = 1 + c.ids.n;
    client_run(&c, &req);
    ck_assert_int_eq(c.done.u.done.stop, CW_STOP_EOG);
    ck_assert_uint_eq(c.ids.n, 1);
    /* A stop string stood behind the content: it was not part of it. */
    const char *stop[] = {" END"};
    messages[1] = message("assistant", "a \xf0\x9f\xa6\x86");
    messages[1].ids = ids;
    messages[1].n_ids = 3;
    client_run(&c, &req);
    ck_assert_str_eq(c.text.data, " END b");
    req.stops = stop;
    req.n_stops = 1;
    client_run(&c, &req);
    ck_assert_int_eq(c.done.u.done.stop, CW_STOP_STRING);
    ck_assert_str_eq(c.text.data, "");
    /* Ids of another text than the content: the content counts. */
    messages[1] = message("assistant", "a \xf0\x9f\xa6\x86 EN");
    messages[1].ids = ids;
    messages[1].n_ids = 2;
    req.n_stops = 0;
    client_run(&c, &req);
    ck_assert_uint_gt(c.done.figures.n_evaluated, 2);
    client_close(&c);
}
END_TEST

/* ---- typing ahead -------------------------------------------------------------------------- */

/* The linker leads drafts and requests here (--wrap), so that a test knows when a draft is done. */
static sem_t synced;
static bool watch_sync;

int __real_cw_session_sync(struct cw_session *s, const int32_t *ids, size_t n,
                           const struct cw_session_hooks *hooks, struct cw_sync_stats *stats,
                           struct cw_err *err);
int __wrap_cw_session_sync(struct cw_session *s, const int32_t *ids, size_t n,
                           const struct cw_session_hooks *hooks, struct cw_sync_stats *stats,
                           struct cw_err *err);

int __wrap_cw_session_sync(struct cw_session *s, const int32_t *ids, size_t n,
                           const struct cw_session_hooks *hooks, struct cw_sync_stats *stats,
                           struct cw_err *err) {
    int rc = __real_cw_session_sync(s, ids, n, hooks, stats, err);
    if (watch_sync && rc == CW_OK) {
        sem_post(&synced);
    }
    return rc;
}

static void prepare_and_wait(struct client *c, const struct cw_request *req) {
    sem_init(&synced, 0, 0);
    watch_sync = true;
    cw_generator_prepare(c->g, req);
    while (sem_wait(&synced) != 0) {
    }
    /* What comes after the draft in the thread's round answers this. */
    watch_sync = false;
    cw_generator_count(c->g, "", 0, 99);
    client_until(c, CW_EV_COUNT);
    sem_destroy(&synced);
}

START_TEST(typing_ahead) {
    struct client c, plain;
    struct record a, b;
    struct cw_message messages[3] = {message("system", "be brief"),
                                     user("one two three four five")};
    struct cw_request req = chat(messages, 2, 12);
    req.detail = req.ignore_eog = true;
    open_tiny(&c, "tiny-llama-Q4_0.gguf");
    open_tiny(&plain, "tiny-llama-Q4_0.gguf");
    record(&plain, &req, &a);
    prepare_and_wait(&c, &req);
    record(&c, &req, &b);
    check_same(&a, 0, &b);
    ck_assert_uint_gt(b.done.figures.n_prepared, a.done.figures.n_prompt / 2);
    ck_assert_uint_eq(b.done.figures.n_reused, b.done.figures.n_prepared);
    ck_assert_uint_eq(b.done.figures.n_reused + b.done.figures.n_evaluated,
                      a.done.figures.n_prompt);
    cw_ids_free(&a.ids);
    cw_ids_free(&b.ids);
    /* Written, changed in the middle, sent; and a second turn. */
    const char *drafts[] = {"", "the ", "the quick brown fox", "the slow brown fox jumps",
                            "the slow brown fox jumps over it all"};
    for (int turn = 0; turn < 2; turn++) {
        for (size_t i = turn == 0 ? 2 : 1; i < N(drafts); i++) {
            messages[1] = user(drafts[i]);
            req = chat(messages, 2, 12);
            prepare_and_wait(&c, &req);
        }
        req.detail = req.ignore_eog = true;
        record(&c, &req, &b);
        record(&plain, &req, &a);
        check_same(&a, 0, &b);
        ck_assert_uint_gt(b.done.figures.n_prepared, 0);
        ck_assert_uint_le(b.done.figures.n_prepared, b.done.figures.n_reused);
        ck_assert_uint_eq(a.done.figures.n_prepared, 0);
        cw_ids_free(&a.ids);
        cw_ids_free(&b.ids);
        messages[0] = message("system", "be verbose");
    }
    client_close(&c);
    client_close(&plain);
}
END_TEST

/* Everything that may come in the middle of a draft does. */
START_TEST(drafts_give_way) {
    struct client c;
    struct cw_buf text = {0};
    for (int i = 0; i < 300; i++) {
        cw_buf_puts(&text, "word ");
    }
    struct cw_generator_options opt = client_options(tiny_model("tiny-llama-Q4_0.gguf"));
    opt.session.n_ctx = 8192;
    client_open(&c, &opt);
    for (size_t i = 0; i < 40; i++) {
        struct cw_message m = {.role = "user", .content = text.data, .len = text.len - 5 * i};
        struct cw_request req = chat(&m, 1, 2);
        req.ignore_eog = true;
        cw_generator_prepare(c.g, &req);
        switch (i % 4) {
        case 0:
            client_run(&c, &req);
            ck_assert_int_eq(c.done.u.done.stop, CW_STOP_LENGTH);
            break;
        case 1:
            cw_generator_count(c.g, "abc", 3, i);
            while (client_until(&c, CW_EV_COUNT).u.count.serial != i) {
            }
            break;
        case 2:
            cw_generator_prepare(c.g, NULL);
            break;
        default: /* while a request runs a draft is not taken */
            client_start(&c, &req);
            m.len = 20;
            cw_generator_prepare(c.g, &req);
            client_until(&c, CW_EV_DONE);
            m.len = text.len - 5 * i;
            client_run(&c, &req);
            ck_assert_uint_eq(c.done.figures.n_evaluated, 1);
            break;
        }
    }
    /* Drafts that cannot be: too long, of no conversation, of ids. */
    struct cw_buf big = {0};
    for (int i = 0; i < 9000; i++) {
        cw_buf_puts(&big, "a b ");
    }
    struct cw_message m = {.role = "user", .content = big.data, .len = big.len};
    struct cw_request wrong[] = {chat(&m, 1, 1),
                                 chat(&m, 0, 1),
                                 {.raw = "text", .raw_len = 4, .think = -1},
                                 {.ids = c.ids.v, .n_ids = 1, .think = -1},
                                 {.think = -1}};
    for (size_t i = 0; i < N(wrong); i++) {
        cw_generator_prepare(c.g, &wrong[i]);
        cw_generator_count(c.g, "", 0, 1000 + i);
        while (client_until(&c, CW_EV_COUNT).u.count.serial != 1000 + i) {
        }
    }
    cw_generator_prepare(c.g, &(struct cw_request){.messages = &m, .n_messages = 1});
    client_close(&c);
    cw_buf_free(&text);
    cw_buf_free(&big);
}
END_TEST

/* ---- lookup -------------------------------------------------------------------------------- */

static const float lookup_temps[] = {0, 0.3f, 1.0f};

/* Tokens, draws and stops are the same with guesses and without, on models of every kind. */
START_TEST(lookup_changes_nothing) {
    static const char *const models[] = {"tiny-llama-Q4_0.gguf", "tiny-mixed-Q4_K_M.gguf",
                                         "tiny-gpt-oss-MXFP4.gguf", "tiny-tail-Q8_0.gguf"};
    struct client c;
    open_tiny(&c, models[_i]);
    const int32_t prompt[] = {5, 6, 7, 8, 9, 10, 11, 5, 6, 7, 8, 9, 10, 12, 5, 6, 7};
    size_t guessed = 0, accepted = 0;
    for (size_t t = 0; t < N(lookup_temps); t++) {
        for (uint32_t seed = 0; seed < 6; seed++) {
            struct cw_sampling hot;
            cw_sampling_default(&hot);
            hot.temp = 1.4f;
            hot.penalty_repeat = 1.1f;
            struct cw_at at = {.position = 20, .sampling = hot};
            struct cw_request req = {.ids = prompt,
                                     .n_ids = N(prompt),
                                     .max_tokens = 60,
                                     .seed = seed,
                                     .detail = true,
                                     .ignore_eog = seed % 2 == 0,
                                     .think = -1,
                                     .at = &at,
                                     .n_at = seed % 3 == 0};
            struct record off, on;
            struct cw_sampling s;
            cw_sampling_default(&s);
            s.temp = lookup_temps[t];
            /* Few tokens, so that they come again and again. */
            s.n_bias = 3;
            for (int i = 0; i < 3; i++) {
                s.bias[i].id = 5 + i;
                s.bias[i].bias = 40;
            }
            cw_generator_publish(c.g, &s);
            record(&c, &req, &off);
            ck_assert_uint_eq(off.done.figures.n_guessed, 0);
            req.lookup = req.lookup_all = true;
            record(&c, &req, &on);
            check_same(&off, 0, &on);
            ck_assert_int_eq(off.done.u.done.stop, on.done.u.done.stop);
            ck_assert_uint_eq(off.done.figures.n_ctx_used, on.done.figures.n_ctx_used);
            guessed += on.done.figures.n_guessed;
            accepted += on.done.figures.n_accepted;
            cw_ids_free(&off.ids);
            cw_ids_free(&on.ids);
        }
    }
    ck_assert_uint_gt(guessed, 0);
    ck_assert_uint_gt(accepted, 0);
    ck_assert_uint_lt(accepted, guessed);
    client_close(&c);
}
END_TEST

/* A reply that only repeats: nearly all of it is guessed. Its limits hold to the token. */
START_TEST(lookup_and_limits) {
    struct client c;
    struct markov k;
    const char *path = tmp_path("loop.gguf");
    struct cw_generator_options opt = client_options(path);
    struct cw_message m = user("go");
    struct cw_request req = chat(&m, 1, 100);
    const char *stop[] = {"c d a b "};
    markov_init(&k);
    markov_text(&k, "a ");
    markov_text(&k, "b ");
    markov_text(&k, "c ");
    markov_text(&k, "d ");
    markov_loop(&k, 0);
    markov_save(&k, path);
    markov_free(&k);
    opt.session.n_ctx = 128;
    opt.model.exact = true; /* where it is not, there are no guesses */
    client_open(&c, &opt);
    req.lookup = req.lookup_all = true;
    client_run(&c, &req);
    ck_assert_uint_eq(c.ids.n, 100);
    ck_assert_uint_ge(c.done.figures.n_accepted, 80);
    size_t prompt = c.done.figures.n_prompt;
    ck_assert_uint_eq(c.done.figures.n_ctx_used, prompt + 99);
    for (int64_t n = 1; n < 40; n++) {
        req.max_tokens = n;
        client_run(&c, &req);
        ck_assert_uint_eq(c.ids.n, n);
        ck_assert_int_eq(c.done.u.done.stop, CW_STOP_LENGTH);
        ck_assert_uint_eq(c.done.figures.n_ctx_used, prompt + (size_t)n - 1);
    }
    req.max_tokens = -1;
    client_run(&c, &req);
    ck_assert_int_eq(c.done.u.done.stop, CW_STOP_CONTEXT);
    ck_assert_uint_eq(prompt + c.ids.n, 129);
    ck_assert_uint_eq(c.done.figures.n_ctx_used, 128);
    req.stops = stop;
    req.n_stops = 1;
    client_run(&c, &req);
    ck_assert_int_eq(c.done.u.done.stop, CW_STOP_STRING);
    ck_assert_str_eq(c.text.data, "a b ");
    /* The next request reuses what was evaluated and not what was guessed. */
    req.n_stops = 0;
    req.max_tokens = 30;
    client_run(&c, &req);
    ck_assert_uint_eq(c.done.figures.n_reused, prompt - 1);
    /* Cancelled among guesses: what was told is what was drawn. */
    req.max_tokens = -1;
    cw_generator_pause(c.g, true);
    client_start(&c, &req);
    for (int i = 0; i < 25; i++) {
        cw_generator_step(c.g);
        client_until(&c, CW_EV_TOKEN);
    }
    cw_generator_cancel(c.g);
    client_until(&c, CW_EV_DONE);
    ck_assert_uint_eq(c.ids.n, 25);
    ck_assert_uint_eq(c.done.figures.n_ctx_used, prompt + 25); /* the last is evaluated by then */
    client_close(&c);
}
END_TEST

/* ---- snapshots ----------------------------------------------------------------------------- */

static const char *fresh_dir(void) {
    static char dir[1200];
    snprintf(dir, sizeof dir, "%s.d", tmp_path("snapshots"));
    cw_snapshots_remove(dir, NULL, NULL);
    return dir;
}

static void open_keeping(struct client *c, const char *dir, const char *model) {
    struct cw_generator_options opt = client_options(tiny_model(model));
    opt.session.n_ctx = 2048;
    opt.snapshot_dir = dir;
    client_open(c, &opt);
}

/* A long conversation is taken up by another process: what is on disk is not evaluated, and the
 * reply is the same to the last digit. */
START_TEST(taken_up_again) {
    struct client c;
    struct record first, cold, warm;
    struct cw_buf text = {0};
    const char *dir = fresh_dir();
    for (int i = 0; i < 300; i++) {
        cw_buf_printf(&text, "%d ", i);
    }
    struct cw_message messages[3] = {{.role = "user", .content = text.data, .len = text.len}};
    struct cw_request req = chat(messages, 1, 8);
    req.detail = req.ignore_eog = true;
    req.snapshot_key = "0123abc";
    open_keeping(&c, dir, "tiny-llama-Q4_0.gguf");
    record(&c, &req, &first);
    ck_assert_uint_eq(first.done.figures.n_restored, 0);
    size_t n = first.done.figures.n_ctx_used;
    ck_assert_uint_gt(n, 512);
    /* What is typed and not sent stays out of it. */
    char *said = cw_strndup(c.text.data, c.text.len);
    messages[1] = (struct cw_message){.role = "assistant",
                                      .content = said,
                                      .len = c.text.len,
                                      .ids = first.ids.v,
                                      .n_ids = first.ids.n};
    messages[2] = user("a secret of several words that is not sent");
    struct cw_request draft = chat(messages, 3, 8);
    draft.ignore_eog = true;
    prepare_and_wait(&c, &draft);
    client_close(&c);
    open_keeping(&c, dir, "tiny-llama-Q4_0.gguf");
    draft.snapshot_key = req.snapshot_key;
    client_run(&c, &draft);
    ck_assert_uint_gt(c.done.figures.n_restored, n - 16);
    ck_assert_uint_le(c.done.figures.n_restored, n);
    client_close(&c);
    free(said);
    cw_snapshots_remove(dir, NULL, NULL);
    /* Saved while the program runs on, too. */
    open_keeping(&c, dir, "tiny-llama-Q4_0.gguf");
    req.n_messages = 1;
    cw_ids_free(&first.ids);
    record(&c, &req, &first);
    for (int i = 0; i < 600 && cw_snapshots_bytes(dir) == 0; i++) {
        struct timespec t = {0, 100000000};
        nanosleep(&t, NULL);
    }
    ck_assert_uint_gt(cw_snapshots_bytes(dir), 0);
    client_close(&c);
    messages[1] = (struct cw_message){
        .role = "assistant", .content = "", .ids = first.ids.v, .n_ids = first.ids.n};
    req.n_messages = 2;
    req.continue_reply = true;
    req.first_position = 8;
    const char *no_dirs[] = {NULL, dir};
    for (int k = 0; k < 2; k++) {
        open_keeping(&c, no_dirs[k], "tiny-llama-Q4_0.gguf");
        record(&c, &req, k == 0 ? &cold : &warm);
        client_close(&c);
    }
    check_same(&cold, 0, &warm);
    ck_assert_uint_eq(cold.done.figures.n_restored, 0);
    ck_assert_uint_eq(warm.done.figures.n_restored, warm.done.figures.n_reused);
    ck_assert_uint_ge(warm.done.figures.n_restored + 16, n);
    ck_assert_uint_eq(warm.done.figures.n_restored + warm.done.figures.n_evaluated,
                      cold.done.figures.n_prompt);
    /* Of another model: said, and evaluated. */
    cw_ids_free(&warm.ids);
    open_keeping(&c, dir, "tiny-llama-Q2_K.gguf");
    cw_buf_clear(&c.notices);
    record(&c, &req, &warm);
    ck_assert_uint_eq(warm.done.figures.n_restored, 0);
    ck_assert_ptr_nonnull(memmem(c.notices.data, c.notices.len, "evaluated anew", 14));
    client_close(&c);
    cw_ids_free(&first.ids);
    cw_ids_free(&cold.ids);
    cw_ids_free(&warm.ids);
    cw_snapshots_remove(dir, NULL, NULL);
    cw_buf_free(&text);
}
END_TEST

/* No key, no snapshot; a folder that cannot be is told once; a wrong key harms nothing. */
START_TEST(not_kept) {
    struct client c;
    struct cw_buf text = {0};
    const char *dir = fresh_dir();
    for (int i = 0; i < 300; i++) {
        cw_buf_printf(&text, "%d ", i);
    }
    struct cw_message m = {.role = "user", .content = text.data, .len = text.len};
    struct cw_request req = chat(&m, 1, 2);
    req.ignore_eog = true;
    open_keeping(&c, dir, "tiny-llama-Q4_0.gguf");
    client_run(&c, &req);
    m.len = 100; /* too short to be worth a file */
    req.snapshot_key = "ab";
    client_run(&c, &req);
    client_close(&c);
    ck_assert_uint_eq(cw_snapshots_bytes(dir), 0);
    m.len = text.len;
    const char *wrong[] = {"../../x", ""};
    for (size_t i = 0; i < N(wrong); i++) {
        open_keeping(&c, dir, "tiny-llama-Q4_0.gguf");
        req.snapshot_key = wrong[i];
        ck_assert_int_eq(client_run(&c, &req).u.done.stop, CW_STOP_LENGTH);
        client_close(&c);
    }
    ck_assert_uint_eq(cw_snapshots_bytes(dir), 0);
    /* Two conversations by turns: each is saved before the other takes its place. */
    open_keeping(&c, dir, "tiny-llama-Q4_0.gguf");
    req.snapshot_key = "aa";
    client_run(&c, &req);
    m.content = text.data + 1;
    m.len = text.len - 1;
    req.snapshot_key = "bb";
    client_run(&c, &req);
    uint64_t one = cw_snapshots_bytes(dir);
    ck_assert_uint_gt(one, 0);
    client_close(&c);
    ck_assert_uint_gt(cw_snapshots_bytes(dir), one);
    cw_snapshots_remove(dir, NULL, NULL);
    cw_buf_free(&text);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("generator-steer");
    TCase *t = tcase_create("steer");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, pausing);
    tcase_add_test(t, a_change_while_paused);
    tcase_add_test(t, cancel_while_paused);
    tcase_add_test(t, answer_now);
    tcase_add_test(t, answer_now_outside);
    tcase_add_loop_test(t, a_cut_reply_goes_on_the_same, 0, 2);
    tcase_add_test(t, an_alternative_goes_on);
    tcase_add_test(t, cut_in_odd_places);
    tcase_add_test(t, typing_ahead);
    tcase_add_test(t, drafts_give_way);
    tcase_add_loop_test(t, lookup_changes_nothing, 0, 4);
    tcase_add_test(t, lookup_and_limits);
    tcase_add_test(t, taken_up_again);
    tcase_add_test(t, not_kept);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
