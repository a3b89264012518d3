/* SPDX-License-Identifier: MIT
 *
 * A session from inside, shared by session.c, branches.c and the snapshots. */
#ifndef CW_SESSION_IMPL_H
#define CW_SESSION_IMPL_H

#include "chinwag/snapshot.h"
#include "core/chat/timeline.h"
#include "core/model/forward.h"

/* Retained timelines at most; more would only make every search longer. */
enum { CW_MAX_RETAINED = 256 };

struct cw_session {
    struct cw_model *model; /* borrowed */
    struct cw_scratch *scratch;
    struct cw_kvcache kv;
    enum cw_kv_type kv_type;
    uint32_t n_ctx;
    int chunk;
    char reason[64];         /* of n_ctx */
    struct cw_timeline now;  /* room for n_ctx ids */
    struct cw_timeline *old; /* [n_old] retained ones, the one used longest ago first */
    size_t n_old;
    uint64_t cache_ram; /* bytes that pages of retained ones alone may take */
    uint64_t evicted;
    int n_at;            /* chunk, but no fewer than CW_SESSION_ROWS */
    struct cw_place *at; /* [n_at] of the tokens of a pass */
    /* Logits of the newest ids: row i stands after id number row_first + i of the timeline, or of
     * the branch that says so. */
    float *rows; /* [CW_SESSION_ROWS, n_vocab] */
    size_t rows_bytes;
    size_t row_first, n_rows;
    struct cw_timeline branch[CW_MAX_BRANCHES]; /* [n_branches] */
    int n_branches;
    int branch_row[CW_MAX_BRANCHES]; /* a row of rows, or -1 */
    bool has_key;
    uint8_t key[CW_MODEL_KEY]; /* of the model, once asked for */
};

/* Keep what `t` holds, as the one used last. `t` itself may go on or be let go of afterwards. */
void cw_session_retain(struct cw_session *s, const struct cw_timeline *t);
/* Make the timeline the longest prefix of ids[0..n) that there are cells of; returns its length.
 * What is left behind is retained. */
size_t cw_session_move(struct cw_session *s, const int32_t *ids, size_t n);
/* After a move: give the timeline its own page to go on in, then bring the retained ones down to
 * cache_ram. */
void cw_session_settle(struct cw_session *s);
/* Cells for n ids more of t, giving up retained timelines for them if need be. */
bool cw_session_reserve(struct cw_session *s, struct cw_timeline *t, size_t n);
/* Of the file that cw_session_save would write; 0: none. */
uint64_t cw_session_snapshot_bytes(const struct cw_session *s);
/* What a pass or its logits left behind: CW_OK or the error it is. */
int cw_session_check(const struct cw_session *s, int rc, struct cw_err *err);

#endif
