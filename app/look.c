/* SPDX-License-Identifier: MIT
 *
 * The settings of how things look: theme and Markdown.
 */
#include <string.h>

#include "app/app_impl.h"
#include "ui/term.h"

void app_apply_look(struct app *a) {
    struct cw_err err = {0};
    const char *theme = a->settings->theme != NULL ? a->settings->theme : "auto";
    if (strcmp(theme, ui_theme_current()) != 0) {
        if (ui_theme_load(theme, &err) == CW_OK) {
            ui_term_restyle();
        } else {
            app_tell(a, true, err.text, strlen(err.text));
            app_settings_set(a->settings, app_option_find("theme"), ui_theme_current(), APP_LIVE,
                             NULL);
        }
    }
    ui_transcript_set_markdown(a->transcript, a->settings->markdown);
    a->dirty = true;
}
