/* SPDX-License-Identifier: MIT
 *
 * What is said to a terminal beside the text of the screen: clipboard, notification, title, links.
 * Pure: bytes are appended to a buffer. Everything that comes from elsewhere is made harmless here,
 * so that no text can end a sequence and begin one of its own.
 *
 * Multiplexers keep such sequences to themselves. What is meant for the terminal around them goes
 * in their wrapping: tmux passes it on with `allow-passthrough on`, and takes a plain OSC 52 itself
 * with `set-clipboard on`; as neither can be asked, a copy is sent both ways, which at worst sets
 * the clipboard twice. GNU screen takes at most some hundred bytes in one wrapping.
 */
#ifndef UI_OSC_H
#define UI_OSC_H

#include "chinwag/mem.h"

enum ui_mux { UI_MUX_NONE, UI_MUX_TMUX, UI_MUX_SCREEN };

enum {
    UI_TITLE_MAX = 200, /* bytes of a title or a notification */
    UI_LINK_MAX = 2000, /* bytes of a link's target; longer ones are no links */
};

/* Which multiplexer stands in between, told by the environment's TMUX, STY and TERM (may be NULL).
 */
enum ui_mux ui_osc_mux(const char *tmux, const char *sty, const char *term);
/* Whether the terminal knows OSC sequences at all: some old ones would print them. */
bool ui_osc_known(const char *term);

void ui_osc_copy(struct cw_buf *out, enum ui_mux mux, const char *text, size_t n);
/* A bell, and the notification where `known`. */
void ui_osc_notify(struct cw_buf *out, enum ui_mux mux, bool known, const char *text);
void ui_osc_title(struct cw_buf *out, const char *text);

/* http, https or mailto in printable ASCII, not too long. */
bool ui_osc_safe_link(const char *url, size_t n);
/* Begin a link to a safe target; cells of one `id` belong together. NULL ends it. */
void ui_osc_link(struct cw_buf *out, const char *url, unsigned id);

#endif
