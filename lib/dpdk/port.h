/* SPDX-License-Identifier: BSD-3-Clause */
/* The Ethernet port: probed, configured for so many shards, started, and told about in one line. */
#ifndef NJ_DPDK_PORT_H
#define NJ_DPDK_PORT_H

#include <rte_ether.h>
#include <rte_mempool.h>

#include "base/limits.h"
#include "shard/steer.h"
#include "wire/emit.h"

struct nj_dpdk_port {
    uint16_t id;
    uint16_t n_rxq, n_txq;
    uint16_t mtu;
    int node; /* NUMA node of the device; -1: none in particular */
    bool started;
    struct rte_ether_addr mac;
    enum nj_steering steering;
    uint32_t reta_size;
    struct nj_rss_key rss_key; /* secret; for nj_shard_config */
    struct nj_tx_offload tx;
    uint32_t held_max; /* received mbufs a shard may hold, see nj_tcp_config */
    char name[64], driver[32];
    char offloads[96]; /* what the device does of the stack's work, in words */
    char spread[160];  /* how packets find their shard, in words */
    struct rte_mempool *rx_pool[NJ_SHARDS_MAX];   /* one per receive queue */
    struct rte_mempool *tx_pool[NJ_SHARDS_MAX];   /* one per shard */
    struct rte_ip_frag_tbl *frags[NJ_SHARDS_MAX]; /* one per shard */
};

/*
 * Set up the only port, or the one `id` names (-1: the only one), with a queue pair per shard as
 * far as the device has them. `offload`: let the device do what it offers (offload.h). Where it
 * promises RSS, `rss_key` and table are written and read back; a device that does not do as told
 * gets Toeplitz steering by the shards instead. Returns 0, or -1 with the reason in `why`; then
 * nj_dpdk_port_close() is still to be called.
 */
int nj_dpdk_port_open(struct nj_dpdk_port *p, int id, uint32_t n_shards,
                      const struct nj_rss_key *rss_key, bool offload, char *why, size_t why_bytes);
/* Have the device bring frames to all groups: IPv6 hosts find each other by them. False when it can
 * neither be told so nor be told to bring everything. Devices without a filter have no such call.
 */
bool nj_dpdk_port_hear_groups(const struct nj_dpdk_port *p);
void nj_dpdk_port_close(struct nj_dpdk_port *p);

#endif
