/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers and texts for people. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes in the largest unit of 1024 that has a digit before the point, and `end`: "1.5 GiB/s". */
void ctl_format_bytes(double n, const char *end, char *text, size_t n_text);

/* May a character of a text that others made be written to a terminal? Not if it is invalid
 * (NJ_UTF8_INVALID), controls the terminal, changes the direction of what follows or is invisible
 * (Unicode categories Cc, Cf, Zl, Zp), or has no meaning that is known (Co, Cs, noncharacters). */
bool ctl_is_shown(uint32_t code);
