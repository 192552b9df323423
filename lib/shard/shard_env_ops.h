/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations that a shard needs from its environment. Called per burst, never per packet, by the
 * shard's lcore. lib/dpdk implements them with queues and rings, the simulator with arrays.
 */
#ifndef NJ_SHARD_SHARD_ENV_OPS_H
#define NJ_SHARD_SHARD_ENV_OPS_H

#include <stdint.h>

#include <rte_mbuf_core.h>

#include "base/types.h"
#include "http/files/file_ops.h"
#include "sched/worker_ops.h"

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
    struct nj_file_ops files;
    /* Worker threads for blocking handlers. submit NULL: there are none. */
    struct nj_worker_ops workers;
    /* Worker threads for handshakes of TLS. */
    struct nj_worker_ops tls_workers;
    /* Time within a step, to measure handlers. NULL: not measured. */
    nj_ns (*clock)(void *clock_ctx);
    /* Time stamp counter, to measure stages of a step (telem/stage_cycles.h). NULL: not measured.
     */
    uint64_t (*cycles)(void);
    void *clock_ctx;
    /* Writes a line to the log. Must not block. May be NULL. */
    void (*log)(void *log_ctx, const char *line);
    void *log_ctx;
};

#endif
