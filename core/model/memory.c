/* SPDX-License-Identifier: MIT
 *
 * Memory of the machine (/proc/meminfo) and of the control group, version 2 or 1, whichever is
 * tighter. What cannot be read does not limit. */
#include "core/model/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t read_text(const char *path, char *buf, size_t cap) {
    FILE *f = fopen(path, "re");
    size_t n = 0;
    if (f != NULL) {
        n = fread(buf, 1, cap - 1, f);
        fclose(f);
    }
    buf[n] = '\0';
    return n;
}

uint64_t cw_memory_parse_limit(const char *text) {
    char *end;
    unsigned long long v;
    if (*text < '0' || *text > '9') {
        return UINT64_MAX;
    }
    v = strtoull(text, &end, 10);
    /* Version 1 writes "no limit" as a number just under 2^63. */
    return (*end == '\n' || *end == '\0') && v < (1ull << 60) ? (uint64_t)v : UINT64_MAX;
}

uint64_t cw_memory_parse_meminfo(const char *text, const char *key) {
    size_t n = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, n) == 0 && line[n] == ':') {
            unsigned long long kb = strtoull(line + n + 1, NULL, 10);
            return kb < UINT64_MAX / 1024 ? (uint64_t)kb * 1024 : UINT64_MAX;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return UINT64_MAX;
}

static void tighten(struct cw_memory *m, const char *dir, const char *limit, const char *usage) {
    char path[512], text[64];
    snprintf(path, sizeof path, "%s/%s", dir, limit);
    uint64_t max =
        read_text(path, text, sizeof text) > 0 ? cw_memory_parse_limit(text) : UINT64_MAX;
    if (max == UINT64_MAX) {
        return;
    }
    snprintf(path, sizeof path, "%s/%s", dir, usage);
    uint64_t used = read_text(path, text, sizeof text) > 0 ? cw_memory_parse_limit(text) : 0;
    uint64_t free_bytes = used < max ? max - used : 0;
    m->total = max < m->total ? max : m->total;
    m->available = free_bytes < m->available ? free_bytes : m->available;
}

struct cw_memory cw_memory_read(void) {
    char meminfo[8192];
    struct cw_memory m = {UINT64_MAX, UINT64_MAX};
    char groups[2048], dir[300];
    if (read_text("/proc/meminfo", meminfo, sizeof meminfo) > 0) {
        m.total = cw_memory_parse_meminfo(meminfo, "MemTotal");
        m.available = cw_memory_parse_meminfo(meminfo, "MemAvailable");
    }
    tighten(&m, "/sys/fs/cgroup", "memory.max", "memory.current");
    tighten(&m, "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes");
    if (read_text("/proc/self/cgroup", groups, sizeof groups) > 0) {
        const char *own = strstr(groups, "0::/");
        size_t n = own != NULL ? strcspn(own + 3, "\n") : 0;
        if (n > 1 && n < 200) {
            snprintf(dir, sizeof dir, "/sys/fs/cgroup%.*s", (int)n, own + 3);
            tighten(&m, dir, "memory.max", "memory.current");
        }
    }
    return m;
}
