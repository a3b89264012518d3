/* SPDX-License-Identifier: MIT
 *
 * What holds where a file is silent: each key that may be absent, and what
 * stands in its place; each one that may not, where another says that it is
 * needed; and the models whose size alone says that they differ. Defaults are
 * those of the published models. */
#include "tests/model/fixture.h"
#include "tests/support/mkgguf.h"

#include "core/model/internal.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cw_gguf *file;

/* Keep keys that are none of two; NULL is none. */
static bool not_among(void *arg, struct cw_str name) {
    const char *const *names = arg;
    return !(names[0] != NULL && cw_str_eq(name, names[0])) &&
           !(names[1] != NULL && cw_str_eq(name, names[1]));
}

static void copy_keys_without(const char *a, const char *b) {
    const char *names[] = {a, b};
    mkgguf_copy_keys(&change_out, change_source, not_among, (void *)names);
}

/* The model without one key, bound and not run. */

static struct cw_model *without(const char *model, const char *key) {
    struct cw_model *m;
    struct cw_err err = {0};
    change_begin(model);
    change_keys_but(key);
    change_tensors_but(NULL);
    ck_assert_int_eq(cw_gguf_open(&file, change_finish(), NULL), CW_OK);
    ck_assert_msg(cw_model_bind(&m, file, &err) == CW_OK, "%s without %s: %s", model, key,
                  err.text);
    return m;
}

static void done(struct cw_model *m) {
    cw_model_destroy(m);
    cw_gguf_close(file);
}

static void near(const char *what, double a, double b) {
    ck_assert_msg(fabs(a - b) <= 1e-6 * fabs(b), "%s: %.9g, not %.9g", what, a, b);
}

static double base(const struct cw_hparams *hp) {
    return hp->rope.base;
}
static double local_base(const struct cw_hparams *hp) {
    return hp->rope_local.base;
}
static double freq_scale(const struct cw_hparams *hp) {
    return hp->rope.freq_scale;
}
static double magnitude(const struct cw_hparams *hp) {
    return (double)hp->rope.magnitude;
}
static double beta_fast(const struct cw_hparams *hp) {
    return hp->rope.beta_fast;
}
static double beta_slow(const struct cw_hparams *hp) {
    return hp->rope.beta_slow;
}
static double n_rot(const struct cw_hparams *hp) {
    return hp->n_rot;
}
static double n_ctx_train(const struct cw_hparams *hp) {
    return hp->n_ctx_train;
}
static double n_kv_heads(const struct cw_hparams *hp) {
    return hp->n_kv_heads;
}
static double head_k(const struct cw_hparams *hp) {
    return hp->head_k;
}
static double head_v(const struct cw_hparams *hp) {
    return hp->head_v;
}
static double window(const struct cw_hparams *hp) {
    return hp->window;
}
static double softcap_attn(const struct cw_hparams *hp) {
    return (double)hp->softcap_attn;
}
static double softcap_out(const struct cw_hparams *hp) {
    return (double)hp->softcap_out;
}
static double embd_scale(const struct cw_hparams *hp) {
    return (double)hp->embd_scale;
}
static double residual_scale(const struct cw_hparams *hp) {
    return (double)hp->residual_scale;
}
static double attn_scale(const struct cw_hparams *hp) {
    return (double)hp->attn_scale;
}
static double logit_scale(const struct cw_hparams *hp) {
    return (double)hp->logit_scale;
}
static double temperature_scale(const struct cw_hparams *hp) {
    return (double)hp->temperature_scale;
}
static double n_ff_expert(const struct cw_hparams *hp) {
    return hp->n_ff_expert;
}

static const struct {
    const char *model, *key;
    double (*of)(const struct cw_hparams *hp);
    double value; /* without the key */
} rows[] = {
    {"tiny-qwen2-F32.gguf", "qwen2.rope.freq_base", base, 10000},
    {"tiny-starcoder2-F32.gguf", "starcoder2.rope.freq_base", base, 10000},
    {"tiny-smollm3-F32.gguf", "smollm3.rope.freq_base", base, 10000},
    {"tiny-gptneox-F32.gguf", "gptneox.rope.dimension_count", n_rot, 16},
    {"tiny-llama-tied-F32.gguf", "llama.context_length", n_ctx_train, 0},
    {"tiny-gpt2-F32.gguf", "gpt2.attention.head_count_kv", n_kv_heads, 4},
    {"tiny-llama-tied-F32.gguf", "llama.attention.key_length", head_k, 16},
    {"tiny-llama-tied-F32.gguf", "llama.attention.value_length", head_v, 16},
    {"tiny-llama-tied-F32.gguf", "llama.rope.scaling.factor", freq_scale, 1},
    {"tiny-llama-linear-F32.gguf", "llama.rope.scaling.type", freq_scale, 0.25},
    {"tiny-llama-linear-F32.gguf", "llama.rope.scaling.factor", freq_scale, 1},
    {"tiny-phi3-partial-F32.gguf", "phi3.rope.scaling.attn_factor", magnitude, 1},
    {"tiny-mistral3-F32.gguf", "mistral3.rope.scaling.yarn_beta_fast", beta_fast, 32},
    {"tiny-mistral3-F32.gguf", "mistral3.rope.scaling.yarn_beta_slow", beta_slow, 1},
    /* 1 + 0.1 ln 8 */
    {"tiny-mistral3-F32.gguf", "mistral3.rope.scaling.yarn_log_multiplier", magnitude,
     1.2079441542},
    {"tiny-mistral3-F32.gguf", "mistral3.attention.temperature_scale", temperature_scale, 0},
    {"tiny-gemma2-F32.gguf", "gemma2.attention.sliding_window", window, 4096},
    {"tiny-gemma2-F32.gguf", "gemma2.attn_logit_softcapping", softcap_attn, 50},
    {"tiny-gemma2-F32.gguf", "gemma2.final_logit_softcapping", softcap_out, 30},
    {"tiny-gemma2-F32.gguf", NULL, embd_scale, 8}, /* sqrt(64) */
    {"tiny-gemma3-F32.gguf", "gemma3.attention.sliding_window", window, 0},
    {"tiny-gemma3-F32.gguf", "gemma3.rope.freq_base_swa", local_base, 10000},
    {"tiny-gemma3-F32.gguf", "gemma3.final_logit_softcapping", softcap_out, 0},
    {"tiny-olmo2-window-F32.gguf", "olmo2.attention.sliding_window", window, 0},
    {"tiny-gpt-oss-MXFP4.gguf", "gpt-oss.attention.sliding_window", window, 0},
    {"tiny-gpt-oss-MXFP4.gguf", "gpt-oss.feed_forward_length", n_ff_expert, 64},
    {"tiny-granite-F32.gguf", "granite.embedding_scale", embd_scale, 1},
    {"tiny-granite-F32.gguf", "granite.residual_scale", residual_scale, 1},
    {"tiny-granite-F32.gguf", "granite.attention.scale", attn_scale, 0.25}, /* 1 / sqrt(16) */
    {"tiny-granite-F32.gguf", "granite.logit_scale", logit_scale, 1},
    {"tiny-granite-F32.gguf", NULL, logit_scale, 1 / 0.7}, /* it divides */
};
enum { N_ROWS = sizeof rows / sizeof *rows };

START_TEST(keys_that_may_be_absent) {
    struct cw_model *m = without(rows[_i].model, rows[_i].key);
    near(rows[_i].key != NULL ? rows[_i].key : rows[_i].model, rows[_i].of(&m->hp), rows[_i].value);
    done(m);
}
END_TEST

/* A scale of 0 means none. */
START_TEST(scales_of_zero) {
    static const struct {
        const char *key;
        double (*of)(const struct cw_hparams *hp);
        double value;
    } zeros[] = {{"granite.embedding_scale", embd_scale, 1},
                 {"granite.residual_scale", residual_scale, 1},
                 {"granite.attention.scale", attn_scale, 0.25},
                 {"granite.logit_scale", logit_scale, 1}};
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        struct cw_model *m;
        struct cw_err err = {0};
        change_begin("tiny-granite-F32.gguf");
        change_keys_but(zeros[i].key);
        mkgguf_f32(&change_out, zeros[i].key, 0.0f);
        change_tensors_but(NULL);
        ck_assert_int_eq(cw_gguf_open(&file, change_finish(), NULL), CW_OK);
        ck_assert_msg(cw_model_bind(&m, file, &err) == CW_OK, "%s", err.text);
        near(zeros[i].key, zeros[i].of(&m->hp), zeros[i].value);
        done(m);
    }
}
END_TEST

/* Copies of `model` with n layers, the tensors of each those of one it has. */
static struct cw_model *of_layers(const char *model, const char *arch, int n, const char *but) {
    struct cw_model *m;
    struct cw_err err = {0};
    char key[64];
    int has = 0;
    snprintf(key, sizeof key, "%s.block_count", arch);
    change_begin(model);
    uint32_t count;
    ck_assert_int_eq(cw_gguf_u32(change_source, key, &count, NULL), CW_OK);
    copy_keys_without(key, but);
    mkgguf_u32(&change_out, key, (uint32_t)n);
    for (int layer = -1; layer < n; layer++) {
        char prefix[32];
        int prefix_len = snprintf(prefix, sizeof prefix, "blk.%d.", layer % (int)count);
        for (size_t i = 0; i < cw_gguf_n_tensors(change_source); i++) {
            const struct cw_tensor *t = cw_gguf_tensor_at(change_source, i);
            bool of_a_layer = memcmp(t->name.data, "blk.", 4) == 0;
            bool mine =
                layer < 0 ? !of_a_layer : memcmp(t->name.data, prefix, (size_t)prefix_len) == 0;
            char name[96];
            if (mine && layer < 0) {
                snprintf(name, sizeof name, "%.*s", (int)t->name.len, t->name.data);
            } else if (mine) {
                snprintf(name, sizeof name, "blk.%d.%.*s", layer, (int)t->name.len - prefix_len,
                         t->name.data + prefix_len);
                has++;
            }
            if (mine) {
                uint64_t dims[4] = {(uint64_t)t->dims[0], (uint64_t)t->dims[1],
                                    (uint64_t)t->dims[2], (uint64_t)t->dims[3]};
                mkgguf_tensor(&change_out, name, t->type, (uint32_t)t->n_dims, dims, t->data,
                              (size_t)t->bytes);
            }
        }
    }
    ck_assert_int_ge(has, 5 * n);
    ck_assert_int_eq(cw_gguf_open(&file, change_finish(), NULL), CW_OK);
    ck_assert_msg(cw_model_bind(&m, file, &err) == CW_OK, "%s", err.text);
    ck_assert_int_eq(m->hp.n_layers, n);
    return m;
}

/* Gemma's 27B models scale scores by their width a head, 64 / 4 here, not by
 * the head's own, 32. */
START_TEST(sizes_that_differ) {
    static const struct {
        const char *model, *arch;
        int n_layers;
        double n;
    } sizes[] = {
        {"tiny-gemma2-F32.gguf", "gemma2", 46, 16}, {"tiny-gemma2-F32.gguf", "gemma2", 42, 32},
        {"tiny-gemma2-F32.gguf", "gemma2", 26, 32}, {"tiny-gemma3-F32.gguf", "gemma3", 62, 16},
        {"tiny-gemma3-F32.gguf", "gemma3", 48, 32}, {"tiny-gemma3-F32.gguf", "gemma3", 34, 32},
        {"tiny-gemma-F32.gguf", "gemma", 46, 32}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct cw_model *m = of_layers(sizes[i].model, sizes[i].arch, sizes[i].n_layers, NULL);
        near(sizes[i].arch, (double)m->hp.attn_scale, 1 / sqrt(sizes[i].n));
        done(m);
    }
}
END_TEST

/* Which layers have a window where the file does not say, and which do not
 * turn. */
START_TEST(patterns_of_layers) {
    static const struct {
        const char *model, *arch, *but, *local; /* a letter a layer: l has a window */
    } patterns[] = {
        {"tiny-gemma2-F32.gguf", "gemma2", NULL, "lglglglg"},
        {"tiny-gemma3-F32.gguf", "gemma3", "gemma3.attention.sliding_window_pattern",
         "lllllglllllgl"},
        {"tiny-gemma3-F32.gguf", "gemma3", NULL, "lglgl"}, /* it says 2 */
        {"tiny-olmo2-window-F32.gguf", "olmo2", "olmo2.attention.sliding_window_pattern",
         "lllglllgl"},
        {"tiny-gpt-oss-MXFP4.gguf", "gpt-oss", NULL, "lglgl"},
        {"tiny-qwen2-F32.gguf", "qwen2", NULL, "ggggg"},
    };
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        int n = (int)strlen(patterns[i].local);
        struct cw_model *m = of_layers(patterns[i].model, patterns[i].arch, n, patterns[i].but);
        for (int k = 0; k < n; k++) {
            ck_assert_msg(m->layers[k].local == (patterns[i].local[k] == 'l'), "%s, layer %d",
                          patterns[i].arch, k);
            ck_assert(m->layers[k].rotates);
        }
        done(m);
    }
    struct cw_model *m = of_layers("tiny-smollm3-F32.gguf", "smollm3", 9, NULL);
    for (int k = 0; k < 9; k++) {
        ck_assert_int_eq(m->layers[k].rotates, k != 3 && k != 7);
    }
    done(m);
}
END_TEST

/* Granite's conversions switch the rotation off by a key; to others it says
 * nothing. */
START_TEST(a_rotation_switched_off) {
    static const struct {
        const char *model, *key;
        bool value, rotates;
    } cases[] = {
        {"tiny-granite-F32.gguf", "granite.rope.scaling.finetuned", true, true},
        {"tiny-granite-F32.gguf", "granite.rope.scaling.finetuned", false, false},
        {"tiny-qwen2-F32.gguf", "qwen2.rope.scaling.finetuned", false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cw_model *m;
        struct cw_err err = {0};
        change_begin(cases[i].model);
        change_keys_but(NULL);
        mkgguf_bool(&change_out, cases[i].key, cases[i].value);
        change_tensors_but(NULL);
        ck_assert_int_eq(cw_gguf_open(&file, change_finish(), NULL), CW_OK);
        ck_assert_msg(cw_model_bind(&m, file, &err) == CW_OK, "%s", err.text);
        for (int k = 0; k < m->hp.n_layers; k++) {
            ck_assert_int_eq(m->layers[k].rotates, cases[i].rotates);
        }
        done(m);
    }
    change_begin("tiny-granite-F32.gguf");
    change_keys_but(NULL);
    mkgguf_u32(&change_out, "granite.rope.scaling.finetuned", 0);
    change_tensors_but(NULL);
    load_fails(change_finish(), CW_EFORMAT, "granite.rope.scaling.finetuned");
}
END_TEST

/* The scalings that a file may name; any other is refused by its name. */
START_TEST(names_of_scalings) {
    static const struct {
        const char *type;
        double freq_scale; /* with a factor of 4; 0: refused */
        bool yarn;
    } types[] = {
        {"none", 1, false},   {"linear", 0.25, false}, {"longrope", 0.25, false},
        {"yarn", 0.25, true}, {"llama3", 0, false},    {"dynamic", 0, false},
        {"su", 0, false},     {"Linear", 0, false},    {"", 0, false},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct cw_model *m;
        struct cw_err err = {0};
        change_begin("tiny-llama-tied-F32.gguf");
        change_keys_but(NULL);
        mkgguf_str(&change_out, "llama.rope.scaling.type", types[i].type);
        mkgguf_f32(&change_out, "llama.rope.scaling.factor", 4.0f);
        change_tensors_but(NULL);
        ck_assert_int_eq(cw_gguf_open(&file, change_finish(), NULL), CW_OK);
        int rc = cw_model_bind(&m, file, &err);
        if (types[i].freq_scale == 0) {
            ck_assert_int_eq(rc, CW_EUNSUP);
            ck_assert_ptr_nonnull(strstr(err.text, "llama.rope.scaling.type"));
            ck_assert_ptr_nonnull(strstr(err.text, types[i].type));
        } else {
            ck_assert_msg(rc == CW_OK, "%s: %s", types[i].type, err.text);
            near(types[i].type, m->hp.rope.freq_scale, types[i].freq_scale);
            ck_assert_int_eq(m->hp.rope.yarn, types[i].yarn);
        }
        done(m);
    }
    /* A factor below 1 stretches nothing, so that it lowers no magnitude. */
    struct cw_model *m;
    struct cw_err err = {0};
    change_begin("tiny-llama-yarn-F32.gguf");
    change_keys_but("llama.rope.scaling.factor");
    mkgguf_f32(&change_out, "llama.rope.scaling.factor", 0.5f);
    change_tensors_but(NULL);
    ck_assert_int_eq(cw_gguf_open(&file, change_finish(), NULL), CW_OK);
    ck_assert_msg(cw_model_bind(&m, file, &err) == CW_OK, "%s", err.text);
    near("a factor of 1/2", (double)m->hp.rope.magnitude, 1);
    done(m);
}
END_TEST

/* LongRoPE has one set of factors for contexts of up to the original length, another beyond. */
START_TEST(factors_at_the_border) {
    struct cw_model *m = without("tiny-phi3-partial-F32.gguf", NULL);
    double least[8] = {0}, last[8] = {0}, beyond[8] = {0};
    ck_assert_int_le(m->hp.n_rot / 2, 8);
    cw_rope_frequencies(m, false, 1, least);
    cw_rope_frequencies(m, false, m->hp.n_ctx_orig, last);
    cw_rope_frequencies(m, false, m->hp.n_ctx_orig + 1, beyond);
    ck_assert_mem_eq(last, least, sizeof last);
    ck_assert_mem_ne(last, beyond, sizeof last);
    near("a frequency by its short factor", least[1] * (double)m->rope_short[1],
         beyond[1] * (double)m->rope_long[1]);
    done(m);
}
END_TEST

/* Keys that are needed because of what others say, and numbers that need
 * others. */
START_TEST(keys_that_may_not_be_absent) {
    static const struct {
        const char *model, *without, *key; /* the one left out, the one set to `value` */
        double value;                      /* below 0 or with a fraction a float */
        const char *says;
    } cases[] = {
        {"tiny-gpt-oss-MXFP4.gguf", NULL, "gpt-oss.expert_used_count", 5,
         "gpt-oss.expert_used_count"},
        {"tiny-gpt-oss-MXFP4.gguf", NULL, "gpt-oss.expert_used_count", 0,
         "gpt-oss.expert_used_count"},
        {"tiny-gpt-oss-MXFP4.gguf", NULL, "gpt-oss.expert_count", 0, "gpt-oss.expert_count"},
        {"tiny-qwen2-F32.gguf", NULL, "qwen2.expert_count", 4,
         "experts are not supported in qwen2"},
        {"tiny-gemma-F32.gguf", NULL, "gemma.expert_count", 4,
         "experts are not supported in gemma"},
        {"tiny-llama-yarn-F32.gguf", NULL, "llama.rope.scaling.original_context_length", 0,
         "llama.rope.scaling.original_context_length"},
        {"tiny-llama-yarn-F32.gguf", NULL, "llama.rope.freq_base", 1, "llama.rope.freq_base"},
        {"tiny-olmo2-window-F32.gguf", NULL, "olmo2.rope.freq_base", 1, "olmo2.rope.freq_base"},
        {"tiny-mistral3-F32.gguf", NULL, "mistral3.rope.scaling.original_context_length", 0,
         "mistral3.rope.scaling.original_context_length"},
        {"tiny-mistral3-F32.gguf", "mistral3.rope.scaling.type",
         "mistral3.rope.scaling.original_context_length", 0,
         "mistral3.rope.scaling.original_context_length"},
        {"tiny-phi3-partial-F32.gguf", "phi3.context_length",
         "phi3.rope.scaling.original_context_length", 0, "original_context_length"},
        {"tiny-gptneox-F32.gguf", "gptneox.use_parallel_residual", NULL, 0,
         "gptneox.use_parallel_residual"},
        {"tiny-llama-tied-F32.gguf", NULL, "llama.rope.scaling.factor", -1,
         "llama.rope.scaling.factor"},
        {"tiny-llama-tied-F32.gguf", NULL, "llama.rope.scale_linear", -1,
         "llama.rope.scale_linear"},
        {"tiny-llama-tied-F32.gguf", NULL, "llama.rope.scaling.factor", 0.03125,
         "llama.rope.scaling.factor"},
        {"tiny-llama-tied-F32.gguf", NULL, "llama.attention.layer_norm_rms_epsilon", -1,
         "llama.attention.layer_norm_rms_epsilon"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cw_gguf *g;
        struct cw_model *m;
        struct cw_err err = {0};
        double v = cases[i].value;
        change_begin(cases[i].model);
        copy_keys_without(cases[i].without, cases[i].key);
        if (cases[i].key != NULL && v >= 0 && v == floor(v)) {
            mkgguf_u32(&change_out, cases[i].key, (uint32_t)v);
        } else if (cases[i].key != NULL) {
            mkgguf_f32(&change_out, cases[i].key, (float)v);
        }
        change_tensors_but(NULL);
        ck_assert_int_eq(cw_gguf_open(&g, change_finish(), NULL), CW_OK);
        ck_assert_msg(cw_model_load(&m, g, NULL, &err) != CW_OK, "%s loads",
                      cases[i].key != NULL ? cases[i].key : cases[i].without);
        ck_assert_msg(strstr(err.text, cases[i].says) != NULL, "'%s' does not say '%s'", err.text,
                      cases[i].says);
        cw_gguf_close(g);
    }
}
END_TEST

/* As many and as wide heads as each key allows by itself are too much together.
 */
START_TEST(heads_too_wide) {
    static const char *const widths[] = {"llama.attention.key_length",
                                         "llama.attention.value_length"};
    for (int i = 0; i < 2; i++) {
        change_begin("tiny-llama-tied-F32.gguf");
        copy_keys_without("llama.attention.head_count", "llama.attention.head_count_kv");
        mkgguf_u32(&change_out, "llama.attention.head_count", 65536);
        mkgguf_u32(&change_out, widths[i], 65536);
        mkgguf_u32(&change_out, widths[!i], 16);
        change_tensors_but(NULL);
        load_fails(change_finish(), CW_EFORMAT, "65536 heads of 65536 are too wide");
    }
}
END_TEST

/* A tensor of four dimensions is none of two, however its first ones look. */
START_TEST(a_fourth_dimension) {
    static const char *const names[] = {"token_embd.weight", "blk.0.attn_q.weight",
                                        "blk.1.ffn_down.weight", "output_norm.weight"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct cw_buf data = {0};
        change_begin("tiny-llama-tied-F32.gguf");
        const struct cw_tensor *t = cw_gguf_tensor(change_source, names[i]);
        ck_assert_ptr_nonnull(t);
        const uint64_t dims[4] = {(uint64_t)t->dims[0], (uint64_t)t->dims[1], 1, 2};
        cw_buf_add(&data, t->data, (size_t)t->bytes);
        cw_buf_add(&data, t->data, (size_t)t->bytes);
        change_keys_but(NULL);
        change_tensors_but(names[i]);
        mkgguf_tensor(&change_out, names[i], t->type, 4, dims, data.data, data.len);
        cw_buf_free(&data);
        load_fails(change_finish(), CW_EFORMAT, names[i]);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("defaults");
    TCase *c = tcase_create("defaults");
    tcase_set_timeout(c, 300);
    tcase_add_loop_test(c, keys_that_may_be_absent, 0, N_ROWS);
    tcase_add_test(c, scales_of_zero);
    tcase_add_test(c, sizes_that_differ);
    tcase_add_test(c, patterns_of_layers);
    tcase_add_test(c, a_rotation_switched_off);
    tcase_add_test(c, names_of_scalings);
    tcase_add_test(c, factors_at_the_border);
    tcase_add_test(c, keys_that_may_not_be_absent);
    tcase_add_test(c, heads_too_wide);
    tcase_add_test(c, a_fourth_dimension);
    suite_add_tcase(suite, c);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
