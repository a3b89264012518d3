/* SPDX-License-Identifier: MIT
 * The monotonic clock. */
#include "chinwag/clock.h"

#include <time.h>

double cw_now(void) {
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}
