/* SPDX-License-Identifier: MIT
 *
 * Tiny models that give exactly the reply a test wants, byte for byte: a Markov chain in llama's
 * clothes. One-hot embeddings, attention and feed-forward that add nothing, and an output matrix
 * with one large entry a token, so that each token id has one successor: bytes that came before are
 * spelt by other tokens. After a rendered ChatML prompt, which ends in a line end, the first step
 * follows; without a loop the reply ends in <|im_end|>.
 *
 * Good for streaming, stops, odd bytes and storage; nothing of attention or the cache shows in it.
 * Whatever cannot be built aborts the test program.
 */
#ifndef TESTS_MARKOV_H
#define TESTS_MARKOV_H

#include "chinwag/mem.h"
#include "tests/support/mkgguf.h"

struct markov {
    /* To be set before markov_save; markov_init gives the defaults. */
    const char *name;               /* "markov" */
    const char *chat_template;      /* ChatML; NULL: none, a base model */
    uint32_t n_ctx;                 /* trained size, 4096 */
    float logit;                    /* of the successor, others have 0; 20 */
    float temp;                     /* general.sampling.temp, < 0: not in the file; -1 */
    void (*keys)(struct mkgguf *g); /* adds further keys to the file; NULL */

    struct cw_buf vocab; /* token texts as the file has them, NUL after each */
    size_t n_vocab;
    struct cw_ids kinds;  /* token types */
    struct cw_ids ids;    /* the reply */
    struct cw_ids starts; /* index in ids of each step's first token */
    int64_t loop;         /* step to go back to, -1: none */
    bool byte_used[256];
};

extern const char markov_chatml[];

/* Ids: 0..255 the bytes, then these, then the steps. */
enum {
    MARKOV_BOS = 256, /* <s> */
    MARKOV_EOS,       /* </s> */
    MARKOV_START,     /* <|im_start|> */
    MARKOV_END,       /* <|im_end|>, the file's eos */
    MARKOV_THINK,     /* <think> */
    MARKOV_END_THINK, /* </think> */
    MARKOV_N_FIXED
};

void markov_init(struct markov *m);
void markov_free(struct markov *m);

/* Append a step to the reply: one token if no token has these bytes yet, else as many as it takes.
 */
void markov_text(struct markov *m, const char *text);
void markov_bytes(struct markov *m, const void *bytes, size_t n);
/* A control token of those above; each may stand once in a reply. */
void markov_control(struct markov *m, int32_t id);
/* After the last step go on with step `step`, for ever. */
void markov_loop(struct markov *m, size_t step);

void markov_save(const struct markov *m, const char *path);

/* All in one: a reply of these texts, one step each. */
void markov_write(const char *path, const char *const *texts, size_t n);

#endif
