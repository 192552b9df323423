/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbours: IP address to MAC address, by ARP for IPv4 (RFC 826, RFC 1122 2.3.2) and by neighbour
 * discovery for IPv6 (RFC 4861 7). Each shard has its own table; shards show each other the packets
 * they learn from, so that all learn from one answer.
 *
 * Any host of the link can say that a neighbour has another MAC address now. Such a claim is used
 * only when the neighbour does not answer at the address that is known (docs/adr/0013). Claims for
 * the neighbours of iface->fixed are ignored.
 *
 * Who asks for our own addresses, routers and prefixes are nd_host.h's business.
 */
#ifndef NJ_NET_NEIGHBOURS_H
#define NJ_NET_NEIGHBOURS_H

#include <rte_mbuf.h>

#include "base/limits.h"
#include "base/rate.h"
#include "base/types.h"
#include "telem/counters.h"
#include "wire/packet.h"

/* RFC 4861 7.3.2. An IPv4 neighbour is never STALE or DELAY: once its time is over it is asked
 * again while in use, or forgotten. A neighbour with a claim is in PROBE. */
enum nj_neigh_state {
    NJ_NEIGH_FREE,
    NJ_NEIGH_INCOMPLETE, /* asked, never answered: packets wait */
    NJ_NEIGH_REACHABLE,  /* answered not long ago */
    NJ_NEIGH_STALE,      /* believed until somebody sends to it */
    NJ_NEIGH_DELAY,      /* somebody did: to be asked soon */
    NJ_NEIGH_PROBE,      /* being asked */
};

/* Why there is a packet for a neighbour. */
enum nj_neigh_why {
    NJ_NEIGH_REPLY, /* a packet came from there, or from somebody who only says so */
    NJ_NEIGH_OWN,   /* we want to talk to it, or it has proven to be there */
    /* OWN, and TCP knows more: */
    NJ_NEIGH_PROVEN,  /* what was sent through it within the last second has arrived */
    NJ_NEIGH_DOUBTED, /* a connection through it had a time-out (RFC 1122 3.3.1.4) */
};

struct nj_neigh_entry {
    struct nj_addr ip;
    struct rte_ether_addr mac; /* from REACHABLE on */
    uint8_t state;             /* enum nj_neigh_state */
    bool router;               /* it says so (RFC 4861 7.2.5) */
    bool stranger;             /* INCOMPLETE, and only replies want it */
    bool fixed;                /* configured: REACHABLE for ever */
    bool claimed;              /* somebody says that it has the MAC address `claim` now ... */
    bool claim_router;         /* ... and is a router */
    struct rte_ether_addr claim;
    uint8_t n_pending, n_asked;
    nj_ns due_at;   /* when the state ends, or the next question */
    nj_ns used_at;  /* last packet of our own sent to it; 0: none yet */
    nj_ns heard_at; /* it told its MAC address, the one that is known */
    struct rte_mbuf *pending[NJ_NEIGH_PENDING_MAX];
};

struct nj_neigh {
    const struct nj_iface *iface;
    struct rte_mempool *mp;
    struct nj_counters *counters;
    /* Queue a finished frame. */
    void (*send)(void *ctx, struct rte_mbuf *m);
    /* An IPv6 neighbour does not answer any more, or else is no router any more. NULL: nobody
     * cares. */
    void (*lost)(void *ctx, const struct nj_addr *ip, bool silent, nj_ns now);
    void *ctx;
    nj_ns reachable, retrans; /* IPv6: how long an answer is good, and how often is asked */
    nj_ns tick_at;
    uint32_t n_strangers; /* entries */
    struct nj_rate stranger_rate;
    struct nj_neigh_entry entry[NJ_NEIGH_MAX];
};

/* Enters the neighbours of iface->fixed, too. */
void nj_neigh_init(struct nj_neigh *n, const struct nj_iface *iface, struct rte_mempool *mp,
                   struct nj_counters *counters, void (*send)(void *ctx, struct rte_mbuf *m),
                   void *ctx);
/* Packets that still wait are dropped as drop_tx_down. */
void nj_neigh_fini(struct nj_neigh *n);

/* Send the IP packet `m` to the neighbour `ip`, at once or when it has answered. Takes `m`. Who is
 * not known, and is asked for only to reply, is asked for within limits (RFC 6583 7.1): those who
 * are there mostly have asked for us before, and are known from that. */
void nj_neigh_output(struct nj_neigh *n, struct rte_mbuf *m, const struct nj_addr *ip,
                     enum nj_neigh_why why, nj_ns now);

/* An ARP packet came. `answer`: reply to it if it asks for us (false for one that another shard
 * showed us). True when it was worth showing to the others. */
bool nj_neigh_arp(struct nj_neigh *n, const struct nj_packet *p, bool answer, nj_ns now);

/* The IPv6 neighbour `ip` sent us its MAC address on its own account, in a solicitation or a router
 * advertisement (RFC 4861 7.2.3, 6.3.4). True when it was worth showing to the others. */
bool nj_neigh_heard(struct nj_neigh *n, const struct nj_addr *ip, const struct rte_ether_addr *mac,
                    bool router, nj_ns now);

/* A neighbour advertisement about an address that is not ours (RFC 4861 7.2.5). True when it was
 * worth showing to the others. */
bool nj_neigh_advert(struct nj_neigh *n, const struct nj_nd *nd, nj_ns now);

/* Tell the link our IPv4 addresses (gratuitous ARP, RFC 5227 3). */
void nj_neigh_announce(struct nj_neigh *n);

/* An mbuf for a packet of this layer's own, or NULL, counted. */
struct rte_mbuf *nj_neigh_mbuf(struct nj_neigh *n);
/* Send the IPv6 packet `m`, made of such an mbuf, to a MAC address. */
void nj_neigh_send6(struct nj_neigh *n, struct rte_mbuf *m, const struct rte_ether_addr *dst);

/* Ask again, give up, forget. Cheap when nothing is due. */
void nj_neigh_tick(struct nj_neigh *n, nj_ns now);

#endif
