/* SPDX-License-Identifier: MIT
 *
 * `chinwag logits`: what the model thinks comes after given ids, as JSON. Nine significant digits
 * tell any two floats apart, so that equal output means equal bits.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "app/engine.h"

enum { DRAIN_BYTES = 1 << 16 };

struct ranked {
    float logit;
    int32_t id;
};

struct printer {
    int32_t n_vocab;
    int64_t top;           /* 0: the whole vocabulary */
    struct ranked *ranked; /* [n_vocab] scratch for top */
    bool first;
    bool broken; /* standard output is gone */
};

/* Best first; equal ones by lower id; NaN last. */
static int by_rank(const void *pa, const void *pb) {
    const struct ranked *a = pa;
    const struct ranked *b = pb;
    float x = isnan(a->logit) ? -INFINITY : a->logit;
    float y = isnan(b->logit) ? -INFINITY : b->logit;
    if (x != y) {
        return x > y ? -1 : 1;
    }
    return a->id < b->id ? -1 : a->id > b->id;
}

static void print_number(float v) {
    if (isfinite(v)) {
        cw_buf_printf(cli_out(), "%.9g", (double)v);
    } else {
        cw_buf_puts(cli_out(), "null"); /* JSON knows neither infinity nor NaN */
    }
}

static void print_row(struct printer *p, const float *logits) {
    int64_t n = p->top ? p->top : p->n_vocab;
    cw_buf_putc(cli_out(), '[');
    if (p->top) {
        for (int32_t i = 0; i < p->n_vocab; i++) {
            p->ranked[i] = (struct ranked){logits[i], i};
        }
        qsort(p->ranked, (size_t)p->n_vocab, sizeof *p->ranked, by_rank);
    }
    for (int64_t i = 0; i < n; i++) {
        cw_buf_puts(cli_out(), i ? "," : "");
        if (p->top) {
            cw_buf_printf(cli_out(), "[%d,", p->ranked[i].id);
            print_number(p->ranked[i].logit);
            cw_buf_putc(cli_out(), ']');
        } else {
            print_number(logits[i]);
        }
    }
    cw_buf_putc(cli_out(), ']');
    p->broken = !cli_drain(DRAIN_BYTES);
}

static void on_row(void *arg, size_t position, const float *logits) {
    struct printer *p = arg;
    if (!p->broken) {
        cw_buf_puts(cli_out(), p->first ? "" : ",");
        p->first = false;
        print_row(p, logits);
    }
}

static bool on_progress(void *arg, size_t done, size_t total) {
    return ((const struct printer *)arg)->broken;
}

/* The textbook's way, for comparison: each position from an empty cache. */
static int evaluate_naive(struct cw_session *s, const struct cw_ids *ids, bool all,
                          struct printer *p, struct cw_err *err) {
    int rc = CW_OK;
    for (size_t n = all ? 1 : ids->n; n <= ids->n && rc == CW_OK && !p->broken; n++) {
        cw_session_rewind(s, 0);
        rc = cw_session_extend(s, ids->v, n, NULL, err);
        if (rc == CW_OK && all) {
            on_row(p, n - 1, cw_session_logits(s));
        }
    }
    return rc;
}

static int run(struct cli *c) {
    struct app_engine e;
    struct cw_err err = {0};
    struct cw_ids ids = {0};
    struct printer p = {.first = true};
    const char *tokens = cli_value(c, "--tokens");
    bool all = cli_has(c, "--all");
    int64_t top;
    if (!tokens) {
        return cli_usage(c, "--tokens is missing");
    }
    if (!cli_int(c, "--top", 1, INT32_MAX, 0, &top)) {
        return CLI_USAGE;
    }
    if (!cli_parse_ids(tokens, strlen(tokens), INT32_MAX, &ids, &err)) {
        cw_ids_free(&ids);
        return cli_usage(c, "--tokens: %s", err.text);
    }
    if (ids.n == 0) {
        cw_ids_free(&ids);
        return cli_usage(c, "--tokens: there must be one at least");
    }
    if (app_engine_open(&e, &c->settings, &c->paths, APP_ENGINE_SESSION, &err) != CW_OK) {
        cw_ids_free(&ids);
        return cli_failed("", &err);
    }
    p.n_vocab = cw_model_get_info(e.model)->n_vocab;
    p.top = top < p.n_vocab ? top : p.n_vocab;
    if (top) {
        p.ranked = cw_reallocarray(NULL, (size_t)p.n_vocab, sizeof *p.ranked);
    } else {
        p.top = 0;
    }
    cw_buf_printf(cli_out(), "{\"n_tokens\":%zu,\"logits\":", ids.n);
    cw_buf_puts(cli_out(), all ? "[" : "");
    int rc;
    if (c->settings.naive) {
        rc = evaluate_naive(e.session, &ids, all, &p, &err);
    } else {
        const struct cw_session_hooks hooks = {
            .progress = on_progress, .row = all ? on_row : NULL, .arg = &p};
        rc = cw_session_extend(e.session, ids.v, ids.n, &hooks, &err);
    }
    if (rc == CW_OK && !all) {
        print_row(&p, cw_session_logits(e.session));
    }
    int status;
    if (p.broken) {
        status = CLI_FAILED; /* told by the drain */
    } else if (rc != CW_OK) {
        cw_buf_clear(cli_out());
        status = cli_failed("logits", &err);
    } else {
        cw_buf_puts(cli_out(), all ? "]}\n" : "}\n");
        status = cli_finish();
    }
    free(p.ranked);
    cw_ids_free(&ids);
    app_engine_close(&e);
    return status;
}

static const struct cli_flag flags[] = {
    {"--tokens", "IDS", "The ids to evaluate: 1,2,3."},
    {"--all", NULL, "The logits of every position, not only the last."},
    {"--top", "K", "The K best as [id, logit] pairs instead of the whole vocabulary."},
};

const struct cli_command cli_logits = {
    .name = "logits",
    .synopsis = "[-m MODEL] --tokens 1,2,3 [--all] [--top K] [-c N] [ENGINE]",
    .summary = "Print the logits after the given ids as JSON.",
    .options = "model ctx @engine",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .run = run,
};
