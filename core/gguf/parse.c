/* SPDX-License-Identifier: MIT
 *
 * The header of one GGUF file, read with a cursor that cannot pass the end.
 *
 * The layout (GGUF specification, versions 2 and 3):
 *   magic "GGUF", u32 version, u64 n_tensors, u64 n_keys
 *   n_keys times:    string name, u32 kind, value
 *   n_tensors times: string name, u32 n_dims, u64 dims[n_dims], u32 type, u64 offset
 *   padding to general.alignment, then the data that the offsets count from
 * where a string is a u64 length and its bytes, an array a u32 kind, a u64 count and its elements.
 *
 * No number from the file is used before it was compared with the bytes that are left, and no table
 * grows faster than entries are really read: a count may lie, it costs nothing. */
#include "core/gguf/internal.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_NAME = 65535,     /* bytes of a name; the specification allows keys that long */
    MAX_ENTRIES = 1 << 20 /* keys or tensors of one file: some fifty times the largest known */
};

struct cursor {
    const uint8_t *at, *end;
};

static uint64_t left(const struct cursor *c) {
    return (uint64_t)(c->end - c->at);
}

static bool take(struct cursor *c, void *out, size_t n) {
    if (left(c) < n) {
        return false;
    }
    memcpy(out, c->at, n);
    c->at += n;
    return true;
}

static bool take_string(struct cursor *c, struct cw_str *out) {
    uint64_t n;
    if (!take(c, &n, sizeof n) || n > left(c)) {
        return false;
    }
    *out = (struct cw_str){(const char *)c->at, (size_t)n};
    c->at += n;
    return true;
}

size_t cw_gguf_kind_bytes(enum cw_gguf_kind kind) {
    static const uint8_t bytes[CW_GGUF_N_KINDS] = {
        [CW_GGUF_U8] = 1,  [CW_GGUF_I8] = 1,  [CW_GGUF_U16] = 2, [CW_GGUF_I16] = 2,
        [CW_GGUF_U32] = 4, [CW_GGUF_I32] = 4, [CW_GGUF_F32] = 4, [CW_GGUF_BOOL] = 1,
        [CW_GGUF_U64] = 8, [CW_GGUF_I64] = 8, [CW_GGUF_F64] = 8,
    };
    return (unsigned)kind < CW_GGUF_N_KINDS ? bytes[kind] : 0;
}

const char *cw_gguf_kind_name(enum cw_gguf_kind kind) {
    static const char *const names[CW_GGUF_N_KINDS] = {
        [CW_GGUF_U8] = "uint8",    [CW_GGUF_I8] = "int8",    [CW_GGUF_U16] = "uint16",
        [CW_GGUF_I16] = "int16",   [CW_GGUF_U32] = "uint32", [CW_GGUF_I32] = "int32",
        [CW_GGUF_F32] = "float32", [CW_GGUF_BOOL] = "bool",  [CW_GGUF_STRING] = "string",
        [CW_GGUF_ARRAY] = "array", [CW_GGUF_U64] = "uint64", [CW_GGUF_I64] = "int64",
        [CW_GGUF_F64] = "float64",
    };
    return (unsigned)kind < CW_GGUF_N_KINDS ? names[kind] : "unknown";
}

/* ---- what the file is --------------------------------------------------------------------------
 */

static bool starts(const struct cw_map *m, const char *text) {
    size_t n = strlen(text);
    return m->bytes >= n && memcmp(m->base, text, n) == 0;
}

static bool starts_html(const struct cw_map *m) {
    size_t i = 0;
    while (i < m->bytes && i < 256 && (m->base[i] <= ' ' || m->base[i] >= 0x80)) {
        i++; /* blanks and a byte order mark */
    }
    static const char *const marks[] = {"<!doctype", "<html", "<head", "<?xml"};
    for (size_t k = 0; k < sizeof marks / sizeof *marks; k++) {
        size_t n = strlen(marks[k]), j = 0;
        while (j < n && i + j < m->bytes && (m->base[i + j] | 0x20) == (marks[k][j] | 0x20)) {
            j++;
        }
        if (j == n) {
            return true;
        }
    }
    return false;
}

/* One sentence for each thing that people take for a model file. */
static int refuse_magic(const struct cw_map *m, const char *path, struct cw_err *err) {
    static const struct {
        const char *start, *why;
    } known[] = {
        {"version https://git-lfs",
         "is a Git LFS pointer, a few lines of text in the model's place: fetch the file itself"},
        {"FUGG", "is a big-endian GGUF file; only little-endian ones are supported"},
        {"GGML", "is a GGML file, the format before GGUF: convert it again"},
        {"lmgg", "is a GGML file, the format before GGUF: convert it again"},
        {"fmgg", "is a GGMF file, a format before GGUF: convert it again"},
        {"tjgg", "is a GGJT file, a format before GGUF: convert it again"},
        {"algg", "is a GGLA file (an adapter), not a model"},
        {"PK\003\004", "is a zip archive (a PyTorch file?), not a GGUF file"},
        {"\x1f\x8b", "is compressed with gzip: unpack it first"},
        {"\x28\xb5\x2f\xfd", "is compressed with zstd: unpack it first"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (starts(m, known[i].start)) {
            return cw_fail(err, CW_EFORMAT, "%s: %s", path, known[i].why);
        }
    }
    if (starts_html(m)) {
        return cw_fail(err, CW_EFORMAT, "%s: is a web page, not a model: the download went wrong",
                       path);
    }
    if (m->bytes > 9 && m->base[8] == '{' && m->base[9] == '"') {
        return cw_fail(err, CW_EFORMAT, "%s: is a safetensors file: convert it to GGUF", path);
    }
    if (m->bytes < 4) {
        return cw_fail(err, CW_EFORMAT, "%s: too short for a GGUF file (%zu bytes)", path,
                       m->bytes);
    }
    if (m->bytes >= 64 && memcmp(m->base, m->base + 1, 63) == 0 && m->base[0] == 0) {
        return cw_fail(err, CW_EFORMAT, "%s: begins with zeros, as an unfinished download does",
                       path);
    }
    char begin[64];
    cw_printable(begin, sizeof begin, (const char *)m->base, m->bytes < 24 ? m->bytes : 24);
    return cw_fail(err, CW_EFORMAT, "%s: not a GGUF file (it begins with '%s')", path, begin);
}

static int check_version(uint32_t version, const char *path, struct cw_err *err) {
    if (version == 2 || version == 3) {
        return CW_OK;
    }
    uint32_t swapped = __builtin_bswap32(version);
    if (swapped >= 1 && swapped <= 0xffff) {
        return cw_fail(err, CW_EUNSUP,
                       "%s: is a big-endian GGUF file; only little-endian ones are supported",
                       path);
    }
    if (version == 1) {
        return cw_fail(err, CW_EUNSUP, "%s: GGUF version 1 is not supported: convert it again",
                       path);
    }
    return cw_fail(err, CW_EUNSUP, "%s: GGUF version %" PRIu32 " is not supported (2 and 3 are)",
                   path, version);
}

/* ---- keys --------------------------------------------------------------------------------------
 */

/* Pass over n elements of `elem`; false when they do not fit. */
static bool skip_elements(struct cursor *c, enum cw_gguf_kind elem, uint64_t n) {
    size_t size = cw_gguf_kind_bytes(elem);
    if (size != 0) {
        if (n > left(c) / size) {
            return false;
        }
        c->at += n * size;
        return true;
    }
    if (n > left(c) / sizeof(uint64_t)) { /* an empty string is its length */
        return false;
    }
    for (uint64_t i = 0; i < n; i++) {
        struct cw_str s;
        if (!take_string(c, &s)) {
            return false;
        }
    }
    return true;
}

static int parse_key(struct cw_gguf *g, struct cursor *c, uint64_t i, const char *path,
                     struct cw_err *err) {
    struct cw_gguf_key k = {.n = 1};
    uint32_t kind;
    if (!take_string(c, &k.name) || k.name.len > MAX_NAME) {
        return cw_fail(err, CW_EFORMAT, "%s: the name of key %" PRIu64 " does not fit the file",
                       path, i);
    }
    if (k.name.len == 0) {
        return cw_fail(err, CW_EFORMAT, "%s: the name of key %" PRIu64 " is empty", path, i);
    }
    int name_len = (int)(k.name.len < 96 ? k.name.len : 96);
    if (!take(c, &kind, sizeof kind)) {
        return cw_fail(err, CW_EFORMAT, "%s: the file ends inside key '%.*s'", path, name_len,
                       k.name.data);
    }
    if (kind >= CW_GGUF_N_KINDS) {
        return cw_fail(err, CW_EFORMAT, "%s: key '%.*s' has the unknown value type %" PRIu32, path,
                       name_len, k.name.data, kind);
    }
    k.kind = k.elem = (enum cw_gguf_kind)kind;
    if (k.kind == CW_GGUF_ARRAY) {
        uint32_t elem;
        if (!take(c, &elem, sizeof elem) || !take(c, &k.n, sizeof k.n)) {
            return cw_fail(err, CW_EFORMAT, "%s: the file ends inside key '%.*s'", path, name_len,
                           k.name.data);
        }
        if (elem >= CW_GGUF_N_KINDS) {
            return cw_fail(err, CW_EFORMAT,
                           "%s: key '%.*s' is an array of the unknown type %" PRIu32, path,
                           name_len, k.name.data, elem);
        }
        if (elem == CW_GGUF_ARRAY) {
            return cw_fail(err, CW_EUNSUP, "%s: key '%.*s' is an array of arrays", path, name_len,
                           k.name.data);
        }
        k.elem = (enum cw_gguf_kind)elem;
    }
    k.data = c->at;
    if (!skip_elements(c, k.elem, k.n)) {
        return cw_fail(err, CW_EFORMAT,
                       "%s: the value of key '%.*s' (%" PRIu64 " of %s) does not fit the file",
                       path, name_len, k.name.data, k.n, cw_gguf_kind_name(k.elem));
    }
    if (g->n_keys == g->cap_keys) {
        g->cap_keys = g->cap_keys < 32 ? 64 : g->cap_keys * 2;
        g->keys = cw_reallocarray(g->keys, g->cap_keys, sizeof *g->keys);
    }
    struct gguf_key *slot = &g->keys[g->n_keys++];
    slot->pub = k;
    slot->end = c->at;
    atomic_init(&slot->used, false);
    return CW_OK;
}

/* general.alignment of this part, from the keys [first, n_keys). */
static int alignment_of(const struct cw_gguf *g, size_t first, const char *path, uint32_t *out,
                        struct cw_err *err) {
    *out = 32;
    for (size_t i = first; i < g->n_keys; i++) {
        const struct cw_gguf_key *k = &g->keys[i].pub;
        if (!cw_str_eq(k->name, "general.alignment")) {
            continue;
        }
        if (k->kind != CW_GGUF_U32) {
            return cw_fail(err, CW_EFORMAT, "%s: key 'general.alignment' is of type %s, not uint32",
                           path, cw_gguf_kind_name(k->kind));
        }
        memcpy(out, k->data, sizeof *out);
        if (*out < 8 || *out > 65536 || (*out & (*out - 1)) != 0) {
            return cw_fail(err, CW_EFORMAT,
                           "%s: key 'general.alignment' is %" PRIu32
                           ", not a power of two from 8 to 65536",
                           path, *out);
        }
    }
    return CW_OK;
}

/* ---- tensors -----------------------------------------------------------------------------------
 */

/* The type, shape and size of t, whose name, dims and raw type number are set. */
static int check_shape(struct cw_tensor *t, uint32_t type, bool any, const char *path,
                       struct cw_err *err) {
    int name_len = (int)(t->name.len < 96 ? t->name.len : 96);
    uint64_t elements = 1;
    for (int d = 0; d < t->n_dims; d++) {
        if (t->dims[d] < 1) {
            return cw_fail(err, CW_EFORMAT, "%s: tensor '%.*s': dimension %d is %" PRIu64, path,
                           name_len, t->name.data, d, (uint64_t)t->dims[d]);
        }
        if (__builtin_mul_overflow(elements, (uint64_t)t->dims[d], &elements) ||
            elements > INT64_MAX) {
            return cw_fail(err, CW_EFORMAT,
                           "%s: tensor '%.*s': its dimensions multiply to too much", path, name_len,
                           t->name.data);
        }
    }
    const struct cw_type_info *info = cw_type_info(type);
    if (info == NULL && any) {
        return CW_OK; /* its size is found from its neighbours */
    }
    if (info == NULL) {
        const char *known = cw_type_known_name(type);
        return cw_fail(err, CW_EUNSUP,
                       "%s: tensor '%.*s' is of type %" PRIu32 "%s%s%s, which is "
                       "not supported",
                       path, name_len, t->name.data, type, known ? " (" : "", known ? known : "",
                       known ? ")" : "");
    }
    if (t->dims[0] % info->block != 0) {
        return cw_fail(err, CW_EFORMAT,
                       "%s: tensor '%.*s': rows of %" PRId64 " are no multiple of the %d of %s",
                       path, name_len, t->name.data, t->dims[0], info->block, info->name);
    }
    uint64_t blocks = elements / (uint64_t)info->block;
    if (__builtin_mul_overflow(blocks, (uint64_t)info->block_bytes, &t->bytes)) {
        return cw_fail(err, CW_EFORMAT, "%s: tensor '%.*s': its dimensions multiply to too much",
                       path, name_len, t->name.data);
    }
    return CW_OK;
}

/* Until the start of the data is known, data holds the offset. */
static int parse_tensor(struct cw_gguf *g, struct cursor *c, uint64_t i, const char *path,
                        uint32_t alignment, uint64_t *offset, struct cw_err *err) {
    struct cw_tensor t = {.dims = {1, 1, 1, 1}};
    uint32_t n_dims, type;
    if (!take_string(c, &t.name) || t.name.len > MAX_NAME) {
        return cw_fail(err, CW_EFORMAT, "%s: the name of tensor %" PRIu64 " does not fit the file",
                       path, i);
    }
    if (t.name.len == 0) {
        return cw_fail(err, CW_EFORMAT, "%s: the name of tensor %" PRIu64 " is empty", path, i);
    }
    int name_len = (int)(t.name.len < 96 ? t.name.len : 96);
    if (!take(c, &n_dims, sizeof n_dims)) {
        goto ends;
    }
    if (n_dims < 1 || n_dims > 4) {
        return cw_fail(err, CW_EFORMAT, "%s: tensor '%.*s' has %" PRIu32 " dimensions, not 1 to 4",
                       path, name_len, t.name.data, n_dims);
    }
    t.n_dims = (int)n_dims;
    for (int d = 0; d < t.n_dims; d++) {
        if (!take(c, &t.dims[d], sizeof t.dims[d])) {
            goto ends;
        }
    }
    if (!take(c, &type, sizeof type) || !take(c, offset, sizeof *offset)) {
        goto ends;
    }
    memcpy(&t.type, &type, sizeof t.type); /* any number; the table decides */
    int rc = check_shape(&t, type, g->any, path, err);
    if (rc != CW_OK) {
        return rc;
    }
    if (*offset % alignment != 0) {
        return cw_fail(err, CW_EFORMAT,
                       "%s: tensor '%.*s': its offset %" PRIu64 " is no multiple of %" PRIu32, path,
                       name_len, t.name.data, *offset, alignment);
    }
    if (g->n_tensors == g->cap_tensors) {
        g->cap_tensors = g->cap_tensors < 32 ? 64 : g->cap_tensors * 2;
        g->tensors = cw_reallocarray(g->tensors, g->cap_tensors, sizeof *g->tensors);
    }
    g->tensors[g->n_tensors++] = t;
    return CW_OK;
ends:
    return cw_fail(err, CW_EFORMAT, "%s: the file ends inside the entry of tensor '%.*s'", path,
                   name_len, t.name.data);
}

static int compare_u64(const void *a, const void *b) {
    uint64_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

/* A tensor of unknown block size reaches to the next one, or to the end of the data. */
static void measure_unknown(struct cw_tensor *t, const uint64_t *offsets, size_t n,
                            uint64_t data_bytes) {
    uint64_t *sorted = cw_reallocarray(NULL, n, sizeof *sorted);
    memcpy(sorted, offsets, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, compare_u64);
    for (size_t i = 0; i < n; i++) {
        if (cw_type_info((uint32_t)t[i].type) != NULL) {
            continue;
        }
        size_t lo = 0, hi = n; /* first offset above this one */
        while (lo < hi) {
            size_t mid = lo + (hi - lo) / 2;
            if (sorted[mid] > offsets[i]) {
                hi = mid;
            } else {
                lo = mid + 1;
            }
        }
        uint64_t next = lo < n && sorted[lo] < data_bytes ? sorted[lo] : data_bytes;
        t[i].bytes = next > offsets[i] ? next - offsets[i] : 0;
    }
    free(sorted);
}

/* The tensors from `first` on: give each its place in the data, which begins at data_at. */
static int place_tensors(struct cw_gguf *g, size_t first, const uint64_t *offsets,
                         const struct cw_map *m, uint64_t data_at, const char *path,
                         struct cw_err *err) {
    size_t n = g->n_tensors - first;
    uint64_t data_bytes = data_at < m->bytes ? m->bytes - data_at : 0;
    if (n == 0) {
        return CW_OK; /* there may be no list at all */
    }
    struct cw_tensor *t = g->tensors + first;
    if (g->any) {
        measure_unknown(t, offsets, n, data_bytes);
    }
    for (size_t i = 0; i < n; i++) {
        if (offsets[i] > data_bytes || t[i].bytes > data_bytes - offsets[i]) {
            return cw_fail(err, CW_EFORMAT,
                           "%s: tensor '%.*s' (%" PRIu64 " bytes at %" PRIu64
                           ") reaches past the end of the file (%" PRIu64
                           " bytes of data): truncated?",
                           path, (int)(t[i].name.len < 96 ? t[i].name.len : 96), t[i].name.data,
                           t[i].bytes, offsets[i], data_bytes);
        }
        t[i].data = data_bytes > 0 ? m->base + data_at + offsets[i] : m->base;
    }
    return CW_OK;
}

int cw_gguf_parse(struct cw_gguf *g, const struct cw_map *m, const char *path, struct cw_err *err) {
    struct cursor c = {m->base, m->base + m->bytes};
    uint32_t version, alignment;
    uint64_t n_tensors, n_keys;
    if (!starts(m, "GGUF")) {
        return refuse_magic(m, path, err);
    }
    c.at += 4;
    if (!take(&c, &version, sizeof version)) {
        return cw_fail(err, CW_EFORMAT, "%s: the file ends inside its header", path);
    }
    int rc = check_version(version, path, err);
    if (rc != CW_OK) {
        return rc;
    }
    if (!take(&c, &n_tensors, sizeof n_tensors) || !take(&c, &n_keys, sizeof n_keys)) {
        return cw_fail(err, CW_EFORMAT, "%s: the file ends inside its header", path);
    }
    /* The smallest key is a name of one byte with a value of one, the smallest tensor one of one
     * dimension. */
    if (n_keys > MAX_ENTRIES || n_keys > left(&c) / (8 + 1 + 4 + 1)) {
        return cw_fail(err, CW_EFORMAT, "%s: %" PRIu64 " keys do not fit in %" PRIu64 " bytes",
                       path, n_keys, left(&c));
    }
    if (n_tensors > MAX_ENTRIES || n_tensors > left(&c) / (8 + 1 + 4 + 8 + 4 + 8)) {
        return cw_fail(err, CW_EFORMAT, "%s: %" PRIu64 " tensors do not fit in %" PRIu64 " bytes",
                       path, n_tensors, left(&c));
    }
    size_t first_key = g->n_keys, first_tensor = g->n_tensors;
    for (uint64_t i = 0; i < n_keys; i++) {
        rc = parse_key(g, &c, i, path, err);
        if (rc != CW_OK) {
            return rc;
        }
    }
    rc = alignment_of(g, first_key, path, &alignment, err);
    if (rc != CW_OK) {
        return rc;
    }
    uint64_t *offsets = NULL;
    size_t cap = 0;
    for (uint64_t i = 0; i < n_tensors; i++) {
        if (i == cap) {
            cap = cap < 32 ? 64 : cap * 2;
            offsets = cw_reallocarray(offsets, cap, sizeof *offsets);
        }
        rc = parse_tensor(g, &c, i, path, alignment, &offsets[i], err);
        if (rc != CW_OK) {
            goto out;
        }
    }
    uint64_t header = (uint64_t)(c.at - m->base);
    rc = place_tensors(g, first_tensor, offsets, m,
                       (header + alignment - 1) & ~(uint64_t)(alignment - 1), path, err);
    if (rc == CW_OK) {
        g->version = (int)version;
    }
out:
    free(offsets);
    return rc;
}
