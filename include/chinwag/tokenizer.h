/* SPDX-License-Identifier: MIT
 *
 * Text to token ids and back, exactly as the file's own vocabulary says.
 *
 * Kinds: byte-level BPE (`tokenizer.ggml.model` gpt2) with the pre-tokenizer the file names, and
 * SPM with byte fallback (llama). Any other model or pre-tokenizer is refused by name; an unknown
 * pre-tokenizer can be overridden, never guessed. Works on a file that holds only a vocabulary.
 *
 * Invalid UTF-8 is encoded byte by byte and comes back as the same bytes; a NUL is a byte like any
 * other. Cost is O(n log n) in the text, whatever the text.
 *
 * Token strings are views of the GGUF mapping, which must outlive the tokenizer. After creation a
 * tokenizer is immutable except for a scratch area: encode from one thread at a time, the other
 * functions from any.
 *
 * Sources: Sennrich et al. 2016 (BPE), Radford et al. 2019 (byte-level BPE), Kudo and Richardson
 * 2018 (SentencePiece).
 */
#ifndef CHINWAG_TOKENIZER_H
#define CHINWAG_TOKENIZER_H

#include "chinwag/gguf.h"

struct cw_tokenizer;

struct cw_tokenizer_options {
    const char *pre; /* use this pre-tokenizer whatever the file says; NULL: the file's */
};

int cw_tokenizer_create(struct cw_tokenizer **out, const struct cw_gguf *g,
                        const struct cw_tokenizer_options *opt, struct cw_err *err);
void cw_tokenizer_destroy(struct cw_tokenizer *t);

/* The same in two halves, with a thread of its own between them, for callers who have something
 * else to do meanwhile. `g` must stay open; every begin needs its end, which waits for the thread.
 */
struct cw_tokenizer_loading;
struct cw_tokenizer_loading *cw_tokenizer_begin(const struct cw_gguf *g,
                                                const struct cw_tokenizer_options *opt);
int cw_tokenizer_end(struct cw_tokenizer_loading *l, struct cw_tokenizer **out, struct cw_err *err);

/* A stretch of a rendered prompt, [begin, end) in bytes of its text. */
struct cw_span {
    size_t begin, end;
    int32_t message;    /* index of the message whose content wrote these bytes, -1: the template */
    const int32_t *ids; /* if not NULL: this stretch is exactly these ids, not to be tokenised */
    size_t n_ids;
};

enum {
    CW_TOK_BOS_EOS = 1, /* add begin/end tokens where the file asks for them; in a rendered prompt
                         * one that the text already begins (ends) with is not added again */
    CW_TOK_SPECIAL = 2, /* cw_tokenizer_encode only: control tokens in the text are matched */
    CW_TOK_BOS = 4,     /* of the first the begin token alone */
};

/* Append the ids of text[0..len) to *ids. User-defined tokens (type 4) are always matched, at each
 * place the longest; control tokens only with CW_TOK_SPECIAL. Those of Phi-3 take the white space
 * behind them. A character that the vocabulary cannot express is its unknown token; without one,
 * byte-level BPE leaves it out, as its families do (a notice says so if text may hold it). Fails
 * only with CW_EFORMAT, where the other kinds cannot express a byte, and CW_EINVAL, for a text of
 * more than 1 GiB; *ids is then as before. */
int cw_tokenizer_encode(struct cw_tokenizer *t, const char *text, size_t len, unsigned flags,
                        struct cw_ids *ids, struct cw_err *err);

/* The same for a rendered prompt. A control token is matched only where all its bytes carry
 * message == -1; between control tokens (and stretches with ids) the text is encoded as one
 * fragment whatever spans it is made of, so that a prompt gives the ids that the reference gives.
 * `spans` cover text in order without gaps. If `at` is not NULL it receives for each span (n_spans
 * entries) the index in *ids of the first token that begins at or after the span's begin. */
int cw_tokenizer_encode_spans(struct cw_tokenizer *t, const char *text, const struct cw_span *spans,
                              size_t n_spans, unsigned flags, struct cw_ids *ids, size_t *at,
                              struct cw_err *err);

/* Append the bytes that token `id` stands for; those of a control token only if `special`. An id
 * out of range adds nothing. The first token of a text may lose a leading blank (SPM,
 * add_space_prefix): pass first = true for it. */
void cw_tokenizer_piece(const struct cw_tokenizer *t, int32_t id, bool special, bool first,
                        struct cw_buf *out);
void cw_tokenizer_decode(const struct cw_tokenizer *t, const int32_t *ids, size_t n, bool special,
                         struct cw_buf *out);

int32_t cw_tokenizer_n_tokens(const struct cw_tokenizer *t);
int32_t cw_tokenizer_bos(const struct cw_tokenizer *t); /* -1: none; never invented */
int32_t cw_tokenizer_eos(const struct cw_tokenizer *t);
bool cw_tokenizer_adds_bos(const struct cw_tokenizer *t); /* as the file asks */
bool cw_tokenizer_adds_eos(const struct cw_tokenizer *t);
bool cw_tokenizer_is_control(const struct cw_tokenizer *t, int32_t id);

/* Whether generation ends at this id: eos, eot, eom of the file, and the end markers known in the
 * field that are control tokens of this vocabulary (such as <|im_end|>, <|eot_id|>,
 * <end_of_turn>, <|end|>). */
bool cw_tokenizer_is_eog(const struct cw_tokenizer *t, int32_t id);

/* The raw string of a token as the file has it (a view), {NULL, 0} out of range. */
struct cw_str cw_tokenizer_text(const struct cw_tokenizer *t, int32_t id);
/* The id of the token whose raw string is s[0..n), or -1. */
int32_t cw_tokenizer_find(const struct cw_tokenizer *t, const char *s, size_t n);

/* What was noticed while reading the vocabulary that a person should know (an absent
 * pre-tokenizer name, say): the i-th line or NULL past the last. */
const char *cw_tokenizer_notice(const struct cw_tokenizer *t, size_t i);
const char *cw_tokenizer_model_name(const struct cw_tokenizer *t); /* "gpt2", "llama" */
const char *cw_tokenizer_pre_name(const struct cw_tokenizer *t);   /* "smollm", "" for SPM */

#endif
