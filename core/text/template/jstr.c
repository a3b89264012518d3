/* SPDX-License-Identifier: MIT
 * Origin-tagged strings (jstr.h). */
#include "jstr.h"

#include <string.h>

#include "chinwag/utf8.h"

const struct cw_jrun cw_jtemplate_run = {SIZE_MAX, CW_JTEMPLATE};

struct cw_jstr *cw_jstr_new(struct cw_jarena *a, const char *data, size_t len,
                            const struct cw_jrun *run) {
    struct cw_jstr *s = cw_jalloc(a, sizeof *s);
    *s = (struct cw_jstr){.data = len != 0 ? data : "", .len = len, .runs = run, .n_runs = 1};
    return s;
}

/* The run that byte i of s lies in, i <= len. */
static const struct cw_jrun *run_at(const struct cw_jstr *s, size_t i) {
    size_t lo = 0, hi = s->n_runs - 1;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->runs[mid].end > s->at + i) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return &s->runs[lo];
}

struct cw_jstr *cw_jstr_slice(struct cw_jarena *a, const struct cw_jstr *s, size_t begin,
                              size_t end) {
    struct cw_jstr *slice = cw_jalloc(a, sizeof *slice);
    *slice = *s;
    slice->markup = false;
    slice->data += begin;
    slice->len = end - begin;
    slice->at += begin;
    if (s->n_runs > 1) {
        slice->runs = run_at(s, begin);
        slice->n_runs = (size_t)(run_at(s, end > begin ? end - 1 : begin) - slice->runs) + 1;
    }
    return slice;
}

int32_t cw_jstr_origin(const struct cw_jstr *s, size_t i) {
    return run_at(s, i)->origin;
}

int32_t cw_jstr_taint(const struct cw_jstr *s) {
    if (s->len == 0) {
        return CW_JTEMPLATE;
    }
    const struct cw_jrun *run = run_at(s, 0), *last = run_at(s, s->len - 1);
    while (run < last && run->origin == CW_JTEMPLATE) {
        run++;
    }
    return run->origin;
}

bool cw_jstr_is(const struct cw_jstr *s, const char *literal) {
    size_t n = strlen(literal);
    return s->len == n && memcmp(s->data, literal, n) == 0;
}

bool cw_jstr_equal(const struct cw_jstr *a, const struct cw_jstr *b) {
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

int cw_jstr_compare(const struct cw_jstr *a, const struct cw_jstr *b) {
    /* The bytes of UTF-8 sort as the code points do. */
    int order = memcmp(a->data, b->data, a->len < b->len ? a->len : b->len);
    return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
}

size_t cw_jstr_decode(const struct cw_jstr *s, size_t i, uint32_t *cp) {
    unsigned char c = (unsigned char)s->data[i];
    if (c < 0x80) {
        *cp = c;
        return 1;
    }
    int n = cw_utf8_decode(s->data + i, s->len - i, cp);
    if (n == 0) {
        *cp = 0xdc00u + c;
        return 1;
    }
    return (size_t)n;
}

size_t cw_jstr_before(const struct cw_jstr *s, size_t i) {
    uint32_t cp;
    for (size_t n = 2; n <= 4 && n <= i; n++) {
        unsigned char lead = (unsigned char)s->data[i - n];
        if (lead < 0x80) {
            break;
        }
        if (lead >= 0xc0) {
            return cw_jstr_decode(s, i - n, &cp) == n ? i - n : i - 1;
        }
    }
    return i - 1;
}

/* Are the 8 bytes at p all of one-byte characters? */
static bool all_ascii(const char *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return (word & 0x8080808080808080u) == 0;
}

size_t cw_jstr_chars(const struct cw_jstr *s) {
    size_t n = 0;
    uint32_t cp;
    for (size_t i = 0; i < s->len;) {
        if (s->len - i >= 8 && all_ascii(s->data + i)) {
            i += 8;
            n += 8;
        } else {
            i += cw_jstr_decode(s, i, &cp);
            n++;
        }
    }
    return n;
}

size_t cw_jstr_char_at(const struct cw_jstr *s, size_t n) {
    size_t i = 0;
    uint32_t cp;
    while (n > 0 && i < s->len) {
        if (n >= 8 && s->len - i >= 8 && all_ascii(s->data + i)) {
            i += 8;
            n -= 8;
        } else {
            i += cw_jstr_decode(s, i, &cp);
            n--;
        }
    }
    return i;
}

ptrdiff_t cw_jstr_find(const struct cw_jstr *s, const struct cw_jstr *needle, size_t from,
                       size_t to) {
    if (from > to || needle->len > to - from) {
        return CW_JNOWHERE;
    }
    const char *hit = memmem(s->data + from, to - from, needle->data, needle->len);
    return hit != NULL ? hit - s->data : CW_JNOWHERE;
}

ptrdiff_t cw_jstr_rfind(const struct cw_jstr *s, const struct cw_jstr *needle, size_t from,
                        size_t to) {
    if (from > to || needle->len > to - from) {
        return CW_JNOWHERE;
    }
    for (size_t i = to - needle->len + 1; i-- > from;) {
        if (memcmp(s->data + i, needle->data, needle->len) == 0) {
            return (ptrdiff_t)i;
        }
    }
    return CW_JNOWHERE;
}

struct cw_jbuild cw_jbuild_new(struct cw_jarena *a) {
    return (struct cw_jbuild){.arena = a, .max_bytes = SIZE_MAX};
}

void cw_jbuild_reserve(struct cw_jbuild *b, size_t bytes) {
    if (bytes > b->cap) {
        b->data = cw_jgrow(b->arena, b->data, b->cap, bytes);
        b->cap = bytes;
    }
}

static void add_run(struct cw_jbuild *b, int32_t origin) {
    if (b->n_runs > 0 && b->runs[b->n_runs - 1].origin == origin) {
        b->runs[b->n_runs - 1].end = b->len;
        return;
    }
    if (b->n_runs == b->cap_runs) {
        size_t cap = b->cap_runs == 0 ? 4 : b->cap_runs * 2;
        b->runs = cw_jgrow(b->arena, b->runs, b->cap_runs * sizeof *b->runs, cap * sizeof *b->runs);
        b->cap_runs = cap;
    }
    b->runs[b->n_runs++] = (struct cw_jrun){b->len, origin};
}

void cw_jbuild_add(struct cw_jbuild *b, const char *data, size_t n, int32_t origin) {
    if (n == 0) {
        return;
    }
    if (n > b->max_bytes - b->len) {
        cw_jfail(b->arena->guard, "the template writes more than %zu MiB", b->max_bytes >> 20);
    }
    if (n > b->cap - b->len) {
        size_t cap = b->cap < 32 ? 64 : b->cap * 2;
        if (cap < b->len + n) {
            cap = b->len + n;
        }
        cw_jbuild_reserve(b, cap);
    }
    memcpy(b->data + b->len, data, n);
    b->len += n;
    add_run(b, origin);
}

void cw_jbuild_puts(struct cw_jbuild *b, const char *s, int32_t origin) {
    cw_jbuild_add(b, s, strlen(s), origin);
}

void cw_jbuild_char(struct cw_jbuild *b, uint32_t cp, int32_t origin) {
    char bytes[4];
    if (cp >= 0xdc80 && cp <= 0xdcff) { /* a lone byte, see cw_jstr_decode */
        bytes[0] = (char)(cp - 0xdc00);
        cw_jbuild_add(b, bytes, 1, origin);
        return;
    }
    cw_jbuild_add(b, bytes, (size_t)cw_utf8_encode(cp, bytes), origin);
}

void cw_jbuild_slice(struct cw_jbuild *b, const struct cw_jstr *s, size_t begin, size_t end) {
    if (begin >= end) {
        return;
    }
    for (const struct cw_jrun *run = run_at(s, begin); begin < end; run++) {
        size_t stop = run->end - s->at < end ? run->end - s->at : end;
        cw_jbuild_add(b, s->data + begin, stop - begin, run->origin);
        begin = stop;
    }
}

void cw_jbuild_str(struct cw_jbuild *b, const struct cw_jstr *s) {
    cw_jbuild_slice(b, s, 0, s->len);
}

struct cw_jstr *cw_jbuild_end(struct cw_jbuild *b) {
    struct cw_jstr *s = cw_jstr_new(b->arena, b->data, b->len, &cw_jtemplate_run);
    if (b->n_runs > 0) {
        s->runs = b->runs;
        s->n_runs = b->n_runs;
    }
    return s;
}
