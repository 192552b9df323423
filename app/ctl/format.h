/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers for people. Pure. */
#pragma once

#include <stddef.h>

/* Bytes in the largest unit of 1024 that has a digit before the point, and `end`: "1.5 GiB/s". */
void ctl_format_bytes(double n, const char *end, char *text, size_t n_text);
