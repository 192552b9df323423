/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A server and its clients, both real shards, in one thread and in a time of their own: they take
 * turns, and what one has sent the other has with its next turn. Secrets, seeds and times are
 * fixed, so the same exchange is the same to the last instruction.
 */
#ifndef NJ_PERF_EXCHANGE_PAIR_H
#define NJ_PERF_EXCHANGE_PAIR_H

#include "crowd.h"
#include "file.h"
#include "handler.h"
#include "shard/shard.h"
#include "wire.h"

struct shape {
    const char *name;
    uint32_t n_conns, streams;
    uint64_t file_bytes;
    uint32_t n_warm, n_requests; /* not measured; measured, if nobody says otherwise */
    uint32_t in_turn; /* so many requests at a time, over all connections; 0: all ask at once */
    struct handler_options handler; /* answers with the file in the site's place */
};

/* What a number of requests cost the server. */
struct cost {
    uint64_t n_requests, n_steps, rx_packets, tx_packets;
    uint64_t cycles;             /* 0: no clock */
    uint64_t stage[NJ_N_STAGES]; /* of some of the steps, see telem/stage_cycles.h */
};

struct pair {
    const struct shape *shape;
    struct nj_shard *server, *client;
    struct rte_mempool *server_tx, *client_tx;
    struct wire up, down; /* to the server, to the client */
    struct file file;
    struct handler handler;
    struct load_options options;
    struct crowd crowd;
    uint64_t (*cycles)(void);
    nj_ns now;
    enum load_phase phase;
    uint64_t spent, n_steps; /* of the server's measured steps */
    char why[160];
};

/* On the lcore that is to run it; `cycles` may be NULL. NULL when memory is refused. */
struct pair *pair_new(const struct shape *shape, uint64_t (*cycles)(void));
void pair_free(struct pair *p);

/* Connect, and ask so much that connections, tables and caches are as they stay. All of these:
 * false when it does not work, see `why`. */
bool pair_begin(struct pair *p);
/* So many answers more. */
bool pair_run(struct pair *p, uint64_t n_requests, struct cost *cost);
/* Like pair_run(), but one turn, and nothing is measured. */
void pair_turn(struct pair *p);
/* The last answers; then all that was asked has to be answered, with all its bytes, and all memory
 * of packets to be back. */
bool pair_end(struct pair *p);

/* The only function in which measured steps of the server run: callgrind counts only there. */
uint32_t nj_exchange_server_step(struct pair *p);

#endif
