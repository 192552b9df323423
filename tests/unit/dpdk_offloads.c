/* SPDX-License-Identifier: BSD-3-Clause */
/* Which offloads of a device are used. */
#include <criterion/criterion.h>

#include "dpdk/offloads.h"

#define RX_BOTH (RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM)
#define TX_BOTH (RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM)
#define TX_TSO  (RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_MULTI_SEGS)

static struct nj_offload choose(const char *driver, uint64_t rx, uint64_t tx, uint16_t segs_max)
{
    struct rte_eth_dev_info info = {
        .rx_offload_capa = rx, .tx_offload_capa = tx, .tx_desc_lim.nb_seg_max = segs_max};
    struct nj_offload o;
    memset(&o, 0xff, sizeof o);
    nj_offload_choose(&o, driver, &info);
    return o;
}

static void expect_told(const struct nj_offload *o, const char *what)
{
    char text[96];
    nj_offload_format(o, text, sizeof text);
    cr_expect_str_eq(text, what);
}

Test(dpdk_offloads, a_nic)
{
    struct nj_offload o = choose("net_ice", ~0ull, ~0ull, 0);
    cr_expect_eq(o.rx, RX_BOTH);
    cr_expect_eq(o.tx, TX_BOTH | TX_TSO);
    cr_expect(o.stack.tcp_csum && o.stack.ip_csum && o.stack.tso);
    cr_expect_eq(o.stack.tso_bytes_max, 65535 - 60 - 60);
    cr_expect_eq(o.stack.tso_mbufs_max, 40);
    expect_told(&o, "TCP checksums by the device, TSO too");
}

Test(dpdk_offloads, virtio)
{
    struct nj_offload o = choose("net_virtio_user", RTE_ETH_RX_OFFLOAD_TCP_CKSUM,
                                 RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_MULTI_SEGS, 0);
    cr_expect_eq(o.rx, RTE_ETH_RX_OFFLOAD_TCP_CKSUM);
    cr_expect_eq(o.tx, RTE_ETH_TX_OFFLOAD_TCP_CKSUM);
    cr_expect(o.stack.tcp_csum && !o.stack.ip_csum && !o.stack.tso);
    expect_told(&o, "TCP checksums by the device");
}

Test(dpdk_offloads, less)
{
    struct nj_offload o = choose("net_x", RTE_ETH_RX_OFFLOAD_TCP_CKSUM, 0, 0);
    cr_expect(!o.stack.tcp_csum && o.tx == 0);
    expect_told(&o, "TCP checksums in by the device, out by software");
    o = choose("net_x", 0, TX_BOTH, 0);
    cr_expect(o.stack.tcp_csum && o.rx == 0);
    expect_told(&o, "TCP checksums in by software, out by the device");
    o = choose("net_x", 0, TX_TSO | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM, 0);
    cr_expect(o.tx == 0 && !o.stack.tso && !o.stack.ip_csum,
              "useless without the checksum offload");
    expect_told(&o, "TCP checksums by software");
    o = choose("net_x", 0, TX_BOTH | RTE_ETH_TX_OFFLOAD_TCP_TSO, 0);
    cr_expect(!o.stack.tso, "one mbuf is too small to be cut");
    o = choose("net_x", 0, TX_BOTH | TX_TSO, 8);
    cr_expect_eq(o.stack.tso_bytes_max, 7 * 2048);
    cr_expect_eq(o.stack.tso_mbufs_max, 8);
    o = choose("net_x", 0, TX_BOTH | TX_TSO, 1);
    cr_expect(!o.stack.tso && o.tx == TX_BOTH, "it reports chained mbufs, and then refuses them");
}

Test(dpdk_offloads, software_in_disguise)
{
    struct nj_offload o = choose("net_tap", ~0ull, ~0ull, 0);
    cr_expect(o.rx == 0 && o.tx == 0 && !o.stack.tcp_csum && !o.stack.tso);
}
