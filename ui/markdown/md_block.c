/* SPDX-License-Identifier: MIT
 *
 * The streaming part: source lines into containers (quotes, lists, items) and leaves (paragraphs,
 * headings, code, tables, ...). A line is looked at once, when its newline has come, as CommonMark
 * describes it: which of the open containers go on, which new ones begin, and what remains is text
 * of a leaf. A closed leaf is turned into blocks of the document at once and for good.
 *
 * A line is compared with at most MD_DEPTH_MAX containers; a leaf is parsed once and is at most
 * MD_LEAF_MAX bytes long. Hence linear time.
 *
 * A line longer than MD_LEAF_MAX is decided by its first MD_LEAF_MAX + 1 bytes, which make it text
 * and nothing else; the rest goes to the block at the end as it comes, so that no piece of a
 * message waits for a newline that may never come.
 */
#include <stdio.h>
#include <string.h>

#include "ui/markdown/md_internal.h"
#include "ui/markdown/md_scan.h"

enum { PROBE_BYTES = 64 }; /* of a line, in which close_early looks for a beginning */

/* ---- Opening and closing. ---- */

static void close_leaf(struct md *m) {
    struct md_leaf *leaf = &m->p.leaf;
    bool blank = false;
    switch (leaf->kind) {
    case MD_LEAF_NONE:
        return;
    case MD_LEAF_PARAGRAPH:
        if (!leaf->plain) {
            md_leaf_settle(m, m->leaf_lines.n, 0);
        }
        break;
    case MD_LEAF_TABLE:
        if (!leaf->plain) {
            md_add_table(m, md_here(m), leaf->source);
        }
        break;
    case MD_LEAF_FENCED:
    case MD_LEAF_INDENTED:
        blank = m->leaf_lines.n > 0;
        md_code_bottom(m);
        m->codes.v[leaf->code].closed = true;
        break;
    case MD_LEAF_HTML:
        break;
    }
    md_leaf_clear(m);
    m->p.blank = m->p.blank || blank;
}

/* Close the leaf and all containers but the first `depth`. */
static void unwind(struct md *m, int depth) {
    close_leaf(m);
    for (; m->p.depth > depth; m->p.depth--) {
        uint32_t place = md_here(m);
        if (md_on_top(m, MD_IN_ITEM) && m->places.v[place - 1].first_block == MD_NONE) {
            md_block_begin(m, MD_BLOCK_FLOW, place, m->source); /* an empty item shows its mark */
        }
    }
}

/* What comes now is neither text of the open leaf nor an item of the open list. */
static void enter(struct md *m) {
    if (md_on_top(m, MD_IN_LIST)) {
        m->p.depth--;
    }
    if (md_on_top(m, MD_IN_ITEM)) {
        m->p.stack[m->p.depth - 1].has_child = true;
    }
}

static bool same_list(const struct md_container *list, const struct md_bullet *b) {
    return list->kind == MD_IN_LIST && list->ordered == b->ordered && list->delim == b->delim;
}

static void open_quote(struct md *m, struct md_cursor *c) {
    enter(m);
    md_skip_indent(c);
    md_skip_bytes(c, 1);
    md_skip_columns(c, 1);
    m->p.stack[m->p.depth] = (struct md_container){
        .kind = MD_IN_QUOTE, .place = md_add_place(m, md_here(m), true, "\xe2\x94\x82")};
    m->p.depth++;
}

static void item_mark(const struct md *m, const struct md_container *list, char mark[16]) {
    static const char *const bullets[] = {"\xe2\x80\xa2", "\xe2\x97\xa6", "\xe2\x96\xaa"};
    if (list->ordered) {
        snprintf(mark, 16, "%u%c", (unsigned)list->number, list->delim);
        return;
    }
    int level = 0;
    for (int i = 0; i + 1 < m->p.depth; i++) {
        level += m->p.stack[i].kind == MD_IN_LIST && !m->p.stack[i].ordered;
    }
    snprintf(mark, 16, "%s", bullets[level % 3]);
}

static void open_item(struct md *m, struct md_cursor *c, const struct md_bullet *b) {
    if (!md_on_top(m, MD_IN_LIST) || !same_list(&m->p.stack[m->p.depth - 1], b)) {
        enter(m);
        m->p.stack[m->p.depth] = (struct md_container){.kind = MD_IN_LIST,
                                                       .ordered = b->ordered,
                                                       .delim = b->delim,
                                                       .number = b->number,
                                                       .place = md_here(m)};
        m->p.depth++;
    }
    struct md_container *list = &m->p.stack[m->p.depth - 1];
    char mark[16];
    item_mark(m, list, mark);
    list->number++;

    int indent = c->indent + (int)b->bytes;
    md_skip_indent(c);
    md_skip_bytes(c, b->bytes);
    md_look(c);
    if (c->indent < 1 || c->indent > 4 || c->blank) {
        indent += 1;
        md_skip_columns(c, 1);
    } else {
        indent += c->indent;
        md_skip_indent(c);
    }
    m->p.stack[m->p.depth] = (struct md_container){
        .kind = MD_IN_ITEM, .indent = indent, .place = md_add_place(m, list->place, false, mark)};
    m->p.depth++;
}

/* ---- A line. ---- */

/* How many of the open containers go on in this line; the cursor ends behind their marks. */
static int match_containers(const struct md *m, struct md_cursor *c) {
    int i = 0;
    for (; i < m->p.depth; i++) {
        const struct md_container *in = &m->p.stack[i];
        if (in->kind == MD_IN_LIST) {
            continue;
        }
        md_look(c);
        if (in->kind == MD_IN_QUOTE) {
            if (c->indent > 3 || c->blank || c->s[c->first] != '>') {
                break;
            }
            md_skip_indent(c);
            md_skip_bytes(c, 1);
            md_skip_columns(c, 1);
        } else if (c->indent >= in->indent) {
            md_skip_columns(c, in->indent);
        } else if (c->blank && in->has_child) {
            md_skip_indent(c);
        } else {
            break;
        }
    }
    md_look(c);
    return i;
}

enum start_kind {
    START_NONE,
    START_QUOTE,
    START_ITEM,
    START_ATX,
    START_SETEXT,
    START_FENCE,
    START_HTML,
    START_RULE,
    START_CODE,
};

struct start {
    enum start_kind kind;
    int level;         /* ATX, SETEXT: of the heading; FENCE: length; HTML: kind */
    size_t begin, end; /* ATX: of its text, from the first byte that is no blank */
    struct md_bullet bullet;
};

/* What begins at the cursor, inside the first `depth` containers. In `paragraph`: the open one goes
 * on in this line. `lazy`: a paragraph is open. Of a `cut` line only the beginning is known. */
static struct start find_start(const struct md *m, const struct md_cursor *c, int depth,
                               bool paragraph, bool lazy, bool cut) {
    struct start st = {.kind = START_NONE};
    const char *s = c->s + c->first;
    size_t n = c->n - c->first;
    if (c->indent > 3) {
        st.kind = !lazy && (!c->blank || cut) ? START_CODE : START_NONE;
        return st;
    }
    if (c->blank) {
        return st;
    }
    const struct md_container *top = depth > 0 ? &m->p.stack[depth - 1] : NULL;
    int room = MD_DEPTH_MAX - depth + (top != NULL && top->kind == MD_IN_LIST);
    if (s[0] == '>') {
        st.kind = room > 0 ? START_QUOTE : START_NONE;
        return st;
    }
    if (!cut) {
        if ((st.level = md_atx(s, n, &st.begin, &st.end)) > 0) {
            st.kind = START_ATX;
        } else if ((st.level = md_fence_open(s, n)) > 0) {
            st.kind = START_FENCE;
        } else if ((st.level = md_html_open(s, n, paragraph)) > 0) {
            st.kind = START_HTML;
        } else if (paragraph && !m->p.leaf.plain && (st.level = md_setext_level(s, n)) > 0) {
            st.kind = START_SETEXT;
        } else if (md_is_rule(s, n)) {
            st.kind = START_RULE;
        }
        if (st.kind != START_NONE) {
            return st;
        }
    }
    if (md_list_marker(s, n, &st.bullet) &&
        !(paragraph && (st.bullet.empty || (st.bullet.ordered && st.bullet.number != 1))) &&
        room >= (top != NULL && same_list(top, &st.bullet) ? 1 : 2)) {
        st.kind = START_ITEM;
    }
    return st;
}

static void add_html_line(struct md *m, const struct md_cursor *c, bool cut) {
    md_block_begin(m, MD_BLOCK_FLOW, md_here(m), m->source + c->at);
    size_t at = c->at + (c->tab > 0);
    md_add_text(m, "   ", (size_t)c->tab, MD_HTML, 0, 0, m->source + c->at);
    md_add_text(m, c->s + at, c->n - at, MD_HTML, 0, 0, m->source + at);
    md_block_end(m);
    if (cut) {
        m->growing = m->blocks.n - 1;
    } else if (md_html_close(c->s + c->at, c->n - c->at, m->p.leaf.html)) {
        md_leaf_clear(m);
    }
}

static void add_code_line(struct md *m, const struct md_cursor *c, bool cut) {
    size_t at = c->at + (c->tab > 0);
    md_code_line(m, c->tab, c->s + at, c->n - at, m->source + at, !cut);
    if (cut) {
        m->growing = m->blocks.n - 1;
    } else {
        md_code_end_line(m);
    }
}

/* A line of an open leaf that takes all lines but the one that ends it. False: it ended before this
 * line, which is another's. */
static bool take_verbatim(struct md *m, struct md_cursor *c, bool cut) {
    const struct md_leaf *leaf = &m->p.leaf;
    switch (leaf->kind) {
    case MD_LEAF_FENCED:
        if (!cut && c->indent <= 3 &&
            md_fence_close(c->s + c->first, c->n - c->first, leaf->fence, leaf->n_fence)) {
            close_leaf(m);
            return true;
        }
        md_skip_columns(c, leaf->indent);
        add_code_line(m, c, cut);
        return true;
    case MD_LEAF_INDENTED:
        if (c->blank && !cut) {
            md_skip_columns(c, 4);
            md_leaf_keep(m, c->s + c->at, c->n - c->at, m->source + c->at);
            return true;
        }
        if (c->indent > 3) {
            md_code_kept(m);
            cw_buf_clear(&m->leaf_text);
            m->leaf_lines.n = 0;
            md_skip_columns(c, 4);
            add_code_line(m, c, cut);
            return true;
        }
        return false;
    case MD_LEAF_HTML:
        if (leaf->html >= 6 && c->blank && !cut) {
            return false;
        }
        add_html_line(m, c, cut);
        return true;
    default:
        return false;
    }
}

/* The block that begins here, which is none that holds others. */
static void open_leaf(struct md *m, struct md_cursor *c, const struct start *st, bool cut) {
    const char *s = c->s + c->first;
    size_t n = c->n - c->first;
    size_t source = m->source + c->first;
    enter(m);
    switch (st->kind) {
    case START_ATX: {
        struct md_source_line line = {0, source + st->begin};
        md_block_begin(m, MD_BLOCK_FLOW, md_here(m), source)->item = (size_t)st->level;
        md_add_inline(m, s + st->begin, st->end - st->begin,
                      (enum md_role)(MD_HEADING1 + st->level - 1), &line, 1);
        md_block_end(m);
        break;
    }
    case START_RULE:
        md_block_begin(m, MD_BLOCK_RULE, md_here(m), source);
        break;
    case START_FENCE: {
        size_t len;
        const char *word = md_info_word(s + st->level, n - (size_t)st->level, &len);
        md_code_open(m, MD_LEAF_FENCED, word, len, source);
        m->p.leaf.fence = s[0];
        m->p.leaf.n_fence = st->level;
        m->p.leaf.indent = c->indent;
        break;
    }
    case START_HTML:
        m->p.leaf = (struct md_leaf){.kind = MD_LEAF_HTML, .html = st->level, .source = source};
        add_html_line(m, c, cut);
        break;
    case START_CODE:
        md_code_open(m, MD_LEAF_INDENTED, "", 0, m->source + c->at);
        md_skip_columns(c, 4);
        add_code_line(m, c, cut);
        break;
    default:
        break;
    }
}

static void open_paragraph(struct md *m, const struct md_cursor *c, bool cut) {
    enter(m);
    m->p.leaf = (struct md_leaf){.kind = MD_LEAF_PARAGRAPH, .source = m->source + c->first};
    md_leaf_line(m, c->s + c->first, c->n - c->first, m->source + c->first, cut);
}

static bool is_table_start(const struct md *m, const struct md_cursor *c) {
    if (m->p.leaf.plain || c->indent > 3) {
        return false;
    }
    size_t n_cols = md_delimiter_row(c->s + c->first, c->n - c->first);
    size_t last = m->leaf_lines.v[m->leaf_lines.n - 1].begin;
    return n_cols > 0 &&
           md_count_cells(m->leaf_text.data + last, m->leaf_text.len - last) == n_cols;
}

/* A whole line, or with `cut` the beginning of one too long to be anything but text. */
static void take_line(struct md *m, const char *s, size_t n, bool cut) {
    struct md_cursor c = {.s = s, .n = n};
    int matched = match_containers(m, &c);
    bool all = matched == m->p.depth;
    if (all && take_verbatim(m, &c, cut)) {
        return;
    }
    enum md_leaf_kind kind = m->p.leaf.kind;
    bool empty = c.blank && !cut;
    bool paragraph = all && kind == MD_LEAF_PARAGRAPH && !empty;
    bool table = all && kind == MD_LEAF_TABLE && !empty &&
                 (cut || md_count_cells(s + c.first, n - c.first) > 0);
    bool lazy = kind == MD_LEAF_PARAGRAPH;
    bool opened = false;
    for (;;) {
        struct start st = find_start(m, &c, matched, paragraph, lazy, cut);
        if (st.kind == START_NONE) {
            break;
        }
        if (st.kind == START_SETEXT) {
            md_leaf_settle(m, m->leaf_lines.n, st.level);
            md_leaf_clear(m);
            return;
        }
        if (!opened) {
            unwind(m, matched);
            opened = true;
            paragraph = table = lazy = false;
        }
        if (st.kind == START_QUOTE) {
            open_quote(m, &c);
        } else if (st.kind == START_ITEM) {
            open_item(m, &c, &st.bullet);
        } else {
            open_leaf(m, &c, &st, cut);
            return;
        }
        matched = m->p.depth;
        md_look(&c);
    }
    empty = c.blank && !cut;

    if (paragraph && !cut && is_table_start(m, &c)) {
        md_leaf_to_table(m);
        table = true;
    }
    if (paragraph || table || (lazy && !empty)) {
        md_leaf_line(m, s + c.first, n - c.first, m->source + c.first, cut);
        return;
    }
    if (!opened) {
        unwind(m, matched);
    }
    if (!empty) {
        open_paragraph(m, &c, cut);
    } else if (!opened) {
        m->p.blank = true;
    }
}

static void end_line(struct md *m) {
    if (!m->p.long_line) {
        take_line(m, m->line.data, m->line.len, false);
        m->source += m->line.len;
        cw_buf_clear(&m->line);
        return;
    }
    if (m->p.leaf.kind == MD_LEAF_FENCED || m->p.leaf.kind == MD_LEAF_INDENTED) {
        md_code_end_line(m);
    } else if (m->p.leaf.kind == MD_LEAF_HTML) {
        m->growing = MD_NONE;
    }
    m->p.long_line = false;
}

/* More bytes of a line. */
static void take_bytes(struct md *m, const char *s, size_t n) {
    if (!m->p.long_line && m->line.len + n > MD_LEAF_MAX) {
        size_t head = MD_LEAF_MAX + 1 - m->line.len;
        cw_buf_add(&m->line, s, head);
        take_line(m, m->line.data, m->line.len, true);
        m->source += m->line.len;
        cw_buf_clear(&m->line);
        m->p.long_line = true;
        s += head;
        n -= head;
    }
    if (m->p.long_line) {
        md_leaf_grow(m, s, n, m->source);
        m->source += n;
    } else {
        cw_buf_add(&m->line, s, n);
    }
}

/* Close the paragraph or table when what is there of the next line ends it for sure, so that a list
 * item does not wait for the whole next one. */
static void close_early(struct md *m) {
    enum md_leaf_kind kind = m->p.leaf.kind;
    if (m->p.long_line || (kind != MD_LEAF_PARAGRAPH && kind != MD_LEAF_TABLE)) {
        return;
    }
    struct md_cursor c = {.s = m->line.data, .n = m->line.len};
    int matched = match_containers(m, &c);
    if (c.blank) {
        return;
    }
    bool paragraph = matched == m->p.depth && kind == MD_LEAF_PARAGRAPH;
    struct start st = find_start(m, &c, matched, paragraph, kind == MD_LEAF_PARAGRAPH, false);
    bool sure = st.kind == START_QUOTE || (st.kind == START_ITEM && !st.bullet.empty) ||
                (st.kind == START_ATX && c.n > c.first + (size_t)st.level);
    if (sure) {
        unwind(m, matched);
    }
}

void md_append(struct md *m, const char *text, size_t n) {
    if (n == 0) {
        return;
    }
    md_drop_tail(m);
    size_t pending = m->line.len;
    size_t i = 0;
    if (m->after_cr) {
        m->after_cr = false;
        if (text[0] == '\n') {
            m->source++;
            i = 1;
        }
    }
    while (i < n) {
        size_t end = i;
        while (end < n && text[end] != '\n' && text[end] != '\r') {
            end++;
        }
        if (end > i) {
            take_bytes(m, text + i, end - i);
        }
        if (end == n) {
            break;
        }
        end_line(m);
        pending = 0;
        bool cr = text[end] == '\r';
        i = end + 1;
        m->source++;
        if (cr && i < n && text[i] == '\n') {
            m->source++;
            i++;
        } else if (cr && i == n) {
            m->after_cr = true;
        }
    }
    if (m->line.len > 0 && pending < PROBE_BYTES) {
        close_early(m);
    }
}

void md_finish(struct md *m) {
    md_drop_tail(m);
    if (m->line.len > 0 || m->p.long_line) {
        end_line(m);
    }
    unwind(m, 0);
    md_inline_free(m->inlines); /* histories are long */
    m->inlines = NULL;
    m->p.blank = true;
    m->after_cr = false;
}

/* ---- The unfinished rest, for the time being. ---- */

static void add_raw(struct md *m, const struct md_cursor *c, enum md_role role) {
    md_block_begin(m, MD_BLOCK_FLOW, md_here(m), m->source + c->first);
    md_add_text(m, c->s + c->first, c->n - c->first, role, 0, 0, m->source + c->first);
    md_block_end(m);
    m->tail_raw = m->blocks.n - 1;
}

/* The open leaf in one run; where its lines come from is known as long as it is open. */
static void add_raw_leaf(struct md *m, const struct md_cursor *c) {
    md_block_begin(m, MD_BLOCK_FLOW, md_here(m), m->p.leaf.source);
    m->tail_raw = m->blocks.n - 1;
    m->tail_leaf = true;
    m->tail_source = m->source + c->first;
    md_add_text(m, m->leaf_text.data, m->leaf_text.len, MD_RAW, 0, 0, m->p.leaf.source);
    if (!c->blank) {
        cw_buf_putc(&m->text, '\n');
        cw_buf_add(&m->text, c->s + c->first, c->n - c->first);
    }
    md_block_end(m);
}

/* The beginning of a line outside of any leaf: its containers are shown where they are certain. */
static void add_raw_start(struct md *m, struct md_cursor *c, int matched) {
    unwind(m, matched);
    for (;;) {
        struct start st = find_start(m, c, m->p.depth, false, false, false);
        if (st.kind == START_QUOTE) {
            open_quote(m, c);
        } else if (st.kind == START_ITEM && !st.bullet.empty) {
            open_item(m, c, &st.bullet);
        } else {
            break;
        }
        md_look(c);
    }
    if (!c->blank) {
        enter(m);
        add_raw(m, c, MD_RAW);
    }
}

static void add_raw_code(struct md *m, struct md_cursor *c, int matched) {
    bool fenced = m->p.leaf.kind == MD_LEAF_FENCED;
    bool inside = matched == m->p.depth && (fenced || c->indent > 3);
    if (inside && c->n > 0) {
        md_skip_columns(c, fenced ? m->p.leaf.indent : 4);
        size_t at = c->at + (c->tab > 0);
        if (at < c->n) {
            if (!c->blank) {
                md_code_kept(m);
            }
            md_code_line(m, c->tab, c->s + at, c->n - at, m->source + at, false);
            m->tail_raw = m->blocks.n - 1;
        }
    }
    if (m->p.long_line) {
        m->codes.v[m->p.leaf.code].end = m->text.len;
    }
    md_code_bottom(m);
    if (!inside && !c->blank) {
        m->p.leaf.kind = MD_LEAF_NONE;
        add_raw_start(m, c, matched);
    }
}

void md_build_tail(struct md *m) {
    struct md_parser before = m->p;
    m->tail_mark = md_mark(m);
    m->tail_raw = MD_NONE;
    m->tail_leaf = false;
    m->tail_growing = m->growing;
    m->has_tail = true;

    struct md_cursor c = {.s = m->line.data, .n = m->line.len};
    int matched = match_containers(m, &c);
    switch (m->p.leaf.kind) {
    case MD_LEAF_PARAGRAPH:
    case MD_LEAF_TABLE:
        if (!m->p.leaf.plain) {
            add_raw_leaf(m, &c);
        } else if (!c.blank) {
            add_raw(m, &c, MD_RAW);
        }
        break;
    case MD_LEAF_FENCED:
    case MD_LEAF_INDENTED:
        add_raw_code(m, &c, matched);
        break;
    case MD_LEAF_HTML:
        if (!c.blank) {
            add_raw(m, &c, MD_RAW);
        }
        break;
    case MD_LEAF_NONE:
        if (!c.blank) {
            add_raw_start(m, &c, matched);
        }
        break;
    }
    m->p = before;
    m->growing = m->tail_growing;
}

void md_drop_tail(struct md *m) {
    if (!m->has_tail) {
        return;
    }
    m->has_tail = false;
    md_cut(m, &m->tail_mark);
    for (int i = 0; i < m->p.depth; i++) {
        uint32_t place = m->p.stack[i].place;
        if (place != 0 && m->places.v[place - 1].first_block >= m->blocks.n) {
            m->places.v[place - 1].first_block = MD_NONE;
        }
    }
    for (size_t i = m->codes.n; i-- > 0 && m->codes.v[i].end > m->text.len;) {
        m->codes.v[i].end = m->text.len;
    }
}
