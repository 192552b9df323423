/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations on packets that a shard needs from its environment. Called per burst, never per
 * packet, by the shard's lcore. lib/dpdk implements them with queues and rings, the simulator with
 * arrays.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf_core.h>

/* m->port of packets that another process passed on. */
#define NJ_PEER_PORT      0xfe00u
#define NJ_PEER_HOPS_MAX  3u
#define NJ_PEER_HOPS_MASK 0xffu

static inline bool nj_is_from_peer_process(const struct rte_mbuf *m)
{
    return (m->port & ~NJ_PEER_HOPS_MASK) == NJ_PEER_PORT;
}

struct nj_shard_ops {
    void *ctx;
    /* Receives up to `n` packets from the shard's queue. The shard owns the mbufs. */
    uint32_t (*rx)(void *ctx, struct rte_mbuf **m, uint32_t n);
    /* Receives up to `n` packets that other shards forwarded. */
    uint32_t (*rx_steered)(void *ctx, struct rte_mbuf **m, uint32_t n);
    /* Offers `n` packets to the device. Returns the number taken, from the first on; the shard
     * still owns the others. */
    uint32_t (*tx)(void *ctx, struct rte_mbuf **m, uint32_t n);
    /* Forwards a packet to another shard. Returns false when its ring is full; the caller still
     * owns the mbuf. */
    bool (*forward)(void *ctx, uint32_t shard, struct rte_mbuf *m);
    /* Copies a packet to every other shard. A shard whose ring is full misses it. */
    void (*replicate)(void *ctx, const struct rte_mbuf *m);
    /* While another process shares the port: as rx(), and packets that this process passed on. Of
     * these m->port is NJ_PEER_PORT plus the number of times that they were passed on. */
    uint32_t (*rx_shared)(void *ctx, struct rte_mbuf **m, uint32_t n);
    /* Passes a copy of a packet to that process. False: it was passed on too often, or the channel
     * is full. */
    bool (*pass_on)(void *ctx, const struct rte_mbuf *m);
};
