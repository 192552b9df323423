/* SPDX-License-Identifier: BSD-3-Clause */
/* 802.1Q tags, received and sent (sentence 120): which frames are ours, and the tags of our frames.
 */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <string.h>

#include "base/compiler.h"
#include "support/mbuf_env.h"
#include "telem/counters.h"
#include "wire/emit.h"

#define UNTAGGED UINT32_MAX
#define OURS     7u

static const struct rte_ether_addr mac = {{2, 0, 0, 0, 0, 0xaa}};
static const struct rte_ether_addr peer_mac = {{2, 0, 0, 0, 0, 0xbb}};

static struct nj_iface iface_in(uint16_t vlan)
{
    return (struct nj_iface){.mac = mac,
                             .n_addrs = 1,
                             .addr = {{nj_addr_from_v4(htonl(0x0a000001)), 24, NJ_ADDR_READY}},
                             .mtu = 1500,
                             .vlan = vlan};
}

static void put_tag(struct rte_mbuf *m, uint16_t tci, uint16_t type)
{
    struct rte_vlan_hdr tag = {htons(tci), htons(type)};
    memcpy(rte_pktmbuf_prepend(m, sizeof tag), &tag, sizeof tag);
}

/* A SYN from 10.0.0.2 with the tags given, outermost first: one in the mbuf, as a device leaves it,
 * and two in the frame. */
static struct rte_mbuf *frame(struct rte_mempool *pool, uint32_t stripped, uint32_t outer,
                              uint32_t inner)
{
    struct nj_addr src = nj_addr_from_v4(htonl(0x0a000002)),
                   dst = nj_addr_from_v4(htonl(0x0a000001));
    struct nj_tcp_emit e = {.tuple = {dst, src, 80, 40000}, .seq = 5, .flags = NJ_TCP_SYN};
    struct rte_mbuf *m = nj_test_mbuf(pool, "data", 4);
    uint16_t type = RTE_ETHER_TYPE_IPV4;

    nj_tcp_prepend(m, &e, &(struct nj_tx_offload){.tcp_csum = false});
    nj_ipv4_prepend(m, &(struct nj_ip_meta){.src = src, .dst = dst}, 6, 1);
    if (inner != UNTAGGED) {
        put_tag(m, (uint16_t)inner, type);
        type = RTE_ETHER_TYPE_VLAN;
    }
    if (outer != UNTAGGED) {
        put_tag(m, (uint16_t)outer, type);
        type = RTE_ETHER_TYPE_VLAN;
    }
    nj_eth_prepend(m, &mac, &peer_mac, type);
    if (stripped != UNTAGGED) {
        m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
        m->vlan_tci = (uint16_t)stripped;
    }
    return m;
}

/* Sentence 120. */
Test(wire_vlan, which_frames_are_ours)
{
    const nj_counter taken = NJ_COUNTERS_MAX, other = NJ_C_drop_vlan, type = NJ_C_drop_eth_type;
    const uint32_t none = UNTAGGED, high = 0xf000; /* priority 7, drop eligible */
    const struct {
        uint32_t stripped, outer, inner;
        nj_counter in_none, in_ours;
    } cases[] = {
        {none, none, none, taken, other},
        {none, 0, none, taken, other},
        {none, high, none, taken, other},
        {none, OURS, none, other, taken},
        {none, high | OURS, none, other, taken},
        {none, 8, none, other, other},
        {none, 0xfff, none, other, other},
        {0, none, none, taken, other},
        {high, none, none, taken, other},
        {OURS, none, none, other, taken},
        {high | OURS, none, none, other, taken},
        {8, none, none, other, other},
        /* two tags are one too many */
        {none, OURS, OURS, other, type},
        {none, 0, 0, type, other},
        {OURS, OURS, none, other, type},
        {0, 0, none, type, other},
    };
    struct rte_mempool *pool = nj_test_pool(1);

    for (unsigned i = 0; i < NJ_ARRAY_LEN(cases); i++)
        for (unsigned with = 0; with < 2; with++) {
            struct nj_iface iface = iface_in(with ? OURS : 0);
            struct rte_mbuf *m = frame(pool, cases[i].stripped, cases[i].outer, cases[i].inner);
            struct nj_packet p;
            nj_packet_parse(&iface, m, &p);
            nj_counter got = p.kind == NJ_PACKET_DROP ? p.drop : taken;
            cr_expect_eq(got, with ? cases[i].in_ours : cases[i].in_none, "case %u, %s: %s", i,
                         with ? "in a VLAN" : "in none",
                         got == taken ? "taken" : nj_counter_info[got].name);
            if (got == taken)
                cr_expect_eq(
                    memcmp(rte_pktmbuf_mtod_offset(m, void *, p.tcp.payload_off), "data", 4), 0);
            rte_pktmbuf_free(m);
        }
    cr_expect(nj_test_pool_full(pool));
}

Test(wire_vlan, cut_tag)
{
    struct rte_mempool *pool = nj_test_pool(1);
    struct nj_iface iface = iface_in(OURS), untagged = iface_in(0);

    for (uint16_t n = 14; n < 18; n++) {
        struct rte_mbuf *m = frame(pool, UNTAGGED, OURS, UNTAGGED);
        struct nj_packet p;
        rte_pktmbuf_trim(m, m->data_len - n);
        nj_packet_parse(&iface, m, &p);
        cr_expect(p.kind == NJ_PACKET_DROP && p.drop == NJ_C_drop_vlan);
        nj_packet_parse(&untagged, m, &p);
        cr_expect(p.kind == NJ_PACKET_DROP && p.drop == NJ_C_drop_eth_type);
        rte_pktmbuf_free(m);
    }
    cr_expect(nj_test_pool_full(pool));
}

/* Sentence 120. */
Test(wire_vlan, emitted)
{
    static const uint8_t tagged[] = {2,    0,    0, 0,    0,    0xbb, 2, 0,   0,   0,  0,
                                     0xaa, 0x81, 0, 0x0f, 0xfe, 8,    6, 'a', 'r', 'p'};
    static const uint8_t plain[] = {2, 0, 0, 0, 0, 0xbb, 2, 0, 0, 0, 0, 0xaa, 8, 6, 'a', 'r', 'p'};
    struct rte_mempool *pool = nj_test_pool(1);
    struct nj_iface in = iface_in(4094), out = iface_in(0);

    struct rte_mbuf *m = nj_test_mbuf(pool, "arp", 3);
    nj_eth_prepend_from_iface(m, &peer_mac, &in, RTE_ETHER_TYPE_ARP);
    cr_assert_eq(m->pkt_len, sizeof tagged);
    cr_expect_eq(memcmp(rte_pktmbuf_mtod(m, void *), tagged, sizeof tagged), 0);
    rte_pktmbuf_free(m);
    m = nj_test_mbuf(pool, "arp", 3);
    nj_eth_prepend_from_iface(m, &peer_mac, &out, RTE_ETHER_TYPE_ARP);
    cr_assert_eq(m->pkt_len, sizeof plain);
    cr_expect_eq(memcmp(rte_pktmbuf_mtod(m, void *), plain, sizeof plain), 0);
    rte_pktmbuf_free(m);
    cr_expect(nj_test_pool_full(pool));
}
