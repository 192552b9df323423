/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens, describes and closes an Ethernet port (rte_ethdev.h): queues, mempools, MTU and RSS.
 * Bonds (net_bonding) and drivers with known faults are handled here.
 */
#include "dpdk/port.h"

#include <errno.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ip_frag.h>
#include <rte_mbuf.h>

#include "base/set_error.h"
#include "dpdk/af_packet_sockets.h"
#include "dpdk/compat.h"
#include "dpdk/eal.h"
#include "dpdk/eal_output_capture.h"
#include "dpdk/offloads.h"
#include "dpdk/rss.h"
#include "net/ip4_reassembly.h"
#include "tcp/mbuf_priv.h"

#define POOL_CACHE     256u
/* Receive: the ring, segments held out of order, and packets in rings between shards.
 * Transmit: the ring and the send queues. A small response holds an mbuf until it is acknowledged:
 * 400,000 responses a second with ACKs after 40 ms hold 16,000. 16 Ki mbufs take 38 MiB. A packet
 * is received into one mbuf, so with jumbo frames mbufs are larger, and half as many. */
#define RX_MBUFS       16383u
#define TX_MBUFS       32767u
#define RX_MBUFS_JUMBO 8191u
#define TX_MBUFS_JUMBO 16383u
#define BONDING        "net_bonding"
#define TAP            "net_tap"
/* Frame overhead: header, two VLAN tags, and the FCS where the device keeps it. */
#define FRAME_BYTES    (RTE_ETHER_HDR_LEN + 2u * 4u + RTE_ETHER_CRC_LEN)

static bool has_driver(uint16_t id, const char *driver)
{
    struct rte_eth_dev_info info;
    return rte_eth_dev_info_get(id, &info) == 0 && strcmp(info.driver_name, driver) == 0;
}

/* Is the port a member of a bond? Valid after the bond has been configured. */
static bool is_member(uint16_t id)
{
    struct rte_eth_dev_info info;
    return rte_eth_dev_info_get(id, &info) == 0 && (*info.dev_flags & NJ_ETH_DEV_BOND_MEMBER);
}

static uint32_t list_members(uint16_t member[RTE_MAX_ETHPORTS])
{
    uint32_t n = 0;
    uint16_t id;

    RTE_ETH_FOREACH_DEV(id)
    {
        if (is_member(id))
            member[n++] = id;
    }
    return n;
}

/* Does the port, or a member of its bond, use this driver? */
static bool uses_driver(const struct nj_dpdk_port *p, const char *driver)
{
    uint16_t member[RTE_MAX_ETHPORTS];
    uint32_t n_members = p->bond ? list_members(member) : 0;
    bool has = has_driver(p->id, driver);

    for (uint32_t i = 0; i < n_members; i++)
        has = has || has_driver(member[i], driver);
    return has;
}

/* Counts the ports of a driver; *id is set to the last one. */
static uint32_t count_driver(const char *driver, uint16_t *id)
{
    uint32_t n = 0;
    uint16_t i;

    RTE_ETH_FOREACH_DEV(i)
    {
        if (!has_driver(i, driver))
            continue;
        *id = i;
        n++;
    }
    return n;
}

bool nj_dpdk_device_has_port(const char *device)
{
    uint16_t id;

    if (rte_eth_dev_get_port_by_name(device, &id) == 0)
        return true;
    RTE_ETH_FOREACH_DEV(id)
    {
        struct rte_eth_dev_info info;
        if (rte_eth_dev_info_get(id, &info) == 0 && info.device &&
            strcmp(rte_dev_name(info.device), device) == 0)
            return true; /* port names of a multi-port device differ from the device name */
    }
    return false;
}

/* The EAL's error about a skipped device, as a suffix for a message. */
static const char *device_error(void)
{
    static char text[512];

    if (!*nj_eal_skipped_device_error())
        return "";
    snprintf(text, sizeof text, ": DPDK: %s (NJ_EAL_VERBOSE=1 shows its full output)",
             nj_eal_skipped_device_error());
    return text;
}

/* net_bonding adds its members at the first configuration, and knows their capabilities then. */
static int join_members(uint16_t id, char *why, size_t n)
{
    const struct rte_eth_conf conf = {.rxmode.mq_mode = RTE_ETH_MQ_RX_NONE};
    char cause[384] = "";

    nj_eal_log_capture_stdio();
    int rc = rte_eth_dev_configure(id, 1, 1, &conf);
    nj_eal_log_end_get_cause(cause, sizeof cause);
    if (rc == 0)
        return 0;
    return nj_set_error(why, n, "port %u: the bond does not accept its members: %s%s", id,
                        cause[0] ? cause : rte_strerror(-rc), device_error());
}

int nj_dpdk_port_choose(int wanted, uint16_t *id, int *node, char *why, size_t n)
{
    uint16_t count = rte_eth_dev_count_avail();

    if (count == 0 && *nj_eal_skipped_device_error())
        return nj_set_error(why, n, "no Ethernet port%s", device_error());
    if (count == 0)
        return nj_set_error(why, n,
                            "no Ethernet port: name one before --, e.g. --vdev=net_tap0,iface=nj0 "
                            "or -a PCI-ADDRESS (NJ_EAL_VERBOSE=1 shows the output of the EAL)");
    /* If there is one bond, the other ports are usually its members. */
    bool bond = wanted < 0 && count > 1 && count_driver(BONDING, id) == 1;
    if (wanted < 0 && count > 1 && !bond)
        return nj_set_error(
            why, n,
            "%u Ethernet ports found: choose one with --port 0..%u, or several, each "
            "with its --port and its --addr ADDRESS/PREFIX@PORT%s",
            count, count - 1, device_error());
    if (!bond)
        *id = wanted < 0 ? rte_eth_find_next(0) : (uint16_t)wanted;
    if (!rte_eth_dev_is_valid_port(*id))
        return nj_set_error(why, n, "--port %u: there is no such port; the EAL has found %u%s", *id,
                            count, device_error());
    *node = rte_eth_dev_socket_id(*id);
    return has_driver(*id, BONDING) ? join_members(*id, why, n) : 0;
}

static uint16_t least(uint32_t a, uint32_t b)
{
    return (uint16_t)(a < b ? a : b);
}

/* A pool for each queue and direction, so that a backlog in one never starves another. */
static struct rte_mempool *make_pool(const struct nj_dpdk_port *p, const char *kind, unsigned i,
                                     uint32_t n_mbufs)
{
    uint32_t n_bytes = RTE_PKTMBUF_HEADROOM + RTE_ALIGN(p->mtu + FRAME_BYTES, 64u);
    char name[RTE_MEMPOOL_NAMESIZE];

    n_bytes = n_bytes > RTE_MBUF_DEFAULT_BUF_SIZE ? n_bytes : RTE_MBUF_DEFAULT_BUF_SIZE;
    snprintf(name, sizeof name, "nj_%s%u_%u", kind, p->id, i);
    return rte_pktmbuf_pool_create(name, n_mbufs, POOL_CACHE, NJ_MBUF_PRIV_BYTES, (uint16_t)n_bytes,
                                   rte_eth_dev_socket_id(p->id));
}

static uint32_t excess(uint32_t n, uint32_t usual)
{
    return n > usual ? n - usual : 0;
}

static int make_pools(struct nj_dpdk_port *p, uint32_t n_shards, char *why, size_t n)
{
    bool jumbo = p->mtu + FRAME_BYTES > RTE_MBUF_DEFAULT_DATAROOM;
    uint32_t n_rx = jumbo ? RX_MBUFS_JUMBO : RX_MBUFS, n_tx = jumbo ? TX_MBUFS_JUMBO : TX_MBUFS;
    uint32_t n_more_rx = excess(p->n_rxd, NJ_RING_DEFAULT);
    uint32_t n_more_tx = excess(p->n_txd, NJ_RING_DEFAULT);
    uint32_t mib = (jumbo ? NJ_LCORE_EAL_JUMBO_MIB : NJ_LCORE_EAL_MIB) +
                   (n_more_rx + n_more_tx) / (jumbo ? 100 : 400); /* mbufs per MiB */

    /* Half of a pool stays with its device, even if all shards hold mbufs of the same pool. */
    p->held_max = n_rx / 2 / n_shards;
    n_rx += n_more_rx;
    n_tx += n_more_tx;
    nj_eal_log_capture_stdio(); /* DPDK prints a line for each region that cannot be mapped */
    for (unsigned i = 0; i < n_shards; i++) {
        if (i < p->n_rxq && !(p->rx_pool[i] = make_pool(p, "rx", i, n_rx)))
            break;
        if (!(p->tx_pool[i] = make_pool(p, "tx", i, n_tx)))
            break;
    }
    nj_eal_log_end_get_cause(NULL, 0);
    if (!p->tx_pool[n_shards - 1])
        return nj_set_error(
            why, n,
            "not enough memory for packet buffers (%u MiB are needed for %u lcore%s): "
            "%s; give EAL more with -m or hugepages",
            n_shards * mib, n_shards, n_shards == 1 ? "" : "s", rte_strerror(rte_errno));
    return 0;
}

static int make_frag_tables(struct nj_dpdk_port *p, uint32_t n_shards, char *why, size_t n)
{
    int socket = rte_eth_dev_socket_id(p->id);
    uint32_t n_made = 0;

    nj_eal_log_capture_stdio(); /* DPDK prints the size of each table */
    while (n_made < n_shards && (p->frags[n_made] = rte_ip_frag_table_create(
                                     NJ_FRAG_BUCKETS, NJ_FRAG_BUCKET_ENTRIES, NJ_FRAG_PACKETS_MAX,
                                     NJ_FRAG_TIMEOUT, socket)))
        n_made++;
    nj_eal_log_end_get_cause(NULL, 0);
    return n_made == n_shards ? 0 : nj_set_error(why, n, "not enough memory for IP fragments");
}

static int configure(struct nj_dpdk_port *p, const struct rte_eth_dev_info *info, bool rss,
                     const struct nj_offload *off, char *why, size_t n)
{
    struct rte_eth_conf conf = {.rxmode = {.offloads = off->rx, .mtu = p->mtu},
                                .txmode.offloads = off->tx,
                                .intr_conf.rxq = p->rx_interrupts};
    char cause[384] = "";

    if (rss) {
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_key = p->device_key;
        conf.rx_adv_conf.rss_conf.rss_key_len = nj_rss_expand_key(info, &p->rss_key, p->device_key);
        conf.rx_adv_conf.rss_conf.rss_hf = nj_rss_hash_types(info);
    }
    nj_eal_log_capture_stdio();
    int rc = rte_eth_dev_configure(p->id, p->n_rxq, p->n_txq, &conf);
    nj_eal_log_end_get_cause(cause, sizeof cause);
    if (rc != 0)
        return nj_set_error(why, n, "%s: the device refused %u receive and %u transmit queues: %s",
                            p->name, p->n_rxq, p->n_txq, cause[0] ? cause : rte_strerror(-rc));
    return 0;
}

/* Drivers of hardware take the MTU from the configuration. Drivers of a kernel interface set it
 * there, and only by this call. */
static int set_mtu(const struct nj_dpdk_port *p)
{
    int rc = rte_eth_dev_set_mtu(p->id, p->mtu);
    return rc == -ENOTSUP ? 0 : rc;
}

static int start(struct nj_dpdk_port *p, bool with_mtu, char *why, size_t n)
{
    int socket = rte_eth_dev_socket_id(p->id), rc = 0;
    char cause[384] = "";

    nj_eal_log_capture_stdio();
    for (uint16_t q = 0; rc == 0 && q < p->n_rxq; q++)
        rc = rte_eth_rx_queue_setup(p->id, q, p->n_rxd, (unsigned)socket, NULL, p->rx_pool[q]);
    for (uint16_t q = 0; rc == 0 && q < p->n_txq; q++)
        rc = rte_eth_tx_queue_setup(p->id, q, p->n_txd, (unsigned)socket, NULL);
    if (rc == 0 && with_mtu)
        rc = set_mtu(p);
    if (rc == 0)
        rc = rte_eth_dev_start(p->id);
    nj_eal_log_end_get_cause(cause, sizeof cause);
    if (rc != 0)
        return nj_set_error(why, n, "%s: the device does not start: %s", p->name,
                            cause[0] ? cause : rte_strerror(-rc));
    p->started = true;
    if (strcmp(p->driver, "net_af_packet") == 0)
        nj_af_packet_grow_sndbuf();
    return 0;
}

/* Chooses how packets are distributed to shards, and describes that in p->spread. */
static void choose_steering(struct nj_dpdk_port *p, const struct rte_eth_dev_info *info, bool rss,
                            uint32_t n_shards)
{
    p->reta_size = 128;
    if (n_shards == 1) {
        p->steering = NJ_STEER_NONE;
        snprintf(p->spread, sizeof p->spread, "one shard takes every packet");
    } else if (rss && nj_rss_write_and_verify(p->id, info, &p->rss_key, n_shards)) {
        p->steering = NJ_STEER_ON_MISS;
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

/* The usable queues per direction, for drivers that report more than work. Lcores without a queue
 * get their packets from other lcores.
 *
 * net_tap announces all queues in one message with room for RTE_MP_MAX_FD_NUM descriptors, and in
 * DPDK 22.11 writes past its end. net_e1000_em reports two queues for all chips; older chips
 * (82540, 82545, 82546) have one, and never send packets of the second. */
static uint32_t queues_max(const struct nj_dpdk_port *p)
{
    if (uses_driver(p, "net_e1000_em"))
        return 1;
    return uses_driver(p, TAP) ? RTE_MP_MAX_FD_NUM / 2 : NJ_SHARDS_MAX;
}

/* The smaller of max_mtu and the payload of the longest frame. */
static uint32_t mtu_max(const struct rte_eth_dev_info *info)
{
    bool has_overhead = info->max_mtu != UINT16_MAX && info->max_rx_pktlen > info->max_mtu;
    uint32_t overhead =
        has_overhead ? info->max_rx_pktlen - info->max_mtu : RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
    uint32_t most = info->max_rx_pktlen > overhead ? info->max_rx_pktlen - overhead : 0;
    return most < info->max_mtu ? most : info->max_mtu;
}

static int settle_mtu(struct nj_dpdk_port *p, const struct rte_eth_dev_info *info, uint16_t wanted,
                      char *why, size_t n)
{
    if (wanted > mtu_max(info))
        return nj_set_error(why, n, "--mtu %u: %s (%s) takes at most %u", wanted, p->name,
                            p->driver, mtu_max(info));
    rte_eth_dev_get_mtu(p->id, &p->mtu);
    p->mtu = wanted ? wanted : least(least(p->mtu, RTE_ETHER_MTU), mtu_max(info));
    return 0;
}

/* The nearest ring sizes that the device supports. */
static void settle_rings(struct nj_dpdk_port *p, uint16_t n_rxd, uint16_t n_txd)
{
    p->n_rxd = n_rxd ? n_rxd : NJ_RING_DEFAULT;
    p->n_txd = n_txd ? n_txd : NJ_RING_DEFAULT;
    nj_eal_log_capture_stdio();
    rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &p->n_rxd, &p->n_txd);
    nj_eal_log_end_get_cause(NULL, 0);
}

/* Has every receive queue an interrupt? */
static bool has_rx_interrupts(struct nj_dpdk_port *p)
{
    bool has = p->rx_interrupts;

    nj_eal_log_capture_stdio();
    for (uint16_t q = 0; has && q < p->n_rxq; q++)
        has = (p->rx_fd[q] = rte_eth_dev_rx_intr_ctl_q_get_fd(p->id, q)) >= 0;
    nj_eal_log_end_get_cause(NULL, 0);
    return has;
}

/* net_tap returns the files of its queues in place of interrupt eventfds. Packets are read from
 * these files, so no interrupt is enabled. A net_af_packet socket is readable as soon as a frame is
 * in the ring that it shares with the driver. */
static enum nj_rx_notify rx_notify(struct nj_dpdk_port *p, const struct rte_eth_dev_info *info)
{
    if (has_rx_interrupts(p))
        return strcmp(p->driver, TAP) == 0 ? NJ_RX_FILE : NJ_RX_INTERRUPT;
    if (strcmp(p->driver, "net_af_packet") != 0)
        return NJ_RX_POLLED;
    uint32_t n = nj_af_packet_sockets(info->if_index, p->rx_fd, NJ_SHARDS_MAX);
    return n == info->max_rx_queues ? NJ_RX_FILE : NJ_RX_POLLED;
}

/* Reads the ring sizes back: some drivers use sizes of their own. */
static void read_ring_sizes(struct nj_dpdk_port *p)
{
    struct rte_eth_rxq_info rx;
    struct rte_eth_txq_info tx;

    if (rte_eth_rx_queue_info_get(p->id, 0, &rx) == 0 && rx.nb_desc > 0)
        p->n_rxd = rx.nb_desc;
    if (rte_eth_tx_queue_info_get(p->id, 0, &tx) == 0 && tx.nb_desc > 0)
        p->n_txd = tx.nb_desc;
}

/* Reduces the configuration that the device refused. False: nothing is left to reduce. */
static bool reduce_request(struct nj_dpdk_port *p, bool *rss)
{
    if (p->rx_interrupts) {
        p->rx_interrupts = false;
        return true;
    }
    /* net_vmxnet3 before version 6 of the device takes powers of two only. */
    uint16_t n_queues = (uint16_t)rte_align32prevpow2(p->n_rxq);
    if (n_queues == p->n_rxq)
        return false;
    p->n_rxq = n_queues;
    p->n_txq = least(p->n_txq, n_queues);
    *rss = false; /* RSS needs a queue for each lcore */
    return true;
}

/* A driver may refuse to start with receive interrupts, or with a number of queues. */
static int bring_up(struct nj_dpdk_port *p, const struct rte_eth_dev_info *info, bool *rss,
                    const struct nj_offload *off, bool with_mtu, char *why, size_t n)
{
    while (configure(p, info, *rss, off, why, n) != 0 || start(p, with_mtu, why, n) != 0)
        if (!reduce_request(p, rss))
            return -1;
    p->rx_notify = rx_notify(p, info);
    read_ring_sizes(p);
    return 0;
}

int nj_dpdk_port_open(struct nj_dpdk_port *p, const struct nj_dpdk_port_config *want,
                      const struct nj_rss_key *rss_key, char *why, size_t n)
{
    uint32_t n_shards = want->n_shards;
    struct rte_eth_dev_info info;
    struct nj_offload off = {.rx = 0};

    memset(p, 0, sizeof *p);
    p->id = RTE_MAX_ETHPORTS;
    p->rss_key = *rss_key;
    if (nj_dpdk_port_choose(want->id, &p->id, &p->node, why, n) != 0)
        return -1;
    if (is_member(p->id))
        return nj_set_error(
            why, n, "--port %u: it is a member of a bond, which is a port of its own", p->id);
    p->bond = has_driver(p->id, BONDING);
    int rc = rte_eth_dev_info_get(p->id, &info);
    if (rc != 0)
        return nj_set_error(why, n, "cannot query port %u: %s", p->id, rte_strerror(-rc));
    rte_eth_dev_get_name_by_port(p->id, p->name);
    snprintf(p->driver, sizeof p->driver, "%s", info.driver_name);
    p->frames_reach_both = strcmp(p->driver, "net_af_packet") == 0;
    p->is_shareable = p->frames_reach_both || strcmp(p->driver, TAP) == 0;
    p->rx_interrupts = want->rx_interrupts || strcmp(p->driver, TAP) == 0;
    uint32_t n_max = queues_max(p);
    p->n_rxq = least(n_shards < n_max ? n_shards : n_max, info.max_rx_queues);
    p->n_txq = least(n_shards < n_max ? n_shards : n_max, info.max_tx_queues);

    bool rss = nj_rss_is_offered(&info, n_shards);
    if (want->offload)
        nj_offload_choose(&off, uses_driver(p, TAP) ? TAP : p->driver, &info);
    p->tx = off.stack;
    p->rx_csum = off.rx & RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
    nj_offload_format(&off, p->offloads, sizeof p->offloads);
    if (settle_mtu(p, &info, want->mtu, why, n) != 0)
        return -1;
    settle_rings(p, want->rx_ring, want->tx_ring);
    if (make_pools(p, n_shards, why, n) != 0 || make_frag_tables(p, n_shards, why, n) != 0 ||
        bring_up(p, &info, &rss, &off, want->mtu != 0, why, n) != 0)
        return -1;
    if (nj_eal_log_dma_error())
        return nj_set_error(why, n, "%s: %s", p->name, nj_eal_log_dma_error());
    if (p->bond) /* with LACP it drops broadcasts unless all-multicast is on */
        (void)rte_eth_allmulticast_enable(p->id);
    rte_eth_macaddr_get(p->id, &p->mac);
    choose_steering(p, &info, rss, n_shards);
    return 0;
}

bool nj_dpdk_port_allmulticast(const struct nj_dpdk_port *p)
{
    if (rte_eth_allmulticast_enable(p->id) == 0)
        return true;
    int rc = rte_eth_promiscuous_enable(p->id);
    return rc == 0 || rc == -ENOTSUP;
}

void nj_dpdk_port_read_stats(const struct nj_dpdk_port *p, struct nj_port_stats *out)
{
    struct rte_eth_stats stats = {0};
    struct rte_eth_link link = {0};

    out->link_up = rte_eth_link_get_nowait(p->id, &link) != 0 || link.link_status;
    out->mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
    (void)rte_eth_stats_get(p->id, &stats);
    out->rx_missed = stats.imissed;
    out->rx_nombuf = stats.rx_nombuf;
    out->rx_errors = stats.ierrors;
    /* net_tap counts packets that it refuses now and that are offered again. */
    out->tx_errors = uses_driver(p, TAP) ? 0 : stats.oerrors;
    out->tx_packets = p->n_txq > RTE_ETHDEV_QUEUE_STAT_CNTRS ? UINT64_MAX : stats.opackets;
}

struct nj_rx_source nj_dpdk_port_rx_queue_of_shard(const struct nj_dpdk_port *p, uint32_t shard)
{
    if (shard >= p->n_rxq)
        return (struct nj_rx_source){.notify = NJ_RX_NO_QUEUE};
    return (struct nj_rx_source){p->rx_notify, p->id, (uint16_t)shard, p->rx_fd[shard]};
}

void nj_dpdk_port_detach_queues(struct nj_dpdk_port *p)
{
    struct ifreq detach = {.ifr_flags = IFF_DETACH_QUEUE};

    p->is_detached = strcmp(p->driver, TAP) == 0;
    for (uint16_t q = 0; p->is_detached && q < p->n_rxq; q++)
        (void)ioctl(p->rx_fd[q], TUNSETQUEUE, &detach); /* it fails if detached already */
}

int nj_dpdk_port_attach_queues(struct nj_dpdk_port *p, char *why, size_t n)
{
    struct ifreq attach = {.ifr_flags = IFF_ATTACH_QUEUE};

    for (uint16_t q = 0; p->is_detached && q < p->n_rxq; q++)
        if (ioctl(p->rx_fd[q], TUNSETQUEUE, &attach) != 0)
            return nj_set_error(why, n, "%s: cannot attach queue %u to its interface: %s", p->name,
                                q, strerror(errno));
    p->is_detached = false;
    return 0;
}

void nj_dpdk_port_close(struct nj_dpdk_port *p)
{
    if (p->id < RTE_MAX_ETHPORTS && rte_eth_dev_is_valid_port(p->id)) {
        uint16_t member[RTE_MAX_ETHPORTS];
        uint32_t n_members = p->bond ? list_members(member) : 0;
        if (p->started)
            rte_eth_dev_stop(p->id);
        nj_eal_log_capture_stdio(); /* drivers print the device memory that they unmap */
        rte_eth_dev_close(p->id);
        for (uint32_t i = 0; i < n_members; i++) { /* their queues hold mbufs of these pools */
            rte_eth_dev_stop(member[i]);
            rte_eth_dev_close(member[i]);
        }
        nj_eal_log_end_get_cause(NULL, 0);
    }
    for (unsigned i = 0; i < NJ_SHARDS_MAX; i++) {
        if (p->frags[i])
            rte_ip_frag_table_destroy(p->frags[i]);
        rte_mempool_free(p->rx_pool[i]);
        rte_mempool_free(p->tx_pool[i]);
    }
    explicit_bzero(p, sizeof *p);
    p->id = RTE_MAX_ETHPORTS;
}

/* Adds a port's device to the list, once for each device. */
static uint32_t add_device(uint16_t id, struct rte_device **devices, uint32_t n)
{
    struct rte_eth_dev_info info;
    bool is_known = rte_eth_dev_info_get(id, &info) != 0 || !info.device;

    for (uint32_t i = 0; i < n && !is_known; i++)
        is_known = devices[i] == info.device;
    if (!is_known)
        devices[n++] = info.device;
    return n;
}

uint32_t nj_dpdk_port_append_devices(const struct nj_dpdk_port *p, struct rte_device **devices,
                                     uint32_t n)
{
    uint16_t member[RTE_MAX_ETHPORTS];
    uint32_t n_members = p->bond ? list_members(member) : 0;

    for (uint32_t i = 0; i < n_members; i++)
        n = add_device(member[i], devices, n);
    return add_device(p->id, devices, n);
}

/* Does the device have an open port? Such a port belongs to the program. */
static bool is_used(const struct rte_device *device)
{
    struct rte_eth_dev_info info;
    uint16_t id;

    RTE_ETH_FOREACH_DEV(id)
    {
        if (rte_eth_dev_info_get(id, &info) == 0 && info.device == device)
            return true;
    }
    return false;
}

/* The arguments with which rte_eal_hotplug_add() probes a device again. */
struct device_name {
    char *bus, *name, *args;
    bool is_removed;
};

static bool copy_device_name(const struct rte_device *device, struct device_name *out)
{
    const struct rte_devargs *args = rte_dev_devargs(device);

    out->bus = strdup(rte_bus_name(rte_dev_bus(device)));
    out->name = strdup(rte_dev_name(device));
    out->args = strdup(args && args->args ? args->args : "");
    return out->bus && out->name && out->args;
}

int nj_dpdk_devices_reprobe(struct rte_device **devices, uint32_t n, char *why, size_t why_bytes)
{
    struct device_name *was = calloc(n, sizeof *was);
    char cause[384] = "";
    int result = 0;

    nj_eal_log_capture_stdio();
    for (uint32_t i = n; was && i-- > 0;) { /* a bond before its members */
        was[i].is_removed = !is_used(devices[i]) && copy_device_name(devices[i], &was[i]) &&
                            rte_dev_remove(devices[i]) == 0;
    }
    for (uint32_t i = 0; was && i < n; i++) {
        int rc = was[i].is_removed ? rte_eal_hotplug_add(was[i].bus, was[i].name, was[i].args) : 0;
        if (rc != 0)
            result = nj_set_error(why, why_bytes, "%s cannot be probed again: %s", was[i].name,
                                  rte_strerror(-rc));
        free(was[i].bus);
        free(was[i].name);
        free(was[i].args);
    }
    nj_eal_log_end_get_cause(cause, sizeof cause);
    free(was);
    return result;
}
