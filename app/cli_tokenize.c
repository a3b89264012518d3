/* SPDX-License-Identifier: MIT
 *
 * `chinwag tokenize`: text to ids and back, for a file that may hold only a vocabulary.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/engine.h"
#include "app/json.h"

static void put_ids(const struct cw_ids *ids, bool json) {
    struct cw_buf *out = cli_out();
    cw_buf_puts(out, json ? "{\"ids\":[" : "");
    for (size_t i = 0; i < ids->n; i++) {
        cw_buf_printf(out, "%s%d", i ? (json ? "," : " ") : "", ids->v[i]);
    }
    cw_buf_puts(out, json ? "]}\n" : "\n");
}

static bool unhex(const char *hex, size_t n, struct cw_buf *out) {
    static const char digits[] = "0123456789abcdefABCDEF";
    for (size_t i = 0; i + 1 < n; i += 2) {
        const char *hi = hex[i] ? strchr(digits, hex[i]) : NULL;
        const char *lo = hex[i + 1] ? strchr(digits, hex[i + 1]) : NULL;
        if (!hi || !lo) {
            return false;
        }
        long a = hi - digits;
        long b = lo - digits;
        cw_buf_putc(out, (char)((a > 15 ? a - 6 : a) << 4 | (b > 15 ? b - 6 : b)));
    }
    return n % 2 == 0;
}

static bool get_bool(struct json_object *request, const char *name) {
    struct json_object *v;
    return json_object_object_get_ex(request, name, &v) && json_object_get_boolean(v);
}

/* The bytes to encode of one request: "text", or "hex" for what is not UTF-8. */
static int request_bytes(struct json_object *request, struct cw_buf *out, struct cw_err *err) {
    struct json_object *text = NULL;
    struct json_object *hex = NULL;
    json_object_object_get_ex(request, "text", &text);
    json_object_object_get_ex(request, "hex", &hex);
    if (json_object_is_type(text, json_type_string)) {
        cw_buf_add(out, json_object_get_string(text), (size_t)json_object_get_string_len(text));
        return CW_OK;
    }
    if (!json_object_is_type(hex, json_type_string)) {
        return cw_fail(err, CW_EINVAL, "a request needs a string \"text\" or \"hex\"");
    }
    if (!unhex(json_object_get_string(hex), (size_t)json_object_get_string_len(hex), out)) {
        return cw_fail(err, CW_EINVAL, "\"hex\" is not pairs of hexadecimal digits");
    }
    return CW_OK;
}

static int answer(struct cw_tokenizer *t, const char *line, size_t n, struct cw_err *err) {
    struct cw_buf bytes = {0};
    struct cw_ids ids = {0};
    struct json_object *request = app_json_parse(line, n, err);
    int rc = request ? CW_OK : CW_EFORMAT;
    if (rc == CW_OK && !json_object_is_type(request, json_type_object)) {
        rc = cw_fail(err, CW_EFORMAT, "a request is an object");
    }
    if (rc == CW_OK) {
        rc = request_bytes(request, &bytes, err);
    }
    if (rc == CW_OK) {
        unsigned flags = (get_bool(request, "add_special") ? CW_TOK_BOS_EOS : 0) |
                         (get_bool(request, "parse_special") ? CW_TOK_SPECIAL : 0);
        rc = cw_tokenizer_encode(t, bytes.data ? bytes.data : "", bytes.len, flags, &ids, err);
    }
    if (rc == CW_OK) {
        put_ids(&ids, true);
    }
    json_object_put(request);
    cw_buf_free(&bytes);
    cw_ids_free(&ids);
    return rc;
}

/* A request a line, an answer a line, written as soon as it is known: a program may hold both ends
 * of the pipe. A bad request is answered with {"error":...}; the status tells in the end. */
static int serve(struct cw_tokenizer *t) {
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    bool all_good = true;
    while ((n = getline(&line, &cap, stdin)) >= 0) {
        struct cw_err err = {0};
        if (answer(t, line, (size_t)n, &err) != CW_OK) {
            struct json_object *out = json_object_new_object();
            json_object_object_add(out, "error", app_json_text(err.text, strlen(err.text)));
            app_json_put(cli_out(), out, false);
            all_good = false;
        }
        if (!cli_drain(0)) {
            break;
        }
    }
    free(line);
    int status = cli_finish();
    return all_good ? status : CLI_FAILED;
}

static int detokenize(struct cw_tokenizer *t, const char *text, size_t len, bool special,
                      bool json) {
    struct cw_ids ids = {0};
    struct cw_buf bytes = {0};
    struct cw_err err = {0};
    int status = CLI_OK;
    /* What tokenize --json printed is taken back as it is. */
    static const char head[] = "{\"ids\":";
    if (len >= sizeof head - 1 && memcmp(text, head, sizeof head - 1) == 0) {
        text += sizeof head - 1;
        len -= sizeof head - 1;
        while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '}')) {
            len--;
        }
    }
    if (!cli_parse_ids(text, len, cw_tokenizer_n_tokens(t) - 1, &ids, &err)) {
        status = cli_failed("tokenize: standard input", &err);
    } else {
        cw_tokenizer_decode(t, ids.v, ids.n, special, &bytes);
        if (json) {
            struct json_object *out = json_object_new_object();
            json_object_object_add(out, "text", app_json_text(bytes.data, bytes.len));
            app_json_put(cli_out(), out, false);
        } else {
            cw_buf_add(cli_out(), bytes.data, bytes.len);
        }
        status = cli_finish();
    }
    cw_ids_free(&ids);
    cw_buf_free(&bytes);
    return status;
}

static int tokenize(struct cw_tokenizer *t, const char *text, size_t len, unsigned flags,
                    bool json) {
    struct cw_ids ids = {0};
    struct cw_err err = {0};
    int status;
    if (cw_tokenizer_encode(t, text, len, flags, &ids, &err) != CW_OK) {
        status = cli_failed("tokenize", &err);
    } else {
        put_ids(&ids, json);
        status = cli_finish();
    }
    cw_ids_free(&ids);
    return status;
}

static int run(struct cli *c) {
    struct app_engine e;
    struct cw_err err = {0};
    bool special = cli_has(c, "--special");
    bool json = cli_has(c, "--json");
    int status;
    if (cli_has(c, "--jsonl") && (cli_has(c, "--detokenize") || json)) {
        return cli_usage(c, "--jsonl goes with neither --json nor --detokenize");
    }
    if (app_engine_open(&e, &c->settings, &c->paths, APP_ENGINE_TOKENIZER, &err) != CW_OK) {
        return cli_failed("", &err);
    }
    for (size_t i = 0; cw_tokenizer_notice(e.tokenizer, i); i++) {
        cli_note("%s", cw_tokenizer_notice(e.tokenizer, i));
    }
    if (cli_has(c, "--jsonl")) {
        status = serve(e.tokenizer);
    } else {
        size_t len;
        char *text = cli_read_file("-", &len, &err);
        if (!text) {
            status = cli_failed("tokenize", &err);
        } else if (cli_has(c, "--detokenize")) {
            status = detokenize(e.tokenizer, text, len, special, json);
        } else {
            unsigned flags =
                (cli_has(c, "--bos") ? CW_TOK_BOS_EOS : 0) | (special ? CW_TOK_SPECIAL : 0);
            status = tokenize(e.tokenizer, text, len, flags, json);
        }
        free(text);
    }
    app_engine_close(&e);
    return status;
}

static const struct cli_flag flags[] = {
    {"--special", NULL,
     "Control tokens written in the text become such tokens (with --detokenize: "
     "are written out)."},
    {"--bos", NULL, "Add begin and end tokens where the file asks for them."},
    {"--detokenize", NULL, "Standard input holds ids; write the bytes they stand for."},
    {"--json", NULL, "Print {\"ids\":[...]}, or {\"text\":...} with --detokenize."},
    {"--jsonl", NULL,
     "Standard input holds a request a line: {\"text\":S | \"hex\":H, "
     "\"add_special\":B, \"parse_special\":B}."},
};

const struct cli_command cli_tokenize = {
    .name = "tokenize",
    .synopsis = "[-m MODEL] [--special] [--bos] [--json] [--detokenize] [--jsonl] < TEXT",
    .summary = "Turn standard input into token ids, or ids back into text.",
    .options = "model pre",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .run = run,
};
