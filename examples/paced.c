/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GET /download: 8 MiB, generated while they are sent, in a class of the policy with the rates of
 * paced.conf. No function waits for the client: on_writable() writes as many bytes as fit, and is
 * called again when there is room.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <nightjar/nightjar.h>

#define BODY_BYTES "8388608"
#define PERIOD     251 /* byte i of the body is i modulo this */

static unsigned char pattern[64 * PERIOD];

struct download {
    uint64_t at, n_bytes; /* of the body: written so far, total */
};

static void end(struct nj_response *resp, struct download *d)
{
    free(d);
    nj_response_end(resp);
}

static void on_cancelled(struct nj_request *req, struct nj_response *resp, void *arg)
{
    (void)req;
    (void)resp;
    free(arg);
}

static void on_writable(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct download *d = arg;

    (void)req;
    while (d->at < d->n_bytes) {
        uint64_t from = d->at % PERIOD, n = sizeof pattern - from;
        if (n > d->n_bytes - d->at)
            n = d->n_bytes - d->at;
        int64_t taken = nj_response_try_write(resp, pattern + from, n);
        if (taken < 0) {
            nj_response_reset(resp);
            break;
        }
        d->at += (uint64_t)taken;
        if ((uint64_t)taken < n)
            return; /* no room left: this function is called again */
    }
    end(resp, d);
}

static void download(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct download *d = calloc(1, sizeof *d);

    (void)arg;
    if (!d) {
        nj_response_status(resp, 503);
        return;
    }
    if (nj_response_class(resp, "paced") != 0 ||
        nj_response_header(resp, "content-type", "application/octet-stream") != 0 ||
        nj_response_header(resp, "content-length", BODY_BYTES) != 0) {
        free(d);
        nj_response_reset(resp);
        return;
    }
    d->n_bytes = strtoull(BODY_BYTES, NULL, 10);
    nj_response_defer(resp); /* the response continues after this function has returned */
    nj_response_on_cancelled(resp, on_cancelled, d);
    nj_response_on_writable(resp, on_writable, d);
    on_writable(req, resp, d);
}

static const struct nj_route routes[] = {
    {.method = "GET", .path = "/download", .type = NJ_NON_BLOCKING, .handle = download},
};

int main(int argc, char **argv)
{
    struct nj_server_config config;

    if (argc < 2) {
        fprintf(stderr, "usage: %s ADDRESS/PREFIX [EAL ARGUMENT...]\n", argv[0]);
        return 2;
    }
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (unsigned char)(i % PERIOD);
    nj_server_config_init(&config);
    config.addr[0] = argv[1];
    config.policy_file = "paced.conf"; /* SIGHUP reloads it */
    config.routes = routes;
    config.n_routes = sizeof routes / sizeof routes[0];
    argv[1] = argv[0]; /* the EAL expects the name of the program before its arguments */
    return nj_server_run(argc - 1, argv + 1, &config);
}
