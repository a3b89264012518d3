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
#include <time.h>

#include "app/app_impl.h"
#include "app/cli.h"
#include "chinwag/clock.h"

enum { MAX_EVENTS = 4096 }; /* taken from the ring before keys are looked at again */

/* ---- requests ------------------------------------------------------------------------------- */

const struct cw_model_info *app_model_info(const struct app *a) {
    bool loaded = a->phase == APP_IDLE || a->phase == APP_RUNNING;
    return loaded && a->generator != NULL ? cw_generator_info(a->generator) : NULL;
}

/* A fixed seed would give /regen the same reply again: each further one counts on. */
static uint32_t choose_seed(const struct app *a, const struct chat_message *reply) {
    size_t n;
    size_t i = chat_sibling(&a->chat, reply, &n);
    return cli_seed(a->settings) + (a->settings->seed >= 0 ? (uint32_t)i : 0);
}

int64_t app_wall_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What was sent and will not be answered goes back into the input line, before what stands there.
 */
static void give_back(struct app *a, const char *text) {
    size_t n;
    const char *draft = ui_input_text(&n);
    struct cw_buf whole = {0};
    cw_buf_puts(&whole, text);
    if (n > 0) {
        cw_buf_puts(&whole, "\n\n");
        cw_buf_add(&whole, draft, n);
    }
    ui_input_set(whole.data);
    cw_buf_free(&whole);
    app_draft_changed(a);
}

/* Room was made for nothing: what left is in the context again, and nobody moved. */
static void put_window_back(struct app *a) {
    struct chat *c = &a->chat;
    const struct chat_message *before = a->tree.window_before;
    if (!a->tree.made_room) {
        return;
    }
    a->tree.made_room = false;
    while (c->at > 0 && c->places[c->at].leaf == chat_last(c) &&
           c->places[c->at].window != before) {
        c->n_places = c->at--;
    }
    c->window = a->tree.window_before;
    c->dirty = true;
    app_show_path(a); /* while the message is there that the mark stands before */
}

void app_take_back(struct app *a) {
    put_window_back(a);
    struct chat_message *reply = chat_last(&a->chat);
    struct chat_message *question = reply->parent;
    char *text = cw_strndup(question->text.data ? question->text.data : "", question->text.len);
    bool others = question->n_children > 1; /* it has been answered before */
    for (size_t r = 0; r < a->tree.n_several; r++) {
        if (a->tree.several[r] != reply) {
            chat_remove(&a->chat, a->tree.several[r]);
        }
    }
    a->tree.n_several = 0;
    a->tree.picking = false;
    if (a->mode == &app_mode_several) {
        app_enter(a, NULL);
    }
    app_show_forget(a, reply);
    chat_remove(&a->chat, reply);
    if (others) {
        chat_return(&a->chat); /* the move that came to nothing is gone */
        app_show_path(a);
        if (chat_index(&a->chat, question) == SIZE_MAX) { /* it was asked again */
            give_back(a, text);
        }
        free(text);
        return;
    }
    app_show_forget(a, question);
    if (question->saved.put) {
        a->tree.taken_back.id = question->id;
        a->tree.taken_back.conversation = a->chat.id;
    }
    chat_remove(&a->chat, question);
    give_back(a, text);
    free(text);
    app_show_notes(a);
}

/* What went wrong, and what can be done about it. */
static void tell_failure(struct app *a, const char *intro, int code, const char *why, size_t n) {
    struct cw_buf text = {0};
    cw_buf_printf(&text, "%s%.*s%s", intro, (int)n, why, cli_way_out(code));
    app_tell(a, true, text.data, text.len);
    cw_buf_free(&text);
}

/* The question cannot be answered; what waits behind it could likely not either. */
static void refuse(struct app *a) {
    app_empty_queue(a);
    app_take_back(a);
}

struct cw_request app_request(struct app *a) {
    struct cw_request req = {
        .max_tokens = a->settings->n_predict,
        .stops = (const char *const *)a->settings->stops,
        .think = a->settings->think,
        .lookup = a->settings->lookup != 0,
        .lookup_all = a->settings->lookup == 1,
        .snapshot_key = app_persist_key(a),
    };
    while (req.stops != NULL && req.stops[req.n_stops] != NULL) {
        req.n_stops++;
    }
    return req;
}

/* What the reply will be drawn with, for /why, /replay and the store. */
static void remember_origin(const struct app *a, struct chat_message *m) {
    const struct cw_model_info *info = app_model_info(a);
    const char *system = a->settings->system;
    free(m->system);
    m->system = system != NULL && system[0] != '\0' ? cw_strdup(system) : NULL;
    free(m->model);
    m->model = info != NULL ? cw_strdup(info->name) : NULL;
    free(m->hash);
    m->hash = info != NULL ? cw_strdup(cw_generator_model_hash(a->generator)) : NULL;
    m->exact = info != NULL && info->exact;
    m->window = chat_window(&a->chat) > 0 ? a->chat.window : NULL;
    m->think = a->settings->think;
    memcpy(m->origin, a->settings->origin, sizeof m->origin);
    m->made_ms = app_wall_ms();
}

/* A reply that goes on: where its next token is drawn, and with which seed. */
static void go_on_from(struct app *a, struct chat_message *m, struct cw_request *req) {
    const struct chat_run *last = m->n_runs > 0 ? &m->runs[m->n_runs - 1] : NULL;
    if (last != NULL) {
        req->first_position = last->position + (m->ids.n - last->first);
        req->seed = last->seed;
    }
    const struct cw_tokenizer *tok = cw_generator_tokenizer(a->generator);
    if (m->ids.n > 0 && cw_tokenizer_is_eog(tok, m->ids.v[m->ids.n - 1])) {
        m->ids.n--; /* its position stays used: drawn there again it would end again */
    }
    if (m->stop == CW_STOP_STRING) {
        m->typed = m->text.len; /* its last ids say more than its text */
    }
    m->made_ms = app_wall_ms();
}

static void begin_status(struct app *a) {
    a->phase = APP_RUNNING;
    a->run.cancelled = false;
    a->run.at_start = a->settings->sampling;
    a->status.state = UI_STATE_READING;
    a->status.fraction = -1;
    a->status.left_s = -1;
    a->status.tps = a->status.ttft_s = 0;
    a->status.temp_changed = a->status.top_p_changed = false;
    memset(a->status.spark, 0, sizeof a->status.spark);
    a->dirty = true;
}

bool app_start_job(struct app *a, enum app_job job, struct cw_request *req) {
    struct cw_err err = {0};
    if (cw_generator_start(a->generator, req, &a->run.id, &err) != CW_OK) {
        app_tell(a, true, err.text, strlen(err.text));
        return false;
    }
    a->tree.job = job;
    begin_status(a);
    return true;
}

bool app_start_now(struct app *a, double entered_s, bool go_on, size_t n) {
    struct chat_message *reply = chat_last(&a->chat);
    struct cw_request req = app_request(a);
    struct cw_buf raw = {0}, scratch = {0};
    struct cw_message *messages = NULL;

    req.seed = choose_seed(a, reply);
    req.started_s = entered_s;
    req.detail = true;
    req.continue_reply = go_on;
    req.n_replies = (uint32_t)n;
    if (go_on) {
        go_on_from(a, reply, &req);
    } else {
        remember_origin(a, reply);
    }
    if (cw_generator_has_template(a->generator)) {
        messages = chat_messages(&a->chat, a->settings->system, &scratch, &req.n_messages);
        req.messages = messages;
    } else {
        chat_raw(&a->chat, &raw);
        req.raw = raw.data ? raw.data : "";
        req.raw_len = raw.len;
        req.continue_reply = false;
    }
    /* where the settings moved between two runs it is a change at the run's first token */
    const struct cw_sampling *before = chat_message_sampling(reply);
    const struct cw_sampling *now = &a->settings->sampling;
    if (before != NULL && memcmp(before, now, sizeof *now) != 0) {
        const struct cw_sampling from = *before;
        struct cw_buf label = {0};
        chat_message_change(reply, reply->ids.n, &from, now);
        chat_change_label(&from, now, &label);
        if (label.len > 0) {
            app_show_mark(a, reply, label.data);
        }
        cw_buf_free(&label);
    }
    for (size_t r = 0; r < n; r++) {
        struct chat_message *m = n > 1 ? a->tree.several[r] : reply;
        chat_message_run(m, req.first_position, req.seed + (uint32_t)r, now);
        m->done = false;
        if (r > 0) {
            remember_origin(a, m);
        }
    }
    cw_generator_publish(a->generator, now);
    bool started = app_start_job(a, APP_JOB_REPLY, &req);
    free(messages);
    cw_buf_free(&raw);
    cw_buf_free(&scratch);
    if (!started) {
        if (go_on) {
            reply->done = true;
            put_window_back(a);
        } else {
            refuse(a);
        }
        return false;
    }
    app_show_notes(a);
    ui_transcript_to_end(a->transcript);
    return true;
}

bool app_start(struct app *a, double entered_s, bool go_on, size_t n) {
    a->tree.made_room = false;
    switch (app_make_room(a, entered_s, go_on)) {
    case APP_ROOM:
        return app_start_now(a, entered_s, go_on, n);
    case APP_ROOM_WAIT:
        return true;
    case APP_ROOM_NONE:
        break;
    }
    if (!go_on) {
        refuse(a);
    }
    return false;
}

static void ask(struct app *a, const char *text) {
    chat_mark(&a->chat);
    struct chat_message *m = chat_said(&a->chat, text);
    if (m != NULL) { /* said here before: another reply to it, not another branch like it */
        chat_go(&a->chat, m);
    } else {
        m = chat_add(&a->chat, CHAT_USER);
        if (a->tree.taken_back.conversation == a->chat.id && a->tree.taken_back.id != 0) {
            m->id = a->tree.taken_back.id; /* which it has in the store already */
            a->tree.taken_back.id = 0;
        }
        cw_buf_puts(&m->text, text);
        m->made_ms = app_wall_ms();
        m->done = true;
    }
    chat_add(&a->chat, CHAT_REPLY);
    chat_mark(&a->chat);
    app_show_path(a);
    app_persist_save(a);              /* the question at once */
    app_start(a, cw_now(), false, 1); /* what waited in the queue begins with its turn */
}

static void enqueue(struct app *a, const char *text) {
    a->queue = cw_reallocarray(a->queue, a->n_queue + 1, sizeof *a->queue);
    a->queue[a->n_queue++] = cw_strdup(text);
    a->dirty = true;
}

static void next_in_queue(struct app *a) {
    if (a->n_queue == 0 || a->phase != APP_IDLE) {
        return;
    }
    char *text = a->queue[0];
    a->n_queue--;
    memmove(a->queue, a->queue + 1, a->n_queue * sizeof *a->queue);
    ask(a, text);
    free(text);
}

void app_empty_queue(struct app *a) {
    struct cw_buf all = {0};
    for (size_t i = 0; i < a->n_queue; i++) {
        cw_buf_printf(&all, "%s%s", i > 0 ? "\n\n" : "", a->queue[i]);
        free(a->queue[i]);
    }
    if (a->n_queue > 0) {
        give_back(a, all.data);
    }
    cw_buf_free(&all);
    a->n_queue = 0;
    a->dirty = true;
}

void app_submit(struct app *a, const char *text) {
    if (a->phase == APP_NO_MODEL) {
        ui_input_set(text);
        app_hint(a, true, "there is no model: %s", a->failure);
    } else if (app_edit_sent(a, text)) {
        return;
    } else if (a->phase == APP_IDLE) {
        ask(a, text);
    } else {
        enqueue(a, text);
    }
}

bool app_cancel(struct app *a) {
    if (a->phase != APP_RUNNING) {
        return false;
    }
    a->run.cancelled = true;
    a->status.state = UI_STATE_STOPPING;
    cw_generator_cancel(a->generator);
    a->dirty = true;
    return true;
}

bool app_can_move(struct app *a, bool needs_reply) {
    if (a->phase == APP_RUNNING) {
        app_hint(a, true, "a reply is under way: stop it first (Ctrl+C)");
        return false;
    }
    if (needs_reply && (a->phase != APP_IDLE || a->chat.n == 0)) {
        app_hint(a, true, "there is no reply yet");
        return false;
    }
    return true;
}

void app_prepare_draft(struct app *a) {
    size_t n;
    const char *text = ui_input_text(&n);
    if (a->phase != APP_IDLE || !cw_generator_has_template(a->generator) || a->tree.editing != 0) {
        return;
    }
    if (n == 0 || text[0] == '/') {
        cw_generator_prepare(a->generator, NULL);
        return;
    }
    struct cw_request req = app_request(a);
    struct cw_buf scratch = {0};
    struct cw_message *messages = chat_messages_of(&a->chat, chat_window(&a->chat), a->chat.n,
                                                   a->settings->system, &scratch, &req.n_messages);
    messages[req.n_messages++] = (struct cw_message){.role = "user", .content = text, .len = n};
    req.messages = messages;
    cw_generator_prepare(a->generator, &req);
    free(messages);
    cw_buf_free(&scratch);
}

void app_new_chat(struct app *a) {
    if (!app_can_move(a, false)) {
        return;
    }
    app_persist_save(a);
    chat_clear(&a->chat);
    app_persist_new(a);
    app_show_clear(a);
    a->status.ctx_used = 0;
    a->status.tps = a->status.ttft_s = 0;
    a->status.n_reused = a->status.n_evaluated = a->status.anew_from = 0;
    a->dirty = true;
}

void app_publish(struct app *a) {
    const struct cw_sampling *now = &a->settings->sampling;
    if (a->generator != NULL && a->tree.job != APP_JOB_REPLAY) { /* that has its own */
        cw_generator_publish(a->generator, now);
    }
    a->status.temp = (double)now->temp;
    a->status.top_p = (double)now->top_p;
    bool running = a->phase == APP_RUNNING;
    /* compared as they were set, so equal means untouched */
    a->status.temp_changed =
        running && (now->temp < a->run.at_start.temp || now->temp > a->run.at_start.temp);
    a->status.top_p_changed =
        running && (now->top_p < a->run.at_start.top_p || now->top_p > a->run.at_start.top_p);
    a->dirty = true;
}

/* ---- events of the generator ---------------------------------------------------------------- */

static struct chat_message *reply_of(struct app *a, uint32_t r) {
    if (a->tree.n_several > 0) {
        return r < a->tree.n_several ? a->tree.several[r] : NULL;
    }
    return chat_last(&a->chat);
}

static void on_token(struct app *a, const struct cw_event *ev) {
    struct chat_message *m = reply_of(a, ev->reply);
    if (m == NULL) {
        return;
    }
    bool first = ev->u.token.first_part;
    if (first) {
        chat_message_token(m, &ev->u.token.draw, ev->u.token.thinking, ev->text, ev->n_text);
        m->tokens[m->ids.n - 1].forced = ev->u.token.forced;
    } else {
        chat_message_more(m, ev->u.token.thinking, ev->text, ev->n_text);
    }
    if (m == chat_last(&a->chat) && !a->tree.picking) {
        app_show_token(a, m, first, ev->u.token.thinking, ev->text, ev->n_text);
    }
}

static void spark(struct app *a, const struct cw_event *ev) {
    if (!a->run.cancelled) {
        if (a->status.state == UI_STATE_READING && a->tree.made_room) {
            a->hint[0] = '\0'; /* offered to cancel it; the transcript keeps a line */
        }
        a->status.state = ev->u.token.thinking ? UI_STATE_THINKING : UI_STATE_ANSWERING;
    }
    double now = cw_now();
    if (ev->figures.tps > 0 && now - a->run.spark_s >= UI_SPARK_S) {
        memmove(a->status.spark, a->status.spark + 1, (UI_SPARK - 1) * sizeof a->status.spark[0]);
        a->status.spark[UI_SPARK - 1] = ev->figures.tps;
        a->run.spark_s = now;
    }
}

/* New settings hold for every reply of the request. */
static void on_change(struct app *a, const struct cw_event *ev) {
    struct cw_buf label = {0};
    size_t n = a->tree.n_several > 0 ? a->tree.n_several : 1;
    for (size_t r = 0; r < n; r++) {
        struct chat_message *m = reply_of(a, (uint32_t)r);
        if (!m->done) {
            chat_message_change(m, m->ids.n, &ev->u.change.from, &ev->u.change.to);
        }
    }
    chat_change_label(&ev->u.change.from, &ev->u.change.to, &label);
    if (label.len > 0 && !a->tree.picking) {
        app_show_mark(a, chat_last(&a->chat), label.data);
    }
    cw_buf_free(&label);
}

/* The reply was to go on, and not one token came. */
static bool went_on_for_nothing(const struct chat_message *m) {
    return (m->ids.n > 0 || m->typed > 0) && m->n_runs > 0 &&
           m->runs[m->n_runs - 1].first == m->ids.n;
}

static void reply_done(struct app *a, struct chat_message *m, const struct cw_event *ev) {
    m->done = true;
    if (ev->u.done.stop == CW_STOP_ERROR && went_on_for_nothing(m)) {
        return; /* it is as it was, and ended as it had */
    }
    m->stop = ev->u.done.stop;
    m->figures = ev->figures;
    for (size_t k = 0; k < m->ids.n; k++) {
        m->dirty = m->dirty || m->tokens[k].forced; /* which appending does not tell */
    }
    app_account(a, m);
}

/* One of several replies asked for together. */
static void on_reply_done(struct app *a, const struct cw_event *ev) {
    struct chat_message *m = reply_of(a, ev->reply);
    if (m != NULL) {
        reply_done(a, m, ev);
    }
}

/* Replies of which nothing came are taken out. */
static void several_done(struct app *a, const struct cw_event *ev) {
    size_t kept = 0;
    for (size_t r = 0; r < a->tree.n_several; r++) {
        struct chat_message *m = a->tree.several[r];
        if (m->ids.n > 0 || a->tree.n_several - r + kept <= 1) {
            a->tree.several[kept++] = m;
            if (!m->done) {
                reply_done(a, m, ev);
            }
        } else {
            if (m == chat_last(&a->chat)) { /* the path goes through one that stays */
                chat_go(&a->chat, kept > 0 ? a->tree.several[0] : a->tree.several[r + 1]);
            }
            chat_remove(&a->chat, m);
        }
    }
    a->tree.n_several = kept;
    if (a->tree.picked >= kept) {
        a->tree.picked = 0;
    }
    bool only = kept == 1 && a->tree.picking; /* nothing to choose from */
    if (only) {
        a->tree.picking = false;
        app_enter(a, NULL);
    }
    if (!a->tree.picking) {
        a->tree.n_several = 0;
    }
    chat_mark(&a->chat);
    if (only) {
        app_show_again(a); /* its text was shown beside the others only */
    } else {
        app_show_path(a);
    }
}

static void on_done(struct app *a, const struct cw_event *ev) {
    enum cw_stop stop = ev->u.done.stop;
    a->phase = APP_IDLE;
    a->status.state = UI_STATE_IDLE;
    if (a->tree.n_several > 0) {
        several_done(a, ev);
    }
    struct chat_message *m = chat_last(&a->chat);
    if (!a->tree.picking) {
        reply_done(a, m, ev);
    }
    bool nothing = m->text.len + m->reasoning.len == 0 && !a->tree.picking;
    bool full = stop == CW_STOP_CONTEXT || (stop == CW_STOP_ERROR && ev->u.done.code == CW_EFULL);
    if (full && !a->tree.picking && app_room_after_all(a)) {
        return; /* it goes on */
    }
    bool came_to_nothing =
        (nothing || went_on_for_nothing(m)) && (stop == CW_STOP_CANCEL || stop == CW_STOP_ERROR);
    if (a->tree.made_room) { /* the line that offered to cancel it */
        a->hint[0] = '\0';
    }
    if (stop == CW_STOP_ERROR && full) {
        app_say_full(a);
    }
    if (came_to_nothing) {
        put_window_back(a);
    }
    if (stop == CW_STOP_ERROR && !full) {
        tell_failure(a, "", ev->u.done.code, ev->text, ev->n_text);
    }
    if (nothing && came_to_nothing) {
        if (stop == CW_STOP_ERROR) {
            refuse(a);
        } else {
            app_take_back(a);
        }
        app_show_path(a);
    } else {
        app_show_done(a, m);
    }
    app_persist_save(a);
    if (!ui_input_empty()) {
        app_draft_changed(a);
    }
    next_in_queue(a);
}

/* A request that is not for the conversation. */
static void on_job(struct app *a, const struct cw_event *ev) {
    bool summary = a->tree.job == APP_JOB_SUMMARY;
    switch (ev->kind) {
    case CW_EV_TOKEN:
        spark(a, ev);
        if (!summary) {
            app_replay_token(a, ev);
        } else if (!ev->u.token.thinking) {
            app_summary_token(a, ev->text, ev->n_text);
        }
        break;
    case CW_EV_DONE: {
        char line[CW_EVENT_TEXT + 1];
        snprintf(line, sizeof line, "%.*s", (int)ev->n_text, ev->text);
        a->phase = APP_IDLE;
        a->status.state = UI_STATE_IDLE;
        a->tree.job = APP_JOB_REPLY;
        if (summary) {
            app_summary_done(a, ev->u.done.stop);
        } else {
            app_replay_done(a, ev->u.done.stop, line);
        }
        if (a->phase == APP_IDLE) {
            next_in_queue(a);
        }
        break;
    }
    default:
        break;
    }
}

static void on_ready(struct app *a) {
    struct cw_sampling recommended;
    unsigned set = cw_generator_file_sampling(a->generator, &recommended);
    app_settings_from_file(a->settings, set, &recommended);
    a->phase = APP_IDLE;
    a->status.state = UI_STATE_IDLE;
    app_publish(a);
    if (!cw_generator_has_template(a->generator)) {
        const char *system = a->settings->system;
        struct cw_buf text = {0};
        cw_buf_printf(&text,
                      "This model has no chat template: what is written goes on as plain text%s "
                      "(--chat-template NAME or FILE gives it one).",
                      system != NULL && system[0] != '\0' ? ", without the system prompt" : "");
        app_tell(a, false, text.data, text.len);
        cw_buf_free(&text);
    }
    next_in_queue(a);
}

void app_load_failed(struct app *a, int code, const char *why, size_t n) {
    tell_failure(a, "The model cannot be used: ", code, why, n);
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
    double spent = cw_now() - a->run.prompt_s;
    a->status.fraction = total > 0 ? (double)done / (double)total : -1;
    a->status.left_s = done > 0 && spent > 0.2 ? spent / (double)done * (double)(total - done) : -1;
}

static void on_event(struct app *a, const struct cw_event *ev) {
    if (ev->kind == CW_EV_TOKEN || ev->kind == CW_EV_DONE) {
        app_persist_changed(a);
    }
    bool ours = ev->request != 0 && ev->request == a->run.id && a->phase == APP_RUNNING;
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
        app_load_failed(a, ev->u.done.code, ev->text, ev->n_text);
        break;
    case CW_EV_NOTICE:
        app_tell(a, false, ev->text, ev->n_text);
        break;
    case CW_EV_PROMPT:
        a->run.prompt_s = cw_now();
        a->status.anew_from =
            ev->u.prompt.retokenised_from == SIZE_MAX ? 0 : ev->u.prompt.retokenised_from;
        a->status.not_restored = ev->u.prompt.snapshot_refused;
        break;
    case CW_EV_PROGRESS:
        if (ours) {
            on_progress(a, ev->u.progress.done, ev->u.progress.total);
        }
        break;
    case CW_EV_TOKEN:
        if (ours && a->tree.job == APP_JOB_REPLY) {
            spark(a, ev);
            on_token(a, ev);
        } else if (ours) {
            on_job(a, ev);
        }
        break;
    case CW_EV_CHANGE:
        if (ours && a->tree.job == APP_JOB_REPLY) {
            on_change(a, ev);
        }
        break;
    case CW_EV_REPLY_DONE:
        if (ours && a->tree.job == APP_JOB_REPLY) {
            on_reply_done(a, ev);
        }
        break;
    case CW_EV_DONE:
        if (ours && a->tree.job == APP_JOB_REPLY) {
            on_done(a, ev);
        } else if (ours) {
            on_job(a, ev);
        }
        break;
    case CW_EV_COUNT:
        app_draft_counted(a, ev->u.count.serial, ev->u.count.n);
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
