/* SPDX-License-Identifier: BSD-3-Clause */
/* An Ethernet port: chosen, configured for a number of shards, started, observed and closed.
 * Unless stated otherwise the functions belong to the main thread. */
#pragma once

#include <rte_ether.h>
#include <rte_mempool.h>

#include "base/limits.h"
#include "dpdk/rss.h"
#include "net/rss_flow_owner.h"
#include "wire/emit.h"

/* How a receive queue reports packets to an lcore without work. */
enum nj_rx_notify {
    NJ_RX_NO_QUEUE,  /* the lcore has no queue: other lcores receive for it */
    NJ_RX_POLLED,    /* no report: the lcore polls */
    NJ_RX_FILE,      /* a file that is readable while packets are queued */
    NJ_RX_INTERRUPT, /* a receive interrupt of the device, to be enabled */
};

struct nj_rx_source {
    enum nj_rx_notify notify;
    uint16_t port, queue;
    int fd; /* with NJ_RX_FILE */
};

struct nj_dpdk_port {
    uint16_t id;
    uint16_t n_rxq, n_txq;
    uint16_t mtu;
    uint16_t n_rxd, n_txd; /* descriptors of a receive queue, of a transmit queue */
    int node;              /* NUMA node of the device; -1: unknown */
    bool started;
    bool is_shareable;           /* two processes can use the device at once: net_tap, and ... */
    bool frames_reach_both;      /* ... net_af_packet, where each then receives every frame */
    bool is_detached;            /* nj_dpdk_port_detach_queues() was called */
    bool bond;                   /* net_bonding: other ports are its members */
    bool rx_csum;                /* the device checks TCP checksums of received packets */
    bool rx_interrupts;          /* configured with receive interrupts */
    enum nj_rx_notify rx_notify; /* of each receive queue */
    int rx_fd[NJ_SHARDS_MAX];    /* of each, with NJ_RX_FILE */
    struct rte_ether_addr mac;
    enum nj_steer_mode steering;
    uint32_t reta_size;
    struct nj_rss_key rss_key;                 /* secret; for nj_shard_config */
    uint8_t device_key[NJ_RSS_DEVICE_KEY_MAX]; /* secret; drivers read it at each start */
    struct nj_tx_offload tx;
    uint32_t held_max; /* received mbufs a shard may hold, see nj_tcp_config */
    char name[64], driver[32];
    char offloads[96];                          /* the offloads in use, as text */
    char spread[160];                           /* the distribution of packets to shards, as text */
    struct rte_mempool *rx_pool[NJ_SHARDS_MAX]; /* one per receive queue */
    struct rte_mempool *tx_pool[NJ_SHARDS_MAX]; /* one per shard */
    struct rte_ip_frag_tbl *frags[NJ_SHARDS_MAX]; /* one per shard */
};

/* Link state and packet counters of a port. Counters start with the port. */
struct nj_port_stats {
    bool link_up;
    uint32_t mbps;       /* of the link; 0: not known */
    uint64_t rx_missed;  /* no free descriptor in a receive ring (imissed) */
    uint64_t rx_nombuf;  /* failed mbuf allocations of receive queues */
    uint64_t rx_errors;  /* damaged (ierrors) */
    uint64_t tx_errors;  /* not sent (oerrors); 0 for net_tap, which counts retried packets */
    uint64_t tx_packets; /* sent (opackets) */
    uint64_t tx_given;   /* passed to the device by lcores; filled in by the caller */
};

/* The requested configuration of a port. */
struct nj_dpdk_port_config {
    int id; /* see nj_dpdk_port_choose() */
    uint32_t n_shards;
    bool offload;     /* use the device's offloads (offloads.h) */
    uint16_t mtu;     /* of IP packets, at most NJ_MTU_MAX; 0: the device's, at most 1500 */
    uint16_t rx_ring; /* descriptors of a receive queue; 0: NJ_RING_DEFAULT. The device's nearest */
    uint16_t tx_ring; /* supported numbers are in n_rxd, n_txd */
    bool rx_interrupts; /* enable receive interrupts, where the driver has them */
};

/* Does a port of the device with this EAL name exist? */
bool nj_dpdk_device_has_port(const char *device);

/* Sets *id to the port `wanted`; for -1 to the only port, or the only bond. Sets *node to its NUMA
 * node or -1. Returns 0, or -1 with the reason in `why`. */
int nj_dpdk_port_choose(int wanted, uint16_t *id, int *node, char *why, size_t why_bytes);

/*
 * Configures and starts the port with one queue pair per shard, or as many as the device has. If
 * the device offers RSS, `rss_key` and the table are written and read back. If they differ, shards
 * steer packets by a Toeplitz hash in software. Returns 0, or -1 with the reason in `why`; in both
 * cases the caller calls nj_dpdk_port_close() later.
 */
int nj_dpdk_port_open(struct nj_dpdk_port *p, const struct nj_dpdk_port_config *want,
                      const struct nj_rss_key *rss_key, char *why, size_t why_bytes);
/* Makes the device receive all multicast frames, which IPv6 neighbour discovery needs. Uses
 * promiscuous mode where all-multicast is not supported. False: neither is. A device without a
 * filter has no such call and counts as success. */
bool nj_dpdk_port_allmulticast(const struct nj_dpdk_port *p);
/* Reads link state and counters; `tx_given` is unchanged. One thread at a time: some drivers clear
 * their counters on reading. A counter that the driver lacks is 0. tx_packets is UINT64_MAX where
 * it is incomplete: virtual devices count the first 16 queues only. */
void nj_dpdk_port_read_stats(const struct nj_dpdk_port *p, struct nj_port_stats *out);
/* The receive queue that the lcore of shard `shard` polls. After nj_dpdk_port_open(). */
struct nj_rx_source nj_dpdk_port_rx_queue_of_shard(const struct nj_dpdk_port *p, uint32_t shard);
void nj_dpdk_port_close(struct nj_dpdk_port *p);
/* While another process uses the device too: the kernel delivers no more packets to our queues, and
 * drops those that it has not delivered. The lcores may still poll them. net_tap only; without
 * effect with others. */
void nj_dpdk_port_detach_queues(struct nj_dpdk_port *p);
/* Undoes that, if it was done. Returns 0, or -1 with the reason in `why`. */
int nj_dpdk_port_attach_queues(struct nj_dpdk_port *p, char *why, size_t why_bytes);

struct rte_device;
/* Appends the port's device to `devices`, which holds `n` of RTE_MAX_ETHPORTS entries; for a bond
 * the devices of its members first. Returns the new number. Between nj_dpdk_port_open() and
 * nj_dpdk_port_close(). */
uint32_t nj_dpdk_port_append_devices(const struct nj_dpdk_port *p, struct rte_device **devices,
                                     uint32_t n);
/* Probes devices with closed ports again, so that they have ports as after rte_eal_init(). A device
 * with another open port is skipped. Returns 0, or -1 with the reason in `why`: at least one device
 * has no port; the others were probed. */
int nj_dpdk_devices_reprobe(struct rte_device **devices, uint32_t n, char *why, size_t why_bytes);
