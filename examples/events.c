/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GET /events: server-sent events, five per second, until the client disconnects. Between two
 * events the response occupies a timer and a few bytes, no thread and no stack.
 */
#include <stdio.h>
#include <stdlib.h>

#include <nightjar/nightjar.h>

#define EVERY_NS 200000000u

struct feed {
    unsigned long n; /* events so far */
};

static void on_cancelled(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req;
    (void)resp;
    free(arg);
}

static void on_timer(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct feed *feed = arg;
    char event[64];
    int n = snprintf(event, sizeof event, "id: %lu\ndata: event %lu\n\n", feed->n, feed->n);
    int error = nj_response_write(resp, event, (size_t)n);

    (void)req;
    /* if the client reads too slowly, the buffer is full, and the whole event is dropped */
    if (error != 0 && error != NJ_ERR_WOULD_BLOCK) {
        free(feed);
        nj_response_reset(resp);
        nj_response_end(resp);
        return;
    }
    feed->n++;
    nj_response_on_timer(resp, EVERY_NS, on_timer, feed);
}

static void events(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct feed *feed = calloc(1, sizeof *feed);

    (void)arg;
    if (!feed) {
        nj_response_status(resp, 503);
        return;
    }
    if (nj_response_header(resp, "content-type", "text/event-stream") != 0 ||
        nj_response_header(resp, "cache-control", "no-store") != 0) {
        free(feed);
        nj_response_reset(resp);
        return;
    }
    nj_response_defer(resp); /* the response continues after this function has returned */
    nj_response_on_cancelled(resp, on_cancelled, feed);
    on_timer(req, resp, feed);
}

static const struct nj_route routes[] = {
    {.method = "GET", .path = "/events", .type = NJ_NON_BLOCKING, .handle = events},
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
    config.drain_timeout_s = 1; /* these responses never end by themselves */
    argv[1] = argv[0];          /* the EAL expects the name of the program before its arguments */
    return nj_server_run(argc - 1, argv + 1, &config);
}
