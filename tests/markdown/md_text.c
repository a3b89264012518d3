/* SPDX-License-Identifier: MIT */
#include "md_text.h"

#include <string.h>

#include "ui/cluster.h"

static const char *const names[MD_N_ROLES] = {
    [MD_TEXT] = "",           [MD_QUOTE] = "quote",       [MD_RAW] = "raw",
    [MD_HEADING1] = "h1",     [MD_HEADING2] = "h2",       [MD_HEADING3] = "h3",
    [MD_HEADING4] = "h4",     [MD_HEADING5] = "h5",       [MD_HEADING6] = "h6",
    [MD_CODE] = "code",       [MD_LINK] = "link",         [MD_LINK_URL] = "url",
    [MD_IMAGE] = "image",     [MD_HTML] = "html",         [MD_LIST_MARK] = "mark",
    [MD_TASK_OPEN] = "open",  [MD_TASK_DONE] = "done",    [MD_QUOTE_BAR] = "bar",
    [MD_RULE] = "rule",       [MD_TABLE_HEAD] = "head",   [MD_TABLE_CELL] = "cell",
    [MD_TABLE_RULE] = "grid", [MD_CODE_BOX] = "box",      [MD_CODE_LANG] = "lang",
    [MD_CODE_TEXT] = "c",     [MD_KEYWORD] = "keyword",   [MD_TYPE] = "type",
    [MD_CONSTANT] = "const",  [MD_STRING] = "string",     [MD_NUMBER] = "number",
    [MD_COMMENT] = "comment", [MD_FUNCTION] = "function", [MD_VARIABLE] = "variable",
    [MD_PREPROC] = "preproc", [MD_KEY] = "key",           [MD_TAG] = "tag",
    [MD_DIFF_ADD] = "add",    [MD_DIFF_DEL] = "del",      [MD_DIFF_HUNK] = "hunk",
};

static bool same_look(const struct md_span *a, const struct md_span *b) {
    return a->role == b->role && a->flags == b->flags && a->link == b->link;
}

void md_text_line(struct md *m, size_t i, bool marked, struct cw_buf *out) {
    struct md_line line;
    md_line(m, i, &line);
    int col = 0;
    const struct md_span *open = NULL;
    for (size_t k = 0; k < line.n_spans; k++) {
        const struct md_span *s = &line.spans[k];
        bool plain = !marked || (s->role == MD_TEXT && s->flags == 0 && s->link == 0);
        if (open != NULL && (plain || !same_look(open, s) || s->col > col)) {
            cw_buf_putc(out, '>');
            open = NULL;
        }
        for (; col < s->col; col++) {
            cw_buf_putc(out, ' ');
        }
        if (!plain && open == NULL) {
            cw_buf_printf(out, "<%s%s%s%s", names[s->role], s->flags & MD_STRONG ? "*" : "",
                          s->flags & MD_EMPH ? "/" : "", s->flags & MD_STRIKE ? "-" : "");
            if (s->link != 0) {
                cw_buf_printf(out, "@%s", md_link_url(m, s->link));
            }
            cw_buf_putc(out, ':');
            open = s;
        }
        cw_buf_add(out, s->text, s->len);
        col += ui_text_width(s->text, s->len, 1 << 20);
    }
    if (open != NULL) {
        cw_buf_putc(out, '>');
    }
    while (out->len > 0 && out->data[out->len - 1] == ' ') {
        out->data[--out->len] = '\0';
    }
}

void md_text_lines(struct md *m, size_t n, bool marked, struct cw_buf *out) {
    for (size_t i = 0; i < n; i++) {
        md_text_line(m, i, marked, out);
        cw_buf_putc(out, '\n');
    }
}
