/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments whose checksums a device completes: the mbuf's flags and lengths. The device's checksum,
 * by DPDK's rules, equals that of the software. */
#include <criterion/criterion.h>

#include <arpa/inet.h>
#include <string.h>

#include <rte_ip.h>
#include <rte_tcp.h>

#include "support/mbuf_env.h"
#include "wire/csum.h"
#include "wire/emit.h"

#define FLAGS                                                                                      \
    (RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_TCP_CKSUM | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_TCP_SEG)

static const struct rte_ether_addr peer_mac = {{2, 0, 0, 0, 0, 0xbb}};

static struct nj_tcp_emit segment(void)
{
    return (struct nj_tcp_emit){.tuple = {nj_addr_from_v4(htonl(0x0a000002)),
                                          nj_addr_from_v4(htonl(0x0a000001)), 40000, 80},
                                .seq = 0xfffffff0,
                                .ack = 77,
                                .wnd = 1000,
                                .flags = NJ_TCP_ACK | NJ_TCP_PSH,
                                .opts = {.has_ts = true, .ts_val = 5, .ts_ecr = 6}};
}

/* A whole frame with `n` bytes of payload, in two mbufs. */
static struct rte_mbuf *frame(struct rte_mempool *pool, uint32_t n, const struct nj_tcp_emit *e,
                              const struct nj_tx_offload *tx, uint16_t vlan)
{
    static const uint8_t bytes[1000] = {1, 2, 3, [200] = 0xff, [501] = 0x80, [999] = 9};
    struct nj_iface iface = {.mac = {{2, 0, 0, 0, 0, 0xaa}}, .vlan = vlan};
    struct rte_mbuf *m = nj_test_mbuf(pool, bytes, n / 3);

    rte_pktmbuf_chain(m, nj_test_mbuf(pool, bytes + n / 3, n - n / 3));
    nj_tcp_prepend(m, e, tx);
    nj_ipv4_prepend(m, &(struct nj_ip_meta){.src = e->tuple.local, .dst = e->tuple.remote}, 6, 1);
    nj_eth_prepend_from_iface(m, &peer_mac, &iface, RTE_ETHER_TYPE_IPV4);
    return m;
}

static void headers(const struct rte_mbuf *m, uint32_t l2, struct rte_ipv4_hdr *ip,
                    struct rte_tcp_hdr *tcp)
{
    memcpy(ip, rte_pktmbuf_mtod_offset(m, void *, l2), sizeof *ip);
    memcpy(tcp, rte_pktmbuf_mtod_offset(m, void *, l2 + sizeof *ip), sizeof *tcp);
}

Test(wire_offload, device_and_software_agree)
{
    struct rte_mempool *pool = nj_test_pool(4);
    struct nj_tcp_emit e = segment();

    for (uint32_t n = 0; n <= 1000; n += 37) {
        for (uint32_t vlan = 0; vlan < 10; vlan += 9) {
            struct nj_tx_offload off = {.tcp_csum = true, .ip_csum = n % 2},
                                 none = {.tcp_csum = false};
            struct rte_mbuf *soft = frame(pool, n, &e, &none, (uint16_t)vlan);
            struct rte_mbuf *hard = frame(pool, n, &e, &off, (uint16_t)vlan);
            struct rte_ipv4_hdr ip_soft, ip_hard;
            struct rte_tcp_hdr tcp_soft, tcp_hard;
            uint32_t l2 = vlan ? 18 : 14;

            headers(soft, l2, &ip_soft, &tcp_soft);
            headers(hard, l2, &ip_hard, &tcp_hard);
            cr_expect_eq(soft->ol_flags & FLAGS, 0);
            cr_expect_eq(hard->ol_flags & FLAGS, RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_TCP_CKSUM |
                                                     (n % 2 ? RTE_MBUF_F_TX_IP_CKSUM : 0));
            cr_expect_eq(hard->l2_len, l2);
            cr_expect_eq(hard->l3_len, 20);
            cr_expect_eq(hard->l4_len, 32);
            cr_expect_eq(hard->tso_segsz, 0);
            cr_expect_eq(tcp_hard.cksum, rte_ipv4_phdr_cksum(&ip_hard, hard->ol_flags));

            /* as the device does: the sum from the TCP header to the end is stored in the field */
            rte_pktmbuf_linearize(hard);
            uint16_t sum = (uint16_t)~nj__csum_fold(nj__csum_add_bytes(
                0, rte_pktmbuf_mtod_offset(hard, void *, l2 + 20), hard->pkt_len - l2 - 20));
            cr_expect_eq(sum, tcp_soft.cksum, "%u bytes", n);
            cr_expect_eq(ip_hard.hdr_checksum, n % 2 ? 0 : ip_soft.hdr_checksum);
            rte_pktmbuf_free(soft);
            rte_pktmbuf_free(hard);
        }
    }
    cr_expect(nj_test_pool_full(pool));
}

/* The device adds the length of each piece to the sum. */
Test(wire_offload, segmentation)
{
    struct rte_mempool *pool = nj_test_pool(2);
    struct nj_tcp_emit e = segment();
    struct nj_tx_offload off = {
        .tcp_csum = true, .ip_csum = true, .tso = true, .tso_bytes_max = 1000};
    struct rte_ipv4_hdr ip;
    struct rte_tcp_hdr tcp;

    e.tso_mss = 300;
    struct rte_mbuf *m = frame(pool, 1000, &e, &off, 0);
    headers(m, 14, &ip, &tcp);
    cr_expect_eq(m->ol_flags & FLAGS, FLAGS);
    cr_expect_eq(m->tso_segsz, 300);
    cr_expect_eq(m->l4_len, 32);
    cr_expect_eq(tcp.cksum, rte_ipv4_phdr_cksum(&ip, m->ol_flags));
    cr_expect_eq(ip.hdr_checksum, 0);
    cr_expect_eq(ntohs(ip.total_length), 1052);
    rte_pktmbuf_free(m);
    cr_expect(nj_test_pool_full(pool));
}
