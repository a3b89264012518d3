/* SPDX-License-Identifier: MIT
 *
 * The speeds of a model: prefill and decode at several depths of the context, a start in a fresh
 * process, the memory of such a process, and each as a share of what the machine gives.
 */
#include "app/cli_bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chinwag/clock.h"

enum {
    CONTEXT_OF_START = 4096,
    PROMPT_OF_MEMORY = 512,
    TOKENS_OF_MEMORY = 64,
};

/* ---- prefill and decode --------------------------------------------------------------------- */

/* Bring the timeline to `depth` ids, keeping what is there. */
static int go_to_depth(struct cw_session *s, const int32_t *ids, size_t depth, struct cw_err *err) {
    cw_session_rewind(s, depth);
    size_t have = cw_session_n(s);
    return have < depth ? cw_session_extend(s, ids + have, depth - have, NULL, err) : CW_OK;
}

/* Tokens a second of one prefill of n_prefill tokens at this depth. */
static int time_prefill(struct bench *b, struct cw_session *s, size_t depth, double *tps,
                        struct cw_err *err) {
    int rc = go_to_depth(s, b->ids, depth, err);
    double begin = cw_now();
    if (rc == CW_OK) {
        rc = cw_session_extend(s, b->ids + depth, (size_t)b->n_prefill, NULL, err);
    }
    *tps = (double)b->n_prefill / (cw_now() - begin);
    return rc;
}

static int time_decode(struct bench *b, struct cw_session *s, size_t depth, double *tps,
                       struct cw_err *err) {
    /* At depth 0 the first token is still a prompt. */
    size_t from = depth ? depth : 1;
    int rc = go_to_depth(s, b->ids, from, err);
    double begin = cw_now();
    for (int64_t i = 0; i < b->n_decode && rc == CW_OK; i++) {
        rc = cw_session_extend(s, b->ids + from + i, 1, NULL, err);
    }
    *tps = (double)b->n_decode / (cw_now() - begin);
    return rc;
}

static int bench_depths(struct bench *b, struct json_object *rows, struct cw_err *err) {
    int rc = bench_warm_up(b, b->e.session, err);
    for (size_t d = 0; d < b->n_depths && rc == CW_OK; d++) {
        double prefill[BENCH_MAX_RUNS];
        double decode[BENCH_MAX_RUNS];
        size_t depth = (size_t)b->depths[d];
        size_t n = 0;
        for (; n < (size_t)b->n_runs && rc == CW_OK; n++) {
            prefill[n] = decode[n] = nan("");
            if (b->n_prefill > 0) {
                rc = time_prefill(b, b->e.session, depth, &prefill[n], err);
            }
            if (rc == CW_OK && b->n_decode > 0) {
                rc = time_decode(b, b->e.session, depth, &decode[n], err);
            }
        }
        if (rc == CW_OK) {
            struct json_object *row = json_object_new_object();
            json_object_object_add(row, "depth", json_object_new_int64((int64_t)depth));
            bench_add(row, "prefill_tps", bench_median(prefill, n));
            bench_add(row, "decode_tps", bench_median(decode, n));
            bench_add(row, "token_ms", 1e3 / bench_number(row, "decode_tps"));
            bench_add(row, "prefill_tps_best", prefill[n - 1]); /* the median sorted them */
            bench_add(row, "decode_tps_best", decode[n - 1]);
            json_object_array_add(rows, row);
        }
    }
    return rc;
}

/* ---- a start in a fresh process ------------------------------------------------------------- */

/* Run `chinwag generate` on n_prompt ids for n tokens. */
static int run_generate(struct bench *b, size_t n_prompt, int n, double *seconds, double *rss_mib,
                        struct cw_err *err) {
    char count[16];
    char context[16];
    struct bench_flags keep;
    struct cw_buf list = {0};
    for (size_t i = 0; i < n_prompt; i++) {
        cw_buf_printf(&list, "%s%d", i ? "," : "", b->ids[i]);
    }
    snprintf(count, sizeof count, "%d", n);
    snprintf(context, sizeof context, "%d", CONTEXT_OF_START);
    const char *argv[32] = {"chinwag", "generate", "-m", b->e.path, "--tokens",    list.data,
                            "-n",      count,      "-c", context,   "--ignore-eos"};
    argv[bench_flags(&b->cli->settings, &keep, argv, 11)] = NULL;
    int rc = bench_child((char *const *)argv, seconds, rss_mib, NULL, err);
    bench_flags_free(&keep);
    cw_buf_free(&list);
    return rc;
}

int bench_start(struct bench *b, struct json_object *out, struct cw_err *err) {
    double seconds[BENCH_MAX_RUNS];
    double rss = 0;
    size_t runs = b->n_runs < 3 ? 3 : (size_t)b->n_runs;
    /* One that is not counted: it brings the file into the page cache. */
    int rc = run_generate(b, BENCH_PROMPT, 1, &seconds[0], NULL, err);
    for (size_t i = 0; i < runs && rc == CW_OK; i++) {
        rc = run_generate(b, BENCH_PROMPT, 1, &seconds[i], NULL, err);
    }
    if (rc == CW_OK) {
        rc = run_generate(b, PROMPT_OF_MEMORY, TOKENS_OF_MEMORY, NULL, &rss, err);
    }
    if (rc == CW_OK) {
        bench_add(out, "start_to_token_s", bench_median(seconds, runs));
        bench_add(out, "start_to_token_s_best", seconds[0]);
        bench_add(out, "rss_mib", rss);
    }
    return rc;
}

/* ---- shares of the limits ------------------------------------------------------------------- */

static void add_shares(struct bench *b, const struct bench_machine *m, struct json_object *out) {
    struct json_object *rows = json_object_object_get(out, "rows");
    struct bench_cost cost = bench_cost(b->e.model);
    int kv = b->cli->settings.kv;
    bench_add_whole(out, "weight_bytes_token", cost.weight_bytes);
    bench_add_whole(out, "macs_token", cost.macs);
    bench_add_whole(out, "kv_bytes_token", bench_kv_bytes(b->e.model, kv, 0));
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        struct json_object *row = json_object_array_get_idx(rows, i);
        double decode = bench_number(row, "decode_tps");
        double prefill = bench_number(row, "prefill_tps");
        /* While decoding the depth grows: the middle stands for all. */
        double depth = bench_number(row, "depth") + (double)b->n_decode / 2;
        double kv_bytes = bench_kv_bytes(b->e.model, kv, depth);
        double bytes = cost.weight_bytes + kv_bytes;
        bench_add_whole(row, "kv_read_bytes", kv_bytes);
        bench_add_whole(row, "read_bytes", bytes);
        bench_add(row, "decode_gbs", decode * bytes / 1e9);
        bench_add(row, "prefill_gops", prefill * cost.macs / 1e9);
        if (m->read > 0) {
            bench_add(row, "decode_share", decode * bytes / m->read);
        }
        double peak = cw_model_get_info(b->e.model)->float_file ? m->sgemm : m->int8;
        if (peak > 0) {
            bench_add(row, "prefill_share", prefill * cost.macs / peak);
        }
    }
}

/* A float file's prefill by our own kernels, beside OpenBLAS. */
static int bench_exact(struct bench *b, struct json_object *out, double sgemm, struct cw_err *err) {
    struct app_settings *s = &b->cli->settings;
    struct app_engine own;
    double with_blas[BENCH_MAX_RUNS];
    double exact[BENCH_MAX_RUNS];
    size_t n = 0;
    bool keep = s->exact;
    s->exact = true;
    int rc = app_engine_open(&own, s, &b->cli->paths, APP_ENGINE_SESSION, err);
    s->exact = keep;
    if (rc == CW_OK) {
        rc = bench_warm_up(b, own.session, err);
    }
    for (; n < (size_t)b->n_runs && rc == CW_OK; n++) {
        rc = time_prefill(b, b->e.session, 0, &with_blas[n], err);
        if (rc == CW_OK) {
            rc = time_prefill(b, own.session, 0, &exact[n], err);
        }
    }
    if (rc == CW_OK) {
        double tps = bench_median(with_blas, n);
        double gops = tps * bench_cost(b->e.model).macs / 1e9;
        struct json_object *row = json_object_new_object();
        bench_add(row, "blas_prefill_tps", tps);
        bench_add(row, "exact_prefill_tps", bench_median(exact, n));
        bench_add(row, "prefill_gops", gops);
        if (sgemm > 0) {
            bench_add(row, "sgemm_share", gops * 1e9 / sgemm);
        }
        json_object_object_add(out, "float", row);
    }
    app_engine_close(&own);
    return rc;
}

int bench_rows(struct bench *b, struct json_object *out, struct cw_err *err) {
    struct json_object *rows = json_object_new_array();
    size_t deepest = 0;
    for (size_t i = 0; i < b->n_depths; i++) {
        deepest = (size_t)b->depths[i] > deepest ? (size_t)b->depths[i] : deepest;
    }
    size_t more = (size_t)(b->n_prefill > b->n_decode ? b->n_prefill : b->n_decode);
    int rc = bench_open(b, deepest + more + 16, out, err);
    json_object_object_add(out, "rows", rows);
    return rc == CW_OK ? bench_depths(b, rows, err) : rc;
}

int bench_all(struct bench *b, struct json_object *out, struct cw_err *err) {
    struct bench_machine machine = {0};
    /* First, while this process is small: a child begins with its parent's size. */
    int rc = bench_start(b, out, err);
    if (rc == CW_OK) {
        rc = bench_rows(b, out, err);
    }
    if (rc == CW_OK) {
        rc = bench_machine(b, &machine, out, err);
    }
    if (rc == CW_OK) {
        add_shares(b, &machine, out);
    }
    if (rc == CW_OK && cw_model_get_info(b->e.model)->float_file && b->n_prefill > 0) {
        rc = bench_exact(b, out, machine.sgemm, err);
    }
    return rc;
}

/* ---- the table for people ------------------------------------------------------------------- */

/* A figure of a column, or a dash. */
static void cell(double v, int width, int decimals, const char *unit) {
    if (isfinite(v)) {
        cw_buf_printf(cli_out(), "%*.*f%s", width, decimals, v, unit);
    } else {
        cw_buf_printf(cli_out(), "%*s%*s", width, "-", (int)strlen(unit), "");
    }
}

static void print_rows(struct json_object *rows) {
    struct cw_buf *to = cli_out();
    cw_buf_printf(to, "%8s %10s %8s %10s %8s %9s %10s %8s\n", "depth", "prefill", "of peak",
                  "decode", "of reads", "ms/token", "MB of KV", "MB read");
    for (size_t i = 0; i < json_object_array_length(rows); i++) {
        struct json_object *row = json_object_array_get_idx(rows, i);
        cell(bench_number(row, "depth"), 8, 0, "");
        cell(bench_number(row, "prefill_tps"), 11, 1, "");
        cell(100 * bench_number(row, "prefill_share"), 8, 0, "%");
        cell(bench_number(row, "decode_tps"), 10, 1, "");
        cell(100 * bench_number(row, "decode_share"), 8, 0, "%");
        cell(bench_number(row, "token_ms"), 10, 2, "");
        cell(bench_number(row, "kv_read_bytes") / 1e6, 11, 1, "");
        cell(bench_number(row, "read_bytes") / 1e6, 9, 1, "");
        cw_buf_putc(to, '\n');
    }
    cw_buf_puts(to,
                "(tokens/s; the products of the layers' weights as a share of the integer peak, "
                "all reads\nof weights and cache as a share of the read bandwidth)\n\n");
}

void bench_speed_print(struct json_object *out) {
    struct json_object *v = NULL;
    if (json_object_object_get_ex(out, "rows", &v)) {
        print_rows(v);
    }
    bench_put(out, "start_to_token_s", "start to first token", "s", 3);
    bench_put(out, "rss_mib", "resident at most", "MiB", 0);
    if (isfinite(bench_number(out, "read_gbs"))) {
        cw_buf_printf(cli_out(), "%-26s %9.1f MB of weights, %.1f kB of cache\n", "a token",
                      bench_number(out, "weight_bytes_token") / 1e6,
                      bench_number(out, "kv_bytes_token") / 1e3);
        bench_limits_print(out);
    }
    if (json_object_object_get_ex(out, "float", &v)) {
        bench_put(v, "blas_prefill_tps", "prefill by OpenBLAS", "tokens/s", 1);
        bench_put(v, "exact_prefill_tps", "prefill with --exact", "tokens/s", 1);
        bench_put(v, "prefill_gops", "prefill's products", "G multiply-adds/s", 0);
        bench_put(v, "sgemm_share", "of the sgemm peak", "", 2);
    }
}
