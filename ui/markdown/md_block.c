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

enum { PROBE_BYTES = 256 };

/* The place of what is added now. */
static uint32_t here(const struct md *m) {
    return m->p.depth > 0 ? m->p.stack[m->p.depth - 1].place : 0;
}

static bool on_top(const struct md *m, enum md_container_kind kind) {
    return m->p.depth > 0 && m->p.stack[m->p.depth - 1].kind == kind;
}

static enum md_role base_role(const struct md *m) {
    return md_in_quote(m, here(m)) ? MD_QUOTE : MD_TEXT;
}

/* ---- The text of an open paragraph or table. ---- */

static void clear_leaf(struct md *m) {
    m->p.leaf = (struct md_leaf){.kind = MD_LEAF_NONE};
    cw_buf_clear(&m->leaf_text);
    m->leaf_lines.n = 0;
    m->growing = MD_NONE;
    m->leaf_serial++;
}

static void keep_line(struct md *m, const char *s, size_t n, size_t source) {
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

/* More of a leaf whose lines are settled as they come. */
static void grow(struct md *m, const char *s, size_t n, size_t source) {
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

/* A line of the open paragraph or table; `cut`: more of it will follow. */
static void add_text_line(struct md *m, const char *s, size_t n, size_t source, bool cut) {
    struct md_leaf *leaf = &m->p.leaf;
    if (!leaf->plain && !cut && m->leaf_text.len + 1 + n <= MD_LEAF_MAX) {
        keep_line(m, s, n, source);
        return;
    }
    if (!leaf->plain) {
        md_block_begin(m, MD_BLOCK_FLOW, here(m), leaf->source);
        add_kept(m, base_role(m));
        md_block_end(m);
        cw_buf_clear(&m->leaf_text);
        m->leaf_lines.n = 0;
        leaf->plain = true;
        m->growing = m->blocks.n - 1;
    }
    const struct md_block *block = &m->blocks.v[m->growing];
    if (block->end > block->begin) {
        grow(m, "\n", 1, source - 1);
    }
    grow(m, s, n, source);
}

/* "[ ] " or "[x] " in front of an item's first paragraph becomes its mark. Returns its bytes. */
static size_t take_task(struct md *m) {
    const char *s = m->leaf_text.data;
    size_t n = m->leaf_text.len;
    if (!on_top(m, MD_IN_ITEM) || n < 3 || s[0] != '[' || s[2] != ']' ||
        (s[1] != ' ' && s[1] != 'x' && s[1] != 'X') ||
        (n > 3 && s[3] != ' ' && s[3] != '\t' && s[3] != '\n')) {
        return 0;
    }
    struct md_place *place = &m->places.v[here(m) - 1];
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

/* The first n kept lines as a paragraph (level 0) or a heading. */
static void settle_text(struct md *m, size_t n, int level) {
    size_t skip = level == 0 ? take_task(m) : 0;
    enum md_role role = level > 0 ? (enum md_role)(MD_HEADING1 + level - 1) : base_role(m);
    md_block_begin(m, MD_BLOCK_FLOW, here(m), m->p.leaf.source)->item = (size_t)level;
    m->leaf_lines.v[0].begin += skip;
    m->leaf_lines.v[0].source += skip;
    md_add_inline(m, m->leaf_text.data, kept_end(m, n - 1), role, m->leaf_lines.v, n);
    md_block_end(m);
}

/* The last kept line turns out to be the header of a table. */
static void begin_table(struct md *m) {
    size_t n = m->leaf_lines.n;
    struct md_source_line header = m->leaf_lines.v[n - 1];
    if (n > 1) {
        settle_text(m, n - 1, 0);
        size_t len = m->leaf_text.len - header.begin;
        memmove(m->leaf_text.data, m->leaf_text.data + header.begin, len + 1);
        m->leaf_text.len = len;
        m->leaf_lines.v[0] = (struct md_source_line){0, header.source};
        m->leaf_lines.n = 1;
    }
    m->p.leaf.kind = MD_LEAF_TABLE;
    m->p.leaf.source = header.source;
    m->leaf_serial++;
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

/* A line of the open code block, `blanks` of a tab in front. */
static void add_code(struct md *m, int blanks, const char *s, size_t n, size_t source,
                     bool coloured) {
    md_block_begin(m, MD_BLOCK_CODE_LINE, here(m), source)->item = m->p.leaf.code;
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

static void end_code_line(struct md *m) {
    cw_buf_putc(&m->text, '\n');
    m->codes.v[m->p.leaf.code].end = m->text.len;
    m->growing = MD_NONE;
}

static void open_code(struct md *m, enum md_leaf_kind kind, const char *language, size_t n,
                      size_t source) {
    md_block_begin(m, MD_BLOCK_CODE_TOP, here(m), source)->item = m->codes.n;
    MD_RESERVE(m->codes);
    m->codes.v[m->codes.n++] = (struct md_code){
        .begin = m->text.len, .end = m->text.len, .language = md_add_string(m, language, n)};
    m->p.leaf = (struct md_leaf){
        .kind = kind, .source = source, .code = m->codes.n - 1, .hl = cw_hl_begin(language, n)};
}

static void add_code_bottom(struct md *m) {
    md_block_begin(m, MD_BLOCK_CODE_BOTTOM, here(m), m->source)->item = m->p.leaf.code;
}

/* An indented block keeps empty lines back: they belong to it only if code follows. */
static void add_kept_code(struct md *m) {
    for (size_t i = 0; i < m->leaf_lines.n; i++) {
        const struct md_source_line *line = &m->leaf_lines.v[i];
        add_code(m, 0, m->leaf_text.data + line->begin, kept_end(m, i) - line->begin, line->source,
                 true);
        end_code_line(m);
    }
}

/* ---- Opening and closing. ---- */

static void close_leaf(struct md *m) {
    struct md_leaf *leaf = &m->p.leaf;
    bool blank = false;
    switch (leaf->kind) {
    case MD_LEAF_NONE:
        return;
    case MD_LEAF_PARAGRAPH:
        if (!leaf->plain) {
            settle_text(m, m->leaf_lines.n, 0);
        }
        break;
    case MD_LEAF_TABLE:
        if (!leaf->plain) {
            md_add_table(m, here(m), leaf->source);
        }
        break;
    case MD_LEAF_FENCED:
    case MD_LEAF_INDENTED:
        blank = m->leaf_lines.n > 0;
        add_code_bottom(m);
        m->codes.v[leaf->code].closed = true;
        break;
    case MD_LEAF_HTML:
        break;
    }
    clear_leaf(m);
    m->p.blank = m->p.blank || blank;
}

/* Close the leaf and all containers but the first `depth`. */
static void unwind(struct md *m, int depth) {
    close_leaf(m);
    for (; m->p.depth > depth; m->p.depth--) {
        uint32_t place = here(m);
        if (on_top(m, MD_IN_ITEM) && m->places.v[place - 1].first_block == MD_NONE) {
            md_block_begin(m, MD_BLOCK_FLOW, place, m->source); /* an empty item shows its mark */
        }
    }
}

/* What comes now is neither text of the open leaf nor an item of the open list. */
static void enter(struct md *m) {
    if (on_top(m, MD_IN_LIST)) {
        m->p.depth--;
    }
    if (on_top(m, MD_IN_ITEM)) {
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
        .kind = MD_IN_QUOTE, .place = md_add_place(m, here(m), true, "\xe2\x94\x82")};
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
    if (!on_top(m, MD_IN_LIST) || !same_list(&m->p.stack[m->p.depth - 1], b)) {
        enter(m);
        m->p.stack[m->p.depth] = (struct md_container){.kind = MD_IN_LIST,
                                                       .ordered = b->ordered,
                                                       .delim = b->delim,
                                                       .number = b->number,
                                                       .place = here(m)};
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
    struct start st = {START_NONE};
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
    md_block_begin(m, MD_BLOCK_FLOW, here(m), m->source + c->at);
    size_t at = c->at + (c->tab > 0);
    md_add_text(m, "   ", (size_t)c->tab, MD_HTML, 0, 0, m->source + c->at);
    md_add_text(m, c->s + at, c->n - at, MD_HTML, 0, 0, m->source + at);
    md_block_end(m);
    if (cut) {
        m->growing = m->blocks.n - 1;
    } else if (md_html_close(c->s + c->at, c->n - c->at, m->p.leaf.html)) {
        clear_leaf(m);
    }
}

static void add_code_line(struct md *m, const struct md_cursor *c, bool cut) {
    size_t at = c->at + (c->tab > 0);
    add_code(m, c->tab, c->s + at, c->n - at, m->source + at, !cut);
    if (cut) {
        m->growing = m->blocks.n - 1;
    } else {
        end_code_line(m);
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
            keep_line(m, c->s + c->at, c->n - c->at, m->source + c->at);
            return true;
        }
        if (c->indent > 3) {
            add_kept_code(m);
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
        md_block_begin(m, MD_BLOCK_FLOW, here(m), source)->item = (size_t)st->level;
        md_add_inline(m, s + st->begin, st->end - st->begin,
                      (enum md_role)(MD_HEADING1 + st->level - 1), &line, 1);
        md_block_end(m);
        break;
    }
    case START_RULE:
        md_block_begin(m, MD_BLOCK_RULE, here(m), source);
        break;
    case START_FENCE: {
        size_t len;
        const char *word = md_info_word(s + st->level, n - (size_t)st->level, &len);
        open_code(m, MD_LEAF_FENCED, word, len, source);
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
        open_code(m, MD_LEAF_INDENTED, "", 0, m->source + c->at);
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
    m->leaf_serial++;
    add_text_line(m, c->s + c->first, c->n - c->first, m->source + c->first, cut);
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
    bool table = all && kind == MD_LEAF_TABLE && !empty;
    bool lazy = kind == MD_LEAF_PARAGRAPH;
    bool opened = false;
    for (;;) {
        struct start st = find_start(m, &c, matched, paragraph, lazy, cut);
        if (st.kind == START_NONE) {
            break;
        }
        if (st.kind == START_SETEXT) {
            settle_text(m, m->leaf_lines.n, st.level);
            clear_leaf(m);
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
        begin_table(m);
        table = true;
    }
    if (paragraph || table || (lazy && !empty)) {
        add_text_line(m, s + c.first, n - c.first, m->source + c.first, cut);
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
        take_line(m, m->line.data != NULL ? m->line.data : "", m->line.len, false);
        m->source += m->line.len;
        cw_buf_clear(&m->line);
        return;
    }
    if (m->p.leaf.kind == MD_LEAF_FENCED || m->p.leaf.kind == MD_LEAF_INDENTED) {
        end_code_line(m);
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
        grow(m, s, n, m->source);
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
    m->p.blank = true;
    m->after_cr = false;
}

/* ---- The unfinished rest, for the time being. ---- */

static void add_raw(struct md *m, const struct md_cursor *c, enum md_role role) {
    md_block_begin(m, MD_BLOCK_FLOW, here(m), m->source + c->first);
    md_add_text(m, c->s + c->first, c->n - c->first, role, 0, 0, m->source + c->first);
    md_block_end(m);
}

static void add_raw_leaf(struct md *m, const struct md_cursor *c) {
    md_block_begin(m, MD_BLOCK_FLOW, here(m), m->p.leaf.source);
    m->tail_raw = m->blocks.n - 1;
    add_kept(m, MD_RAW);
    if (!c->blank) {
        md_add_text(m, "\n", 1, MD_RAW, 0, 0, m->source - 1);
        md_add_text(m, c->s + c->first, c->n - c->first, MD_RAW, 0, 0, m->source + c->first);
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
                add_kept_code(m);
            }
            add_code(m, c->tab, c->s + at, c->n - at, m->source + at, false);
        }
    }
    if (m->p.long_line) {
        m->codes.v[m->p.leaf.code].end = m->text.len;
    }
    add_code_bottom(m);
    if (!inside && !c->blank) {
        m->p.leaf.kind = MD_LEAF_NONE;
        add_raw_start(m, c, matched);
    }
}

void md_build_tail(struct md *m) {
    struct md_parser before = m->p;
    m->tail_mark = md_mark(m);
    m->tail_raw = MD_NONE;
    m->tail_growing = m->growing;
    m->has_tail = true;

    struct md_cursor c = {.s = m->line.data != NULL ? m->line.data : "", .n = m->line.len};
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
