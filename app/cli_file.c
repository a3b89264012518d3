/* SPDX-License-Identifier: MIT
 *
 * Files read whole. See cli.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "app/cli.h"

char *cli_read_file(const char *path, size_t *len, struct cw_err *err) {
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    struct cw_buf b = {0};
    char chunk[65536];
    ssize_t k = -1;
    const char *name = standard ? "standard input" : path;
    if (fd >= 0) {
        while ((k = read(fd, chunk, sizeof chunk)) != 0) {
            if (k < 0 && errno == EINTR) {
                continue;
            }
            if (k < 0) {
                break;
            }
            cw_buf_add(&b, chunk, (size_t)k);
        }
    }
    if (k < 0) {
        cw_fail(err, errno == ENOENT ? CW_ENOENT : CW_EIO, "%s: %s", name, strerror(errno));
    }
    if (fd >= 0 && !standard) {
        close(fd);
    }
    if (k < 0) {
        cw_buf_free(&b);
        return NULL;
    }
    *len = b.len;
    return cw_buf_take(&b);
}
