/* SPDX-License-Identifier: MIT
 *
 * How long 1 MiB of Markdown takes as it streams in, and how that compares with plain text: in
 * pieces of the size of a token, laid out after every so many. Not a test; run it by hand on a
 * quiet machine.
 *
 *     bench_markdown [bytes a piece] [pieces a frame]
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/clock.h"
#include "ui/markdown/markdown.h"

enum { BYTES = 1 << 20, WIDTH = 100, RUNS = 3 };

/* `pattern` over and over; with `line` > 0 a newline after so many bytes, with `gap` an empty line
 * after each `gap` of those. */
static char *fill(const char *pattern, size_t line, size_t gap) {
    char *s = cw_malloc(BYTES + 1);
    size_t len = strlen(pattern), col = 0, lines = 0, at = 0;
    for (size_t i = 0; i < BYTES; i++) {
        if (line > 0 && col >= line && at == 0) {
            s[i] = '\n';
            col = 0;
            lines++;
            if (gap > 0 && lines % gap == 0 && i + 1 < BYTES) {
                s[++i] = '\n';
            }
            continue;
        }
        s[i] = pattern[at];
        at = (at + 1) % len;
        col++;
    }
    s[BYTES] = '\0';
    return s;
}

static double seconds(const char *s, size_t piece, size_t frame, size_t *n_lines) {
    double best = 1e9;
    for (int run = 0; run < RUNS; run++) {
        double begin = cw_now();
        struct md *m = md_create(NULL);
        size_t n = 0;
        for (size_t i = 0; i < BYTES; i += piece) {
            md_append(m, s + i, piece < BYTES - i ? piece : BYTES - i);
            if (++n % frame == 0) {
                md_layout(m, WIDTH);
            }
        }
        md_finish(m);
        md_layout(m, WIDTH);
        *n_lines = md_n_lines(m);
        md_destroy(m);
        double took = cw_now() - begin;
        best = took < best ? took : best;
    }
    return best;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name, *pattern;
        size_t line, gap;
    } inputs[] = {
        {"plain text, one line", "some words of plain text, ", 0, 0},
        {"plain text, lines", "some words of plain text, ", 78, 0},
        {"plain text, paragraphs", "some words of plain text, ", 78, 5},
        {"![[]()", "![[]()", 0, 0},
        {"|", "|", 0, 0},
        {"> ", "> ", 0, 0},
        {"*_", "*_", 0, 0},
        {"![[]() lines", "![[]()", 78, 0},
        {"| lines", "|", 78, 0},
        {"> lines", "> ", 78, 0},
        {"*_ lines", "*_", 78, 0},
        {"- lines", "- ", 78, 0},
        {"![[]() paragraphs", "![[]()", 78, 5},
        {"| paragraphs", "|", 78, 5},
        {"*_ paragraphs", "*_", 78, 5},
        {"![[]() paragraphs of 16 kB", "![[]()", 78, 200},
        {"*_ paragraphs of 16 kB", "*_", 78, 200},
        {"<? paragraphs of 16 kB", "<?", 78, 200},
        {"`a``b paragraphs of 16 kB", "`a``b", 78, 200},
        {"[a]( paragraphs of 16 kB", "[a](", 78, 200},
        {"- items", "- item *x* of a list with `code`\n", 0, 0},
        {"a chat",
         "### Title\n\nSome **bold** text with `code` and a [link](https://a.b/c).\n\n"
         "- one item\n- another one\n\n```c\nint main(void) { return 0; } // done\n```\n\n"
         "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
         0, 0},
        {"code", "    for (int i = 0; i < n; i++) { sum += a[i] * 2.5f; } /* \"s\" */\n", 0, 0},
    };
    setlocale(LC_ALL, "C.UTF-8");
    size_t piece = argc > 1 ? strtoul(argv[1], NULL, 10) : 4;
    size_t frame = argc > 2 ? strtoul(argv[2], NULL, 10) : 8;
    piece = piece > 0 ? piece : 1;
    frame = frame > 0 ? frame : 1;
    double plain = 0;
    printf("%-28s %9s %9s %8s %8s\n", "1 MiB of", "ms", "ns/byte", "lines", "x plain");
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        char *s = fill(inputs[i].pattern, inputs[i].line, inputs[i].gap);
        size_t n_lines;
        double took = seconds(s, piece, frame, &n_lines);
        plain = i == 0 ? took : plain;
        printf("%-28s %9.1f %9.1f %8zu %8.2f\n", inputs[i].name, took * 1e3, took * 1e9 / BYTES,
               n_lines, took / plain);
        free(s);
    }
    return 0;
}
