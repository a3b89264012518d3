/* SPDX-License-Identifier: MIT
 *
 * Rendered lines as text to compare: a span that is more than plain text stands as <role:text>, its
 * role followed by * for strong, / for emphasis, - for struck, and by @ and its target when it is a
 * link. Columns without a span are blanks.
 */
#ifndef TESTS_MD_TEXT_H
#define TESTS_MD_TEXT_H

#include "chinwag/mem.h"
#include "ui/markdown/markdown.h"

/* Line i, without blanks at its end. */
void md_text_line(struct md *m, size_t i, bool marked, struct cw_buf *out);
/* Lines [0, n), a newline after each. */
void md_text_lines(struct md *m, size_t n, bool marked, struct cw_buf *out);

#endif
