/* SPDX-License-Identifier: BSD-3-Clause */
/* nightjar-examples: routes for handlers that wait, block and compute. */
#include "options.h"

#include <string.h>

#include "examples.h"

static const struct nj_route routes[] = {
    {.method = "GET", .path = "/hello", .type = NJ_NON_BLOCKING, .handle = hello},
    {.method = "POST",
     .path = "/echo",
     .type = NJ_BLOCKING,
     .handle = echo,
     .body_max_bytes = UINT32_MAX}, /* not stored */
    {.method = "GET", .path = "/slow", .type = NJ_BLOCKING, .handle = slow},
    {.method = "GET", .path = "/events", .type = NJ_NON_BLOCKING, .handle = events},
    {.method = "GET", .path = "/metrics", .type = NJ_NON_BLOCKING, .handle = metrics},
    {.method = "GET", .path = "/lookup/*", .type = NJ_OS_BLOCKING, .handle = lookup},
    /* Without a path: handler = NAME in [site] or [path] of the file of --config mounts them. */
    {.method = "GET", .path = "hello", .type = NJ_NON_BLOCKING, .handle = hello},
    {.method = "GET", .path = "slow", .type = NJ_BLOCKING, .handle = slow},
    {.method = "GET", .path = "lookup", .type = NJ_OS_BLOCKING, .handle = lookup},
};

static const struct nj_app examples = {
    .name = "nightjar-examples",
    .intro = "usage: nightjar-examples [EAL arguments] -- --addr ADDRESS/PREFIX [options]\n"
             "\n"
             "  GET /hello           a line; NON_BLOCKING, inline\n"
             "  POST /echo           the request's body back; BLOCKING, on a stack of its own\n"
             "  GET /slow?ms=N       a line after N ms; BLOCKING: it sleeps, the core does not\n"
             "  GET /events?n=N      N server-sent events, one a second; NON_BLOCKING, callbacks\n"
             "  GET /metrics         a counter for Prometheus; NON_BLOCKING, inline\n"
             "  GET /lookup/NAME     addresses of NAME; OS_BLOCKING, on a worker\n"
             "\n"
             "  handler = hello, slow or lookup in the file of --config mounts one elsewhere.\n"
             "\n",
    .outro = "",
};

unsigned long query_number(const struct nj_request *req, const char *key, unsigned long otherwise,
                           unsigned long most)
{
    struct nj_view query = nj_request_query(req);
    size_t n_key = strlen(key), i = n_key;
    unsigned long n = 0;

    if (query.n_bytes < n_key + 2 || memcmp(query.p, key, n_key) != 0 || query.p[i++] != '=')
        return otherwise;
    for (; i < query.n_bytes && query.p[i] >= '0' && query.p[i] <= '9' && n < most; i++)
        n = n * 10 + (unsigned long)(query.p[i] - '0');
    return n < most ? n : most;
}

int main(int argc, char **argv)
{
    struct nj_server_config config;

    nj_server_config_init(&config);
    config.routes = routes;
    config.n_routes = sizeof routes / sizeof routes[0];
    return nj_app_run(argc, argv, &examples, &config);
}
