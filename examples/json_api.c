/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A JSON API whose handler blocks: GET /hosts/NAME answers with the addresses of a host.
 *
 *     {"name":"localhost","addresses":["::1","127.0.0.1"]}
 *     {"error":"Name or service not known"}
 */
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nightjar/nightjar.h>

#define PREFIX   "/hosts/"
#define HOST_MAX 253 /* characters of a name of the DNS as text (RFC 1035 2.3.4) */

/* Copies the host name from the path. False: not a host name. Host names need no escaping in
 * JSON. */
static bool host_name(const struct nj_request *req, char out[HOST_MAX + 1])
{
    struct nj_view path = nj_request_plain_path(req);
    size_t n = path.n_bytes - strlen(PREFIX); /* the route matched this prefix */

    if (n == 0 || n > HOST_MAX)
        return false;
    memcpy(out, path.p + strlen(PREFIX), n);
    out[n] = '\0';
    return strspn(out, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == n;
}

/* Writes the response for a name. Returns the status. */
static unsigned print_addresses(FILE *out, const char *name)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *all;
    char text[NI_MAXHOST];
    int error = getaddrinfo(name, NULL, &hints, &all);

    if (error != 0) {
        fprintf(out, "{\"error\":\"%s\"}\n", gai_strerror(error));
        return error == EAI_NONAME ? 404 : 502;
    }
    fprintf(out, "{\"name\":\"%s\",\"addresses\":[", name);
    for (const struct addrinfo *a = all; a; a = a->ai_next)
        if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST) == 0)
            fprintf(out, "%s\"%s\"", a == all ? "" : ",", text);
    fprintf(out, "]}\n");
    freeaddrinfo(all);
    return 200;
}

/* NJ_OS_BLOCKING: getaddrinfo() waits in the kernel for files and name servers, so this runs on a
 * worker thread, and no lcore waits for it. */
static void look_up(struct nj_request *req, struct nj_response *resp, void *arg)
{
    char name[HOST_MAX + 1], *json = NULL;
    size_t n_bytes = 0;
    unsigned status = 400;
    FILE *out = open_memstream(&json, &n_bytes);

    (void)arg;
    if (!out) {
        nj_response_status(resp, 503);
        return;
    }
    if (host_name(req, name))
        status = print_addresses(out, name);
    else
        fprintf(out, "{\"error\":\"this is not a host name\"}\n");
    if (fclose(out) != 0)
        nj_response_status(resp, 503);
    else if (nj_response_status(resp, status) != 0 ||
             nj_response_header(resp, "content-type", "application/json") != 0 ||
             nj_response_write(resp, json, n_bytes) != 0)
        nj_response_reset(resp);
    free(json);
}

static const struct nj_route routes[] = {
    {.method = "GET", .path = PREFIX "*", .type = NJ_OS_BLOCKING, .handle = look_up},
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
