/* SPDX-License-Identifier: MIT
 *
 * A session: a timeline of token ids, the KV cache that belongs to it and the scratch to extend it.
 * The ids of the timeline are exactly those that went through the model: a sampled token counts
 * only once it has been evaluated.
 *
 * Timelines that were left by cw_session_sync, or not adopted, are retained: their cells stay, in
 * pages shared as far as the ids are the same, until memory for them (cache_ram) runs out; the one
 * not looked at for longest goes first. Coming back to any of them costs its new ids alone.
 *
 * "One arithmetic": whatever the order of extending, rewinding, branching, loading and reusing, the
 * chunk size and the thread count, the logits after the same ids are the same to the last bit
 * (float files without `exact` excepted, see model.h).
 *
 * Owned and used by one thread (the generator's). Creating reserves address space for the cache;
 * extending a timeline allocates nothing.
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
    /* Bytes that retained timelines may take besides the current one's; 0: a quarter of what the
     * weights and the context leave of the memory, at most 2 GiB. CW_NO_CACHE_RAM: none. */
    uint64_t cache_ram;
};
#define CW_NO_CACHE_RAM UINT64_MAX

int cw_session_create(struct cw_session **out, struct cw_model *model,
                      const struct cw_session_options *opt, struct cw_err *err);
void cw_session_destroy(struct cw_session *s);

uint32_t cw_session_n_ctx(const struct cw_session *s);
const char *cw_session_n_ctx_reason(const struct cw_session *s); /* "trained size", "memory", ... */
size_t cw_session_n(const struct cw_session *s);                 /* ids evaluated so far */
const int32_t *cw_session_ids(const struct cw_session *s);       /* [cw_session_n] */
/* Cache of n_ctx cells and scratch, reserved; retained timelines come on top. */
uint64_t cw_session_bytes(const struct cw_session *s);

struct cw_cache_stats {
    size_t retained;         /* timelines besides the current one */
    uint64_t retained_bytes; /* that they alone hold; at most cache_ram */
    uint64_t cache_ram;
    uint64_t current_bytes; /* pages of the current one, shared ones included */
    uint64_t evicted;       /* timelines given up for want of room, so far */
};
void cw_session_cache_stats(const struct cw_session *s, struct cw_cache_stats *out);

/* Called between prefill chunks (and never more often); returning true stops the evaluation. */
typedef bool cw_session_progress(void *arg, size_t done, size_t total);

struct cw_session_hooks {
    cw_session_progress *progress; /* may be NULL */
    /* If not NULL: receives the logits of every position, in order; valid during the call (and see
     * CW_SESSION_ROWS). */
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

/* With a row hook and n of up to CW_SESSION_ROWS, one pass computes the logits of those n rows and
 * they all stay: after a rewind into them, cw_session_logits is the row there. So guesses are
 * checked by extending with all of them and rewinding to the last right one. */
enum { CW_SESSION_ROWS = 16 };

/* Keep the first n ids; n above the present count is a no-op. What is cut off is forgotten: to come
 * back to it, let cw_session_sync do the move. */
void cw_session_rewind(struct cw_session *s, size_t n);

struct cw_sync_stats {
    size_t reused;    /* ids whose cells were kept */
    size_t evaluated; /* rows that went through forward */
};

/* Make the timeline equal ids[0..n): take the longest common prefix that the current or a retained
 * timeline has, retain what is left behind, evaluate the rest; if nothing would be left to evaluate
 * the last id is evaluated again, so that logits exist. */
int cw_session_sync(struct cw_session *s, const int32_t *ids, size_t n,
                    const struct cw_session_hooks *hooks, struct cw_sync_stats *stats,
                    struct cw_err *err);

/* How many of ids[0..n) the current or a retained timeline begins with: what a sync would reuse. */
size_t cw_session_cached(const struct cw_session *s, const int32_t *ids, size_t n);

/* Forget all retained timelines and empty the current one; their memory goes back at once. */
void cw_session_forget(struct cw_session *s);
/* While nobody waits: have memory of the cache ready, so that a branch need not wait for it. */
void cw_session_warm(struct cw_session *s);

/* Logits after the last id, [n_vocab] f32, valid until the next call; NULL when the timeline is
 * empty or was rewound since. The session owns them; the caller may modify them in place. */
float *cw_session_logits(struct cw_session *s);

/* ---- several replies from one prefix ----------------------------------------------------------
 *
 * Branches 0 .. n-1 begin as the timeline is and grow together, one forward pass a step. While they
 * exist the timeline itself stands still at where they part; extend, rewind, sync and load end them
 * as adopting none does. */

enum { CW_MAX_BRANCHES = 8 };

/* Begin n branches, 1 .. CW_MAX_BRANCHES; each has the timeline's logits, if there are any, as a
 * row of its own. */
int cw_session_branch(struct cw_session *s, int n, struct cw_err *err);

/* Append ids[i] to each branch i with live[i] and evaluate them all at once. All or nothing:
 * CW_EFULL when a live branch has no room (see cw_session_branch_room), else as cw_session_extend.
 * hooks: `stop` alone is looked at. None live: nothing happens. */
int cw_session_step(struct cw_session *s, const int32_t *ids, const bool *live,
                    const struct cw_session_hooks *hooks, struct cw_err *err);

int cw_session_n_branches(const struct cw_session *s); /* 0: none begun */
/* Ids that branch i can still take: what the context, and the room for pages, leave. */
size_t cw_session_branch_room(const struct cw_session *s, int i);
/* [n_vocab] after branch i's last id, as cw_session_logits; NULL unless it was live in the last
 * step. Valid until the next step. */
float *cw_session_branch_logits(struct cw_session *s, int i);
/* All its ids, the shared prefix included; *n may be NULL. Valid until the branches end. */
const int32_t *cw_session_branch_ids(const struct cw_session *s, int i, size_t *n);

/* Branch i is the timeline from now on (with its logits, if it has some), the others become
 * retained ones. i < 0: the timeline stays what it was, all become retained ones. */
void cw_session_adopt(struct cw_session *s, int i);

#endif
