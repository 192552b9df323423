/* SPDX-License-Identifier: BSD-3-Clause */
/* The shortest server: one handler that answers GET / with a line of text. */
#include <stdio.h>
#include <string.h>

#include <nightjar/nightjar.h>

/* NJ_NON_BLOCKING: it runs on the lcore that received the request, so it must not wait. */
static void hello(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static const char text[] = "Hello from nightjar.\n";

    (void)req;
    (void)arg;
    if (nj_response_header(resp, "content-type", "text/plain; charset=utf-8") != 0 ||
        nj_response_write(resp, text, strlen(text)) != 0)
        nj_response_reset(resp);
}

static const struct nj_route routes[] = {
    {.method = "GET", .path = "/", .type = NJ_NON_BLOCKING, .handle = hello},
};

int main(int argc, char **argv)
{
    struct nj_server_config config;

    if (argc < 2) {
        fprintf(stderr, "usage: %s ADDRESS/PREFIX [EAL ARGUMENT...]\n", argv[0]);
        return 2;
    }
    nj_server_config_init(&config);
    config.addr[0] = argv[1];
    config.routes = routes;
    config.n_routes = sizeof routes / sizeof routes[0];
    argv[1] = argv[0]; /* the EAL expects the name of the program before its arguments */
    return nj_server_run(argc - 1, argv + 1, &config);
}
