/* SPDX-License-Identifier: MIT
 *
 * See persist_rows.h.
 */
#include "app/persist_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/json.h"
#include "app/options.h"
#include "chinwag/snapshot.h"

enum { MARK_GIVEN = 1, MARK_FORCED = 2 }; /* of a token */

static void name_arithmetic(char *name, size_t cap, bool exact) {
    snprintf(name, cap, "%d%s", (int)CW_ARITHMETIC, exact ? " exact" : "");
}

/* ---- the JSON object, written --------------------------------------------------------------- */

/* Only what differs from the built-in values, by the names of the options. */
static struct json_object *sampling_json(const struct cw_sampling *sampling) {
    struct app_settings s = {.sampling = *sampling};
    struct json_object *out = json_object_new_object();
    for (size_t i = 0; i < app_n_options; i++) {
        const struct app_option *o = &app_options[i];
        if (strcmp(o->group, "sampling") == 0 && strcmp(o->name, "seed") != 0) {
            char *value = app_settings_get(&s, o);
            if (strcmp(value, o->builtin) != 0) {
                json_object_object_add(out, o->name, json_object_new_string(value));
            }
            free(value);
        }
    }
    return out;
}

static struct json_object *runs_json(const struct chat_message *m) {
    struct json_object *out = json_object_new_array();
    for (size_t i = 0; i < m->n_runs; i++) {
        const struct chat_run *r = &m->runs[i];
        struct json_object *run = json_object_new_object();
        json_object_object_add(run, "first", json_object_new_int64((int64_t)r->first));
        json_object_object_add(run, "position", json_object_new_int64((int64_t)r->position));
        json_object_object_add(run, "seed", json_object_new_int64(r->seed));
        json_object_object_add(run, "sampling", sampling_json(&r->sampling));
        json_object_array_add(out, run);
    }
    return out;
}

static struct json_object *origin_json(const struct chat_message *m) {
    struct json_object *out = json_object_new_object();
    for (size_t i = 0; i < app_n_options && i < CHAT_N_ORIGINS; i++) {
        if (m->origin[i] != APP_BUILTIN) {
            json_object_object_add(out, app_options[i].name, json_object_new_int(m->origin[i]));
        }
    }
    return out;
}

/* Messages of its path that its prompt did not have any more. */
static size_t n_left(const struct chat *c, const struct chat_message *m) {
    size_t n = 0;
    for (const struct chat_message *up = m->window; up != NULL && up->parent != c->root;) {
        up = up->parent;
        n++;
    }
    return n;
}

static void write_extra(const struct chat *c, const struct chat_message *m, struct cw_buf *out) {
    struct json_object *o = json_object_new_object();
    if (m->summary.len > 0) {
        json_object_object_add(o, "summary", app_json_text(m->summary.data, m->summary.len));
    }
    if (m->cost > 0) {
        json_object_object_add(o, "cost", json_object_new_int64((int64_t)m->cost));
    }
    if (m->role == CHAT_REPLY) {
        json_object_object_add(o, "runs", runs_json(m));
        json_object_object_add(o, "origin", origin_json(m));
        json_object_object_add(o, "think", json_object_new_int(m->think));
        if (m->typed > 0) {
            json_object_object_add(o, "typed", json_object_new_int64((int64_t)m->typed));
        }
        if (m->system != NULL) {
            json_object_object_add(o, "system", app_json_text(m->system, strlen(m->system)));
        }
        if (n_left(c, m) > 0) {
            json_object_object_add(o, "left", json_object_new_int64((int64_t)n_left(c, m)));
        }
    }
    app_json_put(out, o, false);
}

/* ---- the row -------------------------------------------------------------------------------- */

static struct cw_str str_of(const char *text) {
    return (struct cw_str){text != NULL ? text : "", text != NULL ? strlen(text) : 0};
}

static const char *data_of(const struct cw_buf *b) {
    return b->data != NULL ? b->data : "";
}

size_t app_row_settled(const struct chat_message *m, size_t *text, size_t *reasoning) {
    bool all = m->done || m->ids.n == 0;
    size_t n = all ? m->ids.n : m->ids.n - 1;
    *text = all ? m->text.len : m->tokens[n].text_at;
    *reasoning = all ? m->reasoning.len : m->tokens[n].reasoning_at;
    return n;
}

struct cw_store_token *app_row_tokens(const struct chat_message *m, size_t from, size_t to) {
    struct cw_store_token *out = cw_calloc(to - from + 1, sizeof *out);
    for (size_t k = from; k < to; k++) {
        const struct chat_token *t = &m->tokens[k];
        bool last = k + 1 == m->ids.n;
        size_t text = (last ? m->text.len : m->tokens[k + 1].text_at) - t->text_at;
        size_t reasoning =
            (last ? m->reasoning.len : m->tokens[k + 1].reasoning_at) - t->reasoning_at;
        out[k - from] = (struct cw_store_token){
            .draw = t->draw,
            .n_text = (uint32_t)(t->thinking ? reasoning : text),
            .thinking = t->thinking,
            .mark = (uint8_t)((t->given ? MARK_GIVEN : 0) | (t->forced ? MARK_FORCED : 0)),
        };
        out[k - from].draw.id = m->ids.v[k];
    }
    return out;
}

static struct cw_store_change *changes_of(const struct chat_message *m) {
    struct cw_store_change *out = cw_calloc(m->n_changes + 1, sizeof *out);
    for (size_t i = 0; i < m->n_changes; i++) {
        out[i] = (struct cw_store_change){m->changes[i].token, m->changes[i].offset,
                                          m->changes[i].from, m->changes[i].to};
    }
    return out;
}

void app_row_make(struct app_row *row, const struct chat *c, const struct chat_message *m) {
    size_t text, reasoning;
    size_t n = app_row_settled(m, &text, &reasoning);
    bool reply = m->role == CHAT_REPLY;
    *row = (struct app_row){.tokens = app_row_tokens(m, 0, n), .changes = changes_of(m)};
    write_extra(c, m, &row->extra);
    name_arithmetic(row->arithmetic, sizeof row->arithmetic, m->exact);
    row->message = (struct cw_store_message){
        .id = (int64_t)m->id,
        .parent = m->parent == c->root ? 0 : (int64_t)m->parent->id,
        .conversation = (int64_t)c->id,
        .role = reply ? CW_STORE_REPLY : CW_STORE_USER,
        .created_ms = m->made_ms,
        .text = {data_of(&m->text), text},
        .reasoning = {data_of(&m->reasoning), reasoning},
        .tokens = row->tokens,
        .n_tokens = n,
        .changes = row->changes,
        .n_changes = m->n_changes,
        .done = m->done,
        .stop = m->stop,
        .figures = m->figures,
        .model = str_of(m->model),
        .hash = str_of(m->hash),
        .arithmetic = str_of(reply ? row->arithmetic : NULL),
        .extra = {data_of(&row->extra), row->extra.len},
    };
    if (m->n_runs > 0) {
        row->message.seed = m->runs[0].seed;
        row->message.first_position = m->runs[0].position;
        row->message.sampling = m->runs[0].sampling;
    }
}

void app_row_free(struct app_row *row) {
    free(row->tokens);
    free(row->changes);
    cw_buf_free(&row->extra);
}

/* ---- the JSON object, read ------------------------------------------------------------------ */

static struct json_object *parse(struct cw_str extra) {
    struct json_object *o = extra.len > 0 ? app_json_parse(extra.data, extra.len, NULL) : NULL;
    if (o != NULL && !json_object_is_type(o, json_type_object)) {
        json_object_put(o);
        return NULL;
    }
    return o;
}

/* A whole number from 0 to `most`; `otherwise` when there is none. */
static size_t number(struct json_object *o, const char *key, size_t most, size_t otherwise) {
    struct json_object *v;
    if (!json_object_object_get_ex(o, key, &v) || !json_object_is_type(v, json_type_int)) {
        return otherwise;
    }
    int64_t n = json_object_get_int64(v);
    return n >= 0 && (uint64_t)n <= most ? (size_t)n : otherwise;
}

static const char *text(struct json_object *o, const char *key) {
    struct json_object *v;
    return json_object_object_get_ex(o, key, &v) && json_object_is_type(v, json_type_string)
               ? json_object_get_string(v)
               : NULL;
}

static struct json_object *array(struct json_object *o, const char *key) {
    struct json_object *v;
    return json_object_object_get_ex(o, key, &v) && json_object_is_type(v, json_type_array) ? v
                                                                                            : NULL;
}

static bool read_sampling(struct json_object *run, struct cw_sampling *out) {
    struct json_object *values;
    struct app_settings s;
    bool good = true;
    app_settings_init(&s);
    if (json_object_object_get_ex(run, "sampling", &values) &&
        json_object_is_type(values, json_type_object)) {
        json_object_object_foreach(values, name, value) {
            const struct app_option *o = app_option_find(name);
            good = good && o != NULL && strcmp(o->group, "sampling") == 0 &&
                   app_settings_set(&s, o, json_object_get_string(value), APP_LIVE, NULL) == CW_OK;
        }
    }
    *out = s.sampling;
    app_settings_free(&s);
    return good;
}

static void read_runs(struct chat_message *m, struct json_object *runs) {
    size_t n = runs != NULL ? json_object_array_length(runs) : 0;
    for (size_t i = 0; i < n; i++) {
        struct json_object *o = json_object_array_get_idx(runs, i);
        struct chat_run run = {0};
        size_t from = m->n_runs > 0 ? m->runs[m->n_runs - 1].first : 0;
        if (!json_object_is_type(o, json_type_object) || !read_sampling(o, &run.sampling)) {
            break; /* what cannot be read cannot be replayed */
        }
        run.first = number(o, "first", m->ids.n, SIZE_MAX);
        run.position = number(o, "position", SIZE_MAX / 2, 0);
        run.seed = (uint32_t)number(o, "seed", UINT32_MAX, 0);
        if (run.first == SIZE_MAX || run.first < from) {
            break;
        }
        m->runs = cw_reallocarray(m->runs, m->n_runs + 1, sizeof *m->runs);
        m->runs[m->n_runs++] = run;
    }
}

/* The part that is needed before the message's tokens are known. */
static void read_first(struct chat_message *m, struct json_object *o) {
    m->typed = number(o, "typed", m->text.len, 0);
    m->cost = number(o, "cost", SIZE_MAX / 2, 0);
    const char *summary = text(o, "summary");
    cw_buf_puts(&m->summary, summary != NULL ? summary : "");
}

/* The first message that was in its prompt: one of the person, above it. */
static struct chat_message *window_of(const struct chat *c, struct chat_message *m, size_t left) {
    size_t depth = 0;
    for (const struct chat_message *up = m; up->parent != c->root; up = up->parent) {
        depth++;
    }
    if (left == 0 || left >= depth) {
        return NULL;
    }
    for (; depth > left; depth--) {
        m = m->parent;
    }
    return m->role == CHAT_USER ? m : NULL;
}

static void read_rest(struct chat_message *m, const struct chat *c, struct json_object *o) {
    struct json_object *origin, *think;
    read_runs(m, array(o, "runs"));
    const char *system = text(o, "system");
    m->system = system != NULL ? cw_strdup(system) : NULL;
    m->window = window_of(c, m, number(o, "left", SIZE_MAX / 2, 0));
    if (json_object_object_get_ex(o, "think", &think)) {
        int32_t v = json_object_get_int(think);
        m->think = v < -1 || v > 4 ? -1 : v;
    }
    if (json_object_object_get_ex(o, "origin", &origin) &&
        json_object_is_type(origin, json_type_object)) {
        for (size_t i = 0; i < app_n_options && i < CHAT_N_ORIGINS; i++) {
            m->origin[i] = (unsigned char)number(origin, app_options[i].name, APP_N_ORIGINS - 1, 0);
        }
    }
}

/* ---- the message ---------------------------------------------------------------------------- */

static void take_tokens(struct chat_message *m, const struct cw_store_message *row) {
    size_t text = m->typed, reasoning = 0;
    m->tokens = cw_calloc(row->n_tokens + 1, sizeof *m->tokens);
    m->cap_tokens = row->n_tokens;
    for (size_t k = 0; k < row->n_tokens; k++) {
        const struct cw_store_token *t = &row->tokens[k];
        cw_ids_add(&m->ids, t->draw.id);
        m->tokens[k] = (struct chat_token){.draw = t->draw,
                                           .text_at = (uint32_t)text,
                                           .reasoning_at = (uint32_t)reasoning,
                                           .thinking = t->thinking,
                                           .given = (t->mark & MARK_GIVEN) != 0,
                                           .forced = (t->mark & MARK_FORCED) != 0};
        size_t *at = t->thinking ? &reasoning : &text;
        size_t end = t->thinking ? m->reasoning.len : m->text.len;
        *at = t->n_text < end - *at ? *at + t->n_text : end; /* whatever a file says */
    }
}

static char *copy_of(struct cw_str text) {
    return text.len > 0 ? cw_strndup(text.data, text.len) : NULL;
}

static void take_reply(struct chat_message *m, const struct chat *c,
                       const struct cw_store_message *row, struct json_object *extra) {
    char exact[24]; /* of another arithmetic: it can only be compared */
    name_arithmetic(exact, sizeof exact, true);
    m->exact = cw_str_eq(row->arithmetic, exact);
    take_tokens(m, row);
    for (size_t i = 0; i < row->n_changes; i++) {
        m->changes = cw_reallocarray(m->changes, m->n_changes + 1, sizeof *m->changes);
        m->changes[m->n_changes++] =
            (struct chat_change){row->changes[i].token, (size_t)row->changes[i].offset,
                                 row->changes[i].from, row->changes[i].to};
    }
    if (extra != NULL) {
        read_rest(m, c, extra);
    }
    if (m->n_runs == 0 && m->ids.n > 0) {
        m->runs = cw_calloc(1, sizeof *m->runs);
        m->runs[m->n_runs++] = (struct chat_run){0, row->first_position, row->seed, row->sampling};
    }
    m->seed = m->n_runs > 0 ? m->runs[m->n_runs - 1].seed : row->seed;
}

void app_row_take(struct chat_message *m, const struct chat *c,
                  const struct cw_store_message *row) {
    struct json_object *extra = parse(row->extra);
    cw_buf_add(&m->text, row->text.data, row->text.len);
    cw_buf_add(&m->reasoning, row->reasoning.data, row->reasoning.len);
    m->made_ms = row->created_ms;
    m->figures = row->figures;
    m->stop = row->done ? (enum cw_stop)row->stop : CW_STOP_CANCEL;
    m->done = true;
    m->model = copy_of(row->model);
    m->hash = copy_of(row->hash);
    if (extra != NULL) {
        read_first(m, extra);
    }
    if (m->role == CHAT_REPLY) {
        take_reply(m, c, row, extra);
    }
    json_object_put(extra);
    if (row->lost) {
        cw_buf_puts(&m->text, "(this message could not be recovered)");
        m->typed = m->text.len;
    }
}
