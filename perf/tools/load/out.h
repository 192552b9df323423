/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that reports go to. */
#ifndef NJ_PERF_LOAD_OUT_H
#define NJ_PERF_LOAD_OUT_H

#include <stdbool.h>
#include <stdio.h>

/* "-" is standard output. NULL, or false, when it can't be written; stderr has why. */
FILE *out_open(const char *path);
bool out_close(FILE *f, const char *path);

#endif
