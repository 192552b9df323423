/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses, prefixes and routes of an interface (RFC 1122 3.3.1). Contract: iface.h. */
#include "wire/iface.h"

#include <rte_byteorder.h>

#include "base/assert.h"
#include "wire/ip6.h"

/* The network part of an IPv4 address, host byte order. */
static uint32_t netmask(const struct nj_iface_addr *a)
{
    NJ_ASSERT(a->prefix_bits <= 32);
    return a->prefix_bits == 0 ? 0 : UINT32_MAX << (32 - a->prefix_bits);
}

const struct nj_iface_addr *nj_iface_find_addr(const struct nj_iface *iface,
                                               const struct nj_addr *ip)
{
    for (unsigned i = 0; i < iface->n_addrs; i++)
        if (nj_addr_eq(&iface->addr[i].ip, ip) && iface->addr[i].state != NJ_ADDR_EXPIRED)
            return &iface->addr[i];
    return NULL;
}

/* Is it the broadcast address of a link? Host byte order. */
static bool is_broadcast(const struct nj_iface *iface, uint32_t ip)
{
    for (unsigned i = 0; i < iface->n_addrs; i++) {
        const struct nj_iface_addr *a = &iface->addr[i];
        if (!nj_addr_is_v4(&a->ip) || a->prefix_bits >= 31)
            continue;
        uint32_t own = rte_be_to_cpu_32(nj_addr_to_v4(&a->ip)), mask = netmask(a);
        if ((ip & mask) == (own & mask) && (ip | mask) == UINT32_MAX)
            return true;
    }
    return false;
}

bool nj_ip4_source_ok(const struct nj_iface *iface, uint32_t ip_be)
{
    uint32_t ip = rte_be_to_cpu_32(ip_be);

    /* RFC 1122 3.2.1.3: 0/8 is "this host", 127/8 loopback; from 224/4 on it is multicast,
     * reserved and the limited broadcast. */
    if (ip >> 24 == 0 || ip >> 24 == 127 || ip >> 28 >= 14)
        return false;
    for (unsigned i = 0; i < iface->n_addrs; i++)
        if (nj_addr_to_v4(&iface->addr[i].ip) == ip_be && nj_addr_is_v4(&iface->addr[i].ip))
            return false;
    /* A link of /31 or /32 has no broadcast address (RFC 3021 2.1). */
    return (ip & 3) != 3 || !is_broadcast(iface, ip);
}

/* Prefix length in the 128-bit form: 96 bits more for v4-mapped addresses. */
static unsigned prefix_bits_of_128(const struct nj_iface_addr *a)
{
    return a->prefix_bits + (nj_addr_is_v4(&a->ip) ? 96u : 0u);
}

static bool is_in_prefix_of(const struct nj_iface_addr *a, const struct nj_addr *ip)
{
    return nj_addr_is_v4(&a->ip) == nj_addr_is_v4(ip) &&
           nj_ip6_same_prefix(&a->ip, ip, prefix_bits_of_128(a));
}

/* Is `ip` in one of our prefixes with at least `bits` bits? */
static bool is_within_own_prefix(const struct nj_iface *iface, const struct nj_addr *ip,
                                 unsigned bits)
{
    for (unsigned i = 0; i < iface->n_addrs; i++) {
        const struct nj_iface_addr *a = &iface->addr[i];
        if (a->state != NJ_ADDR_EXPIRED && a->state != NJ_ADDR_DUPLICATE &&
            is_in_prefix_of(a, ip) && prefix_bits_of_128(a) >= bits)
            return true;
    }
    return false;
}

bool nj_ip_is_on_link(const struct nj_iface *iface, const struct nj_addr *ip)
{
    return is_within_own_prefix(iface, ip, 0);
}

const struct nj_addr *nj_iface_source_for(const struct nj_iface *iface, const struct nj_addr *ip)
{
    const struct nj_addr *any = NULL;
    bool v4 = nj_addr_is_v4(ip);

    for (unsigned i = 0; i < iface->n_addrs; i++) {
        const struct nj_iface_addr *a = &iface->addr[i];
        if (a->state != NJ_ADDR_READY || nj_addr_is_v4(&a->ip) != v4)
            continue;
        if (is_in_prefix_of(a, ip))
            return &a->ip;
        any = any ? any : &a->ip;
    }
    return any;
}

/* The static route with the longest prefix. */
static const struct nj_ip_route *longest_route_to(const struct nj_iface *iface,
                                                  const struct nj_addr *dst)
{
    const struct nj_ip_route *best = NULL;

    for (unsigned i = 0; i < iface->n_routes; i++) {
        const struct nj_ip_route *r = &iface->route[i];
        bool matches = nj_addr_is_v4(&r->net) == nj_addr_is_v4(dst) &&
                       nj_ip6_same_prefix(&r->net, dst, r->bits);
        if (matches && (!best || r->bits > best->bits))
            best = r;
    }
    return best;
}

const struct nj_addr *nj_ip_next_hop(const struct nj_iface *iface, const struct nj_addr *dst)
{
    const struct nj_ip_route *route = iface->n_routes > 0 ? longest_route_to(iface, dst) : NULL;

    if (is_within_own_prefix(iface, dst, route ? route->bits : 0))
        return dst;
    if (route)
        return &route->hop;
    if (nj_addr_is_v4(dst))
        return iface->has_gateway ? &iface->gateway : NULL;
    return iface->has_gateway6 ? &iface->gateway6 : NULL;
}
