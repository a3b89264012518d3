/* SPDX-License-Identifier: MIT
 *
 * The input line: readline driven through our keys, drawn into our grid, without a terminal. Each
 * test runs in a process of its own, since readline is global.
 */
#include <check.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ui/input.h"

#define CJK3      "\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97"
#define FAMILY    "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7"
#define UP        "\033[A"
#define DOWN      "\033[B"
#define LEFT      "\033[D"
#define DEL       "\033[3~"
#define BACKSPACE "\177"

/* For sanitizer builds: readline in vi mode loses a few bytes of its own. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libreadline";
}

static char dir[] = "/tmp/chinwag-input-XXXXXX";
static struct ui_keys *keys;
static double now = 1;

static void complete_words(void *arg, const char *line, size_t begin, size_t end,
                           struct ui_candidates *out) {
    if (line[0] == '/' && begin == 0) {
        ui_candidates_add(out, "/help");
        ui_candidates_add(out, "/set");
        ui_candidates_add(out, "/show");
    } else if (line[0] == '/') {
        ui_candidates_add(out, "temp");
    } else {
        out->files = true;
    }
}

static void put_file(const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static void open_with(const char *inputrc, const char *history) {
    struct cw_err err = {0};
    ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
    setenv("LC_ALL", "C.UTF-8", 1);
    if (strstr(dir, "XXXXXX") != NULL) {
        ck_assert_ptr_nonnull(mkdtemp(dir));
    }
    put_file("inputrc", inputrc);
    char path[128];
    snprintf(path, sizeof path, "%s/inputrc", dir);
    setenv("INPUTRC", path, 1);
    struct ui_input_options opt = {
        .history_path = history, .prompt = " > ", .complete = complete_words};
    ck_assert_int_eq(ui_input_open(&opt, &err), CW_OK);
    keys = ui_keys_create();
    ui_input_resize(24, 80);
}

static void setup(void) {
    open_with("", NULL);
}

static void teardown(void) {
    char command[128];
    ui_input_close();
    ui_keys_destroy(keys);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    if (strstr(dir, "XXXXXX") == NULL && system(command) != 0) {
        perror(dir);
    }
}

/* Press keys, as a terminal would send them. Returns the last result. */
static enum ui_input_result press(const char *bytes) {
    enum ui_input_result result = UI_INPUT_NONE;
    struct ui_key key;
    ui_keys_feed(keys, bytes, strlen(bytes), now);
    now += 1;
    while (ui_keys_next(keys, now, &key)) {
        if (key.code == UI_KEY_PASTE) {
            ui_input_paste(key.text, key.n_text);
        } else {
            result = ui_input_key(&key);
        }
    }
    return result;
}

static void assert_text(const char *want) {
    size_t n;
    const char *got = ui_input_text(&n);
    ck_assert_str_eq(got, want);
    ck_assert_uint_eq(n, strlen(want));
}

static void assert_sent(const char *want) {
    char *got = ui_input_take();
    ck_assert_str_eq(got, want);
    free(got);
    assert_text("");
}

/* The rows drawn, joined by newlines, the cursor as _. */
static void assert_drawn(int rows, int cols, const char *want) {
    struct ui_screen s;
    struct cw_buf got = {0};
    ui_screen_init(&s, rows, cols);
    ui_input_draw(&s, 0, rows, cols);
    ck_assert_int_ge(s.cursor_row, 0);
    ck_assert_int_lt(s.cursor_row, rows);
    ui_screen_puts(&s, s.cursor_row, s.cursor_col, cols, "_", UI_TEXT);
    for (int row = 0; row < rows; row++) {
        ui_screen_row_text(&s, row, &got);
        cw_buf_puts(&got, row + 1 < rows ? "\n" : "");
    }
    ck_assert_str_eq(got.data, want);
    cw_buf_free(&got);
    ui_screen_free(&s);
}

/* ---- editing -------------------------------------------------------------------------------- */

START_TEST(sends_on_enter) {
    press("hello");
    assert_text("hello");
    ck_assert_int_eq(press("\r"), UI_INPUT_SEND);
    assert_sent("hello");
    ck_assert_int_eq(press("\r"), UI_INPUT_NONE); /* nothing to send */
    press("   ");
    ck_assert_int_eq(press("\r"), UI_INPUT_NONE);
    press("\xc3\xa9t\xc3\xa9 " CJK3);
    ck_assert_int_eq(press("\r"), UI_INPUT_SEND);
    assert_sent("\xc3\xa9t\xc3\xa9 " CJK3);
}
END_TEST

/* Keys that some terminals send as sequences do what the plain ones do. */
START_TEST(keys_as_sequences) {
    press("ab\033[99;1u\033[27;2;68~"); /* c, D */
    assert_text("abcD");
    press("\033[127u");
    assert_text("abc");
    press("\033[97;5u-"); /* Ctrl+A */
    assert_text("-abc");
    ck_assert_int_eq(press("\033OM"), UI_INPUT_SEND); /* Enter of the keypad */
    assert_sent("-abc");
}
END_TEST

START_TEST(newlines) {
    press("one");
    ui_input_newline();
    press("two");
    assert_text("one\ntwo");
    ck_assert_int_eq(press("\r"), UI_INPUT_SEND);
    assert_sent("one\ntwo");
}
END_TEST

START_TEST(backslash_goes_on) {
    press("one\\");
    ck_assert_int_eq(press("\r"), UI_INPUT_NONE);
    assert_text("one\n");
    press("two");
    ck_assert_int_eq(press("\r"), UI_INPUT_SEND);
    assert_sent("one\ntwo");
}
END_TEST

START_TEST(quotes_open_a_block) {
    press("\"\"\"");
    ck_assert_int_eq(press("\r"), UI_INPUT_NONE);
    press("one\\");
    ck_assert_int_eq(press("\r"), UI_INPUT_NONE);
    press("two\"\"\"");
    ck_assert_int_eq(press("\r"), UI_INPUT_SEND);
    assert_sent("one\ntwo");
}
END_TEST

static const struct {
    const char *text;
    bool open;
    const char *resolved;
} blocks[] = {
    {"a", false, "a"},
    {"a\\", true, NULL},
    {"\"\"\"", true, NULL},
    {"\"\"\"a\nb", true, NULL},
    {"\"\"\"a\nb\"\"\"", false, "a\nb"},
    {"\"\"\"\na\n\"\"\"", false, "a"},
    {"\"\"\"\"\"\"", false, ""},
    {"\"\"\"\n\"\"\"", false, ""},
    {"\"\"\"a\"\"\" b", false, "a b"},
    {"say \"\"\"", false, "say \"\"\""},
    {"\"\"", false, "\"\""},
};

START_TEST(block_table) {
    ck_assert_int_eq(ui_input_is_open(blocks[_i].text), blocks[_i].open);
    if (blocks[_i].resolved != NULL) {
        char *got = ui_input_resolve(blocks[_i].text);
        ck_assert_str_eq(got, blocks[_i].resolved);
        free(got);
    }
}
END_TEST

START_TEST(paste_is_one_step) {
    press("a");
    press("\033[200~one\ntwo\r\nthree\r\tfour\033[201~");
    assert_text("aone\ntwo\nthree\n\tfour");
    press("\037"); /* Ctrl+_ undoes */
    assert_text("a");
    press("\033[200~x\033[201~");
    ui_input_paste("a\0b\033", 4); /* a NUL is left out, other control characters stay to be seen */
    assert_text("axab\033");
}
END_TEST

/* Fault 54: columns, characters and bytes are three things. */
START_TEST(cursor_by_columns) {
    press("12" CJK3 "56");
    assert_drawn(1, 40, " > 12" CJK3 "56_");
    press(LEFT LEFT LEFT);
    assert_drawn(1, 40, " > 12\xe4\xb8\xad\xe6\x96\x87_ 56"); /* the cursor covers the third */
    press(BACKSPACE);
    assert_text("12\xe4\xb8\xad\xe5\xad\x97"
                "56");
    press("q");
    assert_text("12\xe4\xb8\xadq\xe5\xad\x97"
                "56");
    press("\001"); /* Ctrl+A */
    assert_drawn(1, 40,
                 " > _2\xe4\xb8\xadq\xe5\xad\x97"
                 "56");
    press("\005");
    assert_drawn(1, 40,
                 " > 12\xe4\xb8\xadq\xe5\xad\x97"
                 "56_");
}
END_TEST

/* Fault 55: one key, one cluster. */
START_TEST(clusters_are_whole) {
    press("xe\xcc\x81" FAMILY "y");
    press(LEFT LEFT); /* before the family */
    press("-");
    assert_text("xe\xcc\x81-" FAMILY "y");
    press(DEL);
    assert_text("xe\xcc\x81-y");
    press(BACKSPACE BACKSPACE);
    assert_text("xy");
    press("\005" FAMILY);
    press(BACKSPACE);
    assert_text("xy");
    press(FAMILY "\001\006\006\006z"); /* Ctrl+A, Ctrl+F three times */
    assert_text("xy" FAMILY "z");
    press("\002\002\004"); /* back over z and the family, Ctrl+D */
    assert_text("xyz");
}
END_TEST

START_TEST(emacs_keys_and_undo) {
    press("one two three");
    press("\027"); /* Ctrl+W */
    assert_text("one two ");
    press("\033b\033u"); /* Alt+B, Alt+U */
    assert_text("one TWO ");
    press("\025"); /* Ctrl+U: kills to the start */
    assert_text(" ");
    press("\031"); /* Ctrl+Y */
    assert_text("one TWO ");
    press("\037\037\037"); /* undo */
    ck_assert_uint_gt(strlen("one two"), 0);
    press("\033[1;77Q"); /* a sequence nobody has bound does nothing */
    press("\033[99~");
    size_t n;
    ck_assert_ptr_null(strstr(ui_input_text(&n), "77Q"));
    ck_assert_ptr_null(strchr(ui_input_text(&n), '~'));
}
END_TEST

START_TEST(asks_for_the_editor) {
    press("text");
    ck_assert_int_eq(press("\030"), UI_INPUT_NONE);
    ck_assert(ui_input_captive());
    ck_assert_int_eq(press("\005"), UI_INPUT_EDIT);
    assert_text("text");
    ck_assert_int_eq(press("x"), UI_INPUT_NONE);
}
END_TEST

START_TEST(quoted_insert_and_arguments) {
    press("\026\001"); /* Ctrl+V Ctrl+A */
    assert_text("\001");
    ui_input_clear();
    press("\0335x"); /* Alt+5 x */
    assert_text("xxxxx");
    press("\0333");
    ck_assert(ui_input_captive());
    ui_input_clear();
    ck_assert(!ui_input_captive());
    assert_text("");
    press("ok");
    assert_text("ok");
}
END_TEST

START_TEST(search_history) {
    struct cw_err err = {0};
    ui_input_remember("first message", &err);
    ui_input_remember("second message", &err);
    press("\022"); /* Ctrl+R */
    ck_assert(ui_input_captive());
    press("fir");
    assert_drawn(2, 60, "(reverse-i-search)`fir': _irst message\n");
    press("\007");
    ck_assert(!ui_input_captive());
    assert_text("");
    press("\022sec\r");
    assert_sent("second message");
    press(UP);
    assert_text("second message");
    press(UP);
    assert_text("first message");
    press(DOWN DOWN);
    assert_text("");
}
END_TEST

START_TEST(search_abandoned) {
    struct cw_err err = {0};
    ui_input_remember("first message", &err);
    press("draft\022fir");
    ui_input_clear(); /* as Ctrl+C does */
    ck_assert(!ui_input_captive());
    assert_text("");
    assert_drawn(1, 40, " > _");
    press("next");
    assert_text("next");
    ck_assert_int_eq(press("\r"), UI_INPUT_SEND);
    assert_sent("next");
}
END_TEST

START_TEST(rows_before_history) {
    struct cw_err err = {0};
    ui_input_remember("older", &err);
    ui_input_set("first\nsecond\nthird");
    press(UP "X");
    assert_text("first\nseconXd\nthird");
    press(UP UP); /* the first row, then the history */
    assert_text("older");
    press(DOWN);
    assert_text("first\nseconXd\nthird");
}
END_TEST

START_TEST(vi_mode) {
    press("abc");
    ck_assert(ui_input_wants_esc());
    press("\033");
    ck_assert(!ui_input_wants_esc());
    press("hx"); /* left of c is b: gone */
    assert_text("ac");
    press("0iX\033");
    assert_text("Xac");
    press("A" FAMILY "e\xcc\x81\033");
    press("x"); /* a cluster, whole */
    assert_text("Xac" FAMILY);
    press("x");
    assert_text("Xac");
    press("u");
    assert_text("Xac" FAMILY);
    press("0dl");
    assert_text("ac" FAMILY);
    press("i");
    ck_assert_int_eq(press("\r"), UI_INPUT_SEND);
    assert_sent("ac" FAMILY);
}
END_TEST

START_TEST(inputrc_binds) {
    press("abc");
    press("\017"); /* Ctrl+O, bound below */
    assert_text("abcmacro");
    press("\020"); /* Ctrl+P deletes backwards, as bound: by cluster all the same */
    press("e\xcc\x81\020");
    assert_text("abcmacr");
}
END_TEST

/* ---- completion ----------------------------------------------------------------------------- */

START_TEST(completes) {
    press("/he\t");
    assert_text("/help ");
    ui_input_clear();
    press("/s\t\t");
    size_t n;
    const char *const *m = ui_input_matches(&n);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(m[0], "/set");
    ck_assert_str_eq(m[1], "/show");
    press("e");
    ui_input_matches(&n);
    ck_assert_uint_eq(n, 0); /* until the next key */
    press("\t");
    assert_text("/set ");
    press("te\t");
    assert_text("/set temp ");
    ui_input_clear();
    char path[160];
    put_file("unmistakable-name", "");
    snprintf(path, sizeof path, "see %s/unmis\t", dir);
    press(path);
    snprintf(path, sizeof path, "see %s/unmistakable-name ", dir);
    assert_text(path);
}
END_TEST

/* ---- drawing -------------------------------------------------------------------------------- */

START_TEST(draws_long_text) {
    press("abcdefghijklmno");
    assert_drawn(3, 10, " > abcdef\n   ghijkl\n   mno_");
    ck_assert_int_eq(ui_input_rows(10), 3);
    assert_drawn(2, 10, "   ghijkl\n   mno_"); /* the cursor shows */
    press("\001");
    assert_drawn(2, 10, " > _bcdef\n   ghijkl");
    press("\005");
    ui_input_clear();
    press("abcdef"); /* full: the next letter comes below */
    assert_drawn(2, 10, " > abcdef\n   _");
    ck_assert_int_eq(ui_input_rows(10), 2);
    ui_input_clear();
    ui_input_set("ab\ncd\n");
    assert_drawn(3, 10, " > ab\n   cd\n   _");
    ui_input_set(CJK3); /* half a character does not fit: a column stays blank */
    assert_drawn(2, 8, " > \xe4\xb8\xad\xe6\x96\x87\n   \xe5\xad\x97_");
    ui_input_set("\033[31m\xe2\x80\xae");
    assert_drawn(1, 40, " > ^[[31m\\u{202e}_");
}
END_TEST

START_TEST(draws_at_any_size) {
    press("abc " CJK3 " " FAMILY "\n\tdef");
    for (int rows = 1; rows < 6; rows++) {
        for (int cols = 1; cols < 40; cols++) {
            struct ui_screen s;
            ui_screen_init(&s, rows, cols);
            ck_assert_int_ge(ui_input_rows(cols), 1);
            ui_input_draw(&s, 0, rows, cols);
            ck_assert_int_ge(s.cursor_row, 0);
            ck_assert_int_lt(s.cursor_row, rows);
            ck_assert_int_ge(s.cursor_col, 0);
            ck_assert_int_lt(s.cursor_col, cols);
            ui_screen_free(&s);
        }
    }
}
END_TEST

START_TEST(large_paste_stays_usable) {
    struct cw_buf text = {0};
    for (int i = 0; i < 1024 * 1024 / 8; i++) {
        cw_buf_puts(&text, "abcdefg ");
    }
    ui_input_paste(text.data, text.len);
    press("xyz" BACKSPACE);
    cw_buf_puts(&text, "xy");
    assert_text(text.data);
    ck_assert_int_eq(press("\r"), UI_INPUT_SEND);
    assert_sent(text.data);
    cw_buf_free(&text);
}
END_TEST

/* ---- the history file ----------------------------------------------------------------------- */

START_TEST(history_is_kept) {
    char path[128];
    struct cw_err err = {0};
    struct stat st;
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/history", dir);
    open_with("", path);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq(ui_input_remember("one", &err), CW_OK);
    ck_assert_int_eq(ui_input_remember("two\n#1 of two\n\nend", &err), CW_OK);
    ck_assert_int_eq(ui_input_remember("two\n#1 of two\n\nend", &err), CW_OK); /* not twice */
    ck_assert_int_eq(ui_input_remember(CJK3, &err), CW_OK);
    ui_input_close();
    ui_keys_destroy(keys);
    open_with("", path);
    press(UP);
    assert_text(CJK3);
    press(UP);
    assert_text("two\n#1 of two\n\nend"); /* lines and all, also those that look like a time */
    press("\020");                        /* Ctrl+P */
    assert_text("one");
}
END_TEST

/* Here and in the file: the message, whole lines of it, a command that ends with it. */
START_TEST(history_forgets) {
    static const char *const entries[] = {"yes",
                                          "yes or no",
                                          "tell me\nof this",
                                          "/edit 3 tell me\nof this",
                                          "/edit 3 and tell me\nof this too",
                                          "of this",
                                          "this",
                                          "/help",
                                          "no"};
    static const char *const stay[] = {"no", "/help", "this", "/edit 3 and tell me\nof this too",
                                       "yes or no"};
    static const struct cw_str said[] = {{"tell me\nof this", 15}, {"yes", 3}, {"", 0}};
    char path[128];
    struct cw_err err = {0};
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/history", dir);
    open_with("", path);
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        ck_assert_int_eq(ui_input_remember(entries[i], &err), CW_OK);
    }
    ck_assert_int_eq(ui_input_forget(said, 3, &err), CW_OK);
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < sizeof stay / sizeof *stay; i++) {
            press("\020"); /* Ctrl+P */
            assert_text(stay[i]);
        }
        press("\020");
        assert_text(stay[sizeof stay / sizeof *stay - 1]); /* the oldest */
        ui_input_close();
        ui_keys_destroy(keys);
        open_with("", path);
    }
    ck_assert_int_eq(ui_input_remember("another", &err), CW_OK); /* it goes on in the new file */
    press("\020\020");
    assert_text("no");
}
END_TEST

START_TEST(history_cannot_be_kept) {
    char path[128];
    struct cw_err err = {0};
    ck_assert_ptr_nonnull(mkdtemp(dir));
    put_file("inputrc", "");
    setlocale(LC_CTYPE, "C.UTF-8");
    setenv("LC_ALL", "C.UTF-8", 1);
    snprintf(path, sizeof path, "%s", dir); /* a directory */
    struct ui_input_options opt = {.history_path = path, .prompt = " > "};
    ck_assert_int_eq(ui_input_open(&opt, &err), CW_EIO);
    ck_assert_ptr_nonnull(strstr(err.text, dir));
    keys = ui_keys_create();
    press("works");
    ck_assert_int_eq(press("\r"), UI_INPUT_SEND);
    assert_sent("works");
    ck_assert_int_eq(ui_input_remember("works", &err), CW_OK); /* said once */
    press(UP);
    assert_text("works");
}
END_TEST

/* ---- suite ---------------------------------------------------------------------------------- */

static void setup_vi(void) {
    open_with("set editing-mode vi\n", NULL);
}

static void setup_bindings(void) {
    open_with("\"\\C-o\": \"macro\"\n\"\\C-p\": backward-delete-char\n", NULL);
}

static TCase *add(Suite *s, const char *name, void (*before)(void)) {
    TCase *t = tcase_create(name);
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, before, teardown);
    suite_add_tcase(s, t);
    return t;
}

static void nothing(void) {
}

static Suite *suite(void) {
    Suite *s = suite_create("ui input");
    TCase *t = add(s, "emacs", setup);
    tcase_add_test(t, sends_on_enter);
    tcase_add_test(t, keys_as_sequences);
    tcase_add_test(t, newlines);
    tcase_add_test(t, backslash_goes_on);
    tcase_add_test(t, quotes_open_a_block);
    tcase_add_loop_test(t, block_table, 0, (int)(sizeof blocks / sizeof blocks[0]));
    tcase_add_test(t, paste_is_one_step);
    tcase_add_test(t, cursor_by_columns);
    tcase_add_test(t, clusters_are_whole);
    tcase_add_test(t, emacs_keys_and_undo);
    tcase_add_test(t, asks_for_the_editor);
    tcase_add_test(t, quoted_insert_and_arguments);
    tcase_add_test(t, search_history);
    tcase_add_test(t, search_abandoned);
    tcase_add_test(t, rows_before_history);
    tcase_add_test(t, completes);
    tcase_add_test(t, draws_long_text);
    tcase_add_test(t, draws_at_any_size);
    tcase_add_test(t, large_paste_stays_usable);
    t = add(s, "vi", setup_vi);
    tcase_add_test(t, vi_mode);
    t = add(s, "bindings", setup_bindings);
    tcase_add_test(t, inputrc_binds);
    t = add(s, "history", nothing);
    tcase_add_test(t, history_is_kept);
    tcase_add_test(t, history_forgets);
    tcase_add_test(t, history_cannot_be_kept);
    return s;
}

int main(void) {
    SRunner *sr = srunner_create(suite());
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
