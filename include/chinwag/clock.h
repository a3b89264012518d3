/* SPDX-License-Identifier: MIT
 * The monotonic clock, in seconds. Any thread. */
#ifndef CHINWAG_CLOCK_H
#define CHINWAG_CLOCK_H

double cw_now(void);

#endif
