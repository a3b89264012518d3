/* SPDX-License-Identifier: MIT
 *
 * One forward pass for every architecture of the table, steered by its row (arch.h).
 *
 *     x = embedding(ids)                                    [n, n_embd], the residual stream
 *     for each layer:
 *         x = x + attention(norm(x))
 *         x = x + feed_forward(norm(x))
 *     logits = head(norm(x))
 *
 * Vaswani et al. 2017, in the pre-norm form of Radford et al. 2019. Sizes: D n_embd, H query heads,
 * G key/value heads, dk and dv the widths of a head, F feed-forward width, E experts, K of them
 * used a token. Matrices [out, in] apply as y = W x. */
#include "core/model/forward.h"

#include "core/compute/maths.h"
#include "core/model/hash.h"

#include <stdlib.h>
#include <string.h>

struct cw_scratch {
    int chunk;
    uint64_t bytes;         /* of `block` */
    void *block;            /* what the pointers below lie in */
    float *x;               /* [chunk, D] residual stream */
    float *y;               /* [chunk, D] what a block adds */
    float *q;               /* [chunk, H dk] */
    float *k;               /* [chunk, G dk] */
    float *v;               /* [chunk, G dv] */
    float *up;              /* [chunk, F], or of an expert; in the place of q, k and v */
    float *gate;            /* the same: hidden.x, which takes their product in place */
    float *cos[2], *sin[2]; /* [chunk, n_rot / 2], for global and local layers */
    struct cw_act in;       /* [chunk, D] what q, k, v, gate, up and the head read */
    struct cw_act hidden;   /* [chunk, H dv or F] what the output projection and down read */
    int first_out;          /* row of x where the wanted ones begin */
    int n_out;
    double *freq[2];    /* [n_rot / 2] radians a position */
    float *temperature; /* [chunk] factors of the queries */
    /* Experts: (token, rank) pairs in the order of their experts are slots. */
    float *score;           /* [chunk, E] router */
    int32_t *chosen;        /* [chunk, K] experts by rank */
    float *share;           /* [chunk, K] their weights */
    int32_t *slot;          /* [chunk, K] where the result of (token, rank) stands in `parts` */
    int32_t *token;         /* [chunk K] the token of a slot */
    int32_t *begin;         /* [E + 1] first slot of an expert */
    float *parts;           /* [chunk K, D] results of the experts */
    struct cw_act gathered; /* [chunk, D] the tokens of one expert */
};

/* ---- scratch -----------------------------------------------------------------------------------
 */

/* Hands out 64-byte aligned pieces of the block; with base NULL it only counts. */
struct carver {
    char *base;
    uint64_t at;
    bool wraps;
};

static void *carve(struct carver *c, uint64_t n, uint64_t each, uint64_t size) {
    uint64_t bytes, end;
    if (__builtin_mul_overflow(n, each, &bytes) || __builtin_mul_overflow(bytes, size, &bytes) ||
        __builtin_add_overflow(c->at, (bytes + 63) & ~(uint64_t)63, &end)) {
        c->wraps = true;
        return NULL;
    }
    void *p = c->base != NULL ? c->base + c->at : NULL;
    c->at = end;
    return p;
}

/* Attention's result and the feed-forward's inner values are never there at once. */
static int hidden_width(const struct cw_hparams *hp) {
    int ff = hp->n_experts > 0 ? hp->n_ff_expert : hp->n_ff, heads = hp->n_heads * hp->head_v;
    return ff > heads ? ff : heads;
}

static void carve_all(struct cw_scratch *s, const struct cw_model *m, struct carver *c) {
    const struct cw_hparams *hp = &m->hp;
    uint64_t n = (uint64_t)s->chunk, d = (uint64_t)hp->n_embd;
    uint64_t slots = n * (uint64_t)hp->n_used, pairs = (uint64_t)hp->n_rot / 2;
    uint64_t ff = hp->n_experts > 0 ? (uint64_t)hp->n_ff_expert : (uint64_t)hp->n_ff;
    s->x = carve(c, n, d, sizeof *s->x);
    s->y = carve(c, n, d, sizeof *s->y);
    uint64_t begin = c->at, end;
    s->q = carve(c, n, (uint64_t)hp->n_heads * (uint64_t)hp->head_k, sizeof *s->q);
    s->k = carve(c, n, (uint64_t)hp->n_kv_heads * (uint64_t)hp->head_k, sizeof *s->k);
    s->v = carve(c, n, (uint64_t)hp->n_kv_heads * (uint64_t)hp->head_v, sizeof *s->v);
    end = c->at;
    c->at = begin;
    s->up = carve(c, n, ff, sizeof *s->up);
    c->at = c->at > end ? c->at : end;
    for (int i = 0; i < 2; i++) {
        s->cos[i] = carve(c, n, pairs, sizeof *s->cos[i]);
        s->sin[i] = carve(c, n, pairs, sizeof *s->sin[i]);
        s->freq[i] = carve(c, 1, pairs, sizeof *s->freq[i]);
    }
    s->temperature = carve(c, n, 1, sizeof *s->temperature);
    if (hp->n_experts > 0) {
        s->score = carve(c, n, (uint64_t)hp->n_experts, sizeof *s->score);
        s->chosen = carve(c, slots, 1, sizeof *s->chosen);
        s->share = carve(c, slots, 1, sizeof *s->share);
        s->slot = carve(c, slots, 1, sizeof *s->slot);
        s->token = carve(c, slots, 1, sizeof *s->token);
        s->begin = carve(c, (uint64_t)hp->n_experts + 1, 1, sizeof *s->begin);
        s->parts = carve(c, slots, d, sizeof *s->parts);
    }
}

int cw_scratch_create(struct cw_scratch **out, const struct cw_model *m, int chunk, uint32_t n_ctx,
                      struct cw_err *err) {
    const struct cw_hparams *hp = &m->hp;
    struct cw_scratch *s = cw_calloc(1, sizeof *s);
    struct carver count = {0};
    int rc = CW_OK;
    *out = NULL;
    s->chunk = chunk;
    carve_all(s, m, &count);
    s->bytes = count.at;
    s->block = count.wraps || count.at > SIZE_MAX / 2 ? NULL : cw_sparse_alloc((size_t)count.at);
    if (s->block == NULL) {
        rc = cw_fail(err, CW_ENOMEM, "no memory to evaluate %d tokens at once", chunk);
    } else {
        struct carver c = {.base = s->block};
        carve_all(s, m, &c);
        rc = cw_act_create(&s->in, chunk, hp->n_embd, err);
    }
    if (rc == CW_OK) {
        rc = cw_act_create(&s->hidden, chunk, hidden_width(hp), err);
        s->gate = s->hidden.x;
    }
    if (rc == CW_OK && hp->n_experts > 0) {
        rc = cw_act_create(&s->gathered, chunk, hp->n_embd, err);
    }
    if (rc != CW_OK) {
        cw_scratch_destroy(s);
        return rc;
    }
    if (hp->n_rot > 0) {
        cw_rope_frequencies(m, false, n_ctx, s->freq[0]);
        cw_rope_frequencies(m, true, n_ctx, s->freq[1]);
    }
    *out = s;
    return CW_OK;
}

void cw_scratch_destroy(struct cw_scratch *s) {
    if (s == NULL) {
        return;
    }
    cw_act_free(&s->in);
    cw_act_free(&s->hidden);
    cw_act_free(&s->gathered);
    cw_large_free(s->block, (size_t)s->bytes);
    free(s);
}

/* f32, both kinds of codes, and their scales and sums (compute.h). */
static uint64_t act_bytes(uint64_t n, uint64_t width) {
    return n * width * 6 + n * width / 2 + n * width / 32 * 8 + n * width / 256 * 4 +
           n * width / 16 * 2;
}

uint64_t cw_scratch_bytes(const struct cw_model *m, int chunk) {
    const struct cw_hparams *hp = &m->hp;
    struct cw_scratch s = {.chunk = chunk};
    struct carver count = {0};
    uint64_t n = (uint64_t)chunk, d = (uint64_t)hp->n_embd;
    carve_all(&s, m, &count);
    return count.at + act_bytes(n, d) + act_bytes(n, (uint64_t)hidden_width(hp)) +
           (hp->n_experts > 0 ? act_bytes(n, d) : 0);
}

uint64_t cw_scratch_angles(const struct cw_model *m, const struct cw_scratch *s) {
    size_t bytes = (size_t)(m->hp.n_rot / 2) * sizeof(double);
    uint64_t h = cw_hash(s->freq[1], bytes, cw_hash(s->freq[0], bytes, 0));
    const float magnitudes[2] = {m->hp.rope.magnitude, m->hp.rope_local.magnitude};
    return cw_hash(magnitudes, sizeof magnitudes, h);
}

/* ---- what depends on ids and positions only ----------------------------------------------------
 */

struct embed_job {
    const struct cw_model *m;
    struct cw_scratch *s;
    const struct cw_batch *b;
};

static void embed_token(void *arg, int t, int thread) {
    const struct embed_job *j = arg;
    const struct cw_hparams *hp = &j->m->hp;
    float *x = j->s->x + (size_t)t * (size_t)hp->n_embd;
    (void)thread;
    cw_weight_row(&j->m->embd, j->b->ids[t], x);
    if (j->m->positions.data != NULL) { /* by way of y, which is free now */
        float *p = j->s->y + (size_t)t * (size_t)hp->n_embd;
        cw_weight_row(&j->m->positions, j->b->at[t].pos, p);
        for (int i = 0; i < hp->n_embd; i++) {
            x[i] += p[i];
        }
    }
    for (int i = 0; hp->embd_scale != 1.0f && i < hp->n_embd; i++) {
        x[i] *= hp->embd_scale;
    }
}

/* cos and sin of rows row .. row + n - 1, at positions pos .. pos + n - 1. */
static void fill_angles(const struct cw_model *m, struct cw_scratch *s, uint32_t pos, int row,
                        int n) {
    const struct cw_hparams *hp = &m->hp;
    int pairs = hp->n_rot / 2;
    size_t first = (size_t)row * (size_t)pairs;
    cw_rope_table(s->freq[0], pairs, hp->rope.magnitude, pos, n, s->cos[0] + first,
                  s->sin[0] + first);
    if (hp->window != 0) {
        cw_rope_table(s->freq[1], pairs, hp->rope_local.magnitude, pos, n, s->cos[1] + first,
                      s->sin[1] + first);
    }
}

static void fill_tables(const struct cw_model *m, struct cw_scratch *s, const struct cw_batch *b) {
    const struct cw_hparams *hp = &m->hp;
    for (int row = 0, n; hp->n_rot > 1 && row < b->n; row += n) { /* stretch by stretch */
        for (n = 1; row + n < b->n && b->at[row + n].pos == b->at[row].pos + (uint32_t)n; n++) {
        }
        fill_angles(m, s, b->at[row].pos, row, n);
    }
    /* Queries grow with the logarithm of the position (Llama 4's attention temperature). */
    for (int t = 0; hp->temperature_scale != 0.0f && t < b->n; t++) {
        uint32_t steps = b->at[t].pos / hp->n_ctx_orig;
        s->temperature[t] =
            (float)(1.0 + (double)hp->temperature_scale * cw_log((double)steps + 1.0));
    }
}

/* ---- steps -------------------------------------------------------------------------------------
 */

/* s->in = norm(x), or x itself where the architecture reads the stream as it is. */
static void read_stream(const struct cw_model *m, struct cw_scratch *s, const float *x,
                        const float *w, const float *bias, int n, unsigned kinds) {
    int d = m->hp.n_embd;
    if (w != NULL) {
        cw_norm_act(m->compute, m->arch->norm, x, w, bias, m->hp.eps, n, d, kinds, &s->in);
        return;
    }
    memcpy(s->in.x, x, (size_t)n * (size_t)d * sizeof *x);
    s->in.n = n;
    s->in.width = d;
    s->in.have = 1u << CW_ACT_F32;
    cw_act_quantise(m->compute, &s->in, kinds);
}

/* x += scale * norm(y), the norm only where there is one. */
static void add_to_stream(const struct cw_model *m, float *x, float *y, const float *post_norm,
                          int n) {
    int d = m->hp.n_embd;
    if (post_norm != NULL) {
        cw_norm_rows(m->compute, m->arch->norm, y, post_norm, NULL, m->hp.eps, n, d, y);
    }
    cw_add_scaled(m->compute, x, y, m->hp.residual_scale, (size_t)n * (size_t)d);
}

/* Norm of queries or keys, then their rotation: rows t0 .. t0 + n - 1 of the chunk, at x. */
static void turn_heads(const struct cw_model *m, const struct cw_scratch *s,
                       const struct cw_layer *l, float *x, int n_heads, const float *norm, int t0,
                       int n) {
    const struct cw_hparams *hp = &m->hp;
    int width = n_heads * hp->head_k, pairs = hp->n_rot / 2;
    if (norm != NULL) {
        bool all = m->arch->qk_norm == CW_QK_NORM_ALL;
        cw_norm_rows(m->compute, CW_NORM_RMS, x, norm, NULL, hp->eps, all ? n : n * n_heads,
                     all ? width : hp->head_k, x);
    }
    if (l->rotates) {
        cw_rope(m->compute, x, (size_t)width, n, n_heads, hp->head_k, hp->n_rot,
                m->arch->rope == CW_ROPE_NEOX, s->cos[l->local] + (size_t)t0 * (size_t)pairs,
                s->sin[l->local] + (size_t)t0 * (size_t)pairs);
    }
}

static void scale_queries(const struct cw_model *m, struct cw_scratch *s, int t0, int n) {
    int width = m->hp.n_heads * m->hp.head_k;
    for (int t = 0; t < n; t++) {
        float f = s->temperature[t0 + t], *q = s->q + (size_t)t * (size_t)width;
        for (int i = 0; f != 1.0f && i < width; i++) {
            q[i] *= f;
        }
    }
}

/* s->y = attention(norm(x)) for rows t0 .. n - 1; keys and values of all n rows are stored. */
static void attention(const struct cw_model *m, struct cw_scratch *s, const struct cw_layer *l,
                      const struct cw_kv_layer *kv, const struct cw_batch *b, int t0) {
    const struct cw_hparams *hp = &m->hp;
    struct cw_compute *c = m->compute;
    int d = hp->n_embd, rows = b->n - t0;
    size_t ldq = (size_t)hp->n_heads * (size_t)hp->head_k;
    size_t ldk = (size_t)hp->n_kv_heads * (size_t)hp->head_k;
    size_t ldv = (size_t)hp->n_kv_heads * (size_t)hp->head_v;
    size_t ldo = (size_t)hp->n_heads * (size_t)hp->head_v;
    const struct cw_product p[3] = {
        {&l->k, &s->in, s->k, ldk}, {&l->v, &s->in, s->v, ldv}, {&l->q, &s->in, s->q, ldq}};

    read_stream(m, s, s->x, l->attn_norm, l->attn_norm_bias, b->n, l->attn_kinds);
    cw_matmul(c, p, t0 == 0 ? 3 : 2);
    turn_heads(m, s, l, s->k, hp->n_kv_heads, l->k_norm, 0, b->n);
    cw_kv_store(c, kv, b->at, b->n, s->k, ldk, s->v, ldv);
    if (rows == 0) {
        return;
    }
    if (t0 > 0) { /* the queries of the rows that are wanted, by themselves */
        read_stream(m, s, s->x + (size_t)t0 * (size_t)d, l->attn_norm, l->attn_norm_bias, rows,
                    l->attn_kinds);
        cw_matmul(c, p + 2, 1);
    }
    turn_heads(m, s, l, s->q, hp->n_heads, l->q_norm, t0, rows);
    if (hp->temperature_scale != 0.0f) {
        scale_queries(m, s, t0, rows);
    }
    const struct cw_attention a = {
        .kv = kv,
        .q = s->q,
        .ldq = ldq,
        .y = s->hidden.x,
        .ldy = ldo,
        .at = b->at + t0,
        .n = rows,
        .n_heads = hp->n_heads,
        .scale = hp->attn_scale,
        .softcap = hp->softcap_attn,
        .window = l->local ? hp->window : 0,
        .sinks = l->sinks,
    };
    cw_attend(c, &a);
    s->hidden.n = rows;
    s->hidden.width = (int)ldo;
    s->hidden.have = 1u << CW_ACT_F32;
    cw_act_quantise(c, &s->hidden, l->out_kinds);
    cw_matmul(c, &(struct cw_product){&l->out, &s->hidden, s->y, (size_t)d}, 1);
}

/* s->y = down(act(gate in) * (up in)), or down(gelu(up in)), n rows. */
static void feed_forward(const struct cw_model *m, struct cw_scratch *s, const struct cw_layer *l,
                         int n) {
    struct cw_compute *c = m->compute;
    size_t ff = (size_t)m->hp.n_ff, d = (size_t)m->hp.n_embd;
    const struct cw_product p[2] = {{&l->up, &s->in, s->up, ff}, {&l->gate, &s->in, s->gate, ff}};
    if (l->gate.data != NULL) {
        cw_matmul(c, p, 2);
        cw_glu_act(c, m->arch->glu, s->gate, ff, s->up, ff, n, (int)ff, l->down_kinds, &s->hidden);
    } else {
        cw_matmul(c, p, 1);
        cw_gelu_act(c, s->up, n, (int)ff, l->down_kinds, &s->hidden);
    }
    cw_matmul(c, &(struct cw_product){&l->down, &s->hidden, s->y, d}, 1);
}

/* ---- experts -----------------------------------------------------------------------------------
 */

/* The n_used best of score[0..n_experts), best first, equal ones by lower index; their softmax.
 * (Softmax over all, the best divided by their sum, is the same number.) */
static void choose(const float *score, int n_experts, int n_used, int32_t *chosen, float *share) {
    int n = 0;
    for (int e = 0; e < n_experts; e++) {
        if (n == n_used && !(score[e] > score[chosen[n - 1]])) {
            continue;
        }
        int r = n < n_used ? n++ : n - 1;
        for (; r > 0 && score[e] > score[chosen[r - 1]]; r--) {
            chosen[r] = chosen[r - 1];
        }
        chosen[r] = e;
    }
    float sum = 0.0f;
    for (int r = 0; r < n_used; r++) {
        share[r] = cw_expf(score[chosen[r]] - score[chosen[0]]);
        sum += share[r];
    }
    for (int r = 0; r < n_used; r++) {
        share[r] /= sum;
    }
}

/* Slots: counting sort of (token, rank) by expert. */
static void assign_slots(const struct cw_hparams *hp, struct cw_scratch *s, int n) {
    int k = hp->n_used, slots = n * k;
    memset(s->begin, 0, ((size_t)hp->n_experts + 1) * sizeof *s->begin);
    for (int i = 0; i < slots; i++) {
        s->begin[s->chosen[i] + 1]++;
    }
    for (int e = 0; e < hp->n_experts; e++) {
        s->begin[e + 1] += s->begin[e];
    }
    for (int i = 0; i < slots; i++) {
        s->slot[i] = s->begin[s->chosen[i]]++;
        s->token[s->slot[i]] = i / k;
    }
    for (int e = hp->n_experts; e > 0; e--) { /* the counting moved each to its end */
        s->begin[e] = s->begin[e - 1];
    }
    s->begin[0] = 0;
}

/* parts[begin..] = expert e of its tokens. */
static void run_expert(const struct cw_model *m, struct cw_scratch *s, const struct cw_layer *l,
                       int e) {
    struct cw_compute *c = m->compute;
    int first = s->begin[e], n = s->begin[e + 1] - first;
    size_t d = (size_t)m->hp.n_embd, ff = (size_t)m->hp.n_ff_expert;
    if (n == 0) {
        return;
    }
    for (int i = 0; i < n; i++) {
        memcpy(s->gathered.x + (size_t)i * d, s->in.x + (size_t)s->token[first + i] * d,
               d * sizeof(float));
    }
    s->gathered.n = n;
    s->gathered.width = (int)d;
    s->gathered.have = 1u << CW_ACT_F32;
    cw_act_quantise(c, &s->gathered, l->experts_kinds);
    const struct cw_product p[2] = {{&l->experts_up[e], &s->gathered, s->up, ff},
                                    {&l->experts_gate[e], &s->gathered, s->gate, ff}};
    cw_matmul(c, p, 2);
    cw_glu_act(c, m->arch->glu, s->gate, ff, s->up, ff, n, (int)ff, l->experts_down_kinds,
               &s->hidden);
    cw_matmul(
        c, &(struct cw_product){&l->experts_down[e], &s->hidden, s->parts + (size_t)first * d, d},
        1);
}

struct sum_job {
    const struct cw_model *m;
    struct cw_scratch *s;
};

/* Rule 4: the experts of a token are added by rank. */
static void sum_experts(void *arg, int t, int thread) {
    const struct sum_job *j = arg;
    const struct cw_scratch *s = j->s;
    int d = j->m->hp.n_embd, k = j->m->hp.n_used;
    float *y = s->y + (size_t)t * (size_t)d;
    (void)thread;
    for (int r = 0; r < k; r++) {
        const float *part = s->parts + (size_t)s->slot[t * k + r] * (size_t)d;
        float w = s->share[t * k + r];
        for (int i = 0; i < d; i++) {
            y[i] = r == 0 ? w * part[i] : y[i] + w * part[i];
        }
    }
}

/* s->y = sum of share * expert(in) over the chosen experts, n rows (Shazeer et al. 2017). */
static void mixture(const struct cw_model *m, struct cw_scratch *s, const struct cw_layer *l,
                    int n) {
    const struct cw_hparams *hp = &m->hp;
    int experts = hp->n_experts, k = hp->n_used;
    cw_matmul(m->compute, &(struct cw_product){&l->router, &s->in, s->score, (size_t)experts}, 1);
    for (int t = 0; t < n; t++) {
        choose(s->score + (size_t)t * (size_t)experts, experts, k, s->chosen + (size_t)t * k,
               s->share + (size_t)t * k);
    }
    assign_slots(hp, s, n);
    for (int e = 0; e < experts; e++) {
        run_expert(m, s, l, e);
    }
    struct sum_job j = {m, s};
    cw_compute_run(m->compute, sum_experts, &j, n);
}

/* ---- the pass ----------------------------------------------------------------------------------
 */

/* One layer over the chunk; only rows from t0 on go beyond the cache. */
static void run_layer(const struct cw_model *m, struct cw_scratch *s, const struct cw_layer *l,
                      const struct cw_kv_layer *kv, const struct cw_batch *b, int t0) {
    int n = b->n - t0;
    float *x = s->x + (size_t)t0 * (size_t)m->hp.n_embd;
    unsigned kinds = m->hp.n_experts > 0 ? l->router_kinds | l->experts_kinds : l->ffn_kinds;

    attention(m, s, l, kv, b, t0);
    if (n == 0) {
        return;
    }
    if (m->hp.parallel) { /* both blocks read the stream as it was */
        read_stream(m, s, x, l->ffn_norm, l->ffn_norm_bias, n, kinds);
        add_to_stream(m, x, s->y, l->post_attn_norm, n);
    } else {
        add_to_stream(m, x, s->y, l->post_attn_norm, n);
        read_stream(m, s, x, l->ffn_norm, l->ffn_norm_bias, n, kinds);
    }
    if (m->hp.n_experts > 0) {
        mixture(m, s, l, n);
    } else {
        feed_forward(m, s, l, n);
    }
    add_to_stream(m, x, s->y, l->post_ffn_norm, n);
}

int cw_forward(const struct cw_model *m, struct cw_scratch *s, const struct cw_kv_layer *kv,
               const struct cw_batch *b) {
    struct embed_job j = {m, s, b};
    cw_compute_run(m->compute, embed_token, &j, b->n);
    fill_tables(m, s, b);
    for (int i = 0; i < m->hp.n_layers; i++) {
        if (b->stop != NULL && b->stop(b->arg)) {
            return CW_ECANCEL;
        }
        bool last = i == m->hp.n_layers - 1;
        run_layer(m, s, &m->layers[i], &kv[i], b, last ? b->n - b->n_out : 0);
    }
    s->first_out = b->n - b->n_out;
    s->n_out = b->n_out;
    return CW_OK;
}

void cw_forward_logits(const struct cw_model *m, struct cw_scratch *s, int first, int n, float *y) {
    const struct cw_hparams *hp = &m->hp;
    size_t d = (size_t)hp->n_embd, count = (size_t)n * (size_t)hp->n_vocab;
    const float *x = s->x + (size_t)(s->first_out + first) * d;
    read_stream(m, s, x, m->output_norm, m->output_norm_bias, n, m->head_kinds);
    cw_matmul(m->compute, &(struct cw_product){&m->head, &s->in, y, (size_t)hp->n_vocab}, 1);
    if (hp->logit_scale != 1.0f) {
        cw_scale(m->compute, y, hp->logit_scale, count);
    }
    if (hp->softcap_out != 0.0f) {
        cw_softcap(m->compute, y, hp->softcap_out, count);
    }
}
