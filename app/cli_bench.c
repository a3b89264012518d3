/* SPDX-License-Identifier: MIT
 *
 * `chinwag bench`: the command line and what its parts share. See cli_bench.h.
 */
#include "app/cli_bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chinwag/clock.h"
#include "chinwag/info.h"

static const struct bench_part parts[] = {
    {"--rows", true, bench_rows, bench_speed_print},
    {"--start", true, bench_start, bench_speed_print},
    {"--naive", true, bench_naive, bench_naive_print},
    {"--limits", true, bench_limits, bench_limits_print},
    {"--kernels", false, bench_kernels, bench_kernels_print},
    {"--typing", true, bench_typing, bench_typing_print},
    {"--lookup", true, bench_lookup, bench_lookup_print},
    {"--replies", true, bench_replies, bench_replies_print},
    {"--fork", true, bench_fork, bench_fork_print},
    {"--ui", true, bench_ui, bench_ui_print},
    {NULL, true, bench_all, bench_speed_print},
};

/* ---- numbers -------------------------------------------------------------------------------- */

static int by_value(const void *pa, const void *pb) {
    double a = *(const double *)pa;
    double b = *(const double *)pb;
    return a < b ? -1 : a > b;
}

double bench_median(double *v, size_t n) {
    if (n == 0) {
        return nan("");
    }
    qsort(v, n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double bench_number(struct json_object *row, const char *key) {
    struct json_object *v = NULL;
    return json_object_object_get_ex(row, key, &v) && v ? json_object_get_double(v) : nan("");
}

const char *bench_text(struct json_object *row, const char *key) {
    struct json_object *v = NULL;
    return json_object_object_get_ex(row, key, &v) && v ? json_object_get_string(v) : "";
}

void bench_add(struct json_object *row, const char *key, double v) {
    json_object_object_add(row, key, app_json_number(v));
}

void bench_add_whole(struct json_object *row, const char *key, double v) {
    json_object_object_add(row, key, json_object_new_int64(llround(v)));
}

void bench_put(struct json_object *row, const char *key, const char *label, const char *unit,
               int decimals) {
    double v = bench_number(row, key);
    if (isfinite(v)) {
        cw_buf_printf(cli_out(), "%-26s %9.*f %s\n", label, decimals, v, unit);
    }
}

/* ---- the model ------------------------------------------------------------------------------ */

static void fill_ids(struct bench *b, size_t n) {
    struct cw_info *info = cw_info_create(b->e.gguf);
    int32_t n_vocab = info->model.n_vocab > 0 ? info->model.n_vocab : 1;
    cw_info_destroy(info);
    b->n_ids = n;
    b->ids = cw_reallocarray(NULL, n, sizeof *b->ids);
    int32_t span = n_vocab < 1000 ? n_vocab : 1000;
    int32_t base = n_vocab > 2000 ? 100 : 0;
    for (size_t i = 0; i < n; i++) {
        b->ids[i] = base + (int32_t)((7 * i) % (size_t)span);
    }
}

int bench_open(struct bench *b, size_t n_ctx, struct json_object *out, struct cw_err *err) {
    struct app_settings *s = &b->cli->settings;
    int asked = s->n_ctx;
    app_engine_close(&b->e);
    s->n_ctx = asked > 0 ? asked : (int)n_ctx;
    int rc = app_engine_open(&b->e, s, &b->cli->paths, APP_ENGINE_SESSION, err);
    s->n_ctx = asked;
    if (rc == CW_OK) {
        const struct cw_model_info *info = cw_model_get_info(b->e.model);
        json_object_object_add(out, "model", app_json_text(info->name, strlen(info->name)));
        json_object_object_add(out, "quantisation",
                               app_json_text(info->quant, strlen(info->quant)));
        json_object_object_add(out, "threads", json_object_new_int(info->n_threads));
        json_object_object_add(out, "isa", json_object_new_string(cw_isa_name(info->isa)));
        json_object_object_add(out, "kv",
                               json_object_new_string(s->kv == CW_KV_F16 ? "f16" : "q8_0"));
    }
    return rc;
}

int bench_warm_up(struct bench *b, struct cw_session *s, struct cw_err *err) {
    int rc = CW_OK;
    /* Each weight's packed copy is made in one of the first uses. */
    for (int i = 0; i < 24 && rc == CW_OK; i++) {
        rc = cw_session_extend(s, b->ids, 1, NULL, err);
        cw_session_rewind(s, 0);
    }
    return rc;
}

/* ---- children ------------------------------------------------------------------------------- */

size_t bench_flags(const struct app_settings *s, struct bench_flags *f, const char **argv,
                   size_t n) {
    static const char *const names[] = {"threads", "isa", "kv", "chunk"};
    static const char *const flags[] = {"-t", "--isa", "--kv", "--chunk"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        f->values[i] = app_settings_get(s, app_option_find(names[i]));
        argv[n++] = flags[i];
        argv[n++] = f->values[i];
    }
    if (s->exact) {
        argv[n++] = "--exact";
    }
    if (s->pre) {
        argv[n++] = "--pre";
        argv[n++] = s->pre;
    }
    return n;
}

void bench_flags_free(struct bench_flags *f) {
    for (size_t i = 0; i < sizeof f->values / sizeof *f->values; i++) {
        free(f->values[i]);
    }
}

/* Read all of fd into text; the time of the first byte. */
static double read_all(int fd, struct cw_buf *text) {
    char piece[4096];
    double first = 0;
    for (;;) {
        ssize_t got = read(fd, piece, first == 0 ? 1 : sizeof piece);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            return first;
        }
        if (got > 0) {
            first = first == 0 ? cw_now() : first;
            cw_buf_add(text, piece, (size_t)got);
        }
    }
}

int bench_child(char *const *argv, double *seconds, double *rss_mib, struct cw_buf *text,
                struct cw_err *err) {
    struct cw_buf own = {0};
    struct cw_buf *to = text ? text : &own;
    struct rusage usage = {0};
    int fds[2];
    int status = -1;
    if (pipe(fds) != 0) {
        return cw_fail(err, CW_EIO, "pipe: %s", strerror(errno));
    }
    double begin = cw_now();
    pid_t pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        close(fds[0]);
        close(fds[1]);
        execv("/proc/self/exe", argv);
        _exit(127);
    }
    close(fds[1]);
    double first = pid > 0 ? read_all(fds[0], to) : 0;
    close(fds[0]);
    while (pid > 0 && wait4(pid, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    cw_buf_free(&own);
    if (status != 0 || first == 0) {
        return cw_fail(err, CW_EIO, "a run in a fresh process failed");
    }
    if (seconds) {
        *seconds = first - begin;
    }
    if (rss_mib) {
        *rss_mib = (double)usage.ru_maxrss / 1024; /* Linux counts in KiB */
    }
    return CW_OK;
}

/* ---- the command ---------------------------------------------------------------------------- */

static void print_head(struct json_object *out) {
    if (*bench_text(out, "model")) {
        cw_buf_printf(cli_out(), "%s, %s, %.0f threads, %s kernels, %s cache\n\n",
                      bench_text(out, "model"), bench_text(out, "quantisation"),
                      bench_number(out, "threads"), bench_text(out, "isa"), bench_text(out, "kv"));
    }
}

/* The part that was asked for; NULL after telling that it was more than one. */
static const struct bench_part *find_part(struct cli *c) {
    const struct bench_part *found = NULL;
    size_t i = 0;
    for (; parts[i].flag; i++) {
        if (cli_has(c, parts[i].flag)) {
            if (found) {
                cli_usage(c, "%s and %s: only one of them can be given", found->flag,
                          parts[i].flag);
                return NULL;
            }
            found = &parts[i];
        }
    }
    return found ? found : &parts[i];
}

static int parse(struct cli *c, struct bench *b) {
    struct cw_ids depths = {0};
    struct cw_err err;
    const char *list = cli_value(c, "-d") ? cli_value(c, "-d") : "0";
    int status = CLI_OK;
    if (!cli_int(c, "-p", 0, 1 << 20, 512, &b->n_prefill) ||
        !cli_int(c, "-n", 0, 1 << 20, 128, &b->n_decode) ||
        !cli_int(c, "-r", 1, BENCH_MAX_RUNS, 3, &b->n_runs) ||
        !cli_int(c, "--replies", 2, CW_MAX_REPLIES, 4, &b->n_replies) ||
        !cli_int(c, "--rate", 1, 1000000, 8, &b->rate)) {
        return CLI_USAGE;
    }
    if (!cli_parse_ids(list, strlen(list), 1 << 20, &depths, &err)) {
        status = cli_usage(c, "-d: '%s' is not a list of depths", list);
    } else if (depths.n == 0 || depths.n > BENCH_MAX_DEPTHS) {
        status = cli_usage(c, "-d: one to %d depths can be given", BENCH_MAX_DEPTHS);
    }
    for (size_t i = 0; i < depths.n && status == CLI_OK; i++) {
        b->depths[b->n_depths++] = depths.v[i];
    }
    cw_ids_free(&depths);
    return status;
}

/* As many ids as any part evaluates. */
static size_t longest(const struct bench *b) {
    size_t more = (size_t)(b->n_prefill > b->n_decode ? b->n_prefill : b->n_decode) + 16;
    size_t most = 4096; /* of --naive and of the run for the peak of memory */
    for (size_t i = 0; i < b->n_depths; i++) {
        size_t need = (size_t)b->depths[i] + more;
        most = need > most ? need : most;
    }
    return most;
}

static int run(struct cli *c) {
    struct bench b = {.cli = c};
    struct cw_err err = {0};
    int status = parse(c, &b);
    const struct bench_part *part = status == CLI_OK ? find_part(c) : NULL;
    if (!part) {
        return CLI_USAGE;
    }
    int rc = CW_OK;
    if (part->needs_model) {
        /* The file alone: children are timed and weighed before this process has a model. */
        rc = app_engine_open(&b.e, &c->settings, &c->paths, 0, &err);
        if (rc == CW_OK) {
            fill_ids(&b, longest(&b));
        }
    }
    struct json_object *out = json_object_new_object();
    if (rc == CW_OK) {
        rc = part->measure(&b, out, &err);
    }
    if (rc == CW_OK && cli_has(c, "--json")) {
        app_json_put(cli_out(), json_object_get(out), true);
    } else if (rc == CW_OK) {
        print_head(out);
        part->print(out);
    }
    json_object_put(out);
    app_engine_close(&b.e);
    free(b.ids);
    return rc == CW_OK ? cli_finish() : cli_failed("bench", &err);
}

static const struct cli_flag flags[] = {
    {"-p", "N", "Tokens of a prefill; 0: none. [512]"},
    {"-n", "N", "Tokens of a decode; 0: none. [128]"},
    {"-d", "LIST", "Depths of the context to measure at: 0,4096. [0]"},
    {"-r", "N", "Runs; the medians are shown. [3]"},
    {"--rows", NULL, "Only prefill and decode, without limits and start."},
    {"--start", NULL, "Only the start of a fresh process and its memory."},
    {"--limits", NULL, "Only what the machine gives: reads and multiply-adds a second."},
    {"--naive", NULL,
     "Generation with and without the cache, 64 to 2048 tokens; above 512 the naive cost is the "
     "sum of steps measured at 16 lengths."},
    {"--kernels", NULL, "Every kernel of every instruction set this CPU has; needs no model."},
    {"--typing", NULL,
     "Time to the first token of a message of 60 words typed at --rate, evaluated while typing and "
     "not."},
    {"--rate", "N", "Characters a second of --typing. [8]"},
    {"--lookup", NULL, "Decoding with and without lookup, of text that repeats and of prose."},
    {"--replies", "N", "N replies decoded together against one. At most 8."},
    {"--fork", NULL, "What a branch at a token of a long chat costs before it is evaluated."},
    {"--ui", NULL,
     "The chat on a terminal of 80x24: bytes sent for each byte of text, share of the CPU that "
     "drawing takes, and how soon keys are answered while the engine runs."},
    {"--json", NULL, "Print one JSON object."},
};

const struct cli_command cli_bench = {
    .name = "bench",
    .synopsis = "[-m MODEL] [-p 512] [-n 128] [-d 0,4096] [-r 3] [--rows | --start | --limits | "
                "--naive | --kernels | --typing | --lookup | --replies N | --fork | --ui] [--json] "
                "[ENGINE]",
    .summary = "Measure prefill, decode, start and what the machine could give.",
    .options = "model pre ctx @engine",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .run = run,
};
