/* SPDX-License-Identifier: MIT
 *
 * When the context is full.
 *
 * Whether a prompt fits is the generator's word: it counts before it evaluates anything. What
 * leaves is whole turns, the oldest first, until what stays takes at most 60 % of the context, so
 * that it happens rarely; the system prompt stays. Nothing leaves the conversation: only the window
 * moves that the prompt is made of, which is a move like others and can be undone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/app_impl.h"

enum {
    STAYS_PERCENT = 60,
    WARN_PERCENT = 80,
    SUMMARY_TOKENS = 200, /* at most, and an eighth of the context */
    TEMPLATE_TOKENS =
        48, /* what a template may add on its own, a system prompt of its own included */
};

/* ---- what things take ----------------------------------------------------------------------- */

/* Tokens of a text that nobody has counted, rather too many. */
static size_t text_cost(size_t bytes) {
    return bytes > 0 ? bytes / 3 + 16 : 0;
}

static size_t cost_of(const struct chat_message *m) {
    if (m->role == CHAT_REPLY) {
        return text_cost(m->typed) + m->ids.n + 8;
    }
    return m->cost > 0 ? m->cost : text_cost(m->text.len);
}

/* A prompt of messages [first, end) of the path. */
static size_t stretch_cost(const struct app *a, size_t first, size_t end) {
    const char *system = a->settings->system;
    size_t n = TEMPLATE_TOKENS + text_cost(system != NULL ? strlen(system) : 0);
    for (size_t i = first; i < end; i++) {
        n += cost_of(a->chat.messages[i]);
    }
    return n;
}

static size_t prompt_cost(const struct app *a, size_t first) {
    return stretch_cost(a, first, a->chat.n);
}

static size_t n_ctx(const struct app *a) {
    return a->status.n_ctx;
}

static size_t summary_tokens(const struct app *a) {
    return n_ctx(a) / 8 < SUMMARY_TOKENS ? n_ctx(a) / 8 : SUMMARY_TOKENS;
}

void app_account(struct app *a, struct chat_message *m) {
    struct chat_message *question = m->parent, *before = question->parent;
    const struct cw_figures *f = &m->figures;
    if (m->n_runs == 1 && m->typed == 0 && before != a->chat.root && before->done &&
        before->window == m->window && before->figures.n_ctx_used > 0 &&
        f->n_prompt > before->figures.n_ctx_used) {
        question->cost = f->n_prompt - before->figures.n_ctx_used;
    }
    if (f->n_ctx == 0) {
        return;
    }
    size_t percent = f->n_ctx_used * 100 / f->n_ctx;
    if (percent < WARN_PERCENT) {
        a->tree.warned = false;
    } else if (!a->tree.warned && m->stop != CW_STOP_CONTEXT) {
        static const char *const then[] = {"the oldest turns leave it", "it takes no more",
                                           "the oldest turns are summed up"};
        a->tree.warned = true;
        app_hint(a, false, "the context is %zu %% full; once it is, %s (/set overflow)", percent,
                 then[a->settings->overflow]);
    }
}

/* ---- leaving -------------------------------------------------------------------------------- */

/* Index of the first message to stay; SIZE_MAX: nothing can leave. */
static size_t choose_window(const struct app *a, size_t extra) {
    size_t now = chat_window(&a->chat);
    size_t question = a->chat.n >= 2 ? a->chat.n - 2 : 0;
    size_t most = n_ctx(a) * STAYS_PERCENT / 100;
    for (size_t first = now + 2; first <= question; first += 2) {
        if (prompt_cost(a, first) + extra <= most || first == question) {
            return first;
        }
    }
    return SIZE_MAX;
}

static void move_window(struct app *a, struct chat_message *to) {
    size_t before = chat_window(&a->chat);
    if (!a->tree.made_room) {
        a->tree.window_before = a->chat.window;
    }
    chat_mark(&a->chat);
    a->chat.window = to;
    chat_mark(&a->chat);
    a->tree.made_room = true;
    app_show_path(a);
    size_t first = chat_window(&a->chat);
    app_hint(a, false,
             "the context is full: %zu messages leave it, about %zu tokens are read anew; Ctrl+C "
             "cancels",
             first - before, prompt_cost(a, first));
}

/* ---- a summary of what leaves --------------------------------------------------------------- */

static bool start_summary(struct app *a, size_t first, double entered_s, bool go_on) {
    static const char ask[] = "Sum up our conversation so far in a few sentences. Keep names, "
                              "numbers and what was decided.";
    struct app_tree *t = &a->tree;
    struct cw_request req = app_request(a);
    struct cw_buf scratch = {0};
    size_t begin = chat_window(&a->chat);
    size_t room = text_cost(sizeof ask) + summary_tokens(a);
    while (begin + 2 < first && stretch_cost(a, begin, first) + room > n_ctx(a)) {
        begin += 2; /* what does not fit with the question is left out of it */
    }
    struct cw_message *messages =
        chat_messages_of(&a->chat, begin, first, a->settings->system, &scratch, &req.n_messages);
    messages[req.n_messages++] =
        (struct cw_message){.role = "user", .content = ask, .len = sizeof ask - 1};
    req.messages = messages;
    req.max_tokens = (int64_t)summary_tokens(a);
    req.think = 0;
    req.snapshot_key = NULL; /* this prompt is none that comes back */
    req.n_stops = 0;
    bool started = app_start_job(a, APP_JOB_SUMMARY, &req);
    free(messages);
    cw_buf_free(&scratch);
    if (!started) {
        return false;
    }
    cw_buf_clear(&t->summary);
    t->leaving_to = a->chat.messages[first];
    t->waiting_s = entered_s;
    t->waiting_go_on = go_on;
    t->summary_block = ui_transcript_add(a->transcript, UI_BLOCK_NOTICE, NULL);
    static const char intro[] = "The context is full. The model sums up what leaves (Ctrl+C "
                                "cancels): ";
    ui_transcript_append(a->transcript, t->summary_block, intro, sizeof intro - 1);
    ui_transcript_to_end(a->transcript);
    return true;
}

void app_summary_token(struct app *a, const char *text, size_t n) {
    cw_buf_add(&a->tree.summary, text, n);
    ui_transcript_append(a->transcript, a->tree.summary_block, text, n);
}

void app_summary_done(struct app *a, enum cw_stop stop) {
    struct app_tree *t = &a->tree;
    struct chat_message *to = t->leaving_to;
    ui_transcript_remove(a->transcript, t->summary_block);
    t->leaving_to = NULL;
    if (stop == CW_STOP_CANCEL) {
        if (t->waiting_go_on) {
            chat_last(&a->chat)->done = true;
            app_show_notes(a);
        } else {
            app_take_back(a);
        }
        app_hint(a, false, "cancelled: the context is as it was");
        return;
    }
    if (stop == CW_STOP_ERROR || t->summary.len == 0) {
        static const char text[] = "There is no summary: the oldest turns leave without one.";
        app_tell(a, true, text, sizeof text - 1);
    } else {
        cw_buf_clear(&to->summary);
        cw_buf_add(&to->summary, t->summary.data, t->summary.len);
        to->dirty = true;
    }
    move_window(a, to);
    app_start_now(a, t->waiting_s, t->waiting_go_on, 1);
}

/* ---- the policy ----------------------------------------------------------------------------- */

/* Let turns leave; false: none can, or none may. *wait: the request follows later. */
static bool leave(struct app *a, double entered_s, bool go_on, bool *wait) {
    bool summarise =
        a->settings->overflow == APP_OVERFLOW_SUMMARISE && cw_generator_has_template(a->generator);
    *wait = false;
    if (a->settings->overflow == APP_OVERFLOW_STOP || !cw_generator_has_template(a->generator)) {
        return false;
    }
    size_t first = choose_window(a, summarise ? summary_tokens(a) : 0);
    if (first == SIZE_MAX) {
        return false;
    }
    if (summarise && start_summary(a, first, entered_s, go_on)) {
        *wait = true;
        return true;
    }
    move_window(a, a->chat.messages[first]);
    return true;
}

/* Whether a reply that goes on is asked for, and not one to a question. */
static bool goes_on(const struct chat_message *reply) {
    return reply->ids.n > 0 || reply->typed > 0;
}

/* Tokens of the question alone, of the prompt that the generator counted last; rather too few, 0
 * where that is not known. */
static size_t counted_alone(const struct app *a) {
    const struct chat_message *reply = chat_last(&a->chat), *before = reply->parent->parent;
    size_t first = chat_window(&a->chat), n = reply->figures.n_prompt;
    if (goes_on(reply)) {
        return 0;
    }
    if (first + 2 >= a->chat.n) {
        return n; /* there was nothing else in it */
    }
    size_t used =
        before->window == (first > 0 ? a->chat.window : NULL) ? before->figures.n_ctx_used : 0;
    return used > 0 && n > used ? n - used : 0;
}

void app_say_full(struct app *a) {
    size_t alone = counted_alone(a);
    if (alone > n_ctx(a)) {
        app_hint(a, true, "the message is too long: %zu tokens, the context holds %zu", alone,
                 n_ctx(a));
    } else if (a->settings->overflow == APP_OVERFLOW_STOP) {
        static const char text[] =
            "The context is full. /new begins a new conversation, /edit N shortens a message, "
            "/undo takes the last turn back, and with /set overflow drop the oldest turns leave "
            "by themselves.";
        app_tell(a, true, text, sizeof text - 1);
    } else {
        app_hint(a, true,
                 "the context is full: it holds %zu tokens, and no earlier turn can leave it",
                 n_ctx(a));
    }
}

enum app_room app_make_room(struct app *a, double entered_s, bool go_on) {
    const struct chat_message *reply = chat_last(&a->chat);
    const struct chat_message *known = go_on ? reply : reply->parent->parent;
    const struct chat_message *window = chat_window(&a->chat) > 0 ? a->chat.window : NULL;
    if (n_ctx(a) == 0 || known == a->chat.root || known->window != window ||
        known->figures.n_ctx_used == 0) {
        return APP_ROOM; /* the generator will tell */
    }
    /* at least as many as there will be, so that turns never leave without need */
    size_t least = known->figures.n_ctx_used + (go_on ? 0 : reply->parent->text.len / 16);
    if (least + n_ctx(a) / 32 < n_ctx(a)) {
        return APP_ROOM;
    }
    if (!go_on && reply->parent->text.len > n_ctx(a) / 2) {
        return APP_ROOM; /* perhaps too long even alone: counted before anything leaves */
    }
    bool wait;
    if (leave(a, entered_s, go_on, &wait)) {
        return wait ? APP_ROOM_WAIT : APP_ROOM;
    }
    if (a->settings->overflow != APP_OVERFLOW_STOP && !(go_on && least >= n_ctx(a))) {
        return APP_ROOM;
    }
    app_say_full(a);
    return APP_ROOM_NONE;
}

bool app_room_after_all(struct app *a) {
    struct chat_message *m = chat_last(&a->chat);
    bool go_on = goes_on(m);
    bool wait;
    if (a->run.cancelled || counted_alone(a) > n_ctx(a)) {
        return false;
    }
    if (!leave(a, 0, go_on, &wait)) {
        return false;
    }
    m->done = false;
    return wait || app_start_now(a, 0, go_on, 1);
}

bool app_restore(struct app *a) {
    if (!app_can_move(a, false)) {
        return false;
    }
    if (chat_window(&a->chat) == 0) {
        app_hint(a, true, "nothing has left the context");
        return false;
    }
    chat_mark(&a->chat);
    a->chat.window = NULL;
    chat_mark(&a->chat);
    app_show_path(a);
    app_hint(a, false, "the whole conversation is in the context again, as far as it fits");
    return true;
}
