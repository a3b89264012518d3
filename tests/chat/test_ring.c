/* SPDX-License-Identifier: MIT
 *
 * The ring and the live settings under two threads: order, nothing lost, nothing doubled, waiting,
 * waking, cancelling. Built with -Db_sanitize=thread it runs ten times as long. */
#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/ring.h"

#if defined(__SANITIZE_THREAD__)
#define TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN 1
#endif
#endif
#ifdef TSAN
enum { N_EVENTS = 10000000 };
#else
enum { N_EVENTS = 1000000 };
#endif

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Now and then give the processor away, or turn round on the spot: any interleaving may come. */
static void pause_at_random(uint64_t *state) {
    uint64_t r = next(state) % 512;
    if (r == 0) {
        sched_yield();
    } else if (r < 8) {
        for (volatile uint64_t i = next(state) % 200; i > 0; i--) {
        }
    }
}

/* Wait until the consumer's descriptor is readable. */
static void wait_readable(const struct cw_ring *r) {
    struct pollfd p = {.fd = cw_ring_fd(r), .events = POLLIN};
    while (poll(&p, 1, -1) < 0) {
    }
}

static bool is_readable(const struct cw_ring *r) {
    struct pollfd p = {.fd = cw_ring_fd(r), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static struct cw_event event(uint64_t i) {
    struct cw_event ev = {.kind = CW_EV_TOKEN, .request = (uint32_t)i};
    ev.u.token.position = i;
    ev.n_text = (uint16_t)(i % 20);
    memset(ev.text, (int)('a' + i % 26), ev.n_text);
    return ev;
}

/* Check's own assertions write to a pipe each time, too slow for millions. */
static void check_event(const struct cw_event *ev, uint64_t i) {
    struct cw_event want = event(i);
    if (ev->u.token.position != i || ev->request != want.request || ev->n_text != want.n_text ||
        memcmp(ev->text, want.text, want.n_text) != 0) {
        ck_abort_msg("event %llu came as %llu with %d bytes", (unsigned long long)i,
                     (unsigned long long)ev->u.token.position, ev->n_text);
    }
}

START_TEST(one_thread) {
    struct cw_ring *r;
    struct cw_event ev;
    struct cw_err err;
    ck_assert_int_eq(cw_ring_create(&r, 0, &err), CW_EINVAL);
    ck_assert_ptr_null(r);
    for (size_t slots = 1; slots <= 5; slots++) {
        ck_assert_int_eq(cw_ring_create(&r, slots, &err), CW_OK);
        ck_assert(!cw_ring_pop(r, &ev));
        ck_assert(!is_readable(r));
        uint64_t in = 0, out = 0;
        for (int round = 0; round < 20; round++) {
            for (size_t k = 0; k < slots; k++, in++) {
                struct cw_event e = event(in);
                ck_assert_int_eq(cw_ring_push(r, &e, NULL), CW_OK);
            }
            ck_assert(is_readable(r));
            /* Full: a producer whose cancel flag is set gets away at once, with nothing written. */
            atomic_bool cancel = true;
            struct cw_event e = event(99999);
            ck_assert_int_eq(cw_ring_push(r, &e, &cancel), CW_ECANCEL);
            cw_ring_ack(r);
            ck_assert(!is_readable(r));
            while (cw_ring_pop(r, &ev)) {
                check_event(&ev, out++);
            }
            ck_assert_uint_eq(in, out);
        }
        cw_ring_destroy(r);
    }
    cw_ring_destroy(NULL);
}
END_TEST

/* An event left over from before the acknowledgement raises no new signal, a later one does. */
START_TEST(signals) {
    struct cw_ring *r;
    struct cw_event ev = event(1);
    cw_ring_create(&r, 4, NULL);
    cw_ring_push(r, &ev, NULL);
    cw_ring_push(r, &ev, NULL);
    cw_ring_ack(r);
    ck_assert(!is_readable(r));
    ck_assert(cw_ring_pop(r, &ev));
    cw_ring_push(r, &ev, NULL);
    ck_assert(is_readable(r));
    cw_ring_destroy(r);
}
END_TEST

/* Long text crosses whole, a length that lies does not. */
START_TEST(text) {
    struct cw_ring *r;
    struct cw_event ev = event(0), out;
    cw_ring_create(&r, 2, NULL);
    ev.n_text = CW_EVENT_TEXT;
    memset(ev.text, 'x', CW_EVENT_TEXT);
    cw_ring_push(r, &ev, NULL);
    ev.n_text = UINT16_MAX;
    cw_ring_push(r, &ev, NULL);
    for (int i = 0; i < 2; i++) {
        ck_assert(cw_ring_pop(r, &out));
        ck_assert_uint_eq(out.n_text, CW_EVENT_TEXT);
        ck_assert(memcmp(out.text, ev.text, CW_EVENT_TEXT) == 0);
    }
    cw_ring_destroy(r);
}
END_TEST

/* ---- two threads --------------------------------------------------------------------------- */

struct producer {
    struct cw_ring *ring;
    uint64_t n;
    bool pauses;
    atomic_bool cancel;
    uint64_t pushed; /* read after joining */
    int rc;
};

static void *produce(void *arg) {
    struct producer *p = arg;
    uint64_t state = 3;
    for (p->pushed = 0; p->pushed < p->n; p->pushed++) {
        struct cw_event ev = event(p->pushed);
        p->rc = cw_ring_push(p->ring, &ev, &p->cancel);
        if (p->rc != CW_OK) {
            break;
        }
        if (p->pauses) {
            pause_at_random(&state);
        }
    }
    return NULL;
}

/* Consume as the interface does: sleep on the descriptor, acknowledge, drain. */
static void consume(struct cw_ring *r, uint64_t n, bool pauses) {
    uint64_t got = 0, state = 5;
    while (got < n) {
        struct cw_event ev;
        wait_readable(r);
        cw_ring_ack(r);
        while (cw_ring_pop(r, &ev)) {
            check_event(&ev, got++);
            if (pauses) {
                pause_at_random(&state);
            }
        }
    }
    ck_assert_uint_eq(got, n);
}

static void stream(size_t slots, uint64_t n) {
    struct producer p = {.n = n, .pauses = true};
    pthread_t thread;
    cw_ring_create(&p.ring, slots, NULL);
    pthread_create(&thread, NULL, produce, &p);
    consume(p.ring, n, true);
    pthread_join(thread, NULL);
    ck_assert_int_eq(p.rc, CW_OK);
    struct cw_event ev;
    ck_assert(!cw_ring_pop(p.ring, &ev));
    cw_ring_destroy(p.ring);
}

START_TEST(stream_small) {
    stream(1, N_EVENTS / 50);
    stream(2, N_EVENTS / 50);
    stream(4, N_EVENTS / 10);
}
END_TEST

START_TEST(stream_large) {
    stream(1024, N_EVENTS);
}
END_TEST

/* A producer asleep for room wakes for a cancel, and only then gives up. */
START_TEST(cancel_while_full) {
    for (int round = 0; round < 300; round++) {
        struct producer p = {.n = UINT64_MAX};
        pthread_t thread;
        uint64_t state = (uint64_t)round;
        cw_ring_create(&p.ring, 4, NULL);
        pthread_create(&thread, NULL, produce, &p);
        for (uint64_t i = next(&state) % 3000; i > 0; i--) {
            sched_yield(); /* sometimes it sleeps already, sometimes not yet */
        }
        struct cw_event ev;
        uint64_t got = 0;
        for (uint64_t take = next(&state) % 4; take > 0 && cw_ring_pop(p.ring, &ev); take--) {
            check_event(&ev, got++);
        }
        atomic_store(&p.cancel, true);
        cw_ring_kick(p.ring);
        pthread_join(thread, NULL);
        ck_assert_int_eq(p.rc, CW_ECANCEL);
        while (cw_ring_pop(p.ring, &ev)) {
            check_event(&ev, got++);
        }
        ck_assert_uint_eq(got, p.pushed);
        cw_ring_destroy(p.ring);
    }
}
END_TEST

/* ---- live settings ------------------------------------------------------------------------- */

/* A block in which every value follows from one number, so that a torn one shows. */
static struct cw_sampling block(uint32_t i) {
    struct cw_sampling s;
    memset(&s, 0, sizeof s);
    s.temp = (float)(i & 0xffff);
    s.top_k = (int32_t)i;
    s.n_bias = CW_MAX_BIAS;
    for (int k = 0; k < CW_MAX_BIAS; k++) {
        s.bias[k].id = (int32_t)i + k;
        s.bias[k].bias = s.temp;
    }
    return s;
}

struct writer {
    struct cw_live *live;
    uint32_t n;
};

static void *publish(void *arg) {
    struct writer *w = arg;
    uint64_t state = 7;
    for (uint32_t i = 1; i <= w->n; i++) {
        struct cw_sampling s = block(i);
        cw_live_publish(w->live, &s);
        pause_at_random(&state);
    }
    return NULL;
}

START_TEST(live_settings) {
    struct cw_sampling first = block(0), s;
    struct writer w = {cw_live_create(&first), N_EVENTS / 10};
    pthread_t thread;
    ck_assert_uint_eq(cw_live_load(w.live, &s), 0);
    ck_assert(memcmp(&s, &first, sizeof s) == 0);
    pthread_create(&thread, NULL, publish, &w);
    uint64_t seen = 0, state = 9;
    while (seen < w.n) {
        uint64_t version = cw_live_load(w.live, &s);
        struct cw_sampling want = block((uint32_t)version);
        if (version < seen || memcmp(&s, &want, sizeof s) != 0) {
            ck_abort_msg("version %llu after %llu", (unsigned long long)version,
                         (unsigned long long)seen);
        }
        seen = version;
        pause_at_random(&state);
    }
    pthread_join(thread, NULL);
    ck_assert_uint_eq(seen, w.n);
    /* What was published is there at the very next load. */
    for (uint32_t i = 1; i < 10; i++) {
        struct cw_sampling b = block(i);
        cw_live_publish(w.live, &b);
        cw_live_publish(w.live, &b);
        ck_assert_uint_eq(cw_live_load(w.live, &s), w.n + 2 * i);
        ck_assert_int_eq(s.top_k, (int32_t)i);
    }
    cw_live_destroy(w.live);
}
END_TEST

START_TEST(stop_names) {
    ck_assert_str_eq(cw_stop_name(CW_STOP_EOG), "eos");
    ck_assert_str_eq(cw_stop_name(CW_STOP_STRING), "stop");
    ck_assert_str_eq(cw_stop_name(CW_STOP_LENGTH), "length");
    ck_assert_str_eq(cw_stop_name(CW_STOP_CONTEXT), "context");
    ck_assert_str_eq(cw_stop_name(CW_STOP_CANCEL), "cancel");
    ck_assert_str_eq(cw_stop_name(CW_STOP_ERROR), "error");
}
END_TEST

int main(void) {
    Suite *suite = suite_create("ring");
    TCase *single = tcase_create("one thread"), *two = tcase_create("two threads");
    tcase_set_timeout(single, 60);
    tcase_add_test(single, one_thread);
    tcase_add_test(single, signals);
    tcase_add_test(single, text);
    tcase_add_test(single, stop_names);
    suite_add_tcase(suite, single);
    tcase_set_timeout(two, 900);
    tcase_add_test(two, stream_small);
    tcase_add_test(two, stream_large);
    tcase_add_test(two, cancel_while_full);
    tcase_add_test(two, live_settings);
    suite_add_tcase(suite, two);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
