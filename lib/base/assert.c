/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void nj__assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "nightjar: %s:%d: assertion failed: %s\n", file, line, what);
    abort();
}
