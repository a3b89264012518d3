/* SPDX-License-Identifier: MIT
 *
 * What holds for every architecture, every tensor, every key and every block format of the models
 * in the tree, whatever their names: nothing of a file is passed over in silence, nothing wrong in
 * it is believed. Each wrong file is a good one with one thing changed. */
#include "tests/model/fixture.h"
#include "tests/support/mkgguf.h"

#include "core/model/internal.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const models[] = {
    "tiny-llama-tied-F32.gguf",   "tiny-llama-yarn-F32.gguf",      "tiny-gpt2-F32.gguf",
    "tiny-qwen2-F32.gguf",        "tiny-qwen3-F32.gguf",           "tiny-qwen3moe-few-F32.gguf",
    "tiny-gemma-F32.gguf",        "tiny-gemma2-F32.gguf",          "tiny-gemma3-F32.gguf",
    "tiny-phi3-partial-F32.gguf", "tiny-smollm3-F32.gguf",         "tiny-olmo2-window-F32.gguf",
    "tiny-granite-F32.gguf",      "tiny-starcoder2-F32.gguf",      "tiny-gptneox-F32.gguf",
    "tiny-mistral3-F32.gguf",     "tiny-gpt-oss-MXFP4.gguf",       "tiny-tail-Q8_0.gguf",
    "tiny-llama-linear-F32.gguf", "tiny-llama-ropefreqs-F32.gguf", "tiny-mixed-Q4_K_M.gguf",
    "tiny-mixtral-F32.gguf",      "tiny-gptneox-seq-F32.gguf",     "tiny-olmo2-F32.gguf",
    "tiny-phi3-F32.gguf",
};
enum { N_MODELS = sizeof models / sizeof *models };

/* Ids evaluated: past the windows of 16; or few, of which one is the first of the vocabulary. */
enum { MANY = 24, FEW = 5 };

/* ---- one model, changed ------------------------------------------------------------------------
 */

static struct cw_gguf *source;
static struct mkgguf out;

/* False, after a line, where the model is not here. */
static bool open_source(const char *file) {
    char *path = model_path(file);
    if (path == NULL) {
        return false;
    }
    ck_assert_int_eq(cw_gguf_open(&source, path, NULL), CW_OK);
    free(path);
    return true;
}

static const char *save(void) {
    const char *path = tmp_path("changed.gguf");
    mkgguf_save(&out, path);
    mkgguf_free(&out);
    return path;
}

static bool not_named(void *arg, struct cw_str name) {
    return !cw_str_eq(name, arg);
}

static char *text_of(struct cw_str s) {
    return cw_strndup(s.data, s.len);
}

/* A copy of the source in which the tensor has these bytes. */
static const char *with_tensor(const struct cw_tensor *t, const void *data) {
    char *name = text_of(t->name);
    uint64_t dims[4];
    for (int d = 0; d < 4; d++) {
        dims[d] = (uint64_t)t->dims[d];
    }
    mkgguf_init(&out);
    mkgguf_copy_keys(&out, source, NULL, NULL);
    mkgguf_copy_tensors(&out, source, not_named, name);
    mkgguf_tensor(&out, name, t->type, (uint32_t)t->n_dims, dims, data, (size_t)t->bytes);
    free(name);
    return save();
}

/* A copy of the source in which the key has this value. */
static const char *with_key(const char *name, uint32_t kind, const void *value, size_t bytes) {
    mkgguf_init(&out);
    mkgguf_copy_keys(&out, source, not_named, (void *)(uintptr_t)name);
    mkgguf_scalar(&out, name, kind, value, bytes);
    mkgguf_copy_tensors(&out, source, NULL, NULL);
    return save();
}

/* What loading the file and evaluating fixed ids gives: the logits, or NULL and the error. */
static float *try_score(const char *path, uint32_t n_ctx, size_t n_ids, enum cw_isa isa,
                        size_t *n_vocab, struct cw_err *err) {
    const struct cw_model_options opt = {.n_threads = 1, .isa = isa, .exact = true};
    const struct cw_session_options session_opt = {.n_ctx = n_ctx};
    struct cw_gguf *g;
    struct cw_model *m = NULL;
    struct cw_session *s = NULL;
    float *y = NULL;
    int32_t ids[MANY];
    ck_assert_msg(cw_gguf_open(&g, path, err) == CW_OK, "%s", err->text);
    if (cw_model_load(&m, g, &opt, err) == CW_OK &&
        cw_session_create(&s, m, &session_opt, err) == CW_OK) {
        *n_vocab = (size_t)cw_model_get_info(m)->n_vocab;
        random_ids(ids, MANY, 320, 5);
        ids[3] = 0; /* the first row of the embeddings is among them */
        if (cw_session_extend(s, ids, n_ids, NULL, err) == CW_OK) {
            y = cw_reallocarray(NULL, *n_vocab, sizeof *y);
            memcpy(y, cw_session_logits(s), *n_vocab * sizeof *y);
        }
    }
    cw_session_destroy(s);
    cw_model_destroy(m);
    cw_gguf_close(g);
    return y;
}

static float *score(const char *path, uint32_t n_ctx, size_t *n) {
    struct cw_err err = {0};
    float *y = try_score(path, n_ctx, MANY, CW_ISA_AUTO, n, &err);
    ck_assert_msg(y != NULL, "%s", err.text);
    return y;
}

START_TEST(every_architecture_has_a_model) {
    for (size_t i = 0; cw_arch_name(i) != NULL; i++) {
        bool found = false;
        char name[64];
        snprintf(name, sizeof name, "tiny-%s-", cw_arch_name(i));
        for (size_t k = 0; k < N_MODELS; k++) {
            found = found || strncmp(models[k], name, strlen(name)) == 0;
        }
        ck_assert_msg(found, "no model of %s", cw_arch_name(i));
    }
}
END_TEST

/* ---- every tensor ------------------------------------------------------------------------------
 */

/* Other values of the same kind, not all moved alike: an even shift of keys is none to a softmax.
 */
static void disturb(const struct cw_tensor *t, struct cw_buf *data) {
    cw_buf_add(data, t->data, (size_t)t->bytes);
    if (t->type == CW_F32) {
        for (size_t i = 0; i < t->bytes / 4; i++) {
            float v;
            memcpy(&v, data->data + 4 * i, sizeof v);
            v = v * 1.25f + 0.03125f * (float)((i * 5 + 1) % 7);
            memcpy(data->data + 4 * i, &v, sizeof v);
        }
        return;
    }
    size_t block = (size_t)cw_type_info((uint32_t)t->type)->block_bytes;
    for (size_t at = 0; at + block <= data->len; at += block) {
        data->data[at + block / 2] ^= 0x15; /* codes; in F16 some bits of the fraction */
    }
}

/* No tensor is left out: whichever is changed, the logits change. */
START_TEST(every_tensor_counts) {
    size_t n, n_tensors;
    if (!open_source(models[_i])) {
        return;
    }
    n_tensors = cw_gguf_n_tensors(source);
    ck_assert_uint_gt(n_tensors, 10);
    /* LongRoPE has one set of factors for contexts of up to 512 tokens, another beyond. */
    static const uint32_t contexts[] = {64, 600};
    int n_contexts = cw_gguf_tensor(source, "rope_factors_long.weight") != NULL ? 2 : 1;
    float *expected[2] = {0};
    char *path = model_path(models[_i]);
    for (int c = 0; c < n_contexts; c++) {
        expected[c] = score(path, contexts[c], &n);
    }
    for (size_t i = 0; i < n_tensors; i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(source, i);
        struct cw_buf data = {0};
        bool changes = false;
        disturb(t, &data);
        const char *changed = with_tensor(t, data.data);
        for (int c = 0; c < n_contexts && !changes; c++) {
            float *y = score(changed, contexts[c], &n);
            changes = !same_bits(y, expected[c], n);
            free(y);
        }
        ck_assert_msg(changes, "%s: '%.*s' is not used", models[_i], (int)t->name.len,
                      t->name.data);
        cw_buf_free(&data);
    }
    free(expected[0]);
    free(expected[1]);
    free(path);
    cw_gguf_close(source);
}
END_TEST

/* The output matrix: absent it is the embeddings, present it is itself, in whatever type. */
START_TEST(every_output_matrix) {
    size_t n;
    if (!open_source(models[_i])) {
        return;
    }
    const struct cw_tensor *e = cw_gguf_tensor(source, "token_embd.weight");
    ck_assert_ptr_nonnull(e);
    bool has_own = cw_gguf_tensor(source, "output.weight") != NULL;
    float *y[4] = {0};
    for (int way = 0; way < 3; way++) { /* none, the embeddings again, the same but disturbed */
        struct cw_buf data = {0};
        const uint64_t dims[2] = {(uint64_t)e->dims[0], (uint64_t)e->dims[1]};
        mkgguf_init(&out);
        mkgguf_copy_keys(&out, source, NULL, NULL);
        mkgguf_copy_tensors(&out, source, not_named, (void *)(uintptr_t) "output.weight");
        if (way == 1) {
            mkgguf_tensor(&out, "output.weight", e->type, 2, dims, e->data, (size_t)e->bytes);
        } else if (way == 2) {
            disturb(e, &data);
            mkgguf_tensor(&out, "output.weight", e->type, 2, dims, data.data, data.len);
        }
        y[way] = score(save(), 64, &n);
        cw_buf_free(&data);
    }
    char *path = model_path(models[_i]);
    y[3] = score(path, 64, &n);
    ck_assert_msg(same_bits(y[0], y[1], n), "%s: tied differs from twice the same", models[_i]);
    ck_assert_msg(!same_bits(y[0], y[2], n), "%s: its own matrix is not used", models[_i]);
    ck_assert_int_eq(same_bits(y[0], y[3], n), !has_own);
    for (int i = 0; i < 4; i++) {
        free(y[i]);
    }
    free(path);
    cw_gguf_close(source);
}
END_TEST

/* ---- every key ---------------------------------------------------------------------------------
 */

/* The i-th key of the architecture's own, or NULL. */
static const struct cw_gguf_key *own_key(size_t i) {
    struct cw_str arch;
    ck_assert_int_eq(cw_gguf_str(source, "general.architecture", &arch, NULL), CW_OK);
    for (size_t k = 0; k < cw_gguf_n_keys(source); k++) {
        const struct cw_gguf_key *key = cw_gguf_key_at(source, k);
        bool own = key->name.len > arch.len + 1 && key->name.data[arch.len] == '.' &&
                   memcmp(key->name.data, arch.data, arch.len) == 0;
        if (own && i-- == 0) {
            return key;
        }
    }
    return NULL;
}

static bool ends_with(const char *name, const char *tail) {
    size_t n = strlen(tail);
    return strlen(name) > n && strcmp(name + strlen(name) - n, tail) == 0;
}

/* Keys that change no logits: of the vocabulary's size the tensors tell, the trained length bounds
 * sessions, and experts have a width of their own. */
static bool is_silent(const char *name) {
    return ends_with(name, ".vocab_size") || ends_with(name, ".context_length") ||
           (ends_with(name, ".feed_forward_length") &&
            !ends_with(name, ".expert_feed_forward_length") &&
            cw_gguf_tensor(source, "blk.0.ffn_gate_inp.weight") != NULL);
}

/* Another value of the same kind, not far away. */
static const char *with_other_value(const struct cw_gguf_key *k, const char *name) {
    if (k->kind == CW_GGUF_STRING) { /* the type of a scaling: the others are linear and yarn */
        struct cw_str now;
        struct cw_buf b = {0};
        ck_assert_int_eq(cw_gguf_str(source, name, &now, NULL), CW_OK);
        const char *other = cw_str_eq(now, "yarn") ? "linear" : "yarn";
        uint64_t len = strlen(other);
        cw_buf_add(&b, &len, sizeof len);
        cw_buf_add(&b, other, len);
        const char *path = with_key(name, CW_GGUF_STRING, b.data, b.len);
        cw_buf_free(&b);
        return path;
    }
    if (k->kind == CW_GGUF_F32) {
        float v;
        memcpy(&v, k->data, sizeof v);
        v = v * 0.5f;
        return with_key(name, CW_GGUF_F32, &v, sizeof v);
    }
    if (k->kind == CW_GGUF_BOOL) {
        uint8_t v = !*k->data;
        return with_key(name, CW_GGUF_BOOL, &v, 1);
    }
    ck_assert_int_eq(k->kind, CW_GGUF_U32);
    uint32_t v;
    memcpy(&v, k->data, sizeof v);
    v = v > 64 ? v / 16 : v > 2 ? v / 2 : v == 2 ? 1 : 2;
    return with_key(name, CW_GGUF_U32, &v, sizeof v);
}

/* No key is read and forgotten: another value is refused or changes the logits. */
START_TEST(every_key_counts) {
    size_t n, n_keys = 0;
    if (!open_source(models[_i])) {
        return;
    }
    char *path = model_path(models[_i]);
    float *expected = score(path, 64, &n);
    const struct cw_gguf_key *k;
    for (; (k = own_key(n_keys)) != NULL; n_keys++) {
        char *name = text_of(k->name);
        struct cw_err err = {0};
        if (!is_silent(name)) {
            float *y = try_score(with_other_value(k, name), 64, MANY, CW_ISA_AUTO, &n, &err);
            ck_assert_msg(y == NULL || !same_bits(y, expected, n), "%s: '%s' is not used",
                          models[_i], name);
            free(y);
        }
        free(name);
    }
    ck_assert_uint_ge(n_keys, 8);
    free(expected);
    free(path);
    cw_gguf_close(source);
}
END_TEST

/* A key of another type is refused with its name; an integer may have any width. */
START_TEST(every_key_of_other_types) {
    size_t n, n_refused = 0;
    if (!open_source(models[_i])) {
        return;
    }
    const struct cw_gguf_key *k;
    for (size_t i = 0; (k = own_key(i)) != NULL; i++) {
        static const struct {
            uint32_t kind;
            size_t bytes;
        } kinds[] = {{CW_GGUF_STRING, 8}, {CW_GGUF_BOOL, 1}, {CW_GGUF_F32, 4}, {CW_GGUF_F64, 8},
                     {CW_GGUF_ARRAY, 12}, {CW_GGUF_I8, 1},   {CW_GGUF_U64, 8}};
        char *name = text_of(k->name);
        bool number = k->kind == CW_GGUF_F32;
        for (size_t t = 0; t < sizeof kinds / sizeof *kinds; t++) {
            struct cw_err err = {0};
            uint8_t value[12] = {0}; /* also an empty array of bytes */
            bool wide = kinds[t].kind == CW_GGUF_I8 || kinds[t].kind == CW_GGUF_U64;
            bool is_float = kinds[t].kind == CW_GGUF_F32 || kinds[t].kind == CW_GGUF_F64;
            bool fits = kinds[t].kind == k->kind || (number && is_float) ||
                        (wide && (number || k->kind == CW_GGUF_U32)) ||
                        strstr(name, ".vocab_size") != NULL; /* nobody reads it */
            if (fits) {
                continue;
            }
            float *y = try_score(with_key(name, kinds[t].kind, value, kinds[t].bytes), 64, FEW,
                                 CW_ISA_AUTO, &n, &err);
            ck_assert_msg(y == NULL && strstr(err.text, name) != NULL, "%s: '%s' as type %u: %s",
                          models[_i], name, kinds[t].kind, err.text);
            n_refused++;
        }
        free(name);
    }
    ck_assert_uint_ge(n_refused, 25);
    cw_gguf_close(source);
}
END_TEST

/* Zeros, ones and giants: refused by the name of a key or tensor, or evaluated; never more. */
START_TEST(every_key_of_odd_values) {
    static const uint64_t values[] = {0,          1,          3,          31,
                                      65537,      1u << 24,   INT32_MAX,  1u << 31,
                                      UINT32_MAX, 1ull << 32, 1ull << 63, UINT64_MAX};
    size_t n, n_refused = 0;
    if (!open_source(models[_i])) {
        return;
    }
    const struct cw_gguf_key *k;
    for (size_t i = 0; (k = own_key(i)) != NULL; i++) {
        char *name = text_of(k->name);
        for (size_t v = 0; v < sizeof values / sizeof *values && k->kind != CW_GGUF_STRING; v++) {
            struct cw_err err = {0};
            float *y = try_score(with_key(name, CW_GGUF_U64, &values[v], 8), 64, MANY, CW_ISA_AUTO,
                                 &n, &err);
            ck_assert_msg(y != NULL || strstr(err.text, "changed.gguf: ") != NULL, "%s", err.text);
            ck_assert_msg(
                y != NULL || strstr(err.text, "key '") != NULL ||
                    strstr(err.text, "tensor '") != NULL || strstr(err.text, "heads of") != NULL ||
                    strstr(err.text, strchr(name, '.') + 1) != NULL,
                "%s: '%s' = %llu: %s", models[_i], name, (unsigned long long)values[v], err.text);
            n_refused += y == NULL;
            free(y);
        }
        static const float numbers[] = {-1.0f, __builtin_inff(), -__builtin_inff()};
        for (int f = 0; f < 4 && k->kind == CW_GGUF_F32; f++) {
            struct cw_err err = {0};
            float v = f < 3 ? numbers[f] : __builtin_nanf("");
            float *y =
                try_score(with_key(name, CW_GGUF_F32, &v, 4), 64, MANY, CW_ISA_AUTO, &n, &err);
            ck_assert_msg(y == NULL && strstr(err.text, name) != NULL, "%s: '%s' = %g: %s",
                          models[_i], name, (double)v, err.text);
        }
        free(name);
    }
    ck_assert_uint_ge(n_refused, 40);
    cw_gguf_close(source);
}
END_TEST

/* ---- numbers that are none ---------------------------------------------------------------------
 */

/* Where in a block the f16 scales stand. */
static const struct {
    enum cw_type type;
    int at[2]; /* -1: no second */
} scales[] = {
    {CW_Q4_0, {0, -1}}, {CW_Q4_1, {0, 2}},    {CW_Q5_0, {0, -1}},   {CW_Q5_1, {0, 2}},
    {CW_Q8_0, {0, -1}}, {CW_IQ4_NL, {0, -1}}, {CW_Q2_K, {80, 82}},  {CW_Q3_K, {108, -1}},
    {CW_Q4_K, {0, 2}},  {CW_Q5_K, {0, 2}},    {CW_Q6_K, {208, -1}}, {CW_IQ4_XS, {0, -1}},
    {CW_F16, {0, -1}},
};
enum { N_SCALES = sizeof scales / sizeof *scales };
static const char *const typed[] = {
    "tiny-llama-Q2_K.gguf", "tiny-llama-Q3_K.gguf",   "tiny-llama-Q4_0.gguf",
    "tiny-llama-Q4_1.gguf", "tiny-llama-Q4_K.gguf",   "tiny-llama-Q5_0.gguf",
    "tiny-llama-Q5_1.gguf", "tiny-llama-Q5_K.gguf",   "tiny-llama-Q6_K.gguf",
    "tiny-llama-Q8_0.gguf", "tiny-llama-IQ4_NL.gguf", "tiny-llama-IQ4_XS.gguf",
    "tiny-llama-F16.gguf",  "tiny-mixed-Q4_K_M.gguf", "tiny-tail-Q4_0.gguf",
    "tiny-tail-Q5_1.gguf",  "tiny-tail-Q8_0.gguf",    "tiny-qwen2-F32.gguf",
};
enum { N_TYPED = sizeof typed / sizeof *typed };

/* Evaluate a copy of the source with other bytes at `at` of the tensor: how many logits are no
 * numbers. */
static size_t n_broken(const struct cw_tensor *t, size_t at, const void *bytes, size_t n_bytes,
                       enum cw_isa isa) {
    struct cw_err err = {0};
    struct cw_buf data = {0};
    size_t n, bad = 0;
    cw_buf_add(&data, t->data, (size_t)t->bytes);
    memcpy(data.data + at, bytes, n_bytes);
    float *y = try_score(with_tensor(t, data.data), 64, FEW, isa, &n, &err);
    ck_assert_msg(y != NULL, "%s", err.text);
    for (size_t i = 0; i < n; i++) {
        bad += !(y[i] > -1e30f && y[i] < 1e30f);
    }
    cw_buf_free(&data);
    free(y);
    return bad;
}

/* A scale of one block that is infinite or no number, and a norm that is none, must be seen in the
 * logits by every instruction set: what is no number must not be rounded to one on the way, or the
 * sampler could not refuse it. */
START_TEST(every_broken_number_is_seen) {
    static const uint16_t halves[] = {0x7c00, 0x7e00, 0xfc00};
    static const float nan = __builtin_nanf("");
    size_t n = 0;
    if (!open_source(typed[_i])) {
        return;
    }
    for (size_t i = 0; i < cw_gguf_n_tensors(source); i++) {
        const struct cw_tensor *t = cw_gguf_tensor_at(source, i);
        char *name = text_of(t->name);
        if (strncmp(name, "blk.0.", 6) != 0 && strncmp(name, "blk.", 4) == 0) {
            free(name);
            continue; /* the other layers are like the first */
        }
        for (int isa = 0; isa < CW_N_ISAS; isa++) {
            if (!cw_isa_available((enum cw_isa)isa)) {
                continue;
            }
            for (size_t s = 0; s < 2 * N_SCALES; s++) {
                int at = scales[s / 2].at[s % 2];
                if (scales[s / 2].type == t->type && at >= 0) {
                    const uint16_t *half = &halves[n++ % 3];
                    ck_assert_msg(n_broken(t, (size_t)at, half, 2, (enum cw_isa)isa) > 0,
                                  "%s, %s: %04x in '%s' is lost", typed[_i],
                                  cw_isa_name((enum cw_isa)isa), *half, name);
                }
            }
            if (t->type == CW_F32) {
                ck_assert_msg(n_broken(t, 0, &nan, 4, (enum cw_isa)isa) > 0,
                              "%s, %s: a NaN in '%s' is lost", typed[_i],
                              cw_isa_name((enum cw_isa)isa), name);
                n++;
            }
        }
        free(name);
    }
    ck_assert_uint_ge(n, 10);
    cw_gguf_close(source);
}
END_TEST

/* ---- parts -------------------------------------------------------------------------------------
 */

static bool in_part(void *arg, struct cw_str name) {
    int no = *(const int *)arg;
    if (cw_str_eq(name, "output.weight") || cw_str_eq(name, "output_norm.weight")) {
        return no == 2;
    }
    return no == (memmem(name.data, name.len, "ffn_", 4) != NULL ? 1 : 0);
}

/* tests/data has whole files: the same in three parts, keys in the first and the head in the last.
 * Written to NAME-0000i-of-00003.gguf, paths[i]. */
static void write_parts(const char *name, char paths[3][256]) {
    for (int no = 0; no < 3; no++) {
        uint16_t value = (uint16_t)no, count = 3;
        char file[64];
        mkgguf_init(&out);
        if (no == 0) {
            mkgguf_copy_keys(&out, source, NULL, NULL);
        }
        mkgguf_scalar(&out, "split.no", CW_GGUF_U16, &value, 2);
        mkgguf_scalar(&out, "split.count", CW_GGUF_U16, &count, 2);
        mkgguf_copy_tensors(&out, source, in_part, &no);
        snprintf(file, sizeof file, "%s-%05d-of-00003.gguf", name, no + 1);
        snprintf(paths[no], 256, "%s", tmp_path(file));
        mkgguf_save(&out, paths[no]);
        mkgguf_free(&out);
    }
}

static const char *const whole[] = {"tiny-gpt2-F32.gguf", "tiny-llama-Q4_0.gguf",
                                    "tiny-gemma3-F32.gguf", "tiny-gpt-oss-MXFP4.gguf"};
enum { N_WHOLE = sizeof whole / sizeof *whole };

START_TEST(every_part_opens_the_whole) {
    char paths[3][256];
    size_t n;
    ck_assert(open_source(whole[_i]));
    char *path = model_path(whole[_i]);
    float *expected = score(path, 64, &n);
    write_parts("part", paths);
    for (int no = 0; no < 3; no++) {
        float *y = score(paths[no], 64, &n);
        ck_assert_msg(same_bits(y, expected, n), "%s opened by part %d", whole[_i], no + 1);
        free(y);
    }
    /* Without the last part nothing loads: its output matrix is not taken for absent. */
    ck_assert_int_eq(remove(paths[2]), 0);
    for (int no = 0; no < 2; no++) {
        struct cw_gguf *g;
        struct cw_err err = {0};
        ck_assert_int_eq(cw_gguf_open(&g, paths[no], &err), CW_ENOENT);
        ck_assert_ptr_nonnull(strstr(err.text, "part 3 of 3"));
    }
    free(expected);
    free(path);
    cw_gguf_close(source);
}
END_TEST

/* A file that is cut short between its opening and its loading is no model of zeros. */
START_TEST(every_cut_before_the_load) {
    static const long lengths[] = {0, 4096, 16384};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct cw_gguf *g;
        struct cw_model *m;
        struct cw_err err = {0};
        ck_assert(open_source(whole[_i]));
        mkgguf_init(&out);
        mkgguf_copy_keys(&out, source, NULL, NULL);
        mkgguf_copy_tensors(&out, source, NULL, NULL);
        const char *path = save();
        cw_gguf_close(source);
        ck_assert_int_eq(cw_gguf_open(&g, path, NULL), CW_OK);
        ck_assert_int_eq(truncate(path, lengths[i]), 0);
        ck_assert_int_eq(cw_model_load(&m, g, NULL, &err), CW_EIO);
        ck_assert_ptr_null(m);
        ck_assert_msg(strstr(err.text, "cut short") != NULL, "%s", err.text);
        cw_gguf_close(g);
    }
}
END_TEST

/* ---- factors of the rotation -------------------------------------------------------------------
 */

START_TEST(every_set_of_factors_is_checked) {
    static const char *const names[] = {"rope_factors_long.weight", "rope_factors_short.weight",
                                        "rope_freqs.weight"};
    const float bad[] = {0.0f, -1.0f, 1e-3f, 1e7f, __builtin_inff(), __builtin_nanf("")};
    ck_assert(open_source("tiny-phi3-partial-F32.gguf"));
    for (size_t i = 0; i < 3; i++) {
        for (size_t v = 0; v < sizeof bad / sizeof *bad; v++) {
            float f[6] = {1, 1, 1, 1, 1, bad[v]};
            mkgguf_init(&out);
            mkgguf_copy_keys(&out, source, NULL, NULL);
            mkgguf_copy_tensors(&out, source, not_named, (void *)(uintptr_t)names[i]);
            mkgguf_tensor(&out, names[i], CW_F32, 1, (const uint64_t[]){6}, f, sizeof f);
            load_fails(save(), CW_EFORMAT, names[i]);
        }
        static const uint64_t lengths[] = {5, 8}; /* 6 pairs turn; 8 would be the whole head */
        for (size_t n = 0; n < 2; n++) {
            static const float ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
            mkgguf_init(&out);
            mkgguf_copy_keys(&out, source, NULL, NULL);
            mkgguf_copy_tensors(&out, source, not_named, (void *)(uintptr_t)names[i]);
            mkgguf_tensor(&out, names[i], CW_F32, 1, &lengths[n], ones, (size_t)lengths[n] * 4);
            load_fails(save(), CW_EFORMAT, names[i]);
        }
        if (i < 2) { /* one set without the other */
            mkgguf_init(&out);
            mkgguf_copy_keys(&out, source, NULL, NULL);
            mkgguf_copy_tensors(&out, source, not_named, (void *)(uintptr_t)names[i]);
            load_fails(save(), CW_EFORMAT, names[i]);
        }
    }
    cw_gguf_close(source);
}
END_TEST

int main(void) {
    const struct {
        const char *name;
        const TTest *test;
        int n;
    } tests[] = {
        {"tensors", every_architecture_has_a_model, 1},
        {"tensors", every_tensor_counts, N_MODELS},
        {"tensors", every_output_matrix, N_MODELS},
        {"keys", every_key_counts, N_MODELS},
        {"types of keys", every_key_of_other_types, N_MODELS},
        {"values of keys", every_key_of_odd_values, N_MODELS},
        {"numbers", every_broken_number_is_seen, N_TYPED},
        {"parts", every_part_opens_the_whole, N_WHOLE},
        {"parts", every_cut_before_the_load, N_WHOLE},
        {"factors", every_set_of_factors_is_checked, 1},
    };
    Suite *suite = suite_create("every");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        TCase *c = tcase_create(tests[i].name);
        tcase_set_timeout(c, 600);
        tcase_add_loop_test(c, tests[i].test, 0, tests[i].n);
        suite_add_tcase(suite, c);
    }
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
