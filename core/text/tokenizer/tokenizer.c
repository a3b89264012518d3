/* SPDX-License-Identifier: MIT
 *
 * Creating a tokenizer from a file, and the small questions about it.
 */
#include <stdlib.h>

#include "chinwag/thread.h"
#include "tokenizer_impl.h"

/* What a file may name as its model that this program knows by name only. */
static const char *const unsupported[][2] = {
    {"t5", "a unigram model"},      {"bert", "WordPiece"},
    {"rwkv", "a greedy trie"},      {"plamo2", "a unigram model of its own"},
    {"no_vocab", "no text at all"}, {"none", "no text at all"},
};

static int choose_kind(struct cw_tokenizer *t, const struct cw_gguf *g, struct cw_err *err) {
    struct cw_str model = {NULL, 0};
    int rc = cw_gguf_str(g, "tokenizer.ggml.model", &model, err);
    if (rc == CW_ENOENT) {
        return cw_fail(err, CW_EFORMAT,
                       "tokenizer.ggml.model is missing: the file does not say how its tokens are "
                       "built");
    }
    if (rc != CW_OK) {
        return rc;
    }
    t->model_name = cw_strndup(model.data, model.len);
    if (cw_str_eq(model, "llama")) {
        t->kind = KIND_SPM;
        return CW_OK;
    }
    if (cw_str_eq(model, "gpt2") || cw_str_eq(model, "gemma4")) {
        t->kind = KIND_BYTE_BPE; /* or text, as the pre-tokenizer says */
        return CW_OK;
    }
    for (size_t i = 0; i < sizeof unsupported / sizeof *unsupported; i++) {
        if (cw_str_eq(model, unsupported[i][0])) {
            return cw_fail(err, CW_EUNSUP, "tokenizer model \"%s\" (%s) is not supported",
                           t->model_name, unsupported[i][1]);
        }
    }
    return cw_fail(err, CW_EUNSUP, "tokenizer model \"%s\" is not known", t->model_name);
}

static int choose_pre(struct cw_tokenizer *t, const struct cw_gguf *g, const char *override,
                      struct cw_err *err) {
    if (t->kind == KIND_SPM) {
        if (override != NULL) {
            cw_vocab_notice(t, "a llama vocabulary has no pre-tokenizer: %s is not used", override);
        }
        return CW_OK;
    }
    struct cw_str name = {NULL, 0};
    int rc = cw_gguf_str(g, "tokenizer.ggml.pre", &name, err);
    if (rc != CW_OK && rc != CW_ENOENT) {
        return rc;
    }
    if (override != NULL) {
        name = (struct cw_str){override, strlen(override)};
    } else if (strcmp(t->model_name, "gemma4") == 0) {
        name = (struct cw_str){"gemma4", 6};
    } else if (name.len == 0) {
        cw_vocab_notice(t, "the file names no pre-tokenizer (tokenizer.ggml.pre): \"default\" is "
                           "used, which may be wrong for it");
        name = (struct cw_str){"default", 7};
    }
    t->pre = cw_pre_find(name);
    if (t->pre == NULL) {
        return cw_fail(err, CW_EPRE, "pre-tokenizer \"%.*s\" is not known",
                       (int)(name.len < 64 ? name.len : 64), name.data);
    }
    if (t->pre->flags & PRE_TEXT) {
        t->kind = KIND_TEXT_BPE;
    }
    return CW_OK;
}

/* The ids of U+FFFD, if the vocabulary has them without resorting to it. */
static void load_replacement(struct cw_tokenizer *t) {
    static const char text[] = "\xef\xbf\xbd";
    struct cw_ids ids = {0};
    if (cw_tokenizer_encode(t, text, sizeof text - 1, 0, &ids, NULL) == CW_OK) {
        t->replacement = ids.v;
        t->n_replacement = ids.n;
    } else {
        cw_ids_free(&ids);
    }
}

int cw_tokenizer_create(struct cw_tokenizer **out, const struct cw_gguf *g,
                        const struct cw_tokenizer_options *opt, struct cw_err *err) {
    struct cw_tokenizer *t = cw_calloc(1, sizeof *t);
    int rc;
    *out = NULL;
    if ((rc = choose_kind(t, g, err)) != CW_OK ||
        (rc = choose_pre(t, g, opt != NULL ? opt->pre : NULL, err)) != CW_OK ||
        (rc = cw_vocab_load(t, g, err)) != CW_OK) {
        goto out;
    }
    cw_special_build(t);
    if (t->kind != KIND_SPM && (rc = cw_merges_load(t, g, err)) != CW_OK) {
        goto out;
    }
    if (t->kind == KIND_BYTE_BPE &&
        (rc = cw_pretokenizer_create(&t->pretokenizer, t->pre, true, err)) != CW_OK) {
        goto out;
    }
    if (t->kind == KIND_BYTE_BPE) {
        t->scratch.words = cw_calloc(CACHED_WORDS, sizeof *t->scratch.words);
    }
    if (!t->add_space_prefix) { /* else a blank would come along */
        load_replacement(t);
    }
    *out = t;
    t = NULL;
out:
    cw_tokenizer_destroy(t);
    return rc;
}

void cw_tokenizer_destroy(struct cw_tokenizer *t) {
    if (t == NULL) {
        return;
    }
    cw_pretokenizer_destroy(t->pretokenizer);
    free(t->model_name);
    free(t->text);
    free(t->type);
    free(t->rank);
    cw_large_free(t->slots, t->n_slots * sizeof *t->slots);
    cw_large_free(t->merges, t->n_merge_slots * sizeof *t->merges);
    free(t->replacement);
    free(t->pairs);
    free(t->special);
    free(t->eog);
    for (size_t i = 0; i < t->n_notices; i++) {
        free(t->notices[i]);
    }
    free(t->notices);
    free(t->scratch.symbols);
    free(t->scratch.heap);
    cw_buf_free(&t->scratch.text);
    free(t->scratch.words);
    free(t);
}

struct cw_tokenizer_loading {
    const struct cw_gguf *gguf;
    char *pre; /* of the options, or NULL */
    pthread_t thread;
    bool threaded; /* else it was done at once */
    struct cw_tokenizer *tokenizer;
    struct cw_err err;
    int rc;
};

static void *load_beside(void *arg) {
    struct cw_tokenizer_loading *l = arg;
    const struct cw_tokenizer_options opt = {.pre = l->pre};
    l->rc = cw_tokenizer_create(&l->tokenizer, l->gguf, &opt, &l->err);
    return NULL;
}

struct cw_tokenizer_loading *cw_tokenizer_begin(const struct cw_gguf *g,
                                                const struct cw_tokenizer_options *opt) {
    struct cw_tokenizer_loading *l = cw_calloc(1, sizeof *l);
    l->gguf = g;
    l->pre = opt != NULL && opt->pre != NULL ? cw_strdup(opt->pre) : NULL;
    l->threaded = cw_thread_start(&l->thread, load_beside, l) == 0;
    if (!l->threaded) {
        load_beside(l);
    }
    return l;
}

int cw_tokenizer_end(struct cw_tokenizer_loading *l, struct cw_tokenizer **out,
                     struct cw_err *err) {
    if (l->threaded) {
        pthread_join(l->thread, NULL);
    }
    int rc = l->rc;
    *out = l->tokenizer;
    if (rc != CW_OK) {
        cw_fail(err, rc, "%s", l->err.text);
    }
    free(l->pre);
    free(l);
    return rc;
}

int32_t cw_tokenizer_n_tokens(const struct cw_tokenizer *t) {
    return t->n;
}

int32_t cw_tokenizer_bos(const struct cw_tokenizer *t) {
    return t->bos;
}

int32_t cw_tokenizer_eos(const struct cw_tokenizer *t) {
    return t->eos;
}

bool cw_tokenizer_adds_bos(const struct cw_tokenizer *t) {
    return t->add_bos;
}

bool cw_tokenizer_adds_eos(const struct cw_tokenizer *t) {
    return t->add_eos;
}

bool cw_tokenizer_is_control(const struct cw_tokenizer *t, int32_t id) {
    return id >= 0 && id < t->n && t->type[id] == TOKEN_CONTROL;
}

bool cw_tokenizer_is_eog(const struct cw_tokenizer *t, int32_t id) {
    for (size_t i = 0; i < t->n_eog; i++) {
        if (t->eog[i] == id) {
            return true;
        }
    }
    return false;
}

struct cw_str cw_tokenizer_text(const struct cw_tokenizer *t, int32_t id) {
    return id >= 0 && id < t->n ? t->text[id] : (struct cw_str){NULL, 0};
}

int32_t cw_tokenizer_find(const struct cw_tokenizer *t, const char *s, size_t n) {
    return cw_vocab_find(t, s, n);
}

const char *cw_tokenizer_notice(const struct cw_tokenizer *t, size_t i) {
    return i < t->n_notices ? t->notices[i] : NULL;
}

const char *cw_tokenizer_model_name(const struct cw_tokenizer *t) {
    return t->model_name;
}

const char *cw_tokenizer_pre_name(const struct cw_tokenizer *t) {
    return t->pre != NULL ? t->pre->name : "";
}
