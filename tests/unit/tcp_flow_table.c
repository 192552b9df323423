/* SPDX-License-Identifier: BSD-3-Clause */
/* The flow table against a linear search (Knuth 6.4). Hashes are chosen so that probe sequences
 * collide and wrap around. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "base/prng.h"
#include "tcp/tcp.h"

#define N 48u

struct table {
    struct nj_pool pool[NJ_FLOW_KINDS];
    struct nj_flow_table flows;
    struct nj_flow *flow[N]; /* by rport; NULL: not in the table */
};

static void init(struct table *t)
{
    static const size_t bytes[NJ_FLOW_KINDS] = {
        sizeof(struct nj_tcb),
        sizeof(struct nj_syn),
        sizeof(struct nj_time_wait),
    };
    memset(t, 0, sizeof *t);
    for (unsigned k = 0; k < NJ_FLOW_KINDS; k++)
        cr_assert(nj_pool_init(&t->pool[k], bytes[k], N / 3 + k));
    const struct nj_pool *const pools[] = {&t->pool[0], &t->pool[1], &t->pool[2]};
    cr_assert(nj_flow_init(&t->flows, pools, &(struct nj_hash_key){{7}}));
    cr_assert_geq(2 * (t->flows.mask + 1), 3 * N);
}

static void fini(struct table *t)
{
    nj_flow_fini(&t->flows);
    for (unsigned k = 0; k < NJ_FLOW_KINDS; k++)
        nj_pool_fini(&t->pool[k]);
}

/* Few home slots, around the end of the table, some with equal hashes. */
static uint32_t hash_of(const struct table *t, uint32_t i)
{
    return t->flows.mask - 4 + i % 9 + (i % 3 << 16);
}

static struct nj_tuple tuple_of(uint32_t i)
{
    return (struct nj_tuple){.rport = (uint16_t)i, .lport = 80};
}

static void check(const struct table *t)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < N; i++) {
        struct nj_tuple tuple = tuple_of(i);
        cr_assert_eq(nj_flow_find(&t->flows, hash_of(t, i), &tuple), t->flow[i], "flow %u", i);
        n += t->flow[i] != NULL;
    }
    for (uint32_t i = 0; i <= t->flows.mask; i++)
        n -= t->flows.entry[i].ref != 0;
    cr_assert_eq(n, 0, "entries left behind");
}

/* An object of this kind, or NULL when its pool is empty. */
static struct nj_flow *object(struct table *t, uint32_t kind)
{
    struct nj_flow *f = nj_pool_take(&t->pool[kind]);
    if (f)
        f->kind = (uint8_t)kind;
    return f;
}

static void remove_flow(struct table *t, uint32_t i)
{
    nj_flow_remove(&t->flows, t->flow[i]);
    nj_pool_put(&t->pool[t->flow[i]->kind], t->flow[i]);
    t->flow[i] = NULL;
}

static void insert_flow(struct table *t, uint32_t i, uint32_t kind)
{
    struct nj_flow *f = object(t, kind);
    if (!f)
        return;
    f->tuple = tuple_of(i);
    f->hash = hash_of(t, i);
    nj_flow_insert(&t->flows, f);
    t->flow[i] = f;
}

/* Replacement, as when a handshake completes or a connection enters TIME-WAIT. */
static void replace_flow(struct table *t, uint32_t i, uint32_t kind)
{
    struct nj_flow *f = object(t, kind), *old = t->flow[i];
    if (!f)
        return;
    nj_flow_replace(&t->flows, old, f);
    nj_pool_put(&t->pool[old->kind], old);
    t->flow[i] = f;
}

Test(tcp_flow_table, agrees_with_an_array)
{
    const uint64_t seed = 0xf10e;
    struct table t;
    struct nj_prng r;
    uint32_t n_full = 0;

    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    nj_prng_init(&r, seed);
    init(&t);
    for (unsigned step = 0; step < 20000; step++) {
        uint32_t i = nj_prng_below(&r, N), kind = nj_prng_below(&r, NJ_FLOW_KINDS), used = 0;
        if (t.flow[i] && nj_prng_below(&r, 3) == 0)
            replace_flow(&t, i, kind);
        else if (t.flow[i])
            remove_flow(&t, i);
        else if (step % 2000 < 1000 || nj_prng_below(&r, 3) == 0) /* fuller and emptier */
            insert_flow(&t, i, kind);
        check(&t);
        for (unsigned k = 0; k < NJ_FLOW_KINDS; k++)
            used += t.pool[k].n_used;
        n_full += used > N / 2;
    }
    cr_expect_gt(n_full, 1000, "the table was never full enough for this test");
    fini(&t);
}

/* The documented sizes of the table and its objects. */
Test(tcp_flow_table, sizes)
{
    struct nj_tcp tcp;
    struct nj_tcp_config c = {.conns_max = 1000000, .half_open_max = 65536};
    cr_expect_eq(sizeof(struct nj_flow_entry), 8);
    cr_expect_leq(sizeof(struct nj_syn), 96);
    cr_expect_eq(sizeof(struct nj_time_wait), 64);
    cr_assert(nj_tcp_init(&tcp, &c, NJ_SEC));
    cr_expect_eq(tcp.syns.obj_bytes, 128);
    cr_expect_eq(tcp.time_waits.obj_bytes, 64);
    uint64_t bytes = ((uint64_t)tcp.flows.mask + 1) * sizeof(struct nj_flow_entry);
    cr_expect_leq(bytes / c.conns_max, 16, "%lu bytes per connection",
                  (unsigned long)(bytes / c.conns_max));
    nj_tcp_fini(&tcp);
}

/* The hash depends on all bytes; for IPv4 on those after the prefix. */
static void hash_depends(struct nj_tuple a)
{
    struct table t;
    bool v4 = nj_addr_is_v4(&a.remote);
    init(&t);
    uint32_t h = nj_flow_hash(&t.flows, &a);
    cr_expect_eq(h, nj_flow_hash(&t.flows, &a));
    for (size_t i = 0; i < sizeof a; i++) {
        struct nj_tuple b = a;
        if (v4 && i < sizeof a.remote + sizeof a.local && i % sizeof a.remote < 12)
            continue;
        ((uint8_t *)&b)[i] ^= 1;
        cr_expect_neq(nj_flow_hash(&t.flows, &b), h, "byte %zu", i);
    }
    t.flows.key.b++;
    cr_expect_neq(nj_flow_hash(&t.flows, &a), h);
    fini(&t);
}

Test(tcp_flow_table, hash_depends_on_key_and_every_field)
{
    struct nj_tuple v4 = {
        .remote = nj_addr_from_v4(1), .local = nj_addr_from_v4(2), .rport = 1000, .lport = 80};
    hash_depends(v4);
    hash_depends(tuple_of(1));
}
