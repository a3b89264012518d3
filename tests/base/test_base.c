/* SPDX-License-Identifier: MIT
 * core/base: printable text, UTF-8, buffers, large memory. */
#include <check.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chinwag/clock.h"
#include "chinwag/err.h"
#include "chinwag/file.h"
#include "chinwag/mem.h"
#include "chinwag/types.h"
#include "chinwag/utf8.h"

static void check_printable(const char *in, size_t n, const char *want) {
    char got[128];
    size_t len = cw_printable(got, sizeof got, in, n);
    ck_assert_str_eq(got, want);
    ck_assert_uint_eq(len, strlen(want));
}

START_TEST(printable_text_passes_and_commands_do_not) {
    check_printable("plain, 100%n", 12, "plain, 100%n");
    check_printable("na\xc3\xafve \xe6\xbc\xa2", 10, "na\xc3\xafve \xe6\xbc\xa2");
    check_printable("\x1b[2J\n\t", 6, "\\x1B[2J\\x0A\\x09");
    check_printable("a\0b", 3, "a\\x00b");
    check_printable("\xc2\x9b"
                    "31m\x7f",
                    6, "\\x9B31m\\x7F");                            /* C1 CSI, DEL */
    check_printable("\xe2\x80\xae", 3, "\\u{202E}");                /* right-to-left override */
    check_printable("\xe2\x81\xa6", 3, "\\u{2066}");                /* isolate */
    check_printable("\xed\xa0\x80\xff", 4, "\\xED\\xA0\\x80\\xFF"); /* surrogate, stray byte */
}
END_TEST

START_TEST(printable_never_overruns_or_splits) {
    const char *text = "ab\xe6\xbc\xa2\x1b";
    for (size_t cap = 0; cap < 16; cap++) {
        char buf[24];
        memset(buf, 'x', sizeof buf);
        size_t len = cw_printable(buf, cap, text, 6);
        if (cap == 0) {
            ck_assert_uint_eq(len, 0);
            ck_assert_int_eq(buf[0], 'x');
            continue;
        }
        ck_assert_uint_lt(len, cap);
        ck_assert_int_eq(buf[len], '\0');
        ck_assert(cw_utf8_valid(buf, len));
        ck_assert_int_eq(buf[cap], 'x');
    }
}
END_TEST

START_TEST(fail_fills_one_printable_line) {
    struct cw_err err = {0};
    ck_assert_int_eq(cw_fail(&err, CW_EFORMAT, "key %s: bad", "a\nb\x1b"), CW_EFORMAT);
    ck_assert_int_eq(err.code, CW_EFORMAT);
    ck_assert_str_eq(err.text, "key a\\x0Ab\\x1B: bad");
    ck_assert_int_eq(cw_fail(NULL, CW_EIO, "nobody listens"), CW_EIO);

    char big[2000];
    for (size_t i = 0; i + 1 < sizeof big; i += 2) {
        memcpy(big + i, "\xc3\xa9", 2);
    }
    big[sizeof big - 2] = '\0';
    cw_fail(&err, CW_EINVAL, "%s", big);
    ck_assert(cw_utf8_valid(err.text, strlen(err.text)));
    ck_assert_uint_gt(strlen(err.text), sizeof err.text - 8);
}
END_TEST

START_TEST(every_code_has_a_name) {
    for (int code = CW_EPRE; code <= CW_OK; code++) {
        ck_assert_str_ne(cw_code_name(code), "unknown error");
        for (int other = code + 1; other <= CW_OK; other++) {
            ck_assert_str_ne(cw_code_name(code), cw_code_name(other));
        }
    }
    ck_assert_str_eq(cw_code_name(CW_EPRE - 1), "unknown error");
}
END_TEST

/* Every scalar value survives encode and decode; everything else is U+FFFD. */
START_TEST(utf8_round_trip) {
    for (uint32_t cp = 0; cp < 0x110100;
         cp++) { /* one assertion each: a million of them are slow */
        char s[4];
        uint32_t back, part;
        bool scalar = cp < 0xd800 || (cp > 0xdfff && cp < 0x110000);
        int n = cw_utf8_encode(cp, s);
        bool good = cw_utf8_decode(s, (size_t)n, &back) == n && back == (scalar ? cp : 0xfffd) &&
                    cw_utf8_complete(s, (size_t)n) == (size_t)n;
        for (int cut = 1; cut < n; cut++) {
            good = good && cw_utf8_decode(s, (size_t)cut, &part) == 0 &&
                   cw_utf8_complete(s, (size_t)cut) == 0;
        }
        if (!good) {
            ck_abort_msg("U+%04X", (unsigned)cp);
        }
    }
}
END_TEST

START_TEST(utf8_refuses_what_rfc_3629_refuses) {
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "\xe6\xad",
                                      "\xc3(",
                                      "\xe6\xad("};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint32_t cp;
        ck_assert_msg(cw_utf8_decode(bad[i], strlen(bad[i]), &cp) == 0, "case %zu", i);
        ck_assert(!cw_utf8_valid(bad[i], strlen(bad[i])));
    }
    ck_assert(cw_utf8_valid("x\0y", 3));
    ck_assert(cw_utf8_valid("", 0));
}
END_TEST

START_TEST(utf8_complete_keeps_only_what_can_grow) {
    ck_assert_uint_eq(cw_utf8_complete("", 0), 0);
    ck_assert_uint_eq(cw_utf8_complete("ab\xf0\x9f\xa6", 5), 2);
    ck_assert_uint_eq(cw_utf8_complete("ab\xe6", 3), 2);
    ck_assert_uint_eq(cw_utf8_complete("ab\xff", 3), 3);           /* can never become good */
    ck_assert_uint_eq(cw_utf8_complete("ab\xe0\x80", 4), 4);       /* overlong already */
    ck_assert_uint_eq(cw_utf8_complete("\x80\x80\x80\x80", 4), 4); /* stray continuations */
}
END_TEST

START_TEST(buffers_grow_and_are_taken) {
    struct cw_buf b = {0};
    for (int i = 0; i < 1000; i++) {
        cw_buf_printf(&b, "%d,", i);
        cw_buf_putc(&b, '\0');
    }
    ck_assert_uint_eq(b.len, 1000 + 2890 + 1000);
    ck_assert_int_eq(b.data[b.len], '\0');
    ck_assert(memcmp(b.data,
                     "0,\0"
                     "1,",
                     5) == 0);
    cw_buf_clear(&b);
    cw_buf_puts(&b, "kept");
    char *taken = cw_buf_take(&b);
    ck_assert_str_eq(taken, "kept");
    free(taken);
    taken = cw_buf_take(&b); /* an empty one gives an empty string */
    ck_assert_str_eq(taken, "");
    free(taken);

    struct cw_ids ids = {0};
    for (int32_t i = 0; i < 100; i++) {
        cw_ids_add(&ids, i);
    }
    cw_ids_append(&ids, (int32_t[]){7, 8}, 2);
    cw_ids_append(&ids, NULL, 0);
    ck_assert_uint_eq(ids.n, 102);
    ck_assert_int_eq(ids.v[99], 99);
    ck_assert_int_eq(ids.v[101], 8);
    cw_ids_free(&ids);
    ck_assert_ptr_null(ids.v);
}
END_TEST

START_TEST(large_memory_is_aligned_zero_and_refusable) {
    static const size_t sizes[] = {0,       1, 4096, 4097, (2 << 20) - 1, 2 << 20, (2 << 20) + 1,
                                   33 << 20};
    static void *(*const alloc[])(size_t bytes) = {cw_large_alloc, cw_sparse_alloc, cw_table_alloc};
    for (size_t n = 0; n < 3 * sizeof sizes / sizeof *sizes; n++) {
        size_t i = n / 3;
        unsigned char *p = alloc[n % 3](sizes[i]);
        ck_assert_ptr_nonnull(p);
        ck_assert_uint_eq((uintptr_t)p % (sizes[i] >= 2 << 20 ? 2 << 20 : 64), 0);
        if (sizes[i] != 0) {
            ck_assert_int_eq(p[0], 0);
            ck_assert_int_eq(p[sizes[i] - 1], 0);
            p[sizes[i] - 1] = 1;
        }
        cw_large_free(p, sizes[i]);
    }
    for (size_t n = 0; n < 3; n++) {
        ck_assert_ptr_null(alloc[n](SIZE_MAX));
        ck_assert_ptr_null(alloc[n](SIZE_MAX / 2));
    }
    cw_large_free(NULL, 10);
}
END_TEST

START_TEST(wrapping_sizes_abort) {
    cw_reallocarray(NULL, SIZE_MAX / 2, 3);
}
END_TEST

START_TEST(types_are_consistent) {
    size_t known = 0;
    for (uint32_t t = 0; t < 64; t++) {
        const struct cw_type_info *info = cw_type_info(t);
        if (info != NULL) {
            known++;
            ck_assert_uint_eq((uint32_t)info->type, t);
            ck_assert_int_gt(info->block, 0);
            ck_assert_int_gt(info->block_bytes, 0);
            ck_assert_str_eq(info->name, cw_type_known_name(t));
            ck_assert_int_eq(info->act == CW_ACT_F32, info->block == 1);
        }
    }
    ck_assert_uint_eq(known, 16);
    ck_assert_ptr_null(cw_type_known_name(40000));
}
END_TEST

START_TEST(clock_moves_forward) {
    double a = cw_now(), b = cw_now();
    ck_assert(isfinite(a) && b >= a);
}
END_TEST

START_TEST(files_are_read_whole_or_refused) {
    char path[] = "/tmp/chinwag-base-XXXXXX";
    struct cw_buf big = {0}, got = {0};
    struct cw_err err;
    for (int i = 0; i < 200000; i++) { /* several reads */
        cw_buf_putc(&big, (char)i);
    }
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, big.data, big.len), (ssize_t)big.len);
    cw_buf_puts(&got, "before ");
    ck_assert_int_eq(cw_file_read(path, big.len, &got, &err), CW_OK);
    ck_assert_uint_eq(got.len, 7 + big.len);
    ck_assert_mem_eq(got.data, "before ", 7);
    ck_assert_mem_eq(got.data + 7, big.data, big.len);
    ck_assert_int_eq(cw_file_read(path, big.len - 1, &got, &err), CW_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.text, ": longer than 199999 bytes"));
    ck_assert_int_eq(cw_file_read("/dev/zero", 2 << 20, &got, &err), CW_EFORMAT); /* without end */
    ck_assert_str_eq(err.text, "/dev/zero: longer than 2 MiB");
    cw_buf_clear(&got);
    ck_assert_int_eq(cw_file_read("/dev/null", 0, &got, &err), CW_OK);
    ck_assert_uint_eq(got.len, 0);
    ck_assert_int_eq(cw_file_read("/", 100, &got, NULL), CW_EIO);
    close(fd);
    unlink(path);
    ck_assert_int_eq(cw_file_read(path, 100, &got, &err), CW_ENOENT);
    ck_assert_int_eq(strncmp(err.text, path, strlen(path)), 0);
    ck_assert_int_eq(cw_file_read_fd(-1, "the draft", 100, &got, &err), CW_EIO);
    ck_assert_str_eq(err.text, "the draft: Bad file descriptor");
    cw_buf_free(&big);
    cw_buf_free(&got);
}
END_TEST

int main(void) {
    Suite *s = suite_create("base");
    TCase *t = tcase_create("base");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, printable_text_passes_and_commands_do_not);
    tcase_add_test(t, printable_never_overruns_or_splits);
    tcase_add_test(t, fail_fills_one_printable_line);
    tcase_add_test(t, every_code_has_a_name);
    tcase_add_test(t, utf8_round_trip);
    tcase_add_test(t, utf8_refuses_what_rfc_3629_refuses);
    tcase_add_test(t, utf8_complete_keeps_only_what_can_grow);
    tcase_add_test(t, buffers_grow_and_are_taken);
    tcase_add_test(t, large_memory_is_aligned_zero_and_refusable);
    tcase_add_test_raise_signal(t, wrapping_sizes_abort, SIGABRT);
    tcase_add_test(t, types_are_consistent);
    tcase_add_test(t, clock_moves_forward);
    tcase_add_test(t, files_are_read_whole_or_refused);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
