/* SPDX-License-Identifier: MIT
 *
 * What the generator's thread adds to the engine: evaluating a message while it is typed, guessing
 * tokens from what stands there already, several replies at once, each measured against the same
 * request without it, in turn, and the tokens of both compared; and a branch out of a long chat.
 */
#include "app/cli_bench.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chinwag/clock.h"
#include "chinwag/generator.h"

enum { CONTEXT = 4096, REPLY_TOKENS = 192, WARM_UP_TOKENS = 24 };

/* ---- one request ---------------------------------------------------------------------------- */

/* A request and what came of it. */
struct talk {
    struct cw_ids ids[CW_MAX_REPLIES];
    struct cw_figures figures;
    double begin, end;
    uint64_t count; /* of CW_EV_COUNT */
    struct cw_err err;
};

static void talk_free(struct talk *t) {
    for (size_t i = 0; i < CW_MAX_REPLIES; i++) {
        cw_ids_free(&t->ids[i]);
    }
}

/* Takes events until `last` says that one was the last. */
static int follow(struct cw_generator *g, enum cw_event_kind last, struct talk *t,
                  struct cw_err *err) {
    struct cw_ring *ring = cw_generator_ring(g);
    for (;;) {
        struct pollfd fd = {.fd = cw_ring_fd(ring), .events = POLLIN};
        struct cw_event ev;
        if (poll(&fd, 1, -1) < 0) {
            continue; /* EINTR */
        }
        cw_ring_ack(ring);
        while (cw_ring_pop(ring, &ev)) {
            if (ev.kind == CW_EV_FAILED ||
                (ev.kind == CW_EV_DONE && ev.u.done.stop == CW_STOP_ERROR)) {
                return cw_fail(err, CW_EIO, "%.*s", (int)ev.n_text, ev.text);
            }
            if (t && ev.kind == CW_EV_TOKEN && ev.u.token.first_part && ev.reply < CW_MAX_REPLIES) {
                cw_ids_add(&t->ids[ev.reply], ev.u.token.draw.id);
            }
            if (ev.kind == last) {
                if (t) {
                    t->figures = ev.figures;
                    t->count = ev.kind == CW_EV_COUNT ? ev.u.count.n : 0;
                    t->end = cw_now();
                }
                return CW_OK;
            }
        }
    }
}

static int ask(struct cw_generator *g, const struct cw_request *req, struct talk *t,
               struct cw_err *err) {
    talk_free(t);
    memset(t, 0, sizeof *t);
    t->begin = cw_now();
    int rc = cw_generator_start(g, req, NULL, err);
    return rc == CW_OK ? follow(g, CW_EV_DONE, t, err) : rc;
}

/* A request for `text` as the one message of a conversation, or bare where the model is no chat
 * model. `message` must outlive it. */
static struct cw_request request(const struct cw_generator *g, const char *text,
                                 struct cw_message *message, int64_t max_tokens) {
    struct cw_request req = {
        .max_tokens = max_tokens, .seed = 1, .ignore_eog = true, .think = -1, .n_replies = 1};
    if (cw_generator_has_template(g)) {
        *message = (struct cw_message){.role = "user", .content = text, .len = strlen(text)};
        req.messages = message;
        req.n_messages = 1;
    } else {
        req.raw = text;
        req.raw_len = strlen(text);
    }
    return req;
}

static int open_generator(struct bench *b, double temp, struct cw_generator **g,
                          struct json_object *out, struct cw_err *err) {
    struct app_settings *s = &b->cli->settings;
    struct cw_sampling sampling = s->sampling;
    struct cw_message message;
    struct talk t = {0};
    int asked = s->n_ctx;
    sampling.temp = (float)temp;
    s->n_ctx = asked ? asked : CONTEXT;
    const struct cw_generator_options opt = app_generator_options(s, b->e.path, NULL);
    int rc = cw_generator_create(g, &opt, &sampling, err);
    s->n_ctx = asked;
    if (rc == CW_OK) {
        rc = follow(*g, CW_EV_READY, NULL, err);
    }
    if (rc == CW_OK) {
        const struct cw_model_info *info = cw_generator_info(*g);
        json_object_object_add(out, "model", app_json_text(info->name, strlen(info->name)));
        json_object_object_add(out, "quantisation",
                               app_json_text(info->quant, strlen(info->quant)));
        json_object_object_add(out, "threads", json_object_new_int(info->n_threads));
        json_object_object_add(out, "isa", json_object_new_string(cw_isa_name(info->isa)));
        json_object_object_add(out, "kv",
                               json_object_new_string(s->kv == CW_KV_F16 ? "f16" : "q8_0"));
        struct cw_request req = request(*g, "Hello.", &message, WARM_UP_TOKENS);
        rc = ask(*g, &req, &t, err);
        talk_free(&t);
    }
    return rc;
}

static bool same_ids(const struct cw_ids *a, const struct cw_ids *b) {
    return a->n == b->n && (a->n == 0 || memcmp(a->v, b->v, a->n * sizeof *a->v) == 0);
}

/* ---- typing --------------------------------------------------------------------------------- */

/* Sixty words; their number in front makes every message a new one to the cache. */
static const char *const openings[] = {"One", "Two", "Three", "Four", "Five", "Six", "Seven"};
static const char letter[] =
    " evening last week we walked along the river and talked about the old stone bridge, which the "
    "town "
    "wants to replace with a wider one; my neighbour thinks that the new bridge will bring too "
    "many cars, while I believe that a good path for bicycles would do more. What would you ask "
    "the engineers before anything is built?";

static void sleep_until(double t) {
    double left;
    while ((left = t - cw_now()) > 0) {
        struct timespec ts = {.tv_sec = (time_t)left,
                              .tv_nsec = (long)((left - (time_t)left) * 1e9)};
        nanosleep(&ts, NULL);
    }
}

/* Type the message, letting the generator see it grow or not, and ask for one token. */
static int type_message(struct cw_generator *g, size_t number, double rate, bool prepare,
                        double *ttft, struct cw_err *err) {
    struct cw_buf text = {0};
    struct cw_message message;
    struct talk t = {0};
    cw_buf_printf(&text, "%s%s", openings[number % (sizeof openings / sizeof *openings)], letter);
    if (number >= sizeof openings / sizeof *openings) {
        cw_buf_printf(&text, " (%zu)", number);
    }
    double begin = cw_now();
    for (size_t i = 1; prepare && i <= text.len; i++) {
        sleep_until(begin + (double)i / rate);
        char keep = text.data[i];
        text.data[i] = '\0';
        struct cw_request draft = request(g, text.data, &message, 1);
        cw_generator_prepare(g, &draft);
        text.data[i] = keep;
    }
    struct cw_request req = request(g, text.data, &message, 1);
    req.started_s = cw_now();
    int rc = ask(g, &req, &t, err);
    *ttft = t.figures.ttft_s;
    talk_free(&t);
    cw_buf_free(&text);
    return rc;
}

int bench_typing(struct bench *b, struct json_object *out, struct cw_err *err) {
    struct cw_generator *g = NULL;
    double plain[BENCH_MAX_RUNS];
    double prepared[BENCH_MAX_RUNS];
    size_t n = 0;
    int rc = open_generator(b, 0, &g, out, err);
    for (; n < (size_t)b->n_runs && rc == CW_OK; n++) {
        rc = type_message(g, 2 * n, (double)b->rate, false, &plain[n], err);
        if (rc == CW_OK) {
            rc = type_message(g, 2 * n + 1, (double)b->rate, true, &prepared[n], err);
        }
    }
    cw_generator_destroy(g);
    if (rc == CW_OK) {
        double a = bench_median(plain, n);
        double c = bench_median(prepared, n);
        bench_add(out, "characters_s", (double)b->rate);
        bench_add(out, "ttft_plain_s", a);
        bench_add(out, "ttft_typing_s", c);
        bench_add(out, "ratio", c / a);
    }
    return rc;
}

void bench_typing_print(struct json_object *out) {
    cw_buf_printf(cli_out(), "a message of 60 words, typed at %.0f characters/s\n",
                  bench_number(out, "characters_s"));
    bench_put(out, "ttft_plain_s", "first token after Enter", "s", 3);
    bench_put(out, "ttft_typing_s", "evaluated while typing", "s", 3);
    bench_put(out, "ratio", "ratio", "", 2);
}

/* ---- lookup --------------------------------------------------------------------------------- */

static const char code_question[] =
    "Here is a C function:\n\n```c\n"
    "static size_t count_words(const char *text, size_t length) {\n"
    "    size_t words = 0;\n"
    "    bool inside = false;\n"
    "    for (size_t i = 0; i < length; i++) {\n"
    "        bool blank = text[i] == ' ' || text[i] == '\\n' || text[i] == '\\t';\n"
    "        if (!blank && !inside) {\n"
    "            words++;\n"
    "        }\n"
    "        inside = !blank;\n"
    "    }\n"
    "    return words;\n"
    "}\n```\n\n"
    "Write the whole function again, unchanged except that `words` is renamed to `n_words`. "
    "Answer with the code only.";
static const char prose_question[] =
    "Write a story about a lighthouse keeper who finds a letter in a bottle.";

/* `to_end`: the reply ends where the model ends it, for what comes after code repeated is none. */
static int race_lookup(struct bench *b, struct cw_generator *g, const char *name, const char *text,
                       bool to_end, double temp, struct json_object *rows, struct cw_err *err) {
    double off[BENCH_MAX_RUNS];
    double on[BENCH_MAX_RUNS];
    struct talk t[2] = {{.begin = 0}};
    bool same = true;
    size_t n = 0;
    int rc = CW_OK;
    for (; n < (size_t)b->n_runs && rc == CW_OK; n++) {
        for (int with = 0; with < 2 && rc == CW_OK; with++) {
            struct cw_message message;
            struct cw_request req = request(g, text, &message, REPLY_TOKENS);
            req.ignore_eog = !to_end;
            req.lookup = with != 0;
            rc = ask(g, &req, &t[with], err);
        }
        off[n] = t[0].figures.tps;
        on[n] = t[1].figures.tps;
        same = same && same_ids(&t[0].ids[0], &t[1].ids[0]);
    }
    if (rc == CW_OK) {
        struct json_object *row = json_object_new_object();
        double a = bench_median(off, n);
        double c = bench_median(on, n);
        json_object_object_add(row, "text", json_object_new_string(name));
        bench_add(row, "temp", temp);
        bench_add(row, "off_tps", a);
        bench_add(row, "on_tps", c);
        bench_add(row, "ratio", c / a);
        json_object_object_add(row, "same_tokens", json_object_new_boolean(same));
        json_object_array_add(rows, row);
    }
    talk_free(&t[0]);
    talk_free(&t[1]);
    return rc;
}

int bench_lookup(struct bench *b, struct json_object *out, struct cw_err *err) {
    static const double temps[] = {0, 0.8};
    struct json_object *rows = json_object_new_array();
    struct cw_generator *g = NULL;
    int rc = open_generator(b, 0, &g, out, err);
    json_object_object_add(out, "lookup", rows);
    for (size_t i = 0; i < sizeof temps / sizeof *temps && rc == CW_OK; i++) {
        struct cw_sampling sampling = b->cli->settings.sampling;
        sampling.temp = (float)temps[i];
        cw_generator_publish(g, &sampling);
        rc = race_lookup(b, g, "code", code_question, true, temps[i], rows, err);
        if (rc == CW_OK) {
            rc = race_lookup(b, g, "prose", prose_question, false, temps[i], rows, err);
        }
    }
    cw_generator_destroy(g);
    return rc;
}

void bench_lookup_print(struct json_object *out) {
    struct json_object *rows = json_object_object_get(out, "lookup");
    cw_buf_printf(cli_out(), "%-8s %6s %14s %14s %8s  %s\n", "text", "T", "off tokens/s",
                  "on tokens/s", "ratio", "same tokens");
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        struct json_object *row = json_object_array_get_idx(rows, i);
        bool same = json_object_get_boolean(json_object_object_get(row, "same_tokens"));
        cw_buf_printf(cli_out(), "%-8s %6.1f %14.1f %14.1f %8.2f  %s\n", bench_text(row, "text"),
                      bench_number(row, "temp"), bench_number(row, "off_tps"),
                      bench_number(row, "on_tps"), bench_number(row, "ratio"), same ? "yes" : "no");
    }
}

/* ---- several replies ------------------------------------------------------------------------ */

/* Tokens a second of a request, all replies together, from its first token on. */
static double total_tps(const struct talk *t) {
    size_t n = 0;
    for (size_t i = 0; i < CW_MAX_REPLIES; i++) {
        n += t->ids[i].n;
    }
    double s = t->end - t->begin - t->figures.prompt_s;
    return s > 0 ? (double)n / s : 0;
}

int bench_replies(struct bench *b, struct json_object *out, struct cw_err *err) {
    struct cw_generator *g = NULL;
    double one[BENCH_MAX_RUNS];
    double all[BENCH_MAX_RUNS];
    struct talk single = {0};
    struct talk many = {0};
    bool same = true;
    size_t n = 0;
    int rc = open_generator(b, 0.8, &g, out, err);
    for (; n < (size_t)b->n_runs && rc == CW_OK; n++) {
        struct cw_message message;
        struct cw_request req = request(g, prose_question, &message, b->n_decode);
        rc = ask(g, &req, &single, err);
        one[n] = total_tps(&single);
        req.n_replies = (uint32_t)b->n_replies;
        if (rc == CW_OK) {
            rc = ask(g, &req, &many, err);
        }
        all[n] = total_tps(&many);
        same = same && same_ids(&single.ids[0], &many.ids[0]);
    }
    /* Each reply is the one that its seed gives alone. */
    for (int64_t r = 1; r < b->n_replies && rc == CW_OK; r++) {
        struct cw_message message;
        struct cw_request req = request(g, prose_question, &message, b->n_decode);
        req.seed += (uint32_t)r;
        rc = ask(g, &req, &single, err);
        same = same && same_ids(&single.ids[0], &many.ids[r]);
    }
    cw_generator_destroy(g);
    if (rc == CW_OK) {
        double a = bench_median(one, n);
        double c = bench_median(all, n);
        bench_add(out, "replies", (double)b->n_replies);
        bench_add(out, "one_tps", a);
        bench_add(out, "all_tps", c);
        bench_add(out, "ratio", c / a);
        json_object_object_add(out, "same_tokens", json_object_new_boolean(same));
    }
    talk_free(&single);
    talk_free(&many);
    return rc;
}

void bench_replies_print(struct json_object *out) {
    struct json_object *same = json_object_object_get(out, "same_tokens");
    char label[32];
    snprintf(label, sizeof label, "%.0f replies together", bench_number(out, "replies"));
    bench_put(out, "one_tps", "one reply", "tokens/s", 1);
    bench_put(out, "all_tps", label, "tokens/s", 1);
    bench_put(out, "ratio", "ratio", "", 2);
    cw_buf_printf(cli_out(), "%-26s %9s\n", "same tokens as alone",
                  json_object_get_boolean(same) ? "yes" : "no");
}

/* ---- a branch out of a long chat ------------------------------------------------------------- */

/* A message of about `n` tokens. */
static int long_message(struct cw_generator *g, uint64_t n, struct cw_buf *text,
                        struct cw_err *err) {
    struct talk t = {0};
    cw_generator_count(g, letter, sizeof letter - 1, 1);
    int rc = follow(g, CW_EV_COUNT, &t, err);
    for (uint64_t at = 0; rc == CW_OK && at + t.count <= n; at += t.count) {
        cw_buf_printf(text, "%s%s", openings[at % (sizeof openings / sizeof *openings)], letter);
    }
    return rc;
}

static const double PAUSE_S = 0.1;
enum { FORK_TOKENS = 16 };

/* What a reply costs that goes another way at token `at` of the long one: `id` stands there
 * instead. */
static int time_fork(struct cw_generator *g, const char *text, const struct cw_ids *reply,
                     size_t at, int32_t id, struct cw_figures *figures, struct cw_err *err) {
    const struct cw_tokenizer *tokenizer = cw_generator_tokenizer(g);
    struct cw_message messages[2];
    struct cw_buf said = {0};
    struct cw_ids ids = {0};
    struct talk t = {0};
    cw_ids_append(&ids, reply->v, at);
    cw_ids_add(&ids, id);
    for (size_t i = 0; i < ids.n; i++) {
        cw_tokenizer_piece(tokenizer, ids.v[i], false, i == 0, &said);
    }
    struct cw_request req = request(g, text, &messages[0], FORK_TOKENS);
    messages[1] = (struct cw_message){.role = "assistant",
                                      .content = said.data ? said.data : "",
                                      .len = said.len,
                                      .ids = ids.v,
                                      .n_ids = ids.n};
    req.n_messages = 2;
    req.continue_reply = true;
    req.first_position = ids.n;
    sleep_until(cw_now() + PAUSE_S); /* as a person looks before choosing */
    int rc = ask(g, &req, &t, err);
    *figures = t.figures;
    talk_free(&t);
    cw_buf_free(&said);
    cw_ids_free(&ids);
    return rc;
}

int bench_fork(struct bench *b, struct json_object *out, struct cw_err *err) {
    struct cw_generator *g = NULL;
    struct cw_buf text = {0};
    struct cw_message message;
    struct talk t = {0};
    double cost[BENCH_MAX_RUNS], token_s[BENCH_MAX_RUNS];
    uint64_t most_evaluated = 0;
    size_t n = 0;
    int rc = open_generator(b, 0, &g, out, err);
    uint64_t room = b->cli->settings.n_ctx > 0 ? (uint64_t)b->cli->settings.n_ctx : CONTEXT;
    if (rc == CW_OK && !cw_generator_has_template(g)) {
        rc = cw_fail(err, CW_EUNSUP, "a model without a chat template has no chats to branch");
    }
    if (rc == CW_OK) {
        rc = long_message(g, room - room / 4, &text, err);
    }
    if (rc == CW_OK) {
        struct cw_request req = request(g, text.data ? text.data : "", &message, (int64_t)room / 8);
        rc = ask(g, &req, &t, err);
    }
    const struct cw_ids *reply = &t.ids[0];
    if (rc == CW_OK && reply->n < 3) {
        rc = cw_fail(err, CW_EFULL, "the reply is too short to branch in it");
    }
    for (; n < (size_t)b->n_runs && rc == CW_OK; n++) {
        size_t at = 1 + (97 * n + 61) % (reply->n - 2); /* here and there */
        struct cw_figures f = {0};
        rc = time_fork(g, text.data, reply, at, reply->v[at + 1], &f, err);
        token_s[n] =
            f.tps > 0 ? 1 / f.tps : 0; /* of the same branch: machines change their speed */
        cost[n] = f.ttft_s - token_s[n] * (double)f.n_evaluated;
        most_evaluated = f.n_evaluated > most_evaluated ? f.n_evaluated : most_evaluated;
    }
    if (rc == CW_OK) {
        bench_add_whole(out, "chat_tokens", (double)t.figures.n_ctx_used);
        bench_add(out, "token_ms", bench_median(token_s, n) * 1e3);
        bench_add(out, "fork_ms", bench_median(cost, n) * 1e3);
        bench_add(out, "fork_ms_worst", cost[n - 1] * 1e3);
        bench_add_whole(out, "evaluated_at_most", (double)most_evaluated);
    }
    cw_generator_destroy(g);
    talk_free(&t);
    cw_buf_free(&text);
    return rc;
}

void bench_fork_print(struct json_object *out) {
    cw_buf_printf(cli_out(), "a branch at some token of a chat of %.0f\n",
                  bench_number(out, "chat_tokens"));
    bench_put(out, "fork_ms", "before its own evaluation", "ms", 1);
    bench_put(out, "fork_ms_worst", "at worst", "ms", 1);
    bench_put(out, "token_ms", "a token's evaluation", "ms", 1);
    bench_put(out, "evaluated_at_most", "tokens evaluated", "", 0);
}
