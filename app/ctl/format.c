/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctl/format.h"

#include <stdio.h>

#include "base/compiler.h"

void ctl_format_bytes(double n, const char *end, char *text, size_t n_text)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t i = 0;

    while (n >= 1024 && i + 1 < NJ_ARRAY_LEN(units)) {
        n /= 1024;
        i++;
    }
    snprintf(text, n_text,
             n >= 1024 ? "%.0e %s%s"
             : i > 0   ? "%.1f %s%s"
                       : "%.0f %s%s",
             n, units[i], end);
}
