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
    int64_t max_tokens;
    const char *const *stops;
    size_t n_stops;
    uint32_t seed;
    bool detail, ignore_eog;
    int32_t n_usable; /* ids that may be drawn */
    bool begins_text; /* the reply begins a text: the blank that SPM writes in front of every text
                       * is not part of it */
    double started_s; /* cw_now() at the start of the request, for TTFT; 0: now */

    /* The settings for the draw at `position`: called once before each draw. */
    void (*settings)(void *arg, uint64_t position, struct cw_sampling *out);
    /* A token was drawn. text[0..n) is what it released for display: whole characters, nothing that
     * may still become a stop string. Called once a token, and once more with draw NULL at the end
     * if held-back text is released then. Non-zero stops the loop with that code (CW_ECANCEL as a
     * cancel). */
    int (*token)(void *arg, uint64_t position, const struct cw_draw *draw, const char *text,
                 size_t n, const struct cw_figures *figures);
    bool (*cancelled)(void *arg); /* polled once a token and a prefill chunk */
    void *arg;
};

/* Run until a stop. *stop tells why, *figures (in: prompt figures filled by the caller) is
 * completed. The last drawn token is not evaluated. Returns CW_OK for every stop but an error. */
int cw_generate_run(const struct cw_generate *g, enum cw_stop *stop, struct cw_figures *figures,
                    struct cw_err *err);

#endif
