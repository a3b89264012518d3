/* SPDX-License-Identifier: MIT
 *
 * Where chinwag keeps things, by the XDG base directory specification. Nothing is created here, and
 * nothing is ever put into the current directory: a place that cannot be known is empty, with the
 * reason beside it.
 */
#ifndef APP_PATHS_H
#define APP_PATHS_H

#include "chinwag/err.h"

struct app_paths {
    char *config;     /* $XDG_CONFIG_HOME/chinwag: config.ini */
    char *data;       /* $XDG_DATA_HOME/chinwag: conversations, models/ */
    char *state;      /* $XDG_STATE_HOME/chinwag: readline history */
    char *cache;      /* $XDG_CACHE_HOME/chinwag: KV snapshots */
    char reason[256]; /* why one of them is empty, printable; "" when none is */
};

/* From the environment. A relative or empty XDG value counts as unset; without it the place lies
 * under $HOME, which must be an absolute path of a directory. Each path is absolute, or "". */
void app_paths_init(struct app_paths *p);
void app_paths_free(struct app_paths *p);

/* dir/name; "" when dir is "". Caller must free. */
char *app_path_join(const char *dir, const char *name);

#endif
