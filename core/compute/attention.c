/* SPDX-License-Identifier: MIT
 *
 * Causal attention over the cache, rule 3: chunks of 256 cells that begin at absolute positions
 * divisible by 256, merged in order, whatever the path.
 *
 * A row is a query of one token and one head; the rows that read the same KV head stand together,
 * so that each key and value is read once for all of them. With many rows (prefill) a unit of work
 * is a KV head and up to CW_ATTEND_ROWS rows, which walks its chunks in order. With few (decode)
 * a unit is one chunk, its results are kept apart and merged in order afterwards: the same
 * operations in the same order for each row.
 */
#include "core/compute/compute_impl.h"

#include "chinwag/session.h"

#include <string.h>

static size_t block16_bytes(int kind, int head) {
    return kind == CW_KV_Q8_0 ? (size_t)head * 17 : (size_t)head * 32;
}

/* Chunk after chunk, and in a chunk KV head after KV head, its keys and then its values: what is
 * touched grows with the conversation, and what a unit of attention reads lies together. */
static uint8_t *chunk_k(const struct cw_kv_layer *l, uint32_t chunk, int h) {
    size_t both = 16 * (block16_bytes(l->kind, l->head_k) + block16_bytes(l->kind, l->head_v));
    return (uint8_t *)l->base + ((size_t)chunk * (size_t)l->n_kv_heads + (size_t)h) * both;
}

static uint8_t *chunk_v(const struct cw_kv_layer *l, uint32_t chunk, int h) {
    return chunk_k(l, chunk, h) + 16 * block16_bytes(l->kind, l->head_k);
}

uint64_t cw_kv_layer_bytes(uint32_t n_cells, int n_kv_heads, int head_k, int head_v, int kind) {
    if (head_k < 1 || head_v < 1 || head_k > CW_MAX_HEAD || head_v > CW_MAX_HEAD ||
        (kind == CW_KV_Q8_0 && (head_k % 32 != 0 || head_v % 32 != 0))) {
        return 0;
    }
    uint64_t chunks = ((uint64_t)n_cells + CW_CHUNK - 1) / CW_CHUNK;
    return 16 * chunks * (uint64_t)n_kv_heads *
           (block16_bytes(kind, head_k) + block16_bytes(kind, head_v));
}

/* ---- storing --------------------------------------------------------------------------------- */

#define STORE_CELLS                                                                                \
    64 /* of one unit, beginning at a position divisible by it; divides CW_CHUNK                   \
        */

struct store_job {
    const struct cw_kernels *kernels;
    const struct cw_kv_layer *l;
    uint32_t pos, end;
    const float *k, *v;
    size_t ldk, ldv;
};

static void store_unit(void *arg, int unit, int thread) {
    const struct store_job *j = arg;
    const struct cw_kv_layer *l = j->l;
    int h = unit % l->n_kv_heads;
    uint32_t first = (j->pos / STORE_CELLS + (uint32_t)(unit / l->n_kv_heads)) * STORE_CELLS;
    uint32_t last = first + STORE_CELLS;
    first = first < j->pos ? j->pos : first;
    last = last > j->end ? j->end : last;
    size_t at = first - j->pos;
    uint32_t chunk = first / CW_CHUNK, cell = first % CW_CHUNK;
    j->kernels->store_k(chunk_k(l, chunk, h), l->kind, l->head_k, cell, (int)(last - first),
                        j->k + at * j->ldk + (size_t)h * (size_t)l->head_k, j->ldk);
    j->kernels->store_v(chunk_v(l, chunk, h), l->kind, l->head_v, cell, (int)(last - first),
                        j->v + at * j->ldv + (size_t)h * (size_t)l->head_v, j->ldv);
}

void cw_kv_store(struct cw_compute *c, const struct cw_kv_layer *l, uint32_t pos, int n,
                 const float *k, size_t ldk, const float *v, size_t ldv) {
    if (n < 1) {
        return;
    }
    struct store_job j = {c->k, l, pos, pos + (uint32_t)n, k, v, ldk, ldv};
    int units = (int)((j.end - 1) / STORE_CELLS - pos / STORE_CELLS + 1) * l->n_kv_heads;
    if (n < 16) {
        for (int i = 0; i < units; i++) {
            store_unit(&j, i, 0);
        }
        return;
    }
    cw_pool_run(c->pool, store_unit, &j, units);
}

/* ---- attention ------------------------------------------------------------------------------- */

struct attend_job {
    const struct cw_kernels *kernels;
    const struct cw_attention *a;
    int group;    /* query heads of a KV head */
    int n_rows;   /* rows of a KV head: n * group, token after token */
    int n_blocks; /* of up to CW_ATTEND_ROWS rows */
    float *scratch;
    size_t scratch_floats; /* a thread */
    uint32_t chunk0;       /* first chunk of this wave */
    int n_chunks;          /* of this wave */
    float *partial;        /* results of the wave: see partial_at */
    float *running;        /* m and l of every row, [n_kv, n_rows, 2] */
};

/* The range of cells that row `row` sees. */
static uint32_t first_cell(const struct attend_job *j, int row) {
    uint32_t p = j->a->pos + (uint32_t)(row / j->group);
    return j->a->window > 0 && p >= j->a->window ? p - j->a->window + 1 : 0;
}

static uint32_t end_cell(const struct attend_job *j, int row) {
    return j->a->pos + (uint32_t)(row / j->group) + 1;
}

/* Where row `row` of KV head h has its query and its result. */
static size_t head_of(const struct attend_job *j, int h, int row) {
    return (size_t)(h * j->group + row % j->group);
}

static float *result_at(const struct attend_job *j, int h, int row) {
    return j->a->y + (size_t)(row / j->group) * j->a->ldy +
           head_of(j, h, row) * (size_t)j->a->kv->head_v;
}

/* Rows row0 .. row1 - 1 of KV head h against one chunk: those that see any of it. Returns how many,
 * and their numbers in rows[]; m, l and o receive their results. */
static int attend_chunk(const struct attend_job *j, int h, int row0, int row1, uint32_t chunk,
                        int thread, int *rows, float *m, float *l, float *o) {
    const struct cw_attention *a = j->a;
    const struct cw_kv_layer *kv = a->kv;
    const float *q[CW_ATTEND_ROWS];
    int lo[CW_ATTEND_ROWS], hi[CW_ATTEND_ROWS], n = 0;
    uint32_t base = chunk * CW_CHUNK;
    for (int row = row0; row < row1; row++) {
        uint32_t first = first_cell(j, row), end = end_cell(j, row);
        if (first >= base + CW_CHUNK || end <= base) {
            continue;
        }
        lo[n] = first > base ? (int)(first - base) : 0;
        hi[n] = end < base + CW_CHUNK ? (int)(end - base) : CW_CHUNK;
        q[n] = a->q + (size_t)(row / j->group) * a->ldq + head_of(j, h, row) * (size_t)kv->head_k;
        rows[n++] = row;
    }
    if (n > 0) {
        struct cw_attend_job job = {
            .k = chunk_k(kv, chunk, h),
            .v = chunk_v(kv, chunk, h),
            .kind = kv->kind,
            .head_k = kv->head_k,
            .head_v = kv->head_v,
            .n_rows = n,
            .q = q,
            .lo = lo,
            .hi = hi,
            .scale = a->scale,
            .softcap = a->softcap,
            .m = m,
            .l = l,
            .o = o,
            .scratch = j->scratch + (size_t)thread * j->scratch_floats,
        };
        j->kernels->attend(&job);
    }
    return n;
}

/* Bring one chunk's result of a row into the row's running one; the first is taken as it is. */
static void add_chunk(const struct attend_job *j, int h, int row, uint32_t chunk, float m, float l,
                      const float *o, float *big) {
    float *y = result_at(j, h, row);
    int head_v = j->a->kv->head_v;
    if (chunk == first_cell(j, row) / CW_CHUNK) {
        big[0] = m;
        big[1] = l;
        memcpy(y, o, (size_t)head_v * sizeof *y);
    } else {
        j->kernels->merge(&big[0], &big[1], y, m, l, o, head_v);
    }
}

/* The sink, a last score without a value, and the division. */
static void finish_row(const struct attend_job *j, int h, int row, float *big) {
    float *y = result_at(j, h, row);
    int head_v = j->a->kv->head_v;
    if (j->a->sinks) {
        static const float no_value[CW_MAX_HEAD];
        j->kernels->merge(&big[0], &big[1], y, j->a->sinks[head_of(j, h, row)], 1.0f, no_value,
                          head_v);
    }
    for (int k = 0; k < head_v; k++) {
        y[k] = y[k] / big[1];
    }
}

/* Many rows: unit = block of rows x KV head; the last blocks, which see most, come first. */
static void block_unit(void *arg, int unit, int thread) {
    const struct attend_job *j = arg;
    int h = unit % j->a->kv->n_kv_heads;
    int block = j->n_blocks - 1 - unit / j->a->kv->n_kv_heads;
    int row0 = block * CW_ATTEND_ROWS;
    int row1 = row0 + CW_ATTEND_ROWS < j->n_rows ? row0 + CW_ATTEND_ROWS : j->n_rows;
    int rows[CW_ATTEND_ROWS];
    float m[CW_ATTEND_ROWS], l[CW_ATTEND_ROWS], big[CW_ATTEND_ROWS][2];
    size_t floats = cw_attend_scratch(j->a->kv->head_k, j->a->kv->head_v);
    float *o = j->scratch + (size_t)thread * j->scratch_floats + floats -
               (size_t)CW_ATTEND_ROWS * (size_t)j->a->kv->head_v;
    uint32_t last = (end_cell(j, row1 - 1) - 1) / CW_CHUNK;
    for (uint32_t chunk = first_cell(j, row0) / CW_CHUNK; chunk <= last; chunk++) {
        int n = attend_chunk(j, h, row0, row1, chunk, thread, rows, m, l, o);
        for (int i = 0; i < n; i++) {
            add_chunk(j, h, rows[i], chunk, m[i], l[i], o + (size_t)i * (size_t)j->a->kv->head_v,
                      big[rows[i] - row0]);
        }
    }
    for (int row = row0; row < row1; row++) {
        finish_row(j, h, row, big[row - row0]);
    }
}

/* Few rows: unit = chunk x block of rows x KV head. A partial is m[ROWS], l[ROWS], o[ROWS][head_v],
 * packed for the rows that see the chunk. */
static size_t partial_floats(const struct attend_job *j) {
    int rows = j->n_rows < CW_ATTEND_ROWS ? j->n_rows : CW_ATTEND_ROWS;
    return (size_t)rows * (size_t)(j->a->kv->head_v + 2);
}

static float *partial_at(const struct attend_job *j, int unit) {
    return j->partial + (size_t)unit * partial_floats(j);
}

static void chunk_unit(void *arg, int unit, int thread) {
    const struct attend_job *j = arg;
    int per_chunk = j->a->kv->n_kv_heads * j->n_blocks;
    int h = unit % per_chunk / j->n_blocks, block = unit % j->n_blocks;
    int row0 = block * CW_ATTEND_ROWS;
    int row1 = row0 + CW_ATTEND_ROWS < j->n_rows ? row0 + CW_ATTEND_ROWS : j->n_rows;
    int rows[CW_ATTEND_ROWS], cap = j->n_rows < CW_ATTEND_ROWS ? j->n_rows : CW_ATTEND_ROWS;
    float *m = partial_at(j, unit);
    attend_chunk(j, h, row0, row1, j->chunk0 + (uint32_t)(unit / per_chunk), thread, rows, m,
                 m + cap, m + 2 * cap);
}

/* The wave's partials, chunk after chunk. */
static void merge_wave(const struct attend_job *j) {
    int n_kv = j->a->kv->n_kv_heads, head_v = j->a->kv->head_v;
    int cap = j->n_rows < CW_ATTEND_ROWS ? j->n_rows : CW_ATTEND_ROWS;
    for (int unit = 0; unit < j->n_chunks * n_kv * j->n_blocks; unit++) {
        int h = unit % (n_kv * j->n_blocks) / j->n_blocks,
            row0 = unit % j->n_blocks * CW_ATTEND_ROWS;
        uint32_t chunk = j->chunk0 + (uint32_t)(unit / (n_kv * j->n_blocks));
        uint32_t base = chunk * CW_CHUNK;
        const float *m = partial_at(j, unit);
        int n = 0;
        for (int row = row0; row < row0 + CW_ATTEND_ROWS && row < j->n_rows; row++) {
            if (first_cell(j, row) < base + CW_CHUNK && end_cell(j, row) > base) {
                add_chunk(j, h, row, chunk, m[n], m[cap + n],
                          m + 2 * cap + (size_t)n * (size_t)head_v,
                          j->running + 2 * ((size_t)h * (size_t)j->n_rows + (size_t)row));
                n++;
            }
        }
    }
}

static void run_units(struct cw_compute *c, cw_pool_fn *fn, struct attend_job *j, int n,
                      size_t macs) {
    if (macs < CW_INLINE_MACS) {
        for (int i = 0; i < n; i++) {
            fn(j, i, 0);
        }
    } else {
        cw_pool_run(c->pool, fn, j, n);
    }
}

void cw_attend(struct cw_compute *c, const struct cw_attention *a) {
    const struct cw_kv_layer *kv = a->kv;
    if (a->n < 1) {
        return;
    }
    struct attend_job j = {.kernels = c->k, .a = a, .group = a->n_heads / kv->n_kv_heads};
    j.n_rows = a->n * j.group;
    j.n_blocks = (j.n_rows + CW_ATTEND_ROWS - 1) / CW_ATTEND_ROWS;
    j.scratch = c->scratch;
    j.scratch_floats = c->scratch_bytes / sizeof(float) / (size_t)c->n_threads;
    uint32_t first = first_cell(&j, 0) / CW_CHUNK;
    uint32_t last = (end_cell(&j, j.n_rows - 1) - 1) / CW_CHUNK;
    size_t cells = end_cell(&j, j.n_rows - 1) - first_cell(&j, 0);
    size_t macs = cells * (size_t)a->n * (size_t)a->n_heads * (size_t)(kv->head_k + kv->head_v);
    int units = kv->n_kv_heads * j.n_blocks;

    size_t running = 2 * (size_t)kv->n_kv_heads * (size_t)j.n_rows;
    size_t wave = c->partial_bytes / sizeof(float);
    wave = wave > running ? (wave - running) / (partial_floats(&j) * (size_t)units) : 0;
    if (units >= 2 * c->n_threads || c->n_threads == 1 || last == first || wave == 0) {
        run_units(c, block_unit, &j, units, macs);
        return;
    }
    j.running = c->partial;
    j.partial = c->partial + running;
    for (j.chunk0 = first; j.chunk0 <= last; j.chunk0 += (uint32_t)j.n_chunks) {
        uint32_t left = last - j.chunk0 + 1;
        j.n_chunks = left < wave ? (int)left : (int)wave;
        run_units(c, chunk_unit, &j, j.n_chunks * units, macs);
        merge_wave(&j);
    }
    for (int h = 0; h < kv->n_kv_heads; h++) {
        for (int row = 0; row < j.n_rows; row++) {
            finish_row(&j, h, row, j.running + 2 * ((size_t)h * (size_t)j.n_rows + (size_t)row));
        }
    }
}

/* Scores of all rows, one chunk's keys and values as f32, and the rows' results. */
size_t cw_attend_scratch(int head_k, int head_v) {
    return (size_t)CW_ATTEND_ROWS * CW_CHUNK + (size_t)CW_CHUNK * (size_t)(head_k + head_v) +
           (size_t)CW_ATTEND_ROWS * (size_t)head_v;
}
