/* SPDX-License-Identifier: MIT
 *
 * The compute object, weights, products and element-wise work: how it is cut into chunks for the
 * pool. No cut changes a result, because every output value is computed whole by one kernel call.
 */
#include "core/compute/compute_impl.h"

#include "core/compute/blas.h"
#include "core/compute/cpu.h"
#include "core/compute/quant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PARTIAL_BYTES ((size_t)4 << 20)
#define PACK_LIMIT    ((uint64_t)512 << 20) /* of all packed copies, where nobody says */

const struct cw_kernels *cw_kernels_of(enum cw_isa isa) {
    switch (isa) {
    case CW_ISA_SCALAR:
        return &cw_kernels_scalar;
#if defined(__x86_64__)
    case CW_ISA_AVX2:
        return &cw_kernels_avx2;
    case CW_ISA_AVXVNNI:
        return &cw_kernels_avxvnni;
    case CW_ISA_AVX512:
        return &cw_kernels_avx512;
#endif
    default:
        return NULL;
    }
}

int cw_compute_create(struct cw_compute **out, const struct cw_compute_options *opt,
                      struct cw_err *err) {
    *out = NULL;
    enum cw_isa isa = opt->isa == CW_ISA_AUTO ? cw_cpu_best_isa() : opt->isa;
    if (opt->isa != CW_ISA_AUTO && !cw_isa_available(isa)) {
        return cw_fail(err, CW_EUNSUP, "this CPU has no %s", cw_isa_name(isa));
    }
    const struct cw_kernels *k = cw_kernels_of(isa);
    while (!k) { /* AUTO, and the build leaves out the best: the next lower one */
        isa = (enum cw_isa)(isa - 1);
        k = cw_kernels_of(isa);
    }
    if (opt->n_threads < 0 || opt->n_threads > 1024) {
        return cw_fail(err, CW_EINVAL, "%d threads: must be 1 to 1024, or 0 to choose",
                       opt->n_threads);
    }
    struct cw_compute *c = cw_calloc(1, sizeof *c);
    c->k = k;
    c->pack_limit = opt->pack_limit ? opt->pack_limit : PACK_LIMIT;
    c->pool = cw_pool_create(opt->n_threads ? opt->n_threads : cw_cpu_n_threads());
    if (c->pool) {
        c->n_threads = cw_pool_n_threads(c->pool);
        c->scratch_bytes =
            (size_t)c->n_threads * cw_attend_scratch(CW_MAX_HEAD, CW_MAX_HEAD) * sizeof(float);
        c->scratch = cw_sparse_alloc(c->scratch_bytes);
        c->partial_bytes = PARTIAL_BYTES;
        c->partial = cw_sparse_alloc(c->partial_bytes);
    }
    c->blas = opt->blas && cw_blas_open(&c->blas_why);
    if (c->blas && c->pool) {
        c->blas_scratch_bytes = (size_t)c->n_threads * CW_BLAS_SCRATCH * sizeof(float);
        c->blas_scratch = cw_large_alloc(c->blas_scratch_bytes);
    }
    if (!c->pool || !c->scratch || !c->partial || (c->blas && !c->blas_scratch)) {
        cw_compute_destroy(c);
        return cw_fail(err, CW_ENOMEM, "no memory for the threads' scratch");
    }
    *out = c;
    return CW_OK;
}

void cw_compute_destroy(struct cw_compute *c) {
    if (!c) {
        return;
    }
    cw_pool_destroy(c->pool);
    if (c->scratch) {
        cw_large_free(c->scratch, c->scratch_bytes);
    }
    if (c->partial) {
        cw_large_free(c->partial, c->partial_bytes);
    }
    if (c->arena) {
        cw_large_free(c->arena, c->arena_bytes);
    }
    if (c->blas_scratch) {
        cw_large_free(c->blas_scratch, c->blas_scratch_bytes);
    }
    free(c);
}

int cw_compute_n_threads(const struct cw_compute *c) {
    return c->n_threads;
}

enum cw_isa cw_compute_isa(const struct cw_compute *c) {
    return (enum cw_isa)c->k->isa;
}

bool cw_compute_blas(const struct cw_compute *c, const char **why) {
    if (why) {
        *why = c->blas_why;
    }
    return c->blas;
}

void cw_compute_run(struct cw_compute *c, void (*fn)(void *arg, int chunk, int thread), void *arg,
                    int n_chunks) {
    cw_pool_run(c->pool, fn, arg, n_chunks);
}

/* fn over [0, n) items in a few chunks a thread; `work` is the multiply-adds of all. */
struct span_job {
    void (*fn)(void *arg, size_t first, size_t last);
    void *arg;
    size_t n, step;
};

static void span_chunk(void *arg, int chunk, int thread) {
    struct span_job *j = arg;
    size_t first = (size_t)chunk * j->step, last = first + j->step;
    j->fn(j->arg, first, last < j->n ? last : j->n);
}

static void run_spans(struct cw_compute *c, void (*fn)(void *arg, size_t first, size_t last),
                      void *arg, size_t n, size_t granule, size_t work) {
    if (c->n_threads == 1 || work < CW_INLINE_MACS) {
        if (n > 0) {
            fn(arg, 0, n);
        }
        return;
    }
    size_t chunks = (size_t)c->n_threads * 4;
    size_t step = (n + chunks - 1) / chunks;
    step = (step + granule - 1) / granule * granule;
    struct span_job j = {fn, arg, n, step};
    cw_pool_run(c->pool, span_chunk, &j, (int)((n + step - 1) / step));
}

/* Vector kernels address the rows of a group with 32 bits. */
#define WIDEST_ROW (INT32_MAX / 16)

/* ---- weights --------------------------------------------------------------------------------- */

void cw_weight_init(struct cw_weight *w, const struct cw_tensor *t, int64_t first, int32_t rows) {
    const struct cw_type_info *info = cw_type_info(t->type);
    memset(w, 0, sizeof *w);
    w->type = t->type;
    w->rows = rows;
    w->cols = (int32_t)t->dims[0];
    w->row_bytes = (size_t)(t->dims[0] / info->block) * (size_t)info->block_bytes;
    w->data = t->data + (size_t)first * w->row_bytes;
}

/* A packed copy has the rows of a group side by side, so that the kernels read one stream instead
 * of sixteen and need not transpose. It is made in passing, by the products that use the weight
 * from the third time on: each makes another part of it, so that neither the start nor any token
 * bears the cost. The copies of all weights lie in one arena, which fills from its beginning. */
struct packed {
    size_t at; /* of the arena */
    int uses;
    int rows; /* of the copy that are made */
};

#define FIRST_PACKING 2  /* uses before the first part */
#define PACKING_STEPS 12 /* uses that make parts */

void cw_weight_pack(struct cw_compute *c, struct cw_weight *w) {
    if (w->packed || !c->k->packs[w->type] || c->arena || w->row_bytes > WIDEST_ROW) {
        return;
    }
    struct packed *p = cw_calloc(1, sizeof *p);
    size_t group = (size_t)c->k->row_group;
    p->at = c->arena_bytes;
    c->arena_bytes +=
        (((size_t)w->rows + group - 1) / group * group * w->row_bytes + 63) & ~(size_t)63;
    w->packed = p;
}

void cw_weight_free(struct cw_weight *w) {
    free(w->packed);
    w->packed = NULL;
}

/* The rows of the copy that shall be made after this use of the weight. */
static int rows_to_have(struct cw_compute *c, const struct cw_weight *w) {
    struct packed *p = w->packed;
    if (!p || p->rows == w->rows || c->no_arena || p->uses++ < FIRST_PACKING) {
        return p ? p->rows : 0;
    }
    if (!c->arena) {
        c->arena = c->arena_bytes <= c->pack_limit ? cw_large_alloc(c->arena_bytes) : NULL;
        c->no_arena = !c->arena;
        if (!c->arena) {
            return 0;
        }
    }
    int step = p->uses - FIRST_PACKING;
    size_t end = step < PACKING_STEPS ? c->arena_bytes / PACKING_STEPS * (size_t)step : SIZE_MAX;
    if (end <= p->at) {
        return p->rows;
    }
    size_t rows = (end - p->at) / w->row_bytes, group = (size_t)c->k->row_group;
    return rows < (size_t)w->rows ? (int)(rows / group * group) : w->rows;
}

/* Rows of the copy were made: the file's pages need not stay resident. They come back when touched.
 */
static void packing_done(const struct cw_weight *w, int rows) {
    struct packed *p = w->packed;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), data = (uintptr_t)w->data;
    uintptr_t begin = (data + (size_t)p->rows * w->row_bytes + page - 1) / page * page;
    uintptr_t end = (data + (size_t)rows * w->row_bytes) / page * page;
    p->rows = rows;
    if (end > begin) {
        madvise((void *)begin, end - begin, MADV_DONTNEED);
    }
}

void cw_weight_row(const struct cw_weight *w, int64_t row, float *y) {
    cw_dequantise(w->type, w->data + (size_t)row * w->row_bytes, w->cols, y);
}

/* ---- activations ----------------------------------------------------------------------------- */

int cw_act_create(struct cw_act *a, int max_n, int max_width, struct cw_err *err) {
    memset(a, 0, sizeof *a);
    a->max_n = max_n;
    a->max_width = max_width;
    size_t n = (size_t)max_n * (size_t)max_width;
    a->x = cw_sparse_alloc(n * sizeof *a->x);
    a->q32 = cw_sparse_alloc(n);
    a->d32 = cw_sparse_alloc((n / 32 + 1) * sizeof *a->d32);
    a->sum32 = cw_sparse_alloc((n / 32 + 1) * sizeof *a->sum32);
    a->q256 = cw_sparse_alloc(n);
    a->d256 = cw_sparse_alloc((n / 256 + 1) * sizeof *a->d256);
    a->s16 = cw_sparse_alloc((n / 16 + 1) * sizeof *a->s16);
    a->centre = cw_sparse_alloc((n / 8 + 1) * sizeof *a->centre);
    if (!a->x || !a->q32 || !a->d32 || !a->sum32 || !a->q256 || !a->d256 || !a->s16 || !a->centre) {
        cw_act_free(a);
        return cw_fail(err, CW_ENOMEM, "no memory for %d activations of width %d", max_n,
                       max_width);
    }
    return CW_OK;
}

static void large_free(void *p, size_t bytes) {
    if (p) {
        cw_large_free(p, bytes);
    }
}

void cw_act_free(struct cw_act *a) {
    size_t n = (size_t)a->max_n * (size_t)a->max_width;
    large_free(a->x, n * sizeof *a->x);
    large_free(a->q32, n);
    large_free(a->d32, (n / 32 + 1) * sizeof *a->d32);
    large_free(a->sum32, (n / 32 + 1) * sizeof *a->sum32);
    large_free(a->q256, n);
    large_free(a->d256, (n / 256 + 1) * sizeof *a->d256);
    large_free(a->s16, (n / 16 + 1) * sizeof *a->s16);
    large_free(a->centre, (n / 8 + 1) * sizeof *a->centre);
    memset(a, 0, sizeof *a);
}

/* The kinds of `kinds` that the width allows. */
static unsigned possible(const struct cw_act *a, unsigned kinds) {
    if (a->width % 32 != 0) {
        kinds &= ~(1U << CW_ACT_Q32);
    }
    if (a->width % 256 != 0) {
        kinds &= ~(1U << CW_ACT_Q256);
    }
    return kinds;
}

static void quantise_token(const struct cw_kernels *k, struct cw_act *a, size_t i, unsigned kinds) {
    size_t width = (size_t)a->width, tile = i / CW_TILE * CW_TILE, col = i - tile;
    size_t left = (size_t)a->n - tile;
    int t = left < CW_TILE ? (int)left : CW_TILE;
    const float *x = a->x + i * width;
    if (kinds & 1U << CW_ACT_Q32) {
        size_t blocks = width / 32;
        k->quantise_32(x, a->width, t, a->q32 + tile * width + 4 * col,
                       a->d32 + tile * blocks + col, a->sum32 + tile * blocks + col);
    }
    if (kinds & 1U << CW_ACT_Q256) {
        size_t blocks = width / 256;
        k->quantise_256(x, a->width, t, a->q256 + tile * width + 4 * col,
                        a->d256 + tile * blocks + col, a->s16 + tile * blocks * 16 + 2 * col,
                        a->centre + tile * blocks * 32 + col);
    }
}

/* Phases that write rows of an act and quantise them. */
struct act_job {
    const struct cw_kernels *k;
    struct cw_act *a;
    unsigned kinds;
    int kind; /* enum cw_norm or cw_glu */
    const float *x, *w, *b;
    size_t ld_x, ld_w;
    float eps;
};

static void quantise_span(void *arg, size_t first, size_t last) {
    struct act_job *j = arg;
    for (size_t i = first; i < last; i++) {
        quantise_token(j->k, j->a, i, j->kinds);
    }
}

void cw_act_quantise(struct cw_compute *c, struct cw_act *a, unsigned kinds) {
    struct act_job j = {.k = c->k, .a = a, .kinds = possible(a, kinds) & ~a->have};
    if (j.kinds) {
        run_spans(c, quantise_span, &j, (size_t)a->n, CW_TILE, 4 * (size_t)a->n * (size_t)a->width);
        a->have |= j.kinds;
    }
}

static void set_act(struct act_job *j, struct cw_act *a, int n, int width, unsigned kinds) {
    a->n = n;
    a->width = width;
    j->a = a;
    j->kinds = possible(a, kinds) & ~(1U << CW_ACT_F32);
    a->have = j->kinds | 1U << CW_ACT_F32;
}

static void norm_row(const struct cw_kernels *k, int kind, const float *x, const float *w,
                     const float *b, float eps, int width, float *y) {
    if (kind == CW_NORM_RMS) {
        k->norm_rms(x, w, eps, width, y);
    } else {
        k->norm_layer(x, w, b, eps, width, y);
    }
}

static void norm_act_span(void *arg, size_t first, size_t last) {
    struct act_job *j = arg;
    size_t width = (size_t)j->a->width;
    for (size_t i = first; i < last; i++) {
        norm_row(j->k, j->kind, j->x + i * width, j->w, j->b, j->eps, j->a->width,
                 j->a->x + i * width);
        quantise_token(j->k, j->a, i, j->kinds);
    }
}

void cw_norm_act(struct cw_compute *c, enum cw_norm kind, const float *x, const float *w,
                 const float *b, float eps, int n, int width, unsigned kinds, struct cw_act *a) {
    struct act_job j = {.k = c->k, .kind = (int)kind, .x = x, .w = w, .b = b, .eps = eps};
    set_act(&j, a, n, width, kinds);
    run_spans(c, norm_act_span, &j, (size_t)n, CW_TILE, 8 * (size_t)n * (size_t)width);
}

struct rows_job {
    const struct cw_kernels *k;
    int kind, width;
    const float *x, *w, *b;
    float eps;
    float *y;
};

static void norm_rows_span(void *arg, size_t first, size_t last) {
    struct rows_job *j = arg;
    for (size_t i = first; i < last; i++) {
        size_t at = i * (size_t)j->width;
        norm_row(j->k, j->kind, j->x + at, j->w, j->b, j->eps, j->width, j->y + at);
    }
}

void cw_norm_rows(struct cw_compute *c, enum cw_norm kind, const float *x, const float *w,
                  const float *b, float eps, int rows, int width, float *y) {
    struct rows_job j = {c->k, (int)kind, width, x, w, b, eps, y};
    run_spans(c, norm_rows_span, &j, (size_t)rows, 1, 4 * (size_t)rows * (size_t)width);
}

static void glu_span(void *arg, size_t first, size_t last) {
    struct act_job *j = arg;
    for (size_t i = first; i < last; i++) {
        j->k->glu[j->kind](j->x + i * j->ld_x, j->w + i * j->ld_w, j->a->width,
                           j->a->x + i * (size_t)j->a->width);
        quantise_token(j->k, j->a, i, j->kinds);
    }
}

void cw_glu_act(struct cw_compute *c, enum cw_glu kind, const float *gate, size_t ld_gate,
                const float *up, size_t ld_up, int n, int width, unsigned kinds, struct cw_act *a) {
    struct act_job j = {
        .k = c->k, .kind = (int)kind, .x = gate, .ld_x = ld_gate, .w = up, .ld_w = ld_up};
    set_act(&j, a, n, width, kinds);
    run_spans(c, glu_span, &j, (size_t)n, CW_TILE, 16 * (size_t)n * (size_t)width);
}

static void gelu_span(void *arg, size_t first, size_t last) {
    struct act_job *j = arg;
    size_t width = (size_t)j->a->width;
    for (size_t i = first; i < last; i++) {
        j->k->gelu(j->x + i * width, j->a->width, j->a->x + i * width);
        quantise_token(j->k, j->a, i, j->kinds);
    }
}

void cw_gelu_act(struct cw_compute *c, const float *x, int n, int width, unsigned kinds,
                 struct cw_act *a) {
    struct act_job j = {.k = c->k, .x = x};
    set_act(&j, a, n, width, kinds);
    run_spans(c, gelu_span, &j, (size_t)n, CW_TILE, 16 * (size_t)n * (size_t)width);
}

/* ---- products -------------------------------------------------------------------------------- */

/* Products of one phase, at most MAX_PRODUCTS. A weight whose packed copy is being made gives up to
 * three parts: rows of the copy, rows that are copied now, and rows of the file. */
#define MAX_PRODUCTS 64

struct part {
    const struct cw_product *p;
    int begin, end;     /* rows */
    int step;           /* rows a unit */
    int first;          /* unit number at which the part begins */
    bool packed, packs; /* the copy is there; or is filled in passing */
};

struct matmul_job {
    const struct cw_kernels *k;
    uint8_t *arena;
    int n_parts;
    struct part parts[3 * MAX_PRODUCTS];
};

static void matmul_unit(void *arg, int chunk, int thread) {
    struct matmul_job *m = arg;
    const struct part *part = m->parts;
    while (part + 1 < m->parts + m->n_parts && chunk >= part[1].first) {
        part++;
    }
    const struct cw_weight *w = part->p->w;
    const struct cw_act *x = part->p->x;
    const struct packed *packed = w->packed;
    int row = part->begin + (chunk - part->first) * part->step;
    bool wide = cw_type_info(w->type)->act == CW_ACT_Q256;
    struct cw_product_job j = {
        .w = w->data + (size_t)row * w->row_bytes,
        .row_bytes = w->row_bytes,
        .rows = part->end - row < part->step ? part->end - row : part->step,
        .cols = w->cols,
        .bias = w->bias ? w->bias + row : NULL,
        .packed =
            part->packed || part->packs ? m->arena + packed->at + (size_t)row * w->row_bytes : NULL,
        .pack = part->packs,
        .n = x->n,
        .x = x->x,
        .ldx = (size_t)x->width,
        .q = wide ? x->q256 : x->q32,
        .d = wide ? x->d256 : x->d32,
        .sum32 = x->sum32,
        .s16 = x->s16,
        .centre = x->centre,
        .y = part->p->y + row,
        .ldy = part->p->ldy,
    };
    (w->row_bytes > WIDEST_ROW ? &cw_kernels_scalar : m->k)->product[w->type](&j);
}

static void add_part(struct matmul_job *m, const struct cw_product *p, int begin, int end,
                     bool packed, bool packs) {
    if (begin < end) {
        m->parts[m->n_parts++] =
            (struct part){.p = p, .begin = begin, .end = end, .packed = packed, .packs = packs};
    }
}

static void matmul_some(struct cw_compute *c, const struct cw_product *p, int n) {
    struct matmul_job m = {.k = c->k};
    int have[MAX_PRODUCTS]; /* rows of the copies after this phase */
    size_t bytes = 0, macs = 0;
    for (int i = 0; i < n; i++) {
        const struct cw_weight *w = p[i].w;
        const struct packed *packed = w->packed;
        int had = packed ? packed->rows : 0;
        cw_act_quantise(c, p[i].x, 1U << cw_type_info(w->type)->act);
        bytes += (size_t)w->rows * w->row_bytes;
        macs += (size_t)w->rows * (size_t)w->cols * (size_t)p[i].x->n;
        have[i] = rows_to_have(c, w);
        add_part(&m, p + i, 0, had, true, false);
        add_part(&m, p + i, had, have[i], false, true);
        add_part(&m, p + i, have[i], w->rows, false, false);
    }
    m.arena = c->arena;
    /* Units of equal bytes: many a thread where each is long, so that they share out evenly; few
     * where a phase takes microseconds and claiming a unit costs some. */
    size_t target = bytes / ((size_t)c->n_threads * (n > 0 && p[0].x->n > CW_TILE ? 12 : 3)) + 1;
    size_t group = (size_t)c->k->row_group;
    int units = 0;
    for (int i = 0; i < m.n_parts; i++) {
        struct part *part = &m.parts[i];
        size_t groups = target / (part->p->w->row_bytes * group);
        part->step = (int)((groups < 1 ? 1 : groups) * group);
        part->first = units;
        units += (part->end - part->begin + part->step - 1) / part->step;
    }
    if (macs < CW_INLINE_MACS) {
        for (int i = 0; i < units; i++) {
            matmul_unit(&m, i, 0);
        }
    } else {
        cw_pool_run(c->pool, matmul_unit, &m, units);
    }
    for (int i = 0; i < n; i++) {
        const struct packed *packed = p[i].w->packed;
        if (packed && have[i] > packed->rows) {
            packing_done(p[i].w, have[i]);
        }
    }
}

static bool blas_takes(const struct cw_compute *c, const struct cw_product *p) {
    return c->blas && cw_type_info(p->w->type)->act == CW_ACT_F32 && p->x->n >= CW_BLAS_TOKENS;
}

void cw_matmul(struct cw_compute *c, const struct cw_product *p, int n_products) {
    while (n_products > 0) {
        int n = 0;
        while (n < n_products && n < MAX_PRODUCTS && !blas_takes(c, p + n)) {
            n++;
        }
        if (n > 0) {
            matmul_some(c, p, n);
        } else {
            cw_blas_product(c, p, c->blas_scratch);
            n = 1;
        }
        p += n;
        n_products -= n;
    }
}

/* ---- element-wise ---------------------------------------------------------------------------- */

struct plain_job {
    const struct cw_kernels *k;
    float *x;
    const float *y;
    float s;
};

static void add_span(void *arg, size_t first, size_t last) {
    struct plain_job *j = arg;
    j->k->add_scaled(j->x + first, j->y + first, j->s, last - first);
}

void cw_add_scaled(struct cw_compute *c, float *x, const float *y, float scale, size_t n) {
    struct plain_job j = {c->k, x, y, scale};
    run_spans(c, add_span, &j, n, 64, n);
}

static void scale_span(void *arg, size_t first, size_t last) {
    struct plain_job *j = arg;
    j->k->scale(j->x + first, j->s, last - first);
}

void cw_scale(struct cw_compute *c, float *x, float scale, size_t n) {
    struct plain_job j = {c->k, x, NULL, scale};
    run_spans(c, scale_span, &j, n, 64, n);
}

static void softcap_span(void *arg, size_t first, size_t last) {
    struct plain_job *j = arg;
    j->k->softcap(j->x + first, j->s, last - first);
}

void cw_softcap(struct cw_compute *c, float *x, float cap, size_t n) {
    struct plain_job j = {c->k, x, NULL, cap};
    run_spans(c, softcap_span, &j, n, 64, 16 * n);
}

struct rope_job {
    const struct cw_kernels *k;
    float *x;
    size_t ld;
    int n_heads, head, n_rot;
    bool neox;
    const float *cos, *sin;
};

static void rope_span(void *arg, size_t first, size_t last) {
    struct rope_job *j = arg;
    size_t half = (size_t)j->n_rot / 2;
    for (size_t i = first; i < last; i++) {
        for (int h = 0; h < j->n_heads; h++) {
            j->k->rope(j->x + i * j->ld + (size_t)h * (size_t)j->head, j->n_rot, j->neox,
                       j->cos + i * half, j->sin + i * half);
        }
    }
}

void cw_rope(struct cw_compute *c, float *x, size_t ld, int n, int n_heads, int head, int n_rot,
             bool neox, const float *cos, const float *sin) {
    struct rope_job j = {c->k, x, ld, n_heads, head, n_rot, neox, cos, sin};
    run_spans(c, rope_span, &j, (size_t)n, 1, 2 * (size_t)n * (size_t)n_heads * (size_t)n_rot);
}
