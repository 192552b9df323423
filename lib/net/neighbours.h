/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The neighbour cache: maps an IP address to a MAC address, by ARP for IPv4 (RFC 826, RFC 1122
 * 2.3.2) and by neighbour discovery for IPv6 (RFC 4861 7). Each shard has its own table and uses it
 * on its lcore only. Shards forward ARP and ND messages to each other, so that all learn from one.
 *
 * Any host of the link can claim another MAC address for a neighbour. A claim is adopted only if
 * the neighbour does not reply at the known address (docs/adr/0013). Claims for the neighbours of
 * iface->fixed are ignored.
 *
 * nd_host.h handles our own addresses, routers and prefixes.
 */
#pragma once

#include <rte_mbuf.h>

#include "base/limits.h"
#include "base/types.h"
#include "telem/count.h"
#include "wire/packet.h"

/* RFC 4861 7.3.2. An IPv4 neighbour is never STALE or DELAY: when its lifetime ends, it is probed
 * if in use, or else removed. A neighbour with a claim is in PROBE. */
enum nj_neigh_state {
    NJ_NEIGH_FREE,
    NJ_NEIGH_INCOMPLETE, /* requested, no reply yet: packets wait */
    NJ_NEIGH_REACHABLE,  /* replied recently */
    NJ_NEIGH_STALE,      /* usable; the next packet to it starts DELAY */
    NJ_NEIGH_DELAY,      /* a packet was sent to it: probed soon */
    NJ_NEIGH_PROBE,      /* being probed */
};

/* Why a packet is sent to a neighbour. */
enum nj_neigh_reason {
    NJ_NEIGH_REPLY, /* reply to a packet whose source may be spoofed */
    NJ_NEIGH_OWN,   /* our own traffic, or a verified peer */
    /* As OWN, with a hint of TCP: */
    NJ_NEIGH_CONFIRMED, /* data sent through it within the last second was acknowledged */
    NJ_NEIGH_SUSPECT,   /* a connection through it had a time-out (RFC 1122 3.3.1.4) */
};

struct nj_neigh_entry {
    struct nj_addr ip;
    struct rte_ether_addr mac; /* from REACHABLE on */
    uint8_t state;             /* enum nj_neigh_state */
    bool router;               /* R flag of its advertisement (RFC 4861 7.2.5) */
    bool is_unsolicited;       /* INCOMPLETE, and only replies wait for it */
    bool fixed;                /* configured: always REACHABLE */
    bool has_claim;            /* a message gave it the MAC address `claim` ... */
    bool claim_is_router;      /* ... with the R flag */
    struct rte_ether_addr claim;
    uint8_t n_pending, n_queries;
    nj_ns due_at;   /* the end of the state, or the next request */
    nj_ns used_at;  /* last packet sent to it that was no reply; 0: none */
    nj_ns heard_at; /* last message that confirmed `mac`; INCOMPLETE: its creation */
    struct rte_mbuf *pending[NJ_NEIGH_PENDING_MAX];
};

struct nj_neigh {
    const struct nj_iface *iface;
    struct rte_mempool *mp;
    struct nj_counters *counters;
    /* Queue a finished frame. */
    void (*send)(void *ctx, struct rte_mbuf *m);
    /* An IPv6 neighbour stopped replying (`silent`), or is no longer a router. May be NULL. */
    void (*lost)(void *ctx, const struct nj_addr *ip, bool silent, nj_ns now);
    /* Another host uses our address `ip`, at this MAC address; NULL: not known. At most once per
     * 10 s and address. May be NULL. */
    void (*conflict)(void *ctx, const struct nj_addr *ip, const struct rte_ether_addr *mac);
    void *ctx;
    nj_ns defended_at[NJ_ADDRS_MAX]; /* of iface->addr: the last call of `conflict`; 0: none */
    nj_ns reachable, retrans;        /* IPv6: ReachableTime, RetransTimer (RFC 4861 6.3.2) */
    nj_ns tick_at;
    struct {
        uint32_t n;    /* unsolicited entries */
        nj_ns full_at; /* when the bucket of tokens for new ones is full again (GCRA) */
    } unsolicited[2];  /* of IPv4, of IPv6 */
    struct nj_neigh_entry entry[NJ_NEIGH_MAX]; /* IPv4 in the first half, IPv6 in the second */
};

/* Initialise, and add the neighbours of iface->fixed. Borrows all pointers until fini. */
void nj_neigh_init(struct nj_neigh *n, const struct nj_iface *iface, struct rte_mempool *mp,
                   struct nj_counters *counters, void (*send)(void *ctx, struct rte_mbuf *m),
                   void *ctx);
/* Pending packets are dropped as drop_tx_down. */
void nj_neigh_fini(struct nj_neigh *n);

/* Send the IP packet `m` to the neighbour `ip`, at once or after its resolution. Takes ownership of
 * `m`. Resolution of unknown addresses for mere replies is limited (RFC 6583 7.1): real neighbours
 * have mostly requested our address before, so they are known. */
void nj_neigh_output(struct nj_neigh *n, struct rte_mbuf *m, const struct nj_addr *ip,
                     enum nj_neigh_reason why, nj_ns now);

/* Process an ARP packet. `answer`: reply to a request for our address, and defend it if another
 * host claims it (RFC 5227 2.4); false for packets that another shard forwarded. Returns true if
 * the other shards need it. */
bool nj_neigh_arp_input(struct nj_neigh *n, const struct nj_packet *p, bool answer, nj_ns now);

/* Learn `mac` from a solicitation or a router advertisement of `ip` (RFC 4861 7.2.3, 6.3.4). An
 * unknown `ip` is not learned if that would replace a neighbour in use, or one that a packet of our
 * own waits for. Returns true if the other shards need it. */
bool nj_neigh_learn(struct nj_neigh *n, const struct nj_addr *ip, const struct rte_ether_addr *mac,
                    bool router, nj_ns now);

/* Process a neighbour advertisement for an address that is not ours (RFC 4861 7.2.5). Returns true
 * if the other shards need it. */
bool nj_neigh_advert_input(struct nj_neigh *n, const struct nj_nd *nd, nj_ns now);

/* Another host claims our address `own`, of iface->addr. Calls `conflict`, and returns true, if the
 * last time was 10 s ago (DEFEND_INTERVAL of RFC 5227 1.1). `mac`: of the host, or NULL. */
bool nj_neigh_report_conflict(struct nj_neigh *n, const struct nj_iface_addr *own,
                              const struct rte_ether_addr *mac, nj_ns now);

/* Announce our IPv4 addresses by gratuitous ARP (RFC 5227 3). */
void nj_neigh_send_gratuitous_arp(struct nj_neigh *n);

/* Allocate an mbuf for an ARP or ND packet. Returns NULL, counted as mbuf_none, if none is free. */
struct rte_mbuf *nj_neigh_alloc_mbuf(struct nj_neigh *n);
/* Send the IPv6 packet `m`, from nj_neigh_alloc_mbuf(), to a MAC address. Takes ownership of `m`.
 */
void nj_neigh_send_ip6(struct nj_neigh *n, struct rte_mbuf *m, const struct rte_ether_addr *dst);

/* Run expired timers: retry, fail, remove. Cheap if none has expired. */
void nj_neigh_tick(struct nj_neigh *n, nj_ns now);
