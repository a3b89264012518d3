/* SPDX-License-Identifier: MIT
 *
 * The rendered document: arrays that only grow, except that the unfinished rest at their ends can
 * be cut off again. Nothing here knows Markdown.
 */
#include <stdlib.h>
#include <string.h>

#include "ui/cluster.h"
#include "ui/markdown/md_internal.h"

struct md *md_create(const struct md_options *options) {
    struct md *m = cw_calloc(1, sizeof *m);
    if (options != NULL) {
        m->options = *options;
    }
    m->growing = MD_NONE;
    /* so that their data is never NULL */
    cw_buf_puts(&m->text, "");
    cw_buf_puts(&m->strings, "");
    cw_buf_puts(&m->leaf_text, "");
    cw_buf_puts(&m->line, "");
    return m;
}

void md_destroy(struct md *m) {
    if (m == NULL) {
        return;
    }
    cw_buf_free(&m->text);
    cw_buf_free(&m->strings);
    free(m->blocks.v);
    free(m->runs.v);
    free(m->places.v);
    free(m->codes.v);
    free(m->cells.v);
    free(m->rows.v);
    free(m->tables.v);
    free(m->aligns.v);
    free(m->links.v);
    cw_buf_free(&m->leaf_text);
    free(m->leaf_lines.v);
    cw_buf_free(&m->line);
    md_inline_free(m->inlines);
    free(m->lines.v);
    free(m->segments.v);
    free(m->spans.v);
    free(m);
}

struct md_mark md_mark(const struct md *m) {
    return (struct md_mark){
        .text = m->text.len,
        .strings = m->strings.len,
        .blocks = m->blocks.n,
        .runs = m->runs.n,
        .places = m->places.n,
        .codes = m->codes.n,
        .cells = m->cells.n,
        .rows = m->rows.n,
        .tables = m->tables.n,
        .aligns = m->aligns.n,
        .links = m->links.n,
    };
}

void md_cut(struct md *m, const struct md_mark *mark) {
    m->text.len = mark->text;
    m->strings.len = mark->strings;
    m->blocks.n = mark->blocks;
    m->runs.n = mark->runs;
    m->places.n = mark->places;
    m->codes.n = mark->codes;
    m->cells.n = mark->cells;
    m->rows.n = mark->rows;
    m->tables.n = mark->tables;
    m->aligns.n = mark->aligns;
    m->links.n = mark->links;
}

/* The innermost place that holds both. Parents come before their children in the array. */
static uint32_t common_place(const struct md *m, uint32_t a, uint32_t b) {
    while (a != b) {
        if (a > b) {
            a = m->places.v[a - 1].parent;
        } else {
            b = m->places.v[b - 1].parent;
        }
    }
    return a;
}

static void push_block(struct md *m, enum md_block_kind kind, uint32_t place, size_t source) {
    MD_RESERVE(m->blocks);
    m->blocks.v[m->blocks.n++] = (struct md_block){
        .kind = kind,
        .place = place,
        .begin = m->text.len,
        .end = m->text.len,
        .run = m->runs.n,
        .source = source,
    };
}

struct md_block *md_block_begin(struct md *m, enum md_block_kind kind, uint32_t place,
                                size_t source) {
    if (m->p.blank && m->blocks.n > 0) {
        uint32_t last = m->blocks.v[m->blocks.n - 1].place;
        push_block(m, MD_BLOCK_BLANK, common_place(m, last, place), source);
    }
    m->p.blank = false;
    push_block(m, kind, place, source);
    for (uint32_t at = place; at != 0; at = m->places.v[at - 1].parent) {
        struct md_place *p = &m->places.v[at - 1];
        if (p->first_block != MD_NONE) {
            break; /* then its parents have theirs too */
        }
        p->first_block = m->blocks.n - 1;
    }
    return &m->blocks.v[m->blocks.n - 1];
}

void md_block_end(struct md *m) {
    m->blocks.v[m->blocks.n - 1].end = m->text.len;
}

void md_add_run(struct md *m, size_t begin, enum md_role role, unsigned flags, uint32_t link,
                size_t source) {
    const struct md_block *block = &m->blocks.v[m->blocks.n - 1];
    if (source < block->source) {
        source = block->source;
    }
    if (m->runs.n > block->run) {
        const struct md_run *last = &m->runs.v[m->runs.n - 1];
        if (source < last->source) {
            source = last->source;
        }
        if (last->role == role && last->flags == flags && last->link == link &&
            source == last->source + (begin - last->begin)) {
            return;
        }
    }
    MD_RESERVE(m->runs);
    m->runs.v[m->runs.n++] = (struct md_run){.begin = begin,
                                             .source = source,
                                             .link = link,
                                             .role = (uint8_t)role,
                                             .flags = (uint8_t)flags};
}

void md_add_text(struct md *m, const char *s, size_t n, enum md_role role, unsigned flags,
                 uint32_t link, size_t source) {
    if (n > 0) {
        md_add_run(m, m->text.len, role, flags, link, source);
        cw_buf_add(&m->text, s, n);
    }
}

uint32_t md_add_place(struct md *m, uint32_t parent, bool quote, const char *mark) {
    MD_RESERVE(m->places);
    struct md_place *p = &m->places.v[m->places.n++];
    *p = (struct md_place){.parent = parent, .quote = quote, .first_block = MD_NONE};
    size_t n = strlen(mark);
    p->role = quote ? MD_QUOTE_BAR : MD_LIST_MARK;
    p->len = (uint8_t)(n < sizeof p->mark ? n : sizeof p->mark);
    memcpy(p->mark, mark, p->len);
    p->width = (uint8_t)(ui_text_width(p->mark, p->len, 64) + 1);
    return (uint32_t)m->places.n;
}

bool md_in_quote(const struct md *m, uint32_t place) {
    for (; place != 0; place = m->places.v[place - 1].parent) {
        if (m->places.v[place - 1].quote) {
            return true;
        }
    }
    return false;
}

size_t md_add_string(struct md *m, const char *s, size_t n) {
    size_t at = m->strings.len;
    cw_buf_add(&m->strings, s, n);
    cw_buf_putc(&m->strings, '\0');
    return at;
}

uint32_t md_add_link(struct md *m, const char *url) {
    size_t at = m->strings.len;
    if (!md_safe_url(url, strlen(url), &m->strings)) {
        m->strings.len = at;
        return 0;
    }
    cw_buf_putc(&m->strings, '\0');
    MD_RESERVE(m->links);
    m->links.v[m->links.n++] = at;
    return (uint32_t)m->links.n;
}

const char *md_link_url(const struct md *m, uint32_t link) {
    return link >= 1 && link <= m->links.n ? m->strings.data + m->links.v[link - 1] : "";
}

size_t md_n_code_blocks(const struct md *m) {
    return m->codes.n;
}

bool md_code_block(const struct md *m, size_t i, struct md_code_block *out) {
    if (i >= m->codes.n) {
        return false;
    }
    const struct md_code *c = &m->codes.v[i];
    *out = (struct md_code_block){
        .text = m->text.data + c->begin,
        .len = c->end - c->begin,
        .language = m->strings.data + c->language,
        .closed = c->closed,
    };
    return true;
}
