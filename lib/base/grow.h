/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays that grow by one element. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Makes room for one more element of an array of `n`, whose capacity is a power of two. False:
 * there is no memory, and the array is as it was. */
static inline bool nj_grow(void **array, size_t n, size_t n_each)
{
    if (n & (n - 1)) /* there is room */
        return true;
    void *more = realloc(*array, (n > 0 ? 2 * n : 1) * n_each);
    *array = more ? more : *array;
    return more != NULL;
}
