/* SPDX-License-Identifier: MIT
 *
 * The only file that knows OpenBLAS. It is not linked: dlopen finds it, and when it is missing or
 * wrong our own kernels do its work. Its own threads are switched off before it is loaded; the pool
 * shares out tiles instead, which makes the results independent of the thread count.
 */
#include "core/compute/blas.h"

#include "core/compute/compute_impl.h"
#include "core/compute/cpu.h"
#include "core/compute/quant.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define BLAS_TOKENS 256 /* of a tile */

/* cblas_sgemm of the BLAS standard's C interface; 101: row-major, 111: as it is, 112: transposed.
 */
typedef void sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                      const float *a, int lda, const float *b, int ldb, float beta, float *c,
                      int ldc);
enum { ROW_MAJOR = 101, AS_IS = 111, TRANSPOSED = 112 };

static sgemm_fn *sgemm;
static const char *refusal;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* One tile of awkward size, against the definition of rule 2 as the scalar kernel has it. */
static bool gives_what_we_give(sgemm_fn *fn) {
    enum { ROWS = 33, COLS = 200, N = 19 };
    float *w = cw_calloc(ROWS * COLS, sizeof *w), *x = cw_calloc(N * COLS, sizeof *x);
    float *ours = cw_calloc(N * ROWS, sizeof *ours), *theirs = cw_calloc(N * ROWS, sizeof *theirs);
    uint32_t state = 1;
    for (int i = 0; i < ROWS * COLS; i++) { /* a linear congruential generator: any numbers do */
        state = state * 1664525U + 1013904223U;
        w[i] = (float)(int32_t)state * 0x1p-31f;
        x[i % (N * COLS)] = (float)(int32_t)(state * 69069U) * 0x1p-31f;
    }
    struct cw_product_job j = {.w = (const uint8_t *)w,
                               .row_bytes = COLS * sizeof *w,
                               .rows = ROWS,
                               .cols = COLS,
                               .n = N,
                               .x = x,
                               .ldx = COLS,
                               .y = ours,
                               .ldy = ROWS};
    cw_kernels_scalar.product[CW_F32](&j);
    fn(ROW_MAJOR, AS_IS, TRANSPOSED, N, ROWS, COLS, 1.0f, x, COLS, w, COLS, 0.0f, theirs, ROWS);
    bool same = true;
    for (int i = 0; i < N * ROWS; i++) {
        float difference = ours[i] - theirs[i];
        same = same && difference < 1e-4f && difference > -1e-4f; /* false for a NaN */
    }
    free(w);
    free(x);
    free(ours);
    free(theirs);
    return same;
}

/* OpenBLAS picks its kernels by the CPU's model number, and a release older than the CPU falls back
 * to SSE3, a quarter of the speed. Where nobody has chosen, its names for what we know to be there.
 */
static void choose_kernels(void) {
    enum cw_isa best = cw_cpu_best_isa();
    if (best >= CW_ISA_AVX2) {
        setenv("OPENBLAS_CORETYPE", best == CW_ISA_AVX512 ? "SkylakeX" : "Haswell", 0);
    }
}

static void open_once(void) {
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    choose_kernels();
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        refusal = "OpenBLAS (libopenblas.so.0) is not installed; our own kernels are used";
        return;
    }
    /* A function pointer out of an object pointer, as POSIX has it for dlsym. */
    union {
        void *object;
        sgemm_fn *function;
    } symbol = {dlsym(library, "cblas_sgemm")};
    if (!symbol.object) {
        refusal = "libopenblas.so.0 has no cblas_sgemm; our own kernels are used";
    } else if (!gives_what_we_give(symbol.function)) {
        refusal = "OpenBLAS gave a wrong result on the check tile; our own kernels are used";
    } else {
        sgemm = symbol.function;
        return;
    }
    dlclose(library);
}

bool cw_blas_open(const char **why) {
    pthread_once(&once, open_once);
    *why = refusal;
    return sgemm != NULL;
}

void cw_blas_sgemm(int m, int n, int k, const float *a, const float *b, float *y) {
    sgemm(ROW_MAJOR, AS_IS, TRANSPOSED, m, n, k, 1.0f, a, k, b, k, 0.0f, y, n);
}

struct blas_job {
    const struct cw_kernels *kernels;
    const struct cw_product *p;
    float *scratch;
    int token_tiles;
};

static void blas_tile(void *arg, int chunk, int thread) {
    const struct blas_job *j = arg;
    const struct cw_product *p = j->p;
    const struct cw_weight *w = p->w;
    int row = chunk / j->token_tiles * CW_BLAS_ROWS, t0 = chunk % j->token_tiles * BLAS_TOKENS;
    int rows = w->rows - row < CW_BLAS_ROWS ? w->rows - row : CW_BLAS_ROWS;
    int n = p->x->n - t0 < BLAS_TOKENS ? p->x->n - t0 : BLAS_TOKENS;
    int element = w->type == CW_F32 ? 4 : 2;
    float *y = p->y + (size_t)t0 * p->ldy + row;
    float *tile = j->scratch + (size_t)thread * CW_BLAS_SCRATCH;
    for (int c = 0; c < w->cols; c += CW_BLAS_COLS) {
        int cols = w->cols - c < CW_BLAS_COLS ? w->cols - c : CW_BLAS_COLS;
        for (int r = 0; r < rows; r++) {
            const uint8_t *from =
                w->data + (size_t)(row + r) * w->row_bytes + (size_t)c * (size_t)element;
            j->kernels->widen(w->type, from, cols, tile + (size_t)r * (size_t)cols);
        }
        sgemm(ROW_MAJOR, AS_IS, TRANSPOSED, n, rows, cols, 1.0f,
              p->x->x + (size_t)t0 * (size_t)w->cols + c, w->cols, tile, cols, c == 0 ? 0.0f : 1.0f,
              y, (int)p->ldy);
    }
    for (int t = 0; w->bias && t < n; t++) {
        for (int r = 0; r < rows; r++) {
            y[(size_t)t * p->ldy + (size_t)r] += w->bias[row + r];
        }
    }
}

void cw_blas_product(struct cw_compute *c, const struct cw_product *p, float *scratch) {
    struct blas_job j = {c->k, p, scratch, (p->x->n + BLAS_TOKENS - 1) / BLAS_TOKENS};
    int row_tiles = (p->w->rows + CW_BLAS_ROWS - 1) / CW_BLAS_ROWS;
    cw_compute_run(c, blas_tile, &j, row_tiles * j.token_tiles);
}
