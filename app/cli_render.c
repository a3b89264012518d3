/* SPDX-License-Identifier: MIT
 *
 * `chinwag render`: the prompt as a chat template writes it.
 */
#include <stdlib.h>
#include <string.h>

#include "app/engine.h"
#include "app/json.h"
#include "core/chat/think.h"

/* Messages read from JSON, with what they point into. */
struct conversation {
    struct json_object *json;
    struct cw_message *v; /* [n] */
    size_t n;
};

static int get_string(struct json_object *message, const char *key, size_t index, const char **out,
                      size_t *len, struct cw_err *err) {
    struct json_object *v = NULL;
    json_object_object_get_ex(message, key, &v);
    if (!json_object_is_type(v, json_type_string)) {
        return cw_fail(err, CW_EFORMAT, "message %zu has no string \"%s\"", index, key);
    }
    *out = json_object_get_string(v);
    *len = (size_t)json_object_get_string_len(v);
    return CW_OK;
}

static int read_conversation(const char *text, size_t len, struct conversation *c,
                             struct cw_err *err) {
    c->json = app_json_parse(text, len, err);
    if (!c->json) {
        return CW_EFORMAT;
    }
    if (!json_object_is_type(c->json, json_type_array)) {
        return cw_fail(err, CW_EFORMAT, "a list of messages is wanted");
    }
    size_t n = json_object_array_length(c->json);
    c->v = cw_calloc(n ? n : 1, sizeof *c->v);
    for (size_t i = 0; i < n; i++) {
        struct json_object *m = json_object_array_get_idx(c->json, i);
        struct cw_message *out = &c->v[i];
        size_t role_len = 0;
        if (!json_object_is_type(m, json_type_object)) {
            return cw_fail(err, CW_EFORMAT, "message %zu is not an object", i);
        }
        int rc = get_string(m, "role", i, &out->role, &role_len, err);
        if (rc == CW_OK) {
            rc = get_string(m, "content", i, &out->content, &out->len, err);
        }
        if (rc == CW_OK && json_object_object_get_ex(m, "reasoning_content", NULL)) {
            rc = get_string(m, "reasoning_content", i, &out->reasoning, &out->reasoning_len, err);
        }
        if (rc != CW_OK) {
            return rc;
        }
        if (strlen(out->role) != role_len) {
            return cw_fail(err, CW_EFORMAT, "the role of message %zu holds a NUL", i);
        }
        c->n++;
    }
    return CW_OK;
}

static void free_conversation(struct conversation *c) {
    free(c->v);
    json_object_put(c->json);
}

/* "2025-03-14T09:26:53", complete with the day of the week and of the year. */
static bool parse_time(const char *text, struct tm *out) {
    memset(out, 0, sizeof *out);
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", out);
    if (!end || *end) {
        return false;
    }
    struct tm given = *out;
    time_t t = timegm(out);
    /* timegm turns the 31st of February into March: not what was meant. */
    return t != (time_t)-1 && given.tm_mon == out->tm_mon;
}

/* The template's source: a file, or what the model carries. Caller must free. */
static char *find_source(struct cli *c, const struct app_engine *e, size_t *len,
                         struct cw_err *err) {
    const char *path = cli_value(c, "--template");
    const char *builtin = path ? cw_template_builtin(path) : NULL;
    if (builtin) {
        *len = strlen(builtin);
        return cw_strdup(builtin);
    }
    if (path) {
        return cli_read_file(path, len, err);
    }
    struct cw_str s;
    int rc = cw_gguf_str(e->gguf, "tokenizer.chat_template", &s, err);
    if (rc == CW_ENOENT) {
        cw_fail(err, rc, "%s: no chat template in this file; give one with --template", e->path);
    }
    if (rc != CW_OK) {
        return NULL;
    }
    *len = s.len;
    return cw_strndup(s.data, s.len);
}

/* The text of the model's begin or end token. Caller must free. */
static char *token_text(const struct app_engine *e, int32_t id) {
    struct cw_str s = {NULL, 0};
    if (e->tokenizer && id >= 0) {
        s = cw_tokenizer_text(e->tokenizer, id);
    }
    return cw_strndup(s.data ? s.data : "", s.len);
}

static int render(struct cli *c, const struct app_engine *e, struct cw_template_input *in) {
    struct cw_err err = {0};
    struct conversation talk = {0};
    struct cw_template *t = NULL;
    struct cw_prompt prompt = {0};
    size_t source_len = 0;
    size_t text_len = 0;
    char *text = NULL;
    const char *what = "render";
    char *source = find_source(c, e, &source_len, &err);
    int rc = source ? cw_template_create(&t, source, source_len, &err) : err.code;
    if (rc == CW_OK) {
        what = "render: standard input";
        text = cli_read_file("-", &text_len, &err);
        rc = text ? read_conversation(text, text_len, &talk, &err) : err.code;
    }
    if (rc == CW_OK) {
        what = "render";
        in->messages = talk.v;
        in->n_messages = talk.n;
        rc = cw_template_render(t, in, &prompt, NULL, &err);
    }
    int status;
    if (rc == CW_OK) {
        cw_buf_add(cli_out(), prompt.text, prompt.len);
        status = cli_finish();
    } else {
        status = cli_failed(what, &err);
    }
    cw_prompt_free(&prompt);
    cw_template_destroy(t);
    free_conversation(&talk);
    free(text);
    free(source);
    return status;
}

static int run(struct cli *c) {
    struct app_engine e = {0};
    struct cw_err err = {0};
    struct cw_template_var vars[CW_THINK_VARS];
    struct cw_template_input in = {.add_generation_prompt = !cli_has(c, "--no-generation-prompt")};
    const char *now = cli_value(c, "--now");
    if (now && !parse_time(now, &in.now)) {
        return cli_usage(c, "--now: '%s' is not a time such as 2025-03-14T09:26:53", now);
    }
    if (!now) {
        time_t t = time(NULL);
        localtime_r(&t, &in.now);
    }
    /* With a template of its own the model is needed only if it was named. */
    bool with_model = !cli_has(c, "--template") || c->settings.model;
    if (with_model && app_engine_open(&e, &c->settings, &c->paths, APP_ENGINE_TOKENIZER, &err)) {
        return cli_failed("", &err);
    }
    char *bos = token_text(&e, with_model ? cw_tokenizer_bos(e.tokenizer) : -1);
    char *eos = token_text(&e, with_model ? cw_tokenizer_eos(e.tokenizer) : -1);
    in.bos = cli_has(c, "--bos") ? cli_value(c, "--bos") : bos;
    in.eos = cli_has(c, "--eos") ? cli_value(c, "--eos") : eos;
    in.vars = vars;
    in.n_vars = cw_think_vars(c->settings.think, vars);
    int status = render(c, &e, &in);
    free(bos);
    free(eos);
    app_engine_close(&e);
    return status;
}

static const struct cli_flag flags[] = {
    {"--template", "FILE|NAME",
     "Use this Jinja template (or format: chatml, ...) instead of the model's."},
    {"--bos", "TEXT", "The text of the begin token."},
    {"--eos", "TEXT", "The text of the end token."},
    {"--no-generation-prompt", NULL, "Do not begin a reply at the end."},
    {"--now", "TIME", "What strftime_now sees, such as 2025-03-14T09:26:53."},
};

const struct cli_command cli_render = {
    .name = "render",
    .synopsis = "[-m MODEL | --template FILE] [--bos S --eos S] [--no-generation-prompt] "
                "[--now TIME] < messages.json",
    .summary = "Print the prompt that the chat template makes of a conversation.",
    .options = "model pre think",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .run = run,
};
