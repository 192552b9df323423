/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/offload.h"

#include <stdio.h>
#include <string.h>

#include "base/attr.h"

/* A segment that is to be cut is one IP packet of at most 65,535 bytes until then. */
#define TSO_BYTES_MAX (UINT16_MAX - 60u - NJ_TCP_HDR_BYTES - NJ_TCP_OPTS_BYTES_MAX)

/* Drivers without a device: their own software would do it, over memory that ours has in its cache.
 * net_tap copies each header for it, too. */
static const char *const pretenders[] = {"net_tap"};

static bool pretends(const char *driver)
{
    for (size_t i = 0; i < NJ_ARRAY_LEN(pretenders); i++)
        if (strcmp(driver, pretenders[i]) == 0)
            return true;
    return false;
}

/* Payload of a segment that fits the mbufs one packet may have: the header's, and full ones. */
static uint32_t tso_bytes_max(const struct rte_eth_dev_info *info)
{
    uint32_t n_segs = info->tx_desc_lim.nb_seg_max;
    uint32_t n_bytes = n_segs > 1 ? (n_segs - 1) * RTE_MBUF_DEFAULT_DATAROOM : 0;
    return n_bytes == 0 || n_bytes > TSO_BYTES_MAX ? TSO_BYTES_MAX : n_bytes;
}

void nj_offload_choose(struct nj_offload *o, const char *driver,
                       const struct rte_eth_dev_info *info)
{
    const uint64_t rx_wanted = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
    const uint64_t tso_wanted = RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    uint64_t offered = info->tx_offload_capa;

    *o = (struct nj_offload){.rx = 0};
    if (pretends(driver))
        return;
    o->rx = info->rx_offload_capa & rx_wanted;
    if (!(offered & RTE_ETH_TX_OFFLOAD_TCP_CKSUM))
        return;
    o->stack.tcp_csum = true;
    o->stack.ip_csum = offered & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
    o->tx = offered & (RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM);
    if ((offered & tso_wanted) == tso_wanted) {
        o->stack.tso = true;
        o->stack.tso_bytes_max = tso_bytes_max(info);
        o->tx |= tso_wanted;
    }
}

void nj_offload_tell(const struct nj_offload *o, char *text, size_t text_bytes)
{
    bool in = o->rx & RTE_ETH_RX_OFFLOAD_TCP_CKSUM, out = o->stack.tcp_csum;
    snprintf(text, text_bytes, "TCP checksums %s%s",
             in && out ? "by the device"
             : in      ? "in by the device, out by software"
             : out     ? "in by software, out by the device"
                       : "by software",
             o->stack.tso ? ", TSO offered" : "");
}
