/* SPDX-License-Identifier: BSD-3-Clause */
/* Telemetry of the object pools of a shard. The lcore publishes the number of objects at intervals,
 * and other threads read it. Sizes and limits do not change once the shard exists. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/pool.h"

struct nj_shard;

enum { NJ_SHARD_POOLS = 7 };

/* One pool as other threads see it. */
struct nj_pool_gauge {
    _Atomic uint32_t n_used;
    _Atomic uint32_t n_high; /* high-water mark: memory up to it was touched, and is kept */
};

/* Name and pool number `i`, 0..NJ_SHARD_POOLS-1. Other threads read shard->pool_gauge[i] for the
 * counts, which are the lcore's own in the pool. Any thread. */
const char *nj_shard_pool_name(uint32_t i);
const struct nj_pool *nj_shard_pool_by_index(const struct nj_shard *s, uint32_t i);

/* Bytes of the flow table. Flows of all kinds use at most two thirds. All pages are touched soon,
 * as the hash spreads connections over the table. Any thread. */
uint64_t nj_shard_flow_table_bytes(const struct nj_shard *s);
