/* SPDX-License-Identifier: MIT
 *
 * Writes GGUF files for tests, right ones and wrong ones: every number of the format can be given a
 * value that does not fit. Any failure to write aborts the test program. */
#ifndef TESTS_MKGGUF_H
#define TESTS_MKGGUF_H

#include "chinwag/gguf.h"

struct mkgguf {
    char magic[4];
    uint32_t version;
    uint32_t alignment;    /* by which the data is really laid out */
    uint64_t n_keys;       /* as added */
    uint64_t n_tensors;    /* as added */
    uint64_t more_keys;    /* claimed beyond those that are there, modulo 2^64 */
    uint64_t more_tensors; /* the same */
    struct cw_buf keys, infos, data;
};

void mkgguf_init(struct mkgguf *m); /* version 3, alignment 32, nothing in it */
void mkgguf_free(struct mkgguf *m);

void mkgguf_u32(struct mkgguf *m, const char *name, uint32_t v);
void mkgguf_f32(struct mkgguf *m, const char *name, float v);
void mkgguf_bool(struct mkgguf *m, const char *name, bool v);
void mkgguf_str(struct mkgguf *m, const char *name, const char *v);
void mkgguf_strs(struct mkgguf *m, const char *name, const char *const *v, size_t n);
/* A scalar of any kind from its bytes, and an array of n elements. */
void mkgguf_scalar(struct mkgguf *m, const char *name, uint32_t kind, const void *v, size_t bytes);
void mkgguf_array(struct mkgguf *m, const char *name, uint32_t elem, uint64_t n, const void *v,
                  size_t bytes);
/* A key whose name claims name_len bytes; `raw` is kind and value as they go to the file. */
void mkgguf_raw_key(struct mkgguf *m, const char *name, uint64_t name_len, const void *raw,
                    size_t bytes);

/* A tensor with its data, at the next aligned offset. */
void mkgguf_tensor(struct mkgguf *m, const char *name, uint32_t type, uint32_t n_dims,
                   const uint64_t *dims, const void *data, size_t bytes);
/* Its entry alone, with any offset. */
void mkgguf_entry(struct mkgguf *m, const char *name, uint32_t type, uint32_t n_dims,
                  const uint64_t *dims, uint64_t offset);

/* The whole file; out is overwritten. */
void mkgguf_build(const struct mkgguf *m, struct cw_buf *out);
void mkgguf_save(const struct mkgguf *m, const char *path);

/* Copy the keys and tensors of g for which keep says true (NULL: all). */
typedef bool mkgguf_keep(void *arg, struct cw_str name);
void mkgguf_copy_keys(struct mkgguf *m, const struct cw_gguf *g, mkgguf_keep *keep, void *arg);
void mkgguf_copy_tensors(struct mkgguf *m, const struct cw_gguf *g, mkgguf_keep *keep, void *arg);

/* A copy of the file `from` with every F32 matrix whose rows are a multiple of 32 as Q8_0; biases,
 * routers and learned positions stay as they are. */
void mkgguf_quantise(const char *from, const char *to);

/* ---- files -------------------------------------------------------------------------------------
 */

/* A path in a directory of this process's own, removed when it exits. Static storage, overwritten
 * by the call after next. */
const char *tmp_path(const char *name);
/* Remove that directory now. */
void tmp_clear(void);
void tmp_write(const char *path, const void *data, size_t n);

/* Where the reference data lies, or NULL after a line "skipped: ..." when it does not. */
const char *reference_dir(void);

#endif
