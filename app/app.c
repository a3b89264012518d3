/* SPDX-License-Identifier: MIT
 *
 * The event loop of the chat.
 *
 * One thread, one poll: keys, signals, the generator's ring, and at most one timer (the next frame,
 * a lone Esc, a pause in typing). Everything else is a reaction to one of these. What is shown is
 * drawn at most 60 times a second, and only when something changed; with nothing to do the poll
 * waits for ever.
 *
 * The generator knows nothing of the conversation: each request hands it over anew, replies as the
 * ids that were generated. Settings are published to it as they change.
 */
#include "app/app.h"

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "app/app_impl.h"
#include "app/commands.h"
#include "app/engine.h"
#include "chinwag/clock.h"
#include "ui/keymap.h"
#include "ui/term.h"

static const double FRAME_S = 1.0 / 60;
static const double DRAFT_PAUSE_S = 0.15; /* without a key before the draft's tokens are counted */
static const double SPARK_S = 0.4;

enum { MAX_EVENTS = 4096 }; /* taken from the ring before keys are looked at again */

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

/* ---- requests ------------------------------------------------------------------------------- */

const struct cw_model_info *app_model_info(const struct app *a) {
    bool loaded = a->phase == APP_IDLE || a->phase == APP_RUNNING;
    return loaded ? cw_generator_info(a->generator) : NULL;
}

static const char *model_name(const struct app *a) {
    const struct cw_model_info *info = app_model_info(a);
    return info != NULL ? info->name : "";
}

static uint32_t choose_seed(const struct app *a) {
    uint32_t seed;
    if (a->settings->seed >= 0) {
        return (uint32_t)a->settings->seed + a->n_regenerated;
    }
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) {
        seed = (uint32_t)(cw_now() * 1e6);
    }
    return seed;
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
    a->kept_bytes = reply->text.len + reply->reasoning.len;
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

/* Give what waits back to the person: nothing will answer it, or not now. */
static void empty_queue(struct app *a) {
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
    a->status.n_reused = a->status.n_evaluated = 0;
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

/* A live key: move a setting by a step, on the grid of steps. */
static void nudge(struct app *a, const char *name, int steps, int per_unit) {
    const struct app_option *o = app_option_find(name);
    double value = strcmp(name, "temp") == 0 ? (double)a->settings->sampling.temp
                                             : (double)a->settings->sampling.top_p;
    double at = value * per_unit;
    double point = floor(at + 0.5);
    bool on_grid = fabs(at - point) < 1e-3;
    double to = (on_grid ? point + steps : steps > 0 ? ceil(at) : floor(at)) / per_unit;
    to = to < o->min ? o->min : to > o->max ? o->max : to;
    char text[32];
    struct cw_err err = {0};
    snprintf(text, sizeof text, "%.2f", to);
    if (app_settings_set(a->settings, o, text, APP_LIVE, &err) != CW_OK) {
        app_hint(a, true, "%s", err.text);
    }
    app_publish(a);
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
        if (stop == CW_STOP_ERROR) {
            empty_queue(a);
        }
        take_back(a);
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
        a->draft_ask_s = cw_now() + DRAFT_PAUSE_S;
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

static void on_failed(struct app *a, const char *why, size_t n) {
    static const char intro[] = "The model cannot be used: ";
    struct cw_buf text = {0};
    cw_buf_add(&text, intro, sizeof intro - 1);
    cw_buf_add(&text, why, n);
    app_tell(a, true, text.data, text.len);
    cw_buf_free(&text);
    snprintf(a->failure, sizeof a->failure, "%.*s", (int)n, why);
    a->phase = APP_NO_MODEL;
    a->status.state = UI_STATE_FAILED;
    empty_queue(a);
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
        on_ready(a);
        break;
    case CW_EV_FAILED:
        on_failed(a, ev->text, ev->n_text);
        break;
    case CW_EV_NOTICE:
        app_tell(a, false, ev->text, ev->n_text);
        break;
    case CW_EV_PROMPT:
        a->prompt_s = cw_now();
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

/* Returns whether there may be more. */
static bool drain(struct app *a) {
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

/* ---- keys ----------------------------------------------------------------------------------- */

/* Ctrl+C and SIGINT: what is nearest to being stopped is stopped. */
static void interrupt(struct app *a) {
    if (a->overlay != NULL) {
        app_show_page(a, NULL);
    } else if (ui_input_captive()) {
        ui_input_clear();
    } else if (app_cancel(a)) {
        return;
    } else if (a->n_queue > 0) {
        empty_queue(a);
    } else if (!ui_input_empty()) {
        ui_input_clear();
    } else {
        app_hint(a, false, "Ctrl+D or /exit leaves, F1 helps");
    }
    a->draft_known = false;
    a->dirty = true;
}

static void on_sent(struct app *a) {
    char *text = ui_input_take();
    struct cw_err err = {0};
    if (ui_input_remember(text, &err) != CW_OK) {
        app_tell(a, true, err.text, strlen(err.text));
    }
    a->draft_known = false;
    a->draft_ask_s = -1;
    if (app_is_command(text)) {
        app_command_run(a, text);
    } else {
        app_submit(a, text);
    }
    free(text);
}

/* The file's text without the newline that editors put at the end. */
static char *read_draft(const char *path) {
    struct cw_buf text = {0};
    char bytes[4096];
    size_t n;
    FILE *f = fopen(path, "re");
    while (f != NULL && (n = fread(bytes, 1, sizeof bytes, f)) > 0) {
        cw_buf_add(&text, bytes, n);
    }
    if (f != NULL) {
        fclose(f);
    }
    text.len -= text.len > 0 && text.data[text.len - 1] == '\n';
    cw_buf_putc(&text, '\0');
    return cw_buf_take(&text);
}

/* Write the message in an editor. Sending it stays the person's business. */
static void edit_draft(struct app *a) {
    const char *tmp = getenv("TMPDIR");
    const char *editor = getenv("VISUAL");
    editor = editor && editor[0] ? editor : getenv("EDITOR");
    editor = editor && editor[0] ? editor : "vi";
    struct cw_buf path = {0}, command = {0};
    cw_buf_printf(&path, "%s/chinwag-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
    cw_buf_printf(&command, "%s \"$1\"", editor); /* may hold arguments, as in a shell */
    size_t n;
    const char *text = ui_input_text(&n);
    int fd = mkostemp(path.data, O_CLOEXEC); /* mode 0600 */
    bool written = fd >= 0 && write(fd, text, n) == (ssize_t)n;
    if (fd >= 0) {
        close(fd);
    }
    if (!written) {
        app_hint(a, true, "the message cannot be written to %s", path.data);
    } else if (ui_term_run(command.data, path.data) != 0) {
        app_hint(a, true, "the editor failed, the message is as it was: %s", editor);
    } else {
        char *draft = read_draft(path.data);
        ui_input_clear();
        ui_input_paste(draft, strlen(draft));
        free(draft);
    }
    if (fd >= 0) {
        unlink(path.data);
    }
    cw_buf_free(&path);
    cw_buf_free(&command);
    a->dirty = true;
}

static void overlay_key(struct app *a, const struct ui_key *key) {
    int page = a->screen.rows > 6 ? a->screen.rows - 6 : 1;
    switch (key->code) {
    case UI_KEY_UP:
        ui_overlay_scroll(a->overlay, -1);
        break;
    case UI_KEY_DOWN:
    case UI_KEY_ENTER:
        ui_overlay_scroll(a->overlay, 1);
        break;
    case UI_KEY_PGUP:
        ui_overlay_scroll(a->overlay, -page);
        break;
    case UI_KEY_PGDN:
    case ' ':
        ui_overlay_scroll(a->overlay, page);
        break;
    case UI_KEY_HOME:
        ui_overlay_scroll(a->overlay, -100000);
        break;
    case UI_KEY_END:
        ui_overlay_scroll(a->overlay, 100000);
        break;
    case UI_KEY_ESC:
    case UI_KEY_F1:
    case 'q':
    case '?':
        app_show_page(a, NULL);
        break;
    default:
        switch (ui_keymap_find(key->code, key->mods)) {
        case UI_ACT_INTERRUPT:
        case UI_ACT_LEAVE:
            app_show_page(a, NULL);
            break;
        case UI_ACT_SUSPEND:
            ui_term_suspend();
            break;
        case UI_ACT_REDRAW:
            ui_term_redraw();
            break;
        default:
            break;
        }
    }
    a->dirty = true;
}

/* Our own keys. False: the key is the input line's. */
static bool act(struct app *a, enum ui_action action, const struct ui_key *key) {
    struct ui_transcript *t = a->transcript;
    /* while readline waits for the rest of something, only keys it cannot mean are ours */
    bool special = key->code >= UI_KEY_NONE && key->code != UI_KEY_ESC && key->code != UI_KEY_ENTER;
    if (ui_input_captive() && !special && action != UI_ACT_INTERRUPT) {
        return false;
    }
    switch (action) {
    case UI_ACT_HELP:
        app_show_help(a);
        return true;
    case UI_ACT_TEMP_DOWN:
        nudge(a, "temp", -1, 20);
        return true;
    case UI_ACT_TEMP_UP:
        nudge(a, "temp", 1, 20);
        return true;
    case UI_ACT_TOP_P_DOWN:
        nudge(a, "top-p", -1, 100);
        return true;
    case UI_ACT_TOP_P_UP:
        nudge(a, "top-p", 1, 100);
        return true;
    case UI_ACT_PAGE_UP:
        ui_transcript_page(t, -1);
        return true;
    case UI_ACT_PAGE_DOWN:
        ui_transcript_page(t, 1);
        return true;
    case UI_ACT_LINE_UP:
        ui_transcript_scroll(t, -1);
        return true;
    case UI_ACT_LINE_DOWN:
        ui_transcript_scroll(t, 1);
        return true;
    case UI_ACT_TO_START:
        ui_transcript_to_start(t);
        return true;
    case UI_ACT_TO_END:
        ui_transcript_to_end(t);
        return true;
    case UI_ACT_NEWLINE:
        ui_input_newline();
        return true;
    case UI_ACT_EDITOR:
        edit_draft(a);
        return true;
    case UI_ACT_STOP:
        if (ui_input_wants_esc()) {
            return false;
        }
        /* on an empty line Esc is nobody's: it must not make a command of the next letter */
        return app_cancel(a) || ui_input_empty();
    case UI_ACT_INTERRUPT:
        interrupt(a);
        return true;
    case UI_ACT_LEAVE:
        if (!ui_input_empty()) {
            return false;
        }
        a->leave = true;
        return true;
    case UI_ACT_SUSPEND:
        ui_term_suspend();
        return true;
    case UI_ACT_REDRAW:
        ui_term_redraw();
        return true;
    case UI_ACT_NONE:
    case UI_N_ACTIONS:
        break;
    }
    return false;
}

static void on_key(struct app *a, const struct ui_key *key) {
    a->dirty = true;
    a->hint[0] = '\0';
    if (a->overlay != NULL && key->code != UI_KEY_PASTE) {
        overlay_key(a, key);
        return;
    }
    if (key->code == UI_KEY_PASTE) {
        ui_input_paste(key->text, key->n_text);
        if (key->truncated) {
            app_hint(a, true, "the paste was longer than %d MiB: the rest is missing",
                     UI_PASTE_MAX / 1024 / 1024);
        }
    } else {
        enum ui_action action = ui_keymap_find(key->code, key->mods);
        if ((action == UI_ACT_NONE || !act(a, action, key)) && ui_input_key(key) == UI_INPUT_SEND) {
            on_sent(a);
        }
    }
    a->draft_serial++; /* an answer under way is about another text */
    a->draft_ask_s = ui_input_empty() ? -1 : cw_now() + DRAFT_PAUSE_S;
    a->draft_known = a->draft_known && !ui_input_empty();
}

static void count_draft(struct app *a) {
    size_t n;
    const char *text = ui_input_text(&n);
    a->draft_ask_s = -1;
    if (a->phase == APP_IDLE && n > 0) {
        cw_generator_count(a->generator, text, n, a->draft_serial);
    }
}

/* ---- the loop ------------------------------------------------------------------------------- */

static void on_signals(struct app *a) {
    unsigned flags = ui_term_signals();
    if (flags & (UI_SIGNAL_TERM | UI_SIGNAL_HUP)) {
        a->leave = true;
        a->leave_signal = flags;
    }
    if (flags & UI_SIGNAL_INT) {
        a->hint[0] = '\0';
        interrupt(a);
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
        on_key(a, &key);
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
            more_events = drain(a);
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
    struct cw_generator_options opt = {
        .model_path = s->model,
        .model = app_model_options(s),
        .session = app_session_options(s),
        .naive = s->naive,
        .chat_template = s->chat_template,
        .pre = s->pre,
    };
    struct cw_err err = {0};
    if (cw_generator_create(&a->generator, &opt, &s->sampling, &err) != CW_OK) {
        a->generator = NULL;
        on_failed(a, err.text, strlen(err.text));
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
