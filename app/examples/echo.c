/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends the request body back as it arrives. Reading waits for data from the peer, writing for its
 * flow-control window. */
#include "examples.h"

void echo(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct nj_view type = nj_request_header(req, "content-type");
    char name[128], buf[16384];
    int64_t n;

    (void)arg;
    if (type.n_bytes > 0 && type.n_bytes < sizeof name) {
        for (uint32_t i = 0; i < type.n_bytes; i++)
            name[i] = type.p[i];
        name[type.n_bytes] = '\0';
        nj_response_header(resp, "content-type", name);
    }
    while ((n = nj_request_read(req, buf, sizeof buf)) > 0)
        if (nj_response_write(resp, buf, (size_t)n) != 0)
            return; /* the peer has gone */
    if (n < 0)
        nj_response_reset(resp); /* the body is incomplete: reset, so that the peer does not take it
                                    for the whole */
}
