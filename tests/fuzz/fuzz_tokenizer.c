/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: the first byte chooses a vocabulary, the rest is a prompt whose stretches,
 * message and template in turn, end at bytes 0x1f. Whatever the text, it comes back, spans are
 * found in order, and only template stretches hold control tokens.
 */
#include <stdint.h>
#include <stdlib.h>

#include "core/text/tokenizer/tokenizer_impl.h"
#include "tests/tokenizer/tiny_vocab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_SPANS = 16, SEPARATOR = 0x1f, MAX_ROWS = 128 };

/* One vocabulary a pre-tokenizer, and SPM (row -1), made when first asked for. */
static struct cw_tokenizer *tokenizer(int row) {
    static struct tiny made[MAX_ROWS + 1];
    struct tiny *tiny = &made[row + 1];
    const struct cw_pre *pre = row < 0 ? NULL : cw_pre_at((size_t)row);
    if (tiny->t != NULL) {
        return tiny->t;
    }
    struct tiny_vocab v;
    tiny_vocab_init(&v, pre == NULL ? "llama" : "gpt2", pre == NULL ? NULL : pre->name);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", false);
    mkgguf_bool(&v.m, "tokenizer.ggml.add_space_prefix", false);
    tiny_vocab_add(&v, "<unk>", UNKNOWN, 0);
    tiny_vocab_add(&v, "<|end|>", CONTROL, 0);
    tiny_vocab_add(&v, "\n\n", USER, 0);
    tiny_vocab_add(&v, "a<", USER, 0);
    if (pre != NULL && (pre->flags & PRE_TEXT) == 0) {
        tiny_vocab_add_alphabet(&v);
    } else {
        tiny_vocab_add_byte_tokens(&v);
        tiny_vocab_add(&v, "a", NORMAL, 0);
        tiny_vocab_add(&v, "b", NORMAL, 0);
        tiny_vocab_add(&v, "ab", NORMAL, 1);
    }
    if (pre != NULL) {
        tiny_vocab_merge(&v, "a", "b");
        tiny_vocab_merge(&v, "ab", "a");
        tiny_vocab_merge(&v, "a", "a");
    }
    *tiny = tiny_open(&v);
    return tiny->t;
}

static void check(bool holds) {
    if (!holds) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct cw_span spans[MAX_SPANS];
    size_t at[MAX_SPANS];
    size_t n_spans = 0;
    struct cw_ids ids = {0};
    struct cw_buf back = {0};
    int n_rows = 0;
    while (n_rows < MAX_ROWS && cw_pre_at((size_t)n_rows) != NULL) {
        n_rows++;
    }
    if (size == 0) {
        return 0;
    }
    struct cw_tokenizer *t = tokenizer(data[0] % (n_rows + 1) - 1);
    const char *text = (const char *)data + 1;
    size_t len = size - 1;

    /* As text alone it comes back; U+2581 is a blank to the kinds that write blanks so. */
    check(cw_tokenizer_encode(t, text, len, 0, &ids, NULL) == CW_OK);
    cw_tokenizer_decode(t, ids.v, ids.n, false, &back);
    if (t->kind == KIND_BYTE_BPE || memmem(text, len, "\xe2\x96\x81", 3) == NULL) {
        check(back.len == len && (len == 0 || memcmp(back.data, text, len) == 0));
    }

    for (size_t begin = 0; n_spans < MAX_SPANS && (begin < len || n_spans == 0);) {
        const char *stop = memchr(text + begin, SEPARATOR, len - begin);
        size_t end = stop == NULL || n_spans == MAX_SPANS - 1 ? len : (size_t)(stop - text) + 1;
        spans[n_spans] = (struct cw_span){begin, end, n_spans % 2 == 0 ? 0 : -1, NULL, 0};
        n_spans++;
        begin = end;
    }
    ids.n = 0;
    check(cw_tokenizer_encode_spans(t, text, spans, n_spans, 0, &ids, at, NULL) == CW_OK);
    for (size_t k = 0; k < n_spans; k++) {
        check(at[k] <= ids.n && (k == 0 || at[k] >= at[k - 1]));
        size_t stop = k + 1 < n_spans ? at[k + 1] : ids.n;
        for (size_t i = at[k]; i < stop; i++) {
            check(spans[k].message < 0 || !cw_tokenizer_is_control(t, ids.v[i]));
        }
    }
    cw_ids_free(&ids);
    cw_buf_free(&back);
    return 0;
}
