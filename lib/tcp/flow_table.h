/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Four-tuple to what we know of it. Open addressing with linear probing; an entry is 8 bytes, so a
 * probe usually stays within one cache line. The hash is keyed: a peer cannot aim at a bucket.
 *
 * What an entry leads to is one of three objects, each from a pool of its own, with struct nj_flow
 * as its first member: a control block (tcb.h), or one of the two small ones (minisock.h) for the
 * time before a connection that a peer opens, and for the time after it.
 */
#ifndef NJ_TCP_FLOW_TABLE_H
#define NJ_TCP_FLOW_TABLE_H

#include <rte_prefetch.h>

#include "base/hash.h"
#include "base/pool.h"
#include "base/types.h"

enum nj_flow_kind { NJ_FLOW_TCB, NJ_FLOW_SYN, NJ_FLOW_TIME_WAIT };

#define NJ_FLOW_KINDS 3

/* The head of all three. */
struct nj_flow {
    struct nj_tuple tuple;
    uint32_t hash;
    uint8_t kind;      /* enum nj_flow_kind */
    uint8_t flags;     /* of the small objects: NJ_BARE_* */
    uint16_t stray_ms; /* last answer to a segment out of place, modulo 2^16 */
};
_Static_assert(sizeof(struct nj_flow) == 44, "a head of 44 bytes leaves 20 of a cache line");

struct nj_flow_entry {
    uint32_t hash;
    uint32_t ref; /* kind in the top two bits, then the place in the pool plus one; 0 = empty */
};

/* What `ref` can say. */
#define NJ_FLOW_POOL_MAX ((1u << 30) - 2)

struct nj_flow_table {
    struct nj_flow_entry *entry;
    uint32_t mask;
    struct nj_mix_key key;
    const struct nj_pool *pool[NJ_FLOW_KINDS];
};

/* Room for every object of all three pools (by enum nj_flow_kind) at a load of at most two thirds:
 * five entries are looked at for a tuple that is not there, on the average (Knuth 6.4). */
bool nj_flow_init(struct nj_flow_table *f, const struct nj_pool *const pool[NJ_FLOW_KINDS],
                  const struct nj_hash_key *key);
void nj_flow_fini(struct nj_flow_table *f);

/* IPv4 tuples are hashed without the prefixes that all of them have. The number of bytes goes into
 * the hash: 12 of IPv4 are not taken for the 36 of IPv6. */
static inline uint32_t nj_flow_hash(const struct nj_flow_table *f, const struct nj_tuple *t)
{
    if (nj_addr_is_v4(&t->remote)) {
        const uint32_t v4[] = {nj_addr_to_v4(&t->remote), nj_addr_to_v4(&t->local),
                               (uint32_t)t->rport << 16 | t->lport};
        return (uint32_t)nj_mix_bytes(&f->key, 0, v4, sizeof v4);
    }
    return (uint32_t)nj_mix_bytes(&f->key, 0, t, sizeof *t);
}

/* First of two passes over a burst: have the bucket on its way. */
static inline void nj_flow_prefetch(const struct nj_flow_table *f, uint32_t hash)
{
    rte_prefetch0(&f->entry[hash & f->mask]);
}

/* What is known of this tuple, or NULL. */
struct nj_flow *nj_flow_find(const struct nj_flow_table *f, uint32_t hash,
                             const struct nj_tuple *t);
/* The object in place `i`, 0..mask, of the table, or NULL: to go through all of them. */
struct nj_flow *nj_flow_at(const struct nj_flow_table *f, uint32_t i);
/* `flow` is the head of an object of the pool of its kind; tuple, hash and kind are set, and the
 * tuple is not in the table yet. */
void nj_flow_insert(struct nj_flow_table *f, const struct nj_flow *flow);
void nj_flow_remove(struct nj_flow_table *f, const struct nj_flow *flow);
/* `next`, whose kind is set, takes the place of `flow`: the same tuple and hash, another object. */
void nj_flow_replace(struct nj_flow_table *f, const struct nj_flow *flow, struct nj_flow *next);

#endif
