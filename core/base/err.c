/* SPDX-License-Identifier: MIT
 * Error texts, and making foreign bytes fit for a terminal. */
#include "chinwag/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "chinwag/utf8.h"

/* Characters that command a terminal or reorder what stands around them. */
static bool is_unsafe(uint32_t cp) {
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) ||       /* C0, DEL, C1 */
           cp == 0x061c || cp == 0x200e || cp == 0x200f || /* Arabic letter, l-t-r, r-t-l marks */
           (cp >= 0x2028 && cp <= 0x202e) ||               /* separators, embeddings, overrides */
           (cp >= 0x2066 && cp <= 0x2069) ||               /* isolates */
           cp == 0xfeff;
}

size_t cw_printable(char *dst, size_t cap, const char *src, size_t n) {
    size_t len = 0;
    if (cap == 0) {
        return 0;
    }
    for (size_t i = 0; i < n;) {
        char piece[16];
        uint32_t cp;
        int used = cw_utf8_decode(src + i, n - i, &cp);
        int width;
        if (used == 0) {
            used = 1;
            width = snprintf(piece, sizeof piece, "\\x%02X", (unsigned)(unsigned char)src[i]);
        } else if (!is_unsafe(cp)) {
            memcpy(piece, src + i, (size_t)used);
            width = used;
        } else if (cp < 0x100) {
            width = snprintf(piece, sizeof piece, "\\x%02X", (unsigned)cp);
        } else {
            width = snprintf(piece, sizeof piece, "\\u{%04X}", (unsigned)cp);
        }
        if (len + (size_t)width >= cap) {
            break;
        }
        memcpy(dst + len, piece, (size_t)width);
        len += (size_t)width;
        i += (size_t)used;
    }
    dst[len] = '\0';
    return len;
}

int cw_fail(struct cw_err *err, int code, const char *fmt, ...) {
    if (err != NULL) {
        char raw[sizeof err->text];
        va_list args;
        va_start(args, fmt);
        int n = vsnprintf(raw, sizeof raw, fmt, args);
        va_end(args);
        size_t len = n < 0 ? 0 : (size_t)n < sizeof raw ? (size_t)n : sizeof raw - 1;
        if (n >= 0 && (size_t)n >= sizeof raw) {
            len = cw_utf8_complete(raw, len); /* do not leave half a character at the cut */
        }
        cw_printable(err->text, sizeof err->text, raw, len);
        err->code = code;
    }
    return code;
}

const char *cw_code_name(int code) {
    switch (code) {
    case CW_OK:
        return "no error";
    case CW_EIO:
        return "input/output error";
    case CW_ENOMEM:
        return "out of memory";
    case CW_EINVAL:
        return "invalid argument";
    case CW_EFORMAT:
        return "malformed file";
    case CW_EUNSUP:
        return "not supported";
    case CW_ECANCEL:
        return "cancelled";
    case CW_EFULL:
        return "context full";
    case CW_ENUMERIC:
        return "no usable scores";
    case CW_EBUSY:
        return "busy";
    case CW_ETEMPLATE:
        return "chat template";
    case CW_ENOENT:
        return "not found";
    case CW_EPRE:
        return "pre-tokenizer";
    default:
        return "unknown error";
    }
}
