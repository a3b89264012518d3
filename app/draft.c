/* SPDX-License-Identifier: MIT
 *
 * The message that is being written: what it costs in tokens, counted by the generator's thread
 * after a pause in typing; its evaluation ahead of Enter; and the files put into it, which must
 * leave room for an answer.
 */
#include "app/app_impl.h"
#include "app/power.h"
#include "chinwag/clock.h"

static const double PAUSE_S = 0.15; /* without a key before it is counted */
static const double BATTERY_S = 30; /* between two looks at the power supply */

void app_draft_changed(struct app *a) {
    struct app_draft *d = &a->draft;
    bool empty = ui_input_empty();
    d->serial++; /* an answer under way is about another text */
    d->ask_s = cw_now() + PAUSE_S;
    d->last = empty ? 0 : d->known ? d->tokens : d->last;
    d->known = false;
    d->n_attached = empty ? 0 : d->n_attached;
    a->dirty = true;
}

void app_draft_sent(struct app *a) {
    a->draft.known = false;
    a->draft.ask_s = -1;
    a->draft.n_attached = 0;
}

/* Whether what is being written is evaluated already. */
static bool prefills(struct app *a, double now) {
    struct app_draft *d = &a->draft;
    if (a->settings->prefill_typing >= 0) {
        return a->settings->prefill_typing == 1;
    }
    if (now >= d->battery_s) {
        d->on_battery = app_on_battery();
        d->battery_s = now + BATTERY_S;
    }
    return !d->on_battery;
}

void app_draft_tick(struct app *a, double now) {
    struct app_draft *d = &a->draft;
    if (d->ask_s < 0 || now < d->ask_s) {
        return;
    }
    size_t n;
    const char *text = ui_input_text(&n);
    d->ask_s = -1;
    if (a->phase != APP_IDLE) {
        return; /* asked again when the reply has ended */
    }
    if (n > 0) {
        cw_generator_count(a->generator, text, n, d->serial);
    }
    if (prefills(a, now) && !(n > 0 && text[0] == '/')) {
        app_prepare_draft(a);
    }
}

bool app_draft_attach(struct app *a, const char *name, const char *text, size_t n) {
    struct app_draft *d = &a->draft;
    bool room = d->n_attached < sizeof d->attached / sizeof d->attached[0];
    unsigned number = room ? ui_input_attach(name, text, n) : 0;
    if (number > 0) {
        d->attached[d->n_attached++] = number;
    }
    return number > 0;
}

/* What was put in by /read and /glob must leave room for an answer. */
static void check_attached(struct app *a) {
    struct app_draft *d = &a->draft;
    size_t n_ctx = a->status.n_ctx;
    if (n_ctx > 0 && d->tokens >= n_ctx) {
        for (size_t i = 0; i < d->n_attached; i++) {
            ui_input_detach(d->attached[i]);
        }
        app_hint(a, true, "too long: %zu tokens, the context holds %zu; taken out again", d->tokens,
                 n_ctx);
        app_draft_changed(a);
    } else {
        app_hint(a, false, "the message is %zu tokens now, of %zu in the context", d->tokens,
                 n_ctx);
    }
    d->n_attached = 0;
}

void app_draft_counted(struct app *a, uint64_t serial, size_t n) {
    struct app_draft *d = &a->draft;
    if (serial == d->serial) {
        d->tokens = n;
        d->known = true;
        if (d->n_attached > 0) {
            check_attached(a);
        }
    }
}
