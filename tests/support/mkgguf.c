/* SPDX-License-Identifier: MIT
 *
 * The writer of test files. */
#include "tests/support/mkgguf.h"

#include "core/compute/maths.h"

#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void mkgguf_init(struct mkgguf *m) {
    memset(m, 0, sizeof *m);
    memcpy(m->magic, "GGUF", 4);
    m->version = 3;
    m->alignment = 32;
}

void mkgguf_free(struct mkgguf *m) {
    cw_buf_free(&m->keys);
    cw_buf_free(&m->infos);
    cw_buf_free(&m->data);
}

static void add_u32(struct cw_buf *b, uint32_t v) {
    cw_buf_add(b, &v, sizeof v);
}

static void add_u64(struct cw_buf *b, uint64_t v) {
    cw_buf_add(b, &v, sizeof v);
}

static void add_string(struct cw_buf *b, const char *s, size_t n) {
    add_u64(b, n);
    cw_buf_add(b, s, n);
}

/* ---- keys --------------------------------------------------------------------------------------
 */

void mkgguf_raw_key(struct mkgguf *m, const char *name, uint64_t name_len, const void *raw,
                    size_t bytes) {
    add_u64(&m->keys, name_len);
    cw_buf_puts(&m->keys, name);
    cw_buf_add(&m->keys, raw, bytes);
    m->n_keys++;
}

void mkgguf_scalar(struct mkgguf *m, const char *name, uint32_t kind, const void *v, size_t bytes) {
    add_string(&m->keys, name, strlen(name));
    add_u32(&m->keys, kind);
    cw_buf_add(&m->keys, v, bytes);
    m->n_keys++;
}

void mkgguf_array(struct mkgguf *m, const char *name, uint32_t elem, uint64_t n, const void *v,
                  size_t bytes) {
    add_string(&m->keys, name, strlen(name));
    add_u32(&m->keys, CW_GGUF_ARRAY);
    add_u32(&m->keys, elem);
    add_u64(&m->keys, n);
    cw_buf_add(&m->keys, v, bytes);
    m->n_keys++;
}

void mkgguf_u32(struct mkgguf *m, const char *name, uint32_t v) {
    mkgguf_scalar(m, name, CW_GGUF_U32, &v, sizeof v);
}

void mkgguf_f32(struct mkgguf *m, const char *name, float v) {
    mkgguf_scalar(m, name, CW_GGUF_F32, &v, sizeof v);
}

void mkgguf_bool(struct mkgguf *m, const char *name, bool v) {
    uint8_t byte = v;
    mkgguf_scalar(m, name, CW_GGUF_BOOL, &byte, 1);
}

void mkgguf_str(struct mkgguf *m, const char *name, const char *v) {
    struct cw_buf b = {0};
    add_string(&b, v, strlen(v));
    mkgguf_scalar(m, name, CW_GGUF_STRING, b.data, b.len);
    cw_buf_free(&b);
}

void mkgguf_strs(struct mkgguf *m, const char *name, const char *const *v, size_t n) {
    struct cw_buf b = {0};
    for (size_t i = 0; i < n; i++) {
        add_string(&b, v[i], strlen(v[i]));
    }
    mkgguf_array(m, name, CW_GGUF_STRING, n, b.data, b.len);
    cw_buf_free(&b);
}

/* ---- tensors -----------------------------------------------------------------------------------
 */

static void add_entry(struct mkgguf *m, const char *name, size_t name_len, uint32_t type,
                      uint32_t n_dims, const uint64_t *dims, uint64_t offset) {
    add_string(&m->infos, name, name_len);
    add_u32(&m->infos, n_dims);
    for (uint32_t d = 0; d < n_dims && d < 16; d++) {
        add_u64(&m->infos, dims[d]);
    }
    add_u32(&m->infos, type);
    add_u64(&m->infos, offset);
    m->n_tensors++;
}

void mkgguf_entry(struct mkgguf *m, const char *name, uint32_t type, uint32_t n_dims,
                  const uint64_t *dims, uint64_t offset) {
    add_entry(m, name, strlen(name), type, n_dims, dims, offset);
}

static void pad(struct cw_buf *b, uint32_t alignment) {
    while (alignment != 0 && b->len % alignment != 0) {
        cw_buf_putc(b, '\0');
    }
}

static void add_tensor(struct mkgguf *m, struct cw_str name, uint32_t type, uint32_t n_dims,
                       const uint64_t *dims, const void *data, size_t bytes) {
    pad(&m->data, m->alignment);
    add_entry(m, name.data, name.len, type, n_dims, dims, m->data.len);
    cw_buf_add(&m->data, data, bytes);
}

void mkgguf_tensor(struct mkgguf *m, const char *name, uint32_t type, uint32_t n_dims,
                   const uint64_t *dims, const void *data, size_t bytes) {
    add_tensor(m, (struct cw_str){name, strlen(name)}, type, n_dims, dims, data, bytes);
}

/* ---- files -------------------------------------------------------------------------------------
 */

void mkgguf_build(const struct mkgguf *m, struct cw_buf *out) {
    cw_buf_clear(out);
    cw_buf_add(out, m->magic, 4);
    add_u32(out, m->version);
    add_u64(out, m->n_tensors + m->more_tensors);
    add_u64(out, m->n_keys + m->more_keys);
    cw_buf_add(out, m->keys.data, m->keys.len);
    cw_buf_add(out, m->infos.data, m->infos.len);
    if (m->data.len > 0) {
        pad(out, m->alignment);
        cw_buf_add(out, m->data.data, m->data.len);
    }
}

void tmp_write(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    if (f == NULL || fwrite(data, 1, n, f) != n || fclose(f) != 0) {
        perror(path);
        abort();
    }
}

void mkgguf_save(const struct mkgguf *m, const char *path) {
    struct cw_buf b = {0};
    mkgguf_build(m, &b);
    tmp_write(path, b.data, b.len);
    cw_buf_free(&b);
}

static char tmp_dir[256];
static pid_t tmp_owner;

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw) {
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void tmp_clear(void) {
    if (tmp_owner == getpid()) { /* not a child that inherited it */
        nftw(tmp_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    }
}

const char *tmp_path(const char *name) {
    static char path[2][512];
    static int turn;
    if (tmp_owner != getpid()) {
        const char *root = getenv("TMPDIR");
        snprintf(tmp_dir, sizeof tmp_dir, "%s/chinwag-test-XXXXXX", root != NULL ? root : "/tmp");
        if (mkdtemp(tmp_dir) == NULL) {
            perror(tmp_dir);
            abort();
        }
        tmp_owner = getpid();
        atexit(tmp_clear);
    }
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", tmp_dir, name);
    return path[turn];
}

const char *reference_dir(void) {
    static char dir[1024];
    const char *root = getenv("CHINWAG_SOURCE_ROOT");
    snprintf(dir, sizeof dir, "%s/../shared/reference", root != NULL ? root : ".");
    if (access(dir, R_OK) != 0) {
        printf("skipped: no reference data in %s\n", dir);
        return NULL;
    }
    return dir;
}

/* ---- copies ------------------------------------------------------------------------------------
 */

static size_t value_bytes(const struct cw_gguf_key *k) {
    static const uint8_t size[CW_GGUF_N_KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (k->elem != CW_GGUF_STRING) {
        return (size_t)k->n * size[k->elem];
    }
    const uint8_t *at = k->data;
    for (uint64_t i = 0; i < k->n; i++) {
        uint64_t len;
        memcpy(&len, at, sizeof len);
        at += sizeof len + len;
    }
    return (size_t)(at - k->data);
}

void mkgguf_copy_keys(struct mkgguf *m, const struct cw_gguf *g, mkgguf_keep *keep, void *arg) {
    for (size_t i = 0; i < cw_gguf_n_keys(g); i++) {
        const struct cw_gguf_key *k = cw_gguf_key_at(g, i);
        if (keep != NULL && !keep(arg, k->name)) {
            continue;
        }
        char *name = cw_strndup(k->name.data, k->name.len);
        if (k->kind == CW_GGUF_ARRAY) {
            mkgguf_array(m, name, k->elem, k->n, k->data, value_bytes(k));
        } else {
            mkgguf_scalar(m, name, k->kind, k->data, value_bytes(k));
        }
        free(name);
    }
}

void mkgguf_copy_tensors(struct mkgguf *m, const struct cw_gguf *g, mkgguf_keep *keep, void *arg) {
    for (size_t i = 0; i < cw_gguf_n_tensors(g); i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(g, i);
        uint64_t dims[4];
        if (keep != NULL && !keep(arg, t->name)) {
            continue;
        }
        for (int d = 0; d < 4; d++) {
            dims[d] = (uint64_t)t->dims[d];
        }
        add_tensor(m, t->name, t->type, (uint32_t)t->n_dims, dims, t->data, (size_t)t->bytes);
    }
}

/* One block of 32: an f16 scale, the largest magnitude over 127, and 32 signed bytes. */
static void quantise_block(const float *x, struct cw_buf *out) {
    float largest = 0.0f;
    for (int i = 0; i < 32; i++) {
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    }
    float d = largest / 127.0f;
    uint16_t half = cw_f32_to_f16(d);
    int8_t q[32];
    for (int i = 0; i < 32; i++) {
        q[i] = (int8_t)(d > 0.0f ? lrintf(x[i] / d) : 0);
    }
    cw_buf_add(out, &half, sizeof half);
    cw_buf_add(out, q, sizeof q);
}

static bool contains(struct cw_str s, const char *part) {
    return memmem(s.data, s.len, part, strlen(part)) != NULL;
}

void mkgguf_quantise(const char *from, const char *to) {
    struct cw_gguf *g;
    struct cw_err err;
    struct mkgguf m;
    if (cw_gguf_open(&g, from, &err) != CW_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    mkgguf_init(&m);
    mkgguf_copy_keys(&m, g, NULL, NULL);
    for (size_t i = 0; i < cw_gguf_n_tensors(g); i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(g, i);
        uint64_t dims[4];
        for (int d = 0; d < 4; d++) {
            dims[d] = (uint64_t)t->dims[d];
        }
        if (t->type != CW_F32 || t->n_dims < 2 || t->dims[0] % 32 != 0 ||
            contains(t->name, ".bias") || contains(t->name, "ffn_gate_inp") ||
            contains(t->name, "position_embd")) {
            add_tensor(&m, t->name, t->type, (uint32_t)t->n_dims, dims, t->data, (size_t)t->bytes);
            continue;
        }
        struct cw_buf b = {0};
        for (uint64_t at = 0; at < t->bytes; at += 32 * sizeof(float)) {
            float x[32];
            memcpy(x, t->data + at, sizeof x);
            quantise_block(x, &b);
        }
        add_tensor(&m, t->name, CW_Q8_0, (uint32_t)t->n_dims, dims, b.data, b.len);
        cw_buf_free(&b);
    }
    mkgguf_save(&m, to);
    mkgguf_free(&m);
    cw_gguf_close(g);
}
