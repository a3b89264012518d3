/* SPDX-License-Identifier: MIT
 *
 * A list to find something in by a few of its letters: commands, settings, presets, conversations.
 * Letters of the needle must stand in the item in their order; what begins words and what stands
 * together counts more. Pure.
 */
#ifndef UI_PALETTE_H
#define UI_PALETTE_H

#include "ui/lineedit.h"

struct ui_palette_item {
    char *label;  /* what is matched first, and shown on the left */
    char *detail; /* one sentence beside it, matched as well but counting less */
    char *action; /* what the owner does with it; not looked at here */
    int kind;     /* of the owner */
    bool found;   /* by the owner, for what the line says: it matches */
};

struct ui_palette;

struct ui_palette *ui_palette_create(const char *title);
void ui_palette_destroy(struct ui_palette *p); /* NULL is fine */
void ui_palette_add(struct ui_palette *p, int kind, const char *label, const char *detail,
                    const char *action);

/* Items that the owner found elsewhere for what the line says now, and without them again. Those
 * whose label does not match stand below those that do. */
void ui_palette_add_found(struct ui_palette *p, int kind, const char *label, const char *detail,
                          const char *action);
void ui_palette_drop_found(struct ui_palette *p);

/* The owner finds: whatever the line says all items match, in the order they were added. */
void ui_palette_show_all(struct ui_palette *p);
void ui_palette_clear(struct ui_palette *p); /* no items; the line stays as it is */
const char *ui_palette_needle(const struct ui_palette *p);
bool ui_palette_changed(struct ui_palette *p); /* does the line say another thing than last time? */

/* A key for its line or for moving in the list. False: none of its keys (Enter and Esc are not). */
bool ui_palette_key(struct ui_palette *p, const struct ui_key *key);
const struct ui_palette_item *ui_palette_selected(const struct ui_palette *p); /* NULL: no match */
size_t ui_palette_n_matches(const struct ui_palette *p);

/* Draw the list into rows [row, row + rows), and the line that is typed into. */
void ui_palette_draw(struct ui_palette *p, struct ui_screen *s, int row, int rows);
void ui_palette_draw_line(const struct ui_palette *p, struct ui_screen *s, int row);

/* How well needle[..] matches text[..]: < 0 not at all; greater is better. Letters of ASCII match
 * either case. */
int ui_palette_score(const char *needle, const char *text);

#endif
