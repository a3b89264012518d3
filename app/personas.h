/* SPDX-License-Identifier: MIT
 *
 * Personas and prompts of a person's own, as named files in the config folder.
 *
 *   personas/NAME.ini   options as in config.ini, such as `system` and `temp`
 *   prompts/NAME.txt    a text with {placeholders}
 *
 * A name is letters, digits, '-', '_' and '.', not beginning with a point: never a path. Main
 * thread.
 */
#ifndef APP_PERSONAS_H
#define APP_PERSONAS_H

#include "app/options.h"
#include "app/paths.h"

enum app_named { APP_PERSONA, APP_PROMPT };

/* Call `each` with every name there is, in the order of the alphabet. */
void app_named_list(const struct app_paths *paths, enum app_named kind,
                    void (*each)(void *arg, const char *name), void *arg);
/* The path of a name; NULL: no such name can be. Caller must free. */
char *app_named_path(const struct app_paths *paths, enum app_named kind, const char *name);

/* Take over what personas/NAME.ini sets. As APP_FLAG (at the start) values given by flags stay, and
 * every option may be set; as APP_LIVE only what /set can change: the others are counted in
 * *n_fixed (may be NULL). CW_ENOENT: there is none; CW_EFORMAT with its line for a bad file. */
int app_persona_apply(struct app_settings *s, const struct app_paths *paths, const char *name,
                      enum app_origin origin, size_t *n_fixed, struct cw_err *err);

/* Fill the {placeholders} of prompts/NAME.txt from "key=value key='more words'". One without a
 * value stays as it is, and *missing (may be NULL) tells how many did; CW_EINVAL for a word that is
 * no key=value. Caller must free. */
int app_prompt_fill(const struct app_paths *paths, const char *name, const char *values, char **out,
                    size_t *missing, struct cw_err *err);

#endif
