/* SPDX-License-Identifier: BSD-3-Clause */
/* Cycles per stage of a step. */
#include <criterion/criterion.h>

#include "support/shard_rig.h"

static uint64_t spent_cycles;

static uint64_t cycles(void)
{
    return spent_cycles;
}

static uint32_t dear_tx(void *rig, struct rte_mbuf **m, uint32_t n)
{
    spent_cycles += 1000;
    return rig_tx(rig, m, n);
}

/* Full bursts leave before the end of the step, within TCP's work; they still count for the TX
 * stage. */
Test(shard_stages, sending_is_the_tx_stage)
{
    struct rig *r = rig_alloc(8192, 8192);
    struct nj_shard_config c = rig_config(r);
    struct rig_peer *p[8];

    c.ops.tx = dear_tx;
    c.conns.ops.cycles = cycles;
    rig_new_with(r, &c);
    for (uint16_t i = 0; i < NJ_ARRAY_LEN(p); i++)
        p[i] = rig_connect_h2(r, 1000 + i);
    for (uint16_t i = 0; i < NJ_ARRAY_LEN(p); i++)
        rig_get(r, p[i], 1, "/big");
    for (int i = 0; i < 50; i++) {
        r->s->stages.n_steps = 0; /* measure the next step */
        rig_step(r);
        r->now += NJ_MS;
    }
    cr_expect_gt(atomic_load(&r->s->stages.spent[NJ_STAGE_TX]), 50000, "several bursts a step");
    cr_expect_eq(atomic_load(&r->s->stages.spent[NJ_STAGE_TCP]), 0);
    rig_free(r);
}
