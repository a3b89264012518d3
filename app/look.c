/* SPDX-License-Identifier: MIT
 *
 * The settings of how things look: theme and Markdown.
 */
#include <string.h>

#include "app/app_impl.h"
#include "ui/term.h"

int app_apply_look(struct app *a, struct cw_err *err) {
    const char *theme = a->settings->theme != NULL ? a->settings->theme : "auto";
    int rc = CW_OK;
    if (strcmp(theme, ui_theme_current()) != 0) {
        rc = ui_theme_load(theme, err);
        if (rc == CW_OK) {
            ui_term_restyle();
        } else { /* the one at hand stays, and is what the setting says */
            app_settings_set(a->settings, app_option_find("theme"), ui_theme_current(), APP_LIVE,
                             NULL);
        }
    }
    ui_transcript_set_markdown(a->transcript, a->settings->markdown);
    return rc;
}
