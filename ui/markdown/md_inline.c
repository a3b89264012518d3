/* SPDX-License-Identifier: MIT
 *
 * Inline content of one leaf, by cmark-gfm: emphasis, code spans, links, escapes, entities, as
 * GitHub defines them. It sees no block structure, that is md_block.c's; so nothing in the text can
 * be taken for a definition or a list and vanish. Web addresses in plain text are a syntax
 * extension of our own, which does with public calls what the library's does, since that one reads
 * outside its buffer in the versions in use.
 *
 * The parser is quadratic in some marks and slow in all, so leaves with very many, which are no
 * prose, are plain text.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm-extension_api.h>
#include <cmark-gfm.h>
#include <cmark-gfm/inlines.h>

#include "ui/markdown/md_internal.h"

enum {
    MAX_MARKS = 1024, /* characters that may mean something, in one leaf */
    MAX_DENSE = 96,   /* of them where two in five characters are some */
    MAX_ODD_TAGS = 32 /* "<?" and "<!", each of which may be looked for to the end */
};

struct md_inline {
    cmark_parser *parser;
    cmark_syntax_extension *web;
    const char *s; /* what is being parsed */
    size_t n;
};

/* ---- The parser. ---- */

static cmark_node *match_web(cmark_syntax_extension *ext, cmark_parser *parser, cmark_node *parent,
                             unsigned char c, cmark_inline_parser *at) {
    (void)parser;
    (void)parent;
    (void)c;
    const struct md_inline *in = cmark_syntax_extension_get_private(ext);
    size_t begin = (size_t)cmark_inline_parser_get_offset(at);
    size_t len = begin < in->n ? md_autolink(in->s, in->n, begin) : 0;
    if (len == 0 || cmark_inline_parser_in_bracket(at, 0) ||
        cmark_inline_parser_in_bracket(at, 1)) {
        return NULL;
    }
    struct cw_buf url = {0};
    bool bare = in->s[begin] == 'w' || in->s[begin] == 'W';
    cw_buf_puts(&url, bare ? "http://" : "");
    cw_buf_add(&url, in->s + begin, len);
    cmark_node *link = cmark_node_new(CMARK_NODE_LINK);
    cmark_node *text = cmark_node_new(CMARK_NODE_TEXT);
    cmark_node_set_url(link, url.data);
    cmark_node_set_literal(text, url.data + (bare ? 7 : 0));
    cmark_node_append_child(link, text);
    cmark_node_set_user_data(text, (void *)(begin + 1)); /* nodes of ours have no position */
    cw_buf_free(&url);
    cmark_inline_parser_set_offset(at, (int)(begin + len));
    return link;
}

static struct md_inline *inline_create(void) {
    struct md_inline *in = cw_calloc(1, sizeof *in);
    cmark_gfm_core_extensions_ensure_registered();
    in->parser = cmark_parser_new(CMARK_OPT_DEFAULT);
    cmark_syntax_extension *strike = cmark_find_syntax_extension("strikethrough");
    if (strike != NULL) {
        cmark_parser_attach_syntax_extension(in->parser, strike);
    }
    in->web = cmark_syntax_extension_new("web");
    cmark_mem *mem = cmark_get_default_mem_allocator();
    cmark_llist *chars = NULL;
    for (const char *c = "hHwW"; *c != '\0'; c++) {
        chars = cmark_llist_append(mem, chars, (void *)(size_t)*c);
    }
    cmark_syntax_extension_set_special_inline_chars(in->web, chars);
    cmark_syntax_extension_set_match_inline_func(in->web, match_web);
    cmark_syntax_extension_set_private(in->web, in, NULL);
    cmark_parser_attach_syntax_extension(in->parser, in->web);
    return in;
}

void md_inline_free(struct md_inline *in) {
    if (in != NULL) {
        cmark_parser_free(in->parser);
        cmark_syntax_extension_free(cmark_get_default_mem_allocator(), in->web);
        free(in);
    }
}

/* The tree of s[0..n), which is terminated and holds no NUL. */
static cmark_node *parse(struct md_inline *in, const char *s, size_t n) {
    in->s = s;
    in->n = n;
    cmark_node *root = cmark_node_new(CMARK_NODE_PARAGRAPH);
    cmark_node_set_string_content(root, s);
    cmark_manage_extensions_special_characters(in->parser, 1);
    cmark_parse_inlines(in->parser, root, NULL, CMARK_OPT_SOURCEPOS);
    cmark_manage_extensions_special_characters(in->parser, 0);
    return root;
}

/* ---- From the tree to runs. ---- */

struct walk {
    struct md *m;
    const struct md_source_line *lines;
    size_t n_lines;
    size_t line; /* of the last node that had a position */
    enum md_role role;
    int strong, emph, strike, image; /* how many of each are open */
    uint32_t target, image_target;
    size_t link_begin; /* of its text in md.text */
};

static size_t source_of(struct walk *w, cmark_node *node) {
    size_t placed = (size_t)cmark_node_get_user_data(node);
    if (placed != 0) {
        size_t at = w->lines[0].begin + placed - 1;
        while (w->line + 1 < w->n_lines && w->lines[w->line + 1].begin <= at) {
            w->line++;
        }
        return w->lines[w->line].source + (at - w->lines[w->line].begin);
    }
    int line = cmark_node_get_start_line(node);
    int col = cmark_node_get_start_column(node);
    if (line >= 0 && (size_t)line < w->n_lines && (size_t)line >= w->line) {
        w->line = (size_t)line;
    }
    return w->lines[w->line].source + (col > 0 ? (size_t)col : 0);
}

static void add(struct walk *w, const char *s, size_t n, enum md_role role, size_t source) {
    unsigned flags = (w->strong > 0 ? (unsigned)MD_STRONG : 0) |
                     (w->emph > 0 ? (unsigned)MD_EMPH : 0) |
                     (w->strike > 0 ? (unsigned)MD_STRIKE : 0);
    md_add_text(w->m, s, n, role, flags, w->target != 0 ? w->target : w->image_target, source);
}

static bool is_heading(enum md_role role) {
    return role >= MD_HEADING1 && role <= MD_HEADING6;
}

static enum md_role text_role(const struct walk *w) {
    if (w->image > 0) {
        return MD_IMAGE;
    }
    return w->target != 0 && !is_heading(w->role) ? MD_LINK : w->role;
}

static bool is_br(const char *s) {
    if (strncasecmp(s, "<br", 3) != 0) {
        return false;
    }
    s += 3;
    s += strspn(s, " \t");
    s += *s == '/';
    return strcmp(s, ">") == 0;
}

static void add_break(struct walk *w, bool hard) {
    size_t source = w->line + 1 < w->n_lines ? w->lines[w->line + 1].source : 0;
    bool joins = !hard && w->m->options.join_lines;
    add(w, joins ? " " : "\n", 1, text_role(w), source > 0 ? source - 1 : 0);
}

static void leave_link(struct walk *w, cmark_node *node) {
    const char *url = cmark_node_get_url(node);
    size_t n = strlen(url);
    size_t len = w->m->text.len - w->link_begin;
    if (w->m->options.show_urls && n > 0 &&
        !(len <= n && memcmp(w->m->text.data + w->link_begin, url + n - len, len) == 0)) {
        add(w, " (", 2, MD_LINK_URL, 0);
        add(w, url, n, MD_LINK_URL, 0);
        add(w, ")", 1, MD_LINK_URL, 0);
    }
    w->target = 0;
}

static void leave_image(struct walk *w, cmark_node *node) {
    if (cmark_node_first_child(node) == NULL) { /* no alternative text: its name at least */
        const char *url = cmark_node_get_url(node);
        add(w, url, strlen(url), MD_IMAGE, 0);
    }
    if (--w->image == 0) {
        w->image_target = 0;
    }
}

static void visit(struct walk *w, cmark_node *node, bool enter) {
    cmark_node_type type = cmark_node_get_type(node);
    int step = enter ? 1 : -1;
    if (type == CMARK_NODE_TEXT) {
        const char *s = cmark_node_get_literal(node);
        add(w, s, strlen(s), text_role(w), source_of(w, node));
    } else if (type == CMARK_NODE_CODE) {
        const char *s = cmark_node_get_literal(node);
        add(w, s, strlen(s), MD_CODE, source_of(w, node));
    } else if (type == CMARK_NODE_HTML_INLINE) {
        const char *s = cmark_node_get_literal(node);
        size_t source = source_of(w, node);
        if (is_br(s)) {
            add(w, "\n", 1, text_role(w), source);
        } else {
            add(w, s, strlen(s), MD_HTML, source);
        }
    } else if (type == CMARK_NODE_SOFTBREAK || type == CMARK_NODE_LINEBREAK) {
        add_break(w, type == CMARK_NODE_LINEBREAK);
    } else if (type == CMARK_NODE_STRONG) {
        w->strong += step;
    } else if (type == CMARK_NODE_EMPH) {
        w->emph += step;
    } else if (type == CMARK_NODE_LINK && enter) {
        w->target = md_add_link(w->m, cmark_node_get_url(node));
        w->link_begin = w->m->text.len;
    } else if (type == CMARK_NODE_LINK) {
        leave_link(w, node);
    } else if (type == CMARK_NODE_IMAGE && enter) {
        if (w->image++ == 0) {
            w->image_target = md_add_link(w->m, cmark_node_get_url(node));
        }
    } else if (type == CMARK_NODE_IMAGE) {
        leave_image(w, node);
    } else if (strcmp(cmark_node_get_type_string(node), "strikethrough") == 0) {
        w->strike += step; /* an extension's type has no number of its own in the headers */
    }
}

/* ---- Leaves that need no parser, or must not see it. ---- */

enum effort { EFFORT_NONE, EFFORT_PARSE, EFFORT_TOO_MUCH };

static enum effort effort_of(const char *s, size_t n, size_t *marks_found) {
    static const bool marks[256] = {
        ['*'] = true, ['_'] = true,  ['~'] = true, ['['] = true, [']'] = true, ['<'] = true,
        ['&'] = true, ['\\'] = true, ['`'] = true, [':'] = true, ['w'] = true, ['W'] = true};
    size_t n_marks = 0, n_odd = 0;
    bool address = false;
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        if (c == '\0') {
            return EFFORT_TOO_MUCH; /* the parser takes terminated strings */
        }
        if (!marks[(unsigned char)c]) {
            continue;
        }
        if (c == ':' || c == 'w' || c == 'W') {
            address =
                address || (c == ':' ? n - i > 2 && s[i + 1] == '/' : n - i > 3 && s[i + 3] == '.');
            continue;
        }
        n_marks++;
        n_odd += c == '<' && n - i > 1 && (s[i + 1] == '?' || s[i + 1] == '!');
    }
    *marks_found = n_marks;
    if (n > MD_LEAF_MAX || n_marks > MAX_MARKS || n_odd > MAX_ODD_TAGS ||
        (n_marks > MAX_DENSE && n_marks >= n / 5 * 2)) {
        return EFFORT_TOO_MUCH;
    }
    return n_marks > 0 || address ? EFFORT_PARSE : EFFORT_NONE;
}

/* Lines as they are; `trimmed`: without the blanks at their ends, as the parser would do it. */
static void add_lines(struct md *m, const char *s, size_t n, enum md_role role,
                      const struct md_source_line *lines, size_t n_lines, bool trimmed) {
    for (size_t i = 0; i < n_lines; i++) {
        size_t begin = lines[i].begin;
        size_t end = i + 1 < n_lines ? lines[i + 1].begin - 1 : n;
        size_t text_end = end;
        while (trimmed && text_end > begin &&
               (s[text_end - 1] == ' ' || s[text_end - 1] == '\t' || s[text_end - 1] == '\v' ||
                s[text_end - 1] == '\f')) {
            text_end--;
        }
        md_add_text(m, s + begin, text_end - begin, role, 0, 0, lines[i].source);
        if (i + 1 < n_lines) {
            bool hard = end - text_end >= 2 && s[end - 1] == ' ' && s[end - 2] == ' ';
            bool joins = trimmed && m->options.join_lines && !hard;
            md_add_text(m, joins ? " " : "\n", 1, role, 0, 0, lines[i].source + (end - begin));
        }
    }
}

void md_add_inline(struct md *m, const char *s, size_t n, enum md_role role,
                   const struct md_source_line *lines, size_t n_lines) {
    size_t begin = lines[0].begin;
    size_t n_marks = 0;
    enum effort effort = effort_of(s + begin, n - begin, &n_marks);
    if (effort != EFFORT_PARSE) {
        add_lines(m, s, n, role, lines, n_lines, effort == EFFORT_NONE);
        return;
    }
    if (m->inlines == NULL) {
        m->inlines = inline_create();
    }
    m->work.parsed += n - begin;
    m->work.most_marks = n_marks > m->work.most_marks ? n_marks : m->work.most_marks;
    char *copy = cw_strndup(s + begin, n - begin);
    cmark_node *root = parse(m->inlines, copy, n - begin);
    struct walk w = {.m = m, .lines = lines, .n_lines = n_lines, .role = role};
    cmark_iter *iter = cmark_iter_new(root);
    cmark_event_type event;
    while ((event = cmark_iter_next(iter)) != CMARK_EVENT_DONE) {
        visit(&w, cmark_iter_get_node(iter), event == CMARK_EVENT_ENTER);
    }
    cmark_iter_free(iter);
    cmark_node_free(root);
    free(copy);
}
