/* SPDX-License-Identifier: MIT
 *
 * What must hold however a message comes: the same lines in the end, settled ones never change, no
 * text is lost at any width, and the work is linear in the text, whatever it is.
 */
#include <check.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "md_text.h"
#include "ui/cluster.h"
#include "ui/markdown/md_internal.h"

static uint64_t random_state = 1;

static size_t pick(size_t n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(random_state >> 33) % n;
}

/* Every construct in one message, with wide, joined and combining characters. */
static const char everything[] =
    "# Title *with* `code`\n"
    "Some **bold _and_ text**, ~~gone~~, a [link](https://example.org/a_b) and https://b.c/d.\n"
    "Second line  \nafter a hard break, &amp; \\*escaped\\*\n\n"
    "- one\n- two, with a line that is long enough to be wrapped at most widths there are\n"
    "  - nested\n\n    ```python\n    def f(x):\n    \treturn \"\"\"a\n    b\"\"\"\n\n    ```\n"
    "  - [ ] open\n  - [x] done\n\n"
    "9. nine\n10. ten\n\n"
    "> quote **q**\n> more\n>\n> - item\nlazy\n\n"
    "| a | b **c** | right |\n|---|:-:|--:|\n| 1 | `x\\|y` | 3 |\n"
    "| a long cell that has to wrap | \xe6\xbc\xa2\xe5\xad\x97 | 44 | more |\n\n"
    "***\n    indented\n\n    code\n\n\n<div>\nhtml *x*\n</div>\n\nSetext\nof two\n---\n"
    "\xe6\xbc\xa2\xe5\xad\x97 e\xcc\x81 \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x9a\x80 \xff\x80 "
    "end\r\n"
    "cr\rlf\r\n\r\n~~~ c\n/* open\n   comment */ int x;\n~~~~\n"
    "![image](http://i.j/k.png) <https://l.m>\n\n+ a\n+\n+ b\n\n  c\n\n-\n\nlast *line";

/* Feed s in pieces of at most `max` bytes (0: at once), laying out now and then, and write all
 * lines at `width`. On the way settled lines are compared with what they are in the end. */
static void render(const char *s, size_t n, size_t max, int width, struct cw_buf *out) {
    struct md *m = md_create(NULL);
    struct cw_buf settled = {0};
    cw_buf_puts(&settled, "");
    size_t n_settled = 0;
    for (size_t i = 0; i < n;) {
        size_t piece = max == 0 ? n : 1 + pick(max);
        piece = piece < n - i ? piece : n - i;
        md_append(m, s + i, piece);
        i += piece;
        if (max > 0 && (max == 1 || pick(3) == 0)) {
            md_layout(m, width);
            ck_assert_uint_ge(md_n_settled(m), n_settled);
            ck_assert_uint_le(md_n_settled(m), md_n_lines(m));
            for (; n_settled < md_n_settled(m); n_settled++) {
                md_text_line(m, n_settled, true, &settled);
                cw_buf_putc(&settled, '\n');
            }
        }
    }
    md_finish(m);
    md_layout(m, width);
    ck_assert_uint_eq(md_n_settled(m), md_n_lines(m));
    cw_buf_clear(out);
    cw_buf_puts(out, "");
    md_text_lines(m, md_n_lines(m), true, out);
    ck_assert_msg(settled.len <= out->len && memcmp(settled.data, out->data, settled.len) == 0,
                  "settled lines changed: %s\ninto: %s", settled.data, out->data);
    cw_buf_free(&settled);
    md_destroy(m);
}

static void check_pieces(const char *s, size_t n, int width) {
    struct cw_buf whole = {0}, pieces = {0};
    render(s, n, 0, width, &whole);
    static const size_t sizes[] = {1, 3, 17, 200};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        render(s, n, sizes[k], width, &pieces);
        ck_assert_msg(pieces.len == whole.len && memcmp(pieces.data, whole.data, whole.len) == 0,
                      "pieces of up to %zu at width %d:\n%s\ninstead of\n%s", sizes[k], width,
                      pieces.data, whole.data);
    }
    cw_buf_free(&whole);
    cw_buf_free(&pieces);
}

START_TEST(pieces_do_not_matter) {
    static const int widths[] = {1, 2, 7, 11, 12, 13, 20, 40, 80, 200};
    check_pieces(everything, sizeof everything - 1, widths[_i]);
}
END_TEST

/* Bytes drawn at random from what means something. */
static void random_text(struct cw_buf *out, size_t n) {
    static const char *const parts[] = {
        "a",         "b ",    "\n",       "\n",
        "\n\n",      "*",     "**",       "_",
        "`",         "```",   "\n```\n",  "> ",
        "- ",        "1. ",   "|",        "|-|",
        "\n|-|-|\n", "#",     "# ",       "    ",
        "\t",        "[",     "](",       ")",
        "<",         ">",     "<b>",      "~",
        "~~~\n",     "\\",    "&amp;",    "http://a.b ",
        "---\n",     "===\n", "\xc3\xa9", "\xe6\xbc\xa2",
        "\xff",      "\r",    "\r\n",     "[ ] ",
        "!",         "\x1b",  "<!--",     "word word word word word word",
    };
    while (out->len < n) {
        cw_buf_puts(out, parts[pick(sizeof parts / sizeof parts[0])]);
    }
}

START_TEST(pieces_do_not_matter_in_random_text) {
    struct cw_buf text = {0};
    random_state = (uint64_t)_i + 1;
    for (int k = 0; k < 60; k++) {
        cw_buf_clear(&text);
        random_text(&text, 1 + pick(300));
        check_pieces(text.data, text.len, 1 + (int)pick(60));
    }
    cw_buf_free(&text);
}
END_TEST

/* Lines laid out bit by bit are those of a layout from scratch, the unfinished rest included. */
START_TEST(laying_out_often_is_laying_out_once) {
    static const int widths[] = {30, 7, 12};
    const int width = widths[_i];
    struct cw_buf often = {0}, once = {0};
    struct md *m = md_create(NULL);
    for (size_t i = 0; i + 1 < sizeof everything; i++) {
        md_append(m, everything + i, 1);
        md_layout(m, width);
        struct md *fresh = md_create(NULL);
        md_append(fresh, everything, i + 1);
        md_layout(fresh, width);
        cw_buf_clear(&often);
        cw_buf_clear(&once);
        md_text_lines(m, md_n_lines(m), true, &often);
        md_text_lines(fresh, md_n_lines(fresh), true, &once);
        ck_assert_msg(often.len == once.len && memcmp(often.data, once.data, once.len) == 0,
                      "after %zu bytes:\n%s\ninstead of\n%s", i + 1, often.data, once.data);
        size_t source = 0;
        for (size_t k = 0; k < md_n_lines(m); k++) {
            ck_assert_uint_ge(md_line_source(m, k), source);
            source = md_line_source(m, k);
        }
        ck_assert_uint_le(source, i + 1);
        md_destroy(fresh);
    }
    md_destroy(m);
    cw_buf_free(&often);
    cw_buf_free(&once);
}
END_TEST

/* The same for random text in few columns, where beginnings that turn out to be something else take
 * several lines. */
START_TEST(laying_out_often_random_text) {
    struct cw_buf text = {0}, often = {0}, once = {0};
    random_state = (uint64_t)_i + 1000;
    for (int k = 0; k < 40; k++) {
        cw_buf_clear(&text);
        for (size_t j = pick(3); j > 0; j--) {
            cw_buf_puts(&text, pick(2) == 0 ? "12345678. x\n" : "- aaaaaaaaaa\n  1. bbbbbbbb\n");
        }
        random_text(&text, text.len + 1 + pick(60));
        int width = 1 + (int)pick(14);
        struct md *m = md_create(NULL);
        for (size_t i = 0; i < text.len; i++) {
            md_append(m, text.data + i, 1);
            md_layout(m, width);
            struct md *fresh = md_create(NULL);
            md_append(fresh, text.data, i + 1);
            md_layout(fresh, width);
            cw_buf_clear(&often);
            cw_buf_clear(&once);
            md_text_lines(m, md_n_lines(m), true, &often);
            md_text_lines(fresh, md_n_lines(fresh), true, &once);
            ck_assert_msg(often.len == once.len &&
                              (once.len == 0 || memcmp(often.data, once.data, once.len) == 0),
                          "after %zu bytes of\n%s\nat %d:\n%s\ninstead of\n%s", i + 1, text.data,
                          width, often.data, once.data);
            md_destroy(fresh);
        }
        size_t source = 0;
        for (size_t i = 0; i < md_n_lines(m); i++) {
            ck_assert_uint_ge(md_line_source(m, i), source);
            source = md_line_source(m, i);
        }
        ck_assert_uint_le(source, text.len);
        md_destroy(m);
    }
    cw_buf_free(&text);
    cw_buf_free(&often);
    cw_buf_free(&once);
}
END_TEST

START_TEST(a_width_can_change_at_any_time) {
    struct cw_buf moved = {0}, once = {0};
    struct md *m = md_create(NULL);
    for (size_t i = 0; i + 1 < sizeof everything; i++) {
        md_append(m, everything + i, 1);
        md_layout(m, 1 + (int)pick(90));
    }
    md_finish(m);
    md_layout(m, 33);
    md_text_lines(m, md_n_lines(m), true, &moved);
    render(everything, sizeof everything - 1, 0, 33, &once);
    ck_assert_str_eq(moved.data, once.data);
    md_destroy(m);
    cw_buf_free(&moved);
    cw_buf_free(&once);
}
END_TEST

/* ---- No text is lost. ---- */

/* What is drawn of roles that carry the text, without blanks: the bytes in order. */
static void visible_text(struct md *m, struct cw_buf *out) {
    for (size_t i = 0; i < md_n_lines(m); i++) {
        struct md_line line;
        md_line(m, i, &line);
        for (size_t k = 0; k < line.n_spans; k++) {
            const struct md_span *s = &line.spans[k];
            bool frame = s->role == MD_CODE_BOX || s->role == MD_CODE_LANG || s->role == MD_RULE ||
                         s->role == MD_TABLE_RULE || s->role == MD_QUOTE_BAR;
            for (size_t j = 0; !frame && j < s->len; j++) {
                if (s->text[j] != ' ') {
                    cw_buf_putc(out, s->text[j]);
                }
            }
        }
    }
}

static int compare_bytes(const void *a, const void *b) {
    return *(const char *)a - *(const char *)b;
}

/* Cells that wrap side by side change the order of the bytes, so they are counted. */
START_TEST(no_width_loses_text) {
    struct cw_buf want = {0}, got = {0};
    for (int width = 200; width >= 1; width--) {
        struct md *m = md_create(NULL);
        md_append(m, everything, sizeof everything - 1);
        md_finish(m);
        md_layout(m, width);
        cw_buf_clear(&got);
        visible_text(m, &got);
        qsort(got.data, got.len, 1, compare_bytes);
        if (width == 200) {
            ck_assert_uint_gt(got.len, 400);
            cw_buf_add(&want, got.data, got.len);
        }
        ck_assert_msg(got.len == want.len && memcmp(got.data, want.data, want.len) == 0,
                      "width %d: %zu bytes instead of %zu", width, got.len, want.len);
        md_destroy(m);
    }
    cw_buf_free(&want);
    cw_buf_free(&got);
}
END_TEST

/* Words that stand in the source must stand on the screen, in all kinds of blocks. */
START_TEST(every_word_of_the_source_is_shown) {
    struct cw_buf text = {0}, got = {0};
    random_state = (uint64_t)_i + 77;
    static const char *const begins[] = {"",       "> ",     "- ",    "1. ",   "# ",    "    ",
                                         "| ",     "- [ ] ", "```\n", "|-|\n", "<p>\n", "**",
                                         "text `", "\t",     "\n",    "\n\n",  "> - ",  "~~~\n",
                                         "~~",     "[",      "***\n", "===\n", "![]",   "| |\n"};
    for (int k = 0; k < 200; k++) {
        cw_buf_clear(&text);
        cw_buf_clear(&got);
        size_t n_words = 1 + pick(12);
        for (size_t w = 0; w < n_words; w++) {
            cw_buf_puts(&text, begins[pick(sizeof begins / sizeof begins[0])]);
            cw_buf_printf(&text, "w%zux%s", w, pick(2) == 0 ? "\n" : " ");
        }
        struct md *m = md_create(NULL);
        md_append(m, text.data, text.len);
        if (pick(2) == 0) {
            md_finish(m);
        }
        md_layout(m, 1 + (int)pick(100));
        visible_text(m, &got);
        cw_buf_puts(&got, "");
        /* the info string of a fence stands in its frame, a word of it */
        for (size_t i = 0; i < md_n_code_blocks(m); i++) {
            struct md_code_block code;
            ck_assert(md_code_block(m, i, &code));
            cw_buf_puts(&got, code.language);
        }
        for (size_t w = 0; w < n_words; w++) {
            char word[32];
            snprintf(word, sizeof word, "w%zux", w);
            if (strstr(got.data, word) == NULL && md_n_lines(m) > 0) {
                /* wrapped in a cell beside another: its letters are apart */
                bool table = m->tables.n > 0;
                ck_assert_msg(table, "%s is missing from\n%s\n:\n%s", word, text.data, got.data);
            }
        }
        md_destroy(m);
    }
    cw_buf_free(&text);
    cw_buf_free(&got);
}
END_TEST

/* ---- Long lines and leaves. ---- */

/* `n` bytes of a pattern. */
static void fill(struct cw_buf *out, const char *pattern, size_t n) {
    size_t len = strlen(pattern);
    for (size_t i = 0; i < n; i++) {
        cw_buf_putc(out, pattern[i % len]);
    }
}

/* Text that begins with `head`, is long, and ends with `tail`. */
static const struct {
    const char *head, *pattern, *tail;
} longs[] = {
    {"", "word ", "\nmore *x*\n\nnext"},
    {"", "word\n", "end\n===\n- a\n"},
    {"> - ", "w", "\nlazy\n\n- a"},
    {"", " ", "x\n\ny"},
    {"\t", " ", "x\n\ny"},
    {"- ", " ", "x\n  y"},
    {"# ", "title ", "\n\ntext"},
    {"```\n", "code", "\n```\nafter"},
    {"- ```c\n  ", "int x; ", "\n  int y;\n  ```\n"},
    {"    ", "indented ", "\n    more\nafter"},
    {"<div>\n", "<b>", "\n</div>\n\n*after*"},
    {"<!-- ", "x", "-->\n*after*\n-->\n*that*"},
    {"a|b\n-|-\n", "1|2\n", "3|4\n\nafter"},
    {"a|b\n-|-\n", "x|", "\n\nafter"},
    {"", "-", "\ntext"},
    {"```", "`", "\ntext\n```\nx"},
    {"> ", "> ", "x\n\ny"},
    {"", "\xe6\xbc\xa2\xe5\xad\x97 ", "\n\ny"},
};

START_TEST(long_text_is_shown_as_it_is) {
    static const size_t sizes[] = {MD_LEAF_MAX - 40, MD_LEAF_MAX - 1, MD_LEAF_MAX,
                                   MD_LEAF_MAX + 1,  MD_LEAF_MAX + 2, 3 * MD_LEAF_MAX};
    struct cw_buf text = {0}, whole = {0}, pieces = {0}, visible = {0}, plain = {0};
    random_state = (uint64_t)_i + 5;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        cw_buf_clear(&text);
        cw_buf_puts(&text, longs[_i].head);
        size_t head = text.len;
        fill(&text, longs[_i].pattern, sizes[k] - head);
        cw_buf_puts(&text, longs[_i].tail);
        render(text.data, text.len, 0, 70, &whole);
        render(text.data, text.len, 900, 70, &pieces);
        ck_assert_msg(whole.len == pieces.len && memcmp(whole.data, pieces.data, whole.len) == 0,
                      "%s%s, %zu bytes", longs[_i].head, longs[_i].pattern, sizes[k]);
    }
    cw_buf_free(&text);
    cw_buf_free(&whole);
    cw_buf_free(&pieces);
    cw_buf_free(&visible);
    cw_buf_free(&plain);
}
END_TEST

START_TEST(a_long_line_settles_before_it_ends) {
    struct md *m = md_create(NULL);
    struct cw_buf text = {0};
    fill(&text, "word ", 100000);
    for (size_t i = 0; i < text.len; i += 1000) {
        md_append(m, text.data + i, 1000);
        md_layout(m, 50);
        if (i + 1000 > MD_LEAF_MAX) {
            ck_assert_uint_eq(md_n_settled(m), md_n_lines(m) - 1);
        }
    }
    ck_assert_uint_eq(md_n_lines(m), 2000);
    md_append(m, "\n*more*\n", 8);
    md_layout(m, 50);
    ck_assert_uint_eq(md_n_lines(m), 2001);
    struct cw_buf last = {0};
    md_text_line(m, 2000, true, &last);
    ck_assert_str_eq(last.data, "*more*"); /* the same paragraph */
    cw_buf_free(&last);
    cw_buf_free(&text);
    md_destroy(m);
}
END_TEST

START_TEST(a_leaf_is_parsed_up_to_its_limit) {
    for (int over = 0; over < 2; over++) {
        struct cw_buf text = {0};
        fill(&text, "some text\n", MD_LEAF_MAX - 8);
        cw_buf_puts(&text, over ? " **text**" : "**text**");
        struct md *m = md_create(NULL);
        md_append(m, text.data, text.len);
        md_finish(m);
        md_layout(m, 80);
        struct cw_buf got = {0};
        md_text_lines(m, md_n_lines(m), true, &got);
        ck_assert_int_eq(strstr(got.data, "<*:text>") != NULL, !over);
        ck_assert_int_eq(strstr(got.data, "**text**") != NULL, over);
        cw_buf_free(&got);
        cw_buf_free(&text);
        md_destroy(m);
    }
}
END_TEST

/* ---- Work. ---- */

static const struct {
    const char *pattern;
    size_t line, gap; /* newline after so many bytes, an empty line after so many of those */
} hostile[] = {
    {"![[]()", 0, 0},  {"|", 0, 0},           {"> ", 0, 0},        {"*_", 0, 0},
    {"![[]()", 78, 0}, {"|", 78, 0},          {"> ", 78, 0},       {"*_", 78, 0},
    {"![[]()", 78, 5}, {"*_", 78, 5},         {"![[]()", 78, 200}, {"*_", 78, 200},
    {"<?", 78, 200},   {"<!A ", 78, 200},     {"`a``b", 78, 200},  {"[a](<b", 78, 200},
    {"- ", 0, 0},      {"- ", 78, 0},         {"1. ", 78, 0},      {"\n", 0, 0},
    {"a\n", 0, 0},     {"-\n", 0, 0},         {"|-|\n", 0, 0},     {"a|b\n-|-\n", 0, 0},
    {">\n", 0, 0},     {"```\n", 0, 0},       {"    a\n", 0, 0},   {"<!--\n", 0, 0},
    {"\t", 0, 0},      {" ", 0, 0},           {"&amp;", 78, 200},  {"\\", 78, 200},
    {"www.", 78, 200}, {"http://a", 78, 200}, {"#\n", 0, 0},       {"\r", 0, 0},
    {"a  \n", 0, 0},   {"- a\n\n", 0, 0},     {"~~a ", 78, 200},   {"]", 78, 200},
};

/* Bytes that were wrapped, parsed or copied, for each byte of the message; and no parse of more
 * than a leaf, or of one that is all marks. */
START_TEST(work_is_linear) {
    enum { BYTES = 1 << 18, PIECE = 64 };
    struct cw_buf text = {0};
    size_t len = strlen(hostile[_i].pattern), col = 0, lines = 0;
    for (size_t i = 0; text.len < BYTES; i++) {
        if (hostile[_i].line > 0 && col >= hostile[_i].line && i % len == 0) {
            bool gap = hostile[_i].gap > 0 && ++lines % hostile[_i].gap == 0;
            cw_buf_puts(&text, gap ? "\n\n" : "\n");
            col = 0;
        }
        cw_buf_putc(&text, hostile[_i].pattern[i % len]);
        col++;
    }
    struct md *m = md_create(NULL);
    for (size_t i = 0; i < text.len; i += PIECE) {
        md_append(m, text.data + i, PIECE < text.len - i ? PIECE : text.len - i);
        md_layout(m, 80);
    }
    md_finish(m);
    md_layout(m, 80);
    ck_assert_uint_le(m->work.parsed, text.len + 1);
    ck_assert_uint_le(m->work.most_marks, 1024);
    ck_assert_msg(m->work.wrapped <= 4 * text.len, "%zu bytes wrapped", m->work.wrapped);
    ck_assert_msg(m->text.len <= 4 * text.len, "%zu bytes of text", m->text.len);
    ck_assert_msg(m->blocks.n + m->runs.n + m->places.n <= 8 * text.len, "%zu blocks, %zu runs",
                  m->blocks.n, m->runs.n);
    cw_buf_free(&text);
    md_destroy(m);
}
END_TEST

/* Many columns and rows that fill one of them: what is kept is what was written. */
START_TEST(a_sparse_table_is_small) {
    struct cw_buf text = {0};
    fill(&text, "a|", 80);
    cw_buf_putc(&text, '\n');
    fill(&text, "-|", 80);
    cw_buf_putc(&text, '\n');
    fill(&text, "b\n", 12000);
    struct md *m = md_create(NULL);
    md_append(m, text.data, text.len);
    md_finish(m);
    md_layout(m, 200);
    ck_assert_uint_eq(m->tables.n, 1);
    ck_assert_uint_eq(md_n_lines(m), 6002);
    ck_assert_uint_le(m->segments.n + m->cells.n + m->rows.n, 4 * 6002);
    struct cw_buf got = {0};
    md_text_line(m, 6001, false, &got);
    ck_assert_int_eq(got.data[0], 'b');
    cw_buf_free(&got);
    cw_buf_free(&text);
    md_destroy(m);
}
END_TEST

int main(void) {
    setlocale(LC_ALL, "C.UTF-8");
    Suite *s = suite_create("md_stream");
    TCase *t = tcase_create("pieces");
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, pieces_do_not_matter, 0, 10);
    tcase_add_loop_test(t, pieces_do_not_matter_in_random_text, 0, 10);
    tcase_add_loop_test(t, laying_out_often_is_laying_out_once, 0, 3);
    tcase_add_loop_test(t, laying_out_often_random_text, 0, 10);
    tcase_add_test(t, a_width_can_change_at_any_time);
    suite_add_tcase(s, t);
    t = tcase_create("nothing is lost");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, no_width_loses_text);
    tcase_add_loop_test(t, every_word_of_the_source_is_shown, 0, 10);
    suite_add_tcase(s, t);
    t = tcase_create("limits");
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, long_text_is_shown_as_it_is, 0, (int)(sizeof longs / sizeof longs[0]));
    tcase_add_test(t, a_long_line_settles_before_it_ends);
    tcase_add_test(t, a_leaf_is_parsed_up_to_its_limit);
    tcase_add_test(t, a_sparse_table_is_small);
    tcase_add_loop_test(t, work_is_linear, 0, (int)(sizeof hostile / sizeof hostile[0]));
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
