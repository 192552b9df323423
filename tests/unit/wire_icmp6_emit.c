/* SPDX-License-Identifier: BSD-3-Clause */
/* Our parser accepts the IPv6 and ICMPv6 packets that we send, except those for routers. */
#include <criterion/criterion.h>
#include <netinet/in.h>

#include "base/prng.h"
#include "support/mbuf_env.h"
#include "telem/counters.h"
#include "wire/csum.h"
#include "wire/emit.h"
#include "wire/icmp6.h"
#include "wire/ip6.h"

#define NONE NJ_COUNTERS_MAX

static const struct rte_ether_addr our_mac = {{2, 0, 0, 0, 0, 0xaa}};
static const struct rte_ether_addr peer_mac = {{2, 0, 0, 0, 0, 0xbb}};
static const struct nj_addr us = {{0x20, 1, 0x0d, 0xb8, [15] = 1}};
static const struct nj_addr peer = {{0x20, 1, 0x0d, 0xb8, [15] = 2}};
static const struct nj_addr our_ll = {{0xfe, 0x80, [15] = 0xaa}};
static const struct nj_addr peer_ll = {{0xfe, 0x80, [15] = 0xbb}};
static const struct nj_addr nobody;

static nj_counter take(struct rte_mbuf *m, const struct nj_iface *as, struct nj_packet *p)
{
    nj_eth_prepend(m, &(struct rte_ether_addr){{0x33, 0x33, 0, 0, 0, 1}}, &our_mac,
                   RTE_ETHER_TYPE_IPV6);
    nj_packet_parse(as, m, p);
    return p->kind <= NJ_PACKET_PARAM_PROBLEM ? p->drop : NONE;
}

Test(wire_icmp6_emit, what_we_build)
{
    struct rte_mempool *pool = nj_test_pool(1);
    const struct nj_iface other = {
        .ip6 = true, .mtu = 1500, .n_addrs = 2, .addr = {{peer, 64, 0}, {peer_ll, 64, 0}}};
    const struct nj_addr all = nj_ip6_all_nodes(), group = nj_ip6_solicited_node(&peer);
    struct nj_packet p;

    struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
    nj_nd_solicit_build(m, &us, &group, &peer, &our_mac, NULL);
    cr_expect_eq(take(m, &other, &p), NONE);
    cr_expect(p.nd.kind == NJ_ND_SOLICIT && p.nd.has_mac && nj_addr_eq(&p.nd.target, &peer));
    rte_pktmbuf_free(m);

    m = rte_pktmbuf_alloc(pool);
    nj_nd_solicit_build(m, &nobody, &group, &peer, NULL, (const uint8_t *)"abcdef");
    cr_expect_eq(take(m, &other, &p), NONE);
    cr_expect(!p.nd.has_mac && p.nd.has_nonce && memcmp(p.nd.nonce, "abcdef", 6) == 0);
    rte_pktmbuf_free(m);

    m = rte_pktmbuf_alloc(pool);
    nj_nd_advertise_build(m, &us, &all, &us, &our_mac, false);
    cr_expect_eq(take(m, &other, &p), NONE);
    cr_expect(p.nd.kind == NJ_ND_ADVERT && p.nd.override && !p.nd.solicited && !p.nd.router);
    rte_pktmbuf_free(m);
    cr_expect(nj_test_pool_full(pool));
}

/* Reports and router solicitations are not for hosts: their checksums and headers are looked at. */
static void expect_report(struct rte_mbuf *m, uint8_t type, uint32_t up, uint8_t hops)
{
    const uint8_t *b = rte_pktmbuf_mtod(m, const uint8_t *);
    struct nj_addr src, dst;

    memcpy(&src, b + 8, 16);
    memcpy(&dst, b + 24, 16);
    cr_expect_eq(b[up], type);
    cr_expect_eq(b[7], hops);
    cr_expect_eq((uint32_t)(b[4] << 8 | b[5]), m->pkt_len - 40);
    uint64_t sum = nj__csum_pseudo6(&src, &dst, IPPROTO_ICMPV6, m->pkt_len - up);
    cr_expect_eq(nj__csum_fold(nj__csum_add_bytes(sum, b + up, m->pkt_len - up)), 0xffff);
    rte_pktmbuf_free(m);
}

Test(wire_icmp6_emit, reports_and_problems)
{
    struct rte_mempool *pool = nj_test_pool(1);
    const struct nj_addr groups[2] = {nj_ip6_solicited_node(&us), nj_ip6_solicited_node(&our_ll)};
    uint8_t packet[1500] = {0x60};

    struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
    nj_mld2_report_build(m, &our_ll, groups, 2, true);
    cr_expect_eq(m->pkt_len, 40 + 8 + 8 + 2 * 20);
    cr_expect_eq(memcmp(rte_pktmbuf_mtod(m, uint8_t *) + 40, "\x3a\0\5\2\0\0\1\0", 8), 0);
    cr_expect_eq(rte_pktmbuf_mtod(m, uint8_t *)[56], 4, "change to exclude");
    expect_report(m, 143, 48, 1);
    m = rte_pktmbuf_alloc(pool);
    nj_mld1_report_build(m, &our_ll, &groups[0]);
    cr_expect_eq(m->pkt_len, 40 + 8 + 24);
    expect_report(m, 131, 48, 1);
    m = rte_pktmbuf_alloc(pool);
    nj_nd_router_solicit_build(m, &our_ll, &our_mac);
    cr_expect_eq(m->pkt_len, 40 + 16);
    expect_report(m, 133, 40, 255);
    m = rte_pktmbuf_alloc(pool);
    nj_icmp6_param_problem_build(m, &us, &peer, 2, 42, packet, sizeof packet);
    cr_expect_eq(m->pkt_len, 1280, "the quote is cut");
    cr_expect_eq(rte_pktmbuf_mtod(m, uint8_t *)[47], 42);
    expect_report(m, 4, 40, 64);
    cr_expect(nj_test_pool_full(pool));
}

Test(wire_icmp6_emit, segments_round_trip)
{
    struct rte_mempool *pool = nj_test_pool(1);
    const struct nj_iface other = {
        .mac = peer_mac, .ip6 = true, .mtu = 1500, .n_addrs = 1, .addr = {{peer, 64, 0}}};
    struct nj_prng r;

    nj_prng_init(&r, 66);
    for (unsigned run = 0; run < 300; run++) {
        uint8_t data[1400];
        uint32_t n = nj_prng_below(&r, sizeof data);
        for (uint32_t i = 0; i < n; i++)
            data[i] = (uint8_t)nj_prng_next(&r);
        struct nj_tcp_emit e = {.tuple = {peer, us, 40000, 80},
                                .seq = (uint32_t)nj_prng_next(&r),
                                .flags = NJ_TCP_ACK,
                                .opts = {.has_ts = run & 1, .ts_val = run}};
        struct nj_packet p;
        struct rte_mbuf *m = nj_test_mbuf(pool, data, n);
        nj_tcp_prepend(m, &e, &(struct nj_tx_offload){.tcp_csum = false});
        nj_ip_prepend(m, &(struct nj_ip_meta){.src = us, .dst = peer, .ecn = run & 3}, IPPROTO_TCP,
                      7);
        nj_eth_prepend(m, &peer_mac, &our_mac, RTE_ETHER_TYPE_IPV6);
        nj_packet_parse(&other, m, &p);
        cr_assert_eq(p.kind, NJ_PACKET_TCP, "run %u", run);
        cr_expect(p.tcp.seq == e.seq && p.tcp.ecn == (run & 3) && p.tcp.payload_bytes == n);
        rte_pktmbuf_free(m);
    }
}
