/* SPDX-License-Identifier: MIT
 *
 * Snapshots: what comes back is what was saved, to the last bit; anything else is refused with a
 * line and evaluated as ever. And the folder they lie in. */
#include "chinwag/snapshot.h"
#include "tests/model/fixture.h"
#include "tests/support/mkgguf.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct fixture f;
static struct cw_session *s;
static size_t n_vocab;
static int32_t ids[700];

static void open_model(const char *file, const struct run_options *o) {
    char *path = model_path(file);
    ck_assert_ptr_nonnull(path);
    fixture_open(&f, path, o);
    s = session_open(&f, o);
    n_vocab = (size_t)cw_model_get_info(f.model)->n_vocab;
    random_ids(ids, 700, (int)n_vocab, 3);
    free(path);
}

static void close_model(void) {
    cw_session_destroy(s);
    fixture_close(&f);
}

static struct cw_buf read_file(const char *path) {
    struct cw_buf b = {0};
    char part[4096];
    FILE *in = fopen(path, "rb");
    ck_assert_ptr_nonnull(in);
    for (size_t n; (n = fread(part, 1, sizeof part, in)) > 0;) {
        cw_buf_add(&b, part, n);
    }
    fclose(in);
    return b;
}

static void write_file(const char *path, const void *data, size_t n) {
    FILE *out = fopen(path, "wb");
    ck_assert_ptr_nonnull(out);
    ck_assert_uint_eq(fwrite(data, 1, n, out), n);
    ck_assert_int_eq(fclose(out), 0);
}

static void save(const char *path) {
    struct cw_err err = {0};
    ck_assert_msg(cw_session_save(s, path, &err) == CW_OK, "%s", err.text);
}

/* The timeline is ids[0..n) with the cells of an evaluation: one id more shows it. */
static void check_timeline(size_t n, const struct run_options *o) {
    ck_assert_uint_eq(cw_session_n(s), n);
    ck_assert(memcmp(cw_session_ids(s), ids, n * sizeof *ids) == 0);
    struct cw_session *fresh = session_open(&f, o);
    ck_assert_int_eq(cw_session_extend(fresh, ids, n + 1, NULL, NULL), CW_OK);
    ck_assert_int_eq(cw_session_extend(s, ids + n, 1, NULL, NULL), CW_OK);
    ck_assert(same_bits(cw_session_logits(s), cw_session_logits(fresh), n_vocab));
    cw_session_destroy(fresh);
}

static const size_t lengths[] = {16, 17, 31, 240, 255, 256, 257, 271, 272, 511, 512, 513, 600};

START_TEST(comes_back) {
    struct run_options o = {.isa = CW_ISA_AUTO,
                            .n_threads = 1,
                            .n_ctx = 650,
                            .exact = true,
                            .kv = _i % 2 == 0 ? CW_KV_F16 : CW_KV_Q8_0};
    static const char *const models[] = {"tiny-mixed-Q4_K_M.gguf", "tiny-gpt-oss-MXFP4.gguf",
                                         "tiny-tail-Q8_0.gguf"};
    const char *path = tmp_path("back.kv");
    struct cw_err err = {0};
    struct stat st;
    size_t restored;
    o.kv = _i / 2 == 2 ? CW_KV_F16 : o.kv;
    open_model(models[_i / 2], &o);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        size_t n = lengths[i], whole = n / 16 * 16;
        ck_assert_int_eq(cw_session_sync(s, ids, n, NULL, NULL, NULL), CW_OK);
        save(path);
        ck_assert(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
        cw_session_destroy(s);
        s = session_open(&f, &o);
        ck_assert_msg(cw_session_load(s, path, NULL, 0, &restored, &err) == CW_OK, "%s", err.text);
        ck_assert_uint_eq(restored, whole);
        ck_assert_ptr_null(cw_session_logits(s));
        check_timeline(whole, &o);
        /* A part of it, into a timeline that has other things. */
        size_t part = 1 + n / 2 < whole ? 1 + n / 2 : whole;
        cw_session_forget(s);
        ck_assert_int_eq(cw_session_extend(s, ids + 20, 40, NULL, NULL), CW_OK);
        ck_assert_int_eq(cw_session_load(s, path, ids, part, &restored, &err), CW_OK);
        ck_assert_uint_eq(restored, part);
        check_timeline(part, &o);
        ck_assert_uint_eq(cw_session_cached(s, ids + 20, 40), 40); /* retained */
        /* What it has need not be read. */
        ck_assert_int_eq(cw_session_load(s, path, ids, part, &restored, &err), CW_OK);
        ck_assert_uint_eq(restored, 0);
    }
    close_model();
}
END_TEST

/* A sync that follows evaluates what the file did not have, and no more. */
START_TEST(only_the_rest_is_evaluated) {
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1, .n_ctx = 650};
    struct cw_sync_stats stats;
    open_model("tiny-mixed-Q4_K_M.gguf", &o);
    ck_assert_int_eq(cw_session_extend(s, ids, 520, NULL, NULL), CW_OK);
    save(tmp_path("rest.kv"));
    cw_session_forget(s);
    ck_assert_int_eq(cw_session_load(s, tmp_path("rest.kv"), ids, 560, NULL, NULL), CW_OK);
    ck_assert_int_eq(cw_session_sync(s, ids, 560, NULL, &stats, NULL), CW_OK);
    ck_assert(stats.reused == 512 && stats.evaluated == 48);
    /* Another conversation finds the beginning they share. */
    cw_session_forget(s);
    ids[300] ^= 1;
    ck_assert_int_eq(cw_session_load(s, tmp_path("rest.kv"), ids, 560, NULL, NULL), CW_OK);
    ck_assert_int_eq(cw_session_sync(s, ids, 560, NULL, &stats, NULL), CW_OK);
    ck_assert(stats.reused == 300 && stats.evaluated == 260);
    /* And one that shares nothing is left as it is. */
    ids[0] ^= 1;
    ck_assert_int_eq(cw_session_load(s, tmp_path("rest.kv"), ids, 560, NULL, NULL), CW_OK);
    ck_assert_uint_eq(cw_session_n(s), 560);
    close_model();
}
END_TEST

START_TEST(smaller_context) {
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1, .n_ctx = 650};
    size_t restored;
    open_model("tiny-mixed-Q4_K_M.gguf", &o);
    ck_assert_int_eq(cw_session_extend(s, ids, 600, NULL, NULL), CW_OK);
    save(tmp_path("smaller.kv"));
    cw_session_destroy(s);
    o.n_ctx = 300;
    s = session_open(&f, &o);
    ck_assert_int_eq(cw_session_load(s, tmp_path("smaller.kv"), NULL, 0, &restored, NULL), CW_OK);
    ck_assert_uint_eq(restored, 300);
    cw_session_rewind(s, 280);
    check_timeline(280, &o);
    close_model();
}
END_TEST

START_TEST(too_short) {
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1, .n_ctx = 100};
    struct cw_err err = {0};
    open_model("tiny-mixed-Q4_K_M.gguf", &o);
    const char *path = tmp_path("short.kv");
    ck_assert_int_eq(cw_session_save(s, path, &err), CW_EINVAL);
    ck_assert_int_eq(cw_session_extend(s, ids, 15, NULL, NULL), CW_OK);
    ck_assert_int_eq(cw_session_save(s, path, &err), CW_EINVAL);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(cw_session_save(s, "/nowhere/at/all.kv", &err), CW_EINVAL);
    ck_assert_int_eq(cw_session_extend(s, ids, 1, NULL, NULL), CW_OK);
    ck_assert_int_eq(cw_session_save(s, "/nowhere/at/all.kv", &err), CW_EIO);
    ck_assert_int_eq(cw_session_load(s, "/nowhere/at/all.kv", NULL, 0, NULL, &err), CW_ENOENT);
    close_model();
}
END_TEST

/* ---- files that are not what they should be ----------------------------------------------------
 */

/* Loading must fail, say `part`, and leave a session that works; pages before the damage may have
 * come. */
static void refused(const char *path, const char *part, const struct run_options *o) {
    struct cw_err err = {0};
    size_t restored = 99;
    cw_session_forget(s);
    ck_assert_int_eq(cw_session_extend(s, ids + 50, 3, NULL, NULL), CW_OK);
    int rc = cw_session_load(s, path, ids, 600, &restored, &err);
    ck_assert_msg(rc == CW_EFORMAT, "%d (%s), not a refusal with '%s'", rc, err.text, part);
    ck_assert_msg(strstr(err.text, part) != NULL, "'%s' does not say '%s'", err.text, part);
    ck_assert(restored % 256 == 0 && restored < 600);
    if (restored > 0) {
        check_timeline(restored, o);
    } else {
        ck_assert_uint_eq(cw_session_cached(s, ids + 50, 3), 3);
    }
}

START_TEST(bit_flips) {
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1, .n_ctx = 650};
    const char *path = tmp_path("flips.kv");
    uint64_t r = 9;
    int refusals = 0;
    open_model("tiny-gpt-oss-MXFP4.gguf", &o);
    ck_assert_int_eq(cw_session_extend(s, ids, 600, NULL, NULL), CW_OK);
    save(path);
    struct cw_buf file = read_file(path);
    size_t table_end = 120 + 592 * 4 + 3 * 8;
    for (size_t i = 0; i < 400; i++) {
        r = r * 6364136223846793005u + 1442695040888963407u;
        /* every byte of the header, then ids and hashes, then cells and the gap before them */
        size_t at = i < 120   ? i
                    : i < 260 ? 120 + (size_t)(r >> 20) % (table_end - 120)
                              : table_end + (size_t)(r >> 20) % (file.len - table_end);
        size_t gap_end = (table_end + 4095) / 4096 * 4096;
        if (at >= table_end && at < gap_end) {
            continue;
        }
        file.data[at] = (char)(file.data[at] ^ 1 << (r >> 60) % 8);
        write_file(path, file.data, file.len);
        refused(path, "snapshot", &o);
        refusals++;
        file.data[at] = (char)(file.data[at] ^ 1 << (r >> 60) % 8);
    }
    ck_assert_int_gt(refusals, 350);
    write_file(path, file.data, file.len);
    cw_session_forget(s);
    size_t restored;
    ck_assert_int_eq(cw_session_load(s, path, NULL, 0, &restored, NULL), CW_OK);
    ck_assert_uint_eq(restored, 592);
    cw_buf_free(&file);
    close_model();
}
END_TEST

START_TEST(cut_or_grown) {
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1, .n_ctx = 650};
    const char *path = tmp_path("cut.kv");
    uint64_t r = 4;
    open_model("tiny-gpt-oss-MXFP4.gguf", &o);
    ck_assert_int_eq(cw_session_extend(s, ids, 600, NULL, NULL), CW_OK);
    save(path);
    struct cw_buf file = read_file(path);
    for (size_t i = 0; i < 200; i++) {
        r = r * 6364136223846793005u + 1442695040888963407u;
        write_file(path, file.data, i < 130 ? i : (size_t)(r >> 20) % file.len);
        refused(path, "snapshot", &o);
    }
    cw_buf_add(&file, "x", 1);
    write_file(path, file.data, file.len);
    refused(path, "cut short", &o);
    /* Not a file at all. */
    struct cw_err err = {0};
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(cw_session_load(s, path, NULL, 0, NULL, &err), CW_EIO);
    unlink(path);
    ck_assert_int_eq(symlink("/dev/zero", path), 0);
    ck_assert_int_eq(cw_session_load(s, path, NULL, 0, NULL, &err), CW_EIO);
    unlink(path);
    ck_assert_int_eq(cw_session_load(s, "/tmp", NULL, 0, NULL, &err), CW_EIO);
    cw_buf_free(&file);
    close_model();
}
END_TEST

/* The same ids, evaluated otherwise: none of these cells are right here. */
START_TEST(of_something_else) {
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1, .n_ctx = 650, .exact = true};
    const char *path = tmp_path("else.kv");
    open_model("tiny-mixed-Q4_K_M.gguf", &o);
    ck_assert_int_eq(cw_session_extend(s, ids, 600, NULL, NULL), CW_OK);
    save(path);
    struct run_options q8 = o;
    q8.kv = CW_KV_Q8_0;
    cw_session_destroy(s);
    s = session_open(&f, &q8);
    refused(path, "cache type", &q8);
    close_model();
    open_model("tiny-llama-Q4_0.gguf", &o);
    refused(path, "model", &o);
    close_model();
    /* The same names and shapes with other weights. */
    char *from = model_path("tiny-mixed-Q4_K_M.gguf");
    ck_assert_ptr_nonnull(from);
    struct cw_buf file = read_file(from);
    fixture_open(&f, from, &o);
    const struct cw_tensor *t = cw_gguf_tensor_at(f.gguf, cw_gguf_n_tensors(f.gguf) / 2);
    char *weights = memmem(file.data, file.len, t->data + t->bytes / 2, 64);
    ck_assert_ptr_nonnull(weights);
    weights[20] = (char)(weights[20] ^ 1);
    fixture_close(&f);
    const char *copy = tmp_path("other-weights.gguf");
    write_file(copy, file.data, file.len);
    fixture_open(&f, copy, &o);
    s = session_open(&f, &o);
    refused(path, "model", &o);
    close_model();
    cw_buf_free(&file);
    /* The same file elsewhere is the same model. */
    file = read_file(from);
    write_file(copy, file.data, file.len);
    fixture_open(&f, copy, &o);
    s = session_open(&f, &o);
    size_t restored;
    ck_assert_int_eq(cw_session_load(s, path, NULL, 0, &restored, NULL), CW_OK);
    ck_assert_uint_eq(restored, 592);
    close_model();
    cw_buf_free(&file);
    free(from);
    /* OpenBLAS and our own products round differently in a float file. */
    open_model("tiny-qwen2-F32.gguf", &o);
    ck_assert_int_eq(cw_session_extend(s, ids, 600, NULL, NULL), CW_OK);
    save(path);
    close_model();
    o.exact = false;
    open_model("tiny-qwen2-F32.gguf", &o);
    if (!cw_model_get_info(f.model)->exact) {
        refused(path, "arithmetic", &o);
    }
    close_model();
}
END_TEST

/* ---- the folder --------------------------------------------------------------------------------
 */

static void age(const char *dir, const char *name, time_t seconds) {
    struct cw_buf path = {0};
    struct timespec t[2] = {{.tv_sec = time(NULL) - seconds}, {.tv_sec = time(NULL) - seconds}};
    cw_buf_printf(&path, "%s/%s", dir, name);
    ck_assert_int_eq(utimensat(AT_FDCWD, path.data, t, 0), 0);
    cw_buf_free(&path);
}

static bool there(const char *dir, const char *name) {
    struct cw_buf path = {0};
    cw_buf_printf(&path, "%s/%s", dir, name);
    bool is = access(path.data, F_OK) == 0;
    cw_buf_free(&path);
    return is;
}

static void touch(const char *dir, const char *name) {
    struct cw_buf path = {0};
    cw_buf_printf(&path, "%s/%s", dir, name);
    write_file(path.data, "x", 1);
    cw_buf_free(&path);
}

START_TEST(folder_stays_below_its_size) {
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1, .n_ctx = 650};
    struct cw_err err = {0};
    struct cw_buf name = {0};
    struct stat st;
    size_t restored;
    cw_buf_printf(&name, "%s/made/of/folders", tmp_path("snapshots"));
    const char *dir = name.data;
    open_model("tiny-mixed-Q4_K_M.gguf", &o);
    ck_assert_uint_eq(cw_snapshots_bytes(dir), 0);
    ck_assert_int_eq(cw_snapshots_remove(dir, NULL, &err), CW_OK);
    ck_assert_int_eq(cw_snapshots_remove(dir, "a0", &err), CW_OK);
    ck_assert_int_eq(cw_snapshots_load(dir, "a0", s, NULL, 0, &restored, &err), CW_ENOENT);
    ck_assert_int_eq(cw_session_extend(s, ids, 300, NULL, NULL), CW_OK);
    ck_assert_msg(cw_snapshots_save(dir, "a0", 0, s, &err) == CW_OK, "%s", err.text);
    ck_assert(stat(dir, &st) == 0 && (st.st_mode & 0777) == 0700);
    uint64_t one = cw_snapshots_bytes(dir);
    ck_assert_uint_gt(one, 0);
    age(dir, "a0.kv", 300);
    ck_assert_int_eq(cw_snapshots_save(dir, "b1", 3 * one, s, &err), CW_OK);
    age(dir, "b1.kv", 200);
    ck_assert_int_eq(cw_snapshots_save(dir, "c2", 3 * one, s, &err), CW_OK);
    age(dir, "c2.kv", 100);
    ck_assert_uint_eq(cw_snapshots_bytes(dir), 3 * one);
    /* Loading is using. */
    ck_assert_int_eq(cw_snapshots_load(dir, "a0", s, ids, 300, &restored, &err), CW_OK);
    touch(dir, "notes.txt"); /* not ours */
    touch(dir, "d3.kv.77.tmp");
    age(dir, "d3.kv.77.tmp", 7200);
    touch(dir, "e4.kv.78.tmp"); /* somebody may be writing it */
    ck_assert_int_eq(cw_snapshots_save(dir, "d3", 3 * one, s, &err), CW_OK);
    ck_assert(there(dir, "a0.kv") && !there(dir, "b1.kv") && there(dir, "c2.kv"));
    ck_assert(there(dir, "d3.kv") && there(dir, "notes.txt"));
    ck_assert(!there(dir, "d3.kv.77.tmp") && there(dir, "e4.kv.78.tmp"));
    /* Over itself: nothing else has to go. */
    ck_assert_int_eq(cw_snapshots_save(dir, "d3", 3 * one, s, &err), CW_OK);
    ck_assert_uint_eq(cw_snapshots_bytes(dir), 3 * one);
    ck_assert_int_eq(cw_snapshots_save(dir, "d3", one - 1, s, &err), CW_EFULL);
    ck_assert_uint_eq(cw_snapshots_bytes(dir), 3 * one);
    ck_assert_int_eq(cw_snapshots_save(dir, "d3", one, s, &err), CW_OK);
    ck_assert_uint_eq(cw_snapshots_bytes(dir), one);
    ck_assert_int_eq(cw_snapshots_remove(dir, "d3", &err), CW_OK);
    ck_assert(!there(dir, "d3.kv"));
    ck_assert_int_eq(cw_snapshots_save(dir, "f5", 0, s, &err), CW_OK);
    ck_assert_int_eq(cw_snapshots_remove(dir, NULL, &err), CW_OK);
    ck_assert(!there(dir, "f5.kv") && !there(dir, "e4.kv.78.tmp") && there(dir, "notes.txt"));
    cw_buf_free(&name);
    close_model();
}
END_TEST

START_TEST(names_that_are_none) {
    static const char *const bad[] = {"",
                                      "..",
                                      "../a",
                                      "a/b",
                                      "A",
                                      "g",
                                      "a.kv",
                                      "a b",
                                      "a\n",
                                      "0x1",
                                      "00000000000000000000000000000000"
                                      "00000000000000000000000000000000"
                                      "0"};
    struct run_options o = {.isa = CW_ISA_AUTO, .n_threads = 1, .n_ctx = 100};
    struct cw_err err = {0};
    const char *dir = tmp_path("names");
    open_model("tiny-mixed-Q4_K_M.gguf", &o);
    ck_assert_int_eq(cw_session_extend(s, ids, 32, NULL, NULL), CW_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(cw_snapshots_save(dir, bad[i], 0, s, &err), CW_EINVAL);
        ck_assert_int_eq(cw_snapshots_load(dir, bad[i], s, NULL, 0, NULL, &err), CW_EINVAL);
        ck_assert_int_eq(cw_snapshots_remove(dir, bad[i], &err), CW_EINVAL);
    }
    ck_assert_int_eq(cw_snapshots_save(dir, NULL, 0, s, &err), CW_EINVAL);
    ck_assert_int_ne(access(dir, F_OK), 0);
    close_model();
}
END_TEST

int main(void) {
    Suite *suite = suite_create("snapshot");
    TCase *c = tcase_create("file");
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, comes_back, 0, 6);
    tcase_add_test(c, only_the_rest_is_evaluated);
    tcase_add_test(c, smaller_context);
    tcase_add_test(c, too_short);
    suite_add_tcase(suite, c);
    c = tcase_create("refused");
    tcase_set_timeout(c, 600);
    tcase_add_test(c, bit_flips);
    tcase_add_test(c, cut_or_grown);
    tcase_add_test(c, of_something_else);
    suite_add_tcase(suite, c);
    c = tcase_create("folder");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, folder_stays_below_its_size);
    tcase_add_test(c, names_that_are_none);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
