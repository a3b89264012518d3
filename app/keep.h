/* SPDX-License-Identifier: MIT
 *
 * Where conversations are kept: the store in the data folder, and of each at most one snapshot of
 * the key/value cache in the cache folder, which goes when the conversation is removed. Whoever has
 * the store uses both.
 */
#ifndef APP_KEEP_H
#define APP_KEEP_H

#include "app/paths.h"
#include "chinwag/store.h"

/* The store of these folders, `paths` to be there until it is destroyed. CW_EIO with the reason
 * where there is no place for one. */
int app_keep_open(struct cw_store **out, const struct app_paths *paths, size_t max_queued,
                  struct cw_err *err);

enum { APP_KEEP_KEY = 17 };
/* The name of a conversation's snapshot. */
void app_keep_key(char key[APP_KEEP_KEY], int64_t conversation);

#endif
