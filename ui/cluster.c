/* SPDX-License-Identifier: MIT
 *
 * Cluster borders by UAX #29 (utf8proc), widths by wcwidth. Everything that draws text goes through
 * ui_cluster_next, so this is the one place that decides what may reach a terminal.
 */
#include "ui/cluster.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>
#include <wchar.h>

#include "chinwag/utf8.h"

enum { MAX_SOURCE = 256 }; /* bytes of source in one cluster, so that a step is bounded */

static bool is_override(uint32_t c) {
    return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

/* Invisible characters that at best do nothing on a terminal and at worst move what follows. */
static bool is_unsent(uint32_t c) {
    return c == 0xad || c == 0x61c || c == 0x180e || c == 0x200b || c == 0x200e || c == 0x200f ||
           (c >= 0x2060 && c <= 0x2064) || (c >= 0x206a && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb);
}

/* Characters whose clusters some terminals draw wider or narrower than the sum of the parts. */
static bool is_joining(uint32_t c) {
    return c == 0x200d || c == 0xfe0e || c == 0xfe0f || c == 0x20e3 ||
           (c >= 0x1f1e6 && c <= 0x1f1ff) || (c >= 0x1f3fb && c <= 0x1f3ff) ||
           (c >= 0xe0020 && c <= 0xe007f);
}

static void set_mark(struct ui_cluster *out, size_t bytes, const char *text) {
    out->bytes = bytes;
    out->mark = true;
    out->joined = false;
    out->len = (uint8_t)strlen(text);
    out->width = out->len;
    memcpy(out->text, text, out->len);
}

static void add_char(struct ui_cluster *out, uint32_t c) {
    char utf8[4];
    int n = cw_utf8_encode(c, utf8);
    if (out->len + n <= UI_CLUSTER_BYTES) {
        memcpy(out->text + out->len, utf8, (size_t)n);
        out->len = (uint8_t)(out->len + n);
    }
}

/* True when `c` is shown as a mark of its own; then *out is that mark. */
static bool take_mark(uint32_t c, int bytes, struct ui_cluster *out) {
    char text[16];
    if (bytes == 0) {
        snprintf(text, sizeof text, "\\x%02x", (unsigned)c);
        bytes = 1;
    } else if (c < 0x20 || c == 0x7f) {
        snprintf(text, sizeof text, "^%c", (int)(c ^ 0x40));
    } else if ((c >= 0x80 && c < 0xa0) || is_override(c) || c == 0x2028 || c == 0x2029) {
        snprintf(text, sizeof text, "\\u{%x}", (unsigned)c);
    } else {
        return false;
    }
    set_mark(out, (size_t)bytes, text);
    return true;
}

void ui_cluster_next(const char *s, size_t n, struct ui_cluster *out) {
    unsigned char first = (unsigned char)s[0];
    if (first >= 0x20 && first < 0x7f && (n == 1 || (unsigned char)s[1] < 0x80)) {
        out->bytes = 1;
        out->width = 1;
        out->joined = out->mark = false;
        out->len = 1;
        out->text[0] = s[0];
        return;
    }

    uint32_t c;
    int bytes = cw_utf8_decode(s, n, &c);
    if (take_mark(c, bytes, out)) {
        return;
    }
    *out = (struct ui_cluster){.bytes = 0};
    utf8proc_int32_t state = 0;
    int n_spacing = 0;
    bool any = false;
    for (;;) {
        int width = is_unsent(c) ? 0 : wcwidth((wchar_t)c);
        if (n_spacing > 0 && out->width + (width < 0 ? 1 : width) > UI_CLUSTER_COLUMNS) {
            break;
        }
        if (width < 0) {
            width = 1;
            out->mark = true;
            add_char(out, 0xfffd);
        } else if (!is_unsent(c)) {
            if (width == 0 && !any) {
                add_char(out, ' '); /* a mark without a base stands on a blank */
                width = 1;
            }
            add_char(out, c);
        }
        any = any || !is_unsent(c);
        n_spacing += width > 0;
        out->width += width;
        out->joined = out->joined || is_joining(c);
        out->bytes += (size_t)bytes;
        if (out->bytes >= n || out->bytes >= MAX_SOURCE) {
            break;
        }
        uint32_t next;
        bytes = cw_utf8_decode(s + out->bytes, n - out->bytes, &next);
        if (bytes == 0 ||
            utf8proc_grapheme_break_stateful((utf8proc_int32_t)c, (utf8proc_int32_t)next, &state)) {
            break;
        }
        c = next;
    }
    out->joined = out->joined || n_spacing > 1;
}

int ui_text_width(const char *s, size_t n, int max) {
    int width = 0;
    struct ui_cluster c;
    for (size_t i = 0; i < n && width < max; i += c.bytes) {
        ui_cluster_next(s + i, n - i, &c);
        width += c.width;
    }
    return width < max ? width : max;
}

/* A newline is a border on both sides, so walking can begin after the last one before `at`. */
static size_t walk_start(const char *s, size_t at) {
    while (at > 0 && s[at - 1] != '\n') {
        at--;
    }
    return at;
}

size_t ui_cluster_floor(const char *s, size_t n, size_t at) {
    struct ui_cluster c;
    size_t i = walk_start(s, at);
    while (i < at) {
        ui_cluster_next(s + i, n - i, &c);
        if (i + c.bytes > at) {
            break;
        }
        i += c.bytes;
    }
    return i;
}

size_t ui_cluster_ceil(const char *s, size_t n, size_t at) {
    size_t i = ui_cluster_floor(s, n, at);
    return i == at ? at : ui_cluster_after(s, n, i);
}

size_t ui_cluster_before(const char *s, size_t n, size_t at) {
    return at == 0 ? 0 : ui_cluster_floor(s, n, at - 1);
}

size_t ui_cluster_after(const char *s, size_t n, size_t at) {
    if (at >= n) {
        return n;
    }
    struct ui_cluster c;
    ui_cluster_next(s + at, n - at, &c);
    return at + c.bytes;
}
