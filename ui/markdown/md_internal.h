/* SPDX-License-Identifier: MIT
 *
 * What the files of the Markdown renderer share.
 *
 *   md_block.c   lines of source -> containers and leaves (the streaming part)
 *   md_leaf.c    the open leaf: its text until it is parsed, lines of code
 *   md_scan.c    what a line begins with; pure
 *   md_inline.c  the text of one closed leaf -> runs (cmark-gfm)
 *   md_link.c    safe targets; addresses in plain text
 *   md_table.c   the text of one closed table -> cells
 *   md_doc.c     the result: blocks, runs, links; only ever appended to
 *   md_layout.c  blocks -> lines of a width -> spans
 *   highlight.c  lines of code -> runs; lang_*.c: its tables
 *
 * The document is a few arrays. Everything shown lies in `text`; runs give each byte of it a role;
 * blocks are ranges of it with a kind. The unfinished rest of the message is appended to the same
 * arrays as if it were closed, and cut off again before anything is added (struct md_mark).
 */
#ifndef UI_MD_INTERNAL_H
#define UI_MD_INTERNAL_H

#include "ui/markdown/highlight.h"
#include "ui/markdown/markdown.h"

#define MD_NONE SIZE_MAX

/* A growable array of `type`. Zero-initialise. */
#define MD_LIST(type)                                                                              \
    struct {                                                                                       \
        type *v;                                                                                   \
        size_t n, cap;                                                                             \
    }
/* Room for one more; returns nothing, list.v[list.n] may be written after. */
#define MD_RESERVE(list)                                                                           \
    do {                                                                                           \
        if ((list).n == (list).cap) {                                                              \
            (list).cap = (list).cap ? 2 * (list).cap : 16;                                         \
            (list).v = cw_reallocarray((list).v, (list).cap, sizeof *(list).v);                    \
        }                                                                                          \
    } while (0)

/* ---- The document. ---- */

enum md_block_kind {
    MD_BLOCK_FLOW,        /* text, wrapped between words */
    MD_BLOCK_BLANK,       /* an empty row */
    MD_BLOCK_RULE,        /* thematic break */
    MD_BLOCK_CODE_TOP,    /* upper edge of a code block */
    MD_BLOCK_CODE_LINE,   /* a line of it */
    MD_BLOCK_CODE_BOTTOM, /* lower edge */
    MD_BLOCK_TABLE,
};

struct md_block {
    enum md_block_kind kind;
    uint32_t place;    /* innermost container it stands in: index in places + 1; 0: none */
    size_t begin, end; /* of md.text */
    size_t run;        /* the first of its runs; they end where the next block's begin */
    size_t source;     /* offset in the message */
    size_t item;       /* CODE_*, TABLE: its number; FLOW: level of a heading, or 0 */
};

struct md_run {
    size_t begin; /* in md.text; ends where the next run or the block does */
    size_t source;
    uint32_t link;
    uint8_t role, flags;
};

/* A container as it is drawn: a bar, or a mark with blanks below it. */
struct md_place {
    uint32_t parent; /* index + 1; 0: none */
    bool quote;
    uint8_t role;       /* of the mark */
    uint8_t len, width; /* of the mark: bytes, columns */
    char mark[16];
    size_t first_block; /* the one beside which the mark stands; MD_NONE: none yet */
};

struct md_code {
    size_t begin, end; /* in md.text */
    size_t language;   /* in md.strings, terminated */
    bool closed;
};

enum md_align { MD_ALIGN_LEFT, MD_ALIGN_CENTER, MD_ALIGN_RIGHT };

struct md_cell {
    size_t begin, end; /* in md.text */
    int width;         /* columns of its widest line, at most MD_CELL_WIDTH_MAX */
};
enum { MD_CELL_WIDTH_MAX = 10000 };

struct md_table_row {
    size_t first; /* of md.cells */
    size_t n;
};

struct md_table {
    size_t first_row; /* of md.rows; the first one is the header */
    size_t n_rows;
    size_t first_align;     /* of md.aligns */
    size_t n_cols;          /* of the widest row */
    size_t columns, n_laid; /* of md.segments: its columns at the width laid out last */
};

/* Lengths of all arrays of the document. */
struct md_mark {
    size_t text, strings, blocks, runs, places, codes, cells, rows, tables, aligns, links;
};

/* ---- The splitter. ---- */

enum md_container_kind { MD_IN_QUOTE, MD_IN_LIST, MD_IN_ITEM };

struct md_container {
    enum md_container_kind kind;
    bool ordered;    /* LIST */
    char delim;      /* LIST: the bullet, or what follows the number */
    bool has_child;  /* ITEM */
    int indent;      /* ITEM: columns its content is indented by */
    uint32_t number; /* LIST: of the next item */
    uint32_t place;  /* QUOTE, ITEM: as in md_block; LIST: that of what it stands in */
};

enum md_leaf_kind {
    MD_LEAF_NONE,
    MD_LEAF_PARAGRAPH,
    MD_LEAF_TABLE,    /* lines are kept in md.leaf_text until it ends, as in a paragraph */
    MD_LEAF_FENCED,   /* each line is settled */
    MD_LEAF_INDENTED, /* the same */
    MD_LEAF_HTML,     /* the same */
};

struct md_leaf {
    enum md_leaf_kind kind;
    bool plain;    /* PARAGRAPH, TABLE: too long; its lines are settled as they come */
    int html;      /* HTML: which of the seven kinds */
    char fence;    /* FENCED: ` or ~ */
    int n_fence;   /* how many of it */
    int indent;    /* columns the fence was indented by */
    size_t source; /* offset of its first line */
    size_t code;   /* FENCED, INDENTED: number of the code block */
    struct cw_hl hl;
};

struct md_parser {
    struct md_container stack[MD_DEPTH_MAX];
    int depth;
    struct md_leaf leaf;
    bool blank;     /* an empty line was seen after the last block */
    bool long_line; /* the beginning of the current line has been taken already */
};

struct md_source_line {
    size_t begin;  /* in md.leaf_text */
    size_t source; /* of that byte */
};

/* ---- The lines of one width. ---- */

enum md_vline_kind {
    MD_V_TEXT,  /* [begin, end) of md.text */
    MD_V_MARK,  /* bytes [from, to) of the mark of place `begin`, where margins are too narrow */
    MD_V_TABLE, /* [begin, end) of md.segments */
    MD_V_TABLE_RULE, /* begin: where in md.text it stands */
    MD_V_BLANK,
    MD_V_RULE,
    MD_V_CODE_TOP,
    MD_V_CODE_BOTTOM,
};

struct md_vline {
    size_t block;
    size_t begin, end;
    uint8_t kind; /* enum md_vline_kind */
    uint8_t from, to;
};

/* A piece of a cell in a line, or a column. */
struct md_segment {
    size_t begin, end; /* of md.text */
    int col, width;    /* within the table */
};

struct md {
    struct md_options options;

    struct cw_buf text;
    struct cw_buf strings; /* targets of links and languages, each terminated */
    MD_LIST(struct md_block) blocks;
    MD_LIST(struct md_run) runs;
    MD_LIST(struct md_place) places;
    MD_LIST(struct md_code) codes;
    MD_LIST(struct md_cell) cells;
    MD_LIST(struct md_table_row) rows;
    MD_LIST(struct md_table) tables;
    MD_LIST(uint8_t) aligns;
    MD_LIST(size_t) links; /* offsets in strings */

    struct md_parser p;
    struct cw_buf leaf_text; /* of an open paragraph or table, containers stripped */
    MD_LIST(struct md_source_line) leaf_lines;
    struct cw_buf line; /* the line that has no newline yet */
    size_t source;      /* offset in the message of its first byte, or of what comes next of a
                           long one */
    bool after_cr;      /* a newline now belongs to the carriage return before it */
    size_t growing;     /* the block at the end that gets more text, or MD_NONE */
    struct md_inline *inlines; /* the inline parser, once needed */

    bool has_tail; /* the unfinished rest stands at the end of the arrays */
    struct md_mark tail_mark;
    size_t tail_raw;    /* the block in it to whose text more is appended, or MD_NONE */
    bool tail_leaf;     /* that is the open leaf; then */
    size_t tail_source; /* the offset of what follows the kept lines in it */
    size_t tail_growing;

    int width; /* of the lines; 0: none */
    MD_LIST(struct md_vline) lines;
    MD_LIST(struct md_segment) segments;
    size_t n_settled; /* lines */
    size_t settled_segments;
    size_t laid_block;         /* the block to go on with, */
    bool laid_inside;          /* if it is growing and was begun, */
    size_t laid_begin;         /* from where in it */
    struct {                   /* lines of the unfinished text that need not be made again: */
        struct md_block block; /* of what (all but its end counts), */
        size_t number;         /* which one it was, */
        size_t first, n;       /* where in `lines`, */
        size_t next;           /* and where in md.text it goes on */
    } raw;

    struct {                    /* what was done so far, for the tests */
        size_t parsed, wrapped; /* bytes */
        size_t most_marks;      /* in a leaf that was parsed */
    } work;

    MD_LIST(struct md_span) spans; /* of the line asked for last */
};

/* md_doc.c */
struct md_mark md_mark(const struct md *m);
void md_cut(struct md *m, const struct md_mark *mark);
/* Begin a block behind the last one, an empty row between them where the source had one. */
struct md_block *md_block_begin(struct md *m, enum md_block_kind kind, uint32_t place,
                                size_t source);
void md_block_end(struct md *m); /* the last block takes the text added since it began */
void md_add_text(struct md *m, const char *s, size_t n, enum md_role role, unsigned flags,
                 uint32_t link, size_t source);
/* Bytes from `begin` of the text have this role, up to the next run. */
void md_add_run(struct md *m, size_t begin, enum md_role role, unsigned flags, uint32_t link,
                size_t source);
uint32_t md_add_place(struct md *m, uint32_t parent, bool quote, const char *mark);
size_t md_add_string(struct md *m, const char *s, size_t n);
uint32_t md_add_link(struct md *m, const char *url); /* 0 when it is not safe */
bool md_in_quote(const struct md *m, uint32_t place);

/* md_leaf.c */
uint32_t md_here(const struct md *m); /* the place of what is added now */
bool md_on_top(const struct md *m, enum md_container_kind kind);
void md_leaf_clear(struct md *m);
/* A line of the open paragraph or table; `cut`: more of it will follow. */
void md_leaf_line(struct md *m, const char *s, size_t n, size_t source, bool cut);
void md_leaf_keep(struct md *m, const char *s, size_t n, size_t source);
/* More of a leaf whose lines are settled as they come. */
void md_leaf_grow(struct md *m, const char *s, size_t n, size_t source);
/* The first n kept lines as a paragraph (level 0) or a heading. */
void md_leaf_settle(struct md *m, size_t n, int level);
void md_leaf_to_table(struct md *m); /* the last kept line turns out to be a header */

void md_code_open(struct md *m, enum md_leaf_kind kind, const char *language, size_t n,
                  size_t source);
/* A line of the open code block, `blanks` of a tab in front; without its end. */
void md_code_line(struct md *m, int blanks, const char *s, size_t n, size_t source, bool coloured);
void md_code_end_line(struct md *m);
void md_code_kept(struct md *m); /* empty lines that were kept back, as code follows them */
void md_code_bottom(struct md *m);

/* md_block.c */
void md_drop_tail(struct md *m);
void md_build_tail(struct md *m);

/* md_inline.c */
struct md_inline;
void md_inline_free(struct md_inline *in);
/* Add s[0..n) to the text as inline content. `lines` say where its lines come from. */
void md_add_inline(struct md *m, const char *s, size_t n, enum md_role role,
                   const struct md_source_line *lines, size_t n_lines);

/* md_link.c */
/* Write a safe form of url[0..n) to out; false: there is none, the link must not be followed. */
bool md_safe_url(const char *url, size_t n, struct cw_buf *out);
/* The bytes of the web address that begins at s[at], 0 if none does. */
size_t md_autolink(const char *s, size_t n, size_t at);

/* md_table.c */
/* The number of columns when s[0..n) is a delimiter row, else 0. */
size_t md_delimiter_row(const char *s, size_t n);
size_t md_count_cells(const char *s, size_t n);
/* A table of the lines of leaf_text, which ends here. */
void md_add_table(struct md *m, uint32_t place, size_t source);

#endif
