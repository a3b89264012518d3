/* SPDX-License-Identifier: MIT
 *
 * Colouring code line by line. A small lexer driven by tables: not a parser, it knows words,
 * strings, numbers and comments. What is open at the end of a line (a comment, a string) is kept in
 * a struct of a few bytes, so a line costs its own length whatever came before. Pure.
 */
#ifndef UI_MD_HIGHLIGHT_H
#define UI_MD_HIGHLIGHT_H

#include <stddef.h>
#include <stdint.h>

#include "ui/markdown/markdown.h"

struct cw_hl_lang;

/* What a line begins in. Zero: plain code. */
struct cw_hl {
    const struct cw_hl_lang *lang; /* NULL: not coloured */
    uint8_t in;                    /* meaning is the lexer's */
    uint8_t which;                 /* of the strings or comments */
    uint16_t depth;                /* of nested comments; hashes of a raw string */
};

/* The state at the first line of a block with this language; names as people write them after a
 * fence, in any case. */
struct cw_hl cw_hl_begin(const char *name, size_t n);

/* Colour the line s[0..n), without its newline. emit is called with pieces in order, which together
 * are the whole line; a role may come several times in a row. */
typedef void cw_hl_emit(void *ctx, enum md_role role, size_t begin, size_t end);
void cw_hl_line(struct cw_hl *hl, const char *s, size_t n, cw_hl_emit *emit, void *ctx);

#endif
