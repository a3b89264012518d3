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
#include "app/power.h"
#include "chinwag/clock.h"
#include "chinwag/dirs.h"
#include "ui/term.h"

static const double FRAME_S = 1.0 / 60;
static const double BATTERY_S = 30; /* between two looks at the power supply */

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

void app_apply_settings(struct app *a) {
    app_apply_look(a);
    if (a->plain != NULL) {
        return; /* nothing is captured, and no window named */
    }
    ui_term_mouse(a->settings->mouse);
    if (!a->settings->title && a->title[0] != '\0') {
        ui_term_title(NULL);
        a->title[0] = '\0';
    }
    a->dirty = true;
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* Whether what is being written is evaluated already. */
static bool prefills(struct app *a, double now) {
    if (a->settings->prefill_typing >= 0) {
        return a->settings->prefill_typing == 1;
    }
    if (now >= a->battery_s) {
        a->on_battery = app_on_battery();
        a->battery_s = now + BATTERY_S;
    }
    return !a->on_battery;
}

void app_count_draft(struct app *a, double now) {
    size_t n;
    const char *text = ui_input_text(&n);
    a->draft_ask_s = -1;
    if (a->phase != APP_IDLE) {
        return; /* asked again when the reply has ended */
    }
    if (n > 0) {
        cw_generator_count(a->generator, text, n, a->draft_serial);
    }
    if (prefills(a, now) && !(n > 0 && text[0] == '/')) {
        app_prepare_draft(a);
    }
}

/* What was put in by /read and /glob must leave room for an answer. */
static void check_attached(struct app *a) {
    size_t n_ctx = a->status.n_ctx;
    if (n_ctx > 0 && a->draft_tokens >= n_ctx) {
        for (size_t i = 0; i < a->n_attached; i++) {
            ui_input_detach(a->attached[i]);
        }
        app_hint(a, true, "too long: %zu tokens, the context holds %zu; taken out again",
                 a->draft_tokens, n_ctx);
        app_draft_changed(a);
    } else {
        app_hint(a, false, "the message is %zu tokens now, of %zu in the context", a->draft_tokens,
                 n_ctx);
    }
    a->n_attached = 0;
}

void app_on_events(struct app *a) {
    if (a->draft_known && a->n_attached > 0) {
        check_attached(a);
    }
    bool ended = a->seen_request != 0 && (a->phase != APP_RUNNING || a->request != a->seen_request);
    if (ended) {
        double took_s = cw_now() - a->seen_s;
        a->seen_request = 0;
        if (a->settings->bell && took_s > a->settings->bell_after) {
            char text[64];
            snprintf(text, sizeof text, "the reply is there, after %.0f s", took_s);
            ui_term_notify(text);
        }
    }
    if (a->phase == APP_RUNNING && a->seen_request == 0) {
        a->seen_request = a->request;
        a->seen_s = cw_now();
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

/* When the next frame is due; < 0: none is. */
static double frame_due(const struct app *a) {
    double figures = a->status_old ? a->status_s + APP_STATUS_S : -1;
    if (!a->dirty) {
        return figures;
    }
    return a->urgent ? a->frame_s + FRAME_S : a->frame_s + ui_term_pause();
}

/* Milliseconds until something is due, rounded up; -1: nothing is. */
static int timeout_ms(const struct app *a, double now) {
    double due = frame_due(a);
    due = sooner(due, ui_keys_deadline(a->keys));
    due = sooner(due, a->draft_ask_s);
    due = sooner(due, a->persist.due_s);
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
            app_count_draft(a, now);
        }
        double due = frame_due(a);
        if (due >= 0 && now >= due) {
            a->dirty = false;
            a->frame_s = now;
            app_draw(a);
            ui_term_blit(&a->screen);
            a->urgent = false;
        }
        app_persist_tick(a, now);
        struct pollfd fds[4] = {
            {.fd = ui_term_fd(), .events = POLLIN},
            {.fd = ui_term_wake_fd(), .events = POLLIN},
            {.fd = a->generator ? cw_ring_fd(cw_generator_ring(a->generator)) : -1,
             .events = POLLIN},
            {.fd = app_persist_fd(a), .events = POLLIN},
        };
        if (poll(fds, 4, more_events ? 0 : timeout_ms(a, cw_now())) < 0) {
            continue; /* interrupted: the flag's descriptor is readable now */
        }
        if (fds[1].revents != 0) {
            on_signals(a);
        }
        read_keys(a, fds[0].revents != 0);
        if (fds[2].revents != 0 || more_events) {
            more_events = app_drain(a);
        }
        if (fds[3].revents != 0) {
            app_persist_drain(a);
        }
        app_on_events(a);
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
    app_apply_settings(&a);
    if (notes.len > 0) {
        app_tell(&a, false, notes.data, notes.len);
        cw_buf_free(&notes);
    }
    start_generator(&a);
    app_publish(&a);

    if (a.plain != NULL) {
        app_plain_loop(&a);
    } else {
        loop(&a);
    }
    ui_term_close(); /* first, so that nothing below can leave the terminal as it is */
    cw_generator_destroy(a.generator);
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
