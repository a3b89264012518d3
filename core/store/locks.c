/* SPDX-License-Identifier: MIT
 *
 * Other programs on the same store. One lock file; its bytes stand for things: byte 0 for the
 * database (everyone who has it open holds it shared; who mends it needs it alone), and the byte at
 * a conversation's number for that conversation. The locks are those of an open file description,
 * so the kernel lets go of them when a program ends, however it ends, and two stores in one process
 * keep each other out as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/store/store_impl.h"

enum { DATABASE_BYTE = 0 };

static bool set_lock(int fd, short type, int64_t at) {
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    int rc;
    do {
        rc = fcntl(fd, F_OFD_SETLK, &lock);
    } while (rc != 0 && errno == EINTR);
    return rc == 0;
}

int store_lock_open(struct cw_store *s) {
    if (s->lock_fd < 0) {
        struct cw_buf path = {0};
        cw_buf_printf(&path, "%s/conversations.lock", s->dir);
        s->lock_fd = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        cw_buf_free(&path);
        if (s->lock_fd < 0) {
            return SQLITE_CANTOPEN;
        }
    }
    return set_lock(s->lock_fd, F_RDLCK, DATABASE_BYTE) ? SQLITE_OK : SQLITE_BUSY;
}

bool store_lock_alone(struct cw_store *s) {
    return s->lock_fd >= 0 && set_lock(s->lock_fd, F_WRLCK, DATABASE_BYTE);
}

void store_lock_shared(struct cw_store *s) {
    if (s->lock_fd >= 0) {
        set_lock(s->lock_fd, F_RDLCK, DATABASE_BYTE);
    }
}

void store_lock_close(struct cw_store *s) {
    if (s->lock_fd >= 0) {
        close(s->lock_fd);
    }
    s->lock_fd = -1;
    s->n_claims = 0;
}

static struct store_claim *find_claim(const struct cw_store *s, int64_t conversation) {
    for (size_t i = 0; i < s->n_claims; i++) {
        if (s->claims[i].conversation == conversation) {
            return &s->claims[i];
        }
    }
    return NULL;
}

bool store_claimed(const struct cw_store *s, int64_t conversation) {
    const struct store_claim *c = find_claim(s, conversation);
    return c != NULL && c->owned;
}

bool store_claim(struct cw_store *s, int64_t conversation) {
    struct store_claim *c = find_claim(s, conversation);
    if (c == NULL) {
        s->claims = cw_reallocarray(s->claims, s->n_claims + 1, sizeof *s->claims);
        c = &s->claims[s->n_claims++];
        *c = (struct store_claim){.conversation = conversation};
    }
    if (!c->owned && s->lock_fd >= 0 && conversation > 0) {
        c->owned = set_lock(s->lock_fd, F_WRLCK, conversation);
    }
    return c->owned;
}

void store_unclaim(struct cw_store *s, int64_t conversation) {
    struct store_claim *c = find_claim(s, conversation);
    if (c == NULL) {
        return;
    }
    if (c->owned) {
        set_lock(s->lock_fd, F_UNLCK, conversation);
    }
    *c = s->claims[--s->n_claims];
}
