/* SPDX-License-Identifier: MIT
 *
 * Files read whole. See cli.h.
 */
#include <string.h>
#include <unistd.h>

#include "app/cli.h"
#include "chinwag/file.h"

enum { MOST_BYTES = 1 << 30 }; /* what never ends is told, not waited for */

char *cli_read_file(const char *path, size_t *len, struct cw_err *err) {
    struct cw_buf b = {0};
    int rc = strcmp(path, "-") == 0
                 ? cw_file_read_fd(STDIN_FILENO, "standard input", MOST_BYTES, &b, err)
                 : cw_file_read(path, MOST_BYTES, &b, err);
    if (rc != CW_OK) {
        cw_buf_free(&b);
        return NULL;
    }
    *len = b.len;
    return cw_buf_take(&b);
}
