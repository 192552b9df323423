/* SPDX-License-Identifier: BSD-3-Clause */
/* The flow table. Open addressing with linear probing, and deletion by backward shift (Knuth 6.4,
 * algorithm R). */
#include "tcp/flow_table.h"

#include "base/assert.h"
#include "base/page_alloc.h"

#define KIND_SHIFT 30
#define PLACE_MASK ((1u << KIND_SHIFT) - 1)

bool nj_flow_init(struct nj_flow_table *f, const struct nj_pool *const pool[NJ_FLOW_KINDS],
                  const struct nj_hash_key *key)
{
    uint64_t n = 16, n_flows = 0;

    for (unsigned kind = 0; kind < NJ_FLOW_KINDS; kind++) {
        NJ_ASSERT(pool[kind]->n_max <= NJ_FLOW_POOL_MAX);
        n_flows += pool[kind]->n_max;
        f->pool[kind] = pool[kind];
    }
    while (2 * n < 3 * n_flows)
        n *= 2;
    if (n - 1 > UINT32_MAX)
        return false;
    f->entry = nj_pages_map(n * sizeof *f->entry, 0);
    if (!f->entry)
        return false;
    f->mask = (uint32_t)(n - 1);
    f->key = nj_mix_key_derive(key, "flows");
    return true;
}

void nj_flow_fini(struct nj_flow_table *f)
{
    nj_pages_unmap(f->entry, ((size_t)f->mask + 1) * sizeof *f->entry);
    f->entry = NULL;
}

static struct nj_flow *object(const struct nj_flow_table *f, const struct nj_flow_entry *e)
{
    return nj_pool_at(f->pool[e->ref >> KIND_SHIFT], (e->ref & PLACE_MASK) - 1);
}

static uint32_t ref_to(const struct nj_flow_table *f, const struct nj_flow *flow)
{
    return (uint32_t)flow->kind << KIND_SHIFT | (nj_pool_index(f->pool[flow->kind], flow) + 1);
}

struct nj_flow *nj_flow_at(const struct nj_flow_table *f, uint32_t i)
{
    return f->entry[i].ref ? object(f, &f->entry[i]) : NULL;
}

struct nj_flow *nj_flow_find(const struct nj_flow_table *f, uint32_t hash, const struct nj_tuple *t)
{
    for (uint32_t i = hash & f->mask;; i = (i + 1) & f->mask) {
        const struct nj_flow_entry *e = &f->entry[i];
        if (e->ref == 0)
            return NULL;
        if (e->hash == hash && nj_tuple_eq(&object(f, e)->tuple, t))
            return object(f, e);
    }
}

void nj_flow_insert(struct nj_flow_table *f, const struct nj_flow *flow)
{
    uint32_t i = flow->hash & f->mask;
    while (f->entry[i].ref != 0)
        i = (i + 1) & f->mask;
    f->entry[i] = (struct nj_flow_entry){flow->hash, ref_to(f, flow)};
}

/* The slot of a flow that is in the table. */
static uint32_t place_of(const struct nj_flow_table *f, const struct nj_flow *flow)
{
    uint32_t ref = ref_to(f, flow);
    for (uint32_t i = flow->hash & f->mask;; i = (i + 1) & f->mask) {
        NJ_ASSERT(f->entry[i].ref != 0);
        if (f->entry[i].ref == ref)
            return i;
    }
}

/* Backward-shift deletion, without tombstones: every entry after the gap that could not be reached
 * across it moves into the gap. */
static void close_gap(struct nj_flow_table *f, uint32_t gap)
{
    for (uint32_t i = (gap + 1) & f->mask; f->entry[i].ref != 0; i = (i + 1) & f->mask) {
        uint32_t home = f->entry[i].hash & f->mask;
        uint32_t from_home = (i - home) & f->mask, from_gap = (i - gap) & f->mask;
        if (from_home < from_gap)
            continue;
        f->entry[gap] = f->entry[i];
        gap = i;
    }
    f->entry[gap].ref = 0;
}

void nj_flow_remove(struct nj_flow_table *f, const struct nj_flow *flow)
{
    close_gap(f, place_of(f, flow));
}

void nj_flow_replace(struct nj_flow_table *f, const struct nj_flow *flow, struct nj_flow *next)
{
    next->tuple = flow->tuple;
    next->hash = flow->hash;
    f->entry[place_of(f, flow)].ref = ref_to(f, next);
}
