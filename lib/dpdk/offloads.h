/* SPDX-License-Identifier: BSD-3-Clause */
/* The offloads that are used of a device: those it offers, without those its driver emulates. */
#pragma once

#include <rte_ethdev.h>

#include "wire/emit.h"

struct nj_offload {
    uint64_t rx, tx;            /* RTE_ETH_RX_OFFLOAD_*, RTE_ETH_TX_OFFLOAD_* to configure */
    struct nj_tx_offload stack; /* the same, as the packet emitters take it */
};

/* Chooses offloads by the driver's name and the capabilities of the device. A received packet's
 * checksum is trusted wherever its mbuf is flagged as checked, independent of this choice. Pure. */
void nj_offload_choose(struct nj_offload *o, const char *driver,
                       const struct rte_eth_dev_info *info);

/* Formats the choice as one line for the log. */
void nj_offload_format(const struct nj_offload *o, char *text, size_t text_bytes);
