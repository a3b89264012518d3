/* SPDX-License-Identifier: MIT
 *
 * Everything that comes out of a model's file, opened in order and closed in reverse. The result
 * belongs to one thread at a time; opening may run in another than using.
 */
#ifndef CW_LOADER_H
#define CW_LOADER_H

#include "chinwag/generator.h"
#include "chinwag/snapshot.h"

struct cw_loaded {
    struct cw_gguf *gguf;
    struct cw_model *model;
    struct cw_tokenizer *tokenizer;
    struct cw_session *session;
    struct cw_sampler *sampler;
    bool has_template;               /* one was given or is in the file */
    struct cw_template *tmpl;        /* NULL with has_template: it could not be read, see below */
    struct cw_err template_err;      /* why */
    struct cw_str template_source;   /* a view of the file or of the options */
    char *bos, *eos;                 /* token texts, "" where there is none */
    int32_t n_usable;                /* ids that may be drawn */
    struct cw_sampling sampling;     /* what the file recommends, the rest as built in */
    unsigned sampling_set;           /* CW_SET_* */
    struct cw_buf notices;           /* lines, each terminated by NUL */
    char hash[2 * CW_MODEL_KEY + 1]; /* the model's key in hexadecimal */
};

enum { CW_LOAD_STEPS = 5 };

/* Called before each step, 0 .. CW_LOAD_STEPS - 1. True stops with CW_ECANCEL. */
typedef bool cw_load_progress(void *arg, int step);

/* On failure nothing is left open; *m may be closed again all the same. */
int cw_loaded_open(struct cw_loaded *m, const struct cw_generator_options *opt,
                   cw_load_progress *progress, void *arg, struct cw_err *err);
void cw_loaded_close(struct cw_loaded *m);

/* Whether a key recommends, for sampling, what nothing here follows. */
bool cw_not_recommended(struct cw_str key);

/* As cw_generator_file_sampling. */
unsigned cw_loaded_sampling(const struct cw_loaded *m, struct cw_sampling *out);

/* Tell a sampler which tokens end a repetition for DRY. Reads the whole vocabulary. */
void cw_set_breakers(struct cw_sampler *s, const struct cw_tokenizer *t, int32_t n_usable);

#endif
