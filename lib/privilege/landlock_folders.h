/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules for the files that a process may open from now on (landlock(7)). */
#pragma once

#include "privilege/needed_files.h"

/* A ruleset for these files and those that libraries open, as a descriptor that the caller closes;
 * -1: the kernel has no Landlock, or a sanitizer runs (syscall_filter.h). A rule that the kernel
 * refuses is logged. One thread. */
int nj__landlock_open(const struct nj_needed_file *file, uint32_t n_files);
