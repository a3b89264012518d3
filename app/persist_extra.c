/* SPDX-License-Identifier: MIT
 *
 * See persist_extra.h.
 */
#include "app/persist_extra.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/json.h"
#include "app/options.h"

/* ---- writing -------------------------------------------------------------------------------- */

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

void app_extra_write(const struct chat_message *m, struct cw_buf *out) {
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
        if (m->window != NULL) { /* as text: not every reader has 64 bits */
            char id[24];
            snprintf(id, sizeof id, "%" PRIu64, m->window->id);
            json_object_object_add(o, "window", json_object_new_string(id));
        }
    }
    app_json_put(out, o, false);
}

/* ---- reading -------------------------------------------------------------------------------- */

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

void app_extra_typed(struct chat_message *m, struct cw_str extra) {
    struct json_object *o = parse(extra);
    if (o != NULL) {
        m->typed = number(o, "typed", m->text.len, 0);
        m->cost = number(o, "cost", SIZE_MAX / 2, 0);
        const char *summary = text(o, "summary");
        cw_buf_puts(&m->summary, summary != NULL ? summary : "");
        json_object_put(o);
    }
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

void app_extra_read(struct chat_message *m, struct cw_str extra) {
    struct json_object *o = parse(extra);
    struct json_object *origin, *think;
    if (o == NULL) {
        return;
    }
    read_runs(m, array(o, "runs"));
    const char *system = text(o, "system");
    m->system = system != NULL ? cw_strdup(system) : NULL;
    if (json_object_object_get_ex(o, "think", &think)) {
        int32_t v = json_object_get_int(think);
        m->think = v < -1 || v > 1 ? -1 : v;
    }
    for (size_t i = 0; json_object_object_get_ex(o, "origin", &origin) && i < app_n_options &&
                       i < CHAT_N_ORIGINS && json_object_is_type(origin, json_type_object);
         i++) {
        m->origin[i] = (unsigned char)number(origin, app_options[i].name, APP_N_ORIGINS - 1, 0);
    }
    const char *window = text(o, "window");
    m->window_id = window != NULL ? strtoull(window, NULL, 10) : 0;
    json_object_put(o);
}

void app_extra_link(struct chat *c, struct chat_message *m) {
    struct chat_message *window = m->window_id != 0 ? chat_find(c, m->window_id) : NULL;
    m->window = NULL;
    if (window == NULL || window->role != CHAT_USER) {
        return;
    }
    for (const struct chat_message *up = m; up != NULL; up = up->parent) {
        if (up == window) { /* only one that stands before it */
            m->window = window;
            return;
        }
    }
}
