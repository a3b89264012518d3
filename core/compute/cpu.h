/* SPDX-License-Identifier: MIT
 * What this machine offers: instruction sets, and how many threads are worth starting. Any thread.
 */
#ifndef CW_CPU_H
#define CW_CPU_H

#include "chinwag/model.h"

enum cw_isa cw_cpu_best_isa(void);

/* Threads worth using: physical cores this process may run on, limited by the cgroup's quota
 * (rounded down, at least 1). */
int cw_cpu_n_threads(void);

/* The parts of it, for tests: CPUs of the quota text of cgroup v2's cpu.max ("150000 100000",
 * "max 100000") or of v1's two numbers; 0 when unlimited or malformed. */
int cw_cpu_parse_quota(const char *text);

#endif
