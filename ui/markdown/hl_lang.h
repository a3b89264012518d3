/* SPDX-License-Identifier: MIT
 *
 * What a language is to the highlighter: a row of tables for the common lexer, or a line function
 * of its own for languages that are not made of words.
 */
#ifndef UI_MD_HL_LANG_H
#define UI_MD_HL_LANG_H

#include <stdbool.h>

#include "ui/markdown/highlight.h"

/* Sorted by byte value, so that a word is found by halving; folded ones in lower case. */
struct cw_hl_words {
    const char *const *v;
    size_t n;
};
#define CW_HL_WORDS(array)                                                                         \
    { array, sizeof(array) / sizeof((array)[0]) }

struct cw_hl_string {
    const char *open, *close;
    char escape;    /* takes the next byte with it; 0: none. A doubled quote needs none */
    bool multiline; /* goes on in the next line; else it ends with its own */
};

/* Peculiarities of a language. */
enum {
    CW_HL_FOLD = 1,        /* words in any case */
    CW_HL_CALLS = 2,       /* a word before '(' is a function */
    CW_HL_DIRECTIVES = 4,  /* #word at the beginning of a line */
    CW_HL_DECORATORS = 8,  /* @word */
    CW_HL_VARIABLES = 16,  /* $word, ${...} */
    CW_HL_RUST = 32,       /* r#"..."#, 'lifetime, name!, #[...] */
    CW_HL_PREFIXES = 64,   /* a word of up to three letters before a quote belongs to the string */
    CW_HL_KEYS = 128,      /* a string before ':' is a key */
    CW_HL_HASH_APART = 256 /* '#' begins a comment only at the beginning of a word */
};

struct cw_hl_code {
    struct cw_hl_words keywords, types, constants;
    enum md_role types_role; /* 0: MD_TYPE */
    const char *comments[2]; /* to the end of the line */
    const char *comment_open, *comment_close;
    bool comments_nest;
    struct cw_hl_string strings[5]; /* the longest opening first */
    const char *letters;            /* of words, besides A-Z a-z 0-9 _ and non-ASCII */
    unsigned flags;
};

typedef void cw_hl_line_fn(struct cw_hl *hl, const char *s, size_t n, cw_hl_emit *emit, void *ctx);

struct cw_hl_lang {
    const char *names; /* "c h", in lower case, with a blank between */
    const struct cw_hl_code *code;
    cw_hl_line_fn *line; /* instead of code */
};

/* lang_c.c, lang_script.c */
extern const struct cw_hl_code cw_hl_c, cw_hl_cpp, cw_hl_java, cw_hl_go, cw_hl_rust, cw_hl_js,
    cw_hl_ts;
extern const struct cw_hl_code cw_hl_python, cw_hl_shell, cw_hl_sql, cw_hl_json;

/* lang_markup.c */
cw_hl_line_fn cw_hl_html, cw_hl_css, cw_hl_yaml, cw_hl_diff;

/* highlight.c; for the tests: every language there is, n of them. */
extern const struct cw_hl_lang cw_hl_langs[];
extern const size_t cw_hl_n_langs;

/* The bytes of the number that s[0..n) begins with, n >= 1. */
size_t cw_hl_number(const char *s, size_t n);

#endif
