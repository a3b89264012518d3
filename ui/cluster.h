/* SPDX-License-Identifier: MIT
 *
 * Text as a screen sees it: clusters (what a person calls a character) with a width in columns.
 *
 * Borders between clusters come from utf8proc (UAX #29); the width is what curses will believe: the
 * sum of wcwidth over the spacing characters. What must not reach a terminal never does: control
 * characters, invalid bytes and direction overrides become marks to read, format characters that
 * would only move things are left out, and unassigned characters are U+FFFD, one column wide.
 *
 * Needs LC_CTYPE in a UTF-8 locale (wcwidth). Pure otherwise.
 */
#ifndef UI_CLUSTER_H
#define UI_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    UI_CLUSTER_BYTES = 36,  /* text of one cluster at most; further marks are not drawn */
    UI_CLUSTER_COLUMNS = 8, /* a longer one is cut between spacing characters */
};

struct ui_cluster {
    size_t bytes; /* of the source, at least 1 */
    int width;    /* columns, 0 .. UI_CLUSTER_COLUMNS; 0: nothing to draw */
    bool joined;  /* terminals disagree about its width */
    bool mark;    /* the text stands for something that is not drawn as it is */
    uint8_t len;
    char text[UI_CLUSTER_BYTES]; /* what to draw: printable, valid UTF-8, not terminated */
};

/* The first cluster of s[0..n), n >= 1. Newlines and tabs are control characters here: who lays
 * out text takes them out first. Costs a bounded number of steps whatever the text. */
void ui_cluster_next(const char *s, size_t n, struct ui_cluster *out);

/* Columns of s[0..n) on one line, at most `max` (then the text is wider). */
int ui_text_width(const char *s, size_t n, int max);

/* The cluster border at or before (after) byte `at` of s[0..n). Only the line that holds `at` is
 * looked at. */
size_t ui_cluster_floor(const char *s, size_t n, size_t at);
size_t ui_cluster_ceil(const char *s, size_t n, size_t at);

/* The border before (after) the cluster border `at`; 0 (n) at the ends. */
size_t ui_cluster_before(const char *s, size_t n, size_t at);
size_t ui_cluster_after(const char *s, size_t n, size_t at);

#endif
