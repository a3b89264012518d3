/* SPDX-License-Identifier: MIT
 *
 * Every command of the table does what its row says, in the real program on a terminal: the help
 * lists them, and one without a row here fails the suite. Tab completes their names and values.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ui/tui.h"

#define ESC "\033"

static struct tui t;

static void setup(void) {
    tui_init(&t);
}

/* In this order, in one conversation that begins with a question and its reply. */
static const struct {
    const char *names; /* every one of them */
    const char *typed, *shows;
    const char *back, *gone; /* typed to close what it opened */
} commands[] = {
    {"help ?", "/help\r", "arrows scroll", "q", "arrows scroll"},
    {"help ?", "/?\r", "arrows scroll", "q", "arrows scroll"},
    {"set", "/set temp 0.5\r", "T 0.50", NULL, NULL},
    {"set", "/set temperature=0.6\r", "T 0.60", NULL, NULL},
    {"set", "/set parameter temp 0.8\r", "T 0.80", NULL, NULL},
    {"set", "/set think\r", "think on (live", NULL, NULL},
    {"set", "/set nothink\r", "think off (live", NULL, NULL},
    {"set", "/set think auto\r", "think auto (live", NULL, NULL},
    {"set", "/set\r", "(built-in", "q", "(built-in"},
    {"show", "/show info\r", "architecture", "q", "architecture"},
    {"show", "/show top-p\r", "top-p 0.95 (built-in", NULL, NULL},
    {"system", "/system be brief\r", "system be brief", NULL, NULL},
    {"stats", "/stats\r", "time to first token", "q", "time to first"},
    {"preset", "/preset creative\r", "T 1.00", NULL, NULL},
    {"preset", "/preset nothing\r", "the presets are: extract, chat, creative", NULL, NULL},
    {"copy", "/copy\r", "copied the last reply: 10 bytes", NULL, NULL},
    {"copy", "/copy 1\r", "copied message 1: 8 bytes", NULL, NULL},
    {"copy", "/copy 9\r", "there is no message 9", NULL, NULL},
    {"copy", "/copy code\r", "there is no such code block", NULL, NULL},
    {"save", "/save a.md\r", "saved 0", NULL, NULL},
    {"save", "/save a.md\r", "/save over a.md replaces it", NULL, NULL},
    {"read", "/read nothing.txt\r", "nothing.txt is not attached: No such file", NULL, NULL},
    {"glob", "/glob *.nothing\r", "no file matches", NULL, NULL},
    {"stop", "/stop\r", "no reply is under way", NULL, NULL},
    {"why", "/why 2\r", " Message 2", "q", NULL},
    {"tree", "/tree\r", "question", ESC, NULL},
    {"regen retry", "/regen\r", "branch 2/2", NULL, NULL},
    {"regen retry", "/retry\r", "branch 3/3", NULL, NULL},
    {"undo", "/undo\r", "branch 2/3", NULL, NULL},
    {"redo", "/redo\r", "branch 3/3", NULL, NULL},
    {"continue", "/continue\r", "reply one", NULL, NULL},
    {"edit", "/edit 1\r", "editing message 1", "\003", "editing message"},
    {"restore", "/restore\r", "nothing has left the context", NULL, NULL},
    {"replay", "/replay 2\r", "message 2", NULL, NULL},
    {"persona", "/persona nobody\r", "there is no persona of that name", NULL, NULL},
    {"prompt", "/prompt nothing\r", "prompt", NULL, NULL},
    {"fork", "/fork\r", "a copy of the conversation", NULL, NULL},
    {"export", "/export over html talk\r", "exported ", NULL, NULL},
    {"private", "/private on\r", "private", NULL, NULL},
    {"private", "/private off\r", "idle", NULL, NULL},
    {"list", "/list\r", "question", ESC, NULL},
    {"rename", "/rename A better title\r", "A better title", NULL, NULL},
    {"load", "/load nothing-like-that\r", "nothing-like-that", NULL, NULL},
    {"delete", "/delete\r", "/undelete", NULL, NULL},
    {"undelete", "/undelete\r", "idle", NULL, NULL},
    {"new clear", "/new\r", "idle", NULL, NULL},
    {"new clear", "/clear\r", "idle", NULL, NULL},
    {"exit bye quit", NULL, NULL, NULL, NULL}, /* leaves */
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static bool named(const char *name, size_t n) {
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (tui_has_word(commands[i].names, name, n)) {
            return true;
        }
    }
    return false;
}

START_TEST(every_command_has_a_test) {
    tui_model_text(&t, "reply one\n");
    t.rows = 240; /* all of the help at once */
    t.cols = 160;
    tui_start_idle(&t);
    pty_type(&t.pty, "/help\r");
    ck_assert(pty_wait_text(&t.pty, "/exit /bye /quit"));
    ck_assert(pty_wait_text(&t.pty, "goes on with the next"));
    char *screen = pty_screen(&t.pty);
    int n = 0;
    for (char *line = strtok(screen, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        line += strspn(line, " ");
        while (line[0] == '/') { /* "/new /clear", then its arguments or the sentence */
            size_t length = strcspn(line + 1, " ");
            ck_assert_msg(named(line + 1, length), "no test of /%.*s", (int)length, line + 1);
            n++;
            line += 1 + length;
            line += line[0] == ' ' && line[1] == '/';
        }
    }
    free(screen);
    ck_assert_int_gt(n, 20);
    pty_type(&t.pty, "q");
    ck_assert(pty_wait_no_text(&t.pty, "/exit /bye"));
    tui_finish(&t);
}
END_TEST

/* README's table of commands names those, and no other. */
START_TEST(readme_names_every_command) {
    char path[512], text[4096] = "";
    snprintf(path, sizeof path, "%s/README.md", getenv("CHINWAG_SOURCE_ROOT"));
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s", path);
    char *line = NULL;
    size_t cap = 0;
    bool inside = false;
    int n = 0;
    while (getline(&line, &cap, f) > 0) {
        inside = line[0] == '#' ? strcmp(line, "## Commands\n") == 0 : inside;
        if (!inside || strncmp(line, "| /", 3) != 0) {
            continue;
        }
        line[2 + strcspn(line + 2, "|")] = '\0';
        for (char *at = line; (at = strchr(at, '/')) != NULL; n++) {
            size_t length = strcspn(++at, " ,\n");
            ck_assert_msg(named(at, length), "no test of README's /%.*s", (int)length, at);
            snprintf(text + strlen(text), sizeof text - strlen(text), " %.*s ", (int)length, at);
        }
    }
    free(line);
    fclose(f);
    ck_assert_int_gt(n, 30);
    for (size_t i = 0; i < N_COMMANDS; i++) {
        char names[64];
        snprintf(names, sizeof names, "%s", commands[i].names);
        for (char *name = strtok(names, " "); name != NULL; name = strtok(NULL, " ")) {
            char word[64];
            snprintf(word, sizeof word, " %s ", name);
            ck_assert_msg(strstr(text, word) != NULL, "README does not name /%s", name);
        }
    }
}
END_TEST

START_TEST(every_command) {
    tui_model_text(&t, "reply one\n");
    t.cols = 120;
    tui_start_idle(&t);
    pty_type(&t.pty, "question\r");
    ck_assert(pty_wait_text(&t.pty, "   reply one"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (commands[i].typed == NULL) {
            continue;
        }
        pty_type(&t.pty, commands[i].typed);
        ck_assert_msg(pty_wait_text(&t.pty, commands[i].shows), "%s", commands[i].typed);
        do { /* a reply that was asked for must end before the next */
        } while (pty_pump(&t.pty, 200));
        ck_assert(pty_wait_text(&t.pty, "idle"));
        if (commands[i].back != NULL) {
            pty_type(&t.pty, commands[i].back);
            if (commands[i].gone != NULL) {
                ck_assert(pty_wait_no_text(&t.pty, commands[i].gone));
            } else {
                while (pty_pump(&t.pty, 200)) {
                }
            }
        }
    }
    tui_finish(&t);
}
END_TEST

START_TEST(leaves) {
    static const char *const ways[] = {"/exit\r", "/bye\r", "/quit\r"};
    tui_model_text(&t, "ok");
    tui_start_idle(&t);
    pty_type(&t.pty, ways[_i]);
    ck_assert(pty_wait_exit(&t.pty));
    tui_assert_restored(&t);
    tui_end(&t);
}
END_TEST

START_TEST(tab_completes) {
    static const char *const cases[][2] = {
        {"/pres\t", " > /preset "},
        {"/preset cr\t", " > /preset creative"},
        {"/set mark\t", "/set markdown "},
        {"/set markdown of\t", "/set markdown off"},
        {"/set kv", "/set kv"},
        {"/copy c\t", " > /copy code"},
        {"/read notes-\t", "/read notes-of-today.txt"},
        {"/read two\t", "/read two words and more.txt"},
        {"/read two words a\t", "/read two words and more.txt"},
        {"/save over two w\t", "/save over two words and more.txt"},
        {"/read a f\tin\t", "/read a folder/inner file.txt"},
        {"look at two wo\t.", " > look at two words and more.txt ."},
    };
    tui_model_text(&t, "ok");
    tui_write_text(&t, "notes-of-today.txt", "x");
    tui_write_text(&t, "two words and more.txt", "y");
    tui_write_text(&t, "a folder/inner file.txt", "z");
    tui_start_idle(&t);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        pty_type(&t.pty, cases[i][0]);
        ck_assert_msg(pty_wait_text(&t.pty, cases[i][1]), "%s", cases[i][0]);
        pty_type(&t.pty, "\003");
        ck_assert(pty_wait_no_text(&t.pty, cases[i][1]));
    }
    tui_finish(&t);
}
END_TEST

static void expect_file(const char *path, const char *want) {
    char got[512] = "";
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    got[fread(got, 1, sizeof got - 1, f)] = '\0';
    fclose(f);
    ck_assert_str_eq(got, want);
}

/* A file of the conversation; one that is there is not touched unless that is said. */
START_TEST(saves) {
    char path[512];
    tui_model_text(&t, "fine");
    tui_start_idle(&t);
    pty_type(&t.pty, "/save talk.md\r");
    ck_assert(pty_wait_text(&t.pty, "nothing to save"));
    pty_type(&t.pty, "hello\r");
    ck_assert(pty_wait_text(&t.pty, "   fine"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "/save talk.md\r");
    ck_assert(pty_wait_text(&t.pty, "saved "));
    snprintf(path, sizeof path, "%s/talk.md", t.dir);
    expect_file(path, "## You\n\nhello\n\n## Reply\n\nfine\n\n");
    pty_type(&t.pty, "/save reply talk.md\r");
    ck_assert(pty_wait_text(&t.pty, "/save over talk.md replaces it"));
    expect_file(path, "## You\n\nhello\n\n## Reply\n\nfine\n\n");
    pty_type(&t.pty, "/save over reply talk.md\r");
    ck_assert(pty_wait_text(&t.pty, "saved "));
    expect_file(path, "fine");
    tui_finish(&t);
}
END_TEST

int main(void) {
    Suite *s = suite_create("tui commands");
    TCase *c = tcase_create("commands");
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, saves);
    tcase_add_test(c, every_command_has_a_test);
    tcase_add_test(c, readme_names_every_command);
    tcase_add_test(c, every_command);
    tcase_add_loop_test(c, leaves, 0, 3);
    tcase_add_test(c, tab_completes);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
