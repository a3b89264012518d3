/* SPDX-License-Identifier: MIT
 * A render within given bounds, for the tests of those bounds. */
#ifndef CHINWAG_TEMPLATE_LIMITS_H
#define CHINWAG_TEMPLATE_LIMITS_H

#include "value.h"

/* The bounds that cw_template_render uses for this conversation. */
struct cw_jlimits cw_jlimits_for(const struct cw_template_input *in);

int cw_template_render_within(const struct cw_template *t, const struct cw_template_input *in,
                              const struct cw_jlimits *limits, struct cw_prompt *out, bool *refused,
                              struct cw_err *err);

#endif
