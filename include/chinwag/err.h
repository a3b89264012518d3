/* SPDX-License-Identifier: MIT
 *
 * Errors: one way for the whole core.
 *
 * A function that can fail returns int: CW_OK (0) or one of the negative codes below, and takes an
 * optional `struct cw_err *` last, which receives the code and one line for a person. Text from
 * files is made printable before it gets there, so an error line can go to a terminal as it is.
 * Predicates return bool. Any thread; an err is owned by its caller.
 */
#ifndef CHINWAG_ERR_H
#define CHINWAG_ERR_H

#include <stddef.h>

enum cw_code {
    CW_OK = 0,
    CW_EIO = -1,        /* the system refused: open, read, map, write */
    CW_ENOMEM = -2,     /* a large allocation failed (small ones abort, see mem.h) */
    CW_EINVAL = -3,     /* the caller's or user's argument is wrong */
    CW_EFORMAT = -4,    /* a file is malformed */
    CW_EUNSUP = -5,     /* well formed, but of a kind this program does not know */
    CW_ECANCEL = -6,    /* stopped on request */
    CW_EFULL = -7,      /* does not fit in the context */
    CW_ENUMERIC = -8,   /* no finite logit left, or a NaN where none may be */
    CW_EBUSY = -9,      /* a request is already running */
    CW_ETEMPLATE = -10, /* the chat template is broken, unsupported or refused the conversation */
    CW_ENOENT = -11,    /* no such key, tensor, token or file */
    CW_EPRE = -12,      /* the file's pre-tokenizer is not known; another may be given instead */
};

struct cw_err {
    int code;       /* CW_OK or a cw_code */
    char text[512]; /* one printable line, no newline, always terminated */
};

/* Fill `err` (may be NULL) with `code` and a formatted line, and return `code`. Control
 * characters and invalid UTF-8 in the result are replaced as by cw_printable. */
int cw_fail(struct cw_err *err, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The name of a code, such as "malformed file"; static storage. */
const char *cw_code_name(int code);

/* Write at most cap - 1 bytes of src[0..n) to dst, terminated: valid UTF-8 passes, control
 * characters (C0, C1, DEL), invalid bytes and bidirectional overrides become \xNN or \u{NNNN}.
 * Never splits a character. Returns the length written. */
size_t cw_printable(char *dst, size_t cap, const char *src, size_t n);

#endif
