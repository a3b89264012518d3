/* SPDX-License-Identifier: MIT
 *
 * What the machine can do at most: reading, and products that never leave the registers. See
 * measure.h.
 */
#ifndef CW_PEAK_H
#define CW_PEAK_H

static uint32_t read_sum(const void *data, size_t bytes) {
    const uint8_t *p = data;
    vi sum[4] = {vi_zero(), vi_zero(), vi_zero(), vi_zero()};
    size_t i = 0, step = sizeof(vi);
    for (; i + 4 * step <= bytes; i += 4 * step) {
        for (size_t k = 0; k < 4; k++) {
            sum[k] = vi_add(sum[k], vi_load(p + i + k * step));
        }
    }
    uint32_t lanes[R], total = 0;
    vi_store(lanes, vi_add(vi_add(sum[0], sum[1]), vi_add(sum[2], sum[3])));
    for (int k = 0; k < R; k++) {
        total += lanes[k];
    }
    for (; i < bytes; i++) {
        total += p[i];
    }
    return total;
}

static uint64_t int8_loop(uint64_t rounds) {
    vi acc[8], w = vi_set1(0x01020304), x = vi_set1(0x05fb0306);
    for (int k = 0; k < 8; k++) {
        acc[k] = vi_zero();
    }
    for (uint64_t i = 0; i < rounds; i++) {
        for (int k = 0; k < 8; k++) {
#if HAS_VNNI
            acc[k] = vi_dot(acc[k], w, x);
#else
            acc[k] = vi_dot2(acc[k], vi_dot_halves(w, x), vi_set1(0x00010001));
#endif
            __asm__ volatile("" : "+x"(acc[k]), "+x"(w)); /* every round is done */
        }
    }
    return rounds * 8 * R * 4;
}

#endif
