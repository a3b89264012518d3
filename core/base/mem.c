/* SPDX-License-Identifier: MIT
 * Allocation that cannot fail, allocation that may, and the growable buffers on top. */
#include "chinwag/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void (*oom_hook)(void);

void cw_set_oom_hook(void (*hook)(void)) {
    oom_hook = hook;
}

static void *out_of_memory(void) {
    static const char text[] = "chinwag: out of memory\n";
    if (oom_hook != NULL) {
        oom_hook();
    }
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
    abort();
}

void *cw_malloc(size_t bytes) {
    void *p = malloc(bytes != 0 ? bytes : 1);
    return p != NULL ? p : out_of_memory();
}

void *cw_calloc(size_t n, size_t size) {
    void *p = calloc(n != 0 ? n : 1, size != 0 ? size : 1);
    return p != NULL ? p : out_of_memory();
}

void *cw_realloc(void *p, size_t bytes) {
    p = realloc(p, bytes != 0 ? bytes : 1);
    return p != NULL ? p : out_of_memory();
}

void *cw_reallocarray(void *p, size_t n, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        return out_of_memory();
    }
    return cw_realloc(p, bytes);
}

char *cw_strndup(const char *s, size_t n) {
    char *copy = cw_malloc(n + 1);
    if (n != 0) {
        memcpy(copy, s, n);
    }
    copy[n] = '\0';
    return copy;
}

char *cw_strdup(const char *s) {
    return cw_strndup(s, strlen(s));
}

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif

enum { HUGE_PAGE = 2 << 20 };

/* What is asked of the kernel for `bytes`: whole pages, whole huge pages from one up; 0: wraps. */
static size_t mapped_bytes(size_t bytes) {
    size_t unit = bytes >= HUGE_PAGE ? (size_t)HUGE_PAGE : 4096;
    size_t sum;
    if (__builtin_add_overflow(bytes, unit - 1, &sum)) {
        return 0;
    }
    return sum & ~(unit - 1);
}

static void *map_large(size_t bytes, bool huge) {
    size_t size = mapped_bytes(bytes != 0 ? bytes : 1);
    if (size == 0) {
        return NULL;
    }
    if (size < HUGE_PAGE) {
        void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return p != MAP_FAILED ? p : NULL;
    }
    /* Take one huge page more than needed and give back what stands outside the alignment. */
    size_t room;
    if (__builtin_add_overflow(size, (size_t)HUGE_PAGE, &room)) {
        return NULL;
    }
    char *p = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED) {
        return NULL;
    }
    size_t head = (size_t)(-(uintptr_t)p & (HUGE_PAGE - 1));
    if (head != 0) {
        munmap(p, head);
    }
    if (head != HUGE_PAGE) {
        munmap(p + head + size, HUGE_PAGE - head);
    }
    if (huge) {
        madvise(p + head, size, MADV_HUGEPAGE);
    }
    return p + head;
}

void *cw_large_alloc(size_t bytes) {
    return map_large(bytes, true);
}

void *cw_sparse_alloc(size_t bytes) {
    return map_large(bytes, false);
}

void cw_populate(void *pages, size_t bytes) {
    madvise(pages, bytes, MADV_POPULATE_WRITE); /* where that is not known faults do it */
}

void *cw_table_alloc(size_t bytes) {
    void *p = map_large(bytes, true);
    if (p != NULL) {
        cw_populate(p, mapped_bytes(bytes));
    }
    return p;
}

void cw_large_free(void *p, size_t bytes) {
    if (p != NULL) {
        munmap(p, mapped_bytes(bytes != 0 ? bytes : 1));
    }
}

/* Make room for `more` further bytes and a terminator. */
static void buf_reserve(struct cw_buf *b, size_t more) {
    size_t need;
    if (__builtin_add_overflow(b->len, more, &need) || __builtin_add_overflow(need, 1, &need)) {
        out_of_memory();
    }
    if (need > b->cap) {
        size_t cap = b->cap < 32 ? 64 : b->cap + b->cap / 2;
        b->cap = cap > need ? cap : need;
        b->data = cw_realloc(b->data, b->cap);
    }
}

void cw_buf_add(struct cw_buf *b, const void *data, size_t n) {
    buf_reserve(b, n);
    if (n != 0) {
        memcpy(b->data + b->len, data, n);
        b->len += n;
    }
    b->data[b->len] = '\0';
}

void cw_buf_puts(struct cw_buf *b, const char *s) {
    cw_buf_add(b, s, strlen(s));
}

void cw_buf_putc(struct cw_buf *b, char c) {
    cw_buf_add(b, &c, 1);
}

void cw_buf_printf(struct cw_buf *b, const char *fmt, ...) {
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (n > 0) {
        buf_reserve(b, (size_t)n);
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void cw_buf_clear(struct cw_buf *b) {
    b->len = 0;
    if (b->data != NULL) {
        b->data[0] = '\0';
    }
}

void cw_buf_free(struct cw_buf *b) {
    free(b->data);
    *b = (struct cw_buf){0};
}

char *cw_buf_take(struct cw_buf *b) {
    buf_reserve(b, 0);
    char *data = b->data;
    data[b->len] = '\0';
    *b = (struct cw_buf){0};
    return data;
}

static void ids_reserve(struct cw_ids *ids, size_t more) {
    size_t need;
    if (__builtin_add_overflow(ids->n, more, &need)) {
        out_of_memory();
    }
    if (need > ids->cap) {
        size_t cap = ids->cap < 16 ? 32 : ids->cap + ids->cap / 2;
        ids->cap = cap > need ? cap : need;
        ids->v = cw_reallocarray(ids->v, ids->cap, sizeof *ids->v);
    }
}

void cw_ids_add(struct cw_ids *ids, int32_t id) {
    ids_reserve(ids, 1);
    ids->v[ids->n++] = id;
}

void cw_ids_append(struct cw_ids *ids, const int32_t *v, size_t n) {
    if (n != 0) {
        ids_reserve(ids, n);
        memcpy(ids->v + ids->n, v, n * sizeof *v);
        ids->n += n;
    }
}

void cw_ids_free(struct cw_ids *ids) {
    free(ids->v);
    *ids = (struct cw_ids){0};
}

size_t cw_ids_common(const int32_t *a, size_t n_a, const int32_t *b, size_t n_b) {
    size_t n = n_a < n_b ? n_a : n_b, same = 0;
    while (same < n && a[same] == b[same]) {
        same++;
    }
    return same;
}

bool cw_str_eq(struct cw_str a, const char *s) {
    size_t n = strlen(s);
    return a.len == n && (n == 0 || memcmp(a.data, s, n) == 0);
}
