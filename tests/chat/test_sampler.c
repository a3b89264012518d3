/* SPDX-License-Identifier: MIT
 *
 * The sampler against the textbook's: thousands of random vocabularies and settings, ties and
 * extremes among them, must give the same id and the same probability to the last bit. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/chat/sampler_impl.h"
#include "tests/chat/sampler_reference.h"

/* ---- helpers ------------------------------------------------------------------------------- */

static uint64_t state = 1;

static uint64_t next(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
}

static double uniform(void) {
    return (double)next() / 2147483648.0;
}

static float gauss(void) {
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        sum += uniform();
    }
    return (float)(sum - 6);
}

/* The plainest settings: temperature T and nothing else. */
static struct cw_sampling plain(float temp) {
    struct cw_sampling s;
    cw_sampling_default(&s);
    s.temp = temp;
    s.top_p = 1;
    return s;
}

static int draw(const struct cw_sampling *set, const float *l, int32_t n, uint32_t seed,
                uint64_t position, struct cw_draw *out) {
    struct cw_sampler *s = cw_sampler_create(n);
    struct cw_err err;
    int rc = cw_sampler_draw(s, set, l, n, NULL, 0, seed, position, true, out, &err);
    cw_sampler_destroy(s);
    return rc;
}

/* ---- against the reference ----------------------------------------------------------------- */

static void fill(float *l, int32_t n, int kind) {
    float scale = (float)(uniform() * 6 + 0.1);
    for (int32_t i = 0; i < n; i++) {
        float g = gauss() * scale;
        switch (kind) {
        case 0:
            l[i] = g;
            break;
        case 1: /* many ties */
            l[i] = floorf(g * 2) / 2;
            break;
        case 2: /* all equal, zeros of both signs */
            l[i] = i % 3 == 0 ? -0.0f : 0.0f;
            break;
        case 3: /* banned ones */
            l[i] = next() % 4 == 0 ? -INFINITY : g;
            break;
        case 4: /* a few stand out, the rest is far below */
            l[i] = next() % 50 == 0 ? 20 + g : g - 10;
            break;
        case 5: /* neighbouring floats */
            l[i] = nextafterf(10.0f, next() % 2 ? 11.0f : 9.0f);
            break;
        default: /* the whole range */
            l[i] = (float)((uniform() - 0.5) * 2 * (double)FLT_MAX);
            break;
        }
    }
}

static struct cw_sampling random_settings(int32_t n) {
    struct cw_sampling s = plain((float)(uniform() * 2));
    if (next() % 8 == 0) {
        s.temp = next() % 2 ? 0 : 1e-6f;
    }
    if (next() % 2) {
        s.top_p = (float)uniform();
    }
    if (next() % 3 == 0) {
        s.top_k = (int32_t)(next() % (uint64_t)(n + 3));
    }
    if (next() % 3 == 0) {
        s.min_p = (float)(uniform() * uniform());
    }
    if (next() % 4 == 0) {
        s.typical_p = (float)uniform();
    }
    if (next() % 3 == 0) {
        s.penalty_repeat = (float)(uniform() + 0.7);
        s.penalty_frequency = (float)(uniform() - 0.3);
        s.penalty_presence = (float)(uniform() - 0.3);
        s.penalty_last_n = (int32_t)(next() % 70) - 1;
    }
    if (next() % 3 == 0) {
        s.dry_multiplier = (float)uniform() * 2;
        s.dry_base = 1 + (float)uniform();
        s.dry_allowed_length = 1 + (int32_t)(next() % 4);
        s.dry_last_n = next() % 2 ? -1 : (int32_t)(next() % 60);
    }
    if (next() % 3 == 0) {
        s.xtc_probability = (float)uniform();
        s.xtc_threshold = (float)uniform() * 0.5f;
    }
    s.n_bias = next() % 4 == 0 ? (int32_t)(next() % 5) : 0;
    for (int32_t i = 0; i < s.n_bias; i++) {
        s.bias[i].id = (int32_t)(next() % (uint64_t)n);
        s.bias[i].bias = next() % 3 == 0 ? -INFINITY : gauss() * 5;
    }
    return s;
}

static void compare(int32_t n, int kind, struct cw_sampling set) {
    float *l = cw_reallocarray(NULL, (size_t)n, sizeof *l);
    int32_t history[80], breakers[2] = {0, n / 2};
    size_t n_history = next() % 81;
    struct cw_sampler *s = cw_sampler_create(n);
    struct cw_err err = {0};
    fill(l, n, kind);
    for (size_t i = 0; i < n_history; i++) {
        history[i] = (int32_t)(next() % (uint64_t)(n < 6 ? n : 6));
    }
    int32_t usable = next() % 4 == 0 ? 1 + (int32_t)(next() % (uint64_t)n) : n;
    float *before = cw_reallocarray(NULL, (size_t)n, sizeof *before);
    memcpy(before, l, (size_t)n * sizeof *l);
    cw_sampler_set_breakers(s, breakers, 2);
    for (uint64_t position = 0; position < 3; position++) {
        struct cw_draw d;
        float p = 0;
        uint32_t seed = (uint32_t)next();
        int32_t want =
            reference_draw(&set, l, n, usable, history, n_history, breakers, 2, seed, position, &p);
        int rc = cw_sampler_draw(s, &set, l, usable, history, n_history, seed, position, next() % 2,
                                 &d, &err);
        ck_assert_int_eq(rc, want < 0 ? CW_ENUMERIC : CW_OK);
        if (want >= 0) {
            ck_assert_msg(d.id == want, "n %d kind %d: id %d, wanted %d", n, kind, d.id, want);
            ck_assert_msg(d.p == p, "n %d kind %d: p %.9g, wanted %.9g", n, kind, (double)d.p,
                          (double)p);
        }
    }
    ck_assert(memcmp(before, l, (size_t)n * sizeof *l) == 0);
    cw_sampler_destroy(s);
    free(before);
    free(l);
}

START_TEST(as_the_textbook) {
    for (int i = 0; i < 6000; i++) {
        int32_t n = i % 3 == 0 ? 1 + (int32_t)(next() % 8) : 1 + (int32_t)(next() % 700);
        compare(n, i % 7, random_settings(n));
    }
}
END_TEST

START_TEST(as_the_textbook_large) {
    for (int i = 0; i < 14; i++) {
        struct cw_sampling s = random_settings(40000);
        s.typical_p = 1; /* the reference's mean is quadratic */
        compare(40000 + i, i % 7, s);
    }
}
END_TEST

/* Every kind of settings that is common, alone, at the size of a large vocabulary. */
START_TEST(each_stage_alone) {
    for (int i = 0; i < 8; i++) {
        struct cw_sampling s = plain(i % 2 ? 0.8f : 3.0f);
        s.top_k = i == 1 ? 40 : i == 2 ? 9000 : 0;
        s.top_p = i == 3 ? 0.95f : i == 4 ? 0.5f : i == 5 ? 0 : 1;
        s.min_p = i == 6 ? 0.05f : 0;
        s.xtc_probability = i == 7 ? 1 : 0;
        for (int kind = 0; kind < 6; kind++) {
            compare(10000, kind, s);
        }
    }
}
END_TEST

/* Both hold the same candidates with the same weights. */
static void check_lists(const struct cw_sampler *a, const struct cw_sampler *b) {
    ck_assert_uint_eq(a->n_cand, b->n_cand);
    ck_assert_uint_ge(a->n_cand, 1);
    ck_assert(memcmp(a->cand, b->cand, a->n_cand * sizeof *a->cand) == 0);
    ck_assert(memcmp(a->weight, b->weight, a->n_cand * sizeof *a->weight) == 0);
}

/* The best version of the passes and the plain one, at every length of a last block. */
START_TEST(passes_agree) {
    enum { N = 4400 };
    struct cw_sampler *a = cw_sampler_create(N), *b = cw_sampler_create(N);
    float l[N];
    b->passes = &cw_passes_any;
    for (int kind = 0; kind < 7; kind++) {
        for (int32_t n = 4000; n <= N; n++) {
            struct cw_sampling s = plain(0.7f);
            struct cw_draw x, y;
            fill(l, n, kind);
            int rc = cw_sampler_draw(a, &s, l, n, NULL, 0, 5, (uint64_t)n, true, &x, NULL);
            ck_assert_int_eq(rc,
                             cw_sampler_draw(b, &s, l, n, NULL, 0, 5, (uint64_t)n, true, &y, NULL));
            ck_assert(a->total == b->total);
            ck_assert(memcmp(&x, &y, sizeof x) == 0);
            check_lists(a, b);
        }
    }
    cw_sampler_destroy(a);
    cw_sampler_destroy(b);
}
END_TEST

/* The versions between them, where the CPU has them, at vocabularies of many runs. */
START_TEST(versions_agree) {
    const struct cw_passes *versions[3] = {&cw_passes_any};
    int n_versions = 1;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        versions[n_versions++] = &cw_passes_avx2;
    }
    if (cw_passes_best() == &cw_passes_avx512) {
        versions[n_versions++] = &cw_passes_avx512;
    }
#endif
    for (int i = 0; i < 21; i++) {
        int32_t n = 1 + (int32_t)(next() % 30000);
        float *l = cw_reallocarray(NULL, (size_t)n, sizeof *l);
        struct cw_sampling set = plain((float)(uniform() * 2 + 0.01));
        struct cw_sampler *s[3];
        struct cw_draw d[3];
        fill(l, n, i % 7);
        for (int v = 0; v < n_versions; v++) {
            s[v] = cw_sampler_create(n);
            s[v]->passes = versions[v];
            int rc = cw_sampler_draw(s[v], &set, l, n, NULL, 0, 5, (uint64_t)i, true, &d[v], NULL);
            ck_assert_int_eq(rc, CW_OK);
            ck_assert(s[v]->total == s[0]->total);
            ck_assert(memcmp(&d[v], &d[0], sizeof d[0]) == 0);
            check_lists(s[v], s[0]);
        }
        for (int v = 0; v < n_versions; v++) {
            cw_sampler_destroy(s[v]);
        }
        free(l);
    }
}
END_TEST

/* Four threads, which take the chunks from the last to the first, each as it comes. */
struct crew {
    void (*fn)(void *arg, int chunk, int thread);
    void *arg;
    _Atomic int left; /* chunks not yet taken */
    int n_calls;
};

struct member {
    struct crew *crew;
    int number;
};

static void *take_chunks(void *arg) {
    struct member *m = arg;
    int chunk;
    while ((chunk = atomic_fetch_sub(&m->crew->left, 1) - 1) >= 0) {
        m->crew->fn(m->crew->arg, chunk, m->number);
    }
    return NULL;
}

static void run_crew(void *arg, void (*fn)(void *fn_arg, int chunk, int thread), void *fn_arg,
                     int n_chunks) {
    enum { MEMBERS = 4 };
    struct crew *c = arg;
    struct member member[MEMBERS];
    pthread_t thread[MEMBERS];
    c->fn = fn;
    c->arg = fn_arg;
    c->n_calls++;
    atomic_store(&c->left, n_chunks);
    for (int i = 0; i < MEMBERS; i++) {
        member[i] = (struct member){c, i};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, take_chunks, &member[i]), 0);
    }
    for (int i = 0; i < MEMBERS; i++) {
        pthread_join(thread[i], NULL);
    }
}

/* Helpers change nothing: not a bit of what is told, nor of the weights. */
START_TEST(runner_changes_nothing) {
    const int32_t sizes[] = {1, 63, 4095, 4096, 4097, 8191, 20001, 49155, 131071, 262144};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        int32_t n = sizes[k];
        struct cw_sampler *alone = cw_sampler_create(n), *helped = cw_sampler_create(n);
        struct crew crew = {0};
        float *l = cw_reallocarray(NULL, (size_t)n, sizeof *l);
        cw_sampler_set_runner(helped, run_crew, &crew);
        for (int kind = 0; kind < 7; kind++) {
            struct cw_sampling set = random_settings(n);
            struct cw_draw x, y;
            struct cw_err err;
            int32_t usable = n > 2 && kind % 2 ? n - (int32_t)(next() % 2 + 1) : n;
            const int32_t history[] = {0, 1, 2, 0, 1};
            fill(l, n, kind);
            if (kind == 1 && n > 4096) { /* an error of a later run is seen */
                l[4096] = NAN;
            }
            int rc = cw_sampler_draw(alone, &set, l, usable, history, 5, 3, k, true, &x, &err);
            ck_assert_int_eq(
                rc, cw_sampler_draw(helped, &set, l, usable, history, 5, 3, k, true, &y, &err));
            if (rc == CW_OK) {
                ck_assert(memcmp(&x, &y, sizeof x) == 0);
                ck_assert(set.temp == 0 || alone->total == helped->total);
            } else {
                ck_assert_int_eq(rc, CW_ENUMERIC);
            }
        }
        ck_assert_int_ge(crew.n_calls, 7);
        cw_sampler_destroy(alone);
        cw_sampler_destroy(helped);
        free(l);
    }
}
END_TEST

/* ---- by hand ------------------------------------------------------------------------------- */

START_TEST(weight_is_power_of_two) {
    for (int i = 0; i <= 1200000; i++) {
        float y = -120.0f * (float)i / 1200000;
        double want = exp2((double)y), got = (double)cw_exp2_weight(y);
        ck_assert_msg(fabs(got - want) <= want * 0x1p-22, "2^%g", (double)y);
    }
    ck_assert(cw_exp2_weight(0) == 1);
    const struct cw_scale k = {.best = 1, .slope = 2};
    ck_assert(cw_sample_power(&k, 1) == 0);
    ck_assert(cw_sample_power(&k, -3.5f) == -9);
    ck_assert(cw_sample_power(&k, -58.9f) > -120);
    ck_assert(cw_sample_power(&k, -59.5f) == -120);
    ck_assert(cw_sample_power(&k, -FLT_MAX) == -120);
    ck_assert(cw_sample_power(&k, -INFINITY) == -120);
}
END_TEST

/* Weights are rounded to a grid that lets f64 sum them exactly, ties to even, as adding and
 * subtracting 3/2 of 2^52 steps in f64 rounds; and entropy is of all runs. */
START_TEST(weights_on_grid) {
    const int32_t sizes[] = {500, 5000, 40001, 262144};
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        int32_t n = sizes[k];
        struct cw_sampler *s = cw_sampler_create(n);
        struct cw_sampling set = plain(0.8f);
        struct cw_draw d;
        float *l = cw_reallocarray(NULL, (size_t)n, sizeof *l);
        double step = 0x1p-44, total = 0, z = 0, xz = 0;
        while (step * 0x1p53 < n) {
            step *= 2;
        }
        for (int32_t i = 0; i < n; i++) {
            /* The second half is so far below that only some of it counts. */
            double below = i < n / 2 ? 30 * uniform() : 18 + 10 * uniform();
            l[i] = i == 7 ? 3 : (float)(3 - below);
            z += exp((double)l[i]);
            xz += (double)l[i] * exp((double)l[i]);
        }
        ck_assert_int_eq(cw_sampler_draw(s, &set, l, n, NULL, 0, 1, 0, true, &d, NULL), CW_OK);
        int rounded = 0;
        for (int32_t i = 0; i < n; i++) {
            float w = cw_sample_weight(&s->scale, l[i]);
            float e = cw_exp2_weight(cw_sample_power(&s->scale, l[i]));
            volatile double up = (double)e + 1.5 * 0x1p52 * step;
            double want = up - 1.5 * 0x1p52 * step;
            ck_assert_msg((double)w == want, "%.9g: %.9g, wanted %.9g", (double)l[i], (double)w,
                          want);
            ck_assert(fabs((double)e - exp(((double)l[i] - 3) / 0.8)) < 4e-6 * (double)e + 1e-30);
            rounded += (double)e != want;
            total += want;
        }
        ck_assert_int_gt(rounded, n / 4);
        ck_assert(s->total == total);
        ck_assert(fabs((double)d.entropy - (log(z) - xz / z)) < 1e-5);
        cw_sampler_destroy(s);
        free(l);
    }
}
END_TEST

/* Probabilities 1/2, 1/4, 1/8, 1/8: a token stays while the mass before it is at most top-p. */
START_TEST(nucleus_borders) {
    const float ln2 = 0.69314718f;
    const float l[] = {2 * -ln2, 0, 1 * -ln2, 2 * -ln2};
    const struct {
        float top_p;
        int kept;
    } rows[] = {{0, 1}, {0.49f, 1}, {0.51f, 2}, {0.74f, 2}, {0.76f, 3}, {0.874f, 3}, {1, 4}};
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        struct cw_sampling s = plain(1);
        int seen[4] = {0}, kinds = 0;
        s.top_p = rows[r].top_p;
        for (uint64_t position = 0; position < 400; position++) {
            struct cw_draw d;
            ck_assert_int_eq(draw(&s, l, 4, 7, position, &d), CW_OK);
            kinds += seen[d.id]++ == 0;
        }
        ck_assert_int_eq(kinds, rows[r].kept);
        ck_assert(seen[1] > 0);
        if (rows[r].kept == 3) { /* of the two equal ones the lower id stays */
            ck_assert(seen[0] > 0 && seen[3] == 0);
        }
    }
    /* Four equal ones: the mass before the third is exactly 1/2. */
    const float even[] = {3, 3, 3, 3};
    struct cw_sampling s = plain(1);
    struct cw_draw d;
    s.top_p = 0.5f;
    ck_assert_int_eq(draw(&s, even, 4, 1, 0, &d), CW_OK);
    ck_assert(d.p == 1.0f / 3);
}
END_TEST

START_TEST(temperatures) {
    const float l[] = {30, 31, 31, -40};
    struct cw_draw d;
    struct cw_err err;
    struct cw_sampling s = plain(0);
    for (uint32_t seed = 0; seed < 50; seed++) {
        s.temp = 0;
        ck_assert_int_eq(draw(&s, l, 4, seed, seed, &d), CW_OK);
        ck_assert_int_eq(d.id, 1);
        ck_assert(d.p == 1);
    }
    const float tiny[] = {1e-6f, 1e-30f, 1e-44f}; /* 1 over the last is infinite */
    for (int t = 0; t < 3; t++) {
        int seen[4] = {0};
        s.temp = tiny[t];
        for (uint32_t seed = 0; seed < 200; seed++) {
            ck_assert_int_eq(draw(&s, l, 4, seed, 3, &d), CW_OK);
            seen[d.id]++;
        }
        ck_assert(seen[0] == 0 && seen[1] > 50 && seen[2] > 50 && seen[3] == 0);
    }
    const float refused[] = {-1, INFINITY, -INFINITY, NAN, 5.5f};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        s.temp = refused[i];
        ck_assert_int_eq(cw_sampling_check(&s, &err), CW_EINVAL);
        ck_assert(strncmp(err.text, "temp ", 5) == 0);
        ck_assert_int_eq(draw(&s, l, 4, 1, 0, &d), CW_EINVAL);
    }
    s = plain(1);
    s.n_bias = 1;
    s.bias[0].bias = NAN;
    ck_assert_int_eq(cw_sampling_check(&s, &err), CW_EINVAL);
    s.bias[0].bias = -INFINITY;
    ck_assert_int_eq(cw_sampling_check(&s, &err), CW_OK);
}
END_TEST

/* Every setting at the ends of its range, past them, and as what is no number. */
START_TEST(every_setting_out_of_range) {
#define AT(field) offsetof(struct cw_sampling, field)
    static const struct {
        const char *name;
        size_t at;
        bool whole; /* an int32_t, else a float */
        double low, high;
    } settings[] = {
        {"temp", AT(temp), false, 0, 5},
        {"top_p", AT(top_p), false, 0, 1},
        {"top_k", AT(top_k), true, 0, INT32_MAX},
        {"min_p", AT(min_p), false, 0, 1},
        {"typical_p", AT(typical_p), false, 0, 1},
        {"penalty_repeat", AT(penalty_repeat), false, 0.0101, 100}, /* no float is 0.01 */
        {"penalty_frequency", AT(penalty_frequency), false, -100, 100},
        {"penalty_presence", AT(penalty_presence), false, -100, 100},
        {"penalty_last_n", AT(penalty_last_n), true, -1, INT32_MAX},
        {"dry_multiplier", AT(dry_multiplier), false, 0, 100},
        {"dry_base", AT(dry_base), false, 1, 100},
        {"dry_allowed_length", AT(dry_allowed_length), true, 1, INT32_MAX},
        {"dry_last_n", AT(dry_last_n), true, -1, INT32_MAX},
        {"xtc_probability", AT(xtc_probability), false, 0, 1},
        {"xtc_threshold", AT(xtc_threshold), false, 0, 1},
        {"number of logit biases", AT(n_bias), true, 0, CW_MAX_BIAS},
    };
#undef AT
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        double low = settings[i].low, high = settings[i].high;
        const double values[] = {low,      high,      low - 1,    low - 1e-3, high * 1.001 + 1e-3,
                                 HUGE_VAL, -HUGE_VAL, (double)NAN};
        for (int v = 0; v < 8; v++) {
            struct cw_sampling s = plain(1);
            struct cw_err err = {0};
            struct cw_draw d;
            const float l[] = {1, 2};
            if (settings[i].whole) {
                /* Below the range, and above it where an integer can be. */
                bool above = v == 4 && high < INT32_MAX;
                if (v > 2 && !above) {
                    continue;
                }
                int32_t n = (int32_t)(above ? high + 1 : values[v]);
                memcpy((char *)&s + settings[i].at, &n, sizeof n);
            } else {
                float f = (float)values[v];
                memcpy((char *)&s + settings[i].at, &f, sizeof f);
            }
            int rc = cw_sampling_check(&s, &err);
            ck_assert_msg((rc == CW_OK) == (v < 2), "%s, value %d: %d", settings[i].name, v, rc);
            if (v >= 2) {
                ck_assert_int_eq(rc, CW_EINVAL);
                ck_assert_msg(strncmp(err.text, settings[i].name, strlen(settings[i].name)) == 0,
                              "%s: %s", settings[i].name, err.text);
                ck_assert_int_eq(draw(&s, l, 2, 1, 0, &d), CW_EINVAL);
            }
        }
    }
    /* A bias bans or moves; it does not make a token certain. */
    static const struct {
        float bias;
        int rc;
    } biases[] = {{-INFINITY, CW_OK}, {1e6f, CW_OK},         {-1e6f, CW_OK},
                  {2e6f, CW_EINVAL},  {INFINITY, CW_EINVAL}, {NAN, CW_EINVAL}};
    for (size_t i = 0; i < sizeof biases / sizeof biases[0]; i++) {
        struct cw_sampling s = plain(1);
        s.n_bias = 1;
        s.bias[0].bias = biases[i].bias;
        ck_assert_int_eq(cw_sampling_check(&s, NULL), biases[i].rc);
    }
}
END_TEST

START_TEST(no_usable_scores) {
    const float inf = INFINITY;
    const struct {
        float l[3];
        int rc;
    } rows[] = {
        {{-inf, -inf, -inf}, CW_ENUMERIC},   {{NAN, NAN, NAN}, CW_ENUMERIC},
        {{1, NAN, 2}, CW_ENUMERIC},          {{1, -NAN, 2}, CW_ENUMERIC},
        {{1, inf, 2}, CW_ENUMERIC},          {{-inf, 1, -inf}, CW_OK},
        {{-FLT_MAX, -FLT_MAX, -inf}, CW_OK},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        for (int t = 0; t < 2; t++) {
            struct cw_sampling s = plain(t == 0 ? 0 : 0.8f);
            struct cw_draw d;
            ck_assert_int_eq(draw(&s, rows[r].l, 3, 1, 0, &d), rows[r].rc);
            if (rows[r].rc == CW_OK) {
                ck_assert(d.id >= 0 && d.id < 3 && rows[r].l[d.id] > -inf);
            }
        }
    }
    /* A NaN at every place of a vocabulary of a block and a bit. */
    for (int32_t at = 0; at < 100; at++) {
        float l[100] = {0};
        struct cw_sampling s = plain(1);
        struct cw_draw d;
        l[at] = at % 2 ? NAN : -NAN;
        ck_assert_int_eq(draw(&s, l, 100, 1, 0, &d), CW_ENUMERIC);
    }
    /* One token, and all that penalties and bans leave. */
    const float one[] = {-3};
    struct cw_sampling s = plain(1);
    struct cw_draw d;
    ck_assert_int_eq(draw(&s, one, 1, 1, 0, &d), CW_OK);
    ck_assert(d.id == 0 && d.p == 1 && d.entropy == 0);
    s.n_bias = 1;
    s.bias[0].bias = -inf;
    ck_assert_int_eq(draw(&s, one, 1, 1, 0, &d), CW_ENUMERIC);
    struct cw_sampler *sampler = cw_sampler_create(3);
    const float l[] = {-1e38f, 1, 2};
    const int32_t history[] = {0, 1, 2, 2, -5, 3, INT32_MAX};
    s = plain(1);
    s.penalty_repeat = 100;
    s.penalty_presence = 100;
    ck_assert_int_eq(cw_sampler_draw(sampler, &s, l, 3, history, 7, 1, 0, false, &d, NULL), CW_OK);
    ck_assert(d.id >= 0 && d.id < 3);
    cw_sampler_destroy(sampler);
}
END_TEST

START_TEST(details) {
    const float l[] = {1, 3, 2, 3, 0, -INFINITY};
    struct cw_sampling s = plain(0.5f);
    struct cw_draw d;
    double z = 0, entropy = 0;
    s.top_k = 2;
    ck_assert_int_eq(draw(&s, l, 6, 1, 0, &d), CW_OK);
    for (int i = 0; i < 5; i++) {
        z += exp((double)l[i]);
    }
    for (int i = 0; i < 5; i++) {
        double p = exp((double)l[i]) / z;
        entropy -= p * log(p);
    }
    ck_assert(fabs((double)d.entropy - entropy) < 1e-6);
    ck_assert_int_eq(d.n_alternatives, 5);
    const int32_t order[] = {1, 3, 2, 0, 4};
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(d.alternatives[i].id, order[i]);
        ck_assert(fabs((double)d.alternatives[i].p_raw - exp((double)l[order[i]]) / z) < 1e-7);
        ck_assert(d.alternatives[i].p == (i < 2 ? 0.5f : 0.0f));
    }
    ck_assert(d.id == 1 || d.id == 3);
    ck_assert_int_eq(d.rank, d.id == 1 ? 0 : 1);
    ck_assert(d.p == 0.5f && d.p_raw == d.alternatives[0].p_raw);

    /* Banned best: the second is drawn, and its rank says so. */
    s = plain(0);
    s.n_bias = 1;
    s.bias[0].id = 1;
    s.bias[0].bias = -INFINITY;
    ck_assert_int_eq(draw(&s, l, 6, 1, 0, &d), CW_OK);
    ck_assert(d.id == 3 && d.rank == 1);
    ck_assert(d.alternatives[0].p == 0 && d.alternatives[1].p == 1);

    /* More than the list holds, with ties at its end. */
    float many[200];
    for (int i = 0; i < 200; i++) {
        many[i] = i == 150 ? 2 : (float)(i % 2);
    }
    s = plain(1);
    ck_assert_int_eq(draw(&s, many, 200, 1, 0, &d), CW_OK);
    ck_assert_int_eq(d.n_alternatives, CW_N_ALTERNATIVES);
    ck_assert_int_eq(d.alternatives[0].id, 150);
    for (int i = 1; i < CW_N_ALTERNATIVES; i++) {
        ck_assert_int_eq(d.alternatives[i].id, 2 * i - 1);
    }
}
END_TEST

/* Repetition of "1 2 3": after it DRY weighs down what came next, more the longer the match. */
START_TEST(dry_by_hand) {
    const int32_t history[] = {9, 1, 2, 3, 4, 8, 1, 2, 3, 5, 7, 1, 2, 3};
    const int32_t breaker = 2;
    const float l[10] = {0, 0, 0, 0, 5, 5, 0, 0, 0, 4};
    struct cw_sampler *s = cw_sampler_create(10);
    struct cw_sampling set = plain(0);
    struct cw_draw d;
    set.dry_multiplier = 1;
    set.dry_base = 2;
    set.dry_allowed_length = 2;
    cw_sampler_draw(s, &set, l, 10, history, 14, 1, 0, false, &d, NULL);
    ck_assert_int_eq(d.id, 9); /* 4 and 5 lose 1 * 2^(3-2) */
    set.dry_allowed_length = 4;
    cw_sampler_draw(s, &set, l, 10, history, 14, 1, 0, false, &d, NULL);
    ck_assert_int_eq(d.id, 4);
    set.dry_allowed_length = 2;
    cw_sampler_set_breakers(s, &breaker, 1); /* the match is only "3" then */
    cw_sampler_draw(s, &set, l, 10, history, 14, 1, 0, false, &d, NULL);
    ck_assert_int_eq(d.id, 4);
    cw_sampler_destroy(s);
}
END_TEST

/* ---- randomness ---------------------------------------------------------------------------- */

/* Chi-square of counts against equal shares, for 255 degrees of freedom: the interval leaves out
 * less than 1 in 10^6 on either side. */
static void check_even(const uint32_t count[256], const char *what) {
    double n = 0, chi = 0;
    for (int i = 0; i < 256; i++) {
        n += count[i];
    }
    for (int i = 0; i < 256; i++) {
        double d = count[i] - n / 256;
        chi += d * d / (n / 256);
    }
    ck_assert_msg(chi > 160 && chi < 375, "%s: chi-square %g", what, chi);
}

START_TEST(numbers_are_even) {
    for (int byte = 0; byte < 8; byte++) {
        uint32_t by_position[256] = {0}, by_seed[256] = {0}, step[256] = {0}, stage[256] = {0};
        for (uint32_t i = 0; i < 65536; i++) {
            uint64_t a = cw_random(7, i, CW_STAGE_DRAW), b = cw_random(i, 0, CW_STAGE_DRAW);
            uint64_t c = a ^ cw_random(7, i + 1, CW_STAGE_DRAW);
            uint64_t d = a ^ cw_random(7, i, CW_STAGE_XTC) ^ cw_random(8, i, CW_STAGE_DRAW);
            by_position[a >> (8 * byte) & 255]++;
            by_seed[b >> (8 * byte) & 255]++;
            step[c >> (8 * byte) & 255]++;
            stage[d >> (8 * byte) & 255]++;
        }
        check_even(by_position, "positions");
        check_even(by_seed, "seeds");
        check_even(step, "neighbouring positions");
        check_even(stage, "stages and neighbouring seeds");
    }
    ck_assert_uint_ne(cw_random(0, 0, CW_STAGE_DRAW), cw_random(0, 0, CW_STAGE_XTC));
    ck_assert_uint_eq(cw_random(3, 1u << 20, CW_STAGE_DRAW), cw_random(3, 1u << 20, CW_STAGE_DRAW));
}
END_TEST

/* The draws follow the probabilities, and the seed repeats them. */
START_TEST(draws_follow_probabilities) {
    enum { N = 16, DRAWS = 40000 };
    float l[N];
    struct cw_sampler *s = cw_sampler_create(N);
    for (int run = 0; run < 4; run++) {
        struct cw_sampling set = plain(run < 2 ? 1 : 1.5f);
        double share[N], z = 0, chi = 0;
        uint32_t count[N] = {0};
        for (int i = 0; i < N; i++) {
            l[i] = (float)((i * 7) % N) * 0.2f;
            z += share[i] = exp((double)l[i] / (double)set.temp);
        }
        for (uint64_t position = 0; position < DRAWS; position++) {
            struct cw_draw d, again;
            cw_sampler_draw(s, &set, l, N, NULL, 0, 40 + (uint32_t)run, position, false, &d, NULL);
            cw_sampler_draw(s, &set, l, N, NULL, 0, 40 + (uint32_t)run, position, true, &again,
                            NULL);
            ck_assert_int_eq(d.id, again.id);
            count[d.id]++;
        }
        for (int i = 0; i < N; i++) {
            double want = DRAWS * share[i] / z, d = count[i] - want;
            chi += d * d / want;
        }
        /* 15 degrees of freedom: beyond 1.5 and 50 lie less than 2 in 10^5. */
        ck_assert_msg(chi > 1.5 && chi < 50, "run %d: chi-square %g", run, chi);
    }
    cw_sampler_destroy(s);
}
END_TEST

/* ---- the suite ----------------------------------------------------------------------------- */

int main(void) {
    Suite *suite = suite_create("sampler");
    TCase *reference = tcase_create("reference"), *hand = tcase_create("by hand"),
          *random = tcase_create("random");
    tcase_set_timeout(reference, 240);
    tcase_add_test(reference, as_the_textbook);
    tcase_add_test(reference, as_the_textbook_large);
    tcase_add_test(reference, each_stage_alone);
    tcase_add_test(reference, passes_agree);
    tcase_add_test(reference, versions_agree);
    tcase_add_test(reference, runner_changes_nothing);
    suite_add_tcase(suite, reference);
    tcase_set_timeout(hand, 120);
    tcase_add_test(hand, weight_is_power_of_two);
    tcase_add_test(hand, weights_on_grid);
    tcase_add_test(hand, nucleus_borders);
    tcase_add_test(hand, temperatures);
    tcase_add_test(hand, every_setting_out_of_range);
    tcase_add_test(hand, no_usable_scores);
    tcase_add_test(hand, details);
    tcase_add_test(hand, dry_by_hand);
    suite_add_tcase(suite, hand);
    tcase_set_timeout(random, 120);
    tcase_add_test(random, numbers_are_even);
    tcase_add_test(random, draws_follow_probabilities);
    suite_add_tcase(suite, random);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
