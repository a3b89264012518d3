/* SPDX-License-Identifier: MIT
 *
 * The event loop of the chat.
 *
 * One thread, one poll: keys, signals, the generator's ring, and at most one timer (the next frame,
 * a lone Esc, a pause in typing). Everything else is a reaction to one of these. What is shown is
 * drawn at most 60 times a second, and only when something changed; with nothing to do the poll
 * waits for ever.
 */
#include "app/app.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app_impl.h"
#include "app/commands.h"
#include "app/engine.h"
#include "chinwag/clock.h"
#include "chinwag/dirs.h"
#include "ui/term.h"

static struct cw_buf notes; /* of app_chat_note, a line each */

/* ---- saying things -------------------------------------------------------------------------- */

void app_hint(struct app *a, bool error, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(a->hint, sizeof a->hint, fmt, args);
    va_end(args);
    a->hint_error = error;
    a->dirty = true;
    if (a->plain != NULL) {
        app_plain_say(a, error, a->hint);
    }
}

void app_tell(struct app *a, bool error, const char *text, size_t n) {
    uint32_t block =
        ui_transcript_add(a->transcript, error ? UI_BLOCK_ERROR : UI_BLOCK_NOTICE, NULL);
    ui_transcript_append(a->transcript, block, text, n);
    ui_transcript_finish(a->transcript, block);
    a->dirty = true;
}

void app_chat_note(const char *line) {
    cw_buf_printf(&notes, "%s%s", notes.len > 0 ? "\n" : "", line);
}

int app_apply_settings(struct app *a, struct cw_err *err) {
    int rc = app_apply_look(a, err);
    a->dirty = true;
    if (a->plain != NULL) {
        return rc; /* nothing is captured, and no window named */
    }
    ui_term_mouse(a->settings->mouse);
    if (!a->settings->title) {
        app_draw_no_title(a);
    }
    return rc;
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* Ring for a reply that took long, once it is there. */
static void ring_bell(struct app *a) {
    bool ended = a->bell.id != 0 && (a->phase != APP_RUNNING || a->run.id != a->bell.id);
    if (ended) {
        double took_s = cw_now() - a->bell.begin_s;
        a->bell.id = 0;
        if (a->settings->bell && took_s > a->settings->bell_after) {
            char text[64];
            snprintf(text, sizeof text, "the reply is there, after %.0f s", took_s);
            ui_term_notify(text);
        }
    }
    if (a->phase == APP_RUNNING && a->bell.id == 0) {
        a->bell.id = a->run.id;
        a->bell.begin_s = cw_now();
    }
}

static void on_signals(struct app *a, unsigned flags) {
    if (flags & UI_SIGNAL_INT) {
        a->hint[0] = '\0';
        app_interrupt(a);
    }
    if (flags & UI_SIGNAL_STOP) {
        ui_term_suspend();
    } else if (flags & UI_SIGNAL_CONT) {
        ui_term_continue();
    }
    if (flags & UI_SIGNAL_RESIZE) {
        ui_term_resized();
    }
    a->dirty = a->urgent = true;
}

static void read_keys(struct app *a, bool readable) {
    if (readable && ui_term_read(a->keys) < 0) {
        a->leave = true; /* the terminal is gone */
        a->leave_signal = UI_SIGNAL_HUP;
        return;
    }
    struct ui_key key;
    while (!a->leave && ui_keys_next(a->keys, cw_now(), &key)) {
        app_on_key(a, &key);
    }
}

static double sooner(double a, double b) {
    return a < 0 ? b : b < 0 ? a : a < b ? a : b;
}

static double screen_due(const struct app *a) {
    return sooner(app_draw_due(a), ui_keys_deadline(a->keys));
}

static const struct app_face screen = {
    .show = app_draw_tick, .due = screen_due, .read = read_keys, .signals = on_signals};

/* Milliseconds until something is due, rounded up; -1: nothing is. */
static int timeout_ms(const struct app *a, const struct app_face *face) {
    double due = sooner(face->due(a), sooner(a->draft.ask_s, a->persist.due_s));
    if (due < 0) {
        return -1;
    }
    double ms = (due - cw_now()) * 1000;
    return ms <= 0 ? 0 : ms > 60000 ? 60000 : (int)ms + 1;
}

static void loop(struct app *a, const struct app_face *face) {
    bool more_events = false;
    while (!a->leave) {
        double now = cw_now();
        app_draft_tick(a, now);
        app_persist_tick(a, now);
        face->show(a, now);
        struct pollfd fds[4] = {
            {.fd = ui_term_fd(), .events = POLLIN},
            {.fd = ui_term_wake_fd(), .events = POLLIN},
            {.fd = a->generator ? cw_ring_fd(cw_generator_ring(a->generator)) : -1,
             .events = POLLIN},
            {.fd = app_persist_fd(a), .events = POLLIN},
        };
        if (poll(fds, 4, more_events ? 0 : timeout_ms(a, face)) < 0) {
            continue; /* interrupted: the flag's descriptor is readable now */
        }
        if (fds[1].revents != 0) {
            unsigned flags = ui_term_signals();
            if (flags & (UI_SIGNAL_TERM | UI_SIGNAL_HUP)) {
                a->leave = true;
                a->leave_signal = flags;
            }
            face->signals(a, flags);
        }
        face->read(a, fds[0].revents != 0);
        if (fds[2].revents != 0 || more_events) {
            more_events = app_drain(a);
        }
        if (fds[3].revents != 0) {
            app_persist_drain(a);
        }
        ring_bell(a);
    }
}

static void open_input(struct app *a) {
    struct cw_err err = {0};
    char *history = NULL;
    bool kept = a->paths->state != NULL && a->paths->state[0] != '\0';
    if (kept && cw_dirs_make(a->paths->state, &err) == CW_OK) {
        history = app_path_join(a->paths->state, "history");
    }
    struct ui_input_options opt = {
        .history_path = history, .prompt = " > ", .complete = app_complete, .arg = a};
    if (ui_input_open(&opt, err.code == CW_OK ? &err : NULL) != CW_OK || err.code != CW_OK ||
        !kept) {
        struct cw_buf text = {0};
        cw_buf_printf(&text, "What is written will not be remembered: %s",
                      err.code != CW_OK ? err.text : a->paths->reason);
        app_tell(a, false, text.data, text.len);
        cw_buf_free(&text);
    }
    free(history);
}

static void start_generator(struct app *a) {
    const struct app_settings *s = a->settings;
    struct cw_generator_options opt = app_generator_options(s, s->model, s->chat_template);
    struct cw_err err = {0};
    if (s->cache_disk > 0 && !s->keep_private && a->paths->cache[0] != '\0') {
        opt.snapshot_dir = a->paths->cache;
    }
    if (cw_generator_create(&a->generator, &opt, &s->sampling, &err) != CW_OK) {
        a->generator = NULL;
        app_load_failed(a, err.code, err.text, strlen(err.text));
    }
}

int app_chat_run(struct app_settings *settings, const struct app_paths *paths) {
    struct app a = {
        .settings = settings,
        .paths = paths,
        .draft.ask_s = -1,
        .dirty = true,
        .status = {.state = UI_STATE_LOADING, .fraction = -1, .left_s = -1},
    };
    struct cw_err err = {0};
    ui_term_locale();
    cw_set_oom_hook(ui_term_emergency);
    int rc = settings->plain ? CW_EINVAL : ui_term_open(settings->color, &err);
    if (rc == CW_EINVAL) { /* as is wished, or the terminal can do no better */
        if (!settings->plain) {
            fprintf(stderr, "chinwag: %s: the chat goes on in plain lines\n", err.text);
        }
        a.plain = app_plain_create();
        rc = ui_term_open_plain(&err);
    }
    if (rc != CW_OK) {
        fprintf(stderr, "chinwag: %s\n", err.text);
        app_plain_destroy(a.plain);
        return 1;
    }
    a.transcript = ui_transcript_create();
    chat_init(&a.chat, app_random_seed());
    app_persist_open(&a);
    a.keys = ui_keys_create();
    if (a.plain == NULL) {
        ui_term_define_keys(a.keys);
    }
    ui_screen_init(&a.screen, 1, 1);
    open_input(&a);
    if (app_apply_settings(&a, &err) != CW_OK) {
        app_tell(&a, true, err.text, strlen(err.text));
    }
    if (notes.len > 0) {
        app_tell(&a, false, notes.data, notes.len);
        cw_buf_free(&notes);
    }
    start_generator(&a);
    app_publish(&a);

    if (a.plain != NULL) {
        app_plain_begin(&a);
        loop(&a, &app_plain_face);
        app_plain_end(&a);
    } else {
        loop(&a, &screen);
    }
    ui_term_close(); /* first, so that nothing below can leave the terminal as it is */
    cw_generator_destroy(a.generator);
    a.generator = NULL;
    ui_input_close();
    app_enter(&a, NULL);
    ui_lineedit_free(&a.needle);
    ui_screen_free(&a.screen);
    ui_keys_destroy(a.keys);
    ui_transcript_destroy(a.transcript);
    app_persist_close(&a);
    app_plain_destroy(a.plain);
    app_tree_free(&a);
    chat_free(&a.chat);
    for (size_t i = 0; i < a.n_queue; i++) {
        free(a.queue[i]);
    }
    free(a.queue);
    if (a.leave_signal != 0) {
        ui_term_raise(a.leave_signal);
    }
    if (a.phase == APP_NO_MODEL) {
        fprintf(stderr, "chinwag: %s\n", a.failure);
        return 1;
    }
    return 0;
}
