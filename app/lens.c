/* SPDX-License-Identifier: MIT
 *
 * The token lens: a cursor walks the tokens of the replies, a panel shows what each was drawn from,
 * and another choice can be taken from there on.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "app/app_impl.h"
#include "ui/lens.h"

enum { FAR = 16 }; /* tokens that PgUp and PgDn go */

static const struct chat_message *reply_at(const struct app *a, size_t i) {
    const struct chat_message *m = i < a->chat.n ? a->chat.messages[i] : NULL;
    return m != NULL && m->role == CHAT_REPLY && m->ids.n > 0 ? m : NULL;
}

/* What token `token` was drawn from; NULL: it was not kept. */
static const struct cw_draw *draw_at(const struct chat_message *m, size_t token) {
    return token < m->ids.n ? &m->tokens[token].draw : NULL;
}

/* The next reply with tokens from message `from` on, going by `step`; false: there is none. */
static bool find_reply(const struct app *a, size_t from, int step, size_t *out) {
    for (size_t i = from; i < a->chat.n; i += (size_t)step) { /* wraps below 0 */
        if (reply_at(a, i) != NULL) {
            *out = i;
            return true;
        }
    }
    return false;
}

/* Show the cursor in the transcript. Tokens of the thoughts stand in a block of their own. */
static void point(struct app *a) {
    const struct chat_message *m = reply_at(a, a->lens.message);
    if (m == NULL) {
        app_enter(a, NULL); /* the reply went away */
        return;
    }
    a->lens.token = a->lens.token < m->ids.n ? a->lens.token : m->ids.n - 1;
    size_t thought =
        m->thinking_block != 0 ? ui_transcript_n_tokens(a->transcript, m->thinking_block) : 0;
    if (a->lens.token < thought) {
        ui_transcript_fold(a->transcript, m->thinking_block, false);
        ui_transcript_lens(a->transcript, m->thinking_block, a->lens.token);
    } else {
        ui_transcript_lens(a->transcript, m->block, a->lens.token - thought);
    }
    const struct cw_draw *d = draw_at(m, a->lens.token);
    a->lens.selected = 0;
    for (int i = 0; d != NULL && i < d->n_alternatives; i++) {
        if (d->alternatives[i].id == d->id) {
            a->lens.selected = i;
        }
    }
}

void app_lens_start(struct app *a) {
    size_t last;
    if (a->chat.n == 0 || !find_reply(a, a->chat.n - 1, -1, &last)) {
        app_hint(a, false, "there is no reply to look at yet");
        return;
    }
    app_enter(a, &app_mode_lens);
    a->lens.message = last;
    a->lens.token = 0;
    point(a);
}

static void lens_close(struct app *a) {
    ui_transcript_lens(a->transcript, 0, 0);
}

static void take_choice(struct app *a, int which) {
    const struct chat_message *m = reply_at(a, a->lens.message);
    const struct cw_draw *d = m != NULL ? draw_at(m, a->lens.token) : NULL;
    if (d == NULL || which < 0 || which >= d->n_alternatives) {
        app_hint(a, true, "there is no choice %d here", which + 1);
        return;
    }
    if (d->alternatives[which].id == d->id) {
        app_hint(a, false, "this token stands there already");
        return;
    }
    size_t message = a->lens.message, token = a->lens.token;
    int32_t id = d->alternatives[which].id;
    app_enter(a, NULL);
    app_branch_at(a, message, token, id);
}

static void other_reply(struct app *a, int step) {
    size_t to;
    if (find_reply(a, a->lens.message + (size_t)step, step, &to)) {
        a->lens.message = to;
        a->lens.token = 0;
        point(a);
    } else {
        app_hint(a, false, "there is no further reply");
    }
}

static bool lens_key(struct app *a, const struct ui_key *key) {
    const struct chat_message *m = reply_at(a, a->lens.message);
    enum ui_action action = ui_keymap_find(key->code, key->mods);
    if ((key->mods == 0 && (key->code == UI_KEY_ESC || key->code == 'q')) || m == NULL ||
        action == UI_ACT_LENS || action == UI_ACT_INTERRUPT) {
        app_enter(a, NULL);
        return true;
    }
    const struct cw_draw *d = draw_at(m, a->lens.token);
    int n_choices = d != NULL ? d->n_alternatives : 0;
    size_t last = m->ids.n - 1, at = a->lens.token;
    bool back = key->code == UI_KEY_TAB && key->mods == UI_SHIFT;
    if (key->mods != 0 && !back) {
        return false;
    }
    switch (key->code) {
    case UI_KEY_LEFT:
        at -= at > 0;
        break;
    case UI_KEY_RIGHT:
        at += at < last;
        break;
    case UI_KEY_PGUP:
        at -= at < FAR ? at : FAR;
        break;
    case UI_KEY_PGDN:
        at += last - at < FAR ? last - at : FAR;
        break;
    case UI_KEY_HOME:
        at = 0;
        break;
    case UI_KEY_END:
        at = last;
        break;
    case UI_KEY_UP:
    case UI_KEY_DOWN:
        other_reply(a, key->code == UI_KEY_UP ? -1 : 1);
        return true;
    case UI_KEY_TAB:
        if (n_choices > 0) {
            a->lens.selected = (a->lens.selected + (back ? n_choices - 1 : 1)) % n_choices;
        }
        return true;
    case UI_KEY_ENTER:
        take_choice(a, a->lens.selected);
        return true;
    default:
        if (key->code >= '1' && key->code <= '8') {
            take_choice(a, (int)(key->code - '1'));
            return true;
        }
        return false;
    }
    a->lens.token = at;
    point(a);
    return true;
}

static void token_text(const struct app *a, int32_t id, char *dst, size_t cap) {
    struct cw_buf piece = {0};
    cw_tokenizer_piece(cw_generator_tokenizer(a->generator), id, true, false, &piece);
    ui_lens_text(dst, cap, piece.data ? piece.data : "", piece.len);
    cw_buf_free(&piece);
}

static void fill(const struct app *a, struct ui_lens *l) {
    *l = (struct ui_lens){0};
    const struct chat_message *m = reply_at(a, a->lens.message);
    if (m == NULL) {
        return;
    }
    const struct cw_draw *d = draw_at(m, a->lens.token);
    l->token = a->lens.token;
    l->n_tokens = m->ids.n;
    token_text(a, m->ids.v[a->lens.token], l->text, sizeof l->text);
    if (d == NULL || d->n_alternatives == 0) {
        return;
    }
    l->known = true;
    l->raw = (double)d->p_raw;
    l->p = (double)d->p;
    l->rank = d->rank;
    l->entropy_bits = (double)d->entropy / M_LN2;
    l->n_choices = d->n_alternatives < UI_LENS_MOST ? d->n_alternatives : UI_LENS_MOST;
    l->selected = a->lens.selected;
    for (int i = 0; i < l->n_choices; i++) {
        struct ui_lens_choice *c = &l->choices[i];
        token_text(a, d->alternatives[i].id, c->text, sizeof c->text);
        c->raw = (double)d->alternatives[i].p_raw;
        c->p = (double)d->alternatives[i].p;
        c->chosen = d->alternatives[i].id == d->id;
    }
}

static int lens_rows(struct app *a, int rows) {
    struct ui_lens l;
    fill(a, &l);
    return ui_lens_rows(&l, rows);
}

static void lens_draw(struct app *a, int row, int rows) {
    struct ui_lens l;
    fill(a, &l);
    ui_lens_draw(&l, &a->screen, row, rows);
}

static void lens_line(struct app *a, int row) {
    static const char *const texts[] = {
        "lens: Left, Right a token; Up, Down a reply; 1-8 goes on from a choice; Esc leaves",
        "Left Right token, 1-8 takes a choice, Esc leaves", "1-8 takes a choice, Esc leaves",
        "Esc leaves"};
    app_draw_keys(a, row, texts, sizeof texts / sizeof texts[0]);
}

const struct app_mode app_mode_lens = {
    .key = lens_key, .close = lens_close, .rows = lens_rows, .draw = lens_draw, .line = lens_line};
