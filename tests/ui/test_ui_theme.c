/* SPDX-License-Identifier: MIT
 *
 * Themes, and what is said to the terminal beside the text.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chinwag/mem.h"
#include "ui/osc.h"
#include "ui/theme.h"

/* ---- themes --------------------------------------------------------------------------------- */

static char path[64];

static void write_theme(const char *text) {
    strcpy(path, "/tmp/chinwag-theme-XXXXXX");
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static void assert_style(enum ui_role role, enum ui_depth depth, int32_t fg, int32_t bg,
                         unsigned attrs) {
    struct ui_style style = ui_theme_style(role, depth);
    ck_assert_int_eq(style.fg, fg);
    ck_assert_int_eq(style.bg, bg);
    ck_assert_uint_eq(style.attrs, attrs);
}

START_TEST(every_role_has_a_name) {
    for (int i = 0; i < UI_N_ROLES; i++) {
        const char *name = ui_role_name((enum ui_role)i);
        ck_assert_ptr_nonnull(name);
        for (int k = 0; k < i; k++) {
            ck_assert_str_ne(name, ui_role_name((enum ui_role)k));
        }
    }
}
END_TEST

/* The themes inside the program are the files of the source. */
START_TEST(builtin_is_as_the_file) {
    const char *root = getenv("CHINWAG_SOURCE_ROOT");
    ck_assert_ptr_nonnull(root);
    size_t n = 0;
    for (; ui_theme_name(n) != NULL; n++) {
        struct ui_style own[UI_N_ROLES][4];
        char file[512];
        struct cw_err err = {0};
        ck_assert_int_eq(ui_theme_load(ui_theme_name(n), &err), CW_OK);
        ck_assert_str_eq(ui_theme_current(), ui_theme_name(n));
        for (int i = 0; i < UI_N_ROLES * 4; i++) {
            own[i / 4][i % 4] = ui_theme_style((enum ui_role)(i / 4), (enum ui_depth)(i % 4));
        }
        snprintf(file, sizeof file, "%s/assets/themes/%s.ini", root, ui_theme_name(n));
        ck_assert_msg(ui_theme_load(file, &err) == CW_OK, "%s", err.text);
        for (int i = 0; i < UI_N_ROLES * 4; i++) {
            struct ui_style *want = &own[i / 4][i % 4];
            assert_style((enum ui_role)(i / 4), (enum ui_depth)(i % 4), want->fg, want->bg,
                         want->attrs);
        }
    }
    ck_assert_uint_eq(n, 4);
}
END_TEST

START_TEST(none_has_no_colours) {
    ck_assert_int_eq(ui_theme_load("none", NULL), CW_OK);
    for (int i = 0; i < UI_N_ROLES; i++) {
        for (int depth = UI_MONO; depth <= UI_COLORS_RGB; depth++) {
            struct ui_style style = ui_theme_style((enum ui_role)i, (enum ui_depth)depth);
            ck_assert_int_eq(style.fg, -1);
            ck_assert_int_eq(style.bg, -1);
        }
    }
    assert_style(UI_HIT_CURRENT, UI_COLORS_256, -1, -1, UI_REVERSE | UI_BOLD);
}
END_TEST

/* Without colours no theme has any, and what must stand out does by its attributes. */
START_TEST(mono_stands_out) {
    static const enum ui_role roles[] = {UI_ERROR,  UI_CHANGE,   UI_METER_HIGH, UI_SELECTED,
                                         UI_HIT,    UI_HEADING,  UI_LINK,       UI_HIT_CURRENT,
                                         UI_PROB_5, UI_NEW_LINES};
    for (size_t n = 0; ui_theme_name(n) != NULL; n++) {
        ck_assert_int_eq(ui_theme_load(ui_theme_name(n), NULL), CW_OK);
        for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
            struct ui_style style = ui_theme_style(roles[i], UI_MONO);
            ck_assert_int_eq(style.fg, -1);
            ck_assert_uint_ne(style.attrs, 0);
        }
    }
}
END_TEST

START_TEST(depths) {
    write_theme("[roles]\ntitle = #5f87d7 bold\nrule = 244 on #ff0000\ndim = bright-red\n"
                "you = #010101\nreply = default on blue\nerror = #000000\n"
                "[16]\nrule = cyan\n[mono]\ntitle = underline\n");
    struct cw_err err = {0};
    ck_assert_msg(ui_theme_load(path, &err) == CW_OK, "%s", err.text);
    assert_style(UI_TITLE, UI_COLORS_RGB, 0x5f87d7, -1, UI_BOLD);
    assert_style(UI_TITLE, UI_COLORS_256, 68, -1, UI_BOLD);
    assert_style(UI_TITLE, UI_COLORS_16, 12, -1, UI_BOLD);
    assert_style(UI_TITLE, UI_MONO, -1, -1, UI_UNDERLINE);
    assert_style(UI_RULE, UI_COLORS_RGB, 0x808080, 0xff0000, 0);
    assert_style(UI_RULE, UI_COLORS_256, 244, 196, 0);
    assert_style(UI_RULE, UI_COLORS_16, 6, -1, 0);
    assert_style(UI_DIM, UI_COLORS_RGB, 9, -1, 0);
    assert_style(UI_DIM, UI_COLORS_256, 9, -1, 0);
    assert_style(UI_YOU, UI_COLORS_256, 16, -1, 0);
    assert_style(UI_REPLY, UI_COLORS_16, -1, 4, 0);
    assert_style(UI_ERROR, UI_COLORS_RGB, 16, -1, 0);        /* 0 would be the palette's */
    assert_style(UI_CHANGE, UI_COLORS_256, -1, -1, UI_BOLD); /* as in none */
    unlink(path);
}
END_TEST

START_TEST(based_on_another) {
    write_theme("[theme]\nbase = high-contrast\n[roles]\ntitle = red\n");
    ck_assert_int_eq(ui_theme_load(path, NULL), CW_OK);
    assert_style(UI_TITLE, UI_COLORS_256, 1, -1, 0);
    assert_style(UI_YOU, UI_COLORS_256, 14, -1, UI_BOLD);
    unlink(path);
}
END_TEST

static const struct {
    const char *text, *error;
} bad[] = {
    {"[roles]\n\nnothing = red\n", ":3: unknown role 'nothing'"},
    {"[roles]\ntitle = reddish\n", ":2: neither a colour nor an attribute: 'reddish'"},
    {"[roles]\ntitle = #12345\n", "'#12345'"},
    {"[roles]\ntitle = #12345g\n", "'#12345g'"},
    {"[roles]\ntitle = 256\n", "'256'"},
    {"[roles]\ntitle = red on\n", ":2: no colour after 'on'"},
    {"[roles]\ntitle = on bold\n", "'bold'"},
    {"[colours]\ntitle = red\n", ":2: unknown section 'colours'"},
    {"title = red\n", ":1: unknown section ''"},
    {"[theme]\nbase = nowhere\n", ":2: no built-in theme 'nowhere'"},
    {"[theme]\nname = x\n", ":2: unknown key 'name'"},
    {"[roles]\nwhat is this\n", ":2: not 'role = look' or a [section]"},
};

START_TEST(bad_files) {
    struct cw_err err = {0};
    ck_assert_int_eq(ui_theme_load("high-contrast", NULL), CW_OK);
    write_theme(bad[_i].text);
    ck_assert_int_eq(ui_theme_load(path, &err), CW_EFORMAT);
    ck_assert_msg(strstr(err.text, bad[_i].error) != NULL, "%s", err.text);
    ck_assert_ptr_nonnull(strstr(err.text, path));
    ck_assert_str_eq(ui_theme_current(), "high-contrast"); /* stays */
    assert_style(UI_YOU, UI_COLORS_256, 14, -1, UI_BOLD);
    unlink(path);
}
END_TEST

START_TEST(hostile_files) {
    struct cw_err err = {0};
    ck_assert_int_eq(ui_theme_load("no-such-theme", &err), CW_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "high-contrast"));
    ck_assert_int_eq(ui_theme_load("/no/such/file", &err), CW_ENOENT);
    ck_assert_int_eq(ui_theme_load("/", &err), CW_EIO);
    ck_assert_int_eq(ui_theme_load("/dev/zero", &err), CW_EFORMAT);
    uint32_t seed = 1;
    for (int i = 0; i < 300; i++) {
        char text[600];
        for (size_t k = 0; k + 1 < sizeof text; k++) {
            seed = seed * 1664525 + 1013904223;
            text[k] = "[]=\n #onrolestid0123bg\x1b\xff"[(seed >> 16) % 24];
        }
        memcpy(text, "[roles]\n", 8);
        text[sizeof text - 1] = '\0';
        write_theme(text);
        ui_theme_load(path, &err);
        unlink(path);
    }
}
END_TEST

START_TEST(auto_by_ground) {
    setenv("COLORFGBG", "0;15", 1);
    ck_assert_int_eq(ui_theme_load("light", NULL), CW_OK);
    struct ui_style light = ui_theme_style(UI_YOU, UI_COLORS_RGB);
    ck_assert_int_eq(ui_theme_load("auto", NULL), CW_OK);
    assert_style(UI_YOU, UI_COLORS_RGB, light.fg, light.bg, light.attrs);
    setenv("COLORFGBG", "15;default;0", 1);
    ck_assert_int_eq(ui_theme_load("auto", NULL), CW_OK);
    ck_assert_int_ne(ui_theme_style(UI_YOU, UI_COLORS_RGB).fg, light.fg);
    ck_assert_str_eq(ui_theme_current(), "auto");
}
END_TEST

START_TEST(probabilities) {
    static const struct {
        double p;
        enum ui_role role;
    } cases[] = {{1, UI_PROB_0},    {0.9, UI_PROB_0}, {0.89, UI_PROB_1},
                 {0.3, UI_PROB_2},  {0.1, UI_PROB_3}, {0.02, UI_PROB_4},
                 {0.01, UI_PROB_5}, {0, UI_PROB_5},   {-1, UI_PROB_NONE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(ui_theme_prob(cases[i].p), cases[i].role);
    }
    ck_assert_int_eq(ui_theme_prob(__builtin_nan("")), UI_PROB_NONE);
}
END_TEST

/* ---- beside the text ------------------------------------------------------------------------ */

static struct cw_buf out;

static void clear(void) {
    cw_buf_free(&out);
}

static const struct {
    const char *text, *base64;
} vectors[] = {/* RFC 4648 */
               {"", ""},
               {"f", "Zg=="},
               {"fo", "Zm8="},
               {"foo", "Zm9v"},
               {"foob", "Zm9vYg=="},
               {"fooba", "Zm9vYmE="},
               {"foobar", "Zm9vYmFy"}};

START_TEST(copies) {
    char want[128];
    snprintf(want, sizeof want, "\033]52;c;%s\a", vectors[_i].base64);
    ui_osc_copy(&out, UI_MUX_NONE, vectors[_i].text, strlen(vectors[_i].text));
    ck_assert_str_eq(out.data, want);
    clear();
    snprintf(want, sizeof want, "\033Ptmux;\033\033]52;c;%s\a\033\\\033]52;c;%s\a",
             vectors[_i].base64, vectors[_i].base64);
    ui_osc_copy(&out, UI_MUX_TMUX, vectors[_i].text, strlen(vectors[_i].text));
    ck_assert_str_eq(out.data, want);
    clear();
}
END_TEST

START_TEST(copies_any_byte) {
    ui_osc_copy(&out, UI_MUX_NONE, "\xff\x00\xfe\x1b", 4);
    ck_assert_str_eq(out.data, "\033]52;c;/wD+Gw==\a");
    clear();
}
END_TEST

/* What GNU screen unwraps, put together again, is the plain sequence; no piece is too long. */
START_TEST(copies_through_screen) {
    char text[5000];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)('a' + i % 26);
    }
    struct cw_buf plain = {0}, joined = {0};
    ui_osc_copy(&plain, UI_MUX_NONE, text, sizeof text);
    ui_osc_copy(&out, UI_MUX_SCREEN, text, sizeof text);
    for (char *at = out.data; *at != '\0';) {
        ck_assert_int_eq(strncmp(at, "\033P", 2), 0);
        char *end = strstr(at, "\033\\");
        ck_assert_ptr_nonnull(end);
        ck_assert_int_le(end - at - 2, 250);
        cw_buf_add(&joined, at + 2, (size_t)(end - at - 2));
        at = end + 2;
    }
    ck_assert_uint_eq(joined.len, plain.len);
    ck_assert_mem_eq(joined.data, plain.data, plain.len);
    cw_buf_free(&plain);
    cw_buf_free(&joined);
    clear();
}
END_TEST

START_TEST(titles_and_notifications_are_clean) {
    ui_osc_title(&out, "a\033]0;b\a c\n\xc2\x9b"
                       "d\xff\xe2\x80\xae \xc3\xa9");
    ck_assert_str_eq(out.data, "\033]2;a]0;b c d \xc3\xa9\a");
    clear();
    ui_osc_notify(&out, UI_MUX_NONE, true, "4;1;50\033\\x");
    ck_assert_str_eq(out.data, "\a\033]9; 4;1;50\\x\a");
    clear();
    ui_osc_notify(&out, UI_MUX_NONE, false, "text");
    ck_assert_str_eq(out.data, "\a");
    clear();
    char text[1000];
    memset(text, 'x', sizeof text - 1);
    memcpy(text + 190, "\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad", 12);
    text[sizeof text - 1] = '\0';
    ui_osc_title(&out, text); /* cut between characters */
    ck_assert_uint_eq(out.len, 4 + 199 + 1);
    clear();
}
END_TEST

START_TEST(links) {
    static const struct {
        const char *url;
        bool safe;
    } cases[] = {{"http://a", true},
                 {"HTTPS://a.b/c?d#e", true},
                 {"mailto:a@b", true},
                 {"javascript:x", false},
                 {"file:///etc/passwd", false},
                 {"http://", false},
                 {"http://a b", false},
                 {"http://a\033\\", false},
                 {"http://a\a", false},
                 {"http://\xc3\xa9", false},
                 {"", false},
                 {"ftp://a", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(ui_osc_safe_link(cases[i].url, strlen(cases[i].url)) == cases[i].safe, "%s",
                      cases[i].url);
    }
    char url[3000] = "http://";
    memset(url + 7, 'x', sizeof url - 8);
    ck_assert(!ui_osc_safe_link(url, strlen(url)));
    ui_osc_link(&out, "http://a", 7);
    ui_osc_link(&out, NULL, 0);
    ck_assert_str_eq(out.data, "\033]8;id=7;http://a\033\\\033]8;;\033\\");
    clear();
}
END_TEST

START_TEST(environment) {
    ck_assert_int_eq(ui_osc_mux("/tmp/tmux-0/default,1,0", NULL, "tmux-256color"), UI_MUX_TMUX);
    ck_assert_int_eq(ui_osc_mux("", "1.pts", "screen.xterm"), UI_MUX_SCREEN);
    ck_assert_int_eq(ui_osc_mux(NULL, "1.pts", "xterm"), UI_MUX_NONE);
    ck_assert_int_eq(ui_osc_mux(NULL, NULL, "screen"), UI_MUX_NONE);
    ck_assert_int_eq(ui_osc_mux(NULL, NULL, NULL), UI_MUX_NONE);
    static const char *const with[] = {"xterm", "xterm-256color", "tmux-256color", "screen",
                                       "foot",  "vte-256color",   "alacritty",     "rxvt"};
    static const char *const without[] = {"linux", "vt100", "vt220", "dumb", "", "ansi"};
    for (size_t i = 0; i < sizeof with / sizeof with[0]; i++) {
        ck_assert_msg(ui_osc_known(with[i]), "%s", with[i]);
    }
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++) {
        ck_assert_msg(!ui_osc_known(without[i]), "%s", without[i]);
    }
    ck_assert(!ui_osc_known(NULL));
}
END_TEST

int main(void) {
    Suite *s = suite_create("ui theme");
    TCase *c = tcase_create("theme");
    tcase_set_timeout(c, 240);
    tcase_add_test(c, every_role_has_a_name);
    tcase_add_test(c, builtin_is_as_the_file);
    tcase_add_test(c, none_has_no_colours);
    tcase_add_test(c, mono_stands_out);
    tcase_add_test(c, depths);
    tcase_add_test(c, based_on_another);
    tcase_add_loop_test(c, bad_files, 0, (int)(sizeof bad / sizeof bad[0]));
    tcase_add_test(c, hostile_files);
    tcase_add_test(c, auto_by_ground);
    tcase_add_test(c, probabilities);
    suite_add_tcase(s, c);
    c = tcase_create("beside");
    tcase_set_timeout(c, 240);
    tcase_add_loop_test(c, copies, 0, (int)(sizeof vectors / sizeof vectors[0]));
    tcase_add_test(c, copies_any_byte);
    tcase_add_test(c, copies_through_screen);
    tcase_add_test(c, titles_and_notifications_are_clean);
    tcase_add_test(c, links);
    tcase_add_test(c, environment);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
