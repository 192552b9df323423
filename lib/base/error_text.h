/* SPDX-License-Identifier: BSD-3-Clause */
/* Start-up fails with one line that says what is wrong and what to do; this writes it. */
#ifndef NJ_BASE_ERROR_TEXT_H
#define NJ_BASE_ERROR_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include "base/attr.h"

/* Writes the reason, cut to the buffer. Returns -1, to be passed on. */
static inline NJ_PRINTF(3, 4) int nj_fail(char *why, size_t why_bytes, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(why, why_bytes, fmt, ap);
    va_end(ap);
    return -1;
}

#endif
