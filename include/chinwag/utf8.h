/* SPDX-License-Identifier: MIT
 *
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing past U+10FFFF. Pure
 * functions, any thread.
 */
#ifndef CHINWAG_UTF8_H
#define CHINWAG_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Decode one character at s[0..n), n >= 1. Returns its length 1..4 and sets *cp; for a byte that
 * starts no valid character returns 0 (consume one byte, *cp = the byte). */
int cw_utf8_decode(const char *s, size_t n, uint32_t *cp);

/* Encode cp (a scalar value, else U+FFFD is written); returns 1..4. */
int cw_utf8_encode(uint32_t cp, char out[4]);

bool cw_utf8_valid(const char *s, size_t n);

/* The length of the longest prefix of s[0..n) that does not end inside a character that further
 * bytes could still complete. A streaming writer shows that prefix and keeps the rest back. */
size_t cw_utf8_complete(const char *s, size_t n);

#endif
