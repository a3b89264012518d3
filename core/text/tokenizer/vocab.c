/* SPDX-License-Identifier: MIT
 *
 * Reading a vocabulary: token strings, types, scores, special ids, end markers.
 *
 * Strings stay where they are, in the mapping. What a file gets wrong in a way that would make
 * text mean something else (a list of the wrong type or length, no scores) is refused with the
 * key's name; what can be left out safely (an id out of range, a second token of the same string)
 * is left out and noted.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "chinwag/utf8.h"
#include "tokenizer_impl.h"

enum {
    MAX_TOKENS = 1 << 26,
    PREFETCH = 16, /* tokens ahead */
};

void cw_vocab_notice(struct cw_tokenizer *t, const char *fmt, ...) {
    char raw[512];
    char line[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof raw ? (size_t)n : sizeof raw - 1;
    cw_printable(line, sizeof line, raw, len);
    t->notices = cw_reallocarray(t->notices, t->n_notices + 1, sizeof *t->notices);
    t->notices[t->n_notices++] = cw_strdup(line);
}

/* --- the table of strings --- */

/* The slot that holds s[0..n), or the empty one where it belongs. */
static struct token_slot *find_slot(const struct cw_tokenizer *t, const char *s, size_t n) {
    uint32_t mask = t->n_slots - 1;
    uint64_t head = load_head(s, n);
    for (uint32_t i = (uint32_t)hash_bytes(t->seed, s, n, head) & mask;; i = (i + 1) & mask) {
        struct token_slot *slot = &t->slots[i];
        if (slot->id_p1 == 0 ||
            (slot->head == head && slot->len == n &&
             (n <= 8 || memcmp(t->text[slot->id_p1 - 1].data + 8, s + 8, n - 8) == 0))) {
            return slot;
        }
    }
}

int32_t cw_vocab_find(const struct cw_tokenizer *t, const char *s, size_t n) {
    return (int32_t)find_slot(t, s, n)->id_p1 - 1;
}

int32_t cw_vocab_find_text(const struct cw_tokenizer *t, const char *s, size_t n) {
    int32_t id = n <= t->max_text ? cw_vocab_find(t, s, n) : -1;
    return id >= 0 && cw_type_is_text(t->type[id]) ? id : -1;
}

/* Ids are added in order, so a string that comes twice keeps its lowest id. */
static int build_table(struct cw_tokenizer *t, struct cw_err *err) {
    int32_t again = 0;
    t->n_slots = table_size((size_t)t->n);
    t->slots = cw_table_alloc(t->n_slots * sizeof *t->slots);
    if (t->slots == NULL) {
        return cw_fail(err, CW_ENOMEM, "no memory for a vocabulary of %d tokens", t->n);
    }
    for (int32_t id = 0; id < t->n; id++) {
        struct cw_str s = t->text[id];
        if (id + PREFETCH < t->n) {
            cw_vocab_prefetch(t, t->text[id + PREFETCH]);
        }
        if (s.len > UINT32_MAX) {
            return cw_fail(err, CW_EFORMAT, "tokenizer.ggml.tokens: entry %d is too long", id);
        }
        struct token_slot *slot = find_slot(t, s.data, s.len);
        if (slot->id_p1 != 0) {
            again++;
        } else {
            *slot =
                (struct token_slot){load_head(s.data, s.len), (uint32_t)s.len, (uint32_t)id + 1};
        }
    }
    t->unique = again == 0;
    if (again > 0) {
        cw_vocab_notice(t, "%d token strings occur more than once: the lowest id of each is used",
                        again);
    }
    return CW_OK;
}

/* --- types and scores --- */

static int load_types(struct cw_tokenizer *t, const struct cw_gguf *g, struct cw_err *err) {
    int32_t *types = NULL;
    size_t n = 0;
    t->type = cw_malloc((size_t)t->n);
    int rc = cw_gguf_i32s(g, "tokenizer.ggml.token_type", &types, &n, err);
    if (rc == CW_ENOENT) {
        memset(t->type, TOKEN_NORMAL, (size_t)t->n);
        t->untyped = true;
        cw_vocab_notice(t, "tokenizer.ggml.token_type is missing: every token that the file does "
                           "not name as a special one is taken as text");
        return CW_OK;
    }
    if (rc != CW_OK) {
        return rc;
    }
    if (n < (size_t)t->n) {
        rc = cw_fail(err, CW_EFORMAT, "tokenizer.ggml.token_type has %zu entries for %d tokens", n,
                     t->n);
    }
    for (int32_t i = 0; rc == CW_OK && i < t->n; i++) {
        bool known = types[i] >= TOKEN_NORMAL && types[i] <= TOKEN_BYTE;
        t->type[i] = known ? (uint8_t)types[i] : TOKEN_UNUSED;
    }
    free(types);
    return rc;
}

/* A score as an integer that is the lower the better the score; NaN is the worst. */
static uint32_t score_rank(float score) {
    uint32_t bits;
    score += 0.0F; /* -0 becomes 0 */
    if (score != score) {
        return NO_RANK - 1;
    }
    memcpy(&bits, &score, sizeof bits);
    bits = bits >> 31 ? bits : ~bits & 0x7fffffffu;
    return bits < NO_RANK ? bits : NO_RANK - 1;
}

static int load_scores(struct cw_tokenizer *t, const struct cw_gguf *g, struct cw_err *err) {
    float *scores = NULL;
    size_t n = 0;
    int rc = cw_gguf_f32s(g, "tokenizer.ggml.scores", &scores, &n, err);
    if (rc == CW_ENOENT) {
        return cw_fail(err, CW_EFORMAT,
                       "tokenizer.ggml.scores is missing: without it a llama vocabulary has no "
                       "order of merges");
    }
    if (rc != CW_OK) {
        return rc;
    }
    if (n < (size_t)t->n) {
        rc = cw_fail(err, CW_EFORMAT, "tokenizer.ggml.scores has %zu entries for %d tokens", n,
                     t->n);
    } else {
        t->rank = cw_reallocarray(NULL, (size_t)t->n, sizeof *t->rank);
        for (int32_t i = 0; i < t->n; i++) {
            t->rank[i] = score_rank(scores[i]);
        }
    }
    free(scores);
    return rc;
}

/* --- special ids --- */

/* An id from the file, or -1: absent, or out of range (which is noted). Never a built-in one. In a
 * file without types this is all that is known of it: `type` is what it is then. */
static int load_id(struct cw_tokenizer *t, const struct cw_gguf *g, const char *key,
                   enum token_type type, int32_t *out, struct cw_err *err) {
    uint32_t id = 0;
    *out = -1;
    int rc = cw_gguf_u32(g, key, &id, err);
    if (rc == CW_ENOENT) {
        return CW_OK;
    }
    if (rc == CW_OK && id >= (uint32_t)t->n) {
        /* -1, which some files write for "none", is no fault of theirs. */
        if (id != UINT32_MAX) {
            cw_vocab_notice(t, "%s is %u, but there are %d tokens: left out", key, id, t->n);
        }
    } else if (rc == CW_OK) {
        *out = (int32_t)id;
        t->type[id] = t->untyped ? (uint8_t)type : t->type[id];
    }
    return rc;
}

static int load_bool(const struct cw_gguf *g, const char *key, bool *out, struct cw_err *err) {
    int rc = cw_gguf_bool(g, key, out, err);
    return rc == CW_ENOENT ? CW_OK : rc;
}

/* --- end markers --- */

/* Strings that end a turn in some family. A file names at most one or two of its own as eos, eot
 * and eom; the others are known by their text. */
static const char *const end_markers[] = {
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<end_of_turn>",
    "<turn|>",
    "<|tool_response>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>",
    ("<\xef\xbd\x9c"
     "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>"),
    "<end_of_utterance>",
    "</s>",
    "<eos>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|eot|>",
    "<|EOT|>",
    "<|end_of_turn|>",
    "<|endofturn|>",
    "[|endofturn|]",
    "[e~[",
    /* Of code to complete: the end of a file, and what would begin the next. */
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
};

static void add_eog(struct cw_tokenizer *t, int32_t id) {
    if (id >= 0 && !cw_tokenizer_is_eog(t, id)) {
        t->eog = cw_reallocarray(t->eog, t->n_eog + 1, sizeof *t->eog);
        t->eog[t->n_eog++] = id;
    }
}

static int32_t find_control(const struct cw_tokenizer *t, const char *s) {
    int32_t id = cw_vocab_find(t, s, strlen(s));
    return id >= 0 && t->type[id] == TOKEN_CONTROL ? id : -1;
}

/* Whether the chat template holds this string. */
static bool template_writes(struct cw_str chat, struct cw_str s) {
    return s.len > 0 && chat.len > 0 && memmem(chat.data, chat.len, s.data, s.len) != NULL;
}

static void promote(struct cw_tokenizer *t, int32_t id) {
    t->type[id] = TOKEN_CONTROL;
    cw_vocab_notice(t,
                    "token %d, %.*s, is written by the chat template but not marked as a control "
                    "token: taken as one",
                    id, (int)(t->text[id].len < 64 ? t->text[id].len : 64), t->text[id].data);
}

/* <|name|>, also with the full-width bars of DeepSeek. */
static bool looks_like_marker(struct cw_str s) {
    static const char wide[] = "\xef\xbd\x9c";
    return s.len > 4 && s.data[0] == '<' && s.data[s.len - 1] == '>' &&
           ((s.data[1] == '|' && s.data[s.len - 2] == '|') ||
            (s.len > 8 && memcmp(s.data + 1, wide, 3) == 0 &&
             memcmp(s.data + s.len - 4, wide, 3) == 0));
}

/* A marker counts if the file calls it a control token, or if its own chat template writes it: then
 * the file has the type wrong, and it becomes one (typed text must not be able to write it). A
 * `</s>` that is an HTML tag to the vocabulary stays text. */
static int load_end_markers(struct cw_tokenizer *t, const struct cw_gguf *g, struct cw_err *err) {
    static const char *const keys[] = {
        "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id",
    };
    struct cw_str chat = {NULL, 0};
    int rc = cw_gguf_str(g, "tokenizer.chat_template", &chat, err);
    if (rc != CW_OK && rc != CW_ENOENT) {
        return rc;
    }
    add_eog(t, t->eos);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int32_t id;
        if ((rc = load_id(t, g, keys[i], TOKEN_CONTROL, &id, err)) != CW_OK) {
            return rc;
        }
        add_eog(t, id);
    }
    for (int32_t id = 0; id < t->n; id++) {
        if (t->type[id] == TOKEN_USER_DEFINED && looks_like_marker(t->text[id]) &&
            template_writes(chat, t->text[id])) {
            promote(t, id);
        }
    }
    /* Where messages end with <|return|> or <|call|>, <|end|> only parts one channel from the
     * next. */
    bool channels = (find_control(t, "<|return|>") >= 0 && find_control(t, "<|call|>") >= 0) ||
                    (find_control(t, "<|flush|>") >= 0 && find_control(t, "<|calls|>") >= 0);
    for (size_t i = 0; i < sizeof end_markers / sizeof *end_markers; i++) {
        struct cw_str s = {end_markers[i], strlen(end_markers[i])};
        int32_t id = cw_vocab_find(t, s.data, s.len);
        if (id < 0 || (channels && cw_str_eq(s, "<|end|>"))) {
            continue;
        }
        if (t->type[id] != TOKEN_CONTROL && template_writes(chat, s)) {
            promote(t, id);
        }
        if (t->type[id] == TOKEN_CONTROL) {
            add_eog(t, id);
        } else if (t->type[id] == TOKEN_NORMAL) {
            t->type[id] = TOKEN_MARKER;
        }
    }
    return CW_OK;
}

/* --- bytes --- */

/* Whether UTF-8 text that people write holds this byte. */
static bool is_common_byte(int b) {
    return (b >= ' ' && b < 0xc0 && b != 0x7f) || b == '\t' || b == '\n' || b == '\r' ||
           (b >= 0xc2 && b <= 0xf0);
}

/* In the byte alphabet, or as <0xNN>. */
static void load_bytes(struct cw_tokenizer *t) {
    int missed = 0;
    for (int b = 0; b < 256; b++) {
        char s[8];
        if (t->kind == KIND_BYTE_BPE) {
            int n = cw_utf8_encode(cw_byte_to_char((uint8_t)b), s);
            int32_t id = cw_vocab_find(t, s, (size_t)n);
            bool usable = id >= 0 && (cw_type_is_text(t->type[id]) || t->type[id] == TOKEN_BYTE);
            if (usable) {
                t->type[id] = TOKEN_NORMAL; /* here a byte merges like any other token */
            }
            t->byte_id[b] = usable ? id : -1;
            missed += !usable && t->unk < 0 && is_common_byte(b);
            continue;
        }
        int n = snprintf(s, sizeof s, "<0x%02X>", (unsigned)b);
        int32_t id = cw_vocab_find(t, s, (size_t)n);
        bool is_byte = id >= 0 && (t->type[id] == TOKEN_BYTE || t->type[id] == TOKEN_NORMAL);
        if (is_byte) {
            t->type[id] = TOKEN_BYTE; /* so that the six characters never become it */
        }
        t->byte_id[b] = is_byte ? id : -1;
    }
    if (missed > 0) {
        cw_vocab_notice(
            t, "%d of the bytes that texts are made of have no token: they are left out", missed);
    }
}

static void load_pairs(struct cw_tokenizer *t) {
    /* About 16 bits a token, so that few pairs are found by accident. */
    uint32_t bits = 12;
    while (bits < 30 && (size_t)1 << bits < (size_t)t->n * 16) {
        bits++;
    }
    t->pair_shift = 64 - bits;
    t->pairs = cw_calloc(((size_t)1 << bits) / 64, sizeof *t->pairs);
    for (int32_t id = 0; id < t->n; id++) {
        struct cw_str s = t->text[id];
        uint32_t last = 0;
        if (!cw_type_is_text(t->type[id])) {
            continue;
        }
        for (size_t i = 0; i < s.len;) {
            uint32_t cp = (uint8_t)s.data[i];
            int n = cp < 0x80 ? 1 : cw_utf8_decode(s.data + i, s.len - i, &cp);
            if (i > 0) {
                uint32_t bit = cw_pair_bit(t, last, cp);
                t->pairs[bit / 64] |= (uint64_t)1 << bit % 64;
            }
            last = cp;
            i += n > 0 ? (size_t)n : 1;
        }
    }
}

static int load_special_ids(struct cw_tokenizer *t, const struct cw_gguf *g, struct cw_err *err) {
    int rc;
    t->add_bos = t->kind == KIND_SPM || (t->pre != NULL && (t->pre->flags & PRE_ADD_BOS) != 0);
    t->add_space_prefix = t->kind == KIND_SPM;
    if ((rc = load_id(t, g, "tokenizer.ggml.bos_token_id", TOKEN_CONTROL, &t->bos, err)) != CW_OK ||
        (rc = load_id(t, g, "tokenizer.ggml.eos_token_id", TOKEN_CONTROL, &t->eos, err)) != CW_OK ||
        (rc = load_id(t, g, "tokenizer.ggml.unknown_token_id", TOKEN_UNKNOWN, &t->unk, err)) !=
            CW_OK ||
        (rc = load_bool(g, "tokenizer.ggml.add_bos_token", &t->add_bos, err)) != CW_OK ||
        (rc = load_bool(g, "tokenizer.ggml.add_eos_token", &t->add_eos, err)) != CW_OK) {
        return rc;
    }
    if (t->kind == KIND_SPM) {
        rc = load_bool(g, "tokenizer.ggml.add_space_prefix", &t->add_space_prefix, err);
        if (rc != CW_OK) {
            return rc;
        }
    }
    if (t->kind == KIND_TEXT_BPE) {
        t->add_bos = true; /* its files are known to say false wrongly */
    }
    if (t->add_bos && t->bos < 0) {
        cw_vocab_notice(t, "the file asks for a begin token but names none: none is added");
        t->add_bos = false;
    }
    if (t->add_eos && t->eos < 0) {
        cw_vocab_notice(t, "the file asks for an end token but names none: none is added");
        t->add_eos = false;
    }
    /* The unknown token stands in for text, so it must be one that means nothing else: some files
     * name their end marker. */
    for (int32_t id = 0; id < t->n && (t->unk < 0 || t->type[t->unk] != TOKEN_UNKNOWN); id++) {
        t->unk = t->type[id] == TOKEN_UNKNOWN ? id : t->unk;
    }
    if (t->unk >= 0 && t->type[t->unk] == TOKEN_CONTROL) {
        t->unk = -1;
    }
    return CW_OK;
}

/* Phi-3's makers declare its special tokens so; its files do not say it, but no other SentencePiece
 * vocabulary has its placeholders. */
static bool is_phi3(const struct cw_tokenizer *t) {
    static const char placeholder[] = "<|placeholder1|>";
    return t->kind == KIND_SPM && cw_vocab_find(t, placeholder, sizeof placeholder - 1) >= 0;
}

int cw_vocab_load(struct cw_tokenizer *t, const struct cw_gguf *g, struct cw_err *err) {
    size_t n = 0;
    int rc = cw_gguf_strs(g, "tokenizer.ggml.tokens", &t->text, &n, err);
    if (rc == CW_ENOENT) {
        return cw_fail(err, CW_EFORMAT,
                       "tokenizer.ggml.tokens is missing: the file has no vocabulary");
    }
    if (rc != CW_OK) {
        return rc;
    }
    if (n == 0 || n > MAX_TOKENS) {
        return cw_fail(err, CW_EFORMAT, "tokenizer.ggml.tokens has %zu entries", n);
    }
    t->n = (int32_t)n;
    if (getentropy(&t->seed, sizeof t->seed) != 0) {
        t->seed = (uintptr_t)t;
    }
    if ((rc = load_types(t, g, err)) != CW_OK ||
        (t->kind == KIND_SPM && (rc = load_scores(t, g, err)) != CW_OK)) {
        return rc;
    }
    if ((rc = build_table(t, err)) != CW_OK || (rc = load_special_ids(t, g, err)) != CW_OK ||
        (rc = load_end_markers(t, g, err)) != CW_OK) {
        return rc;
    }
    for (int32_t id = 0; id < t->n; id++) {
        if (cw_type_is_text(t->type[id]) && t->text[id].len > t->max_text) {
            t->max_text = t->text[id].len;
        }
    }
    t->strips = is_phi3(t);
    load_bytes(t);
    if (t->kind != KIND_BYTE_BPE) {
        load_pairs(t);
    }
    return CW_OK;
}
