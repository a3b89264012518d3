/* SPDX-License-Identifier: MIT
 *
 * Cutting text into words with PCRE2.
 *
 * Patterns are compiled by PCRE2's just-in-time compiler where it works and interpreted where it
 * does not (a hardened kernel); both give the same pieces. Levels are handled depth first, so the
 * pieces come in text order and none is stored; the depth is the number of patterns.
 *
 * Not shared between threads: match data is scratch.
 */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdlib.h>

#include "tokenizer_impl.h"

struct cw_pretokenizer {
    const struct cw_pre *pre;
    pcre2_code *code[PRE_MAX_PATTERNS];
    bool jit[PRE_MAX_PATTERNS];
    pcre2_match_data *match[PRE_MAX_PATTERNS]; /* one a level: the outer one is still in use */
    pcre2_match_context *limits;
    int n;
};

enum {
    MATCH_LIMIT = 2000000000, /* backtracking points of one match: more than a 1 GiB word needs */
    HEAP_LIMIT_KIB = 1 << 20, /* of the interpreter */
};

int cw_pretokenizer_create(struct cw_pretokenizer **out, const struct cw_pre *pre, bool jit,
                           struct cw_err *err) {
    struct cw_pretokenizer *p = cw_calloc(1, sizeof *p);
    int rc = CW_OK;
    *out = NULL;
    p->pre = pre;
    p->limits = pcre2_match_context_create(NULL);
    if (p->limits == NULL) {
        rc = cw_fail(err, CW_ENOMEM, "pre-tokenizer %s: out of memory", pre->name);
        goto out;
    }
    pcre2_set_match_limit(p->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(p->limits, HEAP_LIMIT_KIB);
    for (int i = 0; i < PRE_MAX_PATTERNS && pre->patterns[i] != NULL; i++) {
        int code = 0;
        PCRE2_SIZE at = 0;
        p->code[i] = pcre2_compile((PCRE2_SPTR)pre->patterns[i], PCRE2_ZERO_TERMINATED,
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_NO_AUTO_CAPTURE, &code, &at, NULL);
        if (p->code[i] == NULL) {
            rc = cw_fail(err, CW_EUNSUP, "pre-tokenizer %s: pattern %d: PCRE2 error %d at %zu",
                         pre->name, i, code, (size_t)at);
            goto out;
        }
        p->jit[i] = jit && pcre2_jit_compile(p->code[i], PCRE2_JIT_COMPLETE) == 0;
        p->match[i] = pcre2_match_data_create(1, NULL);
        if (p->match[i] == NULL) {
            rc = cw_fail(err, CW_ENOMEM, "pre-tokenizer %s: out of memory", pre->name);
            goto out;
        }
        p->n = i + 1;
    }
    *out = p;
    p = NULL;
out:
    cw_pretokenizer_destroy(p);
    return rc;
}

void cw_pretokenizer_destroy(struct cw_pretokenizer *p) {
    if (p == NULL) {
        return;
    }
    for (int i = 0; i < PRE_MAX_PATTERNS; i++) {
        pcre2_match_data_free(p->match[i]);
        pcre2_code_free(p->code[i]);
    }
    pcre2_match_context_free(p->limits);
    free(p);
}

/* The first match of pattern `level` at or after `start`. The text was checked to be UTF-8. */
static int find(struct cw_pretokenizer *p, int level, const char *text, size_t len, size_t start) {
    PCRE2_SPTR subject = (PCRE2_SPTR)text;
    pcre2_match_data *match = p->match[level];
    if (p->jit[level]) {
        int rc = pcre2_jit_match(p->code[level], subject, len, start, 0, match, p->limits);
        if (rc != PCRE2_ERROR_JIT_STACKLIMIT) {
            return rc;
        }
        /* The interpreter keeps its backtracking points on the heap. */
    }
    return pcre2_match(p->code[level], subject, len, start, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       match, p->limits);
}

static int split(struct cw_pretokenizer *p, int level, const char *text, size_t len,
                 cw_piece_fn piece, void *ctx, struct cw_err *err) {
    if (level == p->n) {
        return piece(ctx, text, len, err);
    }
    size_t done = 0;
    int rc = CW_OK;
    while (rc == CW_OK && done < len) {
        size_t begin = len;
        size_t end = len;
        int found = find(p, level, text, len, done);
        if (found >= 0) {
            const PCRE2_SIZE *span = pcre2_get_ovector_pointer(p->match[level]);
            begin = span[0];
            end = span[1];
        } else if (found != PCRE2_ERROR_NOMATCH) {
            return cw_fail(err, CW_EINVAL, "pre-tokenizer %s: PCRE2 error %d on this text",
                           p->pre->name, found);
        }
        if (end <= begin) { /* no match, or an empty one, which cuts nothing */
            begin = end = len;
        }
        if (begin > done) {
            rc = split(p, level + 1, text + done, begin - done, piece, ctx, err);
        }
        if (rc == CW_OK && end > begin) {
            rc = split(p, level + 1, text + begin, end - begin, piece, ctx, err);
        }
        done = end;
    }
    return rc;
}

int cw_pretokenize(struct cw_pretokenizer *p, const char *text, size_t len, cw_piece_fn piece,
                   void *ctx, struct cw_err *err) {
    return len == 0 ? CW_OK : split(p, 0, text, len, piece, ctx, err);
}
