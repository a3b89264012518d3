/* SPDX-License-Identifier: MIT
 *
 * The merge loop of BPE and SPM: of all neighbours that can be joined, join those of the lowest
 * rank, the leftmost first, until none is left.
 *
 * Symbols are a doubly linked list in an array, candidates a binary heap of rank and left index.
 * A join makes at most two new candidates and never removes old ones: a candidate is stale when
 * its left symbol is gone or its rank is no longer the one noted there. So a word of n symbols
 * costs at most 3n lookups and O(n log n) heap steps.
 */
#include "tokenizer_impl.h"

void cw_symbols_clear(struct scratch *s) {
    s->n_symbols = 0;
    s->n_heap = 0;
}

void cw_symbols_add(struct scratch *s, size_t pos, size_t n, int32_t id) {
    if (s->n_symbols == s->symbols_cap) {
        s->symbols_cap = s->symbols_cap < 256 ? 512 : s->symbols_cap * 2;
        s->symbols = cw_reallocarray(s->symbols, s->symbols_cap, sizeof *s->symbols);
    }
    uint32_t i = (uint32_t)s->n_symbols++;
    s->symbols[i] = (struct symbol){
        .prev = i - 1, /* NO_SYMBOL for the first */
        .next = NO_SYMBOL,
        .pos = (uint32_t)pos,
        .n = (uint32_t)n,
        .id = id,
        .joined = -1,
        .rank = NO_RANK,
    };
    if (i > 0) {
        s->symbols[i - 1].next = i;
    }
}

/* Four children a node: half the levels of a binary heap, and those of one node lie in one line of
 * the cache or two, which is what a word of megabytes waits for. */
enum { CHILDREN = 4 };

static void heap_push(struct scratch *s, uint64_t key) {
    if (s->n_heap == s->heap_cap) {
        s->heap_cap = s->heap_cap < 256 ? 512 : s->heap_cap * 2;
        s->heap = cw_reallocarray(s->heap, s->heap_cap, sizeof *s->heap);
    }
    size_t i = s->n_heap++;
    while (i > 0 && s->heap[(i - 1) / CHILDREN] > key) {
        s->heap[i] = s->heap[(i - 1) / CHILDREN];
        i = (i - 1) / CHILDREN;
    }
    s->heap[i] = key;
}

static uint64_t heap_pop(struct scratch *s) {
    uint64_t *heap = s->heap;
    uint64_t top = heap[0];
    uint64_t key = heap[--s->n_heap];
    size_t n = s->n_heap;
    size_t i = 0;
    for (size_t first = 1; first < n; first = CHILDREN * i + 1) {
        size_t end = first + CHILDREN < n ? first + CHILDREN : n;
        size_t least = first;
        for (size_t child = first + 1; child < end; child++) {
            least = heap[child] < heap[least] ? child : least;
        }
        if (heap[least] >= key) {
            break;
        }
        heap[i] = heap[least];
        i = least;
    }
    heap[i] = key;
    return top;
}

/* Note what symbol i and the next would make, and make it a candidate. */
static void offer(struct cw_tokenizer *t, const char *text, uint32_t i) {
    struct scratch *s = &t->scratch;
    struct symbol *left = &s->symbols[i];
    left->rank = NO_RANK;
    if (left->next == NO_SYMBOL) {
        return;
    }
    const struct symbol *right = &s->symbols[left->next];
    s->n_pairs++;
    if (t->kind == KIND_SPM) {
        int32_t id = cw_vocab_find_text(t, text + left->pos, (size_t)left->n + right->n);
        if (id >= 0) {
            left->rank = t->rank[id];
            left->joined = id;
        }
    } else if (left->id >= 0 && right->id >= 0) {
        const struct merge_slot *merge = cw_merges_find(t, left->id, right->id);
        if (merge != NULL) {
            left->rank = merge->rank;
            left->joined = merge->id;
        }
    }
    if (left->rank != NO_RANK) {
        heap_push(s, (uint64_t)left->rank << 32 | i);
    }
}

void cw_symbols_merge(struct cw_tokenizer *t, const char *text) {
    struct scratch *s = &t->scratch;
    for (uint32_t i = 0; i + 1 < s->n_symbols; i++) {
        offer(t, text, i);
    }
    while (s->n_heap > 0) {
        uint64_t key = heap_pop(s);
        uint32_t i = (uint32_t)key;
        struct symbol *left = &s->symbols[i];
        if (left->rank != key >> 32) {
            continue;
        }
        struct symbol *right = &s->symbols[left->next];
        left->id = left->joined;
        left->n += right->n;
        left->next = right->next;
        right->rank = NO_RANK;
        if (left->next != NO_SYMBOL) {
            s->symbols[left->next].prev = i;
        }
        offer(t, text, i);
        if (left->prev != NO_SYMBOL) {
            offer(t, text, left->prev);
        }
    }
}
