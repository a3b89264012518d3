/* SPDX-License-Identifier: MIT
 *
 * Ids to text, and the byte alphabet of byte-level BPE.
 *
 * A token string is one of three things: the text itself (special tokens), text with U+2581 for
 * blanks, or bytes written in the byte alphabet, in which the printable Latin-1 characters stand
 * for themselves and the other 68 bytes, in order, for U+0100 and up (Radford et al. 2019).
 */
#include "chinwag/utf8.h"
#include "tokenizer_impl.h"

static bool stands_for_itself(uint32_t c) {
    return (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xff && c != 0xad);
}

uint32_t cw_byte_to_char(uint8_t byte) {
    if (stands_for_itself(byte)) {
        return byte;
    }
    if (byte <= 0x20) {
        return 0x100u + byte;
    }
    return byte == 0xad ? 0x143u : 0x121u + (byte - 0x7fu);
}

int cw_char_to_byte(uint32_t cp) {
    if (stands_for_itself(cp)) {
        return (int)cp;
    }
    if (cp >= 0x100 && cp <= 0x120) {
        return (int)(cp - 0x100);
    }
    if (cp >= 0x121 && cp <= 0x142) {
        return (int)(cp - 0x121 + 0x7f);
    }
    return cp == 0x143 ? 0xad : -1;
}

/* What is not of the alphabet stands for itself: some vocabularies hold plain text besides. */
static void add_alphabet(struct cw_str s, struct cw_buf *out) {
    for (size_t i = 0; i < s.len;) {
        uint32_t cp = 0;
        int n = cw_utf8_decode(s.data + i, s.len - i, &cp);
        int byte = n > 0 ? cw_char_to_byte(cp) : -1;
        if (byte >= 0) {
            cw_buf_putc(out, (char)byte);
        } else {
            cw_buf_add(out, s.data + i, n > 0 ? (size_t)n : 1);
        }
        i += n > 0 ? (size_t)n : 1;
    }
}

static bool begins_with_blank(struct cw_str s) {
    return s.len >= 3 && memcmp(s.data, "\xe2\x96\x81", 3) == 0;
}

static void add_unescaped(struct cw_str s, struct cw_buf *out) {
    while (s.len > 0) {
        size_t n = begins_with_blank(s) ? 3 : 1;
        cw_buf_putc(out, n == 3 ? ' ' : *s.data);
        s.data += n;
        s.len -= n;
    }
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value of "<0xNN>", or -1. */
static int byte_value(struct cw_str s) {
    if (s.len != 6 || memcmp(s.data, "<0x", 3) != 0 || s.data[5] != '>') {
        return -1;
    }
    int high = hex_digit(s.data[3]);
    int low = hex_digit(s.data[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

void cw_tokenizer_piece(const struct cw_tokenizer *t, int32_t id, bool special, bool first,
                        struct cw_buf *out) {
    if (id < 0 || id >= t->n) {
        return;
    }
    struct cw_str s = t->text[id];
    switch (t->type[id]) {
    case TOKEN_CONTROL:
    case TOKEN_UNKNOWN:
        if (special) {
            cw_buf_add(out, s.data, s.len);
        }
        return;
    case TOKEN_USER_DEFINED:
        cw_buf_add(out, s.data, s.len);
        return;
    case TOKEN_BYTE: {
        int byte = byte_value(s);
        if (byte >= 0) {
            cw_buf_putc(out, (char)byte);
            return;
        }
        break;
    }
    default:
        break;
    }
    if (t->kind == KIND_BYTE_BPE) {
        add_alphabet(s, out);
        return;
    }
    if (first && t->add_space_prefix && begins_with_blank(s)) {
        s.data += 3;
        s.len -= 3;
    }
    add_unescaped(s, out);
}

void cw_tokenizer_decode(const struct cw_tokenizer *t, const int32_t *ids, size_t n, bool special,
                         struct cw_buf *out) {
    bool first = true;
    for (size_t i = 0; i < n; i++) {
        cw_tokenizer_piece(t, ids[i], special, first, out);
        first = first && cw_tokenizer_is_control(t, ids[i]);
    }
}
