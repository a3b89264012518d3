/* SPDX-License-Identifier: MIT
 *
 * `chinwag info` on any GGUF file: what it is, what it would need, and every key and tensor that
 * would not be used, whether it can be run or not.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/app/driver.h"
#include "tests/support/mkgguf.h"

static struct driver d;
static struct cw_gguf *source;
static struct mkgguf out;

static void free_driver(void) {
    driver_free(&d);
}

static void begin(void) {
    ck_assert_int_eq(cw_gguf_open(&source, driver_model("tiny-llama-tied-F32.gguf"), NULL), CW_OK);
    mkgguf_init(&out);
}

static bool not_named(void *arg, struct cw_str name) {
    return arg == NULL || !cw_str_eq(name, arg);
}

static void keys_but(const char *name) {
    mkgguf_copy_keys(&out, source, not_named, (void *)(uintptr_t)name);
}

static const char *finish(void) {
    const char *path = tmp_path("info.gguf");
    mkgguf_copy_tensors(&out, source, NULL, NULL);
    mkgguf_save(&out, path);
    mkgguf_free(&out);
    cw_gguf_close(source);
    return path;
}

static struct json_object *member(struct json_object *o, const char *key) {
    struct json_object *v = NULL;
    ck_assert_msg(json_object_object_get_ex(o, key, &v), "no member %s", key);
    return v;
}

static bool lists(struct json_object *o, const char *key, const char *name) {
    struct json_object *list = member(o, key);
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        if (strcmp(json_object_get_string(json_object_array_get_idx(list, i)), name) == 0) {
            return true;
        }
    }
    return false;
}

/* The one line of "unsupported" that holds `part`. */
static void expect_unsupported(struct json_object *o, const char *part) {
    struct json_object *list = member(o, "unsupported");
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        if (strstr(json_object_get_string(json_object_array_get_idx(list, i)), part)) {
            return;
        }
    }
    ck_abort_msg("%s is not in %s", part, json_object_to_json_string(list));
}

static struct json_object *info(const char *path) {
    driver_run(&d, "", "info", path, "--json", "--tensors", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    driver_free(&d);
    return o;
}

START_TEST(lists_what_is_not_used) {
    float f[4] = {1};
    begin();
    keys_but(NULL);
    mkgguf_f32(&out, "llama.logit_scale", 0.5f);
    mkgguf_str(&out, "tokenizer.ggml.mood", "sunny");
    mkgguf_str(&out, "other.key\x1b[31m", "x");
    mkgguf_str(&out, "general.url", "here");
    mkgguf_tensor(&out, "v.blk.0.x", CW_F32, 1, (const uint64_t[]){4}, f, sizeof f);
    const char *path = finish();
    struct json_object *o = info(path);
    ck_assert(json_object_get_boolean(member(o, "loads")));
    ck_assert(lists(o, "unused_keys", "llama.logit_scale"));
    ck_assert(lists(o, "unused_keys", "llama.vocab_size"));
    ck_assert(lists(o, "unused_keys", "tokenizer.ggml.mood"));
    ck_assert(!lists(o, "unused_keys", "general.url"));
    ck_assert(!lists(o, "unused_keys", "llama.block_count"));
    ck_assert(!lists(o, "unused_keys", "tokenizer.chat_template"));
    ck_assert_uint_eq(json_object_array_length(member(o, "unused_keys")), 4);
    ck_assert_uint_eq(json_object_array_length(member(o, "unused_tensors")), 1);
    ck_assert(lists(o, "unused_tensors", "v.blk.0.x"));
    expect_unsupported(o, "key 'llama.logit_scale' (0.5) is not used");
    expect_unsupported(o, "tensor 'v.blk.0.x' is not used");
    json_object_put(o);
    driver_run(&d, "", "info", path, NULL);
    driver_expect_ok(&d);
    ck_assert_ptr_nonnull(strstr(d.out_text.data, "key llama.logit_scale\n"));
    ck_assert_ptr_nonnull(strstr(d.out_text.data, "key other.key\\x1B[31m\n"));
    ck_assert_ptr_nonnull(strstr(d.out_text.data, "tensor v.blk.0.x\n"));
    ck_assert_ptr_null(strchr(d.out_text.data, '\x1b'));
    driver_free(&d);
    /* The commands that run it say it too. */
    driver_run(&d, "", "logits", "-m", path, "--tokens", "1", NULL);
    driver_expect_ok(&d);
    ck_assert_ptr_nonnull(strstr(d.notes.data, "key 'llama.logit_scale' (0.5) is not used"));
    ck_assert_ptr_nonnull(strstr(d.notes.data, "tensor 'v.blk.0.x' is not used"));
}
END_TEST

START_TEST(an_architecture_that_is_not_supported) {
    begin();
    mkgguf_str(&out, "general.architecture", "qwen2moe");
    mkgguf_u32(&out, "qwen2moe.block_count", 2);
    mkgguf_u32(&out, "qwen2moe.embedding_length", 64);
    mkgguf_u32(&out, "qwen2moe.feed_forward_length", 128);
    mkgguf_u32(&out, "qwen2moe.context_length", 4096);
    mkgguf_u32(&out, "qwen2moe.attention.head_count", 4);
    keys_but("general.architecture");
    const char *path = finish();
    struct json_object *o = info(path);
    ck_assert(!json_object_get_boolean(member(o, "loads")));
    ck_assert_str_eq(json_object_get_string(member(o, "architecture")), "qwen2moe");
    expect_unsupported(o, "architecture 'qwen2moe' is not supported (these are: llama, ");
    struct json_object *memory = member(o, "memory");
    ck_assert_int_eq(json_object_get_int64(member(memory, "context")), 4096);
    ck_assert_int_eq(json_object_get_int64(member(memory, "session_bytes")),
                     4096 * 2 * 4 * (16 + 16) * 2);
    ck_assert_int_eq(json_object_get_int64(member(member(o, "hyperparameters"), "layers")), 2);
    ck_assert_uint_eq(json_object_array_length(member(o, "unused_tensors")),
                      (size_t)json_object_get_int64(member(o, "n_tensors")));
    json_object_put(o);
    driver_run(&d, "", "info", path, "-c", "100", NULL);
    driver_expect_ok(&d);
    ck_assert_ptr_nonnull(strstr(d.out_text.data, "for a context of 100 (given)"));
    ck_assert_ptr_nonnull(strstr(d.out_text.data, "more (--json names all)"));
}
END_TEST

START_TEST(types_that_are_not_supported) {
    static const struct {
        uint32_t number;
        const char *name;
    } types[] = {{17, "IQ2_XS"}, {34, "TQ1_0"}, {28, "F64"},  {24, "I8"},       {15, "Q8_K"},
                 {40, "NVFP4"},  {41, "Q1_0"},  {42, "Q2_0"}, {31, "Q4_0_4_4"}, {99, "type 99"}};
    static const uint8_t data[512];
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        begin();
        keys_but(NULL);
        mkgguf_tensor(&out, "odd.weight", types[i].number, 1, (const uint64_t[]){256}, data,
                      sizeof data);
        const char *path = finish();
        struct json_object *o = info(path);
        ck_assert(!json_object_get_boolean(member(o, "loads")));
        expect_unsupported(o, "tensor 'odd.weight' is of type ");
        if (types[i].number != 99) {
            expect_unsupported(o, types[i].name);
        }
        struct json_object *type = member(member(o, "tensors_by_type"), types[i].name);
        ck_assert(!json_object_get_boolean(member(type, "supported")));
        ck_assert_int_eq(json_object_get_int64(member(type, "n")), 1);
        json_object_put(o);
        driver_run(&d, "", "logits", "-m", path, "--tokens", "1", NULL);
        driver_expect(&d, 1, types[i].number == 99 ? "type 99" : types[i].name);
        driver_free(&d);
    }
}
END_TEST

START_TEST(other_kinds_of_files) {
    begin();
    mkgguf_str(&out, "general.type", "adapter");
    keys_but(NULL);
    struct json_object *o = info(finish());
    expect_unsupported(o, "is an adapter (LoRA)");
    json_object_put(o);
    /* Nothing in it at all. */
    mkgguf_init(&out);
    mkgguf_save(&out, tmp_path("empty.gguf"));
    mkgguf_free(&out);
    o = info(tmp_path("empty.gguf"));
    ck_assert(!json_object_get_boolean(member(o, "loads")));
    expect_unsupported(o, "'general.architecture' is missing");
    ck_assert_uint_eq(json_object_array_length(member(o, "unsupported")), 1);
    json_object_put(o);
    driver_run(&d, "", "info", tmp_path("empty.gguf"), NULL);
    driver_expect_ok(&d);
    ck_assert_ptr_nonnull(strstr(d.out_text.data, "architecture  none"));
}
END_TEST

/* Hostile sizes in a file that is not supported multiply to no nonsense. */
START_TEST(sizes_beyond_all_memory) {
    begin();
    mkgguf_str(&out, "general.architecture", "mamba");
    mkgguf_u32(&out, "mamba.block_count", 16777216);
    mkgguf_u32(&out, "mamba.embedding_length", 16777216);
    mkgguf_u32(&out, "mamba.feed_forward_length", 16777216);
    mkgguf_u32(&out, "mamba.attention.head_count", 65536);
    mkgguf_u32(&out, "mamba.attention.key_length", 65536);
    mkgguf_u32(&out, "mamba.attention.value_length", 65536);
    keys_but("general.architecture");
    const char *path = finish();
    driver_run(&d, "", "info", path, "--json", "-c", "2000000000", NULL);
    driver_expect_ok(&d);
    struct json_object *o = driver_json(&d);
    ck_assert(!json_object_object_get_ex(member(o, "memory"), "total_bytes", NULL));
    json_object_put(o);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("info");
    TCase *c = tcase_create("info");
    tcase_add_checked_fixture(c, NULL, free_driver);
    tcase_set_timeout(c, 300);
    tcase_add_test(c, lists_what_is_not_used);
    tcase_add_test(c, an_architecture_that_is_not_supported);
    tcase_add_test(c, types_that_are_not_supported);
    tcase_add_test(c, other_kinds_of_files);
    tcase_add_test(c, sizes_beyond_all_memory);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
