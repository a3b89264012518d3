/* SPDX-License-Identifier: MIT
 *
 * `chinwag bench`: the speed of prefill and decode at several depths of the context, of a start in
 * a fresh process, and what the machine could give at best. All figures are medians of -r runs.
 * The ids evaluated are arbitrary: speed does not depend on them.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/engine.h"
#include "app/json.h"
#include "chinwag/clock.h"
#include "core/chat/generate.h"
#include "core/compute/measure.h"

enum {
    MAX_DEPTHS = 16,
    MAX_RUNS = 99,
    PROMPT_OF_START = 10,
    CONTEXT_OF_START = 4096,
    MANY_TOKENS = 512,
    READ_BYTES = 1 << 28, /* past every cache */
};

struct bench {
    struct cli *cli;
    struct app_engine e;
    int64_t n_prefill, n_decode, n_runs;
    int32_t depths[MAX_DEPTHS];
    size_t n_depths;
    int32_t *ids; /* [n_ids] to evaluate */
    size_t n_ids;
};

static int by_value(const void *pa, const void *pb) {
    double a = *(const double *)pa;
    double b = *(const double *)pb;
    return a < b ? -1 : a > b;
}

/* Sorts v. */
static double median(double *v, size_t n) {
    if (n == 0) {
        return nan("");
    }
    qsort(v, n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void fill_ids(struct bench *b, size_t n, int32_t n_vocab) {
    b->n_ids = n;
    b->ids = cw_reallocarray(NULL, n, sizeof *b->ids);
    int32_t span = n_vocab < 1000 ? n_vocab : 1000;
    int32_t base = n_vocab > 2000 ? 100 : 0;
    for (size_t i = 0; i < n; i++) {
        b->ids[i] = base + (int32_t)((7 * i) % (size_t)span);
    }
}

/* ---- prefill and decode --------------------------------------------------------------------- */

/* Bring the timeline to `depth` ids, keeping what is there. */
static int go_to_depth(struct cw_session *s, const int32_t *ids, size_t depth, struct cw_err *err) {
    cw_session_rewind(s, depth);
    size_t have = cw_session_n(s);
    return have < depth ? cw_session_extend(s, ids + have, depth - have, NULL, err) : CW_OK;
}

/* Tokens a second of one prefill of n tokens at this depth. */
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
    for (size_t d = 0; d < b->n_depths; d++) {
        double prefill[MAX_RUNS];
        double decode[MAX_RUNS];
        size_t depth = (size_t)b->depths[d];
        size_t n = 0;
        /* A few tokens first: packing, page faults and threads are no part of the speed. */
        int rc = go_to_depth(b->e.session, b->ids, depth + 8, err);
        for (; n < (size_t)b->n_runs && rc == CW_OK; n++) {
            prefill[n] = decode[n] = nan("");
            if (b->n_prefill > 0) {
                rc = time_prefill(b, b->e.session, depth, &prefill[n], err);
            }
            if (rc == CW_OK && b->n_decode > 0) {
                rc = time_decode(b, b->e.session, depth, &decode[n], err);
            }
        }
        if (rc != CW_OK) {
            return rc;
        }
        struct json_object *row = json_object_new_object();
        json_object_object_add(row, "depth", json_object_new_int64((int64_t)depth));
        json_object_object_add(row, "prefill_tps", app_json_number(median(prefill, n)));
        json_object_object_add(row, "decode_tps", app_json_number(median(decode, n)));
        json_object_object_add(row, "prefill_tps_best", app_json_number(prefill[n - 1]));
        json_object_object_add(row, "decode_tps_best", app_json_number(decode[n - 1]));
        json_object_array_add(rows, row);
    }
    return CW_OK;
}

/* ---- a start in a fresh process ------------------------------------------------------------- */

/* The engine's flags again, for the child. Adds at most 10 strings that live in `keep`. */
static void engine_flags(const struct app_settings *s, char **argv, size_t *n, char **keep) {
    static const char *const names[] = {"threads", "isa", "kv", "chunk"};
    static const char *const flags[] = {"-t", "--isa", "--kv", "--chunk"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        keep[i] = app_settings_get(s, app_option_find(names[i]));
        argv[(*n)++] = (char *)flags[i];
        argv[(*n)++] = keep[i];
    }
    if (s->exact) {
        argv[(*n)++] = (char *)"--exact";
    }
}

/* Run `chinwag generate` on n_prompt ids for n tokens. *seconds is the time from before the process
 * exists to the first byte it prints (all of it follows the last token). */
static int run_child(struct bench *b, size_t n_prompt, int n, double *seconds, double *rss_mib,
                     struct cw_err *err) {
    char count[16];
    char context[16];
    char *argv[32];
    char *keep[4] = {0};
    size_t argc = 0;
    struct cw_buf list = {0};
    int pipe_fds[2];
    for (size_t i = 0; i < n_prompt; i++) {
        cw_buf_printf(&list, "%s%d", i ? "," : "", b->ids[i]);
    }
    snprintf(count, sizeof count, "%d", n);
    snprintf(context, sizeof context, "%d", CONTEXT_OF_START);
    char *const fixed[] = {(char *)"chinwag",     (char *)"generate",
                           (char *)"-m",          b->e.path,
                           (char *)"--tokens",    list.data,
                           (char *)"-n",          count,
                           (char *)"-c",          context,
                           (char *)"--ignore-eos"};
    for (; argc < sizeof fixed / sizeof *fixed; argc++) {
        argv[argc] = fixed[argc];
    }
    if (b->cli->settings.pre) {
        argv[argc++] = (char *)"--pre";
        argv[argc++] = b->cli->settings.pre;
    }
    engine_flags(&b->cli->settings, argv, &argc, keep);
    argv[argc] = NULL;

    int rc = CW_OK;
    if (pipe(pipe_fds) != 0) {
        rc = cw_fail(err, CW_EIO, "pipe: %s", strerror(errno));
    } else {
        double begin = cw_now();
        pid_t pid = fork();
        if (pid == 0) {
            dup2(pipe_fds[1], STDOUT_FILENO);
            close(pipe_fds[0]);
            close(pipe_fds[1]);
            execv("/proc/self/exe", argv);
            _exit(127);
        }
        close(pipe_fds[1]);
        char byte;
        ssize_t got = pid > 0 ? read(pipe_fds[0], &byte, 1) : -1;
        *seconds = cw_now() - begin;
        char rest[4096];
        while (got > 0 && (got = read(pipe_fds[0], rest, sizeof rest)) > 0) {
        }
        close(pipe_fds[0]);
        int status = -1;
        struct rusage usage = {0};
        if (pid > 0 && wait4(pid, &status, 0, &usage) == pid && status == 0) {
            *rss_mib = (double)usage.ru_maxrss / 1024; /* Linux counts in KiB */
        } else {
            rc = cw_fail(err, CW_EIO, "a run in a fresh process failed");
        }
    }
    for (size_t i = 0; i < 4; i++) {
        free(keep[i]);
    }
    cw_buf_free(&list);
    return rc;
}

static int bench_start(struct bench *b, struct json_object *out, struct cw_err *err) {
    double seconds[MAX_RUNS];
    double rss = 0;
    double ignored;
    size_t runs = b->n_runs < 3 ? 3 : (size_t)b->n_runs;
    for (size_t i = 0; i < runs; i++) {
        int rc = run_child(b, PROMPT_OF_START, 1, &seconds[i], &rss, err);
        if (rc != CW_OK) {
            return rc;
        }
    }
    json_object_object_add(out, "start_to_token_s", app_json_number(median(seconds, runs)));
    json_object_object_add(out, "start_to_token_s_best", app_json_number(seconds[0]));
    int rc = run_child(b, 512, 64, &ignored, &rss, err);
    json_object_object_add(out, "rss_mib", app_json_number(rss));
    return rc;
}

/* ---- what the machine gives ----------------------------------------------------------------- */

/* The type that most bytes of the layers' matrices have. */
static enum cw_type main_type(const struct cw_gguf *g) {
    uint64_t bytes[64] = {0};
    enum cw_type best = CW_F32;
    for (size_t i = 0; i < cw_gguf_n_tensors(g); i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(g, i);
        if (t->n_dims >= 2 && t->name.len > 4 && memcmp(t->name.data, "blk.", 4) == 0 &&
            (size_t)t->type < sizeof bytes / sizeof *bytes) {
            bytes[t->type] += t->bytes;
            best = bytes[t->type] > bytes[best] ? t->type : best;
        }
    }
    return best;
}

/* The limits every speed is read against; one multiply-add counts as two operations. */
static int bench_machine(const struct bench *b, struct json_object *out, struct cw_err *err) {
    const struct cw_model_info *info = cw_model_get_info(b->e.model);
    const struct cw_compute_options opt = {
        .n_threads = info->n_threads, .isa = info->isa, .blas = info->float_file};
    struct cw_compute *c = NULL;
    int rc = cw_compute_create(&c, &opt, err);
    if (rc != CW_OK) {
        return rc;
    }
    const struct {
        const char *key;
        double value;
    } figures[] = {
        {"read_gbs", cw_measure_read(c, READ_BYTES) / 1e9},
        {"int8_gops", 2 * cw_measure_int8(c) / 1e9},
        {"sgemm_gflops", info->float_file ? 2 * cw_measure_sgemm(c) / 1e9 : 0},
    };
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        if (figures[i].value > 0) {
            json_object_object_add(out, figures[i].key, app_json_number(figures[i].value));
        }
    }
    enum cw_type type = main_type(b->e.gguf);
    const struct cw_type_info *t = cw_type_info(type);
    if (t && info->n_embd % t->block == 0) {
        struct json_object *row = json_object_new_object();
        struct cw_product_speed many =
            cw_measure_product(c, type, info->n_ff, info->n_embd, MANY_TOKENS);
        struct cw_product_speed one = cw_measure_product(c, type, info->n_ff, info->n_embd, 1);
        json_object_object_add(row, "type", json_object_new_string(t->name));
        json_object_object_add(row, "prefill_gops", app_json_number(2 * many.macs / 1e9));
        json_object_object_add(row, "decode_gbs", app_json_number(one.bytes / 1e9));
        json_object_object_add(out, "product", row);
    }
    cw_compute_destroy(c);
    return CW_OK;
}

/* Floating-point operations of one token in the layers' matrices: two for each weight. */
static double layer_flops(const struct cw_gguf *g) {
    double sum = 0;
    for (size_t i = 0; i < cw_gguf_n_tensors(g); i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(g, i);
        if (t->n_dims == 2 && t->name.len > 4 && memcmp(t->name.data, "blk.", 4) == 0) {
            sum += 2.0 * (double)t->dims[0] * (double)t->dims[1];
        }
    }
    return sum;
}

/* A float file's prefill by our own kernels, beside OpenBLAS. */
static int bench_exact(struct bench *b, struct json_object *out, double sgemm_gflops,
                       struct cw_err *err) {
    struct app_settings *s = &b->cli->settings;
    struct app_engine own;
    double with_blas[MAX_RUNS];
    double exact[MAX_RUNS];
    size_t n = 0;
    bool keep = s->exact;
    s->exact = true;
    int rc = app_engine_open(&own, s, &b->cli->paths, APP_ENGINE_SESSION, err);
    s->exact = keep;
    for (; n < (size_t)b->n_runs && rc == CW_OK; n++) {
        rc = time_prefill(b, b->e.session, 0, &with_blas[n], err);
        if (rc == CW_OK) {
            rc = time_prefill(b, own.session, 0, &exact[n], err);
        }
    }
    if (rc == CW_OK) {
        double tps = median(with_blas, n);
        struct json_object *row = json_object_new_object();
        json_object_object_add(row, "blas_prefill_tps", app_json_number(tps));
        json_object_object_add(row, "exact_prefill_tps", app_json_number(median(exact, n)));
        double gflops = tps * layer_flops(b->e.gguf) / 1e9;
        json_object_object_add(row, "prefill_gflops", app_json_number(gflops));
        if (sgemm_gflops > 0) {
            json_object_object_add(row, "sgemm_share", app_json_number(gflops / sgemm_gflops));
        }
        json_object_object_add(out, "float", row);
    }
    app_engine_close(&own);
    return rc;
}

/* ---- naive against cached ------------------------------------------------------------------- */

struct race {
    struct cw_ids ids;
};

static void on_settings(void *arg, uint64_t position, struct cw_sampling *out) {
    cw_sampling_default(out);
    out->temp = 0;
}

static int on_token(void *arg, uint64_t position, const struct cw_draw *draw, const char *text,
                    size_t n, const struct cw_figures *figures) {
    if (draw) {
        cw_ids_add(&((struct race *)arg)->ids, draw->id);
    }
    return 0;
}

/* Greedy generation of n tokens after a short prompt, from an empty cache. */
static int time_generation(struct bench *b, bool naive, int64_t n, struct race *race,
                           double *seconds, struct cw_err *err) {
    int32_t n_vocab = cw_model_get_info(b->e.model)->n_vocab;
    struct cw_figures figures = {0};
    enum cw_stop stop;
    struct cw_generate g = {
        .session = b->e.session,
        .sampler = cw_sampler_create(n_vocab),
        .naive = naive,
        .max_tokens = n,
        .ignore_eog = true,
        .n_usable = n_vocab,
        .settings = on_settings,
        .token = on_token,
        .arg = race,
    };
    cw_session_rewind(b->e.session, 0);
    double begin = cw_now();
    int rc = cw_session_extend(b->e.session, b->ids, PROMPT_OF_START, NULL, err);
    if (rc == CW_OK) {
        rc = cw_generate_run(&g, &stop, &figures, err);
    }
    *seconds = cw_now() - begin;
    cw_sampler_destroy(g.sampler);
    return rc;
}

static int bench_naive(struct bench *b, struct json_object *rows, struct cw_err *err) {
    static const int64_t lengths[] = {64, 128, 256, 512};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct race cached = {0};
        struct race naive = {0};
        double cached_s = 0;
        double naive_s = 0;
        int rc = time_generation(b, false, lengths[i], &cached, &cached_s, err);
        if (rc == CW_OK) {
            rc = time_generation(b, true, lengths[i], &naive, &naive_s, err);
        }
        if (rc == CW_OK) {
            bool same = cached.ids.n == naive.ids.n &&
                        memcmp(cached.ids.v, naive.ids.v, naive.ids.n * sizeof *naive.ids.v) == 0;
            struct json_object *row = json_object_new_object();
            json_object_object_add(row, "tokens", json_object_new_int64(lengths[i]));
            json_object_object_add(row, "cached_s", app_json_number(cached_s));
            json_object_object_add(row, "naive_s", app_json_number(naive_s));
            json_object_object_add(row, "ratio", app_json_number(naive_s / cached_s));
            json_object_object_add(row, "same_tokens", json_object_new_boolean(same));
            json_object_array_add(rows, row);
        }
        cw_ids_free(&cached.ids);
        cw_ids_free(&naive.ids);
        if (rc != CW_OK) {
            return rc;
        }
    }
    return CW_OK;
}

/* ---- the table for people ------------------------------------------------------------------- */

static double number(struct json_object *row, const char *key) {
    struct json_object *v = NULL;
    return json_object_object_get_ex(row, key, &v) && v ? json_object_get_double(v) : nan("");
}

static void put_figure(struct json_object *out, const char *key, const char *label,
                       const char *unit, int decimals) {
    double v = number(out, key);
    if (isfinite(v)) {
        cw_buf_printf(cli_out(), "%-22s %9.*f %s\n", label, decimals, v, unit);
    }
}

static void print(struct json_object *out) {
    struct cw_buf *to = cli_out();
    struct json_object *v = NULL;
    cw_buf_printf(to, "%s, %s, %.0f threads, %s kernels, %s cache\n\n",
                  json_object_get_string(json_object_object_get(out, "model")),
                  json_object_get_string(json_object_object_get(out, "quantisation")),
                  number(out, "threads"),
                  json_object_get_string(json_object_object_get(out, "isa")),
                  json_object_get_string(json_object_object_get(out, "kv")));
    if (json_object_object_get_ex(out, "rows", &v)) {
        cw_buf_printf(to, "%8s %14s %14s\n", "depth", "prefill tok/s", "decode tok/s");
        for (size_t i = 0; i < json_object_array_length(v); i++) {
            struct json_object *row = json_object_array_get_idx(v, i);
            cw_buf_printf(to, "%8.0f %14.1f %14.1f\n", number(row, "depth"),
                          number(row, "prefill_tps"), number(row, "decode_tps"));
        }
        cw_buf_putc(to, '\n');
    }
    if (json_object_object_get_ex(out, "naive", &v)) {
        cw_buf_printf(to, "%8s %12s %12s %8s  %s\n", "tokens", "cached s", "naive s", "ratio",
                      "same tokens");
        for (size_t i = 0; i < json_object_array_length(v); i++) {
            struct json_object *row = json_object_array_get_idx(v, i);
            struct json_object *same = json_object_object_get(row, "same_tokens");
            cw_buf_printf(to, "%8.0f %12.3f %12.3f %8.1f  %s\n", number(row, "tokens"),
                          number(row, "cached_s"), number(row, "naive_s"), number(row, "ratio"),
                          json_object_get_boolean(same) ? "yes" : "no");
        }
    }
    put_figure(out, "start_to_token_s", "start to first token", "s", 3);
    put_figure(out, "rss_mib", "resident at most", "MiB", 0);
    put_figure(out, "read_gbs", "memory reads", "GB/s", 1);
    put_figure(out, "int8_gops", "integer peak", "Gop/s", 0);
    put_figure(out, "sgemm_gflops", "OpenBLAS sgemm peak", "Gflop/s", 0);
    if (json_object_object_get_ex(out, "product", &v)) {
        put_figure(v, "prefill_gops", "products of a layer", "Gop/s (512 tokens)", 0);
        put_figure(v, "decode_gbs", "", "GB/s of weights (one token)", 1);
    }
    if (json_object_object_get_ex(out, "float", &v)) {
        put_figure(v, "blas_prefill_tps", "prefill by OpenBLAS", "tok/s", 1);
        put_figure(v, "exact_prefill_tps", "prefill with --exact", "tok/s", 1);
        put_figure(v, "prefill_gflops", "prefill's products", "Gflop/s", 0);
        put_figure(v, "sgemm_share", "of the sgemm peak", "", 2);
    }
}

/* ---- the command ---------------------------------------------------------------------------- */

static int measure(struct bench *b, struct json_object *out, struct cw_err *err) {
    const struct cw_model_info *info = cw_model_get_info(b->e.model);
    json_object_object_add(out, "model", app_json_text(info->name, strlen(info->name)));
    json_object_object_add(out, "quantisation", app_json_text(info->quant, strlen(info->quant)));
    json_object_object_add(out, "threads", json_object_new_int(info->n_threads));
    json_object_object_add(out, "isa", json_object_new_string(cw_isa_name(info->isa)));
    json_object_object_add(
        out, "kv", json_object_new_string(b->cli->settings.kv == CW_KV_F16 ? "f16" : "q8_0"));
    struct json_object *rows = json_object_new_array();
    if (cli_has(b->cli, "--naive")) {
        json_object_object_add(out, "naive", rows);
        return bench_naive(b, rows, err);
    }
    json_object_object_add(out, "rows", rows);
    int rc = bench_depths(b, rows, err);
    if (rc == CW_OK) {
        rc = bench_start(b, out, err);
    }
    if (rc == CW_OK) {
        rc = bench_machine(b, out, err);
    }
    if (rc == CW_OK && info->float_file) {
        rc = bench_exact(b, out, number(out, "sgemm_gflops"), err);
    }
    return rc;
}

static int parse(struct cli *c, struct bench *b) {
    struct cw_ids depths = {0};
    struct cw_err err;
    const char *list = cli_value(c, "-d") ? cli_value(c, "-d") : "0";
    int status = CLI_OK;
    if (!cli_int(c, "-p", 0, 1 << 20, 512, &b->n_prefill) ||
        !cli_int(c, "-n", 0, 1 << 20, 128, &b->n_decode) ||
        !cli_int(c, "-r", 1, MAX_RUNS, 3, &b->n_runs)) {
        return CLI_USAGE;
    }
    if (!cli_parse_ids(list, strlen(list), 1 << 20, &depths, &err)) {
        status = cli_usage(c, "-d: '%s' is not a list of depths", list);
    } else if (depths.n == 0 || depths.n > MAX_DEPTHS) {
        status = cli_usage(c, "-d: one to %d depths can be given", MAX_DEPTHS);
    }
    for (size_t i = 0; i < depths.n && status == CLI_OK; i++) {
        b->depths[b->n_depths++] = depths.v[i];
    }
    cw_ids_free(&depths);
    return status;
}

static int run(struct cli *c) {
    struct bench b = {.cli = c};
    struct cw_err err = {0};
    int status = parse(c, &b);
    if (status != CLI_OK) {
        return status;
    }
    size_t most = 512 + PROMPT_OF_START;
    for (size_t i = 0; i < b.n_depths; i++) {
        size_t longer = (size_t)(b.n_prefill > b.n_decode ? b.n_prefill : b.n_decode) + 16;
        size_t need = (size_t)b.depths[i] + longer;
        most = need > most ? need : most;
    }
    if (c->settings.n_ctx == 0) {
        c->settings.n_ctx = (int)most;
    }
    int rc = app_engine_open(&b.e, &c->settings, &c->paths, APP_ENGINE_SESSION, &err);
    if (rc == CW_OK) {
        struct json_object *out = json_object_new_object();
        fill_ids(&b, most, cw_model_get_info(b.e.model)->n_vocab);
        rc = measure(&b, out, &err);
        if (rc == CW_OK && cli_has(c, "--json")) {
            app_json_put(cli_out(), out, true);
        } else {
            if (rc == CW_OK) {
                print(out);
            }
            json_object_put(out);
        }
    }
    app_engine_close(&b.e);
    free(b.ids);
    return rc == CW_OK ? cli_finish() : cli_failed("bench", &err);
}

static const struct cli_flag flags[] = {
    {"-p", "N", "Tokens of a prefill; 0: none. [512]"},
    {"-n", "N", "Tokens of a decode; 0: none. [128]"},
    {"-d", "LIST", "Depths of the context to measure at: 0,4096. [0]"},
    {"-r", "N", "Runs; the medians are shown. [3]"},
    {"--naive", NULL, "Instead: generation with and without the cache, at 64 to 512 tokens."},
    {"--json", NULL, "Print one JSON object."},
};

const struct cli_command cli_bench = {
    .name = "bench",
    .synopsis = "-m MODEL [-p 512] [-n 128] [-d 0,4096] [-r 3] [--naive] [--json] [ENGINE]",
    .summary = "Measure prefill, decode, start and what the machine could give.",
    .options = "model pre ctx @engine",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .run = run,
};
