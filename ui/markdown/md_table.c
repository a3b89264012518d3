/* SPDX-License-Identifier: MIT
 *
 * Tables: which line makes one, and the cells of its rows. A row is cut at each '|' that no
 * backslash stands before; code spans do not protect one (GFM, section 4.10). Cells beyond the
 * header's columns are kept: the model wrote them.
 */
#include <string.h>

#include "ui/cluster.h"
#include "ui/markdown/md_internal.h"

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

struct row {
    const char *s;
    size_t n;  /* without blanks at the end */
    size_t at; /* where the next cell begins */
};

static struct row row_begin(const char *s, size_t n) {
    while (n > 0 && is_space(s[n - 1])) {
        n--;
    }
    struct row r = {s, n, 0};
    while (r.at < n && is_space(s[r.at])) {
        r.at++;
    }
    if (r.at < n && s[r.at] == '|') {
        r.at++;
    }
    return r;
}

/* The next cell without the blanks around it; false: there is none. */
static bool row_next(struct row *r, size_t *begin, size_t *end) {
    if (r->at >= r->n) {
        return false;
    }
    size_t i = r->at;
    while (i < r->n && r->s[i] != '|') {
        i += r->s[i] == '\\' && i + 1 < r->n ? 2 : 1;
    }
    *begin = r->at;
    *end = i;
    r->at = i + 1;
    while (*begin < *end && is_space(r->s[*begin])) {
        (*begin)++;
    }
    while (*end > *begin && is_space(r->s[*end - 1])) {
        (*end)--;
    }
    return true;
}

size_t md_count_cells(const char *s, size_t n) {
    size_t count = 0, begin, end;
    struct row r = row_begin(s, n);
    while (row_next(&r, &begin, &end)) {
        count++;
    }
    return count;
}

/* ":--", "--:", ":-:" or "---"; its alignment. */
static bool delimiter_cell(const char *s, size_t n, enum md_align *align) {
    bool left = n > 0 && s[0] == ':';
    bool right = n > 1 && s[n - 1] == ':';
    *align = right ? (left ? MD_ALIGN_CENTER : MD_ALIGN_RIGHT) : MD_ALIGN_LEFT;
    size_t i = left;
    n -= right;
    if (i >= n) {
        return false;
    }
    while (i < n && s[i] == '-') {
        i++;
    }
    return i == n;
}

size_t md_delimiter_row(const char *s, size_t n) {
    if (n == 0 || (s[0] != '|' && s[0] != ':' && s[0] != '-')) {
        return 0;
    }
    size_t count = 0, begin, end;
    enum md_align align;
    struct row r = row_begin(s, n);
    while (row_next(&r, &begin, &end)) {
        if (!delimiter_cell(s + begin, end - begin, &align)) {
            return 0;
        }
        count++;
    }
    return count;
}

/* Columns of the widest line of a cell. */
static int cell_width(const char *s, size_t n) {
    int widest = 0;
    for (size_t i = 0; i <= n;) {
        const char *newline = memchr(s + i, '\n', n - i);
        size_t end = newline != NULL ? (size_t)(newline - s) : n;
        int width = ui_text_width(s + i, end - i, MD_CELL_WIDTH_MAX);
        widest = width > widest ? width : widest;
        i = end + 1;
    }
    return widest;
}

static void add_cell(struct md *m, const char *s, size_t n, size_t source, enum md_role role,
                     struct cw_buf *scratch) {
    cw_buf_clear(scratch);
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\' && i + 1 < n && s[i + 1] == '|') {
            continue;
        }
        if (s[i] == '\\' && i + 1 < n) {
            cw_buf_putc(scratch, s[i++]);
        }
        /* a tab has no place in a cell whose column is not known yet */
        cw_buf_putc(scratch, s[i] == '\t' ? ' ' : s[i]);
    }
    size_t begin = m->text.len;
    struct md_source_line line = {0, source};
    if (scratch->len > 0) {
        md_add_inline(m, scratch->data, scratch->len, role, &line, 1);
    }
    for (size_t i = begin; i < m->text.len; i++) {
        if (m->text.data[i] == '\t') { /* from an entity */
            m->text.data[i] = ' ';
        }
    }
    MD_RESERVE(m->cells);
    m->cells.v[m->cells.n++] =
        (struct md_cell){begin, m->text.len, cell_width(m->text.data + begin, m->text.len - begin)};
}

static void add_row(struct md *m, const char *s, size_t n, size_t source, enum md_role role,
                    struct cw_buf *scratch) {
    size_t first = m->cells.n, begin, end;
    struct row r = row_begin(s, n);
    while (row_next(&r, &begin, &end)) {
        if (m->cells.n > first) { /* seen only where the table is too wide for columns */
            md_add_text(m, " \xe2\x94\x82 ", 5, MD_TABLE_RULE, 0, 0, source + begin);
        }
        add_cell(m, s + begin, end - begin, source + begin, role, scratch);
    }
    MD_RESERVE(m->rows);
    m->rows.v[m->rows.n++] = (struct md_table_row){first, m->cells.n - first};
}

void md_add_table(struct md *m, uint32_t place, size_t source) {
    md_block_begin(m, MD_BLOCK_TABLE, place, source)->item = m->tables.n;
    struct md_table t = {.first_row = m->rows.n, .first_align = m->aligns.n};
    struct cw_buf scratch = {0};
    const char *text = m->leaf_text.data;
    for (size_t i = 0; i < m->leaf_lines.n; i++) {
        const struct md_source_line *line = &m->leaf_lines.v[i];
        size_t end = i + 1 < m->leaf_lines.n ? m->leaf_lines.v[i + 1].begin - 1 : m->leaf_text.len;
        if (i != 1) {
            add_row(m, text + line->begin, end - line->begin, line->source,
                    i == 0 ? MD_TABLE_HEAD : MD_TABLE_CELL, &scratch);
            size_t n = m->rows.v[m->rows.n - 1].n;
            t.n_cols = n > t.n_cols ? n : t.n_cols;
            continue;
        }
        struct row r = row_begin(text + line->begin, end - line->begin);
        size_t begin, stop;
        while (row_next(&r, &begin, &stop)) {
            enum md_align align = MD_ALIGN_LEFT;
            delimiter_cell(text + line->begin + begin, stop - begin, &align);
            MD_RESERVE(m->aligns);
            m->aligns.v[m->aligns.n++] = (uint8_t)align;
        }
    }
    t.n_rows = m->rows.n - t.first_row;
    while (m->aligns.n - t.first_align < t.n_cols) {
        MD_RESERVE(m->aligns);
        m->aligns.v[m->aligns.n++] = MD_ALIGN_LEFT;
    }
    MD_RESERVE(m->tables);
    m->tables.v[m->tables.n++] = t;
    md_block_end(m);
    cw_buf_free(&scratch);
}
