/* SPDX-License-Identifier: MIT
 *
 * Files as people have them: what is no model, spellings of other converters, and above all what a
 * file holds that no row of the table uses. Whatever would change the answers is used or refused;
 * the rest is told. */
#include "tests/model/fixture.h"

#include "chinwag/info.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float numbers[4096];

static void fill_numbers(void) {
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        numbers[i] = 0.02f * (float)((int)(i * 37 % 101) - 50);
    }
}

/* Logits of the unchanged file. Caller must free. */
static float *score_model(const char *file, size_t *n) {
    char *path = model_path(file);
    ck_assert_ptr_nonnull(path);
    float *y = score_file(path, n);
    free(path);
    return y;
}

/* ---- no model ----------------------------------------------------------------------------------
 */

static void add_one_tensor(void) {
    mkgguf_tensor(&change_out, "some.tensor", CW_F32, 1, (const uint64_t[]){4}, numbers, 16);
}

START_TEST(what_is_no_model) {
    static const struct {
        const char *arch, *type, *says;
    } cases[] = {
        {"llama", "adapter", "is an adapter (LoRA)"},
        {"clip", "mmproj", "mmproj"},
        {"clip", NULL, "'clip' (the vision or audio part of a model, mmproj) is not supported"},
        {"llama", "imatrix", "is an importance matrix"},
        {NULL, "imatrix", "is an importance matrix"},
        {"controlvector", NULL, "control vector"},
        {"bert", "model", "'bert' (an embedding model) is not supported"},
        {"nomic-bert", NULL, "an embedding model"},
        {"llada", NULL, "'llada' (a diffusion language model) is not supported"},
        {"dream", NULL, "a diffusion language model"},
        {"flux", NULL, "an image model"},
        {"LLaMA", NULL, "'LLaMA' is not supported (these are: llama, "},
        {"qwen2moe", NULL, "'qwen2moe' is not supported (these are: llama, "},
        {NULL, NULL, "'general.architecture' is missing"},
        {"llama", "model", "'llama.block_count' is missing"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mkgguf_init(&change_out);
        if (cases[i].arch != NULL) {
            mkgguf_str(&change_out, "general.architecture", cases[i].arch);
        }
        if (cases[i].type != NULL) {
            mkgguf_str(&change_out, "general.type", cases[i].type);
        }
        add_one_tensor();
        const char *path = tmp_path("kind.gguf");
        mkgguf_save(&change_out, path);
        mkgguf_free(&change_out);
        bool format = strstr(cases[i].says, "is missing") != NULL;
        load_fails(path, format ? CW_EFORMAT : CW_EUNSUP, cases[i].says);
        /* And can be described. */
        struct cw_gguf *g;
        ck_assert_int_eq(cw_gguf_open_any(&g, path, NULL), CW_OK);
        struct cw_info *info = cw_info_create(g);
        ck_assert(!info->loads);
        ck_assert_ptr_nonnull(strstr(info->why_not, cases[i].says));
        ck_assert_uint_eq(info->n_unused_tensors, 1);
        cw_info_destroy(info);
        cw_gguf_close(g);
    }
}
END_TEST

START_TEST(a_vocabulary_alone) {
    change_begin("tiny-llama-tied-F32.gguf");
    change_keys_but(NULL);
    load_fails(change_finish(), CW_EUNSUP, "holds no tensors");
}
END_TEST

START_TEST(attention_that_looks_ahead) {
    for (int causal = 0; causal < 2; causal++) {
        change_begin("tiny-llama-tied-F32.gguf");
        change_keys_but(NULL);
        mkgguf_bool(&change_out, "llama.attention.causal", causal != 0);
        change_tensors_but(NULL);
        const char *path = change_finish();
        if (causal) {
            char *notices = notices_of(path);
            ck_assert_str_eq(notices, "");
            free(notices);
        } else {
            load_fails(path, CW_EUNSUP, "'llama.attention.causal' is false");
        }
    }
}
END_TEST

/* ---- tensors that nobody uses ------------------------------------------------------------------
 */

/* Each of these changes what a model says where it belongs to one: refused where it does not. */
START_TEST(tensors_that_would_matter) {
    static const struct {
        const char *file, *name;
    } cases[] = {
        {"tiny-llama-tied-F32.gguf", "blk.0.attn_q_norm.weight"},
        {"tiny-llama-tied-F32.gguf", "blk.1.attn_k_norm.weight"},
        {"tiny-llama-tied-F32.gguf", "blk.0.attn_q.scale"},
        {"tiny-llama-tied-F32.gguf", "blk.1.ffn_down.scale"},
        {"tiny-llama-tied-F32.gguf", "output.scale"},
        {"tiny-llama-tied-F32.gguf", "blk.0.attn_norm.bias"},
        {"tiny-llama-tied-F32.gguf", "output_norm.bias"},
        {"tiny-llama-tied-F32.gguf", "blk.0.post_attention_norm.weight"},
        {"tiny-llama-tied-F32.gguf", "blk.0.attn_sub_norm.weight"},
        {"tiny-llama-tied-F32.gguf", "blk.0.attn_sinks.weight"},
        {"tiny-llama-tied-F32.gguf", "blk.0.ffn_up_shexp.weight"},
        {"tiny-llama-tied-F32.gguf", "blk.0.ffn_gate_inp.weight"},
        {"tiny-llama-tied-F32.gguf", "position_embd.weight"},
        {"tiny-llama-tied-F32.gguf", "token_embd_norm.weight"},
        {"tiny-qwen2-F32.gguf", "blk.0.attn_qkv.bias"},
        {"tiny-gpt2-F32.gguf", "blk.0.ffn_gate.weight"},
        {"tiny-gpt2-F32.gguf", "blk.1.attn_q.bias"},
        {"tiny-olmo2-F32.gguf", "blk.0.attn_norm.weight"},
        {"tiny-gemma-F32.gguf", "blk.0.post_ffw_norm.weight"},
        {"tiny-mixtral-F32.gguf", "blk.1.exp_probs_b.bias"},
        {"tiny-qwen3moe-few-F32.gguf", "blk.0.ffn_gate.weight"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        change_begin(cases[i].file);
        change_keys_but(NULL);
        change_tensors_but(NULL);
        mkgguf_tensor(&change_out, cases[i].name, CW_F32, 1, (const uint64_t[]){16}, numbers, 64);
        const char *path = change_finish();
        load_fails(path, CW_EUNSUP, cases[i].name);
        struct cw_gguf *g;
        ck_assert_int_eq(cw_gguf_open_any(&g, path, NULL), CW_OK);
        struct cw_info *info = cw_info_create(g);
        ck_assert_uint_eq(info->n_unused_tensors, 1);
        ck_assert(cw_str_eq(info->unused_tensors[0], cases[i].name));
        cw_info_destroy(info);
        cw_gguf_close(g);
    }
}
END_TEST

/* And each of these does not: told, and the answers stay what they were. */
START_TEST(tensors_that_do_not_matter) {
    static const char *const names[] = {
        "blk.2.attn_q.weight", /* behind the last layer: predicts more tokens */
        "blk.2.nextn.eh_proj.weight",
        "blk.4294967296.attn_q.weight",
        "blk.0.attn_q.input_scale", /* of quantised activations */
        "blk.0.attn_rot_embd.weight",
        "blk.0.attn_q.weight.lora_a",
        "v.blk.0.attn_q.weight",
        "mm.0.weight",
        "rope_freqs.bias",
        "blk.weight",
        "blk..weight",
    };
    size_t n;
    float *expected = score_model("tiny-llama-tied-F32.gguf", &n);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char line[128];
        change_begin("tiny-llama-tied-F32.gguf");
        change_keys_but(NULL);
        change_tensors_but(NULL);
        mkgguf_tensor(&change_out, names[i], CW_F32, 1, (const uint64_t[]){16}, numbers, 64);
        const char *path = change_finish();
        char *notices = notices_of(path);
        snprintf(line, sizeof line, "tensor '%s' is not used\n", names[i]);
        ck_assert_str_eq(notices, line);
        float *y = score_file(path, &n);
        ck_assert(same_bits(y, expected, n));
        free(y);
        free(notices);
    }
    free(expected);
}
END_TEST

/* Biases, wherever a file has them, and the other factors of the rotation are used: each alone
 * changes the answers and leaves no notice. */
START_TEST(tensors_that_are_used_where_they_need_not_be) {
    static const struct {
        const char *file, *name;
        uint64_t width;
    } cases[] = {
        {"tiny-llama-tied-F32.gguf", "blk.0.attn_q.bias", 64},
        {"tiny-llama-tied-F32.gguf", "blk.0.attn_k.bias", 64},
        {"tiny-llama-tied-F32.gguf", "blk.1.attn_v.bias", 64},
        {"tiny-llama-tied-F32.gguf", "blk.1.attn_output.bias", 64},
        {"tiny-llama-tied-F32.gguf", "blk.0.ffn_gate.bias", 128},
        {"tiny-llama-tied-F32.gguf", "blk.0.ffn_up.bias", 128},
        {"tiny-llama-tied-F32.gguf", "blk.1.ffn_down.bias", 64},
        {"tiny-llama-tied-F32.gguf", "output.bias", 320},
        {"tiny-llama-linear-F32.gguf", "output.bias", 320},
        {"tiny-granite-F32.gguf", "blk.0.attn_q.bias", 64},
        {"tiny-phi3-F32.gguf", "blk.0.attn_qkv.bias", 128},
        {"tiny-phi3-F32.gguf", "blk.0.ffn_up.bias", 256},
        {"tiny-mixtral-F32.gguf", "blk.0.ffn_gate_inp.bias", 4},
        {"tiny-qwen2-F32.gguf", "rope_freqs.weight", 8},
    };
    fill_numbers();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t n;
        float *expected = score_model(cases[i].file, &n);
        float factors[320];
        bool is_factor = strncmp(cases[i].name, "rope", 4) == 0;
        for (size_t k = 0; k < cases[i].width; k++) {
            factors[k] = is_factor ? 1.0f + (float)k : numbers[k];
        }
        change_begin(cases[i].file);
        change_keys_but(NULL);
        change_tensors_but(NULL);
        mkgguf_tensor(&change_out, cases[i].name, CW_F32, 1, (const uint64_t[]){cases[i].width},
                      factors, cases[i].width * sizeof *factors);
        const char *path = change_finish();
        char *notices = notices_of(path);
        ck_assert_str_eq(notices, "");
        float *y = score_file(path, &n);
        ck_assert_msg(nmse(y, expected, n) > 1e-5, "%s, %s: %g", cases[i].file, cases[i].name,
                      nmse(y, expected, n));
        free(y);
        free(notices);
        free(expected);
    }
}
END_TEST

START_TEST(two_kinds_of_rotary_factors) {
    float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    change_begin("tiny-phi3-partial-F32.gguf");
    change_keys_but(NULL);
    change_tensors_but(NULL);
    mkgguf_tensor(&change_out, "rope_freqs.weight", CW_F32, 1, (const uint64_t[]){6}, ones, 24);
    load_fails(change_finish(), CW_EFORMAT, "both rope_freqs and long and short");
}
END_TEST

/* ---- keys that nobody uses ---------------------------------------------------------------------
 */

/* The notices of tiny-llama-tied with one key more. Caller must free. */
static char *notices_with(const char *key, double v) {
    change_begin("tiny-llama-tied-F32.gguf");
    change_keys_but(NULL);
    mkgguf_f32(&change_out, key, (float)v);
    change_tensors_but(NULL);
    return notices_of(change_finish());
}

/* Parameters that would change the arithmetic are told with their values, but not where the value
 * says that there is nothing to change. */
START_TEST(keys_that_would_matter) {
    static const struct {
        const char *name;
        double neutral, other;
    } cases[] = {
        {"attention.scale", 0, 0.5},
        {"attention.clamp_kqv", 0, 8},
        {"attention.max_alibi_bias", 0, 8},
        {"attn_logit_softcapping", 0, 50},
        {"final_logit_softcapping", 0, 30},
        {"embedding_scale", 1, 12},
        {"residual_scale", 1, 0.25},
        {"logit_scale", 1, 16},
        {"pooling_type", 0, 3},
        {"expert_shared_count", 0, 1},
        {"expert_weights_scale", 1, 2.5},
        {"expert_weights_norm", 1, 0},
        {"expert_gating_func", 1, 2},
        {"expert_group_count", 1, 8},
        {"leading_dense_block_count", 0, 1},
        {"nextn_predict_layers", 0, 1},
        {"rope.scaling.yarn_beta_fast", 32, 4},
        {"rope.scaling.yarn_beta_slow", 1, 2},
        {"rope.scaling.yarn_log_multiplier", 0, 0.5},
        {"use_parallel_residual", 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char key[96], line[160];
        snprintf(key, sizeof key, "llama.%s", cases[i].name);
        char *notices = notices_with(key, cases[i].neutral);
        ck_assert_msg(*notices == '\0', "%s", notices);
        free(notices);
        notices = notices_with(key, cases[i].other);
        snprintf(line, sizeof line, "key '%s' (%g) is not used\n", key, cases[i].other);
        ck_assert_str_eq(notices, line);
        free(notices);
    }
}
END_TEST

/* YaRN's own parameters in a file whose architecture does not read them (as elsewhere): told, and
 * the answers stay what they were. */
START_TEST(keys_of_yarn) {
    size_t n;
    float *expected = score_model("tiny-llama-yarn-F32.gguf", &n);
    change_begin("tiny-llama-yarn-F32.gguf");
    change_keys_but(NULL);
    mkgguf_f32(&change_out, "llama.rope.scaling.yarn_beta_fast", 4.0f);
    mkgguf_f32(&change_out, "llama.rope.scaling.yarn_log_multiplier", 0.5f);
    change_tensors_but(NULL);
    const char *path = change_finish();
    char *notices = notices_of(path);
    ck_assert_str_eq(notices, "key 'llama.rope.scaling.yarn_beta_fast' (4) is not used\n"
                              "key 'llama.rope.scaling.yarn_log_multiplier' (0.5) is not used\n");
    float *y = score_file(path, &n);
    ck_assert(same_bits(y, expected, n));
    free(y);
    free(notices);
    free(expected);
}
END_TEST

START_TEST(unknown_keys) {
    static const uint32_t list[2] = {1, 2};
    char *notices = notices_with("llama.vocab_size_of_old", 7);
    ck_assert_str_eq(notices, "key 'llama.vocab_size_of_old' (7) is not used\n");
    free(notices);
    change_begin("tiny-llama-tied-F32.gguf");
    change_keys_but(NULL);
    mkgguf_str(&change_out, "llama.mood", "sunny");
    mkgguf_array(&change_out, "llama.list", CW_GGUF_U32, 2, list, sizeof list);
    mkgguf_bool(&change_out, "llama.flag\x1b[31m", true);
    mkgguf_str(&change_out, "general.mood", "sunny"); /* says nothing about the arithmetic */
    mkgguf_str(&change_out, "llamas.mood", "sunny");  /* nor does another's */
    change_tensors_but(NULL);
    notices = notices_of(change_finish());
    ck_assert_str_eq(notices, "key 'llama.mood' is not used\n"
                              "key 'llama.list' is not used\n"
                              "key 'llama.flag\\x1B[31m' (1) is not used\n");
    free(notices);
    change_begin("tiny-llama-tied-F32.gguf");
    change_keys_but(NULL);
    for (int i = 0; i < 300; i++) {
        char key[32];
        snprintf(key, sizeof key, "llama.junk.%d", i);
        mkgguf_u32(&change_out, key, 1);
    }
    change_tensors_but(NULL);
    notices = notices_of(change_finish());
    ck_assert_ptr_nonnull(strstr(notices, "295 more keys are not used"));
    ck_assert_uint_lt(strlen(notices), 1000);
    free(notices);
}
END_TEST

/* ---- spellings of other converters -------------------------------------------------------------
 */

/* A number a layer, all the same, is that number; others are refused. */
START_TEST(arrays_with_an_entry_a_layer) {
    static const char *const keys[] = {
        "llama.attention.head_count", "llama.attention.head_count_kv", "llama.feed_forward_length"};
    size_t n;
    float *expected = score_model("tiny-llama-tied-F32.gguf", &n);
    for (size_t i = 0; i < 3; i++) {
        uint32_t all[2] = {i == 2 ? 128 : 4, i == 2 ? 128 : 4};
        for (int differ = 0; differ < 3; differ++) {
            change_begin("tiny-llama-tied-F32.gguf");
            change_keys_but(keys[i]);
            all[1] = differ == 1 ? all[0] / 2 : all[0];
            mkgguf_array(&change_out, keys[i], CW_GGUF_U32, differ == 2 ? 0 : 2, all,
                         differ == 2 ? 0 : sizeof all);
            change_tensors_but(NULL);
            const char *path = change_finish();
            if (differ == 0) {
                float *y = score_file(path, &n);
                ck_assert(same_bits(y, expected, n));
                free(y);
            } else if (differ == 1) {
                load_fails(path, CW_EUNSUP, "differs from layer to layer");
            } else {
                load_fails(path, CW_EFORMAT, "is an empty array");
            }
        }
    }
    free(expected);
}
END_TEST

/* The two rotary bases under other names, as some converters write Gemma 3. */
static bool not_a_base(void *arg, struct cw_str name) {
    (void)arg;
    return memmem(name.data, name.len, "rope.freq_base", 14) == NULL;
}

START_TEST(rotary_bases_under_other_names) {
    size_t n;
    float *expected = score_model("tiny-gemma3-F32.gguf", &n);
    for (int other = 0; other < 3; other++) {
        change_begin("tiny-gemma3-F32.gguf");
        mkgguf_copy_keys(&change_out, change_source, not_a_base, NULL);
        mkgguf_f32(&change_out, "gemma3.rope.global.freq_base", other == 1 ? 5e4f : 1e6f);
        mkgguf_f32(&change_out, "gemma3.rope.local.freq_base", other == 2 ? 5e2f : 1e4f);
        change_tensors_but(NULL);
        float *y = score_file(change_finish(), &n);
        ck_assert_int_eq(same_bits(y, expected, n), other == 0);
        free(y);
    }
    free(expected);
}
END_TEST

/* Experts as tensors of their own, as files of 2023 have them. */
START_TEST(experts_one_by_one) {
    size_t n;
    float *expected = score_model("tiny-mixtral-F32.gguf", &n);
    change_begin("tiny-mixtral-F32.gguf");
    change_keys_but(NULL);
    for (size_t i = 0; i < cw_gguf_n_tensors(change_source); i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(change_source, i);
        char name[96];
        const uint64_t dims[2] = {(uint64_t)t->dims[0], (uint64_t)t->dims[1]};
        int head = (int)t->name.len - 12; /* "_exps.weight" */
        if (head < 0 || memcmp(t->name.data + head, "_exps.weight", 12) != 0) {
            snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.data);
            mkgguf_tensor(&change_out, name, t->type, (uint32_t)t->n_dims, dims, t->data,
                          (size_t)t->bytes);
            continue;
        }
        size_t bytes = (size_t)t->bytes / 4;
        for (size_t e = 0; e < 4; e++) {
            snprintf(name, sizeof name, "%.*s.%zu.weight", head, t->name.data, e);
            mkgguf_tensor(&change_out, name, t->type, 2, dims, t->data + e * bytes, bytes);
        }
    }
    const char *path = change_finish();
    char *notices = notices_of(path);
    ck_assert_str_eq(notices, "");
    float *y = score_file(path, &n);
    ck_assert(same_bits(y, expected, n));
    free(y);
    free(notices);
    free(expected);
}
END_TEST

/* ---- info --------------------------------------------------------------------------------------
 */

START_TEST(memory_of_a_context) {
    static const char *const files[] = {"tiny-llama-Q4_0.gguf", "tiny-gemma3-F32.gguf",
                                        "tiny-qwen3moe-few-F32.gguf", "tiny-mixtral-F32.gguf"};
    static const uint32_t sizes[] = {0, 1, 256, 257, 3000};
    for (size_t i = 0; i < 4 * 5 * 2; i++) {
        enum cw_kv_type kv = i % 2 != 0 ? CW_KV_Q8_0 : CW_KV_F16;
        struct run_options o = plain_run;
        struct cw_info_memory need;
        struct cw_err err;
        struct fixture f;
        o.kv = kv;
        o.n_ctx = sizes[i / 2 % 5];
        char *path = model_path(files[i / 10]);
        ck_assert_ptr_nonnull(path);
        fixture_open(&f, path, &o);
        if (cw_info_memory(f.gguf, o.n_ctx, kv, 0, &need, &err) == CW_OK) {
            struct cw_session *s = session_open(&f, &o);
            ck_assert_uint_eq(need.n_ctx, cw_session_n_ctx(s));
            ck_assert_uint_eq(need.total - need.weights, cw_session_bytes(s));
            ck_assert_str_eq(need.n_ctx_reason,
                             o.n_ctx != 0 ? "given" : cw_session_n_ctx_reason(s));
            cw_session_destroy(s);
        } else { /* heads of 16 are no whole blocks */
            ck_assert_int_eq(err.code, CW_EUNSUP);
            ck_assert_int_eq(kv, CW_KV_Q8_0);
        }
        fixture_close(&f);
        free(path);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("wild");
    TCase *c = tcase_create("files");
    tcase_set_timeout(c, 300);
    tcase_add_test(c, what_is_no_model);
    tcase_add_test(c, a_vocabulary_alone);
    tcase_add_test(c, attention_that_looks_ahead);
    tcase_add_test(c, tensors_that_would_matter);
    tcase_add_test(c, tensors_that_do_not_matter);
    tcase_add_test(c, tensors_that_are_used_where_they_need_not_be);
    tcase_add_test(c, two_kinds_of_rotary_factors);
    tcase_add_test(c, keys_that_would_matter);
    tcase_add_test(c, keys_of_yarn);
    tcase_add_test(c, unknown_keys);
    tcase_add_test(c, arrays_with_an_entry_a_layer);
    tcase_add_test(c, rotary_bases_under_other_names);
    tcase_add_test(c, experts_one_by_one);
    tcase_add_test(c, memory_of_a_context);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
