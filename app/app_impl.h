/* SPDX-License-Identifier: MIT
 *
 * The chat as its own parts see it: the state of the event loop, and what commands may do with it.
 * Private to app.c (the loop), turn.c (requests and replies), keys.c, commands.c and draw.c. Main
 * thread.
 */
#ifndef APP_APP_IMPL_H
#define APP_APP_IMPL_H

#include "app/app.h"
#include "app/chat.h"
#include "app/paths.h"
#include "ui/input.h"
#include "ui/overlay.h"
#include "ui/statusbar.h"
#include "ui/transcript.h"

/* Seconds without a key before the draft's tokens are counted. */
#define APP_DRAFT_PAUSE_S 0.15

enum app_phase { APP_LOADING, APP_IDLE, APP_RUNNING, APP_NO_MODEL };

/* A message that waits for the model, or for the reply before it to end. */
struct app_queued {
    char *text;
    double entered_s; /* when Enter was pressed */
};

struct app {
    struct app_settings *settings;
    const struct app_paths *paths;
    struct cw_generator *generator;
    enum app_phase phase;
    char failure[512]; /* why there is no model */
    bool leave;
    unsigned leave_signal; /* UI_SIGNAL_* that ended the loop */

    struct chat chat;
    struct ui_transcript *transcript;
    struct app_queued *queue;
    size_t n_queue;

    /* the running request */
    uint32_t request;
    bool cancelled;
    double prompt_s;             /* when evaluation began */
    uint32_t n_regenerated;      /* replies of this turn thrown away, for their seeds */
    struct cw_sampling at_start; /* settings the reply began with */
    double spark_s;              /* when the spark line got its last value */

    struct ui_screen screen;
    struct ui_keys *keys;
    struct ui_overlay *overlay; /* NULL: none */
    struct ui_status status;
    char hint[512]; /* one line for the person, until the next key */
    bool hint_error;
    bool dirty;
    double next_frame_s;
    double frame_s; /* time of the last frame, monotonic */

    /* tokens of the draft */
    uint64_t draft_serial; /* of the last question; answers to older ones are void */
    double draft_ask_s;    /* when to ask; < 0: nothing to ask */
    bool draft_known;
    size_t draft_tokens;
};

/* One line above the input, gone with the next key. */
void app_hint(struct app *a, bool error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A block in the conversation that is not part of it. */
void app_tell(struct app *a, bool error, const char *text, size_t n);
void app_show_page(struct app *a, struct ui_overlay *page); /* takes the page */

const struct cw_model_info *app_model_info(const struct app *a); /* NULL: not loaded */

void app_submit(struct app *a, const char *text); /* ask, or queue while that is not possible */
bool app_cancel(struct app *a);                   /* false: nothing runs */
/* Ask again for the last reply, or let it go on; false with a hint when that is not possible. */
bool app_regenerate(struct app *a);
bool app_continue(struct app *a);
bool app_undo(struct app *a);
void app_new_chat(struct app *a);
/* New values in settings->sampling: show them, and hand them to the generator. */
void app_publish(struct app *a);

/* Give what waits back to the person: nothing will answer it, or not now. */
void app_empty_queue(struct app *a);
/* There will be no model. */
void app_load_failed(struct app *a, const char *why, size_t n);
/* Take the events that are in the ring; true when there may be more. */
bool app_drain(struct app *a);

void app_on_key(struct app *a, const struct ui_key *key);
/* Ctrl+C and SIGINT: what is nearest to being stopped is stopped. */
void app_interrupt(struct app *a);

void app_draw(struct app *a);

#endif
