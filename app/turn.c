/* SPDX-License-Identifier: MIT
 *
 * Turns of the conversation: requests to the generator, and what its events make of them.
 *
 * The generator knows nothing of the conversation: each request hands it over anew, replies as the
 * ids that were generated. Settings are published to it as they change. A question that gets no
 * answer (stopped before the first token, refused by the template) goes back into the input line,
 * so that the history always alternates.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app_impl.h"
#include "app/cli.h"
#include "chinwag/clock.h"

static const double SPARK_S = 0.4; /* between two values of the spark line */

enum { MAX_EVENTS = 4096 }; /* taken from the ring before keys are looked at again */

/* ---- requests ------------------------------------------------------------------------------- */

const struct cw_model_info *app_model_info(const struct app *a) {
    bool loaded = a->phase == APP_IDLE || a->phase == APP_RUNNING;
    return loaded ? cw_generator_info(a->generator) : NULL;
}

static const char *model_name(const struct app *a) {
    const struct cw_model_info *info = app_model_info(a);
    return info != NULL ? info->name : "";
}

/* A fixed seed would give /regen the same reply again: each further one counts on. */
static uint32_t choose_seed(const struct app *a) {
    return cli_seed(a->settings) + (a->settings->seed >= 0 ? a->n_regenerated : 0);
}

/* Take a question that got no answer out of the conversation and give it back to the person. */
static void take_back(struct app *a) {
    struct chat_message *reply = chat_last(&a->chat);
    ui_transcript_remove(a->transcript, reply->thinking_block);
    ui_transcript_remove(a->transcript, reply->block);
    chat_drop_last(&a->chat);
    struct chat_message *question = chat_last(&a->chat);
    if (question == NULL) {
        return;
    }
    ui_transcript_remove(a->transcript, question->block);
    if (ui_input_empty()) {
        ui_input_set(question->text.data ? question->text.data : "");
    } else {
        app_hint(a, false, "the unanswered question was taken back; Up brings it");
    }
    chat_drop_last(&a->chat);
}

/* Ask for the last reply of the conversation, which is empty or to be continued. */
static void start(struct app *a, double entered_s, bool go_on) {
    struct chat_message *reply = chat_last(&a->chat);
    struct cw_request req = {
        .max_tokens = a->settings->n_predict,
        .stops = (const char *const *)a->settings->stops,
        .seed = choose_seed(a),
        .think = a->settings->think,
        .started_s = entered_s,
        .continue_reply = go_on,
    };
    struct cw_buf raw = {0};
    struct cw_message *messages = NULL;
    struct cw_err err = {0};

    while (req.stops != NULL && req.stops[req.n_stops] != NULL) {
        req.n_stops++;
    }
    if (cw_generator_has_template(a->generator)) {
        messages = chat_messages(&a->chat, a->settings->system, &req.n_messages);
        req.messages = messages;
    } else {
        chat_raw(&a->chat, &raw);
        req.raw = raw.data ? raw.data : "";
        req.raw_len = raw.len;
        req.continue_reply = false;
    }
    reply->seed = req.seed;
    reply->done = false;
    cw_generator_publish(a->generator, &a->settings->sampling);
    int code = cw_generator_start(a->generator, &req, &a->request, &err);
    free(messages);
    cw_buf_free(&raw);
    if (code != CW_OK) {
        app_tell(a, true, err.text, strlen(err.text));
        if (go_on) {
            reply->done = true;
        } else {
            take_back(a);
        }
        return;
    }
    a->phase = APP_RUNNING;
    a->cancelled = false;
    a->at_start = a->settings->sampling;
    a->status.state = UI_STATE_READING;
    a->status.fraction = -1;
    a->status.left_s = -1;
    a->status.tps = a->status.ttft_s = 0;
    a->status.temp_changed = a->status.top_p_changed = false;
    memset(a->status.spark, 0, sizeof a->status.spark);
    ui_transcript_to_end(a->transcript);
    a->dirty = true;
}

static void ask(struct app *a, const char *text, double entered_s) {
    struct chat_message *m = chat_add(&a->chat, CHAT_USER);
    cw_buf_puts(&m->text, text);
    m->block = ui_transcript_add(a->transcript, UI_BLOCK_USER, "you");
    ui_transcript_append(a->transcript, m->block, text, m->text.len);
    ui_transcript_finish(a->transcript, m->block);
    chat_add(&a->chat, CHAT_REPLY);
    a->n_regenerated = 0;
    start(a, entered_s, false);
}

static void enqueue(struct app *a, const char *text) {
    a->queue = cw_reallocarray(a->queue, a->n_queue + 1, sizeof *a->queue);
    a->queue[a->n_queue++] = (struct app_queued){cw_strdup(text), cw_now()};
    a->dirty = true;
}

static void next_in_queue(struct app *a) {
    if (a->n_queue == 0 || a->phase != APP_IDLE) {
        return;
    }
    struct app_queued first = a->queue[0];
    a->n_queue--;
    memmove(a->queue, a->queue + 1, a->n_queue * sizeof *a->queue);
    ask(a, first.text, first.entered_s);
    free(first.text);
}

void app_empty_queue(struct app *a) {
    for (size_t i = 0; i < a->n_queue; i++) {
        if (ui_input_empty()) {
            ui_input_set(a->queue[i].text);
        }
        free(a->queue[i].text);
    }
    a->n_queue = 0;
    a->dirty = true;
}

void app_submit(struct app *a, const char *text) {
    if (a->phase == APP_NO_MODEL) {
        ui_input_set(text);
        app_hint(a, true, "there is no model: %s", a->failure);
    } else if (a->phase == APP_IDLE) {
        ask(a, text, cw_now());
    } else {
        enqueue(a, text);
    }
}

bool app_cancel(struct app *a) {
    if (a->phase != APP_RUNNING) {
        return false;
    }
    a->cancelled = true;
    a->status.state = UI_STATE_STOPPING;
    cw_generator_cancel(a->generator);
    a->dirty = true;
    return true;
}

static bool can_change_history(struct app *a) {
    if (a->phase == APP_RUNNING) {
        app_hint(a, true, "a reply is under way: stop it first (Ctrl+C)");
        return false;
    }
    if (a->phase != APP_IDLE || a->chat.n == 0) {
        app_hint(a, true, "there is no reply yet");
        return false;
    }
    return true;
}

bool app_regenerate(struct app *a) {
    if (!can_change_history(a)) {
        return false;
    }
    struct chat_message *reply = chat_last(&a->chat);
    ui_transcript_remove(a->transcript, reply->thinking_block);
    ui_transcript_remove(a->transcript, reply->block);
    chat_drop_last(&a->chat);
    chat_add(&a->chat, CHAT_REPLY);
    a->n_regenerated++;
    start(a, cw_now(), false);
    return true;
}

bool app_continue(struct app *a) {
    if (!can_change_history(a)) {
        return false;
    }
    ui_transcript_set_note(a->transcript, chat_last(&a->chat)->block, NULL);
    start(a, cw_now(), true);
    return true;
}

bool app_undo(struct app *a) {
    if (!can_change_history(a)) {
        return false;
    }
    take_back(a);
    return true;
}

void app_new_chat(struct app *a) {
    if (a->phase == APP_RUNNING) {
        app_hint(a, true, "a reply is under way: stop it first (Ctrl+C)");
        return;
    }
    chat_clear(&a->chat);
    ui_transcript_clear(a->transcript);
    a->status.ctx_used = 0;
    a->status.tps = a->status.ttft_s = 0;
    a->status.n_reused = a->status.n_evaluated = a->status.anew_from = 0;
    a->dirty = true;
}

void app_publish(struct app *a) {
    const struct cw_sampling *now = &a->settings->sampling;
    if (a->generator != NULL) {
        cw_generator_publish(a->generator, now);
    }
    a->status.temp = (double)now->temp;
    a->status.top_p = (double)now->top_p;
    bool running = a->phase == APP_RUNNING;
    /* compared as they were set, so equal means untouched */
    a->status.temp_changed =
        running && (now->temp < a->at_start.temp || now->temp > a->at_start.temp);
    a->status.top_p_changed =
        running && (now->top_p < a->at_start.top_p || now->top_p > a->at_start.top_p);
    a->dirty = true;
}

/* ---- events of the generator ---------------------------------------------------------------- */

/* The block of the transcript that text goes to, made when it is first needed. */
static uint32_t reply_block(struct app *a, struct chat_message *m, bool thinking) {
    uint32_t *block = thinking ? &m->thinking_block : &m->block;
    if (*block == 0) {
        char heading[160];
        snprintf(heading, sizeof heading, "%s%s", model_name(a), thinking ? " (thinking)" : "");
        *block = ui_transcript_add(a->transcript, thinking ? UI_BLOCK_THINKING : UI_BLOCK_REPLY,
                                   heading);
    }
    return *block;
}

static void on_token(struct app *a, const struct cw_event *ev) {
    struct chat_message *m = chat_last(&a->chat);
    if (ev->u.token.first_part) {
        cw_ids_add(&m->ids, ev->u.token.draw.id);
    }
    const char *text = ev->text;
    size_t n = ev->n_text;
    struct cw_buf *to = ev->u.token.thinking ? &m->reasoning : &m->text;
    bool first = to->len == 0;
    cw_buf_add(to, text, n);
    while (first && n > 0 && *text == '\n') { /* blank lines on top are kept but not shown */
        text++;
        n--;
    }
    if (n > 0) {
        ui_transcript_append(a->transcript, reply_block(a, m, ev->u.token.thinking), text, n);
    }
    if (!a->cancelled) {
        a->status.state = UI_STATE_ANSWERING;
    }
    double now = cw_now();
    if (ev->figures.tps > 0 && now - a->spark_s >= SPARK_S) {
        memmove(a->status.spark, a->status.spark + 1, (UI_SPARK - 1) * sizeof a->status.spark[0]);
        a->status.spark[UI_SPARK - 1] = ev->figures.tps;
        a->spark_s = now;
    }
}

static void on_change(struct app *a, const struct cw_event *ev) {
    struct chat_message *m = chat_last(&a->chat);
    chat_message_change(m, ev->u.change.position, &ev->u.change.from, &ev->u.change.to);
    struct cw_buf label = {0};
    chat_change_label(&ev->u.change.from, &ev->u.change.to, &label);
    if (label.len > 0) {
        bool thinking = m->block == 0 && m->thinking_block != 0;
        ui_transcript_mark(a->transcript, reply_block(a, m, thinking), label.data);
    }
    cw_buf_free(&label);
}

static void on_done(struct app *a, const struct cw_event *ev) {
    struct chat_message *m = chat_last(&a->chat);
    enum cw_stop stop = ev->u.done.stop;
    a->phase = APP_IDLE;
    a->status.state = UI_STATE_IDLE;
    m->done = true;
    m->stop = stop;
    m->figures = ev->figures;
    bool nothing = m->text.len + m->reasoning.len == 0;
    if (stop == CW_STOP_ERROR) {
        app_tell(a, true, ev->text, ev->n_text);
    }
    if (nothing && (stop == CW_STOP_CANCEL || stop == CW_STOP_ERROR)) {
        take_back(a);
        if (stop == CW_STOP_ERROR) {
            app_empty_queue(a); /* the next one would likely fail as well */
        }
    } else {
        const char *note = stop == CW_STOP_CANCEL    ? "stopped"
                           : stop == CW_STOP_LENGTH  ? "cut at the limit of its length"
                           : stop == CW_STOP_CONTEXT ? "cut: the context is full"
                           : stop == CW_STOP_ERROR   ? "broken off"
                           : nothing                 ? "said nothing"
                                                     : NULL;
        ui_transcript_set_note(a->transcript, reply_block(a, m, false), note);
        ui_transcript_finish(a->transcript, m->thinking_block);
        ui_transcript_finish(a->transcript, m->block);
    }
    if (!ui_input_empty()) {
        a->draft_ask_s = cw_now() + APP_DRAFT_PAUSE_S;
    }
    next_in_queue(a);
}

static void on_ready(struct app *a) {
    struct cw_sampling recommended;
    unsigned set = cw_generator_file_sampling(a->generator, &recommended);
    app_settings_from_file(a->settings, set, &recommended);
    a->phase = APP_IDLE;
    a->status.state = UI_STATE_IDLE;
    app_publish(a);
    if (!cw_generator_has_template(a->generator)) {
        static const char text[] =
            "This model has no chat template: what is written goes on as plain text.";
        app_tell(a, false, text, sizeof text - 1);
    }
    next_in_queue(a);
}

void app_load_failed(struct app *a, const char *why, size_t n) {
    static const char intro[] = "The model cannot be used: ";
    struct cw_buf text = {0};
    cw_buf_add(&text, intro, sizeof intro - 1);
    cw_buf_add(&text, why, n);
    app_tell(a, true, text.data, text.len);
    cw_buf_free(&text);
    snprintf(a->failure, sizeof a->failure, "%.*s", (int)n, why);
    a->phase = APP_NO_MODEL;
    a->status.state = UI_STATE_FAILED;
    app_empty_queue(a);
}

static void take_figures(struct app *a, const struct cw_figures *f) {
    a->status.tps = f->tps;
    a->status.ttft_s = f->ttft_s;
    a->status.n_reused = f->n_reused;
    a->status.n_evaluated = f->n_evaluated;
    if (f->n_ctx > 0) {
        a->status.ctx_used = f->n_ctx_used;
        a->status.n_ctx = f->n_ctx;
    }
}

static void on_progress(struct app *a, uint64_t done, uint64_t total) {
    double spent = cw_now() - a->prompt_s;
    a->status.fraction = total > 0 ? (double)done / (double)total : -1;
    a->status.left_s = done > 0 && spent > 0.2 ? spent / (double)done * (double)(total - done) : -1;
}

static void on_event(struct app *a, const struct cw_event *ev) {
    bool ours = ev->request != 0 && ev->request == a->request && a->phase == APP_RUNNING;
    if (ours) {
        take_figures(a, &ev->figures);
    }
    switch (ev->kind) {
    case CW_EV_LOADING:
        a->status.fraction = ev->u.progress.total > 0
                                 ? (double)ev->u.progress.done / (double)ev->u.progress.total
                                 : -1;
        break;
    case CW_EV_READY:
        take_figures(a, &ev->figures);
        app_hint(a, false, "%.*s", (int)ev->n_text, ev->text); /* the context's size and why */
        on_ready(a);
        break;
    case CW_EV_FAILED:
        app_load_failed(a, ev->text, ev->n_text);
        break;
    case CW_EV_NOTICE:
        app_tell(a, false, ev->text, ev->n_text);
        break;
    case CW_EV_PROMPT:
        a->prompt_s = cw_now();
        a->status.anew_from =
            ev->u.prompt.retokenised_from == SIZE_MAX ? 0 : ev->u.prompt.retokenised_from;
        break;
    case CW_EV_PROGRESS:
        if (ours) {
            on_progress(a, ev->u.progress.done, ev->u.progress.total);
        }
        break;
    case CW_EV_TOKEN:
        if (ours) {
            on_token(a, ev);
        }
        break;
    case CW_EV_CHANGE:
        if (ours) {
            on_change(a, ev);
        }
        break;
    case CW_EV_DONE:
        if (ours) {
            on_done(a, ev);
        }
        break;
    case CW_EV_COUNT:
        if (ev->u.count.serial == a->draft_serial) {
            a->draft_tokens = ev->u.count.n;
            a->draft_known = true;
        }
        break;
    }
    a->dirty = true;
}

bool app_drain(struct app *a) {
    struct cw_ring *ring = cw_generator_ring(a->generator);
    struct cw_event ev;
    cw_ring_ack(ring);
    for (int i = 0; i < MAX_EVENTS; i++) {
        if (!cw_ring_pop(ring, &ev)) {
            return false;
        }
        on_event(a, &ev);
    }
    return true;
}
