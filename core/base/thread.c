/* SPDX-License-Identifier: MIT
 *
 * See chinwag/thread.h.
 */
#include "chinwag/thread.h"

#include <signal.h>
#include <stddef.h>

int cw_thread_start(pthread_t *thread, void *(*fn)(void *arg), void *arg) {
    static const int faults[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
    sigset_t block, before;
    sigfillset(&block);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        sigdelset(&block, faults[i]);
    }
    pthread_sigmask(SIG_BLOCK, &block, &before);
    int rc = pthread_create(thread, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
