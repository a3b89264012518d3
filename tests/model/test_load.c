/* SPDX-License-Identifier: MIT
 *
 * Loading: files that lack, contradict or exceed what the architecture needs; what must not matter
 * (how projections are stored, where the output matrix is) and what must; and the description of a
 * file. Each wrong file is a good one with one thing changed. */
#include "tests/model/fixture.h"
#include "tests/support/mkgguf.h"

#include "chinwag/info.h"
#include "core/compute/maths.h"
#include "core/model/internal.h"
#include "core/model/memory.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One of each architecture, all in the tree. */
static const char *const kept[] = {
    "tiny-llama-tied-F32.gguf",   "tiny-gpt2-F32.gguf",         "tiny-qwen2-F32.gguf",
    "tiny-qwen3-F32.gguf",        "tiny-gemma-F32.gguf",        "tiny-gemma2-F32.gguf",
    "tiny-gemma3-F32.gguf",       "tiny-phi3-partial-F32.gguf", "tiny-smollm3-F32.gguf",
    "tiny-olmo2-window-F32.gguf", "tiny-granite-F32.gguf",      "tiny-starcoder2-F32.gguf",
    "tiny-gptneox-F32.gguf",      "tiny-mistral3-F32.gguf",     "tiny-gpt-oss-MXFP4.gguf",
    "tiny-qwen3moe-few-F32.gguf", "tiny-mixtral-F32.gguf",
};
enum { N_KEPT = sizeof kept / sizeof *kept };

static const char *base_of(struct cw_str name, char *buf, size_t cap) {
    snprintf(buf, cap, "%.*s", (int)name.len, name.data);
    return buf;
}

/* The value of an F32 tensor of the source. */
static const float *values(const char *name, size_t *n) {
    const struct cw_tensor *t = cw_gguf_tensor(change_source, name);
    ck_assert_ptr_nonnull(t);
    ck_assert_int_eq(t->type, CW_F32);
    *n = (size_t)(t->bytes / 4);
    return (const float *)(const void *)t->data;
}

static float *score_kept(const char *file) {
    size_t n;
    char *path = model_path(file);
    ck_assert_ptr_nonnull(path);
    float *y = score_file(path, &n);
    free(path);
    return y;
}

/* ---- keys --------------------------------------------------------------------------------------
 */

START_TEST(every_kept_model_loads_without_notices) {
    char *path = model_path(kept[_i]);
    ck_assert_ptr_nonnull(path);
    char *notices = notices_of(path);
    ck_assert_str_eq(notices, "");
    free(notices);
    free(path);
}
END_TEST

START_TEST(unsupported_architecture) {
    change_begin(kept[0]);
    change_keys_but("general.architecture");
    mkgguf_str(&change_out, "general.architecture",
               "mam\x1b"
               "ba");
    change_tensors_but(NULL);
    const char *path = change_finish();
    load_fails(path, CW_EUNSUP, "'mam\\x1Bba' is not supported");
    for (size_t i = 0; cw_arch_name(i) != NULL; i++) {
        load_fails(path, CW_EUNSUP, cw_arch_name(i));
    }
    change_begin(kept[0]);
    change_keys_but("general.architecture");
    change_tensors_but(NULL);
    load_fails(change_finish(), CW_EFORMAT, "'general.architecture' is missing");
}
END_TEST

/* Keys that no model can do without, by architecture. */
START_TEST(missing_keys) {
    static const struct {
        const char *file, *key;
    } cases[] = {
        {"tiny-llama-tied-F32.gguf", "llama.block_count"},
        {"tiny-llama-tied-F32.gguf", "llama.embedding_length"},
        {"tiny-llama-tied-F32.gguf", "llama.feed_forward_length"},
        {"tiny-llama-tied-F32.gguf", "llama.attention.head_count"},
        {"tiny-llama-tied-F32.gguf", "llama.attention.layer_norm_rms_epsilon"},
        {"tiny-gpt2-F32.gguf", "gpt2.attention.layer_norm_epsilon"},
        {"tiny-gptneox-F32.gguf", "gptneox.use_parallel_residual"},
        {"tiny-gpt-oss-MXFP4.gguf", "gpt-oss.expert_count"},
        {"tiny-gpt-oss-MXFP4.gguf", "gpt-oss.expert_used_count"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        change_begin(cases[i].file);
        change_keys_but(cases[i].key);
        change_tensors_but(NULL);
        load_fails(change_finish(), CW_EFORMAT, cases[i].key);
    }
}
END_TEST

START_TEST(wrong_keys) {
    static const struct {
        const char *key;
        double value; /* as float if it is none of uint32 */
        int rc;
    } cases[] = {
        {"llama.block_count", 0, CW_EFORMAT},
        {"llama.block_count", 3, CW_EFORMAT},
        {"llama.block_count", 100000, CW_EFORMAT},
        {"llama.block_count", 4294967295.0, CW_EFORMAT},
        {"llama.block_count", 2.5, CW_EFORMAT},
        {"llama.embedding_length", 0, CW_EFORMAT},
        {"llama.embedding_length", 63, CW_EFORMAT},
        {"llama.embedding_length", 128, CW_EFORMAT},
        {"llama.embedding_length", 4294967295.0, CW_EFORMAT},
        {"llama.feed_forward_length", 0, CW_EFORMAT},
        {"llama.feed_forward_length", 64, CW_EFORMAT},
        {"llama.feed_forward_length", 2147483648.0, CW_EFORMAT},
        {"llama.attention.head_count", 0, CW_EFORMAT},
        {"llama.attention.head_count", 3, CW_EFORMAT},
        {"llama.attention.head_count", 64, CW_EFORMAT},
        {"llama.attention.head_count", 4294967295.0, CW_EFORMAT},
        {"llama.attention.head_count_kv", 0, CW_EFORMAT},
        {"llama.attention.head_count_kv", 3, CW_EFORMAT},
        {"llama.attention.head_count_kv", 1, CW_EFORMAT}, /* not what the tensors have */
        {"llama.attention.key_length", 0, CW_EFORMAT},
        {"llama.attention.key_length", 8, CW_EFORMAT},
        {"llama.attention.key_length", 4294967295.0, CW_EFORMAT},
        {"llama.attention.key_length", 65536, CW_EFORMAT},
        {"llama.attention.value_length", 32, CW_EFORMAT},
        {"llama.attention.layer_norm_rms_epsilon", -0.5, CW_EFORMAT},
        {"llama.attention.layer_norm_rms_epsilon", 1.5, CW_EFORMAT},
        {"llama.rope.dimension_count", 0, CW_EFORMAT},
        {"llama.rope.dimension_count", 7, CW_EFORMAT},
        {"llama.rope.dimension_count", 18, CW_EFORMAT},
        {"llama.rope.freq_base", 0, CW_EFORMAT},
        {"llama.rope.freq_base", -1.5, CW_EFORMAT},
        {"llama.rope.scaling.factor", -2.5, CW_EFORMAT},
        {"llama.rope.scaling.factor", 1e-6, CW_EFORMAT},
        {"llama.rope.scaling.attn_factor", -0.5, CW_EFORMAT},
        {"llama.expert_count", 4, CW_EFORMAT}, /* without the keys and tensors of experts */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        change_begin("tiny-llama-tied-F32.gguf");
        change_keys_but(cases[i].key);
        double v = cases[i].value;
        if (v >= 0 && v == (double)(uint32_t)v) {
            mkgguf_u32(&change_out, cases[i].key, (uint32_t)v);
        } else {
            mkgguf_f32(&change_out, cases[i].key, (float)v);
        }
        change_tensors_but(NULL);
        load_fails(change_finish(), cases[i].rc, "changed.gguf: ");
    }
    change_begin("tiny-llama-tied-F32.gguf");
    change_keys_but("llama.attention.head_count_kv");
    mkgguf_u32(&change_out, "llama.attention.head_count_kv", 3);
    change_tensors_but(NULL);
    load_fails(change_finish(), CW_EFORMAT, "does not divide the 4 heads");
}
END_TEST

START_TEST(keys_of_other_types) {
    static const char *const keys[] = {
        "llama.block_count", "llama.attention.head_count", "llama.rope.freq_base",
        "llama.attention.layer_norm_rms_epsilon", "llama.context_length"};
    static const char *const one[] = {"2"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        for (int kind = 0; kind < 4; kind++) {
            int64_t negative = -2;
            change_begin("tiny-llama-tied-F32.gguf");
            change_keys_but(keys[i]);
            if (kind == 0) {
                mkgguf_str(&change_out, keys[i], "2");
            } else if (kind == 1) {
                mkgguf_bool(&change_out, keys[i], true);
            } else if (kind == 2) {
                mkgguf_strs(&change_out, keys[i], one, 1);
            } else {
                mkgguf_scalar(&change_out, keys[i], CW_GGUF_I64, &negative, 8);
            }
            change_tensors_but(NULL);
            load_fails(change_finish(), CW_EFORMAT, keys[i]);
        }
    }
    /* Another width is no fault. */
    int64_t layers = 2;
    uint8_t heads = 4;
    change_begin("tiny-llama-tied-F32.gguf");
    change_keys_but("llama.block_count");
    mkgguf_scalar(&change_out, "llama.block_count", CW_GGUF_I64, &layers, 8);
    change_tensors_but(NULL);
    free(notices_of(change_finish()));
    change_begin("tiny-llama-tied-F32.gguf");
    change_keys_but("llama.attention.head_count");
    mkgguf_scalar(&change_out, "llama.attention.head_count", CW_GGUF_U8, &heads, 1);
    change_tensors_but(NULL);
    free(notices_of(change_finish()));
}
END_TEST

START_TEST(window_patterns) {
    size_t n;
    uint8_t list[4] = {1, 0, 1, 1};
    float *expected = score_kept("tiny-gemma3-F32.gguf");
    change_begin("tiny-gemma3-F32.gguf"); /* pattern 2: layers 0 and 2 are local */
    change_keys_but("gemma3.attention.sliding_window_pattern");
    mkgguf_array(&change_out, "gemma3.attention.sliding_window_pattern", CW_GGUF_BOOL, 3, list, 3);
    change_tensors_but(NULL);
    float *y = score_file(change_finish(), &n);
    ck_assert(same_bits(y, expected, n));
    free(y);
    change_begin("tiny-gemma3-F32.gguf");
    change_keys_but("gemma3.attention.sliding_window_pattern");
    list[0] = 0;
    mkgguf_array(&change_out, "gemma3.attention.sliding_window_pattern", CW_GGUF_BOOL, 3, list, 3);
    change_tensors_but(NULL);
    y = score_file(change_finish(), &n);
    ck_assert(!same_bits(y, expected, n));
    free(y);
    change_begin("tiny-gemma3-F32.gguf");
    change_keys_but("gemma3.attention.sliding_window_pattern");
    mkgguf_array(&change_out, "gemma3.attention.sliding_window_pattern", CW_GGUF_BOOL, 4, list, 4);
    change_tensors_but(NULL);
    load_fails(change_finish(), CW_EFORMAT, "4 entries for 3 layers");
    change_begin("tiny-gemma3-F32.gguf");
    change_keys_but("gemma3.attention.sliding_window_pattern");
    mkgguf_u32(&change_out, "gemma3.attention.sliding_window_pattern", 0);
    change_tensors_but(NULL);
    load_fails(change_finish(), CW_EFORMAT, "sliding_window_pattern");
    free(expected);
}
END_TEST

/* ---- tensors -----------------------------------------------------------------------------------
 */

START_TEST(missing_tensors) {
    size_t n_optional = 0;
    change_begin(kept[_i]);
    size_t n = cw_gguf_n_tensors(change_source);
    cw_gguf_close(change_source);
    for (size_t i = 0; i < n; i++) {
        char name[96];
        change_begin(kept[_i]);
        base_of(cw_gguf_tensor_at(change_source, i)->name, name, sizeof name);
        change_keys_but(NULL);
        change_tensors_but(name);
        const char *path = change_finish();
        if (strcmp(name, "output.weight") == 0) { /* tied then */
            n_optional++;
            free(notices_of(path));
        } else {
            load_fails(path, CW_EFORMAT, name);
        }
    }
    ck_assert_uint_le(n_optional, 1);
}
END_TEST

/* Each tensor with one row more, and with its rows twice as long. */
START_TEST(wrong_shapes) {
    change_begin(kept[_i]);
    size_t n = cw_gguf_n_tensors(change_source);
    cw_gguf_close(change_source);
    for (size_t i = 0; i < 2 * n; i++) {
        char name[96];
        change_begin(kept[_i]);
        const struct cw_tensor *t = cw_gguf_tensor_at(change_source, i / 2);
        base_of(t->name, name, sizeof name);
        uint64_t dims[4] = {(uint64_t)t->dims[0], (uint64_t)t->dims[1], (uint64_t)t->dims[2], 1};
        bool longer = i % 2 == 0;
        if (longer) {
            dims[0] *= 2;
        } else {
            dims[t->n_dims - 1] += t->n_dims == 1 ? 2 : 1;
        }
        struct cw_buf data = {0};
        cw_buf_add(&data, t->data, (size_t)t->bytes);
        cw_buf_add(&data, t->data, (size_t)t->bytes);
        change_keys_but(NULL);
        mkgguf_tensor(&change_out, name, t->type, (uint32_t)t->n_dims, dims, data.data, data.len);
        change_tensors_but(name);
        cw_buf_free(&data);
        const char *path = change_finish();
        bool rows_of_table = !longer && (strcmp(name, "token_embd.weight") == 0 ||
                                         strcmp(name, "position_embd.weight") == 0);
        if (rows_of_table) { /* padding where nothing else counts its rows */
            struct cw_gguf *g;
            struct cw_model *m;
            struct cw_err err = {0};
            ck_assert_int_eq(cw_gguf_open(&g, path, NULL), CW_OK);
            int rc = cw_model_load(&m, g, NULL, &err);
            ck_assert(rc == CW_OK || strstr(err.text, "'output.weight'") != NULL);
            cw_model_destroy(m);
            cw_gguf_close(g);
        } else {
            load_fails(path, CW_EFORMAT, name);
        }
    }
}
END_TEST

START_TEST(leftover_tensors) {
    float f[64] = {1};
    change_begin("tiny-qwen2-F32.gguf");
    change_keys_but(NULL);
    change_tensors_but(NULL);
    mkgguf_tensor(&change_out, "blk.0.extra", CW_F32, 1, (const uint64_t[]){16}, f, 64);
    mkgguf_tensor(&change_out, "blk.7.attn_q.weight", CW_F32, 1, (const uint64_t[]){16}, f, 64);
    mkgguf_tensor(&change_out, "model.layers.0.x", CW_F32, 1, (const uint64_t[]){16}, f, 64);
    char *notices = notices_of(change_finish());
    ck_assert_ptr_nonnull(strstr(notices, "'blk.0.extra' is not used"));
    ck_assert_ptr_nonnull(strstr(notices, "'blk.7.attn_q.weight' is not used"));
    ck_assert_ptr_nonnull(strstr(notices, "'model.layers.0.x' is not used"));
    free(notices);
    change_begin("tiny-qwen2-F32.gguf");
    change_keys_but(NULL);
    change_tensors_but(NULL);
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof name, "junk.%d", i);
        mkgguf_tensor(&change_out, name, CW_F32, 1, (const uint64_t[]){16}, f, 64);
    }
    notices = notices_of(change_finish());
    ck_assert_ptr_nonnull(strstr(notices, "295 more tensors are not used"));
    ck_assert_uint_lt(strlen(notices), 1000);
    free(notices);
}
END_TEST

/* A bias that the architecture does not ask for is applied all the same. */
START_TEST(unexpected_bias_is_used) {
    float bias[64];
    size_t n;
    for (int i = 0; i < 64; i++) {
        bias[i] = 0.05f * (float)(i - 32);
    }
    float *expected = score_kept("tiny-qwen2-F32.gguf");
    change_begin("tiny-qwen2-F32.gguf");
    change_keys_but(NULL);
    change_tensors_but(NULL);
    mkgguf_tensor(&change_out, "blk.1.attn_output.bias", CW_F32, 1, (const uint64_t[]){64}, bias,
                  256);
    const char *path = change_finish();
    char *notices = notices_of(path);
    ck_assert_str_eq(notices, "");
    float *y = score_file(path, &n);
    ck_assert(nmse(y, expected, n) > 1e-3);
    free(y);
    free(notices);
    free(expected);
}
END_TEST

START_TEST(window_that_is_not_applied) {
    change_begin("tiny-starcoder2-F32.gguf");
    change_keys_but(NULL);
    mkgguf_u32(&change_out, "starcoder2.attention.sliding_window", 16);
    change_tensors_but(NULL);
    char *notices = notices_of(change_finish());
    ck_assert_ptr_nonnull(strstr(notices, "sliding window of 16"));
    free(notices);
}
END_TEST

/* ---- what must not matter ----------------------------------------------------------------------
 */

/* The output matrix: equal to the embeddings, absent, or another. */
START_TEST(tied_embeddings) {
    size_t n, bytes;
    float *tied = score_kept("tiny-llama-tied-F32.gguf");
    for (int other = 0; other < 2; other++) {
        change_begin("tiny-llama-tied-F32.gguf");
        const float *e = values("token_embd.weight", &bytes);
        float *copy = cw_reallocarray(NULL, bytes, sizeof *copy);
        memcpy(copy, e, bytes * sizeof *copy);
        copy[64 * 5 + 3] += (float)other;
        change_keys_but(NULL);
        change_tensors_but(NULL);
        mkgguf_tensor(&change_out, "output.weight", CW_F32, 2, (const uint64_t[]){64, bytes / 64},
                      copy, bytes * sizeof *copy);
        free(copy);
        float *y = score_file(change_finish(), &n);
        ck_assert_int_eq(same_bits(y, tied, n), other == 0);
        free(y);
    }
    free(tied);
}
END_TEST

START_TEST(padded_vocabulary) {
    size_t n_values, n;
    float *expected = score_kept("tiny-llama-tied-F32.gguf");
    change_begin("tiny-llama-tied-F32.gguf");
    const float *e = values("token_embd.weight", &n_values);
    struct cw_buf data = {0};
    cw_buf_add(&data, e, n_values * sizeof *e);
    cw_buf_add(&data, e, 12 * 64 * sizeof *e);
    change_keys_but(NULL);
    change_tensors_but("token_embd.weight");
    mkgguf_tensor(&change_out, "token_embd.weight", CW_F32, 2, (const uint64_t[]){64, 332},
                  data.data, data.len);
    cw_buf_free(&data);
    const char *path = change_finish();
    char *notices = notices_of(path);
    ck_assert_ptr_nonnull(strstr(notices, "320 tokens, the model 332 rows"));
    free(notices);
    float *y = score_file(path, &n);
    ck_assert_uint_eq(n, 332);
    ck_assert(same_bits(y, expected, 320));
    free(y);
    free(expected);
    /* Fewer rows than tokens would be read past their end. */
    change_begin("tiny-llama-tied-F32.gguf");
    e = values("token_embd.weight", &n_values);
    change_keys_but(NULL);
    change_tensors_but("token_embd.weight");
    mkgguf_tensor(&change_out, "token_embd.weight", CW_F32, 2, (const uint64_t[]){64, 256}, e,
                  65536);
    load_fails(change_finish(), CW_EFORMAT, "320 tokens");
}
END_TEST

static void add_whole(struct cw_buf *b, const char *format, int layer, const char *part) {
    char name[96];
    snprintf(name, sizeof name, format, layer, part);
    const struct cw_tensor *t = cw_gguf_tensor(change_source, name);
    ck_assert_ptr_nonnull(t);
    cw_buf_add(b, t->data, (size_t)t->bytes);
}

static bool not_projection(void *arg, struct cw_str name) {
    (void)arg;
    return memmem(name.data, name.len, "attn_q.", 7) == NULL &&
           memmem(name.data, name.len, "attn_k.", 7) == NULL &&
           memmem(name.data, name.len, "attn_v.", 7) == NULL;
}

/* One matrix for queries, keys and values, with its bias, or three. */
START_TEST(fused_projections) {
    size_t n;
    float *expected = score_kept("tiny-qwen2-F32.gguf");
    change_begin("tiny-qwen2-F32.gguf");
    change_keys_but(NULL);
    mkgguf_copy_tensors(&change_out, change_source, not_projection, NULL);
    for (int i = 0; i < 2; i++) {
        static const char *const parts[] = {"q", "k", "v"};
        struct cw_buf w = {0}, b = {0};
        char name[64];
        for (int p = 0; p < 3; p++) {
            add_whole(&w, "blk.%d.attn_%s.weight", i, parts[p]);
            add_whole(&b, "blk.%d.attn_%s.bias", i, parts[p]);
        }
        snprintf(name, sizeof name, "blk.%d.attn_qkv.weight", i);
        mkgguf_tensor(&change_out, name, CW_F32, 2, (const uint64_t[]){64, 128}, w.data, w.len);
        snprintf(name, sizeof name, "blk.%d.attn_qkv.bias", i);
        mkgguf_tensor(&change_out, name, CW_F32, 1, (const uint64_t[]){128}, b.data, b.len);
        cw_buf_free(&w);
        cw_buf_free(&b);
    }
    float *y = score_file(change_finish(), &n);
    ck_assert(same_bits(y, expected, n));
    free(y);
    free(expected);
}
END_TEST

/* Rows of each head in the other rotary order: pair (2i, 2i + 1) to (i, i + half). */
static void add_permuted(const char *name, int n_heads) {
    size_t n;
    const float *w = values(name, &n);
    float *p = cw_reallocarray(NULL, n, sizeof *p);
    for (int h = 0; h < n_heads; h++) {
        for (int i = 0; i < 16; i++) {
            int to = i % 2 * 8 + i / 2;
            memcpy(p + (h * 16 + to) * 64, w + (h * 16 + i) * 64, 64 * sizeof *p);
        }
    }
    mkgguf_tensor(&change_out, name, CW_F32, 2, (const uint64_t[]){64, (uint64_t)n_heads * 16}, p,
                  n * sizeof *p);
    free(p);
}

static bool not_q_or_k(void *arg, struct cw_str name) {
    (void)arg;
    return memmem(name.data, name.len, "attn_q.", 7) == NULL &&
           memmem(name.data, name.len, "attn_k.", 7) == NULL;
}

static void rename_keys(const char *from, const char *to) {
    for (size_t i = 0; i < cw_gguf_n_keys(change_source); i++) {
        const struct cw_gguf_key *k = cw_gguf_key_at(change_source, i);
        size_t n = strlen(from);
        char name[96];
        if (k->name.len > n && memcmp(k->name.data, from, n) == 0 && k->kind != CW_GGUF_ARRAY) {
            snprintf(name, sizeof name, "%s%.*s", to, (int)(k->name.len - n), k->name.data + n);
            mkgguf_scalar(&change_out, name, k->kind, k->data, 4);
        }
    }
}

/* The same network as llama (neighbours turn together) and as qwen2 (halves do). */
START_TEST(rotary_orders) {
    static const float zeros[64];
    size_t n;
    float *expected = score_kept("tiny-llama-tied-F32.gguf");
    for (int permuted = 0; permuted < 2; permuted++) {
        change_begin("tiny-llama-tied-F32.gguf");
        mkgguf_str(&change_out, "general.architecture", "qwen2");
        rename_keys("llama.", "qwen2.");
        mkgguf_copy_tensors(&change_out, change_source, permuted ? not_q_or_k : NULL, NULL);
        for (int i = 0; i < 2; i++) {
            static const char *const parts[] = {"q", "k", "v"};
            for (int p = 0; p < 3; p++) {
                char name[64];
                snprintf(name, sizeof name, "blk.%d.attn_%s.bias", i, parts[p]);
                mkgguf_tensor(&change_out, name, CW_F32, 1, (const uint64_t[]){64}, zeros, 256);
                snprintf(name, sizeof name, "blk.%d.attn_%s.weight", i, parts[p]);
                if (permuted && p < 2) {
                    add_permuted(name, 4);
                }
            }
        }
        float *y = score_file(change_finish(), &n);
        double e = nmse(y, expected, n);
        ck_assert_msg(permuted ? e < 1e-8 : e > 1e-3, "permuted %d: %g", permuted, e);
        free(y);
    }
    free(expected);
}
END_TEST

static bool not_dense(void *arg, struct cw_str name) {
    (void)arg;
    return memmem(name.data, name.len, ".ffn_gate.", 10) == NULL &&
           memmem(name.data, name.len, ".ffn_up.", 8) == NULL &&
           memmem(name.data, name.len, ".ffn_down.", 10) == NULL;
}

/* tiny-llama-tied with three experts a layer, two used: copies of its feed-forward, the last one
 * all zeros if `last_is_zero`; a router of small numbers, or of zeros. */
static const char *with_experts(bool zero_router, bool last_is_zero) {
    change_begin("tiny-llama-tied-F32.gguf");
    change_keys_but(NULL);
    mkgguf_u32(&change_out, "llama.expert_count", 3);
    mkgguf_u32(&change_out, "llama.expert_used_count", 2);
    mkgguf_copy_tensors(&change_out, change_source, not_dense, NULL);
    for (int i = 0; i < 2; i++) {
        static const char *const parts[] = {"gate", "up", "down"};
        float router[3 * 64];
        char name[64];
        for (int k = 0; k < 3 * 64; k++) {
            router[k] = zero_router ? 0.0f : (float)((k * 37 + i * 11) % 29 - 14) * 0.02f;
        }
        snprintf(name, sizeof name, "blk.%d.ffn_gate_inp.weight", i);
        mkgguf_tensor(&change_out, name, CW_F32, 2, (const uint64_t[]){64, 3}, router,
                      sizeof router);
        for (int p = 0; p < 3; p++) {
            struct cw_buf b = {0};
            for (int e = 0; e < 3; e++) {
                add_whole(&b, "blk.%d.ffn_%s.weight", i, parts[p]);
            }
            if (last_is_zero) {
                memset(b.data + b.len / 3 * 2, 0, b.len / 3);
            }
            snprintf(name, sizeof name, "blk.%d.ffn_%s_exps.weight", i, parts[p]);
            mkgguf_tensor(&change_out, name, CW_F32, 3,
                          p < 2 ? (const uint64_t[]){64, 128, 3} : (const uint64_t[]){128, 64, 3},
                          b.data, b.len);
            cw_buf_free(&b);
        }
    }
    return change_finish();
}

/* Experts that are all the same are one feed-forward, whatever the router says; of equal scores the
 * lower index is taken; and where the router decides, it matters. */
START_TEST(experts) {
    size_t n;
    float *expected = score_kept("tiny-llama-tied-F32.gguf");
    float *y = score_file(with_experts(false, false), &n);
    ck_assert_msg(nmse(y, expected, n) < 1e-9, "%g", nmse(y, expected, n));
    free(y);
    y = score_file(with_experts(true, true), &n);
    ck_assert_msg(nmse(y, expected, n) < 1e-9, "%g", nmse(y, expected, n));
    free(y);
    y = score_file(with_experts(false, true), &n);
    ck_assert_msg(nmse(y, expected, n) > 1e-3, "%g", nmse(y, expected, n));
    free(y);
    free(expected);
}
END_TEST

/* ---- rotary scaling ----------------------------------------------------------------------------
 */

/* The frequencies of tiny-llama-tied (base 10000, 16 dimensions) with extra keys. */
static void frequencies(void (*add)(void), double *freq, float *magnitude) {
    struct cw_gguf *g;
    struct cw_model *m;
    struct cw_err err = {0};
    change_begin("tiny-llama-tied-F32.gguf");
    change_keys_but(NULL);
    if (add != NULL) {
        add();
    }
    change_tensors_but(NULL);
    ck_assert_int_eq(cw_gguf_open(&g, change_finish(), NULL), CW_OK);
    ck_assert_msg(cw_model_load(&m, g, NULL, &err) == CW_OK, "%s", err.text);
    cw_rope_frequencies(m, false, 64, freq);
    *magnitude = m->hp.rope.magnitude;
    cw_model_destroy(m);
    cw_gguf_close(g);
}

static void add_linear(void) {
    mkgguf_str(&change_out, "llama.rope.scaling.type", "linear");
    mkgguf_f32(&change_out, "llama.rope.scaling.factor", 4.0f);
}

static void add_old_linear(void) {
    mkgguf_f32(&change_out, "llama.rope.scale_linear", 4.0f);
}

static void add_none(void) {
    mkgguf_str(&change_out, "llama.rope.scaling.type", "none");
    mkgguf_f32(&change_out, "llama.rope.scaling.factor", 4.0f);
}

static void add_zero(void) {
    mkgguf_f32(&change_out, "llama.rope.scaling.factor", 0.0f);
}

static void add_yarn(void) {
    mkgguf_str(&change_out, "llama.rope.scaling.type", "yarn");
    mkgguf_f32(&change_out, "llama.rope.scaling.factor", 8.0f);
    mkgguf_u32(&change_out, "llama.rope.scaling.original_context_length", 2048);
}

static void add_yarn_attn_factor(void) {
    add_yarn();
    mkgguf_f32(&change_out, "llama.rope.scaling.attn_factor", 0.5f);
}

static void add_factors(void) {
    static const float factors[8] = {1, 1, 8, 32, 1, 1, 1, 2};
    mkgguf_tensor(&change_out, "rope_freqs.weight", CW_F32, 1, (const uint64_t[]){8}, factors, 32);
}

static void near(double a, double b) {
    ck_assert_msg(a - b < 1e-9 && b - a < 1e-9, "%.12g is not %.12g", a, b);
}

START_TEST(position_scaling) {
    double plain_freq[8], freq[8];
    float magnitude;
    frequencies(NULL, plain_freq, &magnitude);
    near((double)magnitude, 1.0);
    near(plain_freq[0], 1.0);
    near(plain_freq[4], 0.01); /* 10000^(-8/16) */
    void (*const linear[])(void) = {add_linear, add_old_linear};
    for (int i = 0; i < 2; i++) { /* position 8 turns as far as 2 did */
        frequencies(linear[i], freq, &magnitude);
        for (int k = 0; k < 8; k++) {
            near(8.0 * freq[k], 2.0 * plain_freq[k]);
        }
        near((double)magnitude, 1.0);
    }
    void (*const nothing[])(void) = {add_none, add_zero};
    for (int i = 0; i < 2; i++) {
        frequencies(nothing[i], freq, &magnitude);
        ck_assert_mem_eq(freq, plain_freq, sizeof freq);
        near((double)magnitude, 1.0);
    }
    frequencies(add_yarn, freq, &magnitude);
    near((double)magnitude, (double)(float)(1.0 + 0.1 * 2.0794415416798357)); /* ln 8, once */
    near(freq[0], plain_freq[0]);       /* fast pairs keep their frequency, */
    near(freq[7], plain_freq[7] / 8.0); /* slow ones get all of the factor */
    frequencies(add_yarn_attn_factor, freq, &magnitude);
    near((double)magnitude, (double)(float)(0.5 * (1.0 + 0.1 * 2.0794415416798357)));
    frequencies(add_factors, freq, &magnitude);
    near(freq[2], plain_freq[2] / 8.0);
    near(freq[3], plain_freq[3] / 32.0);
    near(freq[4], plain_freq[4]);
}
END_TEST

START_TEST(wrong_scaling) {
    static const float bad[3][8] = {{1, 1, 0, 1, 1, 1, 1, 1},
                                    {1, 1, -8, 1, 1, 1, 1, 1},
                                    {1, 1, 1, 1, 1, 1, 1, __builtin_nanf("")}};
    for (int i = 0; i < 3; i++) {
        change_begin("tiny-llama-tied-F32.gguf");
        change_keys_but(NULL);
        change_tensors_but(NULL);
        mkgguf_tensor(&change_out, "rope_freqs.weight", CW_F32, 1, (const uint64_t[]){8}, bad[i],
                      32);
        load_fails(change_finish(), CW_EFORMAT, "'rope_freqs.weight'");
    }
    change_begin("tiny-llama-tied-F32.gguf");
    change_keys_but(NULL);
    change_tensors_but(NULL);
    mkgguf_tensor(&change_out, "rope_freqs.weight", CW_F32, 1, (const uint64_t[]){4}, bad[0], 16);
    load_fails(change_finish(), CW_EFORMAT, "'rope_freqs.weight'");
    change_begin("tiny-llama-tied-F32.gguf");
    change_keys_but(NULL);
    mkgguf_str(&change_out, "llama.rope.scaling.type", "spiral");
    change_tensors_but(NULL);
    load_fails(change_finish(), CW_EUNSUP, "'spiral'");
}
END_TEST

/* cos^2 + sin^2 = 1 at every position, and position 0 turns nothing. */
START_TEST(rotary_tables) {
    double freq[4] = {1.0, 0.1, 0.01, 0.001};
    float c[4 * 4], s[4 * 4];
    static const uint32_t at[] = {0, 9000, 1000000};
    for (int k = 0; k < 3; k++) {
        cw_rope_table(freq, 4, 1.0f, at[k], 4, c, s);
        for (int i = 0; i < 16; i++) {
            double one = (double)c[i] * (double)c[i] + (double)s[i] * (double)s[i];
            ck_assert(one > 1.0 - 1e-6 && one < 1.0 + 1e-6);
        }
    }
    cw_rope_table(freq, 4, 0.5f, 0, 1, c, s);
    ck_assert(c[0] == 0.5f && s[0] == 0.0f);
    cw_rope_table(freq, 4, 1.0f, 9000, 1, c, s);
    near((double)c[0], (double)(float)-0.7881785419506256);
}
END_TEST

/* ---- numbers that are none ---------------------------------------------------------------------
 */

/* A block scale that is infinite or no number: evaluated without harm, for the sampler to refuse.
 */
START_TEST(broken_scales) {
    static const uint16_t scales[] = {0x7c00, 0x7e00};
    for (int i = 0; i < 2; i++) {
        change_begin("tiny-tail-Q8_0.gguf");
        const struct cw_tensor *t = cw_gguf_tensor(change_source, "blk.0.ffn_up.weight");
        ck_assert_ptr_nonnull(t);
        struct cw_buf b = {0};
        cw_buf_add(&b, t->data, (size_t)t->bytes);
        memcpy(b.data, &scales[i], 2);
        change_keys_but(NULL);
        change_tensors_but("blk.0.ffn_up.weight");
        mkgguf_tensor(&change_out, "blk.0.ffn_up.weight", CW_Q8_0, 2,
                      (const uint64_t[]){(uint64_t)t->dims[0], (uint64_t)t->dims[1]}, b.data,
                      b.len);
        cw_buf_free(&b);
        size_t n, bad = 0;
        float *y = score_file(change_finish(), &n);
        for (size_t k = 0; k < n; k++) {
            bad += !(y[k] > -1e30f && y[k] < 1e30f);
        }
        ck_assert_uint_gt(bad, 0);
        free(y);
    }
}
END_TEST

/* ---- info --------------------------------------------------------------------------------------
 */

static struct cw_gguf *any;

static struct cw_info *info_of(const char *path) {
    struct cw_err err = {0};
    ck_assert_msg(cw_gguf_open_any(&any, path, &err) == CW_OK, "%s", err.text);
    return cw_info_create(any);
}

static void info_done(struct cw_info *info) {
    cw_info_destroy(info);
    cw_gguf_close(any);
}

START_TEST(info_of_good_files) {
    char *path = model_path(kept[_i]);
    ck_assert_ptr_nonnull(path);
    struct fixture f;
    fixture_open(&f, path, &plain_run);
    const struct cw_model_info *m = cw_model_get_info(f.model);
    struct cw_info *info = info_of(path);
    ck_assert_msg(info->loads, "%s", info->why_not);
    ck_assert(info->arch_supported);
    ck_assert_str_eq(info->why_not, "");
    ck_assert_str_eq(info->model.arch, m->arch);
    ck_assert_str_eq(info->model.quant, m->quant);
    ck_assert_str_eq(info->model.name, "tiny fixture");
    ck_assert_int_eq(info->model.n_layers, m->n_layers);
    ck_assert_int_eq(info->model.n_vocab, m->n_vocab);
    ck_assert_uint_eq(info->model.n_params, m->n_params);
    ck_assert_uint_eq(info->model.kv_bytes_token, m->kv_bytes_token);
    ck_assert_uint_eq(info->n_unused_tensors, 0);
    uint64_t bytes = 0, params = 0;
    size_t n = 0;
    for (size_t i = 0; i < info->n_types; i++) {
        bytes += info->types[i].bytes;
        params += info->types[i].n_params;
        n += info->types[i].n_tensors;
        ck_assert(info->types[i].supported);
        ck_assert(i == 0 || info->types[i].bytes <= info->types[i - 1].bytes);
        for (size_t k = 0; k < i; k++) {
            ck_assert_uint_ne(info->types[i].type, info->types[k].type);
        }
    }
    ck_assert_uint_eq(bytes, m->weight_bytes);
    ck_assert_uint_eq(params, m->n_params);
    ck_assert_uint_eq(n, cw_gguf_n_tensors(any));
    struct cw_info_memory mem;
    ck_assert_int_eq(cw_info_memory(any, 64, CW_KV_F16, 0, &mem, NULL), CW_OK);
    struct cw_session *s = session_open(&f, &plain_run);
    ck_assert_uint_eq(mem.kv + mem.scratch, cw_session_bytes(s));
    ck_assert_uint_eq(mem.total, mem.weights + mem.kv + mem.scratch);
    ck_assert_uint_eq(mem.weights, m->weight_bytes);
    cw_session_destroy(s);
    info_done(info);
    fixture_close(&f);
    free(path);
}
END_TEST

START_TEST(info_names_types) {
    static const struct {
        const char *file, *quant;
        bool exact;
    } cases[] = {{"tiny-mixed-Q4_K_M.gguf", "Q4_K_M", true},
                 {"tiny-llama-Q3_K.gguf", "Q3_K_M", true},
                 {"tiny-tail-Q8_0.gguf", "Q8_0", true},
                 {"tiny-qwen2-F32.gguf", "F32", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *path = model_path(cases[i].file);
        ck_assert_ptr_nonnull(path);
        struct cw_info *info = info_of(path);
        ck_assert_str_eq(info->model.quant, cases[i].quant);
        ck_assert_int_eq(info->model.exact, cases[i].exact);
        info_done(info);
        free(path);
    }
}
END_TEST

START_TEST(info_of_unsupported_files) {
    static const uint8_t data[1024];
    struct cw_info_memory mem;
    /* An architecture that is not in the table: sizes come from its keys. */
    change_begin("tiny-llama-tied-F32.gguf");
    mkgguf_str(&change_out, "general.architecture", "mamba");
    rename_keys("llama.", "mamba.");
    change_tensors_but(NULL);
    struct cw_info *info = info_of(change_finish());
    ck_assert(!info->loads && !info->arch_supported);
    ck_assert_str_eq(info->arch, "mamba");
    ck_assert_ptr_nonnull(strstr(info->why_not, "'mamba' is not supported"));
    ck_assert_int_eq(info->model.n_layers, 2);
    ck_assert_int_eq(info->model.n_embd, 64);
    ck_assert_uint_eq(info->model.n_params, 102720);
    ck_assert_uint_eq(info->model.kv_bytes_token, 2 * 4 * 32 * 2);
    ck_assert_int_eq(cw_info_memory(any, 64, CW_KV_F16, 0, &mem, NULL), CW_EUNSUP);
    info_done(info);
    /* A tensor type that is not. */
    change_begin("tiny-llama-tied-F32.gguf");
    change_keys_but(NULL);
    change_tensors_but("blk.1.ffn_up.weight");
    mkgguf_tensor(&change_out, "blk.1.ffn_up.weight", 16, 2, (const uint64_t[]){64, 128}, data,
                  1024);
    info = info_of(change_finish());
    ck_assert(!info->loads && info->arch_supported);
    ck_assert_ptr_nonnull(strstr(info->why_not, "'blk.1.ffn_up.weight' is of type 16 (IQ2_XXS)"));
    ck_assert_uint_eq(info->n_types, 2);
    ck_assert_str_eq(info->types[1].name, "IQ2_XXS");
    ck_assert(!info->types[1].supported);
    ck_assert_uint_eq(info->types[1].bytes, 1024);
    info_done(info);
    /* Nothing at all. */
    mkgguf_init(&change_out);
    mkgguf_save(&change_out, tmp_path("empty.gguf"));
    info = info_of(tmp_path("empty.gguf"));
    ck_assert(!info->loads);
    ck_assert_str_eq(info->arch, "");
    ck_assert_ptr_nonnull(strstr(info->why_not, "general.architecture"));
    info_done(info);
}
END_TEST

START_TEST(info_lists_what_is_unused) {
    float f[4] = {1};
    struct cw_info_memory mem;
    change_begin("tiny-llama-tied-F32.gguf");
    change_keys_but(NULL);
    mkgguf_u32(&change_out, "llama.attention.secret_sauce", 1);
    mkgguf_str(&change_out, "general.url", "here");
    change_tensors_but(NULL);
    mkgguf_tensor(&change_out, "blk.0.extra", CW_F32, 1, (const uint64_t[]){4}, f, 16);
    struct cw_info *info = info_of(change_finish());
    ck_assert(info->loads);
    bool found = false;
    for (size_t i = 0; i < info->n_unused_keys; i++) {
        found |= cw_str_eq(info->unused_keys[i], "llama.attention.secret_sauce");
        ck_assert(!cw_str_eq(info->unused_keys[i], "general.url"));
        ck_assert(!cw_str_eq(info->unused_keys[i], "llama.block_count"));
    }
    ck_assert(found);
    ck_assert_uint_eq(info->n_unused_tensors, 1);
    ck_assert(cw_str_eq(info->unused_tensors[0], "blk.0.extra"));
    ck_assert_uint_eq(info->n_notices, 2);
    ck_assert_int_eq(cw_info_memory(any, UINT32_MAX, CW_KV_F16, 0, &mem, NULL), CW_ENOMEM);
    ck_assert_int_eq(cw_info_memory(any, 64, CW_KV_Q8_0, 0, &mem, NULL), CW_EUNSUP);
    info_done(info);
}
END_TEST

START_TEST(memory_figures) {
    static const char text[] = "MemTotal:       16000 kB\nMemFree:         100 kB\n"
                               "MemAvailable:    5000 kB\n";
    ck_assert_uint_eq(cw_memory_parse_meminfo(text, "MemTotal"), 16000 * 1024);
    ck_assert_uint_eq(cw_memory_parse_meminfo(text, "MemAvailable"), 5000 * 1024);
    ck_assert_uint_eq(cw_memory_parse_meminfo(text, "Available"), UINT64_MAX);
    ck_assert_uint_eq(cw_memory_parse_meminfo("", "MemTotal"), UINT64_MAX);
    ck_assert_uint_eq(cw_memory_parse_limit("max\n"), UINT64_MAX);
    ck_assert_uint_eq(cw_memory_parse_limit(""), UINT64_MAX);
    ck_assert_uint_eq(cw_memory_parse_limit("1073741824\n"), 1u << 30);
    ck_assert_uint_eq(cw_memory_parse_limit("9223372036854771712\n"), UINT64_MAX);
    ck_assert_uint_eq(cw_memory_parse_limit("12x"), UINT64_MAX);
    struct cw_memory m = cw_memory_read();
    ck_assert_uint_gt(m.total, 0);
    ck_assert_uint_le(m.available, m.total);
}
END_TEST

/* The forward pass knows no architecture by name: names stand in the table alone. */
START_TEST(names_stand_in_the_table_alone) {
    static const char *const dirs[] = {"core/model", "core/compute", "core/chat"};
    const char *root = getenv("CHINWAG_SOURCE_ROOT");
    int n_files = 0;
    for (int d = 0; d < 3; d++) {
        struct cw_buf dir = {0};
        cw_buf_printf(&dir, "%s/%s", root != NULL ? root : ".", dirs[d]);
        DIR *list = opendir(dir.data);
        ck_assert_ptr_nonnull(list);
        for (struct dirent *e; (e = readdir(list)) != NULL;) {
            size_t len = strlen(e->d_name);
            if (len < 3 || strcmp(e->d_name + len - 2, ".c") != 0 ||
                strcmp(e->d_name, "arch.c") == 0) {
                continue;
            }
            struct cw_buf path = {0}, text = {0}, quoted = {0};
            cw_buf_printf(&path, "%s/%s", dir.data, e->d_name);
            FILE *f = fopen(path.data, "re");
            ck_assert_ptr_nonnull(f);
            char block[4096];
            for (size_t got; (got = fread(block, 1, sizeof block, f)) > 0;) {
                cw_buf_add(&text, block, got);
            }
            fclose(f);
            for (size_t i = 0; cw_arch_name(i) != NULL && text.len > 0; i++) {
                cw_buf_clear(&quoted);
                cw_buf_printf(&quoted, "\"%s\"", cw_arch_name(i));
                ck_assert_msg(strstr(text.data, quoted.data) == NULL, "%s names %s", path.data,
                              quoted.data);
            }
            n_files++;
            cw_buf_free(&path);
            cw_buf_free(&text);
            cw_buf_free(&quoted);
        }
        closedir(list);
        cw_buf_free(&dir);
    }
    ck_assert_int_gt(n_files, 10);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("load");
    TCase *c = tcase_create("keys");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, every_kept_model_loads_without_notices, 0, N_KEPT);
    tcase_add_test(c, unsupported_architecture);
    tcase_add_test(c, missing_keys);
    tcase_add_test(c, wrong_keys);
    tcase_add_test(c, keys_of_other_types);
    tcase_add_test(c, window_patterns);
    suite_add_tcase(suite, c);
    c = tcase_create("tensors");
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, missing_tensors, 0, N_KEPT);
    tcase_add_loop_test(c, wrong_shapes, 0, N_KEPT);
    tcase_add_test(c, leftover_tensors);
    tcase_add_test(c, unexpected_bias_is_used);
    tcase_add_test(c, window_that_is_not_applied);
    tcase_add_test(c, broken_scales);
    suite_add_tcase(suite, c);
    c = tcase_create("equalities");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, tied_embeddings);
    tcase_add_test(c, padded_vocabulary);
    tcase_add_test(c, fused_projections);
    tcase_add_test(c, rotary_orders);
    tcase_add_test(c, experts);
    suite_add_tcase(suite, c);
    c = tcase_create("rotary");
    tcase_set_timeout(c, 120);
    tcase_add_test(c, position_scaling);
    tcase_add_test(c, wrong_scaling);
    tcase_add_test(c, rotary_tables);
    suite_add_tcase(suite, c);
    c = tcase_create("info");
    tcase_set_timeout(c, 120);
    tcase_add_loop_test(c, info_of_good_files, 0, N_KEPT);
    tcase_add_test(c, info_names_types);
    tcase_add_test(c, info_of_unsupported_files);
    tcase_add_test(c, info_lists_what_is_unused);
    tcase_add_test(c, memory_figures);
    tcase_add_test(c, names_stand_in_the_table_alone);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
