/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flow table: four-tuple to flow. Open addressing with linear probing (Knuth 6.4); an entry has
 * 8 bytes, so a probe usually stays within one cache line. The hash is keyed, so peers cannot
 * choose buckets.
 *
 * An entry refers to one of three objects, each from its own pool, with struct nj_flow as first
 * member: a control block (tcb.h), or a minisock (minisock.h) in SYN-RECEIVED or TIME-WAIT. The
 * table does not own them. Only the shard's lcore may use it.
 */
#pragma once

#include <rte_prefetch.h>

#include "base/keyed_hash.h"
#include "base/pool.h"
#include "base/types.h"

enum nj_flow_kind { NJ_FLOW_TCB, NJ_FLOW_SYN, NJ_FLOW_TIME_WAIT };

#define NJ_FLOW_KINDS 3

/* First member of all three kinds. */
struct nj_flow {
    struct nj_tuple tuple;
    uint32_t hash;
    uint8_t kind;          /* enum nj_flow_kind */
    uint8_t flags;         /* of minisocks: NJ_MINISOCK_* */
    uint16_t stray_ack_ms; /* last ACK of an unacceptable segment, modulo 2^16 */
};
_Static_assert(sizeof(struct nj_flow) == 44, "a head of 44 bytes leaves 20 of a cache line");

struct nj_flow_entry {
    uint32_t hash;
    uint32_t ref; /* kind in the top two bits, then pool index + 1; 0: empty */
};

/* Largest pool that `ref` can address. */
#define NJ_FLOW_POOL_MAX ((1u << 30) - 2)

struct nj_flow_table {
    struct nj_flow_entry *entry;
    uint32_t mask;
    struct nj_mix_key key;
    const struct nj_pool *pool[NJ_FLOW_KINDS];
};

/* Allocate room for all objects of the three pools (by enum nj_flow_kind) at a load of at most two
 * thirds. An unsuccessful search then takes five probes on average. Returns false without memory.
 */
bool nj_flow_init(struct nj_flow_table *f, const struct nj_pool *const pool[NJ_FLOW_KINDS],
                  const struct nj_hash_key *key);
void nj_flow_fini(struct nj_flow_table *f);

/* IPv4 tuples are hashed without their common prefix. The length enters the hash, so the 12 bytes
 * of IPv4 differ from the 36 of IPv6. */
static inline uint32_t nj_flow_hash(const struct nj_flow_table *f, const struct nj_tuple *t)
{
    if (nj_addr_is_v4(&t->remote)) {
        const uint32_t v4[] = {nj_addr_to_v4(&t->remote), nj_addr_to_v4(&t->local),
                               (uint32_t)t->rport << 16 | t->lport};
        return (uint32_t)nj_mix_bytes(&f->key, 0, v4, sizeof v4);
    }
    return (uint32_t)nj_mix_bytes(&f->key, 0, t, sizeof *t);
}

/* Prefetch the bucket: first of two passes over a burst. */
static inline void nj_flow_prefetch(const struct nj_flow_table *f, uint32_t hash)
{
    rte_prefetch0(&f->entry[hash & f->mask]);
}

/* The flow of this tuple, or NULL. */
struct nj_flow *nj_flow_find(const struct nj_flow_table *f, uint32_t hash,
                             const struct nj_tuple *t);
/* The flow in slot `i`, 0..mask, or NULL; for iteration. */
struct nj_flow *nj_flow_at(const struct nj_flow_table *f, uint32_t i);
/* Tuple, hash and kind of `flow` must be set. The tuple must not be in the table yet. */
void nj_flow_insert(struct nj_flow_table *f, const struct nj_flow *flow);
void nj_flow_remove(struct nj_flow_table *f, const struct nj_flow *flow);
/* Replace `flow` by `next`, whose kind must be set, with the same tuple and hash. */
void nj_flow_replace(struct nj_flow_table *f, const struct nj_flow *flow, struct nj_flow *next);
