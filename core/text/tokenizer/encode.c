/* SPDX-License-Identifier: MIT
 *
 * Text to ids, in two steps.
 *
 * First the text is scanned from left to right for special tokens and for stretches whose ids are
 * given; what lies between them is a fragment. Then each fragment is encoded: byte-level BPE cuts
 * it into words by the pre-tokenizer; the other kinds take it whole, blanks as U+2581, but cut it
 * where no token of the vocabulary could stand across, so that a text of megabytes is many small
 * merges and not one large one. Both cuts leave the ids as they would be without.
 *
 * Every id is written by emit(), which also keeps count of where the spans begin.
 */
#include "chinwag/utf8.h"
#include "tokenizer_impl.h"

#define BLANK     "\xe2\x96\x81" /* U+2581 */
#define BLANK_LEN 3

enum { MAX_TEXT = 1 << 30 }; /* bytes: three times this still fits a symbol's position */

struct encoder {
    struct cw_tokenizer *t;
    struct cw_ids *ids;
    const char *text; /* the whole, for positions */
    int32_t lead;     /* the begin token while it is still to be written, else -1 */
    int32_t trail;    /* the end token that is to be written, else -1 */
    bool twice;       /* the begin and end tokens even where the text has them */
    bool after_special;
    const struct cw_span *spans;
    size_t n_spans;
    size_t next_span; /* first whose entry in `at` is still open */
    size_t *at;
};

/* Append an id whose token begins at text + pos. */
static void emit(struct encoder *e, size_t pos, int32_t id) {
    if (e->lead >= 0) {
        if (id != e->lead || e->twice) { /* else the text brought it itself */
            cw_ids_add(e->ids, e->lead);
        }
        e->lead = -1;
    }
    if (e->at != NULL) {
        while (e->next_span < e->n_spans && e->spans[e->next_span].begin <= pos) {
            e->at[e->next_span++] = e->ids->n;
        }
    }
    cw_ids_add(e->ids, id);
}

/* A byte that is no part of a character, or of one without a token: its own token, or the unknown
 * one, or U+FFFD. Byte-level BPE, as its families have it, leaves out what it cannot express. */
static int emit_byte(struct encoder *e, size_t pos, uint8_t byte, struct cw_err *err) {
    const struct cw_tokenizer *t = e->t;
    if (t->byte_id[byte] >= 0) {
        emit(e, pos, t->byte_id[byte]);
    } else if (t->unk >= 0) {
        emit(e, pos, t->unk);
    } else if (t->n_replacement > 0 || t->kind == KIND_BYTE_BPE) {
        for (size_t i = 0; i < t->n_replacement; i++) {
            emit(e, pos, t->replacement[i]);
        }
    } else {
        return cw_fail(err, CW_EFORMAT,
                       "the vocabulary cannot express byte 0x%02x and has no unknown token", byte);
    }
    return CW_OK;
}

/* --- byte-level BPE --- */

/* The token that is this word as a whole, or -1. */
static int32_t find_word(struct cw_tokenizer *t, const char *word, size_t len) {
    struct cw_buf *buf = &t->scratch.text;
    if (len > t->max_text) {
        return -1;
    }
    cw_buf_clear(buf);
    for (size_t i = 0; i < len; i++) {
        char utf8[4];
        int n = cw_utf8_encode(cw_byte_to_char((uint8_t)word[i]), utf8);
        cw_buf_add(buf, utf8, (size_t)n);
    }
    return cw_vocab_find_text(t, buf->data, buf->len);
}

/* Leave in the scratch the symbols that the word ends up as. */
static void merge_word(struct cw_tokenizer *t, const char *word, size_t len) {
    struct scratch *s = &t->scratch;
    int32_t whole = t->pre->flags & PRE_IGNORE_MERGES ? find_word(t, word, len) : -1;
    cw_symbols_clear(s);
    if (whole >= 0) {
        cw_symbols_add(s, 0, len, whole);
        return;
    }
    for (size_t i = 0; i < len; i++) {
        cw_symbols_add(s, i, 1, t->byte_id[(uint8_t)word[i]]);
    }
    cw_symbols_merge(t, word);
}

static int encode_word(void *ctx, const char *word, size_t len, struct cw_err *err) {
    struct encoder *e = ctx;
    struct cw_tokenizer *t = e->t;
    struct scratch *s = &t->scratch;
    size_t pos = (size_t)(word - e->text);
    struct cached_word *slot = NULL;
    struct cached_word now = {0};
    if (len <= CACHED_BYTES) {
        now.head = load_head(word, len);
        now.tail = len > 8 ? load_head(word + 8, len - 8) : 0;
        now.len = (uint8_t)len;
        slot = &s->words[hash_word(hash_word(t->seed ^ len, now.head), now.tail) % CACHED_WORDS];
        if (slot->head == now.head && slot->tail == now.tail && slot->len == len) {
            for (size_t i = 0; i < slot->n; i++) {
                emit(e, pos + slot->pos[i], slot->id[i]);
            }
            return CW_OK;
        }
    }
    merge_word(t, word, len);
    size_t n = 0;
    for (uint32_t i = 0; i != NO_SYMBOL; i = s->symbols[i].next) {
        const struct symbol *symbol = &s->symbols[i];
        int32_t id = symbol->id >= 0 ? symbol->id : t->unk;
        if (id < 0) {
            continue; /* left out */
        }
        emit(e, pos + symbol->pos, id);
        if (n < CACHED_TOKENS) {
            now.pos[n] = (uint8_t)symbol->pos;
            now.id[n] = id;
        }
        n++;
    }
    if (slot != NULL && n <= CACHED_TOKENS) {
        now.n = (uint8_t)n;
        *slot = now;
    }
    return CW_OK;
}

/* The length of the longest valid UTF-8 at the beginning of s[0..n). */
static size_t valid_prefix(const char *s, size_t n) {
    size_t i = 0;
    while (i < n) {
        uint32_t cp;
        int len = (uint8_t)s[i] < 0x80 ? 1 : cw_utf8_decode(s + i, n - i, &cp);
        if (len == 0) {
            break;
        }
        i += (size_t)len;
    }
    return i;
}

/* The patterns want valid UTF-8; a byte that is none is a word of its own. */
static int encode_bytes_bpe(struct encoder *e, size_t begin, size_t end, struct cw_err *err) {
    int rc = CW_OK;
    while (rc == CW_OK && begin < end) {
        size_t n = valid_prefix(e->text + begin, end - begin);
        rc = cw_pretokenize(e->t->pretokenizer, e->text + begin, n, encode_word, e, err);
        begin += n;
        if (rc == CW_OK && begin < end) {
            rc = emit_byte(e, begin, (uint8_t)e->text[begin], err);
            begin++;
        }
    }
    return rc;
}

/* --- the kinds with escaped blanks --- */

/* Where in the text one stands after n bytes of the escaped segment, of which the first `extra`
 * are not in the text at all. */
static size_t advance(const char *text, size_t pos, size_t n, size_t *extra) {
    size_t skipped = n < *extra ? n : *extra;
    *extra -= skipped;
    n -= skipped;
    while (n > 0) {
        n -= text[pos] == ' ' ? BLANK_LEN : 1;
        pos++;
    }
    return pos;
}

/* A character without a token: its bytes if all have one, else the unknown token. */
static int emit_char(struct encoder *e, size_t pos, const char *s, size_t n, struct cw_err *err) {
    const struct cw_tokenizer *t = e->t;
    if (n == BLANK_LEN && memcmp(s, BLANK, BLANK_LEN) == 0 && t->byte_id[' '] >= 0) {
        emit(e, pos, t->byte_id[' ']);
        return CW_OK;
    }
    for (size_t i = 0; i < n; i++) {
        if (t->byte_id[(uint8_t)s[i]] < 0) {
            return emit_byte(e, pos, (uint8_t)s[i], err);
        }
    }
    for (size_t i = 0; i < n; i++) {
        emit(e, e->at != NULL ? pos + i : pos, t->byte_id[(uint8_t)s[i]]);
    }
    return CW_OK;
}

/* Merge what the scratch holds and write it. The segment begins at text + begin; its first `extra`
 * escaped bytes are the blank put in front of the text. */
static int flush_segment(struct encoder *e, size_t begin, size_t extra, struct cw_err *err) {
    struct cw_tokenizer *t = e->t;
    struct scratch *s = &t->scratch;
    const char *text = s->text.data;
    int rc = CW_OK;
    if (s->n_symbols == 0) {
        return CW_OK;
    }
    int32_t whole = -1;
    if (t->kind == KIND_TEXT_BPE && text[0] == '\n') {
        whole = cw_vocab_find_text(t, text, s->text.len); /* a run of newlines needs no merges */
    }
    if (whole >= 0) {
        emit(e, begin, whole);
    } else {
        cw_symbols_merge(t, text);
        size_t pos = begin;
        for (uint32_t i = 0; rc == CW_OK && i != NO_SYMBOL; i = s->symbols[i].next) {
            const struct symbol *symbol = &s->symbols[i];
            const char *piece = text + symbol->pos;
            int32_t id = symbol->id >= 0 ? symbol->id : cw_vocab_find_text(t, piece, symbol->n);
            if (id >= 0) {
                emit(e, pos, id);
            } else {
                rc = emit_char(e, pos, piece, symbol->n, err);
            }
            if (e->at != NULL) {
                pos = advance(e->text, pos, symbol->n, &extra);
            }
        }
    }
    cw_symbols_clear(s);
    cw_buf_clear(&s->text);
    return rc;
}

static void add_char(struct cw_tokenizer *t, const char *s, size_t n) {
    struct scratch *scratch = &t->scratch;
    size_t pos = scratch->text.len;
    cw_buf_add(&scratch->text, s, n);
    cw_symbols_add(scratch, pos, n, t->kind == KIND_SPM ? -1 : cw_vocab_find_text(t, s, n));
}

static int encode_escaped(struct encoder *e, size_t begin, size_t end, struct cw_err *err) {
    struct cw_tokenizer *t = e->t;
    struct scratch *s = &t->scratch;
    size_t segment = begin;
    size_t extra = 0;
    uint32_t last = 0;
    int rc = CW_OK;
    cw_symbols_clear(s);
    cw_buf_clear(&s->text);
    if (t->add_space_prefix && e->after_special) {
        add_char(t, BLANK, BLANK_LEN);
        extra = BLANK_LEN;
        last = 0x2581;
    }
    for (size_t i = begin; rc == CW_OK && i < end;) {
        const char *c = e->text + i;
        uint32_t cp = (uint8_t)*c;
        int n = cp < 0x80 ? 1 : cw_utf8_decode(c, end - i, &cp);
        bool cut = s->n_symbols > 0;
        if (cut && n > 0) {
            uint32_t here = cp == ' ' ? 0x2581 : cp;
            cut = !cw_pair_occurs(t, last, here) ||
                  (t->kind == KIND_TEXT_BPE && (last == '\n') != (here == '\n'));
        }
        if (cut) {
            rc = flush_segment(e, segment, extra, err);
            segment = i;
            extra = 0;
        }
        if (rc != CW_OK) {
            break;
        }
        if (n == 0) {
            rc = emit_byte(e, i, (uint8_t)*c, err);
            segment = i + 1;
            n = 1;
        } else if (cp == ' ') {
            add_char(t, BLANK, BLANK_LEN);
            last = 0x2581;
        } else {
            add_char(t, c, (size_t)n);
            last = cp;
        }
        i += (size_t)n;
    }
    return rc == CW_OK ? flush_segment(e, segment, extra, err) : rc;
}

/* --- fragments --- */

static int encode_fragment(struct encoder *e, size_t begin, size_t end, struct cw_err *err) {
    if (begin == end) {
        return CW_OK;
    }
    int rc = e->t->kind == KIND_BYTE_BPE ? encode_bytes_bpe(e, begin, end, err)
                                         : encode_escaped(e, begin, end, err);
    e->after_special = false;
    return rc;
}

/* Where the template text that begins in span k ends. */
static size_t end_of_template(const struct encoder *e, size_t k, size_t last_span) {
    while (k + 1 < last_span && e->spans[k + 1].message < 0) {
        k++;
    }
    return e->spans[k].end;
}

/* How many of the `n` bytes at i, which lies in span k, a user-defined token may take where typed
 * text has a part in it: it must not swallow the beginning of a control token of the template, or
 * typed text could break the marker in front of it or behind it. */
static size_t room_for_user(const struct encoder *e, size_t i, size_t n, size_t k,
                            size_t last_span) {
    for (; k < last_span && e->spans[k].begin < i + n; k++) {
        if (e->spans[k].message >= 0) {
            continue;
        }
        size_t end = end_of_template(e, k, last_span);
        size_t j = e->spans[k].begin > i ? e->spans[k].begin : i + 1;
        for (; j < i + n && j < e->spans[k].end; j++) {
            int32_t id;
            if (cw_special_match(e->t, e->text + j, 0, end - j, &id) > 0) {
                return j - i;
            }
        }
    }
    return n;
}

/* Spans [first, last), none of which has ids: special tokens and what is between them. */
static int encode_run(struct encoder *e, size_t first, size_t last, struct cw_err *err) {
    const struct cw_span *spans = e->spans;
    size_t end = spans[last - 1].end;
    size_t fragment = spans[first].begin;
    size_t control_end = 0; /* of the stretch of template text that holds i */
    size_t k = first;
    for (size_t i = fragment; i < end;) {
        if (!cw_special_begins(e->t, (uint8_t)e->text[i])) {
            i++;
            continue;
        }
        while (spans[k].end <= i) {
            k++;
        }
        size_t control_room = 0;
        if (spans[k].message < 0) {
            if (control_end <= i) {
                control_end = end_of_template(e, k, last);
            }
            control_room = control_end - i;
        }
        int32_t id = -1;
        size_t n = cw_special_match(e->t, e->text + i, end - i, control_room, &id);
        if (n > spans[k].end - i && n > control_room) {
            size_t room = room_for_user(e, i, n, k, last);
            if (room < n) {
                n = cw_special_match(e->t, e->text + i, room, control_room, &id);
            }
        }
        if (n == 0) {
            i++;
            continue;
        }
        int rc = encode_fragment(e, fragment, i, err);
        if (rc != CW_OK) {
            return rc;
        }
        emit(e, i, id);
        e->after_special = true;
        i += n;
        i += cw_special_strip(e->t, id, e->text + i, end - i);
        fragment = i;
    }
    return encode_fragment(e, fragment, end, err);
}

/* The whole text, within the begin and end tokens. */
static int encode(struct encoder *e, struct cw_err *err) {
    const struct cw_span *spans = e->spans;
    struct cw_ids *ids = e->ids;
    size_t start = ids->n;
    for (size_t k = 0; k < e->n_spans; k++) {
        if (spans[k].end < spans[k].begin || spans[k].end > MAX_TEXT ||
            (k > 0 && spans[k].begin != spans[k - 1].end)) {
            return cw_fail(err, CW_EINVAL, "span %zu of the text, bytes %zu to %zu: %s", k,
                           spans[k].begin, spans[k].end,
                           spans[k].end > MAX_TEXT ? "longer than a text may be" : "out of order");
        }
    }
    int rc = CW_OK;
    for (size_t k = 0; rc == CW_OK && k < e->n_spans;) {
        if (spans[k].ids != NULL) {
            for (size_t i = 0; i < spans[k].n_ids; i++) {
                emit(e, spans[k].begin, spans[k].ids[i]);
                e->after_special = cw_tokenizer_is_control(e->t, spans[k].ids[i]);
            }
            k++;
            continue;
        }
        size_t last = k + 1;
        while (last < e->n_spans && spans[last].ids == NULL) {
            last++;
        }
        rc = encode_run(e, k, last, err);
        k = last;
    }
    if (rc != CW_OK) {
        ids->n = start;
        return rc;
    }
    if (e->lead >= 0) {
        cw_ids_add(ids, e->lead);
    }
    while (e->at != NULL && e->next_span < e->n_spans) {
        e->at[e->next_span++] = ids->n;
    }
    if (e->trail >= 0 && (e->twice || ids->n == start || ids->v[ids->n - 1] != e->trail)) {
        cw_ids_add(ids, e->trail);
    }
    return CW_OK;
}

int cw_tokenizer_encode(struct cw_tokenizer *t, const char *text, size_t len, unsigned flags,
                        struct cw_ids *ids, struct cw_err *err) {
    struct cw_span span = {
        .end = len,
        .message = (flags & CW_TOK_SPECIAL) != 0 ? -1 : 0,
    };
    struct encoder e = {
        .t = t,
        .ids = ids,
        .text = text,
        .lead = (flags & (CW_TOK_BOS | CW_TOK_BOS_EOS)) != 0 && t->add_bos ? t->bos : -1,
        .trail = (flags & CW_TOK_BOS_EOS) != 0 && t->add_eos ? t->eos : -1,
        .twice = true,
        .after_special = true,
        .spans = &span,
        .n_spans = 1,
    };
    return encode(&e, err);
}

int cw_tokenizer_encode_spans(struct cw_tokenizer *t, const char *text, const struct cw_span *spans,
                              size_t n_spans, unsigned flags, struct cw_ids *ids, size_t *at,
                              struct cw_err *err) {
    struct encoder e = {
        .t = t,
        .ids = ids,
        .text = text,
        .lead = (flags & (CW_TOK_BOS | CW_TOK_BOS_EOS)) != 0 && t->add_bos ? t->bos : -1,
        .trail = (flags & CW_TOK_BOS_EOS) != 0 && t->add_eos ? t->eos : -1,
        .after_special = true,
        .spans = spans,
        .n_spans = n_spans,
        .at = at,
    };
    return encode(&e, err);
}
