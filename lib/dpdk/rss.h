/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive-side scaling (RSS): checks a device's capabilities, programs key and table, and verifies
 * both. */
#pragma once

#include <rte_ethdev.h>

#include "net/rss_flow_owner.h"

/* Longest key of a device in bytes; i40e, ice and iavf take 52. */
#define NJ_RSS_DEVICE_KEY_MAX 64u

/* Does the device report RSS of TCP flows over `n_shards` (> 1) queues with a configurable key and
 * table? Pure. */
bool nj_rss_is_offered(const struct rte_eth_dev_info *info, uint32_t n_shards);

/* The wanted hash types (RTE_ETH_RSS_*) that the device supports. Pure. */
uint64_t nj_rss_hash_types(const struct rte_eth_dev_info *info);

/* Writes the key in the device's length to `out` and returns that length in bytes. The longest hash
 * input, TCP over IPv6 (36 bytes), uses 40 bytes of the key; the bytes after those repeat the key.
 * `out` is secret: the caller clears it with explicit_bzero(). Pure. */
uint8_t nj_rss_expand_key(const struct rte_eth_dev_info *info, const struct nj_rss_key *key,
                          uint8_t out[NJ_RSS_DEVICE_KEY_MAX]);

/* Writes the key, unless the started port has it, and a table that maps entry i to queue
 * i mod n_shards. Reads both back. False: the device did not keep one of them. */
bool nj_rss_write_and_verify(uint16_t port, const struct rte_eth_dev_info *info,
                             const struct nj_rss_key *key, uint32_t n_shards);
