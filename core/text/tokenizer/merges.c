/* SPDX-License-Identifier: MIT
 *
 * The merge list of BPE as pairs of integers.
 *
 * An entry is "left right"; its place in the list is its rank. Reading it is the longest part of
 * starting up, and nearly all of that is waiting for memory: three strings and one pair an entry,
 * each somewhere else in tables of megabytes. So entries are taken in blocks, and what a step needs
 * is asked for a step ahead. The joined token is first sought one id after the last one, since
 * most vocabularies were written in the order of their merges.
 */
#include <stdlib.h>

#include "tokenizer_impl.h"

enum {
    JOINED_MAX = 1024, /* bytes; no token of the field comes near */
    BLOCK = 16,        /* entries */
};

static uint32_t first_slot(const struct cw_tokenizer *t, uint32_t left_p1, uint32_t right_p1) {
    return (uint32_t)hash_word(t->seed, (uint64_t)left_p1 << 32 | right_p1) &
           (t->n_merge_slots - 1);
}

/* The slot of the pair, or the empty one where it belongs. */
static struct merge_slot *find_slot(const struct cw_tokenizer *t, uint32_t left_p1,
                                    uint32_t right_p1) {
    uint32_t mask = t->n_merge_slots - 1;
    for (uint32_t i = first_slot(t, left_p1, right_p1);; i = (i + 1) & mask) {
        struct merge_slot *slot = &t->merges[i];
        if ((slot->left_p1 == left_p1 && slot->right_p1 == right_p1) || slot->left_p1 == 0) {
            return slot;
        }
    }
}

const struct merge_slot *cw_merges_find(const struct cw_tokenizer *t, int32_t left, int32_t right) {
    const struct merge_slot *slot = find_slot(t, (uint32_t)left + 1, (uint32_t)right + 1);
    return slot->left_p1 != 0 ? slot : NULL;
}

/* The token that is left and right together, or -1. */
static int32_t find_joined(const struct cw_tokenizer *t, struct cw_str left, struct cw_str right,
                           int32_t guess) {
    char joined[JOINED_MAX];
    size_t n = left.len + right.len;
    if (n > t->max_text || n > sizeof joined) {
        return -1;
    }
    if (t->unique && guess < t->n && t->text[guess].len == n && cw_type_is_text(t->type[guess]) &&
        memcmp(t->text[guess].data, left.data, left.len) == 0 &&
        memcmp(t->text[guess].data + left.len, right.data, right.len) == 0) {
        return guess;
    }
    memcpy(joined, left.data, left.len);
    memcpy(joined + left.len, right.data, right.len);
    return cw_vocab_find_text(t, joined, n);
}

/* One entry on its way into the table. */
struct entry {
    struct cw_str left, right;
    struct merge_slot merge; /* left_p1 0: it names tokens that are not there */
};

static int parse_entry(struct cw_tokenizer *t, struct cw_str s, size_t i, struct entry *e,
                       struct cw_err *err) {
    /* A blank can only be the separator, or a token's first character. */
    const char *blank = s.len < 3 ? NULL : memchr(s.data + 1, ' ', s.len - 2);
    if (blank == NULL) {
        return cw_fail(err, CW_EFORMAT,
                       "tokenizer.ggml.merges: entry %zu, \"%.*s\", is not two tokens with a blank "
                       "between them",
                       i, (int)(s.len < 64 ? s.len : 64), s.data);
    }
    e->left = (struct cw_str){s.data, (size_t)(blank - s.data)};
    e->right = (struct cw_str){blank + 1, s.len - e->left.len - 1};
    cw_vocab_prefetch(t, e->left);
    cw_vocab_prefetch(t, e->right);
    return CW_OK;
}

/* `next` is the id after the last joined one. */
static void resolve_entry(struct cw_tokenizer *t, size_t i, int32_t *next, struct entry *e) {
    int32_t left = cw_vocab_find_text(t, e->left.data, e->left.len);
    int32_t right = cw_vocab_find_text(t, e->right.data, e->right.len);
    int32_t id = find_joined(t, e->left, e->right, *next);
    if (left < 0 || right < 0 || id < 0) {
        e->merge = (struct merge_slot){0};
        return;
    }
    e->merge = (struct merge_slot){(uint32_t)left + 1, (uint32_t)right + 1, (uint32_t)i, id};
    *next = id + 1;
    __builtin_prefetch(&t->merges[first_slot(t, e->merge.left_p1, e->merge.right_p1)], 1);
}

int cw_merges_load(struct cw_tokenizer *t, const struct cw_gguf *g, struct cw_err *err) {
    struct cw_str *list = NULL;
    size_t n = 0;
    int rc = cw_gguf_strs(g, "tokenizer.ggml.merges", &list, &n, err);
    if (rc == CW_ENOENT) {
        return cw_fail(err, CW_EFORMAT,
                       "tokenizer.ggml.merges is missing: without it a %s vocabulary cannot build "
                       "its tokens",
                       t->model_name);
    }
    if (rc != CW_OK) {
        return rc;
    }
    if (n >= UINT32_MAX / 4) {
        rc = cw_fail(err, CW_EFORMAT, "tokenizer.ggml.merges has %zu entries", n);
        goto out;
    }
    t->n_merge_slots = table_size(n);
    t->merges = cw_table_alloc(t->n_merge_slots * sizeof *t->merges);
    if (t->merges == NULL) {
        rc = cw_fail(err, CW_ENOMEM, "no memory for %zu merges", n);
        goto out;
    }
    size_t unknown = 0;
    int32_t next = 0;
    for (size_t first = 0; first < n; first += BLOCK) {
        struct entry block[BLOCK];
        size_t count = n - first < BLOCK ? n - first : BLOCK;
        for (size_t i = 0; i < count; i++) {
            if ((rc = parse_entry(t, list[first + i], first + i, &block[i], err)) != CW_OK) {
                goto out;
            }
        }
        for (size_t i = 0; i < count; i++) {
            resolve_entry(t, first + i, &next, &block[i]);
        }
        for (size_t i = 0; i < count; i++) {
            struct merge_slot merge = block[i].merge;
            if (merge.left_p1 == 0) {
                unknown++;
                continue;
            }
            struct merge_slot *slot = find_slot(t, merge.left_p1, merge.right_p1);
            if (slot->left_p1 == 0) { /* the first entry of a pair stands */
                *slot = merge;
            }
        }
    }
    if (unknown > 0) {
        cw_vocab_notice(t,
                        "tokenizer.ggml.merges: %zu of %zu entries name tokens that the vocabulary "
                        "does not have: left out",
                        unknown, n);
    }
out:
    free(list);
    return rc;
}
