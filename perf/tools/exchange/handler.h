/* SPDX-License-Identifier: BSD-3-Clause */
/* A route for all requests of a server, whose handler accesses memory before it answers. */
#pragma once

#include <nightjar/handler.h>

#include "http/handlers/route_table.h"

struct nj_shard;

enum handler_touches {
    HANDLER_ABSENT, /* no route: the file server answers */
    HANDLER_PLAIN,  /* no memory */
    HANDLER_SHARED, /* bytes that are the same for all requests */
    HANDLER_CONN,   /* bytes that belong to the request's connection */
    HANDLER_COLD,   /* the next bytes of 64 MiB, which requests access in turn */
    HANDLER_BODY,   /* the request's body */
};

struct handler_options {
    enum handler_touches touches;
    uint32_t n_bytes; /* accessed by a request; of a body */
    bool blocking;    /* runs on a stack of its own; otherwise inline */
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
    uint64_t sum; /* of the words that were read, so that the compiler keeps the reads */
};

/* Parses "plain", "shared:SIZE", "conn:SIZE", "cold:SIZE" or "body:SIZE", such as "body:64KiB".
 * False: another text, or SIZE is not a multiple of a cache line from 1 to HANDLER_BYTES_MAX. */
bool handler_read(struct handler_options *o, const char *text);

/* Makes the route for `path`, which answers with the `n_answer` bytes at `answer`; no route for
 * HANDLER_ABSENT. `path` and `answer` must outlive the handler. False: out of memory. */
bool handler_init(struct handler *h, const struct handler_options *o, uint32_t n_conns,
                  const char *path, const uint8_t *answer, uint32_t n_answer);
void handler_fini(struct handler *h);

/* Bytes of each request's body. */
uint32_t handler_upload(const struct handler *h);
