/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs the RSS key and redirection table of a device, and reads both back. The hash is the
 * Toeplitz hash of Microsoft's receive-side scaling.
 */
#include "dpdk/rss.h"

#include <string.h>

#define FUNCTIONS                                                                                  \
    (RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_IPV6 |                          \
     RTE_ETH_RSS_NONFRAG_IPV6_TCP)

#define GROUP RTE_ETH_RETA_GROUP_SIZE /* entries of one struct rte_eth_rss_reta_entry64 */

bool nj_rss_is_offered(const struct rte_eth_dev_info *info, uint32_t n_shards)
{
    bool size_ok = info->reta_size >= GROUP && info->reta_size <= NJ_RETA_MAX &&
                   (info->reta_size & (info->reta_size - 1)) == 0;
    bool key_ok = info->hash_key_size == 0 || (info->hash_key_size >= NJ_RSS_KEY_BYTES &&
                                               info->hash_key_size <= NJ_RSS_DEVICE_KEY_MAX);
    return n_shards > 1 && info->max_rx_queues >= n_shards && size_ok && key_ok &&
           (info->flow_type_rss_offloads & RTE_ETH_RSS_NONFRAG_IPV4_TCP);
}

uint64_t nj_rss_hash_types(const struct rte_eth_dev_info *info)
{
    return FUNCTIONS & info->flow_type_rss_offloads;
}

uint8_t nj_rss_expand_key(const struct rte_eth_dev_info *info, const struct nj_rss_key *key,
                          uint8_t out[NJ_RSS_DEVICE_KEY_MAX])
{
    uint8_t n_bytes = info->hash_key_size ? info->hash_key_size : NJ_RSS_KEY_BYTES;

    for (unsigned i = 0; i < n_bytes; i++)
        out[i] = key->b[i % NJ_RSS_KEY_BYTES];
    return n_bytes;
}

static bool has_key(uint16_t port, const uint8_t *ours)
{
    uint8_t key[NJ_RSS_DEVICE_KEY_MAX] = {0};
    struct rte_eth_rss_conf conf = {.rss_key = key, .rss_key_len = sizeof key};

    bool is =
        rte_eth_dev_rss_hash_conf_get(port, &conf) == 0 && memcmp(key, ours, NJ_RSS_KEY_BYTES) == 0;
    explicit_bzero(key, sizeof key);
    return is;
}

/* Some drivers take the key at configuration, others only by rte_eth_dev_rss_hash_update(). */
static bool write_key(uint16_t port, const struct rte_eth_dev_info *info,
                      const struct nj_rss_key *key)
{
    uint8_t ours[NJ_RSS_DEVICE_KEY_MAX];
    struct rte_eth_rss_conf conf = {.rss_key = ours,
                                    .rss_key_len = nj_rss_expand_key(info, key, ours),
                                    .rss_hf = nj_rss_hash_types(info)};

    bool takes = has_key(port, ours) ||
                 (rte_eth_dev_rss_hash_update(port, &conf) == 0 && has_key(port, ours));
    explicit_bzero(ours, sizeof ours);
    return takes;
}

static bool write_reta(uint16_t port, uint16_t size, uint32_t n_shards)
{
    struct rte_eth_rss_reta_entry64 written[NJ_RETA_MAX / GROUP] = {0};
    struct rte_eth_rss_reta_entry64 kept[NJ_RETA_MAX / GROUP] = {0};

    for (unsigned i = 0; i < size; i++) {
        written[i / GROUP].mask = kept[i / GROUP].mask = ~0ull;
        written[i / GROUP].reta[i % GROUP] = (uint16_t)(i % n_shards);
    }
    if (rte_eth_dev_rss_reta_update(port, written, size) != 0 ||
        rte_eth_dev_rss_reta_query(port, kept, size) != 0)
        return false;
    for (unsigned g = 0; g < size / GROUP; g++)
        if (memcmp(written[g].reta, kept[g].reta, sizeof written[g].reta) != 0)
            return false;
    return true;
}

bool nj_rss_write_and_verify(uint16_t port, const struct rte_eth_dev_info *info,
                             const struct nj_rss_key *key, uint32_t n_shards)
{
    return write_key(port, info, key) && write_reta(port, info->reta_size, n_shards);
}
