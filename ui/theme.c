/* SPDX-License-Identifier: MIT
 *
 * The built-in theme: few colours, from the terminal's own palette where that is enough, so that it
 * reads on dark and on light grounds alike.
 */
#include "ui/theme.h"

static const struct {
    struct ui_style mono, c16, c256;
} styles[UI_N_ROLES] = {
    [UI_TEXT] = {{-1, -1, 0}, {-1, -1, 0}, {-1, -1, 0}},
    [UI_TITLE] = {{-1, -1, UI_BOLD}, {-1, -1, UI_BOLD}, {-1, -1, UI_BOLD}},
    [UI_RULE] = {{-1, -1, UI_FAINT}, {-1, -1, UI_FAINT}, {242, -1, 0}},
    [UI_DIM] = {{-1, -1, UI_FAINT}, {-1, -1, UI_FAINT}, {244, -1, 0}},
    [UI_YOU] = {{-1, -1, UI_BOLD}, {6, -1, UI_BOLD}, {37, -1, UI_BOLD}},
    [UI_REPLY] = {{-1, -1, UI_BOLD}, {2, -1, UI_BOLD}, {71, -1, UI_BOLD}},
    [UI_YOUR_TEXT] = {{-1, -1, 0}, {-1, -1, 0}, {-1, -1, 0}},
    [UI_THINKING] = {{-1, -1, UI_FAINT}, {-1, -1, UI_FAINT}, {245, -1, UI_ITALIC}},
    [UI_NOTICE] = {{-1, -1, UI_FAINT}, {4, -1, 0}, {67, -1, 0}},
    [UI_ERROR] = {{-1, -1, UI_BOLD}, {1, -1, UI_BOLD}, {167, -1, UI_BOLD}},
    [UI_MARK] = {{-1, -1, UI_REVERSE}, {5, -1, UI_REVERSE}, {133, -1, UI_REVERSE}},
    [UI_CHANGE] = {{-1, -1, UI_BOLD}, {3, -1, UI_BOLD}, {172, -1, UI_BOLD}},
    [UI_PROMPT] = {{-1, -1, UI_BOLD}, {6, -1, UI_BOLD}, {37, -1, UI_BOLD}},
    [UI_STATUS] = {{-1, -1, 0}, {-1, -1, 0}, {246, -1, 0}},
    [UI_STATUS_STATE] = {{-1, -1, UI_BOLD}, {-1, -1, UI_BOLD}, {-1, -1, UI_BOLD}},
    [UI_METER] = {{-1, -1, 0}, {2, -1, 0}, {71, -1, 0}},
    [UI_METER_HIGH] = {{-1, -1, UI_BOLD}, {1, -1, UI_BOLD}, {167, -1, UI_BOLD}},
    [UI_NEW_LINES] = {{-1, -1, UI_REVERSE}, {3, -1, UI_REVERSE}, {172, -1, UI_REVERSE}},
    [UI_HELP_KEY] = {{-1, -1, UI_BOLD}, {6, -1, UI_BOLD}, {37, -1, UI_BOLD}},
    [UI_SELECTED] = {{-1, -1, UI_REVERSE}, {-1, -1, UI_REVERSE}, {-1, -1, UI_REVERSE}},
};

struct ui_style ui_theme_style(enum ui_role role, enum ui_depth depth) {
    switch (depth) {
    case UI_COLORS_256:
        return styles[role].c256;
    case UI_COLORS_16:
        return styles[role].c16;
    case UI_MONO:
        break;
    }
    return styles[role].mono;
}
