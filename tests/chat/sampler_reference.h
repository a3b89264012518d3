/* SPDX-License-Identifier: MIT
 *
 * The sampler as the textbook has it: sort the whole vocabulary, then go through the list. Slow and
 * plain, to hold the real one against. */
#ifndef TESTS_SAMPLER_REFERENCE_H
#define TESTS_SAMPLER_REFERENCE_H

#include "chinwag/sampler.h"

/* Same arguments and result as cw_sampler_draw without detail; -1 where that fails. */
int32_t reference_draw(const struct cw_sampling *set, const float *logits, int32_t n_vocab,
                       int32_t n_usable, const int32_t *history, size_t n_history,
                       const int32_t *breakers, size_t n_breakers, uint32_t seed, uint64_t position,
                       float *p);

#endif
