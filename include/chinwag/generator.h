/* SPDX-License-Identifier: MIT
 *
 * The generation core in a thread of its own.
 *
 *   app (main thread)                       generator thread
 *     cw_generator_create  ------------->   opens the file, loads model, tokenizer, template
 *     cw_generator_start   -- request --->  renders, tokenises, syncs the session, decodes
 *     cw_generator_publish -- live ------>  loaded once a token
 *     cw_generator_cancel  -- flag ------>  polled per token and per prefill chunk
 *     ring (events)       <-------------
 *
 * The thread owns session, sampler, tokenizer and template. A request is copied when it is handed
 * over; while one runs a second is refused with CW_EBUSY. All functions are for the thread that
 * created the generator, except cw_generator_cancel, which is for any thread and for signal
 * handlers.
 *
 * A reply goes back into the next prompt as the ids that were generated, wherever the template
 * writes its text unchanged; only where it does not is that stretch tokenised anew. Ids whose text
 * is more than the content (a thought before it, an end token or stop string behind) may be given
 * as they came. A template that refuses a system message gets its text in front of the first user
 * message instead, with a CW_EV_NOTICE.
 *
 * The text of token events is the reply as a person should read it: without control tokens, and
 * without the markers of thinking sections, whose text comes with u.token.thinking set.
 */
#ifndef CHINWAG_GENERATOR_H
#define CHINWAG_GENERATOR_H

#include "chinwag/ring.h"
#include "chinwag/session.h"
#include "chinwag/template.h"

struct cw_generator;

struct cw_generator_options {
    const char *model_path;
    struct cw_model_options model;
    struct cw_session_options session;
    bool naive;                /* evaluate everything anew at every step */
    const char *chat_template; /* source to use instead of the file's; NULL: the file's */
    const char *pre;           /* pre-tokenizer override, NULL: the file's */
    size_t ring_slots;         /* 0: 1,024 */
    /* Folder of snapshots (see snapshot.h), NULL: none. It is the generator's until destroyed. */
    const char *snapshot_dir;
    uint64_t snapshot_bytes; /* that all of them may take; 0: no limit */
};

/* Start the thread; loading begins at once and is told through the ring (CW_EV_LOADING, then
 * CW_EV_READY or CW_EV_FAILED). `sampling` are the first live settings. */
int cw_generator_create(struct cw_generator **out, const struct cw_generator_options *opt,
                        const struct cw_sampling *sampling, struct cw_err *err);
/* Cancels what runs, joins the thread (while loading: after the step under way), frees everything.
 * NULL is fine. */
void cw_generator_destroy(struct cw_generator *g);

struct cw_ring *cw_generator_ring(struct cw_generator *g);

/* From CW_EV_READY on; NULL before. The tokenizer may be used for its any-thread functions. */
const struct cw_model_info *cw_generator_info(const struct cw_generator *g);
const struct cw_tokenizer *cw_generator_tokenizer(const struct cw_generator *g);
/* The model's key (cw_model_key) in hexadecimal: what tells one model file from another. */
const char *cw_generator_model_hash(const struct cw_generator *g);
/* False for a base model: requests then must be raw text. */
bool cw_generator_has_template(const struct cw_generator *g);
/* GGUF `general.sampling.*`: what the file recommends, with built-in values where it says nothing;
 * returns a bit mask of CW_SET_* telling what it does. What of it cannot be followed was told by a
 * notice. From CW_EV_READY on; before *out is untouched. */
enum {
    CW_SET_TEMP = 1,
    CW_SET_TOP_P = 2,
    CW_SET_TOP_K = 4,
    CW_SET_MIN_P = 8,
    CW_SET_REPEAT = 16,
    CW_SET_LAST_N = 32,
    CW_SET_XTC_P = 64,
    CW_SET_XTC_T = 128,
};
unsigned cw_generator_file_sampling(const struct cw_generator *g, struct cw_sampling *out);

/* A settings change before the draw of one token (`generate --at`). */
struct cw_at {
    uint64_t position;
    struct cw_sampling sampling;
};

struct cw_request {
    /* Exactly one of: a conversation, rendered by the template with a generation prompt (or, if
     * continue_reply, so that the last message, a reply, goes on); a raw text; ids. */
    const struct cw_message *messages;
    size_t n_messages;
    bool continue_reply;
    const char *raw; /* control tokens written in it are such: its author wrote a whole prompt */
    size_t raw_len;
    const int32_t *ids;
    size_t n_ids;

    int64_t max_tokens;       /* of the reply; < 0: until the context is full */
    const char *const *stops; /* stop strings: never shown, never stored */
    size_t n_stops;
    uint32_t seed;
    const struct cw_at *at; /* in ascending order */
    size_t n_at;
    bool detail;     /* fill the draws with probabilities and alternatives */
    bool ignore_eog; /* go on past end tokens (measuring) */
    /* Key of the conversation's snapshot, 1 .. 64 digits 0-9a-f. With it the timeline is saved when
     * idle and at the end, and loaded where the cache has little of the prompt; what cannot be used
     * is told by a CW_EV_NOTICE and evaluated. NULL: neither. */
    const char *snapshot_key;
    int think; /* -1: as the template does by default; 0: off, 1: on, 2 to 4: low, medium, high */
    double started_s; /* cw_now() when the person pressed Enter; 0: when it was handed over */
    /* Position in the reply of the first token to be drawn: how many generated tokens the continued
     * reply already has, so that a reply that was cut and goes on draws as one that was not. Its
     * last message has to have their ids then: these, up to the end of its content, go on behind
     * the prompt that the reply had. Positions of events and of `at` count from there. */
    uint64_t first_position;
    /* As if cw_generator_answer_now was called before the draw of this position; 0: not at all. For
     * replays, and to limit how long a reply may think. */
    uint64_t answer_at;
    /* Several replies from one prefix, decoded as one batch (0 and 1: one; at most
     * CW_MAX_REPLIES). Reply r has seed + r; its events carry r in `reply`. Each ends with a
     * CW_EV_REPLY_DONE; CW_EV_DONE still is the last event of the request. */
    uint32_t n_replies;
    /* Guess tokens from what stands in prompt and reply already, and check them in one batch: the
     * same tokens, sooner where text repeats. */
    bool lookup;
    bool
        lookup_all; /* evaluate every guess, whether it promises to pay or not (measuring, tests) */
};
enum { CW_MAX_REPLIES = 8 };

/* Hand over a request; *number (may be NULL) receives its number. CW_EBUSY while one runs. Before
 * CW_EV_READY a request is accepted and waits for the model. Later failures arrive as CW_EV_DONE
 * with CW_STOP_ERROR. */
int cw_generator_start(struct cw_generator *g, const struct cw_request *req, uint32_t *number,
                       struct cw_err *err);

/* Stop the running request, if any: CW_EV_DONE with CW_STOP_CANCEL follows within 0.3 s, also while
 * it waits for the model to load. */
void cw_generator_cancel(struct cw_generator *g);

/* While paused no token is drawn; cw_generator_step lets one through. Pausing ends with the request
 * under way; of one that is not begun yet it holds the first token. Any thread. */
void cw_generator_pause(struct cw_generator *g, bool paused);
void cw_generator_step(struct cw_generator *g);
bool cw_generator_paused(const struct cw_generator *g);

/* End the thinking section that is under way: its end marker is put where the next token would be
 * drawn, and the answer begins. Without effect outside of one. */
void cw_generator_answer_now(struct cw_generator *g);

/* What the person is writing, as the request that Enter would make of it. While no request runs the
 * thread evaluates what will stay the same of it (whole words), so that Enter finds little left to
 * do; a newer draft, a count or a request interrupts it, edits rewind. NULL: nothing to evaluate.
 * Copied. No events but CW_EV_FAILED ones of the model; a draft that cannot be rendered is left. */
void cw_generator_prepare(struct cw_generator *g, const struct cw_request *draft);

/* New sampling settings, for the very next draw. */
void cw_generator_publish(struct cw_generator *g, const struct cw_sampling *s);

/* Whether a request is under way; false as soon as its CW_EV_DONE may be in the ring. */
bool cw_generator_busy(const struct cw_generator *g);

/* Ask how many tokens text[0..len) is; CW_EV_COUNT answers with the same serial when no request
 * runs. A newer question replaces an unanswered one. */
void cw_generator_count(struct cw_generator *g, const char *text, size_t len, uint64_t serial);

#endif
