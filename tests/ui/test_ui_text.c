/* SPDX-License-Identifier: MIT
 *
 * Clusters, the grid, line breaking and the transcript, without a terminal.
 */
#include <check.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/transcript.h"

static void use_utf8(void) {
    ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
}

/* ---- clusters ------------------------------------------------------------------------------- */

static const struct {
    const char *text;
    size_t bytes;
    int width;
    bool joined, mark;
    const char *shown;
} clusters[] = {
    {"a", 1, 1, false, false, "a"},
    {"ab", 1, 1, false, false, "a"},
    {"\xe4\xb8\xad", 3, 2, false, false, "\xe4\xb8\xad"}, /* CJK */
    {"e\xcc\x81x", 3, 1, false, false, "e\xcc\x81"},      /* e and an accent */
    {"\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7!", 18, 6, true,
     false,
     "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7"}, /* family */
    {"\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa\xf0\x9f\x87\xab", 8, 2, true, false,
     "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa"}, /* a flag, then half a one */
    {"\xf0\x9f\x85\xb1\xef\xb8\x8f", 7, 1, true, false, "\xf0\x9f\x85\xb1\xef\xb8\x8f"}, /* VS16 */
    {"\x1b[", 1, 2, false, true, "^["},
    {"\x7f", 1, 2, false, true, "^?"},
    {"\xc2\x9b", 2, 6, false, true, "\\u{9b}"},       /* C1 */
    {"\xe2\x80\xae", 3, 8, false, true, "\\u{202e}"}, /* override */
    {"\xe2\x81\xa6", 3, 8, false, true, "\\u{2066}"}, /* isolate */
    {"\xff", 1, 4, false, true, "\\xff"},
    {"\xe4\xb8", 1, 4, false, true, "\\xe4"},                 /* half a character */
    {"\xcd\xb8", 2, 1, false, true, "\xef\xbf\xbd"},          /* unassigned U+0378 */
    {"\xe2\x80\x8b", 3, 0, false, false, ""},                 /* zero-width space */
    {"\xcc\x81z", 2, 1, false, false, " \xcc\x81"},           /* a mark without a base */
    {"\xd7\xa9\xe2\x80\x8f", 2, 1, false, false, "\xd7\xa9"}, /* RLM stands alone */
};

START_TEST(cluster_table) {
    use_utf8();
    struct ui_cluster c;
    ui_cluster_next(clusters[_i].text, strlen(clusters[_i].text), &c);
    ck_assert_uint_eq(c.bytes, clusters[_i].bytes);
    ck_assert_int_eq(c.width, clusters[_i].width);
    ck_assert_int_eq(c.joined, clusters[_i].joined);
    ck_assert_int_eq(c.mark, clusters[_i].mark);
    ck_assert_uint_eq(c.len, strlen(clusters[_i].shown));
    ck_assert_mem_eq(c.text, clusters[_i].shown, c.len);
}
END_TEST

/* Whatever the bytes: a step forward, a bounded width, and nothing but printable text. */
START_TEST(cluster_any_bytes) {
    use_utf8();
    uint32_t seed = 12345;
    for (int round = 0; round < 20000; round++) {
        char s[24];
        size_t n = 1 + round % sizeof s;
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            s[i] = (char)(seed >> 24);
            if (round % 3 == 0 && i % 4 == 0) {
                s[i] = (char)0xf0; /* more of the long ones */
            }
        }
        for (size_t i = 0; i < n;) {
            struct ui_cluster c;
            ui_cluster_next(s + i, n - i, &c);
            ck_assert_uint_ge(c.bytes, 1);
            ck_assert_uint_le(c.bytes, n - i);
            ck_assert_int_le(c.width, UI_CLUSTER_COLUMNS);
            for (int k = 0; k < c.len; k++) {
                unsigned char b = (unsigned char)c.text[k];
                ck_assert(b >= 0x20 && b != 0x7f);
                ck_assert(!(b == 0xc2 && (unsigned char)c.text[k + 1] < 0xa0)); /* C1 */
            }
            i += c.bytes;
        }
    }
}
END_TEST

START_TEST(cluster_bounded) {
    use_utf8();
    struct cw_buf s = {0};
    cw_buf_putc(&s, 'e');
    for (int i = 0; i < 100000; i++) {
        cw_buf_puts(&s, "\xcc\x81");
    }
    struct ui_cluster c;
    ui_cluster_next(s.data, s.len, &c);
    ck_assert_uint_lt(c.bytes, 1000);
    ck_assert_int_eq(c.width, 1);
    ck_assert_uint_le(c.len, UI_CLUSTER_BYTES);
    cw_buf_free(&s);
}
END_TEST

START_TEST(cluster_borders) {
    use_utf8();
    const char *s = "ae\xcc\x81\xe4\xb8\xad"; /* a, e with accent (1..4), CJK (4..7) */
    size_t n = strlen(s);
    ck_assert_uint_eq(ui_cluster_floor(s, n, 2), 1);
    ck_assert_uint_eq(ui_cluster_ceil(s, n, 2), 4);
    ck_assert_uint_eq(ui_cluster_floor(s, n, 4), 4);
    ck_assert_uint_eq(ui_cluster_before(s, n, 7), 4);
    ck_assert_uint_eq(ui_cluster_before(s, n, 4), 1);
    ck_assert_uint_eq(ui_cluster_after(s, n, 1), 4);
    ck_assert_uint_eq(ui_cluster_after(s, n, n), n);
    ck_assert_uint_eq(ui_cluster_before(s, n, 0), 0);
}
END_TEST

/* ---- the grid ------------------------------------------------------------------------------- */

static void assert_row(const struct ui_screen *s, int row, const char *want) {
    struct cw_buf got = {0};
    ui_screen_row_text(s, row, &got);
    ck_assert_str_eq(got.data ? got.data : "", want);
    cw_buf_free(&got);
}

/* Every cell of width w > 1 is followed by w - 1 covered ones, and no others are covered. */
static void assert_consistent(const struct ui_screen *s) {
    for (int row = 0; row < s->rows; row++) {
        for (int col = 0; col < s->cols;) {
            int width = ui_screen_at(s, row, col)->width;
            ck_assert_int_ge(width, 1);
            ck_assert_int_le(col + width, s->cols);
            for (int i = 1; i < width; i++) {
                ck_assert_int_eq(ui_screen_at(s, row, col + i)->width, 0);
            }
            col += width;
        }
    }
}

START_TEST(screen_clips) {
    use_utf8();
    struct ui_screen s;
    ui_screen_init(&s, 2, 7);
    ck_assert_int_eq(ui_screen_puts(&s, 0, 0, 100, "\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97!", 0),
                     6 + 1);
    assert_row(&s, 0, "\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97!");
    ui_screen_clear(&s);
    /* the fourth would stand half outside: it is not drawn */
    ui_screen_puts(&s, 0, 0, 100, "\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97\xe5\xad\x97", 0);
    assert_row(&s, 0, "\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97");
    ui_screen_puts(&s, 5, 0, 100, "below", 0);
    ui_screen_puts(&s, -1, 0, 100, "above", 0);
    ui_screen_puts(&s, 1, -2, 100, "abcdef", 0); /* two columns to the left */
    assert_row(&s, 1, "cdef");
    ui_screen_puts(&s, 1, 3, 5, "xyz", 0);
    assert_row(&s, 1, "cdexy");
    assert_consistent(&s);
    ui_screen_free(&s);
}
END_TEST

START_TEST(screen_overwrites_halves) {
    use_utf8();
    struct ui_screen s;
    ui_screen_init(&s, 1, 8);
    ui_screen_puts(&s, 0, 0, 8, "\xe4\xb8\xad\xe6\x96\x87", 0);
    ui_screen_puts(&s, 0, 1, 8, "ab", 0); /* the right half of one, the left half of the next */
    assert_row(&s, 0, " ab");
    assert_consistent(&s);
    ui_screen_puts(&s, 0, 0, 8, "xxxxxxx", 0);
    ui_screen_puts(&s, 0, 2, 8, "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9", 0); /* 4 wide */
    assert_row(&s, 0, "xx\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9x");
    ui_screen_puts(&s, 0, 4, 8, "y", 0);
    assert_row(&s, 0, "xx  y x");
    assert_consistent(&s);
    ui_screen_free(&s);
}
END_TEST

START_TEST(screen_random) {
    use_utf8();
    static const char *const texts[] = {"a",
                                        "\xe4\xb8\xad",
                                        "\x1b",
                                        "e\xcc\x81",
                                        "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9",
                                        "\xe2\x80\xae"};
    struct ui_screen s;
    ui_screen_init(&s, 3, 17);
    uint32_t seed = 99;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1664525 + 1013904223;
        ui_screen_puts(&s, (int)(seed >> 28) % 3, (int)((seed >> 20) & 31) - 4, 17,
                       texts[(seed >> 12) % 6], (enum ui_role)((seed >> 8) % UI_N_ROLES));
    }
    assert_consistent(&s);
    ui_screen_resize(&s, 0, -3);
    ck_assert_int_eq(s.rows, 1);
    ck_assert_int_eq(s.cols, 1);
    ui_screen_puts(&s, 0, 0, 5, "\xe4\xb8\xad", 0); /* does not fit at all */
    assert_row(&s, 0, "");
    ui_screen_free(&s);
}
END_TEST

/* ---- line breaking -------------------------------------------------------------------------- */

/* The lines of a text, joined by '|'. */
static char *wrapped(const char *text, int width, bool words) {
    struct cw_buf out = {0};
    size_t n = strlen(text);
    struct ui_line line;
    for (size_t at = 0; at < n; at = line.next) {
        ui_wrap(text, n, at, width, words, &line);
        ck_assert_uint_gt(line.next, at);
        cw_buf_add(&out, text + line.begin, line.end - line.begin);
        cw_buf_putc(&out, '|');
    }
    return cw_buf_take(&out);
}

static const struct {
    const char *text;
    int width;
    bool words;
    const char *lines;
} wraps[] = {
    {"the quick brown fox", 10, true, "the quick|brown fox|"},
    {"the quick brown fox", 9, true, "the quick|brown fox|"},
    {"the quick  brown", 9, true, "the quick|brown|"},
    {"a\n\nb", 9, true, "a||b|"},
    {"a\r\nb", 9, true, "a|b|"},
    {"abcdefgh", 3, true, "abc|def|gh|"},
    {"ab cdefghij", 5, true, "ab|cdefg|hij|"},
    {"   abc", 4, true, "   a|bc|"}, /* an indent is no place to break */
    {"abc def", 3, true, "abc|def|"},
    {"abc \ndef", 3, true, "abc|def|"}, /* a hanging blank takes its newline along */
    {"the quick", 4, false, "the |quic|k|"},
    {"\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97", 5, true, "\xe4\xb8\xad\xe6\x96\x87|\xe5\xad\x97|"},
    {"\xe4\xb8\xad\xe6\x96\x87", 1, true, "\xe4\xb8\xad|\xe6\x96\x87|"}, /* wider than the line */
    {"a\tb", 8, true, "a\tb|"},
    /* between ideographs, and beside them, also where there is a blank further left */
    {"ab c天空是", 8, true, "ab c天空|是|"},
    {"ab 天空cd", 8, true, "ab 天空|cd|"},
    {"ab 天cde", 7, true, "ab 天|cde|"},
    {"天空是 ab", 8, true, "天空是|ab|"},
    /* no line begins with what closes, nor ends with what opens, if it can be helped */
    {"天空是。蓝", 6, true, "天空|是。蓝|"},
    {"天空。」蓝", 6, true, "天|空。」|蓝|"},
    {"天空（蓝）", 6, true, "天空|（蓝）|"},
    {"天空(蓝)", 5, true, "天空|(蓝)|"},
    {"天，", 2, true, "天|，|"},
    {"コーヒー", 4, true, "コー|ヒー|"},
    {"ッッッ", 4, true, "ッッ|ッ|"},
    {"한국 한국어", 8, true, "한국|한국어|"}, /* Korean has words */
    {"天空是", 4, false, "天空|是|"},
    {"xe\xcc\x81y", 2, true, "xe\xcc\x81|y|"},
};

START_TEST(wrap_table) {
    use_utf8();
    char *got = wrapped(wraps[_i].text, wraps[_i].width, wraps[_i].words);
    ck_assert_str_eq(got, wraps[_i].lines);
    free(got);
}
END_TEST

/* No line is wider than asked (but for a single cluster), and nothing but blanks and line ends is
 * left out. */
START_TEST(wrap_any_text) {
    use_utf8();
    static const char *const parts[] = {
        "a",    "word",         " ",    "  ", "\n",
        "\t",   "\xe4\xb8\xad", "。",   "（", "e\xcc\x81",
        "\x1b", "\xe2\x80\x8b", "\r\n", "\r", "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9"};
    uint32_t seed = 7;
    for (int round = 0; round < 3000; round++) {
        struct cw_buf s = {0};
        for (int i = 0; i < 40; i++) {
            seed = seed * 1664525 + 1013904223;
            cw_buf_puts(&s, parts[(seed >> 16) % (sizeof parts / sizeof parts[0])]);
        }
        int width = 1 + round % 23;
        struct ui_line line;
        size_t at = 0;
        while (at < s.len) {
            ui_wrap(s.data, s.len, at, width, round % 2 == 0, &line);
            ck_assert_uint_eq(line.begin, at);
            ck_assert_uint_le(line.end, line.next);
            ck_assert_uint_gt(line.next, at);
            struct ui_cluster c;
            ui_cluster_next(s.data + at, s.len - at, &c);
            ck_assert(line.width <= width || line.end == at + c.bytes || s.data[at] == '\t');
            for (size_t i = line.end; i < line.next; i++) {
                ck_assert_ptr_nonnull(strchr(" \t\r\n", s.data[i]));
            }
            at = line.next;
        }
        cw_buf_free(&s);
    }
}
END_TEST

/* ---- the transcript ------------------------------------------------------------------------- */

static char *drawn(struct ui_transcript *t, int rows, int cols) {
    struct ui_screen s;
    struct cw_buf out = {0};
    ui_screen_init(&s, rows, cols);
    ui_transcript_resize(t, rows, cols);
    ui_transcript_draw(t, &s, 0);
    assert_consistent(&s);
    for (int row = 0; row < rows; row++) {
        if (ui_screen_at(&s, row, cols - 1)->role == UI_SCROLLBAR) {
            ui_screen_puts(&s, row, cols - 1, cols, " ", UI_TEXT);
        }
        ui_screen_row_text(&s, row, &out);
        cw_buf_putc(&out, '\n');
    }
    ui_screen_free(&s);
    return cw_buf_take(&out);
}

static void add_text(struct ui_transcript *t, enum ui_block_kind kind, const char *heading,
                     const char *text) {
    uint32_t b = ui_transcript_add(t, kind, heading);
    ui_transcript_append(t, b, text, strlen(text));
}

START_TEST(transcript_layout) {
    use_utf8();
    struct ui_transcript *t = ui_transcript_create();
    add_text(t, UI_BLOCK_USER, "you", "Name three colours.");
    add_text(t, UI_BLOCK_REPLY, "model", "Blue, because the sky is never the same twice.");
    char *got = drawn(t, 8, 40);
    ck_assert_str_eq(got, " you\n"
                          "   Name three colours.\n"
                          "\n"
                          " model\n"
                          "   Blue, because the sky is never the\n"
                          "   same twice.\n"
                          "\n"
                          "\n");
    free(got);
    ui_transcript_destroy(t);
}
END_TEST

START_TEST(transcript_mark) {
    use_utf8();
    struct ui_transcript *t = ui_transcript_create();
    uint32_t b = ui_transcript_add(t, UI_BLOCK_REPLY, "model");
    ui_transcript_append(t, b, "one two\n", 8);
    ui_transcript_mark(t, b, "T 0.80 -> 0.95");
    ui_transcript_append(t, b, "three", 5);
    char *got = drawn(t, 3, 40);
    ck_assert_str_eq(got, " model\n"
                          "   one two\n"
                          "   three                T 0.80 -> 0.95 |\n");
    free(got);
    /* no room in its line: the label goes to the heading, the bar stays */
    ui_transcript_append(t, b, " four five six seven eight", 26);
    got = drawn(t, 3, 40);
    ck_assert_str_eq(got, " model                  T 0.80 -> 0.95\n"
                          "   one two\n"
                          "   three four five six seven eight     |\n");
    free(got);
    ui_transcript_destroy(t);
}
END_TEST

/* Text that came in pieces is laid out as if it had come at once, at every width. */
START_TEST(transcript_streams_as_whole) {
    use_utf8();
    static const char *const parts[] = {"word",
                                        " ",
                                        "   ",
                                        "\n",
                                        "\xe4\xb8\xad",
                                        "e",
                                        "\xcc\x81",
                                        "\r",
                                        "\n",
                                        "\xf0\x9f\x91\xa8",
                                        "\xe2\x80\x8d",
                                        "long-long-long-long",
                                        "\t"};
    uint32_t seed = 3;
    for (int round = 0; round < 300; round++) {
        struct ui_transcript *pieces = ui_transcript_create();
        struct ui_transcript *whole = ui_transcript_create();
        struct cw_buf all = {0};
        uint32_t b = ui_transcript_add(pieces, UI_BLOCK_REPLY, "m");
        int cols = 2 + round % 40;
        for (int i = 0; i < 60; i++) {
            seed = seed * 1664525 + 1013904223;
            const char *part = parts[(seed >> 16) % (sizeof parts / sizeof parts[0])];
            cw_buf_puts(&all, part);
            ui_transcript_append(pieces, b, part, strlen(part));
            free(drawn(pieces, 10, cols));
        }
        b = ui_transcript_add(whole, UI_BLOCK_REPLY, "m");
        ui_transcript_append(whole, b, all.data, all.len);
        ui_transcript_finish(pieces, 1);
        ui_transcript_finish(whole, b);
        char *got = drawn(pieces, 100, cols), *want = drawn(whole, 100, cols);
        ck_assert_str_eq(got, want);
        free(got);
        free(want);
        cw_buf_free(&all);
        ui_transcript_destroy(pieces);
        ui_transcript_destroy(whole);
    }
}
END_TEST

START_TEST(transcript_follows_only_at_end) {
    use_utf8();
    struct ui_transcript *t = ui_transcript_create();
    uint32_t b = ui_transcript_add(t, UI_BLOCK_REPLY, NULL);
    char line[16];
    for (int i = 0; i < 30; i++) {
        snprintf(line, sizeof line, "%d\n", i);
        ui_transcript_append(t, b, line, strlen(line));
    }
    char *got = drawn(t, 3, 20);
    ck_assert_str_eq(got, " 27\n 28\n 29\n");
    free(got);
    ui_transcript_scroll(t, -2);
    ck_assert(!ui_transcript_at_end(t));
    got = drawn(t, 3, 20);
    ck_assert_str_eq(got, " 25\n 26\n 27\n");
    free(got);
    ck_assert_uint_eq(ui_transcript_new_lines(t), 0);
    for (int i = 30; i < 35; i++) { /* the view stays where it is */
        snprintf(line, sizeof line, "%d\n", i);
        ui_transcript_append(t, b, line, strlen(line));
    }
    got = drawn(t, 3, 20);
    ck_assert_str_eq(got, " 25\n 26\n 27\n");
    free(got);
    ck_assert_uint_eq(ui_transcript_new_lines(t), 5);
    ui_transcript_page(t, 1);
    ck_assert(!ui_transcript_at_end(t));
    for (int i = 0; i < 10; i++) {
        ui_transcript_page(t, 1);
    }
    ck_assert(ui_transcript_at_end(t));
    got = drawn(t, 3, 20);
    ck_assert_str_eq(got, " 32\n 33\n 34\n");
    free(got);
    ui_transcript_to_start(t);
    got = drawn(t, 3, 20);
    ck_assert_str_eq(got, " 0\n 1\n 2\n");
    free(got);
    ui_transcript_scroll(t, -5); /* nothing above */
    ui_transcript_to_end(t);
    ck_assert(ui_transcript_at_end(t));
    ui_transcript_destroy(t);
}
END_TEST

/* Everything can be reached: scrolling up by a line at a time from the end shows all lines. */
START_TEST(transcript_reaches_all) {
    use_utf8();
    struct ui_transcript *t = ui_transcript_create();
    for (int i = 0; i < 40; i++) {
        char text[64];
        snprintf(text, sizeof text, "question %d", i);
        add_text(t, UI_BLOCK_USER, "you", text);
        add_text(t, UI_BLOCK_REPLY, "m", "a few words of reply that take more than one line");
    }
    bool seen[40] = {false};
    free(drawn(t, 5, 24));
    for (int step = 0; step < 400; step++) {
        char *got = drawn(t, 5, 24);
        for (int i = 0; i < 40; i++) {
            char text[64];
            snprintf(text, sizeof text, "question %d\n", i);
            seen[i] = seen[i] || strstr(got, text) != NULL;
        }
        free(got);
        ui_transcript_scroll(t, -1);
    }
    for (int i = 0; i < 40; i++) {
        ck_assert_msg(seen[i], "question %d was never shown", i);
    }
    ui_transcript_destroy(t);
}
END_TEST

START_TEST(transcript_keeps_place_on_resize) {
    use_utf8();
    struct ui_transcript *t = ui_transcript_create();
    struct cw_buf text = {0};
    for (int i = 0; i < 500; i++) {
        cw_buf_printf(&text, "word%03d ", i);
    }
    uint32_t b = ui_transcript_add(t, UI_BLOCK_REPLY, NULL);
    ui_transcript_append(t, b, text.data, text.len);
    free(drawn(t, 5, 60));
    ui_transcript_scroll(t, -30);
    char *got = drawn(t, 5, 60);
    char first[16];
    ck_assert_int_eq(sscanf(got, " %15s", first), 1);
    free(got);
    for (int i = 0; i < 100; i++) {
        got = drawn(t, 1 + i % 9, 1 + (i * 37) % 100); /* down to a column, and back */
        free(got);
    }
    got = drawn(t, 5, 60);
    ck_assert_ptr_nonnull(strstr(got, first));
    free(got);
    cw_buf_free(&text);
    ui_transcript_destroy(t);
}
END_TEST

START_TEST(transcript_remove) {
    use_utf8();
    struct ui_transcript *t = ui_transcript_create();
    add_text(t, UI_BLOCK_USER, "you", "first");
    uint32_t b = ui_transcript_add(t, UI_BLOCK_REPLY, "m");
    ui_transcript_append(t, b, "gone", 4);
    add_text(t, UI_BLOCK_USER, "you", "last");
    free(drawn(t, 3, 20));
    ui_transcript_to_start(t);
    ui_transcript_remove(t, b);
    ui_transcript_remove(t, 4711); /* there is none */
    char *got = drawn(t, 5, 20);
    ck_assert_str_eq(got, " you\n first\n\n you\n last\n");
    free(got);
    ui_transcript_clear(t);
    got = drawn(t, 2, 20);
    ck_assert_str_eq(got, "\n\n");
    free(got);
    ui_transcript_scroll(t, -3);
    ui_transcript_page(t, 2);
    ui_transcript_destroy(t);
}
END_TEST

/* A long line that streams in a few bytes at a time, drawn after each piece: what is laid out stays
 * within a line's length a piece, whatever the text. Doing the paragraph over each time would be
 * some thousand times as much. */
START_TEST(transcript_near_linear) {
    use_utf8();
    static const char *const pieces[] = {"abc", "   ", "\xe2\x80\x8b", "e\xcc\x81\xcc\x81",
                                         "\xcc\x81"};
    enum { COLS = 80, LETTERS = 300000 };
    const char *piece = pieces[_i];
    size_t k = strlen(piece);
    struct ui_transcript *t = ui_transcript_create();
    struct ui_screen s;
    ui_screen_init(&s, 2, COLS);
    ui_transcript_resize(t, 2, COLS);
    uint32_t b = ui_transcript_add(t, UI_BLOCK_REPLY, "m");
    for (size_t i = 0; i < LETTERS; i += k) {
        ui_transcript_append(t, b, piece, k);
        if (i % 100 < k) {
            ui_screen_clear(&s);
            ui_transcript_draw(t, &s, 0);
        }
    }
    ui_transcript_draw(t, &s, 0);
    size_t n_draws = LETTERS / 100, line_bytes = 16 * COLS + 256;
    ck_assert_uint_ge(ui_transcript_work(t), LETTERS);
    ck_assert_uint_le(ui_transcript_work(t), 2 * LETTERS + 2 * n_draws * line_bytes);
    ui_screen_free(&s);
    ui_transcript_destroy(t);
}
END_TEST

/* A history of 2,000 turns: following it, a new word costs what is on the screen. */
START_TEST(transcript_long_history) {
    use_utf8();
    struct ui_transcript *t = ui_transcript_create();
    for (int i = 0; i < 2000; i++) {
        add_text(t, UI_BLOCK_USER, "you", "a question of some length, for the sake of it");
        add_text(t, UI_BLOCK_REPLY, "m",
                 "an answer that goes on for more than one line, as they do");
    }
    uint32_t b = ui_transcript_add(t, UI_BLOCK_REPLY, "m");
    free(drawn(t, 24, 40));
    size_t before = ui_transcript_work(t);
    ck_assert_uint_lt(before, 24 * 40 * 2); /* what is shown, not 200,000 bytes */
    for (int i = 0; i < 100; i++) {
        ui_transcript_append(t, b, "word ", 5);
        free(drawn(t, 24, 40));
    }
    ck_assert_uint_lt(ui_transcript_work(t) - before, 100 * 2 * 40);
    before = ui_transcript_work(t);
    free(drawn(t, 24, 41)); /* another width: again only what is shown */
    ck_assert_uint_lt(ui_transcript_work(t) - before, 24 * 41 * 2);
    ui_transcript_to_start(t);
    free(drawn(t, 24, 41));
    ck_assert_uint_lt(ui_transcript_work(t) - before, 2 * 24 * 41 * 2);
    ui_transcript_destroy(t);
}
END_TEST

static Suite *suite(void) {
    Suite *s = suite_create("ui text");
    TCase *t = tcase_create("text");
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, cluster_table, 0, (int)(sizeof clusters / sizeof clusters[0]));
    tcase_add_test(t, cluster_any_bytes);
    tcase_add_test(t, cluster_bounded);
    tcase_add_test(t, cluster_borders);
    tcase_add_test(t, screen_clips);
    tcase_add_test(t, screen_overwrites_halves);
    tcase_add_test(t, screen_random);
    tcase_add_loop_test(t, wrap_table, 0, (int)(sizeof wraps / sizeof wraps[0]));
    tcase_add_test(t, wrap_any_text);
    tcase_add_test(t, transcript_layout);
    tcase_add_test(t, transcript_mark);
    tcase_add_test(t, transcript_streams_as_whole);
    tcase_add_test(t, transcript_follows_only_at_end);
    tcase_add_test(t, transcript_reaches_all);
    tcase_add_test(t, transcript_keeps_place_on_resize);
    tcase_add_test(t, transcript_remove);
    tcase_add_loop_test(t, transcript_near_linear, 0, 5);
    tcase_add_test(t, transcript_long_history);
    suite_add_tcase(s, t);
    return s;
}

int main(void) {
    SRunner *sr = srunner_create(suite());
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
