/* SPDX-License-Identifier: MIT
 *
 * The conversation and the store: everything that is said is handed over at least every half
 * second, only what is new; what was kept becomes a conversation again. Without a store (private,
 * or no place to write to) the chat goes on in memory. Main thread.
 */
#ifndef APP_PERSIST_H
#define APP_PERSIST_H

#include "app/chat.h"
#include "app/exchange.h"
#include "app/keep.h"

struct app;
struct cw_store_event;
struct ui_palette;

/* What a list of conversations was asked for. */
enum app_list { APP_LIST_PAGE, APP_LIST_CHOOSER, APP_LIST_PALETTE };

struct app_persist {
    struct cw_store *store;     /* NULL: nothing is kept */
    bool off;                   /* private */
    bool put;                   /* the conversation is in the store */
    bool trouble;               /* said already */
    int64_t leaf;               /* as the store has it */
    char *system, *persona;     /* the same; NULL: not known */
    char *system_before;        /* that holds where a conversation has none */
    double due_s;               /* when to save next; < 0: nothing is new */
    uint64_t serial;            /* of the last question */
    uint64_t ours;              /* serial of the conversation that is awaited, 0: none */
    uint64_t listing;           /* the same of the list */
    enum app_list list;         /* what it is for */
    struct ui_palette *chooser; /* to load one; NULL: closed */
    int64_t *deleted;           /* conversations that were deleted, the last one last */
    size_t n_deleted;
    char key[APP_KEEP_KEY]; /* of the snapshots of the conversation at hand */
    int64_t *hits;          /* of the list that was shown last */
    size_t n_hits;
};

/* At the start: open the store, and load what --continue or --resume mean. */
void app_persist_open(struct app *a);
/* At the end, when there is no generator any more: all is written, and of what was deleted no
 * snapshot stays. Says on standard error what could not be. */
void app_persist_close(struct app *a);
int app_persist_fd(const struct app *a); /* -1: none */
/* Name of the conversation's snapshot; NULL: there shall be none. Valid until the next call. */
const char *app_persist_key(struct app *a);
/* Something was said, or the path moved. */
void app_persist_changed(struct app *a);
/* Hand over what is new, when it is due. */
void app_persist_tick(struct app *a, double now);
void app_persist_save(struct app *a);
/* The conversation at hand is another from here on. */
void app_persist_new(struct app *a);
void app_persist_drain(struct app *a);

void app_persist_list(struct app *a, const char *query);
/* A page to choose a conversation from; what is typed is looked for in title and text. */
void app_persist_choose(struct app *a);
/* persist_choose.c: a list that came, for one of the three. */
void app_persist_show_list(struct app *a, const struct cw_store_event *ev);
/* persist.c: ask for one; false, with a hint, where nothing is kept. */
bool app_persist_ask(struct app *a, enum app_list list, const char *query);
void app_persist_load(struct app *a, const char *name); /* a name, or a number of the list */
void app_persist_rename(struct app *a, const char *title);
void app_persist_delete(struct app *a); /* the one at hand; a new one begins */
void app_persist_undelete(struct app *a);
void app_persist_private(struct app *a, bool on);
/* Append the conversation at hand as it is exported, kept or not. */
void app_persist_export(const struct app *a, enum app_format format, struct cw_buf *out);

#endif
