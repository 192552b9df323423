/* SPDX-License-Identifier: BSD-3-Clause */
/* Fuzz target: any bytes as query string, number, and text of a JSON string. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/text_model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    const char *bad = n_bytes <= TEXT_MODEL_MAX ? text_check(data, n_bytes) : NULL;

    if (!bad)
        return 0;
    fprintf(stderr, "%s\n", bad);
    abort();
}
