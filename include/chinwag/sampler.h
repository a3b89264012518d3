/* SPDX-License-Identifier: MIT
 *
 * From logits to a token. Order (design, rule 8): logit bias, penalties, DRY, temperature, top-k,
 * typical-p, top-p, min-p, XTC, draw; all but temperature and top-p are off by default.
 *
 * As the textbook has it: logits / max(T, 1e-6), softmax, sort descending, keep a token while the
 * cumulative probability before it is at most top-p (so always one; 1 keeps all), renormalise,
 * draw. T = 0 takes the best and draws nothing. Equal logits rank by lower id. The vocabulary is
 * never sorted: candidates are selected. The normaliser is an f64 sum over runs of 4,096 ids in
 * order, so the thread count does not matter.
 *
 * Sources: Holtzman et al. 2020 (nucleus), Fan et al. 2018 (top-k), Meister et al. 2022 (typical),
 * Nguyen et al. 2024 (min-p), Keskar et al. 2019 (repetition penalty); DRY and XTC as proposed by
 * p-e-w for text-generation-webui (pull requests 5677 and 6335, 2024).
 *
 * A sampler belongs to one thread, which may have others help (cw_sampler_set_runner).
 */
#ifndef CHINWAG_SAMPLER_H
#define CHINWAG_SAMPLER_H

#include "chinwag/err.h"
#include "chinwag/mem.h"

enum { CW_MAX_BIAS = 32 };

/* One immutable block of settings; plain data, copied freely. */
struct cw_sampling {
    float temp;              /* 0 .. 5; 0 is greedy */
    float top_p;             /* 0 .. 1; 1 is off */
    int32_t top_k;           /* 0 is off */
    float min_p;             /* 0 is off */
    float typical_p;         /* 1 is off */
    float penalty_repeat;    /* 1 is off */
    float penalty_frequency; /* 0 is off */
    float penalty_presence;  /* 0 is off */
    int32_t penalty_last_n;  /* tokens looked back at: 0 none, -1 all */
    float dry_multiplier;    /* 0 is off */
    float dry_base;
    int32_t dry_allowed_length;
    int32_t dry_last_n;    /* -1 all */
    float xtc_probability; /* 0 is off */
    float xtc_threshold;
    int32_t n_bias;
    struct {
        int32_t id;
        float bias; /* added to the logit; -INFINITY bans the token */
    } bias[CW_MAX_BIAS];
};

void cw_sampling_default(struct cw_sampling *s); /* T 0.8, top-p 0.95, the rest off */
/* CW_EINVAL naming the value that is out of range, negative, infinite or NaN. */
int cw_sampling_check(const struct cw_sampling *s, struct cw_err *err);

/* One 64-bit random number from (seed, position in the reply, stage): counter-based, so a batch, a
 * rewind or a resume draws the same. */
enum cw_stage { CW_STAGE_DRAW, CW_STAGE_XTC };
uint64_t cw_random(uint32_t seed, uint64_t position, enum cw_stage stage);

struct cw_sampler;
struct cw_sampler *cw_sampler_create(int32_t n_vocab);
void cw_sampler_destroy(struct cw_sampler *s);
/* Let run(arg, fn, fn_arg, n_chunks) do the passes over the vocabulary: it calls fn(fn_arg, chunk,
 * thread) once for each chunk, in any order and from any threads, and returns when all are done.
 * Results do not depend on it. NULL: the calling thread does them, as at first. */
typedef void cw_sampler_run(void *arg, void (*fn)(void *fn_arg, int chunk, int thread),
                            void *fn_arg, int n_chunks);
void cw_sampler_set_runner(struct cw_sampler *s, cw_sampler_run *run, void *arg);
/* Ids that end a repetition for DRY, such as those holding a line end; none at first. */
void cw_sampler_set_breakers(struct cw_sampler *s, const int32_t *ids, size_t n);

enum { CW_N_ALTERNATIVES = 8 };
struct cw_draw {
    int32_t id;
    float p;       /* probability after the samplers; 1 when greedy */
    float p_raw;   /* of the plain softmax of the logits at T 1 */
    int32_t rank;  /* 0: the best logit */
    float entropy; /* of the plain softmax, in nats */
    int n_alternatives;
    struct {
        int32_t id;
        float p_raw;
        float p;
    } alternatives[CW_N_ALTERNATIVES]; /* the best by raw logit, best first */
};

/* Choose the token at `position` of the reply. `history` are the ids before it (prompt and reply)
 * for the penalties. Ids from n_usable on are padding and never chosen. `logits` [n_vocab] are not
 * changed. -inf is a banned token; NaN and +inf are CW_ENUMERIC, and so is no finite logit left.
 * `detail` false leaves all but id, p and rank at 0 (they cost a pass). */
int cw_sampler_draw(struct cw_sampler *s, const struct cw_sampling *set, const float *logits,
                    int32_t n_usable, const int32_t *history, size_t n_history, uint32_t seed,
                    uint64_t position, bool detail, struct cw_draw *out, struct cw_err *err);

/* As if `id` had been drawn, whatever its logit and the settings: p is 1, the rest is told as
 * above. CW_EINVAL for an id that may not be drawn. */
int cw_sampler_put(struct cw_sampler *s, int32_t id, const float *logits, int32_t n_usable,
                   bool detail, struct cw_draw *out, struct cw_err *err);

/* Live settings: one writer publishes whole blocks, one reader takes the newest, neither waits. */
struct cw_live;
struct cw_live *cw_live_create(const struct cw_sampling *initial);
void cw_live_destroy(struct cw_live *l);
void cw_live_publish(struct cw_live *l, const struct cw_sampling *s); /* the writer's thread */
/* Copies the newest block to *out; returns its version, which grows with every publish. */
uint64_t cw_live_load(struct cw_live *l, struct cw_sampling *out); /* the reader's thread */

#endif
