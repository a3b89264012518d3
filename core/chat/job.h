/* SPDX-License-Identifier: MIT
 *
 * A request as the generator's thread owns it: a deep copy of what the caller handed over.
 */
#ifndef CW_JOB_H
#define CW_JOB_H

#include "chinwag/generator.h"

struct cw_job {
    struct cw_request req; /* all pointers lead to memory of the job */
    uint32_t number;
    double started_s;
};

/* CW_EINVAL for a request that does not say exactly one thing to answer. */
int cw_job_create(struct cw_job **out, const struct cw_request *req, struct cw_err *err);
void cw_job_destroy(struct cw_job *job);

/* Whether `job` carries on the conversation of `last`, whose reply was ids[0..n). */
bool cw_job_follows(const struct cw_job *job, const struct cw_job *last, const int32_t *ids,
                    size_t n);

#endif
