/* SPDX-License-Identifier: BSD-3-Clause */
/* nj-attack-server: the server of ./dev bench attacks: files, and a route that takes a body. */
#include "options.h"

#include <string.h>

/* OS_BLOCKING: the handler begins when the whole body has arrived, which it never does here. */
static void upload(struct nj_request *req, struct nj_response *resp, void *arg)
{
    static const char done[] = "done\n";

    (void)req;
    (void)arg;
    nj_response_header(resp, "content-type", "text/plain");
    nj_response_write(resp, done, strlen(done));
}

static const struct nj_route routes[] = {
    {.method = "POST", .path = "/upload", .type = NJ_OS_BLOCKING, .handle = upload},
};

static const struct nj_app app = {.name = "nj-attack-server", .intro = "", .outro = ""};

int main(int argc, char **argv)
{
    struct nj_server_config config;

    nj_server_config_init(&config);
    config.routes = routes;
    config.n_routes = sizeof routes / sizeof routes[0];
    return nj_app_run(argc, argv, &app, &config);
}
