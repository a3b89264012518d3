/* SPDX-License-Identifier: MIT
 *
 * The mapping and its SIGBUS handler. The handler may run in any thread at any instruction, so it
 * sees only a fixed table of atomics; the mutex orders those who open and close. */
#include "core/gguf/map.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N_SLOTS = 2048 };

static struct slot {
    atomic_uintptr_t base; /* 0: free; written last when a slot is filled, first when emptied */
    atomic_size_t bytes;
    atomic_bool damaged;
    bool taken; /* under the mutex */
} slots[N_SLOTS];

static atomic_int n_slots_used; /* slots from here on were never taken */
static pthread_mutex_t slots_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t handler_once = PTHREAD_ONCE_INIT;
static struct sigaction previous;
static uintptr_t page_bytes;

static void on_sigbus(int sig, siginfo_t *info, void *context) {
    int saved_errno = errno;
    uintptr_t at = (uintptr_t)info->si_addr;
    int n = atomic_load_explicit(&n_slots_used, memory_order_acquire);
    /* si_code <= 0: sent by a process, not by the memory; si_addr means nothing then. */
    for (int i = 0; info->si_code > 0 && i < n; i++) {
        uintptr_t base = atomic_load_explicit(&slots[i].base, memory_order_acquire);
        size_t bytes = atomic_load_explicit(&slots[i].bytes, memory_order_relaxed);
        if (base == 0 || at < base || at - base >= bytes) {
            continue;
        }
        uintptr_t page = at & ~(page_bytes - 1);
        /* To the end, not one page: what follows a missing page is missing too as a rule, and one
         * mapping costs nothing where a signal a page would cost seconds. */
        if (mmap((void *)page, base + bytes - page, PROT_READ,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED) {
            break;
        }
        atomic_store_explicit(&slots[i].damaged, true, memory_order_release);
        errno = saved_errno;
        return;
    }
    errno = saved_errno;
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(sig, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(sig);
    } else {
        signal(sig, SIG_DFL);
        raise(sig); /* blocked until this handler returns */
    }
}

static void install_handler(void) {
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_sigaction = on_sigbus;
    sa.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&sa.sa_mask);
    sigaction(SIGBUS, &sa, &previous);
}

static int slot_take(const void *base, size_t bytes) {
    int found = -1;
    pthread_mutex_lock(&slots_mutex);
    for (int i = 0; i < N_SLOTS; i++) {
        if (!slots[i].taken) {
            found = i;
            break;
        }
    }
    if (found >= 0) {
        struct slot *s = &slots[found];
        s->taken = true;
        atomic_store_explicit(&s->damaged, false, memory_order_relaxed);
        atomic_store_explicit(&s->bytes, bytes, memory_order_relaxed);
        atomic_store_explicit(&s->base, (uintptr_t)base, memory_order_release);
        if (found >= atomic_load_explicit(&n_slots_used, memory_order_relaxed)) {
            atomic_store_explicit(&n_slots_used, found + 1, memory_order_release);
        }
    }
    pthread_mutex_unlock(&slots_mutex);
    return found;
}

static const char *kind_of(mode_t mode) {
    if (S_ISDIR(mode)) {
        return "a directory";
    }
    if (S_ISFIFO(mode)) {
        return "a pipe (FIFO)";
    }
    if (S_ISSOCK(mode)) {
        return "a socket";
    }
    return "a device";
}

int cw_map_open(struct cw_map *m, const char *path, struct cw_err *err) {
    memset(m, 0, sizeof *m);
    pthread_once(&handler_once, install_handler);
    /* O_NONBLOCK: opening a FIFO without a writer would wait for ever. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return cw_fail(err, errno == ENOENT ? CW_ENOENT : CW_EIO, "%s: %s", path, strerror(errno));
    }
    int rc = CW_OK;
    struct stat st;
    void *base = MAP_FAILED;
    if (fstat(fd, &st) != 0) {
        rc = cw_fail(err, CW_EIO, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        rc = cw_fail(err, CW_EFORMAT, "%s: is %s, not a file", path, kind_of(st.st_mode));
    } else if (st.st_size == 0) {
        rc = cw_fail(err, CW_EFORMAT, "%s: the file is empty", path);
    } else if ((uintmax_t)st.st_size > SIZE_MAX / 2) {
        rc = cw_fail(err, CW_ENOMEM, "%s: too large to map", path);
    } else {
        base = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED) {
            rc = cw_fail(err, errno == ENOMEM ? CW_ENOMEM : CW_EIO, "%s: cannot be mapped: %s",
                         path, strerror(errno));
        }
    }
    close(fd);
    if (rc != CW_OK) {
        return rc;
    }
    int slot = slot_take(base, (size_t)st.st_size);
    if (slot < 0) {
        munmap(base, (size_t)st.st_size);
        return cw_fail(err, CW_ENOMEM, "%s: too many mapped files", path);
    }
    m->base = base;
    m->bytes = (size_t)st.st_size;
    m->slot = slot;
    return CW_OK;
}

void cw_map_close(struct cw_map *m) {
    if (m->base == NULL) {
        return;
    }
    struct slot *s = &slots[m->slot];
    pthread_mutex_lock(&slots_mutex);
    atomic_store_explicit(&s->base, 0, memory_order_release);
    munmap((void *)(uintptr_t)m->base, m->bytes);
    s->taken = false;
    pthread_mutex_unlock(&slots_mutex);
    memset(m, 0, sizeof *m);
}

bool cw_map_damaged(const struct cw_map *m) {
    return m->base != NULL && atomic_load_explicit(&slots[m->slot].damaged, memory_order_acquire);
}
