/* SPDX-License-Identifier: MIT
 *
 * See lineedit.h. Moving and deleting go by cluster, as in the input line.
 */
#include "ui/lineedit.h"

#include <string.h>

#include "chinwag/utf8.h"

enum { MAX_BYTES = 1024 }; /* nobody searches for more */

void ui_lineedit_free(struct ui_lineedit *e) {
    cw_buf_free(&e->text);
    *e = (struct ui_lineedit){0};
}

void ui_lineedit_set(struct ui_lineedit *e, const char *text, bool fresh) {
    cw_buf_clear(&e->text);
    cw_buf_puts(&e->text, text);
    e->cursor = e->text.len;
    e->fresh = fresh && e->text.len > 0;
}

const char *ui_lineedit_text(const struct ui_lineedit *e) {
    return e->text.data != NULL ? e->text.data : "";
}

static void remove_range(struct ui_lineedit *e, size_t from, size_t to) {
    if (from < to) {
        memmove(e->text.data + from, e->text.data + to, e->text.len - to);
        e->text.len -= to - from;
        e->text.data[e->text.len] = '\0';
    }
    e->cursor = from;
}

static void insert(struct ui_lineedit *e, const char *s, size_t n) {
    if (e->fresh) {
        cw_buf_clear(&e->text);
        e->cursor = 0;
    }
    if (e->text.len + n > MAX_BYTES) {
        return;
    }
    cw_buf_add(&e->text, s, n); /* for the room */
    memmove(e->text.data + e->cursor + n, e->text.data + e->cursor, e->text.len - n - e->cursor);
    memcpy(e->text.data + e->cursor, s, n);
    e->cursor = ui_cluster_ceil(e->text.data, e->text.len, e->cursor + n);
}

static void paste(struct ui_lineedit *e, const char *s, size_t n) {
    char clean[MAX_BYTES];
    size_t k = 0;
    for (size_t i = 0; i < n && k < sizeof clean; i++) {
        if (s[i] != '\0') {
            clean[k++] = s[i] == '\n' || s[i] == '\r' || s[i] == '\t' ? ' ' : s[i];
        }
    }
    insert(e, clean, cw_utf8_complete(clean, k));
}

/* The start of the word before the cursor. */
static size_t word_start(const struct ui_lineedit *e) {
    size_t at = e->cursor;
    while (at > 0 && e->text.data[at - 1] == ' ') {
        at--;
    }
    while (at > 0 && e->text.data[at - 1] != ' ') {
        at--;
    }
    return at;
}

static bool edit_key(struct ui_lineedit *e, uint32_t code) {
    const char *s = ui_lineedit_text(e);
    size_t n = e->text.len;
    switch (code) {
    case UI_KEY_BACKSPACE:
        remove_range(e, ui_cluster_before(s, n, e->cursor), e->cursor);
        return true;
    case UI_KEY_DELETE: {
        size_t at = e->cursor;
        remove_range(e, at, ui_cluster_after(s, n, at));
        return true;
    }
    case UI_KEY_LEFT:
        e->cursor = ui_cluster_before(s, n, e->cursor);
        return true;
    case UI_KEY_RIGHT:
        e->cursor = ui_cluster_after(s, n, e->cursor);
        return true;
    case UI_KEY_HOME:
        e->cursor = 0;
        return true;
    case UI_KEY_END:
        e->cursor = n;
        return true;
    default:
        return false;
    }
}

bool ui_lineedit_key(struct ui_lineedit *e, const struct ui_key *key) {
    static const struct {
        char letter;
        uint32_t code;
    } controls[] = {
        {'a', UI_KEY_HOME},  {'e', UI_KEY_END},       {'b', UI_KEY_LEFT},
        {'f', UI_KEY_RIGHT}, {'h', UI_KEY_BACKSPACE},
    };
    bool took = true;
    if (key->code == UI_KEY_PASTE) {
        paste(e, key->text, key->n_text);
    } else if (key->code < UI_KEY_NONE && (key->mods & (UI_CTRL | UI_ALT)) == 0) {
        char bytes[4];
        insert(e, bytes, (size_t)cw_utf8_encode(key->code, bytes));
    } else if (key->mods == UI_CTRL && key->code == 'u') {
        remove_range(e, 0, e->cursor);
    } else if (key->mods == UI_CTRL && key->code == 'w') {
        remove_range(e, word_start(e), e->cursor);
    } else if (key->mods == UI_CTRL && key->code == 'k') {
        size_t at = e->cursor;
        remove_range(e, at, e->text.len);
    } else {
        uint32_t code = key->mods == 0 ? key->code : (uint32_t)UI_KEY_NONE;
        for (size_t i = 0; i < sizeof controls / sizeof controls[0] && key->mods == UI_CTRL; i++) {
            code = key->code == (uint32_t)controls[i].letter ? controls[i].code : code;
        }
        took = edit_key(e, code);
    }
    e->fresh = e->fresh && !took;
    return took;
}

void ui_lineedit_draw(const struct ui_lineedit *e, struct ui_screen *s, int row, int col,
                      int limit) {
    const char *text = ui_lineedit_text(e);
    limit = limit > s->cols ? s->cols : limit;
    int room = limit - col - 1; /* a column for the cursor behind the text */
    size_t from = 0;
    while (from < e->cursor &&
           ui_text_width(text + from, e->cursor - from, room + 1) > (room < 0 ? 0 : room)) {
        from = ui_cluster_after(text, e->text.len, from);
    }
    ui_screen_put(s, row, col, limit, text + from, e->text.len - from, e->fresh ? UI_DIM : UI_TEXT);
    s->cursor_row = row;
    s->cursor_col = col + ui_text_width(text + from, e->cursor - from, s->cols);
    s->cursor_col = s->cursor_col >= s->cols ? s->cols - 1 : s->cursor_col;
}
