/* SPDX-License-Identifier: MIT
 *
 * Stop strings by the automaton of Knuth, Morris and Pratt (1977): after each byte `at` of a string
 * is the length of its longest prefix that the stream ends with. That is both the test for a match
 * and the number of bytes to hold back, at a constant cost a byte.
 */
#include "core/chat/stops.h"

#include <stdlib.h>
#include <string.h>

#include "chinwag/utf8.h"

struct stop {
    char *text;
    size_t len;   /* > 0 */
    size_t *fall; /* [len] for each prefix text[0..i]: its longest border */
    size_t at;
};

struct cw_filter {
    struct stop *stops;
    size_t n_stops;
    struct cw_buf held;
    bool stopped;
};

struct cw_filter *cw_filter_create(const char *const *stops, size_t n_stops) {
    struct cw_filter *f = cw_calloc(1, sizeof *f);
    f->stops = cw_calloc(n_stops, sizeof *f->stops);
    for (size_t i = 0; i < n_stops; i++) {
        size_t len = strlen(stops[i]);
        if (len == 0) {
            continue;
        }
        struct stop *s = &f->stops[f->n_stops++];
        s->text = cw_strndup(stops[i], len);
        s->len = len;
        s->fall = cw_calloc(len, sizeof *s->fall);
        for (size_t k = 1, border = 0; k < len; k++) {
            while (border > 0 && s->text[k] != s->text[border]) {
                border = s->fall[border - 1];
            }
            border += s->text[k] == s->text[border];
            s->fall[k] = border;
        }
    }
    return f;
}

void cw_filter_destroy(struct cw_filter *f) {
    if (f == NULL) {
        return;
    }
    for (size_t i = 0; i < f->n_stops; i++) {
        free(f->stops[i].text);
        free(f->stops[i].fall);
    }
    free(f->stops);
    cw_buf_free(&f->held);
    free(f);
}

/* One byte through all automata; the length of the longest stop string that ends with it, or 0. */
static size_t step(struct cw_filter *f, char c) {
    size_t found = 0;
    for (size_t i = 0; i < f->n_stops; i++) {
        struct stop *s = &f->stops[i];
        while (s->at > 0 && s->text[s->at] != c) {
            s->at = s->fall[s->at - 1];
        }
        s->at += s->text[s->at] == c;
        if (s->at == s->len) {
            found = s->len > found ? s->len : found;
            s->at = s->fall[s->at - 1];
        }
    }
    return found;
}

/* Move the first n held bytes to *out. */
static void release(struct cw_filter *f, size_t n, struct cw_buf *out) {
    if (n == 0) {
        return;
    }
    cw_buf_add(out, f->held.data, n);
    memmove(f->held.data, f->held.data + n, f->held.len - n);
    f->held.len -= n;
    f->held.data[f->held.len] = '\0';
}

bool cw_filter_feed(struct cw_filter *f, const char *bytes, size_t n, struct cw_buf *out) {
    if (f->stopped) {
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        cw_buf_putc(&f->held, bytes[i]);
        size_t found = step(f, bytes[i]);
        if (found > 0) {
            release(f, f->held.len - found, out);
            cw_buf_clear(&f->held);
            f->stopped = true;
            return true;
        }
    }
    size_t keep = 0;
    for (size_t i = 0; i < f->n_stops; i++) {
        keep = f->stops[i].at > keep ? f->stops[i].at : keep;
    }
    if (f->held.len > keep) {
        release(f, cw_utf8_complete(f->held.data, f->held.len - keep), out);
    }
    return false;
}

void cw_filter_flush(struct cw_filter *f, bool whole, struct cw_buf *out) {
    if (f->held.len > 0) {
        release(f, whole ? cw_utf8_complete(f->held.data, f->held.len) : f->held.len, out);
    }
    cw_buf_clear(&f->held);
    for (size_t i = 0; i < f->n_stops; i++) {
        f->stops[i].at = 0;
    }
}
