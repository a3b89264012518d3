/* SPDX-License-Identifier: MIT
 *
 * Template source to tokens, with the white-space rules of trim_blocks and lstrip_blocks: the
 * newline behind a block tag or comment goes, and so do the blanks between the beginning of a line
 * and such a tag; '-' in a tag strips all white space on its side, '+' keeps what would go.
 */
#ifndef CHINWAG_TEMPLATE_LEXER_H
#define CHINWAG_TEMPLATE_LEXER_H

#include "arena.h"

enum cw_jtoken_kind {
    CW_JT_END,  /* of the template */
    CW_JT_TEXT, /* between tags */
    CW_JT_OUTPUT_BEGIN,
    CW_JT_OUTPUT_END,
    CW_JT_TAG_BEGIN,
    CW_JT_TAG_END,
    CW_JT_NAME,
    CW_JT_STRING, /* data is decoded */
    CW_JT_INT,
    CW_JT_FLOAT,
    CW_JT_OP, /* data holds one or two characters */
};

struct cw_jtoken {
    enum cw_jtoken_kind kind;
    int line;
    const char *data;
    size_t len;
    int64_t i;
    double f;
};

enum { CW_JMAX_BRACKETS = 128 };

struct cw_jlexer {
    struct cw_jguard *guard;
    struct cw_jarena *arena; /* for decoded strings */
    const char *src;
    size_t len, pos;
    int line;
    enum { CW_JLEX_TEXT, CW_JLEX_OUTPUT, CW_JLEX_TAG, CW_JLEX_RAW } state;
    bool pending;                    /* a begin token waits behind the text just given */
    char brackets[CW_JMAX_BRACKETS]; /* closing ones that are due */
    int n_brackets;
};

void cw_jlex_next(struct cw_jlexer *x, struct cw_jtoken *token);

#endif
