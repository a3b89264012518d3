/* SPDX-License-Identifier: MIT
 *
 * The transcript beyond plain lines: Markdown, folding, the lens, searching, picking and the
 * scrollbar, read off the cells it draws.
 */
#include <check.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ui/transcript.h"

static struct ui_transcript *t;
static struct ui_screen s;

static void setup(void) {
    ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
    t = ui_transcript_create();
    ui_screen_init(&s, 24, 60);
}

static void teardown(void) {
    ui_screen_free(&s);
    ui_transcript_destroy(t);
}

static void draw(int rows, int cols) {
    if (s.rows != rows || s.cols != cols) {
        ui_screen_resize(&s, rows, cols);
    }
    ui_screen_clear(&s);
    ui_transcript_resize(t, rows, cols);
    ui_transcript_draw(t, &s, 0);
}

static char *row_text(int row) {
    struct cw_buf out = {0};
    ui_screen_row_text(&s, row, &out);
    return cw_buf_take(&out);
}

static void assert_row(int row, const char *want) {
    char *got = row_text(row);
    ck_assert_str_eq(got, want);
    free(got);
}

static char *all_rows(void) {
    struct cw_buf out = {0};
    for (int row = 0; row < s.rows; row++) {
        ui_screen_row_text(&s, row, &out);
        cw_buf_putc(&out, '\n');
    }
    return cw_buf_take(&out);
}

/* The first cell of a text on the screen. */
static const struct ui_cell *cell_of(const char *text) {
    for (int row = 0; row < s.rows; row++) {
        for (int col = 0; col < s.cols; col++) {
            size_t i = 0, n = strlen(text);
            for (int k = col; i < n && k < s.cols; k++) {
                const struct ui_cell *c = ui_screen_at(&s, row, k);
                if (c->width == 0) {
                    continue;
                }
                if (i + c->len > n || memcmp(c->text, text + i, c->len) != 0) {
                    break;
                }
                i += c->len;
            }
            if (i == n) {
                return ui_screen_at(&s, row, col);
            }
        }
    }
    ck_abort_msg("not on the screen: %s", text);
    return NULL;
}

static uint32_t add(enum ui_block_kind kind, const char *heading, const char *text) {
    uint32_t b = ui_transcript_add(t, kind, heading);
    ui_transcript_append(t, b, text, strlen(text));
    return b;
}

static uint32_t say(const char *text) {
    uint32_t b = add(UI_BLOCK_REPLY, "m", text);
    ui_transcript_finish(t, b);
    return b;
}

/* ---- Markdown ------------------------------------------------------------------------------- */

START_TEST(renders_as_it_streams) {
    uint32_t b = add(UI_BLOCK_REPLY, "m", "# Head\n\nIs **very** *nice*");
    draw(8, 40);
    assert_row(1, "   Head");
    assert_row(3, "   Is **very** *nice*"); /* not closed yet */
    ck_assert_int_eq(cell_of("Head")->role, UI_HEADING_1);
    ck_assert_int_eq(cell_of("Is")->role, UI_RAW);
    ui_transcript_append(t, b, "\n\nmore", 6);
    draw(8, 40);
    assert_row(3, "   Is very nice");
    ck_assert_int_eq(cell_of("very")->attrs, UI_BOLD);
    ck_assert_int_eq(cell_of("nice")->attrs, UI_ITALIC);
    ck_assert_int_eq(cell_of("Is")->attrs, 0);
    ui_transcript_set_markdown(t, false);
    draw(8, 40);
    assert_row(1, "   # Head");
    assert_row(3, "   Is **very** *nice*");
    ck_assert_int_eq(cell_of("Is")->role, UI_TEXT);
    ui_transcript_set_markdown(t, true);
    draw(8, 40);
    assert_row(3, "   Is very nice");
}
END_TEST

START_TEST(only_replies_are_rendered) {
    add(UI_BLOCK_USER, "you", "**mine**\n");
    add(UI_BLOCK_NOTICE, NULL, "`note`\n");
    say("**its**\n");
    draw(10, 40);
    assert_row(1, "   **mine**");
    assert_row(3, "   `note`");
    assert_row(6, "   its");
}
END_TEST

START_TEST(code_stands_in_a_box) {
    say("```c\nreturn 42;\n```\n");
    draw(6, 30);
    assert_row(1, "   ┌ c ────────────────────┐");
    assert_row(2, "   │ return 42;            │");
    assert_row(3, "   └───────────────────────┘");
    ck_assert_int_eq(cell_of("return")->role, UI_CODE_KEYWORD);
    ck_assert_int_eq(cell_of("42")->role, UI_CODE_NUMBER);
    ck_assert_int_eq(cell_of("┌")->role, UI_BORDER);
}
END_TEST

START_TEST(tables_appear_when_they_end) {
    uint32_t b = add(UI_BLOCK_REPLY, "m", "a|b\n-|-\nlong cell|x\n");
    draw(6, 40);
    assert_row(1, "   a|b");
    ui_transcript_finish(t, b);
    draw(6, 40);
    assert_row(1, "   a         │ b");
    assert_row(2, "   ──────────┼──");
    assert_row(3, "   long cell │ x");
    ck_assert_int_eq(cell_of("a")->role, UI_TABLE_HEAD);
}
END_TEST

START_TEST(links_are_safe_and_kept) {
    say("[one](https://a.b/c) [two](javascript:alert) [three](http://d.e/f) [four](https://a.b/c)");
    draw(4, 60);
    const struct ui_cell *one = cell_of("one"), *two = cell_of("two"), *three = cell_of("three");
    ck_assert_int_eq(one->role, UI_LINK);
    ck_assert_int_ne(one->link, 0);
    ck_assert_int_eq(two->link, 0);
    ck_assert_int_ne(three->link, one->link);
    ck_assert_int_eq(cell_of("four")->link, one->link);
    ck_assert_str_eq(s.links[one->link - 1], "https://a.b/c");
    ck_assert_str_eq(s.links[three->link - 1], "http://d.e/f");
    int number = one->link;
    draw(4, 60);
    ck_assert_int_eq(cell_of("one")->link, number);
    ck_assert_int_eq(ui_screen_link(&s, "http://x/\x1b]8;;"), 0);
    ck_assert_int_eq(ui_screen_link(&s, "file:///etc/passwd"), 0);
}
END_TEST

/* Many links: the table starts over, and says so. */
START_TEST(links_are_bounded) {
    uint32_t epoch = s.epoch;
    for (int i = 0; i < 5000; i++) {
        char url[64];
        snprintf(url, sizeof url, "http://host/%d", i);
        uint16_t link = ui_screen_link(&s, url);
        if (link != 0) {
            ck_assert_str_eq(s.links[link - 1], url);
        }
        if (i % 100 == 0) {
            ui_screen_clear(&s);
        }
    }
    ck_assert_uint_ne(s.epoch, epoch);
    ck_assert_uint_le(s.n_links, 1024);
}
END_TEST

START_TEST(marks_stand_at_their_token) {
    uint32_t b = add(UI_BLOCK_REPLY, "m", "# Head\n\none **two** ");
    ui_transcript_mark(t, b, "T 0.80 -> 0.95");
    ui_transcript_append(t, b, "three\n\nfour\n", 12);
    ui_transcript_finish(t, b);
    draw(8, 40);
    assert_row(3, "   one two three        T 0.80 -> 0.95 |");
    assert_row(5, "   four");
    ui_transcript_set_markdown(t, false);
    draw(8, 40);
    assert_row(3, "   one **two** three    T 0.80 -> 0.95 |");
}
END_TEST

/* Rendered text that came in pieces is drawn as if it had come at once. */
START_TEST(pieces_do_not_matter) {
    static const char *const parts[] = {"**b**",  " ",       "word",         "\n",           "\n\n",
                                        "- item", "> ",      "```\n",        "`c`",          "# h",
                                        "|a|b|",  "|-|-|\n", "\xe4\xb8\xad", "[l](http://x)"};
    uint32_t seed = 11 + (uint32_t)_i;
    for (int round = 0; round < 60; round++) {
        struct cw_buf all = {0};
        int cols = 2 + (int)(seed >> 8) % 70;
        ui_transcript_clear(t);
        uint32_t b = ui_transcript_add(t, UI_BLOCK_REPLY, "m");
        for (int i = 0; i < 50; i++) {
            seed = seed * 1664525 + 1013904223;
            const char *part = parts[(seed >> 16) % (sizeof parts / sizeof parts[0])];
            cw_buf_puts(&all, part);
            ui_transcript_append(t, b, part, strlen(part));
            draw(10, cols);
        }
        ui_transcript_finish(t, b);
        draw(60, cols);
        char *got = all_rows();
        ui_transcript_clear(t);
        say(all.data);
        draw(60, cols);
        char *want = all_rows();
        ck_assert_str_eq(got, want);
        free(got);
        free(want);
        cw_buf_free(&all);
    }
}
END_TEST

static const char *const hostile[] = {"![[]()", "|", "> ", "*_"};

static size_t work_of(const char *pattern) {
    enum { BYTES = 1 << 20, PIECE = 64 };
    struct ui_transcript *own = ui_transcript_create();
    uint32_t b = ui_transcript_add(own, UI_BLOCK_REPLY, "m");
    size_t len = strlen(pattern);
    char piece[PIECE];
    ui_transcript_resize(own, 24, 80);
    for (size_t at = 0; at < BYTES; at += PIECE) {
        for (size_t i = 0; i < PIECE; i++) {
            piece[i] = pattern[(at + i) % len];
        }
        ui_transcript_append(own, b, piece, PIECE);
        ui_screen_clear(&s);
        ui_transcript_draw(own, &s, 0);
    }
    ui_transcript_finish(own, b);
    ui_transcript_draw(own, &s, 0);
    size_t work = ui_transcript_work(own);
    ui_transcript_destroy(own);
    return work;
}

/* A megabyte of what is hard to parse takes at most twice the work of a megabyte of words. */
START_TEST(hostile_text_is_no_more_work) {
    ui_screen_resize(&s, 24, 80);
    size_t plain = work_of("some words of plain text that go on and on ");
    size_t work = work_of(hostile[_i]);
    ck_assert_uint_ge(plain, 1 << 20);
    ck_assert_msg(work <= 2 * plain, "%zu bytes of work for %zu", work, plain);
}
END_TEST

/* And harms nothing: it is kept as it was written, can be walked over, shown at other sizes, raw
 * and searched, and the reply after it looks as any. */
START_TEST(hostile_text_is_survived) {
    enum { BYTES = 1 << 20, PIECE = 4096 };
    struct cw_buf all = {0};
    while (all.len < BYTES) {
        cw_buf_puts(&all, hostile[_i]);
    }
    uint32_t b = ui_transcript_add(t, UI_BLOCK_REPLY, "hostile");
    for (size_t at = 0; at < all.len; at += PIECE) {
        ui_transcript_append(t, b, all.data + at, at + PIECE < all.len ? PIECE : all.len - at);
        draw(24, 60);
    }
    ui_transcript_finish(t, b);
    say("# After\n\n**bold**");
    struct cw_str source = ui_transcript_source(t, b);
    ck_assert_uint_eq(source.len, all.len);
    ck_assert_mem_eq(source.data, all.data, all.len);
    for (int way = 0; way < 2; way++) { /* rendered and raw, wide and narrow */
        ui_transcript_set_markdown(t, way == 0);
        for (int cols = 60; cols >= 20; cols -= 40) {
            ui_transcript_to_start(t);
            draw(24, cols);
            ck_assert_int_eq(cell_of("hostile")->role, UI_REPLY);
            for (int page = 0; page < 20; page++) {
                ui_transcript_page(t, 1);
                draw(24, cols);
            }
            ui_transcript_to_end(t);
            draw(24, cols);
            char *rows = all_rows();
            ck_assert_ptr_nonnull(strstr(rows, way == 0 ? "After\n" : "# After\n"));
            free(rows);
        }
    }
    ck_assert_uint_ge(ui_transcript_search(t, hostile[_i]), BYTES / strlen(hostile[_i]) - 1);
    ui_transcript_search(t, NULL);
    ui_transcript_set_markdown(t, true);
    ui_transcript_to_end(t);
    draw(24, 60);
    ck_assert_int_eq(cell_of("After")->role, UI_HEADING_1);
    ck_assert_int_eq(cell_of("bold")->attrs, UI_BOLD);
    cw_buf_free(&all);
}
END_TEST

/* ---- folding -------------------------------------------------------------------------------- */

START_TEST(thinking_folds_when_it_ends) {
    uint32_t b = add(UI_BLOCK_THINKING, "thinking", "one\ntwo\nthree");
    draw(6, 40);
    assert_row(0, " thinking");
    assert_row(2, "   two");
    ui_transcript_finish(t, b);
    ck_assert(ui_transcript_folded(t, b));
    say("answer");
    draw(6, 40);
    assert_row(0, " ▸ thinking (3 lines)");
    assert_row(2, " m");
    ck_assert_int_eq(cell_of("thinking")->role, UI_THINKING);
    ui_transcript_fold(t, b, false);
    draw(8, 40);
    assert_row(0, " ▾ thinking");
    assert_row(3, "   three");
    ck_assert_int_eq(cell_of("three")->role, UI_THINKING);
    ui_transcript_fold(t, 0, true);
    draw(6, 40);
    assert_row(0, " ▸ thinking (3 lines)");
}
END_TEST

START_TEST(unfolded_while_it_came_stays_so) {
    uint32_t b = add(UI_BLOCK_THINKING, "thinking", "one");
    ui_transcript_fold(t, b, false);
    ui_transcript_finish(t, b);
    ck_assert(!ui_transcript_folded(t, b));
    draw(4, 40);
    assert_row(1, "   one");
}
END_TEST

/* What is looked at stays in place when something above it folds. */
START_TEST(folding_keeps_the_view) {
    uint32_t b = add(UI_BLOCK_THINKING, "thinking", "1\n2\n3\n4\n5\n6\n7\n8");
    ui_transcript_fold(t, b, false);
    ui_transcript_finish(t, b);
    for (int i = 0; i < 20; i++) {
        char text[32];
        snprintf(text, sizeof text, "reply %d", i);
        say(text);
    }
    draw(6, 40);
    ui_transcript_scroll(t, -20);
    draw(6, 40);
    char *before = all_rows();
    ui_transcript_fold(t, 0, true);
    draw(6, 40);
    char *after = all_rows();
    /* all but the scrollbar */
    ck_assert_int_eq(strncmp(before, after, 12), 0);
    free(before);
    free(after);
}
END_TEST

/* What stands on top stays there when the whole is shown otherwise. */
START_TEST(modes_keep_the_view) {
    struct cw_buf text = {0};
    for (int i = 0; i < 100; i++) {
        cw_buf_printf(&text, "**word%03d**\n\n", i);
    }
    say(text.data);
    draw(8, 40);
    ui_transcript_scroll(t, -61);
    draw(8, 40);
    char *before = row_text(0), *after;
    ck_assert_ptr_nonnull(strstr(before, "   word"));
    for (int i = 0; i < 6; i++) {
        ui_transcript_set_markdown(t, i % 2 == 1);
        draw(8, 40);
    }
    after = row_text(0);
    ck_assert_str_eq(after, before);
    free(before);
    free(after);
    cw_buf_free(&text);
}
END_TEST

/* ---- the lens ------------------------------------------------------------------------------- */

static uint32_t add_tokens(const char *const *tokens, const double *p, size_t n) {
    uint32_t b = ui_transcript_add(t, UI_BLOCK_REPLY, "m");
    for (size_t i = 0; i < n; i++) {
        ui_transcript_token(t, b, p[i]);
        ui_transcript_append(t, b, tokens[i], strlen(tokens[i]));
    }
    ui_transcript_finish(t, b);
    return b;
}

START_TEST(lens_shows_tokens) {
    static const char *const tokens[] = {"**", "Sure", "**", " thing", "\n", "end"};
    static const double p[] = {0.95, 0.5, 0.001, -1, 0.2, 0.05};
    uint32_t b = add_tokens(tokens, p, 6);
    ck_assert_uint_eq(ui_transcript_n_tokens(t, b), 6);
    ck_assert_uint_eq(ui_transcript_token_offset(t, b, 3), 8);
    ck_assert_uint_eq(ui_transcript_token_offset(t, b, 6), 18);
    draw(6, 40);
    assert_row(1, "   Sure thing");
    ui_transcript_lens(t, b, 1);
    draw(6, 40);
    assert_row(1, "   **Sure** thing");
    ck_assert_int_eq(cell_of("**")->role, UI_PROB_0);
    ck_assert_int_eq(cell_of("Sure")->role, UI_PROB_2);
    ck_assert_int_eq(cell_of("Sure")->attrs, UI_REVERSE);
    ck_assert_int_eq(cell_of("** ")->role, UI_PROB_5);
    ck_assert_int_eq(cell_of("** ")->attrs, 0);
    ck_assert_int_eq(cell_of("thing")->role, UI_PROB_NONE);
    ck_assert_int_eq(cell_of("end")->role, UI_PROB_4);
    ui_transcript_lens(t, b, 4); /* the line end has a mark of its own */
    draw(6, 40);
    assert_row(1, "   **Sure** thing~");
    ui_transcript_lens(t, 0, 0);
    draw(6, 40);
    assert_row(1, "   Sure thing");
    ck_assert_int_eq(cell_of("Sure")->attrs, UI_BOLD);
}
END_TEST

START_TEST(lens_scrolls_to_its_token) {
    uint32_t b = ui_transcript_add(t, UI_BLOCK_REPLY, "m");
    for (int i = 0; i < 500; i++) {
        char word[16];
        snprintf(word, sizeof word, "w%03d ", i);
        ui_transcript_token(t, b, 0.5);
        ui_transcript_append(t, b, word, strlen(word));
    }
    draw(8, 40);
    for (int i = 499; i >= 0; i -= 7) {
        char word[16];
        snprintf(word, sizeof word, "w%03d", i);
        ui_transcript_lens(t, b, (size_t)i);
        draw(8, 40);
        ck_assert_int_eq(cell_of(word)->attrs, UI_REVERSE);
    }
    ck_assert(!ui_transcript_at_end(t));
    ui_transcript_lens(t, b, 499);
    draw(8, 40);
    ck_assert_int_eq(cell_of("w499")->attrs, UI_REVERSE);
    ui_transcript_lens(t, 0, 0);
    ui_transcript_to_end(t);
    draw(8, 40);
    ui_transcript_lens(t, b, 450); /* in sight here, but not in the rows its panel leaves */
    draw(3, 40);
    ck_assert_int_eq(cell_of("w450")->attrs, UI_REVERSE);
}
END_TEST

/* ---- searching ------------------------------------------------------------------------------ */

START_TEST(search_highlights) {
    size_t at, hits;
    add(UI_BLOCK_USER, "you", "the Cat");
    say("a **cat** and a [CAT](http://cat.x) sat");
    draw(8, 40);
    ck_assert_uint_eq(ui_transcript_search(t, "cat"), 4); /* one in the target of the link */
    ui_transcript_search_at(t, &at, &hits);
    ck_assert_uint_eq(at, 1);
    ck_assert_uint_eq(hits, 4);
    draw(8, 40);
    ck_assert_int_eq(cell_of("Cat")->role, UI_HIT_CURRENT);
    ck_assert_int_eq(cell_of("cat")->role, UI_HIT);
    ck_assert_int_eq(cell_of("cat")->attrs, UI_BOLD); /* the text keeps its own */
    ck_assert_int_eq(cell_of("CAT")->role, UI_HIT);
    ck_assert_int_eq(cell_of("sat")->role, UI_TEXT);
    assert_row(1, "›  the Cat");
    ui_transcript_search_next(t, -1);
    ui_transcript_search_at(t, &at, &hits);
    ck_assert_uint_eq(at, 4); /* around the end */
    draw(8, 40);
    assert_row(4, "›  a cat and a CAT sat"); /* although the hit itself is not shown */
    ui_transcript_search_next(t, 2);
    draw(8, 40);
    ck_assert_int_eq(cell_of("cat")->role, UI_HIT_CURRENT);
    ck_assert_uint_eq(ui_transcript_search(t, ""), 0);
    draw(8, 40);
    ck_assert_int_eq(cell_of("cat")->role, UI_TEXT);
    assert_row(4, "   a cat and a CAT sat");
}
END_TEST

START_TEST(search_goes_on_as_text_comes) {
    uint32_t b = add(UI_BLOCK_REPLY, "m", "one ne");
    ck_assert_uint_eq(ui_transcript_search(t, "needle"), 0);
    ui_transcript_append(t, b, "ed", 2);
    ui_transcript_append(t, b, "le and NEEDLE", 13);
    size_t at, hits;
    ui_transcript_search_at(t, &at, &hits);
    ck_assert_uint_eq(hits, 2);
    ck_assert_uint_eq(at, 0);
    ui_transcript_search_next(t, 1);
    draw(4, 40);
    ck_assert_int_eq(cell_of("needle")->role, UI_HIT_CURRENT);
    ui_transcript_remove(t, b);
    ui_transcript_search_at(t, &at, &hits);
    ck_assert_uint_eq(hits, 0);
    ui_transcript_search_next(t, 1);
}
END_TEST

START_TEST(search_letters) {
    say("\xc3\x89t\xc3\xa9 \xff\xfe\xe4\xb8\xad");
    ck_assert_uint_eq(ui_transcript_search(t, "\xc3\xa9T\xc3\x89"), 1);
    ck_assert_uint_eq(ui_transcript_search(t, "\xff\xfe"), 1);
    ck_assert_uint_eq(ui_transcript_search(t, "\xff\xff"), 0);
    ck_assert_uint_eq(ui_transcript_search(t, "\xe4\xb8\xad"), 1);
}
END_TEST

/* As a plain loop finds them. */
START_TEST(search_finds_all) {
    uint32_t seed = 5;
    for (int round = 0; round < 300; round++) {
        struct cw_buf text = {0};
        char needle[8];
        ui_transcript_clear(t);
        for (int i = 0; i < 200; i++) {
            seed = seed * 1664525 + 1013904223;
            cw_buf_putc(&text, "ab"[seed >> 31]);
        }
        size_t n = 1 + (seed >> 10) % 6;
        for (size_t i = 0; i < n; i++) {
            seed = seed * 1664525 + 1013904223;
            needle[i] = "AB"[seed >> 31];
        }
        needle[n] = '\0';
        uint32_t b = ui_transcript_add(t, UI_BLOCK_USER, NULL);
        ck_assert_uint_eq(ui_transcript_search(t, needle), 0);
        for (size_t i = 0; i < text.len; i += 3) {
            ui_transcript_append(t, b, text.data + i, text.len - i < 3 ? text.len - i : 3);
        }
        size_t want = 0, at, hits;
        for (size_t i = 0; i + n <= text.len;) {
            bool hit = strncasecmp(text.data + i, needle, n) == 0;
            want += hit;
            i += hit ? n : 1;
        }
        ui_transcript_search_at(t, &at, &hits);
        ck_assert_uint_eq(hits, want);
        cw_buf_free(&text);
    }
}
END_TEST

/* Every hit can be gone to and is then on the screen, at any size, folded or not. */
START_TEST(search_reaches_all) {
    for (int i = 0; i < 60; i++) {
        char text[128];
        snprintf(text, sizeof text, "question %d with needle%03d in it", i, i);
        add(UI_BLOCK_USER, "you", text);
        uint32_t b = add(UI_BLOCK_THINKING, "thinking", "a needle in thoughts");
        ui_transcript_finish(t, b);
        say("# An answer\n\nwith a few words and a\n\n```c\nint needle;\n```\n\nthat is all");
    }
    draw(7, 33);
    size_t work = ui_transcript_work(t);
    ck_assert_uint_eq(ui_transcript_search(t, "NEEDLE"), 180);
    ck_assert_uint_eq(ui_transcript_work(t), work); /* nothing is laid out for it */
    for (int i = 0; i < 180; i++) {
        size_t at, hits;
        draw(7, 33 + i % 3);
        ui_transcript_search_next(t, i % 5 == 0 ? -3 : 1);
        draw(7, 33 + i % 3);
        ui_transcript_search_at(t, &at, &hits);
        bool seen = false;
        for (int k = 0; k < s.rows * s.cols; k++) {
            seen = seen || s.cells[k].role == UI_HIT_CURRENT;
        }
        ck_assert_msg(seen, "hit %zu is not shown", at);
    }
}
END_TEST

/* ---- picking -------------------------------------------------------------------------------- */

static void assert_picked(enum ui_pick kind, const char *want) {
    struct cw_buf text = {0};
    ck_assert_int_eq(ui_transcript_picked(t), kind);
    ck_assert_uint_ne(ui_transcript_picked_text(t, &text), 0);
    ck_assert_str_eq(text.data ? text.data : "", want);
    cw_buf_free(&text);
}

START_TEST(picks_messages) {
    add(UI_BLOCK_USER, "you", "first");
    uint32_t hidden = add(UI_BLOCK_THINKING, "thinking", "hidden");
    ui_transcript_finish(t, hidden);
    say("a *second* one that is longer than the line it stands in");
    draw(12, 30);
    ck_assert(ui_transcript_pick(t, UI_PICK_MESSAGE, -1));
    draw(12, 30);
    assert_row(5, "▌m");
    assert_row(6, "▌  a second one that is");
    assert_row(7, "▌  longer than the line it");
    ck_assert(ui_transcript_pick(t, UI_PICK_MESSAGE, -1)); /* over what is folded */
    assert_picked(UI_PICK_MESSAGE, "first");
    ck_assert(!ui_transcript_pick(t, UI_PICK_MESSAGE, -1));
    assert_picked(UI_PICK_MESSAGE, "first"); /* stays */
    ck_assert(ui_transcript_pick(t, UI_PICK_MESSAGE, 1));
    ck_assert(!ui_transcript_pick(t, UI_PICK_MESSAGE, 1));
    ui_transcript_unpick(t);
    ck_assert_uint_eq(ui_transcript_picked_text(t, NULL), 0);
    draw(12, 30);
    assert_row(5, " m");
}
END_TEST

START_TEST(picks_code) {
    say("```c\nfirst();\n```\n\ntext\n\n> ```sh\n> a line of code that is longer than the box\n> "
        "x\n"
        "> ```\n");
    say("no code here");
    say("    third\n\nand\n\n```\nlast\n");
    draw(30, 30);
    ck_assert(ui_transcript_pick(t, UI_PICK_CODE, -1));
    assert_picked(UI_PICK_CODE, "last\n");
    ck_assert(ui_transcript_pick(t, UI_PICK_CODE, -1));
    assert_picked(UI_PICK_CODE, "third\n");
    ck_assert(ui_transcript_pick(t, UI_PICK_CODE, -1));
    assert_picked(UI_PICK_CODE, "a line of code that is longer than the box\nx\n");
    ck_assert(ui_transcript_pick(t, UI_PICK_CODE, -1));
    assert_picked(UI_PICK_CODE, "first();\n");
    draw(30, 30);
    assert_row(0, " m");
    assert_row(1, "▌  ┌ c ────────────────────┐");
    assert_row(2, "▌  │ first();              │");
    assert_row(3, "▌  └───────────────────────┘");
    assert_row(4, "");
    ck_assert(!ui_transcript_pick(t, UI_PICK_CODE, -1));
    ck_assert(ui_transcript_pick(t, UI_PICK_CODE, 1));
    assert_picked(UI_PICK_CODE, "a line of code that is longer than the box\nx\n");
    ck_assert(ui_transcript_pick(t, UI_PICK_MESSAGE, 1)); /* the message it stands in */
    ck_assert_uint_eq(ui_transcript_picked_text(t, NULL), 1);
    ck_assert(ui_transcript_pick(t, UI_PICK_CODE, 2));
    assert_picked(UI_PICK_CODE, "a line of code that is longer than the box\nx\n");
    ui_transcript_set_markdown(t, false); /* shown raw it is still known */
    draw(30, 40);
    char *text = all_rows();
    ck_assert_ptr_nonnull(strstr(text, "▌  > ```sh"));
    ck_assert_ptr_nonnull(strstr(text, "▌  > x"));
    ck_assert_ptr_null(strstr(text, "▌  text"));
    free(text);
}
END_TEST

/* Picked things are scrolled to; what is picked first is what is seen. */
START_TEST(picks_are_shown) {
    for (int i = 0; i < 50; i++) {
        char text[64];
        snprintf(text, sizeof text, "text %d\n\n```\ncode %d\n```\n", i, i);
        say(text);
    }
    draw(10, 40);
    for (int i = 49; i >= 0; i--) {
        char want[32];
        ck_assert(ui_transcript_pick(t, UI_PICK_CODE, -1));
        snprintf(want, sizeof want, "code %d\n", i);
        assert_picked(UI_PICK_CODE, want);
        draw(10, 40);
        snprintf(want, sizeof want, "▌  │ code %d ", i);
        char *text = all_rows();
        ck_assert_msg(strstr(text, want) != NULL, "%s is not shown", want);
        free(text);
    }
    ui_transcript_unpick(t);
    ck_assert(ui_transcript_pick(t, UI_PICK_MESSAGE, -1));
    struct cw_buf text = {0};
    ui_transcript_picked_text(t, &text); /* of those on the screen, not the last one of all */
    ck_assert_ptr_nonnull(strstr("text 0 text 1 text 2", strtok(text.data, "\n")));
    cw_buf_free(&text);
}
END_TEST

START_TEST(shows_a_block) {
    uint32_t blocks[30];
    for (int i = 0; i < 30; i++) {
        char text[64];
        snprintf(text, sizeof text, "text %d", i);
        blocks[i] = say(text);
    }
    draw(5, 40);
    ui_transcript_show(t, blocks[7]);
    draw(5, 40);
    char *row = row_text(1);
    ck_assert_int_eq(strncmp(row, "   text 7 ", 9), 0);
    free(row);
    ui_transcript_show(t, blocks[29]); /* no further than the end */
    ck_assert(ui_transcript_at_end(t));
    struct cw_str source = ui_transcript_source(t, blocks[3]);
    ck_assert_uint_eq(source.len, 6);
    ck_assert_mem_eq(source.data, "text 3", 6);
    ck_assert_uint_eq(ui_transcript_source(t, 999).len, 0);
}
END_TEST

/* ---- the scrollbar -------------------------------------------------------------------------- */

/* Rows of the scrollbar's part as a string of dots and bars. */
static void bar(char *out) {
    for (int row = 0; row < s.rows; row++) {
        out[row] = ui_screen_at(&s, row, s.cols - 1)->role == UI_SCROLLBAR ? '#' : '.';
    }
    out[s.rows] = '\0';
}

START_TEST(scrollbar) {
    char got[32];
    for (int i = 0; i < 3; i++) {
        say("one");
    }
    draw(10, 40);
    bar(got);
    ck_assert_str_eq(got, ".........."); /* all fits */
    for (int i = 0; i < 7; i++) {
        say("one");
    }
    draw(10, 40); /* a third of 29 rows */
    bar(got);
    ck_assert_str_eq(got, ".......###");
    ui_transcript_scroll(t, -1); /* not quite at the end any more */
    draw(10, 40);
    bar(got);
    ck_assert_str_eq(got, "......###.");
    ui_transcript_to_start(t);
    draw(10, 40);
    bar(got);
    ck_assert_str_eq(got, "###.......");
    ui_transcript_scroll(t, 1);
    draw(10, 40);
    bar(got);
    ck_assert_str_eq(got, ".###......");
    draw(10, 11); /* no column to spare */
    bar(got);
    ck_assert_str_eq(got, "..........");
}
END_TEST

/* Two thousand turns: the scrollbar lays nothing out. */
START_TEST(scrollbar_is_cheap) {
    for (int i = 0; i < 2000; i++) {
        say("an answer with *some* words\n\n- and\n- a list");
    }
    draw(24, 80);
    ck_assert_uint_lt(ui_transcript_work(t), 24 * 80);
    ui_transcript_to_start(t);
    draw(24, 80);
    ck_assert_uint_lt(ui_transcript_work(t), 4 * 24 * 80);
}
END_TEST

static Suite *suite(void) {
    Suite *all = suite_create("ui transcript");
    TCase *c = tcase_create("transcript");
    tcase_set_timeout(c, 240);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, renders_as_it_streams);
    tcase_add_test(c, only_replies_are_rendered);
    tcase_add_test(c, code_stands_in_a_box);
    tcase_add_test(c, tables_appear_when_they_end);
    tcase_add_test(c, links_are_safe_and_kept);
    tcase_add_test(c, links_are_bounded);
    tcase_add_test(c, marks_stand_at_their_token);
    tcase_add_loop_test(c, pieces_do_not_matter, 0, 4);
    tcase_add_loop_test(c, hostile_text_is_no_more_work, 0, 4);
    tcase_add_loop_test(c, hostile_text_is_survived, 0, 4);
    tcase_add_test(c, thinking_folds_when_it_ends);
    tcase_add_test(c, unfolded_while_it_came_stays_so);
    tcase_add_test(c, folding_keeps_the_view);
    tcase_add_test(c, modes_keep_the_view);
    tcase_add_test(c, lens_shows_tokens);
    tcase_add_test(c, lens_scrolls_to_its_token);
    tcase_add_test(c, search_highlights);
    tcase_add_test(c, search_goes_on_as_text_comes);
    tcase_add_test(c, search_letters);
    tcase_add_test(c, search_finds_all);
    tcase_add_test(c, search_reaches_all);
    tcase_add_test(c, picks_messages);
    tcase_add_test(c, picks_code);
    tcase_add_test(c, picks_are_shown);
    tcase_add_test(c, shows_a_block);
    tcase_add_test(c, scrollbar);
    tcase_add_test(c, scrollbar_is_cheap);
    suite_add_tcase(all, c);
    return all;
}

int main(void) {
    SRunner *sr = srunner_create(suite());
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
