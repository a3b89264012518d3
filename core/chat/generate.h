/* SPDX-License-Identifier: MIT
 *
 * The generation loop itself, synchronous: sample, look at the stops, hand the token on, evaluate.
 * The generator's thread, `chinwag generate` and the bench all run this one loop; naive and cached
 * differ in one line.
 */
#ifndef CW_GENERATE_H
#define CW_GENERATE_H

#include "chinwag/generator.h"
#include "chinwag/ring.h"
#include "chinwag/sampler.h"
#include "chinwag/session.h"
#include "chinwag/tokenizer.h"

struct cw_generate {
    struct cw_session *session; /* its timeline is the prompt, evaluated (naive: re-evaluated) */
    struct cw_sampler *sampler;
    const struct cw_tokenizer *tokenizer; /* may be NULL: no text, no end tokens */
    bool naive; /* rewind to 0 and evaluate everything anew at every step (the textbook's loop) */
    /* Guess tokens from the text and check them in one batch: not where the batch width matters to
     * the logits (float files without exact), nor with `naive`. */
    bool lookup, lookup_all; /* lookup_all: whether a guess promises to pay or not */
    int64_t max_tokens;
    uint64_t first_position; /* in its reply, of the first token to be drawn */
    /* The ids of the reply that stand in the timeline already: text that a cut has left unfinished
     * among them goes on. */
    const int32_t *so_far;
    size_t n_so_far;
    const char *const *stops;
    size_t n_stops;
    uint32_t seed;
    bool detail, ignore_eog;
    int32_t n_usable; /* ids that may be drawn */
    bool begins_text; /* the reply begins a text: the blank that SPM writes in front of every text
                       * is not part of it */
    double started_s; /* cw_now() at the start of the request, for TTFT; 0: now */

    /* May be NULL. Called before each draw, and may keep it waiting; returns for how many seconds
     * it did, which are no part of the reply's time. */
    double (*wait)(void *arg);
    /* May be NULL. The id that has to stand at `position` instead of one drawn, or -1. */
    int32_t (*forced)(void *arg, uint64_t position);
    /* The settings for the draw at `position`: called once before each draw. */
    void (*settings)(void *arg, uint64_t position, struct cw_sampling *out);
    /* A token was drawn. text[0..n) is what it released for display: whole characters, nothing that
     * may still become a stop string. Called once a token, and once more with draw NULL at the end
     * if held-back text is released then. Non-zero stops the loop with that code (CW_ECANCEL as a
     * cancel). */
    int (*token)(void *arg, uint64_t position, const struct cw_draw *draw, const char *text,
                 size_t n, const struct cw_figures *figures);
    bool (*cancelled)(void *arg); /* polled once a token and a prefill chunk */
    /* May be NULL. The reply is over (of several, while the others go on). */
    void (*ended)(void *arg, enum cw_stop stop, const struct cw_figures *figures);
    void *arg;
};

/* Run until a stop. *stop tells why, *figures (in: prompt figures filled by the caller) is
 * completed. The last drawn token is not evaluated. Returns CW_OK for every stop but an error. */
int cw_generate_run(const struct cw_generate *g, enum cw_stop *stop, struct cw_figures *figures,
                    struct cw_err *err);

/* n replies, g[0 .. n), from one timeline, grown together: a forward pass a step for all that are
 * not over. `session`, `max_tokens` and `n_usable` are g[0]'s; `naive` and `lookup` mean nothing.
 * stop[r] and figures[r] are as above. Afterwards the timeline is that of reply 0, the others are
 * retained. An error ends all. */
int cw_generate_batch(const struct cw_generate *g, int n, enum cw_stop *stop,
                      struct cw_figures *figures, struct cw_err *err);

#endif
