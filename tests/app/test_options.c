/* SPDX-License-Identifier: MIT
 *
 * The option table: that every row holds together, types and ranges, the order of origins, and that
 * values survive being written and read again.
 */
#include <check.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/options.h"
#include "app/words.h"
#include "tests/support/comma_locale.h"

static struct app_settings s;
static struct cw_err err;

static void setup(void) {
    unsetenv("NO_COLOR");
    app_settings_init(&s);
    memset(&err, 0, sizeof err);
}

static void teardown(void) {
    app_settings_free(&s);
}

static const struct app_option *opt(const char *name) {
    const struct app_option *o = app_option_find(name);
    ck_assert_msg(o != NULL, "no option %s", name);
    return o;
}

static int set(const char *name, const char *value, enum app_origin origin) {
    return app_settings_set(&s, opt(name), value, origin, &err);
}

static void expect(const char *name, const char *value) {
    char *got = app_settings_get(&s, opt(name));
    ck_assert_msg(strcmp(got, value) == 0, "%s is '%s', not '%s'", name, got, value);
    free(got);
}

START_TEST(every_row_holds_together) {
    const struct app_option *o = &app_options[_i];
    ck_assert(*o->name && *o->help && o->builtin && o->flags && o->where);
    ck_assert_msg(o->help[strlen(o->help) - 1] == '.', "%s: help is a sentence", o->name);
    ck_assert_msg((o->kind == APP_BOOL) == (o->arg == NULL), "%s: arg", o->name);
    ck_assert_msg((o->kind == APP_CHOICE) == (o->choices != NULL), "%s: choices", o->name);
    ck_assert_ptr_eq(app_option_find(o->name), o);
    ck_assert(o->offset < sizeof s);
    ck_assert(strstr("model sampling engine interface", o->group) != NULL);
    /* A live setting is one of the block the generator loads for each token. */
    bool in_block = o->offset < sizeof(struct cw_sampling);
    ck_assert_msg(in_block == !!(o->where & APP_ON_LIVE), "%s: live", o->name);
    /* The built-in value is in range and is what a fresh struct holds. */
    char *fresh = app_settings_get(&s, o);
    ck_assert_int_eq(app_settings_set(&s, o, o->builtin, APP_LIVE, &err), CW_OK);
    expect(o->name, fresh);
    ck_assert_str_eq(fresh, o->builtin);
    free(fresh);
}
END_TEST

START_TEST(spellings_are_unique) {
    for (size_t i = 0; i < app_n_options; i++) {
        char *copy = strdup(app_options[i].flags);
        for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
            ck_assert(*word == '-');
            ck_assert_msg(app_option_find(word) == &app_options[i], "%s is taken", word);
        }
        free(copy);
    }
    ck_assert_ptr_eq(opt("-t"), opt("threads"));
    ck_assert_ptr_eq(opt("--threads"), opt("threads"));
    ck_assert_ptr_eq(opt("top_p"), opt("top-p"));
    ck_assert_ptr_null(app_option_find("tempx"));
    ck_assert_ptr_null(app_option_find("tem"));
    ck_assert_ptr_null(app_option_find(""));
    ck_assert_ptr_null(app_option_find("--"));
}
END_TEST

START_TEST(sampling_defaults_are_the_sampler_s) {
    struct cw_sampling d;
    cw_sampling_default(&d);
    ck_assert_float_eq(s.sampling.temp, d.temp);
    ck_assert_float_eq(s.sampling.top_p, d.top_p);
    ck_assert_int_eq(s.sampling.top_k, d.top_k);
    ck_assert_float_eq(s.sampling.min_p, d.min_p);
    ck_assert_float_eq(s.sampling.typical_p, d.typical_p);
    ck_assert_float_eq(s.sampling.penalty_repeat, d.penalty_repeat);
    ck_assert_float_eq(s.sampling.penalty_frequency, d.penalty_frequency);
    ck_assert_float_eq(s.sampling.penalty_presence, d.penalty_presence);
    ck_assert_float_eq(s.sampling.dry_multiplier, d.dry_multiplier);
    ck_assert_float_eq(s.sampling.xtc_probability, d.xtc_probability);
    ck_assert_int_eq(s.sampling.n_bias, 0);
    ck_assert_int_eq(cw_sampling_check(&s.sampling, &err), CW_OK);
}
END_TEST

/* What the table lets through, the sampler must take: the ends of every range. */
START_TEST(range_ends_pass_the_sampler) {
    const struct app_option *o = &app_options[_i];
    char text[40];
    if (!(o->where & APP_ON_LIVE) || o->kind == APP_BIAS) {
        return;
    }
    for (int end = 0; end < 2; end++) {
        snprintf(text, sizeof text, "%.10g", end ? o->max : o->min);
        ck_assert_int_eq(app_settings_set(&s, o, text, APP_LIVE, &err), CW_OK);
        ck_assert_msg(cw_sampling_check(&s.sampling, &err) == CW_OK, "%s = %s: %s", o->name, text,
                      err.text);
    }
}
END_TEST

static const struct {
    const char *name, *value, *says;
} refused[] = {
    {"temp", "-0.1", "less than 0"},
    {"temp", "5.01", "more than 5"},
    {"temp", "nan", "not a number"},
    {"temp", "inf", "not a number"},
    {"temp", "1e999", "not a number"},
    {"temp", "0x1", "not a number"},
    {"temp", "0,7", "not a number"},
    {"temp", " 0.7", "not a number"},
    {"temp", "0.7 ", "not a number"},
    {"temp", "0.7.1", "not a number"},
    {"temp", "", "not a number"},
    {"temp", "-", "not a number"},
    {"top-p", "1.5", "more than 1"},
    {"top-k", "-1", "less than 0"},
    {"top-k", "1.5", "not a whole number"},
    {"top-k", "99999999999999999999", "not a whole number"},
    {"top-k", "2147483648", "more than"},
    {"seed", "-2", "less than -1"},
    {"seed", "4294967296", "more than"},
    {"threads", "-3", "less than 0"},
    {"threads", "513", "more than"},
    {"isa", "avx3", "none of"},
    {"isa", "", "none of"},
    {"isa", "avx", "none of"},
    {"kv", "F16", "none of"},
    {"exact", "maybe", "neither on nor off"},
    {"logit-bias", "5", "token id, a sign"},
    {"logit-bias", "+5", "token id, a sign"},
    {"logit-bias", "5+inf", "only -inf"},
    {"logit-bias", "5--1", "token id, a sign"},
    {"logit-bias", "1-1,x", "token id, a sign"},
    {"logit-bias", "99999999999-1", "token id, a sign"},
};

START_TEST(bad_values_are_refused_and_change_nothing) {
    char *before = app_settings_get(&s, opt(refused[_i].name));
    ck_assert_int_eq(set(refused[_i].name, refused[_i].value, APP_FLAG), CW_EINVAL);
    ck_assert_msg(strstr(err.text, refused[_i].says) != NULL, "'%s' does not say '%s'", err.text,
                  refused[_i].says);
    ck_assert_msg(strncmp(err.text, refused[_i].name, strlen(refused[_i].name)) == 0,
                  "'%s' does not begin with %s", err.text, refused[_i].name);
    expect(refused[_i].name, before);
    ck_assert_int_eq(app_settings_origin(&s, opt(refused[_i].name)), APP_BUILTIN);
    free(before);
}
END_TEST

START_TEST(good_values_are_taken) {
    static const char *const rows[][3] = {
        {"temp", "0.7", "0.7"},
        {"temp", "5", "5"},
        {"temp", "1e-1", "0.1"},
        {"temp", ".5", "0.5"},
        {"top-k", "+40", "40"},
        {"seed", "0", "0"},
        {"seed", "4294967295", NULL},
        {"seed", "-1", "-1"},
        {"isa", "auto", "auto"},
        {"isa", "avx512", "avx512"},
        {"kv", "q8_0", "q8_0"},
        {"exact", "yes", "on"},
        {"exact", "0", "off"},
        {"think", "off", "off"},
        {"think", "auto", "auto"},
        {"system", "a\nb", "a\nb"},
        {"system", "", ""},
        {"logit-bias", "5-inf", NULL},
        {"logit-bias", "5+1.5 7-2", "5+1.5,7-2"},
        {"logit-bias", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_msg(set(rows[i][0], rows[i][1], APP_LIVE) == CW_OK, "%s", err.text);
        expect(rows[i][0], rows[i][2] ? rows[i][2] : rows[i][1]);
    }
    ck_assert_int_eq(set("isa", "auto", APP_LIVE), CW_OK);
    ck_assert_int_eq(s.isa, CW_ISA_AUTO);
    ck_assert_int_eq(set("isa", "avx512", APP_LIVE), CW_OK);
    ck_assert_int_eq(s.isa, CW_ISA_AVX512);
    ck_assert_int_eq(set("kv", "q8_0", APP_LIVE), CW_OK);
    ck_assert_int_eq(s.kv, CW_KV_Q8_0);
    ck_assert_int_eq(set("think", "on", APP_LIVE), CW_OK);
    ck_assert_int_eq(s.think, 1);
    ck_assert_int_eq(set("system", "", APP_LIVE), CW_OK);
    ck_assert_ptr_null(s.system);
}
END_TEST

/* The names of the table are those the core parses and prints. */
START_TEST(isa_names_are_the_core_s) {
    for (int i = CW_ISA_SCALAR; i < CW_N_ISAS; i++) {
        ck_assert_int_eq(set("isa", cw_isa_name((enum cw_isa)i), APP_LIVE), CW_OK);
        ck_assert_int_eq(s.isa, i);
    }
}
END_TEST

START_TEST(higher_origins_win_in_any_order) {
    ck_assert_int_eq(set("temp", "0.5", APP_FLAG), CW_OK);
    ck_assert_int_eq(set("temp", "0.2", APP_CONFIG), CW_OK);
    expect("temp", "0.5");
    ck_assert_int_eq(app_settings_origin(&s, opt("temp")), APP_FLAG);
    ck_assert_int_eq(set("temp", "0.3", APP_GGUF), CW_OK);
    expect("temp", "0.5");
    ck_assert_int_eq(set("temp", "1", APP_LIVE), CW_OK);
    expect("temp", "1");
    ck_assert_int_eq(set("temp", "0.9", APP_FLAG), CW_OK);
    expect("temp", "1");
    ck_assert_str_eq(app_origin_name(app_settings_origin(&s, opt("temp"))), "live");
    /* Hidden by a higher one, a mistake is told all the same. */
    ck_assert_int_eq(set("temp", "9", APP_CONFIG), CW_EINVAL);
    expect("temp", "1");
    ck_assert_int_eq(set("top-p", "0.2", APP_GGUF), CW_OK);
    ck_assert_int_eq(set("top-p", "0.3", APP_CONFIG), CW_OK);
    expect("top-p", "0.3");
}
END_TEST

START_TEST(the_file_s_sampling_comes_second) {
    struct cw_sampling file = {.temp = 0.25f, .top_p = 7, .top_k = 20, .min_p = 0.125f};
    ck_assert_int_eq(set("top-k", "3", APP_CONFIG), CW_OK);
    app_settings_from_file(&s, CW_SET_TEMP | CW_SET_TOP_P | CW_SET_TOP_K, &file);
    expect("temp", "0.25");
    expect("top-k", "3");
    expect("top-p", "0.95"); /* 7 is no probability */
    expect("min-p", "0");    /* not in the mask */
    ck_assert_int_eq(app_settings_origin(&s, opt("temp")), APP_GGUF);
    ck_assert_int_eq(app_settings_origin(&s, opt("top-p")), APP_BUILTIN);
    app_settings_free(&s);
    app_settings_init(&s);
    file.top_k = 40; /* a round number */
    file.penalty_last_n = -1;
    file.penalty_repeat = 1.25f;
    file.xtc_probability = 0.5f;
    file.xtc_threshold = 0.2f;
    app_settings_from_file(
        &s, CW_SET_TOP_K | CW_SET_LAST_N | CW_SET_REPEAT | CW_SET_XTC_P | CW_SET_XTC_T, &file);
    expect("top-k", "40");
    expect("repeat-last-n", "-1");
    expect("repeat-penalty", "1.25");
    expect("xtc-probability", "0.5");
    expect("xtc-threshold", "0.2");
    expect("temp", "0.8");
}
END_TEST

START_TEST(lists_add_up_within_an_origin) {
    ck_assert_int_eq(set("stop", "A", APP_CONFIG), CW_OK);
    ck_assert_int_eq(set("stop", "B c", APP_CONFIG), CW_OK);
    expect("stop", "A\nB c");
    ck_assert_int_eq(set("stop", "X", APP_FLAG), CW_OK);
    ck_assert_int_eq(set("stop", "Y", APP_FLAG), CW_OK);
    ck_assert_int_eq(set("stop", "Z", APP_CONFIG), CW_OK);
    expect("stop", "X\nY");
    ck_assert_ptr_null(s.stops[2]);
    ck_assert_int_eq(set("stop", "L", APP_LIVE), CW_OK);
    ck_assert_int_eq(set("stop", "M", APP_LIVE), CW_OK);
    expect("stop", "M");
    ck_assert_int_eq(set("stop", "", APP_LIVE), CW_OK);
    ck_assert_ptr_null(s.stops);

    /* config.ini has no other way to write a line end */
    ck_assert_int_eq(set("stop", "a\\nb\\\\n\\t\\q\\", APP_LIVE), CW_OK);
    ck_assert_str_eq(s.stops[0], "a\nb\\n\t\\q\\");
    char *shown = app_settings_get(&s, opt("stop"));
    ck_assert_str_eq(shown, "a\\nb\\\\n\\t\\\\q\\\\");
    ck_assert_int_eq(set("stop", shown, APP_LIVE), CW_OK);
    ck_assert_str_eq(s.stops[0], "a\nb\\n\t\\q\\");
    free(shown);
    ck_assert_int_eq(set("stop", "", APP_LIVE), CW_OK);

    ck_assert_int_eq(set("logit-bias", "5-1", APP_FLAG), CW_OK);
    ck_assert_int_eq(set("logit-bias", "6-inf", APP_FLAG), CW_OK);
    ck_assert_int_eq(s.sampling.n_bias, 2);
    ck_assert_int_eq(s.sampling.bias[1].id, 6);
    ck_assert(isinf(s.sampling.bias[1].bias) && s.sampling.bias[1].bias < 0);
    /* One too many leaves the list as it was. */
    for (int i = 2; i < CW_MAX_BIAS; i++) {
        ck_assert_int_eq(set("logit-bias", "7+1", APP_FLAG), CW_OK);
    }
    ck_assert_int_eq(set("logit-bias", "8+1", APP_FLAG), CW_EINVAL);
    ck_assert_int_eq(s.sampling.n_bias, CW_MAX_BIAS);
}
END_TEST

START_TEST(floats_print_shortest_and_read_back) {
    static const float values[] = {0.8f,  0.95f,       0,     1,           1e-6f, 3.4e38f,
                                   0.05f, 0.1f + 0.2f, -2.5f, 16777216.0f, 1e10f};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char text[40];
        app_print_float(text, sizeof text, values[i]);
        ck_assert_float_eq(strtof(text, NULL), values[i]);
        ck_assert(strlen(text) < 16);
    }
    char text[40];
    app_print_float(text, sizeof text, 0.8f);
    ck_assert_str_eq(text, "0.8");
}
END_TEST

START_TEST(no_color_is_obeyed) {
    setenv("NO_COLOR", "1", 1);
    app_settings_free(&s);
    app_settings_init(&s);
    ck_assert(!s.color);
    setenv("NO_COLOR", "", 1);
    app_settings_free(&s);
    app_settings_init(&s);
    ck_assert(s.color);
}
END_TEST

/* A value may be set to the string that get returned, or to itself. */
START_TEST(setting_a_string_to_itself) {
    ck_assert_int_eq(set("system", "be brief", APP_LIVE), CW_OK);
    ck_assert_int_eq(set("system", s.system, APP_LIVE), CW_OK);
    ck_assert_str_eq(s.system, "be brief");
}
END_TEST

START_TEST(numbers_have_a_point_in_every_locale) {
    struct comma_locale comma = comma_locale_make();
    bool set_it = setlocale(LC_NUMERIC, "de_DE.utf8") != NULL;
    comma_locale_remove(&comma);
    ck_assert(set_it || !comma.made);
    if (!set_it) {
        printf("skipped: a locale with a decimal comma, which localedef cannot make here\n");
        return;
    }
    ck_assert_str_eq(localeconv()->decimal_point, ",");
    /* Every float of the table, by the flag's spelling and back. */
    for (size_t i = 0; i < app_n_options; i++) {
        const struct app_option *o = &app_options[i];
        if (o->kind == APP_FLOAT && o->min <= 0.7 && o->max >= 1.5) {
            ck_assert_int_eq(set(o->name, "0.7", APP_LIVE), CW_OK);
            expect(o->name, "0.7");
            ck_assert_int_eq(set(o->name, "0,7", APP_LIVE), CW_EINVAL);
        }
    }
    ck_assert_int_eq(set("temp", "0.7", APP_LIVE), CW_OK);
    ck_assert_float_eq(s.sampling.temp, 0.7f);
    ck_assert_int_eq(set("logit-bias", "5+1.5,7-2", APP_LIVE), CW_OK);
    expect("logit-bias", "5+1.5,7-2");
    struct cw_sampling file = {.temp = 0.25f};
    app_settings_free(&s);
    app_settings_init(&s);
    app_settings_from_file(&s, CW_SET_TEMP, &file);
    expect("temp", "0.25");
}
END_TEST

static const struct {
    const char *names, *word, *meant; /* NULL: none of them */
} words[] = {
    {"help ?", "hlep", "help"},
    {"bye quit", "xyz", NULL},
    {"bye quit", "q", NULL},
    {"regen retry", "rgen", "regen"},
    {"continue", "contniu", "continue"},
    {"fork", "foo", NULL},
    {"-t --threads", "--thread", "--threads"},
    {"temp", "-temp", "temp"},
    {"temp top-k top-p", "top-q", "top-k"}, /* the first of equals */
    {"help", "", NULL},
    {"", "help", NULL},
    {"help", "a-word-that-is-longer-than-any-name-there-is", NULL},
    {"stats state", "state", "state"},
};

START_TEST(the_nearest_word) {
    const char *word = words[_i].word, *meant = words[_i].meant;
    struct app_nearest near = {.word = {word, strlen(word)}};
    app_nearest_try(&near, words[_i].names);
    if (meant == NULL) {
        ck_assert_msg(near.name.data == NULL, "%s: %.9s", word, near.name.data);
    } else {
        ck_assert_msg(near.name.data != NULL && cw_str_eq(near.name, meant), "%s", word);
    }
}
END_TEST

START_TEST(words_of_a_list) {
    const char *rest = "  one two  three ";
    struct cw_str word;
    int at = -1;
    ck_assert(app_words_next(&rest, &word) && cw_str_eq(word, "one"));
    ck_assert(app_words_next(&rest, &word) && cw_str_eq(word, "two"));
    ck_assert(app_words_next(&rest, &word) && cw_str_eq(word, "three"));
    ck_assert(!app_words_next(&rest, &word));
    ck_assert(app_words_hold("one two three", "three", 5, &at) && at == 2);
    ck_assert(!app_words_hold("one two three", "thre", 4, NULL));
    ck_assert(!app_words_hold("", "", 0, NULL));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("options");
    TCase *t = tcase_create("table");
    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, every_row_holds_together, 0, (int)app_n_options);
    tcase_add_test(t, spellings_are_unique);
    tcase_add_test(t, sampling_defaults_are_the_sampler_s);
    tcase_add_loop_test(t, range_ends_pass_the_sampler, 0, (int)app_n_options);
    tcase_add_test(t, isa_names_are_the_core_s);
    tcase_add_loop_test(t, the_nearest_word, 0, (int)(sizeof words / sizeof words[0]));
    tcase_add_test(t, words_of_a_list);
    suite_add_tcase(suite, t);
    TCase *v = tcase_create("values");
    tcase_set_timeout(v, 60);
    tcase_add_checked_fixture(v, setup, teardown);
    tcase_add_loop_test(v, bad_values_are_refused_and_change_nothing, 0,
                        (int)(sizeof refused / sizeof *refused));
    tcase_add_test(v, good_values_are_taken);
    tcase_add_test(v, higher_origins_win_in_any_order);
    tcase_add_test(v, the_file_s_sampling_comes_second);
    tcase_add_test(v, lists_add_up_within_an_origin);
    tcase_add_test(v, floats_print_shortest_and_read_back);
    tcase_add_test(v, no_color_is_obeyed);
    tcase_add_test(v, setting_a_string_to_itself);
    tcase_add_test(v, numbers_have_a_point_in_every_locale);
    suite_add_tcase(suite, v);
    SRunner *sr = srunner_create(suite);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
