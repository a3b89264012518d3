/* SPDX-License-Identifier: MIT
 *
 * Tokens that are matched in the text as they stand: user-defined ones everywhere, control and
 * unknown ones where the caller allows. At each place, going from left to right, the longest wins.
 *
 * The list is sorted bytewise, so that all tokens beginning with the same bytes are neighbours: a
 * match narrows that range one byte of text at a time. A step costs O(log n), a place at most
 * SPECIAL_MAX steps, whatever the list and the text.
 */
#include <stdlib.h>

#include "tokenizer_impl.h"

enum { SPECIAL_MAX = 256 }; /* bytes of the longest token matched */

static int compare(const void *a, const void *b, void *ctx) {
    const struct cw_tokenizer *t = ctx;
    int32_t ia = *(const int32_t *)a;
    int32_t ib = *(const int32_t *)b;
    struct cw_str sa = t->text[ia];
    struct cw_str sb = t->text[ib];
    int order = memcmp(sa.data, sb.data, sa.len < sb.len ? sa.len : sb.len);
    if (order == 0) {
        order = (sa.len > sb.len) - (sa.len < sb.len);
    }
    return order != 0 ? order : (ia > ib) - (ia < ib);
}

static bool is_matched(uint8_t type) {
    return type == TOKEN_USER_DEFINED || type == TOKEN_CONTROL || type == TOKEN_UNKNOWN ||
           type == TOKEN_MARKER;
}

void cw_special_build(struct cw_tokenizer *t) {
    size_t n = 0;
    size_t too_long = 0;
    for (int32_t id = 0; id < t->n; id++) {
        n += is_matched(t->type[id]);
    }
    t->special = cw_reallocarray(NULL, n, sizeof *t->special);
    n = 0;
    for (int32_t id = 0; id < t->n; id++) {
        if (is_matched(t->type[id]) && t->text[id].len > 0) {
            if (t->text[id].len <= SPECIAL_MAX) {
                t->special[n++] = id;
            } else {
                too_long++;
            }
        }
    }
    if (too_long > 0) {
        cw_vocab_notice(t, "%zu special tokens of more than %d bytes are not looked for in text",
                        too_long, SPECIAL_MAX);
    }
    qsort_r(t->special, n, sizeof *t->special, compare, t);
    uint32_t i = 0;
    for (int b = 0; b < 256; b++) {
        t->bucket[b] = i;
        while (i < n && (uint8_t)t->text[t->special[i]].data[0] == b) {
            i++;
        }
    }
    t->bucket[256] = i;
}

/* The first of special[lo..hi) whose byte at `depth` is at least `byte`. */
static uint32_t lower_bound(const struct cw_tokenizer *t, uint32_t lo, uint32_t hi, size_t depth,
                            int byte) {
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        struct cw_str s = t->text[t->special[mid]];
        if (s.len <= depth || (uint8_t)s.data[depth] < byte) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

size_t cw_special_match(const struct cw_tokenizer *t, const char *text, size_t user_room,
                        size_t control_room, int32_t *id) {
    size_t room = user_room > control_room ? user_room : control_room;
    size_t best = 0;
    if (room == 0) {
        return 0;
    }
    uint32_t lo = t->bucket[(uint8_t)text[0]];
    uint32_t hi = t->bucket[(uint8_t)text[0] + 1];
    for (size_t n = 1; lo < hi; n++) {
        /* What is n bytes long here equals text[0..n). Several only if strings occur twice. */
        for (; lo < hi && t->text[t->special[lo]].len == n; lo++) {
            int32_t found = t->special[lo];
            bool user = t->type[found] == TOKEN_USER_DEFINED;
            if (best < n && n <= (user ? user_room : control_room)) {
                best = n;
                *id = found;
            }
        }
        if (n == room) {
            break;
        }
        int byte = (uint8_t)text[n];
        lo = lower_bound(t, lo, hi, n, byte);
        hi = lower_bound(t, lo, hi, n, byte + 1);
    }
    return best;
}

size_t cw_special_strip(const struct cw_tokenizer *t, int32_t id, const char *text, size_t len) {
    struct cw_str s = t->text[id];
    size_t n = 0;
    if (!t->strips || cw_str_eq(s, "<s>") || cw_str_eq(s, "<unk>") ||
        cw_str_eq(s, "<|endoftext|>")) {
        return 0;
    }
    while (n < len && (text[n] == ' ' || (text[n] >= '\t' && text[n] <= '\r'))) {
        n++;
    }
    return n;
}
