/* SPDX-License-Identifier: MIT
 *
 * The chat as its own parts see it: the state of the event loop, and what commands may do with it.
 * Private to app.c (the loop), turn.c (requests and replies), draft.c (what is being written),
 * keys.c and live.c (what keys do), the modes (page.c, palette.c, search.c, lens.c, pick.c),
 * commands.c with the cmd_*.c, and draw.c. Main thread.
 */
#ifndef APP_APP_IMPL_H
#define APP_APP_IMPL_H

#include "app/app.h"
#include "app/chat.h"
#include "app/paths.h"
#include "app/persist.h"
#include "app/plain.h"
#include "app/tree.h"
#include "ui/input.h"
#include "ui/keymap.h"
#include "ui/lineedit.h"
#include "ui/overlay.h"
#include "ui/palette.h"
#include "ui/statusbar.h"
#include "ui/transcript.h"

enum app_phase { APP_LOADING, APP_IDLE, APP_RUNNING, APP_NO_MODEL };

struct app;

/* What has the keyboard instead of the input line, and what it shows. At most one at a time. */
struct app_mode {
    /* False: none of its keys. Keys of the table then do what they always do; others do nothing. */
    bool (*key)(struct app *a, const struct ui_key *key);
    void (*close)(struct app *a); /* or NULL */
    /* Of `rows` rows of the conversation, how many it takes from below; NULL: none. */
    int (*rows)(struct app *a, int rows);
    void (*draw)(struct app *a, int row, int rows);
    void (*line)(struct app *a, int row); /* in place of the input line; NULL: that stays */
};
extern const struct app_mode app_mode_page, app_mode_palette, app_mode_search, app_mode_lens,
    app_mode_pick, app_mode_tree, app_mode_several, app_mode_chooser;

/* The draft in the input line: its tokens, and the files put into it. draft.c. */
struct app_draft {
    uint64_t serial; /* of the last question; answers to older ones are void */
    double ask_s;    /* when to ask; < 0: nothing to ask */
    bool known;
    size_t tokens;
    size_t last;           /* tokens when it was last known; 0: never */
    unsigned attached[32]; /* files put in since the last count */
    size_t n_attached;
    bool on_battery;
    double battery_s; /* when to look again */
};

/* How the chat meets the person: on a screen (app.c), or in plain lines (plain.c). */
struct app_face {
    void (*show)(struct app *a, double now); /* what there is to show, if it is time */
    double (*due)(const struct app *a);      /* when something will be; < 0: nothing */
    void (*read)(struct app *a, bool readable);
    void (*signals)(struct app *a, unsigned flags); /* UI_SIGNAL_* but those that end the chat */
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
    struct app_tree tree;
    struct app_persist persist;
    struct ui_transcript *transcript;
    char **queue; /* [n_queue] messages that wait for the model, or for the reply before them */
    size_t n_queue;

    struct { /* the running request, or the last one: turn.c */
        uint32_t id;
        bool cancelled;
        double prompt_s;             /* when evaluation began */
        struct cw_sampling at_start; /* settings the reply began with */
        double spark_s;              /* when the spark line got its last value */
    } run;
    struct app_draft draft;
    struct { /* the reply that the bell will ring for: app.c */
        uint32_t id;
        double begin_s;
    } bell;

    struct app_plain *plain; /* a chat in plain lines; NULL: on the screen */
    struct ui_screen screen;
    struct ui_keys *keys;
    const struct app_mode *mode; /* NULL: the input line has the keyboard */
    struct ui_overlay *overlay;  /* of the page */
    struct ui_palette *palette;
    struct ui_lineedit needle; /* of the search; stays for the next one */
    struct {
        size_t message, token;
        int selected; /* of the choices */
    } lens;
    struct ui_status status;
    char hint[512]; /* one line for the person, until the next key */
    bool hint_error;
    bool dirty;
    bool urgent; /* the change is the person's doing: show it at once */
    struct {     /* what the screen shows: draw.c */
        double frame_s;
        struct ui_status status; /* as it was at status_s */
        double status_s;
        bool status_old; /* and not as it is */
        double memory_s; /* when the memory was last asked for */
        char title[256]; /* of the window */
    } shown;
};

/* One line above the input, gone with the next key; in plain lines one like others. */
void app_hint(struct app *a, bool error, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* A block in the conversation that is not part of it. */
void app_tell(struct app *a, bool error, const char *text, size_t n);
void app_show_page(struct app *a, struct ui_overlay *page); /* takes the page; NULL closes it */
void app_enter(struct app *a, const struct app_mode *mode); /* NULL: back to the input line */
void app_open_palette(struct app *a);
/* A conversation that the store found for what stands in the palette's line. */
void app_palette_conversation(struct app *a, const char *title, const char *detail,
                              const char *name);
void app_search_start(struct app *a, int step);
void app_lens_start(struct app *a);
void app_pick_start(struct app *a);
/* Put text on the clipboard and say so, or why not. */
void app_copy(struct app *a, const char *text, size_t n, const char *what);
/* Settings of the interface that are not looked at while drawing: take them over. A theme that
 * cannot be loaded leaves the one at hand; err says why. */
int app_apply_settings(struct app *a, struct cw_err *err);
int app_apply_look(struct app *a, struct cw_err *err); /* the part of theme and Markdown */
/* Set what a preset sets; false: there is none of that name. */
bool app_preset(struct app *a, const char *name);

const struct cw_model_info *app_model_info(const struct app *a); /* NULL: not loaded */

void app_submit(struct app *a, const char *text); /* ask, or queue while that is not possible */
bool app_cancel(struct app *a);                   /* false: nothing runs */
/* Ask again for the last reply, or let it go on; false with a hint when that is not possible. */
bool app_regenerate(struct app *a);
bool app_continue(struct app *a);
bool app_undo(struct app *a);
void app_new_chat(struct app *a);
/* Go on from token `token` of reply `message` with id in its place; what came after stays as a
 * branch. False with a hint when that is not possible. */
bool app_branch_at(struct app *a, size_t message, size_t token, int32_t id);
/* Hand the draft in the input line to the generator as the request Enter would make of it
 * (cw_generator_prepare); an empty line takes the last one back. */
void app_prepare_draft(struct app *a);
/* New values in settings->sampling: show them, and hand them to the generator. */
void app_publish(struct app *a);

/* Give what waits back to the person: nothing will answer it, or not now. */
void app_empty_queue(struct app *a);
/* There will be no model. */
void app_load_failed(struct app *a, int code, const char *why, size_t n);
/* Take the events that are in the ring; true when there may be more. */
bool app_drain(struct app *a);

void app_on_key(struct app *a, const struct ui_key *key);
/* One of our own actions, as its key does it. False: it has no use now, the key is the line's. */
bool app_act(struct app *a, enum ui_action action, const struct ui_key *key);
/* The live ones among them: settings, pausing, thinking. False: it is none of these. */
bool app_act_live(struct app *a, enum ui_action action);
/* The draft: it was changed and is to be counted anew, it was sent, its count came. */
void app_draft_changed(struct app *a);
void app_draft_sent(struct app *a);
void app_draft_counted(struct app *a, uint64_t serial, size_t n);
void app_draft_tick(struct app *a, double now); /* ask for its count once that is due */
/* Put a file's text into it; false: there are too many already. */
bool app_draft_attach(struct app *a, const char *name, const char *text, size_t n);

/* Ctrl+C and SIGINT: what is nearest to being stopped is stopped. */
void app_interrupt(struct app *a);

/* Draw a frame if one is due, and when the next will be; < 0: none. */
void app_draw_tick(struct app *a, double now);
double app_draw_due(const struct app *a);
/* In place of the input line, the keys of what has the keyboard: the first of the texts, from long
 * to short, that fits. */
void app_draw_keys(struct app *a, int row, const char *const *texts, size_t n);
/* The window's title is the terminal's own again. */
void app_draw_no_title(struct app *a);

#endif
