/* SPDX-License-Identifier: MIT
 *
 * From a stream of token bytes to text that may be shown: whole characters, and nothing that may
 * still turn out to be a stop string. Held back is only the longest tail that is a prefix of a stop
 * string, or the beginning of a character. The result does not depend on how the bytes were cut
 * into tokens. One thread.
 */
#ifndef CW_STOPS_H
#define CW_STOPS_H

#include "chinwag/mem.h"

struct cw_filter;

/* Stop strings are copied; empty ones are ignored. */
struct cw_filter *cw_filter_create(const char *const *stops, size_t n_stops);
void cw_filter_destroy(struct cw_filter *f);

/* Take bytes[0..n) and append to *out what may be shown by now. True when a stop string ended
 * within them: *out then has received all that stood before it, and the filter takes no more. Of
 * several stop strings the one that ends first counts, of those that end together the longest. */
bool cw_filter_feed(struct cw_filter *f, const char *bytes, size_t n, struct cw_buf *out);

/* Nothing follows that could complete what is held: append it. An unfinished character at the very
 * end passes as the bytes it is, or is dropped when `whole` is set. The filter may be fed again. */
void cw_filter_flush(struct cw_filter *f, bool whole, struct cw_buf *out);

#endif
