/* SPDX-License-Identifier: MIT
 *
 * Drawing a reply again from what was recorded of it: the same prompt, seed and changes of settings
 * at the same tokens must give the same tokens. A reply that was continued is replayed run by run.
 * And the page that tells what a message was made with.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/app_impl.h"
#include "app/cmd.h"

/* ---- replay --------------------------------------------------------------------------------- */

/* One behind the last token of the run that its draws can give. */
static size_t run_end(const struct chat_message *m, size_t run) {
    size_t end = run + 1 < m->n_runs ? m->runs[run + 1].first : m->ids.n;
    for (size_t k = m->runs[run].first; k < end; k++) {
        if (m->tokens[k].given) {
            return k;
        }
    }
    return end;
}

static bool start_run(struct app *a) {
    struct app_tree *t = &a->tree;
    const struct chat_message *m = t->replayed;
    size_t i = chat_index(&a->chat, m);
    while (t->replay_run < m->n_runs && run_end(m, t->replay_run) == m->runs[t->replay_run].first) {
        t->replay_run++; /* nothing in it was drawn */
    }
    if (t->replay_run == m->n_runs || i == SIZE_MAX) {
        return false;
    }
    const struct chat_run *run = &m->runs[t->replay_run];
    size_t end = run_end(m, t->replay_run);
    size_t window = m->window != NULL ? chat_index(&a->chat, m->window) : 0;
    struct cw_request req = app_request(a);
    struct cw_buf scratch = {0}, raw = {0};
    struct cw_at *at = cw_calloc(m->n_changes + 1, sizeof *at);
    struct cw_message *messages = NULL;

    req.max_tokens = (int64_t)(end - run->first);
    req.n_stops = 0;
    req.seed = run->seed;
    req.snapshot_key = NULL; /* the snapshot stays that of the conversation's end */
    req.first_position = run->position;
    req.think = m->think;
    for (size_t k = 0; k < m->n_changes; k++) {
        if (m->changes[k].token >= run->first && m->changes[k].token < end) {
            at[req.n_at++] = (struct cw_at){run->position + (m->changes[k].token - run->first),
                                            m->changes[k].to};
        }
    }
    req.at = at;
    for (size_t k = end; k-- > run->first;) {
        if (m->tokens[k].forced) {
            req.answer_at = run->position + (k - run->first); /* the first of the end marker */
        }
    }
    size_t said =
        run->first > 0 ? m->tokens[run->first - (run->first == m->ids.n)].text_at : m->typed;
    if (cw_generator_has_template(a->generator)) {
        messages = chat_messages_of(&a->chat, window == SIZE_MAX ? 0 : window, i, m->system,
                                    &scratch, &req.n_messages);
        if (run->first > 0 || m->typed > 0) {
            messages[req.n_messages++] = (struct cw_message){
                .role = "assistant",
                .content = m->text.data,
                .len = said,
                .ids = m->typed == 0 ? m->ids.v : NULL,
                .n_ids = m->typed == 0 ? run->first : 0,
                .reasoning = m->reasoning.data,
                .reasoning_len = m->reasoning.len,
            };
            req.continue_reply = true;
        }
        req.messages = messages;
    } else {
        for (size_t k = 0; k < i; k++) {
            const struct cw_buf *text = &a->chat.messages[k]->text;
            cw_buf_add(&raw, text->data ? text->data : "", text->len);
        }
        cw_buf_add(&raw, m->text.data ? m->text.data : "", said);
        req.raw = raw.data ? raw.data : "";
        req.raw_len = raw.len;
    }
    cw_generator_publish(a->generator, &run->sampling);
    t->replay_at = run->first;
    bool started = app_start_job(a, APP_JOB_REPLAY, &req);
    free(at);
    free(messages);
    cw_buf_free(&scratch);
    cw_buf_free(&raw);
    return started;
}

bool app_replay(struct app *a, size_t i) {
    if (!app_can_move(a, true)) {
        return false;
    }
    struct chat_message *m = a->chat.messages[i];
    const struct cw_model_info *info = app_model_info(a);
    if (m->role != CHAT_REPLY || m->n_runs == 0 || m->ids.n == 0) {
        app_hint(a, true, "message %zu was not generated: there is nothing to draw again", i + 1);
        return false;
    }
    bool other = m->model != NULL && info != NULL && strcmp(m->model, info->name) != 0;
    other = other || (m->hash != NULL && info != NULL &&
                      strcmp(m->hash, cw_generator_model_hash(a->generator)) != 0);
    if (other) {
        app_hint(a, true, "message %zu was written by another model, %s", i + 1,
                 m->model != NULL ? m->model : "one without a name");
        return false;
    }
    a->tree.replayed = m;
    a->tree.replay_run = 0;
    a->tree.replay_wrong = SIZE_MAX;
    if (!start_run(a)) {
        app_publish(a);
        return false;
    }
    app_hint(a, false, "drawing message %zu again; Ctrl+C stops", i + 1);
    return true;
}

void app_replay_token(struct app *a, const struct cw_event *ev) {
    struct app_tree *t = &a->tree;
    const struct chat_message *m = t->replayed;
    if (!ev->u.token.first_part || t->replay_wrong != SIZE_MAX || t->replay_at >= m->ids.n) {
        return;
    }
    if (m->ids.v[t->replay_at] != ev->u.token.draw.id) {
        t->replay_wrong = t->replay_at;
        t->replay_got = ev->u.token.draw.id;
        cw_generator_cancel(a->generator); /* what follows has no meaning */
    }
    t->replay_at++;
}

static void add_piece(const struct app *a, int32_t id, struct cw_buf *out) {
    struct cw_buf piece = {0};
    char shown[64];
    cw_tokenizer_piece(cw_generator_tokenizer(a->generator), id, true, false, &piece);
    cw_printable(shown, sizeof shown, piece.data ? piece.data : "", piece.len);
    cw_buf_printf(out, "\"%s\" (%d)", shown, id);
    cw_buf_free(&piece);
}

void app_replay_done(struct app *a, enum cw_stop stop, const char *error) {
    struct app_tree *t = &a->tree;
    struct chat_message *m = t->replayed;
    size_t i = chat_index(&a->chat, m);
    struct cw_buf text = {0};
    bool differs = t->replay_wrong != SIZE_MAX;
    if (stop == CW_STOP_ERROR) {
        app_tell(a, true, error, strlen(error));
    } else if (differs) {
        cw_buf_printf(&text, "Replay of message %zu: token %zu differs, then ", i + 1,
                      t->replay_wrong);
        add_piece(a, m->ids.v[t->replay_wrong], &text);
        cw_buf_puts(&text, ", now ");
        add_piece(a, t->replay_got, &text);
        cw_buf_puts(&text, ".");
    } else if (stop == CW_STOP_CANCEL) {
        cw_buf_printf(&text, "Replay of message %zu stopped: the same up to token %zu.", i + 1,
                      t->replay_at);
    } else if (t->replay_at < run_end(m, t->replay_run)) {
        differs = true;
        cw_buf_printf(&text, "Replay of message %zu: it ended at token %zu, then it had %zu.",
                      i + 1, t->replay_at, m->ids.n);
    } else {
        t->replay_run++;
        if (start_run(a)) {
            return;
        }
        cw_buf_printf(&text,
                      "Replay of message %zu: the same %zu tokens again (seed %u, %zu "
                      "change%s of settings).",
                      i + 1, m->ids.n, m->runs[0].seed, m->n_changes, m->n_changes == 1 ? "" : "s");
    }
    if (text.len > 0 && !m->exact) {
        cw_buf_puts(&text, differs ? " The reply of a float file was not recorded with --exact: "
                                     "it can only be compared, and may differ."
                                   : " The reply of a float file was not recorded with --exact: "
                                     "it can only be compared, other machines may differ.");
    }
    if (text.len > 0) {
        app_tell(a, false, text.data, text.len);
        ui_transcript_to_end(a->transcript);
    }
    cw_buf_free(&text);
    a->hint[0] = '\0'; /* there is nothing to stop any more */
    app_publish(a);    /* the settings of the person again */
}

/* ---- why ------------------------------------------------------------------------------------ */

static void settings_lines(const struct app *a, struct ui_overlay *page,
                           const struct chat_message *m) {
    struct app_settings then = {.sampling = m->runs[0].sampling};
    for (size_t i = 0; i < app_n_options && i < CHAT_N_ORIGINS; i++) {
        const struct app_option *o = &app_options[i];
        if (strcmp(o->group, "sampling") == 0 && strcmp(o->name, "seed") != 0) {
            char *value = app_settings_get(&then, o);
            cmd_setting_line(a, page, o, value, app_origin_name((enum app_origin)m->origin[i]), "");
            free(value);
        }
    }
}

static void reply_lines(const struct app *a, struct ui_overlay *page,
                        const struct chat_message *m) {
    cmd_line(page, "model", "%s%s", m->model != NULL ? m->model : "-",
             m->exact ? "" : ", not exact (float file without --exact)");
    cmd_line(page, "tokens", "%zu%s", m->ids.n,
             m->typed > 0 ? ", behind a beginning that a person wrote" : "");
    for (size_t r = 0; r < m->n_runs; r++) {
        cmd_line(page, r == 0 ? "seed" : "", "%u from token %zu on%s", m->runs[r].seed,
                 m->runs[r].first, r == 0 ? "" : ", continued");
    }
    for (size_t k = 0; k < m->ids.n; k++) {
        if (m->tokens[k].given) {
            cmd_line(page, "chosen by hand", "token %zu", k);
        }
    }
    cmd_changes(page, m);
    if (m->figures.n_prompt > 0) {
        cmd_figures(page, m);
    }
    if (m->n_runs > 0) {
        ui_overlay_line(page, "", "");
        ui_overlay_heading(page, "Settings at its start");
        settings_lines(a, page, m);
    }
}

void app_why(struct app *a, size_t i) {
    const struct chat_message *m = a->chat.messages[i];
    char title[64], when[64] = "-";
    size_t n;
    size_t at = chat_sibling(&a->chat, m, &n);
    time_t made = (time_t)(m->made_ms / 1000);
    struct tm local;
    if (m->made_ms > 0 && localtime_r(&made, &local) != NULL) {
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S", &local);
    }
    snprintf(title, sizeof title, "Message %zu", i + 1);
    struct ui_overlay *page = ui_overlay_create(title);
    cmd_line(page, "written by", "%s", m->role == CHAT_USER ? "you" : "the model");
    cmd_line(page, "when", "%s", when);
    cmd_line(page, "branch", "%zu of %zu", at + 1, n);
    cmd_line(page, "length", "%zu bytes", m->text.len);
    if (i < chat_window(&a->chat)) {
        cmd_line(page, "context", "it has left");
    }
    if (m->role == CHAT_REPLY) {
        if (m->system != NULL) {
            ui_overlay_line(page, "system prompt", m->system);
        }
        reply_lines(a, page, m);
    }
    app_show_page(a, page);
}
