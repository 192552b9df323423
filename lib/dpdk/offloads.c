/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chooses the offloads of a device: checksums (RTE_ETH_RX_OFFLOAD_*, RTE_ETH_TX_OFFLOAD_*) and TCP
 * segmentation (TSO). An offload that the driver does in software is not used.
 */
#include "dpdk/offloads.h"

#include <stdio.h>
#include <string.h>

/* A TSO segment is one IP packet of at most 65,535 bytes before the device splits it. */
#define TSO_BYTES_MAX (UINT16_MAX - 60u - NJ_TCP_HDR_BYTES - NJ_TCP_OPTS_BYTES_MAX)

/* Bounds a TSO segment by the mbufs that one packet may have: one for headers, the rest full. */
static void set_tso_limits(struct nj_tx_offload *o, const struct rte_eth_dev_info *info)
{
    uint32_t n = info->tx_desc_lim.nb_seg_max; /* 0: no limit of the driver */
    n = n == 0 || n > NJ_TSO_MBUFS_MAX ? NJ_TSO_MBUFS_MAX : n;
    uint32_t n_bytes = (n - 1) * RTE_MBUF_DEFAULT_DATAROOM;

    o->tso = n > 1;
    o->tso_mbufs_max = (uint16_t)n;
    o->tso_bytes_max = n_bytes > TSO_BYTES_MAX ? TSO_BYTES_MAX : n_bytes;
}

void nj_offload_choose(struct nj_offload *o, const char *driver,
                       const struct rte_eth_dev_info *info)
{
    const uint64_t rx_wanted = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
    const uint64_t tso_wanted = RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    uint64_t offered = info->tx_offload_capa;

    *o = (struct nj_offload){.rx = 0};
    /* net_tap computes checksums in software and copies each header for that. The stack's own
     * checksums are cheaper: they run over memory that is in the cache. */
    if (strcmp(driver, "net_tap") == 0)
        return;
    o->rx = info->rx_offload_capa & rx_wanted;
    if (!(offered & RTE_ETH_TX_OFFLOAD_TCP_CKSUM))
        return;
    o->stack.tcp_csum = true;
    o->stack.ip_csum = offered & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
    o->tx = offered & (RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM);
    if ((offered & tso_wanted) == tso_wanted)
        set_tso_limits(&o->stack, info);
    if (o->stack.tso)
        o->tx |= tso_wanted;
}

void nj_offload_format(const struct nj_offload *o, char *text, size_t text_bytes)
{
    bool in = o->rx & RTE_ETH_RX_OFFLOAD_TCP_CKSUM, out = o->stack.tcp_csum;
    snprintf(text, text_bytes, "TCP checksums %s%s",
             in && out ? "by the device"
             : in      ? "in by the device, out by software"
             : out     ? "in by software, out by the device"
                       : "by software",
             o->stack.tso ? ", TSO too" : "");
}
