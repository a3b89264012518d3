/* SPDX-License-Identifier: MIT
 *
 * Blocks into lines of a width, and lines into spans.
 *
 * A line remembers where in the text it lies and nothing about its looks, so that laying out is one
 * pass of wrapping; spans are made for the lines that are drawn. Lines of settled blocks stay;
 * those of the unfinished rest are made again when something came, except that the lines of an open
 * paragraph, to which text is only appended, are kept up to the last one.
 */
#include <string.h>

#include "chinwag/utf8.h"
#include "ui/markdown/md_internal.h"
#include "ui/wrap.h"

enum {
    MIN_TEXT = 8,   /* columns that margins must leave, else there are none */
    MIN_BOX = 12,   /* columns from which on code has a frame at its sides */
    MIN_COLUMN = 6, /* of a table, below which it is shown row by row */
    GAP = 3         /* columns between those of a table */
};

static const char *const bar = "\xe2\x94\x82";

/* ---- Margins. ---- */

struct margin {
    int cols; /* taken on the left */
    int room; /* left for text */
};

static struct margin margin_of(const struct md *m, uint32_t place) {
    struct margin g = {0, m->width};
    int cols = 0;
    for (; place != 0; place = m->places.v[place - 1].parent) {
        cols += m->places.v[place - 1].width;
    }
    if (m->width - cols >= MIN_TEXT) {
        g.cols = cols;
        g.room = m->width - cols;
    }
    return g;
}

static int code_room(struct margin g) {
    return g.room >= MIN_BOX ? g.room - 4 : g.room;
}

/* ---- Lines. ---- */

static struct md_vline *push_line(struct md *m, size_t block, enum md_vline_kind kind, size_t begin,
                                  size_t end) {
    MD_RESERVE(m->lines);
    struct md_vline *line = &m->lines.v[m->lines.n++];
    *line = (struct md_vline){.block = block, .begin = begin, .end = end, .kind = (uint8_t)kind};
    return line;
}

/* Marks that found no room beside the text of this block stand above it. */
static void push_marks(struct md *m, size_t block) {
    uint32_t chain[MD_DEPTH_MAX];
    int n = 0;
    for (uint32_t at = m->blocks.v[block].place; at != 0; at = m->places.v[at - 1].parent) {
        if (m->places.v[at - 1].first_block == block && !m->places.v[at - 1].quote) {
            chain[n++] = at - 1;
        }
    }
    while (n-- > 0) {
        const struct md_place *place = &m->places.v[chain[n]];
        for (size_t from = 0; from < place->len;) {
            struct ui_line l;
            ui_wrap(place->mark, place->len, from, m->width, true, &l);
            struct md_vline *line = push_line(m, block, MD_V_MARK, chain[n], 0);
            line->from = (uint8_t)l.begin;
            line->to = (uint8_t)l.end;
            from = l.next;
        }
    }
}

static void wrap(struct md *m, size_t from, size_t end, int room, bool words, struct ui_line *l) {
    ui_wrap(m->text.data, end, from, room, words, l);
    m->work.wrapped += l->next - from;
}

static void lay_text(struct md *m, size_t block, size_t from, size_t end, int room, bool words) {
    if (from == end) {
        push_line(m, block, MD_V_TEXT, from, end);
    }
    while (from < end) {
        struct ui_line l;
        wrap(m, from, end, room, words, &l);
        push_line(m, block, MD_V_TEXT, l.begin, l.end);
        from = l.next;
    }
}

/* ---- Tables. ---- */

enum { MAX_COLUMNS = 256 };

/* The widths of the columns; false: they do not fit side by side. */
static bool column_widths(const struct md *m, const struct md_table *t, int room,
                          int widths[MAX_COLUMNS]) {
    if (t->n_cols > MAX_COLUMNS || (int)t->n_cols * (GAP + 1) - GAP > room) {
        return false;
    }
    int n = (int)t->n_cols;
    int total = 0;
    for (int j = 0; j < n; j++) {
        widths[j] = 1;
    }
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct md_table_row *row = &m->rows.v[t->first_row + i];
        for (size_t j = 0; j < row->n; j++) {
            int width = m->cells.v[row->first + j].width;
            widths[j] = width > widths[j] ? width : widths[j];
        }
    }
    for (int j = 0; j < n; j++) {
        total += widths[j];
    }
    int budget = room - GAP * (n - 1);
    if (total <= budget) {
        return true;
    }
    /* narrow columns keep their width, the others share what is left equally */
    bool kept[MAX_COLUMNS] = {false};
    int wide = n;
    bool changed = true;
    while (changed && wide > 0) {
        changed = false;
        for (int j = 0; j < n; j++) {
            if (!kept[j] && widths[j] <= budget / wide) {
                kept[j] = changed = true;
                budget -= widths[j];
                wide--;
                break;
            }
        }
    }
    for (int j = 0; j < n; j++) {
        if (!kept[j]) {
            widths[j] = budget / wide;
            budget -= widths[j];
            wide--;
            if (widths[j] < MIN_COLUMN) {
                return false;
            }
        }
    }
    return true;
}

static void push_segment(struct md *m, struct md_segment segment) {
    MD_RESERVE(m->segments);
    m->segments.v[m->segments.n++] = segment;
}

/* The columns side by side, or one of the whole width. */
static void push_columns(struct md *m, struct md_table *t, bool fits, int room,
                         const int widths[MAX_COLUMNS]) {
    t->columns = m->segments.n;
    t->n_laid = fits ? t->n_cols : 1;
    size_t at = m->cells.v[m->rows.v[t->first_row].first].begin;
    int col = 0;
    for (size_t j = 0; j < t->n_laid; j++) {
        int width = fits ? widths[j] : room;
        push_segment(m, (struct md_segment){at, at, col, width});
        col += width + GAP;
    }
}

/* One line a row, more where cells wrap; a line keeps the pieces of cells that it shows. */
static void lay_row(struct md *m, size_t block, const struct md_table *t,
                    const struct md_table_row *row) {
    size_t at[MAX_COLUMNS];
    for (size_t j = 0; j < row->n; j++) {
        at[j] = m->cells.v[row->first + j].begin;
    }
    bool more = true;
    for (bool top = true; more; top = false) {
        size_t first = m->segments.n;
        more = false;
        for (size_t j = 0; j < row->n; j++) {
            size_t end = m->cells.v[row->first + j].end;
            struct md_segment column = m->segments.v[t->columns + j];
            struct ui_line l = {.begin = at[j], .end = at[j], .next = at[j]};
            if (at[j] < end) {
                wrap(m, at[j], end, column.width, true, &l);
            } else if (!top || j > 0) {
                continue;
            }
            int left = column.width > l.width ? column.width - l.width : 0;
            enum md_align align = (enum md_align)m->aligns.v[t->first_align + j];
            int pad = align == MD_ALIGN_RIGHT ? left : align == MD_ALIGN_CENTER ? left / 2 : 0;
            push_segment(m, (struct md_segment){l.begin, l.end, column.col + pad, l.width});
            at[j] = l.next;
            more = more || at[j] < end;
        }
        push_line(m, block, MD_V_TABLE, first, m->segments.n);
    }
}

static void lay_table(struct md *m, size_t block, int room) {
    struct md_table *t = &m->tables.v[m->blocks.v[block].item];
    int widths[MAX_COLUMNS];
    bool fits = column_widths(m, t, room, widths);
    push_columns(m, t, fits, room, widths);
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct md_table_row *row = &m->rows.v[t->first_row + i];
        size_t end = m->cells.v[row->first + row->n - 1].end;
        if (fits) {
            lay_row(m, block, t, row);
        } else {
            lay_text(m, block, m->cells.v[row->first].begin, end, room, true);
        }
        if (i == 0) {
            push_line(m, block, MD_V_TABLE_RULE, end, end);
        }
    }
}

/* ---- All lines. ---- */

/* The lines of a block; `begun`: from byte `from` on, those before are there. */
static void lay_block(struct md *m, size_t block, size_t from, bool begun) {
    const struct md_block *b = &m->blocks.v[block];
    struct margin g = margin_of(m, b->place);
    size_t end = b->end;
    if (block == m->tail_growing || block == m->tail_raw) {
        /* half a character would be drawn as marks, wider than what it becomes */
        end = from + cw_utf8_complete(m->text.data + from, end - from);
    }
    if (!begun && g.cols == 0 && b->place != 0) {
        push_marks(m, block);
    }
    switch (b->kind) {
    case MD_BLOCK_FLOW:
        lay_text(m, block, from, end, g.room, true);
        break;
    case MD_BLOCK_CODE_LINE:
        lay_text(m, block, from, end, code_room(g), false);
        break;
    case MD_BLOCK_TABLE:
        lay_table(m, block, g.room);
        break;
    case MD_BLOCK_BLANK:
        push_line(m, block, MD_V_BLANK, b->begin, b->end);
        break;
    case MD_BLOCK_RULE:
        push_line(m, block, MD_V_RULE, b->begin, b->end);
        break;
    case MD_BLOCK_CODE_TOP:
        push_line(m, block, MD_V_CODE_TOP, b->begin, b->end);
        break;
    case MD_BLOCK_CODE_BOTTOM:
        push_line(m, block, MD_V_CODE_BOTTOM, b->begin, b->end);
        break;
    }
}

static void lay_settled(struct md *m) {
    while (m->laid_block < m->tail_mark.blocks) {
        const struct md_block *b = &m->blocks.v[m->laid_block];
        lay_block(m, m->laid_block, m->laid_inside ? m->laid_begin : b->begin, m->laid_inside);
        if (m->laid_block == m->tail_growing) {
            /* what comes next can change its last line */
            m->laid_inside = true;
            m->laid_begin = m->lines.v[m->lines.n - 1].begin;
            m->n_settled = m->lines.n - 1;
            break;
        }
        m->laid_block++;
        m->laid_inside = false;
        m->n_settled = m->lines.n;
        m->settled_segments = m->segments.n;
    }
}

static bool goes_on(const struct md_block *a, const struct md_block *b) {
    return a->kind == b->kind && a->place == b->place && a->begin == b->begin &&
           a->source == b->source && a->end <= b->end;
}

/* The unfinished text: what was appended to it can change its last line. */
static void lay_raw(struct md *m, size_t block) {
    struct md_block b = m->blocks.v[block];
    size_t first = m->lines.n;
    size_t from = b.begin;
    bool begun = false;
    if (m->raw.n > 0 && m->raw.number == block && m->raw.first == first &&
        goes_on(&m->raw.block, &b)) {
        m->lines.n += m->raw.n;
        from = m->raw.next;
        begun = true;
    }
    lay_block(m, block, from, begun);
    m->raw.block = b;
    m->raw.number = block;
    m->raw.first = first;
    m->raw.n = m->lines.n - 1 - first;
    m->raw.next = m->lines.v[m->lines.n - 1].begin;
}

void md_layout(struct md *m, int width) {
    width = width < 1 ? 1 : width;
    if (width != m->width) {
        m->width = width;
        m->n_settled = m->settled_segments = 0;
        m->laid_block = 0;
        m->laid_inside = false;
        m->raw.n = 0;
    } else if (m->has_tail) {
        return;
    }
    if (!m->has_tail) {
        md_build_tail(m);
    }
    m->lines.n = m->n_settled;
    m->segments.n = m->settled_segments;
    lay_settled(m);
    for (size_t i = m->tail_mark.blocks; i < m->blocks.n; i++) {
        if (i == m->tail_raw) {
            lay_raw(m, i);
        } else {
            lay_block(m, i, m->blocks.v[i].begin, false);
        }
    }
}

size_t md_n_lines(const struct md *m) {
    return m->lines.n;
}

size_t md_n_settled(const struct md *m) {
    return m->n_settled;
}

/* ---- Spans. ---- */

static void put(struct md *m, int col, const char *text, size_t len, enum md_role role) {
    MD_RESERVE(m->spans);
    m->spans.v[m->spans.n++] =
        (struct md_span){.col = col, .role = role, .text = text, .len = len, .source = SIZE_MAX};
}

/* `n` columns of a line or of blanks. */
static void put_fill(struct md *m, int col, int n, bool blank, enum md_role role) {
    static const char line[] = "────────────────────────────────"; /* 32 of them, 3 bytes each */
    static const char blanks[] = "                                ";
    while (n > 0) {
        int part = n < 32 ? n : 32;
        put(m, col, blank ? blanks : line, (size_t)part * (blank ? 1 : 3), role);
        col += part;
        n -= part;
    }
}

/* The run that byte `at` of a block's text lies in, or the number of runs. */
static size_t run_at(const struct md *m, size_t block, size_t at) {
    size_t lo = m->blocks.v[block].run;
    size_t end = block + 1 < m->blocks.n ? m->blocks.v[block + 1].run : m->runs.n;
    if (lo == end) {
        return m->runs.n;
    }
    size_t hi = end;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (m->runs.v[mid].begin <= at) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Where byte `at` of the open leaf comes from. */
static size_t raw_source(const struct md *m, size_t at) {
    at -= m->blocks.v[m->tail_raw].begin;
    if (at > m->leaf_text.len) {
        return m->tail_source + (at - m->leaf_text.len - 1);
    }
    size_t lo = 0, hi = m->leaf_lines.n;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (m->leaf_lines.v[mid].begin <= at) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return m->leaf_lines.v[lo].source + (at - m->leaf_lines.v[lo].begin);
}

/* Whether a block is the open leaf, as it was written. */
static bool is_raw(const struct md *m, size_t block) {
    return m->has_tail && m->tail_leaf && block == m->tail_raw;
}

/* [begin, end) of the text from column `col` on; tabs are counted from there. Returns the column
 * behind it. */
static int put_text(struct md *m, size_t block, size_t begin, size_t end, int col) {
    int start = col;
    size_t run = begin < end ? run_at(m, block, begin) : 0;
    while (begin < end && run < m->runs.n) {
        const struct md_run *r = &m->runs.v[run];
        size_t stop =
            run + 1 < m->runs.n && m->runs.v[run + 1].begin < end ? m->runs.v[run + 1].begin : end;
        while (begin < stop) {
            const char *text = m->text.data + begin;
            if (*text == '\t') {
                int width = UI_TAB - (col - start) % UI_TAB;
                put_fill(m, col, width, true, (enum md_role)r->role);
                col += width;
                begin++;
                continue;
            }
            const char *tab = memchr(text, '\t', stop - begin);
            size_t len = tab != NULL ? (size_t)(tab - text) : stop - begin;
            put(m, col, text, len, (enum md_role)r->role);
            struct md_span *span = &m->spans.v[m->spans.n - 1];
            span->flags = r->flags;
            span->link = r->link;
            span->source = r->role == MD_TABLE_RULE || r->role == MD_LINK_URL ? SIZE_MAX
                           : is_raw(m, block)                                 ? raw_source(m, begin)
                                              : r->source + (begin - r->begin);
            col += ui_text_width(text, len, INT32_MAX);
            begin += len;
        }
        run++;
    }
    return col;
}

static void put_margin(struct md *m, const struct md_block *b, size_t block, bool first_line) {
    uint32_t chain[MD_DEPTH_MAX];
    int n = 0;
    for (uint32_t at = b->place; at != 0; at = m->places.v[at - 1].parent) {
        chain[n++] = at - 1;
    }
    int col = 0;
    while (n-- > 0) {
        const struct md_place *p = &m->places.v[chain[n]];
        if (p->quote || (first_line && p->first_block == block)) {
            put(m, col, p->mark, p->len, (enum md_role)p->role);
        }
        col += p->width;
    }
}

static void put_edge(struct md *m, const struct md_block *b, struct margin g, bool top) {
    bool boxed = g.room >= MIN_BOX;
    const char *language = "";
    if (top) {
        language = m->strings.data + m->codes.v[b->item].language;
    }
    int col = g.cols;
    int end = g.cols + g.room - boxed;
    if (boxed) {
        put(m, col, top ? "┌" : "└", 3, MD_CODE_BOX);
        col++;
    }
    if (*language != '\0') {
        /* as much of it as fits, between blanks */
        struct ui_line l;
        ui_wrap(language, strlen(language), 0, end - col - 2 * boxed, false, &l);
        put(m, col + boxed, language, l.end, MD_CODE_LANG);
        col += l.width + 2 * boxed;
    }
    put_fill(m, col, end - col, false, MD_CODE_BOX);
    if (boxed) {
        put(m, end, top ? "┐" : "┘", 3, MD_CODE_BOX);
    }
}

static void put_table_rule(struct md *m, const struct md_block *b, struct margin g) {
    const struct md_table *t = &m->tables.v[b->item];
    for (size_t j = 0; j < t->n_laid; j++) {
        struct md_segment column = m->segments.v[t->columns + j];
        int before = j > 0, after = j + 1 < t->n_laid;
        put_fill(m, g.cols + column.col - before, column.width + before + after, false,
                 MD_TABLE_RULE);
        if (after) {
            put(m, g.cols + column.col + column.width + 1, "┼", 3, MD_TABLE_RULE);
        }
    }
}

static void put_table_line(struct md *m, const struct md_vline *line, const struct md_block *b,
                           struct margin g) {
    const struct md_table *t = &m->tables.v[b->item];
    size_t next = 0; /* the column after whose border text comes */
    for (size_t i = line->begin; i <= line->end; i++) {
        int col = i < line->end ? m->segments.v[i].col : g.room;
        for (; next + 1 < t->n_laid && m->segments.v[t->columns + next + 1].col <= col; next++) {
            put(m, g.cols + m->segments.v[t->columns + next + 1].col - 2, bar, 3, MD_TABLE_RULE);
        }
        if (i < line->end) {
            put_text(m, line->block, m->segments.v[i].begin, m->segments.v[i].end, g.cols + col);
        }
    }
}

static void put_text_line(struct md *m, const struct md_vline *line, const struct md_block *b,
                          struct margin g) {
    bool boxed = b->kind == MD_BLOCK_CODE_LINE && g.room >= MIN_BOX;
    int col = g.cols;
    if (boxed) {
        put(m, col, bar, 3, MD_CODE_BOX);
        col += 2;
    }
    col = put_text(m, line->block, line->begin, line->end, col);
    if (boxed) {
        int end = g.cols + g.room - 1;
        put_fill(m, col, end - col, true, MD_CODE_TEXT);
        put(m, end, bar, 3, MD_CODE_BOX);
    }
}

static bool is_code(const struct md_block *b) {
    return b->kind == MD_BLOCK_CODE_TOP || b->kind == MD_BLOCK_CODE_LINE ||
           b->kind == MD_BLOCK_CODE_BOTTOM;
}

size_t md_line_code(const struct md *m, size_t i) {
    const struct md_block *b = &m->blocks.v[m->lines.v[i].block];
    return is_code(b) ? b->item + 1 : 0;
}

size_t md_work(const struct md *m) {
    return m->work.parsed + m->work.wrapped;
}

void md_line(struct md *m, size_t i, struct md_line *out) {
    m->spans.n = 0;
    const struct md_vline *line = &m->lines.v[i];
    const struct md_block *b = &m->blocks.v[line->block];
    struct margin g = margin_of(m, b->place);
    if (g.cols > 0) {
        put_margin(m, b, line->block, i == 0 || m->lines.v[i - 1].block != line->block);
    }
    switch ((enum md_vline_kind)line->kind) {
    case MD_V_TEXT:
        put_text_line(m, line, b, g);
        break;
    case MD_V_MARK: {
        const struct md_place *p = &m->places.v[line->begin];
        put(m, 0, p->mark + line->from, (size_t)(line->to - line->from), (enum md_role)p->role);
        break;
    }
    case MD_V_TABLE:
        put_table_line(m, line, b, g);
        break;
    case MD_V_TABLE_RULE:
        put_table_rule(m, b, g);
        break;
    case MD_V_RULE:
        put_fill(m, g.cols, g.room, false, MD_RULE);
        break;
    case MD_V_CODE_TOP:
    case MD_V_CODE_BOTTOM:
        put_edge(m, b, g, line->kind == MD_V_CODE_TOP);
        break;
    case MD_V_BLANK:
        break;
    }
    *out = (struct md_line){
        .spans = m->spans.v,
        .n_spans = m->spans.n,
        .source = md_line_source(m, i),
        .code_block = md_line_code(m, i),
    };
}

size_t md_line_source(const struct md *m, size_t i) {
    const struct md_vline *line = &m->lines.v[i];
    const struct md_block *b = &m->blocks.v[line->block];
    size_t at = line->begin;
    if (line->kind == MD_V_TABLE) {
        at = m->segments.v[line->begin].begin;
    } else if (line->kind != MD_V_TEXT && line->kind != MD_V_TABLE_RULE) {
        return b->source;
    } else if (is_raw(m, line->block)) {
        return raw_source(m, at);
    }
    size_t run = run_at(m, line->block, at);
    size_t source = b->source;
    if (run < m->runs.n) {
        const struct md_run *r = &m->runs.v[run];
        source = r->source + (at - r->begin);
        size_t end = line->block + 1 < m->blocks.n ? m->blocks.v[line->block + 1].run : m->runs.n;
        if (run + 1 < end && m->runs.v[run + 1].source < source) {
            source = m->runs.v[run + 1].source;
        }
    }
    if (line->block + 1 < m->blocks.n && m->blocks.v[line->block + 1].source < source) {
        source = m->blocks.v[line->block + 1].source;
    }
    return source;
}
