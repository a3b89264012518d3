/* SPDX-License-Identifier: MIT
 *
 * How long the store takes to answer with many conversations in it:
 *
 *   bench_store FOLDER [CONVERSATIONS [MESSAGES]]
 *
 * Fills an empty folder first (10,000 conversations of 50 messages when not told otherwise), else
 * takes what is there. Prints the median and the longest of 20 answers each, in milliseconds, as
 * the asking thread sees them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/clock.h"
#include "chinwag/store.h"

enum { N_WORDS = 8000, N_ROUNDS = 20, AHEAD = 64 };

static uint32_t state = 1;

static uint32_t next_random(void) {
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

/* A word out of a vocabulary of N_WORDS in which, as in speech, few are frequent. */
static void put_word(struct cw_buf *out) {
    static const char *const syllables[] = {"ka",  "lo",  "mi", "ren", "tu",  "sha", "vel", "or",
                                            "pin", "das", "ge", "nu",  "ith", "fo",  "bar", "ze"};
    double u = (double)(next_random() % 100000) / 100000.0;
    uint32_t w = (uint32_t)(N_WORDS * u * u * u);
    do {
        cw_buf_puts(out, syllables[w % 16]);
        w /= 16;
    } while (w > 0);
}

static void fill(struct cw_store *s, int n_conversations, int n_messages) {
    struct cw_err err;
    for (int c = 0; c < n_conversations; c++) {
        struct cw_store_conversation head = {.id = cw_store_new_id(s), .model = {"Bench", 5}};
        int64_t parent = 0;
        cw_store_put_conversation(s, &head, NULL);
        for (int i = 0; i < n_messages; i++) {
            struct cw_buf text = {0};
            uint32_t n = 5 + next_random() % (i % 2 ? 80 : 20);
            for (uint32_t k = 0; k < n; k++) {
                put_word(&text);
                cw_buf_putc(&text, ' ');
            }
            if (i == 7 && c % 1000 == 0) {
                cw_buf_puts(&text, "needle in it");
            }
            const struct cw_store_message m = {.id = cw_store_new_id(s),
                                               .parent = parent,
                                               .conversation = head.id,
                                               .role = i % 2 ? CW_STORE_REPLY : CW_STORE_USER,
                                               .text = {text.data, text.len},
                                               .done = true};
            cw_store_put_message(s, &m, NULL);
            parent = m.id;
            cw_buf_free(&text);
        }
        cw_store_set_leaf(s, head.id, parent, NULL);
        cw_store_release(s, head.id);
        if (c % AHEAD == AHEAD - 1 && cw_store_wait_saved(s, &err) != CW_OK) {
            fprintf(stderr, "bench_store: %s\n", err.text);
            exit(1);
        }
    }
}

static int by_value(const void *a, const void *b) {
    const double *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void measure(struct cw_store *s, const char *what, const char *query, size_t limit) {
    double ms[N_ROUNDS];
    size_t n = 0;
    for (int i = 0; i < N_ROUNDS; i++) {
        static uint64_t serial;
        double before = cw_now();
        cw_store_list(s, query, limit, ++serial);
        struct cw_store_event *ev = cw_store_wait(s, serial);
        ms[i] = (cw_now() - before) * 1e3;
        n = ev->n_hits;
        cw_store_event_free(ev);
    }
    qsort(ms, N_ROUNDS, sizeof *ms, by_value);
    printf("%-28s %6zu hits  median %7.2f ms  longest %7.2f ms\n", what, n, ms[N_ROUNDS / 2],
           ms[N_ROUNDS - 1]);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: bench_store FOLDER [CONVERSATIONS [MESSAGES]]\n");
        return 2;
    }
    struct cw_err err = {0};
    struct cw_store *s;
    const struct cw_store_options opt = {.dir = argv[1]};
    double before = cw_now();
    if (cw_store_create(&s, &opt, &err) != CW_OK) {
        fprintf(stderr, "bench_store: %s\n", err.text);
        return 1;
    }
    cw_store_list(s, "", 1, UINT64_MAX);
    struct cw_store_event *ev = cw_store_wait(s, UINT64_MAX);
    bool empty = ev->n_hits == 0;
    cw_store_event_free(ev);
    printf("first answer after %.1f ms\n", (cw_now() - before) * 1e3);
    if (empty) {
        fill(s, argc > 2 ? atoi(argv[2]) : 10000, argc > 3 ? atoi(argv[3]) : 50);
        printf("filled in %.1f s\n", cw_now() - before);
    }
    measure(s, "list, 50", "", 50);
    measure(s, "list, 1000", "", 1000);
    measure(s, "list, all", "", 1000000);
    measure(s, "rare word", "needle", 50);
    measure(s, "two words", "needle it", 50);
    measure(s, "frequent word", "ka", 50);
    measure(s, "common word", "lorenka", 50);
    measure(s, "beginning of a word", "lore", 50);
    measure(s, "no such word", "qqqqq", 50);
    measure(s, "model", "bench", 50);
    if (cw_store_destroy(s, &err) != CW_OK) {
        fprintf(stderr, "bench_store: %s\n", err.text);
        return 1;
    }
    return 0;
}
