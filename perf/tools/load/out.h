/* SPDX-License-Identifier: BSD-3-Clause */
/* Output files of reports. */
#ifndef NJ_PERF_LOAD_OUT_H
#define NJ_PERF_LOAD_OUT_H

#include <stdbool.h>
#include <stdio.h>

/* "-" is standard output. NULL, or false, if it cannot be written; stderr has the reason. */
FILE *out_open(const char *path);
bool out_close(FILE *f, const char *path);

#endif
