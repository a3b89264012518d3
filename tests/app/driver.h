/* SPDX-License-Identifier: MIT
 *
 * Runs the real chinwag, by fork and exec, in an environment of its own: an empty home, a UTF-8
 * locale, no XDG variables. Whatever the machinery itself cannot do aborts the test.
 */
#ifndef TESTS_DRIVER_H
#define TESTS_DRIVER_H

#include <json-c/json.h>
#include <stdbool.h>
#include <sys/types.h>

#include "chinwag/mem.h"

/* The state of one program. Zero-initialise; set what is wanted before driver_start. */
struct driver {
    const char *const *env; /* "NAME=VALUE" or "NAME" (unset), NULL-terminated; may be NULL */
    bool no_stdin;          /* start it with standard input closed */
    bool no_stdout;         /* the same with standard output */
    bool pty;               /* standard output and error are a terminal */
    const char *out_path;   /* standard output goes to this file instead */

    pid_t pid;
    int in, out, err; /* our ends, -1: closed */
    struct cw_buf out_text;
    struct cw_buf err_text; /* standard error, after driver_finish without the notes: */
    struct cw_buf notes;    /* its lines "chinwag: note: ..." */
    int status;             /* exit status, or 128 + signal; after driver_wait */
};

/* A directory of this test process, removed with it, and a path in it (as tmp_path). */
const char *driver_home(void);

/* args: after the program's name, NULL-terminated. */
void driver_start(struct driver *d, const char *const *args);
/* Give it n bytes on standard input, read all it writes, and wait for its end. */
void driver_finish(struct driver *d, const void *input, size_t n);
/* End its input and read until `n` bytes of output have come (or the end). Returns what there is.
 */
size_t driver_read(struct driver *d, size_t n);
void driver_end_input(struct driver *d);
void driver_free(struct driver *d);

/* All in one, with the default environment: driver_run(&d, input, arg, arg..., NULL). */
void driver_run(struct driver *d, const char *input, ...) __attribute__((sentinel));

/* Ends with this status and, unless NULL, this text somewhere in its standard error, which then is
 * exactly one line "chinwag: ...". */
void driver_expect(const struct driver *d, int status, const char *says);
/* Ended well, nothing on standard error. */
void driver_expect_ok(const struct driver *d);

/* Standard output as one JSON value; the caller must json_object_put it. */
struct json_object *driver_json(const struct driver *d);

/* A model of tests/data/models. */
const char *driver_model(const char *name);
/* SmolLM2 where the catalogue puts it, or NULL after a line "skipped: ...". Static storage. */
const char *driver_smollm2(void);

#endif
