/* SPDX-License-Identifier: MIT
 *
 * `chinwag generate`: a reply in ids, as JSON. It runs the same loop as the generator's thread,
 * from ids instead of a conversation. Greedy, unless a seed or any sampling setting is given.
 */
#include <stdlib.h>
#include <string.h>

#include "app/engine.h"
#include "app/json.h"
#include "chinwag/clock.h"
#include "core/chat/generate.h"
#include "core/chat/loader.h"

struct reply {
    struct cw_sampling sampling; /* of the first draws */
    struct cw_at *at;            /* [n_at] in ascending order */
    size_t n_at;
    struct cw_ids ids;
    struct cw_buf text;
};

static void on_settings(void *arg, uint64_t position, struct cw_sampling *out) {
    const struct reply *r = arg;
    *out = r->sampling;
    for (size_t i = 0; i < r->n_at && r->at[i].position <= position; i++) {
        *out = r->at[i].sampling;
    }
}

static int on_token(void *arg, uint64_t position, const struct cw_draw *draw, const char *text,
                    size_t n, const struct cw_figures *figures) {
    struct reply *r = arg;
    if (draw) {
        cw_ids_add(&r->ids, draw->id);
    }
    cw_buf_add(&r->text, text, n);
    return 0;
}

/* One --at, before its place in the order is known. */
struct change {
    int64_t position;
    size_t order; /* on the command line */
    const struct app_option *option;
    const char *value;
};

static int by_position(const void *pa, const void *pb) {
    const struct change *a = pa;
    const struct change *b = pb;
    if (a->position != b->position) {
        return a->position < b->position ? -1 : 1;
    }
    return a->order < b->order ? -1 : a->order > b->order;
}

/* "3:temp=0". */
static int parse_change(struct cli *c, const char *text, struct change *out) {
    char part[64];
    const char *colon = strchr(text, ':');
    const char *equals = colon ? strchr(colon, '=') : NULL;
    if (!equals || (size_t)(colon - text) >= sizeof part ||
        (size_t)(equals - colon - 1) >= sizeof part) {
        return cli_usage(c, "--at: '%s' is not N:KEY=VALUE", text);
    }
    memcpy(part, text, (size_t)(colon - text));
    part[colon - text] = '\0';
    if (!app_parse_int64(part, &out->position) || out->position < 0) {
        return cli_usage(c, "--at: '%s' is not the number of a token", part);
    }
    memcpy(part, colon + 1, (size_t)(equals - colon - 1));
    part[equals - colon - 1] = '\0';
    out->option = *part == '-' ? NULL : app_option_find(part);
    out->value = equals + 1;
    if (!out->option || !(out->option->where & APP_ON_LIVE)) {
        return cli_usage(c, "--at: '%s' is no setting that can change during a reply", part);
    }
    return CLI_OK;
}

/* All --at into r->at: each builds on the ones before it. */
static int parse_changes(struct cli *c, struct reply *r) {
    struct change *changes = NULL;
    struct app_settings running;
    struct cw_err err;
    size_t at = 0;
    int status = CLI_OK;
    for (const char *text; status == CLI_OK && (text = cli_next_value(c, "--at", &at));) {
        changes = cw_reallocarray(changes, r->n_at + 1, sizeof *changes);
        changes[r->n_at].order = r->n_at;
        status = parse_change(c, text, &changes[r->n_at]);
        r->n_at++;
    }
    if (status == CLI_OK && r->n_at > 0) {
        qsort(changes, r->n_at, sizeof *changes, by_position);
        app_settings_init(&running);
        running.sampling = r->sampling;
        r->at = cw_reallocarray(NULL, r->n_at, sizeof *r->at);
        for (size_t i = 0; i < r->n_at && status == CLI_OK; i++) {
            if (app_settings_set(&running, changes[i].option, changes[i].value, APP_LIVE, &err) !=
                CW_OK) {
                status = cli_usage(c, "--at: %s", err.text);
            }
            r->at[i].position = (uint64_t)changes[i].position;
            r->at[i].sampling = running.sampling;
        }
        app_settings_free(&running);
    }
    free(changes);
    return status;
}

static bool sampling_given(const struct app_settings *s) {
    for (size_t i = 0; i < app_n_options; i++) {
        if (strcmp(app_options[i].group, "sampling") == 0 && s->origin[i] == APP_FLAG) {
            return true;
        }
    }
    return false;
}

static void print(const struct reply *r, const struct cw_figures *f, enum cw_stop stop,
                  uint32_t seed, double start) {
    struct json_object *out = json_object_new_object();
    double ttft_s = f->n_tokens ? f->first_s - start : 0;
    json_object_object_add(out, "tokens", app_json_ids(r->ids.v, r->ids.n));
    json_object_object_add(out, "text", app_json_text(r->text.data, r->text.len));
    json_object_object_add(out, "stop", json_object_new_string(cw_stop_name(stop)));
    json_object_object_add(out, "seed", json_object_new_int64(seed));
    json_object_object_add(out, "prompt_tokens", json_object_new_int64((int64_t)f->n_prompt));
    json_object_object_add(out, "prompt_ms", app_json_number(f->prompt_s * 1e3));
    json_object_object_add(out, "ttft_ms", app_json_number(ttft_s * 1e3));
    json_object_object_add(out, "eval_ms", app_json_number(f->eval_s * 1e3));
    json_object_object_add(out, "tokens_per_s", app_json_number(f->tps));
    json_object_object_add(out, "guessed", json_object_new_int64((int64_t)f->n_guessed));
    json_object_object_add(out, "accepted", json_object_new_int64((int64_t)f->n_accepted));
    app_json_put(cli_out(), out, false);
}

static int generate(struct cli *c, struct app_engine *e, struct reply *r,
                    const struct cw_ids *prompt, struct cw_err *err) {
    const struct app_settings *s = &c->settings;
    int32_t n_vocab = cw_model_get_info(e->model)->n_vocab;
    int32_t n_tokens = cw_tokenizer_n_tokens(e->tokenizer);
    struct cw_figures figures = {0};
    enum cw_stop stop = CW_STOP_ERROR;
    size_t n_stops = 0;
    while (s->stops && s->stops[n_stops]) {
        n_stops++;
    }
    struct cw_generate g = {
        .session = e->session,
        .sampler = cw_sampler_create(n_vocab),
        .tokenizer = e->tokenizer,
        .naive = s->naive,
        .lookup = s->lookup != 0 && cw_model_get_info(e->model)->exact,
        .lookup_all = s->lookup == 1,
        .max_tokens = s->n_predict,
        .stops = (const char *const *)s->stops,
        .n_stops = n_stops,
        .seed = cli_seed(s),
        .ignore_eog = cli_has(c, "--ignore-eos"),
        .n_usable = n_tokens < n_vocab ? n_tokens : n_vocab,
        .settings = on_settings,
        .token = on_token,
        .arg = r,
    };
    bool dry = r->sampling.dry_multiplier > 0;
    for (size_t i = 0; i < r->n_at; i++) {
        dry = dry || r->at[i].sampling.dry_multiplier > 0;
    }
    if (dry) {
        cw_set_breakers(g.sampler, e->tokenizer, g.n_usable);
    }
    double start = cw_now();
    int rc = cw_session_extend(e->session, prompt->v, prompt->n, NULL, err);
    figures.n_prompt = figures.n_evaluated = prompt->n;
    figures.prompt_s = cw_now() - start;
    figures.n_ctx = cw_session_n_ctx(e->session);
    figures.n_ctx_used = prompt->n;
    if (rc == CW_OK) {
        rc = cw_generate_run(&g, &stop, &figures, err);
    }
    if (rc == CW_OK) {
        print(r, &figures, stop, g.seed, start);
    }
    cw_sampler_destroy(g.sampler);
    return rc;
}

static int run(struct cli *c) {
    struct app_engine e = {0};
    struct cw_err err = {0};
    struct cw_ids prompt = {0};
    struct reply r = {.sampling = c->settings.sampling};
    const char *tokens = cli_value(c, "--tokens");
    if (!tokens) {
        return cli_usage(c, "--tokens is missing");
    }
    if (!sampling_given(&c->settings)) {
        r.sampling.temp = 0;
    }
    int status = parse_changes(c, &r);
    if (status == CLI_OK && !cli_parse_ids(tokens, strlen(tokens), INT32_MAX, &prompt, &err)) {
        status = cli_usage(c, "--tokens: %s", err.text);
    } else if (status == CLI_OK && prompt.n == 0) {
        status = cli_usage(c, "--tokens: there must be one at least");
    }
    if (status == CLI_OK) {
        if (app_engine_open(&e, &c->settings, &c->paths, APP_ENGINE_TOKENIZER | APP_ENGINE_SESSION,
                            &err) != CW_OK) {
            status = cli_failed("", &err);
        } else if (generate(c, &e, &r, &prompt, &err) != CW_OK) {
            status = cli_failed("generate", &err);
        } else {
            status = cli_finish();
        }
    }
    app_engine_close(&e);
    free(r.at);
    cw_ids_free(&r.ids);
    cw_buf_free(&r.text);
    cw_ids_free(&prompt);
    return status;
}

static const struct cli_flag flags[] = {
    {"--tokens", "IDS", "The ids of the prompt: 1,2,3."},
    {"--at", "N:KEY=VALUE",
     "Change a sampling setting before the draw of token N (from 0); may be "
     "given several times."},
    {"--ignore-eos", NULL, "Go on past end tokens."},
};

const struct cli_command cli_generate = {
    .name = "generate",
    .synopsis = "[-m MODEL] --tokens 1,2,3 -n N [-s SEED] [--at N:KEY=VALUE]... [ENGINE]",
    .summary = "Generate from ids and print ids, text and figures as JSON; greedy unless a seed or "
               "a sampling setting is given.",
    .options = "model pre ctx predict stop @sampling @engine",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .run = run,
};
