/* SPDX-License-Identifier: MIT
 *
 * See chinwag/dirs.h.
 */
#include "chinwag/dirs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chinwag/mem.h"

int cw_dirs_make(const char *dir, struct cw_err *err) {
    if (*dir != '/') {
        return cw_fail(err, CW_EIO, "no directory to write to");
    }
    char *path = cw_strdup(dir);
    int rc = CW_OK;
    /* Each prefix in turn; that one exists already is the ordinary case. */
    for (char *p = path + 1; rc == CW_OK; p++) {
        if (*p != '/' && *p != '\0') {
            continue;
        }
        char keep = *p;
        *p = '\0';
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            /* A read-only file system answers EROFS even for what is there. */
            struct stat st;
            int why = errno;
            if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
                rc = cw_fail(err, CW_EIO, "%s: %s", path, strerror(why));
            }
        }
        *p = keep;
        if (!keep) {
            break;
        }
    }
    struct stat st;
    if (rc == CW_OK && (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))) {
        rc = cw_fail(err, CW_EIO, "%s: not a directory", path);
    }
    free(path);
    return rc;
}
