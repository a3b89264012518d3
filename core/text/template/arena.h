/* SPDX-License-Identifier: MIT
 *
 * What every part of the template interpreter stands on: one place to fail to, and one place to
 * allocate from.
 *
 * Parsing and rendering each run inside a guard: cw_jfail() fills the caller's error with the line
 * of the construct at work and jumps out to the one setjmp of cw_template_create() or
 * cw_template_render(). Everything made on the way lives in the arena and goes with it, so no
 * function between has an error path of its own that could leak or forget to stop. One thread.
 */
#ifndef CHINWAG_TEMPLATE_ARENA_H
#define CHINWAG_TEMPLATE_ARENA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chinwag/err.h"

struct cw_jguard {
    jmp_buf escape;
    struct cw_err *err; /* the caller's, may be NULL */
    int code;           /* set by a failure */
    int line;           /* of the construct at work, from 1 */
};

/* "template: line N: ..." with CW_ETEMPLATE, then out. */
_Noreturn void cw_jfail(struct cw_jguard *g, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

struct cw_jchunk;

struct cw_jarena {
    struct cw_jguard *guard; /* where a refused allocation goes */
    struct cw_jchunk *chunks;
    char *at, *end;     /* free part of the newest chunk */
    size_t used_bytes;  /* handed out so far */
    size_t limit_bytes; /* and no more than this */
};

/* 16-byte aligned, not zeroed, never NULL. */
void *cw_jalloc(struct cw_jarena *a, size_t bytes);
/* n * size bytes; a product that wraps is refused like one that is too large. */
void *cw_jalloc_array(struct cw_jarena *a, size_t n, size_t size);
/* Make p, which was allocated with old_bytes, new_bytes large; in place where it is the newest. */
void *cw_jgrow(struct cw_jarena *a, void *p, size_t old_bytes, size_t new_bytes);
void cw_jarena_free(struct cw_jarena *a);

#endif
