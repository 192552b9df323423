/* SPDX-License-Identifier: BSD-3-Clause */
/* Telemetry of the object pools. */
#include <criterion/criterion.h>

#include "support/shard_rig.h"

static struct nj_pool_gauge *gauge(const struct rig *r, const char *name)
{
    for (uint32_t i = 0; i < NJ_SHARD_POOLS; i++)
        if (strcmp(nj_shard_pool_name(i), name) == 0)
            return &r->s->pool_gauge[i];
    NJ_UNREACHABLE("no such pool");
}

static void expect(const struct rig *r, const char *name, uint32_t n_used, uint32_t n_high)
{
    struct nj_pool_gauge *g = gauge(r, name);
    cr_expect_eq(atomic_load(&g->n_used), n_used, "%s", name);
    cr_expect_eq(atomic_load(&g->n_high), n_high, "%s", name);
}

Test(shard_pool_gauges, counts_what_is_and_what_was)
{
    struct rig *r = rig_new();

    for (uint16_t port = 1000; port < 1005; port++)
        rig_connect(r, port);
    expect(r, "tcb", 0, 0); /* not published yet */
    nj_shard_publish(r->s);
    expect(r, "tcb", 5, 5);
    expect(r, "conn", 5, 5);
    expect(r, "talk", 0, 0); /* no bytes received */
    rig_send(r, &r->peer[3], "P", 1);
    rig_settle(r);
    nj_shard_publish(r->s);
    expect(r, "talk", 1, 1);
    nj_tcp_abort_all(&r->s->tcp, r->now);
    rig_settle(r);
    nj_shard_publish(r->s);
    expect(r, "tcb", 0, 5); /* touched memory is kept */
    expect(r, "conn", 0, 5);
    expect(r, "talk", 0, 1);
    cr_expect_eq(atomic_load(&gauge(r, "xfer")->n_used), 0);
    expect(r, "syn", 0, 1); /* one at a time */
    for (uint32_t i = 0; i < NJ_SHARD_POOLS; i++)
        cr_expect_geq(nj_shard_pool_by_index(r->s, i)->n_max, RIG_PEERS);
    /* As many half-open entries as connections, twice as many in TIME-WAIT, and at most two thirds
     * in use. */
    cr_expect_eq(nj_shard_flow_table_bytes(r->s), 8 * RIG_PEERS * sizeof(struct nj_flow_entry));
    rig_free(r);
}
