/* SPDX-License-Identifier: MIT
 *
 * Opening a GGUF file with all its parts, and finding keys and tensors by name.
 *
 * A model may be split: NAME-00001-of-00003.gguf and so on. split.no counts from 0, the names from
 * 1. The first part carries the metadata, the others little but split.*; whichever is opened, all
 * are, and what they repeat must agree. */
#include "core/gguf/internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- names -------------------------------------------------------------------------------------
 */

/* FNV-1a from a seed of this handle, stirred once more (the 64-bit finaliser of MurmurHash3). */
static uint64_t hash_name(uint64_t seed, struct cw_str name) {
    uint64_t h = seed;
    for (size_t i = 0; i < name.len; i++) {
        h = (h ^ (uint8_t)name.data[i]) * 0x100000001b3u;
    }
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
    return h ^ (h >> 33);
}

static bool same_name(struct cw_str a, struct cw_str b) {
    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

static struct cw_str key_name(const struct cw_gguf *g, size_t i) {
    return g->keys[i].pub.name;
}

static struct cw_str tensor_name(const struct cw_gguf *g, size_t i) {
    return g->tensors[i].name;
}

typedef struct cw_str name_of(const struct cw_gguf *g, size_t i);

/* The index of `name`, or SIZE_MAX; *slot is where it stands or would stand. */
static size_t index_find(const struct cw_gguf *g, const struct gguf_index *x, name_of *name_at,
                         struct cw_str name, size_t *slot) {
    for (size_t s = hash_name(g->seed, name) & (x->n_slots - 1);; s = (s + 1) & (x->n_slots - 1)) {
        *slot = s;
        if (x->slot[s] == 0) {
            return SIZE_MAX;
        }
        if (same_name(name_at(g, x->slot[s] - 1), name)) {
            return x->slot[s] - 1;
        }
    }
}

/* Build x over n names; on a second occurrence returns its index, else n. */
static size_t index_build(const struct cw_gguf *g, struct gguf_index *x, name_of *name_at,
                          size_t n) {
    x->n_slots = 16;
    while (x->n_slots < 2 * n) {
        x->n_slots *= 2;
    }
    x->slot = cw_calloc(x->n_slots, sizeof *x->slot);
    for (size_t i = 0; i < n; i++) {
        size_t slot;
        if (index_find(g, x, name_at, name_at(g, i), &slot) != SIZE_MAX) {
            return i;
        }
        x->slot[slot] = (uint32_t)(i + 1);
    }
    return n;
}

/* ---- parts -------------------------------------------------------------------------------------
 */

/* The name of part `no` (from 0) of `count`, as the opened `path` spells them; NULL when `path` is
 * not spelt as part `own` of `count`. The caller must free it. */
static char *part_path(const char *path, unsigned own, unsigned no, unsigned count) {
    char tail[64];
    size_t n = strlen(path);
    int tail_len = snprintf(tail, sizeof tail, "-%05u-of-%05u.gguf", own + 1, count);
    if (tail_len < 0 || n < (size_t)tail_len || strcmp(path + n - tail_len, tail) != 0) {
        return NULL;
    }
    struct cw_buf b = {0};
    cw_buf_add(&b, path, n - (size_t)tail_len);
    cw_buf_printf(&b, "-%05u-of-%05u.gguf", no + 1, count);
    return cw_buf_take(&b);
}

/* The unsigned value of `name` among the keys [first, n_keys): CW_ENOENT when it is not there. */
static int split_value(const struct cw_gguf *g, size_t first, const char *name, const char *path,
                       uint64_t *out, struct cw_err *err) {
    for (size_t i = first; i < g->n_keys; i++) {
        const struct cw_gguf_key *k = &g->keys[i].pub;
        if (!cw_str_eq(k->name, name)) {
            continue;
        }
        size_t bytes = cw_gguf_kind_bytes(k->kind);
        if (bytes == 0 || k->kind == CW_GGUF_F32 || k->kind == CW_GGUF_F64 ||
            k->kind == CW_GGUF_BOOL) {
            return cw_fail(err, CW_EFORMAT, "%s: key '%s' is of type %s, not an integer", path,
                           name, cw_gguf_kind_name(k->kind));
        }
        *out = 0; /* a negative one becomes large and is refused by its user */
        memcpy(out, k->data, bytes);
        return CW_OK;
    }
    return CW_ENOENT;
}

/* A key that a further part repeats must say the same; it is dropped then. */
static int merge_keys(struct cw_gguf *g, size_t first, const char *path, struct cw_err *err) {
    struct gguf_index x = {0};
    size_t kept = first;
    int rc = CW_OK;
    index_build(g, &x, key_name, first); /* duplicates are found, and named, at the end */
    for (size_t i = first; i < g->n_keys && rc == CW_OK; i++) {
        const struct gguf_key *k = &g->keys[i];
        size_t slot;
        size_t at = index_find(g, &x, key_name, k->pub.name, &slot);
        bool own = cw_str_eq(k->pub.name, "split.no") ||
                   cw_str_eq(k->pub.name, "general.alignment"); /* each part has its own */
        if (at == SIZE_MAX) {
            g->keys[kept].pub = k->pub;
            g->keys[kept].end = k->end;
            kept++;
        } else if (!own) {
            const struct gguf_key *a = &g->keys[at];
            size_t bytes = (size_t)(a->end - a->pub.data);
            if (a->pub.kind != k->pub.kind || a->pub.elem != k->pub.elem || a->pub.n != k->pub.n ||
                bytes != (size_t)(k->end - k->pub.data) ||
                memcmp(a->pub.data, k->pub.data, bytes) != 0) {
                rc = cw_fail(err, CW_EFORMAT,
                             "%s: belongs to another model: its key '%.*s' differs", path,
                             (int)(k->pub.name.len < 96 ? k->pub.name.len : 96), k->pub.name.data);
            }
        }
    }
    g->n_keys = kept;
    free(x.slot);
    return rc;
}

/* Map and parse one part behind those that are there. */
static int add_part(struct cw_gguf *g, const char *path, struct cw_err *err) {
    struct cw_map *m = &g->parts[g->n_parts];
    int rc = cw_map_open(m, path, err);
    if (rc != CW_OK) {
        return rc;
    }
    g->n_parts++;
    g->file_bytes += m->bytes;
    return cw_gguf_parse(g, m, path, err);
}

/* Open part `no` of `count` and check that it says so itself. */
static int add_split_part(struct cw_gguf *g, const char *path, uint64_t no, uint64_t count,
                          struct cw_err *err) {
    size_t first = g->n_keys;
    struct cw_err why;
    int rc = add_part(g, path, &why);
    if (rc == CW_ENOENT) {
        return cw_fail(err, CW_ENOENT, "%s: part %" PRIu64 " of %" PRIu64 " is missing", path,
                       no + 1, count);
    }
    if (rc != CW_OK) {
        return cw_fail(err, rc, "%s", why.text);
    }
    uint64_t its_no = 0, its_count = 0;
    if (split_value(g, first, "split.no", path, &its_no, NULL) != CW_OK ||
        split_value(g, first, "split.count", path, &its_count, NULL) != CW_OK || its_no != no ||
        its_count != count) {
        return cw_fail(err, CW_EFORMAT, "%s: is not part %" PRIu64 " of %" PRIu64, path, no + 1,
                       count);
    }
    return first == 0 ? CW_OK : merge_keys(g, first, path, err);
}

static void forget(struct cw_gguf *g) {
    for (size_t i = 0; i < g->n_parts; i++) {
        cw_map_close(&g->parts[i]);
    }
    g->n_parts = g->n_keys = g->n_tensors = 0;
    g->file_bytes = 0;
}

/* `path` was parsed and says it is one of several: start again with the first. */
static int open_split(struct cw_gguf *g, uint64_t own, uint64_t count, struct cw_err *err) {
    if (count > CW_GGUF_MAX_PARTS || own >= count) {
        return cw_fail(err, CW_EFORMAT,
                       "%s: says it is part %" PRIu64 " (from 0) of %" PRIu64 ", which cannot be",
                       g->path, own, count);
    }
    char *name = part_path(g->path, (unsigned)own, 0, (unsigned)count);
    if (name == NULL) {
        return cw_fail(err, CW_EFORMAT,
                       "%s: is part %" PRIu64 " of %" PRIu64
                       " and must be named ...-%05u-of-%05u.gguf for the others to be found",
                       g->path, own + 1, count, (unsigned)own + 1, (unsigned)count);
    }
    forget(g);
    int rc = CW_OK;
    for (uint64_t no = 0; no < count && rc == CW_OK; no++) {
        free(name);
        name = part_path(g->path, (unsigned)own, (unsigned)no, (unsigned)count);
        rc = add_split_part(g, name, no, count, err);
    }
    free(name);
    uint64_t total;
    if (rc == CW_OK) {
        rc = split_value(g, 0, "split.tensors.count", g->path, &total, err);
        if (rc == CW_OK && total != g->n_tensors) {
            rc = cw_fail(err, CW_EFORMAT,
                         "%s: the %" PRIu64 " parts hold %zu tensors, 'split.tensors.count' says "
                         "%" PRIu64,
                         g->path, count, g->n_tensors, total);
        }
        rc = rc == CW_ENOENT ? CW_OK : rc;
    }
    return rc;
}

static int open_parts(struct cw_gguf *g, struct cw_err *err) {
    uint64_t own = 0, count = 1;
    g->parts = cw_calloc(CW_GGUF_MAX_PARTS, sizeof *g->parts);
    int rc = add_part(g, g->path, err);
    if (rc != CW_OK) {
        return rc;
    }
    rc = split_value(g, 0, "split.count", g->path, &count, err);
    if (rc == CW_ENOENT || (rc == CW_OK && count <= 1)) {
        return CW_OK;
    }
    if (rc == CW_OK) {
        rc = split_value(g, 0, "split.no", g->path, &own, err);
        if (rc == CW_ENOENT) {
            rc = cw_fail(err, CW_EFORMAT, "%s: has 'split.count' but no 'split.no'", g->path);
        }
    }
    return rc == CW_OK ? open_split(g, own, count, err) : rc;
}

static int build_indices(struct cw_gguf *g, struct cw_err *err) {
    if (getrandom(&g->seed, sizeof g->seed, GRND_NONBLOCK) != sizeof g->seed) {
        g->seed = 0xcbf29ce484222325u; /* the plain FNV basis: slower to search at worst */
    }
    size_t i = index_build(g, &g->by_key, key_name, g->n_keys);
    if (i < g->n_keys) {
        struct cw_str s = key_name(g, i);
        return cw_fail(err, CW_EFORMAT, "%s: the key '%.*s' stands there twice", g->path,
                       (int)(s.len < 96 ? s.len : 96), s.data);
    }
    i = index_build(g, &g->by_tensor, tensor_name, g->n_tensors);
    if (i < g->n_tensors) {
        struct cw_str s = tensor_name(g, i);
        return cw_fail(err, CW_EFORMAT, "%s: the tensor '%.*s' stands there twice", g->path,
                       (int)(s.len < 96 ? s.len : 96), s.data);
    }
    g->tensor_used = cw_calloc(g->n_tensors, sizeof *g->tensor_used);
    return CW_OK;
}

static int open_file(struct cw_gguf **out, const char *path, bool any, struct cw_err *err) {
    struct cw_gguf *g = cw_calloc(1, sizeof *g);
    g->path = cw_strdup(path);
    g->any = any;
    int rc = open_parts(g, err);
    if (rc == CW_OK) {
        rc = build_indices(g, err);
    }
    if (rc == CW_OK && cw_gguf_damaged(g)) {
        rc = cw_fail(err, CW_EIO, "%s: the file changed while it was read", path);
    }
    if (rc != CW_OK) {
        cw_gguf_close(g);
        g = NULL;
    }
    *out = g;
    return rc;
}

int cw_gguf_open(struct cw_gguf **out, const char *path, struct cw_err *err) {
    return open_file(out, path, false, err);
}

int cw_gguf_open_any(struct cw_gguf **out, const char *path, struct cw_err *err) {
    return open_file(out, path, true, err);
}

void cw_gguf_close(struct cw_gguf *g) {
    if (g == NULL) {
        return;
    }
    if (g->parts != NULL) {
        forget(g);
    }
    free(g->parts);
    free(g->keys);
    free(g->tensors);
    free(g->tensor_used);
    free(g->by_key.slot);
    free(g->by_tensor.slot);
    free(g->path);
    free(g);
}

/* ---- looking up --------------------------------------------------------------------------------
 */

const char *cw_gguf_path(const struct cw_gguf *g) {
    return g->path;
}

uint64_t cw_gguf_file_bytes(const struct cw_gguf *g) {
    return g->file_bytes;
}

int cw_gguf_version(const struct cw_gguf *g) {
    return g->version;
}

bool cw_gguf_damaged(const struct cw_gguf *g) {
    for (size_t i = 0; i < g->n_parts; i++) {
        if (cw_map_damaged(&g->parts[i])) {
            return true;
        }
    }
    return false;
}

size_t cw_gguf_n_keys(const struct cw_gguf *g) {
    return g->n_keys;
}

const struct cw_gguf_key *cw_gguf_key_at(const struct cw_gguf *g, size_t i) {
    return i < g->n_keys ? &g->keys[i].pub : NULL;
}

const struct cw_gguf_key *cw_gguf_key(const struct cw_gguf *g, const char *name) {
    size_t slot;
    size_t i = index_find(g, &g->by_key, key_name, (struct cw_str){name, strlen(name)}, &slot);
    if (i == SIZE_MAX) {
        return NULL;
    }
    atomic_store_explicit(&g->keys[i].used, true, memory_order_relaxed);
    return &g->keys[i].pub;
}

bool cw_gguf_key_used(const struct cw_gguf *g, size_t i) {
    return i < g->n_keys && atomic_load_explicit(&g->keys[i].used, memory_order_relaxed);
}

size_t cw_gguf_n_tensors(const struct cw_gguf *g) {
    return g->n_tensors;
}

const struct cw_tensor *cw_gguf_tensor_at(const struct cw_gguf *g, size_t i) {
    return i < g->n_tensors ? &g->tensors[i] : NULL;
}

const struct cw_tensor *cw_gguf_tensor(const struct cw_gguf *g, const char *name) {
    size_t slot;
    size_t i =
        index_find(g, &g->by_tensor, tensor_name, (struct cw_str){name, strlen(name)}, &slot);
    if (i == SIZE_MAX) {
        return NULL;
    }
    atomic_store_explicit(&g->tensor_used[i], true, memory_order_relaxed);
    return &g->tensors[i];
}

bool cw_gguf_tensor_used(const struct cw_gguf *g, size_t i) {
    return i < g->n_tensors && atomic_load_explicit(&g->tensor_used[i], memory_order_relaxed);
}
