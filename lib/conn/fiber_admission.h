/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Admission of requests of BLOCKING routes to fibers, fair between the clients of one shard.
 *
 * While a fiber is free, any request gets it; a client that is alone may use all fibers. When other
 * clients sent requests lately, the last quarter is reserved for clients that use less than an
 * eighth. Requests without a fiber are queued. A fiber that becomes free goes to the client that
 * uses the fewest.
 *
 * A client that waited for NJ_FIBERS_GRACE and is below its share (all fibers divided by the
 * clients that use or need one) gets fibers of the client that is furthest above its share.
 * Handlers that wait for their own peer (for request body bytes, or for the peer to read) are
 * evicted, the slowest peers first; after them handlers that wait for an event of their own, such
 * as a timer, once they have had their fiber for NJ_FIBERS_OWN_GRACE. Handlers whose response waits
 * for its rate, or for something else of the server, come after those of all other clients.
 *
 * A client is the requester, whatever the class of the request. A trusted proxy that does not name
 * its client represents many: each of its connections is a client, may use the reserved quarter,
 * and is evicted only when no other client is above its share. All calls belong to the shard's
 * lcore.
 */
#pragma once

#include "base/list.h"
#include "base/types.h"
#include "http/handlers/exchange.h"

struct nj_conns;

/* The last 1/RESERVE of the fibers is reserved for clients that use less than 1/SHARE of them ...
 */
#define NJ_FIBERS_RESERVE_PART 4u
#define NJ_FIBERS_SHARE_PART   8u
/* ... while a request of another client came within this time. */
#define NJ_FIBERS_ALONE_NS     (10 * NJ_SEC)
/* While requests are queued, evictions and refusals are decided at this interval. Each pass evicts
 * and refuses at most this many. A pass visits all clients with queued requests, since any may have
 * a claim: a few us for 1,024 clients. With the grace period, a request with a claim gets its fiber
 * after 300 ms. */
#define NJ_FIBERS_SCAN_EVERY   (50 * NJ_MS)
#define NJ_FIBERS_EVICT_MAX    16u
#define NJ_FIBERS_REJECT_MAX   64u
/* How long a request is queued before other handlers are evicted for it, and how long a handler
 * runs before it may be evicted: round trips of a slow path. */
#define NJ_FIBERS_GRACE        (250 * NJ_MS)
/* How long a handler that does not wait for its peer keeps its fiber at least. */
#define NJ_FIBERS_OWN_GRACE    (2 * NJ_SEC)
/* A request queued for this long is answered with 503 and retry-after. */
#define NJ_FIBERS_WAIT_MAX     (10 * NJ_SEC)

struct nj_admission {
    struct nj_list waiting_clients; /* clients with queued requests; initialised by the owner */
    uint32_t n_clients;             /* length of `waiting_clients` */
    uint32_t n_waiting;
    const struct nj_requester *last; /* client of the latest request */
    nj_ns other_client_at; /* when a request of another client than the previous one came */
    nj_ns scan_at;
};

/* May the handler begin? QUEUED: the request waits for a fiber, and is offered later. REJECTED: the
 * queue is full, and the request was answered with 503. */
enum nj_admit { NJ_ADMIT_NOW, NJ_ADMIT_QUEUED, NJ_ADMIT_REJECTED };
enum nj_admit nj__admission_admit_request(struct nj_conns *cs, struct nj_exchange *x);
/* Removes the request from the queue. */
void nj__admission_dequeue(struct nj_conns *cs, struct nj_txn *t);
/* Offers requests that may begin, evicts handlers, and refuses requests that were queued too long.
 * Returns how many. */
uint32_t nj__admission_serve_queue(struct nj_conns *cs, nj_ns now);
nj_ns nj__admission_next_at(const struct nj_conns *cs);
