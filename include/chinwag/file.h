/* SPDX-License-Identifier: MIT
 *
 * Files read whole, within a limit. Any thread.
 */
#ifndef CHINWAG_FILE_H
#define CHINWAG_FILE_H

#include "chinwag/err.h"
#include "chinwag/mem.h"

/* Append all of a file to *out, which may hold a part of it when that fails. CW_ENOENT, CW_EIO, or
 * CW_EFORMAT when it is longer than `most` bytes; the line begins with the path. */
int cw_file_read(const char *path, size_t most, struct cw_buf *out, struct cw_err *err);
/* The same from a descriptor, to its end; `name` is what the line calls it. */
int cw_file_read_fd(int fd, const char *name, size_t most, struct cw_buf *out, struct cw_err *err);

#endif
