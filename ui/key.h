/* SPDX-License-Identifier: MIT
 *
 * Keys: from the bytes a terminal sends to events. Pure; the terminal feeds it, timers flush it.
 *
 * Escape sequences of the xterm, rxvt, Linux and CSI-u kinds are known; others a terminal
 * description names can be added. A lone Esc is told from Alt by time (UI_ESC_MS without a further
 * byte). Bracketed paste is one event, whatever it holds: an end marker inside the pasted text does
 * not let the rest of it pass for typing (see UI_PASTE_MS).
 */
#ifndef UI_KEY_H
#define UI_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    UI_ESC_MS = 25,
    /* The same for a sequence that was cut behind its first figure: nobody types that by hand, so a
     * slow line brings the rest. */
    UI_CUT_MS = 500,
    /* After an end marker what follows at once is held back this long: if a second end marker comes
     * without a begin, the first was part of the text, and all of it is one paste. A key pressed
     * meanwhile waits as long, and must still be answered within 50 ms. */
    UI_PASTE_MS = 30,
    UI_PASTE_MAX = 16 * 1024 * 1024, /* bytes; more are dropped and `truncated` set */
};

enum { UI_SHIFT = 1, UI_ALT = 2, UI_CTRL = 4 };

/* A key's code: a character as its code point (Ctrl+A is 'a' with UI_CTRL), else one of these. */
enum ui_key_code {
    UI_KEY_NONE = 0x110000,
    UI_KEY_ENTER,
    UI_KEY_TAB,
    UI_KEY_BACKSPACE,
    UI_KEY_ESC,
    UI_KEY_UP,
    UI_KEY_DOWN,
    UI_KEY_LEFT,
    UI_KEY_RIGHT,
    UI_KEY_HOME,
    UI_KEY_END,
    UI_KEY_PGUP,
    UI_KEY_PGDN,
    UI_KEY_INSERT,
    UI_KEY_DELETE,
    UI_KEY_F1, /* .. UI_KEY_F1 + 11 */
    UI_KEY_F12 = UI_KEY_F1 + 11,
    UI_KEY_WHEEL_UP, /* of the mouse */
    UI_KEY_WHEEL_DOWN,
    UI_KEY_MOUSE, /* any other report of the mouse */
    UI_KEY_PASTE,
    UI_KEY_OTHER, /* a sequence nobody knows: raw only */
};

struct ui_key {
    uint32_t code;
    unsigned mods;
    uint8_t n_raw;
    char raw[31];     /* as the terminal sent it, terminated unless cut */
    const char *text; /* UI_KEY_PASTE: the bytes, valid until the next call; else NULL */
    size_t n_text;
    bool truncated;
};

struct ui_keys;

struct ui_keys *ui_keys_create(void);
void ui_keys_destroy(struct ui_keys *k); /* NULL is fine */

/* A further sequence of this terminal. */
void ui_keys_define(struct ui_keys *k, const char *sequence, uint32_t code, unsigned mods);

/* Bytes just read, at `now_s` on the monotonic clock. */
void ui_keys_feed(struct ui_keys *k, const char *bytes, size_t n, double now_s);
/* The next event; false when there is none yet. */
bool ui_keys_next(struct ui_keys *k, double now_s, struct ui_key *out);
/* When ui_keys_next should be asked again although nothing came; < 0: only when bytes come. */
double ui_keys_deadline(const struct ui_keys *k);
/* A paste has begun and not ended. */
bool ui_keys_pasting(const struct ui_keys *k);

/* "Alt+Down", "Ctrl+C", "F1". */
void ui_key_name(uint32_t code, unsigned mods, char *out, size_t cap);
/* The key of such a name, s[0..n); letters of either case. False: there is none. */
bool ui_key_parse(const char *s, size_t n, uint32_t *code, unsigned *mods);

#endif
