/* SPDX-License-Identifier: MIT
 *
 * Markdown that is rendered while it is still being written.
 *
 * Text of one message goes in as it comes; lines for a given width come out. A line is settled as
 * soon as the construct it belongs to is closed: a line of a code block at its newline, a heading,
 * a list item or a paragraph when it ends, a table when it ends. Settled lines never change any
 * more (until the width does). What follows them is the unfinished rest, shown as it was written.
 *
 * The dialect is GitHub's, with these differences, all of them so that text can be shown for good
 * while the rest is unknown: reference definitions ("[a]: url") are text; a line, paragraph or
 * table of more than MD_LEAF_MAX bytes, or of hundreds of marks and little else, is plain text;
 * containers nest to MD_DEPTH_MAX levels; cells beyond the columns of a table's header are kept; a
 * newline in a paragraph stays one, unless md_options.join_lines asks otherwise.
 *
 * Bytes of the text pass through unchanged, control characters and invalid ones too: whoever draws
 * must make them harmless, as ui/cluster.h does. Time and memory are linear in the text, whatever
 * it is. Pure, main thread (the inline parser keeps tables of its own).
 *
 * Order of calls: md_append as often as text comes, md_finish when it is complete; at any time
 * md_layout, and after it md_line and the other questions.
 */
#ifndef UI_MARKDOWN_H
#define UI_MARKDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "chinwag/mem.h"

enum {
    MD_LEAF_MAX = 16384, /* bytes of a paragraph, heading, table or line that is parsed */
    MD_DEPTH_MAX = 32,   /* containers inside each other; a list and its item are two */
};

/* What a run of text is. How that looks is the theme's business. */
enum md_role {
    MD_TEXT,
    MD_QUOTE, /* text inside a quote */
    MD_RAW,   /* not closed yet, shown as it was written */
    MD_HEADING1,
    MD_HEADING2,
    MD_HEADING3,
    MD_HEADING4,
    MD_HEADING5,
    MD_HEADING6,
    MD_CODE, /* a code span */
    MD_LINK,
    MD_LINK_URL, /* the target behind a link, with md_options.show_urls */
    MD_IMAGE,    /* its alternative text */
    MD_HTML,     /* tags, shown as they are */
    MD_LIST_MARK,
    MD_TASK_OPEN, /* the box of a task */
    MD_TASK_DONE,
    MD_QUOTE_BAR,
    MD_RULE,
    MD_TABLE_HEAD,
    MD_TABLE_CELL,
    MD_TABLE_RULE,
    MD_CODE_BOX,  /* the frame of a code block */
    MD_CODE_LANG, /* the language in its frame */
    MD_CODE_TEXT, /* code of no other role below */
    MD_KEYWORD,
    MD_TYPE,
    MD_CONSTANT, /* true, null, NULL */
    MD_STRING,
    MD_NUMBER,
    MD_COMMENT,
    MD_FUNCTION,
    MD_VARIABLE,
    MD_PREPROC, /* #include, @decorator, #[attribute] */
    MD_KEY,     /* of an object, a mapping, a declaration, an attribute */
    MD_TAG,
    MD_DIFF_ADD,
    MD_DIFF_DEL,
    MD_DIFF_HUNK,
    MD_N_ROLES
};

/* On top of any role. */
enum { MD_STRONG = 1, MD_EMPH = 2, MD_STRIKE = 4 };

struct md_options {
    bool join_lines; /* a newline inside a paragraph becomes a blank */
    bool show_urls;  /* " (target)" after a link whose text is not its target */
};

/* A piece of a line, all of one role. `text` holds neither newline nor tab; it is the document's
 * and lives until the document changes. Columns between spans are blank. */
struct md_span {
    int col; /* where it begins; what stands before it may be drawn wider or narrower */
    enum md_role role;
    unsigned flags; /* MD_STRONG ... */
    uint32_t link;  /* of md_link_url; 0: none */
    const char *text;
    size_t len;
    size_t source; /* offset in the message of its first byte; an escape or an entity may stand for
                    * a byte of it. SIZE_MAX: it does not come from there */
};

struct md_line {
    const struct md_span *spans; /* valid until the next call */
    size_t n_spans;
    size_t source;     /* offset in the message of what the line begins with */
    size_t code_block; /* 1 + its number when the line shows code; else 0 */
};

/* The text of a code block without frame and wraps, each line ended by a newline. Valid until the
 * document changes. */
struct md_code_block {
    const char *text;
    size_t len;
    const char *language; /* first word of the info string, terminated; "" */
    bool closed;          /* false: more may come */
};

struct md;

struct md *md_create(const struct md_options *options); /* NULL: all off */
void md_destroy(struct md *m);                          /* NULL is fine */

void md_append(struct md *m, const char *text, size_t n);
/* The message is complete: everything is closed and settled. Text appended later begins a new
 * document below. */
void md_finish(struct md *m);

/* Bring the lines up to date for `width` columns (at least 1). Needed after md_append, md_finish
 * and for another width; costs what is new, or everything for a new width. */
void md_layout(struct md *m, int width);
size_t md_n_lines(const struct md *m);
size_t md_n_settled(const struct md *m); /* lines [0, n) stay as they are at this width */
void md_line(struct md *m, size_t i, struct md_line *out); /* i < md_n_lines */
size_t md_line_source(const struct md *m, size_t i);       /* never falls from line to line */
size_t md_line_code(const struct md *m, size_t i);         /* code_block of that line */
/* Bytes parsed and wrapped so far, those done over included: what tests of long texts look at. */
size_t md_work(const struct md *m);

/* The target of a link: http, https or mailto, printable ASCII only. */
const char *md_link_url(const struct md *m, uint32_t link);

/* Closed and unfinished code blocks, in order of appearance, after md_layout. */
size_t md_n_code_blocks(const struct md *m);
bool md_code_block(const struct md *m, size_t i, struct md_code_block *out);

#endif
