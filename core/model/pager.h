/* SPDX-License-Identifier: MIT
 *
 * Weights brought into memory ahead of their first use, on a thread of its own, in the order in
 * which a forward pass wants them: the pass then neither waits for the disk nor takes a page fault
 * for every few pages. */
#ifndef CW_PAGER_H
#define CW_PAGER_H

#include "core/model/internal.h"

/* NULL where it would not pay: more weights than memory has room for, experts (few of which a
 * token needs), or no thread to be had. */
struct cw_pager *cw_pager_start(const struct cw_model *m);
/* Stops it where it is; NULL is allowed. */
void cw_pager_stop(struct cw_pager *p);

#endif
