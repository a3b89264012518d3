/* SPDX-License-Identifier: MIT
 *
 * What the files of the tokenizer share.
 *
 *   vocab.c        reads the vocabulary: strings, types, special ids, the table string -> id
 *   merges.c       reads the merge list: the table (left id, right id) -> rank, id
 *   special.c      tokens that are matched in the text as they stand, leftmost-longest
 *   pretokenize.c  cuts text into words by the patterns of pre_table.c
 *   merge.c        joins symbols in order of rank, in O(n log n)
 *   encode.c       text -> fragments -> pieces -> ids
 *   decode.c       ids -> text
 *   tokenizer.c    creation and the small questions
 */
#ifndef CHINWAG_TOKENIZER_IMPL_H
#define CHINWAG_TOKENIZER_IMPL_H

#include <string.h>

#include "chinwag/tokenizer.h"

/* Token types, as numbered in `tokenizer.ggml.token_type`. */
enum token_type {
    TOKEN_NORMAL = 1,
    TOKEN_UNKNOWN = 2,
    TOKEN_CONTROL = 3,
    TOKEN_USER_DEFINED = 4,
    TOKEN_UNUSED = 5,
    TOKEN_BYTE = 6,
    /* Ours: text to the file, but a string known as an end marker, and matched where control
     * tokens are. */
    TOKEN_MARKER = 7,
};

/* How text becomes the first symbols and what ranks a merge. */
enum tokenizer_kind {
    KIND_BYTE_BPE, /* one symbol a byte, strings in GPT-2's byte alphabet, a merge list */
    KIND_TEXT_BPE, /* one symbol a character, blanks as U+2581, byte fallback, a merge list */
    KIND_SPM,      /* the same, but the score of the joined token ranks the merge */
};

enum {
    PRE_IGNORE_MERGES = 1, /* a word that is a token as a whole is that token */
    PRE_ADD_BOS = 2,       /* a begin token by default */
    PRE_TEXT = 4,          /* KIND_TEXT_BPE */
    PRE_MAX_PATTERNS = 6,
};

/* A pre-tokenizer: patterns that cut the text one after another, each the pieces of the one
 * before. What a pattern does not match is a piece too. NULL ends the list. */
struct cw_pre {
    const char *name;
    const char *const *patterns;
    unsigned flags;
};

/* The i-th row, or NULL past the last; the row of that name, or NULL. */
const struct cw_pre *cw_pre_at(size_t i);
const struct cw_pre *cw_pre_find(struct cw_str name);

/* A compiled pre-tokenizer (pcre2_code and friends, kept out of this header). */
struct cw_pretokenizer;
/* `jit` false: interpret the patterns even where they could be compiled. */
int cw_pretokenizer_create(struct cw_pretokenizer **out, const struct cw_pre *pre, bool jit,
                           struct cw_err *err);
void cw_pretokenizer_destroy(struct cw_pretokenizer *p);

/* Cut text[0..len), which must be valid UTF-8, and hand the pieces in order to `piece`, which
 * returns CW_OK to go on. */
typedef int (*cw_piece_fn)(void *ctx, const char *text, size_t len, struct cw_err *err);
int cw_pretokenize(struct cw_pretokenizer *p, const char *text, size_t len, cw_piece_fn piece,
                   void *ctx, struct cw_err *err);

/* Open addressing in zeroed memory: numbers are kept plus one, so that 0 is an empty slot. The
 * beginning of the string is in the slot, so that most lookups touch nothing else. */
struct token_slot {
    uint64_t head;  /* the first eight bytes, zeros after a shorter string */
    uint32_t len;   /* of the string */
    uint32_t id_p1; /* id + 1 */
};

struct merge_slot {
    uint32_t left_p1, right_p1; /* ids + 1 */
    uint32_t rank;              /* the lower the earlier */
    int32_t id;                 /* of the joined token */
};

#define NO_SYMBOL UINT32_MAX
#define NO_RANK   UINT32_MAX

/* A symbol of the word being merged: text[pos..pos + n). The list is by index. */
struct symbol {
    uint32_t prev, next;
    uint32_t pos, n;
    int32_t id;     /* -1: not looked up, or no token */
    int32_t joined; /* the token that this symbol and the next would make */
    uint32_t rank;  /* of that merge, or NO_RANK */
};

/* A word of at most 16 bytes and what it was encoded to: most words of a text come again. */
enum { CACHED_WORDS = 4096, CACHED_BYTES = 16, CACHED_TOKENS = 6 };
struct cached_word {
    uint64_t head, tail; /* its bytes, zeros behind them */
    uint8_t len;         /* 0: an empty slot */
    uint8_t n;
    uint8_t pos[CACHED_TOKENS]; /* [n] where in the word each token begins */
    int32_t id[CACHED_TOKENS];  /* [n] */
};

/* Memory of the encoder, kept between calls. */
struct scratch {
    struct symbol *symbols;
    size_t n_symbols, symbols_cap;
    uint64_t *heap; /* rank << 32 | index of the left symbol */
    size_t n_heap, heap_cap;
    struct cw_buf text;        /* the escaped segment, or a word in the byte alphabet */
    struct cached_word *words; /* [CACHED_WORDS], KIND_BYTE_BPE only */
    uint64_t n_pairs;          /* pairs looked up since creation: the measure of work done */
};

struct cw_tokenizer {
    enum tokenizer_kind kind;
    const struct cw_pre *pre; /* NULL for SPM */
    struct cw_pretokenizer *pretokenizer;
    char *model_name;

    struct cw_str *text; /* [n] views of the mapping */
    uint8_t *type;       /* [n] enum token_type */
    uint32_t *rank;      /* [n] SPM: the best score has the lowest rank */
    int32_t n;
    bool untyped;    /* the file has no types */
    bool unique;     /* no string occurs twice */
    size_t max_text; /* bytes of the longest token that text can become */

    struct token_slot *slots;  /* [n_slots] string -> lowest id */
    uint32_t n_slots;          /* a power of two */
    struct merge_slot *merges; /* [n_merge_slots] */
    uint32_t n_merge_slots;    /* a power of two */
    uint64_t seed;             /* of the hashes, so that no file can be made to collide */

    int32_t byte_id[256]; /* -1: none */
    int32_t *replacement; /* [n_replacement] ids of U+FFFD, for a byte without a token */
    size_t n_replacement;

    /* Bits of pairs of characters that stand side by side inside a token: between two others no
     * merge can ever reach, so the text may be cut there. KIND_TEXT_BPE and KIND_SPM. */
    uint64_t *pairs;
    uint32_t pair_shift;

    /* Tokens matched in the text, sorted bytewise; those that begin with byte b are
     * special[bucket[b]..bucket[b + 1]). */
    int32_t *special;
    uint32_t bucket[257];

    int32_t bos, eos, unk;
    bool add_bos, add_eos, add_space_prefix;
    bool strips;  /* special tokens take the white space behind them */
    int32_t *eog; /* [n_eog] */
    size_t n_eog;

    char **notices; /* [n_notices] */
    size_t n_notices;

    struct scratch scratch;
};

/* --- hashing: multiply and fold, eight bytes a step --- */

#define HASH_FACTOR 0x9e3779b97f4a7c15ull

static inline uint64_t hash_word(uint64_t h, uint64_t w) {
    h = (h ^ w) * HASH_FACTOR;
    return h ^ h >> 32;
}

/* The first eight bytes of s[0..n), zeros where there are fewer. */
static inline uint64_t load_head(const char *s, size_t n) {
    uint64_t head = 0;
    if (n >= 8) {
        memcpy(&head, s, 8);
    } else if (n >= 4) { /* two loads that overlap instead of a loop */
        uint32_t a, b;
        memcpy(&a, s, 4);
        memcpy(&b, s + n - 4, 4);
        head = a | (uint64_t)b << 8 * (n - 4);
    } else if (n > 0) {
        head = (uint8_t)s[0] | (uint64_t)(uint8_t)s[n / 2] << 8 * (n / 2) |
               (uint64_t)(uint8_t)s[n - 1] << 8 * (n - 1);
    }
    return head;
}

static inline uint64_t hash_bytes(uint64_t seed, const char *s, size_t n, uint64_t head) {
    uint64_t h = hash_word(seed ^ n, head);
    for (size_t i = 8; i < n; i += 8) {
        h = hash_word(h, load_head(s + i, n - i));
    }
    return h;
}

/* Slots for n entries, two thirds full at most. n is below 2^30. */
static inline uint32_t table_size(size_t n) {
    uint32_t size = 16;
    while (size < n + n / 2) {
        size *= 2;
    }
    return size;
}

/* --- vocab.c --- */

/* Everything but merges, pre-tokenizer and special.c's list. */
int cw_vocab_load(struct cw_tokenizer *t, const struct cw_gguf *g, struct cw_err *err);
/* Ask for the memory that finding s will need. */
static inline void cw_vocab_prefetch(const struct cw_tokenizer *t, struct cw_str s) {
    uint64_t h = hash_bytes(t->seed, s.data, s.len, load_head(s.data, s.len));
    __builtin_prefetch(&t->slots[(uint32_t)h & (t->n_slots - 1)], 1);
}
/* The id whose string is s[0..n), of whatever type, or -1. */
int32_t cw_vocab_find(const struct cw_tokenizer *t, const char *s, size_t n);
/* The same, but only a token that text may become. */
int32_t cw_vocab_find_text(const struct cw_tokenizer *t, const char *s, size_t n);
void cw_vocab_notice(struct cw_tokenizer *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Whether merging may yield a token of this type. */
static inline bool cw_type_is_text(uint8_t type) {
    return type == TOKEN_NORMAL || type == TOKEN_USER_DEFINED || type == TOKEN_UNUSED ||
           type == TOKEN_MARKER;
}
/* Whether the characters a, b stand side by side in a token. May say yes wrongly, never no. */
static inline uint32_t cw_pair_bit(const struct cw_tokenizer *t, uint32_t a, uint32_t b) {
    return (uint32_t)(hash_word(t->seed, (uint64_t)a << 32 | b) * HASH_FACTOR >> t->pair_shift);
}
static inline bool cw_pair_occurs(const struct cw_tokenizer *t, uint32_t a, uint32_t b) {
    uint32_t bit = cw_pair_bit(t, a, b);
    return t->pairs[bit / 64] >> bit % 64 & 1;
}

/* --- merges.c --- */

int cw_merges_load(struct cw_tokenizer *t, const struct cw_gguf *g, struct cw_err *err);
const struct merge_slot *cw_merges_find(const struct cw_tokenizer *t, int32_t left, int32_t right);

/* --- special.c --- */

void cw_special_build(struct cw_tokenizer *t);
static inline bool cw_special_begins(const struct cw_tokenizer *t, uint8_t byte) {
    return t->bucket[byte] != t->bucket[byte + 1];
}
/* The longest token that stands at text[0..): a user-defined one of at most user_room bytes, a
 * control one of at most control_room. Returns its length and sets *id, or 0. */
size_t cw_special_match(const struct cw_tokenizer *t, const char *text, size_t user_room,
                        size_t control_room, int32_t *id);
/* How many bytes of white space at text[0..len) belong to the special token `id` before it. */
size_t cw_special_strip(const struct cw_tokenizer *t, int32_t id, const char *text, size_t len);

/* --- merge.c --- */

void cw_symbols_clear(struct scratch *s);
/* Append text[pos..pos + n) to the word. */
void cw_symbols_add(struct scratch *s, size_t pos, size_t n, int32_t id);
/* Join the symbols of `text` until no merge is left; walk what remains from index 0 by next. */
void cw_symbols_merge(struct cw_tokenizer *t, const char *text);

/* --- the byte alphabet of byte-level BPE (decode.c) --- */

/* The character that stands for a byte; it is below U+0144, so two bytes of UTF-8 at most. */
uint32_t cw_byte_to_char(uint8_t byte);
/* The byte that a character stands for, or -1. */
int cw_char_to_byte(uint32_t cp);

#endif
