/* SPDX-License-Identifier: MIT
 *
 * Named settings of the sampler, for keys, /preset and the palette: a preset is a row. Constant
 * data.
 */
#ifndef APP_PRESETS_H
#define APP_PRESETS_H

#include <stddef.h>

struct app_preset {
    const char *name;
    const char *temp, *top_p; /* as /set takes them; NULL: left as it is */
    const char *help;         /* one sentence */
};

extern const struct app_preset app_presets[];
extern const size_t app_n_presets;

#endif
