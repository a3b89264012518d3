/* SPDX-License-Identifier: MIT
 *
 * What the cache is worth: the same greedy generation by the textbook's loop, which evaluates all
 * tokens anew at every step, and with the cache, which evaluates one.
 *
 * The naive loop really runs up to 512 tokens. Beyond, where it would take hours, its steps are
 * measured at 16 lengths and summed, a step between two lengths taken on the line between them.
 */
#include "app/cli_bench.h"

#include <stdlib.h>
#include <string.h>

#include "chinwag/clock.h"
#include "core/chat/generate.h"

enum {
    SHORTEST = 64,
    RUN_IN_FULL = 512,
    LONGEST = 2048,
    N_LENGTHS = 16, /* at which steps are measured */
    STEP_RUNS = 3,
};

/* One generation: its ids and the time at which each was there. */
struct race {
    struct cw_ids ids;
    double begin;
    double at[LONGEST]; /* seconds from the start of the prompt's evaluation */
};

static void on_settings(void *arg, uint64_t position, struct cw_sampling *out) {
    cw_sampling_default(out);
    out->temp = 0;
}

static int on_token(void *arg, uint64_t position, const struct cw_draw *draw, const char *text,
                    size_t n, const struct cw_figures *figures) {
    struct race *r = arg;
    if (draw && r->ids.n < LONGEST) {
        r->at[r->ids.n] = cw_now() - r->begin;
        cw_ids_add(&r->ids, draw->id);
    }
    return 0;
}

/* Greedy generation of n tokens after a short prompt, from an empty cache. */
static int run_race(struct bench *b, bool naive, size_t n, struct race *race, struct cw_err *err) {
    int32_t n_vocab = cw_model_get_info(b->e.model)->n_vocab;
    struct cw_figures figures = {0};
    enum cw_stop stop;
    struct cw_generate g = {
        .session = b->e.session,
        .sampler = cw_sampler_create(n_vocab),
        .naive = naive,
        .max_tokens = (int64_t)n,
        .ignore_eog = true,
        .n_usable = n_vocab,
        .settings = on_settings,
        .token = on_token,
        .arg = race,
    };
    cw_session_rewind(b->e.session, 0);
    race->begin = cw_now();
    int rc = cw_session_extend(b->e.session, b->ids, BENCH_PROMPT, NULL, err);
    if (rc == CW_OK) {
        rc = cw_generate_run(&g, &stop, &figures, err);
    }
    cw_sampler_destroy(g.sampler);
    return rc;
}

/* ---- beyond what runs in full --------------------------------------------------------------- */

/* Seconds of a step that evaluates lengths[i] tokens anew. */
struct steps {
    size_t lengths[N_LENGTHS];
    double seconds[N_LENGTHS];
};

static int measure_steps(struct bench *b, size_t first, size_t last, struct steps *s,
                         struct cw_err *err) {
    int rc = CW_OK;
    for (size_t i = 0; i < N_LENGTHS && rc == CW_OK; i++) {
        double runs[STEP_RUNS];
        s->lengths[i] = first + (last - first) * i / (N_LENGTHS - 1);
        for (size_t k = 0; k < STEP_RUNS && rc == CW_OK; k++) {
            cw_session_rewind(b->e.session, 0);
            double begin = cw_now();
            rc = cw_session_extend(b->e.session, b->ids, s->lengths[i], NULL, err);
            runs[k] = cw_now() - begin;
        }
        s->seconds[i] = bench_median(runs, STEP_RUNS);
    }
    return rc;
}

static double step_seconds(const struct steps *s, size_t length) {
    size_t i = 1;
    while (i + 1 < N_LENGTHS && s->lengths[i] < length) {
        i++;
    }
    double width = (double)(s->lengths[i] - s->lengths[i - 1]);
    double t = ((double)length - (double)s->lengths[i - 1]) / width;
    return s->seconds[i - 1] + t * (s->seconds[i] - s->seconds[i - 1]);
}

/* naive[i]: seconds until token i + 1 is there, from `known` on by summed steps. The last drawn
 * token is not evaluated: token i + 1 comes out of a step over the prompt and i tokens. */
static void sum_steps(const struct steps *s, size_t known, size_t n, double *naive) {
    for (size_t i = known; i < n; i++) {
        naive[i] = naive[i - 1] + step_seconds(s, BENCH_PROMPT + i);
    }
}

/* ---- the part ------------------------------------------------------------------------------- */

static void add_rows(struct json_object *out, const struct race *cached, const struct race *naive,
                     const double *naive_at, size_t known, size_t most) {
    struct json_object *rows = json_object_new_array();
    for (size_t n = SHORTEST; n <= most; n *= 2) {
        struct json_object *row = json_object_new_object();
        json_object_object_add(row, "tokens", json_object_new_int64((int64_t)n));
        bench_add(row, "cached_s", cached->at[n - 1]);
        bench_add(row, "naive_s", naive_at[n - 1]);
        bench_add(row, "ratio", naive_at[n - 1] / cached->at[n - 1]);
        json_object_object_add(row, "naive_estimated", json_object_new_boolean(n > known));
        bool same = memcmp(cached->ids.v, naive->ids.v, (n < known ? n : known) * sizeof(int32_t));
        if (n <= known) {
            json_object_object_add(row, "same_tokens", json_object_new_boolean(!same));
        }
        json_object_array_add(rows, row);
    }
    json_object_object_add(out, "naive", rows);
    for (size_t n = 1; n <= most; n++) {
        if (naive_at[n - 1] >= 100 * cached->at[n - 1]) {
            json_object_object_add(out, "tokens_at_100x", json_object_new_int64((int64_t)n));
            break;
        }
    }
}

int bench_naive(struct bench *b, struct json_object *out, struct cw_err *err) {
    struct race *cached = cw_calloc(1, sizeof *cached);
    struct race *naive = cw_calloc(1, sizeof *naive);
    double *naive_at = cw_calloc(LONGEST, sizeof *naive_at);
    struct steps steps;
    int rc = bench_open(b, LONGEST + BENCH_PROMPT + 1, out, err);
    size_t most = LONGEST, known = RUN_IN_FULL;
    if (rc == CW_OK) {
        /* A smaller context, asked for by -c, ends the table earlier. */
        while (most > SHORTEST && most + BENCH_PROMPT > cw_session_n_ctx(b->e.session)) {
            most /= 2;
        }
        known = most < known ? most : known;
        rc = bench_warm_up(b, b->e.session, err);
    }
    if (rc == CW_OK) {
        rc = run_race(b, false, most, cached, err);
    }
    if (rc == CW_OK) {
        rc = run_race(b, true, known, naive, err);
    }
    if (rc == CW_OK && (cached->ids.n < most || naive->ids.n < known)) {
        rc = cw_fail(err, CW_EFULL, "the context is too small for %d tokens", (int)known);
    }
    if (rc == CW_OK && most > known) {
        rc = measure_steps(b, BENCH_PROMPT + known, BENCH_PROMPT + most, &steps, err);
    }
    if (rc == CW_OK) {
        memcpy(naive_at, naive->at, known * sizeof *naive_at);
        if (most > known) {
            sum_steps(&steps, known, most, naive_at);
        }
        add_rows(out, cached, naive, naive_at, known, most);
    }
    cw_ids_free(&cached->ids);
    cw_ids_free(&naive->ids);
    free(cached);
    free(naive);
    free(naive_at);
    return rc;
}

void bench_naive_print(struct json_object *out) {
    struct cw_buf *to = cli_out();
    struct json_object *rows = json_object_object_get(out, "naive");
    struct json_object *at = NULL;
    cw_buf_printf(to, "%8s %12s %12s %8s  %s\n", "tokens", "cached s", "naive s", "ratio",
                  "same tokens");
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        struct json_object *row = json_object_array_get_idx(rows, i);
        struct json_object *same = NULL;
        const char *says = "estimated *";
        if (json_object_object_get_ex(row, "same_tokens", &same)) {
            says = json_object_get_boolean(same) ? "yes" : "no";
        }
        cw_buf_printf(to, "%8.0f %12.3f %12.3f %8.1f  %s\n", bench_number(row, "tokens"),
                      bench_number(row, "cached_s"), bench_number(row, "naive_s"),
                      bench_number(row, "ratio"), says);
    }
    cw_buf_printf(to, "* above %d tokens: the sum of steps measured at %d lengths\n", RUN_IN_FULL,
                  N_LENGTHS);
    if (json_object_object_get_ex(out, "tokens_at_100x", &at)) {
        cw_buf_printf(to, "100x is passed at %s tokens\n", json_object_get_string(at));
    }
}
