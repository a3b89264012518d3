/* SPDX-License-Identifier: MIT
 *
 * Which kernels this CPU can run, and how many threads to use.
 *
 * CPUID says what the CPU has, XGETBV what the operating system saves on a context switch; both are
 * needed. The thread count is what a person would set by hand: the physical cores the process may
 * run on (hyper-threads share the units that the kernels fill), no more than the container's quota.
 */
#include "core/compute/cpu.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

static const char *const isa_names[CW_N_ISAS] = {"scalar", "avx2", "avxvnni", "avx512"};

const char *cw_isa_name(enum cw_isa isa) {
    return isa >= 0 && isa < CW_N_ISAS ? isa_names[isa] : "auto";
}

bool cw_isa_parse(const char *name, enum cw_isa *out) {
    if (strcmp(name, "auto") == 0) {
        *out = CW_ISA_AUTO;
        return true;
    }
    for (int i = 0; i < CW_N_ISAS; i++) {
        if (strcmp(name, isa_names[i]) == 0) {
            *out = (enum cw_isa)i;
            return true;
        }
    }
    return false;
}

#if defined(__x86_64__)

static uint64_t xgetbv0(void) {
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

/* The sets of ISA levels, one bit each. */
static unsigned detect(void) {
    unsigned a, b, c, d;
    unsigned have = 1U << CW_ISA_SCALAR;
    if (!__get_cpuid_count(1, 0, &a, &b, &c, &d)) {
        return have;
    }
    bool osxsave = c & bit_OSXSAVE;
    bool fma = c & bit_FMA, f16c = c & bit_F16C, avx = c & bit_AVX;
    unsigned b7 = 0, c7 = 0, d7 = 0, a71 = 0;
    if (!osxsave || !avx || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) {
        return have;
    }
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) {
        a71 = a;
    }
    uint64_t saved = xgetbv0();
    bool ymm = (saved & 0x6) == 0x6;   /* XMM, YMM */
    bool zmm = (saved & 0xe6) == 0xe6; /* and opmask, both halves of ZMM */
    if (ymm && fma && f16c && (b7 & (1U << 5))) {
        have |= 1U << CW_ISA_AVX2;
        if (a71 & (1U << 4)) {
            have |= 1U << CW_ISA_AVXVNNI;
        }
        unsigned need = 1U << 16 | 1U << 17 | 1U << 30 | 1U << 31; /* F, DQ, BW, VL */
        if (zmm && (b7 & need) == need && (c7 & (1U << 11))) {     /* VNNI */
            have |= 1U << CW_ISA_AVX512;
        }
    }
    return have;
}

#else

static unsigned detect(void) {
    return 1U << CW_ISA_SCALAR;
}

#endif

bool cw_isa_available(enum cw_isa isa) {
    return isa == CW_ISA_AUTO || (isa >= 0 && isa < CW_N_ISAS && (detect() >> isa & 1));
}

enum cw_isa cw_cpu_best_isa(void) {
    unsigned have = detect();
    int best = CW_ISA_SCALAR;
    for (int i = 0; i < CW_N_ISAS; i++) {
        if (have >> i & 1) {
            best = i;
        }
    }
    return (enum cw_isa)best;
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool read_line(const char *path, char *buf, size_t cap) {
    FILE *f = fopen(path, "re");
    if (!f) {
        return false;
    }
    bool ok = fgets(buf, (int)cap, f) != NULL;
    fclose(f);
    return ok;
}

int cw_cpu_parse_quota(const char *text) {
    char *end;
    if (strncmp(text, "max", 3) == 0) {
        return 0;
    }
    long quota = strtol(text, &end, 10);
    if (end == text || quota <= 0) {
        return 0; /* v1 writes -1 for no limit */
    }
    char *end2;
    long period = strtol(end, &end2, 10);
    if (end2 == end || period <= 0) {
        return 0;
    }
    long n = quota / period;
    return n < 1 ? 1 : n > 4096 ? 4096 : (int)n;
}

static int min_limit(int a, int b) {
    return a == 0 ? b : b == 0 ? a : a < b ? a : b;
}

/* The quota of a cgroup directory and of all above it; 0: none. */
static int quota_up(const char *root, char *group, bool v2) {
    int limit = 0;
    for (;;) {
        char path[768], text[64], period[32];
        if (v2) {
            snprintf(path, sizeof path, "%s%s/cpu.max", root, group);
            if (read_line(path, text, sizeof text)) {
                limit = min_limit(limit, cw_cpu_parse_quota(text));
            }
        } else {
            snprintf(path, sizeof path, "%s%s/cpu.cfs_quota_us", root, group);
            if (read_line(path, text, 32)) {
                snprintf(path, sizeof path, "%s%s/cpu.cfs_period_us", root, group);
                if (read_line(path, period, sizeof period)) {
                    text[strcspn(text, "\n")] = 0;
                    size_t n = strlen(text);
                    snprintf(text + n, sizeof text - n, " %s", period);
                    limit = min_limit(limit, cw_cpu_parse_quota(text));
                }
            }
        }
        char *slash = strrchr(group, '/');
        if (!slash) {
            return limit;
        }
        *slash = 0;
    }
}

static int cgroup_quota(void) {
    int limit = 0;
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (f) {
        char line[512];
        while (fgets(line, sizeof line, f)) { /* "0::/a/b" or "4:cpu,cpuacct:/a/b" */
            line[strcspn(line, "\n")] = 0;
            char *names = strchr(line, ':');
            char *group = names ? strchr(names + 1, ':') : NULL;
            if (!group) {
                continue;
            }
            *group++ = 0;
            names++;
            if (group[0] == '/' && group[1] == 0) {
                group[0] = 0;
            }
            if (*names == 0) {
                limit = min_limit(limit, quota_up("/sys/fs/cgroup", group, true));
            } else if (strstr(names, "cpu") && !strstr(names, "cpuset")) {
                limit = min_limit(limit, quota_up("/sys/fs/cgroup/cpu", group, false));
            }
        }
        fclose(f);
    }
    return limit;
}

/* The physical cores among the CPUs of the affinity mask: one CPU of each sibling list counts. */
static int physical_cores(void) {
    size_t n_cpus = 4096, bytes = CPU_ALLOC_SIZE(n_cpus);
    cpu_set_t *set = CPU_ALLOC(n_cpus);
    if (!set) {
        return 1;
    }
    int n = 0;
    if (sched_getaffinity(0, bytes, set) == 0) {
        for (size_t i = 0; i < n_cpus; i++) {
            if (!CPU_ISSET_S(i, bytes, set)) {
                continue;
            }
            char path[96], text[256];
            snprintf(path, sizeof path,
                     "/sys/devices/system/cpu/cpu%zu/topology/thread_siblings_list", i);
            /* Counted unless a sibling of lower number is ours too. "0,4" or "0-1". */
            bool first = true;
            if (read_line(path, text, sizeof text)) {
                for (char *p = text; *p >= '0' && *p <= '9';) {
                    size_t lo = strtoul(p, &p, 10), hi = lo;
                    if (*p == '-') {
                        hi = strtoul(p + 1, &p, 10);
                    }
                    for (size_t s = lo; s <= hi && s < i; s++) {
                        first = first && !(s < n_cpus && CPU_ISSET_S(s, bytes, set));
                    }
                    p += *p == ',';
                }
            }
            n += first;
        }
    } else {
        n = (int)sysconf(_SC_NPROCESSORS_ONLN);
    }
    CPU_FREE(set);
    return n < 1 ? 1 : n;
}

int cw_cpu_n_threads(void) {
    int n = physical_cores(), quota = cgroup_quota();
    return quota > 0 && quota < n ? quota : n;
}
