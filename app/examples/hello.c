/* SPDX-License-Identifier: BSD-3-Clause */
/* The shortest handler: NON_BLOCKING, it runs inline on the lcore that received the request. */
#include "examples.h"

void hello(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req;
    (void)arg;
    nj_response_header(resp, "content-type", "text/plain; charset=utf-8");
    nj_response_write(resp, "Hello from a nightjar.\n", 23);
}
