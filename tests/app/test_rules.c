/* SPDX-License-Identifier: MIT
 *
 * The rules of the house that a compiler does not keep: who may include curses and readline, in
 * source and in symbols; whose words stand where; and that every header compiles alone.
 */
#include <check.h>
#include <dirent.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/cli.h"
#include "app/paths.h"
#include "chinwag/mem.h"

struct paths {
    char **v;
    size_t n;
};

static void add_path(struct paths *p, const char *path) {
    p->v = cw_reallocarray(p->v, p->n + 1, sizeof *p->v);
    p->v[p->n++] = cw_strdup(path);
}

static void free_paths(struct paths *p) {
    for (size_t i = 0; i < p->n; i++) {
        free(p->v[i]);
    }
    free(p->v);
}

static bool ends_with(const char *s, const char *end) {
    size_t n = strlen(s);
    size_t k = strlen(end);
    return n >= k && strcmp(s + n - k, end) == 0;
}

/* All files below dir whose names end so. */
static void find(const char *dir, const char *end, struct paths *out) {
    DIR *d = opendir(dir);
    ck_assert_msg(d != NULL, "%s", dir);
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        char *path = app_path_join(dir, e->d_name);
        if (e->d_name[0] != '.' && lstat(path, &st) == 0) {
            if (S_ISDIR(st.st_mode)) {
                find(path, end, out);
            } else if (ends_with(path, end)) {
                add_path(out, path);
            }
        }
        free(path);
    }
    closedir(d);
}

static const char *source_root(void) {
    const char *root = getenv("CHINWAG_SOURCE_ROOT");
    ck_assert_msg(root != NULL, "CHINWAG_SOURCE_ROOT is not set");
    return root;
}

/* ---- includes ------------------------------------------------------------------------------- */

/* No line of the file matches; in includes the rooms of the repository are given as "core/". */
static void expect_no_line(const char *path, const char *pattern, const char *why) {
    struct cw_err err;
    regex_t re;
    size_t len;
    char *text = cli_read_file(path, &len, &err);
    ck_assert_msg(text != NULL, "%s", err.text);
    ck_assert_int_eq(regcomp(&re, pattern, REG_EXTENDED | REG_NEWLINE), 0);
    regmatch_t m;
    if (regexec(&re, text, 1, &m, 0) == 0) {
        ck_abort_msg("%s: %.*s: %s", path, (int)(m.rm_eo - m.rm_so), text + m.rm_so, why);
    }
    regfree(&re);
    free(text);
}

#define CURSES                                                                                     \
    "^[ \t]*#[ \t]*include[ \t]*[<\"](n?cursesw?[./]|ncurses/|term\\.h>|termcap|panel\\.h)"
#define READLINE "^[ \t]*#[ \t]*include[ \t]*[<\"](readline|editline)/"

static void check_room(const char *room, const char *end) {
    char *dir = app_path_join(source_root(), room);
    struct paths files = {0};
    find(dir, end, &files);
    for (size_t i = 0; i < files.n; i++) {
        if (!ends_with(files.v[i], "/ui/term.c")) {
            expect_no_line(files.v[i], CURSES, "only ui/term.c includes curses");
        }
        if (!ends_with(files.v[i], "/ui/input.c")) {
            expect_no_line(files.v[i], READLINE, "only ui/input.c includes readline");
        }
        if (!strstr(files.v[i], "/core/store/")) {
            expect_no_line(files.v[i], "^[ \t]*#[ \t]*include[ \t]*[<\"]sqlite3",
                           "only core/store includes SQLite");
        } else {
            expect_no_line(files.v[i], "^[ \t]*#[ \t]*include[ \t]*\"core/[^s]",
                           "the store is built on core/base alone");
        }
        if (strcmp(room, "core") == 0 || strcmp(room, "include") == 0) {
            expect_no_line(files.v[i], "^[ \t]*#[ \t]*include[ \t]*\"(ui|app)/",
                           "the core knows neither interface nor program");
            expect_no_line(files.v[i], "^[ \t]*[^ \t/*][^\"]*\"[^\"]*(--[a-z]|/set )",
                           "options and commands are the program's words");
            if (!strstr(files.v[i], "/core/model/")) {
                expect_no_line(files.v[i], "\"general\\.architecture\"",
                               "only core/model knows architectures");
            }
        }
        if (strcmp(room, "ui") == 0) {
            expect_no_line(files.v[i], "^[ \t]*#[ \t]*include[ \t]*\"(core|app)/",
                           "the interface knows the core by its public headers only");
        }
    }
    free_paths(&files);
    free(dir);
}

START_TEST(includes) {
    static const char *const rooms[] = {"core", "include", "ui", "app"};
    check_room(rooms[_i], ".c");
    check_room(rooms[_i], ".h");
}
END_TEST

/* ---- symbols -------------------------------------------------------------------------------- */

/* A set of names, one a line with line ends around each. */
static bool holds(const struct cw_buf *set, const char *name) {
    char line[512];
    snprintf(line, sizeof line, "\n%s\n", name);
    return set->data && strstr(set->data, line) != NULL;
}

/* The third (or only second) word of each line of `nm`: the symbols. A line for each is added. */
static void nm(struct cw_buf *out, const char *flags, const char *path) {
    char command[8192];
    char line[4096];
    snprintf(command, sizeof command, "nm %s '%s' 2>/dev/null", flags, path);
    FILE *f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    cw_buf_putc(out, '\n');
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n@")] = '\0';
        char *name = strrchr(line, ' ');
        cw_buf_printf(out, "%s\n", name ? name + 1 : line);
    }
    pclose(f);
}

/* What a shared library defines, the compiler being asked where it is. */
static void defined_by(struct cw_buf *out, const char *library) {
    char command[256];
    char path[4096] = "";
    snprintf(command, sizeof command, "cc -print-file-name=%s", library);
    FILE *f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    ck_assert_msg(fgets(path, sizeof path, f) != NULL, "%s", library);
    pclose(f);
    path[strcspn(path, "\n")] = '\0';
    nm(out, "-D --defined-only", path);
    ck_assert_msg(out->len > 1000, "%s defines nothing", path);
}

static void expect_no_symbol(const char *object, const struct cw_buf *banned,
                             const struct cw_buf *ordinary, const char *why) {
    struct cw_buf undefined = {0};
    char *save = NULL;
    nm(&undefined, "-u", object);
    for (char *name = strtok_r(undefined.data, "\n", &save); name;
         name = strtok_r(NULL, "\n", &save)) {
        ck_assert_msg(!holds(banned, name) || holds(ordinary, name), "%s needs %s: %s", object,
                      name, why);
    }
    cw_buf_free(&undefined);
}

START_TEST(symbols) {
    struct cw_buf curses = {0};
    struct cw_buf readline = {0};
    struct cw_buf libc = {0};
    struct paths objects = {0};
    const char *build = getenv("CHINWAG_BUILD_ROOT");
    ck_assert_msg(build != NULL, "CHINWAG_BUILD_ROOT is not set");
    defined_by(&curses, "libncursesw.so.6");
    defined_by(&curses, "libtinfo.so.6");
    defined_by(&readline, "libreadline.so.8");
    defined_by(&libc, "libc.so.6");
    ck_assert(holds(&curses, "endwin") && holds(&readline, "rl_callback_read_char"));
    static const char *const rooms[] = {"core", "ui", "app"};
    size_t owners = 0;
    for (size_t r = 0; r < sizeof rooms / sizeof *rooms; r++) {
        char *dir = app_path_join(build, rooms[r]);
        find(dir, ".c.o", &objects);
        free(dir);
    }
    ck_assert_uint_gt(objects.n, 30);
    for (size_t i = 0; i < objects.n; i++) {
        bool term = ends_with(objects.v[i], "/term.c.o");
        bool input = ends_with(objects.v[i], "/input.c.o");
        owners += term + input;
        if (!term) {
            expect_no_symbol(objects.v[i], &curses, &libc, "only ui/term.c may");
        }
        if (!input) {
            expect_no_symbol(objects.v[i], &readline, &libc, "only ui/input.c may");
        }
    }
    ck_assert_uint_eq(owners, 2);
    free_paths(&objects);
    cw_buf_free(&curses);
    cw_buf_free(&readline);
    cw_buf_free(&libc);
}
END_TEST

/* ---- headers -------------------------------------------------------------------------------- */

/* Each header compiles alone, and a second time in the same file. */
START_TEST(headers_compile_alone) {
    static const char *const rooms[] = {"include", "core", "ui", "app"};
    char *dir = app_path_join(source_root(), rooms[_i]);
    struct paths headers = {0};
    char command[8192];
    find(dir, ".h", &headers);
    ck_assert_uint_gt(headers.n, 3);
    for (size_t i = 0; i < headers.n; i++) {
        /* What includes immintrin.h compiles only with the flags of its own library. */
        if (strstr(headers.v[i], "/kernels/")) {
            continue;
        }
        snprintf(command, sizeof command,
                 "printf '#include \"%s\"\\n#include \"%s\"\\n' | cc -std=c11 -D_GNU_SOURCE -Wall "
                 "-Wextra -Wno-unused-parameter -Werror -I'%s' -I'%s/include' "
                 "$(pkg-config --cflags json-c inih 2>/dev/null) -fsyntax-only -x c -",
                 headers.v[i], headers.v[i], source_root(), source_root());
        ck_assert_msg(system(command) == 0, "%s does not compile alone", headers.v[i]);
    }
    free_paths(&headers);
    free(dir);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("rules");
    TCase *t = tcase_create("boundaries");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, includes, 0, 4);
    tcase_add_test(t, symbols);
    tcase_add_loop_test(t, headers_compile_alone, 0, 4);
    suite_add_tcase(suite, t);
    SRunner *sr = srunner_create(suite);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
