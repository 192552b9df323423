/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings between the shards of one port, each with one producer and one consumer:
 *   steer[from][to]  packets for the shard that owns the flow, and copies of ARP packets
 *   tx[from]         packets of a shard that has no transmit queue of its own, for the one that
 *                    sends on its behalf
 */
#pragma once

/* Acquire and release where DPDK's x86 rings use compiler barriers: the same instructions, but
 * ThreadSanitizer can follow them. */
#define RTE_USE_C11_MEM_MODEL
#include <rte_ring.h>

#include "dpdk/port.h"
#include "dpdk/wakeup.h"
#include "shard/shard_env_ops.h"

/* Size of a ring, 32 full bursts: the packets of one poller while the owner is delayed by about a
 * millisecond. */
#define NJ_SHARD_RING_SIZE 1024u

_Static_assert(NJ_SHARDS_MAX <= 64, "bits of to_wake");

struct nj_capture;
struct nj_shard_endpoint;

struct nj_shard_rings {
    uint32_t n_shards;
    const struct nj_dpdk_port *port;
    struct nj_shard_endpoint *end[NJ_SHARDS_MAX];
    struct rte_ring *steer[NJ_SHARDS_MAX][NJ_SHARDS_MAX];
    struct rte_ring *tx[NJ_SHARDS_MAX];
    struct nj_wakeup *waker[NJ_SHARDS_MAX]; /* of each shard's lcore; NULL: it never sleeps */
    /* The channel to another process that shares the port, see peer_channel.h. Written before a
     * phase that uses it. */
    int peer_fd;
};

/* One shard's end of the rings and the port: the ctx of its struct nj_shard_ops. Its lcore only. */
struct nj_shard_endpoint {
    struct nj_shard_rings *rings;
    uint32_t shard;
    uint32_t next_from;         /* the steering ring to poll first: round robin */
    uint64_t to_wake;           /* a bit for each shard that received packets in this step */
    struct nj_capture *capture; /* packet_capture.h; NULL: none */
    uint32_t n_held;            /* packets of other shards that the device did not take */
    struct rte_mbuf *held[NJ_BURST_MAX];
};

/* Creates the rings. False: no memory; the caller still calls nj_shard_rings_close(). Main thread.
 */
bool nj_shard_rings_open(struct nj_shard_rings *f, const struct nj_dpdk_port *port,
                         uint32_t n_shards);
/* Frees the rings, and the packets in them and in the ends. After all lcores have ended. */
void nj_shard_rings_close(struct nj_shard_rings *f);

/* Fills in the packet functions of a shard's port: rx, rx_steered, tx, forward, replicate and ctx.
 * `shard` is the index within the port. `end` must live until nj_shard_rings_close(). `waker`
 * belongs to the shard's lcore; NULL: that lcore never sleeps. */
void nj_shard_rings_bind_ops(struct nj_shard_rings *f, struct nj_shard_endpoint *end,
                             uint32_t shard, struct nj_wakeup *waker, struct nj_shard_ops *port);

/* Does this shard still have packets of other shards to send? On its lcore. */
bool nj_shard_rings_has_tx(const struct nj_shard_endpoint *end);

void nj__shard_rings_wake_receivers(struct nj_shard_endpoint *end);

/* Wakes the lcores of shards that received packets in this step. On its lcore, after each step. */
static inline void nj_shard_rings_wake_receivers(struct nj_shard_endpoint *end)
{
    if (end->to_wake)
        nj__shard_rings_wake_receivers(end);
}
