/* SPDX-License-Identifier: MIT
 *
 * Guesses by lookup: what is guessed, and when a guess is thought to be worth its cost. The clock
 * is the test's own. */
#include <check.h>
#include <stdlib.h>

#include "core/chat/lookup.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* Costs in units of a single token: 1 for the first, `more` for each further one. */
static void tell_costs(struct cw_lookup *l, double more) {
    for (int i = 0; i < 4; i++) {
        cw_lookup_cost(l, 1, 1);
    }
    for (size_t n = 2; n <= CW_LOOKUP_MAX + 1; n++) {
        cw_lookup_cost(l, n, 1 + more * (double)(n - 1));
    }
}

START_TEST(what_is_guessed) {
    struct cw_lookup *l = cw_lookup_create(64, true);
    int32_t guess[CW_LOOKUP_MAX];
    const int32_t text[] = {1, 2, 3, 4, 5, 6, 7, 9, 2, 3, 4, 8, 2, 3};
    ck_assert_uint_eq(cw_lookup_guess(l, 9, guess), 0); /* nothing yet */
    cw_lookup_add(l, text, 2);
    ck_assert_uint_eq(cw_lookup_guess(l, 9, guess), 0);
    cw_lookup_add(l, text + 2, N(text) - 2);
    ck_assert_uint_eq(cw_lookup_guess(l, 9, guess), 0); /* "8 2 3" was never there */
    const int32_t four = 4;
    cw_lookup_add(l, &four, 1);
    /* "2 3 4" stood there twice; the later place counts where both agree as far. */
    ck_assert_uint_eq(cw_lookup_guess(l, 3, guess), 3);
    ck_assert(guess[0] == 8 && guess[1] == 2 && guess[2] == 3);
    ck_assert_uint_eq(cw_lookup_guess(l, 0, guess), 0);
    /* Past the end of the text it goes round: 4 8 2 3 | 4 8 2 3 ... */
    ck_assert_uint_eq(cw_lookup_guess(l, 99, guess), CW_LOOKUP_MAX);
    static const int32_t round[] = {8, 2, 3, 4};
    for (size_t i = 0; i < CW_LOOKUP_MAX; i++) {
        ck_assert_int_eq(guess[i], round[i % 4]);
    }
    cw_lookup_destroy(l);
    cw_lookup_destroy(NULL);
    /* The longer match wins over the later one. */
    l = cw_lookup_create(64, true);
    const int32_t two[] = {1, 2, 3, 4, 5, 50, 51, 3, 4, 5, 60, 1, 2, 3, 4, 5};
    cw_lookup_add(l, two, N(two));
    ck_assert_uint_eq(cw_lookup_guess(l, 2, guess), 2);
    ck_assert(guess[0] == 50 && guess[1] == 51);
    cw_lookup_destroy(l);
    /* A timeline that is full takes no more and guesses nothing. */
    l = cw_lookup_create(8, true);
    const int32_t same[] = {7, 7, 7, 7, 7, 7, 7, 7, 7, 7};
    cw_lookup_add(l, same, 7);
    ck_assert_uint_gt(cw_lookup_guess(l, 4, guess), 0);
    cw_lookup_add(l, same, N(same));
    ck_assert_uint_eq(cw_lookup_guess(l, 4, guess), 0);
    cw_lookup_destroy(l);
}
END_TEST

/* A text of n ids that repeats itself after `period`. */
static void add_round(struct cw_lookup *l, size_t n, int32_t period) {
    for (size_t i = 0; i < n; i++) {
        int32_t id = 100 + (int32_t)(i % (size_t)period);
        cw_lookup_add(l, &id, 1);
    }
}

START_TEST(what_is_worth_it) {
    int32_t guess[CW_LOOKUP_MAX];
    struct cw_lookup *l = cw_lookup_create(4096, false);
    add_round(l, 100, 40);
    ck_assert_uint_eq(cw_lookup_guess(l, 99, guess), 0); /* costs are not known */
    tell_costs(l, 0.05);
    ck_assert_uint_ge(cw_lookup_guess(l, 99, guess), 6);
    ck_assert_uint_le(cw_lookup_guess(l, 5, guess), 5);
    cw_lookup_destroy(l);
    /* Where every token of a batch costs what a token costs, nothing is gained. */
    l = cw_lookup_create(4096, false);
    add_round(l, 100, 40);
    tell_costs(l, 1);
    ck_assert_uint_eq(cw_lookup_guess(l, 99, guess), 0);
    cw_lookup_destroy(l);
    /* Where further tokens cost something, short guesses stop being worth it as they go wrong, and
     * come back when they are right again. */
    l = cw_lookup_create(65536, false);
    tell_costs(l, 0.3);
    size_t first = SIZE_MAX, last = 0;
    for (int32_t i = 0; i < 3000; i++) {
        /* "1 2 3" again and again, and something new behind it each time */
        const int32_t part[] = {1, 2, 3};
        cw_lookup_add(l, part, 3);
        size_t n = cw_lookup_guess(l, 99, guess);
        first = i == 1 ? n : first;
        last = n;
        int32_t other[] = {1000 + 2 * i, 1001 + 2 * i};
        cw_lookup_add(l, other, 2);
    }
    ck_assert_uint_eq(last, 0);
    ck_assert(first != SIZE_MAX);
    /* Long repetitions are another matter. */
    add_round(l, 200, 60);
    ck_assert_uint_gt(cw_lookup_guess(l, 99, guess), 3);
    cw_lookup_destroy(l);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("lookup");
    TCase *t = tcase_create("lookup");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, what_is_guessed);
    tcase_add_test(t, what_is_worth_it);
    suite_add_tcase(suite, t);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
