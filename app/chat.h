/* SPDX-License-Identifier: MIT
 *
 * The conversation: a tree of messages, each with everything it left behind (the ids that were
 * generated, which must never be tokenised again, their draws, where settings changed, the
 * figures). It knows neither terminal nor generator. Main thread.
 *
 * One path through the tree, from a first message to the last one shown, is the present
 * conversation. Nothing that was said is lost by going elsewhere: another reply, another wording, a
 * cut are further children. Where the path went is a timeline that undo and redo walk.
 *
 * Invariant: along every path messages of the person and replies alternate, beginning with the
 * person's; only the last message of the path may be a reply that is still being written.
 */
#ifndef APP_CHAT_H
#define APP_CHAT_H

#include "chinwag/generator.h"

enum chat_role { CHAT_USER, CHAT_REPLY };

/* New settings took hold for one token of a reply. */
struct chat_change {
    uint64_t token; /* index in the reply's ids */
    size_t offset;  /* bytes of the reply's text before it */
    struct cw_sampling from, to;
};

/* One generated token: ids.v[i] belongs to tokens[i]. */
struct chat_token {
    struct cw_draw draw;
    uint32_t text_at, reasoning_at; /* bytes of text and reasoning that stood before it */
    bool thinking;
    bool given;  /* not drawn: chosen by the person */
    bool forced; /* not drawn: the thinking was ended */
};

/* Tokens drawn by one request: a reply that was continued has several. What replays it. */
struct chat_run {
    size_t first;      /* index of its first token */
    uint64_t position; /* that the generator drew it at */
    uint32_t seed;
    struct cw_sampling sampling; /* at its start; changes say how it went on */
};

enum { CHAT_N_ORIGINS = 64 };

struct chat_message {
    uint64_t id; /* stable, never 0 */
    struct chat_message *parent;
    struct chat_message **children;
    size_t n_children;
    struct chat_message *chosen; /* the child the path went through last, NULL: none */

    enum chat_role role;
    struct cw_buf text;
    struct cw_buf reasoning; /* of a thinking model */
    struct cw_ids ids;       /* of a reply: all that were generated */
    struct chat_token *tokens;
    size_t cap_tokens;
    size_t typed; /* bytes at the front of a reply's text that a person wrote: without ids */
    struct chat_change *changes;
    size_t n_changes;
    struct chat_run *runs;
    size_t n_runs;
    struct cw_figures figures; /* of the last run */
    uint32_t seed;             /* of the last run */
    enum cw_stop stop;         /* once it is done */
    bool done;
    bool exact;      /* drawn where replaying gives the same tokens on any machine */
    char *model;     /* that wrote it; NULL */
    char *hash;      /* of its file; NULL */
    int64_t made_ms; /* since 1970 */
    /* what its prompt was made of, besides the messages before it */
    char *system;                /* NULL: none */
    struct chat_message *window; /* the first of them; NULL: all */
    int think;
    unsigned char origin[CHAT_N_ORIGINS]; /* where each setting of the first run came from */
    size_t cost;                          /* tokens it takes in a prompt; 0: not known */
    struct cw_buf summary; /* stands for the messages before it once they have left */

    /* for whoever keeps it */
    bool dirty; /* to be kept anew as a whole, not only what came since */
    struct {
        bool put, done;
        size_t tokens, text, reasoning, changes;
    } saved;

    /* of the transcript */
    uint32_t block, thinking_block; /* 0: none */
    size_t told[2];                 /* tokens it knows of, of the answer and of the thinking */
};

/* Where the conversation stands. */
struct chat_place {
    struct chat_message *leaf;   /* NULL: before the first message */
    struct chat_message *window; /* messages before this one have left the context; NULL: none */
};

struct chat {
    struct chat_message **messages; /* the path */
    size_t n, cap;
    struct chat_message *window; /* as above; without effect while it is not on the path */

    struct chat_message *root; /* above the first messages; no message itself. NULL: empty */
    struct chat_message **all; /* in the order they were made */
    size_t n_all;
    struct chat_place *places; /* the timeline of moves; places[at] is the present one */
    size_t n_places, at;

    uint64_t id;                    /* of the conversation */
    uint64_t parent_id;             /* of the one it is a copy of; 0: none */
    char *title;                    /* given by the person; NULL: the first line */
    uint64_t next_id;               /* state of the ids */
    uint64_t (*give_id)(void *arg); /* who gives the ids instead; NULL */
    void *give_arg;
    bool dirty; /* title, place or window changed since they were saved */
};

/* Ids are drawn from `seed`, which should be random: two programs must not give out the same. */
void chat_init(struct chat *c, uint64_t seed);
void chat_clear(struct chat *c); /* a new conversation */
void chat_free(struct chat *c);

/* ---- the path ---- */

/* A new empty message behind the last of the path, which goes on to it; NULL when it would break
 * the alternation. Pointers to messages are valid until the message is removed. */
struct chat_message *chat_add(struct chat *c, enum chat_role role);
/* A new empty message beside message i of the path, which ends there then. */
struct chat_message *chat_add_sibling(struct chat *c, size_t i);
struct chat_message *chat_last(const struct chat *c); /* NULL when empty */
/* The path becomes the one to `m`; NULL: before the first message. */
void chat_go(struct chat *c, struct chat_message *m);
/* The same and on from there the way it went last. */
void chat_go_deep(struct chat *c, struct chat_message *m);
/* The path keeps its first n messages. */
void chat_cut(struct chat *c, size_t n);
/* Place among the messages that answer the same one, from 0, and how many there are. */
size_t chat_sibling(const struct chat *c, const struct chat_message *m, size_t *n);
/* Go to the sibling `step` places on, and deep; false: there is none. */
bool chat_select(struct chat *c, size_t i, int step);
/* A message as it was kept; the path does not move. NULL when it would break the alternation. */
struct chat_message *chat_import(struct chat *c, struct chat_message *parent, enum chat_role role,
                                 uint64_t id);
/* Index in the path; SIZE_MAX: it is not on it. */
size_t chat_index(const struct chat *c, const struct chat_message *m);
struct chat_message *chat_find(const struct chat *c, uint64_t id); /* NULL: none */
/* The message of the person that says this right behind the path; NULL: none does. */
struct chat_message *chat_said(const struct chat *c, const char *text);

/* Take a message and all below it out of the tree, as if it had never been. */
void chat_remove(struct chat *c, struct chat_message *m);
void chat_drop_last(struct chat *c);

/* ---- the timeline ---- */

/* What was done since the last mark is one move. */
void chat_mark(struct chat *c);
bool chat_undo(struct chat *c); /* false: nothing to undo */
bool chat_redo(struct chat *c);
void chat_return(struct chat *c); /* to the place last marked that still is */
/* First message of the path that is still in the context. */
size_t chat_window(const struct chat *c);

/* A copy of the path, without branches, as a conversation of its own. */
void chat_fork(const struct chat *c, struct chat *out, uint64_t seed);

/* ---- replies ---- */

/* Tokens of the thinking, its markers among them, come before those of the answer. */
void chat_message_token(struct chat_message *m, const struct cw_draw *draw, bool thinking,
                        const char *text, size_t n);
/* More text of the token that came last. */
void chat_message_more(struct chat_message *m, bool thinking, const char *text, size_t n);
void chat_message_change(struct chat_message *m, uint64_t token, const struct cw_sampling *from,
                         const struct cw_sampling *to);
void chat_message_run(struct chat_message *m, uint64_t position, uint32_t seed,
                      const struct cw_sampling *sampling);
/* The settings that hold at its end. */
const struct cw_sampling *chat_message_sampling(const struct chat_message *m);
/* Give an empty reply the first `token` tokens of another, with all that belongs to them. */
void chat_message_copy_head(struct chat_message *to, const struct chat_message *from, size_t token);
/* The reply as the generator takes it. */
bool chat_message_has_ids(const struct chat_message *m);

/* The conversation as the generator takes it, views of *c and of *scratch, from the window on; a
 * last reply that is empty is left out. `system` may be NULL. Caller must free. */
struct cw_message *chat_messages(const struct chat *c, const char *system, struct cw_buf *scratch,
                                 size_t *n);
/* The same of messages [first, end) of the path, whose room is for one more. */
struct cw_message *chat_messages_of(const struct chat *c, size_t first, size_t end,
                                    const char *system, struct cw_buf *scratch, size_t *n);
/* For a model without a template: the texts as one. */
void chat_raw(const struct chat *c, struct cw_buf *out);

/* "T 0.80 -> 0.95, top-p 0.95 -> 0.90"; "" when nothing a person sets differs. */
void chat_change_label(const struct cw_sampling *from, const struct cw_sampling *to,
                       struct cw_buf *out);

#endif
