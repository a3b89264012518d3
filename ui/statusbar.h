/* SPDX-License-Identifier: MIT
 *
 * The bottom line: what is going on, how fast, with which settings, how full. Pure.
 *
 * Where the screen is too narrow the least important part is left out first; what stays is never
 * cut in the middle, down to a few columns.
 */
#ifndef UI_STATUSBAR_H
#define UI_STATUSBAR_H

#include <stdint.h>

#include "ui/screen.h"

enum ui_state {
    UI_STATE_LOADING,
    UI_STATE_READING,  /* the prompt is being evaluated */
    UI_STATE_THINKING, /* what comes now is not yet the answer */
    UI_STATE_ANSWERING,
    UI_STATE_PAUSED,
    UI_STATE_STOPPING,
    UI_STATE_IDLE,
    UI_STATE_FAILED, /* there is no model */
};

/* The spark line tells the last 30 s: a value for each two of them. */
enum { UI_SPARK = 15 };
#define UI_SPARK_S 2.0

struct ui_status {
    enum ui_state state;
    double fraction;   /* LOADING, READING: 0 .. 1; < 0: unknown */
    double left_s;     /* READING: < 0: unknown */
    const char *model; /* or NULL */
    double temp, top_p;
    bool temp_changed, top_p_changed;       /* since the reply began */
    const char *temp_origin, *top_p_origin; /* where they come from; NULL: not worth telling */
    bool seed_known;
    uint32_t seed;                /* of the running or the last reply */
    double tps;                   /* of the running or the last reply; 0: none yet */
    double ttft_s;                /* 0: none yet */
    double spark[UI_SPARK];       /* recent tokens/s, oldest first; 0: none */
    size_t ctx_used, n_ctx;       /* n_ctx 0: not known yet */
    size_t n_reused, n_evaluated; /* of the last prompt */
    /* First token of the history that had to be tokenised anew, because the template writes a reply
     * otherwise than it was given; 0: none. */
    size_t anew_from;
    bool not_restored;         /* the snapshot of the chat could not be used: it was read anew */
    size_t memory_bytes;       /* of the process, resident; 0: unknown */
    const char *mode;          /* of vi editing; NULL or "": none */
    size_t branch, n_branches; /* of the shown one, from 1; n_branches < 2: nothing to tell */
    bool is_private;           /* nothing of this conversation is kept */
};

void ui_statusbar_draw(struct ui_screen *s, int row, const struct ui_status *st);

#endif
