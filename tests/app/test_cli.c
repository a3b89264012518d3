/* SPDX-License-Identifier: MIT
 *
 * The machine commands as a script sees them: formats, exit status, wrong usage, and every kind of
 * bad model file. Runs the real program.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/cli.h"
#include "tests/app/driver.h"
#include "tests/support/markov.h"
#include "tests/support/mkgguf.h"

static struct driver d;

static void teardown(void) {
    driver_free(&d);
}

static const char *tail(void) {
    return driver_model("tiny-tail-Q8_0.gguf");
}

static struct json_object *member(struct json_object *o, const char *key) {
    struct json_object *v = NULL;
    ck_assert_msg(json_object_object_get_ex(o, key, &v), "no \"%s\"", key);
    return v;
}

static const char *member_text(struct json_object *o, const char *key) {
    return json_object_get_string(member(o, key));
}

/* ---- usage ---------------------------------------------------------------------------------- */

static const char *const commands[] = {
    "info",          "tokenize", "render", "logits", "generate", "perplexity", "bench",
    "conversations", "export",   "import", "delete", "forget",   "man",        "completion"};

START_TEST(version_and_help) {
    driver_run(&d, "", "--version", NULL);
    driver_expect_ok(&d);
    ck_assert_str_eq(d.out_text.data, "chinwag " CHINWAG_VERSION "\n");
    driver_free(&d);
    driver_run(&d, "", "--help", NULL);
    driver_expect_ok(&d);
    /* Every command and every option of the table is in it. */
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char line[64];
        snprintf(line, sizeof line, "\n  %s ", commands[i]);
        ck_assert_msg(strstr(d.out_text.data, line) != NULL, "help lacks %s", commands[i]);
    }
    for (size_t i = 0; i < app_n_options; i++) {
        ck_assert_msg(strstr(d.out_text.data, app_options[i].name) != NULL, "help lacks --%s",
                      app_options[i].name);
    }
    for (const char *p = d.out_text.data; *p; p++) {
        const char *end = strchr(p, '\n');
        ck_assert_msg(end - p <= 79, "too wide: %.90s", p);
        p = end;
    }
}
END_TEST

START_TEST(every_command_has_help) {
    const char *const command = commands[_i];
    char head[64];
    driver_run(&d, "", command, "--help", NULL);
    driver_expect_ok(&d);
    snprintf(head, sizeof head, "usage: chinwag %s", command);
    ck_assert_msg(strncmp(d.out_text.data, head, strlen(head)) == 0, "%.80s", d.out_text.data);
}
END_TEST

static const struct {
    const char *args[6];
    const char *says;
} wrong[] = {
    {{"--no-such-option"}, "--no-such-option: no such option"},
    {{"frobnicate"}, "frobnicate: no such command (see"},
    {{"inof"}, "inof: no such command; did you mean info? (see"},
    {{"--temprature", "1"}, "--temprature: no such option; did you mean --temperature? (see"},
    {{"-temp", "1"}, "did you mean --temp?"},
    {{"--no-colr"}, "--no-colr: no such option; did you mean --no-color? (see"},
    {{"--xyz"}, "--xyz: no such option (see"},
    {{"\xff\x1b"}, "\\xFF\\x1B: no such command (see"},
    {{"logits", "--token", "1"}, "logits: --token: no such option; did you mean --tokens?"},
    {{"tokenize", "--temperature", "1"}, "--temperature: no such option (see"},
    {{"--temp"}, "--temp: T is missing"},
    {{"--temp", "9"}, "temp: 9 is more than 5"},
    {{"--temp=0,7"}, "'0,7' is not a number"},
    {{"--no-temp"}, "no such option"},
    {{"--no-exact=on"}, "takes no value"},
    {{"--version=1"}, "takes no value"},
    {{"logits", "--tokens", "1,2", "--all=1"}, "takes no value"},
    {{"logits"}, "--tokens is missing"},
    {{"logits", "--tokens", ""}, "one at least"},
    {{"logits", "--tokens", "1,-2"}, "'-' where a token id"},
    {{"logits", "--tokens", "1,2147483648"}, "above"},
    {{"logits", "--tokens", "1", "--top", "0"}, "not between"},
    {{"logits", "--tokens", "1", "--temp", "1"}, "--temp: no such option"},
    {{"logits", "--tokens", "1", "file"}, "takes no such argument"},
    {{"generate"}, "--tokens is missing"},
    {{"generate", "--tokens", "1", "--at", "temp=0"}, "is not N:KEY=VALUE"},
    {{"generate", "--tokens", "1", "--at", "x:temp=0"}, "not the number"},
    {{"generate", "--tokens", "1", "--at", "-1:temp=0"}, "not the number"},
    {{"generate", "--tokens", "1", "--at", "1:ctx=5"}, "no setting that can change"},
    {{"generate", "--tokens", "1", "--at", "1:top-p=2"}, "more than 1"},
    {{"tokenize", "--jsonl", "--json"}, "--jsonl goes with"},
    {{"render", "--now", "2025-02-31T00:00:00"}, "is not a time"},
    {{"render", "--now", "tomorrow"}, "is not a time"},
    {{"bench", "-d", "x"}, "not a list of depths"},
    {{"bench", "-r", "0"}, "not between"},
    {{"perplexity"}, "-f is missing"},
    {{"info", "a", "b"}, "only one MODEL"},
};

START_TEST(wrong_usage) {
    memset(&d, 0, sizeof d);
    driver_start(&d, wrong[_i].args);
    driver_finish(&d, "", 0);
    driver_expect(&d, 2, wrong[_i].says);
    ck_assert_ptr_nonnull(strstr(d.err_text.data, "--help)"));
    ck_assert_uint_eq(d.out_text.len, 0);
}
END_TEST

/* A file alone is likely meant as the model. */
START_TEST(a_model_as_the_command) {
    driver_run(&d, "", tail(), NULL);
    driver_expect(&d, 2, "no such command; did you mean -m /");
}
END_TEST

/* ---- formats -------------------------------------------------------------------------------- */

START_TEST(logits_in_three_shapes) {
    driver_run(&d, "", "logits", "-m", tail(), "--tokens", "1,2,3,300", NULL);
    driver_expect_ok(&d);
    struct json_object *last = driver_json(&d);
    ck_assert_int_eq(json_object_get_int(member(last, "n_tokens")), 4);
    struct json_object *row = member(last, "logits");
    ck_assert_uint_eq(json_object_array_length(row), 333);
    /* As many digits as tell every float from its neighbours: it reads back as what it was. */
    for (char *p = strchr(d.out_text.data, '[') + 1; *p != '}'; p += strspn(p, ",]")) {
        char digits[40];
        char *end;
        snprintf(digits, sizeof digits, "%.9g", (double)strtof(p, &end));
        ck_assert_msg(end > p && strncmp(p, digits, (size_t)(end - p)) == 0 &&
                          strlen(digits) == (size_t)(end - p),
                      "%.20s is not %s", p, digits);
        p = end;
    }
    driver_free(&d);

    driver_run(&d, "", "logits", "-m", tail(), "--tokens", "[1, 2, 3, 300]", "--all", NULL);
    driver_expect_ok(&d);
    struct json_object *all = driver_json(&d);
    struct json_object *rows = member(all, "logits");
    ck_assert_uint_eq(json_object_array_length(rows), 4);
    /* The last row is what was printed alone, digit by digit. */
    ck_assert_str_eq(json_object_to_json_string(json_object_array_get_idx(rows, 3)),
                     json_object_to_json_string(row));
    driver_free(&d);

    driver_run(&d, "", "logits", "-m", tail(), "--tokens", "1,2,3,300", "--top", "5", NULL);
    driver_expect_ok(&d);
    struct json_object *top = driver_json(&d);
    struct json_object *pairs = member(top, "logits");
    ck_assert_uint_eq(json_object_array_length(pairs), 5);
    double before = INFINITY;
    for (size_t i = 0; i < 5; i++) {
        struct json_object *pair = json_object_array_get_idx(pairs, i);
        int id = json_object_get_int(json_object_array_get_idx(pair, 0));
        double logit = json_object_get_double(json_object_array_get_idx(pair, 1));
        ck_assert(logit <= before);
        ck_assert_double_eq(logit,
                            json_object_get_double(json_object_array_get_idx(row, (size_t)id)));
        before = logit;
    }
    json_object_put(last);
    json_object_put(all);
    json_object_put(top);
}
END_TEST

START_TEST(equal_logits_rank_by_id) {
    static const char *const says[] = {"one", "two"};
    const char *path = tmp_path("chain.gguf");
    markov_write(path, says, 2); /* all logits but one are 0 */
    driver_run(&d, "", "logits", "-m", path, "--tokens", "10", "--top", "4", NULL);
    driver_expect(&d, 0, NULL);
    struct json_object *o = driver_json(&d);
    struct json_object *pairs = member(o, "logits");
    for (size_t i = 1; i < 4; i++) {
        struct json_object *pair = json_object_array_get_idx(pairs, i);
        ck_assert_int_eq(json_object_get_int(json_object_array_get_idx(pair, 0)), (int)i - 1);
    }
    json_object_put(o);
}
END_TEST

START_TEST(tokenize_there_and_back) {
    static const char text[] = "Hello \xe6\xad bytes\tand\n<|im_end|> \xf0\x9f\x98\x80";
    driver_run(&d, text, "tokenize", "-m", tail(), "--json", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    ck_assert_int_gt((int)json_object_array_length(member(o, "ids")), 10);
    json_object_put(o);
    char *ids = cw_buf_take(&d.out_text);
    driver_free(&d);
    driver_run(&d, ids, "tokenize", "-m", tail(), "--detokenize", NULL);
    driver_expect_ok(&d);
    ck_assert_uint_eq(d.out_text.len, sizeof text - 1);
    ck_assert_mem_eq(d.out_text.data, text, sizeof text - 1);
    driver_free(&d);
    free(ids);

    /* The plain form goes back as well. */
    driver_run(&d, "abc", "tokenize", "-m", tail(), NULL);
    driver_expect_ok(&d);
    ids = cw_buf_take(&d.out_text);
    driver_free(&d);
    driver_run(&d, ids, "tokenize", "-m", tail(), "--detokenize", "--json", NULL);
    ck_assert_str_eq(d.out_text.data, "{\"text\":\"abc\"}\n");
    free(ids);
}
END_TEST

/* No line of a pipe is too long. */
START_TEST(tokenize_one_long_line) {
    struct cw_buf line = {0};
    for (int i = 0; line.len < 300000; i++) {
        cw_buf_printf(&line, "%d ", i);
    }
    driver_run(&d, line.data, "tokenize", "-m", tail(), NULL);
    driver_expect_ok(&d);
    char *ids = cw_buf_take(&d.out_text);
    driver_free(&d);
    driver_run(&d, ids, "tokenize", "-m", tail(), "--detokenize", NULL);
    driver_expect_ok(&d);
    ck_assert_uint_eq(d.out_text.len, line.len);
    ck_assert_mem_eq(d.out_text.data, line.data, line.len);
    free(ids);
    cw_buf_free(&line);
}
END_TEST

START_TEST(tokenize_special_and_bos) {
    driver_run(&d, "<|im_end|>", "tokenize", "-m", tail(), "--special", NULL);
    driver_expect_ok(&d);
    ck_assert_str_eq(d.out_text.data, "319\n");
    driver_free(&d);
    driver_run(&d, "319", "tokenize", "-m", tail(), "--detokenize", "--special", NULL);
    ck_assert_str_eq(d.out_text.data, "<|im_end|>");
    driver_free(&d);
    driver_run(&d, "319", "tokenize", "-m", tail(), "--detokenize", NULL);
    ck_assert_str_eq(d.out_text.data, "");
    driver_free(&d);
    driver_run(&d, "", "tokenize", "-m", tail(), NULL);
    driver_expect_ok(&d);
    ck_assert_str_eq(d.out_text.data, "\n");
    driver_free(&d);
    driver_run(&d, "4000", "tokenize", "-m", tail(), "--detokenize", NULL);
    driver_expect(&d, 1, "a token id above 332");
}
END_TEST

START_TEST(tokenize_serves_lines) {
    driver_run(&d,
               "{\"text\":\"<|im_end|>\",\"parse_special\":true}\n"
               "{\"hex\":\"3c7C\"}\n"
               "{\"text\":\"\"}\n"
               "{\"hex\":\"3\"}\n"
               "[1]\n"
               "not json\n"
               "\n"
               "{\"text\":\"a\\u0000b\"}",
               "tokenize", "-m", tail(), "--jsonl", NULL);
    ck_assert_int_eq(d.status, 1); /* some requests were bad */
    const char *line = d.out_text.data;
    static const char *const wanted[] = {
        "{\"ids\":[319]}",        "{\"ids\":[",    "{\"ids\":[]}", "{\"error\":\"", "{\"error\":\"",
        "{\"error\":\"not valid", "{\"error\":\"", "{\"ids\":["};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        ck_assert_msg(strncmp(line, wanted[i], strlen(wanted[i])) == 0, "line %zu: %.80s", i, line);
        line = strchr(line, '\n');
        ck_assert_ptr_nonnull(line);
        line++;
    }
    ck_assert_str_eq(line, "");
}
END_TEST

/* An answer comes before the next request is sent: no buffering in between. */
START_TEST(tokenize_answers_at_once) {
    static const char request[] = "{\"text\":\"x\"}\n";
    const char *const args[] = {"tokenize", "-m", tail(), "--jsonl", NULL};
    memset(&d, 0, sizeof d);
    driver_start(&d, args);
    for (size_t i = 1; i <= 3; i++) {
        ck_assert_int_eq((int)write(d.in, request, sizeof request - 1), sizeof request - 1);
        size_t before = d.out_text.len;
        ck_assert_uint_gt(driver_read(&d, before + 1), before);
    }
    driver_finish(&d, "", 0);
    driver_expect_ok(&d);
}
END_TEST

START_TEST(render_from_a_model) {
    static const char messages[] = "[{\"role\":\"user\",\"content\":\"Hi \\u0041\\ud83d\\ude00\"}]";
    driver_run(&d, messages, "render", "-m", tail(), NULL);
    driver_expect_ok(&d);
    ck_assert_str_eq(d.out_text.data, "<|im_start|>user\nHi A\xf0\x9f\x98\x80<|im_end|>\n"
                                      "<|im_start|>assistant\n");
    driver_free(&d);
    driver_run(&d, messages, "render", "-m", tail(), "--no-generation-prompt", NULL);
    ck_assert_str_eq(d.out_text.data, "<|im_start|>user\nHi A\xf0\x9f\x98\x80<|im_end|>\n");
}
END_TEST

START_TEST(render_a_template_file) {
    const char *path = tmp_path("t.jinja");
    static const char source[] =
        "{{ bos_token }}{{ strftime_now('%Y-%m-%d %H:%M:%S %A') }}|{% for m in messages %}"
        "{{ m.role }}={{ m.content | trim }};{% endfor %}{{ eos_token }}"
        "{% if enable_thinking is defined %}{{ enable_thinking }}{% endif %}\n";
    tmp_write(path, source, sizeof source - 1);
    driver_run(&d,
               "[{\"role\":\"system\",\"content\":\" x \"},{\"role\":\"user\",\"content\":\"\"}]",
               "render", "--template", path, "--bos", "<s>", "--eos", "</s>", "--now",
               "2025-03-14T09:26:53", NULL);
    driver_expect_ok(&d);
    ck_assert_str_eq(d.out_text.data, "<s>2025-03-14 09:26:53 Friday|system=x;user=;</s>");
    driver_free(&d);
    driver_run(&d, "[]", "render", "--template", path, "--think", "off", "--now",
               "2025-03-14T09:26:53", NULL);
    driver_expect_ok(&d);
    ck_assert_str_eq(d.out_text.data, "2025-03-14 09:26:53 Friday|False");
}
END_TEST

static const struct {
    const char *messages, *says;
} bad_messages[] = {
    {"", "render: standard input: not valid JSON"},
    {"{}", "a list of messages"},
    {"[1]", "message 0 is not an object"},
    {"[{\"role\":\"user\"}]", "message 0 has no string \"content\""},
    {"[{\"role\":\"user\",\"content\":\"a\"},{\"content\":\"b\"}]",
     "message 1 has no string \"role\""},
    {"[{\"role\":\"u\\u0000x\",\"content\":\"a\"}]", "the role of message 0 holds a NUL"},
    {"[] []", "not valid JSON"},
    {"[", "it ends too early"},
};

START_TEST(bad_conversations) {
    driver_run(&d, bad_messages[_i].messages, "render", "-m", tail(), NULL);
    driver_expect(&d, 1, bad_messages[_i].says);
}
END_TEST

START_TEST(generate_prints_one_object) {
    driver_run(&d, "", "generate", "-m", tail(), "--tokens", "1,2,3", "-n", "6", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    ck_assert_uint_eq(json_object_array_length(member(o, "tokens")), 6);
    ck_assert_str_eq(member_text(o, "stop"), "length");
    static const char *const figures[] = {"prompt_ms", "ttft_ms", "eval_ms", "tokens_per_s"};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        ck_assert(json_object_is_type(member(o, figures[i]), json_type_double) ||
                  json_object_is_type(member(o, figures[i]), json_type_int));
    }
    ck_assert_double_ge(json_object_get_double(member(o, "ttft_ms")),
                        json_object_get_double(member(o, "prompt_ms")));
    ck_assert(json_object_is_type(member(o, "text"), json_type_string));
    json_object_put(o);
}
END_TEST

static char *tokens_of(const char *const *more) {
    const char *args[32] = {"generate", "-m", tail(), "--tokens", "1,2,3", "-n", "12"};
    size_t n = 7;
    while (*more) {
        args[n++] = *more++;
    }
    memset(&d, 0, sizeof d);
    driver_start(&d, args);
    driver_finish(&d, "", 0);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    char *text = strdup(json_object_to_json_string(member(o, "tokens")));
    json_object_put(o);
    driver_free(&d);
    return text;
}
#define TOKENS(...) tokens_of((const char *const[]){__VA_ARGS__, NULL})

START_TEST(seeds_and_changes_of_settings) {
    char *greedy = TOKENS("--ignore-eos");
    char *zero = TOKENS("--ignore-eos", "--temp", "0", "-s", "99");
    char *seven = TOKENS("--ignore-eos", "-s", "7");
    char *seven_again = TOKENS("--ignore-eos", "-s", "7", "-t", "1");
    char *eight = TOKENS("--ignore-eos", "-s", "8");
    char *nothing = TOKENS("--ignore-eos", "-s", "0", "--temp", "2");
    char *at_zero = TOKENS("--ignore-eos", "-s", "7", "--at", "0:temp=0");
    char *at_four = TOKENS("--ignore-eos", "-s", "7", "--at", "4:temp=0");
    char *late = TOKENS("--ignore-eos", "-s", "7", "--at", "12:temp=0");
    /* The later position wins though it was given first. */
    char *order = TOKENS("--ignore-eos", "-s", "7", "--at", "1:temp=0.8", "--at", "0:temp=0");
    ck_assert_str_eq(greedy, zero);
    ck_assert_str_eq(seven, seven_again);
    ck_assert_str_ne(seven, eight);
    ck_assert_str_ne(seven, greedy);
    ck_assert_str_ne(nothing, greedy);
    ck_assert_str_eq(at_zero, greedy);
    ck_assert_str_ne(at_four, seven);
    ck_assert_str_eq(late, seven);
    ck_assert_str_ne(order, greedy);
    ck_assert_int_ne(atoi(seven + 1), atoi(greedy + 1));
    ck_assert_int_eq(atoi(order + 1), atoi(greedy + 1));
    /* The first four draws came before the change. */
    const char *p = seven;
    for (int i = 0; i < 4; i++) {
        p = strchr(p + 1, ',');
    }
    ck_assert_int_eq(strncmp(seven, at_four, (size_t)(p - seven)), 0);
    char *all[] = {greedy, zero, seven, seven_again, eight, nothing, at_zero, at_four, late, order};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        free(all[i]);
    }
}
END_TEST

START_TEST(a_seed_unset_differs) {
    char *a = TOKENS("--ignore-eos", "--temp", "1");
    char *b = TOKENS("--ignore-eos", "--temp", "1");
    ck_assert_str_ne(a, b); /* 12 draws of 320 nearly even choices: never the same */
    free(a);
    free(b);
}
END_TEST

START_TEST(info_for_people_and_programs) {
    driver_run(&d, "", "info", tail(), NULL);
    driver_expect_ok(&d);
    ck_assert_ptr_nonnull(strstr(d.out_text.data, "architecture  llama"));
    ck_assert_ptr_nonnull(strstr(d.out_text.data, "exact: the same bits"));
    driver_free(&d);
    driver_run(&d, "", "info", tail(), "--json", "--tensors", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    ck_assert_str_eq(member_text(o, "architecture"), "llama");
    ck_assert(json_object_get_boolean(member(o, "exact")));
    ck_assert_int_eq(json_object_get_int(member(member(o, "hyperparameters"), "vocabulary")), 333);
    ck_assert_int_eq(json_object_get_int(member(member(o, "hyperparameters"), "key_width")), 80);
    ck_assert_uint_eq(json_object_array_length(member(o, "unsupported")), 0);
    int64_t sum = 0;
    int64_t bytes = 0;
    json_object_object_foreach(member(o, "tensors_by_type"), name, row) {
        ck_assert(*name);
        sum += json_object_get_int64(member(row, "n"));
        bytes += json_object_get_int64(member(row, "bytes"));
    }
    ck_assert_int_eq(sum, json_object_get_int64(member(o, "n_tensors")));
    ck_assert_int_eq(sum, (int64_t)json_object_array_length(member(o, "tensors")));
    ck_assert_int_eq(json_object_get_int64(member(member(o, "memory"), "weight_bytes")), bytes);
    ck_assert_str_eq(member_text(member(o, "metadata"), "general.architecture"), "llama");
    json_object_put(o);
}
END_TEST

START_TEST(info_tells_a_float_file) {
    driver_run(&d, "", "info", driver_model("tiny-qwen2-F32.gguf"), "--json", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    ck_assert(json_object_get_boolean(member(o, "float_file")));
    json_object_put(o);
    driver_free(&d);
    driver_run(&d, "", "info", driver_model("tiny-qwen2-F32.gguf"), "--json", "--exact", NULL);
    o = driver_json(&d);
    ck_assert(json_object_get_boolean(member(o, "exact")));
    ck_assert(!json_object_get_boolean(member(o, "blas")));
    json_object_put(o);
}
END_TEST

START_TEST(perplexity_of_a_text) {
    struct cw_buf text = {0};
    for (int i = 0; i < 400; i++) {
        cw_buf_printf(&text, "%d times %d is %d.\n", i, i, i * i);
    }
    driver_run(&d, text.data, "perplexity", "-m", tail(), "-f", "-", "--json", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    /* Random weights know nothing: about as bad as an even guess among 320 or worse. */
    ck_assert_double_gt(json_object_get_double(member(o, "all")), 100);
    ck_assert_double_gt(json_object_get_double(member(o, "half")), 100);
    ck_assert_int_eq(json_object_get_int64(member(o, "windows")),
                     json_object_get_int64(member(o, "tokens")) / 512);
    json_object_put(o);
    driver_free(&d);
    driver_run(&d, "short", "perplexity", "-m", tail(), "-f", "-", NULL);
    driver_expect(&d, 1, "perplexity: the text has");
    cw_buf_free(&text);
}
END_TEST

/* ---- bad files ------------------------------------------------------------------------------ */

START_TEST(no_model_at_all) {
    driver_run(&d, "", "logits", "--tokens", "1", NULL);
    driver_expect(&d, 1, "SmolLM2-135M-Instruct.Q4_1.gguf is not in");
    ck_assert_ptr_nonnull(strstr(d.err_text.data, "fetch"));
    driver_free(&d);
    driver_run(&d, "", "-p", "hi", NULL);
    driver_expect(&d, 1, "SmolLM2-135M-Instruct.Q4_1.gguf is not in");
    driver_free(&d);
    const char *const env[] = {"HOME", NULL};
    d.env = env;
    driver_start(&d, (const char *const[]){"-p", "hi", NULL});
    driver_finish(&d, "", 0);
    driver_expect(&d, 1, "HOME is not set");
}
END_TEST

START_TEST(model_names) {
    char dir[4096];
    char path[4200];
    snprintf(dir, sizeof dir, "%s/data", driver_home());
    snprintf(path, sizeof path, "%s/chinwag", dir);
    ck_assert(mkdir(dir, 0700) == 0 && mkdir(path, 0700) == 0);
    strcat(path, "/models");
    ck_assert(mkdir(path, 0700) == 0);
    strcat(path, "/Tiny-Tail-Q8.gguf");
    ck_assert_int_eq(symlink(tail(), path), 0);
    char data[4200];
    snprintf(data, sizeof data, "XDG_DATA_HOME=%s", dir);
    const char *const env[] = {data, NULL};
    static const struct {
        const char *name;
        const char *says; /* NULL: found */
    } names[] = {
        {"Tiny-Tail-Q8.gguf", NULL},          {"Tiny-Tail-Q8", NULL},     {"tiny", NULL},
        {"other", "no such file here or in"}, {"./tiny", "No such file"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        memset(&d, 0, sizeof d);
        d.env = env;
        const char *const args[] = {"logits", "-m", names[i].name, "--tokens", "1", NULL};
        driver_start(&d, args);
        driver_finish(&d, "", 0);
        driver_expect(&d, names[i].says ? 1 : 0, names[i].says);
        driver_free(&d);
    }
    /* A second one makes the beginning mean two. */
    char second[4200];
    snprintf(second, sizeof second, "%s/chinwag/models/tiny-other.gguf", dir);
    ck_assert_int_eq(symlink(tail(), second), 0);
    memset(&d, 0, sizeof d);
    d.env = env;
    driver_start(&d, (const char *const[]){"logits", "-m", "tiny", "--tokens", "1", NULL});
    driver_finish(&d, "", 0);
    driver_expect(&d, 1, "tiny: 2 files in");
    unlink(second);
    unlink(path);
}
END_TEST

static void patch(const char *to, const char *what, const char *with) {
    struct cw_err err;
    size_t len;
    char *bytes = cli_read_file(tail(), &len, &err);
    ck_assert_msg(bytes != NULL, "%s", err.text);
    char *at = memmem(bytes, len, what, strlen(what));
    ck_assert_msg(at != NULL, "the model holds no %s", what);
    memcpy(at, with, strlen(with));
    tmp_write(to, bytes, len);
    free(bytes);
}

static bool keep_all_but(void *arg, struct cw_str name) {
    return !cw_str_eq(name, arg);
}

/* The model without one key. */
static void drop_key(const char *to, const char *key) {
    struct cw_gguf *g;
    struct cw_err err;
    struct mkgguf m;
    ck_assert_int_eq(cw_gguf_open(&g, tail(), &err), CW_OK);
    mkgguf_init(&m);
    mkgguf_copy_keys(&m, g, keep_all_but, (void *)key);
    mkgguf_copy_tensors(&m, g, NULL, NULL);
    mkgguf_save(&m, to);
    mkgguf_free(&m);
    cw_gguf_close(g);
}

static void expect_refused(const char *path, const char *says) {
    const char *const ways[][8] = {
        {"logits", "-m", path, "--tokens", "1", NULL},
        {"generate", "-m", path, "--tokens", "1", "-n", "1", NULL},
        {"-m", path, "-p", "hi", NULL},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        memset(&d, 0, sizeof d);
        driver_start(&d, ways[i]);
        driver_finish(&d, "", 0);
        driver_expect(&d, 1, says);
        ck_assert_uint_eq(d.out_text.len, 0);
        driver_free(&d);
    }
}

START_TEST(files_that_are_no_models) {
    const char *path = tmp_path("bad.gguf");
    expect_refused("/no/such/dir/model.gguf", "/no/such/dir/model.gguf: No such file");
    expect_refused("/tmp/", "directory");
    tmp_write(path, "", 0);
    expect_refused(path, "bad.gguf: ");
    tmp_write(path, "Once upon a time\n", 17);
    expect_refused(path, "not a GGUF file");
    patch(path, "GGUF\x03", "GGUF\x09");
    expect_refused(path, "version 9");
    patch(path, "GGUF\x03", "GGUF\x01");
    expect_refused(path, "version 1");
}
END_TEST

START_TEST(cut_files) {
    const char *path = tmp_path("cut.gguf");
    struct cw_err err;
    size_t len;
    char *bytes = cli_read_file(tail(), &len, &err);
    const size_t lengths[] = {4, 8, 23, 24, 100, 3000, len / 2, len - 40};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        tmp_write(path, bytes, lengths[i]);
        driver_run(&d, "", "logits", "-m", path, "--tokens", "1", NULL);
        driver_expect(&d, 1, "cut.gguf: ");
        driver_free(&d);
    }
    free(bytes);
}
END_TEST

START_TEST(models_of_another_kind) {
    const char *path = tmp_path("other.gguf");
    patch(path, "llama", "zebra"); /* the value of general.architecture stands first */
    expect_refused(path, "zebra");
    drop_key(path, "llama.block_count");
    expect_refused(path, "llama.block_count");
    drop_key(path, "general.architecture");
    expect_refused(path, "general.architecture");
}
END_TEST

START_TEST(an_unknown_tensor_type) {
    const char *path = tmp_path("type.gguf");
    struct mkgguf m;
    const uint64_t dims[] = {32, 1};
    mkgguf_init(&m);
    mkgguf_str(&m, "general.architecture", "llama");
    mkgguf_tensor(&m, "token_embd.weight", 16, 2, dims, "", 0); /* IQ2_XXS */
    mkgguf_save(&m, path);
    expect_refused(path, "token_embd.weight");
    mkgguf_free(&m);
}
END_TEST

START_TEST(no_vocabulary) {
    const char *path = tmp_path("mute.gguf");
    drop_key(path, "tokenizer.ggml.tokens");
    driver_run(&d, "x", "tokenize", "-m", path, NULL);
    driver_expect(&d, 1, "tokenizer.ggml.tokens");
    driver_free(&d);
    driver_run(&d, "", "-m", path, "-p", "hi", NULL);
    driver_expect(&d, 1, "tokenizer.ggml.tokens");
    driver_free(&d);
    /* What needs no text goes on. */
    driver_run(&d, "", "logits", "-m", path, "--tokens", "1", "--top", "1", NULL);
    driver_expect_ok(&d);
    driver_free(&d);
    drop_key(path, "tokenizer.ggml.model");
    driver_run(&d, "x", "tokenize", "-m", path, NULL);
    driver_expect(&d, 1, "tokenizer.ggml.model");
}
END_TEST

START_TEST(no_template_or_a_broken_one) {
    const char *path = tmp_path("plain.gguf");
    drop_key(path, "tokenizer.chat_template");
    driver_run(&d, "[]", "render", "-m", path, NULL);
    driver_expect(&d, 1, "no chat template");
    driver_free(&d);
    /* A base model goes on with the text as it is. */
    driver_run(&d, "", "-m", path, "-p", "hi", "-n", "4", "--temp", "0", "--json", NULL);
    driver_expect(&d, 0, NULL);
    struct json_object *o = driver_json(&d);
    ck_assert_int_lt(json_object_get_int(member(o, "prompt_tokens")), 3);
    json_object_put(o);
    driver_free(&d);

    patch(path, "{% for", "{% fxr");
    driver_run(&d, "[]", "render", "-m", path, NULL);
    driver_expect(&d, 1, "fxr");
    driver_free(&d);
    driver_run(&d, "", "-m", path, "-p", "hi", NULL);
    ck_assert_int_eq(d.status, 1);
    ck_assert_ptr_nonnull(strstr(d.err_text.data, "fxr"));
    ck_assert_ptr_nonnull(strstr(d.err_text.data, "(--chat-template NAME or FILE takes another)"));
    driver_free(&d);
    /* ... unless it gets another. */
    driver_run(&d, "", "-m", path, "-p", "hi", "-n", "1", "--chat-template",
               "{{ messages[0].content }}", NULL);
    driver_expect(&d, 0, NULL);
}
END_TEST

/* An unknown pre-tokenizer is refused on every way in, with the way out. */
START_TEST(an_unknown_pre_tokenizer) {
    const char *path = tmp_path("pre.gguf");
    patch(path, "gpt-2", "gpt-9"); /* of tokenizer.ggml.pre */
    const char *const ways[][6] = {{"-m", path, "-p", "hi", NULL},
                                   {"tokenize", "-m", path, NULL},
                                   {"generate", "-m", path, "--tokens", "1", NULL}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        driver_start(&d, ways[i]);
        driver_finish(&d, "", 0);
        driver_expect(&d, 1, "pre-tokenizer \"gpt-9\" is not known (--pre NAME reads the file");
        driver_free(&d);
    }
    driver_run(&d, "", "-m", path, "-p", "hi", "-n", "1", "--pre", "gpt-2", NULL);
    driver_expect(&d, 0, NULL);
}
END_TEST

START_TEST(prompts_longer_than_the_context) {
    driver_run(&d, "", "logits", "-m", tail(), "--tokens", "1,2,3,4,5", "-c", "4", NULL);
    driver_expect(&d, 1, "logits: ");
    ck_assert_uint_eq(d.out_text.len, 0);
    driver_free(&d);
    driver_run(&d, "", "generate", "-m", tail(), "--tokens", "1,2,3,4,5", "-c", "4", NULL);
    driver_expect(&d, 1, "generate: ");
    driver_free(&d);
    driver_run(&d, "", "logits", "-m", tail(), "--tokens", "1,333", NULL);
    driver_expect(&d, 1, "333");
}
END_TEST

/* ---- where output goes ---------------------------------------------------------------------- */

START_TEST(output_that_cannot_be_written) {
    d.out_path = "/dev/full";
    driver_start(&d, (const char *const[]){"--help", NULL});
    driver_finish(&d, "", 0);
    driver_expect(&d, 1, "standard output: No space left");
    driver_free(&d);
    /* Nobody reads: quiet, and no signal. */
    driver_start(&d, (const char *const[]){"logits", "-m", tail(), "--tokens",
                                           "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20",
                                           "--all", NULL});
    close(d.out);
    d.out = -1;
    driver_finish(&d, "", 0);
    ck_assert_int_eq(d.status, 1);
    ck_assert_str_eq(d.err_text.data, "");
}
END_TEST

START_TEST(standard_input_closed) {
    d.no_stdin = true;
    driver_start(&d, (const char *const[]){"tokenize", "-m", tail(), NULL});
    driver_finish(&d, "", 0);
    driver_expect(&d, 1, "standard input: Bad file descriptor");
}
END_TEST

int main(void) {
    const struct {
        const char *name;
        const TTest *test;
        int n;
    } tests[] = {
        {"usage", version_and_help, 1},
        {"usage", every_command_has_help, sizeof commands / sizeof *commands},
        {"usage", a_model_as_the_command, 1},
        {"usage", wrong_usage, (int)(sizeof wrong / sizeof *wrong)},
        {"formats", logits_in_three_shapes, 1},
        {"formats", equal_logits_rank_by_id, 1},
        {"formats", tokenize_there_and_back, 1},
        {"formats", tokenize_special_and_bos, 1},
        {"formats", tokenize_one_long_line, 1},
        {"formats", tokenize_serves_lines, 1},
        {"formats", tokenize_answers_at_once, 1},
        {"formats", render_from_a_model, 1},
        {"formats", render_a_template_file, 1},
        {"formats", bad_conversations, (int)(sizeof bad_messages / sizeof *bad_messages)},
        {"formats", generate_prints_one_object, 1},
        {"formats", seeds_and_changes_of_settings, 1},
        {"formats", a_seed_unset_differs, 1},
        {"formats", info_for_people_and_programs, 1},
        {"formats", info_tells_a_float_file, 1},
        {"formats", perplexity_of_a_text, 1},
        {"files", no_model_at_all, 1},
        {"files", model_names, 1},
        {"files", files_that_are_no_models, 1},
        {"files", cut_files, 1},
        {"files", models_of_another_kind, 1},
        {"files", an_unknown_tensor_type, 1},
        {"files", no_vocabulary, 1},
        {"files", no_template_or_a_broken_one, 1},
        {"files", an_unknown_pre_tokenizer, 1},
        {"files", prompts_longer_than_the_context, 1},
        {"output", output_that_cannot_be_written, 1},
        {"output", standard_input_closed, 1},
    };
    Suite *suite = suite_create("cli");
    TCase *t = NULL;
    const char *name = "";
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (strcmp(name, tests[i].name) != 0) {
            name = tests[i].name;
            t = tcase_create(name);
            tcase_set_timeout(t, 120);
            tcase_add_checked_fixture(t, NULL, teardown);
            suite_add_tcase(suite, t);
        }
        tcase_add_loop_test(t, tests[i].test, 0, tests[i].n);
    }
    SRunner *sr = srunner_create(suite);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
