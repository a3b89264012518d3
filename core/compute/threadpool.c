/* SPDX-License-Identifier: MIT
 *
 * DESIGN. `work` holds the phase number in its upper half and the chunks not yet claimed in its
 * lower half. Publishing a phase writes fn, arg and n_chunks, then stores `work`. A thread claims
 * by decrementing `work` with compare-and-swap; because the phase number is part of the word, a
 * thread that slept through phases can never claim with stale knowledge, and because the caller
 * waits until every claimed chunk is done, fn and arg are stable while anyone holds a chunk. So no
 * thread ever has to arrive anywhere: a phase ends when its chunks are done, not when its threads
 * are.
 *
 * Sleeping: a worker announces itself in n_sleepers, looks at `work` once more and waits on the
 * futex `epoch`, which every publication with sleepers increments. The caller, out of chunks, spins
 * for the stragglers and then sleeps on `left`, which the last chunk wakes.
 */
#include "core/compute/threadpool.h"

#include "chinwag/clock.h"
#include "chinwag/mem.h"
#include "chinwag/thread.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define relax() _mm_pause()
#else
#define relax() ((void)0)
#endif

/* Longer than the gap between two phases of a decode step, far shorter than a person notices. */
#define SPIN_SECONDS 60e-6

struct worker {
    struct cw_pool *pool;
    pthread_t thread;
    int index;
};

struct cw_pool {
    _Alignas(64) _Atomic uint64_t work; /* phase << 32 | unclaimed chunks */
    _Alignas(64) _Atomic uint32_t left; /* chunks not yet done */
    _Alignas(64) _Atomic uint32_t epoch;
    _Atomic uint32_t n_sleepers;
    _Atomic uint32_t caller_waits;
    _Atomic bool quit;
    /* Written by the caller before a phase is published. */
    _Alignas(64) cw_pool_fn *fn;
    void *arg;
    int n_chunks;
    uint32_t phase;
    int n_threads;
    struct worker *workers; /* [n_threads - 1] */
};

static void futex_wait(_Atomic uint32_t *word, uint32_t seen) {
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int n) {
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* Claim and do chunks until none is left. */
static void do_chunks(struct cw_pool *p, int thread) {
    uint64_t w = atomic_load_explicit(&p->work, memory_order_acquire);
    while ((uint32_t)w != 0) {
        if (!atomic_compare_exchange_weak_explicit(&p->work, &w, w - 1, memory_order_acq_rel,
                                                   memory_order_acquire)) {
            continue;
        }
        p->fn(p->arg, p->n_chunks - (int)(uint32_t)w, thread);
        if (atomic_fetch_sub_explicit(&p->left, 1, memory_order_seq_cst) == 1 &&
            atomic_load_explicit(&p->caller_waits, memory_order_seq_cst)) {
            futex_wake(&p->left, 1);
        }
        w = atomic_load_explicit(&p->work, memory_order_acquire);
    }
}

/* Spin for a while; true when there is something to do. The clock is read now and then. */
static bool spin_for_work(struct cw_pool *p) {
    double until = 0.0;
    for (unsigned i = 0;; i++) {
        if ((uint32_t)atomic_load_explicit(&p->work, memory_order_relaxed) != 0 ||
            atomic_load_explicit(&p->quit, memory_order_relaxed)) {
            return true;
        }
        relax();
        if (i % 64 == 63) {
            double now = cw_now();
            if (until == 0.0) {
                until = now + SPIN_SECONDS;
            } else if (now > until) {
                return false;
            }
        }
    }
}

static void *worker_main(void *arg) {
    struct worker *w = arg;
    struct cw_pool *p = w->pool;
    while (!atomic_load_explicit(&p->quit, memory_order_acquire)) {
        do_chunks(p, w->index);
        if (spin_for_work(p)) {
            continue;
        }
        uint32_t seen = atomic_load_explicit(&p->epoch, memory_order_seq_cst);
        atomic_fetch_add_explicit(&p->n_sleepers, 1, memory_order_seq_cst);
        if ((uint32_t)atomic_load_explicit(&p->work, memory_order_seq_cst) == 0 &&
            !atomic_load_explicit(&p->quit, memory_order_seq_cst)) {
            futex_wait(&p->epoch, seen);
        }
        atomic_fetch_sub_explicit(&p->n_sleepers, 1, memory_order_seq_cst);
    }
    return NULL;
}

static void wake_workers(struct cw_pool *p) {
    if (atomic_load_explicit(&p->n_sleepers, memory_order_seq_cst) > 0) {
        atomic_fetch_add_explicit(&p->epoch, 1, memory_order_seq_cst);
        futex_wake(&p->epoch, p->n_threads);
    }
}

static void wait_for_stragglers(struct cw_pool *p) {
    double until = 0.0;
    for (unsigned i = 0; atomic_load_explicit(&p->left, memory_order_acquire) != 0; i++) {
        relax();
        if (i % 64 == 63) {
            double now = cw_now();
            if (until == 0.0) {
                until = now + SPIN_SECONDS;
            } else if (now > until) {
                break;
            }
        }
    }
    uint32_t left = atomic_load_explicit(&p->left, memory_order_acquire);
    if (left == 0) {
        return;
    }
    atomic_store_explicit(&p->caller_waits, 1, memory_order_seq_cst);
    while ((left = atomic_load_explicit(&p->left, memory_order_seq_cst)) != 0) {
        futex_wait(&p->left, left);
    }
    atomic_store_explicit(&p->caller_waits, 0, memory_order_seq_cst);
}

void cw_pool_run(struct cw_pool *p, cw_pool_fn *fn, void *arg, int n_chunks) {
    if (n_chunks <= 0) {
        return;
    }
    if (n_chunks == 1 || p->n_threads == 1) {
        for (int i = 0; i < n_chunks; i++) {
            fn(arg, i, 0);
        }
        return;
    }
    p->fn = fn;
    p->arg = arg;
    p->n_chunks = n_chunks;
    p->phase++;
    atomic_store_explicit(&p->left, (uint32_t)n_chunks, memory_order_relaxed);
    atomic_store_explicit(&p->work, (uint64_t)p->phase << 32 | (uint32_t)n_chunks,
                          memory_order_seq_cst);
    wake_workers(p);
    do_chunks(p, 0);
    wait_for_stragglers(p);
}

struct cw_pool *cw_pool_create(int n_threads) {
    struct cw_pool *p = aligned_alloc(64, sizeof *p);
    if (!p) {
        return NULL;
    }
    memset(p, 0, sizeof *p);
    p->n_threads = 1;
    p->workers = cw_calloc((size_t)(n_threads < 1 ? 1 : n_threads), sizeof *p->workers);
    for (int i = 1; i < n_threads; i++) {
        struct worker *w = &p->workers[i - 1];
        w->pool = p;
        w->index = i;
        if (cw_thread_start(&w->thread, worker_main, w) != 0) {
            break;
        }
        p->n_threads++;
    }
    return p;
}

void cw_pool_destroy(struct cw_pool *p) {
    if (!p) {
        return;
    }
    atomic_store_explicit(&p->quit, true, memory_order_seq_cst);
    wake_workers(p);
    for (int i = 1; i < p->n_threads; i++) {
        pthread_join(p->workers[i - 1].thread, NULL);
    }
    free(p->workers);
    free(p);
}

int cw_pool_n_threads(const struct cw_pool *p) {
    return p->n_threads;
}
