/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Our own side of neighbour discovery: our IPv6 addresses are checked for duplicates before they
 * are used (RFC 4862 5.4), routers are found and prefixes taken from them (RFC 4861 6.3, RFC
 * 4862 5.5), questions about us are answered, and our groups are reported (RFC 3810, RFC 2710).
 *
 * Every shard runs this over the same packets (they show them to each other), with the same key, so
 * that all come to the same addresses. Only the one that `speaks` sends what nobody asked for.
 */
#ifndef NJ_NET_ND_HOST_H
#define NJ_NET_ND_HOST_H

#include "base/hash.h"
#include "net/neighbours.h"

/* Default routers that are remembered. RFC 4861 6.3.4 asks for two at least. */
#define NJ_ROUTERS_MAX 4u

struct nj_ndp_config {
    bool speaks;            /* shard 0 */
    bool slaac;             /* make addresses from the prefixes that routers tell */
    struct nj_hash_key key; /* the same for all shards: when they probe, and with which nonce */
};

/* What is known of iface->addr[i] beyond what the packet path needs. */
struct nj_ndp_addr {
    bool made;           /* by nj_ndp_address(), so that another one can be made */
    uint8_t n_conflicts; /* ... as often as this already */
    nj_ns due_at;        /* TENTATIVE: of the next step */
    bool asked;          /* the question is out */
    bool slaac;
    nj_ns expires_at; /* of a SLAAC address */
};

struct nj_router {
    struct nj_addr ip;
    nj_ns expires_at; /* NJ_NEVER is never reached: a lifetime is 16 bits of seconds */
};

struct nj_ndp {
    struct nj_ndp_config cfg;
    struct nj_iface *iface;
    struct nj_neigh *neigh;
    bool fixed_gateway; /* configured: routers are not asked for */
    struct nj_ndp_addr addr[NJ_ADDRS_MAX];
    uint32_t n_routers;
    struct nj_router router[NJ_ROUTERS_MAX]; /* the first one is in use */
    uint32_t n_solicits_left;
    nj_ns solicit_at;
    nj_ns report_at;       /* of all groups; NJ_NEVER: nothing due */
    uint32_t n_joins_left; /* reports that say we joined */
    bool report_old;       /* as RFC 2710 has it */
    nj_ns tick_at;
};

/*
 * The address that a host with this MAC address makes for itself in a prefix of 64 bits, when
 * `n_conflicts` others were taken. In the way of RFC 7217 5, but without a secret: a server wants
 * the same address when it starts again, and has no place to keep one. It is not made of the MAC
 * itself (RFC 4291 A), since across a tap the kernel has the same MAC and would have the same
 * address.
 */
struct nj_addr nj_ndp_address(const struct nj_addr *prefix, const struct rte_ether_addr *mac,
                              uint8_t n_conflicts);

/* Adds the link-local address to `iface`, if it is to speak IPv6, and begins to check all of its
 * IPv6 addresses. `iface` and `neigh` must stay. */
void nj_ndp_init(struct nj_ndp *d, const struct nj_ndp_config *cfg, struct nj_iface *iface,
                 struct nj_neigh *neigh, nj_ns now);

/* A packet of kind NJ_PACKET_ND came; its message is at `msg`. `answer`: false for one that another
 * shard showed us. True when it was worth showing to the others. */
bool nj_ndp_input(struct nj_ndp *d, const struct nj_packet *p, const uint8_t *msg, bool answer,
                  nj_ns now);

/* The neighbour at `ip` fell silent, or else is no router any more: if it routes for us, another
 * one is tried. */
void nj_ndp_lost(struct nj_ndp *d, const struct nj_addr *ip, bool silent, nj_ns now);

/* Ask, decide, expire. Cheap when nothing is due. */
void nj_ndp_tick(struct nj_ndp *d, nj_ns now);

#endif
