/* SPDX-License-Identifier: MIT
 *
 * Random numbers by counter: no state to save, so a number belongs to a place in a reply and is
 * the same whatever was drawn, skipped or redone before.
 */
#include "chinwag/sampler.h"

/* The output function of SplitMix64 (Steele, Lea and Flood 2014, after Stafford's mixer 13), a
 * bijection in which each input bit changes each output bit half of the time. */
static uint64_t mix(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The number at `position` of a SplitMix64 stream that starts where seed and stage say. Starts are
 * mixed, so that streams of neighbouring seeds have nothing to do with each other. */
uint64_t cw_random(uint32_t seed, uint64_t position, enum cw_stage stage) {
    const uint64_t golden = 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio, odd */
    uint64_t start = mix((((uint64_t)stage << 32) | seed) + golden);
    return mix(start + (position + 1) * golden);
}
