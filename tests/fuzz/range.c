/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: any Range field for a file of any size. The resulting ranges are within the file,
 * do not overlap, and are not longer in total. The first eight bytes are the size. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/proto/range.h"

static void require(int cond)
{
    if (!cond)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct nj_ranges r;
    uint64_t size, sum = 0;

    if (n_bytes < sizeof size)
        return 0;
    memcpy(&size, data, sizeof size);
    struct nj_str value = {(const char *)data + sizeof size, (uint32_t)(n_bytes - sizeof size)};
    if (nj_ranges_parse(value, size, 24, &r) != NJ_RANGES_OK)
        return 0;
    require(r.n > 0 && r.n <= NJ_RANGES_MAX);
    for (uint32_t i = 0; i < r.n; i++) {
        const struct nj_range *a = &r.range[i];
        require(a->n_bytes > 0 && a->first < size && a->n_bytes <= size - a->first);
        require(a->n_bytes <= size - sum);
        sum += a->n_bytes;
        for (uint32_t k = 0; k < i; k++)
            require(a->first >= r.range[k].first + r.range[k].n_bytes ||
                    r.range[k].first >= a->first + a->n_bytes);
    }
    return 0;
}
