/* SPDX-License-Identifier: MIT
 *
 * Small vocabularies made by hand: collect tokens and merges, write them as a GGUF file, open it.
 */
#ifndef TESTS_TINY_VOCAB_H
#define TESTS_TINY_VOCAB_H

#include "chinwag/tokenizer.h"
#include "tests/support/mkgguf.h"

enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER = 4, UNUSED = 5, BYTE = 6 };

struct tiny_vocab {
    struct mkgguf m;
    struct cw_buf tokens, types, scores, merges; /* as the arrays go to the file */
    uint64_t n, n_merges;
    bool no_tokens, no_types, no_scores, no_merges; /* leave the key out */
};

/* `model` and `pre` may be NULL: no such key. */
void tiny_vocab_init(struct tiny_vocab *v, const char *model, const char *pre);
void tiny_vocab_free(struct tiny_vocab *v);

/* These return the token's id. */
int32_t tiny_vocab_add_n(struct tiny_vocab *v, const char *s, size_t n, int32_t type, float score);
int32_t tiny_vocab_add(struct tiny_vocab *v, const char *s, int32_t type, float score);
/* The 256 bytes: in the byte alphabet, or as <0xNN>. Return the id of byte 0. */
int32_t tiny_vocab_add_alphabet(struct tiny_vocab *v);
int32_t tiny_vocab_add_byte_tokens(struct tiny_vocab *v);
/* "left right", and the token they make if it is not there. */
int32_t tiny_vocab_merge(struct tiny_vocab *v, const char *left, const char *right);
void tiny_vocab_add_merge(struct tiny_vocab *v, const char *entry); /* the entry alone */

/* Write the file, open it and create a tokenizer. On failure *g and *t are NULL. */
int tiny_vocab_try(struct tiny_vocab *v, const char *pre, struct cw_gguf **g,
                   struct cw_tokenizer **t, struct cw_err *err);

/* A tokenizer with its file, which must load; v is freed. */
struct tiny {
    struct cw_gguf *g;
    struct cw_tokenizer *t;
};
struct tiny tiny_open(struct tiny_vocab *v);
void tiny_close(struct tiny *tiny);

#endif
