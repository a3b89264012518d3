/* SPDX-License-Identifier: MIT
 *
 * A pool for phases of a few microseconds: the caller takes part, chunks are claimed from one
 * atomic word, workers spin briefly for the next phase and then sleep in the kernel. A worker that
 * is late, or whose core is taken by another process, holds up nobody unless it has claimed a
 * chunk.
 *
 * cw_pool_run is called by one thread at a time. No CPU is used between phases once the workers
 * sleep.
 */
#ifndef CW_THREADPOOL_H
#define CW_THREADPOOL_H

struct cw_pool;

typedef void cw_pool_fn(void *arg, int chunk, int thread);

/* n_threads counts the caller; fewer run when the system refuses threads. */
struct cw_pool *cw_pool_create(int n_threads);
void cw_pool_destroy(struct cw_pool *p);
int cw_pool_n_threads(const struct cw_pool *p);

/* fn(arg, chunk, thread) for every chunk in [0, n_chunks); returns when all are done. */
void cw_pool_run(struct cw_pool *p, cw_pool_fn *fn, void *arg, int n_chunks);

#endif
