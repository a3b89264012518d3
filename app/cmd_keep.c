/* SPDX-License-Identifier: MIT
 *
 * Commands of the conversations that are kept.
 */
#include <stdlib.h>
#include <string.h>

#include "app/cmd.h"

void cmd_run_list(struct app *a, const char *args) {
    char *query = cmd_trimmed(args);
    app_persist_list(a, query);
    free(query);
}

void cmd_run_load(struct app *a, const char *args) {
    char *name = cmd_trimmed(args);
    if (name[0] == '\0') {
        app_persist_choose(a);
    } else {
        app_persist_load(a, name);
    }
    free(name);
}

void cmd_run_rename(struct app *a, const char *args) {
    char *title = cmd_trimmed(args);
    app_persist_rename(a, title);
    free(title);
}

void cmd_run_delete(struct app *a, const char *args) {
    app_persist_delete(a);
}

void cmd_run_undelete(struct app *a, const char *args) {
    app_persist_undelete(a);
}

void cmd_run_private(struct app *a, const char *args) {
    char *word = cmd_trimmed(args);
    if (word[0] != '\0' && strcmp(word, "on") != 0 && strcmp(word, "off") != 0) {
        app_hint(a, true, "/private on or off");
    } else {
        app_persist_private(a, word[0] == '\0' ? !a->persist.off : strcmp(word, "on") == 0);
    }
    free(word);
}
