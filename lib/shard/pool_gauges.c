/* SPDX-License-Identifier: BSD-3-Clause */
/* Publishes the fill levels of a shard's object pools for telemetry. The lcore stores copies in
 * atomics (single writer), since the pools themselves are not safe to read. */
#include "shard/pool_gauges.h"

#include "base/assert.h"
#include "shard/shard_internal.h"

/* Pools of objects per connection. ./dev bench memory counts every pool of this table. */
static const struct {
    const char *name;
    size_t at;
} pools[NJ_SHARD_POOLS] = {
    {"tcb", offsetof(struct nj_shard, tcp.tcbs)},
    {"xfer", offsetof(struct nj_shard, tcp.xfers)},
    {"syn", offsetof(struct nj_shard, tcp.syns)},
    {"time_wait", offsetof(struct nj_shard, tcp.time_waits)},
    {"run", offsetof(struct nj_shard, tcp.runs)},
    {"conn", offsetof(struct nj_shard, conns.pool)},
    {"talk", offsetof(struct nj_shard, conns.active_pool)},
};

const char *nj_shard_pool_name(uint32_t i)
{
    return pools[i].name;
}

const struct nj_pool *nj_shard_pool_by_index(const struct nj_shard *s, uint32_t i)
{
    NJ_ASSERT(i < NJ_SHARD_POOLS);
    return (const struct nj_pool *)((const char *)s + pools[i].at);
}

uint64_t nj_shard_flow_table_bytes(const struct nj_shard *s)
{
    return ((uint64_t)s->tcp.flows.mask + 1) * sizeof *s->tcp.flows.entry;
}

void nj__pools_publish(struct nj_shard *s)
{
    for (uint32_t i = 0; i < NJ_SHARD_POOLS; i++) {
        const struct nj_pool *p = nj_shard_pool_by_index(s, i);
        atomic_store_explicit(&s->pool_gauge[i].n_used, p->n_used, memory_order_relaxed);
        atomic_store_explicit(&s->pool_gauge[i].n_high, p->n_touched, memory_order_relaxed);
    }
}
