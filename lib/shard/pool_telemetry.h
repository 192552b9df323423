/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a shard's connections live in, for telemetry: the lcore notes now and then how many objects
 * there are, other threads read that. Sizes and limits stand still once the shard is made.
 */
#ifndef NJ_SHARD_POOL_TELEMETRY_H
#define NJ_SHARD_POOL_TELEMETRY_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/pool.h"

struct nj_shard;

enum { NJ_SHARD_POOLS = 7 };

/* One pool as other threads see it. */
struct nj_pool_gauge {
    _Atomic uint32_t n_used;
    _Atomic uint32_t n_high; /* most there ever were: so much memory was touched, and is kept */
};

/* Name and pool number `i`, 0..NJ_SHARD_POOLS-1. The counts in the pool are the lcore's own: read
 * shard->pool_gauge[i] instead. Any thread. */
const char *nj_shard_pool_name(uint32_t i);
const struct nj_pool *nj_shard_pool(const struct nj_shard *s, uint32_t i);

/* Bytes of the flow table, of which flows of all kinds use at most two thirds. All of them are
 * touched soon: the hash spreads connections over it. Any thread. */
uint64_t nj_shard_flow_bytes(const struct nj_shard *s);

#endif
