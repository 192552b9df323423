/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings between the shards of one port, each with one producer and one consumer:
 *   steer[from][to]  packets for the shard that owns the flow, and copies of ARP packets
 *   tx[from]         packets of a shard that has no transmit queue of its own, for the one that
 *                    sends on its behalf
 */
#ifndef NJ_DPDK_SHARD_RINGS_H
#define NJ_DPDK_SHARD_RINGS_H

/* Acquire and release in the rings where x86 makes do with compiler barriers: the same
 * instructions, and ThreadSanitizer can follow them. */
#define RTE_USE_C11_MEM_MODEL
#include <rte_ring.h>

#include "dpdk/port.h"
#include "dpdk/wakeup.h"
#include "shard/shard_ops.h"

/* Packets that one ring holds, 32 full bursts: what one poller can hand over while the owner is
 * away for about a millisecond. */
#define NJ_FABRIC_RING 1024u

_Static_assert(NJ_SHARDS_MAX <= 64, "bits of to_wake");

struct nj_fabric_end;

struct nj_fabric {
    uint32_t n_shards;
    const struct nj_dpdk_port *port;
    struct nj_fabric_end *end[NJ_SHARDS_MAX];
    struct rte_ring *steer[NJ_SHARDS_MAX][NJ_SHARDS_MAX];
    struct rte_ring *tx[NJ_SHARDS_MAX];
    struct nj_waker *waker[NJ_SHARDS_MAX]; /* of each shard's lcore; NULL: it never sleeps */
};

/* One shard's view of the fabric and the port: the ctx of its struct nj_port. */
struct nj_fabric_end {
    struct nj_fabric *fabric;
    uint32_t shard;
    uint32_t next_from; /* the steering ring to look at first: each gets its turn */
    uint64_t to_wake;   /* a bit for each shard that was given packets */
    uint32_t n_held;    /* packets of others that the device had no room for */
    struct rte_mbuf *held[NJ_BURST_MAX];
};

/* False when memory is refused; nj_fabric_close() is still to be called. */
bool nj_fabric_open(struct nj_fabric *f, const struct nj_dpdk_port *port, uint32_t n_shards);
/* Frees what is still in the rings, or held by an end. */
void nj_fabric_close(struct nj_fabric *f);

/* Fill in the packet side of a shard's port: rx, rx_steered, tx, forward, share and ctx. `shard`
 * counts from 0 among those of the port. `end` must stay until the fabric is closed. `waker` is of
 * its lcore; NULL: it never sleeps. */
void nj_fabric_connect(struct nj_fabric *f, struct nj_fabric_end *end, uint32_t shard,
                       struct nj_waker *waker, struct nj_port *port);

/* Are there packets of other shards that this one has to send? On its lcore. */
bool nj_fabric_pending(const struct nj_fabric_end *end);

void nj__fabric_wake(struct nj_fabric_end *end);

/* After a step of the shard: wake the lcores of those that it gave packets to. On its lcore. */
static inline void nj_fabric_wake(struct nj_fabric_end *end)
{
    if (end->to_wake)
        nj__fabric_wake(end);
}

#endif
