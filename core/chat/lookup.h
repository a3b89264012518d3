/* SPDX-License-Identifier: MIT
 *
 * Guessing the next tokens from the text itself: what followed the last time the latest few tokens
 * stood there. Replies that quote, correct or carry on their prompt repeat it for long stretches.
 *
 * How far a guess is trusted is learned from what comes: every guess is compared with the tokens
 * that were then drawn, whether it was evaluated or not, and the cost of evaluating several tokens
 * at once is measured. Guesses never change a reply, they only save time, so a decision may rest on
 * the clock. One thread.
 *
 * Source: Saxena 2023, "Prompt Lookup Decoding"; the check of guesses in one batch is speculative
 * decoding (Leviathan et al. 2023), here without a second model.
 */
#ifndef CW_LOOKUP_H
#define CW_LOOKUP_H

#include "chinwag/mem.h"

enum { CW_LOOKUP_MAX = 15 }; /* guesses at once */

struct cw_lookup;

/* For a timeline of at most n_max ids. `all`: every guess is taken to be worth it. */
struct cw_lookup *cw_lookup_create(size_t n_max, bool all);
void cw_lookup_destroy(struct cw_lookup *l);

/* Append to the timeline. */
void cw_lookup_add(struct cw_lookup *l, const int32_t *ids, size_t n);

/* Guess what comes next: at most `room` ids into guess[CW_LOOKUP_MAX]. Returns how many of them are
 * worth evaluating together with the last id. */
size_t cw_lookup_guess(struct cw_lookup *l, size_t room, int32_t *guess);

/* Evaluating n ids at once took so long. */
void cw_lookup_cost(struct cw_lookup *l, size_t n, double seconds);

#endif
