/* SPDX-License-Identifier: MIT
 *
 * Operating system commands, as xterm and its descendants know them: OSC 2 (title), OSC 8 (links),
 * OSC 9 (notification, from iTerm2), OSC 52 (clipboard).
 */
#include "ui/osc.h"

#include <string.h>
#include <strings.h>

#include "chinwag/utf8.h"

#define OSC "\033]"
#define ST  "\033\\"

enum { SCREEN_CHUNK = 240 }; /* GNU screen's own limit is 256 in old versions */

enum ui_mux ui_osc_mux(const char *tmux, const char *sty, const char *term) {
    if (tmux != NULL && tmux[0] != '\0') {
        return UI_MUX_TMUX;
    }
    bool screen = term != NULL && strncmp(term, "screen", 6) == 0;
    return screen && sty != NULL && sty[0] != '\0' ? UI_MUX_SCREEN : UI_MUX_NONE;
}

bool ui_osc_known(const char *term) {
    static const char *const without[] = {"linux", "vt", "ansi", "cons", "dumb", "sun", "wy", "hp"};
    if (term == NULL || term[0] == '\0') {
        return false;
    }
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++) {
        if (strncmp(term, without[i], strlen(without[i])) == 0) {
            return strncmp(term, "vte", 3) == 0;
        }
    }
    return true;
}

/* A sequence for the terminal around the multiplexer. */
static void add_wrapped(struct cw_buf *out, enum ui_mux mux, const char *s, size_t n) {
    switch (mux) {
    case UI_MUX_NONE:
        cw_buf_add(out, s, n);
        break;
    case UI_MUX_TMUX:
        cw_buf_puts(out, "\033Ptmux;");
        for (size_t i = 0; i < n; i++) {
            if (s[i] == '\033') {
                cw_buf_putc(out, '\033');
            }
            cw_buf_putc(out, s[i]);
        }
        cw_buf_puts(out, ST);
        break;
    case UI_MUX_SCREEN:
        for (size_t i = 0; i < n; i += SCREEN_CHUNK) {
            cw_buf_puts(out, "\033P");
            cw_buf_add(out, s + i, n - i < SCREEN_CHUNK ? n - i : SCREEN_CHUNK);
            cw_buf_puts(out, ST);
        }
        break;
    }
}

static void add_base64(struct cw_buf *out, const char *text, size_t n) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        unsigned v = (unsigned)(unsigned char)text[i] << 16;
        v |= n - i > 1 ? (unsigned)(unsigned char)text[i + 1] << 8 : 0;
        v |= n - i > 2 ? (unsigned)(unsigned char)text[i + 2] : 0;
        cw_buf_putc(out, digits[v >> 18]);
        cw_buf_putc(out, digits[v >> 12 & 63]);
        cw_buf_putc(out, n - i > 1 ? digits[v >> 6 & 63] : '=');
        cw_buf_putc(out, n - i > 2 ? digits[v & 63] : '=');
    }
}

void ui_osc_copy(struct cw_buf *out, enum ui_mux mux, const char *text, size_t n) {
    struct cw_buf plain = {0};
    /* ended by BEL: the other terminator would end screen's wrapping */
    cw_buf_puts(&plain, OSC "52;c;");
    add_base64(&plain, text, n);
    cw_buf_putc(&plain, '\a');
    add_wrapped(out, mux, plain.data, plain.len);
    if (mux == UI_MUX_TMUX) {
        cw_buf_add(out, plain.data, plain.len);
    }
    cw_buf_free(&plain);
}

/* Printable text only, at most UI_TITLE_MAX bytes of it. */
static void add_clean(struct cw_buf *out, const char *text) {
    size_t n = strlen(text), end = out->len + UI_TITLE_MAX;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        int bytes = cw_utf8_decode(text + i, n - i, &c);
        if (bytes == 0) {
            i++;
            continue;
        }
        if (out->len + (size_t)bytes > end) {
            break;
        }
        bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
        bool moves = (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
                     (c >= 0x2066 && c <= 0x2069);
        if (c == '\n' || c == '\t') {
            cw_buf_putc(out, ' ');
        } else if (!control && !moves) {
            cw_buf_add(out, text + i, (size_t)bytes);
        }
        i += (size_t)bytes;
    }
}

void ui_osc_notify(struct cw_buf *out, enum ui_mux mux, bool known, const char *text) {
    cw_buf_putc(out, '\a');
    if (!known) {
        return;
    }
    struct cw_buf plain = {0};
    /* a blank first: digits there are commands of other kinds to some terminals */
    cw_buf_puts(&plain, OSC "9; ");
    add_clean(&plain, text);
    cw_buf_putc(&plain, '\a');
    add_wrapped(out, mux, plain.data, plain.len);
    cw_buf_free(&plain);
}

void ui_osc_title(struct cw_buf *out, const char *text) {
    cw_buf_puts(out, OSC "2;");
    add_clean(out, text);
    cw_buf_putc(out, '\a');
}

bool ui_osc_safe_link(const char *url, size_t n) {
    static const char *const schemes[] = {"http://", "https://", "mailto:"};
    if (n > UI_LINK_MAX) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (url[i] <= 0x20 || url[i] >= 0x7f) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t k = strlen(schemes[i]);
        if (n > k && strncasecmp(url, schemes[i], k) == 0) {
            return true;
        }
    }
    return false;
}

void ui_osc_link(struct cw_buf *out, const char *url, unsigned id) {
    if (url == NULL) {
        cw_buf_puts(out, OSC "8;;" ST);
    } else {
        cw_buf_printf(out, OSC "8;id=%u;%s" ST, id, url);
    }
}
