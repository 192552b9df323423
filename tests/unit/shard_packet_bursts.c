/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of one flow within a burst: each segment sees the state left by the previous one. */
#include <criterion/criterion.h>

#include "support/shard_rig.h"
#include "telem/counters.h"

static void ack(struct rig *r, const struct rig_peer *p)
{
    rig_seg(r, p, p->snd_nxt, NJ_TCP_ACK, NULL, 0);
}

Test(shard_packet_bursts, counted)
{
    struct rig *r = rig_new();
    struct rig_peer *a = rig_connect(r, 1000), *b = rig_connect(r, 1001);
    uint64_t before = rig_count(r, NJ_C_rx_same_flow), taken = rig_count(r, NJ_C_rx_tcp);
    struct rig_peer *order[] = {a, a, a, b, a, b, b};

    for (unsigned i = 0; i < NJ_ARRAY_LEN(order); i++)
        ack(r, order[i]);
    rig_step(r);
    cr_expect_eq(rig_count(r, NJ_C_rx_same_flow), before + 3);
    cr_expect_eq(rig_count(r, NJ_C_rx_tcp), taken + 7);
    rig_free(r);
}

/* A reset within the burst ends the flow for the rest of it. */
Test(shard_packet_bursts, ended_in_between)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);

    p->manual = true;
    ack(r, p);
    rig_seg(r, p, p->snd_nxt, NJ_TCP_RST, NULL, 0);
    ack(r, p);
    ack(r, p);
    rig_step(r);
    cr_expect_eq(rig_count(r, NJ_C_tcp_reset_in), 1);
    cr_expect_eq(rig_count(r, NJ_C_drop_tcp_closed), 2);
    rig_free(r);
}

/* A SYN creates the connection: a second SYN in the same burst is a retransmission and creates no
 * second TCB. */
Test(shard_packet_bursts, made_in_between)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_syn_from(r, RIG_PEER_IP, 1000);

    p->manual = true;
    rig_seg_mss(r, p, p->snd_nxt - 1, NJ_TCP_SYN, NULL, 0, 1460);
    rig_step(r);
    cr_expect_eq(rig_count(r, NJ_C_rx_same_flow), 1);
    cr_expect_eq(r->s->tcp.n_half_open, 1);
    rig_free(r);
}

/* A run of another shard's flow is forwarded whole, and the next packet is looked up by itself. */
Test(shard_packet_bursts, handed_over)
{
    struct rig *r = rig_alloc(2048, 2048);
    struct nj_shard_config c = rig_config(r);
    uint32_t n_theirs = 0;

    c.n_shards = 2;
    c.steering = NJ_STEER_ALWAYS;
    rig_new_with(r, &c);
    rig_settle(r);
    uint64_t dropped = rig_count(r, NJ_C_drop_tcp_closed);
    for (uint16_t port = 1000; port < 1010; port++) {
        struct rig_peer p = {.tuple = {rig_addr(RIG_IP), rig_addr(RIG_PEER_IP), RIG_PORT, port}};
        struct nj_tuple received = {p.tuple.local, p.tuple.remote, port, RIG_PORT};
        n_theirs += nj_steer_owner(&r->s->steer, &received) != 0;
        for (unsigned i = 0; i < 3; i++)
            ack(r, &p);
    }
    while (r->n_in > 0)
        rig_step(r);
    cr_assert(n_theirs > 0 && n_theirs < 10);
    cr_expect_eq(r->n_forwarded, 3 * n_theirs);
    cr_expect_eq(rig_count(r, NJ_C_drop_tcp_closed) - dropped, 3 * (10 - n_theirs));
    cr_expect_eq(rig_count(r, NJ_C_rx_same_flow), 20);
    rig_free(r);
}
