/* SPDX-License-Identifier: MIT
 *
 * What each construct looks like: source, and the lines it becomes (md_text.h says how to read
 * them).
 */
#include <check.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "md_text.h"
#include "ui/cluster.h"

enum { JOIN = 1, URLS = 2, OPEN = 4 }; /* join_lines, show_urls, without md_finish */

/* clang-format off */
static const struct {
    const char *name;
    int width, flags;
    size_t n_settled;
    const char *source, *lines;
} cases[] = {
    {"headings", 40, 0, 9,
     "# A *b* `c` ##\n"
     "## two\n"
     "### three\n"
     "#### four\n"
     "##### five\n"
     "###### six\n"
     "####### no\n"
     "#no\n"
     "#\n",
     "<h1:A ><h1/:b><h1: ><code:c>\n"
     "<h2:two>\n"
     "<h3:three>\n"
     "<h4:four>\n"
     "<h5:five>\n"
     "<h6:six>\n"
     "####### no\n"
     "#no\n"
     "\n"},
    {"setext headings", 40, 0, 5,
     "One\n"
     "===\n"
     "two\n"
     "lines\n"
     "---\n"
     "\n"
     "===\n",
     "<h1:One>\n"
     "<h2:two>\n"
     "<h2:lines>\n"
     "\n"
     "===\n"},
    {"emphasis", 60, 0, 1,
     "Text **b _i_** *e* __s__ ***both*** ~~s~~ ~t~ a_b_c 2*3*4 * no *\n",
     "Text <*:b ><*/:i> </:e> <*:s> <*/:both> <-:s> <-:t> a_b_c 2</:3>4 * no *\n"},
    {"escapes and entities", 40, 0, 1,
     "a&copy;&#x41;\\*no\\* \\# &bad; &amp;amp; \\q \\\\\n",
     "a©A*no* # &bad; &amp; \\q \\\n"},
    {"breaks", 40, 0, 6,
     "soft\n"
     "hard  \n"
     "hard\\\n"
     "end<br>more<BR />x\n",
     "soft\n"
     "hard\n"
     "hard\n"
     "end\n"
     "more\n"
     "x\n"},
    {"joined lines", 40, JOIN, 4,
     "soft\n"
     "stays\n"
     "\n"
     "hard  \n"
     "break\n",
     "soft stays\n"
     "\n"
     "hard\n"
     "break\n"},
    {"paragraphs and spacing", 20, 0, 8,
     "a\n"
     "b\n"
     "\n"
     "\n"
     "\n"
     "c\n"
     "# h\n"
     "d\n"
     "***\n"
     "e\n",
     "a\n"
     "b\n"
     "\n"
     "c\n"
     "<h1:h>\n"
     "d\n"
     "<rule:────────────────────>\n"
     "e\n"},
    {"wrapped between words", 20, 0, 3,
     "one two three four five six seven eight nine\n",
     "one two three four\n"
     "five six seven eight\n"
     "nine\n"},
    {"a bullet list", 20, 0, 5,
     "- a\n"
     "- b with more words than fit\n"
     "* c\n"
     "+ d\n",
     "<mark:•> a\n"
     "<mark:•> b with more words\n"
     "  than fit\n"
     "<mark:•> c\n"
     "<mark:•> d\n"},
    {"nested lists", 30, 0, 6,
     "- a\n"
     "  - b\n"
     "    - c\n"
     "      - d\n"
     "        text\n"
     "- e\n",
     "<mark:•> a\n"
     "  <mark:◦> b\n"
     "    <mark:▪> c\n"
     "      <mark:•> d\n"
     "        text\n"
     "<mark:•> e\n"},
    {"a loose list", 30, 0, 5,
     "+ a\n"
     "\n"
     "+ b\n"
     "\n"
     "  c\n",
     "<mark:•> a\n"
     "\n"
     "<mark:•> b\n"
     "\n"
     "  c\n"},
    {"ordered lists", 30, 0, 7,
     "9. n\n"
     "10. m\n"
     "15. o\n"
     "1) p\n"
     "\n"
     "   more\n"
     "7. q\n",
     "<mark:9.> n\n"
     "<mark:10.> m\n"
     "<mark:11.> o\n"
     "<mark:1)> p\n"
     "\n"
     "   more\n"
     "<mark:7.> q\n"},
    {"an item only 1 may begin", 30, 0, 3,
     "text\n"
     "2. no\n"
     "1. yes\n",
     "text\n"
     "2. no\n"
     "<mark:1.> yes\n"},
    {"empty items", 30, 0, 6,
     "-\n"
     "- a\n"
     "-\n"
     "\n"
     "  b\n"
     "1.\n",
     "<mark:•>\n"
     "<mark:•> a\n"
     "<mark:•>\n"
     "\n"
     "b\n"
     "1.\n"},
    {"tasks", 30, 0, 9,
     "- [ ] a\n"
     "- [x] b\n"
     "- [X]\tc\n"
     "\n"
     "  [x] d\n"
     "1. [ ] e\n"
     "- [ ]f\n"
     "- [y] g\n"
     "- [ ]\n",
     "<open:☐> a\n"
     "<done:☑> b\n"
     "<done:☑> c\n"
     "\n"
     "  [x] d\n"
     "<open:1. ☐> e\n"
     "<mark:•> [ ]f\n"
     "<mark:•> [y] g\n"
     "<open:☐>\n"},
    {"quotes", 30, 0, 7,
     "> a\n"
     "> > b\n"
     "lazy\n"
     ">\n"
     "> c\n"
     "\n"
     "> d\n",
     "<bar:│> <quote:a>\n"
     "<bar:│> <bar:│> <quote:b>\n"
     "<bar:│> <bar:│> <quote:lazy>\n"
     "<bar:│>\n"
     "<bar:│> <quote:c>\n"
     "\n"
     "<bar:│> <quote:d>\n"},
    {"lists in quotes in lists", 30, 0, 5,
     "1. > - a\n"
     "   >   b\n"
     "   > - c\n"
     "\n"
     "   d\n",
     "<mark:1.> <bar:│> <mark:•> <quote:a>\n"
     "   <bar:│>   <quote:b>\n"
     "   <bar:│> <mark:•> <quote:c>\n"
     "\n"
     "   d\n"},
    {"a code block", 32, 0, 6,
     "```c\n"
     "int x = 1; // one\n"
     "\n"
     "  y();\n"
     "```\n"
     "out\n",
     "<box:┌> <lang:c> <box:───────────────────────────┐>\n"
     "<box:│> <type:int><c: x = ><number:1><c:; ><comment:// one><c:            ><box:│>\n"
     "<box:│> <c:                             ><box:│>\n"
     "<box:│> <c:  ><function:y><c:();                       ><box:│>\n"
     "<box:└──────────────────────────────┘>\n"
     "out\n"},
    {"code keeps tabs and long lines", 24, 0, 6,
     "```\n"
     "\ta\n"
     "ab\tc\n"
     "0123456789abcdefghijklmnopqrstuvwxyz\n"
     "```\n",
     "<box:┌──────────────────────┐>\n"
     "<box:│> <c:    a                ><box:│>\n"
     "<box:│> <c:ab  c                ><box:│>\n"
     "<box:│> <c:0123456789abcdefghij ><box:│>\n"
     "<box:│> <c:klmnopqrstuvwxyz     ><box:│>\n"
     "<box:└──────────────────────┘>\n"},
    {"code in a list", 30, 0, 8,
     "- a\n"
     "\n"
     "  ```sh\n"
     "  ls | wc\n"
     "  ```\n"
     "- ```\n"
     "  b\n",
     "<mark:•> a\n"
     "\n"
     "  <box:┌> <lang:sh> <box:──────────────────────┐>\n"
     "  <box:│> <function:ls><c: | wc                  ><box:│>\n"
     "  <box:└──────────────────────────┘>\n"
     "<mark:•> <box:┌──────────────────────────┐>\n"
     "  <box:│> <c:b                        ><box:│>\n"
     "  <box:└──────────────────────────┘>\n"},
    {"code ends with its container", 24, 0, 4,
     "> ```\n"
     "> a\n"
     "b\n",
     "<bar:│> <box:┌────────────────────┐>\n"
     "<bar:│> <box:│> <c:a                  ><box:│>\n"
     "<bar:│> <box:└────────────────────┘>\n"
     "b\n"},
    {"indented code", 24, 0, 8,
     "    a\n"
     "\n"
     "\n"
     "      b\n"
     "\n"
     "\n"
     "c\n",
     "<box:┌──────────────────────┐>\n"
     "<box:│> <c:a                    ><box:│>\n"
     "<box:│> <c:                     ><box:│>\n"
     "<box:│> <c:                     ><box:│>\n"
     "<box:│> <c:  b                  ><box:│>\n"
     "<box:└──────────────────────┘>\n"
     "\n"
     "c\n"},
    {"long fences", 24, 0, 7,
     "````\n"
     "```\n"
     "````\n"
     "~~~ x y\n"
     "~~\n"
     "~~~~\n"
     "```a`\n",
     "<box:┌──────────────────────┐>\n"
     "<box:│> <c:```                  ><box:│>\n"
     "<box:└──────────────────────┘>\n"
     "<box:┌> <lang:x> <box:───────────────────┐>\n"
     "<box:│> <c:~~                   ><box:│>\n"
     "<box:└──────────────────────┘>\n"
     "```a`\n"},
    {"links", 60, 0, 1,
     "[t](http://x.y/z \"title\") [a *b*](https://c.d) <https://q.x> <m@x.y>\n",
     "<link@http://x.y/z:t> <link@https://c.d:a ><link/@https://c.d:b> <link@https://q.x:https://q.x> <link@mailto:m@x.y:m@x.y>\n"},
    {"bare addresses", 100, 0, 1,
     "see https://a.b/c_(d)_e. (www.f.g) HTTP://h no:http://i x.http://j www.k http://l_m.n/o*p*\n",
     "see <link@https://a.b/c_(d)_e:https://a.b/c_(d)_e>. (<link@http://www.f.g:www.f.g>) <link@HTTP://h:HTTP://h> no:<link@http://i:http://i> x.<link@http://j:http://j> <link@http://www.k:www.k> http://l_m.n/o</:p>\n"},
    {"shown targets", 60, URLS, 1,
     "[t](http://u.v) <http://u.v> [x](b/c) http://w.x\n",
     "<link@http://u.v:t><url@http://u.v: (http://u.v)> <link@http://u.v:http://u.v> x<url: (b/c)> <link@http://w.x:http://w.x>\n"},
    {"images", 60, 0, 1,
     "![alt *x*](http://i.x/y.png) ![](p.png) [![al](i)](https://o.x)\n",
     "<image@http://i.x/y.png:alt ><image/@http://i.x/y.png:x> <image:p.png> <image@https://o.x:al>\n"},
    {"definitions are text", 30, 0, 2,
     "[a]: http://b.c\n"
     "[a]\n",
     "[a]: <link@http://b.c:http://b.c>\n"
     "[a]\n"},
    {"inline html", 50, 0, 1,
     "a <b>x</b> <!-- c --> <x y='z'/> 1 < 2\n",
     "a <html:<b>>x<html:</b>> <html:<!-- c -->> <html:<x y='z'/>> 1 < 2\n"},
    {"html blocks", 30, 0, 7,
     "<div>\n"
     "*a*\n"
     "\n"
     "<!-- x\n"
     "\n"
     "-->\n"
     "<b>x\n",
     "<html:<div>>\n"
     "<html:*a*>\n"
     "\n"
     "<html:<!-- x>\n"
     "\n"
     "<html:-->>\n"
     "<html:<b>>x\n"},
    {"a table", 40, 0, 8,
     "| A | B | C |\n"
     "|:--|:-:|--:|\n"
     "| 1 | two | 3 |\n"
     "| `a\\|b` | **x** | | more |\n"
     "| y |\n"
     "z\n"
     "\n"
     "end\n",
     "<head:A>   <grid:│>  <head:B>  <grid:│> <head:C> <grid:│>\n"
     "<grid:────┼─────┼───┼─────>\n"
     "<cell:1>   <grid:│> <cell:two> <grid:│> <cell:3> <grid:│>\n"
     "<code:a|b> <grid:│>  <cell*:x>  <grid:│>   <grid:│> <cell:more>\n"
     "<cell:y>   <grid:│>     <grid:│>   <grid:│>\n"
     "<cell:z>   <grid:│>     <grid:│>   <grid:│>\n"
     "\n"
     "end\n"},
    {"a table behind text", 40, 0, 5,
     "text\n"
     "more\n"
     "a | b\n"
     "-|-\n"
     "1 | [l](http://x.y)\n",
     "text\n"
     "more\n"
     "<head:a> <grid:│> <head:b>\n"
     "<grid:──┼──>\n"
     "<cell:1> <grid:│> <link@http://x.y:l>\n"},
    {"a table that wraps", 24, 0, 5,
     "| a | b |\n"
     "|---|---|\n"
     "| a long cell here | and another long one |\n"
     "| x | y |\n",
     "<head:a>          <grid:│> <head:b>\n"
     "<grid:───────────┼────────────>\n"
     "<cell:a long>     <grid:│> <cell:and another>\n"
     "<cell:cell here>  <grid:│> <cell:long one>\n"
     "<cell:x>          <grid:│> <cell:y>\n"},
    {"a table too narrow for columns", 18, 0, 4,
     "| a | b | c | d | e |\n"
     "|---|---|---|---|---|\n"
     "| one | two | three | four | five |\n",
     "<head:a><grid: │ ><head:b><grid: │ ><head:c><grid: │ ><head:d><grid: │ ><head:e>\n"
     "<grid:──────────────────>\n"
     "<cell:one><grid: │ ><cell:two><grid: │ ><cell:three>\n"
     "<grid:│ ><cell:four><grid: │ ><cell:five>\n"},
    {"wide characters in a table", 24, 0, 3,
     "|漢字|x|\n"
     "|-:|-|\n"
     "|a|é|\n",
     "<head:漢字> <grid:│> <head:x>\n"
     "<grid:─────┼──>\n"
     "   <cell:a> <grid:│> <cell:é>\n"},
    {"no table", 30, 0, 5,
     "a | b\n"
     "--|\n"
     "\n"
     "| a |\n"
     "| - | - |\n",
     "a | b\n"
     "--|\n"
     "\n"
     "| a |\n"
     "| - | - |\n"},
    {"margins too wide", 9, 0, 10,
     "1. one two\n"
     "- > x\n"
     "- ```\n"
     "  c\n"
     "- [ ] d\n",
     "<mark:1.>\n"
     "one two\n"
     "<mark:•>\n"
     "<quote:x>\n"
     "<mark:•>\n"
     "<box:─────────>\n"
     "<c:c>\n"
     "<box:─────────>\n"
     "<open:☐>\n"
     "d\n"},
    {"thematic breaks", 12, 0, 5,
     "***\n"
     " - - -\n"
     "___ _\n"
     "--\n"
     "**\n",
     "<rule:────────────>\n"
     "<rule:────────────>\n"
     "<rule:────────────>\n"
     "--\n"
     "**\n"},
    {"controls pass", 30, 0, 5,
     "a\033[31mb \007\177\n"
     "\n"
     "`\033`\n"
     "\n"
     "x&#27;y\n",
     "a\033[31mb \007\177\n"
     "\n"
     "<code:\033>\n"
     "\n"
     "x\033y\n"},
    {"other newlines", 30, 0, 5,
     "a\r\n"
     "b\rc\n"
     "\r\n"
     "d\r",
     "a\n"
     "b\n"
     "c\n"
     "\n"
     "d\n"},
    {"unfinished paragraph", 30, OPEN, 1,
     "done *x*\n"
     "\n"
     "para *x*\n"
     "more [l](http://a.b)",
     "done </:x>\n"
     "\n"
     "<raw:para *x*>\n"
     "<raw:more [l](http://a.b)>\n"},
    {"unfinished item", 30, OPEN, 1,
     "- one *x*\n"
     "- two *y",
     "<mark:•> one </:x>\n"
     "<mark:•> <raw:two *y>\n"},
    {"unfinished heading", 30, OPEN, 1,
     "# one\n"
     "## tw",
     "<h1:one>\n"
     "<raw:## tw>\n"},
    {"unfinished code", 30, OPEN, 2,
     "```py\n"
     "def f():\n"
     "    retu",
     "<box:┌> <lang:py> <box:────────────────────────┐>\n"
     "<box:│> <keyword:def><c: ><function:f><c:():                   ><box:│>\n"
     "<box:│> <c:    retu                   ><box:│>\n"
     "<box:└────────────────────────────┘>\n"},
    {"unfinished table", 30, OPEN, 0,
     "|a|b|\n"
     "|-|-|\n"
     "|c|",
     "<raw:|a|b|>\n"
     "<raw:|-|-|>\n"
     "<raw:|c|>\n"},
    {"unfinished quote", 30, OPEN, 1,
     "> a **b**\n"
     "> > c",
     "<bar:│> <quote:a ><quote*:b>\n"
     "<bar:│> <bar:│> <raw:c>\n"},
    {"an item closes the one before at once", 30, OPEN, 1,
     "- one *x*\n"
     "- t",
     "<mark:•> one </:x>\n"
     "<mark:•> <raw:t>\n"},
    {"nothing closes yet", 30, OPEN, 0,
     "- one *x*\n"
     "-",
     "<mark:•> <raw:one *x*>\n"
     "  <raw:->\n"},
};
/* clang-format on */
enum { N_CASES = sizeof cases / sizeof cases[0] };

/* What holds of any line. */
static void check_lines(struct md *m) {
    size_t source = 0;
    for (size_t i = 0; i < md_n_lines(m); i++) {
        struct md_line line;
        md_line(m, i, &line);
        int col = 0;
        for (size_t k = 0; k < line.n_spans; k++) {
            const struct md_span *s = &line.spans[k];
            ck_assert_int_ge(s->col, col);
            ck_assert_uint_gt(s->len, 0);
            ck_assert(memchr(s->text, '\n', s->len) == NULL &&
                      memchr(s->text, '\t', s->len) == NULL);
            col = s->col + ui_text_width(s->text, s->len, 1 << 20);
        }
        ck_assert_uint_ge(line.source, source);
        ck_assert_uint_eq(line.source, md_line_source(m, i));
        source = line.source;
    }
}

START_TEST(construct) {
    struct md_options options = {.join_lines = (cases[_i].flags & JOIN) != 0,
                                 .show_urls = (cases[_i].flags & URLS) != 0};
    struct md *m = md_create(&options);
    md_append(m, cases[_i].source, strlen(cases[_i].source));
    if ((cases[_i].flags & OPEN) == 0) {
        md_finish(m);
    }
    md_layout(m, cases[_i].width);
    struct cw_buf got = {0};
    md_text_lines(m, md_n_lines(m), true, &got);
    ck_assert_msg(strcmp(got.data, cases[_i].lines) == 0, "%s:\n%s\ninstead of\n%s", cases[_i].name,
                  got.data, cases[_i].lines);
    ck_assert_msg(md_n_settled(m) == cases[_i].n_settled, "%s: %zu settled", cases[_i].name,
                  md_n_settled(m));
    check_lines(m);
    cw_buf_free(&got);
    md_destroy(m);
}
END_TEST

/* ---- Links. ---- */

/* The target of the first link in `source`, "" if there is none that may be followed. */
static void first_target(const char *source, struct cw_buf *out) {
    struct md *m = md_create(NULL);
    md_append(m, source, strlen(source));
    md_finish(m);
    md_layout(m, 10000);
    cw_buf_clear(out);
    cw_buf_puts(out, "");
    struct md_line line;
    md_line(m, 0, &line);
    for (size_t i = 0; i < line.n_spans && out->len == 0; i++) {
        cw_buf_puts(out, md_link_url(m, line.spans[i].link));
    }
    ck_assert_str_eq(md_link_url(m, 0), "");
    ck_assert_str_eq(md_link_url(m, 1000), "");
    md_destroy(m);
}

static const struct {
    const char *source, *target;
} targets[] = {
    {"[a](http://b.c)", "http://b.c"},
    {"[a](HTTPS://B.C/D?e=f&g#h)", "HTTPS://B.C/D?e=f&g#h"},
    {"[a](mailto:b@c.d)", "mailto:b@c.d"},
    {"<b@c.d>", "mailto:b@c.d"},
    {"[a](<http://b.c/d e>)", "http://b.c/d%20e"},
    {"[a](http://b.c/\303\251\\\"<>`)", "http://b.c/%C3%A9%22%3C%3E%60"},
    {"[a](http://b.c/\342\200\256x)", "http://b.c/%E2%80%AEx"}, /* right-to-left override */
    {"[a](javascript:alert(1))", ""},
    {"[a](JaVaScRiPt:x)", ""},
    {"[a](data:text/html,x)", ""},
    {"[a](file:///etc/passwd)", ""},
    {"[a](file://b/c)", ""},
    {"[a](vscode://x)", ""},
    {"[a](//b.c)", ""},
    {"[a](/b)", ""},
    {"[a](#b)", ""},
    {"[a](http:b.c)", ""},
    {"[a](http:///b)", ""},
    {"[a](http://)", ""},
    {"[a](mailto:)", ""},
    {"[a](http://b.c&#27;]8;;)", ""},  /* an escape, by name */
    {"[a](http://b.c&#x7;)", ""},      /* a bell would end the sequence */
    {"[a](http://b.c&#127;)", ""},     /* delete */
    {"[a](http://b.c&#x9c;)", ""},     /* the one-byte string terminator */
    {"[a](http://b.c&NewLine;x)", ""}, /* a newline */
    {"<http://b.c/\033]8>", "http://b.c/"},
    {"http://b.c/\007x", "http://b.c/"},
    {"![a](javascript:x)", ""},
    {"![a](http://b.c)", "http://b.c"},
    {"http://user@b.c:80/x", "http://user@b.c:80/x"},
    {"http://b.c:80/x,", "http://b.c:80/x"},
    {"http://b.c/x&amp;", "http://b.c/x"},
    {"http://b.c/x;y", "http://b.c/x;y"},
    {"http://b.c/?q=(a)&r=)))", "http://b.c/?q=(a)&r="},
    {"ahttp://b.c", ""},
    {"www.b", "http://www.b"},
    {"xwww.b.c", ""},
    {"[http://b.c](http://d.e)", "http://d.e"},
};

START_TEST(link_target) {
    struct cw_buf got = {0};
    first_target(targets[_i].source, &got);
    ck_assert_msg(strcmp(got.data, targets[_i].target) == 0, "%s: %s instead of %s",
                  targets[_i].source, got.data, targets[_i].target);
    cw_buf_free(&got);
}
END_TEST

START_TEST(a_target_has_a_limit) {
    struct cw_buf source = {0}, got = {0};
    for (size_t n = 2000; n <= 2100; n += 100) {
        cw_buf_clear(&source);
        cw_buf_puts(&source, "[a](http://");
        for (size_t i = 7; i < n; i++) {
            cw_buf_putc(&source, 'x');
        }
        cw_buf_puts(&source, ")");
        first_target(source.data, &got);
        ck_assert_uint_eq(got.len, n == 2000 ? n : 0);
    }
    cw_buf_free(&source);
    cw_buf_free(&got);
}
END_TEST

START_TEST(hidden_targets_are_not_links) {
    struct md *m = md_create(NULL);
    static const char source[] = "[click](javascript:x)";
    md_append(m, source, strlen(source));
    md_finish(m);
    md_layout(m, 80);
    struct md_line line;
    md_line(m, 0, &line);
    ck_assert_uint_eq(line.n_spans, 1);
    ck_assert_int_eq(line.spans[0].role, MD_TEXT);
    ck_assert_uint_eq(line.spans[0].link, 0);
    md_destroy(m);
}
END_TEST

/* ---- Code to copy. ---- */

START_TEST(code_blocks_can_be_copied) {
    static const char source[] = "a\n\n> ```Py thon\n> x\n>\n>   a very long line of it\n> ```\n\n"
                                 "1.     i\n\n           j\n\n~~~\nopen\n\tla";
    static const struct {
        const char *language, *text;
        bool closed;
    } want[] = {{"Py", "x\n\n  a very long line of it\n", true},
                {"", "i\n\n    j\n", true},
                {"", "open\n\tla", false}};
    struct md *m = md_create(NULL);
    md_append(m, source, strlen(source));
    for (int width = 1; width < 40; width += 19) {
        md_layout(m, width);
        struct md_code_block code;
        ck_assert_uint_eq(md_n_code_blocks(m), 3);
        for (size_t i = 0; i < 3; i++) {
            ck_assert(md_code_block(m, i, &code));
            ck_assert_str_eq(code.language, want[i].language);
            ck_assert_uint_eq(code.len, strlen(want[i].text));
            ck_assert(memcmp(code.text, want[i].text, code.len) == 0);
            ck_assert_int_eq(code.closed, want[i].closed);
        }
        ck_assert(!md_code_block(m, 3, &code));
    }
    /* a line says whose it is */
    size_t seen[4] = {0};
    for (size_t i = 0; i < md_n_lines(m); i++) {
        struct md_line line;
        md_line(m, i, &line);
        ck_assert_uint_lt(line.code_block, 4);
        seen[line.code_block]++;
    }
    ck_assert_uint_eq(seen[1], 5); /* 3 lines and the frame */
    ck_assert_uint_eq(seen[2], 5);
    ck_assert_uint_eq(seen[3], 4);

    md_append(m, "st", 2);
    md_finish(m);
    md_layout(m, 20);
    struct md_code_block code;
    ck_assert(md_code_block(m, 2, &code));
    ck_assert(code.closed);
    ck_assert(code.len == 11 && memcmp(code.text, "open\n\tlast\n", 11) == 0);
    md_destroy(m);
}
END_TEST

/* What was shown of an unfinished line, and was no code after all, is not copied. */
START_TEST(a_closing_fence_is_not_code) {
    struct md *m = md_create(NULL);
    struct md_code_block code;
    md_append(m, "```\na\n``", 8);
    md_layout(m, 20);
    ck_assert(md_code_block(m, 0, &code));
    ck_assert(code.len == 4 && memcmp(code.text, "a\n``", 4) == 0 && !code.closed);
    md_append(m, "`", 1);
    ck_assert(md_code_block(m, 0, &code));
    ck_assert(code.len == 2 && memcmp(code.text, "a\n", 2) == 0 && !code.closed);
    md_append(m, "\nb", 2);
    md_layout(m, 20);
    ck_assert(md_code_block(m, 0, &code));
    ck_assert(code.len == 2 && memcmp(code.text, "a\n", 2) == 0 && code.closed);
    ck_assert_uint_eq(md_n_code_blocks(m), 1);
    md_destroy(m);
}
END_TEST

/* ---- Corners of the interface. ---- */

START_TEST(nothing_is_no_lines) {
    struct md *m = md_create(NULL);
    ck_assert_uint_eq(md_n_lines(m), 0);
    ck_assert_uint_eq(md_n_code_blocks(m), 0);
    md_layout(m, 80);
    ck_assert_uint_eq(md_n_lines(m), 0);
    md_append(m, "\n \n", 3);
    md_layout(m, 0);
    ck_assert_uint_eq(md_n_lines(m), 0);
    md_finish(m);
    md_layout(m, -5);
    ck_assert_uint_eq(md_n_lines(m), 0);
    md_destroy(m);
    md_destroy(NULL);
}
END_TEST

START_TEST(text_after_the_end_begins_anew) {
    struct md *m = md_create(NULL);
    md_append(m, "- a\n\n  ```\n  b", 14);
    md_finish(m);
    md_finish(m);
    md_append(m, "  c *d", 6);
    md_finish(m);
    md_layout(m, 20);
    struct cw_buf got = {0};
    md_text_lines(m, md_n_lines(m), false, &got);
    ck_assert_str_eq(got.data, "• a\n\n  ┌────────────────┐\n  │ b              │\n"
                               "  └────────────────┘\n\nc *d\n");
    cw_buf_free(&got);
    md_destroy(m);
}
END_TEST

START_TEST(depth_is_bounded) {
    struct md *m = md_create(NULL);
    for (int i = 0; i < 100; i++) {
        md_append(m, "> - ", 4);
    }
    md_append(m, "x", 1);
    md_finish(m);
    md_layout(m, 2000);
    ck_assert_uint_eq(md_n_lines(m), 1);
    struct cw_buf got = {0};
    md_text_line(m, 0, false, &got);
    /* a third of MD_DEPTH_MAX of each, as a list and its item are two; the rest is text */
    size_t bars = 0, marks = 0;
    for (size_t i = 0; i + 2 < got.len; i++) {
        bars += memcmp(got.data + i, "│", 3) == 0;
        marks += got.data[i] == '>';
    }
    ck_assert_uint_eq(bars, (MD_DEPTH_MAX + 2) / 3);
    ck_assert_uint_eq(bars + marks, 100);
    cw_buf_free(&got);
    md_destroy(m);
}
END_TEST

int main(void) {
    setlocale(LC_ALL, "C.UTF-8");
    Suite *s = suite_create("markdown");
    TCase *t = tcase_create("constructs");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, construct, 0, N_CASES);
    suite_add_tcase(s, t);
    t = tcase_create("links");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, link_target, 0, (int)(sizeof targets / sizeof targets[0]));
    tcase_add_test(t, a_target_has_a_limit);
    tcase_add_test(t, hidden_targets_are_not_links);
    suite_add_tcase(s, t);
    t = tcase_create("interface");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, code_blocks_can_be_copied);
    tcase_add_test(t, a_closing_fence_is_not_code);
    tcase_add_test(t, nothing_is_no_lines);
    tcase_add_test(t, text_after_the_end_begins_anew);
    tcase_add_test(t, depth_is_bounded);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
