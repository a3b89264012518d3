/* SPDX-License-Identifier: MIT
 *
 * The open leaf: lines of a paragraph or table are kept until it is closed, then parsed once; lines
 * of code are settled as they come; a paragraph or table that grows too long is settled as it is,
 * and what follows is added to it.
 */
#include <string.h>

#include "ui/markdown/md_internal.h"

uint32_t md_here(const struct md *m) {
    return m->p.depth > 0 ? m->p.stack[m->p.depth - 1].place : 0;
}

bool md_on_top(const struct md *m, enum md_container_kind kind) {
    return m->p.depth > 0 && m->p.stack[m->p.depth - 1].kind == kind;
}

static enum md_role base_role(const struct md *m) {
    return md_in_quote(m, md_here(m)) ? MD_QUOTE : MD_TEXT;
}

/* ---- The text of an open paragraph or table. ---- */

void md_leaf_clear(struct md *m) {
    m->p.leaf = (struct md_leaf){.kind = MD_LEAF_NONE};
    cw_buf_clear(&m->leaf_text);
    m->leaf_lines.n = 0;
    m->growing = MD_NONE;
}

void md_leaf_keep(struct md *m, const char *s, size_t n, size_t source) {
    if (m->leaf_lines.n > 0) {
        cw_buf_putc(&m->leaf_text, '\n');
    }
    MD_RESERVE(m->leaf_lines);
    m->leaf_lines.v[m->leaf_lines.n++] = (struct md_source_line){m->leaf_text.len, source};
    cw_buf_add(&m->leaf_text, s, n);
}

static size_t kept_end(const struct md *m, size_t i) {
    return i + 1 < m->leaf_lines.n ? m->leaf_lines.v[i + 1].begin - 1 : m->leaf_text.len;
}

/* The kept lines as they were written, into the last block. */
static void add_kept(struct md *m, enum md_role role) {
    for (size_t i = 0; i < m->leaf_lines.n; i++) {
        const struct md_source_line *line = &m->leaf_lines.v[i];
        if (i > 0) {
            md_add_text(m, "\n", 1, role, 0, 0, line->source - 1);
        }
        md_add_text(m, m->leaf_text.data + line->begin, kept_end(m, i) - line->begin, role, 0, 0,
                    line->source);
    }
}

void md_leaf_grow(struct md *m, const char *s, size_t n, size_t source) {
    enum md_role role = base_role(m);
    switch (m->p.leaf.kind) {
    case MD_LEAF_FENCED:
    case MD_LEAF_INDENTED:
        role = MD_CODE_TEXT;
        break;
    case MD_LEAF_HTML:
        role = MD_HTML;
        break;
    default:
        break;
    }
    md_add_text(m, s, n, role, 0, 0, source);
    md_block_end(m);
}

void md_leaf_line(struct md *m, const char *s, size_t n, size_t source, bool cut) {
    struct md_leaf *leaf = &m->p.leaf;
    if (!leaf->plain && !cut && m->leaf_text.len + 1 + n <= MD_LEAF_MAX) {
        md_leaf_keep(m, s, n, source);
        return;
    }
    if (!leaf->plain) {
        md_block_begin(m, MD_BLOCK_FLOW, md_here(m), leaf->source);
        add_kept(m, base_role(m));
        md_block_end(m);
        cw_buf_clear(&m->leaf_text);
        m->leaf_lines.n = 0;
        leaf->plain = true;
        m->growing = m->blocks.n - 1;
    }
    const struct md_block *block = &m->blocks.v[m->growing];
    if (block->end > block->begin) {
        md_leaf_grow(m, "\n", 1, source - 1);
    }
    md_leaf_grow(m, s, n, source);
}

/* "[ ] " or "[x] " in front of an item's first paragraph becomes its mark. Returns its bytes. */
static size_t take_task(struct md *m) {
    const char *s = m->leaf_text.data;
    size_t n = m->leaf_text.len;
    if (!md_on_top(m, MD_IN_ITEM) || n < 3 || s[0] != '[' || s[2] != ']' ||
        (s[1] != ' ' && s[1] != 'x' && s[1] != 'X') ||
        (n > 3 && s[3] != ' ' && s[3] != '\t' && s[3] != '\n')) {
        return 0;
    }
    struct md_place *place = &m->places.v[md_here(m) - 1];
    if (place->first_block != MD_NONE) {
        return 0;
    }
    bool numbered = place->mark[0] >= '0' && place->mark[0] <= '9';
    if (numbered) {
        place->mark[place->len++] = ' ';
        place->width++;
    } else {
        place->len = 0;
        place->width = 1;
    }
    memcpy(place->mark + place->len, s[1] == ' ' ? "\xe2\x98\x90" : "\xe2\x98\x91", 3);
    place->len = (uint8_t)(place->len + 3);
    place->width++;
    place->role = s[1] == ' ' ? MD_TASK_OPEN : MD_TASK_DONE;
    size_t taken = 3;
    while (taken < n && (s[taken] == ' ' || s[taken] == '\t')) {
        taken++;
    }
    return taken;
}

void md_leaf_settle(struct md *m, size_t n, int level) {
    size_t skip = level == 0 ? take_task(m) : 0;
    enum md_role role = level > 0 ? (enum md_role)(MD_HEADING1 + level - 1) : base_role(m);
    md_block_begin(m, MD_BLOCK_FLOW, md_here(m), m->p.leaf.source)->item = (size_t)level;
    m->leaf_lines.v[0].begin += skip;
    m->leaf_lines.v[0].source += skip;
    md_add_inline(m, m->leaf_text.data, kept_end(m, n - 1), role, m->leaf_lines.v, n);
    md_block_end(m);
}

void md_leaf_to_table(struct md *m) {
    size_t n = m->leaf_lines.n;
    struct md_source_line header = m->leaf_lines.v[n - 1];
    if (n > 1) {
        md_leaf_settle(m, n - 1, 0);
        size_t len = m->leaf_text.len - header.begin;
        memmove(m->leaf_text.data, m->leaf_text.data + header.begin, len + 1);
        m->leaf_text.len = len;
        m->leaf_lines.v[0] = (struct md_source_line){0, header.source};
        m->leaf_lines.n = 1;
    }
    m->p.leaf.kind = MD_LEAF_TABLE;
    m->p.leaf.source = header.source;
}

/* ---- Code. ---- */

struct colouring {
    struct md *m;
    size_t begin; /* of the line in md.text */
    size_t source;
};

static void colour(void *arg, enum md_role role, size_t begin, size_t end) {
    const struct colouring *c = arg;
    if (end > begin) {
        md_add_run(c->m, c->begin + begin, role, 0, 0, c->source + begin);
    }
}

void md_code_line(struct md *m, int blanks, const char *s, size_t n, size_t source, bool coloured) {
    md_block_begin(m, MD_BLOCK_CODE_LINE, md_here(m), source)->item = m->p.leaf.code;
    struct colouring c = {m, m->text.len, source};
    cw_buf_add(&m->text, "   ", (size_t)blanks);
    cw_buf_add(&m->text, s, n);
    size_t len = m->text.len - c.begin;
    if (coloured) {
        /* the lexer reads the text where it lies: runs are added, text is not */
        cw_hl_line(&m->p.leaf.hl, m->text.data + c.begin, len, colour, &c);
    } else if (len > 0) {
        md_add_run(m, c.begin, MD_CODE_TEXT, 0, 0, source);
    }
    md_block_end(m);
    m->codes.v[m->p.leaf.code].end = m->text.len;
}

void md_code_end_line(struct md *m) {
    cw_buf_putc(&m->text, '\n');
    m->codes.v[m->p.leaf.code].end = m->text.len;
    m->growing = MD_NONE;
}

void md_code_open(struct md *m, enum md_leaf_kind kind, const char *language, size_t n,
                  size_t source) {
    md_block_begin(m, MD_BLOCK_CODE_TOP, md_here(m), source)->item = m->codes.n;
    MD_RESERVE(m->codes);
    m->codes.v[m->codes.n++] = (struct md_code){
        .begin = m->text.len, .end = m->text.len, .language = md_add_string(m, language, n)};
    m->p.leaf = (struct md_leaf){
        .kind = kind, .source = source, .code = m->codes.n - 1, .hl = cw_hl_begin(language, n)};
}

void md_code_bottom(struct md *m) {
    md_block_begin(m, MD_BLOCK_CODE_BOTTOM, md_here(m), m->source)->item = m->p.leaf.code;
}

/* An indented block keeps empty lines back: they belong to it only if code follows. */
void md_code_kept(struct md *m) {
    for (size_t i = 0; i < m->leaf_lines.n; i++) {
        const struct md_source_line *line = &m->leaf_lines.v[i];
        md_code_line(m, 0, m->leaf_text.data + line->begin, kept_end(m, i) - line->begin,
                     line->source, true);
        md_code_end_line(m);
    }
}
