/* SPDX-License-Identifier: BSD-3-Clause */
/* Which devices are trusted with receive-side scaling, tested against a double of the device. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "dpdk/rss.h"

/* --- the device, which replaces DPDK's functions --------------------------------------- */

static struct {
    uint8_t key_bytes; /* it accepts no other length */
    uint16_t n_entries;
    bool keeps_first_key; /* accepts a new key and keeps the old one */
    bool forgets_table;   /* accepts a table and keeps zeros */
    uint8_t key[NJ_RSS_DEVICE_KEY_MAX];
    uint16_t table[NJ_RETA_MAX];
} device;

int rte_eth_dev_rss_hash_conf_get(uint16_t port, struct rte_eth_rss_conf *conf)
{
    if (conf->rss_key_len < device.key_bytes)
        return -EINVAL;
    memcpy(conf->rss_key, device.key, device.key_bytes);
    conf->rss_key_len = device.key_bytes;
    return 0;
}

int rte_eth_dev_rss_hash_update(uint16_t port, struct rte_eth_rss_conf *conf)
{
    if (conf->rss_key_len != device.key_bytes)
        return -EINVAL;
    if (!device.keeps_first_key)
        memcpy(device.key, conf->rss_key, device.key_bytes);
    return 0;
}

int rte_eth_dev_rss_reta_update(uint16_t port, struct rte_eth_rss_reta_entry64 *conf, uint16_t size)
{
    if (size != device.n_entries)
        return -EINVAL;
    for (unsigned i = 0; i < size && !device.forgets_table; i++)
        if (conf[i / 64].mask >> (i % 64) & 1)
            device.table[i] = conf[i / 64].reta[i % 64];
    return 0;
}

int rte_eth_dev_rss_reta_query(uint16_t port, struct rte_eth_rss_reta_entry64 *conf, uint16_t size)
{
    if (size != device.n_entries)
        return -EINVAL;
    for (unsigned i = 0; i < size; i++)
        conf[i / 64].reta[i % 64] = device.table[i];
    return 0;
}

/* --- */

static struct nj_rss_key our_key(void)
{
    struct nj_rss_key k;

    for (unsigned i = 0; i < NJ_RSS_KEY_BYTES; i++)
        k.b[i] = (uint8_t)(i + 1);
    return k;
}

static struct rte_eth_dev_info info_of(uint8_t key_bytes, uint16_t n_entries)
{
    memset(&device, 0, sizeof device);
    device.key_bytes = key_bytes ? key_bytes : NJ_RSS_KEY_BYTES;
    device.n_entries = n_entries;
    return (struct rte_eth_dev_info){.hash_key_size = key_bytes,
                                     .reta_size = n_entries,
                                     .max_rx_queues = 16,
                                     .flow_type_rss_offloads = RTE_ETH_RSS_NONFRAG_IPV4_TCP |
                                                               RTE_ETH_RSS_NONFRAG_IPV6_TCP |
                                                               RTE_ETH_RSS_NONFRAG_IPV4_UDP};
}

/* Capabilities that drivers of DPDK 22.11 and 24.11 report. */
static const struct {
    const char *driver;
    uint8_t key_bytes;
    uint16_t n_entries;
    bool good;
} rows[] = {
    {"igb, ena, virtio", 40, 128, true},
    {"ixgbe of the X550", 40, 512, true},
    {"i40e", 52, 512, true},
    {"i40e VF, iavf", 52, 64, true},
    {"ice", 52, 2048, true},
    {"a driver that does not report its key", 0, 128, true},
    {"tap, af_packet", 0, 0, false},
    {"a key too short for IPv6", 16, 128, false},
    {"a key longer than any that is known", 65, 128, false},
    {"a table too large", 40, 4096, false},
    {"a table that is no power of two", 40, 192, false},
    {"a table of less than one group", 40, 32, false},
};

Test(dpdk_rss, devices)
{
    const struct nj_rss_key key = our_key();

    for (size_t i = 0; i < NJ_ARRAY_LEN(rows); i++) {
        struct rte_eth_dev_info info = info_of(rows[i].key_bytes, rows[i].n_entries);
        cr_expect_eq(nj_rss_is_offered(&info, 3), rows[i].good, "%s", rows[i].driver);
        cr_expect(!nj_rss_is_offered(&info, 1), "%s: one shard needs none", rows[i].driver);
        if (!rows[i].good)
            continue;
        cr_expect(nj_rss_write_and_verify(0, &info, &key, 3), "%s", rows[i].driver);
        cr_expect_eq(memcmp(device.key, key.b, NJ_RSS_KEY_BYTES), 0, "%s", rows[i].driver);
        for (unsigned k = 0; k < rows[i].n_entries; k++)
            cr_expect_eq(device.table[k], k % 3, "%s", rows[i].driver);
    }
}

Test(dpdk_rss, too_few_queues_or_no_tcp)
{
    struct rte_eth_dev_info info = info_of(40, 128);

    cr_expect(nj_rss_is_offered(&info, 16) && !nj_rss_is_offered(&info, 17));
    info.flow_type_rss_offloads = RTE_ETH_RSS_IPV4;
    cr_expect(!nj_rss_is_offered(&info, 2));
}

Test(dpdk_rss, key_as_long_as_the_device_wants_it)
{
    struct rte_eth_dev_info info = info_of(52, 512);
    const struct nj_rss_key key = our_key();
    uint8_t out[NJ_RSS_DEVICE_KEY_MAX];

    cr_expect_eq(nj_rss_expand_key(&info, &key, out), 52);
    cr_expect_eq(memcmp(out, key.b, 40), 0);
    cr_expect_eq(memcmp(out + 40, key.b, 12), 0);
    info.hash_key_size = 0;
    cr_expect_eq(nj_rss_expand_key(&info, &key, out), 40);
}

Test(dpdk_rss, only_what_we_need_is_hashed)
{
    struct rte_eth_dev_info info = info_of(40, 128);

    cr_expect_eq(nj_rss_hash_types(&info),
                 RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV6_TCP);
}

Test(dpdk_rss, devices_that_do_not_do_as_told)
{
    const struct nj_rss_key key = our_key();
    struct rte_eth_dev_info info = info_of(40, 128);

    device.keeps_first_key = true;
    cr_expect(!nj_rss_write_and_verify(0, &info, &key, 2));
    info = info_of(40, 128);
    device.forgets_table = true;
    cr_expect(!nj_rss_write_and_verify(0, &info, &key, 2));
    info = info_of(40, 128);
    device.key_bytes = 52; /* it reports 40 */
    cr_expect(!nj_rss_write_and_verify(0, &info, &key, 2));
}
