/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: any HTTP-date. An accepted time can be formatted, and parses to the same time. */
#include <stdint.h>
#include <stdlib.h>

#include "http/proto/date.h"

static void require(int cond)
{
    if (!cond)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    static const int64_t nows[] = {0, 951782400, 1700000000, 253402300799, INT64_MIN, INT64_MAX};

    for (size_t i = 0; i < sizeof nows / sizeof nows[0]; i++) {
        char text[NJ_DATE_BYTES];
        int64_t t, again;
        if (!nj_date_parse((struct nj_str){(const char *)data, (uint32_t)n_bytes}, nows[i], &t))
            continue;
        require(t >= -62135596800 && t <= 253402300800); /* a leap second may exceed the last one */
        nj_date_format(t, text);
        require(nj_date_parse((struct nj_str){text, NJ_DATE_BYTES}, nows[i], &again));
        require(again == t || t == 253402300800);
    }
    return 0;
}
