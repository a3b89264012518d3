/* SPDX-License-Identifier: MIT
 *
 * See pager.h. A piece of the file is asked for from the disk while the one before it is mapped, so
 * that a cold disk always has a large request before it. Faults cannot be raised here: a file that
 * was cut short makes madvise fail, and forward finds out by itself. */
#include "core/model/pager.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "chinwag/thread.h"
#include "core/model/memory.h"

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ 22
#endif

/* Bytes of one request: large enough for a disk, and over soon when the model is closed. */
enum { PIECE = 4 << 20, AHEAD = 4 * PIECE };

struct stretch {
    uintptr_t begin, end; /* whole pages */
};

struct cw_pager {
    struct stretch *list; /* [n] */
    size_t n;
    pthread_t thread;
    atomic_bool stop;
};

static void add(struct cw_pager *p, const struct cw_weight *w) {
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), data = (uintptr_t)w->data;
    if (w->data == NULL) {
        return;
    }
    struct stretch s = {data / page * page,
                        (data + (size_t)w->rows * w->row_bytes + page - 1) / page * page};
    if (p->n > 0 && s.begin <= p->list[p->n - 1].end && s.begin >= p->list[p->n - 1].begin) {
        p->list[p->n - 1].end = s.end;
        return;
    }
    p->list[p->n++] = s;
}

/* The asked-for part of [begin, begin + bytes) that lies in the stretch. */
static bool advise(const struct stretch *s, uintptr_t begin, size_t bytes, int advice) {
    if (begin >= s->end) {
        return true;
    }
    size_t left = s->end - begin;
    return madvise((void *)begin, left < bytes ? left : bytes, advice) == 0;
}

static void *page_in(void *arg) {
    struct cw_pager *p = arg;
    for (size_t i = 0; i < p->n; i++) {
        const struct stretch *s = &p->list[i];
        advise(s, s->begin, AHEAD, MADV_WILLNEED);
        for (uintptr_t at = s->begin; at < s->end; at += PIECE) {
            advise(s, at + AHEAD, PIECE, MADV_WILLNEED);
            if (atomic_load_explicit(&p->stop, memory_order_relaxed) ||
                !advise(s, at, PIECE, MADV_POPULATE_READ)) {
                return NULL;
            }
        }
    }
    return NULL;
}

struct cw_pager *cw_pager_start(const struct cw_model *m) {
    if (m->hp.n_experts > 0 || m->info.weight_bytes > cw_memory_read().available / 2) {
        return NULL;
    }
    struct cw_pager *p = cw_calloc(1, sizeof *p);
    p->list = cw_reallocarray(NULL, (size_t)m->hp.n_layers * 7 + 1, sizeof *p->list);
    for (int i = 0; i < m->hp.n_layers; i++) {
        const struct cw_layer *y = &m->layers[i];
        const struct cw_weight *const w[] = {&y->q,  &y->k,    &y->v,   &y->out,
                                             &y->up, &y->gate, &y->down};
        for (size_t k = 0; k < sizeof w / sizeof *w; k++) {
            add(p, w[k]);
        }
    }
    add(p, &m->head);
    if (cw_thread_start(&p->thread, page_in, p) != 0) {
        free(p->list);
        free(p);
        return NULL;
    }
    return p;
}

void cw_pager_stop(struct cw_pager *p) {
    if (p == NULL) {
        return;
    }
    atomic_store_explicit(&p->stop, true, memory_order_relaxed);
    pthread_join(p->thread, NULL);
    free(p->list);
    free(p);
}
