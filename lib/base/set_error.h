/* SPDX-License-Identifier: BSD-3-Clause */
/* Error messages: one line with the problem and the remedy. */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/compiler.h"

/* Write the message to `why` (NULL: nowhere), truncated to `why_bytes`. Returns -1, for the caller
 * to return. */
static inline NJ_PRINTF(3, 4) int nj_set_error(char *why, size_t why_bytes, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, why ? why_bytes : 0, fmt, ap);
    va_end(ap);
    return -1;
}
