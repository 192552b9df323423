/* SPDX-License-Identifier: BSD-3-Clause */
/* Output files of reports. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* "-" is standard output. NULL, or false, if it cannot be written; stderr has the reason. */
FILE *out_open(const char *path);
bool out_close(FILE *f, const char *path);
