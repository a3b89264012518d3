/* SPDX-License-Identifier: MIT
 *
 * The writer of Markov models. */
#include "tests/support/markov.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/utf8.h"
#include "tests/support/mkgguf.h"

const char markov_chatml[] =
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + "
    "'\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

enum { NORMAL = 1, CONTROL = 3 };

/* The character with which byte-level BPE writes a byte: itself if it is printable in Latin-1, else
 * the next free one from U+0100 on. */
static uint32_t byte_char(int byte) {
    uint32_t extra = 256;
    for (int b = 0; b < 256; b++) {
        bool itself = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
        if (b == byte) {
            return itself ? (uint32_t)b : extra;
        }
        extra += !itself;
    }
    return 0;
}

static void add_token(struct markov *m, const char *text, size_t n, int kind) {
    cw_buf_add(&m->vocab, text, n);
    cw_buf_putc(&m->vocab, '\0');
    cw_ids_add(&m->kinds, kind);
    m->n_vocab++;
}

void markov_init(struct markov *m) {
    static const char *const fixed[] = {"<s>",        "</s>",    "<|im_start|>",
                                        "<|im_end|>", "<think>", "</think>"};
    memset(m, 0, sizeof *m);
    m->name = "markov";
    m->chat_template = markov_chatml;
    m->n_ctx = 4096;
    m->logit = 20;
    m->temp = -1;
    m->loop = -1;
    for (int b = 0; b < 256; b++) {
        char text[4];
        add_token(m, text, (size_t)cw_utf8_encode(byte_char(b), text), NORMAL);
    }
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        add_token(m, fixed[i], strlen(fixed[i]), CONTROL);
    }
    m->byte_used['\n'] = true; /* the prompt's last token: its successor is the first step */
}

void markov_free(struct markov *m) {
    cw_buf_free(&m->vocab);
    cw_ids_free(&m->kinds);
    cw_ids_free(&m->ids);
    cw_ids_free(&m->starts);
}

static bool has_token(const struct markov *m, const char *text) {
    const char *at = m->vocab.data;
    for (size_t i = 0; i < m->n_vocab; i++) {
        if (strcmp(at, text) == 0) {
            return true;
        }
        at += strlen(at) + 1;
    }
    return false;
}

/* What place() undoes when a cut does not work out. */
struct mark {
    size_t n_vocab, vocab_len, n_kinds, n_ids;
    bool byte_used[256];
};

static bool place(struct markov *m, const unsigned char *bytes, size_t n) {
    struct cw_buf text = {0};
    for (size_t i = 0; i < n; i++) {
        char c[4];
        cw_buf_add(&text, c, (size_t)cw_utf8_encode(byte_char(bytes[i]), c));
    }
    bool is_new = !has_token(m, text.data);
    if (is_new) {
        add_token(m, text.data, text.len, NORMAL);
        cw_ids_add(&m->ids, (int32_t)m->n_vocab - 1);
    }
    cw_buf_free(&text);
    if (is_new) {
        return true;
    }
    if (n == 1) {
        if (m->byte_used[bytes[0]]) {
            return false;
        }
        m->byte_used[bytes[0]] = true;
        cw_ids_add(&m->ids, bytes[0]);
        return true;
    }
    for (size_t cut = 1; cut < n; cut++) {
        struct mark mark = {m->n_vocab, m->vocab.len, m->kinds.n, m->ids.n, {0}};
        memcpy(mark.byte_used, m->byte_used, sizeof mark.byte_used);
        if (place(m, bytes, cut) && place(m, bytes + cut, n - cut)) {
            return true;
        }
        m->n_vocab = mark.n_vocab;
        m->vocab.len = mark.vocab_len;
        m->kinds.n = mark.n_kinds;
        m->ids.n = mark.n_ids;
        memcpy(m->byte_used, mark.byte_used, sizeof mark.byte_used);
    }
    return false;
}

void markov_bytes(struct markov *m, const void *bytes, size_t n) {
    cw_ids_add(&m->starts, (int32_t)m->ids.n);
    if (n == 0 || !place(m, bytes, n)) {
        fprintf(stderr, "markov: step %zu cannot be told from earlier ones\n", m->starts.n - 1);
        abort();
    }
}

void markov_text(struct markov *m, const char *text) {
    markov_bytes(m, text, strlen(text));
}

void markov_control(struct markov *m, int32_t id) {
    cw_ids_add(&m->starts, (int32_t)m->ids.n);
    cw_ids_add(&m->ids, id);
}

void markov_loop(struct markov *m, size_t step) {
    m->loop = (int64_t)step;
}

/* A row-major matrix of `rows` rows. */
static void add_matrix(struct mkgguf *g, const char *name, const float *data, uint64_t rows,
                       uint64_t cols) {
    const uint64_t dims[] = {cols, rows};
    mkgguf_tensor(g, name, 0, rows == 0 ? 1 : 2, dims, data,
                  (rows == 0 ? 1 : rows) * cols * sizeof *data);
}

static void add_tensors(const struct markov *m, struct mkgguf *g, size_t width) {
    size_t n = m->n_vocab;
    float *embd = cw_calloc(n * width, sizeof *embd);
    float *out = cw_calloc(n * width, sizeof *out);
    float *zero = cw_calloc(32 * width, sizeof *zero);
    float *one = cw_calloc(width, sizeof *one);
    int32_t last = '\n';
    for (size_t i = 0; i < width; i++) {
        one[i] = 1;
    }
    for (size_t i = 0; i < n; i++) {
        embd[i * width + i] = 1;
    }
    for (size_t i = 0; i <= m->ids.n; i++) {
        int32_t next = i < m->ids.n  ? m->ids.v[i]
                       : m->loop < 0 ? MARKOV_END
                                     : m->ids.v[m->starts.v[m->loop]];
        /* The norm scales a one-hot row to sqrt(width). */
        out[(size_t)next * width + (size_t)last] = m->logit / sqrtf((float)width);
        last = next;
    }
    add_matrix(g, "token_embd.weight", embd, n, width);
    add_matrix(g, "output.weight", out, n, width);
    add_matrix(g, "output_norm.weight", one, 0, width);
    add_matrix(g, "blk.0.attn_norm.weight", one, 0, width);
    add_matrix(g, "blk.0.ffn_norm.weight", one, 0, width);
    add_matrix(g, "blk.0.attn_q.weight", zero, 32, width);
    add_matrix(g, "blk.0.attn_k.weight", zero, 32, width);
    add_matrix(g, "blk.0.attn_v.weight", zero, 32, width);
    add_matrix(g, "blk.0.attn_output.weight", zero, width, 32);
    add_matrix(g, "blk.0.ffn_gate.weight", zero, 32, width);
    add_matrix(g, "blk.0.ffn_up.weight", zero, 32, width);
    add_matrix(g, "blk.0.ffn_down.weight", zero, width, 32);
    free(embd);
    free(out);
    free(zero);
    free(one);
}

void markov_save(const struct markov *m, const char *path) {
    struct mkgguf g;
    size_t width = (m->n_vocab + 31) / 32 * 32;
    bool seen[256 + MARKOV_N_FIXED] = {false};
    for (size_t i = 0; i < m->ids.n; i++) {
        int32_t id = m->ids.v[i];
        if (id < MARKOV_N_FIXED && seen[id]) {
            fprintf(stderr, "markov: token %d stands twice\n", id);
            abort();
        }
        if (id < MARKOV_N_FIXED) {
            seen[id] = true;
        }
    }
    mkgguf_init(&g);
    mkgguf_str(&g, "general.architecture", "llama");
    mkgguf_str(&g, "general.name", m->name);
    mkgguf_u32(&g, "llama.context_length", m->n_ctx);
    mkgguf_u32(&g, "llama.embedding_length", (uint32_t)width);
    mkgguf_u32(&g, "llama.block_count", 1);
    mkgguf_u32(&g, "llama.feed_forward_length", 32);
    mkgguf_u32(&g, "llama.attention.head_count", 1);
    mkgguf_u32(&g, "llama.attention.head_count_kv", 1);
    mkgguf_u32(&g, "llama.attention.key_length", 32);
    mkgguf_u32(&g, "llama.attention.value_length", 32);
    mkgguf_u32(&g, "llama.rope.dimension_count", 32);
    mkgguf_f32(&g, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    mkgguf_u32(&g, "llama.vocab_size", (uint32_t)m->n_vocab);
    if (m->temp >= 0) {
        mkgguf_f32(&g, "general.sampling.temp", m->temp);
    }
    if (m->keys != NULL) {
        m->keys(&g);
    }
    mkgguf_str(&g, "tokenizer.ggml.model", "gpt2");
    mkgguf_str(&g, "tokenizer.ggml.pre", "gpt-2");
    const char **texts = cw_calloc(m->n_vocab, sizeof *texts);
    const char *at = m->vocab.data;
    for (size_t i = 0; i < m->n_vocab; i++) {
        texts[i] = at;
        at += strlen(at) + 1;
    }
    mkgguf_strs(&g, "tokenizer.ggml.tokens", texts, m->n_vocab);
    free(texts);
    mkgguf_array(&g, "tokenizer.ggml.token_type", CW_GGUF_I32, m->n_vocab, m->kinds.v,
                 m->n_vocab * sizeof *m->kinds.v);
    mkgguf_strs(&g, "tokenizer.ggml.merges", NULL, 0); /* none, but wanted by readers */
    mkgguf_u32(&g, "tokenizer.ggml.bos_token_id", MARKOV_BOS);
    mkgguf_u32(&g, "tokenizer.ggml.eos_token_id", MARKOV_END);
    mkgguf_bool(&g, "tokenizer.ggml.add_bos_token", false);
    if (m->chat_template != NULL) {
        mkgguf_str(&g, "tokenizer.chat_template", m->chat_template);
    }
    add_tensors(m, &g, width);
    mkgguf_save(&g, path);
    mkgguf_free(&g);
}

void markov_write(const char *path, const char *const *texts, size_t n) {
    struct markov m;
    markov_init(&m);
    for (size_t i = 0; i < n; i++) {
        markov_text(&m, texts[i]);
    }
    markov_save(&m, path);
    markov_free(&m);
}
