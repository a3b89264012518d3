/* SPDX-License-Identifier: MIT
 *
 * Every case of the reference: the ids of real vocabularies for texts of every kind, and the way
 * back. Vocabularies and models that are not on this machine are skipped by name.
 */
#include <check.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chinwag/tokenizer.h"
#include "chinwag/utf8.h"

enum { PATH_MAX_BYTES = 4096 };

static const struct {
    const char *name;
    const char *model; /* file in the models directory; NULL: a vocabulary of the reference */
} vocabs[] = {
    {"gpt-2", NULL},
    {"llama-bpe", NULL},
    {"llama-spm", NULL},
    {"qwen2", NULL},
    {"smollm2-135m", "SmolLM2-135M-Instruct.Q4_1.gguf"},
    {"gemma3-270m", "gemma-3-270m.Q4_K_M.gguf"},
    {"qwen2.5-coder-1.5b", "Qwen2.5-Coder-1.5B-Instruct.Q4_K_M.gguf"},
};
enum { N_VOCABS = sizeof vocabs / sizeof *vocabs };

static bool reference_path(char *out, const char *name) {
    const char *root = getenv("CHINWAG_SOURCE_ROOT");
    snprintf(out, PATH_MAX_BYTES, "%s/../shared/reference/tokenizers/%s", root != NULL ? root : ".",
             name);
    return access(out, R_OK) == 0;
}

static bool vocab_path(char *out, int v) {
    char name[128];
    if (vocabs[v].model == NULL) {
        snprintf(name, sizeof name, "ggml-vocab-%s.gguf", vocabs[v].name);
        return reference_path(out, name);
    }
    const char *data = getenv("XDG_DATA_HOME");
    const char *home = getenv("HOME");
    if (data != NULL && data[0] != '\0') {
        snprintf(out, PATH_MAX_BYTES, "%s/chinwag/models/%s", data, vocabs[v].model);
    } else {
        snprintf(out, PATH_MAX_BYTES, "%s/.local/share/chinwag/models/%s",
                 home != NULL ? home : ".", vocabs[v].model);
    }
    return access(out, R_OK) == 0;
}

static struct json_object *field(struct json_object *line, const char *name) {
    struct json_object *value = NULL;
    json_object_object_get_ex(line, name, &value);
    return value;
}

/* The text of a case, which may hold any byte. */
static void case_text(struct json_object *line, struct cw_buf *out) {
    struct json_object *text = field(line, "text");
    cw_buf_clear(out);
    if (text != NULL) {
        cw_buf_add(out, json_object_get_string(text), (size_t)json_object_get_string_len(text));
        return;
    }
    const char *hex = json_object_get_string(field(line, "hex"));
    for (; hex[0] != '\0'; hex += 2) {
        char digits[3] = {hex[0], hex[1], '\0'};
        cw_buf_putc(out, (char)strtol(digits, NULL, 16));
    }
}

static bool same_ids(const struct cw_ids *ids, struct json_object *want) {
    if (want == NULL || json_object_array_length(want) != ids->n) {
        return false;
    }
    for (size_t i = 0; i < ids->n; i++) {
        if (json_object_get_int(json_object_array_get_idx(want, i)) != ids->v[i]) {
            return false;
        }
    }
    return true;
}

static void explain(int line_number, struct json_object *line, const struct cw_ids *ids) {
    printf("line %d: %s\n  got", line_number, json_object_to_json_string(line));
    for (size_t i = 0; i < ids->n; i++) {
        printf(" %d", ids->v[i]);
    }
    printf("\n");
}

/* What the text must come back as: a U+2581 is a blank to the kinds that write blanks so. */
static void expected_back(const struct cw_tokenizer *t, const struct cw_buf *text,
                          struct cw_buf *out) {
    bool escapes = strcmp(cw_tokenizer_model_name(t), "llama") == 0;
    cw_buf_clear(out);
    for (size_t i = 0; i < text->len;) {
        if (escapes && text->len - i >= 3 && memcmp(text->data + i, "\xe2\x96\x81", 3) == 0) {
            cw_buf_putc(out, ' ');
            i += 3;
        } else {
            cw_buf_putc(out, text->data[i++]);
        }
    }
}

/* False, after a line, when the vocabulary is not here. */
static bool open_vocab(int v, struct cw_gguf **gguf, struct cw_tokenizer **t) {
    char path[PATH_MAX_BYTES];
    struct cw_err err = {0};
    if (!vocab_path(path, v)) {
        printf("skipped: %s is not here\n", vocabs[v].name);
        return false;
    }
    ck_assert_msg(cw_gguf_open(gguf, path, &err) == CW_OK, "%s", err.text);
    ck_assert_msg(cw_tokenizer_create(t, *gguf, NULL, &err) == CW_OK, "%s", err.text);
    return true;
}

START_TEST(ids_are_those_of_the_reference) {
    char path[PATH_MAX_BYTES];
    struct cw_err err = {0};
    struct cw_gguf *gguf = NULL;
    struct cw_tokenizer *t = NULL;
    if (!open_vocab(_i, &gguf, &t)) {
        return;
    }
    ck_assert(reference_path(path, "cases.jsonl"));
    FILE *cases = fopen(path, "r");
    ck_assert_ptr_nonnull(cases);

    struct cw_buf text = {0};
    struct cw_buf want = {0};
    struct cw_buf back = {0};
    struct cw_ids ids = {0};
    char *buffer = NULL;
    size_t cap = 0;
    int n_cases = 0;
    int n_wrong = 0;
    for (int number = 1; getline(&buffer, &cap, cases) > 0; number++) {
        struct json_object *line = json_tokener_parse(buffer);
        ck_assert_ptr_nonnull(line);
        if (strcmp(json_object_get_string(field(line, "vocab")), vocabs[_i].name) != 0) {
            json_object_put(line);
            continue;
        }
        bool add = json_object_get_boolean(field(line, "add_special"));
        bool parse = json_object_get_boolean(field(line, "parse_special"));
        case_text(line, &text);
        ids.n = 0;
        n_cases++;
        unsigned flags = (add ? CW_TOK_BOS_EOS : 0) | (parse ? CW_TOK_SPECIAL : 0);
        ck_assert_int_eq(cw_tokenizer_encode(t, text.data, text.len, flags, &ids, &err), CW_OK);
        /* Text that is not UTF-8 has no ids to compare with; that it comes back is checked below.*/
        if (field(line, "text") != NULL && !same_ids(&ids, field(line, "ids")) &&
            !same_ids(&ids, field(line, "origin_ids"))) {
            explain(number, line, &ids);
            n_wrong++;
        }
        if (!add && !parse && cw_utf8_valid(text.data, text.len)) {
            cw_buf_clear(&back);
            cw_tokenizer_decode(t, ids.v, ids.n, false, &back);
            expected_back(t, &text, &want);
            if (back.len != want.len || memcmp(back.data, want.data, back.len) != 0) {
                printf("line %d comes back as \"%.*s\"\n", number, (int)back.len, back.data);
                n_wrong++;
            }
        }
        json_object_put(line);
    }
    printf("%s: %d cases\n", vocabs[_i].name, n_cases);
    fflush(stdout); /* a failed check ends the process without */
    ck_assert_int_gt(n_cases, 150);
    ck_assert_int_eq(n_wrong, 0);

    free(buffer);
    fclose(cases);
    cw_buf_free(&text);
    cw_buf_free(&want);
    cw_buf_free(&back);
    cw_ids_free(&ids);
    cw_tokenizer_destroy(t);
    cw_gguf_close(gguf);
}
END_TEST

/* Whether this byte alone comes back: some vocabularies lack bytes that text seldom has. */
static bool has_byte(struct cw_tokenizer *t, char byte) {
    struct cw_ids ids = {0};
    struct cw_buf back = {0};
    ck_assert_int_eq(cw_tokenizer_encode(t, &byte, 1, 0, &ids, NULL), CW_OK);
    cw_tokenizer_decode(t, ids.v, ids.n, false, &back);
    bool same = back.len == 1 && back.data[0] == byte;
    cw_ids_free(&ids);
    cw_buf_free(&back);
    return same;
}

START_TEST(random_bytes_come_back) {
    struct cw_gguf *gguf = NULL;
    struct cw_tokenizer *t = NULL;
    if (!open_vocab(_i, &gguf, &t)) {
        return;
    }
    char bytes[256];
    size_t n_bytes = 0;
    for (int b = 0; b < 256; b++) {
        if (has_byte(t, (char)b)) {
            bytes[n_bytes++] = (char)b;
        }
    }
    printf("%s: %zu of 256 bytes have a token\n", vocabs[_i].name, n_bytes);
    fflush(stdout);
    ck_assert_uint_gt(n_bytes, 230);
    struct cw_buf text = {0};
    struct cw_buf back = {0};
    struct cw_ids ids = {0};
    uint32_t state = 11;
    for (int round = 0; round < 300; round++) {
        cw_buf_clear(&text);
        cw_buf_clear(&back);
        ids.n = 0;
        for (int i = 0; i < round * 4; i++) {
            state = state * 1664525u + 1013904223u;
            /* Mostly the lower half, so that there is text to merge. */
            uint32_t r = state >> 8;
            cw_buf_putc(&text, bytes[r % 4 == 0 ? r / 4 % n_bytes : r / 4 % 128 % n_bytes]);
        }
        ck_assert_int_eq(cw_tokenizer_encode(t, text.data, text.len, 0, &ids, NULL), CW_OK);
        cw_tokenizer_decode(t, ids.v, ids.n, false, &back);
        ck_assert_uint_eq(back.len, text.len);
        ck_assert(text.len == 0 || memcmp(back.data, text.data, text.len) == 0);
    }
    cw_buf_free(&text);
    cw_buf_free(&back);
    cw_ids_free(&ids);
    cw_tokenizer_destroy(t);
    cw_gguf_close(gguf);
}
END_TEST

int main(void) {
    char path[PATH_MAX_BYTES];
    Suite *suite = suite_create("tokenizer_reference");
    TCase *tcase = tcase_create("cases");
    tcase_set_timeout(tcase, 120);
    if (reference_path(path, "cases.jsonl")) {
        tcase_add_loop_test(tcase, ids_are_those_of_the_reference, 0, N_VOCABS);
        tcase_add_loop_test(tcase, random_bytes_come_back, 0, N_VOCABS);
    } else {
        printf("skipped: the reference is not here\n");
    }
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
