/* SPDX-License-Identifier: MIT
 *
 * Templates that mean harm, and damaged ones: every render ends, within bounds of work, memory,
 * output and depth, with a text or a plain error. The time it takes is not measured here; the
 * number of steps is bounded, and the test ends.
 */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "chinwag/mem.h"
#include "harness.h"

static const struct {
    const char *source, *part; /* of the error; NULL: any end will do */
} hostile[] = {
    {"{% for i in range(1000000000) %}{% endfor %}", "a range of more than"},
    {"{{ range(-9223372036854775807, 9223372036854775807)|length }}", "a range of more than"},
    {"{% for i in range(60000) %}{% for j in range(60000) %}{% endfor %}{% endfor %}", "steps"},
    {"{{ 'a' * 10000000000 }}", "too large"},
    {"{{ ('a' * 10000000) * 1000 }}", "too large"},
    {"{{ ([0] * 100000000)|length }}", "too large"},
    {"{{ 9223372036854775807 * 'ab' }}", "too large"},
    {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested deeper than"},
    {"{% macro m(x) %}{{ m(x) }}{{ m(x) }}{% endmacro %}{{ m(1) }}", "nested deeper than"},
    {"{% macro m(x=m()) %}{% endmacro %}{{ m() }}", "nested deeper than"},
    {"{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}", NULL},
    {"{% set ns = namespace(s='aaaaaaaaaaaaaaaa') %}{% for i in range(100) %}"
     "{% set ns.s = ns.s + ns.s %}{% endfor %}",
     "MiB of values"},
    {"{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = ns.s + ns.s %}"
     "{% endfor %}",
     "MiB of values"},
    {"{% set ns = namespace(s=[1]) %}{% for i in range(10000) %}{% set ns.s = [ns.s] %}"
     "{% endfor %}{{ ns.s }}",
     "nested deeper than"},
    {"{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}"
     "{% endfor %}{{ ns.s }}",
     NULL},
    {"{% set ns = namespace(s=[1], t=[1]) %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] %}"
     "{% set ns.t = [ns.t, ns.t] %}{% endfor %}{{ ns.s == ns.t }}",
     "steps"},
    {"{% set ns = namespace(s=(1,)) %}{% for i in range(1000) %}{% set ns.s = (ns.s,) %}"
     "{% endfor %}{{ {ns.s: 1} }}",
     "nested deeper than"},
    {"{% set ns = namespace(s=(1,)) %}{% for i in range(60) %}{% set ns.s = (ns.s, ns.s) %}"
     "{% endfor %}{{ {ns.s: 1} }}",
     "steps"},
    {"{% set s = 'a' * 1000000 %}{% set d = {'a' * 1000000: 1} %}{% for i in range(100000) %}"
     "{% set x = d[s] %}{% endfor %}",
     "steps"},
    {"{% set s = 'a' * 1000000 %}{% for i in range(100000) %}{% set x = s.startswith(s) %}"
     "{% endfor %}",
     "steps"},
    {"{% set s = 'a' * 1000000 %}{% for i in range(100000) %}{% set x = s.endswith((s, s)) %}"
     "{% endfor %}",
     "steps"},
    {"{% set d = {'a' * 1000000: 1, 'a' * 999999 ~ 'b': 2} %}{% for i in range(100000) %}"
     "{% set x = dict(**d) %}{% endfor %}",
     "steps"},
    {"{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "nested deeper than"},
    {"{% set ns = namespace() %}{% set ns.a = [ns] %}{{ ns.a == ns.a[0].a }}", NULL},
    {"{% set ns = namespace(s=[1]) %}{% for i in range(30) %}{% set ns.s = [ns.s, ns.s] %}"
     "{% endfor %}{{ ns.s|tojson(indent=1000) }}",
     NULL},
    {"{% for i in range(100000) %}{% for j in range(1000) %}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
     "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{% endfor %}{% endfor %}",
     "writes more than"},
    {"{{ ('a' * 1000000).replace('a', 'b' * 1000) }}", "MiB of values"},
    {"{{ range(100000)|join('a' * 100000) }}", "MiB of values"},
    {"{% for i in range(1000) %}{% set x = ('a,' * 100000).split(',') %}{% endfor %}", NULL},
    {"{% set s = '\u00e9' * 1000000 %}{% for i in range(100000) %}{% set x = s[900000] %}"
     "{% endfor %}",
     "steps"},
    {"{% set s = 'a' * 1000000 %}{% for i in range(100000) %}{% if 'b' in s %}{% endif %}"
     "{% endfor %}",
     "steps"},
    {"{% set s = 'x' * 1000000 %}{% for i in range(100000) %}{% set x = s.upper() %}{% endfor %}",
     "steps"},
    {"{% set s = 'x' * 1000000 %}{% for i in range(100000) %}{% set x = s[::-1] %}{% endfor %}",
     NULL},
    {"{% for i in range(100000) %}{{ range(100000)|sum }}{% endfor %}", "steps"},
    {"{{ range(100000)|map('string')|sort|list|length }}", NULL},
    {"{{ range(100000)|unique|list|length }}", "steps"},
    {"{{ ('a\\n' * 100000)|indent(10000)|length }}", "MiB of values"},
    {"{{ 'a'|indent(9000000000000) }}", "too large"},
    {"{{ '%1000000000d' % 5 }}", "wider than"},
    {"{{ '%.1000000000f' % 5 }}", "wider than"},
    {"{{ '%*d' % (9223372036854775807, 5) }}", "wider than"},
    {"{{ '{:99999999999999999999}'.format(5) }}", "wider than"},
    {"{{ '{99999999999999999999}'.format(5) }}", "wider than"},
    {"{{ strftime_now('%999999999d') }}", "not supported"},
    {"{{ 'a'.center(9223372036854775807) }}", "too large"},
    {"{{ 'a'.zfill(100000000000) }}", "too large"},
    {"{{ 'a'.ljust(100000000000) }}", "too large"},
    {"{{ 'a\\t'.expandtabs(9223372036854775807) }}", "too large"},
    {"{{ 2 ** 100000 }}", "64 bits"},
    {"{{ 10.0 ** 100000 }}", "too large"},
    {"{{ -9223372036854775807 - 2 }}", "64 bits"},
    {"{{ (-9223372036854775807 - 1) // -1 }}", "64 bits"},
    {"{{ -(-9223372036854775807 - 1) }}", "64 bits"},
    {"{{ (-9223372036854775807 - 1)|abs }}", "64 bits"},
    {"{{ (-9223372036854775807 - 1) % -1 }}", NULL},
    {"{{ 'abc'[-9223372036854775807 - 1:] }}{{ 'abc'[:9223372036854775807] }}"
     "{{ 'abc'[::9223372036854775807] }}{{ 'abc'[::-9223372036854775807 - 1] }}"
     "{{ [1][9223372036854775807] }}{{ [1][-9223372036854775807 - 1] }}",
     NULL},
    {"{{ range(9223372036854775806, 9223372036854775807)[::9] }}"
     "{{ range(-9223372036854775807, -9223372036854775800, 7)[::-1]|list }}",
     NULL},
    {"{{ 'abc'.find('c', -9223372036854775807 - 1, 9223372036854775807) }}"
     "{{ 'abc'.count('', 9223372036854775807) }}{{ [1].index(1, -9223372036854775807 - 1) }}",
     NULL},
    {"{{ 9223372036854775807|round(-1) }}", "64 bits"},
    {"{{ 1e308|int }}", "64 bits"},
    {"{{ 1.5|round(300) }}{{ 1.5|round(9223372036854775807) }}", "not supported"},
    {"{{ [1, 2, 3]|slice(9223372036854775807)|list }}", NULL},
    {"{{ [1]|batch(9223372036854775807, 0)|list }}", NULL},
    {"{{ [1]|batch(-1, 0)|list }}{{ [1, 2]|batch(0)|list }}", NULL},
    {"{{ dict([[1, 2, 3]]) }}", "pairs"},
    {"{% for i in range(1000) %}{% set x = messages|map('tojson')|join|upper %}{% endfor %}", NULL},
};

START_TEST(ends_with_an_error) {
    struct run r =
        run_template(hostile[_i].source, strlen(hostile[_i].source), standard_input(), NULL);
    if (hostile[_i].part != NULL) {
        ck_assert_msg(r.code == CW_ETEMPLATE, "%s", hostile[_i].source);
        ck_assert_msg(strstr(r.err.text, hostile[_i].part) != NULL, "%s: %s", hostile[_i].source,
                      r.err.text);
    }
    run_free(&r);
    /* The next one is none the worse for it. */
    expect_text("{{ messages|length }}", standard_input(), "4");
}
END_TEST

/* A template made of a beginning, many repetitions and an end. */
static const struct {
    const char *head, *many, *tail;
    int times;
    const char *part; /* of the error; NULL: renders */
} repeated[] = {
    {"{{ ", "(", "1", 5000, "nested deeper than"},
    {"{{ ", "[", "", 5000, "nested deeper than"},
    {"{{ ", "{1:", "", 5000, "nested deeper than"},
    {"{{ ", "f(", "", 5000, "nested deeper than"},
    {"{{ ", "a[", "", 5000, "nested deeper than"},
    {"{{ ", "not ", "1 }}", 50000, "nested deeper than"},
    {"{{ ", "-", "1 }}", 50000, "nested deeper than"},
    {"{{ 1", " if 1 else 1", " }}", 50000, "nested deeper than"},
    {"{{ 1", " if 1", " }}", 50000, "nested deeper than"},
    {"{{ 1", "|abs", " }}", 50000, "nested deeper than"},
    {"{{ messages", "[0]", " }}", 50000, "nested deeper than"},
    {"{{ messages", ".x", " }}", 50000, "nested deeper than"},
    {"{{ range", "()", " }}", 50000, "nested deeper than"},
    {"{{ 1", " is odd", " }}", 50000, "cannot be chained"},
    {"", "{% if 1 %}", "", 5000, "nested deeper than"},
    {"", "{% for i in [1] %}", "", 5000, "nested deeper than"},
    {"", "{% macro m() %}", "", 5000, "nested deeper than"},
    {"", "{% set x %}", "", 5000, "nested deeper than"},
    {"{% for ", "(", "", 5000, "nested deeper than"},
    {"{{ 1", "+1", " }}", 100000, NULL},
    {"{{ 1", "*1", " }}", 100000, NULL},
    {"{{ 1", "**1", " }}", 50000, NULL},
    {"{{ ''", "~''", " }}", 50000, NULL},
    {"{{ 1", " and 1", " }}", 50000, NULL},
    {"{{ 1", " == 1", " }}", 50000, NULL},
    {"{{ [", "1,", "]|length }}", 100000, NULL},
    {"{{ '", "x", "'|length }}", 500000, NULL},
    {"{% if 0 %}", "{% elif 0 %}", "{% endif %}", 50000, NULL},
    {"", "{#", "", 200000, "no end"},
    {"{% raw %}", "{%endraw", "", 100000, "no end"},
    {"", "{", "", 500000, NULL},
    {"{{", " ", "}}", 500000, "expected an expression"},
    {"{{", "\n", "}}", 500000, "expected an expression"},
    {"", "{{ 1 }}", "", 100000, NULL},
    {"", "{% set a = 1 %}", "", 60000, NULL},
    {"x", " ", "{%- if 1 %}{% endif %}", 500000, NULL},
    {"x\n", " ", "{% if 1 %}{% endif %}", 500000, NULL},
    {"{{ 0", "0", " }}", 100000, NULL},
    {"{{ 1", "_0", " }}", 100000, "64 bits"},
    {"{{ 1.", "0", " }}", 100000, NULL},
    {"{{ '", "\\x41", "'|length }}", 100000, NULL},
};

START_TEST(repetition) {
    struct cw_buf source = {0};
    cw_buf_puts(&source, repeated[_i].head);
    for (int i = 0; i < repeated[_i].times; i++) {
        cw_buf_puts(&source, repeated[_i].many);
    }
    cw_buf_puts(&source, repeated[_i].tail);
    struct run r = run_template(source.data, source.len, standard_input(), NULL);
    if (repeated[_i].part == NULL) {
        if (strncmp(repeated[_i].many, "{", 2) != 0) {
            ck_assert_msg(r.code == CW_OK, "%s...: %s", repeated[_i].head, r.err.text);
        }
    } else {
        ck_assert_msg(r.code == CW_ETEMPLATE, "%s%s...", repeated[_i].head, repeated[_i].many);
        ck_assert_msg(strstr(r.err.text, repeated[_i].part) != NULL, "%s%s...: %s",
                      repeated[_i].head, repeated[_i].many, r.err.text);
    }
    run_free(&r);
    cw_buf_free(&source);
}
END_TEST

/* Many names, so that looking them up is not quadratic for free. */
START_TEST(many_names) {
    struct cw_buf source = {0};
    for (int i = 0; i < 20000; i++) {
        cw_buf_printf(&source, "{%% set a%d=1 %%}", i);
    }
    for (int i = 0; i < 20000; i++) {
        cw_buf_printf(&source, "{{ a%d }}", i);
    }
    struct run r = run_template(source.data, source.len, standard_input(), NULL);
    ck_assert_int_eq(r.code, CW_ETEMPLATE);
    ck_assert_ptr_nonnull(strstr(r.err.text, "steps"));
    run_free(&r);
    cw_buf_clear(&source);
    cw_buf_puts(&source, "{{ dict(");
    for (int i = 0; i < 50000; i++) {
        cw_buf_printf(&source, "a%d=1,", i);
    }
    cw_buf_puts(&source, ") }}");
    r = run_template(source.data, source.len, standard_input(), NULL);
    ck_assert_int_eq(r.code, CW_ETEMPLATE);
    run_free(&r);
    cw_buf_free(&source);
}
END_TEST

/* The generator's thread need not have a large stack: the deepest nesting fits in half a MiB (in
 * four under a sanitizer, whose frames are larger). */
static void *deepest(void *arg) {
    (void)arg;
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        if (hostile[i].part != NULL && strstr(hostile[i].part, "nested") != NULL) {
            struct run r =
                run_template(hostile[i].source, strlen(hostile[i].source), standard_input(), NULL);
            run_free(&r);
        }
    }
    struct cw_buf source = {0};
    cw_buf_puts(&source, "{{ ");
    for (int i = 0; i < 120; i++) {
        cw_buf_puts(&source, i % 2 == 0 ? "[" : "(1 if 1 else ");
    }
    struct run r = run_template(source.data, source.len, standard_input(), NULL);
    run_free(&r);
    cw_buf_free(&source);
    return arg;
}

START_TEST(small_stack) {
    size_t stack_bytes = SANITIZED ? (size_t)4 << 20 : (size_t)512 << 10;
    pthread_attr_t attr;
    pthread_t thread;
    ck_assert_int_eq(pthread_attr_init(&attr), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&attr, stack_bytes), 0);
    ck_assert_int_eq(pthread_create(&thread, &attr, deepest, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attr);
}
END_TEST

/* None of this took much memory. */
START_TEST(memory_stays_small) {
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        struct run r =
            run_template(hostile[i].source, strlen(hostile[i].source), standard_input(), NULL);
        run_free(&r);
    }
    struct rusage usage;
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
    ck_assert(SANITIZED || usage.ru_maxrss < 160 << 10); /* KiB */
}
END_TEST

/* ------------------------------------------------------------------ damage */

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t random_below(uint64_t n) { /* xorshift64* */
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (state * 2685821657736338717u >> 11) % n;
}

/* Few steps are enough to get everywhere, and keep damaged loops short. */
static void run_damaged(const char *source, size_t len) {
    struct cw_jlimits limits = cw_jlimits_for(standard_input());
    limits.steps = 20000;
    struct run r = run_template(source, len, standard_input(), &limits);
    ck_assert(r.code == CW_OK || r.code == CW_ETEMPLATE);
    run_free(&r);
}

static void damage(const char *source, size_t len, size_t rounds) {
    static const char *const pieces[] = {
        "{%",         "%}",     "{{",      "}}",       "-",          "'",    "\"",
        "(",          ")",      "[",       "]",        "|",          ".",    " if ",
        "not ",       "\n",     "{#",      "#}",       "~",          "**",   ",",
        ":",          "endif",  "loop",    "caller()", "\\",         "\xff", "{% set x = x %}",
        "namespace(", "[::-1]", "|tojson", "|list",    ".split('a')"};
    char *copy = cw_malloc(len + 64);
    for (size_t i = 0; i < rounds; i++) {
        run_damaged(source, random_below(len + 1)); /* cut off */
        memcpy(copy, source, len);
        for (uint64_t n = random_below(4) + 1; n > 0 && len > 0; n--) {
            copy[random_below(len)] = (char)random_below(256);
        }
        run_damaged(copy, len);
        const char *piece = pieces[random_below(sizeof pieces / sizeof *pieces)];
        size_t at = random_below(len + 1), cut = random_below(len - at + 1) % 16;
        size_t n = strlen(piece);
        memcpy(copy, source, at);
        memcpy(copy + at, piece, n);
        memcpy(copy + at + n, source + at + cut, len - at - cut);
        run_damaged(copy, len + n - cut);
    }
    free(copy);
}

/* CHINWAG_FUZZ_ROUNDS: how many rounds for each template instead of a few; 0 to cut and flip at
 * every byte. */
static size_t rounds_for(size_t usual) {
    const char *rounds = getenv("CHINWAG_FUZZ_ROUNDS");
    return rounds != NULL ? (size_t)strtoul(rounds, NULL, 10) : usual;
}

static void damage_everywhere(const char *source, size_t len) {
    char *copy = cw_strndup(source, len);
    for (size_t i = 0; i < len; i++) {
        run_damaged(source, i);
        char was = copy[i];
        copy[i] ^= (char)(1 << random_below(8));
        run_damaged(copy, len);
        copy[i] = was;
    }
    free(copy);
}

START_TEST(damaged_snippets) {
    struct json_object *all = read_json("tests/template/snippets.json");
    size_t n = json_object_array_length(all), rounds = rounds_for(3);
    for (size_t i = 0; i < n; i++) {
        struct json_object *one = json_object_array_get_idx(all, i);
        const char *source = json_object_get_string(json_object_array_get_idx(one, 0));
        if (rounds == 0) {
            damage_everywhere(source, strlen(source));
        } else {
            damage(source, strlen(source), rounds);
        }
    }
    json_object_put(all);
}
END_TEST

START_TEST(damaged_templates) {
    size_t len, rounds = rounds_for(30), n = 0;
    char *cases = read_file("../shared/reference/templates/cases.jsonl", &len), *last = NULL;
    if (cases == NULL) {
        printf("skipped: no reference templates\n");
        return;
    }
    for (char *line = strtok(cases, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        struct json_object *j = json_tokener_parse(line), *name;
        ck_assert(json_object_object_get_ex(j, "template", &name));
        const char *file = json_object_get_string(name);
        if (last == NULL ||
            strcmp(last, file) != 0) { /* the cases of a template follow each other */
            struct cw_buf path = {0};
            cw_buf_printf(&path, "../shared/reference/templates/%s", file);
            char *source = read_file(path.data, &len);
            ck_assert_ptr_nonnull(source);
            if (rounds == 0) {
                damage_everywhere(source, len);
            } else {
                damage(source, len, rounds);
            }
            free(source);
            cw_buf_free(&path);
            free(last);
            last = cw_strdup(file);
            n++;
        }
        json_object_put(j);
    }
    free(last);
    free(cases);
    ck_assert_uint_ge(n, 18);
}
END_TEST

int main(void) {
    Suite *s = suite_create("template hostile");
    TCase *tc = tcase_create("hostile");
    tcase_set_timeout(tc, 300);
    tcase_add_loop_test(tc, ends_with_an_error, 0, (int)(sizeof hostile / sizeof *hostile));
    tcase_add_loop_test(tc, repetition, 0, (int)(sizeof repeated / sizeof *repeated));
    tcase_add_test(tc, many_names);
    tcase_add_test(tc, small_stack);
    tcase_add_test(tc, memory_stays_small);
    suite_add_tcase(s, tc);
    TCase *damaged = tcase_create("damaged");
    tcase_set_timeout(damaged, getenv("CHINWAG_FUZZ_ROUNDS") != NULL ? 36000 : 300);
    tcase_add_test(damaged, damaged_snippets);
    tcase_add_test(damaged, damaged_templates);
    suite_add_tcase(s, damaged);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
