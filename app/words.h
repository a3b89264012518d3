/* SPDX-License-Identifier: MIT
 *
 * Lists of words in one string, separated by blanks, as the tables hold them: "t --threads"; and
 * the word of such lists that was likely meant by one that is in none. Any thread.
 */
#ifndef APP_WORDS_H
#define APP_WORDS_H

#include <stdbool.h>

#include "chinwag/mem.h"

/* The next word of *rest, which moves behind it; false: there is none. */
bool app_words_next(const char **rest, struct cw_str *word);
/* Whether a list holds word[0..n); *index (may be NULL) is its place. */
bool app_words_hold(const char *list, const char *word, size_t n, int *index);

/* The name nearest to a word, of all that were tried. Begin with the word alone. */
struct app_nearest {
    struct cw_str word;
    struct cw_str name; /* NULL: none is so near that it could be meant */
    size_t edits;
};
/* Try the names of a list. Hyphens in front of a name or of the word do not count. */
void app_nearest_try(struct app_nearest *s, const char *names);

#endif
