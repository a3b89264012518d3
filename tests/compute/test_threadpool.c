/* SPDX-License-Identifier: MIT
 *
 * The pool: every chunk exactly once, results visible to the caller, whatever the phases' sizes and
 * the pauses between them (workers spin, fall asleep, are woken). Run it under ThreadSanitizer too.
 */
#include "core/compute/threadpool.h"

#include "checker.h"

#include <check.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_CHUNKS = 100 };

struct phase {
    int done[MAX_CHUNKS]; /* plain: a chunk has one owner, and the caller reads afterwards */
    int value, n_threads;
    _Atomic int bad_thread;
};

static void touch(void *arg, int chunk, int thread) {
    struct phase *p = arg;
    p->done[chunk] += p->value;
    if (thread < 0 || thread >= p->n_threads) {
        atomic_store(&p->bad_thread, 1);
    }
}

START_TEST(every_chunk_once) {
    struct cw_pool *pool = cw_pool_create(_i);
    struct rng r = {(uint64_t)_i + 1};
    ck_assert_int_eq(cw_pool_n_threads(pool), _i);
    for (int phase = 0; phase < 3000; phase++) {
        struct phase p = {.value = phase + 1, .n_threads = _i};
        int n = rng_int(&r, 0, MAX_CHUNKS);
        cw_pool_run(pool, touch, &p, n);
        for (int i = 0; i < MAX_CHUNKS; i++) {
            ck_assert_int_eq(p.done[i], i < n ? phase + 1 : 0);
        }
        ck_assert(!atomic_load(&p.bad_thread));
        if (phase % 100 == 0) { /* long enough for the workers to sleep, sometimes */
            struct timespec pause = {0, rng_int(&r, 0, 300000)};
            nanosleep(&pause, NULL);
        }
    }
    cw_pool_destroy(pool);
}
END_TEST

START_TEST(pools_come_and_go) {
    for (int i = 0; i < 50; i++) {
        struct cw_pool *pool = cw_pool_create(4);
        struct phase p = {.value = 1, .n_threads = 4};
        if (i % 2) {
            cw_pool_run(pool, touch, &p, 10);
            ck_assert_int_eq(p.done[9], 1);
        }
        cw_pool_destroy(pool);
    }
    cw_pool_destroy(NULL);
}
END_TEST

/* Two pools at once belong to two callers (models may coexist): they share nothing. */
static void nested(void *arg, int chunk, int thread) {
    struct phase *outer = arg, p = {.value = 7, .n_threads = 2};
    struct cw_pool *pool = cw_pool_create(2);
    cw_pool_run(pool, touch, &p, 20);
    outer->done[chunk] = p.done[19];
    cw_pool_destroy(pool);
}

START_TEST(pools_are_independent) {
    struct cw_pool *pool = cw_pool_create(3);
    struct phase p = {.n_threads = 3};
    cw_pool_run(pool, nested, &p, 12);
    for (int i = 0; i < 12; i++) {
        ck_assert_int_eq(p.done[i], 7);
    }
    cw_pool_destroy(pool);
}
END_TEST

int main(void) {
    Suite *s = suite_create("threadpool");
    TCase *t = tcase_create("threadpool");
    tcase_set_timeout(t, 300);
    tcase_add_loop_test(t, every_chunk_once, 1, 6);
    tcase_add_test(t, pools_come_and_go);
    tcase_add_test(t, pools_are_independent);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
