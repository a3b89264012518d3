/* SPDX-License-Identifier: MIT
 *
 * The generator's thread as an interface sees it: loading, conversations, cancelling, errors, and
 * how much of a conversation is evaluated anew. Replies are checked on models that can say only one
 * thing, caches on tiny random ones. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "chinwag/clock.h"
#include "tests/chat/support.h"
#include "tests/support/markov.h"
#include "tests/support/mkgguf.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* A generous bound for "within 0.3 s" on a machine that does other things too. */
static const double SOON_S = 3;

static void nap(double s) {
    struct timespec t = {(time_t)s, (long)((s - floor(s)) * 1e9)};
    nanosleep(&t, NULL);
}

static void open_markov(struct client *c, const struct markov *k, size_t ring_slots) {
    const char *path = tmp_path("markov.gguf");
    struct cw_generator_options opt = client_options(path);
    markov_save(k, path);
    opt.ring_slots = ring_slots;
    client_open(c, &opt);
}

/* A model that says these pieces. */
static void open_reply(struct client *c, const char *const *pieces, size_t n) {
    struct markov k;
    markov_init(&k);
    for (size_t i = 0; i < n; i++) {
        markov_text(&k, pieces[i]);
    }
    open_markov(c, &k, 0);
    markov_free(&k);
}

/* A model that never stops. */
static void open_endless(struct client *c, size_t ring_slots) {
    struct markov k;
    markov_init(&k);
    markov_text(&k, "tick ");
    markov_text(&k, "tack ");
    markov_loop(&k, 0);
    open_markov(c, &k, ring_slots);
    markov_free(&k);
}

/* The linker leads the loader here (--wrap), so that a load can be held up. */
static bool gate_shut;
static sem_t gate;

int __real_cw_model_load(struct cw_model **out, const struct cw_gguf *g,
                         const struct cw_model_options *opt, struct cw_err *err);
int __wrap_cw_model_load(struct cw_model **out, const struct cw_gguf *g,
                         const struct cw_model_options *opt, struct cw_err *err);

int __wrap_cw_model_load(struct cw_model **out, const struct cw_gguf *g,
                         const struct cw_model_options *opt, struct cw_err *err) {
    while (gate_shut && sem_wait(&gate) != 0) {
    }
    gate_shut = false;
    return __real_cw_model_load(out, g, opt, err);
}

/* And the generator here, so that a key can be pressed at a chosen instant: right before or right
 * after it looks at the settings for the draw at `position`. */
static struct {
    bool armed, after;
    int64_t next; /* position of the next look; the first of a request is not for a draw */
    int64_t position;
    struct cw_sampling set;
} key;

uint64_t __real_cw_live_load(struct cw_live *l, struct cw_sampling *out);
uint64_t __wrap_cw_live_load(struct cw_live *l, struct cw_sampling *out);

uint64_t __wrap_cw_live_load(struct cw_live *l, struct cw_sampling *out) {
    bool now = key.armed && key.next++ == key.position;
    if (now && !key.after) {
        cw_live_publish(l, &key.set);
    }
    uint64_t version = __real_cw_live_load(l, out);
    if (now && key.after) {
        cw_live_publish(l, &key.set);
    }
    return version;
}

/* ---- loading ------------------------------------------------------------------------------- */

START_TEST(loading) {
    struct client c = {0};
    struct cw_sampling s;
    const char *pieces[] = {"x"};
    const char *path = tmp_path("load.gguf");
    struct cw_generator_options opt = client_options(path);
    struct cw_event ev;
    uint64_t last = 0;
    size_t n_loading = 0;
    markov_write(path, pieces, 1);
    cw_sampling_default(&s);
    ck_assert_int_eq(cw_generator_create(&c.g, &opt, &s, NULL), CW_OK);
    c.ring = cw_generator_ring(c.g);
    for (ev = client_next(&c); ev.kind == CW_EV_LOADING; ev = client_next(&c)) {
        ck_assert_uint_ge(ev.u.progress.done, last);
        ck_assert_uint_le(ev.u.progress.done, ev.u.progress.total);
        last = ev.u.progress.done;
        n_loading++;
    }
    ck_assert_uint_gt(n_loading, 0);
    while (ev.kind == CW_EV_NOTICE) {
        ev = client_next(&c);
    }
    ck_assert_int_eq(ev.kind, CW_EV_READY);
    ck_assert_uint_eq(ev.request, 0);
    ck_assert_ptr_nonnull(memmem(ev.text, ev.n_text, "markov", 6));
    ck_assert_str_eq(cw_generator_info(c.g)->arch, "llama");
    ck_assert_ptr_nonnull(cw_generator_tokenizer(c.g));
    ck_assert(cw_generator_has_template(c.g));
    ck_assert(!cw_generator_busy(c.g));
    client_close(&c);

    s.temp = NAN;
    ck_assert_int_eq(cw_generator_create(&c.g, &opt, &s, NULL), CW_EINVAL);
    ck_assert_ptr_null(c.g);
    cw_generator_destroy(NULL);
}
END_TEST

START_TEST(loading_fails) {
    struct client c = {0};
    struct cw_sampling s;
    const char *path = tmp_path("wrong.gguf");
    tmp_write(path, "not a model", 11);
    const char *paths[] = {path, "/nowhere/at/all.gguf"};
    for (size_t i = 0; i < N(paths); i++) {
        struct cw_generator_options opt = client_options(paths[i]);
        struct cw_event ev;
        struct cw_message m = user("hello");
        struct cw_request req = chat(&m, 1, 4);
        uint32_t number;
        cw_sampling_default(&s);
        ck_assert_int_eq(cw_generator_create(&c.g, &opt, &s, NULL), CW_OK);
        c.ring = cw_generator_ring(c.g);
        if (i == 1) { /* handed over before anyone knows */
            ck_assert_int_eq(cw_generator_start(c.g, &req, &number, NULL), CW_OK);
        }
        ev = client_until(&c, CW_EV_FAILED);
        ck_assert_ptr_nonnull(memmem(ev.text, ev.n_text, paths[i], strlen(paths[i])));
        ck_assert_ptr_null(cw_generator_info(c.g));
        ck_assert_ptr_null(cw_generator_tokenizer(c.g));
        ck_assert(!cw_generator_has_template(c.g));
        if (i == 0) {
            ck_assert_int_eq(cw_generator_start(c.g, &req, &number, NULL), CW_OK);
        }
        ev = client_until(&c, CW_EV_DONE);
        ck_assert(ev.request == number && ev.u.done.stop == CW_STOP_ERROR);
        ck_assert_ptr_nonnull(memmem(ev.text, ev.n_text, paths[i], strlen(paths[i])));
        client_close(&c);
    }
}
END_TEST

static void all_recommendations(struct mkgguf *g) {
    const int32_t minus = -1;
    mkgguf_u32(g, "general.sampling.top_k", 40);
    mkgguf_f32(g, "general.sampling.top_p", 0.5f);
    mkgguf_f32(g, "general.sampling.min_p", 0.25f);
    mkgguf_f32(g, "general.sampling.penalty_repeat", 1.5f);
    mkgguf_scalar(g, "general.sampling.penalty_last_n", CW_GGUF_I32, &minus, sizeof minus);
    mkgguf_f32(g, "general.sampling.xtc_probability", 0.125f);
    mkgguf_f32(g, "general.sampling.xtc_threshold", 0.75f);
    mkgguf_str(g, "general.sampling.sequence", "kpt");
    mkgguf_u32(g, "general.sampling.mirostat", 2);
}

static void bad_recommendations(struct mkgguf *g) {
    mkgguf_str(g, "general.sampling.top_k", "many");
    mkgguf_f32(g, "general.sampling.top_p", 1.5f);
    mkgguf_f32(g, "general.sampling.penalty_last_n", 1e30f);
}

START_TEST(defaults_of_the_file) {
    struct client c;
    struct markov k;
    struct cw_sampling s;
    markov_init(&k);
    markov_text(&k, "x");
    k.temp = 0.3f;
    open_markov(&c, &k, 0);
    cw_sampling_default(&s);
    ck_assert_uint_eq(cw_generator_file_sampling(c.g, &s), CW_SET_TEMP);
    ck_assert(s.temp == 0.3f && s.top_p == 0.95f);
    client_close(&c);
    k.temp = 77; /* no sampler can follow that */
    open_markov(&c, &k, 0);
    cw_sampling_default(&s);
    ck_assert_uint_eq(cw_generator_file_sampling(c.g, &s), 0);
    ck_assert(s.temp == 0.8f);
    ck_assert_ptr_nonnull(strstr(c.notices.data, "general.sampling.temp is not used"));
    client_close(&c);
    k.temp = -1;
    k.keys = all_recommendations;
    open_markov(&c, &k, 0);
    memset(&s, 0xff, sizeof s); /* whatever stood there */
    ck_assert_uint_eq(cw_generator_file_sampling(c.g, &s),
                      CW_SET_TOP_P | CW_SET_TOP_K | CW_SET_MIN_P | CW_SET_REPEAT | CW_SET_LAST_N |
                          CW_SET_XTC_P | CW_SET_XTC_T);
    ck_assert(s.temp == 0.8f && s.top_k == 40 && s.top_p == 0.5f && s.min_p == 0.25f &&
              s.penalty_repeat == 1.5f && s.penalty_last_n == -1 && s.xtc_probability == 0.125f &&
              s.xtc_threshold == 0.75f && s.n_bias == 0);
    ck_assert_ptr_nonnull(
        strstr(c.notices.data, "not used: general.sampling.sequence, general.sampling.mirostat"));
    client_close(&c);
    k.keys = bad_recommendations;
    open_markov(&c, &k, 0);
    ck_assert_uint_eq(cw_generator_file_sampling(c.g, &s), 0);
    ck_assert(s.top_k == 0 && s.top_p == 0.95f && s.penalty_last_n == 64);
    ck_assert_ptr_nonnull(strstr(c.notices.data, "top_k is not used"));
    ck_assert_ptr_nonnull(strstr(c.notices.data, "top_p is not used"));
    ck_assert_ptr_nonnull(strstr(c.notices.data, "penalty_last_n is not used"));
    client_close(&c);
    markov_free(&k);
}
END_TEST

/* ---- replies ------------------------------------------------------------------------------- */

START_TEST(a_reply) {
    struct client c;
    const char *pieces[] = {"Blue", ", because", " the sky \xf0\x9f", "\xa6\x86", "."};
    struct cw_message m = user("Name a colour.");
    struct cw_request req = chat(&m, 1, -1);
    open_reply(&c, pieces, N(pieces));
    for (int i = 0; i < 3; i++) {
        uint32_t number = client_start(&c, &req);
        ck_assert_uint_eq(number, (uint32_t)i + 1);
        struct cw_event ev = client_next(&c);
        ck_assert_int_eq(ev.kind, CW_EV_PROMPT);
        ck_assert_uint_eq(ev.u.prompt.retokenised_from, SIZE_MAX);
        ck_assert_uint_eq(ev.u.prompt.n_reused, i == 0 ? 0 : ev.u.prompt.n_prompt - 1);
        ev = client_until(&c, CW_EV_DONE);
        ck_assert(ev.request == number && ev.u.done.stop == CW_STOP_EOG);
        ck_assert(!cw_generator_busy(c.g));
        ck_assert_uint_eq(c.text.len, strlen("Blue, because the sky \xf0\x9f\xa6\x86."));
        ck_assert(memcmp(c.text.data, "Blue, because the sky \xf0\x9f\xa6\x86.", c.text.len) == 0);
        ck_assert_uint_gt(c.n_progress, 0);
        ck_assert_uint_eq(ev.figures.n_tokens, c.ids.n);
        ck_assert_int_eq(c.ids.v[c.ids.n - 1], MARKOV_END);
        ck_assert_uint_eq(ev.figures.n_prompt, c.prompt.u.prompt.n_prompt);
        ck_assert_uint_eq(ev.figures.n_evaluated + ev.figures.n_reused, ev.figures.n_prompt);
        ck_assert(ev.figures.ttft_s > 0);
    }
    client_close(&c);
}
END_TEST

START_TEST(one_at_a_time) {
    struct client c;
    struct cw_message m = user("go");
    struct cw_request req = chat(&m, 1, -1);
    struct cw_err err;
    open_endless(&c, 4); /* it waits for its reader, so it is still at it */
    client_start(&c, &req);
    ck_assert(cw_generator_busy(c.g));
    ck_assert_int_eq(cw_generator_start(c.g, &req, NULL, &err), CW_EBUSY);
    client_until(&c, CW_EV_TOKEN);
    ck_assert_int_eq(cw_generator_start(c.g, &req, NULL, &err), CW_EBUSY);
    cw_generator_cancel(c.g);
    client_until(&c, CW_EV_DONE);
    ck_assert(!cw_generator_busy(c.g));
    req.max_tokens = 2;
    client_run(&c, &req);
    ck_assert_uint_eq(c.ids.n, 2);
    client_close(&c);
}
END_TEST

START_TEST(stop_strings_and_limits) {
    struct client c;
    const char *pieces[] = {"go ", "E", "ND", "!", " tail"};
    const char *stop[] = {"END!"};
    struct cw_message m = user("go");
    struct cw_request req = chat(&m, 1, -1);
    open_reply(&c, pieces, N(pieces));
    req.stops = stop;
    req.n_stops = 1;
    struct cw_event ev = client_run(&c, &req);
    ck_assert_int_eq(ev.u.done.stop, CW_STOP_STRING);
    ck_assert_str_eq(c.text.data, "go ");
    req.max_tokens = 3;
    ev = client_run(&c, &req);
    ck_assert_int_eq(ev.u.done.stop, CW_STOP_LENGTH);
    ck_assert_str_eq(c.text.data, "go END");
    client_close(&c);
}
END_TEST

START_TEST(long_pieces_come_in_parts) {
    struct client c;
    struct markov k;
    struct cw_buf piece = {0};
    struct cw_message m = user("say much");
    struct cw_request req = chat(&m, 1, -1);
    for (int i = 0; i < 700; i++) {
        cw_buf_puts(&piece, "\xc3\xaa");
    }
    cw_buf_puts(&piece, "end");
    markov_init(&k);
    markov_text(&k, piece.data);
    open_markov(&c, &k, 2);
    client_start(&c, &req);
    size_t parts = 0;
    for (struct cw_event ev = client_next(&c); ev.kind != CW_EV_DONE; ev = client_next(&c)) {
        if (ev.kind == CW_EV_TOKEN && ev.u.token.position == 0) {
            ck_assert(ev.u.token.first_part == (parts == 0));
            ck_assert(((unsigned char)ev.text[0] & 0xc0) != 0x80);
            parts++;
        }
    }
    ck_assert_uint_eq(parts, (piece.len + CW_EVENT_TEXT - 1) / CW_EVENT_TEXT);
    ck_assert_uint_eq(c.text.len, piece.len);
    ck_assert(memcmp(c.text.data, piece.data, piece.len) == 0);
    client_close(&c);
    cw_buf_free(&piece);
    markov_free(&k);
}
END_TEST

START_TEST(bytes_that_are_no_text) {
    struct client c;
    const char *pieces[] = {"a\xff", "\xc0", "\x1b[31m", "%n%s", "\xe4\xbd"};
    struct cw_message m = user("\xff\xfe %s");
    struct cw_request req = chat(&m, 1, -1);
    open_reply(&c, pieces, N(pieces));
    client_run(&c, &req);
    ck_assert_str_eq(c.text.data, "a\xff\xc0\x1b[31m%n%s\xe4\xbd");
    client_close(&c);
}
END_TEST

START_TEST(thinking) {
    struct client c;
    struct markov k;
    struct cw_message m = user("why?");
    struct cw_request req = chat(&m, 1, -1);
    /* By control tokens. */
    markov_init(&k);
    markov_control(&k, MARKOV_THINK);
    markov_text(&k, "\nhm");
    markov_control(&k, MARKOV_END_THINK);
    markov_text(&k, "\n\nso");
    open_markov(&c, &k, 0);
    client_run(&c, &req);
    ck_assert_str_eq(c.thought.data, "hm");
    ck_assert_str_eq(c.text.data, "so");
    client_close(&c);
    markov_free(&k);
    /* Opened by the template. */
    markov_init(&k);
    markov_text(&k, "hm");
    markov_text(&k, "</thi");
    markov_text(&k, "nk>so");
    k.chat_template = "{{ messages[0].content }}<|im_start|>assistant\n<think>{{ '\n' }}";
    open_markov(&c, &k, 0);
    client_run(&c, &req);
    ck_assert_str_eq(c.thought.data, "hm");
    ck_assert_str_eq(c.text.data, "so");
    client_close(&c);
    markov_free(&k);
    /* As text. */
    const char *pieces[] = {"<th", "ink>", "hm</think>", "so"};
    open_reply(&c, pieces, N(pieces));
    client_run(&c, &req);
    ck_assert_str_eq(c.thought.data, "hm");
    ck_assert_str_eq(c.text.data, "so");
    client_close(&c);
}
END_TEST

START_TEST(counting) {
    struct client c;
    struct cw_message m = user("a");
    struct cw_request req = chat(&m, 1, 20);
    open_endless(&c, 0);
    cw_generator_count(c.g, "four", 4, 7);
    struct cw_event ev = client_until(&c, CW_EV_COUNT);
    ck_assert(ev.u.count.serial == 7 && ev.u.count.n == 4);
    /* Asked during a reply: answered after it, the newest question only. */
    client_start(&c, &req);
    for (uint64_t i = 100; i < 120; i++) {
        cw_generator_count(c.g, "seven!!", 7, i);
    }
    bool done = false, answered = false;
    while (!answered) {
        ev = client_next(&c);
        done = done || ev.kind == CW_EV_DONE;
        answered = ev.kind == CW_EV_COUNT && ev.u.count.serial == 119;
        ck_assert(ev.kind != CW_EV_COUNT || ev.u.count.n == 7);
    }
    if (!done) {
        client_until(&c, CW_EV_DONE);
    }
    cw_generator_count(c.g, "", 0, 8);
    ev = client_until(&c, CW_EV_COUNT);
    ck_assert(ev.u.count.serial == 8 && ev.u.count.n == 0);
    client_close(&c);
}
END_TEST

/* ---- a full ring --------------------------------------------------------------------------- */

static long resident_kib(void) {
    long size, resident = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f != NULL) {
        if (fscanf(f, "%ld %ld", &size, &resident) != 2) {
            resident = 0;
        }
        fclose(f);
    }
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Four slots, and a reader that looks away for two seconds and then reads slowly. */
START_TEST(a_slow_reader) {
    struct client c;
    struct cw_message m = user("count");
    struct cw_request req = chat(&m, 1, 60);
    struct cw_event ev;
    open_endless(&c, 4);
    client_start(&c, &req);
    ev = client_until(&c, CW_EV_TOKEN);
    nap(0.5);
    long before = resident_kib();
    nap(1.5);
    ck_assert_int_le(resident_kib() - before, 512);
    for (; ev.kind != CW_EV_DONE; ev = client_next(&c)) {
        nap(0.02);
    }
    ck_assert(ev.u.done.stop == CW_STOP_LENGTH && c.ids.n == 60);
    ck_assert_uint_eq(c.text.len, 300);
    for (size_t i = 0; i < 300; i += 10) {
        ck_assert(memcmp(c.text.data + i, "tick tack ", 10) == 0);
    }
    /* Again, without end, until the reader has had enough. */
    req.max_tokens = -1;
    client_start(&c, &req);
    ev = client_until(&c, CW_EV_TOKEN);
    nap(0.2);
    double asked = cw_now();
    cw_generator_cancel(c.g);
    for (; ev.kind != CW_EV_DONE; ev = client_next(&c)) {
        nap(0.02);
    }
    ck_assert_int_eq(ev.u.done.stop, CW_STOP_CANCEL);
    ck_assert(cw_now() - asked < SOON_S);
    /* No event was lost on the way: what was told is what was drawn. */
    ck_assert_uint_eq(c.ids.n, ev.figures.n_tokens);
    ck_assert_uint_eq(c.text.len, 5 * c.ids.n);
    client_close(&c);
}
END_TEST

/* ---- cancelling ---------------------------------------------------------------------------- */

static struct cw_event cancel_now(struct client *c) {
    double asked = cw_now();
    cw_generator_cancel(c->g);
    struct cw_event ev = client_until(c, CW_EV_DONE);
    ck_assert(cw_now() - asked < SOON_S);
    ck_assert_int_eq(ev.u.done.stop, CW_STOP_CANCEL);
    return ev;
}

/* The load does not get on until the cancelled request has been told to be over. */
START_TEST(cancel_while_loading) {
    for (int i = 0; i < 6; i++) {
        struct client c = {0};
        struct cw_sampling s;
        struct cw_generator_options opt = client_options(tiny_model("tiny-mixed-Q4_K_M.gguf"));
        struct cw_message m = user("hello");
        struct cw_request req = chat(&m, 1, 4);
        cw_sampling_default(&s);
        opt.ring_slots = i < 3 ? 1 : 0;
        sem_init(&gate, 0, 0);
        gate_shut = true;
        ck_assert_int_eq(cw_generator_create(&c.g, &opt, &s, NULL), CW_OK);
        c.ring = cw_generator_ring(c.g);
        if (i % 3 == 1) { /* once it hangs */
            while (client_until(&c, CW_EV_LOADING).u.progress.done < 3) {
            }
        }
        for (int again = 0; again <= i % 3; again++) {
            client_start(&c, &req);
            cancel_now(&c);
            ck_assert_ptr_null(cw_generator_info(c.g));
        }
        client_start(&c, &req); /* this one waits for the model */
        sem_post(&gate);
        client_until(&c, CW_EV_READY);
        struct cw_event ev = client_until(&c, CW_EV_DONE);
        ck_assert(ev.u.done.stop == CW_STOP_LENGTH || ev.u.done.stop == CW_STOP_EOG);
        client_close(&c);
        sem_destroy(&gate);
    }
}
END_TEST

START_TEST(cancel_in_every_phase) {
    struct client c;
    struct cw_buf text = {0};
    struct cw_generator_options opt = client_options(tiny_model("tiny-mixed-Q4_K_M.gguf"));
    opt.session = (struct cw_session_options){.n_ctx = 4096, .chunk = 32};
    opt.ring_slots = 8; /* it cannot run ahead of who reads */
    client_open(&c, &opt);
    for (int i = 0; i < 3000; i++) {
        cw_buf_putc(&text, (char)('!' + i * 7 % 90));
    }
    struct cw_message m = user(text.data);
    struct cw_request req = chat(&m, 1, -1);
    req.ignore_eog = true;
    const enum cw_event_kind phases[] = {CW_EV_PROMPT, CW_EV_PROGRESS, CW_EV_TOKEN};
    for (size_t i = 0; i < N(phases); i++) {
        client_start(&c, &req);
        client_until(&c, phases[i]);
        struct cw_event ev = cancel_now(&c);
        ck_assert_uint_eq(ev.figures.n_tokens, c.ids.n);
        if (phases[i] != CW_EV_TOKEN) {
            ck_assert_uint_lt(ev.figures.n_evaluated, 1500);
            ck_assert_uint_eq(c.ids.n, 0);
        }
        text.data[0]++; /* nothing to be taken from the cache */
    }
    /* At once, when idle (nothing happens), and the next request works. */
    client_start(&c, &req);
    cancel_now(&c);
    cw_generator_cancel(c.g);
    struct cw_message hello = user("hello");
    req = chat(&hello, 1, 3);
    req.ignore_eog = true;
    struct cw_event ev = client_run(&c, &req);
    ck_assert(ev.u.done.stop == CW_STOP_LENGTH && c.ids.n == 3);
    client_close(&c);
    cw_buf_free(&text);
}
END_TEST

/* Cut inside a character, the part that came is whole. */
START_TEST(cancel_in_a_character) {
    struct client c;
    struct markov k;
    struct cw_message m = user("duck");
    struct cw_request req = chat(&m, 1, -1);
    markov_init(&k);
    markov_text(&k, "d ");
    markov_text(&k, "\xf0\x9f");
    markov_text(&k, "\xa6");
    markov_text(&k, "\x86");
    markov_loop(&k, 1);
    open_markov(&c, &k, 1);
    for (int i = 0; i < 6; i++) {
        client_start(&c, &req);
        for (int n = 0; n <= i; n++) {
            client_until(&c, CW_EV_TOKEN);
        }
        cancel_now(&c);
        ck_assert_uint_eq((c.text.len - 2) % 4, 0);
    }
    client_close(&c);
    markov_free(&k);
}
END_TEST

static struct client shared;

static void *cancel_later(void *arg) {
    nap(0.05);
    cw_generator_cancel(shared.g);
    return NULL;
}

START_TEST(cancel_from_another_thread) {
    pthread_t thread;
    struct cw_message m = user("go");
    struct cw_request req = chat(&m, 1, -1);
    open_endless(&shared, 0);
    for (int i = 0; i < 5; i++) {
        client_start(&shared, &req);
        pthread_create(&thread, NULL, cancel_later, NULL);
        enum cw_stop stop = client_until(&shared, CW_EV_DONE).u.done.stop;
        ck_assert(stop == CW_STOP_CANCEL || stop == CW_STOP_CONTEXT);
        pthread_join(thread, NULL);
    }
    client_close(&shared);
}
END_TEST

/* Leaving in every state: nothing hangs, nothing is lost (address and leak sanitizers look on). */
START_TEST(leaving_in_every_state) {
    struct cw_sampling s;
    struct cw_message m = user("hello");
    struct cw_request req = chat(&m, 1, -1);
    struct markov k;
    const char *path = tmp_path("leave.gguf");
    markov_init(&k);
    markov_text(&k, "tick");
    markov_loop(&k, 0);
    markov_save(&k, path);
    markov_free(&k);
    cw_sampling_default(&s);
    for (int state = 0; state < 8; state++) {
        struct client c = {0};
        struct cw_generator_options opt = client_options(state == 6 ? "/nowhere.gguf" : path);
        opt.ring_slots = state == 3 ? 1 : 0; /* full already while loading */
        ck_assert_int_eq(cw_generator_create(&c.g, &opt, &s, NULL), CW_OK);
        c.ring = cw_generator_ring(c.g);
        if (state == 1 || state == 3 || state == 5 || state == 7) {
            client_start(&c, &req);
        }
        if (state == 2 || state == 4) {
            client_until(&c, CW_EV_READY);
        } else if (state == 5) {
            client_until(&c, CW_EV_TOKEN);
        } else if (state == 6) {
            client_until(&c, CW_EV_FAILED);
        } else if (state == 7) {
            client_until(&c, CW_EV_PROMPT);
        }
        if (state == 4) { /* a question nobody waits for */
            cw_generator_count(c.g, "abc", 3, 1);
        }
        client_close(&c);
    }
}
END_TEST

/* ---- live settings ------------------------------------------------------------------------- */

/* Published while a reply runs: the change takes hold at the first draw after it, neither sooner
 * nor later. Which draw that is follows from the times in the events. All draws before are as
 * without the change, all from there on as if it had been asked for at that position. */
START_TEST(a_change_is_told_where_it_took_hold) {
    struct cw_generator_options opt = client_options(tiny_model("tiny-tail-Q8_0.gguf"));
    struct client c;
    struct cw_message m = user("random");
    struct cw_request req = chat(&m, 1, 60);
    struct cw_sampling hot, cold;
    cw_sampling_default(&hot);
    hot.temp = 4;
    hot.top_p = 1;
    cold = hot;
    cold.temp = 0.05f;
    req.seed = 5;
    req.ignore_eog = true;
    opt.ring_slots = 1;
    client_open(&c, &opt);
    for (uint64_t after = 0; after < 12; after++) {
        int32_t ids[60];
        double drawn[60];
        struct cw_event ev;
        cw_generator_publish(c.g, &hot);
        req.n_at = 0;
        client_start(&c, &req);
        do {
            ev = client_until(&c, CW_EV_TOKEN);
            drawn[ev.u.token.position] = ev.figures.last_s;
        } while (ev.u.token.position < after);
        double before = cw_now();
        cw_generator_publish(c.g, &cold);
        while (ev.kind != CW_EV_DONE) {
            ev = client_next(&c);
            if (ev.kind == CW_EV_TOKEN) {
                drawn[ev.u.token.position] = ev.figures.last_s;
            }
        }
        ck_assert_uint_eq(c.n_changes, 1);
        ck_assert_uint_eq(c.ids.n, 60);
        uint64_t at = c.change.u.change.position;
        ck_assert(at > after && at <= after + 3);
        ck_assert(drawn[at] >= before);
        ck_assert(c.change.u.change.from.temp == hot.temp);
        ck_assert(c.change.u.change.to.temp == cold.temp);
        memcpy(ids, c.ids.v, sizeof ids);
        cw_generator_publish(c.g, &hot);
        struct cw_at change = {at, cold};
        req.at = &change;
        req.n_at = 1;
        client_run(&c, &req);
        ck_assert(memcmp(ids, c.ids.v, sizeof ids) == 0);
        ck_assert(c.n_changes == 1 && c.change.u.change.position == at);
        for (int off = -1; off <= 1; off += 2) { /* one token sooner or later shows */
            change.position = at + (uint64_t)off;
            client_run(&c, &req);
            ck_assert(memcmp(ids, c.ids.v, sizeof ids) != 0);
        }
    }
    client_close(&c);
}
END_TEST

/* The same with the key pressed at every instant there is between draws k and k + 1. */
START_TEST(a_key_changes_the_very_next_token) {
    struct cw_generator_options opt = client_options(tiny_model("tiny-tail-Q8_0.gguf"));
    struct client c;
    struct cw_message m = user("random");
    struct cw_request req = chat(&m, 1, 60);
    struct cw_sampling hot;
    const int64_t at[] = {0, 1, 50};
    cw_sampling_default(&hot);
    hot.temp = 4;
    hot.top_p = 1;
    req.seed = 5;
    req.ignore_eog = true;
    client_open(&c, &opt);
    for (size_t i = 0; i < 2 * N(at); i++) {
        int32_t ids[60];
        int64_t k = at[i / 2];
        cw_generator_publish(c.g, &hot);
        key.set = hot;
        key.set.temp = 0.05f;
        key.after = i % 2;
        key.position = key.after ? k : k + 1;
        key.next = -1;
        key.armed = true;
        client_run(&c, &req);
        key.armed = false;
        memcpy(ids, c.ids.v, sizeof ids);
        ck_assert_uint_eq(c.n_changes, 1);
        ck_assert_int_eq((int64_t)c.change.u.change.position, k + 1);
        /* Told by position it is the same reply, one position off it is not. */
        for (int off = -1; off <= 1; off++) {
            struct cw_at change = {(uint64_t)(k + 1 + off), key.set};
            struct cw_request told = req;
            told.at = &change;
            told.n_at = 1;
            cw_generator_publish(c.g, &hot);
            client_run(&c, &told);
            ck_assert((memcmp(ids, c.ids.v, sizeof ids) == 0) == (off == 0));
        }
    }
    client_close(&c);
}
END_TEST

START_TEST(changes_at_positions) {
    struct client c;
    struct cw_message m = user("x");
    struct cw_request req = chat(&m, 1, 8);
    struct cw_at at[3];
    open_endless(&c, 0);
    for (int i = 0; i < 3; i++) {
        at[i].position = (uint64_t)(i * 2); /* 0, 2, 4 */
        cw_sampling_default(&at[i].sampling);
        at[i].sampling.temp = i == 1 ? 0.5f : 0.25f;
    }
    req.at = at;
    req.n_at = 3;
    client_start(&c, &req);
    uint64_t expect = 0;
    for (struct cw_event ev = client_next(&c); ev.kind != CW_EV_DONE; ev = client_next(&c)) {
        if (ev.kind == CW_EV_CHANGE) {
            ck_assert_uint_eq(ev.u.change.position, expect);
            ck_assert_uint_eq(c.ids.n, expect); /* told before that token */
            expect += 2;
        }
    }
    ck_assert_uint_eq(c.n_changes, 3);
    /* The same settings again are no change; descending positions are refused. */
    struct cw_sampling live = at[0].sampling;
    cw_generator_publish(c.g, &live);
    req.n_at = 1;
    client_run(&c, &req);
    ck_assert_uint_eq(c.n_changes, 0);
    at[1].position = 0;
    at[0].position = 1;
    req.n_at = 2;
    ck_assert_int_eq(cw_generator_start(c.g, &req, NULL, NULL), CW_EINVAL);
    client_close(&c);
}
END_TEST

START_TEST(seeds_repeat) {
    struct cw_message m = user("once upon a time");
    struct cw_request req = chat(&m, 1, 24);
    int32_t ids[24];
    req.ignore_eog = true;
    for (int way = 0; way < 4; way++) {
        struct client c;
        struct cw_sampling s;
        struct cw_generator_options opt = client_options(tiny_model("tiny-mixed-Q4_K_M.gguf"));
        opt.model.n_threads = way == 1 ? 4 : 1;
        opt.naive = way == 2;
        client_open(&c, &opt);
        cw_sampling_default(&s);
        s.temp = 1;
        cw_generator_publish(c.g, &s);
        req.seed = 7;
        for (int again = 0; again < 2; again++) {
            client_run(&c, &req);
            if (way == 0 && again == 0) {
                memcpy(ids, c.ids.v, sizeof ids);
            }
            ck_assert(memcmp(ids, c.ids.v, sizeof ids) == 0);
        }
        req.seed = 8;
        client_run(&c, &req);
        ck_assert(memcmp(ids, c.ids.v, sizeof ids) != 0);
        client_close(&c);
    }
}
END_TEST

/* ---- conversations ------------------------------------------------------------------------- */

static void free_reply(struct cw_message *m) {
    free((void *)m->content);
    free((void *)m->ids);
}

/* A copy of the reply just received. */
static struct cw_message keep_reply(struct client *c) {
    struct cw_message m = client_reply(c);
    int32_t *ids = cw_reallocarray(NULL, m.n_ids, sizeof *ids);
    memcpy(ids, m.ids, m.n_ids * sizeof *ids);
    m.content = cw_strndup(m.len > 0 ? m.content : "", m.len);
    m.ids = ids;
    return m;
}

/* Five turns. The model is random and its replies are cut by length, so their ids are hardly ever
 * what their text would give; the third is forced to ids that certainly are not: the merged token
 * apart. Each turn then evaluates what is new and nothing else, and ends with the very logits of a
 * session that never saw the conversation grow. */
START_TEST(five_turns) {
    struct cw_generator_options opt = client_options(tiny_model("tiny-mixed-Q4_K_M.gguf"));
    struct client c, fresh;
    struct cw_message messages[16];
    size_t n = 0;
    opt.session.n_ctx = 2048;
    client_open(&c, &opt);
    for (int turn = 0; turn < 5; turn++) {
        char text[64];
        snprintf(text, sizeof text, "question number %d", turn);
        messages[n++] = user(strdup(text));
        struct cw_request req = chat(messages, n, 17);
        req.ignore_eog = true;
        req.detail = true;
        if (turn == 2) {
            /* "the" byte by byte, after a reply of the model's would have been whole tokens. */
            const char *forced = "the thing in the";
            int32_t *ids = cw_reallocarray(NULL, strlen(forced), sizeof *ids);
            for (size_t i = 0; i < strlen(forced); i++) {
                char one[2] = {forced[i], '\0'};
                ids[i] = cw_tokenizer_find(cw_generator_tokenizer(c.g),
                                           one[0] == ' ' ? "\u0120" : one, one[0] == ' ' ? 2 : 1);
                ck_assert_int_ge(ids[i], 0);
            }
            client_run(&c, &req); /* what it says itself is dropped */
            messages[n] = message("assistant", strdup(forced));
            messages[n].ids = ids;
            messages[n].n_ids = strlen(forced);
            n++;
            continue;
        }
        struct cw_event ev = client_run(&c, &req);
        ck_assert_int_eq(ev.u.done.stop, CW_STOP_LENGTH);
        if (turn == 1 || turn == 4) {
            /* New: the last token drawn, the end of the reply and its line end, the next header
             * "<|im_start|>user\n", the text, end and line end, "<|im_start|>assistant\n". */
            size_t glue = 1 + 2 + 1 + strlen("user\n") + 2 + 1 + strlen("assistant\n");
            ck_assert_uint_le(ev.figures.n_evaluated, strlen(text) + glue);
            ck_assert_uint_gt(ev.figures.n_evaluated, 0);
            ck_assert_uint_eq(c.prompt.u.prompt.retokenised_from, SIZE_MAX);
        }
        /* The same conversation, cold. */
        struct cw_ids ids = {0};
        struct cw_draw *draws = cw_calloc(17, sizeof *draws);
        cw_ids_append(&ids, c.ids.v, c.ids.n);
        client_open(&fresh, &opt);
        uint32_t number = client_start(&fresh, &req);
        size_t k = 0;
        for (ev = client_next(&fresh); ev.kind != CW_EV_DONE; ev = client_next(&fresh)) {
            if (ev.kind == CW_EV_TOKEN && ev.u.token.first_part) {
                draws[k++] = ev.u.token.draw;
            }
        }
        ck_assert_uint_eq(ev.request, number);
        ck_assert_uint_eq(fresh.prompt.u.prompt.n_reused, 0);
        ck_assert_uint_eq(fresh.prompt.u.prompt.n_prompt, c.prompt.u.prompt.n_prompt);
        ck_assert_uint_eq(fresh.ids.n, ids.n);
        ck_assert(memcmp(fresh.ids.v, ids.v, ids.n * sizeof *ids.v) == 0);
        /* Again warm: entropies and alternatives are functions of all logits. */
        client_start(&c, &req);
        k = 0;
        for (ev = client_next(&c); ev.kind != CW_EV_DONE; ev = client_next(&c)) {
            if (ev.kind == CW_EV_TOKEN && ev.u.token.first_part) {
                ck_assert(memcmp(&draws[k++], &ev.u.token.draw, sizeof *draws) == 0);
            }
        }
        client_close(&fresh);
        cw_ids_free(&ids);
        free(draws);
        messages[n++] = keep_reply(&c);
    }
    for (size_t i = 0; i < n; i++) {
        free_reply(&messages[i]);
    }
    client_close(&c);
}
END_TEST

/* The reply ended by an end token, a limit, a cancel: the second turn reuses all but the last. */
START_TEST(second_turns) {
    struct cw_message messages[3];
    const char *pieces[] = {"first", " second", " third"};
    const char *chatml_trimming =
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}x<|im_end|>\n"
        "{% endfor %}<|im_start|>assistant{{ '\n' }}";
    for (int way = 0; way < 3; way++) {
        struct client c;
        open_reply(&c, pieces, N(pieces));
        messages[0] = user("one");
        struct cw_request req = chat(messages, 1, way == 1 ? 2 : -1);
        client_run(&c, &req);
        size_t in_cache = c.done.figures.n_ctx_used;
        ck_assert_uint_eq(in_cache, c.prompt.u.prompt.n_prompt + c.ids.n - 1);
        messages[1] = keep_reply(&c);
        messages[2] = user("two");
        req = chat(messages, 3, -1);
        client_run(&c, &req);
        ck_assert_uint_eq(c.prompt.u.prompt.n_reused, in_cache);
        ck_assert_uint_eq(c.prompt.u.prompt.retokenised_from, SIZE_MAX);
        /* Without the ids its text is spelt in bytes: less is reused, and it is said from where. */
        size_t first = c.prompt.u.prompt.n_prompt;
        client_close(&c);
        if (way == 2) {
            open_reply(&c, pieces, N(pieces));
            req = chat(messages, 1, -1);
            client_run(&c, &req);
            size_t prompt = c.prompt.u.prompt.n_prompt;
            const int32_t *ids = messages[1].ids;
            messages[1].ids = NULL;
            req = chat(messages, 3, -1);
            client_run(&c, &req);
            ck_assert_uint_eq(c.prompt.u.prompt.n_reused, prompt);
            ck_assert_uint_eq(c.prompt.u.prompt.retokenised_from, prompt);
            ck_assert_uint_gt(c.prompt.u.prompt.n_prompt, first);
            messages[1].ids = ids;
            client_close(&c);
        }
        free_reply(&messages[1]);
    }
    /* A template that writes replies otherwise. */
    struct client c;
    struct markov k;
    markov_init(&k);
    markov_text(&k, " padded ");
    k.chat_template = chatml_trimming;
    open_markov(&c, &k, 0);
    messages[0] = user("one");
    struct cw_request req = chat(messages, 1, -1);
    client_run(&c, &req);
    ck_assert_str_eq(c.text.data, " padded ");
    size_t prompt = c.prompt.u.prompt.n_prompt;
    messages[1] = keep_reply(&c);
    messages[2] = user("two");
    req = chat(messages, 3, -1);
    client_run(&c, &req);
    ck_assert_uint_eq(c.prompt.u.prompt.retokenised_from, prompt);
    free_reply(&messages[1]);
    client_close(&c);
    markov_free(&k);
}
END_TEST

START_TEST(continued_replies) {
    struct client c;
    struct cw_message messages[2];
    const char *pieces[] = {"one", " two", " three", " four"};
    open_reply(&c, pieces, N(pieces));
    messages[0] = user("count");
    struct cw_request req = chat(messages, 1, 2);
    client_run(&c, &req);
    ck_assert_str_eq(c.text.data, "one two");
    messages[1] = keep_reply(&c);
    req = chat(messages, 2, -1);
    req.continue_reply = true;
    client_run(&c, &req);
    ck_assert_str_eq(c.text.data, " three four");
    ck_assert_int_eq(c.done.u.done.stop, CW_STOP_EOG);
    ck_assert_uint_eq(c.done.figures.n_evaluated,
                      1); /* the token that was drawn but not evaluated */
    free_reply(&messages[1]);
    /* One of no length begins. */
    messages[1] = message("assistant", "");
    client_run(&c, &req);
    ck_assert_str_eq(c.text.data, "one two three four");
    req = chat(messages, 0, -1);
    req.continue_reply = true;
    ck_assert_int_eq(cw_generator_start(c.g, &req, NULL, NULL), CW_EINVAL);
    client_close(&c);
}
END_TEST

START_TEST(odd_conversations) {
    struct client c;
    const char *pieces[] = {"yes"};
    struct cw_message m = user("");
    struct cw_request req = chat(&m, 1, -1);
    struct cw_err err;
    open_reply(&c, pieces, 1);
    ck_assert_int_eq(client_run(&c, &req).u.done.stop, CW_STOP_EOG); /* an empty message */
    req.n_messages = 0;
    ck_assert_int_eq(client_run(&c, &req).u.done.stop, CW_STOP_EOG); /* none: the header alone */
    ck_assert_str_eq(c.text.data, "yes");
    m = (struct cw_message){.role = "user", .content = "a\0b<|im_end|>", .len = 13};
    req.n_messages = 1;
    ck_assert_int_eq(client_run(&c, &req).u.done.stop, CW_STOP_EOG);
    size_t n = c.prompt.u.prompt.n_prompt;
    m = (struct cw_message){.role = "user", .content = "a\0bxxxxxxxxxx", .len = 13};
    client_run(&c, &req); /* typed markers are ten characters as others are */
    ck_assert_uint_eq(c.prompt.u.prompt.n_prompt, n);
    /* Nothing to evaluate; nothing asked; two things asked. */
    req = (struct cw_request){.raw = "", .max_tokens = 3, .think = -1};
    ck_assert_int_eq(client_run(&c, &req).u.done.stop, CW_STOP_ERROR);
    ck_assert_int_eq(c.done.u.done.code, CW_EINVAL);
    ck_assert_uint_gt(c.done.n_text, 0);
    req.raw = NULL;
    ck_assert_int_eq(cw_generator_start(c.g, &req, NULL, &err), CW_EINVAL);
    req.raw = "x";
    req.ids = c.ids.v;
    ck_assert_int_eq(cw_generator_start(c.g, &req, NULL, &err), CW_EINVAL);
    /* Ids that are none. */
    const int32_t wrong[] = {65, 1 << 30};
    req = (struct cw_request){.ids = wrong, .n_ids = 2, .max_tokens = 3, .think = -1};
    ck_assert_int_eq(client_run(&c, &req).u.done.code, CW_EINVAL);
    req.n_ids = 1;
    ck_assert_int_eq(client_run(&c, &req).u.done.stop, CW_STOP_LENGTH);
    client_close(&c);
}
END_TEST

START_TEST(raw_text) {
    struct client c;
    struct markov k;
    struct cw_message m = user("x");
    struct cw_request req = chat(&m, 1, 3);
    markov_init(&k);
    markov_text(&k, " and then");
    k.chat_template = NULL;
    open_markov(&c, &k, 0);
    ck_assert(!cw_generator_has_template(c.g));
    client_run(&c, &req);
    ck_assert(c.done.u.done.stop == CW_STOP_ERROR && c.done.u.done.code == CW_ETEMPLATE);
    req = (struct cw_request){.raw = "once\n", .raw_len = 5, .max_tokens = -1, .think = -1};
    client_run(&c, &req);
    ck_assert_str_eq(c.text.data, " and then");
    ck_assert_uint_eq(c.prompt.u.prompt.n_prompt, 5);
    client_close(&c);
    markov_free(&k);
}
END_TEST

/* ---- templates that refuse ----------------------------------------------------------------- */

static const char strict_template[] =
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system here') }}"
    "{% endif %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant{{ '\n' "
    "}}";

START_TEST(system_text_is_folded) {
    struct client c, plain;
    struct markov k;
    struct cw_message messages[] = {message("system", "be kind"), user("hello"), user("again")};
    struct cw_message folded = user("be kind\n\nhello");
    markov_init(&k);
    markov_text(&k, "ok");
    k.chat_template = strict_template;
    open_markov(&c, &k, 0);
    struct cw_request req = chat(messages, 2, -1);
    cw_buf_clear(&c.notices);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(client_run(&c, &req).u.done.stop, CW_STOP_EOG);
        ck_assert_str_eq(c.text.data, "ok");
    }
    size_t lines = 0;
    for (size_t i = 0; i < c.notices.len; i++) {
        lines += c.notices.data[i] == '\n';
    }
    ck_assert_uint_eq(lines, 1); /* said, and said once */
    size_t n = c.prompt.u.prompt.n_prompt;
    open_markov(&plain, &k, 0);
    req = chat(&folded, 1, -1);
    client_run(&plain, &req);
    ck_assert_uint_eq(plain.prompt.u.prompt.n_prompt, n);
    client_close(&plain);
    /* Refused for another reason: its words, and the chat goes on. */
    req = chat(messages + 1, 2, -1);
    client_run(&c, &req);
    ck_assert(c.done.u.done.stop == CW_STOP_ERROR && c.done.u.done.code == CW_ETEMPLATE);
    ck_assert_ptr_nonnull(memmem(c.done.text, c.done.n_text, "roles must alternate", 20));
    req = chat(messages + 1, 1, -1);
    ck_assert_int_eq(client_run(&c, &req).u.done.stop, CW_STOP_EOG);
    /* A system message alone has nowhere to go. */
    req = chat(messages, 1, -1);
    client_run(&c, &req);
    ck_assert_ptr_nonnull(memmem(c.done.text, c.done.n_text, "no system here", 14));
    client_close(&c);
    markov_free(&k);
}
END_TEST

START_TEST(broken_template) {
    struct client c;
    struct markov k;
    struct cw_message m = user("hello");
    struct cw_request req = chat(&m, 1, 3);
    markov_init(&k);
    markov_text(&k, "ok");
    k.chat_template = "line one\n{% frobnicate %}";
    open_markov(&c, &k, 0);
    ck_assert_ptr_nonnull(memmem(c.notices.data, c.notices.len, "frobnicate", 10));
    ck_assert(cw_generator_has_template(c.g));
    client_run(&c, &req);
    ck_assert(c.done.u.done.stop == CW_STOP_ERROR && c.done.u.done.code == CW_ETEMPLATE);
    ck_assert_ptr_nonnull(memmem(c.done.text, c.done.n_text, "frobnicate", 10));
    ck_assert_ptr_nonnull(memmem(c.done.text, c.done.n_text, "2", 1)); /* the line */
    req = (struct cw_request){.raw = "\n", .raw_len = 1, .max_tokens = -1, .think = -1};
    client_run(&c, &req);
    ck_assert_str_eq(c.text.data, "ok");
    client_close(&c);
    markov_free(&k);
}
END_TEST

/* ---- limits and damage --------------------------------------------------------------------- */

START_TEST(too_long_for_the_context) {
    const char *path = tmp_path("small.gguf");
    struct client c;
    struct markov k;
    struct cw_buf text = {0};
    struct cw_generator_options opt = client_options(path);
    markov_init(&k);
    markov_text(&k, "tick ");
    markov_loop(&k, 0);
    markov_save(&k, path);
    markov_free(&k);
    opt.session.n_ctx = 64;
    client_open(&c, &opt);
    for (int i = 0; i < 500; i++) {
        cw_buf_putc(&text, 'a');
    }
    struct cw_message m = user(text.data);
    struct cw_request req = chat(&m, 1, -1);
    client_run(&c, &req);
    ck_assert(c.done.u.done.stop == CW_STOP_ERROR && c.done.u.done.code == CW_EFULL);
    char size[32];
    snprintf(size, sizeof size, "%zu", c.done.figures.n_prompt);
    ck_assert_uint_gt(c.done.figures.n_prompt, 500);
    ck_assert_ptr_nonnull(memmem(c.done.text, c.done.n_text, size, strlen(size)));
    ck_assert_ptr_nonnull(memmem(c.done.text, c.done.n_text, "64", 2));
    /* One that fits runs until the context is full, and that is said. */
    m = user("short");
    client_run(&c, &req);
    ck_assert_int_eq(c.done.u.done.stop, CW_STOP_CONTEXT);
    ck_assert_uint_gt(c.done.n_text, 0);
    ck_assert_uint_eq(c.done.figures.n_ctx_used, 64);
    ck_assert_uint_eq(c.prompt.u.prompt.n_prompt + c.ids.n, 65);
    client_close(&c);
    cw_buf_free(&text);
}
END_TEST

/* The file is cut short under a running chat: the request fails by the file's name, the program
 * does not, and the next request is answered too. */
START_TEST(damaged_file) {
    struct client c;
    const char *path = tmp_path("damaged.gguf");
    struct cw_buf data = {0};
    FILE *f = fopen(tiny_model("tiny-llama-Q4_0.gguf"), "rb");
    ck_assert_ptr_nonnull(f);
    for (int b = fgetc(f); b != EOF; b = fgetc(f)) {
        cw_buf_putc(&data, (char)b);
    }
    fclose(f);
    tmp_write(path, data.data, data.len);
    struct cw_generator_options opt = client_options(path);
    client_open(&c, &opt);
    struct cw_message m = user("hello");
    struct cw_request req = chat(&m, 1, 4);
    req.ignore_eog = true;
    ck_assert_int_eq(client_run(&c, &req).u.done.stop, CW_STOP_LENGTH);
    ck_assert_int_eq(truncate(path, 70000), 0);
    m = user("are you still there?");
    for (int i = 0; i < 2; i++) {
        client_run(&c, &req);
        ck_assert(c.done.u.done.stop == CW_STOP_ERROR && c.done.u.done.code == CW_EIO);
        ck_assert_ptr_nonnull(memmem(c.done.text, c.done.n_text, path, strlen(path)));
    }
    client_close(&c);
    cw_buf_free(&data);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("generator");
    const struct {
        const char *name;
        const TTest *tests[10];
    } cases[] = {
        {"loading", {loading, loading_fails, defaults_of_the_file}},
        {"replies",
         {a_reply, one_at_a_time, stop_strings_and_limits, long_pieces_come_in_parts,
          bytes_that_are_no_text, thinking, counting, a_slow_reader}},
        {"cancelling",
         {cancel_while_loading, cancel_in_every_phase, cancel_in_a_character,
          cancel_from_another_thread, leaving_in_every_state}},
        {"settings",
         {a_change_is_told_where_it_took_hold, a_key_changes_the_very_next_token,
          changes_at_positions, seeds_repeat}},
        {"conversations",
         {five_turns, second_turns, continued_replies, odd_conversations, raw_text,
          system_text_is_folded, broken_template}},
        {"limits", {too_long_for_the_context, damaged_file}},
    };
    for (size_t i = 0; i < N(cases); i++) {
        TCase *t = tcase_create(cases[i].name);
        tcase_set_timeout(t, 240);
        for (size_t k = 0; k < N(cases[i].tests) && cases[i].tests[k] != NULL; k++) {
            tcase_add_test(t, cases[i].tests[k]);
        }
        suite_add_tcase(suite, t);
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
