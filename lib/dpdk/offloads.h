/* SPDX-License-Identifier: BSD-3-Clause */
/* Which work a device does for the stack: what it offers, less what it offers without need. */
#ifndef NJ_DPDK_OFFLOADS_H
#define NJ_DPDK_OFFLOADS_H

#include <rte_ethdev.h>

#include "wire/emit.h"

struct nj_offload {
    uint64_t rx, tx;            /* RTE_ETH_RX_OFFLOAD_*, RTE_ETH_TX_OFFLOAD_*: to be configured */
    struct nj_tx_offload stack; /* the same for those who make packets */
};

/* Choose from what the device says of itself. Checksums of received packets are believed where the
 * mbuf tells that they were checked, in whatever way they came to be. */
void nj_offload_choose(struct nj_offload *o, const char *driver,
                       const struct rte_eth_dev_info *info);

/* One line about it. */
void nj_offload_tell(const struct nj_offload *o, char *text, size_t text_bytes);

#endif
