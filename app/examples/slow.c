/* SPDX-License-Identifier: BSD-3-Clause */
/* A handler that waits, as for a backend, in straight-line code. Meanwhile the lcore serves other
 * requests. */
#include <stdio.h>

#include "examples.h"

void slow(struct nj_request *req, struct nj_response *resp, void *arg)
{
    unsigned long ms = query_number(req, "ms", 200, 60000);
    char line[64];

    (void)arg;
    if (nj_sleep(ms * 1000000) != 0)
        return; /* cancelled, or on a thread that must not wait: an empty response */
    int n = snprintf(line, sizeof line, "That took %lu ms.\n", ms);
    nj_response_write(resp, line, (size_t)n);
}
