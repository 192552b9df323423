/* SPDX-License-Identifier: BSD-3-Clause */
/* A route for all requests of a server, whose handler touches memory before it answers. */
#ifndef NJ_PERF_EXCHANGE_HANDLER_H
#define NJ_PERF_EXCHANGE_HANDLER_H

#include <nightjar/handler.h>

#include "http/handlers/route_table.h"

struct nj_shard;

enum handler_touches {
    HANDLER_ABSENT, /* there is no route: the site answers */
    HANDLER_PLAIN,  /* nothing */
    HANDLER_SHARED, /* bytes that are the same for all requests */
    HANDLER_CONN,   /* bytes that belong to the request's connection */
    HANDLER_COLD,   /* bytes that no request has touched for the last 64 MiB */
    HANDLER_BODY,   /* the request's body, which has so many bytes */
};

struct handler_options {
    enum handler_touches touches;
    uint32_t n_bytes;
    bool blocking; /* on a stack of its own, else inline */
};

#define HANDLER_BYTES_MAX (1u << 20)

struct handler {
    struct handler_options options;
    struct nj_route route;
    struct nj_routes *routes;      /* NULL: none */
    const struct nj_shard *server; /* to be set before the first request */
    const uint8_t *answer;
    uint32_t n_answer;
    uint8_t *memory;
    uint64_t n_memory, n_done;
    uint64_t sum; /* of what was read: somebody might look at it */
};

/* "plain", "shared:4KiB", "conn:0", "body:64KiB". False: it is none of those. */
bool handler_read(struct handler_options *o, const char *text);

/* It is for `path`, and answers with `n_answer` bytes. Both must live as long as it does. False
 * when memory is refused. */
bool handler_init(struct handler *h, const struct handler_options *o, uint32_t n_conns,
                  const char *path, const uint8_t *answer, uint32_t n_answer);
void handler_fini(struct handler *h);

/* Bytes of each request's body. */
uint32_t handler_upload(const struct handler *h);

#endif
