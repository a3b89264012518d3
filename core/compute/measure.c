/* SPDX-License-Identifier: MIT
 * See measure.h. */
#include "core/compute/measure.h"

#include "core/compute/blas.h"
#include "core/compute/compute_impl.h"

#include "chinwag/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- reading --------------------------------------------------------------------------------- */

#define READ_CHUNK ((size_t)256 << 10)

struct read_job {
    const struct cw_kernels *k;
    const uint8_t *data;
    size_t bytes;
    _Atomic uint32_t sum; /* so that nothing is left out */
};

static void read_chunk(void *arg, int chunk, int thread) {
    struct read_job *j = arg;
    size_t at = (size_t)chunk * READ_CHUNK;
    j->sum += j->k->read_sum(j->data + at, j->bytes - at < READ_CHUNK ? j->bytes - at : READ_CHUNK);
}

double cw_measure_read(struct cw_compute *c, size_t bytes) {
    uint8_t *data = cw_large_alloc(bytes);
    if (!data || bytes == 0) {
        return 0.0;
    }
    memset(data, 1, bytes); /* untouched pages would all be the one zero page */
    struct read_job j = {c->k, data, bytes, 0};
    double best = 0.0;
    for (int i = 0; i < 10; i++) {
        double start = cw_now();
        cw_compute_run(c, read_chunk, &j, (int)((bytes + READ_CHUNK - 1) / READ_CHUNK));
        double speed = (double)bytes / (cw_now() - start);
        best = speed > best ? speed : best;
    }
    cw_large_free(data, bytes);
    return best;
}

size_t cw_measure_cache_bytes(void) {
    static const int levels[] = {_SC_LEVEL4_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE,
                                 _SC_LEVEL2_CACHE_SIZE};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        long n = sysconf(levels[i]);
        if (n > 0) {
            return (size_t)n;
        }
    }
    return (size_t)32 << 20;
}

/* ---- multiplying ----------------------------------------------------------------------------- */

struct peak_job {
    const struct cw_kernels *k;
    uint64_t rounds;
    _Atomic uint64_t macs;
};

static void peak_chunk(void *arg, int chunk, int thread) {
    struct peak_job *j = arg;
    j->macs += j->k->int8_loop(j->rounds);
}

double cw_measure_int8(struct cw_compute *c) {
    double best = 0.0;
    for (int i = 0; i < 10; i++) {
        struct peak_job j = {c->k, c->k->isa == CW_ISA_SCALAR ? 2000 : 200000, 0};
        double start = cw_now();
        cw_compute_run(c, peak_chunk, &j, c->n_threads * 8);
        double speed = (double)j.macs / (cw_now() - start);
        best = speed > best ? speed : best;
    }
    return best;
}

enum { CUBE = 1024 };

struct sgemm_job {
    const float *a, *b;
    float *y; /* [chunks, CUBE, CUBE] */
};

static void sgemm_chunk(void *arg, int chunk, int thread) {
    struct sgemm_job *j = arg;
    cw_blas_sgemm(CUBE, CUBE, CUBE, j->a, j->b, j->y + (size_t)chunk * CUBE * CUBE);
}

double cw_measure_sgemm(struct cw_compute *c) {
    const char *why;
    size_t square = (size_t)CUBE * CUBE, n = square * (2 + (size_t)c->n_threads);
    float *data = cw_blas_open(&why) ? cw_large_alloc(n * sizeof *data) : NULL;
    if (!data) {
        return 0.0;
    }
    for (size_t i = 0; i < 2 * square; i++) {
        data[i] = (float)(i % 251) * 0.01f - 1.0f;
    }
    struct sgemm_job j = {data, data + square, data + 2 * square};
    double best = 0.0;
    for (int i = 0; i < 4; i++) {
        double start = cw_now();
        cw_compute_run(c, sgemm_chunk, &j, c->n_threads);
        double speed = (double)c->n_threads * CUBE * CUBE * CUBE / (cw_now() - start);
        best = speed > best ? speed : best;
    }
    cw_large_free(data, n * sizeof *data);
    return best;
}

/* Weights as a file would give them: a mapping whose pages come back after they are dropped, as
 * packing drops them. NULL when the system refuses. */
static uint8_t *map_weights(size_t bytes) {
    int fd = memfd_create("weights", MFD_CLOEXEC);
    void *p = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0) {
        p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (p == MAP_FAILED) {
        return NULL;
    }
    /* Scales of every kind of block come out as ordinary numbers: denormal ones are slow. */
    uint8_t *data = p;
    for (size_t i = 0; i < bytes; i++) {
        data[i] = i % 2 ? 0x2c : (uint8_t)(i * 37);
    }
    return data;
}

/* Products until the copy must be there: it is made in passing, by one of the first uses. */
enum { PACKING_USES = 16 };

static void time_product(struct cw_compute *c, const struct cw_weight *w, struct cw_act *a,
                         float *y, struct cw_product_speed *best) {
    struct cw_product p = {w, a, y, (size_t)w->rows};
    size_t bytes = (size_t)w->rows * w->row_bytes;
    int n = a->n;
    a->n = 1;
    for (int i = 0; w->packed && i < PACKING_USES; i++) {
        a->have = 1U << CW_ACT_F32;
        cw_matmul(c, &p, 1);
    }
    a->n = n;
    a->have = 1U << CW_ACT_F32;
    double begin = cw_now();
    for (int i = 0; i < 3 || cw_now() - begin < 0.1; i++) {
        double start = cw_now();
        cw_matmul(c, &p, 1);
        double s = cw_now() - start;
        if ((double)bytes / s > best->bytes) {
            best->bytes = (double)bytes / s;
            best->macs = (double)w->rows * w->cols * n / s;
        }
        if (s > 0.5 && i > 0) {
            break; /* the scalar kernels: enough is known */
        }
    }
}

struct cw_product_speed cw_measure_product(struct cw_compute *c, enum cw_type type, int rows,
                                           int cols, int n, bool packed) {
    struct cw_product_speed speed = {0, 0};
    const struct cw_type_info *info = cw_type_info(type);
    size_t bytes = (size_t)rows * (size_t)(cols / info->block) * (size_t)info->block_bytes;
    uint8_t *data = map_weights(bytes);
    float *y = cw_large_alloc((size_t)n * (size_t)rows * sizeof *y);
    struct cw_act a;
    if (data && y && cw_act_create(&a, n, cols, NULL) == CW_OK) {
        for (int i = 0; i < n * cols; i++) {
            a.x[i] = (float)(i % 127) * 0.01f - 0.6f;
        }
        a.n = n;
        a.width = cols;
        struct cw_tensor t = {.type = type, .n_dims = 2, .dims = {cols, rows, 1, 1}, .data = data};
        struct cw_weight w;
        cw_weight_init(&w, &t, 0, rows);
        if (packed) {
            cw_weight_pack(c, &w);
        }
        if (!packed || w.packed) {
            time_product(c, &w, &a, y, &speed);
        }
        cw_weight_free(&w);
        cw_act_free(&a);
    }
    if (data) {
        munmap(data, bytes);
    }
    if (y) {
        cw_large_free(y, (size_t)n * (size_t)rows * sizeof *y);
    }
    return speed;
}
