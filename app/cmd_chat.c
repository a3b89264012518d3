/* SPDX-License-Identifier: MIT
 *
 * Commands that begin, stop, leave and help.
 */
#include "app/cmd.h"

void cmd_run_exit(struct app *a, const char *args) {
    a->leave = true;
}

void cmd_run_help(struct app *a, const char *args) {
    app_show_help(a);
}

void cmd_run_new(struct app *a, const char *args) {
    app_new_chat(a);
}

void cmd_run_stop(struct app *a, const char *args) {
    if (!app_cancel(a)) {
        app_hint(a, false, "no reply is under way");
    }
}
