/* SPDX-License-Identifier: MIT
 *
 * XDG base directories. See paths.h.
 */
#include "app/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "chinwag/mem.h"

char *app_path_join(const char *dir, const char *name) {
    if (!*dir) {
        return cw_strdup("");
    }
    struct cw_buf b = {0};
    size_t n = strlen(dir);
    cw_buf_printf(&b, "%s%s%s", dir, dir[n - 1] == '/' ? "" : "/", name);
    return cw_buf_take(&b);
}

/* $HOME if it can hold anything, else NULL and a reason. Whether it can be written to is left to
 * who writes: a home that is read-only may still be read. */
static const char *usable_home(char *reason, size_t cap) {
    const char *home = getenv("HOME");
    struct stat st;
    if (!home || !*home) {
        snprintf(reason, cap, "HOME is not set");
    } else if (*home != '/') {
        snprintf(reason, cap, "HOME is not an absolute path");
    } else if (stat(home, &st) != 0) {
        struct cw_err e;
        cw_fail(&e, CW_EIO, "HOME %.150s: %s", home, strerror(errno));
        snprintf(reason, cap, "%.*s", (int)cap - 1, e.text);
    } else if (!S_ISDIR(st.st_mode)) {
        struct cw_err e;
        cw_fail(&e, CW_EIO, "HOME %.150s is not a directory", home);
        snprintf(reason, cap, "%.*s", (int)cap - 1, e.text);
    } else {
        return home;
    }
    return NULL;
}

void app_paths_init(struct app_paths *p) {
    static const char *const variables[4] = {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
                                             "XDG_CACHE_HOME"};
    static const char *const fallbacks[4] = {".config", ".local/share", ".local/state", ".cache"};
    char *found[4];
    char why[sizeof p->reason] = "";
    const char *home = usable_home(why, sizeof why);
    p->reason[0] = '\0';
    for (int i = 0; i < 4; i++) {
        const char *xdg = getenv(variables[i]);
        char *base;
        if (xdg && *xdg == '/') {
            base = cw_strdup(xdg);
        } else if (home) {
            base = app_path_join(home, fallbacks[i]);
        } else {
            base = cw_strdup("");
            memcpy(p->reason, why, sizeof why);
        }
        found[i] = app_path_join(base, "chinwag");
        free(base);
    }
    p->config = found[0];
    p->data = found[1];
    p->state = found[2];
    p->cache = found[3];
}

void app_paths_free(struct app_paths *p) {
    free(p->config);
    free(p->data);
    free(p->state);
    free(p->cache);
    memset(p, 0, sizeof *p);
}
