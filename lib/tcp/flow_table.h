/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Four-tuple to control block. Open addressing with linear probing; an entry is 8 bytes, so a probe
 * usually stays within one cache line. The hash is keyed: a peer cannot aim at a bucket.
 */
#ifndef NJ_TCP_FLOW_TABLE_H
#define NJ_TCP_FLOW_TABLE_H

#include <rte_prefetch.h>

#include "base/hash.h"
#include "base/pool.h"
#include "base/types.h"

struct nj_tcb;

struct nj_flow_entry {
    uint32_t hash;
    uint32_t idx_plus_1; /* of the block in the pool; 0 = empty */
};

struct nj_flow_table {
    struct nj_flow_entry *entry;
    uint32_t mask;
    struct nj_hash_key key;
    const struct nj_pool *tcbs;
};

/* Room for every block of `tcbs` at a load of at most one half. */
bool nj_flow_init(struct nj_flow_table *f, const struct nj_pool *tcbs,
                  const struct nj_hash_key *key);
void nj_flow_fini(struct nj_flow_table *f);

static inline uint32_t nj_flow_hash(const struct nj_flow_table *f, const struct nj_tuple *t)
{
    return (uint32_t)nj_hash(&f->key, t, sizeof *t);
}

/* First of two passes over a burst: have the bucket on its way. */
static inline void nj_flow_prefetch(const struct nj_flow_table *f, uint32_t hash)
{
    rte_prefetch0(&f->entry[hash & f->mask]);
}

/* The block of this tuple, or NULL. */
struct nj_tcb *nj_flow_find(const struct nj_flow_table *f, uint32_t hash, const struct nj_tuple *t);
/* The block in place `i`, 0..mask, of the table, or NULL: to go through all of them. */
struct nj_tcb *nj_flow_at(const struct nj_flow_table *f, uint32_t i);
/* `tcb->tuple` and `tcb->flow_hash` are set and the tuple is not in the table yet. */
void nj_flow_insert(struct nj_flow_table *f, struct nj_tcb *tcb);
void nj_flow_remove(struct nj_flow_table *f, const struct nj_tcb *tcb);

#endif
