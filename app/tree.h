/* SPDX-License-Identifier: MIT
 *
 * The conversation's tree as the chat program moves in it: what app_impl.h keeps for it, and what
 * its parts ask of each other. turn.c starts requests and takes their events, tree.c moves,
 * tree_show.c keeps the transcript equal to the path, tree_full.c makes room in the context,
 * tree_replay.c draws again. Main thread.
 */
#ifndef APP_TREE_H
#define APP_TREE_H

#include "app/chat.h"

struct app;
struct ui_treeview;

/* What the running request is for. */
enum app_job { APP_JOB_REPLY, APP_JOB_SUMMARY, APP_JOB_REPLAY };

/* A message as it stands in the transcript. */
struct app_shown {
    const struct chat_message *message;
    uint32_t after; /* blocks with higher numbers are its own or come later */
};

struct app_tree {
    enum app_job job;
    struct app_shown *shown; /* the path that the transcript shows */
    size_t n_shown;
    const struct chat_message *shown_window;

    /* several replies at once, side by side until one is picked */
    struct chat_message *several[CW_MAX_REPLIES];
    size_t n_several, picked;
    bool picking;
    bool typing; /* the last key then was a letter */

    struct chat *shelf; /* conversations this one was forked from, the last one last */
    size_t n_shelf;
    uint64_t editing;         /* the message that stands in the input line, 0: none */
    struct ui_treeview *view; /* of /tree; NULL: closed */

    struct {
        uint64_t id, conversation;
    } taken_back; /* the question that was given back last: the next one is in its place */

    /* making room */
    struct chat_message *leaving_to; /* first message that stays, while a summary is written */
    struct cw_buf summary;
    uint32_t summary_block;
    double waiting_s; /* when the question that waits for room was sent */
    bool waiting_go_on;
    bool made_room; /* for the running request */
    struct chat_message *window_before;
    bool warned; /* that the context fills */

    /* drawing again */
    struct chat_message *replayed;
    size_t replay_run, replay_at; /* token of the message that comes next */
    size_t replay_wrong;          /* first that differs, SIZE_MAX: none */
    int32_t replay_got;
};

/* ---- turn.c ---- */

/* Ask for the last reply of the path, which is empty or to be continued, `n` times at once. False
 * with everything as it was when it cannot be asked for; the reason has been said. */
bool app_start(struct app *a, double entered_s, bool go_on, size_t n);
/* The same once there is room. */
bool app_start_now(struct app *a, double entered_s, bool go_on, size_t n);
/* Hand a request over that is not for the conversation. */
bool app_start_job(struct app *a, enum app_job job, struct cw_request *req);
/* The settings as a request, without messages. */
struct cw_request app_request(struct app *a);
/* Take a question that got no answer out of the conversation and give it back to the person. */
void app_take_back(struct app *a);
int64_t app_wall_ms(void); /* now, since 1970 */
/* Whether the tree may be changed now; else a hint says why not. */
bool app_can_move(struct app *a, bool needs_reply);

/* ---- tree_show.c ---- */

/* The transcript becomes the path. */
void app_show_path(struct app *a);
/* The notes beside the headings: number, branch, how it ended. */
void app_show_notes(struct app *a);
void app_show_again(struct app *a); /* the last message anew */
void app_show_clear(struct app *a);
/* The message leaves the transcript alone, what came after it stays. */
void app_show_forget(struct app *a, struct chat_message *m);
/* Text that just came for the last reply. */
void app_show_token(struct app *a, struct chat_message *m, bool first, bool thinking,
                    const char *text, size_t n);
void app_show_mark(struct app *a, struct chat_message *m, const char *label);
void app_show_done(struct app *a, struct chat_message *m);
/* Reply and index in its ids of token `token` of a block; false: that block is no reply. */
bool app_block_token(const struct app *a, uint32_t block, size_t token, size_t *message,
                     size_t *index);

/* ---- tree.c ---- */

uint64_t app_random_seed(void);

bool app_regenerate_several(struct app *a, size_t n);
bool app_redo(struct app *a);
bool app_edit(struct app *a, size_t i, const char *text); /* text NULL: into the input line */
bool app_fork(struct app *a);
/* Move to the sibling of the last message that has any. */
bool app_sibling(struct app *a, int step);
void app_show_tree(struct app *a);
void app_go_to(struct app *a, struct chat_message *m); /* and, at a question, to its reply */
/* The message in the input line is left alone; false: none is being edited. */
bool app_edit_cancel(struct app *a);
/* The message in the input line was sent; false: it is no edit. */
bool app_edit_sent(struct app *a, const char *text);
void app_tree_free(struct app *a);

/* ---- tree_full.c ---- */

enum app_overflow { APP_OVERFLOW_DROP, APP_OVERFLOW_STOP, APP_OVERFLOW_SUMMARISE };
enum app_room { APP_ROOM, APP_ROOM_WAIT, APP_ROOM_NONE };

/* Make room for the next prompt where it is needed. WAIT: a summary is being written and the
 * request follows it; NONE: there is none, it has been said. */
enum app_room app_make_room(struct app *a, double entered_s, bool go_on);
/* The generator found that the prompt does not fit, or the reply filled the context: make room
 * after all. False: that is not possible. */
bool app_room_after_all(struct app *a);
void app_summary_token(struct app *a, const char *text, size_t n);
void app_summary_done(struct app *a, enum cw_stop stop);
void app_say_full(struct app *a);
/* What left comes back; false: nothing has left. */
bool app_restore(struct app *a);
/* Figures of a reply that has ended: what its messages take, and a warning when little is left. */
void app_account(struct app *a, struct chat_message *m);

/* ---- tree_replay.c ---- */

bool app_replay(struct app *a, size_t i);
void app_replay_token(struct app *a, const struct cw_event *ev);
void app_replay_done(struct app *a, enum cw_stop stop, const char *error);
void app_why(struct app *a, size_t i);

#endif
