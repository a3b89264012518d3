/* SPDX-License-Identifier: MIT
 *
 * The ring between generator and interface.
 *
 * Two counters that only grow, each written by one side and on a cache line of its own: `tail`
 * counts events written, `head` events read. Beside them two flags that save system calls: `told`
 * (the consumer's eventfd is already readable) and `waiting` (the producer sleeps for room). Both
 * are only ever exchanged, so whichever side exchanges second sees what the other did before: the
 * producer either finds the room just made or is woken, and likewise the consumer.
 */
#include "chinwag/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { CACHE_LINE = 64 };

struct cw_ring {
    size_t n_slots;
    struct cw_event *slots; /* [n_slots] */
    int event_fd;           /* to the consumer: something was written */
    int room_fd;            /* to the producer: something was read, or a kick */

    _Alignas(CACHE_LINE) _Atomic size_t tail; /* the producer's */
    atomic_bool told;
    _Alignas(CACHE_LINE) _Atomic size_t head; /* the consumer's */
    atomic_bool waiting;
};

const char *cw_stop_name(enum cw_stop stop) {
    static const char *const names[] = {
        [CW_STOP_EOG] = "eos",         [CW_STOP_STRING] = "stop",   [CW_STOP_LENGTH] = "length",
        [CW_STOP_CONTEXT] = "context", [CW_STOP_CANCEL] = "cancel", [CW_STOP_ERROR] = "error",
    };
    return (unsigned)stop < sizeof names / sizeof names[0] ? names[stop] : "unknown";
}

static void signal_fd(int fd) {
    const uint64_t one = 1;
    ssize_t n;
    do {
        n = write(fd, &one, sizeof one);
    } while (n < 0 && errno == EINTR);
    /* EAGAIN: the counter is full, which is as loud as it gets. */
}

int cw_ring_create(struct cw_ring **out, size_t n_slots, struct cw_err *err) {
    *out = NULL;
    if (n_slots == 0 || n_slots > SIZE_MAX / sizeof(struct cw_event)) {
        return cw_fail(err, CW_EINVAL, "ring: %zu slots", n_slots);
    }
    struct cw_ring *r = NULL;
    if (posix_memalign((void **)&r, CACHE_LINE, sizeof *r) != 0) {
        return cw_fail(err, CW_ENOMEM, "ring: out of memory");
    }
    memset(r, 0, sizeof *r);
    atomic_init(&r->tail, 0);
    atomic_init(&r->told, false);
    atomic_init(&r->head, 0);
    atomic_init(&r->waiting, false);
    r->n_slots = n_slots;
    r->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r->room_fd = eventfd(0, EFD_CLOEXEC);
    r->slots = cw_large_alloc(n_slots * sizeof *r->slots);
    if (r->event_fd < 0 || r->room_fd < 0) {
        int rc = cw_fail(err, CW_EIO, "ring: eventfd: %s", strerror(errno));
        cw_ring_destroy(r);
        return rc;
    }
    if (r->slots == NULL) {
        cw_ring_destroy(r);
        return cw_fail(err, CW_ENOMEM, "ring: out of memory");
    }
    *out = r;
    return CW_OK;
}

void cw_ring_destroy(struct cw_ring *r) {
    if (r == NULL) {
        return;
    }
    if (r->event_fd >= 0) {
        close(r->event_fd);
    }
    if (r->room_fd >= 0) {
        close(r->room_fd);
    }
    if (r->slots != NULL) {
        cw_large_free(r->slots, r->n_slots * sizeof *r->slots);
    }
    free(r);
}

/* Only the text that is there crosses; most events have a few bytes of it. */
static void copy_event(struct cw_event *to, const struct cw_event *from) {
    size_t n = from->n_text < CW_EVENT_TEXT ? from->n_text : CW_EVENT_TEXT;
    memcpy(to, from, offsetof(struct cw_event, text) + n);
    to->n_text = (uint16_t)n;
}

/* Sleep until there may be room. Returns true when cancelled while there is none. */
static bool wait_for_room(struct cw_ring *r, size_t tail, const atomic_bool *cancel) {
    for (;;) {
        atomic_exchange_explicit(&r->waiting, true, memory_order_acq_rel);
        if (tail - atomic_load_explicit(&r->head, memory_order_acquire) < r->n_slots) {
            break;
        }
        if (cancel != NULL && atomic_load_explicit(cancel, memory_order_acquire)) {
            atomic_exchange_explicit(&r->waiting, false, memory_order_acq_rel);
            return true;
        }
        uint64_t ignored;
        ssize_t n = read(r->room_fd, &ignored, sizeof ignored);
        (void)n; /* a signal is as good a reason to look again */
    }
    atomic_exchange_explicit(&r->waiting, false, memory_order_acq_rel);
    return false;
}

int cw_ring_push(struct cw_ring *r, const struct cw_event *ev, const atomic_bool *cancel) {
    size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    if (tail - atomic_load_explicit(&r->head, memory_order_acquire) >= r->n_slots &&
        wait_for_room(r, tail, cancel)) {
        return CW_ECANCEL;
    }
    copy_event(&r->slots[tail % r->n_slots], ev);
    atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
    if (!atomic_exchange_explicit(&r->told, true, memory_order_acq_rel)) {
        signal_fd(r->event_fd);
    }
    return CW_OK;
}

void cw_ring_kick(struct cw_ring *r) {
    signal_fd(r->room_fd);
}

bool cw_ring_pop(struct cw_ring *r, struct cw_event *out) {
    size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
    if (head == atomic_load_explicit(&r->tail, memory_order_acquire)) {
        return false;
    }
    copy_event(out, &r->slots[head % r->n_slots]);
    atomic_store_explicit(&r->head, head + 1, memory_order_release);
    if (atomic_exchange_explicit(&r->waiting, false, memory_order_acq_rel)) {
        signal_fd(r->room_fd);
    }
    return true;
}

int cw_ring_fd(const struct cw_ring *r) {
    return r->event_fd;
}

void cw_ring_ack(struct cw_ring *r) {
    uint64_t ignored;
    ssize_t n = read(r->event_fd, &ignored, sizeof ignored);
    (void)n; /* not readable: nothing to take back */
    atomic_exchange_explicit(&r->told, false, memory_order_acq_rel);
}
