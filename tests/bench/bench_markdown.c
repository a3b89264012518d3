/* SPDX-License-Identifier: MIT
 *
 * How long 1 MiB of Markdown takes as it streams in, and how that compares with plain text: in
 * pieces of the size of a token, laid out after every so many; once the document alone, once as a
 * reply in the transcript, drawn after every so many. Not a test; run it by hand on a quiet
 * machine.
 *
 *     bench_markdown [bytes a piece] [pieces a frame]
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/clock.h"
#include "ui/markdown/markdown.h"
#include "ui/transcript.h"

enum { BYTES = 1 << 20, WIDTH = 100, ROWS = 24, RUNS = 3 };

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

/* A document of lines, or a reply on a screen, which is given its text in pieces. */
struct way {
    const char *name;
    void (*begin)(void);
    void (*append)(const char *s, size_t n);
    void (*frame)(void);
    void (*finish)(void);
    void (*end)(void);
};

static struct md *document;
static struct ui_transcript *transcript;
static uint32_t reply;
static struct ui_screen screen;

static void document_begin(void) {
    document = md_create(NULL);
}

static void document_append(const char *s, size_t n) {
    md_append(document, s, n);
}

static void document_frame(void) {
    md_layout(document, WIDTH);
}

static void document_finish(void) {
    md_finish(document);
}

static void document_end(void) {
    md_destroy(document);
}

static void transcript_begin(void) {
    transcript = ui_transcript_create();
    reply = ui_transcript_add(transcript, UI_BLOCK_REPLY, "reply");
    ui_screen_init(&screen, ROWS, WIDTH);
    ui_transcript_resize(transcript, ROWS, WIDTH);
}

static void transcript_append(const char *s, size_t n) {
    ui_transcript_token(transcript, reply, 0.5);
    ui_transcript_append(transcript, reply, s, n);
}

static void transcript_frame(void) {
    ui_screen_clear(&screen);
    ui_transcript_draw(transcript, &screen, 0);
}

static void transcript_finish(void) {
    ui_transcript_finish(transcript, reply);
}

static void transcript_end(void) {
    ui_transcript_destroy(transcript);
    ui_screen_free(&screen);
}

static const struct way ways[] = {
    {"document", document_begin, document_append, document_frame, document_finish, document_end},
    {"transcript", transcript_begin, transcript_append, transcript_frame, transcript_finish,
     transcript_end},
};
enum { N_WAYS = sizeof ways / sizeof ways[0] };

static double seconds(const struct way *way, const char *s, size_t piece, size_t frame) {
    double best = 1e9;
    for (int run = 0; run < RUNS; run++) {
        double begin = cw_now();
        size_t n = 0;
        way->begin();
        for (size_t i = 0; i < BYTES; i += piece) {
            way->append(s + i, piece < BYTES - i ? piece : BYTES - i);
            if (++n % frame == 0) {
                way->frame();
            }
        }
        way->finish();
        way->frame();
        way->end();
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
    double plain[N_WAYS] = {0};
    printf("%-28s", "1 MiB of");
    for (size_t w = 0; w < N_WAYS; w++) {
        printf(" %12s ms %8s", ways[w].name, "x plain");
    }
    printf("\n");
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++) {
        char *s = fill(inputs[i].pattern, inputs[i].line, inputs[i].gap);
        printf("%-28s", inputs[i].name);
        for (size_t w = 0; w < N_WAYS; w++) {
            double took = seconds(&ways[w], s, piece, frame);
            plain[w] = i == 0 ? took : plain[w];
            printf(" %15.1f %8.2f", took * 1e3, took / plain[w]);
            fflush(stdout);
        }
        printf("\n");
        free(s);
    }
    return 0;
}
