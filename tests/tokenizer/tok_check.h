/* SPDX-License-Identifier: MIT
 *
 * What the suites of the tokenizer share: two vocabularies and a few checks.
 */
#ifndef TESTS_TOK_CHECK_H
#define TESTS_TOK_CHECK_H

#include "core/text/tokenizer/tokenizer_impl.h"
#include "tiny_vocab.h"

#define BLANK "\xe2\x96\x81" /* U+2581 */

uint32_t next_random(uint32_t *state);
/* n of the letters a, b, c. */
void random_word(char *out, size_t n, uint32_t *state);

/* Encode, which must succeed; *ids is overwritten. */
void encode_n(struct cw_tokenizer *t, const char *text, size_t len, unsigned flags,
              struct cw_ids *ids);
/* The tokens of ids as their strings, joined by '|'. Static storage. */
const char *show(const struct cw_tokenizer *t, const struct cw_ids *ids);
/* The text's tokens, as show() writes them. */
void check_tokens(struct cw_tokenizer *t, const char *text, unsigned flags, const char *want);
void check_round_trip(struct cw_tokenizer *t, const char *text, size_t len);

/* The alphabet, `ab`, chat markers and user-defined tokens. */
enum { IM_START = 257, IM_END, BOS, END_OF_TEXT, USER_12, USER_123, USER_23, USER_NL2, USER_NL3 };

void chat_vocab(struct tiny_vocab *v);
struct tiny chat_tokenizer(void);

/* A llama vocabulary: `ab`, a, b, H, i, some with a blank in front, all bytes. */
struct tiny spm_tokenizer(bool prefix);

#endif
