/* SPDX-License-Identifier: MIT
 *
 * The slash commands, one table: it runs them, completes them and makes the help.
 */
#ifndef APP_COMMANDS_H
#define APP_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "ui/input.h"

struct app;

struct app_command {
    const char *names; /* space separated, the first is the one to show: "help ?" */
    const char *args;  /* "[NAME [VALUE]]", or "" */
    const char *help;  /* one sentence */
    void (*run)(struct app *a, const char *args);
    /* Candidates for the argument word that begins at byte `begin` of the line; NULL: none. */
    void (*complete)(const struct app *a, const char *line, size_t begin,
                     struct ui_candidates *out);
};

const struct app_command *app_command_at(size_t i);                     /* NULL past the last */
const struct app_command *app_command_find(const char *name, size_t n); /* without the slash */

/* Whether a line is a command: it begins with a slash and its first word is no file. */
bool app_is_command(const char *line);
/* Run it; a name that does not exist gives a hint with the nearest one. */
void app_command_run(struct app *a, const char *line);
/* For ui_input_options. */
void app_complete(void *app, const char *line, size_t begin, size_t end, struct ui_candidates *out);
/* The page of F1 and /help: our keys and the commands. */
void app_show_help(struct app *a);

#endif
