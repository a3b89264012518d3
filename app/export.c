/* SPDX-License-Identifier: MIT
 *
 * Conversations written as Markdown, text, HTML and JSON. See exchange.h.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/exchange.h"
#include "app/json.h"
#include "chinwag/utf8.h"

static const char *const format_names[] = {"md", "json", "jsonl", "txt", "html"};

bool app_format_find(const char *name, enum app_format *out) {
    for (size_t i = 0; i < sizeof format_names / sizeof *format_names; i++) {
        if (strcmp(name, format_names[i]) == 0) {
            *out = (enum app_format)i;
            return true;
        }
    }
    return false;
}

/* ---- the branch ----------------------------------------------------------------------------- */

static size_t index_of(const struct cw_store_message *m, size_t n, int64_t id) {
    size_t i = 0;
    while (i < n && m[i].id != id) {
        i++;
    }
    return i;
}

/* Indices of the messages from the first to the leaf. Caller must free. */
static size_t *find_branch(const struct cw_store_conversation *c, const struct cw_store_message *m,
                           size_t n, size_t *length) {
    size_t *path = cw_calloc(n + 1, sizeof *path);
    size_t at = c->leaf != 0 ? index_of(m, n, c->leaf) : n;
    size_t k = 0;
    if (at == n && n > 0) {
        at = n - 1;
    }
    for (size_t limit = at; n > 0 && at < n; k++) {
        path[k] = at;
        at = m[at].parent != 0 ? index_of(m, limit, m[at].parent) : n; /* parents come first */
        at = at == limit ? n : at;
        limit = at < n ? at : limit;
    }
    for (size_t i = 0; i < k / 2; i++) {
        size_t swap = path[i];
        path[i] = path[k - 1 - i];
        path[k - 1 - i] = swap;
    }
    *length = k;
    return path;
}

static const char *role_name(enum cw_store_role role) {
    return role == CW_STORE_REPLY    ? "assistant"
           : role == CW_STORE_SYSTEM ? "system"
           : role == CW_STORE_TOOL   ? "tool"
                                     : "user";
}

/* ---- for people ----------------------------------------------------------------------------- */

static void put_date(struct cw_buf *out, int64_t ms) {
    char text[32];
    time_t when = (time_t)(ms / 1000);
    struct tm tm;
    if (localtime_r(&when, &tm) != NULL && strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm) > 0) {
        cw_buf_puts(out, text);
    }
}

static void put_escaped(struct cw_buf *out, const char *s, size_t n, bool html) {
    for (size_t i = 0; i < n; i++) {
        const char *name = !html          ? NULL
                           : s[i] == '&'  ? "&amp;"
                           : s[i] == '<'  ? "&lt;"
                           : s[i] == '>'  ? "&gt;"
                           : s[i] == '"'  ? "&quot;"
                           : s[i] == '\'' ? "&#39;"
                                          : NULL;
        if (name != NULL) {
            cw_buf_puts(out, name);
        } else {
            cw_buf_putc(out, s[i]);
        }
    }
}

/* Text fit to be shown: line ends and tabs stay, what commands a terminal is spelt out. Each line
 * begins with `indent`. */
static void put_text(struct cw_buf *out, struct cw_str text, const char *indent, bool html) {
    char piece[16];
    bool line_begins = true;
    for (size_t i = 0; i < text.len;) {
        uint32_t cp;
        int len = cw_utf8_decode(text.data + i, text.len - i, &cp);
        size_t used = len > 0 ? (size_t)len : 1;
        if (line_begins) {
            cw_buf_puts(out, indent);
            line_begins = false;
        }
        if (cp == '\r' && i + 1 < text.len && text.data[i + 1] == '\n') {
            /* the line end says it all */
        } else if (cp == '\n' || cp == '\t') {
            cw_buf_putc(out, (char)cp);
            line_begins = cp == '\n';
        } else {
            size_t n = cw_printable(piece, sizeof piece, text.data + i, used);
            put_escaped(out, piece, n, html);
        }
        i += used;
    }
    if (!line_begins) {
        cw_buf_putc(out, '\n');
    }
}

static void put_line(struct cw_buf *out, struct cw_str text, bool html) {
    char piece[16];
    for (size_t i = 0; i < text.len;) {
        uint32_t cp;
        int len = cw_utf8_decode(text.data + i, text.len - i, &cp);
        size_t used = len > 0 ? (size_t)len : 1;
        size_t n = cw_printable(piece, sizeof piece, text.data + i, used);
        put_escaped(out, piece, n, html);
        i += used;
    }
}

static void put_speaker(struct cw_buf *out, const struct cw_store_conversation *c,
                        const struct cw_store_message *m, bool html) {
    if (m->role == CW_STORE_USER) {
        cw_buf_puts(out, "you");
    } else if (m->role == CW_STORE_REPLY && (m->model.len > 0 || c->model.len > 0)) {
        put_line(out, m->model.len > 0 ? m->model : c->model, html);
    } else {
        cw_buf_puts(out, role_name(m->role));
    }
}

static const struct cw_str lost_text = {"(could not be recovered)", 24};

static void export_md(const struct cw_store_conversation *c, const struct cw_store_message *m,
                      const size_t *path, size_t length, struct cw_buf *out) {
    cw_buf_puts(out, "# ");
    put_line(out, c->title, false);
    cw_buf_puts(out, "\n\n*");
    put_line(out, c->model, false);
    cw_buf_puts(out, c->model.len > 0 ? ", " : "");
    put_date(out, c->created_ms);
    cw_buf_puts(out, "*\n");
    if (c->system.len > 0) {
        cw_buf_puts(out, "\n## system\n\n");
        put_text(out, c->system, "", false);
    }
    for (size_t i = 0; i < length; i++) {
        const struct cw_store_message *one = &m[path[i]];
        cw_buf_puts(out, "\n## ");
        put_speaker(out, c, one, false);
        cw_buf_puts(out, "\n\n");
        if (one->reasoning.len > 0) {
            put_text(out, one->reasoning, "> ", false);
            cw_buf_putc(out, '\n');
        }
        put_text(out, one->lost ? lost_text : one->text, "", false);
    }
}

static void export_txt(const struct cw_store_conversation *c, const struct cw_store_message *m,
                       const size_t *path, size_t length, struct cw_buf *out) {
    put_line(out, c->title, false);
    cw_buf_putc(out, '\n');
    if (c->system.len > 0) {
        cw_buf_puts(out, "\nsystem:\n");
        put_text(out, c->system, "  ", false);
    }
    for (size_t i = 0; i < length; i++) {
        const struct cw_store_message *one = &m[path[i]];
        cw_buf_putc(out, '\n');
        put_speaker(out, c, one, false);
        cw_buf_puts(out, ":\n");
        put_text(out, one->reasoning, "  | ", false);
        put_text(out, one->lost ? lost_text : one->text, "  ", false);
    }
}

static void put_block(struct cw_buf *out, const char *kind, struct cw_str text) {
    if (text.len > 0) {
        cw_buf_printf(out, "<pre%s>", kind);
        put_text(out, text, "", true);
        cw_buf_puts(out, "</pre>\n");
    }
}

static void export_html(const struct cw_store_conversation *c, const struct cw_store_message *m,
                        const size_t *path, size_t length, struct cw_buf *out) {
    cw_buf_puts(out, "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                     "style-src 'unsafe-inline'\">\n<title>");
    put_line(out, c->title, true);
    cw_buf_puts(out, "</title>\n<style>\n"
                     "body{max-width:48em;margin:2em auto;padding:0 1em;font-family:sans-serif}\n"
                     "pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit}\n"
                     "h2{font-size:1em;margin:1.5em 0 0}\n"
                     ".reasoning{opacity:.6;border-left:3px solid;padding-left:1em}\n"
                     "</style>\n</head>\n<body>\n<h1>");
    put_line(out, c->title, true);
    cw_buf_puts(out, "</h1>\n<p>");
    put_line(out, c->model, true);
    cw_buf_puts(out, c->model.len > 0 ? ", " : "");
    put_date(out, c->created_ms);
    cw_buf_puts(out, "</p>\n");
    if (c->system.len > 0) {
        cw_buf_puts(out, "<h2>system</h2>\n");
        put_block(out, "", c->system);
    }
    for (size_t i = 0; i < length; i++) {
        const struct cw_store_message *one = &m[path[i]];
        cw_buf_puts(out, "<h2>");
        put_speaker(out, c, one, true);
        cw_buf_puts(out, "</h2>\n");
        put_block(out, " class=\"reasoning\"", one->reasoning);
        put_block(out, "", one->lost ? lost_text : one->text);
    }
    cw_buf_puts(out, "</body>\n</html>\n");
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static struct json_object *exact(double v, int digits) {
    char text[40];
    if (!isfinite(v)) {
        return json_object_new_string(isnan(v) ? "nan" : v > 0 ? "inf" : "-inf");
    }
    snprintf(text, sizeof text, "%.*g", digits, v);
    return json_object_new_double_s(v, text);
}

static struct json_object *exact_float(float v) {
    return exact((double)v, 9);
}

/* Text as it is; bytes that are not UTF-8 are spelt a second time, in hexadecimal. */
static void add_text(struct json_object *o, const char *name, struct cw_str text) {
    const char *data = text.data != NULL ? text.data : "";
    json_object_object_add(o, name, app_json_text(data, text.len));
    if (cw_utf8_valid(data, text.len)) {
        return;
    }
    struct cw_buf hex = {0};
    char key[40];
    for (size_t i = 0; i < text.len; i++) {
        cw_buf_printf(&hex, "%02x", (unsigned)(unsigned char)data[i]);
    }
    snprintf(key, sizeof key, "%s_hex", name);
    json_object_object_add(o, key, json_object_new_string_len(hex.data, (int)hex.len));
    cw_buf_free(&hex);
}

static void add_number(struct json_object *o, const char *name, int64_t v) {
    json_object_object_add(o, name, json_object_new_int64(v));
}

static struct json_object *sampling_json(const struct cw_sampling *s) {
    struct json_object *o = json_object_new_object();
    const struct {
        const char *name;
        float value;
    } floats[] = {{"temp", s->temp},
                  {"top_p", s->top_p},
                  {"min_p", s->min_p},
                  {"typical_p", s->typical_p},
                  {"penalty_repeat", s->penalty_repeat},
                  {"penalty_frequency", s->penalty_frequency},
                  {"penalty_presence", s->penalty_presence},
                  {"dry_multiplier", s->dry_multiplier},
                  {"dry_base", s->dry_base},
                  {"xtc_probability", s->xtc_probability},
                  {"xtc_threshold", s->xtc_threshold}};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        json_object_object_add(o, floats[i].name, exact_float(floats[i].value));
    }
    add_number(o, "top_k", s->top_k);
    add_number(o, "penalty_last_n", s->penalty_last_n);
    add_number(o, "dry_allowed_length", s->dry_allowed_length);
    add_number(o, "dry_last_n", s->dry_last_n);
    if (s->n_bias > 0) {
        struct json_object *list = json_object_new_array();
        for (int i = 0; i < s->n_bias && i < CW_MAX_BIAS; i++) {
            struct json_object *pair = json_object_new_array();
            json_object_array_add(pair, json_object_new_int(s->bias[i].id));
            json_object_array_add(pair, exact_float(s->bias[i].bias));
            json_object_array_add(list, pair);
        }
        json_object_object_add(o, "bias", list);
    }
    return o;
}

static struct json_object *figures_json(const struct cw_figures *f) {
    struct json_object *o = json_object_new_object();
    add_number(o, "n_prompt", (int64_t)f->n_prompt);
    add_number(o, "n_reused", (int64_t)f->n_reused);
    add_number(o, "n_evaluated", (int64_t)f->n_evaluated);
    add_number(o, "n_tokens", (int64_t)f->n_tokens);
    add_number(o, "n_ctx_used", (int64_t)f->n_ctx_used);
    add_number(o, "n_ctx", (int64_t)f->n_ctx);
    json_object_object_add(o, "prompt_s", exact(f->prompt_s, 17));
    json_object_object_add(o, "ttft_s", exact(f->ttft_s, 17));
    json_object_object_add(o, "first_s", exact(f->first_s, 17));
    json_object_object_add(o, "last_s", exact(f->last_s, 17));
    json_object_object_add(o, "eval_s", exact(f->eval_s, 17));
    json_object_object_add(o, "tps", exact(f->tps, 17));
    return o;
}

/* [id, p, p_raw, rank, entropy, bytes, thinking, mark, [[id, p_raw, p]...]] */
static struct json_object *token_json(const struct cw_store_token *t) {
    struct json_object *o = json_object_new_array();
    struct json_object *list = json_object_new_array();
    json_object_array_add(o, json_object_new_int(t->draw.id));
    json_object_array_add(o, exact_float(t->draw.p));
    json_object_array_add(o, exact_float(t->draw.p_raw));
    json_object_array_add(o, json_object_new_int(t->draw.rank));
    json_object_array_add(o, exact_float(t->draw.entropy));
    json_object_array_add(o, json_object_new_int64(t->n_text));
    json_object_array_add(o, json_object_new_int(t->thinking));
    json_object_array_add(o, json_object_new_int(t->mark));
    for (int i = 0; i < t->draw.n_alternatives && i < CW_N_ALTERNATIVES; i++) {
        struct json_object *a = json_object_new_array();
        json_object_array_add(a, json_object_new_int(t->draw.alternatives[i].id));
        json_object_array_add(a, exact_float(t->draw.alternatives[i].p_raw));
        json_object_array_add(a, exact_float(t->draw.alternatives[i].p));
        json_object_array_add(list, a);
    }
    json_object_array_add(o, list);
    return o;
}

static struct json_object *message_json(const struct cw_store_message *m, size_t n,
                                        const struct cw_store_message *one) {
    struct json_object *o = json_object_new_object();
    size_t parent = one->parent != 0 ? index_of(m, n, one->parent) : n;
    add_number(o, "parent", parent < n ? (int64_t)parent + 1 : 0);
    json_object_object_add(o, "role", json_object_new_string(role_name(one->role)));
    add_text(o, "content", one->text);
    if (one->reasoning.len > 0) {
        add_text(o, "reasoning", one->reasoning);
    }
    add_number(o, "created_ms", one->created_ms);
    if (one->lost) {
        json_object_object_add(o, "lost", json_object_new_boolean(true));
    }
    if (one->role == CW_STORE_REPLY) {
        add_number(o, "stop", one->stop);
        add_number(o, "seed", one->seed);
        add_number(o, "first_position", (int64_t)one->first_position);
        add_text(o, "model", one->model);
        add_text(o, "hash", one->hash);
        add_text(o, "arithmetic", one->arithmetic);
        json_object_object_add(o, "sampling", sampling_json(&one->sampling));
        json_object_object_add(o, "figures", figures_json(&one->figures));
    }
    if (one->extra.len > 0) {
        add_text(o, "extra", one->extra);
    }
    if (one->n_changes > 0) {
        struct json_object *list = json_object_new_array();
        for (size_t i = 0; i < one->n_changes; i++) {
            const struct cw_store_change *c = &one->changes[i];
            struct json_object *change = json_object_new_object();
            add_number(change, "token", (int64_t)c->token);
            add_number(change, "offset", (int64_t)c->offset);
            json_object_object_add(change, "from", sampling_json(&c->from));
            json_object_object_add(change, "to", sampling_json(&c->to));
            json_object_array_add(list, change);
        }
        json_object_object_add(o, "changes", list);
    }
    if (one->n_tokens > 0) {
        struct json_object *list = json_object_new_array_ext((int)one->n_tokens);
        for (size_t i = 0; i < one->n_tokens; i++) {
            json_object_array_add(list, token_json(&one->tokens[i]));
        }
        json_object_object_add(o, "tokens", list);
    }
    return o;
}

static void export_json(const struct cw_store_conversation *c, const struct cw_store_message *m,
                        size_t n, struct cw_buf *out) {
    struct json_object *o = json_object_new_object();
    struct json_object *list = json_object_new_array();
    size_t leaf = c->leaf != 0 ? index_of(m, n, c->leaf) : n;
    json_object_object_add(o, "format", json_object_new_string("chinwag"));
    add_number(o, "version", 1);
    add_text(o, "title", c->title);
    add_number(o, "created_ms", c->created_ms);
    add_number(o, "updated_ms", c->updated_ms);
    add_text(o, "model", c->model);
    add_text(o, "hash", c->hash);
    add_text(o, "system", c->system);
    add_text(o, "settings", c->settings);
    add_number(o, "leaf", leaf < n ? (int64_t)leaf + 1 : 0);
    for (size_t i = 0; i < n; i++) {
        json_object_array_add(list, message_json(m, i, &m[i]));
    }
    json_object_object_add(o, "messages", list);
    app_json_put(out, o, false);
}

static void export_jsonl(const struct cw_store_conversation *c, const struct cw_store_message *m,
                         const size_t *path, size_t length, struct cw_buf *out) {
    if (c->system.len > 0) {
        struct json_object *o = json_object_new_object();
        json_object_object_add(o, "role", json_object_new_string("system"));
        json_object_object_add(o, "content", app_json_text(c->system.data, c->system.len));
        app_json_put(out, o, false);
    }
    for (size_t i = 0; i < length; i++) {
        const struct cw_store_message *one = &m[path[i]];
        struct json_object *o = json_object_new_object();
        json_object_object_add(o, "role", json_object_new_string(role_name(one->role)));
        json_object_object_add(o, "content", app_json_text(one->text.data, one->text.len));
        if (one->reasoning.len > 0) {
            json_object_object_add(o, "reasoning_content",
                                   app_json_text(one->reasoning.data, one->reasoning.len));
        }
        app_json_put(out, o, false);
    }
}

void app_export(enum app_format format, const struct cw_store_conversation *c,
                const struct cw_store_message *m, size_t n, struct cw_buf *out) {
    size_t length;
    size_t *path = find_branch(c, m, n, &length);
    switch (format) {
    case APP_FORMAT_MD:
        export_md(c, m, path, length, out);
        break;
    case APP_FORMAT_JSON:
        export_json(c, m, n, out);
        break;
    case APP_FORMAT_JSONL:
        export_jsonl(c, m, path, length, out);
        break;
    case APP_FORMAT_TXT:
        export_txt(c, m, path, length, out);
        break;
    case APP_FORMAT_HTML:
        export_html(c, m, path, length, out);
        break;
    }
    free(path);
}
