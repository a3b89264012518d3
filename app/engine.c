/* SPDX-License-Identifier: MIT
 *
 * See engine.h.
 */
#include "app/engine.h"

#include <stdlib.h>
#include <string.h>

struct cw_model_options app_model_options(const struct app_settings *s) {
    return (struct cw_model_options){
        .n_threads = s->n_threads,
        .isa = (enum cw_isa)s->isa,
        .exact = s->exact,
    };
}

struct cw_session_options app_session_options(const struct app_settings *s) {
    return (struct cw_session_options){
        .n_ctx = (uint32_t)s->n_ctx,
        .chunk = s->chunk,
        .kv = (enum cw_kv_type)s->kv,
        .cache_ram = s->cache_ram < 0    ? 0
                     : s->cache_ram == 0 ? CW_NO_CACHE_RAM
                                         : (uint64_t)s->cache_ram << 20,
    };
}

struct cw_generator_options app_generator_options(const struct app_settings *s,
                                                  const char *model_path,
                                                  const char *chat_template) {
    return (struct cw_generator_options){
        .model_path = model_path,
        .model = app_model_options(s),
        .session = app_session_options(s),
        .naive = s->naive,
        .chat_template = chat_template,
        .pre = s->pre,
        .snapshot_bytes = (uint64_t)s->cache_disk << 20,
    };
}

/* What of the file is not used or not as it should be. */
static void tell_notices(const struct app_engine *e) {
    for (size_t i = 0; e->model && cw_model_notice(e->model, i); i++) {
        cli_note("%s", cw_model_notice(e->model, i));
    }
    for (size_t i = 0; e->tokenizer && cw_tokenizer_notice(e->tokenizer, i); i++) {
        cli_note("%s", cw_tokenizer_notice(e->tokenizer, i));
    }
}

int app_engine_open(struct app_engine *e, const struct app_settings *s,
                    const struct app_paths *paths, unsigned parts, struct cw_err *err) {
    struct cw_tokenizer_loading *tokenizer = NULL;
    memset(e, 0, sizeof *e);
    int rc = cli_find_model(s, paths, &e->path, err);
    if (rc == CW_OK) {
        rc = cw_gguf_open(&e->gguf, e->path, err);
    }
    if (rc == CW_OK && (parts & APP_ENGINE_TOKENIZER)) {
        const struct cw_tokenizer_options opt = {.pre = s->pre};
        tokenizer = cw_tokenizer_begin(e->gguf, &opt);
    }
    if (rc == CW_OK && (parts & APP_ENGINE_MODEL)) {
        const struct cw_model_options opt = app_model_options(s);
        rc = cw_model_load(&e->model, e->gguf, &opt, err);
    }
    if (rc == CW_OK && (parts & APP_ENGINE_SESSION) == APP_ENGINE_SESSION) {
        const struct cw_session_options opt = app_session_options(s);
        rc = cw_session_create(&e->session, e->model, &opt, err);
    }
    if (tokenizer) { /* what is wrong with it is told first */
        int tokenizer_rc = cw_tokenizer_end(tokenizer, &e->tokenizer, err);
        rc = tokenizer_rc != CW_OK ? tokenizer_rc : rc;
    }
    if (rc == CW_OK) {
        tell_notices(e);
    } else {
        app_engine_close(e);
    }
    return rc;
}

void app_engine_close(struct app_engine *e) {
    cw_session_destroy(e->session);
    cw_model_destroy(e->model);
    cw_tokenizer_destroy(e->tokenizer);
    cw_gguf_close(e->gguf);
    free(e->path);
    memset(e, 0, sizeof *e);
}
