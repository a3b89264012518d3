/* SPDX-License-Identifier: MIT
 *
 * What the kernel tests share: random numbers, buffers that end at a page that may not be touched,
 * random matrices of every type, and the comparison of two kernel tables, bit by bit.
 */
#ifndef CW_TEST_CHECKER_H
#define CW_TEST_CHECKER_H

#include "core/compute/kernels/kernels_impl.h"

struct rng {
    uint64_t state;
};
uint32_t rng_next(struct rng *r);
int rng_int(struct rng *r, int lo, int hi); /* both included */
float rng_float(struct rng *r);             /* -1 .. 1 */

/* bytes whose last is followed by a page without access; nothing is promised about the alignment
 * of the first. */
struct guarded {
    void *data;
    void *map;
    size_t map_bytes;
};
struct guarded guarded_alloc(size_t bytes);
void guarded_free(struct guarded *g);

enum pattern {
    RANDOM,
    ALL_MAX,     /* the codes that make sums largest */
    ALTERNATING, /* extremes of both signs in turn */
    N_PATTERNS
};

extern const enum cw_type all_types[];
extern const int n_all_types;

/* n blocks of a type with finite scales of ordinary size. */
void fill_blocks(enum cw_type type, enum pattern pattern, uint8_t *out, size_t n, struct rng *r);

/* One activation row after a pattern. */
void fill_values(enum pattern pattern, float *out, size_t n, struct rng *r);

/* Weight i of a block, from the bits of the format and independent of the code under test. */
double weight_at(enum cw_type type, const uint8_t *block, int i);

/* Equal bits, except that one NaN is as good as another. Returns the first differing index or -1.
 */
long first_difference(const float *a, const float *b, size_t n);

/* Rows x cols of a type times n tokens with both tables, everything ending at guard pages, results
 * into poisoned memory that must stay poisoned where no result belongs. */
struct product_case {
    enum cw_type type;
    enum pattern pattern;
    int rows, cols, n;
    int misalign; /* bytes the weights start past what is natural */
    bool bias;
    uint64_t seed;
};
bool same_product(const struct cw_kernels *a, const struct cw_kernels *b, struct product_case c,
                  char why[256]);

/* The tables of this build that this CPU can run, scalar first. */
const struct cw_kernels *kernels_at(int i); /* NULL past the last */

#endif
