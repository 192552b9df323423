/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbours: IP address to MAC address by ARP (RFC 826, RFC 1122 2.3.2). Each shard has its own
 * table; shards show each other the ARP packets they receive, so that all learn from one answer.
 */
#ifndef NJ_SHARD_NEIGH_H
#define NJ_SHARD_NEIGH_H

#include <rte_mbuf.h>

#include "base/limits.h"
#include "base/types.h"
#include "telem/counters.h"
#include "wire/packet.h"

struct nj_neigh_entry {
    struct nj_addr ip;
    struct rte_ether_addr mac;
    bool used, resolved;
    uint8_t n_pending, n_asked;
    nj_ns due_at;  /* next question, or end of life */
    nj_ns used_at; /* last packet sent to it; 0: none yet */
    struct rte_mbuf *pending[NJ_NEIGH_PENDING_MAX];
};

struct nj_neigh {
    const struct nj_iface *iface;
    struct rte_mempool *mp;
    struct nj_counters *counters;
    /* Queue a finished frame. */
    void (*send)(void *ctx, struct rte_mbuf *m);
    void *ctx;
    nj_ns tick_at;
    struct nj_neigh_entry entry[NJ_NEIGH_MAX];
};

void nj_neigh_init(struct nj_neigh *n, const struct nj_iface *iface, struct rte_mempool *mp,
                   struct nj_counters *counters, void (*send)(void *ctx, struct rte_mbuf *m),
                   void *ctx);
/* Packets that still wait are dropped as drop_tx_down. */
void nj_neigh_fini(struct nj_neigh *n);

/* Send the IPv4 packet `m` to the neighbour `ip`, at once or when it has answered. Takes `m`. */
void nj_neigh_output(struct nj_neigh *n, struct rte_mbuf *m, const struct nj_addr *ip, nj_ns now);

/* An ARP packet came. `answer`: reply to it if it asks for us (false for one that another shard
 * showed us). True when it was worth showing to the others. */
bool nj_neigh_arp(struct nj_neigh *n, const struct nj_packet *p, bool answer, nj_ns now);

/* Tell the link who we are (gratuitous ARP, RFC 5227 3). */
void nj_neigh_announce(struct nj_neigh *n);

/* Ask again, give up, forget. Cheap when nothing is due. */
void nj_neigh_tick(struct nj_neigh *n, nj_ns now);

#endif
