/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive-side scaling of the device: which devices can do it, and whether one did as it was told.
 */
#ifndef NJ_DPDK_RSS_H
#define NJ_DPDK_RSS_H

#include <rte_ethdev.h>

#include "net/flow_steering.h"

/* Of the key a device takes; that of i40e, ice and iavf has 52. */
#define NJ_RSS_DEVICE_KEY_MAX 64u

/* Does the device report that it can spread TCP flows over `n_shards` (> 1) by a key and a table
 * that we choose? Pure. */
bool nj_rss_promised(const struct rte_eth_dev_info *info, uint32_t n_shards);

/* What the device hashes of what we ask for: RTE_ETH_RSS_*. Pure. */
uint64_t nj_rss_functions(const struct rte_eth_dev_info *info);

/* The key as the device takes it, in `out`; returns its length in bytes. The hash of TCP over IPv6,
 * the longest input (36 bytes), takes 40 bytes of a key; bytes behind those do not matter to it,
 * and are those of the beginning again. `out` is secret: explicit_bzero() it. Pure. */
uint8_t nj_rss_device_key(const struct rte_eth_dev_info *info, const struct nj_rss_key *key,
                          uint8_t out[NJ_RSS_DEVICE_KEY_MAX]);

/* Give the started port the key, unless it has it, and a table in which entry i belongs to queue
 * i mod n_shards; read both back and compare. False: the device did not keep one of them. */
bool nj_rss_works(uint16_t port, const struct rte_eth_dev_info *info, const struct nj_rss_key *key,
                  uint32_t n_shards);

#endif
