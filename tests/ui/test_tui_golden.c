/* SPDX-License-Identifier: MIT
 *
 * What the screen looks like: replies of several kinds at several sizes, the themes, and that the
 * way to a screen does not matter. See golden.h.
 */
#include <check.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ui/golden.h"

static struct tui t;

static void setup(void) {
    tui_init(&t);
}

static const struct {
    const char *name, *text;
} scenes[] = {
    {"chat", "# Three colours\n\nHere are *three* of them, with **reasons**:\n\n"
             "1. Blue, because the sky is `never` the same twice.\n"
             "2. Green, since [grass](https://example.org/grass) is.\n"
             "   - also moss\n\n"
             "> Red was asked for, ~~too~~ and is not\n> among them.\n\n"
             "- [x] done\n- [ ] not done\n\nThat is all."},
    {"code", "A function:\n\n```c\n#include <stdio.h>\n\n/* says it */\n"
             "int main(void) {\n\tputs(\"a rather long line of text that must be wrapped in a "
             "narrow box\");\n\treturn 42;\n}\n```\n\nand a shell line:\n\n"
             "    $ cc main.c && ./a.out\n\nThat is all."},
    {"table", "| Name | Width | What it is for |\n|:-----|------:|:--------------:|\n"
              "| alpha | 1 | the first one |\n| beta | 1200 | a much longer description of what it "
              "is for |\n| *gamma* | 7 | `code` |\n\nThat is all."},
    {"cjk",
     "## \xe6\xa0\x87\xe9\xa2\x98\n\n"
     "\xe5\xa4\xa9\xe7\xa9\xba\xe6\x98\xaf\xe8\x93\x9d\xe8\x89\xb2\xe7\x9a\x84\xef\xbc\x8c"
     "\xe8\x8d\x89\xe5\x9c\xb0\xe6\x98\xaf\xe7\xbb\xbf\xe8\x89\xb2\xe7\x9a\x84\xe3\x80\x82"
     "\xe5\xa4\xa9\xe7\xa9\xba\xe6\x98\xaf\xe8\x93\x9d\xe8\x89\xb2\xe7\x9a\x84\xef\xbc\x8c"
     "\xe8\x8d\x89\xe5\x9c\xb0\xe6\x98\xaf\xe7\xbb\xbf\xe8\x89\xb2\xe7\x9a\x84\xe3\x80\x82\n\n"
     "- **\xe7\xac\xac\xe4\xb8\x80** \xed\x95\x9c\xea\xb5\xad\xec\x96\xb4\n"
     "- `\xe3\x81\x8b\xe3\x81\xaa` ab\n\nThat is all."},
    {"rtl", "# \xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d\n\n"
            "\xd7\x94\xd7\xa9\xd7\x9e\xd7\x99\xd7\x9d **\xd7\x9b\xd7\x97\xd7\x95\xd7\x9c\xd7\x99"
            "\xd7\x9d** abc 123 \xd7\x95\xd7\x94\xd7\x93\xd7\xa9\xd7\x90 \xd7\x99\xd7\xa8\xd7\x95"
            "\xd7\xa7\n\n\xd8\xa7\xd9\x84\xd8\xb3\xd9\x85\xd8\xa7\xd8\xa1 "
            "\xd8\xb2\xd8\xb1\xd9\x82\xd8\xa7\xd8\xa1 (x)\n\nThat is all."},
};
enum { N_SCENES = sizeof scenes / sizeof scenes[0] };
/* The high ones show all of what the low ones show the end of. */
static const int sizes[][2] = {{24, 80}, {12, 40}, {43, 132}, {5, 20}, {40, 40}, {60, 20}};
enum { N_SIZES = sizeof sizes / sizeof sizes[0] };

/* The reply a few bytes a token, so that it is seen half done on its way. */
static void model_of(const char *text) {
    enum { PIECE = 7 };
    const char *pieces[256];
    char *copies = cw_malloc(2 * strlen(text) + 2);
    size_t n = 0;
    char *to = copies;
    for (size_t at = 0, len = strlen(text); at < len;) {
        size_t k = len - at < PIECE ? len - at : PIECE;
        ck_assert_uint_lt(n, 255);
        pieces[n++] = to;
        memcpy(to, text + at, k);
        to[k] = '\0';
        to += k + 1;
        at += k;
    }
    pieces[n] = NULL;
    tui_model_pieces(&t, pieces);
    free(copies);
}

/* The reply is whole and nothing moves any more. */
static void rest(void) {
    ck_assert(pty_wait_text(&t.pty, "That is all."));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_rest(&t);
}

static void show(const char *text) {
    model_of(text);
    tui_start_idle(&t);
    pty_type(&t.pty, "show me\r");
    rest();
}

START_TEST(scene) {
    t.rows = sizes[_i % N_SIZES][0];
    t.cols = sizes[_i % N_SIZES][1];
    show(scenes[_i / N_SIZES].text);
    golden_text(&t, scenes[_i / N_SIZES].name);
    tui_finish(&t);
}
END_TEST

static const char mixed[] =
    "# Head\n\nSome **bold**, *slanted*, ~~struck~~ text with `code` and a "
    "[link](https://example.org).\n\n> quoted\n\n1. item\n\n```c\nint x = 42; /* why */\n```\n\n"
    "```diff\n+new\n-old\n```\n\na|b\n-|-\n1|2\n\nThat is all.";

static const struct look {
    const char *name, *theme, *term, *env;
} looks[] = {
    {"theme-dark", "dark", NULL, NULL},
    {"theme-light", "light", NULL, NULL},
    {"theme-high-contrast", "high-contrast", NULL, NULL},
    {"theme-none", "none", NULL, NULL},
    {"theme-dark-8-colours", "dark", "xterm", NULL},
    {"theme-no-color", "dark", NULL, "NO_COLOR=1"},
};

static void start_themed(const struct look *look) {
    t.term = look->term;
    t.more_env[0] = look->env;
    t.more_args[0] = "--theme";
    t.more_args[1] = look->theme;
    t.rows = 34;
    show(mixed);
}

START_TEST(theme) {
    start_themed(&looks[_i]);
    golden_looks(&t, looks[_i].name);
    tui_finish(&t);
}
END_TEST

/* The roles of what is laid over a reply: hits and the current one, an error, a changed setting, a
 * picked block, the lens with its chosen line, keys of the help. */
START_TEST(theme_panels) {
    static const struct {
        const char *keys, *shows, *name;
    } panels[] = {
        {"/nonesuch\r\033[17~\033ORt", "search: t", "search"}, /* F6, F3 */
        {"\033[1;2Dc", "pick:", "pick"},
        {"\033OS\033[C", "raw", "lens"},
        {"\033OP", "send;", "help"},
    };
    char name[64];
    start_themed(&looks[_i]);
    for (size_t i = 0; i < sizeof panels / sizeof panels[0]; i++) {
        pty_type(&t.pty, panels[i].keys);
        ck_assert(pty_wait_text(&t.pty, panels[i].shows));
        tui_rest(&t);
        snprintf(name, sizeof name, "%s-%s", looks[_i].name, panels[i].name);
        golden_looks(&t, name);
        pty_type(&t.pty, "\033");
        ck_assert(pty_wait_text(&t.pty, " >"));
        tui_rest(&t);
    }
    tui_finish(&t);
}
END_TEST

/* Every file of assets/themes is among them. */
START_TEST(every_theme_is_shown) {
    char pattern[512];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/assets/themes/*.ini", getenv("CHINWAG_SOURCE_ROOT"));
    ck_assert_int_eq(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const char *name = strrchr(found.gl_pathv[i], '/') + 1;
        size_t n = strcspn(name, ".");
        bool shown = false;
        for (size_t k = 0; k < sizeof looks / sizeof looks[0]; k++) {
            shown = shown || (strlen(looks[k].theme) == n && memcmp(looks[k].theme, name, n) == 0);
        }
        ck_assert_msg(shown, "no golden screen of the theme %s", name);
    }
    globfree(&found);
    tui_end(&t);
}
END_TEST

/* A theme can be changed while the chat runs, also to a file; a bad one is told and changes
 * nothing. */
START_TEST(theme_changes) {
    show("# Head\n\nThat is all.");
    size_t from = t.pty.raw.len;
    pty_type(&t.pty, "/set theme light\r");
    ck_assert(pty_wait_raw(&t.pty, from, "\033[38;5;18m")); /* the head, #00008a */
    char path[128], command[256];
    snprintf(path, sizeof path, "%s/own.ini", t.dir);
    FILE *f = fopen(path, "w");
    fputs("[theme]\nbase = none\n[roles]\nheading-1 = #ff00ff\n", f);
    fclose(f);
    from = t.pty.raw.len;
    snprintf(command, sizeof command, "/set theme %s\r", path);
    pty_type(&t.pty, command);
    ck_assert(pty_wait_raw(&t.pty, from, "\033[38;5;201m"));
    pty_type(&t.pty, "/set theme nonesuch\r");
    ck_assert(pty_wait_text(&t.pty, "theme nonesuch: there are auto, dark, light"));
    ck_assert(pty_wait_text(&t.pty, "Head"));
    tui_finish(&t);
}
END_TEST

START_TEST(markdown_off_and_on) {
    show("# Head\n\n**That is all.**");
    ck_assert(pty_wait_text(&t.pty, "   Head"));
    pty_type(&t.pty, "/set markdown off\r");
    ck_assert(pty_wait_text(&t.pty, "   # Head"));
    ck_assert(pty_wait_text(&t.pty, "   **That is all.**"));
    pty_type(&t.pty, "/set markdown on\r");
    ck_assert(pty_wait_text(&t.pty, "   Head"));
    ck_assert(pty_wait_no_text(&t.pty, "**"));
    tui_finish(&t);
}
END_TEST

/* Links are read from what was sent, as screens do not show them. */
START_TEST(links_are_sent) {
    static const char text[] = "a [link](https://example.org/x?y=1) and\n"
                               "[bad](javascript:alert) https://bare.org\n\nThat is all.";
    t.term = _i == 0 ? NULL : "linux";
    show(text);
    if (_i == 0) {
        ck_assert(pty_wait_raw(&t.pty, 0, ";https://example.org/x?y=1\033\\link\033]8;;\033\\"));
        ck_assert(pty_wait_raw(&t.pty, 0, ";https://bare.org\033\\https://bare.org\033]8;;\033\\"));
    } else {
        ck_assert(!pty_raw_has(&t.pty, 0, "\033]"));
    }
    ck_assert(!pty_raw_has(&t.pty, 0, "javascript"));
    ck_assert(pty_wait_text(&t.pty, "   a link and"));
    pty_type(&t.pty, "/exit\r");
    ck_assert(pty_wait_exit(&t.pty));
    tui_end(&t);
}
END_TEST

/* 24-bit colours where COLORTERM promises them and the terminal has a description with them. */
START_TEST(true_colour) {
    char path[128], command[512];
    snprintf(path, sizeof path, "%s/direct.ti", t.dir);
    FILE *f = fopen(path, "w");
    fputs("xterm-direct|test,\n\tRGB, ccc@, colors#0x1000000, pairs#0x10000, initc@, oc@, "
          "op=\\E[39;49m,"
          " setab=\\E[%?%p1%{8}%<%t4%p1%d%e48;2;%p1%{65536}%/%d;%p1%{256}%/%{255}%&%d;"
          "%p1%{255}%&%d%;m, setaf=\\E[%?%p1%{8}%<%t3%p1%d%e38;2;%p1%{65536}%/%d;"
          "%p1%{256}%/%{255}%&%d;%p1%{255}%&%d%;m, setb@, setf@, use=xterm-256color,\n",
          f);
    fclose(f);
    snprintf(command, sizeof command, "tic -x -o %s/terminfo %s 2>/dev/null", t.dir, path);
    if (system(command) != 0) {
        printf("skipped: tic cannot compile a description here\n");
        tui_end(&t);
        return;
    }
    char dirs[160];
    snprintf(dirs, sizeof dirs, "TERMINFO=%s/terminfo", t.dir);
    t.more_env[0] = "COLORTERM=truecolor";
    t.more_env[1] = _i == 0 ? dirs : NULL;
    t.more_args[0] = "--theme";
    t.more_args[1] = "dark";
    show("# Head\n\nThat is all.");
    if (_i == 0) {
        ck_assert(pty_raw_has(&t.pty, 0, "\033[38;2;95;135;215m"));
        ck_assert(!pty_raw_has(&t.pty, 0, "38;5;"));
    } else {
        ck_assert(pty_raw_has(&t.pty, 0, "\033[38;5;68m"));
    }
    tui_finish(&t);
}
END_TEST

/* ---- the way to a screen does not matter ---------------------------------------------------- */

START_TEST(storm_ends_as_a_fresh_start) {
    uint32_t seed = 77 + (uint32_t)_i;
    const char *text = scenes[_i].text;
    show(text);
    char *want = golden_screen(&t);
    pty_type(&t.pty, "/exit\r");
    ck_assert(pty_wait_exit(&t.pty));
    pty_end(&t.pty);

    tui_start_idle(&t);
    pty_type(&t.pty, "show me\r");
    for (int i = 0; i < 500; i++) {
        seed = seed * 1664525 + 1013904223;
        /* at least two columns: libvterm has no place for a wide character in one */
        pty_resize(&t.pty, 1 + (int)((seed >> 8) % 60), 2 + (int)((seed >> 18) % 200));
        pty_pump(&t.pty, 2);
    }
    pty_resize(&t.pty, 24, 80);
    rest();
    char *got = golden_screen(&t);
    ck_assert_str_eq(got, want);
    free(got);
    free(want);
    tui_finish(&t);
}
END_TEST

/* Joined emoji in a box: its borders, the other lines and the bars are right, whatever the terminal
 * makes of the emoji; its text is sent whole. */
START_TEST(emoji_in_a_box) {
#define FAMILY "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7"
    show("```\nplain line\n" FAMILY " x\nother line\n```\n\n**" FAMILY "** y\n\nThat is all.");
    ck_assert(pty_raw_has(&t.pty, 0, FAMILY));
    int row = pty_find(&t.pty, "plain line");
    ck_assert_int_ge(row, 0);
    char *above = pty_row(&t.pty, row - 1), *line = pty_row(&t.pty, row),
         *below = pty_row(&t.pty, row + 2), *edge = pty_row(&t.pty, row + 3);
    ck_assert_int_eq(strncmp(above, "   ┌────", 12), 0);
    ck_assert_int_eq(strcmp(line + strlen(line) - 3, "│"), 0);
    ck_assert_int_eq(strncmp(below, "   │ other line", 17), 0);
    ck_assert_int_eq(strcmp(below + strlen(below) - 3, "│"), 0);
    ck_assert_int_eq(strncmp(edge, "   └────", 12), 0);
    for (int i = row; i <= row + 2; i++) { /* the right border stands in one column in all lines */
        char *text = pty_row(&t.pty, i);
        ck_assert_msg(strcmp(text + strlen(text) - 3, "│") == 0, "%s", text);
        free(text);
    }
    free(above);
    free(line);
    free(below);
    free(edge);
    tui_finish(&t);
}
END_TEST

/* ---- every way out --------------------------------------------------------------------------- */

static size_t last_of(const char *bytes) {
    size_t n = strlen(bytes), found = 0;
    for (size_t at = 0; at + n <= t.pty.raw.len; at++) {
        if (memcmp(t.pty.raw.data + at, bytes, n) == 0) {
            found = at + 1;
        }
    }
    return found;
}

/* The mouse and the title, too, are given back by every way out. */
static const char *const ways[] = {"/exit", "Ctrl+D", "SIGTERM", "SIGHUP", "abort"};

START_TEST(gives_mouse_and_title_back) {
    static const char *const args[] = {"--mouse", "--title"};
    memcpy(t.more_args, args, sizeof args);
    show("That is all.");
    ck_assert(pty_wait_raw(&t.pty, 0, "\033[?1000h\033[?1006h"));
    ck_assert(pty_wait_raw(&t.pty, 0, "\033[22;2t"));
    ck_assert(pty_wait_raw(&t.pty, 0, "\033]2;"));
    switch (_i) {
    case 0:
        pty_type(&t.pty, "/exit\r");
        break;
    case 1:
        pty_type(&t.pty, "\004");
        break;
    case 2:
        pty_signal(&t.pty, SIGTERM);
        break;
    case 3:
        pty_signal(&t.pty, SIGHUP);
        break;
    case 4:
        pty_signal(&t.pty, SIGABRT);
        break;
    case 5: { /* nobody stops us here, so they are taken again at once */
        size_t from = t.pty.raw.len;
        pty_type(&t.pty, "\032");
        ck_assert(pty_wait_raw(&t.pty, from, "\033[?1006l\033[?1000l"));
        ck_assert(pty_wait_raw(&t.pty, from, "\033[23;2t"));
        ck_assert(pty_wait_raw(&t.pty, from, "\033[?1000h\033[?1006h"));
        ck_assert(pty_wait_raw(&t.pty, from, "\033[22;2t\033]2;"));
        tui_finish(&t);
        return;
    }
    }
    ck_assert(pty_wait_exit(&t.pty));
    tui_assert_restored(&t);
    ck_assert_msg(last_of("\033[?1006l\033[?1000l") > last_of("\033[?1000h\033[?1006h"), "%s",
                  ways[_i]);
    ck_assert_msg(last_of("\033[23;2t") > last_of("\033]2;"), "%s", ways[_i]);
    tui_end(&t);
}
END_TEST

int main(void) {
    Suite *s = suite_create("tui golden");
    TCase *c = tcase_create("golden");
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_loop_test(c, scene, 0, N_SCENES * N_SIZES);
    tcase_add_loop_test(c, theme, 0, (int)(sizeof looks / sizeof looks[0]));
    tcase_add_loop_test(c, theme_panels, 0, (int)(sizeof looks / sizeof looks[0]));
    tcase_add_test(c, every_theme_is_shown);
    tcase_add_test(c, theme_changes);
    tcase_add_test(c, markdown_off_and_on);
    tcase_add_loop_test(c, links_are_sent, 0, 2);
    tcase_add_loop_test(c, true_colour, 0, 2);
    tcase_add_loop_test(c, storm_ends_as_a_fresh_start, 0, N_SCENES);
    tcase_add_test(c, emoji_in_a_box);
    tcase_add_loop_test(c, gives_mouse_and_title_back, 0, 6);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
