/* SPDX-License-Identifier: BSD-3-Clause */
/* Resolves a name with the C library, which blocks in the kernel. Therefore the handler is
 * OS_BLOCKING and runs on a worker. */
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "examples.h"

void lookup(struct nj_request *req, struct nj_response *resp, void *arg)
{
    struct nj_view host = nj_request_path_rest(req); /* behind /lookup/, or where it is mounted */
    struct addrinfo want = {.ai_socktype = SOCK_STREAM}, *all = NULL;
    char name[256], line[NI_MAXHOST + 1];

    (void)arg;
    if (host.n_bytes == 0 || host.n_bytes >= sizeof name) {
        nj_response_status(resp, 400);
        return;
    }
    memcpy(name, host.p, host.n_bytes);
    name[host.n_bytes] = '\0';
    int rc = getaddrinfo(name, NULL, &want, &all);
    if (rc != 0) {
        nj_response_status(resp, rc == EAI_NONAME ? 404 : 502);
        nj_response_write(resp, gai_strerror(rc), strlen(gai_strerror(rc)));
        return;
    }
    nj_response_header(resp, "content-type", "text/plain; charset=utf-8");
    for (const struct addrinfo *a = all; a; a = a->ai_next) {
        getnameinfo(a->ai_addr, a->ai_addrlen, line, NI_MAXHOST, NULL, 0, NI_NUMERICHOST);
        strcat(line, "\n");
        nj_response_write(resp, line, strlen(line));
    }
    freeaddrinfo(all);
}
