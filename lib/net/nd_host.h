/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host side of IPv6 neighbour discovery: duplicate address detection (RFC 4862 5.4), router and
 * prefix discovery (RFC 4861 6.3, RFC 4862 5.5), replies to solicitations, and reports of our
 * multicast groups (RFC 3810, RFC 2710).
 *
 * Every shard runs this over the same packets, which shards forward to each other, and with the
 * same key, so that all derive the same addresses. One shard sends the unsolicited messages. Used
 * on the shard's lcore only; other threads may read addresses by nj_iface_addr_read_published().
 */
#pragma once

#include "base/keyed_hash.h"
#include "net/neighbours.h"

/* Length of the default router list. RFC 4861 6.3.4 requires at least two. */
#define NJ_ROUTERS_MAX 4u

struct nj_nd_host_config {
    bool sends_unsolicited; /* sends unsolicited messages: shard 0 */
    bool no_dad; /* our first addresses are known to be unique; those from routers are checked */
    bool slaac;  /* generate addresses from advertised prefixes */
    struct nj_hash_key key; /* same in all shards: delays and nonces */
};

/* State of iface->addr[i] that the packet path does not need. */
struct nj_nd_host_addr {
    bool is_generated;   /* nj_nd_host_make_addr() derived it, and can derive another */
    uint8_t n_conflicts; /* duplicates found so far */
    nj_ns due_at;        /* TENTATIVE: time of the next step */
    bool probe_sent;     /* the probe was sent */
    bool slaac;
    nj_ns expires_at; /* of a SLAAC address */
};

struct nj_router {
    struct nj_addr ip;
    nj_ns expires_at; /* NJ_NEVER is never reached: a lifetime is 16 bits of seconds */
};

struct nj_nd_host {
    struct nj_nd_host_config cfg;
    struct nj_iface *iface;
    struct nj_neigh *neigh;
    bool static_gateway; /* configured: no router discovery */
    struct nj_nd_host_addr addr[NJ_ADDRS_MAX];
    uint32_t n_routers;
    struct nj_router router[NJ_ROUTERS_MAX]; /* the first one is in use */
    uint32_t n_solicits_left;
    nj_ns solicit_at;
    nj_ns report_at;     /* of all groups; NJ_NEVER: nothing due */
    uint32_t joins_left; /* state change reports still to send */
    bool report_mldv1;   /* by MLDv1 (RFC 2710) */
    nj_ns tick_at;
};

/*
 * Derive an interface address from a 64-bit prefix and a MAC address, after `n_conflicts`
 * duplicates. As RFC 7217 5, but without a secret: the address must be the same after a restart,
 * and there is no place to store a secret. The interface identifier is not the MAC address
 * (RFC 4291 A), because the kernel's end of a tap has the same MAC address. Pure.
 */
struct nj_addr nj_nd_host_make_addr(const struct nj_addr *prefix, const struct rte_ether_addr *mac,
                                    uint8_t n_conflicts);

/* If iface->ip6, add the link-local address and start duplicate address detection for all IPv6
 * addresses. Borrows `iface` and `neigh`; both must outlive `d`. */
void nj_nd_host_init(struct nj_nd_host *d, const struct nj_nd_host_config *cfg,
                     struct nj_iface *iface, struct nj_neigh *neigh, nj_ns now);

/* Process a packet of kind NJ_PACKET_ND, whose message is at `msg`. `answer`: reply to
 * solicitations; false for packets that another shard forwarded. Returns true if the other shards
 * need it. */
bool nj_nd_host_input(struct nj_nd_host *d, const struct nj_packet *p, const uint8_t *msg,
                      bool answer, nj_ns now);

/* The neighbour `ip` stopped replying (`silent`), or is no longer a router. If it is the current
 * default router, select another one. */
void nj_nd_host_replace_lost_router(struct nj_nd_host *d, const struct nj_addr *ip, bool silent,
                                    nj_ns now);

/* Run expired timers: probes, reports, lifetimes. Cheap if none has expired. */
void nj_nd_host_tick(struct nj_nd_host *d, nj_ns now);
