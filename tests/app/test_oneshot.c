/* SPDX-License-Identifier: MIT
 *
 * One-shot replies: what reaches standard output is the reply and a line end, byte for byte,
 * however the run ends. The models are Markov chains, so that the reply is known.
 */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/app/driver.h"
#include "tests/support/markov.h"
#include "tests/support/mkgguf.h"

static struct driver d;
static char model[512]; /* says `reply` */
static char endless[512];

/* Two of the tokens cut a character in two; one is an escape sequence; one a stray byte. */
static const char *const reply[] = {"Hello",    ", ",   "w\xc3", "\xb6rld", " 100%n %s",
                                    "\x1b[31m", "\xff", "!",     " END",    " tail"};
static const char reply_text[] = "Hello, w\xc3\xb6rld 100%n %s\x1b[31m\xff! END tail";

static void setup(void) {
    static const char *const again[] = {"again ", "and "};
    struct markov m;
    snprintf(model, sizeof model, "%s", tmp_path("says.gguf"));
    markov_write(model, reply, sizeof reply / sizeof *reply);
    snprintf(endless, sizeof endless, "%s", tmp_path("endless.gguf"));
    markov_init(&m);
    m.n_ctx = 1 << 20;
    for (size_t i = 0; i < 2; i++) {
        markov_text(&m, again[i]);
    }
    markov_loop(&m, 0);
    markov_save(&m, endless);
    markov_free(&m);
}

static void teardown(void) {
    driver_free(&d);
}

static struct json_object *member(struct json_object *o, const char *key) {
    struct json_object *v = NULL;
    ck_assert_msg(json_object_object_get_ex(o, key, &v), "no \"%s\"", key);
    return v;
}

static void expect_reply(const char *text) {
    char wanted[256];
    snprintf(wanted, sizeof wanted, "%s\n", text);
    driver_expect_ok(&d);
    ck_assert_str_eq(d.out_text.data, wanted);
}

START_TEST(a_prompt_from_each_place) {
    const char *file = tmp_path("prompt.txt");
    tmp_write(file, "Hi\n", 3);
    driver_run(&d, "", "-m", model, "-p", "Hi", NULL);
    expect_reply(reply_text);
    driver_free(&d);
    driver_run(&d, "", "-m", model, "-f", file, NULL);
    expect_reply(reply_text);
    driver_free(&d);
    driver_run(&d, "Hi there\xff\xfe", "-m", model, NULL);
    expect_reply(reply_text);
    driver_free(&d);
    driver_run(&d, "Hi", "-m", model, "-f", "-", NULL);
    expect_reply(reply_text);
}
END_TEST

static int prompt_tokens(void) {
    struct json_object *o = driver_json(&d);
    int n = json_object_get_int(member(o, "prompt_tokens"));
    json_object_put(o);
    driver_free(&d);
    return n;
}

/* Data goes before the text, an empty line between them: by the length of the prompt, and, since
 * the chain begins behind a line end, by what stands at its end. */
START_TEST(standard_input_beside_a_prompt) {
    char file[256], base[256];
    struct markov m;
    snprintf(file, sizeof file, "%s", tmp_path("data.txt"));
    snprintf(base, sizeof base, "%s", tmp_path("base.gguf"));
    tmp_write(file, "some data", 9);
    driver_run(&d, "", "-m", model, "-p", "some data\n\nHi", "--json", NULL);
    int both = prompt_tokens();
    driver_run(&d, "some data", "-m", model, "-p", "Hi", "--json", NULL);
    ck_assert_int_eq(prompt_tokens(), both);
    driver_run(&d, "some data\n", "-m", model, "-p", "Hi", "--json", NULL);
    ck_assert_int_eq(prompt_tokens(), both);
    driver_run(&d, "", "-m", model, "-p", "Hi", "-f", file, "--json", NULL);
    ck_assert_int_eq(prompt_tokens(), both);
    driver_run(&d, "some data", "-m", model, "-p", "Hi", "-f", "-", "--json", NULL);
    ck_assert_int_eq(prompt_tokens(), both);
    driver_run(&d, "some data", "-m", model, "-p", "", "--json", NULL);
    ck_assert_int_eq(prompt_tokens(), both - 2); /* "Hi" */
    markov_init(&m);
    m.chat_template = NULL;
    markov_text(&m, "begun");
    markov_save(&m, base);
    markov_free(&m);
    driver_run(&d, "some data", "-m", base, "-p", "Hi\n", "-n", "1", NULL);
    expect_reply("begun");
}
END_TEST

static void shell(const char *command, struct cw_buf *output) {
    FILE *out = popen(command, "r");
    ck_assert_ptr_nonnull(out);
    for (int c; (c = fgetc(out)) != EOF;) {
        cw_buf_putc(output, (char)c);
    }
    ck_assert_int_eq(pclose(out), 0);
}

/* A loop's own input is no data; what comes late is. */
START_TEST(whose_input_it_is) {
    char command[1024];
    struct cw_buf counts = {0};
    snprintf(command, sizeof command,
             "printf 'a\\nb\\nc\\n' | while read x; do '%s' -m '%s' -p Hi --json | "
             "sed 's/.*\"prompt_tokens\":\\([0-9]*\\).*/\\1/'; done",
             getenv("CHINWAG_BIN"), model);
    shell(command, &counts);
    driver_run(&d, "", "-m", model, "-p", "Hi", "--json", NULL);
    char three[64];
    int n = prompt_tokens();
    snprintf(three, sizeof three, "%d\n%d\n%d\n", n, n, n);
    ck_assert_str_eq(counts.data, three);
    cw_buf_clear(&counts);

    /* A file is data also where another program starts ours with it; what a loop has begun to read
     * is not. */
    char file[256];
    snprintf(file, sizeof file, "%s", tmp_path("input.txt"));
    tmp_write(file, "some data", 9);
    snprintf(command, sizeof command,
             "sh -c \"'%s' -m '%s' -p Hi --json; true\" <'%s' | "
             "sed 's/.*\"prompt_tokens\":\\([0-9]*\\).*/\\1/'",
             getenv("CHINWAG_BIN"), model, file);
    shell(command, &counts);
    driver_run(&d, "some data", "-m", model, "-p", "Hi", "--json", NULL);
    snprintf(three, sizeof three, "%d\n", prompt_tokens());
    ck_assert_str_eq(counts.data, three);
    cw_buf_clear(&counts);
    tmp_write(file, "a\nsome data", 11);
    snprintf(command, sizeof command,
             "{ read x; '%s' -m '%s' -p Hi --json; } <'%s' | "
             "sed 's/.*\"prompt_tokens\":\\([0-9]*\\).*/\\1/'",
             getenv("CHINWAG_BIN"), model, file);
    shell(command, &counts);
    snprintf(three, sizeof three, "%d\n", n);
    ck_assert_str_eq(counts.data, three);
    cw_buf_clear(&counts);

    snprintf(command, sizeof command,
             "{ sleep 4; printf 'some data'; } | '%s' -m '%s' -p Hi --json 2>/dev/null | "
             "sed 's/.*\"prompt_tokens\":\\([0-9]*\\).*/\\1/'",
             getenv("CHINWAG_BIN"), model);
    shell(command, &counts);
    driver_run(&d, "some data", "-m", model, "-p", "Hi", "--json", NULL);
    snprintf(three, sizeof three, "%d\n", prompt_tokens());
    ck_assert_str_eq(counts.data, three);
    cw_buf_free(&counts);
}
END_TEST

/* DRY lets a colon repeat, and looks at nothing before it: in a chat and in `generate` alike. */
START_TEST(colons_may_repeat) {
    char path[256];
    struct markov m;
    snprintf(path, sizeof path, "%s", tmp_path("colons.gguf"));
    markov_init(&m);
    markov_text(&m, "say ");
    markov_text(&m, ":");
    markov_loop(&m, 0);
    markov_save(&m, path);
    markov_free(&m);
    driver_run(&d, "", "-m", path, "-p", "Hi", "-n", "6", "--temp", "0", "--dry-multiplier", "100",
               "--dry-allowed-length", "1", NULL);
    expect_reply("say :say :say :");
    driver_free(&d);
    driver_run(&d, "", "generate", "-m", path, "--tokens", "10", "-n", "6", "--temp", "0",
               "--dry-multiplier", "100", "--dry-allowed-length", "1", NULL);
    struct json_object *o = driver_json(&d);
    ck_assert_str_eq(json_object_get_string(member(o, "text")), "say :say :say :");
    json_object_put(o);
}
END_TEST

/* Without an answer standard error says why there is nothing. */
START_TEST(a_thought_without_an_answer) {
    char path[256];
    struct markov m;
    snprintf(path, sizeof path, "%s", tmp_path("thinks.gguf"));
    markov_init(&m);
    markov_control(&m, MARKOV_THINK);
    markov_text(&m, "hm");
    markov_text(&m, "hum");
    markov_control(&m, MARKOV_END_THINK);
    markov_text(&m, "yes");
    markov_save(&m, path);
    markov_free(&m);
    driver_run(&d, "", "-m", path, "-p", "Hi", NULL);
    expect_reply("yes");
    ck_assert_uint_eq(d.notes.len, 0);
    driver_free(&d);
    driver_run(&d, "", "-m", path, "-p", "Hi", "-n", "2", NULL);
    expect_reply("");
    ck_assert_ptr_nonnull(strstr(d.notes.data, "the reply ended while the model thought"));
    driver_free(&d);
    driver_run(&d, "", "-m", path, "-p", "Hi", "--think", "on", NULL); /* ChatML knows no switch */
    expect_reply("yes");
    ck_assert_ptr_nonnull(strstr(d.notes.data, "has no switch for thinking"));
}
END_TEST

START_TEST(json_has_ids_and_figures) {
    driver_run(&d, "", "-m", model, "-p", "Hi", "--json", "-s", "7", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    /* The stray byte cannot stand in JSON. */
    ck_assert_str_eq(json_object_get_string(member(o, "text")),
                     "Hello, w\xc3\xb6rld 100%n %s\x1b[31m\xef\xbf\xbd! END tail");
    struct json_object *tokens = member(o, "tokens");
    size_t n = json_object_array_length(tokens);
    ck_assert_uint_ge(n, sizeof reply / sizeof *reply + 1);
    ck_assert_int_eq(json_object_get_int(json_object_array_get_idx(tokens, n - 1)), MARKOV_END);
    ck_assert_str_eq(json_object_get_string(member(o, "stop")), "eos");
    ck_assert_int_eq(json_object_get_int(member(o, "seed")), 7);
    ck_assert_int_gt(json_object_get_int(member(o, "prompt_tokens")), 10);
    ck_assert_double_gt(json_object_get_double(member(o, "ttft_ms")), 0);
    ck_assert_double_ge(json_object_get_double(member(o, "ttft_ms")),
                        json_object_get_double(member(o, "prompt_ms")));
    json_object_put(o);
}
END_TEST

START_TEST(limits_and_stops) {
    driver_run(&d, "", "-m", model, "-p", "Hi", "-n", "2", NULL);
    expect_reply("Hello, ");
    driver_free(&d);
    driver_run(&d, "", "-m", model, "-p", "Hi", "-n", "0", NULL);
    expect_reply("");
    driver_free(&d);
    driver_run(&d, "", "-m", model, "-p", "Hi", "--stop", "END", "--stop", "nothing", NULL);
    expect_reply("Hello, w\xc3\xb6rld 100%n %s\x1b[31m\xff! ");
    driver_free(&d);
    /* A stop string over the border of two tokens, and a near miss. */
    driver_run(&d, "", "-m", model, "-p", "Hi", "-r", "llo, w", "-r", "lloX", NULL);
    expect_reply("He");
    driver_free(&d);
    driver_run(&d, "", "-m", model, "-p", "Hi", "--stop", " tailor", NULL);
    expect_reply(reply_text);
}
END_TEST

START_TEST(the_context_is_full) {
    driver_run(&d, "", "-m", endless, "-p", "Hi", "-c", "256", "--json", NULL);
    ck_assert_int_eq(d.status, 0);
    ck_assert_ptr_nonnull(strstr(d.notes.data, "the context of 256 tokens is full"));
    struct json_object *o = driver_json(&d);
    ck_assert_str_eq(json_object_get_string(member(o, "stop")), "context");
    json_object_put(o);
    driver_free(&d);
    char *text = malloc(5001);
    memset(text, 'x', 5000);
    text[5000] = '\0';
    driver_run(&d, text, "-m", endless, "-c", "256", NULL);
    ck_assert_int_eq(d.status, 1);
    ck_assert_ptr_nonnull(strstr(d.err_text.data, "256"));
    ck_assert_str_eq(d.out_text.data, "");
    free(text);
}
END_TEST

START_TEST(nothing_to_answer) {
    driver_run(&d, "", "-m", model, NULL);
    driver_expect(&d, 1, "prompt: empty: there is nothing to answer");
    driver_free(&d);
    driver_run(&d, "", "-m", model, "-p", "", NULL);
    driver_expect(&d, 1, "there is nothing to answer");
    driver_free(&d);
    driver_run(&d, "", "-m", model, "-f", "/no/such/file", NULL);
    driver_expect(&d, 1, "prompt: /no/such/file: No such file");
    driver_free(&d);
    d.no_stdin = true;
    driver_start(&d, (const char *const[]){"-m", model, NULL});
    driver_finish(&d, "", 0);
    driver_expect(&d, 1, "standard input: Bad file descriptor");
}
END_TEST

START_TEST(output_gone_or_full) {
    d.out_path = "/dev/full";
    driver_start(&d, (const char *const[]){"-m", model, "-p", "Hi", NULL});
    driver_finish(&d, "", 0);
    driver_expect(&d, 1, "standard output: No space left");
    driver_free(&d);
    /* Closed: and nothing that is opened later may take its place. */
    d.no_stdout = true;
    driver_start(&d, (const char *const[]){"-m", model, "-p", "Hi", NULL});
    driver_finish(&d, "", 0);
    driver_expect(&d, 1, "standard output: Bad file descriptor");
    driver_free(&d);
    /* As `chinwag ... | head -c 20`: the reader goes in mid-reply of an endless one. */
    driver_start(&d, (const char *const[]){"-m", endless, "-p", "Hi", NULL});
    driver_end_input(&d);
    ck_assert_uint_ge(driver_read(&d, 20), 20);
    close(d.out);
    d.out = -1;
    driver_finish(&d, "", 0);
    ck_assert_int_eq(d.status, 1);
    ck_assert_str_eq(d.err_text.data, "");
}
END_TEST

START_TEST(interrupted) {
    driver_start(&d, (const char *const[]){"-m", endless, "-p", "Hi", NULL});
    driver_end_input(&d);
    ck_assert_uint_ge(driver_read(&d, 30), 30);
    kill(d.pid, SIGINT);
    driver_finish(&d, "", 0);
    ck_assert_int_eq(d.status, 130);
    ck_assert_str_eq(d.err_text.data, "");
    ck_assert_int_eq(strncmp(d.out_text.data, "again and again and again ", 26), 0);
    ck_assert_int_eq(d.out_text.data[d.out_text.len - 1], '\n');
    driver_free(&d);
    /* The reply so far is whole in JSON too. */
    driver_start(
        &d, (const char *const[]){"-m", endless, "-p", "Hi", "--json", "-n", "100000000", NULL});
    driver_end_input(&d);
    usleep(1000); /* anywhere: loading, prompt or reply */
    kill(d.pid, SIGINT);
    driver_finish(&d, "", 0);
    ck_assert_int_eq(d.status, 130);
}
END_TEST

/* A reader that has stalled does not keep SIGINT from ending it. */
START_TEST(interrupted_while_writing) {
    int pending = 0;
    int before = -1;
    int status;
    driver_start(&d, (const char *const[]){"-m", endless, "-p", "Hi", NULL});
    ck_assert_int_gt(fcntl(d.out, F_SETPIPE_SZ, 4096), 0);
    driver_end_input(&d);
    while (pending == 0 || pending != before) { /* until the pipe takes no more */
        before = pending;
        usleep(50000);
        ck_assert_int_eq(ioctl(d.out, FIONREAD, &pending), 0);
    }
    kill(d.pid, SIGINT);
    ck_assert_int_eq(waitpid(d.pid, &status, 0), d.pid); /* without a byte being read */
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 130);
}
END_TEST

START_TEST(a_terminal_gets_nothing_that_acts) {
    d.pty = true;
    driver_start(&d, (const char *const[]){"-m", model, "-p", "Hi", NULL});
    driver_finish(&d, "", 0);
    driver_expect_ok(&d);
    ck_assert_ptr_null(strchr(d.out_text.data, '\x1b'));
    ck_assert_ptr_nonnull(strstr(d.out_text.data, "100%n %s\\x1B[31m\\xFF! END tail\r\n"));
}
END_TEST

START_TEST(settings_from_all_places) {
    char config[600];
    char line[128];
    snprintf(config, sizeof config, "%s", tmp_path("config.ini"));
    tmp_write(config, "predict = 2\nunknown_thing = 3\n", 30);
    driver_run(&d, "", "-m", model, "-p", "Hi", "--config", config, NULL);
    ck_assert_int_eq(d.status, 0);
    ck_assert_str_eq(d.out_text.data, "Hello, \n");
    ck_assert_ptr_nonnull(strstr(d.notes.data, "config.ini:2: unknown option 'unknown_thing'"));
    driver_free(&d);
    driver_run(&d, "", "-m", model, "-p", "Hi", "--config", config, "-n", "1", NULL);
    ck_assert_str_eq(d.out_text.data, "Hello\n");
    driver_free(&d);
    tmp_write(config, "predict = 2\ntemp = 77\n", 22);
    driver_run(&d, "", "-m", model, "-p", "Hi", "--config", config, NULL);
    driver_expect(&d, 1, "config.ini:2: temp: 77 is more than 5");
    driver_free(&d);
    driver_run(&d, "", "-m", model, "-p", "Hi", "--config", "/no/config", NULL);
    driver_expect(&d, 1, "config: /no/config: No such file");
    driver_free(&d);
    /* Where it is looked for without the flag. */
    char dir[1024];
    char path[1100];
    snprintf(dir, sizeof dir, "%s/.config", driver_home());
    snprintf(line, sizeof line, "predict = 3\n");
    ck_assert_int_eq(system(NULL) != 0, 1);
    snprintf(path, sizeof path, "mkdir -p %s/chinwag", dir);
    ck_assert_int_eq(system(path), 0);
    snprintf(path, sizeof path, "%s/chinwag/config.ini", dir);
    tmp_write(path, line, strlen(line));
    driver_run(&d, "", "-m", model, "-p", "Hi", NULL);
    expect_reply("Hello, w"); /* and not half a character */
}
END_TEST

START_TEST(the_file_s_own_temperature) {
    /* At a temperature of 5 and logits of 20 and 0 the chain goes astray; T 0 does not. */
    struct markov m;
    const char *path = tmp_path("hot.gguf");
    markov_init(&m);
    m.temp = 5;
    m.logit = 10;
    for (size_t i = 0; i < sizeof reply / sizeof *reply; i++) {
        markov_text(&m, reply[i]);
    }
    markov_save(&m, path);
    markov_free(&m);
    driver_run(&d, "", "-m", path, "-p", "Hi", "-s", "1", "-n", "20", "--top-p", "1", NULL);
    driver_expect_ok(&d);
    ck_assert_ptr_null(strstr(d.out_text.data, "Hello, w\xc3\xb6rld 100%n %s"));
    driver_free(&d);
    driver_run(&d, "", "-m", path, "-p", "Hi", "-s", "1", "--temp", "0", NULL);
    expect_reply(reply_text);
}
END_TEST

static void recommend(struct mkgguf *g) {
    mkgguf_u32(g, "general.sampling.top_k", 40);
    mkgguf_u32(g, "general.sampling.mirostat", 2);
    mkgguf_u32(g, "general.sampling.switched_off", 0);
    mkgguf_u32(g, "tokenizer.ggml.suppress_tokens", 1);
}

/* What a file recommends and nobody here can follow is among what is not used. */
START_TEST(recommendations_not_followed) {
    char path[256];
    struct markov m;
    snprintf(path, sizeof path, "%s", tmp_path("recommends.gguf"));
    markov_init(&m);
    markov_text(&m, "yes");
    m.keys = recommend;
    markov_save(&m, path);
    markov_free(&m);
    driver_run(&d, "", "info", path, "--json", NULL);
    struct json_object *o = driver_json(&d);
    const char *unused = json_object_get_string(member(o, "unused_keys"));
    ck_assert_ptr_nonnull(strstr(unused, "general.sampling.mirostat"));
    ck_assert_ptr_null(strstr(unused, "top_k"));
    json_object_put(o);
    driver_free(&d);
    driver_run(&d, "", "-m", path, "-p", "Hi", NULL);
    expect_reply("yes");
    ck_assert_ptr_nonnull(strstr(d.notes.data, "not used: general.sampling.mirostat, "
                                               "tokenizer.ggml.suppress_tokens"));
}
END_TEST

START_TEST(a_home_that_is_none) {
    static const char *const homes[] = {"HOME", "HOME=/dev/null", "HOME=/no/such/home", "HOME=x"};
    const char *const env[] = {homes[_i], "XDG_DATA_HOME=relative", "TERM", "LANG", "LC_ALL", NULL};
    d.env = env;
    driver_start(&d, (const char *const[]){"-m", model, "-p", "Hi", NULL});
    driver_finish(&d, "", 0);
    expect_reply(reply_text);
}
END_TEST

START_TEST(every_locale_gives_the_same_bytes) {
    static const char *const locales[] = {"LC_ALL=C", "LC_ALL=POSIX", "LC_ALL=xx_YY.UTF-8",
                                          "LC_ALL=de_DE.UTF-8", "LC_ALL="};
    const char *const env[] = {locales[_i], NULL};
    d.env = env;
    driver_start(&d, (const char *const[]){"-m", model, "-p", "gr\xc3\xbc\xc3\x9f dich", "--temp",
                                           "0.7", NULL});
    driver_finish(&d, "", 0);
    expect_reply(reply_text);
    driver_free(&d);
    d.env = env;
    driver_start(&d, (const char *const[]){"-m", model, "-p", "Hi", "--json", NULL});
    driver_finish(&d, "", 0);
    struct json_object *o = driver_json(&d);
    ck_assert_double_gt(json_object_get_double(member(o, "ttft_ms")), 0);
    json_object_put(o);
}
END_TEST

START_TEST(system_prompts) {
    const char *file = tmp_path("system.txt");
    tmp_write(file, "Be terse.\n", 10);
    driver_run(&d, "", "-m", model, "-p", "Hi", "--json", NULL);
    struct json_object *plain = driver_json(&d);
    driver_free(&d);
    driver_run(&d, "", "-m", model, "-p", "Hi", "--json", "-sysf", file, NULL);
    struct json_object *from_file = driver_json(&d);
    driver_free(&d);
    driver_run(&d, "", "-m", model, "-p", "Hi", "--json", "-sys", "Be terse.\n", NULL);
    struct json_object *from_flag = driver_json(&d);
    int without = json_object_get_int(member(plain, "prompt_tokens"));
    int with = json_object_get_int(member(from_flag, "prompt_tokens"));
    ck_assert_int_gt(with, without);
    ck_assert_int_eq(with, json_object_get_int(member(from_file, "prompt_tokens")));
    json_object_put(plain);
    json_object_put(from_file);
    json_object_put(from_flag);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("oneshot");
    TCase *t = tcase_create("replies");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_prompt_from_each_place);
    tcase_add_test(t, standard_input_beside_a_prompt);
    tcase_add_test(t, whose_input_it_is);
    tcase_add_test(t, a_thought_without_an_answer);
    tcase_add_test(t, colons_may_repeat);
    tcase_add_test(t, json_has_ids_and_figures);
    tcase_add_test(t, limits_and_stops);
    tcase_add_test(t, the_context_is_full);
    tcase_add_test(t, nothing_to_answer);
    tcase_add_test(t, settings_from_all_places);
    tcase_add_test(t, the_file_s_own_temperature);
    tcase_add_test(t, recommendations_not_followed);
    tcase_add_test(t, system_prompts);
    suite_add_tcase(suite, t);
    TCase *e = tcase_create("endings");
    tcase_set_timeout(e, 120);
    tcase_add_checked_fixture(e, setup, teardown);
    tcase_add_test(e, output_gone_or_full);
    tcase_add_test(e, interrupted);
    tcase_add_test(e, interrupted_while_writing);
    tcase_add_test(e, a_terminal_gets_nothing_that_acts);
    suite_add_tcase(suite, e);
    TCase *s = tcase_create("surroundings");
    tcase_set_timeout(s, 120);
    tcase_add_checked_fixture(s, setup, teardown);
    tcase_add_loop_test(s, a_home_that_is_none, 0, 4);
    tcase_add_loop_test(s, every_locale_gives_the_same_bytes, 0, 5);
    suite_add_tcase(suite, s);
    SRunner *sr = srunner_create(suite);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
