/* SPDX-License-Identifier: MIT
 *
 * How much memory this process may use, so that a default context never asks for more. */
#ifndef CW_MEMORY_H
#define CW_MEMORY_H

#include <stdint.h>

struct cw_memory {
    uint64_t total;     /* bytes; what the machine or the control group has, UINT64_MAX: unknown */
    uint64_t available; /* without swapping, file cache counted as free; UINT64_MAX: unknown */
};

struct cw_memory cw_memory_read(void);

/* The number in `text` ("max" and rubbish: UINT64_MAX), and the kB figure behind `key` in the
 * text of /proc/meminfo, in bytes. For tests. */
uint64_t cw_memory_parse_limit(const char *text);
uint64_t cw_memory_parse_meminfo(const char *text, const char *key);

#endif
