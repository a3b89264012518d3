/* SPDX-License-Identifier: MIT
 *
 * See chat.h.
 */
#include "app/chat.h"

#include <stdlib.h>
#include <string.h>

/* ---- nodes ---------------------------------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood 2014); positive, so that every database can hold it. */
static uint64_t new_id(struct chat *c) {
    uint64_t z;
    if (c->give_id != NULL) {
        return c->give_id(c->give_arg);
    }
    do {
        z = (c->next_id += 0x9e3779b97f4a7c15u);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z = (z ^ (z >> 31)) >> 1;
    } while (z == 0);
    return z;
}

static struct chat_message *new_message(struct chat *c, struct chat_message *parent,
                                        enum chat_role role) {
    struct chat_message *m = cw_calloc(1, sizeof *m);
    m->id = new_id(c);
    m->role = role;
    m->parent = parent;
    m->dirty = true;
    parent->children =
        cw_reallocarray(parent->children, parent->n_children + 1, sizeof(struct chat_message *));
    parent->children[parent->n_children++] = m;
    c->all = cw_reallocarray(c->all, c->n_all + 1, sizeof(struct chat_message *));
    c->all[c->n_all++] = m;
    return m;
}

static struct chat_message *root(struct chat *c) {
    if (c->root == NULL) {
        c->root = cw_calloc(1, sizeof *c->root);
        c->root->role = CHAT_REPLY; /* what a first message follows */
    }
    return c->root;
}

static void free_message(struct chat_message *m) {
    cw_buf_free(&m->text);
    cw_buf_free(&m->reasoning);
    cw_buf_free(&m->summary);
    cw_ids_free(&m->ids);
    free(m->tokens);
    free(m->changes);
    free(m->runs);
    free(m->model);
    free(m->hash);
    free(m->system);
    free(m->children);
    free(m);
}

void chat_init(struct chat *c, uint64_t seed) {
    *c = (struct chat){.next_id = seed};
    c->id = new_id(c);
    c->dirty = true;
}

void chat_free(struct chat *c) {
    for (size_t i = 0; i < c->n_all; i++) {
        free_message(c->all[i]);
    }
    if (c->root != NULL) {
        free_message(c->root);
    }
    free(c->all);
    free(c->messages);
    free(c->places);
    free(c->title);
    *c = (struct chat){0};
}

void chat_clear(struct chat *c) {
    struct chat fresh = {.next_id = c->next_id, .give_id = c->give_id, .give_arg = c->give_arg};
    chat_free(c);
    *c = fresh;
    c->id = new_id(c);
    c->dirty = true;
}

/* ---- the path ------------------------------------------------------------------------------- */

static void reserve(struct chat *c, size_t n) {
    if (n > c->cap) {
        c->cap = n > 2 * c->cap ? n + 16 : 2 * c->cap;
        c->messages = cw_reallocarray(c->messages, c->cap, sizeof(struct chat_message *));
    }
}

static void push(struct chat *c, struct chat_message *m) {
    reserve(c, c->n + 1);
    c->messages[c->n++] = m;
    m->parent->chosen = m;
    c->dirty = true;
}

struct chat_message *chat_last(const struct chat *c) {
    return c->n > 0 ? c->messages[c->n - 1] : NULL;
}

struct chat_message *chat_add(struct chat *c, enum chat_role role) {
    struct chat_message *parent = c->n > 0 ? chat_last(c) : root(c);
    if (parent->role == role) {
        return NULL;
    }
    struct chat_message *m = new_message(c, parent, role);
    push(c, m);
    return m;
}

struct chat_message *chat_import(struct chat *c, struct chat_message *parent, enum chat_role role,
                                 uint64_t id) {
    parent = parent != NULL ? parent : root(c);
    if (parent->role == role) {
        return NULL;
    }
    struct chat_message *m = new_message(c, parent, role);
    m->id = id;
    return m;
}

struct chat_message *chat_add_sibling(struct chat *c, size_t i) {
    struct chat_message *m = new_message(c, c->messages[i]->parent, c->messages[i]->role);
    c->n = i;
    push(c, m);
    return m;
}

void chat_go(struct chat *c, struct chat_message *m) {
    size_t depth = 0;
    for (const struct chat_message *p = m; p != NULL && p != c->root; p = p->parent) {
        depth++;
    }
    reserve(c, depth);
    c->n = depth;
    c->dirty = true;
    for (size_t i = depth; i-- > 0; m = m->parent) {
        c->messages[i] = m;
        m->parent->chosen = m;
    }
}

void chat_go_deep(struct chat *c, struct chat_message *m) {
    while (m->chosen != NULL) {
        m = m->chosen;
    }
    chat_go(c, m);
}

void chat_cut(struct chat *c, size_t n) {
    if (n < c->n) {
        c->n = n;
        c->dirty = true;
    }
}

size_t chat_sibling(const struct chat *c, const struct chat_message *m, size_t *n) {
    const struct chat_message *parent = m->parent;
    *n = parent->n_children;
    for (size_t i = 0; i < parent->n_children; i++) {
        if (parent->children[i] == m) {
            return i;
        }
    }
    return SIZE_MAX; /* not of a tree */
}

bool chat_select(struct chat *c, size_t i, int step) {
    size_t n;
    size_t at = chat_sibling(c, c->messages[i], &n);
    if ((step < 0 && at < (size_t)-step) || (step > 0 && at + (size_t)step >= n)) {
        return false;
    }
    chat_go_deep(
        c, c->messages[i]->parent->children[step < 0 ? at - (size_t)-step : at + (size_t)step]);
    return true;
}

size_t chat_index(const struct chat *c, const struct chat_message *m) {
    for (size_t i = 0; i < c->n; i++) {
        if (c->messages[i] == m) {
            return i;
        }
    }
    return SIZE_MAX;
}

struct chat_message *chat_find(const struct chat *c, uint64_t id) {
    for (size_t i = c->n_all; i-- > 0;) { /* mostly one of the last is asked for */
        if (c->all[i]->id == id) {
            return c->all[i];
        }
    }
    return NULL;
}

struct chat_message *chat_said(const struct chat *c, const char *text) {
    const struct chat_message *last = c->n > 0 ? chat_last(c) : c->root;
    for (size_t i = 0; last != NULL && i < last->n_children; i++) {
        struct chat_message *m = last->children[i];
        if (m->role == CHAT_USER && m->text.len == strlen(text) &&
            memcmp(m->text.data, text, m->text.len) == 0) {
            return m;
        }
    }
    return NULL;
}

static bool is_below(const struct chat_message *m, const struct chat_message *top) {
    while (m != NULL && m != top) {
        m = m->parent;
    }
    return m != NULL;
}

/* Places that no longer are are forgotten, and so is the second of two equal neighbours. */
static void forget_places(struct chat *c, const struct chat_message *gone) {
    size_t kept = 0, at = 0;
    for (size_t i = 0; i < c->n_places; i++) {
        struct chat_place *p = &c->places[i];
        bool lost = p->leaf != NULL && is_below(p->leaf, gone);
        if (p->window != NULL && is_below(p->window, gone)) {
            p->window = NULL;
        }
        if (!lost && (kept == 0 || memcmp(&c->places[kept - 1], p, sizeof *p) != 0)) {
            c->places[kept++] = *p;
        }
        if (i == c->at) {
            at = kept > 0 ? kept - 1 : 0;
        }
    }
    c->n_places = kept;
    c->at = at;
}

void chat_remove(struct chat *c, struct chat_message *m) {
    struct chat_message *parent = m->parent;
    forget_places(c, m);
    size_t i = chat_index(c, m);
    if (i != SIZE_MAX) {
        c->n = i;
    }
    if (c->window != NULL && is_below(c->window, m)) {
        c->window = NULL;
    }
    for (size_t k = 0; k < parent->n_children; k++) {
        if (parent->children[k] == m) {
            memmove(&parent->children[k], &parent->children[k + 1],
                    (--parent->n_children - k) * sizeof(struct chat_message *));
            break;
        }
    }
    if (parent->chosen == m) {
        parent->chosen = parent->n_children > 0 ? parent->children[parent->n_children - 1] : NULL;
    }
    /* children stand behind their parents in `all`: found while these are still there */
    size_t kept = 0;
    struct chat_message **gone = cw_reallocarray(NULL, c->n_all + 1, sizeof *gone);
    size_t n_gone = 0;
    for (size_t k = 0; k < c->n_all; k++) {
        if (is_below(c->all[k], m)) {
            gone[n_gone++] = c->all[k];
        } else {
            c->all[kept++] = c->all[k];
        }
    }
    c->n_all = kept;
    for (size_t k = 0; k < n_gone; k++) {
        free_message(gone[k]);
    }
    free(gone);
    c->dirty = true;
}

void chat_drop_last(struct chat *c) {
    if (c->n > 0) {
        chat_remove(c, chat_last(c));
    }
}

/* ---- the timeline --------------------------------------------------------------------------- */

void chat_mark(struct chat *c) {
    if (c->n_places == 0) {
        c->places = cw_reallocarray(c->places, 1, sizeof *c->places);
        c->places[0] = (struct chat_place){NULL, NULL};
        c->n_places = 1;
        c->at = 0;
    }
    const struct chat_place now = {chat_last(c), c->window};
    if (memcmp(&c->places[c->at], &now, sizeof now) == 0) {
        return;
    }
    c->at++;
    c->places = cw_reallocarray(c->places, c->at + 1, sizeof *c->places);
    c->places[c->at] = now;
    c->n_places = c->at + 1;
    c->dirty = true;
}

static bool walk(struct chat *c, size_t to) {
    c->at = to;
    c->window = c->places[to].window;
    chat_go(c, c->places[to].leaf);
    return true;
}

bool chat_undo(struct chat *c) {
    return c->n_places > 0 && c->at > 0 && walk(c, c->at - 1);
}

bool chat_redo(struct chat *c) {
    return c->n_places > 0 && c->at + 1 < c->n_places && walk(c, c->at + 1);
}

void chat_return(struct chat *c) {
    if (c->n_places > 0) {
        walk(c, c->at);
    }
}

size_t chat_window(const struct chat *c) {
    size_t i = c->window != NULL ? chat_index(c, c->window) : SIZE_MAX;
    return i == SIZE_MAX ? 0 : i;
}

/* ---- copies --------------------------------------------------------------------------------- */

static void *copy_of(const void *p, size_t n, size_t size) {
    void *out = n > 0 ? cw_reallocarray(NULL, n, size) : NULL;
    if (n > 0) {
        memcpy(out, p, n * size);
    }
    return out;
}

static void copy_buf(struct cw_buf *to, const struct cw_buf *from, size_t n) {
    if (n > 0) {
        cw_buf_add(to, from->data, n);
    }
}

void chat_message_copy_head(struct chat_message *to, const struct chat_message *from,
                            size_t token) {
    size_t n = token < from->ids.n ? token : from->ids.n;
    bool all = n == from->ids.n;
    copy_buf(&to->text, &from->text, all ? from->text.len : from->tokens[n].text_at);
    copy_buf(&to->reasoning, &from->reasoning,
             all ? from->reasoning.len : from->tokens[n].reasoning_at);
    cw_ids_append(&to->ids, from->ids.v, n);
    to->tokens = copy_of(from->tokens, n, sizeof *to->tokens);
    to->cap_tokens = n;
    to->typed = from->typed;
    while (to->n_changes < from->n_changes && from->changes[to->n_changes].token < n) {
        to->n_changes++;
    }
    to->changes = copy_of(from->changes, to->n_changes, sizeof *to->changes);
    while (to->n_runs < from->n_runs && from->runs[to->n_runs].first < n) {
        to->n_runs++;
    }
    to->runs = copy_of(from->runs, to->n_runs, sizeof *to->runs);
    memcpy(to->origin, from->origin, sizeof to->origin);
    to->seed = from->seed;
    to->exact = from->exact;
    to->model = from->model != NULL ? cw_strdup(from->model) : NULL;
    to->hash = from->hash != NULL ? cw_strdup(from->hash) : NULL;
    to->system = from->system != NULL ? cw_strdup(from->system) : NULL;
    to->think = from->think;
    to->window = from->window;
    to->made_ms = from->made_ms;
}

void chat_fork(const struct chat *c, struct chat *out, uint64_t seed) {
    *out = (struct chat){.next_id = seed, .give_id = c->give_id, .give_arg = c->give_arg};
    out->id = new_id(out);
    out->dirty = true;
    out->parent_id = c->id;
    out->title = c->title != NULL ? cw_strdup(c->title) : NULL;
    for (size_t i = 0; i < c->n; i++) {
        const struct chat_message *from = c->messages[i];
        struct chat_message *to = chat_add(out, from->role);
        chat_message_copy_head(to, from, from->ids.n);
        copy_buf(&to->summary, &from->summary, from->summary.len);
        to->figures = from->figures;
        to->stop = from->stop;
        to->done = from->done;
        to->cost = from->cost;
        if (from == c->window) {
            out->window = to;
        }
        size_t window = from->window != NULL ? chat_index(c, from->window) : SIZE_MAX;
        to->window = window == SIZE_MAX ? NULL : out->messages[window];
    }
    chat_mark(out);
    /* the copy is where it begins */
    out->places[0] = out->places[out->at];
    out->n_places = 1;
    out->at = 0;
}

/* ---- replies -------------------------------------------------------------------------------- */

void chat_message_token(struct chat_message *m, const struct cw_draw *draw, bool thinking,
                        const char *text, size_t n) {
    for (size_t i = m->ids.n; thinking && i-- > 0 && !m->tokens[i].thinking;) {
        m->tokens[i].thinking = true; /* the marker that thinking began with */
    }
    if (m->ids.n == m->cap_tokens) {
        m->cap_tokens = m->cap_tokens ? 2 * m->cap_tokens : 64;
        m->tokens = cw_reallocarray(m->tokens, m->cap_tokens, sizeof *m->tokens);
    }
    m->tokens[m->ids.n] = (struct chat_token){
        .draw = *draw,
        .text_at = (uint32_t)m->text.len,
        .reasoning_at = (uint32_t)m->reasoning.len,
        .thinking = thinking,
    };
    cw_ids_add(&m->ids, draw->id);
    chat_message_more(m, thinking, text, n);
}

void chat_message_more(struct chat_message *m, bool thinking, const char *text, size_t n) {
    cw_buf_add(thinking ? &m->reasoning : &m->text, text, n);
}

void chat_message_change(struct chat_message *m, uint64_t token, const struct cw_sampling *from,
                         const struct cw_sampling *to) {
    m->changes = cw_reallocarray(m->changes, m->n_changes + 1, sizeof *m->changes);
    m->changes[m->n_changes++] = (struct chat_change){token, m->text.len, *from, *to};
}

void chat_message_run(struct chat_message *m, uint64_t position, uint32_t seed,
                      const struct cw_sampling *sampling) {
    if (m->n_runs > 0 && m->runs[m->n_runs - 1].first == m->ids.n) {
        m->n_runs--; /* that one drew nothing */
    }
    m->runs = cw_reallocarray(m->runs, m->n_runs + 1, sizeof *m->runs);
    m->runs[m->n_runs++] = (struct chat_run){m->ids.n, position, seed, *sampling};
    m->seed = seed;
    m->dirty = true;
}

const struct cw_sampling *chat_message_sampling(const struct chat_message *m) {
    const struct chat_run *run = m->n_runs > 0 ? &m->runs[m->n_runs - 1] : NULL;
    const struct chat_change *change = m->n_changes > 0 ? &m->changes[m->n_changes - 1] : NULL;
    if (change != NULL && (run == NULL || change->token >= run->first)) {
        return &change->to;
    }
    return run != NULL ? &run->sampling : NULL;
}

bool chat_message_has_ids(const struct chat_message *m) {
    return m->typed == 0 && m->ids.n > 0;
}

/* ---- for the generator ---------------------------------------------------------------------- */

struct cw_message *chat_messages_of(const struct chat *c, size_t first, size_t end,
                                    const char *system, struct cw_buf *scratch, size_t *n) {
    struct cw_message *out = cw_calloc(end - first + 2, sizeof *out);
    const struct cw_buf *summary = first > 0 ? &c->messages[first]->summary : NULL;
    *n = 0;
    cw_buf_clear(scratch);
    cw_buf_puts(scratch, system != NULL ? system : "");
    if (summary != NULL && summary->len > 0) {
        cw_buf_printf(scratch,
                      "%sWhat was said before, in short: ", scratch->len > 0 ? "\n\n" : "");
        cw_buf_add(scratch, summary->data, summary->len);
    }
    if (scratch->len > 0) {
        out[(*n)++] =
            (struct cw_message){.role = "system", .content = scratch->data, .len = scratch->len};
    }
    for (size_t i = first; i < end; i++) {
        const struct chat_message *m = c->messages[i];
        bool reply = m->role == CHAT_REPLY;
        bool ids = reply && chat_message_has_ids(m);
        if (reply && i + 1 == end && m->text.len == 0 && m->ids.n == 0) {
            break; /* the one that is being asked for */
        }
        out[(*n)++] = (struct cw_message){
            .role = reply ? "assistant" : "user",
            .content = m->text.data ? m->text.data : "",
            .len = m->text.len,
            .ids = ids ? m->ids.v : NULL,
            .n_ids = ids ? m->ids.n : 0,
            .reasoning = m->reasoning.data,
            .reasoning_len = m->reasoning.len,
        };
    }
    return out;
}

struct cw_message *chat_messages(const struct chat *c, const char *system, struct cw_buf *scratch,
                                 size_t *n) {
    return chat_messages_of(c, chat_window(c), c->n, system, scratch, n);
}

void chat_raw(const struct chat *c, struct cw_buf *out) {
    for (size_t i = chat_window(c); i < c->n; i++) {
        const struct cw_buf *text = &c->messages[i]->text;
        if (text->len > 0) {
            cw_buf_add(out, text->data, text->len);
        }
    }
}

/* One setting of the label. */
static void label(struct cw_buf *out, const char *name, double from, double to, int digits) {
    /* the values were set as they are compared, so equal means untouched */
    if (from < to || from > to) {
        cw_buf_printf(out, "%s%s %.*f -> %.*f", out->len > 0 ? ", " : "", name, digits, from,
                      digits, to);
    }
}

void chat_change_label(const struct cw_sampling *from, const struct cw_sampling *to,
                       struct cw_buf *out) {
    label(out, "T", (double)from->temp, (double)to->temp, 2);
    label(out, "top-p", (double)from->top_p, (double)to->top_p, 2);
    label(out, "top-k", from->top_k, to->top_k, 0);
    label(out, "min-p", (double)from->min_p, (double)to->min_p, 2);
    label(out, "typical-p", (double)from->typical_p, (double)to->typical_p, 2);
    label(out, "repeat-penalty", (double)from->penalty_repeat, (double)to->penalty_repeat, 2);
    label(out, "frequency-penalty", (double)from->penalty_frequency, (double)to->penalty_frequency,
          2);
    label(out, "presence-penalty", (double)from->penalty_presence, (double)to->penalty_presence, 2);
    label(out, "dry", (double)from->dry_multiplier, (double)to->dry_multiplier, 2);
    label(out, "xtc", (double)from->xtc_probability, (double)to->xtc_probability, 2);
    if (out->len == 0 && memcmp(from, to, sizeof *from) != 0) {
        cw_buf_puts(out, "settings changed");
    }
}
