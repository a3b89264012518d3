/* SPDX-License-Identifier: MIT
 *
 * The generation loop by itself, on models whose every reply is known and on tiny random ones. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/chat/generate.h"
#include "core/chat/loader.h"
#include "tests/chat/support.h"
#include "tests/support/markov.h"
#include "tests/support/mkgguf.h"

/* ---- a run --------------------------------------------------------------------------------- */

static bool go_on(void *arg, int step) {
    return false;
}

static void open_model(struct cw_loaded *m, const char *path, uint32_t n_ctx, int threads) {
    struct cw_err err;
    struct cw_generator_options opt = client_options(path);
    opt.session.n_ctx = n_ctx;
    opt.model.n_threads = threads;
    int rc = cw_loaded_open(m, &opt, go_on, NULL, &err);
    ck_assert_msg(rc == CW_OK, "%s", err.text);
}

struct run {
    struct cw_generate g;
    struct cw_sampling set;
    struct cw_live *live; /* if not NULL the settings come from here */
    uint64_t publish_at;  /* after the draw of this position `later` is published */
    struct cw_sampling later;
    uint64_t changed_at; /* first position drawn under it */
    uint64_t cancel_at;  /* cancel once this many tokens were told */
    int fail;            /* code to return from the token callback at cancel_at */
    struct cw_ids ids;
    struct cw_buf text;
    struct cw_buf events; /* the text of each call, '|' between */
    struct cw_draw draws[128];
    enum cw_stop stop;
    struct cw_figures figures;
    struct cw_err err;
};

static void settings(void *arg, uint64_t position, struct cw_sampling *out) {
    struct run *r = arg;
    ck_assert_uint_eq(position, r->ids.n);
    *out = r->set;
    if (r->live != NULL) {
        cw_live_load(r->live, out);
        if (out->temp == r->later.temp && r->changed_at == UINT64_MAX) {
            r->changed_at = position;
        }
    }
}

static int token(void *arg, uint64_t position, const struct cw_draw *draw, const char *text,
                 size_t n, const struct cw_figures *figures) {
    struct run *r = arg;
    if (draw != NULL) {
        ck_assert_uint_eq(position, r->ids.n);
        if (position < 128) {
            r->draws[position] = *draw;
        }
        cw_ids_add(&r->ids, draw->id);
        ck_assert_uint_eq(figures->n_tokens, r->ids.n);
    } else {
        ck_assert_uint_gt(n, 0);
    }
    cw_buf_add(&r->text, n > 0 ? text : "", n);
    cw_buf_add(&r->events, n > 0 ? text : "", n);
    cw_buf_putc(&r->events, '|');
    if (r->live != NULL && draw != NULL && position == r->publish_at) {
        cw_live_publish(r->live, &r->later);
    }
    return draw != NULL && r->ids.n == r->cancel_at ? r->fail : CW_OK;
}

static bool is_cancelled(void *arg) {
    struct run *r = arg;
    return r->ids.n >= r->cancel_at && r->fail == CW_OK;
}

static void start(struct run *r, struct cw_loaded *m) {
    memset(r, 0, sizeof *r);
    cw_sampling_default(&r->set);
    r->set.temp = 0;
    r->cancel_at = r->publish_at = r->changed_at = UINT64_MAX;
    r->g = (struct cw_generate){
        .session = m->session,
        .sampler = m->sampler,
        .tokenizer = m->tokenizer,
        .max_tokens = -1,
        .n_usable = m->n_usable,
        .settings = settings,
        .token = token,
        .cancelled = is_cancelled,
        .arg = r,
    };
}

/* Evaluate the prompt and run. */
static int run(struct run *r, const int32_t *prompt, size_t n) {
    struct cw_sync_stats stats;
    cw_session_rewind(r->g.session, 0);
    int rc = cw_session_sync(r->g.session, prompt, n, NULL, &stats, &r->err);
    ck_assert_msg(rc == CW_OK, "%s", r->err.text);
    r->figures.n_prompt = n;
    rc = cw_generate_run(&r->g, &r->stop, &r->figures, &r->err);
    cw_buf_add(&r->text, "", 1);
    r->text.len--;
    cw_buf_add(&r->events, "", 1);
    return rc;
}

static void finish(struct run *r) {
    cw_ids_free(&r->ids);
    cw_buf_free(&r->text);
    cw_buf_free(&r->events);
}

static const int32_t newline = '\n'; /* the prompt that starts a Markov reply */

/* ---- stops --------------------------------------------------------------------------------- */

static void reply(const char *const *pieces, size_t n_pieces, const char *stop_string,
                  int64_t max_tokens, const char *text, const char *events, enum cw_stop stop) {
    struct cw_loaded m;
    struct run r;
    const char *path = tmp_path("reply.gguf");
    markov_write(path, pieces, n_pieces);
    open_model(&m, path, 256, 1);
    start(&r, &m);
    r.g.max_tokens = max_tokens;
    r.g.stops = stop_string != NULL ? &stop_string : NULL;
    r.g.n_stops = stop_string != NULL;
    ck_assert_int_eq(run(&r, &newline, 1), CW_OK);
    ck_assert_str_eq(r.text.data, text);
    ck_assert_str_eq(r.events.data, events);
    ck_assert_int_eq(r.stop, stop);
    /* The last token drawn never went through the model. */
    ck_assert_uint_eq(cw_session_n(m.session), r.ids.n);
    finish(&r);
    cw_loaded_close(&m);
}

#define N(a) (sizeof(a) / sizeof((a)[0]))

START_TEST(stop_strings) {
    const char *hit[] = {"go ", "E", "ND", "!", " tail"};
    reply(hit, N(hit), "END!", -1, "go ", "go ||||", CW_STOP_STRING);
    const char *miss[] = {"go ", "E", "NTER"};
    reply(miss, N(miss), "END!", -1, "go ENTER", "go ||ENTER||", CW_STOP_EOG);
    const char *held[] = {"ple", "as"};
    reply(held, N(held), "asX", -1, "pleas", "ple||as|", CW_STOP_EOG);
    reply(held, N(held), "asX", 2, "pleas", "ple||as|", CW_STOP_LENGTH);
}
END_TEST

START_TEST(lengths) {
    const char *pieces[] = {"one ", "two ", "three"};
    reply(pieces, 3, NULL, -1, "one two three", "one |two |three||", CW_STOP_EOG);
    reply(pieces, 3, NULL, 3, "one two three", "one |two |three|", CW_STOP_LENGTH);
    reply(pieces, 3, NULL, 1, "one ", "one |", CW_STOP_LENGTH);
    struct cw_loaded m;
    struct run r;
    const char *path = tmp_path("none.gguf");
    markov_write(path, pieces, 3);
    open_model(&m, path, 256, 1);
    start(&r, &m);
    r.g.max_tokens = 0;
    ck_assert_int_eq(run(&r, &newline, 1), CW_OK);
    ck_assert(r.stop == CW_STOP_LENGTH && r.ids.n == 0);
    ck_assert_uint_eq(cw_session_n(m.session), 1);
    finish(&r);
    cw_loaded_close(&m);
}
END_TEST

START_TEST(characters) {
    /* A duck and an e with circumflex, cut in their middle; then bytes that are no characters. */
    const char *pieces[] = {"p\xc3", "\252che", " \xf0\x9f", "\xa6", "\x86", "."};
    reply(pieces, N(pieces), NULL, -1, "p\xc3\252che \xf0\x9f\xa6\x86.",
          "p|\xc3\252che| ||\xf0\x9f\xa6\x86|.||", CW_STOP_EOG);
    const char *wrong[] = {"a\xff", "\xc0", "\x80z", "\xe4\xbd"};
    reply(wrong, N(wrong), NULL, -1, "a\xff\xc0\x80z\xe4\xbd", "a\xff|\xc0|\x80z||\xe4\xbd|",
          CW_STOP_EOG);
    /* Cut off by the limit, the character begun is not shown. */
    reply(pieces, N(pieces), NULL, 3, "p\xc3\252che ", "p|\xc3\252che| |", CW_STOP_LENGTH);
}
END_TEST

START_TEST(end_tokens_may_be_ignored) {
    struct cw_loaded m;
    struct run r;
    struct markov k;
    const char *path = tmp_path("eog.gguf");
    markov_init(&k);
    markov_text(&k, "a");
    markov_control(&k, MARKOV_END);
    markov_text(&k, "b");
    markov_loop(&k, 2);
    markov_save(&k, path);
    markov_free(&k);
    open_model(&m, path, 64, 1);
    start(&r, &m);
    ck_assert_int_eq(run(&r, &newline, 1), CW_OK);
    ck_assert(r.stop == CW_STOP_EOG && r.ids.n == 2);
    ck_assert_str_eq(r.text.data, "a");
    finish(&r);
    start(&r, &m);
    r.g.ignore_eog = true;
    r.g.max_tokens = 5;
    ck_assert_int_eq(run(&r, &newline, 1), CW_OK);
    ck_assert(r.stop == CW_STOP_LENGTH && r.ids.n == 5);
    ck_assert_str_eq(r.text.data, "abbb");
    finish(&r);
    cw_loaded_close(&m);
}
END_TEST

START_TEST(context_full) {
    struct cw_loaded m;
    struct run r;
    struct markov k;
    const char *path = tmp_path("endless.gguf");
    markov_init(&k);
    markov_text(&k, "tick");
    markov_text(&k, "tack");
    markov_loop(&k, 0);
    markov_save(&k, path);
    markov_free(&k);
    open_model(&m, path, 32, 1);
    for (int naive = 0; naive < 2; naive++) {
        start(&r, &m);
        r.g.naive = naive;
        ck_assert_int_eq(run(&r, &newline, 1), CW_OK);
        ck_assert_int_eq(r.stop, CW_STOP_CONTEXT);
        ck_assert_uint_eq(r.ids.n, 32); /* 31 in the cache, one more drawn from the last place */
        ck_assert_uint_eq(cw_session_n(m.session), 32);
        ck_assert_uint_eq(r.figures.n_ctx_used, 32);
        ck_assert_uint_eq(r.figures.n_ctx, 32);
        finish(&r);
    }
    cw_loaded_close(&m);
}
END_TEST

START_TEST(nothing_to_continue) {
    struct cw_loaded m;
    struct run r;
    const char *pieces[] = {"x"};
    const char *path = tmp_path("empty.gguf");
    markov_write(path, pieces, 1);
    open_model(&m, path, 32, 1);
    start(&r, &m);
    ck_assert_int_eq(cw_generate_run(&r.g, &r.stop, &r.figures, &r.err), CW_EINVAL);
    ck_assert_int_eq(r.stop, CW_STOP_ERROR);
    finish(&r);
    cw_loaded_close(&m);
}
END_TEST

/* A model that yields NaN: an error, and no token. */
START_TEST(no_numbers) {
    struct cw_loaded m;
    struct run r;
    struct markov k;
    const char *path = tmp_path("nan.gguf");
    markov_init(&k);
    markov_text(&k, "x");
    k.logit = NAN;
    markov_save(&k, path);
    markov_free(&k);
    open_model(&m, path, 32, 1);
    start(&r, &m);
    ck_assert_int_eq(run(&r, &newline, 1), CW_ENUMERIC);
    ck_assert(r.stop == CW_STOP_ERROR && r.ids.n == 0);
    ck_assert_str_ne(r.err.text, "");
    finish(&r);
    cw_loaded_close(&m);
}
END_TEST

START_TEST(cancelled) {
    struct cw_loaded m;
    struct run r;
    struct markov k;
    const char *path = tmp_path("cancel.gguf");
    const char *stop = "tack!";
    markov_init(&k);
    markov_text(&k, "tick");
    markov_text(&k, "tack");
    markov_loop(&k, 0);
    markov_save(&k, path);
    markov_free(&k);
    open_model(&m, path, 64, 1);
    for (int naive = 0; naive < 2; naive++) {
        for (uint64_t n = 0; n < 6; n++) {
            start(&r, &m);
            r.g.naive = naive;
            r.g.stops = &stop;
            r.g.n_stops = 1;
            r.cancel_at = n;
            ck_assert_int_eq(run(&r, &newline, 1), CW_OK);
            ck_assert_int_eq(r.stop, CW_STOP_CANCEL);
            ck_assert_uint_eq(r.ids.n, n);
            /* What was held back for the stop string is part of the reply all the same. */
            ck_assert_uint_eq(r.text.len, 4 * n);
            finish(&r);
        }
    }
    start(&r, &m);
    r.cancel_at = 2;
    r.fail = CW_EIO;
    ck_assert_int_eq(run(&r, &newline, 1), CW_EIO);
    ck_assert(r.stop == CW_STOP_ERROR && r.ids.n == 2);
    finish(&r);
    cw_loaded_close(&m);
}
END_TEST

/* ---- sampling ------------------------------------------------------------------------------ */

static const int32_t prompt[] = {72, 101, 108, 111, 32, 119, 64, 5, 17, 260, 33, 90};

/* The same ids at every step of a cached run, a naive one, with other thread counts and again. */
START_TEST(naive_is_cached) {
    const char *models[] = {"tiny-tail-Q8_0.gguf", "tiny-mixed-Q4_K_M.gguf"};
    for (size_t i = 0; i < N(models); i++) {
        int32_t first[40] = {0};
        for (int way = 0; way < 4; way++) {
            struct cw_loaded m;
            struct run r;
            open_model(&m, tiny_model(models[i]), 128, way == 2 ? 3 : 1);
            start(&r, &m);
            r.set.temp = 1.2f;
            r.g.naive = way == 1;
            r.g.seed = 42;
            r.g.max_tokens = 40;
            r.g.ignore_eog = true;
            ck_assert_int_eq(run(&r, prompt, N(prompt)), CW_OK);
            ck_assert_uint_eq(r.ids.n, 40);
            if (way == 0) {
                memcpy(first, r.ids.v, sizeof first);
            }
            ck_assert(memcmp(first, r.ids.v, sizeof first) == 0);
            finish(&r);
            cw_loaded_close(&m);
        }
    }
}
END_TEST

START_TEST(seeds) {
    struct cw_loaded m;
    int32_t ids[3][20];
    const uint32_t seed[] = {0, 1, 0};
    open_model(&m, tiny_model("tiny-tail-Q8_0.gguf"), 128, 1);
    for (int i = 0; i < 3; i++) {
        struct run r;
        start(&r, &m);
        r.set.temp = 1;
        r.g.seed = seed[i];
        r.g.max_tokens = 20;
        r.g.ignore_eog = true;
        ck_assert_int_eq(run(&r, prompt, N(prompt)), CW_OK);
        memcpy(ids[i], r.ids.v, sizeof ids[i]);
        finish(&r);
    }
    ck_assert(memcmp(ids[0], ids[1], sizeof ids[0]) != 0);
    ck_assert(memcmp(ids[0], ids[2], sizeof ids[0]) == 0);
    cw_loaded_close(&m);
}
END_TEST

/* Settings published between draw k and draw k + 1 are those of draw k + 1, no sooner and no
 * later: each draw is repeated on a cold session under the settings it must have had. */
START_TEST(a_key_changes_the_very_next_token) {
    const uint64_t at[] = {0, 1, 50};
    struct cw_loaded m, cold;
    open_model(&m, tiny_model("tiny-tail-Q8_0.gguf"), 128, 1);
    open_model(&cold, tiny_model("tiny-tail-Q8_0.gguf"), 128, 1);
    for (size_t i = 0; i < N(at); i++) {
        struct run r;
        start(&r, &m);
        r.set.temp = 3;
        r.live = cw_live_create(&r.set);
        r.later = r.set;
        r.later.temp = 0.01f;
        r.publish_at = at[i];
        r.g.seed = 9;
        r.g.max_tokens = (int64_t)at[i] + 6;
        r.g.ignore_eog = true;
        ck_assert_int_eq(run(&r, prompt, N(prompt)), CW_OK);
        ck_assert_uint_eq(r.changed_at, at[i] + 1);
        struct cw_ids all = {0};
        cw_ids_append(&all, prompt, N(prompt));
        bool settings_matter = false;
        for (size_t k = 0; k < r.ids.n; k++) {
            struct cw_draw want, other;
            cw_session_rewind(cold.session, 0);
            ck_assert_int_eq(cw_session_extend(cold.session, all.v, all.n, NULL, NULL), CW_OK);
            const float *logits = cw_session_logits(cold.session);
            cw_sampler_draw(cold.sampler, k <= at[i] ? &r.set : &r.later, logits, cold.n_usable,
                            all.v, all.n, 9, k, false, &want, NULL);
            cw_sampler_draw(cold.sampler, k <= at[i] ? &r.later : &r.set, logits, cold.n_usable,
                            all.v, all.n, 9, k, false, &other, NULL);
            ck_assert_int_eq(r.ids.v[k], want.id);
            ck_assert(r.draws[k].p == want.p);
            settings_matter = settings_matter || other.p != want.p;
            cw_ids_add(&all, r.ids.v[k]);
        }
        ck_assert(settings_matter);
        cw_ids_free(&all);
        cw_live_destroy(r.live);
        finish(&r);
    }
    cw_loaded_close(&m);
    cw_loaded_close(&cold);
}
END_TEST

/* Padding rows of the output matrix are never drawn. */
START_TEST(padding_is_never_drawn) {
    struct cw_loaded m;
    struct run r;
    open_model(&m, tiny_model("tiny-tail-Q8_0.gguf"), 256, 1);
    start(&r, &m);
    r.set.temp = 5;
    r.set.top_p = 1;
    r.g.n_usable = 7;
    r.g.max_tokens = 120;
    r.g.ignore_eog = true;
    ck_assert_int_eq(run(&r, prompt, N(prompt)), CW_OK);
    for (size_t i = 0; i < r.ids.n; i++) {
        ck_assert(r.ids.v[i] >= 0 && r.ids.v[i] < 7);
    }
    finish(&r);
    cw_loaded_close(&m);
}
END_TEST

START_TEST(figures) {
    struct cw_loaded m;
    struct run r;
    open_model(&m, tiny_model("tiny-tail-Q8_0.gguf"), 256, 1);
    start(&r, &m);
    r.g.max_tokens = 30;
    r.g.ignore_eog = true;
    ck_assert_int_eq(run(&r, prompt, N(prompt)), CW_OK);
    const struct cw_figures *f = &r.figures;
    ck_assert_uint_eq(f->n_tokens, 30);
    ck_assert_uint_eq(f->n_prompt, N(prompt));
    ck_assert_uint_eq(f->n_ctx_used, N(prompt) + 29);
    ck_assert(f->ttft_s > 0 && f->last_s > f->first_s);
    ck_assert(f->tps == 29 / (f->last_s - f->first_s));
    finish(&r);
    cw_loaded_close(&m);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("generate");
    TCase *stops = tcase_create("stops"), *sampling = tcase_create("sampling");
    tcase_set_timeout(stops, 120);
    tcase_add_test(stops, stop_strings);
    tcase_add_test(stops, lengths);
    tcase_add_test(stops, characters);
    tcase_add_test(stops, end_tokens_may_be_ignored);
    tcase_add_test(stops, context_full);
    tcase_add_test(stops, nothing_to_continue);
    tcase_add_test(stops, no_numbers);
    tcase_add_test(stops, cancelled);
    suite_add_tcase(suite, stops);
    tcase_set_timeout(sampling, 240);
    tcase_add_test(sampling, naive_is_cached);
    tcase_add_test(sampling, seeds);
    tcase_add_test(sampling, a_key_changes_the_very_next_token);
    tcase_add_test(sampling, padding_is_never_drawn);
    tcase_add_test(sampling, figures);
    suite_add_tcase(suite, sampling);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
