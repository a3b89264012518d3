/* SPDX-License-Identifier: MIT
 *
 * The conversations on disk: a database and a thread of its own.
 *
 *   main thread                              store thread
 *     cw_store_create        ------------>   opens (makes, migrates, mends) the database
 *     put, append, change... -- queue ---->  one transaction for all that is queued
 *     list, load             -- queue ---->  reads, after everything queued before
 *     cw_store_next          <-- events ---  answers, what is saved, trouble (said once)
 *
 * No function but cw_store_destroy waits for the disk. All are for the thread that created the
 * store. The queue is bounded: what does not fit is refused with CW_EFULL. While saving is not
 * possible (disk full, read-only, no such folder) what is queued is kept and tried again, and one
 * CW_STORE_TROUBLE says so; CW_STORE_SAVED ends it. A private chat has no store.
 *
 * A conversation is a tree of messages. Its root is 0; a message's parent must be put before it.
 * Messages and conversations get their numbers from cw_store_new_id. A message is put whole, or put
 * empty, then grows by appends, and is finished; only what is new is written on the way. Putting a
 * message again replaces it, so that whatever was refused can be put again later.
 *
 * Several programs may use one store. A conversation belongs to the first that creates or loads it.
 * In another the loaded one says `owned` false: messages put there are further branches, what was
 * there before can neither be replaced nor appended to, and its leaf stays that of the owner.
 *
 * A damaged database is put aside under another name, untouched, and all rows that can still be
 * proved right by their checksum go into a new one: CW_STORE_MENDED. A text whose checksum is wrong
 * is never handed out.
 */
#ifndef CHINWAG_STORE_H
#define CHINWAG_STORE_H

#include "chinwag/err.h"
#include "chinwag/figures.h"
#include "chinwag/mem.h"
#include "chinwag/sampler.h"

struct cw_store;

struct cw_store_options {
    const char *dir;   /* folder of the database, made (0700) where it is missing */
    const char *vfs;   /* name of a SQLite file layer; NULL: the system's */
    size_t max_queued; /* bytes waiting to be written; 0: 64 MiB */
    /* Called in the store's thread for each conversation that is removed, before its rows are, so
     * that what else is kept of it goes as well, also when a program dies on the way. NULL: none.
     * When it fails the rows go all the same, and it is told. */
    int (*gone)(void *arg, int64_t conversation, struct cw_err *err);
    void *gone_arg;
};

/* Starts the thread; that the database cannot be opened is told by an event. */
int cw_store_create(struct cw_store **out, const struct cw_store_options *opt, struct cw_err *err);
/* Write what is queued, remove what was deleted, and end. CW_EIO when something could not be
 * written or removed: err says why. NULL is fine. */
int cw_store_destroy(struct cw_store *s, struct cw_err *err);

enum cw_store_role { CW_STORE_USER, CW_STORE_REPLY, CW_STORE_SYSTEM, CW_STORE_TOOL };

struct cw_store_token {
    struct cw_draw draw; /* alternatives and probabilities 0 where unknown */
    uint32_t n_text;     /* bytes of the text (or of the reasoning) that came with it */
    bool thinking;
    uint8_t mark; /* of the caller, 0 .. 15, kept as it is */
};

/* New settings from one token of a reply on. */
struct cw_store_change {
    uint64_t token;  /* its position in the reply */
    uint64_t offset; /* bytes of the text before it */
    struct cw_sampling from, to;
};

struct cw_store_message {
    int64_t id, parent, conversation; /* parent 0: it begins the conversation */
    enum cw_store_role role;
    int64_t created_ms; /* since 1970; 0: now */
    struct cw_str text, reasoning;
    const struct cw_store_token *tokens;
    size_t n_tokens;
    const struct cw_store_change *changes;
    size_t n_changes;
    bool done;     /* false: it is still growing, or the program that wrote it died */
    bool lost;     /* when loaded: it could not be recovered; it holds nothing */
    int stop;      /* enum cw_stop */
    uint32_t seed; /* of the draws, with the position of the first */
    uint64_t first_position;
    struct cw_figures figures;
    struct cw_sampling sampling;           /* at its first token */
    struct cw_str model, hash, arithmetic; /* what wrote it; arithmetic: version, exact or not */
    struct cw_str extra;                   /* of the caller, kept as it is */
};

struct cw_store_conversation {
    int64_t id;
    struct cw_str title;            /* empty: made from the first message */
    int64_t created_ms, updated_ms; /* 0: now */
    struct cw_str model, hash;      /* of the last reply, or of the start */
    struct cw_str system;
    struct cw_str settings; /* of the caller, kept as it is */
    int64_t leaf;           /* the last message of the branch that is shown; 0: none */
    size_t n_messages;      /* when loaded or listed */
};

/* A number nobody else has; later ones are greater. Never 0. */
int64_t cw_store_new_id(struct cw_store *s);
/* The name of a conversation: 13 letters and digits, of which people need only type as many as make
 * it the only one. */
enum { CW_STORE_NAME = 14 };
void cw_store_name(int64_t id, char out[CW_STORE_NAME]);
/* "Tell me about the colours of..." : the first line that says something, cut at a word. Printable,
 * never empty. */
void cw_store_title(const char *text, size_t n, struct cw_buf *out);

/* ---- writing ----
 *
 * Everything is copied. *serial (may be NULL) is the number of the write: it is saved once a
 * CW_STORE_SAVED with at least that number has come. CW_EFULL: refused, nothing was queued. After a
 * refused append the message takes no more until it is put again, so that it never has a hole. */
int cw_store_put_conversation(struct cw_store *s, const struct cw_store_conversation *c,
                              uint64_t *serial); /* or change it; the leaf is left as it is, and so
                                                    are title and model where *c has none */
int cw_store_put_message(struct cw_store *s, const struct cw_store_message *m, uint64_t *serial);
/* More of a message that is not done; pieces in the order they came. */
int cw_store_append(struct cw_store *s, int64_t message, const char *text, size_t n_text,
                    const char *reasoning, size_t n_reasoning, const struct cw_store_token *tokens,
                    size_t n_tokens, uint64_t *serial);
int cw_store_add_change(struct cw_store *s, int64_t message, const struct cw_store_change *c,
                        uint64_t *serial);
int cw_store_finish(struct cw_store *s, int64_t message, int stop, const struct cw_figures *figures,
                    uint64_t *serial);
/* A done message grows again (it is continued): appends go on where it ended. */
int cw_store_resume(struct cw_store *s, int64_t message, uint64_t *serial);
/* New `extra`, nothing else is written. */
int cw_store_set_extra(struct cw_store *s, int64_t message, const void *extra, size_t n,
                       uint64_t *serial);
int cw_store_set_leaf(struct cw_store *s, int64_t conversation, int64_t leaf, uint64_t *serial);
int cw_store_rename(struct cw_store *s, int64_t conversation, const char *title, size_t n,
                    uint64_t *serial);
/* Out of every list at once; off the disk, index and log included, when the store is destroyed, or
 * by the next program when this one dies before. One that is open in another program is kept, with
 * a CW_STORE_NOTICE. */
int cw_store_delete(struct cw_store *s, int64_t conversation, uint64_t *serial);
int cw_store_undelete(struct cw_store *s, int64_t conversation, uint64_t *serial);
int cw_store_delete_all(struct cw_store *s, uint64_t *serial);
/* This program is done with a conversation: another may own it. */
int cw_store_release(struct cw_store *s, int64_t conversation);

/* ---- asking; the answer is an event with the same serial ---- */

/* Conversations, latest first, at most `limit`. `query`: words that must stand in the text of a
 * message (the last may be the beginning of one), or a piece of title, model, name or date
 * (2026-11-29); NULL or "": all. A newer question replaces one that waits. */
void cw_store_list(struct cw_store *s, const char *query, size_t limit, uint64_t serial);
/* Conversation and all its messages, parents first; claims it. id 0: the last one that was used. */
void cw_store_load(struct cw_store *s, int64_t id, uint64_t serial);
/* The same by name, or by the beginning of one that only one has. claim false: only to be read. */
void cw_store_load_name(struct cw_store *s, const char *name, bool claim, uint64_t serial);

/* ---- events ---- */

enum cw_store_event_kind {
    CW_STORE_OPEN,    /* the database can be used */
    CW_STORE_SAVED,   /* serial: everything up to it; synced: a power cut would not take it */
    CW_STORE_TROUBLE, /* text: why nothing is saved now; code. Once, until saving works again */
    CW_STORE_NOTICE,  /* text: something the person should know */
    CW_STORE_MENDED,  /* text; n_recovered and n_lost messages, and the damaged file in path */
    CW_STORE_LIST,    /* serial, hits */
    CW_STORE_LOADED,  /* serial, conversation, messages, owned */
    CW_STORE_FAILED,  /* serial, code, text: the question has no answer */
};

struct cw_store_hit {
    struct cw_store_conversation conversation;
    struct cw_str snippet; /* where the words stand, a line; empty: they stand in the head */
    int64_t message;       /* that it is from; 0: none */
};

struct cw_store_event {
    enum cw_store_event_kind kind;
    uint64_t serial;
    bool synced;
    bool owned; /* false: another program has it open */
    int code;
    char *text; /* a printable line; "" for none */
    char *path;
    size_t n_recovered, n_lost;
    struct cw_store_hit *hits;
    size_t n_hits;
    struct cw_store_conversation conversation;
    struct cw_store_message *messages;
    size_t n_messages;
    void *memory; /* that all of the above points into */
};

/* Readable when events may be there. Acknowledge before taking them, then take until NULL. */
int cw_store_fd(const struct cw_store *s);
void cw_store_ack(struct cw_store *s);
struct cw_store_event *cw_store_next(struct cw_store *s); /* caller must free; NULL: none */
void cw_store_event_free(struct cw_store_event *ev);
/* For commands, never for the chat: wait for the answer to a question, or until everything is saved
 * (then CW_OK; the code of the trouble when it cannot be). Other events stay for cw_store_next. */
struct cw_store_event *cw_store_wait(struct cw_store *s, uint64_t serial);
int cw_store_wait_saved(struct cw_store *s, struct cw_err *err);

#endif
