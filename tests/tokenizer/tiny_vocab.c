/* SPDX-License-Identifier: MIT
 *
 * Without Check, so that other programs than tests can use it: what must not fail aborts. */
#include "tiny_vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chinwag/utf8.h"
#include "core/text/tokenizer/tokenizer_impl.h"

void tiny_vocab_init(struct tiny_vocab *v, const char *model, const char *pre) {
    *v = (struct tiny_vocab){0};
    mkgguf_init(&v->m);
    if (model != NULL) {
        mkgguf_str(&v->m, "tokenizer.ggml.model", model);
    }
    if (pre != NULL) {
        mkgguf_str(&v->m, "tokenizer.ggml.pre", pre);
    }
    v->no_scores = model == NULL || strcmp(model, "llama") != 0;
    v->no_merges = model != NULL && strcmp(model, "llama") == 0;
}

void tiny_vocab_free(struct tiny_vocab *v) {
    mkgguf_free(&v->m);
    cw_buf_free(&v->tokens);
    cw_buf_free(&v->types);
    cw_buf_free(&v->scores);
    cw_buf_free(&v->merges);
}

static void add_string(struct cw_buf *b, const char *s, size_t n) {
    uint64_t len = n;
    cw_buf_add(b, &len, sizeof len);
    cw_buf_add(b, s, n);
}

int32_t tiny_vocab_add_n(struct tiny_vocab *v, const char *s, size_t n, int32_t type, float score) {
    add_string(&v->tokens, s, n);
    cw_buf_add(&v->types, &type, sizeof type);
    cw_buf_add(&v->scores, &score, sizeof score);
    return (int32_t)v->n++;
}

int32_t tiny_vocab_add(struct tiny_vocab *v, const char *s, int32_t type, float score) {
    return tiny_vocab_add_n(v, s, strlen(s), type, score);
}

int32_t tiny_vocab_add_alphabet(struct tiny_vocab *v) {
    int32_t first = (int32_t)v->n;
    for (int b = 0; b < 256; b++) {
        char s[4];
        int n = cw_utf8_encode(cw_byte_to_char((uint8_t)b), s);
        tiny_vocab_add_n(v, s, (size_t)n, NORMAL, 0);
    }
    return first;
}

int32_t tiny_vocab_add_byte_tokens(struct tiny_vocab *v) {
    int32_t first = (int32_t)v->n;
    for (unsigned b = 0; b < 256; b++) {
        char s[8];
        snprintf(s, sizeof s, "<0x%02X>", b);
        tiny_vocab_add(v, s, BYTE, 0);
    }
    return first;
}

void tiny_vocab_add_merge(struct tiny_vocab *v, const char *entry) {
    add_string(&v->merges, entry, strlen(entry));
    v->n_merges++;
}

static void must(int rc, const struct cw_err *err) {
    if (rc != CW_OK) {
        fprintf(stderr, "vocabulary of the test: %s\n", err->text);
        abort();
    }
}

/* Whether the token is there; v->tokens holds length and bytes of each. */
static int32_t find(const struct tiny_vocab *v, const char *s) {
    size_t at = 0;
    for (int32_t id = 0; at < v->tokens.len; id++) {
        uint64_t n;
        memcpy(&n, v->tokens.data + at, sizeof n);
        at += sizeof n;
        if (n == strlen(s) && memcmp(v->tokens.data + at, s, n) == 0) {
            return id;
        }
        at += n;
    }
    return -1;
}

int32_t tiny_vocab_merge(struct tiny_vocab *v, const char *left, const char *right) {
    struct cw_buf s = {0};
    cw_buf_printf(&s, "%s %s", left, right);
    tiny_vocab_add_merge(v, s.data);
    cw_buf_clear(&s);
    cw_buf_printf(&s, "%s%s", left, right);
    int32_t id = find(v, s.data);
    if (id < 0) {
        id = tiny_vocab_add(v, s.data, NORMAL, 0);
    }
    cw_buf_free(&s);
    return id;
}

int tiny_vocab_try(struct tiny_vocab *v, const char *pre, struct cw_gguf **g,
                   struct cw_tokenizer **t, struct cw_err *err) {
    struct cw_tokenizer_options opt = {.pre = pre};
    const char *path = tmp_path("vocab.gguf");
    *g = NULL;
    *t = NULL;
    if (!v->no_tokens) {
        mkgguf_array(&v->m, "tokenizer.ggml.tokens", CW_GGUF_STRING, v->n, v->tokens.data,
                     v->tokens.len);
    }
    if (!v->no_types) {
        mkgguf_array(&v->m, "tokenizer.ggml.token_type", CW_GGUF_I32, v->n, v->types.data,
                     v->types.len);
    }
    if (!v->no_scores) {
        mkgguf_array(&v->m, "tokenizer.ggml.scores", CW_GGUF_F32, v->n, v->scores.data,
                     v->scores.len);
    }
    if (!v->no_merges) {
        mkgguf_array(&v->m, "tokenizer.ggml.merges", CW_GGUF_STRING, v->n_merges, v->merges.data,
                     v->merges.len);
    }
    mkgguf_save(&v->m, path);
    int rc = cw_gguf_open(g, path, err);
    unlink(path);
    must(rc, err);
    /* Created beside, and at once: the same. */
    struct cw_tokenizer_loading *beside = cw_tokenizer_begin(*g, &opt);
    struct cw_tokenizer *other;
    struct cw_err other_err = {0};
    int other_rc = cw_tokenizer_create(&other, *g, &opt, &other_err);
    rc = cw_tokenizer_end(beside, t, err);
    if (rc != other_rc || (*t != NULL) != (other != NULL) ||
        (rc != CW_OK && err != NULL && strcmp(err->text, other_err.text) != 0)) {
        fprintf(stderr, "created at once: %s\n", other_err.text);
        abort();
    }
    cw_tokenizer_destroy(other);
    if (rc != CW_OK) {
        cw_gguf_close(*g);
        *g = NULL;
    }
    return rc;
}

struct tiny tiny_open(struct tiny_vocab *v) {
    struct tiny tiny;
    struct cw_err err = {0};
    must(tiny_vocab_try(v, NULL, &tiny.g, &tiny.t, &err), &err);
    tiny_vocab_free(v);
    return tiny;
}

void tiny_close(struct tiny *tiny) {
    cw_tokenizer_destroy(tiny->t);
    cw_gguf_close(tiny->g);
    *tiny = (struct tiny){0};
}
