/* SPDX-License-Identifier: MIT
 *
 * Moving about in a tree of timelines: after whatever move, the logits are those of evaluating the
 * same ids from nothing, and what was evaluated before is not evaluated again. */
#include "chinwag/snapshot.h"
#include "tests/model/fixture.h"
#include "tests/support/mkgguf.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_CTX = 600, MAX_KNOWN = 4096 };

/* A timeline the session has left with its cells. */
struct known {
    int32_t ids[N_CTX];
    size_t n;
};

struct walk {
    struct fixture f;
    struct cw_session *s, *fresh;
    size_t n_vocab;
    uint64_t r;
    struct known now, *seen; /* [n_seen] */
    size_t n_seen;
    bool sure; /* nothing of `seen` was given up */
};

static uint64_t draw(struct walk *w, uint64_t below) {
    w->r = w->r * 6364136223846793005u + 1442695040888963407u;
    return (w->r >> 33) % below;
}

/* Few different ids, so that timelines meet by chance as well. */
static int32_t any_id(struct walk *w) {
    return (int32_t)draw(w, draw(w, 2) != 0 ? 3 : w->n_vocab);
}

static void walk_open(struct walk *w, const char *file, const struct run_options *o,
                      uint64_t cache_ram, uint64_t seed) {
    char *path = model_path(file);
    struct cw_session_options opt = {
        .n_ctx = N_CTX, .chunk = o->chunk, .kv = o->kv, .cache_ram = cache_ram};
    ck_assert_ptr_nonnull(path);
    *w = (struct walk){.r = seed, .sure = cache_ram != CW_NO_CACHE_RAM};
    fixture_open(&w->f, path, o);
    free(path);
    ck_assert_int_eq(cw_session_create(&w->s, w->f.model, &opt, NULL), CW_OK);
    opt.cache_ram = CW_NO_CACHE_RAM;
    opt.chunk = 0;
    ck_assert_int_eq(cw_session_create(&w->fresh, w->f.model, &opt, NULL), CW_OK);
    w->n_vocab = (size_t)cw_model_get_info(w->f.model)->n_vocab;
    w->seen = cw_calloc(MAX_KNOWN, sizeof *w->seen);
}

static void walk_close(struct walk *w) {
    cw_session_destroy(w->s);
    cw_session_destroy(w->fresh);
    fixture_close(&w->f);
    free(w->seen);
}

static const float *from_nothing(struct walk *w, const int32_t *ids, size_t n) {
    cw_session_rewind(w->fresh, 0);
    ck_assert_int_eq(cw_session_extend(w->fresh, ids, n, NULL, NULL), CW_OK);
    return cw_session_logits(w->fresh);
}

static void check_state(struct walk *w, const char *move) {
    ck_assert_msg(cw_session_n(w->s) == w->now.n, "after %s: %zu ids, not %zu", move,
                  cw_session_n(w->s), w->now.n);
    ck_assert(memcmp(cw_session_ids(w->s), w->now.ids, w->now.n * sizeof(int32_t)) == 0);
    const float *y = cw_session_logits(w->s);
    ck_assert_msg(y != NULL, "after %s: no logits", move);
    ck_assert_msg(same_bits(y, from_nothing(w, w->now.ids, w->now.n), w->n_vocab),
                  "after %s at %zu: other logits", move, w->now.n);
}

static void remember(struct walk *w, const int32_t *ids, size_t n) {
    ck_assert_uint_lt(w->n_seen, MAX_KNOWN);
    memcpy(w->seen[w->n_seen].ids, ids, n * sizeof *ids);
    w->seen[w->n_seen++].n = n;
}

static size_t common(const struct known *a, const struct known *b) {
    size_t i = 0;
    while (i < a->n && i < b->n && a->ids[i] == b->ids[i]) {
        i++;
    }
    return i;
}

/* Sync to `to`; it must reuse the longest prefix ever left. */
static void go(struct walk *w, const struct known *to) {
    struct cw_sync_stats stats;
    struct cw_cache_stats cache;
    size_t expected = common(to, &w->now);
    for (size_t i = 0; i < w->n_seen; i++) {
        size_t c = common(to, &w->seen[i]);
        expected = c > expected ? c : expected;
    }
    expected -= expected == to->n;
    remember(w, w->now.ids, w->now.n);
    ck_assert_int_eq(cw_session_sync(w->s, to->ids, to->n, NULL, &stats, NULL), CW_OK);
    cw_session_cache_stats(w->s, &cache);
    ck_assert_uint_le(cache.retained_bytes, cache.cache_ram);
    w->sure = w->sure && cache.evicted == 0;
    ck_assert_uint_eq(stats.reused + stats.evaluated, to->n);
    if (w->sure) {
        ck_assert_uint_ge(stats.reused, expected);
    }
    w->now = *to;
}

/* What is cut off is forgotten, unless a timeline that was left has more than it. */
static void cut(struct walk *w, size_t n) {
    for (size_t i = 0; i < w->n_seen; i++) {
        if (common(&w->seen[i], &w->now) == w->seen[i].n && w->seen[i].n > n) {
            w->seen[i].n = n;
        }
    }
    cw_session_rewind(w->s, n);
    w->now.n = n;
}

static void append(struct walk *w, struct known *t, size_t n) {
    for (; n > 0 && t->n < N_CTX; n--) {
        t->ids[t->n++] = any_id(w);
    }
}

/* ---- moves -------------------------------------------------------------------------------------
 */

static void extend(struct walk *w) {
    size_t before = w->now.n;
    append(w, &w->now, 1 + draw(w, draw(w, 8) == 0 ? 200 : 20));
    if (w->now.n == before) { /* full: a new beginning */
        struct known to = {.n = 0};
        append(w, &to, 1 + draw(w, 300));
        go(w, &to);
        return;
    }
    ck_assert_int_eq(cw_session_extend(w->s, w->now.ids + before, w->now.n - before, NULL, NULL),
                     CW_OK);
}

static void rewind_some(struct walk *w) {
    size_t n = draw(w, w->now.n + 1);
    cut(w, n < N_CTX ? n : n - 1);
    append(w, &w->now, 1);
    ck_assert_int_eq(cw_session_extend(w->s, w->now.ids + w->now.n - 1, 1, NULL, NULL), CW_OK);
}

/* Undo, edit, regenerate: leave an earlier timeline anywhere. */
static void fork_anywhere(struct walk *w) {
    struct known to = w->n_seen > 0 ? w->seen[draw(w, w->n_seen)] : w->now;
    to.n = draw(w, to.n + 1);
    append(w, &to, 1 + draw(w, 12));
    go(w, &to);
}

/* A sibling, whole or as far as an undo goes. */
static void go_back(struct walk *w) {
    struct known to = w->n_seen > 0 ? w->seen[draw(w, w->n_seen)] : w->now;
    if (to.n > 0 && draw(w, 2) != 0) {
        to.n = draw(w, to.n) + 1;
    }
    if (to.n > 0) {
        go(w, &to);
    }
}

/* Several replies: each as evaluated alone, at every step; then one is taken, or none. */
static void several(struct walk *w) {
    int n = 1 + (int)draw(w, CW_MAX_BRANCHES), steps = 1 + (int)draw(w, 6);
    struct known t[CW_MAX_BRANCHES];
    bool live[CW_MAX_BRANCHES];
    int32_t ids[CW_MAX_BRANCHES];
    for (int i = 0; i < n; i++) {
        t[i] = w->now;
        live[i] = true;
    }
    ck_assert_int_eq(cw_session_branch(w->s, n, NULL), CW_OK);
    ck_assert_int_eq(cw_session_n_branches(w->s), n);
    ck_assert_ptr_null(cw_session_logits(w->s));
    for (int i = 0; i < n; i++) {
        float *y = cw_session_branch_logits(w->s, i);
        ck_assert(same_bits(y, from_nothing(w, w->now.ids, w->now.n), w->n_vocab));
        y[0] = (float)i; /* each has its own */
    }
    for (int k = 0; k < steps; k++) {
        for (int i = 0; i < n; i++) {
            live[i] = live[i] && t[i].n < N_CTX && draw(w, 8) != 0;
            ids[i] = live[i] ? any_id(w) : -1;
            if (live[i]) {
                ck_assert_uint_ge(cw_session_branch_room(w->s, i), 1);
                t[i].ids[t[i].n++] = ids[i];
            }
        }
        ck_assert_int_eq(cw_session_step(w->s, ids, live, NULL, NULL), CW_OK);
        int i = (int)draw(w, (uint64_t)n);
        if (live[i]) {
            size_t count;
            const int32_t *all = cw_session_branch_ids(w->s, i, &count);
            ck_assert(count == t[i].n && memcmp(all, t[i].ids, count * sizeof *all) == 0);
            ck_assert(same_bits(cw_session_branch_logits(w->s, i),
                                from_nothing(w, t[i].ids, t[i].n), w->n_vocab));
        }
    }
    int chosen = (int)draw(w, (uint64_t)n + 1) - 1;
    for (int i = 0; i < n; i++) {
        remember(w, t[i].ids, t[i].n);
    }
    cw_session_adopt(w->s, chosen);
    ck_assert_int_eq(cw_session_n_branches(w->s), 0);
    if (chosen >= 0) {
        w->now = t[chosen];
    }
    if (chosen < 0 || !live[chosen]) { /* no logits: the last id again */
        struct known to = w->now;
        go(w, &to);
    }
}

/* Guesses: some ids at once, then back to any of them. */
static void no_row(void *arg, size_t position, const float *logits) {
    (void)position;
    (void)logits;
    (*(size_t *)arg)++;
}

static void guess(struct walk *w) {
    size_t before = w->now.n, told = 0;
    struct cw_session_hooks hooks = {.row = no_row, .arg = &told};
    append(w, &w->now, 1 + draw(w, 8));
    size_t n = w->now.n - before;
    ck_assert_int_eq(cw_session_extend(w->s, w->now.ids + before, n, &hooks, NULL), CW_OK);
    ck_assert_uint_eq(told, n);
    if (n > 1) {
        cut(w, w->now.n - draw(w, n));
    }
    if (n == 0) {
        rewind_some(w);
    }
}

/* To disk, elsewhere (or out of memory), and back. */
static void by_disk(struct walk *w) {
    struct cw_err err = {0};
    struct known saved = w->now;
    const char *path = tmp_path("walk.kv");
    size_t restored;
    if (saved.n < 16) {
        ck_assert_int_eq(cw_session_save(w->s, path, &err), CW_EINVAL);
        return;
    }
    ck_assert_msg(cw_session_save(w->s, path, &err) == CW_OK, "%s", err.text);
    bool forget = draw(w, 2) != 0;
    if (forget) {
        cw_session_forget(w->s);
        ck_assert_uint_eq(cw_session_n(w->s), 0);
        w->n_seen = 0;
        w->now.n = 0;
        append(w, &w->now, 1 + draw(w, 300));
        memcpy(w->now.ids, saved.ids, (draw(w, w->now.n + 1)) * sizeof(int32_t) / 2);
        ck_assert_int_eq(cw_session_extend(w->s, w->now.ids, w->now.n, NULL, NULL), CW_OK);
    } else {
        fork_anywhere(w);
    }
    struct known to = saved;
    to.n = draw(w, 2) != 0 ? to.n : 1 + draw(w, to.n);
    append(w, &to, draw(w, 4));
    size_t cached = cw_session_cached(w->s, to.ids, to.n);
    int rc = cw_session_load(w->s, path, to.ids, to.n, &restored, &err);
    ck_assert_msg(rc == CW_OK, "%s", err.text);
    size_t in_file = saved.n / 16 * 16, useful = common(&to, &saved);
    useful = useful < in_file ? useful : in_file;
    if (cached < useful) {
        ck_assert_uint_eq(cw_session_n(w->s), useful);
        ck_assert_uint_ge(restored, useful - cached);
    } else {
        ck_assert_uint_eq(restored, 0);
    }
    ck_assert_uint_ge(cw_session_cached(w->s, to.ids, to.n), useful);
    remember(w, w->now.ids, w->now.n);
    struct cw_sync_stats stats;
    ck_assert_int_eq(cw_session_sync(w->s, to.ids, to.n, NULL, &stats, NULL), CW_OK);
    ck_assert_uint_ge(stats.reused, useful - (useful == to.n));
    w->now = to;
}

static const struct {
    const char *name;
    void (*run)(struct walk *w);
} moves[] = {{"extend", extend},           {"rewind", rewind_some}, {"fork", fork_anywhere},
             {"fork", fork_anywhere},      {"go back", go_back},    {"go back", go_back},
             {"several replies", several}, {"guess", guess},        {"disk", by_disk}};

static const struct {
    const char *file;
    enum cw_kv_type kv;
    int chunk;
} models[] = {
    {"tiny-mixed-Q4_K_M.gguf", CW_KV_F16, 0},   {"tiny-mixed-Q4_K_M.gguf", CW_KV_Q8_0, 33},
    {"tiny-gemma3-F32.gguf", CW_KV_F16, 100},   {"tiny-gpt-oss-MXFP4.gguf", CW_KV_F16, 5},
    {"tiny-gpt-oss-MXFP4.gguf", CW_KV_Q8_0, 0}, {"tiny-tail-Q8_0.gguf", CW_KV_F16, 64},
    {"tiny-qwen2-F32.gguf", CW_KV_F16, 1},      {"tiny-llama-yarn-F32.gguf", CW_KV_F16, 256},
};
enum { N_MODELS = sizeof models / sizeof *models, WALKS = 2 * N_MODELS, STEPS = 150 };

static void walk_for(int i, uint64_t cache_ram) {
    struct walk w;
    struct run_options o = {.isa = CW_ISA_AUTO,
                            .n_threads = 1 + i % 2,
                            .chunk = models[i % N_MODELS].chunk,
                            .exact = true,
                            .kv = models[i % N_MODELS].kv};
    walk_open(&w, models[i % N_MODELS].file, &o, cache_ram, 77 + (uint64_t)i);
    append(&w, &w.now, 300);
    ck_assert_int_eq(cw_session_extend(w.s, w.now.ids, w.now.n, NULL, NULL), CW_OK);
    for (int step = 0; step < STEPS; step++) {
        size_t m = draw(&w, sizeof moves / sizeof *moves);
        if (draw(&w, 3) == 0) {
            cw_session_warm(w.s); /* changes nothing */
        }
        moves[m].run(&w);
        check_state(&w, moves[m].name);
    }
    walk_close(&w);
}

START_TEST(random_moves) {
    walk_for(_i, (uint64_t)1 << 30);
}
END_TEST

/* Without room for retained timelines the same holds, only more is evaluated. */
START_TEST(random_moves_without_room) {
    walk_for(_i, _i % 2 == 0 ? CW_NO_CACHE_RAM : (uint64_t)1 << 20);
}
END_TEST

/* ---- what stays and what goes ------------------------------------------------------------------
 */

START_TEST(least_used_goes_first) {
    struct walk w;
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1};
    struct cw_cache_stats cache;
    struct cw_sync_stats stats;
    struct known t[4];
    walk_open(&w, "tiny-mixed-Q4_K_M.gguf", &o, (uint64_t)1 << 30, 5);
    append(&w, &w.now, 256);
    ck_assert_int_eq(cw_session_extend(w.s, w.now.ids, 256, NULL, NULL), CW_OK);
    cw_session_cache_stats(w.s, &cache);
    uint64_t page = cache.current_bytes;
    ck_assert_uint_gt(page, 0);
    cw_session_destroy(w.s);

    struct cw_session_options opt = {.n_ctx = N_CTX, .cache_ram = 2 * page + page / 2};
    ck_assert_int_eq(cw_session_create(&w.s, w.f.model, &opt, NULL), CW_OK);
    for (int i = 0; i < 4; i++) { /* of one page each, nothing in common */
        t[i].n = 0;
        t[i].ids[t[i].n++] = 10 + i;
        append(&w, &t[i], 99);
    }
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(cw_session_sync(w.s, t[i].ids, 100, NULL, &stats, NULL), CW_OK);
        ck_assert_uint_eq(stats.reused, 0);
    }
    cw_session_cache_stats(w.s, &cache);
    ck_assert(cache.retained == 2 && cache.retained_bytes == 2 * page && cache.evicted == 0);
    ck_assert_int_eq(cw_session_sync(w.s, t[0].ids, 100, NULL, &stats, NULL), CW_OK);
    ck_assert_uint_eq(stats.reused, 99);
    /* Now 1 was used longest ago. */
    ck_assert_int_eq(cw_session_sync(w.s, t[3].ids, 100, NULL, &stats, NULL), CW_OK);
    ck_assert_uint_eq(stats.reused, 0);
    cw_session_cache_stats(w.s, &cache);
    ck_assert(cache.retained == 2 && cache.evicted == 1);
    ck_assert_uint_eq(cw_session_cached(w.s, t[0].ids, 100), 100);
    ck_assert_uint_eq(cw_session_cached(w.s, t[1].ids, 100), 0);
    ck_assert_uint_eq(cw_session_cached(w.s, t[2].ids, 100), 100);
    cw_session_forget(w.s);
    cw_session_cache_stats(w.s, &cache);
    ck_assert(cache.retained == 0 && cache.retained_bytes == 0 && cache.current_bytes == 0);
    walk_close(&w);
}
END_TEST

/* Branches share what they have in common: only the pages where they part are held twice. */
START_TEST(branches_share_pages) {
    struct walk w;
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1};
    struct cw_cache_stats cache;
    int32_t ids[CW_MAX_BRANCHES];
    bool live[CW_MAX_BRANCHES];
    walk_open(&w, "tiny-mixed-Q4_K_M.gguf", &o, (uint64_t)1 << 30, 5);
    append(&w, &w.now, 520); /* two pages and 8 */
    ck_assert_int_eq(cw_session_extend(w.s, w.now.ids, 520, NULL, NULL), CW_OK);
    ck_assert_int_eq(cw_session_branch(w.s, CW_MAX_BRANCHES, NULL), CW_OK);
    for (int i = 0; i < CW_MAX_BRANCHES; i++) {
        ids[i] = i;
        live[i] = true;
    }
    ck_assert_int_eq(cw_session_step(w.s, ids, live, NULL, NULL), CW_OK);
    cw_session_adopt(w.s, 3);
    cw_session_cache_stats(w.s, &cache);
    ck_assert_uint_eq(cache.retained, CW_MAX_BRANCHES - 1);
    uint64_t page = cache.current_bytes / 3;
    ck_assert_uint_eq(cache.retained_bytes, (CW_MAX_BRANCHES - 1) * page);
    ck_assert_uint_eq(cw_session_ids(w.s)[520], 3);
    walk_close(&w);
}
END_TEST

START_TEST(branch_arguments) {
    struct walk w;
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1};
    struct cw_err err = {0};
    walk_open(&w, "tiny-gpt-oss-MXFP4.gguf", &o, 0, 5);
    ck_assert_int_eq(cw_session_branch(w.s, 0, &err), CW_EINVAL);
    ck_assert_int_eq(cw_session_branch(w.s, CW_MAX_BRANCHES + 1, &err), CW_EINVAL);
    ck_assert_int_eq(cw_session_n_branches(w.s), 0);
    cw_session_adopt(w.s, -1); /* none begun */
    append(&w, &w.now, N_CTX - 1);
    ck_assert_int_eq(cw_session_extend(w.s, w.now.ids, N_CTX - 1, NULL, NULL), CW_OK);
    ck_assert_int_eq(cw_session_branch(w.s, 2, &err), CW_OK);
    const bool both[] = {true, true}, second[] = {false, true}, none[] = {false, false};
    ck_assert_int_eq(cw_session_step(w.s, (int32_t[]){1, -1}, both, NULL, &err), CW_EINVAL);
    ck_assert_ptr_nonnull(cw_session_branch_logits(w.s, 0)); /* nothing happened */
    ck_assert_int_eq(cw_session_step(w.s, (int32_t[]){1, 2}, none, NULL, &err), CW_OK);
    ck_assert_int_eq(cw_session_step(w.s, (int32_t[]){-1, 2}, second, NULL, &err), CW_OK);
    ck_assert_ptr_null(cw_session_branch_logits(w.s, 0));
    ck_assert_uint_eq(cw_session_branch_room(w.s, 1), 0);
    ck_assert_uint_eq(cw_session_branch_room(w.s, 0), 1);
    ck_assert_int_eq(cw_session_step(w.s, (int32_t[]){1, 2}, both, NULL, &err), CW_EFULL);
    size_t n;
    cw_session_branch_ids(w.s, 0, &n);
    ck_assert_uint_eq(n, N_CTX - 1);
    /* Rewinding ends them; both are still there. */
    w.now.ids[N_CTX - 1] = 2;
    cw_session_rewind(w.s, 10);
    ck_assert_int_eq(cw_session_n_branches(w.s), 0);
    ck_assert_uint_eq(cw_session_cached(w.s, w.now.ids, N_CTX), N_CTX);
    walk_close(&w);
}
END_TEST

static bool stop_now(void *arg) {
    return (*(int *)arg)-- == 0;
}

/* A step that was stopped leaves every branch as it was. */
START_TEST(stopped_step) {
    struct walk w;
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1};
    int polls = 1;
    struct cw_session_hooks hooks = {.stop = stop_now, .arg = &polls};
    const bool live[] = {true, true, true};
    const int32_t ids[] = {7, 8, 9};
    walk_open(&w, "tiny-gpt-oss-MXFP4.gguf", &o, 0, 5);
    append(&w, &w.now, 250);
    ck_assert_int_eq(cw_session_extend(w.s, w.now.ids, 250, NULL, NULL), CW_OK);
    ck_assert_int_eq(cw_session_branch(w.s, 3, NULL), CW_OK);
    ck_assert_int_eq(cw_session_step(w.s, ids, live, NULL, NULL), CW_OK);
    ck_assert_int_eq(cw_session_step(w.s, ids, live, &hooks, NULL), CW_ECANCEL);
    ck_assert_ptr_null(cw_session_branch_logits(w.s, 1));
    ck_assert_int_eq(cw_session_step(w.s, ids, live, NULL, NULL), CW_OK);
    for (int i = 0; i < 3; i++) {
        w.now.n = 252;
        w.now.ids[250] = w.now.ids[251] = ids[i];
        ck_assert(same_bits(cw_session_branch_logits(w.s, i), from_nothing(&w, w.now.ids, 252),
                            w.n_vocab));
    }
    walk_close(&w);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tree");
    TCase *c = tcase_create("moves");
    tcase_set_timeout(c, 900);
    tcase_add_loop_test(c, random_moves, 0, WALKS);
    tcase_add_loop_test(c, random_moves_without_room, 0, N_MODELS);
    suite_add_tcase(suite, c);
    c = tcase_create("pages");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, least_used_goes_first);
    tcase_add_test(c, branches_share_pages);
    tcase_add_test(c, branch_arguments);
    tcase_add_test(c, stopped_step);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
