/* SPDX-License-Identifier: MIT
 *
 * What the model suites share: finding and opening models, evaluating ids in different ways, and
 * the reference's cases. A model that is nowhere is skipped with a line; anything else that goes
 * wrong fails the test. */
#ifndef TESTS_MODEL_FIXTURE_H
#define TESTS_MODEL_FIXTURE_H

#include "chinwag/session.h"
#include "tests/support/mkgguf.h"

struct fixture {
    struct cw_gguf *gguf;
    struct cw_model *model;
};

struct run_options {
    enum cw_isa isa;
    int n_threads, chunk;
    uint32_t n_ctx;
    bool exact;
    enum cw_kv_type kv;
};

/* tests/data/models/FILE, else the reference's; NULL and a line "skipped: .." if neither is there.
 * The caller must free it. */
char *model_path(const char *file);
/* FILE in the user's models directory, or NULL and a line. The caller must free it. */
char *real_model_path(const char *file);

void fixture_open(struct fixture *f, const char *path, const struct run_options *o);
void fixture_close(struct fixture *f);
/* Loading must fail: the code, and a line that holds `part`. */
void load_fails(const char *path, int code, const char *part);
struct cw_session *session_open(struct fixture *f, const struct run_options *o);

/* Logits after each of ids[0..n), [n, n_vocab] f32, from a fresh session. Caller must free. */
float *all_rows(struct fixture *f, const int32_t *ids, size_t n, const struct run_options *o);

/* Bit for bit the same. */
bool same_bits(const float *a, const float *b, size_t n);
/* sum((y - r)^2) / sum(r^2) */
double nmse(const float *y, const float *r, size_t n);

/* Deterministic ids below n_vocab. */
void random_ids(int32_t *ids, size_t n, int n_vocab, uint64_t seed);

/* ---- a good file with one thing changed -------------------------------------------------------
 */

/* Scalar kernels, one thread, a context of 64, exact. */
extern const struct run_options plain_run;
/* Between change_begin and change_finish: the file that is read, and the one that is written. */
extern struct cw_gguf *change_source;
extern struct mkgguf change_out;

void change_begin(const char *file); /* as model_path, but it must be there */
/* Copy what `name` does not name (NULL: all). */
void change_keys_but(const char *name);
void change_tensors_but(const char *name);
/* Write the file. Static storage, overwritten by the call after next. */
const char *change_finish(void);

/* Logits after 24 fixed ids. Caller must free. */
float *score_file(const char *path, size_t *n_vocab);
/* The notices of loading `path`, a line each. Caller must free. */
char *notices_of(const char *path);

struct logits_case {
    char name[96], model[96];
    int32_t ids[64], greedy[64];
    float greedy_gap[64];
    size_t n_ids, n_greedy, n_logits;
    uint32_t n_ctx; /* 0: not given */
    double bound;
    float *logits;
};

/* Every line of tests/data/logits.jsonl. */
struct logits_case *read_cases(size_t *n);

struct greedy_case {
    char name[96];
    int32_t ids[512], greedy[64];
    float gap[64];
    size_t n_ids, n_greedy;
};

/* The lines of the reference's greedy.jsonl for `model`; NULL when the file is not there. */
struct greedy_case *read_greedy(const char *model, size_t *n);

#endif
