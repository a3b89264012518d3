/* SPDX-License-Identifier: MIT
 * A locale that writes decimal commas, which few machines have: made by localedef for one test. */
#ifndef TESTS_COMMA_LOCALE_H
#define TESTS_COMMA_LOCALE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct comma_locale {
    char dir[40];
    bool made; /* else localedef cannot here */
};

/* setlocale(.., "de_DE.utf8") works then, in this process. */
static inline struct comma_locale comma_locale_make(void) {
    struct comma_locale l = {.dir = "/tmp/chinwag-locale-XXXXXX"};
    char command[160];
    if (mkdtemp(l.dir) == NULL) {
        l.dir[0] = '\0';
        return l;
    }
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.utf8 >/dev/null 2>&1",
             l.dir);
    l.made = system(command) == 0;
    setenv("LOCPATH", l.dir, 1);
    return l;
}

static inline void comma_locale_remove(const struct comma_locale *l) {
    char command[80];
    unsetenv("LOCPATH");
    snprintf(command, sizeof command, "rm -rf '%s'", l->dir);
    if (l->dir[0] != '\0' && system(command) != 0) {
        fprintf(stderr, "%s stays\n", l->dir);
    }
}

#endif
