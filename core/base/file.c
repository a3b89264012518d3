/* SPDX-License-Identifier: MIT
 *
 * See chinwag/file.h.
 */
#include "chinwag/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int cw_file_read_fd(int fd, const char *name, size_t most, struct cw_buf *out, struct cw_err *err) {
    char piece[65536];
    size_t total = 0;
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n == 0) {
            return CW_OK;
        }
        if (n < 0 && errno != EINTR) {
            return cw_fail(err, CW_EIO, "%s: %s", name, strerror(errno));
        }
        if (n > 0 && (size_t)n > most - total) {
            bool many = most >= 1 << 20;
            return cw_fail(err, CW_EFORMAT, "%s: longer than %zu %s", name,
                           many ? most >> 20 : most, many ? "MiB" : "bytes");
        }
        if (n > 0) {
            cw_buf_add(out, piece, (size_t)n);
            total += (size_t)n;
        }
    }
}

int cw_file_read(const char *path, size_t most, struct cw_buf *out, struct cw_err *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) {
        int code = errno == ENOENT ? CW_ENOENT : CW_EIO;
        return cw_fail(err, code, "%s: %s", path, strerror(errno));
    }
    int rc = cw_file_read_fd(fd, path, most, out, err);
    close(fd);
    return rc;
}
