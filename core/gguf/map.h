/* SPDX-License-Identifier: MIT
 *
 * A file mapped read-only that survives its file shrinking.
 *
 * Reading a mapped page whose bytes are gone raises SIGBUS. The handler installed with the first
 * mapping puts zero pages from the fault to the end of that mapping and marks it damaged, so the
 * reader goes on with zeros and asks cw_map_damaged at its leisure. A SIGBUS from anywhere else is
 * passed on to whoever had the signal before.
 */
#ifndef CW_MAP_H
#define CW_MAP_H

#include "chinwag/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_map {
    const uint8_t *base;
    size_t bytes; /* > 0 */
    int slot;     /* in the handler's table */
};

/* Map the regular file `path`. Anything else (directory, pipe, empty file) gets a sentence of its
 * own; nothing blocks. */
int cw_map_open(struct cw_map *m, const char *path, struct cw_err *err);
void cw_map_close(struct cw_map *m); /* a zeroed map is fine */
bool cw_map_damaged(const struct cw_map *m);

#endif
