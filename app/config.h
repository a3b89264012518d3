/* SPDX-License-Identifier: MIT
 *
 * config.ini: a file of `option = value` lines, one for any row of the option table that may stand
 * there, in any section or none; in the section `[keys]` lines are `action = KEY, KEY`. Parsed by
 * inih: `;` and `#` begin comments, a line that begins with a blank goes on with the value above it
 * (a further line of a text).
 */
#ifndef APP_CONFIG_H
#define APP_CONFIG_H

#include "app/options.h"

struct app_config_sink {
    /* A line that is odd but no error, such as an unknown key: "FILE:LINE: what". May be NULL. */
    void (*warn)(void *arg, const char *line);
    /* A line of [keys]. CW_ENOENT (no such action) is a warning, any other failure an error. NULL:
     * keys do not matter here. */
    int (*key)(void *arg, const char *action, const char *keys, int line, struct cw_err *err);
    void *arg;
};

/* Read `path` into *s with origin APP_CONFIG. CW_ENOENT when there is no such file; else the first
 * error as "FILE:LINE: what", everything before and after it having been taken over. */
int app_config_load(struct app_settings *s, const char *path, const struct app_config_sink *sink,
                    struct cw_err *err);

#endif
