/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv6 through a whole shard: requests, echoes, errors, next hops, and packets replicated to other
 * shards. */
#include <criterion/criterion.h>

#include "support/shard_rig.h"
#include "telem/counters.h"
#include "wire/csum.h"

static const struct nj_addr us = {{0x20, 1, 0x0d, 0xb8, [15] = 2}};
static const struct nj_addr peer = {{0x20, 1, 0x0d, 0xb8, [15] = 1}};
static const struct nj_addr far = {{0x20, 1, 0x0d, 0xb8, 9, [15] = 1}};

static struct rig *rig_both(uint32_t n_shards)
{
    struct rig *r = rig_alloc(4096, 4096);
    struct nj_shard_config c = rig_config(r);
    c.iface.ip6 = true;
    c.iface.addr[c.iface.n_addrs++] = (struct nj_iface_addr){us, 64, 0};
    c.n_shards = n_shards;
    c.steering = n_shards > 1 ? NJ_STEER_ALWAYS : NJ_STEER_NONE;
    rig_new_with(r, &c);
    for (int i = 0; i < 60; i++) { /* duplicate address detection */
        rig_step(r);
        r->now += 100 * NJ_MS;
    }
    rig_settle(r);
    cr_assert(nj_iface_has_addr(&r->s->cfg.iface, &us));
    return r;
}

/* A frame to the shard with this ICMPv6 message. */
static struct rte_mbuf *icmp(struct rig *r, const struct nj_addr *from, uint8_t *msg, uint16_t n,
                             uint8_t hop_limit)
{
    memset(msg + 2, 0, 2);
    uint64_t sum = nj__csum_pseudo6(from, &us, IPPROTO_ICMPV6, n);
    uint16_t c = (uint16_t)~nj__csum_fold(nj__csum_add_bytes(sum, msg, n));
    memcpy(msg + 2, &c, 2);
    struct rte_mbuf *m = nj_test_mbuf(r->rx_pool, msg, n);
    nj_ipv6_prepend(m, &(struct nj_ip_meta){.src = *from, .dst = us}, IPPROTO_ICMPV6, hop_limit);
    nj_eth_prepend(m, &rig_mac, &rig_peer_mac, RTE_ETHER_TYPE_IPV6);
    return m;
}

static void ping(struct rig *r, const struct nj_addr *from)
{
    uint8_t msg[12] = {128, 0, 0, 0, 0, 1, 0, 2, 'a', 'b', 'c'};
    rig_queue(r, icmp(r, from, msg, sizeof msg, 64));
}

static const struct rig_frame *last_out(const struct rig *r)
{
    return &r->out[(r->n_out - 1) % RIG_OUT_MAX];
}

/* Sentence 97. */
Test(shard_packet_ip6, echo_and_next_hops)
{
    struct rig *r = rig_both(1);
    ping(r, &peer);
    rig_settle(r);
    const struct rig_frame *f = last_out(r);
    cr_assert_eq(f->n_bytes, 14 + 40 + 12);
    cr_expect_eq(f->bytes[54], 129);
    cr_expect_eq(memcmp(f->bytes, &rig_peer_mac, 6), 0);
    cr_expect_eq(memcmp(f->bytes + 22, us.b, 16) | memcmp(f->bytes + 38, peer.b, 16), 0);
    uint64_t sum = nj__csum_pseudo6(&us, &peer, IPPROTO_ICMPV6, 12);
    cr_expect_eq(nj__csum_fold(nj__csum_add_bytes(sum, f->bytes + 54, 12)), 0xffff);
    cr_expect_eq(rig_count(r, NJ_C_rx_icmp), 1);

    ping(r, &far);
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_drop_tx_no_route), 1);
    r->s->cfg.iface.has_gateway6 = true;
    r->s->cfg.iface.gateway6 = peer;
    ping(r, &far);
    rig_settle(r);
    f = last_out(r);
    cr_expect_eq(memcmp(f->bytes, &rig_peer_mac, 6) | memcmp(f->bytes + 38, far.b, 16), 0);
    cr_expect_eq(rig_count(r, NJ_C_drop_tx_no_route), 1);
    rig_free(r);
}

Test(shard_packet_ip6, requests)
{
    struct rig *r = rig_both(1);
    uint8_t buf[128];
    struct rig_peer *p = rig_syn_between(r, &peer, &us, 1000);
    rig_settle(r);
    cr_assert(p->got_synack);
    rig_send(r, p, buf, rig_h2_hello(buf));
    rig_get(r, p, 1, "/whole");
    rig_run(r, NJ_SEC);
    cr_expect_gt(p->n_got, RIG_WHOLE);
    cr_expect_eq(rig_count(r, NJ_C_status_2xx), 1);
    struct rig_peer *p4 = rig_connect_h2(r, 1001); /* IPv4 beside it */
    rig_get(r, p4, 1, "/whole");
    rig_run(r, NJ_SEC);
    cr_expect_gt(p4->n_got, RIG_WHOLE);
    rig_free(r);
}

/* Unknown options are reported, at a limited rate (RFC 4443 2.4 f, 3.4). */
Test(shard_packet_ip6, problems_are_told)
{
    struct rig *r = rig_both(1);
    for (int i = 0; i < 150; i++) {
        struct rte_mbuf *m = nj_test_mbuf(r->rx_pool, "12345678", 8);
        nj_ipv6_prepend(m, &(struct nj_ip_meta){.src = peer, .dst = us}, 253, 64);
        nj_eth_prepend(m, &rig_mac, &rig_peer_mac, RTE_ETHER_TYPE_IPV6);
        rig_queue(r, m);
        rig_step(r);
    }
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_drop_ip_protocol), 150);
    cr_expect_eq(rig_count(r, NJ_C_icmp_problem_out), 100);
    const struct rig_frame *f = last_out(r);
    cr_expect_eq(f->n_bytes, 14 + 40 + 8 + 48);
    cr_expect(f->bytes[54] == 4 && f->bytes[55] == 1 && f->bytes[61] == 6);
    rig_free(r);
}

static void too_big(struct rig *r, const struct nj_tuple *t, uint32_t seq)
{
    uint8_t msg[8 + 40 + 8] = {2, 0, 0, 0, 0, 0, 5, 0, 0x60, [14] = IPPROTO_TCP};
    const uint8_t tcp[8] = {
        (uint8_t)(t->rport >> 8), (uint8_t)t->rport,    (uint8_t)(t->lport >> 8), (uint8_t)t->lport,
        (uint8_t)(seq >> 24),     (uint8_t)(seq >> 16), (uint8_t)(seq >> 8),      (uint8_t)seq};
    memcpy(msg + 16, us.b, 16);
    memcpy(msg + 32, t->local.b, 16);
    memcpy(msg + 48, tcp, 8);
    rig_queue(r, icmp(r, &far, msg, sizeof msg, 60));
}

/* Sentence 96: an error is delivered to the connection it quotes, if it quotes an unacknowledged
 * segment. */
Test(shard_packet_ip6, errors_reach_tcp)
{
    struct rig *r = rig_both(1);
    uint8_t buf[128];
    struct rig_peer *p = rig_syn_between(r, &peer, &us, 1000);
    rig_settle(r);
    rig_send(r, p, buf, rig_h2_hello(buf));
    rig_settle(r);
    p->manual = true;
    rig_get(r, p, 1, "/whole");
    rig_settle(r);
    uint32_t una = p->rcv_nxt - (uint32_t)p->n_got; /* start of the stream: far below snd_una */
    too_big(r, &p->tuple, una - 100000);
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_drop_icmp_error), 1, "nothing of that is under way");
    too_big(r, &p->tuple, p->rcv_nxt - 1); /* sent, and not acknowledged */
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_rx_icmp_error), 1);
    struct nj_tuple other = p->tuple;
    other.lport++;
    too_big(r, &other, p->rcv_nxt - 1);
    rig_settle(r);
    cr_expect_eq(rig_count(r, NJ_C_drop_icmp_error), 2);
    rig_free(r);
}

/* Errors and segments go to the shard that owns the flow; neighbour advertisements are replicated.
 */
Test(shard_packet_ip6, other_shards)
{
    struct rig *r = rig_both(2);
    uint32_t shared = r->n_shared;
    for (uint16_t port = 1000; port < 1064; port++) {
        struct nj_tuple t = {peer, us, port, RIG_PORT};
        uint32_t before = r->n_forwarded;
        bool foreign = nj_steer_owner(&r->s->steer, &t) != 0;
        struct nj_tuple as_peer = {us, peer, RIG_PORT, port};
        too_big(r, &as_peer, 1);
        rig_step(r);
        cr_expect_eq(r->n_forwarded - before, foreign, "port %u", port);
    }
    cr_expect_gt(r->n_forwarded, 10);
    cr_expect_lt(r->n_forwarded, 54);

    uint8_t na[32] = {136, [4] = 0x60, [24] = 2, 1, 2, 0, 0, 0, 0, 9};
    memcpy(na + 8, peer.b, 16);
    rig_queue(r, icmp(r, &peer, na, sizeof na, 255)); /* the other shard may have solicited it */
    rig_settle(r);
    cr_expect_eq(r->n_shared, shared + 1);
    r->steered[r->n_steered++] = icmp(r, &peer, na, sizeof na, 255);
    rig_settle(r);
    cr_expect_eq(r->n_shared, shared + 1, "a copy is not shown again");
    for (int i = 0; i < 1500; i++) {
        rig_queue(r, icmp(r, &peer, na, sizeof na, 255));
        rig_step(r);
    }
    cr_expect_leq(r->n_shared, shared + 1000, "the rate is limited");
    rig_free(r);
}
