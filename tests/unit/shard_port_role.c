/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes share a port during an upgrade: which one handles a packet of no connection. */
#include <criterion/criterion.h>

#include "support/shard_rig.h"
#include "telem/counters.h"

enum { HEADERS = 1, PING = 6, GOAWAY = 7 }; /* RFC 9113 6 */

static uint32_t n_passed;
static bool is_full;

static bool pass_on(void *rig, const struct rte_mbuf *m)
{
    n_passed += !is_full;
    return !is_full;
}

static struct rig *rig_shared(bool frames_reach_both, uint32_t half_open_max)
{
    struct rig *r = rig_alloc(8192, 8192);
    struct nj_shard_config c = rig_config(r);

    n_passed = 0;
    is_full = false;
    c.ops.rx_shared = rig_rx;
    c.ops.pass_on = pass_on;
    c.frames_reach_both = frames_reach_both;
    c.half_open_max = half_open_max;
    rig_new_with(r, &c);
    rig_arp(r, false, RIG_PEER_IP, &rig_peer_mac, RIG_IP);
    rig_settle(r);
    return r;
}

static void set_role(struct rig *r, enum nj_port_role role)
{
    nj_shard_set_port_role(r->s, role, r->now);
    rig_settle(r);
}

/* The frames that wait come from the other process. */
static void mark_from_peer(struct rig *r)
{
    for (uint32_t i = 0; i < r->n_in; i++)
        r->in[i]->port = NJ_PEER_PORT + 1;
}

Test(shard_port_role, alone_passes_nothing_on)
{
    struct rig *r = rig_shared(false, RIG_PEERS);

    cr_expect(rig_connect(r, 1000)->got_synack);
    cr_expect_eq(n_passed, 0);
    rig_free(r);
}

Test(shard_port_role, yields_new_connections_and_keeps_its_own)
{
    struct rig *r = rig_shared(false, RIG_PEERS);
    struct rig_peer *own = rig_connect_h2(r, 1000);

    set_role(r, NJ_PORT_YIELDS);
    cr_expect_eq(rig_h2_frames(own, GOAWAY, NULL), 1, "no GOAWAY");
    struct rig_peer *other = rig_connect(r, 1001);
    cr_expect_not(other->got_synack);
    cr_expect_not(other->got_rst);
    cr_expect_eq(n_passed, 1);
    cr_expect_eq(rig_count(r, NJ_C_rx_peer_out), 1);
    rig_get(r, own, 1, "/whole"); /* sent before the first GOAWAY came */
    rig_settle(r);
    cr_expect_eq(rig_h2_frames(own, HEADERS, NULL), 1, "no response");
    rig_free(r);
}

Test(shard_port_role, a_full_channel_drops_and_counts)
{
    struct rig *r = rig_shared(false, RIG_PEERS);

    set_role(r, NJ_PORT_YIELDS);
    is_full = true;
    cr_expect_not(rig_connect(r, 1000)->got_rst);
    cr_expect_eq(rig_count(r, NJ_C_drop_peer_full), 1);
    rig_free(r);
}

static void acknowledge_ping(struct rig *r, struct rig_peer *p)
{
    const uint8_t *ping = NULL;
    uint8_t buf[17];

    cr_assert_eq(rig_h2_frames(p, PING, &ping), 1);
    rig_send(r, p, buf, rig_h2(buf, PING, 1, 0, ping, 8));
}

/* Two seconds are longer than the time between two GOAWAYs. */
static void first_request_gets_goaway(struct rig *r, struct rig_peer *p)
{
    rig_begin_h2(r, p);
    rig_get(r, p, 1, "/whole");
    rig_settle(r);
    cr_expect_eq(rig_h2_frames(p, GOAWAY, NULL), 1);
    cr_expect_eq(rig_h2_frames(p, HEADERS, NULL), 1, "no response");
    acknowledge_ping(r, p);
    rig_run(r, 2 * NJ_SEC);
}

/* The last GOAWAY has not come, and comes within `dt`; then the connection ends. */
static void expect_last_goaway_within(struct rig *r, const struct rig_peer *p, nj_ns dt)
{
    cr_expect_eq(rig_h2_frames(p, GOAWAY, NULL), 1);
    rig_run(r, dt);
    cr_expect_eq(rig_h2_frames(p, GOAWAY, NULL), 2);
    cr_expect(p->got_fin);
}

/* Its PING is answered when the peer has read GOAWAY, and then no request is in flight. */
Test(shard_port_role, the_last_goaway_waits_for_the_peer)
{
    struct rig *r = rig_shared(false, RIG_PEERS);
    struct rig_peer *p = rig_connect_h2(r, 1000);

    set_role(r, NJ_PORT_YIELDS);
    rig_run(r, 5 * NJ_SEC);
    cr_expect_eq(rig_h2_frames(p, GOAWAY, NULL), 1);
    rig_get(r, p, 1, "/whole");
    rig_settle(r);
    cr_expect_eq(rig_h2_frames(p, HEADERS, NULL), 1, "no response");
    acknowledge_ping(r, p);
    expect_last_goaway_within(r, p, NJ_SEC);
    rig_free(r);
}

/* The other process ended, and another one begins an upgrade. */
Test(shard_port_role, a_second_upgrade_waits_as_the_first_one)
{
    struct rig *r = rig_shared(false, RIG_PEERS);
    struct rig_peer *p = rig_connect_h2(r, 1000);

    set_role(r, NJ_PORT_YIELDS);
    rig_run(r, 100 * NJ_MS);
    set_role(r, NJ_PORT_ALONE);
    rig_run(r, NJ_SEC);
    set_role(r, NJ_PORT_YIELDS);
    rig_run(r, NJ_SEC);
    cr_expect_eq(rig_h2_frames(p, GOAWAY, NULL), 1);
    acknowledge_ping(r, p);
    expect_last_goaway_within(r, p, NJ_SEC);
    rig_free(r);
}

Test(shard_port_role, the_last_goaway_comes_without_an_answer)
{
    struct rig *r = rig_shared(false, RIG_PEERS);
    struct rig_peer *p = rig_connect_h2(r, 1000);

    set_role(r, NJ_PORT_YIELDS);
    rig_run(r, 9 * NJ_SEC);
    expect_last_goaway_within(r, p, 2 * NJ_SEC);
    rig_free(r);
}

/* The peer has sent its request with the end of the handshake, and cannot know of GOAWAY. */
Test(shard_port_role, a_connection_without_a_request_is_served)
{
    struct rig *r = rig_shared(false, RIG_PEERS);
    struct rig_peer *p = rig_connect(r, 1000);

    set_role(r, NJ_PORT_YIELDS);
    rig_run(r, 2 * NJ_SEC); /* longer than between two GOAWAYs */
    cr_expect_not(p->got_fin);
    first_request_gets_goaway(r, p);
    cr_expect(p->got_fin);
    rig_free(r);
}

Test(shard_port_role, a_handshake_that_has_begun_is_completed)
{
    struct rig *r = rig_shared(false, RIG_PEERS);
    struct rig_peer *p = rig_syn_from(r, RIG_PEER_IP, 1000);

    p->manual = true;
    rig_settle(r);
    cr_assert(p->got_synack);
    set_role(r, NJ_PORT_YIELDS);
    cr_expect(nj_shard_has_unfinished_work(r->s), "the handshake is not complete");
    p->manual = false;
    rig_settle(r);
    rig_run(r, 2 * NJ_SEC); /* longer than between two GOAWAYs */
    first_request_gets_goaway(r, p);
    cr_expect_eq(rig_h2_frames(p, GOAWAY, NULL), 2);
    cr_expect(p->got_fin);
    cr_expect_eq(n_passed, 0);
    rig_fin(r, p);
    rig_run(r, 4 * NJ_SEC);
    cr_expect_not(nj_shard_has_unfinished_work(r->s));
    rig_free(r);
}

Test(shard_port_role, our_cookie_is_completed)
{
    struct rig *r = rig_shared(false, 1);
    struct rig_peer *half = rig_syn_from(r, RIG_PEER_IP, 1000), *p;

    half->manual = true;
    p = rig_syn_from(r, RIG_PEER_IP, 1001);
    p->manual = true;
    rig_settle(r);
    cr_assert(p->got_synack);
    cr_assert_eq(rig_count(r, NJ_C_tcp_cookie_sent), 1);
    set_role(r, NJ_PORT_YIELDS);
    rig_ack(r, p);
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_tcp_cookie_ok), 1);
    cr_expect_eq(n_passed, 0);
    struct rig_peer forged = *p;
    forged.rcv_nxt ^= 0x12345000;
    rig_ack(r, &forged);
    rig_settle(r);
    cr_expect_eq(n_passed, 0, "a segment of the connection");
    forged.tuple.lport = 1002;
    rig_ack(r, &forged);
    rig_settle(r);
    cr_expect_eq(n_passed, 1);
    rig_free(r);
}

Test(shard_port_role, takes_what_the_other_process_passes_on)
{
    struct rig *r = rig_shared(false, RIG_PEERS);

    set_role(r, NJ_PORT_TAKES);
    struct rig_peer *p = rig_connect(r, 1000);
    cr_expect_not(p->got_synack);
    cr_expect_eq(n_passed, 1);
    rig_seg(r, p, p->snd_nxt - 1, NJ_TCP_SYN, NULL, 0);
    mark_from_peer(r);
    rig_settle(r);
    cr_expect(p->got_synack);
    cr_expect_eq(n_passed, 1);
    rig_free(r);
}

Test(shard_port_role, leaves_frames_that_reach_both)
{
    struct rig *r = rig_shared(true, RIG_PEERS);

    set_role(r, NJ_PORT_TAKES);
    cr_expect_not(rig_connect(r, 1000)->got_synack);
    cr_expect_eq(n_passed, 0);
    cr_expect_eq(rig_count(r, NJ_C_drop_peer), 1);
    set_role(r, NJ_PORT_KEEPS);
    cr_expect(rig_connect(r, 1001)->got_synack);
    cr_expect_eq(n_passed, 0);
    rig_free(r);
}

Test(shard_port_role, one_process_answers_arp)
{
    for (int both = 0; both < 2; both++) {
        struct rig *r = rig_shared(both, RIG_PEERS);
        set_role(r, NJ_PORT_TAKES);
        uint64_t n_out = r->n_out;
        rig_arp(r, true, RIG_PEER_IP, &rig_peer_mac, RIG_IP);
        rig_settle(r);
        cr_expect_eq(r->n_out - n_out, both ? 0 : 1);
        rig_arp(r, true, RIG_PEER_IP, &rig_peer_mac, RIG_IP);
        mark_from_peer(r); /* it has received and answered it */
        rig_settle(r);
        cr_expect_eq(r->n_out - n_out, both ? 0 : 1);
        rig_free(r);
    }
}

/* The other process has ended: all as before. */
Test(shard_port_role, alone_again)
{
    struct rig *r = rig_shared(false, RIG_PEERS);

    set_role(r, NJ_PORT_YIELDS);
    cr_expect_not(rig_connect(r, 1000)->got_synack);
    set_role(r, NJ_PORT_ALONE);
    struct rig_peer *p = rig_connect_h2(r, 1001);
    cr_expect(p->got_synack);
    rig_run(r, 2 * NJ_SEC);
    cr_expect_eq(rig_h2_frames(p, GOAWAY, NULL), 0, "GOAWAY");
    cr_expect_eq(n_passed, 1);
    rig_free(r);
}
