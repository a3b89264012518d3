/* SPDX-License-Identifier: MIT
 *
 * A session: one timeline of token ids, the KV cache that belongs to it and the scratch to extend
 * it. The ids of the timeline are exactly those that went through the model: a sampled token
 * counts only once it has been evaluated.
 *
 * "One arithmetic": whatever the order of extending, rewinding and reusing, the chunk size and the
 * thread count, the logits after the same ids are the same to the last bit (float files without
 * `exact` excepted, see model.h).
 *
 * Owned and used by one thread (the generator's). Creating reserves the cache; evaluating
 * allocates nothing.
 */
#ifndef CHINWAG_SESSION_H
#define CHINWAG_SESSION_H

#include "chinwag/model.h"

struct cw_session;

enum cw_kv_type { CW_KV_F16, CW_KV_Q8_0 };

struct cw_session_options {
    uint32_t n_ctx;     /* cells; 0: the smallest of 8,192, the trained size, what memory allows */
    int chunk;          /* tokens evaluated at once in prefill; 0: 512 */
    enum cw_kv_type kv; /* Q8_0 only where the head width is a multiple of 32 */
};

int cw_session_create(struct cw_session **out, struct cw_model *model,
                      const struct cw_session_options *opt, struct cw_err *err);
void cw_session_destroy(struct cw_session *s);

uint32_t cw_session_n_ctx(const struct cw_session *s);
const char *cw_session_n_ctx_reason(const struct cw_session *s); /* "trained size", "memory", ... */
size_t cw_session_n(const struct cw_session *s);                 /* ids evaluated so far */
const int32_t *cw_session_ids(const struct cw_session *s);       /* [cw_session_n] */
uint64_t cw_session_bytes(const struct cw_session *s);           /* cache and scratch, reserved */

/* Called between prefill chunks (and never more often); returning true stops the evaluation. */
typedef bool cw_session_progress(void *arg, size_t done, size_t total);

struct cw_session_hooks {
    cw_session_progress *progress; /* may be NULL */
    /* If not NULL: receives the logits of every position, in order; valid during the call. */
    void (*row)(void *arg, size_t position, const float *logits);
    void *arg;
    /* May be NULL. Polled between the layers of a chunk, so that a slow machine too stops within a
     * fraction of a second; returning true gives the chunk under way up. */
    bool (*stop)(void *arg);
};

/* Evaluate n further ids. CW_EFULL (nothing evaluated) when they do not fit, CW_ECANCEL when
 * stopped (the timeline then holds what was evaluated), CW_EIO when the model's file lost pages,
 * CW_EINVAL for an id out of range. */
int cw_session_extend(struct cw_session *s, const int32_t *ids, size_t n,
                      const struct cw_session_hooks *hooks, struct cw_err *err);

/* Keep the first n ids; n above the present count is a no-op. */
void cw_session_rewind(struct cw_session *s, size_t n);

struct cw_sync_stats {
    size_t reused;    /* ids whose cells were kept */
    size_t evaluated; /* rows that went through forward */
};

/* Make the timeline equal ids[0..n): keep the longest common prefix, rewind, evaluate the rest; if
 * nothing would be left to evaluate the last id is evaluated again, so that logits exist. */
int cw_session_sync(struct cw_session *s, const int32_t *ids, size_t n,
                    const struct cw_session_hooks *hooks, struct cw_sync_stats *stats,
                    struct cw_err *err);

/* Logits after the last id, [n_vocab] f32, valid until the next call; NULL when the timeline is
 * empty or was rewound since. The session owns them; the caller may modify them in place. */
float *cw_session_logits(struct cw_session *s);

#endif
