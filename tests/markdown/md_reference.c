/* SPDX-License-Identifier: MIT */
#include "md_reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm.h>

#include "ui/markdown/md_internal.h"

/* ---- Text with styles: a mark where they change. ---- */

struct styled {
    struct cw_buf *out;
    char last[8];
    bool inlines; /* how many blanks stand in a row does not count (cmark keeps some of a lazy line)
                   */
    bool after_blank;
};

static void style_to(struct styled *st, const char *style) {
    if (strcmp(st->last, style) != 0) {
        cw_buf_printf(st->out, "{%s}", style);
        snprintf(st->last, sizeof st->last, "%s", style);
    }
}

static void add_styled(struct styled *st, const char *style, const char *s, size_t n) {
    while (strchr(style, 'c') != NULL && n > 0 && (s[n - 1] == ' ' || s[n - 1] == '\t')) {
        n--; /* a blank of a lazy line at an end of a code span */
    }
    while (strchr(style, 'c') != NULL && n > 0 && (s[0] == ' ' || s[0] == '\t')) {
        s++;
        n--;
    }
    if (n > 0) {
        style_to(st, style);
    }
    for (size_t i = 0; i < n; i++) {
        bool blank = s[i] == ' ' || s[i] == '\t';
        if (s[i] == '\n') {
            cw_buf_puts(st->out, "\\n");
        } else if (!blank || !st->after_blank || !st->inlines) {
            cw_buf_putc(st->out, st->inlines && blank ? ' ' : s[i]);
        }
        st->after_blank = blank || s[i] == '\n';
    }
}

static void style_name(char out[8], bool strong, bool emph, bool strike, bool code, bool html,
                       bool image) {
    snprintf(out, 8, "%s%s%s%s%s%s", strong ? "s" : "", emph ? "e" : "", strike ? "x" : "",
             code ? "c" : "", html ? "h" : "", image ? "i" : "");
}

/* ---- Ours. ---- */

static void our_path(const struct md *m, uint32_t place, size_t block, struct cw_buf *out) {
    if (place == 0) {
        return;
    }
    const struct md_place *p = &m->places.v[place - 1];
    our_path(m, p->parent, block, out);
    if (p->quote) {
        cw_buf_puts(out, "> ");
    } else {
        cw_buf_add(out, p->mark, p->len);
        cw_buf_puts(out, p->first_block == block ? "+ " : " ");
    }
}

static void our_text(const struct md *m, size_t begin, size_t end, size_t run, size_t run_end,
                     struct cw_buf *out) {
    struct styled st = {.out = out, .inlines = true};
    for (; run < run_end; run++) {
        const struct md_run *r = &m->runs.v[run];
        size_t stop = run + 1 < run_end ? m->runs.v[run + 1].begin : end;
        size_t from = r->begin > begin ? r->begin : begin;
        stop = stop < end ? stop : end;
        if (from >= stop) {
            continue;
        }
        char style[8];
        style_name(style, r->flags & MD_STRONG, r->flags & MD_EMPH, r->flags & MD_STRIKE,
                   r->role == MD_CODE, r->role == MD_HTML, r->role == MD_IMAGE);
        add_styled(&st, style, m->text.data + from, stop - from);
    }
}

static void our_table(const struct md *m, const struct md_block *b, size_t run, size_t run_end,
                      struct cw_buf *out) {
    const struct md_table *t = &m->tables.v[b->item];
    size_t n_cols = m->rows.v[t->first_row].n;
    cw_buf_puts(out, "table");
    for (size_t j = 0; j < n_cols; j++) {
        cw_buf_putc(out, "lcr"[m->aligns.v[t->first_align + j]]);
    }
    for (size_t i = 0; i < t->n_rows; i++) {
        const struct md_table_row *row = &m->rows.v[t->first_row + i];
        cw_buf_puts(out, " /");
        for (size_t j = 0; j < n_cols; j++) {
            cw_buf_puts(out, " |");
            if (j < row->n) {
                const struct md_cell *c = &m->cells.v[row->first + j];
                our_text(m, c->begin, c->end, run, run_end, out);
            }
        }
    }
}

void describe_ours(struct md *m, struct cw_buf *out) {
    for (size_t i = 0; i < m->blocks.n; i++) {
        const struct md_block *b = &m->blocks.v[i];
        size_t run_end = i + 1 < m->blocks.n ? m->blocks.v[i + 1].run : m->runs.n;
        if (b->kind == MD_BLOCK_BLANK || b->kind == MD_BLOCK_CODE_LINE ||
            b->kind == MD_BLOCK_CODE_BOTTOM) {
            continue;
        }
        our_path(m, b->place, i, out);
        switch (b->kind) {
        case MD_BLOCK_RULE:
            cw_buf_puts(out, "rule");
            break;
        case MD_BLOCK_CODE_TOP: {
            const struct md_code *c = &m->codes.v[b->item];
            struct styled st = {.out = out};
            cw_buf_printf(out, "code(%s) ", m->strings.data + c->language);
            add_styled(&st, "", m->text.data + c->begin, c->end - c->begin);
            break;
        }
        case MD_BLOCK_TABLE:
            our_table(m, b, b->run, run_end, out);
            break;
        default:
            if (b->item > 0) {
                cw_buf_printf(out, "h%d ", (int)b->item);
            } else {
                cw_buf_puts(out, "p ");
            }
            our_text(m, b->begin, b->end, b->run, run_end, out);
            break;
        }
        cw_buf_putc(out, '\n');
    }
}

/* ---- cmark's. ---- */

static bool is_break(const char *html) {
    return strcmp(html, "<br>") == 0 || strcmp(html, "<br/>") == 0 || strcmp(html, "<br />") == 0;
}

static void their_inlines(cmark_node *parent, struct cw_buf *out) {
    struct styled st = {.out = out, .inlines = true};
    int strong = 0, emph = 0, strike = 0, image = 0;
    cmark_iter *iter = cmark_iter_new(parent);
    cmark_event_type event;
    while ((event = cmark_iter_next(iter)) != CMARK_EVENT_DONE) {
        cmark_node *node = cmark_iter_get_node(iter);
        int step = event == CMARK_EVENT_ENTER ? 1 : -1;
        const char *type = cmark_node_get_type_string(node);
        const char *s = NULL;
        bool code = false, html = false;
        if (strcmp(type, "strong") == 0) {
            strong += step;
        } else if (strcmp(type, "emph") == 0) {
            emph += step;
        } else if (strcmp(type, "strikethrough") == 0) {
            strike += step;
        } else if (strcmp(type, "image") == 0) {
            image += step;
            if (step > 0 && cmark_node_first_child(node) == NULL) {
                s = cmark_node_get_url(node);
            }
        } else if (strcmp(type, "text") == 0) {
            s = cmark_node_get_literal(node);
        } else if (strcmp(type, "code") == 0) {
            s = cmark_node_get_literal(node);
            code = true;
        } else if (strcmp(type, "html_inline") == 0) {
            html = !is_break(cmark_node_get_literal(node));
            s = html ? cmark_node_get_literal(node) : "\n";
        } else if (strcmp(type, "softbreak") == 0 || strcmp(type, "linebreak") == 0) {
            s = "\n";
        }
        if (s != NULL) {
            char style[8];
            style_name(style, strong, emph, strike, code, html, image > 0 && !code && !html);
            add_styled(&st, style, s, strlen(s));
        }
    }
    cmark_iter_free(iter);
}

static const char *type_of(cmark_node *node) {
    return node != NULL ? cmark_node_get_type_string(node) : "";
}

/* The marks of the containers that hold `node`; what was shown before has user data. */
static void their_path(cmark_node *node, struct cw_buf *out) {
    cmark_node *parent = cmark_node_parent(node);
    if (parent != NULL) {
        their_path(parent, out);
    }
    const char *type = type_of(node);
    if (strcmp(type, "block_quote") == 0) {
        cw_buf_puts(out, "> ");
    } else if (strcmp(type, "item") == 0 || strcmp(type, "tasklist") == 0) {
        static const char *const bullets[] = {"\xe2\x80\xa2", "\xe2\x97\xa6", "\xe2\x96\xaa"};
        cmark_node *list = parent;
        bool task = strcmp(type, "tasklist") == 0 &&
                    strcmp(type_of(cmark_node_first_child(node)), "paragraph") == 0;
        bool ordered = cmark_node_get_list_type(list) == CMARK_ORDERED_LIST;
        if (ordered) {
            int number = cmark_node_get_list_start(list);
            for (cmark_node *n = cmark_node_previous(node); n != NULL; n = cmark_node_previous(n)) {
                number++;
            }
            cw_buf_printf(out, "%d%c%s", number,
                          cmark_node_get_list_delim(list) == CMARK_PAREN_DELIM ? ')' : '.',
                          task ? " " : "");
        } else if (!task) {
            int level = 0;
            for (cmark_node *n = cmark_node_parent(list); n != NULL; n = cmark_node_parent(n)) {
                level += strcmp(type_of(n), "list") == 0 &&
                         cmark_node_get_list_type(n) == CMARK_BULLET_LIST;
            }
            cw_buf_puts(out, bullets[level % 3]);
        }
        if (task) {
            cw_buf_puts(out, cmark_gfm_extensions_get_tasklist_item_checked(node) ? "\xe2\x98\x91"
                                                                                  : "\xe2\x98\x90");
        }
        cw_buf_puts(out, cmark_node_get_user_data(node) == NULL ? "+ " : " ");
        cmark_node_set_user_data(node, node);
    }
}

static void their_lines(cmark_node *node, const char *s, struct cw_buf *out) {
    while (*s != '\0') {
        size_t n = strcspn(s, "\n");
        their_path(node, out);
        cw_buf_puts(out, "p ");
        struct styled st = {.out = out, .inlines = true};
        add_styled(&st, "h", s, n);
        cw_buf_putc(out, '\n');
        s += n + (s[n] == '\n');
    }
}

static void their_table(cmark_node *table, struct cw_buf *out) {
    unsigned n_cols = cmark_gfm_extensions_get_table_columns(table);
    const uint8_t *aligns = cmark_gfm_extensions_get_table_alignments(table);
    cw_buf_puts(out, "table");
    for (unsigned j = 0; j < n_cols; j++) {
        cw_buf_putc(out, aligns[j] == 'c' || aligns[j] == 'r' ? (char)aligns[j] : 'l');
    }
    for (cmark_node *row = cmark_node_first_child(table); row; row = cmark_node_next(row)) {
        cw_buf_puts(out, " /");
        for (cmark_node *cell = cmark_node_first_child(row); cell; cell = cmark_node_next(cell)) {
            cw_buf_puts(out, " |");
            their_inlines(cell, out);
        }
    }
}

/* Whether anything below is shown: a leaf, or the mark of an item. */
static bool shows(cmark_node *node) {
    for (cmark_node *c = cmark_node_first_child(node); c != NULL; c = cmark_node_next(c)) {
        const char *type = type_of(c);
        if ((strcmp(type, "block_quote") != 0 && strcmp(type, "list") != 0) || shows(c)) {
            return true;
        }
    }
    return false;
}

static void their_block(cmark_node *node, struct cw_buf *out) {
    const char *type = type_of(node);
    bool container = strcmp(type, "document") == 0 || strcmp(type, "block_quote") == 0 ||
                     strcmp(type, "list") == 0 || strcmp(type, "item") == 0 ||
                     strcmp(type, "tasklist") == 0;
    bool item = strcmp(type, "item") == 0 || strcmp(type, "tasklist") == 0;
    if (container && !(item && !shows(node))) {
        for (cmark_node *c = cmark_node_first_child(node); c != NULL; c = cmark_node_next(c)) {
            their_block(c, out);
        }
        return;
    }
    if (strcmp(type, "html_block") == 0) {
        their_lines(node, cmark_node_get_literal(node), out);
        return;
    }
    their_path(node, out);
    if (item) {
        cw_buf_puts(out, "p ");
    } else if (strcmp(type, "thematic_break") == 0) {
        cw_buf_puts(out, "rule");
    } else if (strcmp(type, "code_block") == 0) {
        const char *info = cmark_node_get_fence_info(node);
        struct styled st = {.out = out};
        cw_buf_printf(out, "code(%.*s) ", (int)strcspn(info, " \t"), info);
        add_styled(&st, "", cmark_node_get_literal(node), strlen(cmark_node_get_literal(node)));
    } else if (strcmp(type, "table") == 0) {
        their_table(node, out);
    } else if (strcmp(type, "heading") == 0) {
        cw_buf_printf(out, "h%d ", cmark_node_get_heading_level(node));
        their_inlines(node, out);
    } else {
        cw_buf_puts(out, "p ");
        their_inlines(node, out);
    }
    cw_buf_putc(out, '\n');
}

void describe_cmark(const char *s, size_t n, struct cw_buf *out) {
    static const char *const extensions[] = {"table", "strikethrough", "tasklist"};
    cmark_gfm_core_extensions_ensure_registered();
    cmark_parser *parser = cmark_parser_new(CMARK_OPT_DEFAULT);
    for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++) {
        cmark_parser_attach_syntax_extension(parser, cmark_find_syntax_extension(extensions[i]));
    }
    cmark_parser_feed(parser, s, n);
    cmark_node *doc = cmark_parser_finish(parser);
    cmark_consolidate_text_nodes(doc);
    their_block(doc, out);
    cmark_node_free(doc);
    cmark_parser_free(parser);
}
