/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk/port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ip_frag.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

#include "base/fail.h"
#include "dpdk/af_packet.h"
#include "dpdk/eal.h"
#include "dpdk/offload.h"
#include "dpdk/quiet.h"
#include "dpdk/rss.h"
#include "shard/frag.h"
#include "tcp/mbuf_priv.h"

#define RX_DESCRIPTORS 1024u
#define TX_DESCRIPTORS 1024u
#define POOL_CACHE     256u
/* Receive: the ring, what connections hold out of order, and what is in rings between shards.
 * Transmit: the ring and the send queues, where a small answer has an mbuf until it is
 * acknowledged: at 400,000 a second and an ACK that is 40 ms late, these are 16,000. 16 Ki mbufs
 * are 38 MiB. */
#define RX_MBUFS       16383u
#define TX_MBUFS       32767u

static int choose(struct nj_dpdk_port *p, int id, char *why, size_t n)
{
    uint16_t count = rte_eth_dev_count_avail();

    if (count == 0 && *nj_eal_complaint())
        return nj_fail(why, n, "no Ethernet port: DPDK: %s (NJ_EAL_VERBOSE=1 shows all it said)",
                       nj_eal_complaint());
    if (count == 0)
        return nj_fail(why, n,
                       "no Ethernet port: name one before --, e.g. --vdev=net_tap0,iface=nj0 "
                       "or -a PCI-ADDRESS (NJ_EAL_VERBOSE=1 shows what EAL said)");
    if (id < 0 && count > 1)
        return nj_fail(why, n, "%u Ethernet ports found: choose one with --port 0..%u", count,
                       count - 1);
    p->id = id < 0 ? rte_eth_find_next(0) : (uint16_t)id;
    if (!rte_eth_dev_is_valid_port(p->id))
        return nj_fail(why, n, "there is no port %u", p->id);
    return 0;
}

static uint16_t least(uint32_t a, uint32_t b)
{
    return (uint16_t)(a < b ? a : b);
}

/* One pool per user, so that a slow reader on one side never starves the other. */
static struct rte_mempool *make_pool(const char *kind, unsigned i, uint32_t n_mbufs, int socket)
{
    char name[RTE_MEMPOOL_NAMESIZE];
    snprintf(name, sizeof name, "nj_%s%u", kind, i);
    return rte_pktmbuf_pool_create(name, n_mbufs, POOL_CACHE, NJ_MBUF_PRIV_BYTES,
                                   RTE_MBUF_DEFAULT_BUF_SIZE, socket);
}

static int make_pools(struct nj_dpdk_port *p, uint32_t n_shards, char *why, size_t n)
{
    /* All shards together leave half of a pool to its device, also if all they hold is from one. */
    p->held_max = RX_MBUFS / 2 / n_shards;
    int socket = rte_eth_dev_socket_id(p->id);

    for (unsigned i = 0; i < n_shards; i++) {
        if (i < p->n_rxq && !(p->rx_pool[i] = make_pool("rx", i, RX_MBUFS, socket)))
            break;
        if (!(p->tx_pool[i] = make_pool("tx", i, TX_MBUFS, socket)))
            break;
    }
    if (!p->tx_pool[n_shards - 1])
        return nj_fail(why, n,
                       "not enough memory for packet buffers (%u MiB are needed for %u lcores): "
                       "%s; give EAL more with -m or hugepages",
                       n_shards * NJ_LCORE_EAL_MIB, n_shards, rte_strerror(rte_errno));
    return 0;
}

static int make_frag_tables(struct nj_dpdk_port *p, uint32_t n_shards, char *why, size_t n)
{
    int socket = rte_eth_dev_socket_id(p->id);
    struct nj_quiet quiet;
    uint32_t n_made = 0;

    nj_quiet_begin(&quiet); /* it tells how large they are */
    while (n_made < n_shards &&
           (p->frags[n_made] = rte_ip_frag_table_create(NJ_FRAG_BUCKETS, NJ_FRAG_BUCKET_ENTRIES,
                                                        NJ_FRAG_PACKETS_MAX, NJ_FRAG_LIFE, socket)))
        n_made++;
    nj_quiet_end(&quiet, NULL, 0);
    return n_made == n_shards ? 0 : nj_fail(why, n, "not enough memory for IP fragments");
}

static int configure(struct nj_dpdk_port *p, const struct rte_eth_dev_info *info, bool rss,
                     const struct nj_offload *off, char *why, size_t n)
{
    struct rte_eth_conf conf = {.rxmode.offloads = off->rx, .txmode.offloads = off->tx};
    uint8_t key[NJ_RSS_DEVICE_KEY_MAX];

    if (rss) {
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_key = key;
        conf.rx_adv_conf.rss_conf.rss_key_len = nj_rss_device_key(info, &p->rss_key, key);
        conf.rx_adv_conf.rss_conf.rss_hf = nj_rss_functions(info);
    }
    int rc = rte_eth_dev_configure(p->id, p->n_rxq, p->n_txq, &conf);
    explicit_bzero(key, sizeof key);
    if (rc != 0)
        return nj_fail(why, n, "%s: the device refused %u receive and %u transmit queues: %s",
                       p->name, p->n_rxq, p->n_txq, rte_strerror(-rc));
    return 0;
}

static int start(struct nj_dpdk_port *p, char *why, size_t n)
{
    uint16_t n_rxd = RX_DESCRIPTORS, n_txd = TX_DESCRIPTORS;
    int socket = rte_eth_dev_socket_id(p->id), rc = 0;
    char cause[256] = "";
    struct nj_quiet quiet;

    nj_quiet_begin(&quiet);
    rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &n_rxd, &n_txd);
    for (uint16_t q = 0; rc == 0 && q < p->n_rxq; q++)
        rc = rte_eth_rx_queue_setup(p->id, q, n_rxd, (unsigned)socket, NULL, p->rx_pool[q]);
    for (uint16_t q = 0; rc == 0 && q < p->n_txq; q++)
        rc = rte_eth_tx_queue_setup(p->id, q, n_txd, (unsigned)socket, NULL);
    if (rc == 0)
        rc = rte_eth_dev_start(p->id);
    nj_quiet_end(&quiet, cause, sizeof cause);
    if (rc != 0)
        return nj_fail(why, n, "%s: the device does not start: %s", p->name,
                       cause[0] ? cause : rte_strerror(-rc));
    p->started = true;
    if (strcmp(p->driver, "net_af_packet") == 0)
        nj_af_packet_deepen();
    return 0;
}

/* Settle how packets find their shard, and say it. */
static void settle_spread(struct nj_dpdk_port *p, const struct rte_eth_dev_info *info, bool rss,
                          uint32_t n_shards)
{
    p->reta_size = 128;
    if (n_shards == 1) {
        p->steering = NJ_STEER_NONE;
        snprintf(p->spread, sizeof p->spread, "one shard takes every packet");
    } else if (rss && nj_rss_works(p->id, info, &p->rss_key, n_shards)) {
        p->steering = NJ_STEER_MISS;
        p->reta_size = info->reta_size;
        snprintf(p->spread, sizeof p->spread,
                 "RSS of the device, key and %u-entry table read back; misplaced flows are steered",
                 p->reta_size);
    } else {
        p->steering = NJ_STEER_ALWAYS;
        snprintf(p->spread, sizeof p->spread,
                 "Toeplitz steering through rings (%s), %u receive queue%s polled",
                 rss ? "the device did not keep its RSS key or table"
                     : "the device has no usable RSS",
                 p->n_rxq, p->n_rxq == 1 ? "" : "s");
    }
}

/* Queues of each direction that work, where the driver says more. Lcores without a queue are fed by
 * others.
 *
 * net_tap announces all its queues in one message with room for RTE_MP_MAX_FD_NUM descriptors, and
 * in DPDK 22.11 writes past the end of it with more. net_e1000_em says two for all of its chips:
 * the older ones (82540, 82545, 82546) have one, and what goes to the second one never leaves. */
static uint32_t queues_max(const struct rte_eth_dev_info *info)
{
    if (strcmp(info->driver_name, "net_tap") == 0)
        return RTE_MP_MAX_FD_NUM / 2;
    return strcmp(info->driver_name, "net_e1000_em") == 0 ? 1 : NJ_SHARDS_MAX;
}

int nj_dpdk_port_open(struct nj_dpdk_port *p, int id, uint32_t n_shards,
                      const struct nj_rss_key *rss_key, bool offload, char *why, size_t n)
{
    struct rte_eth_dev_info info;
    struct nj_offload off = {.rx = 0};

    memset(p, 0, sizeof *p);
    p->id = RTE_MAX_ETHPORTS;
    p->rss_key = *rss_key;
    if (choose(p, id, why, n) != 0)
        return -1;
    int rc = rte_eth_dev_info_get(p->id, &info);
    if (rc != 0)
        return nj_fail(why, n, "port %u tells nothing about itself: %s", p->id, rte_strerror(-rc));
    rte_eth_dev_get_name_by_port(p->id, p->name);
    p->node = rte_eth_dev_socket_id(p->id);
    snprintf(p->driver, sizeof p->driver, "%s", info.driver_name);
    uint32_t n_max = queues_max(&info);
    p->n_rxq = least(n_shards < n_max ? n_shards : n_max, info.max_rx_queues);
    p->n_txq = least(n_shards < n_max ? n_shards : n_max, info.max_tx_queues);

    bool rss = nj_rss_promised(&info, n_shards);
    if (offload)
        nj_offload_choose(&off, p->driver, &info);
    p->tx = off.stack;
    nj_offload_tell(&off, p->offloads, sizeof p->offloads);
    if (configure(p, &info, rss, &off, why, n) != 0 || make_pools(p, n_shards, why, n) != 0 ||
        make_frag_tables(p, n_shards, why, n) != 0)
        return -1;
    rte_eth_dev_get_mtu(p->id, &p->mtu);
    p->mtu = least(p->mtu, RTE_ETHER_MTU);
    if (start(p, why, n) != 0)
        return -1;
    rte_eth_macaddr_get(p->id, &p->mac);
    settle_spread(p, &info, rss, n_shards);
    return 0;
}

bool nj_dpdk_port_hear_groups(const struct nj_dpdk_port *p)
{
    if (rte_eth_allmulticast_enable(p->id) == 0)
        return true;
    int rc = rte_eth_promiscuous_enable(p->id);
    return rc == 0 || rc == -ENOTSUP;
}

void nj_dpdk_port_close(struct nj_dpdk_port *p)
{
    if (p->id < RTE_MAX_ETHPORTS && rte_eth_dev_is_valid_port(p->id)) {
        if (p->started)
            rte_eth_dev_stop(p->id);
        rte_eth_dev_close(p->id);
    }
    for (unsigned i = 0; i < NJ_SHARDS_MAX; i++) {
        if (p->frags[i])
            rte_ip_frag_table_destroy(p->frags[i]);
        rte_mempool_free(p->rx_pool[i]);
        rte_mempool_free(p->tx_pool[i]);
    }
    memset(p, 0, sizeof *p);
    p->id = RTE_MAX_ETHPORTS;
}
