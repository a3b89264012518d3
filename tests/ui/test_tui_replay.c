/* SPDX-License-Identifier: MIT
 *
 * A key changes the very next token, seen from outside: a real reply whose temperature falls from
 * 1.5 to 0 in the middle, read off the screen, is the reply that `chinwag generate` gives for the
 * same seed with the change at the token that the chat recorded. */
#include <check.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chinwag/mem.h"
#include "tests/ui/tui.h"

static const char question[] = "Tell me about the sea.";
static const char change[] = "T 1.50 -> 0.00";
#define SEED      "3"
#define MAX_REPLY "300"

static struct tui t;

static void setup(void) {
    tui_init(&t);
}

/* False: no real model on this machine. */
static bool find_model(char *path, size_t cap) {
    static const char name[] = "chinwag/models/SmolLM2-135M-Instruct.Q4_1.gguf";
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (data != NULL && data[0] == '/') {
        snprintf(path, cap, "%s/%s", data, name);
    } else {
        snprintf(path, cap, "%s/.local/share/%s", home != NULL ? home : "", name);
    }
    return access(path, R_OK) == 0;
}

/* What a shell command prints. */
static void output_of(const char *command, struct cw_buf *out) {
    char piece[4096];
    size_t n;
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    while ((n = fread(piece, 1, sizeof piece, pipe)) > 0) {
        cw_buf_add(out, piece, n);
    }
    ck_assert_int_eq(pclose(pipe), 0);
}

static void add_unspaced(struct cw_buf *out, const char *text) {
    for (; *text != '\0'; text++) {
        if (strchr(" \n\r\t", *text) == NULL) {
            cw_buf_putc(out, *text);
        }
    }
}

/* The reply on the screen without blanks: what stands between the second heading and the rule above
 * the input, less the mark in the margin. */
static void reply_on_screen(struct cw_buf *out) {
    int row = pty_find(&t.pty, question);
    ck_assert_int_ge(row, 0);
    row = row == 0 ? 1 : row; /* the title line may repeat the question */
    while (row < t.rows) {
        char *text = pty_row(&t.pty, row++);
        bool asked = strncmp(text, "   Tell", 7) == 0;
        free(text);
        if (asked) {
            break;
        }
    }
    for (row += 2; row < t.rows; row++) { /* a blank row, the heading */
        char *text = pty_row(&t.pty, row);
        if (strncmp(text, "\xe2\x94\x80", 3) == 0) {
            free(text);
            break;
        }
        size_t len = strlen(text);
        if (len > 0 && text[len - 1] == '|' && len >= (size_t)t.cols - 2) {
            text[len - 1] = '\0';
        }
        char *label = strstr(text, change);
        if (label != NULL) {
            memset(label, ' ', strlen(change));
        }
        add_unspaced(out, text);
        free(text);
    }
}

START_TEST(screen_equals_generate) {
    struct cw_buf command = {0}, ids = {0}, json = {0}, want = {0}, got = {0};
    char model[4096], program[4096];
    const char *build = getenv("CHINWAG_BUILD_ROOT");
    ck_assert_ptr_nonnull(build);
    snprintf(program, sizeof program, "%s/app/chinwag", build);
    if (!find_model(model, sizeof model) || strlen(model) >= sizeof t.model) {
        printf("skipped: the default model is not here\n");
        tui_end(&t);
        return;
    }
    static const char *const args[] = {"-s",      SEED,  "--temp", "1.5",
                                       "--top-p", "0.9", "-n",     MAX_REPLY};
    memcpy(t.more_args, args, sizeof args);
    snprintf(t.model, sizeof t.model, "%s", model);
    t.rows = 60;
    t.cols = 120;
    tui_start_idle(&t);
    pty_type(&t.pty, question);
    pty_type(&t.pty, "\r");
    ck_assert(pty_wait_text(&t.pty, "At Stroll")); /* how this seed begins */
    pty_type(&t.pty, "/set temp 0\r");
    ck_assert(pty_wait_text(&t.pty, change));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    reply_on_screen(&got);
    pty_type(&t.pty, "/stats\r");
    ck_assert(pty_wait_text(&t.pty, "T 1.50 -> 0.00 at token "));
    unsigned long token = 0;
    char *row = pty_row(&t.pty, pty_find(&t.pty, "T 1.50 -> 0.00 at token "));
    ck_assert_int_eq(sscanf(strstr(row, "token "), "token %lu", &token), 1);
    free(row);
    ck_assert_uint_gt(token, 0);
    ck_assert_uint_lt(token, strtoul(MAX_REPLY, NULL, 10));

    cw_buf_printf(&command,
                  "printf '[{\"role\":\"user\",\"content\":\"%s\"}]' | '%s' render -m '%s' | "
                  "'%s' tokenize -m '%s' --special --json",
                  question, program, model, program, model);
    output_of(command.data, &ids);
    struct json_object *prompt = json_tokener_parse(ids.data), *list = prompt;
    if (json_object_is_type(prompt, json_type_object)) {
        ck_assert(json_object_object_get_ex(prompt, "ids", &list));
    }
    ck_assert(json_object_is_type(list, json_type_array));
    cw_buf_clear(&command);
    cw_buf_printf(&command,
                  "'%s' generate -m '%s' --temp 1.5 --top-p 0.9 -s %s -n %s --at %lu:temp=0",
                  program, model, SEED, MAX_REPLY, token);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        cw_buf_printf(&command, "%s%d", i == 0 ? " --tokens " : ",",
                      json_object_get_int(json_object_array_get_idx(list, i)));
    }
    output_of(command.data, &json);
    struct json_object *reply = json_tokener_parse(json.data), *text;
    ck_assert(json_object_object_get_ex(reply, "text", &text));
    add_unspaced(&want, json_object_get_string(text));
    ck_assert_uint_gt(want.len, 200);
    ck_assert_str_eq(got.data, want.data);

    json_object_put(prompt);
    json_object_put(reply);
    cw_buf_free(&command);
    cw_buf_free(&ids);
    cw_buf_free(&json);
    cw_buf_free(&want);
    cw_buf_free(&got);
    pty_type(&t.pty, "q");
    ck_assert(pty_wait_no_text(&t.pty, "at token"));
    tui_finish(&t);
}
END_TEST

int main(void) {
    Suite *s = suite_create("tui_replay");
    TCase *c = tcase_create("replay");
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, screen_equals_generate);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
