/* SPDX-License-Identifier: MIT
 *
 * Targets of links. The text comes from a language model that may have read anything, and a
 * terminal hands what is clicked to the desktop; so only schemes that open a page or a letter pass,
 * and only as printable ASCII, so that a target can never end its escape sequence early.
 */
#include <string.h>
#include <strings.h>

#include "ui/markdown/md_internal.h"

enum { MAX_URL = 2048 }; /* terminals refuse longer ones */

static bool starts(const char *s, size_t n, const char *prefix) {
    size_t len = strlen(prefix);
    return n >= len && strncasecmp(s, prefix, len) == 0;
}

static bool is_alnum(unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool md_safe_url(const char *url, size_t n, struct cw_buf *out) {
    static const char hex[] = "0123456789ABCDEF";
    size_t host;
    if (starts(url, n, "http://")) {
        host = 7;
    } else if (starts(url, n, "https://")) {
        host = 8;
    } else if (starts(url, n, "mailto:")) {
        host = 7;
    } else {
        return false;
    }
    if (host == n || url[host] == '/' || n > MAX_URL) {
        return false;
    }
    size_t begin = out->len;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)url[i];
        if (c < 0x20 || c == 0x7f ||
            (c == 0xc2 && i + 1 < n && (unsigned char)url[i + 1] >= 0x80 &&
             (unsigned char)url[i + 1] < 0xa0)) {
            return false;
        }
        if (c >= 0x80 || c == ' ' || memchr("\"<>\\^`{|}", c, 9) != NULL) {
            char escaped[3] = {'%', hex[c >> 4], hex[c & 15]};
            cw_buf_add(out, escaped, 3);
        } else {
            cw_buf_putc(out, (char)c);
        }
    }
    return out->len - begin <= MAX_URL;
}

/* The end of the host name that begins at s[at], or 0: letters, digits and marks between full
 * stops, no '_' in the last two parts; `dotted`: two parts at least. */
static size_t host_end(const char *s, size_t n, size_t at, bool dotted) {
    size_t i = at;
    int dots = 0;
    bool mark = false, mark_before = false; /* a '_' in the last part, in the one before */
    for (; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '_') {
            mark = true;
        } else if (c == '.') {
            mark_before = mark;
            mark = false;
            dots++;
        } else if (!is_alnum(c) && c != '-' && c < 0x80) {
            break;
        }
    }
    return i == at || mark || mark_before || (dotted && dots == 0) ? 0 : i;
}

/* Punctuation that ends a sentence rather than an address is not part of it. */
static size_t trim_end(const char *s, size_t begin, size_t end) {
    size_t open = 0, close = 0;
    for (size_t i = begin; i < end; i++) {
        open += s[i] == '(';
        close += s[i] == ')';
    }
    while (end > begin) {
        char c = s[end - 1];
        if (memchr("?!.,:*_~'\"", c, 10) != NULL) {
            end--;
        } else if (c == ')' && close > open) {
            close--;
            end--;
        } else if (c == ';') {
            size_t name = end - 1;
            while (name > begin && is_alnum((unsigned char)s[name - 1])) {
                name--;
            }
            bool entity = name > begin && name < end - 1 && s[name - 1] == '&';
            end = entity ? name - 1 : end - 1;
        } else {
            break;
        }
    }
    return end;
}

size_t md_autolink(const char *s, size_t n, size_t at) {
    unsigned char before = at > 0 ? (unsigned char)s[at - 1] : ' ';
    size_t host;
    bool www = false;
    if (starts(s + at, n - at, "http://")) {
        host = at + 7;
    } else if (starts(s + at, n - at, "https://")) {
        host = at + 8;
    } else if (starts(s + at, n - at, "www.")) {
        host = at;
        www = true;
    } else {
        return 0;
    }
    if (www ? memchr(" \t\n\v\f\r*_~(", before, 10) == NULL : is_alnum(before)) {
        return 0;
    }
    size_t end = host_end(s, n, host, www);
    if (end == 0) {
        return 0;
    }
    while (end < n && (unsigned char)s[end] > 0x20 && s[end] != 0x7f && s[end] != '<') {
        end++;
    }
    end = trim_end(s, at, end);
    return end > host ? end - at : 0;
}
