/* SPDX-License-Identifier: MIT
 *
 * The key decoder, the table of keys, the bottom line and the page over the conversation, without a
 * terminal.
 */
#include <check.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ui/key.h"
#include "ui/keymap.h"
#include "ui/overlay.h"
#include "ui/statusbar.h"

#define BEGIN "\033[200~"
#define END   "\033[201~"

/* ---- keys ----------------------------------------------------------------------------------- */

/* All events of bytes that come at once and are followed by silence, as "name name ...". */
static char *decoded(struct ui_keys *k, const char *bytes, size_t n, double *now) {
    struct cw_buf out = {0};
    ui_keys_feed(k, bytes, n, *now);
    for (int round = 0; round < 100; round++) {
        struct ui_key key;
        while (ui_keys_next(k, *now, &key)) {
            char name[32];
            ui_key_name(key.code, key.mods, name, sizeof name);
            if (key.code == UI_KEY_PASTE) {
                cw_buf_puts(&out, "<");
                cw_buf_add(&out, key.text, key.n_text);
                cw_buf_puts(&out, "> ");
            } else {
                cw_buf_printf(&out, "%s ",
                              key.code == UI_KEY_OTHER   ? "other"
                              : key.code == UI_KEY_MOUSE ? "mouse"
                                                         : name);
            }
        }
        double due = ui_keys_deadline(k);
        if (due < 0) {
            break;
        }
        *now = due > *now ? due : *now;
    }
    return cw_buf_take(&out);
}

static const struct {
    const char *bytes, *events;
} sequences[] = {
    {"a", "a "},
    {"\xc3\xa9", "\xc3\xa9 "},
    {"\xf0\x9f\x98\x80x", "\xf0\x9f\x98\x80 x "},
    {"\xff", "\xef\xbf\xbd "},
    {"\003\004\n\r\t\177\b", "Ctrl+C Ctrl+D Ctrl+J Enter Tab Backspace Ctrl+H "},
    {"\037", "Ctrl+_ "},
    {"\033", "Esc "},
    {"\033x", "Alt+x "},
    {"\033\r", "Alt+Enter "},
    {"\033\177", "Alt+Backspace "},
    {"\033\xc3\xa9", "Alt+\xc3\xa9 "},
    {"\033\033", "Esc Esc "},
    {"\033[A\033[B\033[C\033[D", "Up Down Right Left "},
    {"\033OA\033OP\033OH", "Up F1 Home "},
    {"\033[1;3A\033[1;3B", "Alt+Up Alt+Down "},
    {"\033\033[A", "Alt+Up "},
    {"\033[1;5H\033[1;5F\033[H\033[4~", "Ctrl+Home Ctrl+End Home End "},
    {"\033[5~\033[6~\033[5;3~\033[6;3~", "PgUp PgDn Alt+PgUp Alt+PgDn "},
    {"\033[3~\033[2~\033[3;5~", "Delete Insert Ctrl+Delete "},
    {"\033[15~\033[17~\033[18~\033[19~\033[24~", "F5 F6 F7 F8 F12 "},
    {"\033[[A\033[[E", "F1 F5 "},
    {"\033[11~", "F1 "},
    {"\033[1;2P", "Shift+F1 "},
    {"\033[Z", "Shift+Tab "},
    {"\033[13;2u\033[27;3;13~", "Shift+Enter Alt+Enter "},
    {"\033[99;5u", "Ctrl+C "},
    {"\033[8^\033[7$", "Ctrl+End Shift+Home "},
    {"\033[", "Alt+[ "},
    {"\033O", "Alt+O "},
    {"\033[25~\033[28~\033[34~", "Shift+F1 Shift+F3 Shift+F8 "}, /* the Linux console */
    {"\033[1;2R\033[15;2~", "Shift+F3 Shift+F5 "},
    {"\033[<64;10;10M\033[<65;1;1M", "WheelUp WheelDown "},
    {"\033[<68;1;1M\033[<81;1;1M", "Shift+WheelUp Ctrl+WheelDown "},
    {"\033[<0;10;10M\033[<0;10;10m", "mouse mouse "},
    {"\033[<64;10;10m\033[<M\033[<99999999999;1;1M", "mouse mouse mouse "},
    {"\033[?1;2c", "other "},
    {"\033[99999999999999999999999999999999999999999999~x", "other "},
    {"\033[12", "other "},
};

START_TEST(key_sequences) {
    struct ui_keys *k = ui_keys_create();
    double now = 1;
    char *got = decoded(k, sequences[_i].bytes, strlen(sequences[_i].bytes), &now);
    if (strncmp(sequences[_i].bytes, "\033[9999", 6) == 0) {
        ck_assert(strncmp(got, "other ", 6) ==
                  0); /* what follows is of no matter, only that it ends */
    } else {
        ck_assert_str_eq(got, sequences[_i].events);
    }
    free(got);
    ui_keys_destroy(k);
}
END_TEST

/* The same bytes one at a time, a millisecond apart, give the same keys. */
START_TEST(key_sequences_in_pieces) {
    struct ui_keys *whole = ui_keys_create(), *pieces = ui_keys_create();
    const char *bytes = sequences[_i].bytes;
    double now = 1;
    char *want = decoded(whole, bytes, strlen(bytes), &now);
    struct cw_buf got = {0};
    double at = 1;
    for (size_t i = 0; bytes[i] != '\0'; i++) {
        struct ui_key key;
        ui_keys_feed(pieces, bytes + i, 1, at);
        while (ui_keys_next(pieces, at, &key)) {
            char name[32];
            ui_key_name(key.code, key.mods, name, sizeof name);
            cw_buf_printf(&got, "%s ",
                          key.code == UI_KEY_OTHER   ? "other"
                          : key.code == UI_KEY_MOUSE ? "mouse"
                                                     : name);
        }
        at += 0.001;
    }
    char *rest = decoded(pieces, "", 0, &at);
    cw_buf_puts(&got, rest);
    if (strncmp(bytes, "\033[9999", 6) != 0) {
        ck_assert_str_eq(got.data, want);
    }
    free(rest);
    free(want);
    cw_buf_free(&got);
    ui_keys_destroy(whole);
    ui_keys_destroy(pieces);
}
END_TEST

/* A sequence that a slow line cuts is waited for longer than a lone Esc, but not for ever. */
START_TEST(cut_sequences_are_waited_for) {
    struct ui_keys *k = ui_keys_create();
    struct ui_key key;
    ui_keys_feed(k, "\033[1", 3, 10.0);
    ck_assert(!ui_keys_next(k, 10.1, &key));
    ck_assert_double_eq_tol(ui_keys_deadline(k), 10.0 + UI_CUT_MS / 1000.0, 1e-9);
    ui_keys_feed(k, "5~", 2, 10.2);
    ck_assert(ui_keys_next(k, 10.2, &key));
    ck_assert_uint_eq(key.code, UI_KEY_F1 + 4);
    ui_keys_feed(k, "\033[1", 3, 11.0);
    ck_assert(!ui_keys_next(k, 11.4, &key));
    ck_assert(ui_keys_next(k, 11.6, &key));
    ck_assert_uint_eq(key.code, UI_KEY_OTHER);
    ck_assert(!ui_keys_next(k, 11.6, &key));
    ui_keys_destroy(k);
}
END_TEST

START_TEST(esc_and_alt_by_time) {
    struct ui_keys *k = ui_keys_create();
    struct ui_key key;
    ui_keys_feed(k, "\033", 1, 10.0);
    ck_assert(!ui_keys_next(k, 10.0, &key));
    ck_assert_double_eq_tol(ui_keys_deadline(k), 10.0 + UI_ESC_MS / 1000.0, 1e-9);
    ck_assert(!ui_keys_next(k, 10.02, &key));
    ck_assert(ui_keys_next(k, 10.03, &key));
    ck_assert_uint_eq(key.code, UI_KEY_ESC);
    ui_keys_feed(k, "f", 1, 10.04);
    ck_assert(ui_keys_next(k, 10.04, &key));
    ck_assert_uint_eq(key.code, 'f');
    ck_assert_uint_eq(key.mods, 0);
    ui_keys_feed(k, "\033", 1, 11.0);
    ck_assert(!ui_keys_next(k, 11.0, &key));
    ui_keys_feed(k, "f", 1, 11.01);
    ck_assert(ui_keys_next(k, 11.01, &key));
    ck_assert_uint_eq(key.code, 'f');
    ck_assert_uint_eq(key.mods, UI_ALT);
    ck_assert(ui_keys_deadline(k) < 0);
    ui_keys_destroy(k);
}
END_TEST

START_TEST(terminal_defines_keys) {
    struct ui_keys *k = ui_keys_create();
    ui_keys_define(k, "\033Wq", UI_KEY_F1 + 8, 0);
    ui_keys_define(k, "x", UI_KEY_F1, 0); /* no sequence: stays a letter */
    double now = 1;
    char *got = decoded(k, "\033Wqx", 4, &now);
    ck_assert_str_eq(got, "F9 x ");
    free(got);
    ui_keys_destroy(k);
}
END_TEST

static const struct {
    const char *bytes, *events;
} pastes[] = {
    {BEGIN "one\ntwo\r\nthree\t" END, "<one\ntwo\r\nthree\t> "},
    {BEGIN END, "<> "},
    {"a" BEGIN "b" END "c", "a <b> c "},
    {BEGIN "x" END "\r", "<x> Enter "},
    {BEGIN "ends in esc\033" END, "<ends in esc\033> "},
    {BEGIN "ends in \033[2" END, "<ends in \033[2> "},
    {BEGIN "ends in \033[201" END, "<ends in \033[201> "},
    /* a forged end marker: all of it is one paste */
    {BEGIN "a" END "\r/quit\r" END, "<a" END "\r/quit\r> "},
    {BEGIN "a" END "\r" END "\r" END "b", "<a" END "\r" END "\r> b "},
    {BEGIN "one" END BEGIN "two" END, "<one> <two> "},
    {BEGIN "one" END "x" BEGIN "two" END, "<one> x <two> "},
    {BEGIN "has " BEGIN " inside" END, "<has " BEGIN " inside> "},
};

START_TEST(paste_table) {
    struct ui_keys *k = ui_keys_create();
    double now = 1;
    char *got = decoded(k, pastes[_i].bytes, strlen(pastes[_i].bytes), &now);
    ck_assert_str_eq(got, pastes[_i].events);
    free(got);
    got = decoded(k, "z", 1, &now); /* typing works after any of them */
    ck_assert_str_eq(got, "z ");
    free(got);
    ui_keys_destroy(k);
}
END_TEST

/* Cut in two anywhere, with 200 ms in between: the paste is the same. Only where the cut falls
 * behind an end marker does a forged one pass, as text that needs an Enter of its own. */
START_TEST(paste_cut_in_two) {
    const char *bytes = BEGIN "one\ntwo" END;
    size_t n = strlen(bytes);
    for (size_t cut = 7; cut < n; cut++) {
        struct ui_keys *k = ui_keys_create();
        struct ui_key key;
        ui_keys_feed(k, bytes, cut, 1);
        ck_assert(!ui_keys_next(k, 1, &key));
        ck_assert(ui_keys_pasting(k));
        ui_keys_feed(k, bytes + cut, n - cut, 1.2);
        ck_assert(!ui_keys_next(k, 1.2, &key));
        ck_assert(ui_keys_deadline(k) > 0); /* found: nothing but time is missing */
        ck_assert(ui_keys_next(k, 1.2 + 2 * UI_PASTE_MS / 1000.0, &key));
        ck_assert_uint_eq(key.code, UI_KEY_PASTE);
        ck_assert_uint_eq(key.n_text, 7);
        ck_assert_mem_eq(key.text, "one\ntwo", 7);
        ck_assert(!ui_keys_pasting(k));
        ui_keys_destroy(k);
    }
}
END_TEST

/* Parts of a paste in reads of their own, in every way that moves the buffer. */
START_TEST(paste_in_reads) {
    static const char *const reads[][5] = {
        {BEGIN, END, "x", NULL},
        {BEGIN, "ab", END, "x", NULL},
        {BEGIN "ab" END, "x", NULL},
        {"q" BEGIN "ab", END, "x", NULL},
        {BEGIN "ab" END, "\r", END, "x", NULL},
    };
    static const char *const want[] = {"<> x ", "<ab> x ", "<ab> x ", "q <ab> x ",
                                       "<ab" END "\r> x "};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct ui_keys *k = ui_keys_create();
        struct cw_buf got = {0};
        double now = 1;
        for (int r = 0; reads[i][r] != NULL; r++, now += 0.001) {
            bool last = reads[i][r + 1] == NULL;
            struct ui_key key;
            ui_keys_feed(k, reads[i][r], strlen(reads[i][r]), now);
            do {
                while (ui_keys_next(k, now, &key)) {
                    char name[32];
                    ui_key_name(key.code, key.mods, name, sizeof name);
                    if (key.code == UI_KEY_PASTE) {
                        cw_buf_puts(&got, "<");
                        cw_buf_add(&got, key.text, key.n_text);
                        cw_buf_puts(&got, "> ");
                    } else {
                        cw_buf_printf(&got, "%s ", name);
                    }
                }
                now += last ? 1 : 0;
            } while (ui_keys_deadline(k) >= 0 && last);
        }
        ck_assert_str_eq(got.data, want[i]);
        cw_buf_free(&got);
        ui_keys_destroy(k);
    }
}
END_TEST

START_TEST(paste_large) {
    struct ui_keys *k = ui_keys_create();
    struct ui_key key;
    char chunk[4096];
    memset(chunk, 'x', sizeof chunk);
    chunk[17] = '\0';
    double now = 1;
    ui_keys_feed(k, BEGIN, 6, now);
    ck_assert(!ui_keys_next(k, now, &key));
    for (int i = 0; i < 256; i++) { /* 1 MiB */
        ui_keys_feed(k, chunk, sizeof chunk, now);
        ck_assert(!ui_keys_next(k, now, &key));
    }
    ui_keys_feed(k, END, 6, now);
    ck_assert(!ui_keys_next(k, now, &key));
    ck_assert(ui_keys_next(k, now + 1, &key));
    ck_assert_uint_eq(key.n_text, 1024 * 1024);
    ck_assert(!key.truncated);
    /* too much: bounded, and said */
    now = 5;
    ui_keys_feed(k, BEGIN, 6, now);
    ck_assert(!ui_keys_next(k, now, &key));
    for (int i = 0; i < UI_PASTE_MAX / 4096 + 100; i++) {
        ui_keys_feed(k, chunk, sizeof chunk, now);
        ck_assert(!ui_keys_next(k, now, &key));
    }
    ui_keys_feed(k, END, 6, now);
    ui_keys_next(k, now, &key);
    ck_assert(ui_keys_next(k, now + 1, &key));
    ck_assert_uint_le(key.n_text, UI_PASTE_MAX + 8192);
    ck_assert(key.truncated);
    ui_keys_destroy(k);
}
END_TEST

START_TEST(paste_without_end) {
    struct ui_keys *k = ui_keys_create();
    struct ui_key key;
    ui_keys_feed(k, BEGIN "lost", 10, 1);
    ck_assert(!ui_keys_next(k, 1, &key));
    ui_keys_feed(k, "\003", 1, 1.1); /* may be pasted: it came at once */
    ck_assert(!ui_keys_next(k, 2, &key));
    ui_keys_feed(k, "\003", 1, 5); /* pressed */
    ck_assert(!ui_keys_next(k, 5, &key));
    ck_assert(ui_keys_next(k, 6, &key));
    ck_assert_uint_eq(key.code, UI_KEY_PASTE);
    ck_assert_uint_eq(key.n_text, 5);
    ui_keys_destroy(k);
}
END_TEST

/* Any bytes at all, cut anywhere: it always comes to an end. */
START_TEST(key_any_bytes) {
    uint32_t seed = 42;
    for (int round = 0; round < 3000; round++) {
        struct ui_keys *k = ui_keys_create();
        double now = 1;
        for (int part = 0; part < 5; part++) {
            char s[16];
            for (size_t i = 0; i < sizeof s; i++) {
                seed = seed * 1664525 + 1013904223;
                static const char likely[] = "\033\033[[O0129;~uAM<$^@x";
                s[i] = seed & 0x10000 ? (char)(seed >> 24) : likely[(seed >> 20) % 20];
            }
            char *got = decoded(k, s, sizeof s, &now);
            free(got);
        }
        ck_assert(ui_keys_deadline(k) < 0 || ui_keys_pasting(k));
        ui_keys_destroy(k);
    }
}
END_TEST

/* ---- the table of keys ---------------------------------------------------------------------- */

START_TEST(keymap_is_sound) {
    bool used[UI_N_ACTIONS] = {false};
    for (size_t i = 0; ui_keymap_at(i) != NULL; i++) {
        const struct ui_binding *b = ui_keymap_at(i);
        used[b->action] = true;
        ck_assert_int_eq(ui_keymap_find(b->code, b->mods), b->action); /* no key twice */
        ck_assert_str_ne(ui_action_help(b->action), "");
        char name[32];
        ui_key_name(b->code, b->mods, name, sizeof name);
        ck_assert_ptr_null(strchr(name, '?'));
        /* the help collects neighbours: an action may not come back later */
        for (size_t k = i + 1; ui_keymap_at(k) != NULL; k++) {
            ck_assert(ui_keymap_at(k)->action != b->action ||
                      ui_keymap_at(k - 1)->action == b->action);
        }
    }
    for (int a = UI_ACT_NONE + 1; a < UI_N_ACTIONS; a++) {
        ck_assert_msg(used[a], "no key for %s", ui_action_name((enum ui_action)a));
    }
    ck_assert_int_eq(ui_keymap_find('a', 0), UI_ACT_NONE);
    ck_assert_int_eq(ui_keymap_find(UI_KEY_F1 + 4, 0), UI_ACT_TEMP_DOWN);
    ck_assert_int_eq(ui_keymap_find(UI_KEY_UP, UI_ALT), UI_ACT_TEMP_UP);
    ck_assert_int_eq(ui_keymap_find(UI_KEY_UP, 0), UI_ACT_NONE); /* readline's */
}
END_TEST

/* Names go both ways, whatever the letters' case and the order of the modifiers. */
START_TEST(key_names_parse) {
    static const struct {
        const char *name;
        uint32_t code;
        unsigned mods;
    } cases[] = {
        {"Ctrl+T", 't', UI_CTRL},
        {"alt+DOWN", UI_KEY_DOWN, UI_ALT},
        {"F12", UI_KEY_F12, 0},
        {"f1", UI_KEY_F1, 0},
        {"Shift+Alt+F5", UI_KEY_F1 + 4, UI_ALT | UI_SHIFT},
        {"Ctrl+Space", ' ', UI_CTRL},
        {"Alt+,", ',', UI_ALT},
        {"Alt++", '+', UI_ALT},
        {"\xc3\xa9", 0xe9, 0},
        {"WheelUp", UI_KEY_WHEEL_UP, 0},
    };
    static const char *const bad[] = {"",    "Ctrl+", "F0",          "F13",  "F123",
                                      "Foo", "ab",    "Ctrl+Ctrl+a", "\x01", "Alt+\xff"};
    uint32_t code;
    unsigned mods;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(ui_key_parse(cases[i].name, strlen(cases[i].name), &code, &mods), "%s",
                      cases[i].name);
        ck_assert_uint_eq(code, cases[i].code);
        ck_assert_uint_eq(mods, cases[i].mods);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_msg(!ui_key_parse(bad[i], strlen(bad[i]), &code, &mods), "%s", bad[i]);
    }
    for (size_t i = 0; ui_keymap_at(i) != NULL; i++) {
        const struct ui_binding *b = ui_keymap_at(i);
        char name[32];
        ui_key_name(b->code, b->mods, name, sizeof name);
        ck_assert(ui_key_parse(name, strlen(name), &code, &mods));
        ck_assert_uint_eq(code, b->code);
        ck_assert_uint_eq(mods, b->mods);
    }
}
END_TEST

static void note_taken(void *arg, int line, const char *what) {
    cw_buf_printf(arg, "%d: %s\n", line, what);
}

START_TEST(keys_are_given_anew) {
    struct cw_err err = {0};
    struct cw_buf told = {0};
    char keys[64];
    ck_assert_int_eq(ui_keymap_bind("temp-up", "Ctrl+T, Alt+,, F9", 3, &err), CW_OK);
    ck_assert_int_eq(ui_keymap_find('t', UI_CTRL), UI_ACT_TEMP_UP);
    ck_assert_int_eq(ui_keymap_find(',', UI_ALT), UI_ACT_TEMP_UP);
    ck_assert_int_eq(ui_keymap_find(UI_KEY_UP, UI_ALT), UI_ACT_NONE); /* it had */
    ui_keymap_keys(UI_ACT_TEMP_UP, keys, sizeof keys);
    ck_assert_str_eq(keys, "Ctrl+T, Alt+,, F9");
    /* bad lines change nothing and say why */
    ck_assert_int_eq(ui_keymap_bind("nonsense", "F9", 4, &err), CW_ENOENT);
    ck_assert_int_eq(ui_keymap_bind("help", "F99", 4, &err), CW_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "'F99' is no key"));
    ck_assert_int_eq(ui_keymap_bind("help", "h", 4, &err), CW_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "needed for writing"));
    ck_assert_int_eq(ui_keymap_bind("help", "Enter", 4, &err), CW_EINVAL);
    ck_assert_int_eq(ui_keymap_bind("help", "F1, Ctrl+T", 4, &err), CW_EINVAL);
    ck_assert_str_eq(err.text, "'Ctrl+T' is given to 'temp-up' in line 3");
    ck_assert_int_eq(ui_keymap_find(UI_KEY_F1, 0), UI_ACT_HELP);
    /* the same line again, other keys; and none */
    ck_assert_int_eq(ui_keymap_bind("temp-up", "F9", 5, &err), CW_OK);
    ck_assert_int_eq(ui_keymap_find('t', UI_CTRL), UI_ACT_NONE);
    ck_assert_int_eq(ui_keymap_bind("redraw", "", 6, &err), CW_OK);
    ck_assert_int_eq(ui_keymap_find('l', UI_CTRL), UI_ACT_NONE);
    ui_keymap_settle(note_taken, &told);
    ck_assert_str_eq(told.data, "5: F9 is taken from 'pause'\n");
    ck_assert_int_eq(ui_keymap_find(UI_KEY_F1 + 8, 0), UI_ACT_TEMP_UP);
    for (size_t i = 1; ui_keymap_at(i) != NULL; i++) { /* still sorted: the help relies on it */
        ck_assert_int_ge(ui_keymap_at(i)->action, ui_keymap_at(i - 1)->action);
    }
    ui_keymap_reset();
    ck_assert_int_eq(ui_keymap_find(UI_KEY_F1 + 8, 0), UI_ACT_PAUSE);
    cw_buf_free(&told);
}
END_TEST

/* ---- the bottom line ------------------------------------------------------------------------ */

static const struct ui_status busy = {
    .state = UI_STATE_ANSWERING,
    .model = "SmolLM2",
    .temp = 0.95,
    .top_p = 0.9,
    .temp_changed = true,
    .tps = 231.4,
    .ttft_s = 0.038,
    .spark = {[10] = 50, 100, 150, 200, 231},
    .ctx_used = 812,
    .n_ctx = 8192,
    .n_reused = 790,
    .n_evaluated = 22,
};

static char *bar(int cols, const struct ui_status *st) {
    struct ui_screen s;
    struct cw_buf out = {0};
    ui_screen_init(&s, 1, cols);
    ui_statusbar_draw(&s, 0, st);
    ui_screen_row_text(&s, 0, &out);
    ui_screen_free(&s);
    return cw_buf_take(&out);
}

START_TEST(bar_in_full) {
    setlocale(LC_CTYPE, "C.UTF-8");
    char *got = bar(200, &busy);
    ck_assert_str_eq(
        got, " answering            ▃▄▆▇█  231 tok/s  TTFT 38 ms │ T 0.95*  top-p 0.90 │ ▓░░░░░░░  "
             "812/8192 │ 790 reused +22 │ SmolLM2");
    free(got);
}
END_TEST

/* From 200 columns to 1: what is shown is whole parts, the important ones longest. */
START_TEST(bar_narrows) {
    setlocale(LC_CTYPE, "C.UTF-8");
    static const char *const order[] = {"▃▄",      "SmolLM2",    "reused",
                                        "░░░",     "TTFT 38 ms", "top-p 0.90",
                                        "T 0.95*", "231 tok/s",  "812/8192"};
    enum { N = sizeof order / sizeof order[0] };
    size_t gone = 0;
    for (int cols = 200; cols >= 1; cols--) {
        char *got = bar(cols, &busy);
        ck_assert_int_le(ui_text_width(got, strlen(got), 1000), cols);
        while (gone < N && strstr(got, order[gone]) == NULL) {
            gone++;
        }
        for (size_t i = gone; i < N; i++) {
            ck_assert_msg(strstr(got, order[i]) != NULL, "%s went before %s at %d: %s", order[i],
                          gone < N ? order[gone] : "", cols, got);
        }
        if (cols >= 9) {
            ck_assert_ptr_nonnull(strstr(got, "answering"));
        }
        if (cols == 20) {
            ck_assert_str_eq(got, " answering  812/8192");
        }
        free(got);
    }
    ck_assert_uint_eq(gone, N);
}
END_TEST

/* Everything there is to tell, from 200 columns to 20: what is there is whole, in the order of the
 * table, and what was dropped is what matters least. */
START_TEST(bar_all_parts) {
    setlocale(LC_CTYPE, "C.UTF-8");
    static const char *const order[] = {"▃▄",         "built-in",   "live",           "412 MB",
                                        "seed 7",     "SmolLM2",    "790 reused +22", "anew from 5",
                                        "░░░",        "TTFT 38 ms", "branch 2/3",     "vi insert",
                                        "top-p 0.90", "private",    "T 0.95*",        "231 tok/s",
                                        "812/8192"};
    enum { N = sizeof order / sizeof order[0] };
    struct ui_status st = busy;
    st.temp_origin = "live";
    st.top_p_origin = "built-in";
    st.seed_known = true;
    st.seed = 7;
    st.memory_bytes = 412000000;
    st.branch = 2;
    st.n_branches = 3;
    st.mode = "insert";
    st.is_private = true;
    st.anew_from = 5;
    size_t gone = 0;
    for (int cols = 260; cols >= 20; cols--) {
        char *got = bar(cols, &st);
        ck_assert_int_le(ui_text_width(got, strlen(got), 1000), cols);
        while (gone < N && strstr(got, order[gone]) == NULL) {
            gone++;
        }
        for (size_t i = gone; i < N; i++) {
            ck_assert_msg(strstr(got, order[i]) != NULL, "%s went before %s at %d: %s", order[i],
                          gone < N ? order[gone] : "", cols, got);
        }
        /* nothing but whole parts: what is left when they are taken out is space and bars */
        char rest[1024];
        snprintf(rest, sizeof rest, "%s", got);
        static const char *const all[] = {
            "answering",   "▃▄▆▇█",      "▓░░░░░░░",   "│",         "built-in",
            "live",        "412 MB",     "seed 7",     "SmolLM2",   "790 reused +22",
            "anew from 5", "TTFT 38 ms", "branch 2/3", "vi insert", "top-p 0.90",
            "private",     "T 0.95*",    "231 tok/s",  "812/8192"};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            for (char *at; (at = strstr(rest, all[i])) != NULL;) {
                memset(at, ' ', strlen(all[i]));
            }
        }
        ck_assert_msg(rest[strspn(rest, " ")] == '\0', "%d: %s leaves %s", cols, got, rest);
        ck_assert_ptr_nonnull(strstr(got, "answering"));
        free(got);
    }
    ck_assert_uint_eq(gone, N - 1); /* the context stays to the end */
}
END_TEST

START_TEST(bar_states) {
    setlocale(LC_CTYPE, "C.UTF-8");
    struct ui_status st = {
        .state = UI_STATE_LOADING, .fraction = 0.42, .left_s = -1, .temp = 0.8, .top_p = 0.95};
    char *got = bar(80, &st);
    ck_assert_str_eq(got, " loading 42% │ T 0.80  top-p 0.95");
    free(got);
    st.state = UI_STATE_READING;
    st.left_s = 3.2;
    got = bar(80, &st);
    ck_assert_str_eq(got, " reading 42%  3 s left │ T 0.80  top-p 0.95");
    free(got);
    st.state = UI_STATE_IDLE;
    st.tps = 12.34;
    st.ttft_s = 2.5;
    got = bar(80, &st);
    ck_assert_str_eq(got, " idle  12.3 tok/s  TTFT 2.5 s │ T 0.80  top-p 0.95");
    free(got);
}
END_TEST

START_TEST(bar_model_is_data) {
    setlocale(LC_CTYPE, "C.UTF-8");
    struct ui_status st = busy;
    st.model = "%n%s\x1b[2J\xe2\x80\xae";
    char *got = bar(200, &st);
    ck_assert_ptr_nonnull(strstr(got, "%n%s^[[2J\\u{202e}"));
    free(got);
}
END_TEST

/* ---- the page over the conversation --------------------------------------------------------- */

START_TEST(overlay_pages) {
    setlocale(LC_CTYPE, "C.UTF-8");
    struct ui_overlay *o = ui_overlay_create("Help");
    ui_overlay_heading(o, "Keys");
    for (int i = 0; i < 30; i++) {
        char key[16], text[64];
        snprintf(key, sizeof key, "key%d", i);
        snprintf(text, sizeof text, "what %d does, in a sentence of some length", i);
        ui_overlay_line(o, key, text);
    }
    struct ui_screen s;
    struct cw_buf row = {0};
    ui_screen_init(&s, 10, 60);
    ui_overlay_draw(o, &s, 0, 10);
    ui_screen_row_text(&s, 3, &row);
    ck_assert_str_eq(row.data, "  key0   what 0 does, in a sentence of some length");
    cw_buf_clear(&row);
    ui_overlay_scroll(o, 1000); /* held at the end */
    ui_overlay_draw(o, &s, 0, 10);
    ui_screen_row_text(&s, 9, &row);
    ck_assert_str_eq(row.data, "  key29  what 29 does, in a sentence of some length");
    cw_buf_clear(&row);
    ui_overlay_scroll(o, -1000);
    ui_overlay_draw(o, &s, 0, 10);
    ui_screen_row_text(&s, 2, &row);
    ck_assert_str_eq(row.data, " Keys");
    for (int rows = 0; rows < 4; rows++) { /* any size will do */
        for (int cols = 1; cols < 40; cols++) {
            ui_screen_resize(&s, rows, cols);
            ui_overlay_draw(o, &s, 0, rows);
        }
    }
    cw_buf_free(&row);
    ui_screen_free(&s);
    ui_overlay_destroy(o);
}
END_TEST

/* ---- rules of the house ---------------------------------------------------------------------- */

/* What `command`, run in the source tree, writes. */
static char *output_of(const char *command) {
    const char *root = getenv("CHINWAG_SOURCE_ROOT");
    ck_assert_ptr_nonnull(root);
    struct cw_buf line = {0}, out = {0};
    cw_buf_printf(&line, "cd '%s' && %s", root, command);
    FILE *f = popen(line.data, "r");
    ck_assert_ptr_nonnull(f);
    char bytes[512];
    size_t n;
    while ((n = fread(bytes, 1, sizeof bytes, f)) > 0) {
        cw_buf_add(&out, bytes, n);
    }
    pclose(f);
    cw_buf_free(&line);
    return cw_buf_take(&out);
}

START_TEST(one_file_each_knows_curses_and_readline) {
    char *got = output_of("grep -rlE '# *include *<(n?curses[a-z]*/)?(n?curses|term)[.]h>' core ui "
                          "app include | sort");
    ck_assert_str_eq(got, "ui/term.c\n");
    free(got);
    got = output_of("grep -rlE '# *include *<readline/' core ui app include | sort");
    ck_assert_str_eq(got, "ui/input.c\n");
    free(got);
}
END_TEST

static Suite *suite(void) {
    Suite *s = suite_create("ui keys");
    TCase *t = tcase_create("keys");
    int n = (int)(sizeof sequences / sizeof sequences[0]);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, key_sequences, 0, n);
    tcase_add_loop_test(t, key_sequences_in_pieces, 0, n);
    tcase_add_test(t, esc_and_alt_by_time);
    tcase_add_test(t, cut_sequences_are_waited_for);
    tcase_add_test(t, terminal_defines_keys);
    tcase_add_loop_test(t, paste_table, 0, (int)(sizeof pastes / sizeof pastes[0]));
    tcase_add_test(t, paste_cut_in_two);
    tcase_add_test(t, paste_in_reads);
    tcase_add_test(t, paste_large);
    tcase_add_test(t, paste_without_end);
    tcase_add_test(t, key_any_bytes);
    tcase_add_test(t, keymap_is_sound);
    tcase_add_test(t, key_names_parse);
    tcase_add_test(t, keys_are_given_anew);
    tcase_add_test(t, bar_in_full);
    tcase_add_test(t, bar_narrows);
    tcase_add_test(t, bar_all_parts);
    tcase_add_test(t, bar_states);
    tcase_add_test(t, bar_model_is_data);
    tcase_add_test(t, overlay_pages);
    tcase_add_test(t, one_file_each_knows_curses_and_readline);
    suite_add_tcase(s, t);
    return s;
}

int main(void) {
    SRunner *sr = srunner_create(suite());
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
