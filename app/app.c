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
#include "ui/term.h"

static const double FRAME_S = 1.0 / 60;

/* ---- saying things -------------------------------------------------------------------------- */

void app_hint(struct app *a, bool error, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(a->hint, sizeof a->hint, fmt, args);
    va_end(args);
    a->hint_error = error;
    a->dirty = true;
}

void app_tell(struct app *a, bool error, const char *text, size_t n) {
    uint32_t block =
        ui_transcript_add(a->transcript, error ? UI_BLOCK_ERROR : UI_BLOCK_NOTICE, NULL);
    ui_transcript_append(a->transcript, block, text, n);
    ui_transcript_finish(a->transcript, block);
    a->dirty = true;
}

void app_show_page(struct app *a, struct ui_overlay *page) {
    ui_overlay_destroy(a->overlay);
    a->overlay = page;
    a->dirty = true;
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void count_draft(struct app *a) {
    size_t n;
    const char *text = ui_input_text(&n);
    a->draft_ask_s = -1;
    if (a->phase == APP_IDLE && n > 0) {
        cw_generator_count(a->generator, text, n, a->draft_serial);
    }
}

static void on_signals(struct app *a) {
    unsigned flags = ui_term_signals();
    if (flags & (UI_SIGNAL_TERM | UI_SIGNAL_HUP)) {
        a->leave = true;
        a->leave_signal = flags;
    }
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
    a->dirty = true;
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

/* Milliseconds until something is due, rounded up; -1: nothing is. */
static int timeout_ms(const struct app *a, double now) {
    double due = a->dirty ? a->next_frame_s : -1;
    due = sooner(due, ui_keys_deadline(a->keys));
    due = sooner(due, a->draft_ask_s);
    if (due < 0) {
        return -1;
    }
    double ms = (due - now) * 1000;
    return ms <= 0 ? 0 : ms > 60000 ? 60000 : (int)ms + 1;
}

static void loop(struct app *a) {
    bool more_events = false;
    while (!a->leave) {
        double now = cw_now();
        if (a->draft_ask_s >= 0 && now >= a->draft_ask_s) {
            count_draft(a);
        }
        if (a->dirty && now >= a->next_frame_s) {
            a->dirty = false;
            a->next_frame_s = now + FRAME_S;
            a->frame_s = now;
            app_draw(a);
            ui_term_blit(&a->screen);
        }
        struct pollfd fds[3] = {
            {.fd = ui_term_fd(), .events = POLLIN},
            {.fd = ui_term_wake_fd(), .events = POLLIN},
            {.fd = a->generator ? cw_ring_fd(cw_generator_ring(a->generator)) : -1,
             .events = POLLIN},
        };
        if (poll(fds, 3, more_events ? 0 : timeout_ms(a, cw_now())) < 0) {
            continue; /* interrupted: the flag's descriptor is readable now */
        }
        if (fds[1].revents != 0) {
            on_signals(a);
        }
        read_keys(a, fds[0].revents != 0);
        if (fds[2].revents != 0 || more_events) {
            more_events = app_drain(a);
        }
    }
}

static void open_input(struct app *a) {
    struct cw_err err = {0};
    char *history = NULL;
    bool kept = a->paths->state != NULL && a->paths->state[0] != '\0';
    if (kept && app_path_make(a->paths->state, &err) == CW_OK) {
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
    const struct cw_generator_options opt = app_generator_options(s, s->model, s->chat_template);
    struct cw_err err = {0};
    if (cw_generator_create(&a->generator, &opt, &s->sampling, &err) != CW_OK) {
        a->generator = NULL;
        app_load_failed(a, err.text, strlen(err.text));
    }
}

int app_chat_run(struct app_settings *settings, const struct app_paths *paths) {
    struct app a = {
        .settings = settings,
        .paths = paths,
        .draft_ask_s = -1,
        .dirty = true,
        .status = {.state = UI_STATE_LOADING, .fraction = -1, .left_s = -1},
    };
    struct cw_err err = {0};
    ui_term_locale();
    cw_set_oom_hook(ui_term_emergency);
    if (ui_term_open(settings->color, &err) != CW_OK) {
        fprintf(stderr, "chinwag: %s\n", err.text);
        return 1;
    }
    a.transcript = ui_transcript_create();
    a.keys = ui_keys_create();
    ui_term_define_keys(a.keys);
    ui_screen_init(&a.screen, 1, 1);
    open_input(&a);
    start_generator(&a);
    app_publish(&a);

    loop(&a);

    ui_term_close(); /* first, so that nothing below can leave the terminal as it is */
    cw_generator_destroy(a.generator);
    ui_input_close();
    ui_overlay_destroy(a.overlay);
    ui_screen_free(&a.screen);
    ui_keys_destroy(a.keys);
    ui_transcript_destroy(a.transcript);
    chat_free(&a.chat);
    for (size_t i = 0; i < a.n_queue; i++) {
        free(a.queue[i].text);
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
