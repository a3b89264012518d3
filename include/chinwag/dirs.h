/* SPDX-License-Identifier: MIT
 *
 * Folders that a program keeps its things in. Any thread.
 */
#ifndef CHINWAG_DIRS_H
#define CHINWAG_DIRS_H

#include "chinwag/err.h"

/* Make the folder `dir`, an absolute path, and those above it that are missing, readable by their
 * owner only. That it is there already is no failure, whatever the file system says to being asked.
 * CW_EIO with the part that could not be made, and why. */
int cw_dirs_make(const char *dir, struct cw_err *err);

#endif
