/* SPDX-License-Identifier: MIT
 * UTF-8, strict. The ranges are those of table 3-7 of the Unicode standard. */
#include "chinwag/utf8.h"

/* How long a character that begins with `lead` is, and the range its second byte must lie in;
 * 0 for a byte that begins none. */
static int lead_length(unsigned char lead, unsigned char *lo, unsigned char *hi) {
    *lo = 0x80;
    *hi = 0xbf;
    if (lead < 0x80) {
        return 1;
    }
    if (lead >= 0xc2 && lead <= 0xdf) {
        return 2;
    }
    if (lead >= 0xe0 && lead <= 0xef) {
        if (lead == 0xe0) {
            *lo = 0xa0; /* no overlong forms */
        } else if (lead == 0xed) {
            *hi = 0x9f; /* no surrogates */
        }
        return 3;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        if (lead == 0xf0) {
            *lo = 0x90;
        } else if (lead == 0xf4) {
            *hi = 0x8f; /* nothing past U+10FFFF */
        }
        return 4;
    }
    return 0;
}

/* How many of the bytes at s[0..n) are the beginning of a character of length *len. */
static int good_bytes(const unsigned char *s, size_t n, int *len) {
    unsigned char lo, hi;
    *len = lead_length(s[0], &lo, &hi);
    if (*len <= 1) {
        return *len;
    }
    int have = 1;
    for (; have < *len && (size_t)have < n; have++) {
        if (s[have] < lo || s[have] > hi) {
            break;
        }
        lo = 0x80;
        hi = 0xbf;
    }
    return have;
}

int cw_utf8_decode(const char *s, size_t n, uint32_t *cp) {
    const unsigned char *u = (const unsigned char *)s;
    int len;
    if (good_bytes(u, n, &len) != len || len == 0) {
        *cp = u[0];
        return 0;
    }
    static const unsigned char lead_mask[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t v = u[0] & lead_mask[len];
    for (int i = 1; i < len; i++) {
        v = v << 6 | (u[i] & 0x3f);
    }
    *cp = v;
    return len;
}

int cw_utf8_encode(uint32_t cp, char out[4]) {
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) {
        cp = 0xfffd;
    }
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    int len = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (int i = len - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (cp & 0x3f));
        cp >>= 6;
    }
    static const unsigned char lead_bits[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    out[0] = (char)(lead_bits[len] | cp);
    return len;
}

bool cw_utf8_valid(const char *s, size_t n) {
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        int len = cw_utf8_decode(s + i, n - i, &cp);
        if (len == 0) {
            return false;
        }
        i += (size_t)len;
    }
    return true;
}

size_t cw_utf8_complete(const char *s, size_t n) {
    /* Only the last three bytes can be the start of a character that is not whole. */
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const unsigned char *u = (const unsigned char *)s + (n - back);
        int len;
        int have = good_bytes(u, back, &len);
        if (len > 1 && have == (int)back && have < len) {
            return n - back;
        }
        if (len != 0) {
            break; /* a character begins here and is whole, or broken for good */
        }
    }
    return n;
}
