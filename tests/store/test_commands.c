/* SPDX-License-Identifier: MIT
 *
 * chinwag conversations, export, import, delete and forget, as the program that people call.
 */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/store/support.h"

static char *dir;
static char *data; /* dir/data/chinwag */

static void setup(void) {
    dir = make_dir();
    char *base = path_in(dir, "data");
    data = path_in(base, "chinwag");
    ck_assert_int_eq(setenv("XDG_DATA_HOME", base, 1), 0);
    free(base);
    ck_assert_int_eq(setenv("XDG_CACHE_HOME", dir, 1), 0);
    ck_assert_int_eq(setenv("XDG_STATE_HOME", dir, 1), 0);
}

static void teardown(void) {
    free(data);
    drop_dir(dir);
}

/* Run the program with this command line; its two outputs together. */
static int run(struct cw_buf *out, const char *fmt, ...) {
    const char *program = getenv("CHINWAG_BIN");
    struct cw_buf line = {0};
    char args[2048];
    char chunk[4096];
    va_list ap;
    ck_assert_ptr_nonnull(program);
    va_start(ap, fmt);
    vsnprintf(args, sizeof args, fmt, ap);
    va_end(ap);
    cw_buf_printf(&line, "cd '%s' && '%s' %s 2>&1", dir, program, args);
    cw_buf_clear(out);
    FILE *f = popen(line.data, "r");
    ck_assert_ptr_nonnull(f);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;) {
        cw_buf_add(out, chunk, n);
    }
    int status = pclose(f);
    cw_buf_free(&line);
    ck_assert(WIFEXITED(status));
    ck_assert_ptr_null(memchr(out->data ? out->data : "", 0x1b, out->len));
    return WEXITSTATUS(status);
}

static const char input[] =
    "{\"title\":\"../../evil \\u001b[2J\",\"messages\":["
    "{\"role\":\"system\",\"content\":\"Be kind\"},"
    "{\"role\":\"user\",\"content\":\"What is a quokka? \\u001b]0;x\\u0007\"},"
    "{\"role\":\"assistant\",\"content\":\"A small marsupial.\"}]}";

static const char typed[] = "\x1f"
                            "1\nWhat is a quokka? \033]0;x\007\n\x1f"
                            "2\na line of another\n";

START_TEST(whole_life) {
    struct cw_buf out = {0};
    char id[16] = "";
    char *file = path_in(dir, "in.json");
    write_file(file, input, sizeof input - 1);
    free(file);
    char *state = path_in(dir, "chinwag");
    ck_assert_int_eq(mkdir(state, 0700), 0);
    char *history = path_in(state, "history");
    write_file(history, typed, sizeof typed - 1);
    free(history);
    ck_assert_int_eq(run(&out, "conversations"), 0);
    ck_assert_ptr_nonnull(strstr(out.data, "no conversations yet"));
    ck_assert_int_eq(run(&out, "import in.json"), 0);
    ck_assert_uint_gt(out.len, 13);
    memcpy(id, out.data, 13);
    ck_assert_int_eq(run(&out, "conversations"), 0);
    ck_assert(strncmp(out.data, id, 13) == 0);
    ck_assert_ptr_nonnull(strstr(out.data, "../../evil \\x1B[2J"));
    ck_assert_int_eq(run(&out, "conversations search small marsupial"), 0);
    ck_assert_ptr_nonnull(strstr(out.data, "A small marsupial."));
    ck_assert_int_eq(run(&out, "conversations search wombat"), 0);
    ck_assert_ptr_null(strstr(out.data, id));
    ck_assert_int_eq(run(&out, "conversations --json"), 0);
    ck_assert_ptr_nonnull(strstr(out.data, "\"messages\": 2"));
    static const char *const formats[] = {"md", "json", "jsonl", "txt", "html"};
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(run(&out, "export %.6s --format %s", id, formats[i]), 0);
        ck_assert_ptr_nonnull(strstr(out.data, "quokka"));
        ck_assert_ptr_nonnull(strstr(out.data, "Be kind"));
    }
    ck_assert_int_eq(run(&out, "export %s --format json -o out.json", id), 0);
    ck_assert_int_eq(run(&out, "import out.json"), 0);
    ck_assert_int_eq(run(&out, "import - < out.json"), 0);
    ck_assert_int_eq(run(&out, "conversations search quokka"), 0);
    ck_assert_int_eq(run(&out, "delete %s", id), 0);
    ck_assert_int_eq(run(&out, "export %s", id), 1);
    ck_assert(dir_holds(data, "quokka"));
    ck_assert(!dir_holds(state, "quokka") && dir_holds(state, "of another"));
    free(state);
    ck_assert_int_eq(run(&out, "forget"), 2);
    ck_assert_int_eq(run(&out, "forget --all"), 0);
    ck_assert(!dir_holds(data, "quokka") && !dir_holds(data, "marsupial"));
    ck_assert(!dir_holds(data, "Be kind") && !dir_holds(data, "evil"));
    cw_buf_free(&out);
}
END_TEST

START_TEST(refusals) {
    static const struct {
        const char *args;
        int status;
        const char *says;
    } cases[] = {
        {"export", 2, "ID is missing"},
        {"export x", 1, "no such conversation"},
        {"export ../../etc/passwd", 1, "no such conversation"},
        {"export x --format pdf", 2, "none of md"},
        {"delete ''", 2, "ID is missing"},
        {"delete zzz", 1, "no such conversation"},
        {"import", 2, "FILE is missing"},
        {"import nowhere.json", 1, "No such file"},
        {"import /dev/null", 1, "not valid JSON"},
        {"conversations search", 2, "TEXT is missing"},
        {"conversations find x", 2, "only 'search TEXT'"},
    };
    struct cw_buf out = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = run(&out, "%s", cases[i].args);
        ck_assert_msg(status == cases[i].status, "%s: status %d", cases[i].args, status);
        ck_assert_msg(strstr(out.data, cases[i].says) != NULL, "%s said %s", cases[i].args,
                      out.data);
    }
    cw_buf_free(&out);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("store-commands");
    TCase *tc = tcase_create("commands");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 240);
    tcase_add_test(tc, whole_life);
    tcase_add_test(tc, refusals);
    suite_add_tcase(suite, tc);
    SRunner *sr = srunner_create(suite);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? 0 : 1;
}
