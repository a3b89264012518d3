/* SPDX-License-Identifier: MIT
 *
 * Rotary positions: which angle each pair of dimensions turns by, in double and by our own
 * elementary functions, so that every machine rounds to the same tables.
 *
 * Su et al., "RoFormer", 2021; linear interpolation: Chen et al. 2023; YaRN: Peng et al. 2023;
 * frequency factors: Llama 3.1 (rope_freqs) and LongRoPE, Ding et al. 2024 (short and long). */
#include "core/model/internal.h"

#include "core/compute/maths.h"

static const double PI = 3.14159265358979323846;

double cw_rope_yarn_magnitude(double factor, double log_multiplier) {
    if (factor <= 1.0) {
        return 1.0;
    }
    double l = cw_log(factor);
    double g = 1.0 + 0.1 * l;
    return log_multiplier != 0.0 ? g / (1.0 + 0.1 * log_multiplier * l) : g;
}

/* Whole numbers of moderate size; floor and ceil of libm would be the only use of it here. */
static double floor_of(double x) {
    double t = (double)(int64_t)x;
    return t > x ? t - 1.0 : t;
}

static double clamp(double x, double low, double high) {
    return x < low ? low : x > high ? high : x;
}

/* The pair that turns `turns` times within the original context. */
static double yarn_pair(const struct cw_hparams *hp, double base, double turns) {
    return hp->n_rot * cw_log(hp->n_ctx_orig / (turns * 2.0 * PI)) / (2.0 * cw_log(base));
}

void cw_rope_frequencies(const struct cw_model *m, bool local, uint32_t n_ctx, double *freq) {
    const struct cw_hparams *hp = &m->hp;
    const struct cw_rope_params *r = local ? &hp->rope_local : &hp->rope;
    const float *factors = m->rope_freqs;
    if (m->rope_long != NULL) {
        factors = n_ctx > hp->n_ctx_orig ? m->rope_long : m->rope_short;
    }
    double low = 0.0, high = 0.0;
    if (r->yarn) { /* the ramp's ends, whole pairs */
        low = floor_of(clamp(yarn_pair(hp, r->base, r->beta_fast), 0.0, 1e6));
        high = -floor_of(-clamp(yarn_pair(hp, r->base, r->beta_slow), -1e6, hp->n_rot - 1.0));
    }
    for (int i = 0; i < hp->n_rot / 2; i++) {
        double scale = r->freq_scale;
        if (r->yarn) { /* keep: 1 for the fast pairs, 0 for the slow ones */
            double keep = 1.0 - clamp((i - low) / clamp(high - low, 0.001, 1e6), 0.0, 1.0);
            scale = scale * (1.0 - keep) + keep;
        }
        freq[i] = scale * cw_pow(r->base, -2.0 * i / hp->n_rot);
        if (factors != NULL) {
            freq[i] /= (double)factors[i];
        }
    }
}

void cw_rope_table(const double *freq, int n_pairs, float magnitude, uint32_t pos, int n,
                   float *cos, float *sin) {
    for (int t = 0; t < n; t++) {
        for (int i = 0; i < n_pairs; i++) {
            double angle = (double)(pos + (uint32_t)t) * freq[i];
            cos[(size_t)t * n_pairs + i] = (float)(cw_cos(angle) * (double)magnitude);
            sin[(size_t)t * n_pairs + i] = (float)(cw_sin(angle) * (double)magnitude);
        }
    }
}

static int check_factors(const struct cw_hparams *hp, const float *f, const char *name,
                         struct cw_err *err) {
    for (int i = 0; f != NULL && i < hp->n_rot / 2; i++) {
        if (!(f[i] >= 0.01f && f[i] <= 1e6f)) {
            return cw_fail(err, CW_EFORMAT,
                           "tensor '%s': factor %d is %g, not from 0.01 to 1000000", name, i,
                           (double)f[i]);
        }
    }
    return CW_OK;
}

int cw_rope_check(const struct cw_model *m, struct cw_err *err) {
    int rc = check_factors(&m->hp, m->rope_freqs, "rope_freqs.weight", err);
    if (rc == CW_OK) {
        rc = check_factors(&m->hp, m->rope_short, "rope_factors_short.weight", err);
    }
    if (rc == CW_OK) {
        rc = check_factors(&m->hp, m->rope_long, "rope_factors_long.weight", err);
    }
    if (rc == CW_OK && m->rope_long != NULL && m->rope_freqs != NULL) {
        rc = cw_fail(err, CW_EFORMAT, "both rope_freqs and long and short rope factors");
    }
    if (rc == CW_OK && m->rope_long != NULL && m->hp.n_ctx_orig == 0) {
        rc = cw_fail(err, CW_EFORMAT,
                     "long and short rope factors need rope.scaling.original_context_length");
    }
    return rc;
}
