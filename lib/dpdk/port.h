/* SPDX-License-Identifier: BSD-3-Clause */
/* The Ethernet port: probed, configured for so many shards, started, and told about in one line. */
#ifndef NJ_DPDK_PORT_H
#define NJ_DPDK_PORT_H

#include <rte_ether.h>
#include <rte_mempool.h>

#include "base/limits.h"
#include "dpdk/rss.h"
#include "net/flow_steering.h"
#include "wire/emit.h"

/* How an lcore without work hears of packets in its receive queue. */
enum nj_rx_news {
    NJ_RX_NO_QUEUE,  /* others receive for it */
    NJ_RX_POLLED,    /* it has to look */
    NJ_RX_FILE,      /* the queue is a file that has something to read as long as there are some */
    NJ_RX_INTERRUPT, /* by an interrupt of the device, which can be switched on */
};

struct nj_rx {
    enum nj_rx_news news;
    uint16_t port, queue;
    int fd; /* with NJ_RX_FILE */
};

struct nj_dpdk_port {
    uint16_t id;
    uint16_t n_rxq, n_txq;
    uint16_t mtu;
    uint16_t n_rxd, n_txd; /* descriptors of a receive queue, of a transmit queue */
    int node;              /* NUMA node of the device; -1: none in particular */
    bool started;
    bool bond;                /* net_bonding: other ports are its members */
    bool rx_csum;             /* TCP checksums of received packets are by the device */
    bool rx_interrupts;       /* it was configured with those of receive queues */
    enum nj_rx_news rx_news;  /* of each receive queue */
    int rx_fd[NJ_SHARDS_MAX]; /* of each, with NJ_RX_FILE */
    struct rte_ether_addr mac;
    enum nj_steering steering;
    uint32_t reta_size;
    struct nj_rss_key rss_key;                 /* secret; for nj_shard_config */
    uint8_t device_key[NJ_RSS_DEVICE_KEY_MAX]; /* secret; drivers read it whenever they start */
    struct nj_tx_offload tx;
    uint32_t held_max; /* received mbufs a shard may hold, see nj_tcp_config */
    char name[64], driver[32];
    char offloads[96]; /* what the device does of the stack's work, in words */
    char spread[160];  /* how packets find their shard, in words */
    struct rte_mempool *rx_pool[NJ_SHARDS_MAX];   /* one per receive queue */
    struct rte_mempool *tx_pool[NJ_SHARDS_MAX];   /* one per shard */
    struct rte_ip_frag_tbl *frags[NJ_SHARDS_MAX]; /* one per shard */
};

/* What is to be seen of a port. Counts are since its start, of packets. */
struct nj_port_sight {
    bool link_up;
    uint32_t mbps;       /* of the link; 0: not known */
    uint64_t rx_missed;  /* the device had no place in its receive rings (imissed) */
    uint64_t rx_nombuf;  /* times that no buffer was free to receive into */
    uint64_t rx_errors;  /* damaged (ierrors) */
    uint64_t tx_errors;  /* not sent (oerrors); not of net_tap, which counts what we offer again */
    uint64_t tx_packets; /* sent (opackets) */
    uint64_t tx_given;   /* that lcores gave to the device: the caller's to fill in */
};

/* What the port is to be like. */
struct nj_dpdk_port_want {
    int id; /* see nj_dpdk_port_choose() */
    uint32_t n_shards;
    bool offload;       /* let the device do what it offers (offloads.h) */
    uint16_t mtu;       /* of IP packets, at most NJ_MTU_MAX; 0: the device's, at most 1500 */
    uint16_t rx_ring;   /* descriptors of a receive queue; 0: NJ_RING_DEFAULT. A device that has */
    uint16_t tx_ring;   /* other bounds takes the nearest number: see n_rxd, n_txd */
    bool rx_interrupts; /* of receive queues, where the driver has them. Without: NJ_RX_FILE, too */
};

/* Has the EAL made a port of the device that it calls so? */
bool nj_dpdk_has_port(const char *device);

/* The port that `wanted` names into *id, or for -1 the only one that there is, or the only bond;
 * its NUMA node, or -1, into *node. Returns 0, or -1 with the reason in `why`. */
int nj_dpdk_port_choose(int wanted, uint16_t *id, int *node, char *why, size_t why_bytes);

/*
 * Set the port up with a queue pair per shard as far as the device has them. Where it promises RSS,
 * `rss_key` and table are written and read back; a device that does not do as told gets Toeplitz
 * steering by the shards instead. Returns 0, or -1 with the reason in `why`; then
 * nj_dpdk_port_close() is still to be called.
 */
int nj_dpdk_port_open(struct nj_dpdk_port *p, const struct nj_dpdk_port_want *want,
                      const struct nj_rss_key *rss_key, char *why, size_t why_bytes);
/* Have the device bring frames to all groups: IPv6 hosts find each other by them. False when it can
 * neither be told so nor be told to bring everything. Devices without a filter have no such call.
 */
bool nj_dpdk_port_hear_groups(const struct nj_dpdk_port *p);
/* Look at link and counters; `tx_given` is left alone. One thread at a time: some drivers read
 * their counters by clearing them. A driver that has no such count leaves 0, but for tx_packets,
 * which is UINT64_MAX where it cannot be compared: virtual devices count the first 16 queues only.
 */
void nj_dpdk_port_see(const struct nj_dpdk_port *p, struct nj_port_sight *out);
/* What the lcore of shard `shard` of the port polls. After nj_dpdk_port_open(). */
struct nj_rx nj_dpdk_port_rx(const struct nj_dpdk_port *p, uint32_t shard);
void nj_dpdk_port_close(struct nj_dpdk_port *p);

struct rte_device;
/* Add the port's device to `devices`, which has `n` of RTE_MAX_ETHPORTS; of a bond the devices of
 * its members first. Returns how many there are then. Between nj_dpdk_port_open() and
 * nj_dpdk_port_close(). */
uint32_t nj_dpdk_port_devices(const struct nj_dpdk_port *p, struct rte_device **devices,
                              uint32_t n);
/* Probe these devices again, whose ports are closed: DPDK has no port for them otherwise. Then they
 * are as after the EAL's start. A device that has another port open is left alone. Returns 0, or -1
 * with the reason in `why`: a device is without a port, and the others have theirs. */
int nj_dpdk_devices_renew(struct rte_device **devices, uint32_t n, char *why, size_t why_bytes);

#endif
