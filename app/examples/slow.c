/* SPDX-License-Identifier: BSD-3-Clause */
/* A handler that waits, as for a backend: straight-line code. The lcore serves other requests
 * meanwhile. */
#include <stdio.h>

#include "examples.h"

void slow(struct nj_request *req, struct nj_response *resp, void *arg)
{
    unsigned long ms = query_number(req, "ms", 200, 60000);
    char line[64];

    (void)arg;
    if (nj_sleep(ms * 1000000) != 0)
        return; /* the stream is gone, or it must not wait here: an empty answer */
    int n = snprintf(line, sizeof line, "That took %lu ms.\n", ms);
    nj_response_write(resp, line, (size_t)n);
}
