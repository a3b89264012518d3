/* SPDX-License-Identifier: MIT
 *
 * Lists of conversations: the page of /list, the page of /load to choose one from, and what the
 * palette has of them. The store finds; here is only shown what it found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/app_impl.h"
#include "chinwag/store.h"

/* ---- a conversation in words ---------------------------------------------------------------- */

static void name_date(int64_t ms, char *out, size_t cap) {
    time_t at = (time_t)(ms / 1000);
    struct tm local;
    out[0] = '\0';
    if (localtime_r(&at, &local) != NULL) {
        strftime(out, cap, "%Y-%m-%d %H:%M", &local);
    }
}

static void add_printable(struct cw_buf *out, struct cw_str text) {
    char line[256];
    cw_buf_add(out, line, cw_printable(line, sizeof line, text.data ? text.data : "", text.len));
}

/* "2026-11-29 20:15  6 messages  SmolLM2  ... and the colours of ..." */
static void describe(const struct cw_store_hit *hit, bool open, struct cw_buf *out) {
    const struct cw_store_conversation *c = &hit->conversation;
    char when[32];
    name_date(c->updated_ms, when, sizeof when);
    cw_buf_printf(out, "%s  %zu message%s", when, c->n_messages, c->n_messages == 1 ? "" : "s");
    cw_buf_puts(out, open ? ", this one" : "");
    if (hit->snippet.len > 0) {
        cw_buf_puts(out, "  ");
        add_printable(out, hit->snippet);
    } else if (c->model.len > 0) {
        cw_buf_puts(out, "  ");
        add_printable(out, c->model);
    }
}

/* ---- the page of /list ---------------------------------------------------------------------- */

static void show_page(struct app *a, const struct cw_store_event *ev) {
    struct app_persist *p = &a->persist;
    struct ui_overlay *page = ui_overlay_create("Conversations");
    free(p->hits);
    p->hits = cw_calloc(ev->n_hits + 1, sizeof *p->hits);
    p->n_hits = ev->n_hits;
    for (size_t i = 0; i < ev->n_hits; i++) {
        const struct cw_store_hit *hit = &ev->hits[i];
        const struct cw_store_conversation *c = &hit->conversation;
        char name[CW_STORE_NAME], key[64], when[32];
        struct cw_buf line = {0};
        p->hits[i] = c->id;
        cw_store_name(c->id, name);
        name_date(c->updated_ms, when, sizeof when);
        snprintf(key, sizeof key, "%zu %s", i + 1, when);
        add_printable(&line, c->title);
        cw_buf_printf(&line, "  (%s, %zu messages)", name, c->n_messages);
        ui_overlay_line(page, key, line.data);
        if (hit->snippet.len > 0) {
            cw_buf_clear(&line);
            add_printable(&line, hit->snippet);
            ui_overlay_line(page, "", line.data);
        }
        cw_buf_free(&line);
    }
    ui_overlay_line(page, "", "");
    ui_overlay_line(page, "",
                    ev->n_hits > 0 ? "/load NUMBER or /load NAME opens one." : "There are none.");
    app_show_page(a, page);
}

/* ---- choosing one --------------------------------------------------------------------------- */

static void each_hit(struct app *a, const struct cw_store_event *ev, struct ui_palette *chooser) {
    for (size_t i = 0; i < ev->n_hits; i++) {
        const struct cw_store_conversation *c = &ev->hits[i].conversation;
        char name[CW_STORE_NAME];
        struct cw_buf title = {0}, detail = {0};
        cw_store_name(c->id, name);
        add_printable(&title, c->title);
        describe(&ev->hits[i], (uint64_t)c->id == a->chat.id, &detail);
        const char *label = title.len > 0 ? title.data : name;
        if (chooser != NULL) {
            ui_palette_add(chooser, 0, label, detail.data, name);
        } else {
            app_palette_conversation(a, label, detail.data, name);
        }
        cw_buf_free(&title);
        cw_buf_free(&detail);
    }
}

void app_persist_show_list(struct app *a, const struct cw_store_event *ev) {
    struct app_persist *p = &a->persist;
    switch (p->list) {
    case APP_LIST_PAGE:
        show_page(a, ev);
        break;
    case APP_LIST_CHOOSER:
        if (p->chooser != NULL) {
            ui_palette_clear(p->chooser);
            each_hit(a, ev, p->chooser);
        }
        break;
    case APP_LIST_PALETTE:
        if (a->mode == &app_mode_palette) { /* and not closed meanwhile */
            ui_palette_drop_found(a->palette);
            each_hit(a, ev, NULL);
        }
        break;
    }
    a->dirty = true;
}

void app_persist_list(struct app *a, const char *query) {
    app_persist_ask(a, APP_LIST_PAGE, query);
}

void app_persist_choose(struct app *a) {
    if (a->plain != NULL) {
        app_persist_list(a, ""); /* there numbers are chosen from */
        return;
    }
    if (!app_can_move(a, false) || !app_persist_ask(a, APP_LIST_CHOOSER, "")) {
        return;
    }
    app_enter(a, NULL);
    a->persist.chooser = ui_palette_create("Conversations");
    ui_palette_show_all(a->persist.chooser);
    app_enter(a, &app_mode_chooser);
}

static void chooser_close(struct app *a) {
    ui_palette_destroy(a->persist.chooser);
    a->persist.chooser = NULL;
}

static void choose(struct app *a) {
    const struct ui_palette_item *item = ui_palette_selected(a->persist.chooser);
    if (item != NULL) {
        char *name = cw_strdup(item->action);
        app_enter(a, NULL);
        app_persist_load(a, name);
        free(name);
    }
}

static bool chooser_key(struct app *a, const struct ui_key *key) {
    bool plain = key->mods == 0;
    enum ui_action action =
        key->code == UI_KEY_PASTE ? UI_ACT_NONE : ui_keymap_find(key->code, key->mods);
    if (plain && key->code == UI_KEY_ENTER) {
        choose(a);
    } else if ((plain && key->code == UI_KEY_ESC) || action == UI_ACT_INTERRUPT) {
        app_enter(a, NULL);
    } else {
        bool taken = ui_palette_key(a->persist.chooser, key);
        if (ui_palette_changed(a->persist.chooser)) {
            app_persist_ask(a, APP_LIST_CHOOSER, ui_palette_needle(a->persist.chooser));
        }
        return taken;
    }
    return true;
}

static int chooser_rows(struct app *a, int rows) {
    return rows;
}

static void chooser_draw(struct app *a, int row, int rows) {
    ui_palette_draw(a->persist.chooser, &a->screen, row, rows);
}

static void chooser_line(struct app *a, int row) {
    ui_palette_draw_line(a->persist.chooser, &a->screen, row);
}

const struct app_mode app_mode_chooser = {.key = chooser_key,
                                          .close = chooser_close,
                                          .rows = chooser_rows,
                                          .draw = chooser_draw,
                                          .line = chooser_line};
