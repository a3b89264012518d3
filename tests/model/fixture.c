/* SPDX-License-Identifier: MIT
 *
 * Helpers of the model suites. */
#include "tests/model/fixture.h"

#include <check.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *source_root(void) {
    const char *root = getenv("CHINWAG_SOURCE_ROOT");
    return root != NULL ? root : ".";
}

char *model_path(const char *file) {
    struct cw_buf b = {0};
    cw_buf_printf(&b, "%s/tests/data/models/%s", source_root(), file);
    if (access(b.data, R_OK) != 0) {
        cw_buf_clear(&b);
        cw_buf_printf(&b, "%s/../shared/reference/models/%s", source_root(), file);
    }
    if (access(b.data, R_OK) != 0) {
        printf("skipped: no model %s\n", file);
        cw_buf_free(&b);
        return NULL;
    }
    return cw_buf_take(&b);
}

char *real_model_path(const char *file) {
    struct cw_buf b = {0};
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (data != NULL && *data != '\0') {
        cw_buf_puts(&b, data);
    } else {
        cw_buf_printf(&b, "%s/.local/share", home != NULL ? home : "");
    }
    cw_buf_printf(&b, "/chinwag/models/%s", file);
    if (access(b.data, R_OK) != 0) {
        printf("skipped: no real model (%s)\n", b.data);
        cw_buf_free(&b);
        return NULL;
    }
    return cw_buf_take(&b);
}

void fixture_open(struct fixture *f, const char *path, const struct run_options *o) {
    struct cw_err err = {0};
    struct cw_model_options opt = {.n_threads = o->n_threads, .isa = o->isa, .exact = o->exact};
    ck_assert_msg(cw_gguf_open(&f->gguf, path, &err) == CW_OK, "%s", err.text);
    ck_assert_msg(cw_model_load(&f->model, f->gguf, &opt, &err) == CW_OK, "%s", err.text);
}

void fixture_close(struct fixture *f) {
    cw_model_destroy(f->model);
    cw_gguf_close(f->gguf);
}

void load_fails(const char *path, int code, const char *part) {
    struct cw_err err = {0};
    struct cw_gguf *g;
    struct cw_model *m = (struct cw_model *)(uintptr_t)1;
    struct cw_model_options opt = {.n_threads = 1, .isa = CW_ISA_SCALAR};
    ck_assert_msg(cw_gguf_open(&g, path, &err) == CW_OK, "%s", err.text);
    int rc = cw_model_load(&m, g, &opt, &err);
    ck_assert_msg(rc == code, "code %d (%s), not %d (%s)", rc, err.text, code, part);
    ck_assert_ptr_null(m);
    ck_assert_msg(strstr(err.text, part) != NULL, "'%s' does not say '%s'", err.text, part);
    cw_gguf_close(g);
}

struct cw_session *session_open(struct fixture *f, const struct run_options *o) {
    struct cw_err err = {0};
    struct cw_session *s;
    struct cw_session_options opt = {.n_ctx = o->n_ctx, .chunk = o->chunk, .kv = o->kv};
    ck_assert_msg(cw_session_create(&s, f->model, &opt, &err) == CW_OK, "%s", err.text);
    return s;
}

struct rows {
    float *out;
    size_t next, n_vocab;
};

static void keep_row(void *arg, size_t position, const float *logits) {
    struct rows *r = arg;
    ck_assert_uint_eq(position, r->next);
    memcpy(r->out + position * r->n_vocab, logits, r->n_vocab * sizeof *logits);
    r->next++;
}

float *all_rows(struct fixture *f, const int32_t *ids, size_t n, const struct run_options *o) {
    struct cw_err err = {0};
    size_t n_vocab = (size_t)cw_model_get_info(f->model)->n_vocab;
    struct rows r = {cw_reallocarray(NULL, n * n_vocab, sizeof(float)), 0, n_vocab};
    struct cw_session_hooks hooks = {.row = keep_row, .arg = &r};
    struct cw_session *s = session_open(f, o);
    ck_assert_msg(cw_session_extend(s, ids, n, &hooks, &err) == CW_OK, "%s", err.text);
    ck_assert_uint_eq(r.next, n);
    ck_assert(same_bits(cw_session_logits(s), r.out + (n - 1) * n_vocab, n_vocab));
    cw_session_destroy(s);
    return r.out;
}

bool same_bits(const float *a, const float *b, size_t n) {
    return memcmp(a, b, n * sizeof *a) == 0;
}

double nmse(const float *y, const float *r, size_t n) {
    double error = 0.0, power = 0.0;
    for (size_t i = 0; i < n; i++) {
        double d = (double)y[i] - (double)r[i];
        error += d * d;
        power += (double)r[i] * (double)r[i];
    }
    return error / power;
}

void random_ids(int32_t *ids, size_t n, int n_vocab, uint64_t seed) {
    uint64_t r = seed * 0x9e3779b97f4a7c15u + 88172645463325252u;
    for (size_t i = 0; i < n; i++) {
        r ^= r << 13;
        r ^= r >> 7;
        r ^= r << 17;
        ids[i] = (int32_t)((r >> 11) % (uint64_t)n_vocab);
    }
}

/* ---- a good file with one thing changed -------------------------------------------------------
 */

const struct run_options plain_run = {
    .isa = CW_ISA_SCALAR, .n_threads = 1, .n_ctx = 64, .exact = true};
struct cw_gguf *change_source;
struct mkgguf change_out;

void change_begin(const char *file) {
    char *path = model_path(file);
    ck_assert_ptr_nonnull(path);
    ck_assert_int_eq(cw_gguf_open(&change_source, path, NULL), CW_OK);
    mkgguf_init(&change_out);
    free(path);
}

const char *change_finish(void) {
    const char *path = tmp_path("changed.gguf");
    mkgguf_save(&change_out, path);
    mkgguf_free(&change_out);
    cw_gguf_close(change_source);
    return path;
}

static bool not_named(void *arg, struct cw_str name) {
    return arg == NULL || !cw_str_eq(name, arg);
}

void change_keys_but(const char *name) {
    mkgguf_copy_keys(&change_out, change_source, not_named, (void *)(uintptr_t)name);
}

void change_tensors_but(const char *name) {
    mkgguf_copy_tensors(&change_out, change_source, not_named, (void *)(uintptr_t)name);
}

float *score_file(const char *path, size_t *n_vocab) {
    struct fixture f;
    int32_t ids[24];
    fixture_open(&f, path, &plain_run);
    random_ids(ids, 24, 320, 11);
    *n_vocab = (size_t)cw_model_get_info(f.model)->n_vocab;
    struct cw_session *s = session_open(&f, &plain_run);
    ck_assert_int_eq(cw_session_extend(s, ids, 24, NULL, NULL), CW_OK);
    float *y = cw_reallocarray(NULL, *n_vocab, sizeof *y);
    memcpy(y, cw_session_logits(s), *n_vocab * sizeof *y);
    cw_session_destroy(s);
    fixture_close(&f);
    return y;
}

char *notices_of(const char *path) {
    struct fixture f;
    struct cw_buf b = {0};
    fixture_open(&f, path, &plain_run);
    cw_buf_puts(&b, "");
    for (size_t i = 0; cw_model_notice(f.model, i) != NULL; i++) {
        cw_buf_printf(&b, "%s\n", cw_model_notice(f.model, i));
    }
    fixture_close(&f);
    return cw_buf_take(&b);
}

/* ---- cases -------------------------------------------------------------------------------------
 */

static struct json_object *need(struct json_object *o, const char *key) {
    struct json_object *v;
    ck_assert_msg(json_object_object_get_ex(o, key, &v), "no field %s", key);
    return v;
}

static void get_text(struct json_object *o, const char *key, char *out, size_t cap) {
    snprintf(out, cap, "%s", json_object_get_string(need(o, key)));
}

static size_t get_ids(struct json_object *o, const char *key, int32_t *out, size_t cap) {
    struct json_object *a = need(o, key);
    size_t n = json_object_array_length(a);
    ck_assert_uint_le(n, cap);
    for (size_t i = 0; i < n; i++) {
        out[i] = json_object_get_int(json_object_array_get_idx(a, i));
    }
    return n;
}

static size_t get_floats(struct json_object *o, const char *key, float *out, size_t cap) {
    struct json_object *a = need(o, key);
    size_t n = json_object_array_length(a);
    ck_assert_uint_le(n, cap);
    for (size_t i = 0; i < n; i++) {
        out[i] = (float)json_object_get_double(json_object_array_get_idx(a, i));
    }
    return n;
}

/* Call one(arg, object) for each line of the file. False when there is no such file. */
static bool each_line(const char *path, void (*one)(void *arg, struct json_object *o), void *arg) {
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t cap = 0;
    if (f == NULL) {
        return false;
    }
    while (getline(&line, &cap, f) > 0) {
        struct json_object *o = json_tokener_parse(line);
        ck_assert_ptr_nonnull(o);
        one(arg, o);
        json_object_put(o);
    }
    free(line);
    fclose(f);
    return true;
}

struct case_list {
    struct logits_case *v;
    size_t n;
};

static void add_case(void *arg, struct json_object *o) {
    struct case_list *l = arg;
    l->v = cw_reallocarray(l->v, l->n + 1, sizeof *l->v);
    struct logits_case *c = &l->v[l->n++];
    struct json_object *v;
    memset(c, 0, sizeof *c);
    get_text(o, "case", c->name, sizeof c->name);
    get_text(o, "model", c->model, sizeof c->model);
    c->n_ids = get_ids(o, "tokens", c->ids, 64);
    c->n_greedy = get_ids(o, "greedy", c->greedy, 64);
    get_floats(o, "greedy_gap", c->greedy_gap, 64);
    c->n_ctx = json_object_object_get_ex(o, "n_ctx", &v) ? (uint32_t)json_object_get_int(v) : 0;
    c->bound = json_object_get_double(need(o, "bound"));
    c->logits = cw_calloc(1024, sizeof *c->logits);
    c->n_logits = get_floats(o, "logits", c->logits, 1024);
}

struct logits_case *read_cases(size_t *n) {
    struct case_list l = {0};
    struct cw_buf path = {0};
    cw_buf_printf(&path, "%s/tests/data/logits.jsonl", source_root());
    ck_assert_msg(each_line(path.data, add_case, &l), "no %s", path.data);
    cw_buf_free(&path);
    *n = l.n;
    return l.v;
}

struct greedy_list {
    struct greedy_case *v;
    size_t n;
    const char *model;
};

static void add_greedy(void *arg, struct json_object *o) {
    struct greedy_list *l = arg;
    if (strcmp(json_object_get_string(need(o, "model")), l->model) != 0) {
        return;
    }
    l->v = cw_reallocarray(l->v, l->n + 1, sizeof *l->v);
    struct greedy_case *c = &l->v[l->n++];
    memset(c, 0, sizeof *c);
    get_text(o, "case", c->name, sizeof c->name);
    c->n_ids = get_ids(o, "tokens", c->ids, 512);
    c->n_greedy = get_ids(o, "greedy", c->greedy, 64);
    get_floats(o, "gap", c->gap, 64);
}

struct greedy_case *read_greedy(const char *model, size_t *n) {
    struct greedy_list l = {.model = model};
    const char *dir = reference_dir();
    *n = 0;
    if (dir == NULL) {
        return NULL;
    }
    struct cw_buf path = {0};
    cw_buf_printf(&path, "%s/greedy.jsonl", dir);
    if (!each_line(path.data, add_greedy, &l)) {
        printf("skipped: no %s\n", path.data);
    }
    cw_buf_free(&path);
    *n = l.n;
    return l.v;
}
