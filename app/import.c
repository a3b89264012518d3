/* SPDX-License-Identifier: MIT
 *
 * Conversations read from JSON: ours, lists of messages as chat interfaces take them, ShareGPT. See
 * exchange.h.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/exchange.h"
#include "app/json.h"

enum { MAX_MESSAGES = 1000000, TITLE_BYTES = 400, OUR_VERSION = 1 };

struct reading {
    struct app_import *out;
    struct cw_err *err;
    const char *where; /* for the error line: "line 3", "" */
    size_t at;         /* number of the message, from 1 */
};

static int fail(struct reading *r, const char *what) {
    if (r->at > 0) {
        return cw_fail(r->err, CW_EFORMAT, "%smessage %zu: %s", r->where, r->at, what);
    }
    return cw_fail(r->err, CW_EFORMAT, "%s%s", r->where, what);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* Hand a block over to what is read: freed with it. */
static void *own(struct reading *r, void *block) {
    struct app_import *out = r->out;
    if ((out->n_memory & (out->n_memory - 1)) == 0) { /* a power of two, or none */
        out->memory = cw_reallocarray(out->memory, out->n_memory ? 2 * out->n_memory : 1,
                                      sizeof *out->memory);
    }
    out->memory[out->n_memory++] = block;
    return block;
}

static struct cw_str own_text(struct reading *r, const char *text, size_t n) {
    return (struct cw_str){own(r, cw_strndup(text, n)), n};
}

void app_import_free(struct app_import *in) {
    for (size_t i = 0; i < in->n_memory; i++) {
        free(in->memory[i]);
    }
    free(in->memory);
    for (size_t i = 0; i < in->n; i++) {
        free(in->v[i].messages);
    }
    free(in->v);
    *in = (struct app_import){0};
}

static struct app_imported *add_conversation(struct reading *r) {
    r->out->v = cw_reallocarray(r->out->v, r->out->n + 1, sizeof *r->out->v);
    struct app_imported *c = &r->out->v[r->out->n++];
    *c = (struct app_imported){0};
    return c;
}

static struct cw_store_message *add_message(struct app_imported *c) {
    if ((c->n_messages & (c->n_messages - 1)) == 0) {
        c->messages = cw_reallocarray(c->messages, c->n_messages ? 2 * c->n_messages : 1,
                                      sizeof *c->messages);
    }
    struct cw_store_message *m = &c->messages[c->n_messages++];
    *m = (struct cw_store_message){.done = true};
    return m;
}

/* ---- values --------------------------------------------------------------------------------- */

static struct json_object *field(struct json_object *o, const char *name, enum json_type type) {
    struct json_object *v = NULL;
    return json_object_object_get_ex(o, name, &v) && json_object_is_type(v, type) ? v : NULL;
}

static struct cw_str text_of(struct json_object *v) {
    if (v == NULL) {
        return (struct cw_str){"", 0};
    }
    return (struct cw_str){json_object_get_string(v), (size_t)json_object_get_string_len(v)};
}

static int hex_digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A text of ours; the bytes of NAME_hex go before what stands in NAME. */
static struct cw_str our_text(struct reading *r, struct json_object *o, const char *name) {
    char key[40];
    snprintf(key, sizeof key, "%s_hex", name);
    struct cw_str hex = text_of(field(o, key, json_type_string));
    struct cw_str text = text_of(field(o, name, json_type_string));
    if (hex.len == 0 || hex.len % 2 != 0) {
        return own_text(r, text.data, text.len);
    }
    char *bytes = own(r, cw_malloc(hex.len / 2 + 1));
    for (size_t i = 0; i < hex.len; i += 2) {
        int hi = hex_digit(hex.data[i]), lo = hex_digit(hex.data[i + 1]);
        if (hi < 0 || lo < 0) {
            return own_text(r, text.data, text.len);
        }
        bytes[i / 2] = (char)(hi << 4 | lo);
    }
    bytes[hex.len / 2] = '\0';
    return (struct cw_str){bytes, hex.len / 2};
}

static int64_t integer(struct json_object *v, int64_t min, int64_t max, int64_t fallback) {
    if (!json_object_is_type(v, json_type_int)) {
        return fallback;
    }
    int64_t n = json_object_get_int64(v);
    return n >= min && n <= max ? n : fallback;
}

static int64_t integer_field(struct json_object *o, const char *name, int64_t min, int64_t max) {
    return integer(field(o, name, json_type_int), min, max, 0);
}

static double real(struct json_object *v, double fallback) {
    if (json_object_is_type(v, json_type_string)) {
        const char *s = json_object_get_string(v);
        return strcmp(s, "-inf") == 0  ? (double)-INFINITY
               : strcmp(s, "inf") == 0 ? (double)INFINITY
               : strcmp(s, "nan") == 0 ? (double)NAN
                                       : fallback;
    }
    bool number = json_object_is_type(v, json_type_double) || json_object_is_type(v, json_type_int);
    return number ? json_object_get_double(v) : fallback;
}

static void float_field(struct json_object *o, const char *name, float *out) {
    struct json_object *v = NULL;
    if (json_object_object_get_ex(o, name, &v)) {
        *out = (float)real(v, (double)*out);
    }
}

static double double_field(struct json_object *o, const char *name) {
    struct json_object *v = NULL;
    return json_object_object_get_ex(o, name, &v) ? real(v, 0) : 0;
}

/* A title that can be shown anywhere. */
static struct cw_str title_of(struct reading *r, struct cw_str text) {
    char line[TITLE_BYTES];
    size_t n = cw_printable(line, sizeof line, text.data, text.len);
    return own_text(r, line, n);
}

/* ---- ours ----------------------------------------------------------------------------------- */

static void read_sampling(struct json_object *o, struct cw_sampling *s) {
    memset(s, 0, sizeof *s);
    if (o == NULL) {
        return;
    }
    float_field(o, "temp", &s->temp);
    float_field(o, "top_p", &s->top_p);
    float_field(o, "min_p", &s->min_p);
    float_field(o, "typical_p", &s->typical_p);
    float_field(o, "penalty_repeat", &s->penalty_repeat);
    float_field(o, "penalty_frequency", &s->penalty_frequency);
    float_field(o, "penalty_presence", &s->penalty_presence);
    float_field(o, "dry_multiplier", &s->dry_multiplier);
    float_field(o, "dry_base", &s->dry_base);
    float_field(o, "xtc_probability", &s->xtc_probability);
    float_field(o, "xtc_threshold", &s->xtc_threshold);
    s->top_k = (int32_t)integer_field(o, "top_k", 0, INT32_MAX);
    s->penalty_last_n = (int32_t)integer_field(o, "penalty_last_n", -1, INT32_MAX);
    s->dry_allowed_length = (int32_t)integer_field(o, "dry_allowed_length", 0, INT32_MAX);
    s->dry_last_n = (int32_t)integer_field(o, "dry_last_n", -1, INT32_MAX);
    struct json_object *list = field(o, "bias", json_type_array);
    size_t n = list != NULL ? json_object_array_length(list) : 0;
    for (size_t i = 0; i < n && s->n_bias < CW_MAX_BIAS; i++) {
        struct json_object *pair = json_object_array_get_idx(list, i);
        if (json_object_is_type(pair, json_type_array) && json_object_array_length(pair) == 2) {
            s->bias[s->n_bias].id =
                (int32_t)integer(json_object_array_get_idx(pair, 0), 0, INT32_MAX, 0);
            s->bias[s->n_bias++].bias = (float)real(json_object_array_get_idx(pair, 1), 0);
        }
    }
}

static void read_figures(struct json_object *o, struct cw_figures *f) {
    if (o == NULL) {
        return;
    }
    f->n_prompt = (size_t)integer_field(o, "n_prompt", 0, INT64_MAX);
    f->n_reused = (size_t)integer_field(o, "n_reused", 0, INT64_MAX);
    f->n_evaluated = (size_t)integer_field(o, "n_evaluated", 0, INT64_MAX);
    f->n_tokens = (size_t)integer_field(o, "n_tokens", 0, INT64_MAX);
    f->n_ctx_used = (size_t)integer_field(o, "n_ctx_used", 0, INT64_MAX);
    f->n_ctx = (size_t)integer_field(o, "n_ctx", 0, INT64_MAX);
    f->prompt_s = double_field(o, "prompt_s");
    f->ttft_s = double_field(o, "ttft_s");
    f->first_s = double_field(o, "first_s");
    f->last_s = double_field(o, "last_s");
    f->eval_s = double_field(o, "eval_s");
    f->tps = double_field(o, "tps");
}

static bool read_token(struct json_object *o, struct cw_store_token *t) {
    memset(t, 0, sizeof *t);
    if (!json_object_is_type(o, json_type_array) || json_object_array_length(o) != 9) {
        return false;
    }
    struct json_object *v[9];
    for (size_t i = 0; i < 9; i++) {
        v[i] = json_object_array_get_idx(o, i);
    }
    int64_t id = integer(v[0], 0, INT32_MAX, -1);
    t->draw.id = (int32_t)id;
    t->draw.p = (float)real(v[1], 0);
    t->draw.p_raw = (float)real(v[2], 0);
    t->draw.rank = (int32_t)integer(v[3], 0, INT32_MAX, 0);
    t->draw.entropy = (float)real(v[4], 0);
    t->n_text = (uint32_t)integer(v[5], 0, UINT32_MAX, 0);
    t->thinking = integer(v[6], 0, 1, 0) != 0;
    t->mark = (uint8_t)integer(v[7], 0, 15, 0);
    if (id < 0 || !json_object_is_type(v[8], json_type_array) ||
        json_object_array_length(v[8]) > CW_N_ALTERNATIVES) {
        return false;
    }
    t->draw.n_alternatives = (int)json_object_array_length(v[8]);
    for (int i = 0; i < t->draw.n_alternatives; i++) {
        struct json_object *a = json_object_array_get_idx(v[8], (size_t)i);
        if (!json_object_is_type(a, json_type_array) || json_object_array_length(a) != 3) {
            return false;
        }
        t->draw.alternatives[i].id =
            (int32_t)integer(json_object_array_get_idx(a, 0), 0, INT32_MAX, 0);
        t->draw.alternatives[i].p_raw = (float)real(json_object_array_get_idx(a, 1), 0);
        t->draw.alternatives[i].p = (float)real(json_object_array_get_idx(a, 2), 0);
    }
    return true;
}

static bool role_of(struct cw_str name, enum cw_store_role *role) {
    static const struct {
        const char *name;
        enum cw_store_role role;
    } roles[] = {
        {"user", CW_STORE_USER},        {"human", CW_STORE_USER},
        {"prompter", CW_STORE_USER},    {"assistant", CW_STORE_REPLY},
        {"gpt", CW_STORE_REPLY},        {"chatgpt", CW_STORE_REPLY},
        {"bard", CW_STORE_REPLY},       {"bing", CW_STORE_REPLY},
        {"model", CW_STORE_REPLY},      {"bot", CW_STORE_REPLY},
        {"system", CW_STORE_SYSTEM},    {"developer", CW_STORE_SYSTEM},
        {"tool", CW_STORE_TOOL},        {"function", CW_STORE_TOOL},
        {"observation", CW_STORE_TOOL}, {"function_call", CW_STORE_TOOL},
    };
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++) {
        if (cw_str_eq(name, roles[i].name)) {
            *role = roles[i].role;
            return true;
        }
    }
    return false;
}

static int read_our_message(struct reading *r, struct json_object *o, struct app_imported *c) {
    if (!json_object_is_type(o, json_type_object)) {
        return fail(r, "not an object");
    }
    struct json_object *parent = field(o, "parent", json_type_int);
    int64_t index = integer(parent, 0, (int64_t)c->n_messages, -1);
    enum cw_store_role role;
    if (index < 0) {
        return fail(r, "its parent is no earlier message");
    }
    if (!role_of(text_of(field(o, "role", json_type_string)), &role)) {
        return fail(r, "unknown role");
    }
    struct cw_store_message *m = add_message(c);
    m->parent = index;
    m->role = role;
    m->text = our_text(r, o, "content");
    m->reasoning = our_text(r, o, "reasoning");
    m->created_ms = integer_field(o, "created_ms", 0, INT64_MAX / 2);
    m->lost = json_object_get_boolean(field(o, "lost", json_type_boolean));
    m->stop = (int)integer_field(o, "stop", 0, 15);
    m->seed = (uint32_t)integer_field(o, "seed", 0, UINT32_MAX);
    m->first_position = (uint64_t)integer_field(o, "first_position", 0, INT64_MAX);
    m->model = our_text(r, o, "model");
    m->hash = our_text(r, o, "hash");
    m->arithmetic = our_text(r, o, "arithmetic");
    m->extra = our_text(r, o, "extra");
    read_sampling(field(o, "sampling", json_type_object), &m->sampling);
    read_figures(field(o, "figures", json_type_object), &m->figures);

    struct json_object *list = field(o, "changes", json_type_array);
    size_t n = list != NULL ? json_object_array_length(list) : 0;
    struct cw_store_change *changes = n > 0 ? own(r, cw_calloc(n, sizeof *changes)) : NULL;
    for (size_t i = 0; i < n; i++) {
        struct json_object *change = json_object_array_get_idx(list, i);
        if (!json_object_is_type(change, json_type_object)) {
            return fail(r, "a change of settings is not an object");
        }
        changes[i].token = (uint64_t)integer_field(change, "token", 0, INT64_MAX);
        changes[i].offset = (uint64_t)integer_field(change, "offset", 0, INT64_MAX);
        read_sampling(field(change, "from", json_type_object), &changes[i].from);
        read_sampling(field(change, "to", json_type_object), &changes[i].to);
    }
    m->changes = changes;
    m->n_changes = n;

    list = field(o, "tokens", json_type_array);
    n = list != NULL ? json_object_array_length(list) : 0;
    struct cw_store_token *tokens = n > 0 ? own(r, cw_calloc(n, sizeof *tokens)) : NULL;
    for (size_t i = 0; i < n; i++) {
        if (!read_token(json_object_array_get_idx(list, i), &tokens[i])) {
            return fail(r, "a token is malformed");
        }
    }
    m->tokens = tokens;
    m->n_tokens = n;
    return CW_OK;
}

static int read_ours(struct reading *r, struct json_object *o) {
    char line[96];
    int64_t version = integer(field(o, "version", json_type_int), 1, INT64_MAX, 0);
    if (version > OUR_VERSION) {
        snprintf(line, sizeof line, "format %lld is of a newer version of chinwag",
                 (long long)version);
        return fail(r, line);
    }
    struct json_object *list = field(o, "messages", json_type_array);
    if (version == 0 || list == NULL) {
        return fail(r, "no version or no messages in it");
    }
    size_t n = json_object_array_length(list);
    if (n > MAX_MESSAGES) {
        return fail(r, "too many messages");
    }
    size_t at = r->out->n;
    add_conversation(r);
    for (size_t i = 0; i < n; i++) {
        r->at = i + 1;
        int rc = read_our_message(r, json_object_array_get_idx(list, i), &r->out->v[at]);
        if (rc != CW_OK) {
            return rc;
        }
    }
    r->at = 0;
    struct cw_store_conversation *c = &r->out->v[at].conversation;
    c->title = title_of(r, our_text(r, o, "title"));
    c->created_ms = integer_field(o, "created_ms", 0, INT64_MAX / 2);
    c->updated_ms = integer_field(o, "updated_ms", 0, INT64_MAX / 2);
    c->model = our_text(r, o, "model");
    c->hash = our_text(r, o, "hash");
    c->system = our_text(r, o, "system");
    c->settings = our_text(r, o, "settings");
    c->leaf = integer_field(o, "leaf", 0, (int64_t)n);
    return CW_OK;
}

/* ---- others' -------------------------------------------------------------------------------- */

/* Content of a message: text, nothing, or a list of parts of which the texts count. */
static int content_of(struct reading *r, struct json_object *v, struct cw_str *out) {
    if (v == NULL) {
        *out = (struct cw_str){"", 0};
        return CW_OK;
    }
    if (json_object_is_type(v, json_type_string)) {
        struct cw_str text = text_of(v);
        *out = own_text(r, text.data, text.len);
        return CW_OK;
    }
    if (!json_object_is_type(v, json_type_array)) {
        return fail(r, "its content is no text");
    }
    struct cw_buf all = {0};
    size_t n = json_object_array_length(v);
    for (size_t i = 0; i < n; i++) {
        struct json_object *part = json_object_array_get_idx(v, i);
        struct json_object *text = part;
        if (json_object_is_type(part, json_type_object)) {
            text = field(part, "text", json_type_string);
        }
        if (text != NULL && json_object_is_type(text, json_type_string)) {
            struct cw_str s = text_of(text);
            cw_buf_add(&all, s.data, s.len);
        } else {
            r->out->n_left_out++;
        }
    }
    out->len = all.len;
    out->data = own(r, cw_buf_take(&all));
    return CW_OK;
}

/* A message in a line after the one before; the first system message is the conversation's. */
static int read_plain(struct reading *r, struct json_object *o, size_t conversation) {
    struct cw_str content, reasoning = {"", 0};
    enum cw_store_role role;
    struct json_object *v = NULL;
    if (!json_object_is_type(o, json_type_object)) {
        return fail(r, "not an object");
    }
    bool share = field(o, "from", json_type_string) != NULL;
    if (!role_of(text_of(field(o, share ? "from" : "role", json_type_string)), &role)) {
        return fail(r, "no role, or an unknown one");
    }
    json_object_object_get_ex(o, share ? "value" : "content", &v);
    int rc = content_of(r, v, &content);
    if (rc != CW_OK) {
        return rc;
    }
    static const char *const thoughts[] = {"reasoning_content", "reasoning", "thinking"};
    v = NULL;
    for (size_t i = 0; i < sizeof thoughts / sizeof *thoughts && v == NULL; i++) {
        v = field(o, thoughts[i], json_type_string);
    }
    if (v != NULL) {
        reasoning = own_text(r, text_of(v).data, text_of(v).len);
    }
    struct app_imported *c = &r->out->v[conversation];
    if (role == CW_STORE_SYSTEM && c->n_messages == 0 && c->conversation.system.len == 0) {
        c->conversation.system = content;
        return CW_OK;
    }
    if (c->n_messages >= MAX_MESSAGES) {
        return fail(r, "too many messages");
    }
    struct cw_store_message *m = add_message(c);
    m->parent = (int64_t)c->n_messages - 1;
    m->role = role;
    m->text = content;
    m->reasoning = reasoning;
    c->conversation.leaf = (int64_t)c->n_messages;
    return CW_OK;
}

static int read_list(struct reading *r, struct json_object *list, struct json_object *head) {
    size_t at = r->out->n;
    size_t n = json_object_array_length(list);
    add_conversation(r);
    for (size_t i = 0; i < n; i++) {
        r->at = i + 1;
        int rc = read_plain(r, json_object_array_get_idx(list, i), at);
        if (rc != CW_OK) {
            return rc;
        }
    }
    r->at = 0;
    struct cw_store_conversation *c = &r->out->v[at].conversation;
    if (r->out->v[at].n_messages == 0) {
        return fail(r, "a conversation without a message");
    }
    if (head != NULL) {
        struct cw_str model = text_of(field(head, "model", json_type_string));
        struct cw_str system = text_of(field(head, "system", json_type_string));
        c->title = title_of(r, text_of(field(head, "title", json_type_string)));
        c->model = own_text(r, model.data, model.len);
        if (c->system.len == 0 && system.len > 0) {
            c->system = own_text(r, system.data, system.len);
        }
    }
    return CW_OK;
}

static int read_value(struct reading *r, struct json_object *v, int depth) {
    if (json_object_is_type(v, json_type_object)) {
        struct json_object *messages = field(v, "messages", json_type_array);
        struct json_object *share = field(v, "conversations", json_type_array);
        if (cw_str_eq(text_of(field(v, "format", json_type_string)), "chinwag")) {
            return read_ours(r, v);
        }
        if (messages != NULL || share != NULL) {
            return read_list(r, messages != NULL ? messages : share, v);
        }
        return fail(r, "no conversation in it: neither \"messages\" nor \"conversations\"");
    }
    if (!json_object_is_type(v, json_type_array) || json_object_array_length(v) == 0) {
        return fail(r, "no conversation in it");
    }
    struct json_object *first = json_object_array_get_idx(v, 0);
    if (json_object_is_type(first, json_type_object) &&
        (field(first, "role", json_type_string) != NULL ||
         field(first, "from", json_type_string) != NULL)) {
        return read_list(r, v, NULL);
    }
    if (depth > 0) {
        return fail(r, "lists in lists are no conversations");
    }
    int rc = CW_OK;
    for (size_t i = 0; i < json_object_array_length(v) && rc == CW_OK; i++) {
        char where[40];
        snprintf(where, sizeof where, "conversation %zu: ", i + 1);
        r->where = where;
        rc = read_value(r, json_object_array_get_idx(v, i), depth + 1);
        r->where = "";
    }
    return rc;
}

/* A value a line: messages make one conversation, anything else is one each. */
static int read_lines(struct reading *r, const char *text, size_t n) {
    size_t number = 0;
    size_t into = SIZE_MAX;
    int rc = CW_OK;
    for (size_t at = 0; at < n && rc == CW_OK;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end != NULL ? (size_t)(end - (text + at)) : n - at;
        char where[40];
        number++;
        snprintf(where, sizeof where, "line %zu: ", number);
        if (strspn(text + at, " \t\r") < len) {
            struct cw_err why;
            struct json_object *v = app_json_parse(text + at, len, &why);
            r->where = where;
            if (v == NULL) {
                rc = fail(r, why.text);
            } else if (json_object_is_type(v, json_type_object) &&
                       field(v, "role", json_type_string) != NULL) {
                if (into == SIZE_MAX) {
                    into = r->out->n;
                    add_conversation(r);
                }
                rc = read_plain(r, v, into);
            } else {
                rc = read_value(r, v, 0);
            }
            json_object_put(v);
        }
        at += len + 1;
    }
    return rc;
}

int app_import_parse(const char *text, size_t n, struct app_import *out, struct cw_err *err) {
    struct reading r = {.out = out, .err = err, .where = ""};
    struct cw_err why = {0};
    *out = (struct app_import){0};
    if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3; /* a byte order mark */
        n -= 3;
    }
    struct json_object *v = app_json_parse(text, n, &why);
    int rc;
    const char *end = memchr(text, '\n', n);
    if (v != NULL) {
        rc = read_value(&r, v, 0);
        json_object_put(v);
    } else if (end != NULL && n > 1 && text[strspn(text, " \t\r\n")] == '{' &&
               memchr(text, '}', (size_t)(end - text)) != NULL) {
        rc = read_lines(&r, text, n);
    } else {
        rc = cw_fail(err, why.code, "%s", why.text);
    }
    if (rc == CW_OK && out->n == 0) {
        rc = cw_fail(err, CW_EFORMAT, "no conversation in it");
    }
    if (rc != CW_OK) {
        app_import_free(out);
    }
    return rc;
}
