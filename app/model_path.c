/* SPDX-License-Identifier: MIT
 *
 * Which file -m means. See cli.h.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "app/cli.h"

static const char default_model[] = "SmolLM2-135M-Instruct.Q4_1.gguf";

static bool exists(const char *path) {
    return access(path, F_OK) == 0;
}

static bool has_suffix(const char *s, const char *suffix) {
    size_t n = strlen(s);
    size_t k = strlen(suffix);
    return n >= k && strcasecmp(s + n - k, suffix) == 0;
}

/* The one .gguf file of `dir` whose name begins with `name`, case aside. Caller must free; NULL
 * when there is none, *n > 1 when there are several. */
static char *find_by_beginning(const char *dir, const char *name, int *n) {
    char *found = NULL;
    DIR *d = opendir(dir);
    *n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (has_suffix(e->d_name, ".gguf") && strncasecmp(e->d_name, name, strlen(name)) == 0) {
            free(found);
            found = app_path_join(dir, e->d_name);
            (*n)++;
        }
    }
    if (d) {
        closedir(d);
    }
    return found;
}

static int no_default(const struct app_paths *paths, const char *dir, struct cw_err *err) {
    if (!*dir) {
        return cw_fail(err, CW_ENOENT, "no models directory (%s); give a file with -m",
                       paths->reason);
    }
    return cw_fail(err, CW_ENOENT,
                   "%s is not in %s; fetch it with `sh assets/fetch.sh smollm2-135m` or give a "
                   "file with -m",
                   default_model, dir);
}

int cli_find_model(const struct app_settings *s, const struct app_paths *paths, char **out,
                   struct cw_err *err) {
    char *dir = app_path_join(paths->data, "models");
    const char *name = s->model;
    int n = 0;
    int rc = CW_OK;
    *out = NULL;
    if (!name) {
        *out = app_path_join(dir, default_model);
        if (!exists(*out)) {
            rc = no_default(paths, dir, err);
        }
    } else if (strchr(name, '/') || exists(name)) {
        *out = cw_strdup(name); /* whether it can be read is told by opening it */
    } else {
        *out = app_path_join(dir, name);
        if (!exists(*out)) {
            free(*out);
            *out = find_by_beginning(dir, name, &n);
        }
        if (n > 1) {
            rc = cw_fail(err, CW_ENOENT, "%s: %d files in %s begin so", name, n, dir);
        } else if (!*out) {
            rc = cw_fail(err, CW_ENOENT, "%s: no such file here or in %s", name,
                         *dir ? dir : "a models directory");
        }
    }
    if (rc != CW_OK) {
        free(*out);
        *out = NULL;
    }
    free(dir);
    return rc;
}

uint32_t cli_seed(const struct app_settings *s) {
    uint32_t seed;
    if (s->seed >= 0) {
        return (uint32_t)s->seed;
    }
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) {
        /* Without the system call (a strict sandbox) the clock and the process still differ. */
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        seed = (uint32_t)t.tv_nsec ^ ((uint32_t)t.tv_sec << 10) ^ ((uint32_t)getpid() << 20);
    }
    return seed;
}
