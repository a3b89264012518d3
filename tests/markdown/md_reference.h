/* SPDX-License-Identifier: MIT
 *
 * Two descriptions of one message, in the same words: by the renderer, fed in pieces and kept block
 * by block, and by cmark-gfm, given all of it at once. A line a block: the containers it stands in
 * with their marks ('+' where it is the first one of an item), its kind, and its text with the
 * styles of its runs.
 */
#ifndef TESTS_MD_REFERENCE_H
#define TESTS_MD_REFERENCE_H

#include "chinwag/mem.h"
#include "ui/markdown/markdown.h"

/* m is finished and has been laid out. */
void describe_ours(struct md *m, struct cw_buf *out);
void describe_cmark(const char *s, size_t n, struct cw_buf *out);

#endif
