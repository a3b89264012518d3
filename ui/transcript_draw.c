/* SPDX-License-Identifier: MIT
 *
 * Rows of the transcript into cells.
 *
 * The first column is for what stands beside the text: the mark of what is picked, and of the
 * current hit, should the text it is in not be shown (the target of a link, say). The last column
 * is for the scrollbar and for changes of settings; where both fall together the change is shown.
 */
#include <stdio.h>
#include <string.h>

#include "ui/transcript_impl.h"

static enum ui_role text_role(enum ui_block_kind kind) {
    static const enum ui_role roles[UI_N_BLOCK_KINDS] = {
        [UI_BLOCK_USER] = UI_YOUR_TEXT,    [UI_BLOCK_REPLY] = UI_TEXT,
        [UI_BLOCK_THINKING] = UI_THINKING, [UI_BLOCK_NOTICE] = UI_NOTICE,
        [UI_BLOCK_ERROR] = UI_ERROR,
    };
    return roles[kind];
}

static enum ui_role heading_role(enum ui_block_kind kind) {
    return kind == UI_BLOCK_USER ? UI_YOU : kind == UI_BLOCK_REPLY ? UI_REPLY : text_role(kind);
}

static const uint8_t md_roles[MD_N_ROLES] = {
    [MD_TEXT] = UI_TEXT,
    [MD_QUOTE] = UI_QUOTE,
    [MD_RAW] = UI_RAW,
    [MD_HEADING1] = UI_HEADING_1,
    [MD_HEADING2] = UI_HEADING,
    [MD_HEADING3] = UI_HEADING,
    [MD_HEADING4] = UI_HEADING,
    [MD_HEADING5] = UI_HEADING,
    [MD_HEADING6] = UI_HEADING,
    [MD_CODE] = UI_CODE_SPAN,
    [MD_LINK] = UI_LINK,
    [MD_LINK_URL] = UI_URL,
    [MD_IMAGE] = UI_IMAGE,
    [MD_HTML] = UI_HTML,
    [MD_LIST_MARK] = UI_LIST_MARK,
    [MD_TASK_OPEN] = UI_TASK_OPEN,
    [MD_TASK_DONE] = UI_TASK_DONE,
    [MD_QUOTE_BAR] = UI_BORDER,
    [MD_RULE] = UI_BORDER,
    [MD_TABLE_HEAD] = UI_TABLE_HEAD,
    [MD_TABLE_CELL] = UI_TEXT,
    [MD_TABLE_RULE] = UI_BORDER,
    [MD_CODE_BOX] = UI_BORDER,
    [MD_CODE_LANG] = UI_CODE_LANG,
    [MD_CODE_TEXT] = UI_CODE,
    [MD_KEYWORD] = UI_CODE_KEYWORD,
    [MD_TYPE] = UI_CODE_TYPE,
    [MD_CONSTANT] = UI_CODE_CONSTANT,
    [MD_STRING] = UI_CODE_STRING,
    [MD_NUMBER] = UI_CODE_NUMBER,
    [MD_COMMENT] = UI_CODE_COMMENT,
    [MD_FUNCTION] = UI_CODE_FUNCTION,
    [MD_VARIABLE] = UI_CODE_VARIABLE,
    [MD_PREPROC] = UI_CODE_PREPROC,
    [MD_KEY] = UI_CODE_KEY,
    [MD_TAG] = UI_CODE_TAG,
    [MD_DIFF_ADD] = UI_DIFF_ADD,
    [MD_DIFF_DEL] = UI_DIFF_DEL,
    [MD_DIFF_HUNK] = UI_DIFF_HUNK,
};

/* ---- looks by place in the text ------------------------------------------------------------- */

/* What lies over the text of a block: tokens under the lens, hits. Places are asked for in rising
 * order, so that each list is walked once. */
struct pen {
    const struct ui_transcript *t;
    const struct tr_block *b;
    size_t hit; /* the first that does not end before the place */
    size_t token;
    bool tokens;
};

static struct pen pen_at(const struct ui_transcript *t, const struct tr_block *b, size_t offset) {
    struct pen p = {.t = t, .b = b, .tokens = t->lens_block != 0 && b->n_tokens > 0};
    size_t lo = 0, hi = b->n_hits;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (b->hits[mid].end <= offset) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    p.hit = lo;
    lo = 0;
    hi = p.tokens ? b->n_tokens : 0;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (b->tokens[mid].offset <= offset) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    p.token = lo;
    return p;
}

static bool lens_is_on(const struct pen *p, size_t begin, size_t end) {
    if (!p->tokens || p->b->number != p->t->lens_block || p->t->lens_token >= p->b->n_tokens) {
        return false;
    }
    size_t k = p->t->lens_token;
    size_t from = p->b->tokens[k].offset;
    size_t to = k + 1 < p->b->n_tokens ? p->b->tokens[k + 1].offset : p->b->text.len;
    return from < end && begin < to;
}

/* How the cluster of bytes [begin, end) of the source looks. */
static void look_at(struct pen *p, size_t begin, size_t end, struct ui_look *look) {
    const struct tr_block *b = p->b;
    if (p->tokens) {
        while (p->token + 1 < b->n_tokens && b->tokens[p->token + 1].offset <= begin) {
            p->token++;
        }
        bool known = b->tokens[p->token].offset <= begin;
        look->role = known ? ui_theme_prob((double)b->tokens[p->token].probability) : UI_PROB_NONE;
        look->attrs = lens_is_on(p, begin, end) ? UI_REVERSE : 0;
    }
    while (p->hit < b->n_hits && b->hits[p->hit].end <= begin) {
        p->hit++;
    }
    if (p->hit < b->n_hits && b->hits[p->hit].begin < end) {
        bool current = b->number == p->t->hit_block && p->hit == p->t->hit_index;
        look->role = current ? UI_HIT_CURRENT : UI_HIT;
    }
}

/* ---- lines ---------------------------------------------------------------------------------- */

static void draw_plain(const struct ui_transcript *t, const struct tr_block *b, struct ui_screen *s,
                       int row, size_t k) {
    const struct ui_line *line = &b->lines[k];
    int col = tr_indent(t);
    if (b->n_hits == 0 && (t->lens_block == 0 || b->n_tokens == 0)) {
        ui_wrap_draw(s, row, col, t->cols, b->text.data, line, text_role(b->kind));
        return;
    }
    struct pen pen = pen_at(t, b, line->begin);
    struct ui_cluster c;
    int start = col;
    for (size_t i = line->begin; i < line->end; i += c.bytes) {
        struct ui_look look = {.role = text_role(b->kind)};
        int copies = 1;
        if (b->text.data[i] == '\t') {
            c = (struct ui_cluster){.bytes = 1, .width = 1, .len = 1, .text = " "};
            copies = UI_TAB - (col - start) % UI_TAB;
        } else {
            ui_cluster_next(b->text.data + i, line->end - i, &c);
        }
        look_at(&pen, i, i + c.bytes, &look);
        while (copies-- > 0) {
            ui_screen_put_look(s, row, col, t->cols, &c, &look);
            col += c.width;
        }
    }
    /* the line end, or the blank at a break, is a token as well */
    if (lens_is_on(&pen, line->end, line->next) && t->lens_token < b->n_tokens &&
        b->tokens[t->lens_token].offset >= line->end) {
        const struct ui_look look = {.role = UI_MARK};
        ui_cluster_next("~", 1, &c);
        ui_screen_put_look(s, row, col, t->cols, &c, &look);
    }
}

/* Returns the columns the line takes. */
static int draw_rendered(const struct ui_transcript *t, const struct tr_block *b,
                         struct ui_screen *s, int row, size_t k) {
    struct md_line line;
    int end = 0, indent = tr_indent(t);
    md_line(b->md, k, &line);
    for (size_t i = 0; i < line.n_spans; i++) {
        const struct md_span *span = &line.spans[i];
        struct ui_look base = {.role = (enum ui_role)md_roles[span->role]};
        base.attrs = (uint8_t)((span->flags & MD_STRONG ? UI_BOLD : 0) |
                               (span->flags & MD_EMPH ? UI_ITALIC : 0) |
                               (span->flags & MD_STRIKE ? UI_STRIKE : 0));
        base.link = span->link != 0 ? ui_screen_link(s, md_link_url(b->md, span->link)) : 0;
        bool hits = b->n_hits > 0 && span->source != SIZE_MAX;
        struct pen pen = pen_at(t, b, hits ? span->source : 0);
        struct ui_cluster c;
        int col = indent + span->col;
        for (size_t at = 0; at < span->len; at += c.bytes) {
            ui_cluster_next(span->text + at, span->len - at, &c);
            struct ui_look look = base;
            if (hits) {
                look_at(&pen, span->source + at, span->source + at + c.bytes, &look);
            }
            if (!ui_screen_put_look(s, row, col, t->cols, &c, &look)) {
                break;
            }
            col += c.width;
        }
        end = col > end ? col : end;
    }
    return end - indent;
}

/* ---- the margin ----------------------------------------------------------------------------- */

/* A label and a bar in the margin, if they fit right of column `from`. */
static bool draw_label(const struct ui_transcript *t, struct ui_screen *s, int row, int from,
                       const char *label) {
    int width = ui_text_width(label, strlen(label), t->cols);
    int col = t->cols - 2 - width;
    if (col <= from) {
        return false;
    }
    ui_screen_puts(s, row, col, t->cols, label, UI_CHANGE);
    return true;
}

/* The width of line k of the body, without drawing it. */
static int line_width(const struct ui_transcript *t, const struct tr_block *b, size_t k) {
    if (!tr_rendered(t, b)) {
        return b->lines[k].width;
    }
    struct md_line line;
    md_line(b->md, k, &line);
    int end = 0;
    for (size_t i = 0; i < line.n_spans; i++) {
        int to = line.spans[i].col + ui_text_width(line.spans[i].text, line.spans[i].len, t->cols);
        end = to > end ? to : end;
    }
    return end;
}

static bool has_marks(const struct ui_transcript *t, const struct tr_block *b) {
    return b->n_marks > 0 && tr_margin(t) >= 2 && !tr_folded(t, b) && tr_n_lines(t, b) > 0;
}

/* Changes whose label found no room in its own line are told beside the heading. */
static void draw_heading_marks(const struct ui_transcript *t, const struct tr_block *b,
                               struct ui_screen *s, int row, int from) {
    struct cw_buf labels = {0};
    for (size_t m = 0; m < b->n_marks; m++) {
        int label = ui_text_width(b->marks[m].label, strlen(b->marks[m].label), t->cols);
        int width = line_width(t, b, tr_line_at(t, b, b->marks[m].offset));
        if (t->cols - 2 - label <= tr_indent(t) + width) {
            cw_buf_printf(&labels, "%s%s", labels.len > 0 ? ", " : "", b->marks[m].label);
        }
    }
    if (labels.len > 0 && !draw_label(t, s, row, from, labels.data)) {
        draw_label(t, s, row, from, b->marks[b->n_marks - 1].label);
    }
    cw_buf_free(&labels);
}

static void draw_mark(const struct ui_transcript *t, const struct tr_block *b, struct ui_screen *s,
                      int row, size_t k, int width) {
    /* the last change on a line is the one that holds from there on */
    for (size_t m = b->n_marks; m-- > 0;) {
        size_t line = tr_line_at(t, b, b->marks[m].offset);
        if (line == k) {
            ui_screen_puts(s, row, t->cols - 1, t->cols, "|", UI_CHANGE);
            draw_label(t, s, row, tr_indent(t) + width, b->marks[m].label);
            break;
        }
        if (line < k) {
            break;
        }
    }
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void draw_heading(struct ui_transcript *t, struct tr_block *b, struct ui_screen *s,
                         int row) {
    char fold[64] = "", lines[96] = "";
    if (tr_folded(t, b)) {
        tr_layout(t, b);
        size_t n = tr_n_lines(t, b);
        snprintf(fold, sizeof fold, "▸ ");
        int at = snprintf(lines, sizeof lines, "%s(%zu line%s", b->heading ? " " : "", n,
                          n == 1 ? "" : "s");
        if (b->n_tokens > 0) {
            at += snprintf(lines + at, sizeof lines - (size_t)at, ", %zu token%s", b->n_tokens,
                           b->n_tokens == 1 ? "" : "s");
        }
        snprintf(lines + at, sizeof lines - (size_t)at, ")");
    } else if (b->kind == UI_BLOCK_THINKING && b->finished) {
        snprintf(fold, sizeof fold, "▾ ");
    }
    int col = t->cols >= 12 ? 1 : 0;
    enum ui_role role = heading_role(b->kind);
    col = ui_screen_puts(s, row, col, t->cols, fold, role);
    col = ui_screen_puts(s, row, col, t->cols, b->heading ? b->heading : "", role);
    col = ui_screen_puts(s, row, col, t->cols, lines, role);
    if (b->note != NULL) {
        col = ui_screen_puts(s, row, col + 2, t->cols, b->note, UI_DIM);
    }
    if (!tr_folded(t, b) && has_marks(t, b)) {
        draw_heading_marks(t, b, s, row, col);
    }
}

static void draw_line(const struct ui_transcript *t, const struct tr_block *b, struct ui_screen *s,
                      int row, size_t k) {
    int width;
    if (tr_rendered(t, b)) {
        width = draw_rendered(t, b, s, row, k);
    } else {
        draw_plain(t, b, s, row, k);
        width = b->lines[k].width;
    }
    if (has_marks(t, b)) {
        draw_mark(t, b, s, row, k, width);
    }
}

/* What stands in the first column of line k. */
static void draw_side(const struct ui_transcript *t, const struct tr_block *b, struct ui_screen *s,
                      int row, size_t k, size_t code_begin, size_t code_end) {
    if (tr_indent(t) == 0) {
        return;
    }
    size_t begin = tr_line_source(t, b, k);
    size_t end = k + 1 < tr_n_lines(t, b) ? tr_line_source(t, b, k + 1) : b->text.len;
    bool picked = t->pick == UI_PICK_MESSAGE && t->pick_block == b->number;
    if (code_begin < code_end) {
        picked = tr_rendered(t, b) ? md_line_code(b->md, k) == t->pick_code + 1
                                   : begin < code_end && end > code_begin;
    }
    if (picked) {
        ui_screen_puts(s, row, 0, t->cols, "▌", UI_PICKED);
    } else if (t->hit_block == b->number && t->hit_index < b->n_hits &&
               b->hits[t->hit_index].begin >= begin && b->hits[t->hit_index].begin < end) {
        ui_screen_puts(s, row, 0, t->cols, "›", UI_PICKED);
    }
}

static void draw_block(struct ui_transcript *t, size_t i, struct ui_screen *s, int row, size_t from,
                       size_t to) {
    struct tr_block *b = &t->blocks[i];
    size_t head = tr_head(t, b), code_begin = 0, code_end = 0;
    size_t lines = tr_folded(t, b) ? 0 : tr_n_lines(t, b);
    tr_picked_code(t, b, &code_begin, &code_end);
    for (size_t r = from; r < to; r++, row++) {
        if (r < head) {
            draw_heading(t, b, s, row);
            if (t->pick == UI_PICK_MESSAGE && t->pick_block == b->number && tr_indent(t) > 0) {
                ui_screen_puts(s, row, 0, t->cols, "▌", UI_PICKED);
            }
        } else if (r - head < lines) {
            draw_line(t, b, s, row, r - head);
            draw_side(t, b, s, row, r - head, code_begin, code_end);
        }
    }
}

/* Where the view is in the whole, by what is known of it without laying it out. While it follows a
 * reply there is none: it would change with every line, and costs more than the line. */
static void draw_scrollbar(struct ui_transcript *t, struct ui_screen *s, int row, size_t top,
                           size_t top_row) {
    size_t before = 0, total = 0;
    for (size_t i = 0; i < t->n; i++) {
        before += i < top ? tr_rows_guess(t, i) : 0;
        total += tr_rows_guess(t, i);
    }
    before += top_row;
    size_t height = (size_t)t->rows;
    size_t most = total > height + before ? total - height : before + 1; /* rows above the end */
    size_t thumb = height * height / (most + height);
    thumb = thumb < 1 ? 1 : thumb;
    size_t room = height - thumb, at = room; /* rows above it; all of them at the end alone */
    if (!t->follow) {
        at = before == 0 || room < 2 ? 0 : 1 + (before - 1) * (room - 1) / most;
    }
    for (size_t r = 0; r < thumb; r++) {
        ui_screen_puts(s, row + (int)(at + r), t->cols - 1, t->cols, "┃", UI_SCROLLBAR);
    }
}

void ui_transcript_draw(struct ui_transcript *t, struct ui_screen *s, int row) {
    size_t top, top_row;
    bool more = tr_view(t, &top, &top_row);
    bool running = t->follow && t->n > 0 && !t->blocks[t->n - 1].finished;
    if (more && !running && tr_margin(t) > 0 && t->rows > 1) {
        draw_scrollbar(t, s, row, top, top_row);
    }
    size_t left = (size_t)t->rows;
    for (size_t i = top; i < t->n && left > 0; i++) {
        size_t rows = tr_rows(t, i);
        size_t to = rows - top_row < left ? rows : top_row + left;
        draw_block(t, i, s, row, top_row, to);
        row += (int)(to - top_row);
        left -= to - top_row;
        top_row = 0;
    }
}
