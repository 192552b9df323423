/* SPDX-License-Identifier: BSD-3-Clause */
/* Failure of an assertion: print it and abort. Contract: assert.h. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void nj__assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "nightjar: %s:%d: assertion failed: %s\n", file, line, what);
    abort();
}
