/* SPDX-License-Identifier: MIT
 *
 * A page of text over the conversation has the keyboard: help, /show, /stats.
 */
#include "app/app_impl.h"

void app_enter(struct app *a, const struct app_mode *mode) {
    const struct app_mode *before = a->mode;
    a->mode = NULL;
    if (before != NULL && before != mode && before->close != NULL) {
        before->close(a);
    }
    a->mode = mode;
    a->dirty = true;
}

void app_show_page(struct app *a, struct ui_overlay *page) {
    ui_overlay_destroy(a->overlay);
    a->overlay = page;
    if (a->plain != NULL && page != NULL) {
        struct cw_buf text = {0};
        ui_overlay_text(page, &text);
        app_plain_page(a, &text);
        cw_buf_free(&text);
        a->overlay = NULL;
        ui_overlay_destroy(page);
        return;
    }
    if (page != NULL || a->mode == &app_mode_page) {
        app_enter(a, page != NULL ? &app_mode_page : NULL);
    }
}

static void page_close(struct app *a) {
    ui_overlay_destroy(a->overlay);
    a->overlay = NULL;
}

static const struct {
    uint32_t code;
    int lines, pages;
} scrolls[] = {
    {UI_KEY_UP, -1, 0},        {UI_KEY_DOWN, 1, 0},
    {UI_KEY_ENTER, 1, 0},      {UI_KEY_WHEEL_UP, -3, 0},
    {UI_KEY_WHEEL_DOWN, 3, 0}, {UI_KEY_PGUP, 0, -1},
    {UI_KEY_PGDN, 0, 1},       {' ', 0, 1},
    {UI_KEY_HOME, -100000, 0}, {UI_KEY_END, 100000, 0},
};

static bool page_key(struct app *a, const struct ui_key *key) {
    int page = a->screen.rows > 6 ? a->screen.rows - 6 : 1;
    for (size_t i = 0; i < sizeof scrolls / sizeof scrolls[0]; i++) {
        if (key->mods == 0 && key->code == scrolls[i].code) {
            ui_overlay_scroll(a->overlay, scrolls[i].lines + scrolls[i].pages * page);
            return true;
        }
    }
    enum ui_action action = ui_keymap_find(key->code, key->mods);
    bool closes =
        key->mods == 0 && (key->code == UI_KEY_ESC || key->code == 'q' || key->code == '?');
    if (closes || action == UI_ACT_HELP || action == UI_ACT_INTERRUPT || action == UI_ACT_LEAVE) {
        app_show_page(a, NULL);
        return true;
    }
    return false;
}

static int page_rows(struct app *a, int rows) {
    return rows;
}

static void page_draw(struct app *a, int row, int rows) {
    ui_overlay_draw(a->overlay, &a->screen, row, rows);
}

static void page_line(struct app *a, int row) {
    ui_overlay_draw_line(a->overlay, &a->screen, row);
}

const struct app_mode app_mode_page = {
    .key = page_key, .close = page_close, .rows = page_rows, .draw = page_draw, .line = page_line};
