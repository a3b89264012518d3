/* SPDX-License-Identifier: MIT
 *
 * Starting threads that leave the process's signals to the one that owns the terminal. Any thread.
 */
#ifndef CHINWAG_THREAD_H
#define CHINWAG_THREAD_H

#include <pthread.h>

/* pthread_create of fn(arg), with every signal blocked in it that is not the fault of an
 * instruction: those must stay open, for a mapped file that shrinks raises SIGBUS in whoever reads
 * it. Returns what pthread_create does. */
int cw_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg);

#endif
