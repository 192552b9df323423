/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of the simulated server: they send back what they read, while they read it. */
#include "routes.h"

#include <nightjar/handler.h>

#include "base/assert.h"
#include "base/compiler.h"

/* With `arg` the response has a trailer, and so no known length. */
static void echo(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char some[3000];
    int64_t n;

    if (arg)
        nj_response_trailer(resp, "x-sum", "1");
    while ((n = nj_request_read(req, some, sizeof some)) > 0)
        if (nj_response_write(resp, some, (size_t)n) != 0)
            return;
    if (n < 0)
        nj_response_reset(resp);
}

static const struct nj_route list[] = {
    {.method = "POST", .path = "/echo", .type = NJ_BLOCKING, .handle = echo},
    {.method = "POST",
     .path = "/echo-trailer",
     .type = NJ_BLOCKING,
     .handle = echo,
     .arg = (void *)1},
};

struct nj_routes *nj_sim_routes_new(void)
{
    char why[128];
    struct nj_routes *r = nj_routes_new(list, NJ_ARRAY_LEN(list), why, sizeof why);

    NJ_CHECK(r);
    return r;
}
