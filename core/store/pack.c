/* SPDX-License-Identifier: MIT
 *
 * Tokens, settings and figures as bytes: little-endian, each with a format number in front, nothing
 * rounded. Numbers that are mostly small are varints (seven bits a byte, low bits first).
 */
#include <string.h>

#include "core/store/rows.h"

enum { FORMAT = 1 };

/* ---- writing ---- */

static void put_byte(struct cw_buf *out, unsigned v) {
    cw_buf_putc(out, (char)(unsigned char)v);
}

static void put_fixed(struct cw_buf *out, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) {
        put_byte(out, (unsigned)(v >> 8 * i) & 0xff);
    }
}

static void put_varint(struct cw_buf *out, uint64_t v) {
    while (v >= 0x80) {
        put_byte(out, (unsigned)(v & 0x7f) | 0x80);
        v >>= 7;
    }
    put_byte(out, (unsigned)v);
}

static void put_signed(struct cw_buf *out, int64_t v) {
    put_varint(out, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

static void put_float(struct cw_buf *out, float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    put_fixed(out, bits, 4);
}

static void put_double(struct cw_buf *out, double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    put_fixed(out, bits, 8);
}

/* ---- reading: past the end everything is 0 and `bad` is set ---- */

struct reader {
    const unsigned char *p;
    size_t left;
    bool bad;
};

static unsigned get_byte(struct reader *r) {
    if (r->left == 0) {
        r->bad = true;
        return 0;
    }
    r->left--;
    return *r->p++;
}

static uint64_t get_fixed(struct reader *r, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++) {
        v |= (uint64_t)get_byte(r) << 8 * i;
    }
    return v;
}

static uint64_t get_varint(struct reader *r) {
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        unsigned b = get_byte(r);
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            return v;
        }
    }
    r->bad = true;
    return 0;
}

static int64_t get_signed(struct reader *r) {
    uint64_t v = get_varint(r);
    return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

static int32_t get_int32(struct reader *r) {
    int64_t v = get_signed(r);
    if (v < INT32_MIN || v > INT32_MAX) {
        r->bad = true;
        return 0;
    }
    return (int32_t)v;
}

static float get_float(struct reader *r) {
    uint32_t bits = (uint32_t)get_fixed(r, 4);
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static double get_double(struct reader *r) {
    uint64_t bits = get_fixed(r, 8);
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

static struct reader reader_of(const void *data, size_t len) {
    struct reader r = {data, len, false};
    r.bad = get_byte(&r) != FORMAT;
    return r;
}

/* ---- tokens ---- */

enum { THINKING = 1, DETAIL = 2, MARK_SHIFT = 4 };

static bool is_zero(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits == 0;
}

void store_pack_tokens(struct cw_buf *out, const struct cw_store_token *tokens, size_t n) {
    put_byte(out, FORMAT);
    for (size_t i = 0; i < n; i++) {
        const struct cw_draw *d = &tokens[i].draw;
        int n_alternatives = d->n_alternatives < 0                   ? 0
                             : d->n_alternatives > CW_N_ALTERNATIVES ? CW_N_ALTERNATIVES
                                                                     : d->n_alternatives;
        bool detail = n_alternatives > 0 || !is_zero(d->p_raw) || !is_zero(d->entropy);
        put_byte(out, (tokens[i].thinking ? THINKING : 0) | (detail ? DETAIL : 0) |
                          (tokens[i].mark & 15u) << MARK_SHIFT);
        put_signed(out, d->id);
        put_varint(out, tokens[i].n_text);
        put_signed(out, d->rank);
        put_float(out, d->p);
        if (!detail) {
            continue;
        }
        put_float(out, d->p_raw);
        put_float(out, d->entropy);
        unsigned kept = 0; /* which have a probability after the samplers */
        for (int a = 0; a < n_alternatives; a++) {
            kept |= is_zero(d->alternatives[a].p) ? 0 : 1u << a;
        }
        put_byte(out, (unsigned)n_alternatives);
        put_byte(out, kept);
        for (int a = 0; a < n_alternatives; a++) {
            put_signed(out, d->alternatives[a].id);
            put_float(out, d->alternatives[a].p_raw);
            if (kept >> a & 1) {
                put_float(out, d->alternatives[a].p);
            }
        }
    }
}

bool store_unpack_tokens(const void *data, size_t len, struct cw_store_token *tokens, size_t n) {
    struct reader r = reader_of(data, len);
    for (size_t i = 0; i < n && !r.bad; i++) {
        struct cw_store_token *t = &tokens[i];
        memset(t, 0, sizeof *t);
        unsigned flags = get_byte(&r);
        t->thinking = (flags & THINKING) != 0;
        t->mark = (uint8_t)(flags >> MARK_SHIFT);
        t->draw.id = get_int32(&r);
        uint64_t n_text = get_varint(&r);
        t->n_text = (uint32_t)n_text;
        t->draw.rank = get_int32(&r);
        t->draw.p = get_float(&r);
        r.bad = r.bad || n_text > UINT32_MAX || t->draw.id < 0;
        if ((flags & DETAIL) == 0) {
            continue;
        }
        t->draw.p_raw = get_float(&r);
        t->draw.entropy = get_float(&r);
        unsigned n_alternatives = get_byte(&r);
        unsigned kept = get_byte(&r);
        if (n_alternatives > CW_N_ALTERNATIVES) {
            return false;
        }
        t->draw.n_alternatives = (int)n_alternatives;
        for (unsigned a = 0; a < n_alternatives; a++) {
            t->draw.alternatives[a].id = get_int32(&r);
            t->draw.alternatives[a].p_raw = get_float(&r);
            t->draw.alternatives[a].p = kept >> a & 1 ? get_float(&r) : 0.0f;
            r.bad = r.bad || t->draw.alternatives[a].id < 0;
        }
    }
    return !r.bad && r.left == 0;
}

/* ---- settings ---- */

void store_pack_sampling(struct cw_buf *out, const struct cw_sampling *s) {
    int n_bias = s->n_bias < 0 ? 0 : s->n_bias > CW_MAX_BIAS ? CW_MAX_BIAS : s->n_bias;
    put_byte(out, FORMAT);
    put_float(out, s->temp);
    put_float(out, s->top_p);
    put_signed(out, s->top_k);
    put_float(out, s->min_p);
    put_float(out, s->typical_p);
    put_float(out, s->penalty_repeat);
    put_float(out, s->penalty_frequency);
    put_float(out, s->penalty_presence);
    put_signed(out, s->penalty_last_n);
    put_float(out, s->dry_multiplier);
    put_float(out, s->dry_base);
    put_signed(out, s->dry_allowed_length);
    put_signed(out, s->dry_last_n);
    put_float(out, s->xtc_probability);
    put_float(out, s->xtc_threshold);
    put_varint(out, (uint64_t)n_bias);
    for (int i = 0; i < n_bias; i++) {
        put_signed(out, s->bias[i].id);
        put_float(out, s->bias[i].bias);
    }
}

static void get_sampling(struct reader *r, struct cw_sampling *s) {
    memset(s, 0, sizeof *s); /* compared as bytes elsewhere */
    s->temp = get_float(r);
    s->top_p = get_float(r);
    s->top_k = get_int32(r);
    s->min_p = get_float(r);
    s->typical_p = get_float(r);
    s->penalty_repeat = get_float(r);
    s->penalty_frequency = get_float(r);
    s->penalty_presence = get_float(r);
    s->penalty_last_n = get_int32(r);
    s->dry_multiplier = get_float(r);
    s->dry_base = get_float(r);
    s->dry_allowed_length = get_int32(r);
    s->dry_last_n = get_int32(r);
    s->xtc_probability = get_float(r);
    s->xtc_threshold = get_float(r);
    uint64_t n_bias = get_varint(r);
    if (n_bias > CW_MAX_BIAS) {
        r->bad = true;
        return;
    }
    s->n_bias = (int32_t)n_bias;
    for (int32_t i = 0; i < s->n_bias; i++) {
        s->bias[i].id = get_int32(r);
        s->bias[i].bias = get_float(r);
    }
}

bool store_unpack_sampling(const void *data, size_t len, struct cw_sampling *s) {
    struct reader r = reader_of(data, len);
    get_sampling(&r, s);
    return !r.bad && r.left == 0;
}

void store_pack_change(struct cw_buf *out, const struct cw_store_change *c) {
    struct cw_buf part = {0};
    put_byte(out, FORMAT);
    put_varint(out, c->token);
    put_varint(out, c->offset);
    for (int i = 0; i < 2; i++) {
        cw_buf_clear(&part);
        store_pack_sampling(&part, i == 0 ? &c->from : &c->to);
        put_varint(out, part.len);
        cw_buf_add(out, part.data, part.len);
    }
    cw_buf_free(&part);
}

bool store_unpack_change(const void *data, size_t len, struct cw_store_change *c) {
    struct reader r = reader_of(data, len);
    memset(c, 0, sizeof *c);
    c->token = get_varint(&r);
    c->offset = get_varint(&r);
    for (int i = 0; i < 2; i++) {
        uint64_t n = get_varint(&r);
        if (r.bad || n > r.left || !store_unpack_sampling(r.p, n, i == 0 ? &c->from : &c->to)) {
            return false;
        }
        r.p += n;
        r.left -= n;
    }
    return r.left == 0;
}

/* ---- figures ---- */

void store_pack_figures(struct cw_buf *out, const struct cw_figures *f) {
    put_byte(out, FORMAT);
    put_varint(out, f->n_prompt);
    put_varint(out, f->n_reused);
    put_varint(out, f->n_evaluated);
    put_varint(out, f->n_tokens);
    put_varint(out, f->n_ctx_used);
    put_varint(out, f->n_ctx);
    put_double(out, f->prompt_s);
    put_double(out, f->ttft_s);
    put_double(out, f->first_s);
    put_double(out, f->last_s);
    put_double(out, f->eval_s);
    put_double(out, f->tps);
}

bool store_unpack_figures(const void *data, size_t len, struct cw_figures *f) {
    struct reader r = reader_of(data, len);
    memset(f, 0, sizeof *f);
    f->n_prompt = (size_t)get_varint(&r);
    f->n_reused = (size_t)get_varint(&r);
    f->n_evaluated = (size_t)get_varint(&r);
    f->n_tokens = (size_t)get_varint(&r);
    f->n_ctx_used = (size_t)get_varint(&r);
    f->n_ctx = (size_t)get_varint(&r);
    f->prompt_s = get_double(&r);
    f->ttft_s = get_double(&r);
    f->first_s = get_double(&r);
    f->last_s = get_double(&r);
    f->eval_s = get_double(&r);
    f->tps = get_double(&r);
    return !r.bad && r.left == 0;
}
