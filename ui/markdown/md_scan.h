/* SPDX-License-Identifier: MIT
 *
 * What a line of Markdown begins with (CommonMark 0.29, sections 4 and 5). A cursor walks over the
 * line in columns, since tabs count as blanks up to the next multiple of four. Pure.
 */
#ifndef UI_MD_SCAN_H
#define UI_MD_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct md_cursor {
    const char *s; /* the line, without its newline */
    size_t n;
    size_t at; /* the next byte */
    int col;   /* its column */
    int tab;   /* blanks left of the tab at `at`, when some of it is used up; else 0 */

    /* as of the last md_look */
    size_t first; /* the first byte that is no blank, n if there is none */
    int indent;   /* columns up to there */
    bool blank;   /* nothing but blanks is left */
};

void md_look(struct md_cursor *c);
void md_skip_columns(struct md_cursor *c, int columns); /* blanks only, at most so many */
void md_skip_indent(struct md_cursor *c);               /* to `first` */
void md_skip_bytes(struct md_cursor *c, size_t n);      /* no tabs among them */

/* All that follow look at s[0..n), the line from its first byte that is no blank. */

bool md_is_rule(const char *s, size_t n);
int md_setext_level(const char *s, size_t n); /* 1, 2; 0: no underline */

/* The level of an ATX heading and where its text lies; 0: none. */
int md_atx(const char *s, size_t n, size_t *begin, size_t *end);

/* The length of an opening fence, 0 if there is none. */
int md_fence_open(const char *s, size_t n);
bool md_fence_close(const char *s, size_t n, char fence, int n_fence);
/* The first word of an info string; *n = 0: none. */
const char *md_info_word(const char *s, size_t n, size_t *len);

struct md_bullet {
    bool ordered;
    char delim;      /* the bullet, or what follows the number */
    uint32_t number; /* of an ordered one */
    size_t bytes;
    bool empty; /* nothing but blanks follows */
};
bool md_list_marker(const char *s, size_t n, struct md_bullet *out);

/* Kinds 1 to 7 of HTML blocks; 0: none. */
int md_html_open(const char *s, size_t n, bool in_paragraph);
bool md_html_close(const char *s, size_t n,
                   int kind); /* kinds 1 to 5; 6 and 7 end at an empty line */

#endif
