/* SPDX-License-Identifier: MIT
 *
 * The manual page and the completion for bash: nothing that a table holds is missing, the roff is
 * sound, and bash really completes.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "app/options.h"
#include "driver.h"
#include "tests/support/mkgguf.h"
#include "ui/keymap.h"

static struct driver d;

static void teardown(void) {
    driver_free(&d);
}

/* What a shell command prints, without the last newline; its status must be 0 unless `any`. */
static char *output_of(const char *command, bool any) {
    struct cw_buf out = {0};
    char piece[4096];
    size_t n;
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    while ((n = fread(piece, 1, sizeof piece, pipe)) > 0) {
        cw_buf_add(&out, piece, n);
    }
    int status = pclose(pipe);
    ck_assert_msg(any || (WIFEXITED(status) && WEXITSTATUS(status) == 0), "%s", command);
    return cw_buf_take(&out);
}

static bool has_program(const char *name) {
    char command[64];
    snprintf(command, sizeof command, "command -v %s >/dev/null 2>&1", name);
    return system(command) == 0;
}

/* ---- the manual page ------------------------------------------------------------------------ */

/* Roff without its escapes: what a reader sees, more or less. */
static char *plain(const char *roff) {
    struct cw_buf out = {0};
    for (const char *p = roff; *p; p++) {
        if (*p != '\\') {
            cw_buf_putc(&out, *p);
        } else if (p[1] == 'f') {
            p += 2;
        } else if (p[1] == '-') {
            cw_buf_putc(&out, *++p);
        } else if (p[1] == '(') {
            p += 3;
        } else if (p[1] != '\0') {
            p++;
        }
    }
    return cw_buf_take(&out);
}

static char *man_page(void) {
    driver_run(&d, "", "man", NULL);
    driver_expect_ok(&d);
    return plain(d.out_text.data);
}

static void expect(const char *page, const char *text) {
    ck_assert_msg(strstr(page, text) != NULL, "the manual lacks: %s", text);
}

START_TEST(man_has_every_option_and_command) {
    char *page = man_page();
    char text[128];
    for (size_t i = 0; i < app_n_options; i++) {
        const struct app_option *o = &app_options[i];
        snprintf(text, sizeof text, "--%s%s",
                 o->kind == APP_BOOL && strcmp(o->builtin, "on") == 0 ? "[no-]" : "", o->name);
        expect(page, text);
        snprintf(text, sizeof text, "%.60s", o->help);
        text[strcspn(text, "`'^~\\")] = '\0'; /* written as escapes */
        expect(page, text);
    }
    driver_free(&d);
    driver_run(&d, "", "--help", NULL);
    driver_expect_ok(&d);
    /* "  name   summary" between the first heading and the empty line behind. */
    const char *p = strstr(d.out_text.data, "\ncommands");
    ck_assert_ptr_nonnull(p);
    size_t n = 0;
    for (p = strchr(p + 1, '\n') + 1; *p == ' '; p = strchr(p, '\n') + 1) {
        if (p[2] != ' ') {
            snprintf(text, sizeof text, ".SS \"chinwag %.*s\"", (int)strcspn(p + 2, " \n"), p + 2);
            expect(page, text);
            n++;
        }
    }
    ck_assert_uint_ge(n, 9);
    free(page);
}
END_TEST

START_TEST(man_has_every_key) {
    char *page = man_page();
    for (int action = UI_ACT_NONE + 1; action < UI_N_ACTIONS; action++) {
        char keys[200];
        char text[260];
        ui_keymap_keys((enum ui_action)action, keys, sizeof keys);
        if (*keys) {
            snprintf(text, sizeof text, "%s (%s)\n", keys, ui_action_name((enum ui_action)action));
            expect(page, text);
        }
    }
    free(page);
}
END_TEST

/* The rows of the table in app/commands.c, read from the source: the first string of each. */
START_TEST(man_has_every_slash_command) {
    char *page = man_page();
    char path[512];
    char line[512];
    size_t n = 0;
    bool inside = false;
    snprintf(path, sizeof path, "%s/app/commands.c", getenv("CHINWAG_SOURCE_ROOT"));
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        if (strstr(line, "struct app_command commands[]")) {
            inside = true;
        } else if (strncmp(line, "};", 2) == 0) {
            inside = false;
        } else if (inside && strncmp(line, "    {\"", 6) == 0) {
            char text[128];
            snprintf(text, sizeof text, "/%.*s", (int)strcspn(line + 6, " \""), line + 6);
            expect(page, text);
            n++;
        }
    }
    fclose(f);
    ck_assert_uint_ge(n, 10);
    free(page);
}
END_TEST

START_TEST(man_is_sound_roff) {
    const char *path = tmp_path("chinwag.1");
    char command[600];
    driver_run(&d, "", "man", NULL);
    driver_expect_ok(&d);
    tmp_write(path, d.out_text.data, d.out_text.len);
    /* A line that begins with a dot is a request that is known. */
    for (const char *p = d.out_text.data; *p; p = strchr(p, '\n') + 1) {
        ck_assert_msg(*p != '\'', "%.60s", p);
        if (*p == '.') {
            static const char known[] = " TH SH SS TP PP br nh ad ";
            char name[8];
            snprintf(name, sizeof name, " %.*s ", (int)strcspn(p + 1, " \n"), p + 1);
            ck_assert_msg(strstr(known, name) != NULL, "%.60s", p);
        }
    }
    static const char *const checks[][2] = {
        {"groff", "groff -ww -man -Tutf8 '%s' 2>&1 >/dev/null"},
        {"mandoc", "mandoc -Tlint -Wwarning '%s' 2>&1 | grep -v 'missing date'"},
    };
    for (size_t i = 0; i < 2; i++) {
        if (!has_program(checks[i][0])) {
            printf("skipped: no %s on this machine\n", checks[i][0]);
            continue;
        }
        snprintf(command, sizeof command, checks[i][1], path);
        char *said = output_of(command, true);
        ck_assert_str_eq(said, "");
        free(said);
    }
}
END_TEST

/* ---- completion ----------------------------------------------------------------------------- */

static const struct {
    const char *words; /* of the line, as a bash array */
    int at;            /* which is completed */
    const char
        *gives; /* all that is offered, a blank behind each; or with a leading '*': among it */
} cases[] = {
    {"chinwag --is", 1, "--isa "},
    {"chinwag --isa av", 2, "avx2 avxvnni avx512 "},
    {"chinwag --isa = avx5", 3, "avx512 "},
    {"chinwag --isa =", 2, "*scalar "},
    {"chinwag --kv ''", 2, "f16 q8_0 "},
    {"chinwag perp", 1, "perplexity "},
    {"chinwag ''", 1, "*bench "},
    {"chinwag ''", 1, "*--top-p "},
    {"chinwag bench --nai", 2, "--naive "},
    {"chinwag bench --isa sc", 3, "scalar "},
    {"chinwag bench --temp", 2, ""}, /* no option of bench */
    {"chinwag logits --to", 2, "--tokens --top "},
    {"chinwag --no-col", 1, "--no-color "},
    {"chinwag -n ''", 2, ""}, /* a number */
    {"chinwag -m Tin", 2, "TinyModel "},
    {"chinwag completion ''", 2, "*bash "},
    {"chinwag info x", 2, "x.gguf "},
    {"chinwag -f x", 2, "x.gguf "},
};

START_TEST(bash_completes) {
    if (!has_program("bash")) {
        printf("skipped: no bash on this machine\n");
        return;
    }
    char home[300];
    snprintf(home, sizeof home, "%s", driver_home());
    driver_run(&d, "", "completion", "bash", NULL);
    driver_expect_ok(&d);
    char script[300];
    snprintf(script, sizeof script, "%s", tmp_path("chinwag.bash"));
    tmp_write(script, d.out_text.data, d.out_text.len);
    struct cw_buf command = {0};
    /* The words hold quotes of their own: they go into a file. */
    struct cw_buf call = {0};
    cw_buf_printf(&call,
                  "source '%s'\nCOMP_WORDS=(%s)\nCOMP_CWORD=%d\n_chinwag\n"
                  "[ ${#COMPREPLY[@]} = 0 ] || printf '%%s ' \"${COMPREPLY[@]}\"\n",
                  script, cases[_i].words, cases[_i].at);
    char run[300];
    snprintf(run, sizeof run, "%s", tmp_path("run.bash"));
    tmp_write(run, call.data, call.len);
    cw_buf_printf(&command,
                  "mkdir -p '%s/data/chinwag/models' '%s/here' && cd '%s/here' && touch x.gguf && "
                  "touch '%s/data/chinwag/models/TinyModel.gguf' && "
                  "XDG_DATA_HOME='%s/data' bash --norc '%s' 2>&1",
                  home, home, home, home, home, run);
    char *got = output_of(command.data, false);
    if (cases[_i].gives[0] == '*') {
        ck_assert_msg(strstr(got, cases[_i].gives + 1) != NULL, "%s: %s", cases[_i].words, got);
    } else {
        ck_assert_msg(strcmp(got, cases[_i].gives) == 0, "%s: '%s'", cases[_i].words, got);
    }
    free(got);
    cw_buf_free(&call);
    cw_buf_free(&command);
}
END_TEST

START_TEST(completion_knows_bash_alone) {
    driver_run(&d, "", "completion", "fish", NULL);
    driver_expect(&d, 2, "the one shell known is bash");
    driver_free(&d);
    driver_run(&d, "", "completion", NULL);
    driver_expect(&d, 2, "SHELL is missing");
}
END_TEST

int main(void) {
    Suite *s = suite_create("docs");
    TCase *man = tcase_create("man");
    TCase *bash = tcase_create("bash");
    tcase_set_timeout(man, 120);
    tcase_set_timeout(bash, 120);
    tcase_add_checked_fixture(man, NULL, teardown);
    tcase_add_checked_fixture(bash, NULL, teardown);
    tcase_add_test(man, man_has_every_option_and_command);
    tcase_add_test(man, man_has_every_key);
    tcase_add_test(man, man_has_every_slash_command);
    tcase_add_test(man, man_is_sound_roff);
    tcase_add_loop_test(bash, bash_completes, 0, sizeof cases / sizeof *cases);
    tcase_add_test(bash, completion_knows_bash_alone);
    suite_add_tcase(s, man);
    suite_add_tcase(s, bash);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
