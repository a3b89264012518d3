/* SPDX-License-Identifier: MIT
 *
 * Typed reads of metadata: conversions that say no instead of wrapping. Strings of an array are
 * walked with bounds again, since the file may have changed since it was checked. */
#include "core/gguf/internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int wrong_kind(const struct cw_gguf_key *k, const char *wanted, struct cw_err *err) {
    int name_len = (int)(k->name.len < 96 ? k->name.len : 96);
    if (k->kind == CW_GGUF_ARRAY) {
        return cw_fail(err, CW_EFORMAT, "key '%.*s' is an array of %s, not %s", name_len,
                       k->name.data, cw_gguf_kind_name(k->elem), wanted);
    }
    return cw_fail(err, CW_EFORMAT, "key '%.*s' is of type %s, not %s", name_len, k->name.data,
                   cw_gguf_kind_name(k->kind), wanted);
}

static int out_of_range(const struct cw_gguf_key *k, struct cw_err *err) {
    return cw_fail(err, CW_EFORMAT, "the value of key '%.*s' is out of range",
                   (int)(k->name.len < 96 ? k->name.len : 96), k->name.data);
}

/* An integer of the file: its magnitude and whether it is below zero. */
struct integer {
    bool negative;
    uint64_t magnitude;
};

static struct integer from_signed(int64_t v) {
    return (struct integer){v < 0, v < 0 ? 0 - (uint64_t)v : (uint64_t)v};
}

/* Element i of kind `kind` at `data`; false when it is not an integer. */
static bool read_integer(enum cw_gguf_kind kind, const uint8_t *data, uint64_t i,
                         struct integer *out) {
    uint8_t raw[8] = {0};
    size_t bytes = cw_gguf_kind_bytes(kind);
    memcpy(raw, data + i * bytes, bytes);
    uint64_t u;
    memcpy(&u, raw, sizeof u);
    switch (kind) {
    case CW_GGUF_U8:
    case CW_GGUF_U16:
    case CW_GGUF_U32:
    case CW_GGUF_U64:
        *out = (struct integer){false, u};
        return true;
    case CW_GGUF_I8:
        *out = from_signed((int8_t)u);
        return true;
    case CW_GGUF_I16:
        *out = from_signed((int16_t)u);
        return true;
    case CW_GGUF_I32:
        *out = from_signed((int32_t)u);
        return true;
    case CW_GGUF_I64:
        *out = from_signed((int64_t)u);
        return true;
    default:
        return false;
    }
}

/* Element i as a double; false when it is not a number. */
static bool read_number(enum cw_gguf_kind kind, const uint8_t *data, uint64_t i, double *out) {
    struct integer v;
    if (kind == CW_GGUF_F32) {
        float f;
        memcpy(&f, data + i * sizeof f, sizeof f);
        *out = (double)f;
        return true;
    }
    if (kind == CW_GGUF_F64) {
        memcpy(out, data + i * sizeof *out, sizeof *out);
        return true;
    }
    if (read_integer(kind, data, i, &v)) {
        *out = v.negative ? -(double)v.magnitude : (double)v.magnitude;
        return true;
    }
    return false;
}

bool cw_gguf_number(const struct cw_gguf_key *k, double *out) {
    if (k->kind == CW_GGUF_BOOL) {
        *out = *k->data != 0;
        return true;
    }
    return read_number(k->kind, k->data, 0, out);
}

int cw_gguf_u32(const struct cw_gguf *g, const char *name, uint32_t *out, struct cw_err *err) {
    const struct cw_gguf_key *k = cw_gguf_key(g, name);
    struct integer v;
    if (k == NULL) {
        return CW_ENOENT;
    }
    if (!read_integer(k->kind, k->data, 0, &v)) {
        return wrong_kind(k, "an integer", err);
    }
    if (v.negative || v.magnitude > UINT32_MAX) {
        return out_of_range(k, err);
    }
    *out = (uint32_t)v.magnitude;
    return CW_OK;
}

int cw_gguf_f32(const struct cw_gguf *g, const char *name, float *out, struct cw_err *err) {
    const struct cw_gguf_key *k = cw_gguf_key(g, name);
    double v;
    if (k == NULL) {
        return CW_ENOENT;
    }
    if (!read_number(k->kind, k->data, 0, &v)) {
        return wrong_kind(k, "a number", err);
    }
    if (!(v >= -3.4028234663852886e38 && v <= 3.4028234663852886e38)) {
        return out_of_range(k, err); /* infinite, or no number at all */
    }
    *out = (float)v;
    return CW_OK;
}

int cw_gguf_bool(const struct cw_gguf *g, const char *name, bool *out, struct cw_err *err) {
    const struct cw_gguf_key *k = cw_gguf_key(g, name);
    if (k == NULL) {
        return CW_ENOENT;
    }
    if (k->kind != CW_GGUF_BOOL) {
        return wrong_kind(k, "a bool", err);
    }
    uint8_t v = *k->data;
    if (v > 1) {
        return out_of_range(k, err);
    }
    *out = v != 0;
    return CW_OK;
}

/* The string at *at, moving *at behind it; false when it does not fit before `end`. */
static bool read_string(const uint8_t **at, const uint8_t *end, struct cw_str *out) {
    uint64_t n;
    if ((size_t)(end - *at) < sizeof n) {
        return false;
    }
    memcpy(&n, *at, sizeof n);
    *at += sizeof n;
    if (n > (uint64_t)(end - *at)) {
        return false;
    }
    *out = (struct cw_str){(const char *)*at, (size_t)n};
    *at += n;
    return true;
}

static const uint8_t *value_end(const struct cw_gguf_key *k) {
    return ((const struct gguf_key *)(const void *)k)->end;
}

int cw_gguf_str(const struct cw_gguf *g, const char *name, struct cw_str *out, struct cw_err *err) {
    const struct cw_gguf_key *k = cw_gguf_key(g, name);
    if (k == NULL) {
        return CW_ENOENT;
    }
    if (k->kind != CW_GGUF_STRING) {
        return wrong_kind(k, "a string", err);
    }
    const uint8_t *at = k->data;
    return read_string(&at, value_end(k), out) ? CW_OK : out_of_range(k, err);
}

int cw_gguf_strs(const struct cw_gguf *g, const char *name, struct cw_str **out, size_t *n,
                 struct cw_err *err) {
    const struct cw_gguf_key *k = cw_gguf_key(g, name);
    if (k == NULL) {
        return CW_ENOENT;
    }
    if (k->kind != CW_GGUF_ARRAY || k->elem != CW_GGUF_STRING) {
        return wrong_kind(k, "an array of strings", err);
    }
    struct cw_str *v = cw_reallocarray(NULL, (size_t)k->n, sizeof *v);
    const uint8_t *at = k->data;
    for (uint64_t i = 0; i < k->n; i++) {
        if (!read_string(&at, value_end(k), &v[i])) {
            free(v);
            return out_of_range(k, err);
        }
    }
    *out = v;
    *n = (size_t)k->n;
    return CW_OK;
}

int cw_gguf_i32s(const struct cw_gguf *g, const char *name, int32_t **out, size_t *n,
                 struct cw_err *err) {
    const struct cw_gguf_key *k = cw_gguf_key(g, name);
    if (k == NULL) {
        return CW_ENOENT;
    }
    struct integer v = {0};
    if (k->kind != CW_GGUF_ARRAY || k->elem == CW_GGUF_STRING || k->elem == CW_GGUF_F32 ||
        k->elem == CW_GGUF_F64) {
        return wrong_kind(k, "an array of integers", err);
    }
    int32_t *all = cw_reallocarray(NULL, (size_t)k->n, sizeof *all);
    for (uint64_t i = 0; i < k->n; i++) {
        bool ok = k->elem == CW_GGUF_BOOL ? (v.magnitude = k->data[i]) <= 1
                                          : read_integer(k->elem, k->data, i, &v);
        if (!ok || v.magnitude > (v.negative ? (uint64_t)INT32_MAX + 1 : (uint64_t)INT32_MAX)) {
            free(all);
            return out_of_range(k, err);
        }
        all[i] = (int32_t)(v.negative ? -(int64_t)v.magnitude : (int64_t)v.magnitude);
    }
    *out = all;
    *n = (size_t)k->n;
    return CW_OK;
}

int cw_gguf_f32s(const struct cw_gguf *g, const char *name, float **out, size_t *n,
                 struct cw_err *err) {
    const struct cw_gguf_key *k = cw_gguf_key(g, name);
    if (k == NULL) {
        return CW_ENOENT;
    }
    double v;
    if (k->kind != CW_GGUF_ARRAY || k->elem == CW_GGUF_STRING || k->elem == CW_GGUF_BOOL) {
        return wrong_kind(k, "an array of numbers", err);
    }
    float *all = cw_reallocarray(NULL, (size_t)k->n, sizeof *all);
    for (uint64_t i = 0; i < k->n; i++) {
        if (!read_number(k->elem, k->data, i, &v)) {
            free(all);
            return out_of_range(k, err);
        }
        /* An infinity or a NaN passes as it is; a finite double that no float holds does not. */
        if (isfinite(v) && (v > 3.4028234663852886e38 || v < -3.4028234663852886e38)) {
            free(all);
            return out_of_range(k, err);
        }
        all[i] = (float)v;
    }
    *out = all;
    *n = (size_t)k->n;
    return CW_OK;
}
