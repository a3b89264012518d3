/* SPDX-License-Identifier: MIT
 *
 * Whole screens, compared with those kept in tests/data/golden.
 *
 * A file holds the rows of the screen, and for golden_looks also how they look: a line for each run
 * of cells that is not in the terminal's own colours. The row of the status bar is left out, as its
 * figures are of the clock.
 *
 * When a screen is meant to look different, renew the files and read the difference before keeping
 * it:
 *
 *     CHINWAG_RENEW_GOLDEN=1 meson test -C build tui_golden && git diff tests/data/golden
 */
#ifndef TESTS_GOLDEN_H
#define TESTS_GOLDEN_H

#include "tests/ui/tui.h"

/* The screen as it is now, which must have come to rest. */
void golden_text(struct tui *t, const char *name);
void golden_looks(struct tui *t, const char *name);
/* The rows as they are compared. Caller must free. */
char *golden_screen(struct tui *t);

#endif
