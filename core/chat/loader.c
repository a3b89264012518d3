/* SPDX-License-Identifier: MIT
 *
 * The order in which a model's file becomes something that can be talked to. A template that cannot
 * be read does not stop the load: raw text still works, and every conversation is answered with
 * the reason, never with another format.
 */
#include "core/chat/loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/model/internal.h"

static void notice(struct cw_loaded *m, const char *line) {
    cw_buf_add(&m->notices, line, strlen(line) + 1);
}

static void load_template(struct cw_loaded *m, const char *source, size_t len) {
    m->has_template = true;
    if (cw_template_create(&m->tmpl, source, len, &m->template_err) != CW_OK) {
        notice(m, m->template_err.text);
    }
}

static int find_template(struct cw_loaded *m, const struct cw_generator_options *opt,
                         struct cw_err *err) {
    if (opt->chat_template != NULL) {
        load_template(m, opt->chat_template, strlen(opt->chat_template));
        return CW_OK;
    }
    struct cw_str source;
    int rc = cw_gguf_str(m->gguf, "tokenizer.chat_template", &source, err);
    if (rc == CW_OK) {
        load_template(m, source.data, source.len);
    }
    return rc == CW_ENOENT ? CW_OK : rc;
}

static char *token_text(const struct cw_tokenizer *t, int32_t id) {
    struct cw_str s = cw_tokenizer_text(t, id);
    return cw_strndup(s.data, s.len);
}

/* Tokens of a prompt evaluated at once. The evaluation can be stopped between layers, so one layer
 * of one chunk may take 0.1 s or so on a slow machine: 20 billion multiplications and additions. */
static int chunk_for(const struct cw_model_info *info) {
    double per_token = 2 * (double)info->n_params / (info->n_layers > 0 ? info->n_layers : 1);
    int chunk = 512;
    while (chunk > 32 && per_token * chunk > 2e10) {
        chunk /= 2;
    }
    return chunk;
}

static int open_session(struct cw_loaded *m, const struct cw_session_options *wanted,
                        struct cw_err *err) {
    struct cw_session_options opt = *wanted;
    if (opt.chunk <= 0) {
        opt.chunk = chunk_for(cw_model_get_info(m->model));
    }
    return cw_session_create(&m->session, m->model, &opt, err);
}

static int open_step(struct cw_loaded *m, const struct cw_generator_options *opt, int step,
                     struct cw_tokenizer_loading **tokenizer, struct cw_err *err) {
    struct cw_tokenizer_options tokenizer_opt = {.pre = opt->pre};
    switch (step) {
    case 0:
        return cw_gguf_open(&m->gguf, opt->model_path, err);
    case 1: /* goes on beside the others */
        *tokenizer = cw_tokenizer_begin(m->gguf, &tokenizer_opt);
        return CW_OK;
    case 2:
        return find_template(m, opt, err);
    case 3:
        return cw_model_load(&m->model, m->gguf, &opt->model, err);
    default:
        return open_session(m, &opt->session, err);
    }
}

/* The model's threads help the sampler: they are idle while a token is drawn. */
static void run_on_pool(void *compute, void (*fn)(void *arg, int chunk, int thread), void *arg,
                        int n_chunks) {
    cw_compute_run(compute, fn, arg, n_chunks);
}

static int open_parts(struct cw_loaded *m, const struct cw_generator_options *opt,
                      cw_load_progress *progress, void *arg, struct cw_err *err) {
    struct cw_tokenizer_loading *tokenizer = NULL;
    int rc = CW_OK;
    for (int step = 0; step < CW_LOAD_STEPS && rc == CW_OK; step++) {
        rc = progress(arg, step) ? cw_fail(err, CW_ECANCEL, "loading was stopped")
                                 : open_step(m, opt, step, &tokenizer, err);
    }
    if (tokenizer != NULL) {
        struct cw_err why;
        int tokenizer_rc = cw_tokenizer_end(tokenizer, &m->tokenizer, &why);
        if (tokenizer_rc != CW_OK && rc != CW_ECANCEL) { /* told first, as it came first */
            rc = cw_fail(err, tokenizer_rc, "%s", why.text);
        }
    }
    if (rc == CW_OK) {
        m->bos = token_text(m->tokenizer, cw_tokenizer_bos(m->tokenizer));
        m->eos = token_text(m->tokenizer, cw_tokenizer_eos(m->tokenizer));
    }
    return rc;
}

int cw_loaded_open(struct cw_loaded *m, const struct cw_generator_options *opt,
                   cw_load_progress *progress, void *arg, struct cw_err *err) {
    memset(m, 0, sizeof *m);
    int rc = open_parts(m, opt, progress, arg, err);
    if (rc != CW_OK) {
        cw_loaded_close(m);
        return rc;
    }
    uint8_t key[CW_MODEL_KEY];
    cw_model_key(m->model, key);
    for (size_t i = 0; i < CW_MODEL_KEY; i++) {
        snprintf(m->hash + 2 * i, 3, "%02x", key[i]);
    }
    int32_t n_rows = cw_model_get_info(m->model)->n_vocab;
    int32_t n_tokens = cw_tokenizer_n_tokens(m->tokenizer);
    m->n_usable = n_tokens < n_rows ? n_tokens : n_rows;
    m->sampler = cw_sampler_create(n_rows);
    if (m->model->compute != NULL) {
        cw_sampler_set_runner(m->sampler, run_on_pool, m->model->compute);
    }
    const char *line;
    for (size_t i = 0; (line = cw_model_notice(m->model, i)) != NULL; i++) {
        notice(m, line);
    }
    for (size_t i = 0; (line = cw_tokenizer_notice(m->tokenizer, i)) != NULL; i++) {
        notice(m, line);
    }
    if (n_tokens > n_rows) {
        struct cw_err text;
        cw_fail(&text, CW_EFORMAT, "the vocabulary has %d tokens, the model only %d of them",
                n_tokens, n_rows);
        notice(m, text.text);
    }
    return CW_OK;
}

void cw_loaded_close(struct cw_loaded *m) {
    cw_sampler_destroy(m->sampler);
    cw_session_destroy(m->session);
    cw_model_destroy(m->model);
    cw_template_destroy(m->tmpl);
    cw_tokenizer_destroy(m->tokenizer);
    cw_gguf_close(m->gguf);
    free(m->bos);
    free(m->eos);
    cw_buf_free(&m->notices);
    memset(m, 0, sizeof *m);
}

unsigned cw_loaded_sampling(const struct cw_loaded *m, struct cw_sampling *out) {
    unsigned set = 0;
    struct cw_sampling s = *out;
    struct {
        const char *key;
        float *value;
        unsigned bit;
    } rows[] = {
        {"general.sampling.temp", &s.temp, CW_SET_TEMP},
        {"general.sampling.top_p", &s.top_p, CW_SET_TOP_P},
        {"general.sampling.min_p", &s.min_p, CW_SET_MIN_P},
        {"general.sampling.penalty_repeat", &s.penalty_repeat, CW_SET_REPEAT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (cw_gguf_f32(m->gguf, rows[i].key, rows[i].value, NULL) == CW_OK &&
            cw_sampling_check(&s, NULL) == CW_OK) {
            *out = s;
            set |= rows[i].bit;
        } else {
            s = *out; /* absent, or a value no sampler can follow */
        }
    }
    uint32_t k;
    if (cw_gguf_u32(m->gguf, "general.sampling.top_k", &k, NULL) == CW_OK && k <= INT32_MAX) {
        out->top_k = (int32_t)k;
        set |= CW_SET_TOP_K;
    }
    return set;
}

/* The breakers that the author of DRY proposes: a token that holds one of them, or that is a
 * control token, begins a new sequence. */
void cw_loaded_set_breakers(struct cw_loaded *m) {
    struct cw_ids ids = {0};
    struct cw_buf piece = {0};
    for (int32_t id = 0; id < m->n_usable; id++) {
        bool ends = cw_tokenizer_is_control(m->tokenizer, id);
        cw_buf_clear(&piece);
        cw_tokenizer_piece(m->tokenizer, id, false, false, &piece);
        for (size_t i = 0; i < piece.len && !ends; i++) {
            ends = piece.data[i] != '\0' && strchr("\n:\"*", piece.data[i]) != NULL;
        }
        if (ends) {
            cw_ids_add(&ids, id);
        }
    }
    cw_sampler_set_breakers(m->sampler, ids.v, ids.n);
    cw_ids_free(&ids);
    cw_buf_free(&piece);
}
