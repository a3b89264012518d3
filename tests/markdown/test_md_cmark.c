/* SPDX-License-Identifier: MIT
 *
 * The renderer against cmark-gfm: random documents, put together of what begins blocks and what
 * stands in them, must come out as the same blocks with the same styles, although ours came in
 * pieces. Left out are the places where we differ on purpose or know better: reference definitions,
 * bare addresses (other tests), a task's box behind other marks, cells beyond the header, and
 * fences behind tabs (cmark counts their indentation in bytes).
 */
#include <check.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "md_reference.h"

static uint64_t random_state;

static unsigned pick(unsigned n) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((random_state >> 33) % n);
}

static const char *const marks[] = {
    "",   "",   "",    "",    "",    " ",   "  ",   "   ", "    ",   "> ", ">",   "- ",
    "* ", "+ ", "1. ", "2. ", "3) ", "1) ", "10. ", "-",   "      ", "\t", "-\t",
};
static const char *const contents[] = {
    "a",
    "foo bar",
    "*b*",
    "**c** d",
    "_e_",
    "`c`",
    "---",
    "- - -",
    "===",
    "=",
    "***",
    "# h",
    "## h ##",
    "#",
    "### ###",
    "# h#",
    "# h \\#",
    "## a #b# #",
    "| a | b |",
    "a | b",
    "|",
    "||",
    "|a",
    "a|",
    "<div>",
    "</div>",
    "<!-- x",
    "-->",
    "<b>",
    "<x y='z'>",
    "<pre>",
    "</pre>",
    "",
    "",
    "",
    " ",
    "\\",
    "a\\",
    "a  ",
    "&amp;",
    "x `a",
    "b` y",
    "~~s~~",
    "![i](u)",
    "[l](u)",
    "* a",
    "-",
    "+",
    "1.",
    "1)",
    "[y] z",
    "#a",
    "<?php",
    "?>",
    "a  \nb",
    "a\tb",
    "\\*x\\*",
    "[a]",
    "a*b*c",
    " | x",
    "- | -",
    "\\| | x",
    "`|` | y",
    "x<br>y",
    "**a *b* c**",
    "*a **b***",
    "__a__b_",
    "![*a*](b)",
    "~a~ ~~b",
    "<a@b.c>",
    "&#65;&bad;",
    "``a`b``",
    "[*a](b)*",
    "<i>x</i>",
    /* only without tabs */
    "```",
    "````",
    "~~~",
    "``` c",
    "~~~~ d e",
    /* only where no line is a lazy continuation, whose blanks cmark keeps */
    "|---|---|",
    "| - | :-: |",
    ":-|-:",
    "---|---",
    "--- | ---",
    "|:-",
    "|-|-|-|",
};
enum {
    N_MARKS = sizeof marks / sizeof marks[0],
    N_CONTENTS = sizeof contents / sizeof contents[0]
};
enum { N_DELIMITERS = 7, N_FENCES = 5, N_TABS = 2 }; /* the last ones of each kind */

static void random_document(struct cw_buf *doc) {
    static const char *const openings[][2] = {
        {"", ""}, {"> ", "> "}, {"- ", "  "}, {"1. > ", "   > "}};
    unsigned n_lines = 1 + pick(7);
    if (pick(4) == 0) {
        const char *const *opening = openings[pick(4)];
        for (unsigned i = 0; i < n_lines; i++) {
            cw_buf_puts(doc, opening[i > 0]);
            unsigned what = pick(2) == 0 ? N_CONTENTS - 1 - pick(N_DELIMITERS) : pick(N_CONTENTS);
            cw_buf_puts(doc, contents[what]);
            cw_buf_putc(doc, '\n');
        }
        return;
    }
    bool tabs = pick(2) == 0;
    unsigned n_contents = N_CONTENTS - N_DELIMITERS - (tabs ? N_FENCES : 0);
    for (unsigned i = 0; i < n_lines; i++) {
        for (unsigned k = pick(4); k > 0; k--) {
            cw_buf_puts(doc, marks[pick(tabs ? N_MARKS : N_MARKS - N_TABS)]);
        }
        cw_buf_puts(doc, contents[pick(n_contents)]);
        cw_buf_putc(doc, '\n');
    }
}

/* Documents from seed to seed + n: one that differs fails. */
static void compare(unsigned seed, unsigned n) {
    struct cw_buf doc = {0}, ours = {0}, theirs = {0};
    for (unsigned k = seed; k < seed + n; k++) {
        random_state = k;
        pick(2);
        cw_buf_clear(&doc);
        cw_buf_clear(&ours);
        cw_buf_clear(&theirs);
        random_document(&doc);
        struct md *m = md_create(NULL);
        for (size_t i = 0; i < doc.len;) {
            size_t piece = 1 + pick(9);
            piece = piece < doc.len - i ? piece : doc.len - i;
            md_append(m, doc.data + i, piece);
            i += piece;
            if (pick(3) == 0) {
                md_layout(m, 1 + (int)pick(60));
            }
        }
        md_finish(m);
        md_layout(m, 40);
        describe_ours(m, &ours);
        describe_cmark(doc.data, doc.len, &theirs);
        md_destroy(m);
        cw_buf_puts(&ours, "");
        cw_buf_puts(&theirs, "");
        ck_assert_msg(strcmp(ours.data, theirs.data) == 0,
                      "document %u:\n%s\nours:\n%s\ncmark's:\n%s", k, doc.data, ours.data,
                      theirs.data);
    }
    cw_buf_free(&doc);
    cw_buf_free(&ours);
    cw_buf_free(&theirs);
}

enum { BATCHES = 8 };

START_TEST(same_blocks_as_cmark) {
    const char *more = getenv("CHINWAG_MD_DOCUMENTS"); /* a batch; for a longer search by hand */
    unsigned n = more != NULL ? (unsigned)strtoul(more, NULL, 10) : 1500;
    compare((unsigned)_i * n, n);
}
END_TEST

int main(void) {
    setlocale(LC_ALL, "C.UTF-8");
    Suite *s = suite_create("md_cmark");
    TCase *t = tcase_create("random documents");
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, same_blocks_as_cmark, 0, BATCHES);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
