/* SPDX-License-Identifier: MIT
 *
 * The edges of the format: fields that end with the last byte of a mapping, the smallest and the
 * largest entries, every type in the place of every other, what the parts of a model may differ in.
 */
#include "tests/support/mkgguf.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define F32_4 ((const uint64_t[]){4})

static const uint8_t zeros[4096];
static struct mkgguf m;
static struct cw_buf image;

static void setup(void) {
    mkgguf_init(&m);
}

static void teardown(void) {
    mkgguf_free(&m);
    cw_buf_free(&image);
}

static void again(void) {
    mkgguf_free(&m);
    mkgguf_init(&m);
}

static void refused_path(const char *path, int code, const char *part) {
    struct cw_gguf *g;
    struct cw_err err = {0};
    int rc = cw_gguf_open(&g, path, &err);
    ck_assert_msg(rc != CW_OK, "%s was opened", path);
    ck_assert_msg(code == 0 || rc == code, "code %d (%s)", rc, err.text);
    ck_assert_msg(strstr(err.text, part) != NULL, "'%s' does not say '%s'", err.text, part);
}

static void refused(int code, const char *part) {
    const char *path = tmp_path("refused.gguf");
    mkgguf_save(&m, path);
    refused_path(path, code, part);
}

static struct cw_gguf *opened(void) {
    struct cw_gguf *g;
    struct cw_err err = {0};
    const char *path = tmp_path("good.gguf");
    mkgguf_save(&m, path);
    ck_assert_msg(cw_gguf_open(&g, path, &err) == CW_OK, "%s", err.text);
    return g;
}

/* ---- the end of the mapping --------------------------------------------------------------------
 */

/* A file of exactly one page that ends inside each of its fields: the byte behind is not ours, and
 * reading it would end the test. */
START_TEST(cut_at_the_end_of_a_page) {
    static const char *const words[] = {"a", "", "longer"};
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n_cut = 0;
    char *pad = calloc(1, page + 1);
    memset(pad, 'p', page);
    for (size_t n = page - 24; n > page - 500; n--) {
        const char *path = tmp_path("page.gguf");
        struct cw_gguf *g;
        struct cw_err err = {0};
        pad[n] = '\0';
        again();
        mkgguf_str(&m, "pad", pad);
        mkgguf_u32(&m, "number", 7);
        mkgguf_str(&m, "string", "of some length");
        mkgguf_strs(&m, "words", words, 3);
        mkgguf_array(&m, "longs", CW_GGUF_U64, 3, zeros, 24);
        mkgguf_bool(&m, "last", true);
        mkgguf_tensor(&m, "tensor", CW_F32, 4, (const uint64_t[]){2, 2, 1, 1}, zeros, 16);
        mkgguf_build(&m, &image);
        pad[n] = 'p';
        if (image.len <= page) {
            break;
        }
        tmp_write(path, image.data, page);
        /* New mappings go below old ones as a rule: then this page lies behind the file's. */
        void *guard = mmap(NULL, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        int rc = cw_gguf_open(&g, path, &err);
        munmap(guard, page);
        ck_assert_msg(rc == CW_EFORMAT && strstr(err.text, "page.gguf: ") != NULL, "%s", err.text);
        n_cut++;
    }
    ck_assert_uint_gt(n_cut, 250);
    free(pad);
}
END_TEST

/* Counts are compared with the smallest entries there are, not with usual ones. */
START_TEST(the_smallest_entries) {
    char name[2] = "a";
    for (; name[0] < 'k'; name[0]++) {
        mkgguf_scalar(&m, name, CW_GGUF_U8, zeros, 1);
    }
    struct cw_gguf *g = opened();
    ck_assert_uint_eq(cw_gguf_n_keys(g), 10);
    cw_gguf_close(g);
    again();
    for (name[0] = 'a'; name[0] < 'k'; name[0]++) { /* all at the same place */
        mkgguf_entry(&m, name, CW_F32, 1, (const uint64_t[]){1}, 0);
    }
    cw_buf_add(&m.data, zeros, 4);
    g = opened();
    ck_assert_uint_eq(cw_gguf_n_tensors(g), 10);
    cw_gguf_close(g);
}
END_TEST

START_TEST(the_longest_names) {
    char *name = calloc(1, 65537);
    memset(name, 'n', 65536);
    for (int tensor = 0; tensor < 2; tensor++) {
        for (size_t n = 65535; n <= 65536; n++) {
            again();
            name[n] = '\0';
            if (tensor) {
                mkgguf_tensor(&m, name, CW_F32, 1, F32_4, zeros, 16);
            } else {
                mkgguf_u32(&m, name, 1);
            }
            name[n] = 'n';
            if (n == 65535) {
                cw_gguf_close(opened());
            } else {
                refused(CW_EFORMAT, tensor ? "name of tensor 0" : "name of key 0");
            }
        }
    }
    free(name);
}
END_TEST

/* ---- one type for another ----------------------------------------------------------------------
 */

START_TEST(every_type_of_alignment) {
    for (uint32_t kind = 0; kind < CW_GGUF_N_KINDS; kind++) {
        uint8_t value[12] = {32};
        static const uint8_t bytes[CW_GGUF_N_KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 12, 8, 8, 8};
        if (kind == CW_GGUF_U32 || kind == CW_GGUF_STRING) {
            continue;
        }
        again();
        if (kind == CW_GGUF_ARRAY) {
            value[0] = CW_GGUF_U32;
        }
        mkgguf_scalar(&m, "general.alignment", kind, value, bytes[kind]);
        mkgguf_tensor(&m, "t", CW_F32, 1, F32_4, zeros, 16);
        refused(CW_EFORMAT, "'general.alignment' is of type");
    }
}
END_TEST

/* A row of every type with blocks must be whole blocks, even where all rows together are. */
START_TEST(every_type_of_rows) {
    int n_types = 0;
    for (uint32_t type = 0; type < 64; type++) {
        const struct cw_type_info *info = cw_type_info(type);
        if (info == NULL || info->block == 1) {
            continue;
        }
        uint64_t block = (uint64_t)info->block;
        const uint64_t rows[] = {1, block / 2, block - 1, block + 1, block + block / 2};
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            again();
            mkgguf_entry(&m, "odd", type, 2, (const uint64_t[]){rows[i], block * 2}, 0);
            cw_buf_add(&m.data, zeros, sizeof zeros);
            refused(CW_EFORMAT, info->name);
            refused(CW_EFORMAT, "'odd': rows of");
        }
        n_types++;
    }
    ck_assert_int_ge(n_types, 13);
}
END_TEST

/* The names by which types are refused, as the format numbers them; NULL: supported. */
START_TEST(every_name_of_a_type) {
    static const char *const names[] = {
        NULL,    NULL,         NULL,         NULL,         "Q4_2",     "Q4_3",     NULL,
        NULL,    NULL,         "Q8_1",       NULL,         NULL,       NULL,       NULL,
        NULL,    "Q8_K",       "IQ2_XXS",    "IQ2_XS",     "IQ3_XXS",  "IQ1_S",    NULL,
        "IQ3_S", "IQ2_S",      NULL,         "I8",         "I16",      "I32",      "I64",
        "F64",   "IQ1_M",      NULL,         "Q4_0_4_4",   "Q4_0_4_8", "Q4_0_8_8", "TQ1_0",
        "TQ2_0", "IQ4_NL_4_4", "IQ4_NL_4_8", "IQ4_NL_8_8", NULL,
    };
    for (uint32_t type = 0; type < sizeof names / sizeof *names; type++) {
        char part[64];
        ck_assert_msg((cw_type_info(type) != NULL) == (names[type] == NULL), "type %u", type);
        if (names[type] != NULL) {
            again();
            mkgguf_entry(&m, "t", type, 1, (const uint64_t[]){256}, 0);
            cw_buf_add(&m.data, zeros, sizeof zeros);
            snprintf(part, sizeof part, "'t' is of type %u (%s)", type, names[type]);
            refused(CW_EUNSUP, part);
        }
    }
}
END_TEST

START_TEST(numbers_at_the_edge) {
    static const int64_t longs[] = {INT32_MAX, INT32_MIN, (int64_t)INT32_MAX + 1,
                                    (int64_t)INT32_MIN - 1};
    static const double doubles[] = {3.4e38, -3.4e38, 3.5e38, -1e300};
    const float nan = __builtin_nanf("");
    const uint8_t one = 1, two[] = {0, 1, 2};
    int32_t *v;
    float *f, x;
    bool b;
    size_t n;
    mkgguf_array(&m, "fits", CW_GGUF_I64, 2, longs, 16);
    mkgguf_array(&m, "above", CW_GGUF_I64, 1, &longs[2], 8);
    mkgguf_array(&m, "below", CW_GGUF_I64, 1, &longs[3], 8);
    mkgguf_array(&m, "numbers", CW_GGUF_F64, 2, doubles, 16);
    mkgguf_array(&m, "larger", CW_GGUF_F64, 1, &doubles[2], 8);
    mkgguf_array(&m, "lower", CW_GGUF_F64, 1, &doubles[3], 8);
    mkgguf_array(&m, "bools", CW_GGUF_BOOL, 3, two, 3);
    mkgguf_f32(&m, "nan", nan);
    mkgguf_scalar(&m, "byte", CW_GGUF_U8, &one, 1);
    struct cw_gguf *g = opened();
    ck_assert_int_eq(cw_gguf_i32s(g, "fits", &v, &n, NULL), CW_OK);
    ck_assert(n == 2 && v[0] == INT32_MAX && v[1] == INT32_MIN);
    free(v);
    ck_assert_int_eq(cw_gguf_i32s(g, "above", &v, &n, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_i32s(g, "below", &v, &n, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_i32s(g, "bools", &v, &n, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_f32s(g, "numbers", &f, &n, NULL), CW_OK);
    free(f);
    ck_assert_int_eq(cw_gguf_f32s(g, "larger", &f, &n, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_f32s(g, "lower", &f, &n, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_f32(g, "nan", &x, NULL), CW_EFORMAT);
    ck_assert_int_eq(cw_gguf_bool(g, "byte", &b, NULL), CW_EFORMAT);
    cw_gguf_close(g);
}
END_TEST

/* Also of a type without a known size the dimensions must multiply to a number. */
START_TEST(dimensions_of_unknown_types) {
    static const uint64_t dims[][2] = {
        {1ull << 63, 1}, {1ull << 32, 1ull << 31}, {1ull << 40, 1ull << 40}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        struct cw_gguf *g;
        const char *path = tmp_path("any.gguf");
        again();
        mkgguf_entry(&m, "t", 99, 2, dims[i], 0);
        mkgguf_save(&m, path);
        ck_assert_int_eq(cw_gguf_open_any(&g, path, NULL), CW_EFORMAT);
        ck_assert_ptr_null(g);
    }
}
END_TEST

/* ---- what people take for a model --------------------------------------------------------------
 */

START_TEST(every_other_kind_of_file) {
    static const struct {
        const char *begin, *says;
    } kinds[] = {
        {"version https://git-lfs.github.com/spec/v1", "LFS pointer"},
        {"FUGG", "big-endian"},
        {"GGML", "GGML"},
        {"lmgg", "GGML"},
        {"fmgg", "GGMF"},
        {"tjgg", "GGJT"},
        {"algg", "GGLA"},
        {"PK\003\004", "zip"},
        {"\x1f\x8b", "gzip"},
        {"\x28\xb5\x2f\xfd", "zstd"},
        {"<!DOCTYPE html>", "web page"},
        {"<html>", "web page"},
        {"<HEAD>", "web page"},
        {" \r\n<?xml ?>", "web page"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *path = tmp_path("kind.gguf");
        cw_buf_clear(&image);
        cw_buf_puts(&image, kinds[i].begin);
        cw_buf_add(&image, "0123456789abcdef0123456789abcdef", 32);
        tmp_write(path, image.data, image.len);
        refused_path(path, 0, kinds[i].says);
    }
}
END_TEST

/* ---- parts -------------------------------------------------------------------------------------
 */

/* Part `no` (from 0) of two, with the keys of `add`. */
static const char *write_part(int no, void (*add)(void)) {
    static char path[512];
    char file[64], name[32];
    uint16_t value = (uint16_t)no;
    again();
    add();
    mkgguf_scalar(&m, "split.no", CW_GGUF_U16, &value, 2);
    snprintf(name, sizeof name, "blk.%d.weight", no);
    mkgguf_tensor(&m, name, CW_F32, 1, F32_4, zeros, 16);
    snprintf(file, sizeof file, "two-%05d-of-00002.gguf", no + 1);
    snprintf(path, sizeof path, "%s", tmp_path(file));
    mkgguf_save(&m, path);
    return path;
}

static void count_three(void) {
    uint16_t count = 3;
    mkgguf_scalar(&m, "split.count", CW_GGUF_U16, &count, 2);
}

static void usual(void) {
    uint16_t count = 2;
    mkgguf_scalar(&m, "split.count", CW_GGUF_U16, &count, 2);
}

static void two_tensors(void) {
    int32_t total = 2;
    usual();
    mkgguf_scalar(&m, "split.tensors.count", CW_GGUF_I32, &total, 4);
}

static void three_tensors(void) {
    int32_t total = 3;
    usual();
    mkgguf_scalar(&m, "split.tensors.count", CW_GGUF_I32, &total, 4);
}

static void aligned_to_64(void) {
    usual();
    mkgguf_u32(&m, "general.alignment", 64);
    m.alignment = 64;
}

static void aligned_to_128(void) {
    usual();
    mkgguf_u32(&m, "general.alignment", 128);
    m.alignment = 128;
}

static void one_as_u32(void) {
    usual();
    mkgguf_u32(&m, "x", 1);
}

static void one_as_i32(void) {
    int32_t one = 1;
    usual();
    mkgguf_scalar(&m, "x", CW_GGUF_I32, &one, 4);
}

static void four_bytes(void) {
    usual();
    mkgguf_array(&m, "x", CW_GGUF_U8, 4, zeros, 4);
}

static void two_shorts(void) {
    usual();
    mkgguf_array(&m, "x", CW_GGUF_U16, 2, zeros, 4);
}

START_TEST(parts_that_differ) {
    static const struct {
        void (*first)(void), (*second)(void);
        const char *says; /* NULL: they may */
    } cases[] = {
        {usual, usual, NULL},
        {usual, count_three, "is not part 2 of 2"},
        {two_tensors, two_tensors, NULL},
        {two_tensors, usual, NULL},
        {three_tensors, three_tensors, "hold 2 tensors, 'split.tensors.count' says 3"},
        {three_tensors, usual, "hold 2 tensors"},
        {two_tensors, three_tensors, "another model: its key 'split.tensors.count'"},
        {aligned_to_64, usual, NULL},
        {aligned_to_64, aligned_to_128, NULL},
        {usual, aligned_to_128, NULL},
        {one_as_u32, one_as_u32, NULL},
        {one_as_u32, one_as_i32, "another model: its key 'x'"},
        {four_bytes, two_shorts, "another model: its key 'x'"},
        {four_bytes, one_as_u32, "another model: its key 'x'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char second[512];
        snprintf(second, sizeof second, "%s", write_part(1, cases[i].second));
        const char *first = write_part(0, cases[i].first);
        if (cases[i].says != NULL) {
            refused_path(first, CW_EFORMAT, cases[i].says);
            refused_path(second, CW_EFORMAT, cases[i].says[0] == 'i' ? "" : cases[i].says);
            continue;
        }
        for (int k = 0; k < 2; k++) {
            struct cw_gguf *g;
            struct cw_err err = {0};
            ck_assert_msg(cw_gguf_open(&g, k == 0 ? first : second, &err) == CW_OK, "%zu: %s", i,
                          err.text);
            ck_assert_uint_eq(cw_gguf_n_tensors(g), 2);
            cw_gguf_close(g);
        }
    }
}
END_TEST

/* What counts parts must be an integer. */
START_TEST(counts_of_parts_of_other_types) {
    for (uint32_t kind = 0; kind < CW_GGUF_N_KINDS; kind++) {
        static const uint8_t bytes[CW_GGUF_N_KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};
        bool whole = kind <= CW_GGUF_I32 || kind == CW_GGUF_U64 || kind == CW_GGUF_I64;
        if (!whole) {
            again();
            mkgguf_scalar(&m, "split.count", kind, zeros, bytes[kind]);
            refused(CW_EFORMAT, "'split.count' is of type");
        }
    }
}
END_TEST

int main(void) {
    Suite *s = suite_create("gguf edges");
    TCase *c = tcase_create("edges");
    tcase_add_checked_fixture(c, setup, teardown);
    tcase_set_timeout(c, 120);
    tcase_add_test(c, cut_at_the_end_of_a_page);
    tcase_add_test(c, the_smallest_entries);
    tcase_add_test(c, the_longest_names);
    tcase_add_test(c, every_type_of_alignment);
    tcase_add_test(c, every_type_of_rows);
    tcase_add_test(c, every_name_of_a_type);
    tcase_add_test(c, numbers_at_the_edge);
    tcase_add_test(c, dimensions_of_unknown_types);
    tcase_add_test(c, every_other_kind_of_file);
    tcase_add_test(c, parts_that_differ);
    tcase_add_test(c, counts_of_parts_of_other_types);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
