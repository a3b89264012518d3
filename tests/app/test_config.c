/* SPDX-License-Identifier: MIT
 *
 * config.ini and the XDG directories: what is read, what is only warned of, and that errors name
 * file and line.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/config.h"
#include "app/paths.h"
#include "chinwag/dirs.h"

static char dir[64];
static char file[128];
static struct app_settings s;
static struct cw_err err;
static struct cw_buf warnings;

static void setup(void) {
    snprintf(dir, sizeof dir, "/tmp/chinwag-config-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(file, sizeof file, "%s/config.ini", dir);
    memset(&err, 0, sizeof err);
    app_settings_init(&s);
}

static void teardown(void) {
    unlink(file);
    rmdir(dir);
    app_settings_free(&s);
    cw_buf_free(&warnings);
}

static void on_warning(void *arg, const char *line) {
    cw_buf_printf(&warnings, "%s\n", line);
}

static int load_bytes(const char *text, size_t n) {
    const struct app_config_sink sink = {.warn = on_warning};
    FILE *f = fopen(file, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, n, f), n);
    fclose(f);
    return app_config_load(&s, file, &sink, &err);
}

static int load(const char *text) {
    return load_bytes(text, strlen(text));
}

/* The error is "FILE:LINE: ...", with `says` in it. */
static void expect_error(int line, const char *says) {
    char head[160];
    snprintf(head, sizeof head, "%s:%d: ", file, line);
    ck_assert_msg(strncmp(err.text, head, strlen(head)) == 0, "'%s' does not begin with '%s'",
                  err.text, head);
    ck_assert_msg(strstr(err.text, says) != NULL, "'%s' does not say '%s'", err.text, says);
}

START_TEST(options_are_read) {
    ck_assert_msg(load("# a comment\n"
                       "temp = 0.7\n"
                       "top_p=0.9 ; and another\r\n"
                       "[engine]\n"
                       "threads = 2\n"
                       "exact = on\n"
                       "stop = END\n"
                       "stop = \"quoted\"\n"
                       "system = You are terse = good.\n") == CW_OK,
                  "%s", err.text);
    ck_assert_float_eq(s.sampling.temp, 0.7f);
    ck_assert_float_eq(s.sampling.top_p, 0.9f);
    ck_assert_int_eq(s.n_threads, 2);
    ck_assert(s.exact);
    ck_assert_str_eq(s.stops[0], "END");
    ck_assert_str_eq(s.stops[1], "\"quoted\"");
    ck_assert_str_eq(s.system, "You are terse = good.");
    ck_assert_int_eq(app_settings_origin(&s, app_option_find("temp")), APP_CONFIG);
    ck_assert_uint_eq(warnings.len, 0);
}
END_TEST

START_TEST(a_text_goes_on_in_indented_lines) {
    ck_assert_int_eq(load("system = one\n  two\n\tthree\ntemp = 0.5\n"), CW_OK);
    ck_assert_str_eq(s.system, "one\ntwo\nthree");
    ck_assert_float_eq(s.sampling.temp, 0.5f);
}
END_TEST

START_TEST(only_a_text_can_go_on) {
    ck_assert_int_eq(load("temp = 0.5\n  0.6\n"), CW_EFORMAT);
    expect_error(2, "begins with a blank");
}
END_TEST

START_TEST(unknown_options_are_warned_of) {
    char wanted[200];
    ck_assert_int_eq(load("temp = 0.5\n\nno_such = 1\n-t = 4\ntop-k = 3\n"), CW_OK);
    snprintf(wanted, sizeof wanted, "%s:3: unknown option 'no_such'", file);
    ck_assert_ptr_nonnull(strstr(warnings.data, wanted));
    snprintf(wanted, sizeof wanted, "%s:4: unknown option '-t'", file);
    ck_assert_ptr_nonnull(strstr(warnings.data, wanted));
    ck_assert_int_eq(s.sampling.top_k, 3);
    ck_assert_int_eq(s.n_threads, 0);
    ck_assert_int_eq(load("tmep = 0.5\n"), CW_OK);
    snprintf(wanted, sizeof wanted, "%s:1: unknown option 'tmep', did you mean 'temp'?", file);
    ck_assert_ptr_nonnull(strstr(warnings.data, wanted));
}
END_TEST

static const struct {
    const char *text;
    int line;
    const char *says;
} bad[] = {
    {"temp = 9\n", 1, "temp: 9 is more than 5"},
    {"\n\ntemp = 0,7\n", 3, "not a number"},
    {"temp = 0.5\nisa = mmx\nkv = f32\n", 2, "none of"},
    {"nonsense\n", 1, "neither"},
    {"temp = 1\n[unclosed\n", 2, "neither"},
    {"exact = maybe", 1, "neither on nor off"},
};

START_TEST(errors_name_file_and_line) {
    ck_assert_int_eq(load(bad[_i].text), CW_EFORMAT);
    expect_error(bad[_i].line, bad[_i].says);
}
END_TEST

START_TEST(long_lines_and_nul_are_refused) {
    char text[4096] = "temp = 0.5\nsystem = ";
    size_t n = strlen(text);
    memset(text + n, 'x', 300);
    memcpy(text + n + 300, "\ntop-k = 7\n", 12);
    ck_assert_int_eq(load(text), CW_EFORMAT);
    expect_error(2, "longer than");
    ck_assert_ptr_null(s.system); /* not the first part of it */
    ck_assert_int_eq(s.sampling.top_k, 7);

    /* The longest line that fits is taken whole. */
    memset(text, 0, sizeof text);
    strcpy(text, "system = ");
    memset(text + 9, 'y', 198 - 9);
    ck_assert_int_eq(load(text), CW_OK);
    ck_assert_uint_eq(strlen(s.system), 198 - 9);
    text[198] = 'z';
    ck_assert_int_eq(load(text), CW_EFORMAT);
    expect_error(1, "longer than 198 bytes");
    memset(&err, 0, sizeof err);

    static const char nul[] = "top-k = 5\ntemp = 0\0.9\n";
    ck_assert_int_eq(load_bytes(nul, sizeof nul - 1), CW_EFORMAT);
    expect_error(2, "NUL");
    ck_assert_int_eq(s.sampling.top_k, 5);
}
END_TEST

START_TEST(missing_and_unreadable_files) {
    ck_assert_int_eq(app_config_load(&s, "/nowhere/config.ini", NULL, &err), CW_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "/nowhere/config.ini"));
    ck_assert_int_eq(app_config_load(&s, "/tmp", NULL, &err), CW_EIO);
    ck_assert_str_eq(err.text, "/tmp: Is a directory");
    ck_assert_int_eq(load(""), CW_OK);
    ck_assert_int_eq(load("\n\n;\n#"), CW_OK);
}
END_TEST

START_TEST(a_flag_beats_the_file) {
    ck_assert_int_eq(app_settings_set(&s, app_option_find("temp"), "1.5", APP_FLAG, &err), CW_OK);
    ck_assert_int_eq(load("temp = 0.1\n"), CW_OK);
    ck_assert_float_eq(s.sampling.temp, 1.5f);
}
END_TEST

/* ---- directories ---------------------------------------------------------------------------- */

static void clear_environment(void) {
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("XDG_DATA_HOME");
    unsetenv("XDG_STATE_HOME");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
}

START_TEST(xdg_directories) {
    struct app_paths p;
    clear_environment();
    setenv("HOME", dir, 1);
    setenv("XDG_STATE_HOME", "/s", 1);
    setenv("XDG_DATA_HOME", "relative/data", 1);
    setenv("XDG_CACHE_HOME", "", 1);
    char wanted[128];
    app_paths_init(&p);
    snprintf(wanted, sizeof wanted, "%s/.config/chinwag", dir);
    ck_assert_str_eq(p.config, wanted);
    snprintf(wanted, sizeof wanted, "%s/.local/share/chinwag", dir);
    ck_assert_str_eq(p.data, wanted);
    ck_assert_str_eq(p.state, "/s/chinwag");
    snprintf(wanted, sizeof wanted, "%s/.cache/chinwag", dir);
    ck_assert_str_eq(p.cache, wanted);
    ck_assert_str_eq(p.reason, "");
    app_paths_free(&p);
}
END_TEST

START_TEST(a_home_that_is_none) {
    static const char *const homes[] = {NULL, "", "relative", "/dev/null", "/no/such/home"};
    struct app_paths p;
    clear_environment();
    if (homes[_i]) {
        setenv("HOME", homes[_i], 1);
    }
    setenv("XDG_CONFIG_HOME", "/c", 1);
    app_paths_init(&p);
    ck_assert_str_eq(p.config, "/c/chinwag");
    ck_assert_str_eq(p.data, "");
    ck_assert_str_eq(p.state, "");
    ck_assert_str_eq(p.cache, "");
    ck_assert_ptr_nonnull(strstr(p.reason, "HOME"));
    char *file_in_none = app_path_join(p.data, "x");
    ck_assert_str_eq(file_in_none, ""); /* and not "/x", nor a file in the current directory */
    free(file_in_none);
    ck_assert_int_eq(cw_dirs_make(p.data, &err), CW_EIO);
    app_paths_free(&p);
}
END_TEST

START_TEST(directories_are_made_for_the_owner) {
    char deep[160];
    struct stat st;
    snprintf(deep, sizeof deep, "%s/a/b", dir);
    ck_assert_int_eq(cw_dirs_make(deep, &err), CW_OK);
    ck_assert_int_eq(cw_dirs_make(deep, &err), CW_OK); /* again */
    ck_assert_int_eq(stat(deep, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0700);
    rmdir(deep);
    snprintf(deep, sizeof deep, "%s/a", dir);
    rmdir(deep);

    ck_assert_int_eq(load(""), CW_OK); /* makes config.ini, a file */
    snprintf(deep, sizeof deep, "%s/x", file);
    ck_assert_int_eq(cw_dirs_make(deep, &err), CW_EIO);
    ck_assert_ptr_nonnull(strstr(err.text, file));
    ck_assert_int_eq(cw_dirs_make(file, &err), CW_EIO);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("config");
    TCase *t = tcase_create("config.ini");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, options_are_read);
    tcase_add_test(t, a_text_goes_on_in_indented_lines);
    tcase_add_test(t, only_a_text_can_go_on);
    tcase_add_test(t, unknown_options_are_warned_of);
    tcase_add_loop_test(t, errors_name_file_and_line, 0, (int)(sizeof bad / sizeof *bad));
    tcase_add_test(t, long_lines_and_nul_are_refused);
    tcase_add_test(t, missing_and_unreadable_files);
    tcase_add_test(t, a_flag_beats_the_file);
    suite_add_tcase(suite, t);
    TCase *p = tcase_create("directories");
    tcase_set_timeout(p, 60);
    tcase_add_checked_fixture(p, setup, teardown);
    tcase_add_test(p, xdg_directories);
    tcase_add_loop_test(p, a_home_that_is_none, 0, 5);
    tcase_add_test(p, directories_are_made_for_the_owner);
    suite_add_tcase(suite, p);
    SRunner *sr = srunner_create(suite);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
