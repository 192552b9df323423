/* SPDX-License-Identifier: BSD-3-Clause */
/* nj-ewyk-server: the routes of ./dev bench ewyk --server. All are BLOCKING, so a strategy may run
 * their tasks in any mode. None is moved to workers because of its measured time (pin_to_lcore). */
#include "options.h"

#include <string.h>

#define BLOCK_NS 1000000u

struct kind {
    size_t n_bytes;
    bool blocks;
};

static char page[4096];

static void answer(struct nj_request *req, struct nj_response *resp, void *arg)
{
    const struct kind *kind = arg;

    (void)req;
    if (kind->blocks && nj_sleep(BLOCK_NS) != 0)
        return;
    nj_response_header(resp, "content-type", "text/plain");
    nj_response_write(resp, page, kind->n_bytes);
}

static struct kind tiny = {16, false}, tiny_blocks = {16, true};
static struct kind large = {sizeof page, false}, large_blocks = {sizeof page, true};

#define ROUTE(at, kind)                                                                            \
    {                                                                                              \
        .method = "GET", .path = (at), .type = NJ_BLOCKING, .handle = answer, .arg = &(kind),      \
        .pin_to_lcore = true                                                                       \
    }

static const struct nj_route routes[] = {
    ROUTE("/tiny", tiny),
    ROUTE("/tiny/blocks", tiny_blocks),
    ROUTE("/4KiB", large),
    ROUTE("/4KiB/blocks", large_blocks),
};

static const struct nj_app app = {.name = "nj-ewyk-server", .intro = "", .outro = ""};

int main(int argc, char **argv)
{
    struct nj_server_config config;

    memset(page, '.', sizeof page);
    nj_server_config_init(&config);
    config.routes = routes;
    config.n_routes = sizeof routes / sizeof routes[0];
    return nj_app_run(argc, argv, &app, &config);
}
