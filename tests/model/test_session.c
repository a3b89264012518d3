/* SPDX-License-Identifier: MIT
 *
 * The timeline: extending, rewinding, syncing, stopping, running full, and a file that shrinks. */
#include "tests/model/fixture.h"
#include "tests/support/mkgguf.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the tree, so these tests never skip. */
static const char *const kept[] = {"tiny-tail-Q8_0.gguf", "tiny-mixed-Q4_K_M.gguf",
                                   "tiny-gpt-oss-MXFP4.gguf", "tiny-qwen2-F32.gguf",
                                   "tiny-gemma3-F32.gguf"};

static struct fixture f;
static struct cw_session *s;
static char *path;
static size_t n_vocab;

static void open_model(const char *file, const struct run_options *o) {
    path = model_path(file);
    ck_assert_ptr_nonnull(path);
    fixture_open(&f, path, o);
    s = session_open(&f, o);
    n_vocab = (size_t)cw_model_get_info(f.model)->n_vocab;
}

static void close_model(void) {
    cw_session_destroy(s);
    fixture_close(&f);
    free(path);
}

/* The logits of a fresh session after ids[0..n). Caller must free. */
static float *fresh_logits(const int32_t *ids, size_t n, const struct run_options *o) {
    struct cw_session *t = session_open(&f, o);
    float *y = cw_reallocarray(NULL, n_vocab, sizeof *y);
    ck_assert_int_eq(cw_session_extend(t, ids, n, NULL, NULL), CW_OK);
    memcpy(y, cw_session_logits(t), n_vocab * sizeof *y);
    cw_session_destroy(t);
    return y;
}

static void check_against_fresh(const int32_t *ids, size_t n, const struct run_options *o) {
    ck_assert_uint_eq(cw_session_n(s), n);
    ck_assert(n == 0 || memcmp(cw_session_ids(s), ids, n * sizeof *ids) == 0);
    float *y = fresh_logits(ids, n, o);
    ck_assert(same_bits(cw_session_logits(s), y, n_vocab));
    free(y);
}

/* Random extensions, rewinds and syncs; after each the state is that of a fresh evaluation. */
START_TEST(random_walks) {
    struct run_options o = {
        .isa = CW_ISA_AUTO, .n_threads = 2, .chunk = 1 + _i * 5, .n_ctx = 330, .exact = true};
    int32_t ids[330], step[330];
    size_t n = 0;
    uint64_t r = 1234567 + (uint64_t)_i;
    open_model(kept[_i % 5], &o);
    for (int round = 0; round < 30; round++) {
        r = r * 6364136223846793005u + 1442695040888963407u;
        size_t count = 1 + (size_t)(r >> 33) % (round % 10 == 0 ? 120 : 24);
        switch ((r >> 60) % 4) {
        case 0: /* extend */
        case 1:
            if (n + count > 330) {
                continue;
            }
            random_ids(step, count, (int)n_vocab, r);
            ck_assert_int_eq(cw_session_extend(s, step, count, NULL, NULL), CW_OK);
            memcpy(ids + n, step, count * sizeof *ids);
            n += count;
            break;
        case 2: /* rewind, then one id */
            n = n > count ? n - count : 0;
            cw_session_rewind(s, n);
            ck_assert_ptr_null(cw_session_logits(s));
            random_ids(ids + n, 1, (int)n_vocab, r);
            ck_assert_int_eq(cw_session_extend(s, ids + n, 1, NULL, NULL), CW_OK);
            n++;
            break;
        default: { /* a timeline that parts from this one somewhere */
            struct cw_sync_stats stats;
            size_t same = n == 0 ? 0 : (size_t)(r >> 20) % (n + 1);
            count = same + count > 330 ? 330 - same : count;
            random_ids(ids + same, count, (int)n_vocab, r);
            size_t total = same + count;
            size_t expected = 0; /* chance may make it longer */
            while (expected < total && expected < n &&
                   cw_session_ids(s)[expected] == ids[expected]) {
                expected++;
            }
            expected -= expected == total;
            ck_assert_int_eq(cw_session_sync(s, ids, total, NULL, &stats, NULL), CW_OK);
            ck_assert_uint_eq(stats.reused, expected);
            ck_assert_uint_eq(stats.evaluated, total - expected);
            ck_assert_uint_ge(stats.reused, same - (same == total));
            n = total;
        }
        }
        check_against_fresh(ids, n, &o);
    }
    close_model();
}
END_TEST

START_TEST(sync_evaluates_the_last_again) {
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1, .n_ctx = 64};
    int32_t ids[20];
    struct cw_sync_stats stats;
    open_model(kept[0], &o);
    random_ids(ids, 20, (int)n_vocab, 5);
    ck_assert_int_eq(cw_session_sync(s, ids, 20, NULL, &stats, NULL), CW_OK);
    ck_assert(stats.reused == 0 && stats.evaluated == 20);
    cw_session_logits(s)[0] = 1e9f; /* the caller may spoil them */
    ck_assert_int_eq(cw_session_sync(s, ids, 20, NULL, &stats, NULL), CW_OK);
    ck_assert(stats.reused == 19 && stats.evaluated == 1);
    check_against_fresh(ids, 20, &o);
    ck_assert_int_eq(cw_session_sync(s, ids, 10, NULL, &stats, NULL), CW_OK); /* a prefix */
    ck_assert(stats.reused == 9 && stats.evaluated == 1);
    check_against_fresh(ids, 10, &o);
    ck_assert_int_eq(cw_session_sync(s, ids, 0, NULL, &stats, NULL), CW_OK);
    ck_assert(stats.reused == 0 && stats.evaluated == 0);
    ck_assert_uint_eq(cw_session_n(s), 0);
    ck_assert_ptr_null(cw_session_logits(s));
    ck_assert_int_eq(cw_session_sync(s, ids, 1, NULL, NULL, NULL), CW_OK);
    cw_session_rewind(s, 100); /* above the count: nothing happens */
    ck_assert_ptr_nonnull(cw_session_logits(s));
    ck_assert_int_eq(cw_session_extend(s, ids, 0, NULL, NULL), CW_OK);
    ck_assert_ptr_nonnull(cw_session_logits(s));
    close_model();
}
END_TEST

START_TEST(full_and_out_of_range) {
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1, .n_ctx = 16, .chunk = 512};
    int32_t ids[20];
    struct cw_err err = {0};
    open_model(kept[0], &o);
    random_ids(ids, 20, (int)n_vocab, 5);
    ck_assert_ptr_null(cw_session_logits(s));
    ck_assert_int_eq(cw_session_extend(s, ids, 17, NULL, &err), CW_EFULL);
    ck_assert_ptr_nonnull(strstr(err.text, "17"));
    ck_assert_uint_eq(cw_session_n(s), 0);
    ck_assert_int_eq(cw_session_extend(s, ids, 10, NULL, &err), CW_OK);
    ck_assert_int_eq(cw_session_extend(s, ids, 7, NULL, &err), CW_EFULL);
    ck_assert_int_eq(cw_session_extend(s, ids, SIZE_MAX, NULL, &err), CW_EFULL);
    ck_assert_ptr_nonnull(cw_session_logits(s)); /* nothing was evaluated */
    ck_assert_int_eq(cw_session_sync(s, ids, 17, NULL, NULL, &err), CW_EFULL);
    ck_assert_int_eq(cw_session_extend(s, ids + 10, 6, NULL, &err), CW_OK);
    check_against_fresh(ids, 16, &o);
    ck_assert_int_eq(cw_session_extend(s, ids, 1, NULL, &err), CW_EFULL);
    cw_session_rewind(s, 3);
    static const int32_t bad[] = {-1, INT32_MIN, INT32_MAX};
    for (int i = 0; i < 4; i++) {
        int32_t three[3] = {1, 2, i < 3 ? bad[i] : (int32_t)n_vocab};
        ck_assert_int_eq(cw_session_extend(s, three, 3, NULL, &err), CW_EINVAL);
        ck_assert_uint_eq(cw_session_n(s), 3); /* the good ones before it were not taken */
    }
    ck_assert_int_eq(cw_session_extend(s, (int32_t[]){(int32_t)n_vocab - 1}, 1, NULL, &err), CW_OK);
    close_model();
}
END_TEST

/* ---- hooks -------------------------------------------------------------------------------------
 */

struct told {
    size_t calls, last_done, total, stop_at, rows;
    size_t polls, stop_poll;
};

static bool on_progress(void *arg, size_t done, size_t total) {
    struct told *t = arg;
    t->calls++;
    ck_assert_uint_gt(done, t->last_done);
    t->last_done = done;
    t->total = total;
    return t->stop_at != 0 && t->calls == t->stop_at;
}

static bool on_stop(void *arg) {
    struct told *t = arg;
    return ++t->polls == t->stop_poll;
}

static void on_row(void *arg, size_t position, const float *logits) {
    struct told *t = arg;
    ck_assert_uint_eq(position, 5 + t->rows);
    ck_assert_ptr_nonnull(logits);
    t->rows++;
}

START_TEST(progress_and_stopping) {
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1, .n_ctx = 64, .chunk = 8};
    int32_t ids[50];
    struct told t = {0};
    struct cw_session_hooks hooks = {.progress = on_progress, .arg = &t};
    open_model("tiny-gpt-oss-MXFP4.gguf", &o); /* three layers */
    random_ids(ids, 50, (int)n_vocab, 5);
    ck_assert_int_eq(cw_session_extend(s, ids, 30, &hooks, NULL), CW_OK);
    ck_assert_uint_eq(t.calls, 3); /* between four chunks */
    ck_assert_uint_eq(t.last_done, 24);
    ck_assert_uint_eq(t.total, 30);
    check_against_fresh(ids, 30, &o);

    cw_session_rewind(s, 5);
    t = (struct told){.stop_at = 2};
    ck_assert_int_eq(cw_session_extend(s, ids + 5, 30, &hooks, NULL), CW_ECANCEL);
    ck_assert_uint_eq(t.calls, 2);
    ck_assert_uint_eq(cw_session_n(s), 21); /* what was evaluated stays */
    ck_assert_ptr_null(cw_session_logits(s));
    ck_assert_int_eq(cw_session_extend(s, ids + 21, 9, NULL, NULL), CW_OK);
    check_against_fresh(ids, 30, &o);

    /* Stopped inside a chunk: that chunk is given up, nothing else. */
    cw_session_rewind(s, 5);
    t = (struct told){.stop_poll = 5};
    hooks = (struct cw_session_hooks){.stop = on_stop, .arg = &t};
    ck_assert_int_eq(cw_session_extend(s, ids + 5, 30, &hooks, NULL), CW_ECANCEL);
    ck_assert_uint_eq(t.polls, 5); /* once a layer */
    ck_assert_uint_eq(cw_session_n(s), 13);
    ck_assert_ptr_null(cw_session_logits(s));
    ck_assert_int_eq(cw_session_extend(s, ids + 13, 30, NULL, NULL), CW_OK);
    check_against_fresh(ids, 43, &o);

    cw_session_rewind(s, 5);
    t = (struct told){0};
    hooks = (struct cw_session_hooks){.row = on_row, .arg = &t};
    ck_assert_int_eq(cw_session_extend(s, ids + 5, 30, &hooks, NULL), CW_OK);
    ck_assert_uint_eq(t.rows, 30);
    check_against_fresh(ids, 35, &o);
    close_model();
}
END_TEST

/* ---- sizes -------------------------------------------------------------------------------------
 */

static bool keep_but(void *arg, struct cw_str name) {
    return !cw_str_eq(name, arg);
}

/* A copy of kept[0] with another context_length (-1: without). */
static const char *with_context(int64_t n) {
    struct mkgguf m;
    struct cw_gguf *g;
    char *from = model_path(kept[0]);
    ck_assert_ptr_nonnull(from);
    ck_assert_int_eq(cw_gguf_open(&g, from, NULL), CW_OK);
    mkgguf_init(&m);
    mkgguf_copy_keys(&m, g, keep_but, (void *)(uintptr_t) "llama.context_length");
    if (n >= 0) {
        mkgguf_u32(&m, "llama.context_length", (uint32_t)n);
    }
    mkgguf_copy_tensors(&m, g, NULL, NULL);
    const char *copy = tmp_path("context.gguf");
    mkgguf_save(&m, copy);
    mkgguf_free(&m);
    cw_gguf_close(g);
    free(from);
    return copy;
}

START_TEST(default_context) {
    static const struct {
        int64_t trained;
        uint32_t n_ctx;
        const char *reason;
    } cases[] = {
        {1 << 20, 8192, "default"}, {UINT32_MAX, 8192, "default"}, {0, 8192, "default"},
        {-1, 8192, "default"},      {2048, 2048, "trained size"},  {1, 1, "trained size"},
        {8192, 8192, "default"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run_options o = {.isa = CW_ISA_SCALAR, .n_threads = 1};
        fixture_open(&f, with_context(cases[i].trained), &o);
        s = session_open(&f, &o);
        ck_assert_uint_eq(cw_session_n_ctx(s), cases[i].n_ctx);
        ck_assert_str_eq(cw_session_n_ctx_reason(s), cases[i].reason);
        bool says = cases[i].trained > 0 && cases[i].trained < UINT32_MAX;
        ck_assert_uint_eq(cw_model_get_info(f.model)->n_ctx_train,
                          says ? (uint64_t)cases[i].trained : 0);
        ck_assert_int_eq(cw_session_extend(s, (int32_t[]){1}, 1, NULL, NULL), CW_OK);
        ck_assert_uint_gt(cw_session_bytes(s), 0);
        cw_session_destroy(s);
        fixture_close(&f);
    }
}
END_TEST

START_TEST(asked_context) {
    static const struct {
        uint32_t n_ctx;
        int rc;
    } cases[] = {
        {1, CW_OK},
        {255, CW_OK},
        {257, CW_OK},
        {100000, CW_OK},
        {(1u << 28) + 1, CW_EINVAL},
        {1u << 31, CW_EINVAL},
        {UINT32_MAX, CW_EINVAL},
    };
    struct run_options o = {.isa = CW_ISA_SCALAR, .n_threads = 1};
    struct cw_err err = {0};
    fixture_open(&f, with_context(4096), &o);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cw_session_options opt = {.n_ctx = cases[i].n_ctx};
        int rc = cw_session_create(&s, f.model, &opt, &err);
        ck_assert_msg(rc == cases[i].rc, "%u: %d (%s)", cases[i].n_ctx, rc, err.text);
        if (rc == CW_OK) {
            ck_assert_uint_eq(cw_session_n_ctx(s), cases[i].n_ctx);
            ck_assert_str_eq(cw_session_n_ctx_reason(s),
                             cases[i].n_ctx > 4096 ? "requested, above the trained size 4096"
                                                   : "requested");
            cw_session_destroy(s);
        } else {
            ck_assert_ptr_null(s);
        }
    }
    /* More than the machine has: refused with the sizes, not killed later. */
    struct cw_session_options huge = {.n_ctx = 1u << 28};
    ck_assert_int_eq(cw_session_create(&s, f.model, &huge, &err), CW_ENOMEM);
    ck_assert_ptr_nonnull(strstr(err.text, "268435456"));
    cw_session_destroy(NULL);
    fixture_close(&f);
}
END_TEST

START_TEST(learned_positions_limit_the_context) {
    struct run_options o = {.isa = CW_ISA_SCALAR, .n_threads = 1};
    struct cw_session_options opt = {.n_ctx = 129};
    struct cw_err err = {0};
    int32_t ids[128];
    open_model("tiny-gpt2-F32.gguf", &o); /* 128 rows */
    ck_assert_uint_eq(cw_session_n_ctx(s), 128);
    random_ids(ids, 128, (int)n_vocab, 1);
    ck_assert_int_eq(cw_session_extend(s, ids, 128, NULL, NULL), CW_OK);
    ck_assert_int_eq(cw_session_extend(s, ids, 1, NULL, NULL), CW_EFULL);
    struct cw_session *t;
    ck_assert_int_eq(cw_session_create(&t, f.model, &opt, &err), CW_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "128"));
    close_model();
}
END_TEST

START_TEST(cache_types) {
    struct run_options o = {.isa = CW_ISA_SCALAR, .n_threads = 1, .n_ctx = 64};
    struct cw_session_options opt = {.n_ctx = 64, .kv = CW_KV_Q8_0};
    struct cw_session *t;
    struct cw_err err = {0};
    open_model("tiny-tail-Q8_0.gguf", &o); /* heads of 80 */
    ck_assert_int_eq(cw_session_create(&t, f.model, &opt, &err), CW_EUNSUP);
    ck_assert_ptr_null(t);
    ck_assert_ptr_nonnull(strstr(err.text, "80"));
    close_model();
    open_model("tiny-mixed-Q4_K_M.gguf", &o);
    ck_assert_int_eq(cw_session_create(&t, f.model, &opt, &err), CW_OK);
    ck_assert_uint_lt(cw_session_bytes(t), cw_session_bytes(s));
    cw_session_destroy(t);
    close_model();
}
END_TEST

/* ---- a file that shrinks -----------------------------------------------------------------------
 */

START_TEST(truncated_while_running) {
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 2, .n_ctx = 64, .chunk = 4};
    struct cw_err err = {0};
    int32_t ids[16];
    char *from = model_path(kept[1]);
    const char *copy = tmp_path("shrinks.gguf");
    struct mkgguf m;
    struct cw_gguf *g;
    ck_assert_ptr_nonnull(from);
    ck_assert_int_eq(cw_gguf_open(&g, from, NULL), CW_OK);
    mkgguf_init(&m);
    mkgguf_copy_keys(&m, g, NULL, NULL);
    mkgguf_copy_tensors(&m, g, NULL, NULL);
    mkgguf_save(&m, copy);
    mkgguf_free(&m);
    cw_gguf_close(g);
    free(from);
    fixture_open(&f, copy, &o);
    s = session_open(&f, &o);
    n_vocab = (size_t)cw_model_get_info(f.model)->n_vocab;
    random_ids(ids, 16, (int)n_vocab, 2);
    ck_assert_int_eq(cw_session_extend(s, ids, 8, NULL, &err), CW_OK);
    ck_assert_int_eq(truncate(copy, 16384), 0);
    ck_assert_int_eq(cw_session_extend(s, ids + 8, 8, NULL, &err), CW_EIO);
    ck_assert_ptr_nonnull(strstr(err.text, "shrinks.gguf"));
    ck_assert_uint_eq(cw_session_n(s), 8);
    ck_assert_ptr_null(cw_session_logits(s));
    ck_assert_int_eq(cw_session_extend(s, ids + 8, 1, NULL, &err), CW_EIO); /* for good */
    cw_session_destroy(s);
    fixture_close(&f);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("session");
    TCase *c = tcase_create("timeline");
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, random_walks, 0, 10);
    tcase_add_test(c, sync_evaluates_the_last_again);
    tcase_add_test(c, full_and_out_of_range);
    tcase_add_test(c, progress_and_stopping);
    tcase_add_test(c, truncated_while_running);
    suite_add_tcase(suite, c);
    c = tcase_create("sizes");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, default_context);
    tcase_add_test(c, asked_context);
    tcase_add_test(c, learned_positions_limit_the_context);
    tcase_add_test(c, cache_types);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
