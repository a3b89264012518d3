/* SPDX-License-Identifier: MIT
 *
 * What the files of the GGUF reader share: the handle, its parts, and the parser of one part. */
#ifndef CW_GGUF_INTERNAL_H
#define CW_GGUF_INTERNAL_H

#include "chinwag/gguf.h"
#include "core/gguf/map.h"

#include <stdatomic.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the GGUF reader takes numbers from the file as they lie: little-endian machines only"
#endif

enum { CW_GGUF_MAX_PARTS = 1024 };

struct gguf_key {
    struct cw_gguf_key pub; /* first: a pointer to it is a pointer to this */
    const uint8_t *end;     /* one past the value's last byte */
    atomic_bool used;
};

/* Names to indices: open addressing, a power of two of slots, never more than half full. */
struct gguf_index {
    uint32_t *slot; /* index + 1, 0: empty */
    size_t n_slots;
};

struct cw_gguf {
    char *path;
    int version;
    uint64_t file_bytes;
    bool any; /* keep tensors of unsupported types */
    struct cw_map *parts;
    size_t n_parts;
    /* Pointers are stable: the tables below are complete before open returns. */
    struct gguf_key *keys;
    size_t n_keys, cap_keys;
    struct cw_tensor *tensors; /* one array, so that an index is a difference */
    atomic_bool *tensor_used;
    size_t n_tensors, cap_tensors;
    struct gguf_index by_key, by_tensor;
    uint64_t seed; /* of the name hash: a file cannot be made to collide */
};

/* Parse the header of part `part` and append its keys and tensors to g's tables. `path` is for
 * messages. */
int cw_gguf_parse(struct cw_gguf *g, const struct cw_map *part, const char *path,
                  struct cw_err *err);

/* Bytes of one scalar of `kind`; 0 for strings and arrays. */
size_t cw_gguf_kind_bytes(enum cw_gguf_kind kind);
const char *cw_gguf_kind_name(enum cw_gguf_kind kind);

#endif
