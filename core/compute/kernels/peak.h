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

INLINE vi one_product(vi acc, vi *w, vi x) {
    __asm__ volatile("" : "+x"(*w)); /* no product is the same as another */
#if HAS_VNNI
    return vi_dot(acc, *w, x);
#else
    return vi_dot2(acc, vi_dot_halves(*w, x), vi_set1(0x00010001));
#endif
}

/* Eight independent chains, as many sums as a kernel keeps. (Where the instruction takes five
 * cycles and two begin in each, ten would go a quarter faster.) Single variables, because the
 * compiler would hold an array in memory. */
static uint64_t int8_loop(uint64_t rounds) {
    vi w = vi_set1(0x01020304), x = vi_set1(0x05fb0306);
    vi a = vi_zero(), b = a, c = a, d = a, e = a, f = a, g = a, h = a;
    for (uint64_t k = 0; k < rounds; k++) {
        a = one_product(a, &w, x);
        b = one_product(b, &w, x);
        c = one_product(c, &w, x);
        d = one_product(d, &w, x);
        e = one_product(e, &w, x);
        f = one_product(f, &w, x);
        g = one_product(g, &w, x);
        h = one_product(h, &w, x);
    }
    vi all = vi_add(vi_add(vi_add(a, b), vi_add(c, d)), vi_add(vi_add(e, f), vi_add(g, h)));
    __asm__ volatile("" : "+x"(all)); /* all are needed */
    return rounds * 8 * R * 4;
}

#endif
