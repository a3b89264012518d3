/* SPDX-License-Identifier: MIT
 *
 * Numbers, names and titles of conversations.
 */
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "chinwag/utf8.h"
#include "core/store/store_impl.h"

enum { RANDOM_BITS = 22, TITLE_LETTERS = 60 };

static const int64_t EPOCH_MS = 1577836800000; /* 2020-01-01: 63 bits then last until 2089 */

int64_t store_now_ms(void) {
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Milliseconds, then random bits: later ones are greater, and those of two programs differ. */
int64_t cw_store_new_id(struct cw_store *s) {
    uint32_t noise = 0;
    ssize_t got = getrandom(&noise, sizeof noise, 0);
    if (got < 0) {
        noise = (uint32_t)(uintptr_t)s;
    }
    int64_t ms = store_now_ms() - EPOCH_MS;
    int64_t id = (ms > 0 ? ms : 0) << RANDOM_BITS | (noise >> (32 - RANDOM_BITS));
    /* the clock may stand still or go back */
    if (id <= s->last_id) {
        id = s->last_id + 1 + (noise & 0xff);
    }
    s->last_id = id;
    return id;
}

/* Numbers of the same day begin alike; names must not, so the bits are stirred by a bijection
 * (the finaliser of MurmurHash3, A. Appleby, public domain). */
void cw_store_name(int64_t id, char out[CW_STORE_NAME]) {
    static const char letters[] = "0123456789abcdefghjkmnpqrstvwxyz"; /* Crockford's base 32 */
    uint64_t v = (uint64_t)id;
    v = (v ^ v >> 33) * 0xff51afd7ed558ccdu;
    v = (v ^ v >> 33) * 0xc4ceb9fe1a85ec53u;
    v ^= v >> 33;
    for (int i = 0; i < CW_STORE_NAME - 1; i++) {
        out[i] = letters[v >> 59];
        v <<= 5;
    }
    out[CW_STORE_NAME - 1] = '\0';
}

static bool is_blank(uint32_t cp) {
    return cp == ' ' || (cp >= '\t' && cp <= '\r') || cp == 0x85 || cp == 0xa0 || cp == 0x3000 ||
           cp == 0x2028 || cp == 0x2029;
}

void cw_store_title(const char *text, size_t n, struct cw_buf *out) {
    struct cw_buf line = {0};
    size_t letters = 0;
    size_t last_word = 0; /* length up to the end of the last whole word */
    bool gap = false;
    size_t i = 0;
    while (i < n && letters < TITLE_LETTERS) {
        uint32_t cp;
        int len = cw_utf8_decode(text + i, n - i, &cp);
        size_t step = len > 0 ? (size_t)len : 1;
        if (is_blank(cp)) {
            if (line.len > 0 && (cp == '\n' || cp == '\r')) {
                break;
            }
            gap = line.len > 0;
        } else if (line.len == 0 && (cp == '#' || cp == '>' || cp == '*' || cp == '`')) {
            /* marks of Markdown in front say nothing */
        } else {
            if (gap) {
                last_word = line.len;
                cw_buf_putc(&line, ' ');
                letters++;
                gap = false;
            }
            cw_buf_add(&line, text + i, step);
            letters++;
        }
        i += step;
    }
    bool cut = i < n && letters >= TITLE_LETTERS;
    if (cut && last_word > 0) {
        uint32_t cp;
        cw_utf8_decode(text + i, n - i, &cp);
        line.len = is_blank(cp) ? line.len : last_word;
    }
    char printable[8 * TITLE_LETTERS + 8];
    size_t len = cw_printable(printable, sizeof printable, line.data ? line.data : "", line.len);
    if (len == 0) {
        cw_buf_puts(out, "Conversation");
    } else {
        cw_buf_add(out, printable, len);
        cw_buf_puts(out, cut ? "..." : "");
    }
    cw_buf_free(&line);
}
