/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP errors reach the shard that owns the flow they quote, and are dropped without one. */
#include <criterion/criterion.h>

#include <rte_icmp.h>
#include <rte_ip.h>

#include "support/shard_rig.h"
#include "telem/counters.h"
#include "wire/csum.h"

#define ROUTER_IP 0xc612004du

/* Host unreachable, from a router, quoting the segment `seq` sent on connection `t`. */
static void unreachable(struct rig *r, const struct nj_tuple *t, uint32_t seq)
{
    uint16_t ports[2] = {htons(t->lport), htons(t->rport)};
    uint32_t seq_be = htonl(seq);
    struct rte_ipv4_hdr quoted = {.version_ihl = RTE_IPV4_VHL_DEF,
                                  .total_length = htons(1500),
                                  .next_proto_id = IPPROTO_TCP,
                                  .src_addr = nj_addr_to_v4(&t->local),
                                  .dst_addr = nj_addr_to_v4(&t->remote)};
    uint8_t icmp[8 + 20 + 8] = {3, 1};
    memcpy(icmp + 8, &quoted, 20);
    memcpy(icmp + 28, ports, 4);
    memcpy(icmp + 32, &seq_be, 4);
    uint16_t sum = (uint16_t)~nj__csum_fold(nj__csum_add_bytes(0, icmp, sizeof icmp));
    memcpy(icmp + 2, &sum, 2);

    struct rte_mbuf *m = nj_test_mbuf(r->rx_pool, icmp, sizeof icmp);
    struct nj_ip_meta ip = {.src = rig_addr(ROUTER_IP), .dst = rig_addr(RIG_IP)};
    nj_ipv4_prepend(m, &ip, IPPROTO_ICMP, 1);
    nj_eth_prepend(m, &rig_mac, &rig_peer_mac, RTE_ETHER_TYPE_IPV4);
    rig_queue(r, m);
}

static struct nj_tuple tuple_to(uint16_t rport)
{
    return (struct nj_tuple){rig_addr(RIG_PEER_IP), rig_addr(RIG_IP), rport, RIG_PORT};
}

Test(shard_packet_icmp, found_or_dropped)
{
    struct rig *r = rig_new();
    struct rig_peer *p = rig_connect(r, 1000);
    struct nj_tuple known = tuple_to(1000), other = tuple_to(1001);
    uint8_t hello[128];

    p->manual = true; /* sent and not acknowledged (RFC 5927 4.1) */
    rig_send(r, p, hello, rig_h2_hello(hello));
    rig_settle(r);
    unreachable(r, &known, p->rcv_nxt - 1);
    unreachable(r, &other, 1);
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_rx_icmp_error), 1);
    cr_expect_eq(rig_count(r, NJ_C_drop_icmp_error), 1);
    rig_free(r);
}

/* An error is forwarded like the segments of its flow. */
static void steered(enum nj_steer_mode mode)
{
    struct rig *r = rig_alloc(2048, 2048);
    struct nj_shard_config c = rig_config(r);
    c.n_shards = 4;
    c.index = 2;
    c.steering = mode;
    rig_new_with(r, &c);
    rig_settle(r);
    uint32_t n_ours = 0;
    for (uint16_t port = 1000; port < 1100; port++) {
        struct nj_tuple t = tuple_to(port);
        n_ours += nj_steer_owner(&r->s->steer, &t) == 2;
        unreachable(r, &t, 1);
    }
    rig_settle(r);
    cr_assert(n_ours > 5 && n_ours < 60);
    cr_expect_eq(r->n_forwarded, 100 - n_ours);
    cr_expect_eq(rig_count(r, NJ_C_drop_icmp_error), n_ours);
    cr_expect_eq(rig_count(r, NJ_C_steer_misplaced), 0, "not the NIC's mistake");

    struct nj_tuple t = tuple_to(1000);
    for (t.rport = 1000; nj_steer_owner(&r->s->steer, &t) == 2; t.rport++)
        ;
    unreachable(r, &t, 1);
    r->steered[r->n_steered++] = r->in[--r->n_in];
    rig_settle(r);
    cr_expect_eq(r->n_forwarded, 100 - n_ours, "a forwarded packet is not forwarded again");
    cr_expect_eq(rig_count(r, NJ_C_drop_icmp_error), n_ours + 1);
    rig_free(r);
}

Test(shard_packet_icmp, steered_always)
{
    steered(NJ_STEER_ALWAYS);
}

Test(shard_packet_icmp, steered_on_a_miss)
{
    steered(NJ_STEER_ON_MISS);
}
