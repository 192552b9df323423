/* SPDX-License-Identifier: BSD-3-Clause */
/* What telemetry is told of the objects that connections are made of. */
#include <criterion/criterion.h>

#include "support/shard_rig.h"

static uint32_t used(const struct rig *r, uint32_t pool)
{
    return atomic_load(&r->s->pool_gauge[pool].n_used);
}

static uint32_t high(const struct rig *r, uint32_t pool)
{
    return atomic_load(&r->s->pool_gauge[pool].n_high);
}

Test(shard_memory, counts_what_is_and_what_was)
{
    struct rig *r = rig_new();

    for (uint16_t port = 1000; port < 1005; port++)
        rig_connect(r, port);
    nj_shard_publish(r->s);
    for (uint32_t i = 0; i < NJ_SHARD_POOLS; i++) {
        cr_expect_str_not_empty(nj_shard_pool_name(i));
        cr_expect_eq(used(r, i), 5, "%s", nj_shard_pool_name(i));
        cr_expect_eq(high(r, i), 5);
        cr_expect_eq(nj_shard_pool(r->s, i)->n_max, RIG_PEERS);
    }
    nj_shard_abort(r->s, r->now);
    rig_settle(r);
    cr_expect_eq(used(r, 0), 5, "until it is published again");
    nj_shard_publish(r->s);
    for (uint32_t i = 0; i < NJ_SHARD_POOLS; i++) {
        cr_expect_eq(used(r, i), 0);
        cr_expect_eq(high(r, i), 5, "memory that was touched stays");
    }
    cr_expect_eq(nj_shard_flow_bytes(r->s), 2 * RIG_PEERS * sizeof(struct nj_flow_entry));
    rig_free(r);
}
