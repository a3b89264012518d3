/* SPDX-License-Identifier: MIT
 *
 * See words.h.
 */
#include "app/words.h"

#include <string.h>

bool app_words_next(const char **rest, struct cw_str *word) {
    *rest += strspn(*rest, " ");
    *word = (struct cw_str){*rest, strcspn(*rest, " ")};
    *rest += word->len;
    return word->len > 0;
}

bool app_words_hold(const char *list, const char *word, size_t n, int *index) {
    struct cw_str w;
    for (int i = 0; app_words_next(&list, &w); i++) {
        if (w.len == n && memcmp(w.data, word, n) == 0) {
            if (index != NULL) {
                *index = i;
            }
            return true;
        }
    }
    return false;
}

enum { LONGEST = 32 };

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Edits between two short words: a letter more, less or other, or two neighbours swapped (the
 * optimal string alignment distance). */
static size_t distance(struct cw_str a, struct cw_str b) {
    size_t d[LONGEST + 1][LONGEST + 1];
    for (size_t i = 0; i <= a.len; i++) {
        for (size_t k = 0; k <= b.len; k++) {
            if (i == 0 || k == 0) {
                d[i][k] = i + k;
                continue;
            }
            bool same = a.data[i - 1] == b.data[k - 1];
            d[i][k] = least(d[i - 1][k - 1] + !same, least(d[i - 1][k], d[i][k - 1]) + 1);
            if (i > 1 && k > 1 && a.data[i - 1] == b.data[k - 2] &&
                a.data[i - 2] == b.data[k - 1]) {
                d[i][k] = least(d[i][k], d[i - 2][k - 2] + 1);
            }
        }
    }
    return d[a.len][b.len];
}

static struct cw_str bare(struct cw_str s) {
    while (s.len > 0 && s.data[0] == '-') {
        s.data++;
        s.len--;
    }
    return s;
}

void app_nearest_try(struct app_nearest *s, const char *names) {
    struct cw_str name, word = bare(s->word);
    while (app_words_next(&names, &name)) {
        struct cw_str n = bare(name);
        if (n.len > LONGEST || word.len > LONGEST) {
            continue;
        }
        /* further away than a third of its letters a word may as well mean something else */
        size_t edits = distance(word, n);
        if (3 * edits <= least(word.len, n.len) && (s->name.data == NULL || edits < s->edits)) {
            s->name = name;
            s->edits = edits;
        }
    }
}
