/* SPDX-License-Identifier: MIT
 *
 * The GGUF reader against right files, wrong files and files that change under it. */
#include "tests/support/mkgguf.h"

#include <check.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define F32_4 ((const uint64_t[]){4})

static struct mkgguf m;
static struct cw_buf image;

static void setup(void) {
    mkgguf_init(&m);
}

static void teardown(void) {
    mkgguf_free(&m);
    cw_buf_free(&image);
}

/* Opening `path` fails with `code` (0: any) and a line that holds `part`. */
static void refused_path(const char *path, int code, const char *part) {
    struct cw_gguf *g = (struct cw_gguf *)(uintptr_t)1;
    struct cw_err err = {0};
    int rc = cw_gguf_open(&g, path, &err);
    ck_assert_msg(rc != CW_OK, "%s was opened", path);
    ck_assert_msg(code == 0 || rc == code, "code %d (%s)", rc, err.text);
    ck_assert_int_eq(err.code, rc);
    ck_assert_ptr_null(g);
    ck_assert_msg(strstr(err.text, part) != NULL, "'%s' does not say '%s'", err.text, part);
    ck_assert_ptr_null(strchr(err.text, '\n'));
}

static void refused_bytes(const void *data, size_t n, int code, const char *part) {
    const char *path = tmp_path("refused.gguf");
    tmp_write(path, data, n);
    refused_path(path, code, part);
}

static void refused(int code, const char *part) {
    mkgguf_build(&m, &image);
    refused_bytes(image.data, image.len, code, part);
}

static struct cw_gguf *opened(void) {
    struct cw_gguf *g;
    struct cw_err err = {0};
    const char *path = tmp_path("good.gguf");
    mkgguf_save(&m, path);
    int rc = cw_gguf_open(&g, path, &err);
    ck_assert_msg(rc == CW_OK, "%s", err.text);
    return g;
}

static void same_float(float a, float b) {
    ck_assert_msg(a == b, "%g is not %g", (double)a, (double)b);
}

/* Touch everything that accessors give, so that a sanitizer sees a bad pointer. */
static void walk(const struct cw_gguf *g) {
    unsigned sum = 0;
    for (size_t i = 0; i < cw_gguf_n_keys(g); i++) {
        const struct cw_gguf_key *k = cw_gguf_key_at(g, i);
        char *name = cw_strndup(k->name.data, k->name.len);
        uint32_t u;
        float f;
        bool b;
        struct cw_str s, *strs = NULL;
        int32_t *ints = NULL;
        float *floats = NULL;
        size_t n;
        cw_gguf_u32(g, name, &u, NULL);
        cw_gguf_f32(g, name, &f, NULL);
        cw_gguf_bool(g, name, &b, NULL);
        if (cw_gguf_str(g, name, &s, NULL) == CW_OK) {
            for (size_t j = 0; j < s.len; j++) {
                sum += (unsigned char)s.data[j];
            }
        }
        if (cw_gguf_strs(g, name, &strs, &n, NULL) == CW_OK && n > 0 && strs[n - 1].len > 0) {
            sum += (unsigned char)strs[n - 1].data[strs[n - 1].len - 1];
        }
        cw_gguf_i32s(g, name, &ints, &n, NULL);
        cw_gguf_f32s(g, name, &floats, &n, NULL);
        free(strs);
        free(ints);
        free(floats);
        free(name);
    }
    for (size_t i = 0; i < cw_gguf_n_tensors(g); i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(g, i);
        for (uint64_t j = 0; j < t->bytes; j++) {
            sum += t->data[j];
        }
    }
    ck_assert(sum != 12345678); /* keep the reads */
}

/* ---- right files -------------------------------------------------------------------------------
 */

/* A file with a key of every kind and three tensors. */
static void fill(void) {
    static const float f[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    static const char *const words[] = {"a", "", "long enough"};
    uint8_t u8 = 200;
    int8_t i8 = -5;
    uint16_t u16 = 65535;
    int16_t i16 = -300;
    int32_t i32 = -70000;
    uint64_t u64 = 1ull << 40;
    int64_t i64 = -1;
    double f64 = 0.25;
    mkgguf_scalar(&m, "u8", CW_GGUF_U8, &u8, 1);
    mkgguf_scalar(&m, "i8", CW_GGUF_I8, &i8, 1);
    mkgguf_scalar(&m, "u16", CW_GGUF_U16, &u16, 2);
    mkgguf_scalar(&m, "i16", CW_GGUF_I16, &i16, 2);
    mkgguf_u32(&m, "u32", 4000000000u);
    mkgguf_scalar(&m, "i32", CW_GGUF_I32, &i32, 4);
    mkgguf_f32(&m, "f32", 1.5f);
    mkgguf_bool(&m, "bool", true);
    mkgguf_str(&m, "string", "hello");
    mkgguf_strs(&m, "words", words, 3);
    mkgguf_scalar(&m, "u64", CW_GGUF_U64, &u64, 8);
    mkgguf_scalar(&m, "i64", CW_GGUF_I64, &i64, 8);
    mkgguf_scalar(&m, "f64", CW_GGUF_F64, &f64, 8);
    mkgguf_array(&m, "floats", CW_GGUF_F32, 4, f, 16);
    mkgguf_tensor(&m, "first", CW_F32, 2, (const uint64_t[]){2, 3}, f, 24);
    mkgguf_tensor(&m, "second", CW_F32, 1, F32_4, f + 4, 16);
    mkgguf_tensor(&m, "third", CW_Q8_0, 3, (const uint64_t[]){32, 1, 2},
                  "0123456789012345678901234567"
                  "8901234567890123456789012345678901234567",
                  68);
}

START_TEST(reads_what_was_written) {
    m.version = _i == 0 ? 2 : 3;
    if (_i == 2) {
        m.alignment = 256;
        mkgguf_u32(&m, "general.alignment", 256);
    }
    fill();
    struct cw_gguf *g = opened();
    ck_assert_int_eq(cw_gguf_version(g), _i == 0 ? 2 : 3);
    ck_assert_uint_eq(cw_gguf_n_keys(g), _i == 2 ? 15 : 14);
    ck_assert_uint_eq(cw_gguf_n_tensors(g), 3);
    const struct cw_tensor *t = cw_gguf_tensor(g, "first");
    ck_assert_ptr_nonnull(t);
    ck_assert_ptr_eq(t, cw_gguf_tensor_at(g, 0));
    ck_assert_int_eq(t->type, CW_F32);
    ck_assert_int_eq(t->n_dims, 2);
    ck_assert(t->dims[0] == 2 && t->dims[1] == 3 && t->dims[2] == 1 && t->dims[3] == 1);
    ck_assert_uint_eq(t->bytes, 24);
    same_float(((const float *)(const void *)t->data)[5], 6.0f);
    t = cw_gguf_tensor(g, "second");
    same_float(((const float *)(const void *)t->data)[0], 5.0f);
    ck_assert_uint_eq((uintptr_t)t->data % m.alignment, 0);
    t = cw_gguf_tensor(g, "third");
    ck_assert_uint_eq(t->bytes, 68);
    ck_assert_mem_eq(t->data, "0123", 4);
    ck_assert_ptr_null(cw_gguf_tensor(g, "fourth"));
    ck_assert_ptr_null(cw_gguf_tensor_at(g, 3));
    ck_assert_ptr_null(cw_gguf_key(g, "none"));
    ck_assert_ptr_null(cw_gguf_key_at(g, 15));
    ck_assert_str_eq(cw_gguf_path(g), tmp_path("good.gguf"));
    ck_assert(!cw_gguf_damaged(g));
    walk(g);
    cw_gguf_close(g);
    cw_gguf_close(NULL);
}
END_TEST

START_TEST(converts_in_range_only) {
    static const struct {
        const char *key;
        int rc;
        uint32_t value;
    } u32s[] = {
        {"u8", CW_OK, 200},       {"u16", CW_OK, 65535},     {"u32", CW_OK, 4000000000u},
        {"i8", CW_EFORMAT, 0},    {"i16", CW_EFORMAT, 0},    {"i32", CW_EFORMAT, 0},
        {"i64", CW_EFORMAT, 0},   {"u64", CW_EFORMAT, 0},    {"f32", CW_EFORMAT, 0},
        {"f64", CW_EFORMAT, 0},   {"bool", CW_EFORMAT, 0},   {"string", CW_EFORMAT, 0},
        {"words", CW_EFORMAT, 0}, {"floats", CW_EFORMAT, 0}, {"none", CW_ENOENT, 0},
    };
    fill();
    uint64_t small = 7;
    mkgguf_scalar(&m, "small", CW_GGUF_U64, &small, 8);
    struct cw_gguf *g = opened();
    uint32_t u;
    struct cw_err err;
    for (size_t i = 0; i < sizeof u32s / sizeof *u32s; i++) {
        memset(&err, 0, sizeof err);
        u = 77;
        ck_assert_msg(cw_gguf_u32(g, u32s[i].key, &u, &err) == u32s[i].rc, "%s", u32s[i].key);
        ck_assert_uint_eq(u, u32s[i].rc == CW_OK ? u32s[i].value : 77);
        if (u32s[i].rc == CW_EFORMAT) {
            ck_assert_ptr_nonnull(strstr(err.text, u32s[i].key));
        } else {
            ck_assert_int_eq(err.code, 0);
        }
    }
    ck_assert_int_eq(cw_gguf_u32(g, "small", &u, NULL), CW_OK);
    ck_assert_uint_eq(u, 7);
    cw_gguf_close(g);
}
END_TEST

START_TEST(reads_floats_bools_strings) {
    fill();
    double huge = 1e300, inf = (double)__builtin_inff();
    uint8_t two = 2;
    mkgguf_scalar(&m, "huge", CW_GGUF_F64, &huge, 8);
    mkgguf_scalar(&m, "inf", CW_GGUF_F64, &inf, 8);
    mkgguf_scalar(&m, "two", CW_GGUF_BOOL, &two, 1);
    mkgguf_array(&m, "huges", CW_GGUF_F64, 1, &huge, 8);
    mkgguf_str(&m, "empty", "");
    struct cw_gguf *g = opened();
    float f = 0;
    bool b = false;
    struct cw_str s;
    ck_assert_int_eq(cw_gguf_f32(g, "f32", &f, NULL), CW_OK);
    same_float(f, 1.5f);
    ck_assert_int_eq(cw_gguf_f32(g, "f64", &f, NULL), CW_OK);
    same_float(f, 0.25f);
    ck_assert_int_eq(cw_gguf_f32(g, "i32", &f, NULL), CW_OK);
    same_float(f, -70000.0f);
    ck_assert_int_eq(cw_gguf_f32(g, "huge", &f, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_f32(g, "inf", &f, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_f32(g, "bool", &f, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_f32(g, "string", &f, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_bool(g, "bool", &b, NULL), CW_OK);
    ck_assert(b);
    ck_assert_int_eq(cw_gguf_bool(g, "two", &b, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_bool(g, "u8", &b, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_str(g, "string", &s, NULL), CW_OK);
    ck_assert(cw_str_eq(s, "hello"));
    ck_assert_int_eq(cw_gguf_str(g, "empty", &s, NULL), CW_OK);
    ck_assert_uint_eq(s.len, 0);
    ck_assert_int_eq(cw_gguf_str(g, "words", &s, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_str(g, "u32", &s, NULL), CW_EFORMAT);
    cw_gguf_close(g);
}
END_TEST

START_TEST(reads_arrays) {
    static const int16_t shorts[] = {-3, 0, 300};
    static const uint64_t longs[] = {1, 1ull << 31};
    static const uint8_t bools[] = {1, 0, 1};
    fill();
    mkgguf_array(&m, "shorts", CW_GGUF_I16, 3, shorts, sizeof shorts);
    mkgguf_array(&m, "longs", CW_GGUF_U64, 2, longs, sizeof longs);
    mkgguf_array(&m, "bools", CW_GGUF_BOOL, 3, bools, 3);
    mkgguf_array(&m, "nothing", CW_GGUF_I32, 0, "", 0);
    struct cw_gguf *g = opened();
    struct cw_str *s;
    int32_t *v;
    float *f;
    size_t n;
    ck_assert_int_eq(cw_gguf_strs(g, "words", &s, &n, NULL), CW_OK);
    ck_assert_uint_eq(n, 3);
    ck_assert(cw_str_eq(s[0], "a") && cw_str_eq(s[1], "") && cw_str_eq(s[2], "long enough"));
    free(s);
    ck_assert_int_eq(cw_gguf_strs(g, "floats", &s, &n, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_strs(g, "string", &s, &n, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_strs(g, "none", &s, &n, NULL), CW_ENOENT);
    ck_assert_int_eq(cw_gguf_i32s(g, "shorts", &v, &n, NULL), CW_OK);
    ck_assert(n == 3 && v[0] == -3 && v[1] == 0 && v[2] == 300);
    free(v);
    ck_assert_int_eq(cw_gguf_i32s(g, "bools", &v, &n, NULL), CW_OK);
    ck_assert(n == 3 && v[0] == 1 && v[1] == 0 && v[2] == 1);
    free(v);
    ck_assert_int_eq(cw_gguf_i32s(g, "nothing", &v, &n, NULL), CW_OK);
    ck_assert_uint_eq(n, 0);
    free(v);
    ck_assert_int_eq(cw_gguf_i32s(g, "longs", &v, &n, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_i32s(g, "floats", &v, &n, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_i32s(g, "words", &v, &n, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_f32s(g, "floats", &f, &n, NULL), CW_OK);
    ck_assert(n == 4 && f[3] == 4.0f);
    free(f);
    ck_assert_int_eq(cw_gguf_f32s(g, "shorts", &f, &n, NULL), CW_OK);
    ck_assert(n == 3 && f[2] == 300.0f);
    free(f);
    ck_assert_int_eq(cw_gguf_f32s(g, "words", &f, &n, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_f32s(g, "bools", &f, &n, NULL), CW_EFORMAT);
    cw_gguf_close(g);
}
END_TEST

START_TEST(remembers_what_was_used) {
    fill();
    struct cw_gguf *g = opened();
    uint32_t u;
    ck_assert(!cw_gguf_key_used(g, 0) && !cw_gguf_key_used(g, 4));
    ck_assert(!cw_gguf_tensor_used(g, 1));
    cw_gguf_u32(g, "u32", &u, NULL);
    cw_gguf_key(g, "u8");
    cw_gguf_tensor(g, "second");
    cw_gguf_tensor(g, "none");
    cw_gguf_key_at(g, 1);
    cw_gguf_tensor_at(g, 0);
    ck_assert(cw_gguf_key_used(g, 0) && !cw_gguf_key_used(g, 1) && cw_gguf_key_used(g, 4));
    ck_assert(!cw_gguf_tensor_used(g, 0) && cw_gguf_tensor_used(g, 1));
    ck_assert(!cw_gguf_key_used(g, 1000) && !cw_gguf_tensor_used(g, 1000));
    cw_gguf_close(g);
}
END_TEST

START_TEST(opens_reference_models) {
    const char *dir = reference_dir();
    char models[1100];
    if (dir == NULL) {
        return;
    }
    snprintf(models, sizeof models, "%s/models", dir);
    DIR *d = opendir(models);
    ck_assert_ptr_nonnull(d);
    int n = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[1400];
        struct cw_gguf *g;
        struct cw_err err;
        if (strstr(e->d_name, ".gguf") == NULL) {
            continue;
        }
        snprintf(path, sizeof path, "%s/%s", models, e->d_name);
        ck_assert_msg(cw_gguf_open(&g, path, &err) == CW_OK, "%s", err.text);
        walk(g);
        cw_gguf_close(g);
        n++;
    }
    closedir(d);
    ck_assert_int_gt(n, 0);
}
END_TEST

/* ---- not a GGUF file ---------------------------------------------------------------------------
 */

START_TEST(names_what_it_was_given) {
    static const char zeros[64];
    static const struct {
        const char *text;
        size_t n;
        const char *part;
    } cases[] = {
        {"", 0, "empty"},
        {"GG", 2, "too short"},
        {"GGUF", 4, "ends inside its header"},
        {"GGUF\003\0\0\0", 8, "ends inside its header"},
        {"GGUF\003\0\0\0\1\0\0\0\0\0\0\0\1\0", 18, "ends inside its header"},
        {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", 60, "LFS pointer"},
        {"<!DOCTYPE html><html></html>", 28, "web page"},
        {"\n\n  <!doctype HTML>", 19, "web page"},
        {"\xef\xbb\xbf<html lang=en>", 17, "web page"},
        {"<?xml version='1.0'?>", 21, "web page"},
        {"GGML\1\0\0\0", 8, "GGML"},
        {"FUGG\0\0\0\3", 8, "big-endian"},
        {"tjgg\3\0\0\0", 8, "GGJT"},
        {"PK\003\004....", 8, "zip"},
        {"\x1f\x8b......", 8, "gzip"},
        {"\x40\0\0\0\0\0\0\0{\"a\":1}", 16, "safetensors"},
        {"hello, world", 12, "not a GGUF file (it begins with 'hello, world')"},
        {"Entry\x1b[31m not found anywhere at all", 32, "'Entry\\x1B[31m not found any')"},
        {zeros, sizeof zeros, "begins with zeros"},
        {"GGUF\0\0\0\3", 8, "big-endian"},
        {"GGUF\0\0\0\2", 8, "big-endian"},
        {"GGUF\1\0\0\0\0\0\0\0\0\0\0\0", 16, "version 1 is not supported"},
        {"GGUF\0\0\0\0", 8, "version 0 "},
        {"GGUF\4\0\0\0", 8, "version 4 "},
        {"GGUF\x78\x56\x34\x12", 8, "version 305419896 "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refused_bytes(cases[i].text, cases[i].n, 0, cases[i].part);
    }
}
END_TEST

START_TEST(refuses_what_is_no_file) {
    const char *fifo = tmp_path("fifo");
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    refused_path(fifo, CW_EFORMAT, "pipe"); /* and does not wait for a writer */
    refused_path("/", CW_EFORMAT, "directory");
    refused_path("/dev/null", CW_EFORMAT, "device");
    refused_path(tmp_path("absent"), CW_ENOENT, "absent");
    const char *path = tmp_path("escape\x1b[31m.gguf");
    refused_path(path, CW_ENOENT, "escape\\x1B[31m");
}
END_TEST

START_TEST(cut_at_every_byte) {
    fill();
    mkgguf_build(&m, &image);
    for (size_t n = 0; n < image.len; n++) {
        refused_bytes(image.data, n, CW_EFORMAT, "refused.gguf: ");
    }
    struct cw_gguf *g = opened();
    cw_gguf_close(g);
}
END_TEST

START_TEST(vocabulary_only) {
    mkgguf_str(&m, "general.architecture", "llama");
    struct cw_gguf *g = opened();
    ck_assert_uint_eq(cw_gguf_n_tensors(g), 0);
    ck_assert_ptr_null(cw_gguf_tensor(g, "x"));
    cw_gguf_close(g);
    mkgguf_free(&m);
    mkgguf_init(&m);
    g = opened(); /* nothing at all is a file too */
    ck_assert_uint_eq(cw_gguf_n_keys(g), 0);
    cw_gguf_close(g);
}
END_TEST

/* ---- numbers that lie --------------------------------------------------------------------------
 */

static long peak_kib(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

START_TEST(counts_cost_nothing) {
    static const uint64_t counts[] = {20,         1000,       1ull << 31, 1ull << 32,
                                      1ull << 40, 1ull << 60, 1ull << 63, UINT64_MAX};
    long before = peak_kib();
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int small = 0; small < 2; small++) {
            mkgguf_free(&m);
            mkgguf_init(&m);
            if (!small) {
                fill();
            }
            m.more_keys = counts[i] - m.n_keys;
            refused(CW_EFORMAT, "");
            m.more_keys = 0;
            m.more_tensors = counts[i] - m.n_tensors;
            refused(CW_EFORMAT, "");
        }
    }
    ck_assert_int_lt(peak_kib() - before, 32 << 10);
}
END_TEST

START_TEST(lengths_of_names_and_strings) {
    static const uint64_t lengths[] = {1000,       1ull << 31,     1ull << 32, 1ull << 48,
                                       1ull << 63, UINT64_MAX - 7, UINT64_MAX};
    long before = peak_kib();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint64_t n = lengths[i];
        uint8_t raw[64] = {0};
        mkgguf_free(&m);
        mkgguf_init(&m);
        mkgguf_raw_key(&m, "name", n, raw, 16);
        refused(CW_EFORMAT, "key 0");
        mkgguf_free(&m);
        mkgguf_init(&m);
        mkgguf_scalar(&m, "text", CW_GGUF_STRING, &n, 8);
        refused(CW_EFORMAT, "'text'");
        for (uint32_t elem = 0; elem < CW_GGUF_N_KINDS; elem++) { /* arrays of each kind */
            mkgguf_free(&m);
            mkgguf_init(&m);
            mkgguf_array(&m, "list", elem, n, raw, sizeof raw);
            refused(0, "'list'");
        }
        mkgguf_free(&m);
        mkgguf_init(&m);
        cw_buf_add(&m.infos, &n, 8); /* a tensor's name */
        cw_buf_add(&m.infos, raw, sizeof raw);
        m.n_tensors = 1;
        refused(CW_EFORMAT, "tensor 0");
    }
    ck_assert_int_lt(peak_kib() - before, 32 << 10);
}
END_TEST

START_TEST(kinds_of_values) {
    static const uint32_t kinds[] = {13, 77, 255, 1u << 31, UINT32_MAX};
    uint8_t raw[64] = {0};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        mkgguf_free(&m);
        mkgguf_init(&m);
        mkgguf_scalar(&m, "odd", kinds[i], raw, 8);
        refused(CW_EFORMAT, "'odd'");
        mkgguf_free(&m);
        mkgguf_init(&m);
        mkgguf_array(&m, "odd", kinds[i], 1, raw, 8);
        refused(CW_EFORMAT, "'odd'");
    }
    /* Arrays of arrays, a thousand deep. */
    struct cw_buf deep = {0};
    for (int i = 0; i < 1000; i++) {
        uint32_t elem = CW_GGUF_ARRAY;
        uint64_t n = 1;
        cw_buf_add(&deep, &elem, 4);
        cw_buf_add(&deep, &n, 8);
    }
    mkgguf_free(&m);
    mkgguf_init(&m);
    mkgguf_array(&m, "deep", CW_GGUF_ARRAY, 1, deep.data, deep.len);
    cw_buf_free(&deep);
    refused(CW_EUNSUP, "'deep'");
}
END_TEST

START_TEST(names) {
    mkgguf_u32(&m, "", 1);
    refused(CW_EFORMAT, "key 0 is empty");
    mkgguf_free(&m);
    mkgguf_init(&m);
    mkgguf_tensor(&m, "", CW_F32, 1, F32_4, "0123456789abcdef", 16);
    refused(CW_EFORMAT, "tensor 0 is empty");
    /* What a name holds cannot command the terminal. */
    mkgguf_free(&m);
    mkgguf_init(&m);
    mkgguf_entry(&m, "a\x1b]0;x\a\n", CW_F32, 9, (const uint64_t[16]){1}, 0);
    refused(CW_EFORMAT, "a\\x1B]0;x\\x07\\x0A");
}
END_TEST

START_TEST(dimensions) {
    static const struct {
        uint32_t n_dims, type;
        uint64_t dims[16];
    } cases[] = {
        {2, CW_F32, {1ull << 63, 2}},
        {2, CW_F32, {1ull << 32, 1ull << 32}},
        {2, CW_F32, {1ull << 31, 1ull << 33}},
        {4, CW_F32, {1ull << 31, 2, 1, 1}},
        {4, CW_F32, {1ull << 16, 1ull << 16, 1ull << 16, 1ull << 16}},
        {4, CW_F32, {1ull << 62, 1, 1, 1}},
        {1, CW_F32, {1ull << 61}},
        {1, CW_F32, {UINT64_MAX}},
        {2, CW_F32, {4, UINT64_MAX}},
        {2, CW_Q8_0, {32, 1ull << 58}},
        {2, CW_Q4_K, {1ull << 40, 1ull << 22}},
        {0, CW_F32, {4}},
        {5, CW_F32, {1, 1, 1, 1, 4}},
        {9, CW_F32, {1, 1, 1, 1, 1, 1, 1, 1, 4}},
        {1u << 31, CW_F32, {4}},
        {UINT32_MAX, CW_F32, {4}},
        {1, CW_F32, {0}},
        {2, CW_F32, {0, 4}},
        {2, CW_F32, {4, 0}},
        {4, CW_F32, {4, 1, 0, 1}},
        {4, CW_F32, {4, 1, 1, 0}},
        {1, CW_F32, {1000}}, /* merely larger than the file */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mkgguf_free(&m);
        mkgguf_init(&m);
        mkgguf_tensor(&m, "good", CW_F32, 1, F32_4, "0123456789abcdef", 16);
        mkgguf_entry(&m, "blk.0.bad", cases[i].type, cases[i].n_dims, cases[i].dims, 0);
        refused(CW_EFORMAT, "'blk.0.bad'");
    }
}
END_TEST

START_TEST(alignments_and_offsets) {
    static const uint32_t bad[] = {0, 1, 3, 4, 24, 131072, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        mkgguf_free(&m);
        mkgguf_init(&m);
        mkgguf_u32(&m, "general.alignment", bad[i]);
        mkgguf_tensor(&m, "t", CW_F32, 1, F32_4, "0123456789abcdef", 16);
        refused(CW_EFORMAT, "'general.alignment'");
    }
    mkgguf_free(&m);
    mkgguf_init(&m);
    mkgguf_str(&m, "general.alignment", "32");
    refused(CW_EFORMAT, "'general.alignment'");
    /* 64 bytes each; the offset that wraps would end inside the data. */
    static const struct {
        uint64_t offset;
        const char *part;
    } offsets[] = {
        {1, "no multiple of 32"},          {16, "no multiple of 32"},
        {UINT64_MAX, "no multiple of 32"}, {96, "past the end"},
        {1 << 20, "past the end"},         {1ull << 63, "past the end"},
        {UINT64_MAX - 31, "past the end"},
    };
    static const uint8_t data[128];
    for (size_t i = 0; i < sizeof offsets / sizeof *offsets; i++) {
        mkgguf_free(&m);
        mkgguf_init(&m);
        mkgguf_tensor(&m, "good", CW_F32, 1, (const uint64_t[]){32}, data, sizeof data);
        mkgguf_entry(&m, "bad", CW_F32, 1, (const uint64_t[]){16}, offsets[i].offset);
        refused(CW_EFORMAT, "'bad'");
        refused(CW_EFORMAT, offsets[i].part);
    }
}
END_TEST

START_TEST(types_and_rows) {
    static const struct {
        uint32_t type, n_dims;
        uint64_t dims[2];
        int rc;
        const char *part;
    } cases[] = {
        {4, 1, {64}, CW_EUNSUP, "type 4 (Q4_2)"},
        {16, 1, {256}, CW_EUNSUP, "type 16 (IQ2_XXS)"},
        {24, 1, {64}, CW_EUNSUP, "type 24 (I8)"},
        {31, 1, {64}, CW_EUNSUP, "type 31 (Q4_0_4_4)"},
        {36, 1, {64}, CW_EUNSUP, "type 36 (IQ4_NL_4_4)"},
        {255, 1, {64}, CW_EUNSUP, "type 255,"},
        {UINT32_MAX, 1, {64}, CW_EUNSUP, "type 4294967295,"},
        {CW_Q4_K, 2, {32, 8}, CW_EFORMAT, "rows of 32"},
        {CW_Q4_K, 2, {896, 2}, CW_EFORMAT, "rows of 896"},
        {CW_Q4_K, 2, {257, 256}, CW_EFORMAT, "rows of 257"},
        {CW_Q6_K, 2, {896, 2}, CW_EFORMAT, "rows of 896"},
        {CW_Q6_K, 2, {8, 64}, CW_EFORMAT, "rows of 8 "},
        {CW_Q8_0, 2, {31, 32}, CW_EFORMAT, "rows of 31"},
        {CW_MXFP4, 2, {48, 2}, CW_EFORMAT, "rows of 48"},
    };
    static const uint8_t data[4096];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mkgguf_free(&m);
        mkgguf_init(&m);
        mkgguf_tensor(&m, "odd", cases[i].type, cases[i].n_dims, cases[i].dims, data, sizeof data);
        refused(cases[i].rc, cases[i].part);
        refused(cases[i].rc, "'odd'");
    }
}
END_TEST

START_TEST(sizes_of_every_type) {
    static const uint8_t data[2048];
    for (uint32_t type = 0; type < 64; type++) {
        const struct cw_type_info *info = cw_type_info(type);
        if (info == NULL) {
            continue;
        }
        uint64_t dims[2] = {(uint64_t)info->block * 2, 3};
        mkgguf_free(&m);
        mkgguf_init(&m);
        mkgguf_tensor(&m, "t", type, 2, dims, data, (size_t)info->block_bytes * 6);
        struct cw_gguf *g = opened();
        ck_assert_uint_eq(cw_gguf_tensor(g, "t")->bytes, (uint64_t)info->block_bytes * 6);
        cw_gguf_close(g);
        m.data.len--; /* one byte less and it does not fit */
        refused(CW_EFORMAT, "truncated");
    }
}
END_TEST

START_TEST(any_keeps_unsupported_types) {
    static const uint8_t data[4096];
    struct cw_gguf *g;
    struct cw_err err;
    mkgguf_tensor(&m, "a", 16, 2, (const uint64_t[]){256, 2}, data, 132);
    mkgguf_tensor(&m, "b", CW_F32, 1, F32_4, data, 16);
    mkgguf_tensor(&m, "c", 99, 1, (const uint64_t[]){5}, data, 7);
    const char *path = tmp_path("any.gguf");
    mkgguf_save(&m, path);
    refused_path(path, CW_EUNSUP, "'a'");
    ck_assert_msg(cw_gguf_open_any(&g, path, &err) == CW_OK, "%s", err.text);
    ck_assert_uint_eq(cw_gguf_n_tensors(g), 3);
    ck_assert_uint_eq((uint32_t)cw_gguf_tensor_at(g, 0)->type, 16);
    ck_assert_uint_eq(cw_gguf_tensor_at(g, 0)->bytes, 160); /* to the next tensor */
    ck_assert_uint_eq(cw_gguf_tensor_at(g, 1)->bytes, 16);
    ck_assert_uint_eq((uint32_t)cw_gguf_tensor_at(g, 2)->type, 99);
    ck_assert_uint_eq(cw_gguf_tensor_at(g, 2)->bytes, 7); /* to the end */
    walk(g);
    cw_gguf_close(g);
    mkgguf_entry(&m, "d", 99, 1, F32_4, 1ull << 40); /* offsets are checked all the same */
    mkgguf_save(&m, path);
    ck_assert_int_eq(cw_gguf_open_any(&g, path, &err), CW_EFORMAT);
    ck_assert_ptr_null(g);
}
END_TEST

START_TEST(duplicates) {
    mkgguf_str(&m, "tokenizer.chat_template", "a");
    mkgguf_u32(&m, "between", 1);
    mkgguf_str(&m, "tokenizer.chat_template", "b");
    refused(CW_EFORMAT, "'tokenizer.chat_template'");
    mkgguf_free(&m);
    mkgguf_init(&m);
    mkgguf_tensor(&m, "blk.0.attn_q.weight", CW_F32, 1, F32_4, "0123456789abcdef", 16);
    mkgguf_tensor(&m, "blk.0.attn_k.weight", CW_F32, 1, F32_4, "0123456789abcdef", 16);
    mkgguf_tensor(&m, "blk.0.attn_q.weight", CW_F32, 1, F32_4, "fedcba9876543210", 16);
    refused(CW_EFORMAT, "'blk.0.attn_q.weight'");
}
END_TEST

/* Quadratic search in so many would run for minutes and into the case's timeout. */
START_TEST(many_names) {
    enum { N = 200000 };
    char name[64];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "blk.%d.ffn_gate.weight", i);
        mkgguf_entry(&m, name, CW_F32, 1, F32_4, 0);
        snprintf(name, sizeof name, "key.%d", i);
        mkgguf_u32(&m, name, (uint32_t)i);
    }
    cw_buf_add(&m.data, "0123456789abcdef", 16);
    struct cw_gguf *g = opened();
    for (int i = 0; i < N; i++) {
        uint32_t u = 0;
        snprintf(name, sizeof name, "blk.%d.ffn_gate.weight", i);
        ck_assert_ptr_eq(cw_gguf_tensor(g, name), cw_gguf_tensor_at(g, (size_t)i));
        snprintf(name, sizeof name, "key.%d", i);
        ck_assert_int_eq(cw_gguf_u32(g, name, &u, NULL), CW_OK);
        ck_assert_int_eq((int)u, i);
    }
    cw_gguf_close(g);
}
END_TEST

/* Random damage: whatever opens can be walked. */
START_TEST(random_bytes) {
    uint64_t r = 88172645463325252u + (uint64_t)_i;
    const char *path = tmp_path("random.gguf");
    fill();
    mkgguf_build(&m, &image);
    for (int round = 0; round < 1500; round++) {
        struct cw_buf b = {0};
        cw_buf_add(&b, image.data, image.len);
        for (int k = 0; k < 3; k++) {
            r ^= r << 13, r ^= r >> 7, r ^= r << 17;
            size_t at = (size_t)(r >> 20) % (k == 0 ? b.len : 600);
            b.data[at] =
                (char)((r & 1) != 0 ? r >> 40
                                    : (uint64_t)(unsigned char)b.data[at] ^ 1u << (r >> 40) % 8);
        }
        struct cw_gguf *g;
        tmp_write(path, b.data, b.len);
        if (cw_gguf_open_any(&g, path, NULL) == CW_OK) {
            walk(g);
            cw_gguf_close(g);
        }
        cw_buf_free(&b);
    }
}
END_TEST

/* ---- parts -------------------------------------------------------------------------------------
 */

/* Part `no` (from 0) of `count` with two tensors, under NAME-0000i-of-0000n.gguf. */
static void write_part(const char *name, unsigned no, unsigned says_no, unsigned count,
                       const char *model) {
    struct mkgguf p;
    char file[128], tensor[64];
    uint16_t v = (uint16_t)says_no, n = (uint16_t)count;
    int32_t total = (int32_t)count * 2;
    mkgguf_init(&p);
    if (no == 0) {
        mkgguf_str(&p, "general.architecture", "llama");
    }
    if (no == 0 || model != NULL) {
        mkgguf_str(&p, "general.name", model != NULL ? model : "one");
    }
    mkgguf_scalar(&p, "split.no", CW_GGUF_U16, &v, 2);
    mkgguf_scalar(&p, "split.count", CW_GGUF_U16, &n, 2);
    mkgguf_scalar(&p, "split.tensors.count", CW_GGUF_I32, &total, 4);
    for (int i = 0; i < 2; i++) {
        float f[4] = {(float)no, (float)i, 0, 0};
        snprintf(tensor, sizeof tensor, "blk.%u.%d", no, i);
        mkgguf_tensor(&p, tensor, CW_F32, 1, F32_4, f, 16);
    }
    snprintf(file, sizeof file, "%s-%05u-of-%05u.gguf", name, no + 1, count);
    mkgguf_save(&p, tmp_path(file));
    mkgguf_free(&p);
}

static void write_parts(unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        write_part("m", i, i, count, NULL);
    }
}

START_TEST(parts_from_any_of_them) {
    char file[64];
    write_parts(3);
    snprintf(file, sizeof file, "m-%05d-of-00003.gguf", _i + 1);
    struct cw_gguf *g;
    struct cw_err err;
    const char *path = tmp_path(file);
    ck_assert_msg(cw_gguf_open(&g, path, &err) == CW_OK, "%s", err.text);
    ck_assert_uint_eq(cw_gguf_n_tensors(g), 6);
    ck_assert_str_eq(cw_gguf_path(g), path);
    for (unsigned i = 0; i < 6; i++) {
        snprintf(file, sizeof file, "blk.%u.%u", i / 2, i % 2);
        const struct cw_tensor *t = cw_gguf_tensor(g, file);
        ck_assert_ptr_eq(t, cw_gguf_tensor_at(g, i));
        same_float(((const float *)(const void *)t->data)[0], (float)(i / 2));
        same_float(((const float *)(const void *)t->data)[1], (float)(i % 2));
    }
    ck_assert_uint_eq(cw_gguf_n_keys(g), 5);
    ck_assert_ptr_nonnull(cw_gguf_key(g, "general.name"));
    walk(g);
    cw_gguf_close(g);
}
END_TEST

START_TEST(part_missing) {
    write_parts(3);
    ck_assert_int_eq(unlink(tmp_path("m-00003-of-00003.gguf")), 0);
    refused_path(tmp_path("m-00001-of-00003.gguf"), CW_ENOENT, "part 3 of 3 is missing");
    refused_path(tmp_path("m-00002-of-00003.gguf"), CW_ENOENT, "m-00003-of-00003.gguf");
    write_parts(3);
    ck_assert_int_eq(unlink(tmp_path("m-00001-of-00003.gguf")), 0);
    refused_path(tmp_path("m-00003-of-00003.gguf"), CW_ENOENT, "part 1 of 3 is missing");
}
END_TEST

START_TEST(part_renamed) {
    write_parts(3);
    ck_assert_int_eq(rename(tmp_path("m-00002-of-00003.gguf"), tmp_path("other.gguf")), 0);
    refused_path(tmp_path("other.gguf"), CW_EFORMAT, "-00002-of-00003.gguf");
    refused_path(tmp_path("m-00001-of-00003.gguf"), CW_ENOENT, "part 2 of 3 is missing");
}
END_TEST

START_TEST(part_of_another) {
    write_parts(3);
    write_part("m", 1, 2, 3, NULL); /* says it is the third */
    refused_path(tmp_path("m-00001-of-00003.gguf"), CW_EFORMAT, "is not part 2 of 3");
    write_part("m", 1, 1, 3, "two");
    refused_path(tmp_path("m-00003-of-00003.gguf"), CW_EFORMAT, "another model");
    write_part("m", 1, 1, 3, "one"); /* repeating a key is no harm */
    struct cw_gguf *g;
    ck_assert_int_eq(cw_gguf_open(&g, tmp_path("m-00003-of-00003.gguf"), NULL), CW_OK);
    cw_gguf_close(g);
    /* The tensors of part 1 once more, as part 2. */
    write_part("x", 0, 1, 3, NULL);
    ck_assert_int_eq(rename(tmp_path("x-00001-of-00003.gguf"), tmp_path("m-00002-of-00003.gguf")),
                     0);
    refused_path(tmp_path("m-00001-of-00003.gguf"), CW_EFORMAT, "'blk.0.0'");
    /* One without split keys. */
    mkgguf_u32(&m, "a", 1);
    mkgguf_save(&m, tmp_path("m-00002-of-00003.gguf"));
    refused_path(tmp_path("m-00001-of-00003.gguf"), CW_EFORMAT, "is not part 2 of 3");
    tmp_write(tmp_path("m-00002-of-00003.gguf"), "", 0);
    refused_path(tmp_path("m-00001-of-00003.gguf"), CW_EFORMAT, "empty");
}
END_TEST

START_TEST(part_numbers) {
    static const struct {
        uint16_t no, count;
        const char *part;
    } cases[] = {{3, 3, "cannot be"}, {0, 65535, "cannot be"}, {9, 2, "cannot be"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mkgguf_free(&m);
        mkgguf_init(&m);
        mkgguf_scalar(&m, "split.no", CW_GGUF_U16, &cases[i].no, 2);
        mkgguf_scalar(&m, "split.count", CW_GGUF_U16, &cases[i].count, 2);
        refused(CW_EFORMAT, cases[i].part);
    }
    mkgguf_free(&m);
    mkgguf_init(&m);
    mkgguf_str(&m, "split.count", "3");
    refused(CW_EFORMAT, "'split.count'");
    mkgguf_free(&m);
    mkgguf_init(&m);
    mkgguf_u32(&m, "split.count", 3);
    refused(CW_EFORMAT, "'split.no'");
    mkgguf_free(&m);
    mkgguf_init(&m);
    mkgguf_u32(&m, "split.count", 1); /* one of one is a whole file, whatever its name */
    cw_gguf_close(opened());
}
END_TEST

/* ---- a file that shrinks while it is mapped ----------------------------------------------------
 */

START_TEST(truncated_while_open) {
    static uint8_t data[1 << 20];
    memset(data, 7, sizeof data);
    mkgguf_tensor(&m, "t", CW_F32, 1, (const uint64_t[]){sizeof data / 4}, data, sizeof data);
    struct cw_gguf *g = opened(), *other;
    const char *path = tmp_path("other.gguf");
    mkgguf_save(&m, path);
    ck_assert_int_eq(cw_gguf_open(&other, path, NULL), CW_OK);
    const struct cw_tensor *t = cw_gguf_tensor(g, "t");
    ck_assert_int_eq(t->data[t->bytes - 1], 7);
    ck_assert(!cw_gguf_damaged(g));
    ck_assert_int_eq(truncate(tmp_path("good.gguf"), 8192), 0);
    ck_assert_int_eq(t->data[100], 7); /* what is still there stays readable */
    ck_assert(!cw_gguf_damaged(g));
    ck_assert_int_eq(t->data[t->bytes - 1], 0);
    ck_assert(cw_gguf_damaged(g));
    ck_assert_int_eq(t->data[t->bytes / 2], 0);
    ck_assert(!cw_gguf_damaged(other));
    ck_assert_int_eq(cw_gguf_tensor(other, "t")->data[t->bytes - 1], 7);
    ck_assert_int_eq(truncate(tmp_path("good.gguf"), 0), 0);
    walk(g); /* names and values gone too */
    ck_assert_ptr_null(cw_gguf_key(g, "u8"));
    cw_gguf_close(g);
    cw_gguf_close(other);
    /* The slot is free again and starts undamaged. */
    g = opened();
    ck_assert(!cw_gguf_damaged(g));
    cw_gguf_close(g);
}
END_TEST

START_TEST(truncated_part) {
    write_parts(3);
    struct cw_gguf *g;
    ck_assert_int_eq(cw_gguf_open(&g, tmp_path("m-00001-of-00003.gguf"), NULL), CW_OK);
    const struct cw_tensor *t = cw_gguf_tensor(g, "blk.2.1");
    ck_assert_int_eq(truncate(tmp_path("m-00003-of-00003.gguf"), 0), 0);
    ck_assert_int_eq(t->data[0], 0);
    ck_assert(cw_gguf_damaged(g));
    cw_gguf_close(g);
}
END_TEST

START_TEST(foreign_sigbus_kills) {
    signal(SIGBUS, SIG_DFL); /* a sanitizer has its own */
    fill();
    cw_gguf_close(opened());
    tmp_clear(); /* nothing will run at exit */
    raise(SIGBUS);
}
END_TEST

static volatile sig_atomic_t previous_called;

static void previous_handler(int sig) {
    (void)sig;
    previous_called = 1;
}

START_TEST(foreign_sigbus_reaches_the_previous_handler) {
    signal(SIGBUS, previous_handler);
    fill();
    struct cw_gguf *g = opened();
    raise(SIGBUS);
    ck_assert_int_eq(previous_called, 1);
    ck_assert(!cw_gguf_damaged(g));
    cw_gguf_close(g);
}
END_TEST

START_TEST(many_handles) {
    enum { N = 2000 };
    static struct cw_gguf *g[N];
    fill();
    const char *path = tmp_path("good.gguf");
    mkgguf_save(&m, path);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(cw_gguf_open(&g[i], path, NULL), CW_OK);
    }
    struct cw_gguf *more[100];
    struct cw_err err = {0};
    int n = 0;
    while (n < 100 && cw_gguf_open(&more[n], path, &err) == CW_OK) {
        n++;
    }
    ck_assert_int_eq(err.code, CW_ENOMEM); /* a limit, said, not a crash */
    for (int i = 0; i < n; i++) {
        cw_gguf_close(more[i]);
    }
    for (int i = 0; i < N; i++) {
        cw_gguf_close(g[i]);
    }
    cw_gguf_close(opened());
}
END_TEST

static TCase *add_case(Suite *s, const char *name) {
    TCase *c = tcase_create(name);
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 120);
    suite_add_tcase(s, c);
    return c;
}

int main(void) {
    Suite *s = suite_create("gguf");
    TCase *c = add_case(s, "right");
    tcase_add_loop_test(c, reads_what_was_written, 0, 3);
    tcase_add_test(c, converts_in_range_only);
    tcase_add_test(c, reads_floats_bools_strings);
    tcase_add_test(c, reads_arrays);
    tcase_add_test(c, remembers_what_was_used);
    tcase_add_test(c, opens_reference_models);
    tcase_add_test(c, vocabulary_only);
    c = add_case(s, "wrong");
    tcase_add_test(c, names_what_it_was_given);
    tcase_add_test(c, refuses_what_is_no_file);
    tcase_add_test(c, cut_at_every_byte);
    tcase_add_test(c, counts_cost_nothing);
    tcase_add_test(c, lengths_of_names_and_strings);
    tcase_add_test(c, kinds_of_values);
    tcase_add_test(c, names);
    tcase_add_test(c, dimensions);
    tcase_add_test(c, alignments_and_offsets);
    tcase_add_test(c, types_and_rows);
    tcase_add_test(c, sizes_of_every_type);
    tcase_add_test(c, any_keeps_unsupported_types);
    tcase_add_test(c, duplicates);
    tcase_add_test(c, many_names);
    tcase_add_loop_test(c, random_bytes, 0, 4);
    c = add_case(s, "parts");
    tcase_add_loop_test(c, parts_from_any_of_them, 0, 3);
    tcase_add_test(c, part_missing);
    tcase_add_test(c, part_renamed);
    tcase_add_test(c, part_of_another);
    tcase_add_test(c, part_numbers);
    c = add_case(s, "shrinking");
    tcase_add_test(c, truncated_while_open);
    tcase_add_test(c, truncated_part);
    tcase_add_test_raise_signal(c, foreign_sigbus_kills, SIGBUS);
    tcase_add_test(c, foreign_sigbus_reaches_the_previous_handler);
    tcase_add_test(c, many_handles);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
