/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface of a link: MAC address, VLAN, IP addresses of both families, routes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_ether.h>

#include "base/limits.h"
#include "base/types.h"

/* Addresses of one interface: eight configured ones, the link-local one, and three from router
 * advertisements. The destination of each packet is compared with all of them. */
#define NJ_ADDRS_MAX 12u

enum nj_addr_state {
    NJ_ADDR_READY,     /* usable */
    NJ_ADDR_TENTATIVE, /* IPv6: another host may have it (RFC 4862 2) */
    NJ_ADDR_DUPLICATE, /* another host uses it: not usable */
    NJ_ADDR_EXPIRED,   /* its lifetime has ended: not usable, the slot may be reused */
};

struct nj_iface_addr {
    struct nj_addr ip;
    uint8_t prefix_bits; /* on the link: 0..32 for IPv4, 0..128 for IPv6 */
    uint8_t state;       /* enum nj_addr_state */
};

/* A neighbour whose MAC address is configured. */
struct nj_iface_neighbour {
    struct nj_addr ip;
    struct rte_ether_addr mac;
};

/* A static route: packets to this network go to a neighbour. */
struct nj_ip_route {
    struct nj_addr net, hop; /* of one family; the bits of `net` after the prefix are 0 */
    uint8_t bits; /* prefix length in the 16-byte form: 97..128 for IPv4, 1..128 for IPv6 */
};

struct nj_iface {
    struct rte_ether_addr mac;
    uint16_t vlan; /* VLAN id (802.1Q), 1..4094; 0: untagged */
    uint16_t mtu;  /* bytes of an IP packet, without a VLAN tag */
    uint16_t mtu6; /* of an IPv6 packet, if a router advertises a smaller one; 0: mtu */
    bool ip6;      /* IPv6 is enabled, with a link-local address */
    bool has_gateway, has_gateway6;
    struct nj_addr gateway, gateway6; /* for IPv4, for IPv6 */
    uint8_t n_addrs, n_fixed, n_routes;
    struct nj_iface_addr addr[NJ_ADDRS_MAX];
    struct nj_iface_neighbour fixed[NJ_NEIGH_FIXED_MAX];
    struct nj_ip_route route[NJ_IP_ROUTES_MAX]; /* unordered */
};

/* The entry of this address, in any state, or NULL. */
const struct nj_iface_addr *nj_iface_find_addr(const struct nj_iface *iface,
                                               const struct nj_addr *ip);

/* For addresses that other threads read. The shard writes with these, and reads its own addresses
 * directly. A concurrent reader may see a partly changed address. */
static inline void nj_iface_addr_publish(struct nj_iface_addr *a, const struct nj_iface_addr *to)
{
    __atomic_store_n(&a->state, NJ_ADDR_EXPIRED, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < sizeof a->ip.b; i++)
        __atomic_store_n(&a->ip.b[i], to->ip.b[i], __ATOMIC_RELAXED);
    __atomic_store_n(&a->prefix_bits, to->prefix_bits, __ATOMIC_RELAXED);
    __atomic_store_n(&a->state, to->state, __ATOMIC_RELEASE);
}

static inline void nj_iface_addr_read_published(const struct nj_iface_addr *a,
                                                struct nj_iface_addr *out)
{
    out->state = __atomic_load_n(&a->state, __ATOMIC_ACQUIRE);
    out->prefix_bits = __atomic_load_n(&a->prefix_bits, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < sizeof a->ip.b; i++)
        out->ip.b[i] = __atomic_load_n(&a->ip.b[i], __ATOMIC_RELAXED);
}

/* Is `ip` a usable address of this interface? */
static inline bool nj_iface_has_addr(const struct nj_iface *iface, const struct nj_addr *ip)
{
    const struct nj_iface_addr *a = nj_iface_find_addr(iface, ip);
    return a && a->state == NJ_ADDR_READY;
}

/* Our source address for a request about the neighbour `ip`: of the same family, and with the same
 * prefix if there is one. NULL if none is ready. */
const struct nj_addr *nj_iface_source_for(const struct nj_iface *iface, const struct nj_addr *ip);

/* Maximum packet size on the link to this address, in bytes. */
static inline uint16_t nj_iface_mtu(const struct nj_iface *iface, const struct nj_addr *ip)
{
    return iface->mtu6 && !nj_addr_is_v4(ip) ? iface->mtu6 : iface->mtu;
}

/* True when an IPv4 peer may be answered at this address on this link: not zero (0/8), loopback,
 * multicast, reserved (240/4), limited or directed broadcast, nor our own. */
bool nj_ip4_source_ok(const struct nj_iface *iface, uint32_t ip_be);

/* Is `ip` on this link? Otherwise packets to it need a route or gateway. */
bool nj_ip_is_on_link(const struct nj_iface *iface, const struct nj_addr *ip);

/* The next hop of a packet to `dst`, or NULL without a route. The longest prefix of the link and
 * the static routes wins, the link's among equals; then the gateway. */
const struct nj_addr *nj_ip_next_hop(const struct nj_iface *iface, const struct nj_addr *dst);
