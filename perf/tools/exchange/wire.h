/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One way of a link between two shards: what one sends waits here until it is carried over, copied
 * into mbufs of the receiver's as a device would do. Handing over is all that a shard pays for.
 */
#ifndef NJ_PERF_EXCHANGE_WIRE_H
#define NJ_PERF_EXCHANGE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

/* All that can be under way: no more than a receive pool has. */
#define WIRE_MAX 16384u

struct ring {
    uint32_t head, n;
    struct rte_mbuf *m[WIRE_MAX];
};

struct wire {
    struct rte_mempool *rx_pool; /* of the receiver */
    uint64_t n_lost;
    struct ring sent, come;
};

/* For struct nj_shard_ops. */
uint32_t wire_send(struct wire *w, struct rte_mbuf **m, uint32_t n);
uint32_t wire_receive(struct wire *w, struct rte_mbuf **m, uint32_t n);

/* Everything that was sent has come then. */
void wire_carry(struct wire *w);
/* Drops what nobody took. */
void wire_fini(struct wire *w);

#endif
