/* SPDX-License-Identifier: MIT
 *
 * Memory. Small allocations cannot fail: they call the out-of-memory hook (which the app uses to
 * restore the terminal) and abort. Large ones (KV cache, scratch, files) return NULL and their
 * callers CW_ENOMEM. Any thread.
 */
#ifndef CHINWAG_MEM_H
#define CHINWAG_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Run once, before any thread starts; `hook` may be NULL. It must be async-signal-safe. */
void cw_set_oom_hook(void (*hook)(void));

void *cw_malloc(size_t bytes);                         /* never NULL; bytes 0 is allowed */
void *cw_calloc(size_t n, size_t size);                /* zeroed; aborts when n * size wraps */
void *cw_realloc(void *p, size_t bytes);               /* never NULL */
void *cw_reallocarray(void *p, size_t n, size_t size); /* aborts when n * size wraps */
char *cw_strdup(const char *s);
char *cw_strndup(const char *s, size_t n); /* copies exactly n bytes and terminates */

/* Large, 64-byte aligned (2 MiB and huge-page advice from 2 MiB up), zeroed lazily by the
 * kernel; NULL when refused. Freed by cw_large_free with the same size. */
void *cw_large_alloc(size_t bytes);
/* The same without huge pages, for what may stay mostly empty: clearing them would cost more than
 * they save. */
void *cw_sparse_alloc(size_t bytes);
/* The same, brought into memory at once, for what will be filled here and there: one call is
 * cheaper than a fault a page. */
void *cw_table_alloc(size_t bytes);
/* Bring whole pages of private memory in before they are written to. */
void cw_populate(void *pages, size_t bytes);
void cw_large_free(void *p, size_t bytes);

/* A growable byte string. Zero-initialise; data is NULL or terminated at data[len]. */
struct cw_buf {
    char *data;
    size_t len, cap;
};
void cw_buf_add(struct cw_buf *b, const void *data, size_t n);
void cw_buf_puts(struct cw_buf *b, const char *s);
void cw_buf_putc(struct cw_buf *b, char c);
void cw_buf_printf(struct cw_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cw_buf_clear(struct cw_buf *b); /* len 0, keeps the memory */
void cw_buf_free(struct cw_buf *b);
char *cw_buf_take(struct cw_buf *b); /* caller must free; never NULL; *b is empty again */

/* A growable list of token ids. Zero-initialise. */
struct cw_ids {
    int32_t *v;
    size_t n, cap;
};
void cw_ids_add(struct cw_ids *ids, int32_t id);
void cw_ids_append(struct cw_ids *ids, const int32_t *v, size_t n);
void cw_ids_free(struct cw_ids *ids);
/* How many ids a[0..n_a) and b[0..n_b) both begin with. */
size_t cw_ids_common(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b);

/* A borrowed byte string that need not be terminated and may hold any byte. */
struct cw_str {
    const char *data;
    size_t len;
};
bool cw_str_eq(struct cw_str a, const char *s);

#endif
