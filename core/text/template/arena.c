/* SPDX-License-Identifier: MIT
 * The bounded arena and the one exit of the template interpreter (arena.h). */
#include "arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 16, FIRST_CHUNK_BYTES = 8192, MAX_CHUNK_BYTES = 1 << 20 };

struct cw_jchunk {
    struct cw_jchunk *older;
    size_t bytes; /* of data */
    _Alignas(ALIGN) char data[];
};

_Noreturn void cw_jfail(struct cw_jguard *g, const char *fmt, ...) {
    char text[sizeof g->err->text];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    g->code = cw_fail(g->err, CW_ETEMPLATE, "template: line %d: %s", g->line, text);
    longjmp(g->escape, 1);
}

static void refuse_memory(struct cw_jarena *a) {
    cw_jfail(a->guard, "the template needs more than %zu MiB of values", a->limit_bytes >> 20);
}

static void add_chunk(struct cw_jarena *a, size_t bytes) {
    size_t next = a->chunks == NULL ? FIRST_CHUNK_BYTES : a->chunks->bytes * 2;
    if (next > MAX_CHUNK_BYTES) {
        next = MAX_CHUNK_BYTES;
    }
    if (next < bytes) {
        next = bytes;
    }
    struct cw_jchunk *c = malloc(sizeof *c + next);
    if (c == NULL) {
        a->guard->code = cw_fail(a->guard->err, CW_ENOMEM, "template: no memory for its values");
        longjmp(a->guard->escape, 1);
    }
    c->older = a->chunks;
    c->bytes = next;
    a->chunks = c;
    a->at = c->data;
    a->end = c->data + next;
}

void *cw_jalloc(struct cw_jarena *a, size_t bytes) {
    if (bytes > a->limit_bytes - a->used_bytes) {
        refuse_memory(a);
    }
    a->used_bytes += bytes;
    size_t rounded = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (rounded > (size_t)(a->end - a->at)) {
        add_chunk(a, rounded);
    }
    void *p = a->at;
    a->at += rounded;
    return p;
}

void *cw_jalloc_array(struct cw_jarena *a, size_t n, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes)) {
        refuse_memory(a);
    }
    return cw_jalloc(a, bytes);
}

void *cw_jgrow(struct cw_jarena *a, void *p, size_t old_bytes, size_t new_bytes) {
    size_t old_rounded = (old_bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (p != NULL && (char *)p + old_rounded == a->at) {
        size_t more = new_bytes - old_bytes;
        if (more > a->limit_bytes - a->used_bytes) {
            refuse_memory(a);
        }
        size_t rounded = (new_bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
        if (rounded <= (size_t)(a->end - (char *)p)) {
            a->used_bytes += more;
            a->at = (char *)p + rounded;
            return p;
        }
    }
    void *q = cw_jalloc(a, new_bytes);
    if (p != NULL) {
        memcpy(q, p, old_bytes);
    }
    return q;
}

void cw_jarena_free(struct cw_jarena *a) {
    while (a->chunks != NULL) {
        struct cw_jchunk *older = a->chunks->older;
        free(a->chunks);
        a->chunks = older;
    }
    a->at = a->end = NULL;
    a->used_bytes = 0;
}
