/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server's shard and its clients' shard in one thread, in simulated time. The two shards
 * alternate. Packets that one of them has sent arrive before the other's next step. Secrets, seeds
 * and times are fixed, so each run of an exchange executes the same instructions.
 */
#pragma once

#include "crowd.h"
#include "file.h"
#include "handler.h"
#include "server_tls.h"
#include "sites.h"
#include "shard/shard.h"
#include "wire.h"

struct shape {
    const char *name;
    uint32_t n_conns, streams;
    uint64_t file_bytes;
    uint32_t n_warm, n_requests; /* warm-up; default of measured ones */
    uint32_t in_turn; /* requests in flight, on connections in turn; 0: `streams` on each */
    struct handler_options handler; /* of a route that answers with the bytes of the file */
    bool tls;                       /* the connections are TLS 1.3 */
    bool http1;                     /* HTTP/1.1; else HTTP/2 */
    uint32_t n_sites;               /* of the server, with 20 paths each; 0: none */
};

/* The server's cost of n_requests. */
struct cost {
    uint64_t n_requests, n_steps, rx_packets, tx_packets;
    uint64_t cycles;             /* 0: no clock */
    uint64_t stage[NJ_N_STAGES]; /* of the sampled steps, see telem/stage_cycles.h */
};

struct pair {
    const struct shape *shape;
    struct nj_shard *server, *client;
    struct rte_mempool *server_tx, *client_tx;
    struct wire up, down; /* to the server, to the client */
    struct file file;
    struct handler handler;
    struct server_tls tls;
    struct sites sites;
    struct load_options options;
    struct crowd crowd;
    uint64_t (*cycles)(void);
    nj_ns now;
    enum load_phase phase;
    uint64_t spent, n_steps; /* cycles and number of the server's measured steps */
    char why[160];
};

/* Makes a pair, on the lcore that runs it. `cycles` reads a clock; NULL: no clock. `shape` must
 * outlive the pair. Returns NULL if memory is exhausted, or if there is no certificate. */
struct pair *pair_new(const struct shape *shape, uint64_t (*cycles)(void));
void pair_free(struct pair *p);

/* Opens the connections and performs the shape's warm-up requests. This and the next functions
 * return false if the exchange failed; `why` has the reason. */
bool pair_begin(struct pair *p);
/* Performs and measures `n_requests` more requests. */
bool pair_run(struct pair *p, uint64_t n_requests, struct cost *cost);
/* Performs one turn of both shards, which is not measured. */
void pair_turn(struct pair *p);
/* Ends the requests in flight and closes the connections. Checks that each request got a status 2xx
 * and all bytes, and that all mbufs are free. Only pair_free() may follow. */
bool pair_end(struct pair *p);

/* Performs a measured step of the server. callgrind counts only below this function. */
uint32_t nj_exchange_server_step(struct pair *p);
