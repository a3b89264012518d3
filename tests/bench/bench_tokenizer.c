/* SPDX-License-Identifier: MIT
 *
 * How long a tokenizer takes: bench_tokenizer MODEL [TEXT]
 *
 * Prints milliseconds, the best of three: creation; 10 MB of text (the file TEXT over and over, or
 * a built-in one), also as each family of pre-tokenizers cuts it; words of 100,000 characters and
 * 10 MB without any place to cut, which show whether the cost stays below the square.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/clock.h"
#include "core/text/tokenizer/tokenizer_impl.h"

enum { TEXT_BYTES = 10000000, WORD_CHARS = 100000, RUNS = 3 };

static const char sample[] =
    "The tokenizer reads this paragraph again and again, so it holds what chats hold: prose, names "
    "like Ada Lovelace, dates (10 December 1815), prices of $3.50, and don't forget contractions.\n"
    "\n"
    "    for (size_t i = 0; i < n; i++) {\n"
    "        sum += values[i] * 0x1F; /* hexadecimal */\n"
    "    }\n"
    "Stra\xc3\x9f"
    "e, na\xc3\xafve, \xd0\xbf\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82, "
    "\xe4\xbd\xa0\xe5\xa5\xbd\xef\xbc\x8c\xe4\xb8\x96\xe7\x95\x8c, "
    "\xf0\x9f\x98\x80 {\"key\": [1, 22, 333, 4444]} https://example.org/a/b?c=d&e=f\n";

/* Fill out with `bytes` bytes of s, over and over, whole repetitions only. */
static void repeat(struct cw_buf *out, const char *s, size_t n, size_t bytes) {
    cw_buf_clear(out);
    while (n > 0 && out->len + n <= bytes) {
        cw_buf_add(out, s, n);
    }
}

static void measure(struct cw_tokenizer *t, const char *name, const struct cw_buf *text) {
    struct cw_ids ids = {0};
    struct cw_err err = {0};
    double best = 0;
    for (int run = 0; run < RUNS; run++) {
        ids.n = 0;
        double start = cw_now();
        if (cw_tokenizer_encode(t, text->data, text->len, 0, &ids, &err) != CW_OK) {
            fprintf(stderr, "%s: %s\n", name, err.text);
            break;
        }
        double took = cw_now() - start;
        best = run == 0 || took < best ? took : best;
    }
    printf("%-34s %9.1f ms  %8.2f MB %9zu ids\n", name, best * 1e3, (double)text->len * 1e-6,
           ids.n);
    cw_ids_free(&ids);
}

/* The text as each family cuts it, whatever the vocabulary was made for. */
static void measure_families(const struct cw_gguf *gguf, const struct cw_buf *text) {
    const struct cw_pre *pre;
    for (size_t i = 0; (pre = cw_pre_at(i)) != NULL; i++) {
        const struct cw_tokenizer_options opt = {.pre = pre->name};
        struct cw_tokenizer *t = NULL;
        bool known = (pre->flags & PRE_TEXT) != 0; /* cuts nothing */
        for (size_t k = 0; k < i; k++) {
            known = known || cw_pre_at(k)->patterns == pre->patterns;
        }
        if (!known && cw_tokenizer_create(&t, gguf, &opt, NULL) == CW_OK) {
            char name[64];
            snprintf(name, sizeof name, "text as %s", pre->name);
            measure(t, name, text);
        }
        cw_tokenizer_destroy(t);
    }
}

static int read_file(const char *path, struct cw_buf *out) {
    char chunk[1 << 16];
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        return CW_EIO;
    }
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;) {
        cw_buf_add(out, chunk, n);
    }
    fclose(f);
    return CW_OK;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name, *s;
    } words[] = {
        {"a", "a"},
        {"ab", "ab"},
        {"A", "A"},
        {"digits", "1234567890"},
        {"blanks", " "},
        {"newlines", "\n"},
        {"tabs and newlines", "\t\n"},
        {"symbols", "=-+*"},
        {"quotes", "'"},
        {"Chinese", "\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xb8\x96\xe7\x95\x8c"},
        {"Cyrillic", "\xd0\xbf\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82"},
        {"combining marks", "e\xcc\x81"},
        {"emoji", "\xf0\x9f\x98\x80"},
        {"invalid", "\xff"},
    };
    struct cw_gguf *gguf = NULL;
    struct cw_tokenizer *t = NULL;
    struct cw_err err = {0};
    struct cw_buf file = {0};
    struct cw_buf text = {0};
    double best = 0;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: bench_tokenizer MODEL [TEXT]\n");
        return 2;
    }
    if (cw_gguf_open(&gguf, argv[1], &err) != CW_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    for (int run = 0; run < RUNS; run++) {
        cw_tokenizer_destroy(t);
        double start = cw_now();
        if (cw_tokenizer_create(&t, gguf, NULL, &err) != CW_OK) {
            fprintf(stderr, "%s\n", err.text);
            cw_gguf_close(gguf);
            return 1;
        }
        double took = cw_now() - start;
        best = run == 0 || took < best ? took : best;
    }
    printf("%s %s, %d tokens\n%-34s %9.1f ms\n", cw_tokenizer_model_name(t),
           cw_tokenizer_pre_name(t), cw_tokenizer_n_tokens(t), "create", best * 1e3);

    if (argc == 3 && read_file(argv[2], &file) != CW_OK) {
        fprintf(stderr, "%s: cannot be read\n", argv[2]);
    }
    if (file.len == 0) {
        cw_buf_add(&file, sample, sizeof sample - 1);
    }
    repeat(&text, file.data, file.len, TEXT_BYTES);
    measure(t, "text", &text);
    if (t->kind == KIND_BYTE_BPE) {
        measure_families(gguf, &text);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char name[64];
        size_t n = strlen(words[i].s);
        snprintf(name, sizeof name, "word of %s", words[i].name);
        size_t chars = 0; /* of the pattern */
        for (size_t k = 0; k < n; k++) {
            chars += ((unsigned char)words[i].s[k] & 0xc0) != 0x80;
        }
        repeat(&text, words[i].s, n, WORD_CHARS / chars * n);
        measure(t, name, &text);
    }
    repeat(&text, "ab", 2, TEXT_BYTES);
    measure(t, "ab without a cut", &text);
    repeat(&text, " ", 1, TEXT_BYTES);
    measure(t, "blanks without a cut", &text);

    cw_buf_free(&file);
    cw_buf_free(&text);
    cw_tokenizer_destroy(t);
    cw_gguf_close(gguf);
    return 0;
}
