/* SPDX-License-Identifier: MIT
 *
 * The language, snippet by snippet: snippets.json holds templates and what jinja2 3.1 (set up as
 * the reference renderer has it) makes of them in the standard conversation; refused.json templates
 * that it refuses. Each is also run within bounds too tight for it.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/mem.h"
#include "harness.h"

START_TEST(same_as_the_reference) {
    struct json_object *all = read_json("tests/template/snippets.json");
    size_t n = json_object_array_length(all), wrong = 0;
    ck_assert_uint_ge(n, 800);
    for (size_t i = 0; i < n; i++) {
        struct json_object *one = json_object_array_get_idx(all, i);
        const char *source = json_object_get_string(json_object_array_get_idx(one, 0));
        const char *text = json_object_get_string(json_object_array_get_idx(one, 1));
        struct run r = run_template(source, strlen(source), standard_input(), NULL);
        if (r.code != CW_OK || strcmp(r.prompt.text, text) != 0) {
            wrong++;
            printf("%s\n  wanted %s\n  got    %s\n", source, text,
                   r.code == CW_OK ? r.prompt.text : r.err.text);
        }
        run_free(&r);
    }
    ck_assert_uint_eq(wrong, 0);
    json_object_put(all);
}
END_TEST

/* Where the reference fails we fail, and say on which line. */
START_TEST(refused_as_by_the_reference) {
    struct json_object *all = read_json("tests/template/refused.json");
    size_t n = json_object_array_length(all), wrong = 0;
    ck_assert_uint_ge(n, 150);
    for (size_t i = 0; i < n; i++) {
        const char *source = json_object_get_string(json_object_array_get_idx(all, i));
        struct cw_buf shifted = {0};
        cw_buf_printf(&shifted, "one\ntwo\n%s", source);
        struct run r = run_template(shifted.data, shifted.len, standard_input(), NULL);
        bool by_template = strstr(source, "raise_exception('") != NULL;
        const char *head = by_template ? "template: boom" : "template: line 3: ";
        if (r.code != CW_ETEMPLATE || r.refused != by_template ||
            strncmp(r.err.text, head, strlen(head)) != 0) {
            wrong++;
            printf("%s\n  got %d: %s\n", source, r.code,
                   r.code == CW_OK ? r.prompt.text : r.err.text);
        }
        run_free(&r);
        cw_buf_free(&shifted);
    }
    ck_assert_uint_eq(wrong, 0);
    json_object_put(all);
}
END_TEST

/* With a bound changed, a snippet either renders as before or fails by that bound. */
static void check_within(const char *source, const struct cw_jlimits *limits, const char *text,
                         const char *const *reasons) {
    struct run r = run_template(source, strlen(source), standard_input(), limits);
    if (r.code == CW_OK) {
        ck_assert_msg(strcmp(r.prompt.text, text) == 0, "%s: %s", source, r.prompt.text);
    } else {
        bool known = false;
        for (; *reasons != NULL; reasons++) {
            known |= strstr(r.err.text, *reasons) != NULL;
        }
        ck_assert_msg(known && r.code == CW_ETEMPLATE, "%s: %s", source, r.err.text);
    }
    run_free(&r);
}

START_TEST(within_tight_bounds) {
    static const char *const steps[] = {"steps", NULL};
    static const char *const depth[] = {"evaluation is nested deeper than", NULL};
    static const char *const memory[] = {"MiB of values", "too large", NULL};
    static const char *const output[] = {"writes more than", NULL};
    struct json_object *all = read_json("tests/template/snippets.json");
    size_t n = json_object_array_length(all);
    for (size_t i = 0; i < n; i++) {
        struct json_object *one = json_object_array_get_idx(all, i);
        const char *source = json_object_get_string(json_object_array_get_idx(one, 0));
        const char *text = json_object_get_string(json_object_array_get_idx(one, 1));
        for (uint64_t bound = 0; bound <= 300; bound = bound * 2 + 1) {
            struct cw_jlimits limits = cw_jlimits_for(standard_input());
            limits.steps = bound;
            check_within(source, &limits, text, steps);
            limits = cw_jlimits_for(standard_input());
            limits.depth = (int)(bound / 8);
            check_within(source, &limits, text, depth);
            limits = cw_jlimits_for(standard_input());
            limits.value_bytes = (size_t)bound * 64;
            check_within(source, &limits, text, memory);
        }
        struct cw_jlimits limits = cw_jlimits_for(standard_input());
        limits.output_bytes = strlen(text);
        struct run r = run_template(source, strlen(source), standard_input(), &limits);
        ck_assert_msg(r.code == CW_OK, "%s: %s", source, r.err.text);
        run_free(&r);
        if (limits.output_bytes > 0) { /* one byte less is one too few */
            limits.output_bytes--;
            r = run_template(source, strlen(source), standard_input(), &limits);
            ck_assert_msg(r.code == CW_ETEMPLATE && strstr(r.err.text, *output) != NULL, "%s",
                          source);
            run_free(&r);
        }
    }
    json_object_put(all);
}
END_TEST

/* A bound is a bound: what takes N steps (or levels, or bytes) renders within N and not N - 1. */
static uint64_t smallest(const char *source, void (*set)(struct cw_jlimits *, uint64_t),
                         uint64_t high) {
    uint64_t low = 0; /* fails within low, renders within high */
    while (high - low > 1) {
        uint64_t mid = low + (high - low) / 2;
        struct cw_jlimits limits = cw_jlimits_for(standard_input());
        set(&limits, mid);
        struct run r = run_template(source, strlen(source), standard_input(), &limits);
        *(r.code == CW_OK ? &high : &low) = mid;
        run_free(&r);
    }
    return high;
}

static void set_steps(struct cw_jlimits *l, uint64_t n) {
    l->steps = n;
}

static void set_depth(struct cw_jlimits *l, uint64_t n) {
    l->depth = (int)n;
}

static void set_values(struct cw_jlimits *l, uint64_t n) {
    l->value_bytes = n;
}

START_TEST(bounds_grow_with_the_work) {
    static const char small[] = "{% for i in range(10) %}{{ i }}{% endfor %}";
    static const char large[] = "{% for i in range(1000) %}{{ i }}{% endfor %}";
    uint64_t a = smallest(small, set_steps, 100000), b = smallest(large, set_steps, 100000);
    ck_assert_uint_gt(b, a + 990);
    ck_assert_uint_lt(b, 10000);
    a = smallest("{{ 1 }}", set_depth, 400);
    b = smallest("{{ -(-(-(-(-1)))) }}", set_depth, 400);
    ck_assert_uint_eq(b, a + 5);
    a = smallest("{{ 'x' * 10 }}", set_values, 1 << 20);
    b = smallest("{{ 'x' * 10010 }}", set_values, 1 << 20);
    ck_assert_uint_gt(b, a + 10000);
    ck_assert_uint_lt(b, a + 80000);
}
END_TEST

int main(void) {
    Suite *s = suite_create("template snippets");
    TCase *tc = tcase_create("snippets");
    tcase_set_timeout(tc, 300);
    tcase_add_test(tc, same_as_the_reference);
    tcase_add_test(tc, refused_as_by_the_reference);
    tcase_add_test(tc, within_tight_bounds);
    tcase_add_test(tc, bounds_grow_with_the_work);
    suite_add_tcase(s, tc);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
