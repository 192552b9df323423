/* SPDX-License-Identifier: BSD-3-Clause */
/* The shortest: quick, and waits for nothing. It runs where its request was parsed. */
#include "examples.h"

void hello(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req;
    (void)arg;
    nj_response_header(resp, "content-type", "text/plain; charset=utf-8");
    nj_response_write(resp, "Hello from a nightjar.\n", 23);
}
