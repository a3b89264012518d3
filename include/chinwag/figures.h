/* SPDX-License-Identifier: MIT
 *
 * The figures of one reply: one struct for status bar, --json, store and bench. Plain data.
 *
 * TTFT runs from the start of the request (Enter) to the first generated token in the ring,
 * tokenising, waiting and prefill included. tokens/s of a finished reply: (tokens - 1) / (time of
 * the last - time of the first); of a running one: over the last second. Thinking tokens count,
 * reused ones never. Prompt speed: evaluated / evaluation time. Monotonic clock.
 */
#ifndef CHINWAG_FIGURES_H
#define CHINWAG_FIGURES_H

#include <stddef.h>
#include <stdint.h>

struct cw_figures {
    size_t n_prompt;    /* ids of the whole prompt */
    size_t n_reused;    /* of these, taken from the cache */
    size_t n_evaluated; /* rows that went through forward for the prompt */
    size_t n_tokens;    /* generated so far, the end token included */
    size_t n_ctx_used, n_ctx;
    size_t n_prepared;      /* of the reused ids, evaluated while the message was being typed */
    size_t n_restored;      /* of the reused ids, read from a snapshot */
    size_t n_guessed;       /* tokens guessed by lookup and evaluated, */
    size_t n_accepted;      /* and of these, drawn as guessed */
    double prompt_s;        /* evaluation time of the prompt */
    double ttft_s;          /* 0 until the first token */
    double first_s, last_s; /* monotonic times of the first and the last token */
    double eval_s;          /* time spent generating after the first token */
    double tps;             /* as defined above */
    double paused_s;        /* spent paused, which eval_s and tps do not count */
};

#endif
