/* SPDX-License-Identifier: MIT
 *
 * `chinwag info`: what a GGUF file holds and what this program can do with it. Everything is put
 * into one JSON object first; the page for people is printed from that.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/engine.h"
#include "app/json.h"
#include "chinwag/info.h"
#include "chinwag/template.h"
#include "core/chat/loader.h"

enum { SHOWN_ELEMENTS = 16, SHOWN_COLUMNS = 56, SHOWN_NAMES = 12, USUAL_CONTEXT = 8192 };

static struct json_object *text(const char *s) {
    return app_json_text(s, strlen(s));
}

static void add_int(struct json_object *o, const char *key, uint64_t v) {
    json_object_object_add(o, key, json_object_new_uint64(v));
}

/* ---- metadata ------------------------------------------------------------------------------- */

static size_t element_bytes(enum cw_gguf_kind kind) {
    switch (kind) {
    case CW_GGUF_U8:
    case CW_GGUF_I8:
    case CW_GGUF_BOOL:
        return 1;
    case CW_GGUF_U16:
    case CW_GGUF_I16:
        return 2;
    case CW_GGUF_U32:
    case CW_GGUF_I32:
    case CW_GGUF_F32:
        return 4;
    case CW_GGUF_U64:
    case CW_GGUF_I64:
    case CW_GGUF_F64:
        return 8;
    default:
        return 0;
    }
}

/* A scalar in the mapping, unaligned and little-endian as this machine is. */
static struct json_object *element(enum cw_gguf_kind kind, const uint8_t *p) {
    uint64_t u = 0;
    memcpy(&u, p, element_bytes(kind));
    switch (kind) {
    case CW_GGUF_BOOL:
        return json_object_new_boolean(u != 0);
    case CW_GGUF_I8:
        return json_object_new_int64((int8_t)u);
    case CW_GGUF_I16:
        return json_object_new_int64((int16_t)u);
    case CW_GGUF_I32:
        return json_object_new_int64((int32_t)u);
    case CW_GGUF_I64:
        return json_object_new_int64((int64_t)u);
    case CW_GGUF_F32: {
        float f;
        memcpy(&f, p, sizeof f);
        return app_json_number((double)f);
    }
    case CW_GGUF_F64: {
        double d;
        memcpy(&d, p, sizeof d);
        return app_json_number(d);
    }
    default:
        return json_object_new_uint64(u);
    }
}

/* A value; of a long array only its length and kind. The reader has checked that n strings or
 * elements lie in the mapping. */
static struct json_object *value(const struct cw_gguf_key *k) {
    if (k->kind == CW_GGUF_STRING) {
        uint64_t len;
        memcpy(&len, k->data, sizeof len);
        return app_json_text((const char *)k->data + sizeof len, len);
    }
    if (k->kind != CW_GGUF_ARRAY) {
        return element(k->kind, k->data);
    }
    if (k->n > SHOWN_ELEMENTS || element_bytes(k->elem) == 0) {
        char line[64];
        snprintf(line, sizeof line, "[%" PRIu64 " %s]", k->n,
                 k->elem == CW_GGUF_STRING ? "strings" : "values");
        return json_object_new_string(line);
    }
    struct json_object *list = json_object_new_array();
    for (uint64_t i = 0; i < k->n; i++) {
        json_object_array_add(list, element(k->elem, k->data + i * element_bytes(k->elem)));
    }
    return list;
}

static struct json_object *metadata(const struct cw_gguf *g) {
    struct json_object *out = json_object_new_object();
    for (size_t i = 0; i < cw_gguf_n_keys(g); i++) {
        const struct cw_gguf_key *k = cw_gguf_key_at(g, i);
        char name[256];
        cw_printable(name, sizeof name, k->name.data, k->name.len);
        json_object_object_add(out, name, value(k));
    }
    return out;
}

/* ---- tensors -------------------------------------------------------------------------------- */

static struct json_object *tensors_by_type(const struct cw_info *info) {
    struct json_object *out = json_object_new_object();
    for (size_t i = 0; i < info->n_types; i++) {
        struct json_object *row = json_object_new_object();
        add_int(row, "n", info->types[i].n_tensors);
        add_int(row, "bytes", info->types[i].bytes);
        json_object_object_add(row, "supported", json_object_new_boolean(info->types[i].supported));
        json_object_object_add(out, info->types[i].name, row);
    }
    return out;
}

static struct json_object *tensor_list(const struct cw_gguf *g) {
    struct json_object *out = json_object_new_array();
    for (size_t i = 0; i < cw_gguf_n_tensors(g); i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(g, i);
        struct json_object *row = json_object_new_object();
        struct json_object *shape = json_object_new_array();
        char type[CW_TYPE_LABEL];
        cw_type_label((uint32_t)t->type, type);
        for (int d = 0; d < t->n_dims; d++) {
            json_object_array_add(shape, json_object_new_int64(t->dims[d]));
        }
        json_object_object_add(row, "name", app_json_text(t->name.data, t->name.len));
        json_object_object_add(row, "type", text(type));
        json_object_object_add(row, "shape", shape);
        json_object_array_add(out, row);
    }
    return out;
}

static struct json_object *names(const struct cw_str *v, size_t n) {
    struct json_object *out = json_object_new_array();
    for (size_t i = 0; i < n; i++) {
        json_object_array_add(out, app_json_text(v[i].data, v[i].len));
    }
    return out;
}

/* ---- model, tokenizer, template ------------------------------------------------------------- */

static void add_problem(struct json_object *list, const char *what, const char *why) {
    char line[600];
    snprintf(line, sizeof line, "%s: %s", what, why);
    json_object_array_add(list, text(line));
}

/* How it would run here: only a file that loads says. */
static void add_engine(struct json_object *out, struct json_object *problems,
                       const struct cw_gguf *g, const struct app_settings *s) {
    struct cw_model_options opt = app_model_options(s);
    struct cw_model *m = NULL;
    struct cw_err err = {0};
    if (cw_model_load(&m, g, &opt, &err) != CW_OK) {
        add_problem(problems, "model", err.text);
        return;
    }
    const struct cw_model_info *info = cw_model_get_info(m);
    json_object_object_add(out, "exact", json_object_new_boolean(info->exact));
    json_object_object_add(out, "float_file", json_object_new_boolean(info->float_file));
    json_object_object_add(out, "blas", json_object_new_boolean(info->blas));
    json_object_object_add(out, "isa", text(cw_isa_name(info->isa)));
    add_int(out, "threads", (uint64_t)info->n_threads);
    for (size_t i = 0; cw_model_notice(m, i); i++) {
        add_problem(problems, "model", cw_model_notice(m, i));
    }
    cw_model_destroy(m);
}

static struct json_object *memory(struct json_object *problems, const struct cw_gguf *g,
                                  const struct cw_info *info, const struct app_settings *s) {
    struct json_object *out = json_object_new_object();
    struct cw_info_memory need = {.n_ctx = (uint32_t)s->n_ctx, .n_ctx_reason = "given"};
    struct cw_err err = {0};
    uint64_t bytes = 0, total = 0;
    add_int(out, "weight_bytes", info->model.weight_bytes);
    add_int(out, "kv_bytes_per_token", info->model.kv_bytes_token);
    if (!info->loads) { /* what its keys say: the cache alone */
        if (need.n_ctx == 0) {
            uint32_t trained = info->model.n_ctx_train;
            need.n_ctx = trained < USUAL_CONTEXT ? trained : USUAL_CONTEXT;
            need.n_ctx_reason = trained < USUAL_CONTEXT ? "trained size" : "default";
        }
        bytes = info->model.kv_bytes_token;
        if (need.n_ctx == 0 || __builtin_mul_overflow(bytes, need.n_ctx, &bytes) ||
            __builtin_add_overflow(bytes, info->model.weight_bytes, &total)) {
            return out;
        }
    } else if (cw_info_memory(g, need.n_ctx, (enum cw_kv_type)s->kv, s->chunk, &need, &err) ==
               CW_OK) {
        total = need.total;
        bytes = need.total - need.weights;
    } else {
        add_problem(problems, "session", err.text);
        return out;
    }
    add_int(out, "context", need.n_ctx);
    json_object_object_add(out, "context_reason", text(need.n_ctx_reason));
    add_int(out, "session_bytes", bytes);
    add_int(out, "total_bytes", total);
    return out;
}

static void add_model(struct json_object *out, struct json_object *problems,
                      const struct cw_gguf *g, const struct cw_info *info,
                      const struct app_settings *s) {
    const struct cw_model_info *m = &info->model;
    struct json_object *hyper = json_object_new_object();
    json_object_object_add(out, "name", text(m->name));
    json_object_object_add(out, "architecture", text(info->arch));
    json_object_object_add(out, "quantisation", text(m->quant));
    json_object_object_add(out, "loads", json_object_new_boolean(info->loads));
    add_int(hyper, "layers", (uint64_t)m->n_layers);
    add_int(hyper, "embedding", (uint64_t)m->n_embd);
    add_int(hyper, "heads", (uint64_t)m->n_heads);
    add_int(hyper, "kv_heads", (uint64_t)m->n_kv_heads);
    add_int(hyper, "key_width", (uint64_t)m->head_k);
    add_int(hyper, "value_width", (uint64_t)m->head_v);
    add_int(hyper, "feed_forward", (uint64_t)m->n_ff);
    add_int(hyper, "vocabulary", (uint64_t)m->n_vocab);
    add_int(hyper, "context_trained", m->n_ctx_train);
    add_int(hyper, "parameters", m->n_params);
    json_object_object_add(out, "hyperparameters", hyper);
    json_object_object_add(out, "memory", memory(problems, g, info, s));
    if (info->loads) {
        add_engine(out, problems, g, s);
    } else {
        add_problem(problems, "model", info->why_not);
    }
}

static void add_tokenizer(struct json_object *out, struct json_object *problems,
                          const struct cw_gguf *g, bool needed, const struct app_settings *s) {
    const struct cw_tokenizer_options opt = {.pre = s->pre};
    struct cw_tokenizer *t = NULL;
    struct cw_err err = {0};
    if (!needed && cw_gguf_key(g, "tokenizer.ggml.model") == NULL) {
        return; /* a file of another kind */
    }
    if (cw_tokenizer_create(&t, g, &opt, &err) != CW_OK) {
        add_problem(problems, "tokenizer", err.text);
        return;
    }
    struct json_object *o = json_object_new_object();
    json_object_object_add(o, "model", text(cw_tokenizer_model_name(t)));
    json_object_object_add(o, "pre", text(cw_tokenizer_pre_name(t)));
    add_int(o, "tokens", (uint64_t)cw_tokenizer_n_tokens(t));
    json_object_object_add(o, "bos", json_object_new_int(cw_tokenizer_bos(t)));
    json_object_object_add(o, "eos", json_object_new_int(cw_tokenizer_eos(t)));
    json_object_object_add(o, "adds_bos", json_object_new_boolean(cw_tokenizer_adds_bos(t)));
    json_object_object_add(o, "adds_eos", json_object_new_boolean(cw_tokenizer_adds_eos(t)));
    json_object_object_add(out, "tokenizer", o);
    for (size_t i = 0; cw_tokenizer_notice(t, i); i++) {
        add_problem(problems, "tokenizer", cw_tokenizer_notice(t, i));
    }
    cw_tokenizer_destroy(t);
}

static void add_template(struct json_object *out, struct json_object *problems,
                         const struct cw_gguf *g) {
    struct cw_str source;
    struct cw_template *t = NULL;
    struct cw_err err = {0};
    const char *state = "yes";
    int rc = cw_gguf_str(g, "tokenizer.chat_template", &source, &err);
    if (rc == CW_ENOENT) {
        state = "none";
    } else if (rc != CW_OK || cw_template_create(&t, source.data, source.len, &err) != CW_OK) {
        state = "unsupported";
        add_problem(problems, "chat template", err.text);
    }
    json_object_object_add(out, "chat_template", text(state));
    cw_template_destroy(t);
}

/* Keys that nobody has asked for by now. What describes the model only, general.*, is left out: it
 * stands in the metadata; but not samplers that the file recommends and we do not have. */
static struct json_object *unused_keys(const struct cw_gguf *g) {
    struct json_object *out = json_object_new_array();
    for (size_t i = 0; i < cw_gguf_n_keys(g); i++) {
        struct cw_str name = cw_gguf_key_at(g, i)->name;
        bool general = name.len >= 8 && memcmp(name.data, "general.", 8) == 0;
        bool split = name.len >= 6 && memcmp(name.data, "split.", 6) == 0; /* read by opening */
        if ((!general && !split && !cw_gguf_key_used(g, i)) || cw_not_recommended(name)) {
            json_object_array_add(out, app_json_text(name.data, name.len));
        }
    }
    return out;
}

static struct json_object *describe(const struct cli *c, const struct cw_gguf *g) {
    struct json_object *out = json_object_new_object();
    struct json_object *problems = json_object_new_array();
    struct cw_info *info = cw_info_create(g);
    json_object_object_add(out, "file", text(cw_gguf_path(g)));
    add_int(out, "file_bytes", info->file_bytes);
    add_int(out, "gguf_version", (uint64_t)info->version);
    add_int(out, "n_keys", info->n_keys);
    add_int(out, "n_tensors", info->n_tensors);
    add_model(out, problems, g, info, &c->settings);
    add_tokenizer(out, problems, g, info->loads, &c->settings);
    add_template(out, problems, g);
    json_object_object_add(out, "tensors_by_type", tensors_by_type(info));
    if (cli_has(c, "--tensors")) {
        json_object_object_add(out, "tensors", tensor_list(g));
    }
    json_object_object_add(out, "unsupported", problems);
    json_object_object_add(out, "unused_keys", unused_keys(g));
    json_object_object_add(out, "unused_tensors",
                           names(info->unused_tensors, info->n_unused_tensors));
    json_object_object_add(out, "metadata", metadata(g));
    cw_info_destroy(info);
    return out;
}

/* ---- the page for people -------------------------------------------------------------------- */

static struct json_object *get(struct json_object *o, const char *key) {
    struct json_object *v = NULL;
    json_object_object_get_ex(o, key, &v);
    return v;
}

static int64_t get_int(struct json_object *o, const char *key) {
    return json_object_get_int64(get(o, key));
}

static const char *get_text(struct json_object *o, const char *key) {
    return json_object_get_string(get(o, key));
}

static const char *size(int64_t bytes, char dst[32]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    size_t u = 0;
    while (v >= 1024 && u + 1 < sizeof units / sizeof *units) {
        v /= 1024;
        u++;
    }
    snprintf(dst, 32, u ? "%.1f %s" : "%.0f %s", v, units[u]);
    return dst;
}

static void print_model(struct cw_buf *out, struct json_object *o) {
    char a[32];
    char b[32];
    char d[32];
    struct json_object *h = get(o, "hyperparameters");
    struct json_object *m = get(o, "memory");
    const char *arch = get_text(o, "architecture");
    cw_buf_printf(out, "name          %s\n", get_text(o, "name"));
    cw_buf_printf(out, "architecture  %s, %s\n", *arch ? arch : "none",
                  get_text(o, "quantisation"));
    cw_buf_printf(out, "parameters    %.1f million\n", (double)get_int(h, "parameters") / 1e6);
    cw_buf_printf(out,
                  "shape         %" PRId64 " layers of %" PRId64 ", %" PRId64 " heads on %" PRId64
                  " KV heads of %" PRId64 " and %" PRId64 ", feed-forward %" PRId64 "\n",
                  get_int(h, "layers"), get_int(h, "embedding"), get_int(h, "heads"),
                  get_int(h, "kv_heads"), get_int(h, "key_width"), get_int(h, "value_width"),
                  get_int(h, "feed_forward"));
    cw_buf_printf(out, "context       trained for %" PRId64 " tokens\n",
                  get_int(h, "context_trained"));
    if (get(m, "context")) {
        cw_buf_printf(
            out, "memory        %s of weights, %s for a context of %" PRId64 " (%s), %s a token\n",
            size(get_int(m, "weight_bytes"), a), size(get_int(m, "session_bytes"), b),
            get_int(m, "context"), get_text(m, "context_reason"),
            size(get_int(m, "kv_bytes_per_token"), d));
    } else {
        cw_buf_printf(out, "memory        %s of weights, %s a token of context\n",
                      size(get_int(m, "weight_bytes"), a),
                      size(get_int(m, "kv_bytes_per_token"), d));
    }
    if (!get(o, "isa")) {
        return;
    }
    cw_buf_printf(out, "arithmetic    %s; %s kernels, %" PRId64 " threads\n",
                  json_object_get_boolean(get(o, "exact"))
                      ? "exact: the same bits on every path and machine"
                      : "OpenBLAS in the prefill of this float file (--exact: own kernels)",
                  get_text(o, "isa"), get_int(o, "threads"));
}

static void print_metadata(struct cw_buf *out, struct json_object *o) {
    cw_buf_puts(out, "\nmetadata\n");
    json_object_object_foreach(o, key, v) {
        const char *shown = json_object_is_type(v, json_type_string)
                                ? json_object_get_string(v)
                                : json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN);
        char line[SHOWN_COLUMNS * 4];
        char clean[SHOWN_COLUMNS + 1];
        snprintf(line, sizeof line, "%s", shown);
        size_t n = cw_printable(clean, sizeof clean, line, strlen(line));
        bool cut = n + 12 >= sizeof clean || strlen(shown) >= sizeof line;
        cw_buf_printf(out, "  %-44s %s%s\n", key, clean, cut ? "..." : "");
    }
}

static void print_tensors(struct cw_buf *out, struct json_object *o) {
    char a[32];
    cw_buf_printf(out, "tensors       %" PRId64 "\n", get_int(o, "n_tensors"));
    struct json_object *types = get(o, "tensors_by_type");
    json_object_object_foreach(types, name, type) {
        cw_buf_printf(out, "  %-11s %5" PRId64 "  %s%s\n", name, get_int(type, "n"),
                      size(get_int(type, "bytes"), a),
                      json_object_get_boolean(get(type, "supported")) ? "" : " (not supported)");
    }
    struct json_object *list = get(o, "tensors");
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        struct json_object *row = json_object_array_get_idx(list, i);
        char tensor[256];
        const char *raw = get_text(row, "name");
        cw_printable(tensor, sizeof tensor, raw, strlen(raw));
        cw_buf_printf(out, "  %-44s %-7s %s\n", tensor, get_text(row, "type"),
                      json_object_to_json_string_ext(get(row, "shape"), JSON_C_TO_STRING_PLAIN));
    }
}

static void print_unused(struct cw_buf *out, const char *what, struct json_object *list) {
    size_t n = json_object_array_length(list);
    for (size_t i = 0; i < n && i < SHOWN_NAMES; i++) {
        char clean[256];
        const char *raw = json_object_get_string(json_object_array_get_idx(list, i));
        cw_printable(clean, sizeof clean, raw, strlen(raw));
        cw_buf_printf(out, "%s%s %s\n", i ? "              " : "not used      ", what, clean);
    }
    if (n > SHOWN_NAMES) {
        cw_buf_printf(out, "              and %zu more (--json names all)\n", n - SHOWN_NAMES);
    }
}

static void print(struct cw_buf *out, struct json_object *o) {
    char a[32];
    char path[1024];
    const char *file = get_text(o, "file");
    cw_printable(path, sizeof path, file, strlen(file));
    cw_buf_printf(out, "file          %s (%s, GGUF version %" PRId64 ")\n", path,
                  size(get_int(o, "file_bytes"), a), get_int(o, "gguf_version"));
    print_model(out, o);
    struct json_object *t = get(o, "tokenizer");
    if (t) {
        const char *pre = get_text(t, "pre");
        cw_buf_printf(
            out,
            "tokenizer     %s%s%s, %" PRId64 " tokens, begin %" PRId64 "%s, end %" PRId64 "%s\n",
            get_text(t, "model"), *pre ? " " : "", pre, get_int(t, "tokens"), get_int(t, "bos"),
            json_object_get_boolean(get(t, "adds_bos")) ? " (added)" : "", get_int(t, "eos"),
            json_object_get_boolean(get(t, "adds_eos")) ? " (added)" : "");
    }
    cw_buf_printf(out, "chat template %s\n", get_text(o, "chat_template"));
    print_tensors(out, o);
    struct json_object *problems = get(o, "unsupported");
    for (size_t i = 0; i < json_object_array_length(problems); i++) {
        cw_buf_printf(out, "%s%s\n", i ? "              " : "unsupported   ",
                      json_object_get_string(json_object_array_get_idx(problems, i)));
    }
    print_unused(out, "key", get(o, "unused_keys"));
    print_unused(out, "tensor", get(o, "unused_tensors"));
    print_metadata(out, get(o, "metadata"));
}

static int run(struct cli *c) {
    struct cw_gguf *g = NULL;
    struct cw_err err = {0};
    char *path = NULL;
    if (c->operand) {
        const struct app_option *model = app_option_find("model");
        app_settings_set(&c->settings, model, c->operand, APP_FLAG, NULL);
    }
    int rc = cli_find_model(&c->settings, &c->paths, &path, &err);
    if (rc == CW_OK) {
        rc = cw_gguf_open_any(&g, path, &err);
    }
    free(path);
    if (rc != CW_OK) {
        return cli_failed("", &err);
    }
    struct json_object *o = describe(c, g);
    if (cli_has(c, "--json")) {
        app_json_put(cli_out(), o, true);
    } else {
        print(cli_out(), o);
        json_object_put(o);
    }
    cw_gguf_close(g);
    return cli_finish();
}

static const struct cli_flag flags[] = {
    {"--json", NULL, "The same as one JSON object."},
    {"--tensors", NULL, "List every tensor."},
};

const struct cli_command cli_info = {
    .name = "info",
    .synopsis = "[MODEL] [--json] [--tensors]",
    .summary = "Show what a GGUF file holds, the memory it needs and what of it is unsupported.",
    .operand = "MODEL",
    .options = "model pre ctx @engine",
    .flags = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .run = run,
};
