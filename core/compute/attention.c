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

static size_t head_bytes(const struct cw_kv_layer *l) {
    return 16 * (block16_bytes(l->kind, l->head_k) + block16_bytes(l->kind, l->head_v));
}

/* In a page KV head after KV head, its keys and then its values: what a unit of attention reads
 * lies together. */
static uint8_t *page_k(const struct cw_kv_layer *l, uint32_t page, int h) {
    return (uint8_t *)l->base + (size_t)page * l->page_bytes + (size_t)h * head_bytes(l);
}

static uint8_t *page_v(const struct cw_kv_layer *l, uint32_t page, int h) {
    return page_k(l, page, h) + 16 * block16_bytes(l->kind, l->head_k);
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

/* Rows of one unit, the first of them at a position divisible by it; divides CW_CHUNK. */
enum { STORE_ROWS = 64 };

struct store_job {
    const struct cw_kernels *kernels;
    const struct cw_kv_layer *l;
    const struct cw_place *at;
    int n, skip; /* skip: how far the first row stands behind such a position */
    const float *k, *v;
    size_t ldk, ldv;
};

/* Whether row `row` stands right behind the one before it, in the same page. */
static bool follows(const struct cw_place *at, int row) {
    return at[row].pages == at[row - 1].pages && at[row].pos == at[row - 1].pos + 1 &&
           at[row].pos % CW_CHUNK != 0;
}

static void store_unit(void *arg, int unit, int thread) {
    const struct store_job *j = arg;
    const struct cw_kv_layer *l = j->l;
    int h = unit % l->n_kv_heads, first = unit / l->n_kv_heads * STORE_ROWS - j->skip;
    int last = first + STORE_ROWS < j->n ? first + STORE_ROWS : j->n;
    (void)thread;
    first = first < 0 ? 0 : first;
    for (int n; first < last; first += n) {
        uint32_t page = j->at[first].pages[j->at[first].pos / CW_CHUNK];
        uint32_t cell = j->at[first].pos % CW_CHUNK;
        for (n = 1; first + n < last && follows(j->at, first + n); n++) {
        }
        j->kernels->store_k(page_k(l, page, h), l->kind, l->head_k, cell, n,
                            j->k + (size_t)first * j->ldk + (size_t)h * (size_t)l->head_k, j->ldk);
        j->kernels->store_v(page_v(l, page, h), l->kind, l->head_v, cell, n,
                            j->v + (size_t)first * j->ldv + (size_t)h * (size_t)l->head_v, j->ldv);
    }
}

void cw_kv_store(struct cw_compute *c, const struct cw_kv_layer *l, const struct cw_place *at,
                 int n, const float *k, size_t ldk, const float *v, size_t ldv) {
    if (n < 1) {
        return;
    }
    struct store_job j = {c->k, l, at, n, (int)(at[0].pos % STORE_ROWS), k, v, ldk, ldv};
    int units = (j.skip + n + STORE_ROWS - 1) / STORE_ROWS * l->n_kv_heads;
    if (n < 16) {
        for (int i = 0; i < units; i++) {
            store_unit(&j, i, 0);
        }
        return;
    }
    cw_pool_run(c->pool, store_unit, &j, units);
}

void cw_kv_copy(const struct cw_kv_layer *l, uint32_t to, uint32_t from, uint32_t n_cells) {
    size_t blocks = (n_cells + 15) / 16;
    for (int h = 0; h < l->n_kv_heads; h++) {
        memcpy(page_k(l, to, h), page_k(l, from, h), blocks * block16_bytes(l->kind, l->head_k));
        memcpy(page_v(l, to, h), page_v(l, from, h), blocks * block16_bytes(l->kind, l->head_v));
    }
}

size_t cw_kv_packed_bytes(const struct cw_kv_layer *l, uint32_t n_cells) {
    return (size_t)l->n_kv_heads * (n_cells / 16) * (head_bytes(l) / 16);
}

void cw_kv_pack(const struct cw_kv_layer *l, uint32_t page, uint32_t n_cells, uint8_t *to) {
    size_t k = n_cells / 16 * block16_bytes(l->kind, l->head_k);
    size_t v = n_cells / 16 * block16_bytes(l->kind, l->head_v);
    for (int h = 0; h < l->n_kv_heads; h++, to += k + v) {
        memcpy(to, page_k(l, page, h), k);
        memcpy(to + k, page_v(l, page, h), v);
    }
}

void cw_kv_unpack(const struct cw_kv_layer *l, uint32_t page, uint32_t n_cells,
                  const uint8_t *from) {
    size_t k = n_cells / 16 * block16_bytes(l->kind, l->head_k);
    size_t v = n_cells / 16 * block16_bytes(l->kind, l->head_v);
    for (int h = 0; h < l->n_kv_heads; h++, from += k + v) {
        memcpy(page_k(l, page, h), from, k);
        memcpy(page_v(l, page, h), from + k, v);
    }
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

static const struct cw_place *place_of(const struct attend_job *j, int row) {
    return &j->a->at[row / j->group];
}

/* The range of cells that row `row` sees. */
static uint32_t first_cell(const struct attend_job *j, int row) {
    uint32_t p = place_of(j, row)->pos;
    return j->a->window > 0 && p >= j->a->window ? p - j->a->window + 1 : 0;
}

static uint32_t end_cell(const struct attend_job *j, int row) {
    return place_of(j, row)->pos + 1;
}

/* The cells that any of rows row0 .. row1 - 1 sees. */
static void all_cells(const struct attend_job *j, int row0, int row1, uint32_t *first,
                      uint32_t *end) {
    *first = UINT32_MAX;
    *end = 0;
    for (int row = row0; row < row1; row++) {
        *first = first_cell(j, row) < *first ? first_cell(j, row) : *first;
        *end = end_cell(j, row) > *end ? end_cell(j, row) : *end;
    }
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
 * and their numbers in rows[]; m, l and o receive their results. Rows whose timelines have the
 * chunk's page in common go through it together. */
static int attend_chunk(const struct attend_job *j, int h, int row0, int row1, uint32_t chunk,
                        int thread, int *rows, float *m, float *l, float *o) {
    const struct cw_attention *a = j->a;
    const struct cw_kv_layer *kv = a->kv;
    const float *q[CW_ATTEND_ROWS];
    int lo[CW_ATTEND_ROWS], hi[CW_ATTEND_ROWS], n = 0;
    uint32_t page[CW_ATTEND_ROWS], base = chunk * CW_CHUNK;
    for (int row = row0; row < row1; row++) {
        uint32_t first = first_cell(j, row), end = end_cell(j, row);
        if (first >= base + CW_CHUNK || end <= base) {
            continue;
        }
        lo[n] = first > base ? (int)(first - base) : 0;
        hi[n] = end < base + CW_CHUNK ? (int)(end - base) : CW_CHUNK;
        q[n] = a->q + (size_t)(row / j->group) * a->ldq + head_of(j, h, row) * (size_t)kv->head_k;
        page[n] = place_of(j, row)->pages[chunk];
        rows[n++] = row;
    }
    for (int i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && page[next] == page[i]; next++) {
        }
        struct cw_attend_job job = {
            .k = page_k(kv, page[i], h),
            .v = page_v(kv, page[i], h),
            .kind = kv->kind,
            .head_k = kv->head_k,
            .head_v = kv->head_v,
            .n_rows = next - i,
            .q = q + i,
            .lo = lo + i,
            .hi = hi + i,
            .scale = a->scale,
            .softcap = a->softcap,
            .m = m + i,
            .l = l + i,
            .o = o + (size_t)i * (size_t)kv->head_v,
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
    uint32_t first, end;
    all_cells(j, row0, row1, &first, &end);
    for (uint32_t chunk = first / CW_CHUNK; chunk <= (end - 1) / CW_CHUNK; chunk++) {
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
    /* Side by side, so that little of what the widest heads would need is ever touched. */
    j.scratch_floats = (cw_attend_scratch(kv->head_k, kv->head_v) + 15) / 16 * 16;
    uint32_t first, last;
    all_cells(&j, 0, j.n_rows, &first, &last);
    size_t macs =
        (size_t)(last - first) * (size_t)(a->n * a->n_heads) * (size_t)(kv->head_k + kv->head_v);
    first /= CW_CHUNK;
    last = (last - 1) / CW_CHUNK;
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
