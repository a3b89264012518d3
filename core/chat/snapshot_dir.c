/* SPDX-License-Identifier: MIT
 *
 * A folder of snapshots that stays below a size: names are checked before they become paths, and
 * the time a file was last written or read decides which goes first. */
#include "chinwag/dirs.h"
#include "core/chat/session_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char suffix[] = ".kv", temporary[] = ".tmp";

enum { KEY_MAX = 64, STALE_S = 3600 };

static bool is_key(const char *s, size_t n) {
    return n >= 1 && n <= KEY_MAX && strspn(s, "0123456789abcdef") >= n;
}

/* KEY.kv, or what writing one left behind. */
enum kind { OTHER, SNAPSHOT, LEFT_OVER };
static enum kind kind_of(const char *name) {
    const char *dot = strchr(name, '.');
    if (dot == NULL || !is_key(name, (size_t)(dot - name)) ||
        strncmp(dot, suffix, sizeof suffix - 1) != 0) {
        return OTHER;
    }
    const char *rest = dot + sizeof suffix - 1;
    if (*rest == '\0') {
        return SNAPSHOT;
    }
    size_t n = strlen(rest);
    return *rest == '.' && n > sizeof temporary &&
                   strcmp(rest + n - (sizeof temporary - 1), temporary) == 0
               ? LEFT_OVER
               : OTHER;
}

struct entry {
    char name[KEY_MAX + sizeof suffix];
    uint64_t bytes;
    struct timespec used;
};

struct listing {
    struct entry *v;
    size_t n;
    uint64_t bytes;
};

static bool older(const struct entry *a, const struct entry *b) {
    return a->used.tv_sec != b->used.tv_sec ? a->used.tv_sec < b->used.tv_sec
                                            : a->used.tv_nsec < b->used.tv_nsec;
}

/* The snapshots of a folder; what writers left behind long ago, or all of it, goes on the way. */
static struct listing list(const char *dir, bool all_left_overs) {
    struct listing l = {0};
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    if (d == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return l;
    }
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d)) {
        struct stat st;
        enum kind kind = kind_of(e->d_name);
        if (kind == OTHER || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(st.st_mode)) {
            continue;
        }
        if (kind == LEFT_OVER) {
            if (all_left_overs || st.st_mtim.tv_sec < time(NULL) - STALE_S) {
                unlinkat(fd, e->d_name, 0);
            }
            continue;
        }
        l.v = cw_reallocarray(l.v, l.n + 1, sizeof *l.v);
        struct entry *one = &l.v[l.n++];
        memcpy(one->name, e->d_name, strlen(e->d_name) + 1); /* no longer than a key */
        one->bytes = (uint64_t)st.st_size;
        one->used = st.st_mtim;
        l.bytes += one->bytes;
    }
    closedir(d);
    return l;
}

static int remove_file(const char *dir, const char *name, struct cw_err *err) {
    struct cw_buf path = {0};
    cw_buf_printf(&path, "%s/%s", dir, name);
    int rc = CW_OK;
    if (unlink(path.data) != 0 && errno != ENOENT) {
        rc = cw_fail(err, CW_EIO, "%s: %s", path.data, strerror(errno));
    }
    cw_buf_free(&path);
    return rc;
}

/* Remove the oldest until those other than `name`, which is to be written over, take at most `most`
 * bytes. */
static int shrink(const char *dir, const char *name, uint64_t most, struct cw_err *err) {
    struct listing l = list(dir, false);
    int rc = CW_OK;
    for (size_t i = 0; i < l.n; i++) {
        if (strcmp(l.v[i].name, name) == 0) {
            l.bytes -= l.v[i].bytes;
            l.v[i] = l.v[--l.n];
            break;
        }
    }
    while (rc == CW_OK && l.n > 0 && l.bytes > most) {
        size_t oldest = 0;
        for (size_t i = 1; i < l.n; i++) {
            oldest = older(&l.v[i], &l.v[oldest]) ? i : oldest;
        }
        rc = remove_file(dir, l.v[oldest].name, err);
        l.bytes -= l.v[oldest].bytes;
        l.v[oldest] = l.v[--l.n];
    }
    free(l.v);
    return rc;
}

static int check_key(const char *key, struct cw_err *err) {
    return key != NULL && is_key(key, strlen(key))
               ? CW_OK
               : cw_fail(err, CW_EINVAL, "a snapshot's name is 1 to %d digits 0-9a-f", KEY_MAX);
}

int cw_snapshots_save(const char *dir, const char *key, uint64_t cap_bytes, struct cw_session *s,
                      struct cw_err *err) {
    uint64_t bytes = cw_session_snapshot_bytes(s);
    struct cw_buf name = {0}, path = {0};
    int rc = check_key(key, err);
    if (rc == CW_OK && cap_bytes != 0 && bytes > cap_bytes) {
        rc = cw_fail(err, CW_EFULL, "a snapshot of %zu tokens takes more than all may",
                     cw_session_n(s));
    }
    if (rc == CW_OK) {
        rc = cw_dirs_make(dir, err);
    }
    if (rc != CW_OK) {
        return rc;
    }
    cw_buf_printf(&name, "%s%s", key, suffix);
    cw_buf_printf(&path, "%s/%s", dir, name.data);
    if (cap_bytes != 0) {
        rc = shrink(dir, name.data, cap_bytes - bytes, err);
    }
    if (rc == CW_OK) {
        rc = cw_session_save(s, path.data, err);
    }
    cw_buf_free(&name);
    cw_buf_free(&path);
    return rc;
}

int cw_snapshots_load(const char *dir, const char *key, struct cw_session *s, const int32_t *want,
                      size_t n, size_t *restored, struct cw_err *err) {
    struct cw_buf path = {0};
    int rc = check_key(key, err);
    if (restored != NULL) {
        *restored = 0;
    }
    if (rc != CW_OK) {
        return rc;
    }
    cw_buf_printf(&path, "%s/%s%s", dir, key, suffix);
    rc = cw_session_load(s, path.data, want, n, restored, err);
    if (rc == CW_OK) {
        utimensat(AT_FDCWD, path.data, NULL, AT_SYMLINK_NOFOLLOW);
    }
    cw_buf_free(&path);
    return rc;
}

int cw_snapshots_remove(const char *dir, const char *key, struct cw_err *err) {
    int rc = key != NULL ? check_key(key, err) : CW_OK;
    if (rc != CW_OK) {
        return rc;
    }
    if (key != NULL) {
        struct cw_buf name = {0};
        cw_buf_printf(&name, "%s%s", key, suffix);
        rc = remove_file(dir, name.data, err);
        cw_buf_free(&name);
        return rc;
    }
    struct listing l = list(dir, true);
    for (size_t i = 0; i < l.n; i++) {
        int one = remove_file(dir, l.v[i].name, err);
        rc = one != CW_OK ? one : rc;
    }
    free(l.v);
    return rc;
}

uint64_t cw_snapshots_bytes(const char *dir) {
    struct listing l = list(dir, false);
    free(l.v);
    return l.bytes;
}
