/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a shard needs from outside, called per burst, never per packet. lib/dpdk implements it with
 * queues and rings, the simulator with arrays.
 */
#ifndef NJ_SHARD_SHARD_OPS_H
#define NJ_SHARD_SHARD_OPS_H

#include <stdint.h>

#include <rte_mbuf_core.h>

#include "base/types.h"
#include "http/files/file_ops.h"
#include "sched/task_port.h"

struct nj_port {
    void *ctx;
    /* Up to `n` packets from the shard's receive queue; the mbufs are the shard's. */
    uint32_t (*rx)(void *ctx, struct rte_mbuf **m, uint32_t n);
    /* Up to `n` packets that other shards handed over. */
    uint32_t (*rx_steered)(void *ctx, struct rte_mbuf **m, uint32_t n);
    /* Offer `n` packets to the device; the first so many were taken, the rest stay the shard's. */
    uint32_t (*tx)(void *ctx, struct rte_mbuf **m, uint32_t n);
    /* Hand a packet to another shard. False: its ring is full, the mbuf stays the shard's. */
    bool (*forward)(void *ctx, uint32_t shard, struct rte_mbuf *m);
    /* Show every other shard a copy of a packet; a full ring misses it. */
    void (*share)(void *ctx, const struct rte_mbuf *m);
    struct nj_file_port files;
    /* Threads for handlers that may block one. submit NULL: there are none. */
    struct nj_task_port workers;
    /* Time as it passes within a step, to measure handlers. NULL: nothing is measured. */
    nj_ns (*clock)(void *clock_ctx);
    /* The time stamp counter, to measure stages of a step (telem/stages.h). NULL: none are. */
    uint64_t (*cycles)(void);
    void *clock_ctx;
    /* A line for people; must not wait. May be NULL. */
    void (*log)(void *log_ctx, const char *line);
    void *log_ctx;
};

#endif
