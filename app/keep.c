/* SPDX-License-Identifier: MIT
 *
 * See keep.h.
 */
#include "app/keep.h"

#include <stdio.h>

#include "chinwag/snapshot.h"

void app_keep_key(char key[APP_KEEP_KEY], int64_t conversation) {
    snprintf(key, APP_KEEP_KEY, "%016llx", (unsigned long long)conversation);
}

/* In the store's thread. */
static int remove_snapshot(void *arg, int64_t conversation, struct cw_err *err) {
    const struct app_paths *paths = arg;
    char key[APP_KEEP_KEY];
    app_keep_key(key, conversation);
    return paths->cache[0] != '\0' ? cw_snapshots_remove(paths->cache, key, err) : CW_OK;
}

int app_keep_open(struct cw_store **out, const struct app_paths *paths, size_t max_queued,
                  struct cw_err *err) {
    *out = NULL;
    if (paths->data[0] == '\0') {
        return cw_fail(err, CW_EIO, "%s", paths->reason);
    }
    const struct cw_store_options opt = {.dir = paths->data,
                                         .max_queued = max_queued,
                                         .gone = remove_snapshot,
                                         .gone_arg = (void *)(uintptr_t)paths};
    return cw_store_create(out, &opt, err);
}
