/* SPDX-License-Identifier: MIT
 *
 * A 64-bit hash of bytes that runs at the speed of memory: to find damage and to tell files apart,
 * not against someone who wants two inputs to collide. Any change within one 64-byte block changes
 * the result, since every step is a bijection of what it takes in. */
#ifndef CW_HASH_H
#define CW_HASH_H

#include <stdint.h>
#include <string.h>

static inline uint64_t cw_hash_mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0x9e3779b97f4a7c15u; /* 2^64 over the golden ratio, odd */
    x ^= x >> 29;
    x *= 0xd6e8feb86659fd93u; /* odd */
    return x ^ x >> 32;
}

static inline uint64_t cw_hash_step(uint64_t lane, uint64_t word) {
    lane = (lane ^ word) * 0x9e3779b97f4a7c15u;
    return lane << 29 | lane >> 35;
}

/* Eight lanes of every eighth word each, so that their multiplications overlap. */
static inline uint64_t cw_hash(const void *data, size_t n, uint64_t seed) {
    const unsigned char *p = data;
    uint64_t lane[8], word[8], h = cw_hash_mix(seed ^ (uint64_t)n);
    for (int i = 0; i < 8; i++) {
        lane[i] = cw_hash_mix(seed + (uint64_t)i + 1);
    }
    for (size_t left = n; left > 0;) {
        size_t take = left < sizeof word ? left : sizeof word;
        if (take < sizeof word) {
            memset(word, 0, sizeof word);
        }
        memcpy(word, p, take);
        for (int i = 0; i < 8; i++) {
            lane[i] = cw_hash_step(lane[i], word[i]);
        }
        p += take;
        left -= take;
    }
    for (int i = 0; i < 8; i++) {
        h = cw_hash_mix(h ^ lane[i]);
    }
    return h;
}

#endif
