/* SPDX-License-Identifier: MIT
 *
 * The key decoder. Bytes wait in one buffer until they make a whole key; time decides only where
 * bytes cannot: a lone Esc, and whether a paste is over.
 *
 * Sources of the sequences: ECMA-48 (CSI), XTerm control sequences (modifiers, bracketed paste,
 * modifyOtherKeys), rxvt reference, console_codes(4).
 */
#include "ui/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "chinwag/mem.h"
#include "chinwag/utf8.h"

#define ESC "\033"
static const char paste_begin[] = ESC "[200~";
static const char paste_end[] = ESC "[201~";
enum { MARKER = 6, MAX_SEQUENCE = 30 };

enum paste_state {
    NOT_PASTING,
    PASTING,    /* the text so far is the head of the buffer, no end marker seen */
    PASTE_HELD, /* an end marker at `end`; what follows it is not trusted yet */
};

struct definition {
    char *sequence;
    size_t n;
    uint32_t code;
    unsigned mods;
};

struct ui_keys {
    struct cw_buf in; /* bytes not yet given out */
    size_t used;      /* of these, bytes already given out */
    double last_s;    /* when the last bytes came */
    enum paste_state paste;
    size_t scanned; /* PASTING: no end marker begins before this */
    size_t end;     /* PASTE_HELD: where the last end marker begins */
    double held_s;
    bool dropped; /* pasted bytes beyond the limit */
    struct definition *definitions;
    size_t n_definitions;
};

struct ui_keys *ui_keys_create(void) {
    return cw_calloc(1, sizeof(struct ui_keys));
}

void ui_keys_destroy(struct ui_keys *k) {
    if (k == NULL) {
        return;
    }
    for (size_t i = 0; i < k->n_definitions; i++) {
        free(k->definitions[i].sequence);
    }
    free(k->definitions);
    cw_buf_free(&k->in);
    free(k);
}

void ui_keys_define(struct ui_keys *k, const char *sequence, uint32_t code, unsigned mods) {
    size_t n = strlen(sequence);
    if (n < 2 || n > MAX_SEQUENCE || sequence[0] != '\033') {
        return; /* single bytes have their meaning already */
    }
    k->definitions = cw_reallocarray(k->definitions, k->n_definitions + 1, sizeof *k->definitions);
    k->definitions[k->n_definitions++] = (struct definition){cw_strdup(sequence), n, code, mods};
}

bool ui_keys_pasting(const struct ui_keys *k) {
    return k->paste == PASTING;
}

void ui_keys_feed(struct ui_keys *k, const char *bytes, size_t n, double now_s) {
    if (k->paste == PASTING && n == 1 && bytes[0] == '\003' && now_s - k->last_s > 1.0) {
        /* the end marker got lost: Ctrl+C after a second of silence stands for it */
        bytes = paste_end;
        n = MARKER;
    }
    k->last_s = now_s;
    if (k->used > 0) {
        memmove(k->in.data, k->in.data + k->used, k->in.len - k->used);
        k->in.len -= k->used;
        k->scanned -= k->scanned < k->used ? k->scanned : k->used;
        k->end -= k->end < k->used ? k->end : k->used;
        k->used = 0;
    }
    if (k->paste == PASTING && k->in.len >= UI_PASTE_MAX) {
        /* keep enough of the end to find the marker in */
        k->dropped = true;
        k->in.len = UI_PASTE_MAX;
        k->scanned = UI_PASTE_MAX - MARKER;
    }
    cw_buf_add(&k->in, bytes, n);
}

static bool printable(unsigned char c) {
    return c >= 0x20 && c != 0x7f;
}

static uint32_t tilde_code(int n) {
    static const struct {
        uint8_t n;
        uint32_t code;
    } codes[] = {
        {1, UI_KEY_HOME},    {2, UI_KEY_INSERT},  {3, UI_KEY_DELETE},   {4, UI_KEY_END},
        {5, UI_KEY_PGUP},    {6, UI_KEY_PGDN},    {7, UI_KEY_HOME},     {8, UI_KEY_END},
        {11, UI_KEY_F1},     {12, UI_KEY_F1 + 1}, {13, UI_KEY_F1 + 2},  {14, UI_KEY_F1 + 3},
        {15, UI_KEY_F1 + 4}, {17, UI_KEY_F1 + 5}, {18, UI_KEY_F1 + 6},  {19, UI_KEY_F1 + 7},
        {20, UI_KEY_F1 + 8}, {21, UI_KEY_F1 + 9}, {23, UI_KEY_F1 + 10}, {24, UI_KEY_F1 + 11},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].n == n) {
            return codes[i].code;
        }
    }
    return UI_KEY_OTHER;
}

static uint32_t letter_code(char c) {
    switch (c) {
    case 'A':
        return UI_KEY_UP;
    case 'B':
        return UI_KEY_DOWN;
    case 'C':
        return UI_KEY_RIGHT;
    case 'D':
        return UI_KEY_LEFT;
    case 'H':
        return UI_KEY_HOME;
    case 'F':
        return UI_KEY_END;
    case 'P':
    case 'Q':
    case 'R':
    case 'S':
        return UI_KEY_F1 + (uint32_t)(c - 'P');
    case 'M':
        return UI_KEY_ENTER;
    case 'Z':
        return UI_KEY_TAB;
    default:
        return UI_KEY_OTHER;
    }
}

/* Modifiers as terminals number them: 1 plus a bit each for Shift, Alt, Ctrl; 8 and more is Meta.
 */
static unsigned mods_of(int parameter) {
    return parameter < 2 ? 0 : (unsigned)(parameter - 1) & 7u;
}

static void set_char(struct ui_key *out, uint32_t c, unsigned mods) {
    out->mods = mods;
    switch (c) {
    case '\r':
        out->code = UI_KEY_ENTER;
        return;
    case '\t':
        out->code = UI_KEY_TAB;
        return;
    case 0x7f:
        out->code = UI_KEY_BACKSPACE;
        return;
    case 0x1b:
        out->code = UI_KEY_ESC;
        return;
    case 0:
        out->code = ' ';
        out->mods |= UI_CTRL;
        return;
    default:
        if (c < 0x20) {
            out->mods |= UI_CTRL;
            c = c <= 26 ? c + 'a' - 1 : c + '@';
        }
        out->code = c;
    }
}

/* s[0..n) after "ESC [": the length of the control sequence, 0 if it is not complete. */
static size_t csi_length(const char *s, size_t n) {
    if (n > 0 && s[0] == '[') { /* function keys of the Linux console: ESC [ [ A */
        return n > 1 ? 2 : 0;
    }
    for (size_t i = 0; i < n && i < MAX_SEQUENCE; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x40 && c <= 0x7e) {
            return i + 1;
        }
        if (c == '$') { /* rxvt: Shift */
            return i + 1;
        }
        if (c < 0x20 || c > 0x7e) {
            return i > 0 ? i : 1; /* broken off: what follows stands for itself */
        }
    }
    return n >= MAX_SEQUENCE ? MAX_SEQUENCE : 0;
}

/* F13 to F20, which is how the Linux console sends Shift with F1 to F8. */
static uint32_t shifted_code(int n) {
    static const uint8_t numbers[] = {25, 26, 28, 29, 31, 32, 33, 34};
    for (uint32_t i = 0; i < sizeof numbers; i++) {
        if (numbers[i] == n) {
            return UI_KEY_F1 + i;
        }
    }
    return UI_KEY_OTHER;
}

/* A report of the mouse in SGR form, s[0..n) = "<button;column;row" and M (pressed) or m. Buttons
 * 64 and 65 are the wheel; bits 4, 8 and 16 are Shift, Alt and Ctrl. */
static void mouse_key(const char *s, size_t n, struct ui_key *out) {
    int button = 0;
    size_t i = 1;
    for (; i < n && s[i] >= '0' && s[i] <= '9' && button < 1000; i++) {
        button = button * 10 + (s[i] - '0');
    }
    unsigned mods =
        (button & 4 ? UI_SHIFT : 0u) | (button & 8 ? UI_ALT : 0u) | (button & 16 ? UI_CTRL : 0u);
    button &= ~(4 | 8 | 16);
    out->code = UI_KEY_MOUSE;
    if (i < n && s[i] == ';' && s[n - 1] == 'M' && (button == 64 || button == 65)) {
        out->code = button == 64 ? UI_KEY_WHEEL_UP : UI_KEY_WHEEL_DOWN;
        out->mods = mods;
    }
}

/* The key of a whole control sequence s[0..n), "ESC [" taken off. */
static void csi_key(const char *s, size_t n, struct ui_key *out) {
    int p[3] = {0, 0, 0};
    int n_p = 0;
    size_t i = 0;
    if (s[0] == '[') {
        bool is_f = s[1] >= 'A' && s[1] <= 'E';
        out->code = is_f ? UI_KEY_F1 + (uint32_t)(s[1] - 'A') : (uint32_t)UI_KEY_OTHER;
        return;
    }
    if (s[0] == '<' && (s[n - 1] == 'M' || s[n - 1] == 'm')) {
        mouse_key(s, n, out);
        return;
    }
    while (i + 1 < n && n_p < 3) {
        while (i + 1 < n && s[i] >= '0' && s[i] <= '9') {
            p[n_p] = p[n_p] < 0x110000 ? p[n_p] * 10 + (s[i] - '0') : p[n_p];
            i++;
        }
        n_p++;
        if (s[i] != ';') {
            break;
        }
        i++;
    }
    out->code = UI_KEY_OTHER;
    if (i + 1 != n) {
        return; /* private or foreign parameters */
    }
    switch (s[i]) {
    case '~':
        if (p[0] == 27 && n_p == 3) { /* modifyOtherKeys: 27 ; mods ; code */
            set_char(out, (uint32_t)p[2], mods_of(p[1]));
        } else {
            out->code = tilde_code(p[0]);
            out->mods = mods_of(p[1]);
            if (out->code == UI_KEY_OTHER && shifted_code(p[0]) != UI_KEY_OTHER) {
                out->code = shifted_code(p[0]);
                out->mods |= UI_SHIFT;
            }
        }
        return;
    case 'u': /* code ; mods */
        set_char(out, (uint32_t)p[0], mods_of(p[1]));
        return;
    case '^': /* rxvt: Ctrl, Shift, both */
    case '$':
    case '@':
        out->code = tilde_code(p[0]);
        out->mods = s[i] == '^' ? UI_CTRL : s[i] == '$' ? UI_SHIFT : UI_CTRL | UI_SHIFT;
        return;
    case 'Z':
        out->code = UI_KEY_TAB;
        out->mods = UI_SHIFT;
        return;
    default:
        out->code = s[i] == 'M' ? (uint32_t)UI_KEY_OTHER : letter_code(s[i]);
        out->mods = mods_of(p[1]);
    }
}

/* A key whose first bytes are ESC: its length, or 0 while it may go on. With `late` no more bytes
 * are coming. */
static size_t escape_key(const struct ui_keys *k, const char *s, size_t n, bool late,
                         struct ui_key *out) {
    for (size_t i = 0; i < k->n_definitions; i++) {
        const struct definition *d = &k->definitions[i];
        if (n >= d->n && memcmp(s, d->sequence, d->n) == 0) {
            out->code = d->code;
            out->mods = d->mods;
            return d->n;
        }
    }
    if (n == 1) {
        out->code = UI_KEY_ESC;
        return late ? 1 : 0;
    }
    if (s[1] == '[') {
        size_t length = csi_length(s + 2, n - 2);
        if (length > 0) {
            csi_key(s + 2, length, out);
            return 2 + length;
        }
        if (late && n == 2) { /* Alt+[ */
            set_char(out, '[', UI_ALT);
            return 2;
        }
        out->code = UI_KEY_OTHER;
        return late ? n : 0;
    }
    if (s[1] == 'O') {
        if (n == 2) {
            set_char(out, 'O', UI_ALT);
            return late ? 2 : 0;
        }
        size_t i = 2; /* ESC O 5 A: some terminals put the modifiers here */
        if (n > 3 && s[2] >= '1' && s[2] <= '8') {
            out->mods = mods_of(s[2] - '0');
            i = 3;
        }
        if (s[i] >= 'a' && s[i] <= 'd') { /* rxvt: Ctrl with an arrow */
            out->code = letter_code((char)(s[i] - 'a' + 'A'));
            out->mods = UI_CTRL;
        } else {
            out->code = letter_code(s[i]);
        }
        if (out->code == UI_KEY_OTHER && printable((unsigned char)s[i])) {
            set_char(out, 'O', UI_ALT); /* typed: Alt+O and a letter */
            return 2;
        }
        return i + 1;
    }
    if (s[1] == '\033') { /* rxvt: Alt sends one more ESC in front */
        if (n == 2) {
            out->code = UI_KEY_ESC;
            return late ? 1 : 0;
        }
        if (s[2] != '[' && s[2] != 'O') {
            out->code = UI_KEY_ESC;
            return 1;
        }
        size_t length = escape_key(k, s + 1, n - 1, late, out);
        out->mods |= UI_ALT;
        return length > 0 ? length + 1 : 0;
    }
    uint32_t c;
    int length = cw_utf8_decode(s + 1, n - 1, &c);
    if (length == 0) {
        if (!late && cw_utf8_complete(s + 1, n - 1) == 0) {
            return 0;
        }
        c = 0xfffd;
        length = 1;
    }
    set_char(out, c, UI_ALT);
    return 1 + (size_t)length;
}

static bool starts_with(const char *s, size_t n, const char *marker) {
    return n >= MARKER && memcmp(s, marker, MARKER) == 0;
}

/* The end of a paste is known: give it out, [used, at) being its text. */
static bool give_paste(struct ui_keys *k, size_t at, struct ui_key *out) {
    out->code = UI_KEY_PASTE;
    out->text = k->in.data + k->used;
    out->n_text = at - k->used;
    out->truncated = k->dropped;
    k->used = at + MARKER;
    k->paste = NOT_PASTING;
    k->dropped = false;
    return true;
}

static bool next_paste(struct ui_keys *k, double now_s, struct ui_key *out) {
    for (;;) {
        size_t from =
            k->paste == PASTING ? (k->scanned > k->used ? k->scanned : k->used) : k->end + MARKER;
        char *base = k->in.data;
        char *end = memmem(base + from, k->in.len - from, paste_end, MARKER);
        char *begin = k->paste == PASTE_HELD
                          ? memmem(base + from, k->in.len - from, paste_begin, MARKER)
                          : NULL;
        if (begin != NULL && (end == NULL || begin < end)) {
            return give_paste(k, k->end, out); /* the next paste: this one was over */
        }
        if (end != NULL) {
            k->end = (size_t)(end - base);
            k->held_s = k->paste == PASTING ? now_s : k->held_s;
            k->paste = PASTE_HELD;
            continue;
        }
        if (k->paste == PASTE_HELD && now_s >= ui_keys_deadline(k)) {
            return give_paste(k, k->end, out);
        }
        if (k->paste == PASTING) {
            k->scanned = k->in.len > MARKER ? k->in.len - MARKER : 0;
        }
        return false;
    }
}

/* Seconds without a byte after which no more are coming. */
static double patience_s(const struct ui_keys *k) {
    const char *s = k->in.data + k->used;
    bool cut = k->in.len - k->used > 2 && s[0] == '\033' && s[1] == '[';
    return (cut ? UI_CUT_MS : UI_ESC_MS) / 1000.0;
}

double ui_keys_deadline(const struct ui_keys *k) {
    if (k->paste == PASTE_HELD) {
        /* while more keeps coming wait on, but not for ever */
        double quiet = k->last_s + UI_PASTE_MS / 1000.0;
        double limit = k->held_s + 10 * UI_PASTE_MS / 1000.0;
        return quiet < limit ? quiet : limit;
    }
    if (k->paste == PASTING || k->used == k->in.len) {
        return -1;
    }
    return k->last_s + patience_s(k);
}

bool ui_keys_next(struct ui_keys *k, double now_s, struct ui_key *out) {
    *out = (struct ui_key){.code = UI_KEY_NONE};
    if (k->paste != NOT_PASTING) {
        return next_paste(k, now_s, out);
    }
    const char *s = k->in.data + k->used;
    size_t n = k->in.len - k->used;
    if (n == 0) {
        return false;
    }
    bool late = now_s >= k->last_s + patience_s(k);
    size_t length;
    if (starts_with(s, n, paste_begin)) {
        k->used += MARKER;
        k->scanned = k->used;
        k->paste = PASTING;
        return next_paste(k, now_s, out);
    }
    if (s[0] == '\033') {
        length = escape_key(k, s, n, late, out);
    } else {
        uint32_t c;
        int bytes = cw_utf8_decode(s, n, &c);
        if (bytes > 0) {
            set_char(out, c, 0);
            length = (size_t)bytes;
        } else if (!late && cw_utf8_complete(s, n) == 0) {
            length = 0;
        } else {
            set_char(out, 0xfffd, 0);
            length = 1;
        }
    }
    if (length == 0) {
        *out = (struct ui_key){.code = UI_KEY_NONE};
        return false;
    }
    out->n_raw = (uint8_t)(length < sizeof out->raw - 1 ? length : sizeof out->raw - 1);
    memcpy(out->raw, s, out->n_raw);
    k->used += length;
    return true;
}

static const char *const key_names[] = {
    [UI_KEY_ENTER - UI_KEY_NONE] = "Enter",
    [UI_KEY_TAB - UI_KEY_NONE] = "Tab",
    [UI_KEY_BACKSPACE - UI_KEY_NONE] = "Backspace",
    [UI_KEY_ESC - UI_KEY_NONE] = "Esc",
    [UI_KEY_UP - UI_KEY_NONE] = "Up",
    [UI_KEY_DOWN - UI_KEY_NONE] = "Down",
    [UI_KEY_LEFT - UI_KEY_NONE] = "Left",
    [UI_KEY_RIGHT - UI_KEY_NONE] = "Right",
    [UI_KEY_HOME - UI_KEY_NONE] = "Home",
    [UI_KEY_END - UI_KEY_NONE] = "End",
    [UI_KEY_PGUP - UI_KEY_NONE] = "PgUp",
    [UI_KEY_PGDN - UI_KEY_NONE] = "PgDn",
    [UI_KEY_INSERT - UI_KEY_NONE] = "Insert",
    [UI_KEY_DELETE - UI_KEY_NONE] = "Delete",
    [UI_KEY_WHEEL_UP - UI_KEY_NONE] = "WheelUp",
    [UI_KEY_WHEEL_DOWN - UI_KEY_NONE] = "WheelDown",
};
enum { N_KEY_NAMES = sizeof key_names / sizeof key_names[0] };

void ui_key_name(uint32_t code, unsigned mods, char *out, size_t cap) {
    char key[16] = "?";
    if (code >= UI_KEY_F1 && code <= UI_KEY_F12) {
        snprintf(key, sizeof key, "F%u", (unsigned)(code - UI_KEY_F1 + 1));
    } else if (code > UI_KEY_NONE && code - UI_KEY_NONE < N_KEY_NAMES &&
               key_names[code - UI_KEY_NONE] != NULL) {
        snprintf(key, sizeof key, "%s", key_names[code - UI_KEY_NONE]);
    } else if (code == ' ') {
        snprintf(key, sizeof key, "Space");
    } else if (code < UI_KEY_NONE) {
        bool upper = (mods & UI_CTRL) && code >= 'a' && code <= 'z';
        int n = cw_utf8_encode(upper ? code - 'a' + 'A' : code, key);
        key[n] = '\0';
    }
    snprintf(out, cap, "%s%s%s%s", mods & UI_CTRL ? "Ctrl+" : "", mods & UI_ALT ? "Alt+" : "",
             mods & UI_SHIFT ? "Shift+" : "", key);
}

bool ui_key_parse(const char *s, size_t n, uint32_t *code, unsigned *mods) {
    static const struct {
        const char *name;
        size_t n;
        unsigned mod;
    } prefixes[] = {{"Ctrl+", 5, UI_CTRL}, {"Alt+", 4, UI_ALT}, {"Shift+", 6, UI_SHIFT}};
    *mods = 0;
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (n > prefixes[i].n && strncasecmp(s, prefixes[i].name, prefixes[i].n) == 0 &&
            !(*mods & prefixes[i].mod)) {
            *mods |= prefixes[i].mod;
            s += prefixes[i].n;
            n -= prefixes[i].n;
            i = (size_t)-1; /* in any order */
        }
    }
    for (uint32_t i = 0; i < N_KEY_NAMES; i++) {
        if (key_names[i] != NULL && strlen(key_names[i]) == n &&
            strncasecmp(s, key_names[i], n) == 0) {
            *code = UI_KEY_NONE + i;
            return true;
        }
    }
    if (n == 5 && strncasecmp(s, "Space", n) == 0) {
        *code = ' ';
        return true;
    }
    if ((n == 2 || n == 3) && (s[0] == 'F' || s[0] == 'f')) {
        int number = s[1] >= '1' && s[1] <= '9' ? s[1] - '0' : 0;
        number =
            n == 3 ? (number == 1 && s[2] >= '0' && s[2] <= '2' ? 10 + s[2] - '0' : 0) : number;
        if (number > 0) {
            *code = UI_KEY_F1 + (uint32_t)number - 1;
            return true;
        }
    }
    uint32_t c;
    if (n == 0 || cw_utf8_decode(s, n, &c) != (int)n || c < ' ' || c == 0x7f) {
        return false;
    }
    *code = (*mods & UI_CTRL) && c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
    return true;
}
