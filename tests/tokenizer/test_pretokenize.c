/* SPDX-License-Identifier: MIT
 *
 * The pre-tokenizers: what each family cuts where, that nothing is lost, and that a word of any
 * length is cut in linear time, compiled or interpreted.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/utf8.h"
#include "core/text/tokenizer/tokenizer_impl.h"

static struct cw_pretokenizer *open_pre(const char *name, bool jit) {
    struct cw_pretokenizer *p = NULL;
    struct cw_err err = {0};
    const struct cw_pre *pre = cw_pre_find((struct cw_str){name, strlen(name)});
    ck_assert_msg(pre != NULL, "%s", name);
    ck_assert_msg(cw_pretokenizer_create(&p, pre, jit, &err) == CW_OK, "%s: %s", name, err.text);
    return p;
}

static int join(void *ctx, const char *piece, size_t len, struct cw_err *err) {
    struct cw_buf *out = ctx;
    if (out->len > 0) {
        cw_buf_putc(out, '|');
    }
    cw_buf_add(out, piece, len);
    return CW_OK;
}

/* clang-format off */
static const struct {
    const char *pre, *text, *pieces;
} cuts[] = {
    /* How many digits stand together. */
    {"llama-bpe", "1234567", "123|456|7"},
    {"llama-bpe", "x 20251129", "x| |202|511|29"},
    {"qwen2", "1234567", "1|2|3|4|5|6|7"},
    {"qwen2", "x 20251129", "x| |2|0|2|5|1|1|2|9"},
    {"gpt-2", "1234567", "1234567"},
    {"gpt-2", "x 20251129", "x| 20251129"},
    {"smollm", "x 20251129", "x| |2|0|2|5|1|1|2|9"},
    {"falcon", "x 1234567", "x| |123|456|7"},
    {"default", "x 1234567", "x| |123|456|7"},
    {"deepseek-v3", "x 1234567", "x| |123|456|7"},
    {"deepseek-coder", "x 1234", "x| |1|2|3|4"},
    {"deepseek-llm", "x 1234", "x| |1234"},
    {"tekken", "x 1234", "x| |1|2|3|4"},
    {"gpt-4o", "x 1234", "x| |123|4"},
    {"viking", "x12", "x|1|2"},
    {"minicpm5", "x 1234567", "x| |123|456|7"},

    /* Contractions. */
    {"gpt-2", "I'm don't WE'RE", "I|'m| don|'t| WE|'|RE"},
    {"llama-bpe", "I'm don't WE'RE", "I|'m| don|'t| WE|'RE"},
    {"gpt-4o", "I'm don't WE'RE", "I'm| don't| WE'RE"},
    {"tekken", "I'm don't", "I|'m| don|'t"},
    {"ufakzeka", "I'm don't '", "I|'m| don|'t| '"},
    {"ufakzeka", "Ankara'da 's", "Ankara|'da| '|s"},
    {"qwen2", "Ankara'da", "Ankara|'d|a"},
    {"llama-bpe", "it'\xc5\xbf", "it|'\xc5\xbf"}, /* U+017F folds to s, but is none */

    /* A word takes one character in front of it, of which kind differs. */
    {"gpt-2", " a (b", " a| (|b"},
    {"llama-bpe", " a (b\tc", " a| (|b|\tc"},
    {"qwen2", "$x =y", "$x| =|y"},
    {"deepseek-v3", "$x .y", "$x| .|y"},
    {"starcoder", "\tx", "\t|x"},

    /* White space leaves its last character to the word; newlines end a piece. */
    {"gpt-2", "a   b", "a|  | b"},
    {"gpt-2", "a\n\n b", "a|\n\n| b"},
    {"gpt-2", "a  ", "a|  "},
    {"llama-bpe", "a   b", "a|  | b"},
    {"llama-bpe", "a \n \n b", "a| \n \n| b"},
    {"llama-bpe", "a.\n\nb", "a|.\n\n|b"},
    {"seed-coder", "a.\n\nb", "a|.|\n\n|b"},
    {"bailingmoe", " \n\n x", " \n\n| x"},
    {"deepseek-llm", "a  \nb", "a|  |\n|b"},
    {"deepseek-llm", "a b  ", "a| b|  "},
    {"deepseek-coder", "a\n\nb", "a|\n|\n|b"},

    /* Unicode's white space, not Perl's: U+0085 is, U+180E is not. */
    {"gpt-2", "!\xc2\x85", "!|\xc2\x85"},
    {"llama-bpe", "!\xc2\x85", "!|\xc2\x85"},
    {"gpt-2", "!\xe1\xa0\x8e", "!\xe1\xa0\x8e"},
    {"gpt-2", "a\xc2\xa0" "b", "a|\xc2\xa0|b"},
    {"llama-bpe", "a\xe3\x80\x80" "b", "a|\xe3\x80\x80" "b"},

    /* Upper and lower case. */
    {"gpt-4o", "camelCase HTMLParser", "camel|Case| HTMLParser"},
    {"tekken", "camelCase", "camel|Case"},
    {"llama-bpe", "camelCase", "camelCase"},
    {"gpt-4o", "a/\n/b", "a|/\n/|b"},

    /* Scripts. */
    {"deepseek-v3", "ab\xe4\xbd\xa0\xe5\xa5\xbd" "c", "ab|\xe4\xbd\xa0\xe5\xa5\xbd|c"},
    {"deepseek-llm", "ab\xe4\xbd\xa0\xe5\xa5\xbd", "ab|\xe4\xbd\xa0\xe5\xa5\xbd"},
    {"deepseek-llm", "a\xc3\xa9 \xd0\xb6", "a|\xc3\xa9| \xd0\xb6"}, /* :-~ has the letters too */
    {"qwen2", "e\xcc\x81", "e|\xcc\x81"},
    {"qwen35", "e\xcc\x81", "e\xcc\x81"},
    {"falcon", "a+b", "a|+|b"},
    {"bloom", "ab, c", "ab|,| c"},
};
/* clang-format on */

START_TEST(families_cut_where_they_should) {
    struct cw_buf got = {0};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        struct cw_pretokenizer *p = open_pre(cuts[i].pre, true);
        cw_buf_clear(&got);
        ck_assert_int_eq(cw_pretokenize(p, cuts[i].text, strlen(cuts[i].text), join, &got, NULL),
                         CW_OK);
        ck_assert_msg(strcmp(got.data, cuts[i].pieces) == 0, "%s: \"%s\" is cut to \"%s\"",
                      cuts[i].pre, cuts[i].text, got.data);
        cw_pretokenizer_destroy(p);
    }
    cw_buf_free(&got);
}
END_TEST

START_TEST(names_that_mean_the_same_cut_the_same) {
    static const char *const same[][2] = {
        {"llama3", "llama-bpe"},
        {"llama-v3", "llama-bpe"},
        {"dbrx", "llama-bpe"},
        {"smaug-bpe", "llama-bpe"},
        {"pixtral", "llama-bpe"},
        {"stablelm2", "qwen2"},
        {"deepseek-r1-qwen", "qwen2"},
        {"jina-v2-de", "gpt-2"},
        {"exaone", "smollm"},
        {"granite-docling", "gpt-2"},
        {"refact", "starcoder"},
        {"command-r", "starcoder"},
        {"olmo", "mpt"},
        {"llama4", "gpt-4o"},
        {"glm5", "llama-bpe"},
        {"hy_v4", "deepseek-v3"},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        const struct cw_pre *a = cw_pre_find((struct cw_str){same[i][0], strlen(same[i][0])});
        const struct cw_pre *b = cw_pre_find((struct cw_str){same[i][1], strlen(same[i][1])});
        ck_assert_msg(a != NULL && b != NULL, "%s", same[i][0]);
        ck_assert_ptr_eq(a->patterns, b->patterns);
    }
    ck_assert_ptr_null(cw_pre_find((struct cw_str){"no-such-thing", 13}));
    ck_assert_ptr_null(cw_pre_find((struct cw_str){"", 0}));
    ck_assert_ptr_null(cw_pre_find((struct cw_str){"gpt-2x", 6}));
}
END_TEST

/* --- every family, any text --- */

/* The i-th row whose patterns no row before it has, or NULL. */
static const struct cw_pre *family(size_t i) {
    const struct cw_pre *pre;
    for (size_t row = 0; (pre = cw_pre_at(row)) != NULL; row++) {
        bool seen = false;
        for (size_t k = 0; k < row; k++) {
            seen = seen || cw_pre_at(k)->patterns == pre->patterns;
        }
        if (!seen && i-- == 0) {
            return pre;
        }
    }
    return NULL;
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Characters that patterns tell apart, and anything else now and then. */
static void random_text(struct cw_buf *out, size_t n, uint32_t *state) {
    static const uint32_t some[] = {
        ' ',    ' ',    '\n',   '\r', '\t',  'a',    'b',    'Z',     '\'',    's',    't',
        '0',    '7',    '.',    ',',  '/',   '<',    '|',    '_',     '$',     '+',    '(',
        0x85,   0xa0,   0xe9,   0xc9, 0x301, 0x1c5,  0x2b0,  0x5d0,   0x660,   0x4e00, 0x3042,
        0xac00, 0x3000, 0x180e, 0,    0x7f,  0x2028, 0xff01, 0x1f600, 0x10400, 0xfffd, 0x2581,
    };
    cw_buf_clear(out);
    for (size_t i = 0; i < n; i++) {
        uint32_t r = next_random(state);
        uint32_t cp = r % 16 == 0 ? next_random(state) % 0x110000
                                  : some[r / 16 % (sizeof some / sizeof *some)];
        char utf8[4];
        cw_buf_add(out, utf8, (size_t)cw_utf8_encode(cp, utf8));
    }
}

struct pieces {
    struct cw_buf text;
    struct cw_ids lengths;
};

static int collect(void *ctx, const char *piece, size_t len, struct cw_err *err) {
    struct pieces *pieces = ctx;
    ck_assert_uint_gt(len, 0);
    cw_buf_add(&pieces->text, piece, len);
    cw_ids_add(&pieces->lengths, (int32_t)len);
    return CW_OK;
}

static void clear(struct pieces *pieces) {
    cw_buf_clear(&pieces->text);
    pieces->lengths.n = 0;
}

START_TEST(no_byte_is_lost_compiled_or_interpreted) {
    const struct cw_pre *pre = family((size_t)_i);
    struct cw_pretokenizer *compiled = open_pre(pre->name, true);
    struct cw_pretokenizer *interpreted = open_pre(pre->name, false);
    struct cw_buf text = {0};
    struct pieces a = {0};
    struct pieces b = {0};
    uint32_t state = 7;
    for (size_t round = 0; round < 40; round++) {
        random_text(&text, round * 8, &state);
        clear(&a);
        clear(&b);
        ck_assert_int_eq(cw_pretokenize(compiled, text.data, text.len, collect, &a, NULL), CW_OK);
        ck_assert_int_eq(cw_pretokenize(interpreted, text.data, text.len, collect, &b, NULL),
                         CW_OK);
        ck_assert_uint_eq(a.text.len, text.len);
        ck_assert(text.len == 0 || memcmp(a.text.data, text.data, text.len) == 0);
        ck_assert_uint_eq(a.lengths.n, b.lengths.n);
        ck_assert(a.lengths.n == 0 ||
                  memcmp(a.lengths.v, b.lengths.v, a.lengths.n * sizeof *a.lengths.v) == 0);
    }
    cw_buf_free(&text);
    cw_buf_free(&a.text);
    cw_buf_free(&b.text);
    cw_ids_free(&a.lengths);
    cw_ids_free(&b.lengths);
    cw_pretokenizer_destroy(compiled);
    cw_pretokenizer_destroy(interpreted);
}
END_TEST

static int add_length(void *ctx, const char *piece, size_t len, struct cw_err *err) {
    size_t *total = ctx;
    *total += len;
    return CW_OK;
}

/* Compiled or interpreted: square time would take minutes on one of these and run into the time
 * limit, a recursion would take the stack. */
START_TEST(a_word_of_any_length_is_cut) {
    static const char *const units[] = {
        "a", "A", "1", " ", "\n", "\t\n", "'", ".", "\xe4\xbd\xa0", "e\xcc\x81",
    };
    static const char *const ends[] = {"x", "1"}; /* what the run looks ahead to */
    enum { UNITS = 1 << 18 };
    const struct cw_pre *pre = family((size_t)_i / 2);
    struct cw_pretokenizer *p = open_pre(pre->name, _i % 2 == 0);
    struct cw_buf text = {0};
    for (size_t k = 0; k < 2 * (sizeof units / sizeof *units); k++) {
        struct cw_err err = {0};
        size_t total = 0;
        cw_buf_clear(&text);
        for (size_t i = 0; i < UNITS; i++) {
            cw_buf_puts(&text, units[k / 2]);
        }
        cw_buf_puts(&text, ends[k % 2]);
        int rc = cw_pretokenize(p, text.data, text.len, add_length, &total, &err);
        ck_assert_msg(rc == CW_OK, "%s: %s", pre->name, err.text);
        ck_assert_uint_eq(total, text.len);
    }
    cw_buf_free(&text);
    cw_pretokenizer_destroy(p);
}
END_TEST

/* What the compiled pattern has no stack for is interpreted, on the heap. */
START_TEST(a_pattern_that_nests_deeply) {
    static const char *const patterns[PRE_MAX_PATTERNS] = {"(?:a|bc)+"};
    static const struct cw_pre pre = {"nested", patterns, 0};
    struct cw_pretokenizer *p = NULL;
    struct cw_buf text = {0};
    struct cw_buf got = {0};
    ck_assert_int_eq(cw_pretokenizer_create(&p, &pre, true, NULL), CW_OK);
    for (int i = 0; i < 100000; i++) {
        cw_buf_puts(&text, i % 2 == 0 ? "a" : "bc");
    }
    cw_buf_puts(&text, "x");
    ck_assert_int_eq(cw_pretokenize(p, text.data, text.len, join, &got, NULL), CW_OK);
    ck_assert_uint_eq(got.len, text.len + 1);
    ck_assert_str_eq(got.data + got.len - 3, "c|x");
    cw_buf_free(&text);
    cw_buf_free(&got);
    cw_pretokenizer_destroy(p);
}
END_TEST

static int refuse(void *ctx, const char *piece, size_t len, struct cw_err *err) {
    int *calls = ctx;
    return ++*calls == 2 ? CW_EFORMAT : CW_OK;
}

START_TEST(a_refused_piece_ends_the_cutting) {
    struct cw_pretokenizer *p = open_pre("smollm", true);
    int calls = 0;
    ck_assert_int_eq(cw_pretokenize(p, "a b c d", 7, refuse, &calls, NULL), CW_EFORMAT);
    ck_assert_int_eq(calls, 2);
    cw_pretokenizer_destroy(p);
}
END_TEST

int main(void) {
    int n_families = 0;
    while (family((size_t)n_families) != NULL) {
        n_families++;
    }
    Suite *suite = suite_create("pretokenize");
    TCase *tcase = tcase_create("patterns");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, families_cut_where_they_should);
    tcase_add_test(tcase, names_that_mean_the_same_cut_the_same);
    tcase_add_loop_test(tcase, no_byte_is_lost_compiled_or_interpreted, 0, n_families);
    tcase_add_test(tcase, a_pattern_that_nests_deeply);
    tcase_add_test(tcase, a_refused_piece_ends_the_cutting);
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("long words");
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, a_word_of_any_length_is_cut, 0, 2 * n_families);
    suite_add_tcase(suite, tcase);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
