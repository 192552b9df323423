/* SPDX-License-Identifier: BSD-3-Clause */
/* The flow table against a naive one; hashes are chosen so that runs wrap around and collide. */
#include <criterion/criterion.h>

#include <stdio.h>

#include "base/prng.h"
#include "tcp/flow_table.h"
#include "tcp/tcb.h"

#define N 48u

struct table {
    struct nj_pool pool;
    struct nj_flow_table flows;
    struct nj_tcb *tcb[N]; /* by rport; NULL: not in the table */
};

static void init(struct table *t)
{
    memset(t, 0, sizeof *t);
    cr_assert(nj_pool_init(&t->pool, sizeof(struct nj_tcb), N));
    cr_assert(nj_flow_init(&t->flows, &t->pool, &(struct nj_hash_key){{7}}));
    cr_assert_geq(t->flows.mask + 1, 2 * N);
}

/* Few homes, around the end of the table, some with the very same hash. */
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
        cr_assert_eq(nj_flow_find(&t->flows, hash_of(t, i), &tuple), t->tcb[i], "flow %u", i);
        n += t->tcb[i] != NULL;
    }
    for (uint32_t i = 0; i <= t->flows.mask; i++)
        n -= t->flows.entry[i].idx_plus_1 != 0;
    cr_assert_eq(n, 0, "entries left behind");
}

Test(tcp_flow_table, agrees_with_an_array)
{
    const uint64_t seed = 0xf10e;
    struct table t;
    struct nj_prng r;

    fprintf(stderr, "seed %#lx\n", (unsigned long)seed);
    nj_prng_init(&r, seed);
    init(&t);
    for (unsigned step = 0; step < 20000; step++) {
        uint32_t i = nj_prng_below(&r, N);
        if (t.tcb[i]) {
            nj_flow_remove(&t.flows, t.tcb[i]);
            nj_pool_put(&t.pool, t.tcb[i]);
            t.tcb[i] = NULL;
        } else if (step % 2000 < 1000 || nj_prng_below(&r, 3) == 0) { /* fuller and emptier */
            t.tcb[i] = nj_pool_take(&t.pool);
            t.tcb[i]->tuple = tuple_of(i);
            t.tcb[i]->flow_hash = hash_of(&t, i);
            nj_flow_insert(&t.flows, t.tcb[i]);
        }
        check(&t);
    }
    nj_flow_fini(&t.flows);
    nj_pool_fini(&t.pool);
}

Test(tcp_flow_table, hash_depends_on_key_and_every_field)
{
    struct table t;
    struct nj_tuple a = tuple_of(1);
    init(&t);
    uint32_t h = nj_flow_hash(&t.flows, &a);
    cr_expect_eq(h, nj_flow_hash(&t.flows, &a));
    for (size_t i = 0; i < sizeof a; i++) {
        struct nj_tuple b = a;
        ((uint8_t *)&b)[i] ^= 1;
        cr_expect_neq(nj_flow_hash(&t.flows, &b), h);
    }
    t.flows.key.b[0]++;
    cr_expect_neq(nj_flow_hash(&t.flows, &a), h);
    nj_flow_fini(&t.flows);
    nj_pool_fini(&t.pool);
}
