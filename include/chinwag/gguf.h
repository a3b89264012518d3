/* SPDX-License-Identifier: MIT
 *
 * A read-only view of a GGUF file (versions 2 and 3, little-endian), mapped and never copied.
 *
 * Every length, count, type, offset and alignment is checked against the bytes that are there
 * before it is used; opening refuses a bad file with one line that names the key or tensor. After
 * that, what the accessors return lies inside the mapping and lives until cw_gguf_close.
 *
 * A file that shrinks while mapped raises SIGBUS: the handler installed here maps a zero page over
 * the fault and sets a flag, which cw_gguf_damaged reads. One handle may be read from any number
 * of threads; open and close belong to one.
 *
 * Source of the layout: the GGUF specification (docs/gguf.md of the ggml project).
 */
#ifndef CHINWAG_GGUF_H
#define CHINWAG_GGUF_H

#include "chinwag/err.h"
#include "chinwag/mem.h"
#include "chinwag/types.h"

struct cw_gguf;

/* The value types of metadata, as numbered in the file. */
enum cw_gguf_kind {
    CW_GGUF_U8,
    CW_GGUF_I8,
    CW_GGUF_U16,
    CW_GGUF_I16,
    CW_GGUF_U32,
    CW_GGUF_I32,
    CW_GGUF_F32,
    CW_GGUF_BOOL,
    CW_GGUF_STRING,
    CW_GGUF_ARRAY,
    CW_GGUF_U64,
    CW_GGUF_I64,
    CW_GGUF_F64,
    CW_GGUF_N_KINDS
};

struct cw_gguf_key {
    struct cw_str name;
    enum cw_gguf_kind kind; /* of the value */
    enum cw_gguf_kind elem; /* of an array's elements, else kind */
    uint64_t n;             /* elements; 1 for a scalar */
    const uint8_t *data;    /* first element, unaligned; strings as u64 length + bytes */
};

struct cw_tensor {
    struct cw_str name;
    enum cw_type type; /* one that cw_type_info knows */
    int n_dims;        /* 1..4 */
    int64_t dims[4];   /* dims[0] is the row length (columns); unused ones are 1 */
    const uint8_t *data;
    uint64_t bytes;
};

/* Map and check `path`. For a split file (NAME-0000i-of-0000n.gguf) all parts are opened from any
 * of them. On success *out is owned by the caller; on failure it is NULL. */
int cw_gguf_open(struct cw_gguf **out, const char *path, struct cw_err *err);
void cw_gguf_close(struct cw_gguf *g); /* NULL is fine */

/* The same for looking at a file only: tensors of types that cw_type_info does not know are kept
 * (type holds the bare number, bytes reaches to the next tensor) instead of refused. */
int cw_gguf_open_any(struct cw_gguf **out, const char *path, struct cw_err *err);

const char *cw_gguf_path(const struct cw_gguf *g);
uint64_t cw_gguf_file_bytes(const struct cw_gguf *g); /* all parts together */
int cw_gguf_version(const struct cw_gguf *g);

/* True once any page of the file was found missing: every result since is worthless. */
bool cw_gguf_damaged(const struct cw_gguf *g);

/* Keys and tensors in file order, and by name (hashed; names are unique). NULL when absent. */
size_t cw_gguf_n_keys(const struct cw_gguf *g);
const struct cw_gguf_key *cw_gguf_key_at(const struct cw_gguf *g, size_t i);
const struct cw_gguf_key *cw_gguf_key(const struct cw_gguf *g, const char *name);
size_t cw_gguf_n_tensors(const struct cw_gguf *g);
const struct cw_tensor *cw_gguf_tensor_at(const struct cw_gguf *g, size_t i);
const struct cw_tensor *cw_gguf_tensor(const struct cw_gguf *g, const char *name);

/* Whether a key or tensor was looked up by name since opening; `info` lists the others. */
bool cw_gguf_key_used(const struct cw_gguf *g, size_t i);
bool cw_gguf_tensor_used(const struct cw_gguf *g, size_t i);

/* Scalars by name. Returns CW_OK and sets *out; CW_ENOENT when the key is absent (*out untouched,
 * err untouched: the caller decides); CW_EFORMAT with the key's name when it has another type or is
 * out of range. Integers of any width are converted if in range; a bool may be read as bool only.
 */
int cw_gguf_u32(const struct cw_gguf *g, const char *name, uint32_t *out, struct cw_err *err);
int cw_gguf_f32(const struct cw_gguf *g, const char *name, float *out, struct cw_err *err);
int cw_gguf_bool(const struct cw_gguf *g, const char *name, bool *out, struct cw_err *err);
int cw_gguf_str(const struct cw_gguf *g, const char *name, struct cw_str *out, struct cw_err *err);

/* The value of a key as a number, of a bool as 0 or 1; false when it is neither. Does not count as
 * looking the key up. */
bool cw_gguf_number(const struct cw_gguf_key *k, double *out);

/* Arrays by name, with the same returns. The results are freshly allocated; the caller must free
 * them (the strings point into the mapping). Integers and floats are converted if in range; an
 * array of bools reads as integers 0 and 1. */
int cw_gguf_strs(const struct cw_gguf *g, const char *name, struct cw_str **out, size_t *n,
                 struct cw_err *err);
int cw_gguf_i32s(const struct cw_gguf *g, const char *name, int32_t **out, size_t *n,
                 struct cw_err *err);
int cw_gguf_f32s(const struct cw_gguf *g, const char *name, float **out, size_t *n,
                 struct cw_err *err);

#endif
