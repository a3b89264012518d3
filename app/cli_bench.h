/* SPDX-License-Identifier: MIT
 *
 * What the parts of `chinwag bench` share: cli_bench.c reads the command line and chooses a part,
 * each of the others measures one thing, adds its figures to the JSON object and prints the table
 * for people from it. All figures are medians of -r runs unless they say otherwise.
 *
 * One operation is one multiply-add, here and in every figure; giga is 10^9.
 */
#ifndef APP_CLI_BENCH_H
#define APP_CLI_BENCH_H

#include "app/engine.h"
#include "app/json.h"
#include "core/compute/compute.h"

enum {
    BENCH_MAX_DEPTHS = 16,
    BENCH_MAX_RUNS = 99,
    BENCH_PROMPT = 10, /* ids of a short prompt */
};

struct bench {
    struct cli *cli;
    struct app_engine e; /* the file; the model and a session only after bench_open */
    int64_t n_prefill, n_decode, n_runs;
    int64_t n_replies, rate; /* of --replies; characters a second of --typing */
    int32_t depths[BENCH_MAX_DEPTHS];
    size_t n_depths;
    int32_t *ids; /* [n_ids] to evaluate; arbitrary, speed does not depend on them */
    size_t n_ids;
};

/* A part: chosen by its flag, NULL for what runs without one. */
struct bench_part {
    const char *flag;
    bool needs_model;
    int (*measure)(struct bench *b, struct json_object *out, struct cw_err *err);
    void (*print)(struct json_object *out);
};

int bench_all(struct bench *b, struct json_object *out, struct cw_err *err);
int bench_rows(struct bench *b, struct json_object *out, struct cw_err *err);
int bench_start(struct bench *b, struct json_object *out, struct cw_err *err);
void bench_speed_print(struct json_object *out);
int bench_limits(struct bench *b, struct json_object *out, struct cw_err *err);
void bench_limits_print(struct json_object *out);
int bench_naive(struct bench *b, struct json_object *out, struct cw_err *err);
void bench_naive_print(struct json_object *out);
int bench_kernels(struct bench *b, struct json_object *out, struct cw_err *err);
void bench_kernels_print(struct json_object *out);
int bench_typing(struct bench *b, struct json_object *out, struct cw_err *err);
void bench_typing_print(struct json_object *out);
int bench_lookup(struct bench *b, struct json_object *out, struct cw_err *err);
void bench_lookup_print(struct json_object *out);
int bench_replies(struct bench *b, struct json_object *out, struct cw_err *err);
void bench_replies_print(struct json_object *out);
int bench_fork(struct bench *b, struct json_object *out, struct cw_err *err);
void bench_fork_print(struct json_object *out);
int bench_ui(struct bench *b, struct json_object *out, struct cw_err *err);
void bench_ui_print(struct json_object *out);

/* ---- for all parts (cli_bench.c) ------------------------------------------------------------ */

/* Load the model with a context of at least n_ctx cells (unless -c says how many), and put what it
 * is into out. */
int bench_open(struct bench *b, size_t n_ctx, struct json_object *out, struct cw_err *err);
/* Evaluate a few tokens and forget them: packing, page faults and threads are no part of a speed.
 */
int bench_warm_up(struct bench *b, struct cw_session *s, struct cw_err *err);
/* A process of this program as `argv` says, its standard output a pipe. *seconds: from before it
 * exists to its first byte (all of it follows the last token); *rss_mib: its peak of resident
 * memory. Either may be NULL. `text` (may be NULL) receives what it printed. */
int bench_child(char *const *argv, double *seconds, double *rss_mib, struct cw_buf *text,
                struct cw_err *err);
/* The engine's flags as given to bench, for a child: at most 12 strings from argv[n] on. Returns
 * the new count; bench_flags_free frees what they need. */
struct bench_flags {
    char *values[4];
};
size_t bench_flags(const struct app_settings *s, struct bench_flags *f, const char **argv,
                   size_t n);
void bench_flags_free(struct bench_flags *f);

double bench_median(double *v, size_t n); /* sorts v; NaN when empty */
double bench_number(struct json_object *row, const char *key);
const char *bench_text(struct json_object *row, const char *key); /* "" when absent */
void bench_add(struct json_object *row, const char *key, double v);
void bench_add_whole(struct json_object *row, const char *key, double v); /* bytes and counts */
/* "label     12.3 unit", nothing when the figure is not there. */
void bench_put(struct json_object *row, const char *key, const char *label, const char *unit,
               int decimals);

/* ---- what a token costs, and what the machine gives (cli_bench_limits.c) --------------------- */

struct bench_cost {
    double weight_bytes; /* read to decode one token: every matrix once, of experts those in use */
    double macs;         /* of one prompt token in the layers' matrices, the head not included */
};
struct bench_cost bench_cost(const struct cw_model *m);
/* Bytes of the cache that decoding the token behind `depth` others reads. */
double bench_kv_bytes(const struct cw_model *m, int kv, double depth);

struct bench_machine {
    double read;  /* bytes a second, from a buffer of `read_bytes` */
    double int8;  /* multiply-adds a second */
    double sgemm; /* the same in OpenBLAS; 0: not asked for */
    double read_bytes;
};
/* The limits that the model's speeds are read against, put into out as well. */
int bench_machine(const struct bench *b, struct bench_machine *m, struct json_object *out,
                  struct cw_err *err);

#endif
