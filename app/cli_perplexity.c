/* SPDX-License-Identifier: MIT
 *
 * `chinwag perplexity`: how well a model predicts a text. Windows of 512 tokens follow each other
 * without overlap, each from an empty cache, and what is left at the end is dropped. Where the file
 * asks for a begin token it takes the place of each window's first. Two figures, exp(mean -ln p):
 * over tokens 1 to 511, and over 257 to 511, which have half a window of context at least.
 */
#include <math.h>
#include <stdlib.h>

#include "app/engine.h"
#include "app/json.h"

enum { WINDOW = 512, HALF = 256 };

struct score {
    const int32_t *ids; /* [WINDOW] */
    int32_t n_vocab;
    double all, half; /* sums of -ln p, in nats */
};

/* -ln softmax(logits)[id] */
static double surprise(const float *logits, int32_t n, int32_t id) {
    double top = -HUGE_VAL;
    double sum = 0;
    for (int32_t i = 0; i < n; i++) {
        top = fmax(top, (double)logits[i]);
    }
    for (int32_t i = 0; i < n; i++) {
        sum += exp((double)logits[i] - top);
    }
    return log(sum) - ((double)logits[id] - top);
}

static void on_row(void *arg, size_t position, const float *logits) {
    struct score *s = arg;
    if (position + 1 < WINDOW) {
        double nats = surprise(logits, s->n_vocab, s->ids[position + 1]);
        s->all += nats;
        s->half += position >= HALF ? nats : 0;
    }
}

static int score_windows(struct app_engine *e, struct cw_ids *ids, size_t n_windows,
                         struct score *s, struct cw_err *err) {
    int32_t bos = cw_tokenizer_adds_bos(e->tokenizer) ? cw_tokenizer_bos(e->tokenizer) : -1;
    const struct cw_session_hooks hooks = {.row = on_row, .arg = s};
    s->n_vocab = cw_model_get_info(e->model)->n_vocab;
    for (size_t i = 0; i < n_windows; i++) {
        int32_t *window = ids->v + i * WINDOW;
        if (bos >= 0) {
            window[0] = bos;
        }
        s->ids = window;
        cw_session_rewind(e->session, 0);
        int rc = cw_session_extend(e->session, window, WINDOW, &hooks, err);
        if (rc != CW_OK) {
            return rc;
        }
    }
    return CW_OK;
}

/* max_windows 0: all of them. */
static int measure(struct app_engine *e, const char *text, size_t len, size_t max_windows,
                   bool json, struct cw_err *err) {
    struct cw_ids ids = {0};
    struct score s = {0};
    int rc = cw_tokenizer_encode(e->tokenizer, text, len, CW_TOK_BOS_EOS, &ids, err);
    size_t n_windows = ids.n / WINDOW;
    if (rc == CW_OK && n_windows == 0) {
        rc = cw_fail(err, CW_EINVAL, "the text has %zu tokens, a window needs %d", ids.n, WINDOW);
    }
    if (max_windows != 0 && n_windows > max_windows) {
        n_windows = max_windows;
    }
    if (rc == CW_OK) {
        rc = score_windows(e, &ids, n_windows, &s, err);
    }
    if (rc == CW_OK) {
        double all = exp(s.all / ((double)n_windows * (WINDOW - 1)));
        double half = exp(s.half / ((double)n_windows * (WINDOW - 1 - HALF)));
        if (json) {
            struct json_object *out = json_object_new_object();
            json_object_object_add(out, "all", app_json_number(all));
            json_object_object_add(out, "half", app_json_number(half));
            json_object_object_add(out, "windows", json_object_new_int64((int64_t)n_windows));
            json_object_object_add(out, "tokens", json_object_new_int64((int64_t)ids.n));
            app_json_put(cli_out(), out, false);
        } else {
            cw_buf_printf(cli_out(), "all   %.4f   (tokens 1 to %d of each window)\n", all,
                          WINDOW - 1);
            cw_buf_printf(cli_out(), "half  %.4f   (tokens %d to %d)\n", half, HALF + 1,
                          WINDOW - 1);
            cw_buf_printf(cli_out(), "%zu windows of %d tokens\n", n_windows, WINDOW);
        }
    }
    cw_ids_free(&ids);
    return rc;
}

static int run(struct cli *c) {
    struct app_engine e = {0};
    struct cw_err err = {0};
    size_t len = 0;
    int64_t max_windows;
    const char *path = cli_value(c, "-f");
    if (!path) {
        return cli_usage(c, "-f is missing");
    }
    if (!cli_int(c, "--windows", 0, INT32_MAX, 0, &max_windows)) {
        return CLI_USAGE;
    }
    char *text = cli_read_file(path, &len, &err);
    int status;
    c->settings.n_ctx = WINDOW;
    if (!text || app_engine_open(&e, &c->settings, &c->paths,
                                 APP_ENGINE_TOKENIZER | APP_ENGINE_SESSION, &err) != CW_OK) {
        status = cli_failed("", &err);
    } else if (measure(&e, text, len, (size_t)max_windows, cli_has(c, "--json"), &err) != CW_OK) {
        status = cli_failed("perplexity", &err);
    } else {
        status = cli_finish();
    }
    app_engine_close(&e);
    free(text);
    return status;
}

static const struct cli_flag flags[] = {
    {"-f --file", "FILE", "The text; - is standard input."},
    {"--windows", "N", "Score only the first N windows; 0: all. [0]"},
    {"--json", NULL, "Print {\"all\":..,\"half\":..,...}."},
};

const struct cli_command cli_perplexity = {
    .name = "perplexity",
    .synopsis = "[-m MODEL] -f FILE [--windows N] [--json] [ENGINE]",
    .summary = "Measure how well the model predicts a text, in windows of 512 tokens.",
    .options = "model pre @engine",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .run = run,
};
